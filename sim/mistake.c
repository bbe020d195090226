#include "sim/mistake.h"

#include <string.h>

static const struct {
	const char *name;
	enum hs_sim_mistake_where where;
} mistakes[HS_SIM_MISTAKES] = {
	[HS_SIM_NO_MISTAKE] = {"none", HS_SIM_ANYWHERE},
	[HS_SIM_READ_TOO_EARLY] = {"read-too-early", HS_SIM_IN_ENGINE},
	[HS_SIM_SWAP_RUNS] = {"swap-runs", HS_SIM_IN_ENGINE},
	[HS_SIM_SWAP_REPLIES] = {"swap-replies", HS_SIM_IN_ENGINE},
	[HS_SIM_RUN_TWICE] = {"run-twice", HS_SIM_IN_ENGINE},
	[HS_SIM_LOSE_COMMIT] = {"lose-commit", HS_SIM_IN_ENGINE},
	[HS_SIM_LOSE_REPLY] = {"lose-reply", HS_SIM_IN_ENGINE},
	[HS_SIM_STALE_READ] = {"stale-read", HS_SIM_IN_ENGINE},
	[HS_SIM_EXPIRED_AT_ONCE] = {"expired-at-once", HS_SIM_IN_SLOWNESS},
	[HS_SIM_READ_UNDATED] = {"read-undated", HS_SIM_IN_SLOWNESS},
	[HS_SIM_NEWS_LOST] = {"news-lost", HS_SIM_IN_CACHES},
	[HS_SIM_NEWS_TOO_EARLY] = {"news-too-early", HS_SIM_IN_CACHES},
	[HS_SIM_COUNT_TWICE] = {"count-twice", HS_SIM_ANYWHERE},
	[HS_SIM_COUNT_NEVER] = {"count-never", HS_SIM_ANYWHERE},
	[HS_SIM_READ_REMEMBERED_LATE] = {"read-remembered-late", HS_SIM_IN_CACHES},
	[HS_SIM_NEWS_OVERTAKE] = {"news-overtake", HS_SIM_IN_CACHES},
	[HS_SIM_JOIN_FLIGHT] = {"join-flight", HS_SIM_ANYWHERE},
	[HS_SIM_TWO_QUEUES] = {"two-queues", HS_SIM_ANYWHERE},
	[HS_SIM_RESEND_LOST] = {"resend-lost", HS_SIM_IN_SERVERS},
	[HS_SIM_DROP_ORDER] = {"drop-order", HS_SIM_ANYWHERE},
	[HS_SIM_OVERTAKE] = {"overtake", HS_SIM_ANYWHERE},
	[HS_SIM_MISSING_AS_ZERO] = {"missing-as-zero", HS_SIM_ANYWHERE},
	[HS_SIM_REFUSED_BUT_RUN] = {"refused-but-run", HS_SIM_IN_SERVERS},
	[HS_SIM_WAITERS_UNCOUNTED] = {"waiters-uncounted", HS_SIM_IN_FOLD},
	[HS_SIM_PUSH_LOST] = {"push-lost", HS_SIM_IN_RULES},
	[HS_SIM_PUSH_LATE] = {"push-late", HS_SIM_IN_RULES},
	[HS_SIM_DEAD_VOUCH] = {"dead-vouch", HS_SIM_IN_RULES},
	[HS_SIM_PROOF_AT_REPLY] = {"proof-at-reply", HS_SIM_IN_RULES},
	[HS_SIM_BELIEVED_AFTER_MOVE] = {"believed-after-move", HS_SIM_IN_RULES_MOVES},
	[HS_SIM_REPLICA_UNPROVED] = {"replica-unproved", HS_SIM_IN_RULES},
	[HS_SIM_COVER_LOST] = {"cover-lost", HS_SIM_IN_CACHES_FAULTS},
	[HS_SIM_REDIRECT_OVERTAKES] = {"redirect-overtakes", HS_SIM_IN_MOVES},
	[HS_SIM_WRITE_RESENT] = {"write-resent", HS_SIM_IN_SERVERS},
	[HS_SIM_FAILOVER_RESENT] = {"failover-resent", HS_SIM_IN_FAILOVERS},
	[HS_SIM_EXEC_RESENT] = {"exec-resent", HS_SIM_IN_SERVERS},
	[HS_SIM_HALF_REPLY_KEPT] = {"half-reply-kept", HS_SIM_IN_SERVERS},
	[HS_SIM_DIED_RESENT] = {"died-resent", HS_SIM_IN_FLEET},
	[HS_SIM_ERROR_AS_MISSING] = {"error-as-missing", HS_SIM_IN_SERVERS},
	[HS_SIM_FLUSH_ONE] = {"flush-one", HS_SIM_IN_RULES},
	[HS_SIM_STALE_MAP_WRITE] = {"stale-map-write", HS_SIM_IN_MOVES},
	[HS_SIM_STALE_MAP_READ] = {"stale-map-read", HS_SIM_IN_MOVES},
	[HS_SIM_WATCH_KEPT] = {"watch-kept", HS_SIM_IN_PEACE},
	[HS_SIM_WRITE_UNSTAMPED] = {"write-unstamped", HS_SIM_IN_RULES},
	[HS_SIM_RACED_FILL] = {"raced-fill", HS_SIM_IN_RULES},
	[HS_SIM_NEGATIVE_FOREVER] = {"negative-forever", HS_SIM_IN_RULES},
	[HS_SIM_OWN_WRITE_UNSEEN] = {"own-write-unseen", HS_SIM_IN_RULES},
	[HS_SIM_OLD_WHILE_READING] = {"old-while-reading", HS_SIM_IN_RULES},
	[HS_SIM_UNKNOWN_READS] = {"unknown-reads", HS_SIM_IN_RULES},
	[HS_SIM_SHELVES_APART] = {"shelves-apart", HS_SIM_IN_RULES},
	[HS_SIM_TURN_UNHEARD] = {"turn-unheard", HS_SIM_IN_RULES},
	[HS_SIM_STAGE_OVERTAKEN] = {"stage-overtaken", HS_SIM_IN_STAGE},
	[HS_SIM_STAGE_FORGETS] = {"stage-forgets", HS_SIM_IN_STAGE},
};

const char *hs_sim_mistake_name(enum hs_sim_mistake mistake)
{
	return mistakes[mistake].name;
}

enum hs_sim_mistake_where hs_sim_mistake_where(enum hs_sim_mistake mistake)
{
	return mistakes[mistake].where;
}

enum hs_sim_mistake hs_sim_mistake_find(const char *name)
{
	enum hs_sim_mistake mistake = HS_SIM_NO_MISTAKE;

	while (mistake < HS_SIM_MISTAKES && strcmp(mistakes[mistake].name, name) != 0)
		mistake++;
	return mistake;
}
