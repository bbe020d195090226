#include "sim/coverage.h"

static const char *const names[HS_SIM_COVERAGE_ALL] = {
	[HS_SIM_COVERAGE_MOVES] = "moved slots",
	[HS_SIM_COVERAGE_MOVED] = "MOVED redirects",
	[HS_SIM_COVERAGE_ASK] = "ASK redirects",
	[HS_SIM_COVERAGE_TRYAGAIN] = "TRYAGAIN errors",
	[HS_SIM_COVERAGE_CLUSTERDOWN] = "CLUSTERDOWN errors",
	[HS_SIM_COVERAGE_FAILOVERS] = "planned failovers",
	[HS_SIM_COVERAGE_TAKEOVERS] = "forced failovers",
	[HS_SIM_COVERAGE_EMPTY] = "masters restarted empty",
	[HS_SIM_COVERAGE_LOST] = "lost writes",
	[HS_SIM_COVERAGE_DEATHS] = "deaths of heatsinks",
	[HS_SIM_COVERAGE_BESIDE_FAULT] = "requests beside a faulty server",
	[HS_SIM_COVERAGE_TAINTED] = "keys without an order check",
	[HS_SIM_COVERAGE_CUT] = "clients cut off",
	[HS_SIM_COVERAGE_HELD] = "requests held by full pipelines",
	[HS_SIM_COVERAGE_HOT_TABLE_FULL] = "keys that found the hot-key table full",
};

const char *hs_sim_coverage_name(enum hs_sim_coverage what)
{
	return names[what];
}
