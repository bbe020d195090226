/* Goal: the flow to Redis servers does the right thing also where two rare things meet: pipes for
 * one client that end while they are read, watches that are lost in between, a server's word that
 * is a script's, requests and replies that take longer than a timeout, servers that come and go.
 *
 * Method: scripts against the flow alone (tests/lib/flow.h). Each was a mistake once. */
#include "tests/lib/flow.h"

static struct asked *make_blpop(struct town *town, struct hs_command *row, uint16_t slot)
{
	struct asked *asked = make(town, 5, HS_CMD_ID_GET, slot, "BLPOP a 0");

	*row = *hs_command_by_id(HS_CMD_ID_GETDEL);
	row->name = "blpop";
	row->flags |= HS_CMD_BLOCKING;
	asked->op.command = row;
	return asked;
}

static struct asked *make_watch(struct town *town, enum hs_op_kind kind, bool watching)
{
	struct asked *asked = make(town, 7, HS_CMD_ID_WATCH, 1, "WATCH a");

	asked->op.kind = kind;
	asked->op.watcher = 7;
	asked->op.watching = watching;
	return asked;
}

static struct asked *make_script(struct town *town, struct hs_command *row, const char *name,
				 const char *text)
{
	struct asked *asked = make(town, 1, HS_CMD_ID_GET, 1, text);

	*row = *hs_command_by_id(HS_CMD_ID_GETDEL);
	row->name = name;
	asked->op.command = row;
	return asked;
}

/* The answer gives the pipe back, and the same client's next command, sent from inside, needs the
 * place it takes: it must not be freed while its replies are read. */
static void test_a_pipe_makes_room_while_it_is_read(void **state)
{
	struct hs_flow_options options = {.cluster = true,
					  .timeout_us = 1000000,
					  .in_flight_max = 10,
					  .waiting_max = 10,
					  .private_max = 1};
	struct town *town = town_create(true, &options);
	struct hs_command row, other;
	struct asked *first = submit(town, make_blpop(town, &row, 1));
	struct asked *second = make_blpop(town, &other, 9000);

	(void)state;
	up(town, 1);
	sent(town, 1, "BLPOP a 0");
	town->then = &second->op;
	reply(town, 1, "$1\r\nx\r\n");
	got(first, "$1\r\nx\r\n");
	up(town, 2);
	sent(town, 2, "BLPOP a 0");
	assert_int_equal(town->pipes_count, 1);
	assert_int_equal(town->stats.own.value, 1);
	assert_int_equal(town->stats.failures.value, 0);
	town_destroy(&town);
}

static void test_closing_what_is_not_needed_blames_nobody(void **state)
{
	struct town *town = town_create(true, NULL);
	struct hs_command row;
	struct asked *moved = submit(town, make_blpop(town, &row, 1));

	(void)state;
	up(town, 1);
	sent(town, 1, "BLPOP a 0");
	reply(town, 1, "-MOVED 1 h:2\r\n");
	assert_int_equal(town->closed, 1);
	assert_int_equal(town->stats.failures.value, 0);
	up(town, 2);
	reply(town, 2, "$1\r\nx\r\n");
	got(moved, "$1\r\nx\r\n");
	town_destroy(&town);
}

static void test_watch_and_exec_have_a_deadline(void **state)
{
	struct town *town = town_create(true, NULL);
	struct asked *watching = submit(town, make_watch(town, HS_OP_WATCH, false)), *exec;

	(void)state;
	up(town, 1);
	sent(town, 1, "WATCH a");
	pass(town, 1100);
	failed(watching, "-CLUSTERDOWN the connection to h:1 was lost (no reply within");
	pass(town, 1000);
	watching = submit(town, make_watch(town, HS_OP_WATCH, false));
	up(town, 1);
	sent(town, 1, "WATCH a");
	reply(town, 1, "+OK\r\n");
	got(watching, "+OK\r\n");
	pass(town, 2000); /* a watch may last */
	exec = submit(town, make_exec(town, 7, NULL, 0));
	sent(town, 1, "MULTI|EXEC");
	pass(town, 1100);
	failed(exec, "-UNKNOWN");
	assert_int_equal(town->pipes_count, 0);
	town_destroy(&town);
}

/* WATCH a, which is lost; WATCH b; EXEC: nobody knows whether a has changed. */
static void test_a_lost_watch_is_not_forgotten_over_the_next(void **state)
{
	struct town *town = town_create(true, NULL);
	struct asked *more, *exec;

	(void)state;
	submit(town, make_watch(town, HS_OP_WATCH, false));
	up(town, 1);
	sent(town, 1, "WATCH a");
	reply(town, 1, "+OK\r\n");
	down(town, 1);
	more = submit(town, make_watch(town, HS_OP_WATCH, true));
	got(more, "+OK\r\n");
	assert_int_equal(town->pipes_count, 0);
	exec = submit(town, make_exec(town, 7, NULL, 0));
	got(exec, "*-1\r\n");
	/* The same when the slot moves between the two. */
	pass(town, 1000);
	submit(town, make_watch(town, HS_OP_WATCH, false));
	up(town, 1);
	sent(town, 1, "WATCH a");
	reply(town, 1, "+OK\r\n");
	more = submit(town, make_watch(town, HS_OP_WATCH, true));
	sent(town, 1, "WATCH a");
	reply(town, 1, "-MOVED 1 h:2\r\n");
	got(more, "+OK\r\n");
	exec = submit(town, make_exec(town, 7, NULL, 0));
	got(exec, "*-1\r\n");
	town_destroy(&town);
}

/* WATCH, and its client goes: UNWATCH is behind it when the slot turns out to be elsewhere. Nobody would end a watch
 * that began there. */
static void test_a_watch_that_is_sent_on_has_an_end(void **state)
{
	struct town *town = town_create(true, NULL);
	struct asked *watching = submit(town, make_watch(town, HS_OP_WATCH, false)), *ending;

	(void)state;
	up(town, 1);
	sent(town, 1, "WATCH a");
	ending = submit(town, make_watch(town, HS_OP_UNWATCH, true));
	sent(town, 1, "UNWATCH");
	reply(town, 1, "-ASK 1 h:2\r\n");
	got(watching, "+OK\r\n");
	got(ending, "+OK\r\n");
	assert_int_equal(town->pipes_count, 0);
	assert_int_equal(town->stats.own.value, 0);
	town_destroy(&town);
}

/* The client watches again before UNWATCH is answered: on the same connection, or, if the key is on another node,
 * on one to that. */
static void test_watching_again_before_unwatch_is_answered(void **state)
{
	struct town *town = town_create(true, NULL);
	struct asked *ending, *again, *exec;

	(void)state;
	submit(town, make_watch(town, HS_OP_WATCH, false));
	up(town, 1);
	sent(town, 1, "WATCH a");
	reply(town, 1, "+OK\r\n");
	ending = submit(town, make_watch(town, HS_OP_UNWATCH, true));
	submit(town, make_watch(town, HS_OP_WATCH, false));
	sent(town, 1, "UNWATCH|WATCH a");
	reply(town, 1, "+OK\r\n");
	got(ending, "+OK\r\n");
	assert_int_equal(town->stats.own.value, 1);
	reply(town, 1, "+OK\r\n");
	submit(town, make_watch(town, HS_OP_WATCH, true));
	sent(town, 1, "WATCH a"); /* it is still this client's */
	reply(town, 1, "+OK\r\n");
	submit(town, make_watch(town, HS_OP_UNWATCH, true));
	again = make_watch(town, HS_OP_WATCH, false);
	again->op.slot = 16383;
	submit(town, again);
	up(town, 2);
	sent(town, 2, "WATCH a");
	reply(town, 2, "+OK\r\n");
	got(again, "+OK\r\n");
	reply(town, 1, "+OK\r\n"); /* UNWATCH on the connection of before frees that one alone */
	exec = make_exec(town, 7, NULL, 0);
	exec->op.slot = 16383;
	submit(town, exec);
	sent(town, 2, "MULTI|EXEC");
	town_destroy(&town);
}

/* HELLO 3 between WATCH and EXEC: the pipe changes with it, and the watch stays. */
static void test_another_dialect_keeps_the_watch(void **state)
{
	struct town *town = town_create(true, NULL);
	struct asked *exec;

	(void)state;
	submit(town, make_watch(town, HS_OP_WATCH, false));
	up(town, 1);
	sent(town, 1, "WATCH a");
	reply(town, 1, "+OK\r\n");
	exec = make_exec(town, 7, NULL, 0);
	exec->op.resp = 3;
	submit(town, exec);
	sent(town, 1, "HELLO 3|MULTI|EXEC");
	reply(town, 1, "%1\r\n$5\r\nproto\r\n:3\r\n+OK\r\n_\r\n");
	got(exec, "_\r\n");
	/* It is kept as one of the dialect that it has now. */
	assert_int_equal(town->pipes_count, 1);
	submit(town, make_watch(town, HS_OP_WATCH, false));
	assert_int_equal(town->pipes_count, 2);
	town_destroy(&town);
}

/* The server may be told too late, when the wait is over: the pipe must not be another's then. */
static void test_a_pipe_that_was_unblocked_is_not_used_again(void **state)
{
	struct town *town = town_create(true, NULL);
	struct hs_command row;
	struct asked *blocked = submit(town, make_blpop(town, &row, 1));
	struct hs_pipe *pipe;

	(void)state;
	up(town, 1);
	sent(town, 1, "BLPOP a 0");
	pipe = pipe_to(town, 1);
	pipe->upstream.server_id = 42;
	assert_true(hs_flow_unblock(town->flow, &blocked->op, false));
	hs_flow_receive(town->flow, town->now, pipe, "*-1\r\n", 5);
	hs_flow_flush(town->flow, town->now);
	got(blocked, "*-1\r\n");
	assert_int_equal(town->closed, 1);
	up(town, 1);
	sent(town, 1, "CLIENT UNBLOCK 42 TIMEOUT");
	reply(town, 1, ":0\r\n");
	town_destroy(&town);
}

/* It is for the server that has the connection, and for no other. */
static void test_unblocking_goes_nowhere_else(void **state)
{
	struct town *town = town_create(true, NULL);
	struct hs_command row;
	struct asked *blocked = submit(town, make_blpop(town, &row, 9000));

	(void)state;
	up(town, 2);
	sent(town, 2, "BLPOP a 0");
	pipe_to(town, 2)->upstream.server_id = 42;
	assert_true(hs_flow_unblock(town->flow, &blocked->op, false));
	hs_flow_flush(town->flow, town->now);
	down(town, 2); /* that which would have said it */
	assert_int_equal(town->pipes_count, 1);
	pass(town, 100); /* it is said again, to the same server */
	assert_int_equal(town->pipes_count, 2);
	up(town, 2);
	sent(town, 2, "CLIENT UNBLOCK 42 TIMEOUT");
	reply(town, 2, ":1\r\n");
	pass(town, 100);
	sent(town, 2, "");
	town_destroy(&town);
}

/* The server reads the two from different connections, in any order. */
static void test_unblocking_what_is_on_its_way(void **state)
{
	struct town *town = town_create(true, NULL);
	struct hs_command row;
	struct asked *blocked = submit(town, make_blpop(town, &row, 1));
	struct hs_pipe *own = pipe_to(town, 1);

	(void)state;
	/* Its connection is not even open. */
	assert_true(hs_flow_unblock(town->flow, &blocked->op, true));
	assert_int_equal(town->pipes_count, 1);
	own->upstream.server_id = 42;
	up(town, 1);
	assert_int_equal(town->pipes_count, 2); /* BLPOP is written, and it opened the other one */
	assert_int_equal(own->in_flight.count, 1);
	own->upstream.sent += own->upstream.out.len;
	own->upstream.out.len = 0;
	up(town, 1);
	sent(town, 1, "CLIENT UNBLOCK 42 ERROR");
	/* The server has not read BLPOP yet: once more, at once and then with every tick. */
	for (int i = 1; i < 8; i++) {
		reply(town, 1, ":0\r\n");
		sent(town, 1, "CLIENT UNBLOCK 42 ERROR");
	}
	reply(town, 1, ":0\r\n");
	sent(town, 1, "");
	pass(town, 100);
	sent(town, 1, "CLIENT UNBLOCK 42 ERROR");
	pass(town, 100); /* that one is under way */
	sent(town, 1, "");
	reply(town, 1, ":1\r\n");
	hs_flow_receive(town->flow, town->now, own, "-UNBLOCKED x\r\n", 14);
	hs_flow_flush(town->flow, town->now);
	got(blocked, "-UNBLOCKED x\r\n");
	pass(town, 100);
	sent(town, 1, "");
	town_destroy(&town);
}

/* It was answered just now: whatever the server says, that is the end of it. */
static void test_unblocking_what_is_over(void **state)
{
	struct town *town = town_create(true, NULL);
	struct hs_command row;
	struct asked *blocked = submit(town, make_blpop(town, &row, 1));
	struct hs_pipe *own = pipe_to(town, 1);

	(void)state;
	own->upstream.server_id = 42;
	up(town, 1);
	sent(town, 1, "BLPOP a 0");
	assert_true(hs_flow_unblock(town->flow, &blocked->op, false));
	up(town, 1);
	sent(town, 1, "CLIENT UNBLOCK 42 TIMEOUT");
	hs_flow_receive(town->flow, town->now, own, "*2\r\n$1\r\na\r\n$1\r\nx\r\n", 18);
	hs_flow_flush(town->flow, town->now);
	assert_true(blocked->done);
	reply(town, 1, ":0\r\n");
	pass(town, 100);
	sent(town, 1, "");
	assert_int_equal(town->pipes_count, 1);
	town_destroy(&town);
}

/* SCRIPT KILL has its own way to a server, however the others are doing. */
static void test_a_script_is_killed_past_it(void **state)
{
	static const struct hs_command kill = {
		.name = "script|kill",
		.id = HS_CMD_IDS,
		.place = HS_PLACE_ALL,
		.merge = HS_MERGE_ONE_SUCCEEDED,
		.arity = 2,
	};
	struct town *town = town_create(true, NULL);
	struct asked *script = set(town, 1, 1, "SET a script"), *killed;
	struct hs_pipe *shared, *own;

	(void)state;
	up(town, 1);
	sent(town, 1, "SET a script");
	shared = pipe_to(town, 1);
	killed = make(town, 2, HS_CMD_ID_GET, HS_SLOT_NONE, "SCRIPT KILL");
	killed->op.command = &kill;
	submit(town, killed);
	own = pipe_to(town, 1);
	assert_ptr_not_equal(own, shared);
	assert_true(own->bare); /* a busy server does not say who it is */
	up(town, 1);
	sent(town, 1, "SCRIPT KILL");
	reply(town, 1, "+OK\r\n");
	got(killed, "+OK\r\n");
	assert_int_equal(town->pipes_count, 1); /* and nobody else goes that way */
	hs_flow_receive(town->flow, town->now, shared, "-ERR killed\r\n", 13);
	got(script, "-ERR killed\r\n");
	/* One that does not come through is told in time. */
	killed = make(town, 2, HS_CMD_ID_GET, HS_SLOT_NONE, "SCRIPT KILL");
	killed->op.command = &kill;
	submit(town, killed);
	assert_false(killed->done);
	pass(town, 2000);
	failed(killed, "-CLUSTERDOWN");
	town_destroy(&town);
}

static void test_a_transaction_is_asked_for_once(void **state)
{
	struct town *town = town_create(true, NULL);
	struct hs_bytes incr[] = {HS_LIT("INCR"), HS_LIT("a")};
	struct hs_op_tx_command commands[] = {
		{.command = hs_command_by_id(HS_CMD_ID_INCR), .argv = incr, .argc = 2},
		{.command = hs_command_by_id(HS_CMD_ID_INCR), .argv = incr, .argc = 2},
	};
	struct asked *exec;

	(void)state;
	get(town, 1, 9000, "GET z");
	up(town, 2);
	sent(town, 2, "GET z");
	reply(town, 2, "$-1\r\n");
	exec = submit(town, make_exec(town, 0, commands, 2));
	up(town, 1);
	sent(town, 1, "MULTI|INCR a|INCR a|EXEC");
	reply(town, 1, "+OK\r\n-ASK 1 h:2\r\n-ASK 1 h:2\r\n-EXECABORT Transaction discarded\r\n");
	sent(town, 2, "ASKING|MULTI|INCR a|INCR a|EXEC");
	reply(town, 2, "+OK\r\n+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n:1\r\n:2\r\n");
	got(exec, "*2\r\n:1\r\n:2\r\n");
	town_destroy(&town);
}

/* A script that wrote and then said TRYAGAIN has run. */
static void test_what_a_script_says_is_an_answer(void **state)
{
	struct town *town = town_create(true, NULL);
	struct hs_command row;
	struct asked *a = submit(town, make_script(town, &row, "eval", "EVAL x 1 k")), *b;

	(void)state;
	up(town, 1);
	sent(town, 1, "EVAL x 1 k");
	reply(town, 1, "-TRYAGAIN no stock\r\n");
	got(a, "-TRYAGAIN no stock\r\n");
	b = submit(town, make_script(town, &row, "eval", "EVAL x 1 k"));
	sent(town, 1, "EVAL x 1 k");
	reply(town, 1, "-TRYAGAIN Multiple keys request during rehashing of slot\r\n");
	assert_false(b->done);
	pass(town, 100);
	sent(town, 1, "EVAL x 1 k");
	reply(town, 1, ":1\r\n");
	got(b, ":1\r\n");
	town_destroy(&town);
}

static void test_a_script_is_healed_where_it_was_asked_for(void **state)
{
	struct town *town = town_create(true, NULL);
	struct hs_command row;
	struct asked *a;

	(void)state;
	town->script = "return 1";
	get(town, 1, 9000, "GET z");
	up(town, 2);
	sent(town, 2, "GET z");
	reply(town, 2, "$-1\r\n");
	a = submit(town, make_script(town, &row, "evalsha", "EVALSHA abc 1 k"));
	up(town, 1);
	sent(town, 1, "EVALSHA abc 1 k");
	reply(town, 1, "-ASK 1 h:2\r\n");
	sent(town, 2, "ASKING|EVALSHA abc 1 k");
	reply(town, 2, "+OK\r\n-NOSCRIPT No matching script. Please use EVAL.\r\n");
	sent(town, 2, "ASKING|EVAL return 1 1 k");
	reply(town, 2, "+OK\r\n-MOVED 1 h:1\r\n"); /* the move was called off: all from the start */
	sent(town, 1, "EVALSHA abc 1 k");
	reply(town, 1, "-NOSCRIPT No matching script. Please use EVAL.\r\n");
	sent(town, 1, "EVAL return 1 1 k");
	reply(town, 1, ":1\r\n");
	got(a, ":1\r\n");
	town_destroy(&town);
}

/* Keys that only the server finds: what it says is believed of the slot it names, not of the one
 * that was guessed. */
static void test_moved_says_which_slot(void **state)
{
	struct town *town = town_create(true, NULL);
	struct asked *a = set(town, 1, 1, "MODULE.SET x"), *b;

	(void)state;
	up(town, 1);
	sent(town, 1, "MODULE.SET x");
	reply(town, 1, "-MOVED 9000 h:2\r\n");
	up(town, 2);
	sent(town, 2, "MODULE.SET x");
	reply(town, 2, "+OK\r\n");
	got(a, "+OK\r\n");
	b = get(town, 1, 1, "GET a");
	sent(town, 1, "GET a");
	reply(town, 1, "$-1\r\n");
	got(b, "$-1\r\n");
	town_destroy(&town);
}

static void test_a_long_reply_may_take_its_time(void **state)
{
	struct town *town = town_create(true, NULL);
	struct asked *a = get(town, 1, 1, "GET a"), *b = get(town, 2, 2, "GET b");
	enum { PIECE = 100000, PIECES = 20 };
	char *piece = hs_mem_zalloc(PIECE);
	char head[32];

	(void)state;
	up(town, 1);
	sent(town, 1, "GET a|GET b");
	snprintf(head, sizeof head, "$%d\r\n", PIECE * PIECES);
	reply(town, 1, head);
	for (int i = 0; i < PIECES; i++) {
		pass(town, 500);
		hs_flow_receive(town->flow, town->now, pipe_to(town, 1), piece, PIECE);
	}
	reply(town, 1, "\r\n");
	assert_true(a->done);
	assert_int_equal(a->reply.data[0], '$');
	pass(town, 900); /* who stood behind it has had no time yet */
	assert_false(b->done);
	pass(town, 200);
	assert_int_equal(town->closed, 1);
	hs_mem_release(piece);
	town_destroy(&town);
}

static void test_a_long_reply_that_stops_is_given_up(void **state)
{
	struct town *town = town_create(true, NULL);
	struct asked *a = set(town, 1, 1, "GETDEL a");
	char *piece = hs_mem_zalloc(100000);

	(void)state;
	up(town, 1);
	sent(town, 1, "GETDEL a");
	reply(town, 1, "$200000\r\n");
	pass(town, 900);
	hs_flow_receive(town->flow, town->now, pipe_to(town, 1), piece, 100000);
	pass(town, 900);
	assert_false(a->done);
	pass(town, 200);
	failed(a, "-UNKNOWN");
	hs_mem_release(piece);
	town_destroy(&town);
}

static void test_a_long_request_may_take_its_time(void **state)
{
	struct town *town = town_create(true, NULL);
	struct asked *a = set(town, 1, 1, "SET a 1234567890");

	(void)state;
	up(town, 1);
	for (int i = 0; i < 20; i++) {
		pass(town, 300);
		pipe_to(town, 1)->upstream.sent++; /* byte by byte */
	}
	assert_false(a->done);
	pass(town, 100);
	pass(town, 1100);
	pass(town, 100);
	/* It was not sent, and waits no longer. */
	failed(a, "-CLUSTERDOWN h:1 does not answer");
	assert_int_equal(town->closed, 1);
	town_destroy(&town);
}

/* A server that closes idle connections is well, however long ago that was. */
static void test_a_connection_that_was_closed_long_ago(void **state)
{
	struct town *town = town_create(true, NULL);
	struct asked *a = get(town, 1, 1, "GET a");

	(void)state;
	up(town, 1);
	sent(town, 1, "GET a");
	reply(town, 1, "$-1\r\n");
	got(a, "$-1\r\n");
	pass(town, 300000);
	down(town, 1);
	pass(town, 300000);
	a = get(town, 1, 1, "GET a");
	assert_false(a->done);
	up(town, 1);
	sent(town, 1, "GET a");
	reply(town, 1, "$-1\r\n");
	got(a, "$-1\r\n");
	/* And one that was away for a long time may be back. */
	down(town, 1);
	a = get(town, 1, 1, "GET a");
	for (int i = 0; i < 30 && !a->done; i++) {
		pass(town, 100);
		if (town->pipes_count > 0)
			down(town, 1);
	}
	failed(a, "-CLUSTERDOWN");
	a = get(town, 1, 1, "GET a");
	failed(a, "-CLUSTERDOWN"); /* at once: it was tried a moment ago */
	pass(town, 300000);
	a = get(town, 1, 1, "GET a");
	assert_false(a->done);
	up(town, 1);
	sent(town, 1, "GET a");
	town_destroy(&town);
}

/* A server that lets everybody in and throws them out at the first word. */
static void test_reconnecting_slows_down(void **state)
{
	struct town *town = town_create(true, NULL);
	struct asked *a = get(town, 1, 1, "GET a");
	int opened = 0;

	(void)state;
	for (int ms = 0; ms < 900; ms++) {
		while (town->pipes_count > 0 && opened < 1000) {
			opened++;
			up(town, 1);
			sent(town, 1, "GET a");
			down(town, 1);
		}
		pass(town, 1);
	}
	assert_in_range(opened, 3, 10);
	assert_false(a->done);
	town_destroy(&town);
}

/* New routes send on what waits for a node that does not answer. One of it is refused, which tries the node once more;
 * its client hears that and asks for the same key again: that goes behind what it had asked before. */
static void test_one_that_waits_is_not_overtaken_when_another_is_refused(void **state)
{
	struct town *town = town_create(true, NULL);
	struct asked *a = set(town, 1, 1, "SET a 1"), *b, *c;
	struct hs_node *node = pipe_to(town, 1)->node;

	(void)state;
	down(town, 1);
	node->backoff.open_at_us = town->now.mono_us + 1100000;
	town->now.mono_us += 600000;
	b = set(town, 1, 1, "SET a 2");
	c = make(town, 1, HS_CMD_ID_SET, 1, "SET a 3");
	town->now.mono_us += 500000;
	c->op.received = town->now;
	town->then = &c->op;
	route(town, 1, 3);
	failed(a, "-CLUSTERDOWN h:1 does not answer");
	up(town, 1);
	sent(town, 1, "SET a 2|SET a 3");
	reply(town, 1, "+OK\r\n+OK\r\n");
	got(b, "+OK\r\n");
	got(c, "+OK\r\n");
	town_destroy(&town);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_pipe_makes_room_while_it_is_read),
		cmocka_unit_test(test_closing_what_is_not_needed_blames_nobody),
		cmocka_unit_test(test_watch_and_exec_have_a_deadline),
		cmocka_unit_test(test_a_lost_watch_is_not_forgotten_over_the_next),
		cmocka_unit_test(test_a_watch_that_is_sent_on_has_an_end),
		cmocka_unit_test(test_watching_again_before_unwatch_is_answered),
		cmocka_unit_test(test_another_dialect_keeps_the_watch),
		cmocka_unit_test(test_a_pipe_that_was_unblocked_is_not_used_again),
		cmocka_unit_test(test_unblocking_goes_nowhere_else),
		cmocka_unit_test(test_unblocking_what_is_on_its_way),
		cmocka_unit_test(test_unblocking_what_is_over),
		cmocka_unit_test(test_a_script_is_killed_past_it),
		cmocka_unit_test(test_a_transaction_is_asked_for_once),
		cmocka_unit_test(test_what_a_script_says_is_an_answer),
		cmocka_unit_test(test_a_script_is_healed_where_it_was_asked_for),
		cmocka_unit_test(test_moved_says_which_slot),
		cmocka_unit_test(test_a_long_reply_may_take_its_time),
		cmocka_unit_test(test_a_long_reply_that_stops_is_given_up),
		cmocka_unit_test(test_a_long_request_may_take_its_time),
		cmocka_unit_test(test_a_connection_that_was_closed_long_ago),
		cmocka_unit_test(test_reconnecting_slows_down),
		cmocka_unit_test(test_one_that_waits_is_not_overtaken_when_another_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
