/* What the keys of a rule got out of being kept, over all workers: one row per rule, one table of fields
 * for HEAT RULE LIST, INFO and metrics. The control thread's. */
#ifndef HS_SERVE_RULE_ROWS_H
#define HS_SERVE_RULE_ROWS_H

#include "absorb/cache/stats.h"
#include "serve/host.h"
#include "telemetry/field.h"

struct hs_rule_row {
	/* First: the sums over the workers. */
	HS_CACHE_RULE_COUNTERS(HS_COUNTER_NUMBER)
	uint64_t avoided; /* reads that the engine did not have to answer */
	double age_p50_us, age_p99_us;
};

extern const struct hs_fields hs_rule_fields;

/* The row of a rule, by its number. */
void hs_rule_row(const struct hs_host *host, uint32_t number, struct hs_rule_row *row);

/* INFO's section: a line for each rule. */
void hs_rule_rows_info(const struct hs_host *host, struct hs_buf *text);

/* A metric for each field, a sample for each rule. */
struct hs_metrics;
void hs_rule_rows_metrics(const struct hs_host *host, struct hs_metrics *metrics);

#endif
