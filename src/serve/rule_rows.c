#include "serve/rule_rows.h"

#include "base/escape.h"
#include "http/metrics.h"

#include <math.h>

#define INT(field_name)                                                                            \
	static struct hs_field_value get_##field_name(const void *row)                             \
	{                                                                                          \
		const struct hs_rule_row *rule = row;                                              \
                                                                                                   \
		return (struct hs_field_value){.integer = (int64_t)rule->field_name};              \
	}
#define REAL(field_name)                                                                           \
	static struct hs_field_value get_##field_name(const void *row)                             \
	{                                                                                          \
		const struct hs_rule_row *rule = row;                                              \
                                                                                                   \
		return (struct hs_field_value){.real = rule->field_name};                          \
	}

INT(hits)
INT(misses)
INT(fills)
INT(refreshes)
INT(left)
INT(raced)
INT(stale_served)
INT(replica_reads)
INT(ended_written)
INT(ended_told)
INT(ended_lost)
INT(ended_aged)
INT(avoided)
REAL(age_p50_us)
REAL(age_p99_us)
INT(age_max_us)
INT(would_hit)
INT(would_miss)

#define COUNTER(name, help)                                                                        \
	{                                                                                          \
#name, HS_FIELD_INT, help, get_##name, #name "_total", "counter", NULL, 0, NULL    \
	}
#define SECONDS(name, kind, metric, help)                                                          \
	{                                                                                          \
#name, kind, help, get_##name, metric, "gauge", NULL, 1e-6, NULL                   \
	}

static const struct hs_field fields[] = {
	COUNTER(hits, "Reads answered with what is kept"),
	COUNTER(misses, "Reads that waited for the engine because nothing good was kept"),
	COUNTER(fills, "Reads of the engine, to keep the reply"),
	COUNTER(refreshes, "Of the fills, those that nobody waited for"),
	COUNTER(left, "Values that a SET left behind"),
	COUNTER(raced, "Fills thrown away because the key was written meanwhile"),
	COUNTER(stale_served, "Hits on what was older than stale (swr, stale-if-error)"),
	COUNTER(replica_reads,
		"Reads of replicas, of what is too large to be kept (replica-reads)"),
	COUNTER(ended_written, "Kept replies found over: written through this server"),
	COUNTER(ended_told, "Kept replies found over: the engine's server said that they changed"),
	COUNTER(ended_lost,
		"Kept replies found over: the connection that would have said so was lost"),
	COUNTER(ended_aged, "Kept replies found over: too old"),
	COUNTER(avoided, "Reads that the engine did not have to answer"),
	SECONDS(age_p50_us, HS_FIELD_REAL, "age_p50_seconds",
		"How old half of the hits may have been at most, since the start"),
	SECONDS(age_p99_us, HS_FIELD_REAL, "age_p99_seconds",
		"How old 99 % of the hits may have been at most, since the start"),
	SECONDS(age_max_us, HS_FIELD_INT, "age_max_seconds",
		"How old the oldest hit may have been, since the start"),
	COUNTER(would_hit, "While observing: reads that would have been hits"),
	COUNTER(would_miss, "While observing: reads that would have been misses"),
};

const struct hs_fields *hs_rule_fields(void)
{
	static const struct hs_fields all = {fields, sizeof fields / sizeof *fields};

	return &all;
}

static void add(uint64_t *sum, const struct hs_counter *counter)
{
	*sum += hs_counter_get(counter);
}

void hs_rule_row(const struct hs_host *host, uint32_t number, struct hs_rule_row *row)
{
	double ages[HS_LADDER_STEPS] = {0};
	uint64_t asked, read;

	*row = (struct hs_rule_row){0};
	for (uint32_t i = 0; i < host->workers_count; i++) {
		const struct hs_core_rule_stats *stats =
			hs_core_rule_stats(host->workers[i].core, number);
		uint64_t age_max_us = hs_counter_get(&stats->age_max_us);

		add(&row->hits, &stats->hits);
		add(&row->misses, &stats->misses);
		add(&row->fills, &stats->fetches);
		add(&row->refreshes, &stats->refreshes);
		add(&row->left, &stats->left);
		add(&row->raced, &stats->raced);
		add(&row->stale_served, &stats->stale);
		add(&row->replica_reads, &stats->replica_reads);
		add(&row->ended_written, &stats->ended_written);
		add(&row->ended_told, &stats->ended_told);
		add(&row->ended_lost, &stats->ended_lost);
		add(&row->ended_aged, &stats->ended_aged);
		add(&row->would_hit, &stats->would_hit);
		add(&row->would_miss, &stats->would_miss);
		for (size_t j = 0; j < HS_LADDER_STEPS; j++)
			ages[j] += (double)hs_counter_get(&stats->age[j]);
		row->age_max_us = age_max_us > row->age_max_us ? age_max_us : row->age_max_us;
	}
	asked = row->hits + row->misses;
	read = row->fills + row->replica_reads;
	row->avoided = asked > read ? asked - read : 0;
	/* The ladder's steps are wide: nothing was older than the oldest. */
	row->age_p50_us = fmin(hs_ladder_at(ages, 0.5), (double)row->age_max_us);
	row->age_p99_us = fmin(hs_ladder_at(ages, 0.99), (double)row->age_max_us);
}

/* In a line of INFO: what splits it into fields must not be in it. */
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

	hs_buf_printf(text, "mitigate:%s\r\n",
		      host->options->mitigate == HS_MITIGATE_ON	       ? "on"
		      : host->options->mitigate == HS_MITIGATE_OBSERVE ? "observe"
								       : "off");

	for (size_t i = 0; i < hs_rules_count(rules); i++) {
		const struct hs_rule *rule = hs_rules_at(rules, i);
		struct hs_rule_row row;

		if (rule->contract != HS_CONTRACT_CACHE)
			continue;
		hs_rule_row(host, rule->number, &row);
		hs_buf_printf(text, "rule%zu:glob=", i);
		write_glob(rule->glob, text);
		for (size_t j = 0; j < hs_rule_fields()->count; j++)
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
	for (size_t j = 0; j < hs_rule_fields()->count; j++) {
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
