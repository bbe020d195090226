/* Goal: every kind of skew gives each key its documented share of requests.
 *
 * Method: the test draws many keys with a fixed seed and counts them. Counts may differ from the exact
 * expectation by five standard deviations: a wrong formula differs by far more. */
#include "cli/storm.h"

#include "base/mem.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { DRAWS = 1000000 };

static uint64_t *count_draws(const char *shape_text, uint64_t key_count, uint64_t elapsed_us)
{
	struct hs_storm_shape shape;
	struct hs_storm_keys keys;
	struct hs_prng prng;
	uint64_t *counts = hs_mem_zalloc(key_count * sizeof *counts);

	assert_true(hs_storm_shape_read(&shape, shape_text));
	hs_storm_keys_init(&keys, &shape, key_count, 11);
	hs_prng_init(&prng, 5);
	for (int i = 0; i < DRAWS; i++) {
		uint64_t key = hs_storm_keys_next(&keys, &prng, elapsed_us);

		assert_true(key < key_count);
		counts[key]++;
	}
	return counts;
}

static void assert_share(uint64_t count, double share)
{
	double expected = share * DRAWS;
	double deviation = sqrt(DRAWS * share * (1 - share));

	assert_true(fabs((double)count - expected) <= 5 * deviation + 1);
}

static void test_uniform(void **state)
{
	uint64_t *counts = count_draws("uniform", 1000, 0);

	(void)state;
	for (int i = 0; i < 1000; i++)
		assert_share(counts[i], 1.0 / 1000);
	hs_mem_free(&counts);
}

static void check_zipf(const char *shape, double exponent, uint64_t key_count)
{
	uint64_t *counts = count_draws(shape, key_count, 0);
	double whole = 0, tail = 0;
	uint64_t tail_count = 0;

	for (uint64_t k = 1; k <= key_count; k++)
		whole += pow((double)k, -exponent);
	for (uint64_t k = 1; k <= key_count; k++) {
		double share = pow((double)k, -exponent) / whole;

		if (k <= 100) {
			assert_share(counts[k - 1], share);
		} else {
			tail += share;
			tail_count += counts[k - 1];
		}
	}
	if (key_count > 100)
		assert_share(tail_count, tail);
	hs_mem_free(&counts);
}

static void test_zipf(void **state)
{
	(void)state;
	check_zipf("zipf", 0.99, 1000000);
	check_zipf("zipf:0.99", 0.99, 100000);
	check_zipf("zipf:0.5", 0.5, 1000);
	/* At exponent 1 the closed formula would divide zero by zero. */
	check_zipf("zipf:1", 1, 1000);
	check_zipf("zipf:1.5", 1.5, 1000);
	check_zipf("zipf:3", 3, 10);
	check_zipf("zipf:0.99", 0.99, 2);
	check_zipf("zipf:0.99", 0.99, 1);
}

static void test_viral(void **state)
{
	uint64_t *counts = count_draws("viral:0.4", 101, 0);

	(void)state;
	assert_share(counts[0], 0.4);
	for (int i = 1; i <= 100; i++)
		assert_share(counts[i], 0.006);
	hs_mem_free(&counts);

	counts = count_draws("viral:1", 10, 0);
	assert_int_equal(counts[0], DRAWS);
	hs_mem_free(&counts);
	counts = count_draws("viral:0", 10, 0);
	assert_int_equal(counts[0], 0);
	hs_mem_free(&counts);
	counts = count_draws("viral:0.4", 1, 0);
	assert_int_equal(counts[0], DRAWS);
	hs_mem_free(&counts);
}

/* A viral key stays for its time; then another key gets the same share. */
static void test_moving(void **state)
{
	struct hs_storm_shape shape;
	struct hs_storm_keys keys;
	uint64_t last = UINT64_MAX;

	(void)state;
	assert_true(hs_storm_shape_read(&shape, "moving:2s:0.3"));
	for (uint64_t key_count = 2; key_count <= 1000000; key_count *= 10) {
		hs_storm_keys_init(&keys, &shape, key_count, 11);
		for (uint64_t era = 0; era < 100; era++) {
			uint64_t viral = hs_storm_keys_viral(&keys, era * 2000000);

			assert_true(viral < key_count);
			assert_true(viral != last || era == 0);
			assert_int_equal(hs_storm_keys_viral(&keys, era * 2000000 + 1999999),
					 viral);
			last = viral;
		}
	}
	hs_storm_keys_init(&keys, &shape, 101, 11);
	for (uint64_t at = 0; at < 6000000; at += 2000000) {
		uint64_t *counts = count_draws("moving:2s:0.3", 101, at);

		for (uint64_t i = 0; i < 101; i++)
			assert_share(counts[i], i == hs_storm_keys_viral(&keys, at) ? 0.3 : 0.007);
		hs_mem_free(&counts);
	}
}

/* Two workers with the same seed draw the same viral key; another seed gives other keys. */
static void test_moving_follows_the_seed(void **state)
{
	struct hs_storm_shape shape;
	struct hs_storm_keys one, same, other;
	int differ = 0;

	(void)state;
	assert_true(hs_storm_shape_read(&shape, "moving:10ms"));
	assert_int_equal(shape.move_us, 10000);
	hs_storm_keys_init(&one, &shape, 1000000, 1);
	hs_storm_keys_init(&same, &shape, 1000000, 1);
	hs_storm_keys_init(&other, &shape, 1000000, 2);
	for (uint64_t at = 0; at < 1000000; at += 10000) {
		assert_int_equal(hs_storm_keys_viral(&one, at), hs_storm_keys_viral(&same, at));
		differ += hs_storm_keys_viral(&one, at) != hs_storm_keys_viral(&other, at);
	}
	assert_true(differ > 90);
}

/* The hot keys are the first ones, with equal shares. */
static void test_hot(void **state)
{
	uint64_t *counts = count_draws("80/20", 100, 0);

	(void)state;
	for (int i = 0; i < 100; i++)
		assert_share(counts[i], i < 20 ? 0.8 / 20 : 0.2 / 80);
	hs_mem_free(&counts);

	counts = count_draws("99/1", 1000, 0);
	for (int i = 0; i < 1000; i++)
		assert_share(counts[i], i < 10 ? 0.99 / 10 : 0.01 / 990);
	hs_mem_free(&counts);

	counts = count_draws("99/1", 4, 0); /* 1 % of four keys is rounded up to one hot key */
	assert_share(counts[0], 0.99);
	hs_mem_free(&counts);
	counts = count_draws("80/20", 1, 0);
	assert_int_equal(counts[0], DRAWS);
	hs_mem_free(&counts);
	counts = count_draws("50/100", 10, 0);
	for (int i = 0; i < 10; i++)
		assert_share(counts[i], 0.1);
	hs_mem_free(&counts);
}

/* The flash key has its share of an exact number of draws, however long the draws take. */
static void test_flash(void **state)
{
	enum { MOVES = 20, STAY = DRAWS / MOVES };
	struct hs_storm_shape shape;
	struct hs_storm_keys keys;
	struct hs_prng prng;
	uint64_t last = UINT64_MAX, hits = 0;

	(void)state;
	assert_true(hs_storm_shape_read(&shape, "flash:50000:0.99"));
	hs_storm_keys_init(&keys, &shape, 1000, 11);
	hs_prng_init(&prng, 5);
	for (int move = 0; move < MOVES; move++) {
		uint64_t viral = hs_storm_keys_viral(&keys, 0);

		assert_true(viral != last);
		for (int i = 0; i < STAY; i++) {
			assert_int_equal(hs_storm_keys_viral(&keys, (uint64_t)i), viral);
			hits += hs_storm_keys_next(&keys, &prng, (uint64_t)i) == viral;
		}
		last = viral;
	}
	assert_share(hits, 0.99);
	assert_true(hs_storm_shape_read(&shape, "flash"));
	assert_int_equal(shape.move_requests, 5000);
	assert_true(shape.share == 0.99);
}

static void test_shape_words(void **state)
{
	static const char *const wrong[] = {
		"",	    "unif",	 "uniform:1",  "zipf:",	     "zipf:x",	    "zipf:-1",
		"zipf:0",   "zipf:0.9x", "zipf0.99",   "viral:1.1",  "viral:-0.1",  "viral:0.4:2",
		"moving:",  "moving:0s", "moving:2s:", "moving:2x",  "moving:2s:2", "moving:s",
		"zipf:1e3", "viral:nan", "moving:inf", "zipf:1.2.3", "viral:.",	    "Zipf:1",
		"80/",	    "/20",	 "80/0",       "101/20",     "80/101",	    "80/20/3",
		"80/20:1",  "80",	 "flash:",     "flash:0",    "flash:0.5",   "flash:5s",
		"flash:5:", "flash:5:2", "80 /20",     "flash:5x",
	};
	struct hs_storm_shape shape;

	(void)state;
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		assert_false(hs_storm_shape_read(&shape, wrong[i]));
	assert_true(hs_storm_shape_read(&shape, "moving:1.5m:0.25"));
	assert_int_equal(shape.move_us, 90000000);
	assert_true(shape.share == 0.25);
	assert_true(hs_storm_shape_read(&shape, "moving"));
	assert_true(hs_storm_shape_read(&shape, "viral"));
	assert_true(shape.share == 0.4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_uniform),
		cmocka_unit_test(test_zipf),
		cmocka_unit_test(test_viral),
		cmocka_unit_test(test_moving),
		cmocka_unit_test(test_moving_follows_the_seed),
		cmocka_unit_test(test_hot),
		cmocka_unit_test(test_flash),
		cmocka_unit_test(test_shape_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
