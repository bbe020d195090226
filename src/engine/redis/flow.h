/* One worker's side of the redis engine, without a socket or a clock: operations come in, requests
 * for pipes go out, replies come back, and what they say is done about: redirects, retries, waits.
 * The driver (redis.c with upstream/conn.h) is one caller, unit tests are another.
 *
 *     submit ──► slot ──┬─ free ──► node's pipe ──► … ──► reply ──┬─ an answer ──► finished
 *                       └─ held: parked ◄──── moved, not now ─────┘
 *
 * The order of one client's operations on a slot is the order in which they run, whatever happens to
 * the slot (law 2). While a slot's operations are under way at one node and its owner is another by
 * now, later ones are parked until the earlier ones are back: those that were turned away go first.
 *
 * What may be sent twice (law 4): what a server says it did not run; what was not wholly handed to
 * the kernel; and reads, unless a later write of the same client was lost with them, which the read
 * must not see. Everything else ends in an error that says that the outcome is unknown.
 *
 * Nobody waits for what has not come for longer than anybody may wait: a node that cannot be reached
 * is given up, and so is one that has turned everybody away for so long. Everything is still sent to
 * the latter, and what it says is the answer: so the first one that it serves again is served. */
#ifndef HS_ENGINE_REDIS_FLOW_H
#define HS_ENGINE_REDIS_FLOW_H

#include "base/limits.h"
#include "base/now.h"
#include "engine/engine.h"
#include "engine/redis/pipe.h"
#include "engine/redis/tracking_sessions.h"
#include "upstream/greeting.h"
#include "upstream/url.h"

#include <stdatomic.h>

enum { HS_NODE_NONE = 0xffff, HS_HOST_BYTES_MAX = 256, HS_REPLICAS_MAX = 5 };

/* Which node has which slot. Immutable and shared by the workers; the last to let go frees it. */
struct hs_routes {
	_Atomic uint32_t refs;
	bool cluster; /* false: one server, which has everything */
	uint16_t nodes_count;
	uint16_t
		replicas_count; /* more of them, that follow one of the others: HS_REPLICAS_MAX each */
	uint16_t node_of_slot[HS_SLOTS];		   /* or HS_NODE_NONE */
	uint16_t node_of_partition[HS_PARTITIONS_MAX + 1]; /* or HS_NODE_NONE */
	struct hs_route_node {
		char host[HS_HOST_BYTES_MAX];
		uint16_t port;
		char id[HS_NODE_ID_BYTES]; /* "": not known */
		uint16_t partition;
		uint16_t master; /* of a replica: its master's place among the nodes */
	} nodes[];		 /* behind those that have slots are the replicas */
};

/* Since when everybody who asked was told "not now", and when last; 0: somebody was served since. */
struct hs_refusals {
	uint64_t since_us, last_us;
};

/* The pipe on which a server tracks what is read (fetch.c). */
struct hs_fetch_pipe {
	struct hs_pipe pipe; /* first */
	bool tracking;	     /* the server has said that it tells of changes */
	bool checking;	     /* a liveness check is under way */
	struct hs_tracking_session
		*tracking_session; /* its tracking session; NULL: never wanted yet */
	uint64_t used_us;	   /* when last */
	struct hs_buf key; /* in a cluster: what the next liveness check asks for; empty: nothing */
	bool check_key_used; /* take another one for the next */
	/* Told of its key: behind EXEC of the write whose turn it is, behind PTTL of the read. */
	uint32_t invalidations_of_key;
	/* What the server does not do, as it said when it was last asked: RESP3, tracked writes, EXISTS. */
	bool resp2_only, writes_untracked, checks_by_ping;
	bool tracking_refusal_reported; /* that it does not tell of changes was passed on */
};

/* The pipe for what a replica may answer (replica.c). */
struct hs_replica_pipe {
	struct hs_pipe pipe; /* first */
	bool checking;	     /* it was asked for INFO replication */
};

enum { HS_NODE_PIPES = 4 };

/* How far a master was in its stream of changes when it was asked. */
struct hs_progress {
	uint64_t us; /* when that was; 0: not known */
	uint64_t offset;
};

/* A server that has or had slots. */
struct hs_node {
	struct hs_route_node at;
	uint16_t number;		   /* its place among the nodes of the flow */
	char text[HS_HOST_BYTES_MAX + 16]; /* host:port */
	bool listed;			   /* in the routes */
	bool lost_slots;		   /* to others, by the routes just being read */
	uint64_t
		asking_us; /* when the flow last wanted to send it a command with ASKING; 0: never */
	struct hs_pipe shared[2]; /* in RESP2, in RESP3 */
	struct hs_fetch_pipe fetch;
	struct hs_replica_pipe replica;
	struct hs_pipe *pipes[HS_NODE_PIPES]; /* all of these */
	struct hs_link idle;		      /* private pipes that nobody uses */
	uint32_t idle_count;
	uint64_t down_since_us; /* 0: it was well when last heard of */
	struct hs_backoff backoff;
	bool unreachable; /* the last try to connect failed */
	/* It is there, and says that it serves nothing: the cluster is down, its data is loading. Of
	 * writes and of reads, which a cluster may go on serving. */
	struct hs_refusals refused_writes, refused_reads;
	bool no_login; /* at the last try it refused the user or the password */
	char down_why[HS_REDIS_WHY_BYTES];
	/* Of a master (replica.c). */
	struct hs_node *replicas[HS_REPLICAS_MAX];
	uint16_t replicas_count;
	uint16_t replicas_next;	      /* whose turn it is */
	uint64_t replicas_wanted_us;  /* when somebody last would have asked one */
	uint32_t replicas_checks;     /* since then */
	uint64_t replicas_invalid_us; /* what was asked until then proves nothing */
	struct hs_progress progress;  /* as it last said */
	char replication_id[48];
	/* Of a replica. */
	struct hs_node *master;
	uint64_t caught_up_us; /* it had all that its master had at that time; 0: nobody knows */
	struct hs_progress catch_up_target; /* when it is there, that is the next proof */
};

struct hs_flow_options {
	bool cluster;
	uint64_t timeout_us;	/* an operation may wait so long for its reply */
	uint32_t in_flight_max; /* operations under way on one pipe */
	uint32_t waiting_max;	/* and waiting for it, or for a slot */
	uint32_t private_max;	/* pipes for one client */
	uint64_t seed;
	struct hs_tracking_sessions *
		tracking_sessions; /* for hs_op.track; outlives the flow. NULL: nothing is tracked */
};

struct hs_flow_calls {
	/* One is done: its reply in op->out, or in op->answer until this returns. More may be
	 * submitted from inside. */
	void (*finished)(void *context, struct hs_now now, struct hs_op *op);
	/* Connect: hs_flow_up or hs_flow_down follows, not from inside. */
	void (*open)(void *context, struct hs_pipe *pipe);
	void (*close)(void *context, struct hs_pipe *pipe); /* at once, and no word more about it */
	void (*send)(void *context, struct hs_pipe *pipe);  /* it has something to send */
	void (*topology_suspect)(void *context); /* the cluster is not what the routes say */
	/* Why no server is known, as text; "" when that is not known. May be NULL. */
	void (*unavailable_reason)(void *context, char *text, size_t size);
	/* The text of a script by its digest, for a server that has lost it; {NULL, 0}: not known. */
	struct hs_bytes (*script)(void *context, struct hs_bytes digest);
	/* A key that was read under this tracking session has changed; NULL: every one may have. In order with
	 * what is finished. */
	void (*changed)(void *context, struct hs_now now,
			const struct hs_tracking_session *tracking_session,
			const struct hs_bytes *key);
	/* Once for a node: why it does not track what is read. */
	void (*tracking_refused)(void *context, const struct hs_node *node, const char *why);
};

/* For INFO and HEAT; any thread. */
struct hs_flow_stats {
	/* First: a struct hs_engine_counters. */
	HS_ENGINE_COUNTERS(HS_COUNTER_FIELD)
	_Atomic uint32_t waiting[HS_PARTITIONS_MAX + 1]; /* by partition */
};

struct hs_flow;

struct hs_flow *hs_flow_create(const struct hs_flow_options *options,
			       const struct hs_flow_calls *calls, void *context,
			       struct hs_flow_stats *stats); /* outlives the flow */
/* Everything was finished, or is now, with an error. */
void hs_flow_destroy(struct hs_flow **flow);

/* Where everything is from now on; the caller keeps its own reference. */
void hs_flow_route(struct hs_flow *flow, struct hs_now now, const struct hs_routes *routes);

enum hs_submit hs_flow_submit(struct hs_flow *flow, struct hs_op *op);
void hs_flow_cancel(struct hs_flow *flow, struct hs_op *op);
/* CLIENT UNBLOCK: has the server end the wait of an operation; false: it does not wait. */
bool hs_flow_unblock(struct hs_flow *flow, struct hs_op *op, bool error);

/* All of a round has been submitted: send. */
void hs_flow_flush(struct hs_flow *flow, struct hs_now now);
bool hs_flow_needs_flush(const struct hs_flow *flow);
/* Every 100 ms or so. */
void hs_flow_tick(struct hs_flow *flow, struct hs_now now);

/* Liveness checks of the tracking sessions that a cache relies on, and of replicas that are wanted: to be
 * called every so often. */
void hs_flow_check(struct hs_flow *flow, struct hs_now now);
void hs_flow_set_caching(struct hs_flow *flow,
			 bool caching); /* whether anything is kept from now on */
/* Whether there is anything to check. */
bool hs_flow_wants_checks(const struct hs_flow *flow);

/* What happened to a pipe. */
void hs_flow_up(struct hs_flow *flow, struct hs_now now, struct hs_pipe *pipe);
void hs_flow_down(struct hs_flow *flow, struct hs_now now, struct hs_pipe *pipe, const char *why);
void hs_flow_receive(struct hs_flow *flow, struct hs_now now, struct hs_pipe *pipe,
		     const char *data, size_t len);

struct hs_routes *hs_routes_create(uint16_t nodes, uint16_t replicas);
void hs_routes_ref(const struct hs_routes *routes, uint32_t more);
void hs_routes_unref(const struct hs_routes **routes);

#endif
