/* Goal: each kind of pipe (struct hs_pipe_kind) says of its node what its failures really tell, and begins
 * anew with each connection.
 *
 * Method: scripts in which the test is the servers (tests/lib/flow.h); slot 1 is at port 1. */
#include "tests/lib/flow.h"

enum { SLOT_OF_B = 3300 };
#define REFUSED HS_REFUSES_US ": NOPERM"

static struct hs_node *node_of(struct town *town)
{
	return town->flow->nodes[0];
}

static void pipe_up(struct town *town, struct hs_pipe *pipe)
{
	hs_flow_up(town->flow, town->now, pipe);
	hs_flow_flush(town->flow, town->now);
}

static void pipe_down(struct town *town, struct hs_pipe *pipe, const char *why)
{
	town_forget(town, pipe);
	hs_flow_down(town->flow, town->now, pipe, why);
}

static struct hs_pipe *open_pipe(struct town *town, struct hs_pipe *pipe)
{
	town->flow->now = town->now;
	hs_flow_open(town->flow, pipe);
	assert_int_equal(pipe->upstream.state, HS_UPSTREAM_OPENING);
	return pipe;
}

/* A pipe of a kind to the node, being opened. */
static struct hs_pipe *open_kind(struct town *town, const struct hs_pipe_kind *kind)
{
	struct hs_node *node = node_of(town);
	struct asked *watch;

	for (int i = 0; i < HS_NODE_PIPES; i++) {
		if (node->pipes[i]->kind == kind)
			return open_pipe(town, node->pipes[i]);
	}
	watch = make(town, 1, HS_CMD_ID_WATCH, 1, "WATCH a");
	watch->op.kind = HS_OP_WATCH;
	watch->op.watcher = 7;
	submit(town, watch);
	return pipe_to(town, 1);
}

static void test_what_a_failure_says_of_its_node(void **state)
{
	static const struct {
		const struct hs_pipe_kind *kind;
		const char *why;
		bool reached; /* another pipe, that all clients share, is up */
		bool down;    /* the node counts as down */
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
		struct town *town = town_create(true, NULL);
		struct hs_node *node = node_of(town);
		struct hs_pipe *pipe;

		if (cases[i].reached)
			pipe_up(town, open_pipe(town, &node->shared[1]));
		pipe = open_kind(town, cases[i].kind);
		pipe_down(town, pipe, cases[i].why);
		assert_int_equal(node->down_since_us > 0, cases[i].down);
		assert_int_equal(node->backoff.open_at_us > town->now.mono_us, cases[i].down);
		if (cases[i].reached)
			pipe_down(town, &node->shared[1], "cut");
		town_destroy(&town);
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
		{&hs_replica_pipes, false}, /* the master is asked instead */
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct town *town = town_create(true, NULL);
		struct hs_pipe *pipe = open_kind(town, cases[i].kind);

		pipe_up(town, pipe);
		if (cases[i].kind == &hs_resp2_pipes)
			get(town, 1, 1, "GET a");
		assert_true(pipe->upstream.out.len > 0);
		pass(town, 1100);
		assert_int_equal(town->closed, 1);
		assert_int_equal(hs_counter_get(&town->stats.failures), cases[i].blamed);
		assert_int_equal(node_of(town)->down_since_us > 0, cases[i].blamed);
		town_destroy(&town);
	}
}

static struct asked *tracked(struct town *town)
{
	struct asked *asked = make(town, 0, HS_CMD_ID_GET, SLOT_OF_B, "GET b");

	asked->op.resp = 3;
	asked->op.track = true;
	return submit(town, asked);
}

#define FETCH "CLIENT TRACKING ON OPTIN|CLIENT CACHING YES|PTTL b|CLIENT CACHING YES|GET b"
#define FETCHED "+OK\r\n:-1\r\n+OK\r\n$1\r\n1\r\n"

/* The server let the last connection track, and not this one: nothing may be kept. */
static void test_each_fetch_connection_asks_for_tracking(void **state)
{
	struct town *town = town_create(true, NULL);
	struct asked *first = tracked(town), *second;

	(void)state;
	up(town, 1);
	sent(town, 1, FETCH);
	reply(town, 1, "+OK\r\n" FETCHED);
	got(first, "$1\r\n1\r\n");
	assert_non_null(first->op.tracking_session);
	down(town, 1);
	second = tracked(town);
	up(town, 1);
	sent(town, 1, FETCH);
	reply(town, 1, "-ERR unknown subcommand\r\n" FETCHED);
	got(second, "$1\r\n1\r\n");
	assert_null(second->op.tracking_session);
	assert_int_equal(town->untracked, 1);
	town_destroy(&town);
}

/* A connection is lost with a liveness check under way; the next one is checked all the same. */
static void test_a_lost_check_is_not_waited_for(void **state)
{
	struct town *town = town_create(true, NULL);
	struct hs_node *node = node_of(town);

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct asked *asked = tracked(town);

		up(town, 1);
		sent(town, 1, FETCH);
		reply(town, 1, "+OK\r\n" FETCHED);
		hs_tracking_session_want_check(asked->op.tracking_session);
		hs_flow_check(town->flow, town->now);
		sent(town, 1, "EXISTS b");
		town->now.mono_us += 2000000;
		down(town, 1);
		open_pipe(town, &node->replica.pipe);
		up(town, 1);
		sent(town, 1, "READONLY|INFO replication");
		down(town, 1);
		town->now.mono_us += 2000000;
	}
	town_destroy(&town);
}

/* When a node may be connected to again. */
static void test_a_node_that_drops_connections(void **state)
{
	struct town *town = town_create(true, NULL);
	struct hs_node *node = node_of(town);
	struct hs_pipe *pipe = &node->shared[0];

	(void)state;
	pipe_up(town, open_pipe(town, pipe));
	pipe_down(town, pipe, "cut");
	assert_int_equal(node->backoff.open_at_us, town->now.mono_us); /* for once */
	pipe_up(town, open_pipe(town, pipe));
	pipe_down(town, pipe, "cut");
	assert_true(node->backoff.open_at_us > town->now.mono_us);
	for (int i = 0; i < 10; i++) {
		town->now.mono_us = node->backoff.open_at_us;
		pipe_down(town, open_pipe(town, pipe), "refused");
	}
	assert_in_range(node->backoff.open_at_us - town->now.mono_us, HS_OPEN_US_MAX,
			HS_OPEN_US_MAX * 3 / 2);
	town->now.mono_us = node->backoff.open_at_us;
	pipe_up(town, open_pipe(town, pipe));
	town->now.mono_us += HS_OPEN_US_MAX; /* it lasts: the row of failures has ended */
	pipe_down(town, pipe, "cut");
	assert_int_equal(node->backoff.open_at_us, town->now.mono_us);
	town_destroy(&town);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_a_failure_says_of_its_node),
		cmocka_unit_test(test_no_reply_in_time),
		cmocka_unit_test(test_each_fetch_connection_asks_for_tracking),
		cmocka_unit_test(test_a_lost_check_is_not_waited_for),
		cmocka_unit_test(test_a_node_that_drops_connections),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
