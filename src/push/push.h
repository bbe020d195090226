/* Messages that clients get without a request: pub/sub messages, and invalidations for CLIENT TRACKING. One
 * stage, the first in the row.
 *
 *     pubsub.c                 SUBSCRIBE and its kin; delivery of messages
 *     publish.c                PUBLISH, SPUBLISH, PUBSUB
 *     topics.c                 which sessions subscribe to which topics
 *     tracking*.c              CLIENT TRACKING (push/tracking.h)
 *     push.c                   the stage
 *
 * Commands come through the core's table of commands (core/commands.h), the engine's events through the stage's
 * `event` point. The folder knows the core, commands, the ACL and the wire format. It must not know mitigations
 * (absorb), local commands, sockets or which engine runs.
 *
 * Every call is on the worker's thread. Counters may be read by any thread. Invalidations that CLIENT TRACKING
 * REDIRECT sends to a connection of another worker travel there in a call between workers.
 *
 * Bad days. Limits of subscriptions are errors to the client that exceeds them. When the tracking table is
 * full, a random key is evicted and its readers get an invalidation. When the engine may have missed changes,
 * every tracking client gets an invalidation of all keys. */
#ifndef HS_PUSH_PUSH_H
#define HS_PUSH_PUSH_H

#include "core/stage.h"
#include "core/state.h"
#include "push/stats.h"
#include "push/topics.h"

struct hs_tracker;	/* CLIENT TRACKING settings of a connection: push/tracking.h */
struct hs_tracking;	/* a worker's tracking state */
struct hs_topic_change; /* a topic in a SUBSCRIBE or UNSUBSCRIBE: push/pubsub.c */

#define HS_PUSH_NOT_SUBSCRIBED                                                                     \
	"ERR the server ended the subscription to this channel; subscribe again"

struct hs_push_stage {
	struct hs_core *core;
	struct hs_push_stats stats;
	uint32_t index; /* in the array of stages */
	size_t session_at, request_at;
	struct hs_topics topics;
	struct hs_tracking *tracking;
	struct hs_buf message; /* a message while it is composed for all its receivers */
};

struct hs_push_session {
	struct hs_tracker *tracker;		      /* CLIENT TRACKING; NULL: off */
	struct hs_link subscriptions[HS_TOPIC_KINDS]; /* oldest first */
	uint32_t confirmed_counts[HS_TOPIC_KINDS];
	/* Number of requests the connection had sent when all tracked keys were last dropped. The replies of
	 * writes up to that number are followed by an invalidation (tracking_own_writes.c). */
	uint64_t forgotten_requests;
};

struct hs_push_request {
	/* SUBSCRIBE, UNSUBSCRIBE, RESET: one per topic, freed with the request */
	struct hs_topic_change *changes;
	/* Answers such a request when none of its topics waits for the engine any longer. */
	void (*settled)(struct hs_core *core, struct hs_request *request);
	/* CLIENT TRACKING ON: the next request that waits for the engine */
	struct hs_request *next;
};

static inline struct hs_push_stage *hs_push_of(const struct hs_core *core)
{
	return core->stages.self[hs_stage_index(core, &hs_stage_push)];
}

static inline struct hs_push_session *hs_push_session(const struct hs_core *core,
						      const struct hs_session *session)
{
	return hs_stage_session(session, hs_push_of(core)->session_at);
}

static inline struct hs_push_request *hs_push_request(const struct hs_core *core,
						      const struct hs_request *request)
{
	return hs_stage_request(request, hs_push_of(core)->request_at);
}

/* ends all, without replies */
void hs_pubsub_drop(struct hs_core *core, struct hs_session *session);
/* RESET: ends all subscriptions. `then` writes the reply, which is sent when the engine has dropped its
 * subscriptions. */
void hs_pubsub_reset(struct hs_core *core, struct hs_session *session, const struct hs_call *call,
		     void (*then)(struct hs_core *core, struct hs_session *session,
				  struct hs_reply *reply));
/* Sends a message to all subscribers of the topic; returns how many got it. */
int64_t hs_pubsub_deliver(struct hs_core *core, const struct hs_topic *topic,
			  struct hs_bytes channel, struct hs_bytes payload,
			  struct hs_request *publisher);
void hs_pubsub_event(struct hs_core *core, const struct hs_event *event);

/* publish.c: whether a command about channels must wait for its client's requests in flight. */
bool hs_publish_waits(const struct hs_core *core, const struct hs_session *session,
		      struct hs_call *call);

#endif
