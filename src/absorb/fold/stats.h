/* Counters of the stage `fold`. Any thread may read them. */
#ifndef HS_ABSORB_FOLD_STATS_H
#define HS_ABSORB_FOLD_STATS_H

#include "absorb/absorb.h"
#include "base/counter.h"
#include "core/core.h"

/* clang-format off */
#define HS_FOLD_COUNTERS(ROW) \
	ROW(keys, HS_GAUGE, "Stats", "fold_keys", "fold_keys", \
	    "Hot keys that are being folded, summed over the workers") \
	ROW(waiting, HS_GAUGE, "Stats", "fold_waiting", "fold_waiting", \
	    "Requests waiting in the queues of hot keys") \
	ROW(requests, HS_COUNTER, "Stats", "fold_requests", "fold_requests_total", \
	    "Requests answered from a batch shared with other requests for the same hot key") \
	ROW(commands, HS_COUNTER, "Stats", "fold_commands", "fold_commands_total", \
	    "Commands sent to the engine for these batches") \
	ROW(retry, HS_COUNTER, "Stats", "fold_retries", "fold_retries_total", \
	    "Requests sent again by themselves because their batch got an error") \
	ROW(busy, HS_COUNTER, "Stats", "fold_busy", "fold_busy_total", \
	    "Requests refused with BUSY: too many waited for the key (fold-waiters-max), or a refused one " \
	    "could not be sent again")
/* clang-format on */

struct hs_fold_stats {
	HS_FOLD_COUNTERS(HS_COUNTER_FIELD)
};

static inline const struct hs_fold_stats *hs_fold_stats(const struct hs_core *core)
{
	return hs_core_stage_stats(core, &hs_stage_fold);
}

#endif
