/* Goal: MOVED and ASK errors are parsed (upstream/redirect.h). Misreading a redirect would send a request to
 * the wrong node, or pass the redirect to the client as an ordinary reply.
 *
 * Method: tables of error texts. */
#include "upstream/redirect.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void test_redirects(void **state)
{
	static const struct {
		const char *text, *host;
		bool ask;
		uint16_t slot, port;
	} cases[] = {
		{"MOVED 3999 10.0.0.2:7000", "10.0.0.2", false, 3999, 7000},
		{"ASK 0 host.name:1", "host.name", true, 0, 1},
		{"MOVED 16383 ::1:65535", "::1", false, 16383, 65535},
		{"MOVED 1 :7000", "", false, 1, 7000},
		{"MOVED 7 ?:6379", "?", false, 7, 6379},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hs_redirect redirect;

		assert_true(hs_redirect_parse(&redirect, hs_bytes_of(cases[i].text)));
		assert_true(hs_bytes_equal(redirect.host, hs_bytes_of(cases[i].host)));
		assert_int_equal(redirect.ask, cases[i].ask);
		assert_int_equal(redirect.slot, cases[i].slot);
		assert_int_equal(redirect.port, cases[i].port);
	}
}

static void test_no_redirects(void **state)
{
	static const char *const texts[] = {
		"",
		"MOVED",
		"MOVED ",
		"MOVED 3999",
		"MOVED 3999 ",
		"MOVED 3999 host",
		"MOVED 3999 host:",
		"MOVED 3999 host:0",
		"MOVED 3999 host:65536",
		"MOVED 3999 host:7000 again",
		"MOVED 16384 host:7000",
		"MOVED -1 host:7000",
		"MOVED 03 host:7000",
		"MOVEDX 3999 host:7000",
		"ASKING 3999 host:7000",
		"moved 3999 host:7000",
		"ERR MOVED 3999 host:7000",
	};

	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		struct hs_redirect redirect;

		assert_false(hs_redirect_parse(&redirect, hs_bytes_of(texts[i])));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_redirects),
		cmocka_unit_test(test_no_redirects),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
