/* Goal: the flow to Redis servers is right also when two rare events coincide: private connections that close
 * while they are read, watches lost in between, errors raised by a script, requests and replies that take
 * longer than a timeout, servers that come and go.
 *
 * Method: scripts against the flow alone (tests/lib/flow_world.h). Each script reproduces a former bug. */
#include "tests/lib/flow_world.h"

static struct asked *make_blpop(struct flow_world *flow_world, struct hs_command *row,
				uint16_t slot)
{
	struct asked *asked = make(flow_world, 5, HS_CMD_ID_GET, slot, "BLPOP a 0");

	*row = *hs_command_by_id(HS_CMD_ID_GETDEL);
	row->name = "blpop";
	row->flags |= HS_CMD_BLOCKING;
	asked->op.command = row;
	return asked;
}

static struct asked *make_watch(struct flow_world *flow_world, enum hs_op_kind kind, bool watching)
{
	struct asked *asked = make(flow_world, 7, HS_CMD_ID_WATCH, 1, "WATCH a");

	asked->op.kind = kind;
	asked->op.watcher = 7;
	asked->op.has_watches = watching;
	return asked;
}

static struct asked *make_script(struct flow_world *flow_world, struct hs_command *row,
				 const char *name, const char *text)
{
	struct asked *asked = make(flow_world, 1, HS_CMD_ID_GET, 1, text);

	*row = *hs_command_by_id(HS_CMD_ID_GETDEL);
	row->name = name;
	asked->op.command = row;
	return asked;
}

/* The reply to BLPOP frees the private connection. In the callback, the client sends another command that needs
 * a private connection: the flow must not free the first one while it reads replies from it. */
static void test_a_pipe_makes_room_while_it_is_read(void **state)
{
	struct hs_flow_options options = {.cluster = true,
					  .timeout_us = 1000000,
					  .in_flight_max = 10,
					  .waiting_max = 10,
					  .private_max = 1};
	struct flow_world *flow_world = flow_world_create(true, &options);
	struct hs_command row, other;
	struct asked *first = submit(flow_world, make_blpop(flow_world, &row, 1));
	struct asked *second = make_blpop(flow_world, &other, 9000);

	(void)state;
	up(flow_world, 1);
	sent(flow_world, 1, "BLPOP a 0");
	flow_world->then = &second->op;
	reply(flow_world, 1, "$1\r\nx\r\n");
	got(first, "$1\r\nx\r\n");
	up(flow_world, 2);
	sent(flow_world, 2, "BLPOP a 0");
	assert_int_equal(flow_world->pipes_count, 1);
	assert_int_equal(flow_world->stats.private_connections.value, 1);
	assert_int_equal(flow_world->stats.connection_failures.value, 0);
	flow_world_destroy(&flow_world);
}

static void test_closing_an_unneeded_pipe_is_no_failure_of_the_node(void **state)
{
	struct flow_world *flow_world = flow_world_create(true, NULL);
	struct hs_command row;
	struct asked *moved = submit(flow_world, make_blpop(flow_world, &row, 1));

	(void)state;
	up(flow_world, 1);
	sent(flow_world, 1, "BLPOP a 0");
	reply(flow_world, 1, "-MOVED 1 h:2\r\n");
	assert_int_equal(flow_world->closed, 1);
	assert_int_equal(flow_world->stats.connection_failures.value, 0);
	up(flow_world, 2);
	reply(flow_world, 2, "$1\r\nx\r\n");
	got(moved, "$1\r\nx\r\n");
	flow_world_destroy(&flow_world);
}

static void test_watch_and_exec_have_a_deadline(void **state)
{
	struct flow_world *flow_world = flow_world_create(true, NULL);
	struct asked *watching = submit(flow_world, make_watch(flow_world, HS_OP_WATCH, false)),
		     *exec;

	(void)state;
	up(flow_world, 1);
	sent(flow_world, 1, "WATCH a");
	pass(flow_world, 1100);
	failed(watching, "-CLUSTERDOWN the connection to h:1 was lost (no reply within");
	pass(flow_world, 1000);
	watching = submit(flow_world, make_watch(flow_world, HS_OP_WATCH, false));
	up(flow_world, 1);
	sent(flow_world, 1, "WATCH a");
	reply(flow_world, 1, "+OK\r\n");
	got(watching, "+OK\r\n");
	/* WATCH itself has its reply: no timeout applies between WATCH and EXEC. */
	pass(flow_world, 2000);
	exec = submit(flow_world, make_exec(flow_world, 7, NULL, 0));
	sent(flow_world, 1, "MULTI|EXEC");
	pass(flow_world, 1100);
	failed(exec, "-UNKNOWN");
	assert_int_equal(flow_world->pipes_count, 0);
	flow_world_destroy(&flow_world);
}

/* The client sends WATCH a, whose connection is lost, then WATCH b and EXEC: EXEC returns null, because a may
 * have changed. */
static void test_a_lost_watch_is_not_forgotten_over_the_next(void **state)
{
	struct flow_world *flow_world = flow_world_create(true, NULL);
	struct asked *more, *exec;

	(void)state;
	submit(flow_world, make_watch(flow_world, HS_OP_WATCH, false));
	up(flow_world, 1);
	sent(flow_world, 1, "WATCH a");
	reply(flow_world, 1, "+OK\r\n");
	down(flow_world, 1);
	more = submit(flow_world, make_watch(flow_world, HS_OP_WATCH, true));
	got(more, "+OK\r\n");
	assert_int_equal(flow_world->pipes_count, 0);
	exec = submit(flow_world, make_exec(flow_world, 7, NULL, 0));
	got(exec, "*-1\r\n");
	/* The slot moves between WATCH a and WATCH b: EXEC returns null, too. */
	pass(flow_world, 1000);
	submit(flow_world, make_watch(flow_world, HS_OP_WATCH, false));
	up(flow_world, 1);
	sent(flow_world, 1, "WATCH a");
	reply(flow_world, 1, "+OK\r\n");
	more = submit(flow_world, make_watch(flow_world, HS_OP_WATCH, true));
	sent(flow_world, 1, "WATCH a");
	reply(flow_world, 1, "-MOVED 1 h:2\r\n");
	got(more, "+OK\r\n");
	exec = submit(flow_world, make_exec(flow_world, 7, NULL, 0));
	got(exec, "*-1\r\n");
	flow_world_destroy(&flow_world);
}

/* The client sends WATCH and disconnects, so the flow sends UNWATCH after it. The server answers WATCH with
 * ASK: the flow does not send WATCH on, because UNWATCH would not end it there. */
static void test_a_watch_that_is_sent_on_has_an_end(void **state)
{
	struct flow_world *flow_world = flow_world_create(true, NULL);
	struct asked *watching = submit(flow_world, make_watch(flow_world, HS_OP_WATCH, false)),
		     *ending;

	(void)state;
	up(flow_world, 1);
	sent(flow_world, 1, "WATCH a");
	ending = submit(flow_world, make_watch(flow_world, HS_OP_UNWATCH, true));
	sent(flow_world, 1, "UNWATCH");
	reply(flow_world, 1, "-ASK 1 h:2\r\n");
	got(watching, "+OK\r\n");
	got(ending, "+OK\r\n");
	assert_int_equal(flow_world->pipes_count, 0);
	assert_int_equal(flow_world->stats.private_connections.value, 0);
	flow_world_destroy(&flow_world);
}

/* The client sends WATCH again before UNWATCH is answered. The flow uses the same connection or, if the key is
 * on another node, a connection to that node. */
static void test_watching_again_before_unwatch_is_answered(void **state)
{
	struct flow_world *flow_world = flow_world_create(true, NULL);
	struct asked *ending, *again, *exec;

	(void)state;
	submit(flow_world, make_watch(flow_world, HS_OP_WATCH, false));
	up(flow_world, 1);
	sent(flow_world, 1, "WATCH a");
	reply(flow_world, 1, "+OK\r\n");
	ending = submit(flow_world, make_watch(flow_world, HS_OP_UNWATCH, true));
	submit(flow_world, make_watch(flow_world, HS_OP_WATCH, false));
	sent(flow_world, 1, "UNWATCH|WATCH a");
	reply(flow_world, 1, "+OK\r\n");
	got(ending, "+OK\r\n");
	assert_int_equal(flow_world->stats.private_connections.value, 1);
	reply(flow_world, 1, "+OK\r\n");
	submit(flow_world, make_watch(flow_world, HS_OP_WATCH, true));
	sent(flow_world, 1, "WATCH a"); /* the connection still belongs to this client */
	reply(flow_world, 1, "+OK\r\n");
	submit(flow_world, make_watch(flow_world, HS_OP_UNWATCH, true));
	again = make_watch(flow_world, HS_OP_WATCH, false);
	again->op.slot = 16383;
	submit(flow_world, again);
	up(flow_world, 2);
	sent(flow_world, 2, "WATCH a");
	reply(flow_world, 2, "+OK\r\n");
	got(again, "+OK\r\n");
	reply(flow_world, 1,
	      "+OK\r\n"); /* the reply to UNWATCH frees the connection to port 1 only */
	exec = make_exec(flow_world, 7, NULL, 0);
	exec->op.slot = 16383;
	submit(flow_world, exec);
	sent(flow_world, 2, "MULTI|EXEC");
	flow_world_destroy(&flow_world);
}

/* The client sends HELLO 3 between WATCH and EXEC: the flow changes the RESP version of the private connection,
 * and the watch stays. */
static void test_another_dialect_keeps_the_watch(void **state)
{
	struct flow_world *flow_world = flow_world_create(true, NULL);
	struct asked *exec;

	(void)state;
	submit(flow_world, make_watch(flow_world, HS_OP_WATCH, false));
	up(flow_world, 1);
	sent(flow_world, 1, "WATCH a");
	reply(flow_world, 1, "+OK\r\n");
	exec = make_exec(flow_world, 7, NULL, 0);
	exec->op.resp = 3;
	submit(flow_world, exec);
	sent(flow_world, 1, "HELLO 3|MULTI|EXEC");
	reply(flow_world, 1, "%1\r\n$5\r\nproto\r\n:3\r\n+OK\r\n_\r\n");
	got(exec, "_\r\n");
	/* The freed connection counts as a RESP3 connection: a RESP2 client gets another one. */
	assert_int_equal(flow_world->pipes_count, 1);
	submit(flow_world, make_watch(flow_world, HS_OP_WATCH, false));
	assert_int_equal(flow_world->pipes_count, 2);
	flow_world_destroy(&flow_world);
}

/* CLIENT UNBLOCK may reach the server after BLPOP has ended, and would then unblock the next command on the
 * connection: the flow closes the connection. */
static void test_a_pipe_that_was_unblocked_is_not_used_again(void **state)
{
	struct flow_world *flow_world = flow_world_create(true, NULL);
	struct hs_command row;
	struct asked *blocked = submit(flow_world, make_blpop(flow_world, &row, 1));
	struct hs_pipe *pipe;

	(void)state;
	up(flow_world, 1);
	sent(flow_world, 1, "BLPOP a 0");
	pipe = pipe_to(flow_world, 1);
	pipe->upstream.server_id = 42;
	assert_true(hs_flow_unblock(flow_world->flow, &blocked->op, false));
	hs_flow_receive(flow_world->flow, flow_world->now, pipe, "*-1\r\n", 5);
	hs_flow_flush(flow_world->flow, flow_world->now);
	got(blocked, "*-1\r\n");
	assert_int_equal(flow_world->closed, 1);
	up(flow_world, 1);
	sent(flow_world, 1, "CLIENT UNBLOCK 42 TIMEOUT");
	reply(flow_world, 1, ":0\r\n");
	flow_world_destroy(&flow_world);
}

/* CLIENT UNBLOCK goes to the server that has the blocked connection, and to no other. */
static void test_unblocking_goes_to_the_connection_s_server_alone(void **state)
{
	struct flow_world *flow_world = flow_world_create(true, NULL);
	struct hs_command row;
	struct asked *blocked = submit(flow_world, make_blpop(flow_world, &row, 9000));

	(void)state;
	up(flow_world, 2);
	sent(flow_world, 2, "BLPOP a 0");
	pipe_to(flow_world, 2)->upstream.server_id = 42;
	assert_true(hs_flow_unblock(flow_world->flow, &blocked->op, false));
	hs_flow_flush(flow_world->flow, flow_world->now);
	down(flow_world, 2); /* this connection would have carried CLIENT UNBLOCK */
	assert_int_equal(flow_world->pipes_count, 1);
	pass(flow_world, 100); /* the flow sends CLIENT UNBLOCK again, to the same server */
	assert_int_equal(flow_world->pipes_count, 2);
	up(flow_world, 2);
	sent(flow_world, 2, "CLIENT UNBLOCK 42 TIMEOUT");
	reply(flow_world, 2, ":1\r\n");
	pass(flow_world, 100);
	sent(flow_world, 2, "");
	flow_world_destroy(&flow_world);
}

/* BLPOP and CLIENT UNBLOCK go to the server on different connections: the server may read them in any order. */
static void test_unblocking_a_request_not_yet_sent(void **state)
{
	struct flow_world *flow_world = flow_world_create(true, NULL);
	struct hs_command row;
	struct asked *blocked = submit(flow_world, make_blpop(flow_world, &row, 1));
	struct hs_pipe *own = pipe_to(flow_world, 1);

	(void)state;
	/* The connection for BLPOP is not open yet. */
	assert_true(hs_flow_unblock(flow_world->flow, &blocked->op, true));
	assert_int_equal(flow_world->pipes_count, 1);
	own->upstream.server_id = 42;
	up(flow_world, 1);
	assert_int_equal(
		flow_world->pipes_count,
		2); /* BLPOP is sent, and the connection for CLIENT UNBLOCK is being opened */
	assert_int_equal(own->in_flight.count, 1);
	own->upstream.sent += own->upstream.out.len;
	own->upstream.out.len = 0;
	up(flow_world, 1);
	sent(flow_world, 1, "CLIENT UNBLOCK 42 ERROR");
	/* The server answers 0, because it has not read BLPOP yet: the flow sends CLIENT UNBLOCK again, at once
	 * and later with every tick. */
	for (int i = 1; i < 8; i++) {
		reply(flow_world, 1, ":0\r\n");
		sent(flow_world, 1, "CLIENT UNBLOCK 42 ERROR");
	}
	reply(flow_world, 1, ":0\r\n");
	sent(flow_world, 1, "");
	pass(flow_world, 100);
	sent(flow_world, 1, "CLIENT UNBLOCK 42 ERROR");
	pass(flow_world, 100); /* one CLIENT UNBLOCK is in flight already */
	sent(flow_world, 1, "");
	reply(flow_world, 1, ":1\r\n");
	hs_flow_receive(flow_world->flow, flow_world->now, own, "-UNBLOCKED x\r\n", 14);
	hs_flow_flush(flow_world->flow, flow_world->now);
	got(blocked, "-UNBLOCKED x\r\n");
	pass(flow_world, 100);
	sent(flow_world, 1, "");
	flow_world_destroy(&flow_world);
}

/* BLPOP was answered just before: whatever the server replies to CLIENT UNBLOCK, the flow does not try again. */
static void test_unblocking_an_answered_request(void **state)
{
	struct flow_world *flow_world = flow_world_create(true, NULL);
	struct hs_command row;
	struct asked *blocked = submit(flow_world, make_blpop(flow_world, &row, 1));
	struct hs_pipe *own = pipe_to(flow_world, 1);

	(void)state;
	own->upstream.server_id = 42;
	up(flow_world, 1);
	sent(flow_world, 1, "BLPOP a 0");
	assert_true(hs_flow_unblock(flow_world->flow, &blocked->op, false));
	up(flow_world, 1);
	sent(flow_world, 1, "CLIENT UNBLOCK 42 TIMEOUT");
	hs_flow_receive(flow_world->flow, flow_world->now, own, "*2\r\n$1\r\na\r\n$1\r\nx\r\n", 18);
	hs_flow_flush(flow_world->flow, flow_world->now);
	assert_true(blocked->done);
	reply(flow_world, 1, ":0\r\n");
	pass(flow_world, 100);
	sent(flow_world, 1, "");
	assert_int_equal(flow_world->pipes_count, 1);
	flow_world_destroy(&flow_world);
}

/* SCRIPT KILL gets a connection for itself, whatever the state of the other connections to the server. */
static void test_script_kill_bypasses_a_running_script(void **state)
{
	static const struct hs_command kill = {
		.name = "script|kill",
		.id = HS_CMD_IDS,
		.place = HS_PLACE_ALL,
		.merge = HS_MERGE_ONE_SUCCEEDED,
		.arity = 2,
	};
	struct flow_world *flow_world = flow_world_create(true, NULL);
	struct asked *script = set(flow_world, 1, 1, "SET a script"), *killed;
	struct hs_pipe *shared, *own;

	(void)state;
	up(flow_world, 1);
	sent(flow_world, 1, "SET a script");
	shared = pipe_to(flow_world, 1);
	killed = make(flow_world, 2, HS_CMD_ID_GET, HS_SLOT_NONE, "SCRIPT KILL");
	killed->op.command = &kill;
	submit(flow_world, killed);
	own = pipe_to(flow_world, 1);
	assert_ptr_not_equal(own, shared);
	assert_true(own->hello_only); /* a busy server does not answer CLUSTER MYID */
	up(flow_world, 1);
	sent(flow_world, 1, "SCRIPT KILL");
	reply(flow_world, 1, "+OK\r\n");
	got(killed, "+OK\r\n");
	/* The connection of SCRIPT KILL is closed: no other command uses it. */
	assert_int_equal(flow_world->pipes_count, 1);
	hs_flow_receive(flow_world->flow, flow_world->now, shared, "-ERR killed\r\n", 13);
	got(script, "-ERR killed\r\n");
	/* A SCRIPT KILL whose connection does not open fails after the timeout. */
	killed = make(flow_world, 2, HS_CMD_ID_GET, HS_SLOT_NONE, "SCRIPT KILL");
	killed->op.command = &kill;
	submit(flow_world, killed);
	assert_false(killed->done);
	pass(flow_world, 2000);
	failed(killed, "-CLUSTERDOWN");
	flow_world_destroy(&flow_world);
}

static void test_a_transaction_sends_asking_once(void **state)
{
	struct flow_world *flow_world = flow_world_create(true, NULL);
	struct hs_bytes incr[] = {HS_LIT("INCR"), HS_LIT("a")};
	struct hs_op_tx_command commands[] = {
		{.command = hs_command_by_id(HS_CMD_ID_INCR), .argv = incr, .argc = 2},
		{.command = hs_command_by_id(HS_CMD_ID_INCR), .argv = incr, .argc = 2},
	};
	struct asked *exec;

	(void)state;
	get(flow_world, 1, 9000, "GET z");
	up(flow_world, 2);
	sent(flow_world, 2, "GET z");
	reply(flow_world, 2, "$-1\r\n");
	exec = submit(flow_world, make_exec(flow_world, 0, commands, 2));
	up(flow_world, 1);
	sent(flow_world, 1, "MULTI|INCR a|INCR a|EXEC");
	reply(flow_world, 1,
	      "+OK\r\n-ASK 1 h:2\r\n-ASK 1 h:2\r\n-EXECABORT Transaction discarded\r\n");
	sent(flow_world, 2, "ASKING|MULTI|INCR a|INCR a|EXEC");
	reply(flow_world, 2, "+OK\r\n+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n:1\r\n:2\r\n");
	got(exec, "*2\r\n:1\r\n:2\r\n");
	flow_world_destroy(&flow_world);
}

/* A script may itself raise TRYAGAIN, after it has written: the flow passes its error on and does not retry. */
static void test_an_error_raised_by_a_script_is_final(void **state)
{
	struct flow_world *flow_world = flow_world_create(true, NULL);
	struct hs_command row;
	struct asked *a = submit(flow_world, make_script(flow_world, &row, "eval", "EVAL x 1 k")),
		     *b;

	(void)state;
	up(flow_world, 1);
	sent(flow_world, 1, "EVAL x 1 k");
	reply(flow_world, 1, "-TRYAGAIN no stock\r\n");
	got(a, "-TRYAGAIN no stock\r\n");
	b = submit(flow_world, make_script(flow_world, &row, "eval", "EVAL x 1 k"));
	sent(flow_world, 1, "EVAL x 1 k");
	reply(flow_world, 1, "-TRYAGAIN Multiple keys request during rehashing of slot\r\n");
	assert_false(b->done);
	pass(flow_world, 100);
	sent(flow_world, 1, "EVAL x 1 k");
	reply(flow_world, 1, ":1\r\n");
	got(b, ":1\r\n");
	flow_world_destroy(&flow_world);
}

static void test_a_script_is_loaded_where_it_was_missing(void **state)
{
	struct flow_world *flow_world = flow_world_create(true, NULL);
	struct hs_command row;
	struct asked *a;

	(void)state;
	flow_world->script = "return 1";
	get(flow_world, 1, 9000, "GET z");
	up(flow_world, 2);
	sent(flow_world, 2, "GET z");
	reply(flow_world, 2, "$-1\r\n");
	a = submit(flow_world, make_script(flow_world, &row, "evalsha", "EVALSHA abc 1 k"));
	up(flow_world, 1);
	sent(flow_world, 1, "EVALSHA abc 1 k");
	reply(flow_world, 1, "-ASK 1 h:2\r\n");
	sent(flow_world, 2, "ASKING|EVALSHA abc 1 k");
	reply(flow_world, 2, "+OK\r\n-NOSCRIPT No matching script. Please use EVAL.\r\n");
	sent(flow_world, 2, "ASKING|EVAL return 1 1 k");
	reply(flow_world, 2,
	      "+OK\r\n-MOVED 1 h:1\r\n"); /* the migration was cancelled: the flow retries at the owner */
	sent(flow_world, 1, "EVALSHA abc 1 k");
	reply(flow_world, 1, "-NOSCRIPT No matching script. Please use EVAL.\r\n");
	sent(flow_world, 1, "EVAL return 1 1 k");
	reply(flow_world, 1, ":1\r\n");
	got(a, ":1\r\n");
	flow_world_destroy(&flow_world);
}

/* Only the server knows the keys of this command: its MOVED error applies to the slot that it names, not to the
 * slot that the flow guessed. */
static void test_moved_names_the_slot(void **state)
{
	struct flow_world *flow_world = flow_world_create(true, NULL);
	struct asked *a = set(flow_world, 1, 1, "MODULE.SET x"), *b;

	(void)state;
	up(flow_world, 1);
	sent(flow_world, 1, "MODULE.SET x");
	reply(flow_world, 1, "-MOVED 9000 h:2\r\n");
	up(flow_world, 2);
	sent(flow_world, 2, "MODULE.SET x");
	reply(flow_world, 2, "+OK\r\n");
	got(a, "+OK\r\n");
	b = get(flow_world, 1, 1, "GET a");
	sent(flow_world, 1, "GET a");
	reply(flow_world, 1, "$-1\r\n");
	got(b, "$-1\r\n");
	flow_world_destroy(&flow_world);
}

static void test_a_long_reply_may_take_its_time(void **state)
{
	struct flow_world *flow_world = flow_world_create(true, NULL);
	struct asked *a = get(flow_world, 1, 1, "GET a"), *b = get(flow_world, 2, 2, "GET b");
	enum { PIECE = 100000, PIECES = 20 };
	char *piece = hs_mem_zalloc(PIECE);
	char head[32];

	(void)state;
	up(flow_world, 1);
	sent(flow_world, 1, "GET a|GET b");
	snprintf(head, sizeof head, "$%d\r\n", PIECE * PIECES);
	reply(flow_world, 1, head);
	for (int i = 0; i < PIECES; i++) {
		pass(flow_world, 500);
		hs_flow_receive(flow_world->flow, flow_world->now, pipe_to(flow_world, 1), piece,
				PIECE);
	}
	reply(flow_world, 1, "\r\n");
	assert_true(a->done);
	assert_int_equal(a->reply.data[0], '$');
	/* The timeout of the next operation runs from the end of this reply. */
	pass(flow_world, 900);
	assert_false(b->done);
	pass(flow_world, 200);
	assert_int_equal(flow_world->closed, 1);
	hs_mem_release(piece);
	flow_world_destroy(&flow_world);
}

static void test_a_long_reply_that_stops_is_given_up(void **state)
{
	struct flow_world *flow_world = flow_world_create(true, NULL);
	struct asked *a = set(flow_world, 1, 1, "GETDEL a");
	char *piece = hs_mem_zalloc(100000);

	(void)state;
	up(flow_world, 1);
	sent(flow_world, 1, "GETDEL a");
	reply(flow_world, 1, "$200000\r\n");
	pass(flow_world, 900);
	hs_flow_receive(flow_world->flow, flow_world->now, pipe_to(flow_world, 1), piece, 100000);
	pass(flow_world, 900);
	assert_false(a->done);
	pass(flow_world, 200);
	failed(a, "-UNKNOWN");
	hs_mem_release(piece);
	flow_world_destroy(&flow_world);
}

static void test_a_long_request_may_take_its_time(void **state)
{
	struct flow_world *flow_world = flow_world_create(true, NULL);
	struct asked *a = set(flow_world, 1, 1, "SET a 1234567890");

	(void)state;
	up(flow_world, 1);
	for (int i = 0; i < 20; i++) {
		pass(flow_world, 300);
		pipe_to(flow_world, 1)->upstream.sent++; /* the server reads one byte at a time */
	}
	assert_false(a->done);
	pass(flow_world, 100);
	pass(flow_world, 1100);
	pass(flow_world, 100);
	/* The request was not sent completely: the operation fails. */
	failed(a, "-CLUSTERDOWN h:1 does not answer");
	assert_int_equal(flow_world->closed, 1);
	flow_world_destroy(&flow_world);
}

/* A server that closed an idle connection long ago counts as up: the flow connects again. */
static void test_a_connection_that_was_closed_long_ago(void **state)
{
	struct flow_world *flow_world = flow_world_create(true, NULL);
	struct asked *a = get(flow_world, 1, 1, "GET a");

	(void)state;
	up(flow_world, 1);
	sent(flow_world, 1, "GET a");
	reply(flow_world, 1, "$-1\r\n");
	got(a, "$-1\r\n");
	pass(flow_world, 300000);
	down(flow_world, 1);
	pass(flow_world, 300000);
	a = get(flow_world, 1, 1, "GET a");
	assert_false(a->done);
	up(flow_world, 1);
	sent(flow_world, 1, "GET a");
	reply(flow_world, 1, "$-1\r\n");
	got(a, "$-1\r\n");
	/* A server that has been down for long may be back: the flow tries again. */
	down(flow_world, 1);
	a = get(flow_world, 1, 1, "GET a");
	for (int i = 0; i < 30 && !a->done; i++) {
		pass(flow_world, 100);
		if (flow_world->pipes_count > 0)
			down(flow_world, 1);
	}
	failed(a, "-CLUSTERDOWN");
	a = get(flow_world, 1, 1, "GET a");
	failed(a, "-CLUSTERDOWN"); /* fails at once: the flow tried to connect just before */
	pass(flow_world, 300000);
	a = get(flow_world, 1, 1, "GET a");
	assert_false(a->done);
	up(flow_world, 1);
	sent(flow_world, 1, "GET a");
	flow_world_destroy(&flow_world);
}

/* A server accepts connections and drops them at the first command: the flow connects less and less often. */
static void test_reconnecting_slows_down(void **state)
{
	struct flow_world *flow_world = flow_world_create(true, NULL);
	struct asked *a = get(flow_world, 1, 1, "GET a");
	int opened = 0;

	(void)state;
	for (int ms = 0; ms < 900; ms++) {
		while (flow_world->pipes_count > 0 && opened < 1000) {
			opened++;
			up(flow_world, 1);
			sent(flow_world, 1, "GET a");
			down(flow_world, 1);
		}
		pass(flow_world, 1);
	}
	assert_in_range(opened, 3, 10);
	assert_false(a->done);
	flow_world_destroy(&flow_world);
}

/* New routes move two operations that wait for a node that does not answer. The first is refused, which starts
 * another attempt to connect; in its callback the client sends a third command for the same key, which must run
 * after the second. */
static void test_one_that_waits_is_not_overtaken_when_another_is_refused(void **state)
{
	struct flow_world *flow_world = flow_world_create(true, NULL);
	struct asked *a = set(flow_world, 1, 1, "SET a 1"), *b, *c;
	struct hs_node *node = pipe_to(flow_world, 1)->node;

	(void)state;
	down(flow_world, 1);
	node->backoff.open_at_us = flow_world->now.mono_us + 1100000;
	flow_world->now.mono_us += 600000;
	b = set(flow_world, 1, 1, "SET a 2");
	c = make(flow_world, 1, HS_CMD_ID_SET, 1, "SET a 3");
	flow_world->now.mono_us += 500000;
	c->op.received = flow_world->now;
	flow_world->then = &c->op;
	route(flow_world, 1, 3);
	failed(a, "-CLUSTERDOWN h:1 does not answer");
	up(flow_world, 1);
	sent(flow_world, 1, "SET a 2|SET a 3");
	reply(flow_world, 1, "+OK\r\n+OK\r\n");
	got(b, "+OK\r\n");
	got(c, "+OK\r\n");
	flow_world_destroy(&flow_world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_pipe_makes_room_while_it_is_read),
		cmocka_unit_test(test_closing_an_unneeded_pipe_is_no_failure_of_the_node),
		cmocka_unit_test(test_watch_and_exec_have_a_deadline),
		cmocka_unit_test(test_a_lost_watch_is_not_forgotten_over_the_next),
		cmocka_unit_test(test_a_watch_that_is_sent_on_has_an_end),
		cmocka_unit_test(test_watching_again_before_unwatch_is_answered),
		cmocka_unit_test(test_another_dialect_keeps_the_watch),
		cmocka_unit_test(test_a_pipe_that_was_unblocked_is_not_used_again),
		cmocka_unit_test(test_unblocking_goes_to_the_connection_s_server_alone),
		cmocka_unit_test(test_unblocking_a_request_not_yet_sent),
		cmocka_unit_test(test_unblocking_an_answered_request),
		cmocka_unit_test(test_script_kill_bypasses_a_running_script),
		cmocka_unit_test(test_a_transaction_sends_asking_once),
		cmocka_unit_test(test_an_error_raised_by_a_script_is_final),
		cmocka_unit_test(test_a_script_is_loaded_where_it_was_missing),
		cmocka_unit_test(test_moved_names_the_slot),
		cmocka_unit_test(test_a_long_reply_may_take_its_time),
		cmocka_unit_test(test_a_long_reply_that_stops_is_given_up),
		cmocka_unit_test(test_a_long_request_may_take_its_time),
		cmocka_unit_test(test_a_connection_that_was_closed_long_ago),
		cmocka_unit_test(test_reconnecting_slows_down),
		cmocka_unit_test(test_one_that_waits_is_not_overtaken_when_another_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
