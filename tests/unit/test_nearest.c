/* Goal: a mistyped word finds the intended one; a word that resembles none finds nothing.
 *
 * Method: a table of mistyped words. */
#include "base/nearest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

static const char *among(struct hs_bytes word)
{
	static const char *const names[] = {
		"stale", "stale-if-error", "swr",
		"ttl",	 "public",	   "a-name-that-is-longer-than-anything-anybody-types-in"};
	struct hs_nearest nearest = hs_nearest_to(word);

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		hs_nearest_try(&nearest, names[i]);
	return nearest.name;
}

static void test_words(void **state)
{
	static const struct {
		const char *word, *name;
	} rows[] = {
		{"stael", "stale"},  {"STALE", "stale"},
		{"stal", "stale"},   {"stales", "stale"},
		{"tale", "stale"},   {"stale-if-eror", "stale-if-error"},
		{"tll", "ttl"},	     {"wsr", "swr"},
		{"pubic", "public"}, {"stale", "stale"},
		{"", NULL},	     {"q", NULL},
		{"nothing", NULL},   {"a-name-that-is-longer-than-anything-anybody-types-in", NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const char *name = among(hs_bytes_of(rows[i].word));

		if (rows[i].name)
			assert_string_equal(name, rows[i].name);
		else
			assert_null(name);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
