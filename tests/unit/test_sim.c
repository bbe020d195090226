/* Goal: the simulator's checkers accept correct histories and find wrong ones; a schedule follows from its
 * seed; correct schedules break no law, and each planted bug is found.
 *
 * Method: histories written by hand for the order, increment and heat checkers; many schedules, with and
 * without planted bugs; schedules that shrink. */
#include "base/err.h"
#include "base/slot.h"
#include "route/slot_map.h"
#include "sim/check.h"
#include "sim/load.h"
#include "sim/schedule.h"
#include "sim/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
	SCHEDULES = 1000, /* number of schedules that must all pass */
#else
	SCHEDULES = 4000,
#endif
	BUG_SCHEDULES = 500, /* a planted bug must be found within this number of schedules */
};

#define NOTHING HS_SIM_NOTHING
#define NEVER HS_SIM_NEVER

struct line {
	uint32_t client;
	enum hs_sim_kind kind;
	int64_t argument, answer;
	/* Numbers of steps; a step takes a millisecond of the virtual clock. */
	uint64_t asked, answered;
	uint32_t more;
	bool refusable, loose;
	int64_t ttl_ms;
};

static int check(const struct line *lines, size_t count)
{
	struct hs_sim_history history = {0};
	struct hs_sim_verdict verdict = {0};
	int err;

	for (size_t i = 0; i < count; i++) {
		const struct hs_sim_op op = {
			.kind = lines[i].kind,
			.client = lines[i].client,
			.argument = lines[i].argument,
			.answer = lines[i].answer,
			.asked = lines[i].asked,
			.answered = lines[i].answered,
			.asked_us = (int64_t)lines[i].asked * 1000,
			.answered_us = (int64_t)lines[i].answered * 1000,
			.more = lines[i].more,
			.refusable = lines[i].refusable,
			.loose = lines[i].loose,
			.ttl_ms = lines[i].ttl_ms,
		};

		hs_sim_history_add(&history, &op);
	}
	err = hs_sim_check_order(&history, 0, &verdict);
	assert_int_equal(verdict.law, err ? 2 : 0);
	hs_sim_history_deinit(&history);
	return err;
}

#define OP(who, what, with, got, from, to)                                                         \
	{                                                                                          \
		.client = (who), .kind = (what), .argument = (with), .answer = (got),              \
		.asked = (from), .answered = (to)                                                  \
	}
/* The first of two operations of a transaction. */
#define TX(who, what, with, got, from, to)                                                         \
	{                                                                                          \
		.client = (who), .kind = (what), .argument = (with), .answer = (got),              \
		.asked = (from), .answered = (to), .more = 1                                       \
	}
/* An operation that was never answered, and that the server may have refused. */
#define REFUSABLE(who, what, with, from)                                                           \
	{                                                                                          \
		.client = (who), .kind = (what), .argument = (with), .asked = (from),              \
		.answered = NEVER, .refusable = true                                               \
	}
/* An operation that was lost in flight: it may run at any time after its request, or never. */
#define LOOSE(who, what, with, from)                                                               \
	{                                                                                          \
		.client = (who), .kind = (what), .argument = (with), .asked = (from),              \
		.answered = NEVER, .loose = true                                                   \
	}
/* An operation that sets a time to live of `ms`. */
#define FOR(ms, who, what, with, got, from, to)                                                    \
	{                                                                                          \
		.client = (who), .kind = (what), .argument = (with), .answer = (got),              \
		.asked = (from), .answered = (to), .ttl_ms = (ms)                                  \
	}
#define GOOD(...)                                                                                  \
	assert_int_equal(check((const struct line[]){__VA_ARGS__},                                 \
			       sizeof((const struct line[]){__VA_ARGS__}) / sizeof(struct line)),  \
			 0)
#define BAD(...)                                                                                   \
	assert_int_equal(check((const struct line[]){__VA_ARGS__},                                 \
			       sizeof((const struct line[]){__VA_ARGS__}) / sizeof(struct line)),  \
			 HS_EINVAL)

static void test_orders_in_time(void **state)
{
	(void)state;
	assert_int_equal(check(NULL, 0), 0);
	/* The read follows the write, so it must see the value. */
	GOOD(OP(0, HS_SIM_SET, 5, 0, 1, 2), OP(1, HS_SIM_GET, 0, 5, 3, 4));
	BAD(OP(0, HS_SIM_SET, 5, 0, 1, 2), OP(1, HS_SIM_GET, 0, NOTHING, 3, 4));
	/* Read and write are concurrent: the read may see the value or not. */
	GOOD(OP(0, HS_SIM_SET, 5, 0, 1, 4), OP(1, HS_SIM_GET, 0, 5, 2, 3));
	GOOD(OP(0, HS_SIM_SET, 5, 0, 1, 4), OP(1, HS_SIM_GET, 0, NOTHING, 2, 3));
	/* Once a read has seen the value, a later read must see a value, too. */
	BAD(OP(0, HS_SIM_SET, 5, 0, 1, 9), OP(1, HS_SIM_GET, 0, 5, 2, 3),
	    OP(2, HS_SIM_GET, 0, NOTHING, 4, 5));
	GOOD(OP(0, HS_SIM_SET, 5, 0, 1, 9), OP(1, HS_SIM_GET, 0, NOTHING, 2, 3),
	     OP(2, HS_SIM_GET, 0, 5, 4, 5));
	/* Two clients must not see two writes in different orders. */
	BAD(OP(0, HS_SIM_SET, 5, 0, 1, 9), OP(1, HS_SIM_SET, 6, 0, 1, 9),
	    OP(2, HS_SIM_GET, 0, 5, 2, 3), OP(2, HS_SIM_GET, 0, 6, 4, 5),
	    OP(3, HS_SIM_GET, 0, 6, 2, 3), OP(3, HS_SIM_GET, 0, 5, 4, 5));
	/* A read must not see a value that no client wrote. */
	BAD(OP(0, HS_SIM_SET, 5, 0, 1, 2), OP(1, HS_SIM_GET, 0, 7, 3, 4));
}

static void test_every_kind_of_operation(void **state)
{
	(void)state;
	GOOD(OP(0, HS_SIM_SETNX, 5, 1, 1, 2), OP(0, HS_SIM_SETNX, 6, 0, 3, 4),
	     OP(0, HS_SIM_GETSET, 7, 5, 5, 6), OP(0, HS_SIM_INCRBY, 3, 10, 7, 8),
	     OP(0, HS_SIM_GETDEL, 0, 10, 9, 10), OP(0, HS_SIM_DEL, 0, 0, 11, 12),
	     OP(0, HS_SIM_INCRBY, 2, 2, 13, 14), OP(0, HS_SIM_DEL, 0, 1, 15, 16),
	     OP(0, HS_SIM_GET, 0, NOTHING, 17, 18));
	BAD(OP(0, HS_SIM_SETNX, 5, 0, 1, 2));
	BAD(OP(0, HS_SIM_INCRBY, 1, 2, 1, 2));
	BAD(OP(0, HS_SIM_DEL, 0, 1, 1, 2));
	/* Two increments must not return the same number. */
	BAD(OP(0, HS_SIM_INCRBY, 1, 1, 1, 4), OP(1, HS_SIM_INCRBY, 1, 1, 2, 3));
}

static void test_conditions_and_looks(void **state)
{
	(void)state;
	GOOD(OP(0, HS_SIM_SETXX, 5, 0, 1, 2), OP(0, HS_SIM_SETNXGET, 5, NOTHING, 3, 4),
	     OP(0, HS_SIM_SETNXGET, 6, 5, 5, 6), OP(0, HS_SIM_SETXX, 7, 1, 7, 8),
	     OP(0, HS_SIM_SETXXGET, 123, 7, 9, 10), OP(0, HS_SIM_STRLEN, 0, 3, 11, 12),
	     OP(0, HS_SIM_EXISTS, 0, 1, 13, 14), OP(0, HS_SIM_PTTL, 0, -1, 15, 16),
	     OP(0, HS_SIM_DEL, 0, 1, 17, 18), OP(0, HS_SIM_STRLEN, 0, 0, 19, 20),
	     OP(0, HS_SIM_EXISTS, 0, 0, 21, 22), OP(0, HS_SIM_TTL, 0, -2, 23, 24),
	     OP(0, HS_SIM_SETXXGET, 9, NOTHING, 25, 26), OP(0, HS_SIM_GET, 0, NOTHING, 27, 28));
	BAD(OP(0, HS_SIM_SETXX, 5, 1, 1, 2));
	BAD(OP(0, HS_SIM_SETNXGET, 5, 5, 1, 2));
	BAD(OP(0, HS_SIM_SET, 5, 0, 1, 2), OP(0, HS_SIM_STRLEN, 0, 2, 3, 4));
	BAD(OP(0, HS_SIM_SET, 5, 0, 1, 2), OP(0, HS_SIM_EXISTS, 0, 0, 3, 4));
	BAD(OP(0, HS_SIM_SET, 5, 0, 1, 2), OP(0, HS_SIM_PTTL, 0, 7, 3, 4));
}

static void test_errors_are_answers(void **state)
{
	(void)state;
	/* An increment of a text, or one that overflows, returns an error and does not change the value. */
	GOOD(OP(0, HS_SIM_SET, HS_SIM_TEXT + 12, 0, 1, 2), OP(0, HS_SIM_STRLEN, 0, 3, 3, 4),
	     OP(0, HS_SIM_INCRBY, 1, HS_SIM_NOT_INTEGER, 5, 6),
	     OP(0, HS_SIM_GETSET, INT64_MAX - 1, HS_SIM_TEXT + 12, 7, 8),
	     OP(0, HS_SIM_INCRBY, 1, INT64_MAX, 9, 10),
	     OP(0, HS_SIM_INCRBY, 1, HS_SIM_OVERFLOW, 11, 12),
	     OP(0, HS_SIM_GET, 0, INT64_MAX, 13, 14), OP(0, HS_SIM_SET, INT64_MIN, 0, 15, 16),
	     OP(0, HS_SIM_STRLEN, 0, 20, 17, 18), OP(0, HS_SIM_INCRBY, -1, HS_SIM_OVERFLOW, 19, 20),
	     OP(0, HS_SIM_INCRBY, 1, INT64_MIN + 1, 21, 22));
	BAD(OP(0, HS_SIM_SET, 5, 0, 1, 2), OP(0, HS_SIM_INCRBY, 1, HS_SIM_NOT_INTEGER, 3, 4));
	BAD(OP(0, HS_SIM_SET, 5, 0, 1, 2), OP(0, HS_SIM_INCRBY, 1, HS_SIM_OVERFLOW, 3, 4));
	BAD(OP(0, HS_SIM_SET, INT64_MAX, 0, 1, 2), OP(0, HS_SIM_INCRBY, 1, INT64_MIN, 3, 4));
	BAD(OP(0, HS_SIM_SET, HS_SIM_TEXT + 12, 0, 1, 2), OP(0, HS_SIM_INCRBY, 1, 1, 3, 4));
}

static void test_keys_that_expire(void **state)
{
	(void)state;
	/* A client sets the key between 10 and 12, for 5 ms: the key certainly exists at 15, and has certainly
	 * expired at 18. */
	GOOD(FOR(5, 0, HS_SIM_SET, 7, 0, 10, 12), OP(1, HS_SIM_GET, 0, 7, 15, 15));
	BAD(FOR(5, 0, HS_SIM_SET, 7, 0, 10, 12), OP(1, HS_SIM_GET, 0, NOTHING, 15, 15));
	GOOD(FOR(5, 0, HS_SIM_SET, 7, 0, 10, 12), OP(1, HS_SIM_GET, 0, NOTHING, 18, 18));
	BAD(FOR(5, 0, HS_SIM_SET, 7, 0, 10, 12), OP(1, HS_SIM_GET, 0, 7, 18, 18));
	/* Between 15 and 18 both are possible, but an expired key stays expired. */
	GOOD(FOR(5, 0, HS_SIM_SET, 7, 0, 10, 12), OP(1, HS_SIM_GET, 0, 7, 16, 16),
	     OP(1, HS_SIM_GET, 0, NOTHING, 17, 17));
	BAD(FOR(5, 0, HS_SIM_SET, 7, 0, 10, 12), OP(1, HS_SIM_GET, 0, NOTHING, 16, 16),
	    OP(1, HS_SIM_GET, 0, 7, 17, 17));
	/* An increment does not change the time to live; a SET removes it. */
	BAD(FOR(5, 0, HS_SIM_SET, 7, 0, 10, 12), OP(0, HS_SIM_INCRBY, 1, 8, 13, 13),
	    OP(1, HS_SIM_GET, 0, 8, 18, 18));
	GOOD(FOR(5, 0, HS_SIM_SET, 7, 0, 10, 12), OP(0, HS_SIM_SET, 8, 0, 13, 13),
	     OP(1, HS_SIM_GET, 0, 8, 18, 18));
	GOOD(FOR(5, 0, HS_SIM_SET, 7, 0, 10, 12), OP(0, HS_SIM_PERSIST, 0, 1, 13, 13),
	     OP(1, HS_SIM_GET, 0, 7, 18, 18));
	GOOD(OP(0, HS_SIM_SET, 7, 0, 1, 2), FOR(5, 0, HS_SIM_PEXPIRE, 0, 1, 10, 12),
	     OP(1, HS_SIM_SETNX, 8, 1, 18, 18), OP(1, HS_SIM_GET, 0, 8, 19, 19));
	BAD(OP(0, HS_SIM_SET, 7, 0, 1, 2), FOR(5, 0, HS_SIM_PEXPIRE, 0, 1, 10, 12),
	    OP(1, HS_SIM_SETNX, 8, 1, 15, 15));
	/* PTTL and TTL must return a remaining time that is possible. */
	GOOD(FOR(5, 0, HS_SIM_SET, 7, 0, 10, 12), OP(1, HS_SIM_PTTL, 0, 2, 13, 14));
	GOOD(FOR(5, 0, HS_SIM_SET, 7, 0, 10, 12), OP(1, HS_SIM_PTTL, 0, 4, 13, 14));
	BAD(FOR(5, 0, HS_SIM_SET, 7, 0, 10, 12), OP(1, HS_SIM_PTTL, 0, 0, 13, 14));
	BAD(FOR(5, 0, HS_SIM_SET, 7, 0, 10, 12), OP(1, HS_SIM_PTTL, 0, 5, 13, 14));
	BAD(FOR(5, 0, HS_SIM_SET, 7, 0, 10, 12), OP(1, HS_SIM_PTTL, 0, -1, 13, 14));
	GOOD(FOR(1600, 0, HS_SIM_SET, 7, 0, 10, 12), OP(1, HS_SIM_TTL, 0, 2, 13, 14));
	/* The outcome of the SET is unknown: nothing is known about when it ran, nor whether it ran. */
	GOOD((struct line){.kind = HS_SIM_SET,
			   .argument = 7,
			   .ttl_ms = 5,
			   .asked = 10,
			   .answered = NEVER,
			   .loose = true},
	     OP(1, HS_SIM_GET, 0, 7, 90, 91), OP(1, HS_SIM_GET, 0, NOTHING, 92, 93));
	BAD((struct line){.kind = HS_SIM_SET,
			  .argument = 7,
			  .ttl_ms = 5,
			  .asked = 10,
			  .answered = NEVER,
			  .loose = true},
	    OP(1, HS_SIM_GET, 0, 7, 11, 12), OP(1, HS_SIM_GET, 0, NOTHING, 13, 14));
}

static void test_a_pipelining_client_keeps_its_order(void **state)
{
	(void)state;
	/* Requests of one client that are in flight together run in the order of the requests. */
	GOOD(OP(0, HS_SIM_SET, 5, 0, 1, 8), OP(0, HS_SIM_GET, 0, 5, 1, 8));
	BAD(OP(0, HS_SIM_SET, 5, 0, 1, 8), OP(0, HS_SIM_GET, 0, NOTHING, 1, 8));
	BAD(OP(0, HS_SIM_GET, 0, 5, 1, 8), OP(0, HS_SIM_SET, 5, 0, 1, 8));
	/* Requests of other clients may run in between. */
	GOOD(OP(0, HS_SIM_SET, 5, 0, 1, 8), OP(1, HS_SIM_DEL, 0, 1, 1, 8),
	     OP(0, HS_SIM_GET, 0, NOTHING, 1, 8));
}

static void test_unknown_outcomes(void **state)
{
	(void)state;
	/* A SET with unknown outcome may have run early, late, or never. */
	GOOD(OP(0, HS_SIM_SET, 5, 0, 1, NEVER), OP(1, HS_SIM_GET, 0, 5, 3, 4));
	GOOD(OP(0, HS_SIM_SET, 5, 0, 1, NEVER), OP(1, HS_SIM_GET, 0, NOTHING, 3, 4));
	GOOD(OP(0, HS_SIM_SET, 5, 0, 1, NEVER), OP(1, HS_SIM_GET, 0, NOTHING, 3, 4),
	     OP(1, HS_SIM_GET, 0, 5, 5, 6));
	/* A write with unknown outcome must not run before its request, and runs at most once. */
	BAD(OP(1, HS_SIM_GET, 0, 5, 1, 2), OP(0, HS_SIM_SET, 5, 0, 3, NEVER));
	BAD(OP(0, HS_SIM_INCRBY, 1, 0, 1, NEVER), OP(1, HS_SIM_GET, 0, 1, 3, 4),
	    OP(1, HS_SIM_GET, 0, 2, 5, 6));
	/* The client's second request ran, so the first one ran before it. */
	BAD(OP(0, HS_SIM_SET, 5, 0, 1, NEVER), OP(0, HS_SIM_INCRBY, 1, 0, 1, NEVER),
	    OP(1, HS_SIM_GET, 0, 1, 3, 4));
	/* The server may have refused the first request, so it need not have run; but it must not run after the
	 * second. */
	GOOD(REFUSABLE(0, HS_SIM_SET, 5, 1), OP(0, HS_SIM_INCRBY, 1, 0, 1, NEVER),
	     OP(1, HS_SIM_GET, 0, 1, 3, 4));
	BAD(REFUSABLE(0, HS_SIM_SET, 5, 1), OP(0, HS_SIM_INCRBY, 1, 0, 1, NEVER),
	    OP(1, HS_SIM_GET, 0, 1, 3, 4), OP(1, HS_SIM_GET, 0, 5, 5, 6));
}

static void test_lost_operations(void **state)
{
	(void)state;
	/* An operation that was lost in flight may run after later requests of its client. */
	GOOD(LOOSE(0, HS_SIM_SET, 5, 1), OP(0, HS_SIM_SET, 6, 0, 3, 4),
	     OP(0, HS_SIM_GET, 0, 6, 5, 6), OP(0, HS_SIM_GET, 0, 5, 7, 8));
	GOOD(LOOSE(0, HS_SIM_SET, 5, 1), OP(0, HS_SIM_SET, 6, 0, 3, 4),
	     OP(0, HS_SIM_GET, 0, 6, 5, 6));
	/* A lost operation must not run before its request, and must not run twice. */
	BAD(OP(0, HS_SIM_SET, 6, 0, 1, 9), LOOSE(0, HS_SIM_SET, 5, 1),
	    OP(1, HS_SIM_GET, 0, 5, 2, 3), OP(1, HS_SIM_GET, 0, 6, 4, 5));
	BAD(LOOSE(0, HS_SIM_INCRBY, 1, 1), OP(1, HS_SIM_GET, 0, 1, 3, 4),
	    OP(1, HS_SIM_GET, 0, 2, 5, 6));
	/* Several lost operations that are equal: each runs at most once, and only after its request. */
	GOOD(LOOSE(0, HS_SIM_INCRBY, 1, 1), LOOSE(2, HS_SIM_INCRBY, 1, 2),
	     LOOSE(3, HS_SIM_INCRBY, 1, 7), OP(1, HS_SIM_GET, 0, 2, 3, 4),
	     OP(1, HS_SIM_GET, 0, 3, 8, 9));
	BAD(LOOSE(0, HS_SIM_INCRBY, 1, 1), LOOSE(2, HS_SIM_INCRBY, 1, 7),
	    OP(1, HS_SIM_GET, 0, 2, 3, 4));
	/* A refused operation must have no effect. */
	BAD(OP(0, HS_SIM_NONE, 5, 0, 1, 2), OP(1, HS_SIM_GET, 0, 5, 3, 4));
	GOOD(OP(0, HS_SIM_NONE, 5, 0, 1, NEVER), OP(1, HS_SIM_GET, 0, NOTHING, 3, 4));
}

static void test_transactions_are_one_step(void **state)
{
	(void)state;
	GOOD(TX(0, HS_SIM_SET, 5, 0, 1, 8), OP(0, HS_SIM_INCRBY, 1, 6, 1, 8),
	     OP(1, HS_SIM_GET, 0, 6, 1, 8));
	/* A transaction is atomic: no client sees its intermediate state, and no other operation runs inside
	 * it. */
	BAD(TX(0, HS_SIM_SET, 5, 0, 1, 8), OP(0, HS_SIM_INCRBY, 1, 6, 1, 8),
	    OP(1, HS_SIM_GET, 0, 5, 1, 8));
	BAD(TX(0, HS_SIM_SET, 5, 0, 1, 8), OP(0, HS_SIM_GET, 0, 7, 1, 8),
	    OP(1, HS_SIM_SET, 7, 0, 1, 8));
}

static void test_sums(void **state)
{
	struct hs_sim_history history = {0};
	struct hs_sim_verdict verdict;
	struct hs_sim_op op = {.kind = HS_SIM_INCRBY, .argument = 1, .answered = 9};

	(void)state;
	for (op.answer = 1; op.answer <= 3; op.answer++)
		hs_sim_history_add(&history, &op);
	op.answered = NEVER;
	hs_sim_history_add(&history, &op);
	for (int64_t final = 0; final < 7; final++) {
		verdict = (struct hs_sim_verdict){0};
		assert_int_equal(hs_sim_check_increments(&history, 0, final, false, &verdict),
				 final == 3 || final == 4 ? 0 : HS_EINVAL);
		assert_int_equal(verdict.law, final == 3 || final == 4 ? 0 : 4);
	}
	/* If writes may be lost, the final number may be lower than the number of increments, but not higher. */
	for (int64_t final = 0; final < 7; final++)
		assert_int_equal(hs_sim_check_increments(&history, 0, final, true, &verdict),
				 final <= 4 ? 0 : HS_EINVAL);
	history.ops[1].answer = 1; /* two increments return the same number */
	verdict = (struct hs_sim_verdict){0};
	assert_int_equal(hs_sim_check_increments(&history, 0, 3, false, &verdict), HS_EINVAL);
	assert_int_equal(hs_sim_check_increments(&history, 0, 3, true, &verdict), 0);
	history.ops[1].answer = 5; /* higher than the sum of all increments */
	assert_int_equal(hs_sim_check_increments(&history, 0, 3, true, &verdict), HS_EINVAL);
	hs_sim_history_deinit(&history);
}

/* --- heat --- */

enum { HEAT_WORKERS = 2, HEAT_PARTITIONS = 4, HEAT_KEYS = 3, HEAT_START_US = 1000000 };

/* The heat counters of two workers, and the accesses of clients that the checker compares with the counters. */
struct warmth {
	struct hs_heat *heats[HEAT_WORKERS];
	struct hs_sim_accesses accesses;
	uint64_t now_us;
};

static struct warmth warmth_begin(void)
{
	const struct hs_heat_options options = {
		.seed = 1, .partitions = HEAT_PARTITIONS, .key_sets = 4};
	struct warmth warmth = {.now_us = HEAT_START_US};

	for (int i = 0; i < HEAT_WORKERS; i++) {
		warmth.heats[i] = hs_heat_create(&options);
		hs_heat_now(warmth.heats[i], HEAT_START_US);
	}
	return warmth;
}

static void pass(struct warmth *warmth, uint64_t us)
{
	warmth->now_us += us;
	for (int i = 0; i < HEAT_WORKERS; i++)
		hs_heat_now(warmth->heats[i], warmth->now_us);
}

/* Records the access of a client; with `answered`, its reply comes half a millisecond later. */
static void ask(struct warmth *warmth, uint32_t key, bool write, bool answered)
{
	const struct hs_sim_access access = {
		.key = key,
		.write = write,
		.asked_us = warmth->now_us,
		.answered_us = answered ? warmth->now_us + 500 : NEVER,
	};

	hs_sim_accesses_add(&warmth->accesses, &access);
	pass(warmth, 500);
}

static void count(struct warmth *warmth, uint32_t worker, uint32_t key, bool write)
{
	char name[16];
	struct hs_heat_access access = {.key = {name, 0}, .bytes = 10, .write = write};

	access.key.len = (size_t)snprintf(name, sizeof name, "key%u", key);
	access.slot = hs_slot_of(access.key);
	access.partition = hs_slot_partition(access.slot, HEAT_PARTITIONS);
	hs_heat_add(warmth->heats[worker], &access, 1000);
}

/* Returns the checker's result; the text of an error must contain `focus`. `others` is the upper bound of
 * reads, and of writes, by unrecorded clients. */
static int warmth_end_beside(struct warmth *warmth, uint64_t others, const char *focus)
{
	const struct hs_sim_heats heats = {
		.heats = warmth->heats,
		.count = HEAT_WORKERS,
		.partitions = HEAT_PARTITIONS,
		.others = {others, others},
		.start_us = HEAT_START_US,
		.now_us = warmth->now_us,
	};
	struct hs_sim_verdict verdict = {0};
	int err = hs_sim_check_heat(&warmth->accesses, &heats, HEAT_KEYS, &verdict);

	assert_int_equal(verdict.law, err ? HS_SIM_LAW_HEAT : 0);
	if (err && !strstr(verdict.text, focus))
		fail_msg("\"%s\" does not speak of %s", verdict.text, focus);
	hs_sim_accesses_deinit(&warmth->accesses);
	for (int i = 0; i < HEAT_WORKERS; i++)
		hs_heat_destroy(&warmth->heats[i]);
	return err;
}

static int warmth_end(struct warmth *warmth, const char *focus)
{
	return warmth_end_beside(warmth, 0, focus);
}

/* Requests that are all counted, then half a second without requests. */
static struct warmth warm_up(void)
{
	struct warmth warmth = warmth_begin();

	for (uint32_t i = 0; i < 300; i++) {
		ask(&warmth, i % HEAT_KEYS, i % 4 == 0, true);
		count(&warmth, i % HEAT_WORKERS, i % HEAT_KEYS, i % 4 == 0);
	}
	pass(&warmth, 500000);
	return warmth;
}

static void test_heat_that_is_right(void **state)
{
	struct warmth warmth = warmth_begin();

	(void)state;
	assert_int_equal(warmth_end(&warmth, ""), 0);
	warmth = warm_up();
	assert_int_equal(warmth_end(&warmth, ""), 0);
	/* An access without an answer may be counted or not. */
	warmth = warm_up();
	ask(&warmth, 1, true, false);
	ask(&warmth, 2, false, false);
	count(&warmth, 0, 2, false);
	assert_int_equal(warmth_end(&warmth, ""), 0);
	warmth = warm_up();
	ask(&warmth, HS_SIM_NO_KEY, false, true);
	for (uint32_t id = 0; id < HEAT_PARTITIONS; id++)
		hs_heat_add_keyless(warmth.heats[0], (uint16_t)id, false, false, 10, 1000);
	assert_int_equal(warmth_end(&warmth, ""), 0);
}

static void test_heat_that_is_wrong(void **state)
{
	struct warmth warmth = warm_up();
	struct hs_heat_access access = {.key = HS_LIT("key1")};

	(void)state;
	count(&warmth, 0, 1, false); /* a read is counted that no client sent */
	assert_int_equal(warmth_end(&warmth, "reads"), HS_EINVAL);
	warmth = warm_up();
	ask(&warmth, 1, true, true); /* a write is not counted */
	assert_int_equal(warmth_end(&warmth, "writes"), HS_EINVAL);
	warmth = warm_up();
	ask(&warmth, 1, true, false); /* an unanswered write is counted twice */
	count(&warmth, 0, 1, true);
	count(&warmth, 1, 1, true);
	assert_int_equal(warmth_end(&warmth, "writes"), HS_EINVAL);
	warmth = warm_up();
	ask(&warmth, 1, true, true); /* a write is counted as a read */
	count(&warmth, 0, 1, false);
	assert_int_equal(warmth_end(&warmth, "partition"), HS_EINVAL);
	warmth = warm_up();
	/* A keyless access is counted at one partition instead of all. */
	ask(&warmth, HS_SIM_NO_KEY, false, true);
	hs_heat_add_keyless(warmth.heats[0], 1, false, false, 10, 1000);
	assert_int_equal(warmth_end(&warmth, "partition 0"), HS_EINVAL);
	warmth = warm_up();
	hs_heat_inflight(warmth.heats[1], 2, 1);
	assert_int_equal(warmth_end(&warmth, "in flight"), HS_EINVAL);
	/* A read of key0 is counted for key1, at the partition of key0. */
	warmth = warm_up();
	ask(&warmth, 0, false, true);
	access.partition = hs_slot_partition(hs_slot_of(HS_LIT("key0")), HEAT_PARTITIONS);
	hs_heat_add(warmth.heats[0], &access, 1000);
	assert_int_equal(warmth_end(&warmth, "key0"), HS_EINVAL);
	/* The access is counted once, but a second too late for the short window. */
	warmth = warmth_begin();
	ask(&warmth, 1, false, true);
	pass(&warmth, 1000000);
	count(&warmth, 0, 1, false);
	assert_int_equal(warmth_end(&warmth, "short"), HS_EINVAL);
}

/* An unrecorded client reads and writes a key. */
static void test_heat_of_unrecorded_clients(void **state)
{
	(void)state;
	for (int times = 0; times <= 2; times++) {
		struct warmth warmth = warm_up();

		for (int i = 0; i < times; i++) {
			count(&warmth, 0, HEAT_KEYS, false);
			count(&warmth, 1, HEAT_KEYS, true);
		}
		assert_int_equal(warmth_end_beside(&warmth, 1, "of unrecorded clients"),
				 times <= 1 ? 0 : HS_EINVAL);
	}
}

static void test_events_run_in_order(void **state)
{
	struct hs_sim_events events = {0};
	struct hs_sim_event event = {0};
	struct hs_prng prng;
	uint64_t at = 0, order = 0;

	(void)state;
	assert_false(hs_sim_events_take(&events, &event));
	hs_prng_init(&prng, 2);
	for (int i = 0; i < 1000; i++)
		hs_sim_events_plan(&events,
				   (struct hs_sim_event){.at_us = hs_prng_below(&prng, 50)});
	for (int i = 0; i < 1000; i++) {
		assert_true(hs_sim_events_take(&events, &event));
		assert_true(event.at_us > at || (event.at_us == at && event.order >= order));
		at = event.at_us;
		order = event.order;
	}
	assert_int_equal(hs_sim_events_next_us(&events), UINT64_MAX);
	hs_sim_events_deinit(&events);
}

/* --- whole schedules --- */

/* Schedules must not only plan each of these faults: the fault must really happen. */
static const struct {
	enum hs_sim_coverage what;
	uint64_t anything, fleet; /* once in this number of schedules, on average */
} reaches[] = {
	{HS_SIM_COVERAGE_MOVES, 5, 5},	       {HS_SIM_COVERAGE_MOVED, 8, 4},
	{HS_SIM_COVERAGE_ASK, 20, 16},	       {HS_SIM_COVERAGE_TRYAGAIN, 40, 25},
	{HS_SIM_COVERAGE_CLUSTERDOWN, 40, 12}, {HS_SIM_COVERAGE_FAILOVERS, 8, 4},
	{HS_SIM_COVERAGE_TAKEOVERS, 60, 30},   {HS_SIM_COVERAGE_EMPTY, 2000, 400},
	{HS_SIM_COVERAGE_LOST, 200, 60},       {HS_SIM_COVERAGE_DEATHS, 8, 2},
	{HS_SIM_COVERAGE_BESIDE_FAULT, 16, 8}, {HS_SIM_COVERAGE_CUT, 10, 10},
	{HS_SIM_COVERAGE_HELD, 10, 10},	       {HS_SIM_COVERAGE_HOT_TABLE_FULL, 10, 10},
};

static void add_counts(struct hs_sim_coverage_counts *sums,
		       const struct hs_sim_coverage_counts *counts)
{
	for (int i = 0; i < HS_SIM_COVERAGE_ALL; i++)
		sums->of[i] += counts->of[i];
}

static void assert_reached(const struct hs_sim_coverage_counts *sums, uint64_t schedules,
			   bool fleet)
{
	for (size_t i = 0; i < sizeof reaches / sizeof *reaches; i++) {
		uint64_t one_in = fleet ? reaches[i].fleet : reaches[i].anything;
		uint64_t count = sums->of[reaches[i].what];

		print_message("%llu %s\n", (unsigned long long)count,
			      hs_sim_coverage_name(reaches[i].what));
		if (count * one_in < schedules)
			fail_msg("%llu %s in %llu schedules, expected one in %llu",
				 (unsigned long long)count, hs_sim_coverage_name(reaches[i].what),
				 (unsigned long long)schedules, (unsigned long long)one_in);
	}
}

static void run_all(enum hs_sim_focus focus, uint64_t schedules)
{
	struct hs_sim_coverage_counts coverage = {0};
	struct hs_sim_runner runner;
	uint64_t requests = 0, folded = 0;

	hs_sim_runner_init(&runner, HS_SIM_NO_BUG);
	runner.focus = focus;
	for (uint64_t seed = 1; seed <= schedules; seed++) {
		struct hs_sim_result result;
		int err = hs_sim_check(&runner, seed, &result);

		if (err)
			print_error("%.*s", (int)result.text.len, result.text.data);
		assert_int_equal(err, 0);
		requests += result.requests;
		folded += result.folded;
		add_counts(&coverage, &result.coverage);
		hs_buf_deinit(&result.text);
	}
	hs_sim_runner_deinit(&runner);
	print_message("%llu requests, %llu of them folded\n", (unsigned long long)requests,
		      (unsigned long long)folded);
	assert_true(requests > schedules * 20);
	assert_true(folded > (focus == HS_SIM_FOCUS_FLEET ? schedules / 2 : schedules));
	assert_reached(&coverage, schedules, focus == HS_SIM_FOCUS_FLEET);
	/* The order checker may leave out only few keys. */
	assert_true(coverage.of[HS_SIM_COVERAGE_TAINTED] <= schedules / 100);
}

static void test_every_law_holds(void **state)
{
	(void)state;
	run_all(HS_SIM_FOCUS_ANYTHING, SCHEDULES);
}

static void test_every_law_holds_of_a_fleet(void **state)
{
	(void)state;
	run_all(HS_SIM_FOCUS_FLEET, SCHEDULES / 2);
}

/* Returns the seed of the first schedule that finds the bug; 0: none of them does. */
static uint64_t find_bug(enum hs_sim_bug bug, int *law)
{
	struct hs_sim_runner runner;
	uint64_t found = 0;

	hs_sim_runner_init(&runner, bug);
	for (uint64_t seed = 1; seed <= BUG_SCHEDULES && found == 0; seed++) {
		struct hs_sim_result result;
		int err = hs_sim_check(&runner, seed, &result);

		*law = result.verdict.law;
		if (err == HS_EINVAL && result.text.len > 0)
			found = seed;
		hs_buf_deinit(&result.text);
	}
	hs_sim_runner_deinit(&runner);
	return found;
}

static void test_planted_bugs_are_found(void **state)
{
	(void)state;
	for (int i = HS_SIM_NO_BUG + 1; i < HS_SIM_BUGS; i++) {
		enum hs_sim_bug bug = (enum hs_sim_bug)i;
		uint64_t seed;
		int law;

		if (hs_sim_bug_where(bug) == HS_SIM_IN_RULES)
			continue; /* tested in test_sim_stale.c */
		if (bug == HS_SIM_ASSERTION_FAILS)
			continue; /* tested in tests/integration/test_sim.py */
		seed = find_bug(bug, &law);
		if (seed == 0)
			fail_msg("%s was not found", hs_sim_bug_name(bug));
		print_message("%s: found by schedule %llu\n", hs_sim_bug_name(bug),
			      (unsigned long long)seed);
		if (!hs_sim_bug_breaks(bug, law))
			fail_msg("%s breaks law %d", hs_sim_bug_name(bug), law);
		assert_int_equal(hs_sim_bug_find(hs_sim_bug_name(bug)), bug);
	}
}

/* Returns whether one of the first schedules of this kind finds the bug, by a checker whose verdict contains
 * `words`. */
static bool is_found_by(enum hs_sim_bug bug, enum hs_sim_focus focus, bool cluster,
			const char *words)
{
	struct hs_sim_runner runner;
	bool found = false;

	hs_sim_runner_init(&runner, bug);
	for (uint64_t seed = 1; seed <= BUG_SCHEDULES && !found; seed++) {
		struct hs_sim_result result;
		struct hs_sim_plan plan;

		hs_sim_plan_draw(&plan, seed, bug, focus);
		if (!plan.world.servers.on || plan.world.servers.cluster != cluster)
			continue;
		found = hs_sim_check_plan(&runner, &plan, &result) == HS_EINVAL &&
			strstr(result.verdict.text, words);
		hs_buf_deinit(&result.text);
	}
	hs_sim_runner_deinit(&runner);
	return found;
}

static void assert_found_by(enum hs_sim_bug bug, enum hs_sim_focus focus, bool cluster,
			    const char *words)
{
	if (!is_found_by(bug, focus, cluster, words))
		fail_msg("%s: no verdict says \"%s\"", hs_sim_bug_name(bug), words);
}

/* Bugs that any engine shows are also found in front of servers, and by checkers of more than replies. */
static void test_bugs_are_found_in_front_of_servers(void **state)
{
	(void)state;
	for (int cluster = 0; cluster < 2; cluster++) {
		assert_found_by(HS_SIM_OVERTAKE, HS_SIM_FOCUS_ANYTHING, cluster,
				"ran in partition");
		assert_found_by(HS_SIM_DROP_ORDER, HS_SIM_FOCUS_ANYTHING, cluster,
				"ran in partition");
		assert_found_by(HS_SIM_COUNT_TWICE, HS_SIM_FOCUS_ANYTHING, cluster,
				"were answered");
		assert_found_by(HS_SIM_COUNT_NEVER, HS_SIM_FOCUS_ANYTHING, cluster,
				"were answered");
	}
	assert_found_by(HS_SIM_REDIRECT_OVERTAKES, HS_SIM_FOCUS_ANYTHING, true, "ran in partition");
}

/* Several checkers find each of these bugs: a row names the words of one checker. */
static void test_bugs_are_found_by_their_checkers(void **state)
{
	(void)state;
	for (int cluster = 0; cluster < 2; cluster++) {
		assert_found_by(HS_SIM_WATCH_REUSED, HS_SIM_FOCUS_ANYTHING, cluster,
				"lost its EXEC");
		assert_found_by(HS_SIM_WRITE_RESENT, HS_SIM_FOCUS_ANYTHING, cluster,
				"was run twice");
		assert_found_by(HS_SIM_OUTPUT_UNLIMITED, HS_SIM_FOCUS_ANYTHING, cluster,
				"bytes unsent");
		assert_found_by(HS_SIM_PIPELINE_UNLIMITED, HS_SIM_FOCUS_ANYTHING, cluster,
				"in flight");
		assert_found_by(HS_SIM_HOT_UNLIMITED, HS_SIM_FOCUS_ANYTHING, cluster,
				"hot keys, with");
		assert_found_by(HS_SIM_MSET_RESENT, HS_SIM_FOCUS_ANYTHING, cluster, "MSET");
		assert_found_by(HS_SIM_UNKNOWN_RESENT, HS_SIM_FOCUS_ANYTHING, cluster, "X.");
		assert_found_by(HS_SIM_VALUE_LEFT, HS_SIM_FOCUS_ANYTHING, cluster,
				"the last read saw");
	}
}

/* The checkers also find wrong answers to clients that use CLIENT TRACKING. */
static void test_bugs_are_found_among_tracking_clients(void **state)
{
	static const struct {
		enum hs_sim_bug bug;
		bool cluster;
		const char *words;
	} found[] = {
		{HS_SIM_WRITE_RESENT, true, "was run twice"},
		{HS_SIM_EXEC_RESENT, true, "was run twice"},
		{HS_SIM_STALE_MAP_WRITE, true, "no order of the operations"},
		{HS_SIM_STALE_MAP_READ, true, "no order of the operations"},
		{HS_SIM_REFUSED_BUT_RUN, true, "no order of the operations"},
		{HS_SIM_ERROR_AS_MISSING, true, "no order of the operations"},
		{HS_SIM_REDIRECT_OVERTAKES, true, "ran in partition"},
		{HS_SIM_OVERTAKE, false, "ran in partition"},
		{HS_SIM_DROP_ORDER, true, "ran in partition"},
		{HS_SIM_COUNT_TWICE, true, "were answered"},
		{HS_SIM_HALF_REPLY_REUSED, true, "is no answer to its request"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof found / sizeof *found; i++)
		assert_found_by(found[i].bug, HS_SIM_FOCUS_TRACKING, found[i].cluster,
				found[i].words);
}

/* Returns whether companions find the bug in a schedule that was drawn without the bug, in front of a Cluster
 * with faults. */
static bool is_found_by_companions(enum hs_sim_bug bug, const char *words)
{
	struct hs_sim_runner runner;
	bool heard = false;

	hs_sim_runner_init(&runner, bug);
	for (uint64_t seed = 1; seed <= SCHEDULES && !heard; seed++) {
		struct hs_sim_result result;
		struct hs_sim_plan plan;

		hs_sim_plan_draw(&plan, seed, HS_SIM_NO_BUG, HS_SIM_FOCUS_FLEET);
		if (plan.load.companions.subscribers == 0 || !plan.load.companions.faults)
			continue;
		plan.world.engine.bug = bug;
		heard = hs_sim_check_plan(&runner, &plan, &result) == HS_EINVAL &&
			strstr(result.verdict.text, words);
		hs_buf_deinit(&result.text);
	}
	hs_sim_runner_deinit(&runner);
	return heard;
}

static void test_messages_are_checked_in_front_of_a_faulty_cluster(void **state)
{
	(void)state;
	assert_true(is_found_by_companions(HS_SIM_MESSAGE_TWICE, "gets a message twice"));
	assert_true(is_found_by_companions(HS_SIM_MESSAGE_OVERTAKES,
					   "gets a message behind a later one"));
}

static void test_the_same_seed_is_the_same_schedule(void **state)
{
	struct hs_sim_runner runner;

	(void)state;
	hs_sim_runner_init(&runner, HS_SIM_RESEND_LOST);
	for (uint64_t seed = 1; seed <= 50; seed++) {
		struct hs_sim_result a, b;

		assert_int_equal(hs_sim_check(&runner, seed, &a), hs_sim_check(&runner, seed, &b));
		assert_int_equal(a.steps, b.steps);
		assert_int_equal(a.requests, b.requests);
		assert_true(hs_bytes_equal(hs_buf_bytes(&a.text), hs_buf_bytes(&b.text)));
		hs_buf_deinit(&a.text);
		hs_buf_deinit(&b.text);
	}
	hs_sim_runner_deinit(&runner);
}

static size_t count_lines(const struct hs_buf *text)
{
	size_t lines = 0;

	for (size_t i = 0; i < text->len; i++)
		lines += text->data[i] == '\n';
	return lines;
}

/* A schedule that breaks a law shrinks to a shorter one that breaks the same law, within a limit of tries. */
static void test_schedules_shrink(void **state)
{
	static const enum hs_sim_bug mistakes[] = {HS_SIM_JOINS_READ_IN_FLIGHT, HS_SIM_RESEND_LOST,
						   HS_SIM_RUN_TWICE, HS_SIM_INVALIDATION_LOST};

	(void)state;
	for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
		struct hs_sim_result whole, less;
		struct hs_sim_runner runner;
		struct hs_sim_plan plan;
		int law;
		uint64_t seed = find_bug(mistakes[i], &law);
		uint32_t tries;

		hs_sim_runner_init(&runner, mistakes[i]);
		assert_int_equal(hs_sim_check(&runner, seed, &whole), HS_EINVAL);
		tries = hs_sim_shrink(&runner, seed, 800, hs_sim_check_plan, &plan);
		assert_in_range(tries, 1, 800);
		plan.world.script = true;
		assert_int_equal(hs_sim_check_plan(&runner, &plan, &less), HS_EINVAL);
		assert_int_equal(less.verdict.law, law);
		assert_true(less.script.len > 0);
		assert_true(less.requests < whole.requests);
		assert_true(count_lines(&less.text) <= count_lines(&whole.text));
		hs_buf_deinit(&whole.text);
		hs_buf_deinit(&less.text);
		hs_buf_deinit(&less.script);
		hs_sim_runner_deinit(&runner);
	}
}

/* A larger load than schedules have: many clients on few keys, which makes the search for an order hard. */
static void test_a_larger_load(void **state)
{
	const struct hs_sim_load_options load_options = {
		.clients = 12,
		.requests = 60,
		.depth_max = 8,
		.registers = 3,
		.counters = 1,
		.hang_ups = true,
	};

	(void)state;
	for (uint64_t seed = 1; seed <= 10; seed++) {
		struct hs_sim_world_options options = hs_sim_world_defaults(seed);
		struct hs_sim_verdict verdict = {0};
		struct hs_sim_world *world;
		struct hs_sim_load *load;

		options.workers = 3;
		world = hs_sim_world_create(&options);
		load = hs_sim_load_create(&load_options, world);
		hs_sim_world_settle(world);
		assert_int_equal(hs_sim_load_check(load, &verdict), 0);
		assert_true(hs_sim_load_requests(load) > 700);
		hs_sim_world_destroy(&world);
		hs_sim_load_destroy(&load);
	}
}

/* With a low output limit heatsink disconnects clients that do not read: their requests have unknown outcomes,
 * and all laws hold. */
static void test_clients_cut_off(void **state)
{
	const struct hs_sim_load_options load_options = {
		.clients = 4,
		.requests = 40,
		.depth_max = 8,
		.registers = 2,
		.counters = 1,
		.cuts = true,
	};
	uint64_t cut = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct hs_sim_world_options options = hs_sim_world_defaults(seed);
		struct hs_sim_verdict verdict = {0};
		struct hs_sim_world *world;
		struct hs_sim_load *load;

		options.core.output_bytes_max = 60;
		world = hs_sim_world_create(&options);
		load = hs_sim_load_create(&load_options, world);
		hs_sim_world_settle(world);
		assert_int_equal(hs_sim_load_check(load, &verdict), 0);
		cut += hs_counter_get(&hs_core_stats(hs_sim_world_core(world, 0))->cut_output);
		hs_sim_world_destroy(&world);
		hs_sim_load_destroy(&load);
	}
	assert_true(cut > 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_orders_in_time),
		cmocka_unit_test(test_every_kind_of_operation),
		cmocka_unit_test(test_conditions_and_looks),
		cmocka_unit_test(test_errors_are_answers),
		cmocka_unit_test(test_keys_that_expire),
		cmocka_unit_test(test_a_pipelining_client_keeps_its_order),
		cmocka_unit_test(test_unknown_outcomes),
		cmocka_unit_test(test_lost_operations),
		cmocka_unit_test(test_transactions_are_one_step),
		cmocka_unit_test(test_sums),
		cmocka_unit_test(test_heat_that_is_right),
		cmocka_unit_test(test_heat_that_is_wrong),
		cmocka_unit_test(test_heat_of_unrecorded_clients),
		cmocka_unit_test(test_events_run_in_order),
		cmocka_unit_test(test_every_law_holds),
		cmocka_unit_test(test_every_law_holds_of_a_fleet),
		cmocka_unit_test(test_planted_bugs_are_found),
		cmocka_unit_test(test_bugs_are_found_in_front_of_servers),
		cmocka_unit_test(test_bugs_are_found_by_their_checkers),
		cmocka_unit_test(test_bugs_are_found_among_tracking_clients),
		cmocka_unit_test(test_messages_are_checked_in_front_of_a_faulty_cluster),
		cmocka_unit_test(test_the_same_seed_is_the_same_schedule),
		cmocka_unit_test(test_schedules_shrink),
		cmocka_unit_test(test_a_larger_load),
		cmocka_unit_test(test_clients_cut_off),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
