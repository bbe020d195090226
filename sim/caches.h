/* Clients that keep what they read (CLIENT TRACKING), in a simulated world, and what must be true of
 * what they keep: when everything has come to rest, no client keeps a value other than the one
 * that is there. A message still on its way is no excuse then: all have arrived.
 *
 * They read one by one, several at once, in transactions; they write; some are told for each key
 * they read, some for all keys that begin so, some through another connection. One thread. */
#ifndef HS_SIM_CACHES_H
#define HS_SIM_CACHES_H

#include "sim/check.h"
#include "sim/world.h"

struct hs_sim_caches_options {
	uint32_t clients;
	uint32_t keys;
	uint32_t rounds;   /* each comes to rest, and is checked */
	uint32_t requests; /* of each client in each round */
};

/* Runs it all in a new world. `requests` counts what was sent, `text` gets what was kept by whom
 * when a law was broken. 0, or HS_EINVAL with the verdict. */
int hs_sim_check_caches(const struct hs_sim_caches_options *options, struct hs_sim_world *world,
			struct hs_sim_verdict *verdict, uint64_t *requests) HS_MUSTCHECK;

#endif
