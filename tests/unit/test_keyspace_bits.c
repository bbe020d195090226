/* Goal: bit commands and LCS give exactly Redis 7.0's replies.
 *
 * Method: scripts of commands with their whole replies, taken from a Redis server. BITCOUNT and BITPOS are also
 * compared with a simple loop over bits. */
#include "tests/lib/store.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define NOT_INT "-ERR value is not an integer or out of range\r\n"
#define BAD_OFFSET "-ERR bit offset is not an integer or out of range\r\n"
#define BAD_BIT "-ERR bit is not an integer or out of range\r\n"
#define SYNTAX "-ERR syntax error\r\n"

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

static void test_single_bits(void **state)
{
	TEST_SCRIPT(*state, {"GETBIT a 7", ":0\r\n"}, {"SETBIT a 7 1", ":0\r\n"},
		    {"SETBIT a 7 1", ":1\r\n"}, {"GETBIT a 7", ":1\r\n"},
		    {"GETBIT a 4294967295", ":0\r\n"}, {"STRLEN a", ":1\r\n"},
		    {"EXPIRE a 10", ":1\r\n"}, {"SETBIT a 17 0", ":0\r\n"}, {"STRLEN a", ":3\r\n"},
		    {"TTL a", ":10\r\n"}, {"SET b a", "+OK\r\n"}, {"SETBIT b 6 1", ":0\r\n"},
		    {"SETBIT b 7 0", ":1\r\n"}, {"GET b", "$1\r\nb\r\n"});
}

static void test_single_bit_errors(void **state)
{
	TEST_SCRIPT(*state, {"GETBIT a -1", BAD_OFFSET}, {"GETBIT a x", BAD_OFFSET},
		    {"GETBIT a 4294967296", BAD_OFFSET}, {"SETBIT a 4294967296 1", BAD_OFFSET},
		    {"SETBIT a 0 2", BAD_BIT}, {"SETBIT a 0 x", BAD_BIT},
		    {"SETBIT a -1 2", BAD_OFFSET}, {"EXISTS a", ":0\r\n"});
}

static void test_bitcount(void **state)
{
	TEST_SCRIPT(*state, {"BITCOUNT a", ":0\r\n"}, {"BITCOUNT a x", ":0\r\n"},
		    {"SET a foobar", "+OK\r\n"}, {"BITCOUNT a", ":26\r\n"},
		    {"BITCOUNT a 0 0", ":4\r\n"}, {"BITCOUNT a 1 1", ":6\r\n"},
		    {"BITCOUNT a 1 1 byte", ":6\r\n"}, {"BITCOUNT a 5 30 BIT", ":17\r\n"},
		    {"BITCOUNT a -1 -2", ":0\r\n"}, {"BITCOUNT a -1 -2 nosuch", ":0\r\n"},
		    {"BITCOUNT a 1 2 nosuch", SYNTAX}, {"BITCOUNT a 1", SYNTAX},
		    {"BITCOUNT a 1 x", NOT_INT}, {"BITCOUNT a 1 2 BIT x", SYNTAX});
}

static void test_bitpos(void **state)
{
	TEST_SCRIPT(*state, {"BITPOS a 0", ":0\r\n"}, {"BITPOS a 1", ":-1\r\n"},
		    {"BITPOS a 2", "-ERR The bit argument must be 1 or 0.\r\n"},
		    {"BITPOS a x", NOT_INT}, {"BITPOS a 1 x", ":-1\r\n"},
		    {"SET a \xff\xf0", "+OK\r\n"}, {"BITPOS a 0", ":12\r\n"},
		    {"BITPOS a 1", ":0\r\n"}, {"BITPOS a 1 1", ":8\r\n"},
		    {"BITPOS a 0 0 0", ":-1\r\n"}, {"BITPOS a 0 0 -1 BIT", ":12\r\n"},
		    {"BITPOS a 1 12 15 BIT", ":-1\r\n"}, {"BITPOS a 1 2", ":-1\r\n"},
		    {"BITPOS a 1 0 1 nosuch", SYNTAX}, {"BITPOS a 1 x", NOT_INT},
		    {"BITPOS a 1 0 x", NOT_INT}, {"SET a \xff\xff", "+OK\r\n"},
		    {"BITPOS a 0", ":16\r\n"}, {"BITPOS a 0 1", ":16\r\n"},
		    {"BITPOS a 0 0 -1", ":-1\r\n"}, {"SET a \"\"", "+OK\r\n"},
		    {"BITPOS a 0", ":-1\r\n"});
}

static bool bit(const unsigned char *value, int at)
{
	return value[at / 8] >> (7 - at % 8) & 1;
}

/* Tests all ranges of bits in values with long uniform stretches, in which the code skips whole words. */
static void test_ranges_of_bits(void **state)
{
	enum { BYTES = 40 };
	struct test_store *store = *state;
	unsigned char value[BYTES];
	struct hs_bytes set[] = {HS_LIT("SET"), HS_LIT("a"), {(char *)value, BYTES}};
	char line[64], expected[32];

	for (int fill = 0; fill < 2; fill++) {
		memset(value, fill ? 0xff : 0, sizeof value);
		value[1] ^= 0x10;
		value[30] ^= 0x24;
		test_run_args(store, 3, set);
		for (int start = 0; start < BYTES * 8; start += 7) {
			for (int end = start; end < BYTES * 8; end += 5) {
				int count = 0, first = -1;

				for (int i = end; i >= start; i--) {
					count += bit(value, i);
					first = bit(value, i) != fill ? i : first;
				}
				snprintf(line, sizeof line, "BITCOUNT a %d %d BIT", start, end);
				snprintf(expected, sizeof expected, ":%d\r\n", count);
				assert_string_equal(test_run(store, line), expected);
				snprintf(line, sizeof line, "BITPOS a %d %d %d BIT", !fill, start,
					 end);
				snprintf(expected, sizeof expected, ":%d\r\n", first);
				assert_string_equal(test_run(store, line), expected);
			}
		}
	}
}

static void test_lcs(void **state)
{
	TEST_SCRIPT(*state, {"LCS {t}1 {t}2", "$0\r\n\r\n"}, {"LCS {t}1 {t}2 LEN", ":0\r\n"},
		    {"LCS {t}1 {t}2 IDX", "*4\r\n$7\r\nmatches\r\n*0\r\n$3\r\nlen\r\n:0\r\n"},
		    {"MSET {t}1 ohmytext {t}2 mynewtext", "+OK\r\n"},
		    {"LCS {t}1 {t}2", "$6\r\nmytext\r\n"}, {"LCS {t}1 {t}2 LEN", ":6\r\n"},
		    {"LCS {t}1 {t}2 IDX",
		     "*4\r\n$7\r\nmatches\r\n*2\r\n*2\r\n*2\r\n:4\r\n:7\r\n*2\r\n:5\r\n:8\r\n"
		     "*2\r\n*2\r\n:2\r\n:3\r\n*2\r\n:0\r\n:1\r\n$3\r\nlen\r\n:6\r\n"},
		    {"LCS {t}1 {t}2 IDX MINMATCHLEN 4 WITHMATCHLEN",
		     "*4\r\n$7\r\nmatches\r\n*1\r\n*3\r\n*2\r\n:4\r\n:7\r\n*2\r\n:5\r\n:8\r\n:4\r\n"
		     "$3\r\nlen\r\n:6\r\n"});
}

static void test_lcs_errors(void **state)
{
	TEST_SCRIPT(*state,
		    {"LCS {t}1 {t}2 LEN IDX",
		     "-ERR If you want both the length and indexes, please just use IDX.\r\n"},
		    {"LCS {t}1 {t}2 nosuch", SYNTAX}, {"LCS {t}1 {t}2 MINMATCHLEN", SYNTAX},
		    {"LCS {t}1 {t}2 MINMATCHLEN x", NOT_INT},
		    {"SETRANGE {t}1 11999 x", ":12000\r\n"},
		    {"SETRANGE {t}2 11999 x", ":12000\r\n"},
		    {"LCS {t}1 {t}2 LEN", "-ERR Insufficient memory, transient memory for LCS "
					  "exceeds proto-max-bulk-len\r\n"});
}

static void test_lcs_is_a_map_in_resp3(void **state)
{
	struct test_store *store = *state;

	store->resp = 3;
	TEST_SCRIPT(store,
		    {"LCS {t}1 {t}2 IDX", "%2\r\n$7\r\nmatches\r\n*0\r\n$3\r\nlen\r\n:0\r\n"});
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_single_bits), TEST(test_single_bit_errors),	  TEST(test_bitcount),
		TEST(test_bitpos),	TEST(test_ranges_of_bits),	  TEST(test_lcs),
		TEST(test_lcs_errors),	TEST(test_lcs_is_a_map_in_resp3),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
