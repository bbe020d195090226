/* Goal: a key's bytes survive the path, an ETag depends on the value alone, If-None-Match is parsed, and
 * Cache-Control promises no more than the contract.
 *
 * Method: the functions on their own, with tables of cases. */
#include "http/kv.h"

#include "base/err.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

enum { S = 1000000 };

static void test_keys_are_decoded(void **state)
{
	static const struct {
		struct hs_bytes encoded, key;
	} cases[] = {
		{HS_LIT("plain"), HS_LIT("plain")},
		{HS_LIT(""), HS_LIT("")},
		{HS_LIT("a/b%2Fc%2fd"), HS_LIT("a/b/c/d")},
		{HS_LIT("%00%ff%0A%25"), HS_LIT("\0\xff\n%")},
		{HS_LIT("a+b"), HS_LIT("a+b")},
		{HS_LIT("%41"), HS_LIT("A")},
		{HS_LIT("%2541"), HS_LIT("%41")},
		{HS_LIT("../.."), HS_LIT("../..")},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hs_buf key = {0};

		assert_int_equal(hs_kv_decode(cases[i].encoded, &key), 0);
		assert_true(hs_bytes_equal(hs_buf_bytes(&key), cases[i].key));
		hs_buf_deinit(&key);
	}
}

static void test_broken_escapes_are_refused(void **state)
{
	static const char *const cases[] = {"%",   "a%",   "a%4",  "%zz", "%4g",
					    "%g4", "%%41", "% 41", "%-1"};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hs_buf key = {0};

		assert_int_equal(hs_kv_decode(hs_bytes_of(cases[i]), &key), HS_EINVAL);
		hs_buf_deinit(&key);
	}
}

static void test_an_etag_is_the_values(void **state)
{
	char a[HS_KV_ETAG_BYTES], b[HS_KV_ETAG_BYTES];

	(void)state;
	hs_kv_etag(HS_LIT("hello"), a); /* the first half of the value's SHA-256 */
	assert_string_equal(a, "\"2cf24dba5fb0a30e26e83b2ac5b9e29e\"");
	hs_kv_etag(HS_LIT(""), b);
	assert_string_equal(b, "\"e3b0c44298fc1c149afbf4c8996fb924\"");
	hs_kv_etag(HS_LIT("hello\0"), b);
	assert_string_not_equal(a, b);
}

static void test_lists_of_etags(void **state)
{
	static const struct {
		const char *list;
		bool names;
	} cases[] = {
		{"\"x\"", true},
		{"W/\"x\"", true},
		{"*", true},
		{" * ", true},
		{"\"a\", \"x\"", true},
		{"\"a\",W/\"x\"", true},
		{"\"a\"\t,\t\"b\" , \"x\"", true},
		{",,\"x\",", true},
		{"\"a,b\", \"x\"", true}, /* a tag with a comma inside */
		{"", false},
		{"x", false},
		{"\"x", false},
		{"x\"", false},
		{"\"X\"", false},
		{"\"xx\"", false},
		{"\"\"", false},
		{"w/\"x\"", false},
		{"W/x", false},
		{"W/", false},
		{"W", false},
		{"\"a\"\"x\"", false},
		{"\"a\", *", false}, /* a star is valid only alone */
		{"*, \"a\"", false},
		{"\"*\"", false},
		{"bad, \"x\"", false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		/* The list ends with its allocation, so that a sanitizer reports a read beyond the end. */
		size_t len = strlen(cases[i].list);
		char *list = malloc(len > 0 ? len : 1);

		assert_non_null(list);
		memcpy(list, cases[i].list, len);
		if (hs_kv_names_etag((struct hs_bytes){list, len}, "\"x\"") != cases[i].names)
			fail_msg("If-None-Match: %s", cases[i].list);
		free(list);
	}
}

static void expect_control(struct hs_rule rule, const char *expected)
{
	char text[HS_KV_CACHE_CONTROL_BYTES];

	hs_kv_cache_control(&rule, text);
	assert_string_equal(text, expected);
}

static void test_cache_control(void **state)
{
	char text[HS_KV_CACHE_CONTROL_BYTES];

	(void)state;
	expect_control((struct hs_rule){.stale_us = 5 * S, .ttl_us = 60 * S},
		       "public, max-age=5, must-revalidate");
	/* max-age is rounded down, never up. */
	expect_control((struct hs_rule){.stale_us = 100000, .ttl_us = 60 * S},
		       "public, max-age=0, must-revalidate");
	expect_control((struct hs_rule){.stale_us = 2 * S - 1,
					.ttl_us = 60 * S,
					.stale_while_revalidate_us = S - 1},
		       "public, max-age=1, must-revalidate");
	/* A downstream cache stores the value no longer than the rule's `ttl`. */
	expect_control((struct hs_rule){.stale_us = 5 * S, .ttl_us = 3 * S},
		       "public, max-age=3, must-revalidate");
	expect_control((struct hs_rule){.stale_us = 100000,
					.ttl_us = 60 * S,
					.stale_while_revalidate_us = 2 * S},
		       "public, max-age=0, stale-while-revalidate=2, stale-if-error=0");
	expect_control((struct hs_rule){.stale_us = S,
					.ttl_us = 60 * S,
					.stale_if_error_us = UINT64_C(3600) * S},
		       "public, max-age=1, stale-while-revalidate=0, stale-if-error=3600");
	expect_control((struct hs_rule){.stale_us = UINT64_MAX,
					.ttl_us = UINT64_MAX,
					.stale_while_revalidate_us = UINT64_MAX,
					.stale_if_error_us = UINT64_MAX},
		       "public, max-age=18446744073709, stale-while-revalidate=18446744073709, "
		       "stale-if-error=18446744073709");
	hs_kv_cache_control(NULL, text);
	assert_string_equal(text, "public, no-cache");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_keys_are_decoded),
		cmocka_unit_test(test_broken_escapes_are_refused),
		cmocka_unit_test(test_an_etag_is_the_values),
		cmocka_unit_test(test_lists_of_etags),
		cmocka_unit_test(test_cache_control),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
