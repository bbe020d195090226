/* Failovers. A failover on request loses nothing: the master pauses writes, the replica gets the rest of the stream,
 * then takes over and informs the old master first. A takeover asks no other node: writes that the replica does not
 * have are lost.
 *
 * Redis forgets in a failover which slots were moving. So no failover begins during a move, and a takeover ends
 * moves where they are: keys at the wrong end are lost. */
#include "sim/server_internal.h"

enum { PAUSE_US_MAX = 10000000 }; /* in Redis: CLUSTER_MF_TIMEOUT * CLUSTER_MF_PAUSE_MULT */

static struct hs_sim_server *master_of(struct hs_sim_server *server)
{
	uint8_t master = server->view.nodes[server->number].master;

	return master == HS_SIM_NO_NODE ? NULL : hs_sim_server_of(server->cluster, master);
}

static bool has_moves(const struct hs_sim_cluster *cluster, uint8_t node)
{
	for (uint8_t i = 0; i < cluster->count; i++) {
		const struct hs_sim_view *view = &cluster->servers[i].view;

		for (uint16_t j = 0; j < view->moves_count; j++) {
			if (i == node || view->moves[j].other == node)
				return true;
		}
	}
	return false;
}

/* ---- the new master ---- */

/* Takes all slots of its master. The replica may not know yet of the last slots that came to its master or left
 * it. Redis then leaves the former without an owner and takes the latter back, until an operator helps; here
 * the new master gets the former and leaves the latter. */
static void take_slots(struct hs_sim_server *server, uint8_t old)
{
	struct hs_sim_slots *truth = &server->cluster->truth;

	for (uint32_t at = 0; at < HS_SLOTS;) {
		struct hs_sim_range true_range = *hs_sim_slots_find(truth, (uint16_t)at);
		struct hs_sim_range seen = *hs_sim_slots_find(&server->view.slots, (uint16_t)at);
		uint16_t last = true_range.last < seen.last ? true_range.last : seen.last;

		if (true_range.node == old) {
			hs_sim_slots_give(truth, (uint16_t)at, last, server->number);
			hs_sim_view_give(server, (uint16_t)at, last, server->number);
		} else if (seen.node == old) {
			hs_sim_view_give(server, (uint16_t)at, last, true_range.node);
		}
		at = last + 1u;
	}
}

static void promote(struct hs_sim_server *server, uint8_t old)
{
	struct hs_sim_view *view = &server->view;

	view->nodes[server->number].master = HS_SIM_NO_NODE;
	hs_sim_view_new_epoch(server);
	view->was_minority = false;
	hs_sim_stream_lead(server);
	take_slots(server, old);
	server->cluster->servers[old].replaced = true;
	server->replaced = false;
	hs_sim_gossip(server);
}

/* ---- on request ---- */

static bool can_fail_over(struct hs_sim_server *replica, const struct hs_sim_server *master)
{
	return master && hs_sim_servers_talk(replica, master) && hs_sim_server_is_master(master) &&
	       replica->loading_until_us == 0 && master->loading_until_us == 0 &&
	       replica->link_up && !has_moves(replica->cluster, master->number);
}

static void run_finish(void *context, void *target, uint64_t number)
{
	struct hs_sim_server *replica = target, *master = master_of(replica);

	(void)context;
	if (number != replica->failover)
		return;
	if (can_fail_over(replica, master) && !replica->stream_held)
		hs_sim_stream_catch_up(replica);
	if (!can_fail_over(replica, master) || !hs_sim_stream_has_all(replica, master)) {
		if (master)
			hs_sim_server_pause(master, false);
		return;
	}
	promote(replica, master->number);
	hs_sim_gossip_deliver(replica, master);
	hs_sim_cover(replica->cluster->host.coverage, HS_SIM_COVERAGE_FAILOVERS);
}

/* Ends the pause of a master whose replica did not take over, because the replica got another CLUSTER FAILOVER
 * or is down. As in Redis, the master does not learn of that earlier. */
static void run_pause_over(void *context, void *target, uint64_t number)
{
	struct hs_sim_server *master = target;

	(void)context;
	if (master->paused && master->pauses == number)
		hs_sim_server_pause(master, false);
}

static void run_pause(void *context, void *target, uint64_t number)
{
	struct hs_sim_server *replica = target, *master = master_of(replica);

	(void)context;
	if (number != replica->failover || !can_fail_over(replica, master) || master->paused)
		return;
	hs_sim_server_pause(master, true);
	hs_sim_events_plan(replica->cluster->host.events,
			   (struct hs_sim_event){
				   .at_us = hs_sim_now_us(replica->cluster) + PAUSE_US_MAX,
				   .run = run_pause_over,
				   .context = replica->cluster,
				   .target = master,
				   .number = ++master->pauses,
			   });
	hs_sim_server_plan(replica, replica->cluster->options.failover_us_max, run_finish,
			   replica->failover);
}

bool hs_sim_cluster_fail_over(struct hs_sim_cluster *cluster, uint8_t node)
{
	struct hs_sim_server *replica = hs_sim_server_of(cluster, node);
	struct hs_sim_server *master = master_of(replica);

	if (!can_fail_over(replica, master))
		return false;
	replica->failover++;
	hs_sim_server_plan(replica, cluster->options.failover_us_max, run_pause, replica->failover);
	return true;
}

/* ---- takeover ---- */

/* Deletes the keys of a slot that the node does not own. */
static void drop_strays(struct hs_sim_server *server, uint16_t slot)
{
	struct hs_buf key = {0};

	hs_buf_reserve(&key, 1);
	while (hs_sim_keys_at(server, slot, 0, &key)) {
		hs_sim_data_remove(server, hs_buf_bytes(&key), true);
		key.len = 0;
	}
	hs_sim_stream_end_group(server);
	hs_sim_server_wake(server);
	hs_buf_deinit(&key);
}

/* Ends moves from and to the old master where they are. */
static void call_off_moves(struct hs_sim_server *new, uint8_t old)
{
	struct hs_sim_cluster *cluster = new->cluster;

	for (uint8_t i = 0; i < cluster->count; i++) {
		struct hs_sim_view *view = &cluster->servers[i].view;

		for (uint16_t j = 0; j < view->moves_count; j++) {
			const struct hs_sim_move move = view->moves[j];

			if (i != old && move.other != old)
				continue;
			if (i != old && move.importing)
				drop_strays(&cluster->servers[i], move.slot);
			else if (i != old)
				drop_strays(new, move.slot);
			view->moves[j--] = view->moves[--view->moves_count];
		}
	}
}

bool hs_sim_cluster_take_over(struct hs_sim_cluster *cluster, uint8_t node)
{
	struct hs_sim_server *replica = hs_sim_server_of(cluster, node);
	uint8_t old = replica->view.nodes[node].master;
	struct hs_sim_snapshot *memories[HS_SIM_NODES_MAX];

	if (!cluster->options.lossy || old == HS_SIM_NO_NODE || !hs_sim_server_runs(replica) ||
	    replica->loading_until_us > 0)
		return false;
	for (uint8_t i = 0; i < cluster->count; i++)
		memories[i] = i == node ? NULL : hs_sim_snapshot_create(cluster, i);
	promote(replica, old);
	call_off_moves(replica, old);
	for (uint8_t i = 0; i < cluster->count; i++) {
		if (memories[i])
			hs_sim_snapshot_compare(&memories[i], i == old ? node : i);
	}
	hs_sim_cover(cluster->host.coverage, HS_SIM_COVERAGE_TAKEOVERS);
	return true;
}

/* ---- CLUSTER FAILOVER ---- */

const char *hs_sim_failover_ask(struct hs_sim_server *replica, bool force)
{
	struct hs_sim_cluster *cluster = replica->cluster;

	if (hs_sim_server_is_master(replica))
		return "ERR You should send CLUSTER FAILOVER to a replica";
	if (force ? hs_sim_cluster_take_over(cluster, replica->number)
		  : hs_sim_cluster_fail_over(cluster, replica->number))
		return NULL;
	return "ERR Master is down or failed, please use CLUSTER FAILOVER FORCE";
}
