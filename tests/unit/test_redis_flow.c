/* The flow of operations to Redis servers: what is sent where, in which order, and what becomes of
 * it when slots move, servers refuse and connections end (laws 2, 4 and 6).
 *
 * Scripts in which the test is the cluster (tests/lib/flow.h): slot 1 is at port 1, slot 9000 at
 * port 2. */
#include "tests/lib/flow.h"

static void test_requests_and_replies_in_order(void **state)
{
	struct town *town = town_create(true, NULL);
	struct asked *a, *b, *c;

	(void)state;
	a = set(town, 1, 1, "SET a 1");
	b = get(town, 2, 1, "GET a");
	c = get(town, 1, 9000, "GET z");
	up(town, 1);
	up(town, 2);
	sent(town, 1, "SET a 1|GET a");
	sent(town, 2, "GET z");
	reply(town, 2, "$-1\r\n");
	got(c, "$-1\r\n");
	reply(town, 1, "+OK\r\n$1\r\n1\r\n");
	got(a, "+OK\r\n");
	got(b, "$1\r\n1\r\n");
	town_destroy(&town);
}

static void test_a_reply_in_pieces(void **state)
{
	struct town *town = town_create(true, NULL);
	const char *text = "*2\r\n$3\r\nabc\r\n*1\r\n:5\r\n";

	(void)state;
	for (size_t cut = 1; cut < strlen(text); cut++) {
		struct asked *a = get(town, 1, 1, "GET a"), *b = get(town, 1, 1, "GET b");
		char half[64];

		if (cut == 1)
			up(town, 1);
		sent(town, 1, "GET a|GET b");
		snprintf(half, sizeof half, "%.*s", (int)cut, text);
		reply(town, 1, half);
		assert_false(a->done);
		snprintf(half, sizeof half, "%s+OK\r\n", text + cut);
		reply(town, 1, half);
		got(a, text);
		got(b, "+OK\r\n");
	}
	town_destroy(&town);
}

static void test_a_long_reply_changes_hands(void **state)
{
	struct town *town = town_create(true, NULL);
	struct asked *a = get(town, 1, 1, "GET a");
	size_t size = 1 << 20, rest = size - 1 + 2, room;
	char *text = hs_mem_alloc(rest);
	struct hs_pipe *pipe;

	(void)state;
	memset(text, 'x', rest);
	memcpy(text + rest - 2, "\r\n", 2);
	up(town, 1);
	sent(town, 1, "GET a");
	reply(town, 1, "$1048576\r\nx");
	pipe = pipe_to(town, 1);
	for (size_t at = 0; at < rest; at += room) {
		char *own = hs_upstream_room(&pipe->upstream, &room);

		if (!own)
			room = rest - at; /* near its end any buffer will do */
		assert_true(room <= rest - at);
		if (own)
			memcpy(own, text + at, room);
		hs_flow_receive(town->flow, town->now, pipe, own ? own : text + at, room);
	}
	hs_mem_release(text);
	assert_true(a->done);
	assert_int_equal(a->reply.len, size + strlen("$1048576\r\n\r\n"));
	assert_int_equal(a->out.len, a->reply.len); /* in the operation's own buffer */
	town_destroy(&town);
}

static void test_moved(void **state)
{
	struct town *town = town_create(true, NULL);
	struct asked *a, *b, *c;

	(void)state;
	a = set(town, 1, 1, "SET a 1");
	b = set(town, 1, 1, "SET a 2");
	up(town, 1);
	sent(town, 1, "SET a 1|SET a 2");
	reply(town, 1, "-MOVED 1 h:3\r\n");
	assert_int_equal(town->surprises, 1);
	/* The slot's owner is known, but b is still on its way: c must not overtake it. */
	c = get(town, 1, 1, "GET a");
	reply(town, 1, "-MOVED 1 h:3\r\n");
	up(town, 3);
	sent(town, 3, "SET a 1|SET a 2|GET a");
	reply(town, 3, "+OK\r\n+OK\r\n$1\r\n2\r\n");
	got(a, "+OK\r\n");
	got(b, "+OK\r\n");
	got(c, "$1\r\n2\r\n");
	town_destroy(&town);
}

static void test_new_routes_wait_for_what_is_under_way(void **state)
{
	struct town *town = town_create(true, NULL);
	struct asked *a, *b;

	(void)state;
	a = set(town, 1, 1, "SET a 1");
	up(town, 1);
	sent(town, 1, "SET a 1");
	route(town, 3, 2);
	b = set(town, 1, 1, "SET a 2");
	assert_int_equal(town->pipes_count, 1); /* nobody has gone to port 3 yet */
	reply(town, 1, "-MOVED 1 h:3\r\n");
	up(town, 3);
	sent(town, 3, "SET a 1|SET a 2");
	reply(town, 3, "+OK\r\n+OK\r\n");
	got(a, "+OK\r\n");
	got(b, "+OK\r\n");
	town_destroy(&town);
}

/* Who owns a slot: the routes say so, then a redirect, then the next routes, the same ones or others, and
 * also of slots that were never used before. */
static void test_the_last_word_on_an_owner_counts(void **state)
{
	struct town *town = town_create(true, NULL);

	(void)state;
	get(town, 1, 1, "GET a");
	up(town, 1);
	sent(town, 1, "GET a");
	reply(town, 1, "-MOVED 1 h:2\r\n");
	up(town, 2);
	sent(town, 2, "GET a");
	reply(town, 2, "$-1\r\n");
	route(town, 1, 2);
	get(town, 1, 1, "GET a");
	get(town, 1, 9000, "GET b");
	sent(town, 1, "GET a");
	sent(town, 2, "GET b");
	reply(town, 1, "$-1\r\n");
	reply(town, 2, "$-1\r\n");
	/* One that hands a slot over does so no more when it has another owner. */
	get(town, 1, 2, "GET d");
	sent(town, 1, "GET d");
	reply(town, 1, "-ASK 2 h:2\r\n");
	sent(town, 2, "ASKING|GET d");
	reply(town, 2, "+OK\r\n$-1\r\n");
	assert_true(hs_slot_is_leaving(town->flow, 2));
	route(town, 2, 1);
	assert_false(hs_slot_is_leaving(town->flow, 2));
	get(town, 1, 1, "GET a");
	get(town, 1, 9000, "GET b");
	get(town, 1, 100, "GET c");
	sent(town, 2, "GET a|GET c");
	sent(town, 1, "GET b");
	reply(town, 1, "$-1\r\n");
	reply(town, 2, "$-1\r\n$-1\r\n");
	for (int i = 0; i < town->ops_count; i++)
		got(&town->ops[i], "$-1\r\n");
	town_destroy(&town);
}

/* A host left out is the one that answered. */
static void test_moved_to_a_port_alone(void **state)
{
	struct town *town = town_create(true, NULL);
	struct asked *a = set(town, 1, 1, "SET a 1");

	(void)state;
	up(town, 1);
	sent(town, 1, "SET a 1");
	reply(town, 1, "-MOVED 1 :2\r\n");
	assert_string_equal(pipe_to(town, 2)->node->at.host, "h");
	up(town, 2); /* the node of the routes, not another one */
	sent(town, 2, "SET a 1");
	reply(town, 2, "+OK\r\n");
	got(a, "+OK\r\n");
	assert_int_equal(town->flow->nodes_count, 2);
	town_destroy(&town);
}

/* The server would tell a host name, and nobody has set one: the next topology says where the slot is. */
static void test_moved_nobody_knows_where_to(void **state)
{
	struct town *town = town_create(true, NULL);
	struct asked *a = set(town, 1, 1, "SET a 1"), *b;

	(void)state;
	up(town, 1);
	sent(town, 1, "SET a 1");
	reply(town, 1, "-MOVED 1 ?:2\r\n");
	assert_int_equal(town->surprises, 1);
	assert_int_equal(town->pipes_count, 1);
	assert_int_equal(town->flow->nodes_count, 2); /* no host is called "?" */
	pass(town, 30);
	sent(town, 1, "SET a 1");
	reply(town, 1, "-ASK 1 ?:2\r\n");
	route(town, 3, 2);
	up(town, 3);
	sent(town, 3, "SET a 1");
	reply(town, 3, "+OK\r\n");
	got(a, "+OK\r\n");
	/* The topology never says so. */
	b = set(town, 1, 1, "SET a 2");
	for (int i = 0; i < 100 && !b->done; i++) {
		if (pipe_to(town, 3)->upstream.out.len > 0) {
			sent(town, 3, "SET a 2");
			reply(town, 3, "-MOVED 1 ?:2\r\n");
		}
		pass(town, 100);
	}
	failed(b, "-CLUSTERDOWN slot on the move (MOVED 1 ?:2); not run\r");
	town_destroy(&town);
}

static void test_moved_in_circles_ends(void **state)
{
	struct town *town = town_create(true, NULL);
	struct asked *a = set(town, 1, 1, "SET a 1");

	(void)state;
	up(town, 1);
	for (int i = 0; i < 100 && !a->done; i++) {
		if (pipe_to(town, 1)->upstream.out.len > 0) {
			sent(town, 1, "SET a 1");
			reply(town, 1, "-MOVED 1 h:1\r\n");
		}
		pass(town, 100);
	}
	/* Nothing that a client which knows of clusters would follow. */
	failed(a, "-CLUSTERDOWN slot on the move (MOVED 1 h:1); not run\r");
	town_destroy(&town);
}

static void test_ask(void **state)
{
	struct town *town = town_create(true, NULL);
	struct asked *a, *b;

	(void)state;
	get(town, 9, 9000, "GET z");
	up(town, 2);
	sent(town, 2, "GET z");
	reply(town, 2, "$-1\r\n");
	a = set(town, 1, 1, "SET a 1");
	b = get(town, 1, 1, "GET b");
	up(town, 1);
	sent(town, 1, "SET a 1|GET b");
	reply(town, 1, "-ASK 1 h:2\r\n$1\r\nb\r\n");
	got(b, "$1\r\nb\r\n"); /* its key was still there */
	sent(town, 2, "ASKING|SET a 1");
	reply(town, 2, "+OK\r\n+OK\r\n");
	got(a, "+OK\r\n");
	/* The slot itself has not moved. */
	get(town, 1, 1, "GET a");
	sent(town, 1, "GET a");
	town_destroy(&town);
}

static void test_again_later(void **state)
{
	struct town *town = town_create(true, NULL);
	struct asked *a, *b;

	(void)state;
	a = set(town, 1, 1, "MSET a 1 b");
	up(town, 1);
	sent(town, 1, "MSET a 1 b");
	reply(town, 1, "-TRYAGAIN Multiple keys request during rehashing of slot\r\n");
	b = set(town, 2, 1, "SET a 2"); /* behind it, though another's */
	sent(town, 1, "");
	pass(town, 100);
	sent(town, 1, "MSET a 1 b|SET a 2");
	reply(town, 1, "+OK\r\n+OK\r\n");
	got(a, "+OK\r\n");
	got(b, "+OK\r\n");
	town_destroy(&town);
}

static void test_a_refusal_that_stays(void **state)
{
	struct town *town = town_create(true, NULL);
	struct asked *a = set(town, 1, 1, "SET a 1");

	(void)state;
	up(town, 1);
	for (int i = 0; i < 20 && !a->done; i++) {
		if (pipe_to(town, 1)->upstream.out.len > 0) {
			sent(town, 1, "SET a 1");
			reply(town, 1, "-CLUSTERDOWN The cluster is down\r\n");
		}
		pass(town, 100);
	}
	failed(a, "-CLUSTERDOWN The cluster is down");
	town_destroy(&town);
}

static void test_what_a_lost_connection_means(void **state)
{
	struct town *town = town_create(true, NULL);
	struct asked *write, *read, *unread, *late, *unsent;

	(void)state;
	read = get(town, 1, 1, "GET r");
	unread = get(town, 2, 2, "GET u");
	write = set(town, 3, 3, "INCR w");
	late = set(town, 2, 2, "INCR u"); /* the same client and slot as `unread` */
	up(town, 1);
	sent(town, 1, "GET r|GET u|INCR w|INCR u");
	unsent = set(town, 4, 4, "INCR x");
	down(town, 1);
	failed(write, "-UNKNOWN the connection to h:1 was lost");
	failed(late, "-UNKNOWN");
	failed(unread, "-UNKNOWN"); /* it must not see what `late` may have done */
	assert_false(read->done);
	assert_false(unsent->done);
	up(town, 1);
	sent(town, 1, "GET r|INCR x");
	reply(town, 1, "$-1\r\n:1\r\n");
	got(read, "$-1\r\n");
	got(unsent, ":1\r\n");
	assert_int_equal(town->stats.unknown.value, 3);
	town_destroy(&town);
}

static void test_half_a_request_is_none(void **state)
{
	struct town *town = town_create(true, NULL);
	struct asked *whole, *half;

	(void)state;
	whole = set(town, 1, 1, "INCR a");
	half = set(town, 2, 2, "INCR b");
	up(town, 1);
	pipe_to(town, 1)->upstream.sent = pipe_to(town, 1)->upstream.composed - 1;
	down(town, 1);
	failed(whole, "-UNKNOWN");
	assert_false(half->done);
	town_destroy(&town);
}

static void test_retried_go_before_those_that_waited(void **state)
{
	struct hs_flow_options options = {
		.cluster = true,
		.timeout_us = 1000000,
		.in_flight_max = 1,
		.waiting_max = 10,
		.private_max = 1,
	};
	struct town *town = town_create(true, &options);

	(void)state;
	get(town, 1, 1, "GET a");
	set(town, 1, 1, "SET a 1");
	up(town, 1);
	sent(town, 1, "GET a");
	down(town, 1);
	up(town, 1);
	sent(town, 1, "GET a");
	reply(town, 1, "$-1\r\n");
	sent(town, 1, "SET a 1");
	town_destroy(&town);
}

static void test_limits(void **state)
{
	struct hs_flow_options options = {
		.cluster = true,
		.timeout_us = 1000000,
		.in_flight_max = 2,
		.waiting_max = 1,
		.private_max = 1,
	};
	struct town *town = town_create(true, &options);
	struct asked *fourth, *other;

	(void)state;
	get(town, 1, 1, "GET a");
	up(town, 1);
	get(town, 1, 1, "GET b");
	get(town, 1, 1, "GET c");
	assert_int_equal(town->stats.waiting[0], 1);
	fourth = get(town, 1, 1, "GET d");
	failed(fourth, "-BUSY 1 requests wait for h:1 already (engine-queue)");
	other = get(town, 1, 9000, "GET z"); /* nobody else's trouble */
	assert_false(other->done);
	sent(town, 1, "GET a|GET b");
	reply(town, 1, "$-1\r\n");
	sent(town, 1, "GET c");
	assert_int_equal(town->stats.waiting[0], 0);
	town_destroy(&town);
}

static void test_what_waits_is_counted_where_its_node_is(void **state)
{
	struct town *town = town_create(true, NULL);

	(void)state;
	get(town, 1, 1, "GET a");
	assert_int_equal(town->stats.waiting[0], 1);
	route(town, 2, 1); /* the two have changed places */
	assert_int_equal(town->stats.waiting[0], 1);
	assert_int_equal(town->stats.waiting[1], 0);
	up(town, 2);
	sent(town, 2, "GET a");
	assert_int_equal(town->stats.waiting[0], 0);
	assert_int_equal(town->stats.waiting[1], 0);
	town_destroy(&town);
}

static void test_parked_are_limited_too(void **state)
{
	struct hs_flow_options options = {
		.cluster = true,
		.timeout_us = 1000000,
		.in_flight_max = 9,
		.waiting_max = 1,
		.private_max = 1,
	};
	struct town *town = town_create(true, &options);
	struct asked *a, *b;

	(void)state;
	set(town, 1, 1, "SET a 1");
	up(town, 1);
	sent(town, 1, "SET a 1");
	route(town, 3, 2);
	a = get(town, 2, 1, "GET a");
	b = get(town, 3, 1, "GET a");
	assert_false(a->done);
	failed(b, "-BUSY 1 requests wait for slots on the move");
	town_destroy(&town);
}

/* What it waited before counts; a fifth of the time is left to it in any case. */
static void test_time_spent_waiting_is_spent(void **state)
{
	struct town *town = town_create(true, NULL);
	struct asked *a;

	(void)state;
	town->now.mono_us += 10000000;
	a = make(town, 1, HS_CMD_ID_SET, 1, "SET a 1");
	a->op.since_us = town->now.mono_us - 950000;
	submit(town, a);
	pass(town, 150);
	assert_false(a->done);
	pass(town, 100);
	assert_true(a->done);
	town_destroy(&town);
}

static void test_no_reply_in_time(void **state)
{
	struct town *town = town_create(true, NULL);
	struct asked *write, *waits, *late;

	(void)state;
	write = set(town, 1, 1, "INCR a");
	up(town, 1);
	sent(town, 1, "INCR a");
	pass(town, 900);
	assert_false(write->done);
	pass(town, 200);
	failed(write, "-UNKNOWN the connection to h:1 was lost before it answered (no reply");
	assert_int_equal(town->closed, 1);
	waits = set(town, 1, 1, "INCR b");
	assert_false(waits->done);
	pass(town, 500);
	down(town, 1); /* the new one fails */
	pass(town, 600);
	failed(waits, "-CLUSTERDOWN h:1 does not answer (cut); not sent");
	/* It has been away for longer than anybody waits: nobody waits any more. */
	late = set(town, 1, 1, "INCR c");
	failed(late, "-CLUSTERDOWN h:1 does not answer");
	town_destroy(&town);
}

static void test_garbage_and_what_nobody_asked(void **state)
{
	static const char *const replies[] = {"HTTP/1.1 400\r\n", "+OK\r\n+OK\r\n",
					      "$99999999999\r\n", "*-7\r\n"};

	(void)state;
	for (size_t i = 0; i < sizeof replies / sizeof *replies; i++) {
		struct town *town = town_create(true, NULL);
		struct asked *a = set(town, 1, 1, "INCR a");

		up(town, 1);
		sent(town, 1, "INCR a");
		reply(town, 1, replies[i]);
		assert_int_equal(town->closed, 1);
		if (i == 1)
			got(a, "+OK\r\n");
		else
			failed(a, "-UNKNOWN");
		town_destroy(&town);
	}
}

static void test_waiting_follow_a_failover(void **state)
{
	struct town *town = town_create(true, NULL);
	struct asked *a, *b;

	(void)state;
	a = set(town, 1, 1, "SET a 1");
	b = get(town, 1, 9000, "GET z");
	down(town, 1);
	route(town, 3, 2);
	up(town, 3);
	sent(town, 3, "SET a 1");
	reply(town, 3, "+OK\r\n");
	got(a, "+OK\r\n");
	assert_false(b->done);
	town_destroy(&town);
}

/* ---- transactions and pipes for one client ---- */

static struct asked *watch(struct town *town, uint64_t watcher, enum hs_op_kind kind)
{
	struct asked *asked = make(town, watcher, HS_CMD_ID_WATCH, 1, "WATCH a");

	asked->op.kind = kind;
	asked->op.watcher = watcher;
	return submit(town, asked);
}

static void test_a_transaction(void **state)
{
	struct town *town = town_create(true, NULL);
	struct hs_bytes incr[] = {HS_LIT("INCR"), HS_LIT("a")};
	struct hs_op_tx_command commands[] = {
		{.command = hs_command_by_id(HS_CMD_ID_INCR), .argv = incr, .argc = 2},
		{.command = hs_command_by_id(HS_CMD_ID_PING), .answered = HS_LIT("+PONG\r\n")},
		{.command = hs_command_by_id(HS_CMD_ID_INCR), .argv = incr, .argc = 2},
	};
	struct asked *exec = submit(town, make_exec(town, 0, commands, 3)), *again;

	(void)state;
	up(town, 1);
	sent(town, 1, "MULTI|INCR a|INCR a|EXEC");
	reply(town, 1, "+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n:1\r\n:2\r\n");
	got(exec, "*3\r\n:1\r\n+PONG\r\n:2\r\n");
	/* Refused when it was queued, because the slot has moved: all of it goes there. */
	again = submit(town, make_exec(town, 0, commands, 3));
	sent(town, 1, "MULTI|INCR a|INCR a|EXEC");
	reply(town, 1,
	      "+OK\r\n-MOVED 1 h:3\r\n-MOVED 1 h:3\r\n-EXECABORT Transaction discarded\r\n");
	up(town, 3);
	sent(town, 3, "MULTI|INCR a|INCR a|EXEC");
	reply(town, 3, "+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n:3\r\n:4\r\n");
	got(again, "*3\r\n:3\r\n+PONG\r\n:4\r\n");
	/* One command was refused for something else, and the slot was gone when EXEC came: it goes there, too. */
	again = submit(town, make_exec(town, 0, commands, 3));
	sent(town, 3, "MULTI|INCR a|INCR a|EXEC");
	reply(town, 3, "+OK\r\n+QUEUED\r\n-OOM full\r\n-MOVED 1 h:1\r\n");
	sent(town, 1, "MULTI|INCR a|INCR a|EXEC");
	reply(town, 1, "+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n:5\r\n:6\r\n");
	got(again, "*3\r\n:5\r\n+PONG\r\n:6\r\n");
	town_destroy(&town);
}

static void test_watch_has_a_pipe_for_itself(void **state)
{
	struct town *town = town_create(true, NULL);
	struct asked *watching, *exec;

	(void)state;
	get(town, 1, 1, "GET a");
	up(town, 1);
	sent(town, 1, "GET a");
	watching = watch(town, 7, HS_OP_WATCH);
	assert_int_equal(town->pipes_count, 2);
	up(town, 1);
	sent(town, 1, "WATCH a");
	reply(town, 1, "+OK\r\n");
	got(watching, "+OK\r\n");
	exec = submit(town, make_exec(town, 7, NULL, 0));
	sent(town, 1, "MULTI|EXEC");
	reply(town, 1, "+OK\r\n*-1\r\n");
	got(exec, "*-1\r\n");
	/* The next one has the same. */
	watch(town, 8, HS_OP_WATCH);
	assert_int_equal(town->pipes_count, 2);
	sent(town, 1, "WATCH a");
	reply(town, 1, "+OK\r\n");
	watch(town, 8, HS_OP_UNWATCH);
	sent(town, 1, "UNWATCH");
	town_destroy(&town);
}

static void test_a_watch_that_is_lost(void **state)
{
	struct town *town = town_create(true, NULL);
	struct asked *exec;

	(void)state;
	watch(town, 7, HS_OP_WATCH);
	up(town, 1);
	sent(town, 1, "WATCH a");
	reply(town, 1, "+OK\r\n");
	down(town, 1);
	exec = submit(town, make_exec(town, 7, NULL, 0));
	got(exec, "*-1\r\n"); /* the keys may have changed: allowed, and nothing ran */
	watch(town, 8, HS_OP_WATCH);
	pass(town, 100);
	town_destroy(&town);
}

static void test_a_watch_whose_slot_moves(void **state)
{
	struct town *town = town_create(true, NULL);
	struct asked *exec;

	(void)state;
	watch(town, 7, HS_OP_WATCH);
	up(town, 1);
	sent(town, 1, "WATCH a");
	reply(town, 1, "+OK\r\n");
	route(town, 3, 2);
	exec = submit(town, make_exec(town, 7, NULL, 0));
	got(exec, "*-1\r\n");
	assert_int_equal(town->pipes_count, 0); /* nobody may meet its watches */
	town_destroy(&town);
}

/* A command that blocks, as a server would describe it. */
static struct asked *make_blpop(struct town *town, struct hs_command *row)
{
	struct asked *asked = make(town, 5, HS_CMD_ID_GET, 1, "BLPOP a 0");

	*row = *hs_command_by_id(HS_CMD_ID_GETDEL);
	row->name = "blpop";
	row->flags |= HS_CMD_BLOCKING;
	asked->op.command = row;
	return asked;
}

static void test_blocking(void **state)
{
	struct town *town = town_create(true, NULL);
	struct hs_command row;
	struct asked *blocked = submit(town, make_blpop(town, &row)), *gone, *moved;

	(void)state;
	up(town, 1);
	sent(town, 1, "BLPOP a 0");
	pass(town, 100000); /* no timeout but its own */
	assert_false(blocked->done);
	reply(town, 1, "*2\r\n$1\r\na\r\n$1\r\nx\r\n");
	got(blocked, "*2\r\n$1\r\na\r\n$1\r\nx\r\n");
	gone = submit(town, make_blpop(town, &row));
	sent(town, 1, "BLPOP a 0");
	hs_flow_cancel(town->flow, &gone->op);
	assert_false(gone->done); /* not from inside */
	hs_flow_flush(town->flow, town->now);
	assert_true(gone->done);
	assert_int_equal(town->pipes_count, 0);
	moved = submit(town, make_blpop(town, &row));
	up(town, 1);
	sent(town, 1, "BLPOP a 0");
	reply(town, 1, "-MOVED 1 h:2\r\n");
	up(town, 2);
	sent(town, 2, "BLPOP a 0");
	down(town, 2);
	failed(moved, "-UNKNOWN"); /* it may have popped something */
	town_destroy(&town);
}

static void test_pipes_for_one_client_are_limited(void **state)
{
	struct town *town = town_create(true, NULL);
	struct asked *last = NULL;

	(void)state;
	for (uint64_t client = 1; client <= 5; client++)
		last = watch(town, client, HS_OP_WATCH);
	failed(last, "-BUSY all 4 connections for blocking commands and WATCH are in use");
	/* One that is redirected gives its own up. */
	up(town, 1);
	sent(town, 1, "WATCH a");
	reply(town, 1, "-MOVED 1 h:2\r\n");
	up(town, 2);
	sent(town, 2, "WATCH a");
	reply(town, 2, "+OK\r\n");
	failed(watch(town, 6, HS_OP_WATCH), "-BUSY all 4 connections");
	town_destroy(&town);
}

static void test_a_script_that_was_lost(void **state)
{
	struct town *town = town_create(true, NULL);
	struct hs_command row = *hs_command_by_id(HS_CMD_ID_GETDEL);
	struct asked *a = make(town, 1, HS_CMD_ID_GET, 1, "EVALSHA abc 1 k"), *b;

	(void)state;
	row.name = "evalsha";
	a->op.command = &row;
	town->script = "return 1";
	submit(town, a);
	up(town, 1);
	sent(town, 1, "EVALSHA abc 1 k");
	reply(town, 1, "-NOSCRIPT No matching script.\r\n");
	sent(town, 1, "EVAL return 1 1 k");
	reply(town, 1, ":1\r\n");
	got(a, ":1\r\n");
	town->script = NULL;
	b = make(town, 1, HS_CMD_ID_GET, 1, "EVALSHA abc 1 k");
	b->op.command = &row;
	submit(town, b);
	sent(town, 1, "EVALSHA abc 1 k");
	reply(town, 1, "-NOSCRIPT No matching script.\r\n");
	failed(b, "-NOSCRIPT");
	town_destroy(&town);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_requests_and_replies_in_order),
		cmocka_unit_test(test_a_reply_in_pieces),
		cmocka_unit_test(test_a_long_reply_changes_hands),
		cmocka_unit_test(test_moved),
		cmocka_unit_test(test_new_routes_wait_for_what_is_under_way),
		cmocka_unit_test(test_the_last_word_on_an_owner_counts),
		cmocka_unit_test(test_moved_to_a_port_alone),
		cmocka_unit_test(test_moved_nobody_knows_where_to),
		cmocka_unit_test(test_moved_in_circles_ends),
		cmocka_unit_test(test_ask),
		cmocka_unit_test(test_again_later),
		cmocka_unit_test(test_a_refusal_that_stays),
		cmocka_unit_test(test_what_a_lost_connection_means),
		cmocka_unit_test(test_half_a_request_is_none),
		cmocka_unit_test(test_retried_go_before_those_that_waited),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_what_waits_is_counted_where_its_node_is),
		cmocka_unit_test(test_parked_are_limited_too),
		cmocka_unit_test(test_no_reply_in_time),
		cmocka_unit_test(test_time_spent_waiting_is_spent),
		cmocka_unit_test(test_garbage_and_what_nobody_asked),
		cmocka_unit_test(test_waiting_follow_a_failover),
		cmocka_unit_test(test_a_transaction),
		cmocka_unit_test(test_watch_has_a_pipe_for_itself),
		cmocka_unit_test(test_a_watch_that_is_lost),
		cmocka_unit_test(test_a_watch_whose_slot_moves),
		cmocka_unit_test(test_blocking),
		cmocka_unit_test(test_pipes_for_one_client_are_limited),
		cmocka_unit_test(test_a_script_that_was_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
