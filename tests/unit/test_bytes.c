/* Goal: runs of bytes are compared, matched without regard to case and escaped for people.
 *
 * Method: tables of inputs and results, with empty runs, high bytes and zero bytes among them. */
#include "base/bytes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static int sign(int number)
{
	return (number > 0) - (number < 0);
}

static void test_order_is_bytewise_and_shorter_first(void **state)
{
	/* Each run of bytes is less than the next one. */
	static const struct hs_bytes rising[] = {
		{NULL, 0}, {"\0", 1}, {"\0\0", 2}, {"A", 1},
		{"a", 1},  {"aa", 2}, {"b", 1},	   {"\xff", 1},
	};
	size_t count = sizeof rising / sizeof *rising;

	(void)state;
	for (size_t i = 0; i < count; i++) {
		for (size_t j = 0; j < count; j++) {
			int expected = (i > j) - (i < j);

			assert_int_equal(sign(hs_bytes_compare(rising[i], rising[j])), expected);
			assert_int_equal(hs_bytes_equal(rising[i], rising[j]), i == j);
		}
	}
}

static void test_prefixes(void **state)
{
	const struct hs_bytes none = {NULL, 0};

	(void)state;
	assert_true(hs_bytes_begins(none, none));
	assert_true(hs_bytes_begins(HS_LIT("ab"), none));
	assert_true(hs_bytes_begins(HS_LIT("ab"), HS_LIT("a")));
	assert_true(hs_bytes_begins(HS_LIT("a\0b"), HS_LIT("a\0b")));
	assert_false(hs_bytes_begins(HS_LIT("ab"), HS_LIT("abc")));
	assert_false(hs_bytes_begins(HS_LIT("ab"), HS_LIT("b")));
	assert_false(hs_bytes_begins(none, HS_LIT("a")));
}

static void test_pieces(void **state)
{
	struct hs_bytes text = HS_LIT("a,,b"), none = {NULL, 0};

	(void)state;
	assert_true(hs_bytes_equal(hs_bytes_cut(&text, ','), HS_LIT("a")));
	assert_true(hs_bytes_equal(hs_bytes_cut(&text, ','), none));
	assert_true(hs_bytes_equal(hs_bytes_cut(&text, ','), HS_LIT("b")));
	assert_true(hs_bytes_equal(hs_bytes_cut(&text, ','), none));
	assert_int_equal(text.len, 0);
	assert_int_equal(hs_bytes_cut(&none, ',').len, 0);
}

static void test_words_match_whatever_their_case(void **state)
{
	(void)state;
	assert_true(hs_bytes_is_word(HS_LIT("GeT"), "get"));
	assert_true(hs_bytes_is_word(HS_LIT("get"), "GET"));
	assert_true(hs_bytes_is_word(HS_LIT("no-evict"), "NO-EVICT"));
	assert_true(hs_bytes_is_word(HS_LIT(""), ""));
	assert_false(hs_bytes_is_word(HS_LIT("get"), "gets"));
	assert_false(hs_bytes_is_word(HS_LIT("gets"), "get"));
	assert_false(hs_bytes_is_word(HS_LIT("get\0"), "get"));
	assert_false(hs_bytes_is_word(HS_LIT("g@t"), "g`t"));
}

static void test_escaping(void **state)
{
	static const struct {
		struct hs_bytes bytes;
		const char *text;
	} cases[] = {
		{{"plain", 5}, "plain"},	 {{"a\r\n\tb", 5}, "a\\r\\n\\tb"},
		{{"\"\\", 2}, "\\\"\\\\"},	 {{"\0\x7f\xff", 3}, "\\x00\\x7f\\xff"},
		{{"\xc3\xa4", 2}, "\\xc3\\xa4"}, {{NULL, 0}, ""},
	};
	char text[64];

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_string_equal(hs_bytes_escape(cases[i].bytes, text, sizeof text),
				    cases[i].text);
}

static void test_escaping_never_writes_past_its_room(void **state)
{
	struct hs_bytes bytes = {"ab\ncd", 5};
	const char *whole = "ab\\ncd";

	(void)state;
	for (size_t size = 1; size < 12; size++) {
		char text[16];

		memset(text, '#', sizeof text);
		hs_bytes_escape(bytes, text, size);
		assert_true(strlen(text) < size);
		assert_memory_equal(text, whole, strlen(text));
		assert_int_equal(text[size], '#');
		/* If the text is cut, the cut never falls inside an escape. */
		assert_int_not_equal(strlen(text), 3);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order_is_bytewise_and_shorter_first),
		cmocka_unit_test(test_prefixes),
		cmocka_unit_test(test_pieces),
		cmocka_unit_test(test_words_match_whatever_their_case),
		cmocka_unit_test(test_escaping),
		cmocka_unit_test(test_escaping_never_writes_past_its_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
