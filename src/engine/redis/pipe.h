/* A pipe: one connection to a node (upstream.h) and the operations that wait for its replies, in order. It has no
 * socket: the driver (upstream/conn.h) moves its bytes. The pipe makes no decisions: the flow (flow.h) owns pipes,
 * chooses the operations that go out on them and handles the replies. Pipes differ by kind (struct hs_pipe_kind).
 * One worker's thread. */
#ifndef HS_ENGINE_REDIS_PIPE_H
#define HS_ENGINE_REDIS_PIPE_H

#include "base/list.h"
#include "core/op.h"
#include "upstream/upstream.h"

struct hs_node;

struct hs_flow;
struct hs_pipe;

/* A kind of pipe: everything that differs between kinds. A NULL function does nothing. */
struct hs_pipe_kind {
	uint8_t resp; /* the dialect in which HELLO greets */
	/* is_health: a failed connection of this kind marks the node as down. A failure of another kind does so
	 * only if no pipe with is_health is up. shares_login: a refused login on this kind marks the node, too. */
	bool is_health;
	bool shares_login;
	/* timeout_reason: the reason why a pipe is closed if a reply does not come in time. timeout_blameless:
	 * this timeout does not mark the node as down. */
	const char *timeout_reason;
	bool timeout_blameless;
	/* Appends the request of `op` to upstream.out and adds `op` to in_flight. `asking`: puts ASKING in front,
	 * for a slot that the node is importing. */
	void (*compose)(struct hs_pipe *pipe, struct hs_op *op, bool asking);
	void (*up)(struct hs_flow *flow, struct hs_pipe *pipe);
	/* The connection is down: sends the pipe's operations again or finishes them. */
	void (*down)(struct hs_flow *flow, struct hs_pipe *pipe, bool was_up, const char *why);
	/* Takes a reply that comes before the last reply of an operation: to ASKING, MULTI, QUEUED …
	 * op->engine_replies more replies precede the last one. */
	void (*skipped)(struct hs_pipe *pipe, struct hs_op *op, struct hs_bytes reply);
	/* Takes the last reply of an operation: answers the operation (hs_flow_answer) or handles the error.
	 * op->out has the bytes that `skipped` stored. `owned`: the reply is all of upstream.partial, so the
	 * callee may swap that buffer away. */
	void (*reply)(struct hs_flow *flow, struct hs_pipe *pipe, struct hs_op *op,
		      struct hs_bytes reply, bool owned);
	void (*push)(struct hs_flow *flow, struct hs_pipe *pipe, struct hs_bytes push);
	void (*tick)(struct hs_flow *flow, struct hs_pipe *pipe);
	void (*deinit)(struct hs_pipe *pipe);
};

/* Pipes that all clients share. */
extern const struct hs_pipe_kind hs_resp2_pipes, hs_resp3_pipes;
extern const struct hs_pipe_kind hs_fetch_pipes;   /* for a cache, with CLIENT TRACKING: fetch.c */
extern const struct hs_pipe_kind hs_replica_pipes; /* reads from replicas: replica.c */
/* A pipe for one client at a time: WATCH, BLPOP, SCRIPT KILL (private.c). */
extern const struct hs_pipe_kind hs_private_pipes;

struct hs_pipe {
	const struct hs_pipe_kind *kind;
	struct hs_node *node;
	/* If it has a close_reason, the next flush closes the pipe. */
	struct hs_upstream upstream;
	bool hello_only; /* greeted with HELLO alone, without CLUSTER MYID and SELECT */
	/* Linked in flow->dirty while the pipe has bytes to send or must be closed. */
	struct hs_link dirty;
	struct hs_ops waiting;	 /* operations not composed yet */
	struct hs_ops in_flight; /* operations composed; their replies come in this order */
	/* When a reply or request of several pieces last made progress; 0: no such reply or request. */
	uint64_t progress_us;
	uint64_t sent_seen; /* upstream.sent at the last tick */
};

void hs_pipe_init(struct hs_pipe *pipe, const struct hs_pipe_kind *kind, struct hs_node *node);
void hs_pipe_deinit(struct hs_pipe *pipe); /* no operation may wait or be in flight */
void hs_pipe_reset(struct hs_pipe *pipe);  /* prepares the pipe for a new connection */

/* The `compose` of kinds of pipes that send nothing but ASKING in front of a request. */
void hs_pipe_compose(struct hs_pipe *pipe, struct hs_op *op, bool asking);
/* Composes `op` like hs_pipe_compose. The caller has composed `replies` other requests in front, from offset
 * `start` of upstream.out on; their replies are skipped. */
void hs_pipe_compose_behind(struct hs_pipe *pipe, struct hs_op *op, bool asking, size_t start,
			    uint32_t replies);
void hs_pipe_compose_op(struct hs_buf *out, const struct hs_op *op); /* appends the request alone */
/* A `skipped` of kinds of pipes: stores the operation's first error in op->out. */
void hs_pipe_keep_error(struct hs_pipe *pipe, struct hs_op *op, struct hs_bytes reply);

/* Writes EXEC's reply to `out` and inserts the elements that heatsink answers itself. False: `reply` has the wrong
 * number of elements. */
bool hs_pipe_splice(const struct hs_op *op, struct hs_bytes reply, struct hs_buf *out);

#endif
