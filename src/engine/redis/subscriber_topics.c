/* Topics: the workers that subscribed a topic, the SUBSCRIBE ops that wait for it, and the nodes where the topic
 * is subscribed. */
#include "engine/redis/subscriber_internal.h"

#include "base/hash.h"
#include "base/mem.h"
#include "base/slot.h"

#include <stdio.h>

/* ---- the table ---- */

uint64_t hs_subscriber_topic_hash(const struct hs_subscriber *sub, enum hs_subscriber_kind kind,
				  struct hs_bytes name)
{
	return hs_hash(name, sub->options.seed + kind);
}

struct hs_subscriber_topic *hs_subscriber_topic_find(const struct hs_subscriber *sub,
						     enum hs_subscriber_kind kind,
						     struct hs_bytes name)
{
	uint64_t hash = hs_subscriber_topic_hash(sub, kind, name);

	hs_hash_each(struct hs_subscriber_topic, topic, &sub->topics, hash, node) {
		if (topic->kind == kind && hs_bytes_equal(hs_subscriber_topic_name(topic), name))
			return topic;
	}
	return NULL;
}

static struct hs_subscriber_topic *create_topic(struct hs_subscriber *sub,
						enum hs_subscriber_kind kind, struct hs_bytes name)
{
	struct hs_subscriber_topic *topic = hs_mem_zalloc(sizeof *topic + name.len);

	topic->kind = kind;
	topic->slot = hs_slot_of(name);
	topic->len = name.len;
	if (name.len > 0)
		memcpy(topic->name, name.data, name.len);
	hs_list_init(&topic->waits);
	hs_list_init(&topic->missing);
	hs_list_init(&topic->key_event_subscriptions);
	topic->key_events = sub->options.cluster &&
			    ((kind == HS_SUBSCRIBER_CHANNEL && hs_event_is_key_event(name)) ||
			     (kind == HS_SUBSCRIBER_PATTERN && hs_event_may_be_key_event(name)));
	for (int i = 0; i < 2; i++) {
		topic->subscriptions[i].topic = topic;
		hs_list_init(&topic->subscriptions[i].link);
	}
	hs_hash_table_add(&sub->topics, &topic->node, hs_subscriber_topic_hash(sub, kind, name));
	sub->names_bytes += name.len;
	sub->kinds[kind]++;
	return topic;
}

/* ---- subscriptions ---- */

static struct hs_node_subscription *active_of(struct hs_subscriber_topic *topic)
{
	return &topic->subscriptions[topic->active];
}

static struct hs_node_subscription *replacement_of(struct hs_subscriber_topic *topic)
{
	return &topic->subscriptions[!topic->active];
}

static bool is_confirmed(const struct hs_subscriber_topic *topic)
{
	const struct hs_node_subscription *subscription = &topic->subscriptions[topic->active];

	return subscription->conn && subscription->state == HS_SUBSCRIPTION_CONFIRMED;
}

/* The subscriptions receive every message that is published from this moment on. */
static bool is_complete(const struct hs_subscriber_topic *topic)
{
	return is_confirmed(topic) && hs_subscriber_key_events_confirmed(topic);
}

static void set_state(struct hs_node_subscription *subscription,
		      enum hs_node_subscription_state state)
{
	hs_list_remove(&subscription->link);
	hs_list_append(&subscription->conn->subscriptions[state], &subscription->link);
	subscription->state = state;
}

void hs_node_subscription_begin(struct hs_subscriber *sub,
				struct hs_node_subscription *subscription,
				struct hs_subscriber_conn *conn)
{
	subscription->conn = conn;
	set_state(subscription, HS_SUBSCRIPTION_WANTED);
	if (conn->upstream.state == HS_UPSTREAM_DOWN)
		sub->conns_stale = true;
	hs_subscriber_conn_subscribe(sub, conn);
}

bool hs_node_subscription_end(struct hs_subscriber *sub, struct hs_node_subscription *subscription,
			      struct hs_op *op)
{
	struct hs_subscriber_conn *conn = subscription->conn;
	bool requested = conn && (subscription->state == HS_SUBSCRIPTION_REQUESTED ||
				  subscription->state == HS_SUBSCRIPTION_CONFIRMED);

	if (!conn)
		return false;
	if (subscription->state == HS_SUBSCRIPTION_REQUESTED)
		subscription->request->subscription = NULL;
	if (requested)
		hs_subscriber_conn_unsubscribe(sub, conn, subscription->topic, op);
	hs_list_remove(&subscription->link);
	subscription->conn = NULL;
	if (!hs_subscriber_conn_is_used(conn))
		sub->conns_stale = true;
	return requested;
}

/* The connection to the node where the topic belongs; NULL: no server has the topic's slot. */
static struct hs_subscriber_conn *target_of(struct hs_subscriber *sub,
					    const struct hs_subscriber_topic *topic)
{
	uint16_t node;

	if (hs_subscriber_at_pubsub_node(sub, topic->kind))
		return sub->pubsub_conn;
	node = sub->routes ? sub->routes->node_of_slot[topic->slot] : HS_NODE_NONE;
	return node == HS_NODE_NONE ? NULL : hs_subscriber_conn_at(sub, node);
}

static void assign_topic(struct hs_subscriber *sub, struct hs_subscriber_topic *topic)
{
	struct hs_subscriber_conn *target = target_of(sub, topic);
	struct hs_node_subscription *active = active_of(topic), *next = replacement_of(topic);
	struct hs_node_subscription *moves = is_confirmed(topic) ? next : active;

	if (moves == active || !target || target == active->conn)
		hs_node_subscription_end(sub, next, NULL);
	if (moves == next && target == active->conn)
		return;
	if (moves->conn == target)
		return;
	if (moves == active || target)
		hs_node_subscription_end(sub, moves, NULL);
	if (target) {
		/* The UNSUBSCRIBE for key events at `target` goes in front of the new SUBSCRIBE. */
		hs_subscriber_drop_key_events_at(sub, topic, target);
		hs_node_subscription_begin(sub, moves, target);
	}
}

static void assign(struct hs_subscriber *sub, struct hs_subscriber_topic *topic)
{
	assign_topic(sub, topic);
	hs_subscriber_assign_key_events(sub, topic);
}

void hs_subscriber_assign_all(struct hs_subscriber *sub, bool at_pubsub_node_alone)
{
	hs_hash_each_of_all(struct hs_subscriber_topic, topic, &sub->topics, node) {
		if (!at_pubsub_node_alone || hs_subscriber_at_pubsub_node(sub, topic->kind))
			assign(sub, topic);
	}
}

/* Unsubscribes and frees a topic that was removed from the table. `op` completes when the server has unsubscribed
 * the topic. */
static void free_topic(struct hs_subscriber *sub, struct hs_subscriber_topic *topic,
		       struct hs_op *op)
{
	hs_subscriber_drop_key_events(sub, topic);
	hs_node_subscription_end(sub, replacement_of(topic), NULL);
	if (!hs_node_subscription_end(sub, active_of(topic), op) && op)
		hs_subscriber_finish(sub, op);
	hs_list_remove(&topic->missing);
	sub->names_bytes -= topic->len;
	sub->kinds[topic->kind]--;
	hs_mem_release(topic);
}

/* Removes a topic from the table and frees it. `op` as in free_topic. */
static void destroy_topic(struct hs_subscriber *sub, struct hs_subscriber_topic *topic,
			  struct hs_op *op)
{
	hs_hash_table_remove(&sub->topics, &topic->node);
	free_topic(sub, topic, op);
}

static void destroy_if_unused(struct hs_subscriber *sub, struct hs_subscriber_topic *topic)
{
	if (hs_list_empty(&topic->waits) && !hs_subscriber_any(&topic->workers))
		destroy_topic(sub, topic, NULL);
}

/* ---- SUBSCRIBE and UNSUBSCRIBE ---- */

static enum hs_subscriber_kind kind_of(struct hs_bytes verb)
{
	return verb.data[0] == 'P'   ? HS_SUBSCRIBER_PATTERN
	       : verb.data[1] == 'S' ? HS_SUBSCRIBER_SHARD
				     : HS_SUBSCRIBER_CHANNEL;
}

void hs_subscriber_subscribe(struct hs_subscriber *sub, struct hs_op *op)
{
	enum hs_subscriber_kind kind = kind_of(op->argv[0]);
	struct hs_bytes name = op->argv[1];
	struct hs_subscriber_topic *topic = hs_subscriber_topic_find(sub, kind, name);

	if (!topic && sub->topics.count >= HS_CHANNELS_MAX) {
		hs_subscriber_fail(sub, op,
				   "ERR too many subscriptions: at most %d channels and "
				   "patterns in all",
				   HS_CHANNELS_MAX);
		return;
	}
	if (!topic && sub->names_bytes + name.len > HS_CHANNEL_NAMES_BYTES_MAX) {
		hs_subscriber_fail(sub, op,
				   "ERR too many subscriptions: names of at most %zu MiB in "
				   "all",
				   HS_CHANNEL_NAMES_BYTES_MAX / HS_MIB);
		return;
	}
	if (topic && is_complete(topic)) {
		hs_subscriber_set(&topic->workers, op->worker, true);
		hs_subscriber_finish(sub, op);
		return;
	}
	if (!topic) {
		topic = create_topic(sub, kind, name);
		sub->conns_stale |= !sub->pubsub_conn;
	}
	hs_subscriber_wait_begin(sub, op, topic, &topic->waits);
	assign(sub, topic);
}

void hs_subscriber_unsubscribe(struct hs_subscriber *sub, struct hs_op *op)
{
	struct hs_subscriber_topic *topic =
		hs_subscriber_topic_find(sub, kind_of(op->argv[0]), op->argv[1]);

	if (topic)
		hs_subscriber_set(&topic->workers, op->worker, false);
	if (topic && hs_list_empty(&topic->waits) && !hs_subscriber_any(&topic->workers))
		destroy_topic(sub, topic, op);
	else
		hs_subscriber_finish(sub, op);
}

static void finish_waits(struct hs_subscriber *sub, struct hs_subscriber_topic *topic)
{
	struct hs_subscriber_wait *wait;

	while (is_complete(topic) && (wait = hs_subscriber_first_wait(&topic->waits)) != NULL)
		hs_subscriber_finish(sub, hs_subscriber_wait_end(sub, wait, true));
}

/* ---- answers of servers ---- */

/* The active subscription of the topic has ended. If the topic is moving, its replacement becomes the active
 * one. */
static void lose(struct hs_subscriber *sub, struct hs_subscriber_topic *topic)
{
	if (hs_subscriber_any(&topic->workers) && hs_list_empty(&topic->missing) &&
	    !hs_subscriber_at_pubsub_node(sub, topic->kind)) {
		topic->missing_us = sub->now_us;
		hs_list_append(&sub->missing, &topic->missing);
	}
	if (replacement_of(topic)->conn) {
		hs_node_subscription_end(sub, active_of(topic), NULL);
		topic->active = !topic->active;
	}
}

void hs_subscriber_confirmed(struct hs_subscriber *sub, struct hs_node_subscription *subscription)
{
	struct hs_subscriber_topic *topic = subscription->topic;

	set_state(subscription, HS_SUBSCRIPTION_CONFIRMED);
	if (!subscription->for_key_events) {
		if (subscription != active_of(topic)) {
			hs_node_subscription_end(sub, active_of(topic), NULL);
			topic->active = !topic->active;
		}
		hs_list_remove(&topic->missing);
		hs_subscriber_assign_key_events(sub, topic); /* at the node that the topic left */
	}
	finish_waits(sub, topic);
}

/* The error may be over soon, or another node may not answer with it. */
static bool is_passing(struct hs_bytes error)
{
	static const char *const codes[] = {"MOVED ",	"ASK ",	 "CLUSTERDOWN ", "TRYAGAIN ",
					    "LOADING ", "BUSY ", "MASTERDOWN "};

	for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
		if (hs_bytes_begins(error, hs_bytes_of(codes[i])))
			return true;
	}
	return false;
}

void hs_subscriber_refused(struct hs_subscriber *sub, struct hs_node_subscription *subscription,
			   struct hs_bytes error)
{
	struct hs_subscriber_topic *topic = subscription->topic;
	struct hs_subscriber_wait *wait;

	set_state(subscription, HS_SUBSCRIPTION_REFUSED);
	if (is_passing(error)) {
		snprintf(subscription->conn->why, sizeof subscription->conn->why, "%.*s",
			 (int)error.len, error.data);
		sub->calls->topology_suspect(sub->context);
		return;
	}
	while ((wait = hs_subscriber_first_wait(&topic->waits)) != NULL)
		hs_subscriber_fail(sub, hs_subscriber_wait_end(sub, wait, false), "%.*s",
				   (int)error.len, error.data);
	destroy_if_unused(sub, topic);
}

void hs_subscriber_dropped(struct hs_subscriber *sub, struct hs_subscriber_conn *conn,
			   enum hs_subscriber_kind kind, struct hs_bytes name)
{
	struct hs_subscriber_topic *topic = hs_subscriber_topic_find(sub, kind, name);

	if (!topic || active_of(topic)->conn != conn || !is_confirmed(topic))
		return;
	set_state(active_of(topic), HS_SUBSCRIPTION_REFUSED);
	lose(sub, topic);
	sub->calls->topology_suspect(sub->context);
}

void hs_subscriber_resubscribe(struct hs_subscriber *sub, struct hs_subscriber_conn *conn)
{
	for (int state = HS_SUBSCRIPTION_REQUESTED; state < HS_SUBSCRIPTION_STATES; state++) {
		hs_list_each_safe(struct hs_node_subscription, subscription,
				  &conn->subscriptions[state], link) {
			set_state(subscription, HS_SUBSCRIPTION_WANTED);
			if (state == HS_SUBSCRIPTION_CONFIRMED && !subscription->for_key_events)
				lose(sub, subscription->topic);
		}
	}
}

/* ---- time ---- */

static const char *why_not(const struct hs_subscriber *sub, const struct hs_subscriber_topic *topic)
{
	const struct hs_node_subscription *subscription = &topic->subscriptions[topic->active];

	if (!sub->routes)
		return "none of the engine's servers has answered yet";
	if (!subscription->conn)
		return "no server has its slot";
	if (subscription->state != HS_SUBSCRIPTION_REQUESTED && subscription->conn->why[0])
		return subscription->conn->why;
	return "the server does not answer";
}

void hs_subscriber_subscribe_timeout(struct hs_subscriber *sub, struct hs_subscriber_wait *wait)
{
	struct hs_subscriber_topic *topic = wait->topic;

	hs_subscriber_fail(sub, hs_subscriber_wait_end(sub, wait, false),
			   "CLUSTERDOWN cannot subscribe: %s", why_not(sub, topic));
	destroy_if_unused(sub, topic);
}

/* A shard channel's slot has had no server for too long: the workers get HS_EVENT_UNSUBSCRIBED. */
static void give_up(struct hs_subscriber *sub, struct hs_subscriber_topic *topic)
{
	struct hs_event event = {
		.kind = HS_EVENT_UNSUBSCRIBED,
		.unsubscribed_kind = HS_EVENT_SHARD_MESSAGE,
		.channel = hs_subscriber_topic_name(topic),
	};

	sub->calls->event(sub->context, hs_event_create(&event));
	topic->workers = (struct hs_subscriber_workers){0};
	hs_list_remove(&topic->missing);
	destroy_if_unused(sub, topic);
}

static void give_up_missing(struct hs_subscriber *sub)
{
	uint32_t count = 0;

	while (!hs_list_empty(&sub->missing)) {
		struct hs_subscriber_topic *topic =
			hs_list_entry(sub->missing.next, struct hs_subscriber_topic, missing);

		if (sub->now_us - topic->missing_us < HS_SUBSCRIBER_FOLLOW_US_MAX)
			break;
		give_up(sub, topic);
		count++;
	}
	if (count > 0)
		hs_log(sub->options.log, HS_LOG_WARN,
		       "%u shard channels had no server for %d s: their clients are unsubscribed",
		       count, HS_SUBSCRIBER_FOLLOW_US_MAX / 1000000);
}

/* Completes SUBSCRIBE ops for key events that wait only for unreachable masters. */
static void finish_without_lost(struct hs_subscriber *sub)
{
	hs_list_each_safe(struct hs_subscriber_wait, wait, &sub->waits, of_all) {
		if (wait->topic && is_complete(wait->topic))
			hs_subscriber_finish(sub, hs_subscriber_wait_end(sub, wait, true));
	}
}

static void retry_refused(struct hs_subscriber *sub)
{
	hs_list_each(struct hs_subscriber_conn, conn, &sub->conns, link) {
		struct hs_link *refused = &conn->subscriptions[HS_SUBSCRIPTION_REFUSED];

		while (!hs_list_empty(refused))
			set_state(hs_list_entry(refused->next, struct hs_node_subscription, link),
				  HS_SUBSCRIPTION_WANTED);
		hs_subscriber_conn_subscribe(sub, conn);
	}
}

void hs_subscriber_topics_tick(struct hs_subscriber *sub)
{
	finish_without_lost(sub);
	give_up_missing(sub);
	if (sub->now_us - sub->retried_us < HS_SUBSCRIBER_RETRY_US)
		return;
	sub->retried_us = sub->now_us;
	retry_refused(sub);
}

void hs_subscriber_topics_deinit(struct hs_subscriber *sub)
{
	struct hs_hash_node *node;

	while ((node = hs_hash_table_take(&sub->topics)))
		free_topic(sub, hs_hash_entry(node, struct hs_subscriber_topic, node), NULL);
	hs_hash_table_deinit(&sub->topics);
}
