/* The table of planted bugs: name, the worlds in which each can strike, and the laws that it can break. */
#include "sim/planted_bugs.h"

#include "sim/check.h"

#include <string.h>

#define LAW(number) (UINT32_C(1) << (number))

static const struct {
	const char *name;
	enum hs_sim_bug_where where;
	uint32_t laws; /* a bit for each law that it can break */
} bugs[HS_SIM_BUGS] = {
	[HS_SIM_NO_BUG] = {"none", HS_SIM_ANYWHERE, 0},
	[HS_SIM_READ_TOO_EARLY] = {"read-too-early", HS_SIM_IN_ENGINE, LAW(2)},
	[HS_SIM_SWAP_RUNS] = {"swap-runs", HS_SIM_IN_ENGINE, LAW(2)},
	[HS_SIM_SWAP_REPLIES] = {"swap-replies", HS_SIM_IN_ENGINE, LAW(1) | LAW(2) | LAW(4)},
	[HS_SIM_RUN_TWICE] = {"run-twice", HS_SIM_IN_ENGINE, LAW(2) | LAW(4)},
	[HS_SIM_LOSE_COMMIT] = {"lose-commit", HS_SIM_IN_ENGINE, LAW(2) | LAW(4)},
	[HS_SIM_LOSE_REPLY] = {"lose-reply", HS_SIM_IN_ENGINE, LAW(1) | LAW(6)},
	[HS_SIM_STALE_READ] = {"stale-read", HS_SIM_IN_ENGINE, LAW(2) | LAW(4)},
	[HS_SIM_EXPIRED_AT_ONCE] = {"expired-at-once", HS_SIM_IN_SLOWNESS, LAW(2)},
	[HS_SIM_READ_UNDATED] = {"read-undated", HS_SIM_IN_SLOWNESS, LAW(2)},
	[HS_SIM_INVALIDATION_LOST] = {"invalidation-lost", HS_SIM_IN_TRACKING,
				      LAW(HS_SIM_LAW_CLIENT_CACHES)},
	[HS_SIM_INVALIDATION_TOO_EARLY] = {"invalidation-too-early", HS_SIM_IN_TRACKING,
					   LAW(HS_SIM_LAW_CLIENT_CACHES)},
	[HS_SIM_COUNT_TWICE] = {"count-twice", HS_SIM_ANYWHERE, LAW(HS_SIM_LAW_HEAT)},
	[HS_SIM_COUNT_NEVER] = {"count-never", HS_SIM_ANYWHERE, LAW(HS_SIM_LAW_HEAT)},
	[HS_SIM_READ_TRACKED_LATE] = {"read-tracked-late", HS_SIM_IN_TRACKING,
				      LAW(HS_SIM_LAW_CLIENT_CACHES)},
	[HS_SIM_EVENT_OVERTAKES] = {"event-overtakes", HS_SIM_IN_TRACKING,
				    LAW(HS_SIM_LAW_CLIENT_CACHES)},
	[HS_SIM_KEY_LEFT] = {"key-left", HS_SIM_IN_SERVERS, LAW(HS_SIM_LAW_LEFTOVERS)},
	[HS_SIM_VALUE_LEFT] = {"value-left", HS_SIM_IN_SERVERS, LAW(HS_SIM_LAW_LEFTOVERS)},
	[HS_SIM_WAITERS_UNLIMITED] = {"waiters-unlimited", HS_SIM_IN_FOLD, LAW(6)},
	[HS_SIM_CACHE_UNLIMITED] = {"cache-unlimited", HS_SIM_IN_RULES, LAW(6)},
	[HS_SIM_TRACKED_UNLIMITED] = {"tracked-unlimited", HS_SIM_IN_TRACKING, LAW(6)},
	[HS_SIM_OUTPUT_UNLIMITED] = {"output-unlimited", HS_SIM_ANYWHERE, LAW(6)},
	[HS_SIM_PIPELINE_UNLIMITED] = {"pipeline-unlimited", HS_SIM_ANYWHERE, LAW(6)},
	[HS_SIM_HOT_UNLIMITED] = {"hot-unlimited", HS_SIM_ANYWHERE, LAW(6)},
	[HS_SIM_CACHES_APART] = {"caches-apart", HS_SIM_IN_RULES, LAW(3)},
	[HS_SIM_SWITCH_IGNORED] = {"switch-ignored", HS_SIM_IN_RULES, LAW(7)},
	[HS_SIM_UNKNOWN_READS] = {"unknown-reads", HS_SIM_IN_RULES, LAW(2) | LAW(3)},
	[HS_SIM_WAITS_FOR_COPY] = {"waits-for-copy", HS_SIM_IN_RULES, LAW(9)},
	[HS_SIM_JOINS_READ_IN_FLIGHT] = {"joins-read-in-flight", HS_SIM_ANYWHERE, LAW(2)},
	[HS_SIM_TWO_QUEUES] = {"two-queues", HS_SIM_ANYWHERE, LAW(2)},
	[HS_SIM_RESEND_LOST] = {"resend-lost", HS_SIM_IN_SERVERS, LAW(2) | LAW(4)},
	[HS_SIM_DROP_ORDER] = {"drop-order", HS_SIM_ANYWHERE, LAW(2) | LAW(HS_SIM_LAW_SERVES)},
	[HS_SIM_OVERTAKE] = {"overtake", HS_SIM_ANYWHERE, LAW(2)},
	[HS_SIM_MISSING_AS_ZERO] = {"missing-as-zero", HS_SIM_ANYWHERE, LAW(2)},
	[HS_SIM_ASSERTION_FAILS] = {"assertion-fails", HS_SIM_ANYWHERE, LAW(HS_SIM_LAW_LIVES)},
	[HS_SIM_REFUSED_BUT_RUN] = {"refused-but-run", HS_SIM_IN_SERVERS, LAW(2) | LAW(4)},
	[HS_SIM_PUSH_LOST] = {"push-lost", HS_SIM_IN_RULES, LAW(3)},
	[HS_SIM_PUSH_LATE] = {"push-late", HS_SIM_IN_RULES, LAW(3)},
	[HS_SIM_DEAD_SESSION] = {"dead-session", HS_SIM_IN_RULES, LAW(3)},
	[HS_SIM_LIVENESS_AT_REPLY] = {"liveness-at-reply", HS_SIM_IN_RULES, LAW(3)},
	[HS_SIM_SESSION_SURVIVES_MOVE] = {"session-survives-move", HS_SIM_IN_RULES, LAW(3)},
	[HS_SIM_REPLICA_BEHIND] = {"replica-behind", HS_SIM_IN_RULES, LAW(3)},
	[HS_SIM_TRACKING_GAP_HIDDEN] = {"tracking-gap-hidden", HS_SIM_IN_TRACKING_FAULTS,
					LAW(HS_SIM_LAW_CLIENT_CACHES)},
	[HS_SIM_REDIRECT_OVERTAKES] = {"redirect-overtakes", HS_SIM_IN_MOVES, LAW(2)},
	[HS_SIM_ASK_REFUSED] = {"ask-refused", HS_SIM_IN_MOVES, LAW(HS_SIM_LAW_SERVES)},
	[HS_SIM_EMPTY_MASTER_DROPPED] = {"empty-master-dropped", HS_SIM_IN_MOVES,
					 LAW(HS_SIM_LAW_SERVES)},
	[HS_SIM_WRITE_RESENT] = {"write-resent", HS_SIM_IN_SERVERS, LAW(2) | LAW(4)},
	[HS_SIM_FAILOVER_RESENT] = {"failover-resent", HS_SIM_IN_FAILOVERS, LAW(2) | LAW(4)},
	[HS_SIM_MSET_RESENT] = {"mset-resent", HS_SIM_IN_SERVERS, LAW(2) | LAW(4)},
	[HS_SIM_UNKNOWN_RESENT] = {"unknown-resent", HS_SIM_IN_RULES, LAW(2) | LAW(4)},
	[HS_SIM_EXEC_RESENT] = {"exec-resent", HS_SIM_IN_SERVERS, LAW(2) | LAW(4)},
	[HS_SIM_HALF_REPLY_REUSED] = {"half-reply-reused", HS_SIM_IN_SERVERS,
				      LAW(1) | LAW(2) | LAW(4) | LAW(HS_SIM_LAW_SERVES)},
	[HS_SIM_DIED_RESENT] = {"died-resent", HS_SIM_IN_FLEET, LAW(2) | LAW(4)},
	[HS_SIM_ERROR_AS_MISSING] = {"error-as-missing", HS_SIM_IN_SERVERS, LAW(2)},
	[HS_SIM_FLUSH_ONE] = {"flush-one", HS_SIM_IN_RULES, LAW(2) | LAW(3)},
	[HS_SIM_COPIES_LEFT] = {"copies-left", HS_SIM_IN_RULES, LAW(HS_SIM_LAW_LEFTOVERS)},
	[HS_SIM_WATCH_LEFT] = {"watch-left", HS_SIM_IN_SERVERS, LAW(HS_SIM_LAW_LEFTOVERS)},
	[HS_SIM_WAITS_FOR_ALL] = {"waits-for-all", HS_SIM_IN_ONE_FAULTY, LAW(9)},
	[HS_SIM_PARKS_ALL] = {"parks-all", HS_SIM_IN_ONE_FAULTY, LAW(9)},
	[HS_SIM_FETCH_WAITS_FOR_ALL] = {"fetch-waits-for-all", HS_SIM_IN_RULES, LAW(9)},
	[HS_SIM_PRIVATE_UNLIMITED] = {"private-unlimited", HS_SIM_IN_COMPANIONS, LAW(6)},
	[HS_SIM_UNBLOCK_IGNORED] = {"unblock-ignored", HS_SIM_IN_COMPANIONS, LAW(1)},
	[HS_SIM_ELEMENT_LOST] = {"element-lost", HS_SIM_IN_COMPANIONS_FAULTS, LAW(4)},
	[HS_SIM_ELEMENT_TWICE] = {"element-twice", HS_SIM_IN_COMPANIONS_FAULTS, LAW(4)},
	[HS_SIM_MESSAGE_LOST] = {"message-lost", HS_SIM_IN_COMPANIONS, LAW(HS_SIM_LAW_MESSAGES)},
	[HS_SIM_MESSAGE_TWICE] = {"message-twice", HS_SIM_IN_COMPANIONS, LAW(HS_SIM_LAW_MESSAGES)},
	[HS_SIM_MESSAGE_OVERTAKES] = {"message-overtakes", HS_SIM_IN_COMPANIONS,
				      LAW(HS_SIM_LAW_MESSAGES)},
	[HS_SIM_STALE_MAP_WRITE] = {"stale-map-write", HS_SIM_IN_MOVES, LAW(2) | LAW(4)},
	[HS_SIM_STALE_MAP_READ] = {"stale-map-read", HS_SIM_IN_MOVES, LAW(2)},
	[HS_SIM_HALF_SLOT_SERVED] = {"half-slot-served", HS_SIM_IN_MOVES, LAW(2) | LAW(4)},
	[HS_SIM_WATCH_REUSED] = {"watch-reused", HS_SIM_IN_HEALTHY_SERVERS,
				 LAW(2) | LAW(HS_SIM_LAW_LEFTOVERS)},
	[HS_SIM_CONNECTION_LEFT] = {"connection-left", HS_SIM_IN_SERVERS,
				    LAW(HS_SIM_LAW_LEFTOVERS)},
	[HS_SIM_VERSION_NOT_BUMPED] = {"version-not-bumped", HS_SIM_IN_RULES, LAW(3)},
	[HS_SIM_RACED_FETCH_CACHED] = {"raced-fetch-cached", HS_SIM_IN_RULES, LAW(3)},
	[HS_SIM_NEGATIVE_FOREVER] = {"negative-forever", HS_SIM_IN_RULES, LAW(3)},
	[HS_SIM_MISSING_CACHED_IN_MOVE] = {"missing-cached-in-move", HS_SIM_IN_RULES, LAW(3)},
	[HS_SIM_OWN_WRITE_UNSEEN] = {"own-write-unseen", HS_SIM_IN_RULES, LAW(3)},
	[HS_SIM_COPIES_NOT_INVALIDATED] = {"copies-not-invalidated", HS_SIM_IN_RULES, LAW(3)},
	[HS_SIM_DOUBLE_FETCH] = {"double-fetch", HS_SIM_IN_RULES, LAW(HS_SIM_LAW_FETCHES)},
	[HS_SIM_OLD_DURING_FETCH] = {"old-during-fetch", HS_SIM_IN_RULES, LAW(3)},
	[HS_SIM_STAGE_OVERTAKEN] = {"stage-overtaken", HS_SIM_IN_STAGE, LAW(2)},
	[HS_SIM_STAGE_FORGETS] = {"stage-forgets", HS_SIM_IN_STAGE, LAW(1) | LAW(2)},
};

const char *hs_sim_bug_name(enum hs_sim_bug bug)
{
	return bugs[bug].name;
}

enum hs_sim_bug_where hs_sim_bug_where(enum hs_sim_bug bug)
{
	return bugs[bug].where;
}

bool hs_sim_bug_breaks(enum hs_sim_bug bug, int law)
{
	return bugs[bug].laws >> law & 1;
}

enum hs_sim_bug hs_sim_bug_find(const char *name)
{
	enum hs_sim_bug bug = HS_SIM_NO_BUG;

	while (bug < HS_SIM_BUGS && strcmp(bugs[bug].name, name) != 0)
		bug++;
	return bug;
}
