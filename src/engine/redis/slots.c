/* The state of each slot: its owner, the node to which the operations in flight went, and the hold, which has the
 * parked operations of the slot.
 *
 * Most flows use few slots, and a route change moves few slots. So the states of 64 neighbouring slots are created
 * together when one of these slots is first used, with the owners that the routes name. */
#include "base/list.h"
#include "base/mem.h"
#include "engine/redis/internal.h"

struct hs_slot_chunk *hs_slots_add(struct hs_flow *flow, uint16_t slot)
{
	struct hs_slot_chunk *chunk = hs_mem_zalloc(sizeof *chunk);
	uint32_t first = slot / HS_CHUNK_SLOTS * HS_CHUNK_SLOTS;

	for (uint32_t i = 0; i < HS_CHUNK_SLOTS; i++)
		chunk->slots[i].node = hs_flow_listed(flow, flow->routes->node_of_slot[first + i]);
	flow->chunks[slot / HS_CHUNK_SLOTS] = chunk;
	return chunk;
}

struct hs_node *hs_flow_owner(struct hs_flow *flow, uint16_t slot)
{
	uint16_t node = hs_flow_slot_state(flow, slot)->node;

	return node == HS_NODE_NONE ? NULL : flow->nodes[node];
}

void hs_slot_set_owner(struct hs_flow *flow, uint16_t slot, uint16_t node)
{
	struct hs_slot_chunk *chunk = hs_flow_chunk(flow, slot);

	chunk->slots[slot % HS_CHUNK_SLOTS].node = node;
	chunk->rare[slot % HS_CHUNK_SLOTS].ask_seen_s = 0;
	chunk->redirected = true;
}

/* ---- the routes changed ---- */

/* Gives the chunk's slots their new owners. Marks the nodes that lose a slot (lost_slots): they do not send
 * invalidations of the slot's keys any more. */
static void route_chunk(struct hs_flow *flow, struct hs_slot_chunk *chunk, const uint16_t *listed)
{
	for (uint32_t i = 0; i < HS_CHUNK_SLOTS; i++) {
		uint16_t before = chunk->slots[i].node, node = hs_flow_listed(flow, listed[i]);

		if (before == node)
			continue;
		if (before != HS_NODE_NONE)
			flow->nodes[before]->lost_slots = true;
		chunk->slots[i].node = node;
		chunk->rare[i].ask_seen_s = 0;
	}
	chunk->redirected = false;
}

void hs_slots_route(struct hs_flow *flow, const struct hs_routes *before)
{
	for (uint32_t i = 0; i < HS_CHUNKS; i++) {
		const uint16_t *listed = &flow->routes->node_of_slot[i * HS_CHUNK_SLOTS];
		struct hs_slot_chunk *chunk = flow->chunks[i];

		if (chunk && (!before || chunk->redirected ||
			      memcmp(listed, &before->node_of_slot[i * HS_CHUNK_SLOTS],
				     HS_CHUNK_SLOTS * sizeof *listed) != 0))
			route_chunk(flow, chunk, listed);
	}
}

/* ---- parked operations ---- */

static struct hs_slot_hold *hold_of(struct hs_flow *flow, uint16_t slot)
{
	struct hs_slot_state *state = hs_flow_slot_state(flow, slot);

	if (!state->hold) {
		state->hold = hs_mem_zalloc(sizeof *state->hold);
		state->hold->slot = slot;
		hs_list_append(&flow->holds, &state->hold->link);
	}
	return state->hold;
}

static bool park(struct hs_flow *flow, struct hs_op *op, uint16_t slot)
{
	if (flow->parked >= flow->options.waiting_max)
		return hs_flow_refuse(flow, op,
				      "BUSY %u requests wait for migrating slots already "
				      "(engine-queue); not sent",
				      flow->parked);
	hs_ops_push(&hold_of(flow, slot)->arrivals, op);
	flow->parked++;
	return true;
}

/* Inserts a retry in the order of submission. */
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

/* ---- operations in flight behind ASKING ----
 *
 * The owner of a migrating slot may answer ASK to one command of a pipeline and run the next one itself, because
 * the key of the second command has not moved or the migration was cancelled. If the importing node then rejects
 * the first command, the flow must not send it again: it would run after the second. */

struct asked {
	struct hs_hash_node node; /* in flow->ask_redirects, by client */
	struct hs_op *op;
};

void hs_slot_add_asking(struct hs_flow *flow, struct hs_op *op)
{
	struct asked *asked = hs_mem_alloc(sizeof *asked);

	asked->op = op;
	op->engine_data = asked;
	op->engine_state |= HS_STATE_ASKING;
	hs_hash_table_add(&flow->ask_redirects, &asked->node, op->client);
}

void hs_slot_forget_asking(struct hs_flow *flow, struct hs_op *op)
{
	struct asked *asked = op->engine_data;

	if (__builtin_expect(!(op->engine_state & HS_STATE_ASKING), 1))
		return;
	op->engine_state &= ~(unsigned)HS_STATE_ASKING;
	op->engine_data = NULL;
	hs_hash_table_remove(&flow->ask_redirects, &asked->node);
	hs_mem_free(&asked);
}

static void overtake_asking(struct hs_flow *flow, const struct hs_op *by, uint16_t slot)
{
	hs_hash_each(struct asked, asked, &flow->ask_redirects, by->client, node) {
		if (asked->op->engine_order < by->engine_order &&
		    hs_flow_slot(flow, asked->op) == slot)
			asked->op->engine_state |= HS_STATE_OVERTAKEN;
	}
}

/* ---- rejected operations ---- */

/* The operation ends with the error that rejected it. If no server rejected it, it ends with this error. */
static void refuse_overtaken(struct hs_op *op, uint16_t slot)
{
	if (op->out->len == 0)
		hs_flow_write_error(
			op, "CLUSTERDOWN a later command ran while slot %u was migrating; not sent",
			slot);
}

bool hs_flow_park_retry(struct hs_flow *flow, struct hs_op *op, uint64_t delay_us)
{
	uint16_t slot = hs_flow_slot(flow, op);
	struct hs_slot_hold *hold;
	uint64_t until_us = flow->now.mono_us + delay_us;

	if (__builtin_expect(op->engine_state & HS_STATE_OVERTAKEN, 0)) {
		refuse_overtaken(op, slot);
		return false;
	}
	hold = hold_of(flow, slot);
	insert(&hold->retries, op);
	flow->parked++;
	if (delay_us > 0 && hold->until_us < until_us)
		hold->until_us = until_us;
	return true;
}

static bool send(struct hs_flow *flow, struct hs_op *op, uint16_t slot, struct hs_slot_state *state)
{
	if (state->node == HS_NODE_NONE) {
		/* the topology monitor may find an owner */
		flow->calls->topology_suspect(flow->context);
		return hs_flow_refuse(flow, op, "CLUSTERDOWN Hash slot not served: %u; not sent",
				      slot);
	}
	if (!hs_flow_send(flow, flow->nodes[state->node], op, false))
		return false;
	state->sent_to = state->node;
	state->underway++;
	op->engine_state |= HS_STATE_COUNTED;
	return true;
}

bool hs_slot_place(struct hs_flow *flow, struct hs_op *op, uint16_t slot)
{
	struct hs_slot_state *state = hs_flow_slot_state(flow, slot);

	return hs_slot_is_held(state) ? park(flow, op, slot) : send(flow, op, slot, state);
}

/* Sends the parked operations if the slot is ready. The hold stays until it is empty: operations submitted
 * meanwhile are added to it. An EXEC with HS_STATE_SEND_ALONE could not follow ASK, because other operations of
 * its client were in flight. So EXEC is sent alone, and can follow ASK. */
void hs_flow_release(struct hs_flow *flow, uint16_t slot)
{
	struct hs_slot_state *state = hs_flow_slot_state(flow, slot);
	struct hs_slot_hold *hold = state->hold;
	struct hs_op *op;

	if (!hold || hold->releasing || state->underway > 0 || flow->now.mono_us < hold->until_us)
		return;
	hold->releasing = true;
	while ((op = hs_ops_pop(&hold->retries)) || (op = hs_ops_pop(&hold->arrivals))) {
		bool alone = op->engine_state & HS_STATE_SEND_ALONE;

		op->engine_state &= ~(unsigned)HS_STATE_SEND_ALONE;
		flow->parked--;
		op->out->len = 0;
		if (!send(flow, op, slot, state))
			hs_flow_finish(flow, op);
		else if (alone)
			break;
	}
	hold->releasing = false;
	if (op)
		return;
	hs_list_remove(&hold->link);
	hs_mem_free(&state->hold);
}

void hs_flow_release_all(struct hs_flow *flow)
{
	hs_list_each_safe(const struct hs_slot_hold, hold, &flow->holds, link)
		hs_flow_release(flow, hold->slot);
}

void hs_flow_overtaken(struct hs_flow *flow, const struct hs_op *by)
{
	uint16_t slot = hs_flow_slot(flow, by);
	struct hs_ops back, over = {0};
	struct hs_slot_hold *hold;
	struct hs_op *op;

	if (slot == HS_SLOT_NONE)
		return;
	if (__builtin_expect(flow->ask_redirects.count > 0, 0))
		overtake_asking(flow, by, slot);
	hold = hs_flow_slot_state(flow, slot)->hold;
	if (!hold)
		return;
	back = hold->retries;
	hold->retries = (struct hs_ops){0};
	while ((op = hs_ops_pop(&back))) {
		if (op->client != by->client || op->engine_order > by->engine_order) {
			insert(&hold->retries, op);
			continue;
		}
		flow->parked--;
		refuse_overtaken(op, slot);
		hs_ops_push(&over, op);
	}
	hs_flow_finish_all(flow, &over);
}

void hs_flow_leave_slot(struct hs_flow *flow, struct hs_op *op)
{
	hs_slot_forget_asking(flow, op);
	if (!(op->engine_state & HS_STATE_COUNTED))
		return;
	op->engine_state &= ~(unsigned)HS_STATE_COUNTED;
	hs_flow_slot_state(flow, hs_flow_slot(flow, op))->underway--;
}

static void expire_hold(struct hs_flow *flow, struct hs_ops *ops, uint16_t slot)
{
	while (ops->first && hs_flow_is_late(flow, ops->first)) {
		struct hs_op *op = hs_ops_pop(ops);

		flow->parked--;
		if (op->out->len == 0)
			hs_flow_write_error(op, "CLUSTERDOWN slot %u is migrating; not sent", slot);
		hs_flow_finish(flow, op);
	}
}

void hs_slots_tick(struct hs_flow *flow)
{
	hs_list_each_safe(struct hs_slot_hold, hold, &flow->holds, link) {
		expire_hold(flow, &hold->retries, hold->slot);
		expire_hold(flow, &hold->arrivals, hold->slot);
		hs_flow_release(flow, hold->slot);
	}
}

void hs_slots_deinit(struct hs_flow *flow)
{
	struct hs_op *op;

	hs_list_each_safe(struct hs_slot_hold, hold, &flow->holds, link) {
		while ((op = hs_ops_pop(&hold->retries)) || (op = hs_ops_pop(&hold->arrivals)))
			hs_flow_fail(flow, op, "ERR shutting down; not sent");
		hs_list_remove(&hold->link);
		hs_mem_free(&hold);
	}
	for (uint32_t i = 0; i < HS_CHUNKS; i++)
		hs_mem_free(&flow->chunks[i]);
}
