/* Goal: the sender of an internal call gets each event of the call exactly once, whether the engine answers
 * at once, later, after the timeout, or with an unknown outcome. Internal calls are invisible to clients.
 *
 * Method: a core with an engine played by the test, which answers operations on demand. */
#include "stages/stages.h"

#include "core/internal.h"
#include "core/state.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { OPS = 16, TIMEOUT_US = 1000 };

struct world {
	struct hs_core_calls calls;
	struct hs_log log;
	_Atomic uint64_t slowlog_ids;
	struct hs_core *core;
	struct hs_now now;
	struct hs_op *ops[OPS];
	size_t count;
	/* The engine's answer to every operation inside submit. NULL: the test answers later. */
	const char *at_once;
};

enum outcome {
	ANSWERED, /* by the engine: a reply, or an error of an operation that had no effect */
	UNKNOWN,  /* the operation may have run */
	LATE,	  /* timeout: the operation may have run, or may still run */
};

/* How often `then` was called, and with which outcomes and replies. Tests run one after the other. */
static struct {
	int calls, late;
	enum outcome outcome[OPS];
	char reply[OPS][64];
	bool stay; /* `then` does not end the call at its timeout */
} seen;

static enum hs_submit submit(void *context, struct hs_op *op)
{
	struct world *world = context;

	if (world->at_once) {
		hs_buf_append(op->out, world->at_once, strlen(world->at_once));
		return HS_SUBMIT_DONE;
	}
	assert_true(world->count < OPS);
	world->ops[world->count++] = op;
	return HS_SUBMIT_QUEUED;
}

static uint64_t mono_us(void *context)
{
	const struct world *world = context;

	return world->now.mono_us;
}

static void open_world(struct world *world, uint32_t worker)
{
	struct hs_core_options options = {.output_bytes_max = 1000, .slowlog_us = -1};
	struct hs_core_world core_world = {
		.commands = &hs_commands,
		.stages = hs_stages,
		.calls = &world->calls,
		.context = world,
		.log = &world->log,
		.worker = worker,
		.workers = 2,
		.partitions = 4,
		.node_id = "0123456789abcdef0123456789abcdef01234567",
		.slowlog_ids = &world->slowlog_ids,
	};

	*world = (struct world){.calls = {.submit = submit, .mono_us = mono_us},
				.now = {.mono_us = 1}};
	memset(&seen, 0, sizeof seen);
	world->core = hs_core_create(&core_world, &options);
	hs_core_tick(world->core, world->now);
}

static void close_world(struct world *world)
{
	assert_int_equal(world->core->self->inflight, 0);
	assert_int_equal(hs_counter_get(&world->core->stats.commands), 0);
	hs_core_destroy(&world->core);
}

static void answer(struct world *world, size_t number, const char *text)
{
	struct hs_op *op = world->ops[number];

	hs_buf_append(op->out, text, strlen(text));
	hs_core_complete(world->core, world->now, op);
}

static void pass(struct world *world, uint64_t us)
{
	world->now.mono_us += us;
	hs_core_tick(world->core, world->now);
}

static enum outcome outcome_of(const struct hs_request *request, uint32_t index)
{
	static const struct hs_bytes unknown = HS_LIT("-UNKNOWN");
	struct hs_bytes reply = hs_internal_reply(request, index);

	if (reply.len == 0)
		return LATE;
	return reply.len > unknown.len && memcmp(reply.data, unknown.data, unknown.len) == 0
		       ? UNKNOWN
		       : ANSWERED;
}

static void then(struct hs_core *core, struct hs_request *request)
{
	seen.calls++;
	for (uint32_t i = 0; i < request->parts_count; i++) {
		struct hs_bytes reply = hs_internal_reply(request, i);

		seen.outcome[i] = outcome_of(request, i);
		snprintf(seen.reply[i], sizeof seen.reply[i], "%.*s", (int)reply.len, reply.data);
	}
	if (hs_internal_timed_out(request)) {
		seen.late++;
		if (seen.stay)
			return;
	}
	hs_internal_end(core, request);
}

static struct hs_internal get_call(struct hs_bytes argv[2], uint64_t timeout_us)
{
	argv[0] = HS_LIT("GET");
	argv[1] = HS_LIT("k");
	return (struct hs_internal){
		.call = hs_call_of(hs_command_by_id(HS_CMD_ID_GET), 2, argv),
		.on_done = then,
		.slot = 5,
		.timeout_us = timeout_us,
	};
}

static void send(struct world *world, uint64_t timeout_us)
{
	struct hs_bytes argv[2];
	struct hs_internal internal = get_call(argv, timeout_us);

	hs_internal_send(world->core, hs_internal_prepare(world->core, &internal));
	memset(argv, 0, sizeof argv); /* the call has copied its arguments */
}

static void test_answered(void **state)
{
	struct world world;

	(void)state;
	open_world(&world, 0);
	send(&world, 0);
	assert_int_equal(world.ops[0]->slot, 5);
	assert_int_equal(world.ops[0]->partition, hs_core_partition(world.core, 5));
	assert_memory_equal(world.ops[0]->argv[1].data, "k", 1);
	assert_int_equal(seen.calls, 0);
	answer(&world, 0, "$1\r\nv\r\n");
	assert_int_equal(seen.calls, 1);
	assert_int_equal(seen.outcome[0], ANSWERED);
	assert_string_equal(seen.reply[0], "$1\r\nv\r\n");
	/* A refusal is an answer: the operation did not run. */
	send(&world, 0);
	answer(&world, 1, "-CLUSTERDOWN not served\r\n");
	assert_int_equal(seen.outcome[0], ANSWERED);
	close_world(&world);
}

static void test_answered_at_once(void **state)
{
	struct world world;

	(void)state;
	open_world(&world, 0);
	world.at_once = "+OK\r\n";
	send(&world, TIMEOUT_US);
	assert_int_equal(seen.calls, 1);
	assert_string_equal(seen.reply[0], "+OK\r\n");
	pass(&world, 2 * TIMEOUT_US);
	assert_int_equal(seen.calls, 1);
	close_world(&world);
}

static void test_outcome_unknown(void **state)
{
	struct world world;

	(void)state;
	open_world(&world, 0);
	send(&world, 0);
	answer(&world, 0, "-UNKNOWN the connection was lost\r\n");
	assert_int_equal(seen.outcome[0], UNKNOWN);
	close_world(&world);
}

/* A call that `then` ends at its timeout gets no further event. Its answer is dropped. */
static void test_answer_after_the_timeout(void **state)
{
	struct world world;

	(void)state;
	open_world(&world, 0);
	send(&world, 2 * TIMEOUT_US);
	send(&world, TIMEOUT_US); /* this call times out before the first one */
	pass(&world, TIMEOUT_US - 1);
	assert_int_equal(seen.calls, 0);
	pass(&world, 1);
	assert_int_equal(seen.calls, 1);
	assert_int_equal(seen.late, 1);
	assert_int_equal(seen.outcome[0], LATE);
	answer(&world, 1, "+OK\r\n");
	assert_int_equal(seen.calls, 1);
	answer(&world, 0, "+OK\r\n"); /* the first call is answered in time */
	assert_int_equal(seen.calls, 2);
	assert_int_equal(seen.late, 1);
	close_world(&world);
}

/* A call that `then` does not end at its timeout also gets the late answer. */
static void test_answer_after_the_timeout_awaited(void **state)
{
	struct world world;

	(void)state;
	open_world(&world, 0);
	seen.stay = true;
	send(&world, TIMEOUT_US);
	pass(&world, TIMEOUT_US);
	pass(&world, TIMEOUT_US);
	assert_int_equal(seen.calls, 1);
	answer(&world, 0, "+OK\r\n");
	assert_int_equal(seen.calls, 2);
	assert_int_equal(seen.late, 1);
	assert_string_equal(seen.reply[0], "+OK\r\n");
	close_world(&world);
}

static void test_several_parts(void **state)
{
	const struct hs_bytes argv[] = {HS_LIT("PEXPIRE"), HS_LIT(""), HS_LIT("100")};
	struct hs_internal internal = {
		.call = hs_call_of(hs_command_by_id(HS_CMD_ID_PEXPIRE), 3, argv),
		.on_done = then,
		.timeout_us = TIMEOUT_US,
	};
	struct world world;
	struct hs_request *request;

	(void)state;
	open_world(&world, 0);
	request = hs_internal_prepare_parts(world.core, &internal, 2);
	hs_internal_part(request, 0, HS_LIT("a"), 1);
	hs_internal_part(request, 1, HS_LIT("b"), HS_SLOTS - 1);
	hs_internal_send(world.core, request);
	assert_int_equal(world.count, 2);
	assert_memory_equal(world.ops[1]->argv[1].data, "b", 1);
	assert_memory_equal(world.ops[1]->argv[2].data, "100", 3);
	assert_int_equal(world.ops[0]->partition, 0);
	assert_int_equal(world.ops[1]->partition, 3);
	assert_int_not_equal(world.ops[0]->client, world.ops[1]->client);
	answer(&world, 1, ":1\r\n");
	pass(&world, TIMEOUT_US);
	assert_int_equal(seen.late, 1);
	assert_int_equal(seen.outcome[0], LATE);
	assert_int_equal(seen.outcome[1], ANSWERED);
	answer(&world, 0, ":1\r\n");
	assert_int_equal(seen.calls, 1);
	close_world(&world);
}

/* Sends a call of one operation under the client id `watcher`; 0: under a new id. */
static void send_tx(struct world *world, enum hs_op_kind kind, size_t argc,
		    const struct hs_bytes *argv, uint64_t watcher, const struct hs_op_tx *tx)
{
	struct hs_internal internal = {
		.call = hs_call_of(hs_command_find(argv[0]), argc, argv),
		.on_done = then,
		.slot = 5,
		.kind = kind,
		.client = watcher,
	};
	struct hs_request *request = hs_internal_prepare(world->core, &internal);

	if (kind != HS_OP_COMMAND)
		request->parts[0].op.watcher = watcher;
	request->parts[0].op.tx = tx;
	hs_internal_send(world->core, request);
}

/* Reads a value under WATCH and writes it, increased by one, in a transaction that the engine answers with
 * `answered`. Returns the client id. */
static uint64_t increase_watched(struct world *world, int value, const char *answered)
{
	const struct hs_bytes watch[] = {HS_LIT("WATCH"), HS_LIT("k")},
			      get[] = {HS_LIT("GET"), HS_LIT("k")}, exec[] = {HS_LIT("EXEC")};
	struct hs_bytes set[] = {HS_LIT("SET"), HS_LIT("k"), {NULL, 0}};
	struct hs_op_tx_command command = {
		.command = hs_command_by_id(HS_CMD_ID_SET), .argv = set, .argc = 3};
	struct hs_op_tx tx = {.commands = &command, .count = 1};
	uint64_t id = hs_internal_client(world->core);
	struct hs_op **ops = &world->ops[world->count];
	size_t first = world->count;
	char text[16];
	int read, calls = seen.calls;

	send_tx(world, HS_OP_WATCH, 2, watch, id, NULL);
	send_tx(world, HS_OP_COMMAND, 2, get, id, NULL);
	assert_int_equal(ops[0]->kind, HS_OP_WATCH);
	assert_int_equal(ops[0]->watcher, id);
	assert_int_equal(ops[0]->client, id);
	assert_int_equal(ops[1]->client, id);
	assert_true(ops[1]->ordered); /* the engine must run WATCH before GET */
	answer(world, first, "+OK\r\n");
	snprintf(text, sizeof text, "$1\r\n%d\r\n", value);
	answer(world, first + 1, text);
	assert_int_equal(sscanf(seen.reply[0], "$1\r\n%d\r\n", &read), 1);

	snprintf(text, sizeof text, "%d", read + 1);
	set[2] = hs_bytes_of(text);
	send_tx(world, HS_OP_EXEC, 1, exec, id, &tx);
	assert_int_equal(ops[2]->kind, HS_OP_EXEC);
	assert_int_equal(ops[2]->watcher, id);
	assert_int_equal(ops[2]->client, id);
	assert_true(hs_bytes_equal(ops[2]->tx->commands[0].argv[2], hs_bytes_of(text)));
	answer(world, first + 2, answered);
	assert_int_equal(seen.calls, calls + 3);
	assert_string_equal(seen.reply[0], answered);
	return id;
}

/* WATCH, GET and EXEC with one client id, in order. An aborted transaction is repeated with a new id. */
static void test_a_transaction_with_a_watch(void **state)
{
	struct world world;
	uint64_t lost;

	(void)state;
	open_world(&world, 0);
	lost = increase_watched(&world, 5, "*-1\r\n");
	assert_int_not_equal(increase_watched(&world, 6, "*1\r\n+OK\r\n"), lost);
	close_world(&world);
}

/* A transaction without WATCH is one call with one answer, under a client id of its own. */
static void test_a_transaction_without_a_watch(void **state)
{
	const struct hs_bytes incr[] = {HS_LIT("INCR"), HS_LIT("k")},
			      get[] = {HS_LIT("GET"), HS_LIT("k")}, exec[] = {HS_LIT("EXEC")};
	struct hs_op_tx_command commands[] = {
		{.command = hs_command_by_id(HS_CMD_ID_INCR), .argv = incr, .argc = 2},
		{.command = hs_command_by_id(HS_CMD_ID_GET), .argv = get, .argc = 2},
	};
	struct hs_op_tx tx = {.commands = commands, .count = 2};
	struct world world;

	(void)state;
	open_world(&world, 0);
	for (int i = 0; i < 2; i++)
		send_tx(&world, HS_OP_EXEC, 1, exec, 0, &tx);
	assert_int_equal(world.count, 2);
	assert_int_equal(world.ops[0]->kind, HS_OP_EXEC);
	assert_ptr_equal(world.ops[0]->tx, &tx);
	assert_int_equal(world.ops[0]->watcher, 0);
	assert_int_equal(world.ops[0]->partition, hs_core_partition(world.core, 5));
	assert_int_not_equal(world.ops[0]->client, world.ops[1]->client);
	answer(&world, 0, "*2\r\n:6\r\n$1\r\n6\r\n");
	assert_int_equal(seen.calls, 1);
	assert_int_equal(seen.outcome[0], ANSWERED);
	assert_string_equal(seen.reply[0], "*2\r\n:6\r\n$1\r\n6\r\n");
	answer(&world, 1, "-UNKNOWN the connection was lost\r\n");
	assert_int_equal(seen.calls, 2);
	assert_int_equal(seen.outcome[0], UNKNOWN);
	close_world(&world);
}

static void test_abandoned_before_it_was_sent(void **state)
{
	struct hs_bytes argv[2];
	struct hs_internal internal = get_call(argv, 0);
	struct world world;

	(void)state;
	open_world(&world, 0);
	hs_internal_end(world.core, hs_internal_prepare(world.core, &internal));
	assert_int_equal(world.count, 0);
	assert_int_equal(seen.calls, 0);
	close_world(&world);
}

static void retry(struct hs_core *core, struct hs_request *request)
{
	if (++seen.calls > 1) {
		hs_internal_end(core, request);
		return;
	}
	hs_internal_prepare_again(core, request);
	hs_internal_send(core, request);
}

static void test_retried(void **state)
{
	struct hs_bytes argv[2];
	struct hs_internal internal = get_call(argv, 0);
	struct world world;
	uint64_t first;

	(void)state;
	open_world(&world, 0);
	internal.on_done = retry;
	hs_internal_send(world.core, hs_internal_prepare(world.core, &internal));
	first = world.ops[0]->client;
	answer(&world, 0, "$1\r\n1\r\n");
	assert_int_equal(world.count, 2);
	assert_int_equal(world.ops[1]->out->len, 0);
	assert_int_equal(world.ops[1]->slot, 5);
	assert_int_not_equal(world.ops[1]->client, first);
	answer(&world, 1, "$1\r\n2\r\n");
	assert_int_equal(seen.calls, 2);
	close_world(&world);
}

/* An idempotent call is retried when its outcome is unknown. */
static void retry_if_unknown(struct hs_core *core, struct hs_request *request)
{
	struct hs_bytes reply = hs_internal_reply(request, 0);
	enum outcome outcome = outcome_of(request, 0);

	seen.outcome[seen.calls] = outcome;
	snprintf(seen.reply[seen.calls], sizeof seen.reply[0], "%.*s", (int)reply.len, reply.data);
	seen.calls++;
	if (outcome == UNKNOWN) {
		hs_internal_prepare_again(core, request);
		hs_internal_send(core, request);
	} else if (outcome == ANSWERED || !seen.stay) {
		hs_internal_end(core, request);
	}
}

/* The retry starts with a new timeout, and the second answer is not mistaken for the first. */
static void test_retried_after_an_unknown_outcome(void **state)
{
	struct hs_bytes argv[2];
	struct hs_internal internal = get_call(argv, TIMEOUT_US);
	struct world world;

	(void)state;
	open_world(&world, 0);
	internal.on_done = retry_if_unknown;
	hs_internal_send(world.core, hs_internal_prepare(world.core, &internal));
	memset(argv, 0, sizeof argv); /* the call has copied its arguments */
	pass(&world, TIMEOUT_US - 1);
	answer(&world, 0, "-UNKNOWN the connection was lost\r\n");
	assert_int_equal(world.count, 2);
	assert_int_equal(seen.calls, 1);
	assert_int_equal(seen.outcome[0], UNKNOWN);
	assert_int_equal(world.ops[1]->out->len, 0);
	assert_memory_equal(world.ops[1]->argv[1].data, "k", 1);
	pass(&world, TIMEOUT_US - 1);
	assert_int_equal(seen.calls, 1);
	answer(&world, 1, "$1\r\nv\r\n");
	assert_int_equal(seen.calls, 2);
	assert_int_equal(seen.outcome[1], ANSWERED);
	assert_string_equal(seen.reply[1], "$1\r\nv\r\n");
	pass(&world, 2 * TIMEOUT_US);
	assert_int_equal(seen.calls, 2);
	close_world(&world);
}

/* The first attempt is answered after its timeout, with an unknown outcome. The second attempt times out, too. */
static void test_retried_after_a_late_unknown_outcome(void **state)
{
	struct hs_bytes argv[2];
	struct hs_internal internal = get_call(argv, TIMEOUT_US);
	struct world world;

	(void)state;
	open_world(&world, 0);
	internal.on_done = retry_if_unknown;
	seen.stay = true;
	hs_internal_send(world.core, hs_internal_prepare(world.core, &internal));
	pass(&world, TIMEOUT_US);
	assert_int_equal(seen.calls, 1);
	assert_int_equal(seen.outcome[0], LATE);
	answer(&world, 0, "-UNKNOWN the connection was lost\r\n");
	assert_int_equal(seen.calls, 2);
	assert_int_equal(seen.outcome[1], UNKNOWN);
	seen.stay = false;
	pass(&world, TIMEOUT_US - 1);
	assert_int_equal(seen.calls, 2);
	pass(&world, 1);
	assert_int_equal(seen.calls, 3);
	assert_int_equal(seen.outcome[2], LATE);
	answer(&world, 1, "$1\r\nv\r\n"); /* the answer after the end is dropped */
	assert_int_equal(seen.calls, 3);
	close_world(&world);
}

/* Internal calls have distinct ids on all workers. None equals the id of a connection; those count from 1. */
static void test_ids_are_unique(void **state)
{
	struct world worlds[2];

	(void)state;
	for (uint32_t i = 0; i < 2; i++)
		open_world(&worlds[i], i);
	for (int i = 0; i < 100; i++) {
		uint64_t one = hs_internal_client(worlds[0].core);

		assert_true(one > UINT64_MAX / 2);
		assert_int_not_equal(one, hs_internal_client(worlds[1].core));
		assert_int_equal((UINT64_MAX - one) % 2, 0);
	}
	for (uint32_t i = 0; i < 2; i++)
		close_world(&worlds[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_answered),
		cmocka_unit_test(test_answered_at_once),
		cmocka_unit_test(test_outcome_unknown),
		cmocka_unit_test(test_answer_after_the_timeout),
		cmocka_unit_test(test_answer_after_the_timeout_awaited),
		cmocka_unit_test(test_several_parts),
		cmocka_unit_test(test_a_transaction_with_a_watch),
		cmocka_unit_test(test_a_transaction_without_a_watch),
		cmocka_unit_test(test_abandoned_before_it_was_sent),
		cmocka_unit_test(test_retried),
		cmocka_unit_test(test_retried_after_an_unknown_outcome),
		cmocka_unit_test(test_retried_after_a_late_unknown_outcome),
		cmocka_unit_test(test_ids_are_unique),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
