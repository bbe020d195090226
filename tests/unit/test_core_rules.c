/* Goal: a core holds a reference to its rules exactly as long as it uses them.
 *
 * Method: count references while a core is created, configured and destroyed. */
#include "stages/stages.h"

#include "contract/internal.h"
#include "core/core.h"
#include "tests/lib/rules.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

static uint32_t holds(const struct hs_rules *rules)
{
	return atomic_load(&((struct hs_rules *)(uintptr_t)rules)->refs);
}

static uint64_t mono_us(void *context)
{
	(void)context;
	return 1;
}

static void test_rules_are_referenced_and_released(void **state)
{
	static const struct hs_log log;
	const struct hs_core_calls calls = {.mono_us = mono_us};
	const struct hs_core_world world = {
		.commands = &hs_commands,
		.stages = hs_stages,
		.calls = &calls,
		.log = &log,
		.workers = 1,
		.partitions = 1,
		.node_id = "0123456789abcdef0123456789abcdef01234567",
	};
	const struct hs_rules *first = RULES("a cache"), *second = RULES("b cache");
	struct hs_core_options options = {.output_bytes_max = 1 << 20, .rules = first};
	struct hs_core *core = hs_core_create(&world, &options);

	(void)state;
	assert_true(holds(first) > 1);
	hs_core_configure(core, &options); /* configures the same rules again */
	assert_true(holds(first) > 1);
	options.rules = second;
	hs_core_configure(core, &options);
	assert_int_equal(holds(first), 1);
	assert_true(holds(second) > 1);
	options.rules = NULL;
	hs_core_configure(core, &options);
	assert_int_equal(holds(second), 1);
	options.rules = second;
	hs_core_configure(core, &options);
	hs_core_destroy(&core);
	assert_int_equal(holds(second), 1);
	hs_rules_unref(&first);
	hs_rules_unref(&second);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rules_are_referenced_and_released),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
