/* A fixture for unit tests of folding (absorb/fold/stage.c): one core whose engine is played by the test.
 *
 * Clients send words. The engine records each operation and answers it when the test says so. Requests that may be
 * folded are sent at the end of a round (end_round), so each line of a test script shows what is sent when. One
 * thread, simulated clock; limits: CLIENTS, OPS_MAX. close_world asserts that nothing is in flight or waiting.
 *
 * The hot keys {a}k and {a}l share a slot of partition 1; {b}k is on partition 3. Other keys are not hot. */
#ifndef HS_TESTS_FOLD_STAGE_WORLD_H
#define HS_TESTS_FOLD_STAGE_WORLD_H

#include "absorb/fold/stats.h"
#include "core/state.h"
#include "stages/stages.h"

#include "tests/lib/described.h"
#include "tests/lib/slots.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { CLIENTS = 8, OPS_MAX = 128, A_PARTITION = 1, B_PARTITION = 3, WAITERS = 16 };

struct world {
	struct hs_core_calls calls;
	struct hs_log log;
	_Atomic uint64_t slowlog_ids;
	struct hs_slot_map map;
	struct hs_core_options options;
	struct hs_heat *heat;
	struct hs_learned *learned;
	struct hs_core *core;
	struct hs_session *client[CLIENTS + 1]; /* the last one only makes keys hot */
	struct hs_now now;
	struct hs_op *ops[OPS_MAX]; /* in flight, oldest first */
	size_t count, sent_count;   /* how many of them `sent` has seen */
	const char *refusal; /* the engine's immediate reply to every operation; NULL: none */
};

static inline struct hs_now later(struct world *world, uint64_t us)
{
	world->now.mono_us += us;
	world->now.wall_us += (int64_t)us;
	return world->now;
}

/* ---- the engine ---- */

static inline enum hs_submit submit(void *context, struct hs_op *op)
{
	struct world *world = context;

	if (op->kind == HS_OP_PEER) {
		hs_core_peer(world->core, world->now, op);
		return HS_SUBMIT_DONE;
	}
	if (world->refusal) {
		hs_buf_append(op->out, world->refusal, strlen(world->refusal));
		return HS_SUBMIT_DONE;
	}
	if (world->core->world.reads_at_once && !op->ordered &&
	    (op->command->flags & HS_CMD_READONLY)) {
		hs_buf_append(op->out, "$4\r\nread\r\n", 10);
		return HS_SUBMIT_DONE;
	}
	assert_true(world->count < OPS_MAX);
	world->ops[world->count++] = op;
	return HS_SUBMIT_QUEUED;
}

static inline uint64_t mono_us(void *context)
{
	struct world *world = context;

	return world->now.mono_us;
}

static inline void describe(const struct hs_op *op, char *text, size_t size)
{
	size_t len = 0;

	for (size_t i = 0; i < op->argc && len < size; i++)
		len += (size_t)snprintf(text + len, size - len, "%s%.*s", i > 0 ? " " : "",
					(int)op->argv[i].len, op->argv[i].data);
}

/* Asserts the operations given to the engine since the last call, in order. */
#define sent(world, text) assert_string_equal(take_sent(world), text)

static inline const char *take_sent(struct world *world)
{
	static char text[4096];
	size_t len = 0;

	text[0] = '\0';
	for (; world->sent_count < world->count; world->sent_count++) {
		if (len > 0)
			len += (size_t)snprintf(text + len, sizeof text - len, " | ");
		describe(world->ops[world->sent_count], text + len, sizeof text - len);
		len += strlen(text + len);
	}
	return text;
}

/* Answers the oldest operation in flight with this beginning. Replies alternate between the two forms that
 * engines use: in op->answer, as the redis engine, and appended to op->out, as the embedded engine. */
static inline void reply(struct world *world, const char *begin, const char *answer)
{
	static unsigned turn;
	char text[1024];

	for (size_t i = 0; i < world->sent_count; i++) {
		struct hs_op *op = world->ops[i];

		describe(op, text, sizeof text);
		if (strncmp(text, begin, strlen(begin)) != 0)
			continue;
		memmove(&world->ops[i], &world->ops[i + 1],
			(world->count - i - 1) * sizeof(struct hs_op *));
		world->count--;
		world->sent_count--;
		if (turn++ % 2 == 0)
			op->answer = (struct hs_bytes){answer, strlen(answer)};
		else
			hs_buf_append(op->out, answer, strlen(answer));
		hs_core_complete(world->core, later(world, 1), op);
		return;
	}
	fail_msg("no operation in flight begins with %s", begin);
}

/* ---- clients ---- */

static inline void say(struct world *world, char who, const char *words)
{
	struct hs_buf bytes = {0};

	hs_buf_printf(&bytes, "%s\r\n", words);
	hs_core_receive(world->core, world->client[who - 'A'], later(world, 1), bytes.data,
			bytes.len);
	hs_buf_deinit(&bytes);
}

static inline void end_round(struct world *world)
{
	hs_core_flush(world->core, later(world, 1));
}

#define received(world, who, text) assert_string_equal(take_received(world, who), text)

static inline const char *take_received(struct world *world, char who)
{
	static char text[4096];
	struct hs_buf *out = hs_session_out(world->client[who - 'A']);

	assert_true(out->len < sizeof text);
	memcpy(text, out->len > 0 ? out->data : "", out->len);
	text[out->len] = '\0';
	out->len = 0;
	return text;
}

static inline void leave(struct world *world, char who)
{
	hs_core_disconnect(world->core, world->client[who - 'A']);
	world->client[who - 'A'] = NULL;
}

static inline uint64_t counted(const struct hs_counter *counter)
{
	return hs_counter_get(counter);
}

/* ---- the world ---- */

static inline void make_hot(struct world *world, const char *key)
{
	uint64_t before = counted(&hs_fold_stats(world->core)->keys);
	char words[64];

	snprintf(words, sizeof words, "APPEND %s x", key);
	for (int i = 0; counted(&hs_fold_stats(world->core)->keys) == before; i++) {
		assert_true(i < 1000);
		say(world, 'A' + CLIENTS, words);
		take_sent(world);
		reply(world, "APPEND", ":1\r\n");
	}
	take_received(world, 'A' + CLIENTS);
}

static inline void open_empty_world(struct world *world, bool reads_at_once)
{
	const struct hs_heat_options heat = {.seed = 1, .partitions = 8};
	struct hs_core_world core_world = {
		.commands = &hs_commands,
		.calls = &world->calls,
		.context = world,
		.log = &world->log,
		.workers = 1,
		.partitions = 8,
		.slots = &world->map,
		.reads_at_once = reads_at_once,
		.shared_connections = !reads_at_once,
		.op_scope = HS_OP_SCOPE_SLOT,
		.node_id = "0123456789abcdef0123456789abcdef01234567",
		.slowlog_ids = &world->slowlog_ids,
		.stages = hs_stages,
	};

	struct hs_buf reply = {0};
	char error[128];

	*world = (struct world){.now = {.mono_us = 1000000, .wall_us = 1700000000000000}};
	hs_slot_map_fill_even(&world->map, 4);
	hs_slot_map_set(&world->map, hs_slot_of(HS_LIT("{a}k")), A_PARTITION);
	hs_slot_map_set(&world->map, hs_slot_of(HS_LIT("{b}k")), B_PARTITION);
	world->calls = (struct hs_core_calls){.submit = submit, .mono_us = mono_us};
	world->heat = hs_heat_create(&heat);
	core_world.heat = world->heat;
	world->options = (struct hs_core_options){
		.output_bytes_max = 1 << 20,
		.slowlog_us = -1,
		.hot = {.share = 0.1, .share_exit = 0.05, .requests = 8, .cool_down_us = 1000000},
		.fold = true,
		.fold_waiters_max = WAITERS};
	world->core = hs_core_create(&core_world, &world->options);
	describe_commands(described_redis, described_redis_count, 2, 7, &reply);
	world->learned = hs_learned_create(hs_buf_bytes(&reply), NULL, error, sizeof error);
	hs_buf_deinit(&reply);
	hs_core_learn(world->core, world->learned);
	for (uint64_t i = 0; i <= CLIENTS; i++) {
		struct hs_core_client client = {.id = i + 1, .address = "a", .local_address = "b"};

		world->client[i] = hs_core_connect(world->core, world->now, &client);
	}
}

static inline void open_world(struct world *world)
{
	open_empty_world(world, false);
	make_hot(world, "{a}k");
	make_hot(world, "{a}l");
	make_hot(world, "{b}k");
}

/* Asserts that all gauges are back to 0. */
static inline void close_world(struct world *world)
{
	struct hs_core_stats *stats = hs_core_stats(world->core);
	const struct hs_fold_stats *fold = hs_fold_stats(world->core);

	assert_int_equal(world->count, 0);
	assert_int_equal(counted(&fold->waiting), 0);
	assert_int_equal(counted(&stats->inflight), 0);
	for (size_t i = 0; i <= CLIENTS; i++) {
		struct hs_session *session = world->client[i];

		if (!session)
			continue;
		assert_int_equal(session->delayed, 0);
		assert_int_equal(session->inflight, 0);
		assert_int_equal(session->held_bytes, 0);
		for (size_t bucket = 0; bucket < HS_PARTITION_BUCKETS; bucket++)
			assert_int_equal(session->in_bucket[bucket], 0);
		hs_core_disconnect(world->core, session);
	}
	assert_int_equal(world->core->orphans, 0);
	hs_core_tick(world->core, later(world, 2000000));
	assert_int_equal(counted(&fold->keys),
			 0); /* no hot key is left, so none has waiting requests */
	hs_core_destroy(&world->core);
	hs_learned_destroy(&world->learned);
	hs_heat_destroy(&world->heat);
}

#endif
