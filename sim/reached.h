/* What a schedule really reached. A fault that is drawn need not come about: these counts tell which did, and
 * the tests assert that each does often enough. */
#ifndef HS_SIM_REACHED_H
#define HS_SIM_REACHED_H

#include <stdint.h>

enum hs_sim_reached {
	HS_SIM_REACHED_MOVES, /* slots that another master owns now */
	HS_SIM_REACHED_MOVED, /* commands that a server redirected or refused with this error */
	HS_SIM_REACHED_ASK,
	HS_SIM_REACHED_TRYAGAIN,
	HS_SIM_REACHED_CLUSTERDOWN,
	HS_SIM_REACHED_FAILOVERS, /* replicas that were asked to take over, and did */
	HS_SIM_REACHED_TAKEOVERS, /* replicas that took over with what they had */
	HS_SIM_REACHED_EMPTY,	  /* masters that started without their data */
	HS_SIM_REACHED_LOST, /* keys of which a takeover or an empty restart lost the last write */
	HS_SIM_REACHED_DEATHS,	/* heatsinks that died */
	HS_SIM_REACHED_BESIDE,	/* requests to servers that are well, asked while another is not */
	HS_SIM_REACHED_TAINTED, /* keys that law 2 is not asked about: hs_sim_world.tainted */
	HS_SIM_REACHED_CUT,	/* clients that were cut off at the output limit */
	HS_SIM_REACHED_HELD, /* requests that waited because their client had so many in flight */
	HS_SIM_REACHED_COLD, /* keys that found no room among the hot ones */
	HS_SIM_REACHED_ALL,
};

struct hs_sim_counts {
	uint64_t of[HS_SIM_REACHED_ALL];
};

/* In the plural, for people. */
const char *hs_sim_reached_name(enum hs_sim_reached what);

/* `counts` may be NULL: nobody wants to know. */
static inline void hs_sim_reach(struct hs_sim_counts *counts, enum hs_sim_reached what)
{
	if (counts)
		counts->of[what]++;
}

#endif
