/* Private to the flow (flow.h): its state, and what its files call in each other.
 *
 *     flow.c      entry, sending, deadlines        replies.c   replies, redirects, retries, lost connections
 *     slots.c     owners of slots, parked ops      routes.c    the shared table, and new routes
 *     fetch.c     reads and SETs for a cache       replica.c   reads from replicas
 *     private.c   pipes of one client              unblock.c   CLIENT UNBLOCK
 *     requests.c  requests of the engine itself
 *
 * The worker's thread alone. */
#ifndef HS_ENGINE_REDIS_INTERNAL_H
#define HS_ENGINE_REDIS_INTERNAL_H

#include "base/hash_table.h"
#include "base/list.h"
#include "base/prng.h"
#include "core/engine_unavailable.h"
#include "engine/redis/flow.h"
#include "upstream/redirect.h"
#include "wire/reply.h"

enum {
	HS_NODES_MAX = 1024,
	HS_PRIVATE_IDLE_MAX = 8, /* idle private pipes kept open for each node */
};
#define HS_PIPE_OUT_MAX (64 * HS_MIB)	 /* unsent bytes; beyond them operations wait */
#define HS_ENGINE_REPLY_MAX (2 * HS_GIB) /* the largest reply */
#define HS_RETRY_US 20000		 /* delay before a rejected operation is sent again */
#define HS_PRIVATE_IDLE_US 30000000	 /* how long an idle private pipe stays open */
/* reply timeout of a replica; then the read goes to the master */
#define HS_REPLICA_TIMEOUT_US 250000
#define HS_RECONNECT_US_MAX 1000000    /* upper bound of the backoff */
#define HS_REFUSAL_ROW_US_MAX 60000000 /* after a longer gap hs_refusals starts anew */

/* op->engine_state */
enum {
	HS_STATE_REJECTED = 1 << 0,	 /* sent and rejected: op->out holds the error */
	HS_STATE_SCRIPT_RESENT = 1 << 1, /* EVALSHA was sent again as EVAL */
	HS_STATE_INTERNAL = 1 << 2,	 /* a struct hs_flow_request: no client waits for it */
	HS_STATE_COUNTED = 1 << 3,	 /* counted in hs_slot_state.underway */
	HS_STATE_ASKING = 1 << 4, /* in flight behind ASKING, at the node that imports the slot */
	HS_STATE_UNTRACKED = 1 << 5, /* send it without tracking, although hs_op.track is set */
	HS_STATE_SET_REPLY = 1 << 6, /* op->out holds the SET's own reply: MULTI was refused */
	/* EXEC's reply had an invalidation inside (servers before Redis 7). */
	HS_STATE_PUSH_IN_EXEC = 1 << 7,
	/* While the operation was in flight with HS_STATE_ASKING, a later operation of its client and slot has
	 * run. */
	HS_STATE_OVERTAKEN = 1 << 8,
	/* An EXEC that is parked: after it hs_flow_release sends no other operation of the slot. */
	HS_STATE_SEND_ALONE = 1 << 9,
};

/* The parked operations of one slot. The struct exists while the slot has any. */
struct hs_slot_hold {
	struct hs_link link; /* in flow->holds */
	uint16_t slot;
	/* Rejected by a server or lost with a connection, in the order of submission; sent first. */
	struct hs_ops retries;
	struct hs_ops arrivals; /* submitted after the slot was held */
	uint64_t until_us;	/* hs_flow_release sends nothing before this time */
	bool releasing;		/* hs_flow_release is emptying it */
};

struct hs_slot_state {
	struct hs_slot_hold *hold; /* NULL: no operation is parked */
	uint32_t underway;	   /* operations sent, or waiting for a pipe */
	uint16_t node;		   /* the owner, or HS_NODE_NONE */
	uint16_t sent_to;	   /* the node to which the flow sent the operations underway */
};

/* Later operations of the slot must be parked: earlier ones are parked, or are in flight to a node that is not the
 * owner. */
static inline bool hs_slot_is_held(const struct hs_slot_state *state)
{
	return state->hold || (state->underway > 0 && state->sent_to != state->node);
}

/* The states of HS_CHUNK_SLOTS neighbouring slots. The fields that are rarely used lie in an array of their
 * own. */
enum { HS_CHUNK_SLOTS = 64, HS_CHUNKS = HS_SLOTS / HS_CHUNK_SLOTS };
struct hs_slot_chunk {
	struct hs_slot_state slots[HS_CHUNK_SLOTS];
	struct {
		/* Refusals of this slot, while its owner serves other slots. */
		struct hs_refusals refused;
		/* When the owner last answered ASK: seconds of the monotonic clock, plus 1. 0: it has not since it
		 * became the owner. */
		uint32_t ask_seen_s;
	} rare[HS_CHUNK_SLOTS];
	bool redirected; /* a node named another owner (MOVED) since the routes were installed */
};

struct hs_flow {
	struct hs_flow_options options;
	const struct hs_flow_calls *calls;
	void *context;
	struct hs_now now; /* the time of the event that the flow handles */
	struct hs_prng prng;
	struct hs_node *nodes[HS_NODES_MAX];
	uint16_t nodes_count;		/* entries of the array in use, with gaps */
	const struct hs_routes *routes; /* NULL: none yet */
	uint16_t *numbers; /* index in `nodes` of each node of the routes; or HS_NODE_NONE */
	struct hs_slot_chunk *chunks[HS_CHUNKS]; /* NULL: no slot of the chunk was used yet */
	bool any_refused;			 /* `rare[].refused` of some slot was set, ever */
	/* Operations with HS_STATE_ASKING, by client. */
	struct hs_hash_table ask_redirects;
	struct hs_link holds;
	uint32_t parked;	      /* in all holds */
	uint64_t order;		      /* hs_op.engine_order of the last submitted operation */
	struct hs_link dirty;	      /* pipes with bytes to send or to be closed */
	struct hs_link private_pipes; /* pipes that serve a client */
	/* pipes that serve a client, and idle ones; without pipes that were given up */
	uint32_t private_count;
	struct hs_flow_stats *stats;
	uint32_t fetch_pipes; /* number of fetch pipes that are up */
	bool caching;	      /* a rule lets values be cached */
	/* when a read last could have used a replica of any node; 0: no replica needs checks */
	uint64_t replicas_wanted_us;
};

static inline bool hs_op_is_read(const struct hs_op *op)
{
	return op->kind == HS_OP_COMMAND && (op->command->flags & HS_CMD_READONLY) &&
	       !(op->command->flags & HS_CMD_WRITE);
}

/* If the owner has answered no ASK for this long, it has finished or cancelled the migration. */
enum { HS_MIGRATING_S = 10 };

/* ---- nodes and slots ---- */

/* The flow has routes with at least one node. */
static inline bool hs_flow_is_routed(const struct hs_flow *flow)
{
	return flow->routes && flow->routes->nodes_count > 0;
}

/* Converts an index in routes->nodes to the index in flow->nodes. */
static inline uint16_t hs_flow_listed(const struct hs_flow *flow, uint16_t node)
{
	return node == HS_NODE_NONE ? node : flow->numbers[node];
}

/* NULL: none. */
static inline struct hs_node *hs_flow_node_of_partition(const struct hs_flow *flow,
							uint16_t partition)
{
	uint16_t node = hs_flow_listed(flow, flow->routes->node_of_partition[partition]);

	return node == HS_NODE_NONE ? NULL : flow->nodes[node];
}

struct hs_slot_chunk *hs_slots_add(struct hs_flow *flow, uint16_t slot);
static inline struct hs_slot_chunk *hs_flow_chunk(struct hs_flow *flow, uint16_t slot)
{
	struct hs_slot_chunk *chunk = flow->chunks[slot / HS_CHUNK_SLOTS];

	return __builtin_expect(chunk != NULL, 1) ? chunk : hs_slots_add(flow, slot);
}

/* The caller has checked that the flow has routes. */
static inline struct hs_slot_state *hs_flow_slot_state(struct hs_flow *flow, uint16_t slot)
{
	return &hs_flow_chunk(flow, slot)->slots[slot % HS_CHUNK_SLOTS];
}

/* The slot's owner has answered ASK for it within HS_MIGRATING_S: it is migrating the slot to another node. */
static inline bool hs_slot_is_migrating(struct hs_flow *flow, uint16_t slot)
{
	uint32_t ask_seen_s = hs_flow_chunk(flow, slot)->rare[slot % HS_CHUNK_SLOTS].ask_seen_s;

	return ask_seen_s > 0 &&
	       flow->now.mono_us / 1000000 < (uint64_t)ask_seen_s + HS_MIGRATING_S;
}

static inline bool hs_flow_is_late(const struct hs_flow *flow, const struct hs_op *op)
{
	return flow->now.mono_us > op->engine_deadline_us;
}

static inline bool hs_pipe_has_room(const struct hs_flow *flow, const struct hs_pipe *pipe)
{
	return pipe->upstream.state == HS_UPSTREAM_UP &&
	       pipe->in_flight.count < flow->options.in_flight_max &&
	       pipe->upstream.out.len < HS_PIPE_OUT_MAX;
}

/* The slot whose order the operation keeps: operations of one client and one hs_flow_slot run in order. A single
 * server has one slot for all operations. */
static inline uint16_t hs_flow_slot(const struct hs_flow *flow, const struct hs_op *op)
{
	return flow->options.cluster ? op->slot : 0;
}

/* flow.c */
/* Sends an operation to a node, or queues it there. `asking`: sends ASKING in front, for a slot that the node
 * imports, and never queues the operation. False: not sent; op->out holds the error, or is unchanged if
 * `asking`. */
bool hs_flow_send(struct hs_flow *flow, struct hs_node *node, struct hs_op *op, bool asking);
void hs_flow_finish(struct hs_flow *flow, struct hs_op *op);
/* Writes an error to op->out in place of the server's reply. */
#define hs_flow_write_error(op, ...)                                                               \
	((op)->out->len = 0, (op)->answer.len = 0,                                                 \
	 hs_reply_errorf(&(struct hs_reply){.out = (op)->out, .resp = (op)->resp}, __VA_ARGS__))
/* Finishes the operation with an error. */
#define hs_flow_fail(flow, op, ...) (hs_flow_write_error(op, __VA_ARGS__), hs_flow_finish(flow, op))
/* Writes an error to op->out, counts the operation as refused, and is false. */
#define hs_flow_refuse(flow, op, ...)                                                              \
	(hs_flow_write_error(op, __VA_ARGS__), hs_counter_add(&(flow)->stats->refused, 1), false)
/* The error for an operation whose node is down or refuses the login. Returns `text`. */
enum { HS_UNREACHABLE_BYTES = 640 };
const char *hs_flow_unreachable_text(const struct hs_node *node, const char *why, char *text,
				     size_t size);
/* Sends an operation again, ahead of operations submitted later. False: the operation is not sent; op->out holds
 * its error, and the caller finishes it. A caller with several operations places all of them before it finishes
 * the first: a client that gets its reply may submit its next operation at once. */
bool hs_flow_place_again(struct hs_flow *flow, struct hs_op *op) HS_MUSTCHECK;
void hs_flow_finish_all(struct hs_flow *flow, struct hs_ops *ops);
/* Sends operations of pipe->waiting, as many as the pipe has room for: they move to pipe->in_flight. */
void hs_flow_pump(struct hs_flow *flow, struct hs_pipe *pipe);
/* Called at each tick: closes the pipe if `op`, its oldest operation, is past the deadline. A long request or
 * reply that makes progress extends the deadline. `op` NULL: the pipe has none. */
void hs_flow_close_overdue(struct hs_flow *flow, struct hs_pipe *pipe, const struct hs_op *op);
/* hs_flow_flush then sends its bytes or closes it */
void hs_flow_mark_dirty(struct hs_flow *flow, struct hs_pipe *pipe);
/* Makes the next flush close the pipe. `blameless`: the node is not marked as down. */
void hs_flow_close(struct hs_flow *flow, struct hs_pipe *pipe, const char *why, bool blameless);
void hs_flow_count_waiting(struct hs_flow *flow, const struct hs_pipe *pipe, int more);
/* Moves the node's counts of waiting operations to the new partition, too. */
void hs_flow_set_partition(struct hs_flow *flow, struct hs_node *node, uint16_t partition);
void hs_flow_connect(struct hs_flow *flow, struct hs_pipe *pipe); /* the pipe must be down */
/* Connects the pipe if it is down and the backoffs of the pipe and its node allow it. */
void hs_flow_open(struct hs_flow *flow, struct hs_pipe *pipe);
/* The node at this address; creates it. NULL: too many nodes. */
struct hs_node *hs_flow_node(struct hs_flow *flow, struct hs_bytes host, uint16_t port);
void hs_flow_free_node(struct hs_flow *flow, struct hs_node **node);

/* slots.c */
struct hs_node *hs_flow_owner(struct hs_flow *flow, uint16_t slot); /* NULL: none */
/* Records the owner that a MOVED named. The next routes replace it. */
void hs_slot_set_owner(struct hs_flow *flow, uint16_t slot, uint16_t node);
/* Installs the slots' owners from flow->routes. `before`: the previous routes if their nodes have the same numbers
 * in the flow; otherwise NULL. */
void hs_slots_route(struct hs_flow *flow, const struct hs_routes *before);
/* Sends an operation to the owner of the slot, or parks it. False: refused, the error is in op->out. */
bool hs_slot_place(struct hs_flow *flow, struct hs_op *op, uint16_t slot);
/* Ends the operation's part in hs_slot_state.underway. */
void hs_flow_leave_slot(struct hs_flow *flow, struct hs_op *op);
/* Parks a rejected operation for at least `delay_us`. False: a later operation of its client has run. Then op->out
 * holds an error, and the caller finishes the operation. */
bool hs_flow_park_retry(struct hs_flow *flow, struct hs_op *op, uint64_t delay_us) HS_MUSTCHECK;
/* Sends the parked operations of a slot, unless the slot must wait (hs_slot_hold.until_us, operations
 * underway). */
void hs_flow_release(struct hs_flow *flow, uint16_t slot);
void hs_flow_release_all(struct hs_flow *flow);
/* `by` has run. Parked operations of its client and slot that were submitted earlier must not run after it: an
 * operation ends with the error that rejected it; one that was lost with a connection, with CLUSTERDOWN a later
 * command ran … not sent. */
void hs_flow_overtaken(struct hs_flow *flow, const struct hs_op *by);
/* Adds an operation that was sent behind ASKING to flow->ask_redirects; the second function removes it. */
void hs_slot_add_asking(struct hs_flow *flow, struct hs_op *op);
void hs_slot_forget_asking(struct hs_flow *flow, struct hs_op *op);
void hs_slots_tick(struct hs_flow *flow);
void hs_slots_deinit(struct hs_flow *flow);

/* replies.c */
#define HS_FLOW_UNKNOWN                                                                            \
	"UNKNOWN the connection to %s was lost before it answered (%s): the command may or may "   \
	"not have run; heatsink does not repeat it"
extern const struct hs_backoff_limits hs_flow_backoff;
/* `reply`: an error reply, from '-' to the line end. */
static inline bool hs_flow_is_redirect(struct hs_bytes reply, struct hs_redirect *redirect)
{
	return hs_redirect_parse(redirect, (struct hs_bytes){reply.data + 1, reply.len - 3});
}
/* Returns the node that a redirect names. A MOVED makes this node the owner of the slot. NULL: the address is
 * unknown, or there are too many nodes. */
struct hs_node *hs_flow_redirected(struct hs_flow *flow, const struct hs_pipe *pipe,
				   const struct hs_redirect *redirect);

/* Finishes the operation with the server's reply. */
void hs_flow_answer(struct hs_flow *flow, struct hs_pipe *pipe, struct hs_op *op,
		    struct hs_bytes reply, bool owned);
/* kind->reply of shared pipes: finishes the operation, unless hs_flow_handle_error takes the error. */
void hs_flow_handle_reply(struct hs_flow *flow, struct hs_pipe *pipe, struct hs_op *op,
			  struct hs_bytes reply, bool owned);
/* Handles a redirect, a refusal or a lost script. True: the operation is parked, sent again or finished. False:
 * the error is the answer; op->out is empty. */
bool hs_flow_handle_error(struct hs_flow *flow, struct hs_pipe *pipe, struct hs_op *op,
			  struct hs_bytes error);
/* Returns the error that decides what to do with the operation. If EXEC fails because the server refused a queued
 * command, that command's error decides; but if EXEC itself is answered with a redirect, the redirect decides,
 * because the slot has moved since. `said` gets the contents of op->out if they are the error that is returned;
 * op->out is emptied. */
struct hs_bytes hs_flow_cause(struct hs_op *op, struct hs_bytes reply, struct hs_buf *said);
/* The pipe is down: sends its operations again or finishes them (flow.h, Retries). */
void hs_flow_requeue(struct hs_flow *flow, struct hs_pipe *pipe, const char *why);
/* A pipe of the node is up whose kind has `is_health`. */
bool hs_node_is_reached(const struct hs_node *node);

/* fetch.c */
/* An operation with hs_op.track can use the node's fetch pipe. */
bool hs_fetch_pipe_is_for(const struct hs_flow *flow, const struct hs_node *node,
			  const struct hs_op *op);
void hs_fetch_pipe_invalidate(struct hs_node *node); /* voids the node's cache entries */

uint64_t hs_flow_deadline(const struct hs_flow *flow, const struct hs_op *op);

/* requests.c: requests that the engine sends by itself, without a client. */
struct hs_flow_request {
	struct hs_op op;    /* first; engine_state has HS_STATE_INTERNAL */
	struct hs_buf text; /* the request */
	struct hs_buf out;
	/* Called with the reply or error before the request is freed; may be NULL. */
	void (*answered)(struct hs_flow *flow, const struct hs_op *op);
};
/* `line`: the words of the request; NULL: the caller composes `text`. hs_flow_send_internal sends the request on a
 * pipe that is up; hs_flow_send_internal_to_node sends it like any operation. */
struct hs_flow_request *hs_flow_request(const struct hs_flow *flow, uint8_t resp,
					uint64_t timeout_us, const char *line);
void hs_flow_send_internal(struct hs_flow *flow, struct hs_pipe *pipe,
			   struct hs_flow_request *request);
void hs_flow_send_internal_to_node(struct hs_flow *flow, struct hs_node *node,
				   struct hs_flow_request *request);
void hs_flow_request_done(struct hs_flow *flow, struct hs_op *op); /* called by hs_flow_finish */

/* replica.c: reads from replicas */
void hs_replica_route(struct hs_flow *flow); /* new routes were installed */
/* The slots of `node` changed or are uncertain: the known offsets do not show any more how fresh its replicas
 * are. */
void hs_replica_invalidate(struct hs_flow *flow, struct hs_node *node);
/* Sends a read to a replica. False: no replica is known to be fresh enough, or the operation cannot use one. */
bool hs_replica_send(struct hs_flow *flow, struct hs_op *op);
void hs_replica_check(struct hs_flow *flow);

/* How CLIENT UNBLOCK ends a blocking command. */
enum hs_unblock { HS_UNBLOCK_NO, HS_UNBLOCK_TIMEOUT, HS_UNBLOCK_ERROR };

/* private.c: pipes for one client at a time. */
struct hs_private_pipe {
	struct hs_pipe pipe; /* first */
	struct hs_link link; /* in flow->private_pipes or node->idle */
	bool idle;	     /* serves no client */
	bool given_up;	     /* being closed, replaced; not in private_count */
	bool asking;	     /* the waiting operation goes behind ASKING */
	uint64_t watcher;    /* the client that watches keys on this connection; 0: none */
	uint64_t idle_us;    /* when the pipe became idle */
	/* CLIENT UNBLOCK to be sent; NO: it is done or was never requested */
	enum hs_unblock unblock;
	bool unblocked;	 /* CLIENT UNBLOCK was ever requested on this pipe */
	bool unblocking; /* CLIENT UNBLOCK is in flight */
	uint32_t unblock_tries;
};
static inline struct hs_private_pipe *hs_private_at(struct hs_link *link)
{
	return hs_list_entry(link, struct hs_private_pipe, link);
}
/* The private pipe that `op` waits for or is in flight on; NULL: none. */
static inline struct hs_private_pipe *hs_private_of(const struct hs_op *op)
{
	return op->engine_state & HS_STATE_ASKING ? NULL : op->engine_data;
}
enum hs_submit hs_private_submit(struct hs_flow *flow, struct hs_op *op);
bool hs_private_is_for(const struct hs_op *op);
void hs_private_tick(struct hs_flow *flow);
void hs_private_deinit(struct hs_flow *flow);

/* unblock.c: CLIENT UNBLOCK */
/* Sends CLIENT UNBLOCK if one is due and the connection that waits is known. */
void hs_unblock_send(struct hs_flow *flow, struct hs_private_pipe *priv);

#endif
