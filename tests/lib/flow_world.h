/* A fixture for unit tests of the flow of operations to Redis servers (engine/redis/flow.h), without a network: the
 * test plays the cluster. The test identifies a pipe by its node's port, and decides when a pipe is up, what the
 * server replies, and when the connection ends; sent() compares the requests written to a pipe. One thread, simulated
 * clock. Limits: OPS_MAX operations, PIPES_MAX pipes; the fixture owns them until flow_world_destroy. */
#ifndef HS_TESTS_LIB_FLOW_WORLD_H
#define HS_TESTS_LIB_FLOW_WORLD_H

#include "engine/redis/internal.h"

/* cmocka wants these before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/mem.h"

#include <stdio.h>
#include <string.h>

enum { OPS_MAX = 64, PIPES_MAX = 64 };

/* An operation of a client, and its reply. */
struct asked {
	struct hs_op op;
	struct hs_buf out, reply, request;
	struct hs_bytes argv[4];
	struct hs_op_tx tx;
	bool done;
};

struct flow_world {
	struct hs_flow *flow;
	struct hs_flow_stats stats;
	struct hs_now now;
	struct hs_pipe *pipes[PIPES_MAX]; /* open or opening */
	int pipes_count;
	int stale_topology_reports, closed;
	struct asked ops[OPS_MAX];
	int ops_count;
	int finished[OPS_MAX]; /* their numbers, in order */
	int finished_count;
	const char *script;
	struct hs_op *then; /* submitted from inside the next call of `finished` */
	struct hs_tracking_sessions *tracking_sessions;
	struct hs_buf told; /* changes and finished operations in order: "changed a|done 0" */
	const struct hs_tracking_session *changed_by;
	int tracking_refused;
	/* For tests of a cache on top of the flow; NULL: not used. */
	void *cache_context;
	void (*on_finished)(void *cache_context, struct hs_op *op);
	void (*on_changed)(void *cache_context, const struct hs_tracking_session *tracking_session,
			   const struct hs_bytes *key);
};

static inline void flow_world_note(struct flow_world *flow_world, const char *what,
				   struct hs_bytes which)
{
	hs_buf_printf(&flow_world->told, "%s%s %.*s", flow_world->told.len > 0 ? "|" : "", what,
		      (int)which.len, which.data);
}

static inline void flow_world_finished(void *context, struct hs_now now, struct hs_op *op)
{
	struct flow_world *flow_world = context;
	struct asked *asked = op->owner;

	(void)now;
	assert_false(asked->done);
	asked->done = true;
	hs_buf_append_bytes(&asked->reply, op->answer.len > 0 ? op->answer : hs_buf_bytes(op->out));
	flow_world->finished[flow_world->finished_count++] = (int)(asked - flow_world->ops);
	flow_world_note(flow_world, "done", op->argc > 1 ? op->argv[1] : HS_LIT("?"));
	if (flow_world->on_finished)
		flow_world->on_finished(flow_world->cache_context, op);
	if (flow_world->then) {
		struct hs_op *then = flow_world->then;

		flow_world->then = NULL;
		if (hs_flow_submit(flow_world->flow, then) == HS_SUBMIT_DONE)
			flow_world_finished(flow_world, flow_world->now, then);
	}
}

static inline void flow_world_open(void *context, struct hs_pipe *pipe)
{
	struct flow_world *flow_world = context;

	assert_true(flow_world->pipes_count < PIPES_MAX);
	flow_world->pipes[flow_world->pipes_count++] = pipe;
}

static inline void flow_world_forget(struct flow_world *flow_world, struct hs_pipe *pipe)
{
	int kept = 0;

	for (int i = 0; i < flow_world->pipes_count; i++) {
		if (flow_world->pipes[i] != pipe)
			flow_world->pipes[kept++] = flow_world->pipes[i];
	}
	assert_int_equal(kept, flow_world->pipes_count - 1);
	flow_world->pipes_count = kept;
}

static inline void flow_world_close(void *context, struct hs_pipe *pipe)
{
	struct flow_world *flow_world = context;

	flow_world->closed++;
	flow_world_forget(flow_world, pipe);
}

static inline void flow_world_send(void *context, struct hs_pipe *pipe)
{
	(void)context, (void)pipe; /* the test reads it with sent() */
}

static inline void flow_world_stale_topology(void *context)
{
	((struct flow_world *)context)->stale_topology_reports++;
}

static inline struct hs_bytes flow_world_script(void *context, struct hs_bytes digest)
{
	struct flow_world *flow_world = context;

	(void)digest;
	return hs_bytes_of(flow_world->script ? flow_world->script : "");
}

static inline void flow_world_changed(void *context, struct hs_now now,
				      const struct hs_tracking_session *tracking_session,
				      const struct hs_bytes *key)
{
	struct flow_world *flow_world = context;

	(void)now;
	flow_world->changed_by = tracking_session;
	if (flow_world->on_changed)
		flow_world->on_changed(flow_world->cache_context, tracking_session, key);
	flow_world_note(flow_world, "changed", key ? *key : HS_LIT("*"));
}

static inline void flow_world_untracked(void *context, const struct hs_node *node, const char *why)
{
	(void)node, (void)why;
	((struct flow_world *)context)->tracking_refused++;
}

static const struct hs_flow_calls flow_world_calls = {
	.finished = flow_world_finished,
	.open = flow_world_open,
	.close = flow_world_close,
	.send = flow_world_send,
	.topology_suspect = flow_world_stale_topology,
	.script = flow_world_script,
	.changed = flow_world_changed,
	.tracking_refused = flow_world_untracked,
};

/* Slots below 8192 are at port 1, the others at port 2. */
static inline struct hs_routes *flow_world_routes(uint16_t first, uint16_t second)
{
	struct hs_routes *routes = hs_routes_create(2, 0);
	uint16_t ports[] = {first, second};

	routes->cluster = true;
	for (uint16_t i = 0; i < 2; i++) {
		snprintf(routes->nodes[i].host, sizeof routes->nodes[i].host, "h");
		routes->nodes[i].port = ports[i];
		routes->nodes[i].partition = i;
		routes->node_of_partition[i] = i;
	}
	for (uint32_t slot = 0; slot < HS_SLOTS; slot++)
		routes->node_of_slot[slot] = slot < HS_SLOTS / 2 ? 0 : 1;
	return routes;
}

static inline void route(struct flow_world *flow_world, uint16_t first, uint16_t second)
{
	const struct hs_routes *routes = flow_world_routes(first, second);

	hs_flow_route(flow_world->flow, flow_world->now, routes);
	hs_routes_unref(&routes);
}

static inline struct flow_world *flow_world_create(bool cluster,
						   const struct hs_flow_options *change)
{
	struct flow_world *flow_world = hs_mem_zalloc(sizeof *flow_world);
	struct hs_flow_options options = {
		.cluster = cluster,
		.timeout_us = 1000000,
		.in_flight_max = 100,
		.waiting_max = 100,
		.private_max = 4,
		.seed = 1,
	};

	if (change)
		options = *change;
	flow_world->now.mono_us = 1000000;
	flow_world->tracking_sessions = hs_tracking_sessions_create();
	options.tracking_sessions = flow_world->tracking_sessions;
	flow_world->flow =
		hs_flow_create(&options, &flow_world_calls, flow_world, &flow_world->stats);
	route(flow_world, 1, 2);
	return flow_world;
}

static inline void flow_world_destroy(struct flow_world **pointer)
{
	struct flow_world *flow_world = *pointer;

	hs_flow_destroy(&flow_world->flow);
	for (int i = 0; i < flow_world->ops_count; i++) {
		hs_buf_deinit(&flow_world->ops[i].out);
		hs_buf_deinit(&flow_world->ops[i].reply);
		hs_buf_deinit(&flow_world->ops[i].request);
	}
	assert_int_equal(flow_world->pipes_count, 0);
	hs_buf_deinit(&flow_world->told);
	hs_tracking_sessions_destroy(&flow_world->tracking_sessions);
	hs_mem_free(pointer);
}

/* The newest pipe to a node, open or opening. */
static inline struct hs_pipe *pipe_to(struct flow_world *flow_world, uint16_t port)
{
	for (int i = flow_world->pipes_count - 1; i >= 0; i--) {
		if (flow_world->pipes[i]->node->at.port == port)
			return flow_world->pipes[i];
	}
	fail_msg("nobody talks to port %u", port);
	return NULL;
}

static inline void up(struct flow_world *flow_world, uint16_t port)
{
	hs_flow_up(flow_world->flow, flow_world->now, pipe_to(flow_world, port));
	hs_flow_flush(flow_world->flow, flow_world->now);
}

static inline void down(struct flow_world *flow_world, uint16_t port)
{
	struct hs_pipe *pipe = pipe_to(flow_world, port);

	flow_world_forget(flow_world, pipe);
	hs_flow_down(flow_world->flow, flow_world->now, pipe, "cut");
}

/* Asserts the requests written to this pipe since the last call, as words: "GET a|GET b". They count as written
 * to the socket from here on. */
static inline void sent(struct flow_world *flow_world, uint16_t port, const char *text)
{
	struct hs_pipe *pipe = pipe_to(flow_world, port);
	struct hs_buf words = {0};
	size_t at = 0;

	while (at < pipe->upstream.out.len) {
		struct hs_parsed_reply head, word;
		int64_t used = hs_parse_reply_head(&head, pipe->upstream.out.data + at,
						   pipe->upstream.out.len - at);

		assert_true(used > 0);
		at += (size_t)used;
		if (words.len > 0)
			hs_buf_append(&words, "|", 1);
		for (int64_t i = 0; i < head.count; i++) {
			used = hs_parse_reply_head(&word, pipe->upstream.out.data + at,
						   pipe->upstream.out.len - at);
			assert_true(used > 0);
			at += (size_t)used;
			if (i > 0)
				hs_buf_append(&words, " ", 1);
			hs_buf_append_bytes(&words, word.text);
		}
	}
	pipe->upstream.sent += pipe->upstream.out.len;
	pipe->upstream.out.len = 0;
	hs_buf_append(&words, "", 1);
	assert_string_equal(words.data, text);
	hs_buf_deinit(&words);
}

static inline void reply(struct flow_world *flow_world, uint16_t port, const char *text)
{
	hs_flow_receive(flow_world->flow, flow_world->now, pipe_to(flow_world, port), text,
			strlen(text));
	hs_flow_flush(flow_world->flow, flow_world->now);
}

static inline void pass(struct flow_world *flow_world, uint64_t ms)
{
	flow_world->now.mono_us += ms * 1000;
	hs_flow_tick(flow_world->flow, flow_world->now);
}

/* Makes an operation of words without submitting it. */
static inline struct asked *make(struct flow_world *flow_world, uint64_t client,
				 enum hs_command_id id, uint16_t slot, const char *text)
{
	struct asked *asked = &flow_world->ops[flow_world->ops_count++];
	struct hs_bytes rest = hs_bytes_of(text);

	assert_true(flow_world->ops_count <= OPS_MAX);
	asked->op = (struct hs_op){
		.kind = HS_OP_COMMAND,
		.resp = 2,
		.client = client,
		.slot = slot,
		.partition = slot == HS_SLOT_NONE ? 0 : (uint16_t)(slot / (HS_SLOTS / 2)),
		.command = hs_command_by_id(id),
		.argv = asked->argv,
		.received = flow_world->now,
		.out = &asked->out,
		.owner = asked,
	};
	while (rest.len > 0) {
		const char *space = memchr(rest.data, ' ', rest.len);
		size_t len = space ? (size_t)(space - rest.data) : rest.len;

		asked->argv[asked->op.argc++] = (struct hs_bytes){rest.data, len};
		rest.data += len + (space ? 1 : 0);
		rest.len -= len + (space ? 1 : 0);
	}
	return asked;
}

static inline struct asked *submit(struct flow_world *flow_world, struct asked *asked)
{
	if (hs_flow_submit(flow_world->flow, &asked->op) == HS_SUBMIT_DONE)
		flow_world_finished(flow_world, flow_world->now, &asked->op);
	hs_flow_flush(flow_world->flow, flow_world->now);
	return asked;
}

static inline struct asked *get(struct flow_world *flow_world, uint64_t client, uint16_t slot,
				const char *text)
{
	return submit(flow_world, make(flow_world, client, HS_CMD_ID_GET, slot, text));
}

static inline struct asked *set(struct flow_world *flow_world, uint64_t client, uint16_t slot,
				const char *text)
{
	return submit(flow_world, make(flow_world, client, HS_CMD_ID_SET, slot, text));
}

/* Asserts the changes and finished operations since the last call. */
static inline void told(struct flow_world *flow_world, const char *text)
{
	hs_buf_append(&flow_world->told, "", 1);
	assert_string_equal(flow_world->told.data, text);
	flow_world->told.len = 0;
}

static inline void got(const struct asked *asked, const char *text)
{
	assert_true(asked->done);
	assert_int_equal(asked->reply.len, strlen(text));
	assert_memory_equal(asked->reply.data, text, strlen(text));
}

/* Asserts an error reply with this beginning. */
static inline void failed(const struct asked *asked, const char *text)
{
	assert_true(asked->done);
	assert_true(asked->reply.len > strlen(text));
	assert_memory_equal(asked->reply.data, text, strlen(text));
}

static inline struct asked *make_exec(struct flow_world *flow_world, uint64_t watcher,
				      struct hs_op_tx_command *commands, size_t count)
{
	struct asked *asked = make(flow_world, 1, HS_CMD_ID_EXEC, 1, "EXEC");

	asked->op.kind = HS_OP_EXEC;
	asked->op.watcher = watcher;
	asked->tx = (struct hs_op_tx){.commands = commands, .count = count};
	asked->op.tx = &asked->tx;
	return asked;
}

#endif
