/* Goal: the reply parser recognises and measures every type of RESP2 and RESP3, wherever the bytes stop, and
 * refuses malformed replies without using much memory or stack.
 *
 * Method: one table of whole replies. Each is cut at every byte: the parser must ask for more, never fail and
 * never report a whole reply. */
#include "wire/parse_reply.h"

#include "base/err.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct sample {
	struct hs_bytes bytes;
	enum hs_parsed_reply_type type;
	const char *text; /* the expected text; NULL: the test does not compare it */
	int64_t number;	  /* the expected integer or number of elements */
	/* Bytes that the parser reads for the first element (for an aggregate: the header); 0: all bytes. */
	size_t head;
};

static const struct sample samples[] = {
	{HS_LIT("+OK\r\n"), HS_PARSED_STATUS, "OK", 0, 0},
	{HS_LIT("+\r\n"), HS_PARSED_STATUS, "", 0, 0},
	{HS_LIT("-ERR syntax error\r\n"), HS_PARSED_ERROR, "ERR syntax error", 0, 0},
	{HS_LIT("!9\r\nERR\r\nline\r\n"), HS_PARSED_ERROR, "ERR\r\nline", 0, 0},
	{HS_LIT(":0\r\n"), HS_PARSED_INT, NULL, 0, 0},
	{HS_LIT(":-9223372036854775808\r\n"), HS_PARSED_INT, NULL, INT64_MIN, 0},
	{HS_LIT("$5\r\nhello\r\n"), HS_PARSED_BULK, "hello", 0, 0},
	{HS_LIT("$0\r\n\r\n"), HS_PARSED_BULK, "", 0, 0},
	{HS_LIT("$4\r\n\r\n\r\n\r\n"), HS_PARSED_BULK, "\r\n\r\n", 0, 0},
	{HS_LIT("=7\r\ntxt:abc\r\n"), HS_PARSED_BULK, "abc", 0, 0},
	{HS_LIT("$-1\r\n"), HS_PARSED_NULL, NULL, 0, 0},
	{HS_LIT("*-1\r\n"), HS_PARSED_NULL, NULL, 0, 0},
	{HS_LIT("_\r\n"), HS_PARSED_NULL, NULL, 0, 0},
	{HS_LIT(",3.25\r\n"), HS_PARSED_DOUBLE, "3.25", 0, 0},
	{HS_LIT(",inf\r\n"), HS_PARSED_DOUBLE, "inf", 0, 0},
	{HS_LIT("(3492890328409238509324850943850943825024385\r\n"), HS_PARSED_DOUBLE,
	 "3492890328409238509324850943850943825024385", 0, 0},
	{HS_LIT("#t\r\n"), HS_PARSED_BOOL, NULL, 1, 0},
	{HS_LIT("#f\r\n"), HS_PARSED_BOOL, NULL, 0, 0},
	{HS_LIT("*0\r\n"), HS_PARSED_ARRAY, NULL, 0, 0},
	{HS_LIT("*2\r\n:1\r\n$1\r\na\r\n"), HS_PARSED_ARRAY, NULL, 2, 4},
	{HS_LIT("~1\r\n+a\r\n"), HS_PARSED_ARRAY, NULL, 1, 4},
	{HS_LIT("%1\r\n+a\r\n*1\r\n:7\r\n"), HS_PARSED_MAP, NULL, 1, 4},
	{HS_LIT(">2\r\n+invalidate\r\n*1\r\n$1\r\nk\r\n"), HS_PARSED_PUSH, NULL, 2, 4},
	{HS_LIT("*3\r\n*2\r\n:1\r\n*0\r\n%1\r\n#t\r\n_\r\n*1\r\n*1\r\n*1\r\n$-1\r\n"),
	 HS_PARSED_ARRAY, NULL, 3, 4},
	{HS_LIT("|1\r\n+ttl\r\n:3\r\n+OK\r\n"), HS_PARSED_ATTRIBUTE, NULL, 1, 4},
	{HS_LIT("*2\r\n|1\r\n+a\r\n+b\r\n:1\r\n:2\r\n"), HS_PARSED_ARRAY, NULL, 2, 4},
};

enum { SAMPLES = sizeof samples / sizeof *samples };

static void test_every_type(void **state)
{
	(void)state;
	for (size_t i = 0; i < SAMPLES; i++) {
		const struct sample *sample = &samples[i];
		size_t head = sample->head ? sample->head : sample->bytes.len;
		struct hs_parsed_reply answer;

		assert_int_equal(
			hs_parse_reply_head(&answer, sample->bytes.data, sample->bytes.len), head);
		assert_int_equal(answer.type, sample->type);
		assert_int_equal(answer.integer + answer.count, sample->number);
		if (sample->text)
			assert_true(hs_bytes_equal(answer.text, hs_bytes_of(sample->text)));
		assert_int_equal(hs_parse_reply_length(sample->bytes.data, sample->bytes.len),
				 sample->bytes.len);
	}
}

/* Each part of the reply lies in an allocation of exactly its length, so that the sanitizer reports a read
 * beyond the end. */
static void test_every_split(void **state)
{
	(void)state;
	for (size_t i = 0; i < SAMPLES; i++) {
		const struct sample *sample = &samples[i];
		size_t head = sample->head ? sample->head : sample->bytes.len;

		for (size_t len = 0; len < sample->bytes.len; len++) {
			char *piece = malloc(len ? len : 1);
			struct hs_parsed_reply answer;

			memcpy(piece, sample->bytes.data, len);
			assert_int_equal(hs_parse_reply_length(piece, len), 0);
			assert_int_equal(hs_parse_reply_head(&answer, piece, len),
					 len < head ? 0 : (int64_t)head);
			free(piece);
		}
	}
}

static void test_bytes_after_a_reply_are_left(void **state)
{
	char bytes[256];

	(void)state;
	for (size_t i = 0; i < SAMPLES; i++) {
		struct hs_bytes sample = samples[i].bytes;

		memcpy(bytes, sample.data, sample.len);
		memcpy(bytes + sample.len, "garbage", 7);
		assert_int_equal(hs_parse_reply_length(bytes, sample.len + 7), sample.len);
	}
}

static void test_malformed_replies(void **state)
{
	static const char *const wrong[] = {
		"OK\r\n",
		"\r\n",
		"?\r\n",
		"+OK\n",
		":\r\n",
		":1x\r\n",
		":+1\r\n",
		":01\r\n",
		":9223372036854775808\r\n",
		"$\r\n",
		"$-2\r\n",
		"$x\r\n",
		"$3\r\nabcd\r\n",
		"$3\r\nabc\n\n",
		"$536870913\r\n",
		"$9223372036854775807\r\n",
		"$99999999999999999999\r\n",
		"*-2\r\n",
		"*2147483648\r\n",
		"%-1\r\n",
		"~-1\r\n",
		">-1\r\n",
		"_x\r\n",
		"#\r\n",
		"#x\r\n",
		"#tt\r\n",
		"=3\r\nabc\r\n",
		"=5\r\nabcde\r\n",
		"=-1\r\n",
		"!-1\r\n",
		"*1\r\n$?\r\n",
		"*1\r\n\r\n",
		":1234567890123456789012345678901234567890",
	};

	(void)state;
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		assert_int_equal(hs_parse_reply_length(wrong[i], strlen(wrong[i])), HS_EPROTO);
}

/* The parser refuses a line without an end once the line is longer than any line that a server sends. */
static void test_endless_line(void **state)
{
	size_t len = (size_t)1 << 20;
	char *bytes = malloc(len);

	(void)state;
	memset(bytes, 'a', len);
	bytes[0] = '-';
	assert_int_equal(hs_parse_reply_length(bytes, 1000), 0);
	assert_int_equal(hs_parse_reply_length(bytes, len), HS_EPROTO);
	free(bytes);
}

/* Ten million levels: a recursive parser would overflow its stack. */
static void test_deep_nesting_costs_no_stack(void **state)
{
	enum { DEPTH = 10000000 };
	char *bytes = malloc(4 * (size_t)DEPTH + 4);

	(void)state;
	for (size_t i = 0; i < DEPTH; i++)
		memcpy(bytes + 4 * i, "*1\r\n", 4);
	memcpy(bytes + 4 * (size_t)DEPTH, ":1\r\n", 4);
	assert_int_equal(hs_parse_reply_length(bytes, 4 * (size_t)DEPTH), 0);
	assert_int_equal(hs_parse_reply_length(bytes, 4 * (size_t)DEPTH + 4),
			 4 * (size_t)DEPTH + 4);
	free(bytes);
}

/* Some headers announce more elements than a counter holds: the parser only asks for more bytes. */
static void test_huge_announced_lengths(void **state)
{
	struct hs_bytes promise = HS_LIT("%2147483647\r\n%2147483647\r\n*2147483647\r\n:1\r\n");

	(void)state;
	assert_int_equal(hs_parse_reply_length(promise.data, promise.len), 0);
}

/* The parser takes a list apart element by element, a nested aggregate as one element. A scalar has no
 * elements. */
static void test_elements(void **state)
{
	static const char *const wanted[] = {":1\r\n", "*2\r\n+a\r\n+b\r\n", "$-1\r\n"};
	struct hs_bytes rest =
		hs_parse_reply_elements(HS_LIT("*3\r\n:1\r\n*2\r\n+a\r\n+b\r\n$-1\r\n"));
	struct hs_bytes element;

	(void)state;
	for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
		assert_true(hs_parse_reply_take(&rest, &element));
		assert_true(hs_bytes_equal(element, hs_bytes_of(wanted[i])));
	}
	assert_false(hs_parse_reply_take(&rest, &element));
	assert_int_equal(element.len, 0);
	rest = hs_parse_reply_elements(HS_LIT("%1\r\n+key\r\n+val"));
	assert_true(hs_parse_reply_take(&rest, &element));
	assert_false(hs_parse_reply_take(&rest, &element)); /* the second element is cut short */
	assert_int_equal(rest.len, 4);
	assert_int_equal(hs_parse_reply_elements(HS_LIT("+OK\r\n")).len, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_type),
		cmocka_unit_test(test_every_split),
		cmocka_unit_test(test_bytes_after_a_reply_are_left),
		cmocka_unit_test(test_malformed_replies),
		cmocka_unit_test(test_endless_line),
		cmocka_unit_test(test_deep_nesting_costs_no_stack),
		cmocka_unit_test(test_huge_announced_lengths),
		cmocka_unit_test(test_elements),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
