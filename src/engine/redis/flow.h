/* The flow: one worker's side of the redis engine, without a socket or a clock. Operations come in, requests go
 * out on pipes (pipe.h), replies come back. The flow chooses the node, follows redirects, retries what did not
 * run, and limits how long an operation waits. It knows no stage, rule or client connection. Its drivers are
 * redis.c with upstream/conn.h, the simulator, and unit tests.
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
 *     read must not see this write. That the flow may send the write again, too, makes no difference.
 * Every other operation in flight on a lost connection ends with UNKNOWN: it may or may not have run. An example
 * with two operations of one client and slot: the flow has sent GET a and not yet SET b when the connection is
 * lost. It sends SET b again, and GET a ends with UNKNOWN. On a private pipe the flow follows redirects and sends
 * nothing else again: an operation that was not wholly sent ends with CLUSTERDOWN … not sent.
 *
 * Time. No operation waits longer than `timeout_us` for its turn. An operation for a node that has been
 * unreachable for longer than `timeout_us`, or that refuses the login, fails at once; it also makes the flow
 * connect again, if the backoff allows it. If the flow has not tried to connect for a second beyond the backoff,
 * the node may be well again: then the operation waits for the next attempt. WATCH and blocking commands fail at
 * once from the moment their node is down until its backoff ends (private.c). If a node has answered "not now"
 * (CLUSTERDOWN, LOADING) to every operation for `timeout_us`, the flow still sends operations to it, and clients
 * get the node's error: service resumes with the first success.
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
	/* The routes list `nodes_count` masters and `replicas_count` replicas, at most HS_REPLICAS_MAX of each
	 * master. */
	uint16_t replicas_count;
	uint16_t node_of_slot[HS_SLOTS];		   /* or HS_NODE_NONE */
	uint16_t node_of_partition[HS_PARTITIONS_MAX + 1]; /* or HS_NODE_NONE */
	struct hs_route_node {
		char host[HS_HOST_BYTES_MAX];
		uint16_t port;
		char id[HS_NODE_ID_BYTES]; /* "": unknown */
		uint16_t partition;
		uint16_t master; /* of a replica: index of its master in `nodes` */
	} nodes[];		 /* masters first, then replicas */
};

/* Refusals ("not now") without a served operation in between: the times of the first and the last refusal.
 * since_us 0: the last operation was served. */
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
	/* In a Cluster: the key for the next liveness check; empty: no key was read yet. */
	struct hs_buf key;
	bool check_key_used; /* a check has used `key`: replace it by the next key that is read */
	/* The number of invalidations of the key of the first operation in flight: since the reply to EXEC for a
	 * SET, since the reply to PTTL for a read. */
	uint32_t invalidations_of_key;
	/* The server has shown that it lacks RESP3 (resp2_only), invalidations of its own writes behind EXEC
	 * (writes_untracked), or permission for EXISTS (checks_by_ping). */
	bool resp2_only, writes_untracked, checks_by_ping;
	bool tracking_refusal_reported; /* calls->tracking_refused was called */
};

/* The pipe for reads from a replica and for INFO replication of a master or replica (replica.c). */
struct hs_replica_pipe {
	struct hs_pipe pipe; /* first */
	bool checking;	     /* INFO replication is in flight */
};

enum { HS_NODE_PIPES = 4 };

/* The replication offset that a master reported, and the time when the flow sent the INFO. */
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
	/* the routes that hs_flow_route installs take slots from this node */
	bool lost_slots;
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
	/* The node answers and refuses every operation, because the Cluster is down or the node is loading its
	 * data. Writes and reads are counted apart: a Cluster that is down may go on serving reads. */
	struct hs_refusals refused_writes, refused_reads;
	bool no_login; /* at the last attempt to connect, the node refused user or password */
	char down_why[HS_REDIS_WHY_BYTES];
	/* The following fields are used for a master (replica.c). */
	struct hs_node *replicas[HS_REPLICAS_MAX];
	uint16_t replicas_count;
	uint16_t replicas_next;	      /* round robin */
	uint64_t replicas_wanted_us;  /* when a read last could have used a replica */
	uint32_t replicas_checks;     /* checks since replicas_wanted_us */
	uint64_t replicas_invalid_us; /* offsets asked for before this time are void */
	struct hs_progress progress;  /* the last offset that the master reported */
	char replication_id[48];
	/* The following fields are used for a replica. */
	struct hs_node *master;
	/* the replica has applied all that its master had at this time; 0: unknown */
	uint64_t caught_up_us;
	/* When the replica has applied this offset, caught_up_us becomes catch_up_target.us. */
	struct hs_progress catch_up_target;
};

struct hs_flow_options {
	bool cluster;
	uint64_t timeout_us;	/* how long an operation may wait for its reply */
	uint32_t in_flight_max; /* operations in flight on one pipe */
	/* operations that wait for one pipe; also: parked operations of the flow */
	uint32_t waiting_max;
	uint32_t private_max; /* private pipes of this worker */
	uint64_t seed;
	/* The sessions for hs_op.track; they outlive the flow. NULL: no read is tracked. */
	struct hs_tracking_sessions *tracking_sessions;
};

struct hs_flow_calls {
	/* `op` is complete. Its reply lies in op->out, or in op->answer until this call returns. The core may
	 * submit more operations from inside the call. */
	void (*finished)(void *context, struct hs_now now, struct hs_op *op);
	/* Connect the pipe. Then call hs_flow_up or hs_flow_down, never from inside. */
	void (*open)(void *context, struct hs_pipe *pipe);
	/* disconnect at once; do not call hs_flow_down */
	void (*close)(void *context, struct hs_pipe *pipe);
	void (*send)(void *context, struct hs_pipe *pipe); /* upstream.out has bytes to send */
	void (*topology_suspect)(void *context);	   /* the routes are stale */
	/* Copies the reason why no server is known to `text`; "": unknown. May be NULL. */
	void (*unavailable_reason)(void *context, char *text, size_t size);
	/* The text of a script by its SHA-1 digest, for a server that lost it; {NULL, 0}: unknown. */
	struct hs_bytes (*script)(void *context, struct hs_bytes digest);
	/* The server invalidated `key`, which was read in this tracking session. `key` NULL: all keys of the
	 * session. Called in order with `finished`. */
	void (*changed)(void *context, struct hs_now now,
			const struct hs_tracking_session *tracking_session,
			const struct hs_bytes *key);
	/* Called once for each node that refuses to track reads; `why` is the reason. */
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

/* Installs new routes; takes its own reference to them. */
void hs_flow_route(struct hs_flow *flow, struct hs_now now, const struct hs_routes *routes);

enum hs_submit hs_flow_submit(struct hs_flow *flow, struct hs_op *op);
void hs_flow_cancel(struct hs_flow *flow, struct hs_op *op);
/* CLIENT UNBLOCK: asks the server to end the wait of a blocking operation. False: the operation does not wait. */
bool hs_flow_unblock(struct hs_flow *flow, struct hs_op *op, bool error);

/* The worker calls it after it has submitted all operations of a round of events: sends them. */
void hs_flow_flush(struct hs_flow *flow, struct hs_now now);
bool hs_flow_needs_flush(const struct hs_flow *flow);
/* Applies deadlines, closes idle connections and reconnects. To be called about every 100 ms. */
void hs_flow_tick(struct hs_flow *flow, struct hs_now now);

/* Checks the liveness of the tracking sessions that a cache relies on, and the freshness of the replicas that
 * reads want. The driver calls it at the interval of hs_engine_calls.check_sessions_every. */
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
