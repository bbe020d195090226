/* What fold counts. Any thread may read a counter. */
#ifndef HS_ABSORB_FOLD_STATS_H
#define HS_ABSORB_FOLD_STATS_H

#include "absorb/absorb.h"
#include "base/counter.h"
#include "core/core.h"

/* clang-format off */
#define HS_FOLD_COUNTERS(ROW) \
	ROW(keys, HS_GAUGE, "Stats", "fold_keys", "fold_keys", \
	    "Hot keys that are folded now, summed over the workers") \
	ROW(waiting, HS_GAUGE, "Stats", "fold_waiting", "fold_waiting", "Requests that wait for a hot key now") \
	ROW(requests, HS_COUNTER, "Stats", "fold_requests", "fold_requests_total", \
	    "Requests answered together with others for the same hot key") \
	ROW(commands, HS_COUNTER, "Stats", "fold_commands", "fold_commands_total", \
	    "Commands sent to the engine for those requests") \
	ROW(retry, HS_COUNTER, "Stats", "fold_retries", "fold_retries_total", \
	    "Requests run by themselves after the engine refused what they were part of") \
	ROW(busy, HS_COUNTER, "Stats", "fold_busy", "fold_busy_total", \
	    "Requests refused because fold-waiters-max were waiting")
/* clang-format on */

struct hs_fold_stats {
	HS_FOLD_COUNTERS(HS_COUNTER_FIELD)
};

static inline const struct hs_fold_stats *hs_fold_stats(const struct hs_core *core)
{
	return hs_core_stage_stats(core, &hs_stage_fold);
}

#endif
