/* The checkers' front door: the verdict, the laws, and the checkers that read a history.
 *
 * A checker answers one question: could a correct heatsink in front of a single Redis have shown the clients this?
 * It takes a history (sim/history.h), and for stale reads also the timeline of the keys, and returns 0, or HS_EINVAL
 * with the broken law and a sentence in *verdict. Checkers know no core, no engine and no RESP, and keep no state
 * between calls; any thread may call them. The last checker compares the workers' heat with what the clients
 * requested.
 *
 * Checks that need the running world are elsewhere: replies (law 1) in load_replies.c and companions_check.c;
 * the order across keys in executions.h; commands that run twice in duplicates.h; limits in driver.c, and
 * gauges in load_check.c; delays (law 9) in load_delay.c; single-flight fetches in rules.c; client caches in
 * client_caches.c; leftovers in leftovers.h. */
#ifndef HS_SIM_CHECK_H
#define HS_SIM_CHECK_H

#include "base/check.h"
#include "heat/heat.h"
#include "sim/history.h"
#include "sim/timeline.h"

enum {
	/* Checks beyond the numbered laws of docs/ARCHITECTURE.md: */
	HS_SIM_LAW_HEAT = 10, /* every request is counted as heat exactly once */
	/* No client cache holds an old value when all invalidations have arrived. */
	HS_SIM_LAW_CLIENT_CACHES,
	HS_SIM_LAW_SERVES,    /* when all faults are over, every key is served */
	HS_SIM_LAW_LEFTOVERS, /* heatsinks leave no keys, watches or connections on the servers */
	HS_SIM_LAW_FETCHES,  /* a worker has one fetch of a key in flight at most (single-flight) */
	HS_SIM_LAW_MESSAGES, /* a subscriber gets each message at most once, in order */
	HS_SIM_LAW_LIVES,    /* no assertion fails, and no signal ends the process */
};

struct hs_sim_verdict {
	int law; /* a number of docs/ARCHITECTURE.md, or one of the above; 0: no law is broken */
	char text[240];
};

void hs_sim_verdict_set(struct hs_sim_verdict *verdict, int law, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Law 2, key by key: some order of the operations explains all answers. In that order each operation stands
 * between its request and its answer, and the operations of one client stand in the client's order. HS_ELIMIT:
 * the search for one key undid more than `steps_max` choices (0: no limit). The first tries, with few unknown
 * outcomes, have a limit of their own and do not count. */
int hs_sim_check_order(const struct hs_sim_history *history, uint64_t steps_max,
		       struct hs_sim_verdict *verdict) HS_MUSTCHECK;

/* Law 4, for keys that were only incremented by one and read. No two increments were answered with the same number,
 * and `final` is at least the number of acknowledged increments and exceeds it at most by those with an unknown
 * outcome. If servers have lost writes of the key (`lost`), `final` may be lower. */
int hs_sim_check_increments(const struct hs_sim_history *history, uint32_t key, int64_t final,
			    bool lost, struct hs_sim_verdict *verdict) HS_MUSTCHECK;

/* Law 2, in front of servers that do not fail: an EXEC that did not run because its watched key had changed was
 * concurrent with a write of that key. (The embedded engine lets a transaction fail beside a write that a full
 * store refused: the effect of that write on watches is not undone, engine/embedded/group.c.) */
int hs_sim_check_watch(const struct hs_sim_history *history,
		       struct hs_sim_verdict *verdict) HS_MUSTCHECK;

/* Law 3 for reads with a contract (`may_be_stale`), and law 7 for reads while mitigations are off (`off`). No read
 * returns a value that is older than the contract allows. None misses a write that was acknowledged before the read,
 * or that its own connection requested before. None is served beyond its time to live. */
int hs_sim_check_stale(const struct hs_sim_history *history,
		       const struct hs_sim_timelines *timelines,
		       struct hs_sim_verdict *verdict) HS_MUSTCHECK;

/* One access that heat must count: of one key, or of every partition. */
struct hs_sim_access {
	/* Number of the key; HS_SIM_NO_KEY: every partition is counted once, and no key. */
	uint32_t key;
	uint32_t client; /* its number in the history */
	bool write;
	uint64_t asked_us;
	uint64_t answered_us; /* HS_SIM_NEVER: unknown whether it happened */
	bool dropped;	      /* the reply says that it did not happen */
};

#define HS_SIM_NO_KEY UINT32_MAX

struct hs_sim_accesses {
	struct hs_sim_access *all;
	size_t count;
	size_t cap;
};

void hs_sim_accesses_deinit(struct hs_sim_accesses *accesses);
void hs_sim_accesses_add(struct hs_sim_accesses *accesses, const struct hs_sim_access *access);

/* The workers' heat, and the time over which it was counted. */
struct hs_sim_heats {
	struct hs_heat *const *heats;
	size_t count;
	uint16_t partitions;
	uint32_t tied; /* as in sim/names.h */
	/* Upper bounds of reads and of writes by clients that are not recorded in the accesses (sim/companions.h). */
	uint64_t others[2];
	bool summed; /* slots move between partitions: only the sum of all partitions is compared */
	uint64_t start_us;
	uint64_t now_us;
};

/* Call it when nothing is in flight. Each partition (with `summed`: all together) counted every answered read and
 * write, and beyond that no more than those with an unknown outcome. The reported bounds of the first `keys` keys
 * are true. */
int hs_sim_check_heat(const struct hs_sim_accesses *accesses, const struct hs_sim_heats *heats,
		      uint32_t keys, struct hs_sim_verdict *verdict) HS_MUSTCHECK;

#endif
