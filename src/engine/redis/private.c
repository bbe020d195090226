/* Pipes that serve one client for a while.
 *
 * A watch lives in a connection, and a command that blocks keeps its connection for itself: neither
 * can be on one that others share. The core sees to it that a client has nothing else under way
 * then, so the order of its commands needs no thought here.
 *
 *     WATCH ──► a pipe is the watcher's ──► EXEC or UNWATCH ──► it is free again
 *     BLPOP ──► a pipe until the answer ──────────────────────► it is free again
 *     SCRIPT KILL ──► an idle pipe, or a new one ─────────────► it is free again, or closed
 *
 * SCRIPT KILL and FUNCTION KILL would wait on a shared pipe for the very script that they should end: the
 * server reads nothing more from the connection that runs it. A server that is busy with a script refuses
 * most commands, those that say which node it is among them: a pipe opened for such a command does not ask
 * (hs_pipe.bare), and serves nobody else.
 *
 * If the pipe is lost meanwhile, or the slot moves away, nobody can know whether the watched keys
 * changed: EXEC answers that they did, which is always allowed. */
#include "base/list.h"
#include "base/mem.h"
#include "engine/redis/internal.h"
#include "wire/compose.h"
#include "wire/reply.h"

/* SCRIPT KILL, FUNCTION KILL: one server's success is the answer. */
static bool is_kill(const struct hs_op *op)
{
	return op->kind == HS_OP_COMMAND && op->command->merge == HS_MERGE_ONE_SUCCEEDED;
}

bool hs_private_is_for(const struct hs_op *op)
{
	switch (op->kind) {
	case HS_OP_WATCH:
	case HS_OP_UNWATCH:
		return true;
	case HS_OP_EXEC:
		return op->watcher != 0;
	default:
		return is_kill(op) || hs_command_blocks(op->command, op->argc, op->argv);
	}
}

static struct hs_private_pipe *private_of(struct hs_pipe *pipe)
{
	return (struct hs_private_pipe *)pipe;
}

static struct hs_private_pipe *find(struct hs_flow *flow, uint64_t watcher)
{
	hs_list_each(struct hs_private_pipe, priv, &flow->private_pipes, link) {
		if (priv->watcher == watcher)
			return priv;
	}
	return NULL;
}

/* From the idle ones of its node to those in use. */
static void take(struct hs_flow *flow, struct hs_private_pipe *priv)
{
	hs_list_remove(&priv->link);
	hs_list_append(&flow->private_pipes, &priv->link);
	priv->idle = false;
	priv->pipe.node->idle_count--;
}

/* Has an idle one of any node closed to make room: with the next flush, because what it was given
 * back with may be just being read. */
static bool make_room(struct hs_flow *flow)
{
	if (flow->private_count < flow->options.private_max)
		return true;
	for (uint16_t i = 0; i < flow->nodes_count; i++) {
		struct hs_node *node = flow->nodes[i];

		if (!node || hs_list_empty(&node->idle))
			continue;

		struct hs_private_pipe *priv = hs_private_at(node->idle.next);

		take(flow, priv);
		hs_flow_close(flow, &priv->pipe, "another one is needed", true);
		return true;
	}
	return false;
}

static struct hs_private_pipe *get(struct hs_flow *flow, struct hs_node *node, uint8_t resp,
				   bool hello_only)
{
	struct hs_private_pipe *priv;

	hs_list_each(struct hs_private_pipe, idle, &node->idle, link) {
		if (idle->pipe.upstream.resp == resp) {
			take(flow, idle);
			return idle;
		}
	}
	if (!make_room(flow))
		return NULL;
	priv = hs_mem_zalloc(sizeof *priv);
	hs_pipe_init(&priv->pipe, &hs_private_pipes, node);
	priv->pipe.upstream.resp = resp;
	priv->pipe.hello_only = hello_only;
	hs_list_append(&flow->private_pipes, &priv->link);
	flow->private_count++;
	hs_counter_add(&flow->stats->private_connections, 1);
	return priv;
}

/* What it was for is elsewhere now. */
static void give_up(struct hs_flow *flow, struct hs_private_pipe *priv)
{
	hs_flow_close(flow, &priv->pipe, "its slot moved", true);
	priv->watcher = 0;
	flow->private_count -= !priv->given_up;
	priv->given_up = true;
}

/* Its client is done with it. */
static void put(struct hs_flow *flow, struct hs_private_pipe *priv)
{
	struct hs_pipe *pipe = &priv->pipe;
	struct hs_node *node = pipe->node;

	priv->watcher = 0;
	if (pipe->upstream.state != HS_UPSTREAM_UP || pipe->upstream.close_reason ||
	    node->idle_count >= HS_PRIVATE_IDLE_MAX || !node->listed || priv->unblocked ||
	    pipe->hello_only) {
		hs_flow_close(flow, pipe, "not needed any more", true);
		return;
	}
	priv->idle = true;
	priv->idle_us = flow->now.mono_us;
	hs_list_remove(&priv->link);
	hs_list_append(&node->idle, &priv->link);
	node->idle_count++;
}

/* ---- requests ---- */

static bool is_wait(const struct hs_command *command)
{
	return strncmp(command->name, "wait", strlen("wait")) == 0;
}

static void compose(struct hs_pipe *pipe, struct hs_op *op, bool asking)
{
	struct hs_buf *out = &pipe->upstream.out;
	size_t start = out->len;
	uint32_t replies = 0;

	/* A client that watches may choose the other dialect meanwhile. */
	if (pipe->upstream.resp != op->resp && op->kind != HS_OP_UNWATCH) {
		hs_compose_line(out, op->resp == 3 ? "HELLO 3" : "HELLO 2");
		pipe->upstream.resp = op->resp;
		replies++;
	}
	/* WAIT looks at the last command of its own connection: one that comes behind all its client's
	 * writes, which have been answered. */
	if (op->kind == HS_OP_COMMAND && is_wait(op->command)) {
		hs_compose_line(out, "PING");
		replies++;
	}
	hs_pipe_compose_behind(pipe, op, asking, start, replies);
}

/* What it watches cannot be told any more: EXEC will find no pipe, and answer that it changed. */
static enum hs_submit answer_watch_lost(struct hs_op *op)
{
	struct hs_reply reply = {.out = op->out, .resp = op->resp};

	if (op->kind == HS_OP_EXEC)
		hs_reply_null_array(&reply);
	else
		hs_reply_ok(&reply);
	return HS_SUBMIT_DONE;
}

/* Now, or when the pipe is open. */
static void send(struct hs_flow *flow, struct hs_private_pipe *priv, struct hs_op *op, bool asking)
{
	struct hs_pipe *pipe = &priv->pipe;

	op->engine_data = priv;
	priv->asking = asking;
	if (pipe->upstream.state == HS_UPSTREAM_UP) {
		compose(pipe, op, asking);
		hs_flow_mark_dirty(flow, pipe);
		return;
	}
	hs_ops_push(&pipe->waiting, op);
	if (pipe->upstream.state == HS_UPSTREAM_DOWN)
		hs_flow_connect(flow, pipe);
}

static struct hs_node *node_for(struct hs_flow *flow, const struct hs_op *op)
{
	uint16_t slot = hs_flow_slot(flow, op);

	if (!hs_flow_is_routed(flow))
		return NULL;
	return slot == HS_SLOT_NONE ? hs_flow_node_of_partition(flow, op->partition)
				    : hs_flow_owner(flow, slot);
}

/* False: refused, the error is in op->out. */
static bool start(struct hs_flow *flow, struct hs_node *node, struct hs_op *op, bool asking)
{
	struct hs_private_pipe *priv;
	char why[HS_UNREACHABLE_BYTES];

	if (!node)
		return hs_flow_refuse(flow, op, "CLUSTERDOWN Hash slot not served; not sent");
	if (!is_kill(op) && node->down_since_us && flow->now.mono_us < node->backoff.open_at_us &&
	    !hs_node_is_reached(node))
		return hs_flow_refuse(
			flow, op, "%s",
			hs_flow_unreachable_text(node, node->down_why, why, sizeof why));
	priv = get(flow, node, op->resp, is_kill(op));
	if (!priv)
		return hs_flow_refuse(
			flow, op,
			"BUSY all %u connections for blocking commands and WATCH are in "
			"use (engine-private-connections); not sent",
			flow->options.private_max);
	priv->watcher = op->kind == HS_OP_WATCH ? op->watcher : 0;
	send(flow, priv, op, asking);
	return true;
}

/* Whether it rests on what the same client watched before. */
static bool watches_already(const struct hs_op *op)
{
	return op->kind == HS_OP_EXEC || op->kind == HS_OP_UNWATCH ||
	       (op->kind == HS_OP_WATCH && op->has_watches);
}

static bool has_in_flight(const struct hs_private_pipe *priv, enum hs_op_kind kind)
{
	for (const struct hs_op *op = priv->pipe.in_flight.first; op; op = op->next) {
		if (op->kind == kind)
			return true;
	}
	return false;
}

enum hs_submit hs_private_submit(struct hs_flow *flow, struct hs_op *op)
{
	struct hs_private_pipe *priv = NULL;

	if (op->kind != HS_OP_COMMAND)
		priv = find(flow, op->watcher);
	else if (!is_kill(op))
		op->engine_deadline_us = UINT64_MAX;
	/* UNWATCH is under way on it, and what is watched now is on another node: each has a connection. */
	if (priv && op->kind == HS_OP_WATCH && !op->has_watches &&
	    node_for(flow, op) != priv->pipe.node) {
		priv->watcher = 0;
		priv = NULL;
	}
	if (!priv && watches_already(op))
		return answer_watch_lost(op);
	if (!priv)
		return start(flow, node_for(flow, op), op, false) ? HS_SUBMIT_QUEUED
								  : HS_SUBMIT_DONE;
	/* The slot is elsewhere by now, and with it whoever may change the keys. */
	if (flow->options.cluster && node_for(flow, op) != priv->pipe.node) {
		give_up(flow, priv);
		return answer_watch_lost(op);
	}
	send(flow, priv, op, false);
	return HS_SUBMIT_QUEUED;
}

/* Its slot moved, and with it whatever the pipe watches. */
static void follow(struct hs_flow *flow, struct hs_private_pipe *priv, struct hs_op *op,
		   const struct hs_redirect *redirect)
{
	enum hs_unblock unblock = priv->unblock;
	/* If UNWATCH is behind a WATCH, its client has gone: UNWATCH will not be sent again. */
	bool over = watches_already(op) || has_in_flight(priv, HS_OP_UNWATCH);
	struct hs_node *node;

	give_up(flow, priv);
	node = hs_flow_redirected(flow, &priv->pipe, redirect);
	if (over) {
		answer_watch_lost(op);
		hs_flow_finish(flow, op);
	} else if (!start(flow, node, op, redirect->ask)) {
		hs_flow_finish(flow, op);
	} else if (unblock != HS_UNBLOCK_NO) {
		hs_flow_unblock(flow, op, unblock == HS_UNBLOCK_ERROR);
	}
}

static void take_reply(struct hs_flow *flow, struct hs_pipe *pipe, struct hs_op *op,
		       struct hs_bytes reply, bool owned)
{
	struct hs_private_pipe *priv = private_of(pipe);
	struct hs_redirect redirect;
	struct hs_buf said = {0};
	struct hs_bytes cause = hs_flow_cause(op, reply, &said);

	op->engine_data = NULL;
	if (flow->options.cluster && cause.data[0] == '-' &&
	    hs_flow_is_redirect(cause, &redirect)) {
		follow(flow, priv, op, &redirect);
	} else {
		/* Else it stays the watcher's, who may watch again before UNWATCH is answered. */
		if (op->kind != HS_OP_WATCH && !has_in_flight(priv, HS_OP_WATCH))
			put(flow, priv);
		hs_flow_answer(flow, pipe, op, reply, owned);
	}
	hs_buf_deinit(&said);
}

static void drop(struct hs_flow *flow, struct hs_private_pipe *priv)
{
	hs_list_remove(&priv->link);
	if (priv->idle)
		priv->pipe.node->idle_count--;
	flow->private_count -= !priv->given_up;
	hs_counter_sub(&flow->stats->private_connections, 1);
	hs_pipe_deinit(&priv->pipe);
	hs_mem_free(&priv);
}

static void down(struct hs_flow *flow, struct hs_pipe *pipe, bool was_up, const char *why)
{
	struct hs_op *op;
	uint64_t sent = pipe->upstream.sent;
	const struct hs_node *node = pipe->node;
	char text[HS_UNREACHABLE_BYTES];

	(void)was_up;
	hs_list_remove(&private_of(pipe)->link);
	while ((op = hs_ops_pop(&pipe->in_flight))) {
		op->engine_data = NULL;
		if (op->engine_mark > sent || op->kind == HS_OP_WATCH) {
			hs_flow_fail(flow, op,
				     "CLUSTERDOWN the connection to %s was lost (%s); not "
				     "sent",
				     node->text, why);
		} else if (op->kind == HS_OP_UNWATCH) {
			answer_watch_lost(op);
			hs_flow_finish(flow, op);
		} else {
			hs_counter_add(&flow->stats->outcome_unknown, 1);
			hs_flow_fail(flow, op, HS_FLOW_UNKNOWN, node->text, why);
		}
	}
	while ((op = hs_ops_pop(&pipe->waiting))) {
		op->engine_data = NULL;
		hs_flow_fail(flow, op, "%s",
			     hs_flow_unreachable_text(node, why, text, sizeof text));
	}
	drop(flow, private_of(pipe));
}

void hs_flow_cancel(struct hs_flow *flow, struct hs_op *op)
{
	struct hs_private_pipe *priv = hs_private_of(op);

	/* The server must not serve it any more: what it would pop would be lost. */
	if (priv)
		hs_flow_close(flow, &priv->pipe, "its client has gone", true);
}

static void up(struct hs_flow *flow, struct hs_pipe *pipe)
{
	struct hs_private_pipe *priv = private_of(pipe);

	while (pipe->waiting.first)
		compose(pipe, hs_ops_pop(&pipe->waiting), priv->asking);
	hs_flow_mark_dirty(flow, pipe);
	hs_unblock_send(flow, priv);
}

/* ---- time ---- */

/* At once. */
static void end(struct hs_flow *flow, struct hs_private_pipe *priv)
{
	struct hs_pipe *pipe = &priv->pipe;

	if (pipe->upstream.state != HS_UPSTREAM_DOWN)
		flow->calls->close(flow->context, pipe);
	if (pipe->upstream.state == HS_UPSTREAM_UP)
		hs_counter_sub(&flow->stats->connections, 1);
	pipe->upstream.state = HS_UPSTREAM_DOWN;
	down(flow, pipe, false, "shutting down");
}

void hs_private_tick(struct hs_flow *flow)
{
	/* WATCH, EXEC and UNWATCH wait as long as anything; what blocks has no deadline. */
	hs_list_each(struct hs_private_pipe, priv, &flow->private_pipes, link) {
		struct hs_pipe *pipe = &priv->pipe;

		hs_flow_close_overdue(flow, pipe,
				      pipe->in_flight.first ? pipe->in_flight.first
							    : pipe->waiting.first);
		hs_unblock_send(flow, priv);
	}
	for (uint16_t i = 0; i < flow->nodes_count; i++) {
		struct hs_node *node = flow->nodes[i];

		while (node && !hs_list_empty(&node->idle)) {
			struct hs_private_pipe *priv = hs_private_at(node->idle.next);

			if (node->listed && flow->now.mono_us - priv->idle_us < HS_PRIVATE_IDLE_US)
				break;
			end(flow, priv);
		}
	}
}

void hs_private_deinit(struct hs_flow *flow)
{
	while (!hs_list_empty(&flow->private_pipes))
		end(flow, hs_private_at(flow->private_pipes.next));
	for (uint16_t i = 0; i < flow->nodes_count; i++) {
		while (flow->nodes[i] && !hs_list_empty(&flow->nodes[i]->idle))
			end(flow, hs_private_at(flow->nodes[i]->idle.next));
	}
}

const struct hs_pipe_kind hs_private_pipes = {
	.resp = 2, /* or its client's dialect */
	.shares_login = true,
	.timeout_reason = "no reply within engine-timeout",
	.compose = compose,
	.up = up,
	.down = down,
	.skipped = hs_pipe_keep_error,
	.reply = take_reply,
};
