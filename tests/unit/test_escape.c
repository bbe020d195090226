/* Goal: the escaped text of any bytes that a client sends is one line of valid, harmless UTF-8 and can be read
 * back.
 *
 * Method: a table of bytes and texts; then every sequence of three bytes from a set of awkward ones, read back by
 * a small parser in this file and compared. */
#include "base/escape.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static void check(struct hs_bytes bytes, const char *expected)
{
	struct hs_buf text = {0};

	hs_escape(bytes, &text);
	hs_buf_append(&text, "", 1);
	assert_string_equal(text.data, expected);
	hs_buf_deinit(&text);
}

static void test_visible_characters_stay(void **state)
{
	(void)state;
	check(HS_LIT(""), "");
	check(HS_LIT("user:1000 {a}~"), "user:1000 {a}~");
	check(HS_LIT("\u00e4\u20ac\U0001f525"), "\u00e4\u20ac\U0001f525");
	check(HS_LIT("\u00a0\u07ff\u0800\uffff\U00010000\U0010ffff"),
	      "\u00a0\u07ff\u0800\uffff\U00010000\U0010ffff");
}

static void test_quotes_and_backslashes(void **state)
{
	(void)state;
	check(HS_LIT("a\\b\"c"), "a\\\\b\\\"c");
	check(HS_LIT("\r\n\t"), "\\r\\n\\t");
	check(HS_LIT("it's"), "it's");
}

static void test_controls(void **state)
{
	(void)state;
	check(HS_LIT("a\0b\x1b[31m\x7f"), "a\\x00b\\x1b[31m\\x7f");
	/* C1 characters are control characters, too: some terminals act on them. */
	check(HS_LIT("\xc2\x9b"), "\\xc2\\x9b");
	/* The line separator and characters that change the direction of text. */
	check(HS_LIT("\u2028\u202e\u2066\u200f\u061c"),
	      "\\xe2\\x80\\xa8\\xe2\\x80\\xae\\xe2\\x81\\xa6\\xe2\\x80\\x8f\\xd8\\x9c");
}

static void test_invalid_utf8(void **state)
{
	(void)state;
	check(HS_LIT("\xff\xfe"), "\\xff\\xfe");
	check(HS_LIT("\x80"), "\\x80");
	check(HS_LIT("\xc3"), "\\xc3");
	check(HS_LIT("\xc3("), "\\xc3(");
	check(HS_LIT("\xe2\x82"), "\\xe2\\x82");
	check(HS_LIT("\xe2\x82z"), "\\xe2\\x82z");
	/* Overlong encodings are invalid. */
	check(HS_LIT("\xc0\xaf"), "\\xc0\\xaf");
	check(HS_LIT("\xc1\xbf"), "\\xc1\\xbf");
	check(HS_LIT("\xe0\x9f\xbf"), "\\xe0\\x9f\\xbf");
	check(HS_LIT("\xf0\x8f\xbf\xbf"), "\\xf0\\x8f\\xbf\\xbf");
	/* Surrogates and code points above U+10FFFF are invalid. */
	check(HS_LIT("\xed\xa0\x80"), "\\xed\\xa0\\x80");
	check(HS_LIT("\xed\xbf\xbf"), "\\xed\\xbf\\xbf");
	check(HS_LIT("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");
	check(HS_LIT("\xf8\x88\x80\x80\x80"), "\\xf8\\x88\\x80\\x80\\x80");
	/* A valid character after a broken one stays unescaped. */
	check(HS_LIT("\xe2\xc3\xa4"), "\\xe2\xc3\xa4");
}

static void test_appends(void **state)
{
	struct hs_buf text = {0};

	(void)state;
	hs_escape(HS_LIT("a"), &text);
	hs_escape(HS_LIT("\n"), &text);
	assert_int_equal(text.len, 3);
	assert_memory_equal(text.data, "a\\n", 3);
	hs_buf_deinit(&text);
}

static unsigned char hex(char digit)
{
	return (unsigned char)(digit <= '9' ? digit - '0' : digit - 'a' + 10);
}

/* Reads an escaped text back into bytes. Fails if the text has a character that escaping must not produce. */
static size_t read_back(struct hs_bytes text, char *bytes)
{
	size_t count = 0;

	for (size_t i = 0; i < text.len; i++) {
		unsigned char byte = (unsigned char)text.data[i];

		assert_true(byte >= 0x20 && byte != 0x7f && byte != '"');
		if (byte == '\\') {
			char letter = text.data[++i];

			assert_true(i < text.len);
			if (letter == 'x') {
				assert_true(i + 2 < text.len);
				byte = (unsigned char)(hex(text.data[i + 1]) << 4 |
						       hex(text.data[i + 2]));
				i += 2;
			} else {
				byte = letter == 'n'   ? '\n'
				       : letter == 'r' ? '\r'
				       : letter == 't' ? '\t'
						       : (unsigned char)letter;
			}
		} else if (byte >= 0x80) {
			struct hs_bytes rest = {text.data + i, text.len - i};
			uint32_t character;
			size_t len = hs_escape_utf8(rest, &character);

			assert_true(len > 1);
			assert_true(character >= 0xa0);
			memcpy(bytes + count, rest.data, len);
			count += len;
			i += len - 1;
			continue;
		}
		bytes[count++] = (char)byte;
	}
	return count;
}

static void test_can_be_read_back(void **state)
{
	static const char awkward[] =
		"\0\n\"\\xn1aA\x1b\x7f\x80\x9b\xa0\xa8\xae\xbf\xc2\xc3\xe2\xed"
		"\xef\xf0\xf4\xff";
	const size_t count = sizeof awkward - 1;
	struct hs_buf text = {0};

	(void)state;
	for (size_t i = 0; i < count * count * count; i++) {
		char bytes[3] = {awkward[i % count], awkward[i / count % count],
				 awkward[i / count / count]};
		char back[12 * HS_ESCAPE_GROWTH];

		text.len = 0;
		hs_escape((struct hs_bytes){bytes, sizeof bytes}, &text);
		assert_true(text.len <= sizeof bytes * HS_ESCAPE_GROWTH);
		assert_int_equal(read_back(hs_buf_bytes(&text), back), sizeof bytes);
		assert_memory_equal(back, bytes, sizeof bytes);
	}
	hs_buf_deinit(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_visible_characters_stay),
		cmocka_unit_test(test_quotes_and_backslashes),
		cmocka_unit_test(test_controls),
		cmocka_unit_test(test_invalid_utf8),
		cmocka_unit_test(test_appends),
		cmocka_unit_test(test_can_be_read_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
