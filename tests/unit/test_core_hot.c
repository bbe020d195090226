/* Goal: a key becomes hot when its share of the requests reaches the upper bound, and cools when its share has
 * been below the lower bound for a while. Stages find their state for the key; the table is bounded.
 *
 * Method: a core without an engine; the test reports made-up heat to the table, as counting would. */
#include "core/count.h"
#include "core/state.h"
#include "route/slot_map.h"
#include "stages/stages.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { COOL_US = 1000, FOLD = 2 }; /* FOLD: the index of the fold stage */

struct world {
	struct hs_core_calls calls;
	struct hs_log log;
	_Atomic uint64_t slowlog_ids;
	struct hs_core_options options;
	struct hs_core *core;
	struct hs_now now;
};

static void open_world(struct world *world)
{
	struct hs_core_world core_world = {
		.commands = &hs_commands,
		.calls = &world->calls,
		.context = world,
		.log = &world->log,
		.workers = 1,
		.partitions = 4,
		.node_id = "0123456789abcdef0123456789abcdef01234567",
		.slowlog_ids = &world->slowlog_ids,
		.stages = hs_stages,
	};

	*world = (struct world){
		.now = {.mono_us = 1},
		.options = {.slowlog_us = -1,
			    .hot = {.share = 0.1,
				    .share_exit = 0.05,
				    .requests = 8,
				    .cool_down_us = COOL_US},
			    .fold = true},
	};
	world->core = hs_core_create(&core_world, &world->options);
	hs_core_tick(world->core, world->now);
}

static void close_world(struct world *world)
{
	hs_core_destroy(&world->core);
}

static struct hs_hot *find(struct world *world, const char *name)
{
	struct hs_bytes key = hs_bytes_of(name);

	return hs_hot_find(&world->core->hot_table, hs_slot_of(key), key);
}

static void note(struct world *world, const char *name, double share, double requests)
{
	struct hs_bytes key = hs_bytes_of(name);
	struct hs_heat_warmth heat = {
		.share = share, .requests = requests, .key = key, .slot = hs_slot_of(key)};

	hs_count_hot(world->core, heat, true);
}

static void pass(struct world *world, uint64_t us)
{
	world->now.mono_us += us;
	hs_core_tick(world->core, world->now);
}

static void test_a_key_turns_hot_and_cools(void **state)
{
	struct world world;

	(void)state;
	open_world(&world);
	note(&world, "k", 0.09, 100);
	note(&world, "k", 0.5, 7); /* too few requests to decide */
	assert_null(find(&world, "k"));
	note(&world, "k", 0.1, 8);
	assert_non_null(find(&world, "k"));
	assert_int_equal(hs_counter_get(&world.core->stats.hot_keys), 1);
	/* The key stays hot while its share is not below the lower bound. */
	for (int i = 0; i < 10; i++) {
		pass(&world, COOL_US);
		note(&world, "k", 0.05, 8);
	}
	assert_non_null(find(&world, "k"));
	assert_int_equal(find(&world, "k")->since_us, 1);
	note(&world, "k", 0.04, 8);
	pass(&world, COOL_US);
	assert_non_null(find(&world, "k"));
	pass(&world, 1);
	assert_null(find(&world, "k"));
	assert_int_equal(hs_counter_get(&world.core->stats.hot_keys), 0);
	close_world(&world);
}

/* The core ignores a lower bound above the upper bound. */
static void test_bounds_in_the_wrong_order(void **state)
{
	struct world world;

	(void)state;
	open_world(&world);
	world.options.hot.share_exit = 0.5;
	hs_core_configure(world.core, &world.options);
	note(&world, "k", 0.1, 8);
	assert_non_null(find(&world, "k"));
	pass(&world, COOL_US);
	note(&world, "k", 0.09, 8);
	pass(&world, 1);
	assert_null(find(&world, "k"));
	close_world(&world);
}

/* If the plan excludes a stage for a hot key, the stage frees its state for the key. When the plan allows the
 * stage again, the stage takes the key again. */
static void test_the_plan_decides(void **state)
{
	struct world world;
	struct hs_hot *hot;

	(void)state;
	open_world(&world);
	note(&world, "k", 1, 100);
	hot = find(&world, "k");
	assert_non_null(hot->state[FOLD]);
	hot->plan &= ~(UINT32_C(1) << FOLD);
	pass(&world, 1);
	assert_null(hot->state[FOLD]);
	note(&world, "k", 1, 100);
	assert_null(hot->state[FOLD]);
	hot->plan |= UINT32_C(1) << FOLD;
	note(&world, "k", 1, 100);
	assert_non_null(hot->state[FOLD]);
	/* The table has its own copy of the key, because the request is freed. */
	assert_ptr_equal(hot->heat.key.data, hot->key);
	assert_int_equal(hot->heat.slot, hs_slot_of(HS_LIT("k")));
	close_world(&world);
}

/* A key stays in the table as long as a stage has state for it. */
static void test_state_keeps_a_key(void **state)
{
	struct world world;
	struct hs_hot *hot;
	int ours;

	(void)state;
	open_world(&world);
	note(&world, "k", 1, 100);
	hot = find(&world, "k");
	assert_non_null(hot->state[FOLD]);
	hot->state[HS_HOT_STAGES - 1] = &ours;
	world.options.fold = false;
	hs_core_configure(world.core, &world.options);
	pass(&world, COOL_US / 2);
	assert_null(hot->state[FOLD]); /* the fold stage is off, but the key is still hot */
	world.options.fold = true;
	hs_core_configure(world.core, &world.options);
	note(&world, "k", 1, 100);
	assert_non_null(hot->state[FOLD]);
	hot->state[HS_HOT_STAGES - 1] = NULL;
	pass(&world, COOL_US + 1);
	assert_null(find(&world, "k"));
	close_world(&world);
}

static void test_bounds_change_while_running(void **state)
{
	struct world world;

	(void)state;
	open_world(&world);
	world.options.hot = (struct hs_core_hot){
		.share = 0.5, .share_exit = 0.5, .requests = 1, .cool_down_us = 10 * COOL_US};
	hs_core_configure(world.core, &world.options);
	note(&world, "k", 0.4, 100);
	assert_null(find(&world, "k"));
	note(&world, "k", 0.5, 1);
	pass(&world, 10 * COOL_US);
	assert_non_null(find(&world, "k"));
	close_world(&world);
}

static void test_the_table_is_small(void **state)
{
	struct world world;

	(void)state;
	open_world(&world);
	world.options.hot.keys_max = 1;
	hs_core_configure(world.core, &world.options);
	note(&world, "a", 0.5, 100);
	note(&world, "b", 0.5, 100);
	assert_non_null(find(&world, "a"));
	assert_null(find(&world, "b"));
	assert_int_equal(hs_counter_get(&world.core->stats.hot_keys_full), 1);
	pass(&world, COOL_US + 1);
	note(&world, "b", 0.5, 100);
	assert_non_null(find(&world, "b"));
	close_world(&world);
}

/* Two keys with the same hash tag have the same slot but separate entries. The core counts a key that does not
 * fit into the table. */
static void test_the_table_is_bounded(void **state)
{
	struct world world;
	char name[32];

	(void)state;
	open_world(&world);
	for (int i = 0; i < HS_HOT_KEYS_MAX + 3; i++) {
		snprintf(name, sizeof name, "{tag}:%d", i);
		note(&world, name, 1, 100);
	}
	assert_int_equal(world.core->hot_table.count, HS_HOT_KEYS_MAX);
	assert_int_equal(hs_counter_get(&world.core->stats.hot_keys_full), 3);
	for (int i = 0; i < HS_HOT_KEYS_MAX; i++) {
		snprintf(name, sizeof name, "{tag}:%d", i);
		assert_true(hs_bytes_equal(hs_hot_key(find(&world, name)), hs_bytes_of(name)));
	}
	assert_null(find(&world, name + 1));
	pass(&world, COOL_US + 1);
	assert_int_equal(world.core->hot_table.count, 0);
	assert_int_equal(world.core->hot_table.key_bytes, 0);
	note(&world, "{tag}:0", 1, 100);
	assert_non_null(find(&world, "{tag}:0"));
	close_world(&world);
}

static void test_names_are_bounded(void **state)
{
	struct hs_bytes key = {NULL, HS_HOT_BYTES_MAX / 2 + 1};
	struct hs_heat_warmth heat = {.share = 1, .requests = 100};
	struct world world;
	char *name = calloc(1, key.len);

	(void)state;
	open_world(&world);
	key.data = name;
	heat.key = key;
	heat.slot = hs_slot_of(key);
	hs_count_hot(world.core, heat, true);
	name[0] = 'x';
	heat.slot = hs_slot_of(key);
	hs_count_hot(world.core, heat, true);
	assert_int_equal(world.core->hot_table.count, 1);
	assert_int_equal(hs_counter_get(&world.core->stats.hot_keys_full), 1);
	note(&world, "small", 1, 100);
	assert_non_null(find(&world, "small"));
	free(name);
	close_world(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_key_turns_hot_and_cools),
		cmocka_unit_test(test_bounds_in_the_wrong_order),
		cmocka_unit_test(test_the_plan_decides),
		cmocka_unit_test(test_state_keeps_a_key),
		cmocka_unit_test(test_bounds_change_while_running),
		cmocka_unit_test(test_the_table_is_bounded),
		cmocka_unit_test(test_the_table_is_small),
		cmocka_unit_test(test_names_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
