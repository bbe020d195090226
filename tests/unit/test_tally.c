/* Goal: the differences between readings of a table add up to exactly what was counted, whichever rows drop out
 * and return between readings.
 *
 * Method: rows made by hand, so that totals restart, rows drop out and rows return when a test wants it; the
 * last test does all of that at random and compares exact sums. */
#include "telemetry/tally.h"

#include "base/prng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { BEGUN_US = 5000000, BEFORE_US = 1000000, AFTER_US = 6000000 };

static struct hs_heat_row row(uint64_t id, uint64_t since_us, uint64_t bytes, uint64_t ns)
{
	return (struct hs_heat_row){
		.id = id, .total_since_us = since_us, .total_bytes = bytes, .total_ns = ns};
}

/* Reads a table of one row and returns the bytes that the row added. */
static uint64_t added_bytes(struct hs_tally *tally, struct hs_heat_row one)
{
	hs_tally_differ(tally, &one, 1);
	return one.total_bytes;
}

static struct hs_tally *begun_with(struct hs_heat_row one)
{
	struct hs_tally *tally = calloc(1, sizeof *tally);

	hs_tally_begin(tally, &one, 1, BEGUN_US);
	return tally;
}

static void test_totals_become_differences(void **state)
{
	struct hs_tally *tally = begun_with(row(7, BEFORE_US, 100, 40));
	struct hs_heat_row rows[] = {row(9, AFTER_US, 20, 5), row(7, BEFORE_US, 130, 41)};

	(void)state;
	hs_tally_differ(tally, rows, 2);
	assert_int_equal(rows[0].id, 7); /* sorted by id */
	assert_int_equal(rows[0].total_bytes, 30);
	assert_int_equal(rows[0].total_ns, 1);
	assert_int_equal(rows[1].id, 9);
	assert_int_equal(rows[1].total_bytes, 20);
	assert_int_equal(rows[1].total_ns, 5);
	assert_int_equal(added_bytes(tally, row(9, AFTER_US, 20, 5)), 0);
	free(tally);
}

static void test_a_total_that_started_again_counts_from_zero(void **state)
{
	struct hs_tally *tally = begun_with(row(7, BEFORE_US, 100, 100));

	(void)state;
	/* A total smaller than before has restarted: all of it counts. */
	assert_int_equal(added_bytes(tally, row(7, BEFORE_US, 60, 100)), 60);
	assert_int_equal(added_bytes(tally, row(7, BEFORE_US, 80, 50)), 80);
	/* A larger total with a later start time has restarted, too. */
	assert_int_equal(added_bytes(tally, row(7, AFTER_US, 90, 60)), 90);
	assert_int_equal(added_bytes(tally, row(7, AFTER_US, 91, 60)), 1);
	free(tally);
}

static void test_a_row_that_drops_out_keeps_its_sum(void **state)
{
	struct hs_tally *tally = begun_with(row(7, BEFORE_US, 100, 100));
	struct hs_heat_row none;

	(void)state;
	assert_int_equal(added_bytes(tally, row(8, AFTER_US, 1000, 1000)), 1000);
	for (int i = 0; i < 10; i++)
		hs_tally_differ(tally, &none, 0);
	assert_int_equal(added_bytes(tally, row(7, BEFORE_US, 101, 101)), 1);
	assert_int_equal(added_bytes(tally, row(8, AFTER_US, 1002, 1002)), 2);
	free(tally);
}

static void test_a_row_missing_at_the_beginning_counts_from_its_return(void **state)
{
	struct hs_tally *tally = begun_with(row(1, BEFORE_US, 1, 1));

	(void)state;
	assert_int_equal(added_bytes(tally, row(7, BEFORE_US, 5000, 5000)), 0);
	assert_int_equal(added_bytes(tally, row(7, BEFORE_US, 5003, 5003)), 3);
	/* The row's start time is a little too early, because a worker's clock is behind: all of it counts. */
	assert_int_equal(added_bytes(tally, row(8, BEGUN_US - 1000, 50, 50)), 50);
	/* The start time is unknown: all of the total counts. */
	assert_int_equal(added_bytes(tally, row(9, 0, 50, 50)), 50);
	free(tally);
}

static void test_begin_starts_a_new_count(void **state)
{
	struct hs_tally *tally = begun_with(row(7, BEFORE_US, 100, 100));
	struct hs_heat_row now = row(7, BEFORE_US, 500, 500);

	(void)state;
	hs_tally_begin(tally, &now, 1, AFTER_US);
	assert_int_equal(added_bytes(tally, row(7, BEFORE_US, 501, 500)), 1);
	/* Row 8 began before the new count began: its total is not new. */
	assert_int_equal(added_bytes(tally, row(8, BEGUN_US, 9, 9)), 0);
	free(tally);
}

/* Each reading is full of new keys: memory stays bounded, and a row that is in every reading is counted
 * correctly. */
static void test_many_keys_that_take_each_others_place(void **state)
{
	struct hs_tally *tally = begun_with(row(UINT64_MAX, BEFORE_US, 0, 0));
	struct hs_heat_row *rows = calloc(HS_TALLY_ROWS, sizeof *rows);
	uint64_t id = 1;

	(void)state;
	for (uint64_t reading = 1; reading <= 20; reading++) {
		for (size_t i = 0; i < HS_TALLY_ROWS - 1; i++)
			rows[i] = row(id++, AFTER_US, 10, 10);
		rows[HS_TALLY_ROWS - 1] = row(UINT64_MAX, BEFORE_US, reading * 3, reading);
		hs_tally_differ(tally, rows, HS_TALLY_ROWS);
		assert_true(tally->count <= HS_TALLY_READINGS_MAX);
		for (size_t i = 0; i < HS_TALLY_ROWS - 1; i++)
			assert_int_equal(rows[i].total_bytes, 10);
		assert_int_equal(rows[HS_TALLY_ROWS - 1].total_bytes, 3);
		assert_int_equal(rows[HS_TALLY_ROWS - 1].total_ns, 1);
	}
	free(rows);
	free(tally);
}

/* One key of the random test: its exact count since the beginning, and the sum of the differences. */
struct truth {
	uint64_t since_us, total, added, reported;
};

static void step(struct hs_prng *prng, struct truth *truth, uint64_t now_us)
{
	uint64_t more = hs_prng_below(prng, 100);

	if (hs_prng_below(prng, 10) == 0) {
		truth->total = 0;
		truth->since_us = now_us;
	}
	truth->total += more;
	truth->added += more;
}

static void test_sums_are_exact_whatever_happens(void **state)
{
	enum { KEYS = 200, READINGS = 500 };
	struct truth *truths = calloc(KEYS, sizeof *truths);
	struct hs_heat_row rows[KEYS];
	struct hs_tally *tally = calloc(1, sizeof *tally);
	struct hs_prng prng;

	(void)state;
	hs_prng_init(&prng, 11);
	for (size_t i = 0; i < KEYS; i++) {
		truths[i].since_us = BEFORE_US;
		truths[i].total = hs_prng_below(&prng, 1000000);
		rows[i] = row(i * 77 % 1009, BEFORE_US, truths[i].total, truths[i].total);
	}
	hs_tally_begin(tally, rows, KEYS, BEGUN_US);
	for (uint64_t reading = 0; reading < READINGS; reading++) {
		size_t count = 0;

		for (size_t i = 0; i < KEYS; i++) {
			/* A row that drops out has no traffic until it returns, as in the real table. */
			if (reading < READINGS - 1 && hs_prng_below(&prng, 3) == 0)
				continue;
			step(&prng, &truths[i], BEGUN_US + reading * 250000);
			rows[count] = row(i * 77 % 1009, truths[i].since_us, truths[i].total,
					  truths[i].total);
			rows[count++].slot = (uint16_t)i;
		}
		hs_tally_differ(tally, rows, count);
		for (size_t i = 0; i < count; i++) {
			assert_int_equal(rows[i].total_bytes, rows[i].total_ns);
			truths[rows[i].slot].reported += rows[i].total_bytes;
		}
	}
	for (size_t i = 0; i < KEYS; i++)
		assert_int_equal(truths[i].reported, truths[i].added);
	free(truths);
	free(tally);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_totals_become_differences),
		cmocka_unit_test(test_a_total_that_started_again_counts_from_zero),
		cmocka_unit_test(test_a_row_that_drops_out_keeps_its_sum),
		cmocka_unit_test(test_a_row_missing_at_the_beginning_counts_from_its_return),
		cmocka_unit_test(test_begin_starts_a_new_count),
		cmocka_unit_test(test_many_keys_that_take_each_others_place),
		cmocka_unit_test(test_sums_are_exact_whatever_happens),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
