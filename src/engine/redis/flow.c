#include "base/address.h"
#include "base/list.h"
#include "base/mem.h"
#include "engine/redis/internal.h"
#include "wire/reply.h"

#include <stdio.h>
#include <stdlib.h>

enum { ERROR_BYTES_MAX = 512 };

/* ---- answers ---- */

static void write_error(struct hs_op *op, const char *format, va_list args)
{
	struct hs_reply reply = {.out = op->out, .resp = op->resp};
	char text[ERROR_BYTES_MAX];

	vsnprintf(text, sizeof text, format, args);
	op->out->len = 0;
	op->answer.len = 0;
	hs_reply_error(&reply, text);
}

bool hs_flow_refuse(struct hs_flow *flow, struct hs_op *op, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	write_error(op, format, args);
	va_end(args);
	hs_flow_count(&flow->stats->refused, 1);
	return false;
}

void hs_flow_finish(struct hs_flow *flow, struct hs_op *op)
{
	if (op->engine_state & HS_STATE_OURS) {
		struct hs_buf *out = op->out;

		if (op->watcher != 0)
			hs_unblock_answered(flow, op);
		hs_buf_deinit(out);
		hs_mem_release(op);
		return;
	}
	flow->calls->finished(flow->context, flow->now, op);
}

void hs_flow_fail(struct hs_flow *flow, struct hs_op *op, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	write_error(op, format, args);
	va_end(args);
	hs_flow_finish(flow, op);
}

/* ---- nodes ---- */

struct hs_node *hs_flow_owner(struct hs_flow *flow, uint16_t slot)
{
	uint16_t node = flow->slots[slot].node;

	return node == HS_NODE_NONE ? NULL : flow->nodes[node];
}

uint16_t hs_flow_number(const struct hs_flow *flow, const struct hs_node *node)
{
	for (uint16_t i = 0; i < flow->nodes_count; i++) {
		if (flow->nodes[i] == node)
			return i;
	}
	return HS_NODE_NONE;
}

static struct hs_node *node_create(const char *host, size_t host_len, uint16_t port)
{
	struct hs_node *node = hs_mem_zalloc(sizeof *node);

	snprintf(node->at.host, sizeof node->at.host, "%.*s", (int)host_len, host);
	node->at.port = port;
	node->at.partition = HS_PARTITIONS_MAX;
	hs_address_text(node->at.host, port, node->text, sizeof node->text);
	hs_pipe_init(&node->pipes[HS_PIPE_RESP2], node, 2, false);
	hs_pipe_init(&node->pipes[HS_PIPE_RESP3], node, 3, false);
	hs_pipe_init(&node->pipes[HS_PIPE_FILL], node, 3, false);
	node->pipes[HS_PIPE_FILL].fill = true;
	hs_pipe_init(&node->pipes[HS_PIPE_REPLICA], node, 3, false);
	node->pipes[HS_PIPE_REPLICA].replica = true;
	hs_list_init(&node->idle);
	return node;
}

struct hs_node *hs_flow_node(struct hs_flow *flow, const char *host, size_t host_len, uint16_t port)
{
	uint16_t free = HS_NODE_NONE;

	for (uint16_t i = 0; i < flow->nodes_count; i++) {
		struct hs_node *node = flow->nodes[i];

		if (!node)
			free = i;
		else if (node->at.port == port && strlen(node->at.host) == host_len &&
			 memcmp(node->at.host, host, host_len) == 0)
			return node;
	}
	if (host_len >= HS_HOST_BYTES_MAX)
		return NULL;
	if (free == HS_NODE_NONE) {
		if (flow->nodes_count == HS_NODES_MAX)
			return NULL;
		free = flow->nodes_count++;
	}
	flow->nodes[free] = node_create(host, host_len, port);
	return flow->nodes[free];
}

void hs_flow_touch(struct hs_flow *flow, struct hs_pipe *pipe)
{
	if (hs_list_empty(&pipe->dirty))
		hs_list_append(&flow->dirty, &pipe->dirty);
}

void hs_flow_doom(struct hs_flow *flow, struct hs_pipe *pipe, const char *why, bool blameless)
{
	pipe->closing = true;
	pipe->blameless = blameless;
	pipe->doom = why;
	hs_flow_touch(flow, pipe);
}

void hs_flow_open(struct hs_flow *flow, struct hs_pipe *pipe)
{
	if (pipe->state != HS_PIPE_DOWN || flow->now.mono_us < pipe->node->open_at_us ||
	    flow->now.mono_us < pipe->open_at_us)
		return;
	pipe->state = HS_PIPE_OPENING;
	pipe->opened_us = flow->now.mono_us;
	hs_pipe_reset(pipe);
	hs_flow_count(&flow->stats->connects, 1);
	flow->calls->open(flow->context, pipe);
}

/* ---- the way out ---- */

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
		hs_flow_count_waiting(flow, &node->pipes[i], -(int)node->pipes[i].waiting.count);
	node->at.partition = partition;
	for (int i = 0; i < HS_NODE_PIPES; i++)
		hs_flow_count_waiting(flow, &node->pipes[i], (int)node->pipes[i].waiting.count);
}

void hs_flow_pump(struct hs_flow *flow, struct hs_pipe *pipe)
{
	while (pipe->state == HS_PIPE_UP && pipe->waiting.first &&
	       pipe->flying.count < flow->options.flying_max && pipe->out.len < HS_PIPE_OUT_MAX) {
		hs_pipe_compose(pipe, hs_ops_pop(&pipe->waiting), false);
		hs_flow_count_waiting(flow, pipe, -1);
		hs_flow_touch(flow, pipe);
	}
}

/* A node that has been away for longer than anybody waits keeps nobody waiting, as long as it is
 * tried again and again. A server that refuses the password refuses it at the next try, too: nobody
 * waits for it. One that nobody has wanted anything of since it closed a connection, or
 * failed to open one, may be well. */
static bool is_given_up(const struct hs_flow *flow, const struct hs_node *node)
{
	return node->unreachable && node->down_since_us > 0 &&
	       (node->no_login ||
		flow->now.mono_us - node->down_since_us > flow->options.timeout_us) &&
	       flow->now.mono_us < node->open_at_us + HS_OPEN_US_MAX;
}

const char *hs_flow_away(const struct hs_node *node, const char *why, char *text, size_t size)
{
	if (strncmp(why, HS_NO_LOGIN, strlen(HS_NO_LOGIN)) == 0)
		snprintf(text, size, "ERR %s: heatsink %s; not sent", node->text, why);
	else
		snprintf(text, size, "CLUSTERDOWN %s does not answer (%s); not sent", node->text,
			 why);
	return text;
}

/* It can be had otherwise, and that is no trouble of the server's. */
static bool __attribute__((format(printf, 2, 3)))
turn_away(struct hs_op *op, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	write_error(op, format, args);
	va_end(args);
	return false;
}

bool hs_flow_send(struct hs_flow *flow, struct hs_node *node, struct hs_op *op, bool asking)
{
	struct hs_pipe *pipe = &node->pipes[op->resp == 3 ? HS_PIPE_RESP3 : HS_PIPE_RESP2];
	char why[HS_AWAY_BYTES];

	/* Who is asked for a slot on the move does not vouch: ASKING and CACHING hold for the next
	 * command each, and it is not the slot's owner yet. */
	if (op->track && !asking && hs_fill_is_for(flow, node, op))
		pipe = &node->pipes[HS_PIPE_FILL];
	else if (op->track && node->resp2_only)
		return turn_away(op, "NOVOUCH %s does not speak RESP3; not sent", node->text);
	op->engine_state &= ~(unsigned)(HS_STATE_HEALED | HS_STATE_ASKED);
	if (asking)
		op->engine_state |= HS_STATE_ASKED;
	if (pipe->state == HS_PIPE_UP && !pipe->waiting.first &&
	    pipe->flying.count < flow->options.flying_max && pipe->out.len < HS_PIPE_OUT_MAX) {
		hs_pipe_compose(pipe, op, asking);
		hs_flow_touch(flow, pipe);
		return true;
	}
	if (asking) { /* not among those that wait: it must be asked for right before */
		hs_flow_open(flow, pipe);
		return false;
	}
	if (pipe->state == HS_PIPE_DOWN && is_given_up(flow, node)) {
		hs_flow_open(flow, pipe);
		return hs_flow_refuse(flow, op, "%s",
				      hs_flow_away(node, node->down_why, why, sizeof why));
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

/* ---- slots ---- */

static struct hs_slot_hold *hold_of(struct hs_flow *flow, uint16_t slot)
{
	struct hs_slot_state *state = &flow->slots[slot];
	uint16_t at;

	if (state->hold > 0)
		return flow->holds[state->hold - 1];
	for (at = flow->holds_hint; at < flow->holds_count && flow->holds[at]; at++)
		continue;
	flow->holds_hint = (uint16_t)(at + 1);
	if (at == flow->holds_count) {
		if (flow->holds_count == flow->holds_cap) {
			flow->holds_cap = flow->holds_cap ? (uint16_t)(flow->holds_cap * 2) : 16;
			flow->holds =
				hs_mem_realloc(flow->holds, flow->holds_cap * sizeof *flow->holds);
		}
		flow->holds_count++;
	}
	flow->holds[at] = hs_mem_zalloc(sizeof *flow->holds[at]);
	flow->holds[at]->slot = slot;
	state->hold = (uint16_t)(at + 1);
	return flow->holds[at];
}

static bool park(struct hs_flow *flow, struct hs_op *op, uint16_t slot)
{
	if (flow->parked >= flow->options.waiting_max)
		return hs_flow_refuse(flow, op,
				      "BUSY %u requests wait for slots on the move already "
				      "(engine-queue); not sent",
				      flow->parked);
	hs_ops_push(&hold_of(flow, slot)->fresh, op);
	flow->parked++;
	return true;
}

/* In the order in which they were submitted. */
static void insert(struct hs_ops *ops, struct hs_op *op)
{
	struct hs_op **at = &ops->first;

	if (!ops->last || ops->last->engine_order < op->engine_order) {
		hs_ops_push(ops, op);
		return;
	}
	while ((*at)->engine_order < op->engine_order)
		at = &(*at)->next;
	op->next = *at;
	*at = op;
	ops->count++;
}

void hs_flow_park_back(struct hs_flow *flow, struct hs_op *op, uint64_t delay_us)
{
	struct hs_slot_hold *hold = hold_of(flow, hs_flow_slot(flow, op));
	uint64_t until_us = flow->now.mono_us + delay_us;

	insert(&hold->back, op);
	flow->parked++;
	if (delay_us > 0 && hold->until_us < until_us)
		hold->until_us = until_us;
}

static bool place_in_slot(struct hs_flow *flow, struct hs_op *op, uint16_t slot)
{
	struct hs_slot_state *state = &flow->slots[slot];

	if (state->node == HS_NODE_NONE)
		return hs_flow_refuse(flow, op, "CLUSTERDOWN Hash slot not served: %u; not sent",
				      slot);
	if (!hs_flow_send(flow, flow->nodes[state->node], op, false))
		return false;
	state->sent_to = state->node;
	state->underway++;
	op->engine_state |= HS_STATE_COUNTED;
	return true;
}

/* Sends what was parked, if the slot is ready for it. The hold stays until it is empty: what is
 * submitted meanwhile queues up in it. */
void hs_flow_release(struct hs_flow *flow, uint16_t slot)
{
	struct hs_slot_state *state = &flow->slots[slot];
	struct hs_slot_hold *hold = state->hold ? flow->holds[state->hold - 1] : NULL;
	struct hs_op *op;

	if (!hold || hold->releasing || state->underway > 0 || flow->now.mono_us < hold->until_us)
		return;
	hold->releasing = true;
	while ((op = hs_ops_pop(&hold->back)) || (op = hs_ops_pop(&hold->fresh))) {
		flow->parked--;
		op->out->len = 0;
		if (!place_in_slot(flow, op, slot))
			hs_flow_finish(flow, op);
	}
	flow->holds[state->hold - 1] = NULL;
	if (flow->holds_hint > state->hold - 1)
		flow->holds_hint = (uint16_t)(state->hold - 1);
	state->hold = 0;
	hs_mem_free(&hold);
}

void hs_flow_overtaken(struct hs_flow *flow, const struct hs_op *by)
{
	uint16_t slot = hs_flow_slot(flow, by);
	struct hs_slot_hold *hold;
	struct hs_ops back;
	struct hs_op *op;

	if (slot == HS_SLOT_NONE || flow->slots[slot].hold == 0)
		return;
	hold = flow->holds[flow->slots[slot].hold - 1];
	back = hold->back;
	hold->back = (struct hs_ops){0};
	while ((op = hs_ops_pop(&back))) {
		if (op->client != by->client || op->engine_order > by->engine_order) {
			insert(&hold->back, op);
			continue;
		}
		flow->parked--;
		if (op->out->len > 0)
			hs_flow_finish(flow, op);
		else
			hs_flow_fail(flow, op,
				     "CLUSTERDOWN a later command of this client ran while "
				     "slot %u was on the move; not sent",
				     slot);
	}
}

void hs_flow_leave(struct hs_flow *flow, struct hs_op *op)
{
	if (!(op->engine_state & HS_STATE_COUNTED))
		return;
	op->engine_state &= ~(unsigned)HS_STATE_COUNTED;
	flow->slots[hs_flow_slot(flow, op)].underway--;
}

/* Without a key: its partition's node; or, when any will do, one that is there. */
static struct hs_node *node_without_slot(struct hs_flow *flow, const struct hs_op *op)
{
	uint16_t first = flow->node_of_partition[op->partition];
	struct hs_node *node = first == HS_NODE_NONE ? NULL : flow->nodes[first];

	if (op->command->place != HS_PLACE_ANY || (node && node->down_since_us == 0))
		return node;
	for (uint32_t i = 0; i <= HS_PARTITIONS_MAX; i++) {
		uint16_t other = flow->node_of_partition[i];

		if (other != HS_NODE_NONE && flow->nodes[other]->down_since_us == 0)
			return flow->nodes[other];
	}
	return node;
}

static bool refuse_unrouted(struct hs_flow *flow, struct hs_op *op)
{
	char trouble[HS_REDIS_WHY_BYTES] = "", text[ERROR_BYTES_MAX];

	if (flow->calls->trouble)
		flow->calls->trouble(flow->context, trouble, sizeof trouble);
	hs_unserved_text(trouble, text, sizeof text);
	return hs_flow_refuse(flow, op, "%s", text);
}

bool hs_flow_place(struct hs_flow *flow, struct hs_op *op)
{
	uint16_t slot = hs_flow_slot(flow, op);
	struct hs_slot_state *state;

	if (!flow->routed)
		return refuse_unrouted(flow, op);
	if (slot == HS_SLOT_NONE) {
		struct hs_node *node = node_without_slot(flow, op);

		if (!node)
			return hs_flow_refuse(flow, op,
					      "CLUSTERDOWN partition %u has no server; not sent",
					      op->partition);
		return hs_flow_send(flow, node, op, false);
	}
	state = &flow->slots[slot];
	if (state->hold > 0 || (state->underway > 0 && state->sent_to != state->node))
		return park(flow, op, slot);
	return place_in_slot(flow, op, slot);
}

void hs_flow_place_again(struct hs_flow *flow, struct hs_op *op)
{
	uint16_t slot = hs_flow_slot(flow, op);
	const struct hs_slot_state *state = slot == HS_SLOT_NONE ? NULL : &flow->slots[slot];

	bool ours = op->engine_state & HS_STATE_OURS; /* for that one node alone */

	if (!ours && state &&
	    (state->hold > 0 || (state->underway > 0 && state->sent_to != state->node)))
		hs_flow_park_back(flow, op, 0);
	else if (ours || !hs_flow_place(flow, op))
		hs_flow_finish(flow, op);
}

/* One that has waited in the core has the rest of its time, or a fifth: the server may be well again. */
uint64_t hs_flow_deadline(const struct hs_flow *flow, const struct hs_op *op)
{
	uint64_t whole_us = flow->options.timeout_us, now_us = op->received.mono_us;
	uint64_t until_us = (op->since_us ? op->since_us : now_us) + whole_us;

	return until_us < now_us + whole_us / 5 ? now_us + whole_us / 5 : until_us;
}

enum hs_submit hs_flow_submit(struct hs_flow *flow, struct hs_op *op)
{
	flow->now = op->received;
	op->engine_data = NULL;
	op->engine_state = 0;
	op->engine_order = ++flow->order;
	if (op->track)
		op->vouch = NULL;
	op->engine_deadline_us = hs_flow_deadline(flow, op);
	if (op->replica_since_us > 0 && hs_replica_send(flow, op))
		return HS_SUBMIT_QUEUED;
	if (hs_own_is_for(op))
		return hs_own_submit(flow, op);
	return hs_flow_place(flow, op) ? HS_SUBMIT_QUEUED : HS_SUBMIT_DONE;
}

/* ---- routes ---- */

/* Of a node that is not there: those whose slot is elsewhere by now go there. */
static void replace_waiting(struct hs_flow *flow, struct hs_pipe *pipe)
{
	struct hs_ops waiting = pipe->waiting;
	struct hs_op *op;

	if (pipe->state == HS_PIPE_UP || !waiting.first)
		return;
	pipe->waiting = (struct hs_ops){0};
	hs_flow_count_waiting(flow, pipe, -(int)waiting.count);
	for (op = waiting.first; op; op = op->next)
		hs_flow_leave(flow, op);
	while ((op = hs_ops_pop(&waiting)))
		hs_flow_place_again(flow, op);
}

static bool is_unused(const struct hs_node *node)
{
	for (int i = 0; i < HS_NODE_PIPES; i++) {
		if (node->pipes[i].state != HS_PIPE_DOWN || node->pipes[i].waiting.first)
			return false;
	}
	return !node->listed && hs_list_empty(&node->idle);
}

static void drop_node(struct hs_flow *flow, uint16_t number)
{
	struct hs_node *node = flow->nodes[number];

	for (struct hs_link *link = flow->owned.next; link != &flow->owned; link = link->next) {
		if (hs_list_entry(link, struct hs_pipe, owns)->node == node)
			return;
	}
	for (uint32_t slot = 0; slot < HS_SLOTS; slot++) {
		if (flow->slots[slot].node == number)
			return; /* a redirect said so: the next routes will know */
	}
	hs_fill_deinit(flow, &node->pipes[HS_PIPE_FILL]);
	for (int i = 0; i < HS_NODE_PIPES; i++)
		hs_pipe_deinit(&node->pipes[i]);
	flow->nodes[number] = NULL;
	hs_mem_free(&node);
}

/* Of what a node vouched for, some is elsewhere: it hears of that no more. */
static void set_owner(struct hs_flow *flow, uint32_t slot, uint16_t node)
{
	struct hs_slot_state *state = &flow->slots[slot];

	if (state->node == node)
		return;
	if (state->node != HS_NODE_NONE)
		flow->nodes[state->node]->lost_slots = true;
	state->node = node;
	state->asked_s = 0;
}

void hs_flow_route(struct hs_flow *flow, struct hs_now now, const struct hs_routes *routes)
{
	uint16_t *number = hs_mem_alloc((routes->nodes_count + 1u) * sizeof *number);

	flow->now = now;
	for (uint16_t i = 0; i < flow->nodes_count; i++) {
		if (flow->nodes[i])
			flow->nodes[i]->listed = false;
	}
	for (uint16_t i = 0; i < routes->nodes_count; i++) {
		const struct hs_route_node *at = &routes->nodes[i];
		struct hs_node *node = hs_flow_node(flow, at->host, strlen(at->host), at->port);

		number[i] = HS_NODE_NONE;
		if (!node)
			continue;
		hs_flow_set_partition(flow, node, at->partition);
		node->at = *at;
		node->listed = true;
		number[i] = hs_flow_number(flow, node);
	}
	for (uint32_t i = 0; i <= HS_PARTITIONS_MAX; i++) {
		uint16_t node = routes->node_of_partition[i];

		flow->node_of_partition[i] = node == HS_NODE_NONE ? node : number[node];
	}
	for (uint32_t slot = 0; slot < HS_SLOTS; slot++) {
		uint16_t node = routes->node_of_slot[slot];

		set_owner(flow, slot, node == HS_NODE_NONE ? node : number[node]);
	}
	flow->routed = routes->nodes_count > 0;
	hs_replica_route(flow, routes, number);
	hs_mem_release(number);
	for (uint16_t i = 0; i < flow->nodes_count; i++) {
		if (!flow->nodes[i])
			continue;
		if (flow->nodes[i]->lost_slots)
			hs_fill_void(flow->nodes[i]);
		flow->nodes[i]->lost_slots = false;
		for (int j = 0; j < HS_NODE_PIPES; j++)
			replace_waiting(flow, &flow->nodes[i]->pipes[j]);
		if (is_unused(flow->nodes[i]))
			drop_node(flow, i);
	}
	/* What was turned away need not wait out its delay when the way is known. */
	for (uint16_t i = 0; i < flow->holds_count; i++) {
		if (flow->holds[i]) {
			flow->holds[i]->until_us = 0;
			hs_flow_release(flow, flow->holds[i]->slot);
		}
	}
}

/* ---- time ---- */

void hs_flow_flush(struct hs_flow *flow, struct hs_now now)
{
	flow->now = now;
	while (!hs_list_empty(&flow->dirty)) {
		struct hs_pipe *pipe = hs_list_entry(flow->dirty.next, struct hs_pipe, dirty);

		hs_list_remove(&pipe->dirty);
		if (pipe->closing) {
			flow->calls->close(flow->context, pipe);
			hs_flow_down(flow, now, pipe, pipe->doom);
		} else if (pipe->out.len > 0 && pipe->state == HS_PIPE_UP) {
			flow->calls->send(flow->context, pipe);
		}
	}
}

static bool is_late(const struct hs_flow *flow, const struct hs_op *op)
{
	return flow->now.mono_us > op->engine_deadline_us;
}

bool hs_flow_is_overdue(struct hs_flow *flow, struct hs_pipe *pipe)
{
	const struct hs_op *op = pipe->flying.first;

	/* A long request goes out piece by piece; a long reply is noted where it comes in. */
	if (op && pipe->sent != pipe->sent_seen && op->engine_mark > pipe->sent)
		pipe->moved_us = flow->now.mono_us;
	pipe->sent_seen = pipe->sent;
	if (!op && pipe->own)
		op = pipe->waiting.first;
	return op && is_late(flow, op) && !pipe->closing &&
	       (pipe->moved_us == 0 ||
		flow->now.mono_us - pipe->moved_us > flow->options.timeout_us);
}

/* Those who have waited for so long that they are told. */
static void expire(struct hs_flow *flow, struct hs_pipe *pipe)
{
	char why[HS_AWAY_BYTES];

	while (pipe->waiting.first && is_late(flow, pipe->waiting.first)) {
		struct hs_op *op = hs_ops_pop(&pipe->waiting);
		const struct hs_node *node = pipe->node;
		const char *why_down = node->down_since_us ? node->down_why
				       : pipe->state == HS_PIPE_OPENING
					       ? "a new connection to it is not ready yet"
					       : "too busy";

		hs_flow_count_waiting(flow, pipe, -1);
		hs_flow_leave(flow, op);
		hs_flow_count(&flow->stats->refused, 1);
		hs_flow_fail(flow, op, "%s", hs_flow_away(node, why_down, why, sizeof why));
	}
	if (hs_flow_is_overdue(flow, pipe))
		hs_flow_doom(flow, pipe,
			     pipe->replica ? "no reply in time" : "no reply within engine-timeout",
			     pipe->replica);
}

static void expire_hold(struct hs_flow *flow, struct hs_ops *ops, uint16_t slot)
{
	while (ops->first && is_late(flow, ops->first)) {
		struct hs_op *op = hs_ops_pop(ops);

		flow->parked--;
		if (op->out->len > 0) /* what the server said last */
			hs_flow_finish(flow, op);
		else
			hs_flow_fail(flow, op, "CLUSTERDOWN slot %u is on the move; not sent",
				     slot);
	}
}

static void tick_holds(struct hs_flow *flow)
{
	for (uint16_t i = 0; i < flow->holds_count; i++) {
		struct hs_slot_hold *hold = flow->holds[i];

		if (!hold)
			continue;
		expire_hold(flow, &hold->back, hold->slot);
		expire_hold(flow, &hold->fresh, hold->slot);
		hs_flow_release(flow, hold->slot);
	}
}

void hs_flow_tick(struct hs_flow *flow, struct hs_now now)
{
	flow->now = now;
	for (uint16_t i = 0; i < flow->nodes_count; i++) {
		struct hs_node *node = flow->nodes[i];

		for (int j = 0; node && j < HS_NODE_PIPES; j++) {
			struct hs_pipe *pipe = &node->pipes[j];

			expire(flow, pipe);
			if (pipe->waiting.first)
				hs_flow_open(flow, pipe);
			hs_flow_pump(flow, pipe);
			if (!node->listed && pipe->state == HS_PIPE_UP && !pipe->flying.first) {
				hs_flow_doom(flow, pipe, "not part of the cluster any more", true);
			}
		}
		if (node) {
			hs_fill_tick(flow, &node->pipes[HS_PIPE_FILL]);
			hs_replica_tick(flow, node);
		}
	}
	tick_holds(flow);
	hs_own_tick(flow);
	hs_flow_flush(flow, now);
}

/* ---- the beginning and the end ---- */

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
	hs_list_init(&flow->owned);
	for (uint32_t i = 0; i < HS_SLOTS; i++)
		flow->slots[i].node = HS_NODE_NONE;
	for (uint32_t i = 0; i <= HS_PARTITIONS_MAX; i++)
		flow->node_of_partition[i] = HS_NODE_NONE;
	return flow;
}

static void end_pipe(struct hs_flow *flow, struct hs_pipe *pipe)
{
	struct hs_op *op;

	if (pipe->state != HS_PIPE_DOWN)
		flow->calls->close(flow->context, pipe);
	pipe->state = HS_PIPE_DOWN;
	while ((op = hs_ops_pop(&pipe->flying)) || (op = hs_ops_pop(&pipe->waiting)))
		hs_flow_fail(flow, op, "ERR shutting down: the outcome of this command is unknown");
	hs_pipe_deinit(pipe);
}

void hs_flow_destroy(struct hs_flow **pointer)
{
	struct hs_flow *flow = *pointer;
	struct hs_op *op;

	hs_own_deinit(flow);
	for (uint16_t i = 0; i < flow->holds_count; i++) {
		struct hs_slot_hold *hold = flow->holds[i];

		while (hold && ((op = hs_ops_pop(&hold->back)) || (op = hs_ops_pop(&hold->fresh))))
			hs_flow_fail(flow, op, "ERR shutting down; not sent");
		hs_mem_free(&flow->holds[i]);
	}
	for (uint16_t i = 0; i < flow->nodes_count; i++) {
		if (!flow->nodes[i])
			continue;
		hs_fill_deinit(flow, &flow->nodes[i]->pipes[HS_PIPE_FILL]);
		for (int j = 0; j < HS_NODE_PIPES; j++)
			end_pipe(flow, &flow->nodes[i]->pipes[j]);
		hs_mem_free(&flow->nodes[i]);
	}
	hs_mem_free(&flow->holds);
	hs_mem_free(pointer);
}

bool hs_flow_needs_flush(const struct hs_flow *flow)
{
	return !hs_list_empty(&flow->dirty);
}
