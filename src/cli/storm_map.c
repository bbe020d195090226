/* The map of a Cluster: its nodes, which of them owns each slot, and the connections that the clients need. It is
 * read with CLUSTER SLOTS, on any connection that is up: every second, and after a tenth of that when a reply or a
 * lost connection shows that it is stale. MOVED corrects it for one slot. Every worker has a map. */
#include "cli/storm.h"

#include "base/mem.h"
#include "engine/redis/topology.h"

enum {
	PARTITIONS = 1,	       /* the parser numbers shards; storm does not use the numbers */
	SILENT_TICKS_MAX = 10, /* of a former owner, which must redirect at once */
};

/* The longest age of the map, and the time a node has to send it. */
static const uint64_t MAP_NS = 1000000000;

/* ---- nodes ---- */

uint32_t hs_storm_node(struct hs_storm_worker *worker, const struct hs_redis_address *at)
{
	for (uint32_t i = 0; i < worker->nodes_count; i++) {
		if (hs_redis_same_address(&worker->nodes[i].at, at))
			return i;
	}
	if (worker->nodes_count == HS_STORM_NODES_MAX) {
		char *last_error = hs_storm_worker_counts(worker)->last_error;

		snprintf(last_error, HS_STORM_LAST_ERROR_BYTES,
			 "more than %d nodes: %.100s:%u is ignored", HS_STORM_NODES_MAX, at->host,
			 at->port);
		return HS_STORM_NODES_MAX;
	}
	worker->nodes =
		hs_mem_realloc(worker->nodes, (worker->nodes_count + 1) * sizeof *worker->nodes);
	worker->nodes[worker->nodes_count] = (struct hs_storm_node){.at = *at};
	return worker->nodes_count++;
}

bool hs_storm_connection_is_wanted(const struct hs_storm_connection *connection)
{
	const struct hs_storm_worker *worker = connection->client->worker;

	return !worker->cluster || !worker->cluster->known || worker->cluster->lost ||
	       worker->nodes[connection->node].owner || connection->wanted;
}

/* ---- the map ---- */

void hs_storm_map_request(struct hs_storm_worker *worker)
{
	struct hs_storm_cluster *cluster = worker->cluster;
	bool any_up = false;

	for (unsigned i = 0; i < worker->clients_count; i++) {
		struct hs_storm_client *client =
			&worker->clients[cluster->cursor++ % worker->clients_count];

		for (uint32_t j = 0; j < client->connections_count; j++) {
			/* Not always the same node: it may be the one that is partitioned away. */
			struct hs_storm_connection *connection =
				client->connections[(j + cluster->cursor) %
						    client->connections_count];

			any_up = any_up || connection->upstream.state == HS_UPSTREAM_UP;
			if (connection->upstream.state != HS_UPSTREAM_UP ||
			    connection->map_requested)
				continue;
			connection->map_requested = true;
			hs_storm_connection_send_control(connection, HS_STORM_MAP, "CLUSTER SLOTS");
			hs_storm_client_flush(client);
			cluster->asked_ns = uv_hrtime();
			cluster->wanted = false;
			return;
		}
	}
	cluster->lost = !any_up;
}

void hs_storm_map_set_owner(struct hs_storm_cluster *cluster, uint16_t slot, uint32_t node)
{
	if (node == HS_STORM_NODES_MAX || (cluster->known && cluster->slots[slot] == node))
		return;
	cluster->slots[slot] = (uint16_t)node;
	cluster->version++;
}

/* Opens connections to all owners of slots, and closes idle ones to other nodes. */
static void use_map(struct hs_storm_worker *worker)
{
	for (unsigned i = 0; i < worker->clients_count; i++) {
		struct hs_storm_client *client = &worker->clients[i];

		for (uint32_t j = 0; j < worker->nodes_count; j++) {
			if (worker->nodes[j].owner)
				hs_storm_connection_open(hs_storm_client_connection(client, j));
			else if (j < client->connections_count)
				hs_storm_connection_retire(client->connections[j]);
		}
		hs_storm_client_update_state(client);
	}
}

void hs_storm_map_read(struct hs_storm_connection *connection, struct hs_bytes reply)
{
	struct hs_storm_worker *worker = connection->client->worker;
	struct hs_storm_cluster *cluster = worker->cluster;
	struct hs_topology *topology;
	uint32_t *numbers;

	if (hs_topology_parse(&topology, reply, worker->nodes[connection->node].at.host, PARTITIONS,
			      cluster->why, sizeof cluster->why) < 0) {
		if (!cluster->known)
			hs_upstream_close(&connection->upstream, cluster->why);
		return;
	}
	for (uint32_t i = 0; i < worker->nodes_count; i++)
		worker->nodes[i].owner = false;
	numbers = hs_mem_alloc(topology->shards_count * sizeof *numbers);
	for (uint16_t i = 0; i < topology->shards_count; i++) {
		numbers[i] = hs_storm_node(worker, &topology->shards[i].master.address);
		if (numbers[i] < HS_STORM_NODES_MAX)
			worker->nodes[numbers[i]].owner = true;
	}
	for (uint32_t i = 0; i < topology->ranges_count; i++) {
		const struct hs_topology_range *range = &topology->ranges[i];

		for (uint32_t slot = range->first; slot <= range->last; slot++)
			hs_storm_map_set_owner(cluster, (uint16_t)slot, numbers[range->shard]);
	}
	hs_mem_free(&numbers);
	hs_topology_destroy(&topology);
	cluster->known = true;
	cluster->lost = false;
	use_map(worker);
}

/* ---- time ---- */

/* Drops the connection to a former owner that hangs: no other node will answer its requests in flight. */
static void watch_former_owner(struct hs_storm_connection *connection)
{
	const struct hs_storm_worker *worker = connection->client->worker;

	if (!worker->cluster->known || worker->nodes[connection->node].owner ||
	    connection->ring_count == 0)
		connection->silent_ticks = 0;
	if (connection->silent_ticks++ >= SILENT_TICKS_MAX)
		hs_storm_connection_drop(connection, "it no longer owns slots and does not reply");
}

void hs_storm_map_tick(struct hs_storm_worker *worker)
{
	struct hs_storm_cluster *cluster = worker->cluster;
	uint64_t age_ns = uv_hrtime() - cluster->asked_ns;

	if (age_ns > MAP_NS || (cluster->wanted && age_ns > MAP_NS / 10))
		hs_storm_map_request(worker);
	for (unsigned i = 0; i < worker->clients_count; i++) {
		struct hs_storm_client *client = &worker->clients[i];

		for (uint32_t j = 0; j < client->connections_count; j++)
			watch_former_owner(client->connections[j]);
		hs_storm_cluster_release(client);
	}
}
