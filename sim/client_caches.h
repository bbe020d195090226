/* Clients that keep what they read (CLIENT TRACKING), in a simulated world, and what must be true of
 * what they keep: when everything has come to rest, no client keeps a value other than the one
 * that is there. A message still on its way is no excuse then: all have arrived.
 *
 * They read one by one, several at once, in transactions; they write; some are told for each key
 * they read, some for all keys that begin so, some through another connection. They are clients of a load, which
 * judges what heatsink answers them as it does with other clients. One thread. */
#ifndef HS_SIM_CLIENT_CACHES_H
#define HS_SIM_CLIENT_CACHES_H

#include "sim/load.h"

struct hs_sim_client_caches_options {
	uint32_t clients;
	uint32_t keys;
	uint32_t rounds;     /* each comes to rest, and is checked */
	uint32_t requests;   /* of each client in each round */
	uint32_t act_us_max; /* between two bursts of a client */
	bool flushes; /* FLUSHALL also where slots move or masters are replaced: then no order is judged */
};

/* The load is for so many clients and keys, none of which acts by itself. Runs them in its world, and checks
 * what they keep and the load. Returns as hs_sim_load_check. */
int hs_sim_check_client_caches(const struct hs_sim_client_caches_options *options,
			       struct hs_sim_load *load,
			       struct hs_sim_verdict *verdict) HS_MUSTCHECK;

#endif
