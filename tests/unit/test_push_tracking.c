/* Goal: CLIENT TRACKING in the core: which reads are tracked, which clients are told of a change, and above all
 * the position of an invalidation among the replies of a client.
 *
 * Method: scripts against the simulated world. foo lives on partition 2, bar on partition 1, of four.
 * tests/integration/test_tracking.py compares commands and errors with Redis; sim/client_caches.c runs
 * thousands of schedules. */
#include "stages/stages.h"
#include "wire/compose.h"

#include "tests/lib/script.h"

#include "base/mem.h"
#include "core/state.h"
#include "push/tracking.h"
#include "wire/reply.h"

enum { FOO_PARTITION = 2, BAR_PARTITION = 1 };

#define TOLD(length, key) ">2\r\n$10\r\ninvalidate\r\n*1\r\n$" #length "\r\n" key "\r\n"
#define TOLD_FOO TOLD(3, "foo")
#define TOLD_BAR TOLD(3, "bar")
#define TOLD_ALL ">2\r\n$10\r\ninvalidate\r\n_\r\n"

static struct hs_sim_world *open_world(uint32_t workers, uint16_t partitions)
{
	struct hs_sim_world_options options = hs_sim_world_defaults(1);

	options.workers = workers;
	options.engine.partitions = partitions;
	return hs_sim_world_create(&options);
}

static struct hs_core_stats *stats(struct hs_sim_world *world)
{
	return hs_core_stats(hs_sim_world_core(world, 0));
}

static const struct hs_push_stats *push_stats(struct hs_sim_world *world)
{
	return hs_push_stats(hs_sim_world_core(world, 0));
}

/* Sends a command and runs the world until it is idle. */
static void ask(struct hs_sim_client *client, const char *words)
{
	hs_sim_client_request(client, words);
	hs_sim_world_settle(client->world);
}

static void forget(struct hs_sim_client *client)
{
	client->received.len = 0;
}

/* A RESP3 connection that has sent the command `words`. */
static struct hs_sim_client *tracking(struct hs_sim_world *world, uint32_t worker,
				      const char *words)
{
	struct hs_sim_client *client = hs_sim_client_connect(world, worker);

	ask(client, "HELLO 3");
	forget(client);
	ask(client, words);
	received(client, "+OK\r\n");
	return client;
}

static void test_a_read_key_is_invalidated_once(void **state)
{
	struct hs_sim_world *world = open_world(2, 4);
	struct hs_sim_client *reader = tracking(world, 0, "CLIENT TRACKING ON");
	struct hs_sim_client *writer = hs_sim_client_connect(world, 1);

	(void)state;
	ask(reader, "GET foo");
	received(reader, "_\r\n");
	ask(writer, "SET bar 1"); /* the reader has not read bar */
	silent(reader);
	ask(writer, "SET foo 1");
	received(reader, TOLD_FOO);
	ask(writer, "SET foo 2"); /* the reader has not read foo since the last invalidation */
	silent(reader);
	ask(reader, "MGET foo bar");
	received(reader, "*2\r\n$1\r\n2\r\n$1\r\n1\r\n");
	ask(writer, "DEL foo bar");
	assert_int_equal(reader->received.len, 2 * strlen(TOLD_FOO));
	forget(reader);
	ask(reader, "STRLEN foo");
	ask(reader, "SETNX foo 3"); /* the reader's own write: the invalidation follows the reply */
	received(reader, ":0\r\n:1\r\n" TOLD_FOO);
	ask(reader, "GETDEL foo"); /* a command that writes does not track its key */
	ask(writer, "SET foo 4");
	received(reader, "$1\r\n3\r\n");
	assert_int_equal(hs_counter_get(&push_stats(world)->tracking_messages), 4);
	assert_int_equal(hs_counter_get(&push_stats(world)->tracking_keys), 0);
	hs_sim_world_destroy(&world);
}

/* The most important case: the client gets the reply with the old value first, then the invalidation, in
 * whatever order the engine finishes. */
static void test_an_invalidation_stays_behind_replies_in_flight(void **state)
{
	struct hs_sim_world *world = open_world(1, 4);
	struct hs_sim_client *reader = tracking(world, 0, "CLIENT TRACKING ON");
	struct hs_sim_client *idle = tracking(world, 0, "CLIENT TRACKING ON");
	struct hs_sim_client *writer = hs_sim_client_connect(world, 0);

	(void)state;
	ask(idle, "GET bar");
	forget(idle);
	hs_sim_engine_stall(world->engine, FOO_PARTITION);
	hs_sim_client_request(reader, "SET foo 1"); /* waits for the stalled partition */
	/* Has its reply, which waits for the reply of SET foo. */
	hs_sim_client_request(reader, "GET bar");
	ask(writer, "SET bar 1");
	/* This client has no request in flight: the invalidation comes at once. */
	received(idle, TOLD_BAR);
	silent(reader);
	ask(reader, "ECHO x"); /* its reply comes after the invalidation */
	ask(reader, "GET bar");
	ask(writer, "SET bar 2"); /* the reader has read bar again: the change is reported again */
	silent(reader);
	hs_sim_engine_go_on(world->engine, FOO_PARTITION);
	hs_sim_world_settle(world);
	received(reader, "+OK\r\n_\r\n" TOLD_BAR "$1\r\nx\r\n$1\r\n1\r\n" TOLD_BAR);
	hs_sim_world_destroy(&world);
}

/* A read is tracked from the moment it is sent to the engine, before the engine has run it. */
static void test_a_read_in_flight_is_tracked(void **state)
{
	struct hs_sim_world_options options = hs_sim_world_defaults(1);
	struct hs_sim_world *world;
	struct hs_sim_client *reader;
	struct hs_core *core;

	(void)state;
	options.engine.reads_at_once = false;
	world = hs_sim_world_create(&options);
	reader = tracking(world, 0, "CLIENT TRACKING ON");
	core = hs_sim_world_core(world, 0);
	hs_sim_client_request(reader, "GET foo"); /* the engine has not run GET yet */
	hs_core_event(core, world->now,
		      &(struct hs_event){
			      .kind = HS_EVENT_CHANGED, .keys = &HS_LIT("foo"), .keys_count = 1});
	silent(reader);
	hs_sim_world_settle(world);
	received(reader, "_\r\n" TOLD_FOO);
	hs_sim_client_request(reader, "MULTI");
	hs_sim_client_request(reader, "GET foo");
	hs_core_event(core, world->now,
		      &(struct hs_event){
			      .kind = HS_EVENT_CHANGED, .keys = &HS_LIT("foo"), .keys_count = 1});
	hs_sim_client_request(reader, "EXEC");
	hs_core_event(core, world->now,
		      &(struct hs_event){
			      .kind = HS_EVENT_CHANGED, .keys = &HS_LIT("foo"), .keys_count = 1});
	hs_sim_world_settle(world);
	received(reader, "+OK\r\n+QUEUED\r\n*1\r\n_\r\n" TOLD_FOO);
	hs_sim_world_destroy(&world);
}

/* A read after CLIENT TRACKING ON waits until the engine has agreed to report changes. */
static void test_on_waits_for_the_engine(void **state)
{
	struct hs_sim_world *world = open_world(1, 4);
	struct hs_sim_client *first = hs_sim_client_connect(world, 0);
	struct hs_sim_client *second = hs_sim_client_connect(world, 0);
	struct hs_sim_client *gone = hs_sim_client_connect(world, 0);

	(void)state;
	ask(first, "HELLO 3");
	ask(second, "HELLO 3");
	forget(first);
	forget(second);
	/* The request to report changes waits at this partition. */
	hs_sim_engine_stall(world->engine, 0);
	ask(first, "SET foo 1");
	received(first, "+OK\r\n");
	ask(first, "CLIENT TRACKING ON");
	ask(first, "GET foo");
	ask(second, "CLIENT TRACKING ON BCAST");
	ask(gone, "CLIENT TRACKING ON");
	silent(first);
	silent(second);
	assert_int_equal(hs_sim_store_trackers(world->store), 0);
	hs_sim_client_disconnect(gone); /* the client disconnects while CLIENT TRACKING ON waits */
	hs_sim_engine_go_on(world->engine, 0);
	hs_sim_world_settle(world);
	received(first, "+OK\r\n$1\r\n1\r\n");
	received(second, "+OK\r\n");
	assert_int_equal(hs_sim_store_trackers(world->store), 1);
	assert_int_equal(hs_counter_get(&push_stats(world)->tracking_clients), 2);
	hs_sim_world_destroy(&world);
}

/* The engine reports changes as long as any connection of any worker tracks, and stops with the last one. */
static void test_the_engine_tracks_from_first_to_last_client(void **state)
{
	struct hs_sim_world *world = open_world(2, 4);
	struct hs_sim_client *a = tracking(world, 0, "CLIENT TRACKING ON");
	struct hs_sim_client *b = tracking(world, 0, "CLIENT TRACKING ON BCAST PREFIX x PREFIX y");
	struct hs_sim_client *c = tracking(world, 1, "CLIENT TRACKING ON NOLOOP");

	(void)state;
	assert_int_equal(hs_sim_store_trackers(world->store), 2);
	assert_int_equal(hs_counter_get(&push_stats(world)->tracking_prefixes), 2);
	ask(a, "GET foo");
	ask(a, "CLIENT TRACKING OFF");
	ask(a, "CLIENT TRACKING OFF");
	received(a, "_\r\n+OK\r\n+OK\r\n");
	assert_int_equal(hs_sim_store_trackers(world->store), 2);
	assert_int_equal(hs_counter_get(&push_stats(world)->tracking_keys),
			 1); /* the entry of foo remains, without tracking clients */
	ask(b, "SET foo 1");
	received(b, "+OK\r\n");
	silent(a);
	ask(b, "RESET");
	assert_int_equal(hs_sim_store_trackers(world->store), 1);
	assert_int_equal(hs_counter_get(&push_stats(world)->tracking_prefixes), 0);
	hs_sim_client_disconnect(c);
	hs_sim_world_settle(world);
	assert_int_equal(hs_sim_store_trackers(world->store), 0);
	ask(a, "CLIENT TRACKING ON");
	/* Changes the options; the client is still counted once. */
	ask(a, "CLIENT TRACKING ON NOLOOP");
	received(a, "+OK\r\n+OK\r\n");
	assert_int_equal(hs_counter_get(&push_stats(world)->tracking_clients), 1);
	assert_int_equal(hs_sim_store_trackers(world->store), 1);
	/* The client turns tracking off and at once on again. */
	hs_sim_client_request(a, "CLIENT TRACKING OFF");
	hs_sim_client_request(a, "CLIENT TRACKING ON");
	ask(a, "GET foo");
	ask(b, "SET foo 2");
	received(a, "+OK\r\n+OK\r\n$1\r\n1\r\n" TOLD_FOO);
	assert_int_equal(hs_sim_store_trackers(world->store), 1);
	hs_sim_world_destroy(&world);
}

static void test_prefixes(void **state)
{
	struct hs_sim_world *world = open_world(2, 1);
	struct hs_sim_client *some =
		tracking(world, 0, "CLIENT TRACKING ON BCAST PREFIX user: PREFIX x");
	struct hs_sim_client *all = tracking(world, 0, "CLIENT TRACKING ON BCAST");
	struct hs_sim_client *loud = tracking(world, 0, "CLIENT TRACKING ON BCAST NOLOOP");
	struct hs_sim_client *writer = hs_sim_client_connect(world, 1);

	(void)state;
	/* Clients with BCAST need not have read the keys. */
	ask(writer, "MSET user:1 1 user:2 2 use 3");
	received(some, ">2\r\n$10\r\ninvalidate\r\n*2\r\n$6\r\nuser:1\r\n$6\r\nuser:2\r\n");
	received(all,
		 ">2\r\n$10\r\ninvalidate\r\n*3\r\n$6\r\nuser:1\r\n$6\r\nuser:2\r\n$3\r\nuse\r\n");
	received(loud,
		 ">2\r\n$10\r\ninvalidate\r\n*3\r\n$6\r\nuser:1\r\n$6\r\nuser:2\r\n$3\r\nuse\r\n");
	ask(writer, "SET user:1 1"); /* BCAST reports every change, not only the first one */
	received(some, TOLD(6, "user:1"));
	ask(loud, "SET x 1");
	received(some, TOLD(1, "x"));
	received(loud, TOLD(6, "user:1") "+OK\r\n");
	forget(all);
	ask(writer, "FLUSHALL");
	received(some, TOLD_ALL);
	received(loud, TOLD_ALL);
	hs_sim_client_disconnect(all);
	ask(writer, "SET y 1");
	silent(some);
	received(loud, TOLD(1, "y"));
	hs_sim_world_destroy(&world);
}

/* With NOLOOP, a client gets no message about its own write, but gets one about the next write by another
 * client. */
static void test_noloop(void **state)
{
	struct hs_sim_world *world = open_world(1, 4);
	struct hs_sim_client *own = tracking(world, 0, "CLIENT TRACKING ON NOLOOP");
	struct hs_sim_client *other = tracking(world, 0, "CLIENT TRACKING ON NOLOOP");

	(void)state;
	ask(own, "GET foo");
	ask(other, "GET foo");
	forget(own);
	forget(other);
	ask(own, "SET foo 1");
	received(own, "+OK\r\n");
	received(other, TOLD_FOO);
	ask(other, "SET foo 2");
	received(own, TOLD_FOO);
	received(other, "+OK\r\n");
	/* The event names no writer, as when several clients changed the key in one batch: heatsink sends the
	 * invalidation in spite of NOLOOP, to be safe. */
	ask(own, "GET foo");
	forget(own);
	hs_core_event(hs_sim_world_core(world, 0), world->now,
		      &(struct hs_event){
			      .kind = HS_EVENT_CHANGED, .keys = &HS_LIT("foo"), .keys_count = 1});
	hs_sim_client_request(own, "PING");
	received(own, TOLD_FOO "+PONG\r\n");
	ask(own, "GET foo");
	/* As in Redis, NOLOOP does not suppress the invalidation of everything. */
	ask(own, "FLUSHALL");
	assert_true(own->received.len > strlen("$1\r\n2\r\n+OK\r\n"));
	hs_sim_world_destroy(&world);
}

static void test_optin_and_optout(void **state)
{
	struct hs_sim_world *world = open_world(1, 4);
	struct hs_sim_client *in = tracking(world, 0, "CLIENT TRACKING ON OPTIN");
	struct hs_sim_client *out = tracking(world, 0, "CLIENT TRACKING ON OPTOUT");
	struct hs_sim_client *writer = hs_sim_client_connect(world, 0);

	(void)state;
	ask(in, "GET foo");
	ask(out, "CLIENT CACHING NO");
	ask(out, "GET foo");
	ask(writer, "SET foo 1");
	received(in, "_\r\n");
	received(out, "+OK\r\n_\r\n");
	ask(in, "CLIENT CACHING YES");
	ask(in, "CLIENT ID"); /* CLIENT commands do not use up CACHING YES */
	ask(in, "GET foo");
	ask(in, "GET bar"); /* not tracked: CACHING YES applied to GET foo only */
	ask(out, "GET foo");
	forget(in);
	forget(out);
	ask(writer, "MSET foo 2 bar 2");
	received(in, TOLD_FOO);
	received(out, TOLD_FOO);
	ask(in, "CLIENT CACHING YES"); /* applies to all commands of the transaction */
	ask(in, "MULTI");
	ask(in, "GET foo");
	ask(in, "STRLEN foo");
	ask(in, "EXEC");
	ask(in, "CLIENT CACHING YES");
	ask(in, "NOPE"); /* an unknown command uses up CACHING YES */
	ask(in, "GET bar");
	forget(in);
	ask(writer, "MSET foo 3 bar 3");
	received(in, TOLD_FOO);
	ask(in, "MULTI");
	ask(in, "GET {bar}x");
	ask(in, "CLIENT CACHING YES"); /* inside a transaction, applies to the next command only */
	ask(in, "STRLEN bar");
	ask(in, "EXEC");
	forget(in);
	ask(writer, "MSET {bar}x 4 bar 4");
	received(in, TOLD_BAR);
	hs_sim_world_destroy(&world);
}

static void test_client_reply_off(void **state)
{
	struct hs_sim_world *world = open_world(1, 1);
	struct hs_sim_client *reader = tracking(world, 0, "CLIENT TRACKING ON");
	struct hs_sim_client *writer = hs_sim_client_connect(world, 0);

	(void)state;
	ask(reader, "GET foo");
	ask(reader, "CLIENT REPLY OFF");
	forget(reader);
	ask(writer, "SET foo 1"); /* a push is no reply: CLIENT REPLY OFF does not suppress it */
	received(reader, TOLD_FOO);
	ask(reader, "GET foo");
	ask(writer, "FLUSHALL");
	received(reader, TOLD_ALL);
	ask(writer, "SET foo 1"); /* the message for FLUSHALL covered foo: no key is tracked */
	silent(reader);
	hs_sim_world_destroy(&world);
}

static void test_client_reply_off_behind_a_stuck_reply(void **state)
{
	struct hs_sim_world *world = open_world(1, 4);
	struct hs_sim_client *reader = tracking(world, 0, "CLIENT TRACKING ON");
	struct hs_sim_client *writer = hs_sim_client_connect(world, 0);

	(void)state;
	ask(reader, "CLIENT REPLY OFF");
	hs_sim_engine_stall(world->engine, FOO_PARTITION);
	ask(reader, "SET foo 1");
	ask(reader, "GET bar");
	ask(writer, "SET bar 1");
	silent(reader);
	hs_sim_engine_go_on(world->engine, FOO_PARTITION);
	hs_sim_world_settle(world);
	received(reader, TOLD_BAR);
	hs_sim_world_destroy(&world);
}

static void test_asleep_and_in_other_dialects(void **state)
{
	struct hs_sim_world *world = open_world(1, 1);
	struct hs_sim_client *reader = tracking(world, 0, "CLIENT TRACKING ON");
	struct hs_sim_client *writer = hs_sim_client_connect(world, 0);

	(void)state;
	ask(reader, "GET foo");
	forget(reader);
	hs_sim_client_request(reader, "DEBUG SLEEP 0.001");
	hs_sim_client_request(writer, "SET foo 1");
	hs_sim_world_settle(world);
	received(reader,
		 /* The reply to DEBUG SLEEP is still to be sent: the invalidation follows it. */
		 "+OK\r\n" TOLD_FOO);
	ask(reader, "GET foo");
	ask(reader, "HELLO 2"); /* a RESP2 connection cannot receive invalidations */
	forget(reader);
	ask(writer, "SET foo 2");
	silent(reader);
	ask(reader, "HELLO 3");
	ask(reader, "GET foo");
	ask(reader, "RESET");
	forget(reader);
	ask(writer, "SET foo 3");
	silent(reader);
	assert_int_equal(hs_sim_store_trackers(world->store), 0);
	hs_sim_world_destroy(&world);
}

/* A core does not stop while an operation that it sent to the engine itself, for no client, is in flight. */
static void test_shutting_down_waits_for_the_engine(void **state)
{
	struct hs_sim_world *world = open_world(1, 4);
	struct hs_sim_client *client = tracking(world, 0, "CLIENT TRACKING ON");
	struct hs_core *core = hs_sim_world_core(world, 0);

	(void)state;
	hs_sim_engine_stall(world->engine, 0);
	hs_sim_client_disconnect(client);
	hs_sim_world_settle(world);
	assert_int_equal(hs_core_drain(core, world->now, 0), 1);
	hs_sim_engine_go_on(world->engine, 0);
	hs_sim_world_settle(world);
	assert_int_equal(hs_core_drain(core, world->now, 0), 0);
	hs_sim_world_destroy(&world);
}

static void redirect(struct hs_sim_client *from, const struct hs_sim_client *to)
{
	char words[64];

	snprintf(words, sizeof words, "CLIENT TRACKING ON REDIRECT %llu",
		 (unsigned long long)to->id);
	ask(from, words);
	received(from, "+OK\r\n");
}

static void check_redirect(uint32_t worker)
{
	struct hs_sim_world *world = open_world(2, 4);
	struct hs_sim_client *reader = tracking(world, 0, "CLIENT TRACKING OFF");
	struct hs_sim_client *listener = hs_sim_client_connect(world, worker);
	struct hs_sim_client *writer = hs_sim_client_connect(world, 0);
	char broken[64];

	redirect(reader, listener);
	ask(reader, "GET foo");
	forget(reader);
	ask(writer, "SET foo 1");
	/* The listener speaks RESP2 and has not subscribed to __redis__:invalidate: it gets no messages. */
	silent(listener);
	ask(listener, "SUBSCRIBE __redis__:invalidate");
	forget(listener);
	ask(reader, "MGET foo bar");
	ask(writer, "SET foo 2");
	received(listener,
		 "*3\r\n$7\r\nmessage\r\n$20\r\n__redis__:invalidate\r\n*1\r\n$3\r\nfoo\r\n");
	ask(listener, "UNSUBSCRIBE");
	ask(listener, "HELLO 3");
	forget(listener);
	ask(writer, "SET bar 1");
	received(listener, TOLD_BAR);
	received(reader, "*2\r\n$1\r\n1\r\n_\r\n");
	/* The listener gets the invalidation only after the reader has the reply with the old value. */
	hs_sim_engine_stall(world->engine, FOO_PARTITION);
	hs_sim_client_request(reader, "SET foo 9");
	hs_sim_client_request(reader, "GET bar");
	ask(writer, "SET bar 2");
	silent(listener);
	hs_sim_engine_go_on(world->engine, FOO_PARTITION);
	hs_sim_world_settle(world);
	received(listener, TOLD_BAR);
	received(reader, "+OK\r\n$1\r\n1\r\n");
	/* The listener disconnects: the reader learns it at the next invalidation, as tracking-redir-broken. */
	ask(reader, "GET foo");
	forget(reader);
	hs_sim_client_disconnect(listener);
	silent(reader);
	ask(writer, "SET foo 3");
	snprintf(broken, sizeof broken, ">2\r\n$21\r\ntracking-redir-broken\r\n:%llu\r\n",
		 (unsigned long long)listener->id);
	received_bytes(reader, broken, strlen(broken), __FILE__, __LINE__);
	assert_true(hs_tracker_of(hs_sim_world_core(world, 0), reader->session)->redirect_broken);
	redirect(reader, writer);
	assert_false(hs_tracker_of(hs_sim_world_core(world, 0), reader->session)->redirect_broken);
	ask(reader, "CLIENT TRACKING ON REDIRECT 12345");
	received(reader, "-ERR The client ID you want redirect to does not exist\r\n");
	hs_sim_world_destroy(&world);
}

static void test_redirect(void **state)
{
	(void)state;
	check_redirect(0);
	check_redirect(1);
}

static void test_redirect_to_oneself(void **state)
{
	struct hs_sim_world *world = open_world(1, 4);
	struct hs_sim_client *reader = tracking(world, 0, "CLIENT TRACKING OFF");
	struct hs_sim_client *writer = hs_sim_client_connect(world, 0);

	(void)state;
	redirect(reader, reader);
	ask(reader, "GET foo");
	ask(writer, "SET foo 1");
	received(reader, "_\r\n" TOLD_FOO);
	hs_sim_world_destroy(&world);
}

/* Above the limit the worker evicts keys from the tracking table and sends their invalidations, but never
 * before the reply that carries the value of the key. */
static void test_the_table_is_bounded(void **state)
{
	struct hs_sim_world_options options = hs_sim_world_defaults(1);
	struct hs_sim_world *world;
	struct hs_sim_client *reader;

	(void)state;
	options.core.tracking_keys_max = 4;
	options.workers = 2; /* two keys for each worker */
	world = hs_sim_world_create(&options);
	reader = tracking(world, 0, "CLIENT TRACKING ON");
	ask(reader, "GET a");
	ask(reader, "GET b");
	ask(reader, "GET b");
	received(reader, "_\r\n_\r\n_\r\n");
	ask(reader, "GET c");
	assert_memory_equal(reader->received.data, "_\r\n>2", 5);
	assert_int_equal(reader->received.len, strlen("_\r\n" TOLD(1, "a")));
	forget(reader);
	assert_int_equal(hs_counter_get(&push_stats(world)->tracking_keys), 2);
	assert_int_equal(hs_counter_get(&push_stats(world)->tracking_evicted), 1);
	ask(reader, "MGET d e f g h");
	assert_memory_equal(reader->received.data, "*5\r\n_\r\n_\r\n_\r\n_\r\n_\r\n>2", 21);
	assert_int_equal(hs_counter_get(&push_stats(world)->tracking_keys), 2);
	assert_int_equal(hs_counter_get(&push_stats(world)->tracking_evicted), 6);
	hs_sim_world_destroy(&world);
}

static void test_clients_of_a_key_are_bounded(void **state)
{
	struct hs_sim_world_options options = hs_sim_world_defaults(1);
	struct hs_sim_world *world;

	(void)state;
	options.core.tracking_keys_max = 1;
	world = hs_sim_world_create(&options);
	for (int i = 0; i < 2 * HS_TRACKING_CLIENTS_PER_KEY; i++)
		ask(tracking(world, 0, "CLIENT TRACKING ON"), "GET foo");
	assert_int_equal(hs_counter_get(&push_stats(world)->tracking_keys), 0);
	assert_int_equal(hs_counter_get(&push_stats(world)->tracking_items), 0);
	assert_int_equal(hs_counter_get(&push_stats(world)->tracking_evicted), 1);
	assert_int_equal(hs_counter_get(&push_stats(world)->tracking_messages),
			 2 * HS_TRACKING_CLIENTS_PER_KEY);
	hs_sim_world_destroy(&world);
}

static void test_names_are_bounded(void **state)
{
	struct hs_sim_world *world = open_world(1, 1);
	struct hs_sim_client *reader = tracking(world, 0, "CLIENT TRACKING ON");
	struct hs_tracking *tracking = hs_push_of(hs_sim_world_core(world, 0))->tracking;

	(void)state;
	assert_int_equal(tracking->table_bytes_max, HS_TRACKING_TABLE_BYTES_MAX);
	tracking->table_bytes_max = 2 * sizeof(struct hs_tracked) + 6;
	ask(reader, "MGET foo bar");
	assert_int_equal(hs_counter_get(&push_stats(world)->tracking_evicted), 0);
	ask(reader, "GET fo");
	assert_int_equal(hs_counter_get(&push_stats(world)->tracking_keys), 2);
	assert_int_equal(hs_counter_get(&push_stats(world)->tracking_evicted), 1);
	ask(reader, "FLUSHALL");
	assert_int_equal(hs_counter_get(&push_stats(world)->tracking_keys), 0);
	hs_sim_world_destroy(&world);
}

static void test_prefixes_are_bounded(void **state)
{
	static const char refused[] =
		"-ERR too many prefixes: at most 256 and 64 KiB in all for one connection\r\n";
	struct hs_sim_world *world = open_world(1, 1);
	struct hs_sim_client *client = tracking(world, 0, "CLIENT TRACKING OFF");
	char words[64];
	struct hs_buf bytes = {0};
	char *name = hs_mem_alloc(HS_TRACKING_PREFIX_BYTES_MAX + 1);
	struct hs_bytes argv[] = {HS_LIT("CLIENT"), HS_LIT("TRACKING"),
				  HS_LIT("ON"),	    HS_LIT("BCAST"),
				  HS_LIT("PREFIX"), {name, HS_TRACKING_PREFIX_BYTES_MAX + 1}};

	(void)state;
	memset(name, 'x', HS_TRACKING_PREFIX_BYTES_MAX + 1);
	hs_compose(&bytes, 6, argv);
	hs_sim_client_send(client, hs_buf_bytes(&bytes));
	received(client, refused);
	for (int i = 0; i < HS_TRACKING_PREFIXES_MAX; i++) {
		snprintf(words, sizeof words, "CLIENT TRACKING ON BCAST PREFIX %03d", i);
		ask(client, words);
		received(client, "+OK\r\n");
	}
	ask(client, "CLIENT TRACKING ON BCAST PREFIX more");
	received(client, refused);
	ask(client, "SET 255 1");
	received(client, "+OK\r\n" TOLD(3, "255"));
	hs_buf_deinit(&bytes);
	hs_mem_free(&name);
	hs_sim_world_destroy(&world);
}

/* Invalidations count towards the output limit of a client: those that wait for an earlier reply as well as
 * those that the client has not read. */
static void test_messages_reach_the_output_limit(void **state)
{
	struct hs_sim_world_options options = hs_sim_world_defaults(1);
	struct hs_sim_world *world;
	struct hs_sim_client *reading_paused, *stuck, *writer;

	(void)state;
	options.core.output_bytes_max = 4096;
	world = hs_sim_world_create(&options);
	reading_paused = tracking(world, 0, "CLIENT TRACKING ON BCAST");
	stuck = tracking(world, 0, "CLIENT TRACKING ON BCAST");
	writer = hs_sim_client_connect(world, 0);
	hs_sim_client_pause_reading(reading_paused, true);
	hs_sim_engine_stall(world->engine, FOO_PARTITION);
	hs_sim_client_request(stuck, "SET foo 1");
	for (int i = 0; i < 200; i++)
		ask(writer, "SET bar 1");
	assert_null(reading_paused->session);
	assert_null(stuck->session);
	assert_true(reading_paused->cut);
	assert_true(stuck->cut);
	assert_non_null(writer->session);
	assert_int_equal(hs_counter_get(&stats(world)->cut_output), 2);
	hs_sim_engine_go_on(world->engine, FOO_PARTITION);
	hs_sim_world_destroy(&world);
}

/* The engine cannot report changes and refuses the operation: no key is tracked. */
static enum hs_submit refuse(void *context, struct hs_op *op)
{
	struct hs_reply reply = {.out = op->out, .resp = op->resp};

	(void)context;
	hs_reply_error(&reply, "ERR not now");
	return HS_SUBMIT_DONE;
}

static uint64_t no_time(void *context)
{
	(void)context;
	return 1;
}

static void test_an_engine_that_refuses(void **state)
{
	static const struct hs_core_calls calls = {.submit = refuse, .mono_us = no_time};
	static const char request[] = "CLIENT TRACKING ON BCAST\r\nCLIENT GETREDIR\r\n";
	struct hs_core_world world = {.commands = &hs_commands,
				      .stages = hs_stages,
				      .calls = &calls,
				      .workers = 1,
				      .partitions = 1};
	struct hs_core_options options = {.output_bytes_max = 1000};
	struct hs_core *core = hs_core_create(&world, &options);
	struct hs_core_client who = {.id = 1, .address = "", .local_address = ""};
	struct hs_now now = {.mono_us = 1};
	struct hs_session *session = hs_core_connect(core, now, &who);

	(void)state;
	hs_core_receive(core, session, now, request, strlen(request));
	assert_int_equal(hs_session_out(session)->len, strlen("-ERR not now\r\n:-1\r\n"));
	assert_memory_equal(hs_session_out(session)->data, "-ERR not now\r\n:-1\r\n", 19);
	assert_int_equal(hs_counter_get(&hs_push_stats(core)->tracking_clients), 0);
	hs_core_disconnect(core, session);
	hs_core_destroy(&core);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_read_key_is_invalidated_once),
		cmocka_unit_test(test_an_invalidation_stays_behind_replies_in_flight),
		cmocka_unit_test(test_a_read_in_flight_is_tracked),
		cmocka_unit_test(test_on_waits_for_the_engine),
		cmocka_unit_test(test_the_engine_tracks_from_first_to_last_client),
		cmocka_unit_test(test_prefixes),
		cmocka_unit_test(test_noloop),
		cmocka_unit_test(test_optin_and_optout),
		cmocka_unit_test(test_client_reply_off),
		cmocka_unit_test(test_client_reply_off_behind_a_stuck_reply),
		cmocka_unit_test(test_asleep_and_in_other_dialects),
		cmocka_unit_test(test_shutting_down_waits_for_the_engine),
		cmocka_unit_test(test_redirect),
		cmocka_unit_test(test_redirect_to_oneself),
		cmocka_unit_test(test_the_table_is_bounded),
		cmocka_unit_test(test_clients_of_a_key_are_bounded),
		cmocka_unit_test(test_names_are_bounded),
		cmocka_unit_test(test_prefixes_are_bounded),
		cmocka_unit_test(test_messages_reach_the_output_limit),
		cmocka_unit_test(test_an_engine_that_refuses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
