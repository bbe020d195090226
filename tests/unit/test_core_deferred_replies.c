/* Goal: if an engine completes a large read without writing the reply, the core asks for the reply only when the
 * client can take it: not for a disconnected client, and not for a client whose unread replies have reached the
 * limit. Replies keep their order, and each operation's snapshot is given back once.
 *
 * Method: a core with an engine played by the test, which completes operations without a reply. */
#include "stages/stages.h"

#include "core/state.h"
#include "wire/reply.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { OPS = 64, LIMIT = 1000, LARGE = 400 };

struct world {
	struct hs_core_calls calls;
	struct hs_log log;
	_Atomic uint64_t slowlog_ids;
	struct hs_core *core;
	struct hs_session *client;
	struct hs_op *ops[OPS];
	size_t count;
	int made, dropped;
};

static const struct hs_now now = {.mono_us = 1};

static enum hs_submit submit(void *context, struct hs_op *op)
{
	struct world *world = context;

	if (!op->ordered && op->command->flags & HS_CMD_READONLY)
		return HS_SUBMIT_REFUSED;
	assert_true(world->count < OPS);
	world->ops[world->count++] = op;
	return HS_SUBMIT_QUEUED;
}

static void write_reply(void *context, struct hs_op *op, bool wanted)
{
	struct world *world = context;
	struct hs_reply reply = {.out = op->out, .resp = op->resp};
	char value[LARGE];

	op->reply_unwritten = false;
	world->made += wanted;
	world->dropped += !wanted;
	memset(value, 'x', sizeof value);
	if (wanted)
		hs_reply_bulk(&reply, (struct hs_bytes){value, sizeof value});
}

static uint64_t mono_us(void *context)
{
	(void)context;
	return 1;
}

static void open_world(struct world *world)
{
	struct hs_core_options options = {.output_bytes_max = LIMIT, .slowlog_us = -1};
	struct hs_core_world core_world = {
		.commands = &hs_commands,
		.stages = hs_stages,
		.calls = &world->calls,
		.context = world,
		.log = &world->log,
		.workers = 1,
		.partitions = 1,
		.reads_at_once = true,
		.node_id = "0123456789abcdef0123456789abcdef01234567",
		.slowlog_ids = &world->slowlog_ids,
	};
	struct hs_core_client client = {.id = 1, .address = "a", .local_address = "b"};

	*world = (struct world){
		.calls = {.submit = submit, .write_reply = write_reply, .mono_us = mono_us}};
	world->core = hs_core_create(&core_world, &options);
	world->client = hs_core_connect(world->core, now, &client);
}

static void say(struct world *world, const char *text)
{
	hs_core_receive(world->core, world->client, now, text, strlen(text));
}

static void complete_unmade(struct world *world, size_t number)
{
	world->ops[number]->reply_unwritten = true;
	hs_core_complete(world->core, now, world->ops[number]);
}

static void close_world(struct world *world)
{
	if (world->client)
		hs_core_disconnect(world->core, world->client);
	hs_core_destroy(&world->core);
}

static void test_the_limit_comes_first(void **state)
{
	struct world world;

	(void)state;
	open_world(&world);
	for (int i = 0; i < 20; i++)
		say(&world, "GET k\r\n");
	assert_int_equal(world.count, 20);
	for (size_t i = 0; i < 20; i++)
		complete_unmade(&world, i);
	assert_true(hs_session_cut(world.client));
	assert_int_equal(world.made, 3); /* after the third reply the client is over its limit */
	assert_int_equal(world.dropped, 17);
	assert_true(hs_session_out(world.client)->len < LIMIT + LARGE);
	close_world(&world);
}

/* The engine completes the reads in reverse order: the replies wait for the first one. */
static void test_out_of_turn(void **state)
{
	struct world world;

	(void)state;
	open_world(&world);
	for (int i = 0; i < 20; i++)
		say(&world, "GET k\r\n");
	for (size_t i = 19; i > 0; i--)
		complete_unmade(&world, i);
	assert_int_equal(world.made, 3);
	assert_true(hs_session_cut(world.client));
	assert_int_equal(hs_session_out(world.client)->len, 0);
	complete_unmade(&world, 0);
	assert_int_equal(world.made + world.dropped, 20);
	assert_int_equal(world.client->held_bytes, 0);
	close_world(&world);
}

static void test_a_reading_client_gets_every_reply(void **state)
{
	struct world world;
	size_t got = 0;

	(void)state;
	open_world(&world);
	for (int i = 0; i < 20; i++)
		say(&world, "GET k\r\n");
	for (size_t i = 0; i < 20; i++) {
		complete_unmade(&world, i);
		got += hs_session_out(world.client)->len;
		hs_session_out(world.client)->len = 0;
	}
	assert_int_equal(world.made, 20);
	assert_int_equal(got, 20 * (LARGE + strlen("$400\r\n\r\n")));
	close_world(&world);
}

static void test_a_disconnected_client_gets_no_reply(void **state)
{
	struct world world;

	(void)state;
	open_world(&world);
	for (int i = 0; i < 3; i++)
		say(&world, "GET k\r\n");
	complete_unmade(&world, 0);
	hs_core_disconnect(world.core, world.client);
	world.client = NULL;
	complete_unmade(&world, 1);
	complete_unmade(&world, 2);
	assert_int_equal(world.made, 1);
	assert_int_equal(world.dropped, 2);
	close_world(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_limit_comes_first),
		cmocka_unit_test(test_out_of_turn),
		cmocka_unit_test(test_a_reading_client_gets_every_reply),
		cmocka_unit_test(test_a_disconnected_client_gets_no_reply),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
