/* Goal: replies of an engine on the worker's own thread lie in the engine's buffer and are copied once. They reach
 * their clients in order and leave nothing allocated, however many requests are in flight.
 *
 * Method: a core with an engine behind shared connections, played by the test, which answers from its own buffer.
 * More requests are in flight than the pool holds; the requests beyond the pool are freed with their answer,
 * which the address sanitizer watches. */
#include "stages/stages.h"

#include "core/state.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SESSIONS = 20, EACH = HS_SESSION_INFLIGHT_MAX, OPS = SESSIONS * EACH };

struct world {
	struct hs_core_calls calls;
	struct hs_log log;
	_Atomic uint64_t slowlog_ids;
	struct hs_core *core;
	struct hs_op *ops[OPS];
	size_t count;
};

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

static const struct hs_now now = {.mono_us = 1};

static void open_world(struct world *world)
{
	struct hs_core_options options = {.output_bytes_max = 1 << 20, .slowlog_us = -1};
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

	world->calls = (struct hs_core_calls){.submit = submit, .mono_us = mono_us};
	world->core = hs_core_create(&core_world, &options);
}

static void test_more_requests_than_the_pool_holds(void **state)
{
	static struct world world;
	struct hs_session *sessions[SESSIONS];
	char reply[] = "$1\r\nx\r\n";

	(void)state;
	open_world(&world);
	for (uint64_t i = 0; i < SESSIONS; i++) {
		struct hs_core_client client = {.id = i + 1, .address = "a", .local_address = "b"};

		sessions[i] = hs_core_connect(world.core, now, &client);
		for (int j = 0; j < EACH; j++)
			hs_core_receive(world.core, sessions[i], now,
					"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n", 20);
	}
	assert_int_equal(world.count, OPS);
	for (size_t i = 0; i < OPS; i++) {
		world.ops[i]->answer = hs_bytes_of(reply);
		hs_core_complete(world.core, now, world.ops[i]);
	}
	for (size_t i = 0; i < SESSIONS; i++) {
		assert_int_equal(hs_session_out(sessions[i])->len, EACH * strlen(reply));
		hs_core_disconnect(world.core, sessions[i]);
	}
	assert_int_equal(hs_counter_get(&hs_core_stats(world.core)->inflight), 0);
	hs_core_destroy(&world.core);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_more_requests_than_the_pool_holds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
