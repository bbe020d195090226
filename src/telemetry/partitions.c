/* Rows of partitions: rates in a window, the load relative to the mean, each partition's hottest key, and the
 * median row. */
#include "telemetry/internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static void fill(const struct hs_board *board, uint16_t id, enum hs_heat_window window,
		 struct hs_board_partition *row)
{
	const struct hs_board_partition_state *part = &board->parts[id];
	const struct hs_board_flow *flow = &part->flow[window];

	*row = (struct hs_board_partition){
		.ops = hs_board_partition_ops(board, id, window),
		.reads = hs_board_rate(board, window, flow->reads),
		.writes = hs_board_rate(board, window, flow->writes),
		.bytes = hs_board_rate(board, window, flow->bytes),
		.errors = hs_board_rate(board, window, flow->errors),
		/* The worker counts while this thread reads, so an answer may be seen before its request: clamp
		 * to 0. */
		.inflight = part->counted.inflight > 0 ? part->counted.inflight : 0,
		.p50_us = hs_board_histogram_quantile(flow->times, 0.5),
		.p99_us = hs_board_histogram_quantile(flow->times, 0.99),
		.commit_p99_us = hs_board_histogram_quantile(flow->commits, 0.99),
		.state = hs_partition_state_name(part->facts.state),
		.up = hs_partition_is_up(part->facts.state),
		.facts = part->facts,
		.counted = part->counted,
	};
	snprintf(row->id, sizeof row->id, "%u", id);
}

/* Walks the hottest keys, hottest first: the first key on a partition is that partition's hottest. A partition
 * without one of them has no key worth naming. `row_of`: each partition's row; NULL if it has none, or already
 * has its key. */
static void fill_top_keys(struct hs_board *board, enum hs_heat_window window,
			  struct hs_board_partition **row_of)
{
	struct hs_heat_query query = {.what = HS_HEAT_KEYS, .by = HS_HEAT_BY_OPS, .window = window};
	size_t count = hs_heat_top(board->heats, board->heats_count, &query, board->now.mono_us,
				   board->scratch, HS_BOARD_SCRATCH);

	for (size_t i = 0; i < count; i++) {
		uint16_t id = board->scratch[i].partition;
		struct hs_board_partition *row;
		struct hs_board_row top;

		if (id >= board->partitions || !row_of[id])
			continue;
		row = row_of[id];
		row_of[id] = NULL;
		top.heat = board->scratch[i];
		hs_board_fill(board, HS_HEAT_KEYS, window, &top);
		memcpy(row->top_key, top.name, top.name_len);
		row->top_key_len = top.name_len;
		row->top_key_share = top.share;
	}
}

static void fill_loads(struct hs_board_partition *rows, uint16_t count)
{
	double all = 0;

	for (uint16_t i = 0; i < count; i++)
		all += rows[i].ops;
	for (uint16_t i = 0; i < count && all > 0; i++)
		rows[i].load = rows[i].ops * count / all;
}

/* ---- fields ---- */

#define ROW(data) ((const struct hs_board_partition *)(data))
#define GET(function, expression)                                                                  \
	static struct hs_field_value function(const void *data)                                    \
	{                                                                                          \
		return expression;                                                                 \
	}
#define GET_TOTAL(function, expression)                                                            \
	static double function(const void *data)                                                   \
	{                                                                                          \
		return (double)(expression);                                                       \
	}

GET(get_state, ((struct hs_field_value){.bytes = hs_bytes_of(ROW(data)->state)}))
GET(get_top_key, ((struct hs_field_value){.bytes = {ROW(data)->top_key, ROW(data)->top_key_len}}))

GET_TOTAL(is_up, ROW(data)->up)
GET_TOTAL(total_ops, ROW(data)->counted.reads + ROW(data)->counted.writes)
GET_TOTAL(total_reads, ROW(data)->counted.reads)
GET_TOTAL(total_writes, ROW(data)->counted.writes)
GET_TOTAL(total_bytes, ROW(data)->counted.bytes)
GET_TOTAL(total_errors, ROW(data)->counted.errors)

#define MEMBER(kind, path) HS_MEMBER(struct hs_board_partition, kind, path)

/* clang-format off */
static const struct hs_field partition_fields[] = {
	{.name = "id", .kind = HS_FIELD_TEXT, MEMBER(WORDS, id),
	 .help = "The partition's number; \"median\" in the last row, which has the median of each number"},
	{.name = "address", .kind = HS_FIELD_TEXT, MEMBER(WORDS, facts.address),
	 .help = "Address of its server; name of its file with the embedded engine"},
	{.name = "state", .kind = HS_FIELD_TEXT, .get = get_state,
	 .metric = "up", .metric_type = "gauge", .metric_get = is_up,
	 .metric_help = "1 while the partition serves at least reads; 0 while it is down, loading its "
		 "data or unknown",
	 .help = "`ok`; `full`: refuses writes that need memory or disk space; `readonly`: refuses "
		 "writes; `unknown`: its server has not answered yet; `loading`: its server is loading "
		 "its data; `down`: serves nothing"},
	{.name = "ops", .kind = HS_FIELD_INT, MEMBER(REAL, ops),
	 .metric = "ops_total", .metric_type = "counter", .metric_get = total_ops,
	 .metric_help = "Requests for the partition",
	 .help = "Requests per second"},
	{.name = "reads", .kind = HS_FIELD_INT, MEMBER(FLOOR, reads),
	 .metric = "reads_total", .metric_type = "counter", .metric_get = total_reads,
	 .metric_help = "Requests for the partition that only read",
	 .help = "Requests per second that only read"},
	{.name = "writes", .kind = HS_FIELD_INT, MEMBER(FLOOR, writes),
	 .metric = "writes_total", .metric_type = "counter", .metric_get = total_writes,
	 .metric_help = "Requests for the partition that write",
	 .help = "Requests per second that write"},
	{.name = "bytes", .kind = HS_FIELD_INT, MEMBER(REAL, bytes),
	 .metric = "bytes_total", .metric_type = "counter", .metric_get = total_bytes,
	 .metric_help = "Bytes of the partition's requests and replies",
	 .help = "Bytes per second of requests and replies"},
	{.name = "load", .kind = HS_FIELD_REAL, MEMBER(REAL, load),
	 .metric = "load_ratio", .metric_type = "gauge",
	 .help = "Requests relative to the mean of all partitions: 1 is the mean, 0 is none"},
	{.name = "inflight", .kind = HS_FIELD_INT, MEMBER(WHOLE, inflight),
	 .metric = "inflight", .metric_type = "gauge",
	 .metric_help = "Requests sent to the partition and not answered yet",
	 .help = "Requests sent to it and not answered yet"},
	{.name = "queued", .kind = HS_FIELD_INT, MEMBER(WHOLE, facts.queued),
	 .metric = "queued", .metric_type = "gauge",
	 .metric_help = "Writes queued inside the partition",
	 .help = "Writes queued inside it"},
	{.name = "p50_us", .kind = HS_FIELD_INT, MEMBER(REAL, p50_us),
	 .metric = "p50_seconds", .metric_type = "gauge", .factor = 1e-6,
	 .metric_help = "Median time of the partition's requests, over the long window",
	 .help = "Median time of its requests, in microseconds"},
	{.name = "p99_us", .kind = HS_FIELD_INT, MEMBER(REAL, p99_us),
	 .metric = "p99_seconds", .metric_type = "gauge", .factor = 1e-6,
	 .metric_help = "99th percentile of the time of the partition's requests, over the long window",
	 .help = "99th percentile of the time of its requests, in microseconds"},
	{.name = "errors", .kind = HS_FIELD_REAL, MEMBER(REAL, errors),
	 .metric = "errors_total", .metric_type = "counter", .metric_get = total_errors,
	 .metric_help = "Requests for the partition that were answered with an error",
	 .help = "Requests per second that were answered with an error"},
	{.name = "commit_p99_us", .kind = HS_FIELD_INT, MEMBER(REAL, commit_p99_us),
	 .metric = "commit_p99_seconds", .metric_type = "gauge", .factor = 1e-6,
	 .metric_help = "99th percentile of the time of the partition's commits, over the long window",
	 .help = "99th percentile of the time of its commits, in microseconds"},
	{.name = "memory", .kind = HS_FIELD_INT, MEMBER(WHOLE, facts.bytes_used),
	 .metric = "memory_bytes", .metric_type = "gauge",
	 .metric_help = "Size of the partition's data in bytes",
	 .help = "Size of its data in bytes"},
	{.name = "slots", .kind = HS_FIELD_TEXT, MEMBER(WORDS, facts.slots),
	 .help = "The slots that it owns"},
	{.name = "top_key", .kind = HS_FIELD_BYTES, .get = get_top_key,
	 .help = "Its hottest key; empty if none stands out"},
	{.name = "top_key_share", .kind = HS_FIELD_REAL, MEMBER(REAL, top_key_share),
	 .metric = "top_key_share_ratio", .metric_type = "gauge",
	 .metric_help = "Share of the partition's requests that are for its hottest key: at least this, 0 "
		 "to 1",
	 .help = "Share of its requests that are for top_key: at least this, 0 to 1"},
	{.name = "cpu", .kind = HS_FIELD_REAL, MEMBER(REAL, facts.cpu),
	 .metric = "cpu_ratio", .metric_type = "gauge",
	 .metric_help = "CPU time of the partition's server, in cores; 0 if it has no server of its own",
	 .help = "CPU time of its server, in cores: 1 is one core fully used; 0 if it has no server of "
		 "its own"},
	{.name = "clients", .kind = HS_FIELD_INT, MEMBER(WHOLE, facts.clients),
	 .metric = "clients", .metric_type = "gauge",
	 .metric_help = "Connections to the partition's server, heatsink's included",
	 .help = "Connections to its server, heatsink's included"},
	{.name = "replicas", .kind = HS_FIELD_INT, MEMBER(WHOLE, facts.replicas),
	 .metric = "replicas", .metric_type = "gauge",
	 .metric_help = "Replicas connected to the partition's server",
	 .help = "Replicas connected to its server"},
	{.name = "replica_lag", .kind = HS_FIELD_INT, MEMBER(WHOLE, facts.replica_lag_s),
	 .metric = "replica_lag_seconds", .metric_type = "gauge",
	 .metric_help = "Seconds since the partition's most delayed replica last reported to its master; "
		 "0 and 1 mean no lag",
	 .help = "Seconds since its most delayed replica last reported to its master; 0 and 1 mean no lag"},
	{.name = "replica_lag_bytes", .kind = HS_FIELD_INT, MEMBER(WHOLE, facts.replica_lag_bytes),
	 .metric = "replica_lag_bytes", .metric_type = "gauge",
	 .metric_help = "Bytes of writes that the partition's most delayed replica has not received yet",
	 .help = "Bytes of writes that its most delayed replica has not received yet"},
	{.name = "slots_cpu", .kind = HS_FIELD_REAL, MEMBER(REAL, facts.slots_cpu),
	 .metric = "slots_cpu_ratio", .metric_type = "gauge",
	 .metric_help = "CPU time of commands on the partition's slots, as its server counts it, in "
		 "cores; 0 if it does not report it",
	 .help = "CPU time of commands on its slots, in cores, as its server counts it (CLUSTER "
		 "SLOT-STATS); 0 if it does not report it"},
	{.name = "net_in", .kind = HS_FIELD_INT, MEMBER(REAL, facts.net_in),
	 .metric = "net_in_bytes_per_second", .metric_type = "gauge",
	 .metric_help = "Bytes per second that the partition's server received for its slots, from all "
		 "clients; 0 if it does not report it",
	 .help = "Bytes per second that its server received for its slots, from all clients; 0 if it does "
		 "not report it"},
	{.name = "net_out", .kind = HS_FIELD_INT, MEMBER(REAL, facts.net_out),
	 .metric = "net_out_bytes_per_second", .metric_type = "gauge",
	 .metric_help = "Bytes per second that the partition's server sent for its slots, to all clients; "
		 "0 if it does not report it",
	 .help = "Bytes per second that its server sent for its slots, to all clients; 0 if it does not "
		 "report it"},
	{.name = "reason", .kind = HS_FIELD_TEXT, MEMBER(WORDS, facts.unavailable_reason),
	 .help = "Why its state is not `ok`; empty if it is"},
};
/* clang-format on */

const struct hs_fields hs_board_partition_fields = HS_FIELDS(partition_fields);

/* ---- the median ---- */

/* Whether the field is a number that the median row shows. */
static bool is_number(const struct hs_field *field)
{
	return field->member == HS_MEMBER_WHOLE || field->member == HS_MEMBER_REAL ||
	       field->member == HS_MEMBER_FLOOR;
}

/* All whole numbers of a row have 64 bits. */
static void set(struct hs_board_partition *row, const struct hs_field *field, double value)
{
	char *at = (char *)row + field->at;
	int64_t whole = (int64_t)round(value);

	if (field->member == HS_MEMBER_WHOLE)
		memcpy(at, &whole, sizeof whole);
	else
		memcpy(at, &value, sizeof value);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void fill_median(const struct hs_board_partition *rows, uint16_t count,
			struct hs_board_partition *median)
{
	double values[HS_PARTITIONS_MAX] = {0};

	*median = (struct hs_board_partition){.id = "median", .state = ""};
	if (count == 0)
		return;
	for (size_t i = 0; i < sizeof partition_fields / sizeof *partition_fields; i++) {
		const struct hs_field *field = &partition_fields[i];

		if (!is_number(field))
			continue;
		for (uint16_t j = 0; j < count; j++)
			values[j] = hs_field_member(field, &rows[j]);
		qsort(values, count, sizeof *values, compare);
		set(median, field, (values[(count - 1) / 2] + values[count / 2]) / 2);
	}
}

void hs_board_partitions(struct hs_board *board, enum hs_heat_window window,
			 struct hs_board_partition *rows)
{
	struct hs_board_partition *row_of[HS_PARTITIONS_MAX] = {NULL};
	uint16_t count = 0;

	for (uint16_t id = 0; id < board->partitions; id++) {
		if (board->parts[id].facts.absent)
			continue;
		row_of[id] = &rows[count++];
		fill(board, id, window, row_of[id]);
	}
	fill_loads(rows, count);
	fill_top_keys(board, window, row_of);
	fill_median(rows, count, &rows[count]);
}
