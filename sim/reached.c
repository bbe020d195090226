#include "sim/reached.h"

static const char *const names[HS_SIM_REACHED_ALL] = {
	[HS_SIM_REACHED_MOVES] = "moved slots",
	[HS_SIM_REACHED_MOVED] = "MOVED redirects",
	[HS_SIM_REACHED_ASK] = "ASK redirects",
	[HS_SIM_REACHED_TRYAGAIN] = "TRYAGAIN errors",
	[HS_SIM_REACHED_CLUSTERDOWN] = "CLUSTERDOWN errors",
	[HS_SIM_REACHED_FAILOVERS] = "planned failovers",
	[HS_SIM_REACHED_TAKEOVERS] = "forced failovers",
	[HS_SIM_REACHED_EMPTY] = "masters restarted empty",
	[HS_SIM_REACHED_LOST] = "lost writes",
	[HS_SIM_REACHED_DEATHS] = "deaths of heatsinks",
	[HS_SIM_REACHED_BESIDE] = "requests beside a troubled server",
	[HS_SIM_REACHED_TAINTED] = "keys left out of the order",
	[HS_SIM_REACHED_CUT] = "clients cut off",
	[HS_SIM_REACHED_HELD] = "full pipelines",
	[HS_SIM_REACHED_COLD] = "hot keys without room",
};

const char *hs_sim_reached_name(enum hs_sim_reached what)
{
	return names[what];
}
