/* Goal: a byte buffer holds the appended bytes, also after it has grown, and frees the memory of a large value.
 *
 * Method: each function by itself; then a random sequence of calls is compared with a plain array. */
#include "base/buf.h"
#include "base/prng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static void test_zeroed_is_empty_and_usable(void **state)
{
	struct hs_buf buf = {0};

	(void)state;
	hs_buf_append(&buf, NULL, 0);
	assert_int_equal(buf.len, 0);
	assert_null(buf.data);
	hs_buf_consume(&buf, 0);
	hs_buf_clear(&buf, 0);
	hs_buf_deinit(&buf);
	hs_buf_append(&buf, "ab", 2);
	assert_true(hs_bytes_equal(hs_buf_bytes(&buf), HS_LIT("ab")));
	hs_buf_deinit(&buf);
	assert_null(buf.data);
}

static void test_printf_appends(void **state)
{
	struct hs_buf buf = {0};

	(void)state;
	hs_buf_printf(&buf, "%d-%s", 7, "x");
	hs_buf_printf(&buf, "%s", "");
	hs_buf_printf(&buf, "%1000d", 1);
	assert_int_equal(buf.len, 1003);
	assert_memory_equal(buf.data, "7-x  ", 5);
	assert_int_equal(buf.data[1002], '1');
	hs_buf_deinit(&buf);
}

static void test_clear_frees_large_memory(void **state)
{
	struct hs_buf buf = {0};

	(void)state;
	hs_buf_reserve(&buf, 100);
	hs_buf_append(&buf, "x", 1);
	hs_buf_clear(&buf, 1024);
	assert_non_null(buf.data);
	assert_int_equal(buf.len, 0);
	hs_buf_reserve(&buf, 100000);
	hs_buf_clear(&buf, 1024);
	assert_null(buf.data);
	assert_int_equal(buf.cap, 0);
	hs_buf_deinit(&buf);
}

static void test_large_buffers_grow_by_less_than_double(void **state)
{
	struct hs_buf buf = {0};
	size_t size = (size_t)64 << 20;

	(void)state;
	while (buf.len < size) {
		hs_buf_reserve(&buf, 65536);
		buf.len += 65536;
	}
	assert_true(buf.cap < size + size / 4);
	hs_buf_deinit(&buf);
}

static void test_swap(void **state)
{
	struct hs_buf a = {0}, b = {0};

	(void)state;
	hs_buf_append(&a, "left", 4);
	hs_buf_swap(&a, &b);
	assert_int_equal(a.len, 0);
	assert_true(hs_bytes_equal(hs_buf_bytes(&b), HS_LIT("left")));
	hs_buf_deinit(&a);
	hs_buf_deinit(&b);
}

static void test_random_calls_against_a_plain_array(void **state)
{
	enum { ROUNDS = 20000, ROOM = 1 << 16 };
	static char model[ROOM];
	struct hs_buf buf = {0};
	struct hs_prng prng;
	size_t len = 0;

	(void)state;
	hs_prng_init(&prng, 7);
	for (int i = 0; i < ROUNDS; i++) {
		char piece[300];
		size_t size = hs_prng_below(&prng, sizeof piece);

		if (hs_prng_below(&prng, 3) > 0 && len + size < ROOM) {
			memset(piece, (int)(i & 0x7f), size);
			hs_buf_append(&buf, piece, size);
			memcpy(model + len, piece, size);
			len += size;
		} else {
			size = hs_prng_below(&prng, len + 1);
			hs_buf_consume(&buf, size);
			memmove(model, model + size, len - size);
			len -= size;
		}
		assert_int_equal(buf.len, len);
		assert_true(buf.cap >= buf.len);
		if (len > 0)
			assert_memory_equal(buf.data, model, len);
	}
	hs_buf_deinit(&buf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_zeroed_is_empty_and_usable),
		cmocka_unit_test(test_printf_appends),
		cmocka_unit_test(test_clear_frees_large_memory),
		cmocka_unit_test(test_large_buffers_grow_by_less_than_double),
		cmocka_unit_test(test_swap),
		cmocka_unit_test(test_random_calls_against_a_plain_array),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
