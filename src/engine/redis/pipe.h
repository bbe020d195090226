/* One connection to a node as a pipeline, without the socket: a connection (upstream.h), and the
 * operations that wait for its replies in order. The flow (flow.h) owns pipes and decides; the driver
 * (upstream/conn.h) moves their bytes. One worker's thread. */
#ifndef HS_ENGINE_REDIS_PIPE_H
#define HS_ENGINE_REDIS_PIPE_H

#include "base/list.h"
#include "core/op.h"
#include "upstream/upstream.h"

struct hs_node;

struct hs_flow;
struct hs_pipe;

/* What a kind of pipe does where kinds differ. NULL: nothing. */
struct hs_pipe_kind {
	uint8_t resp; /* the dialect that it is opened in */
	/* What its connections meet with tells how the node is. Of the other kinds it counts only while no
	 * pipe of these is up; and then, too, whether the node lets them in, if `shares_login`. */
	bool is_health;
	bool shares_login;
	/* Why it is closed when no reply comes in time, and whether the node is well nevertheless. */
	const char *timeout_reason;
	bool timeout_blameless;
	/* Writes the request of an operation behind what is there: it is in flight from then on. With
	 * `asking` the node is told that it is to answer for a slot that is just moving there. */
	void (*compose)(struct hs_pipe *pipe, struct hs_op *op, bool asking);
	void (*up)(struct hs_flow *flow, struct hs_pipe *pipe);
	/* What is in flight and waiting goes elsewhere or ends. */
	void (*down)(struct hs_flow *flow, struct hs_pipe *pipe, bool was_up, const char *why);
	/* A reply on the way to the last one of an operation (op->engine_replies). */
	void (*skipped)(struct hs_pipe *pipe, struct hs_op *op, struct hs_bytes reply);
	/* The last one, which answers it (hs_flow_answer) or says why it did not run. op->out has what was
	 * kept of those before. `owned`: it is all of upstream.partial, which may be swapped away. */
	void (*reply)(struct hs_flow *flow, struct hs_pipe *pipe, struct hs_op *op,
		      struct hs_bytes reply, bool owned);
	void (*push)(struct hs_flow *flow, struct hs_pipe *pipe, struct hs_bytes push);
	void (*tick)(struct hs_flow *flow, struct hs_pipe *pipe);
	void (*deinit)(struct hs_pipe *pipe);
};

/* Shared by all clients: */
extern const struct hs_pipe_kind hs_resp2_pipes, hs_resp3_pipes;
extern const struct hs_pipe_kind hs_fetch_pipes;   /* tracks what is read on it: fetch.c */
extern const struct hs_pipe_kind hs_replica_pipes; /* what a replica may answer: replica.c */
/* For one client at a time: WATCH, BLPOP, SCRIPT KILL: private.c */
extern const struct hs_pipe_kind hs_private_pipes;

struct hs_pipe {
	const struct hs_pipe_kind *kind;
	struct hs_node *node;
	struct hs_upstream upstream; /* with a close reason it is closed with the next flush */
	bool hello_only;      /* it is not asked which node it leads to, nor for a database */
	struct hs_link dirty; /* in the flow's list while it has bytes to send or is to be closed */
	struct hs_ops waiting;	 /* not composed yet */
	struct hs_ops in_flight; /* composed; their replies come in this order */
	uint64_t progress_us;	 /* when more came of something long, or went: 0: nothing is long */
	uint64_t sent_seen;	 /* upstream.sent, when it was last looked at */
};

void hs_pipe_init(struct hs_pipe *pipe, const struct hs_pipe_kind *kind, struct hs_node *node);
void hs_pipe_deinit(struct hs_pipe *pipe); /* nothing waits or is in flight any more */
void hs_pipe_reset(struct hs_pipe *pipe);  /* a new connection begins */

/* kind->compose of pipes on which nothing goes before a request but ASKING. */
void hs_pipe_compose(struct hs_pipe *pipe, struct hs_op *op, bool asking);
/* The same behind `replies` requests that were composed from `start` on and whose replies are skipped. */
void hs_pipe_compose_behind(struct hs_pipe *pipe, struct hs_op *op, bool asking, size_t start,
			    uint32_t replies);
void hs_pipe_compose_op(struct hs_buf *out, const struct hs_op *op); /* its request alone */
/* kind->skipped: keeps the first error in op->out. */
void hs_pipe_keep_error(struct hs_pipe *pipe, struct hs_op *op, struct hs_bytes reply);

/* A transaction's reply with the elements that needed no engine put in their places. False: what
 * came is no such reply. */
bool hs_pipe_splice(const struct hs_op *op, struct hs_bytes reply, struct hs_buf *out);

#endif
