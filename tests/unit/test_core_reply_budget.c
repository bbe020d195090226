/* Goal: in front of servers, the core requests no more large replies than the client can take, and no more than
 * one partition may have in flight. Small replies are never held back; held commands continue in order
 * (core/reply_budget.h).
 *
 * Method: a core with an engine behind shared connections. The test answers as the engine, and lets clients read
 * when it wants. */
#include "stages/stages.h"

#include "core/hold.h"
#include "core/state.h"

#include "base/limits.h"
#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* FIRST: requests in flight before any reply size is known, a quarter of MOST divided by the first estimate of a
 * reply. */
enum { CLIENTS = 12, OPS = 4096, FIRST = 16 };

#define MOST (16 * HS_MIB)

struct world {
	struct hs_core_calls calls;
	struct hs_log log;
	_Atomic uint64_t slowlog_ids;
	struct hs_core *core;
	struct hs_session *clients[CLIENTS];
	struct hs_op *ops[OPS]; /* operations in flight, oldest first */
	size_t count;
	char *value; /* a reply of 1 MiB */
};

static const struct hs_now now = {.mono_us = 1};

static enum hs_submit submit(void *context, struct hs_op *op)
{
	struct world *world = context;

	assert_true(world->count < OPS);
	world->ops[world->count++] = op;
	return HS_SUBMIT_QUEUED;
}

static uint64_t mono_us(void *context)
{
	(void)context;
	return 1;
}

static void open_world(struct world *world)
{
	struct hs_core_options options = {.output_bytes_max = 32 * HS_MIB,
					  .engine_inflight_bytes_max = MOST,
					  .slowlog_us = -1};
	struct hs_core_world core_world = {
		.commands = &hs_commands,
		.stages = hs_stages,
		.calls = &world->calls,
		.context = world,
		.log = &world->log,
		.workers = 1,
		.partitions = 1,
		.shared_connections = true,
		.op_scope = HS_OP_SCOPE_ALL,
		.node_id = "0123456789abcdef0123456789abcdef01234567",
		.slowlog_ids = &world->slowlog_ids,
	};

	*world = (struct world){.calls = {.submit = submit, .mono_us = mono_us}};
	world->core = hs_core_create(&core_world, &options);
	for (uint64_t i = 0; i < CLIENTS; i++) {
		struct hs_core_client client = {.id = i + 1, .address = "a", .local_address = "b"};

		world->clients[i] = hs_core_connect(world->core, now, &client);
	}
	world->value = hs_mem_zalloc(HS_MIB + 32);
	snprintf(world->value, 32, "$%d\r\n", (int)HS_MIB);
	memset(world->value + strlen(world->value), 'x', HS_MIB);
	memcpy(world->value + strlen(world->value), "\r\n", 2);
}

static void close_world(struct world *world)
{
	for (int i = 0; i < CLIENTS; i++)
		hs_core_disconnect(world->core, world->clients[i]);
	while (world->count > 0) {
		struct hs_op *op = world->ops[--world->count];

		op->answer = hs_bytes_of("+gone\r\n");
		hs_core_complete(world->core, now, op);
	}
	assert_true(hs_list_empty(&world->core->reply_budget.held));
	assert_int_equal(world->core->reply_budget.bytes[0], 0);
	hs_core_destroy(&world->core);
	hs_mem_free(&world->value);
}

static void say(struct world *world, int client, const char *words, int times)
{
	struct hs_buf text = {0};

	for (int i = 0; i < times; i++)
		hs_buf_printf(&text, "%s\r\n", words);
	hs_core_receive(world->core, world->clients[client], now, text.data, text.len);
	hs_buf_deinit(&text);
}

/* Answers the oldest operation in flight and ends the round of events. */
static void reply(struct world *world, const char *text)
{
	struct hs_op *op = world->ops[0];

	assert_true(world->count > 0);
	memmove(world->ops, world->ops + 1, --world->count * sizeof *world->ops);
	op->answer = hs_bytes_of(text);
	hs_core_complete(world->core, now, op);
	hs_core_flush(world->core, now);
}

/* The client reads all replies there are. Returns the number of bytes. */
static size_t read_all(struct world *world, int client)
{
	size_t len = hs_session_out(world->clients[client])->len;

	hs_buf_clear(hs_session_out(world->clients[client]), 0);
	if (hs_core_waits_for_reader(world->clients[client]))
		hs_core_sent(world->core, world->clients[client], now);
	return len;
}

static void test_a_client_that_does_not_read(void **state)
{
	static struct world world;
	size_t asked = 0, len = strlen("$1048576\r\n") + HS_MIB + 2, got = 0;

	(void)state;
	open_world(&world);
	say(&world, 0, "GET big", 300);
	assert_int_equal(world.count, FIRST);
	for (; world.count > 0; asked++)
		reply(&world, world.value);
	/* The engine has answered the requests that were sent before any reply size was known. No further request
	 * is sent, because a quarter of output-limit is unread. */
	assert_int_equal(asked, FIRST);
	assert_false(hs_session_cut(world.clients[0]));
	assert_true(hs_counter_get(&hs_core_stats(world.core)->holds[HS_HOLD_REPLY_BUDGET]) > 0);
	assert_string_equal(hs_hold_text(world.core, world.clients[0]), "engine-inflight-bytes");
	/* When the client reads, it gets all replies, a few at a time. */
	while (asked < 300) {
		got += read_all(&world, 0);
		assert_in_range(world.count, 1, 4);
		for (; world.count > 0; asked++)
			reply(&world, world.value);
	}
	got += read_all(&world, 0);
	assert_int_equal(got, 300 * len);
	close_world(&world);
}

static void test_clients_share_a_partition_s_budget(void **state)
{
	static struct world world;

	(void)state;
	open_world(&world);
	for (int i = 1; i < CLIENTS; i++)
		say(&world, i, "GET big", 300);
	assert_int_equal(world.count, MOST / HS_REPLY_GUESS_BYTES);
	reply(&world, world.value);
	/* Requests in flight count with the estimate at their start. New requests count with the new estimate. */
	for (int i = 0; i < 200 && world.count > 0; i++) {
		reply(&world, world.value);
		assert_true(world.core->reply_budget.bytes[0] <= MOST);
	}
	/* The core does not hold a client that usually requests small values. */
	world.clients[0]->typical_reply_bytes = 100;
	say(&world, 0, "GET small", 100);
	assert_true(world.count >= 100);
	assert_false(hs_core_waits_for_reader(world.clients[0]));
	close_world(&world);
}

static void test_small_replies_shrink_the_estimate(void **state)
{
	static struct world world;

	(void)state;
	open_world(&world);
	say(&world, 0, "GET small", 1000);
	assert_int_equal(world.count, FIRST);
	for (int i = 0; i < 40; i++)
		reply(&world, "$1\r\n1\r\n");
	assert_int_equal(world.count, HS_SESSION_INFLIGHT_MAX);
	for (int i = 40; i < 1000; i++)
		reply(&world, "$1\r\n1\r\n");
	assert_int_equal(read_all(&world, 0), 1000 * strlen("$1\r\n1\r\n"));
	close_world(&world);
}

/* The core remembers a key with large values. A client that had only small replies is held for this key, too. */
static void test_the_key_is_remembered(void **state)
{
	static struct world world;

	(void)state;
	open_world(&world);
	say(&world, 1, "GET big", 1);
	reply(&world, world.value);
	world.clients[0]->typical_reply_bytes = 100;
	say(&world, 0, "GET big", 300);
	assert_int_equal(world.count, 3); /* three replies fit a quarter of the budget */
	close_world(&world);
}

/* Commands behind a held request wait, too, also writes. */
static void test_order_is_kept(void **state)
{
	static struct world world;

	(void)state;
	open_world(&world);
	say(&world, 0, "GET big", FIRST + 1);
	say(&world, 0, "SET k v", 1);
	assert_int_equal(world.count, FIRST);
	reply(&world, "$1\r\n1\r\n");
	assert_int_equal(world.count, FIRST + 1);
	assert_int_equal(world.ops[FIRST - 1]->command->id, HS_CMD_ID_GET);
	assert_int_equal(world.ops[FIRST]->command->id, HS_CMD_ID_SET);
	close_world(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_client_that_does_not_read),
		cmocka_unit_test(test_clients_share_a_partition_s_budget),
		cmocka_unit_test(test_small_replies_shrink_the_estimate),
		cmocka_unit_test(test_the_key_is_remembered),
		cmocka_unit_test(test_order_is_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
