/* Watches the servers' state: sends INFO once a second, together with CLUSTER INFO to a Cluster's masters, and
 * CLUSTER SLOT-STATS every few seconds. */
#include "engine/redis/monitor_internal.h"

#include "base/mem.h"

#include <stdio.h>

/* ---- startup ---- */

void hs_monitor_end_startup(struct hs_monitor *monitor)
{
	if (monitor->contact_logged && (monitor->learned || monitor->learn_refused))
		monitor->calls->startup_done(monitor->context);
}

static void log_contact(struct hs_monitor_node *node)
{
	struct hs_monitor *monitor = node->monitor;
	const struct hs_node_info *info = &node->info;
	char who[64] = "";
	uint32_t replicas = 0;

	if (monitor->contact_logged)
		return;
	monitor->contact_logged = true;
	if (info->version[0])
		snprintf(who, sizeof who, "%s %s", info->valkey ? "Valkey" : "Redis",
			 info->version);
	if (hs_monitor_is_single(monitor)) {
		hs_log(monitor->options.log, HS_LOG_INFO, "%s: %s%s%s", node->text,
		       who[0] ? who : "a server of unknown version",
		       info->role == HS_NODE_REPLICA ? ", a replica: writes will fail" : "",
		       info->loading ? ", loading its data" : "");
		return;
	}
	for (uint16_t i = 0; i < monitor->topology->shards_count; i++)
		replicas += monitor->topology->shards[i].replicas_count;
	hs_log(monitor->options.log, HS_LOG_INFO, "cluster: %u shards, %u replicas%s%s",
	       monitor->topology->shards_count, replicas, who[0] ? ", " : "", who);
}

/* ---- INFO ---- */

static void single_is(struct hs_monitor_node *node)
{
	struct hs_monitor *monitor = node->monitor;

	if (node->info.loading)
		hs_monitor_set_unavailable_reason(monitor, "%s is loading its data", node->text);
	else
		hs_monitor_set_unavailable_reason(monitor, "%s", "");
	if (node->info.cluster && !monitor->not_single_logged) {
		monitor->not_single_logged = true;
		hs_log(monitor->options.log, HS_LOG_WARN,
		       "%s is a node of a cluster: commands for keys of other nodes will fail; use "
		       "cluster://",
		       node->text);
	}
}

/* Reports the settings that are equal at all masters. */
static void watch_servers(struct hs_monitor *monitor)
{
	struct hs_engine_servers servers = {.maxmemory = -1, .aof_enabled = -1};
	const struct hs_node_info *first = NULL;

	for (struct hs_monitor_node *node = monitor->nodes; node; node = node->next) {
		const struct hs_node_info *info = &node->info;

		if (!node->master || !node->has_info)
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
	monitor->calls->servers(monitor->context, &servers);
}

void hs_monitor_watch_info(struct hs_monitor_node *node, struct hs_bytes reply)
{
	struct hs_monitor *monitor = node->monitor;
	uint64_t now_us = monitor->now_us;
	struct hs_parsed_reply head;
	struct hs_node_info info;

	if (hs_parse_reply_head(&head, reply.data, reply.len) <= 0 || head.type != HS_PARSED_BULK ||
	    hs_node_info_parse(&info, head.text) < 0) {
		hs_log(monitor->options.log, HS_LOG_DEBUG, "%s: INFO failed", node->text);
		info = (struct hs_node_info){.maxmemory = -1, .aof_enabled = -1};
	}
	node->cpu =
		node->has_info ? hs_node_info_cpu(&node->info, &info, now_us - node->info_us) : 0;
	node->info = info;
	node->info_us = now_us;
	node->has_info = true;
	node->recount_late = false;
	watch_servers(monitor);
	if (node->listed)
		hs_monitor_publish(monitor, node->partition);
	if (hs_monitor_is_single(monitor))
		single_is(node);
	else if (node->master && info.role == HS_NODE_REPLICA)
		/* the master was demoted, and no worker has noticed this yet */
		hs_monitor_poll_soon(monitor);
	log_contact(node);
	hs_monitor_end_startup(monitor);
}

/* ---- CLUSTER INFO ---- */

void hs_monitor_watch_state(struct hs_monitor_node *node, struct hs_bytes reply)
{
	bool cluster_down = hs_node_says_cluster_down(reply);

	if (cluster_down && node->master)
		hs_monitor_poll_soon(node->monitor); /* another node may have replaced the master */
	if (cluster_down == node->cluster_down)
		return;
	node->cluster_down = cluster_down;
	if (!node->master)
		return;
	hs_log(node->monitor->options.log, cluster_down ? HS_LOG_WARN : HS_LOG_INFO,
	       "%s, master of partition %u: it reports that the cluster is %s", node->text,
	       node->partition, cluster_down ? "down" : "up again");
	hs_monitor_publish(node->monitor, node->partition);
}

/* ---- CLUSTER SLOT-STATS ---- */

/* The server will refuse as long as it runs: an unknown command, or no permission (each attempt would add a line
 * to its ACL LOG). Other errors, such as BUSY and LOADING, pass. */
static bool is_final(struct hs_bytes reply)
{
	struct hs_bytes text;

	return hs_monitor_is_error(reply, &text) &&
	       (hs_bytes_begins(text, HS_LIT("ERR ")) || hs_bytes_begins(text, HS_LIT("NOPERM ")));
}

/* A node's sums stay until its next answer. This function drops them when no answer will come. */
static void forget_stats(struct hs_monitor_node *node)
{
	node->stats_at_us = 0;
	node->stats = (struct hs_slot_sample){0};
	node->sums = (struct hs_slot_sums){0};
}

void hs_monitor_watch_stats(struct hs_monitor_node *node, struct hs_bytes reply)
{
	struct hs_monitor *monitor = node->monitor;
	char why[HS_REDIS_WHY_BYTES];

	if (!node->master)
		return; /* the node was demoted after the query was sent */
	if (!monitor->samples)
		monitor->samples = hs_mem_zalloc(sizeof *monitor->samples);
	if (hs_slot_stats_sample(monitor->samples, &node->stats, reply, monitor->now_us,
				 &node->sums, why, sizeof why) < 0) {
		uint64_t at_us = node->stats_at_us;

		hs_log(monitor->options.log, HS_LOG_DEBUG, "%s: %s", node->text, why);
		forget_stats(node);
		node->stats_at_us = at_us;
		node->stats_refused = is_final(reply);
	}
	hs_monitor_publish(monitor, node->partition);
}

/* If a server refused, the monitor sends the query again only on a new connection: the server may return as a
 * newer version. */
static void ask_stats(struct hs_monitor_node *node)
{
	if (!node->master) {
		forget_stats(node);
	} else if (node->upstream.state == HS_UPSTREAM_UP && !node->stats_refused &&
		   node->monitor->now_us >= node->stats_at_us) {
		node->stats_at_us = node->monitor->now_us + HS_MONITOR_STATS_US;
		hs_monitor_node_request(node, HS_QUERY_SLOT_STATS);
	}
}

/* ---- down and up ---- */

void hs_monitor_watch_up(struct hs_monitor_node *node)
{
	struct hs_monitor *monitor = node->monitor;

	if (node->down)
		hs_log(monitor->options.log, HS_LOG_INFO, "%s answers again", node->text);
	node->down = false;
	node->recount_late = false;
	if (!monitor->learned || node->was_lost)
		hs_monitor_learn_from(node);
}

void hs_monitor_watch_down(struct hs_monitor_node *node, const char *why)
{
	struct hs_monitor *monitor = node->monitor;

	node->has_info = false;
	watch_servers(monitor);
	node->cluster_down = false;
	node->stats_refused = false; /* the server may return as a newer version */
	forget_stats(node);
	if (!node->master) {
		hs_log(monitor->options.log, HS_LOG_DEBUG, "%s: %s", node->text, why);
		return;
	}
	if (!node->down && !hs_monitor_is_single(monitor))
		hs_log(monitor->options.log, HS_LOG_WARN,
		       "%s, master of partition %u: %s: requests for its slots wait up to "
		       "engine-timeout, then get errors: "
		       "retrying",
		       node->text, node->partition, why);
	else if (!node->down)
		hs_log(monitor->options.log, HS_LOG_WARN,
		       "%s: %s: requests wait up to engine-timeout, then get errors: retrying",
		       node->text, why);
	node->down = true;
	snprintf(node->why, sizeof node->why, "%s", why);
	hs_monitor_publish(monitor, node->partition);
	if (hs_monitor_is_single(monitor)) {
		hs_monitor_set_unavailable_reason(monitor, "%s: %s", node->text, why);
		monitor->calls->startup_done(monitor->context);
	} else {
		hs_monitor_poll_soon(monitor);
	}
}

/* ---- due times ---- */

static bool has_silent_replicas(const struct hs_monitor_node *master)
{
	const struct hs_topology_shard *shard =
		hs_topology_find(master->monitor->topology, &master->address);

	return shard && master->has_info && master->info.replicas_online < shard->replicas_count;
}

/* The node is a replica that its master does not report as online: the monitor sends INFO to the replica
 * itself. */
static bool is_silent_replica(struct hs_monitor_node *node)
{
	if (!node->listed || node->master)
		return false;
	for (struct hs_monitor_node *master = node->monitor->nodes; master; master = master->next) {
		if (master->master && master->partition == node->partition)
			return has_silent_replicas(master);
	}
	return false;
}

void hs_monitor_watch_all(struct hs_monitor *monitor)
{
	bool count = ++monitor->watches % HS_MONITOR_COUNT_EACH == 0;

	monitor->watch_at_us = monitor->now_us + HS_MONITOR_WATCH_US;
	for (struct hs_monitor_node *node = monitor->nodes; node; node = node->next) {
		if (count && node->master && node->upstream.state == HS_UPSTREAM_UP) {
			hs_monitor_node_request(node, HS_QUERY_COMMAND_COUNT);
			count = false;
		}
		if (node->master && !hs_monitor_is_single(monitor))
			hs_monitor_node_request(node, HS_QUERY_CLUSTER_STATE);
		if (node->master || is_silent_replica(node))
			hs_monitor_node_request(node, HS_QUERY_INFO);
		if (!monitor->learned && !monitor->learn_refused &&
		    node->upstream.state == HS_UPSTREAM_UP)
			hs_monitor_learn_from(node);
	}
}

void hs_monitor_watch_tick(struct hs_monitor *monitor)
{
	if (monitor->now_us >= monitor->watch_at_us) {
		hs_monitor_watch_all(monitor);
		hs_monitor_config_tick(monitor);
	}
	for (struct hs_monitor_node *node = monitor->nodes; node; node = node->next) {
		if (!hs_monitor_is_single(monitor))
			ask_stats(node);
	}
}
