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
	HS_PRIVATE_IDLE_MAX = 8, /* idle ones kept open for each node */
};
#define HS_PIPE_OUT_MAX (64 * HS_MIB)	 /* unsent bytes; beyond them operations wait */
#define HS_ENGINE_REPLY_MAX (2 * HS_GIB) /* of one reply */
#define HS_RETRY_US 20000		 /* delay before a rejected operation is sent again */
#define HS_PRIVATE_IDLE_US 30000000	 /* an idle private pipe stays open */
#define HS_REPLICA_TIMEOUT_US 250000	 /* reply timeout of a replica; then the master is asked */
#define HS_RECONNECT_US_MAX 1000000	 /* upper bound of the backoff */
#define HS_REFUSAL_ROW_US_MAX 60000000	 /* a longer gap ends a row of refusals */

/* op->engine_state */
enum {
	HS_STATE_REJECTED = 1 << 0,	 /* sent and rejected: op->out holds the error */
	HS_STATE_SCRIPT_RESENT = 1 << 1, /* EVALSHA was sent again as EVAL */
	HS_STATE_INTERNAL = 1 << 2,	 /* a struct hs_flow_request: no client waits for it */
	HS_STATE_COUNTED = 1 << 3,	 /* counted in hs_slot_state.underway */
	HS_STATE_ASKING = 1 << 4, /* in flight behind ASKING, at the node that imports the slot */
	HS_STATE_UNTRACKED = 1 << 5, /* to be sent without tracking, although hs_op.track is set */
	HS_STATE_SET_REPLY = 1 << 6, /* op->out holds the SET's own reply: MULTI was refused */
	/* An invalidation came inside EXEC's reply (before Redis 7). */
	HS_STATE_PUSH_IN_EXEC = 1 << 7,
	/* While the operation was in flight with HS_STATE_ASKING, a later one of its client and slot has run. */
	HS_STATE_OVERTAKEN = 1 << 8,
	/* EXEC, parked: the next release sends nothing of the slot behind it. */
	HS_STATE_SEND_ALONE = 1 << 9,
};

/* The parked operations of one slot. It exists while there are any. */
struct hs_slot_hold {
	struct hs_link link; /* in flow->holds */
	uint16_t slot;
	/* Rejected by a server or lost with a connection, in the order of submission; sent first. */
	struct hs_ops retries;
	struct hs_ops arrivals; /* submitted since the slot is held */
	uint64_t until_us;	/* no release before */
	bool releasing;		/* hs_flow_release is emptying it */
};

struct hs_slot_state {
	struct hs_slot_hold *hold; /* NULL: nothing is parked */
	uint32_t underway;	   /* operations sent, or waiting for a pipe */
	uint16_t node;		   /* the owner, or HS_NODE_NONE */
	uint16_t sent_to;	   /* where those underway went */
};

/* Later operations must be parked: earlier ones are, or are in flight to a node that is not the owner. */
static inline bool hs_slot_is_held(const struct hs_slot_state *state)
{
	return state->hold || (state->underway > 0 && state->sent_to != state->node);
}

/* A run of slots, with the rarely used part of each kept apart. */
enum { HS_CHUNK_SLOTS = 64, HS_CHUNKS = HS_SLOTS / HS_CHUNK_SLOTS };
struct hs_slot_chunk {
	struct hs_slot_state slots[HS_CHUNK_SLOTS];
	struct {
		/* Refusals of this slot alone, while its owner serves others. */
		struct hs_refusals refused;
		/* When the owner last answered ASK, in seconds of the monotonic clock, +1. 0: not since this node
		 * owns the slot. */
		uint32_t ask_seen_s;
	} rare[HS_CHUNK_SLOTS];
	bool redirected; /* a node named another owner (MOVED) since the routes were installed */
};

struct hs_flow {
	struct hs_flow_options options;
	const struct hs_flow_calls *calls;
	void *context;
	struct hs_now now; /* of the event being handled */
	struct hs_prng prng;
	struct hs_node *nodes[HS_NODES_MAX];
	uint16_t nodes_count;		/* entries of the array in use, with gaps */
	const struct hs_routes *routes; /* NULL: none yet */
	uint16_t *numbers; /* index in `nodes` of each node of the routes; or HS_NODE_NONE */
	struct hs_slot_chunk *chunks[HS_CHUNKS]; /* NULL: no slot of it was used yet */
	bool any_refused;			 /* some slot was refused, ever */
	/* Operations with HS_STATE_ASKING, by client. */
	struct hs_hash_table ask_redirects;
	struct hs_link holds;
	uint32_t parked;	      /* in all holds */
	uint64_t order;		      /* hs_op.engine_order of the last submitted operation */
	struct hs_link dirty;	      /* pipes with bytes to send or to be closed */
	struct hs_link private_pipes; /* pipes that serve a client */
	uint32_t private_count;	      /* also idle ones; without those given up */
	struct hs_flow_stats *stats;
	uint32_t fetch_pipes;	     /* how many are up */
	bool caching;		     /* a rule lets values be cached */
	uint64_t replicas_wanted_us; /* last time, of any node; 0: no replica needs checks */
};

static inline bool hs_op_is_read(const struct hs_op *op)
{
	return op->kind == HS_OP_COMMAND && (op->command->flags & HS_CMD_READONLY) &&
	       !(op->command->flags & HS_CMD_WRITE);
}

/* An owner that has answered no ASK for this long has ended or cancelled the migration. */
enum { HS_MIGRATING_S = 10 };

/* ---- nodes and slots ---- */

/* It has routes with at least one node. */
static inline bool hs_flow_is_routed(const struct hs_flow *flow)
{
	return flow->routes && flow->routes->nodes_count > 0;
}

/* Index in flow->nodes of a node of the routes. */
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

/* Only with routes. */
static inline struct hs_slot_state *hs_flow_slot_state(struct hs_flow *flow, uint16_t slot)
{
	return &hs_flow_chunk(flow, slot)->slots[slot % HS_CHUNK_SLOTS];
}

/* The owner is migrating the slot to another node, as far as its ASK replies tell. */
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

/* Operations of one client and one hs_flow_slot keep their order. A single server has one for all. */
static inline uint16_t hs_flow_slot(const struct hs_flow *flow, const struct hs_op *op)
{
	return flow->options.cluster ? op->slot : 0;
}

/* flow.c */
/* Sends an operation to a node, or queues it there. `asking`: behind ASKING, for a slot that the node imports; such
 * an operation is never queued. False: not sent; op->out holds the error, or is unchanged if `asking`. */
bool hs_flow_send(struct hs_flow *flow, struct hs_node *node, struct hs_op *op, bool asking);
void hs_flow_finish(struct hs_flow *flow, struct hs_op *op);
/* Writes an error in place of an answer. */
#define hs_flow_write_error(op, ...)                                                               \
	((op)->out->len = 0, (op)->answer.len = 0,                                                 \
	 hs_reply_errorf(&(struct hs_reply){.out = (op)->out, .resp = (op)->resp}, __VA_ARGS__))
/* Finishes the operation with an error. */
#define hs_flow_fail(flow, op, ...) (hs_flow_write_error(op, __VA_ARGS__), hs_flow_finish(flow, op))
/* Writes an error, counts it as refused, and is false. */
#define hs_flow_refuse(flow, op, ...)                                                              \
	(hs_flow_write_error(op, __VA_ARGS__), hs_counter_add(&(flow)->stats->refused, 1), false)
/* The error for an operation whose node is down or refuses the login. Returns `text`. */
enum { HS_UNREACHABLE_BYTES = 640 };
const char *hs_flow_unreachable_text(const struct hs_node *node, const char *why, char *text,
				     size_t size);
/* Sends an operation again, ahead of operations submitted later. False: it is not sent; op->out holds its error,
 * and the caller finishes it. A caller that sends several again does so with all of them before it finishes the
 * first: a client that gets its reply may submit its next operation at once. */
bool hs_flow_place_again(struct hs_flow *flow, struct hs_op *op) HS_MUSTCHECK;
void hs_flow_finish_all(struct hs_flow *flow, struct hs_ops *ops);
/* Moves ops from `waiting` to `in_flight`. */
void hs_flow_pump(struct hs_flow *flow, struct hs_pipe *pipe);
/* Each tick: closes the pipe if `op`, its oldest operation, is past the deadline. A long request or reply that makes
 * progress extends the deadline. NULL: the pipe has none. */
void hs_flow_close_overdue(struct hs_flow *flow, struct hs_pipe *pipe, const struct hs_op *op);
void hs_flow_mark_dirty(struct hs_flow *flow, struct hs_pipe *pipe); /* handled by the next flush */
/* Has the next flush close it. `blameless`: the node is not marked as down. */
void hs_flow_close(struct hs_flow *flow, struct hs_pipe *pipe, const char *why, bool blameless);
void hs_flow_count_waiting(struct hs_flow *flow, const struct hs_pipe *pipe, int more);
/* Also moves the counts of waiting operations. */
void hs_flow_set_partition(struct hs_flow *flow, struct hs_node *node, uint16_t partition);
void hs_flow_connect(struct hs_flow *flow, struct hs_pipe *pipe); /* pipe is down */
/* If down, and the backoffs allow it. */
void hs_flow_open(struct hs_flow *flow, struct hs_pipe *pipe);
/* The node at this address; creates it. NULL: too many nodes. */
struct hs_node *hs_flow_node(struct hs_flow *flow, struct hs_bytes host, uint16_t port);
void hs_flow_free_node(struct hs_flow *flow, struct hs_node **node);

/* slots.c */
struct hs_node *hs_flow_owner(struct hs_flow *flow, uint16_t slot); /* NULL: none */
/* From a MOVED: holds until the next routes. */
void hs_slot_set_owner(struct hs_flow *flow, uint16_t slot, uint16_t node);
/* Installs the owners of new routes. `before`: the previous routes if their nodes had the same numbers; else NULL. */
void hs_slots_route(struct hs_flow *flow, const struct hs_routes *before);
/* Sends an operation to the owner of the slot, or parks it. False: refused, the error is in op->out. */
bool hs_slot_place(struct hs_flow *flow, struct hs_op *op, uint16_t slot);
/* Takes a sent operation out of its slot's count. */
void hs_flow_leave_slot(struct hs_flow *flow, struct hs_op *op);
/* Parks a rejected operation for `delay_us` at least. False: a later one of its client has run. Then op->out holds
 * an error, and the caller finishes it (hs_flow_place_again). */
bool hs_flow_park_retry(struct hs_flow *flow, struct hs_op *op, uint64_t delay_us) HS_MUSTCHECK;
/* Sends the parked operations of a slot, if they may go. */
void hs_flow_release(struct hs_flow *flow, uint16_t slot);
void hs_flow_release_all(struct hs_flow *flow);
/* `by` has run. Earlier operations of its client and slot that are parked must not run behind it: they end with
 * the error that rejected them; those that were lost with a connection, with CLUSTERDOWN a later command ran … not
 * sent. */
void hs_flow_overtaken(struct hs_flow *flow, const struct hs_op *by);
/* Registers an operation that was sent behind ASKING; removes it. */
void hs_slot_add_asking(struct hs_flow *flow, struct hs_op *op);
void hs_slot_forget_asking(struct hs_flow *flow, struct hs_op *op);
void hs_slots_tick(struct hs_flow *flow);
void hs_slots_deinit(struct hs_flow *flow);

/* replies.c */
#define HS_FLOW_UNKNOWN                                                                            \
	"UNKNOWN the connection to %s was lost before it answered (%s): the command may or may "   \
	"not have run; heatsink does not repeat it"
extern const struct hs_backoff_limits hs_flow_backoff;
/* `reply`: an error with '-' and line end. */
static inline bool hs_flow_is_redirect(struct hs_bytes reply, struct hs_redirect *redirect)
{
	return hs_redirect_parse(redirect, (struct hs_bytes){reply.data + 1, reply.len - 3});
}
/* The node that a redirect names. MOVED makes it the owner of the slot. NULL: the address is unknown, or there are
 * too many nodes. */
struct hs_node *hs_flow_redirected(struct hs_flow *flow, const struct hs_pipe *pipe,
				   const struct hs_redirect *redirect);

/* Finishes the operation with the server's reply. */
void hs_flow_answer(struct hs_flow *flow, struct hs_pipe *pipe, struct hs_op *op,
		    struct hs_bytes reply, bool owned);
/* kind->reply of shared pipes: finishes the operation, unless hs_flow_handle_error takes the error. */
void hs_flow_handle_reply(struct hs_flow *flow, struct hs_pipe *pipe, struct hs_op *op,
			  struct hs_bytes reply, bool owned);
/* Handles a redirect, a refusal or a lost script. True: the operation is parked, sent again or finished. False: the
 * error is the answer; op->out is empty. */
bool hs_flow_handle_error(struct hs_flow *flow, struct hs_pipe *pipe, struct hs_op *op,
			  struct hs_bytes error);
/* Returns the error that decides what to do. The error of EXEC itself says only that a queued command was refused,
 * so the command's error decides; but a redirect of EXEC says that the slot has moved since. Moves op->out to `said`
 * if it holds the error; else empties it. */
struct hs_bytes hs_flow_cause(struct hs_op *op, struct hs_bytes reply, struct hs_buf *said);
/* The pipe is down: operations in flight or waiting are sent again or finished (flow.h, Retries). */
void hs_flow_requeue(struct hs_flow *flow, struct hs_pipe *pipe, const char *why);
/* An is_health pipe of the node is up. */
bool hs_node_is_reached(const struct hs_node *node);

/* fetch.c */
/* An operation with hs_op.track can use the node's fetch pipe. */
bool hs_fetch_pipe_is_for(const struct hs_flow *flow, const struct hs_node *node,
			  const struct hs_op *op);
void hs_fetch_pipe_invalidate(struct hs_node *node); /* voids its cache entries */

uint64_t hs_flow_deadline(const struct hs_flow *flow, const struct hs_op *op);

/* requests.c: requests of the engine itself, without a client. */
struct hs_flow_request {
	struct hs_op op;    /* first; engine_state has HS_STATE_INTERNAL */
	struct hs_buf text; /* the request */
	struct hs_buf out;
	/* NULL, or called with the reply or error before the request is freed. */
	void (*answered)(struct hs_flow *flow, const struct hs_op *op);
};
/* `line`: the words of the request; NULL: the caller composes `text`. hs_flow_send_internal sends it on a pipe that
 * is up, hs_flow_send_internal_to_node like any operation. */
struct hs_flow_request *hs_flow_request(const struct hs_flow *flow, uint8_t resp,
					uint64_t timeout_us, const char *line);
void hs_flow_send_internal(struct hs_flow *flow, struct hs_pipe *pipe,
			   struct hs_flow_request *request);
void hs_flow_send_internal_to_node(struct hs_flow *flow, struct hs_node *node,
				   struct hs_flow_request *request);
void hs_flow_request_done(struct hs_flow *flow, struct hs_op *op); /* called by hs_flow_finish */

/* replica.c: reads from replicas */
void hs_replica_route(struct hs_flow *flow); /* new routes were installed */
/* The slots of `node` changed or are uncertain: offsets known so far say nothing about its replicas. */
void hs_replica_invalidate(struct hs_flow *flow, struct hs_node *node);
/* False: no replica is known to be fresh enough. */
bool hs_replica_send(struct hs_flow *flow, struct hs_op *op);
void hs_replica_check(struct hs_flow *flow);

/* How CLIENT UNBLOCK ends a blocking command. */
enum hs_unblock { HS_UNBLOCK_NO, HS_UNBLOCK_TIMEOUT, HS_UNBLOCK_ERROR };

/* private.c: pipes for one client at a time. */
struct hs_private_pipe {
	struct hs_pipe pipe;	 /* first */
	struct hs_link link;	 /* in flow->private_pipes or node->idle */
	bool idle;		 /* serves no client */
	bool given_up;		 /* being closed, replaced; not in private_count */
	bool asking;		 /* the waiting operation goes behind ASKING */
	uint64_t watcher;	 /* client whose WATCH it holds; 0: none */
	uint64_t idle_us;	 /* idle since */
	enum hs_unblock unblock; /* to be done; NO: done, or never wanted */
	bool unblocked;		 /* CLIENT UNBLOCK was requested on it, ever */
	bool unblocking;	 /* CLIENT UNBLOCK is in flight */
	uint32_t unblock_tries;
};
static inline struct hs_private_pipe *hs_private_at(struct hs_link *link)
{
	return hs_list_entry(link, struct hs_private_pipe, link);
}
/* The pipe that `op` waits for or is in flight on; NULL: none. */
static inline struct hs_private_pipe *hs_private_of(const struct hs_op *op)
{
	return op->engine_state & HS_STATE_ASKING ? NULL : op->engine_data;
}
enum hs_submit hs_private_submit(struct hs_flow *flow, struct hs_op *op);
bool hs_private_is_for(const struct hs_op *op);
void hs_private_tick(struct hs_flow *flow);
void hs_private_deinit(struct hs_flow *flow);

/* unblock.c: CLIENT UNBLOCK */
/* If it is due and possible. */
void hs_unblock_send(struct hs_flow *flow, struct hs_private_pipe *priv);

#endif
