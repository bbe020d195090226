/* Cache statistics per rule, summed over all workers: one row per `cache` rule, one table of fields for HEAT RULE
 * LIST, INFO and /metrics. The control thread; workers go on counting meanwhile. */
#ifndef HS_SERVE_RULE_ROWS_H
#define HS_SERVE_RULE_ROWS_H

#include "absorb/cache/stats.h"
#include "serve/host.h"
#include "telemetry/field.h"

struct hs_rule_row {
	/* Must be first: the sums over the workers. */
	HS_CACHE_RULE_COUNTERS(HS_COUNTER_NUMBER)
	uint64_t avoided; /* reads that needed no command to the engine */
	double age_p50_us, age_p99_us;
};

extern const struct hs_fields hs_rule_fields;

/* The row of a rule, by hs_rule.number. */
void hs_rule_row(const struct hs_host *host, uint32_t number, struct hs_rule_row *row);

/* The section Rules of INFO: one line per rule. */
void hs_rule_rows_info(const struct hs_host *host, struct hs_buf *text);

/* One metric family per field, one sample per rule. */
struct hs_metrics;
void hs_rule_rows_metrics(const struct hs_host *host, struct hs_metrics *metrics);

#endif
