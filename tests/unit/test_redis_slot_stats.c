/* Goal: the per-slot counters of servers are parsed in RESP2 and RESP3, and added up. A rate is the growth of a
 * slot's counter at one server, never negative; a malformed reply changes nothing.
 *
 * Method: replies as Valkey 8 and Redis 8.2 send them, whole, malformed and cut at every byte; two servers
 * whose counters restart and whose slots move. */
#include "engine/redis/slot_stats.h"

#include "base/buf.h"
#include "base/err.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define NAME(text, len) "$" len "\r\n" text "\r\n"
#define RESP2                                                                                      \
	"*2\r\n*2\r\n:5\r\n*8\r\n" NAME("key-count", "9") ":7\r\n" NAME(                           \
		"cpu-usec",                                                                        \
		"8") ":12\r\n" NAME("network-bytes-in",                                            \
				    "16") ":100\r\n" NAME("network-bytes-out",                     \
							  "17") ":200\r\n"                         \
								"*2\r\n:16383\r\n*2\r\n" NAME(     \
									"key-count", "9") ":1\r\n"
#define RESP3                                                                                      \
	"*1\r\n*2\r\n:6\r\n%3\r\n" NAME("key-count", "9") ":3\r\n" NAME(                           \
		"memory-bytes", "12") ":64\r\n" NAME("new-count", "9") "*1\r\n+x\r\n"

enum { SECOND = 1000000 };

struct bench {
	struct hs_slot_samples samples;
	struct hs_slot_sample last; /* the last reply of the first server */
	uint64_t now_us;
	struct hs_slot_sums sums; /* the sums of the last reply */
	struct hs_buf reply;
	char why[256];
};

static int setup(void **state)
{
	*state = calloc(1, sizeof(struct bench));
	return *state ? 0 : -1;
}

static int teardown(void **state)
{
	struct bench *bench = *state;

	hs_buf_deinit(&bench->reply);
	free(bench);
	return 0;
}

static int parse(struct bench *bench, const char *reply)
{
	return hs_slot_stats_sample(&bench->samples, &bench->last, hs_bytes_of(reply),
				    bench->now_us, &bench->sums, bench->why, sizeof bench->why);
}

static const struct hs_slot_stats *slot(const struct bench *bench, uint16_t number)
{
	return &bench->samples.slots[number].stats;
}

static void test_both_dialects(void **state)
{
	struct bench *bench = *state;

	assert_int_equal(parse(bench, RESP2), 2);
	assert_int_equal(bench->sums.keys, 8);
	assert_int_equal(parse(bench, RESP3), 1);
	assert_int_equal(bench->sums.keys, 3);
	assert_int_equal(slot(bench, 5)->keys, 7);
	assert_int_equal(slot(bench, 5)->cpu_us, 12);
	assert_int_equal(slot(bench, 5)->bytes_in, 100);
	assert_int_equal(slot(bench, 5)->bytes_out, 200);
	assert_int_equal(slot(bench, 6)->keys, 3);
	assert_int_equal(slot(bench, 6)->memory_bytes, 64);
	assert_int_equal(slot(bench, 16383)->keys, 1);
	assert_int_equal(slot(bench, 16383)->cpu_us, 0);
	assert_int_equal(parse(bench, "*0\r\n"), 0);
	assert_int_equal(bench->sums.keys, 0);
}

/* ---- rates ---- */

struct count {
	int slot;
	uint64_t keys, cpu_us, in, out;
};

/* `after_us` after the last reply, the server reports these counters. */
static void sample(struct bench *bench, struct hs_slot_sample *last, uint64_t after_us,
		   const struct count *counts, size_t count)
{
	bench->now_us += after_us;
	hs_buf_clear(&bench->reply, HS_IDLE_BUFFER_BYTES);
	hs_buf_printf(&bench->reply, "*%zu\r\n", count);
	for (size_t i = 0; i < count; i++)
		hs_buf_printf(
			&bench->reply,
			"*2\r\n:%d\r\n*8\r\n" NAME("key-count", "9") ":%llu\r\n" NAME(
				"cpu-usec",
				"8") ":%llu\r\n" NAME("network-bytes-in",
						      "16") ":%llu\r\n" NAME("network-bytes-out",
									     "17") ":%llu\r\n",
			counts[i].slot, (unsigned long long)counts[i].keys,
			(unsigned long long)counts[i].cpu_us, (unsigned long long)counts[i].in,
			(unsigned long long)counts[i].out);
	assert_int_equal(
		hs_slot_stats_sample(&bench->samples, last,
				     (struct hs_bytes){bench->reply.data, bench->reply.len},
				     bench->now_us, &bench->sums, bench->why, sizeof bench->why),
		count);
}

#define LOOK(last, after_us, ...)                                                                  \
	sample(bench, last, after_us, (const struct count[]){__VA_ARGS__},                         \
	       sizeof((const struct count[]){__VA_ARGS__}) / sizeof(struct count))

static void assert_rates(const struct bench *bench, double cpu, double in, double out)
{
	assert_true(fabs(bench->sums.cpu - cpu) < 1e-9);
	assert_true(fabs(bench->sums.bytes_in - in) < 1e-6);
	assert_true(fabs(bench->sums.bytes_out - out) < 1e-6);
}

static void test_rates_are_between_two_looks(void **state)
{
	struct bench *bench = *state;

	LOOK(&bench->last, SECOND, {1, 10, 5 * SECOND, 7000, 9000}, {2, 20, SECOND, 100, 200});
	assert_int_equal(bench->sums.keys, 30);
	assert_rates(bench, 0, 0, 0);
	LOOK(&bench->last, 4 * SECOND, {1, 11, 6 * SECOND, 7400, 9800},
	     {2, 20, 2 * SECOND, 500, 200});
	assert_int_equal(bench->sums.keys, 31);
	assert_rates(bench, 0.5, 200, 200);
	LOOK(&bench->last, SECOND, {1, 11, 6 * SECOND, 7400, 9800}, {2, 20, 2 * SECOND, 500, 201});
	assert_rates(bench, 0, 0, 1);
}

static void test_two_servers_do_not_mix(void **state)
{
	struct bench *bench = *state;
	struct hs_slot_sample other = {0};

	LOOK(&bench->last, SECOND, {1, 1, 1000, 10, 20});
	LOOK(&other, SECOND, {2, 1, 500000, 5000, 6000});
	assert_rates(bench, 0, 0, 0);
	/* Two seconds after the first reply of this server. */
	LOOK(&bench->last, SECOND, {1, 1, 1000, 30, 60});
	assert_rates(bench, 0, 10, 20);
	LOOK(&other, SECOND, {2, 1, 1500000, 5200, 6000});
	assert_rates(bench, 0.5, 100, 0);
}

/* When one counter of a slot went back, all counters of the slot start again; other slots are not affected. */
static void test_counters_that_went_back(void **state)
{
	static const struct count back[] = {
		{1, 1, 999, 9000, 9000}, {1, 1, 9000, 999, 9000}, {1, 1, 9000, 9000, 999}};
	struct bench *bench = *state;

	for (size_t i = 0; i < sizeof back / sizeof *back; i++) {
		LOOK(&bench->last, SECOND, {1, 1, 1000, 1000, 1000}, {2, 1, 1000, 1000, 1000});
		LOOK(&bench->last, SECOND, back[i], {2, 1, 1000, 1010, 1020});
		assert_rates(bench, 0, 10, 20);
		LOOK(&bench->last, SECOND, {1, 1, back[i].cpu_us, back[i].in + 5, back[i].out + 6},
		     {2, 1, 1000, 1010, 1020});
		assert_rates(bench, 0, 5, 6);
		bench->last = (struct hs_slot_sample){0};
	}
}

static void test_slots_that_move(void **state)
{
	struct bench *bench = *state;
	struct hs_slot_sample other = {0};

	LOOK(&bench->last, SECOND, {1, 5, 10, 1000, 1000}, {2, 5, 10, 1000, 1000});
	LOOK(&other, 0, {3, 5, 10, 1000, 1000});
	LOOK(&bench->last, SECOND, {2, 5, 10, 1100, 1000});
	assert_rates(bench, 0, 100, 0);
	/* Slot 1 has moved to the other server, whose earlier counters of the slot are unknown: no rate. */
	LOOK(&other, 0, {1, 5, 9000000, 9000000, 9000000}, {3, 5, 10, 1000, 1300});
	assert_rates(bench, 0, 0, 300);
	assert_int_equal(bench->sums.keys, 10);
	/* Slot 1 moves back: the first server's last counters of the slot are too old for a rate. */
	LOOK(&bench->last, SECOND, {1, 5, 9900000, 9900000, 9900000}, {2, 5, 10, 1100, 1000});
	assert_rates(bench, 0, 0, 0);
}

/* A slot was missing in one reply, although it did not move: its counters start again, without a rate. */
static void test_a_slot_that_was_left_out_once(void **state)
{
	struct bench *bench = *state;

	LOOK(&bench->last, SECOND, {1, 1, 10, 10, 10}, {2, 1, 10, 10, 10});
	LOOK(&bench->last, SECOND, {2, 1, 10, 10, 10});
	LOOK(&bench->last, SECOND, {1, 1, 999999, 999999, 999999}, {2, 1, 10, 10, 10});
	assert_rates(bench, 0, 0, 0);
}

static void test_a_server_that_was_away_starts_anew(void **state)
{
	struct bench *bench = *state;

	LOOK(&bench->last, SECOND, {1, 1, 10, 10, 10});
	bench->last = (struct hs_slot_sample){0};
	LOOK(&bench->last, SECOND, {1, 1, 999999, 999999, 999999});
	assert_rates(bench, 0, 0, 0);
	LOOK(&bench->last, SECOND, {1, 1, 999999, 1000000, 999999});
	assert_rates(bench, 0, 1, 0);
}

static void test_odd_replies_give_no_odd_numbers(void **state)
{
	const uint64_t most = INT64_MAX;
	struct bench *bench = *state;

	LOOK(&bench->last, SECOND, {1, most, 0, 0, 0}, {1, 7, 5, 5, 5}, {2, most, 0, 0, 0});
	assert_true(bench->sums.keys == most);
	LOOK(&bench->last, 0, {1, 1, 10, 10, 10}); /* no time has passed since the last reply */
	assert_rates(bench, 0, 0, 0);
	/* A slot is listed twice: the first entry counts. */
	LOOK(&bench->last, SECOND, {1, 1, 20, 20, 20}, {1, 1, 90, 90, 90});
	assert_rates(bench, 0.00001, 10, 10);
	assert_int_equal(bench->sums.keys, 1);
	LOOK(&bench->last, SECOND, {1, 1, most, most, most}, {2, 1, most, most, most});
	assert_true(isfinite(bench->sums.cpu) && bench->sums.cpu > 0);
	LOOK(&bench->last, SECOND, {1, 1, 0, 0, 0});
	bench->now_us -= 2 * SECOND;
	LOOK(&bench->last, SECOND, {1, 1, most, most, most}); /* the clock went back */
	assert_rates(bench, 0, 0, 0);
}

static void test_malformed_replies_change_nothing(void **state)
{
	static const char *const wrong[] = {
		"",
		"+OK\r\n",
		":1\r\n",
		"*-1\r\n",
		RESP2 ":1\r\n",
		"*2\r\n*2\r\n:5\r\n*2\r\n" NAME("key-count", "9") ":9\r\n:1\r\n",
		"*1\r\n*3\r\n:5\r\n*0\r\n*0\r\n",
		"*1\r\n*2\r\n:16384\r\n*0\r\n",
		"*1\r\n*2\r\n:-1\r\n*0\r\n",
		"*1\r\n*2\r\n:1\r\n*1\r\n:1\r\n",
		"*1\r\n*2\r\n:1\r\n*2\r\n:1\r\n:1\r\n",
		"*1\r\n*2\r\n:1\r\n*2\r\n" NAME("key-count", "9") ":-1\r\n",
		"*1\r\n*2\r\n:1\r\n*2\r\n" NAME("key-count", "9") "+1\r\n",
		"*2147483647\r\n",
	};
	struct bench *bench = *state;
	const struct hs_slot_sample first = {1, SECOND};
	const struct hs_slot_stats *stats = slot(bench, 5);

	bench->now_us = SECOND;
	assert_int_equal(parse(bench, RESP2), 2);
	bench->now_us += SECOND;
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		assert_int_equal(parse(bench, wrong[i]), HS_EPROTO);
		assert_int_equal(stats->keys, 7);
		assert_memory_equal(&bench->last, &first, sizeof first);
	}
	for (size_t len = 0; len < sizeof RESP2 - 1; len++) {
		char *copy = malloc(len ? len : 1);

		assert_non_null(copy);
		memcpy(copy, RESP2, len);
		assert_int_equal(hs_slot_stats_sample(&bench->samples, &bench->last,
						      (struct hs_bytes){copy, len}, bench->now_us,
						      &bench->sums, bench->why, sizeof bench->why),
				 HS_EPROTO);
		free(copy);
	}
	assert_int_equal(bench->samples.count, 1);
	assert_int_equal(bench->sums.keys, 8);
}

static void test_a_refusal_is_reported(void **state)
{
	struct bench *bench = *state;

	assert_int_equal(
		parse(bench, "-ERR unknown subcommand 'SLOT-STATS'. Try CLUSTER HELP.\r\n"),
		HS_EINVAL);
	assert_string_equal(bench->why, "CLUSTER SLOT-STATS was answered with \"ERR unknown "
					"subcommand 'SLOT-STATS'. Try CLUSTER HELP.\"");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_both_dialects),
		TEST(test_rates_are_between_two_looks),
		TEST(test_two_servers_do_not_mix),
		TEST(test_counters_that_went_back),
		TEST(test_slots_that_move),
		TEST(test_a_slot_that_was_left_out_once),
		TEST(test_a_server_that_was_away_starts_anew),
		TEST(test_odd_replies_give_no_odd_numbers),
		TEST(test_malformed_replies_change_nothing),
		TEST(test_a_refusal_is_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
