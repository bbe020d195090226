#include "engine/engine.h"

const struct hs_counter_table hs_engine_counters = HS_COUNTER_TABLE(HS_ENGINE_COUNTERS);

void hs_engine_stats_add(struct hs_engine_stats *stats, const void *counters)
{
	hs_counters_sum(&hs_engine_counters, counters, stats);
}
