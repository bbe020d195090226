/* Goal: a query string of the HTTP API is parsed, or refused with an error that names the wrong part; the index
 * lists every route.
 *
 * Method: a table of two routes; the test sets parameters one by one, as the HTTP server does. */
#include "http/route.h"

#include "base/err.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static unsigned compose(void *context, const struct hs_http_request *request, struct hs_buf *body)
{
	(void)context;
	(void)request;
	(void)body;
	return 200;
}

enum { WHAT, COUNT, PREFIX };

static const struct hs_http_parameter parameters[] = {
	[WHAT] = {.name = "what",
		  .kind = HS_HTTP_WORD,
		  .words = HS_WORDS("keys", "prefixes", "slots")},
	[COUNT] = {.name = "count", .kind = HS_HTTP_INT, .min = 1, .max = 100, .fallback = 10},
	[PREFIX] = {.name = "prefix", .kind = HS_HTTP_TEXT},
};
static const struct hs_http_route rows[] = {
	{.path = "/heat",
	 .type = "application/json",
	 .parameters = parameters,
	 .parameters_count = 3,
	 .compose = compose,
	 .help = "The hottest."},
	{.path = "/plain", .type = "text/plain", .compose = compose, .help = "Takes nothing."},
};
static const struct hs_http_routes routes = {rows, 2};

static void test_paths_match_exactly(void **state)
{
	(void)state;
	assert_ptr_equal(hs_http_route_find(&routes, HS_LIT("/heat")), &rows[0]);
	assert_ptr_equal(hs_http_route_find(&routes, HS_LIT("/plain")), &rows[1]);
	assert_null(hs_http_route_find(&routes, HS_LIT("/hea")));
	assert_null(hs_http_route_find(&routes, HS_LIT("/heat/")));
	assert_null(hs_http_route_find(&routes, HS_LIT("/HEAT")));
	assert_null(hs_http_route_find(&routes, HS_LIT("")));
}

static void test_values(void **state)
{
	struct hs_http_request request;
	struct hs_buf why = {0};

	(void)state;
	hs_http_request_init(&request, &rows[0]);
	assert_int_equal(request.values[WHAT].number, 0);
	assert_int_equal(request.values[COUNT].number, 10);
	assert_int_equal(request.values[PREFIX].text.len, 0);
	assert_false(request.values[COUNT].given);
	assert_int_equal(hs_http_request_set(&request, HS_LIT("what"), HS_LIT("slots"), &why), 0);
	assert_int_equal(hs_http_request_set(&request, HS_LIT("count"), HS_LIT("100"), &why), 0);
	assert_int_equal(hs_http_request_set(&request, HS_LIT("prefix"), HS_LIT("a\0\xff"), &why),
			 0);
	assert_int_equal(request.values[WHAT].number, 2);
	assert_int_equal(request.values[COUNT].number, 100);
	assert_true(hs_bytes_equal(request.values[PREFIX].text, HS_LIT("a\0\xff")));
	assert_true(request.values[COUNT].given);
	assert_int_equal(why.len, 0);
}

static void test_errors_name_what_is_wrong(void **state)
{
	static const struct {
		const char *name, *value, *why;
	} cases[] = {
		{"count", "0", "count=0: must be a number from 1 to 100\n"},
		{"count", "101", "count=101: must be a number from 1 to 100\n"},
		{"count", "", "count=: must be a number from 1 to 100\n"},
		{"count", "1e1", "count=1e1: must be a number from 1 to 100\n"},
		{"count", "99999999999999999999",
		 "count=99999999999999999999: must be a number from 1 to 100\n"},
		{"what", "key", "what=key: must be one of keys|prefixes|slots\n"},
		{"what", "keys prefixes",
		 "what=keys prefixes: must be one of keys|prefixes|slots\n"},
		{"what", "", "what=: must be one of keys|prefixes|slots\n"},
		{"what", "\n\xff", "what=\\n\\xff: must be one of keys|prefixes|slots\n"},
		{"by", "ops", "unknown parameter 'by': /heat takes what, count, prefix\n"},
		{"", "", "unknown parameter '': /heat takes what, count, prefix\n"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hs_http_request request;
		struct hs_buf why = {0};

		hs_http_request_init(&request, &rows[0]);
		assert_int_equal(hs_http_request_set(&request, hs_bytes_of(cases[i].name),
						     hs_bytes_of(cases[i].value), &why),
				 HS_EINVAL);
		hs_buf_append(&why, "", 1);
		assert_string_equal(why.data, cases[i].why);
		hs_buf_deinit(&why);
	}
}

static void test_a_long_value_is_cut_in_the_error(void **state)
{
	struct hs_http_request request;
	struct hs_buf why = {0};
	char value[5000];

	(void)state;
	memset(value, 'x', sizeof value);
	hs_http_request_init(&request, &rows[0]);
	assert_int_equal(hs_http_request_set(&request, HS_LIT("what"),
					     (struct hs_bytes){value, sizeof value}, &why),
			 HS_EINVAL);
	assert_true(why.len < 200);
	hs_buf_deinit(&why);
}

static void test_a_parameter_given_twice_is_refused(void **state)
{
	struct hs_http_request request;
	struct hs_buf why = {0};

	(void)state;
	hs_http_request_init(&request, &rows[0]);
	assert_int_equal(hs_http_request_set(&request, HS_LIT("count"), HS_LIT("1"), &why), 0);
	assert_int_equal(hs_http_request_set(&request, HS_LIT("count"), HS_LIT("2"), &why),
			 HS_EINVAL);
	hs_buf_append(&why, "", 1);
	assert_string_equal(why.data, "parameter 'count' is given twice\n");
	hs_buf_deinit(&why);
}

static void test_a_route_without_parameters(void **state)
{
	struct hs_http_request request;
	struct hs_buf why = {0};

	(void)state;
	hs_http_request_init(&request, &rows[1]);
	assert_int_equal(hs_http_request_set(&request, HS_LIT("a"), HS_LIT(""), &why), HS_EINVAL);
	hs_buf_append(&why, "", 1);
	assert_string_equal(why.data, "unknown parameter 'a': /plain takes none\n");
	hs_buf_deinit(&why);
}

static void test_the_index(void **state)
{
	struct hs_buf text = {0};

	(void)state;
	hs_http_routes_describe(&routes, &text);
	hs_buf_append(&text, "", 1);
	assert_string_equal(text.data,
			    "/heat            The hottest.\n"
			    "                 ?what=keys|prefixes|slots&count=1..100&prefix=TEXT\n"
			    "/plain           Takes nothing.\n");
	hs_buf_deinit(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_paths_match_exactly),
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_errors_name_what_is_wrong),
		cmocka_unit_test(test_a_long_value_is_cut_in_the_error),
		cmocka_unit_test(test_a_parameter_given_twice_is_refused),
		cmocka_unit_test(test_a_route_without_parameters),
		cmocka_unit_test(test_the_index),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
