/* Private to the subscriber: its state, and what its files ask of each other.
 *
 *     subscriber.c            events; which connections there are; home
 *     subscriber_topics.c     which workers listen to what, and where that is subscribed
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
	HS_SUBSCRIPTION_REQUESTED, /* requested, not answered yet */
	HS_SUBSCRIPTION_REFUSED,   /* by the server, for now: wanted again a little later */
	HS_SUBSCRIPTION_CONFIRMED,
	HS_SUBSCRIPTION_STATES,
};

/* A topic's subscription at one connection. */
struct hs_node_subscription {
	struct hs_link link; /* in conn->places[state] */
	struct hs_subscriber_topic *topic;
	struct hs_subscriber_conn *conn; /* NULL: not in use */
	enum hs_node_subscription_state state;
	struct hs_subscriber_request *request; /* ASKED */
	bool for_key_events; /* one of topic->key_event_subscriptions, allocated; not one of topic->places */
	struct hs_link of_topic; /* for_key_events */
};

struct hs_subscriber_topic {
	struct hs_hash_node node; /* in sub->topics */
	enum hs_subscriber_kind kind;
	uint16_t slot;
	struct hs_subscriber_workers workers; /* whose LISTEN is done */
	struct hs_link waits;		      /* LISTENs that are not confirmed yet */
	struct hs_node_subscription subscriptions[2];
	uint8_t active;	 /* the place whose messages are told; the other one is to replace it */
	bool key_events; /* in a Cluster: key events may be published to it */
	struct hs_link key_event_subscriptions; /* at masters where it has none of those two */
	struct hs_link missing; /* in sub->missing while a shard channel has no server */
	uint64_t missing_us;	/* since then */
	size_t len;
	char name[];
};

/* A LISTEN or TRACK under way. */
struct hs_subscriber_wait {
	struct hs_link of_topic;	   /* or sub->track_waits */
	struct hs_link of_all;		   /* in the order of deadlines */
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

/* A request whose reply is pending. */
struct hs_subscriber_request {
	struct hs_link link;
	enum hs_subscriber_verb verb;
	/* (UN)SUBSCRIBE: */
	enum hs_subscriber_kind kind;
	uint16_t slot;
	uint64_t hash; /* of the topic, with its kind */
	struct hs_node_subscription
		*subscription; /* of a SUBSCRIBE that is still wanted, or NULL */
	struct hs_op *op;      /* UNLISTEN, done with the reply; or NULL */
};

struct hs_subscriber_conn {
	struct hs_upstream upstream;
	struct hs_route_node at;
	char text[HS_HOST_BYTES_MAX + 16]; /* host:port */
	struct hs_link link, dirty;	   /* in sub->clients; in sub->dirty when `out` has grown */
	bool tracks;			   /* the tracking connection; else the one for topics */
	bool tracking;			   /* and the server confirmed it */
	bool listed;			   /* its node is in the routes: a master with slots */
	bool restoring;			   /* it was lost, and not everything is confirmed again */
	struct hs_link subscriptions[HS_SUBSCRIPTION_STATES];
	struct hs_link requests; /* the oldest first */
	uint32_t requests_count;
	uint64_t needed_us;
	uint64_t checked_us; /* when the last liveness check was sent; 0: none was */
	bool checking;	     /* it is not answered */
	bool cluster_down;   /* the server said that its Cluster is down */
	char why[160];	     /* it was lost or could not be opened, or refuses */
};

struct hs_subscriber {
	struct hs_subscriber_options options;
	const struct hs_subscriber_calls *calls;
	void *context;
	struct hs_prng prng;
	uint64_t now_us; /* of the event being handled */
	const struct hs_routes *routes;
	struct hs_subscriber_conn **at_node; /* of the routes, for topics; NULL: not looked up */
	struct hs_link clients, dirty;
	bool conns_stale; /* connections may have to be opened or closed */

	struct hs_hash_table topics;
	uint64_t names_bytes;
	uint32_t kinds[HS_SUBSCRIBER_KINDS];	/* topics of each kind */
	struct hs_subscriber_conn *pubsub_conn; /* NULL: no topic needs it */
	struct hs_link waits;			/* all, by deadline */
	struct hs_link missing;			/* shard channels that no server serves, by time */
	uint64_t retried_us;

	struct hs_subscriber_workers trackers;
	struct hs_link track_waits;
	bool all_tracked;	   /* all masters are tracked */
	bool changed_all_due;	   /* CHANGED_ALL is due at the end of this event */
	uint64_t changed_all_us;   /* when CHANGED_ALL was told last */
	struct hs_changed changed; /* keys, of the bytes being read */
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

/* The oldest of topic->waits or sub->track_waits, or NULL. */
static inline struct hs_subscriber_wait *hs_subscriber_first_wait(const struct hs_link *waits)
{
	return hs_list_first(waits, struct hs_subscriber_wait, of_topic);
}

/* Whether topics of a kind are subscribed at home. */
static inline bool hs_subscriber_at_pubsub_node(const struct hs_subscriber *sub,
						enum hs_subscriber_kind kind)
{
	return kind != HS_SUBSCRIBER_SHARD || !sub->options.cluster;
}

/* subscriber.c */
void hs_subscriber_finish(struct hs_subscriber *sub, struct hs_op *op); /* with OK */
/* With an error. */
#define hs_subscriber_fail(sub, op, ...)                                                           \
	do {                                                                                       \
		struct hs_op *failed_ = (op);                                                      \
		hs_reply_errorf(&(struct hs_reply){.out = failed_->out, .resp = failed_->resp},    \
				__VA_ARGS__);                                                      \
		(sub)->calls->done((sub)->context, failed_);                                       \
	} while (0)
void hs_subscriber_wait_begin(struct hs_subscriber *sub, struct hs_op *op,
			      struct hs_subscriber_topic *topic, struct hs_link *list);
/* The op of a wait; `in`: its worker listens or tracks from now on, else it does not. */
struct hs_op *hs_subscriber_wait_end(struct hs_subscriber *sub, struct hs_subscriber_wait *wait,
				     bool in);
/* The connection for topics to a node of the routes; made when there is none yet. */
struct hs_subscriber_conn *hs_subscriber_conn_at(struct hs_subscriber *sub, uint16_t node);
bool hs_subscriber_conn_is_used(const struct hs_subscriber_conn *conn);

/* subscriber_key_events.c: key events (__keyspace@0__:…, __keyevent@0__:…) of all masters. */
/* Gives a topic a place at every master. */
void hs_subscriber_assign_key_events(struct hs_subscriber *sub, struct hs_subscriber_topic *topic);
/* Leaves the place at this connection, if there is one; or all of them. */
void hs_subscriber_drop_key_events_at(struct hs_subscriber *sub,
				      const struct hs_subscriber_topic *topic,
				      const struct hs_subscriber_conn *conn);
void hs_subscriber_drop_key_events(struct hs_subscriber *sub, struct hs_subscriber_topic *topic);
/* Whether the subscription is confirmed by all masters that can be reached. */
bool hs_subscriber_key_events_confirmed(const struct hs_subscriber_topic *topic);
/* Whether a message that came on `conn` is a key event to be taken from there. */
bool hs_subscriber_takes_key_event(const struct hs_subscriber_topic *topic,
				   const struct hs_subscriber_conn *conn, struct hs_bytes channel);

/* subscriber_topics.c */
void hs_node_subscription_begin(struct hs_subscriber *sub,
				struct hs_node_subscription *subscription,
				struct hs_subscriber_conn *conn);
/* True: `op` will be done by the server's answer. */
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
/* Gives all topics (or those at home alone) the places that the routes and home want. */
void hs_subscriber_assign_all(struct hs_subscriber *sub, bool at_pubsub_node_alone);
void hs_subscriber_confirmed(struct hs_subscriber *sub, struct hs_node_subscription *subscription);
void hs_subscriber_refused(struct hs_subscriber *sub, struct hs_node_subscription *subscription,
			   struct hs_bytes error);
/* The server ended a subscription by itself. */
void hs_subscriber_dropped(struct hs_subscriber *sub, struct hs_subscriber_conn *conn,
			   enum hs_subscriber_kind kind, struct hs_bytes name);
/* The connection is lost: everything on it must be requested again. */
void hs_subscriber_resubscribe(struct hs_subscriber *sub, struct hs_subscriber_conn *conn);
void hs_subscriber_subscribe_timeout(struct hs_subscriber *sub, struct hs_subscriber_wait *wait);
void hs_subscriber_topics_tick(struct hs_subscriber *sub);
void hs_subscriber_topics_deinit(struct hs_subscriber *sub); /* no LISTEN waits any more */

/* subscriber_conn.c */
/* Forgets what is under way; UNLISTENs among it are done. */
void hs_subscriber_conn_reset(struct hs_subscriber *sub, struct hs_subscriber_conn *conn);
/* Requests what is wanted, as far as the limits of a connection allow. */
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
bool hs_subscriber_tracking(const struct hs_subscriber *sub); /* tracking connections are wanted */
void hs_subscriber_track_confirmed(struct hs_subscriber *sub, struct hs_subscriber_conn *conn);
void hs_subscriber_track_refused(struct hs_subscriber *sub, struct hs_subscriber_conn *conn,
				 struct hs_bytes error);
/* The reply to a liveness check. */
void hs_subscriber_track_checked(struct hs_subscriber *sub, struct hs_subscriber_conn *conn,
				 struct hs_bytes reply);
void hs_subscriber_track_timeout(struct hs_subscriber *sub, struct hs_subscriber_wait *wait);
void hs_subscriber_report_changed(struct hs_subscriber *sub); /* the keys in sub->changed */
void hs_subscriber_check_tracking(struct hs_subscriber *sub); /* whether all masters are tracked */

#endif
