/* Private to the flow: its state, and what its files ask of each other. */
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
	HS_PRIVATE_IDLE_MAX = 8, /* kept open for the next, for each node */
};
#define HS_PIPE_OUT_MAX (64 * HS_MIB)	 /* composed and unsent: more waits */
#define HS_ENGINE_REPLY_MAX (2 * HS_GIB) /* one reply */
#define HS_RETRY_US 20000		 /* before what was not run is tried again */
#define HS_PRIVATE_IDLE_US 30000000	 /* an idle connection is kept so long */
#define HS_REPLICA_TIMEOUT_US 250000	 /* a replica has so long before it is the master's turn */
#define HS_RECONNECT_US_MAX 1000000	 /* between two tries to connect */
#define HS_REFUSAL_ROW_US_MAX 60000000	 /* what was refused so long ago tells nothing of now */

/* op->engine_state */
enum {
	HS_STATE_REJECTED = 1 << 0,	 /* was turned away: op->out holds what the server said */
	HS_STATE_SCRIPT_RESENT = 1 << 1, /* a lost script was sent in full */
	HS_STATE_INTERNAL = 1 << 2,	 /* a struct hs_flow_request: no client waits for it */
	HS_STATE_COUNTED = 1 << 3,	 /* in its slot's count */
	HS_STATE_ASKING = 1 << 4,	 /* was asked for, at a node that its slot is moving to */
	HS_STATE_UNTRACKED = 1 << 5,	 /* is not tracked, though it is to be */
	HS_STATE_SET_REPLY =
		1 << 6, /* op->out has what a SET said, not the transaction around it */
	HS_STATE_PUSH_IN_EXEC = 1 << 7, /* changes were told in the middle of EXEC's reply */
	/* While it was under way with ASKED, a later operation of its client and slot has run. */
	HS_STATE_OVERTAKEN = 1 << 8,
	/* EXEC, parked: the flow sends nothing of the slot behind it the next time */
	HS_STATE_SEND_ALONE = 1 << 9,
};

/* The parked operations of one slot. */
struct hs_slot_hold {
	struct hs_link link; /* in the flow's list */
	uint16_t slot;
	struct hs_ops retries;	/* turned away by a server, or lost: they go first, as they came */
	struct hs_ops arrivals; /* came since */
	uint64_t until_us;	/* not before */
	bool releasing;		/* being emptied */
};

struct hs_slot_state {
	struct hs_slot_hold *hold; /* NULL: free */
	uint32_t underway;	   /* sent, or waiting for a node's pipe */
	uint16_t node;		   /* its owner, or HS_NODE_NONE */
	uint16_t sent_to;	   /* where those under way went */
};

/* Later operations wait: earlier ones are parked, or under way to a node that does not own it any more. */
static inline bool hs_slot_is_held(const struct hs_slot_state *state)
{
	return state->hold || (state->underway > 0 && state->sent_to != state->node);
}

/* Slots in a row, and apart what is rarely needed of them. */
enum { HS_CHUNK_SLOTS = 64, HS_CHUNKS = HS_SLOTS / HS_CHUNK_SLOTS };
struct hs_slot_chunk {
	struct hs_slot_state slots[HS_CHUNK_SLOTS];
	struct {
		struct hs_refusals
			refused; /* its owner does not serve it, whatever it does with others */
		/* When its owner last answered ASK, in seconds of the monotonic clock, +1. 0: never since
		 * the node owns the slot. */
		uint32_t ask_seen_s;
	} rare[HS_CHUNK_SLOTS];
	bool redirected; /* since the routes were read a node has said that another one owns a slot */
};

struct hs_flow {
	struct hs_flow_options options;
	const struct hs_flow_calls *calls;
	void *context;
	struct hs_now now; /* of the event being handled */
	struct hs_prng prng;
	struct hs_node *nodes[HS_NODES_MAX];
	uint16_t nodes_count;		/* of the array in use; with gaps */
	const struct hs_routes *routes; /* NULL: none yet */
	uint16_t *numbers;		/* of the nodes of the routes, here; or HS_NODE_NONE */
	struct hs_slot_chunk *chunks[HS_CHUNKS]; /* NULL: none of its slots was used yet */
	bool any_refused;			 /* a slot was, ever */
	struct hs_hash_table
		ask_redirects; /* by client: operations under way with HS_STATE_ASKING */
	struct hs_link holds;
	uint32_t parked;	      /* in all of them */
	uint64_t order;		      /* of the last that was submitted */
	struct hs_link dirty;	      /* pipes */
	struct hs_link private_pipes; /* pipes that serve one client now */
	uint32_t private_count;	      /* with those idle, without those given up */
	struct hs_flow_stats *stats;
	uint32_t fetch_pipes;	     /* that are up */
	bool caching;		     /* values are kept */
	uint64_t replicas_wanted_us; /* of any node, when last */
};

static inline bool hs_op_is_read(const struct hs_op *op)
{
	return op->kind == HS_OP_COMMAND && (op->command->flags & HS_CMD_READONLY) &&
	       !(op->command->flags & HS_CMD_WRITE);
}

/* An owner that has answered no ASK for so long has called the move off. */
enum { HS_MIGRATING_S = 10 };

/* ---- nodes and slots ---- */

/* Whether it knows where anything is. */
static inline bool hs_flow_is_routed(const struct hs_flow *flow)
{
	return flow->routes && flow->routes->nodes_count > 0;
}

/* The number of a node of the routes. */
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

/* Once there are routes. */
static inline struct hs_slot_state *hs_flow_slot_state(struct hs_flow *flow, uint16_t slot)
{
	return &hs_flow_chunk(flow, slot)->slots[slot % HS_CHUNK_SLOTS];
}

/* Whether the owner of a slot is handing it over to another node, as far as its ASK replies tell. */
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

/* Where the order of an operation is kept: its slot; with one server all of them together. */
static inline uint16_t hs_flow_slot(const struct hs_flow *flow, const struct hs_op *op)
{
	return flow->options.cluster ? op->slot : 0;
}

/* flow.c */
/* Sends an operation to a node, or lets it wait there. False: refused, the error is in op->out. */
bool hs_flow_send(struct hs_flow *flow, struct hs_node *node, struct hs_op *op, bool asking);
void hs_flow_finish(struct hs_flow *flow, struct hs_op *op);
/* In place of an answer. */
#define hs_flow_write_error(op, ...)                                                               \
	((op)->out->len = 0, (op)->answer.len = 0,                                                 \
	 hs_reply_errorf(&(struct hs_reply){.out = (op)->out, .resp = (op)->resp}, __VA_ARGS__))
/* Finishes with an error. */
#define hs_flow_fail(flow, op, ...) (hs_flow_write_error(op, __VA_ARGS__), hs_flow_finish(flow, op))
/* Writes the error that `false` of those that send stands for; returns false. */
#define hs_flow_refuse(flow, op, ...)                                                              \
	(hs_flow_write_error(op, __VA_ARGS__), hs_counter_add(&(flow)->stats->refused, 1), false)
/* The error for what is asked of a node that is down, or that refuses the password. Returns `text`. */
enum { HS_UNREACHABLE_BYTES = 640 };
const char *hs_flow_unreachable_text(const struct hs_node *node, const char *why, char *text,
				     size_t size);
/* Places one that was placed before, ahead of those that came since. False: it is over, and the caller finishes it. Of
 * several it finishes none before all are placed: a client that hears of one may submit the next from inside. */
bool hs_flow_place_again(struct hs_flow *flow, struct hs_op *op) HS_MUSTCHECK;
void hs_flow_finish_all(struct hs_flow *flow, struct hs_ops *ops);
void hs_flow_pump(struct hs_flow *flow, struct hs_pipe *pipe); /* from waiting to in_flight */
/* With every tick: closes the pipe if `op`, whose turn it is, has waited for too long. Something long
 * that is on its way may take its time, as long as more of it comes or goes. NULL: nobody waits. */
void hs_flow_close_overdue(struct hs_flow *flow, struct hs_pipe *pipe, const struct hs_op *op);
void hs_flow_mark_dirty(struct hs_flow *flow,
			struct hs_pipe *pipe); /* it goes on with the next flush */
/* Has it closed with the next flush; `blameless`: its node is well. */
void hs_flow_close(struct hs_flow *flow, struct hs_pipe *pipe, const char *why, bool blameless);
void hs_flow_count_waiting(struct hs_flow *flow, const struct hs_pipe *pipe, int more);
/* What waits for it is counted there from now on. */
void hs_flow_set_partition(struct hs_flow *flow, struct hs_node *node, uint16_t partition);
void hs_flow_connect(struct hs_flow *flow, struct hs_pipe *pipe); /* it is down */
void hs_flow_open(struct hs_flow *flow, struct hs_pipe *pipe);	  /* if it is down, and may */
/* NULL: too many. */
struct hs_node *hs_flow_node(struct hs_flow *flow, struct hs_bytes host, uint16_t port);
void hs_flow_free_node(struct hs_flow *flow, struct hs_node **node);

/* slots.c */
struct hs_node *hs_flow_owner(struct hs_flow *flow, uint16_t slot); /* NULL: nobody */
/* A node has said so: until the next routes. */
void hs_slot_set_owner(struct hs_flow *flow, uint16_t slot, uint16_t node);
/* There are new routes; `before`: those that were in force, if their nodes had the same numbers. */
void hs_slots_route(struct hs_flow *flow, const struct hs_routes *before);
/* Sends an operation to the owner of the slot, or parks it. False: refused, the error is in op->out. */
bool hs_slot_place(struct hs_flow *flow, struct hs_op *op, uint16_t slot);
/* Takes an operation out of its slot's count. */
void hs_flow_leave_slot(struct hs_flow *flow, struct hs_op *op);
/* Parks it among those that were turned away, for `delay_us` at least. False: it was overtaken. It is refused, and the
 * caller finishes it, as above. */
bool hs_flow_park_retry(struct hs_flow *flow, struct hs_op *op, uint64_t delay_us) HS_MUSTCHECK;
/* Lets those go that are parked, if they may. */
void hs_flow_release(struct hs_flow *flow, uint16_t slot);
void hs_flow_release_all(struct hs_flow *flow);
/* One has run: those of its client that came before it and were turned away cannot be tried again,
 * they would come behind it. They are told what the server said. */
void hs_flow_overtaken(struct hs_flow *flow, const struct hs_op *by);
/* The operation was sent behind ASKING; or it is not under way there any more. */
void hs_slot_add_asking(struct hs_flow *flow, struct hs_op *op);
void hs_slot_forget_asking(struct hs_flow *flow, struct hs_op *op);
void hs_slots_tick(struct hs_flow *flow);
void hs_slots_deinit(struct hs_flow *flow);

/* replies.c */
#define HS_FLOW_UNKNOWN                                                                            \
	"UNKNOWN the connection to %s was lost before it answered (%s): the command may or may "   \
	"not have run; heatsink does not repeat it"
extern const struct hs_backoff_limits hs_flow_backoff;
/* Whether an error reply, with '-' and the line end, is a redirect. */
static inline bool hs_flow_is_redirect(struct hs_bytes reply, struct hs_redirect *redirect)
{
	return hs_redirect_parse(redirect, (struct hs_bytes){reply.data + 1, reply.len - 3});
}
/* The node it names; what was moved is known to be there from now on. NULL: too many nodes,
 * or nobody knows where it is. */
struct hs_node *hs_flow_redirected(struct hs_flow *flow, const struct hs_pipe *pipe,
				   const struct hs_redirect *redirect);

/* Hands over the answer. */
void hs_flow_answer(struct hs_flow *flow, struct hs_pipe *pipe, struct hs_op *op,
		    struct hs_bytes reply, bool owned);
/* kind->reply of shared pipes: an error may be dealt with, and is no answer then. */
void hs_flow_handle_reply(struct hs_flow *flow, struct hs_pipe *pipe, struct hs_op *op,
			  struct hs_bytes reply, bool owned);
/* True: dealt with. op->out is empty. */
bool hs_flow_handle_error(struct hs_flow *flow, struct hs_pipe *pipe, struct hs_op *op,
			  struct hs_bytes error);
/* The error that decides: EXEC's own says only that a command was refused when it was queued, unless it is a
 * redirect, because the slot has moved since. Empties op->out, into `said` if that has it. */
struct hs_bytes hs_flow_cause(struct hs_op *op, struct hs_bytes reply, struct hs_buf *said);
/* Of a pipe that is down: what was in flight or waiting there is sent again or told what happened. */
void hs_flow_requeue(struct hs_flow *flow, struct hs_pipe *pipe, const char *why);
/* Whether a pipe that tells how the node is, is up. */
bool hs_node_is_reached(const struct hs_node *node);

/* fetch.c */
/* Whether an operation for the node goes by its fetch pipe. */
bool hs_fetch_pipe_is_for(const struct hs_flow *flow, const struct hs_node *node,
			  const struct hs_op *op);
void hs_fetch_pipe_invalidate(struct hs_node *node); /* its tracking session is void */

uint64_t hs_flow_deadline(const struct hs_flow *flow, const struct hs_op *op);

/* requests.c: what the engine asks for itself */
struct hs_flow_request {
	struct hs_op op;    /* first; engine_state has HS_STATE_INTERNAL */
	struct hs_buf text; /* the request */
	struct hs_buf out;
	/* NULL, or told of the reply, or of the error in its place, before the request is freed. */
	void (*answered)(struct hs_flow *flow, const struct hs_op *op);
};
/* `line`: its words; NULL: the caller composes `text`. Then asks on a pipe that is up, or sends to a node
 * as any operation. */
struct hs_flow_request *hs_flow_request(const struct hs_flow *flow, uint8_t resp,
					uint64_t timeout_us, const char *line);
void hs_flow_send_internal(struct hs_flow *flow, struct hs_pipe *pipe,
			   struct hs_flow_request *request);
void hs_flow_send_internal_to_node(struct hs_flow *flow, struct hs_node *node,
				   struct hs_flow_request *request);
void hs_flow_request_done(struct hs_flow *flow, struct hs_op *op); /* by hs_flow_finish */

/* replica.c: reads that need not come from the master */
void hs_replica_route(struct hs_flow *flow); /* its routes are new */
/* Its slots are others, or where they are is not certain: what its replicas were known to have is not
 * enough any more. */
void hs_replica_invalidate(struct hs_flow *flow, struct hs_node *node);
/* Sends it to a replica that may answer it; false: none may. */
bool hs_replica_send(struct hs_flow *flow, struct hs_op *op);
void hs_replica_check(struct hs_flow *flow);

/* How a blocking command is to end (CLIENT UNBLOCK). */
enum hs_unblock { HS_UNBLOCK_NO, HS_UNBLOCK_TIMEOUT, HS_UNBLOCK_ERROR };

/* private.c: pipes for one client */
struct hs_private_pipe {
	struct hs_pipe pipe; /* first */
	struct hs_link link; /* in the flow's list of those in use, or its node's of those idle */
	bool idle;	     /* nobody's now */
	bool given_up; /* it is being closed for another one in its place, and not counted any more */
	bool asking;   /* what waits is to be asked for */
	uint64_t watcher;	 /* who watches through it; 0: nobody */
	uint64_t idle_us;	 /* since when it is idle */
	enum hs_unblock unblock; /* until the server has done it */
	bool unblocked;		 /* the server was, or will be, told to end a wait on it */
	bool unblocking;	 /* the server is being told */
	uint32_t unblock_tries;
};
static inline struct hs_private_pipe *hs_private_at(struct hs_link *link)
{
	return hs_list_entry(link, struct hs_private_pipe, link);
}
/* That an operation is under way on; NULL: on none. */
static inline struct hs_private_pipe *hs_private_of(const struct hs_op *op)
{
	return op->engine_state & HS_STATE_ASKING ? NULL : op->engine_data;
}
enum hs_submit hs_private_submit(struct hs_flow *flow, struct hs_op *op);
bool hs_private_is_for(const struct hs_op *op);
void hs_private_tick(struct hs_flow *flow);
void hs_private_deinit(struct hs_flow *flow);

/* unblock.c: CLIENT UNBLOCK */
void hs_unblock_send(struct hs_flow *flow, struct hs_private_pipe *priv); /* if it can, and is to */

#endif
