/* Goal: every row of every table of counters is summed over the workers; CONFIG RESETSTAT resets exactly the
 * rows that are marked for it.
 *
 * Method: a host with two real cores, HTTP and fetches. The test sets every counter to a value of its own,
 * reads all of them, increases them, and reads them again less the first reading. */
#include "serve/totals.h"

#include "absorb/cache/stats.h"
#include "base/mem.h"
#include "http/http.h"
#include "serve/host.h"
#include "serve/key_reader.h"
#include "stages/stages.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { WORKERS = 2, GROWN = 7 };

struct bench {
	struct hs_host host;
	struct hs_worker workers[WORKERS];
	struct hs_engine_stats engine;
	struct hs_totals totals;
	uv_loop_t loop; /* used by fetches; the test makes none */
};

static uint64_t mono_us(void *context)
{
	(void)context;
	return 1;
}

static int setup(void **state)
{
	static const struct hs_log log;
	static const struct hs_core_calls calls = {.mono_us = mono_us};
	const struct hs_core_world world = {
		.commands = &hs_commands,
		.stages = hs_stages,
		.calls = &calls,
		.log = &log,
		.workers = WORKERS,
		.partitions = 1,
		.node_id = "0123456789abcdef0123456789abcdef01234567",
	};
	const struct hs_core_options options = {.output_bytes_max = 1 << 20};
	const struct hs_http_options http = {
		.log = &log, .connections_max = 1, .request_bytes = 4096};
	struct bench *bench = hs_mem_zalloc(sizeof *bench);

	bench->host.http = hs_http_create(&http);
	assert_non_null(bench->host.http);
	uv_loop_init(&bench->loop);
	bench->host.key_reader = hs_key_reader_create(&bench->loop, &bench->host, 1, NULL, NULL);
	bench->host.workers = bench->workers;
	bench->host.workers_count = WORKERS;
	for (int i = 0; i < WORKERS; i++)
		bench->workers[i].core = hs_core_create(&world, &options);
	*state = bench;
	return 0;
}

static int teardown(void **state)
{
	struct bench *bench = *state;

	for (int i = 0; i < WORKERS; i++)
		hs_core_destroy(&bench->workers[i].core);
	hs_http_destroy(&bench->host.http);
	hs_key_reader_destroy(&bench->host.key_reader);
	uv_run(&bench->loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&bench->loop), 0);
	hs_mem_free(&bench);
	return 0;
}

/* The first value of row `row` at worker `worker`. Counters of the engine use the value of worker 0. */
static uint64_t first_value(size_t row, uint32_t worker)
{
	return 1000u * (worker + 1) + row;
}

/* Sets the `count` counters of a table to their first values plus `grown`. */
static void set_counters(const void *counters, size_t count, uint32_t worker, uint64_t grown)
{
	struct hs_counter *counter = (struct hs_counter *)(uintptr_t)counters;

	for (size_t i = 0; i < count; i++)
		hs_counter_set(&counter[i], first_value(i, worker) + grown);
}

/* Sets `count` plain numbers to their first values plus `grown`. */
static void fill_numbers(const void *numbers, size_t count, uint64_t grown)
{
	for (size_t i = 0; i < count; i++)
		((uint64_t *)(uintptr_t)numbers)[i] = first_value(i, 0) + grown;
}

static void set_all_counters(struct bench *bench, uint64_t grown)
{
	for (uint32_t i = 0; i < WORKERS; i++) {
		struct hs_worker *worker = &bench->workers[i];
		struct hs_core_stats *stats = hs_core_stats(worker->core);

		set_counters(stats, hs_core_counters.count, i, grown);
		set_counters(stats->holds, HS_HOLDS, i, grown);
		for (int id = 0; id < HS_CMD_IDS_ALL; id++)
			set_counters(&stats->command[id], hs_command_counters.count, i, grown);
		for (const struct hs_stage *const *stage = hs_stages; *stage; stage++) {
			if ((*stage)->counters)
				set_counters(hs_core_stage_stats(worker->core, *stage),
					     (*stage)->counters->count, i, grown);
		}
		set_counters(&worker->stats, hs_worker_counters.count, i, grown);
	}
	set_counters(&bench->host.stats, hs_host_counters.count, 0, grown);
	fill_numbers(&bench->engine, hs_engine_counters.count, grown);
	fill_numbers(hs_http_stats(bench->host.http), hs_http_counters.count, grown);
	fill_numbers(hs_key_reader_stats(bench->host.key_reader), hs_key_reader_counters.count,
		     grown);
}

static void read_totals(struct bench *bench)
{
	hs_totals_read(&bench->host, &bench->engine, &bench->totals);
	hs_totals_subtract(&bench->totals, &bench->host.baseline);
}

/* Checks the sum of a row over `owners` owners, whose counters all grew by `grown`. With `reset`, the first
 * values do not count. */
static void assert_row(const struct bench *bench, const struct hs_counter_row *row, size_t number,
		       uint32_t owners, uint64_t grown, bool reset)
{
	uint64_t value = owners * grown;
	size_t i = 0;

	if (!reset || row->kind != HS_COUNTER) {
		for (uint32_t owner = 0; owner < owners; owner++)
			value += first_value(number, owner);
	}
	while (bench->totals.rows[i] != row)
		assert_true(++i < bench->totals.count);
	if (bench->totals.values[i] != value)
		print_error("%s\n", row->name);
	assert_int_equal(bench->totals.values[i], value);
}

static size_t assert_table(const struct bench *bench, const struct hs_counter_table *table,
			   uint32_t owners, uint64_t grown, bool reset)
{
	for (size_t i = 0; i < table->count; i++)
		assert_row(bench, &table->rows[i], i, owners, grown, reset);
	return table->count;
}

static void assert_all(struct bench *bench, uint64_t grown, bool reset)
{
	size_t count = 0;

	count += assert_table(bench, &hs_core_counters, WORKERS, grown, reset);
	count += assert_table(bench, &hs_hold_counters, WORKERS, grown, reset);
	for (const struct hs_stage *const *stage = hs_stages; *stage; stage++) {
		if ((*stage)->counters)
			count += assert_table(bench, (*stage)->counters, WORKERS, grown, reset);
	}
	count += assert_table(bench, &hs_worker_counters, WORKERS, grown, reset);
	count += assert_table(bench, &hs_host_counters, 1, grown, reset);
	count += assert_table(bench, &hs_engine_counters, 1, grown, reset);
	count += assert_table(bench, &hs_http_counters, 1, grown, reset);
	count += assert_table(bench, &hs_key_reader_counters, 1, grown, reset);
	assert_int_equal(count, bench->totals.count);
}

static void test_every_row_is_summed_and_set_back_by_its_kind(void **state)
{
	struct bench *bench = *state;

	set_all_counters(bench, 0);
	read_totals(bench);
	assert_all(bench, 0, false);
	hs_totals_read(&bench->host, &bench->engine, &bench->host.baseline);
	set_all_counters(bench, GROWN);
	read_totals(bench);
	assert_all(bench, GROWN, true);
}

static void assert_command(const struct bench *bench, uint64_t grown, bool reset)
{
	const uint64_t *values = (const uint64_t *)&bench->totals.command[HS_CMD_ID_GET];

	for (size_t i = 0; i < hs_command_counters.count; i++) {
		bool is_reset = reset && hs_command_counters.rows[i].kind == HS_COUNTER;

		assert_int_equal(values[i],
				 WORKERS * grown +
					 (is_reset ? 0 : first_value(i, 0) + first_value(i, 1)));
	}
}

static void test_commands_are_summed_and_set_back(void **state)
{
	struct bench *bench = *state;

	set_all_counters(bench, 0);
	read_totals(bench);
	assert_command(bench, 0, false);
	hs_totals_read(&bench->host, &bench->engine, &bench->host.baseline);
	set_all_counters(bench, GROWN);
	read_totals(bench);
	assert_command(bench, GROWN, true);
}

static void test_the_largest_of_all_is_no_sum(void **state)
{
	struct hs_cache_rule_stats stats[3] = {0};
	struct {
		HS_CACHE_RULE_COUNTERS(HS_COUNTER_NUMBER)
	} sums = {0};

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		hs_counter_set(&stats[i].hits, 10);
		hs_counter_set(&stats[i].age_max_us, i == 1 ? 900 : 100);
		hs_counters_sum(&hs_cache_rule_counters, &stats[i], &sums);
	}
	assert_int_equal(sums.hits, 30);
	assert_int_equal(sums.age_max_us, 900);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_every_row_is_summed_and_set_back_by_its_kind,
						setup, teardown),
		cmocka_unit_test_setup_teardown(test_commands_are_summed_and_set_back, setup,
						teardown),
		cmocka_unit_test(test_the_largest_of_all_is_no_sum),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
