/* /metrics: the rows of INFO that are metrics, counters per command, rules, partitions, and with `metrics-keys` the
 * hottest keys. */
#include "serve/pages.h"

#include "base/version.h"
#include "http/board_metrics.h"
#include "http/metrics.h"
#include "serve/info.h"
#include "serve/rule_rows.h"

#include <stdlib.h>

static void write_build(struct hs_metrics *metrics, const struct hs_host *host)
{
	struct hs_metrics_label labels[] = {
		{"version", HS_LIT(HS_VERSION)},
		{"redis_version", HS_LIT(HS_REDIS_VERSION)},
		{"engine", hs_bytes_of(host->engine->calls->name)},
	};

	hs_metrics_family(metrics, "", "build_info", "gauge",
			  "Always 1; the labels have versions and engine");
	hs_metrics_value(metrics, (struct hs_metrics_labels){labels, 3}, 1);
}

static void begin_family(struct hs_metrics *metrics, const struct hs_counter_row *row)
{
	hs_metrics_family(metrics, "", row->metric, HS_COUNTER_TYPE(row->kind), row->help);
}

static void write_value(struct hs_metrics *metrics, struct hs_metrics_labels labels,
			const struct hs_counter_row *row, struct hs_buf *value)
{
	if (row->factor == 0) {
		hs_metrics_text(metrics, labels, hs_buf_bytes(value));
	} else {
		hs_buf_append(value, "", 1);
		hs_metrics_value(metrics, labels, strtod(value->data, NULL) * row->factor);
	}
	value->len = 0;
}

static void write_rows(struct hs_metrics *metrics, const struct hs_info_facts *facts)
{
	const struct hs_totals *totals = &facts->totals;
	const char *family = "";
	struct hs_buf value = {0};

	for (size_t i = 0; i < hs_info_rows_count; i++) {
		const struct hs_info_row *row = &hs_info_rows[i];
		struct hs_metrics_label mode = {"mode", hs_bytes_of(row->mode ? row->mode : "")};

		if (!row->row.metric)
			continue;
		if (strcmp(row->row.metric, family) != 0)
			begin_family(metrics, &row->row);
		family = row->row.metric;
		row->write(facts, &value);
		write_value(metrics, (struct hs_metrics_labels){&mode, row->mode ? 1 : 0},
			    &row->row, &value);
	}
	for (size_t i = 0; i < totals->count; i++) {
		if (!totals->rows[i]->metric)
			continue;
		begin_family(metrics, totals->rows[i]);
		hs_buf_printf(&value, "%llu", (unsigned long long)totals->values[i]);
		write_value(metrics, (struct hs_metrics_labels){0}, totals->rows[i], &value);
	}
	hs_buf_deinit(&value);
}

/* Each field of INFO commandstats is a metric family, labelled by command. */
static void write_commands(struct hs_metrics *metrics, const struct hs_host *host,
			   const struct hs_totals *totals)
{
	for (size_t i = 0; i < hs_command_counters.count; i++) {
		const struct hs_counter_row *row = &hs_command_counters.rows[i];

		begin_family(metrics, row);
		for (int id = HS_CMD_ID_NONE + 1; id < HS_CMD_IDS_ALL; id++) {
			const struct hs_command_totals *command = &totals->command[id];
			struct hs_metrics_label label = {"command", {NULL, 0}};
			double value = (double)((const uint64_t *)command)[i];

			if (command->calls == 0 && command->rejected == 0)
				continue;
			label.value = hs_bytes_of(hs_info_command_name(host, id));
			hs_metrics_value(metrics, (struct hs_metrics_labels){&label, 1},
					 row->factor == 0 ? value : value * row->factor);
		}
	}
}

void hs_metrics_page(struct hs_host *host, struct hs_buf *text)
{
	struct hs_metrics metrics = {.text = text};
	struct hs_info_facts facts;

	hs_info_gather(host, &facts);
	hs_host_sample_heat(host);
	write_build(&metrics, host);
	write_rows(&metrics, &facts);
	write_commands(&metrics, host, &facts.totals);
	hs_rule_rows_metrics(host, &metrics);
	hs_metrics_partitions(&metrics, host->board);
	if (host->options->metrics_keys > 0)
		hs_metrics_keys(&metrics, host->board, (size_t)host->options->metrics_keys,
				host->options->metrics_key_names == HS_KEY_NAMES_PLAIN);
}
