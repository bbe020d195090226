/* Goal: the flow of operations to Redis servers: which commands the flow sends to which node, in which order,
 * and how operations end when slots move, servers refuse and connections close (laws 2, 4 and 6).
 *
 * Method: scripts in which the test is the cluster (tests/lib/flow_world.h): slot 1 is at port 1, slot 9000 at
 * port 2. */
#include "tests/lib/flow_world.h"

static void test_requests_and_replies_in_order(void **state)
{
	struct flow_world *flow_world = flow_world_create(true, NULL);
	struct asked *a, *b, *c;

	(void)state;
	a = set(flow_world, 1, 1, "SET a 1");
	b = get(flow_world, 2, 1, "GET a");
	c = get(flow_world, 1, 9000, "GET z");
	up(flow_world, 1);
	up(flow_world, 2);
	sent(flow_world, 1, "SET a 1|GET a");
	sent(flow_world, 2, "GET z");
	reply(flow_world, 2, "$-1\r\n");
	got(c, "$-1\r\n");
	reply(flow_world, 1, "+OK\r\n$1\r\n1\r\n");
	got(a, "+OK\r\n");
	got(b, "$1\r\n1\r\n");
	flow_world_destroy(&flow_world);
}

static void test_a_reply_in_pieces(void **state)
{
	struct flow_world *flow_world = flow_world_create(true, NULL);
	const char *text = "*2\r\n$3\r\nabc\r\n*1\r\n:5\r\n";

	(void)state;
	for (size_t cut = 1; cut < strlen(text); cut++) {
		struct asked *a = get(flow_world, 1, 1, "GET a"),
			     *b = get(flow_world, 1, 1, "GET b");
		char half[64];

		if (cut == 1)
			up(flow_world, 1);
		sent(flow_world, 1, "GET a|GET b");
		snprintf(half, sizeof half, "%.*s", (int)cut, text);
		reply(flow_world, 1, half);
		assert_false(a->done);
		snprintf(half, sizeof half, "%s+OK\r\n", text + cut);
		reply(flow_world, 1, half);
		got(a, text);
		got(b, "+OK\r\n");
	}
	flow_world_destroy(&flow_world);
}

static void test_a_long_reply_is_handed_over_uncopied(void **state)
{
	struct flow_world *flow_world = flow_world_create(true, NULL);
	struct asked *a = get(flow_world, 1, 1, "GET a");
	size_t size = 1 << 20, rest = size - 1 + 2, room;
	char *text = hs_mem_alloc(rest);
	struct hs_pipe *pipe;

	(void)state;
	memset(text, 'x', rest);
	memcpy(text + rest - 2, "\r\n", 2);
	up(flow_world, 1);
	sent(flow_world, 1, "GET a");
	reply(flow_world, 1, "$1048576\r\nx");
	pipe = pipe_to(flow_world, 1);
	for (size_t at = 0; at < rest; at += room) {
		char *own = hs_upstream_room(&pipe->upstream, &room);

		if (!own)
			/* Near the end of the value the flow offers no room, and any buffer will do. */
			room = rest - at;
		assert_true(room <= rest - at);
		if (own)
			memcpy(own, text + at, room);
		hs_flow_receive(flow_world->flow, flow_world->now, pipe, own ? own : text + at,
				room);
	}
	hs_mem_release(text);
	assert_true(a->done);
	assert_int_equal(a->reply.len, size + strlen("$1048576\r\n\r\n"));
	/* The reply lies in the operation's own buffer. */
	assert_int_equal(a->out.len, a->reply.len);
	flow_world_destroy(&flow_world);
}

static void test_moved(void **state)
{
	struct flow_world *flow_world = flow_world_create(true, NULL);
	struct asked *a, *b, *c;

	(void)state;
	a = set(flow_world, 1, 1, "SET a 1");
	b = set(flow_world, 1, 1, "SET a 2");
	up(flow_world, 1);
	sent(flow_world, 1, "SET a 1|SET a 2");
	reply(flow_world, 1, "-MOVED 1 h:3\r\n");
	assert_int_equal(flow_world->stale_topology_reports, 1);
	/* The new owner is known, but b is still in flight to the old one: c must not overtake b. */
	c = get(flow_world, 1, 1, "GET a");
	reply(flow_world, 1, "-MOVED 1 h:3\r\n");
	up(flow_world, 3);
	sent(flow_world, 3, "SET a 1|SET a 2|GET a");
	reply(flow_world, 3, "+OK\r\n+OK\r\n$1\r\n2\r\n");
	got(a, "+OK\r\n");
	got(b, "+OK\r\n");
	got(c, "$1\r\n2\r\n");
	flow_world_destroy(&flow_world);
}

static void test_new_routes_wait_for_requests_in_flight(void **state)
{
	struct flow_world *flow_world = flow_world_create(true, NULL);
	struct asked *a, *b;

	(void)state;
	a = set(flow_world, 1, 1, "SET a 1");
	up(flow_world, 1);
	sent(flow_world, 1, "SET a 1");
	route(flow_world, 3, 2);
	b = set(flow_world, 1, 1, "SET a 2");
	/* Request b waits for a: nothing was sent to port 3. */
	assert_int_equal(flow_world->pipes_count, 1);
	reply(flow_world, 1, "-MOVED 1 h:3\r\n");
	up(flow_world, 3);
	sent(flow_world, 3, "SET a 1|SET a 2");
	reply(flow_world, 3, "+OK\r\n+OK\r\n");
	got(a, "+OK\r\n");
	got(b, "+OK\r\n");
	flow_world_destroy(&flow_world);
}

/* The latest information about the owner of a slot counts: the first routes, then a redirect, then new routes,
 * even if these are equal to the first. This also holds for slots that were never used before. */
static void test_the_latest_information_on_an_owner_counts(void **state)
{
	struct flow_world *flow_world = flow_world_create(true, NULL);

	(void)state;
	get(flow_world, 1, 1, "GET a");
	up(flow_world, 1);
	sent(flow_world, 1, "GET a");
	reply(flow_world, 1, "-MOVED 1 h:2\r\n");
	up(flow_world, 2);
	sent(flow_world, 2, "GET a");
	reply(flow_world, 2, "$-1\r\n");
	route(flow_world, 1, 2);
	get(flow_world, 1, 1, "GET a");
	get(flow_world, 1, 9000, "GET b");
	sent(flow_world, 1, "GET a");
	sent(flow_world, 2, "GET b");
	reply(flow_world, 1, "$-1\r\n");
	reply(flow_world, 2, "$-1\r\n");
	/* The flow forgets that a node hands a slot over when new routes give the slot to another owner. */
	get(flow_world, 1, 2, "GET d");
	sent(flow_world, 1, "GET d");
	reply(flow_world, 1, "-ASK 2 h:2\r\n");
	sent(flow_world, 2, "ASKING|GET d");
	reply(flow_world, 2, "+OK\r\n$-1\r\n");
	assert_true(hs_slot_is_migrating(flow_world->flow, 2));
	route(flow_world, 2, 1);
	assert_false(hs_slot_is_migrating(flow_world->flow, 2));
	get(flow_world, 1, 1, "GET a");
	get(flow_world, 1, 9000, "GET b");
	get(flow_world, 1, 100, "GET c");
	sent(flow_world, 2, "GET a|GET c");
	sent(flow_world, 1, "GET b");
	reply(flow_world, 1, "$-1\r\n");
	reply(flow_world, 2, "$-1\r\n$-1\r\n");
	for (int i = 0; i < flow_world->ops_count; i++)
		got(&flow_world->ops[i], "$-1\r\n");
	flow_world_destroy(&flow_world);
}

/* A MOVED error without a host means the host of the node that answered. */
static void test_moved_to_a_port_alone(void **state)
{
	struct flow_world *flow_world = flow_world_create(true, NULL);
	struct asked *a = set(flow_world, 1, 1, "SET a 1");

	(void)state;
	up(flow_world, 1);
	sent(flow_world, 1, "SET a 1");
	reply(flow_world, 1, "-MOVED 1 :2\r\n");
	assert_string_equal(pipe_to(flow_world, 2)->node->at.host, "h");
	up(flow_world, 2); /* the flow already knows this node from the routes */
	sent(flow_world, 2, "SET a 1");
	reply(flow_world, 2, "+OK\r\n");
	got(a, "+OK\r\n");
	assert_int_equal(flow_world->flow->nodes_count, 2);
	flow_world_destroy(&flow_world);
}

/* The server announces an unknown host name: the flow waits until the topology shows where the slot is. */
static void test_moved_to_an_unknown_address(void **state)
{
	struct flow_world *flow_world = flow_world_create(true, NULL);
	struct asked *a = set(flow_world, 1, 1, "SET a 1"), *b;

	(void)state;
	up(flow_world, 1);
	sent(flow_world, 1, "SET a 1");
	reply(flow_world, 1, "-MOVED 1 ?:2\r\n");
	assert_int_equal(flow_world->stale_topology_reports, 1);
	assert_int_equal(flow_world->pipes_count, 1);
	assert_int_equal(flow_world->flow->nodes_count, 2); /* no node is created for host "?" */
	pass(flow_world, 30);
	sent(flow_world, 1, "SET a 1");
	reply(flow_world, 1, "-ASK 1 ?:2\r\n");
	route(flow_world, 3, 2);
	up(flow_world, 3);
	sent(flow_world, 3, "SET a 1");
	reply(flow_world, 3, "+OK\r\n");
	got(a, "+OK\r\n");
	/* The topology never shows the new owner: the operation fails in the end. */
	b = set(flow_world, 1, 1, "SET a 2");
	for (int i = 0; i < 100 && !b->done; i++) {
		if (pipe_to(flow_world, 3)->upstream.out.len > 0) {
			sent(flow_world, 3, "SET a 2");
			reply(flow_world, 3, "-MOVED 1 ?:2\r\n");
		}
		pass(flow_world, 100);
	}
	failed(b, "-CLUSTERDOWN slot is migrating (MOVED 1 ?:2); not run\r");
	flow_world_destroy(&flow_world);
}

static void test_moved_in_circles_ends(void **state)
{
	struct flow_world *flow_world = flow_world_create(true, NULL);
	struct asked *a = set(flow_world, 1, 1, "SET a 1");

	(void)state;
	up(flow_world, 1);
	for (int i = 0; i < 100 && !a->done; i++) {
		if (pipe_to(flow_world, 1)->upstream.out.len > 0) {
			sent(flow_world, 1, "SET a 1");
			reply(flow_world, 1, "-MOVED 1 h:1\r\n");
		}
		pass(flow_world, 100);
	}
	/* The error must not be a MOVED error: a cluster client would follow it. */
	failed(a, "-CLUSTERDOWN slot is migrating (MOVED 1 h:1); not run\r");
	flow_world_destroy(&flow_world);
}

static void test_ask(void **state)
{
	struct flow_world *flow_world = flow_world_create(true, NULL);
	struct asked *a, *b;

	(void)state;
	get(flow_world, 9, 9000, "GET z");
	up(flow_world, 2);
	sent(flow_world, 2, "GET z");
	reply(flow_world, 2, "$-1\r\n");
	a = set(flow_world, 1, 1, "SET a 1");
	b = get(flow_world, 1, 1, "GET b");
	up(flow_world, 1);
	sent(flow_world, 1, "SET a 1|GET b");
	reply(flow_world, 1, "-ASK 1 h:2\r\n$1\r\nb\r\n");
	got(b, "$1\r\nb\r\n"); /* key b was still at the old owner */
	sent(flow_world, 2, "ASKING|SET a 1");
	reply(flow_world, 2, "+OK\r\n+OK\r\n");
	got(a, "+OK\r\n");
	/* ASK applied to one request: the next one goes to the owner again. */
	get(flow_world, 1, 1, "GET a");
	sent(flow_world, 1, "GET a");
	flow_world_destroy(&flow_world);
}

static void test_retry_after_a_pause(void **state)
{
	struct flow_world *flow_world = flow_world_create(true, NULL);
	struct asked *a, *b;

	(void)state;
	a = set(flow_world, 1, 1, "MSET a 1 b");
	up(flow_world, 1);
	sent(flow_world, 1, "MSET a 1 b");
	reply(flow_world, 1, "-TRYAGAIN Multiple keys request during rehashing of slot\r\n");
	/* Same slot: b waits for a, although b comes from another client. */
	b = set(flow_world, 2, 1, "SET a 2");
	sent(flow_world, 1, "");
	pass(flow_world, 100);
	sent(flow_world, 1, "MSET a 1 b|SET a 2");
	reply(flow_world, 1, "+OK\r\n+OK\r\n");
	got(a, "+OK\r\n");
	got(b, "+OK\r\n");
	flow_world_destroy(&flow_world);
}

static void test_a_refusal_that_stays(void **state)
{
	struct flow_world *flow_world = flow_world_create(true, NULL);
	struct asked *a = set(flow_world, 1, 1, "SET a 1");

	(void)state;
	up(flow_world, 1);
	for (int i = 0; i < 20 && !a->done; i++) {
		if (pipe_to(flow_world, 1)->upstream.out.len > 0) {
			sent(flow_world, 1, "SET a 1");
			reply(flow_world, 1, "-CLUSTERDOWN The cluster is down\r\n");
		}
		pass(flow_world, 100);
	}
	failed(a, "-CLUSTERDOWN The cluster is down");
	flow_world_destroy(&flow_world);
}

static void test_outcomes_of_a_lost_connection(void **state)
{
	struct flow_world *flow_world = flow_world_create(true, NULL);
	struct asked *write, *read, *unread, *late, *unsent;

	(void)state;
	read = get(flow_world, 1, 1, "GET r");
	unread = get(flow_world, 2, 2, "GET u");
	write = set(flow_world, 3, 3, "INCR w");
	late = set(flow_world, 2, 2, "INCR u"); /* same client and slot as `unread` */
	up(flow_world, 1);
	sent(flow_world, 1, "GET r|GET u|INCR w|INCR u");
	unsent = set(flow_world, 4, 4, "INCR x");
	down(flow_world, 1);
	failed(write, "-UNKNOWN the connection to h:1 was lost");
	failed(late, "-UNKNOWN");
	failed(unread, "-UNKNOWN"); /* not retried: the retry could see the effect of `late` */
	assert_false(read->done);
	assert_false(unsent->done);
	up(flow_world, 1);
	sent(flow_world, 1, "GET r|INCR x");
	reply(flow_world, 1, "$-1\r\n:1\r\n");
	got(read, "$-1\r\n");
	got(unsent, ":1\r\n");
	assert_int_equal(flow_world->stats.outcome_unknown.value, 3);
	flow_world_destroy(&flow_world);
}

static void test_a_partly_sent_request_is_sent_again(void **state)
{
	struct flow_world *flow_world = flow_world_create(true, NULL);
	struct asked *whole, *half;

	(void)state;
	whole = set(flow_world, 1, 1, "INCR a");
	half = set(flow_world, 2, 2, "INCR b");
	up(flow_world, 1);
	pipe_to(flow_world, 1)->upstream.sent = pipe_to(flow_world, 1)->upstream.composed - 1;
	down(flow_world, 1);
	failed(whole, "-UNKNOWN");
	assert_false(half->done);
	flow_world_destroy(&flow_world);
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
	struct flow_world *flow_world = flow_world_create(true, &options);

	(void)state;
	get(flow_world, 1, 1, "GET a");
	set(flow_world, 1, 1, "SET a 1");
	up(flow_world, 1);
	sent(flow_world, 1, "GET a");
	down(flow_world, 1);
	up(flow_world, 1);
	sent(flow_world, 1, "GET a");
	reply(flow_world, 1, "$-1\r\n");
	sent(flow_world, 1, "SET a 1");
	flow_world_destroy(&flow_world);
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
	struct flow_world *flow_world = flow_world_create(true, &options);
	struct asked *fourth, *other;

	(void)state;
	get(flow_world, 1, 1, "GET a");
	up(flow_world, 1);
	get(flow_world, 1, 1, "GET b");
	get(flow_world, 1, 1, "GET c");
	assert_int_equal(flow_world->stats.waiting[0], 1);
	fourth = get(flow_world, 1, 1, "GET d");
	failed(fourth, "-BUSY 1 requests wait for h:1 already (engine-queue)");
	other = get(flow_world, 1, 9000, "GET z"); /* the limit applies to each node */
	assert_false(other->done);
	sent(flow_world, 1, "GET a|GET b");
	reply(flow_world, 1, "$-1\r\n");
	sent(flow_world, 1, "GET c");
	assert_int_equal(flow_world->stats.waiting[0], 0);
	flow_world_destroy(&flow_world);
}

static void test_waiting_requests_are_counted_at_their_node(void **state)
{
	struct flow_world *flow_world = flow_world_create(true, NULL);

	(void)state;
	get(flow_world, 1, 1, "GET a");
	assert_int_equal(flow_world->stats.waiting[0], 1);
	route(flow_world, 2, 1); /* the new routes swap the slots of the two nodes */
	assert_int_equal(flow_world->stats.waiting[0], 1);
	assert_int_equal(flow_world->stats.waiting[1], 0);
	up(flow_world, 2);
	sent(flow_world, 2, "GET a");
	assert_int_equal(flow_world->stats.waiting[0], 0);
	assert_int_equal(flow_world->stats.waiting[1], 0);
	flow_world_destroy(&flow_world);
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
	struct flow_world *flow_world = flow_world_create(true, &options);
	struct asked *a, *b;

	(void)state;
	set(flow_world, 1, 1, "SET a 1");
	up(flow_world, 1);
	sent(flow_world, 1, "SET a 1");
	route(flow_world, 3, 2);
	a = get(flow_world, 2, 1, "GET a");
	b = get(flow_world, 3, 1, "GET a");
	assert_false(a->done);
	failed(b, "-BUSY 1 requests wait for migrating slots");
	flow_world_destroy(&flow_world);
}

/* The time that an operation waited before it reached the flow counts towards the timeout; a fifth of the
 * timeout remains in any case. */
static void test_time_spent_waiting_is_spent(void **state)
{
	struct flow_world *flow_world = flow_world_create(true, NULL);
	struct asked *a;

	(void)state;
	flow_world->now.mono_us += 10000000;
	a = make(flow_world, 1, HS_CMD_ID_SET, 1, "SET a 1");
	a->op.since_us = flow_world->now.mono_us - 950000;
	submit(flow_world, a);
	pass(flow_world, 150);
	assert_false(a->done);
	pass(flow_world, 100);
	assert_true(a->done);
	flow_world_destroy(&flow_world);
}

static void test_no_reply_in_time(void **state)
{
	struct flow_world *flow_world = flow_world_create(true, NULL);
	struct asked *write, *waits, *late;

	(void)state;
	write = set(flow_world, 1, 1, "INCR a");
	up(flow_world, 1);
	sent(flow_world, 1, "INCR a");
	pass(flow_world, 900);
	assert_false(write->done);
	pass(flow_world, 200);
	failed(write, "-UNKNOWN the connection to h:1 was lost before it answered (no reply");
	assert_int_equal(flow_world->closed, 1);
	waits = set(flow_world, 1, 1, "INCR b");
	assert_false(waits->done);
	pass(flow_world, 500);
	down(flow_world, 1); /* the new connection fails */
	pass(flow_world, 600);
	failed(waits, "-CLUSTERDOWN h:1 does not answer (cut); not sent");
	/* The node has been down for longer than the timeout: new operations fail at once. */
	late = set(flow_world, 1, 1, "INCR c");
	failed(late, "-CLUSTERDOWN h:1 does not answer");
	flow_world_destroy(&flow_world);
}

static void test_garbage_and_unrequested_replies(void **state)
{
	static const char *const replies[] = {"HTTP/1.1 400\r\n", "+OK\r\n+OK\r\n",
					      "$99999999999\r\n", "*-7\r\n"};

	(void)state;
	for (size_t i = 0; i < sizeof replies / sizeof *replies; i++) {
		struct flow_world *flow_world = flow_world_create(true, NULL);
		struct asked *a = set(flow_world, 1, 1, "INCR a");

		up(flow_world, 1);
		sent(flow_world, 1, "INCR a");
		reply(flow_world, 1, replies[i]);
		assert_int_equal(flow_world->closed, 1);
		if (i == 1)
			got(a, "+OK\r\n");
		else
			failed(a, "-UNKNOWN");
		flow_world_destroy(&flow_world);
	}
}

static void test_waiting_follow_a_failover(void **state)
{
	struct flow_world *flow_world = flow_world_create(true, NULL);
	struct asked *a, *b;

	(void)state;
	a = set(flow_world, 1, 1, "SET a 1");
	b = get(flow_world, 1, 9000, "GET z");
	down(flow_world, 1);
	route(flow_world, 3, 2);
	up(flow_world, 3);
	sent(flow_world, 3, "SET a 1");
	reply(flow_world, 3, "+OK\r\n");
	got(a, "+OK\r\n");
	assert_false(b->done);
	flow_world_destroy(&flow_world);
}

/* ---- transactions and private connections ---- */

static struct asked *watch(struct flow_world *flow_world, uint64_t watcher, enum hs_op_kind kind)
{
	struct asked *asked = make(flow_world, watcher, HS_CMD_ID_WATCH, 1, "WATCH a");

	asked->op.kind = kind;
	asked->op.watcher = watcher;
	return submit(flow_world, asked);
}

static void test_a_transaction(void **state)
{
	struct flow_world *flow_world = flow_world_create(true, NULL);
	struct hs_bytes incr[] = {HS_LIT("INCR"), HS_LIT("a")};
	struct hs_op_tx_command commands[] = {
		{.command = hs_command_by_id(HS_CMD_ID_INCR), .argv = incr, .argc = 2},
		{.command = hs_command_by_id(HS_CMD_ID_PING), .answered = HS_LIT("+PONG\r\n")},
		{.command = hs_command_by_id(HS_CMD_ID_INCR), .argv = incr, .argc = 2},
	};
	struct asked *exec = submit(flow_world, make_exec(flow_world, 0, commands, 3)), *again;

	(void)state;
	up(flow_world, 1);
	sent(flow_world, 1, "MULTI|INCR a|INCR a|EXEC");
	reply(flow_world, 1, "+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n:1\r\n:2\r\n");
	got(exec, "*3\r\n:1\r\n+PONG\r\n:2\r\n");
	/* The server refuses the commands when it queues them, because the slot has moved: the flow sends the
	 * whole transaction to the new owner. */
	again = submit(flow_world, make_exec(flow_world, 0, commands, 3));
	sent(flow_world, 1, "MULTI|INCR a|INCR a|EXEC");
	reply(flow_world, 1,
	      "+OK\r\n-MOVED 1 h:3\r\n-MOVED 1 h:3\r\n-EXECABORT Transaction discarded\r\n");
	up(flow_world, 3);
	sent(flow_world, 3, "MULTI|INCR a|INCR a|EXEC");
	reply(flow_world, 3, "+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n:3\r\n:4\r\n");
	got(again, "*3\r\n:3\r\n+PONG\r\n:4\r\n");
	/* The server refuses one command for another reason, and the slot has moved when EXEC comes: the flow
	 * sends the whole transaction to the new owner, too. */
	again = submit(flow_world, make_exec(flow_world, 0, commands, 3));
	sent(flow_world, 3, "MULTI|INCR a|INCR a|EXEC");
	reply(flow_world, 3, "+OK\r\n+QUEUED\r\n-OOM full\r\n-MOVED 1 h:1\r\n");
	sent(flow_world, 1, "MULTI|INCR a|INCR a|EXEC");
	reply(flow_world, 1, "+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n:5\r\n:6\r\n");
	got(again, "*3\r\n:5\r\n+PONG\r\n:6\r\n");
	flow_world_destroy(&flow_world);
}

static void test_watch_has_a_pipe_for_itself(void **state)
{
	struct flow_world *flow_world = flow_world_create(true, NULL);
	struct asked *watching, *exec;

	(void)state;
	get(flow_world, 1, 1, "GET a");
	up(flow_world, 1);
	sent(flow_world, 1, "GET a");
	watching = watch(flow_world, 7, HS_OP_WATCH);
	assert_int_equal(flow_world->pipes_count, 2);
	up(flow_world, 1);
	sent(flow_world, 1, "WATCH a");
	reply(flow_world, 1, "+OK\r\n");
	got(watching, "+OK\r\n");
	exec = submit(flow_world, make_exec(flow_world, 7, NULL, 0));
	sent(flow_world, 1, "MULTI|EXEC");
	reply(flow_world, 1, "+OK\r\n*-1\r\n");
	got(exec, "*-1\r\n");
	/* The next transaction uses the same private connection. */
	watch(flow_world, 8, HS_OP_WATCH);
	assert_int_equal(flow_world->pipes_count, 2);
	sent(flow_world, 1, "WATCH a");
	reply(flow_world, 1, "+OK\r\n");
	watch(flow_world, 8, HS_OP_UNWATCH);
	sent(flow_world, 1, "UNWATCH");
	flow_world_destroy(&flow_world);
}

static void test_a_watch_that_is_lost(void **state)
{
	struct flow_world *flow_world = flow_world_create(true, NULL);
	struct asked *exec;

	(void)state;
	watch(flow_world, 7, HS_OP_WATCH);
	up(flow_world, 1);
	sent(flow_world, 1, "WATCH a");
	reply(flow_world, 1, "+OK\r\n");
	down(flow_world, 1);
	exec = submit(flow_world, make_exec(flow_world, 7, NULL, 0));
	/* The keys may have changed since WATCH: null is a valid reply, and no command ran. */
	got(exec, "*-1\r\n");
	watch(flow_world, 8, HS_OP_WATCH);
	pass(flow_world, 100);
	flow_world_destroy(&flow_world);
}

static void test_a_watch_whose_slot_moves(void **state)
{
	struct flow_world *flow_world = flow_world_create(true, NULL);
	struct asked *exec;

	(void)state;
	watch(flow_world, 7, HS_OP_WATCH);
	up(flow_world, 1);
	sent(flow_world, 1, "WATCH a");
	reply(flow_world, 1, "+OK\r\n");
	route(flow_world, 3, 2);
	exec = submit(flow_world, make_exec(flow_world, 7, NULL, 0));
	got(exec, "*-1\r\n");
	/* The connection is closed: no other client may inherit the client's watches. */
	assert_int_equal(flow_world->pipes_count, 0);
	flow_world_destroy(&flow_world);
}

/* A blocking command, with a command table row as learned from a server. */
static struct asked *make_blpop(struct flow_world *flow_world, struct hs_command *row)
{
	struct asked *asked = make(flow_world, 5, HS_CMD_ID_GET, 1, "BLPOP a 0");

	*row = *hs_command_by_id(HS_CMD_ID_GETDEL);
	row->name = "blpop";
	row->flags |= HS_CMD_BLOCKING;
	asked->op.command = row;
	return asked;
}

static void test_blocking(void **state)
{
	struct flow_world *flow_world = flow_world_create(true, NULL);
	struct hs_command row;
	struct asked *blocked = submit(flow_world, make_blpop(flow_world, &row)), *gone, *moved;

	(void)state;
	up(flow_world, 1);
	sent(flow_world, 1, "BLPOP a 0");
	pass(flow_world, 100000); /* the engine's timeout does not apply to a blocking command */
	assert_false(blocked->done);
	reply(flow_world, 1, "*2\r\n$1\r\na\r\n$1\r\nx\r\n");
	got(blocked, "*2\r\n$1\r\na\r\n$1\r\nx\r\n");
	gone = submit(flow_world, make_blpop(flow_world, &row));
	sent(flow_world, 1, "BLPOP a 0");
	hs_flow_cancel(flow_world->flow, &gone->op);
	assert_false(gone->done); /* the operation ends after hs_flow_cancel() has returned */
	hs_flow_flush(flow_world->flow, flow_world->now);
	assert_true(gone->done);
	assert_int_equal(flow_world->pipes_count, 0);
	moved = submit(flow_world, make_blpop(flow_world, &row));
	up(flow_world, 1);
	sent(flow_world, 1, "BLPOP a 0");
	reply(flow_world, 1, "-MOVED 1 h:2\r\n");
	up(flow_world, 2);
	sent(flow_world, 2, "BLPOP a 0");
	down(flow_world, 2);
	failed(moved, "-UNKNOWN"); /* not retried: the server may have popped an element */
	flow_world_destroy(&flow_world);
}

static void test_pipes_for_one_client_are_limited(void **state)
{
	struct flow_world *flow_world = flow_world_create(true, NULL);
	struct asked *last = NULL;

	(void)state;
	for (uint64_t client = 1; client <= 5; client++)
		last = watch(flow_world, client, HS_OP_WATCH);
	failed(last, "-BUSY all 4 connections for blocking commands and WATCH are in use");
	/* A redirected operation gives its private connection back before it takes another one. */
	up(flow_world, 1);
	sent(flow_world, 1, "WATCH a");
	reply(flow_world, 1, "-MOVED 1 h:2\r\n");
	up(flow_world, 2);
	sent(flow_world, 2, "WATCH a");
	reply(flow_world, 2, "+OK\r\n");
	failed(watch(flow_world, 6, HS_OP_WATCH), "-BUSY all 4 connections");
	flow_world_destroy(&flow_world);
}

static void test_a_script_that_was_lost(void **state)
{
	struct flow_world *flow_world = flow_world_create(true, NULL);
	struct hs_command row = *hs_command_by_id(HS_CMD_ID_GETDEL);
	struct asked *a = make(flow_world, 1, HS_CMD_ID_GET, 1, "EVALSHA abc 1 k"), *b;

	(void)state;
	row.name = "evalsha";
	a->op.command = &row;
	flow_world->script = "return 1";
	submit(flow_world, a);
	up(flow_world, 1);
	sent(flow_world, 1, "EVALSHA abc 1 k");
	reply(flow_world, 1, "-NOSCRIPT No matching script.\r\n");
	sent(flow_world, 1, "EVAL return 1 1 k");
	reply(flow_world, 1, ":1\r\n");
	got(a, ":1\r\n");
	flow_world->script = NULL;
	b = make(flow_world, 1, HS_CMD_ID_GET, 1, "EVALSHA abc 1 k");
	b->op.command = &row;
	submit(flow_world, b);
	sent(flow_world, 1, "EVALSHA abc 1 k");
	reply(flow_world, 1, "-NOSCRIPT No matching script.\r\n");
	failed(b, "-NOSCRIPT");
	flow_world_destroy(&flow_world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_requests_and_replies_in_order),
		cmocka_unit_test(test_a_reply_in_pieces),
		cmocka_unit_test(test_a_long_reply_is_handed_over_uncopied),
		cmocka_unit_test(test_moved),
		cmocka_unit_test(test_new_routes_wait_for_requests_in_flight),
		cmocka_unit_test(test_the_latest_information_on_an_owner_counts),
		cmocka_unit_test(test_moved_to_a_port_alone),
		cmocka_unit_test(test_moved_to_an_unknown_address),
		cmocka_unit_test(test_moved_in_circles_ends),
		cmocka_unit_test(test_ask),
		cmocka_unit_test(test_retry_after_a_pause),
		cmocka_unit_test(test_a_refusal_that_stays),
		cmocka_unit_test(test_outcomes_of_a_lost_connection),
		cmocka_unit_test(test_a_partly_sent_request_is_sent_again),
		cmocka_unit_test(test_retried_go_before_those_that_waited),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_waiting_requests_are_counted_at_their_node),
		cmocka_unit_test(test_parked_are_limited_too),
		cmocka_unit_test(test_no_reply_in_time),
		cmocka_unit_test(test_time_spent_waiting_is_spent),
		cmocka_unit_test(test_garbage_and_unrequested_replies),
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
