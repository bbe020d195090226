/* Goal: publish and subscribe as clients see it, with the embedded engine: delivery, shape and order of messages,
 * PUBLISH's reply, the commands that a subscriber may send, and the limits.
 *
 * Method: scripts against the simulated world with two workers. Replies were taken from redis-server 7.0. */
#include "push/push.h"
#include "tests/lib/script.h"

#include "base/mem.h"
#include "core/state.h"

enum { FOO_PARTITION = 2 };

#define SUBSCRIBED(name, len, count)                                                               \
	"*3\r\n$9\r\nsubscribe\r\n$" #len "\r\n" name "\r\n:" #count "\r\n"
#define UNSUBSCRIBED(name, len, count)                                                             \
	"*3\r\n$11\r\nunsubscribe\r\n$" #len "\r\n" name "\r\n:" #count "\r\n"
#define PSUBSCRIBED(name, len, count)                                                              \
	"*3\r\n$10\r\npsubscribe\r\n$" #len "\r\n" name "\r\n:" #count "\r\n"
#define SSUBSCRIBED(name, len, count)                                                              \
	"*3\r\n$10\r\nssubscribe\r\n$" #len "\r\n" name "\r\n:" #count "\r\n"
#define MESSAGE(text) "*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$1\r\n" text "\r\n"
#define MESSAGE3(text) ">3\r\n$7\r\nmessage\r\n$1\r\na\r\n$1\r\n" text "\r\n"
#define PMESSAGE(text) "*4\r\n$8\r\npmessage\r\n$2\r\na*\r\n$1\r\na\r\n$1\r\n" text "\r\n"
#define SMESSAGE(text) "*3\r\n$8\r\nsmessage\r\n$1\r\na\r\n$1\r\n" text "\r\n"

static struct hs_sim_world *open_world(void)
{
	struct hs_sim_world_options options = hs_sim_world_defaults(1);

	options.workers = 2;
	return hs_sim_world_create(&options);
}

/* At the end every client unsubscribes, and no topic or subscription is left. */
static void close_world(struct hs_sim_world **world)
{
	for (struct hs_sim_client *client = (*world)->clients; client; client = client->next)
		hs_sim_client_disconnect(client);
	hs_sim_world_settle(*world);
	for (uint32_t i = 0; i < (*world)->options.workers; i++) {
		struct hs_core *core = hs_sim_world_core(*world, i);

		assert_int_equal(hs_push_of(core)->topics.named.count, 0);
		assert_int_equal(hs_push_of(core)->topics.name_bytes, 0);
		assert_int_equal(hs_counter_get(&hs_push_stats(core)->subscriptions), 0);
	}
	hs_sim_world_destroy(world);
}

static void ask(struct hs_sim_client *client, const char *words)
{
	hs_sim_client_request(client, words);
	hs_sim_world_settle(client->world);
}

static struct hs_sim_client *connect_resp3(struct hs_sim_world *world, uint32_t worker)
{
	struct hs_sim_client *client = hs_sim_client_connect(world, worker);

	ask(client, "HELLO 3");
	client->received.len = 0;
	return client;
}

static void test_messages_reach_subscribers_of_all_workers(void **state)
{
	struct hs_sim_world *world = open_world();
	struct hs_sim_client *here = hs_sim_client_connect(world, 0);
	struct hs_sim_client *there = hs_sim_client_connect(world, 1);
	struct hs_sim_client *modern = connect_resp3(world, 1);
	struct hs_sim_client *speaker = hs_sim_client_connect(world, 1);

	(void)state;
	ask(speaker, "PUBLISH a 0");
	received(speaker, ":0\r\n");
	ask(here, "SUBSCRIBE a b a");
	received(here, SUBSCRIBED("a", 1, 1) SUBSCRIBED("b", 1, 2) SUBSCRIBED("a", 1, 2));
	ask(there, "SUBSCRIBE a");
	ask(there, "PSUBSCRIBE a* x?");
	received(there, SUBSCRIBED("a", 1, 1) PSUBSCRIBED("a*", 2, 2) PSUBSCRIBED("x?", 2, 3));
	ask(modern, "SUBSCRIBE a");
	received(modern, ">3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n");
	ask(speaker, "PUBLISH a 1");
	ask(speaker, "PUBLISH b 2");
	ask(speaker, "SPUBLISH a 3");
	received(speaker, ":4\r\n:1\r\n:0\r\n");
	received(here, MESSAGE("1") "*3\r\n$7\r\nmessage\r\n$1\r\nb\r\n$1\r\n2\r\n");
	received(there, MESSAGE("1") PMESSAGE("1"));
	received(modern, MESSAGE3("1"));
	assert_int_equal(hs_counter_get(&hs_push_stats(hs_sim_world_core(world, 1))->messages), 3);
	assert_int_equal(hs_counter_get(&hs_push_stats(hs_sim_world_core(world, 1))->subscriptions),
			 4);
	close_world(&world);
}

static void test_shard_channels_are_apart(void **state)
{
	struct hs_sim_world *world = open_world();
	struct hs_sim_client *client = hs_sim_client_connect(world, 0);
	struct hs_sim_client *speaker = hs_sim_client_connect(world, 1);

	(void)state;
	ask(client, "SUBSCRIBE a");
	ask(client, "SSUBSCRIBE a");
	ask(client, "SSUBSCRIBE a b");
	received(client,
		 SUBSCRIBED("a", 1, 1) SSUBSCRIBED(
			 "a", 1, 1) "-CROSSSLOT Keys in request don't hash to the same slot\r\n");
	ask(speaker, "SPUBLISH a s");
	ask(speaker, "PUBLISH a m");
	received(speaker, ":1\r\n:1\r\n");
	received(client, SMESSAGE("s") MESSAGE("m"));
	ask(client, "SUNSUBSCRIBE");
	received(client, "*3\r\n$12\r\nsunsubscribe\r\n$1\r\na\r\n:0\r\n");
	ask(client, "GET x"); /* refused: a RESP2 client that is subscribed to a channel */
	assert_memory_equal(client->received.data, "-ERR Can't execute 'get': only (P|S)", 36);
	client->received.len = 0;
	close_world(&world);
}

static void test_unsubscribing(void **state)
{
	struct hs_sim_world *world = open_world();
	struct hs_sim_client *client = hs_sim_client_connect(world, 0);
	struct hs_sim_client *speaker = hs_sim_client_connect(world, 0);

	(void)state;
	ask(client, "UNSUBSCRIBE");
	ask(client, "PUNSUBSCRIBE x");
	received(client, "*3\r\n$11\r\nunsubscribe\r\n$-1\r\n:0\r\n"
			 "*3\r\n$12\r\npunsubscribe\r\n$1\r\nx\r\n:0\r\n");
	ask(client, "SUBSCRIBE a b c");
	client->received.len = 0;
	ask(client, "UNSUBSCRIBE x a");
	received(client, UNSUBSCRIBED("x", 1, 3) UNSUBSCRIBED("a", 1, 2));
	ask(speaker, "PUBLISH a 1");
	ask(client, "UNSUBSCRIBE");
	received(client, UNSUBSCRIBED("b", 1, 1) UNSUBSCRIBED("c", 1, 0));
	ask(client, "PING");
	received(client, "+PONG\r\n");
	ask(client, "SUBSCRIBE a");
	ask(client, "RESET");
	ask(client, "PING");
	received(client, SUBSCRIBED("a", 1, 1) "+RESET\r\n+PONG\r\n");
	ask(speaker, "PUBLISH a 2");
	ask(client, "SUBSCRIBE a");
	ask(client, "QUIT");
	received(client, SUBSCRIBED("a", 1, 1) "+OK\r\n");
	assert_null(client->session);
	ask(speaker, "PUBLISH a 3");
	received(speaker, ":0\r\n:0\r\n:0\r\n");
	close_world(&world);
}

static void test_commands_a_subscriber_may_send(void **state)
{
	struct hs_sim_world *world = open_world();
	struct hs_sim_client *client = hs_sim_client_connect(world, 0);
	struct hs_sim_client *modern = connect_resp3(world, 0);

	(void)state;
	ask(client, "SUBSCRIBE a");
	ask(client, "PING");
	ask(client, "PING x");
	ask(client, "PING x y");
	ask(client, "HELLO 3");
	ask(client, "CLIENT ID");
	ask(client, "EXEC");
	received(
		client,
		SUBSCRIBED(
			"a", 1,
			1) "*2\r\n$4\r\npong\r\n$0\r\n\r\n*2\r\n$4\r\npong\r\n$1\r\nx\r\n"
			   "-ERR wrong number of arguments for 'ping' command\r\n"
			   "-ERR Can't execute 'hello': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / "
			   "PING / "
			   "QUIT / RESET are allowed in this context\r\n"
			   "-ERR Can't execute 'client|id': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE "
			   "/ "
			   "PING / QUIT / RESET are allowed in this context\r\n"
			   "-EXECABORT Transaction discarded because of: Can't execute 'exec': "
			   "only "
			   "(P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in "
			   "this "
			   "context\r\n");
	ask(modern, "SUBSCRIBE a");
	modern->received.len = 0;
	ask(modern, "PING");
	ask(modern, "GET nope");
	ask(modern, "PUBLISH a x");
	/* The publishing client is subscribed: it gets the message before the reply of PUBLISH, the number 2. */
	received(modern, "+PONG\r\n_\r\n" MESSAGE3("x") ":2\r\n");
	close_world(&world);
}

/* Confirmations and messages are push messages, not replies: CLIENT REPLY OFF does not suppress them. */
static void test_client_reply_off(void **state)
{
	struct hs_sim_world *world = open_world();
	struct hs_sim_client *client = hs_sim_client_connect(world, 0);
	struct hs_sim_client *speaker = hs_sim_client_connect(world, 1);

	(void)state;
	ask(client, "CLIENT REPLY OFF");
	ask(client, "SUBSCRIBE a");
	ask(client, "PING");
	ask(speaker, "PUBLISH a x");
	ask(client, "UNSUBSCRIBE a");
	received(client, SUBSCRIBED("a", 1, 1) MESSAGE("x") UNSUBSCRIBED("a", 1, 0));
	ask(client, "CLIENT REPLY ON");
	ask(client, "CLIENT REPLY SKIP");
	ask(client, "SUBSCRIBE a");
	ask(client, "PING");
	received(client, "+OK\r\n" SUBSCRIBED("a", 1, 1) "*2\r\n$4\r\npong\r\n$0\r\n\r\n");
	close_world(&world);
}

static void test_client_list_and_kill(void **state)
{
	struct hs_sim_world *world = open_world();
	struct hs_sim_client *client = hs_sim_client_connect(world, 0);
	struct hs_sim_client *other = hs_sim_client_connect(world, 1);
	const char *text;

	(void)state;
	ask(client, "SUBSCRIBE a b");
	ask(client, "PSUBSCRIBE p");
	ask(client, "SSUBSCRIBE s");
	ask(other, "CLIENT LIST TYPE pubsub");
	hs_buf_append(&other->received, "", 1);
	text = strstr(other->received.data, "id=");
	assert_non_null(strstr(text, " flags=P db=0 sub=2 psub=1 ssub=1 multi=-1 "));
	assert_null(strstr(text + 3, "\nid=")); /* CLIENT LIST has a single line */
	other->received.len = 0;
	ask(other, "CLIENT LIST TYPE normal");
	hs_buf_append(&other->received, "", 1);
	assert_non_null(strstr(other->received.data, " flags=N db=0 sub=0 psub=0 ssub=0 "));
	assert_null(strstr(other->received.data, "flags=P"));
	other->received.len = 0;
	ask(other, "CLIENT KILL TYPE replica");
	ask(other, "CLIENT KILL TYPE pubsub");
	received(other, ":0\r\n:1\r\n");
	assert_true(client->cut);
	close_world(&world);
}

static void test_pubsub_looks_at_all_workers(void **state)
{
	struct hs_sim_world *world = open_world();
	struct hs_sim_client *one = hs_sim_client_connect(world, 0);
	struct hs_sim_client *two = hs_sim_client_connect(world, 1);
	struct hs_sim_client *asks = hs_sim_client_connect(world, 0);

	(void)state;
	ask(asks, "PUBSUB CHANNELS");
	ask(asks, "PUBSUB NUMSUB");
	ask(asks, "PUBSUB NUMPAT");
	received(asks, "*0\r\n*0\r\n:0\r\n");
	ask(one, "SUBSCRIBE news {n}1");
	ask(one, "PSUBSCRIBE p* q*");
	ask(two, "SUBSCRIBE news x");
	ask(two, "PSUBSCRIBE p*");
	ask(two, "SSUBSCRIBE shard");
	ask(asks, "PUBSUB CHANNELS");
	received(asks, "*3\r\n$4\r\nnews\r\n$1\r\nx\r\n$4\r\n{n}1\r\n");
	ask(asks, "PUBSUB CHANNELS n*");
	received(asks, "*1\r\n$4\r\nnews\r\n");
	ask(asks, "PUBSUB NUMSUB news nope x");
	received(asks, "*6\r\n$4\r\nnews\r\n:2\r\n$4\r\nnope\r\n:0\r\n$1\r\nx\r\n:1\r\n");
	ask(asks, "PUBSUB NUMPAT");
	ask(asks, "PUBSUB SHARDCHANNELS");
	ask(asks, "PUBSUB SHARDNUMSUB shard news");
	received(asks,
		 ":2\r\n*1\r\n$5\r\nshard\r\n*4\r\n$5\r\nshard\r\n:1\r\n$4\r\nnews\r\n:0\r\n");
	ask(asks, "PUBSUB Channels a b");
	received(asks, "-ERR unknown subcommand or wrong number of arguments for 'Channels'. Try "
		       "PUBSUB HELP.\r\n");
	close_world(&world);
}

/* ---- order ---- */

/* A client that gets the published message can read the writes that the publisher sent before it. */
static void test_a_message_waits_for_the_writes_before_it(void **state)
{
	struct hs_sim_world *world = open_world();
	struct hs_sim_client *client = hs_sim_client_connect(world, 0);
	struct hs_sim_client *speaker = hs_sim_client_connect(world, 1);

	(void)state;
	ask(client, "SUBSCRIBE a");
	client->received.len = 0;
	hs_sim_engine_stall(world->engine, FOO_PARTITION);
	hs_sim_client_request(speaker, "SET foo 1");
	hs_sim_client_request(speaker, "PUBLISH a 1");
	hs_sim_client_request(speaker, "PUBLISH a 2");
	hs_sim_client_request(speaker, "GET bar");
	hs_sim_world_settle(world);
	silent(client);
	silent(speaker);
	hs_sim_engine_go_on(world->engine, FOO_PARTITION);
	hs_sim_world_settle(world);
	received(client, MESSAGE("1") MESSAGE("2"));
	received(speaker, "+OK\r\n:1\r\n:1\r\n$-1\r\n");
	close_world(&world);
}

static void test_a_pause_of_writes_also_pauses_messages(void **state)
{
	struct hs_sim_world *world = open_world();
	struct hs_sim_client *client = hs_sim_client_connect(world, 0);
	struct hs_sim_client *speaker = hs_sim_client_connect(world, 1);

	(void)state;
	ask(client, "SUBSCRIBE a");
	client->received.len = 0;
	ask(speaker, "CLIENT PAUSE 1000000 WRITE");
	ask(speaker, "PUBSUB NUMSUB a");
	received(speaker, "+OK\r\n*2\r\n$1\r\na\r\n:1\r\n");
	hs_sim_client_request(speaker, "PUBLISH a x");
	hs_sim_world_pass(world, 1000);
	silent(client);
	ask(hs_sim_client_connect(world, 0), "CLIENT UNPAUSE");
	received(client, MESSAGE("x"));
	received(speaker, ":1\r\n");
	close_world(&world);
}

/* The confirmation of SUBSCRIBE comes after the replies to earlier requests, and no message comes before the
 * confirmation. */
static void test_subscribe_waits_for_requests_in_flight(void **state)
{
	struct hs_sim_world *world = open_world();
	struct hs_sim_client *client = connect_resp3(world, 0);
	struct hs_sim_client *speaker = hs_sim_client_connect(world, 0);

	(void)state;
	hs_sim_engine_stall(world->engine, FOO_PARTITION);
	hs_sim_client_request(client, "SET foo 1");
	hs_sim_client_request(client, "SUBSCRIBE a");
	/* The publisher is subscribed, too, and gets this message. */
	hs_sim_client_request(client, "PUBLISH a x");
	hs_sim_world_settle(world);
	ask(speaker, "PUBLISH a y");
	received(speaker, ":0\r\n");
	silent(client);
	hs_sim_engine_go_on(world->engine, FOO_PARTITION);
	hs_sim_world_settle(world);
	received(client,
		 "+OK\r\n>3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n" MESSAGE3("x") ":1\r\n");
	/* HELLO 2 changes the protocol only after the replies to earlier requests, which are still RESP3. */
	hs_sim_engine_stall(world->engine, FOO_PARTITION);
	hs_sim_client_request(client, "GETDEL foo");
	hs_sim_client_request(client, "HELLO 2");
	ask(speaker, "PUBLISH a z");
	received(client, MESSAGE3("z"));
	hs_sim_engine_go_on(world->engine, FOO_PARTITION);
	hs_sim_world_settle(world);
	assert_memory_equal(client->received.data, "$1\r\n1\r\n*14\r\n", 12);
	client->received.len = 0;
	ask(speaker, "PUBLISH a z");
	received(client, MESSAGE("z"));
	close_world(&world);
}

/* ---- transactions ---- */

static void test_publish_in_a_transaction(void **state)
{
	struct hs_sim_world *world = open_world();
	struct hs_sim_client *client = hs_sim_client_connect(world, 0);
	struct hs_sim_client *speaker = hs_sim_client_connect(world, 1);

	(void)state;
	ask(client, "SUBSCRIBE a");
	client->received.len = 0;
	hs_sim_engine_stall(world->engine, FOO_PARTITION);
	hs_sim_client_request(speaker, "MULTI");
	hs_sim_client_request(speaker, "PUBLISH a 1");
	hs_sim_client_request(speaker, "SET foo 1");
	hs_sim_client_request(speaker, "PUBLISH b 0");
	hs_sim_client_request(speaker, "PUBLISH a 2");
	hs_sim_client_request(speaker, "PUBSUB NUMSUB a");
	hs_sim_client_request(speaker, "EXEC");
	hs_sim_client_request(speaker, "PUBLISH a 3");
	hs_sim_world_settle(world);
	silent(client); /* EXEC waits: the transaction has not run yet */
	hs_sim_engine_go_on(world->engine, FOO_PARTITION);
	hs_sim_world_settle(world);
	received(client, MESSAGE("1") MESSAGE("2") MESSAGE("3"));
	received(speaker, "+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n"
			  "*5\r\n:1\r\n+OK\r\n:0\r\n:1\r\n*2\r\n$1\r\na\r\n:1\r\n:1\r\n");
	close_world(&world);
}

/* A message from another client arrives between the commit and the last message of the transaction: the worker
 * delivers it after the messages of the transaction. */
static void test_messages_after_a_transaction_come_after_its_own(void **state)
{
	bool over = false;

	(void)state;
	for (int steps = 0; !over; steps++) {
		struct hs_sim_world *world = open_world();
		struct hs_sim_client *client = hs_sim_client_connect(world, 0);
		struct hs_sim_client *speaker = hs_sim_client_connect(world, 1);

		ask(client, "SUBSCRIBE a");
		ask(speaker, "MULTI");
		ask(speaker, "PUBLISH a 1");
		ask(speaker, "PUBLISH a 2");
		client->received.len = 0;
		hs_sim_client_request(speaker, "EXEC");
		for (int i = 0; i < steps && !over; i++)
			over = !hs_sim_world_step(world);
		hs_sim_client_request(speaker, "PUBLISH a 3");
		hs_sim_world_settle(world);
		received(client, MESSAGE("1") MESSAGE("2") MESSAGE("3"));
		close_world(&world);
	}
}

static void test_an_aborted_transaction_publishes_nothing(void **state)
{
	struct hs_sim_world *world = open_world();
	struct hs_sim_client *client = hs_sim_client_connect(world, 0);
	struct hs_sim_client *speaker = hs_sim_client_connect(world, 1);

	(void)state;
	ask(client, "SUBSCRIBE a");
	client->received.len = 0;
	ask(speaker, "WATCH foo");
	ask(speaker, "MULTI");
	ask(speaker, "PUBLISH a 1");
	ask(speaker, "SUBSCRIBE a");
	ask(hs_sim_client_connect(world, 0), "SET foo 1");
	speaker->received.len = 0;
	ask(speaker, "EXEC");
	ask(speaker, "PING");
	received(speaker, "*-1\r\n+PONG\r\n");
	silent(client);
	ask(speaker, "MULTI");
	ask(speaker, "SUBSCRIBE a");
	ask(speaker, "PUBLISH");
	ask(speaker, "EXEC");
	ask(speaker, "PING");
	received(speaker,
		 "+OK\r\n+QUEUED\r\n-ERR wrong number of arguments for 'publish' command\r\n"
		 "-EXECABORT Transaction discarded because of previous errors.\r\n"
		 "+PONG\r\n");
	close_world(&world);
}

/* As in Redis, the reply of EXEC contains a confirmation for each channel and the messages of the transaction;
 * messages of other clients come after the reply. */
static void test_subscribe_in_a_transaction(void **state)
{
	struct hs_sim_world *world = open_world();
	struct hs_sim_client *client = hs_sim_client_connect(world, 0);
	struct hs_sim_client *speaker = hs_sim_client_connect(world, 1);

	(void)state;
	ask(client, "MULTI");
	ask(client, "PING");
	ask(client, "SET foo 1");
	ask(client, "SUBSCRIBE a b");
	ask(client, "PUBLISH a x");
	ask(client, "GET foo");
	ask(client, "SSUBSCRIBE {foo}q");
	ask(client, "UNSUBSCRIBE b");
	ask(client, "PING");
	client->received.len = 0;
	ask(client, "EXEC");
	received(client, "*8\r\n+PONG\r\n+OK\r\n" SUBSCRIBED("a", 1, 1) SUBSCRIBED("b", 1, 2)
				 MESSAGE("x") ":1\r\n$1\r\n1\r\n"
					      "-ERR SSUBSCRIBE isn't allowed for a DENY BLOCKING "
					      "client\r\n" UNSUBSCRIBED(
						      "b", 1, 1) "*2\r\n$4\r\npong\r\n$0\r\n\r\n");
	ask(speaker, "PUBLISH a y");
	received(client, MESSAGE("y"));
	close_world(&world);
}

static void test_messages_of_other_clients_come_after_the_transaction(void **state)
{
	struct hs_sim_world_options options = hs_sim_world_defaults(1);
	struct hs_sim_world *world;
	struct hs_sim_client *client, *speaker;

	(void)state;
	options.workers = 2;
	options.peer_us_max = 1000; /* a message between workers takes up to a millisecond */
	world = hs_sim_world_create(&options);
	client = hs_sim_client_connect(world, 0);
	speaker = hs_sim_client_connect(world, 0);
	ask(client, "MULTI");
	ask(client, "SUBSCRIBE a");
	ask(client, "PUBLISH b x");
	client->received.len = 0;
	hs_sim_client_request(client, "EXEC");
	/* Run the world until the client is subscribed; its EXEC then waits for the other worker to count the
	 * receivers. */
	while (hs_push_of(hs_sim_world_core(world, 0))->topics.named.count == 0)
		assert_true(hs_sim_world_step(world));
	silent(client);
	hs_sim_client_request(speaker, "PUBLISH a y");
	hs_sim_world_settle(world);
	received(client, "*2\r\n" SUBSCRIBED("a", 1, 1) ":0\r\n" MESSAGE("y"));
	received(speaker, ":1\r\n");
	close_world(&world);
}

static void test_a_disconnected_client_still_publishes(void **state)
{
	struct hs_sim_world *world = open_world();
	struct hs_sim_client *client = hs_sim_client_connect(world, 0);
	struct hs_sim_client *speaker = hs_sim_client_connect(world, 1);

	(void)state;
	ask(client, "SUBSCRIBE a");
	client->received.len = 0;
	hs_sim_client_request(speaker, "MULTI");
	hs_sim_client_request(speaker, "SET foo 1");
	hs_sim_client_request(speaker, "SUBSCRIBE a");
	hs_sim_client_request(speaker, "PUBLISH a 1");
	hs_sim_client_request(speaker, "PING");
	hs_sim_client_request(speaker, "EXEC");
	hs_sim_client_disconnect(speaker);
	hs_sim_world_settle(world);
	received(client, MESSAGE("1"));
	close_world(&world);
}

/* ---- limits ---- */

static void test_a_slow_subscriber_is_disconnected(void **state)
{
	struct hs_sim_world_options options = hs_sim_world_defaults(1);
	struct hs_sim_world *world;
	struct hs_sim_client *reading_paused, *client, *speaker;
	struct hs_buf text = {0};

	(void)state;
	options.core.output_bytes_max = 10000;
	world = hs_sim_world_create(&options);
	reading_paused = hs_sim_client_connect(world, 0);
	client = hs_sim_client_connect(world, 0);
	speaker = hs_sim_client_connect(world, 0);
	ask(reading_paused, "SUBSCRIBE a");
	ask(client, "SUBSCRIBE a");
	hs_sim_client_pause_reading(reading_paused, true);
	hs_buf_printf(&text, "PUBLISH a %03000d", 1);
	for (int i = 0; i < 3; i++)
		ask(speaker, text.data);
	assert_non_null(reading_paused->session); /* three messages fit into the output limit */
	ask(speaker, text.data);
	assert_null(reading_paused->session);
	assert_true(reading_paused->cut);
	/* The fourth message did not reach the disconnected client. */
	received(speaker, ":2\r\n:2\r\n:2\r\n:1\r\n");
	assert_int_equal(hs_counter_get(&hs_sim_world_core(world, 0)->stats.cut_output), 1);
	assert_non_null(client->session);
	/* A message larger than the limit is delivered if no other message waits in the output. */
	client->received.len = 0;
	text.len = 0;
	hs_buf_printf(&text, "PUBLISH a %030000d", 1);
	ask(speaker, text.data);
	received(speaker, ":1\r\n");
	assert_true(client->received.len > 30000);
	client->received.len = 0;
	hs_buf_deinit(&text);
	close_world(&world);
}

/* The client subscribes to `count` channels with names of `len` bytes, numbered from `first`. The test passes
 * the commands to the core in one piece, because the small pieces of the simulated world would take long. */
static void subscribe_many(struct hs_sim_client *client, uint32_t first, uint32_t count, size_t len)
{
	struct hs_core *core = hs_sim_world_core(client->world, client->worker);
	struct hs_buf bytes = {0};

	hs_buf_printf(&bytes, "*%u\r\n$9\r\nSUBSCRIBE\r\n", count + 1);
	for (uint32_t i = 0; i < count; i++) {
		size_t at = len;
		char *name;

		hs_buf_printf(&bytes, "$%zu\r\n", len);
		name = hs_buf_reserve(&bytes, len);
		memset(name, '0', len);
		bytes.len += len;
		for (uint32_t number = first + i; number > 0; number /= 10)
			name[--at] = (char)('0' + number % 10);
		hs_buf_append(&bytes, "\r\n", 2);
	}
	hs_core_receive(core, client->session, client->world->now, bytes.data, bytes.len);
	hs_sim_client_pause_reading(client, false); /* the client reads all its replies */
	hs_buf_deinit(&bytes);
}

#define ENDS_WITH(client, text)                                                                    \
	((client)->received.len >= sizeof(text) - 1 &&                                             \
	 memcmp((client)->received.data + (client)->received.len - (sizeof(text) - 1), text,       \
		sizeof(text) - 1) == 0)

static void test_subscriptions_are_limited(void **state)
{
	struct hs_sim_world *world = open_world();
	struct hs_sim_client *clients[5];
	struct hs_core *core = hs_sim_world_core(world, 0);

	(void)state;
	for (int i = 0; i < 5; i++)
		clients[i] = hs_sim_client_connect(world, 0);
	for (int i = 0; i < 4; i++) {
		subscribe_many(clients[i], 0, HS_SESSION_SUBSCRIPTIONS_MAX, 8);
		assert_true(ENDS_WITH(clients[i], ":262144\r\n"));
		clients[i]->received.len = 0;
	}
	/* The client is subscribed to this channel already. */
	ask(clients[0], "SUBSCRIBE 00000000");
	assert_true(ENDS_WITH(clients[0], ":262144\r\n"));
	clients[0]->received.len = 0;
	ask(clients[0], "PSUBSCRIBE more");
	received(clients[0], "-ERR too many subscriptions: at most 262144 for one connection\r\n");
	ask(clients[4], "SUBSCRIBE 00000000");
	received(clients[4], "-ERR too many subscriptions: at most 1048576 for one worker\r\n");
	assert_int_equal(hs_push_of(core)->topics.named.count, HS_SESSION_SUBSCRIPTIONS_MAX);
	assert_int_equal(hs_push_of(core)->topics.pairs.count, HS_WORKER_SUBSCRIPTIONS_MAX);
	/* Only one subscription is left of the limit: the first channel of the command gets it, the second is
	 * refused. */
	ask(clients[3], "UNSUBSCRIBE 00000000");
	ask(clients[4], "SUBSCRIBE x y");
	received(clients[4],
		 SUBSCRIBED("x", 1,
			    1) "-ERR too many subscriptions: at most 1048576 for one worker\r\n");
	assert_int_equal(hs_counter_get(&core->stats.errors), 3);
	ask(clients[4], "PING");
	received(clients[4], "*2\r\n$4\r\npong\r\n$0\r\n\r\n");
	close_world(&world);
}

static void test_names_are_limited(void **state)
{
	enum { MANY = 8 };
	struct hs_sim_world *world = open_world();
	struct hs_sim_client *client = hs_sim_client_connect(world, 0);
	struct hs_core *core = hs_sim_world_core(world, 0);

	(void)state;
	for (uint32_t i = 0; i < MANY; i++) {
		client->received.len = 0;
		subscribe_many(client, i, 1, HS_WORKER_TOPIC_BYTES_MAX / MANY);
	}
	assert_true(ENDS_WITH(client, ":8\r\n"));
	assert_int_equal(hs_push_of(core)->topics.name_bytes, HS_WORKER_TOPIC_BYTES_MAX);
	hs_buf_deinit(&client->received);
	ask(client, "SUBSCRIBE x");
	received(client,
		 "-ERR too many subscriptions: at most 256 MiB of names for one worker\r\n");
	hs_sim_client_disconnect(client);
	assert_int_equal(hs_push_of(core)->topics.name_bytes, 0);
	close_world(&world);
}

static void test_an_idle_subscriber_stays_connected(void **state)
{
	struct hs_sim_world_options options = hs_sim_world_defaults(1);
	struct hs_sim_world *world;
	struct hs_sim_client *client, *idle;

	(void)state;
	options.core.idle_s_max = 10;
	world = hs_sim_world_create(&options);
	client = hs_sim_client_connect(world, 0);
	idle = hs_sim_client_connect(world, 0);
	ask(client, "SUBSCRIBE a");
	hs_sim_world_pass(world, 30000000);
	assert_null(idle->session);
	assert_non_null(client->session);
	ask(client, "UNSUBSCRIBE");
	hs_sim_world_pass(world, 30000000);
	assert_null(client->session);
	close_world(&world);
}

/* ---- channels do not count as hot keys ---- */

static void test_channels_are_not_heat(void **state)
{
	struct hs_sim_world *world = open_world();
	struct hs_sim_client *client = hs_sim_client_connect(world, 0);

	(void)state;
	ask(client, "SPUBLISH a x");
	ask(client, "PUBLISH a x");
	ask(client, "MULTI");
	ask(client, "SPUBLISH a x");
	ask(client, "EXEC");
	ask(client, "SSUBSCRIBE a");
	for (uint16_t id = 0; id < world->options.engine.partitions; id++) {
		struct hs_heat_partition partition = {0};

		hs_heat_read_partition(world->heats[0], id, &partition);
		assert_int_equal(partition.reads + partition.writes, 0);
		assert_int_equal(partition.inflight, 0);
	}
	close_world(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_messages_reach_subscribers_of_all_workers),
		cmocka_unit_test(test_shard_channels_are_apart),
		cmocka_unit_test(test_unsubscribing),
		cmocka_unit_test(test_commands_a_subscriber_may_send),
		cmocka_unit_test(test_client_reply_off),
		cmocka_unit_test(test_client_list_and_kill),
		cmocka_unit_test(test_pubsub_looks_at_all_workers),
		cmocka_unit_test(test_a_message_waits_for_the_writes_before_it),
		cmocka_unit_test(test_a_pause_of_writes_also_pauses_messages),
		cmocka_unit_test(test_subscribe_waits_for_requests_in_flight),
		cmocka_unit_test(test_publish_in_a_transaction),
		cmocka_unit_test(test_messages_after_a_transaction_come_after_its_own),
		cmocka_unit_test(test_an_aborted_transaction_publishes_nothing),
		cmocka_unit_test(test_subscribe_in_a_transaction),
		cmocka_unit_test(test_messages_of_other_clients_come_after_the_transaction),
		cmocka_unit_test(test_a_disconnected_client_still_publishes),
		cmocka_unit_test(test_a_slow_subscriber_is_disconnected),
		cmocka_unit_test(test_subscriptions_are_limited),
		cmocka_unit_test(test_names_are_limited),
		cmocka_unit_test(test_an_idle_subscriber_stays_connected),
		cmocka_unit_test(test_channels_are_not_heat),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
