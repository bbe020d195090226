/* Goal: the commands that storm sends to each node of a Cluster, and their order, whatever the nodes answer and
 * when.
 *
 * Method: a client with connections to two nodes that count as connected but are not: the test reads their
 * output buffers and passes replies in one by one. Requests are one letter each, so that a text describes an
 * order. */
#include "cli/storm.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define MOVED "-MOVED 7 127.0.0.1:2\r\n"
#define ASK "-ASK 7 127.0.0.1:2\r\n"
#define ASKING "*1\r\n$6\r\nASKING\r\n"

enum { SLOT = 7 };

struct world {
	struct hs_storm_options options;
	struct hs_storm_worker worker;
	struct hs_storm_client *client;
	atomic_bool stop;
	char text[1000];
};

static struct world *begin(void)
{
	struct world *world = test_calloc(1, sizeof *world);
	struct hs_redis_url *url = &world->options.target.url;

	world->options.cluster = true;
	world->options.pipeline = world->options.connections = world->options.threads = 1;
	world->options.keys = 10;
	world->options.prefix = world->options.request = "";
	world->options.resend_timeout_us = 60000000;
	url->seeds_count = 2;
	for (uint16_t i = 0; i < 2; i++) {
		strcpy(url->seeds[i].host, "127.0.0.1");
		url->seeds[i].port = (uint16_t)(i + 1);
	}
	hs_storm_worker_init(&world->worker, &world->options, 0, &world->stop);
	world->worker.phase = HS_STORM_PHASE_RUN;
	world->worker.cluster->known = true;
	world->worker.read_ns = uv_hrtime();
	world->client = &world->worker.clients[0];
	for (int i = 0; i < 2; i++) {
		world->worker.nodes[i].owner = true;
		world->client->connections[i]->upstream.state = HS_UPSTREAM_UP;
	}
	return world;
}

/* Ends the client. `answered` requests must have been answered, `errors` of them with an error. */
static void end(struct world *world, uint64_t answered, uint64_t errors)
{
	assert_int_equal(world->worker.counts.answered, answered);
	assert_int_equal(world->worker.counts.error_total, errors);
	assert_int_equal(world->worker.counts.sent, answered + world->worker.counts.lost);
	assert_int_equal(world->client->in_flight, 0);
	assert_int_equal(world->worker.in_flight, 0);
	hs_storm_worker_deinit(&world->worker);
	test_free(world);
}

static struct hs_storm_request *ask_of(struct world *world, const char *letter, uint64_t key,
				       uint16_t slot)
{
	struct hs_storm_request *request = hs_storm_client_add(world->client, slot);

	*request = (struct hs_storm_request){
		.kind = HS_STORM_GET, .key = key, .other_key = (uint32_t)key};
	hs_buf_append(world->client->out, letter, 1);
	hs_storm_client_added(world->client);
	return request;
}

/* Sends a request for each letter, all on one key. */
static void ask(struct world *world, const char *letters)
{
	for (; *letters; letters++)
		ask_of(world, letters, 1, SLOT);
}

static void hear(struct world *world, int node, const char *reply)
{
	struct hs_storm_connection *connection = world->client->connections[node];

	world->client->from = connection;
	world->worker.read_ns = uv_hrtime();
	hs_storm_cluster_take(connection, hs_bytes_of(reply));
	hs_storm_cluster_release(world->client);
}

/* Checks the bytes that storm has sent to the node since the last call. */
static void is_sent(struct world *world, int node, const char *text)
{
	struct hs_buf *out = &world->client->connections[node]->upstream.out;

	snprintf(world->text, sizeof world->text, "%.*s", (int)out->len, out->data);
	out->len = 0;
	assert_string_equal(world->text, text);
}

/* ---- redirects ---- */

static void test_moved_is_followed(void **state)
{
	struct world *world = begin();

	(void)state;
	ask(world, "a");
	is_sent(world, 0, "a");
	hear(world, 0, MOVED);
	is_sent(world, 1, "a");
	hear(world, 1, "+OK\r\n");
	ask(world, "b"); /* goes straight to the new owner */
	is_sent(world, 0, "");
	is_sent(world, 1, "b");
	hear(world, 1, "+OK\r\n");
	assert_int_equal(world->worker.nodes[0].moved, 1);
	assert_int_equal(world->worker.nodes[0].requests, 1);
	assert_int_equal(world->worker.nodes[1].requests, 2);
	end(world, 2, 0);
}

static void test_ask_is_followed_once(void **state)
{
	struct world *world = begin();

	(void)state;
	ask(world, "a");
	is_sent(world, 0, "a");
	hear(world, 0, ASK);
	is_sent(world, 1, ASKING "a");
	ask(world, "b"); /* goes to the old owner, but only after a has its reply */
	is_sent(world, 0, "");
	hear(world, 1, "+OK\r\n"); /* the reply to ASKING */
	is_sent(world, 0, "");
	hear(world, 1, "+OK\r\n");
	is_sent(world, 0, "b");
	hear(world, 0, "+OK\r\n");
	assert_int_equal(world->worker.nodes[0].asked, 1);
	end(world, 2, 0);
}

static void test_other_slots_are_not_held(void **state)
{
	struct world *world = begin();

	(void)state;
	ask(world, "a");
	ask_of(world, "b", 2, SLOT + 1);
	ask_of(world, "c", 1, SLOT);
	is_sent(world, 0, "abc");
	hear(world, 0, MOVED);
	is_sent(world, 1, "");
	ask_of(world, "d", 2, SLOT + 1);
	is_sent(world, 0, "d");
	hear(world, 0, "+OK\r\n");
	hear(world, 0, MOVED);
	is_sent(world, 1, "ac");
	hear(world, 0, "+OK\r\n");
	hear(world, 1, "+OK\r\n");
	hear(world, 1, "+OK\r\n");
	end(world, 4, 0);
}

static void test_the_client_s_order_is_kept(void **state)
{
	struct world *world = begin();

	(void)state;
	ask(world, "abc");
	is_sent(world, 0, "abc");
	hear(world, 0, MOVED);
	is_sent(world, 1, "");
	/* Waits, although the new owner is known: b and c are in flight to the old one. */
	ask(world, "d");
	is_sent(world, 1, "");
	hear(world, 0, MOVED);
	is_sent(world, 1, "");
	hear(world, 0, MOVED);
	is_sent(world, 1, "abcd");
	for (int i = 0; i < 4; i++)
		hear(world, 1, "+OK\r\n");
	end(world, 4, 0);
}

static void test_an_overtaken_request_is_given_up(void **state)
{
	struct world *world = begin();

	(void)state;
	ask(world, "ab");
	ask_of(world, "c", 2, SLOT);
	is_sent(world, 0, "abc");
	hear(world, 0, MOVED);
	hear(world, 0, "+OK\r\n"); /* b ran, which has the same key as a: storm does not repeat a */
	hear(world, 0, "+OK\r\n");
	is_sent(world, 1, "");
	assert_string_equal(world->worker.counts.errors[0].word, "MOVED");
	end(world, 3, 1);

	world = begin();
	ask(world, "a");
	ask_of(world, "b", 2, SLOT);
	is_sent(world, 0, "ab");
	hear(world, 0, ASK);
	hear(world, 0, "+OK\r\n"); /* b has another key: storm repeats a */
	is_sent(world, 1, ASKING "a");
	hear(world, 1, "+OK\r\n");
	hear(world, 1, "+OK\r\n");
	end(world, 2, 0);
}

static void test_a_second_key_counts(void **state)
{
	struct world *world = begin();

	(void)state;
	ask_of(world, "a", 2, SLOT)->other_key = 1;
	ask(world, "b");
	is_sent(world, 0, "ab");
	hear(world, 0, "-TRYAGAIN Multiple keys request during rehashing of slot\r\n");
	hear(world, 0, "+OK\r\n");
	is_sent(world, 0, "");
	ask(world, "a");
	ask_of(world, "b", 2, SLOT)->other_key = 1;
	hear(world, 0, "-TRYAGAIN x\r\n");
	hear(world, 0, "+OK\r\n");
	end(world, 4, 2);
}

/* ---- TRYAGAIN and other refusals ---- */

static void test_tryagain_is_retried(void **state)
{
	static const char *const words[] = {"-TRYAGAIN x\r\n", "-CLUSTERDOWN x\r\n",
					    "-LOADING x\r\n"};
	struct world *world = begin();

	(void)state;
	for (int i = 0; i < 3; i++) {
		ask(world, "a");
		is_sent(world, 0, "a");
		hear(world, 0, words[i]);
		is_sent(world, 0, ""); /* storm waits before it retries */
		while (world->client->connections[0]->upstream.out.len == 0)
			hs_storm_cluster_release(world->client);
		is_sent(world, 0, "a");
		hear(world, 0, "+OK\r\n");
	}
	assert_int_equal(world->worker.nodes[0].not_now, 3);
	end(world, 3, 0);
}

static void test_a_retry_waits_for_requests_behind_it(void **state)
{
	struct world *world = begin();
	uint64_t until = uv_hrtime() + 20000000; /* longer than any pause before a retry */

	(void)state;
	ask(world, "a");
	ask_of(world, "b", 2, SLOT);
	is_sent(world, 0, "ab");
	hear(world, 0, "-LOADING x\r\n");
	while (uv_hrtime() < until)
		hs_storm_cluster_release(world->client);
	is_sent(world, 0, "");
	hear(world, 0, "+OK\r\n");
	is_sent(world, 0, "a");
	hear(world, 0, "+OK\r\n");
	end(world, 2, 0);
}

static void test_retries_end(void **state)
{
	struct world *world = begin();

	(void)state;
	world->options.resend_timeout_us = 1;
	ask(world, "a");
	hear(world, 0, "-TRYAGAIN x\r\n");
	while (world->client->parked)
		hs_storm_cluster_release(world->client);
	assert_string_equal(world->worker.counts.errors[0].word, "TRYAGAIN");
	end(world, 1, 1);
}

/* ---- transactions ---- */

/* MULTI, a request for each letter, EXEC. */
static void ask_transaction(struct world *world, const char *letters)
{
	world->client->transaction_left = (uint8_t)(strlen(letters) - 1);
	ask(world, letters);
}

static void test_a_transaction_is_sent_again_as_a_whole(void **state)
{
	struct world *world = begin();

	(void)state;
	ask_transaction(world, "mabe");
	ask(world, "z");
	is_sent(world, 0, "mabez");
	hear(world, 0, "+OK\r\n");
	hear(world, 0, "+QUEUED\r\n");
	hear(world, 0, MOVED);
	is_sent(world, 1, "");
	hear(world, 0, "-EXECABORT x\r\n");
	hear(world, 0, MOVED);
	is_sent(world, 1, "mabez");
	hear(world, 1, "+OK\r\n");
	hear(world, 1, "+QUEUED\r\n");
	hear(world, 1, "+QUEUED\r\n");
	hear(world, 1, "*2\r\n+OK\r\n+OK\r\n");
	hear(world, 1, "+OK\r\n");
	end(world, 5, 0);
}

static void test_exec_itself_is_redirected(void **state)
{
	struct world *world = begin();

	(void)state;
	ask_transaction(world, "mae");
	is_sent(world, 0, "mae");
	hear(world, 0, "+OK\r\n");
	hear(world, 0, "+QUEUED\r\n");
	hear(world, 0, ASK);
	is_sent(world, 1, ASKING "mae"); /* one ASKING covers the whole transaction */
	hear(world, 1, "+OK\r\n");
	hear(world, 1, "+OK\r\n");
	hear(world, 1, "+QUEUED\r\n");
	hear(world, 1, "*1\r\n+OK\r\n");
	end(world, 3, 0);
}

static void test_a_redirected_watched_transaction_is_not_repeated(void **state)
{
	struct world *world = begin();

	(void)state;
	for (int asked = 0; asked < 2; asked++) {
		/* Not the owner in the slot map. */
		world->client->pin = world->client->connections[1];
		world->client->watch.asked = asked;
		ask_transaction(world, "mse");
		world->client->pin = NULL;
		is_sent(world, 1, asked ? ASKING "mse" : "mse");
		/* Goes to the owner in the slot map, but only after the transaction has ended. */
		ask(world, "z");
		is_sent(world, 0, "");
		if (asked)
			hear(world, 1, "+OK\r\n");
		hear(world, 1, "+OK\r\n");
		hear(world, 1, "-MOVED 7 127.0.0.1:1\r\n");
		hear(world, 1, "-EXECABORT x\r\n");
		is_sent(world, 0, "z");
		is_sent(world, 1, "");
		hear(world, 0, "+OK\r\n");
	}
	end(world, 8, 0);
}

/* ---- lost connections ---- */

static void test_a_lost_link(void **state)
{
	struct world *world = begin();
	struct hs_storm_connection *connection = world->client->connections[0];

	(void)state;
	ask_transaction(world, "me");
	ask(world, "abc");
	connection->upstream.sent = 3; /* the server has read m, e and a */
	hear(world, 0, "+OK\r\n");
	hs_storm_connection_drop(connection, "gone");
	assert_int_equal(world->worker.counts.lost, 2); /* e and a: sent, and never answered */
	assert_int_equal(world->worker.counts.unsent, 2);
	assert_string_equal(world->worker.counts.last_error, "gone");
	end(world, 1, 0);
}

static void test_a_link_that_is_not_there_is_waited_for(void **state)
{
	struct world *world = begin();
	struct hs_storm_connection *connection = world->client->connections[0];

	(void)state;
	connection->upstream.state = HS_UPSTREAM_OPENING;
	ask_transaction(world, "me");
	ask(world, "a");
	is_sent(world, 0, "");
	connection->upstream.state = HS_UPSTREAM_UP;
	hs_storm_cluster_release(world->client);
	is_sent(world, 0, "mea");
	hear(world, 0, "+OK\r\n");
	hear(world, 0, "*0\r\n");
	hear(world, 0, "+OK\r\n");
	connection->upstream.state = HS_UPSTREAM_OPENING;
	ask(world, "b");
	hs_storm_cluster_give_up(world->client);
	assert_string_equal(world->worker.counts.errors[0].example,
			    "CLUSTERDOWN 127.0.0.1:1 is not connected; not sent");
	end(world, 4, 1);
}

/* ---- what --verify asks about requests in flight ---- */

static void test_requests_in_flight_on_every_link(void **state)
{
	struct world *world = begin();
	struct hs_storm_client *client = world->client;

	(void)state;
	ask_of(world, "a", 1, SLOT)->stamp = 3;
	ask_of(world, "b", 2, SLOT + 1)->stamp = 5;
	assert_int_equal(hs_storm_client_oldest(client), 3);
	hear(world, 0, "-TRYAGAIN x\r\n"); /* the request with stamp 3 waits for a retry */
	assert_int_equal(hs_storm_client_oldest(client), 3);
	hs_storm_client_raise_floor(client, 1, 9);
	while (client->connections[0]->ring_count < 2)
		hs_storm_cluster_release(client);
	/* The older request is sent after the newer one. */
	assert_int_equal(hs_storm_client_oldest(client), 3);
	assert_int_equal(
		client->connections[0]->requests[(client->connections[0]->ring_head + 1)].floor, 9);
	hear(world, 0, "+OK\r\n");
	hear(world, 0, "+OK\r\n");
	assert_true(hs_storm_client_oldest(client) == UINT64_MAX);
	end(world, 2, 0);
}

/* In a Cluster, --resend-timeout is added to the time that storm waits for the last answers. */
static void test_the_last_answers_are_waited_for(void **state)
{
	struct world *world = begin();

	(void)state;
	world->options.resend_timeout_us = 250000;
	ask(world, "a");
	world->worker.stopped_ns = 1; /* the run ended long ago */
	hs_storm_worker_run(&world->worker);
	assert_string_equal(world->worker.counts.last_error, "no answer for 5.25 s after the run");
	assert_true(world->worker.abandoned);
	end(world, 0, 0);
}

/* When the node table is full, storm counts a redirect to another address as an ordinary answer. */
static void test_too_many_nodes(void **state)
{
	struct world *world = begin();
	struct hs_redis_address at = {.host = "127.0.0.1"};

	(void)state;
	for (uint16_t port = 1; port <= HS_STORM_NODES_MAX; port++) {
		at.port = port;
		assert_int_equal(hs_storm_node(&world->worker, &at), port - 1);
	}
	ask(world, "a");
	hear(world, 0, "-MOVED 7 127.0.0.1:50000\r\n");
	ask(world, "b");
	hear(world, 0, "-ASK 7 127.0.0.1:50001\r\n");
	assert_int_equal(world->worker.nodes_count, HS_STORM_NODES_MAX);
	assert_int_equal(world->worker.cluster->slots[SLOT], 0);
	assert_string_equal(world->worker.counts.last_error,
			    "more than 2048 nodes: 127.0.0.1:50001 is ignored");
	end(world, 2, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_moved_is_followed),
		cmocka_unit_test(test_ask_is_followed_once),
		cmocka_unit_test(test_other_slots_are_not_held),
		cmocka_unit_test(test_the_client_s_order_is_kept),
		cmocka_unit_test(test_an_overtaken_request_is_given_up),
		cmocka_unit_test(test_a_second_key_counts),
		cmocka_unit_test(test_tryagain_is_retried),
		cmocka_unit_test(test_a_retry_waits_for_requests_behind_it),
		cmocka_unit_test(test_retries_end),
		cmocka_unit_test(test_a_transaction_is_sent_again_as_a_whole),
		cmocka_unit_test(test_exec_itself_is_redirected),
		cmocka_unit_test(test_a_redirected_watched_transaction_is_not_repeated),
		cmocka_unit_test(test_a_lost_link),
		cmocka_unit_test(test_a_link_that_is_not_there_is_waited_for),
		cmocka_unit_test(test_requests_in_flight_on_every_link),
		cmocka_unit_test(test_the_last_answers_are_waited_for),
		cmocka_unit_test(test_too_many_nodes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
