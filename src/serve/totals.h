/* All counters of the process, each summed over the threads that count it: what INFO and /metrics show, and
 * what CONFIG RESETSTAT takes off. A table of counters (base/counter.h) is a line in totals.c; one of a stage is
 * found in the stage. The control thread's. */
#ifndef HS_SERVE_TOTALS_H
#define HS_SERVE_TOTALS_H

#include "base/counter.h"
#include "core/stats.h"

struct hs_engine_stats;
struct hs_host;

extern const struct hs_counter_table hs_worker_counters, hs_host_counters, hs_key_reader_counters;

enum { HS_TOTALS_MAX = 256 }; /* rows of all tables */

struct hs_totals {
	size_t count;
	const struct hs_counter_row *rows[HS_TOTALS_MAX];
	uint64_t values[HS_TOTALS_MAX];
	struct hs_command_totals {
		HS_COMMAND_COUNTERS(HS_COUNTER_NUMBER)
	} command[HS_CMD_IDS_ALL];
};

/* Since the start. `engine` is what the engine says now. */
void hs_totals_read(const struct hs_host *host, const struct hs_engine_stats *engine,
		    struct hs_totals *totals);
/* Takes off what had been counted then; zeroed: nothing. */
void hs_totals_subtract(struct hs_totals *totals, const struct hs_totals *baseline);

#endif
