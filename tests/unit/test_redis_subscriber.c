/* Goal: the topics of all workers are subscribed once, at the right server, and again after a server or slot is
 * lost. Each message arrives once; every buffer is bounded.
 *
 * Method: scripts (tests/lib/subscriber_world.h). Home is the server of partition 0: the channels of all
 * workers are subscribed there. */
#include "tests/lib/subscriber_world.h"

/* ---- channels and patterns ---- */

static void test_subscribed_once_for_all_workers(void **state)
{
	struct world world;

	(void)state;
	start(&world, true);
	route(&world, "a b");
	expect(&world, "");
	subscribe(&world, 0, "SUBSCRIBE", "x");
	subscribe(&world, 1, "SUBSCRIBE", "x");
	expect(&world, "open a\n");
	up(&world, "a");
	expect(&world, "a> SUBSCRIBE x\n");
	push(&world, "a", "subscribe x");
	expect(&world, "done 0 +OK\ndone 1 +OK\n");
	subscribe(&world, 2, "SUBSCRIBE", "x");
	subscribe(&world, 2, "SUBSCRIBE", "x"); /* subscribing twice counts once */
	expect(&world, "done 2 +OK\ndone 2 +OK\n");
	subscribe(&world, 2, "PSUBSCRIBE", "x");
	push(&world, "a", "psubscribe x");
	expect(&world, "a> PSUBSCRIBE x\ndone 2 +OK\n");
	push(&world, "a", "message x hello");
	push(&world, "a", "pmessage x x hello");
	push(&world, "a", "message y nobody");
	expect(&world, "message x hello\npattern x x hello\n");
	unsubscribe(&world, 0, "SUBSCRIBE", "x");
	unsubscribe(&world, 2, "SUBSCRIBE", "x");
	expect(&world, "done 0 +OK\ndone 2 +OK\n");
	unsubscribe(&world, 1, "SUBSCRIBE", "x");
	expect(&world, "a> UNSUBSCRIBE x\n");
	push(&world, "a", "message x late");
	/* The worker subscribes again before the server has answered UNSUBSCRIBE. */
	subscribe(&world, 1, "SUBSCRIBE", "x");
	push(&world, "a", "unsubscribe x");
	push(&world, "a", "subscribe x");
	expect(&world, "a> SUBSCRIBE x\ndone 1 +OK\ndone 1 +OK\n");
	unsubscribe(&world, 1, "SUBSCRIBE", "x");
	unsubscribe(&world, 2, "PSUBSCRIBE", "x");
	/* The worker is not subscribed any more: no effect. */
	unsubscribe(&world, 2, "PSUBSCRIBE", "x");
	expect(&world, "a> UNSUBSCRIBE x\na> PUNSUBSCRIBE x\ndone 2 +OK\n");
	push(&world, "a", "unsubscribe x");
	expect(&world, "done 1 +OK\n");
	/* The connection stays open for a while, in case another topic comes. */
	tick(&world, HS_SUBSCRIBER_IDLE_US - 1);
	push(&world, "a", "punsubscribe x");
	expect(&world, "a> PING\ndone 2 +OK\n");
	tick(&world, 1);
	expect(&world, "close a\n");
	stop(&world);
}

static void test_messages_in_pieces(void **state)
{
	static const char bytes[] = ">3\r\n$9\r\nsubscribe\r\n$1\r\nx\r\n:1\r\n"
				    ">3\r\n$7\r\nmessage\r\n$1\r\nx\r\n$5\r\nhello\r\n"
				    ">3\r\n$7\r\nmessage\r\n$1\r\nx\r\n$0\r\n\r\n";

	(void)state;
	for (size_t size = 1; size < sizeof bytes; size++) {
		struct world world;

		start(&world, false);
		route(&world, "a");
		subscribe(&world, 0, "SUBSCRIBE", "x");
		up(&world, "a");
		for (size_t at = 0; at < sizeof bytes - 1; at += size) {
			size_t left = sizeof bytes - 1 - at;

			say_bytes(&world, "a",
				  (struct hs_bytes){bytes + at, left < size ? left : size});
		}
		expect(&world, "open a\na> SUBSCRIBE x\ndone 0 +OK\nmessage x hello\nmessage x\n");
		stop(&world);
	}
}

static void test_one_server_has_everything(void **state)
{
	struct world world;

	(void)state;
	start(&world, false);
	subscribe(&world, 0, "SSUBSCRIBE", "s");
	subscribe(&world, 0, "SUBSCRIBE", "x");
	expect(&world, ""); /* nothing is sent, because no server is known yet */
	route(&world, "a");
	expect(&world, "open a\n");
	up(&world, "a");
	expect(&world, "a> SSUBSCRIBE s\na> SUBSCRIBE x\n");
	push(&world, "a", "ssubscribe s");
	push(&world, "a", "subscribe x");
	push(&world, "a", "smessage s 1");
	push(&world, "a", "message x 2");
	expect(&world, "done 0 +OK\ndone 0 +OK\nshard s 1\nmessage x 2\n");
	/* A single server has no other owner to wait for: the subscriber retries for ever. */
	down(&world, "a");
	pass(&world, 2 * HS_SUBSCRIBER_FOLLOW_US_MAX);
	up(&world, "a");
	push(&world, "a", "ssubscribe s");
	push(&world, "a", "smessage s 3");
	expect(&world, "open a\na> SSUBSCRIBE s\na> SUBSCRIBE x\nshard s 3\n");
	stop(&world);
}

static void test_a_lost_connection_is_opened_again(void **state)
{
	struct world world;

	(void)state;
	start(&world, false);
	route(&world, "a");
	subscribe(&world, 0, "SUBSCRIBE", "x");
	up(&world, "a");
	push(&world, "a", "subscribe x");
	expect(&world, "open a\na> SUBSCRIBE x\ndone 0 +OK\n");
	down(&world, "a");
	expect(&world, "open a\n"); /* the subscriber connects again at once */
	assert_string_equal(world.line_logged,
			    "a:1: pub/sub stream lost: gone; messages are lost until it is back");
	world.line_logged[0] = '\0';
	down(&world, "a");
	tick(&world, 2 * HS_SUBSCRIBER_OPEN_US_MIN - 1);
	expect(&world, "");
	tick(&world, HS_SUBSCRIBER_OPEN_US_MIN + 1);
	expect(&world, "open a\n");
	down(&world, "a");
	tick(&world, 4 * HS_SUBSCRIBER_OPEN_US_MIN - 1);
	expect(&world, ""); /* the pause grows with each failure */
	tick(&world, 2 * HS_SUBSCRIBER_OPEN_US_MIN + 1);
	expect(&world, "open a\n");
	assert_string_equal(world.line_logged, "");
	up(&world, "a");
	push(&world, "a", "subscribe x");
	push(&world, "a", "message x back");
	expect(&world, "a> SUBSCRIBE x\nmessage x back\n");
	/* Lost again at once: not logged again, and the next attempt comes after a pause. */
	down(&world, "a");
	assert_string_equal(world.line_logged, "a:1: pub/sub stream resubscribed");
	expect(&world, "");
	pass(&world, HS_SUBSCRIBER_OPEN_US_MAX);
	expect(&world, "open a\n");
	/* The last topic is gone: the connection is not needed. */
	unsubscribe(&world, 0, "SUBSCRIBE", "x");
	expect(&world, "done 0 +OK\nclose a\n");
	stop(&world);
}

/* A connection that was up for a while resets the backoff: the next loss is logged, and the subscriber connects
 * at once. */
static void test_a_recovered_connection_resets_the_backoff(void **state)
{
	struct world world;

	(void)state;
	start(&world, false);
	route(&world, "a");
	subscribe(&world, 0, "SUBSCRIBE", "x");
	up(&world, "a");
	down(&world, "a");
	up(&world, "a");
	push(&world, "a", "subscribe x");
	tick(&world, HS_SUBSCRIBER_OPEN_US_MAX);
	say(&world, "a", "+PONG\r\n");
	world.text.len = 0;
	world.line_logged[0] = '\0';
	down(&world, "a");
	expect(&world, "open a\n");
	assert_string_equal(world.line_logged,
			    "a:1: pub/sub stream lost: gone; messages are lost until it is back");
	stop(&world);
}

static void test_a_silent_connection_is_pinged(void **state)
{
	struct world world;

	(void)state;
	start(&world, false);
	route(&world, "a");
	subscribe(&world, 0, "SUBSCRIBE", "x");
	tick(&world, HS_SUBSCRIBER_PING_US - 1);
	up(&world, "a"); /* the time before the connection was up does not count as silence */
	expect(&world, "open a\na> SUBSCRIBE x\n");
	tick(&world, HS_SUBSCRIBER_PING_US - 1);
	expect(&world, "");
	push(&world, "a", "subscribe x");
	tick(&world, HS_SUBSCRIBER_PING_US);
	expect(&world, "done 0 +OK\na> PING\n");
	tick(&world, HS_SUBSCRIBER_PING_US); /* the subscriber sends a single PING */
	expect(&world, "");
	say(&world, "a", "-ERR not now\r\n"); /* an error reply to PING counts as an answer, too */
	tick(&world, HS_SUBSCRIBER_PING_US);
	expect(&world, "a> PING\n");
	/* Messages arrive, but no answer to PING: the connection counts as alive. */
	for (uint64_t us = 0; us < 2 * HS_SUBSCRIBER_SILENT_US_MAX; us += HS_SUBSCRIBER_PING_US) {
		tick(&world, HS_SUBSCRIBER_PING_US);
		push(&world, "a", "message y nobody");
	}
	expect(&world, "");
	tick(&world, HS_SUBSCRIBER_SILENT_US_MAX);
	expect(&world, "close a\nopen a\n");
	up(&world, "a");
	push(&world, "a", "subscribe x");
	tick(&world, HS_SUBSCRIBER_PING_US); /* the subscriber pings the next connection as well */
	expect(&world, "a> SUBSCRIBE x\na> PING\n");
	stop(&world);
}

static void test_home_is_another_while_partition_0_is_away(void **state)
{
	struct world world;

	(void)state;
	start(&world, true);
	route_first(&world, "a b c", 1);
	subscribe(&world, 0, "SUBSCRIBE", "x");
	up(&world, "b");
	push(&world, "b", "subscribe x");
	expect(&world, "open b\nb> SUBSCRIBE x\ndone 0 +OK\n");
	down(&world, "b"); /* the subscriber also tries another server */
	expect(&world, "open b\nopen c\n");
	down(&world, "c");
	expect(&world, "open a\n");
	up(&world, "a");
	push(&world, "a", "subscribe x");
	push(&world, "a", "message x 1");
	expect(&world, "a> SUBSCRIBE x\nmessage x 1\n");
	/* Home's server is back: the subscription moves there, and at any time exactly one of the two
	 * connections delivers messages. */
	up(&world, "b");
	push(&world, "a", "message x 2");
	expect(&world, "b> SUBSCRIBE x\nmessage x 2\n");
	push(&world, "b", "subscribe x");
	push(&world, "a", "message x 3");
	push(&world, "b", "message x 3");
	expect(&world, "a> UNSUBSCRIBE x\nmessage x 3\n");
	stop(&world);
}

/* Another node is connected already, but the first topic waits for home: subscribing at the other node and
 * moving home a moment later could deliver a message twice. */
static void test_the_first_topic_waits_for_home(void **state)
{
	struct world world;

	(void)state;
	start(&world, true);
	route(&world, "a b");
	/* The subscriber connects to b for this shard channel. */
	subscribe(&world, 0, "SSUBSCRIBE", "a");
	up(&world, "b");
	push(&world, "b", "ssubscribe a");
	world.text.len = 0;
	subscribe(&world, 0, "SUBSCRIBE", "x");
	expect(&world, "open a\n");
	up(&world, "a");
	expect(&world, "a> SUBSCRIBE x\n");
	down(&world, "a"); /* home cannot be reached: the topic goes to b */
	expect(&world, "open a\nb> SUBSCRIBE x\n");
	stop(&world);
}

static void test_home_moves_when_its_node_is_not_listed_any_more(void **state)
{
	struct world world;

	(void)state;
	start(&world, true);
	route(&world, "a b");
	subscribe(&world, 0, "SUBSCRIBE", "x");
	up(&world, "a");
	push(&world, "a", "subscribe x");
	world.text.len = 0;
	route(&world, "c b");
	push(&world, "a", "message x 1"); /* the old home still delivers */
	expect(&world, "open c\nmessage x 1\n");
	down(&world, "c");
	push(&world, "a", "message x 2");
	expect(&world, "message x 2\n");
	tick(&world, 2 * HS_SUBSCRIBER_OPEN_US_MIN);
	up(&world, "c");
	push(&world, "c", "subscribe x");
	push(&world, "c", "message x 3");
	expect(&world, "open c\nc> SUBSCRIBE x\nclose a\nmessage x 3\n");
	stop(&world);
}

static void test_home_moves_to_a_connected_server(void **state)
{
	struct world world;

	(void)state;
	start(&world, true);
	route(&world, "a b");
	subscribe(&world, 0, "SUBSCRIBE", "x");
	/* The subscriber connects to b for this shard channel. */
	subscribe(&world, 0, "SSUBSCRIBE", "a");
	up(&world, "a");
	up(&world, "b");
	push(&world, "a", "subscribe x");
	push(&world, "b", "ssubscribe a");
	world.text.len = 0;
	route(&world, "c b");
	expect(&world, "open c\nb> SUBSCRIBE x\n");
	push(&world, "a", "message x 1");
	push(&world, "b", "subscribe x");
	push(&world, "b", "message x 2");
	expect(&world, "message x 1\nclose a\nmessage x 2\n");
	up(&world, "c");
	push(&world, "c", "subscribe x");
	expect(&world, "c> SUBSCRIBE x\nb> UNSUBSCRIBE x\n");
	stop(&world);
}

/* A worker whose last SUBSCRIBE failed does not count as a subscriber, even if an earlier SUBSCRIBE of the same
 * topic had succeeded. */
static void test_a_worker_whose_listen_failed_does_not_count(void **state)
{
	struct world world;

	(void)state;
	start(&world, false);
	route(&world, "a");
	subscribe(&world, 0, "SUBSCRIBE", "x");
	subscribe(&world, 1, "SUBSCRIBE", "x");
	up(&world, "a");
	push(&world, "a", "subscribe x");
	down(&world, "a");
	subscribe(&world, 0, "SUBSCRIBE", "x");
	tick(&world, HS_SUBSCRIBER_CONFIRM_US_MAX);
	world.text.len = 0;
	up(&world, "a");
	push(&world, "a", "subscribe x");
	unsubscribe(&world, 1, "SUBSCRIBE", "x");
	expect(&world, "a> SUBSCRIBE x\na> UNSUBSCRIBE x\n");
	stop(&world);
}

static void test_listen_fails_when_it_is_refused_or_late(void **state)
{
	struct world world;

	(void)state;
	start(&world, true);
	subscribe(&world, 0, "SUBSCRIBE", "x");
	pass(&world, HS_SUBSCRIBER_CONFIRM_US_MAX);
	expect(&world, "done 0 -CLUSTERDOWN cannot subscribe: none of the engine's servers has "
		       "answered yet\n");
	route(&world, "a");
	subscribe(&world, 0, "SUBSCRIBE", "x");
	down(&world, "a");
	expect(&world, "open a\n");
	tick(&world, HS_SUBSCRIBER_CONFIRM_US_MAX);
	expect(&world, "done 0 -CLUSTERDOWN cannot subscribe: gone\n");
	tick(&world, HS_SUBSCRIBER_IDLE_US);
	subscribe(&world, 1, "SUBSCRIBE", "x");
	subscribe(&world, 0, "SUBSCRIBE", "y");
	up(&world, "a");
	expect(&world, "open a\na> SUBSCRIBE x\na> SUBSCRIBE y\n");
	say(&world, "a", "-NOPERM no\r\n");
	push(&world, "a", "subscribe y");
	expect(&world, "done 1 -NOPERM no\ndone 0 +OK\n");
	tick(&world, HS_SUBSCRIBER_RETRY_US);
	expect(&world, "");
	/* The server does not answer: SUBSCRIBE fails, and the subscriber sends UNSUBSCRIBE. */
	subscribe(&world, 1, "SUBSCRIBE", "z");
	tick(&world, HS_SUBSCRIBER_CONFIRM_US_MAX);
	expect(&world, "a> SUBSCRIBE z\n"
		       "done 1 -CLUSTERDOWN cannot subscribe: the server does not answer\n"
		       "a> PING\na> UNSUBSCRIBE z\n");
	push(&world, "a", "subscribe z");
	say(&world, "a", "+PONG\r\n");
	push(&world, "a", "unsubscribe z");
	push(&world, "a", "message z nobody");
	expect(&world, "");
	stop(&world);
}

/* ---- shard channels: the slot of "b" is 3300, in the first half of the slots; the slot of "a" is 15495, in
 * the second half ---- */

static void listen_to_shards(struct world *world)
{
	start(world, true);
	route(world, "a b");
	subscribe(world, 0, "SSUBSCRIBE", "b");
	subscribe(world, 0, "SSUBSCRIBE", "a");
	expect(world, "open a\nopen b\n");
	up(world, "a");
	up(world, "b");
	push(world, "a", "ssubscribe b");
	push(world, "b", "ssubscribe a");
	push(world, "a", "smessage b 1");
	push(world, "b", "smessage a 2");
	expect(world, "a> SSUBSCRIBE b\nb> SSUBSCRIBE a\ndone 0 +OK\ndone 0 +OK\nshard b 1\n"
		      "shard a 2\n");
}

static void test_a_shard_channel_follows_the_routes(void **state)
{
	struct world world;

	(void)state;
	listen_to_shards(&world);
	route(&world, "b a"); /* servers a and b swap their slots */
	world.text.len = 0;
	/* Server b has not learned yet that it owns the slot. */
	say(&world, "b", "-MOVED 3300 a:1\r\n");
	push(&world, "a", "smessage b 3");
	expect(&world, "topology-suspect\nshard b 3\n");
	tick(&world, HS_SUBSCRIBER_RETRY_US);
	push(&world, "b", "ssubscribe b");
	push(&world, "b", "smessage b 4");
	expect(&world, "b> SSUBSCRIBE b\na> SUNSUBSCRIBE b\nshard b 4\n");
	stop(&world);
}

static void test_a_shard_channel_that_the_server_dropped(void **state)
{
	struct world world;

	(void)state;
	listen_to_shards(&world);
	push(&world, "a", "sunsubscribe b");
	expect(&world, "topology-suspect\n");
	tick(&world, HS_SUBSCRIBER_RETRY_US);
	say(&world, "a", "-MOVED 3300 b:1\r\n");
	expect(&world, "a> SSUBSCRIBE b\ntopology-suspect\n");
	route(&world, "b");
	expect(&world, "close a\nb> SSUBSCRIBE b\n");
	push(&world, "b", "ssubscribe b");
	push(&world, "b", "smessage b 3");
	expect(&world, "shard b 3\n");
	/* The channel is subscribed in time: its clients stay subscribed. */
	tick(&world, HS_SUBSCRIBER_FOLLOW_US_MAX);
	expect(&world, "b> PING\n");
	stop(&world);
}

static void test_the_refusal_of_an_answer_that_came_already(void **state)
{
	struct world world;

	(void)state;
	listen_to_shards(&world);
	subscribe(&world, 0, "SSUBSCRIBE", "{b}2");
	push(&world, "a", "ssubscribe {b}2");
	unsubscribe(&world, 0, "SSUBSCRIBE", "b");
	subscribe(&world, 0, "SSUBSCRIBE", "f"); /* a channel of another slot */
	expect(&world, "a> SSUBSCRIBE {b}2\ndone 0 +OK\na> SUNSUBSCRIBE b\na> SSUBSCRIBE f\n");
	/* The server loses the slot while SUNSUBSCRIBE is in flight. */
	push(&world, "a", "sunsubscribe b");
	push(&world, "a", "sunsubscribe {b}2");
	say(&world, "a", "-MOVED 3300 b:1\r\n");
	push(&world, "a", "ssubscribe f");
	expect(&world, "done 0 +OK\ntopology-suspect\ndone 0 +OK\n");
	/* The server loses the slot of f right after the same request. */
	unsubscribe(&world, 0, "SSUBSCRIBE", "f");
	push(&world, "a", "sunsubscribe f");
	say(&world, "a", "-MOVED 3168 b:1\r\n");
	expect(&world, "a> SUNSUBSCRIBE f\ndone 0 +OK\n");
	stop(&world);
}

static void test_a_shard_channel_without_an_owner(void **state)
{
	struct world world;

	(void)state;
	listen_to_shards(&world);
	down(&world, "a");
	down(&world, "a");
	world.text.len = 0;
	for (int us = 0; us < HS_SUBSCRIBER_FOLLOW_US_MAX - 1000000; us += 1000000) {
		tick(&world, 1000000);
		if (strstr(world.text.data, "open a"))
			down(&world, "a");
		assert_null(strstr(world.text.data, "unlistened"));
		say(&world, "b", "+PONG\r\n");
		world.text.len = 0;
		hs_buf_append(&world.text, "", 1);
		world.text.len = 0;
	}
	/* Another worker subscribes to the same channel; its timeout begins only then. */
	subscribe(&world, 1, "SSUBSCRIBE", "b");
	world.text.len = 0;
	tick(&world, 1000000);
	assert_string_equal(
		world.line_logged,
		"1 shard channels had no server for 30 s: their clients are unsubscribed");
	unsubscribe(&world, 0, "SSUBSCRIBE", "b");
	hs_buf_append(&world.text, "", 1);
	assert_non_null(strstr(world.text.data, "unlistened b\n"));
	assert_non_null(strstr(world.text.data, "done 0 +OK\n"));
	assert_null(strstr(world.text.data, "done 1"));
	stop(&world);
}

/* An ASK error counts as the answer to the request, whichever slot the error names. A message that comes before
 * the confirmation is not delivered. */
static void test_pushes_before_the_confirmation(void **state)
{
	struct world world;

	(void)state;
	listen_to_shards(&world);
	subscribe(&world, 0, "SSUBSCRIBE", "{b}2");
	push(&world, "a", "smessage {b}2 early");
	say(&world, "a", "-ASK 1 b:1\r\n");
	expect(&world, "a> SSUBSCRIBE {b}2\ntopology-suspect\n");
	tick(&world, HS_SUBSCRIBER_RETRY_US);
	push(&world, "a", "ssubscribe {b}2");
	expect(&world, "a> SSUBSCRIBE {b}2\ndone 0 +OK\n");
	stop(&world);
}

/* ---- limits and malformed replies ---- */

static void test_the_answer_to_another_request(void **state)
{
	static const char *const answers[] = {"subscribe y", "psubscribe x", "ssubscribe x"};

	(void)state;
	for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
		struct world world;

		start(&world, false);
		route(&world, "a");
		subscribe(&world, 0, "SUBSCRIBE", "x");
		up(&world, "a");
		world.text.len = 0;
		push(&world, "a", answers[i]);
		expect(&world, "close a\nopen a\n");
		stop(&world);
	}
}

static void test_malformed_replies_end_the_connection(void **state)
{
	static const char *const nonsense[] = {
		"hello\r\n",
		"+OK\r\n",
		"-ERR\r\n",
		">3\r\n$9\r\nsubscribe\r\n$1\r\ny\r\n:1\r\n",
		">1\r\n$7\r\nmessage\r\n",
		">2\r\n$10\r\ninvalidate\r\n:1\r\n",
		">1\r\n:1\r\n",
	};

	(void)state;
	for (size_t i = 0; i < sizeof nonsense / sizeof *nonsense; i++) {
		struct world world;

		start(&world, false);
		route(&world, "a");
		subscribe(&world, 0, "SUBSCRIBE", "x");
		up(&world, "a");
		push(&world, "a", "subscribe x");
		world.text.len = 0;
		say(&world, "a", nonsense[i]);
		expect(&world, "close a\nopen a\n");
		stop(&world);
	}
}

static void test_a_message_beyond_the_limit(void **state)
{
	size_t size = HS_EVENT_BYTES_MAX - HS_BULK_BYTES_MAX;
	struct hs_buf bytes = {0};
	struct world world;

	(void)state;
	start(&world, false);
	route(&world, "a");
	subscribe(&world, 0, "SUBSCRIBE", "x");
	up(&world, "a");
	push(&world, "a", "subscribe x");
	world.text.len = 0;
	/* A channel name of 1 MiB, then the header of a message whose bytes have not arrived. */
	hs_buf_printf(&bytes, ">3\r\n$7\r\nmessage\r\n$%zu\r\n", size);
	memset(hs_buf_reserve(&bytes, size), 'x', size);
	bytes.len += size;
	hs_buf_printf(&bytes, "\r\n$%zu\r\n", HS_BULK_BYTES_MAX - 100);
	say_bytes(&world, "a", hs_buf_bytes(&bytes));
	expect(&world, "");
	down(&world, "a");
	up(&world, "a");
	world.text.len = 0;
	bytes.len -= strlen("$536870812\r\n");
	hs_buf_printf(&bytes, "$%zu\r\n", HS_BULK_BYTES_MAX);
	say_bytes(&world, "a", hs_buf_bytes(&bytes));
	expect(&world, "close a\n");
	hs_buf_deinit(&bytes);
	stop(&world);
}

static void test_subscriptions_go_out_in_portions(void **state)
{
	enum { TOPICS = HS_SUBSCRIBER_PENDING_MAX + 10 };
	struct world world;
	char name[24];

	(void)state;
	start(&world, false);
	route(&world, "a");
	world.quiet = true;
	subscribe(&world, 0, "SUBSCRIBE", "0");
	up(&world, "a");
	push(&world, "a", "subscribe 0");
	for (int i = 1; i < TOPICS; i++) {
		snprintf(name, sizeof name, "%d", i);
		subscribe(&world, 0, "SUBSCRIBE", name);
		snprintf(name, sizeof name, "subscribe %d", i);
		push(&world, "a", name);
	}
	assert_int_equal(world.requests, TOPICS);
	down(&world, "a");
	world.requests = 0;
	up(&world, "a");
	assert_int_equal(world.requests, HS_SUBSCRIBER_PENDING_MAX);
	/* One confirmation: the subscriber sends one more request. */
	push(&world, "a", "subscribe 0");
	assert_int_equal(world.requests, HS_SUBSCRIBER_PENDING_MAX + 1);
	expect(&world, "open a\nopen a\n");
	stop(&world);
}

/* The subscriber composes at most a few MiB of requests at once. */
static void test_long_names_go_out_in_portions(void **state)
{
	enum { TOPICS = 10, NAME_BYTES = 1 << 20 };
	char *name = hs_mem_zalloc(NAME_BYTES);
	struct world world;

	(void)state;
	start(&world, false);
	route(&world, "a");
	world.quiet = true;
	for (char i = 0; i < TOPICS; i++) {
		name[0] = i;
		ask(&world, HS_OP_SUBSCRIBE, 0, "SUBSCRIBE", (struct hs_bytes){name, NAME_BYTES});
	}
	up(&world, "a");
	assert_int_equal(world.requests, 4);
	push(&world, "a", "message y nobody");
	assert_int_equal(world.requests, 8);
	hs_mem_free(&name);
	tick(&world, HS_SUBSCRIBER_CONFIRM_US_MAX);
	stop(&world);
}

static void test_as_many_channels_as_the_limit_says(void **state)
{
	struct world world;
	char name[32];

	(void)state;
	start(&world, false);
	route(&world, "a");
	subscribe(&world, 0, "SUBSCRIBE", "0");
	up(&world, "a");
	push(&world, "a", "subscribe 0");
	world.text.len = 0;
	world.quiet = true;
	for (int i = 1; i < HS_CHANNELS_MAX; i++) {
		snprintf(name, sizeof name, "%d", i);
		subscribe(&world, 0, "SUBSCRIBE", name);
		snprintf(name, sizeof name, "subscribe %d", i);
		push(&world, "a", name);
	}
	expect(&world, "");
	subscribe(&world, 0, "PSUBSCRIBE", "0");
	/* This channel is subscribed already, and needs no room. */
	subscribe(&world, 1, "SUBSCRIBE", "0");
	expect(&world, "done 0 -ERR too many subscriptions: at most 1048576 channels and patterns "
		       "in all\n");
	stop(&world);
}

static void test_as_many_bytes_of_names_as_the_limit_says(void **state)
{
	size_t size = HS_CHANNEL_NAMES_BYTES_MAX / 2;
	char *name = hs_mem_zalloc(size + 1);
	struct world world;

	(void)state;
	start(&world, false); /* no server is known: the requests wait */
	for (char i = 0; i < 2; i++) {
		name[0] = i;
		ask(&world, HS_OP_SUBSCRIBE, 0, "SUBSCRIBE", (struct hs_bytes){name, size});
	}
	subscribe(&world, 0, "SUBSCRIBE", "x");
	expect(&world, "done 0 -ERR too many subscriptions: names of at most 256 MiB in all\n");
	tick(&world, HS_SUBSCRIBER_CONFIRM_US_MAX);
	world.text.len = 0;
	subscribe(&world, 0, "SUBSCRIBE", "x");
	expect(&world, "");
	hs_mem_free(&name);
	stop(&world);
}

/* ---- key events (keyspace notifications) ---- */

/* Every master publishes the events of its own keys; messages of clients come from home only, once. */
static void test_key_events_of_all_masters(void **state)
{
	struct world world;

	(void)state;
	start(&world, true);
	route(&world, "a b");
	subscribe(&world, 0, "PSUBSCRIBE", "*");
	expect(&world, "open a\nopen b\n");
	up(&world, "a");
	up(&world, "b");
	expect(&world, "a> PSUBSCRIBE *\nb> PSUBSCRIBE *\n");
	push(&world, "a", "psubscribe *");
	push(&world, "b", "pmessage * __keyevent@0__:set early");
	expect(&world, ""); /* not confirmed yet: events of b would be missed */
	push(&world, "b", "psubscribe *");
	expect(&world, "done 0 +OK\n");
	push(&world, "a", "pmessage * news hello");
	push(&world, "b", "pmessage * news hello");
	push(&world, "a", "pmessage * __keyevent@0__:set x");
	push(&world, "b", "pmessage * __keyevent@0__:set y");
	push(&world, "b", "pmessage * __keyspace@0__:y set");
	expect(&world, "pattern * news hello\npattern * __keyevent@0__:set x\n"
		       "pattern * __keyevent@0__:set y\npattern * __keyspace@0__:y set\n");
	subscribe(&world, 0, "SUBSCRIBE", "__keyspace@0__:k");
	subscribe(&world, 0, "SUBSCRIBE", "__keys");
	subscribe(&world, 0, "PSUBSCRIBE", "__key[es]*");
	subscribe(&world, 0, "PSUBSCRIBE", "__keyspaces*");
	expect(&world, "a> SUBSCRIBE __keyspace@0__:k\nb> SUBSCRIBE __keyspace@0__:k\n"
		       "a> SUBSCRIBE __keys\na> PSUBSCRIBE __key[es]*\nb> PSUBSCRIBE __key[es]*\n"
		       "a> PSUBSCRIBE __keyspaces*\n");
	stop(&world);
}

static void test_key_events_of_masters_that_come_and_go(void **state)
{
	struct world world;

	(void)state;
	start(&world, true);
	route(&world, "a b");
	subscribe(&world, 0, "PSUBSCRIBE", "__key*");
	up(&world, "a");
	up(&world, "b");
	push(&world, "a", "psubscribe __key*");
	push(&world, "b", "psubscribe __key*");
	expect(&world, "open a\nopen b\na> PSUBSCRIBE __key*\nb> PSUBSCRIBE __key*\ndone 0 +OK\n");
	route(&world, "a b c"); /* a master joins */
	up(&world, "c");
	push(&world, "c", "psubscribe __key*");
	push(&world, "c", "pmessage __key* __keyevent@0__:del z");
	expect(&world, "open c\nc> PSUBSCRIBE __key*\npattern __key* __keyevent@0__:del z\n");
	route(&world, "a c"); /* a master leaves */
	expect(&world, "close b\n");
	down(&world, "c"); /* a connection is lost and comes back */
	tick(&world, HS_SUBSCRIBER_OPEN_US_MAX);
	up(&world, "c");
	push(&world, "c", "psubscribe __key*");
	push(&world, "c", "pmessage __key* __keyevent@0__:del again");
	expect(&world, "open c\na> PING\nc> PSUBSCRIBE __key*\n"
		       "pattern __key* __keyevent@0__:del again\n");
	stop(&world);
}

/* Home moves to a connection that has subscribed for key events, and back: each message arrives, and arrives
 * once. */
static void test_key_events_while_home_moves(void **state)
{
	struct world world;

	(void)state;
	start(&world, true);
	route(&world, "a b");
	subscribe(&world, 0, "PSUBSCRIBE", "*");
	up(&world, "a");
	up(&world, "b");
	push(&world, "a", "psubscribe *");
	push(&world, "b", "psubscribe *");
	world.text.len = 0;
	route_first(&world, "a b", 1); /* partition 0, and so home, moves to b */
	expect(&world, "b> PUNSUBSCRIBE *\nb> PSUBSCRIBE *\n");
	push(&world, "b", "punsubscribe *");
	push(&world, "a", "pmessage * news 1");
	push(&world, "b", "psubscribe *");
	expect(&world, "pattern * news 1\na> PUNSUBSCRIBE *\na> PSUBSCRIBE *\n");
	push(&world, "a", "punsubscribe *");
	push(&world, "a", "psubscribe *");
	push(&world, "a", "pmessage * news 2");
	push(&world, "b", "pmessage * news 2");
	push(&world, "a", "pmessage * __keyevent@0__:set x");
	push(&world, "b", "pmessage * __keyevent@0__:set y");
	expect(&world, "pattern * news 2\npattern * __keyevent@0__:set x\n"
		       "pattern * __keyevent@0__:set y\n");
	unsubscribe(&world, 0, "PSUBSCRIBE", "*");
	expect(&world, "a> PUNSUBSCRIBE *\nb> PUNSUBSCRIBE *\n");
	stop(&world);
}

/* SUBSCRIBE does not wait for a master that cannot be reached. */
static void test_key_events_without_a_master(void **state)
{
	struct world world;

	(void)state;
	start(&world, true);
	route(&world, "a b");
	subscribe(&world, 0, "PSUBSCRIBE", "*");
	up(&world, "a");
	push(&world, "a", "psubscribe *");
	expect(&world, "open a\nopen b\na> PSUBSCRIBE *\n");
	down(&world, "b");
	tick(&world, 10000);
	expect(&world, "done 0 +OK\n");
	tick(&world, 2 * HS_SUBSCRIBER_OPEN_US_MIN);
	up(&world, "b");
	push(&world, "b", "psubscribe *");
	push(&world, "b", "pmessage * __keyevent@0__:set y");
	expect(&world, "open b\nb> PSUBSCRIBE *\npattern * __keyevent@0__:set y\n");
	stop(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_key_events_of_all_masters),
		cmocka_unit_test(test_key_events_of_masters_that_come_and_go),
		cmocka_unit_test(test_key_events_while_home_moves),
		cmocka_unit_test(test_key_events_without_a_master),
		cmocka_unit_test(test_subscribed_once_for_all_workers),
		cmocka_unit_test(test_messages_in_pieces),
		cmocka_unit_test(test_one_server_has_everything),
		cmocka_unit_test(test_a_lost_connection_is_opened_again),
		cmocka_unit_test(test_a_recovered_connection_resets_the_backoff),
		cmocka_unit_test(test_a_silent_connection_is_pinged),
		cmocka_unit_test(test_home_is_another_while_partition_0_is_away),
		cmocka_unit_test(test_the_first_topic_waits_for_home),
		cmocka_unit_test(test_home_moves_when_its_node_is_not_listed_any_more),
		cmocka_unit_test(test_home_moves_to_a_connected_server),
		cmocka_unit_test(test_a_worker_whose_listen_failed_does_not_count),
		cmocka_unit_test(test_listen_fails_when_it_is_refused_or_late),
		cmocka_unit_test(test_a_shard_channel_follows_the_routes),
		cmocka_unit_test(test_a_shard_channel_that_the_server_dropped),
		cmocka_unit_test(test_the_refusal_of_an_answer_that_came_already),
		cmocka_unit_test(test_a_shard_channel_without_an_owner),
		cmocka_unit_test(test_pushes_before_the_confirmation),
		cmocka_unit_test(test_malformed_replies_end_the_connection),
		cmocka_unit_test(test_the_answer_to_another_request),
		cmocka_unit_test(test_a_message_beyond_the_limit),
		cmocka_unit_test(test_subscriptions_go_out_in_portions),
		cmocka_unit_test(test_long_names_go_out_in_portions),
		cmocka_unit_test(test_as_many_channels_as_the_limit_says),
		cmocka_unit_test(test_as_many_bytes_of_names_as_the_limit_says),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
