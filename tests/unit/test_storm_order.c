/* Goal: the order that `storm --ordered` enforces: a write is alone on its key, no request for a key overtakes
 * another, and a request that may run is never delayed.
 *
 * Method: first a few requests for one or two keys by hand. Then at random: every request records how many
 * writes of its key were offered before it; when the request runs, exactly these writes must have been
 * answered, and no later write may have run. */
#include "cli/storm_order.h"

#include "base/mem.h"
#include "base/prng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const struct hs_storm_access get = {0, false}, set = {0, true};
static const struct hs_storm_access get_other = {1, false}, set_other = {1, true};

static void assert_next(struct hs_storm_order *order, struct hs_storm_access expected)
{
	struct hs_storm_access access;

	assert_true(hs_storm_order_take(order, &access));
	assert_int_equal(access.key, expected.key);
	assert_int_equal(access.write, expected.write);
}

static void assert_none(struct hs_storm_order *order)
{
	struct hs_storm_access access;

	assert_false(hs_storm_order_take(order, &access));
}

static void test_reads_run_together(void **state)
{
	struct hs_storm_order *order = hs_storm_order_create(2, 4);

	(void)state;
	for (int i = 0; i < 100; i++)
		assert_true(hs_storm_order_offer(order, get));
	assert_int_equal(hs_storm_order_waiting(order), 0);
	assert_none(order);
	hs_storm_order_destroy(&order);
	assert_null(order);
}

static void test_a_write_waits_for_the_reads(void **state)
{
	struct hs_storm_order *order = hs_storm_order_create(2, 4);

	(void)state;
	assert_true(hs_storm_order_offer(order, get));
	assert_true(hs_storm_order_offer(order, get));
	assert_false(hs_storm_order_offer(order, set));
	hs_storm_order_done(order, get);
	assert_none(order);
	hs_storm_order_done(order, get);
	assert_next(order, set);
	assert_none(order);
	hs_storm_order_destroy(&order);
}

static void test_all_wait_for_a_write(void **state)
{
	struct hs_storm_order *order = hs_storm_order_create(2, 4);

	(void)state;
	assert_true(hs_storm_order_offer(order, set));
	assert_false(hs_storm_order_offer(order, get));
	assert_false(hs_storm_order_offer(order, get));
	assert_false(hs_storm_order_offer(order, set));
	assert_false(hs_storm_order_offer(order, get));
	assert_none(order);
	hs_storm_order_done(order, set);
	assert_next(order, get);
	assert_next(order, get);
	assert_none(order);
	hs_storm_order_done(order, get);
	assert_none(order);
	hs_storm_order_done(order, get);
	assert_next(order, set);
	assert_none(order);
	hs_storm_order_done(order, set);
	assert_next(order, get);
	assert_int_equal(hs_storm_order_waiting(order), 0);
	hs_storm_order_destroy(&order);
}

/* A read must not run beside the reads in flight if a write waits for them: the read would overtake the write. */
static void test_no_read_overtakes_a_waiting_write(void **state)
{
	struct hs_storm_order *order = hs_storm_order_create(2, 4);

	(void)state;
	assert_true(hs_storm_order_offer(order, get));
	assert_false(hs_storm_order_offer(order, set));
	assert_false(hs_storm_order_offer(order, get));
	assert_none(order);
	hs_storm_order_done(order, get);
	/* The waiting write may run, but storm has not taken it yet: the read must still wait. */
	assert_false(hs_storm_order_offer(order, get));
	assert_next(order, set);
	hs_storm_order_destroy(&order);
}

static void test_other_keys_go_on(void **state)
{
	struct hs_storm_order *order = hs_storm_order_create(2, 4);

	(void)state;
	assert_true(hs_storm_order_offer(order, set));
	assert_false(hs_storm_order_offer(order, get));
	assert_true(hs_storm_order_offer(order, get_other));
	assert_false(hs_storm_order_offer(order, set_other));
	hs_storm_order_done(order, get_other);
	assert_next(order, set_other);
	assert_none(order);
	hs_storm_order_destroy(&order);
}

static void test_capacity(void **state)
{
	struct hs_storm_order *order = hs_storm_order_create(2, 2);

	(void)state;
	assert_true(hs_storm_order_offer(order, set));
	assert_true(hs_storm_order_has_room(order));
	assert_false(hs_storm_order_offer(order, get));
	assert_true(hs_storm_order_has_room(order));
	assert_false(hs_storm_order_offer(order, get));
	assert_false(hs_storm_order_has_room(order));
	assert_int_equal(hs_storm_order_waiting(order), 2);
	hs_storm_order_done(order, set);
	assert_next(order, get);
	assert_true(hs_storm_order_has_room(order));
	hs_storm_order_destroy(&order);
}

/* ---- at random ---- */

enum { KEYS = 5, ROOM = 20, UNDER_WAY_MAX = 12, STEPS = 200000, QUEUE = ROOM };

/* The test's model of a key. */
struct known {
	uint64_t offered, gone, answered; /* numbers of writes: offered, sent, answered */
	/* For each waiting request: the number of the key's writes offered before it. */
	uint64_t aside[QUEUE];
	uint64_t aside_first, aside_count;
};

struct request {
	struct hs_storm_access access;
	uint64_t before; /* number of the key's writes that must run before this request */
};

struct world {
	struct hs_storm_order *order;
	struct known keys[KEYS];
	struct request flights[UNDER_WAY_MAX];
	unsigned in_flight;
};

static void depart(struct world *world, struct hs_storm_access access, uint64_t before)
{
	struct known *key = &world->keys[access.key];

	assert_int_equal(key->answered, before);
	assert_int_equal(key->gone, before);
	for (unsigned i = 0; access.write && i < world->in_flight; i++)
		assert_true(world->flights[i].access.key != access.key);
	key->gone += access.write;
	world->flights[world->in_flight++] = (struct request){access, before};
}

static void offer(struct world *world, struct hs_prng *prng)
{
	struct hs_storm_access access = {hs_prng_below(prng, KEYS), hs_prng_below(prng, 4) == 0};
	struct known *key = &world->keys[access.key];
	uint64_t before = key->offered;

	key->offered += access.write;
	if (hs_storm_order_offer(world->order, access))
		depart(world, access, before);
	else
		key->aside[(key->aside_first + key->aside_count++) % QUEUE] = before;
}

static void take(struct world *world)
{
	struct hs_storm_access access;

	if (!hs_storm_order_take(world->order, &access)) {
		/* If no request is in flight, no request may be waiting. */
		assert_true(world->in_flight || !hs_storm_order_waiting(world->order));
		return;
	}

	struct known *key = &world->keys[access.key];

	assert_true(key->aside_count > 0);
	key->aside_count--;
	depart(world, access, key->aside[key->aside_first++ % QUEUE]);
}

static void finish(struct world *world, struct hs_prng *prng)
{
	unsigned which = (unsigned)hs_prng_below(prng, world->in_flight);
	struct request request = world->flights[which];

	world->flights[which] = world->flights[--world->in_flight];
	world->keys[request.access.key].answered += request.access.write;
	hs_storm_order_done(world->order, request.access);
}

static void test_at_random(void **state)
{
	struct world world = {.order = hs_storm_order_create(KEYS, ROOM)};
	struct hs_prng prng;
	unsigned full = 0;

	(void)state;
	hs_prng_init(&prng, 7);
	for (int i = 0; i < STEPS; i++) {
		uint64_t what = hs_prng_below(&prng, 5);

		full += !hs_storm_order_has_room(world.order);
		if (what < 2 && world.in_flight)
			finish(&world, &prng);
		else if (world.in_flight == UNDER_WAY_MAX)
			continue;
		else if (what == 2)
			take(&world);
		else if (hs_storm_order_has_room(world.order))
			offer(&world, &prng);
	}
	while (world.in_flight || hs_storm_order_waiting(world.order)) {
		while (world.in_flight)
			finish(&world, &prng);
		take(&world);
	}
	assert_true(full > 100);
	for (int i = 0; i < KEYS; i++)
		assert_int_equal(world.keys[i].answered, world.keys[i].offered);
	hs_storm_order_destroy(&world.order);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reads_run_together),
		cmocka_unit_test(test_a_write_waits_for_the_reads),
		cmocka_unit_test(test_all_wait_for_a_write),
		cmocka_unit_test(test_no_read_overtakes_a_waiting_write),
		cmocka_unit_test(test_other_keys_go_on),
		cmocka_unit_test(test_capacity),
		cmocka_unit_test(test_at_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
