/* One connection of the subscriber: sends its requests, and takes replies and pushes.
 *
 * A request names one topic, so one reply answers the request: the server confirms with a push or refuses with an
 * error, in the order of requests. Other pushes are messages and invalidations.
 *
 * One case breaks this order. A server that has lost a slot sends `sunsubscribe` by itself, and then answers a
 * SUNSUBSCRIBE that was already in flight with MOVED. The subscriber takes the push for the answer. So the MOVED
 * that follows answers no request: its slot is not the slot of the oldest request. */
#include "engine/redis/subscriber_internal.h"

#include "base/mem.h"
#include "engine/redis/invalidation.h"
#include "upstream/redirect.h"
#include "wire/compose.h"
#include "wire/walk.h"

#define OUT_BYTES_MAX (4 * HS_MIB) /* unsent bytes; beyond them subscriptions wait */

static const struct {
	const char *subscribe, *unsubscribe; /* commands */
	struct hs_bytes subscribed, unsubscribed, message;
	enum hs_event_kind event;
} words[HS_SUBSCRIBER_KINDS] = {
	[HS_SUBSCRIBER_CHANNEL] = {"SUBSCRIBE",
				   "UNSUBSCRIBE",
				   {"subscribe", 9},
				   {"unsubscribe", 11},
				   {"message", 7},
				   HS_EVENT_MESSAGE},
	[HS_SUBSCRIBER_PATTERN] = {"PSUBSCRIBE",
				   "PUNSUBSCRIBE",
				   {"psubscribe", 10},
				   {"punsubscribe", 12},
				   {"pmessage", 8},
				   HS_EVENT_PATTERN_MESSAGE},
	[HS_SUBSCRIBER_SHARD] = {"SSUBSCRIBE",
				 "SUNSUBSCRIBE",
				 {"ssubscribe", 10},
				 {"sunsubscribe", 12},
				 {"smessage", 8},
				 HS_EVENT_SHARD_MESSAGE},
};

/* ---- pending requests ---- */

/* Adds a request that the caller has just composed into `out`. */
static struct hs_subscriber_request *add_request(struct hs_subscriber *sub,
						 struct hs_subscriber_conn *conn,
						 enum hs_subscriber_verb verb)
{
	struct hs_subscriber_request *request = hs_mem_zalloc(sizeof *request);

	request->verb = verb;
	hs_list_append(&conn->requests, &request->link);
	conn->requests_count++;
	if (hs_list_empty(&conn->dirty))
		hs_list_append(&sub->dirty, &conn->dirty);
	return request;
}

/* The oldest request in flight, or NULL. */
static struct hs_subscriber_request *first_request(struct hs_subscriber_conn *conn)
{
	return hs_list_first(&conn->requests, struct hs_subscriber_request, link);
}

static struct hs_subscriber_request take_request(struct hs_subscriber_conn *conn)
{
	struct hs_subscriber_request *request = first_request(conn), taken = *request;

	hs_list_remove(&request->link);
	conn->requests_count--;
	hs_mem_release(request);
	return taken;
}

void hs_subscriber_conn_reset(struct hs_subscriber *sub, struct hs_subscriber_conn *conn)
{
	while (conn->requests_count > 0) {
		struct hs_op *op = take_request(conn).op;

		/* the connection is closed, so the server delivers nothing on it: UNSUBSCRIBE is done */
		if (op)
			hs_subscriber_finish(sub, op);
	}
	hs_list_remove(&conn->dirty);
	hs_upstream_reset(&conn->upstream);
	conn->checked_us = 0;
	conn->checking = false;
	conn->cluster_down = false;
	conn->tracking = false;
}

/* ---- requests ---- */

static struct hs_subscriber_request *ask_about(struct hs_subscriber *sub,
					       struct hs_subscriber_conn *conn,
					       enum hs_subscriber_verb verb, const char *word,
					       const struct hs_subscriber_topic *topic)
{
	struct hs_subscriber_request *request = add_request(sub, conn, verb);

	hs_compose(&conn->upstream.out, 2,
		   (struct hs_bytes[]){hs_bytes_of(word), hs_subscriber_topic_name(topic)});
	request->kind = topic->kind;
	request->slot = topic->slot;
	request->hash = topic->node.hash;
	return request;
}

void hs_subscriber_conn_subscribe(struct hs_subscriber *sub, struct hs_subscriber_conn *conn)
{
	struct hs_link *wanted = &conn->subscriptions[HS_SUBSCRIPTION_WANTED];

	while (hs_subscriber_is_up(conn) && !hs_list_empty(wanted) &&
	       conn->requests_count < HS_SUBSCRIBER_PENDING_MAX &&
	       conn->upstream.out.len < OUT_BYTES_MAX) {
		struct hs_node_subscription *subscription =
			hs_list_entry(wanted->next, struct hs_node_subscription, link);

		hs_list_remove(&subscription->link);
		hs_list_append(&conn->subscriptions[HS_SUBSCRIPTION_REQUESTED],
			       &subscription->link);
		subscription->state = HS_SUBSCRIPTION_REQUESTED;
		subscription->request =
			ask_about(sub, conn, HS_SUBSCRIBER_SUBSCRIBE,
				  words[subscription->topic->kind].subscribe, subscription->topic);
		subscription->request->subscription = subscription;
	}
}

void hs_subscriber_conn_unsubscribe(struct hs_subscriber *sub, struct hs_subscriber_conn *conn,
				    const struct hs_subscriber_topic *topic, struct hs_op *op)
{
	ask_about(sub, conn, HS_SUBSCRIBER_UNSUBSCRIBE, words[topic->kind].unsubscribe, topic)->op =
		op;
}

void hs_subscriber_conn_track(struct hs_subscriber *sub, struct hs_subscriber_conn *conn)
{
	hs_compose_line(&conn->upstream.out, "CLIENT TRACKING ON BCAST");
	add_request(sub, conn, HS_SUBSCRIBER_TRACK);
}

/* subscriber_tracking.c says why the check of a tracking connection is not PING in a Cluster. */
void hs_subscriber_conn_check(struct hs_subscriber *sub, struct hs_subscriber_conn *conn)
{
	conn->checked_us = sub->now_us;
	conn->checking = true;
	hs_compose_line(&conn->upstream.out,
			conn->tracks && sub->options.cluster ? "CLUSTER INFO" : "PING");
	add_request(sub, conn, HS_SUBSCRIBER_CHECK);
}

/* ---- replies ---- */

/* The context of take_reply. */
struct reading {
	struct hs_subscriber *sub;
	struct hs_subscriber_conn *conn;
};

static void close_for_nonsense(struct hs_subscriber_conn *conn)
{
	hs_upstream_close(&conn->upstream, "it sent a malformed reply");
}

/* The error is MOVED with another slot than the oldest request's, so it does not answer that request. */
static bool is_moved_elsewhere(struct hs_bytes error, const struct hs_subscriber_request *request)
{
	struct hs_redirect redirect;

	if (!hs_redirect_parse(&redirect, error) || redirect.ask)
		return false;
	return !request || request->kind != HS_SUBSCRIBER_SHARD || request->slot != redirect.slot;
}

static void take_error(struct hs_subscriber *sub, struct hs_subscriber_conn *conn,
		       struct hs_bytes error)
{
	struct hs_subscriber_request request;

	if (is_moved_elsewhere(error, first_request(conn)))
		return;
	if (conn->requests_count == 0) {
		close_for_nonsense(conn);
		return;
	}
	request = take_request(conn);
	switch (request.verb) {
	case HS_SUBSCRIBER_SUBSCRIBE:
		if (request.subscription)
			hs_subscriber_refused(sub, request.subscription, error);
		break;
	case HS_SUBSCRIBER_UNSUBSCRIBE:
		if (request.op)
			hs_subscriber_finish(sub, request.op);
		break;
	case HS_SUBSCRIBER_TRACK:
		hs_subscriber_track_refused(sub, conn, error);
		break;
	case HS_SUBSCRIBER_CHECK:
		conn->checking = false; /* an error shows that the server is alive, too */
		break;
	}
}

static void take_answer(struct hs_subscriber *sub, struct hs_subscriber_conn *conn,
			struct hs_bytes reply)
{
	const struct hs_subscriber_request *request = first_request(conn);

	if (request && request->verb == HS_SUBSCRIBER_CHECK) {
		conn->checking = false;
		take_request(conn);
		hs_subscriber_track_checked(sub, conn, reply);
	} else if (request && request->verb == HS_SUBSCRIBER_TRACK) {
		take_request(conn);
		hs_subscriber_track_confirmed(sub, conn);
	} else {
		close_for_nonsense(conn);
	}
}

/* A push with this verb, kind and name answers the oldest request. */
static bool answers(const struct hs_subscriber *sub, struct hs_subscriber_conn *conn,
		    enum hs_subscriber_verb verb, enum hs_subscriber_kind kind,
		    struct hs_bytes name)
{
	const struct hs_subscriber_request *request = first_request(conn);

	return request && request->verb == verb &&
	       request->hash == hs_subscriber_topic_hash(sub, kind, name);
}

static void take_subscribed(struct hs_subscriber *sub, struct hs_subscriber_conn *conn,
			    enum hs_subscriber_kind kind, struct hs_bytes name)
{
	struct hs_node_subscription *subscription;

	if (!answers(sub, conn, HS_SUBSCRIBER_SUBSCRIBE, kind, name)) {
		close_for_nonsense(conn);
		return;
	}
	subscription = take_request(conn).subscription;
	if (subscription)
		hs_subscriber_confirmed(sub, subscription);
}

static void take_unsubscribed(struct hs_subscriber *sub, struct hs_subscriber_conn *conn,
			      enum hs_subscriber_kind kind, struct hs_bytes name)
{
	struct hs_op *op;

	if (!answers(sub, conn, HS_SUBSCRIBER_UNSUBSCRIBE, kind, name)) {
		hs_subscriber_dropped(sub, conn, kind, name);
		return;
	}
	op = take_request(conn).op;
	if (op)
		hs_subscriber_finish(sub, op);
}

/* `walk` stands behind the push's first word. */
static void take_message(struct hs_subscriber *sub, struct hs_subscriber_conn *conn,
			 enum hs_subscriber_kind kind, struct hs_walk *walk)
{
	struct hs_event event = {.kind = words[kind].event};
	const struct hs_subscriber_topic *topic;
	const struct hs_node_subscription *subscription;

	if ((kind == HS_SUBSCRIBER_PATTERN && hs_walk_text(walk, &event.pattern) < 0) ||
	    hs_walk_text(walk, &event.channel) < 0 || hs_walk_text(walk, &event.payload) < 0) {
		close_for_nonsense(conn);
		return;
	}
	topic = hs_subscriber_topic_find(
		sub, kind, kind == HS_SUBSCRIBER_PATTERN ? event.pattern : event.channel);
	subscription = topic ? &topic->subscriptions[topic->active] : NULL;
	/* A topic that moves has two subscriptions. Only messages from the active one are reported. */
	if (subscription &&
	    ((subscription->conn == conn && subscription->state == HS_SUBSCRIPTION_CONFIRMED) ||
	     hs_subscriber_takes_key_event(topic, conn, event.channel)))
		sub->calls->event(sub->context, hs_event_create(&event));
}

static void take_invalidation(struct hs_subscriber *sub, struct hs_subscriber_conn *conn,
			      const struct hs_walk *walk)
{
	struct hs_invalidation invalidation;
	struct hs_bytes key;
	int more = hs_invalidation_begin(&invalidation, *walk);

	if (more == 0 && invalidation.all)
		sub->changed_all_due = true;
	while (more >= 0 && (more = hs_invalidation_next(&invalidation, &key)) > 0)
		hs_changed_add(&sub->changed, key);
	if (more < 0)
		close_for_nonsense(conn);
}

static void take_push(struct hs_subscriber *sub, struct hs_subscriber_conn *conn,
		      struct hs_walk *walk)
{
	struct hs_bytes what, name;

	if (hs_walk_text(walk, &what) < 0) {
		close_for_nonsense(conn);
		return;
	}
	if (hs_bytes_equal(what, HS_LIT("invalidate"))) {
		take_invalidation(sub, conn, walk);
		return;
	}
	for (enum hs_subscriber_kind kind = 0; kind < HS_SUBSCRIBER_KINDS; kind++) {
		bool subscribed = hs_bytes_equal(what, words[kind].subscribed);

		if (hs_bytes_equal(what, words[kind].message)) {
			take_message(sub, conn, kind, walk);
			return;
		}
		if (!subscribed && !hs_bytes_equal(what, words[kind].unsubscribed))
			continue;
		if (hs_walk_text(walk, &name) < 0)
			close_for_nonsense(conn);
		else if (subscribed)
			take_subscribed(sub, conn, kind, name);
		else
			take_unsubscribed(sub, conn, kind, name);
		return;
	}
}

static void take_reply(void *context, struct hs_bytes reply, bool owned)
{
	const struct reading *reading = context;
	struct hs_walk walk = {reply.data, reply.len};
	struct hs_parsed_reply head;

	(void)owned;
	if (hs_walk_next(&walk, &head) < 0)
		close_for_nonsense(reading->conn);
	else if (head.type == HS_PARSED_PUSH)
		take_push(reading->sub, reading->conn, &walk);
	else if (head.type == HS_PARSED_ERROR)
		take_error(reading->sub, reading->conn, head.text);
	else
		take_answer(reading->sub, reading->conn, reply);
}

void hs_subscriber_conn_receive(struct hs_subscriber *sub, struct hs_subscriber_conn *conn,
				const char *data, size_t len)
{
	hs_upstream_receive(&conn->upstream, sub->now_us, data, len, HS_EVENT_BYTES_MAX, take_reply,
			    &(struct reading){sub, conn});
	/* reports the keys of all pushes in these bytes as one event */
	hs_subscriber_report_changed(sub);
	hs_subscriber_conn_subscribe(sub, conn);
}
