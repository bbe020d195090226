/* Topics: which workers listen to what, the LISTENs that wait, and where a topic is subscribed. */
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
	hs_list_init(&topic->key_event_places);
	topic->key_events = sub->options.cluster &&
			    ((kind == HS_SUBSCRIBER_CHANNEL && hs_event_is_key_event(name)) ||
			     (kind == HS_SUBSCRIBER_PATTERN && hs_event_may_be_key_event(name)));
	for (int i = 0; i < 2; i++) {
		topic->places[i].topic = topic;
		hs_list_init(&topic->places[i].link);
	}
	hs_hash_table_add(&sub->topics, &topic->node, hs_subscriber_topic_hash(sub, kind, name));
	sub->names_bytes += name.len;
	sub->kinds[kind]++;
	return topic;
}

/* ---- places ---- */

static struct hs_subscriber_place *now_of(struct hs_subscriber_topic *topic)
{
	return &topic->places[topic->now];
}

static struct hs_subscriber_place *next_of(struct hs_subscriber_topic *topic)
{
	return &topic->places[!topic->now];
}

static bool is_confirmed(const struct hs_subscriber_topic *topic)
{
	const struct hs_subscriber_place *place = &topic->places[topic->now];

	return place->conn && place->state == HS_SUBSCRIBER_CONFIRMED;
}

/* Every message published from now on is heard. */
static bool is_complete(const struct hs_subscriber_topic *topic)
{
	return is_confirmed(topic) && hs_subscriber_key_events_confirmed(topic);
}

static void set_state(struct hs_subscriber_place *place, enum hs_subscriber_place_state state)
{
	hs_list_remove(&place->link);
	hs_list_append(&place->conn->places[state], &place->link);
	place->state = state;
}

void hs_subscriber_join(struct hs_subscriber *sub, struct hs_subscriber_place *place,
			struct hs_subscriber_conn *conn)
{
	place->conn = conn;
	set_state(place, HS_SUBSCRIBER_WANTED);
	if (conn->upstream.state == HS_UPSTREAM_DOWN)
		sub->unsettled = true;
	hs_subscriber_conn_subscribe(sub, conn);
}

bool hs_subscriber_leave(struct hs_subscriber *sub, struct hs_subscriber_place *place,
			 struct hs_op *op)
{
	struct hs_subscriber_conn *conn = place->conn;
	bool requested = conn && (place->state == HS_SUBSCRIBER_ASKED ||
				  place->state == HS_SUBSCRIBER_CONFIRMED);

	if (!conn)
		return false;
	if (place->state == HS_SUBSCRIBER_ASKED)
		place->request->place = NULL;
	if (requested)
		hs_subscriber_conn_unsubscribe(sub, conn, place->topic, op);
	hs_list_remove(&place->link);
	place->conn = NULL;
	if (!hs_subscriber_has_places(conn))
		sub->unsettled = true;
	return requested;
}

/* Where a topic belongs now; NULL: at no server. */
static struct hs_subscriber_conn *target_of(struct hs_subscriber *sub,
					    const struct hs_subscriber_topic *topic)
{
	uint16_t node;

	if (hs_subscriber_at_home(sub, topic->kind))
		return sub->home;
	node = sub->routes ? sub->routes->node_of_slot[topic->slot] : HS_NODE_NONE;
	return node == HS_NODE_NONE ? NULL : hs_subscriber_conn_at(sub, node);
}

static void settle_places(struct hs_subscriber *sub, struct hs_subscriber_topic *topic)
{
	struct hs_subscriber_conn *target = target_of(sub, topic);
	struct hs_subscriber_place *now = now_of(topic), *next = next_of(topic);
	struct hs_subscriber_place *moves = is_confirmed(topic) ? next : now;

	if (moves == now || !target || target == now->conn)
		hs_subscriber_leave(sub, next, NULL);
	if (moves == next && target == now->conn)
		return;
	if (moves->conn == target)
		return;
	if (moves == now || target)
		hs_subscriber_leave(sub, moves, NULL);
	if (target) {
		hs_subscriber_drop_key_events_at(sub, topic, target); /* UNSUBSCRIBE goes first */
		hs_subscriber_join(sub, moves, target);
	}
}

static void settle(struct hs_subscriber *sub, struct hs_subscriber_topic *topic)
{
	settle_places(sub, topic);
	hs_subscriber_settle_key_events(sub, topic);
}

void hs_subscriber_settle_all(struct hs_subscriber *sub, bool at_home_alone)
{
	hs_hash_each_of_all(struct hs_subscriber_topic, topic, &sub->topics, node) {
		if (!at_home_alone || hs_subscriber_at_home(sub, topic->kind))
			settle(sub, topic);
	}
}

/* Unsubscribes and frees a topic that is not in the table any more. */
static void free_topic(struct hs_subscriber *sub, struct hs_subscriber_topic *topic,
		       struct hs_op *op)
{
	hs_subscriber_drop_key_events(sub, topic);
	hs_subscriber_leave(sub, next_of(topic), NULL);
	if (!hs_subscriber_leave(sub, now_of(topic), op) && op)
		hs_subscriber_finish(sub, op);
	hs_list_remove(&topic->missing);
	sub->names_bytes -= topic->len;
	sub->kinds[topic->kind]--;
	hs_mem_release(topic);
}

/* `op` is done when the server has unsubscribed it. */
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

/* ---- LISTEN and UNLISTEN ---- */

static enum hs_subscriber_kind kind_of(struct hs_bytes verb)
{
	return verb.data[0] == 'P'   ? HS_SUBSCRIBER_PATTERN
	       : verb.data[1] == 'S' ? HS_SUBSCRIBER_SHARD
				     : HS_SUBSCRIBER_CHANNEL;
}

void hs_subscriber_listen(struct hs_subscriber *sub, struct hs_op *op)
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
		sub->unsettled |= !sub->home;
	}
	hs_subscriber_wait_begin(sub, op, topic, &topic->waits);
	settle(sub, topic);
}

void hs_subscriber_unlisten(struct hs_subscriber *sub, struct hs_op *op)
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

/* ---- the server's answers ---- */

/* The subscription that a topic's messages came from has ended. */
static void lose(struct hs_subscriber *sub, struct hs_subscriber_topic *topic)
{
	if (hs_subscriber_any(&topic->workers) && hs_list_empty(&topic->missing) &&
	    !hs_subscriber_at_home(sub, topic->kind)) {
		topic->missing_us = sub->now_us;
		hs_list_append(&sub->missing, &topic->missing);
	}
	if (next_of(topic)->conn) {
		hs_subscriber_leave(sub, now_of(topic), NULL);
		topic->now = !topic->now;
	}
}

void hs_subscriber_confirmed(struct hs_subscriber *sub, struct hs_subscriber_place *place)
{
	struct hs_subscriber_topic *topic = place->topic;

	set_state(place, HS_SUBSCRIBER_CONFIRMED);
	if (!place->for_key_events) {
		if (place != now_of(topic)) {
			hs_subscriber_leave(sub, now_of(topic), NULL);
			topic->now = !topic->now;
		}
		hs_list_remove(&topic->missing);
		hs_subscriber_settle_key_events(sub, topic); /* at the node that it left */
	}
	finish_waits(sub, topic);
}

/* Whether a refusal says that the answer may be different soon, or elsewhere. */
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

void hs_subscriber_refused(struct hs_subscriber *sub, struct hs_subscriber_place *place,
			   struct hs_bytes error)
{
	struct hs_subscriber_topic *topic = place->topic;
	struct hs_subscriber_wait *wait;

	set_state(place, HS_SUBSCRIBER_REFUSED);
	if (is_passing(error)) {
		snprintf(place->conn->why, sizeof place->conn->why, "%.*s", (int)error.len,
			 error.data);
		sub->calls->surprise(sub->context);
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

	if (!topic || now_of(topic)->conn != conn || !is_confirmed(topic))
		return;
	set_state(now_of(topic), HS_SUBSCRIBER_REFUSED);
	lose(sub, topic);
	sub->calls->surprise(sub->context);
}

void hs_subscriber_want_again(struct hs_subscriber *sub, struct hs_subscriber_conn *conn)
{
	for (int state = HS_SUBSCRIBER_ASKED; state < HS_SUBSCRIBER_PLACE_STATES; state++) {
		hs_list_each_safe(struct hs_subscriber_place, place, &conn->places[state], link) {
			set_state(place, HS_SUBSCRIBER_WANTED);
			if (state == HS_SUBSCRIBER_CONFIRMED && !place->for_key_events)
				lose(sub, place->topic);
		}
	}
}

/* ---- time ---- */

static const char *why_not(const struct hs_subscriber *sub, const struct hs_subscriber_topic *topic)
{
	const struct hs_subscriber_place *place = &topic->places[topic->now];

	if (!sub->routes)
		return "none of the engine's servers has answered yet";
	if (!place->conn)
		return "nobody serves its slot";
	if (place->state != HS_SUBSCRIBER_ASKED && place->conn->why[0])
		return place->conn->why;
	return "the server does not answer";
}

void hs_subscriber_listen_late(struct hs_subscriber *sub, struct hs_subscriber_wait *wait)
{
	struct hs_subscriber_topic *topic = wait->topic;

	hs_subscriber_fail(sub, hs_subscriber_wait_end(sub, wait, false),
			   "CLUSTERDOWN cannot listen to it: %s", why_not(sub, topic));
	destroy_if_unused(sub, topic);
}

/* No server serves a shard channel: the workers that listen to it are told. */
static void give_up(struct hs_subscriber *sub, struct hs_subscriber_topic *topic)
{
	struct hs_event event = {
		.kind = HS_EVENT_UNSUBSCRIBED,
		.was = HS_EVENT_SHARD_MESSAGE,
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
		       "%u shard channels had no server for %d s: their subscribers are told",
		       count, HS_SUBSCRIBER_FOLLOW_US_MAX / 1000000);
}

/* LISTEN for key events does not wait for a master that cannot be reached. */
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
		struct hs_link *refused = &conn->places[HS_SUBSCRIBER_REFUSED];

		while (!hs_list_empty(refused))
			set_state(hs_list_entry(refused->next, struct hs_subscriber_place, link),
				  HS_SUBSCRIBER_WANTED);
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
