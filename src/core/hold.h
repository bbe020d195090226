/* Holding a client: its next command stays in its input until a condition ends. CLIENT LIST shows the reason
 * (held=), and a counter counts it. Worker's thread only.
 *
 *     IN_FLIGHT     its own commands in flight are answered: the next one, or the last one, must be alone
 *     PIPELINE      fewer than HS_SESSION_INFLIGHT_MAX (or the option) of its own commands are in flight
 *     STAGE         its own commands in flight are answered, because a stage said so (HS_HOLD)
 *     PAUSE         CLIENT PAUSE ends
 *     REPLY_BUDGET  its next reply fits: replies in flight have come, or the client has read (core/reply_budget.h)
 *     SLEEP         DEBUG SLEEP is over
 *
 * While a client is held the core takes nothing from its input, and the driver stops reading when the input
 * buffer is large. When the condition may have ended, the core resumes the session (hs_core_resume) and
 * dispatches the command again from the start. */
#ifndef HS_CORE_HOLD_H
#define HS_CORE_HOLD_H

#include "core/state.h"

/* Holds the session. Returns false, for dispatch to return. */
bool hs_hold(struct hs_core *core, struct hs_session *session, enum hs_hold why);
/* Holds a session with input left, if its commands in flight do not let the next one run. */
void hs_hold_pending_input(struct hs_core *core, struct hs_session *session);
void hs_hold_end(struct hs_session *session);

/* Whether the session's next command may be dispatched. */
static inline bool hs_hold_allows_next(const struct hs_session *session)
{
	switch (session->hold) {
	case HS_HOLD_NONE:
	case HS_HOLD_PIPELINE:
		return session->inflight == 0 ||
		       (session->inflight < session->inflight_max && !session->alone);
	case HS_HOLD_IN_FLIGHT:
	case HS_HOLD_STAGE:
		return session->inflight == 0;
	case HS_HOLD_PAUSE:
	case HS_HOLD_REPLY_BUDGET:
	case HS_HOLD_SLEEP:
	case HS_HOLDS:
		break;
	}
	return false;
}

/* The reason for held= in CLIENT LIST; "-": not held. */
const char *hs_hold_text(const struct hs_core *core, const struct hs_session *session);

#endif
