/* Goal: order on one connection and between connections: replies come in the order of requests, whichever finishes
 * first (law 1); reads see earlier writes of the same key (law 2); limits hold (law 6); a stuck partition delays
 * no other (law 9).
 *
 * Method: scripts against the simulated world. Of four partitions, foo lives on 2 and bar on 1. */
#include "tests/lib/script.h"

#include "base/mem.h"
#include "core/state.h"
#include "route/slot_map.h"

enum { FOO_PARTITION = 2, BAR_PARTITION = 1 };

static struct hs_sim_world *open_world(void)
{
	struct hs_sim_world_options options = hs_sim_world_defaults(1);

	return hs_sim_world_create(&options);
}

static struct hs_core_stats *stats(struct hs_sim_world *world)
{
	return hs_core_stats(hs_sim_world_core(world, 0));
}

static void test_a_quick_answer_waits_for_a_slow_one(void **state)
{
	struct hs_sim_world *world = open_world();
	struct hs_sim_client *client = hs_sim_client_connect(world, 0);

	(void)state;
	hs_sim_client_request(client, "SET foo 1"); /* this write waits for its commit */
	/* ECHO completes at once, but its reply is sent after the first one's. */
	hs_sim_client_request(client, "ECHO x");
	hs_sim_client_request(client, "NOPE a");
	/* bar is on another partition, which has no request of this client in flight. */
	hs_sim_client_request(client, "GET bar");
	silent(client);
	hs_sim_world_settle(world);
	received(client, "+OK\r\n$1\r\nx\r\n-ERR unknown command 'NOPE', with args beginning with: "
			 "'a' \r\n$-1\r\n");
	/* With no request in flight, the engine answers this read at once. */
	hs_sim_client_request(client, "GET foo");
	received(client, "$1\r\n1\r\n");
	hs_sim_world_destroy(&world);
}

static void test_a_read_sees_the_write_before_it(void **state)
{
	struct hs_sim_world *world = open_world();
	struct hs_sim_client *client = hs_sim_client_connect(world, 0);

	(void)state;
	hs_sim_client_request(client, "SET foo 1");
	hs_sim_client_request(client, "GET foo");
	hs_sim_client_request(client, "INCR foo");
	hs_sim_client_request(client, "MGET foo bar");
	hs_sim_client_request(client, "DEL foo");
	hs_sim_client_request(client, "GET foo");
	hs_sim_world_settle(world);
	received(client, "+OK\r\n$1\r\n1\r\n:2\r\n*2\r\n$1\r\n2\r\n$-1\r\n:1\r\n$-1\r\n");
	hs_sim_world_destroy(&world);
}

static void test_a_stuck_partition_delays_no_other(void **state)
{
	struct hs_sim_world *world = open_world();
	struct hs_sim_client *stuck = hs_sim_client_connect(world, 0);
	struct hs_sim_client *other = hs_sim_client_connect(world, 0);

	(void)state;
	assert_int_equal(hs_slot_partition(hs_slot_of(HS_LIT("foo")), 4), FOO_PARTITION);
	assert_int_equal(hs_slot_partition(hs_slot_of(HS_LIT("bar")), 4), BAR_PARTITION);
	hs_sim_engine_stall(world->engine, FOO_PARTITION);
	hs_sim_client_request(stuck, "SET foo 1");
	/* This write runs, but its reply waits for the first. */
	hs_sim_client_request(stuck, "SET bar 1");
	hs_sim_world_settle(world);
	silent(stuck);
	hs_sim_client_request(other, "GET bar");
	received(other, "$1\r\n1\r\n");
	hs_sim_client_request(other, "SET bar 2");
	hs_sim_world_settle(world);
	received(other, "+OK\r\n");
	hs_sim_client_request(other, "GET foo"); /* a read sees only committed data */
	received(other, "$-1\r\n");
	hs_sim_engine_go_on(world->engine, FOO_PARTITION);
	hs_sim_world_settle(world);
	received(stuck, "+OK\r\n+OK\r\n");
	hs_sim_world_destroy(&world);
}

/* The client already has the reply of DISCARD. The core then sends an UNWATCH to a stalled partition, and later
 * replies do not wait for it. */
static void test_an_unwatch_delays_no_reply(void **state)
{
	struct hs_sim_world *world = open_world();
	struct hs_sim_client *client = hs_sim_client_connect(world, 0);

	(void)state;
	hs_sim_client_request(client, "WATCH foo");
	hs_sim_world_settle(world);
	received(client, "+OK\r\n");
	hs_sim_engine_stall(world->engine, FOO_PARTITION);
	hs_sim_client_request(client, "MULTI");
	hs_sim_client_request(client, "DISCARD");
	hs_sim_client_request(client, "SET bar 1");
	hs_sim_world_settle(world);
	received(client, "+OK\r\n+OK\r\n+OK\r\n");
	hs_sim_engine_go_on(world->engine, FOO_PARTITION);
	hs_sim_world_settle(world);
	silent(client);
	hs_sim_world_destroy(&world);
}

/* Appends one request as the bytes that a client sends. */
static void add(struct hs_buf *bytes, const char *request)
{
	hs_buf_printf(bytes, "%s\r\n", request);
}

static void test_cut_anywhere_the_replies_are_the_same(void **state)
{
	static const char expected[] =
		"+PONG\r\n+OK\r\n$3\r\na b\r\n*2\r\n$3\r\na b\r\n$-1\r\n+OK\r\n+QUEUED\r\n"
		"*1\r\n$3\r\na b\r\n:1\r\n-ERR wrong number of arguments for 'get' command\r\n";
	struct hs_buf bytes = {0};

	(void)state;
	add(&bytes, "PING");
	add(&bytes, "SET foo \"a b\"");
	add(&bytes, "*2\r\n$3\r\nGET\r\n$3\r\nfoo");
	add(&bytes, "*3\r\n$4\r\nMGET\r\n$3\r\nfoo\r\n$3\r\nbar");
	add(&bytes, "MULTI\r\nGET foo\r\nEXEC");
	add(&bytes, "DEL foo bar");
	add(&bytes, "*0\r\n*1\r\n$3\r\nGET");
	for (size_t cut = 0; cut <= bytes.len; cut++) {
		struct hs_sim_world *world = open_world();
		struct hs_sim_client *client = hs_sim_client_connect(world, 0);

		hs_sim_client_send(client, (struct hs_bytes){bytes.data, cut});
		if (cut % 2 == 0)
			hs_sim_world_settle(world);
		hs_sim_client_send(client, (struct hs_bytes){bytes.data + cut, bytes.len - cut});
		hs_sim_world_settle(world);
		received(client, expected);
		hs_sim_world_destroy(&world);
	}
	hs_buf_deinit(&bytes);
}

static void test_commands_for_many_partitions(void **state)
{
	struct hs_sim_world *world = open_world();
	struct hs_sim_client *client = hs_sim_client_connect(world, 0);

	(void)state;
	hs_sim_client_request(client, "MSET foo 1 bar 2 hello 3");
	hs_sim_client_request(client, "MGET hello nope foo bar foo");
	hs_sim_client_request(client, "EXISTS foo bar nope foo");
	hs_sim_client_request(client, "DBSIZE");
	hs_sim_client_request(client, "DEL foo nope bar");
	hs_sim_client_request(client, "DBSIZE");
	hs_sim_client_request(client, "KEYS *");
	hs_sim_client_request(client, "FLUSHALL");
	hs_sim_client_request(client, "DBSIZE");
	hs_sim_client_request(client, "RANDOMKEY");
	hs_sim_world_settle(world);
	received(client,
		 "+OK\r\n*5\r\n$1\r\n3\r\n$-1\r\n$1\r\n1\r\n$1\r\n2\r\n$1\r\n1\r\n:3\r\n:3\r\n"
		 ":2\r\n:1\r\n*1\r\n$5\r\nhello\r\n+OK\r\n:0\r\n$-1\r\n");
	hs_sim_client_request(client, "MSET foo 1 bar");
	hs_sim_client_request(client, "RENAME foo bar");
	hs_sim_client_request(client, "MSETNX foo 1 bar 2");
	received(client, "-ERR wrong number of arguments for 'mset' command\r\n"
			 "-CROSSSLOT Keys in request don't hash to the same slot\r\n"
			 "-CROSSSLOT Keys in request don't hash to the same slot\r\n");
	hs_sim_world_destroy(&world);
}

/* Follows the cursor of SCAN to its end. Every key must appear exactly once. */
static void test_scan_walks_all_partitions(void **state)
{
	enum { KEYS = 100 };
	struct hs_sim_world *world = open_world();
	struct hs_sim_client *client = hs_sim_client_connect(world, 0);
	char cursor[32] = "0", text[64];
	int seen[KEYS] = {0}, calls = 0;

	(void)state;
	for (int i = 0; i < KEYS; i++) {
		snprintf(text, sizeof text, "SET key:%d x", i);
		hs_sim_client_request(client, text);
	}
	hs_sim_world_settle(world);
	client->received.len = 0;
	do {
		char *at, *line;

		snprintf(text, sizeof text, "SCAN %s COUNT 7", cursor);
		hs_sim_client_request(client, text);
		hs_sim_world_settle(world);
		hs_buf_append(&client->received, "", 1);
		assert_memory_equal(client->received.data, "*2\r\n$", 5);
		at = strchr(client->received.data + 5, '\n') + 1;
		snprintf(cursor, sizeof cursor, "%.*s", (int)strcspn(at, "\r"), at);
		for (line = at; (line = strstr(line, "key:")); line++) {
			int number = atoi(line + 4);

			assert_in_range(number, 0, KEYS - 1);
			seen[number]++;
		}
		client->received.len = 0;
		assert_true(++calls <= KEYS);
	} while (strcmp(cursor, "0") != 0);
	for (int i = 0; i < KEYS; i++)
		assert_int_equal(seen[i], 1);
	assert_true(calls > 4);
	hs_sim_world_destroy(&world);
}

static void test_requests_in_flight_outlive_their_client(void **state)
{
	struct hs_sim_world *world = open_world();
	struct hs_sim_client *gone = hs_sim_client_connect(world, 0);
	struct hs_sim_client *client = hs_sim_client_connect(world, 0);

	(void)state;
	hs_sim_client_request(gone, "SET foo 1");
	hs_sim_client_request(gone, "INCR foo");
	hs_sim_client_request(gone, "MGET foo bar");
	hs_sim_client_send(gone, HS_LIT("*3\r\n$3\r\nSET\r\n$3\r\nfoo\r\n$1\r\n"));
	hs_sim_client_disconnect(gone);
	hs_sim_world_settle(world);
	silent(gone);
	hs_sim_client_request(client, "GET foo");
	received(client, "$1\r\n2\r\n");
	assert_int_equal(hs_counter_get(&stats(world)->sessions), 1);
	assert_int_equal(hs_counter_get(&stats(world)->inflight), 0);
	hs_sim_world_destroy(&world);
}

static void test_requests_in_flight_are_limited(void **state)
{
	enum { REQUESTS = 3000 };
	struct hs_sim_world *world = open_world();
	struct hs_sim_client *client = hs_sim_client_connect(world, 0);
	struct hs_sim_client *other = hs_sim_client_connect(world, 0);
	struct hs_core *core = hs_sim_world_core(world, 0);
	struct hs_buf bytes = {0};

	(void)state;
	hs_sim_engine_stall(world->engine, FOO_PARTITION);
	for (int i = 0; i < REQUESTS; i++)
		hs_buf_printf(&bytes, "INCR foo\r\nECHO %090d\r\n", i);
	hs_sim_client_send(client, hs_buf_bytes(&bytes));
	hs_sim_world_settle(world);
	assert_int_equal(hs_counter_get(&stats(world)->inflight), HS_SESSION_INFLIGHT_MAX);
	/* The remaining requests stay in the socket, except for the bytes of one read. */
	assert_false(hs_core_wants_input(client->session));
	assert_true(client->session->in.len <= 2 * HS_READ_BYTES);
	assert_true(client->unread.len > 0);
	hs_sim_client_request(other, "PING");
	received(other, "+PONG\r\n");

	hs_sim_engine_go_on(world->engine, FOO_PARTITION);
	hs_sim_world_settle(world);
	assert_int_equal(hs_counter_get(&stats(world)->inflight), 0);
	bytes.len = 0;
	for (int i = 0; i < REQUESTS; i++)
		hs_buf_printf(&bytes, ":%d\r\n$90\r\n%090d\r\n", i + 1, i);
	assert_true(hs_bytes_equal(hs_buf_bytes(&client->received), hs_buf_bytes(&bytes)));
	hs_buf_deinit(&bytes);
	hs_sim_client_disconnect(client);
	assert_true(core->request_pool_len <= 4096);
	hs_sim_world_destroy(&world);
}

/* Stores one large value and reads it until the unread replies reach the limit. */
static void overflow(bool reads_at_once)
{
	struct hs_sim_world_options options = hs_sim_world_defaults(1);
	struct hs_sim_world *world;
	struct hs_sim_client *reading_paused, *other;

	options.core.output_bytes_max = 1 << 20;
	options.engine.reads_at_once = reads_at_once;
	world = hs_sim_world_create(&options);
	reading_paused = hs_sim_client_connect(world, 0);
	other = hs_sim_client_connect(world, 0);
	hs_sim_client_request(other, "SETRANGE foo 99999 x");
	hs_sim_world_settle(world);
	received(other, ":100000\r\n");
	hs_sim_client_pause_reading(reading_paused, true);
	for (int i = 0; i < 10; i++)
		hs_sim_client_request(reading_paused, "GET foo");
	hs_sim_world_settle(world);
	/* The replies are just below a megabyte, within the limit. */
	assert_non_null(reading_paused->session);
	for (int i = 0; i < 10; i++)
		hs_sim_client_request(reading_paused, "GET foo");
	hs_sim_world_settle(world);
	assert_null(reading_paused->session);
	assert_true(reading_paused->cut);
	assert_int_equal(hs_counter_get(&stats(world)->cut_output), 1);
	hs_sim_client_request(other, "STRLEN foo");
	hs_sim_world_settle(world);
	received(other, ":100000\r\n");
	hs_sim_world_destroy(&world);
}

static void test_a_client_that_does_not_read_is_cut_off(void **state)
{
	(void)state;
	overflow(true);
	overflow(false); /* all twenty reads are in flight before the first reply */
}

static void test_a_client_that_reads_late_gets_everything(void **state)
{
	struct hs_sim_world *world = open_world();
	struct hs_sim_client *client = hs_sim_client_connect(world, 0);

	(void)state;
	hs_sim_client_pause_reading(client, true);
	hs_sim_client_request(client, "SET foo 1");
	hs_sim_client_request(client, "GET foo");
	hs_sim_client_request(client, "QUIT");
	hs_sim_world_settle(world);
	silent(client);
	assert_non_null(client->session); /* the core closes the connection when all is sent */
	hs_sim_client_pause_reading(client, false);
	received(client, "+OK\r\n$1\r\n1\r\n+OK\r\n");
	assert_null(client->session);
	assert_false(client->cut);
	hs_sim_world_destroy(&world);
}

static void test_a_full_store_refuses_writes_only(void **state)
{
	struct hs_sim_world_options options = hs_sim_world_defaults(1);
	struct hs_sim_world *world;
	struct hs_sim_client *client;

	(void)state;
	options.engine.bytes_max = 1000;
	world = hs_sim_world_create(&options);
	client = hs_sim_client_connect(world, 0);
	hs_sim_client_request(client, "SET foo 1");
	hs_sim_client_request(client, "SETRANGE foo 2000 x");
	hs_sim_client_request(client, "GET foo");
	hs_sim_client_request(client, "DEL foo");
	hs_sim_client_request(client, "SET foo 2");
	hs_sim_world_settle(world);
	received(client, "+OK\r\n-OOM store full: the simulated partition is at its limit\r\n"
			 "$1\r\n1\r\n:1\r\n+OK\r\n");
	hs_sim_world_destroy(&world);
}

/* The engine may queue a read that the core tried to have answered at once. The replies keep their order. */
static void test_refused_reads_come_in_turn(void **state)
{
	struct hs_sim_world_options options = hs_sim_world_defaults(1);
	struct hs_sim_world *world;
	struct hs_sim_client *client;
	struct hs_buf expected = {0};

	(void)state;
	options.engine.refuses = true;
	world = hs_sim_world_create(&options);
	client = hs_sim_client_connect(world, 0);
	hs_sim_client_request(client, "SET foo 1");
	hs_buf_printf(&expected, "+OK\r\n");
	for (int i = 0; i < 200; i++) {
		char text[32];

		hs_sim_world_settle(world);
		hs_sim_client_request(client, "GET foo");
		snprintf(text, sizeof text, "ECHO %03d", i);
		hs_sim_client_request(client, text);
		hs_buf_printf(&expected, "$1\r\n1\r\n$3\r\n%03d\r\n", i);
	}
	hs_sim_world_settle(world);
	assert_true(hs_bytes_equal(hs_buf_bytes(&client->received), hs_buf_bytes(&expected)));
	hs_buf_deinit(&expected);
	hs_sim_world_destroy(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_quick_answer_waits_for_a_slow_one),
		cmocka_unit_test(test_a_read_sees_the_write_before_it),
		cmocka_unit_test(test_a_stuck_partition_delays_no_other),
		cmocka_unit_test(test_an_unwatch_delays_no_reply),
		cmocka_unit_test(test_cut_anywhere_the_replies_are_the_same),
		cmocka_unit_test(test_commands_for_many_partitions),
		cmocka_unit_test(test_scan_walks_all_partitions),
		cmocka_unit_test(test_requests_in_flight_outlive_their_client),
		cmocka_unit_test(test_requests_in_flight_are_limited),
		cmocka_unit_test(test_a_client_that_does_not_read_is_cut_off),
		cmocka_unit_test(test_a_client_that_reads_late_gets_everything),
		cmocka_unit_test(test_a_full_store_refuses_writes_only),
		cmocka_unit_test(test_refused_reads_come_in_turn),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
