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
 * most commands, those that prove who it is among them: a pipe opened for such a command proves nothing,
 * and serves nobody else.
 *
 * If the pipe is lost meanwhile, or the slot moves away, nobody can know whether the watched keys
 * changed: EXEC answers that they did, which is always allowed. */
#include "base/list.h"
#include "base/mem.h"
#include "engine/redis/internal.h"
#include "wire/reply.h"

/* SCRIPT KILL, FUNCTION KILL: one server's success is the answer. */
static bool is_kill(const struct hs_op *op)
{
	return op->kind == HS_OP_COMMAND && op->command->merge == HS_MERGE_ONE_SUCCEEDED;
}

bool hs_own_is_for(const struct hs_op *op)
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

static struct hs_pipe *find(struct hs_flow *flow, uint64_t watcher)
{
	for (struct hs_link *link = flow->owned.next; link != &flow->owned; link = link->next) {
		struct hs_pipe *pipe = hs_list_entry(link, struct hs_pipe, owns);

		if (pipe->watcher == watcher)
			return pipe;
	}
	return NULL;
}

static void drop(struct hs_flow *flow, struct hs_pipe *pipe)
{
	if (pipe->idle)
		pipe->node->idle_count--;
	flow->own_count--;
	hs_flow_count(&flow->stats->own, -1);
	hs_pipe_deinit(pipe);
	hs_mem_release(pipe);
}

void hs_own_close(struct hs_flow *flow, struct hs_pipe *pipe)
{
	if (pipe->state == HS_PIPE_UP)
		hs_flow_count(&flow->stats->connections, -1);
	if (pipe->state != HS_PIPE_DOWN)
		flow->calls->close(flow->context, pipe);
	drop(flow, pipe);
}

/* Has an idle one of any node closed to make room: with the next flush, because what it was given
 * back with may be just being read. */
static bool make_room(struct hs_flow *flow)
{
	if (flow->own_count < flow->options.own_max)
		return true;
	for (uint16_t i = 0; i < flow->nodes_count; i++) {
		struct hs_node *node = flow->nodes[i];

		if (!node || hs_list_empty(&node->idle))
			continue;

		struct hs_pipe *pipe = hs_list_entry(node->idle.next, struct hs_pipe, owns);

		pipe->idle = false;
		node->idle_count--;
		hs_list_remove(&pipe->owns);
		hs_list_append(&flow->owned, &pipe->owns);
		hs_flow_doom(flow, pipe, "another one is needed", true);
		return true;
	}
	return false;
}

static struct hs_pipe *get(struct hs_flow *flow, struct hs_node *node, uint8_t resp, bool unproven)
{
	struct hs_pipe *pipe;

	for (struct hs_link *link = node->idle.next; link != &node->idle; link = link->next) {
		pipe = hs_list_entry(link, struct hs_pipe, owns);
		if (pipe->resp == resp) {
			hs_list_remove(&pipe->owns);
			hs_list_append(&flow->owned, &pipe->owns);
			pipe->idle = false;
			node->idle_count--;
			return pipe;
		}
	}
	if (!make_room(flow))
		return NULL;
	pipe = hs_mem_alloc(sizeof *pipe);
	hs_pipe_init(pipe, node, resp, true);
	pipe->unproven = unproven;
	hs_list_append(&flow->owned, &pipe->owns);
	flow->own_count++;
	hs_flow_count(&flow->stats->own, 1);
	return pipe;
}

/* Its client is done with it. */
static void put(struct hs_flow *flow, struct hs_pipe *pipe)
{
	struct hs_node *node = pipe->node;

	pipe->watcher = 0;
	pipe->asking = false;
	if (pipe->state != HS_PIPE_UP || pipe->doom || node->idle_count >= HS_OWN_IDLE_MAX ||
	    !node->listed || pipe->unblocked || pipe->unproven) {
		hs_flow_doom(flow, pipe, "not needed any more", true);
		return;
	}
	pipe->idle = true;
	pipe->opened_us = flow->now.mono_us;
	hs_list_remove(&pipe->owns);
	hs_list_append(&node->idle, &pipe->owns);
	node->idle_count++;
}

/* What it watches cannot be told any more: EXEC will find no pipe, and answer that it changed. */
static enum hs_submit answer_lost(struct hs_op *op)
{
	struct hs_reply reply = {.out = op->out, .resp = op->resp};

	if (op->kind == HS_OP_EXEC)
		hs_reply_null_array(&reply);
	else
		hs_reply_ok(&reply);
	return HS_SUBMIT_DONE;
}

/* Has it fly on the pipe, now or when it is open. */
static void send(struct hs_flow *flow, struct hs_pipe *pipe, struct hs_op *op, bool asking)
{
	op->engine_data = pipe;
	pipe->asking = asking;
	if (pipe->state == HS_PIPE_UP) {
		hs_pipe_compose(pipe, op, asking);
		hs_flow_touch(flow, pipe);
		return;
	}
	hs_ops_push(&pipe->waiting, op);
	if (pipe->state == HS_PIPE_DOWN) {
		pipe->state = HS_PIPE_OPENING;
		pipe->opened_us = flow->now.mono_us;
		hs_pipe_reset(pipe);
		hs_flow_count(&flow->stats->connects, 1);
		flow->calls->open(flow->context, pipe);
	}
}

static struct hs_node *node_for(struct hs_flow *flow, const struct hs_op *op)
{
	uint16_t slot = hs_flow_slot(flow, op);
	uint16_t number = slot == HS_SLOT_NONE ? flow->node_of_partition[op->partition]
					       : flow->slots[slot].node;

	return flow->routed && number != HS_NODE_NONE ? flow->nodes[number] : NULL;
}

/* False: refused, the error is in op->out. */
static bool start(struct hs_flow *flow, struct hs_node *node, struct hs_op *op, bool asking)
{
	struct hs_pipe *pipe;
	char why[HS_AWAY_BYTES];

	if (!node)
		return hs_flow_refuse(flow, op, "CLUSTERDOWN Hash slot not served; not sent");
	if (!is_kill(op) && node->down_since_us && flow->now.mono_us < node->open_at_us &&
	    node->pipes[0].state != HS_PIPE_UP && node->pipes[1].state != HS_PIPE_UP)
		return hs_flow_refuse(flow, op, "%s",
				      hs_flow_away(node, node->down_why, why, sizeof why));
	pipe = get(flow, node, op->resp, is_kill(op));
	if (!pipe)
		return hs_flow_refuse(
			flow, op,
			"BUSY all %u connections for blocking commands and WATCH are in "
			"use (engine-private-connections); not sent",
			flow->options.own_max);
	pipe->watcher = op->kind == HS_OP_WATCH ? op->watcher : 0;
	send(flow, pipe, op, asking);
	return true;
}

/* Whether it rests on what the same client watched before. */
static bool watches_already(const struct hs_op *op)
{
	return op->kind == HS_OP_EXEC || op->kind == HS_OP_UNWATCH ||
	       (op->kind == HS_OP_WATCH && op->watching);
}

enum hs_submit hs_own_submit(struct hs_flow *flow, struct hs_op *op)
{
	struct hs_pipe *pipe = NULL;

	if (op->kind != HS_OP_COMMAND)
		pipe = find(flow, op->watcher);
	else if (!is_kill(op))
		op->engine_deadline_us = UINT64_MAX;
	if (!pipe && watches_already(op))
		return answer_lost(op);
	if (!pipe)
		return start(flow, node_for(flow, op), op, false) ? HS_SUBMIT_QUEUED
								  : HS_SUBMIT_DONE;
	/* The slot is elsewhere by now, and with it whoever may change the keys. */
	if (flow->options.cluster && node_for(flow, op) != pipe->node) {
		hs_flow_doom(flow, pipe, "its slot moved", true);
		pipe->watcher = 0;
		return answer_lost(op);
	}
	send(flow, pipe, op, false);
	return HS_SUBMIT_QUEUED;
}

bool hs_own_reply(struct hs_flow *flow, struct hs_pipe *pipe, struct hs_op *op,
		  struct hs_bytes reply)
{
	struct hs_redirect redirect;
	bool moved = flow->options.cluster && reply.data[0] == '-' &&
		     hs_flow_read_redirect(reply, &redirect);
	enum hs_unblock unblock = pipe->unblock;
	struct hs_node *node;

	op->engine_data = NULL;
	if (op->kind == HS_OP_WATCH && !moved)
		return false; /* the pipe stays the watcher's */
	if (!moved) {
		put(flow, pipe);
		return false;
	}
	hs_flow_doom(flow, pipe, "its slot moved", true); /* with whatever it watches */
	pipe->watcher = 0;
	node = hs_flow_redirected(flow, pipe, &redirect);
	if (watches_already(op))
		answer_lost(op);
	else if (start(flow, node, op, redirect.ask)) {
		if (unblock != HS_UNBLOCK_NO)
			hs_flow_unblock(flow, op, unblock == HS_UNBLOCK_ERROR);
		return true;
	}
	hs_flow_finish(flow, op);
	return true;
}

void hs_own_down(struct hs_flow *flow, struct hs_pipe *pipe, const char *why)
{
	struct hs_op *op;
	uint64_t sent = pipe->sent;
	const struct hs_node *node = pipe->node;
	char text[HS_AWAY_BYTES];

	hs_list_remove(&pipe->owns);
	while ((op = hs_ops_pop(&pipe->flying))) {
		op->engine_data = NULL;
		if (op->engine_mark > sent || op->kind == HS_OP_WATCH) {
			hs_flow_fail(flow, op,
				     "CLUSTERDOWN the connection to %s was lost (%s); not "
				     "sent",
				     node->text, why);
		} else if (op->kind == HS_OP_UNWATCH) {
			answer_lost(op);
			hs_flow_finish(flow, op);
		} else {
			hs_flow_count(&flow->stats->unknown, 1);
			hs_flow_fail(flow, op,
				     "UNKNOWN the connection to %s was lost before it answered "
				     "(%s): the command may or may not have run; heatsink "
				     "does not repeat it",
				     node->text, why);
		}
	}
	while ((op = hs_ops_pop(&pipe->waiting))) {
		op->engine_data = NULL;
		hs_flow_fail(flow, op, "%s", hs_flow_away(node, why, text, sizeof text));
	}
	drop(flow, pipe);
}

void hs_flow_cancel(struct hs_flow *flow, struct hs_op *op)
{
	struct hs_pipe *pipe = op->engine_data;

	if (!pipe || !pipe->own)
		return;
	/* The server must not serve it any more: what it would pop would be lost. */
	hs_flow_doom(flow, pipe, "its client has gone", true);
}

/* WATCH, EXEC and UNWATCH wait as long as anything; what blocks has no deadline. */
static void expire(struct hs_flow *flow)
{
	for (struct hs_link *link = flow->owned.next; link != &flow->owned; link = link->next) {
		struct hs_pipe *pipe = hs_list_entry(link, struct hs_pipe, owns);

		if (hs_flow_is_overdue(flow, pipe))
			hs_flow_doom(flow, pipe, "no reply within engine-timeout", false);
	}
}

void hs_own_tick(struct hs_flow *flow)
{
	expire(flow);
	hs_unblock_tick(flow);
	for (uint16_t i = 0; i < flow->nodes_count; i++) {
		struct hs_node *node = flow->nodes[i];

		while (node && !hs_list_empty(&node->idle)) {
			struct hs_pipe *pipe = hs_list_entry(node->idle.next, struct hs_pipe, owns);

			if (node->listed && flow->now.mono_us - pipe->opened_us < HS_OWN_IDLE_US)
				break;
			hs_own_close(flow, pipe);
		}
	}
}

static void end(struct hs_flow *flow, struct hs_link *list)
{
	while (!hs_list_empty(list)) {
		struct hs_pipe *pipe = hs_list_entry(list->next, struct hs_pipe, owns);

		if (pipe->state != HS_PIPE_DOWN)
			flow->calls->close(flow->context, pipe);
		if (pipe->state == HS_PIPE_UP)
			hs_flow_count(&flow->stats->connections, -1);
		pipe->state = HS_PIPE_DOWN;
		hs_own_down(flow, pipe, "shutting down");
	}
}

void hs_own_deinit(struct hs_flow *flow)
{
	end(flow, &flow->owned);
	for (uint16_t i = 0; i < flow->nodes_count; i++) {
		if (flow->nodes[i])
			end(flow, &flow->nodes[i]->idle);
	}
}
