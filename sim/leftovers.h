/* What heatsinks leave on the servers. When every client has gone, no connection of a heatsink watches keys, is
 * within a transaction or blocks. When the heatsinks have stopped, as a process stops that is told to, no
 * connection is left, and the servers hold the load's keys and nothing else. Copies of hot values (docs/COPIES.md) may
 * outlive a heatsink that died, or that could not reach a server, by their lease. One thread. */
#ifndef HS_SIM_LEFTOVERS_H
#define HS_SIM_LEFTOVERS_H

#include "base/check.h"
#include "sim/check.h"

struct hs_sim_world;

/* The load's keys. */
struct hs_sim_leftovers_keys {
	uint32_t count;	       /* their numbers are below that */
	bool times;	       /* they may have a time to live */
	const int64_t *finals; /* what each held when clients read it last; NULL: nobody knows */
};

/* Stops the heatsinks of a world in front of servers; nothing can be asked of it afterwards. Returns 0, or HS_EINVAL
 * with the verdict. */
int hs_sim_check_leftovers(struct hs_sim_world *world, const struct hs_sim_leftovers_keys *keys,
			   struct hs_sim_verdict *verdict) HS_MUSTCHECK;

#endif
