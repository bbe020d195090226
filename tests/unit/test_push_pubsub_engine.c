/* Goal: publish and subscribe in front of servers: when the core tells the engine to subscribe and unsubscribe,
 * which clients wait for the engine's answer, how the engine's events become messages, and how the core
 * corrects the counts in the replies to PUBLISH.
 *
 * Method: the test drives cores by hand. The engine is a list of operations that the test answers; the test
 * performs the workers' parts of a command (HS_OP_PEER) automatically. At the end a random run is compared with
 * a model: the engine subscribes to every topic with a confirmed client, every message reaches exactly the
 * subscribed clients, and no subscription remains. */
#include "push/push.h"
#include "stages/stages.h"
#include "wire/compose.h"

#include "tests/lib/script.h"

#include "base/mem.h"
#include "base/prng.h"
#include "core/state.h"

enum { WORKERS = 2, PARTITIONS = 3, OPS_MAX = 64 };

#define SUBSCRIBED(name, len, count)                                                               \
	"*3\r\n$9\r\nsubscribe\r\n$" #len "\r\n" name "\r\n:" #count "\r\n"
#define UNSUBSCRIBED(name, len, count)                                                             \
	"*3\r\n$11\r\nunsubscribe\r\n$" #len "\r\n" name "\r\n:" #count "\r\n"
#define MESSAGE(text) "*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$1\r\n" text "\r\n"

struct town;

struct place {
	struct town *town;
	struct hs_core *core;
};

struct town {
	struct place places[WORKERS];
	struct hs_now now;
	struct hs_op *ops[OPS_MAX]; /* operations in flight at the engine, oldest first */
	size_t ops_count;
	struct hs_op *peers[OPS_MAX];
	size_t peers_count;
	_Atomic uint64_t slowlog_ids;
	uint64_t ids;
	struct hs_log log;
	struct hs_sim_client *clients;
};

static enum hs_submit submit(void *context, struct hs_op *op)
{
	struct place *place = context;
	struct town *town = place->town;

	assert_true(town->ops_count < OPS_MAX && town->peers_count < OPS_MAX);
	if (op->kind == HS_OP_PEER) {
		town->peers[town->peers_count++] = op;
		return HS_SUBMIT_QUEUED;
	}
	if (op->kind == HS_OP_SUBSCRIBE || op->kind == HS_OP_UNSUBSCRIBE) {
		assert_int_equal(op->argc, 2);
		/* The core must never send the engine two operations about the same topic at once. */
		for (size_t i = 0; i < town->ops_count; i++) {
			const struct hs_op *other = town->ops[i];

			assert_false(other->kind != HS_OP_COMMAND && other->kind != HS_OP_EXEC &&
				     other->worker == op->worker && other->command == op->command &&
				     hs_bytes_equal(other->argv[1], op->argv[1]));
		}
	}
	town->ops[town->ops_count++] = op;
	return HS_SUBMIT_QUEUED;
}

static uint64_t mono_us(void *context)
{
	return ((struct place *)context)->town->now.mono_us;
}

static void drop_line(void *context, enum hs_log_level level, const char *line)
{
	(void)context, (void)level, (void)line;
}

static const struct hs_core_calls calls = {.submit = submit, .mono_us = mono_us};

static void open_town(struct town *town, enum hs_op_scope op_scope)
{
	const struct hs_core_options options = {
		.output_bytes_max = HS_MIB,
		.slowlog_us = -1,
	};

	memset(town, 0, sizeof *town);
	town->now = (struct hs_now){.mono_us = 1000000, .wall_us = 1700000000000000};
	town->log = (struct hs_log){.level = HS_LOG_ERROR, .sink = drop_line};
	for (uint32_t i = 0; i < WORKERS; i++) {
		struct hs_core_world world = {
			.commands = &hs_commands,
			.stages = hs_stages,
			.calls = &calls,
			.context = &town->places[i],
			.log = &town->log,
			.worker = i,
			.workers = WORKERS,
			.partitions = op_scope == HS_OP_SCOPE_ALL ? 1 : PARTITIONS,
			.op_scope = op_scope,
			.shared_connections = true,
			.slowlog_ids = &town->slowlog_ids,
			.seed = 7,
		};

		town->places[i].town = town;
		town->places[i].core = hs_core_create(&world, &options);
	}
}

static void disconnect(struct town *town, struct hs_sim_client *client)
{
	struct hs_session *session = client->session;

	client->session = NULL;
	if (session)
		hs_core_disconnect(town->places[client->worker].core, session);
}

static void take_output(struct town *town)
{
	for (uint32_t i = 0; i < WORKERS; i++) {
		struct hs_session *session;

		while ((session = hs_core_next_sendable(town->places[i].core))) {
			struct hs_sim_client *client = hs_session_io(session);
			struct hs_buf *out = hs_session_out(session);

			hs_buf_append_bytes(&client->received, hs_buf_bytes(out));
			hs_buf_clear(out, 0);
			if (hs_session_cut(session) || hs_session_closing(session))
				disconnect(town, client);
		}
	}
}

/* Runs the operations between workers (HS_OP_PEER) until none is left, and the cores' work that follows. */
static void settle(struct town *town)
{
	while (town->peers_count > 0) {
		struct hs_op *op = town->peers[0];

		memmove(town->peers, town->peers + 1, --town->peers_count * sizeof *town->peers);
		hs_core_peer(town->places[op->partition].core, town->now, op);
		hs_core_complete(town->places[op->worker].core, town->now, op);
	}
	take_output(town);
}

static struct hs_sim_client *join(struct town *town, uint32_t worker)
{
	struct hs_sim_client *client = hs_mem_zalloc(sizeof *client);
	struct hs_core_client who = {
		.id = ++town->ids, .address = "test:1", .local_address = "test:0"};

	client->id = who.id;
	client->worker = worker;
	client->session = hs_core_connect(town->places[worker].core, town->now, &who);
	hs_session_set_io(client->session, client);
	client->next = town->clients;
	town->clients = client;
	return client;
}

static void say(struct town *town, struct hs_sim_client *client, const char *words)
{
	struct hs_bytes argv[16];
	struct hs_buf bytes = {0};
	size_t argc = 0;

	while (*words) {
		size_t len = strcspn(words, " ");

		argv[argc++] = (struct hs_bytes){words, len};
		words += len + (words[len] == ' ');
	}
	hs_compose(&bytes, argc, argv);
	hs_core_receive(town->places[client->worker].core, client->session, town->now, bytes.data,
			bytes.len);
	hs_buf_deinit(&bytes);
	settle(town);
}

/* The engine answers the operation `index` of those in flight. */
static void answer_op(struct town *town, size_t index, const char *reply)
{
	struct hs_op *op = town->ops[index];

	town->ops_count--;
	memmove(town->ops + index, town->ops + index + 1,
		(town->ops_count - index) * sizeof *town->ops);
	/* An engine hands a reply over in one of two ways; the test alternates between the two. */
	if (town->now.mono_us++ % 2 == 0)
		op->answer = hs_bytes_of(reply);
	else
		hs_buf_append(op->out, reply, strlen(reply));
	hs_core_complete(town->places[op->worker].core, town->now, op);
	settle(town);
}

/* Checks that the oldest operation in flight is the expected one, and answers it. */
static void engine(struct town *town, enum hs_op_kind kind, uint32_t worker, const char *words,
		   const char *reply)
{
	struct hs_op *op = town->ops[0];
	struct hs_buf said = {0};

	assert_true(town->ops_count > 0);
	assert_int_equal(op->kind, kind);
	assert_int_equal(op->worker, worker);
	for (size_t i = 0; i < op->argc; i++)
		hs_buf_printf(&said, "%s%.*s", i ? " " : "", (int)op->argv[i].len,
			      op->argv[i].data);
	assert_string_equal(said.data, words);
	hs_buf_deinit(&said);
	answer_op(town, 0, reply);
}

static void idle(const struct town *town)
{
	assert_int_equal(town->ops_count, 0);
}

static void tell(struct town *town, struct hs_event event)
{
	struct hs_event *piece = hs_event_create(&event);

	for (uint32_t i = 0; i < WORKERS; i++)
		hs_core_event(town->places[i].core, town->now, piece);
	hs_event_unref(&piece);
	take_output(town);
}

static void close_town(struct town *town)
{
	for (struct hs_sim_client *client = town->clients; client; client = client->next)
		disconnect(town, client);
	while (town->ops_count > 0)
		answer_op(town, 0, "+OK\r\n");
	for (uint32_t i = 0; i < WORKERS; i++) {
		assert_int_equal(hs_push_of(town->places[i].core)->topics.named.count, 0);
		assert_int_equal(hs_core_drain(town->places[i].core, town->now, 0), 0);
		hs_core_destroy(&town->places[i].core);
	}
	while (town->clients) {
		struct hs_sim_client *client = town->clients;

		town->clients = client->next;
		hs_buf_deinit(&client->received);
		hs_mem_free(&client);
	}
}

/* ---- subscribing ---- */

static void test_a_confirmation_waits_for_the_engine(void **state)
{
	struct town town;
	struct hs_sim_client *one, *two, *far;

	(void)state;
	open_town(&town, HS_OP_SCOPE_SLOT);
	one = join(&town, 0);
	two = join(&town, 0);
	far = join(&town, 1);
	say(&town, one, "SUBSCRIBE a");
	say(&town, one, "PING"); /* PING waits for the confirmation of SUBSCRIBE */
	say(&town, two, "SUBSCRIBE a");
	say(&town, far, "SUBSCRIBE a");
	silent(one);
	tell(&town, (struct hs_event){.kind = HS_EVENT_MESSAGE,
				      .channel = HS_LIT("a"),
				      .payload = HS_LIT("0")});
	/* One operation of each worker, although two clients of worker 0 subscribe. */
	assert_int_equal(town.ops_count, 2);
	engine(&town, HS_OP_SUBSCRIBE, 0, "SUBSCRIBE a", "+OK\r\n");
	received(one, SUBSCRIBED("a", 1, 1) "*2\r\n$4\r\npong\r\n$0\r\n\r\n");
	received(two, SUBSCRIBED("a", 1, 1));
	silent(far);
	engine(&town, HS_OP_SUBSCRIBE, 1, "SUBSCRIBE a", "+OK\r\n");
	received(far, SUBSCRIBED("a", 1, 1));
	say(&town, one, "UNSUBSCRIBE");
	idle(&town); /* no operation: client `two` is still subscribed */
	received(one, UNSUBSCRIBED("a", 1, 0));
	say(&town, two, "UNSUBSCRIBE");
	tell(&town, (struct hs_event){.kind = HS_EVENT_MESSAGE,
				      .channel = HS_LIT("a"),
				      .payload = HS_LIT("x")});
	silent(two);
	received(far, MESSAGE("x"));
	engine(&town, HS_OP_UNSUBSCRIBE, 0, "SUBSCRIBE a", "+OK\r\n");
	/* This was the last subscribed client of worker 0. */
	received(two, UNSUBSCRIBED("a", 1, 0));
	idle(&town);
	/* The worker does not stop before the engine has unsubscribed. */
	disconnect(&town, far);
	assert_int_equal(hs_core_drain(town.places[1].core, town.now, 0), 1);
	engine(&town, HS_OP_UNSUBSCRIBE, 1, "SUBSCRIBE a", "+OK\r\n");
	assert_int_equal(hs_core_drain(town.places[1].core, town.now, 0), 0);
	close_town(&town);
}

static void test_reset_waits_for_the_engine_too(void **state)
{
	struct town town;
	struct hs_sim_client *client;

	(void)state;
	open_town(&town, HS_OP_SCOPE_SLOT);
	client = join(&town, 0);
	say(&town, client, "SUBSCRIBE a");
	say(&town, client, "PSUBSCRIBE b");
	engine(&town, HS_OP_SUBSCRIBE, 0, "SUBSCRIBE a", "+OK\r\n");
	engine(&town, HS_OP_SUBSCRIBE, 0, "PSUBSCRIBE b", "+OK\r\n");
	client->received.len = 0;
	say(&town, client, "RESET");
	say(&town, client, "PING");
	silent(client);
	engine(&town, HS_OP_UNSUBSCRIBE, 0, "SUBSCRIBE a", "+OK\r\n");
	silent(client);
	engine(&town, HS_OP_UNSUBSCRIBE, 0, "PSUBSCRIBE b", "-ERR whatever\r\n");
	received(client, "+RESET\r\n+PONG\r\n");
	close_town(&town);
}

static void test_slots_of_shard_channels(void **state)
{
	struct town town;
	struct hs_sim_client *client;

	(void)state;
	open_town(&town, HS_OP_SCOPE_SLOT);
	client = join(&town, 0);
	say(&town, client, "SSUBSCRIBE foo");
	assert_int_equal(town.ops[0]->slot, hs_slot_of(HS_LIT("foo")));
	assert_int_equal(town.ops[0]->partition, hs_slot_partition(town.ops[0]->slot, PARTITIONS));
	engine(&town, HS_OP_SUBSCRIBE, 0, "SSUBSCRIBE foo", "+OK\r\n");
	say(&town, client, "PSUBSCRIBE foo");
	assert_int_equal(town.ops[0]->slot, HS_SLOT_NONE);
	assert_int_equal(town.ops[0]->partition, 0);
	engine(&town, HS_OP_SUBSCRIBE, 0, "PSUBSCRIBE foo", "+OK\r\n");
	close_town(&town);
}

static void test_an_engine_that_cannot_subscribe(void **state)
{
	struct town town;
	struct hs_sim_client *client, *other;

	(void)state;
	open_town(&town, HS_OP_SCOPE_SLOT);
	client = join(&town, 0);
	other = join(&town, 0);
	say(&town, client, "SUBSCRIBE a b b c");
	say(&town, other, "SUBSCRIBE b");
	engine(&town, HS_OP_SUBSCRIBE, 0, "SUBSCRIBE a", "+OK\r\n");
	engine(&town, HS_OP_SUBSCRIBE, 0, "SUBSCRIBE b", "-NOPERM not you\r\n");
	received(other, "-NOPERM not you\r\n");
	say(&town, other, "PING");
	/* The refused client has no subscription and may send any command. */
	received(other, "+PONG\r\n");
	silent(client);
	engine(&town, HS_OP_SUBSCRIBE, 0, "SUBSCRIBE c", "+OK\r\n");
	received(client, SUBSCRIBED("a", 1, 1) "-NOPERM not you\r\n-NOPERM not you\r\n" SUBSCRIBED(
				 "c", 1, 2));
	idle(&town);
	assert_null(hs_topic_find(&hs_push_of(town.places[0].core)->topics, HS_TOPIC_CHANNEL,
				  HS_LIT("b")));
	assert_int_equal(hs_counter_get(&town.places[0].core->stats.errors), 3);
	say(&town, client, "SUBSCRIBE b"); /* the client tries the refused channel again */
	engine(&town, HS_OP_SUBSCRIBE, 0, "SUBSCRIBE b", "+OK\r\n");
	received(client, SUBSCRIBED("b", 1, 3));
	close_town(&town);
}

/* One client unsubscribes while another subscribes: the worker sends the engine one operation after the other,
 * so that the engine ends up subscribed. */
static void test_unsubscribing_and_subscribing_do_not_race(void **state)
{
	struct town town;
	struct hs_sim_client *one, *two;

	(void)state;
	open_town(&town, HS_OP_SCOPE_SLOT);
	one = join(&town, 0);
	two = join(&town, 0);
	say(&town, one, "SUBSCRIBE a");
	engine(&town, HS_OP_SUBSCRIBE, 0, "SUBSCRIBE a", "+OK\r\n");
	say(&town, one, "UNSUBSCRIBE a");
	say(&town, two, "SUBSCRIBE a");
	say(&town, one, "SUBSCRIBE a");
	assert_int_equal(town.ops_count, 1);
	one->received.len = 0;
	engine(&town, HS_OP_UNSUBSCRIBE, 0, "SUBSCRIBE a", "+OK\r\n");
	silent(two);
	engine(&town, HS_OP_SUBSCRIBE, 0, "SUBSCRIBE a", "+OK\r\n");
	received(two, SUBSCRIBED("a", 1, 1));
	received(one, UNSUBSCRIBED("a", 1, 0) SUBSCRIBED("a", 1, 1));
	idle(&town);
	close_town(&town);
}

static void test_a_client_disconnects_while_the_engine_subscribes(void **state)
{
	struct town town;
	struct hs_sim_client *one, *two;

	(void)state;
	open_town(&town, HS_OP_SCOPE_SLOT);
	one = join(&town, 0);
	two = join(&town, 0);
	say(&town, one, "SUBSCRIBE a b");
	disconnect(&town, one);
	engine(&town, HS_OP_SUBSCRIBE, 0, "SUBSCRIBE a", "+OK\r\n");
	engine(&town, HS_OP_SUBSCRIBE, 0, "SUBSCRIBE b", "-ERR no\r\n");
	/* No connected client is subscribed. */
	engine(&town, HS_OP_UNSUBSCRIBE, 0, "SUBSCRIBE a", "+OK\r\n");
	idle(&town);
	silent(one);
	assert_int_equal(hs_push_of(town.places[0].core)->topics.named.count, 0);
	/* A client disconnects while the engine unsubscribes. */
	say(&town, two, "SUBSCRIBE a");
	engine(&town, HS_OP_SUBSCRIBE, 0, "SUBSCRIBE a", "+OK\r\n");
	say(&town, two, "UNSUBSCRIBE");
	say(&town, two, "SUBSCRIBE a");
	disconnect(&town, two);
	engine(&town, HS_OP_UNSUBSCRIBE, 0, "SUBSCRIBE a", "+OK\r\n");
	idle(&town);
	assert_int_equal(hs_push_of(town.places[0].core)->topics.named.count, 0);
	close_town(&town);
}

/* ---- events ---- */

static void test_events_reach_their_subscribers(void **state)
{
	struct town town;
	struct hs_sim_client *one, *two;

	(void)state;
	open_town(&town, HS_OP_SCOPE_SLOT);
	one = join(&town, 0);
	two = join(&town, 1);
	say(&town, one, "SUBSCRIBE a");
	say(&town, two, "HELLO 3");
	say(&town, two, "PSUBSCRIBE a*");
	say(&town, one, "SSUBSCRIBE a");
	while (town.ops_count > 0)
		answer_op(&town, 0, "+OK\r\n");
	one->received.len = two->received.len = 0;
	tell(&town, (struct hs_event){.kind = HS_EVENT_MESSAGE,
				      .channel = HS_LIT("a"),
				      .payload = HS_LIT("1")});
	received(one, MESSAGE("1"));
	silent(two);
	tell(&town, (struct hs_event){.kind = HS_EVENT_PATTERN_MESSAGE,
				      .pattern = HS_LIT("a*"),
				      .channel = HS_LIT("ab"),
				      .payload = HS_LIT("2")});
	received(two, ">4\r\n$8\r\npmessage\r\n$2\r\na*\r\n$2\r\nab\r\n$1\r\n2\r\n");
	tell(&town, (struct hs_event){.kind = HS_EVENT_SHARD_MESSAGE,
				      .channel = HS_LIT("a"),
				      .payload = HS_LIT("")});
	received(one, "*3\r\n$8\r\nsmessage\r\n$1\r\na\r\n$0\r\n\r\n");
	tell(&town, (struct hs_event){.kind = HS_EVENT_MESSAGE, .channel = HS_LIT("nobody")});
	tell(&town, (struct hs_event){.kind = HS_EVENT_CHANGED_ALL});
	silent(one);
	silent(two);
	close_town(&town);
}

static void test_a_shard_channel_whose_slot_moves(void **state)
{
	struct town town;
	struct hs_sim_client *one, *two;
	struct hs_event gone = {.kind = HS_EVENT_UNSUBSCRIBED,
				.unsubscribed_kind = HS_EVENT_SHARD_MESSAGE,
				.channel = HS_LIT("a")};

	(void)state;
	open_town(&town, HS_OP_SCOPE_SLOT);
	one = join(&town, 0);
	two = join(&town, 0);
	say(&town, two, "HELLO 3");
	say(&town, one, "SSUBSCRIBE a {a}2");
	say(&town, two, "SSUBSCRIBE a");
	while (town.ops_count > 0)
		answer_op(&town, 0, "+OK\r\n");
	one->received.len = two->received.len = 0;
	tell(&town, gone);
	received(one, "*3\r\n$12\r\nsunsubscribe\r\n$1\r\na\r\n:1\r\n");
	received(two, ">3\r\n$12\r\nsunsubscribe\r\n$1\r\na\r\n:0\r\n");
	engine(&town, HS_OP_UNSUBSCRIBE, 0, "SSUBSCRIBE a", "+OK\r\n");
	tell(&town, gone); /* the worker has forgotten the topic: a second event has no effect */
	silent(one);
	/* The engine loses the topic while the worker subscribes to it: the worker subscribes again. */
	say(&town, two, "SSUBSCRIBE a");
	tell(&town, gone);
	engine(&town, HS_OP_SUBSCRIBE, 0, "SSUBSCRIBE a", "+OK\r\n");
	silent(two);
	engine(&town, HS_OP_SUBSCRIBE, 0, "SSUBSCRIBE a", "+OK\r\n");
	received(two, ">3\r\n$10\r\nssubscribe\r\n$1\r\na\r\n:1\r\n");
	/* The engine loses topic a while client `one`, subscribing to a and {a}3, waits for the confirmation of
	 * {a}3: the subscription to a fails. */
	say(&town, one, "SSUBSCRIBE a {a}3");
	tell(&town, gone);
	received(two, ">3\r\n$12\r\nsunsubscribe\r\n$1\r\na\r\n:0\r\n");
	engine(&town, HS_OP_SUBSCRIBE, 0, "SSUBSCRIBE {a}3", "+OK\r\n");
	received(one,
		 "-" HS_PUSH_NOT_SUBSCRIBED "\r\n*3\r\n$10\r\nssubscribe\r\n$4\r\n{a}3\r\n:2\r\n");
	close_town(&town);
}

/* ---- PUBLISH's reply ---- */

static void listen_here(struct town *town, struct hs_sim_client *client, const char *words)
{
	say(town, client, words);
	while (town->ops_count > 0)
		answer_op(town, 0, "+OK\r\n");
	client->received.len = 0;
}

static void test_publish_does_not_count_heatsink_s_own_connections(void **state)
{
	struct town town;
	struct hs_sim_client *one, *two, *speaker;

	(void)state;
	open_town(&town, HS_OP_SCOPE_SLOT);
	one = join(&town, 0);
	two = join(&town, 1);
	speaker = join(&town, 0);
	say(&town, speaker, "PUBLISH a x");
	engine(&town, HS_OP_COMMAND, 0, "PUBLISH a x", ":7\r\n");
	received(speaker, ":7\r\n");
	listen_here(&town, one, "SUBSCRIBE a");
	listen_here(&town, one, "PSUBSCRIBE a* b*");
	listen_here(&town, two, "PSUBSCRIBE a* ?");
	listen_here(&town, two, "SUBSCRIBE a");
	say(&town, speaker, "PUBLISH a x");
	/* The server counts 8 receivers: heatsink's own connection for a, a* and ?, and five other connections.
	 * Five subscriptions of heatsink's clients match, so the reply is 10. */
	engine(&town, HS_OP_COMMAND, 0, "PUBLISH a x", ":8\r\n");
	received(speaker, ":10\r\n");
	/* heatsink's clients get the message only when it arrives from the server as an event. */
	silent(one);
	say(&town, speaker, "PUBLISH a x");
	/* In a Cluster the number may be lower than heatsink's own subscriptions: only heatsink's clients count
	 * then. */
	engine(&town, HS_OP_COMMAND, 0, "PUBLISH a x", ":1\r\n");
	received(speaker, ":5\r\n");
	say(&town, speaker, "PUBLISH a x");
	engine(&town, HS_OP_COMMAND, 0, "PUBLISH a x", "-CLUSTERDOWN so sorry\r\n");
	received(speaker, "-CLUSTERDOWN so sorry\r\n");
	listen_here(&town, two, "SSUBSCRIBE a");
	say(&town, speaker, "SPUBLISH a x");
	assert_int_equal(town.ops[0]->slot, hs_slot_of(HS_LIT("a")));
	/* SPUBLISH does not count pattern subscriptions. */
	engine(&town, HS_OP_COMMAND, 0, "SPUBLISH a x", ":2\r\n");
	received(speaker, ":2\r\n");
	close_town(&town);
}

static void test_pubsub_covers_all_workers(void **state)
{
	struct town town;
	struct hs_sim_client *one, *two, *asks;

	(void)state;
	open_town(&town, HS_OP_SCOPE_ALL);
	one = join(&town, 0);
	two = join(&town, 1);
	asks = join(&town, 1);
	listen_here(&town, one, "SUBSCRIBE a");
	listen_here(&town, two, "SUBSCRIBE a b");
	listen_here(&town, two, "PSUBSCRIBE x* y*");
	say(&town, asks, "PUBSUB CHANNELS");
	engine(&town, HS_OP_COMMAND, 1, "PUBSUB CHANNELS", "*2\r\n$1\r\nc\r\n$1\r\na\r\n");
	received(asks, "*3\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n");
	say(&town, asks, "PUBSUB NUMSUB a b c d");
	engine(&town, HS_OP_COMMAND, 1, "PUBSUB NUMSUB a b c d",
	       "*8\r\n$1\r\na\r\n:3\r\n$1\r\nb\r\n:1\r\n$1\r\nc\r\n:4\r\n$1\r\nd\r\n:0\r\n");
	received(asks,
		 "*8\r\n$1\r\na\r\n:4\r\n$1\r\nb\r\n:1\r\n$1\r\nc\r\n:4\r\n$1\r\nd\r\n:0\r\n");
	say(&town, asks, "PUBSUB NUMPAT");
	engine(&town, HS_OP_COMMAND, 1, "PUBSUB NUMPAT", ":5\r\n");
	say(&town, asks, "PUBSUB NUMPAT");
	engine(&town, HS_OP_COMMAND, 1, "PUBSUB NUMPAT", ":0\r\n");
	received(asks, ":5\r\n:2\r\n");
	close_town(&town);
}

static void test_pubsub_asks_every_node(void **state)
{
	struct town town;
	struct hs_sim_client *asks;

	(void)state;
	open_town(&town, HS_OP_SCOPE_SLOT);
	asks = join(&town, 0);
	say(&town, asks, "PUBSUB SHARDNUMSUB a");
	assert_int_equal(town.ops_count, PARTITIONS);
	for (int i = 0; i < PARTITIONS; i++) {
		assert_int_equal(town.ops[0]->partition, i);
		engine(&town, HS_OP_COMMAND, 0, "PUBSUB SHARDNUMSUB a", "*2\r\n$1\r\na\r\n:2\r\n");
	}
	received(asks, "*2\r\n$1\r\na\r\n:6\r\n");
	close_town(&town);
}

/* ---- order ---- */

static void test_publish_waits_for_other_partitions_only(void **state)
{
	struct town town;
	struct hs_sim_client *client;
	uint16_t slot = hs_slot_of(HS_LIT("foo"));

	(void)state;
	open_town(&town, HS_OP_SCOPE_SLOT);
	client = join(&town, 0);
	assert_int_not_equal(hs_slot_partition(slot, PARTITIONS), 0);
	say(&town, client, "SET foo 1");
	/* Same slot as SET, so the server keeps the order: both are sent at once. */
	say(&town, client, "SPUBLISH foo x");
	assert_int_equal(town.ops_count, 2);
	/* PUBLISH goes to another server: it waits for both replies. */
	say(&town, client, "PUBLISH a x");
	assert_int_equal(town.ops_count, 2);
	engine(&town, HS_OP_COMMAND, 0, "SET foo 1", "+OK\r\n");
	assert_int_equal(town.ops_count, 1);
	engine(&town, HS_OP_COMMAND, 0, "SPUBLISH foo x", ":0\r\n");
	engine(&town, HS_OP_COMMAND, 0, "PUBLISH a x", ":0\r\n");
	received(client, "+OK\r\n:0\r\n:0\r\n");
	close_town(&town);
}

static void test_a_transaction_with_both(void **state)
{
	struct town town;
	struct hs_sim_client *one, *client;
	const struct hs_op *exec;

	(void)state;
	open_town(&town, HS_OP_SCOPE_ALL);
	one = join(&town, 1);
	client = join(&town, 0);
	listen_here(&town, one, "SUBSCRIBE a");
	say(&town, client, "MULTI");
	say(&town, client, "SET foo 1");
	say(&town, client, "PUBLISH a x");
	say(&town, client, "SUBSCRIBE a");
	say(&town, client, "PUBLISH a y");
	client->received.len = 0;
	say(&town, client, "EXEC");
	assert_int_equal(town.ops_count, 1);
	exec = town.ops[0];
	assert_int_equal(exec->tx->count, 4);
	assert_int_equal(exec->tx->commands[1].answered.len, 0); /* PUBLISH: the server runs it */
	/* SUBSCRIBE: heatsink answers it. */
	assert_true(exec->tx->commands[2].answered.len > 0);
	engine(&town, HS_OP_EXEC, 0, "EXEC", "*4\r\n+OK\r\n:3\r\n+LATER\r\n:3\r\n");
	silent(client);
	tell(&town, (struct hs_event){.kind = HS_EVENT_MESSAGE,
				      .channel = HS_LIT("a"),
				      .payload = HS_LIT("x")});
	engine(&town, HS_OP_SUBSCRIBE, 0, "SUBSCRIBE a", "+OK\r\n");
	received(client, "*4\r\n+OK\r\n:3\r\n" SUBSCRIBED("a", 1, 1) ":4\r\n");
	received(one, MESSAGE("x"));
	close_town(&town);
}

/* ---- random runs ---- */

enum { CLIENTS = 8, TOPICS = 3, STEPS = 4000 };

struct model {
	struct town town;
	struct hs_prng prng;
	struct hs_sim_client *clients[CLIENTS];
	bool waits[CLIENTS];
	bool hears[CLIENTS][TOPICS];
	bool listens[WORKERS][TOPICS]; /* true: the engine is subscribed to the topic */
	uint32_t refusals;
};

static uint64_t below(struct model *model, uint64_t limit)
{
	return hs_prng_below(&model->prng, limit);
}

/* Reads the bytes that client `who` received: confirmations change the model, messages are counted. */
static uint32_t hear(struct model *model, int who)
{
	struct hs_buf *got = &model->clients[who]->received;
	uint32_t messages = 0;
	char *at;

	hs_buf_append(got, "", 1);
	for (at = got->data; *at;) {
		char word[32], name;
		unsigned count = 0;
		int used = 0;

		if (*at == '-') {
			model->refusals++;
			at = strchr(at, '\n') + 1;
			model->waits[who] = false;
			continue;
		}
		assert_int_equal(
			sscanf(at, "*3\r\n$%*d\r\n%31s\r\n$1\r\n%c\r\n%n", word, &name, &used), 2);
		at += used;
		if (strcmp(word, "message") == 0) {
			assert_true(model->hears[who][name - 'a']);
			messages++;
			at = strchr(strchr(at, '\n') + 1, '\n') + 1;
			continue;
		}
		model->hears[who][name - 'a'] = strcmp(word, "subscribe") == 0;
		model->waits[who] = false;
		assert_int_equal(sscanf(at, ":%u\r\n%n", &count, &used), 1);
		for (int i = 0; i < TOPICS; i++)
			count -= model->hears[who][i];
		assert_int_equal(count, 0);
		at += used;
	}
	got->len = 0;
	return messages;
}

static void receive_all(struct model *model)
{
	for (int i = 0; i < CLIENTS; i++) {
		assert_int_equal(hear(model, i), 0);
		for (int topic = 0; topic < TOPICS; topic++) {
			if (model->hears[i][topic])
				assert_true(model->listens[model->clients[i]->worker][topic]);
		}
	}
}

static void engine_acts(struct model *model)
{
	struct town *town = &model->town;
	size_t index;
	const struct hs_op *op;
	bool *listens;

	if (town->ops_count == 0)
		return;
	index = (size_t)below(model, town->ops_count);
	op = town->ops[index];
	listens = &model->listens[op->worker][op->argv[1].data[0] - 'a'];
	if (op->kind == HS_OP_SUBSCRIBE && below(model, 8) == 0) {
		answer_op(town, index, "-ERR not now\r\n");
	} else {
		*listens = op->kind == HS_OP_SUBSCRIBE;
		answer_op(town, index, "+OK\r\n");
	}
}

static void deliver_events(struct model *model)
{
	char name = (char)('a' + below(model, TOPICS));

	tell(&model->town, (struct hs_event){.kind = HS_EVENT_MESSAGE,
					     .channel = {&name, 1},
					     .payload = HS_LIT("x")});
	for (int i = 0; i < CLIENTS; i++)
		assert_int_equal(hear(model, i), model->hears[i][name - 'a']);
}

static void client_acts(struct model *model)
{
	int who = (int)below(model, CLIENTS);
	char text[32];

	if (below(model, 20) == 0) {
		disconnect(&model->town, model->clients[who]);
		model->clients[who] = join(&model->town, (uint32_t)below(model, WORKERS));
		memset(model->hears[who], 0, sizeof model->hears[who]);
		model->waits[who] = false;
		return;
	}
	if (model->waits[who])
		return;
	snprintf(text, sizeof text, "%s %c", below(model, 2) ? "SUBSCRIBE" : "UNSUBSCRIBE",
		 (char)('a' + below(model, TOPICS)));
	model->waits[who] = true;
	if (text[0] == 'U')
		/* No message is expected from here on. */
		model->hears[who][strchr(text, ' ')[1] - 'a'] = false;
	say(&model->town, model->clients[who], text);
}

static void test_random_subscribing_and_unsubscribing(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct model model = {0};

		open_town(&model.town, HS_OP_SCOPE_SLOT);
		hs_prng_init(&model.prng, seed);
		for (int i = 0; i < CLIENTS; i++)
			model.clients[i] = join(&model.town, (uint32_t)i % WORKERS);
		for (int step = 0; step < STEPS; step++) {
			switch (below(&model, 5)) {
			case 0:
			case 1:
				client_acts(&model);
				break;
			case 2:
			case 3:
				engine_acts(&model);
				break;
			default:
				deliver_events(&model);
			}
			receive_all(&model);
		}
		assert_true(model.refusals > 0);
		for (int i = 0; i < CLIENTS; i++)
			disconnect(&model.town, model.clients[i]);
		while (model.town.ops_count > 0)
			engine_acts(&model);
		for (int i = 0; i < WORKERS; i++) {
			for (int topic = 0; topic < TOPICS; topic++)
				assert_false(model.listens[i][topic]);
		}
		close_town(&model.town);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_confirmation_waits_for_the_engine),
		cmocka_unit_test(test_reset_waits_for_the_engine_too),
		cmocka_unit_test(test_slots_of_shard_channels),
		cmocka_unit_test(test_an_engine_that_cannot_subscribe),
		cmocka_unit_test(test_unsubscribing_and_subscribing_do_not_race),
		cmocka_unit_test(test_a_client_disconnects_while_the_engine_subscribes),
		cmocka_unit_test(test_events_reach_their_subscribers),
		cmocka_unit_test(test_a_shard_channel_whose_slot_moves),
		cmocka_unit_test(test_publish_does_not_count_heatsink_s_own_connections),
		cmocka_unit_test(test_pubsub_covers_all_workers),
		cmocka_unit_test(test_pubsub_asks_every_node),
		cmocka_unit_test(test_publish_waits_for_other_partitions_only),
		cmocka_unit_test(test_a_transaction_with_both),
		cmocka_unit_test(test_random_subscribing_and_unsubscribing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
