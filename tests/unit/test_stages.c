/* Goal: the row of stages is the one that stages/stages.c explains. The order is part of the design: a change
 * of it has to change this test. */
#include "stages/stages.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void test_the_order(void **state)
{
	static const char *const names[] = {"push", "cache", "fold", "versions", "copies"};
	size_t count = sizeof names / sizeof *names;

	(void)state;
	assert_true(count <= HS_STAGES_MAX);
	for (size_t i = 0; i < count; i++) {
		assert_non_null(hs_stages[i]);
		assert_string_equal(hs_stages[i]->name, names[i]);
		assert_non_null(hs_stages[i]->create);
		assert_non_null(hs_stages[i]->destroy);
	}
	assert_null(hs_stages[count]);
}

/* A stage that marks requests is told of their answers; one that delays them is asked to send. */
static void test_points_that_go_together(void **state)
{
	(void)state;
	for (size_t i = 0; hs_stages[i]; i++) {
		const struct hs_stage *stage = hs_stages[i];

		assert_int_equal(stage->flush != NULL, stage->needs_flush != NULL);
		assert_int_equal(stage->passed != NULL, stage->finish != NULL);
		assert_int_equal(stage->passed != NULL, stage->queued != NULL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_order),
		cmocka_unit_test(test_points_that_go_together),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
