/* Goal: SCAN returns every key that exists during the whole scan exactly once, whatever else changes, and looks
 * at about COUNT keys per call; KEYS, DBSIZE, RANDOMKEY and FLUSHALL are correct for the whole store.
 *
 * Method: a few thousand keys in a store in memory; cursors and keys are parsed from the replies. */
#include "base/num.h"
#include "tests/lib/store.h"
#include "wire/parse_reply.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define SYNTAX "-ERR syntax error\r\n"

enum { KEYS = 2000 };

static int setup(void **state)
{
	static struct test_store store;

	test_store_init(&store);
	*state = &store;
	return 0;
}

static int teardown(void **state)
{
	test_store_deinit(*state);
	return 0;
}

static void fill(struct test_store *store, const char *prefix)
{
	char line[64];

	for (int i = 0; i < KEYS; i++) {
		snprintf(line, sizeof line, "SET %s%d %d", prefix, i, i);
		test_run(store, line);
	}
}

/* Reads one element of a reply, and sets `at` to its end. */
static struct hs_parsed_reply take(const char **at)
{
	struct hs_parsed_reply answer;
	int64_t len = hs_parse_reply_head(&answer, *at, strlen(*at));

	assert_true(len > 0);
	*at += len;
	return answer;
}

/* Runs SCAN once. Marks the keys named prefix<number> in `seen`, and returns the next cursor. */
static uint64_t scan(struct test_store *store, uint64_t cursor, const char *options, int *seen,
		     size_t prefix_len, int64_t *count)
{
	char line[128];
	const char *at = line;
	struct hs_parsed_reply answer;

	snprintf(line, sizeof line, "SCAN %llu%s", (unsigned long long)cursor, options);
	at = test_run(store, line);
	assert_int_equal(take(&at).count, 2);
	answer = take(&at);
	assert_true(hs_num_parse_uint(answer.text, &cursor));
	*count = take(&at).count;
	for (int64_t i = 0; i < *count; i++) {
		uint64_t number;

		answer = take(&at);
		answer.text.data += prefix_len;
		answer.text.len -= prefix_len;
		assert_true(hs_num_parse_uint(answer.text, &number));
		seen[number]++;
	}
	return cursor;
}

static void check_whole_scan(struct test_store *store, const char *prefix, int64_t per_call,
			     const char *options)
{
	int *seen = calloc(KEYS, sizeof *seen);
	uint64_t cursor = 0;
	int64_t count;

	do {
		cursor = scan(store, cursor, options, seen, strlen(prefix), &count);
		assert_in_range((uint64_t)count, 0, (uint64_t)per_call + 2);
		if (cursor)
			assert_true(count >= per_call);
	} while (cursor);
	for (int i = 0; i < KEYS; i++)
		assert_int_equal(seen[i], 1);
	free(seen);
}

static void test_every_key_once(void **state)
{
	fill(*state, "key:");
	check_whole_scan(*state, "key:", 10, "");
	check_whole_scan(*state, "key:", 1, " COUNT 1");
	check_whole_scan(*state, "key:", 333, " COUNT 333 TYPE string");
	check_whole_scan(*state, "key:", KEYS, " COUNT 9223372036854775807 MATCH *");
}

static void test_every_key_of_one_slot_once(void **state)
{
	fill(*state, "{t}");
	check_whole_scan(*state, "{t}", 10, "");
}

/* During the scan, half of the keys are removed and new keys are written. */
static void test_keys_that_stay_are_seen_once(void **state)
{
	struct test_store *store = *state;
	int *seen = calloc(KEYS, sizeof *seen);
	uint64_t cursor = 0;
	int64_t count;
	int step = 0;
	char line[64];

	fill(store, "key:");
	do {
		cursor = scan(store, cursor, "", seen, 4, &count);
		for (int i = 0; i < 8; i++, step += 2) {
			snprintf(line, sizeof line, "DEL key:%d", step % KEYS + 1);
			test_run(store, line);
			snprintf(line, sizeof line, "SET key:%d longer-value EX 100", step % KEYS);
			test_run(store, line);
		}
	} while (cursor);
	for (int i = 0; i < KEYS; i += 2)
		assert_int_equal(seen[i], 1);
	for (int i = 1; i < KEYS; i += 2)
		assert_true(seen[i] <= 1);
	free(seen);
}

static void test_scan_filters_and_looks_at_count_keys_all_the_same(void **state)
{
	struct test_store *store = *state;
	int *seen = calloc(KEYS, sizeof *seen);
	uint64_t cursor = 0;
	int64_t count, calls = 0;

	fill(store, "key:");
	do {
		cursor = scan(store, cursor, " MATCH key:7 COUNT 100", seen, 4, &count);
		calls++;
	} while (cursor);
	assert_int_equal(calls, KEYS / 100);
	for (int i = 0; i < KEYS; i++)
		assert_int_equal(seen[i], i == 7);
	free(seen);
}

static void test_scan_arguments(void **state)
{
#define EMPTY "*2\r\n$1\r\n0\r\n*0\r\n"
	TEST_SCRIPT(*state, {"SCAN 0", EMPTY}, {"SCAN 123456789", EMPTY},
		    {"SCAN 18446744073709551615", EMPTY}, {"SCAN \"\"", EMPTY}, {"SCAN 007", EMPTY},
		    {"SCAN abc", "-ERR invalid cursor\r\n"},
		    {"SCAN 18446744073709551616", "-ERR invalid cursor\r\n"},
		    {"SCAN 0 COUNT 0", SYNTAX}, {"SCAN 0 COUNT", SYNTAX},
		    {"SCAN 0 nosuch x", SYNTAX},
		    {"SCAN 0 COUNT x", "-ERR value is not an integer or out of range\r\n"},
		    {"SCAN 0 TYPE nosuch", EMPTY}, {"SCAN x nosuch", "-ERR invalid cursor\r\n"});
}

static void test_keys(void **state)
{
	struct test_store *store = *state;
	const char *reply;

	TEST_SCRIPT(store, {"KEYS *", "*0\r\n"}, {"MSET one 1 two 2", "+OK\r\n"},
		    {"KEYS t*", "*1\r\n$3\r\ntwo\r\n"}, {"KEYS three", "*0\r\n"});
	fill(store, "key:");
	reply = test_run(store, "KEYS key:*");
	assert_int_equal(take(&reply).count, KEYS);
	reply = test_run(store, "KEYS *");
	assert_int_equal(take(&reply).count, KEYS + 2);
}

static void test_the_empty_key(void **state)
{
	TEST_SCRIPT(*state, {"SET \"\" 1", "+OK\r\n"}, {"KEYS *", "*1\r\n$0\r\n\r\n"},
		    {"KEYS **", "*0\r\n"}, {"SCAN 0", "*2\r\n$1\r\n0\r\n*1\r\n$0\r\n\r\n"},
		    {"RANDOMKEY", "$0\r\n\r\n"});
}

/* Draws random keys of a store, and counts in `seen` how often each was returned. */
static void draw(struct test_store *store, int draws, size_t prefix_len, int *seen)
{
	for (int i = 0; i < draws; i++) {
		const char *reply = test_run(store, "RANDOMKEY");
		struct hs_parsed_reply answer = take(&reply);

		seen[strtoul(answer.text.data + prefix_len, NULL, 10)]++;
	}
}

static void check_randomness(struct test_store *store, const char *prefix)
{
	int *seen = calloc(KEYS, sizeof *seen);
	int different = 0, most = 0;

	fill(store, prefix);
	draw(store, KEYS, strlen(prefix), seen);
	for (int i = 0; i < KEYS; i++) {
		different += seen[i] > 0;
		most = seen[i] > most ? seen[i] : most;
	}
	/* Perfectly even draws would return 63 % of the keys at least once. */
	assert_true(different > KEYS / 2);
	assert_true(most < 20);
	free(seen);
}

static void test_randomkey_is_random(void **state)
{
	assert_string_equal(test_run(*state, "RANDOMKEY"), "$-1\r\n");
	check_randomness(*state, "key:");
}

static void test_randomkey_is_random_within_one_slot(void **state)
{
	check_randomness(*state, "{t}");
}

static void test_randomkey_of_a_few_is_even(void **state)
{
	struct test_store *store = *state;
	int seen[4] = {0};

	test_run(store, "MSET k0 0 k1 1 k2 2 k3 3");
	draw(store, 4000, 1, seen);
	for (int i = 0; i < 4; i++)
		assert_in_range(seen[i], 850, 1150);
}

static void test_randomkey_finds_the_only_live_key(void **state)
{
	struct test_store *store = *state;
	char line[64];

	for (int i = 0; i < 200; i++) {
		snprintf(line, sizeof line, "SET key:%d 1 PX 1", i);
		test_run(store, line);
	}
	test_run(store, "SET live 1");
	store->ks.now_ms += 2;
	for (int i = 0; i < 100; i++)
		assert_string_equal(test_run(store, "RANDOMKEY"), "$4\r\nlive\r\n");
	test_run(store, "DEL live");
	assert_string_equal(test_run(store, "RANDOMKEY"), "$-1\r\n");
}

static void test_flushing(void **state)
{
	struct test_store *store = *state;

	TEST_SCRIPT(store, {"MSET a 1 b 2", "+OK\r\n"}, {"EXPIRE a 10", ":1\r\n"},
		    {"DBSIZE", ":2\r\n"}, {"FLUSHALL nosuch", SYNTAX},
		    {"FLUSHALL SYNC ASYNC", SYNTAX}, {"DBSIZE", ":2\r\n"},
		    {"FLUSHALL async", "+OK\r\n"}, {"DBSIZE", ":0\r\n"}, {"SET a 1", "+OK\r\n"},
		    {"FLUSHDB", "+OK\r\n"}, {"GET a", "$-1\r\n"}, {"FLUSHDB SYNC", "+OK\r\n"});
	assert_int_equal(hs_memkv_bytes(store->map), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_every_key_once),
		TEST(test_every_key_of_one_slot_once),
		TEST(test_keys_that_stay_are_seen_once),
		TEST(test_scan_filters_and_looks_at_count_keys_all_the_same),
		TEST(test_scan_arguments),
		TEST(test_keys),
		TEST(test_the_empty_key),
		TEST(test_randomkey_is_random),
		TEST(test_randomkey_is_random_within_one_slot),
		TEST(test_randomkey_of_a_few_is_even),
		TEST(test_randomkey_finds_the_only_live_key),
		TEST(test_flushing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
