/* Goal: a key exists until its expiry and is missing for every command from the next millisecond on. Writers
 * replace an expired record, the sweep removes the others, and the index of expiries always agrees with the keys.
 *
 * Method: scripts on a store in memory whose clock only the test moves. After each test the index is compared with
 * the keys. */
#include "base/slot.h"
#include "tests/lib/store.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define NOT_INT "-ERR value is not an integer or out of range\r\n"
#define EXPIRE_OF(name) "-ERR invalid expire time in '" name "' command\r\n"

static int setup(void **state)
{
	static struct test_store store;

	test_store_init(&store);
	*state = &store;
	return 0;
}

static int teardown(void **state)
{
	test_check_expiries(*state);
	test_store_deinit(*state);
	return 0;
}

static int sweep(struct test_store *store, size_t limit)
{
	int swept;

	hs_memkv_begin(store->map);
	swept = hs_keyspace_sweep(&store->ks, limit);
	hs_memkv_commit(store->map);
	return swept;
}

static uint64_t stored(struct test_store *store)
{
	uint64_t entries;

	assert_int_equal(store->ks.kv->calls->count(store->ks.kv, HS_KV_KEYS, &entries), 0);
	return entries;
}

static void test_setting_and_reading_times(void **state)
{
	TEST_SCRIPT(*state, {"TTL a", ":-2\r\n"}, {"PTTL a", ":-2\r\n"},
		    {"EXPIRETIME a", ":-2\r\n"}, {"EXPIRE a 10", ":0\r\n"}, {"SET a 1", "+OK\r\n"},
		    {"TTL a", ":-1\r\n"}, {"PEXPIRETIME a", ":-1\r\n"}, {"EXPIRE a 10", ":1\r\n"},
		    {"PTTL a", ":10000\r\n"}, {"EXPIRETIME a", ":1000010\r\n"},
		    {"PEXPIRE a 1499", ":1\r\n"}, {"TTL a", ":1\r\n"}, {"PEXPIRE a 1500", ":1\r\n"},
		    {"TTL a", ":2\r\n"}, {"EXPIREAT a 1000005", ":1\r\n"}, {"TTL a", ":5\r\n"},
		    {"PEXPIREAT a 1000000007", ":1\r\n"}, {"PTTL a", ":7\r\n"},
		    {"PEXPIRETIME a", ":1000000007\r\n"}, {"PERSIST a", ":1\r\n"},
		    {"PERSIST a", ":0\r\n"}, {"PERSIST b", ":0\r\n"}, {"TTL a", ":-1\r\n"},
		    {"PEXPIREAT a 9223372036854775807", ":1\r\n"},
		    {"EXPIRETIME a", ":9223372036854776\r\n"});
}

static void test_times_that_do_not_fit(void **state)
{
	TEST_SCRIPT(*state, {"EXPIRE a x", NOT_INT}, {"EXPIRE a 1.5", NOT_INT},
		    {"EXPIRE a 9223372036854776", EXPIRE_OF("expire")},
		    {"EXPIRE a -9223372036854776", EXPIRE_OF("expire")},
		    {"EXPIRE a 9223372036854775", EXPIRE_OF("expire")},
		    {"PEXPIRE a 9223372036854775807", EXPIRE_OF("pexpire")},
		    {"EXPIREAT a 9223372036854776", EXPIRE_OF("expireat")},
		    {"PEXPIREAT a -9223372036854775808", ":0\r\n"},
		    {"EXPIRE a 10 nosuch", "-ERR Unsupported option nosuch\r\n"},
		    {"EXPIRE a x nosuch", "-ERR Unsupported option nosuch\r\n"});
}

static void test_conditions(void **state)
{
#define NX_AND "-ERR NX and XX, GT or LT options at the same time are not compatible\r\n"
#define GT_AND "-ERR GT and LT options at the same time are not compatible\r\n"
	TEST_SCRIPT(*state, {"SET a 1", "+OK\r\n"}, {"EXPIRE a 10 XX", ":0\r\n"},
		    {"EXPIRE a 10 GT", ":0\r\n"}, {"EXPIRE a 10 NX", ":1\r\n"},
		    {"EXPIRE a 20 NX", ":0\r\n"}, {"EXPIRE a 10 GT", ":0\r\n"},
		    {"EXPIRE a 10 LT", ":0\r\n"}, {"EXPIRE a 11 gt", ":1\r\n"},
		    {"EXPIRE a 9 lt xx", ":1\r\n"}, {"TTL a", ":9\r\n"}, {"PERSIST a", ":1\r\n"},
		    {"EXPIRE a 9 LT XX", ":0\r\n"}, {"EXPIRE a 9 LT", ":1\r\n"},
		    {"EXPIRE a 9 NX XX", NX_AND}, {"EXPIRE a 9 LT NX", NX_AND},
		    {"EXPIRE a 9 GT LT", GT_AND});
}

static void test_a_time_not_ahead_removes_the_key(void **state)
{
	struct test_store *store = *state;

	TEST_SCRIPT(store, {"MSET a 1 b 2 c 3 d 4", "+OK\r\n"}, {"EXPIRE a 0", ":1\r\n"},
		    {"EXPIRE b -5", ":1\r\n"}, {"EXPIREAT c 1000000", ":1\r\n"},
		    {"PEXPIREAT d 1000000001", ":1\r\n"}, {"EXISTS a b c d", ":1\r\n"});
	assert_int_equal(stored(store), 1);
}

static void test_expired_in_the_millisecond_after(void **state)
{
	struct test_store *store = *state;

	test_run(store, "SET a 1 PX 5");
	store->ks.now_ms += 5;
	TEST_SCRIPT(store, {"GET a", "$1\r\n1\r\n"}, {"PTTL a", ":0\r\n"}, {"DBSIZE", ":1\r\n"});
	store->ks.now_ms += 1;
	TEST_SCRIPT(store, {"GET a", "$-1\r\n"}, {"MGET a", "*1\r\n$-1\r\n"},
		    {"EXISTS a", ":0\r\n"}, {"TYPE a", "+none\r\n"}, {"TTL a", ":-2\r\n"},
		    {"STRLEN a", ":0\r\n"}, {"GETRANGE a 0 -1", "$0\r\n\r\n"},
		    {"GETBIT a 2", ":0\r\n"}, {"BITCOUNT a", ":0\r\n"},
		    {"OBJECT ENCODING a", "$-1\r\n"}, {"KEYS *", "*0\r\n"},
		    {"SCAN 0", "*2\r\n$1\r\n0\r\n*0\r\n"}, {"RANDOMKEY", "$-1\r\n"},
		    {"DBSIZE", ":0\r\n"}, {"DEL a", ":0\r\n"}, {"PERSIST a", ":0\r\n"},
		    {"EXPIRE a 10", ":0\r\n"}, {"RENAME a {a}", "-ERR no such key\r\n"},
		    {"COPY a {a}", ":0\r\n"}, {"GETDEL a", "$-1\r\n"}, {"SET a 1 XX", "$-1\r\n"});
	/* These commands did not write, so the expired record is still stored. */
	assert_int_equal(stored(store), 1);
	assert_int_equal(store->counts.expired, 0);
}

/* Each writer finds the expired key missing, and writes a new value without the old expiry. */
static void test_writers_replace_an_expired_value(void **state)
{
	static const struct test_line lines[] = {
		{"SET a 7", "+OK\r\n"},	       {"SET a 7 NX KEEPTTL", "+OK\r\n"},
		{"SETNX a 7", ":1\r\n"},       {"GETSET a 7", "$-1\r\n"},
		{"INCRBY a 7", ":7\r\n"},      {"INCRBYFLOAT a 7", "$1\r\n7\r\n"},
		{"APPEND a 7", ":1\r\n"},      {"SETRANGE a 0 7", ":1\r\n"},
		{"MSET a 7", "+OK\r\n"},       {"MSETNX a 7", ":1\r\n"},
		{"COPY {a}7 a", ":1\r\n"},     {"SET a 7 GET", "$-1\r\n"},
		{"RENAMENX {a}7 a", ":1\r\n"},
	};
	struct test_store *store = *state;

	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
		test_run(store, "SET {a}7 7");
		test_run(store, "SET a 123 PX 5");
		store->ks.now_ms += 6;
		test_script(store, 1, &lines[i]);
		TEST_SCRIPT(store, {"GET a", "$1\r\n7\r\n"}, {"TTL a", ":-1\r\n"});
		test_check_expiries(store);
		assert_int_equal(store->counts.expired, i + 1);
	}
}

static void test_the_sweep_takes_the_oldest_first_and_stops(void **state)
{
	struct test_store *store = *state;
	char line[64];

	for (int i = 10; i > 0; i--) {
		snprintf(line, sizeof line, "SET key:%d 1 PX %d", i, i * 10);
		test_run(store, line);
	}
	test_run(store, "SET forever 1");
	assert_int_equal(sweep(store, 100), 0);
	store->ks.now_ms += 51;
	assert_string_equal(test_run(store, "DBSIZE"), ":6\r\n");
	assert_int_equal(sweep(store, 2), 2);
	assert_int_equal(stored(store), 9);
	test_check_expiries(store);
	assert_string_equal(test_run(store, "DBSIZE"), ":6\r\n");
	assert_int_equal(sweep(store, 100), 3);
	assert_int_equal(sweep(store, 100), 0);
	assert_int_equal(stored(store), 6);
	assert_int_equal(store->counts.expired, 5);
}

static void test_the_sweep_spares_a_key_given_more_time(void **state)
{
	struct test_store *store = *state;

	TEST_SCRIPT(store, {"SET a 1 PX 5", "+OK\r\n"}, {"SET b 1 PX 5", "+OK\r\n"},
		    {"SET c 1 PX 5", "+OK\r\n"}, {"PEXPIRE a 50", ":1\r\n"},
		    {"PERSIST b", ":1\r\n"}, {"SET c 2", "+OK\r\n"});
	store->ks.now_ms += 10;
	assert_int_equal(sweep(store, 100), 0);
	assert_string_equal(test_run(store, "EXISTS a b c"), ":3\r\n");
}

static void test_long_keys_expire_and_are_swept(void **state)
{
	struct test_store *store = *state;
	char key[5000];
	struct hs_bytes setex[] = {HS_LIT("PSETEX"), {key, sizeof key}, HS_LIT("5"), HS_LIT("v")};

	memset(key, 'k', sizeof key);
	test_run_args(store, 4, setex);
	assert_int_equal(
		hs_watch_add(store->ks.watch, &store->ks, 1, hs_slot_of(setex[1]), setex[1]), 0);
	store->ks.now_ms += 6;
	assert_int_equal(sweep(store, 100), 1);
	assert_int_equal(stored(store), 0);
	assert_false(hs_watch_clean(store->ks.watch, &store->ks, 1));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_setting_and_reading_times),
		TEST(test_times_that_do_not_fit),
		TEST(test_conditions),
		TEST(test_a_time_not_ahead_removes_the_key),
		TEST(test_expired_in_the_millisecond_after),
		TEST(test_writers_replace_an_expired_value),
		TEST(test_the_sweep_takes_the_oldest_first_and_stops),
		TEST(test_the_sweep_spares_a_key_given_more_time),
		TEST(test_long_keys_expire_and_are_swept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
