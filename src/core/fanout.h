/* Fan-out: commands that go to several partitions or workers: one request with several parts, and one merged reply
 * (route/merge.h). Worker's thread only. It knows SCAN's cursor format (keyspace/keyspace.h). A part that fails
 * makes the reply an error, unless one success is enough (HS_MERGE_ONE_SUCCEEDED). In front of servers, a write
 * that failed at one server and ran, or may have run, at another gets -UNKNOWN. */
#ifndef HS_CORE_FANOUT_H
#define HS_CORE_FANOUT_H

#include "core/state.h"

void hs_fanout_split(struct hs_core *core, struct hs_session *session, const struct hs_call *call);
/* `exec`: the transaction the command is part of, or NULL. `answered`: the reply of the transaction's own
 * partition, which ran the command inside EXEC; or empty. */
void hs_fanout_all(struct hs_core *core, struct hs_session *session, struct hs_request *exec,
		   const struct hs_call *call, struct hs_bytes answered);
void hs_fanout_cursor(struct hs_core *core, struct hs_session *session, struct hs_request *exec,
		      const struct hs_call *call);
void hs_fanout_merge(struct hs_core *core, struct hs_request *request);

#endif
