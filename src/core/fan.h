/* Commands that concern several partitions or workers. */
#ifndef HS_CORE_FAN_H
#define HS_CORE_FAN_H

#include "core/state.h"

void hs_fan_split(struct hs_core *core, struct hs_session *session, const struct hs_call *call);
/* `exec`: the transaction that asks, or NULL; `own`: what its partition answered in it, or empty. */
void hs_fan_all(struct hs_core *core, struct hs_session *session, struct hs_request *exec,
		const struct hs_call *call, struct hs_bytes own);
void hs_fan_cursor(struct hs_core *core, struct hs_session *session, struct hs_request *exec,
		   const struct hs_call *call);
void hs_fan_merge(struct hs_core *core, struct hs_request *request);

#endif
