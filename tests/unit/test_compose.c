/* Goal: requests to servers are composed byte for byte as the Redis protocol has them.
 *
 * Method: composed texts are compared; the output of hs_compose is parsed with wire/request.h. */
#include "wire/compose.h"

#include "base/limits.h"
#include "wire/request.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void expect_at(struct hs_buf *out, struct hs_bytes wanted, int at)
{
	if (!hs_bytes_equal(hs_buf_bytes(out), wanted))
		fail_msg("line %d: wanted \"%.*s\", got \"%.*s\"", at, (int)wanted.len, wanted.data,
			 (int)out->len, out->data);
	hs_buf_deinit(out);
}
#define expect(out, wanted) expect_at(out, HS_LIT(wanted), __LINE__)

static void test_a_request(void **state)
{
	struct hs_buf out = {0};

	(void)state;
	hs_compose(&out, 1, (struct hs_bytes[]){HS_LIT("PING")});
	expect(&out, "*1\r\n$4\r\nPING\r\n");
	hs_compose(&out, 3, (struct hs_bytes[]){HS_LIT("SET"), HS_LIT("k"), HS_LIT("v")});
	expect(&out, "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n");
}

static void test_words_may_be_any_bytes(void **state)
{
	struct hs_buf out = {0};

	(void)state;
	hs_compose(&out, 3,
		   (struct hs_bytes[]){HS_LIT("a\0b"), HS_LIT("\r\n$9\r\n"),
				       (struct hs_bytes){NULL, 0}});
	expect(&out, "*3\r\n$3\r\na\0b\r\n$6\r\n\r\n$9\r\n\r\n$0\r\n\r\n");
}

static void test_requests_follow_each_other(void **state)
{
	struct hs_buf out = {0};

	(void)state;
	hs_buf_append(&out, "+before\r\n", 9);
	assert_int_equal(hs_compose_line(&out, "PING"), 1);
	hs_compose_header(&out, 2);
	hs_compose_text(&out, "GET");
	hs_compose_word(&out, HS_LIT("k"));
	hs_compose(&out, 1, (struct hs_bytes[]){HS_LIT("QUIT")});
	expect(&out, "+before\r\n*1\r\n$4\r\nPING\r\n*2\r\n$3\r\nGET\r\n$1\r\nk\r\n"
		     "*1\r\n$4\r\nQUIT\r\n");
}

static void test_a_line_becomes_a_request(void **state)
{
	struct hs_buf out = {0};

	(void)state;
	assert_int_equal(hs_compose_line(&out, "CLIENT TRACKING ON"), 3);
	expect(&out, "*3\r\n$6\r\nCLIENT\r\n$8\r\nTRACKING\r\n$2\r\nON\r\n");
	assert_int_equal(hs_compose_line(&out, " \t SELECT\n\n 7 \t"), 2);
	expect(&out, "*2\r\n$6\r\nSELECT\r\n$1\r\n7\r\n");
	assert_int_equal(hs_compose_line(&out, ""), 0);
	assert_int_equal(hs_compose_line(&out, " \n\t "), 0);
	assert_int_equal(out.len, 0);
}

/* Texts whose lengths have one to seven digits, and requests with as many words. */
static void test_lengths_of_every_size(void **state)
{
	static char bytes[1000001];

	(void)state;
	memset(bytes, 'x', sizeof bytes);
	for (size_t size = 1; size <= 1000000; size *= 10) {
		for (size_t len = size - 1; len <= size + 1; len++) {
			struct hs_bytes argv[] = {HS_LIT("ECHO"), {bytes, len}};
			struct hs_wire_request parser;
			struct hs_buf out = {0};

			hs_compose(&out, 2, argv);
			hs_wire_request_init(&parser);
			assert_int_equal(hs_wire_request_parse(&parser, out.data, out.len, true),
					 out.len);
			assert_int_equal(parser.argc, 2);
			assert_true(hs_bytes_equal(parser.argv[0], argv[0]));
			assert_true(hs_bytes_equal(parser.argv[1], argv[1]));
			hs_wire_request_deinit(&parser);
			hs_buf_deinit(&out);
		}
	}
	for (size_t argc = 1; argc <= 10000; argc *= 10) {
		struct hs_wire_request parser;
		struct hs_buf out = {0};

		hs_compose_header(&out, argc);
		for (size_t i = 0; i < argc; i++)
			hs_compose_text(&out, "a");
		hs_wire_request_init(&parser);
		assert_int_equal(hs_wire_request_parse(&parser, out.data, out.len, true), out.len);
		assert_int_equal(parser.argc, argc);
		hs_wire_request_deinit(&parser);
		hs_buf_deinit(&out);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_request),
		cmocka_unit_test(test_words_may_be_any_bytes),
		cmocka_unit_test(test_requests_follow_each_other),
		cmocka_unit_test(test_a_line_becomes_a_request),
		cmocka_unit_test(test_lengths_of_every_size),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
