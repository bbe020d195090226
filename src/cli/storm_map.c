/* The map of a Cluster: its nodes, which of them owns each slot, and the links that follow from that. It is asked for
 * with CLUSTER SLOTS, on whatever link is up, every second and as soon as a reply or a lost link says that it is old;
 * MOVED corrects it for one slot. Every worker has its own. */
#include "cli/storm.h"

#include "base/mem.h"
#include "engine/redis/topology.h"

enum {
	PARTITIONS = 1,	       /* nobody numbers the shards */
	SILENT_TICKS_MAX = 10, /* of a node that has to answer at once */
};

/* How old it may become, and how long a node may take to tell it. */
static const uint64_t MAP_NS = 1000000000;

/* ---- nodes ---- */

uint32_t hs_storm_node(struct hs_storm_worker *worker, const struct hs_redis_address *at)
{
	for (uint32_t i = 0; i < worker->nodes_count; i++) {
		if (hs_redis_same_address(&worker->nodes[i].at, at))
			return i;
	}
	if (worker->nodes_count == HS_STORM_NODES_MAX) {
		char *trouble = hs_storm_worker_counts(worker)->trouble;

		snprintf(trouble, HS_STORM_TROUBLE_BYTES,
			 "more than %d addresses of nodes: %.100s:%u is left out",
			 HS_STORM_NODES_MAX, at->host, at->port);
		return HS_STORM_NODES_MAX;
	}
	worker->nodes =
		hs_mem_realloc(worker->nodes, (worker->nodes_count + 1) * sizeof *worker->nodes);
	worker->nodes[worker->nodes_count] = (struct hs_storm_node){.at = *at};
	return worker->nodes_count++;
}

bool hs_storm_link_is_wanted(const struct hs_storm_link *link)
{
	const struct hs_storm_worker *worker = link->conn->worker;

	return !worker->cluster || !worker->cluster->known || worker->cluster->lost ||
	       worker->nodes[link->node].owner || link->wanted;
}

/* ---- the map ---- */

void hs_storm_map_ask(struct hs_storm_worker *worker)
{
	struct hs_storm_cluster *cluster = worker->cluster;
	bool any_up = false;

	for (unsigned i = 0; i < worker->conn_count; i++) {
		struct hs_storm_conn *conn = &worker->conns[cluster->cursor++ % worker->conn_count];

		for (uint32_t j = 0; j < conn->links_count; j++) {
			/* Not always the same node: it may be the one that is cut off. */
			struct hs_storm_link *link =
				conn->links[(j + cluster->cursor) % conn->links_count];

			any_up = any_up || link->upstream.state == HS_UPSTREAM_UP;
			if (link->upstream.state != HS_UPSTREAM_UP || link->tells_map)
				continue;
			link->tells_map = true;
			hs_storm_link_say(link, HS_STORM_MAP, "CLUSTER SLOTS");
			hs_storm_conn_flush(conn);
			cluster->asked_ns = uv_hrtime();
			cluster->wanted = false;
			return;
		}
	}
	cluster->lost = !any_up;
}

void hs_storm_map_own(struct hs_storm_cluster *cluster, uint16_t slot, uint32_t node)
{
	if (node == HS_STORM_NODES_MAX || (cluster->known && cluster->slots[slot] == node))
		return;
	cluster->slots[slot] = (uint16_t)node;
	cluster->version++;
}

/* Links to all that own slots, none that is idle to others. */
static void use_map(struct hs_storm_worker *worker)
{
	for (unsigned i = 0; i < worker->conn_count; i++) {
		struct hs_storm_conn *conn = &worker->conns[i];

		for (uint32_t j = 0; j < worker->nodes_count; j++) {
			if (worker->nodes[j].owner)
				hs_storm_link_open(hs_storm_conn_link(conn, j));
			else if (j < conn->links_count)
				hs_storm_link_leave(conn->links[j]);
		}
		hs_storm_conn_look(conn);
	}
}

void hs_storm_map_take(struct hs_storm_link *link, struct hs_bytes reply)
{
	struct hs_storm_worker *worker = link->conn->worker;
	struct hs_storm_cluster *cluster = worker->cluster;
	struct hs_topology *topology;
	uint32_t *numbers;

	if (hs_topology_parse(&topology, reply, worker->nodes[link->node].at.host, PARTITIONS,
			      cluster->why, sizeof cluster->why) < 0) {
		if (!cluster->known)
			hs_upstream_close(&link->upstream, cluster->why);
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
			hs_storm_map_own(cluster, (uint16_t)slot, numbers[range->shard]);
	}
	hs_mem_free(&numbers);
	hs_topology_destroy(&topology);
	cluster->known = true;
	cluster->lost = false;
	use_map(worker);
}

/* ---- time ---- */

/* A node that was replaced and hangs: nobody else will answer what it was sent. */
static void watch_deserted(struct hs_storm_link *link)
{
	const struct hs_storm_worker *worker = link->conn->worker;

	if (!worker->cluster->known || worker->nodes[link->node].owner || link->flight_count == 0)
		link->silent_ticks = 0;
	if (link->silent_ticks++ >= SILENT_TICKS_MAX)
		hs_storm_link_drop(link, "it owns no slots any more and does not answer");
}

void hs_storm_map_tick(struct hs_storm_worker *worker)
{
	struct hs_storm_cluster *cluster = worker->cluster;
	uint64_t age_ns = uv_hrtime() - cluster->asked_ns;

	if (age_ns > MAP_NS || (cluster->wanted && age_ns > MAP_NS / 10))
		hs_storm_map_ask(worker);
	for (unsigned i = 0; i < worker->conn_count; i++) {
		struct hs_storm_conn *conn = &worker->conns[i];

		for (uint32_t j = 0; j < conn->links_count; j++)
			watch_deserted(conn->links[j]);
		hs_storm_cluster_release(conn);
	}
}
