/* Push messages, in their place among the replies of a connection: invalidations of CLIENT TRACKING. They count
 * against the client's output limit. Worker's thread only. The head of push.c explains the order. */
#ifndef HS_CORE_PUSH_H
#define HS_CORE_PUSH_H

#include "core/state.h"

/* Sends behind the replies to all requests in flight; at once if there are none, or if the only one blocks
 * (BLPOP). */
void hs_push(struct hs_core *core, struct hs_session *session, struct hs_bytes bytes);
/* The same for connection `to` on any worker: the message leaves when the replies to all requests of `session`
 * that are in flight now have been sent. */
void hs_push_redirected(struct hs_core *core, struct hs_session *session, uint64_t to,
			uint32_t worker, struct hs_bytes bodies);
/* Sends directly behind the reply of `request`, which is answered and not delivered yet, and before the replies
 * to later requests of its session. `to`: the connection that gets it; 0: the session itself. */
void hs_push_behind(struct hs_core *core, struct hs_request *request, uint64_t to, uint32_t worker,
		    struct hs_bytes bytes);

#endif
