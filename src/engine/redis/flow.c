/* The flow's entry points: sends operations to pipes, queues them, applies deadlines. */
#include "base/address.h"
#include "base/list.h"
#include "base/mem.h"
#include "engine/redis/internal.h"

#include <stdio.h>
#include <stdlib.h>

enum { ERROR_BYTES_MAX = 512 };

/* ---- finishing ---- */

void hs_flow_finish(struct hs_flow *flow, struct hs_op *op)
{
	if (op->engine_state & HS_STATE_INTERNAL)
		hs_flow_request_done(flow, op);
	else
		flow->calls->finished(flow->context, flow->now, op);
}

void hs_flow_finish_all(struct hs_flow *flow, struct hs_ops *ops)
{
	struct hs_op *op;

	while ((op = hs_ops_pop(ops)))
		hs_flow_finish(flow, op);
}

/* ---- nodes ---- */

static struct hs_node *node_create(struct hs_bytes host, uint16_t port, uint16_t number)
{
	static const struct hs_pipe_kind *const kinds[HS_NODE_PIPES] = {
		&hs_resp2_pipes, &hs_resp3_pipes, &hs_fetch_pipes, &hs_replica_pipes};
	struct hs_node *node = hs_mem_zalloc(sizeof *node);

	snprintf(node->at.host, sizeof node->at.host, "%.*s", (int)host.len, host.data);
	node->at.port = port;
	node->at.partition = HS_PARTITIONS_MAX;
	node->number = number;
	hs_address_text(node->at.host, port, node->text, sizeof node->text);
	node->pipes[0] = &node->shared[0];
	node->pipes[1] = &node->shared[1];
	node->pipes[2] = &node->fetch.pipe;
	node->pipes[3] = &node->replica.pipe;
	for (int i = 0; i < HS_NODE_PIPES; i++)
		hs_pipe_init(node->pipes[i], kinds[i], node);
	hs_list_init(&node->idle);
	return node;
}

struct hs_node *hs_flow_node(struct hs_flow *flow, struct hs_bytes host, uint16_t port)
{
	uint16_t free = HS_NODE_NONE;

	for (uint16_t i = 0; i < flow->nodes_count; i++) {
		struct hs_node *node = flow->nodes[i];

		if (!node)
			free = i;
		else if (node->at.port == port && hs_bytes_equal(hs_bytes_of(node->at.host), host))
			return node;
	}
	if (host.len >= HS_HOST_BYTES_MAX)
		return NULL;
	if (free == HS_NODE_NONE) {
		if (flow->nodes_count == HS_NODES_MAX)
			return NULL;
		free = flow->nodes_count++;
	}
	flow->nodes[free] = node_create(host, port, free);
	return flow->nodes[free];
}

void hs_flow_mark_dirty(struct hs_flow *flow, struct hs_pipe *pipe)
{
	if (hs_list_empty(&pipe->dirty))
		hs_list_append(&flow->dirty, &pipe->dirty);
}

void hs_flow_close(struct hs_flow *flow, struct hs_pipe *pipe, const char *why, bool blameless)
{
	if (!pipe->upstream.close_reason)
		pipe->upstream.blameless = blameless;
	hs_upstream_close(&pipe->upstream, why);
	hs_flow_mark_dirty(flow, pipe);
}

void hs_flow_connect(struct hs_flow *flow, struct hs_pipe *pipe)
{
	hs_pipe_reset(pipe);
	hs_upstream_opening(&pipe->upstream, flow->now.mono_us);
	hs_counter_add(&flow->stats->connection_attempts, 1);
	flow->calls->open(flow->context, pipe);
}

void hs_flow_open(struct hs_flow *flow, struct hs_pipe *pipe)
{
	if (hs_upstream_may_open(&pipe->upstream, flow->now.mono_us) &&
	    flow->now.mono_us >= pipe->node->backoff.open_at_us)
		hs_flow_connect(flow, pipe);
}

/* ---- sending ---- */

void hs_flow_count_waiting(struct hs_flow *flow, const struct hs_pipe *pipe, int more)
{
	_Atomic uint32_t *waiting = &flow->stats->waiting[pipe->node->at.partition];

	atomic_store_explicit(waiting,
			      atomic_load_explicit(waiting, memory_order_relaxed) + (uint32_t)more,
			      memory_order_relaxed);
}

void hs_flow_set_partition(struct hs_flow *flow, struct hs_node *node, uint16_t partition)
{
	for (int i = 0; i < HS_NODE_PIPES; i++)
		hs_flow_count_waiting(flow, node->pipes[i], -(int)node->pipes[i]->waiting.count);
	node->at.partition = partition;
	for (int i = 0; i < HS_NODE_PIPES; i++)
		hs_flow_count_waiting(flow, node->pipes[i], (int)node->pipes[i]->waiting.count);
}

void hs_flow_pump(struct hs_flow *flow, struct hs_pipe *pipe)
{
	while (pipe->waiting.first && hs_pipe_has_room(flow, pipe)) {
		pipe->kind->compose(pipe, hs_ops_pop(&pipe->waiting), false);
		hs_flow_count_waiting(flow, pipe, -1);
		hs_flow_mark_dirty(flow, pipe);
	}
}

/* New operations for this node fail at once: the node has been unreachable for longer than the timeout, or it
 * refused the login, and the flow keeps trying to connect. If no attempt was made lately, the node may be well
 * again: then an operation waits for the next attempt. */
static bool is_given_up(const struct hs_flow *flow, const struct hs_node *node)
{
	return node->unreachable && node->down_since_us > 0 &&
	       (node->no_login ||
		flow->now.mono_us - node->down_since_us > flow->options.timeout_us) &&
	       flow->now.mono_us < node->backoff.open_at_us + HS_RECONNECT_US_MAX;
}

const char *hs_flow_unreachable_text(const struct hs_node *node, const char *why, char *text,
				     size_t size)
{
	if (hs_bytes_begins(hs_bytes_of(why), HS_LIT(HS_LOGIN_REFUSED)))
		snprintf(text, size, "ERR %s: heatsink %s; not sent", node->text, why);
	else
		snprintf(text, size, "CLUSTERDOWN %s does not answer (%s); not sent", node->text,
			 why);
	return text;
}

/* The operation cannot be sent now: queues it on the pipe. False: the flow refuses the operation; or it is
 * `asking` and must not be queued, because the importing node needs ASKING right in front of the command. */
static bool hold_back(struct hs_flow *flow, struct hs_pipe *pipe, struct hs_op *op, bool asking)
{
	const struct hs_node *node = pipe->node;
	char why[HS_UNREACHABLE_BYTES];

	if (asking) {
		hs_flow_open(flow, pipe);
		/* the caller parks the operation and tries the slot's owner again soon */
		return false;
	}
	if (pipe->upstream.state == HS_UPSTREAM_DOWN && is_given_up(flow, node)) {
		hs_flow_open(flow, pipe);
		return hs_flow_refuse(
			flow, op, "%s",
			hs_flow_unreachable_text(node, node->down_why, why, sizeof why));
	}
	if (pipe->waiting.count >= flow->options.waiting_max)
		return hs_flow_refuse(
			flow, op, "BUSY %u requests wait for %s already (engine-queue); not sent",
			pipe->waiting.count, node->text);
	hs_ops_push(&pipe->waiting, op);
	hs_flow_count_waiting(flow, pipe, 1);
	hs_flow_open(flow, pipe);
	return true;
}

bool hs_flow_send(struct hs_flow *flow, struct hs_node *node, struct hs_op *op, bool asking)
{
	struct hs_pipe *pipe = &node->shared[op->resp == 3];

	/* An importing node does not own the slot, so it does not track the key. Besides, ASKING and CLIENT
	 * CACHING each apply to the next command only: one of them would be lost. */
	if (op->track && !asking && hs_fetch_pipe_is_for(flow, node, op)) {
		pipe = &node->fetch.pipe;
	} else if (op->track && node->fetch.resp2_only) {
		/* The cache then reads the value without tracking. The server has not failed. */
		hs_flow_write_error(op, "NOTRACKING %s does not speak RESP3; not sent", node->text);
		return false;
	}
	op->engine_state &= ~(unsigned)HS_STATE_SCRIPT_RESENT;
	if (asking)
		node->asking_us = flow->now.mono_us;
	if (pipe->waiting.first || !hs_pipe_has_room(flow, pipe))
		return hold_back(flow, pipe, op, asking);
	pipe->kind->compose(pipe, op, asking);
	if (asking)
		hs_slot_add_asking(flow, op);
	hs_flow_mark_dirty(flow, pipe);
	return true;
}

/* An operation without a slot goes to the node of its partition. If that node is down and the command may run at
 * any node, it goes to the first node that is not down. */
static struct hs_node *node_without_slot(struct hs_flow *flow, const struct hs_op *op)
{
	struct hs_node *node = hs_flow_node_of_partition(flow, op->partition);

	if (op->command->place != HS_PLACE_ANY || (node && node->down_since_us == 0))
		return node;
	for (uint32_t i = 0; i <= HS_PARTITIONS_MAX; i++) {
		struct hs_node *other = hs_flow_node_of_partition(flow, (uint16_t)i);

		if (other && other->down_since_us == 0)
			return other;
	}
	return node;
}

static bool refuse_unrouted(struct hs_flow *flow, struct hs_op *op)
{
	char unavailable_reason[HS_REDIS_WHY_BYTES] = "", text[ERROR_BYTES_MAX];

	if (flow->calls->unavailable_reason)
		flow->calls->unavailable_reason(flow->context, unavailable_reason,
						sizeof unavailable_reason);
	hs_engine_unavailable_text(unavailable_reason, text, sizeof text);
	return hs_flow_refuse(flow, op, "%s", text);
}

/* Sends an operation to its node, or parks it. False: the flow refuses it; op->out holds the error. */
static bool place(struct hs_flow *flow, struct hs_op *op)
{
	uint16_t slot = hs_flow_slot(flow, op);

	if (!hs_flow_is_routed(flow))
		return refuse_unrouted(flow, op);
	if (slot == HS_SLOT_NONE) {
		struct hs_node *node = node_without_slot(flow, op);

		if (!node)
			return hs_flow_refuse(flow, op,
					      "CLUSTERDOWN partition %u has no server; not sent",
					      op->partition);
		return hs_flow_send(flow, node, op, false);
	}
	return hs_slot_place(flow, op, slot);
}

bool hs_flow_place_again(struct hs_flow *flow, struct hs_op *op)
{
	uint16_t slot = hs_flow_slot(flow, op);

	if (op->engine_state & HS_STATE_INTERNAL)
		return false; /* the command is meant for one node: it never goes to another one */
	if (slot != HS_SLOT_NONE && hs_slot_is_held(hs_flow_slot_state(flow, slot)))
		return hs_flow_park_retry(flow, op, 0);
	return place(flow, op);
}

/* An operation that has waited in the core gets the rest of its timeout, but at least a fifth of the timeout: the
 * server may answer again. */
uint64_t hs_flow_deadline(const struct hs_flow *flow, const struct hs_op *op)
{
	uint64_t whole_us = flow->options.timeout_us, now_us = op->received.mono_us;
	uint64_t until_us = op->since_us + whole_us;

	if (op->since_us == 0)
		return now_us + whole_us;
	return until_us < now_us + whole_us / 5 ? now_us + whole_us / 5 : until_us;
}

enum hs_submit hs_flow_submit(struct hs_flow *flow, struct hs_op *op)
{
	flow->now = op->received;
	op->engine_data = NULL;
	op->engine_state = 0;
	op->engine_order = ++flow->order;
	if (op->track)
		op->tracking_session = NULL;
	op->engine_deadline_us = hs_flow_deadline(flow, op);
	if (op->replica_since_us > 0 && hs_replica_send(flow, op))
		return HS_SUBMIT_QUEUED;
	if (hs_private_is_for(op))
		return hs_private_submit(flow, op);
	return place(flow, op) ? HS_SUBMIT_QUEUED : HS_SUBMIT_DONE;
}

/* ---- time ---- */

void hs_flow_flush(struct hs_flow *flow, struct hs_now now)
{
	flow->now = now;
	while (!hs_list_empty(&flow->dirty)) {
		struct hs_pipe *pipe = hs_list_entry(flow->dirty.next, struct hs_pipe, dirty);

		hs_list_remove(&pipe->dirty);
		if (pipe->upstream.close_reason) {
			flow->calls->close(flow->context, pipe);
			hs_flow_down(flow, now, pipe, pipe->upstream.close_reason);
		} else if (pipe->upstream.out.len > 0 && pipe->upstream.state == HS_UPSTREAM_UP) {
			flow->calls->send(flow->context, pipe);
		}
	}
}

void hs_flow_close_overdue(struct hs_flow *flow, struct hs_pipe *pipe, const struct hs_op *op)
{
	/* A long request makes progress when another piece of it is written; a long reply, in hs_flow_receive.
	 * Bytes of earlier operations do not count, unlike in hs_upstream_is_silent. */
	if (op && pipe->upstream.sent != pipe->sent_seen && op->engine_mark > pipe->upstream.sent)
		pipe->progress_us = flow->now.mono_us;
	pipe->sent_seen = pipe->upstream.sent;
	if (op && hs_flow_is_late(flow, op) &&
	    (pipe->progress_us == 0 ||
	     flow->now.mono_us - pipe->progress_us > flow->options.timeout_us))
		hs_flow_close(flow, pipe, pipe->kind->timeout_reason,
			      pipe->kind->timeout_blameless);
}

/* Fails the operations that have waited for the pipe past their deadline. */
static void expire(struct hs_flow *flow, struct hs_pipe *pipe)
{
	char why[HS_UNREACHABLE_BYTES];

	while (pipe->waiting.first && hs_flow_is_late(flow, pipe->waiting.first)) {
		struct hs_op *op = hs_ops_pop(&pipe->waiting);
		const struct hs_node *node = pipe->node;
		const char *why_down = node->down_since_us ? node->down_why
				       : pipe->upstream.state == HS_UPSTREAM_OPENING
					       ? "a new connection to it is not ready yet"
					       : "too busy";

		hs_flow_count_waiting(flow, pipe, -1);
		hs_flow_leave_slot(flow, op);
		hs_counter_add(&flow->stats->refused, 1);
		hs_flow_fail(flow, op, "%s",
			     hs_flow_unreachable_text(node, why_down, why, sizeof why));
	}
	hs_flow_close_overdue(flow, pipe, pipe->in_flight.first);
}

/* The connection to this node can be closed: the routes do not list the node, and the flow has not wanted to send
 * ASKING to it for the timeout. (While its first slot migrates to a node, the slot's owner answers ASK, and the
 * routes do not list the node yet.) */
static bool is_abandoned(const struct hs_flow *flow, const struct hs_node *node)
{
	return !node->listed && (node->asking_us == 0 ||
				 flow->now.mono_us - node->asking_us > flow->options.timeout_us);
}

void hs_flow_tick(struct hs_flow *flow, struct hs_now now)
{
	flow->now = now;
	for (uint16_t i = 0; i < flow->nodes_count; i++) {
		struct hs_node *node = flow->nodes[i];

		for (int j = 0; node && j < HS_NODE_PIPES; j++) {
			struct hs_pipe *pipe = node->pipes[j];

			expire(flow, pipe);
			if (pipe->waiting.first)
				hs_flow_open(flow, pipe);
			hs_flow_pump(flow, pipe);
			if (is_abandoned(flow, node) && pipe->upstream.state == HS_UPSTREAM_UP &&
			    !pipe->in_flight.first) {
				hs_flow_close(flow, pipe, "the node left the cluster", true);
			}
			if (pipe->kind->tick)
				pipe->kind->tick(flow, pipe);
		}
	}
	hs_slots_tick(flow);
	hs_private_tick(flow);
	hs_flow_flush(flow, now);
}

/* ---- creation and end ---- */

struct hs_flow *hs_flow_create(const struct hs_flow_options *options,
			       const struct hs_flow_calls *calls, void *context,
			       struct hs_flow_stats *stats)
{
	struct hs_flow *flow = hs_mem_zalloc(sizeof *flow);

	flow->options = *options;
	flow->calls = calls;
	flow->context = context;
	flow->stats = stats;
	hs_prng_init(&flow->prng, options->seed);
	hs_list_init(&flow->dirty);
	hs_list_init(&flow->private_pipes);
	hs_list_init(&flow->holds);
	hs_hash_table_init(&flow->ask_redirects);
	return flow;
}

static void end_pipe(struct hs_flow *flow, struct hs_pipe *pipe)
{
	struct hs_op *op;

	if (pipe->upstream.state != HS_UPSTREAM_DOWN)
		flow->calls->close(flow->context, pipe);
	pipe->upstream.state = HS_UPSTREAM_DOWN;
	while ((op = hs_ops_pop(&pipe->in_flight)) || (op = hs_ops_pop(&pipe->waiting))) {
		hs_slot_forget_asking(flow, op);
		hs_flow_fail(flow, op, "ERR shutting down: the outcome of this command is unknown");
	}
}

void hs_flow_free_node(struct hs_flow *flow, struct hs_node **node)
{
	for (int i = 0; i < HS_NODE_PIPES; i++) {
		struct hs_pipe *pipe = (*node)->pipes[i];

		end_pipe(flow, pipe);
		if (pipe->kind->deinit)
			pipe->kind->deinit(pipe);
		hs_pipe_deinit(pipe);
	}
	hs_mem_free(node);
}

void hs_flow_destroy(struct hs_flow **pointer)
{
	struct hs_flow *flow = *pointer;

	hs_private_deinit(flow);
	hs_slots_deinit(flow);
	for (uint16_t i = 0; i < flow->nodes_count; i++) {
		if (flow->nodes[i])
			hs_flow_free_node(flow, &flow->nodes[i]);
	}
	hs_hash_table_deinit(&flow->ask_redirects);
	hs_routes_unref(&flow->routes);
	hs_mem_free(&flow->numbers);
	hs_mem_free(pointer);
}

bool hs_flow_needs_flush(const struct hs_flow *flow)
{
	return !hs_list_empty(&flow->dirty);
}
