/* Shared by the heat benchmarks: a stream of requests in simulated time, counted by heat and, if wanted, exactly. The
 * results do not depend on the speed of the machine. One thread; each program has one world, freed at its end. */
#ifndef HS_BENCH_HEAT_WORLD_H
#define HS_BENCH_HEAT_WORLD_H

#include "base/mem.h"
#include "cli/storm.h"
#include "heat/heat.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum {
	KEYS = 10000000,
	PARTITIONS = 8,
	FIRST = 10, /* the length of HEAT TOP */
	ROWS = 400,
	WORKERS = 4,
	KEY_BYTES = 16,
	VALUE_BYTES = 100,
	START_US = 100000000,
	MS = 1000,
	SECOND = 1000000,
};

static const double window_s[] = {HS_HEAT_SHORT_US / 1e6, HS_HEAT_LONG_US / 1e6};

/* ---- exact counts ---- */

struct truth {
	double (*sum)[HS_HEAT_WINDOWS]; /* exact sums by key number */
	size_t keys;
	double one
		[HS_HEAT_WINDOWS]; /* weight of a request at now_us; grows instead of decaying all sums */
	uint64_t now_us;
};

static inline void truth_init(struct truth *truth, size_t keys)
{
	*truth = (struct truth){.keys = keys, .one = {1, 1}, .now_us = START_US};
	truth->sum = hs_mem_zalloc(keys * sizeof *truth->sum);
}

static inline void truth_now(struct truth *truth, uint64_t now_us)
{
	for (enum hs_heat_window w = 0; w < HS_HEAT_WINDOWS; w++) {
		truth->one[w] *= exp((double)(now_us - truth->now_us) / 1e6 / window_s[w]);
		if (truth->one[w] < 1e200)
			continue;
		for (size_t i = 0; i < truth->keys; i++)
			truth->sum[i][w] /= truth->one[w];
		truth->one[w] = 1;
	}
	truth->now_us = now_us;
}

/* The exact rate in requests per second, as heat defines it. */
static inline double truth_rate(const struct truth *truth, size_t key, enum hs_heat_window w)
{
	double full = -expm1(-(double)(truth->now_us - START_US) / 1e6 / window_s[w]);

	return truth->sum[key][w] / truth->one[w] / (window_s[w] * full);
}

static inline int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* ---- the stream of requests ---- */

struct world {
	struct hs_heat *one,
		*many[WORKERS]; /* the same requests in one table, and spread over one table per worker */
	struct truth truth;
	struct hs_storm_keys keys;
	struct hs_prng prng;
	uint64_t now_us;
};

static inline void world_init(struct world *world, double exponent, size_t keys, bool with_truth,
			      uint64_t seed)
{
	const struct hs_heat_options options = {.seed = seed + 99, .partitions = PARTITIONS};
	const struct hs_storm_shape shape = {
		.kind = exponent > 0 ? HS_STORM_ZIPF : HS_STORM_UNIFORM, .exponent = exponent};

	*world = (struct world){.now_us = START_US};
	hs_prng_init(&world->prng, seed);
	hs_storm_keys_init(&world->keys, &shape, keys, seed);
	/* One more for the key that the program itself makes hot or large (number `keys`). */
	if (with_truth)
		truth_init(&world->truth, keys + 1);
	world->one = hs_heat_create(&options);
	hs_heat_now(world->one, START_US);
	for (int i = 0; i < WORKERS; i++) {
		world->many[i] = hs_heat_create(&options);
		hs_heat_now(world->many[i], START_US);
	}
}

static inline void world_deinit(struct world *world)
{
	hs_heat_destroy(&world->one);
	for (int i = 0; i < WORKERS; i++)
		hs_heat_destroy(&world->many[i]);
	hs_mem_free(&world->truth.sum);
}

/* "user:0000012345" */
static inline struct hs_bytes key_text(uint64_t number, char text[KEY_BYTES])
{
	memcpy(text, "user:0000000000", 15);
	for (int i = 14; number > 0; i--, number /= 10)
		text[i] = (char)('0' + number % 10);
	return (struct hs_bytes){text, 15};
}

static inline uint64_t key_number(const struct hs_heat_row *row)
{
	uint64_t number = 0;

	for (uint32_t i = 5; i < row->name_len; i++)
		number = number * 10 + (uint64_t)(row->name[i] - '0');
	return number;
}

static inline void request(struct world *world, uint64_t key, uint64_t bytes, bool dealt)
{
	char text[KEY_BYTES];
	uint16_t slot = (uint16_t)(key * 2654435761u >> 7 & (HS_SLOTS - 1));
	struct hs_heat_access access = {
		.key = key_text(key, text),
		.bytes = bytes,
		.slot = slot,
		.partition = slot / (HS_SLOTS / PARTITIONS),
	};

	hs_heat_add(world->one, &access, 2000);
	if (dealt)
		hs_heat_add(world->many[hs_prng_below(&world->prng, WORKERS)], &access, 2000);
	for (enum hs_heat_window w = 0; w < HS_HEAT_WINDOWS && world->truth.sum; w++)
		world->truth.sum[key][w] += world->truth.one[w];
}

static inline void next_ms(struct world *world, bool dealt)
{
	world->now_us += MS;
	hs_heat_now(world->one, world->now_us);
	for (int i = 0; i < WORKERS && dealt; i++)
		hs_heat_now(world->many[i], world->now_us);
	if (world->truth.sum)
		truth_now(&world->truth, world->now_us);
}

#endif
