/* The routes say which node has which slot. This file has the table that all flows share, and installs a new table
 * in a flow. */
#include "base/list.h"
#include "base/mem.h"
#include "engine/redis/internal.h"

/* ---- the table ---- */

struct hs_routes *hs_routes_create(uint16_t nodes, uint16_t replicas)
{
	struct hs_routes *routes =
		hs_mem_zalloc(sizeof *routes + ((size_t)nodes + replicas) * sizeof *routes->nodes);

	atomic_init(&routes->refs, 1);
	routes->nodes_count = nodes;
	routes->replicas_count = replicas;
	_Static_assert(HS_NODE_NONE == 0xffff, "every byte of it is the same");
	memset(routes->node_of_slot, 0xff, sizeof routes->node_of_slot);
	memset(routes->node_of_partition, 0xff, sizeof routes->node_of_partition);
	return routes;
}

static struct hs_routes *counted(const struct hs_routes *routes)
{
	/* only the reference count of the routes changes */
	return (struct hs_routes *)(uintptr_t)routes;
}

void hs_routes_ref(const struct hs_routes *routes, uint32_t more)
{
	atomic_fetch_add_explicit(&counted(routes)->refs, more, memory_order_relaxed);
}

void hs_routes_unref(const struct hs_routes **pointer)
{
	struct hs_routes *routes = counted(*pointer);

	*pointer = NULL;
	if (routes && atomic_fetch_sub_explicit(&routes->refs, 1, memory_order_acq_rel) == 1)
		hs_mem_release(routes);
}

/* ---- in a flow ---- */

/* If the pipe is down, sends its waiting operations to the current owners of their slots. */
static void replace_waiting(struct hs_flow *flow, struct hs_pipe *pipe)
{
	struct hs_ops waiting = pipe->waiting, over = {0};
	struct hs_op *op;

	if (pipe->upstream.state == HS_UPSTREAM_UP || !waiting.first)
		return;
	pipe->waiting = (struct hs_ops){0};
	hs_flow_count_waiting(flow, pipe, -(int)waiting.count);
	for (op = waiting.first; op; op = op->next)
		hs_flow_leave_slot(flow, op);
	while ((op = hs_ops_pop(&waiting))) {
		if (!hs_flow_place_again(flow, op))
			hs_ops_push(&over, op);
	}
	hs_flow_finish_all(flow, &over);
}

static bool is_unused(const struct hs_node *node)
{
	for (int i = 0; i < HS_NODE_PIPES; i++) {
		if (node->pipes[i]->upstream.state != HS_UPSTREAM_DOWN ||
		    node->pipes[i]->waiting.first)
			return false;
	}
	return !node->listed && hs_list_empty(&node->idle);
}

static void drop_node(struct hs_flow *flow, uint16_t number)
{
	const struct hs_node *node = flow->nodes[number];

	hs_list_each(const struct hs_private_pipe, priv, &flow->private_pipes, link) {
		if (priv->pipe.node == node)
			return;
	}
	hs_flow_free_node(flow, &flow->nodes[number]);
}

/* Returns the index in flow->nodes of each node of the routes; creates nodes that are new. */
static uint16_t *number_nodes(struct hs_flow *flow, const struct hs_routes *routes)
{
	uint16_t *numbers = hs_mem_alloc((routes->nodes_count + 1u) * sizeof *numbers);

	for (uint16_t i = 0; i < routes->nodes_count; i++) {
		const struct hs_route_node *at = &routes->nodes[i];
		struct hs_node *node = hs_flow_node(flow, hs_bytes_of(at->host), at->port);

		numbers[i] = HS_NODE_NONE;
		if (!node)
			continue;
		hs_flow_set_partition(flow, node, at->partition);
		node->at = *at;
		node->listed = true;
		numbers[i] = node->number;
	}
	return numbers;
}

/* Installs the new routes, compares the previous ones with them, and then releases the previous ones. */
static void use_routes(struct hs_flow *flow, const struct hs_routes *routes)
{
	const struct hs_routes *before = flow->routes;
	uint16_t *numbers = number_nodes(flow, routes), *old = flow->numbers;
	bool same = before && before->nodes_count == routes->nodes_count &&
		    memcmp(numbers, old, routes->nodes_count * sizeof *numbers) == 0;

	hs_routes_ref(routes, 1);
	flow->routes = routes;
	flow->numbers = numbers;
	hs_slots_route(flow, same ? before : NULL);
	hs_routes_unref(&before);
	hs_mem_free(&old);
}

void hs_flow_route(struct hs_flow *flow, struct hs_now now, const struct hs_routes *routes)
{
	flow->now = now;
	for (uint16_t i = 0; i < flow->nodes_count; i++) {
		if (flow->nodes[i])
			flow->nodes[i]->listed = false;
	}
	use_routes(flow, routes);
	hs_replica_route(flow);
	for (uint16_t i = 0; i < flow->nodes_count; i++) {
		if (!flow->nodes[i])
			continue;
		if (flow->nodes[i]->lost_slots)
			hs_fetch_pipe_invalidate(flow->nodes[i]);
		flow->nodes[i]->lost_slots = false;
		for (int j = 0; j < HS_NODE_PIPES; j++)
			replace_waiting(flow, flow->nodes[i]->pipes[j]);
		if (is_unused(flow->nodes[i]))
			drop_node(flow, i);
	}
	/* Ends the delays of rejected operations: the new routes may name the right owners. */
	hs_list_each(struct hs_slot_hold, hold, &flow->holds, link)
		hold->until_us = 0;
	hs_flow_release_all(flow);
}
