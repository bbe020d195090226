/* Checkers: is what the clients saw something that a single Redis could have shown them? Each takes
 * a history and says 0, or HS_EINVAL with a sentence about what is wrong. They know no core.
 *
 * And one beside them: is the heat of the workers what the clients asked for? */
#ifndef HS_SIM_CHECK_H
#define HS_SIM_CHECK_H

#include "base/check.h"
#include "heat/heat.h"
#include "sim/history.h"
#include "sim/timeline.h"

enum {
	/* Behind the laws of docs/ARCHITECTURE.md: */
	HS_SIM_LAW_HEAT = 10,	  /* every request is heat, once */
	HS_SIM_LAW_CLIENT_CACHES, /* what clients keep is what is there, or they are being told */
	HS_SIM_LAW_SERVES,	  /* when all is well again, everything is served */
	HS_SIM_LAW_LEFTOVERS,	  /* heatsinks leave nothing on the servers */
	HS_SIM_LAW_FETCHES,	  /* a worker reads one thing to be kept once at a time */
	HS_SIM_LAW_MESSAGES,	  /* who subscribes hears each message once, in order */
	HS_SIM_LAW_LIVES,	  /* no assertion fails, and no signal ends the process */
};

struct hs_sim_verdict {
	int law; /* of docs/ARCHITECTURE.md, or one of those above; 0: none is broken */
	char text[240];
};

void hs_sim_verdict_set(struct hs_sim_verdict *verdict, int law, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Law 2, key by key: some order of the operations explains all answers, in which each stands
 * between being asked and being answered, and those of one client in the client's order. A search
 * that takes more than `steps_max` steps gives up with HS_ELIMIT; 0: never. */
int hs_sim_check_order(const struct hs_sim_history *history, uint64_t steps_max,
		       struct hs_sim_verdict *verdict) HS_MUSTCHECK;

/* Law 4, for keys that were only ever incremented by one and read: no two increments were answered
 * with the same number, and `final` is what was acknowledged, or more by no more than what is
 * unknown. Of a key of which servers have lost writes (`lost`): nothing was added by anybody but clients. */
int hs_sim_check_increments(const struct hs_sim_history *history, uint32_t key, int64_t final,
			    bool lost, struct hs_sim_verdict *verdict) HS_MUSTCHECK;

/* Law 2, in front of servers none of which fails: an EXEC that did not run because its watched key had changed was
 * beside a write of that key. (The embedded engine lets a transaction fail beside a write that a full store refused:
 * what the write did to watches is not undone, engine/embedded/group.c.) */
int hs_sim_check_watch(const struct hs_sim_history *history,
		       struct hs_sim_verdict *verdict) HS_MUSTCHECK;

/* Law 3, for reads that may be old (`lax`), and law 7 for those that may not be any more (`off`): none is
 * older than its contract allows, none misses a write that was acknowledged before or that its own
 * connection asked for before, and none is kept longer than its time to live. */
int hs_sim_check_stale(const struct hs_sim_history *history,
		       const struct hs_sim_timelines *timelines,
		       struct hs_sim_verdict *verdict) HS_MUSTCHECK;

/* A key that a client asked for, or every partition: once for each time it must be counted. */
struct hs_sim_access {
	uint32_t key;	 /* its name is key%u; HS_SIM_NO_KEY: every partition once, and no key */
	uint32_t client; /* its number in the history */
	bool write;
	uint64_t asked_us;
	uint64_t answered_us; /* HS_SIM_NEVER: it may have happened or not */
	bool dropped;	      /* the answer says that it did not happen */
};

#define HS_SIM_NO_KEY UINT32_MAX

struct hs_sim_accesses {
	struct hs_sim_access *all;
	size_t count;
	size_t cap;
};

void hs_sim_accesses_deinit(struct hs_sim_accesses *accesses);
void hs_sim_accesses_add(struct hs_sim_accesses *accesses, const struct hs_sim_access *access);

/* The workers' heat, and from when to when it was counted. */
struct hs_sim_heats {
	struct hs_heat *const *heats;
	size_t count;
	uint16_t partitions;
	uint32_t tied; /* as in sim/names.h */
	uint64_t others
		[2]; /* reads and writes, at most, of who are not among the accesses, of keys of their own */
	bool summed; /* slots are anywhere and move: what is true of partitions is true of their sum */
	uint64_t start_us;
	uint64_t now_us;
};

/* Nothing is under way. Each partition (or all together) has had the reads and writes that were answered, and no more
 * than are unknown besides; and what is said of each of the first `keys` keys is true. */
int hs_sim_check_heat(const struct hs_sim_accesses *accesses, const struct hs_sim_heats *heats,
		      uint32_t keys, struct hs_sim_verdict *verdict) HS_MUSTCHECK;

#endif
