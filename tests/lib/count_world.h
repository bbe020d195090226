/* A fixture for unit tests of what the core counts as heat: a simulated world with two workers and one client on
 * each, and helpers that compare the counts of a key, a partition, or everything. Counts are exact here, because
 * the few keys have their places in the heat tables from their first request on. One thread, virtual clock; the
 * fixture owns the world. A wrong count fails the test with the expected and the actual numbers.
 *
 * There are four partitions: key b is on 0, c on 1, d on 2 and a on 3. */
#ifndef HS_TESTS_LIB_COUNT_WORLD_H
#define HS_TESTS_LIB_COUNT_WORLD_H

#include "tests/lib/script.h"

#include "base/slot.h"
#include "route/slot_map.h"

#include <inttypes.h>
#include <math.h>

enum { PARTITIONS = 4, B_PARTITION = 0, C_PARTITION, D_PARTITION, A_PARTITION };

struct count_world {
	struct hs_sim_world *world;
	struct hs_sim_client *a, *b;
	uint64_t keyless; /* requests for a partition without a key; set by the test */
};

static inline struct hs_sim_world_options count_world_defaults(void)
{
	struct hs_sim_world_options options = hs_sim_world_defaults(1);

	options.workers = 2;
	options.heat_sets = 64;
	return options;
}

static inline struct count_world count_world_open(const struct hs_sim_world_options *options)
{
	struct hs_sim_world_options defaults = count_world_defaults();
	struct count_world count_world = {
		.world = hs_sim_world_create(options ? options : &defaults)};

	assert_int_equal(hs_slot_partition(hs_slot_of(HS_LIT("a")), PARTITIONS), A_PARTITION);
	assert_int_equal(hs_slot_partition(hs_slot_of(HS_LIT("b")), PARTITIONS), B_PARTITION);
	assert_int_equal(hs_slot_partition(hs_slot_of(HS_LIT("c")), PARTITIONS), C_PARTITION);
	assert_int_equal(hs_slot_partition(hs_slot_of(HS_LIT("d")), PARTITIONS), D_PARTITION);
	count_world.a = hs_sim_client_connect(count_world.world, 0);
	count_world.b = hs_sim_client_connect(count_world.world, 1);
	return count_world;
}

static inline struct hs_heat_partition partition_of(const struct count_world *count_world,
						    uint32_t id)
{
	struct hs_heat_partition sum = {0};

	for (uint32_t i = 0; i < count_world->world->options.workers; i++)
		hs_heat_read_partition(count_world->world->heats[i], (uint16_t)id, &sum);
	return sum;
}

/* Ends the world and asserts: nothing is in flight, every request has a latency in the histogram, and every
 * request for a key is counted in the range of its slot. */
static inline void count_world_close(struct count_world *count_world)
{
	uint64_t ranges[HS_HEAT_RANGES] = {0}, in_ranges = 0, ops = 0;

	for (uint16_t id = 0; id < count_world->world->options.engine.partitions; id++) {
		struct hs_heat_partition partition = partition_of(count_world, id);
		uint64_t timed = 0;

		for (uint32_t i = 0; i < HS_COARSE_HISTOGRAM_BUCKETS; i++)
			timed += partition.histogram[i];
		assert_int_equal(partition.inflight, 0);
		assert_int_equal(timed, partition.reads + partition.writes);
		ops += timed;
	}
	for (uint32_t i = 0; i < count_world->world->options.workers; i++)
		hs_heat_read_ranges(count_world->world->heats[i], ranges);
	for (uint32_t i = 0; i < HS_HEAT_RANGES; i++)
		in_ranges += ranges[i];
	assert_int_equal(in_ranges + count_world->keyless, ops);
	hs_sim_world_destroy(&count_world->world);
}

/* Sends a request, runs the world until it settles, and discards the reply. */
static inline void ask(struct hs_sim_client *client, const char *words)
{
	hs_sim_client_request(client, words);
	hs_sim_world_settle(client->world);
	client->received.len = 0;
}

/* ---- counts ---- */

struct counts {
	uint64_t reads, writes, bytes;
	uint64_t misses, conflicts; /* of keys only */
	uint64_t errors;	    /* of partitions only */
};

static inline struct hs_heat_row row_of(const struct count_world *count_world, struct hs_bytes key)
{
	struct hs_heat_row row;

	hs_heat_find(count_world->world->heats, count_world->world->options.workers, HS_HEAT_KEYS,
		     key, hs_slot_of(key), count_world->world->now.mono_us, &row);
	return row;
}

/* Converts a rate of the long window to the number of requests since the start. */
static inline uint64_t times(const struct count_world *count_world, double rate)
{
	double window_us = HS_HEAT_LONG_US;
	double age_us = fmax(
		1000, (double)(count_world->world->now.mono_us - count_world->world->start_us));
	double count = rate * window_us / 1e6 * -expm1(-age_us / window_us);

	/* Allows for the decay of a moment. */
	assert_true(fabs(count - round(count)) <= 0.01 + 1e-3 * count);
	return (uint64_t)round(count);
}

static inline bool counts_equal(const struct counts *a, const struct counts *b)
{
	return a->reads == b->reads && a->writes == b->writes && a->bytes == b->bytes &&
	       a->misses == b->misses && a->conflicts == b->conflicts && a->errors == b->errors;
}

static inline void compare(const char *what, struct counts got, struct counts wanted,
			   const char *file, int line)
{
	const struct counts *each[] = {&got, &wanted};

	if (counts_equal(&got, &wanted))
		return;
	for (int i = 0; i < 2; i++)
		print_error("%s %s: reads %" PRIu64 " writes %" PRIu64 " bytes %" PRIu64
			    " misses %" PRIu64 " conflicts %" PRIu64 " errors %" PRIu64 "\n",
			    what, i == 0 ? "has" : "should have", each[i]->reads, each[i]->writes,
			    each[i]->bytes, each[i]->misses, each[i]->conflicts, each[i]->errors);
	_fail(file, line);
}

static inline void key_counts(const struct count_world *count_world, const char *key,
			      struct counts wanted, const char *file, int line)
{
	struct hs_heat_row row = row_of(count_world, hs_bytes_of(key));
	const struct hs_heat_rates *rates = &row.window[HS_HEAT_LONG];
	struct counts got = {
		.reads = row.total_reads,
		.writes = row.total_writes,
		.bytes = row.total_bytes,
		.misses = times(count_world, rates->misses),
		.conflicts = times(count_world, rates->conflicts),
	};

	compare(key, got, wanted, file, line);
	assert_int_equal(times(count_world, rates->reads), got.reads);
	assert_int_equal(times(count_world, rates->ops_high), got.reads + got.writes);
	if (row.workers == 0)
		return;
	assert_int_equal(row.slot, hs_slot_of(hs_bytes_of(key)));
	assert_int_equal(
		row.partition,
		hs_slot_partition(row.slot, count_world->world->options.engine.partitions));
}

static inline void partition_counts(const struct count_world *count_world, uint32_t id,
				    struct counts wanted, const char *file, int line)
{
	struct hs_heat_partition partition = partition_of(count_world, id);
	struct counts got = {
		.reads = partition.reads,
		.writes = partition.writes,
		.bytes = partition.bytes,
		.errors = partition.errors,
	};
	char what[32];

	snprintf(what, sizeof what, "partition %u", id);
	compare(what, got, wanted, file, line);
}

/* Asserts the exact counts of a key since the start: .reads = 1, .bytes = 9. Counts not named must be 0. */
#define key_has(count_world, key, ...)                                                             \
	key_counts(count_world, key, (struct counts){__VA_ARGS__}, __FILE__, __LINE__)
#define partition_has(count_world, id, ...)                                                        \
	partition_counts(count_world, id, (struct counts){__VA_ARGS__}, __FILE__, __LINE__)

/* Asserts that nothing was counted. */
static inline void nothing_counted(const struct count_world *count_world)
{
	for (uint32_t id = 0; id < PARTITIONS; id++)
		partition_has(count_world, id, 0);
	assert_true(hs_heat_total(count_world->world->heats, count_world->world->options.workers,
				  HS_HEAT_LONG, count_world->world->now.mono_us) == 0);
}

#endif
