/* Goal: memory that is free after a burst of requests is returned to the system once. Memory that is used again
 * stays.
 *
 * Method: measurements with made-up numbers. */
#include "base/limits.h"
#include "serve/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { LOOKS = 5 };

static int looks(struct hs_memory *memory, int count, uint64_t free_bytes)
{
	int returned = 0;

	for (int i = 0; i < count; i++)
		returned += hs_memory_sample(memory, free_bytes);
	return returned;
}

static void test_a_burst_is_returned_once(void **state)
{
	struct hs_memory memory = {0};

	(void)state;
	assert_int_equal(looks(&memory, LOOKS, HS_GIB), 1);
	/* 100 MiB cannot be returned, so no further attempt is made. */
	assert_int_equal(looks(&memory, 10 * LOOKS, 100 * HS_MIB), 0);
	/* 50 MiB more are free after a second burst: a new attempt is made. */
	assert_int_equal(looks(&memory, LOOKS, 150 * HS_MIB), 1);
}

/* Replies use the free memory again and again, so some of the measurements find little free memory. */
static void test_reused_memory_stays(void **state)
{
	struct hs_memory memory = {0};

	(void)state;
	for (int i = 0; i < 10; i++) {
		assert_int_equal(looks(&memory, LOOKS - 1, HS_GIB), 0);
		assert_int_equal(looks(&memory, 1, HS_MIB), 0);
	}
	assert_int_equal(looks(&memory, 10 * LOOKS, 15 * HS_MIB), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_burst_is_returned_once),
		cmocka_unit_test(test_reused_memory_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
