/* What follows from a topology: routes for the workers, partitions for everybody, the nodes to keep in
 * touch with, and a line in the log. */
#include "engine/redis/scout_internal.h"

#include <stdio.h>

static uint16_t replicas_of(const struct hs_topology_shard *shard)
{
	return shard->replicas_count < HS_REPLICAS_MAX ? shard->replicas_count : HS_REPLICAS_MAX;
}

static void set_node(struct hs_route_node *node, const struct hs_topology_node *from,
		     uint16_t partition)
{
	snprintf(node->host, sizeof node->host, "%s", from->address.host);
	node->port = from->address.port;
	node->partition = partition;
	if (strlen(from->id) < sizeof node->id)
		snprintf(node->id, sizeof node->id, "%.*s", HS_NODE_ID_BYTES - 1, from->id);
}

static struct hs_routes *make_routes(const struct hs_topology *topology)
{
	uint16_t replicas = 0, next = topology->shards_count;
	struct hs_routes *routes;

	for (uint16_t i = 0; i < topology->shards_count; i++)
		replicas = (uint16_t)(replicas + replicas_of(&topology->shards[i]));
	routes = hs_routes_create(topology->shards_count, replicas);

	routes->cluster = true;
	for (uint16_t i = topology->shards_count; i-- > 0;) {
		const struct hs_topology_shard *shard = &topology->shards[i];

		set_node(&routes->nodes[i], &shard->master, shard->partition);
		routes->node_of_partition[shard->partition] = i;
		for (uint16_t j = 0; j < replicas_of(shard); j++) {
			set_node(&routes->nodes[next], &shard->replicas[j], shard->partition);
			routes->nodes[next++].master = i;
		}
	}
	for (uint32_t slot = 0; slot < HS_SLOTS; slot++) {
		if (topology->owner[slot] != HS_TOPOLOGY_NOBODY)
			routes->node_of_slot[slot] = topology->owner[slot];
	}
	return routes;
}

static void publish_routes(struct hs_scout *scout, const struct hs_routes *routes)
{
	const struct hs_routes *old;

	uv_mutex_lock(&scout->mutex);
	old = scout->routes;
	scout->routes = routes;
	uv_mutex_unlock(&scout->mutex);
	hs_routes_unref(&old);
	hs_routes_ref(routes, 1);
	scout->host.routes(scout->host.context, routes);
	hs_herald_route(scout->herald, routes);
}

void hs_scout_route_single(struct hs_scout *scout)
{
	const struct hs_redis_address *seed = &scout->options.url.seeds[0];
	struct hs_scout_node *node = hs_scout_node(scout, seed);
	struct hs_routes *routes = hs_routes_create(1, 0);

	node->listed = true;
	node->master = true;
	snprintf(routes->nodes[0].host, sizeof routes->nodes[0].host, "%s", seed->host);
	routes->nodes[0].port = seed->port;
	for (uint32_t i = 0; i < HS_SLOTS; i++)
		routes->node_of_slot[i] = 0;
	routes->node_of_partition[0] = 0;
	scout->routes = routes; /* nobody else is there yet */
}

static void list_node(struct hs_scout *scout, const struct hs_topology_node *at, uint16_t partition,
		      bool master)
{
	struct hs_scout_node *node = hs_scout_node(scout, &at->address);

	node->listed = true;
	node->master = master;
	node->partition = partition;
}

/* Nodes that are no more are forgotten with the next tick. */
static void list_nodes(struct hs_scout *scout)
{
	for (struct hs_link *link = scout->nodes.next; link != &scout->nodes; link = link->next) {
		struct hs_scout_node *node = hs_list_entry(link, struct hs_scout_node, link);

		node->listed = false;
		node->master = false;
	}
	for (uint16_t i = 0; i < scout->topology->shards_count; i++) {
		const struct hs_topology_shard *shard = &scout->topology->shards[i];

		for (uint16_t j = 0; j < shard->replicas_count; j++) {
			if (shard->replicas[j].address.port > 0)
				list_node(scout, &shard->replicas[j], shard->partition, false);
		}
		list_node(scout, &shard->master, shard->partition, true);
	}
}

static void tell_change(struct hs_scout *scout, const struct hs_topology *after)
{
	struct hs_buf text = {0};

	hs_scout_tell_change(scout->topology, after, &text);
	if (text.len > 0)
		hs_log(scout->options.log, HS_LOG_INFO, "cluster: %.*s", (int)text.len, text.data);
	if (after->crowded && !(scout->topology && scout->topology->crowded))
		hs_log(scout->options.log, HS_LOG_WARN,
		       "cluster: %u shards, of which %u can be told apart until heatsink is "
		       "started again; the last partition stands for the others",
		       after->shards_count, after->capacity);
	hs_buf_deinit(&text);
}

void hs_scout_install(struct hs_scout *scout, struct hs_topology *topology)
{
	tell_change(scout, topology);
	hs_topology_destroy(&scout->topology);
	scout->topology = topology;
	list_nodes(scout);
	hs_topology_fill(topology, scout->options.slots);
	publish_routes(scout, make_routes(topology));
	hs_scout_watch_publish(scout);
	hs_scout_watch_all(scout);
}
