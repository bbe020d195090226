/* Faults of nodes: stalls, crashes, restarts, network partitions. */
#include "sim/server_internal.h"

#include "base/mem.h"

/* Replicas of this node fetch what they have missed. */
static void pull_all(struct hs_sim_server *server)
{
	struct hs_sim_cluster *cluster = server->cluster;

	hs_sim_stream_pull(server);
	for (uint8_t i = 0; i < cluster->count; i++) {
		if (cluster->servers[i].view.nodes[i].master == server->number)
			hs_sim_stream_pull(&cluster->servers[i]);
	}
}

/* Replicas whose link to their master is down try again. */
static void join_all(struct hs_sim_cluster *cluster)
{
	for (uint8_t i = 0; i < cluster->count; i++) {
		struct hs_sim_server *server = &cluster->servers[i];

		if (!hs_sim_server_is_master(server) && !server->link_up)
			hs_sim_stream_follow(server);
	}
}

static void back(struct hs_sim_server *server)
{
	hs_sim_health_changed(server);
	hs_sim_health_judge(server);
	pull_all(server);
	join_all(server->cluster);
	if (!hs_list_empty(&server->ready) || !hs_list_empty(&server->writes))
		hs_sim_server_wake(server);
}

void hs_sim_cluster_stall(struct hs_sim_cluster *cluster, uint8_t node)
{
	struct hs_sim_server *server = hs_sim_server_of(cluster, node);

	if (server->stalled || server->down)
		return;
	server->stalled = true;
	hs_sim_health_changed(server);
}

void hs_sim_cluster_thaw(struct hs_sim_cluster *cluster, uint8_t node)
{
	struct hs_sim_server *server = hs_sim_server_of(cluster, node);

	if (!server->stalled)
		return;
	server->stalled = false;
	hs_sim_gossip_receive_all(server);
	back(server);
}

void hs_sim_cluster_cut(struct hs_sim_cluster *cluster, uint8_t node)
{
	struct hs_sim_server *server = hs_sim_server_of(cluster, node);

	if (server->cut)
		return;
	server->cut = true;
	hs_sim_health_changed(server);
}

void hs_sim_cluster_heal(struct hs_sim_cluster *cluster, uint8_t node)
{
	struct hs_sim_server *server = hs_sim_server_of(cluster, node);

	if (!server->cut)
		return;
	server->cut = false;
	hs_sim_gossip_receive_all(server);
	back(server);
}

void hs_sim_cluster_hold_stream(struct hs_sim_cluster *cluster, uint8_t node, bool hold)
{
	struct hs_sim_server *server = hs_sim_server_of(cluster, node);

	server->stream_held = hold;
	if (!hold)
		hs_sim_stream_catch_up(server);
}

void hs_sim_cluster_refuse_stale(struct hs_sim_cluster *cluster, uint8_t node, bool refuse)
{
	hs_sim_server_of(cluster, node)->refuses_stale = refuse;
}

void hs_sim_cluster_kill_clients(struct hs_sim_cluster *cluster, uint8_t node)
{
	hs_sim_server_close_all(hs_sim_server_of(cluster, node));
}

void hs_sim_cluster_crash(struct hs_sim_cluster *cluster, uint8_t node)
{
	struct hs_sim_server *server = hs_sim_server_of(cluster, node);

	if (server->down)
		return;
	server->down = true;
	server->stalled = false;
	server->loading_until_us = 0;
	server->paused = false;
	server->cycle_planned = false;
	server->stream_planned = false;
	server->link_up = false;
	server->life++;
	server->follows++;
	server->failover++;
	hs_sim_server_close_all(server);
	hs_sim_tracking_reset(server);
	for (uint8_t i = 0; i < cluster->count; i++) {
		if (cluster->servers[i].view.nodes[i].master == node)
			cluster->servers[i].link_up = false;
	}
	hs_sim_health_changed(server);
}

static void run_loaded(void *context, void *target, uint64_t number)
{
	struct hs_sim_server *server = target;

	(void)context;
	if (number == server->life)
		server->loading_until_us = 0;
}

/* Reports lost values. The node may also have had keys of slots that were moving to it. */
static void lose_data(struct hs_sim_server *server)
{
	struct hs_sim_cluster *cluster = server->cluster;
	struct hs_sim_snapshot *memories[HS_SIM_NODES_MAX];

	if (hs_sim_server_is_master(server))
		hs_sim_cover(cluster->host.coverage, HS_SIM_COVERAGE_EMPTY);
	for (uint8_t i = 0; i < cluster->count; i++)
		memories[i] = hs_sim_snapshot_create(cluster, i);
	hs_memkv_begin(server->map);
	hs_sim_keys_clear(server);
	hs_memkv_commit(server->map);
	for (uint8_t i = 0; i < cluster->count; i++)
		hs_sim_snapshot_compare(&memories[i], i);
}

void hs_sim_cluster_restart(struct hs_sim_cluster *cluster, uint8_t node, bool keeps_data,
			    uint32_t loading_us)
{
	struct hs_sim_server *server = hs_sim_server_of(cluster, node);

	if (!server->down)
		return;
	server->down = false;
	if (!keeps_data)
		lose_data(server);
	hs_sim_server_start(server);
	/* A new replication id: no replica can continue with its offset. */
	server->log_start = hs_sim_stream_offset(server);
	server->log.len = 0;
	server->log_pushed = 0;
	server->log_open = false;
	if (loading_us > 0) {
		server->loading_until_us = hs_sim_now_us(cluster) + loading_us;
		hs_sim_events_plan(cluster->host.events, (struct hs_sim_event){
								 .at_us = server->loading_until_us,
								 .run = run_loaded,
								 .context = cluster,
								 .target = server,
								 .number = server->life,
							 });
	}
	if (cluster->options.cluster && hs_sim_server_is_master(server)) {
		/* While it loads it reads no gossip: it serves no slots until some time later. */
		server->view.ok = false;
		server->view.ok_from_us =
			hs_sim_now_us(cluster) + loading_us + cluster->options.rejoin_us;
	}
	back(server);
}

void hs_sim_cluster_stop_faults(struct hs_sim_cluster *cluster)
{
	cluster->faults_stopped = true;
	for (uint8_t i = 0; i < cluster->count; i++) {
		hs_sim_cluster_hold_stream(cluster, i, false);
		hs_sim_cluster_thaw(cluster, i);
		hs_sim_cluster_heal(cluster, i);
		hs_sim_cluster_restart(cluster, i, true, 0);
	}
	/* Nodes that run are not marked as failed any more. */
	for (uint8_t i = 0; i < cluster->count && cluster->options.cluster; i++)
		hs_sim_gossip(&cluster->servers[i]);
}

static bool sees_truth(const struct hs_sim_server *server)
{
	const struct hs_sim_slots *truth = &server->cluster->truth, *seen = &server->view.slots;

	if (seen->count != truth->count || !server->view.ok)
		return false;
	for (uint16_t i = 0; i < seen->count; i++) {
		if (seen->ranges[i].last != truth->ranges[i].last ||
		    seen->ranges[i].node != truth->ranges[i].node)
			return false;
	}
	return true;
}

/* Whether the node knows all config epochs, which decide about slots. */
static bool knows_epochs(const struct hs_sim_server *server)
{
	const struct hs_sim_cluster *cluster = server->cluster;

	for (uint8_t i = 0; i < cluster->count; i++) {
		const struct hs_sim_view *other = &cluster->servers[i].view;

		if (other->nodes[i].master == HS_SIM_NO_NODE &&
		    server->view.nodes[i].config_epoch != other->nodes[i].config_epoch)
			return false;
	}
	return true;
}

bool hs_sim_cluster_agrees(const struct hs_sim_cluster *cluster)
{
	for (uint8_t i = 0; i < cluster->count && cluster->options.cluster; i++) {
		if (!sees_truth(&cluster->servers[i]) || !knows_epochs(&cluster->servers[i]))
			return false;
	}
	return true;
}

bool hs_sim_cluster_is_settled(const struct hs_sim_cluster *cluster)
{
	for (uint8_t i = 0; i < cluster->count && cluster->options.cluster; i++) {
		const struct hs_sim_server *server = &cluster->servers[i], *master;

		if (!hs_sim_server_runs(server))
			continue;
		if (!sees_truth(server))
			return false;
		if (server->paused)
			return false;
		if (hs_sim_server_is_master(server))
			continue;
		master = &cluster->servers[server->view.nodes[i].master];
		if (!server->link_up || !hs_sim_server_is_master(master) ||
		    hs_sim_stream_offset(server) != hs_sim_stream_offset(master))
			return false;
	}
	return true;
}
