/* Random clients for a simulated world: they pipeline, cut their bytes anywhere, go deaf, hang up
 * and come back, and write down in a history what they asked and what they were told. Every reply
 * is held against the request whose turn it is (law 1) on the way. One thread. */
#ifndef HS_SIM_LOAD_H
#define HS_SIM_LOAD_H

#include "sim/check.h"
#include "sim/companions.h"
#include "sim/history.h"
#include "sim/world.h"

#include <stdint.h>

struct hs_sim_load_options {
	uint32_t clients;
	uint32_t
		requests; /* of each client, over all its connections; 0: no client acts by itself */
	uint32_t act_us_max; /* between two things a client does; 0: the usual */
	uint32_t depth_max;  /* how many requests a client has under way */
	uint32_t registers;  /* keys that are set, read, deleted, counted */
	uint32_t counters;   /* keys that are only counted up by one, and read */
	bool hang_ups;	     /* connections end in the middle */
	bool cuts;	     /* the output limit is low: connections may be cut off */
	bool narrow;	     /* what can be folded, above all */
	bool watches;	     /* many transactions with WATCH, half of them discarded */
	bool timed;	     /* mostly times to live, and reads that tell whether they are over */
	bool extremes;	     /* values near the limits of numbers, and texts that are none */
	uint32_t ttl_ms_max; /* keys expire after so long at most; 0: never */
	bool ticks;	     /* now and then regular work is done in between: keys cool */
	bool fold_switches;  /* folding is turned off and on again */
	bool faults; /* of the engine: requests may be refused, or their outcome not known */
	bool busy;   /* too many may wait for a key */
	bool full;   /* partitions are small: writes may be refused */
	/* Where keys have contracts (hs_sim_world_options.rules; these are the first registers): */
	uint32_t writes;	  /* of 100 requests */
	uint32_t external;	  /* so many writes pass the process by */
	uint32_t external_us_max; /* between two of them */
	bool plain;		  /* nearly all reads are GET, and half of those writes DEL */
	bool flushes;		  /* FLUSHALL, by clients and behind them */
	bool switches;		  /* mitigations are turned off and on again, and rules */
	struct hs_sim_companions_options companions; /* beside them */
};

struct hs_sim_load;

/* Plans the clients' first events; hs_sim_world_settle runs them all to their end. The world and
 * the load end separately, the world first. */
struct hs_sim_load *hs_sim_load_create(const struct hs_sim_load_options *options,
				       struct hs_sim_world *world);
void hs_sim_load_destroy(struct hs_sim_load **load);

/* When all has settled: was everything answered? Then reads every key once more, one at a time, and
 * checks the whole history. Returns 0, HS_EINVAL with the verdict, or HS_ELIMIT when it could not
 * be decided in reasonable time. */
int hs_sim_load_check(struct hs_sim_load *load, struct hs_sim_verdict *verdict) HS_MUSTCHECK;

/* What the last reads saw of each key; NULL: they were not made, or nobody answered. */
const int64_t *hs_sim_load_finals(const struct hs_sim_load *load);
const struct hs_sim_history *hs_sim_load_history(const struct hs_sim_load *load);
uint64_t hs_sim_load_requests(const struct hs_sim_load *load); /* sent in all */

#endif
