/* Coverage: what schedules really went through. A drawn fault need not happen; these counts show which did, and
 * tests assert that each happens often enough. One thread. */
#ifndef HS_SIM_COVERAGE_H
#define HS_SIM_COVERAGE_H

#include <stdint.h>

enum hs_sim_coverage {
	HS_SIM_COVERAGE_MOVES,	     /* slots that have moved to another master */
	HS_SIM_COVERAGE_MOVED,	     /* commands that a server answered with MOVED */
	HS_SIM_COVERAGE_ASK,	     /* likewise with ASK */
	HS_SIM_COVERAGE_TRYAGAIN,    /* likewise with TRYAGAIN */
	HS_SIM_COVERAGE_CLUSTERDOWN, /* likewise with CLUSTERDOWN */
	HS_SIM_COVERAGE_FAILOVERS,   /* failovers on request (CLUSTER FAILOVER) */
	HS_SIM_COVERAGE_TAKEOVERS,   /* failovers in which the replica took over with what it had */
	HS_SIM_COVERAGE_EMPTY,	     /* masters that restarted without their data */
	HS_SIM_COVERAGE_LOST,	/* keys whose last write a takeover or an empty restart has lost */
	HS_SIM_COVERAGE_DEATHS, /* heatsinks that died */
	/* Requests to healthy servers, sent while another server was faulty. */
	HS_SIM_COVERAGE_BESIDE_FAULT,
	/* Keys that the order of law 2 is not checked for: hs_sim_world.tainted. */
	HS_SIM_COVERAGE_TAINTED,
	HS_SIM_COVERAGE_CUT, /* clients that heatsink cut off at the output limit */
	/* Requests that waited because their client was at its limit of requests in flight. */
	HS_SIM_COVERAGE_HELD,
	HS_SIM_COVERAGE_HOT_TABLE_FULL, /* keys that did not fit into a full table of hot keys */
	HS_SIM_COVERAGE_ALL,
};

struct hs_sim_coverage_counts {
	uint64_t of[HS_SIM_COVERAGE_ALL];
};

/* In the plural, as the summary prints it. */
const char *hs_sim_coverage_name(enum hs_sim_coverage what);

/* `counts` may be NULL. */
static inline void hs_sim_cover(struct hs_sim_coverage_counts *counts, enum hs_sim_coverage what)
{
	if (counts)
		counts->of[what]++;
}

#endif
