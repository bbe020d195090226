/* Private to push/: who listens to what, on one worker. A topic is a channel, a pattern or a
 * shard channel that somebody here listens to, or is about to; a subscription ties one session to
 * one topic.
 *
 *     topics ── topic ──── subscription ──── session
 *                 │   └─── subscription ──── session
 *                 └ what the engine was told about it
 *
 * A subscription holds its topic from the moment it is asked for; it is heard only when the engine
 * listens and the client is told so. The tables know nothing of engines and replies: push/pubsub.c
 * decides, this keeps. Names are copied. Limits (base/limits.h) are the caller's to check. */
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
struct hs_topic_call; /* an operation of the engine about a topic: push/pubsub.c */

/* Of the engine's subscription. At most one operation about a topic is under way, so that what one
 * client no longer wants and what another just asked for cannot overtake each other. */
enum hs_topic_state {
	HS_TOPIC_UNSUBSCRIBED,	/* there is none */
	HS_TOPIC_SUBSCRIBING,	/* LISTEN is under way */
	HS_TOPIC_SUBSCRIBED,	/* there is one */
	HS_TOPIC_UNSUBSCRIBING, /* UNLISTEN is under way */
};

struct hs_topic {
	struct hs_hash_node node; /* in topics->named */
	struct hs_link same_kind; /* in topics->of_kind */
	enum hs_topic_kind kind;
	enum hs_topic_state state;
	bool dropped;			   /* the engine let go of it while LISTEN was under way */
	uint32_t refs;			   /* subscriptions, heard or not yet */
	uint32_t confirmed_count;	   /* heard */
	struct hs_link confirmed;	   /* those, oldest first */
	struct hs_link waiting;		   /* requests that wait for the engine: push/pubsub.c */
	struct hs_topic_call *engine_call; /* the operation under way, or NULL */
	char *error;			   /* why the last LISTEN failed, or NULL */
	struct hs_bytes name;		   /* behind it */
};

struct hs_subscription {
	struct hs_hash_node node;  /* in topics->pairs */
	struct hs_link of_topic;   /* in topic->heard, or alone */
	struct hs_link of_session; /* in hs_push_session.listens of its kind */
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

/* `session_at`: where sessions have their hs_push_session. */
void hs_topics_init(struct hs_topics *topics, uint64_t seed, size_t session_at);
void hs_topics_deinit(struct hs_topics *topics); /* there are none left */

struct hs_topic *hs_topic_find(const struct hs_topics *topics, enum hs_topic_kind kind,
			       struct hs_bytes name);
struct hs_topic *hs_topic_get(struct hs_topics *topics, enum hs_topic_kind kind,
			      struct hs_bytes name); /* new when there is none */
/* Nobody holds it, nobody waits, nothing is under way. */
void hs_topic_destroy(struct hs_topics *topics, struct hs_topic **topic);

struct hs_subscription *hs_subscription_find(const struct hs_topics *topics,
					     const struct hs_topic *topic,
					     const struct hs_session *session);
/* Holds the topic; not heard yet. There is none of the two so far. */
struct hs_subscription *hs_subscription_add(struct hs_topics *topics, struct hs_topic *topic,
					    struct hs_session *session);
/* Heard from now on. */
void hs_subscription_begin(const struct hs_topics *topics, struct hs_subscription *subscription);
/* Lets go of the topic, which stays. */
void hs_subscription_end(struct hs_topics *topics, struct hs_subscription **subscription);

#endif
