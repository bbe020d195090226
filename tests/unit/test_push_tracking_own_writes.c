/* Goal: in front of servers, a tracking client that writes a key it has read gets the invalidation right after
 * the reply to the write, whatever path the write takes (alone, split, in a transaction, folded) and however
 * the write ends. A value that the client reads after the write stays tracked.
 *
 * Method: a core on top of an engine with shared connections; the test is the engine: it holds operations back,
 * answers them and reports changes. */
#include "stages/stages.h"

#include "core/dispatch.h"
#include "core/state.h"
#include "push/tracking.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { OPS_MAX = 64 };

#define TOLD(length, key) ">2\r\n$10\r\ninvalidate\r\n*1\r\n$" #length "\r\n" key "\r\n"
#define TOLD_A TOLD(1, "a")
#define TOLD_ALL ">2\r\n$10\r\ninvalidate\r\n_\r\n"
#define UNKNOWN "-UNKNOWN the connection was lost\r\n"

/* The keys of a script command, as a server describes them: an argument holds their number, the keys follow. */
static const struct hs_key_spec script_keys = {
	.search = HS_KEY_SEARCH_INDEX,
	.index = 2,
	.find = HS_KEY_FIND_KEYNUM,
	.first = 1,
	.step = 1,
	.flags = HS_KEY_RW | HS_KEY_ACCESS | HS_KEY_UPDATE,
};

static const struct hs_command script_row = {
	.name = "eval",
	.id = HS_CMD_IDS,
	.place = HS_PLACE_PARTITION,
	.arity = -3,
	.flags = HS_CMD_WRITE | HS_CMD_EFFECT_UNKNOWN | HS_CMD_MOVABLEKEYS,
	.key_specs = &script_keys,
	.key_specs_count = 1,
};

struct world {
	struct hs_core *core;
	struct hs_core_calls calls;
	struct hs_log log;
	_Atomic uint64_t slowlog_ids;
	struct hs_op *ops[OPS_MAX]; /* operations in flight, oldest first */
	size_t count;
	struct hs_session *client;
	uint64_t last_id;
};

static const struct hs_now now = {.mono_us = 1};

static enum hs_submit submit(void *context, struct hs_op *op)
{
	struct world *world = context;

	if (op->kind == HS_OP_TRACK || op->kind == HS_OP_UNTRACK) {
		hs_buf_append(op->out, "+OK\r\n", 5);
		return HS_SUBMIT_DONE;
	}
	if (op->kind == HS_OP_PEER) {
		hs_core_peer(world->core, now, op);
		return HS_SUBMIT_DONE;
	}
	assert_true(world->count < OPS_MAX);
	world->ops[world->count++] = op;
	return HS_SUBMIT_QUEUED;
}

static uint64_t mono_us(void *context)
{
	(void)context;
	return 1;
}

static struct hs_session *connect_to(struct world *world)
{
	struct hs_core_client client = {
		.id = ++world->last_id, .address = "a:1", .local_address = "b:2"};

	return hs_core_connect(world->core, now, &client);
}

static void say(struct world *world, struct hs_session *session, const char *words)
{
	hs_core_receive(world->core, session, now, words, strlen(words));
	hs_core_receive(world->core, session, now, "\r\n", 2);
}

static void receives(struct hs_session *session, const char *text)
{
	struct hs_buf *out = hs_session_out(session);
	char received[2048];

	assert_true(out->len < sizeof received);
	if (out->len > 0)
		memcpy(received, out->data, out->len);
	received[out->len] = '\0';
	out->len = 0;
	assert_string_equal(received, text);
}

/* Answers the operation in flight at `at`. */
static void answer(struct world *world, size_t at, const char *reply)
{
	struct hs_op *op = world->ops[at];

	assert_true(at < world->count);
	memmove(world->ops + at, world->ops + at + 1, (--world->count - at) * sizeof *world->ops);
	hs_buf_append(op->out, reply, strlen(reply));
	hs_core_complete(world->core, now, op);
}

/* The server reports that the key has changed. */
static void changed(struct world *world, const char *key)
{
	struct hs_bytes keys[] = {hs_bytes_of(key)};
	struct hs_event event = {.kind = HS_EVENT_CHANGED, .keys = keys, .keys_count = 1};

	hs_core_event(world->core, now, &event);
}

static void open_world(struct world *world, const char *tracking)
{
	struct hs_core_options options = {.output_bytes_max = 1 << 20, .slowlog_us = -1};
	struct hs_core_world core_world = {
		.commands = &hs_commands,
		.stages = hs_stages,
		.calls = &world->calls,
		.context = world,
		.log = &world->log,
		.workers = 1,
		.partitions = 4,
		.shared_connections = true,
		.op_scope = HS_OP_SCOPE_PARTITION,
		.node_id = "0123456789abcdef0123456789abcdef01234567",
		.slowlog_ids = &world->slowlog_ids,
	};

	*world = (struct world){.calls = {.submit = submit, .mono_us = mono_us}};
	world->core = hs_core_create(&core_world, &options);
	world->client = connect_to(world);
	say(world, world->client, "HELLO 3");
	hs_session_out(world->client)->len = 0;
	say(world, world->client, tracking);
	receives(world->client, "+OK\r\n");
}

static void close_world(struct world *world)
{
	struct hs_link *sessions = &world->core->sessions;

	while (world->count > 0)
		answer(world, 0, "+OK\r\n");
	while (!hs_list_empty(sessions))
		hs_core_disconnect(world->core,
				   hs_list_entry(sessions->next, struct hs_session, all));
	/* Answers the operation by which the worker stops tracking, if there is one. */
	while (world->count > 0)
		answer(world, 0, "+OK\r\n");
	hs_core_destroy(&world->core);
}

static void read_key(struct world *world, const char *words, const char *reply)
{
	say(world, world->client, words);
	answer(world, 0, reply);
	receives(world->client, reply);
}

static void test_invalidation_comes_with_the_reply(void **state)
{
	struct world world;

	(void)state;
	open_world(&world, "CLIENT TRACKING ON");
	read_key(&world, "GET a", "$1\r\n1\r\n");
	say(&world, world.client, "SET a 2");
	receives(world.client, "");
	answer(&world, 0, "+OK\r\n");
	receives(world.client, "+OK\r\n" TOLD_A);
	/* The server reports the same write: the client has not read the key since, so it gets no message. */
	changed(&world, "a");
	receives(world.client, "");
	/* The client has not read the key: no message follows this write. */
	say(&world, world.client, "SET a 3");
	answer(&world, 0, "+OK\r\n");
	receives(world.client, "+OK\r\n");
	/* The server also reports a write by another client, and the client gets a message. */
	read_key(&world, "GET a", "$1\r\n3\r\n");
	changed(&world, "a");
	receives(world.client, TOLD_A);
	close_world(&world);
}

/* The outcome of the write is unknown: the client gets the invalidation, because the server may have run the
 * write. */
static void test_unknown_outcomes_invalidate_too(void **state)
{
	struct world world;

	(void)state;
	open_world(&world, "CLIENT TRACKING ON");
	read_key(&world, "GET a", "$1\r\n1\r\n");
	say(&world, world.client, "SET a 2");
	answer(&world, 0, UNKNOWN);
	receives(world.client, UNKNOWN TOLD_A);
	close_world(&world);
}

/* The invalidation follows the reply to the write and precedes the replies to later requests. The client has
 * read the key again, so it gets another message when the server's report arrives: the report may be about
 * either of two writes. */
static void test_pipelined(void **state)
{
	struct world world;

	(void)state;
	open_world(&world, "CLIENT TRACKING ON");
	read_key(&world, "GET a", "$1\r\n1\r\n");
	say(&world, world.client, "GET b");
	say(&world, world.client, "SET a 2");
	say(&world, world.client, "GET a");
	say(&world, world.client, "GET b");
	answer(&world, 1, "+OK\r\n"); /* the engine answers the write before the earlier GET b */
	receives(world.client, "");
	answer(&world, 0, "$1\r\nb\r\n");
	receives(world.client, "$1\r\nb\r\n+OK\r\n" TOLD_A);
	answer(&world, 0, "$1\r\n2\r\n");
	receives(world.client, "$1\r\n2\r\n");
	answer(&world, 0, "$1\r\nb\r\n");
	receives(world.client, "$1\r\nb\r\n");
	changed(&world, "a");
	receives(world.client, TOLD_A);
	close_world(&world);
}

/* The server's report comes before the reply to the write: its message is delivered after the replies to all
 * requests in flight, and another message follows the reply to the write. */
static void test_the_server_s_invalidation_comes_first(void **state)
{
	struct world world;

	(void)state;
	open_world(&world, "CLIENT TRACKING ON");
	read_key(&world, "GET a", "$1\r\n1\r\n");
	say(&world, world.client, "SET a 2");
	say(&world, world.client, "GET b");
	changed(&world, "a");
	receives(world.client, "");
	answer(&world, 0, "+OK\r\n");
	receives(world.client, "+OK\r\n" TOLD_A);
	answer(&world, 0, "$1\r\nb\r\n");
	receives(world.client, "$1\r\nb\r\n" TOLD_A);
	close_world(&world);
}

/* A full table does not evict a key while its reader has a write in flight; no message about an eviction is
 * sent. */
static void test_the_table_is_full(void **state)
{
	struct world world;

	(void)state;
	open_world(&world, "CLIENT TRACKING ON");
	world.core->options.tracking_keys_max = 1;
	say(&world, world.client, "SET a 2");
	say(&world, world.client, "SET b 3");
	say(&world, world.client, "GET a");
	say(&world, world.client, "GET b");
	assert_int_equal(hs_counter_get(&hs_push_stats(world.core)->tracking_keys), 2);
	answer(&world, 0, "+OK\r\n");
	answer(&world, 0, "+OK\r\n");
	receives(world.client, "+OK\r\n" TOLD_A "+OK\r\n" TOLD(1, "b"));
	answer(&world, 0, "$1\r\n2\r\n");
	answer(&world, 0, "$1\r\n3\r\n");
	receives(world.client, "$1\r\n2\r\n$1\r\n3\r\n");
	assert_int_equal(hs_counter_get(&hs_push_stats(world.core)->tracking_evicted), 0);
	hs_core_tick(world.core, now); /* no write is in flight: a key is evicted */
	assert_int_equal(hs_counter_get(&hs_push_stats(world.core)->tracking_keys), 1);
	assert_int_equal(hs_counter_get(&hs_push_stats(world.core)->tracking_evicted), 1);
	close_world(&world);
}

static void test_a_flush_meanwhile(void **state)
{
	struct hs_event everything = {.kind = HS_EVENT_CHANGED_ALL};
	struct world world;

	(void)state;
	open_world(&world, "CLIENT TRACKING ON");
	read_key(&world, "GET a", "$1\r\n1\r\n");
	say(&world, world.client, "SET a 2");
	say(&world, world.client, "GET b");
	hs_core_event(world.core, now, &everything);
	/* The reply to this SET comes after the message that everything changed. */
	say(&world, world.client, "SET b 3");
	answer(&world, 0, "+OK\r\n");
	receives(world.client, "+OK\r\n" TOLD_A);
	answer(&world, 0, "$1\r\nb\r\n");
	receives(world.client, "$1\r\nb\r\n" TOLD_ALL);
	answer(&world, 0, "+OK\r\n");
	receives(world.client, "+OK\r\n");
	/* Later writes bring no message: the client has not read the key since everything was invalidated. */
	for (int i = 0; i < 4; i++) {
		say(&world, world.client, "SET a 4");
		answer(&world, 0, "+OK\r\n");
		receives(world.client, "+OK\r\n");
	}
	/* A flush comes while the transaction is in flight: after the reply to EXEC, the client gets an
	 * invalidation for each key that the transaction wrote. */
	say(&world, world.client, "MULTI");
	say(&world, world.client, "SET a 5");
	say(&world, world.client, "EXEC");
	hs_core_event(world.core, now, &everything);
	answer(&world, 0, "*1\r\n+OK\r\n");
	receives(world.client, "+OK\r\n+QUEUED\r\n*1\r\n+OK\r\n" TOLD_ALL TOLD_A);
	close_world(&world);
}

static void test_several_keys(void **state)
{
	struct world world;

	(void)state;
	open_world(&world, "CLIENT TRACKING ON");
	read_key(&world, "GET a", "$1\r\n1\r\n");
	read_key(&world, "GET foo", "$1\r\n1\r\n");
	say(&world, world.client, "MSET a 1 b 2 foo 3");
	while (world.count > 1)
		answer(&world, 0, "+OK\r\n");
	receives(world.client, "");
	answer(&world, 0, "+OK\r\n");
	receives(world.client, "+OK\r\n" TOLD_A TOLD(3, "foo"));
	close_world(&world);
}

static void test_in_a_transaction(void **state)
{
	struct world world;

	(void)state;
	open_world(&world, "CLIENT TRACKING ON");
	read_key(&world, "GET a", "$1\r\n1\r\n");
	say(&world, world.client, "MULTI");
	say(&world, world.client, "SET a 2");
	say(&world, world.client, "PING");
	say(&world, world.client, "GET a");
	say(&world, world.client, "EXEC");
	receives(world.client, "+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n");
	answer(&world, 0, "*3\r\n+OK\r\n+PONG\r\n$1\r\n2\r\n");
	receives(world.client, "*3\r\n+OK\r\n+PONG\r\n$1\r\n2\r\n" TOLD_A);
	close_world(&world);
}

static void test_by_prefix(void **state)
{
	struct world world;

	(void)state;
	open_world(&world, "CLIENT TRACKING ON BCAST PREFIX user: PREFIX item:");
	say(&world, world.client, "SET user:1 x");
	answer(&world, 0, "+OK\r\n");
	receives(world.client, "+OK\r\n" TOLD(6, "user:1"));
	say(&world, world.client, "SET other x");
	answer(&world, 0, "+OK\r\n");
	receives(world.client, "+OK\r\n");
	close_world(&world);
}

/* With NOLOOP a client gets no invalidation for its own write; with OPTIN, only for keys that it read after
 * CLIENT CACHING YES. */
static void test_noloop_suppresses_own_writes(void **state)
{
	struct world world;

	(void)state;
	open_world(&world, "CLIENT TRACKING ON NOLOOP");
	read_key(&world, "GET a", "$1\r\n1\r\n");
	say(&world, world.client, "SET a 2");
	answer(&world, 0, "+OK\r\n");
	receives(world.client, "+OK\r\n");
	/* A known limit: the report does not name the writer, so NOLOOP does not suppress it. */
	changed(&world, "a");
	receives(world.client, TOLD_A);
	close_world(&world);

	open_world(&world, "CLIENT TRACKING ON OPTIN");
	read_key(&world, "GET a", "$1\r\n1\r\n");
	say(&world, world.client, "CLIENT CACHING YES");
	receives(world.client, "+OK\r\n");
	read_key(&world, "GET b", "$1\r\n1\r\n");
	say(&world, world.client, "DEL a b");
	while (world.count > 0)
		answer(&world, 0, ":1\r\n");
	receives(world.client, ":2\r\n" TOLD(1, "b"));
	close_world(&world);
}

/* In front of servers any unknown command may be a write: of the keys that it names or, if it names no keys, of
 * all keys. */
static void test_commands_that_name_no_keys(void **state)
{
	static const struct hs_bytes keys[] = {{"eval", 4}, {"x", 1}, {"1", 1}, {"a", 1}};
	static const struct hs_bytes none[] = {{"eval", 4}, {"x", 1}, {"0", 1}};
	struct world world;

	(void)state;
	open_world(&world, "CLIENT TRACKING ON");
	for (int named = 0; named < 2; named++) {
		struct hs_call call = hs_call_of(&script_row, named ? 4 : 3, named ? keys : none);
		struct hs_request *request;

		read_key(&world, "GET a", "$1\r\n1\r\n");
		request = hs_request_single(world.core, world.client, &call, 0);
		hs_dispatch_submit(world.core, request, 0);
		answer(&world, 0, ":1\r\n");
		receives(world.client, named ? ":1\r\n" TOLD_A : ":1\r\n" TOLD_ALL);
	}
	say(&world, world.client, "FLUSHALL");
	while (world.count > 0)
		answer(&world, 0, "+OK\r\n");
	receives(world.client, "+OK\r\n" TOLD_ALL);
	/* FLUSHALL in a transaction: heatsink runs it after the commit, once for each partition; the client
	 * gets one message. */
	say(&world, world.client, "MULTI");
	say(&world, world.client, "FLUSHALL");
	say(&world, world.client, "EXEC");
	while (world.count > 0)
		answer(&world, 0, "+OK\r\n");
	receives(world.client, "+OK\r\n+QUEUED\r\n*1\r\n+OK\r\n" TOLD_ALL);
	close_world(&world);
}

/* With REDIRECT, the invalidation goes to another connection as soon as the write has its reply; replies to
 * other requests do not delay it. */
static void test_redirected(void **state)
{
	struct world world;
	struct hs_session *listener;

	(void)state;
	open_world(&world, "CLIENT TRACKING ON");
	listener = connect_to(&world);
	say(&world, listener, "SUBSCRIBE __redis__:invalidate");
	answer(&world, 0, "+OK\r\n"); /* answers the operation that subscribes the engine */
	receives(listener, "*3\r\n$9\r\nsubscribe\r\n$20\r\n__redis__:invalidate\r\n:1\r\n");
	say(&world, world.client, "CLIENT TRACKING ON REDIRECT 2");
	receives(world.client, "+OK\r\n");
	read_key(&world, "GET a", "$1\r\n1\r\n");
	say(&world, world.client, "SET a 2");
	say(&world, world.client, "GET b");
	receives(listener, "");
	answer(&world, 0, "+OK\r\n");
	receives(world.client, "+OK\r\n");
	receives(listener,
		 "*3\r\n$7\r\nmessage\r\n$20\r\n__redis__:invalidate\r\n*1\r\n$1\r\na\r\n");
	close_world(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_invalidation_comes_with_the_reply),
		cmocka_unit_test(test_unknown_outcomes_invalidate_too),
		cmocka_unit_test(test_pipelined),
		cmocka_unit_test(test_the_server_s_invalidation_comes_first),
		cmocka_unit_test(test_the_table_is_full),
		cmocka_unit_test(test_a_flush_meanwhile),
		cmocka_unit_test(test_several_keys),
		cmocka_unit_test(test_in_a_transaction),
		cmocka_unit_test(test_by_prefix),
		cmocka_unit_test(test_noloop_suppresses_own_writes),
		cmocka_unit_test(test_commands_that_name_no_keys),
		cmocka_unit_test(test_redirected),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
