/* Goal: addresses are written as text and parsed back; a host with colons is put in brackets, so that the port
 * after it is unambiguous.
 *
 * Method: a table of inputs and results, and every buffer that is too small. */
#include "base/address.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void test_brackets_where_there_are_colons(void **state)
{
	static const struct {
		const char *host;
		unsigned port;
		const char *text;
	} cases[] = {
		{"127.0.0.1", 6380, "127.0.0.1:6380"},
		{"localhost", 1, "localhost:1"},
		{"::1", 39449, "[::1]:39449"},
		{"::", 0, "[::]:0"},
		{"fe80::1%eth0", 65535, "[fe80::1%eth0]:65535"},
	};
	char text[HS_ADDRESS_TEXT_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_string_equal(
			hs_address_text(cases[i].host, cases[i].port, text, sizeof text),
			cases[i].text);
}

static void test_never_writes_past_its_room(void **state)
{
	static const char whole[] = "[::1]:6380";
	char text[sizeof whole + 1];

	(void)state;
	for (size_t size = 1; size <= sizeof whole; size++) {
		memset(text, '#', sizeof text);
		hs_address_text("::1", 6380, text, size);
		assert_int_equal(strlen(text), size - 1);
		assert_memory_equal(text, whole, size - 1);
		assert_int_equal(text[size], '#');
	}
}

static void test_text_is_taken_apart(void **state)
{
	static const struct {
		const char *text, *host; /* host NULL: the text is not an address */
		unsigned port;
	} cases[] = {
		{"127.0.0.1:6380", "127.0.0.1", 6380},
		{"sim:0", "sim", 0},
		{"[::1]:65535", "::1", 65535},
		{"[fe80::1%eth0]:1", "fe80::1%eth0", 1},
		{"", NULL, 0},
		{"host", NULL, 0},
		{":1", NULL, 0},
		{"[]:1", "[]", 1},
		{"host:", NULL, 0},
		{"host:65536", NULL, 0},
		{"host:-1", NULL, 0},
		{"host:1x", NULL, 0},
		{"::1", NULL, 0},
		{"fe80::1:6380", NULL, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hs_bytes host = HS_LIT("untouched");
		unsigned port = 7;
		bool taken = hs_address_split(cases[i].text, &host, &port);

		assert_int_equal(taken, cases[i].host != NULL);
		assert_true(hs_bytes_equal(host, hs_bytes_of(taken ? cases[i].host : "untouched")));
		assert_int_equal(port, taken ? cases[i].port : 7);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_brackets_where_there_are_colons),
		cmocka_unit_test(test_text_is_taken_apart),
		cmocka_unit_test(test_never_writes_past_its_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
