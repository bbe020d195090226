/* Goal: the board has a history of ten minutes, one entry per second, oldest first. Every average is exact, even
 * if clocks jump.
 *
 * Method: counted traffic, second by second, on clocks that the test sets; clocks that stand still, jump and skip;
 * more seconds than the board has room for. */
#include "tests/lib/fleet.h"

#include <math.h>

static void test_each_second_has_its_averages(void **state)
{
	const struct hs_fields *fields = &hs_board_second_partition_fields;
	struct fleet fleet;

	(void)state;
	assert_string_equal(fleet_names(fields), "id ops reads writes bytes p99_us errors");
	fleet_init(&fleet, 2);
	for (int second = 0; second < 5; second++)
		fleet_run(&fleet, "k", 1, 100 * (second + 1), 1000000, 50000);
	assert_int_equal(hs_board_seconds(fleet.board, 600), 5);
	for (size_t i = 0; i < 5; i++) {
		struct hs_board_second second = hs_board_second(fleet.board, 600, i);

		assert_int_equal(second.wall_s, 1700000000 + i);
		assert_string_equal(fleet_text(fields, &second.partitions[1], "id"), "1");
		assert_true(fleet_number(fields, &second.partitions[1], "ops") ==
			    (double)(100 * (i + 1)));
		assert_true(fleet_number(fields, &second.partitions[1], "reads") ==
			    (double)(100 * (i + 1)));
		assert_true(fleet_number(fields, &second.partitions[1], "bytes") ==
			    (double)(10000 * (i + 1)));
		assert_near(fleet_number(fields, &second.partitions[1], "p99_us"), 11, 0.2);
		assert_true(second.partitions[0].ops == 0);
		assert_true(second.partitions[0].p99_us == 0);
	}
	fleet_deinit(&fleet);
}

static void test_each_second_has_its_partitions(void **state)
{
	struct hs_board_second second;
	struct fleet fleet;

	(void)state;
	fleet_init(&fleet, 3);
	assert_int_equal(hs_board_second_partitions_max(fleet.board), 3);
	fleet.facts[0].absent = true;
	fleet_hit(&fleet, "k", 2, 500);
	fleet_pass(&fleet, 1000000);
	fleet.facts[1].absent = true;
	fleet_pass(&fleet, 1000000);
	assert_int_equal(hs_board_seconds(fleet.board, 10), 2);
	second = hs_board_second(fleet.board, 10, 0);
	assert_int_equal(second.partitions_count, 2);
	assert_string_equal(second.partitions[0].id, "1");
	assert_string_equal(second.partitions[1].id, "2");
	assert_near((double)second.partitions[1].ops, 500, 0.001);
	second = hs_board_second(fleet.board, 10, 1);
	assert_int_equal(second.partitions_count, 1);
	assert_string_equal(second.partitions[0].id, "2");
	assert_int_equal(hs_board_second_partitions_max(fleet.board), 2);
	fleet_deinit(&fleet);
}

static void test_writes_and_errors(void **state)
{
	struct hs_board_second second;
	struct fleet fleet;

	(void)state;
	fleet_init(&fleet, 1);
	for (int i = 0; i < 30; i++)
		fleet_add(&fleet, i % 2,
			  (struct hs_heat_access){
				  .key = HS_LIT("k"), .write = i % 3 == 0, .failed = i % 10 == 0},
			  i == 0 ? 9000 : 10);
	fleet_pass(&fleet, 1000000);
	second = hs_board_second(fleet.board, 1, 0);
	assert_true(second.partitions[0].writes == 10);
	assert_true(second.partitions[0].reads == 20);
	assert_true(second.partitions[0].ops == 30);
	assert_true(second.partitions[0].errors == 3);
	assert_near((double)second.partitions[0].p99_us, 9000, 0.3);
	fleet_deinit(&fleet);
}

static void test_ranges_of_slots(void **state)
{
	uint16_t slot = hs_slot_of(HS_LIT("k"));
	size_t range = slot / (HS_SLOTS / HS_HEAT_RANGES);
	struct fleet fleet;

	(void)state;
	fleet_init(&fleet, 1);
	fleet_run(&fleet, "k", 0, 300, 1000000, 50000);
	fleet_run(&fleet, "k", 0, 700, 1000000, 50000);
	assert_int_equal(hs_board_seconds(fleet.board, 600), 2);
	assert_true(hs_board_second(fleet.board, 600, 0).ranges[range] == 300);
	assert_true(hs_board_second(fleet.board, 600, 1).ranges[range] == 700);
	for (size_t i = 0; i < HS_HEAT_RANGES; i++) {
		if (i != range)
			assert_true(hs_board_second(fleet.board, 600, 1).ranges[i] == 0);
	}
	fleet_deinit(&fleet);
}

static void test_the_hottest_keys_of_each_second(void **state)
{
	struct hs_board_second second;
	struct fleet fleet;

	(void)state;
	fleet_init(&fleet, 1);
	/* Two seconds with enough requests for the short window. A second of the history lists only the keys that
	 * were hot at its end. */
	fleet_run(&fleet, "first", 0, 20000, 1000000, 20000);
	fleet_run(&fleet, "second", 0, 20000, 1000000, 20000);
	/* A second with too few requests: the short window is shown only because it still holds requests of the
	 * seconds before. */
	fleet_run(&fleet, "third", 0, 100, 1000000, 20000);
	second = hs_board_second(fleet.board, 600, 0);
	assert_int_equal(second.keys_count, 1);
	assert_int_equal(second.window, HS_HEAT_SHORT);
	assert_int_equal(second.keys[0].window, HS_HEAT_SHORT);
	assert_true(hs_bytes_equal(hs_board_name(&second.keys[0]), HS_LIT("first")));
	assert_near(second.keys[0].heat.window[HS_HEAT_SHORT].ops_low, 20000, 0.1);
	second = hs_board_second(fleet.board, 600, 1);
	assert_true(hs_bytes_equal(hs_board_name(&second.keys[0]), HS_LIT("second")));
	assert_near(second.keys[0].share, 1, 0.1);
	second = hs_board_second(fleet.board, 600, 2);
	assert_int_equal(second.window, HS_HEAT_SHORT);
	assert_true(hs_bytes_equal(hs_board_name(&second.keys[0]), HS_LIT("third")));
	fleet_deinit(&fleet);
	fleet_init(&fleet, 1);
	fleet_run(&fleet, "calm", 0, 100, 1000000, 20000);
	fleet_run(&fleet, "calmer", 0, 50, 1000000, 20000);
	second = hs_board_second(fleet.board, 600, 1);
	assert_int_equal(second.keys_count, 2);
	assert_int_equal(second.window, HS_HEAT_LONG);
	assert_int_equal(second.keys[0].window, HS_HEAT_LONG);
	fleet_deinit(&fleet);
}

static void test_keys_per_second_are_bounded(void **state)
{
	struct fleet fleet;

	(void)state;
	fleet_init(&fleet, 1);
	for (int k = 0; k < 3 * HS_BOARD_HISTORY_KEYS; k++) {
		char key[16];

		snprintf(key, sizeof key, "key%d", k);
		fleet_hit(&fleet, key, 0, 10 + k);
	}
	fleet_pass(&fleet, 1000000);
	assert_int_equal(hs_board_second(fleet.board, 1, 0).keys_count, HS_BOARD_HISTORY_KEYS);
	fleet_deinit(&fleet);
}

static void test_the_oldest_seconds_are_dropped(void **state)
{
	struct fleet fleet;

	(void)state;
	fleet_init(&fleet, 1);
	for (int i = 0; i < HS_BOARD_SECONDS + 50; i++) {
		fleet_hit(&fleet, "k", 0, i % 7);
		fleet_pass(&fleet, 1000000);
	}
	assert_int_equal(hs_board_seconds(fleet.board, 10000), HS_BOARD_SECONDS);
	assert_int_equal(hs_board_seconds(fleet.board, 3), 3);
	for (size_t i = 0; i < HS_BOARD_SECONDS; i++) {
		struct hs_board_second second = hs_board_second(fleet.board, 10000, i);

		assert_int_equal(second.wall_s, 1700000050 + i);
		assert_true(second.partitions[0].ops == (float)((i + 50) % 7));
	}
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(hs_board_second(fleet.board, 3, i).wall_s,
				 1700000000 + HS_BOARD_SECONDS + 47 + i);
	fleet_deinit(&fleet);
}

/* A second of the history begins when a second of the wall clock begins, whenever the server was started. */
static void test_seconds_of_the_wall_clock(void **state)
{
	struct fleet fleet;

	(void)state;
	fleet_init(&fleet, 1);
	fleet.now.wall_us += 700000;
	hs_board_reset(fleet.board, fleet.now);
	fleet_run(&fleet, "k", 0, 1000, 2300000, 50000);
	assert_int_equal(hs_board_seconds(fleet.board, 600), 3);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(hs_board_second(fleet.board, 600, i).wall_s, 1700000000 + i);
		/* The rate is also right for the first second, which lasts 300 ms. */
		assert_near((double)hs_board_second(fleet.board, 600, i).partitions[0].ops, 1000,
			    0.01);
	}
	fleet_deinit(&fleet);
}

static void test_a_short_part_of_a_second_joins_the_next(void **state)
{
	struct fleet fleet;

	(void)state;
	fleet_init(&fleet, 1);
	fleet.now.wall_us += 980000;
	hs_board_reset(fleet.board, fleet.now);
	fleet_hit(&fleet, "k", 0, 1);
	fleet_pass(&fleet, 20000);
	assert_int_equal(hs_board_seconds(fleet.board, 600), 0);
	fleet_hit(&fleet, "k", 0, 101);
	fleet_pass(&fleet, 1000000);
	assert_int_equal(hs_board_seconds(fleet.board, 600), 1);
	assert_int_equal(hs_board_second(fleet.board, 600, 0).wall_s, 1700000001);
	assert_near((double)hs_board_second(fleet.board, 600, 0).partitions[0].ops, 100, 0.001);
	fleet_deinit(&fleet);
}

static void test_seconds_without_samples_are_left_out(void **state)
{
	struct fleet fleet;

	(void)state;
	fleet_init(&fleet, 1);
	fleet_pass(&fleet, 1000000);
	fleet_hit(&fleet, "k", 0, 5000);
	fleet_pass(&fleet, 5000000);
	fleet_pass(&fleet, 1000000);
	assert_int_equal(hs_board_seconds(fleet.board, 600), 3);
	assert_int_equal(hs_board_second(fleet.board, 600, 1).wall_s, 1700000001);
	assert_true(hs_board_second(fleet.board, 600, 1).partitions[0].ops == 1000);
	assert_int_equal(hs_board_second(fleet.board, 600, 2).wall_s, 1700000006);
	fleet_deinit(&fleet);
}

static void test_a_wall_clock_that_is_set(void **state)
{
	struct fleet fleet;

	(void)state;
	fleet_init(&fleet, 1);
	fleet_run(&fleet, "k", 0, 1000, 2500000, 50000);
	fleet.now.wall_us -= 3600000000;
	fleet_run(&fleet, "k", 0, 1000, 2000000, 50000);
	fleet.now.wall_us += 7200000000;
	fleet_run(&fleet, "k", 0, 1000, 2000000, 50000);
	/* The wall clock jumps forth and back every 10 ms for a second: the history does not begin a new second
	 * at each jump. */
	for (int i = 0; i < 100; i++) {
		fleet.now.wall_us += i % 2 ? 5000000 : -5000000;
		fleet_run(&fleet, "k", 0, 1000, 10000, 10000);
	}
	assert_true(hs_board_seconds(fleet.board, 600) > 6);
	assert_true(hs_board_seconds(fleet.board, 600) < 20);
	for (size_t i = 0; i < hs_board_seconds(fleet.board, 600); i++) {
		struct hs_board_second second = hs_board_second(fleet.board, 600, i);

		assert_near((double)second.partitions[0].ops, 1000, 0.02);
	}
	fleet_deinit(&fleet);
}

static void test_a_wall_clock_that_stands_still(void **state)
{
	struct fleet fleet;

	(void)state;
	fleet_init(&fleet, 1);
	for (int i = 0; i < 200; i++) {
		int64_t wall_us = fleet.now.wall_us;

		fleet_run(&fleet, "k", 0, 1000, 50000, 50000);
		fleet.now.wall_us = wall_us;
	}
	assert_int_equal(hs_board_seconds(fleet.board, 600), 5); /* of two seconds each */
	assert_near((double)hs_board_second(fleet.board, 600, 4).partitions[0].ops, 1000, 0.01);
	fleet_deinit(&fleet);
}

static void test_no_second_ends_while_the_clocks_stand_still(void **state)
{
	struct fleet fleet;

	(void)state;
	fleet_init(&fleet, 1);
	for (int i = 0; i < 100; i++) {
		fleet_hit(&fleet, "k", 0, 1);
		fleet_sample(&fleet);
	}
	assert_int_equal(hs_board_seconds(fleet.board, 600), 0);
	/* Only the wall clock moves. The monotonic clock stands still, so the board has no time to divide by. */
	for (int i = 0; i < 100; i++) {
		fleet.now.wall_us += 1000000;
		fleet_sample(&fleet);
	}
	assert_int_equal(hs_board_seconds(fleet.board, 600), 0);
	fleet_pass(&fleet, 1000000);
	assert_int_equal(hs_board_seconds(fleet.board, 600), 1);
	assert_true(hs_board_second(fleet.board, 600, 0).partitions[0].ops == 100);
	fleet_deinit(&fleet);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_second_has_its_averages),
		cmocka_unit_test(test_each_second_has_its_partitions),
		cmocka_unit_test(test_writes_and_errors),
		cmocka_unit_test(test_ranges_of_slots),
		cmocka_unit_test(test_the_hottest_keys_of_each_second),
		cmocka_unit_test(test_keys_per_second_are_bounded),
		cmocka_unit_test(test_the_oldest_seconds_are_dropped),
		cmocka_unit_test(test_seconds_of_the_wall_clock),
		cmocka_unit_test(test_a_short_part_of_a_second_joins_the_next),
		cmocka_unit_test(test_seconds_without_samples_are_left_out),
		cmocka_unit_test(test_a_wall_clock_that_is_set),
		cmocka_unit_test(test_a_wall_clock_that_stands_still),
		cmocka_unit_test(test_no_second_ends_while_the_clocks_stand_still),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
