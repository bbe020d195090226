/* Goal: when a server refuses (CLUSTERDOWN, LOADING) for longer than engine-timeout, the operations that came
 * first wait that long; later ones are still sent, but the refusal is passed on to the client at once. The
 * first one that the server runs again is answered normally.
 *
 * Method: a flow without a network (tests/lib/flow_world.h); the test is the cluster that is down.
 * engine-timeout is a second. */
#include "tests/lib/flow_world.h"

#define DOWN "-CLUSTERDOWN The cluster is down\r\n"
#define READS_ONLY "-CLUSTERDOWN The cluster is down and only accepts read commands\r\n"
#define NOT_SERVED "-CLUSTERDOWN Hash slot not served\r\n"
#define LOADING "-LOADING Redis is loading the dataset in memory\r\n"

/* The server at port 1 refuses all operations with the error `words`, for `ms`. */
static void refuse_for(struct flow_world *flow_world, uint64_t ms, const char *words)
{
	for (uint64_t at = 0; at < ms; at += 100) {
		struct hs_pipe *pipe = pipe_to(flow_world, 1);

		pipe->upstream.sent += pipe->upstream.out.len;
		pipe->upstream.out.len = 0;
		while (pipe->in_flight.first)
			reply(flow_world, 1, words);
		pass(flow_world, 100);
	}
}

/* A world whose port 1 has refused with the error `words` for more than a second, until the first operation
 * timed out. */
static struct flow_world *town_refused(const char *words)
{
	struct flow_world *flow_world = flow_world_create(true, NULL);
	struct asked *first = set(flow_world, 1, 1, "SET a 1");

	up(flow_world, 1);
	refuse_for(flow_world, 900, words);
	assert_false(first->done);
	refuse_for(flow_world, 300, words);
	got(first, words);
	return flow_world;
}

static void refused_at_once(struct flow_world *flow_world, struct asked *asked, const char *request,
			    const char *words)
{
	/* The flow still sends the operation to the server, which may have recovered. */
	sent(flow_world, 1, request);
	reply(flow_world, 1, words);
	got(asked, words);
}

static void served(struct flow_world *flow_world, struct asked *asked, const char *request)
{
	sent(flow_world, 1, request);
	reply(flow_world, 1, "+OK\r\n");
	got(asked, "+OK\r\n");
}

static void waits(struct flow_world *flow_world, struct asked *asked, const char *request,
		  const char *words)
{
	sent(flow_world, 1, request);
	reply(flow_world, 1, words);
	assert_false(asked->done);
	pass(flow_world, 100);
	served(flow_world, asked, request);
}

static void test_later_requests_are_refused_at_once(void **state)
{
	struct flow_world *flow_world = town_refused(DOWN);
	struct asked *other;

	(void)state;
	refused_at_once(flow_world, set(flow_world, 1, 1, "SET a 2"), "SET a 2", DOWN);
	refused_at_once(flow_world, set(flow_world, 2, 7, "SET b 1"), "SET b 1",
			DOWN); /* the same holds for any slot of the node */
	refused_at_once(flow_world, get(flow_world, 2, 9, "GET c"), "GET c", DOWN);

	/* Operations at other nodes still wait. */
	other = get(flow_world, 2, 9000, "GET d");
	up(flow_world, 2);
	sent(flow_world, 2, "GET d");
	reply(flow_world, 2, DOWN);
	assert_false(other->done);
	flow_world_destroy(&flow_world);
}

static void test_requests_that_wait_already(void **state)
{
	struct flow_world *flow_world = flow_world_create(true, NULL);
	struct asked *first = set(flow_world, 1, 1, "SET a 1"), *later;

	(void)state;
	up(flow_world, 1);
	refuse_for(flow_world, 800, DOWN);
	later = set(flow_world, 2, 2, "SET b 1");
	refuse_for(flow_world, 400, DOWN);
	got(first, DOWN);
	got(later, DOWN); /* passed on at the same time: a longer wait would have been in vain */
	flow_world_destroy(&flow_world);
}

static void test_the_node_recovers(void **state)
{
	struct flow_world *flow_world = town_refused(DOWN);

	(void)state;
	served(flow_world, set(flow_world, 1, 1, "SET a 2"), "SET a 2");
	/* The server has recovered: after another refusal, operations wait again. */
	waits(flow_world, set(flow_world, 1, 1, "SET a 3"), "SET a 3", DOWN);
	flow_world_destroy(&flow_world);
}

/* An error reply does not show that the node has recovered, because servers check some errors before the state
 * of the cluster. Nor does the reply to a keyless command, which any node answers. */
static void test_replies_that_prove_no_recovery(void **state)
{
	struct flow_world *flow_world = town_refused(DOWN);
	struct asked *asked = set(flow_world, 1, 1, "SET a");

	(void)state;
	sent(flow_world, 1, "SET a");
	reply(flow_world, 1, "-ERR wrong number of arguments for 'set' command\r\n");
	failed(asked, "-ERR wrong");
	asked = submit(flow_world, make(flow_world, 1, HS_CMD_ID_DBSIZE, HS_SLOT_NONE, "DBSIZE"));
	sent(flow_world, 1, "DBSIZE");
	reply(flow_world, 1, ":0\r\n");
	got(asked, ":0\r\n");
	refused_at_once(flow_world, set(flow_world, 1, 1, "SET a 2"), "SET a 2", DOWN);
	flow_world_destroy(&flow_world);
}

static void read_served(struct flow_world *flow_world)
{
	struct asked *read = get(flow_world, 1, 1, "GET a");

	sent(flow_world, 1, "GET a");
	reply(flow_world, 1, "$1\r\n1\r\n");
	got(read, "$1\r\n1\r\n");
}

static void test_reads_may_be_served(void **state)
{
	struct flow_world *flow_world = town_refused(READS_ONLY);

	(void)state;
	waits(flow_world, get(flow_world, 1, 1, "GET a"), "GET a",
	      DOWN); /* the server refused writes only: the first refused read waits */
	read_served(flow_world);
	refused_at_once(flow_world, set(flow_world, 1, 1, "SET a 2"), "SET a 2", READS_ONLY);
	served(flow_world, set(flow_world, 1, 1, "SET a 2"), "SET a 2");
	waits(flow_world, set(flow_world, 1, 1, "SET a 3"), "SET a 3", READS_ONLY);
	flow_world_destroy(&flow_world);
}

static void test_reads_are_served_first(void **state)
{
	struct flow_world *flow_world = town_refused(DOWN);

	(void)state;
	read_served(flow_world);
	waits(flow_world, get(flow_world, 1, 1, "GET a"), "GET a", DOWN);
	refused_at_once(flow_world, set(flow_world, 1, 1, "SET a 2"), "SET a 2", READS_ONLY);
	flow_world_destroy(&flow_world);
}

static void test_one_slot(void **state)
{
	struct flow_world *flow_world = town_refused(NOT_SERVED);

	(void)state;
	served(flow_world, set(flow_world, 1, 2, "SET b 1"),
	       "SET b 1"); /* another slot is served, which does not show that slot 1 is served */
	refused_at_once(flow_world, set(flow_world, 1, 1, "SET a 2"), "SET a 2", NOT_SERVED);
	waits(flow_world, set(flow_world, 1, 2, "SET b 2"), "SET b 2", NOT_SERVED);
	served(flow_world, set(flow_world, 1, 1, "SET a 2"), "SET a 2");
	waits(flow_world, set(flow_world, 1, 1, "SET a 3"), "SET a 3", NOT_SERVED);
	flow_world_destroy(&flow_world);
}

static void test_loading(void **state)
{
	struct flow_world *flow_world = town_refused(LOADING);

	(void)state;
	refused_at_once(flow_world, get(flow_world, 2, 5, "GET b"), "GET b", LOADING);
	served(flow_world, set(flow_world, 2, 5, "SET b 1"), "SET b 1");
	waits(flow_world, set(flow_world, 1, 1, "SET a 3"), "SET a 3", LOADING);
	flow_world_destroy(&flow_world);
}

/* Migrations and failovers end by themselves: after TRYAGAIN an operation always waits, however many operations
 * were refused. */
static void test_refusals_that_are_waited_for(void **state)
{
	struct flow_world *flow_world = town_refused("-TRYAGAIN Multiple keys request\r\n");

	(void)state;
	waits(flow_world, set(flow_world, 1, 1, "SET a 2"), "SET a 2",
	      "-TRYAGAIN Multiple keys request\r\n");
	flow_world_destroy(&flow_world);
}

static void test_a_refusal_long_ago(void **state)
{
	struct flow_world *flow_world = town_refused(DOWN);

	(void)state;
	pass(flow_world, HS_REFUSAL_ROW_US_MAX / 1000 - 1000);
	refused_at_once(flow_world, set(flow_world, 1, 1, "SET a 2"), "SET a 2", DOWN);
	pass(flow_world, HS_REFUSAL_ROW_US_MAX / 1000 + 1);
	waits(flow_world, set(flow_world, 1, 1, "SET a 3"), "SET a 3", DOWN);
	flow_world_destroy(&flow_world);
}

/* The server refuses each command of a transaction, and then EXEC: the client gets the reason, not EXECABORT. */
static void test_transactions(void **state)
{
	struct flow_world *flow_world = town_refused(DOWN);
	struct hs_op_tx_command command = {.command = hs_command_by_id(HS_CMD_ID_SET)};
	struct asked *asked = make(flow_world, 1, HS_CMD_ID_EXEC, 1, "EXEC");
	struct hs_bytes words[] = {HS_LIT("SET"), HS_LIT("a"), HS_LIT("1")};

	(void)state;
	command.argc = 3;
	command.argv = words;
	asked->tx = (struct hs_op_tx){.commands = &command, .count = 1};
	asked->op.kind = HS_OP_EXEC;
	asked->op.tx = &asked->tx;
	submit(flow_world, asked);
	sent(flow_world, 1, "MULTI|SET a 1|EXEC");
	reply(flow_world, 1, "+OK\r\n" DOWN);
	assert_false(asked->done);
	reply(flow_world, 1, "-EXECABORT Transaction discarded because of previous errors.\r\n");
	got(asked, DOWN);
	flow_world_destroy(&flow_world);
}

/* Several operations on one slot are refused. When the first times out, the flow passes the refusals on in the
 * order of the requests. */
static void test_order(void **state)
{
	struct flow_world *flow_world = flow_world_create(true, NULL);
	struct asked *first = set(flow_world, 1, 1, "SET a 1"), *a, *b;

	(void)state;
	up(flow_world, 1);
	refuse_for(flow_world, 1000, DOWN);
	/* Same slot: waits for the first operation, which waits for a retry. */
	a = set(flow_world, 2, 1, "SET a 2");
	b = set(flow_world, 2, 1, "SET a 3");
	assert_false(a->done);
	refuse_for(flow_world, 200, DOWN);
	got(first, DOWN);
	got(a, DOWN);
	got(b, DOWN);
	assert_int_equal(flow_world->finished[0], 0);
	assert_int_equal(flow_world->finished[1], 1);
	assert_int_equal(flow_world->finished[2], 2);
	flow_world_destroy(&flow_world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_later_requests_are_refused_at_once),
		cmocka_unit_test(test_requests_that_wait_already),
		cmocka_unit_test(test_the_node_recovers),
		cmocka_unit_test(test_replies_that_prove_no_recovery),
		cmocka_unit_test(test_reads_may_be_served),
		cmocka_unit_test(test_reads_are_served_first),
		cmocka_unit_test(test_one_slot),
		cmocka_unit_test(test_loading),
		cmocka_unit_test(test_refusals_that_are_waited_for),
		cmocka_unit_test(test_a_refusal_long_ago),
		cmocka_unit_test(test_transactions),
		cmocka_unit_test(test_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
