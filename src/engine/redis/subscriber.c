/* The subscriber's entry points, its connections, and the choice of the pub/sub node. */
#include "engine/redis/subscriber_internal.h"

#include "base/address.h"
#include "base/mem.h"
#include "wire/reply.h"

#include <stdio.h>

enum { RUN_STEP = 64 };

/* ---- ops ---- */

void hs_subscriber_finish(struct hs_subscriber *sub, struct hs_op *op)
{
	struct hs_reply reply = {.out = op->out, .resp = op->resp};

	hs_reply_ok(&reply);
	sub->calls->done(sub->context, op);
}

void hs_subscriber_wait_begin(struct hs_subscriber *sub, struct hs_op *op,
			      struct hs_subscriber_topic *topic, struct hs_link *list)
{
	struct hs_subscriber_wait *wait = hs_mem_zalloc(sizeof *wait);

	wait->op = op;
	wait->topic = topic;
	wait->until_us = sub->now_us + HS_SUBSCRIBER_CONFIRM_US_MAX;
	hs_list_append(list, &wait->of_topic);
	hs_list_append(&sub->waits, &wait->of_all);
}

struct hs_op *hs_subscriber_wait_end(struct hs_subscriber *sub, struct hs_subscriber_wait *wait,
				     bool in)
{
	struct hs_op *op = wait->op;

	hs_subscriber_set(wait->topic ? &wait->topic->workers : &sub->trackers, op->worker, in);
	hs_list_remove(&wait->of_topic);
	hs_list_remove(&wait->of_all);
	hs_mem_release(wait);
	return op;
}

/* The wait of sub->waits with the earliest deadline, or NULL. */
static struct hs_subscriber_wait *first_wait(const struct hs_subscriber *sub)
{
	return hs_list_first(&sub->waits, struct hs_subscriber_wait, of_all);
}

/* ---- connections ---- */

static bool same_node(const struct hs_route_node *a, const struct hs_route_node *b)
{
	return a->port == b->port && strcmp(a->host, b->host) == 0 && strcmp(a->id, b->id) == 0;
}

/* The connection to this node for topics, or the one that tracks keys; NULL: none. */
static struct hs_subscriber_conn *find_conn(const struct hs_subscriber *sub, uint16_t node,
					    bool tracks)
{
	hs_list_each(struct hs_subscriber_conn, conn, &sub->conns, link) {
		if (conn->tracks == tracks && same_node(&conn->at, &sub->routes->nodes[node]))
			return conn;
	}
	return NULL;
}

static struct hs_subscriber_conn *get_conn(struct hs_subscriber *sub, uint16_t node, bool tracks)
{
	const struct hs_route_node *at = &sub->routes->nodes[node];
	struct hs_subscriber_conn *conn = find_conn(sub, node, tracks);

	if (conn)
		return conn;
	conn = hs_mem_zalloc(sizeof *conn);
	hs_upstream_init(&conn->upstream, 3);
	conn->at = *at;
	conn->tracks = tracks;
	conn->listed = true;
	hs_address_text(at->host, at->port, conn->text, sizeof conn->text);
	hs_list_init(&conn->dirty);
	hs_list_init(&conn->requests);
	for (int i = 0; i < HS_SUBSCRIPTION_STATES; i++)
		hs_list_init(&conn->subscriptions[i]);
	hs_list_append(&sub->conns, &conn->link);
	sub->conns_stale = true;
	return conn;
}

struct hs_subscriber_conn *hs_subscriber_conn_at(struct hs_subscriber *sub, uint16_t node)
{
	if (!sub->at_node[node])
		sub->at_node[node] = get_conn(sub, node, false);
	return sub->at_node[node];
}

bool hs_subscriber_conn_is_used(const struct hs_subscriber_conn *conn)
{
	for (int i = 0; i < HS_SUBSCRIPTION_STATES; i++) {
		if (!hs_list_empty(&conn->subscriptions[i]))
			return true;
	}
	return false;
}

static void destroy_conn(struct hs_subscriber *sub, struct hs_subscriber_conn *conn)
{
	if (conn->upstream.state != HS_UPSTREAM_DOWN)
		sub->calls->close(sub->context, &conn->upstream);
	hs_subscriber_conn_reset(sub, conn);
	hs_upstream_deinit(&conn->upstream);
	hs_list_remove(&conn->link);
	for (uint16_t i = 0; sub->routes && i < sub->routes->nodes_count; i++) {
		if (sub->at_node[i] == conn)
			sub->at_node[i] = NULL;
	}
	hs_mem_release(conn);
}

/* A connection was lost or could not be opened. If it had worked before, the loss is logged, and the connection is
 * opened again at once. */
static void lose_conn(struct hs_subscriber *sub, struct hs_subscriber_conn *conn, const char *why)
{
	static const struct hs_backoff_limits limits = {
		.first_us = HS_SUBSCRIBER_OPEN_US_MIN,
		.max_us = HS_SUBSCRIBER_OPEN_US_MAX,
	};
	bool was_up = hs_subscriber_is_up(conn);

	snprintf(conn->why, sizeof conn->why, "%s", why);
	hs_backoff_lost(&conn->upstream.backoff, &limits, sub->now_us, &sub->prng, was_up,
			conn->upstream.opened_us);
	if (was_up && conn->upstream.backoff.failures == 1)
		hs_log(sub->options.log, HS_LOG_WARN,
		       conn->tracks
			       ? "%s: invalidation stream lost: %s; all tracked keys are "
				 "invalidated every second until it is back"
			       : "%s: pub/sub stream lost: %s; messages are lost until it is back",
		       conn->text, why);
	sub->changed_all_due |= conn->tracking;
	conn->upstream.state = HS_UPSTREAM_DOWN;
	hs_subscriber_conn_reset(sub, conn);
	hs_subscriber_resubscribe(sub, conn);
	sub->conns_stale = true;
}

/* Closes the connections that have a close_reason. */
static void close_conns(struct hs_subscriber *sub)
{
	hs_list_each(struct hs_subscriber_conn, conn, &sub->conns, link) {
		const char *reason = conn->upstream.close_reason;

		if (!reason)
			continue;
		sub->calls->close(sub->context, &conn->upstream);
		lose_conn(sub, conn, reason);
	}
}

/* ---- the pub/sub node ---- */

/* The node whose connection for topics has failed least often; of equal ones the first, from `preferred` on. */
static uint16_t healthiest(const struct hs_subscriber *sub, uint16_t preferred)
{
	uint32_t best_failures = UINT32_MAX;
	uint16_t best = preferred;

	for (uint32_t i = 0; i < sub->routes->nodes_count; i++) {
		uint16_t node = (uint16_t)((preferred + i) % sub->routes->nodes_count);
		const struct hs_subscriber_conn *conn = find_conn(sub, node, false);
		uint32_t failures = conn ? conn->upstream.backoff.failures : 0;

		if (failures < best_failures) {
			best_failures = failures;
			best = node;
		}
	}
	return best;
}

static struct hs_subscriber_conn *any_up(const struct hs_subscriber *sub)
{
	hs_list_each(struct hs_subscriber_conn, conn, &sub->conns, link) {
		if (!conn->tracks && conn->listed && hs_subscriber_is_up(conn))
			return conn;
	}
	return NULL;
}

static bool pubsub_conn_is_needed(const struct hs_subscriber *sub)
{
	return sub->kinds[HS_SUBSCRIBER_CHANNEL] + sub->kinds[HS_SUBSCRIBER_PATTERN] > 0 ||
	       (!sub->options.cluster && sub->kinds[HS_SUBSCRIBER_SHARD] > 0);
}

/* The node of partition 0, or node 0 if the partition has none. */
static uint16_t preferred_node(const struct hs_subscriber *sub)
{
	uint16_t node = sub->routes->node_of_partition[0];

	return node == HS_NODE_NONE ? 0 : node;
}

/* The connection for topics to the preferred node. NULL: no topic needs a pub/sub node, or the routes have no
 * nodes. */
static struct hs_subscriber_conn *preferred_pubsub_conn(struct hs_subscriber *sub)
{
	if (!pubsub_conn_is_needed(sub) || !sub->routes || sub->routes->nodes_count == 0)
		return NULL;
	return hs_subscriber_conn_at(sub, preferred_node(sub));
}

/* True while the preferred connection is being opened for the first time: topics wait for it. If they were
 * subscribed at another node and moved soon after, a message could be missed or reported twice (subscriber.h). */
static bool is_worth_waiting_for(const struct hs_subscriber *sub,
				 const struct hs_subscriber_conn *preferred)
{
	return preferred && (!sub->pubsub_conn || sub->pubsub_conn == preferred) &&
	       preferred->upstream.backoff.failures == 0;
}

/* Chooses the connection to the pub/sub node. Prefers connections that are up, so that topics are without a
 * subscription only for a short time. */
static void choose_pubsub_conn(struct hs_subscriber *sub, struct hs_subscriber_conn *preferred)
{
	struct hs_subscriber_conn *pubsub_conn = sub->pubsub_conn, *before = sub->pubsub_conn;

	if (!pubsub_conn_is_needed(sub)) {
		pubsub_conn = NULL;
	} else if (hs_subscriber_is_up(preferred) || is_worth_waiting_for(sub, preferred)) {
		pubsub_conn = preferred;
	} else if (!hs_subscriber_is_up(pubsub_conn) || !pubsub_conn->listed) {
		struct hs_subscriber_conn *other = any_up(sub);

		if (other)
			pubsub_conn = other;
		else if (!hs_subscriber_is_up(pubsub_conn) && preferred)
			pubsub_conn =
				hs_subscriber_conn_at(sub, healthiest(sub, preferred_node(sub)));
	}
	sub->pubsub_conn = pubsub_conn;
	if (pubsub_conn != before)
		hs_subscriber_assign_all(sub, true);
}

/* ---- opening and closing connections ---- */

static void open_conn(struct hs_subscriber *sub, struct hs_subscriber_conn *conn)
{
	if (!hs_upstream_may_open(&conn->upstream, sub->now_us))
		return;
	hs_upstream_opening(&conn->upstream, sub->now_us);
	sub->calls->open(sub->context, &conn->upstream, &conn->at);
}

/* An unused connection stays for HS_SUBSCRIBER_IDLE_US: a working one for the next SUBSCRIBE; a failed one for its
 * count of failures, which choose_pubsub_conn compares. */
static bool stays_open(const struct hs_subscriber *sub, const struct hs_subscriber_conn *conn)
{
	return !conn->tracks && conn->listed && conn->upstream.state != HS_UPSTREAM_OPENING &&
	       sub->now_us - conn->needed_us < HS_SUBSCRIBER_IDLE_US;
}

static void update_conns(struct hs_subscriber *sub)
{
	struct hs_subscriber_conn *preferred = preferred_pubsub_conn(sub);
	uint16_t nodes = sub->routes ? sub->routes->nodes_count : 0;

	for (uint16_t i = 0; hs_subscriber_tracking(sub) && i < nodes; i++)
		get_conn(sub, i, true);
	choose_pubsub_conn(sub, preferred);
	hs_list_each_safe(struct hs_subscriber_conn, conn, &sub->conns, link) {
		bool needed = conn->tracks ? conn->listed && hs_subscriber_tracking(sub)
					   : hs_subscriber_conn_is_used(conn) ||
						     conn == sub->pubsub_conn || conn == preferred;

		if (needed) {
			conn->needed_us = sub->now_us;
			open_conn(sub, conn);
		} else if (!stays_open(sub, conn)) {
			destroy_conn(sub, conn);
		}
	}
}

/* Logs once that a connection that was lost has its subscriptions or its tracking again. */
static void log_restored(struct hs_subscriber *sub, struct hs_subscriber_conn *conn)
{
	bool all = conn->tracks
			   ? conn->tracking
			   : hs_list_empty(&conn->subscriptions[HS_SUBSCRIPTION_WANTED]) &&
				     hs_list_empty(&conn->subscriptions[HS_SUBSCRIPTION_REQUESTED]);

	if (!conn->restoring || !all)
		return;
	conn->restoring = false;
	hs_log(sub->options.log, HS_LOG_INFO, "%s: %s stream resubscribed", conn->text,
	       conn->tracks ? "invalidation" : "pub/sub");
}

/* Each entry point calls it at its end. */
static void finish_event(struct hs_subscriber *sub)
{
	struct hs_subscriber_conn *conn;

	while (sub->conns_stale) {
		sub->conns_stale = false;
		close_conns(sub);
		update_conns(sub);
	}
	hs_subscriber_check_tracking(sub);
	while ((conn = hs_list_first(&sub->dirty, struct hs_subscriber_conn, dirty)) != NULL) {
		hs_list_remove(&conn->dirty);
		sub->calls->send(sub->context, &conn->upstream);
	}
}

/* ---- routes ---- */

/* The routes list the node, so it has slots. */
static bool is_listed(const struct hs_routes *routes, const struct hs_route_node *node)
{
	for (uint16_t i = 0; i < routes->nodes_count; i++) {
		if (same_node(&routes->nodes[i], node))
			return true;
	}
	return false;
}

/* The end of the run of slots with the same node that begins at `slot`. Runs are mostly long. */
static uint32_t run_end(const struct hs_routes *routes, uint32_t slot)
{
	const uint16_t *nodes = routes->node_of_slot;
	uint32_t end = slot + 1;

	while (end + RUN_STEP <= HS_SLOTS &&
	       memcmp(&nodes[end - 1], &nodes[end], RUN_STEP * sizeof *nodes) == 0)
		end += RUN_STEP;
	while (end < HS_SLOTS && nodes[end] == nodes[slot])
		end++;
	return end;
}

static bool same_owners(const struct hs_routes *a, const struct hs_routes *b)
{
	uint32_t a_end = 0, b_end = 0;

	for (uint32_t slot = 0; slot < HS_SLOTS; slot = a_end < b_end ? a_end : b_end) {
		uint16_t one = a->node_of_slot[slot], two = b->node_of_slot[slot];

		if ((one == HS_NODE_NONE) != (two == HS_NODE_NONE) ||
		    (one != HS_NODE_NONE && !same_node(&a->nodes[one], &b->nodes[two])))
			return false;
		if (a_end <= slot)
			a_end = run_end(a, slot);
		if (b_end <= slot)
			b_end = run_end(b, slot);
	}
	return true;
}

/* Takes the lists of nodes from sub->routes. */
static void read_routes(struct hs_subscriber *sub)
{
	const struct hs_routes *routes = sub->routes;

	hs_mem_free(&sub->at_node);
	sub->at_node = hs_mem_zalloc(routes->nodes_count * sizeof(struct hs_subscriber_conn *));
	hs_list_each(struct hs_subscriber_conn, conn, &sub->conns, link)
		conn->listed = is_listed(routes, &conn->at);
}

void hs_subscriber_route(struct hs_subscriber *sub, uint64_t now_us, const struct hs_routes *routes)
{
	const struct hs_routes *before = sub->routes;

	sub->now_us = now_us;
	hs_routes_ref(routes, 1);
	sub->routes = routes;
	sub->changed_all_due |= !before || !same_owners(before, routes);
	if (before)
		hs_routes_unref(&before);
	read_routes(sub);
	choose_pubsub_conn(sub, preferred_pubsub_conn(sub));
	hs_subscriber_assign_all(sub, false);
	sub->conns_stale = true;
	finish_event(sub);
}

/* ---- events ---- */

struct hs_subscriber *hs_subscriber_create(const struct hs_subscriber_options *options,
					   const struct hs_subscriber_calls *calls, void *context)
{
	struct hs_subscriber *sub = hs_mem_zalloc(sizeof *sub);

	sub->options = *options;
	sub->calls = calls;
	sub->context = context;
	sub->changed.seed = options->seed;
	hs_prng_init(&sub->prng, options->seed);
	hs_hash_table_init(&sub->topics);
	hs_list_init(&sub->conns);
	hs_list_init(&sub->dirty);
	hs_list_init(&sub->waits);
	hs_list_init(&sub->missing);
	hs_list_init(&sub->track_waits);
	return sub;
}

void hs_subscriber_destroy(struct hs_subscriber **pointer)
{
	struct hs_subscriber *sub = *pointer;
	struct hs_subscriber_wait *wait;

	while ((wait = first_wait(sub)) != NULL)
		hs_subscriber_fail(sub, hs_subscriber_wait_end(sub, wait, false),
				   "ERR shutting down");
	hs_subscriber_topics_deinit(sub);
	hs_list_each_safe(struct hs_subscriber_conn, conn, &sub->conns, link)
		destroy_conn(sub, conn);
	if (sub->routes)
		hs_routes_unref(&sub->routes);
	hs_mem_free(&sub->at_node);
	hs_changed_deinit(&sub->changed);
	hs_mem_free(pointer);
}

void hs_subscriber_submit(struct hs_subscriber *sub, uint64_t now_us, struct hs_op *op)
{
	sub->now_us = now_us;
	switch (op->kind) {
	case HS_OP_SUBSCRIBE:
		hs_subscriber_subscribe(sub, op);
		break;
	case HS_OP_UNSUBSCRIBE:
		hs_subscriber_unsubscribe(sub, op);
		break;
	case HS_OP_TRACK:
		hs_subscriber_track(sub, op);
		break;
	case HS_OP_UNTRACK:
		hs_subscriber_untrack(sub, op);
		break;
	default:
		hs_check(op->kind == HS_OP_SUBSCRIBE); /* hs_subscriber_submit gets no other kind */
	}
	finish_event(sub);
}

/* Sends a liveness check when one is due; closes a connection that does not answer a check. */
static void check_liveness(struct hs_subscriber *sub, struct hs_subscriber_conn *conn)
{
	/* A tracking connection needs checks even if it receives invalidations: they may come from keys that
	 * expire at a master that was replaced. */
	uint64_t due_us = conn->tracks ? conn->checked_us : conn->upstream.received_us;

	if (conn->checking && hs_upstream_is_silent(&conn->upstream, conn->checked_us, sub->now_us,
						    HS_SUBSCRIBER_SILENT_US_MAX))
		hs_upstream_close(&conn->upstream, "it did not answer the liveness check");
	else if (!conn->checking && sub->now_us - due_us >= HS_SUBSCRIBER_PING_US)
		hs_subscriber_conn_check(sub, conn);
}

void hs_subscriber_tick(struct hs_subscriber *sub, uint64_t now_us)
{
	struct hs_subscriber_wait *wait;

	sub->now_us = now_us;
	hs_list_each(struct hs_subscriber_conn, conn, &sub->conns, link) {
		if (hs_subscriber_is_up(conn))
			check_liveness(sub, conn);
	}
	while ((wait = first_wait(sub)) != NULL && now_us >= wait->until_us) {
		if (wait->topic)
			hs_subscriber_subscribe_timeout(sub, wait);
		else
			hs_subscriber_track_timeout(sub, wait);
	}
	hs_subscriber_topics_tick(sub);
	sub->conns_stale = true;
	finish_event(sub);
}

static struct hs_subscriber_conn *conn_of(struct hs_upstream *upstream)
{
	return hs_list_entry(upstream, struct hs_subscriber_conn, upstream);
}

void hs_subscriber_up(struct hs_subscriber *sub, uint64_t now_us, struct hs_upstream *upstream)
{
	struct hs_subscriber_conn *conn = conn_of(upstream);

	sub->now_us = now_us;
	hs_check(upstream->state == HS_UPSTREAM_OPENING);
	upstream->state = HS_UPSTREAM_UP;
	upstream->received_us = now_us;
	conn->why[0] = '\0';
	conn->restoring = upstream->backoff.failures > 0;
	if (conn->tracks)
		hs_subscriber_conn_track(sub, conn);
	else
		hs_subscriber_conn_subscribe(sub, conn);
	sub->conns_stale = true;
	finish_event(sub);
}

void hs_subscriber_down(struct hs_subscriber *sub, uint64_t now_us, struct hs_upstream *upstream,
			const char *why)
{
	sub->now_us = now_us;
	lose_conn(sub, conn_of(upstream), why);
	finish_event(sub);
}

void hs_subscriber_receive(struct hs_subscriber *sub, uint64_t now_us, struct hs_upstream *upstream,
			   const char *data, size_t len)
{
	struct hs_subscriber_conn *conn = conn_of(upstream);

	sub->now_us = now_us;
	hs_subscriber_conn_receive(sub, conn, data, len);
	log_restored(sub, conn);
	sub->conns_stale |= upstream->close_reason != NULL;
	finish_event(sub);
}
