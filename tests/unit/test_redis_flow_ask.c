/* Goal: a command answered ASK is sent on to the node that its slot is moving to, in the order of its client.
 * If that node refuses the command, the flow retries it at the owner, unless a later command of the same client
 * has run (laws 2 and 4).
 *
 * Method: scripts in which the test is the Cluster, as in test_redis_flow.c. */
#include "tests/lib/flow_world.h"

/* Opens the connection to port 2, so that the flow can send commands on without a pause. */
static void connect_second(struct flow_world *flow_world)
{
	get(flow_world, 9, 9000, "GET z");
	up(flow_world, 2);
	sent(flow_world, 2, "GET z");
	reply(flow_world, 2, "$-1\r\n");
}

static void test_ask_of_a_node_not_yet_open(void **state)
{
	struct flow_world *flow_world = flow_world_create(true, NULL);
	struct asked *a = set(flow_world, 1, 1, "SET a 1");

	(void)state;
	up(flow_world, 1);
	sent(flow_world, 1, "SET a 1");
	reply(flow_world, 1, "-ASK 1 h:2\r\n");
	up(flow_world, 2);
	/* The flow retries at the owner and, after another ASK, at the target. */
	pass(flow_world, 100);
	sent(flow_world, 1, "SET a 1");
	reply(flow_world, 1, "-ASK 1 h:2\r\n");
	sent(flow_world, 2, "ASKING|SET a 1");
	reply(flow_world, 2, "+OK\r\n+OK\r\n");
	got(a, "+OK\r\n");
	flow_world_destroy(&flow_world);
}

static void test_no_retry_when_its_client_sent_more(void **state)
{
	struct flow_world *flow_world = flow_world_create(true, NULL);
	struct asked *a, *b;

	(void)state;
	a = set(flow_world, 1, 1, "SET a 1");
	b = set(flow_world, 1, 1, "SET a 2");
	up(flow_world, 1);
	sent(flow_world, 1, "SET a 1|SET a 2");
	reply(flow_world, 1, "-LOADING Redis is loading the dataset in memory\r\n");
	assert_false(a->done);
	reply(flow_world, 1, "+OK\r\n");
	got(b, "+OK\r\n");
	failed(a, "-LOADING"); /* no retry: it would run after b */
	flow_world_destroy(&flow_world);
}

/* A migration is cancelled between two commands of one pipeline: the owner answers the first command with ASK
 * and runs the second. */
static void test_no_retry_when_a_later_command_of_its_client_ran(void **state)
{
	struct flow_world *flow_world = flow_world_create(true, NULL);
	struct asked *a, *b, *c;

	(void)state;
	connect_second(flow_world);
	a = set(flow_world, 1, 1, "SET a 1");
	b = set(flow_world, 1, 1, "SET a 2");
	up(flow_world, 1);
	sent(flow_world, 1, "SET a 1|SET a 2");
	reply(flow_world, 1, "-ASK 1 h:2\r\n+OK\r\n");
	got(b, "+OK\r\n");
	/* No later command has run: the flow retries this one. */
	c = set(flow_world, 1, 1, "SET a 3");
	sent(flow_world, 1, "SET a 3");
	reply(flow_world, 1, "-ASK 1 h:2\r\n");
	sent(flow_world, 2, "ASKING|SET a 1|ASKING|SET a 3");
	reply(flow_world, 2, "+OK\r\n-MOVED 1 h:1\r\n+OK\r\n-MOVED 1 h:1\r\n");
	failed(a, "-CLUSTERDOWN slot is migrating (MOVED 1 h:1); not run\r");
	pass(flow_world, 100);
	sent(flow_world, 1, "SET a 3");
	reply(flow_world, 1, "+OK\r\n");
	got(c, "+OK\r\n");
	flow_world_destroy(&flow_world);
}

/* Slot 1 moves from port 1 to port 2, which is connected. Client 1 sends `request`, then client 2 sends a GET.
 * The owner answers `request` with ASK and serves the GET; the GET has no effect on the order of client 1. */
static struct asked *sent_on_beside_another(struct flow_world *flow_world, bool writes,
					    const char *request)
{
	struct asked *a, *b;
	char text[64];

	connect_second(flow_world);
	a = writes ? set(flow_world, 1, 1, request) : get(flow_world, 1, 1, request);
	b = get(flow_world, 2, 1, "GET c");
	up(flow_world, 1);
	snprintf(text, sizeof text, "%s|GET c", request);
	sent(flow_world, 1, text);
	reply(flow_world, 1, "-ASK 1 h:2\r\n$1\r\nc\r\n");
	got(b, "$1\r\nc\r\n");
	snprintf(text, sizeof text, "ASKING|%s", request);
	sent(flow_world, 2, text);
	return a;
}

static void test_retry_when_another_client_s_command_ran(void **state)
{
	struct flow_world *flow_world = flow_world_create(true, NULL);
	struct asked *a = sent_on_beside_another(flow_world, true, "MSET a 1 b 1");

	(void)state;
	reply(flow_world, 2, "+OK\r\n-TRYAGAIN Multiple keys request during rehashing of slot\r\n");
	assert_false(a->done);
	pass(flow_world, 100);
	sent(flow_world, 1, "MSET a 1 b 1");
	reply(flow_world, 1, "+OK\r\n");
	got(a, "+OK\r\n");
	flow_world_destroy(&flow_world);

	flow_world = flow_world_create(true, NULL);
	a = sent_on_beside_another(flow_world, false, "GET a");
	down(flow_world, 2);
	assert_false(a->done);
	pass(flow_world, 100);
	sent(flow_world, 1, "GET a");
	reply(flow_world, 1, "$-1\r\n");
	got(a, "$-1\r\n");
	flow_world_destroy(&flow_world);
}

/* The connection to the next owner is not ready: the flow does not send the command on, and retries it at the
 * owner. */
static void test_retry_when_the_next_owner_is_not_connected_yet(void **state)
{
	struct flow_world *flow_world = flow_world_create(true, NULL);
	struct asked *a = set(flow_world, 1, 1, "SET a 1"), *b = get(flow_world, 2, 1, "GET c");

	(void)state;
	up(flow_world, 1);
	sent(flow_world, 1, "SET a 1|GET c");
	reply(flow_world, 1, "-ASK 1 h:3\r\n$1\r\nc\r\n");
	got(b, "$1\r\nc\r\n");
	pass(flow_world, 100);
	sent(flow_world, 1, "SET a 1");
	reply(flow_world, 1, "-ASK 1 h:3\r\n");
	assert_false(a->done);
	up(flow_world, 3);
	pass(flow_world, 100);
	sent(flow_world, 1, "SET a 1");
	reply(flow_world, 1, "-ASK 1 h:3\r\n");
	sent(flow_world, 3, "ASKING|SET a 1");
	reply(flow_world, 3, "+OK\r\n+OK\r\n");
	got(a, "+OK\r\n");
	flow_world_destroy(&flow_world);
}

/* The owner has run the client's next command. When the target also answers ASK, the flow gives the first
 * command up. */
static void test_ask_not_followed_when_a_later_command_of_its_client_ran(void **state)
{
	struct flow_world *flow_world = flow_world_create(true, NULL);
	struct asked *a, *b;

	(void)state;
	connect_second(flow_world);
	a = set(flow_world, 1, 1, "SET a 1");
	b = set(flow_world, 1, 1, "SET a 2");
	up(flow_world, 1);
	sent(flow_world, 1, "SET a 1|SET a 2");
	reply(flow_world, 1, "-ASK 1 h:2\r\n+OK\r\n");
	got(b, "+OK\r\n");
	sent(flow_world, 2, "ASKING|SET a 1");
	reply(flow_world, 2, "+OK\r\n-ASK 1 h:1\r\n");
	failed(a, "-CLUSTERDOWN slot is migrating (ASK 1 h:1); not run\r");
	flow_world_destroy(&flow_world);
}

/* Some keys of a transaction have moved and some have not: after ASK the flow sends the whole transaction on. */
static void test_a_transaction_that_is_sent_on(void **state)
{
	struct flow_world *flow_world = flow_world_create(true, NULL);
	struct hs_bytes incr[] = {HS_LIT("INCR"), HS_LIT("a")},
			read[] = {HS_LIT("GET"), HS_LIT("b")};
	struct hs_op_tx_command commands[] = {
		{.command = hs_command_by_id(HS_CMD_ID_INCR), .argv = incr, .argc = 2},
		{.command = hs_command_by_id(HS_CMD_ID_GET), .argv = read, .argc = 2},
	};
	struct asked *exec, *later;

	(void)state;
	connect_second(flow_world);
	exec = submit(flow_world, make_exec(flow_world, 0, commands, 2));
	up(flow_world, 1);
	sent(flow_world, 1, "MULTI|INCR a|GET b|EXEC");
	reply(flow_world, 1, "+OK\r\n-ASK 1 h:2\r\n+QUEUED\r\n-EXECABORT\r\n");
	sent(flow_world, 2, "ASKING|MULTI|INCR a|GET b|EXEC");
	/* The client's next command waits for the transaction, although its key has not moved. */
	later = set(flow_world, exec->op.client, 1, "SET b 2");
	sent(flow_world, 1, "");
	reply(flow_world, 2, "+OK\r\n+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n:1\r\n$1\r\n1\r\n");
	got(exec, "*2\r\n:1\r\n$1\r\n1\r\n");
	sent(flow_world, 1, "SET b 2");
	reply(flow_world, 1, "+OK\r\n");
	got(later, "+OK\r\n");
	/* The next command is already in flight to the owner and may run first: the transaction fails instead. */
	exec = submit(flow_world, make_exec(flow_world, 0, commands, 2));
	later = set(flow_world, exec->op.client, 1, "SET b 3");
	sent(flow_world, 1, "MULTI|INCR a|GET b|EXEC|SET b 3");
	reply(flow_world, 1, "+OK\r\n-ASK 1 h:2\r\n+QUEUED\r\n-EXECABORT\r\n");
	sent(flow_world, 2, "");
	reply(flow_world, 1, "+OK\r\n");
	got(later, "+OK\r\n");
	failed(exec, "-CLUSTERDOWN slot is migrating (ASK 1 h:2); not run\r");
	flow_world_destroy(&flow_world);
}

/* Several transactions of one client are answered ASK: the flow sends them on one after the other. */
static void test_transactions_that_are_sent_on(void **state)
{
	struct flow_world *flow_world = flow_world_create(true, NULL);
	struct hs_bytes incr[] = {HS_LIT("INCR"), HS_LIT("a")};
	struct hs_op_tx_command commands[] = {
		{.command = hs_command_by_id(HS_CMD_ID_INCR), .argv = incr, .argc = 2},
	};
	struct asked *execs[3];

	(void)state;
	connect_second(flow_world);
	for (int i = 0; i < 3; i++)
		execs[i] = submit(flow_world, make_exec(flow_world, 0, commands, 1));
	up(flow_world, 1);
	sent(flow_world, 1, "MULTI|INCR a|EXEC|MULTI|INCR a|EXEC|MULTI|INCR a|EXEC");
	for (int i = 0; i < 3; i++)
		reply(flow_world, 1, "+OK\r\n-ASK 1 h:2\r\n-EXECABORT\r\n");
	sent(flow_world, 2, "");
	pass(flow_world, 100);
	for (int i = 0; i < 3; i++) {
		char answer[16];

		sent(flow_world, 1, "MULTI|INCR a|EXEC");
		reply(flow_world, 1, "+OK\r\n-ASK 1 h:2\r\n-EXECABORT\r\n");
		sent(flow_world, 2, "ASKING|MULTI|INCR a|EXEC");
		snprintf(answer, sizeof answer, "*1\r\n:%d\r\n", i + 1);
		reply(flow_world, 2, "+OK\r\n+OK\r\n+QUEUED\r\n");
		reply(flow_world, 2, answer);
		got(execs[i], answer);
	}
	sent(flow_world, 1, "");
	flow_world_destroy(&flow_world);
}

/* The target answers a transaction TRYAGAIN. The flow first retries the transaction alone, then together with
 * the other commands for the slot; commands of other clients are answered meanwhile. */
static void test_a_waiting_transaction_delays_no_other_client(void **state)
{
	struct flow_world *flow_world = flow_world_create(true, NULL);
	struct hs_bytes incr[] = {HS_LIT("INCR"), HS_LIT("a")};
	struct hs_op_tx_command commands[] = {
		{.command = hs_command_by_id(HS_CMD_ID_INCR), .argv = incr, .argc = 2},
	};
	struct asked *exec, *later, *other;

	(void)state;
	connect_second(flow_world);
	exec = submit(flow_world, make_exec(flow_world, 0, commands, 1));
	later = get(flow_world, exec->op.client, 1, "GET c");
	up(flow_world, 1);
	sent(flow_world, 1, "MULTI|INCR a|EXEC|GET c");
	reply(flow_world, 1, "+OK\r\n-ASK 1 h:2\r\n-EXECABORT\r\n-ASK 1 h:2\r\n");
	pass(flow_world, 100);
	sent(flow_world, 1, "MULTI|INCR a|EXEC");
	reply(flow_world, 1, "+OK\r\n-ASK 1 h:2\r\n-EXECABORT\r\n");
	sent(flow_world, 2, "ASKING|MULTI|INCR a|EXEC");
	other = get(flow_world, 2, 1, "GET b");
	reply(flow_world, 2, "+OK\r\n+OK\r\n+QUEUED\r\n-TRYAGAIN later\r\n");
	pass(flow_world, 100);
	sent(flow_world, 1, "MULTI|INCR a|EXEC|GET c|GET b");
	reply(flow_world, 1, "+OK\r\n-ASK 1 h:2\r\n-EXECABORT\r\n-ASK 1 h:2\r\n$1\r\nb\r\n");
	got(other, "$1\r\nb\r\n");
	pass(flow_world, 100);
	sent(flow_world, 1, "MULTI|INCR a|EXEC");
	reply(flow_world, 1, "+OK\r\n-ASK 1 h:2\r\n-EXECABORT\r\n");
	sent(flow_world, 2, "ASKING|MULTI|INCR a|EXEC");
	reply(flow_world, 2, "+OK\r\n+OK\r\n+QUEUED\r\n*1\r\n:1\r\n");
	got(exec, "*1\r\n:1\r\n");
	sent(flow_world, 1, "GET c");
	reply(flow_world, 1, "$1\r\nc\r\n");
	got(later, "$1\r\nc\r\n");
	flow_world_destroy(&flow_world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ask_of_a_node_not_yet_open),
		cmocka_unit_test(test_no_retry_when_its_client_sent_more),
		cmocka_unit_test(test_no_retry_when_a_later_command_of_its_client_ran),
		cmocka_unit_test(test_retry_when_another_client_s_command_ran),
		cmocka_unit_test(test_retry_when_the_next_owner_is_not_connected_yet),
		cmocka_unit_test(test_ask_not_followed_when_a_later_command_of_its_client_ran),
		cmocka_unit_test(test_a_transaction_that_is_sent_on),
		cmocka_unit_test(test_transactions_that_are_sent_on),
		cmocka_unit_test(test_a_waiting_transaction_delays_no_other_client),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
