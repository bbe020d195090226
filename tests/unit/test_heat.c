/* Goal: heat, one property at a time: which requests count, for how long, and how counts are reset.
 *
 * Method: the test sets the time and reads through heat/heat.h. test_heat_rows.c tests names and rows,
 * test_heat_bounds.c bounds under any stream, test_heat_threads.c readers beside a writer. */
#include "heat/internal.h"
#include "tests/lib/heat_fixture.h"

#include <malloc.h>

/* ---- windows and time ---- */

/* Even traffic shows its rate in both windows from the first moment on. */
static void test_an_even_rate_shows_at_once(void **state)
{
	struct fixture *fixture = *state;

	for (int ms = 1; ms <= 30000; ms++) {
		pass(fixture, MS);
		reads_of(fixture, "even", 2);
		if (ms == 30 || ms == 300 || ms == 5000 || ms == 30000) {
			struct hs_heat_row row = find(fixture, HS_HEAT_KEYS, "even");

			for (enum hs_heat_window w = 0; w < HS_HEAT_WINDOWS; w++) {
				/* The requests come in steps of a millisecond, so the rate is not exact. */
				assert_true(fabs(row.window[w].ops_low / 2000 - 1) < 0.01);
				assert_true(fabs(row.window[w].bytes_low / 200000 - 1) < 0.01);
				assert_near(row.window[w].ops_high, row.window[w].ops_low);
				assert_near(hs_heat_total(&fixture->heat, 1, w, fixture->now_us),
					    row.window[w].ops_low);
			}
		}
	}
}

/* Counts decay by a factor of e per window length, whether or not the worker updates its clock. */
static void test_windows_decay(void **state)
{
	struct fixture *fixture = *state;
	struct hs_heat_row first, later;

	/* After 100 s both windows are full: a rate is the count divided by the window. */
	pass(fixture, 100 * SECOND);
	reads_of(fixture, "burst", 5000);
	first = find(fixture, HS_HEAT_KEYS, "burst");
	assert_near(first.window[HS_HEAT_SHORT].ops_low, 5000 / SHORT_S);
	assert_near(first.window[HS_HEAT_LONG].ops_low, 5000 / 10.0);
	assert_near(first.window[HS_HEAT_LONG].bytes_low, 500000 / 10.0);
	for (int told = 0; told < 2; told++) {
		fixture->now_us += 300 * MS;
		if (told)
			hs_heat_now(fixture->heat, fixture->now_us);
		later = find(fixture, HS_HEAT_KEYS, "burst");
		assert_near(later.window[HS_HEAT_SHORT].ops_low,
			    5000 / SHORT_S * exp(-0.3 / SHORT_S * (told + 1)));
		assert_near(later.window[HS_HEAT_LONG].ops_low, 500 * exp(-0.03 * (told + 1)));
		assert_near(hs_heat_total(&fixture->heat, 1, HS_HEAT_SHORT, fixture->now_us),
			    5000 / SHORT_S * exp(-0.3 / SHORT_S * (told + 1)));
	}
	pass(fixture, 9400 * MS);
	later = find(fixture, HS_HEAT_KEYS, "burst");
	assert_near(later.window[HS_HEAT_LONG].ops_low, 500 * exp(-1));
}

/* After ten times the short window, five thousand requests count as less than half a request in the short window.
 * In the long window they count for much longer. */
static void test_cooled_keys_leave_the_list(void **state)
{
	struct fixture *fixture = *state;

	reads_of(fixture, "cooling", 5000);
	pass(fixture, 500 * MS);
	top(fixture, HS_HEAT_KEYS, HS_HEAT_BY_OPS, HS_HEAT_SHORT);
	assert_non_null(listed(fixture, "cooling"));
	pass(fixture, 500 * MS);
	top(fixture, HS_HEAT_KEYS, HS_HEAT_BY_OPS, HS_HEAT_SHORT);
	assert_null(listed(fixture, "cooling"));
	top(fixture, HS_HEAT_KEYS, HS_HEAT_BY_OPS, HS_HEAT_LONG);
	assert_non_null(listed(fixture, "cooling"));
	pass(fixture, 50 * SECOND);
	top(fixture, HS_HEAT_KEYS, HS_HEAT_BY_OPS, HS_HEAT_LONG);
	assert_non_null(listed(fixture, "cooling"));
	pass(fixture, 50 * SECOND);
	assert_int_equal(top(fixture, HS_HEAT_KEYS, HS_HEAT_BY_OPS, HS_HEAT_LONG), 0);
}

static void test_time_stands_still_and_goes_back(void **state)
{
	struct fixture *fixture = *state;
	struct hs_heat_row row;

	pass(fixture, 100 * SECOND);
	reads_of(fixture, "k", 100);
	assert_int_equal(hs_heat_seen_us(fixture->heat), fixture->now_us);
	hs_heat_now(fixture->heat, fixture->now_us);
	reads_of(fixture, "k", 100);
	hs_heat_now(fixture->heat, fixture->now_us - 50 * SECOND);
	reads_of(fixture, "k", 100);
	hs_heat_now(fixture->heat, 0);
	reads_of(fixture, "k", 100);
	assert_int_equal(hs_heat_seen_us(fixture->heat), fixture->now_us);
	row = find(fixture, HS_HEAT_KEYS, "k");
	assert_near(row.window[HS_HEAT_SHORT].ops_low, 400 / SHORT_S);
	assert_near(row.window[HS_HEAT_LONG].ops_low, 400 / 10.0);
}

/* The clock jumps ahead by a month, and then by a century. */
static void test_time_jumps_ahead(void **state)
{
	struct fixture *fixture = *state;
	struct hs_heat_row row;

	reads_of(fixture, "before", 1000);
	pass(fixture, (uint64_t)30 * 86400 * SECOND);
	reads_of(fixture, "after", 10);
	assert_int_equal(top(fixture, HS_HEAT_KEYS, HS_HEAT_BY_OPS, HS_HEAT_LONG), 1);
	assert_true(row_is(&fixture->rows[0], "after"));
	row = find(fixture, HS_HEAT_KEYS, "before");
	assert_near(row.window[HS_HEAT_LONG].ops_high, 0);
	row = find(fixture, HS_HEAT_KEYS, "after");
	assert_near(row.window[HS_HEAT_LONG].ops_low, 1);
	assert_near(row.window[HS_HEAT_LONG].ops_high, 1);
	pass(fixture, (uint64_t)36500 * 86400 * SECOND);
	reads_of(fixture, "last", 10);
	top(fixture, HS_HEAT_KEYS, HS_HEAT_BY_OPS, HS_HEAT_LONG);
	assert_non_null(listed(fixture, "last"));
}

/* A reader whose clock is behind the worker's clock gets the present counts. */
static void test_reader_behind_the_worker(void **state)
{
	struct fixture *fixture = *state;
	struct hs_heat_row row;

	pass(fixture, 100 * SECOND);
	reads_of(fixture, "k", 100);
	fixture->now_us -= 2 * MS;
	row = find(fixture, HS_HEAT_KEYS, "k");
	assert_true(fabs(row.window[HS_HEAT_SHORT].ops_low * SHORT_S - 100) < 3);
	fixture->now_us = 0;
	row = find(fixture, HS_HEAT_KEYS, "k");
	assert_true(isfinite(row.window[HS_HEAT_SHORT].ops_low));
	assert_true(isfinite(row.window[HS_HEAT_SHORT].ops_high));
	assert_true(isfinite(hs_heat_total(&fixture->heat, 1, HS_HEAT_SHORT, 0)));
}

/* ---- reset and notes ---- */

static void test_reset_forgets_tables_and_nothing_else(void **state)
{
	struct fixture *fixture = *state;
	struct hs_heat_partition before = {0}, after = {0};
	struct hs_heat_access access = to(HS_LIT("user:1"));
	struct hs_heat_row row;
	uint64_t ranges[HS_HEAT_RANGES] = {0};

	reads_of(fixture, "user:1", 1000);
	hs_heat_read_partition(fixture->heat, access.partition, &before);
	fixture->now_us += SECOND;
	hs_heat_reset(fixture->heat, fixture->now_us);
	/* Readers see empty tables even before the worker has acted on the reset. */
	for (int told = 0; told < 2; told++) {
		fixture->now_us += SECOND;
		for (enum hs_heat_what what = 0; what < HS_HEAT_TABLES; what++)
			assert_int_equal(top(fixture, what, HS_HEAT_BY_OPS, HS_HEAT_LONG), 0);
		row = find(fixture, HS_HEAT_KEYS, "user:1");
		assert_int_equal(row.workers, 0);
		assert_near(row.window[HS_HEAT_LONG].ops_high, 0);
		assert_near(hs_heat_total(&fixture->heat, 1, HS_HEAT_LONG, fixture->now_us), 0);
		hs_heat_now(fixture->heat, fixture->now_us);
	}
	hs_heat_read_partition(fixture->heat, access.partition, &after);
	assert_memory_equal(&before, &after, sizeof after);
	hs_heat_read_ranges(fixture->heat, ranges);
	assert_int_equal(ranges[access.slot / (HS_SLOTS / HS_HEAT_RANGES)], 1000);
	/* The rate covers only the time since the reset: 300 requests in three seconds. */
	for (int i = 0; i < 100; i++) {
		pass(fixture, 10 * MS);
		reads_of(fixture, "user:1", 3);
	}
	row = find(fixture, HS_HEAT_KEYS, "user:1");
	assert_true(fabs(row.window[HS_HEAT_LONG].ops_low / 100 - 1) < 0.2);
	assert_int_equal(row.total_reads, 300);
	assert_int_equal(top(fixture, HS_HEAT_PREFIXES, HS_HEAT_BY_OPS, HS_HEAT_LONG), 1);
}

static void test_noted_requests_count_when_settled(void **state)
{
	struct fixture *fixture = *state;
	struct hs_heat_access access = to(HS_LIT("noted:1"));
	struct hs_heat_partition sum = {0};

	hs_heat_settle(fixture->heat, 1000); /* nothing is noted */
	assert_int_equal(top(fixture, HS_HEAT_KEYS, HS_HEAT_BY_OPS, HS_HEAT_LONG), 0);
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < HS_HEAT_NOTES_MAX; i++)
			hs_heat_note(fixture->heat, &access);
		hs_heat_settle(fixture->heat, 7000);
	}
	assert_int_equal(find(fixture, HS_HEAT_KEYS, "noted:1").total_reads, 2 * HS_HEAT_NOTES_MAX);
	assert_int_equal(find(fixture, HS_HEAT_PREFIXES, "noted:").total_reads,
			 2 * HS_HEAT_NOTES_MAX);
	hs_heat_read_partition(fixture->heat, access.partition, &sum);
	assert_int_equal(sum.reads, 2 * HS_HEAT_NOTES_MAX);
	assert_int_equal(sum.time_ns, (uint64_t)2 * HS_HEAT_NOTES_MAX * 7000);
}

/* Equal notes of one key in a row count together. Notes that differ, or that missed, count separately. */
static void test_several_notes_before_settling(void **state)
{
	struct fixture *fixture = *state;
	struct hs_heat_access one = to(HS_LIT("row:1")), other = to(HS_LIT("row:2")), missed = one;
	struct hs_heat_partition sum = {0};

	missed.missed = true;
	for (int i = 0; i < 20; i++) {
		for (int j = 0; j < 5; j++)
			hs_heat_note(fixture->heat, &one);
		hs_heat_note(fixture->heat, &other);
		hs_heat_note(fixture->heat, &missed);
		hs_heat_note(fixture->heat, &one);
		assert_int_equal(hs_heat_settle(fixture->heat, 1000).slot, one.slot);
	}
	assert_int_equal(find(fixture, HS_HEAT_KEYS, "row:1").total_reads, 20 * 7);
	assert_int_equal(find(fixture, HS_HEAT_KEYS, "row:2").total_reads, 20);
	assert_int_equal(find(fixture, HS_HEAT_PREFIXES, "row:").total_reads, 20 * 8);
	assert_near(find(fixture, HS_HEAT_KEYS, "row:1").window[HS_HEAT_LONG].ops_low /
			    find(fixture, HS_HEAT_KEYS, "row:2").window[HS_HEAT_LONG].ops_low,
		    7);
	assert_near(hs_heat_total(&fixture->heat, 1, HS_HEAT_LONG, fixture->now_us) /
			    find(fixture, HS_HEAT_KEYS, "row:2").window[HS_HEAT_LONG].ops_low,
		    8);
	hs_heat_read_partition(fixture->heat, one.partition, &sum);
	assert_int_equal(sum.reads, 20 * (one.partition == other.partition ? 8 : 7));
	assert_int_equal(sum.histogram[hs_coarse_histogram_bucket(1)], sum.reads);
}

/* A run counts equal accesses together, and loses no access that differs in key, time or outcome. */
static void test_runs(void **state)
{
	struct fixture *fixture = *state;
	struct hs_heat_access one = to(HS_LIT("row:1")), missed = one;
	struct hs_heat_partition sum = {0};
	struct hs_heat_warmth warmth = hs_heat_run_end(fixture->heat); /* the run is empty */

	assert_int_equal(warmth.key.len, 0);
	missed.missed = true;
	for (int i = 0; i < 20; i++) {
		for (int j = 0; j < 5; j++)
			hs_heat_run_add(fixture->heat, &one, 1000);
		hs_heat_run_add(fixture->heat, &one, 7000);
		hs_heat_run_add(fixture->heat, &missed, 7000);
		warmth = hs_heat_run_end(fixture->heat);
		assert_memory_equal(warmth.key.data, "row:1", 5);
		assert_int_equal(warmth.slot, one.slot);
	}
	assert_near(warmth.share, 1);
	assert_int_equal(find(fixture, HS_HEAT_KEYS, "row:1").total_reads, 20 * 7);
	assert_int_equal(find(fixture, HS_HEAT_PREFIXES, "row:").total_reads, 20 * 7);
	hs_heat_read_partition(fixture->heat, one.partition, &sum);
	assert_int_equal(sum.reads, 20 * 7);
	assert_int_equal(sum.bytes, 20 * 7 * one.bytes);
	assert_int_equal(sum.time_ns, 20 * (5 * 1000 + 2 * 7000));
	assert_int_equal(sum.histogram[hs_coarse_histogram_bucket(1)], 20 * 5);
	assert_int_equal(sum.histogram[hs_coarse_histogram_bucket(7)], 20 * 2);
	assert_int_equal(hs_heat_add(fixture->heat, &one, 1000).slot, one.slot);
}

/* ---- partitions, ranges, memory ---- */

static void test_partitions_count_exactly(void **state)
{
	struct fixture *fixture = *state;
	struct hs_heat_partition sum = {.reads = 1000, .inflight = 7};
	struct hs_heat_access access = {.key = HS_LIT("k"), .bytes = 30, .partition = 3};

	for (int i = 0; i < 10; i++)
		hs_heat_add(fixture->heat, &access, 3000);
	access.write = true;
	access.failed = true;
	for (int i = 0; i < 4; i++)
		hs_heat_add(fixture->heat, &access, 100000);
	hs_heat_add_keyless(fixture->heat, 3, false, false, 5000, 3000);
	hs_heat_add_keyless(fixture->heat, 3, true, true, 6000, 3000);
	hs_heat_inflight(fixture->heat, 3, 5);
	hs_heat_inflight(fixture->heat, 3, -2);
	hs_heat_inflight(fixture->heat, 4, -1);
	hs_heat_read_partition(fixture->heat, 3, &sum);
	/* The requests without a key are added to the earlier counts. */
	assert_int_equal(sum.reads, 1000 + 10 + 1);
	assert_int_equal(sum.writes, 4 + 1);
	assert_int_equal(sum.errors, 4 + 1);
	assert_int_equal(sum.bytes, 14 * 30 + 11000);
	assert_int_equal(sum.inflight, 7 + 3);
	assert_int_equal(sum.time_ns, 12 * 3000 + 4 * 100000);
	assert_int_equal(sum.histogram[hs_coarse_histogram_bucket(3)], 12);
	assert_int_equal(sum.histogram[hs_coarse_histogram_bucket(100)], 4);
	sum = (struct hs_heat_partition){0};
	hs_heat_read_partition(fixture->heat, 4, &sum);
	assert_int_equal(sum.reads, 0);
	assert_int_equal(sum.inflight, -1);
	/* Requests without a key are in no table of keys. */
	assert_int_equal(top(fixture, HS_HEAT_KEYS, HS_HEAT_BY_OPS, HS_HEAT_LONG), 1);
	assert_int_equal(fixture->rows[0].partition, 3);
}

static void test_ranges_of_slots(void **state)
{
	struct fixture *fixture = *state;
	uint64_t ranges[HS_HEAT_RANGES] = {0};

	for (uint32_t slot = 0; slot < HS_SLOTS; slot += 16) {
		struct hs_heat_access access = {.key = HS_LIT("k"), .slot = (uint16_t)slot};

		hs_heat_add(fixture->heat, &access, 1000);
	}
	reads_of(fixture, "k", 100);
	ranges[0] = 50;
	hs_heat_read_ranges(fixture->heat, ranges);
	for (uint32_t i = 0; i < HS_HEAT_RANGES; i++) {
		uint64_t wanted = 4 + (i == 0 ? 50 : 0);

		if (i == hs_slot_of(HS_LIT("k")) / (HS_SLOTS / HS_HEAT_RANGES))
			wanted += 100;
		assert_int_equal(ranges[i], wanted);
	}
}

/* Returns how much memory the heat of one worker uses. It never grows. */
static size_t bytes_of(const struct hs_heat *heat)
{
	return sizeof *heat + malloc_usable_size(heat->memory);
}

static void test_memory_is_bounded(void **state)
{
	struct fixture *fixture = *state;
	struct hs_heat *many = hs_heat_create(
		&(struct hs_heat_options){.seed = 1, .partitions = PARTITIONS + 100});
	size_t more = bytes_of(many) - bytes_of(fixture->heat);

	assert_true(bytes_of(fixture->heat) <= 256 * HS_KIB);
	assert_true(more <= 100 * 450);
	hs_heat_destroy(&many);
}

/* The hash shown to operators does not reveal the place of a key in the tables, whose seed is a secret. */
static void test_the_shown_hash_is_not_the_table_s(void **state)
{
	struct hs_heat_options options = {
		.seed = 1, .name_seeds = {2, 3}, .partitions = PARTITIONS};
	struct hs_heat *one = hs_heat_create(&options), *other;
	struct hs_heat_row row, again;

	(void)state;
	options.seed = 4;
	other = hs_heat_create(&options);
	hs_heat_now(one, START);
	hs_heat_now(other, START);
	for (int i = 0; i < 10; i++) {
		struct hs_heat_access access = to(HS_LIT("k"));

		hs_heat_add(one, &access, 1000);
		hs_heat_add(other, &access, 1000);
	}
	hs_heat_find(&one, 1, HS_HEAT_KEYS, HS_LIT("k"), 0, START, &row);
	hs_heat_find(&other, 1, HS_HEAT_KEYS, HS_LIT("k"), 0, START, &again);
	assert_int_not_equal(row.id, again.id);
	assert_int_equal(row.public_id, again.public_id);
	assert_int_equal(row.public_id, hs_heat_public_id(one, HS_LIT("k")));
	hs_heat_top(&one, 1, &(struct hs_heat_query){.what = HS_HEAT_KEYS}, START + MS, &row, 1);
	assert_int_equal(row.public_id, again.public_id);
	hs_heat_destroy(&one);
	hs_heat_destroy(&other);
}

/* Without the seed, the place of a key in the tables cannot be predicted. */
static void test_seed_decides_where_keys_land(void **state)
{
	struct fixture *fixture = *state;
	struct hs_heat *other =
		hs_heat_create(&(struct hs_heat_options){.seed = 4712, .partitions = PARTITIONS});
	struct hs_heat_access access = to(HS_LIT("k"));
	struct hs_heat_row row;

	hs_heat_now(other, START);
	hs_heat_add(other, &access, 1000);
	hs_heat_find(&other, 1, HS_HEAT_KEYS, access.key, 0, START + MS, &row);
	reads_of(fixture, "k", 1);
	assert_true(row.id != find(fixture, HS_HEAT_KEYS, "k").id);
	hs_heat_destroy(&other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_an_even_rate_shows_at_once),
		TEST(test_windows_decay),
		TEST(test_cooled_keys_leave_the_list),
		TEST(test_time_stands_still_and_goes_back),
		TEST(test_time_jumps_ahead),
		TEST(test_reader_behind_the_worker),
		TEST(test_reset_forgets_tables_and_nothing_else),
		TEST(test_noted_requests_count_when_settled),
		TEST(test_several_notes_before_settling),
		TEST(test_runs),
		TEST(test_partitions_count_exactly),
		TEST(test_ranges_of_slots),
		TEST(test_memory_is_bounded),
		TEST(test_the_shown_hash_is_not_the_table_s),
		TEST(test_seed_decides_where_keys_land),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
