/* Goal: patterns match exactly as in Redis, special cases included, and a hostile pattern costs little.
 *
 * Method: a table of patterns and texts; the results are those of KEYS on a Redis server. */
#include "base/glob.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

struct row {
	const char *pattern, *text;
	bool ignore_case, matches;
};

static void check(size_t count, const struct row *rows)
{
	for (size_t i = 0; i < count; i++) {
		bool matches = hs_glob_match(hs_bytes_of(rows[i].pattern),
					     hs_bytes_of(rows[i].text), rows[i].ignore_case);

		if (matches != rows[i].matches)
			fail_msg("pattern %s, text %s: %s", rows[i].pattern, rows[i].text,
				 matches ? "matches" : "does not match");
	}
}

#define CHECK(...)                                                                                 \
	do {                                                                                       \
		static const struct row rows_[] = {__VA_ARGS__};                                   \
		check(sizeof rows_ / sizeof *rows_, rows_);                                        \
	} while (0)

static void test_stars_and_marks(void **state)
{
	(void)state;
	CHECK({"*", "a", false, true}, {"**", "abc", false, true}, {"a*", "a", false, true},
	      {"*a", "a", false, true}, {"a*c", "abbbc", false, true},
	      {"a*c", "abbbd", false, false}, {"*ab*ab", "abxab", false, true},
	      {"*ab*ab", "ab", false, false}, {"?", "a", false, true}, {"?", "ab", false, false},
	      {"?*?", "a", false, false}, {"?*?", "ab", false, true}, {"abc", "abc", false, true},
	      {"abc", "ab", false, false}, {"ab", "abc", false, false});
}

static void test_empty_text_fits_only_the_empty_pattern(void **state)
{
	(void)state;
	CHECK({"", "", false, true}, {"*", "", false, false}, {"**", "", false, false},
	      {"?", "", false, false}, {"[^", "", false, false}, {"", "a", false, false});
}

static void test_classes(void **state)
{
	(void)state;
	CHECK({"[abc]", "b", false, true}, {"[abc]", "d", false, false},
	      {"[a-c]", "b", false, true}, {"[c-a]", "b", false, true},
	      {"[^a-c]", "b", false, false}, {"[^a-c]", "d", false, true},
	      {"[a\\]b]", "]", false, true}, {"[\\a-c]", "-", false, true},
	      {"[\\a-c]", "b", false, false}, {"x[0-9]*", "x5y", false, true},
	      {"[a-]", "^", false, true}, {"[a-]", "-", false, false}, {"[]", "a", false, false},
	      {"[^]", "a", false, true});
}

static void test_unclosed_classes_end_with_the_pattern(void **state)
{
	(void)state;
	CHECK({"[", "a", false, false}, {"[", "[", false, false}, {"[^", "a", false, true},
	      {"[a", "a", false, true}, {"[ab", "b", false, true}, {"[ab", "c", false, false},
	      {"[\\", "\\", false, true});
}

static void test_escapes(void **state)
{
	(void)state;
	CHECK({"\\*", "*", false, true}, {"\\*", "a", false, false}, {"a\\?", "a?", false, true},
	      {"\\[a]", "[a]", false, true}, {"\\", "\\", false, true},
	      {"a\\", "a\\", false, true});
}

static void test_case_is_ignored_on_request(void **state)
{
	(void)state;
	CHECK({"MAX*", "maxclients", true, true}, {"MAX*", "maxclients", false, false},
	      {"[A-C]", "b", true, true}, {"[A-C]", "b", false, false}, {"\\A", "a", true, true},
	      {"[\\A]", "a", true, false});
}

static void test_bytes_past_127_are_signed(void **state)
{
	(void)state;
	CHECK({"[\x80-\xff]", "\xc3", false, true}, {"[a-\xff]", "b", false, false},
	      {"[a-\xff]", "A", false, true}, {"*\xff", "a\xff", false, true});
}

static void test_bytes_of_zero_are_bytes(void **state)
{
	(void)state;
	assert_true(hs_glob_match(HS_LIT("a\0*"), HS_LIT("a\0b"), false));
	assert_false(hs_glob_match(HS_LIT("a\0*"), HS_LIT("ab"), false));
}

/* A matcher that backtracks into every earlier star would practically never finish this pattern. */
static void test_hostile_pattern_ends(void **state)
{
	char pattern[200], text[2000];

	(void)state;
	for (size_t i = 0; i < sizeof pattern; i += 2) {
		pattern[i] = '*';
		pattern[i + 1] = 'a';
	}
	memset(text, 'a', sizeof text);
	text[sizeof text - 1] = 'b';
	assert_false(hs_glob_match((struct hs_bytes){pattern, sizeof pattern},
				   (struct hs_bytes){text, sizeof text}, false));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stars_and_marks),
		cmocka_unit_test(test_empty_text_fits_only_the_empty_pattern),
		cmocka_unit_test(test_classes),
		cmocka_unit_test(test_unclosed_classes_end_with_the_pattern),
		cmocka_unit_test(test_escapes),
		cmocka_unit_test(test_case_is_ignored_on_request),
		cmocka_unit_test(test_bytes_past_127_are_signed),
		cmocka_unit_test(test_bytes_of_zero_are_bytes),
		cmocka_unit_test(test_hostile_pattern_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
