/* Goal: the stage that CONTRIBUTING.md shows as an example works.
 *
 * Method: run the stage in a core. test_readme compares the page with the lines between the marks. */
#include "core/count.h"
#include "stages/stages.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* example begins */
/* Refuses commands on hot keys with BUSY while LIMIT operations of the worker are in flight. */
#include "base/mem.h"
#include "core/dispatch.h"
#include "core/state.h"

enum { LIMIT = 2 };

struct busy {
	struct hs_core *core;
	uint32_t index, in_flight; /* in the row of stages; operations */
};

static enum hs_stage_result admit(void *self, struct hs_session *session, struct hs_call *call)
{
	struct busy *busy = self;

	if (busy->core->options.mitigate != HS_MITIGATE_ON || busy->in_flight < LIMIT ||
	    !hs_hot_of_only_key(&busy->core->hot_table, call))
		return HS_PASS;
	hs_dispatch_reject(busy->core, session, call->command, "BUSY hot key; not run");
	return HS_ANSWERED;
}

static enum hs_stage_result depart(void *self, struct hs_request *request, struct hs_part *part)
{
	struct busy *busy = self;

	(void)request;
	busy->in_flight++;
	part->marked |= UINT32_C(1) << busy->index; /* so that `arrive` is called for it */
	return HS_PASS;
}

static void arrive(void *self, struct hs_request *request, struct hs_part *part)
{
	(void)request, (void)part;
	((struct busy *)self)->in_flight--;
}

static void *create(struct hs_core *core, uint32_t index)
{
	struct busy *busy = hs_mem_alloc(sizeof *busy);

	*busy = (struct busy){.core = core, .index = index};
	hs_stage_want(core, index, HS_POINT_ADMIT, true);
	hs_stage_want(core, index, HS_POINT_DEPART, true);
	return busy;
}

const struct hs_stage hs_stage_busy = {
	.name = "busy",
	.create = create,
	.destroy = hs_mem_release,
	.admit = admit,
	.depart = depart,
	.arrive = arrive,
};
/* example ends */

enum { OPS = 8 };

static struct {
	struct hs_core *core;
	struct hs_session *client;
	struct hs_now now;
	struct hs_op *ops[OPS];
	size_t ops_count;
} world;

static enum hs_submit submit(void *context, struct hs_op *op)
{
	(void)context;
	assert_true(world.ops_count < OPS);
	world.ops[world.ops_count++] = op;
	return HS_SUBMIT_QUEUED;
}

static uint64_t mono_us(void *context)
{
	(void)context;
	return world.now.mono_us;
}

static void say(const char *text)
{
	hs_core_receive(world.core, world.client, world.now, text, strlen(text));
}

static void received(const char *expected)
{
	struct hs_buf *out = hs_session_out(world.client);

	assert_int_equal(out->len, strlen(expected));
	if (out->len > 0)
		assert_memory_equal(out->data, expected, out->len);
	out->len = 0;
}

static void answer(size_t number)
{
	hs_buf_append(world.ops[number]->out, "$1\r\nv\r\n", 7);
	hs_core_complete(world.core, world.now, world.ops[number]);
}

static void test_the_example(void **state)
{
	static const struct hs_stage *const stages[] = {&hs_stage_busy, NULL};
	static const struct hs_core_calls calls = {.submit = submit, .mono_us = mono_us};
	static const struct hs_log log;
	_Atomic uint64_t slowlog_ids = 0;
	struct hs_core_world core_world = {
		.calls = &calls,
		.commands = &hs_commands,
		.stages = stages,
		.log = &log,
		.workers = 1,
		.partitions = 4,
		.node_id = "0123456789abcdef0123456789abcdef01234567",
		.slowlog_ids = &slowlog_ids,
	};
	struct hs_core_options options = {
		.output_bytes_max = 1 << 20,
		.slowlog_us = -1,
		.hot = {.share = 0.5, .requests = 1, .cool_down_us = 1000},
	};
	struct hs_core_client client = {.id = 1, .address = "a", .local_address = "b"};
	struct hs_heat_warmth heat = {
		.share = 1, .requests = 10, .key = HS_LIT("k"), .slot = hs_slot_of(HS_LIT("k"))};
	const struct busy *busy;

	(void)state;
	world.now.mono_us = 1;
	world.core = hs_core_create(&core_world, &options);
	world.client = hs_core_connect(world.core, world.now, &client);
	busy = world.core->stages.self[0];
	hs_count_hot(world.core, heat, false);
	say("GET k\r\nGET other\r\n");
	assert_int_equal(world.ops_count, 2);
	assert_int_equal(busy->in_flight, 2);
	say("GET k\r\nGET other\r\n");
	assert_int_equal(world.ops_count, 3);
	for (size_t i = 0; i < 3; i++)
		answer(i);
	received("$1\r\nv\r\n$1\r\nv\r\n-BUSY hot key; not run\r\n$1\r\nv\r\n");
	assert_int_equal(busy->in_flight, 0);
	/* A request of a disconnected client counts until the engine has answered the request. */
	say("GET k\r\n");
	hs_core_disconnect(world.core, world.client);
	assert_int_equal(busy->in_flight, 1);
	answer(3);
	assert_int_equal(busy->in_flight, 0);
	world.now.mono_us += 10000;
	hs_core_tick(world.core, world.now);
	hs_core_destroy(&world.core);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_the_example)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
