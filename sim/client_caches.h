/* Clients that track keys (CLIENT TRACKING) and cache what they read, and the check of their caches: when all
 * messages have arrived, no client caches a value other than the true one. A missing invalidation is then a
 * violation.
 *
 * They read keys one by one, several at once and in transactions, and write. Some get invalidations for the
 * keys that they read, some for prefixes (BCAST), some on another connection (REDIRECT). They are clients of a
 * load, which checks heatsink's answers to them as it does for other clients. One thread. */
#ifndef HS_SIM_CLIENT_CACHES_H
#define HS_SIM_CLIENT_CACHES_H

#include "sim/load.h"

struct hs_sim_client_caches_options {
	uint32_t clients;
	uint32_t keys;
	uint32_t rounds;     /* all activity ends after each round, and the caches are checked */
	uint32_t requests;   /* of each client in each round */
	uint32_t act_us_max; /* between two bursts of a client */
	/* FLUSHALL also while slots move or masters are replaced; then the order of law 2 is not checked. */
	bool flushes;
};

/* Runs the clients in the load's world, then checks their caches and the load. The load must have been created
 * for options->clients clients and options->keys keys, and with no requests of its own. Returns as
 * hs_sim_load_check. */
int hs_sim_check_client_caches(const struct hs_sim_client_caches_options *options,
			       struct hs_sim_load *load,
			       struct hs_sim_verdict *verdict) HS_MUSTCHECK;

#endif
