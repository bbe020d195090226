/* The flow: one worker's side of the redis engine, without a socket or a clock. Operations come in, requests go out
 * on pipes (pipe.h), replies come back. The flow chooses the node, follows redirects, retries what did not run, and
 * limits how long an operation waits. It knows no stage, rule or client connection. Its drivers are redis.c with
 * upstream/conn.h, the simulator, and unit tests.
 *
 *     submit ──► slot ──┬─ free ──► pipe of the node ──► … ──► reply ──┬─ an answer ──► finished
 *                       └─ held: parked ◄──── MOVED, TRYAGAIN … ───────┘
 *
 * Order, law 2 (a key under `strict` is linearizable): the operations of one client on one slot run in the order
 * in which it submitted them, whatever happens to the slot. A single server counts as one slot. When a slot gets
 * another owner, later operations are parked until the operations in flight at the old owner are back. Operations
 * that the old owner rejected are sent to the new one first. Operations with `track` or `replica_since_us` are not
 * ordered (core/op.h). Nor are those on private pipes: their client has nothing else in flight (private.c).
 *
 * Retries, law 4 (no acknowledged write lost or applied twice). The flow sends again:
 *   - an operation that the server says it did not run;
 *   - an operation whose request the kernel had not taken wholly when the connection was lost: a server runs only
 *     whole requests. Over TLS a request counts as taken once it is encrypted; a write that failed counts as taken
 *     wholly (upstream/conn.h, hs_conn_send);
 *   - a read before its deadline, unless a later write of the same client and slot was in flight behind it: the
 *     read must not see that write. This holds also for a write that is itself sent again.
 * Every other operation in flight on a lost connection ends with UNKNOWN: it may or may not have run. So, of one
 * client and slot, with the connection lost after GET a was sent and before SET b was: SET b is sent again, GET a
 * ends with UNKNOWN. A private pipe follows redirects and sends nothing else again: an operation that was not
 * wholly sent ends with CLUSTERDOWN … not sent.
 *
 * Time. No operation waits longer than `timeout_us` for its turn, and none waits for a node that has been
 * unreachable for longer than that, or that refuses the login: it fails at once, and is itself the occasion to
 * connect again, if the backoff allows it. If no attempt was made for a second beyond the backoff, the node may
 * be well again: then the operation waits for the next attempt. WATCH and blocking commands fail at once from the
 * moment their node is down until its backoff ends (private.c). A node that has answered "not now" (CLUSTERDOWN,
 * LOADING) to every operation for `timeout_us` is still sent operations, and its error is the answer: service
 * resumes with the first success.
 *
 * The flow's error replies:
 *     CLUSTERDOWN … not sent    no node, or it does not answer; the slot migrates for too long; a later operation
 *                               of the same client and slot has run
 *     CLUSTERDOWN … not run     redirected until the deadline, or until a later operation has run
 *     BUSY … not sent           a queue is full, or no private pipe is free
 *     ERR … not sent            the node refuses the login
 *     NOTRACKING … not sent     the node has no RESP3 (hs_op.track)
 *     UNKNOWN …                 above
 *     ERR … transaction ran     the server's reply to EXEC has the wrong number of elements
 *     ERR shutting down …       hs_flow_destroy: the outcome is unknown, or the operation was not sent
 *
 * Memory: an op belongs to the core from `finished` on; a node, its pipes and the routes' reference belong to the
 * flow. One thread, the worker's. */
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

/* Which node has which slot. Immutable and shared by all workers; reference counted. */
struct hs_routes {
	_Atomic uint32_t refs;
	bool cluster; /* false: one server with all slots */
	uint16_t nodes_count;
	/* Replicas, at most HS_REPLICAS_MAX of each master. They lie in `nodes` behind the masters. */
	uint16_t replicas_count;
	uint16_t node_of_slot[HS_SLOTS];		   /* or HS_NODE_NONE */
	uint16_t node_of_partition[HS_PARTITIONS_MAX + 1]; /* or HS_NODE_NONE */
	struct hs_route_node {
		char host[HS_HOST_BYTES_MAX];
		uint16_t port;
		char id[HS_NODE_ID_BYTES]; /* "": unknown */
		uint16_t partition;
		uint16_t master; /* of a replica: the index of its master */
	} nodes[];		 /* masters first, then replicas */
};

/* An unbroken row of refusals ("not now"): when it began and the last one. since_us 0: the last operation was
 * served. */
struct hs_refusals {
	uint64_t since_us, last_us;
};

/* The pipe on which a server tracks the keys that are read (fetch.c). */
struct hs_fetch_pipe {
	struct hs_pipe pipe;			      /* first */
	bool tracking;				      /* the server confirmed CLIENT TRACKING */
	bool checking;				      /* a liveness check is in flight */
	struct hs_tracking_session *tracking_session; /* NULL: the pipe was never opened */
	uint64_t used_us;			      /* for closing an idle pipe */
	/* In a cluster: the key that the next liveness check asks for; empty: none was read yet. */
	struct hs_buf key;
	bool check_key_used; /* it was asked for: choose another one */
	/* Invalidations of the key of the operation whose reply is being read: since EXEC's reply for a SET, since
	 * PTTL's for a read. */
	uint32_t invalidations_of_key;
	/* The server lacks these, as far as it has shown: RESP3; invalidations of its own writes behind EXEC;
	 * permission for EXISTS. */
	bool resp2_only, writes_untracked, checks_by_ping;
	bool tracking_refusal_reported; /* calls->tracking_refused was called */
};

/* The pipe to a replica, or to a master for asking how far it is (replica.c). */
struct hs_replica_pipe {
	struct hs_pipe pipe; /* first */
	bool checking;	     /* INFO replication is in flight */
};

enum { HS_NODE_PIPES = 4 };

/* A master's replication offset and the time when it was asked for. */
struct hs_progress {
	uint64_t us; /* 0: unknown */
	uint64_t offset;
};

/* A server that has slots, had slots, or follows such a server. */
struct hs_node {
	struct hs_route_node at;
	uint16_t number;		   /* its index in flow->nodes */
	char text[HS_HOST_BYTES_MAX + 16]; /* host:port */
	bool listed;			   /* in the routes */
	bool lost_slots;		   /* by the routes that are just being installed */
	uint64_t asking_us; /* when the flow last sent, or wanted to send, ASKING to it; 0: never */
	struct hs_pipe shared[2]; /* RESP2, RESP3 */
	struct hs_fetch_pipe fetch;
	struct hs_replica_pipe replica;
	struct hs_pipe *pipes[HS_NODE_PIPES]; /* shared, fetch and replica */
	struct hs_link idle;		      /* idle private pipes */
	uint32_t idle_count;
	uint64_t down_since_us; /* 0: the last connection succeeded */
	struct hs_backoff backoff;
	bool unreachable; /* the last attempt to connect failed */
	/* The node answers and refuses everything, because the cluster is down or its data is loading. Writes and
	 * reads apart: a cluster may go on serving reads. */
	struct hs_refusals refused_writes, refused_reads;
	bool no_login; /* at the last attempt it refused user or password */
	char down_why[HS_REDIS_WHY_BYTES];
	/* Of a master (replica.c). */
	struct hs_node *replicas[HS_REPLICAS_MAX];
	uint16_t replicas_count;
	uint16_t replicas_next;	      /* round robin */
	uint64_t replicas_wanted_us;  /* when a read last could have used a replica */
	uint32_t replicas_checks;     /* checks since then */
	uint64_t replicas_invalid_us; /* offsets asked for before this time are void */
	struct hs_progress progress;  /* its last answer */
	char replication_id[48];
	/* Of a replica. */
	struct hs_node *master;
	uint64_t caught_up_us; /* it has applied all that its master had at that time; 0: unknown */
	/* Once its offset is this far, caught_up_us is this time. */
	struct hs_progress catch_up_target;
};

struct hs_flow_options {
	bool cluster;
	uint64_t timeout_us;	/* how long an operation may wait for its reply */
	uint32_t in_flight_max; /* operations in flight on one pipe */
	uint32_t waiting_max;	/* operations that wait for one pipe, or parked */
	uint32_t private_max;	/* private pipes of this worker */
	uint64_t seed;
	/* For hs_op.track; outlives the flow. NULL: no read is tracked. */
	struct hs_tracking_sessions *tracking_sessions;
};

struct hs_flow_calls {
	/* `op` is complete: its reply lies in op->out, or in op->answer until this returns. The core may submit more
	 * from inside. */
	void (*finished)(void *context, struct hs_now now, struct hs_op *op);
	/* Connect: hs_flow_up or hs_flow_down follows, never from inside. */
	void (*open)(void *context, struct hs_pipe *pipe);
	void (*close)(void *context, struct hs_pipe *pipe); /* at once; no hs_flow_down follows */
	void (*send)(void *context, struct hs_pipe *pipe);  /* upstream.out has bytes to send */
	void (*topology_suspect)(void *context);	    /* the routes are stale */
	/* Copies the reason why no server is known to `text`; "": unknown. May be NULL. */
	void (*unavailable_reason)(void *context, char *text, size_t size);
	/* The text of a script by its SHA-1 digest, for a server that lost it; {NULL, 0}: unknown. */
	struct hs_bytes (*script)(void *context, struct hs_bytes digest);
	/* The server invalidated a key that was read in this tracking session; NULL: all keys. In order with
	 * `finished`. */
	void (*changed)(void *context, struct hs_now now,
			const struct hs_tracking_session *tracking_session,
			const struct hs_bytes *key);
	/* Once for each node: the reason why it does not track reads. */
	void (*tracking_refused)(void *context, const struct hs_node *node, const char *why);
};

/* Written by the worker, read by any thread (INFO, HEAT). */
struct hs_flow_stats {
	/* First: the fields of struct hs_engine_counters. */
	HS_ENGINE_COUNTERS(HS_COUNTER_FIELD)
	_Atomic uint32_t waiting[HS_PARTITIONS_MAX + 1]; /* operations, by partition */
};

struct hs_flow;

struct hs_flow *hs_flow_create(const struct hs_flow_options *options,
			       const struct hs_flow_calls *calls, void *context,
			       struct hs_flow_stats *stats); /* outlives the flow */
/* Operations that are not finished are finished with an error. */
void hs_flow_destroy(struct hs_flow **flow);

/* Installs new routes; takes a reference of its own. */
void hs_flow_route(struct hs_flow *flow, struct hs_now now, const struct hs_routes *routes);

enum hs_submit hs_flow_submit(struct hs_flow *flow, struct hs_op *op);
void hs_flow_cancel(struct hs_flow *flow, struct hs_op *op);
/* CLIENT UNBLOCK: asks the server to end the wait of a blocking operation. False: it does not wait. */
bool hs_flow_unblock(struct hs_flow *flow, struct hs_op *op, bool error);

/* All operations of a round were submitted: sends them. */
void hs_flow_flush(struct hs_flow *flow, struct hs_now now);
bool hs_flow_needs_flush(const struct hs_flow *flow);
/* Deadlines, idle connections, reconnects: to be called about every 100 ms. */
void hs_flow_tick(struct hs_flow *flow, struct hs_now now);

/* Liveness checks of the tracking sessions that a cache relies on, and of the replicas that reads want. The driver
 * calls it at the interval of hs_engine_calls.check_sessions_every. */
void hs_flow_check(struct hs_flow *flow, struct hs_now now);
void hs_flow_set_caching(struct hs_flow *flow, bool caching); /* a rule lets values be cached */
/* A tracking session or a replica needs checks. */
bool hs_flow_wants_checks(const struct hs_flow *flow);

/* Events of a pipe's connection. */
void hs_flow_up(struct hs_flow *flow, struct hs_now now, struct hs_pipe *pipe);
void hs_flow_down(struct hs_flow *flow, struct hs_now now, struct hs_pipe *pipe, const char *why);
void hs_flow_receive(struct hs_flow *flow, struct hs_now now, struct hs_pipe *pipe,
		     const char *data, size_t len);

struct hs_routes *hs_routes_create(uint16_t nodes, uint16_t replicas);
void hs_routes_ref(const struct hs_routes *routes, uint32_t more);
void hs_routes_unref(const struct hs_routes **routes);

#endif
