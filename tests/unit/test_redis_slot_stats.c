/* Goal: what servers count for slots is read in both dialects, added up by partition, and a reply
 * that is none changes nothing.
 * Method: replies in the forms of Valkey 8 and Redis 8.2, whole, wrong and cut at every byte. */
#include "engine/redis/slot_stats.h"

#include "base/err.h"

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

struct bench {
	struct hs_slot_stats table[HS_SLOTS];
	struct hs_slot_map map;
	char why[256];
};

static int setup(void **state)
{
	*state = calloc(1, sizeof(struct bench));
	return *state ? 0 : -1;
}

static int teardown(void **state)
{
	free(*state);
	return 0;
}

static int parse(struct bench *bench, const char *reply)
{
	return hs_slot_stats_parse(bench->table, hs_bytes_of(reply), bench->why, sizeof bench->why);
}

static void test_both_dialects(void **state)
{
	struct bench *bench = *state;

	assert_int_equal(parse(bench, RESP2), 2);
	assert_int_equal(parse(bench, RESP3), 1);
	assert_int_equal(bench->table[5].keys, 7);
	assert_int_equal(bench->table[5].cpu_us, 12);
	assert_int_equal(bench->table[5].bytes_in, 100);
	assert_int_equal(bench->table[5].bytes_out, 200);
	assert_int_equal(bench->table[6].keys, 3);
	assert_int_equal(bench->table[6].memory_bytes, 64);
	assert_int_equal(bench->table[16383].keys, 1);
	assert_int_equal(bench->table[16383].cpu_us, 0);
	assert_int_equal(parse(bench, "*0\r\n"), 0);
}

static void test_sums(void **state)
{
	struct bench *bench = *state;
	struct hs_slot_stats sums[2];

	assert_int_equal(parse(bench, RESP2), 2);
	assert_int_equal(parse(bench, RESP3), 1);
	hs_slot_map_fill_even(&bench->map, 2);
	hs_slot_stats_sum(bench->table, &bench->map, sums, 2);
	assert_int_equal(sums[0].keys, 10);
	assert_int_equal(sums[0].cpu_us, 12);
	assert_int_equal(sums[0].memory_bytes, 64);
	assert_int_equal(sums[0].bytes_in, 100);
	assert_int_equal(sums[0].bytes_out, 200);
	assert_int_equal(sums[1].keys, 1);
	hs_slot_stats_sum(bench->table, &bench->map, sums, 1); /* the second one's are left out */
	assert_int_equal(sums[0].keys, 10);
	assert_int_equal(sums[1].keys, 1); /* as it was */
}

static void test_wrong_ones_change_nothing(void **state)
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
	const struct hs_slot_stats none[1] = {{0}};

	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		assert_int_equal(parse(bench, wrong[i]), HS_EPROTO);
		assert_memory_equal(&bench->table[5], none, sizeof *none);
	}
	for (size_t len = 0; len < sizeof RESP2 - 1; len++) {
		char *copy = malloc(len ? len : 1);

		assert_non_null(copy);
		memcpy(copy, RESP2, len);
		assert_int_equal(hs_slot_stats_parse(bench->table, (struct hs_bytes){copy, len},
						     bench->why, sizeof bench->why),
				 HS_EPROTO);
		free(copy);
	}
	assert_memory_equal(&bench->table[5], none, sizeof *none);
}

static void test_a_refusal_is_told(void **state)
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
		TEST(test_sums),
		TEST(test_wrong_ones_change_nothing),
		TEST(test_a_refusal_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
