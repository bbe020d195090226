/* Whether a partition is served: what is known of its master, in one word. */
#include "engine/redis/scout_internal.h"

/* What is known of the server that serves a partition, and why in `why` unless it is well. */
static enum hs_partition_state state_of(const struct hs_scout_node *node, const char **why)
{
	if (node->away) {
		*why = node->why;
		return HS_PARTITION_DOWN;
	}
	if (node->refuses) {
		*why = "it says that the cluster is down";
		return HS_PARTITION_DOWN;
	}
	if (!node->informed) {
		*why = "it has not answered yet";
		return HS_PARTITION_UNKNOWN;
	}
	if (node->info.loading) {
		*why = "it is loading its data";
		return HS_PARTITION_LOADING;
	}
	if (hs_scout_is_single(node->scout) && node->info.role == HS_NODE_REPLICA) {
		*why = "it is a replica";
		return HS_PARTITION_READONLY;
	}
	return HS_PARTITION_OK;
}

void hs_scout_state_add(struct hs_engine_partition *sum, const struct hs_scout_node *node)
{
	const char *why = "";
	enum hs_partition_state state = state_of(node, &why);

	if (state <= sum->state)
		return;
	sum->state = state;
	hs_bytes_escape(hs_bytes_of(why), sum->trouble, sizeof sum->trouble);
}

void hs_scout_state_slots(struct hs_scout *scout)
{
	const struct hs_topology *topology = scout->topology;
	uint32_t failed = topology ? HS_SLOTS - topology->slots_count : 0;

	for (uint16_t i = 0; topology && i < topology->shards_count; i++) {
		const struct hs_topology_shard *shard = &topology->shards[i];

		if (hs_partition_is_down(scout->partitions[shard->partition].state))
			failed += shard->slots_count;
	}
	if (hs_scout_is_single(scout) && hs_partition_is_down(scout->partitions[0].state))
		failed = HS_SLOTS;
	hs_slot_map_set_failed(scout->options.slots, (uint16_t)failed);
}

/* A node that does not see enough of the others, or of the slots, serves nobody. */
void hs_scout_state_told(struct hs_scout_node *node, struct hs_bytes reply)
{
	static const char words[] = "cluster_state:fail";
	bool refuses = memmem(reply.data, reply.len, words, sizeof words - 1) != NULL;

	if (refuses == node->refuses)
		return;
	node->refuses = refuses;
	if (!node->master)
		return;
	hs_log(node->scout->options.log, refuses ? HS_LOG_WARN : HS_LOG_INFO,
	       "%s, master of partition %u: it says that the cluster is %s", node->text,
	       node->partition, refuses ? "down" : "well again");
	hs_scout_watch_numbers(node->scout, node->partition);
}
