/* Goal: zones (sim/zones.h) speed up the search for an order of a long history, and never make its result
 * wrong.
 *
 * Method: random histories of many clients: the test runs the operations in some order and hides this order.
 * Whether values repeat, outcomes are unknown or requests are transactions, the search must never report that
 * no order exists. A planted wrong reply must be found. The hints about small histories are compared with
 * expected ones. */
#include "sim/zones.h"

#include "base/err.h"
#include "base/prng.h"
#include "sim/check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { CLIENTS = 8, OPS = 200, ROUNDS = 400, STEPS_MAX = 200000 };

/* ---- random histories ---- */

struct world {
	struct hs_prng prng;
	struct hs_sim_history history;
	struct hs_sim_state state;
	uint64_t stamp;
	int64_t spread;	  /* distance between values; 1: values repeat all the time */
	unsigned unknown; /* one request in `unknown` has an unknown outcome; 0: none has */
	/* Index of the first operation of the client's request; OPS: no request. */
	uint32_t open[CLIENTS];
	bool done[CLIENTS]; /* the client's request has run */
};

static unsigned draw(struct world *world, unsigned below)
{
	return (unsigned)hs_prng_below(&world->prng, below);
}

static struct hs_sim_op draw_op(struct world *world, uint32_t client)
{
	static const enum hs_sim_kind kinds[] = {
		HS_SIM_GET,    HS_SIM_GET,    HS_SIM_SET,    HS_SIM_SETNX,  HS_SIM_SETXX,
		HS_SIM_GETSET, HS_SIM_DEL,    HS_SIM_GETDEL, HS_SIM_INCRBY, HS_SIM_INCRBY,
		HS_SIM_INCRBY, HS_SIM_INCRBY, HS_SIM_EXISTS, HS_SIM_STRLEN,
	};
	struct hs_sim_op op = {.kind = kinds[draw(world, sizeof kinds / sizeof *kinds)],
			       .client = client,
			       .asked = world->stamp,
			       .answered = HS_SIM_NEVER};

	op.argument = op.kind == HS_SIM_INCRBY ? (int64_t)draw(world, 7) - 3
					       : world->spread * (int64_t)draw(world, 20);
	return op;
}

/* A client sends one operation, or a transaction of several. */
static void ask(struct world *world, uint32_t client)
{
	uint32_t more = draw(world, 6) == 0 ? 1 + draw(world, 2) : 0;

	world->stamp++;
	for (uint32_t i = 0; i <= more; i++) {
		struct hs_sim_op op = draw_op(world, client);
		size_t at;

		op.more = i == 0 ? more : 0;
		at = hs_sim_history_add(&world->history, &op);
		if (i == 0)
			world->open[client] = (uint32_t)at;
	}
	world->done[client] = false;
}

/* Returns the only reply that the operation can have in the current state. */
static int64_t answer_of(const struct world *world, struct hs_sim_op op)
{
	int64_t value = world->state.value;
	const int64_t guesses[] = {value, (value == HS_SIM_NOTHING ? 0 : value) + op.argument};

	op.answered = 1;
	for (size_t i = 0; i < 2; i++) {
		struct hs_sim_state state = world->state;

		op.answer = guesses[i];
		if (hs_sim_op_apply(&op, &state))
			return op.answer;
	}
	/* The reply is false, true, or a length. */
	for (op.answer = 0; op.answer < 20; op.answer++) {
		struct hs_sim_state state = world->state;

		if (hs_sim_op_apply(&op, &state))
			return op.answer;
	}
	fail();
	return 0;
}

static void run_step(struct world *world, uint32_t client)
{
	struct hs_sim_op *ops = &world->history.ops[world->open[client]];

	for (uint32_t i = 0; i <= ops->more; i++) {
		ops[i].answer = answer_of(world, ops[i]);
		hs_sim_op_apply(&ops[i], &world->state);
	}
	world->done[client] = true;
}

static void answer(struct world *world, uint32_t client)
{
	struct hs_sim_op *ops = &world->history.ops[world->open[client]];

	world->stamp++;
	for (uint32_t i = 0; i <= ops->more; i++)
		ops[i].answered = world->stamp;
	world->open[client] = OPS;
}

/* The request ends without a reply: its outcome is unknown, whether it has run or not. */
static void lose(struct world *world, uint32_t client)
{
	struct hs_sim_op *ops = &world->history.ops[world->open[client]];

	for (uint32_t i = 0; i <= ops->more; i++)
		ops[i].loose = true;
	world->open[client] = OPS;
}

static void make_history(struct world *world)
{
	world->state = (struct hs_sim_state){.value = HS_SIM_NOTHING};
	world->history.count = 0;
	for (uint32_t i = 0; i < CLIENTS; i++)
		world->open[i] = OPS;
	while (world->history.count + 3 < OPS) {
		uint32_t client = draw(world, CLIENTS);

		if (world->open[client] == OPS)
			ask(world, client);
		else if (world->unknown && draw(world, world->unknown) == 0)
			lose(world, client);
		else if (!world->done[client])
			run_step(world, client);
		else
			answer(world, client);
	}
	for (uint32_t i = 0; i < CLIENTS; i++) {
		if (world->open[i] != OPS)
			lose(world, i);
	}
}

static int check(const struct world *world)
{
	struct hs_sim_verdict verdict = {0};

	return hs_sim_check_order(&world->history, STEPS_MAX, &verdict);
}

/* ---- a possible history is never rejected ---- */

static void test_possible_histories_are_never_refuted(void **state)
{
	static const struct {
		int64_t spread;
		unsigned unknown;
	} kinds[] = {{1, 0}, {10, 0}, {1000, 0}, {1, 60}, {10, 40}, {1000, 40}};
	unsigned undecided = 0;

	(void)state;
	for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
		for (uint64_t seed = 0; seed < ROUNDS; seed++) {
			struct world world = {.spread = kinds[k].spread,
					      .unknown = kinds[k].unknown};
			int rc;

			hs_prng_init(&world.prng, 1000 * k + seed);
			make_history(&world);
			rc = check(&world);
			hs_sim_history_deinit(&world.history);
			if (rc == HS_EINVAL)
				print_message("spread %d, unknown %u, seed %u\n",
					      (int)kinds[k].spread, kinds[k].unknown,
					      (unsigned)(1000 * k + seed));
			assert_int_not_equal(rc, HS_EINVAL);
			undecided += rc == HS_ELIMIT;
		}
	}
	assert_in_range(undecided, 0, ROUNDS / 10);
}

static void test_a_wrong_answer_is_found(void **state)
{
	unsigned found = 0, tried = 0;

	(void)state;
	for (uint64_t seed = 0; seed < ROUNDS; seed++) {
		struct world world = {.spread = 1000};
		size_t at;

		hs_prng_init(&world.prng, seed);
		make_history(&world);
		at = draw(&world, (unsigned)world.history.count);
		if (world.history.ops[at].kind == HS_SIM_INCRBY) {
			/* No sequence of increments makes this value. */
			world.history.ops[at].answer += 400;
			if (world.history.ops[at].answered != HS_SIM_NEVER) {
				tried++;
				found += check(&world) == HS_EINVAL;
			}
		}
		hs_sim_history_deinit(&world.history);
	}
	assert_true(tried > ROUNDS / 10);
	assert_int_equal(found, tried);
}

/* ---- hints ---- */

static void find(const struct hs_sim_op *ops, uint32_t count, struct hs_sim_hint *hints,
		 struct hs_sim_zones *zones)
{
	const struct hs_sim_op *steps[16];

	for (uint32_t i = 0; i < count; i++)
		steps[i] = &ops[i];
	hs_sim_zones_init(zones, steps, count, hints);
}

static void test_increments_connect_values(void **state)
{
	const struct hs_sim_op ops[] = {
		{.kind = HS_SIM_SET, .argument = 10, .asked = 1, .answered = 2},
		{.kind = HS_SIM_INCRBY, .argument = 1, .answer = 11, .asked = 3, .answered = 4},
		{.kind = HS_SIM_GET, .answer = 11, .asked = 5, .answered = 6},
		{.kind = HS_SIM_GETSET, .argument = 20, .answer = 11, .asked = 7, .answered = 8},
		{.kind = HS_SIM_INCRBY, .argument = -1, .answer = 19, .asked = 9, .answered = 10},
	};
	struct hs_sim_hint hints[5];
	struct hs_sim_zones zones;

	(void)state;
	find(ops, 5, hints, &zones);
	assert_int_equal(hs_sim_zones_at(&zones, 10), hs_sim_zones_at(&zones, 11));
	assert_int_equal(hs_sim_zones_at(&zones, 19), hs_sim_zones_at(&zones, 20));
	assert_int_not_equal(hs_sim_zones_at(&zones, 11), hs_sim_zones_at(&zones, 20));
	assert_int_equal(hs_sim_zones_at(&zones, 12), HS_SIM_NO_ZONE);
	assert_int_equal(hs_sim_zones_at(&zones, HS_SIM_NOTHING), HS_SIM_NO_ZONE);

	assert_int_equal(hints[0].found, HS_SIM_NO_ZONE);
	assert_int_equal(hints[0].made, hs_sim_zones_at(&zones, 10));
	assert_int_equal(hints[3].found, hs_sim_zones_at(&zones, 10));
	assert_int_equal(hints[3].made, hs_sim_zones_at(&zones, 20));
	/* Operations that only add have the first rank, operations that fit anywhere the last. */
	assert_true(hints[1].rank < hints[3].rank);
	assert_true(hints[4].rank < hints[3].rank);
	assert_true(hints[3].rank < hints[0].rank);
	hs_sim_zones_deinit(&zones);
}

static void test_sets_ordered_by_the_reads_that_saw_them(void **state)
{
	const struct hs_sim_op ops[] = {
		{.kind = HS_SIM_SET, .argument = 10, .asked = 1, .answered = 20},
		{.kind = HS_SIM_SET, .argument = 30, .asked = 2, .answered = 21},
		{.kind = HS_SIM_GET, .answer = 30, .asked = 3, .answered = 5},
		{.kind = HS_SIM_GET, .answer = 10, .asked = 6, .answered = 7},
	};
	struct hs_sim_hint hints[4];
	struct hs_sim_zones zones;

	(void)state;
	find(ops, 4, hints, &zones);
	assert_true(hints[1].rank < hints[0].rank);
	hs_sim_zones_deinit(&zones);
}

static void test_writes_without_a_known_order(void **state)
{
	const struct hs_sim_op ops[] = {
		{.kind = HS_SIM_INCRBY, .argument = 1, .asked = 1, .answered = HS_SIM_NEVER},
		{.kind = HS_SIM_SET, .argument = 10, .asked = 1, .answered = HS_SIM_NEVER},
		{.kind = HS_SIM_DEL, .answer = 1, .asked = 2, .answered = 3},
		{.kind = HS_SIM_DEL, .answer = 1, .more = 1, .asked = 2, .answered = 3},
		{.kind = HS_SIM_INCRBY, .argument = 1, .answer = 1, .asked = 2, .answered = 3},
	};
	struct hs_sim_hint hints[4];
	struct hs_sim_zones zones;

	(void)state;
	find(ops, 4, hints, &zones);
	assert_true(hints[0].wild);
	assert_false(hints[1].wild);
	assert_int_equal(hints[1].made, hs_sim_zones_at(&zones, 10));
	assert_false(hints[2].wild);
	assert_true(hints[3].wild); /* the value after its second operation is unknown */
	hs_sim_zones_deinit(&zones);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_possible_histories_are_never_refuted),
		cmocka_unit_test(test_a_wrong_answer_is_found),
		cmocka_unit_test(test_increments_connect_values),
		cmocka_unit_test(test_sets_ordered_by_the_reads_that_saw_them),
		cmocka_unit_test(test_writes_without_a_known_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
