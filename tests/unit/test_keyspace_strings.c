/* Goal: commands on strings, numbers and ranges give exactly Redis 7.0's replies.
 *
 * Method: scripts of commands with their whole replies, taken from a Redis server, on a store in memory whose
 * clock stands still. */
#include "tests/lib/store.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define NOT_INT "-ERR value is not an integer or out of range\r\n"
#define NOT_FLOAT "-ERR value is not a valid float\r\n"
#define SYNTAX "-ERR syntax error\r\n"
#define TOO_LONG "-ERR string exceeds maximum allowed size (proto-max-bulk-len)\r\n"
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

static void test_get_and_set(void **state)
{
	TEST_SCRIPT(*state, {"GET a", "$-1\r\n"}, {"SET a 1", "+OK\r\n"}, {"GET a", "$1\r\n1\r\n"},
		    {"SET a \"\"", "+OK\r\n"}, {"GET a", "$0\r\n\r\n"}, {"SETNX a 2", ":0\r\n"},
		    {"SETNX b 2", ":1\r\n"}, {"GETSET b 3", "$1\r\n2\r\n"},
		    {"GETSET c 3", "$-1\r\n"}, {"GETDEL c", "$1\r\n3\r\n"}, {"GETDEL c", "$-1\r\n"},
		    {"GET c", "$-1\r\n"});
}

static void test_null_in_resp3(void **state)
{
	struct test_store *store = *state;

	store->resp = 3;
	TEST_SCRIPT(store, {"GET a", "_\r\n"}, {"SET a 1 XX", "_\r\n"}, {"SET a 1 GET", "_\r\n"},
		    {"MGET a b", "*2\r\n$1\r\n1\r\n_\r\n"}, {"OBJECT ENCODING b", "_\r\n"});
}

static void test_set_conditions(void **state)
{
	TEST_SCRIPT(*state, {"SET a 1 XX", "$-1\r\n"}, {"SET a 1 NX", "+OK\r\n"},
		    {"SET a 2 nx", "$-1\r\n"}, {"SET a 2 xx", "+OK\r\n"},
		    {"SET a 3 GET", "$1\r\n2\r\n"}, {"SET a 4 NX GET", "$1\r\n3\r\n"},
		    {"SET b 4 NX GET", "$-1\r\n"}, {"GET b", "$1\r\n4\r\n"},
		    {"SET c 4 XX GET", "$-1\r\n"}, {"GET c", "$-1\r\n"}, {"SET a 1 NX XX", SYNTAX},
		    {"SET a 1 NX NX", "$-1\r\n"}, {"SET a 1 PERSIST", SYNTAX},
		    {"SET a 1 nosuch", SYNTAX});
}

static void test_set_expiry(void **state)
{
	TEST_SCRIPT(*state, {"SET a 1 EX 10", "+OK\r\n"}, {"PTTL a", ":10000\r\n"},
		    {"SET a 1 PX 10", "+OK\r\n"}, {"PTTL a", ":10\r\n"},
		    {"SET a 1 KEEPTTL", "+OK\r\n"}, {"PTTL a", ":10\r\n"}, {"SET a 1", "+OK\r\n"},
		    {"PTTL a", ":-1\r\n"}, {"SET a 1 EXAT 1000001", "+OK\r\n"},
		    {"PTTL a", ":1000\r\n"}, {"SET a 1 PXAT 1000000001", "+OK\r\n"},
		    {"PTTL a", ":1\r\n"}, {"SET a 1 EX 5 EX 6", "+OK\r\n"}, {"TTL a", ":6\r\n"},
		    {"SET a 2 EXAT 1", "+OK\r\n"}, {"GET a", "$-1\r\n"});
}

static void test_set_expiry_errors(void **state)
{
	TEST_SCRIPT(*state, {"SET a 1 EX", SYNTAX}, {"SET a 1 EX 0", EXPIRE_OF("set")},
		    {"SET a 1 PX -1", EXPIRE_OF("set")}, {"SET a 1 EX x", NOT_INT},
		    {"SET a 1 EX 9223372036854776", EXPIRE_OF("set")},
		    {"SET a 1 PX 9223372036854775807", EXPIRE_OF("set")},
		    {"SET a 1 PXAT 9223372036854775807", "+OK\r\n"}, {"SET a 1 EX 1 PX 1", SYNTAX},
		    {"SET a 1 EX 1 KEEPTTL", SYNTAX}, {"SET a 1 KEEPTTL EX 1", SYNTAX},
		    {"SET a 1 EX 0 nosuch", SYNTAX}, {"SETEX a 0 1", EXPIRE_OF("setex")},
		    {"SETEX a x 1", NOT_INT}, {"PSETEX a -5 1", EXPIRE_OF("psetex")},
		    {"PSETEX a 5 1", "+OK\r\n"}, {"PTTL a", ":5\r\n"}, {"SETEX a 5 1", "+OK\r\n"},
		    {"PTTL a", ":5000\r\n"});
}

static void test_getex(void **state)
{
	TEST_SCRIPT(*state, {"GETEX a EX 0", "$-1\r\n"}, {"SET a 1", "+OK\r\n"},
		    {"GETEX a EX 10", "$1\r\n1\r\n"}, {"PTTL a", ":10000\r\n"},
		    {"GETEX a", "$1\r\n1\r\n"}, {"PTTL a", ":10000\r\n"},
		    {"GETEX a PERSIST", "$1\r\n1\r\n"}, {"PTTL a", ":-1\r\n"},
		    {"GETEX a EX 0", EXPIRE_OF("getex")}, {"GETEX a KEEPTTL", SYNTAX},
		    {"GETEX a NX", SYNTAX}, {"GETEX a PERSIST EX 1", SYNTAX},
		    {"GETEX a PXAT 1000000000", "$1\r\n1\r\n"}, {"GET a", "$-1\r\n"});
}

static void test_many_keys(void **state)
{
	TEST_SCRIPT(*state, {"MSET a 1 b 2 a 3", "+OK\r\n"},
		    {"MGET a b nosuch a", "*4\r\n$1\r\n3\r\n$1\r\n2\r\n$-1\r\n$1\r\n3\r\n"},
		    {"MSET a 1 b", "-ERR wrong number of arguments for 'mset' command\r\n"},
		    {"MSETNX {t}1 1 {t}2 2", ":1\r\n"}, {"MSETNX {t}2 3 {t}3 3", ":0\r\n"},
		    {"MSETNX a 1 b", "-ERR wrong number of arguments for 'msetnx' command\r\n"},
		    {"MGET {t}2 {t}3", "*2\r\n$1\r\n2\r\n$-1\r\n"});
}

static void test_integers(void **state)
{
	TEST_SCRIPT(
		*state, {"INCR a", ":1\r\n"}, {"DECR a", ":0\r\n"}, {"DECR a", ":-1\r\n"},
		{"INCRBY a 10", ":9\r\n"}, {"DECRBY a -1", ":10\r\n"}, {"INCRBY a x", NOT_INT},
		{"INCRBY a 9223372036854775807", "-ERR increment or decrement would overflow\r\n"},
		{"DECRBY a -9223372036854775808", "-ERR decrement would overflow\r\n"},
		{"GET a", "$2\r\n10\r\n"}, {"SET a 010", "+OK\r\n"}, {"INCR a", NOT_INT},
		{"SET a \"\"", "+OK\r\n"}, {"INCR a", NOT_INT}, {"SET a 1 EX 10", "+OK\r\n"},
		{"INCR a", ":2\r\n"}, {"TTL a", ":10\r\n"});
}

static void test_floats(void **state)
{
	TEST_SCRIPT(*state, {"INCRBYFLOAT a 0.1", "$3\r\n0.1\r\n"},
		    {"INCRBYFLOAT a 0.2", "$3\r\n0.3\r\n"}, {"INCRBYFLOAT a 2.7", "$1\r\n3\r\n"},
		    {"INCRBYFLOAT a 5e3", "$4\r\n5003\r\n"},
		    {"INCRBYFLOAT a 0x10", "$4\r\n5019\r\n"}, {"INCRBYFLOAT a nan", NOT_FLOAT},
		    {"INCRBYFLOAT a 1x", NOT_FLOAT}, {"INCRBYFLOAT a \"\"", NOT_FLOAT},
		    {"INCRBYFLOAT a 1e5000", NOT_FLOAT},
		    {"INCRBYFLOAT a inf", "-ERR increment would produce NaN or Infinity\r\n"},
		    {"SET a -1", "+OK\r\n"}, {"INCRBYFLOAT a 1", "$1\r\n0\r\n"},
		    {"SET a x EX 10", "+OK\r\n"}, {"INCRBYFLOAT a y", NOT_FLOAT},
		    {"SET a 1 EX 10", "+OK\r\n"}, {"INCRBYFLOAT a 1", "$1\r\n2\r\n"},
		    {"TTL a", ":10\r\n"});
}

static void test_appending(void **state)
{
	TEST_SCRIPT(*state, {"STRLEN a", ":0\r\n"}, {"APPEND a 12", ":2\r\n"},
		    {"EXPIRE a 10", ":1\r\n"}, {"APPEND a 345", ":5\r\n"}, {"TTL a", ":10\r\n"},
		    {"GET a", "$5\r\n12345\r\n"}, {"STRLEN a", ":5\r\n"});
}

static void test_ranges(void **state)
{
	TEST_SCRIPT(*state, {"GETRANGE a 0 -1", "$0\r\n\r\n"}, {"SET a 0123456789", "+OK\r\n"},
		    {"GETRANGE a 0 2", "$3\r\n012\r\n"}, {"SUBSTR a -3 -1", "$3\r\n789\r\n"},
		    {"GETRANGE a -100 100", "$10\r\n0123456789\r\n"},
		    {"GETRANGE a 5 4", "$0\r\n\r\n"}, {"GETRANGE a -1 -3", "$0\r\n\r\n"},
		    {"GETRANGE a -100 -50", "$1\r\n0\r\n"}, {"GETRANGE a 10 20", "$0\r\n\r\n"},
		    {"GETRANGE a x 1", NOT_INT}, {"GETRANGE a 1 9223372036854775808", NOT_INT},
		    {"GETRANGE a 9223372036854775807 -9223372036854775808", "$0\r\n\r\n"});
}

static void test_writing_ranges(void **state)
{
	struct test_store *store = *state;

	TEST_SCRIPT(store, {"SETRANGE a 5 \"\"", ":0\r\n"}, {"GET a", "$-1\r\n"},
		    {"SETRANGE a 2 xy", ":4\r\n"}, {"SET b 0123456789 EX 9", "+OK\r\n"},
		    {"SETRANGE b 3 xy", ":10\r\n"}, {"GET b", "$10\r\n012xy56789\r\n"},
		    {"SETRANGE b 9 zz", ":11\r\n"}, {"TTL b", ":9\r\n"},
		    {"SETRANGE b 0 \"\"", ":11\r\n"},
		    {"SETRANGE b -1 x", "-ERR offset is out of range\r\n"},
		    {"SETRANGE b x x", NOT_INT}, {"SETRANGE b 536870912 x", TOO_LONG},
		    {"SETRANGE nosuch 536870911 xx", TOO_LONG},
		    {"SETRANGE b 9223372036854775807 x", TOO_LONG});
	assert_memory_equal(test_run(store, "GET a"), "$4\r\n\0\0xy\r\n", 10);
}

static void test_any_bytes_are_a_value(void **state)
{
	struct test_store *store = *state;
	struct hs_bytes set[] = {HS_LIT("SET"), HS_LIT("\0\xff\r\n"), HS_LIT("\r\n\0\x80")};
	struct hs_bytes get[] = {HS_LIT("GET"), HS_LIT("\0\xff\r\n")};

	assert_string_equal(test_run_args(store, 3, set), "+OK\r\n");
	assert_memory_equal(test_run_args(store, 2, get), "$4\r\n\r\n\0\x80\r\n", 10);
}

static void test_long_keys_are_keys(void **state)
{
	struct test_store *store = *state;
	char key[600];
	struct hs_bytes get[] = {HS_LIT("GET"), {key, sizeof key}};
	struct hs_bytes set[] = {
		HS_LIT("SET"), {key, sizeof key}, HS_LIT("one"), HS_LIT("EX"), HS_LIT("5")};

	memset(key, 'k', sizeof key);
	assert_string_equal(test_run_args(store, 5, set), "+OK\r\n");
	assert_string_equal(test_run_args(store, 2, get), "$3\r\none\r\n");
	key[599] = 'x';
	assert_string_equal(test_run_args(store, 2, get), "$-1\r\n");
}

static void test_hits_and_misses_are_counted_for_reads(void **state)
{
	struct test_store *store = *state;

	TEST_SCRIPT(store, {"SET a 1", "+OK\r\n"}, {"INCR a", ":2\r\n"}, {"DEL b", ":0\r\n"});
	assert_int_equal(store->counts.hits, 0);
	assert_int_equal(store->counts.misses, 0);
	TEST_SCRIPT(store, {"GET a", "$1\r\n2\r\n"}, {"GET b", "$-1\r\n"},
		    {"EXISTS a b a", ":2\r\n"}, {"MGET b", "*1\r\n$-1\r\n"}, {"TTL a", ":-1\r\n"},
		    {"SET a 1 GET", "$1\r\n2\r\n"});
	assert_int_equal(store->counts.hits, 5);
	assert_int_equal(store->counts.misses, 3);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_get_and_set),
		TEST(test_null_in_resp3),
		TEST(test_set_conditions),
		TEST(test_set_expiry),
		TEST(test_set_expiry_errors),
		TEST(test_getex),
		TEST(test_many_keys),
		TEST(test_integers),
		TEST(test_floats),
		TEST(test_appending),
		TEST(test_ranges),
		TEST(test_writing_ranges),
		TEST(test_any_bytes_are_a_value),
		TEST(test_long_keys_are_keys),
		TEST(test_hits_and_misses_are_counted_for_reads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
