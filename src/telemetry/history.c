/* Ten minutes of history, a ring of seconds.
 *
 * A second ends with the first sample in another second of the wall clock, so that the seconds of several
 * servers line up. Its real length is measured by the monotonic clock, and its averages are over that length.
 * So a wall clock that is set, or a delayed thread, makes a second shorter or longer but none of its numbers
 * wrong. */
#include "telemetry/internal.h"

#include "base/mem.h"

#include <math.h>
#include <stdio.h>

enum {
	SHORTEST_US = 100000, /* a shorter rest of a second is added to the next one */
	LONGEST_US = 2000000, /* closes a second even if the wall clock stands still */
};

static int64_t wall_s(struct hs_now now)
{
	return now.wall_us / 1000000;
}

void hs_history_init(struct hs_board_history *history, uint16_t partitions)
{
	size_t cells = (size_t)HS_BOARD_SECONDS * partitions;

	history->seconds = hs_mem_zalloc(HS_BOARD_SECONDS * sizeof *history->seconds);
	history->partitions = hs_mem_zalloc(cells * sizeof *history->partitions);
	history->ranges =
		hs_mem_zalloc((size_t)HS_BOARD_SECONDS * HS_HEAT_RANGES * sizeof *history->ranges);
	history->keys = hs_mem_zalloc((size_t)HS_BOARD_SECONDS * HS_BOARD_HISTORY_KEYS *
				      sizeof *history->keys);
	history->begin_counted = hs_mem_zalloc(partitions * sizeof *history->begin_counted);
	for (size_t i = 0; i < HS_BOARD_SECONDS; i++)
		history->seconds[i] = (struct hs_board_second){
			.partitions = &history->partitions[i * partitions],
			.ranges = &history->ranges[i * HS_HEAT_RANGES],
			.keys = &history->keys[i * HS_BOARD_HISTORY_KEYS],
		};
}

void hs_history_deinit(struct hs_board_history *history)
{
	hs_mem_free(&history->seconds);
	hs_mem_free(&history->partitions);
	hs_mem_free(&history->ranges);
	hs_mem_free(&history->keys);
	hs_mem_free(&history->begin_counted);
}

static void read_ranges(const struct hs_board *board, uint64_t ranges[HS_HEAT_RANGES])
{
	memset(ranges, 0, HS_HEAT_RANGES * sizeof *ranges);
	for (size_t i = 0; i < board->heats_count; i++)
		hs_heat_read_ranges(board->heats[i], ranges);
}

static void begin(struct hs_board *board, const uint64_t ranges[HS_HEAT_RANGES])
{
	struct hs_board_history *history = &board->history;

	history->begin = board->now;
	for (uint16_t id = 0; id < board->partitions; id++)
		history->begin_counted[id] = board->parts[id].counted;
	memcpy(history->begin_ranges, ranges, sizeof history->begin_ranges);
}

void hs_history_restart(struct hs_board *board)
{
	uint64_t ranges[HS_HEAT_RANGES];

	board->history.count = 0;
	board->history.next = 0;
	board->history.partitions_max = 0;
	read_ranges(board, ranges);
	begin(board, ranges);
}

static void close_partition(const struct hs_board *board, uint16_t id, double elapsed_s,
			    struct hs_board_second_partition *second)
{
	const struct hs_heat_partition *was = &board->history.begin_counted[id];
	const struct hs_heat_partition *is = &board->parts[id].counted;
	double times[HS_COARSE_HISTOGRAM_BUCKETS];

	snprintf(second->id, sizeof second->id, "%u", id);
	second->reads = (float)((double)hs_board_delta(was->reads, is->reads) / elapsed_s);
	second->writes = (float)((double)hs_board_delta(was->writes, is->writes) / elapsed_s);
	second->ops = second->reads + second->writes;
	second->bytes = (float)((double)hs_board_delta(was->bytes, is->bytes) / elapsed_s);
	second->errors = (float)((double)hs_board_delta(was->errors, is->errors) / elapsed_s);
	for (uint32_t i = 0; i < HS_COARSE_HISTOGRAM_BUCKETS; i++)
		times[i] = (double)hs_board_delta(was->histogram[i], is->histogram[i]);
	second->p99_us = (float)hs_board_histogram_quantile(times, 0.99);
}

static void close_partitions(const struct hs_board *board, double elapsed_s,
			     struct hs_board_second *second)
{
	second->partitions_count = 0;
	for (uint16_t id = 0; id < board->partitions; id++) {
		if (!board->parts[id].facts.absent)
			close_partition(board, id, elapsed_s,
					&second->partitions[second->partitions_count++]);
	}
}

static void close_second(struct hs_board *board, double elapsed_s)
{
	struct hs_board_history *history = &board->history;
	struct hs_board_second *second = &history->seconds[history->next];
	struct hs_heat_query query = {
		.what = HS_HEAT_KEYS,
		.by = HS_HEAT_BY_OPS,
		.window = hs_board_window(board),
	};
	uint64_t ranges[HS_HEAT_RANGES];

	second->wall_s = wall_s(history->begin);
	close_partitions(board, elapsed_s, second);
	if (history->partitions_max < second->partitions_count)
		history->partitions_max = second->partitions_count;
	read_ranges(board, ranges);
	for (size_t i = 0; i < HS_HEAT_RANGES; i++)
		second->ranges[i] =
			(float)((double)hs_board_delta(history->begin_ranges[i], ranges[i]) /
				elapsed_s);
	second->keys_count = hs_board_top(board, &query, second->keys, HS_BOARD_HISTORY_KEYS);
	second->window = query.window;
	history->next = (history->next + 1) % HS_BOARD_SECONDS;
	if (history->count < HS_BOARD_SECONDS)
		history->count++;
	begin(board, ranges);
}

void hs_history_step(struct hs_board *board)
{
	struct hs_now *since = &board->history.begin;
	uint64_t elapsed_us = board->now.mono_us - since->mono_us;
	bool over = wall_s(board->now) != wall_s(*since);

	if (over && elapsed_us < SHORTEST_US)
		since->wall_us = board->now.wall_us;
	else if (over || elapsed_us >= LONGEST_US)
		close_second(board, (double)elapsed_us / 1e6);
}

size_t hs_board_seconds(const struct hs_board *board, size_t seconds)
{
	return seconds < board->history.count ? seconds : board->history.count;
}

struct hs_board_second hs_board_second(const struct hs_board *board, size_t seconds, size_t i)
{
	const struct hs_board_history *history = &board->history;
	size_t count = hs_board_seconds(board, seconds);

	hs_check(i < count);
	return history->seconds[(history->next + HS_BOARD_SECONDS - count + i) % HS_BOARD_SECONDS];
}

uint16_t hs_board_second_partitions_max(const struct hs_board *board)
{
	uint16_t max = board->history.partitions_max, now = hs_board_partitions_count(board);

	if (max < now)
		max = now;
	return max ? max : 1;
}

/* ---- fields ---- */

#define MEMBER(kind, path) HS_MEMBER(struct hs_board_second_partition, kind, path)

/* clang-format off */
static const struct hs_field second_fields[] = {
	{.name = "id", .kind = HS_FIELD_TEXT, MEMBER(WORDS, id),
	 .help = "The partition's number"},
	{.name = "ops", .kind = HS_FIELD_INT, MEMBER(REAL, ops),
	 .help = "Requests in that second"},
	{.name = "reads", .kind = HS_FIELD_INT, MEMBER(FLOOR, reads),
	 .help = "Requests in that second that only read"},
	{.name = "writes", .kind = HS_FIELD_INT, MEMBER(FLOOR, writes),
	 .help = "Requests in that second that write"},
	{.name = "bytes", .kind = HS_FIELD_INT, MEMBER(REAL, bytes),
	 .help = "Bytes of requests and replies in that second"},
	{.name = "p99_us", .kind = HS_FIELD_INT, MEMBER(REAL, p99_us),
	 .help = "99th percentile of request times in that second, in microseconds"},
	{.name = "errors", .kind = HS_FIELD_REAL, MEMBER(REAL, errors),
	 .help = "Requests in that second that were answered with an error"},
};
/* clang-format on */

const struct hs_fields hs_board_second_partition_fields = HS_FIELDS(second_fields);
