/* The subscriber of the redis engine: pub/sub messages and invalidations from Redis servers, subscribed
 * once for all clients of all workers.
 *
 *     LISTEN a ──► topic a ──► place at a connection ──► SUBSCRIBE a ──► confirmed ──► done
 *                                  │  ▲
 *                    lost, moved,  ▼  │  at another connection, or at the same one again
 *                    refused     wanted
 *
 * A topic is a channel, a pattern or a shard channel that at least one worker listens to. Each node has
 * up to two connections: one for topics, and one that tracks keys (the tracking connection). Channels and
 * patterns are subscribed at one node, home: the node of partition 0, where PUBLISH goes to, or another one
 * while that is away. Key events are subscribed at every other master as well (subscriber_key_events.c). A
 * shard channel is subscribed at the owner of its slot. A topic that moves keeps its old place until the
 * new one is confirmed, and its messages are taken from one of the two only.
 *
 * What the subscriber promises, and what it does not:
 *
 *   - After LISTEN is done, every message published to the topic is told, until UNLISTEN or until
 *     HS_EVENT_UNSUBSCRIBED. Messages published while a connection is lost are lost, as they are for any
 *     client of Redis; a server that drops a slow subscriber (client-output-buffer-limit pubsub) has the
 *     same effect. The first loss of a connection that was well is logged.
 *   - While home is another node, because its own was away or has lost partition 0, and when it moves back,
 *     a message that is on the way between the nodes of the Cluster may be missed or told twice.
 *   - The subscription of a shard channel follows its slot. Messages published between the two owners may
 *     be missed. HS_EVENT_UNSUBSCRIBED is told when no server served the slot for HS_SUBSCRIBER_FOLLOW_US_MAX.
 *   - While a worker tracks keys, each changed key is told as HS_EVENT_CHANGED as soon as the server says
 *     so. When a master's tracking connection is lost, silent or new, when the master says that its Cluster
 *     is down, or when a slot has another owner, HS_EVENT_CHANGED_ALL is told at once, then every
 *     HS_SUBSCRIBER_CHANGED_ALL_US until all masters are tracked, and once more then: no cache entry outlives an
 *     invalidation that was missed by more than that.
 *     A master without slots is not among the routes and is not tracked: what is written to it while its
 *     first slot is on the way there is told when the routes say that the slot has arrived.
 *
 * The subscriber is sans-IO: each call into it brings the time, and what it wants and what it hears
 * leaves through struct hs_subscriber_calls. Its drivers are monitor_thread.h, the simulator and unit
 * tests. A driver connects, greets and moves bytes (struct hs_upstream), and calls hs_subscriber_tick
 * every HS_SUBSCRIBER_TICK_US or so. One thread.
 *
 * Limits: HS_CHANNELS_MAX, HS_CHANNEL_NAMES_BYTES_MAX and HS_EVENT_BYTES_MAX (base/limits.h). */
#ifndef HS_ENGINE_REDIS_SUBSCRIBER_H
#define HS_ENGINE_REDIS_SUBSCRIBER_H

#include "base/log.h"
#include "core/event.h"
#include "core/op.h"
#include "engine/redis/flow.h"
#include "upstream/upstream.h"

enum {
	HS_SUBSCRIBER_TICK_US = 100 * 1000,
	/* A LISTEN or TRACK that is not confirmed after this long fails. */
	HS_SUBSCRIBER_CONFIRM_US_MAX = 5 * 1000 * 1000,
	/* A shard channel that no server serves is given up after this long. */
	HS_SUBSCRIBER_FOLLOW_US_MAX = 30 * 1000 * 1000,
	HS_SUBSCRIBER_RETRY_US = 200 * 1000, /* between two requests for what was refused */
	/* A connection that is silent for PING is asked whether it lives; one that tracks keys, every PING. Its
	 * tracking counts as lost when it then does not answer for SUSPECT, and the connection is closed when it
	 * does not for SILENT. */
	HS_SUBSCRIBER_PING_US = 1000 * 1000,
	HS_SUBSCRIBER_SUSPECT_US = 1000 * 1000,
	HS_SUBSCRIBER_SILENT_US_MAX = 15 * 1000 * 1000,
	HS_SUBSCRIBER_CHANGED_ALL_US =
		1000 * 1000, /* between two CHANGED_ALL while a master is not tracked */
	HS_SUBSCRIBER_OPEN_US_MIN = 25 * 1000, /* backoff */
	HS_SUBSCRIBER_OPEN_US_MAX = 2000 * 1000,
	HS_SUBSCRIBER_IDLE_US =
		10 * 1000 * 1000,	  /* an unused connection is kept open for so long */
	HS_SUBSCRIBER_PENDING_MAX = 4096, /* subscriptions under way on one connection; more wait */
};

struct hs_subscriber_options {
	struct hs_log *log;
	bool cluster; /* false: one server, which has everything */
	uint64_t seed;
};

struct hs_subscriber_calls {
	/* Connect to this node and greet in `upstream->resp`: hs_subscriber_up or hs_subscriber_down
	 * follows, not from inside. `at` lasts as long as the connection. */
	void (*open)(void *context, struct hs_upstream *upstream, const struct hs_route_node *at);
	void (*close)(void *context, struct hs_upstream *upstream); /* the subscriber forgets it */
	void (*send)(void *context, struct hs_upstream *upstream);  /* what is in upstream->out */
	void (*event)(void *context, struct hs_event *event); /* the reference is handed over */
	void (*done)(void *context,
		     struct hs_op *op); /* an op of hs_subscriber_submit; reply in op->out */
	void (*topology_suspect)(void *context); /* a slot is not where the routes say */
};

struct hs_subscriber;

struct hs_subscriber *hs_subscriber_create(const struct hs_subscriber_options *options,
					   const struct hs_subscriber_calls *calls, void *context);
/* Ops that are not done yet are done now, with an error. */
void hs_subscriber_destroy(struct hs_subscriber **subscriber);

/* HS_OP_SUBSCRIBE, UNLISTEN, TRACK, UNTRACK, of any worker. Done, from inside or later, when the server
 * (or all masters) confirmed; with an error when a server refuses or none can be asked in time. */
void hs_subscriber_submit(struct hs_subscriber *sub, uint64_t now_us, struct hs_op *op);
/* Where the slots are from now on; the caller keeps its own reference. */
void hs_subscriber_route(struct hs_subscriber *sub, uint64_t now_us,
			 const struct hs_routes *routes);
void hs_subscriber_tick(struct hs_subscriber *sub, uint64_t now_us);

/* What happened to a connection that `open` was called for. */
void hs_subscriber_up(struct hs_subscriber *sub, uint64_t now_us, struct hs_upstream *upstream);
void hs_subscriber_down(struct hs_subscriber *sub, uint64_t now_us, struct hs_upstream *upstream,
			const char *why);
void hs_subscriber_receive(struct hs_subscriber *sub, uint64_t now_us, struct hs_upstream *upstream,
			   const char *data, size_t len);

#endif
