/* The subscriber: receives pub/sub messages and invalidations from Redis servers, subscribed once for all clients
 * of all workers. It knows topics and workers; it knows no client, cache or mitigation.
 *
 *     SUBSCRIBE op ──► topic ──► subscription at a node: wanted ──► requested ──► confirmed ──► op done
 *                                                          ▲                          │
 *                                                          └─ lost, moved, refused ◄──┘
 *
 * A topic is a channel, a pattern or a shard channel that at least one worker has subscribed. Each node has up to
 * two connections: one for topics, one that tracks keys (the tracking connection). Channels and patterns are
 * subscribed at one node, the pub/sub node: the node of partition 0, which also gets every PUBLISH, or another
 * node while that one is down. Key events are subscribed at every other master as well (subscriber_key_events.c).
 * A shard channel is subscribed at the owner of its slot. A topic that moves keeps its old subscription until the
 * new one is confirmed; the subscriber takes the topic's messages from one of the two only.
 *
 * The subscriber's guarantees, and their limits:
 *
 *   - After a SUBSCRIBE op is done, every message published to the topic is reported, until UNSUBSCRIBE or
 *     HS_EVENT_UNSUBSCRIBED. Messages published while a connection is down are lost, as for any client of Redis.
 *     The same happens when a server disconnects a slow subscriber (client-output-buffer-limit pubsub). The first
 *     loss of a working connection is logged.
 *   - While another node than partition 0's is the pub/sub node, and when partition 0's node becomes the pub/sub
 *     node again, a message in flight between the nodes of the Cluster may be missed or reported twice.
 *   - The subscription of a shard channel follows its slot. Messages that are published while the slot changes
 *     owners may be missed. HS_EVENT_UNSUBSCRIBED is reported when the slot had no server for
 *     HS_SUBSCRIBER_FOLLOW_US_MAX.
 *   - While a worker tracks keys, each changed key is reported as HS_EVENT_CHANGED as soon as the server sends
 *     it. HS_EVENT_CHANGED_ALL is reported when a master's tracking connection is lost, silent or new, when the
 *     master reports that its Cluster is down, and when a slot gets another owner: at once, then every
 *     HS_SUBSCRIBER_CHANGED_ALL_US until all masters are tracked, and a last time when they are. So a client's
 *     cache entry outlives a missed invalidation by about two seconds at most: HS_SUBSCRIBER_PING_US and
 *     HS_SUBSCRIBER_SUSPECT_US pass until a connection that hangs is noticed. A master without slots is not in the
 *     routes and not tracked: a write to it while its first slot migrates there is reported when the routes list
 *     it.
 *
 * The subscriber is sans-IO: each call brings the time, and the subscriber acts through struct
 * hs_subscriber_calls. Its drivers are monitor_thread.h, the simulator and unit tests. A driver connects, greets
 * and moves bytes (struct hs_upstream), and calls hs_subscriber_tick about every HS_SUBSCRIBER_TICK_US. One
 * thread.
 *
 * Limits: HS_CHANNELS_MAX, HS_CHANNEL_NAMES_BYTES_MAX and HS_EVENT_BYTES_MAX (base/limits.h); a SUBSCRIBE beyond
 * them fails with an error. */
#ifndef HS_ENGINE_REDIS_SUBSCRIBER_H
#define HS_ENGINE_REDIS_SUBSCRIBER_H

#include "base/log.h"
#include "core/event.h"
#include "core/op.h"
#include "engine/redis/flow.h"
#include "upstream/upstream.h"

enum {
	HS_SUBSCRIBER_TICK_US = 100 * 1000,
	/* A SUBSCRIBE or TRACK op that is not confirmed after this time fails. */
	HS_SUBSCRIBER_CONFIRM_US_MAX = 5 * 1000 * 1000,
	/* A shard channel whose slot has no server for this time is given up. */
	HS_SUBSCRIBER_FOLLOW_US_MAX = 30 * 1000 * 1000,
	/* Pause before a refused subscription is requested again. */
	HS_SUBSCRIBER_RETRY_US = 200 * 1000,
	/* Liveness checks. A connection for topics is checked when no byte came for PING_US; a tracking connection
	 * is checked every PING_US. A tracking connection that does not answer for SUSPECT_US counts as not
	 * tracked. Any connection that does not answer for SILENT_US_MAX is closed. */
	HS_SUBSCRIBER_PING_US = 1000 * 1000,
	HS_SUBSCRIBER_SUSPECT_US = 1000 * 1000,
	HS_SUBSCRIBER_SILENT_US_MAX = 15 * 1000 * 1000,
	/* Interval of HS_EVENT_CHANGED_ALL while a master is not tracked. */
	HS_SUBSCRIBER_CHANGED_ALL_US = 1000 * 1000,
	HS_SUBSCRIBER_OPEN_US_MIN = 25 * 1000, /* backoff of connections: lower and upper bound */
	HS_SUBSCRIBER_OPEN_US_MAX = 2000 * 1000,
	/* an unused connection is closed after this time */
	HS_SUBSCRIBER_IDLE_US = 10 * 1000 * 1000,
	HS_SUBSCRIBER_PENDING_MAX = 4096, /* requests in flight on one connection */
};

struct hs_subscriber_options {
	struct hs_log *log;
	bool cluster; /* false: one server with all slots */
	uint64_t seed;
};

struct hs_subscriber_calls {
	/* Connect to this node and greet in `upstream->resp`. Then call hs_subscriber_up or hs_subscriber_down,
	 * never from inside. `at` is valid as long as the connection. */
	void (*open)(void *context, struct hs_upstream *upstream, const struct hs_route_node *at);
	/* Disconnect; do not call hs_subscriber_down. */
	void (*close)(void *context, struct hs_upstream *upstream);
	void (*send)(void *context, struct hs_upstream *upstream); /* upstream->out has bytes */
	/* A message, or changed keys. The callee takes over the reference. */
	void (*event)(void *context, struct hs_event *event);
	/* `op` of hs_subscriber_submit is complete. */
	void (*done)(void *context, struct hs_op *op);
	void (*topology_suspect)(void *context); /* the routes are stale */
};

struct hs_subscriber;

struct hs_subscriber *hs_subscriber_create(const struct hs_subscriber_options *options,
					   const struct hs_subscriber_calls *calls, void *context);
/* Completes pending ops with an error. */
void hs_subscriber_destroy(struct hs_subscriber **subscriber);

/* HS_OP_SUBSCRIBE, UNSUBSCRIBE, TRACK and UNTRACK of any worker. calls->done is called, from inside or later, when
 * the server (for TRACK: all masters) has confirmed. It is called with an error when a server refuses or does not
 * answer in time. */
void hs_subscriber_submit(struct hs_subscriber *sub, uint64_t now_us, struct hs_op *op);
/* Installs new routes; takes its own reference to them. */
void hs_subscriber_route(struct hs_subscriber *sub, uint64_t now_us,
			 const struct hs_routes *routes);
void hs_subscriber_tick(struct hs_subscriber *sub, uint64_t now_us);

/* Events of a connection that calls->open was asked for. */
void hs_subscriber_up(struct hs_subscriber *sub, uint64_t now_us, struct hs_upstream *upstream);
void hs_subscriber_down(struct hs_subscriber *sub, uint64_t now_us, struct hs_upstream *upstream,
			const char *why);
void hs_subscriber_receive(struct hs_subscriber *sub, uint64_t now_us, struct hs_upstream *upstream,
			   const char *data, size_t len);

#endif
