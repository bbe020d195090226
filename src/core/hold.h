/* Holding a client back: its next command waits, in its input, for one of a few things to happen. The
 * reason is shown in CLIENT LIST (held=) and counted.
 *
 *     OWN       its own commands in flight are answered: the next one, or the last one, must be alone
 *     PIPELINE  less than HS_SESSION_INFLIGHT_MAX (or the option) of its own commands are in flight
 *     STAGE     the same, because a stage said so (HS_HOLD)
 *     PAUSE     CLIENT PAUSE ends
 *     INFLIGHT  its reply fits: replies in flight have come, or the client has read (core/reply_budget.c)
 *     SLEEP     DEBUG SLEEP is over
 *
 * While a client is held nothing is taken from its input. When the reason may be gone, the core resumes the
 * session (hs_core_resume), and the command is dispatched anew. */
#ifndef HS_CORE_HOLD_H
#define HS_CORE_HOLD_H

#include "core/state.h"

/* Holds the session. Returns false, so that dispatch can return it. */
bool hs_hold(struct hs_core *core, struct hs_session *session, enum hs_hold why);
/* Holds a session with input that waits behind its own commands in flight, if they let no more pass. */
void hs_hold_pending_input(struct hs_core *core, struct hs_session *session);
void hs_hold_end(struct hs_session *session);

/* Whether nothing holds it: its next command may be dispatched. */
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

/* The reason in a word, for CLIENT LIST; "-": nothing holds it. */
const char *hs_hold_text(const struct hs_core *core, const struct hs_session *session);

#endif
