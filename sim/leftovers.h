/* Checks what heatsinks leave on the servers. When every client has disconnected, no connection of a heatsink
 * watches keys, is in a transaction or is blocked. When the heatsinks have stopped in an orderly way, no connection
 * is left, and the servers hold the load's keys and no others. Copies of hot values (docs/COPIES.md) may outlive, by
 * their lease, a heatsink that died or that could not reach a server. One thread. */
#ifndef HS_SIM_LEFTOVERS_H
#define HS_SIM_LEFTOVERS_H

#include "base/check.h"
#include "sim/check.h"

struct hs_sim_world;

/* The keys that may be left. */
struct hs_sim_leftovers_keys {
	uint32_t count;	       /* the load's keys: numbers 0 to count - 1 */
	bool times;	       /* keys may have times to live */
	const int64_t *finals; /* what clients read of each key last; NULL: unknown */
};

/* Stops the heatsinks of a world in front of servers; afterwards the world serves no requests. Returns 0, or
 * HS_EINVAL with the verdict. */
int hs_sim_check_leftovers(struct hs_sim_world *world, const struct hs_sim_leftovers_keys *keys,
			   struct hs_sim_verdict *verdict) HS_MUSTCHECK;

#endif
