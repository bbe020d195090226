/* Commands that concern several partitions or workers. */
#ifndef HS_CORE_FANOUT_H
#define HS_CORE_FANOUT_H

#include "core/state.h"

void hs_fanout_split(struct hs_core *core, struct hs_session *session, const struct hs_call *call);
/* `exec`: the transaction that asks, or NULL; `own`: what its partition answered in it, or empty. */
void hs_fanout_all(struct hs_core *core, struct hs_session *session, struct hs_request *exec,
		   const struct hs_call *call, struct hs_bytes answered);
void hs_fanout_cursor(struct hs_core *core, struct hs_session *session, struct hs_request *exec,
		      const struct hs_call *call);
void hs_fanout_merge(struct hs_core *core, struct hs_request *request);

#endif
