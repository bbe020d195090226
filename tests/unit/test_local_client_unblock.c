/* Goal: CLIENT UNBLOCK finds a client that is blocked in the engine, on whatever worker, and the engine ends the
 * wait. A client that is not blocked is left alone.
 *
 * Method: two cores with an engine behind shared connections, played by the test: the test holds submitted
 * operations and records which one the core asks it to unblock. A blocking command is put into a session as
 * core/dispatch.c would, with a command row of the test's own, because the command table has no blocking
 * command. */
#include "stages/stages.h"

#include "core/dispatch.h"
#include "core/state.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { WORKERS = 2 };

static const struct hs_command wait_row = {
	.name = "blwait",
	.id = HS_CMD_ID_GET,
	.place = HS_PLACE_PARTITION,
	.arity = -2,
	.flags = HS_CMD_WRITE | HS_CMD_BLOCKING,
	.key_first = 1,
	.key_last = 1,
	.key_step = 1,
};

struct world {
	struct hs_core *cores[WORKERS];
	struct hs_core_calls calls;
	struct hs_log log;
	_Atomic uint64_t slowlog_ids;
	struct hs_op *asked[16]; /* parts for other workers, not delivered yet */
	size_t asked_count;
	struct hs_op *held;	 /* the operation that the engine holds */
	struct hs_op *unblocked; /* the operation that the core asked the engine to end */
	struct hs_op *cancelled;
	bool with_error;
	bool waits; /* the engine's answer to unblock */
};

static enum hs_submit submit(void *context, struct hs_op *op)
{
	struct world *world = context;

	if (op->kind == HS_OP_PEER)
		world->asked[world->asked_count++] = op;
	else
		world->held = op;
	return HS_SUBMIT_QUEUED;
}

static bool unblock(void *context, struct hs_op *op, bool error)
{
	struct world *world = context;

	world->unblocked = op;
	world->with_error = error;
	return world->waits;
}

static void cancel(void *context, struct hs_op *op)
{
	struct world *world = context;

	world->cancelled = op;
}

static uint64_t mono_us(void *context)
{
	(void)context;
	return 1;
}

static const struct hs_now now = {.mono_us = 1};

static void open_world(struct world *world)
{
	struct hs_core_options options = {.output_bytes_max = 1 << 20, .slowlog_us = -1};

	*world = (struct world){.waits = true};
	world->calls = (struct hs_core_calls){
		.submit = submit, .cancel = cancel, .unblock = unblock, .mono_us = mono_us};
	for (uint32_t i = 0; i < WORKERS; i++) {
		struct hs_core_world core_world = {
			.commands = &hs_commands,
			.stages = hs_stages,
			.calls = &world->calls,
			.context = world,
			.log = &world->log,
			.worker = i,
			.workers = WORKERS,
			.partitions = 1,
			.shared_connections = true,
			.op_scope = HS_OP_SCOPE_ALL,
			.node_id = "0123456789abcdef0123456789abcdef01234567",
			.slowlog_ids = &world->slowlog_ids,
		};

		world->cores[i] = hs_core_create(&core_world, &options);
	}
}

static struct hs_session *connect_to(struct world *world, uint32_t worker, uint64_t id)
{
	struct hs_core_client client = {.id = id, .address = "a:1", .local_address = "b:2"};

	return hs_core_connect(world->cores[worker], now, &client);
}

/* Sends a command, delivers the parts for other workers, and returns the session's reply. */
static const char *ask(struct world *world, struct hs_session *session, const char *words)
{
	static char heard[1024];
	struct hs_buf *out = hs_session_out(session);

	hs_core_receive(world->cores[0], session, now, words, strlen(words));
	hs_core_receive(world->cores[0], session, now, "\r\n", 2);
	for (size_t i = 0; i < world->asked_count; i++) {
		struct hs_op *op = world->asked[i];

		hs_core_peer(world->cores[op->partition], now, op);
		hs_core_complete(world->cores[op->worker], now, op);
	}
	world->asked_count = 0;
	assert_true(out->len < sizeof heard);
	if (out->len > 0)
		memcpy(heard, out->data, out->len);
	heard[out->len] = '\0';
	out->len = 0;
	return heard;
}

static struct hs_request *block(struct world *world, uint32_t worker, struct hs_session *session)
{
	static const struct hs_bytes argv[] = {{"blwait", 6}, {"key", 3}};
	struct hs_core *core = world->cores[worker];
	struct hs_call call = hs_call_of(&wait_row, 2, argv);
	struct hs_request *request = hs_request_single(core, session, &call, 0);

	session->alone = true;
	hs_dispatch_submit(core, request, 0);
	assert_ptr_equal(world->held, &request->parts[0].op);
	return request;
}

static uint64_t blocked(struct world *world, uint32_t worker)
{
	return hs_counter_get(&hs_core_stats(world->cores[worker])->blocked);
}

static void close_world(struct world *world)
{
	for (uint32_t i = 0; i < WORKERS; i++) {
		struct hs_link *sessions = &world->cores[i]->sessions;

		while (!hs_list_empty(sessions))
			hs_core_disconnect(world->cores[i],
					   hs_list_entry(sessions->next, struct hs_session, all));
		assert_int_equal(blocked(world, i), 0);
		hs_core_destroy(&world->cores[i]);
	}
}

static void test_on_any_worker(void **state)
{
	(void)state;
	for (uint32_t worker = 0; worker < WORKERS; worker++) {
		struct world world;
		struct hs_session *asks, *waits;

		open_world(&world);
		asks = connect_to(&world, 0, 1);
		connect_to(&world, 0, 2);
		connect_to(&world, 1, 3);
		waits = connect_to(&world, worker, 4);
		block(&world, worker, waits);
		assert_int_equal(blocked(&world, worker), 1);
		assert_non_null(strstr(ask(&world, asks, "CLIENT LIST ID 4"), " flags=b "));
		assert_string_equal(ask(&world, asks, "CLIENT UNBLOCK 4"), ":1\r\n");
		assert_ptr_equal(world.unblocked, world.held);
		assert_false(world.with_error);
		assert_string_equal(ask(&world, asks, "CLIENT UNBLOCK 4 TIMEOUT"), ":1\r\n");
		assert_false(world.with_error);
		assert_string_equal(ask(&world, asks, "CLIENT UNBLOCK 4 error"), ":1\r\n");
		assert_true(world.with_error);
		/* The engine ends the wait, and the client gets the engine's reply. */
		hs_buf_append(world.held->out, "*-1\r\n", 5);
		hs_core_complete(world.cores[worker], now, world.held);
		assert_int_equal(blocked(&world, worker), 0);
		assert_int_equal(hs_session_out(waits)->len, 5);
		hs_session_out(waits)->len = 0;
		world.unblocked = NULL;
		assert_string_equal(ask(&world, asks, "CLIENT UNBLOCK 4"), ":0\r\n");
		assert_null(world.unblocked);
		assert_non_null(strstr(ask(&world, asks, "CLIENT LIST ID 4"), " flags=N "));
		close_world(&world);
	}
}

static void test_clients_that_do_not_wait(void **state)
{
	struct world world;
	struct hs_session *asks, *waits;

	(void)state;
	open_world(&world);
	asks = connect_to(&world, 0, 1);
	waits = connect_to(&world, 1, 2);
	assert_string_equal(ask(&world, asks, "CLIENT UNBLOCK 1"), ":0\r\n");
	assert_string_equal(ask(&world, asks, "CLIENT UNBLOCK 2"), ":0\r\n");
	assert_string_equal(ask(&world, asks, "CLIENT UNBLOCK 99"), ":0\r\n");
	assert_string_equal(ask(&world, asks, "CLIENT UNBLOCK -1 ERROR"), ":0\r\n");
	assert_null(world.unblocked);
	/* The engine says that the operation does not wait: not sent yet, or answered already. */
	block(&world, 1, waits);
	world.waits = false;
	assert_string_equal(ask(&world, asks, "CLIENT UNBLOCK 2"), ":0\r\n");
	/* The client has disconnected, but its operation still waits in the engine. */
	world.waits = true;
	world.unblocked = NULL;
	hs_core_disconnect(world.cores[1], waits);
	assert_string_equal(ask(&world, asks, "CLIENT UNBLOCK 2"), ":0\r\n");
	assert_null(world.unblocked);
	hs_buf_append(world.held->out, "*-1\r\n", 5);
	hs_core_complete(world.cores[1], now, world.held);
	close_world(&world);
}

/* A client closes its side while it is blocked. The core still sends earlier replies, then closes the connection
 * and cancels the wait, so that the server takes no element for a client that is gone. */
static void test_a_disconnected_client_does_not_wait(void **state)
{
	struct world world;
	struct hs_session *waits, *asks;

	(void)state;
	open_world(&world);
	waits = connect_to(&world, 0, 4);
	block(&world, 0, waits);
	assert_false(hs_session_closing(waits));
	hs_core_end(world.cores[0], waits);
	assert_true(hs_session_closing(waits));
	assert_false(hs_session_cut(waits));
	assert_null(world.cancelled);
	/* The server disconnects a session when it has sent everything. */
	hs_core_disconnect(world.cores[0], waits);
	assert_ptr_equal(world.cancelled, world.held);
	hs_buf_append(world.held->out, "-GONE\r\n", 7);
	hs_core_complete(world.cores[0], now, world.held);
	assert_int_equal(blocked(&world, 0), 0);
	world.cancelled = NULL;
	/* A command that does not block is answered before the connection closes. */
	asks = connect_to(&world, 0, 5);
	assert_string_equal(ask(&world, asks, "GET a"), "");
	hs_core_end(world.cores[0], asks);
	assert_false(hs_session_closing(asks));
	assert_null(world.cancelled);
	hs_buf_append(world.held->out, "$-1\r\n", 5);
	hs_core_complete(world.cores[0], now, world.held);
	assert_true(hs_session_closing(asks));
	assert_int_equal(hs_session_out(asks)->len, 5);
	close_world(&world);
}

static void test_mistakes(void **state)
{
	struct world world;
	struct hs_session *asks;

	(void)state;
	open_world(&world);
	asks = connect_to(&world, 0, 1);
	assert_string_equal(ask(&world, asks, "CLIENT UNBLOCK x"),
			    "-ERR value is not an integer or out of range\r\n");
	assert_string_equal(ask(&world, asks, "CLIENT UNBLOCK x y"),
			    "-ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR\r\n");
	assert_string_equal(ask(&world, asks, "CLIENT UNBLOCK 1 ERROR x"),
			    "-ERR unknown subcommand or wrong number of arguments for 'UNBLOCK'. "
			    "Try CLIENT HELP.\r\n");
	assert_string_equal(ask(&world, asks, "CLIENT UNBLOCK"),
			    "-ERR wrong number of arguments for 'client|unblock' command\r\n");
	close_world(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_on_any_worker),
		cmocka_unit_test(test_clients_that_do_not_wait),
		cmocka_unit_test(test_a_disconnected_client_does_not_wait),
		cmocka_unit_test(test_mistakes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
