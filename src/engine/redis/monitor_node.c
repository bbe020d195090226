/* A node of the monitor: a connection, opened when a query is due, and one query in flight. Any failure closes the
 * connection. Each part of the monitor is notified, and sends its queries again in its next round. */
#include "engine/redis/monitor_internal.h"

#include "base/mem.h"
#include "wire/compose.h"

/* ---- the table of queries ---- */

static const struct query_row {
	const char *line; /* the words of the request; NULL: `compose` writes the request */
	void (*answered)(struct hs_monitor_node *node, struct hs_bytes reply);
	void (*compose)(const struct hs_monitor_node *node, struct hs_buf *out);
} query_rows[HS_QUERIES] = {
	[HS_QUERY_EPOCH] = {.line = "CLUSTER INFO", .answered = hs_monitor_poll_epoch},
	[HS_QUERY_SLOTS] = {.line = "CLUSTER SLOTS", .answered = hs_monitor_poll_slots},
	[HS_QUERY_COMMAND] = {.line = "COMMAND", .answered = hs_monitor_learn_commands},
	[HS_QUERY_COMMAND_COUNT] = {.line = "COMMAND COUNT", .answered = hs_monitor_learn_count},
	[HS_QUERY_CLUSTER_STATE] = {.line = "CLUSTER INFO", .answered = hs_monitor_watch_state},
	[HS_QUERY_INFO] = {.line = "INFO", .answered = hs_monitor_watch_info},
	[HS_QUERY_KEYS] = {.line = "INFO keyspace", .answered = hs_monitor_keys_answered},
	[HS_QUERY_CONFIG_SET] = {NULL, hs_monitor_config_set, hs_monitor_config_compose_set},
	[HS_QUERY_CONFIG_GET] = {NULL, hs_monitor_config_get, hs_monitor_config_compose_get},
	[HS_QUERY_CONFIG_CHECK] = {NULL, hs_monitor_config_check, hs_monitor_config_compose_get},
	[HS_QUERY_CONFIG_RESTORE] = {NULL, hs_monitor_config_restored,
				     hs_monitor_config_compose_restore},
	[HS_QUERY_SLOT_STATS] = {.line = "CLUSTER SLOT-STATS SLOTSRANGE 0 16383",
				 .answered = hs_monitor_watch_stats},
};

bool hs_monitor_is_error(struct hs_bytes reply, struct hs_bytes *text)
{
	struct hs_parsed_reply head;
	bool error = hs_parse_reply_head(&head, reply.data, reply.len) > 0 &&
		     head.type == HS_PARSED_ERROR;

	if (error)
		*text = head.text;
	return error;
}

/* ---- nodes ---- */

struct hs_monitor_node *hs_monitor_node(struct hs_monitor *monitor,
					const struct hs_redis_address *address)
{
	struct hs_monitor_node **end = &monitor->nodes, *node;

	for (; *end; end = &(*end)->next) {
		if (hs_redis_same_address(&(*end)->address, address))
			return *end;
	}
	node = hs_mem_zalloc(sizeof *node);
	node->monitor = monitor;
	node->address = *address;
	node->query = HS_QUERY_NONE;
	hs_upstream_init(&node->upstream, 2);
	hs_address_text(address->host, address->port, node->text, sizeof node->text);
	*end = node;
	monitor->nodes_count++;
	return node;
}

/* Closes the connection and drops its queries. The next query opens it again. */
static void disconnect(struct hs_monitor_node *node)
{
	struct hs_monitor *monitor = node->monitor;

	if (node->upstream.state != HS_UPSTREAM_DOWN)
		monitor->calls->close(monitor->context, &node->upstream);
	node->upstream.state = HS_UPSTREAM_DOWN;
	hs_upstream_reset(&node->upstream);
	if (monitor->learner == node)
		monitor->learner = NULL;
	node->query = HS_QUERY_NONE;
	node->queries_due = 0;
	hs_monitor_config_forget(node);
	hs_monitor_keys_forget(node);
}

void hs_monitor_node_destroy(struct hs_monitor_node *node)
{
	struct hs_monitor *monitor = node->monitor;
	struct hs_monitor_node **at = &monitor->nodes;

	disconnect(node);
	hs_upstream_deinit(&node->upstream);
	while (*at != node)
		at = &(*at)->next;
	*at = node->next;
	monitor->nodes_count--;
	hs_mem_release(node);
}

/* ---- queries ---- */

static bool wants(const struct hs_monitor_node *node, enum hs_monitor_query query)
{
	return node->queries_due & 1u << query;
}

static void send_next(struct hs_monitor_node *node)
{
	struct hs_monitor *monitor = node->monitor;
	struct hs_upstream *upstream = &node->upstream;
	enum hs_monitor_query query = 0;

	if (upstream->state != HS_UPSTREAM_UP || upstream->close_reason ||
	    node->query != HS_QUERY_NONE || node->queries_due == 0)
		return;
	while (!wants(node, query))
		query++;
	node->queries_due &= ~(1u << query);
	node->query = query;
	node->query_us = monitor->now_us;
	if (query_rows[query].line)
		hs_compose_line(&upstream->out, query_rows[query].line);
	else
		query_rows[query].compose(node, &upstream->out);
	monitor->calls->send(monitor->context, upstream);
}

void hs_monitor_node_request(struct hs_monitor_node *node, enum hs_monitor_query query)
{
	struct hs_monitor *monitor = node->monitor;

	if (node->query == query)
		return;
	node->queries_due |= 1u << query;
	if (node->upstream.state == HS_UPSTREAM_DOWN) {
		hs_upstream_opening(&node->upstream, monitor->now_us);
		monitor->calls->open(monitor->context, &node->upstream, &node->address);
	} else {
		send_next(node);
	}
}

static void failed(struct hs_monitor_node *node, const char *why)
{
	bool looked = node->query == HS_QUERY_EPOCH || node->query == HS_QUERY_SLOTS ||
		      wants(node, HS_QUERY_EPOCH) || wants(node, HS_QUERY_SLOTS);

	node->was_lost |= node->was_up;
	hs_monitor_config_failed(node, why);
	disconnect(node);
	hs_monitor_watch_down(node, why);
	if (looked)
		hs_monitor_poll_failed(node, why);
}

void hs_monitor_node_tick(struct hs_monitor_node *node)
{
	struct hs_monitor *monitor = node->monitor;
	bool busy = node->upstream.state != HS_UPSTREAM_UP || node->query != HS_QUERY_NONE ||
		    node->queries_due != 0;

	/* The timeout applies to the whole reply: unlike in hs_upstream_is_silent, its first bytes do not extend
	 * the timeout. */
	if (node->query != HS_QUERY_NONE &&
	    monitor->now_us - node->query_us > HS_MONITOR_REPLY_US_MAX) {
		failed(node, "it did not answer in time");
	} else if (!node->listed && !node->seed && !monitor->poll.running) {
		hs_monitor_node_destroy(node);
	} else if (!busy && !node->master && monitor->now_us - node->used_us > HS_MONITOR_IDLE_US &&
		   !hs_monitor_config_has_values(monitor)) {
		/* With remembered values the connection stays open instead, so that a restart of the server is
		 * noticed. */
		disconnect(node);
	}
}

/* ---- connection events ---- */

static struct hs_monitor_node *node_of(struct hs_upstream *upstream)
{
	return hs_list_entry(upstream, struct hs_monitor_node, upstream);
}

void hs_monitor_up(struct hs_monitor *monitor, uint64_t now_us, struct hs_upstream *upstream)
{
	struct hs_monitor_node *node = node_of(upstream);

	hs_monitor_enter(monitor, now_us);
	upstream->state = HS_UPSTREAM_UP;
	hs_monitor_watch_up(node);
	hs_monitor_config_up(node);
	node->was_up = true;
	node->was_lost = false;
	send_next(node);
	hs_monitor_leave(monitor);
}

void hs_monitor_down(struct hs_monitor *monitor, uint64_t now_us, struct hs_upstream *upstream,
		     const char *why)
{
	hs_monitor_enter(monitor, now_us);
	upstream->state = HS_UPSTREAM_DOWN; /* the driver or the server has closed the connection */
	failed(node_of(upstream), why);
	hs_monitor_leave(monitor);
}

/* `answered` must not call disconnect while received bytes are being read: it sets a close reason
 * (hs_upstream_close). */
static void take(void *context, struct hs_bytes reply, bool owned)
{
	struct hs_monitor_node *node = context;
	enum hs_monitor_query query = node->query;

	(void)owned;
	if (query == HS_QUERY_NONE) {
		hs_upstream_close(&node->upstream, "it sent a reply without a request");
		return;
	}
	node->query = HS_QUERY_NONE;
	node->used_us = node->monitor->now_us;
	query_rows[query].answered(node, reply);
	send_next(node);
}

void hs_monitor_receive(struct hs_monitor *monitor, uint64_t now_us, struct hs_upstream *upstream,
			const char *data, size_t len)
{
	struct hs_monitor_node *node = node_of(upstream);

	hs_monitor_enter(monitor, now_us);
	hs_upstream_receive(upstream, now_us, data, len, HS_MONITOR_REPLY_BYTES_MAX, take, node);
	if (upstream->close_reason && upstream->blameless)
		disconnect(node);
	else if (upstream->close_reason)
		failed(node, upstream->close_reason);
	hs_monitor_leave(monitor);
}
