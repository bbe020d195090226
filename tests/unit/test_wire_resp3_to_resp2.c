/* Goal: RESP3 replies are translated to RESP2: each type alone and nested, replies that are equal in both,
 * conversions that only the caller can choose (null arrays, pairs), and malformed replies.
 *
 * Method: one table of replies with their translation. Each reply is also cut at every byte, and followed by
 * further bytes: both must be refused without writing anything. */
#include "wire/resp3_to_resp2.h"

#include "base/err.h"
#include "base/mem.h"
#include "wire/parse_reply.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define PAIRS HS_RESP2_FLAT_PAIRS
#define NULL_ARRAYS HS_RESP2_NULL_ARRAYS

struct sample {
	struct hs_bytes resp3;
	struct hs_bytes resp2; /* expected translation; NULL: the same bytes as in RESP3 */
	unsigned how;
};

#define SAME                                                                                       \
	{                                                                                          \
		NULL, 0                                                                            \
	}

static const struct sample samples[] = {
	/* Replies that are equal in RESP2 and RESP3. */
	{HS_LIT("+OK\r\n"), SAME, 0},
	{HS_LIT(":-12\r\n"), SAME, 0},
	{HS_LIT("$5\r\na\r\nbc\r\n"), SAME, 0},
	{HS_LIT("$0\r\n\r\n"), SAME, PAIRS | NULL_ARRAYS},
	{HS_LIT("-ERR no\r\n"), SAME, 0},
	{HS_LIT("*0\r\n"), SAME, PAIRS},
	{HS_LIT("*2\r\n$1\r\na\r\n*1\r\n:1\r\n"), SAME, 0},
	{HS_LIT("*2\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n*2\r\n$1\r\nc\r\n$1\r\nd\r\n"), SAME, PAIRS},
	{HS_LIT("$-1\r\n"), SAME, NULL_ARRAYS}, /* a RESP2 null is not translated */
	{HS_LIT("_\r\n"), HS_LIT("$-1\r\n"), 0},
	{HS_LIT("_\r\n"), HS_LIT("$-1\r\n"), PAIRS},
	{HS_LIT("_\r\n"), HS_LIT("*-1\r\n"), NULL_ARRAYS},
	{HS_LIT(",1.5\r\n"), HS_LIT("$3\r\n1.5\r\n"), 0},
	{HS_LIT(",-inf\r\n"), HS_LIT("$4\r\n-inf\r\n"), 0},
	{HS_LIT("#t\r\n"), HS_LIT(":1\r\n"), 0},
	{HS_LIT("#f\r\n"), HS_LIT(":0\r\n"), 0},
	{HS_LIT("(12345678901234567890123\r\n"), HS_LIT("$23\r\n12345678901234567890123\r\n"), 0},
	{HS_LIT("=8\r\ntxt:so\r\n\r\n"), HS_LIT("$4\r\nso\r\n\r\n"), 0},
	{HS_LIT("!8\r\nERR a\r\nb\r\n"), HS_LIT("-ERR a  b\r\n"), 0},
	{HS_LIT("%0\r\n"), HS_LIT("*0\r\n"), 0},
	{HS_LIT("~0\r\n"), HS_LIT("*0\r\n"), 0},
	{HS_LIT("~2\r\n$1\r\na\r\n:7\r\n"), HS_LIT("*2\r\n$1\r\na\r\n:7\r\n"), 0},
	{HS_LIT("%2\r\n+a\r\n$1\r\n1\r\n+b\r\n_\r\n"),
	 HS_LIT("*4\r\n+a\r\n$1\r\n1\r\n+b\r\n$-1\r\n"), 0},
	{HS_LIT("*3\r\n_\r\n%1\r\n#t\r\n~1\r\n,2\r\n*1\r\n*1\r\n_\r\n"),
	 HS_LIT("*3\r\n$-1\r\n*2\r\n:1\r\n*1\r\n$1\r\n2\r\n*1\r\n*1\r\n$-1\r\n"), 0},
	{HS_LIT("*2\r\n_\r\n*2\r\n,1.5\r\n,2\r\n"),
	 HS_LIT("*2\r\n*-1\r\n*2\r\n$3\r\n1.5\r\n$1\r\n2\r\n"), NULL_ARRAYS},
	/* Attributes are dropped. */
	{HS_LIT("|1\r\n+ttl\r\n:3\r\n+OK\r\n"), HS_LIT("+OK\r\n"), 0},
	{HS_LIT("*2\r\n|2\r\n+a\r\n*2\r\n%1\r\n:1\r\n:2\r\n_\r\n+b\r\n~0\r\n:1\r\n:2\r\n"),
	 HS_LIT("*2\r\n:1\r\n:2\r\n"), 0},
	{HS_LIT("|1\r\n|1\r\n+c\r\n+d\r\n+a\r\n+b\r\n|1\r\n+e\r\n+f\r\n:1\r\n"), HS_LIT(":1\r\n"),
	 0},
	{HS_LIT("|0\r\n:1\r\n"), HS_LIT(":1\r\n"), 0},
	/* Lists of pairs become flat lists. */
	{HS_LIT("*2\r\n*2\r\n$1\r\na\r\n,1\r\n*2\r\n$1\r\nb\r\n,2.5\r\n"),
	 HS_LIT("*4\r\n$1\r\na\r\n$1\r\n1\r\n$1\r\nb\r\n$3\r\n2.5\r\n"), PAIRS},
	{HS_LIT("*2\r\n*2\r\n$1\r\na\r\n,1\r\n*2\r\n$1\r\nb\r\n,2.5\r\n"),
	 HS_LIT("*2\r\n*2\r\n$1\r\na\r\n$1\r\n1\r\n*2\r\n$1\r\nb\r\n$3\r\n2.5\r\n"), 0},
	{HS_LIT("*1\r\n|1\r\n+a\r\n+b\r\n*2\r\n|1\r\n+a\r\n+b\r\n$1\r\na\r\n,1\r\n"),
	 HS_LIT("*2\r\n$1\r\na\r\n$1\r\n1\r\n"), PAIRS},
	{HS_LIT("*2\r\n,1\r\n*2\r\n:1\r\n:2\r\n"), HS_LIT("*2\r\n$1\r\n1\r\n*2\r\n:1\r\n:2\r\n"),
	 PAIRS},
	{HS_LIT("*1\r\n*3\r\n,1\r\n:1\r\n:2\r\n"), HS_LIT("*1\r\n*3\r\n$1\r\n1\r\n:1\r\n:2\r\n"),
	 PAIRS},
	{HS_LIT(",1\r\n"), HS_LIT("$1\r\n1\r\n"), PAIRS},
};

enum { SAMPLES = sizeof samples / sizeof *samples };

/* The reply lies in an allocation of exactly its length, so that the address sanitizer reports a read beyond
 * the end. */
static int translate(struct hs_bytes resp3, unsigned how, struct hs_buf *out)
{
	char *copy = hs_mem_alloc(resp3.len ? resp3.len : 1);
	int result;

	memcpy(copy, resp3.data, resp3.len);
	result = hs_resp3_to_resp2((struct hs_bytes){copy, resp3.len}, how, out);
	hs_mem_free(&copy);
	return result;
}

static void test_every_type(void **state)
{
	(void)state;
	for (size_t i = 0; i < SAMPLES; i++) {
		struct hs_buf out = {0};

		hs_buf_append(&out, "before", 6);
		assert_int_equal(translate(samples[i].resp3, samples[i].how, &out),
				 samples[i].resp2.data != NULL);
		assert_int_equal(out.len, 6 + samples[i].resp2.len);
		assert_memory_equal(out.data, "before", 6);
		if (samples[i].resp2.data) {
			assert_memory_equal(out.data + 6, samples[i].resp2.data,
					    samples[i].resp2.len);
			assert_int_equal(hs_parse_reply_length(out.data + 6, out.len - 6),
					 out.len - 6);
		}
		hs_buf_deinit(&out);
	}
}

static void test_incomplete_replies(void **state)
{
	struct hs_buf out = {0};

	(void)state;
	for (size_t i = 0; i < SAMPLES; i++) {
		struct hs_bytes whole = samples[i].resp3;
		struct hs_buf more = {0};

		for (size_t len = 0; len < whole.len; len++)
			assert_int_equal(
				translate((struct hs_bytes){whole.data, len}, samples[i].how, &out),
				HS_EPROTO);
		hs_buf_append_bytes(&more, whole);
		hs_buf_append(&more, "_\r\n", 3);
		assert_int_equal(translate(hs_buf_bytes(&more), samples[i].how, &out), HS_EPROTO);
		hs_buf_deinit(&more);
	}
	assert_int_equal(out.len, 0);
	hs_buf_deinit(&out);
}

static void test_malformed_replies(void **state)
{
	static const struct sample wrong[] = {
		{HS_LIT("x\r\n"), SAME, 0},
		{HS_LIT(">1\r\n+a\r\n"), SAME, 0},
		{HS_LIT("*2\r\n_\r\n>1\r\n+a\r\n"), SAME, 0},
		{HS_LIT("*2\r\n:1\r\nx\r\n"), SAME, 0},
		/* The first element is a pair, and a later one is not. */
		{HS_LIT("*2\r\n*2\r\n,1\r\n:1\r\n:1\r\n"), SAME, PAIRS},
		{HS_LIT("*2\r\n*2\r\n,1\r\n:1\r\n*3\r\n:1\r\n:2\r\n:3\r\n"), SAME, PAIRS},
		{HS_LIT("*1\r\n*2\r\n,1\r\n*0\r\n"), SAME, PAIRS},
		{HS_LIT("*2\r\n*2\r\n,1\r\n:1\r\n:0\r\n:1\r\n:2\r\n"), SAME, PAIRS},
		/* More elements than the bytes can contain, or than RESP2 can announce. */
		{HS_LIT("%2147483647\r\n,1\r\n"), SAME, 0},
		{HS_LIT("*2147483647\r\n*2\r\n,1\r\n,1\r\n"), SAME, PAIRS},
		{HS_LIT("|2147483647\r\n,1\r\n"), SAME, 0},
		{HS_LIT("*2147483647\r\n*2147483647\r\n*2147483647\r\n,1\r\n"), SAME, 0},
	};
	struct hs_buf out = {0};

	(void)state;
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		assert_int_equal(translate(wrong[i].resp3, wrong[i].how, &out), HS_EPROTO);
	assert_int_equal(out.len, 0);
	hs_buf_deinit(&out);
}

/* Deep nesting uses neither stack nor much time. */
static void test_deep_nesting(void **state)
{
	enum { DEEP = 200000 };
	struct hs_buf in = {0}, out = {0};

	(void)state;
	for (size_t i = 0; i < DEEP; i++)
		hs_buf_append(&in, i % 2 ? "~1\r\n" : "*1\r\n", 4);
	hs_buf_append(&in, "_\r\n", 3);
	assert_int_equal(hs_resp3_to_resp2(hs_buf_bytes(&in), PAIRS, &out), 1);
	assert_int_equal(out.len, DEEP * 4 + 5);
	assert_int_equal(hs_parse_reply_length(out.data, out.len), out.len);
	in.len = 0;
	for (size_t i = 0; i < DEEP; i++)
		hs_buf_append(&in, "|1\r\n", 4);
	assert_int_equal(hs_resp3_to_resp2(hs_buf_bytes(&in), 0, &out), HS_EPROTO);
	hs_buf_deinit(&in);
	hs_buf_deinit(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_type),
		cmocka_unit_test(test_incomplete_replies),
		cmocka_unit_test(test_malformed_replies),
		cmocka_unit_test(test_deep_nesting),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
