/* What a schedule really reached. A fault that is drawn need not come about: these counts tell which did, and
 * the tests assert that each does often enough. */
#ifndef HS_SIM_COVERAGE_H
#define HS_SIM_COVERAGE_H

#include <stdint.h>

enum hs_sim_coverage {
	HS_SIM_COVERAGE_MOVES, /* slots that another master owns now */
	HS_SIM_COVERAGE_MOVED, /* commands that a server redirected or refused with this error */
	HS_SIM_COVERAGE_ASK,
	HS_SIM_COVERAGE_TRYAGAIN,
	HS_SIM_COVERAGE_CLUSTERDOWN,
	HS_SIM_COVERAGE_FAILOVERS, /* replicas that were asked to take over, and did */
	HS_SIM_COVERAGE_TAKEOVERS, /* replicas that took over with what they had */
	HS_SIM_COVERAGE_EMPTY,	   /* masters that started without their data */
	HS_SIM_COVERAGE_LOST, /* keys of which a takeover or an empty restart lost the last write */
	HS_SIM_COVERAGE_DEATHS,	      /* heatsinks that died */
	HS_SIM_COVERAGE_BESIDE_FAULT, /* requests to servers that are well, asked while another is not */
	HS_SIM_COVERAGE_TAINTED,      /* keys that law 2 is not asked about: hs_sim_world.tainted */
	HS_SIM_COVERAGE_CUT,	      /* clients that were cut off at the output limit */
	HS_SIM_COVERAGE_HELD, /* requests that waited because their client had so many in flight */
	HS_SIM_COVERAGE_HOT_TABLE_FULL, /* keys that found no room among the hot ones */
	HS_SIM_COVERAGE_ALL,
};

struct hs_sim_coverage_counts {
	uint64_t of[HS_SIM_COVERAGE_ALL];
};

/* In the plural, for people. */
const char *hs_sim_coverage_name(enum hs_sim_coverage what);

/* `counts` may be NULL: nobody wants to know. */
static inline void hs_sim_cover(struct hs_sim_coverage_counts *counts, enum hs_sim_coverage what)
{
	if (counts)
		counts->of[what]++;
}

#endif
