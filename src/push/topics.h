/* Private to push/: which sessions of a worker subscribe to which topics. A topic is a channel, a pattern or a
 * shard channel with at least one subscription, confirmed or not. A subscription ties one session to one topic.
 *
 *     topics ── topic ──── subscription ──── session
 *                 │   └─── subscription ──── session
 *                 └ state of the engine's subscription
 *
 * A subscription exists from the moment the client requests it. It is confirmed when the engine is subscribed
 * and the client is told so; only confirmed ones get messages. This module stores; push/pubsub.c decides. It
 * knows no engine and no reply, and does not check limits (base/limits.h). Names are copied. One thread, the
 * worker's. */
#ifndef HS_PUSH_TOPICS_H
#define HS_PUSH_TOPICS_H

#include "base/bytes.h"
#include "base/hash_table.h"
#include "base/list.h"
#include "command/command.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hs_session;
struct hs_topic_call; /* an engine operation about a topic: push/pubsub.c */

/* State of the engine's subscription. At most one engine operation about a topic is in flight, so that one
 * client's UNSUBSCRIBE and another's SUBSCRIBE cannot overtake each other. */
enum hs_topic_state {
	HS_TOPIC_UNSUBSCRIBED,
	HS_TOPIC_SUBSCRIBING, /* HS_OP_SUBSCRIBE is in flight */
	HS_TOPIC_SUBSCRIBED,
	HS_TOPIC_UNSUBSCRIBING, /* HS_OP_UNSUBSCRIBE is in flight */
};

struct hs_topic {
	struct hs_hash_node node; /* in topics->named */
	struct hs_link same_kind; /* in topics->of_kind */
	enum hs_topic_kind kind;
	enum hs_topic_state state;
	bool dropped;  /* the engine ended the subscription while HS_OP_SUBSCRIBE was in flight */
	uint32_t refs; /* subscriptions, confirmed or not, and temporary holds */
	uint32_t confirmed_count;	   /* number of confirmed subscriptions */
	struct hs_link confirmed;	   /* confirmed subscriptions, oldest first */
	struct hs_link waiting;		   /* requests that wait for the engine: push/pubsub.c */
	struct hs_topic_call *engine_call; /* the operation in flight, or NULL */
	char *error;			   /* why the last HS_OP_SUBSCRIBE failed, or NULL */
	struct hs_bytes name;		   /* bytes lie behind the struct */
};

struct hs_subscription {
	struct hs_hash_node node;  /* in topics->pairs */
	struct hs_link of_topic;   /* in topic->confirmed, else linked to itself */
	struct hs_link of_session; /* in hs_push_session.subscriptions of its kind */
	struct hs_topic *topic;
	struct hs_session *session;
	bool confirmed;
};

struct hs_topics {
	struct hs_hash_table named;		/* topics by kind and name */
	struct hs_hash_table pairs;		/* subscriptions by topic and session */
	struct hs_link of_kind[HS_TOPIC_KINDS]; /* oldest first */
	size_t name_bytes;
	uint64_t seed;
	size_t session_at;
};

/* `session_at`: offset of hs_push_session in a session. */
void hs_topics_init(struct hs_topics *topics, uint64_t seed, size_t session_at);
void hs_topics_deinit(struct hs_topics *topics); /* there must be no topics left */

struct hs_topic *hs_topic_find(const struct hs_topics *topics, enum hs_topic_kind kind,
			       struct hs_bytes name);
struct hs_topic *hs_topic_get(struct hs_topics *topics, enum hs_topic_kind kind,
			      struct hs_bytes name); /* creates it if it does not exist */
/* The topic must have no reference, no waiting request and no operation in flight. */
void hs_topic_destroy(struct hs_topics *topics, struct hs_topic **topic);

struct hs_subscription *hs_subscription_find(const struct hs_topics *topics,
					     const struct hs_topic *topic,
					     const struct hs_session *session);
/* Adds an unconfirmed subscription; the session must not have one to this topic. */
struct hs_subscription *hs_subscription_add(struct hs_topics *topics, struct hs_topic *topic,
					    struct hs_session *session);
/* Confirms the subscription. */
void hs_subscription_begin(const struct hs_topics *topics, struct hs_subscription *subscription);
/* Frees the subscription; the topic stays. */
void hs_subscription_end(struct hs_topics *topics, struct hs_subscription **subscription);

#endif
