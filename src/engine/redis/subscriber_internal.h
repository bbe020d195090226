/* Private to the subscriber (subscriber.h): its state, and what its files call in each other.
 *
 *     subscriber.c            entry points; opening and closing connections; choosing the pub/sub node
 *     subscriber_topics.c     topics: the workers that subscribed, and where each topic is subscribed
 *     subscriber_key_events.c key events, which every master publishes by itself
 *     subscriber_conn.c       one connection: requests out, replies and pushes in
 *     subscriber_tracking.c   changed keys, and whether all masters are tracked */
#ifndef HS_ENGINE_REDIS_SUBSCRIBER_INTERNAL_H
#define HS_ENGINE_REDIS_SUBSCRIBER_INTERNAL_H

#include "base/hash_table.h"
#include "base/limits.h"
#include "base/list.h"
#include "engine/redis/subscriber.h"
#include "keyspace/changed.h"

enum hs_subscriber_kind {
	HS_SUBSCRIBER_CHANNEL,
	HS_SUBSCRIBER_PATTERN,
	HS_SUBSCRIBER_SHARD,
	HS_SUBSCRIBER_KINDS,
};

struct hs_subscriber_workers {
	uint64_t bits[HS_WORKERS_MAX / 64];
};

enum hs_node_subscription_state {
	HS_SUBSCRIPTION_WANTED,	   /* to be requested */
	HS_SUBSCRIPTION_REQUESTED, /* request in flight */
	HS_SUBSCRIPTION_REFUSED,   /* wanted again after HS_SUBSCRIBER_RETRY_US */
	HS_SUBSCRIPTION_CONFIRMED,
	HS_SUBSCRIPTION_STATES,
};

/* The subscription of a topic at one node. */
struct hs_node_subscription {
	struct hs_link link; /* in conn->subscriptions[state] */
	struct hs_subscriber_topic *topic;
	struct hs_subscriber_conn *conn; /* NULL: not in use */
	enum hs_node_subscription_state state;
	struct hs_subscriber_request *request; /* in state REQUESTED: the request */
	/* True: the struct is allocated by itself and is in topic->key_event_subscriptions. False: it is in
	 * topic->subscriptions. */
	bool for_key_events;
	struct hs_link of_topic; /* in topic->key_event_subscriptions, if for_key_events */
};

struct hs_subscriber_topic {
	struct hs_hash_node node; /* in sub->topics */
	enum hs_subscriber_kind kind;
	uint16_t slot;
	struct hs_subscriber_workers workers; /* workers whose SUBSCRIBE ops are completed */
	struct hs_link waits;		      /* SUBSCRIBE ops that are not confirmed yet */
	struct hs_node_subscription subscriptions[2];
	/* index in `subscriptions` of the one whose messages are reported; the other one is to replace it */
	uint8_t active;
	bool key_events; /* in a Cluster: key events may match the topic */
	/* the topic's subscriptions at other masters than the pub/sub node */
	struct hs_link key_event_subscriptions;
	struct hs_link missing; /* in sub->missing: a shard channel without a server */
	uint64_t missing_us;	/* since when the shard channel has no server */
	size_t len;
	char name[];
};

/* A SUBSCRIBE or TRACK op in progress. */
struct hs_subscriber_wait {
	struct hs_link of_topic;	   /* in topic->waits; for TRACK in sub->track_waits */
	struct hs_link of_all;		   /* in sub->waits, by deadline */
	struct hs_subscriber_topic *topic; /* NULL: TRACK */
	struct hs_op *op;
	uint64_t until_us;
};

enum hs_subscriber_verb {
	HS_SUBSCRIBER_SUBSCRIBE,
	HS_SUBSCRIBER_UNSUBSCRIBE,
	HS_SUBSCRIBER_TRACK,
	HS_SUBSCRIBER_CHECK,
};

/* A request in flight on a connection. */
struct hs_subscriber_request {
	struct hs_link link;
	enum hs_subscriber_verb verb;
	/* The fields below are for SUBSCRIBE and UNSUBSCRIBE. */
	enum hs_subscriber_kind kind;
	uint16_t slot;
	uint64_t hash; /* hash of the topic's kind and name */
	/* of a SUBSCRIBE; NULL: the subscription has been ended since */
	struct hs_node_subscription *subscription;
	struct hs_op *op; /* an UNSUBSCRIBE op, completed when the reply comes; or NULL */
};

struct hs_subscriber_conn {
	struct hs_upstream upstream;
	struct hs_route_node at;
	char text[HS_HOST_BYTES_MAX + 16]; /* host:port */
	/* link: in sub->conns. dirty: in sub->dirty, while `out` has bytes to send */
	struct hs_link link, dirty;
	bool tracks;   /* a tracking connection; else for topics */
	bool tracking; /* the server confirmed CLIENT TRACKING */
	bool listed;   /* its node is in the routes */
	/* the connection was lost before, and has not all of its subscriptions again */
	bool restoring;
	struct hs_link subscriptions[HS_SUBSCRIPTION_STATES];
	struct hs_link requests; /* in flight, oldest first */
	uint32_t requests_count;
	uint64_t needed_us;
	uint64_t checked_us; /* last liveness check; 0: none */
	bool checking;	     /* the liveness check is in flight */
	bool cluster_down;   /* its node reports that the Cluster is down */
	char why[160];	     /* last failure */
};

struct hs_subscriber {
	struct hs_subscriber_options options;
	const struct hs_subscriber_calls *calls;
	void *context;
	struct hs_prng prng;
	uint64_t now_us; /* the time of the event that is being handled */
	const struct hs_routes *routes;
	/* The connection for topics to each node of the routes; NULL: none yet. */
	struct hs_subscriber_conn **at_node;
	struct hs_link conns, dirty;
	bool conns_stale; /* connections may have to be opened or closed */

	struct hs_hash_table topics;
	uint64_t names_bytes;
	uint32_t kinds[HS_SUBSCRIBER_KINDS];	/* number of topics of each kind */
	struct hs_subscriber_conn *pubsub_conn; /* to the pub/sub node; NULL: none needed */
	struct hs_link waits;			/* all waits, by deadline */
	struct hs_link missing;			/* shard channels without a server, oldest first */
	uint64_t retried_us;

	struct hs_subscriber_workers trackers;
	struct hs_link track_waits;
	bool all_tracked;
	bool changed_all_due;	   /* CHANGED_ALL is to be reported at the end of this event */
	uint64_t changed_all_us;   /* when CHANGED_ALL was last reported */
	struct hs_changed changed; /* keys invalidated by the bytes being read */
};

static inline bool hs_subscriber_any(const struct hs_subscriber_workers *workers)
{
	uint64_t all = 0;

	for (int i = 0; i < HS_WORKERS_MAX / 64; i++)
		all |= workers->bits[i];
	return all != 0;
}

static inline void hs_subscriber_set(struct hs_subscriber_workers *workers, uint32_t worker,
				     bool in)
{
	uint64_t bit = 1ull << worker % 64;

	hs_check(worker < HS_WORKERS_MAX);
	if (in)
		workers->bits[worker / 64] |= bit;
	else
		workers->bits[worker / 64] &= ~bit;
}

static inline bool hs_subscriber_is_up(const struct hs_subscriber_conn *conn)
{
	return conn && conn->upstream.state == HS_UPSTREAM_UP;
}

/* The oldest wait in topic->waits or sub->track_waits, or NULL. */
static inline struct hs_subscriber_wait *hs_subscriber_first_wait(const struct hs_link *waits)
{
	return hs_list_first(waits, struct hs_subscriber_wait, of_topic);
}

/* True: topics of this kind are subscribed at the pub/sub node. */
static inline bool hs_subscriber_at_pubsub_node(const struct hs_subscriber *sub,
						enum hs_subscriber_kind kind)
{
	return kind != HS_SUBSCRIBER_SHARD || !sub->options.cluster;
}

/* subscriber.c */
void hs_subscriber_finish(struct hs_subscriber *sub, struct hs_op *op); /* completes `op` with OK */
/* Completes `op` with an error. */
#define hs_subscriber_fail(sub, op, ...)                                                           \
	do {                                                                                       \
		struct hs_op *failed_ = (op);                                                      \
		hs_reply_errorf(&(struct hs_reply){.out = failed_->out, .resp = failed_->resp},    \
				__VA_ARGS__);                                                      \
		(sub)->calls->done((sub)->context, failed_);                                       \
	} while (0)
void hs_subscriber_wait_begin(struct hs_subscriber *sub, struct hs_op *op,
			      struct hs_subscriber_topic *topic, struct hs_link *list);
/* Ends a wait and returns its op. `in`: from this call on the op's worker is subscribed, or tracks. */
struct hs_op *hs_subscriber_wait_end(struct hs_subscriber *sub, struct hs_subscriber_wait *wait,
				     bool in);
/* The connection for topics to a node of the routes; creates it if there is none. */
struct hs_subscriber_conn *hs_subscriber_conn_at(struct hs_subscriber *sub, uint16_t node);
bool hs_subscriber_conn_is_used(const struct hs_subscriber_conn *conn);

/* subscriber_key_events.c: key events (__keyspace@0__:…, __keyevent@0__:…) of all masters */
/* Gives the topic a subscription at every other master, if key events may match it. */
void hs_subscriber_assign_key_events(struct hs_subscriber *sub, struct hs_subscriber_topic *topic);
/* Ends the topic's subscription for key events at this connection, if it has one. The second function ends all of
 * them. */
void hs_subscriber_drop_key_events_at(struct hs_subscriber *sub,
				      const struct hs_subscriber_topic *topic,
				      const struct hs_subscriber_conn *conn);
void hs_subscriber_drop_key_events(struct hs_subscriber *sub, struct hs_subscriber_topic *topic);
/* All masters that can be reached have confirmed the topic. */
bool hs_subscriber_key_events_confirmed(const struct hs_subscriber_topic *topic);
/* The message is a key event, and the topic takes key events from `conn`. */
bool hs_subscriber_takes_key_event(const struct hs_subscriber_topic *topic,
				   const struct hs_subscriber_conn *conn, struct hs_bytes channel);

/* subscriber_topics.c */
void hs_node_subscription_begin(struct hs_subscriber *sub,
				struct hs_node_subscription *subscription,
				struct hs_subscriber_conn *conn);
/* True: `op` completes with the server's answer. False: the server need not be asked. */
bool hs_node_subscription_end(struct hs_subscriber *sub, struct hs_node_subscription *subscription,
			      struct hs_op *op);
void hs_subscriber_subscribe(struct hs_subscriber *sub, struct hs_op *op);
void hs_subscriber_unsubscribe(struct hs_subscriber *sub, struct hs_op *op);
struct hs_subscriber_topic *hs_subscriber_topic_find(const struct hs_subscriber *sub,
						     enum hs_subscriber_kind kind,
						     struct hs_bytes name);
uint64_t hs_subscriber_topic_hash(const struct hs_subscriber *sub, enum hs_subscriber_kind kind,
				  struct hs_bytes name);
static inline struct hs_bytes hs_subscriber_topic_name(const struct hs_subscriber_topic *topic)
{
	return (struct hs_bytes){topic->name, topic->len};
}
/* Moves the subscriptions of all topics, or of the topics of the pub/sub node alone, to the nodes where they
 * belong. */
void hs_subscriber_assign_all(struct hs_subscriber *sub, bool at_pubsub_node_alone);
void hs_subscriber_confirmed(struct hs_subscriber *sub, struct hs_node_subscription *subscription);
void hs_subscriber_refused(struct hs_subscriber *sub, struct hs_node_subscription *subscription,
			   struct hs_bytes error);
/* The server has ended a subscription by itself. */
void hs_subscriber_dropped(struct hs_subscriber *sub, struct hs_subscriber_conn *conn,
			   enum hs_subscriber_kind kind, struct hs_bytes name);
/* The connection is lost: its subscriptions become wanted again. */
void hs_subscriber_resubscribe(struct hs_subscriber *sub, struct hs_subscriber_conn *conn);
void hs_subscriber_subscribe_timeout(struct hs_subscriber *sub, struct hs_subscriber_wait *wait);
void hs_subscriber_topics_tick(struct hs_subscriber *sub);
/* Call it only when no SUBSCRIBE op waits. */
void hs_subscriber_topics_deinit(struct hs_subscriber *sub);

/* subscriber_conn.c */
/* Drops the requests in flight and completes the UNSUBSCRIBE ops among them. */
void hs_subscriber_conn_reset(struct hs_subscriber *sub, struct hs_subscriber_conn *conn);
/* Requests the wanted subscriptions, up to the connection's limits. */
void hs_subscriber_conn_subscribe(struct hs_subscriber *sub, struct hs_subscriber_conn *conn);
void hs_subscriber_conn_unsubscribe(struct hs_subscriber *sub, struct hs_subscriber_conn *conn,
				    const struct hs_subscriber_topic *topic, struct hs_op *op);
void hs_subscriber_conn_track(struct hs_subscriber *sub, struct hs_subscriber_conn *conn);
void hs_subscriber_conn_check(struct hs_subscriber *sub, struct hs_subscriber_conn *conn);
void hs_subscriber_conn_receive(struct hs_subscriber *sub, struct hs_subscriber_conn *conn,
				const char *data, size_t len);

/* subscriber_tracking.c */
void hs_subscriber_track(struct hs_subscriber *sub, struct hs_op *op);
void hs_subscriber_untrack(struct hs_subscriber *sub, struct hs_op *op);
bool hs_subscriber_tracking(const struct hs_subscriber *sub); /* tracking connections are needed */
void hs_subscriber_track_confirmed(struct hs_subscriber *sub, struct hs_subscriber_conn *conn);
void hs_subscriber_track_refused(struct hs_subscriber *sub, struct hs_subscriber_conn *conn,
				 struct hs_bytes error);
/* Takes the reply to a liveness check. */
void hs_subscriber_track_checked(struct hs_subscriber *sub, struct hs_subscriber_conn *conn,
				 struct hs_bytes reply);
void hs_subscriber_track_timeout(struct hs_subscriber *sub, struct hs_subscriber_wait *wait);
void hs_subscriber_report_changed(struct hs_subscriber *sub); /* reports the keys in sub->changed */
/* Updates all_tracked, reports CHANGED_ALL if it is due, and completes TRACK ops. */
void hs_subscriber_check_tracking(struct hs_subscriber *sub);

#endif
