/* Goal: a seed gives the same stream for ever (recorded schedules depend on it), draws stay within their bounds
 * and are evenly distributed.
 *
 * Method: a published test vector, and counts of many draws. */
#include "base/prng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static void test_a_seed_gives_its_stream(void **state)
{
	struct hs_prng a, b, other;
	int same = 0;

	(void)state;
	hs_prng_init(&a, 42);
	hs_prng_init(&b, 42);
	hs_prng_init(&other, 43);
	for (int i = 0; i < 1000; i++) {
		uint64_t next = hs_prng_next(&a);

		assert_true(next == hs_prng_next(&b));
		same += next == hs_prng_next(&other);
	}
	assert_int_equal(same, 0);
}

/* The published test vector of xoshiro256**: state 1, 2, 3, 4. */
static void test_known_numbers(void **state)
{
	struct hs_prng prng = {{1, 2, 3, 4}};

	(void)state;
	assert_true(hs_prng_next(&prng) == 11520u);
	assert_true(hs_prng_next(&prng) == 0u);
	assert_true(hs_prng_next(&prng) == 1509978240u);
	assert_true(hs_prng_next(&prng) == 1215971899390074240u);
}

static void test_bounds(void **state)
{
	struct hs_prng prng;

	(void)state;
	hs_prng_init(&prng, 1);
	for (int i = 0; i < 10000; i++) {
		double unit = hs_prng_unit(&prng);

		assert_int_equal(hs_prng_below(&prng, 1), 0);
		assert_true(hs_prng_below(&prng, 3) < 3);
		assert_true(hs_prng_below(&prng, UINT64_MAX) < UINT64_MAX);
		assert_true(unit >= 0 && unit < 1);
	}
}

static void test_draws_are_even(void **state)
{
	enum { SIDES = 10, DRAWS = 100000 };
	int counts[SIDES] = {0};
	struct hs_prng prng;

	(void)state;
	hs_prng_init(&prng, 5);
	for (int i = 0; i < DRAWS; i++)
		counts[hs_prng_below(&prng, SIDES)]++;
	for (int i = 0; i < SIDES; i++) {
		assert_true(counts[i] > DRAWS / SIDES * 9 / 10);
		assert_true(counts[i] < DRAWS / SIDES * 11 / 10);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_seed_gives_its_stream),
		cmocka_unit_test(test_known_numbers),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_draws_are_even),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
