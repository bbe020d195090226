/* A flow without a network: the test is the cluster. Pipes that the flow opens are known by their
 * node's port; the test says when they are up, what was sent, what comes back, when they end. */
#ifndef HS_TESTS_LIB_FLOW_H
#define HS_TESTS_LIB_FLOW_H

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

/* An operation of a client, and what came of it. */
struct asked {
	struct hs_op op;
	struct hs_buf out, reply, request;
	struct hs_bytes argv[4];
	struct hs_op_tx tx;
	bool done;
};

struct town {
	struct hs_flow *flow;
	struct hs_flow_stats stats;
	struct hs_now now;
	struct hs_pipe *pipes[PIPES_MAX]; /* open or opening */
	int pipes_count;
	int surprises, closed;
	struct asked ops[OPS_MAX];
	int ops_count;
	int finished[OPS_MAX]; /* their numbers, in order */
	int finished_count;
	const char *script;
	struct hs_op *then; /* submitted from inside the next `finished` */
	struct hs_tracking_sessions *tracking_sessions;
	struct hs_buf told; /* what changed and what was finished, in order: "changed a|done 0" */
	const struct hs_tracking_session *told_by;
	int untracked;
	/* For who keeps values. */
	void *keeper;
	void (*on_finished)(void *keeper, struct hs_op *op);
	void (*on_changed)(void *keeper, const struct hs_tracking_session *tracking_session,
			   const struct hs_bytes *key);
};

static inline void town_note(struct town *town, const char *what, struct hs_bytes which)
{
	hs_buf_printf(&town->told, "%s%s %.*s", town->told.len > 0 ? "|" : "", what, (int)which.len,
		      which.data);
}

static inline void town_finished(void *context, struct hs_now now, struct hs_op *op)
{
	struct town *town = context;
	struct asked *asked = op->owner;

	(void)now;
	assert_false(asked->done);
	asked->done = true;
	hs_buf_append_bytes(&asked->reply, op->answer.len > 0 ? op->answer : hs_buf_bytes(op->out));
	town->finished[town->finished_count++] = (int)(asked - town->ops);
	town_note(town, "done", op->argc > 1 ? op->argv[1] : HS_LIT("?"));
	if (town->on_finished)
		town->on_finished(town->keeper, op);
	if (town->then) {
		struct hs_op *then = town->then;

		town->then = NULL;
		if (hs_flow_submit(town->flow, then) == HS_SUBMIT_DONE)
			town_finished(town, town->now, then);
	}
}

static inline void town_open(void *context, struct hs_pipe *pipe)
{
	struct town *town = context;

	assert_true(town->pipes_count < PIPES_MAX);
	town->pipes[town->pipes_count++] = pipe;
}

static inline void town_forget(struct town *town, struct hs_pipe *pipe)
{
	int kept = 0;

	for (int i = 0; i < town->pipes_count; i++) {
		if (town->pipes[i] != pipe)
			town->pipes[kept++] = town->pipes[i];
	}
	assert_int_equal(kept, town->pipes_count - 1);
	town->pipes_count = kept;
}

static inline void town_close(void *context, struct hs_pipe *pipe)
{
	struct town *town = context;

	town->closed++;
	town_forget(town, pipe);
}

static inline void town_send(void *context, struct hs_pipe *pipe)
{
	(void)context, (void)pipe; /* the test takes it: see sent() */
}

static inline void town_surprise(void *context)
{
	((struct town *)context)->surprises++;
}

static inline struct hs_bytes town_script(void *context, struct hs_bytes digest)
{
	struct town *town = context;

	(void)digest;
	return hs_bytes_of(town->script ? town->script : "");
}

static inline void town_changed(void *context, struct hs_now now,
				const struct hs_tracking_session *tracking_session,
				const struct hs_bytes *key)
{
	struct town *town = context;

	(void)now;
	town->told_by = tracking_session;
	if (town->on_changed)
		town->on_changed(town->keeper, tracking_session, key);
	town_note(town, "changed", key ? *key : HS_LIT("*"));
}

static inline void town_untracked(void *context, const struct hs_node *node, const char *why)
{
	(void)node, (void)why;
	((struct town *)context)->untracked++;
}

static const struct hs_flow_calls town_calls = {
	.finished = town_finished,
	.open = town_open,
	.close = town_close,
	.send = town_send,
	.surprise = town_surprise,
	.script = town_script,
	.changed = town_changed,
	.untracked = town_untracked,
};

/* Slots below 8192 are at port 1, the others at port 2. */
static inline struct hs_routes *town_routes(uint16_t first, uint16_t second)
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

static inline void route(struct town *town, uint16_t first, uint16_t second)
{
	const struct hs_routes *routes = town_routes(first, second);

	hs_flow_route(town->flow, town->now, routes);
	hs_routes_unref(&routes);
}

static inline struct town *town_create(bool cluster, const struct hs_flow_options *change)
{
	struct town *town = hs_mem_zalloc(sizeof *town);
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
	town->now.mono_us = 1000000;
	town->tracking_sessions = hs_tracking_sessions_create();
	options.tracking_sessions = town->tracking_sessions;
	town->flow = hs_flow_create(&options, &town_calls, town, &town->stats);
	route(town, 1, 2);
	return town;
}

static inline void town_destroy(struct town **pointer)
{
	struct town *town = *pointer;

	hs_flow_destroy(&town->flow);
	for (int i = 0; i < town->ops_count; i++) {
		hs_buf_deinit(&town->ops[i].out);
		hs_buf_deinit(&town->ops[i].reply);
		hs_buf_deinit(&town->ops[i].request);
	}
	assert_int_equal(town->pipes_count, 0);
	hs_buf_deinit(&town->told);
	hs_tracking_sessions_destroy(&town->tracking_sessions);
	hs_mem_free(pointer);
}

/* The pipe to a node, open or opening; the newest of several. */
static inline struct hs_pipe *pipe_to(struct town *town, uint16_t port)
{
	for (int i = town->pipes_count - 1; i >= 0; i--) {
		if (town->pipes[i]->node->at.port == port)
			return town->pipes[i];
	}
	fail_msg("nobody talks to port %u", port);
	return NULL;
}

static inline void up(struct town *town, uint16_t port)
{
	hs_flow_up(town->flow, town->now, pipe_to(town, port));
	hs_flow_flush(town->flow, town->now);
}

static inline void down(struct town *town, uint16_t port)
{
	struct hs_pipe *pipe = pipe_to(town, port);

	town_forget(town, pipe);
	hs_flow_down(town->flow, town->now, pipe, "cut");
}

/* What was sent there since the last look must be `text`, spaces for the frames of RESP: the words
 * of all requests, "GET a|GET b". It is in the kernel's hands from here on. */
static inline void sent(struct town *town, uint16_t port, const char *text)
{
	struct hs_pipe *pipe = pipe_to(town, port);
	struct hs_buf words = {0};
	size_t at = 0;

	while (at < pipe->upstream.out.len) {
		struct hs_answer head, word;
		int64_t used = hs_answer_head(&head, pipe->upstream.out.data + at,
					      pipe->upstream.out.len - at);

		assert_true(used > 0);
		at += (size_t)used;
		if (words.len > 0)
			hs_buf_append(&words, "|", 1);
		for (int64_t i = 0; i < head.count; i++) {
			used = hs_answer_head(&word, pipe->upstream.out.data + at,
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

static inline void reply(struct town *town, uint16_t port, const char *text)
{
	hs_flow_receive(town->flow, town->now, pipe_to(town, port), text, strlen(text));
	hs_flow_flush(town->flow, town->now);
}

static inline void pass(struct town *town, uint64_t ms)
{
	town->now.mono_us += ms * 1000;
	hs_flow_tick(town->flow, town->now);
}

/* An operation of words, made but not submitted. */
static inline struct asked *make(struct town *town, uint64_t client, enum hs_command_id id,
				 uint16_t slot, const char *text)
{
	struct asked *asked = &town->ops[town->ops_count++];
	struct hs_bytes rest = hs_bytes_of(text);

	assert_true(town->ops_count <= OPS_MAX);
	asked->op = (struct hs_op){
		.kind = HS_OP_COMMAND,
		.resp = 2,
		.client = client,
		.slot = slot,
		.partition = slot == HS_SLOT_NONE ? 0 : (uint16_t)(slot / (HS_SLOTS / 2)),
		.command = hs_command_by_id(id),
		.argv = asked->argv,
		.received = town->now,
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

static inline struct asked *submit(struct town *town, struct asked *asked)
{
	if (hs_flow_submit(town->flow, &asked->op) == HS_SUBMIT_DONE)
		town_finished(town, town->now, &asked->op);
	hs_flow_flush(town->flow, town->now);
	return asked;
}

static inline struct asked *get(struct town *town, uint64_t client, uint16_t slot, const char *text)
{
	return submit(town, make(town, client, HS_CMD_ID_GET, slot, text));
}

static inline struct asked *set(struct town *town, uint64_t client, uint16_t slot, const char *text)
{
	return submit(town, make(town, client, HS_CMD_ID_SET, slot, text));
}

/* What was told since the last look. */
static inline void told(struct town *town, const char *text)
{
	hs_buf_append(&town->told, "", 1);
	assert_string_equal(town->told.data, text);
	town->told.len = 0;
}

static inline void got(const struct asked *asked, const char *text)
{
	assert_true(asked->done);
	assert_int_equal(asked->reply.len, strlen(text));
	assert_memory_equal(asked->reply.data, text, strlen(text));
}

/* An error that begins like this. */
static inline void failed(const struct asked *asked, const char *text)
{
	assert_true(asked->done);
	assert_true(asked->reply.len > strlen(text));
	assert_memory_equal(asked->reply.data, text, strlen(text));
}

static inline struct asked *make_exec(struct town *town, uint64_t watcher,
				      struct hs_op_tx_command *commands, size_t count)
{
	struct asked *asked = make(town, 1, HS_CMD_ID_EXEC, 1, "EXEC");

	asked->op.kind = HS_OP_EXEC;
	asked->op.watcher = watcher;
	asked->tx = (struct hs_op_tx){.commands = commands, .count = count};
	asked->op.tx = &asked->tx;
	return asked;
}

#endif
