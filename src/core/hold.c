#include "core/hold.h"

#include "core/stage.h"
#include "core/state.h"

bool hs_hold(struct hs_core *core, struct hs_session *session, enum hs_hold why)
{
	session->hold = why;
	hs_counter_add(&core->stats.holds[why], 1);
	return false;
}

void hs_hold_pending_input(struct hs_core *core, struct hs_session *session)
{
	if (session->hold == HS_HOLD_NONE && !hs_hold_allows_next(session))
		hs_hold(core, session,
			session->inflight >= session->inflight_max ? HS_HOLD_PIPELINE
								   : HS_HOLD_IN_FLIGHT);
}

void hs_hold_end(struct hs_session *session)
{
	session->hold = HS_HOLD_NONE;
}

const char *hs_hold_text(const struct hs_core *core, const struct hs_session *session)
{
	switch (session->hold) {
	case HS_HOLD_NONE:
	case HS_HOLDS:
		break;
	case HS_HOLD_IN_FLIGHT:
		return "commands-in-flight";
	case HS_HOLD_PIPELINE:
		return "pipeline-limit";
	case HS_HOLD_STAGE:
		return core->stages.table[session->hold_stage]->name;
	case HS_HOLD_PAUSE:
		return "pause";
	case HS_HOLD_REPLY_BUDGET:
		return "engine-inflight-bytes";
	case HS_HOLD_SLEEP:
		return "debug-sleep";
	}
	return "-";
}
