/* Polls of the topology. Every node of a Cluster knows the topology, so a poll asks nodes one by one until an
 * answer is good: in random order, connected nodes first unless they report that the Cluster is down.
 *
 *     no answer, or no cluster    the next node; after 200 ms another one is asked beside it
 *     another Cluster             the next node
 *     older than what is known    the next node; installed if three polls in a row find none newer
 *     the same                    done
 *     a change                    new routes and partitions
 *
 * The Cluster's epoch grows whenever slots change owners and tells how old an answer is: a node that was
 * partitioned from the others must not bring back an old topology. */
#include "engine/redis/monitor_internal.h"

#include "base/hash.h"
#include "base/mem.h"
#include "core/engine_unavailable.h"

#include <stdio.h>

static const struct hs_backoff_limits poll_limits = {.first_us = 50 * 1000, .max_us = 400 * 1000};
static const struct hs_backoff_limits unanswered_limits = {.first_us = 100 * 1000,
							   .max_us = 1000 * 1000};

static void ask_another(struct hs_monitor *monitor);

/* ---- due time ---- */

void hs_monitor_poll_soon(struct hs_monitor *monitor)
{
	uint64_t at_us;

	if (hs_monitor_is_single(monitor) || monitor->poll.running || !monitor->topology)
		return; /* no poll is needed, or one is running or due */
	if (monitor->now_us > monitor->poll_backoff.open_at_us + 10 * poll_limits.max_us)
		hs_backoff_clear(&monitor->poll_backoff);
	at_us = monitor->poll_backoff.open_at_us > monitor->now_us
			? monitor->poll_backoff.open_at_us
			: monitor->now_us;
	if (at_us < monitor->poll_at_us)
		monitor->poll_at_us = at_us;
}

/* ---- order of nodes ---- */

static void shuffle(struct hs_monitor *monitor, struct hs_monitor_node **nodes, size_t count)
{
	for (size_t i = count; i > 1; i--) {
		size_t other = (size_t)hs_prng_below(&monitor->prng, i);
		struct hs_monitor_node *node = nodes[i - 1];

		nodes[i - 1] = nodes[other];
		nodes[other] = node;
	}
}

static void choose_order(struct hs_monitor *monitor)
{
	struct hs_monitor_poll *poll = &monitor->poll;
	size_t up = 0, down = monitor->nodes_count;

	poll->order = hs_mem_alloc(monitor->nodes_count * sizeof(struct hs_monitor_node *));
	poll->count = monitor->nodes_count;
	for (struct hs_monitor_node *node = monitor->nodes; node; node = node->next) {
		bool first = node->upstream.state == HS_UPSTREAM_UP && !node->cluster_down;

		poll->order[first ? up++ : --down] = node;
	}
	shuffle(monitor, poll->order, up);
	shuffle(monitor, poll->order + up, poll->count - up);
}

void hs_monitor_poll_start(struct hs_monitor *monitor)
{
	monitor->poll_at_us = HS_MONITOR_NEVER;
	monitor->topology_suspect = false;
	monitor->poll = (struct hs_monitor_poll){.running = true};
	choose_order(monitor);
	ask_another(monitor);
}

static void end(struct hs_monitor *monitor)
{
	struct hs_monitor_poll *poll = &monitor->poll;

	for (size_t i = 0; i < poll->next; i++)
		poll->order[i]->polled = false;
	hs_topology_destroy(&poll->stale);
	hs_mem_free(&poll->order);
	poll->next = 0;
	poll->running = false;
	hs_backoff_wait(&monitor->poll_backoff, &poll_limits, monitor->now_us, &monitor->prng);
}

void hs_monitor_poll_deinit(struct hs_monitor *monitor)
{
	end(monitor);
	hs_topology_destroy(&monitor->topology);
}

/* ---- answers ---- */

/* Returns the number of partitions, which the host fixes when the monitor first asks. */
static uint16_t fix_capacity(struct hs_monitor *monitor, const struct hs_topology *topology)
{
	uint32_t wanted = 2u * topology->shards_count;

	if (wanted < HS_MONITOR_PARTITIONS_MIN)
		wanted = HS_MONITOR_PARTITIONS_MIN;
	if (wanted > HS_PARTITIONS_MAX)
		wanted = HS_PARTITIONS_MAX;
	return monitor->calls->capacity(monitor->context, (uint16_t)wanted);
}

/* Time until the next poll: shorter while some slots have no owner, because requests for these slots fail until a
 * failover. */
static double interval_us(const struct hs_monitor *monitor)
{
	double us = (double)monitor->options.refresh_ms * 1000;

	return monitor->topology && monitor->topology->slots_count < HS_SLOTS &&
			       us > (double)unanswered_limits.max_us
		       ? (double)unanswered_limits.max_us
		       : us;
}

/* An answer is good: the poll ends. */
static void found(struct hs_monitor *monitor, uint64_t epoch, bool changed)
{
	double jitter = 0.75 + 0.5 * hs_prng_unit(&monitor->prng);

	monitor->epoch = epoch;
	monitor->stale_polls = 0;
	hs_monitor_set_unavailable_reason(monitor, "%s", "");
	hs_backoff_clear(&monitor->unanswered_backoff);
	monitor->foreign_logged = false;
	monitor->waiting = false;
	if (changed)
		hs_backoff_clear(&monitor->poll_backoff);
	end(monitor);
	monitor->poll_at_us = monitor->now_us + (uint64_t)(interval_us(monitor) * jitter);
	if (monitor->topology_suspect)
		hs_monitor_poll_soon(monitor);
}

static void take(struct hs_monitor *monitor, struct hs_topology *topology, uint64_t epoch)
{
	bool changed = hs_topology_update(monitor->topology, topology) == HS_TOPOLOGY_CHANGED;

	if (changed)
		hs_monitor_install(monitor, topology);
	else
		hs_topology_destroy(&topology);
	found(monitor, epoch, changed);
}

static void note_failure(struct hs_monitor_node *node, const char *why)
{
	struct hs_monitor_poll *poll = &node->monitor->poll;

	if (poll->failed++ == 0)
		snprintf(poll->why, sizeof poll->why, "%s: %s", node->text, why);
}

static const char foreign_text[] = "a different cluster answers at this address";

static void refuse_foreign(struct hs_monitor_node *node)
{
	struct hs_monitor *monitor = node->monitor;

	if (!monitor->foreign_logged)
		hs_log(monitor->options.log, HS_LOG_ERROR,
		       "%s: %s; ignored, check the engine's URL", node->text, foreign_text);
	monitor->foreign_logged = true;
	note_failure(node, foreign_text);
	/* The connection is closed because a new one may lead to the right Cluster. The server has not failed. */
	node->upstream.blameless = true;
	hs_upstream_close(&node->upstream, foreign_text);
}

static void no_node_answered(struct hs_monitor *monitor)
{
	struct hs_monitor_poll *poll = &monitor->poll;
	char more[32] = "";

	if (poll->failed > 1)
		snprintf(more, sizeof more, ", and %zu more", poll->failed - 1);
	if (strstr(poll->why, HS_LOGIN_REFUSED)) {
		hs_monitor_set_unavailable_reason(monitor, "%s%s", poll->why, more);
		if (!monitor->waiting)
			hs_log(monitor->options.log, HS_LOG_WARN, "%s%s: retrying", poll->why,
			       more);
	} else {
		hs_monitor_set_unavailable_reason(monitor,
						  "none of %zu nodes gives a usable answer (%s%s)",
						  poll->count, poll->why, more);
		if (!monitor->waiting)
			hs_log(monitor->options.log, HS_LOG_WARN,
			       "none of %zu %s gives a usable answer (%s%s): retrying", poll->count,
			       monitor->topology ? "nodes" : "seeds", poll->why, more);
	}
	monitor->waiting = true;
	end(monitor);
	hs_backoff_wait(&monitor->unanswered_backoff, &unanswered_limits, monitor->now_us,
			&monitor->prng);
	monitor->poll_at_us = monitor->unanswered_backoff.open_at_us;
	monitor->calls->startup_done(monitor->context);
}

/* The poll has asked every node, and no answer was good. */
static void all_answered(struct hs_monitor *monitor)
{
	struct hs_monitor_poll *poll = &monitor->poll;
	struct hs_topology *stale = poll->stale;

	poll->stale = NULL;
	if (!stale) {
		no_node_answered(monitor);
	} else if (++monitor->stale_polls < HS_MONITOR_STALE_POLLS) {
		/* A node with a newer epoch may only be slow: polls again soon. */
		hs_topology_destroy(&stale);
		end(monitor);
		monitor->poll_at_us = monitor->now_us + unanswered_limits.first_us;
	} else {
		take(monitor, stale, poll->stale_epoch);
	}
}

static void ask_another(struct hs_monitor *monitor)
{
	struct hs_monitor_poll *poll = &monitor->poll;
	struct hs_monitor_node *node;

	if (poll->next == poll->count) {
		if (poll->underway == 0)
			all_answered(monitor);
		return;
	}
	node = poll->order[poll->next++];
	poll->underway++;
	node->polled = true;
	poll->query_us = monitor->now_us;
	hs_monitor_node_request(node, HS_QUERY_EPOCH);
}

void hs_monitor_poll_tick(struct hs_monitor *monitor)
{
	const struct hs_monitor_poll *poll = &monitor->poll;

	if (poll->running && poll->next < poll->count &&
	    monitor->now_us - poll->query_us >= HS_MONITOR_HEDGE_US)
		ask_another(monitor);
}

/* The node has answered, so the poll does not wait for it any more. False: the running poll has not asked it, and
 * the answer is late, from an earlier poll. */
static bool is_asked(struct hs_monitor_node *node)
{
	bool asked = node->polled;

	node->polled = false;
	if (asked)
		node->monitor->poll.underway--;
	return asked;
}

static void go_on(struct hs_monitor_node *node, const char *why)
{
	note_failure(node, why);
	ask_another(node->monitor);
}

void hs_monitor_poll_failed(struct hs_monitor_node *node, const char *why)
{
	if (is_asked(node))
		go_on(node, why);
}

/* Reads the number behind cluster_current_epoch: in a reply to CLUSTER INFO; 0: none. */
static uint64_t read_epoch(struct hs_bytes reply)
{
	static const char name[] = "cluster_current_epoch:";
	const char *at = memmem(reply.data, reply.len, name, sizeof name - 1);
	const char *end = reply.data + reply.len;
	uint64_t epoch = 0;

	if (!at)
		return 0;
	for (at += sizeof name - 1; at < end && *at >= '0' && *at <= '9'; at++)
		epoch = epoch * 10 + (uint64_t)(*at - '0');
	return epoch;
}

void hs_monitor_poll_epoch(struct hs_monitor_node *node, struct hs_bytes reply)
{
	hs_monitor_watch_state(node, reply);
	/* 0 if the server refused (no permission): its topology is taken all the same */
	node->epoch = read_epoch(reply);
	hs_monitor_node_request(node, HS_QUERY_SLOTS);
}

static void note_stale(struct hs_monitor *monitor, struct hs_topology *topology, uint64_t epoch)
{
	struct hs_monitor_poll *poll = &monitor->poll;

	if (poll->stale && poll->stale_epoch >= epoch) {
		hs_topology_destroy(&topology);
		return;
	}
	hs_topology_destroy(&poll->stale);
	poll->stale = topology;
	poll->stale_epoch = epoch;
}

void hs_monitor_poll_slots(struct hs_monitor_node *node, struct hs_bytes reply)
{
	struct hs_monitor *monitor = node->monitor;
	bool stale = node->epoch > 0 && node->epoch < monitor->epoch;
	uint64_t hash = hs_hash(reply, 0);
	struct hs_topology *topology;
	char why[HS_REDIS_WHY_BYTES];

	if (!is_asked(node))
		return;
	/* If neither the reply nor the topology has changed since the node's last reply, parsing is not needed. A
	 * crowded topology (more shards than partition numbers) is always parsed, because parsing may give a
	 * shard another partition number. */
	if (!stale && monitor->topology && !monitor->topology->crowded &&
	    node->slots_hash == hash && node->slots_number == monitor->topology_number) {
		found(monitor, node->epoch, false);
		return;
	}
	if (hs_topology_parse(&topology, reply, node->address.host, HS_PARTITIONS_MAX, why,
			      sizeof why) < 0) {
		if (strstr(why, "cluster support disabled"))
			snprintf(why, sizeof why, "it is not part of a cluster: use redis://");
		go_on(node, why);
		return;
	}
	topology->capacity = fix_capacity(monitor, topology);
	if (hs_topology_update(monitor->topology, topology) == HS_TOPOLOGY_FOREIGN) {
		hs_topology_destroy(&topology);
		refuse_foreign(node);
		ask_another(monitor);
	} else if (stale) {
		note_stale(monitor, topology, node->epoch);
		ask_another(monitor);
	} else {
		take(monitor, topology, node->epoch);
		node->slots_hash = hash;
		node->slots_number = monitor->topology_number;
	}
}
