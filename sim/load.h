/* Random clients for a simulated world. They pipeline, cut their bytes anywhere, stop reading, disconnect and
 * reconnect, and record requests and answers in a history. Each reply is compared with the request whose turn it is
 * (law 1) when it arrives. The load's options say what clients send; its checks (load_check.c) run when the world
 * has settled.
 *
 * It knows nothing of cores or engines: it talks RESP with clients of sim/world.h. One thread. */
#ifndef HS_SIM_LOAD_H
#define HS_SIM_LOAD_H

#include "sim/check.h"
#include "sim/companions.h"
#include "sim/history.h"
#include "sim/world.h"

#include <stdint.h>

struct hs_sim_load_options {
	uint32_t clients;
	/* Of each client over all its connections; 0: clients send only what the caller plans. */
	uint32_t requests;
	uint32_t act_us_max; /* between two actions of a client; 0: a default */
	uint32_t depth_max;  /* requests that a client has in flight at most */
	uint32_t registers;  /* keys for commands of all kinds: numbers 0 to registers - 1 */
	uint32_t counters;   /* the next keys, which are only incremented by one and read */
	bool hang_ups;	     /* clients disconnect with requests in flight */
	bool cuts;	     /* the output limit is low: clients may be cut off */
	bool narrow;	     /* mostly commands that can be folded */
	bool watches;	     /* many transactions with WATCH, half of them discarded */
	bool timed;	     /* mostly commands that set or read times to live */
	bool extremes;	     /* values near the limits of 64 bits, and texts */
	uint32_t ttl_ms_max; /* upper bound of times to live; 0: none */
	bool ticks;	     /* periodic ticks run in between: hot keys cool down */
	bool fold_switches;  /* folding is switched off and on */
	bool faults;	     /* requests may be refused or have unknown outcomes */
	bool busy;	     /* requests may be refused because too many wait for a key */
	bool full;	     /* partitions are small: writes may be refused */
	/* For keys with contracts (hs_sim_world_options.rules; they are the first registers): */
	uint32_t writes;	  /* percent of the requests */
	uint32_t external;	  /* writes that other clients make directly at the servers */
	uint32_t external_us_max; /* between two external writes */
	bool plain;    /* nearly all reads are GET; half of the external writes are DEL */
	bool flushes;  /* FLUSHALL, by clients of heatsink and by others directly at the servers */
	bool switches; /* mitigations and rules are switched off and on */
	struct hs_sim_companions_options companions;
};

struct hs_sim_load;

/* Plans the clients' first events; hs_sim_world_settle runs all of them. Without hs_sim_load_check, destroy the
 * world before the load; after it, the order does not matter. */
struct hs_sim_load *hs_sim_load_create(const struct hs_sim_load_options *options,
				       struct hs_sim_world *world);
void hs_sim_load_destroy(struct hs_sim_load **load);

/* Call it when all has settled. Checks that everything was answered, reads every key once more, one at a time, and
 * checks the whole history. Returns 0, HS_EINVAL with the verdict, or HS_ELIMIT when the search for an order took
 * too long. */
int hs_sim_load_check(struct hs_sim_load *load, struct hs_sim_verdict *verdict) HS_MUSTCHECK;

/* The answer of the last read of each key; NULL: there were none, or they were not answered. */
const int64_t *hs_sim_load_finals(const struct hs_sim_load *load);
const struct hs_sim_history *hs_sim_load_history(const struct hs_sim_load *load);
uint64_t hs_sim_load_requests(const struct hs_sim_load *load); /* sent so far */

#endif
