/* What clients are told without asking: messages of channels that they subscribed, and invalidations of keys
 * that they cache themselves (CLIENT TRACKING). One stage, the first in the row.
 *
 *     pubsub.c    SUBSCRIBE and its kin; messages to those who subscribed
 *     publish.c   PUBLISH, SPUBLISH, PUBSUB
 *     topics.c    who listens to what
 *     tracking*.c CLIENT TRACKING (push/tracking.h)
 *     push.c      the stage
 *
 * The commands come through the core's table of commands (core/commands.h), the engine's events through the
 * stage's `news`. */
#ifndef HS_PUSH_PUSH_H
#define HS_PUSH_PUSH_H

#include "core/stage.h"
#include "core/state.h"
#include "push/stats.h"
#include "push/topics.h"

struct hs_tracker;	/* what a connection that tracks wants: push/tracking.h */
struct hs_tracking;	/* what a worker knows of all that do */
struct hs_topic_change; /* a topic of SUBSCRIBE or UNSUBSCRIBE: push/pubsub.c */

#define HS_PUSH_NOT_SUBSCRIBED "ERR the engine does not listen to this channel any more; try again"

struct hs_push_stage {
	struct hs_core *core;
	struct hs_push_stats stats;
	uint32_t index; /* in the array of stages */
	size_t session_at, request_at;
	struct hs_topics topics;
	struct hs_tracking *tracking;
	struct hs_buf message; /* one being composed, for all who hear it */
};

struct hs_push_session {
	struct hs_tracker *tracker;		      /* CLIENT TRACKING; NULL: off */
	struct hs_link subscriptions[HS_TOPIC_KINDS]; /* subscriptions, oldest first */
	uint32_t confirmed_counts[HS_TOPIC_KINDS];
	/* All keys were forgotten when it had asked so many requests: those that were in flight. */
	uint64_t forgotten_requests;
};

struct hs_push_request {
	struct hs_topic_change
		*changes; /* SUBSCRIBE, UNSUBSCRIBE, RESET: one for each topic, owned */
	/* Of those: answers it when none of its wishes waits any more. */
	void (*settled)(struct hs_core *core, struct hs_request *request);
	struct hs_request *next; /* CLIENT TRACKING ON: the next that waits for the engine */
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

/* pubsub.c */
void hs_pubsub_drop(struct hs_core *core, struct hs_session *session); /* all, silently */
/* RESET: ends all subscriptions; `then` makes the reply when there are none any more. */
void hs_pubsub_reset(struct hs_core *core, struct hs_session *session, const struct hs_call *call,
		     void (*then)(struct hs_core *core, struct hs_session *session,
				  struct hs_reply *reply));
/* To all who hear the topic; how many. */
int64_t hs_pubsub_deliver(struct hs_core *core, const struct hs_topic *topic,
			  struct hs_bytes channel, struct hs_bytes payload,
			  struct hs_request *publisher);
void hs_pubsub_event(struct hs_core *core, const struct hs_event *event);

/* publish.c: whether a command about channels must wait for what its client has under way. */
bool hs_publish_waits(const struct hs_core *core, const struct hs_session *session,
		      struct hs_call *call);

#endif
