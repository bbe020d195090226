/* /metrics: the rows of INFO that are metrics, the commands, the partitions, and the hottest keys
 * when asked for. */
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
			  "Always 1; its labels say what is running");
	hs_metrics_value(metrics, (struct hs_metrics_labels){labels, 3}, 1);
}

static void write_row(struct hs_metrics *metrics, const struct hs_info_facts *facts,
		      const struct hs_info_row *row)
{
	struct hs_metrics_label mode = {"mode", hs_bytes_of(row->mode ? row->mode : "")};
	struct hs_metrics_labels labels = {&mode, row->mode ? 1 : 0};
	struct hs_buf value = {0};

	row->write(facts, &value);
	if (row->factor == 0) {
		hs_metrics_text(metrics, labels, hs_buf_bytes(&value));
	} else {
		hs_buf_append(&value, "", 1);
		hs_metrics_value(metrics, labels, strtod(value.data, NULL) * row->factor);
	}
	hs_buf_deinit(&value);
}

static void write_rows(struct hs_metrics *metrics, const struct hs_info_facts *facts)
{
	const char *family = "";

	for (size_t i = 0; i < hs_info_rows_count; i++) {
		const struct hs_info_row *row = &hs_info_rows[i];

		if (!row->metric)
			continue;
		if (strcmp(row->metric, family) != 0)
			hs_metrics_family(metrics, "", row->metric, row->type, row->help);
		family = row->metric;
		write_row(metrics, facts, row);
	}
}

static double calls(const struct hs_totals *totals, int id)
{
	return (double)totals->command[id].calls;
}

static double seconds(const struct hs_totals *totals, int id)
{
	return (double)totals->command[id].time_ns * 1e-9;
}

static double rejected(const struct hs_totals *totals, int id)
{
	return (double)totals->command[id].rejected;
}

static double failed(const struct hs_totals *totals, int id)
{
	return (double)totals->command[id].failed;
}

/* What INFO's commandstats has in one line is a family each. */
static void write_commands(struct hs_metrics *metrics, const struct hs_host *host,
			   const struct hs_totals *totals)
{
	static const struct {
		const char *name, *help;
		double (*get)(const struct hs_totals *totals, int id);
	} families[] = {
		{"commands_total", "Calls of the command", calls},
		{"command_seconds_total",
		 "Time spent on calls of the command, a write's commit included", seconds},
		{"command_rejected_total", "Calls of the command refused before it ran", rejected},
		{"command_failed_total", "Calls of the command answered with an error", failed},
	};

	for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
		hs_metrics_family(metrics, "", families[i].name, "counter", families[i].help);
		for (int id = HS_CMD_ID_NONE + 1; id < HS_CMD_IDS_ALL; id++) {
			struct hs_metrics_label label = {"command", {NULL, 0}};

			if (totals->command[id].calls == 0 && totals->command[id].rejected == 0)
				continue;
			label.value = hs_bytes_of(hs_info_command_name(host, id));
			hs_metrics_value(metrics, (struct hs_metrics_labels){&label, 1},
					 families[i].get(totals, id));
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
	write_commands(&metrics, host, &facts.since);
	hs_rule_rows_metrics(host, &metrics);
	hs_metrics_partitions(&metrics, host->board);
	if (host->options->metrics_keys > 0)
		hs_metrics_keys(&metrics, host->board, (size_t)host->options->metrics_keys,
				host->options->metrics_key_names == HS_KEY_NAMES_PLAIN);
}
