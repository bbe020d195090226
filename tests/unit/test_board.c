/* Goal: a partition's rates are the real ones, in both windows, from the first moment on, whatever the sampling
 * intervals. Clocks that stand still or jump do no harm. Loads, medians and percentiles are correct.
 *
 * Method: the test feeds the workers' heat at a known rate, sets the time, and compares rows with computed
 * values. */
#include "tests/lib/fleet.h"

#include <math.h>

static void test_a_steady_rate_shows_as_itself(void **state)
{
	static const uint64_t steps_us[] = {1000, 10000, 50000, 70000, 250000, 1000000};

	(void)state;
	for (size_t i = 0; i < sizeof steps_us / sizeof *steps_us; i++) {
		struct fleet fleet;

		fleet_init(&fleet, 1);
		for (int second = 0; second < 5; second++) {
			struct hs_board_partition row;

			/* The first second covers a tenth of the long window; the rates are right from then on. */
			fleet_run(&fleet, "k", 0, 2000, 1000000, steps_us[i]);
			for (int window = 0; window < HS_HEAT_WINDOWS; window++) {
				row = fleet_partition(&fleet, 0, (enum hs_heat_window)window);
				assert_near(row.ops, 2000, 0.01);
				assert_near(row.reads, 2000, 0.01);
				assert_near(row.bytes, 200000, 0.01);
				assert_true(row.writes == 0);
			}
		}
		fleet_deinit(&fleet);
	}
}

static void test_uneven_samples_show_the_same(void **state)
{
	struct fleet fleet;
	uint64_t step_us = 1;

	(void)state;
	fleet_init(&fleet, 1);
	for (uint64_t us = 0; us < 30000000; us += step_us) {
		step_us = 10000 + us * 7919 % 190000;
		fleet_run(&fleet, "k", 0, 1000, step_us, step_us);
	}
	assert_near(fleet_partition(&fleet, 0, HS_HEAT_SHORT).ops, 1000, 0.02);
	assert_near(fleet_partition(&fleet, 0, HS_HEAT_LONG).ops, 1000, 0.02);
	fleet_deinit(&fleet);
}

static void test_rates_decay_after_the_load(void **state)
{
	struct fleet fleet;
	double before;

	(void)state;
	fleet_init(&fleet, 1);
	fleet_run(&fleet, "k", 0, 1000, 60000000, 50000);
	before = fleet_partition(&fleet, 0, HS_HEAT_LONG).ops;
	fleet_pass(&fleet, 1000000);
	assert_true(fleet_partition(&fleet, 0, HS_HEAT_SHORT).ops < 1);
	assert_near(fleet_partition(&fleet, 0, HS_HEAT_LONG).ops, before * exp(-0.1), 0.01);
	fleet_pass(&fleet, 9000000);
	assert_near(fleet_partition(&fleet, 0, HS_HEAT_LONG).ops, before * exp(-1), 0.01);
	fleet_pass(&fleet, 86400000000);
	assert_true(fleet_partition(&fleet, 0, HS_HEAT_SHORT).ops == 0);
	assert_true(fleet_partition(&fleet, 0, HS_HEAT_LONG).ops == 0);
	fleet_deinit(&fleet);
}

static void assert_sane(struct fleet *fleet)
{
	const struct hs_fields *fields = &hs_board_partition_fields;
	struct hs_board_partition rows[FLEET_PARTITIONS_MAX + 1];

	for (int window = 0; window < HS_HEAT_WINDOWS; window++) {
		hs_board_partitions(fleet->board, (enum hs_heat_window)window, rows);
		for (uint16_t id = 0; id <= fleet->partitions; id++) {
			for (size_t i = 0; i < fields->count; i++) {
				double value = hs_field_number(&fields->fields[i], &rows[id]);

				assert_true(isfinite(value));
				assert_true(value >= 0);
			}
			assert_true(isfinite(rows[id].ops) && isfinite(rows[id].load));
		}
	}
}

static void test_a_clock_that_stands_still_or_goes_back(void **state)
{
	struct fleet fleet;

	(void)state;
	fleet_init(&fleet, 2);
	assert_sane(&fleet); /* the test's clock has not moved since the board was made */
	fleet_hit(&fleet, "k", 0, 500);
	fleet_sample(&fleet);
	fleet_sample(&fleet);
	assert_sane(&fleet);
	assert_true(fleet_partition(&fleet, 0, HS_HEAT_LONG).ops == 0);
	fleet.now.mono_us -= 3000000;
	fleet_hit(&fleet, "k", 0, 500);
	fleet_sample(&fleet);
	assert_sane(&fleet);
	fleet.now.mono_us += 3000000;
	fleet_sample(&fleet);
	assert_sane(&fleet);
	/* The board lost no request: it shows all 1000 as soon as time has passed to divide by. */
	fleet_pass(&fleet, 1000000);
	assert_near(fleet_partition(&fleet, 0, HS_HEAT_LONG).ops, 1000, 0.06);
	assert_int_equal(fleet_partition(&fleet, 0, HS_HEAT_LONG).counted.reads, 1000);
	fleet_deinit(&fleet);
}

static void test_a_stuck_worker(void **state)
{
	struct hs_heat_query query = {.what = HS_HEAT_KEYS, .window = HS_HEAT_SHORT};
	struct hs_board_row rows[4];
	struct fleet fleet;
	size_t count;

	(void)state;
	fleet_init(&fleet, 2);
	fleet_run(&fleet, "both", 0, 1000, 1000000, 50000);
	fleet.stuck[1] = true;
	for (int i = 0; i < 40; i++) {
		for (int j = 0; j < 50; j++)
			fleet_add(&fleet, 0,
				  (struct hs_heat_access){.key = HS_LIT("alive"), .partition = 1},
				  10);
		fleet_pass(&fleet, 50000);
	}
	assert_sane(&fleet);
	assert_near(fleet_partition(&fleet, 1, HS_HEAT_SHORT).ops, 1000, 0.03);
	assert_true(fleet_partition(&fleet, 0, HS_HEAT_SHORT).ops < 1);
	count = hs_board_top(fleet.board, &query, rows, 4);
	assert_int_equal(count, 1);
	assert_int_equal(rows[0].name_len, 5);
	assert_memory_equal(rows[0].name, "alive", 5);
	fleet_deinit(&fleet);
}

/* ---- partitions ---- */

static void test_load_is_relative_to_the_mean(void **state)
{
	struct hs_board_partition rows[FLEET_PARTITIONS_MAX + 1];
	struct fleet fleet;

	(void)state;
	fleet_init(&fleet, 4);
	hs_board_partitions(fleet.board, HS_HEAT_SHORT, rows);
	for (int id = 0; id <= 4; id++)
		assert_true(rows[id].load == 0);
	fleet_hit(&fleet, "a", 0, 600);
	fleet_hit(&fleet, "b", 1, 300);
	fleet_hit(&fleet, "c", 2, 100);
	fleet_pass(&fleet, 50000);
	hs_board_partitions(fleet.board, HS_HEAT_SHORT, rows);
	assert_near(rows[0].load, 2.4, 0.0001);
	assert_near(rows[1].load, 1.2, 0.0001);
	assert_near(rows[2].load, 0.4, 0.0001);
	assert_true(rows[3].load == 0);
	assert_near(rows[4].load, 0.8, 0.0001);
	fleet_deinit(&fleet);
}

/* Gives each partition different numbers, so that the test notices a median taken from the wrong field. */
static void give_facts(struct fleet *fleet)
{
	for (uint16_t id = 0; id < fleet->partitions; id++) {
		struct hs_engine_partition *facts = &fleet->facts[id];

		snprintf(facts->address, sizeof facts->address, "store %u", id);
		snprintf(facts->slots, sizeof facts->slots, "%u-%u", id * 10, id * 10 + 9);
		facts->state = id == 2 ? HS_PARTITION_DOWN : HS_PARTITION_OK;
		snprintf(facts->unavailable_reason, sizeof facts->unavailable_reason, "%s",
			 id == 2 ? "it is away" : "");
		facts->queued = 10 + id;
		facts->bytes_used = 1000 + 100 * (uint64_t)id;
		facts->cpu = 0.25 * (1 + id);
		facts->clients = 20u + id;
		facts->replicas = 2u + id;
		facts->replica_lag_s = 3u + 2u * id;
		facts->replica_lag_bytes = 5000u + 10u * id;
		facts->slots_cpu = 0.5 * (1 + id);
		facts->net_in = 600 + 4 * id;
		facts->net_out = 700 + 6 * id;
		facts->commit_histogram[hs_coarse_histogram_bucket(1000 + 1000 * (uint64_t)id)] +=
			100;
		for (int i = 0; i <= 3 * id; i++)
			hs_heat_inflight(fleet->heats[i % FLEET_WORKERS], id, 1);
	}
}

static void test_the_median_of_an_odd_and_an_even_number(void **state)
{
	static const double ops[] = {100, 500, 300, 900};

	(void)state;
	for (uint16_t partitions = 1; partitions <= 4; partitions++) {
		/* Expected medians when one, two, three or four partitions are present: of 100; of 100 and 500;
		 * of 100, 300 and 500; of 100, 300, 500 and 900. */
		static const double wanted_ops[] = {100, 300, 300, 400};
		static const int64_t wanted_inflight[] = {1, 3, 4, 6}; /* of 1, 4, 7 and 10 */
		static const uint64_t wanted_memory[] = {1000, 1050, 1100, 1150};
		struct hs_board_partition rows[FLEET_PARTITIONS_MAX + 1];
		const struct hs_board_partition *median = &rows[partitions];
		struct fleet fleet;

		fleet_init(&fleet, partitions);
		give_facts(&fleet);
		for (uint16_t id = 0; id < partitions; id++)
			fleet_hit(&fleet, "some:key", id, (int)ops[id]);
		fleet_pass(&fleet, 1000000);
		hs_board_partitions(fleet.board, HS_HEAT_LONG, rows);
		assert_string_equal(median->id, "median");
		assert_string_equal(median->facts.address, "");
		assert_string_equal(median->facts.slots, "");
		assert_int_equal(median->top_key_len, 0);
		assert_near(median->ops, wanted_ops[partitions - 1], 0.001);
		assert_near(median->reads, wanted_ops[partitions - 1], 0.001);
		assert_int_equal(median->inflight, wanted_inflight[partitions - 1]);
		assert_int_equal(median->facts.bytes_used, wanted_memory[partitions - 1]);
		assert_near(median->facts.cpu, 0.125 * (1 + partitions), 0.001);
		assert_int_equal(median->facts.replica_lag_s, 2 + partitions);
		assert_int_equal(median->facts.replica_lag_bytes, 4995 + 5 * partitions);
		assert_near(median->facts.slots_cpu, 0.25 * (1 + partitions), 0.001);
		assert_near(median->facts.net_in, 598 + 2 * partitions, 0.001);
		assert_near(median->facts.net_out, 697 + 3 * partitions, 0.001);
		assert_true(median->p99_us > 0);
		fleet_deinit(&fleet);
	}
}

static void test_engine_facts_are_shown(void **state)
{
	const struct hs_fields *fields = &hs_board_partition_fields;
	struct hs_board_partition row;
	struct fleet fleet;

	(void)state;
	fleet_init(&fleet, 3);
	give_facts(&fleet);
	fleet_pass(&fleet, 50000);
	row = fleet_partition(&fleet, 2, HS_HEAT_LONG);
	assert_string_equal(fleet_text(fields, &row, "id"), "2");
	assert_string_equal(fleet_text(fields, &row, "address"), "store 2");
	assert_string_equal(fleet_text(fields, &row, "slots"), "20-29");
	assert_string_equal(fleet_text(fields, &row, "state"), "down");
	assert_string_equal(fleet_text(fields, &row, "reason"), "it is away");
	row = fleet_partition(&fleet, 1, HS_HEAT_LONG);
	assert_string_equal(fleet_text(fields, &row, "state"), "ok");
	assert_string_equal(fleet_text(fields, &row, "reason"), "");
	row = fleet_partition(&fleet, 3, HS_HEAT_LONG);
	assert_string_equal(fleet_text(fields, &row, "id"), "median");
	assert_string_equal(fleet_text(fields, &row, "state"), "");
	row = fleet_partition(&fleet, 2, HS_HEAT_LONG);
	assert_string_equal(fleet_text(fields, &row, "top_key"), "");
	assert_true(fleet_number(fields, &row, "queued") == 12);
	assert_true(fleet_number(fields, &row, "inflight") == 7);
	assert_true(fleet_number(fields, &row, "memory") == 1200);
	assert_true(fleet_number(fields, &row, "cpu") == 0.75);
	assert_true(fleet_number(fields, &row, "clients") == 22);
	assert_true(fleet_number(fields, &row, "replicas") == 4);
	assert_true(fleet_number(fields, &row, "replica_lag") == 7);
	assert_true(fleet_number(fields, &row, "replica_lag_bytes") == 5020);
	assert_true(fleet_number(fields, &row, "slots_cpu") == 1.5);
	assert_true(fleet_number(fields, &row, "net_in") == 608);
	assert_true(fleet_number(fields, &row, "net_out") == 712);
	assert_near(fleet_number(fields, &row, "commit_p99_us"), 3500, 0.2);
	fleet_deinit(&fleet);
}

/* Some partition ids in the middle are absent. The board shows, compares and counts only the partitions that are
 * present, each with its own facts and keys. */
static void test_absent_partitions(void **state)
{
	struct hs_board_partition rows[FLEET_PARTITIONS_MAX + 1];
	struct fleet fleet;

	(void)state;
	fleet_init(&fleet, 5);
	give_facts(&fleet);
	fleet.facts[0].absent = fleet.facts[2].absent = fleet.facts[4].absent = true;
	fleet_hit(&fleet, "a", 1, 300);
	fleet_hit(&fleet, "b", 2, 5000);
	fleet_hit(&fleet, "c", 3, 100);
	fleet_pass(&fleet, 50000);
	assert_int_equal(hs_board_partitions_count(fleet.board), 2);
	assert_int_equal(hs_board_capacity(fleet.board), 5);
	hs_board_partitions(fleet.board, HS_HEAT_SHORT, rows);
	assert_string_equal(rows[0].id, "1");
	assert_string_equal(rows[0].facts.address, "store 1");
	assert_near(rows[0].load, 1.5, 0.0001);
	assert_int_equal(rows[0].top_key_len, 1);
	assert_int_equal(rows[0].top_key[0], 'a');
	assert_string_equal(rows[1].id, "3");
	assert_near(rows[1].load, 0.5, 0.0001);
	assert_int_equal(rows[1].top_key[0], 'c');
	assert_string_equal(rows[2].id, "median");
	assert_near(rows[2].ops, (rows[0].ops + rows[1].ops) / 2, 0.0001);
	assert_int_equal(rows[2].facts.bytes_used, 1200); /* the median of 1100 and 1300 */

	/* Partition 2 appears: the board shows the requests counted while the partition was absent. */
	fleet.facts[2].absent = false;
	fleet_pass(&fleet, 50000);
	hs_board_partitions(fleet.board, HS_HEAT_LONG, rows);
	assert_string_equal(rows[1].id, "2");
	assert_true(rows[1].ops > rows[0].ops);
	for (int id = 0; id < 5; id++)
		fleet.facts[id].absent = true;
	fleet_pass(&fleet, 50000);
	assert_int_equal(hs_board_partitions_count(fleet.board), 0);
	hs_board_partitions(fleet.board, HS_HEAT_LONG, rows);
	assert_string_equal(rows[0].id, "median");
	assert_true(rows[0].ops == 0);
	fleet_deinit(&fleet);
}

static void test_percentiles_are_of_the_window(void **state)
{
	struct hs_board_partition row;
	struct fleet fleet;

	(void)state;
	fleet_init(&fleet, 1);
	for (int i = 0; i < 1000; i++)
		fleet_add(&fleet, i % 2, (struct hs_heat_access){.key = HS_LIT("k")},
			  i < 950 ? 100 : 50000);
	fleet_pass(&fleet, 50000);
	row = fleet_partition(&fleet, 0, HS_HEAT_SHORT);
	assert_near(row.p50_us, 110, 0.2);
	assert_near(row.p99_us, 57000, 0.2);
	/* A second later, the slow requests have left the short window but are still in the long window. */
	for (int i = 0; i < 20; i++) {
		for (int j = 0; j < 10; j++)
			fleet_add(&fleet, 0, (struct hs_heat_access){.key = HS_LIT("k")}, 20);
		fleet_pass(&fleet, 50000);
	}
	row = fleet_partition(&fleet, 0, HS_HEAT_SHORT);
	assert_near(row.p99_us, 20, 0.2);
	row = fleet_partition(&fleet, 0, HS_HEAT_LONG);
	assert_near(row.p99_us, 57000, 0.2);
	/* The board gives no percentile if the window holds less than half a request. */
	fleet_pass(&fleet, 2000000);
	assert_true(fleet_partition(&fleet, 0, HS_HEAT_SHORT).p99_us == 0);
	assert_true(fleet_partition(&fleet, 0, HS_HEAT_LONG).p99_us > 0);
	fleet_deinit(&fleet);
}

static void test_reads_writes_errors_apart(void **state)
{
	struct hs_board_partition row;
	struct fleet fleet;

	(void)state;
	fleet_init(&fleet, 2);
	for (int i = 0; i < 400; i++)
		fleet_add(&fleet, 0,
			  (struct hs_heat_access){.key = HS_LIT("k"),
						  .partition = 1,
						  .bytes = 1000,
						  .write = i % 4 == 0,
						  .failed = i % 100 == 0},
			  10);
	hs_heat_add_keyless(fleet.heats[1], 1, false, false, 600000, 1000);
	fleet_pass(&fleet, 1000000);
	row = fleet_partition(&fleet, 1, HS_HEAT_LONG);
	assert_near(row.ops, 401, 0.001);
	assert_near(row.reads, 301, 0.001);
	assert_near(row.writes, 100, 0.001);
	assert_near(row.errors, 4, 0.001);
	assert_near(row.bytes, 1000000, 0.001);
	assert_int_equal(row.counted.reads, 301);
	assert_int_equal(row.counted.writes, 100);
	assert_int_equal(row.counted.errors, 4);
	assert_int_equal(row.counted.bytes, 1000000);
	assert_int_equal(row.counted.histogram[hs_coarse_histogram_bucket(10)], 400);
	assert_true(fleet_partition(&fleet, 0, HS_HEAT_LONG).ops == 0);
	fleet_deinit(&fleet);
}

static void test_each_partition_names_its_hottest_key(void **state)
{
	struct hs_board_partition rows[FLEET_PARTITIONS_MAX + 1];
	struct fleet fleet;

	(void)state;
	fleet_init(&fleet, 3);
	fleet_hit(&fleet, "most of all", 0, 900);
	fleet_hit(&fleet, "second", 0, 600);
	fleet_hit(&fleet, "other", 1, 30);
	fleet_hit(&fleet, "little", 1, 10);
	fleet_pass(&fleet, 1000000);
	hs_board_partitions(fleet.board, HS_HEAT_LONG, rows);
	assert_int_equal(rows[0].top_key_len, strlen("most of all"));
	assert_memory_equal(rows[0].top_key, "most of all", rows[0].top_key_len);
	assert_near(rows[0].top_key_share, 0.6, 0.1);
	assert_int_equal(rows[1].top_key_len, strlen("other"));
	assert_memory_equal(rows[1].top_key, "other", rows[1].top_key_len);
	assert_near(rows[1].top_key_share, 0.75, 0.1);
	assert_int_equal(rows[2].top_key_len, 0);
	assert_true(rows[2].top_key_share == 0);
	assert_near(rows[3].top_key_share, rows[0].top_key_share, 0.001);
	fleet_deinit(&fleet);
}

/* ---- reset and others ---- */

static void test_reset_forgets_all_but_the_counters(void **state)
{
	struct hs_heat_query query = {.what = HS_HEAT_KEYS, .window = HS_HEAT_LONG};
	struct hs_board_partition row;
	struct hs_board_row top[4];
	struct fleet fleet;

	(void)state;
	fleet_init(&fleet, 1);
	fleet_run(&fleet, "k", 0, 1000, 3000000, 50000);
	assert_int_equal(hs_board_seconds(fleet.board, 600), 3);
	fleet_hit(&fleet, "k", 0, 500); /* 500 requests between the last sample and the reset */
	hs_board_reset(fleet.board, fleet.now);
	row = fleet_partition(&fleet, 0, HS_HEAT_LONG);
	assert_true(row.ops == 0 && row.p99_us == 0);
	assert_int_equal(row.top_key_len, 0);
	assert_int_equal(row.counted.reads, 3500);
	assert_int_equal(hs_board_seconds(fleet.board, 600), 0);
	assert_int_equal(hs_board_top(fleet.board, &query, top, 4), 0);
	assert_int_equal(hs_board_window(fleet.board), HS_HEAT_LONG);
	fleet_run(&fleet, "k", 0, 2000, 1000000, 50000);
	for (int window = 0; window < HS_HEAT_WINDOWS; window++) {
		row = fleet_partition(&fleet, 0, (enum hs_heat_window)window);
		assert_near(row.ops, 2000, 0.01);
		assert_int_equal(row.counted.reads, 5500);
	}
	fleet_deinit(&fleet);
}

static void test_a_reset_before_the_first_sample(void **state)
{
	struct hs_heat_options options = {.seed = 1, .partitions = 1};
	struct hs_heat *heat = hs_heat_create(&options);
	struct hs_board *board = hs_board_create(&heat, 1, 1);
	struct hs_engine_partition facts = {.queued = 1};
	struct hs_now now = {.mono_us = 1000, .wall_us = 1000};
	struct hs_board_partition rows[2];

	(void)state;
	assert_int_equal(hs_board_window(board), HS_HEAT_LONG);
	assert_int_equal(hs_board_seconds(board, 600), 0);
	hs_board_partitions(board, HS_HEAT_LONG, rows);
	assert_true(rows[0].ops == 0);
	hs_board_reset(board, now);
	hs_board_sample(board, now, &facts);
	now.mono_us += 1000000;
	now.wall_us += 1000000;
	hs_board_sample(board, now, &facts);
	hs_board_partitions(board, HS_HEAT_LONG, rows);
	assert_int_equal(rows[0].facts.queued, 1);
	hs_board_destroy(&board);
	hs_heat_destroy(&heat);
}

/* No time has passed before the first sample, so requests counted until then give no rate. */
static void test_counts_before_the_first_sample_are_no_rate(void **state)
{
	struct hs_heat_query query = {.what = HS_HEAT_KEYS, .window = HS_HEAT_LONG};
	struct hs_heat_options options = {.seed = 1, .partitions = 1};
	struct hs_heat *heat = hs_heat_create(&options);
	struct hs_board *board = hs_board_create(&heat, 1, 1);
	struct hs_heat_access access = {.key = HS_LIT("k"), .bytes = 1};
	struct hs_engine_partition facts = {.commit_histogram = {[9] = 1000}};
	struct hs_now now = {.mono_us = 1000000, .wall_us = 1000000};
	struct hs_board_partition rows[2];
	struct hs_board_row top;

	(void)state;
	hs_heat_now(heat, now.mono_us);
	for (int i = 0; i < 1000; i++)
		hs_heat_add(heat, &access, 1000);
	hs_board_sample(board, now, &facts);
	hs_heat_add(heat, &access, 1000);
	now.mono_us += 100000;
	now.wall_us += 100000;
	hs_board_sample(board, now, &facts);
	hs_board_partitions(board, HS_HEAT_LONG, rows);
	assert_near(rows[0].ops, 10, 0.01);
	assert_true(rows[0].commit_p99_us == 0);
	assert_int_equal(rows[0].counted.reads, 1001);
	/* The key's rate includes the requests before the first sample, the partition's rate does not. The key's
	 * share is capped at 1. */
	assert_int_equal(hs_board_top(board, &query, &top, 1), 1);
	assert_true(top.heat.window[HS_HEAT_LONG].ops_low > 2 * rows[0].ops);
	assert_true(top.share == 1);
	assert_true(rows[0].top_key_share == 1);
	hs_board_destroy(&board);
	hs_heat_destroy(&heat);
}

/* An engine's counters may start again at zero. The board must not compute a negative number of commits. */
static void test_a_counter_that_starts_again(void **state)
{
	struct hs_board_partition row;
	struct fleet fleet;

	(void)state;
	fleet_init(&fleet, 1);
	fleet.facts[0].commit_histogram[20] = 1000000;
	fleet_pass(&fleet, 50000);
	fleet_pass(&fleet, 5000000); /* the million commits are too old for the short window */
	memset(fleet.facts[0].commit_histogram, 0, sizeof fleet.facts[0].commit_histogram);
	fleet.facts[0].commit_histogram[30] = 10;
	fleet_pass(&fleet, 50000);
	row = fleet_partition(&fleet, 0, HS_HEAT_SHORT);
	assert_near(row.commit_p99_us, (double)hs_coarse_histogram_floor(30) * 1.25, 0.25);
	fleet_deinit(&fleet);
}

static void test_the_short_window_needs_enough_requests(void **state)
{
	/* Requests per second that the board needs to show the short window. */
	const int enough = HS_BOARD_SHORT_MIN * 1000 / (HS_HEAT_SHORT_US / 1000);
	struct fleet fleet;

	(void)state;
	fleet_init(&fleet, 2);
	assert_int_equal(hs_board_window(fleet.board), HS_HEAT_LONG);
	fleet_run(&fleet, "k", 0, enough * 9 / 10, 2000000, 20000);
	assert_int_equal(hs_board_window(fleet.board), HS_HEAT_LONG);
	fleet_run(&fleet, "k", 1, enough * 11 / 10, 2000000, 20000);
	assert_int_equal(hs_board_window(fleet.board), HS_HEAT_SHORT);
	/* Without traffic the board shows the long window. */
	fleet_pass(&fleet, 1000000);
	assert_int_equal(hs_board_window(fleet.board), HS_HEAT_LONG);
	/* The storm is over, and a few requests for another key continue. The short window stays, because the
	 * long window would still list the storm first. */
	fleet_run(&fleet, "other", 0, 200, 1000000, 20000);
	assert_int_equal(hs_board_window(fleet.board), HS_HEAT_SHORT);
	/* Once the storm has decayed in the long window, the board shows the long window again. */
	fleet_run(&fleet, "other", 0, 200, 60000000, 20000);
	assert_int_equal(hs_board_window(fleet.board), HS_HEAT_LONG);
	fleet_deinit(&fleet);
}

static void test_fields_have_names_words_and_metrics(void **state)
{
	const struct hs_fields *fields = &hs_board_partition_fields;
	struct hs_board_partition row = {
		.p99_us = 2500,
		.errors = 0.12345,
		.ops = 12.5,
		.counted = {.reads = 30, .writes = 12},
		.load = 1.23456,
	};

	(void)state;
	assert_string_equal(
		fleet_names(fields),
		"id address state ops reads writes bytes load inflight queued p50_us p99_us "
		"errors commit_p99_us memory slots top_key top_key_share cpu clients "
		"replicas replica_lag replica_lag_bytes slots_cpu net_in net_out reason");
	for (size_t i = 0; i < fields->count; i++) {
		const struct hs_field *field = &fields->fields[i];

		assert_true(strlen(field->help) > 5);
		assert_true(field->help[strlen(field->help) - 1] != '.');
		if (!field->metric)
			continue;
		assert_true(field->kind == HS_FIELD_INT || field->kind == HS_FIELD_REAL ||
			    field->metric_get);
		assert_int_equal(strcmp(field->metric_type, "counter") == 0,
				 strstr(field->metric, "_total") != NULL);
		assert_true(isfinite(hs_field_metric(field, &row)));
		if (strcmp(field->name, "p99_us") == 0)
			assert_near(hs_field_metric(field, &row), 0.0025, 0.0001);
		if (strcmp(field->name, "ops") == 0)
			assert_true(hs_field_metric(field, &row) == 42);
	}
	assert_true(fleet_number(fields, &row, "ops") == 13);
	assert_true(fleet_number(fields, &row, "errors") == 0.1235);
	assert_true(fleet_number(fields, &row, "load") == 1.2346);
	row.ops = NAN;
	assert_true(fleet_number(fields, &row, "ops") == 0);
}

static void test_as_many_partitions_as_there_may_be(void **state)
{
	struct hs_heat_options options = {.seed = 1, .partitions = HS_PARTITIONS_MAX};
	struct hs_heat *heat = hs_heat_create(&options);
	struct hs_board *board = hs_board_create(&heat, 1, HS_PARTITIONS_MAX);
	struct hs_engine_partition *facts = calloc(HS_PARTITIONS_MAX, sizeof *facts);
	struct hs_board_partition *rows = calloc(HS_PARTITIONS_MAX + 1, sizeof *rows);
	struct hs_now now = {.mono_us = 1000000, .wall_us = 1000000};

	(void)state;
	assert_int_equal(hs_board_partitions_count(board), HS_PARTITIONS_MAX);
	hs_heat_now(heat, now.mono_us);
	hs_board_sample(board, now, facts);
	for (int id = 0; id < HS_PARTITIONS_MAX; id++) {
		for (int i = 0; i <= id; i++)
			hs_heat_add_keyless(heat, (uint16_t)id, true, false, 1, 1000);
	}
	now.mono_us += 1000000;
	now.wall_us += 1000000;
	hs_board_sample(board, now, facts);
	hs_board_partitions(board, HS_HEAT_LONG, rows);
	assert_string_equal(rows[255].id, "255");
	assert_near(rows[255].ops, 256, 0.001);
	assert_near(rows[256].ops, 128.5, 0.001);
	assert_int_equal(hs_board_seconds(board, 10), 1);
	assert_near((double)hs_board_second(board, 10, 0).partitions[255].ops, 256, 0.001);
	free(rows);
	free(facts);
	hs_board_destroy(&board);
	hs_heat_destroy(&heat);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_steady_rate_shows_as_itself),
		cmocka_unit_test(test_uneven_samples_show_the_same),
		cmocka_unit_test(test_rates_decay_after_the_load),
		cmocka_unit_test(test_a_clock_that_stands_still_or_goes_back),
		cmocka_unit_test(test_a_stuck_worker),
		cmocka_unit_test(test_load_is_relative_to_the_mean),
		cmocka_unit_test(test_the_median_of_an_odd_and_an_even_number),
		cmocka_unit_test(test_engine_facts_are_shown),
		cmocka_unit_test(test_absent_partitions),
		cmocka_unit_test(test_percentiles_are_of_the_window),
		cmocka_unit_test(test_reads_writes_errors_apart),
		cmocka_unit_test(test_each_partition_names_its_hottest_key),
		cmocka_unit_test(test_reset_forgets_all_but_the_counters),
		cmocka_unit_test(test_a_reset_before_the_first_sample),
		cmocka_unit_test(test_counts_before_the_first_sample_are_no_rate),
		cmocka_unit_test(test_a_counter_that_starts_again),
		cmocka_unit_test(test_the_short_window_needs_enough_requests),
		cmocka_unit_test(test_fields_have_names_words_and_metrics),
		cmocka_unit_test(test_as_many_partitions_as_there_may_be),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
