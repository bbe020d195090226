#include "base/mem.h"
#include "engine/redis/flow.h"

struct hs_routes *hs_routes_create(uint16_t nodes, uint16_t replicas)
{
	struct hs_routes *routes =
		hs_mem_zalloc(sizeof *routes + ((size_t)nodes + replicas) * sizeof *routes->nodes);

	atomic_init(&routes->refs, 1);
	routes->nodes_count = nodes;
	routes->replicas_count = replicas;
	for (uint32_t i = 0; i < HS_SLOTS; i++)
		routes->node_of_slot[i] = HS_NODE_NONE;
	for (uint32_t i = 0; i <= HS_PARTITIONS_MAX; i++)
		routes->node_of_partition[i] = HS_NODE_NONE;
	return routes;
}

static struct hs_routes *counted(const struct hs_routes *routes)
{
	return (struct hs_routes *)(uintptr_t)routes; /* all but the count is constant */
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
