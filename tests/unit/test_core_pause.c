/* Goal: CLIENT PAUSE holds the right commands on every worker, and no others. When the pause ends, the held
 * commands run in order.
 *
 * Method: scripts against the simulated world, whose clock shows when a reply came. */
#include "core/state.h"
#include "tests/lib/script.h"

#define SECOND 1000000

static struct hs_sim_world *open_world(void)
{
	struct hs_sim_world_options options = hs_sim_world_defaults(1);

	options.workers = 2;
	return hs_sim_world_create(&options);
}

/* Sends a command and runs everything that is possible without waiting. */
static void ask(struct hs_sim_client *client, const char *words)
{
	hs_sim_client_request(client, words);
	hs_sim_world_pass(client->world, 50000);
}

static uint64_t blocked(struct hs_sim_world *world)
{
	return hs_counter_get(&hs_core_stats(hs_sim_world_core(world, 0))->blocked) +
	       hs_counter_get(&hs_core_stats(hs_sim_world_core(world, 1))->blocked);
}

static void test_all_commands_wait_on_every_worker(void **state)
{
	struct hs_sim_world *world = open_world();
	struct hs_sim_client *a = hs_sim_client_connect(world, 0);
	struct hs_sim_client *b = hs_sim_client_connect(world, 1);

	(void)state;
	ask(a, "CLIENT PAUSE 1000");
	received(a, "+OK\r\n");
	ask(a, "PING");
	ask(b, "SET foo 1");
	ask(b, "GET foo");
	silent(a);
	silent(b);
	assert_int_equal(blocked(world), 2);
	hs_sim_world_pass(world, SECOND - 300000);
	silent(a);
	silent(b);
	hs_sim_world_pass(world, 300000);
	received(a, "+PONG\r\n");
	received(b, "+OK\r\n$1\r\n1\r\n");
	assert_int_equal(blocked(world), 0);
	ask(b, "PING");
	received(b, "+PONG\r\n");
	hs_sim_world_destroy(&world);
}

/* The pause ends at its deadline, not at the next tick of the worker. */
static void test_the_end_is_a_deadline(void **state)
{
	struct hs_sim_world *world = open_world();
	struct hs_sim_client *a = hs_sim_client_connect(world, 0);
	struct hs_core *core = hs_sim_world_core(world, 0);
	uint64_t start_us = world->now.mono_us;

	(void)state;
	ask(a, "CLIENT PAUSE 1000");
	/* No client waits for the end of the pause. */
	assert_int_equal(hs_core_deadline(core), 0);
	ask(a, "PING");
	assert_int_equal(hs_core_deadline(core), start_us + SECOND);
	hs_sim_world_destroy(&world);
}

static void test_only_writes_wait(void **state)
{
	struct hs_sim_world *world = open_world();
	struct hs_sim_client *a = hs_sim_client_connect(world, 0);
	struct hs_sim_client *b = hs_sim_client_connect(world, 1);

	(void)state;
	ask(a, "SET foo 1");
	ask(a, "CLIENT PAUSE 100000 write");
	ask(b, "GET foo");
	ask(b, "PING");
	ask(b, "MGET foo bar");
	received(a, "+OK\r\n+OK\r\n");
	received(b, "$1\r\n1\r\n+PONG\r\n*2\r\n$1\r\n1\r\n$-1\r\n");
	ask(b, "INCR foo");
	/* The read waits behind b's own write, which is held. */
	ask(b, "GET foo");
	silent(b);
	ask(a, "GET foo");
	received(a, "$1\r\n1\r\n");
	ask(a, "CLIENT UNPAUSE");
	received(a, "+OK\r\n");
	received(b, ":2\r\n$1\r\n2\r\n");
	hs_sim_world_destroy(&world);
}

static void test_transactions(void **state)
{
	struct hs_sim_world *world = open_world();
	struct hs_sim_client *a = hs_sim_client_connect(world, 0);
	struct hs_sim_client *writes = hs_sim_client_connect(world, 1);
	struct hs_sim_client *reads = hs_sim_client_connect(world, 1);
	struct hs_sim_client *late = hs_sim_client_connect(world, 1);

	(void)state;
	ask(writes, "MULTI");
	ask(writes, "SET foo 1");
	ask(reads, "MULTI");
	ask(reads, "GET foo");
	ask(late, "MULTI");
	ask(a, "CLIENT PAUSE 100000 WRITE");
	received(a, "+OK\r\n");
	received(writes, "+OK\r\n+QUEUED\r\n");
	received(reads, "+OK\r\n+QUEUED\r\n");
	received(late, "+OK\r\n");
	ask(writes, "EXEC");
	ask(reads, "EXEC");
	ask(late, "SET foo 2"); /* the pause also holds the queueing of a write */
	silent(writes);
	received(reads, "*1\r\n$-1\r\n");
	silent(late);
	ask(a, "CLIENT UNPAUSE");
	received(writes, "*1\r\n+OK\r\n");
	received(late, "+QUEUED\r\n");
	hs_sim_world_destroy(&world);
}

/* As in Redis, the client that paused all commands waits for the end of the pause, too. */
static void test_unpause_waits_for_the_end_of_all(void **state)
{
	struct hs_sim_world *world = open_world();
	struct hs_sim_client *a = hs_sim_client_connect(world, 0);

	(void)state;
	ask(a, "CLIENT PAUSE 1000 ALL");
	received(a, "+OK\r\n");
	ask(a, "CLIENT UNPAUSE");
	silent(a);
	hs_sim_world_pass(world, SECOND);
	received(a, "+OK\r\n");
	hs_sim_world_destroy(&world);
}

static void test_commands_that_are_never_paused(void **state)
{
	struct hs_sim_world *world = open_world();
	struct hs_sim_client *a = hs_sim_client_connect(world, 0);
	struct hs_sim_client *b = hs_sim_client_connect(world, 1);

	(void)state;
	ask(a, "CLIENT PAUSE 100000");
	ask(b, "NOPE");
	ask(b, "GET");
	received(b, "-ERR unknown command 'NOPE', with args beginning with: \r\n"
		    "-ERR wrong number of arguments for 'get' command\r\n");
	ask(b, "QUIT");
	received(b, "+OK\r\n");
	assert_null(b->session);
	hs_sim_world_destroy(&world);
}

static void test_the_stricter_mode_and_the_longer_time_win(void **state)
{
	struct hs_sim_world *world = open_world();
	struct hs_sim_client *a = hs_sim_client_connect(world, 0);
	struct hs_sim_client *b = hs_sim_client_connect(world, 1);

	(void)state;
	ask(a, "CLIENT PAUSE 3000 WRITE");
	ask(a, "CLIENT PAUSE 0 ALL"); /* this pause ends at once */
	received(a, "+OK\r\n+OK\r\n");
	ask(b, "PING");
	received(b, "+PONG\r\n");
	ask(a, "CLIENT PAUSE 1000 ALL");
	received(a, "+OK\r\n");
	ask(b, "PING");
	hs_sim_world_pass(world, 2 * SECOND);
	silent(b);
	hs_sim_world_pass(world, SECOND);
	received(b, "+PONG\r\n");
	/* A pause that is over has no effect on the next pause. */
	ask(a, "CLIENT PAUSE 1000 WRITE");
	ask(b, "PING");
	received(b, "+PONG\r\n");
	hs_sim_world_destroy(&world);
}

/* Two CLIENT PAUSE commands sent at the same time reach the workers in different orders. */
static void test_two_at_once(void **state)
{
	static const char *const pauses[] = {"CLIENT PAUSE 1000 ALL", "CLIENT PAUSE 2000 WRITE"};

	(void)state;
	for (int first = 0; first < 2; first++) {
		struct hs_sim_world *world = open_world();
		struct hs_sim_client *a = hs_sim_client_connect(world, 0);
		struct hs_sim_client *b = hs_sim_client_connect(world, 1);
		uint64_t start_us = world->now.mono_us;

		hs_sim_client_request(a, pauses[first]);
		hs_sim_client_request(b, pauses[1 - first]);
		hs_sim_world_pass(world, 50000);
		received(a, "+OK\r\n");
		received(b, "+OK\r\n");
		for (uint32_t worker = 0; worker < 2; worker++) {
			const struct hs_pause *pause = &hs_sim_world_core(world, worker)->pause;

			assert_int_equal(pause->mode, HS_PAUSE_ALL);
			assert_int_equal(pause->until_us, start_us + 2 * SECOND);
		}
		hs_sim_world_destroy(&world);
	}
}

static void test_mistakes(void **state)
{
	struct hs_sim_world *world = open_world();
	struct hs_sim_client *a = hs_sim_client_connect(world, 0);

	(void)state;
	ask(a, "CLIENT PAUSE x");
	ask(a, "CLIENT PAUSE -1");
	ask(a, "CLIENT PAUSE 3153600000001");
	ask(a, "CLIENT PAUSE 9223372036854775808");
	ask(a, "CLIENT PAUSE x y");
	ask(a, "CLIENT PAUSE 1 ALL x");
	ask(a, "CLIENT PAUSE 0");
	ask(a, "CLIENT UNPAUSE");
	received(a, "-ERR timeout is not an integer or out of range\r\n"
		    "-ERR timeout is negative\r\n"
		    "-ERR timeout is out of range\r\n"
		    "-ERR timeout is not an integer or out of range\r\n"
		    "-ERR CLIENT PAUSE mode must be WRITE or ALL\r\n"
		    "-ERR unknown subcommand or wrong number of arguments for 'PAUSE'. Try CLIENT "
		    "HELP.\r\n"
		    "+OK\r\n+OK\r\n");
	ask(a, "CLIENT PAUSE 3153600000000 WRITE");
	ask(a, "SET foo 1");
	received(a, "+OK\r\n");
	hs_sim_world_destroy(&world);
}

/* Clients that wait for the end of a pause may disconnect, be killed or send too much. Other clients are not
 * affected. */
static void test_waiting_clients_that_end(void **state)
{
	struct hs_sim_world *world = open_world();
	struct hs_sim_client *a = hs_sim_client_connect(world, 0);
	struct hs_sim_client *goes = hs_sim_client_connect(world, 1);
	struct hs_sim_client *killed = hs_sim_client_connect(world, 1);
	struct hs_sim_client *ended = hs_sim_client_connect(world, 1);

	(void)state;
	ask(a, "CLIENT PAUSE 100000 WRITE");
	ask(goes, "SET foo gone");
	ask(killed, "SET foo killed");
	ask(ended, "SET bar ended");
	assert_int_equal(blocked(world), 3);
	hs_sim_client_disconnect(goes);
	hs_core_end(hs_sim_world_core(world, 1), ended->session);
	a->received.len = 0;
	ask(a, "CLIENT KILL ID 3");
	received(a, ":1\r\n");
	assert_null(killed->session);
	assert_int_equal(blocked(world), 1);
	ask(a, "CLIENT UNPAUSE");
	assert_int_equal(blocked(world), 0);
	received(ended, "+OK\r\n"); /* this client has closed its side, but still reads replies */
	assert_null(ended->session);
	ask(a, "MGET foo bar");
	received(a, "+OK\r\n*2\r\n$-1\r\n$5\r\nended\r\n");
	hs_sim_world_destroy(&world);
}

static void test_input_stops(void **state)
{
	struct hs_sim_world *world = open_world();
	struct hs_sim_client *a = hs_sim_client_connect(world, 0);
	struct hs_sim_client *b = hs_sim_client_connect(world, 0);
	uint32_t sent = 0;
	char last[32];

	(void)state;
	ask(a, "CLIENT PAUSE 100000 WRITE");
	while (hs_core_wants_input(b->session)) {
		hs_sim_client_request(b, "INCR foo");
		sent++;
		assert_true(sent < 100000);
	}
	assert_true(b->session->in.len < 2 * HS_READ_BYTES);
	silent(b);
	ask(a, "CLIENT UNPAUSE");
	hs_sim_world_settle(world);
	assert_true(hs_core_wants_input(b->session));
	a->received.len = 0;
	ask(a, "GET foo");
	snprintf(last, sizeof last, "%u\r\n", sent);
	assert_non_null(memmem(a->received.data, a->received.len, last, strlen(last)));
	snprintf(last, sizeof last, ":%u\r\n", sent);
	assert_memory_equal(b->received.data + b->received.len - strlen(last), last, strlen(last));
	hs_sim_world_destroy(&world);
}

static void test_flags(void **state)
{
	struct hs_sim_world *world = open_world();
	struct hs_sim_client *a = hs_sim_client_connect(world, 0);
	struct hs_sim_client *b = hs_sim_client_connect(world, 1);

	(void)state;
	ask(a, "CLIENT PAUSE 100000 WRITE");
	ask(b, "CLIENT NO-TOUCH ON");
	ask(b, "CLIENT NO-TOUCH perhaps");
	received(b, "+OK\r\n-ERR syntax error\r\n");
	ask(b, "SET foo 1");
	a->received.len = 0;
	ask(a, "CLIENT LIST ID 2");
	assert_non_null(memmem(a->received.data, a->received.len, " flags=bT ", 10));
	ask(a, "CLIENT UNPAUSE");
	a->received.len = 0;
	ask(a, "CLIENT LIST ID 2");
	assert_non_null(memmem(a->received.data, a->received.len, " flags=T ", 9));
	ask(b, "RESET");
	a->received.len = 0;
	ask(a, "CLIENT LIST ID 2");
	assert_non_null(memmem(a->received.data, a->received.len, " flags=N ", 9));
	hs_sim_world_destroy(&world);
}

/* A client that waits for the end of a pause is not idle, and shutdown does not wait for it. */
static void test_idle_and_draining(void **state)
{
	struct hs_sim_world_options options = hs_sim_world_defaults(1);
	struct hs_sim_world *world;
	struct hs_sim_client *a, *b;
	struct hs_core *core;

	(void)state;
	options.core.idle_s_max = 5;
	world = hs_sim_world_create(&options);
	core = hs_sim_world_core(world, 0);
	a = hs_sim_client_connect(world, 0);
	b = hs_sim_client_connect(world, 0);
	ask(a, "CLIENT PAUSE 100000 WRITE");
	ask(b, "SET foo 1");
	hs_sim_world_pass(world, 20 * SECOND);
	assert_null(a->session);
	assert_non_null(b->session);
	assert_int_equal(hs_core_drain(core, world->now, SECOND), 1);
	hs_sim_world_pass(world, 200000);
	assert_null(b->session);
	silent(b);
	assert_int_equal(hs_core_drain(core, world->now, SECOND), 0);
	hs_sim_world_destroy(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_commands_wait_on_every_worker),
		cmocka_unit_test(test_the_end_is_a_deadline),
		cmocka_unit_test(test_only_writes_wait),
		cmocka_unit_test(test_transactions),
		cmocka_unit_test(test_unpause_waits_for_the_end_of_all),
		cmocka_unit_test(test_commands_that_are_never_paused),
		cmocka_unit_test(test_the_stricter_mode_and_the_longer_time_win),
		cmocka_unit_test(test_two_at_once),
		cmocka_unit_test(test_mistakes),
		cmocka_unit_test(test_waiting_clients_that_end),
		cmocka_unit_test(test_input_stops),
		cmocka_unit_test(test_flags),
		cmocka_unit_test(test_idle_and_draining),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
