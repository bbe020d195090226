/* What a connection is told without having asked, in its place among the replies. */
#ifndef HS_CORE_PUSH_H
#define HS_CORE_PUSH_H

#include "core/state.h"

/* Behind everything that is under way for
 * it; at once if nothing is, or if that may wait for ever. */
void hs_push(struct hs_core *core, struct hs_session *session, struct hs_bytes bytes);
/* The same for another connection, on this worker or another: it leaves when all replies of
 * `session` that are under way now have gone out. */
void hs_push_redirected(struct hs_core *core, struct hs_session *session, uint64_t to,
			uint32_t worker, struct hs_bytes bodies);
/* Directly behind the reply of `request`, which is answered and not delivered yet, and ahead of the
 * replies of what its session asked later. `to`: the connection that gets it; 0: the session itself. */
void hs_push_behind(struct hs_core *core, struct hs_request *request, uint64_t to, uint32_t worker,
		    struct hs_bytes bytes);

#endif
