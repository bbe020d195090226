/* Goal: the control thread's sampling: the engine's facts about partitions reach the status board unchanged.
 * The process is ready unless it shuts down, a worker is stuck, a commit failed or no partition is served; if
 * it is not ready, it gives the reason.
 *
 * Method: a host with real heat counters, and an engine that consists of numbers. */

#include "base/mem.h"
#include "serve/clock.h"
#include "serve/host.h"
#include "telemetry/board.h"
#include "telemetry/hotkeys.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { WORKERS = 2, PARTITIONS = 2, AGO_US = 3600u * 1000000 };

struct bench {
	/* Must be first: the functions of the engine cast a pointer to it back to this struct. */
	struct hs_engine engine;
	struct hs_engine_partition partitions[PARTITIONS];
	const char *last_error;
	struct hs_heat *heats[WORKERS];
	struct hs_host host;
	struct hs_buf why;
};

static void partition_stats(struct hs_engine *engine, uint16_t id,
			    struct hs_engine_partition *stats)
{
	*stats = ((struct bench *)engine)->partitions[id];
}

static void stats(struct hs_engine *engine, struct hs_engine_stats *stats)
{
	*stats = (struct hs_engine_stats){.last_error = ((struct bench *)engine)->last_error,
					  .unavailable_reason = ""};
}

static const struct hs_engine_calls calls = {
	.name = "numbers",
	.partition_stats = partition_stats,
	.stats = stats,
};

static int setup(void **state)
{
	struct bench *bench = hs_mem_zalloc(sizeof *bench);
	struct hs_heat_options options = {.seed = 7, .partitions = PARTITIONS};
	struct hs_host *host = &bench->host;

	bench->engine.calls = &calls;
	bench->last_error = "";
	for (int i = 0; i < WORKERS; i++)
		bench->heats[i] = hs_heat_create(&options);
	host->engine = &bench->engine;
	host->heats = bench->heats;
	host->workers_count = WORKERS;
	host->board = hs_board_create(bench->heats, WORKERS, PARTITIONS);
	host->facts = hs_mem_zalloc(PARTITIONS * sizeof *host->facts);
	host->hotkeys = hs_hotkeys_create(bench->heats, WORKERS, PARTITIONS);
	host->started_mono_us = hs_clock_mono_us();
	*state = bench;
	return 0;
}

static int teardown(void **state)
{
	struct bench *bench = *state;

	hs_hotkeys_destroy(&bench->host.hotkeys);
	hs_board_destroy(&bench->host.board);
	hs_mem_free(&bench->host.facts);
	hs_buf_deinit(&bench->why);
	for (int i = 0; i < WORKERS; i++)
		hs_heat_destroy(&bench->heats[i]);
	hs_mem_free(&bench);
	return 0;
}

static void facts_reach_the_board(void **state)
{
	struct bench *bench = *state;
	struct hs_board_partition rows[PARTITIONS + 1];

	for (unsigned id = 0; id < PARTITIONS; id++) {
		struct hs_engine_partition *partition = &bench->partitions[id];

		snprintf(partition->address, sizeof partition->address, "place-%u", id);
		snprintf(partition->slots, sizeof partition->slots, "%u-%u", id * 8192,
			 id * 8192 + 8191);
		partition->state = id == 0 ? HS_PARTITION_OK : HS_PARTITION_DOWN;
		snprintf(partition->unavailable_reason, sizeof partition->unavailable_reason, "%s",
			 id == 0 ? "" : "it is away");
		partition->queued = 5u + id;
		partition->bytes_used = 1000u + id;
		partition->cpu = 0.5 + id;
		partition->clients = 30u + id;
		partition->replicas = 2u + id;
		partition->replica_lag_s = 4u + id;
		partition->replica_lag_bytes = 600u + id;
		partition->slots_cpu = 0.25 + id;
		partition->net_in = 7000u + id;
		partition->net_out = 8000u + id;
	}
	hs_host_sample_heat(&bench->host);
	bench->partitions[1].commit_histogram[hs_coarse_histogram_bucket(3000)] = 100;
	hs_host_sample_heat(&bench->host);
	hs_board_partitions(bench->host.board, HS_HEAT_LONG, rows);
	assert_string_equal(rows[0].facts.address, "place-0");
	assert_string_equal(rows[1].facts.address, "place-1");
	assert_string_equal(rows[0].facts.slots, "0-8191");
	assert_string_equal(rows[1].facts.slots, "8192-16383");
	assert_string_equal(rows[0].state, "ok");
	assert_true(rows[0].up);
	assert_string_equal(rows[0].facts.unavailable_reason, "");
	assert_string_equal(rows[1].state, "down");
	assert_false(rows[1].up);
	assert_string_equal(rows[1].facts.unavailable_reason, "it is away");
	assert_int_equal(rows[0].facts.queued, 5);
	assert_int_equal(rows[1].facts.queued, 6);
	assert_int_equal(rows[0].facts.bytes_used, 1000);
	assert_int_equal(rows[1].facts.bytes_used, 1001);
	assert_true(rows[1].facts.cpu == 1.5);
	assert_int_equal(rows[1].facts.clients, 31);
	assert_int_equal(rows[1].facts.replicas, 3);
	assert_int_equal(rows[1].facts.replica_lag_s, 5);
	assert_int_equal(rows[1].facts.replica_lag_bytes, 601);
	assert_true(rows[1].facts.slots_cpu == 1.25);
	assert_true(rows[1].facts.net_in == 7001);
	assert_true(rows[1].facts.net_out == 8001);
	assert_true(rows[0].commit_p99_us == 0);
	assert_true(rows[1].commit_p99_us >= 2048 && rows[1].commit_p99_us <= 4096);
	assert_int_equal(hs_board_partitions_count(bench->host.board), PARTITIONS);
	bench->partitions[1].absent = true;
	hs_host_sample_heat(&bench->host);
	assert_int_equal(hs_board_partitions_count(bench->host.board), PARTITIONS - 1);
	/* An absent partition is sampled, too, so that the board has its numbers at once when it returns. */
	bench->partitions[1].absent = false;
	hs_host_sample_heat(&bench->host);
	assert_int_equal(hs_board_partitions_count(bench->host.board), PARTITIONS);
}

static bool ready(struct bench *bench)
{
	bool ready;

	bench->why.len = 0;
	ready = hs_host_ready(&bench->host, &bench->why);
	hs_buf_append(&bench->why, "", 1);
	return ready;
}

static void a_start_is_ready(void **state)
{
	assert_true(ready(*state)); /* a worker that has not reported a time yet is not stuck */
}

static void a_stuck_worker_is_named(void **state)
{
	struct bench *bench = *state;
	uint64_t now_us = hs_clock_mono_us();

	bench->host.started_mono_us = now_us < AGO_US ? 0 : now_us - AGO_US;
	hs_heat_now(bench->heats[0], now_us);
	assert_false(ready(bench));
	assert_non_null(strstr(bench->why.data, "worker 1 is stuck: no sign of life for"));
	hs_heat_now(bench->heats[1], now_us);
	assert_true(ready(bench));
}

static void a_failed_commit_is_reported(void **state)
{
	struct bench *bench = *state;

	bench->last_error = "cannot sync the log";
	assert_false(ready(bench));
	assert_non_null(strstr(bench->why.data, "cannot sync the log"));
	bench->last_error = "";
	assert_true(ready(bench));
}

static void set_state(struct bench *bench, int id, enum hs_partition_state state, const char *why)
{
	struct hs_engine_partition *partition = &bench->partitions[id];

	partition->state = state;
	snprintf(partition->address, sizeof partition->address, "place-%d", id);
	snprintf(partition->unavailable_reason, sizeof partition->unavailable_reason, "%s", why);
}

static void failing_partitions_are_named(void **state)
{
	struct bench *bench = *state;

	assert_true(ready(bench));
	assert_string_equal(bench->why.data, "");
	/* One partition is served, so the process is ready; the answer names the partition that is not served. */
	set_state(bench, 1, HS_PARTITION_DOWN, "refused");
	assert_true(ready(bench));
	assert_string_equal(bench->why.data, "partition 1 (place-1) is down: refused\n");
	/* An unknown partition may be up: the process is ready. */
	set_state(bench, 0, HS_PARTITION_UNKNOWN, "not heard of");
	assert_true(ready(bench));
	assert_string_equal(bench->why.data, "partition 1 (place-1) is down: refused\n");
	set_state(bench, 0, HS_PARTITION_FULL, "no room"); /* a full partition still serves reads */
	assert_true(ready(bench));
	assert_string_equal(bench->why.data, "partition 0 (place-0) is full: no room\n"
					     "partition 1 (place-1) is down: refused\n");
	set_state(bench, 0, HS_PARTITION_LOADING, "it loads");
	assert_false(ready(bench));
	assert_string_equal(bench->why.data, "no partition is served\n"
					     "partition 0 (place-0) is loading: it loads\n"
					     "partition 1 (place-1) is down: refused\n");
	/* Partition 0 is absent: its shard has left. Partition 1 is down, so the process is not ready. */
	set_state(bench, 0, HS_PARTITION_OK, "");
	assert_true(ready(bench));
	bench->partitions[0].absent = true;
	assert_false(ready(bench));
}

static void shutting_down_is_reported(void **state)
{
	struct bench *bench = *state;

	atomic_store(&bench->host.stopping, true);
	assert_false(ready(bench));
	assert_non_null(strstr(bench->why.data, "shutting down"));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(facts_reach_the_board),	    TEST(a_start_is_ready),
		TEST(a_stuck_worker_is_named),	    TEST(a_failed_commit_is_reported),
		TEST(failing_partitions_are_named), TEST(shutting_down_is_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
