/* Goal: commands for all partitions, and SCAN, go to the partitions that are present. When a shard leaves a
 * cluster, its partition number becomes absent, in the middle or at the end.
 *
 * Method: a core with a slot map that the test changes, and an engine played by the test, which records each
 * operation and answers it. */
#include "stages/stages.h"

#include "core/state.h"
#include "tests/lib/slots.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct world {
	struct hs_core_calls calls;
	struct hs_log log;
	_Atomic uint64_t slowlog_ids;
	struct hs_slot_map map;
	struct hs_core *core;
	struct hs_session *session;
	char went[256]; /* the operations with their partitions, such as "DBSIZE@0 SCAN 0@2" */
	const char *answer;
};

static enum hs_submit submit(void *context, struct hs_op *op)
{
	struct world *world = context;
	size_t len = strlen(world->went);

	len += (size_t)snprintf(world->went + len, sizeof world->went - len, "%s",
				len > 0 ? " | " : "");
	for (size_t i = 0; i < op->argc; i++)
		len += (size_t)snprintf(world->went + len, sizeof world->went - len, "%.*s ",
					(int)op->argv[i].len, op->argv[i].data);
	snprintf(world->went + len, sizeof world->went - len, "@%u", op->partition);
	assert_int_equal(op->slot, HS_SLOT_NONE);
	hs_buf_append(op->out, world->answer, strlen(world->answer));
	return HS_SUBMIT_DONE;
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
		.partitions = 8, /* more partitions than the map uses */
		.slots = &world->map,
		.shared_connections = true,
		.op_scope = HS_OP_SCOPE_SLOT,
		.node_id = "0123456789abcdef0123456789abcdef01234567",
		.slowlog_ids = &world->slowlog_ids,
	};
	struct hs_core_client client = {.id = 1, .address = "a", .local_address = "b"};

	*world = (struct world){0};
	hs_slot_map_fill_even(&world->map, 4);
	world->calls = (struct hs_core_calls){.submit = submit, .mono_us = mono_us};
	world->core = hs_core_create(&core_world, &options);
	world->session = hs_core_connect(world->core, now, &client);
}

static void close_world(struct world *world)
{
	hs_core_disconnect(world->core, world->session);
	hs_core_destroy(&world->core);
}

/* Sends a request. Asserts that its operations went to the partitions in `went`, and that the client got
 * `received`. */
static void check(struct world *world, const char *request, const char *answer, const char *went,
		  const char *received)
{
	struct hs_buf *out = hs_session_out(world->session);

	world->went[0] = '\0';
	world->answer = answer;
	hs_core_receive(world->core, world->session, now, request, strlen(request));
	assert_string_equal(world->went, went);
	assert_int_equal(out->len, strlen(received));
	assert_memory_equal(out->data, received, out->len);
	out->len = 0;
}

static void test_an_absent_partition(void **state)
{
	static struct world world;

	(void)state;
	open_world(&world);
	check(&world, "DBSIZE\r\n", ":2\r\n", "DBSIZE @0 | DBSIZE @1 | DBSIZE @2 | DBSIZE @3",
	      ":8\r\n");
	hs_slot_map_set_present(&world.map, 0, false);
	hs_slot_map_set_present(&world.map, 2, false);
	check(&world, "DBSIZE\r\n", ":2\r\n", "DBSIZE @1 | DBSIZE @3", ":4\r\n");
	hs_slot_map_set_present(&world.map, 3, false);
	hs_slot_map_set_count(&world.map, 2);
	check(&world, "DBSIZE\r\n", ":2\r\n", "DBSIZE @1", ":2\r\n");
	hs_slot_map_set_present(&world.map, 1, false);
	hs_slot_map_set_count(&world.map, 0);
	check(&world, "DBSIZE\r\n", ":2\r\n", "",
	      "-CLUSTERDOWN the engine's servers are not known yet: none of them has answered; not "
	      "sent\r\n");
	close_world(&world);
}

static void test_scan_skips_an_absent_partition(void **state)
{
	static const char end[] = "*2\r\n$1\r\n0\r\n*0\r\n";
	static struct world world;

	(void)state;
	open_world(&world);
	check(&world, "SCAN 0\r\n", "*2\r\n$1\r\n5\r\n*0\r\n", "SCAN 0 @0",
	      "*2\r\n$4\r\n1280\r\n*0\r\n");
	check(&world, "SCAN 1281\r\n", end, "SCAN 5 @1", "*2\r\n$1\r\n2\r\n*0\r\n");
	/* Partition 1 leaves during the scan: the scan continues at the beginning of the next partition. */
	hs_slot_map_set_present(&world.map, 1, false);
	check(&world, "SCAN 1281\r\n", end, "SCAN 0 @2", "*2\r\n$1\r\n3\r\n*0\r\n");
	check(&world, "SCAN 3\r\n", end, "SCAN 0 @3", end);
	/* If the last partition leaves during the scan, the scan is complete. */
	hs_slot_map_set_present(&world.map, 3, false);
	hs_slot_map_set_count(&world.map, 3);
	check(&world, "SCAN 1283\r\n", end, "", end);
	check(&world, "SCAN 0\r\n", end, "SCAN 0 @0", "*2\r\n$1\r\n1\r\n*0\r\n");
	check(&world, "SCAN x\r\n", "-ERR invalid cursor\r\n", "SCAN x @0",
	      "-ERR invalid cursor\r\n");
	close_world(&world);
}

/* A cursor keeps its meaning when a second shard is added. */
static void test_scan_cursor_when_a_second_shard_is_added(void **state)
{
	static struct world world;

	(void)state;
	open_world(&world);
	hs_slot_map_fill_even(&world.map, 1);
	check(&world, "SCAN 0\r\n", "*2\r\n$1\r\n7\r\n*0\r\n", "SCAN 0 @0",
	      "*2\r\n$4\r\n1792\r\n*0\r\n");
	hs_slot_map_fill_even(&world.map, 2);
	check(&world, "SCAN 1792\r\n", "*2\r\n$1\r\n0\r\n*0\r\n", "SCAN 7 @0",
	      "*2\r\n$1\r\n1\r\n*0\r\n");
	close_world(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_an_absent_partition),
		cmocka_unit_test(test_scan_skips_an_absent_partition),
		cmocka_unit_test(test_scan_cursor_when_a_second_shard_is_added),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
