/* Goal: each way of merging makes one reply of several partial replies, also if parts are errors.
 *
 * Method: each way of merging, with its parts given as reply bytes. */
#include "route/merge.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static void check(const struct hs_merge *merge, int resp, const char *expected)
{
	struct hs_buf out = {0};
	struct hs_reply reply = {.out = &out, .resp = resp};

	hs_merge_replies(merge, &reply);
	hs_buf_append(&out, "", 1);
	assert_string_equal(out.data, expected);
	hs_buf_deinit(&out);
}

#define MERGE(way, ...)                                                                            \
	{                                                                                          \
		.how = (way), .parts = (const struct hs_bytes[]){__VA_ARGS__},                     \
		.count = sizeof((const struct hs_bytes[]){__VA_ARGS__}) / sizeof(struct hs_bytes)  \
	}
#define PART(text)                                                                                 \
	{                                                                                          \
		(text), sizeof(text) - 1                                                           \
	}

static void test_sums(void **state)
{
	const struct hs_merge merge =
		MERGE(HS_MERGE_SUM, PART(":2\r\n"), PART(":0\r\n"), PART(":40\r\n"));

	(void)state;
	check(&merge, 2, ":42\r\n");
}

static void test_values_return_to_the_order_of_keys(void **state)
{
	static const uint32_t key_part[] = {1, 0, 1, 2, 0};
	struct hs_merge merge =
		MERGE(HS_MERGE_BY_KEY, PART("*2\r\n$1\r\nb\r\n$-1\r\n"),
		      PART("*2\r\n$1\r\na\r\n$4\r\nx\r\ny\r\n"), PART("*1\r\n*1\r\n:1\r\n"));

	(void)state;
	merge.key_part = key_part;
	merge.keys = 5;
	check(&merge, 2, "*5\r\n$1\r\na\r\n$1\r\nb\r\n$4\r\nx\r\ny\r\n*1\r\n:1\r\n$-1\r\n");
}

static void test_ok_when_all_parts_are(void **state)
{
	const struct hs_merge merge = MERGE(HS_MERGE_OK, PART("+OK\r\n"), PART("+OK\r\n"));

	(void)state;
	check(&merge, 2, "+OK\r\n");
}

static void test_arrays_one_behind_the_other(void **state)
{
	const struct hs_merge merge = MERGE(HS_MERGE_CONCAT, PART("*1\r\n$1\r\na\r\n"),
					    PART("*0\r\n"), PART("*2\r\n$1\r\nb\r\n$1\r\nc\r\n"));

	(void)state;
	check(&merge, 2, "*3\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n");
}

static void test_the_first_that_is_not_null(void **state)
{
	struct hs_merge merge =
		MERGE(HS_MERGE_FIRST, PART("$1\r\na\r\n"), PART("$-1\r\n"), PART("$1\r\nc\r\n"));
	const struct hs_merge none = MERGE(HS_MERGE_FIRST, PART("_\r\n"), PART("_\r\n"));

	(void)state;
	check(&merge, 2, "$1\r\na\r\n");
	merge.first = 1; /* this part is null, so the next one counts */
	check(&merge, 2, "$1\r\nc\r\n");
	merge.first = 2;
	check(&merge, 2, "$1\r\nc\r\n");
	check(&none, 3, "_\r\n");
	check(&none, 2, "$-1\r\n");
}

static void test_an_error_is_the_reply(void **state)
{
	static const enum hs_command_merge ways[] = {HS_MERGE_SUM, HS_MERGE_OK, HS_MERGE_BY_KEY,
						     HS_MERGE_CONCAT, HS_MERGE_FIRST};

	(void)state;
	for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
		const struct hs_merge merge =
			MERGE(ways[i], PART(":1\r\n"), PART("-OOM no\r\n"), PART("-ERR later\r\n"));

		check(&merge, 2, "-OOM no\r\n");
	}
}

static void test_numbers(void **state)
{
	static const struct {
		enum hs_command_merge how;
		const char *a, *b, *c, *expected;
	} cases[] = {
		{HS_MERGE_MIN, ":3", ":-1", ":2", ":-1"},
		{HS_MERGE_MAX, ":3", ":-1", ":7", ":7"},
		{HS_MERGE_AND, ":1", ":1", ":1", ":1"},
		{HS_MERGE_AND, ":1", ":0", ":1", ":0"},
		{HS_MERGE_OR, ":0", ":0", ":0", ":0"},
		{HS_MERGE_OR, ":0", ":0", ":1", ":1"},
		{HS_MERGE_AND, "#t", "#f", "#t", "#f"},
		{HS_MERGE_AND, "*2\r\n:1\r\n:1", "*2\r\n:1\r\n:0", "*2\r\n:1\r\n:1",
		 "*2\r\n:1\r\n:0"},
		{HS_MERGE_MIN, "*2\r\n:5\r\n:6", "*2\r\n:7\r\n:4", "*2\r\n:6\r\n:6",
		 "*2\r\n:5\r\n:4"},
		{HS_MERGE_SUM, "*0", "*0", "*0", "*0"},
		{HS_MERGE_SUM, ":9223372036854775807", ":-1", ":1", ":9223372036854775807"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char text[4][64];

		snprintf(text[0], 64, "%s\r\n", cases[i].a);
		snprintf(text[1], 64, "%s\r\n", cases[i].b);
		snprintf(text[2], 64, "%s\r\n", cases[i].c);
		snprintf(text[3], 64, "%s\r\n", cases[i].expected);

		const struct hs_merge merge = MERGE(cases[i].how, hs_bytes_of(text[0]),
						    hs_bytes_of(text[1]), hs_bytes_of(text[2]));

		check(&merge, 3, text[3]);
	}
}

static void test_all_or_one_succeeded(void **state)
{
	const struct hs_merge all =
		MERGE(HS_MERGE_ALL_SUCCEEDED, PART("$2\r\nab\r\n"), PART("$2\r\nab\r\n"));
	const struct hs_merge not_all =
		MERGE(HS_MERGE_ALL_SUCCEEDED, PART("$2\r\nab\r\n"), PART("!6\r\nERR no\r\n"));
	const struct hs_merge one = MERGE(HS_MERGE_ONE_SUCCEEDED, PART("-NOTBUSY a\r\n"),
					  PART("+OK\r\n"), PART("-NOTBUSY c\r\n"));
	const struct hs_merge none =
		MERGE(HS_MERGE_ONE_SUCCEEDED, PART("-NOTBUSY a\r\n"), PART("-NOTBUSY b\r\n"));
	const struct hs_merge unkillable =
		MERGE(HS_MERGE_ONE_SUCCEEDED, PART("-NOTBUSY a\r\n"), PART("-UNKILLABLE b\r\n"));

	(void)state;
	check(&all, 2, "$2\r\nab\r\n");
	check(&not_all, 3, "!6\r\nERR no\r\n");
	check(&one, 2, "+OK\r\n");
	check(&none, 2, "-NOTBUSY a\r\n");
	check(&unkillable, 2, "-UNKILLABLE b\r\n");
}

static void test_maps_and_sets(void **state)
{
	const struct hs_merge maps = MERGE(HS_MERGE_CONCAT, PART("%1\r\n+a\r\n:1\r\n"),
					   PART("%2\r\n+b\r\n:2\r\n+c\r\n:3\r\n"));
	const struct hs_merge sets = MERGE(HS_MERGE_CONCAT, PART("~0\r\n"), PART("~1\r\n+a\r\n"));

	(void)state;
	check(&maps, 3, "%3\r\n+a\r\n:1\r\n+b\r\n:2\r\n+c\r\n:3\r\n");
	check(&sets, 3, "~1\r\n+a\r\n");
}

/* If a server's reply does not fit the way of merging, the client gets an error. */
static void test_parts_that_do_not_fit(void **state)
{
	static const enum hs_command_merge ways[] = {
		HS_MERGE_SUM,	 HS_MERGE_MIN,	 HS_MERGE_MAX,
		HS_MERGE_AND,	 HS_MERGE_OR,	 HS_MERGE_BY_KEY,
		HS_MERGE_CONCAT, HS_MERGE_FIRST, HS_MERGE_ALL_SUCCEEDED,
	};
	static const char *const odd[] = {
		"", "x", "*2\r\n:1\r\n", "$5\r\nab\r\n", "*1\r\n", "%1\r\n+a\r\n", ":x\r\n",
	};
	static const uint32_t key_part[] = {0, 1};

	(void)state;
	for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
		for (size_t j = 0; j < sizeof odd / sizeof *odd; j++) {
			struct hs_merge merge = MERGE(ways[i], hs_bytes_of(odd[j]),
						      hs_bytes_of(odd[j]), PART(":1\r\n"));

			merge.name = "odd";
			merge.key_part = key_part;
			merge.keys = 2;
			check(&merge, 2,
			      "-ERR the replies of the partitions to 'odd' cannot be made one\r\n");
		}
	}
}

static void test_numbers_that_do_not_fit(void **state)
{
	const char *refused = "-ERR the replies of the partitions to '?' cannot be made one\r\n";
	const struct hs_merge overflow =
		MERGE(HS_MERGE_SUM, PART(":9223372036854775807\r\n"), PART(":1\r\n"));
	const struct hs_merge text = MERGE(HS_MERGE_SUM, PART(":1\r\n"), PART("$1\r\n1\r\n"));
	const struct hs_merge shorter =
		MERGE(HS_MERGE_AND, PART("*2\r\n:1\r\n:1\r\n"), PART("*1\r\n:1\r\n"));
	const struct hs_merge mixed = MERGE(HS_MERGE_MIN, PART("*1\r\n:1\r\n"), PART(":1\r\n"));
	const struct hs_merge nested =
		MERGE(HS_MERGE_OR, PART("*1\r\n*0\r\n"), PART("*1\r\n*0\r\n"));
	const struct hs_merge kinds = MERGE(HS_MERGE_CONCAT, PART("~0\r\n"), PART("*0\r\n"));
	const struct hs_merge none = MERGE(HS_MERGE_CONCAT, PART("+OK\r\n"), PART("+OK\r\n"));

	(void)state;
	check(&overflow, 2, refused);
	check(&text, 2, refused);
	check(&shorter, 2, refused);
	check(&mixed, 2, refused);
	check(&nested, 2, refused);
	check(&kinds, 2, refused);
	check(&none, 2, refused);
}

static void check_cursor(const char *part, uint64_t next, const char *expected)
{
	struct hs_buf out = {0};
	struct hs_reply reply = {.out = &out, .resp = 2};

	hs_merge_cursor(hs_bytes_of(part), next, &reply);
	hs_buf_append(&out, "", 1);
	assert_string_equal(out.data, expected);
	hs_buf_deinit(&out);
}

/* When one partition is finished, SCAN continues in the next one. */
static void test_cursors(void **state)
{
	(void)state;
	check_cursor("*2\r\n$1\r\n0\r\n*1\r\n$1\r\na\r\n", 77,
		     "*2\r\n$2\r\n77\r\n*1\r\n$1\r\na\r\n");
	check_cursor("*2\r\n$1\r\n0\r\n*0\r\n", 0, "*2\r\n$1\r\n0\r\n*0\r\n");
	check_cursor("*2\r\n$1\r\n5\r\n*0\r\n", 77, "*2\r\n$1\r\n5\r\n*0\r\n");
	check_cursor("*2\r\n$1\r\n0\r\n*0\r\n", UINT64_MAX,
		     "*2\r\n$20\r\n18446744073709551615\r\n*0\r\n");
	check_cursor("-ERR invalid cursor\r\n", 77, "-ERR invalid cursor\r\n");
	check_cursor("*0\r\n", 77,
		     "-ERR the replies of the partitions to 'scan' cannot be made one\r\n");
	check_cursor("*2\r\n*0\r\n*0\r\n", 77,
		     "-ERR the replies of the partitions to 'scan' cannot be made one\r\n");
	check_cursor("", 77, "-ERR the replies of the partitions to 'scan' cannot be made one\r\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sums),
		cmocka_unit_test(test_values_return_to_the_order_of_keys),
		cmocka_unit_test(test_ok_when_all_parts_are),
		cmocka_unit_test(test_arrays_one_behind_the_other),
		cmocka_unit_test(test_the_first_that_is_not_null),
		cmocka_unit_test(test_an_error_is_the_reply),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_all_or_one_succeeded),
		cmocka_unit_test(test_maps_and_sets),
		cmocka_unit_test(test_parts_that_do_not_fit),
		cmocka_unit_test(test_numbers_that_do_not_fit),
		cmocka_unit_test(test_cursors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
