/* Counts the keys of the masters, for a client's INFO.
 *
 *     hs_monitor_recount ──► round: INFO keyspace to every master ──► all answered, or 500 ms ──► recounted
 *
 * The counts of the INFO that the monitor sends once a second (monitor_watch.c) are too old for a client that has
 * just written. One round runs at a time. The next round answers all requests that come during the running one: in
 * the running round a master may have answered before the writes in front of these requests.
 *
 * A master that does not answer in time is left out of later rounds until it has answered anything: a frozen
 * master delays INFO once. After a round in which a connection failed, the next one begins at the next tick:
 * however often clients send INFO, the monitor tries to connect to a dead master at most ten times a second. */
#include "engine/redis/monitor_internal.h"

static void node_done(struct hs_monitor_node *node)
{
	struct hs_monitor *monitor = node->monitor;

	if (!node->recounting)
		return;
	node->recounting = false;
	if (--monitor->recount.left == 0)
		monitor->step_due = true;
}

void hs_monitor_keys_answered(struct hs_monitor_node *node, struct hs_bytes reply)
{
	struct hs_parsed_reply head;

	/* A node that refuses INFO keeps its previous numbers. */
	if (hs_parse_reply_head(&head, reply.data, reply.len) > 0 && head.type == HS_PARSED_BULK &&
	    hs_node_info_parse_keyspace(&node->info, head.text) == 0 && node->listed)
		hs_monitor_publish(node->monitor, node->partition);
	node->recount_late = false;
	node_done(node);
}

void hs_monitor_keys_forget(struct hs_monitor_node *node)
{
	node->monitor->recount.paused |= node->recounting;
	node_done(node);
}

static void begin(struct hs_monitor *monitor)
{
	struct hs_monitor_recount *recount = &monitor->recount;

	recount->answers = recount->wanted;
	recount->running = true;
	recount->began_us = monitor->now_us;
	recount->left = 0;
	for (struct hs_monitor_node *node = monitor->nodes; node; node = node->next) {
		node->recounting = node->master && !node->recount_late;
		if (!node->recounting)
			continue;
		recount->left++;
		/* The node's counts are published only together with a full INFO, so INFO is sent first. */
		if (!node->has_info)
			hs_monitor_node_request(node, HS_QUERY_INFO);
		hs_monitor_node_request(node, HS_QUERY_KEYS);
	}
	if (recount->left == 0)
		monitor->step_due = true;
}

void hs_monitor_keys_step(struct hs_monitor *monitor)
{
	struct hs_monitor_recount *recount = &monitor->recount;

	if (recount->running && recount->left == 0) {
		recount->running = false;
		monitor->calls->recounted(monitor->context, recount->answers);
	}
	if (!recount->running && !recount->paused && recount->answers != recount->wanted)
		begin(monitor);
}

static void give_up(struct hs_monitor *monitor)
{
	for (struct hs_monitor_node *node = monitor->nodes; node; node = node->next) {
		if (!node->recounting)
			continue;
		node->recount_late = true;
		/* If the query were sent later, its answer could be taken for one of the next round, but be older
		 * than the writes in front of that round. */
		node->queries_due &= ~(1u << HS_QUERY_KEYS);
		node_done(node);
	}
}

void hs_monitor_keys_tick(struct hs_monitor *monitor)
{
	struct hs_monitor_recount *recount = &monitor->recount;

	recount->paused = false;
	if (recount->running && monitor->now_us - recount->began_us > HS_MONITOR_KEYS_US_MAX)
		give_up(monitor);
	monitor->step_due = true;
}

void hs_monitor_recount(struct hs_monitor *monitor, uint64_t now_us, uint64_t number)
{
	hs_monitor_enter(monitor, now_us);
	monitor->recount.wanted = number;
	monitor->step_due = true;
	hs_monitor_leave(monitor);
}
