/* Goal: the sums of a HOTKEYS session include the requests since START and no others, from whichever worker. The
 * session ends on time, the slots it names exclude other keys, and many keys with little traffic do not push out
 * the keys with much traffic.
 *
 * Method: the heat of one or several workers, fed access by access at times that the test sets. With few keys,
 * each is hot from its first access, so sums are compared exactly. */
#include "telemetry/hotkeys.h"

#include "base/err.h"
#include "base/prng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { WORKERS_MAX = 8, PARTITIONS = 4, SECOND = 1000000, START_WALL_S = 1700000000 };

struct world {
	struct hs_heat *heats[WORKERS_MAX];
	size_t count;
	struct hs_hotkeys *hotkeys;
	uint64_t now_us;
	uint64_t cpu_us; /* user CPU time; the system time is a third of it */
};

static void world_init(struct world *world, size_t workers)
{
	*world = (struct world){.count = workers, .now_us = 100 * SECOND, .cpu_us = 9000};
	for (size_t i = 0; i < workers; i++) {
		world->heats[i] = hs_heat_create(
			&(struct hs_heat_options){.seed = 5, .partitions = PARTITIONS});
		hs_heat_now(world->heats[i], world->now_us);
	}
	world->hotkeys = hs_hotkeys_create(world->heats, workers, PARTITIONS);
}

static void world_deinit(struct world *world)
{
	hs_hotkeys_destroy(&world->hotkeys);
	assert_null(world->hotkeys);
	for (size_t i = 0; i < world->count; i++)
		hs_heat_destroy(&world->heats[i]);
}

static void add(struct world *world, size_t worker, const char *key, uint16_t slot, uint64_t bytes,
		uint64_t ns)
{
	const struct hs_heat_access access = {
		.key = hs_bytes_of(key),
		.bytes = bytes,
		.slot = slot,
		.partition = slot % PARTITIONS,
	};

	hs_heat_add(world->heats[worker], &access, ns);
}

static void pass(struct world *world, uint64_t us)
{
	world->now_us += us;
	for (size_t i = 0; i < world->count; i++)
		hs_heat_now(world->heats[i], world->now_us);
}

static struct hs_now now(const struct world *world)
{
	return (struct hs_now){.mono_us = world->now_us,
			       .wall_us = (int64_t)START_WALL_S * SECOND +
					  (int64_t)(world->now_us - 100 * SECOND)};
}

static struct hs_hotkeys_cpu cpu(const struct world *world)
{
	return (struct hs_hotkeys_cpu){world->cpu_us, world->cpu_us / 3};
}

static void read_it(struct world *world)
{
	hs_hotkeys_read(world->hotkeys, now(world), cpu(world));
}

static struct hs_hotkeys_options options_of(uint32_t count)
{
	return (struct hs_hotkeys_options){.metrics = {true, true}, .count = count, .sample = 1};
}

static void choose(struct hs_hotkeys_options *options, uint16_t slot)
{
	options->slots[slot / 64] |= (uint64_t)1 << (slot % 64);
	options->slots_count++;
}

static void start(struct world *world, struct hs_hotkeys_options options)
{
	assert_int_equal(hs_hotkeys_start(world->hotkeys, &options, now(world), cpu(world)), 0);
}

/* Returns the sum of a key in a list; 0: the key is not listed. */
static uint64_t sum_of(const struct world *world, enum hs_hotkeys_metric metric, const char *name)
{
	struct hs_hotkeys_key keys[HS_HOTKEYS_COUNT_MAX];
	size_t count = hs_hotkeys_top(world->hotkeys, metric, keys);

	for (size_t i = 0; i < count; i++) {
		if (keys[i].name_len == strlen(name) &&
		    memcmp(keys[i].name, name, keys[i].name_len) == 0)
			return keys[i].sums[metric];
	}
	return 0;
}

static void test_start_stop_and_reset(void **state)
{
	const struct hs_hotkeys_options options = options_of(10);
	struct world world;

	(void)state;
	world_init(&world, 1);
	assert_null(hs_hotkeys_options(world.hotkeys));
	assert_null(hs_hotkeys_totals(world.hotkeys));
	assert_false(hs_hotkeys_active(world.hotkeys));
	assert_false(hs_hotkeys_due(world.hotkeys, now(&world)));
	assert_int_equal(hs_hotkeys_stop(world.hotkeys), HS_ENOTFOUND);
	assert_int_equal(hs_hotkeys_reset(world.hotkeys), 0);
	read_it(&world);

	start(&world, options);
	assert_true(hs_hotkeys_active(world.hotkeys));
	assert_int_equal(hs_hotkeys_start(world.hotkeys, &options, now(&world), cpu(&world)),
			 HS_EBUSY);
	assert_int_equal(hs_hotkeys_reset(world.hotkeys), HS_EBUSY);
	add(&world, 0, "a", 1, 10, 20);
	read_it(&world);
	assert_int_equal(hs_hotkeys_stop(world.hotkeys), 0);
	assert_int_equal(hs_hotkeys_stop(world.hotkeys), HS_ENOTFOUND);
	assert_false(hs_hotkeys_active(world.hotkeys));

	/* After STOP, the results stay and do not change. */
	pass(&world, SECOND);
	add(&world, 0, "a", 1, 10, 20);
	read_it(&world);
	assert_int_equal(sum_of(&world, HS_HOTKEYS_NET, "a"), 10);
	assert_int_equal(hs_hotkeys_totals(world.hotkeys)->all[HS_HOTKEYS_NET], 10);

	/* The next session starts from zero. */
	start(&world, options);
	read_it(&world);
	assert_int_equal(sum_of(&world, HS_HOTKEYS_NET, "a"), 0);
	assert_int_equal(hs_hotkeys_stop(world.hotkeys), 0);
	assert_int_equal(hs_hotkeys_reset(world.hotkeys), 0);
	assert_null(hs_hotkeys_options(world.hotkeys));
	world_deinit(&world);
}

static void test_sums_are_those_since_start(void **state)
{
	struct world world;
	const struct hs_hotkeys_totals *totals;

	(void)state;
	world_init(&world, 2);
	for (int i = 0; i < 1000; i++)
		add(&world, (size_t)i % 2, "old", 1, 100, 1000);
	pass(&world, SECOND);
	start(&world, options_of(10));
	world.cpu_us += 30000;
	for (int i = 0; i < 10; i++) {
		pass(&world, 100000);
		add(&world, (size_t)i % 2, "old", 1, 7, 11);
		add(&world, 1, "new", 2, 50, 3);
		read_it(&world);
	}
	assert_int_equal(sum_of(&world, HS_HOTKEYS_NET, "old"), 70);
	assert_int_equal(sum_of(&world, HS_HOTKEYS_CPU, "old"), 110);
	assert_int_equal(sum_of(&world, HS_HOTKEYS_NET, "new"), 500);
	assert_int_equal(sum_of(&world, HS_HOTKEYS_CPU, "new"), 30);
	hs_heat_add_keyless(world.heats[0], 3, false, false, 1000, 2000);
	read_it(&world);
	totals = hs_hotkeys_totals(world.hotkeys);
	assert_int_equal(totals->all[HS_HOTKEYS_NET], 70 + 500 + 1000);
	assert_int_equal(totals->all[HS_HOTKEYS_CPU], 110 + 30 + 2000);
	assert_int_equal(totals->selected[HS_HOTKEYS_NET], totals->all[HS_HOTKEYS_NET]);
	assert_int_equal(totals->cpu.user_us, 30000);
	assert_int_equal(totals->cpu.sys_us, 10000);
	assert_int_equal(totals->started_wall_us, ((int64_t)START_WALL_S + 1) * SECOND);
	assert_int_equal(totals->lasted_us, SECOND);
	world_deinit(&world);
}

static void test_lists_are_in_order_and_as_long_as_asked_for(void **state)
{
	struct hs_hotkeys_key keys[HS_HOTKEYS_COUNT_MAX];
	struct world world;
	char name[16];

	(void)state;
	world_init(&world, 1);
	start(&world, options_of(HS_HOTKEYS_COUNT_MAX));
	/* A key with more bytes has less time; one key has no bytes, and one has no time. */
	for (uint64_t i = 0; i < 100; i++) {
		snprintf(name, sizeof name, "k%02u", (unsigned)i);
		add(&world, 0, name, (uint16_t)i, i, 99 - i);
	}
	read_it(&world);
	assert_int_equal(hs_hotkeys_top(world.hotkeys, HS_HOTKEYS_NET, keys), HS_HOTKEYS_COUNT_MAX);
	for (uint64_t i = 0; i < HS_HOTKEYS_COUNT_MAX; i++)
		assert_int_equal(keys[i].sums[HS_HOTKEYS_NET], 99 - i);
	assert_int_equal(keys[0].slot, 99);
	assert_int_equal(hs_hotkeys_top(world.hotkeys, HS_HOTKEYS_CPU, keys), HS_HOTKEYS_COUNT_MAX);
	assert_memory_equal(keys[0].name, "k00", 3);
	assert_int_equal(keys[0].sums[HS_HOTKEYS_CPU], 99);

	assert_int_equal(hs_hotkeys_stop(world.hotkeys), 0);
	start(&world, options_of(2));
	add(&world, 0, "k03", 3, 5, 0);
	add(&world, 0, "k04", 4, 6, 0);
	add(&world, 0, "k05", 5, 4, 0);
	read_it(&world);
	assert_int_equal(hs_hotkeys_top(world.hotkeys, HS_HOTKEYS_NET, keys), 2);
	assert_memory_equal(keys[0].name, "k04", 3);
	assert_memory_equal(keys[1].name, "k03", 3);
	assert_int_equal(hs_hotkeys_top(world.hotkeys, HS_HOTKEYS_CPU, keys), 0);
	world_deinit(&world);
}

static void test_duration_ends_it(void **state)
{
	struct hs_hotkeys_options options = options_of(10);
	struct world world;

	(void)state;
	options.duration_us = 2 * SECOND;
	world_init(&world, 1);
	start(&world, options);
	assert_false(hs_hotkeys_due(world.hotkeys, now(&world)));
	pass(&world, HS_HOTKEYS_EVERY_US);
	assert_true(hs_hotkeys_due(world.hotkeys, now(&world)));
	add(&world, 0, "a", 1, 10, 20);
	read_it(&world);
	assert_false(hs_hotkeys_due(world.hotkeys, now(&world)));
	pass(&world, 2 * SECOND - HS_HOTKEYS_EVERY_US - 1000);
	read_it(&world);
	assert_true(hs_hotkeys_active(world.hotkeys));

	/* The session ends on time, although the test read it just before. */
	add(&world, 0, "a", 1, 1, 1);
	pass(&world, 1500);
	assert_true(hs_hotkeys_due(world.hotkeys, now(&world)));
	read_it(&world);
	assert_false(hs_hotkeys_active(world.hotkeys));
	assert_false(hs_hotkeys_due(world.hotkeys, now(&world)));
	assert_int_equal(hs_hotkeys_stop(world.hotkeys), HS_ENOTFOUND);
	assert_int_equal(hs_hotkeys_totals(world.hotkeys)->lasted_us, 2 * SECOND);

	pass(&world, SECOND);
	add(&world, 0, "a", 1, 500, 500);
	read_it(&world);
	assert_int_equal(sum_of(&world, HS_HOTKEYS_NET, "a"), 11);
	assert_int_equal(hs_hotkeys_totals(world.hotkeys)->all[HS_HOTKEYS_NET], 11);
	assert_int_equal(hs_hotkeys_totals(world.hotkeys)->lasted_us, 2 * SECOND);
	start(&world, options);
	world_deinit(&world);
}

static void test_slots_exclude_other_keys(void **state)
{
	struct hs_hotkeys_options options = options_of(10);
	const struct hs_hotkeys_totals *totals;
	struct world world;

	(void)state;
	choose(&options, 5);
	choose(&options, 16383);
	world_init(&world, 2);
	add(&world, 0, "before", 5, 1000, 1000);
	start(&world, options);
	add(&world, 0, "in", 5, 10, 1);
	add(&world, 1, "in", 5, 10, 1);
	add(&world, 1, "last", 16383, 7, 2);
	add(&world, 1, "out", 6, 100000, 100000);
	read_it(&world);
	assert_int_equal(sum_of(&world, HS_HOTKEYS_NET, "in"), 20);
	assert_int_equal(sum_of(&world, HS_HOTKEYS_NET, "last"), 7);
	assert_int_equal(sum_of(&world, HS_HOTKEYS_CPU, "last"), 2);
	assert_int_equal(sum_of(&world, HS_HOTKEYS_NET, "out"), 0);
	assert_int_equal(sum_of(&world, HS_HOTKEYS_NET, "before"), 0);
	totals = hs_hotkeys_totals(world.hotkeys);
	assert_int_equal(totals->selected[HS_HOTKEYS_NET], 27);
	assert_int_equal(totals->selected[HS_HOTKEYS_CPU], 4);
	assert_int_equal(totals->all[HS_HOTKEYS_NET], 100027);
	assert_int_equal(totals->all[HS_HOTKEYS_CPU], 100004);
	world_deinit(&world);
}

/* A slot with thousands of keys that are not hot still counts all their requests. */
static void test_a_slot_counts_all_its_keys(void **state)
{
	struct hs_hotkeys_options options = options_of(10);
	struct world world;
	char name[16];

	(void)state;
	choose(&options, 9);
	world_init(&world, 1);
	start(&world, options);
	for (unsigned i = 0; i < 20000; i++) {
		snprintf(name, sizeof name, "{t}%u", i);
		add(&world, 0, name, 9, 10, 5);
	}
	read_it(&world);
	assert_int_equal(hs_hotkeys_totals(world.hotkeys)->selected[HS_HOTKEYS_NET], 200000);
	assert_int_equal(hs_hotkeys_totals(world.hotkeys)->selected[HS_HOTKEYS_CPU], 100000);
	world_deinit(&world);
}

static void test_runs_of_slots(void **state)
{
	struct hs_hotkeys_options options = options_of(10);
	uint32_t first = 0, last = 0;

	(void)state;
	assert_true(hs_hotkeys_slots(&options, &first, &last));
	assert_int_equal(first, 0);
	assert_int_equal(last, HS_SLOTS - 1);
	first = last + 1;
	assert_false(hs_hotkeys_slots(&options, &first, &last));

	choose(&options, 0);
	choose(&options, 63);
	choose(&options, 64);
	choose(&options, 65);
	choose(&options, HS_SLOTS - 1);
	first = 0;
	assert_true(hs_hotkeys_slots(&options, &first, &last));
	assert_int_equal(first, 0);
	assert_int_equal(last, 0);
	first = last + 1;
	assert_true(hs_hotkeys_slots(&options, &first, &last));
	assert_int_equal(first, 63);
	assert_int_equal(last, 65);
	first = last + 1;
	assert_true(hs_hotkeys_slots(&options, &first, &last));
	assert_int_equal(first, HS_SLOTS - 1);
	assert_int_equal(last, HS_SLOTS - 1);
	first = last + 1;
	assert_false(hs_hotkeys_slots(&options, &first, &last));
}

/* The session gets more keys than it can sum up, and other ones at every reading. The heavy keys come when the
 * table is full, from the worker that is read last. */
static void test_heavy_keys_are_found_among_many(void **state)
{
	enum { READINGS = 10, SMALL = 170 * WORKERS_MAX, HEAVY = 100 };
	struct hs_hotkeys_key keys[HS_HOTKEYS_COUNT_MAX];
	const uint64_t most = (READINGS - 1) * HEAVY * 100;
	struct world world;
	char name[32];

	(void)state;
	world_init(&world, WORKERS_MAX);
	start(&world, options_of(10));
	for (unsigned reading = 0; reading < READINGS; reading++) {
		for (unsigned i = 0; i < SMALL; i++) {
			snprintf(name, sizeof name, "small:%u:%u", reading, i);
			add(&world, i % WORKERS_MAX, name, (uint16_t)i, 10, 10);
		}
		for (int i = 0; i < HEAVY && reading > 0; i++) {
			pass(&world, 1000);
			add(&world, WORKERS_MAX - 1, "bytes", 1, 100, 0);
			add(&world, WORKERS_MAX - 1, "time", 2, 0, 100);
		}
		read_it(&world);
		pass(&world, SECOND);
	}
	/* The first accesses of the heavy keys are missing, because they came before the keys were hot. */
	assert_true(hs_hotkeys_top(world.hotkeys, HS_HOTKEYS_NET, keys) == 10);
	assert_memory_equal(keys[0].name, "bytes", 5);
	assert_in_range(keys[0].sums[HS_HOTKEYS_NET], most * 9 / 10, most);
	assert_true(hs_hotkeys_top(world.hotkeys, HS_HOTKEYS_CPU, keys) == 10);
	assert_memory_equal(keys[0].name, "time", 4);
	assert_in_range(keys[0].sums[HS_HOTKEYS_CPU], most * 9 / 10, most);
	assert_int_equal(hs_hotkeys_totals(world.hotkeys)->all[HS_HOTKEYS_NET],
			 READINGS * SMALL * 10 + (READINGS - 1) * HEAVY * 100);
	world_deinit(&world);
}

/* HEAT RESET during a session loses only the requests since the last reading. Here the test reads just before the
 * reset. */
static void test_a_reset_of_the_tables_is_survived(void **state)
{
	struct world world;

	(void)state;
	world_init(&world, 2);
	add(&world, 0, "a", 1, 10000, 10000);
	start(&world, options_of(10));
	add(&world, 0, "a", 1, 10, 1);
	read_it(&world);
	hs_heat_reset(world.heats[0], world.now_us);
	hs_heat_reset(world.heats[1], world.now_us);
	read_it(&world);
	pass(&world, SECOND);
	add(&world, 0, "a", 1, 20000, 20000);
	add(&world, 1, "a", 1, 5, 5);
	read_it(&world);
	read_it(&world);
	assert_int_equal(sum_of(&world, HS_HOTKEYS_NET, "a"), 10 + 20000 + 5);
	assert_int_equal(sum_of(&world, HS_HOTKEYS_CPU, "a"), 1 + 20000 + 5);
	world_deinit(&world);
}

/* A key with much past traffic drops out of the tables. If the key returns during a session, its past requests do
 * not count. */
static void test_traffic_before_the_session_does_not_count(void **state)
{
	struct world world;

	(void)state;
	world_init(&world, 1);
	for (int i = 0; i < 100000; i++)
		add(&world, 0, "quiet", 1, 100, 100);
	/* An idle worker does not read the clock, so its table still has the old rates. */
	world.now_us += 300 * (uint64_t)SECOND;
	start(&world, options_of(10));
	pass(&world, SECOND);
	for (int i = 0; i < 5; i++) {
		add(&world, 0, "quiet", 1, 100, 100);
		pass(&world, SECOND);
		read_it(&world);
	}
	/* The first access of the session brought the key back into the table, and may be missing. */
	assert_in_range(sum_of(&world, HS_HOTKEYS_NET, "quiet"), 400, 500);
	world_deinit(&world);
}

enum { KEYS = 40, ROUNDS = 20000 };

/* Makes random traffic on few keys over several workers, with idle times, resets and sessions. Writes the exact
 * sums of the last session to `truth`. */
static void run_random(struct world *world, uint64_t idle_us_max,
		       uint64_t truth[HS_HOTKEYS_METRICS][KEYS])
{
	struct hs_prng prng;

	hs_prng_init(&prng, 3);
	start(world, options_of(HS_HOTKEYS_COUNT_MAX));
	for (int round = 0; round < ROUNDS; round++) {
		uint64_t what = hs_prng_below(&prng, 1000), i = hs_prng_below(&prng, KEYS);
		uint64_t bytes = hs_prng_below(&prng, 10000), ns = hs_prng_below(&prng, 10000);
		char name[2] = {(char)('0' + i)};

		if (what < 800) {
			add(world, hs_prng_below(&prng, 4), name, (uint16_t)i, bytes, ns);
			truth[HS_HOTKEYS_NET][i] += bytes;
			truth[HS_HOTKEYS_CPU][i] += ns;
			continue;
		}
		read_it(world);
		pass(world, hs_prng_below(&prng, idle_us_max));
		if (what >= 998) {
			for (size_t w = 0; w < world->count; w++)
				hs_heat_reset(world->heats[w], world->now_us);
			pass(world, 1000);
		} else if (what >= 996) {
			assert_int_equal(hs_hotkeys_stop(world->hotkeys), 0);
			start(world, options_of(HS_HOTKEYS_COUNT_MAX));
			memset(truth, 0, HS_HOTKEYS_METRICS * sizeof truth[0]);
		}
	}
	read_it(world);
}

static void test_random_sessions_are_exact(void **state)
{
	uint64_t truth[HS_HOTKEYS_METRICS][KEYS] = {{0}};
	struct world world;

	(void)state;
	world_init(&world, 4);
	run_random(&world, SECOND / 20, truth);
	for (size_t i = 0; i < KEYS; i++) {
		char name[2] = {(char)('0' + i)};

		assert_int_equal(sum_of(&world, HS_HOTKEYS_NET, name), truth[HS_HOTKEYS_NET][i]);
		assert_int_equal(sum_of(&world, HS_HOTKEYS_CPU, name), truth[HS_HOTKEYS_CPU][i]);
	}
	world_deinit(&world);
}

/* After a long silence, keys are out of the tables when a session starts. Requests before the silence do not
 * count. */
static void test_silent_keys_never_count_too_much(void **state)
{
	uint64_t truth[HS_HOTKEYS_METRICS][KEYS] = {{0}};
	struct world world;

	(void)state;
	world_init(&world, 4);
	run_random(&world, 20 * SECOND, truth);
	for (size_t i = 0; i < KEYS; i++) {
		char name[2] = {(char)('0' + i)};

		assert_in_range(sum_of(&world, HS_HOTKEYS_NET, name), 0, truth[HS_HOTKEYS_NET][i]);
		assert_in_range(sum_of(&world, HS_HOTKEYS_CPU, name), 0, truth[HS_HOTKEYS_CPU][i]);
	}
	world_deinit(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_start_stop_and_reset),
		cmocka_unit_test(test_sums_are_those_since_start),
		cmocka_unit_test(test_lists_are_in_order_and_as_long_as_asked_for),
		cmocka_unit_test(test_duration_ends_it),
		cmocka_unit_test(test_slots_exclude_other_keys),
		cmocka_unit_test(test_a_slot_counts_all_its_keys),
		cmocka_unit_test(test_runs_of_slots),
		cmocka_unit_test(test_heavy_keys_are_found_among_many),
		cmocka_unit_test(test_a_reset_of_the_tables_is_survived),
		cmocka_unit_test(test_traffic_before_the_session_does_not_count),
		cmocka_unit_test(test_random_sessions_are_exact),
		cmocka_unit_test(test_silent_keys_never_count_too_much),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
