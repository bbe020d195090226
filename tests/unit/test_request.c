/* Goal: the request parser gives the same result for a request in one piece, byte by byte and cut at any place.
 * Quoting in inline commands, and the texts of protocol errors, are as in Redis.
 *
 * Method: a table of inputs and results, taken from redis-server 7.0.15. */
#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "wire/request.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* Parses all requests of `input`: first the bytes up to `cut`, then all of them. Returns the requests as text,
 * [arg|arg][arg], with "!text" at the end for an error. The bytes lie in an allocation of exactly their length. */
static char *parse_cut(struct hs_bytes input, size_t cut, bool trusted)
{
	struct hs_wire_request request;
	struct hs_buf notes = {0};
	size_t at = 0, end = cut;
	int64_t used;

	hs_wire_request_init(&request);
	for (;;) {
		char *copy = hs_mem_dup(input.data + at, end - at);

		used = hs_wire_request_parse(&request, copy, end - at, trusted);
		if (used > 0) {
			hs_buf_append(&notes, "[", 1);
			for (size_t i = 0; i < request.argc; i++) {
				hs_buf_append(&notes, "|", i > 0);
				hs_buf_append_bytes(&notes, request.argv[i]);
			}
			hs_buf_append(&notes, "]", 1);
			at += (size_t)used;
		}
		hs_mem_free(&copy);
		if (used < 0) {
			hs_buf_printf(&notes, "!%s", request.error);
			break;
		}
		if (used == 0 && end == input.len)
			break;
		if (used == 0 || at == end)
			end = input.len;
		if (at == input.len)
			break;
	}
	hs_wire_request_deinit(&request);
	hs_buf_append(&notes, "", 1);
	return notes.data;
}

static void check_cuts(struct hs_bytes input, const char *expected)
{
	for (size_t cut = 0; cut <= input.len; cut++) {
		char *notes = parse_cut(input, cut, true);

		if (strcmp(notes, expected) != 0)
			print_error("cut at %zu of \"%.*s\"\n", cut, (int)input.len, input.data);
		assert_string_equal(notes, expected);
		free(notes);
	}
}

struct row {
	struct hs_bytes input;
	const char *result;
};
#define ROW(input, result)                                                                         \
	{                                                                                          \
		{(input), sizeof(input) - 1}, (result)                                             \
	}

static void check_rows(const struct row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++)
		check_cuts(rows[i].input, rows[i].result);
}

static void test_multibulk(void **state)
{
	static const struct row rows[] = {
		ROW("*1\r\n$4\r\nPING\r\n", "[PING]"),
		ROW("*2\r\n$3\r\nGET\r\n$1\r\nk\r\n*1\r\n$4\r\nPING\r\n", "[GET|k][PING]"),
		ROW("*2\r\n$3\r\nGET\r\n$0\r\n\r\n", "[GET|]"),
		ROW("*2\r\n$3\r\nSET\r\n$12\r\na\r\nb\r\nc\r\nd*1\r\n", "[SET|a\r\nb\r\nc\r\nd*1]"),
		/* A request with zero or a negative number of arguments is empty. */
		ROW("*0\r\n*1\r\n$4\r\nPING\r\n", "[][PING]"),
		ROW("*-1\r\n*-77\r\n*1\r\n$4\r\nPING\r\n", "[][][PING]"),
		/* Like Redis, the parser skips two bytes at the end of a line, whatever the bytes are. */
		ROW("*1\r\n$4\r\nPINGxx*1\rX$4\rYPINGzz", "[PING][PING]"),
		ROW("*9\r\n$1\r\n1\r\n$1\r\n2\r\n$1\r\n3\r\n$1\r\n4\r\n$1\r\n5\r\n$1\r\n6\r\n$"
		    "1\r\n7\r\n"
		    "$1\r\n8\r\n$10\r\n1234567890\r\n*1\r\n$4\r\nPING\r\n",
		    "[1|2|3|4|5|6|7|8|1234567890][PING]"),
		/* More arguments than the parser holds without using the heap. */
		ROW("*17\r\n$1\r\n1\r\n$1\r\n2\r\n$1\r\n3\r\n$1\r\n4\r\n$1\r\n5\r\n$1\r\n6\r\n$"
		    "1\r\n7\r\n"
		    "$1\r\n8\r\n$1\r\n9\r\n$1\r\n0\r\n$1\r\n1\r\n$1\r\n2\r\n$1\r\n3\r\n$1\r\n4\r\n"
		    "$1\r\n5\r\n$1\r\n6\r\n$1\r\n7\r\n*1\r\n$1\r\nx\r\n",
		    "[1|2|3|4|5|6|7|8|9|0|1|2|3|4|5|6|7][x]"),
		/* Incomplete requests. */
		ROW("*", ""),
		ROW("*1\r\n$4\r\nPING\r", ""),
		ROW("*2147483647\r\n", ""),
	};

	(void)state;
	check_rows(rows, sizeof rows / sizeof *rows);
}

static void test_inline(void **state)
{
	static const struct row rows[] = {
		ROW("PING\r\n", "[PING]"),
		ROW("PING\n", "[PING]"),
		ROW("\r\n\nPING\n", "[][][PING]"),
		ROW("  SET \t k   v  \r\n", "[SET|k|v]"),
		ROW("ECHO \"a b\" 'c d'\r\n", "[ECHO|a b|c d]"),
		ROW("ECHO \"\" ''\r\n", "[ECHO||]"),
		ROW("ECHO \"\\x41\\n\\r\\t\\b\\a\\q\\\\\\\"\"\r\n", "[ECHO|A\n\r\t\b\aq\\\"]"),
		ROW("ECHO \"\\x4\" \"\\xzz\" \"\\x414\"\r\n", "[ECHO|x4|xzz|A4]"),
		/* In single quotes only the quote itself can be escaped. */
		ROW("ECHO 'a\\'b\\n'\r\n", "[ECHO|a'b\\n]"),
		/* A quote may open inside a word; the closing quote ends the word. */
		ROW("ECHO a\"b c\"\r\n", "[ECHO|ab c]"),
		/* A vertical tab is skipped before a word and does not end a word. */
		ROW("ECHO \vx a\vb\r\n", "[ECHO|x|a\vb]"),
		ROW("PI", ""),
	};

	(void)state;
	check_rows(rows, sizeof rows / sizeof *rows);
}

#define MULTIBULK "!Protocol error: invalid multibulk length"
#define BULK "!Protocol error: invalid bulk length"
#define QUOTES "!Protocol error: unbalanced quotes in request"

static void test_error_texts(void **state)
{
	static const struct row rows[] = {
		ROW("*x\r\n", MULTIBULK),
		ROW("*\r\n", MULTIBULK),
		ROW("*+1\r\n", MULTIBULK),
		ROW("*01\r\n", MULTIBULK),
		ROW("* 1\r\n", MULTIBULK),
		ROW("*2147483648\r\n", MULTIBULK),
		ROW("*99999999999999999999\r\n", MULTIBULK),
		ROW("*1\r\n$-1\r\n", BULK),
		ROW("*1\r\n$x\r\n", BULK),
		ROW("*1\r\n$\r\n", BULK),
		ROW("*1\r\n$01\r\n", BULK),
		ROW("*1\r\n$04\r\nPING\r\n", BULK),
		ROW("*1\r\n$1x\r\nPING567890\r\n", BULK),
		ROW("*1\r\n$536870913\r\n", BULK),
		ROW("*1\r\nx\r\n", "!Protocol error: expected '$', got 'x'"),
		ROW("*2\r\n$1\r\na\r\n:1\r\n", "!Protocol error: expected '$', got ':'"),
		ROW("\"a\r\n", QUOTES),
		ROW("\"a\"b\r\n", QUOTES),
		ROW("'a\r\n", QUOTES),
		ROW("'a'b\r\n", QUOTES),
		ROW("ECHO a'b c'd\r\n", QUOTES),
		ROW("ECHO \"a\\\"\r\n", QUOTES),
		ROW("ECHO 'a\\\r\n", QUOTES),
		/* Requests before a protocol error are still parsed. */
		ROW("PING\r\n*1\r\n$4\r\nPING\r\n*x\r\n", "[PING][PING]" MULTIBULK),
	};

	(void)state;
	check_rows(rows, sizeof rows / sizeof *rows);
}

/* Endless lines: `head`, then one byte repeated 70,000 times. */
static void test_endless_lines(void **state)
{
	static const struct {
		const char *head;
		char fill;
		const char *error;
	} rows[] = {
		{"*", '1', "!Protocol error: too big mbulk count string"},
		{"*1\r\n$", '1', "!Protocol error: too big bulk count string"},
		{"*1\r\n", 'x', "!Protocol error: too big bulk count string"},
		{"", 'x', "!Protocol error: too big inline request"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		size_t head = strlen(rows[i].head);
		struct hs_bytes input = {0};
		char *text = malloc(head + 70000);
		char *notes;

		memcpy(text, rows[i].head, head);
		memset(text + head, rows[i].fill, 70000);
		input = (struct hs_bytes){text, head + 70000};
		notes = parse_cut(input, 0, true);
		assert_string_equal(notes, rows[i].error);
		free(notes);
		/* The parser reports the error at the byte that exceeds the limit, not earlier. */
		input.len = head + HS_INLINE_BYTES_MAX - 1;
		notes = parse_cut(input, 100, true);
		assert_string_equal(notes, "");
		free(notes);
		free(text);
	}
}

static void check_untrusted(struct hs_bytes input, const char *expected)
{
	char *notes = parse_cut(input, input.len, false);

	assert_string_equal(notes, expected);
	free(notes);
}

static void test_limits_before_auth(void **state)
{
	(void)state;
	check_untrusted(HS_LIT("*11\r\n"), "!Protocol error: unauthenticated multibulk length");
	check_untrusted(HS_LIT("*10\r\n"), "");
	check_untrusted(HS_LIT("*1\r\n$16385\r\n"), "!Protocol error: unauthenticated bulk length");
	check_untrusted(HS_LIT("*1\r\n$16384\r\n"), "");
}

/* A header that announces many arguments allocates nothing: memory grows only with the bytes received. */
static void test_announced_lengths_allocate_nothing(void **state)
{
	struct hs_wire_request request;
	const char text[] = "*2147483647\r\n$1\r\na\r\n$536870912\r\nxyz";

	(void)state;
	hs_wire_request_init(&request);
	assert_int_equal(hs_wire_request_parse(&request, text, sizeof text - 1, true), 0);
	assert_true(request.argv_cap <= HS_ARGC_INLINE);
	/* The parser still knows how many bytes are missing, so that the caller can read the rest straight into
	 * the buffer. */
	assert_int_equal(request.need, sizeof text - 1 - 3 + 536870912 + 2);
	hs_wire_request_deinit(&request);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_multibulk),
		cmocka_unit_test(test_inline),
		cmocka_unit_test(test_error_texts),
		cmocka_unit_test(test_endless_lines),
		cmocka_unit_test(test_limits_before_auth),
		cmocka_unit_test(test_announced_lengths_allocate_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
