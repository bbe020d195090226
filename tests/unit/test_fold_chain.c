/* Goal: a client's requests for several hot keys, and other requests between them, are sent in one round in the
 * client's order (absorb/fold/chain.c). If this order could be lost, the requests wait.
 *
 * Method: scripts against a core whose engine is the test (tests/lib/fold_stage_world.h). */
#include "tests/lib/fold_stage_world.h"

/* Lets the core see that the key's number is far from an overflow. */
static void make_far_from_overflow(struct world *world, const char *key)
{
	char words[64];

	snprintf(words, sizeof words, "INCR %s", key);
	say(world, 'A', words);
	say(world, 'B', words);
	end_round(world);
	take_sent(world);
	reply(world, "INCRBY", ":2\r\n");
	take_received(world, 'A');
	take_received(world, 'B');
}

static void open_world_far_from_overflow(struct world *world)
{
	open_world(world);
	make_far_from_overflow(world, "{a}k");
	make_far_from_overflow(world, "{a}l");
}

/* Asserts that all operations in flight have one client id, and that it is no client's own id. */
static void assert_one_name(const struct world *world)
{
	for (size_t i = 1; i < world->count; i++)
		assert_true(world->ops[i]->client == world->ops[0]->client);
	assert_true(world->count == 0 || world->ops[0]->client > CLIENTS + 1);
}

static void test_pipelines_leave_together(void **state)
{
	static struct world world;

	(void)state;
	open_world_far_from_overflow(&world);
	say(&world, 'A', "INCR {a}k\r\nINCR {a}l\r\nINCR {a}k");
	say(&world, 'B', "INCR {a}l\r\nINCR {a}k");
	say(&world, 'C', "INCR {a}k\r\nINCR {a}l\r\nINCR {a}k");
	say(&world, 'D', "INCR {a}l\r\nINCR {a}k");
	sent(&world, "");
	end_round(&world);
	sent(&world, "INCRBY {a}k 2 | INCRBY {a}l 2 | INCRBY {a}l 2 | INCRBY {a}k 2 | "
		     "INCRBY {a}k 2");
	assert_one_name(&world);
	reply(&world, "INCRBY {a}k", ":4\r\n");
	reply(&world, "INCRBY {a}l", ":4\r\n");
	reply(&world, "INCRBY {a}l", ":6\r\n");
	reply(&world, "INCRBY {a}k", ":6\r\n");
	reply(&world, "INCRBY {a}k", ":8\r\n");
	received(&world, 'A', ":3\r\n:5\r\n:7\r\n");
	received(&world, 'B', ":3\r\n:5\r\n");
	received(&world, 'C', ":4\r\n:6\r\n:8\r\n");
	received(&world, 'D', ":4\r\n:6\r\n");
	/* Requests for one key alone need no chain: the batches of the two keys have different client ids. */
	for (int who = 'A'; who <= 'D'; who++)
		say(&world, (char)who, who < 'C' ? "INCR {a}k" : "INCR {a}l");
	end_round(&world);
	sent(&world, "INCRBY {a}k 2 | INCRBY {a}l 2");
	assert_true(world.ops[0]->client != world.ops[1]->client);
	reply(&world, "INCRBY", ":10\r\n");
	reply(&world, "INCRBY", ":10\r\n");
	for (int who = 'A'; who <= 'D'; who++)
		take_received(&world, (char)who);
	close_world(&world);
}

static void test_other_commands_stand_in_the_chain(void **state)
{
	static struct world world;

	(void)state;
	open_world_far_from_overflow(&world);
	say(&world, 'A', "INCR {a}k\r\nAPPEND {a}x y\r\nPING\r\nINCR {a}k");
	say(&world, 'B', "INCR {a}k");
	sent(&world, "");
	end_round(&world);
	sent(&world, "INCRBY {a}k 2 | APPEND {a}x y | INCR {a}k");
	assert_one_name(&world);
	/* A's next requests would leave under another client id, so they wait for the chain. */
	say(&world, 'A', "GET {a}x\r\nINCR {a}l");
	say(&world, 'B', "GET {a}x");
	end_round(&world);
	sent(&world, "");
	reply(&world, "INCRBY", ":4\r\n");
	sent(&world, "GET {a}x"); /* B's request */
	reply(&world, "APPEND", ":1\r\n");
	reply(&world, "INCR", ":5\r\n");
	sent(&world, "GET {a}x");
	assert_int_equal(world.ops[1]->client, 1);
	end_round(&world);
	sent(&world, "INCR {a}l");
	reply(&world, "GET", "$1\r\ny\r\n");
	reply(&world, "GET", "$1\r\ny\r\n");
	reply(&world, "INCR", ":3\r\n");
	received(&world, 'A', ":3\r\n:1\r\n+PONG\r\n:5\r\n$1\r\ny\r\n:3\r\n");
	received(&world, 'B', ":4\r\n$1\r\ny\r\n");
	close_world(&world);
}

/* An increment that could overflow may have to be retried, so no later request of its client is sent before the
 * reply. */
static void test_nothing_follows_a_command_that_may_be_retried(void **state)
{
	static struct world world;

	(void)state;
	open_world(&world);
	for (int round = 0; round < 2; round++) {
		say(&world, 'B', "INCR {a}k");
		say(&world, 'A', "INCR {a}k\r\nSET {a}l 1");
		end_round(&world);
		sent(&world, "INCRBY {a}k 2");
		/* The new number is near the limit, so nothing is sent after the next increment, either. */
		reply(&world, "INCRBY", ":9223372036854775800\r\n");
		end_round(&world);
		sent(&world, "SET {a}l 1");
		reply(&world, "SET", "+OK\r\n");
		take_received(&world, 'A');
		take_received(&world, 'B');
	}
	close_world(&world);
}

/* A write that is not folded may bring the number near a limit. */
static void test_other_writes_may_lead_to_a_limit(void **state)
{
	static const char *const words[] = {"SETRANGE {a}k 0 9", "EVAL s 1 {a}k",
					    "MSET {a}x 1 {a}k 9223372036854775807", "EVAL s 0",
					    "MULTI\r\nSET {a}k 9223372036854775807\r\nEXEC"};
	static struct world world;

	(void)state;
	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		print_message("%s\n", words[i]);
		open_world_far_from_overflow(&world);
		say(&world, 'C', words[i]);
		say(&world, 'B', "INCR {a}k");
		say(&world, 'A', "INCR {a}k\r\nSET {a}l 1");
		end_round(&world);
		take_sent(&world);
		assert_int_equal(world.count, 2);
		reply(&world, "INCRBY {a}k 2", "-ERR increment or decrement would overflow\r\n");
		take_sent(&world);
		reply(&world, "INCR {a}k", ":9223372036854775807\r\n");
		reply(&world, "INCR {a}k", "-ERR increment or decrement would overflow\r\n");
		end_round(&world);
		sent(&world, "SET {a}l 1");
		reply(&world, "SET {a}l", "+OK\r\n");
		reply(&world, "", "*1\r\n+OK\r\n");
		received(&world, 'A', "-ERR increment or decrement would overflow\r\n+OK\r\n");
		take_received(&world, 'B');
		take_received(&world, 'C');
		close_world(&world);
	}
}

/* Operations in flight have the client id of their round. The client's other requests would leave under another
 * id, so they wait. */
static void test_a_chain_waits_for_a_batch_in_flight(void **state)
{
	static struct world world;

	(void)state;
	open_world(&world);
	say(&world, 'C', "INCR {a}l");
	end_round(&world);
	sent(&world, "INCR {a}l");
	say(&world, 'A', "SET {a}k 1\r\nGET {a}l\r\nGET {a}x");
	say(&world, 'B', "SET {a}k 2");
	end_round(&world);
	sent(&world, "SET {a}k 2");
	reply(&world, "INCR", ":1\r\n");
	end_round(&world);
	/* GET waits for the SET in flight, although no other client waits for GET's key. */
	sent(&world, "");
	reply(&world, "SET", "+OK\r\n");
	end_round(&world);
	sent(&world, "GET {a}l | GET {a}x");
	assert_one_name(&world);
	reply(&world, "GET {a}l", "$1\r\n1\r\n");
	reply(&world, "GET {a}x", "$-1\r\n");
	received(&world, 'A', "+OK\r\n$1\r\n1\r\n$-1\r\n");
	received(&world, 'B', "+OK\r\n");
	received(&world, 'C', ":1\r\n");
	close_world(&world);
}

/* A client's requests are in one batch in flight at a time, even if its queue is planned twice in a round. */
static void test_the_rest_of_a_plan_waits_for_the_next_batch(void **state)
{
	static struct world world;

	(void)state;
	open_world_far_from_overflow(&world);
	say(&world, 'A', "INCR {a}k\r\nTTL {a}k\r\nINCR {a}l");
	say(&world, 'B', "INCR {a}k\r\nTTL {a}k");
	say(&world, 'C', "INCR {a}l\r\nINCR {a}k");
	end_round(&world);
	sent(&world, "INCRBY {a}k 2 | INCR {a}l | INCR {a}k");
	reply(&world, "INCRBY", ":4\r\n");
	reply(&world, "INCR {a}l", ":3\r\n");
	end_round(&world);
	sent(&world, "");
	reply(&world, "INCR {a}k", ":5\r\n");
	end_round(&world);
	sent(&world, "TTL {a}k | INCR {a}l");
	assert_one_name(&world);
	reply(&world, "TTL", ":-1\r\n");
	reply(&world, "INCR", ":4\r\n");
	received(&world, 'A', ":3\r\n:-1\r\n:4\r\n");
	received(&world, 'B', ":4\r\n:-1\r\n");
	received(&world, 'C', ":3\r\n:5\r\n");
	close_world(&world);
}

/* The number was far from its limit when last seen, but the batch overflows. A member whose client has a later
 * request in flight gets an error. The other members are retried. */
static void test_an_unexpected_overflow(void **state)
{
	static struct world world;

	(void)state;
	open_world_far_from_overflow(&world);
	say(&world, 'A', "INCR {a}k\r\nINCR {a}l");
	say(&world, 'B', "INCR {a}k");
	end_round(&world);
	sent(&world, "INCRBY {a}k 2 | INCR {a}l");
	reply(&world, "INCRBY", "-ERR increment or decrement would overflow\r\n");
	sent(&world, "INCR {a}k"); /* B's increment, retried */
	reply(&world, "INCR {a}l", ":3\r\n");
	reply(&world, "INCR {a}k", ":9223372036854775807\r\n");
	received(&world, 'A',
		 "-BUSY the batch with this command was refused, and a later command of this "
		 "client was already sent; not run\r\n:3\r\n");
	received(&world, 'B', ":9223372036854775807\r\n");
	assert_int_equal(counted(&hs_fold_stats(world.core)->busy), 1);
	assert_int_equal(counted(&hs_fold_stats(world.core)->retry), 1);
	close_world(&world);
}

/* If the server refuses a write, its batch may have to run again. So a member whose client sends later requests
 * shares a batch only with members of the same kind. */
static void test_members_with_followers_are_batched_apart(void **state)
{
	static struct world world;

	(void)state;
	open_world_far_from_overflow(&world);
	say(&world, 'B', "SET {a}k 5");
	say(&world, 'A', "GET {a}k\r\nSET {a}l 1");
	say(&world, 'C', "GET {a}k\r\nSET {a}l 2");
	say(&world, 'D', "SET {a}k 6\r\nGET {a}l");
	say(&world, 'E', "GET {a}k");
	end_round(&world);
	sent(&world, "SET {a}k 5 | GET {a}k | SET {a}k 6 | SET {a}l 2");
	reply(&world, "SET {a}k 5", "+OK\r\n");
	reply(&world, "GET {a}k", "$1\r\n5\r\n");
	reply(&world, "SET {a}k 6", "-OOM no room\r\n");
	/* E's reply was to be computed from the refused SET's value, so its GET is sent. */
	sent(&world, "GET {a}k");
	reply(&world, "SET {a}l", "+OK\r\n");
	reply(&world, "GET {a}k", "$1\r\n5\r\n");
	received(&world, 'A', "$1\r\n5\r\n+OK\r\n");
	received(&world, 'B', "+OK\r\n");
	received(&world, 'C', "$1\r\n5\r\n+OK\r\n");
	received(&world, 'D', "-OOM no room\r\n$1\r\n2\r\n");
	received(&world, 'E', "$1\r\n5\r\n");
	close_world(&world);
}

/* heatsink has a connection to a server for each dialect, so a chain has requests of one dialect only. */
static void test_a_chain_keeps_to_its_dialect(void **state)
{
	static struct world world;

	(void)state;
	open_world_far_from_overflow(&world);
	say(&world, 'C', "HELLO 3");
	say(&world, 'D', "HELLO 3");
	take_received(&world, 'C');
	take_received(&world, 'D');
	say(&world, 'C', "INCR {a}k");
	say(&world, 'A', "INCR {a}k\r\nINCR {a}l");
	say(&world, 'D', "INCR {a}k");
	say(&world, 'B', "INCR {a}k");
	end_round(&world);
	sent(&world, "INCR {a}k | INCR {a}k | INCRBY {a}k 2 | INCR {a}l");
	assert_int_equal(world.ops[0]->resp, 3);
	assert_int_equal(world.ops[1]->resp, 2);
	assert_int_equal(world.ops[3]->resp, 2);
	for (int i = 3; i < 5; i++)
		reply(&world, "INCR {a}k", i == 3 ? ":3\r\n" : ":4\r\n");
	reply(&world, "INCRBY {a}k", ":6\r\n");
	reply(&world, "INCR {a}l", ":3\r\n");
	received(&world, 'A', ":4\r\n:3\r\n");
	received(&world, 'C', ":3\r\n");
	take_received(&world, 'B');
	take_received(&world, 'D');
	close_world(&world);
}

static void test_a_disconnected_client_leaves_no_chain(void **state)
{
	static struct world world;

	(void)state;
	open_world_far_from_overflow(&world);
	say(&world, 'A', "INCR {a}k\r\nINCR {a}l\r\nAPPEND {a}x y\r\nINCR {a}k");
	say(&world, 'B', "INCR {a}k\r\nINCR {a}l");
	leave(&world, 'A');
	end_round(&world);
	sent(&world, "INCR {a}k | INCR {a}l");
	/* If a client disconnects in the middle of its chain, the rest of the chain is not sent. */
	say(&world, 'C', "INCR {a}k\r\nINCR {a}l");
	say(&world, 'D', "SET {b}k 1\r\nGET {a}x");
	reply(&world, "INCR {a}k", ":3\r\n");
	end_round(&world);
	sent(&world, "GET {a}x | SET {b}k 1 | INCR {a}k");
	leave(&world, 'C');
	reply(&world, "INCR {a}k", ":4\r\n");
	reply(&world, "INCR {a}l", ":3\r\n");
	reply(&world, "GET", "$-1\r\n");
	reply(&world, "SET", "+OK\r\n");
	end_round(&world);
	sent(&world, "");
	received(&world, 'B', ":3\r\n:3\r\n");
	received(&world, 'D', "+OK\r\n$-1\r\n");
	close_world(&world);
}

/* If an engine refuses operations inside submit, all requests of the chain are refused, in order. */
static void test_a_chain_that_is_refused_at_once(void **state)
{
	static struct world world;

	(void)state;
	open_world_far_from_overflow(&world);
	say(&world, 'A',
	    "INCR {a}k\r\nAPPEND {a}x y\r\nINCR {a}l\r\nGET {a}x\r\nHELLO 2\r\nGET {a}k");
	say(&world, 'B', "INCR {a}k\r\nINCR {a}l");
	world.refusal = "-BUSY not sent\r\n";
	end_round(&world);
	sent(&world, "");
	world.refusal = NULL;
	assert_true(
		strncmp(take_received(&world, 'A'),
			"-BUSY not sent\r\n-BUSY not sent\r\n-BUSY not sent\r\n-BUSY not sent\r\n*",
			64) == 0);
	received(&world, 'B', "-BUSY not sent\r\n-BUSY not sent\r\n");
	end_round(&world);
	take_sent(&world);
	while (world.count > 0)
		reply(&world, "GET", "$1\r\n2\r\n");
	close_world(&world);
}

/* Requests in a chain count towards the limit of requests that wait for their key. */
static void test_a_chain_has_a_limit(void **state)
{
	static struct world world;
	char words[1024] = "INCR {a}k";
	size_t len = strlen(words);

	(void)state;
	open_world_far_from_overflow(&world);
	for (int i = 0; i < WAITERS; i++)
		len += (size_t)snprintf(words + len, sizeof words - len, "\r\nINCR {a}l");
	say(&world, 'A', words);
	assert_int_equal(counted(&hs_fold_stats(world.core)->waiting), WAITERS + 1);
	say(&world, 'B', "INCR {a}l");
	assert_non_null(strstr(take_received(&world, 'B'), "fold-waiters-max"));
	end_round(&world);
	sent(&world, "INCR {a}k | INCRBY {a}l 16");
	reply(&world, "INCR", ":3\r\n");
	reply(&world, "INCRBY", ":18\r\n");
	take_received(&world, 'A');
	close_world(&world);
}

/* The last request of the chain is for no hot key, and is still in flight when all keys have cooled. */
static void test_a_chain_outlives_its_queues(void **state)
{
	static struct world world;

	(void)state;
	open_world(&world);
	say(&world, 'A', "SET {a}k 1\r\nGET {a}x");
	end_round(&world);
	sent(&world, "SET {a}k 1 | GET {a}x");
	reply(&world, "SET", "+OK\r\n");
	hs_core_tick(world.core, later(&world, 2000000));
	assert_int_equal(counted(&hs_fold_stats(world.core)->keys), 0);
	say(&world, 'A', "INCR {a}k\r\nDEL {a}x");
	/* The requests would leave under another client id, so they wait. */
	sent(&world, "");
	reply(&world, "GET", "$-1\r\n");
	sent(&world, "INCR {a}k | DEL {a}x");
	reply(&world, "INCR", ":2\r\n");
	reply(&world, "DEL", ":0\r\n");
	received(&world, 'A', "+OK\r\n$-1\r\n:2\r\n:0\r\n");
	close_world(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pipelines_leave_together),
		cmocka_unit_test(test_other_commands_stand_in_the_chain),
		cmocka_unit_test(test_nothing_follows_a_command_that_may_be_retried),
		cmocka_unit_test(test_other_writes_may_lead_to_a_limit),
		cmocka_unit_test(test_a_chain_waits_for_a_batch_in_flight),
		cmocka_unit_test(test_the_rest_of_a_plan_waits_for_the_next_batch),
		cmocka_unit_test(test_an_unexpected_overflow),
		cmocka_unit_test(test_members_with_followers_are_batched_apart),
		cmocka_unit_test(test_a_chain_keeps_to_its_dialect),
		cmocka_unit_test(test_a_disconnected_client_leaves_no_chain),
		cmocka_unit_test(test_a_chain_that_is_refused_at_once),
		cmocka_unit_test(test_a_chain_has_a_limit),
		cmocka_unit_test(test_a_chain_outlives_its_queues),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
