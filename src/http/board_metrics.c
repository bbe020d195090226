#include "http/board_metrics.h"

#include "base/escape.h"
#include "base/mem.h"

/* Addresses are labels of a separate info metric, not of every sample: a partition keeps its series when its address
 * changes (failover). */
static void write_addresses(struct hs_metrics *metrics, const struct hs_board_partition *rows,
			    uint16_t count)
{
	hs_metrics_family(metrics, "partition_", "info", "gauge",
			  "Always 1; the labels have the partition's address");
	for (uint16_t id = 0; id < count; id++) {
		struct hs_metrics_label labels[] = {
			{"partition", hs_bytes_of(rows[id].id)},
			{"address", hs_bytes_of(rows[id].facts.address)},
		};

		hs_metrics_value(metrics, (struct hs_metrics_labels){labels, 2}, 1);
	}
}

void hs_metrics_partitions(struct hs_metrics *metrics, struct hs_board *board)
{
	const struct hs_fields *fields = &hs_board_partition_fields;
	uint16_t count = hs_board_partitions_count(board);
	struct hs_board_partition *rows = hs_mem_alloc(((size_t)count + 1) * sizeof *rows);

	hs_board_partitions(board, HS_HEAT_LONG, rows);
	write_addresses(metrics, rows, count);
	for (size_t i = 0; i < fields->count; i++) {
		const struct hs_field *field = &fields->fields[i];

		if (!field->metric)
			continue;
		hs_metrics_family(metrics, "partition_", field->metric, field->metric_type,
				  field->metric_help ? field->metric_help : field->help);
		for (uint16_t id = 0; id < count; id++) {
			struct hs_metrics_label label = {"partition", hs_bytes_of(rows[id].id)};

			hs_metrics_value(metrics, (struct hs_metrics_labels){&label, 1},
					 hs_field_metric(field, &rows[id]));
		}
	}
	hs_metrics_family(
		metrics, "partition_", "request_duration_seconds", "histogram",
		"Duration of requests, including a write's commit; reads of one pipeline share "
		"their time evenly");
	for (uint16_t id = 0; id < count; id++) {
		struct hs_metrics_label label = {"partition", hs_bytes_of(rows[id].id)};

		hs_metrics_histogram(metrics, (struct hs_metrics_labels){&label, 1},
				     rows[id].counted.histogram,
				     (double)rows[id].counted.time_ns * 1e-9);
	}
	hs_mem_free(&rows);
}

static const struct hs_field *field_named(const struct hs_fields *fields, const char *name)
{
	for (size_t i = 0; i < fields->count; i++) {
		if (strcmp(fields->fields[i].name, name) == 0)
			return &fields->fields[i];
	}
	return NULL;
}

void hs_metrics_keys(struct hs_metrics *metrics, struct hs_board *board, size_t count, bool names)
{
	static const struct {
		const char *field, *help;
	} shown[] = {
		{"ops", "Requests per second of a hot key: upper bound"},
		{"ops_low", "Requests per second of a hot key: lower bound"},
		{"reads", "Reads within ops_low of a hot key, per second"},
		{"writes", "Writes within ops_low of a hot key, per second"},
	};
	struct hs_heat_query query = {
		.what = HS_HEAT_KEYS,
		.by = HS_HEAT_BY_OPS,
		.window = HS_HEAT_LONG,
	};
	struct hs_board_row *rows;
	struct hs_buf name = {0};

	hs_check(count <= HS_METRICS_KEYS_MAX);
	rows = hs_mem_alloc((count + 1) * sizeof *rows);
	count = hs_board_top(board, &query, rows, count);
	for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) {
		const struct hs_field *field =
			field_named(hs_board_fields(HS_HEAT_KEYS), shown[i].field);

		hs_check(field != NULL);
		hs_metrics_family(metrics, "key_", field->name, "gauge", shown[i].help);
		for (size_t j = 0; j < count; j++) {
			struct hs_metrics_label label = {"key", hs_bytes_of(rows[j].hash)};

			if (names) {
				name.len = 0;
				hs_escape(hs_board_name(&rows[j]), &name);
				label.value = hs_buf_bytes(&name);
			}
			hs_metrics_value(metrics, (struct hs_metrics_labels){&label, 1},
					 hs_field_number(field, &rows[j]));
		}
	}
	hs_buf_deinit(&name);
	hs_mem_free(&rows);
}
