/* All counters of the process, each summed over the threads that count it, for INFO and /metrics. A table of counters
 * (base/counter.h) is one line in totals.c; the tables of stages are found through the row of stages. CONFIG
 * RESETSTAT keeps a copy as a baseline, which INFO subtracts: no thread's counters are ever set back. The control
 * thread. */
#ifndef HS_SERVE_TOTALS_H
#define HS_SERVE_TOTALS_H

#include "base/counter.h"
#include "core/stats.h"

struct hs_engine_stats;
struct hs_host;

extern const struct hs_counter_table hs_worker_counters, hs_host_counters, hs_key_reader_counters;

enum { HS_TOTALS_MAX = 256 }; /* rows of all tables together; checked when they are read */

struct hs_totals {
	size_t count;
	const struct hs_counter_row *rows[HS_TOTALS_MAX];
	uint64_t values[HS_TOTALS_MAX];
	struct hs_command_totals {
		HS_COMMAND_COUNTERS(HS_COUNTER_NUMBER)
	} command[HS_CMD_IDS_ALL];
};

/* Sums since the start. `engine` has the engine's counters of this moment. */
void hs_totals_read(const struct hs_host *host, const struct hs_engine_stats *engine,
		    struct hs_totals *totals);
/* Subtracts the counters that CONFIG RESETSTAT resets. A zeroed baseline subtracts nothing. */
void hs_totals_subtract(struct hs_totals *totals, const struct hs_totals *baseline);

#endif
