/* The nodes as a Cluster: how they start, what each knows of the others, and gossip.
 *
 * A gossip message carries the sender's role (master of these slots under this config epoch, or replica of a node)
 * as of the moment at which it arrives. The receiver gives a slot to the sender if it knows the owner under a lower
 * epoch; a master or replica whose master has lost its last slot that way follows the sender. A slot that its owner
 * does not claim any more goes to the first node that claims it. A sender that claims a slot which another node owns
 * under a higher epoch gets a message about that node. */
#include "sim/server_internal.h"

#include "base/mem.h"

#include <stdio.h>

enum { EPOCHS_START = 1, OFFSET_START = 14 };

struct hs_sim_cluster_options hs_sim_cluster_defaults(uint64_t seed)
{
	return (struct hs_sim_cluster_options){
		.seed = seed,
		.masters = 3,
		.replicas = 1,
		.cluster = true,
		.cycle_us_max = 20,
		.gossip_us_max = 500,
		.stream_us_max = 200,
		.sync_us_max = 1000,
		.failover_us_max = 500,
		.node_timeout_us = 5000,
		.rejoin_us = 1000,
	};
}

struct hs_sim_server *hs_sim_server_of(struct hs_sim_cluster *cluster, uint8_t node)
{
	hs_check(node < cluster->count);
	return &cluster->servers[node];
}

/* ---- beginnings and ends ---- */

static uint8_t first_master_of(const struct hs_sim_cluster_options *options, uint8_t node)
{
	return node < options->masters ? HS_SIM_NO_NODE
				       : (uint8_t)((node - options->masters) / options->replicas);
}

static void begin_view(struct hs_sim_server *server)
{
	const struct hs_sim_cluster *cluster = server->cluster;
	struct hs_sim_view *view = &server->view;

	hs_sim_slots_copy(&view->slots, &cluster->truth);
	view->ok = true;
	view->epoch = cluster->options.masters;
	for (uint8_t i = 0; i < cluster->count; i++) {
		view->nodes[i].master = first_master_of(&cluster->options, i);
		if (view->nodes[i].master == HS_SIM_NO_NODE)
			view->nodes[i].config_epoch = i + EPOCHS_START;
	}
}

/* The state as if the Cluster had existed for a while. */
static void begin(struct hs_sim_server *server)
{
	struct hs_sim_cluster *cluster = server->cluster;
	uint8_t number = server->number;

	server->port = (uint16_t)(7000 + number);
	snprintf(server->host, sizeof server->host, "10.0.0.%d", number + 1);
	server->log_start = OFFSET_START;
	begin_view(server);
	if (server->view.nodes[number].master != HS_SIM_NO_NODE) {
		memcpy(server->stream, cluster->servers[server->view.nodes[number].master].stream,
		       sizeof server->stream);
		server->link_up = true;
	}
}

struct hs_sim_cluster *hs_sim_cluster_create(const struct hs_sim_cluster_options *options,
					     const struct hs_sim_cluster_host *host)
{
	uint8_t count = (uint8_t)(options->masters * (1 + options->replicas));
	uint8_t shares = options->masters - options->one_empty;
	struct hs_sim_cluster *cluster;

	hs_check(shares > 0);
	hs_check(count <= HS_SIM_NODES_MAX);
	hs_check(options->cluster || count == 1);
	cluster = hs_mem_zalloc(sizeof *cluster + count * sizeof *cluster->servers);
	cluster->options = *options;
	cluster->host = *host;
	cluster->count = count;
	cluster->epoch = options->masters;
	hs_list_init(&cluster->bus_messages);
	hs_prng_init(&cluster->prng, options->seed);
	cluster->hash_seed = hs_prng_next(&cluster->prng);
	hs_sim_slots_init(&cluster->truth, 0);
	for (uint8_t i = 1; i < shares; i++)
		hs_sim_slots_give(&cluster->truth, (uint16_t)(HS_SLOTS * i / shares), HS_SLOTS - 1,
				  i);
	for (uint8_t i = 0; i < count; i++)
		hs_sim_server_init(&cluster->servers[i], cluster, i);
	for (uint8_t i = 0; i < count; i++)
		begin(&cluster->servers[i]);
	return cluster;
}

void hs_sim_cluster_destroy(struct hs_sim_cluster **pointer)
{
	struct hs_sim_cluster *cluster = *pointer;

	if (!cluster)
		return;
	for (uint8_t i = 0; i < cluster->count; i++)
		hs_sim_server_deinit(&cluster->servers[i]);
	hs_sim_bus_messages_deinit(cluster);
	hs_sim_slots_deinit(&cluster->truth);
	hs_mem_free(pointer);
}

/* ---- nodes ---- */

uint8_t hs_sim_cluster_nodes(const struct hs_sim_cluster *cluster)
{
	return cluster->count;
}

const char *hs_sim_cluster_id(const struct hs_sim_cluster *cluster, uint8_t node)
{
	return cluster->servers[node].id;
}

const char *hs_sim_cluster_host(const struct hs_sim_cluster *cluster, uint8_t node)
{
	return cluster->servers[node].host;
}

uint16_t hs_sim_cluster_port(const struct hs_sim_cluster *cluster, uint8_t node)
{
	return cluster->servers[node].port;
}

uint8_t hs_sim_cluster_at(const struct hs_sim_cluster *cluster, const char *host, uint16_t port)
{
	for (uint8_t i = 0; i < cluster->count; i++) {
		if (cluster->servers[i].port == port && strcmp(cluster->servers[i].host, host) == 0)
			return i;
	}
	return HS_SIM_NO_NODE;
}

bool hs_sim_cluster_is_master(const struct hs_sim_cluster *cluster, uint8_t node)
{
	return hs_sim_server_is_master(&cluster->servers[node]);
}

uint8_t hs_sim_cluster_master_of(const struct hs_sim_cluster *cluster, uint8_t node)
{
	return cluster->servers[node].view.nodes[node].master;
}

uint8_t hs_sim_cluster_owner(const struct hs_sim_cluster *cluster, uint16_t slot)
{
	return hs_sim_slots_owner(&cluster->truth, slot);
}

void hs_sim_truth_give(struct hs_sim_cluster *cluster, uint16_t first, uint16_t last, uint8_t node)
{
	hs_sim_slots_give(&cluster->truth, first, last, node);
}

struct hs_sim_server_conn *hs_sim_cluster_connect(struct hs_sim_cluster *cluster, uint8_t node,
						  void *io)
{
	struct hs_sim_server *server = hs_sim_server_of(cluster, node);

	return server->down ? NULL : hs_sim_server_open(server, io);
}

/* ---- a node's view changes ---- */

static void note_turned(struct hs_sim_server *server)
{
	const struct hs_sim_cluster_host *host = &server->cluster->host;

	if (host->turned)
		host->turned(host->context, server->number);
}

void hs_sim_view_give(struct hs_sim_server *server, uint16_t first, uint16_t last, uint8_t node)
{
	hs_sim_slots_give(&server->view.slots, first, last, node);
	if (server->view.unclaimed.count > 0)
		hs_sim_slots_give(&server->view.unclaimed, first, last, HS_SIM_NO_NODE);
	if (node != server->number && node != server->view.nodes[server->number].master)
		hs_sim_pubsub_drop_slot(server, first, last);
	note_turned(server);
}

/* Redis may give two nodes the same epoch, and then their ids decide which claim wins. Here the last claim wins: all
 * epochs come from one counter. */
void hs_sim_view_new_epoch(struct hs_sim_server *server)
{
	server->view.epoch = ++server->cluster->epoch;
	server->view.nodes[server->number].config_epoch = server->view.epoch;
}

void hs_sim_view_bump(struct hs_sim_server *server)
{
	if (server->view.nodes[server->number].config_epoch != server->cluster->epoch)
		hs_sim_view_new_epoch(server);
}

void hs_sim_view_set_master(struct hs_sim_server *server, uint8_t master)
{
	struct hs_sim_peer_view *self = &server->view.nodes[server->number];
	bool was_master = self->master == HS_SIM_NO_NODE;

	self->master = master;
	server->replaced = false;
	/* Moves of its slots end with its role. */
	server->view.moves_count = 0;
	if (was_master)
		hs_sim_unblock_all(server, "UNBLOCKED force unblock from blocking operation, "
					   "instance state changed (master -> replica?)");
	hs_sim_server_pause(server, false);
	hs_sim_stream_follow(server);
	note_turned(server);
}

/* ---- gossip ---- */

/* The claims of a master, as one node sends them to another. */
struct claims {
	uint8_t master;
	uint64_t epoch;
	const struct hs_sim_slots *slots;
};

struct lost {
	uint32_t taken; /* slots of the node, or of its master, that were taken */
	/* Taken slots that were the node's own: stored as slots of node 0, all others as HS_SIM_NO_NODE's. Without
	 * ranges: none. */
	struct hs_sim_slots own;
};

struct stray {
	const struct hs_sim_slots *lost;
	struct hs_changed keys;
};

static void note_stray(void *context, uint16_t slot, struct hs_bytes key, struct hs_bytes record)
{
	struct stray *stray = context;

	(void)record;
	if (hs_sim_slots_owner(stray->lost, slot) != HS_SIM_NO_NODE)
		hs_changed_add(&stray->keys, key);
}

/* Deletes the remaining keys of slots that were lost. Like Redis 7.0 it notifies neither clients that track or watch
 * them, nor its replicas. */
static void drop_keys(struct hs_sim_server *server, const struct hs_sim_slots *lost)
{
	struct stray stray = {.lost = lost};

	if (hs_sim_keys_count(server) == 0)
		return;
	hs_sim_keys_each(server, 0, HS_SLOTS - 1, note_stray, &stray);
	for (uint32_t i = 0; i < stray.keys.count; i++)
		hs_sim_data_remove(server, hs_changed_name(&stray.keys, i), false);
	hs_changed_deinit(&stray.keys);
}

static void note_lost(struct lost *lost, uint16_t first, uint16_t last)
{
	if (lost->own.count == 0)
		hs_sim_slots_init(&lost->own, HS_SIM_NO_NODE);
	hs_sim_slots_give(&lost->own, first, last, 0);
}

static void note_unclaimed(struct hs_sim_view *view, uint16_t first, uint16_t last)
{
	if (view->unclaimed.count == 0)
		hs_sim_slots_init(&view->unclaimed, HS_SIM_NO_NODE);
	hs_sim_slots_give(&view->unclaimed, first, last, 0);
}

static bool is_unclaimed(const struct hs_sim_view *view, uint16_t slot)
{
	return view->unclaimed.count > 0 &&
	       hs_sim_slots_owner(&view->unclaimed, slot) != HS_SIM_NO_NODE;
}

/* The last slot of the run that begins at a slot: slots of one owner, all claimed or all unclaimed. */
static uint16_t end_of_run(const struct hs_sim_view *view, uint16_t at)
{
	uint16_t last = hs_sim_slots_find(&view->slots, at)->last;

	if (view->unclaimed.count > 0 && hs_sim_slots_find(&view->unclaimed, at)->last < last)
		last = hs_sim_slots_find(&view->unclaimed, at)->last;
	return last;
}

/* Applies one run of slots that the sender claims and another node owns in the receiver's view. */
static void take_run(struct hs_sim_server *to, const struct claims *claims, uint16_t first,
		     uint16_t last, uint8_t owner, uint8_t current_master, struct lost *lost)
{
	struct hs_sim_view *view = &to->view;

	if (owner != HS_SIM_NO_NODE && view->nodes[owner].config_epoch >= claims->epoch &&
	    !is_unclaimed(view, first))
		return;
	for (uint16_t i = 0; i < view->moves_count; i++) {
		const struct hs_sim_move *move = &view->moves[i];

		if (!move->importing || move->slot < first || move->slot > last)
			continue;
		/* Only SETSLOT gives a slot away that is being imported. */
		if (move->slot > first)
			take_run(to, claims, first, (uint16_t)(move->slot - 1), owner,
				 current_master, lost);
		if (move->slot < last)
			take_run(to, claims, (uint16_t)(move->slot + 1), last, owner,
				 current_master, lost);
		return;
	}
	if (owner == current_master)
		lost->taken += last - first + 1u;
	if (owner == to->number)
		note_lost(lost, first, last);
	hs_sim_view_give(to, first, last, claims->master);
}

static void take_claims(struct hs_sim_server *to, const struct claims *claims)
{
	struct hs_sim_view *view = &to->view;
	uint8_t own_master = view->nodes[to->number].master;
	uint8_t current_master = own_master == HS_SIM_NO_NODE ? to->number : own_master;
	struct lost lost = {0};

	if (claims->master == to->number)
		return;
	for (uint32_t at = 0; at < HS_SLOTS;) {
		struct hs_sim_range claimed = *hs_sim_slots_find(claims->slots, (uint16_t)at);
		uint8_t owner = hs_sim_slots_owner(&view->slots, (uint16_t)at);
		uint16_t last = end_of_run(view, (uint16_t)at);

		last = claimed.last < last ? claimed.last : last;
		if (claimed.node != claims->master && owner == claims->master)
			note_unclaimed(view, (uint16_t)at, last);
		else if (claimed.node == claims->master && owner != claims->master)
			take_run(to, claims, (uint16_t)at, last, owner, current_master, &lost);
		else if (claimed.node == claims->master && is_unclaimed(view, (uint16_t)at))
			hs_sim_slots_give(&view->unclaimed, (uint16_t)at, last, HS_SIM_NO_NODE);
		at = last + 1u;
	}
	if (lost.taken > 0 && hs_sim_slots_count(&view->slots, current_master) == 0 &&
	    lost.taken == hs_sim_slots_count(claims->slots, claims->master))
		hs_sim_view_set_master(to, claims->master);
	else if (lost.own.count > 0)
		drop_keys(to, &lost.own);
	hs_sim_slots_deinit(&lost.own);
}

/* A node that owns one of the claimed slots under a higher epoch, in the view of `to`; HS_SIM_NO_NODE: none. */
static uint8_t find_better(const struct hs_sim_server *to, const struct claims *claims)
{
	const struct hs_sim_view *view = &to->view;

	for (uint32_t at = 0; at < HS_SLOTS;) {
		const struct hs_sim_range *claimed = hs_sim_slots_find(claims->slots, (uint16_t)at);
		uint8_t owner = hs_sim_slots_owner(&view->slots, (uint16_t)at);
		uint16_t last = end_of_run(view, (uint16_t)at);

		if (claimed->node == claims->master && owner != claims->master &&
		    owner != HS_SIM_NO_NODE && !is_unclaimed(view, (uint16_t)at) &&
		    view->nodes[owner].config_epoch > claims->epoch)
			return owner;
		at = (claimed->last < last ? claimed->last : last) + 1u;
	}
	return HS_SIM_NO_NODE;
}

static void hear_role(struct hs_sim_server *from, struct hs_sim_server *to)
{
	const struct hs_sim_peer_view *said = &from->view.nodes[from->number];
	struct hs_sim_peer_view *seen = &to->view.nodes[from->number];

	if (from->view.epoch > to->view.epoch)
		to->view.epoch = from->view.epoch;
	if (said->master == HS_SIM_NO_NODE && said->config_epoch > seen->config_epoch)
		seen->config_epoch = said->config_epoch;
	if (seen->master == said->master)
		return;
	/* A master that has become a replica owns no slots. */
	if (seen->master == HS_SIM_NO_NODE) {
		uint32_t first = 0;

		for (uint16_t i = 0; i < to->view.slots.count;) {
			struct hs_sim_range range = to->view.slots.ranges[i];

			if (range.node != from->number) {
				first = range.last + 1u;
				i++;
				continue;
			}
			hs_sim_view_give(to, (uint16_t)first, range.last, HS_SIM_NO_NODE);
			first = 0;
			i = 0;
		}
	}
	seen->master = said->master;
}

/* Sends a node with an outdated claim the claims of the owner. Redis sends what the receiver of the claim knows,
 * which may be outdated; here it is the owner's own view, so that all nodes agree in the end. */
static void send_on(struct hs_sim_server *sender, const struct hs_sim_server *owner)
{
	const struct hs_sim_peer_view *said = &owner->view.nodes[owner->number];
	struct hs_sim_peer_view *seen = &sender->view.nodes[owner->number];
	const struct claims claims = {
		.master = owner->number,
		.epoch = said->config_epoch,
		.slots = &owner->view.slots,
	};

	if (!hs_sim_server_is_master(owner))
		return;
	if (claims.epoch > seen->config_epoch)
		seen->config_epoch = claims.epoch;
	seen->master = HS_SIM_NO_NODE;
	take_claims(sender, &claims);
	hs_sim_health_judge(sender);
}

void hs_sim_gossip_deliver(struct hs_sim_server *from, struct hs_sim_server *to)
{
	uint8_t master = from->view.nodes[from->number].master;
	struct claims claims = {
		.master = master == HS_SIM_NO_NODE ? from->number : master,
		.slots = &from->view.slots,
	};
	uint8_t better;

	if (!hs_sim_servers_talk(from, to))
		return;
	claims.epoch = from->view.nodes[claims.master].config_epoch;
	hear_role(from, to);
	hs_sim_health_mark_alive(to, from);
	if (master == HS_SIM_NO_NODE)
		take_claims(to, &claims);
	better = find_better(to, &claims);
	if (better != HS_SIM_NO_NODE)
		send_on(from, &from->cluster->servers[better]);
	/* The node replicates a replica: it follows the master of that replica. */
	master = to->view.nodes[to->number].master;
	if (master == from->number && claims.master != from->number &&
	    from->view.nodes[from->number].master != HS_SIM_NO_NODE &&
	    from->view.nodes[from->number].master != to->number)
		hs_sim_view_set_master(to, from->view.nodes[from->number].master);
	hs_sim_unblock_moved(to);
	hs_sim_health_judge(to);
}

void hs_sim_gossip_receive_all(struct hs_sim_server *server)
{
	for (uint8_t i = 0; i < server->cluster->count && server->cluster->options.cluster; i++) {
		struct hs_sim_server *other = &server->cluster->servers[i];

		if (other != server)
			hs_sim_gossip_deliver(other, server);
	}
}

static void run_gossip(void *context, void *target, uint64_t number)
{
	struct hs_sim_cluster *cluster = context;

	hs_sim_gossip_deliver(&cluster->servers[number], target);
}

void hs_sim_gossip_one(struct hs_sim_server *from, struct hs_sim_server *to)
{
	hs_sim_server_plan(to, from->cluster->options.gossip_us_max, run_gossip, from->number);
}

void hs_sim_gossip(struct hs_sim_server *from)
{
	struct hs_sim_cluster *cluster = from->cluster;

	for (uint8_t i = 0; i < cluster->count; i++) {
		if (i != from->number)
			hs_sim_gossip_one(from, &cluster->servers[i]);
	}
	hs_sim_health_judge(from);
}
