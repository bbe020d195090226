/* Failure detection, and whether a node serves.
 *
 * A node marks another one as silent (PFAIL) when it has received nothing from it for the node timeout. When a
 * majority of the masters has done so, the node is marked as failed (FAIL), by the first node that sees this
 * majority, at every node that it reaches. A node serves nothing while it does not reach a majority of the
 * masters, or while a slot has no working owner (cluster-require-full-coverage yes). */
#include "sim/server_internal.h"

static bool has_slots(const struct hs_sim_server *server, uint8_t node)
{
	return hs_sim_slots_count(&server->view.slots, node) > 0;
}

static bool is_covered(const struct hs_sim_server *server)
{
	const struct hs_sim_view *view = &server->view;

	for (uint16_t i = 0; i < view->slots.count; i++) {
		uint8_t node = view->slots.ranges[i].node;

		if (node == HS_SIM_NO_NODE || view->nodes[node].failed)
			return false;
	}
	return true;
}

static bool sees_majority(const struct hs_sim_server *server)
{
	const struct hs_sim_view *view = &server->view;
	uint32_t masters = 0, coverage = 0;

	for (uint8_t i = 0; i < server->cluster->count; i++) {
		if (view->nodes[i].master != HS_SIM_NO_NODE || !has_slots(server, i))
			continue;
		masters++;
		coverage +=
			i == server->number || (!view->nodes[i].silent && !view->nodes[i].failed);
	}
	return coverage > masters / 2;
}

static void run_judge(void *context, void *target, uint64_t number)
{
	struct hs_sim_server *server = target;

	(void)context;
	if (number == server->life)
		hs_sim_health_judge(server);
}

static void judge_later(struct hs_sim_server *server, uint64_t at_us)
{
	hs_sim_events_plan(server->cluster->host.events, (struct hs_sim_event){
								 .at_us = at_us,
								 .run = run_judge,
								 .context = server->cluster,
								 .target = server,
								 .number = server->life,
							 });
}

void hs_sim_health_judge(struct hs_sim_server *server)
{
	struct hs_sim_cluster *cluster = server->cluster;
	struct hs_sim_view *view = &server->view;
	uint64_t now_us = hs_sim_now_us(cluster);
	bool majority, ok;

	if (!cluster->options.cluster || !hs_sim_server_runs(server))
		return;
	majority = sees_majority(server);
	ok = majority && (cluster->options.partial || is_covered(server));
	if (!majority)
		view->was_minority = true;
	if (ok && !view->ok && hs_sim_server_is_master(server)) {
		/* It waits for gossip about what it has missed. */
		if (view->was_minority) {
			view->ok_from_us = now_us + cluster->options.rejoin_us;
			view->was_minority = false;
		}
		if (now_us < view->ok_from_us) {
			judge_later(server, view->ok_from_us);
			return;
		}
	}
	view->ok = ok;
	if (!ok)
		hs_sim_unblock_moved(server);
}

/* ---- failure detection ---- */

/* Whether a majority of the masters that `server` reaches marks the node as silent. */
static bool is_agreed(const struct hs_sim_server *server, uint8_t node)
{
	const struct hs_sim_cluster *cluster = server->cluster;
	uint32_t masters = 0, agreed = 0;

	for (uint8_t i = 0; i < cluster->count; i++) {
		const struct hs_sim_server *other = &cluster->servers[i];

		if (server->view.nodes[i].master != HS_SIM_NO_NODE || !has_slots(server, i))
			continue;
		masters++;
		agreed += (other == server || hs_sim_servers_talk(server, other)) &&
			  other->view.nodes[node].silent;
	}
	return agreed > masters / 2;
}

static void mark_failed(struct hs_sim_server *server, uint8_t node)
{
	struct hs_sim_cluster *cluster = server->cluster;

	for (uint8_t i = 0; i < cluster->count; i++) {
		struct hs_sim_server *other = &cluster->servers[i];

		if (i == node || (other != server && !hs_sim_servers_talk(server, other)))
			continue;
		other->view.nodes[node].failed = true;
		other->view.nodes[node].failed_us = hs_sim_now_us(cluster);
		hs_sim_health_judge(other);
	}
}

/* `number`: the node that may be silent, and how often its or this node's reachability had changed by then. */
static void run_suspect(void *context, void *target, uint64_t number)
{
	struct hs_sim_cluster *cluster = context;
	struct hs_sim_server *server = target,
			     *other = &cluster->servers[number % HS_SIM_NODES_MAX];

	if (number / HS_SIM_NODES_MAX != server->reach_changes + other->reach_changes ||
	    hs_sim_servers_talk(server, other) || !hs_sim_server_runs(server))
		return;
	server->view.nodes[other->number].silent = true;
	if (is_agreed(server, other->number))
		mark_failed(server, other->number);
	hs_sim_health_judge(server);
}

static void suspect(struct hs_sim_server *server, struct hs_sim_server *other)
{
	struct hs_sim_cluster *cluster = server->cluster;
	uint64_t more_us = cluster->options.gossip_us_max;

	if (server->view.nodes[other->number].silent || !hs_sim_server_runs(server))
		return;
	hs_sim_events_plan(
		cluster->host.events,
		(struct hs_sim_event){
			.at_us = hs_sim_now_us(cluster) + cluster->options.node_timeout_us +
				 (more_us > 0 ? hs_prng_below(&cluster->prng, more_us) : 0),
			.run = run_suspect,
			.context = cluster,
			.target = server,
			.number = other->number +
				  (server->reach_changes + other->reach_changes) * HS_SIM_NODES_MAX,
		});
}

void hs_sim_health_changed(struct hs_sim_server *server)
{
	struct hs_sim_cluster *cluster = server->cluster;

	if (!cluster->options.cluster)
		return;
	server->reach_changes++;
	for (uint8_t i = 0; i < cluster->count; i++) {
		struct hs_sim_server *other = &cluster->servers[i];

		if (other == server)
			continue;
		if (hs_sim_servers_talk(server, other)) {
			hs_sim_gossip_one(server, other);
			hs_sim_gossip_one(other, server);
		} else {
			suspect(server, other);
			suspect(other, server);
		}
	}
}

static void run_forgive(void *context, void *target, uint64_t number)
{
	struct hs_sim_cluster *cluster = context;

	if (hs_sim_servers_talk(target, &cluster->servers[number])) {
		hs_sim_health_mark_alive(target, &cluster->servers[number]);
		hs_sim_health_judge(target);
	}
}

void hs_sim_health_mark_alive(struct hs_sim_server *to, struct hs_sim_server *from)
{
	struct hs_sim_cluster *cluster = to->cluster;
	struct hs_sim_peer_view *seen = &to->view.nodes[from->number];
	uint64_t forgiven_us = seen->failed_us + 2 * (uint64_t)cluster->options.node_timeout_us;

	seen->silent = false;
	if (!seen->failed)
		return;
	/* A failed master with slots is only cleared if no node took its slots over for a while. */
	if (seen->master == HS_SIM_NO_NODE && has_slots(to, from->number) &&
	    hs_sim_now_us(cluster) < forgiven_us && !cluster->faults_stopped) {
		hs_sim_events_plan(cluster->host.events, (struct hs_sim_event){
								 .at_us = forgiven_us,
								 .run = run_forgive,
								 .context = cluster,
								 .target = to,
								 .number = from->number,
							 });
		return;
	}
	seen->failed = false;
}
