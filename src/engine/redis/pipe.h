/* A pipe: one connection to a node (upstream.h) and the operations that wait for its replies, in order. It has no
 * socket: the driver (upstream/conn.h) moves its bytes. It decides nothing: the flow (flow.h) owns pipes, chooses
 * what goes out on them and handles what comes back. Pipes differ by kind (struct hs_pipe_kind). One worker's
 * thread. */
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
	uint8_t resp; /* the dialect of HELLO */
	/* is_health: a failed connection of this kind marks the node as down. Failures of other kinds count only
	 * while no is_health pipe is up. shares_login: a refused login on this kind counts as well. */
	bool is_health;
	bool shares_login;
	/* Why a pipe is closed whose reply does not come in time. timeout_blameless: the node is not marked as down
	 * for it. */
	const char *timeout_reason;
	bool timeout_blameless;
	/* Appends the request of `op` to upstream.out; `op` is in flight from then on. `asking`: behind ASKING, for
	 * a slot that the node is importing. */
	void (*compose)(struct hs_pipe *pipe, struct hs_op *op, bool asking);
	void (*up)(struct hs_flow *flow, struct hs_pipe *pipe);
	/* Sends the pipe's operations again or finishes them. */
	void (*down)(struct hs_flow *flow, struct hs_pipe *pipe, bool was_up, const char *why);
	/* A reply in front of the last one of an operation (op->engine_replies are left): to ASKING, MULTI,
	 * QUEUED … */
	void (*skipped)(struct hs_pipe *pipe, struct hs_op *op, struct hs_bytes reply);
	/* The last reply of an operation: answers it (hs_flow_answer) or handles the error. op->out has what
	 * `skipped` stored. `owned`: the reply is all of upstream.partial, whose buffer may be swapped away. */
	void (*reply)(struct hs_flow *flow, struct hs_pipe *pipe, struct hs_op *op,
		      struct hs_bytes reply, bool owned);
	void (*push)(struct hs_flow *flow, struct hs_pipe *pipe, struct hs_bytes push);
	void (*tick)(struct hs_flow *flow, struct hs_pipe *pipe);
	void (*deinit)(struct hs_pipe *pipe);
};

/* Shared by all clients. */
extern const struct hs_pipe_kind hs_resp2_pipes, hs_resp3_pipes;
extern const struct hs_pipe_kind hs_fetch_pipes;   /* for a cache, with CLIENT TRACKING: fetch.c */
extern const struct hs_pipe_kind hs_replica_pipes; /* reads from replicas: replica.c */
/* One client at a time: WATCH, BLPOP, SCRIPT KILL (private.c). */
extern const struct hs_pipe_kind hs_private_pipes;

struct hs_pipe {
	const struct hs_pipe_kind *kind;
	struct hs_node *node;
	/* If it has a close_reason the next flush closes it. */
	struct hs_upstream upstream;
	bool hello_only; /* greeted with HELLO alone, without CLUSTER MYID and SELECT */
	/* In flow->dirty while the pipe has bytes to send or is to be closed. */
	struct hs_link dirty;
	struct hs_ops waiting;	 /* not composed yet */
	struct hs_ops in_flight; /* composed; replies come in this order */
	/* Last progress of a reply or request that takes several reads or writes; 0: none does. */
	uint64_t progress_us;
	uint64_t sent_seen; /* upstream.sent at the last tick */
};

void hs_pipe_init(struct hs_pipe *pipe, const struct hs_pipe_kind *kind, struct hs_node *node);
void hs_pipe_deinit(struct hs_pipe *pipe); /* no operation waits or is in flight */
void hs_pipe_reset(struct hs_pipe *pipe);  /* for a new connection */

/* kind->compose where only ASKING goes in front of a request. */
void hs_pipe_compose(struct hs_pipe *pipe, struct hs_op *op, bool asking);
/* The same behind `replies` other requests, composed from offset `start` of upstream.out on; their replies are
 * skipped. */
void hs_pipe_compose_behind(struct hs_pipe *pipe, struct hs_op *op, bool asking, size_t start,
			    uint32_t replies);
void hs_pipe_compose_op(struct hs_buf *out, const struct hs_op *op); /* the request alone */
/* kind->skipped: stores the first error in op->out. */
void hs_pipe_keep_error(struct hs_pipe *pipe, struct hs_op *op, struct hs_bytes reply);

/* Writes EXEC's reply with the elements that heatsink answered itself in their places. False: `reply` has another
 * number of elements. */
bool hs_pipe_splice(const struct hs_op *op, struct hs_bytes reply, struct hs_buf *out);

#endif
