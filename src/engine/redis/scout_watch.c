/* What there is to know about the servers beside where the slots are: which commands they have
 * (COMMAND, again whenever one was away), and how they are (INFO, once a second). */
#include "engine/redis/scout_internal.h"

#include "base/mem.h"

#include <stdio.h>

/* ---- first contact ---- */

static void settle_if_known(struct hs_scout *scout)
{
	if (scout->contact && (scout->learned || scout->learn_refused))
		hs_scout_settle(scout);
}

static void tell_contact(struct hs_scout_node *node)
{
	struct hs_scout *scout = node->scout;
	const struct hs_node_info *info = &node->info;
	char who[64] = "";
	uint32_t replicas = 0;

	if (scout->contact)
		return;
	scout->contact = true;
	if (info->version[0])
		snprintf(who, sizeof who, "%s %s", info->valkey ? "Valkey" : "Redis",
			 info->version);
	if (hs_scout_is_single(scout)) {
		hs_log(scout->options.log, HS_LOG_INFO, "%s: %s%s%s", node->text,
		       who[0] ? who : "a server that tells no version",
		       info->role == HS_NODE_REPLICA ? ", a replica: it takes no writes" : "",
		       info->loading ? ", loading its data" : "");
		return;
	}
	for (uint16_t i = 0; i < scout->topology->shards_count; i++)
		replicas += scout->topology->shards[i].replicas_count;
	hs_log(scout->options.log, HS_LOG_INFO, "cluster: %u shards, %u replicas%s%s",
	       scout->topology->shards_count, replicas, who[0] ? ", " : "", who);
}

/* ---- commands ---- */

static void learn_from(struct hs_scout_node *node)
{
	if (node->scout->learner)
		return;
	node->scout->learner = node;
	hs_scout_node_want(node, HS_ASK_COMMAND);
}

static void learn_refused(struct hs_scout_node *node, const char *why)
{
	struct hs_scout *scout = node->scout;

	if (!scout->learn_refused)
		hs_log(scout->options.log, HS_LOG_WARN,
		       "%s does not tell its commands (%s): only those that heatsink knows itself "
		       "can be used",
		       node->text, why);
	scout->learn_refused = true;
}

static void learn(struct hs_scout_node *node, struct hs_bytes reply)
{
	struct hs_scout *scout = node->scout;
	uint64_t hash = hs_scout_command_hash(reply);
	struct hs_learned *learned;
	struct hs_answer head;
	int64_t count = hs_answer_head(&head, reply.data, reply.len) > 0 ? head.count : 0;
	char error[HS_REDIS_WHY_BYTES];

	if (scout->learned && hash == scout->learned_hash)
		return;
	learned = hs_learned_create(reply, scout->learned, error, sizeof error);
	if (!learned) {
		learn_refused(node, error);
		return;
	}
	if (scout->learned)
		hs_log(scout->options.log, HS_LOG_INFO,
		       "%s has other commands than before: %zu beside heatsink's own", node->text,
		       hs_learned_count(learned));
	scout->learned = learned;
	scout->learned_hash = hash;
	scout->learned_count = count;
	scout->learn_refused = false;
	scout->host.learned(scout->host.context, learned);
}

void hs_scout_watch_command(struct hs_scout_node *node, struct hs_bytes reply)
{
	struct hs_scout *scout = node->scout;
	struct hs_answer head;

	scout->learner = NULL;
	if (hs_answer_head(&head, reply.data, reply.len) > 0 && head.type == HS_ANSWER_ERROR) {
		char text[128];

		learn_refused(node, hs_bytes_escape(head.text, text, sizeof text));
	} else {
		learn(node, reply);
	}
	settle_if_known(scout);
}

/* A module that was loaded while the server ran has brought commands. */
void hs_scout_watch_count(struct hs_scout_node *node, struct hs_bytes reply)
{
	struct hs_answer head;

	if (hs_answer_head(&head, reply.data, reply.len) > 0 && head.type == HS_ANSWER_INT &&
	    head.integer != node->scout->learned_count)
		learn_from(node);
}

/* ---- how they are ---- */

static bool has_silent_replicas(const struct hs_scout_node *master)
{
	const struct hs_topology *topology = master->scout->topology;
	const struct hs_topology_shard *shard =
		topology ? hs_topology_find(topology, &master->address) : NULL;

	return shard && master->informed && master->info.replicas_online < shard->replicas_count;
}

/* A replica that its master does not speak of has to be asked itself. */
static bool is_silent_replica(struct hs_scout_node *node)
{
	if (!node->listed || node->master)
		return false;
	for (struct hs_scout_node *master = hs_scout_first(node->scout); master;
	     master = hs_scout_next(node->scout, master)) {
		if (master->master && master->partition == node->partition)
			return has_silent_replicas(master);
	}
	return false;
}

static struct hs_engine_partition sum_of(struct hs_scout *scout, uint16_t partition)
{
	struct hs_engine_partition sum = {0};

	for (struct hs_scout_node *node = hs_scout_first(scout); node;
	     node = hs_scout_next(scout, node)) {
		const struct hs_node_info *info = &node->info;

		if (!node->listed || node->partition != partition)
			continue;
		if (node->master)
			hs_scout_state_add(&sum, node);
		if (!node->informed)
			continue;
		if (info->lag_s > sum.replica_lag_s)
			sum.replica_lag_s = info->lag_s;
		if (info->lag_bytes > sum.replica_lag_bytes)
			sum.replica_lag_bytes = info->lag_bytes;
		if (!node->master)
			continue;
		/* One that does not tell INFO may still tell of its slots. */
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

void hs_scout_watch_numbers(struct hs_scout *scout, uint16_t partition)
{
	struct hs_engine_partition sum = sum_of(scout, partition);
	struct hs_engine_partition *stats = &scout->partitions[partition];
	bool changed = sum.state != stats->state;

	uv_mutex_lock(&scout->mutex);
	sum.absent = stats->absent;
	memcpy(sum.address, stats->address, sizeof sum.address);
	memcpy(sum.slots, stats->slots, sizeof sum.slots);
	*stats = sum;
	uv_mutex_unlock(&scout->mutex);
	if (changed)
		hs_scout_state_slots(scout);
}

static void place_partition(struct hs_scout *scout, uint16_t partition)
{
	struct hs_engine_partition place = {.absent = true};
	const struct hs_topology_shard *shard =
		scout->topology ? hs_topology_shard(scout->topology, partition) : NULL;
	char text[HS_ADDRESS_TEXT_MAX];

	if (shard) {
		place.absent = false;
		hs_address_text(shard->master.address.host, shard->master.address.port, text,
				sizeof text);
		snprintf(place.address, sizeof place.address, "%.*s", (int)sizeof place.address - 1,
			 text);
		hs_topology_slots_text(scout->topology, partition, place.slots, sizeof place.slots);
	} else if (hs_scout_is_single(scout) && partition == 0) {
		place.absent = false;
		snprintf(place.address, sizeof place.address, "%.*s", (int)sizeof place.address - 1,
			 hs_scout_first(scout)->text);
		snprintf(place.slots, sizeof place.slots, "0-%d", HS_SLOTS - 1);
	}
	uv_mutex_lock(&scout->mutex);
	scout->partitions[partition] = place;
	uv_mutex_unlock(&scout->mutex);
}

void hs_scout_watch_publish(struct hs_scout *scout)
{
	for (uint32_t id = 0; id < HS_PARTITIONS_MAX; id++) {
		uint16_t i = (uint16_t)id;

		place_partition(scout, i);
		if (!scout->partitions[i].absent)
			hs_scout_watch_numbers(scout, i);
	}
	hs_scout_state_slots(scout);
}

static void single_is(struct hs_scout_node *node)
{
	struct hs_scout *scout = node->scout;

	if (node->info.loading)
		hs_scout_set_trouble(scout, "%s is loading its data", node->text);
	else
		hs_scout_set_trouble(scout, "%s", "");
	if (node->info.cluster && !scout->not_single) {
		scout->not_single = true;
		hs_log(scout->options.log, HS_LOG_WARN,
		       "%s is a node of a cluster, and keys of other nodes are not reached: use "
		       "cluster://",
		       node->text);
	}
}

/* What the masters that tell INFO agree on. */
static void watch_servers(struct hs_scout *scout)
{
	struct hs_engine_servers servers = {.maxmemory = -1, .aof_enabled = -1};
	const struct hs_node_info *first = NULL;

	for (struct hs_scout_node *node = hs_scout_first(scout); node;
	     node = hs_scout_next(scout, node)) {
		const struct hs_node_info *info = &node->info;

		if (!node->master || !node->informed)
			continue;
		if (!first) {
			first = info;
			servers.maxmemory = info->maxmemory;
			servers.aof_enabled = info->aof_enabled;
			snprintf(servers.maxmemory_policy, sizeof servers.maxmemory_policy, "%s",
				 info->maxmemory_policy);
			continue;
		}
		if (info->maxmemory != servers.maxmemory)
			servers.maxmemory = -1;
		if (info->aof_enabled != servers.aof_enabled)
			servers.aof_enabled = -1;
		if (strcmp(info->maxmemory_policy, first->maxmemory_policy) != 0)
			servers.maxmemory_policy[0] = '\0';
	}
	uv_mutex_lock(&scout->mutex);
	scout->servers = servers;
	uv_mutex_unlock(&scout->mutex);
}

void hs_scout_watch_info(struct hs_scout_node *node, struct hs_bytes reply)
{
	struct hs_scout *scout = node->scout;
	uint64_t now_us = uv_hrtime() / 1000;
	struct hs_answer head;
	struct hs_node_info info;

	if (hs_answer_head(&head, reply.data, reply.len) <= 0 || head.type != HS_ANSWER_BULK ||
	    hs_node_info_parse(&info, head.text) < 0) {
		hs_log(scout->options.log, HS_LOG_DEBUG, "%s does not tell INFO", node->text);
		info = (struct hs_node_info){.maxmemory = -1, .aof_enabled = -1};
	}
	node->cpu =
		node->informed ? hs_node_info_cpu(&node->info, &info, now_us - node->info_us) : 0;
	node->info = info;
	node->info_us = now_us;
	node->informed = true;
	node->count_late = false;
	watch_servers(scout);
	if (node->listed)
		hs_scout_watch_numbers(scout, node->partition);
	if (hs_scout_is_single(scout))
		single_is(node);
	else if (node->master && info.role == HS_NODE_REPLICA)
		hs_scout_look_soon(scout); /* replaced, and no client has found out yet */
	tell_contact(node);
	settle_if_known(scout);
}

void hs_scout_watch_up(struct hs_scout_node *node)
{
	struct hs_scout *scout = node->scout;

	if (node->away)
		hs_log(scout->options.log, HS_LOG_INFO, "%s answers again", node->text);
	node->away = false;
	node->count_late = false;
	if (!scout->learned || node->lost)
		learn_from(node);
}

void hs_scout_watch_down(struct hs_scout_node *node, const char *why)
{
	struct hs_scout *scout = node->scout;

	node->informed = false;
	watch_servers(scout);
	node->refuses = false;
	node->stats_refused = false; /* it may come back as something newer */
	hs_scout_stats_forget(node);
	if (!node->master) {
		hs_log(scout->options.log, HS_LOG_DEBUG, "%s: %s", node->text, why);
		return;
	}
	if (!node->away && !hs_scout_is_single(scout))
		hs_log(scout->options.log, HS_LOG_WARN, "%s, master of partition %u: %s",
		       node->text, node->partition, why);
	else if (!node->away)
		hs_log(scout->options.log, HS_LOG_WARN, "%s: %s: waiting", node->text, why);
	node->away = true;
	snprintf(node->why, sizeof node->why, "%s", why);
	hs_scout_watch_numbers(scout, node->partition);
	if (hs_scout_is_single(scout)) {
		hs_scout_set_trouble(scout, "%s: %s", node->text, why);
		hs_scout_settle(scout);
	} else {
		hs_scout_look_soon(scout);
	}
}

/* ---- when ---- */

void hs_scout_watch_all(struct hs_scout *scout)
{
	bool count = ++scout->watches % HS_SCOUT_COUNT_EACH == 0;

	scout->watch_ms = hs_scout_now_ms(scout);
	for (struct hs_scout_node *node = hs_scout_first(scout); node;
	     node = hs_scout_next(scout, node)) {
		if (count && node->master && node->state == HS_SCOUT_UP) {
			hs_scout_node_want(node, HS_ASK_COUNT);
			count = false;
		}
		if (node->master && !hs_scout_is_single(scout))
			hs_scout_node_want(node, HS_ASK_STATE);
		if (node->master || is_silent_replica(node))
			hs_scout_node_want(node, HS_ASK_INFO);
		if (!scout->learned && !scout->learn_refused && node->state == HS_SCOUT_UP)
			learn_from(node);
	}
}

void hs_scout_watch_tick(struct hs_scout *scout)
{
	if (hs_scout_now_ms(scout) - scout->watch_ms < HS_SCOUT_WATCH_MS)
		return;
	hs_scout_watch_all(scout);
	hs_scout_config_tick(scout);
}
