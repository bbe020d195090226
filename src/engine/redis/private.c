/* Pipes that serve one client at a time.
 *
 * A WATCH belongs to a connection, and a command that blocks occupies its connection: neither can use a connection
 * that clients share. The core sends no other operation of such a client meanwhile, so this file need not keep
 * order.
 *
 *     WATCH ──► the client's pipe ──► EXEC or UNWATCH ──► idle again
 *     BLPOP ──► a pipe until the answer ────────────────► idle again
 *     SCRIPT KILL ──► an idle pipe, or a new one ───────► idle again, or closed
 *
 * On a shared pipe SCRIPT KILL or FUNCTION KILL would wait behind the script that it is to end: the server reads
 * nothing more from the connection that runs the script. A server that is busy with a script refuses most
 * commands, CLUSTER MYID among them: a pipe opened for a KILL greets with HELLO alone (hs_pipe.hello_only) and
 * serves no other client.
 *
 * If the pipe is lost, or the slot moves away, heatsink cannot know whether the watched keys changed: a later EXEC
 * answers null, as if they had changed, which Redis always allows. An EXEC in flight on a pipe that is lost ends
 * with UNKNOWN; if it was not wholly sent, with CLUSTERDOWN. */
#include "base/list.h"
#include "base/mem.h"
#include "engine/redis/internal.h"
#include "wire/compose.h"
#include "wire/reply.h"

/* SCRIPT KILL and FUNCTION KILL go to all nodes; one success is the answer. */
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

/* Moves an idle pipe of the node to flow->private_pipes. */
static void take(struct hs_flow *flow, struct hs_private_pipe *priv)
{
	hs_list_remove(&priv->link);
	hs_list_append(&flow->private_pipes, &priv->link);
	priv->idle = false;
	priv->pipe.node->idle_count--;
}

/* True: a new private pipe may be opened. If the limit is reached, closes an idle pipe of any node. The next flush
 * closes it, because this call may come while the pipe's bytes are being read. */
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

/* The slot moved away: has the pipe closed and takes it out of private_count. */
static void give_up(struct hs_flow *flow, struct hs_private_pipe *priv)
{
	hs_flow_close(flow, &priv->pipe, "its slot moved", true);
	priv->watcher = 0;
	flow->private_count -= !priv->given_up;
	priv->given_up = true;
}

/* The client does not need the pipe any more: the pipe becomes idle or is closed. */
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

	/* A client that watches keys on the pipe may have switched dialects since its WATCH. */
	if (pipe->upstream.resp != op->resp && op->kind != HS_OP_UNWATCH) {
		hs_compose_line(out, op->resp == 3 ? "HELLO 3" : "HELLO 2");
		pipe->upstream.resp = op->resp;
		replies++;
	}
	/* WAIT waits for the replication offset of its connection's last command. The client's writes went over
	 * another connection and were answered, so a PING on this one takes over an offset behind them. */
	if (op->kind == HS_OP_COMMAND && is_wait(op->command)) {
		hs_compose_line(out, "PING");
		replies++;
	}
	hs_pipe_compose_behind(pipe, op, asking, start, replies);
}

/* The watch is lost: answers null to EXEC, OK to WATCH and UNWATCH. A later EXEC finds no pipe and gets null,
 * too. */
static enum hs_submit answer_watch_lost(struct hs_op *op)
{
	struct hs_reply reply = {.out = op->out, .resp = op->resp};

	if (op->kind == HS_OP_EXEC)
		hs_reply_null_array(&reply);
	else
		hs_reply_ok(&reply);
	return HS_SUBMIT_DONE;
}

/* Composes the request at once if the pipe is up; otherwise when it is. */
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

/* Starts an operation on an idle or new pipe. False: the flow refuses it; op->out holds the error. */
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

/* The operation depends on keys that the client has watched before. */
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
	/* The client's earlier UNWATCH is in flight on the pipe, and the new WATCH is for a key at another node:
	 * the WATCH gets another pipe. */
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
	/* Another node owns the slot and runs the writes to the watched keys: this pipe's node does not see
	 * them. */
	if (flow->options.cluster && node_for(flow, op) != priv->pipe.node) {
		give_up(flow, priv);
		return answer_watch_lost(op);
	}
	send(flow, priv, op, false);
	return HS_SUBMIT_QUEUED;
}

/* The slot moved: the watches of the pipe are lost. */
static void follow(struct hs_flow *flow, struct hs_private_pipe *priv, struct hs_op *op,
		   const struct hs_redirect *redirect)
{
	enum hs_unblock unblock = priv->unblock;
	/* An UNWATCH is in flight behind this WATCH: its client does not need the watch any more, so WATCH is not
	 * sent to the new owner. */
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
		/* The pipe is free unless the client watches keys on it: `op` is a WATCH, or another WATCH is in
		 * flight. */
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

	/* Without the connection the server does not run the command: an element that the command pops would be
	 * lost. */
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

/* Closes the pipe at once, without waiting for a flush. */
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
	/* WATCH, EXEC and UNWATCH have the normal deadline; blocking commands have no deadline. */
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
	.resp = 2, /* default; `get` sets the client's dialect */
	.shares_login = true,
	.timeout_reason = "no reply within engine-timeout",
	.compose = compose,
	.up = up,
	.down = down,
	.skipped = hs_pipe_keep_error,
	.reply = take_reply,
};
