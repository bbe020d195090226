/* One operation for an engine: the core, which does no I/O, hands it to the engine, which does, and gets it back
 * finished.
 *
 * The core owns the operation and everything it points to, and does not touch it between submit and completion.
 * Meanwhile the engine writes the reply and owns `next` and the engine_ fields. The worker's thread submits and
 * completes; the engine may use other threads in between. engine/engine.h says what an engine promises. An
 * operation whose connection to a server is lost completes with an error reply (-UNKNOWN if it may have run). */
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
	/* Run all of `tx` as one unit, if no key that `watcher` watches has changed; drops its watches. */
	HS_OP_EXEC,
	HS_OP_WATCH,   /* watch the keys argv[1…] for `watcher` */
	HS_OP_UNWATCH, /* drop all watches of `watcher` */
	/* Published messages (core/event.h): argv is SUBSCRIBE, PSUBSCRIBE or SSUBSCRIBE and one channel or
	 * pattern. The worker submits SUBSCRIBE for the first of its clients that wants the name; the operation
	 * completes when every message published from then on will arrive. It submits UNSUBSCRIBE when its last
	 * such client has left. A worker has at most one of these in flight for a name. Both are idempotent: an
	 * engine keeps the subscriptions of a worker as a set. An error reply to SUBSCRIBE goes to the clients
	 * that wait. */
	HS_OP_SUBSCRIBE,
	HS_OP_UNSUBSCRIBE,
	/* Changed keys, for CLIENT TRACKING: TRACK for the first of a worker's clients that tracks, UNTRACK for
	 * the last. They alternate, and take effect in the order submitted. They name no key and have partition
	 * 0. From the completion of TRACK on, the engine reports changes as engine/engine.h says, until every
	 * worker that tracked has sent UNTRACK. An error reply to TRACK is the client's reply, and nothing is
	 * tracked then. */
	HS_OP_TRACK,
	HS_OP_UNTRACK,

	/* Not for engines: the driver passes these to another worker's core, or to the control thread. */
	HS_OP_PEER, /* worker number `partition` runs its part of argv: hs_core_peer */
	HS_OP_HOST, /* CONFIG, INFO, HEAT … */
};

enum hs_submit {
	HS_SUBMIT_DONE,	  /* the reply is in op->out */
	HS_SUBMIT_QUEUED, /* the operation will complete later, exactly once */
	/* An unordered read that the engine cannot answer at once; nothing was done. The core submits it again
	 * as `ordered`. */
	HS_SUBMIT_REFUSED,
};

/* The slot of an operation without keys; its partition says where it goes. */
enum { HS_SLOT_NONE = 0xffff };

struct hs_op_tx_command {
	const struct hs_command *command;
	const struct hs_bytes *argv;
	size_t argc;
	/* Non-empty: the reply of a command that needs no engine (PING, TIME …). */
	struct hs_bytes answered;
	uint8_t frequency; /* as in struct hs_op */
	bool missed;	   /* as in struct hs_op */
};

struct hs_op_tx {
	struct hs_op_tx_command *commands; /* the engine sets their `missed` */
	size_t count;
};

struct hs_op {
	enum hs_op_kind kind;
	uint8_t resp;	   /* protocol version of the reply: 2 or 3 */
	uint8_t frequency; /* the result of OBJECT FREQ; the core knows it, the engine does not */
	bool ordered; /* must run after this connection's earlier operations on the partition */
	bool missed;  /* set by an engine that knows: none of the keys it read exists */
	/* The reply to this read, or the value of this plain SET key value [EX|PX …], is to be cached (a
	 * command with one key, in RESP3). The engine arranges that the server invalidates it, and sets
	 * `tracking_session`. Not ordered with the connection's other operations: the caller must have none in
	 * flight on this key. An engine whose server has no RESP3 answers at once with an error that begins
	 * with NOTRACKING, and nothing was done; the sender then submits the operation without `track`. */
	bool track;
	/* A read that a replica may answer: one that is known to have applied everything that the master had at
	 * this monotonic time. Like `track`, not ordered with other operations. 0: the master must answer. An
	 * engine may ignore it. */
	uint64_t replica_since_us;
	uint16_t slot;
	uint16_t partition;
	const struct hs_command *command;
	const struct hs_bytes *argv;
	size_t argc;
	const struct hs_op_tx *tx; /* HS_OP_EXEC */
	uint64_t watcher;	   /* the connection's id; 0: the connection watches nothing */
	bool has_watches;	   /* HS_OP_WATCH: the connection watches other keys already */
	uint64_t client;	   /* id of the connection whose order the engine keeps */
	/* The time for expiry of a read answered at once; other operations use the time when they run. */
	struct hs_now received;
	uint64_t since_us; /* when the request began to wait, if before `received`; or 0 */
	/* The request as the client sent it, to be passed on unchanged; empty: compose it of argv. HS_OP_HOST:
	 * "user NAME at ADDRESS" of the client, for the log; empty: unknown. */
	struct hs_bytes raw;
	struct hs_buf *out; /* the engine appends the reply */
	/* An engine that completes on the worker's own thread may put the reply here instead. The bytes stay
	 * until the completion returns; the core copies them once. */
	struct hs_bytes answer;
	/* Set by an engine that completes an operation without its reply, because the reply is large. The core
	 * decides whether the client can take the reply, and calls hs_core_calls.write_reply. */
	bool reply_unwritten;
	/* Set by an engine for `track`: the session in which the server reports every change of the key after
	 * this reply, as long as its epoch is `tracking_epoch`; NULL: none does. Meaningless with an error
	 * reply. */
	struct hs_tracking_session *tracking_session;
	uint64_t tracking_epoch;
	/* Set by an engine for a read with `track`: the key's remaining TTL in ms, rounded up; -1: no expiry;
	 * 0: unknown. */
	int64_t ttl_ms;
	/* Set by an engine for `replica_since_us`: the monotonic time up to which the replica that answers has
	 * its master's changes; 0: the master answers. It may change while the operation is in flight. */
	uint64_t replica_caught_up_us;

	/* The engine's own fields, between submit and completion. */
	struct hs_op *next; /* for the engine's queues */
	void *engine_data;
	uint64_t engine_mark;
	uint64_t engine_order;
	uint64_t engine_deadline_us;
	uint32_t engine_replies;
	uint32_t engine_state;

	uint32_t worker; /* the worker that gets the completion */
	void *owner;	 /* the core's: struct hs_request */
};

/* A queue of operations, linked by op->next. */
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

/* NULL: the queue is empty. */
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
