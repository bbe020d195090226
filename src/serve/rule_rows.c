#include "serve/rule_rows.h"

#include "base/escape.h"
#include "http/metrics.h"

#include <math.h>

#define MEMBER(kind, path) HS_MEMBER(struct hs_rule_row, kind, path)
#define FIELD(field, kind_, section, name_, metric_, help_, ...)                                   \
	{.name = (name_),                                                                          \
	 .kind = HS_FIELD_INT,                                                                     \
	 .help = (help_),                                                                          \
	 MEMBER(WHOLE, field),                                                                     \
	 .metric = (metric_),                                                                      \
	 .metric_type = HS_COUNTER_TYPE(kind_),                                                    \
	 __VA_ARGS__},
#define AGE(field, metric_, help_)                                                                 \
	{                                                                                          \
		.name = #field, .kind = HS_FIELD_REAL, .help = (help_), MEMBER(REAL, field),       \
		.metric = (metric_), .metric_type = "gauge", .factor = 1e-6                        \
	}

#define STAYS(field, kind, ...)                                                                    \
	_Static_assert((kind) != HS_COUNTER, #field ": CONFIG RESETSTAT does not reach rules");
HS_CACHE_RULE_COUNTERS(STAYS)

/* The counters of a rule, and values computed from them. */
static const struct hs_field fields[] = {
	HS_CACHE_RULE_COUNTERS(FIELD) /* ends with a comma */
	FIELD(avoided, HS_TOTAL, NULL, "avoided", "avoided_total",
	      "Reads answered without a command to the engine")
		AGE(age_p50_us, "age_p50_seconds",
		    "Median of the highest possible age of a cache hit, since the start"),
	AGE(age_p99_us, "age_p99_seconds",
	    "99th percentile of the highest possible age of a cache hit, since the start"),
};

const struct hs_fields hs_rule_fields = HS_FIELDS(fields);

void hs_rule_row(const struct hs_host *host, uint32_t number, struct hs_rule_row *row)
{
	double ages[HS_COARSE_HISTOGRAM_BUCKETS] = {0};
	uint64_t asked, read;

	*row = (struct hs_rule_row){0};
	for (uint32_t i = 0; i < host->workers_count; i++) {
		const struct hs_cache_rule_stats *stats =
			hs_cache_rule_stats(host->workers[i].core, number);

		hs_counters_sum(&hs_cache_rule_counters, stats, row);
		for (size_t j = 0; j < HS_COARSE_HISTOGRAM_BUCKETS; j++)
			ages[j] += (double)hs_counter_get(&stats->age[j]);
	}
	asked = row->hits + row->misses;
	read = row->fetches + row->replica_reads;
	row->avoided = asked > read ? asked - read : 0;
	/* The histogram's buckets are wide: no hit was older than age_max_us. */
	row->age_p50_us = fmin(hs_coarse_histogram_quantile(ages, 0.5), (double)row->age_max_us);
	row->age_p99_us = fmin(hs_coarse_histogram_quantile(ages, 0.99), (double)row->age_max_us);
}

/* The glob in a line of INFO, where ',' and '=' separate fields. */
static void write_glob(struct hs_bytes glob, struct hs_buf *text)
{
	for (size_t i = 0; i < glob.len; i++) {
		if (glob.data[i] == ',' || glob.data[i] == '=')
			hs_buf_printf(text, "\\x%02x", (unsigned char)glob.data[i]);
		else
			hs_escape((struct hs_bytes){glob.data + i, 1}, text);
	}
}

void hs_rule_rows_info(const struct hs_host *host, struct hs_buf *text)
{
	const struct hs_rules *rules = host->options->rules;

	hs_buf_printf(text, "mitigate:");
	hs_option_format(host->options, hs_option_find(HS_LIT("mitigate")), text);
	hs_buf_append(text, "\r\n", 2);
	for (size_t i = 0; i < hs_rules_count(rules); i++) {
		const struct hs_rule *rule = hs_rules_at(rules, i);
		struct hs_rule_row row;

		if (rule->contract != HS_CONTRACT_CACHE)
			continue;
		hs_rule_row(host, rule->number, &row);
		hs_buf_printf(text, "rule%zu:glob=", i);
		write_glob(rule->glob, text);
		for (size_t j = 0; j < hs_rule_fields.count; j++)
			hs_buf_printf(text, ",%s=%.0f", fields[j].name,
				      hs_field_number(&fields[j], &row));
		hs_buf_append(text, "\r\n", 2);
	}
}

void hs_rule_rows_metrics(const struct hs_host *host, struct hs_metrics *metrics)
{
	const struct hs_rules *rules = host->options->rules;
	struct hs_buf glob = {0};

	if (!hs_rules_any(rules, HS_CONTRACT_CACHE))
		return;
	for (size_t j = 0; j < hs_rule_fields.count; j++) {
		hs_metrics_family(metrics, "rule_", fields[j].metric, fields[j].metric_type,
				  fields[j].help);
		for (size_t i = 0; i < hs_rules_count(rules); i++) {
			const struct hs_rule *rule = hs_rules_at(rules, i);
			struct hs_metrics_label label = {"rule", {NULL, 0}};
			struct hs_rule_row row;

			if (rule->contract != HS_CONTRACT_CACHE)
				continue;
			hs_rule_row(host, rule->number, &row);
			glob.len = 0;
			hs_escape(rule->glob, &glob);
			label.value = hs_buf_bytes(&glob);
			hs_metrics_value(metrics, (struct hs_metrics_labels){&label, 1},
					 hs_field_metric(&fields[j], &row));
		}
	}
	hs_buf_deinit(&glob);
}
