/* Goal: replies are written correctly in RESP2 and RESP3.
 *
 * Method: one row for each kind of reply, with the expected bytes taken from the protocol's description; the
 * test also reads each reply back with the reply parser. */
#include "base/limits.h"
#include "wire/parse_reply.h"
#include "wire/reply.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

typedef void write_reply(struct hs_reply *reply);

static void check(write_reply *write, const char *resp2, const char *resp3)
{
	for (int resp = 2; resp <= 3; resp++) {
		const char *expected = resp == 2 ? resp2 : resp3;
		struct hs_buf out = {0};
		struct hs_reply reply = {.out = &out, .resp = resp};

		hs_buf_append(&out, "before", 6);
		write(&reply);
		assert_int_equal(out.len, 6 + strlen(expected));
		assert_memory_equal(out.data, "before", 6);
		assert_memory_equal(out.data + 6, expected, out.len - 6);
		assert_int_equal(hs_parse_reply_length(out.data + 6, out.len - 6), out.len - 6);
		hs_buf_deinit(&out);
	}
}

static void write_status(struct hs_reply *reply)
{
	hs_reply_status(reply, "PONG");
}

static void write_error(struct hs_reply *reply)
{
	hs_reply_error(reply, "ERR two\r\nlines");
}

static void write_errorf(struct hs_reply *reply)
{
	hs_reply_errorf(reply, "ERR %s '%d'", "no", 7);
}

static void write_numbers(struct hs_reply *reply)
{
	hs_reply_array(reply, 5);
	hs_reply_int(reply, 0);
	hs_reply_int(reply, 10);
	hs_reply_int(reply, -1);
	hs_reply_int(reply, INT64_MAX);
	hs_reply_int(reply, INT64_MIN);
}

static void write_bulks(struct hs_reply *reply)
{
	hs_reply_array(reply, 4);
	hs_reply_bulk(reply, HS_LIT("a\r\nb"));
	hs_reply_bulk(reply, (struct hs_bytes){NULL, 0});
	hs_reply_bulk_text(reply, "0123456789");
	hs_reply_bulk_int(reply, -12);
}

static void write_nulls(struct hs_reply *reply)
{
	hs_reply_array(reply, 2);
	hs_reply_null(reply);
	hs_reply_null_array(reply);
}

static void write_map(struct hs_reply *reply)
{
	hs_reply_map(reply, 1);
	hs_reply_bulk_text(reply, "k");
	hs_reply_bool(reply, true);
}

static void write_set(struct hs_reply *reply)
{
	hs_reply_set(reply, 1);
	hs_reply_bool(reply, false);
}

static void write_push(struct hs_reply *reply)
{
	hs_reply_push(reply, 1);
	hs_reply_ok(reply);
}

static void write_doubles(struct hs_reply *reply)
{
	hs_reply_array(reply, 3);
	hs_reply_double(reply, 1.5);
	hs_reply_double(reply, INFINITY);
	hs_reply_double(reply, -INFINITY);
}

static void write_decimals(struct hs_reply *reply)
{
	static const double values[] = {0,	 1,	   0.1,	 0.25,	-0.00001, 0.12345,
					0.99999, -2.50001, 1200, 12.34, 1e300};

	hs_reply_array(reply, sizeof values / sizeof *values);
	for (size_t i = 0; i < sizeof values / sizeof *values; i++)
		hs_reply_decimal(reply, values[i], 4);
}

static void write_verbatim(struct hs_reply *reply)
{
	hs_reply_verbatim(reply, HS_LIT("text"));
}

static void test_every_kind_in_both_dialects(void **state)
{
	(void)state;
	check(hs_reply_ok, "+OK\r\n", "+OK\r\n");
	check(write_status, "+PONG\r\n", "+PONG\r\n");
	check(write_error, "-ERR two  lines\r\n", "-ERR two  lines\r\n");
	check(write_errorf, "-ERR no '7'\r\n", "-ERR no '7'\r\n");
	check(write_numbers,
	      "*5\r\n:0\r\n:10\r\n:-1\r\n:9223372036854775807\r\n:-9223372036854775808\r\n",
	      "*5\r\n:0\r\n:10\r\n:-1\r\n:9223372036854775807\r\n:-9223372036854775808\r\n");
	check(write_bulks, "*4\r\n$4\r\na\r\nb\r\n$0\r\n\r\n$10\r\n0123456789\r\n$3\r\n-12\r\n",
	      "*4\r\n$4\r\na\r\nb\r\n$0\r\n\r\n$10\r\n0123456789\r\n$3\r\n-12\r\n");
	check(write_nulls, "*2\r\n$-1\r\n*-1\r\n", "*2\r\n_\r\n_\r\n");
	check(write_map, "*2\r\n$1\r\nk\r\n:1\r\n", "%1\r\n$1\r\nk\r\n#t\r\n");
	check(write_set, "*1\r\n:0\r\n", "~1\r\n#f\r\n");
	check(write_push, "*1\r\n+OK\r\n", ">1\r\n+OK\r\n");
	check(write_doubles, "*3\r\n$3\r\n1.5\r\n$3\r\ninf\r\n$4\r\n-inf\r\n",
	      "*3\r\n,1.5\r\n,inf\r\n,-inf\r\n");
	check(write_decimals,
	      "*11\r\n$1\r\n0\r\n$1\r\n1\r\n$3\r\n0.1\r\n$4\r\n0.25\r\n$1\r\n0\r\n$6\r\n0.1235\r\n"
	      "$1\r\n1\r\n$4\r\n-2.5\r\n$4\r\n1200\r\n$5\r\n12.34\r\n"
	      "$23\r\n1.0000000000000001e+300\r\n",
	      "*11\r\n,0\r\n,1\r\n,0.1\r\n,0.25\r\n,0\r\n,0.1235\r\n,1\r\n,-2.5\r\n,1200\r\n,12."
	      "34\r\n"
	      ",1.0000000000000001e+300\r\n");
	check(write_verbatim, "$4\r\ntext\r\n", "=8\r\ntxt:text\r\n");
}

/* A long error text is truncated; the reply stays valid. */
static void test_error_texts_are_bounded(void **state)
{
	struct hs_buf out = {0};
	struct hs_reply reply = {.out = &out, .resp = 2};
	char *text = malloc(100001);

	(void)state;
	memset(text, 'x', 100000);
	text[100000] = '\0';
	hs_reply_errorf(&reply, "ERR %s", text);
	assert_true(out.len < 4096);
	assert_int_equal(hs_parse_reply_length(out.data, out.len), out.len);
	free(text);
	hs_buf_deinit(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_kind_in_both_dialects),
		cmocka_unit_test(test_error_texts_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
