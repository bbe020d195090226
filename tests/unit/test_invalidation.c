/* Goal: invalidation pushes are parsed: every key of a well-formed push, no key of a malformed push. A key missed
 * here would be served stale from a cache for ever.
 *
 * Method: a table of texts as servers send them, and malformed ones. */
#include "engine/redis/invalidation.h"

#include "base/buf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* Asserts the parsed result as text: "a b ." for keys, with a point at the end; "all" for all keys; "a !" if the
 * push is malformed after a. */
static void says(const char *text, const char *wanted)
{
	struct hs_invalidation invalidation;
	struct hs_bytes key;
	struct hs_buf said = {0};
	int rc = hs_invalidation_begin(&invalidation, (struct hs_walk){text, strlen(text)});

	while (rc == 0 && !invalidation.all &&
	       (rc = hs_invalidation_next(&invalidation, &key)) > 0) {
		hs_buf_printf(&said, "%.*s ", (int)key.len, key.data);
		rc = 0;
	}
	hs_buf_printf(&said, "%s", rc < 0 ? "!" : invalidation.all ? "all" : ".");
	assert_true(hs_bytes_equal(hs_buf_bytes(&said), hs_bytes_of(wanted)));
	hs_buf_deinit(&said);
}

static void test_keys(void **state)
{
	(void)state;
	says("*2\r\n$1\r\na\r\n$2\r\nbc\r\n", "a bc .");
	says("*1\r\n$0\r\n\r\n", " .");
	says("*0\r\n", ".");
}

static void test_all_keys(void **state)
{
	(void)state;
	says("_\r\n", "all");
	says("*-1\r\n", "all");
	says("$-1\r\n", "all");
}

static void test_malformed_pushes(void **state)
{
	(void)state;
	says("", "!");
	says("$1\r\na\r\n", "!");
	says(":1\r\n", "!");
	says("*2\r\n$1\r\na\r\n", "a !");
	says("*2\r\n$1\r\na\r\n:7\r\n", "a !");
	says("*1\r\n*1\r\n$1\r\na\r\n", "!");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_keys),
		cmocka_unit_test(test_all_keys),
		cmocka_unit_test(test_malformed_pushes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
