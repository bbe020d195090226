/* Goal: the stages of a core have the order that stages/stages.c explains.
 *
 * Method: compare the positions of stages. A new stage belongs into this test only if its place between two
 * others is part of the design. */
#include "stages/stages.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void test_the_order(void **state)
{
	static const char *const names[] = {"push", "cache", "fold", "versions", "copies"};
	size_t found = 0, count = 0;

	(void)state;
	for (; hs_stages[count]; count++) {
		assert_true(count < HS_STAGES_MAX);
		assert_non_null(hs_stages[count]->create);
		assert_non_null(hs_stages[count]->destroy);
		if (found < sizeof names / sizeof *names &&
		    strcmp(hs_stages[count]->name, names[found]) == 0)
			found++;
	}
	assert_int_equal(found, sizeof names / sizeof *names);
}

/* A stage that observes sessions (hs_stage_observe) has all three callbacks for this, or none of them. */
static void test_points_that_go_together(void **state)
{
	(void)state;
	for (size_t i = 0; hs_stages[i]; i++) {
		const struct hs_stage *stage = hs_stages[i];

		assert_int_equal(stage->handled != NULL, stage->before_reply != NULL);
		assert_int_equal(stage->handled != NULL, stage->exec_command != NULL);
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
