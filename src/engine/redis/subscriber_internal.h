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
	HS_SUBSCRIPTION_REFUSED,   /* for now: wanted again after HS_SUBSCRIBER_RETRY_US */
	HS_SUBSCRIPTION_CONFIRMED,
	HS_SUBSCRIPTION_STATES,
};

/* The subscription of a topic at one node. */
struct hs_node_subscription {
	struct hs_link link; /* in conn->subscriptions[state] */
	struct hs_subscriber_topic *topic;
	struct hs_subscriber_conn *conn; /* NULL: not in use */
	enum hs_node_subscription_state state;
	struct hs_subscriber_request *request; /* REQUESTED: its request */
	/* In topic->key_event_subscriptions, allocated by itself; else in topic->subscriptions. */
	bool for_key_events;
	struct hs_link of_topic; /* if for_key_events */
};

struct hs_subscriber_topic {
	struct hs_hash_node node; /* in sub->topics */
	enum hs_subscriber_kind kind;
	uint16_t slot;
	struct hs_subscriber_workers workers; /* with a completed SUBSCRIBE op */
	struct hs_link waits;		      /* SUBSCRIBE ops not confirmed yet */
	struct hs_node_subscription subscriptions[2];
	uint8_t active;	 /* index of the one whose messages are reported; the other replaces it */
	bool key_events; /* in a Cluster: key events may match it */
	struct hs_link key_event_subscriptions; /* at the other masters */
	struct hs_link missing; /* in sub->missing: a shard channel without a server */
	uint64_t missing_us;	/* since */
	size_t len;
	char name[];
};

/* A SUBSCRIBE or TRACK op in progress. */
struct hs_subscriber_wait {
	struct hs_link of_topic;	   /* or in sub->track_waits */
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

/* A request in flight. */
struct hs_subscriber_request {
	struct hs_link link;
	enum hs_subscriber_verb verb;
	/* For SUBSCRIBE and UNSUBSCRIBE: */
	enum hs_subscriber_kind kind;
	uint16_t slot;
	uint64_t hash;				   /* of the topic's kind and name */
	struct hs_node_subscription *subscription; /* of a SUBSCRIBE; NULL: not wanted any more */
	struct hs_op *op; /* of an UNSUBSCRIBE, completed with the reply; or NULL */
};

struct hs_subscriber_conn {
	struct hs_upstream upstream;
	struct hs_route_node at;
	char text[HS_HOST_BYTES_MAX + 16]; /* host:port */
	struct hs_link link, dirty;	   /* in sub->conns; in sub->dirty: `out` has grown */
	bool tracks;			   /* a tracking connection; else for topics */
	bool tracking;			   /* the server confirmed CLIENT TRACKING */
	bool listed;			   /* its node is in the routes */
	bool restoring;			   /* lost before; not all is confirmed again */
	struct hs_link subscriptions[HS_SUBSCRIPTION_STATES];
	struct hs_link requests; /* in flight, oldest first */
	uint32_t requests_count;
	uint64_t needed_us;
	uint64_t checked_us; /* last liveness check; 0: none */
	bool checking;	     /* the check is in flight */
	bool cluster_down;   /* its node reports that the Cluster is down */
	char why[160];	     /* last failure */
};

struct hs_subscriber {
	struct hs_subscriber_options options;
	const struct hs_subscriber_calls *calls;
	void *context;
	struct hs_prng prng;
	uint64_t now_us; /* of the current event */
	const struct hs_routes *routes;
	/* Connection for topics of each node of the routes; NULL: none yet. */
	struct hs_subscriber_conn **at_node;
	struct hs_link conns, dirty;
	bool conns_stale; /* connections are to be opened or closed */

	struct hs_hash_table topics;
	uint64_t names_bytes;
	uint32_t kinds[HS_SUBSCRIBER_KINDS];	/* number of topics */
	struct hs_subscriber_conn *pubsub_conn; /* to the pub/sub node; NULL: none needed */
	struct hs_link waits;			/* all, by deadline */
	struct hs_link missing;			/* shard channels without a server, oldest first */
	uint64_t retried_us;

	struct hs_subscriber_workers trackers;
	struct hs_link track_waits;
	bool all_tracked;
	bool changed_all_due;	   /* at the end of this event */
	uint64_t changed_all_us;   /* when it was last reported */
	struct hs_changed changed; /* keys invalidated in the bytes being read */
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

/* The oldest in topic->waits or sub->track_waits, or NULL. */
static inline struct hs_subscriber_wait *hs_subscriber_first_wait(const struct hs_link *waits)
{
	return hs_list_first(waits, struct hs_subscriber_wait, of_topic);
}

/* Topics of this kind are subscribed at the pub/sub node. */
static inline bool hs_subscriber_at_pubsub_node(const struct hs_subscriber *sub,
						enum hs_subscriber_kind kind)
{
	return kind != HS_SUBSCRIBER_SHARD || !sub->options.cluster;
}

/* subscriber.c */
void hs_subscriber_finish(struct hs_subscriber *sub, struct hs_op *op); /* with OK */
/* Completes an op with an error. */
#define hs_subscriber_fail(sub, op, ...)                                                           \
	do {                                                                                       \
		struct hs_op *failed_ = (op);                                                      \
		hs_reply_errorf(&(struct hs_reply){.out = failed_->out, .resp = failed_->resp},    \
				__VA_ARGS__);                                                      \
		(sub)->calls->done((sub)->context, failed_);                                       \
	} while (0)
void hs_subscriber_wait_begin(struct hs_subscriber *sub, struct hs_op *op,
			      struct hs_subscriber_topic *topic, struct hs_link *list);
/* Ends a wait and returns its op. `in`: the op's worker is subscribed, or tracks, from now on. */
struct hs_op *hs_subscriber_wait_end(struct hs_subscriber *sub, struct hs_subscriber_wait *wait,
				     bool in);
/* The connection for topics to a node of the routes; creates it. */
struct hs_subscriber_conn *hs_subscriber_conn_at(struct hs_subscriber *sub, uint16_t node);
bool hs_subscriber_conn_is_used(const struct hs_subscriber_conn *conn);

/* subscriber_key_events.c: key events (__keyspace@0__:…, __keyevent@0__:…) of all masters */
/* Gives a topic a subscription at every master. */
void hs_subscriber_assign_key_events(struct hs_subscriber *sub, struct hs_subscriber_topic *topic);
/* Ends the subscription at this connection, if any; or all of them. */
void hs_subscriber_drop_key_events_at(struct hs_subscriber *sub,
				      const struct hs_subscriber_topic *topic,
				      const struct hs_subscriber_conn *conn);
void hs_subscriber_drop_key_events(struct hs_subscriber *sub, struct hs_subscriber_topic *topic);
/* All masters that are reachable have confirmed. */
bool hs_subscriber_key_events_confirmed(const struct hs_subscriber_topic *topic);
/* The message is a key event that is to be taken from `conn`. */
bool hs_subscriber_takes_key_event(const struct hs_subscriber_topic *topic,
				   const struct hs_subscriber_conn *conn, struct hs_bytes channel);

/* subscriber_topics.c */
void hs_node_subscription_begin(struct hs_subscriber *sub,
				struct hs_node_subscription *subscription,
				struct hs_subscriber_conn *conn);
/* True: `op` completes with the server's answer. */
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
/* Moves the subscriptions of all topics, or of those at the pub/sub node, to the nodes where they belong. */
void hs_subscriber_assign_all(struct hs_subscriber *sub, bool at_pubsub_node_alone);
void hs_subscriber_confirmed(struct hs_subscriber *sub, struct hs_node_subscription *subscription);
void hs_subscriber_refused(struct hs_subscriber *sub, struct hs_node_subscription *subscription,
			   struct hs_bytes error);
/* The server ended a subscription by itself. */
void hs_subscriber_dropped(struct hs_subscriber *sub, struct hs_subscriber_conn *conn,
			   enum hs_subscriber_kind kind, struct hs_bytes name);
/* The connection is lost: all of its subscriptions are wanted again. */
void hs_subscriber_resubscribe(struct hs_subscriber *sub, struct hs_subscriber_conn *conn);
void hs_subscriber_subscribe_timeout(struct hs_subscriber *sub, struct hs_subscriber_wait *wait);
void hs_subscriber_topics_tick(struct hs_subscriber *sub);
/* Only when no SUBSCRIBE op waits any more. */
void hs_subscriber_topics_deinit(struct hs_subscriber *sub);

/* subscriber_conn.c */
/* Drops the requests in flight; UNSUBSCRIBE ops among them complete. */
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
/* The reply to a liveness check. */
void hs_subscriber_track_checked(struct hs_subscriber *sub, struct hs_subscriber_conn *conn,
				 struct hs_bytes reply);
void hs_subscriber_track_timeout(struct hs_subscriber *sub, struct hs_subscriber_wait *wait);
void hs_subscriber_report_changed(struct hs_subscriber *sub); /* the keys in sub->changed */
/* Updates all_tracked; reports CHANGED_ALL. */
void hs_subscriber_check_tracking(struct hs_subscriber *sub);

#endif
