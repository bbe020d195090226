/* One operation for an engine: what the core hands over the I/O line and gets back finished. The
 * core owns the op and everything it points to, and leaves it alone until it is completed; the
 * engine writes the reply into op->out and owns `next` and `engine_data` meanwhile. */
#ifndef HS_CORE_OP_H
#define HS_CORE_OP_H

#include "base/buf.h"
#include "base/bytes.h"
#include "base/now.h"
#include "base/tracking_session.h"
#include "command/command.h"

#include <stdbool.h>
#include <stdint.h>

enum hs_op_kind {
	HS_OP_COMMAND, /* run argv */
	HS_OP_EXEC,    /* run all of `tx` as one, if `watcher` is clean; drops its watches */
	HS_OP_WATCH,   /* watch argv[1…] for `watcher` */
	HS_OP_UNWATCH, /* drop all watches of `watcher` */
	/* News (core/event.h): argv is SUBSCRIBE, PSUBSCRIBE or SSUBSCRIBE and one channel or pattern.
	 * Sent for the first of a worker's clients that wants it and done when nothing published
	 * from then on is missed; and for the last one that does not want it any more. A worker
	 * has at most one of them under way for a name. An engine keeps what a worker listens to
	 * as a set: to ask twice, or to leave what is not there, is fine. An error reply to LISTEN
	 * goes to the clients that wait. */
	HS_OP_SUBSCRIBE,
	HS_OP_UNSUBSCRIBE,
	/* Keys that change: TRACK for the first of a worker's clients that tracks, UNTRACK for the
	 * last; they come in turn and take effect in the order submitted. They name no key, and
	 * partition 0. From a TRACK that is done on, the engine tells of changes as engine/engine.h
	 * says, until every worker that tracked has said UNTRACK. An error in reply to TRACK is the
	 * client's answer, and nothing is tracked then. */
	HS_OP_TRACK,
	HS_OP_UNTRACK,

	/* Not for engines: the driver carries these to another core, or to the process itself. */
	HS_OP_PEER, /* worker number `partition` does its part of argv: hs_core_peer */
	HS_OP_HOST, /* CONFIG, INFO, HEAT … */
};

enum hs_submit {
	HS_SUBMIT_DONE,	  /* the reply is in op->out already */
	HS_SUBMIT_QUEUED, /* the op will be completed later, once */
	/* An unordered read that cannot be answered at once after all: nothing was done; submit it
	 * again as `ordered`. */
	HS_SUBMIT_REFUSED,
};

/* The slot of an operation that has no key: its partition says where it goes. */
enum { HS_SLOT_NONE = 0xffff };

struct hs_op_tx_command {
	const struct hs_command *command;
	const struct hs_bytes *argv;
	size_t argc;
	/* Non-empty: a command that needs no engine (PING, TIME …), answered already. */
	struct hs_bytes answered;
	uint8_t frequency; /* as in struct hs_op */
	bool missed;	   /* as in struct hs_op */
};

struct hs_op_tx {
	struct hs_op_tx_command *commands; /* of which an engine sets `missed` */
	size_t count;
};

struct hs_op {
	enum hs_op_kind kind;
	uint8_t resp;	   /* 2 or 3: how the reply is written */
	uint8_t frequency; /* what OBJECT FREQ answers: an engine does not know it */
	bool ordered;	   /* must run behind this connection's earlier operations */
	bool missed;	   /* set by an engine that knows: none of the keys it read was there */
	/* What is read, or what a plain SET key value [EX|PX …] leaves behind, is to be kept (a command
	 * with one key, in RESP3): the engine has itself told when it changes, and says in `vouch` who
	 * would tell. It has a way of its own: it is in no order with what its connection has under way,
	 * so there must be nothing on the same key. An engine whose server cannot answer in RESP3 at all
	 * answers with an error that begins with NOVOUCH, at once, and nothing was done: the same
	 * operation without `track` is served. */
	bool track;
	/* A read that need not come from the key's master: whoever is known to have had everything at this
	 * time (mono) that the master had may answer it. It is in no order with anything, like `track`. 0:
	 * the master alone. An engine may take no notice. */
	uint64_t replica_since_us;
	uint16_t slot;
	uint16_t partition;
	const struct hs_command *command;
	const struct hs_bytes *argv;
	size_t argc;
	const struct hs_op_tx *tx; /* HS_OP_EXEC */
	uint64_t watcher;	   /* names the connection; 0: watches nothing */
	bool has_watches;	   /* HS_OP_WATCH: other keys are watched already */
	uint64_t client;	   /* the connection, for who must keep its order */
	struct hs_now received;	   /* a read at once judges expiry by it, others when they run */
	uint64_t since_us;	   /* when its wait began, if before `received`; or 0 */
	/* The request as the client sent it, to be passed on as it is; empty: compose it of argv.
	 * HS_OP_HOST: "user NAME at ADDRESS" of the client, for the log; empty: not known. */
	struct hs_bytes raw;
	struct hs_buf *out; /* the reply goes here, behind what is there already */
	/* Or, of an engine that answers on the worker's own thread, lies here until the completion
	 * returns: then it is copied once. */
	struct hs_bytes answer;
	/* Set by an engine that completes an operation without its reply, because that is large: the
	 * core has it written (hs_core_calls.make), or not, when it knows whether the client takes it. */
	bool reply_unwritten;
	/* Set by an engine, of `track`: hears of every change of the key from this reply on, as long as its
	 * epoch is this one; NULL: nobody does. Behind an error it means nothing. */
	struct hs_tracking_session *tracking_session;
	uint64_t tracking_epoch;
	/* The same, of a read: how long the key has to live, in ms and rounded up; -1: it does not end;
	 * 0: not known. */
	int64_t ttl_ms;
	/* Set by an engine, of `replica_since_us`: a replica is asked, or was, that had at this time what its
	 * master had; 0: the master. It may change while the operation is under way. */
	uint64_t replica_caught_up_us;

	/* The engine's, between submit and completion. */
	struct hs_op *next; /* for its queues */
	void *engine_data;
	uint64_t engine_mark;
	uint64_t engine_order;
	uint64_t engine_deadline_us;
	uint32_t engine_replies;
	uint32_t engine_state;

	uint32_t worker; /* where the completion goes */
	void *owner;	 /* the core's: the request this op is part of */
};

/* Operations in a row, linked by op->next. */
struct hs_ops {
	struct hs_op *first, *last;
	uint32_t count;
};

static inline void hs_ops_push(struct hs_ops *ops, struct hs_op *op)
{
	op->next = NULL;
	if (ops->last)
		ops->last->next = op;
	else
		ops->first = op;
	ops->last = op;
	ops->count++;
}

/* NULL: empty. */
static inline struct hs_op *hs_ops_pop(struct hs_ops *ops)
{
	struct hs_op *op = ops->first;

	if (!op)
		return NULL;
	ops->first = op->next;
	if (!ops->first)
		ops->last = NULL;
	ops->count--;
	op->next = NULL;
	return op;
}

#endif
