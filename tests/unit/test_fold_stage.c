/* Goal: which requests wait for a hot key, and for how long (absorb/fold/stage.c): joining, one batch in flight
 * at a time, limits, clients that disconnect while they wait, errors, and keys that become hot and cool.
 *
 * Method: scripts against a core whose engine is the test (tests/lib/fold_stage_world.h). test_fold_plan.c tests
 * what folding makes of requests, test_fold_order.c a client's own order. */
#include "tests/lib/fold_stage_world.h"

/* ---- joins, and one batch in flight ---- */

static void test_a_single_request_is_sent_as_it_came(void **state)
{
	static struct world world;

	(void)state;
	open_world(&world);
	say(&world, 'A', "incr {a}k");
	/* The request waits for other requests in this round. */
	sent(&world, "");
	end_round(&world);
	sent(&world, "incr {a}k");
	reply(&world, "incr", ":1\r\n");
	received(&world, 'A', ":1\r\n");
	assert_int_equal(counted(&hs_fold_stats(world.core)->requests), 0);
	close_world(&world);
}

static void test_one_batch_at_a_time(void **state)
{
	static struct world world;
	const struct hs_fold_stats *stats;

	(void)state;
	open_world(&world);
	stats = hs_fold_stats(world.core);
	say(&world, 'A', "INCR {a}k");
	say(&world, 'B', "INCR {a}k");
	end_round(&world);
	sent(&world, "INCRBY {a}k 2");
	say(&world, 'C', "INCR {a}k");
	say(&world, 'D', "GET {a}k");
	say(&world, 'E', "GET {b}k"); /* another key has another queue */
	end_round(&world);
	sent(&world, "GET {b}k");
	assert_int_equal(counted(&stats->waiting), 2);
	reply(&world, "INCRBY", ":11\r\n");
	received(&world, 'A', ":10\r\n");
	received(&world, 'B', ":11\r\n");
	received(&world, 'C', "");
	sent(&world, "");
	end_round(&world);
	sent(&world, "INCRBY {a}k 1");
	reply(&world, "INCRBY", ":12\r\n");
	received(&world, 'C', ":12\r\n");
	received(&world, 'D', "$2\r\n12\r\n");
	reply(&world, "GET", "$-1\r\n");
	received(&world, 'E', "$-1\r\n");
	assert_int_equal(counted(&stats->requests), 4);
	assert_int_equal(counted(&stats->commands), 2);
	assert_int_equal(counted(&hs_core_stats(world.core)->command[HS_CMD_ID_INCR].calls), 3);
	close_world(&world);
}

static void answer_kind(struct world *world, enum hs_op_kind kind)
{
	take_sent(world);
	for (size_t i = 0; i < world->count; i++) {
		struct hs_op *op = world->ops[i];

		if (op->kind != kind)
			continue;
		memmove(&world->ops[i], &world->ops[i + 1],
			(world->count - i - 1) * sizeof(struct hs_op *));
		world->count--;
		world->sent_count--;
		hs_buf_append(op->out, "+OK\r\n", 5);
		hs_core_complete(world->core, later(world, 1), op);
		return;
	}
	fail_msg("nothing of that kind is under way");
}

/* The engine answers UNTRACK before a folded batch that was sent earlier. Both requests must be freed, because
 * shutdown waits until the core has none in flight. */
static void test_tracking_ends_while_a_batch_is_in_flight(void **state)
{
	static struct world world;

	(void)state;
	open_world(&world);
	say(&world, 'C', "CLIENT TRACKING ON");
	answer_kind(&world, HS_OP_TRACK);
	received(&world, 'C', "+OK\r\n");
	say(&world, 'A', "INCR {a}k");
	say(&world, 'B', "INCR {a}k");
	end_round(&world);
	sent(&world, "INCRBY {a}k 2");
	leave(&world, 'C');
	answer_kind(&world, HS_OP_UNTRACK);
	reply(&world, "INCRBY", ":2\r\n");
	received(&world, 'A', ":1\r\n");
	received(&world, 'B', ":2\r\n");
	assert_int_equal(world.core->self->inflight, 0);
	close_world(&world);
}

/* Folding gains two requests per command, but the option requires three. Folding pauses and is tried again
 * later. */
static void test_folding_pauses_when_it_gains_nothing(void **state)
{
	static struct world world;

	(void)state;
	open_world(&world);
	world.core->options.hot.fold_gain_min = 3;
	for (int i = 0; i < 32; i++) {
		say(&world, 'A', "INCR {a}k");
		say(&world, 'B', "INCR {a}k");
		end_round(&world);
		sent(&world, "INCRBY {a}k 2");
		reply(&world, "INCRBY", ":2\r\n");
		take_received(&world, 'A');
		take_received(&world, 'B');
	}
	for (int i = 0; i < 1024; i++) {
		say(&world, 'A', "INCR {a}k");
		sent(&world, "INCR {a}k");
		reply(&world, "INCR", ":1\r\n");
		take_received(&world, 'A');
	}
	say(&world, 'A', "INCR {a}k");
	sent(&world, "");
	end_round(&world);
	sent(&world, "INCR {a}k");
	reply(&world, "INCR", ":1\r\n");
	received(&world, 'A', ":1\r\n");
	close_world(&world);
}

static void test_a_read_joins_no_batch_in_flight(void **state)
{
	static struct world world;

	(void)state;
	open_world(&world);
	say(&world, 'A', "GET {a}k");
	say(&world, 'B', "GET {a}k");
	end_round(&world);
	sent(&world, "GET {a}k");
	say(&world, 'C', "GET {a}k");
	end_round(&world);
	sent(&world, "");
	reply(&world, "GET", "$1\r\n1\r\n");
	received(&world, 'A', "$1\r\n1\r\n");
	received(&world, 'B', "$1\r\n1\r\n");
	received(&world, 'C', "");
	end_round(&world);
	sent(&world, "GET {a}k");
	reply(&world, "GET", "$1\r\n2\r\n");
	received(&world, 'C', "$1\r\n2\r\n");
	close_world(&world);
}

static void test_both_dialects(void **state)
{
	static struct world world;

	(void)state;
	open_world(&world);
	say(&world, 'C', "HELLO 3");
	say(&world, 'D', "HELLO 3");
	take_received(&world, 'C');
	take_received(&world, 'D');
	for (int who = 'A'; who <= 'D'; who++)
		say(&world, (char)who, "GET {a}k");
	end_round(&world);
	sent(&world, "GET {a}k | GET {a}k");
	assert_int_equal(world.ops[0]->resp, 2);
	assert_int_equal(world.ops[1]->resp, 3);
	reply(&world, "GET", "$-1\r\n");
	reply(&world, "GET", "_\r\n");
	received(&world, 'A', "$-1\r\n");
	received(&world, 'B', "$-1\r\n");
	received(&world, 'C', "_\r\n");
	received(&world, 'D', "_\r\n");
	close_world(&world);
}

/* Replies keep the order of requests, whichever request finishes first (law 1). */
static void test_replies_in_turn(void **state)
{
	static struct world world;

	(void)state;
	open_world(&world);
	say(&world, 'A', "GET {b}x");
	say(&world, 'A', "INCR {a}k");
	say(&world, 'A', "PING");
	say(&world, 'B', "INCR {a}k");
	end_round(&world);
	sent(&world, "GET {b}x | INCRBY {a}k 2");
	reply(&world, "INCRBY", ":2\r\n");
	received(&world, 'A', "");
	received(&world, 'B', ":2\r\n");
	reply(&world, "GET", "$1\r\nx\r\n");
	received(&world, 'A', "$1\r\nx\r\n:1\r\n+PONG\r\n");
	close_world(&world);
}

/* ---- reads at once ---- */

static void test_reads_at_once_do_not_wait(void **state)
{
	static struct world world;

	(void)state;
	open_empty_world(&world, true);
	make_hot(&world, "{a}k");
	say(&world, 'A', "INCR {a}k");
	say(&world, 'B', "INCR {a}k");
	say(&world, 'C', "GET {a}k");
	received(&world, 'C', "$4\r\nread\r\n");
	say(&world, 'A', "GET {a}k"); /* A's own INCR is still in flight */
	received(&world, 'A', "");
	end_round(&world);
	sent(&world, "INCRBY {a}k 2");
	reply(&world, "INCRBY", ":2\r\n");
	received(&world, 'A', ":1\r\n$1\r\n2\r\n");
	received(&world, 'B', ":2\r\n");
	close_world(&world);
}

/* ---- limits, and clients that disconnect ---- */

static void test_busy_at_the_limit(void **state)
{
	static struct world world;

	(void)state;
	open_world(&world);
	say(&world, 'A', "GET {a}k");
	end_round(&world);
	sent(&world, "GET {a}k");
	for (int i = 0; i < WAITERS; i++)
		say(&world, 'B', "GET {a}k");
	say(&world, 'C', "GET {a}k");
	received(&world, 'C',
		 "-BUSY 16 requests already wait for this key (fold-waiters-max); not "
		 "run\r\n");
	say(&world, 'C', "GET {b}k");
	assert_int_equal(counted(&hs_fold_stats(world.core)->busy), 1);
	reply(&world, "GET", "$1\r\n1\r\n");
	/* The waiting requests are not sent yet, so the queue is still full. */
	say(&world, 'C', "GET {a}k");
	end_round(&world);
	sent(&world, "GET {b}k | GET {a}k");
	say(&world, 'C', "GET {a}k"); /* the queue has room again */
	reply(&world, "GET {b}k", "$1\r\nb\r\n");
	reply(&world, "GET {a}k", "$1\r\n2\r\n");
	end_round(&world);
	sent(&world, "GET {a}k");
	reply(&world, "GET", "$1\r\n3\r\n");
	received(&world, 'A', "$1\r\n1\r\n");
	received(&world, 'C',
		 "$1\r\nb\r\n-BUSY 16 requests already wait for this key (fold-waiters-max); not "
		 "run\r\n$1\r\n3\r\n");
	assert_int_equal(strlen(take_received(&world, 'B')), WAITERS * strlen("$1\r\n2\r\n"));
	close_world(&world);
}

/* The first unread reply may exceed the output limit. Once the limit is exceeded, the next reply cuts the client
 * off. */
static void test_many_replies_at_once_keep_the_output_limit(void **state)
{
	static struct world world;

	(void)state;
	open_world(&world);
	world.options.output_bytes_max = 8;
	hs_core_configure(world.core, &world.options);
	for (int i = 0; i < 3; i++)
		say(&world, 'A', "GET {a}k");
	say(&world, 'B', "GET {a}k");
	end_round(&world);
	sent(&world, "GET {a}k");
	reply(&world, "GET", "$10\r\n0123456789\r\n");
	assert_true(hs_session_cut(world.client[0]));
	assert_int_equal(hs_session_out(world.client[0])->len, strlen("$10\r\n0123456789\r\n"));
	assert_int_equal(counted(&hs_core_stats(world.core)->cut_output), 1);
	assert_false(hs_session_cut(world.client[1]));
	received(&world, 'B', "$10\r\n0123456789\r\n");
	close_world(&world);
}

/* Shared replies wait for a reply that is still in flight. When the held replies reach the limit, the core
 * disconnects the client and copies no further reply. */
static void test_shared_replies_out_of_turn_keep_the_output_limit(void **state)
{
	static struct world world;
	const char *value = "$10\r\n0123456789\r\n";

	(void)state;
	open_world(&world);
	world.options.output_bytes_max = 8;
	hs_core_configure(world.core, &world.options);
	say(&world, 'A', "GET {b}k");
	for (int i = 0; i < 6; i++)
		say(&world, 'A', "GET {a}k");
	end_round(&world);
	sent(&world, "GET {b}k | GET {a}k");
	reply(&world, "GET {a}k", value);
	assert_true(hs_session_cut(world.client[0]));
	assert_int_equal(world.client[0]->held_bytes, strlen(value));
	assert_int_equal(counted(&hs_core_stats(world.core)->cut_output), 1);
	reply(&world, "GET {b}k", "$1\r\n1\r\n");
	close_world(&world);
}

/* A client's waiting requests are sent because its next command must follow them, and the engine refuses all of
 * them inside submit. */
static void test_refusals_in_a_row_keep_the_output_limit(void **state)
{
	static struct world world;

	(void)state;
	open_world(&world);
	world.options.output_bytes_max = 8;
	hs_core_configure(world.core, &world.options);
	for (int i = 0; i < 3; i++)
		say(&world, 'A', "INCR {a}k");
	world.refusal = "-CLUSTERDOWN not sent\r\n";
	say(&world, 'A', "SET {a}other 1");
	assert_true(hs_session_cut(world.client[0]));
	assert_int_equal(hs_session_out(world.client[0])->len, strlen(world.refusal));
	world.refusal = NULL;
	close_world(&world);
}

static void test_a_client_that_disconnects_while_waiting_is_left_out(void **state)
{
	static struct world world;

	(void)state;
	open_world(&world);
	say(&world, 'A', "INCR {a}k");
	say(&world, 'B', "INCR {a}k");
	say(&world, 'C', "INCR {a}k");
	say(&world, 'B', "INCR {a}k");
	leave(&world, 'B');
	assert_int_equal(counted(&hs_fold_stats(world.core)->waiting), 2);
	end_round(&world);
	sent(&world, "INCRBY {a}k 2");
	/* If a client disconnects while the batch is in flight, its answer is dropped. */
	say(&world, 'C', "INCR {a}k");
	leave(&world, 'C');
	reply(&world, "INCRBY", ":2\r\n");
	received(&world, 'A', ":1\r\n");
	end_round(&world);
	sent(&world, "");
	close_world(&world);
}

static void test_a_client_that_disconnects_before_a_retry_is_left_out(void **state)
{
	static struct world world;

	(void)state;
	open_world(&world);
	say(&world, 'A', "INCR {a}k");
	say(&world, 'B', "INCR {a}k");
	end_round(&world);
	sent(&world, "INCRBY {a}k 2");
	leave(&world, 'B');
	reply(&world, "INCRBY", "-ERR increment or decrement would overflow\r\n");
	sent(&world, "INCR {a}k");
	say(&world, 'A', "APPEND {a}k x"); /* A's command follows its retried INCR */
	sent(&world, "APPEND {a}k x");
	say(&world, 'C', "INCR {a}k"); /* C's request waits for the retry in flight */
	end_round(&world);
	sent(&world, "");
	reply(&world, "INCR", ":9\r\n");
	end_round(&world);
	sent(&world, "INCR {a}k");
	reply(&world, "APPEND", ":2\r\n");
	reply(&world, "INCR", ":10\r\n");
	received(&world, 'A', ":9\r\n:2\r\n");
	received(&world, 'C', ":10\r\n");
	close_world(&world);
}

/* ---- errors ---- */

static void test_an_unknown_outcome_is_reported_to_all(void **state)
{
	static const char unknown[] = "-UNKNOWN the connection was lost\r\n";
	static struct world world;

	(void)state;
	open_world(&world);
	say(&world, 'A', "INCR {a}k");
	say(&world, 'B', "INCR {a}k");
	say(&world, 'C', "GET {a}k");
	end_round(&world);
	sent(&world, "INCRBY {a}k 2");
	reply(&world, "INCRBY", unknown);
	received(&world, 'A', unknown);
	received(&world, 'B', unknown);
	received(&world, 'C', unknown);
	end_round(&world);
	sent(&world, ""); /* no member is retried */
	assert_int_equal(counted(&hs_core_stats(world.core)->command[HS_CMD_ID_INCR].failed), 2);
	close_world(&world);
}

/* An engine may refuse an operation inside submit. Requests that waited for this operation continue. */
static void test_refused_at_once(void **state)
{
	static const char down[] = "-CLUSTERDOWN not sent\r\n";
	static struct world world;

	(void)state;
	open_world(&world);
	world.refusal = down;
	say(&world, 'A', "INCR {a}k"); /* A's and B's INCR are in one batch */
	say(&world, 'B', "INCR {a}k");
	say(&world, 'A', "PING");
	say(&world, 'A', "DEL {a}k");
	end_round(&world);
	received(&world, 'A', "-CLUSTERDOWN not sent\r\n+PONG\r\n-CLUSTERDOWN not sent\r\n");
	received(&world, 'B', down);
	/* Each request is in a batch of its own, and a request that must wait follows each. */
	say(&world, 'A', "GET {a}k");
	say(&world, 'B', "INCR {a}k");
	say(&world, 'A', "DEL {a}k");
	say(&world, 'A', "GET {a}k");
	say(&world, 'B', "APPEND {a}k x");
	end_round(&world);
	received(&world, 'A',
		 "-CLUSTERDOWN not sent\r\n-CLUSTERDOWN not sent\r\n-CLUSTERDOWN not "
		 "sent\r\n");
	received(&world, 'B', "-CLUSTERDOWN not sent\r\n-CLUSTERDOWN not sent\r\n");
	assert_int_equal(world.client[0]->in.len, 0);
	/* The engine also refuses a retry. */
	world.refusal = NULL;
	say(&world, 'A', "INCR {a}k");
	say(&world, 'B', "INCR {a}k");
	say(&world, 'A', "DEL {a}k");
	end_round(&world);
	sent(&world, "INCRBY {a}k 2");
	world.refusal = down;
	reply(&world, "INCRBY", "-ERR increment or decrement would overflow\r\n");
	received(&world, 'A', "-CLUSTERDOWN not sent\r\n-CLUSTERDOWN not sent\r\n");
	received(&world, 'B', down);
	close_world(&world);
}

/* ---- hot and cool ---- */

static void test_hot_and_cool(void **state)
{
	static struct world world;
	const struct hs_fold_stats *stats;

	(void)state;
	open_empty_world(&world, false);
	stats = hs_fold_stats(world.core);
	say(&world, 'A', "INCR {a}k");
	say(&world, 'B', "INCR {a}k");
	/* The key is not hot yet, so the requests are sent at once. */
	sent(&world, "INCR {a}k | INCR {a}k");
	make_hot(&world, "{a}k");
	say(&world, 'C', "INCR {a}k");
	say(&world, 'A', "INCR {a}k"); /* A's first INCR is still in flight */
	end_round(&world);
	sent(&world, "INCRBY {a}k 2");
	for (int i = 0; i < 2; i++)
		reply(&world, "INCR", ":1\r\n");
	reply(&world, "INCRBY", ":4\r\n");
	/* One request in 15 is too few for a key to become hot, but enough to stay hot. */
	for (int i = 0; i < 150; i++) {
		for (int j = 0; j < 30; j++) {
			char words[32];

			snprintf(words, sizeof words, "APPEND {a}%c x", j < 2 ? 'k' : 'A' + j);
			say(&world, 'A', words);
			take_sent(&world);
			reply(&world, "APPEND", ":1\r\n");
		}
		take_received(&world, 'A');
		hs_core_tick(world.core, later(&world, 10000));
	}
	assert_int_equal(counted(&stats->keys), 1);
	/* A key that requests wait for does not cool. */
	say(&world, 'B', "GET {a}k");
	end_round(&world);
	sent(&world, "GET {a}k");
	hs_core_tick(world.core, later(&world, 1500000));
	assert_int_equal(counted(&stats->keys), 1);
	reply(&world, "GET", "$-1\r\n");
	hs_core_tick(world.core, later(&world, 900000));
	hs_core_tick(world.core, later(&world, 1500000));
	assert_int_equal(counted(&stats->keys), 0);
	for (int who = 'A'; who <= 'C'; who++)
		take_received(&world, (char)who);
	close_world(&world);
}

static void test_folding_is_turned_off_while_requests_wait(void **state)
{
	static struct world world;

	(void)state;
	open_world(&world);
	say(&world, 'A', "INCR {a}k");
	end_round(&world);
	sent(&world, "INCR {a}k");
	say(&world, 'B', "INCR {a}k");
	say(&world, 'C', "INCR {a}k");
	world.options.fold = false;
	hs_core_configure(world.core, &world.options);
	hs_core_tick(world.core, later(&world, 100));
	say(&world, 'D', "INCR {a}k"); /* folding is off: sent at once */
	sent(&world, "INCR {a}k");
	say(&world, 'B', "INCR {a}k"); /* B's first request must go first */
	sent(&world, "");
	reply(&world, "INCR", ":1\r\n");
	reply(&world, "INCR", ":2\r\n");
	end_round(&world);
	sent(&world, "INCRBY {a}k 2");
	reply(&world, "INCRBY", ":4\r\n");
	sent(&world, "INCR {a}k");
	reply(&world, "INCR", ":5\r\n");
	received(&world, 'A', ":1\r\n");
	received(&world, 'B', ":3\r\n:5\r\n");
	received(&world, 'C', ":4\r\n");
	received(&world, 'D', ":2\r\n");
	hs_core_tick(world.core, later(&world, 100));
	assert_int_equal(counted(&hs_fold_stats(world.core)->keys), 0);
	close_world(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_single_request_is_sent_as_it_came),
		cmocka_unit_test(test_one_batch_at_a_time),
		cmocka_unit_test(test_tracking_ends_while_a_batch_is_in_flight),
		cmocka_unit_test(test_folding_pauses_when_it_gains_nothing),
		cmocka_unit_test(test_a_read_joins_no_batch_in_flight),
		cmocka_unit_test(test_both_dialects),
		cmocka_unit_test(test_replies_in_turn),
		cmocka_unit_test(test_reads_at_once_do_not_wait),
		cmocka_unit_test(test_busy_at_the_limit),
		cmocka_unit_test(test_many_replies_at_once_keep_the_output_limit),
		cmocka_unit_test(test_shared_replies_out_of_turn_keep_the_output_limit),
		cmocka_unit_test(test_refusals_in_a_row_keep_the_output_limit),
		cmocka_unit_test(test_a_client_that_disconnects_while_waiting_is_left_out),
		cmocka_unit_test(test_a_client_that_disconnects_before_a_retry_is_left_out),
		cmocka_unit_test(test_an_unknown_outcome_is_reported_to_all),
		cmocka_unit_test(test_refused_at_once),
		cmocka_unit_test(test_hot_and_cool),
		cmocka_unit_test(test_folding_is_turned_off_while_requests_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
