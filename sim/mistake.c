#include "sim/mistake.h"

#include "sim/check.h"

#include <string.h>

#define LAW(number) (UINT32_C(1) << (number))

static const struct {
	const char *name;
	enum hs_sim_mistake_where where;
	uint32_t laws; /* that it can break */
} mistakes[HS_SIM_MISTAKES] = {
	[HS_SIM_NO_MISTAKE] = {"none", HS_SIM_ANYWHERE, 0},
	[HS_SIM_READ_TOO_EARLY] = {"read-too-early", HS_SIM_IN_ENGINE, LAW(2)},
	[HS_SIM_SWAP_RUNS] = {"swap-runs", HS_SIM_IN_ENGINE, LAW(2)},
	[HS_SIM_SWAP_REPLIES] = {"swap-replies", HS_SIM_IN_ENGINE, LAW(1) | LAW(2) | LAW(4)},
	[HS_SIM_RUN_TWICE] = {"run-twice", HS_SIM_IN_ENGINE, LAW(2) | LAW(4)},
	[HS_SIM_LOSE_COMMIT] = {"lose-commit", HS_SIM_IN_ENGINE, LAW(2) | LAW(4)},
	[HS_SIM_LOSE_REPLY] = {"lose-reply", HS_SIM_IN_ENGINE, LAW(1) | LAW(6)},
	[HS_SIM_STALE_READ] = {"stale-read", HS_SIM_IN_ENGINE, LAW(2) | LAW(4)},
	[HS_SIM_EXPIRED_AT_ONCE] = {"expired-at-once", HS_SIM_IN_SLOWNESS, LAW(2)},
	[HS_SIM_READ_UNDATED] = {"read-undated", HS_SIM_IN_SLOWNESS, LAW(2)},
	[HS_SIM_NEWS_LOST] = {"news-lost", HS_SIM_IN_CACHES, LAW(HS_SIM_LAW_CACHES)},
	[HS_SIM_NEWS_TOO_EARLY] = {"news-too-early", HS_SIM_IN_CACHES, LAW(HS_SIM_LAW_CACHES)},
	[HS_SIM_COUNT_TWICE] = {"count-twice", HS_SIM_ANYWHERE, LAW(HS_SIM_LAW_HEAT)},
	[HS_SIM_COUNT_NEVER] = {"count-never", HS_SIM_ANYWHERE, LAW(HS_SIM_LAW_HEAT)},
	[HS_SIM_READ_REMEMBERED_LATE] = {"read-remembered-late", HS_SIM_IN_CACHES,
					 LAW(HS_SIM_LAW_CACHES)},
	[HS_SIM_NEWS_OVERTAKE] = {"news-overtake", HS_SIM_IN_CACHES, LAW(HS_SIM_LAW_CACHES)},
	[HS_SIM_KEY_LEFT] = {"key-left", HS_SIM_IN_SERVERS, LAW(HS_SIM_LAW_LEFT)},
	[HS_SIM_VALUE_LEFT] = {"value-left", HS_SIM_IN_SERVERS, LAW(HS_SIM_LAW_LEFT)},
	[HS_SIM_WAITERS_UNCOUNTED] = {"waiters-uncounted", HS_SIM_IN_FOLD, LAW(6)},
	[HS_SIM_CACHE_UNCOUNTED] = {"cache-uncounted", HS_SIM_IN_RULES, LAW(6)},
	[HS_SIM_TRACKED_UNCOUNTED] = {"tracked-uncounted", HS_SIM_IN_CACHES, LAW(6)},
	[HS_SIM_OUTPUT_UNCOUNTED] = {"output-uncounted", HS_SIM_ANYWHERE, LAW(6)},
	[HS_SIM_PIPELINE_UNCOUNTED] = {"pipeline-uncounted", HS_SIM_ANYWHERE, LAW(6)},
	[HS_SIM_HOT_UNCOUNTED] = {"hot-uncounted", HS_SIM_ANYWHERE, LAW(6)},
	[HS_SIM_SHELVES_APART] = {"shelves-apart", HS_SIM_IN_RULES, LAW(3)},
	[HS_SIM_TURN_UNHEARD] = {"turn-unheard", HS_SIM_IN_RULES, LAW(7)},
	[HS_SIM_UNKNOWN_READS] = {"unknown-reads", HS_SIM_IN_RULES, LAW(2) | LAW(3)},
	[HS_SIM_COPY_WAITED_FOR] = {"copy-waited-for", HS_SIM_IN_RULES, LAW(9)},
	[HS_SIM_JOIN_FLIGHT] = {"join-flight", HS_SIM_ANYWHERE, LAW(2)},
	[HS_SIM_TWO_QUEUES] = {"two-queues", HS_SIM_ANYWHERE, LAW(2)},
	[HS_SIM_RESEND_LOST] = {"resend-lost", HS_SIM_IN_SERVERS, LAW(2) | LAW(4)},
	[HS_SIM_DROP_ORDER] = {"drop-order", HS_SIM_ANYWHERE, LAW(2) | LAW(HS_SIM_LAW_SERVES)},
	[HS_SIM_OVERTAKE] = {"overtake", HS_SIM_ANYWHERE, LAW(2)},
	[HS_SIM_MISSING_AS_ZERO] = {"missing-as-zero", HS_SIM_ANYWHERE, LAW(2)},
	[HS_SIM_ASSERTION_FAILS] = {"assertion-fails", HS_SIM_ANYWHERE, LAW(HS_SIM_LAW_LIVES)},
	[HS_SIM_REFUSED_BUT_RUN] = {"refused-but-run", HS_SIM_IN_SERVERS, LAW(2) | LAW(4)},
	[HS_SIM_PUSH_LOST] = {"push-lost", HS_SIM_IN_RULES, LAW(3)},
	[HS_SIM_PUSH_LATE] = {"push-late", HS_SIM_IN_RULES, LAW(3)},
	[HS_SIM_DEAD_VOUCH] = {"dead-vouch", HS_SIM_IN_RULES, LAW(3)},
	[HS_SIM_PROOF_AT_REPLY] = {"proof-at-reply", HS_SIM_IN_RULES, LAW(3)},
	[HS_SIM_BELIEVED_AFTER_MOVE] = {"believed-after-move", HS_SIM_IN_RULES, LAW(3)},
	[HS_SIM_REPLICA_UNPROVED] = {"replica-unproved", HS_SIM_IN_RULES, LAW(3)},
	[HS_SIM_COVER_LOST] = {"cover-lost", HS_SIM_IN_CACHES_FAULTS, LAW(HS_SIM_LAW_CACHES)},
	[HS_SIM_REDIRECT_OVERTAKES] = {"redirect-overtakes", HS_SIM_IN_MOVES, LAW(2)},
	[HS_SIM_ASKED_REFUSED] = {"asked-refused", HS_SIM_IN_MOVES, LAW(HS_SIM_LAW_SERVES)},
	[HS_SIM_EMPTY_FORGOTTEN] = {"empty-forgotten", HS_SIM_IN_MOVES, LAW(HS_SIM_LAW_SERVES)},
	[HS_SIM_WRITE_RESENT] = {"write-resent", HS_SIM_IN_SERVERS, LAW(2) | LAW(4)},
	[HS_SIM_FAILOVER_RESENT] = {"failover-resent", HS_SIM_IN_FAILOVERS, LAW(2) | LAW(4)},
	[HS_SIM_MSET_RESENT] = {"mset-resent", HS_SIM_IN_SERVERS, LAW(2) | LAW(4)},
	[HS_SIM_UNKNOWN_RESENT] = {"unknown-resent", HS_SIM_IN_RULES, LAW(2) | LAW(4)},
	[HS_SIM_EXEC_RESENT] = {"exec-resent", HS_SIM_IN_SERVERS, LAW(2) | LAW(4)},
	[HS_SIM_HALF_REPLY_KEPT] = {"half-reply-kept", HS_SIM_IN_SERVERS,
				    LAW(1) | LAW(2) | LAW(4) | LAW(HS_SIM_LAW_SERVES)},
	[HS_SIM_DIED_RESENT] = {"died-resent", HS_SIM_IN_FLEET, LAW(2) | LAW(4)},
	[HS_SIM_ERROR_AS_MISSING] = {"error-as-missing", HS_SIM_IN_SERVERS, LAW(2)},
	[HS_SIM_FLUSH_ONE] = {"flush-one", HS_SIM_IN_RULES, LAW(2) | LAW(3)},
	[HS_SIM_COPIES_LEFT] = {"copies-left", HS_SIM_IN_RULES, LAW(HS_SIM_LAW_LEFT)},
	[HS_SIM_WATCH_LEFT] = {"watch-left", HS_SIM_IN_SERVERS, LAW(HS_SIM_LAW_LEFT)},
	[HS_SIM_WAITS_FOR_ALL] = {"waits-for-all", HS_SIM_IN_ALONE, LAW(9)},
	[HS_SIM_PARKS_ALL] = {"parks-all", HS_SIM_IN_ALONE, LAW(9)},
	[HS_SIM_FETCH_WAITS_FOR_ALL] = {"fetch-waits-for-all", HS_SIM_IN_RULES, LAW(9)},
	[HS_SIM_PRIVATE_UNCOUNTED] = {"private-uncounted", HS_SIM_IN_GUESTS, LAW(6)},
	[HS_SIM_UNBLOCK_LOST] = {"unblock-lost", HS_SIM_IN_GUESTS, LAW(1)},
	[HS_SIM_ELEMENT_LOST] = {"element-lost", HS_SIM_IN_GUESTS_FAULTS, LAW(4)},
	[HS_SIM_ELEMENT_TWICE] = {"element-twice", HS_SIM_IN_GUESTS_FAULTS, LAW(4)},
	[HS_SIM_MESSAGE_LOST] = {"message-lost", HS_SIM_IN_GUESTS, LAW(HS_SIM_LAW_MESSAGES)},
	[HS_SIM_MESSAGE_TWICE] = {"message-twice", HS_SIM_IN_GUESTS, LAW(HS_SIM_LAW_MESSAGES)},
	[HS_SIM_MESSAGE_OVERTAKES] = {"message-overtakes", HS_SIM_IN_GUESTS,
				      LAW(HS_SIM_LAW_MESSAGES)},
	[HS_SIM_STALE_MAP_WRITE] = {"stale-map-write", HS_SIM_IN_MOVES, LAW(2) | LAW(4)},
	[HS_SIM_STALE_MAP_READ] = {"stale-map-read", HS_SIM_IN_MOVES, LAW(2)},
	[HS_SIM_HALF_SLOT_SERVED] = {"half-slot-served", HS_SIM_IN_MOVES, LAW(2) | LAW(4)},
	[HS_SIM_WATCH_KEPT] = {"watch-kept", HS_SIM_IN_PEACE, LAW(2) | LAW(HS_SIM_LAW_LEFT)},
	[HS_SIM_CONNECTION_LEFT] = {"connection-left", HS_SIM_IN_SERVERS, LAW(HS_SIM_LAW_LEFT)},
	[HS_SIM_WRITE_UNSTAMPED] = {"write-unstamped", HS_SIM_IN_RULES, LAW(3)},
	[HS_SIM_RACED_FILL] = {"raced-fill", HS_SIM_IN_RULES, LAW(3)},
	[HS_SIM_NEGATIVE_FOREVER] = {"negative-forever", HS_SIM_IN_RULES, LAW(3)},
	[HS_SIM_MISSING_BELIEVED] = {"missing-believed", HS_SIM_IN_RULES, LAW(3)},
	[HS_SIM_OWN_WRITE_UNSEEN] = {"own-write-unseen", HS_SIM_IN_RULES, LAW(3)},
	[HS_SIM_COPIES_KEPT] = {"copies-kept", HS_SIM_IN_RULES, LAW(3)},
	[HS_SIM_FETCH_FORGOTTEN] = {"fetch-forgotten", HS_SIM_IN_RULES, LAW(HS_SIM_LAW_FILLS)},
	[HS_SIM_OLD_WHILE_READING] = {"old-while-reading", HS_SIM_IN_RULES, LAW(3)},
	[HS_SIM_STAGE_OVERTAKEN] = {"stage-overtaken", HS_SIM_IN_STAGE, LAW(2)},
	[HS_SIM_STAGE_FORGETS] = {"stage-forgets", HS_SIM_IN_STAGE, LAW(1) | LAW(2)},
};

const char *hs_sim_mistake_name(enum hs_sim_mistake mistake)
{
	return mistakes[mistake].name;
}

enum hs_sim_mistake_where hs_sim_mistake_where(enum hs_sim_mistake mistake)
{
	return mistakes[mistake].where;
}

bool hs_sim_mistake_breaks(enum hs_sim_mistake mistake, int law)
{
	return mistakes[mistake].laws >> law & 1;
}

enum hs_sim_mistake hs_sim_mistake_find(const char *name)
{
	enum hs_sim_mistake mistake = HS_SIM_NO_MISTAKE;

	while (mistake < HS_SIM_MISTAKES && strcmp(mistakes[mistake].name, name) != 0)
		mistake++;
	return mistake;
}
