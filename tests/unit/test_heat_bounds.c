/* Goal: whatever the stream of requests, every interval that heat shows contains the exact value.
 *
 * Method: streams are drawn from seeds: all kinds of keys, all shapes of popularity, values from nothing to half a
 * gigabyte, silence, workers that share the keys, split them or stand still. There are 1 to 64 tables of 8 to
 * 4096 entries each; in addition, the test counts every access exactly (tests/lib/exact.h). Then every key,
 * prefix and slot is looked up, tracked or not, and every list of the hottest is read. */
#include "base/mem.h"
#include "base/prng.h"
#include "base/slot.h"
#include "tests/lib/exact.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* This test has one thread, so the thread sanitizer finds nothing here and takes fifty times as long. */
#if defined(__SANITIZE_THREAD__)
enum { SLOWER = 20 };
#elif defined(__SANITIZE_ADDRESS__)
enum { SLOWER = 12 };
#else
enum { SLOWER = 1 };
#endif

enum {
	TABLES_MAX = 64,
	KEYS_MAX = 4000,
	KEY_BYTES_MAX = 400,
	PARTITIONS = 8,
	SCENARIOS = 60 / SLOWER,
	MS = 1000, /* one millisecond, in microseconds */
};

struct world {
	struct hs_prng prng;
	struct hs_heat *heats[TABLES_MAX];
	size_t count;
	struct exact exact;
	uint64_t now_us;
	char (*keys)[KEY_BYTES_MAX];
	uint16_t *key_lens;
	size_t keys_count;
};

/* ---- keys ---- */

/* Makes keys of every kind: flat keys, keys of tenants, keys with hash tags, long keys that differ only after the
 * stored prefix, bytes that are no text, and the empty key. */
static size_t write_key(char *key, size_t number)
{
	unsigned n = (unsigned)number;
	int len;

	switch (number % 8) {
	case 0:
		return (size_t)snprintf(key, KEY_BYTES_MAX, "key%u", n);
	case 1:
	case 2:
		return (size_t)snprintf(key, KEY_BYTES_MAX, "t%u:u%u:k%u:x:y", n % 7, n % 53, n);
	case 3:
		return (size_t)snprintf(key, KEY_BYTES_MAX, "{u%u}:k%u", n % 11, n);
	case 4:
		memset(key, 'a', 100 + n % 200);
		key[90] = ':';
		len = snprintf(key + 100 + n % 200, 16, ":%u", n);
		return 100 + n % 200 + (size_t)len;
	case 5:
		len = snprintf(key, KEY_BYTES_MAX, "%c%c:\n\"\xff\xfe:%u", 0, 'b', n);
		return (size_t)len;
	default:
		return n == 6 ? 0 : (size_t)snprintf(key, KEY_BYTES_MAX, "user:%010u", n);
	}
}

static void world_init(struct world *world, uint64_t seed, size_t tables, uint32_t key_sets,
		       size_t keys_count)
{
	*world = (struct world){.count = tables, .keys_count = keys_count};
	hs_prng_init(&world->prng, seed);
	/* The test starts long after the machine's start, or soon after it. */
	world->now_us = hs_prng_below(&world->prng, 2)
				? (1 + hs_prng_below(&world->prng, 1u << 30)) * MS
				: MS;
	for (size_t i = 0; i < tables; i++) {
		world->heats[i] = hs_heat_create(&(struct hs_heat_options){
			.seed = seed, .partitions = PARTITIONS, .key_sets = key_sets});
		hs_heat_now(world->heats[i], world->now_us);
	}
	exact_init(&world->exact, world->now_us);
	world->keys = hs_mem_alloc(keys_count * sizeof *world->keys);
	world->key_lens = hs_mem_alloc(keys_count * sizeof *world->key_lens);
	for (size_t i = 0; i < keys_count; i++)
		world->key_lens[i] = (uint16_t)write_key(world->keys[i], i);
}

static void world_deinit(struct world *world)
{
	for (size_t i = 0; i < world->count; i++)
		hs_heat_destroy(&world->heats[i]);
	exact_deinit(&world->exact);
	hs_mem_free(&world->keys);
	hs_mem_free(&world->key_lens);
}

static struct hs_heat_access access_to(const struct world *world, size_t key)
{
	struct hs_bytes name = {world->keys[key], world->key_lens[key]};
	uint16_t slot = hs_slot_of(name);

	return (struct hs_heat_access){
		.key = name,
		.slot = slot,
		.partition = (uint16_t)(slot * PARTITIONS / HS_SLOTS),
	};
}

static void add(struct world *world, size_t table, const struct hs_heat_access *access)
{
	hs_heat_now(world->heats[table], world->now_us);
	hs_heat_add(world->heats[table], access, 1000);
	exact_add(&world->exact, access, 1, world->now_us);
}

/* Compares every row with the exact counts. Before any time has passed there is no rate to compare. */
static void check(const struct world *world, uint64_t later_us)
{
	if (world->now_us + later_us > world->exact.start_us)
		exact_check(&world->exact, world->heats, world->count, world->now_us + later_us);
}

/* ---- phases ---- */

enum shape { UNIFORM, ZIPF, BURSTS, ROTATING, ONE_HOT, IN_ORDER, SHAPES };
enum sizes { NOTHING_AT_ALL, TINY, PLAIN, ANY_SIZE, HUGE_ONES, GIANT, SIZES };
enum dealing { ANY_TABLE, BY_KEY, ONE_TABLE, DEALINGS };

struct phase {
	enum shape shape;
	enum sizes sizes;
	enum dealing dealing;
	double writes;	  /* the share of writes */
	uint64_t per_ms;  /* accesses per millisecond */
	uint64_t step_ms; /* length of one step of the clock */
	size_t accesses;
	/* The key that is hot or bursts, the rest of the burst, and the table that gets every access. */
	size_t key, burst, table;
	bool noted; /* accesses are noted and counted in batches */
};

static uint64_t below(struct world *world, uint64_t bound)
{
	return hs_prng_below(&world->prng, bound);
}

static bool chance(struct world *world, double share)
{
	return hs_prng_unit(&world->prng) < share;
}

static struct phase draw_phase(struct world *world)
{
	static const uint64_t per_ms[] = {1, 5, 50, 500};
	static const uint64_t step_ms[] = {1, 1, 3, 100};
	struct phase phase = {
		.shape = (enum shape)below(world, SHAPES),
		.sizes = (enum sizes)below(world, SIZES),
		.dealing = (enum dealing)below(world, DEALINGS),
		.writes = hs_prng_unit(&world->prng),
		.per_ms = per_ms[below(world, 4)],
		.step_ms = step_ms[below(world, 4)],
		.accesses = (size_t)below(world, 4000),
		.key = below(world, world->keys_count),
		.table = below(world, world->count),
		.noted = below(world, 2) == 0,
	};

	return phase;
}

static size_t draw_key(struct world *world, struct phase *phase, size_t i)
{
	size_t keys = world->keys_count;
	size_t any = (size_t)below(world, keys);

	switch (phase->shape) {
	case ZIPF: /* each power of two as likely as the next */
		return (size_t)pow((double)keys, hs_prng_unit(&world->prng)) - 1;
	case BURSTS:
		if (phase->burst == 0) {
			phase->burst = 1 + (size_t)below(world, 200);
			phase->key = any;
		}
		phase->burst--;
		return phase->key;
	case ROTATING: { /* five keys are hot for 40 ms, then five others */
		size_t era = (size_t)(world->now_us / (40 * MS));

		return chance(world, 0.8) ? (era * 31 + (size_t)below(world, 5)) % keys : any;
	}
	case ONE_HOT:
		return chance(world, 0.5) ? phase->key : any;
	case IN_ORDER:
		return i % keys;
	case UNIFORM:
	case SHAPES:
		break;
	}
	return any;
}

static uint64_t draw_bytes(struct world *world, const struct phase *phase, size_t key)
{
	switch (phase->sizes) {
	case NOTHING_AT_ALL:
		return 0;
	case TINY:
		return below(world, 8);
	case ANY_SIZE:
		return (uint64_t)pow(1e9, hs_prng_unit(&world->prng));
	case HUGE_ONES:
		return 1000000 + below(world, 500000000);
	case GIANT:
		return key == phase->key ? 1000000 : 50;
	case PLAIN:
	case SIZES:
		break;
	}
	return 20 + below(world, 200);
}

static void settle_all(struct world *world, uint32_t *noted)
{
	for (size_t i = 0; i < world->count; i++) {
		if (noted[i] > 0)
			hs_heat_settle(world->heats[i], 1000);
		noted[i] = 0;
	}
}

static void run_phase(struct world *world, struct phase *phase)
{
	uint32_t noted[TABLES_MAX] = {0};

	for (size_t i = 0; i < phase->accesses; i++) {
		size_t key = draw_key(world, phase, i);
		struct hs_heat_access access = access_to(world, key);
		size_t table = phase->dealing == ANY_TABLE ? (size_t)below(world, world->count)
			       : phase->dealing == BY_KEY  ? key % world->count
							   : phase->table;

		if (!phase->noted) /* the notes of a batch are counted at one time */
			world->now_us += below(world, 20);
		access.bytes = draw_bytes(world, phase, key);
		access.write = chance(world, phase->writes);
		access.missed = !access.write && chance(world, 0.3);
		access.conflicted = access.write && chance(world, 0.2);
		if (phase->noted) {
			hs_heat_now(world->heats[table], world->now_us);
			hs_heat_note(world->heats[table], &access);
			exact_add(&world->exact, &access, 1, world->now_us);
			if (++noted[table] == HS_HEAT_NOTES_MAX)
				settle_all(world, noted);
		} else {
			add(world, table, &access);
		}
		if (below(world, phase->per_ms) == 0) {
			settle_all(world, noted);
			world->now_us += (1 + below(world, phase->step_ms)) * MS + below(world, MS);
		}
	}
	settle_all(world, noted);
}

/* ---- tests ---- */

static void run_scenario(uint64_t seed)
{
	static const size_t tables[] = {1, 1, 2, 3, 4, 8, 16, 64};
	static const uint64_t silence_ms[] = {0, 0, 1, 50, 1000, 5000, 30000, 200000, 3600000};
	static const uint64_t later_ms[] = {0, 7, 250, 4100, 60000};
	struct hs_prng prng;
	struct world world;

	hs_prng_init(&prng, seed);

	size_t count = tables[hs_prng_below(&prng, 8)];
	uint32_t key_sets = 1u << hs_prng_below(&prng, 10);
	size_t keys_max = count == 64 ? 100 : count >= 8 ? 500 : KEYS_MAX;
	size_t phases = 2 + (size_t)hs_prng_below(&prng, 5);

	world_init(&world, seed, count, key_sets,
		   (size_t)pow((double)keys_max, 0.2 + 0.8 * hs_prng_unit(&prng)));
	for (size_t i = 0; i < phases; i++) {
		struct phase phase = draw_phase(&world);

		world.now_us += silence_ms[below(&world, 9)] * MS;
		run_phase(&world, &phase);
		world.now_us += below(&world, 2) * MS;
		check(&world, 0);
		if (below(&world, 8) == 0) {
			for (size_t t = 0; t < count; t++)
				hs_heat_reset(world.heats[t], world.now_us);
			exact_reset(&world.exact, world.now_us);
			check(&world, 5 * MS);
		}
	}
	exact_check_tops(&world.exact, world.heats, world.count, world.now_us + MS);
	/* From here on no worker updates its clock. */
	for (size_t i = 0; i < 5; i++)
		check(&world, later_ms[i] * MS);
	world_deinit(&world);
}

static void test_any_stream(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= SCENARIOS; seed++) {
		print_message("seed %d\n", (int)seed);
		run_scenario(seed);
	}
}

/* Values are tiny, then huge, then tiny again, each for long enough that the tables adapt. Meanwhile keys come
 * and go in a table that is much too small. */
static void test_sizes_that_change(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 1 + 5 / SLOWER; seed++) {
		struct world world;

		world_init(&world, seed, 1 + seed % 3, 1u << seed % 3, 200);
		for (int i = 0; i < 8; i++) {
			struct phase phase = {
				.shape = i % 3 ? ZIPF : UNIFORM,
				.sizes = i % 2 ? HUGE_ONES : TINY,
				.dealing = BY_KEY,
				.writes = 0.3,
				.per_ms = 1,
				.step_ms = 2 + seed,
				.accesses = 2000,
			};

			run_phase(&world, &phase);
			check(&world, MS);
		}
		exact_check_tops(&world.exact, world.heats, world.count, world.now_us);
		world_deinit(&world);
	}
}

/* Within a batch, entries of a table of eight are created, get their name, are evicted and return. An entry that
 * a note refers to must still be valid when the note is counted. */
static void test_within_a_batch(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 1 + 20 / SLOWER; seed++) {
		struct world world;

		world_init(&world, seed, 1, 1, 12 + 4 * seed % 40);
		for (int i = 0; i < 200; i++) {
			struct phase phase = {
				.shape = i % 2 ? UNIFORM : ROTATING,
				.sizes = i % 3 ? PLAIN : TINY,
				.dealing = ONE_TABLE,
				.writes = 0.5,
				.per_ms = 100,
				.step_ms = 30,
				.accesses = 150,
				.noted = true,
			};

			run_phase(&world, &phase);
			check(&world, MS);
		}
		exact_check_tops(&world.exact, world.heats, world.count, world.now_us);
		world_deinit(&world);
	}
}

/* More keys than tags can distinguish pass through eight entries. Two keys with equal tags must not be
 * confused. */
static void test_many_distinct_keys(void **state)
{
	struct world world;

	(void)state;
	world_init(&world, 3, 1, 1, 1);
	for (unsigned i = 0; i < 150000 / SLOWER; i++) {
		char key[24];
		struct hs_heat_access access = {.key = {key, 0}, .bytes = 40};

		access.key.len = (size_t)snprintf(key, sizeof key, "distinct%u", i % 100000);
		access.slot = hs_slot_of(access.key);
		access.partition = (uint16_t)(access.slot * PARTITIONS / HS_SLOTS);
		add(&world, 0, &access);
		if (i % 300 == 299)
			world.now_us += MS;
	}
	check(&world, 0);
	exact_check_tops(&world.exact, world.heats, world.count, world.now_us);
	world_deinit(&world);
}

static void add_times(struct world *world, const struct hs_heat_access *access, uint64_t times)
{
	hs_heat_now(world->heats[0], world->now_us);
	for (uint64_t i = 0; i < times; i++)
		hs_heat_add(world->heats[0], access, 1000);
	exact_add(&world->exact, access, times, world->now_us);
}

/* One key gets a million requests per second for longer than the long window: so many additions that a sum in
 * single precision could drift. */
static void test_a_very_hot_key(void **state)
{
	struct world world;

	(void)state;
	world_init(&world, 1, 1, 512, 8);
	for (unsigned ms = 1; ms <= 12000 / SLOWER; ms++) {
		struct hs_heat_access hot = access_to(&world, 1), other = access_to(&world, ms % 8);

		hot.bytes = 117;
		hot.write = ms % 7 == 0;
		add_times(&world, &hot, 999);
		other.bytes = 100;
		add_times(&world, &other, 1);
		world.now_us += MS;
		if (ms % 500 == 0)
			check(&world, 0);
	}
	world_deinit(&world);
}

/* A key has small values and now and then a giant one. In single precision, a small value would be lost in the
 * sum of the giants. */
static void test_small_values_after_a_giant(void **state)
{
	struct world world;

	(void)state;
	world_init(&world, 2, 1, 512, 8);
	for (unsigned ms = 1; ms <= 15000; ms++) {
		struct hs_heat_access access = access_to(&world, 1);

		access.bytes = ms % 1000 == 1 ? 500000000 : 100;
		add_times(&world, &access, ms % 1000 == 1 ? 1 : 100);
		world.now_us += MS;
		if (ms % 500 == 0)
			check(&world, 0);
	}
	world_deinit(&world);
}

/* The rate of two requests in each worker. */
static double two_requests(const struct world *world, enum hs_heat_window window)
{
	double full = -expm1(-(double)(world->now_us - world->exact.start_us) / 1e6 /
			     exact_window_s(window));

	return 2 * (double)world->count / exact_window_s(window) / full;
}

/* Bounds that are always right could still be too wide to be useful. While all keys fit, they are exact except
 * for the request that created the entry. */
static void test_exact_while_all_keys_fit(void **state)
{
	struct world world;
	struct phase phase = {.shape = ZIPF,
			      .sizes = PLAIN,
			      .dealing = BY_KEY,
			      .writes = 0.5,
			      .per_ms = 3,
			      .step_ms = 1,
			      .accesses = 20000};

	(void)state;
	world_init(&world, 5, 4, 512, 40);
	run_phase(&world, &phase);
	for (size_t i = 0; i < world.exact.count; i++) {
		const struct exact_item *item = &world.exact.items[i];
		struct hs_heat_row row;

		if (item->what != HS_HEAT_KEYS)
			continue;
		hs_heat_find(world.heats, world.count, item->what, item->name, item->slot,
			     world.now_us, &row);
		exact_check_row(&world.exact, item, &row, world.now_us);
		for (enum hs_heat_window w = 0; w < HS_HEAT_WINDOWS; w++) {
			double ops = exact_rate(&world.exact, item, w, EXACT_OPS, world.now_us);
			double bytes = exact_rate(&world.exact, item, w, EXACT_BYTES, world.now_us);
			double more = two_requests(&world, w);

			assert_true(row.window[w].ops_low >= ops * (1 - EXACT_SLACK) - more);
			assert_true(row.window[w].ops_high <= ops * (1 + EXACT_SLACK) + more);
			more *= 1000; /* in bytes: much more than two requests have */
			assert_true(row.window[w].bytes_low >= bytes * (1 - EXACT_SLACK) - more);
			assert_true(row.window[w].bytes_high <= bytes * (1 + EXACT_SLACK) + more);
		}
	}
	world_deinit(&world);
}

/* With a hundred times more keys than entries, the rates of the hottest keys are within a few per cent. Untracked
 * keys are known to be cooler. */
static void test_tight_where_it_matters(void **state)
{
	struct world world;

	(void)state;
	world_init(&world, 9, 2, 32, 1);
	for (unsigned i = 0; i < 400000; i++) {
		char key[24];
		struct hs_heat_access access = {.key = {key, 0}, .bytes = 100};
		unsigned number = (unsigned)pow(50000, hs_prng_unit(&world.prng));

		access.key.len = (size_t)snprintf(key, sizeof key, "%u", number);
		access.slot = hs_slot_of(access.key);
		access.partition = (uint16_t)(access.slot * PARTITIONS / HS_SLOTS);
		add(&world, i % 2, &access);
		if (i % 100 == 99)
			world.now_us += MS;
	}
	check(&world, 0);
	for (unsigned number = 1; number <= 10; number++) {
		char key[24];
		struct hs_heat_row row;
		struct hs_bytes name = {key, (size_t)snprintf(key, sizeof key, "%u", number)};

		hs_heat_find(world.heats, world.count, HS_HEAT_KEYS, name, 0, world.now_us, &row);
		for (enum hs_heat_window w = 0; w < HS_HEAT_WINDOWS; w++)
			assert_true(row.window[w].ops_low >= 0.7 * row.window[w].ops_high);
	}
	world_deinit(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_any_stream),
		cmocka_unit_test(test_sizes_that_change),
		cmocka_unit_test(test_within_a_batch),
		cmocka_unit_test(test_many_distinct_keys),
		cmocka_unit_test(test_a_very_hot_key),
		cmocka_unit_test(test_small_values_after_a_giant),
		cmocka_unit_test(test_exact_while_all_keys_fit),
		cmocka_unit_test(test_tight_where_it_matters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
