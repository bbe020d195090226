/* Goal: heatsink parses and formats numbers as Redis does. If it accepted an integer that Redis refuses, INCR
 * and protocol lengths would differ.
 *
 * Method: tables of texts. */
#include "base/num.h"
#include "base/prng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static void test_integers_that_are(void **state)
{
	static const struct {
		const char *text;
		int64_t value;
	} cases[] = {
		{"0", 0},
		{"1", 1},
		{"-1", -1},
		{"10", 10},
		{"9223372036854775807", INT64_MAX},
		{"-9223372036854775808", INT64_MIN},
		{"-9223372036854775807", INT64_MIN + 1},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		int64_t value = 99;

		assert_true(hs_num_parse_int(hs_bytes_of(cases[i].text), &value));
		assert_true(value == cases[i].value);
	}
}

static void test_integers_that_are_none(void **state)
{
	static const struct hs_bytes cases[] = {
		{NULL, 0},
		{"-", 1},
		{"+1", 2},
		{"01", 2},
		{"-0", 2},
		{"-01", 3},
		{" 1", 2},
		{"1 ", 2},
		{"1\0", 2},
		{"0x1", 3},
		{"1.0", 3},
		{"1e3", 3},
		{"--1", 3},
		{"abc", 3},
		{"1\n", 2},
		{"9223372036854775808", 19},
		{"-9223372036854775809", 20},
		{"18446744073709551616", 20},
		{"99999999999999999999999999", 26},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		int64_t value;

		if (hs_num_parse_int(cases[i], &value))
			fail_msg("case %zu was read as %lld", i, (long long)value);
	}
}

static void test_unsigned(void **state)
{
	uint64_t value;

	(void)state;
	assert_true(hs_num_parse_uint(HS_LIT("18446744073709551615"), &value));
	assert_true(value == UINT64_MAX);
	assert_false(hs_num_parse_uint(HS_LIT("18446744073709551616"), &value));
	assert_false(hs_num_parse_uint(HS_LIT("-1"), &value));
	assert_false(hs_num_parse_uint(HS_LIT(""), &value));
}

static void test_formatting_is_read_back(void **state)
{
	static const int64_t edges[] = {0, 9, 10, 99, 100, -1, -10, INT64_MAX, INT64_MIN};
	struct hs_prng prng;
	char text[HS_NUM_TEXT_MAX], expected[HS_NUM_TEXT_MAX];

	(void)state;
	hs_prng_init(&prng, 3);
	for (size_t i = 0; i < 10000; i++) {
		int64_t value, back;
		size_t len;

		if (i < sizeof edges / sizeof *edges)
			value = edges[i];
		else /* numbers of all magnitudes */
			value = (int64_t)hs_prng_next(&prng) >> hs_prng_below(&prng, 64);
		len = hs_num_format_int(value, text);
		snprintf(expected, sizeof expected, "%lld", (long long)value);
		assert_string_equal(text, expected);
		assert_int_equal(len, strlen(expected));
		assert_true(hs_num_parse_int((struct hs_bytes){text, len}, &back));
		assert_true(back == value);
	}
}

static void test_sizes_with_units(void **state)
{
	static const struct {
		const char *text;
		uint64_t value;
	} cases[] = {
		{"0", 0},	   {"100", 100},       {"5b", 5},
		{"1k", 1000},	   {"1kb", 1024},      {"2M", 2000000},
		{"2Mb", 2u << 20}, {"1g", 1000000000}, {"3GB", (uint64_t)3 << 30},
	};
	static const char *const wrong[] = {"",	   "k",	  "-1",	   "1 kb",
					    "1tb", "kb1", "1.5gb", "99999999999999gb"};
	uint64_t value;

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		assert_true(hs_num_parse_bytes(hs_bytes_of(cases[i].text), &value));
		assert_true(value == cases[i].value);
	}
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		assert_false(hs_num_parse_bytes(hs_bytes_of(wrong[i]), &value));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_integers_that_are),
		cmocka_unit_test(test_integers_that_are_none),
		cmocka_unit_test(test_unsigned),
		cmocka_unit_test(test_formatting_is_read_back),
		cmocka_unit_test(test_sizes_with_units),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
