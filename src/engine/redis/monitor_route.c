/* Installs a new topology: routes for the workers, the slot map, partitions, the list of nodes to watch, and a log
 * line. */
#include "engine/redis/monitor_internal.h"

#include <stdarg.h>
#include <stdio.h>

enum { ITEMS_MAX = 8 };

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

/* Fills by copies of doubling length. This is fast, which matters because the simulator often changes
 * topologies. */
static void fill(uint16_t *to, size_t count, uint16_t value)
{
	to[0] = value;
	for (size_t done = 1; done < count; done *= 2)
		memcpy(to + done, to, (done * 2 <= count ? done : count - done) * sizeof *to);
}

static struct hs_routes *make_routes(const struct hs_topology *topology, bool cluster)
{
	uint16_t replicas = 0, next = topology->shards_count;
	struct hs_routes *routes;

	for (uint16_t i = 0; i < topology->shards_count; i++)
		replicas = (uint16_t)(replicas + replicas_of(&topology->shards[i]));
	routes = hs_routes_create(topology->shards_count, replicas);

	routes->cluster = cluster;
	for (uint16_t i = topology->shards_count; i-- > 0;) {
		const struct hs_topology_shard *shard = &topology->shards[i];

		set_node(&routes->nodes[i], &shard->master, shard->partition);
		routes->node_of_partition[shard->partition] = i;
		for (uint16_t j = 0; j < replicas_of(shard); j++) {
			set_node(&routes->nodes[next], &shard->replicas[j], shard->partition);
			routes->nodes[next++].master = i;
		}
	}
	for (uint32_t i = 0; i < topology->ranges_count; i++) {
		const struct hs_topology_range *range = &topology->ranges[i];

		fill(routes->node_of_slot + range->first, range->last - range->first + 1u,
		     range->shard);
	}
	return routes;
}

static void list_node(struct hs_monitor *monitor, const struct hs_topology_node *at,
		      uint16_t partition, bool master)
{
	struct hs_monitor_node *node = hs_monitor_node(monitor, &at->address);

	node->listed = true;
	node->master = master;
	node->partition = partition;
}

/* Marks the nodes of the topology as listed. The next tick drops the others, except those of the URL. */
static void list_nodes(struct hs_monitor *monitor)
{
	for (struct hs_monitor_node *node = monitor->nodes; node; node = node->next) {
		node->listed = false;
		node->master = false;
	}
	for (uint16_t i = 0; i < monitor->topology->shards_count; i++) {
		const struct hs_topology_shard *shard = &monitor->topology->shards[i];

		for (uint16_t j = 0; j < shard->replicas_count; j++) {
			if (shard->replicas[j].address.port > 0)
				list_node(monitor, &shard->replicas[j], shard->partition, false);
		}
		list_node(monitor, &shard->master, shard->partition, true);
	}
}

/* ---- the log ---- */

struct description {
	struct hs_buf *text;
	size_t items;
};

__attribute__((format(printf, 2, 3))) static void add_item(struct description *description,
							   const char *format, ...)
{
	char item[2 * HS_ADDRESS_TEXT_MAX + 64];
	va_list args;

	description->items++;
	if (description->items > ITEMS_MAX + 1)
		return;
	va_start(args, format);
	vsnprintf(item, sizeof item, format, args);
	va_end(args);
	hs_buf_printf(description->text, "%s%s", description->items > 1 ? "; " : "",
		      description->items > ITEMS_MAX ? "and more" : item);
}

static char *address_of(const struct hs_topology_shard *shard, char *text, size_t size)
{
	return hs_address_text(shard->master.address.host, shard->master.address.port, text, size);
}

static void describe_masters(struct description *description, const struct hs_topology *before,
			     const struct hs_topology *after)
{
	char old[HS_ADDRESS_TEXT_MAX], new[HS_ADDRESS_TEXT_MAX];

	for (uint16_t i = 0; i < after->shards_count; i++) {
		const struct hs_topology_shard *shard = &after->shards[i];
		const struct hs_topology_shard *was = hs_topology_shard(before, shard->partition);

		address_of(shard, new, sizeof new);
		if (!was) {
			add_item(description, "%s joined as partition %u", new, shard->partition);
		} else if (!hs_redis_same_address(&was->master.address, &shard->master.address) &&
			   hs_topology_shard(after, shard->partition) == shard) {
			address_of(was, old, sizeof old);
			add_item(description, "%s has replaced %s as master of partition %u", new,
				 old, shard->partition);
		}
	}
	for (uint16_t i = 0; i < before->shards_count; i++) {
		const struct hs_topology_shard *was = &before->shards[i];

		if (!hs_topology_shard(after, was->partition)) {
			address_of(was, old, sizeof old);
			add_item(description, "%s has lost its last slot: partition %u is removed",
				 old, was->partition);
		}
	}
}

static void describe_slots(struct description *description, const struct hs_topology *before,
			   const struct hs_topology *after)
{
	struct hs_topology_common common = {0};
	uint32_t moved = 0;

	while (hs_topology_next_common(before, after, &common)) {
		if (before->shards[common.before].partition !=
		    after->shards[common.after].partition)
			moved += common.slots;
	}
	if (moved > 0)
		add_item(description, "%u slot%s moved", moved, moved == 1 ? "" : "s");
	if (after->slots_count < HS_SLOTS && after->slots_count != before->slots_count)
		add_item(description, "%u slots have no server", HS_SLOTS - after->slots_count);
	if (after->slots_count == HS_SLOTS && before->slots_count < HS_SLOTS)
		add_item(description, "all slots have a server again");
}

static uint32_t count_replicas(const struct hs_topology *topology)
{
	uint32_t count = 0;

	for (uint16_t i = 0; i < topology->shards_count; i++)
		count += topology->shards[i].replicas_count;
	return count;
}

void hs_monitor_describe_change(const struct hs_topology *before, const struct hs_topology *after,
				struct hs_buf *text)
{
	struct description description = {.text = text};
	uint32_t were, are;

	if (!before)
		return;
	describe_masters(&description, before, after);
	describe_slots(&description, before, after);
	were = count_replicas(before);
	are = count_replicas(after);
	if (were != are)
		add_item(&description, "%u replica%s now, %u before", are, are == 1 ? "" : "s",
			 were);
	if (description.items == 0)
		add_item(&description, "the replicas changed");
}

static void log_change(struct hs_monitor *monitor, const struct hs_topology *after)
{
	struct hs_buf text = {0};

	hs_monitor_describe_change(monitor->topology, after, &text);
	if (text.len > 0)
		hs_log(monitor->options.log, HS_LOG_INFO, "cluster: %.*s", (int)text.len,
		       text.data);
	if (after->crowded && !(monitor->topology && monitor->topology->crowded))
		hs_log(monitor->options.log, HS_LOG_WARN,
		       "cluster: %u shards, but only %u partitions until heatsink is restarted: "
		       "the last partition holds the other shards",
		       after->shards_count, after->capacity);
	hs_buf_deinit(&text);
}

void hs_monitor_install(struct hs_monitor *monitor, struct hs_topology *topology)
{
	log_change(monitor, topology);
	hs_topology_fill(monitor->topology, topology, monitor->options.slots);
	hs_topology_destroy(&monitor->topology);
	monitor->topology = topology;
	monitor->topology_number++;
	list_nodes(monitor);
	monitor->calls->routes(monitor->context,
			       make_routes(topology, !hs_monitor_is_single(monitor)));
	hs_monitor_publish_all(monitor);
	hs_monitor_watch_all(monitor);
}
