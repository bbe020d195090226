/* Publishes partitions: the address, the state, and the sums over the nodes of each partition. */
#include "engine/redis/monitor_internal.h"

#include <stdio.h>

/* The state of a partition's master. Unless it is OK, `why` is the reason. */
static enum hs_partition_state state_of(const struct hs_monitor_node *node, const char **why)
{
	if (node->down) {
		*why = node->why;
		return HS_PARTITION_DOWN;
	}
	if (node->cluster_down) {
		*why = "it reports that the cluster is down";
		return HS_PARTITION_DOWN;
	}
	if (!node->has_info) {
		*why = "it has not answered yet";
		return HS_PARTITION_UNKNOWN;
	}
	if (node->info.loading) {
		*why = "it is loading its data";
		return HS_PARTITION_LOADING;
	}
	if (hs_monitor_is_single(node->monitor) && node->info.role == HS_NODE_REPLICA) {
		*why = "it is a replica";
		return HS_PARTITION_READONLY;
	}
	return HS_PARTITION_OK;
}

/* Adds a master to a partition of several: the partition's state is the worst of its masters. */
static void add_state(struct hs_engine_partition *sum, const struct hs_monitor_node *node)
{
	const char *why = "";
	enum hs_partition_state state = state_of(node, &why);

	if (state <= sum->state)
		return;
	sum->state = state;
	hs_bytes_escape(hs_bytes_of(why), sum->unavailable_reason, sizeof sum->unavailable_reason);
}

static struct hs_engine_partition sum_of(struct hs_monitor *monitor, uint16_t partition)
{
	struct hs_engine_partition sum = {0};

	for (struct hs_monitor_node *node = monitor->nodes; node; node = node->next) {
		const struct hs_node_info *info = &node->info;

		if (!node->listed || node->partition != partition)
			continue;
		if (node->master)
			add_state(&sum, node);
		if (!node->has_info)
			continue;
		if (info->lag_s > sum.replica_lag_s)
			sum.replica_lag_s = info->lag_s;
		if (info->lag_bytes > sum.replica_lag_bytes)
			sum.replica_lag_bytes = info->lag_bytes;
		if (!node->master)
			continue;
		/* a node that refuses INFO may report its keys with CLUSTER SLOT-STATS */
		sum.keys += info->role == HS_NODE_UNKNOWN ? node->sums.keys : info->keys;
		sum.expires += info->expires;
		sum.bytes_used += info->memory_bytes;
		sum.clients += info->clients;
		sum.replicas += info->replicas_online;
		sum.cpu += node->cpu;
		sum.slots_cpu += node->sums.cpu;
		sum.net_in += node->sums.bytes_in;
		sum.net_out += node->sums.bytes_out;
	}
	return sum;
}

/* Counts the slots without a working server, for CLUSTER INFO. */
static void count_failed_slots(struct hs_monitor *monitor)
{
	const struct hs_topology *topology = monitor->topology;
	uint32_t failed = HS_SLOTS - topology->slots_count;

	for (uint16_t i = 0; i < topology->shards_count; i++) {
		if (hs_partition_is_down(monitor->states[topology->shards[i].partition]))
			failed += topology->shards[i].slots_count;
	}
	hs_slot_map_set_failed(monitor->options.slots, (uint16_t)failed);
}

static void publish(struct hs_monitor *monitor, uint16_t partition)
{
	const struct hs_topology_shard *shard = hs_topology_shard(monitor->topology, partition);
	struct hs_engine_partition stats = {.absent = true};
	char text[HS_ADDRESS_TEXT_MAX];

	if (shard) {
		stats = sum_of(monitor, partition);
		hs_address_text(shard->master.address.host, shard->master.address.port, text,
				sizeof text);
		snprintf(stats.address, sizeof stats.address, "%.*s", (int)sizeof stats.address - 1,
			 text);
		hs_topology_slots_text(monitor->topology, partition, stats.slots,
				       sizeof stats.slots);
	}
	monitor->published[partition] = shard != NULL;
	monitor->states[partition] = (uint8_t)stats.state;
	monitor->calls->partition(monitor->context, partition, &stats);
}

void hs_monitor_publish(struct hs_monitor *monitor, uint16_t partition)
{
	uint8_t before = monitor->states[partition];

	publish(monitor, partition);
	if (monitor->states[partition] != before)
		count_failed_slots(monitor);
}

void hs_monitor_publish_all(struct hs_monitor *monitor)
{
	for (uint32_t i = 0; i < HS_PARTITIONS_MAX; i++) {
		if (monitor->published[i] || hs_slot_map_has(monitor->options.slots, (uint16_t)i))
			publish(monitor, (uint16_t)i);
	}
	count_failed_slots(monitor);
}
