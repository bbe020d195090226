/* Goal: percentiles are within 1 % of the exact percentiles, whatever the distribution, and merged histograms
 * equal a histogram that recorded every value.
 *
 * Method: the exact percentiles come from sorting the same values. */
#include "base/histogram.h"

#include "base/prng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { VALUES = 100000 };

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* A value whose logarithm is uniform: as many values around a microsecond as around a second. */
static uint64_t draw(struct hs_prng *prng, unsigned bits)
{
	return hs_prng_next(prng) >> (64 - 1 - hs_prng_below(prng, bits));
}

static void assert_close(uint64_t got, uint64_t exact)
{
	uint64_t apart = got > exact ? got - exact : exact - got;

	assert_true((double)apart <= 0.01 * (double)exact);
}

static void test_percentiles_are_within_a_hundredth(void **state)
{
	static const double shares[] = {0, 0.001, 0.1, 0.25, 0.5, 0.9, 0.95, 0.99, 0.999, 1};
	struct hs_histogram histogram = {0};
	struct hs_prng prng;
	uint64_t *values = malloc(VALUES * sizeof *values);

	(void)state;
	hs_prng_init(&prng, 7);
	for (int i = 0; i < VALUES; i++) {
		values[i] = draw(&prng, HS_HISTOGRAM_VALUE_BITS);
		hs_histogram_add(&histogram, values[i]);
	}
	qsort(values, VALUES, sizeof *values, by_size);
	for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
		/* VALUES is chosen so that every rank is an integer. */
		size_t rank = (size_t)(shares[i] * VALUES + 0.5);
		size_t at = rank ? rank - 1 : 0;

		assert_close(hs_histogram_quantile(&histogram, shares[i]), values[at]);
	}
	assert_int_equal(hs_histogram_quantile(&histogram, 0), values[0]);
	assert_int_equal(hs_histogram_quantile(&histogram, 1), values[VALUES - 1]);
	free(values);
}

/* Records 0, a value at or next to a power of two, and the largest value. The median is the value in the
 * middle. */
static void test_around_every_power_of_two(void **state)
{
	(void)state;
	for (unsigned bit = 0; bit < HS_HISTOGRAM_VALUE_BITS; bit++) {
		for (int off = -1; off <= 1; off++) {
			uint64_t value = ((uint64_t)1 << bit) + (uint64_t)off;
			struct hs_histogram histogram = {0};

			hs_histogram_add(&histogram, 0);
			hs_histogram_add(&histogram, value);
			hs_histogram_add(&histogram, UINT64_MAX);
			assert_close(hs_histogram_quantile(&histogram, 0.6), value);
		}
	}
}

static void test_small_values_are_exact(void **state)
{
	struct hs_histogram histogram = {0};

	(void)state;
	for (uint64_t value = 0; value < 100; value++)
		hs_histogram_add(&histogram, value);
	for (int i = 1; i <= 100; i++)
		assert_int_equal(hs_histogram_quantile(&histogram, i / 100.0), i - 1);
	assert_true(hs_histogram_mean(&histogram) == 49.5);
}

static void test_merged_equals_one_histogram(void **state)
{
	struct hs_histogram one = {0}, parts[3] = {{0}}, merged = {0};
	struct hs_prng prng;

	(void)state;
	hs_prng_init(&prng, 3);
	hs_histogram_merge(&merged, &parts[0]); /* merges empty with empty */
	for (int i = 0; i < VALUES; i++) {
		uint64_t value = 5 + draw(&prng, 50); /* some exceed the last bucket */

		hs_histogram_add(&one, value);
		hs_histogram_add(&parts[i % 3], value);
	}
	for (int i = 0; i < 3; i++)
		hs_histogram_merge(&merged, &parts[i]);
	assert_memory_equal(&merged, &one, sizeof one);
}

static void test_empty_and_single(void **state)
{
	struct hs_histogram histogram = {0};

	(void)state;
	assert_int_equal(hs_histogram_quantile(&histogram, 0.5), 0);
	assert_true(hs_histogram_mean(&histogram) == 0);
	hs_histogram_add(&histogram, 123456789);
	assert_int_equal(hs_histogram_quantile(&histogram, 0), 123456789);
	assert_int_equal(hs_histogram_quantile(&histogram, 0.5), 123456789);
	assert_int_equal(hs_histogram_quantile(&histogram, 1), 123456789);
}

static void test_beyond_the_last_bucket(void **state)
{
	struct hs_histogram histogram = {0};

	(void)state;
	hs_histogram_add(&histogram, 1);
	hs_histogram_add(&histogram, UINT64_MAX - 1);
	hs_histogram_add(&histogram, UINT64_MAX);
	assert_int_equal(hs_histogram_quantile(&histogram, 1), UINT64_MAX);
	assert_true(hs_histogram_quantile(&histogram, 0.6) >=
		    (uint64_t)1 << (HS_HISTOGRAM_VALUE_BITS - 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_percentiles_are_within_a_hundredth),
		cmocka_unit_test(test_around_every_power_of_two),
		cmocka_unit_test(test_small_values_are_exact),
		cmocka_unit_test(test_merged_equals_one_histogram),
		cmocka_unit_test(test_empty_and_single),
		cmocka_unit_test(test_beyond_the_last_bucket),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
