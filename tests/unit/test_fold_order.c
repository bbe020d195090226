/* Goal: folding keeps the order of each client's requests, whatever other commands the client sends and wherever
 * the slot moves (law 2), and delays no request without need.
 *
 * Method: scripts against a core whose engine is the test (tests/lib/fold_stage_world.h). */
#include "tests/lib/fold_stage_world.h"

/* ---- a client's own order ---- */

static void test_other_commands_wait_behind_folded_ones(void **state)
{
	static const char *const words[] = {
		"DEL {a}k",	 "GETDEL {a}k", "GET {a}x",  "MGET {a}k {b}k",	"DEL {a}k {b}k",
		"EVAL s 1 {a}k", "EVAL s 0",	"INCR {a}l", "SPUBLISH {a}c m", "FLUSHALL",
	};
	static struct world world;

	(void)state;
	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		print_message("%s\n", words[i]);
		open_world(&world);
		say(&world, 'A', "INCR {a}k");
		say(&world, 'B', "INCR {a}k");
		say(&world, 'A', words[i]);
		sent(&world, ""); /* waits while the folded request waits */
		end_round(&world);
		sent(&world, "INCRBY {a}k 2");
		/* B's command waits while the folded request is in flight. */
		say(&world, 'B', words[i]);
		end_round(&world);
		sent(&world, "");
		reply(&world, "INCRBY", ":2\r\n");
		received(&world, 'A', ":1\r\n");
		received(&world, 'B', ":2\r\n");
		end_round(&world);
		assert_true(strncmp(take_sent(&world), words[i], strcspn(words[i], " ")) == 0);
		while (world.count > 0) {
			reply(&world, "", ":1\r\n");
			end_round(&world);
			take_sent(&world);
		}
		take_received(&world, 'A');
		take_received(&world, 'B');
		close_world(&world);
	}
}

/* A client that gets the message must find the changed value. The message goes to partition 0, where the key
 * is. */
static void test_a_message_waits_behind_folded_commands(void **state)
{
	static struct world world;

	(void)state;
	open_world(&world);
	hs_slot_map_set(&world.map, hs_slot_of(HS_LIT("{a}k")), 0);
	say(&world, 'A', "SET {a}k 1");
	say(&world, 'B', "SET {a}k 2");
	say(&world, 'A', "PUBLISH c {a}k");
	end_round(&world);
	sent(&world, "SET {a}k 2");
	reply(&world, "SET", "+OK\r\n");
	sent(&world, "PUBLISH c {a}k");
	/* If no other client waits for the key, the message is sent right after the SET. */
	say(&world, 'B', "SET {a}k 3");
	say(&world, 'B', "PUBLISH c {a}k");
	sent(&world, "SET {a}k 3 | PUBLISH c {a}k");
	reply(&world, "PUBLISH", ":0\r\n");
	reply(&world, "SET", "+OK\r\n");
	reply(&world, "PUBLISH", ":0\r\n");
	received(&world, 'A', "+OK\r\n:0\r\n");
	received(&world, 'B', "+OK\r\n+OK\r\n:0\r\n");
	close_world(&world);
}

static void test_a_transaction_waits_behind_folded_commands(void **state)
{
	static struct world world;

	(void)state;
	open_world(&world);
	say(&world, 'A', "INCR {a}k");
	say(&world, 'B', "INCR {a}k");
	say(&world, 'A', "MULTI");
	say(&world, 'A', "GET {a}k");
	say(&world, 'A', "EXEC");
	end_round(&world);
	sent(&world, "INCRBY {a}k 2");
	reply(&world, "INCRBY", ":2\r\n");
	sent(&world, "EXEC");
	/* Folded requests need not wait for other commands in flight: their batch has the client's id, so the
	 * engine keeps the order. */
	say(&world, 'A', "INCR {a}k");
	say(&world, 'A', "INCR {a}k");
	end_round(&world);
	sent(&world, "INCRBY {a}k 2");
	assert_true(world.ops[0]->client == world.ops[1]->client);
	reply(&world, "EXEC", "*1\r\n$1\r\n2\r\n");
	reply(&world, "INCRBY", ":4\r\n");
	received(&world, 'A', ":1\r\n+OK\r\n+QUEUED\r\n*1\r\n$1\r\n2\r\n:3\r\n:4\r\n");
	received(&world, 'B', ":2\r\n");
	close_world(&world);
}

static void test_folded_commands_go_behind_other_commands(void **state)
{
	static struct world world;

	(void)state;
	open_world(&world);
	say(&world, 'B', "INCR {a}k");
	say(&world, 'C', "INCR {a}k");
	end_round(&world);
	sent(&world, "INCRBY {a}k 2");
	say(&world, 'A', "DEL {a}k");
	say(&world, 'A', "INCR {a}k");
	say(&world, 'A', "PING");
	say(&world, 'D', "INCR {a}k");
	sent(&world, "DEL {a}k");
	assert_int_equal(world.ops[1]->client, 1);
	reply(&world, "INCRBY", ":2\r\n");
	end_round(&world);
	/* The batch of A's and D's increments is sent while DEL is in flight. */
	sent(&world, "INCRBY {a}k 2");
	assert_true(world.ops[0]->client == world.ops[1]->client);
	reply(&world, "DEL", ":1\r\n");
	reply(&world, "INCRBY", ":2\r\n");
	received(&world, 'A', ":1\r\n:1\r\n+PONG\r\n");
	received(&world, 'B', ":1\r\n");
	received(&world, 'C', ":2\r\n");
	received(&world, 'D', ":2\r\n");
	close_world(&world);
}

/* Opens a world in which DEL of client A is in flight, followed by a batch of INCRs of A and D. */
static void open_with_a_batch_behind_del(struct world *world)
{
	open_world(world);
	say(world, 'B', "INCR {a}k");
	say(world, 'C', "INCR {a}k");
	end_round(world);
	sent(world, "INCRBY {a}k 2");
	say(world, 'A', "DEL {a}k");
	say(world, 'A', "INCR {a}k");
	say(world, 'D', "INCR {a}k");
	sent(world, "DEL {a}k");
	reply(world, "INCRBY", ":2\r\n");
	end_round(world);
	sent(world, "INCRBY {a}k 2");
	assert_true(world->ops[0]->client == world->ops[1]->client);
}

/* A batch and its client's other requests in flight have one id, so that the engine keeps their order. If the
 * batch is answered first, the request still in flight gets the client's own id back. The client's next request
 * is sent under the client's own id, and must not overtake the request in flight. */
static void test_the_id_of_a_request_in_flight_is_restored(void **state)
{
	static struct world world;

	(void)state;
	open_with_a_batch_behind_del(&world);
	reply(&world, "INCRBY", ":4\r\n");
	say(&world, 'A', "GET {a}x");
	sent(&world, "GET {a}x");
	assert_int_equal(world.ops[0]->client, 1);
	assert_int_equal(world.ops[1]->client, 1);
	reply(&world, "DEL", ":1\r\n");
	reply(&world, "GET", "$-1\r\n");
	received(&world, 'A', ":1\r\n:3\r\n$-1\r\n");
	received(&world, 'B', ":1\r\n");
	received(&world, 'C', ":2\r\n");
	received(&world, 'D', ":4\r\n");
	close_world(&world);
}

/* A request in flight also gets the client's own id back before an increment of a refused batch is retried. */
static void test_the_id_is_restored_before_a_retry(void **state)
{
	static struct world world;

	(void)state;
	open_with_a_batch_behind_del(&world);
	reply(&world, "INCRBY", "-ERR increment or decrement would overflow\r\n");
	sent(&world, "INCR {a}k | INCR {a}k");
	assert_int_equal(world.ops[0]->client, 1);
	assert_int_equal(world.ops[1]->client, 1);
	reply(&world, "DEL", ":1\r\n");
	reply(&world, "INCR", ":1\r\n");
	reply(&world, "INCR", ":2\r\n");
	received(&world, 'A', ":1\r\n:1\r\n");
	received(&world, 'D', ":2\r\n");
	take_received(&world, 'B');
	take_received(&world, 'C');
	close_world(&world);
}

static void test_a_client_with_many_other_requests_is_not_folded(void **state)
{
	static struct world world;

	(void)state;
	open_world(&world);
	say(&world, 'B', "INCR {a}k");
	say(&world, 'C', "INCR {a}k");
	end_round(&world);
	sent(&world, "INCRBY {a}k 2");
	for (int i = 0; i < 8; i++)
		say(&world, 'A', "GET {a}x");
	take_sent(&world);
	say(&world, 'A', "INCR {a}k");
	sent(&world, "INCR {a}k");
	reply(&world, "INCRBY", ":2\r\n");
	while (world.count > 0)
		reply(&world, "", ":3\r\n");
	take_received(&world, 'A');
	received(&world, 'B', ":1\r\n");
	received(&world, 'C', ":2\r\n");
	close_world(&world);
}

static void test_a_client_s_own_waiters_are_released(void **state)
{
	static struct world world;

	(void)state;
	open_world(&world);
	/* Without other clients, every command is sent unchanged and at once. */
	say(&world, 'A', "INCR {a}k");
	say(&world, 'A', "INCR {a}k");
	say(&world, 'A', "DEL {a}k");
	sent(&world, "INCR {a}k | INCR {a}k | DEL {a}k");
	/* Commands for other partitions do not wait. */
	say(&world, 'B', "INCR {b}k");
	say(&world, 'B', "GET {a}x");
	sent(&world, "GET {a}x");
	end_round(&world);
	sent(&world, "INCR {b}k");
	reply(&world, "INCR {a}k", ":1\r\n");
	reply(&world, "INCR {a}k", ":2\r\n");
	reply(&world, "DEL", ":1\r\n");
	reply(&world, "INCR {b}k", ":1\r\n");
	reply(&world, "GET", "$-1\r\n");
	received(&world, 'A', ":1\r\n:2\r\n:1\r\n");
	received(&world, 'B', ":1\r\n$-1\r\n");
	close_world(&world);
}

/* A client without others sends increments of two hot keys in turn. Waiting would gain nothing, so they are sent
 * at once. */
static void test_a_client_alone_is_not_held_up(void **state)
{
	static struct world world;

	(void)state;
	open_world(&world);
	for (int i = 0; i < 3; i++) {
		say(&world, 'A', "INCR {a}k");
		say(&world, 'A', "INCR {a}l");
	}
	sent(&world, "INCR {a}k | INCR {a}l | INCR {a}k | INCR {a}l | INCR {a}k | INCR {a}l");
	say(&world, 'B', "GET {a}k");
	end_round(&world);
	sent(&world, "");
	for (int i = 0; i < 6; i++)
		reply(&world, "INCR", ":1\r\n");
	end_round(&world);
	sent(&world, "GET {a}k");
	reply(&world, "GET", "$1\r\n3\r\n");
	received(&world, 'A', ":1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n");
	received(&world, 'B', "$1\r\n3\r\n");
	close_world(&world);
}

/* A client pipelines requests for several hot keys while other clients use them. Its requests wait once, and are
 * then sent at once for a while. */
static void test_a_long_pipeline_is_held_up_once(void **state)
{
	static struct world world;
	char words[2048] = "INCR {a}k";
	size_t len = strlen(words);

	(void)state;
	open_world(&world);
	say(&world, 'B', "INCR {a}k");
	end_round(&world);
	sent(&world, "INCR {a}k");
	for (int i = 0; i < 64; i++)
		len += (size_t)snprintf(words + len, sizeof words - len, "\r\nINCR {a}%c",
					i % 2 ? 'k' : 'l');
	say(&world, 'A', words);
	end_round(&world);
	sent(&world, "");
	reply(&world, "INCR", ":1\r\n");
	end_round(&world);
	sent(&world, "INCR {a}k");
	/* This is the reply to A's first request. All others of A are sent. */
	reply(&world, "INCR", ":2\r\n");
	assert_int_equal(world.count, 64);
	take_sent(&world);
	while (world.count > 0)
		reply(&world, "INCR", ":3\r\n");
	take_received(&world, 'A');
	/* Once the pipeline is done, requests are folded as before. */
	say(&world, 'A', "INCR {a}k");
	say(&world, 'B', "INCR {a}k");
	end_round(&world);
	sent(&world, "INCRBY {a}k 2");
	reply(&world, "INCRBY", ":36\r\n");
	received(&world, 'A', ":35\r\n");
	received(&world, 'B', ":1\r\n:36\r\n");
	close_world(&world);
}

/* A request whose client has other requests in flight joins the batch of the requests that wait for the key. */
static void test_arrivals_do_not_pass_waiters(void **state)
{
	static struct world world;

	(void)state;
	open_world(&world);
	say(&world, 'B', "INCR {a}k");
	end_round(&world);
	sent(&world, "INCR {a}k");
	say(&world, 'C', "INCR {a}k");
	reply(&world, "INCR", ":1\r\n");
	say(&world, 'A', "GET {a}x");
	/* A's request comes in the round in which C's request may be sent. */
	say(&world, 'A', "INCR {a}k");
	sent(&world, "GET {a}x");
	end_round(&world);
	sent(&world, "INCRBY {a}k 2");
	reply(&world, "GET", "$-1\r\n");
	reply(&world, "INCRBY", ":3\r\n");
	received(&world, 'A', "$-1\r\n:3\r\n");
	received(&world, 'B', ":1\r\n");
	received(&world, 'C', ":2\r\n");
	close_world(&world);
}

/* The core answers UNWATCH at once, but still sends an operation to the engine. */
static void test_a_client_s_waiters_are_not_overtaken_after_unwatch(void **state)
{
	static struct world world;

	(void)state;
	open_world(&world);
	say(&world, 'A', "WATCH {a}x");
	sent(&world, "WATCH {a}x");
	reply(&world, "WATCH", "+OK\r\n");
	received(&world, 'A', "+OK\r\n");
	say(&world, 'A', "SET {a}k 1");
	say(&world, 'A', "UNWATCH");
	say(&world, 'A', "GET {a}k");
	end_round(&world);
	take_sent(&world);
	while (world.count > 0) {
		char text[64];

		describe(world.ops[0], text, sizeof text);
		assert_string_not_equal(text, "GET {a}k");
		if (strncmp(text, "SET", 3) == 0)
			break;
		reply(&world, "", "+OK\r\n");
	}
	assert_true(world.count > 0);
	while (world.count > 0) {
		reply(&world, "",
		      world.ops[0]->command->id == HS_CMD_ID_GET ? "$1\r\n1\r\n" : "+OK\r\n");
		end_round(&world);
		take_sent(&world);
	}
	received(&world, 'A', "+OK\r\n+OK\r\n$1\r\n1\r\n");
	close_world(&world);
}

/* A client's requests for a key run in order, even if the key's slot moves in between. */
static void test_slots_that_move(void **state)
{
	static struct world world;

	(void)state;
	open_world(&world);
	say(&world, 'A', "SET {a}k 1");
	hs_slot_map_set(&world.map, hs_slot_of(HS_LIT("{a}k")), 2);
	say(&world, 'A', "SET {a}k 2");
	say(&world, 'A', "GET {a}k");
	end_round(&world);
	sent(&world, "SET {a}k 1");
	reply(&world, "SET", "+OK\r\n");
	end_round(&world);
	sent(&world, "SET {a}k 2"); /* GET's reply is computed from the SET's */
	reply(&world, "SET", "+OK\r\n");
	received(&world, 'A', "+OK\r\n+OK\r\n$1\r\n2\r\n");
	/* Other clients' requests also wait for the requests in flight at the old owner before they go to the new
	 * one. */
	say(&world, 'A', "INCR {a}k");
	say(&world, 'B', "INCR {a}k");
	hs_slot_map_set(&world.map, hs_slot_of(HS_LIT("{a}k")), A_PARTITION);
	say(&world, 'A', "DEL {a}k");
	end_round(&world);
	sent(&world, "INCRBY {a}k 2");
	reply(&world, "INCRBY", ":4\r\n");
	sent(&world, "DEL {a}k");
	reply(&world, "DEL", ":1\r\n");
	received(&world, 'A', ":3\r\n:1\r\n");
	received(&world, 'B', ":4\r\n");
	close_world(&world);
}

/* A request in flight at the old owner of a slot keeps its client's id, and so do the client's later requests.
 * Nothing of the slot is folded with this client's requests until the old owner has answered. */
static void test_nothing_is_folded_behind_a_request_at_the_old_owner(void **state)
{
	static struct world world;
	uint64_t client;

	(void)state;
	open_world(&world);
	say(&world, 'A', "MGET {a}k {a}x");
	sent(&world, "MGET {a}k {a}x");
	client = world.ops[0]->client;
	hs_slot_map_set(&world.map, hs_slot_of(HS_LIT("{a}k")), 2);
	say(&world, 'A', "INCR {a}k");
	say(&world, 'B', "INCR {a}k");
	end_round(&world);
	sent(&world, "INCR {a}k"); /* B's increment */
	assert_int_not_equal(world.ops[0]->client, world.ops[1]->client);
	assert_int_equal(world.ops[0]->client, client);
	reply(&world, "MGET", "*2\r\n$-1\r\n$-1\r\n");
	reply(&world, "INCR", ":1\r\n");
	end_round(&world);
	sent(&world, "INCR {a}k");
	reply(&world, "INCR", ":2\r\n");
	received(&world, 'A', "*2\r\n$-1\r\n$-1\r\n:2\r\n");
	received(&world, 'B', ":1\r\n");
	close_world(&world);
}

static void test_a_queue_that_has_moved_leaves_room_for_others(void **state)
{
	static struct world world;

	(void)state;
	open_world(&world);
	/* The slot of {b}k moves to the partition where {a}k was. */
	say(&world, 'A', "INCR {a}k");
	end_round(&world);
	sent(&world, "INCR {a}k");
	hs_slot_map_set(&world.map, hs_slot_of(HS_LIT("{a}k")), 2);
	say(&world, 'A', "INCR {a}k");
	reply(&world, "INCR", ":1\r\n");
	end_round(&world);
	sent(&world, "INCR {a}k");
	hs_slot_map_set(&world.map, hs_slot_of(HS_LIT("{b}k")), A_PARTITION);
	say(&world, 'A', "INCR {b}k");
	end_round(&world);
	sent(&world, "INCR {b}k");
	reply(&world, "INCR {a}k", ":2\r\n");
	reply(&world, "INCR {b}k", ":1\r\n");
	received(&world, 'A', ":1\r\n:2\r\n:1\r\n");
	close_world(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_other_commands_wait_behind_folded_ones),
		cmocka_unit_test(test_a_message_waits_behind_folded_commands),
		cmocka_unit_test(test_a_transaction_waits_behind_folded_commands),
		cmocka_unit_test(test_folded_commands_go_behind_other_commands),
		cmocka_unit_test(test_the_id_of_a_request_in_flight_is_restored),
		cmocka_unit_test(test_the_id_is_restored_before_a_retry),
		cmocka_unit_test(test_a_client_with_many_other_requests_is_not_folded),
		cmocka_unit_test(test_a_client_s_own_waiters_are_released),
		cmocka_unit_test(test_a_client_alone_is_not_held_up),
		cmocka_unit_test(test_a_long_pipeline_is_held_up_once),
		cmocka_unit_test(test_arrivals_do_not_pass_waiters),
		cmocka_unit_test(test_a_client_s_waiters_are_not_overtaken_after_unwatch),
		cmocka_unit_test(test_slots_that_move),
		cmocka_unit_test(test_nothing_is_folded_behind_a_request_at_the_old_owner),
		cmocka_unit_test(test_a_queue_that_has_moved_leaves_room_for_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
