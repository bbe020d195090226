/* Rows of partitions: rates in a window, the load against the mean, the hottest key of each, and
 * the fleet's median behind them. */
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
		/* A worker is read while it goes on: one of two that belong together may be seen
		 * first. */
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

/* The hottest keys of all, hottest first: the first one on a partition is its hottest. A partition
 * that none of them is on has none worth naming. `row_of` has each partition's row, NULL for one that
 * has none, or has its key. */
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
	 .help = "The partition's number; \"median\" in the last row, whose numbers are the median "
		 "of all"},
	{.name = "address", .kind = HS_FIELD_TEXT, MEMBER(WORDS, facts.address),
	 .help = "Where it is"},
	{.name = "state", .kind = HS_FIELD_TEXT, .get = get_state,
	 .metric = "up", .metric_type = "gauge", .metric_get = is_up,
	 .metric_help = "1 while the partition is served, reads at least; 0 while it is down, loads its "
		 "data, or has not been heard of",
	 .help = "`ok`; `full`: what needs room is refused; `readonly`: writes are; `unknown`: its server "
		 "has not told yet; `loading`: its server loads its data; `down`: nothing is served there"},
	{.name = "ops", .kind = HS_FIELD_INT, MEMBER(REAL, ops),
	 .metric = "ops_total", .metric_type = "counter", .metric_get = total_ops,
	 .metric_help = "Requests that came to the partition",
	 .help = "Requests per second"},
	{.name = "reads", .kind = HS_FIELD_INT, MEMBER(FLOOR, reads),
	 .metric = "reads_total", .metric_type = "counter", .metric_get = total_reads,
	 .metric_help = "Of the partition's requests, those that only read",
	 .help = "Of them, those that only read"},
	{.name = "writes", .kind = HS_FIELD_INT, MEMBER(FLOOR, writes),
	 .metric = "writes_total", .metric_type = "counter", .metric_get = total_writes,
	 .metric_help = "Of the partition's requests, those that write",
	 .help = "Of them, those that write"},
	{.name = "bytes", .kind = HS_FIELD_INT, MEMBER(REAL, bytes),
	 .metric = "bytes_total", .metric_type = "counter", .metric_get = total_bytes,
	 .metric_help = "Bytes of the partition's requests and replies",
	 .help = "Bytes per second of requests and replies"},
	{.name = "load", .kind = HS_FIELD_REAL, MEMBER(REAL, load),
	 .metric = "load_ratio", .metric_type = "gauge",
	 .help = "Requests against the mean of all partitions: 1 is the mean, 0 nothing"},
	{.name = "inflight", .kind = HS_FIELD_INT, MEMBER(WHOLE, inflight),
	 .metric = "inflight", .metric_type = "gauge",
	 .metric_help = "Requests sent to the partition and not answered yet",
	 .help = "Requests sent to it and not answered yet"},
	{.name = "queued", .kind = HS_FIELD_INT, MEMBER(WHOLE, facts.queued),
	 .metric = "queued", .metric_type = "gauge",
	 .metric_help = "Writes that wait inside the partition",
	 .help = "Writes that wait inside it"},
	{.name = "p50_us", .kind = HS_FIELD_INT, MEMBER(REAL, p50_us),
	 .metric = "p50_seconds", .metric_type = "gauge", .factor = 1e-6,
	 .metric_help = "Time that half of the partition's requests did not exceed, over the long window",
	 .help = "Microseconds that half of the requests did not exceed"},
	{.name = "p99_us", .kind = HS_FIELD_INT, MEMBER(REAL, p99_us),
	 .metric = "p99_seconds", .metric_type = "gauge", .factor = 1e-6,
	 .metric_help = "Time that 99 of 100 of the partition's requests did not exceed, over the long "
		 "window",
	 .help = "Microseconds that 99 of 100 requests did not exceed"},
	{.name = "errors", .kind = HS_FIELD_REAL, MEMBER(REAL, errors),
	 .metric = "errors_total", .metric_type = "counter", .metric_get = total_errors,
	 .metric_help = "Requests of the partition that were answered with an error",
	 .help = "Requests per second that were answered with an error"},
	{.name = "commit_p99_us", .kind = HS_FIELD_INT, MEMBER(REAL, commit_p99_us),
	 .metric = "commit_p99_seconds", .metric_type = "gauge", .factor = 1e-6,
	 .metric_help = "Time that 99 of 100 of the partition's commits did not exceed, over the long "
		 "window",
	 .help = "Microseconds that 99 of 100 commits did not exceed"},
	{.name = "memory", .kind = HS_FIELD_INT, MEMBER(WHOLE, facts.bytes_used),
	 .metric = "memory_bytes", .metric_type = "gauge",
	 .metric_help = "Bytes that the partition's data takes",
	 .help = "Bytes that its data takes"},
	{.name = "slots", .kind = HS_FIELD_TEXT, MEMBER(WORDS, facts.slots),
	 .help = "The slots it has"},
	{.name = "top_key", .kind = HS_FIELD_BYTES, .get = get_top_key,
	 .help = "Its hottest key; empty when none stands out"},
	{.name = "top_key_share", .kind = HS_FIELD_REAL, MEMBER(REAL, top_key_share),
	 .metric = "top_key_share_ratio", .metric_type = "gauge",
	 .metric_help = "Part of the partition's requests that its hottest key takes, at least, 0 to 1",
	 .help = "That key's requests, at least, as a part of all of the partition's, 0 to 1"},
	{.name = "cpu", .kind = HS_FIELD_REAL, MEMBER(REAL, facts.cpu),
	 .metric = "cpu_ratio", .metric_type = "gauge",
	 .metric_help = "Processor time that the partition's server takes, against one core; 0 where "
		 "it has none of its own",
	 .help = "Processor time that its server takes: 1 is a whole core; 0 where it has none of its "
		 "own"},
	{.name = "clients", .kind = HS_FIELD_INT, MEMBER(WHOLE, facts.clients),
	 .metric = "clients", .metric_type = "gauge",
	 .metric_help = "Connections to the partition's server, heatsink's own among them",
	 .help = "Connections to its server, heatsink's own among them"},
	{.name = "replicas", .kind = HS_FIELD_INT, MEMBER(WHOLE, facts.replicas),
	 .metric = "replicas", .metric_type = "gauge",
	 .metric_help = "Replicas that follow the partition's server",
	 .help = "Replicas that follow its server"},
	{.name = "replica_lag", .kind = HS_FIELD_INT, MEMBER(WHOLE, facts.replica_lag_s),
	 .metric = "replica_lag_seconds", .metric_type = "gauge",
	 .metric_help = "Seconds since the partition's replica that is furthest behind was last heard "
		 "of; up to 1 is none",
	 .help = "Seconds since the replica that is furthest behind was last heard of; up to 1 is "
		 "none"},
	{.name = "replica_lag_bytes", .kind = HS_FIELD_INT, MEMBER(WHOLE, facts.replica_lag_bytes),
	 .metric = "replica_lag_bytes", .metric_type = "gauge",
	 .metric_help = "Bytes of writes that the partition's replica furthest behind has not yet",
	 .help = "Bytes of writes that the replica furthest behind has not yet"},
	{.name = "slots_cpu", .kind = HS_FIELD_REAL, MEMBER(REAL, facts.slots_cpu),
	 .metric = "slots_cpu_ratio", .metric_type = "gauge",
	 .metric_help = "Time that the commands on the partition's slots took, as its server counts it, "
		 "against one core; 0 where it does not tell",
	 .help = "Time that the commands on its slots took, as its server counts it (CLUSTER "
		 "SLOT-STATS): 1 is a whole core; 0 where it does not tell"},
	{.name = "net_in", .kind = HS_FIELD_INT, MEMBER(REAL, facts.net_in),
	 .metric = "net_in_bytes_per_second", .metric_type = "gauge",
	 .metric_help = "Bytes per second that the partition's server received for its slots, from "
		 "everybody; 0 where it does not tell",
	 .help = "Bytes per second that its server received for its slots, from everybody; 0 where it "
		 "does not tell"},
	{.name = "net_out", .kind = HS_FIELD_INT, MEMBER(REAL, facts.net_out),
	 .metric = "net_out_bytes_per_second", .metric_type = "gauge",
	 .metric_help = "Bytes per second that the partition's server sent for its slots, to everybody; "
		 "0 where it does not tell",
	 .help = "Bytes per second that its server sent for its slots, to everybody; 0 where it does "
		 "not tell"},
	{.name = "trouble", .kind = HS_FIELD_TEXT, MEMBER(WORDS, facts.unavailable_reason),
	 .help = "Why its state is not `ok`; empty when it is"},
};
/* clang-format on */

const struct hs_fields hs_board_partition_fields = HS_FIELDS(partition_fields);

/* ---- the median ---- */

/* Every number that operators see of a partition. */
static bool is_number(const struct hs_field *field)
{
	return field->member == HS_MEMBER_WHOLE || field->member == HS_MEMBER_REAL ||
	       field->member == HS_MEMBER_FLOOR;
}

/* Numbers of partitions have 64 bits. */
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
