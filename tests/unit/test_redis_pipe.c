/* Goal: a failed connection of each kind (struct hs_pipe_kind) changes the state of its node (down, untracked)
 * only as far as the failure shows something about the node. Each new connection begins with a fresh state.
 *
 * Method: scripts in which the test is the servers (tests/lib/flow_world.h); slot 1 is at port 1. */
#include "tests/lib/flow_world.h"

enum { SLOT_OF_B = 3300 };
#define REFUSED HS_GREETING_REFUSED ": NOPERM"

static struct hs_node *node_of(struct flow_world *flow_world)
{
	return flow_world->flow->nodes[0];
}

static void pipe_up(struct flow_world *flow_world, struct hs_pipe *pipe)
{
	hs_flow_up(flow_world->flow, flow_world->now, pipe);
	hs_flow_flush(flow_world->flow, flow_world->now);
}

static void pipe_down(struct flow_world *flow_world, struct hs_pipe *pipe, const char *why)
{
	flow_world_forget(flow_world, pipe);
	hs_flow_down(flow_world->flow, flow_world->now, pipe, why);
}

static struct hs_pipe *open_pipe(struct flow_world *flow_world, struct hs_pipe *pipe)
{
	flow_world->flow->now = flow_world->now;
	hs_flow_open(flow_world->flow, pipe);
	assert_int_equal(pipe->upstream.state, HS_UPSTREAM_OPENING);
	return pipe;
}

/* Opens a connection of this kind to the node. */
static struct hs_pipe *open_kind(struct flow_world *flow_world, const struct hs_pipe_kind *kind)
{
	struct hs_node *node = node_of(flow_world);
	struct asked *watch;

	for (int i = 0; i < HS_NODE_PIPES; i++) {
		if (node->pipes[i]->kind == kind)
			return open_pipe(flow_world, node->pipes[i]);
	}
	watch = make(flow_world, 1, HS_CMD_ID_WATCH, 1, "WATCH a");
	watch->op.kind = HS_OP_WATCH;
	watch->op.watcher = 7;
	submit(flow_world, watch);
	return pipe_to(flow_world, 1);
}

static void test_how_a_failure_changes_its_node(void **state)
{
	static const struct {
		const struct hs_pipe_kind *kind;
		const char *why;
		bool reached; /* a connection of another kind, shared by all clients, is up */
		bool down;    /* expected: the node counts as down */
	} cases[] = {
		{&hs_resp2_pipes, "cut", false, true},
		{&hs_resp2_pipes, "cut", true, true},
		{&hs_resp2_pipes, REFUSED, false, true},
		{&hs_fetch_pipes, "cut", false, true},
		{&hs_fetch_pipes, "cut", true, false},
		{&hs_fetch_pipes, REFUSED, false, false},
		{&hs_replica_pipes, "cut", false, true},
		{&hs_replica_pipes, "cut", true, false},
		{&hs_replica_pipes, REFUSED, false, false},
		{&hs_private_pipes, "cut", false, true},
		{&hs_private_pipes, "cut", true, false},
		{&hs_private_pipes, REFUSED, false, true},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct flow_world *flow_world = flow_world_create(true, NULL);
		struct hs_node *node = node_of(flow_world);
		struct hs_pipe *pipe;

		if (cases[i].reached)
			pipe_up(flow_world, open_pipe(flow_world, &node->shared[1]));
		pipe = open_kind(flow_world, cases[i].kind);
		pipe_down(flow_world, pipe, cases[i].why);
		assert_int_equal(node->down_since_us > 0, cases[i].down);
		assert_int_equal(node->backoff.open_at_us > flow_world->now.mono_us, cases[i].down);
		if (cases[i].reached)
			pipe_down(flow_world, &node->shared[1], "cut");
		flow_world_destroy(&flow_world);
	}
}

static void test_no_reply_in_time(void **state)
{
	static const struct {
		const struct hs_pipe_kind *kind;
		bool blamed;
	} cases[] = {
		{&hs_resp2_pipes, true},
		{&hs_fetch_pipes, true},
		{&hs_private_pipes, true},
		{&hs_replica_pipes, false}, /* the read goes to the master instead */
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct flow_world *flow_world = flow_world_create(true, NULL);
		struct hs_pipe *pipe = open_kind(flow_world, cases[i].kind);

		pipe_up(flow_world, pipe);
		if (cases[i].kind == &hs_resp2_pipes)
			get(flow_world, 1, 1, "GET a");
		assert_true(pipe->upstream.out.len > 0);
		pass(flow_world, 1100);
		assert_int_equal(flow_world->closed, 1);
		assert_int_equal(hs_counter_get(&flow_world->stats.connection_failures),
				 cases[i].blamed);
		assert_int_equal(node_of(flow_world)->down_since_us > 0, cases[i].blamed);
		flow_world_destroy(&flow_world);
	}
}

static struct asked *tracked(struct flow_world *flow_world)
{
	struct asked *asked = make(flow_world, 0, HS_CMD_ID_GET, SLOT_OF_B, "GET b");

	asked->op.resp = 3;
	asked->op.track = true;
	return submit(flow_world, asked);
}

#define FETCH "CLIENT TRACKING ON OPTIN|CLIENT CACHING YES|PTTL b|CLIENT CACHING YES|GET b"
#define FETCHED "+OK\r\n:-1\r\n+OK\r\n$1\r\n1\r\n"

/* The server allowed tracking on the last connection, but refuses it on this one: values fetched on it may not
 * be cached. */
static void test_each_fetch_connection_asks_for_tracking(void **state)
{
	struct flow_world *flow_world = flow_world_create(true, NULL);
	struct asked *first = tracked(flow_world), *second;

	(void)state;
	up(flow_world, 1);
	sent(flow_world, 1, FETCH);
	reply(flow_world, 1, "+OK\r\n" FETCHED);
	got(first, "$1\r\n1\r\n");
	assert_non_null(first->op.tracking_session);
	down(flow_world, 1);
	second = tracked(flow_world);
	up(flow_world, 1);
	sent(flow_world, 1, FETCH);
	reply(flow_world, 1, "-ERR unknown subcommand\r\n" FETCHED);
	got(second, "$1\r\n1\r\n");
	assert_null(second->op.tracking_session);
	assert_int_equal(flow_world->tracking_refused, 1);
	flow_world_destroy(&flow_world);
}

/* A connection closes with a liveness check in flight; the flow checks the next connection all the same. */
static void test_a_lost_check_is_not_waited_for(void **state)
{
	struct flow_world *flow_world = flow_world_create(true, NULL);
	struct hs_node *node = node_of(flow_world);

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct asked *asked = tracked(flow_world);

		up(flow_world, 1);
		sent(flow_world, 1, FETCH);
		reply(flow_world, 1, "+OK\r\n" FETCHED);
		hs_tracking_session_want_check(asked->op.tracking_session);
		hs_flow_check(flow_world->flow, flow_world->now);
		sent(flow_world, 1, "EXISTS b");
		flow_world->now.mono_us += 2000000;
		down(flow_world, 1);
		open_pipe(flow_world, &node->replica.pipe);
		up(flow_world, 1);
		sent(flow_world, 1, "READONLY|INFO replication");
		down(flow_world, 1);
		flow_world->now.mono_us += 2000000;
	}
	flow_world_destroy(&flow_world);
}

/* The pauses between attempts to connect to a node that drops or refuses connections. */
static void test_a_node_that_drops_connections(void **state)
{
	struct flow_world *flow_world = flow_world_create(true, NULL);
	struct hs_node *node = node_of(flow_world);
	struct hs_pipe *pipe = &node->shared[0];

	(void)state;
	pipe_up(flow_world, open_pipe(flow_world, pipe));
	pipe_down(flow_world, pipe, "cut");
	/* The flow connects again at once after the first failure. */
	assert_int_equal(node->backoff.open_at_us, flow_world->now.mono_us);
	pipe_up(flow_world, open_pipe(flow_world, pipe));
	pipe_down(flow_world, pipe, "cut");
	assert_true(node->backoff.open_at_us > flow_world->now.mono_us);
	for (int i = 0; i < 10; i++) {
		flow_world->now.mono_us = node->backoff.open_at_us;
		pipe_down(flow_world, open_pipe(flow_world, pipe), "refused");
	}
	assert_in_range(node->backoff.open_at_us - flow_world->now.mono_us, HS_RECONNECT_US_MAX,
			HS_RECONNECT_US_MAX * 3 / 2);
	flow_world->now.mono_us = node->backoff.open_at_us;
	pipe_up(flow_world, open_pipe(flow_world, pipe));
	flow_world->now.mono_us +=
		HS_RECONNECT_US_MAX; /* a connection that lasts this long ends the series of failures */
	pipe_down(flow_world, pipe, "cut");
	assert_int_equal(node->backoff.open_at_us, flow_world->now.mono_us);
	flow_world_destroy(&flow_world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_how_a_failure_changes_its_node),
		cmocka_unit_test(test_no_reply_in_time),
		cmocka_unit_test(test_each_fetch_connection_asks_for_tracking),
		cmocka_unit_test(test_a_lost_check_is_not_waited_for),
		cmocka_unit_test(test_a_node_that_drops_connections),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
