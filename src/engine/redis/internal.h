/* Private to the flow: its state, and what its files ask of each other. */
#ifndef HS_ENGINE_REDIS_INTERNAL_H
#define HS_ENGINE_REDIS_INTERNAL_H

#include "base/prng.h"
#include "core/unserved.h"
#include "engine/redis/flow.h"

#include <stdarg.h>

enum {
	HS_NODES_MAX = 1024,
	HS_OWN_IDLE_MAX = 8, /* kept open for the next, for each node */
};
#define HS_PIPE_OUT_MAX (64 * HS_MIB)	 /* composed and unsent: more waits */
#define HS_ENGINE_REPLY_MAX (2 * HS_GIB) /* one reply */
#define HS_AGAIN_US 20000		 /* before what was not run is tried again */
#define HS_OWN_IDLE_US 30000000		 /* an idle connection is kept so long */
#define HS_REPLICA_PATIENCE_US 250000	 /* a replica has so long before it is the master's turn */
#define HS_OPEN_US_MAX 1000000		 /* between two tries to connect */
#define HS_REFUSED_US_MAX 60000000	 /* what was refused so long ago tells nothing of now */

/* op->engine_state */
enum {
	HS_STATE_RETURNED = 1 << 0, /* was turned away: op->out holds what the server said */
	HS_STATE_HEALED = 1 << 1,   /* a lost script was sent in full */
	HS_STATE_OURS = 1 << 2,	    /* made by the flow itself; nobody waits for the reply */
	HS_STATE_COUNTED = 1 << 3,  /* in its slot's count */
	HS_STATE_ASKED = 1 << 4,    /* was asked for, at a node that its slot is moving to */
	HS_STATE_PLAIN = 1 << 5,    /* is not tracked, though it is to be */
	HS_STATE_OWN_WORD = 1 << 6, /* op->out has what a SET said, not the transaction around it */
	HS_STATE_MIXED = 1 << 7,    /* changes were told in the middle of EXEC's reply */
};

/* The parked operations of one slot. */
struct hs_slot_hold {
	uint16_t slot;
	struct hs_ops back;  /* turned away by a server, or lost: they go first, as they came */
	struct hs_ops fresh; /* came since */
	uint64_t until_us;   /* not before */
	bool releasing;	     /* being emptied */
};

struct hs_slot_state {
	uint16_t node;	  /* its owner, or HS_NODE_NONE */
	uint16_t sent_to; /* where those under way went */
	uint16_t hold;	  /* number of its hold, +1; 0: free */
	/* When its owner last answered ASK, in seconds of the monotonic clock, +1. 0: never since the
	 * node owns the slot. */
	uint32_t asked_s;
	uint32_t underway; /* sent, or waiting for a node's pipe */
};

struct hs_flow {
	struct hs_flow_options options;
	const struct hs_flow_calls *calls;
	void *context;
	struct hs_now now; /* of the event being handled */
	struct hs_prng prng;
	struct hs_node *nodes[HS_NODES_MAX];
	uint16_t nodes_count; /* of the array in use; with gaps */
	uint16_t node_of_partition[HS_PARTITIONS_MAX + 1];
	bool routed; /* knows where anything is */
	struct hs_slot_state slots[HS_SLOTS];
	/* Slots that their owners do not serve, whatever they do with others: rare, so it stands apart. */
	struct hs_refusals refused[HS_SLOTS];
	bool any_refused;	     /* some were, ever */
	struct hs_slot_hold **holds; /* with gaps */
	uint16_t holds_count, holds_cap;
	uint16_t holds_hint; /* none is free before this one */
	uint32_t parked;
	uint64_t order;	      /* of the last that was submitted */
	struct hs_link dirty; /* pipes */
	struct hs_link owned; /* pipes that serve one client now */
	uint32_t own_count;   /* with those idle */
	struct hs_flow_stats *stats;
	uint32_t fills;		     /* pipes that vouch, up */
	bool keeping;		     /* values are kept */
	uint64_t replicas_wanted_us; /* of any node, when last */
};

static inline void hs_flow_count(_Atomic uint64_t *counter, int64_t more)
{
	atomic_store_explicit(counter,
			      atomic_load_explicit(counter, memory_order_relaxed) + (uint64_t)more,
			      memory_order_relaxed);
}

static inline bool hs_op_is_read(const struct hs_op *op)
{
	return op->kind == HS_OP_COMMAND && (op->command->flags & HS_CMD_READONLY) &&
	       !(op->command->flags & HS_CMD_WRITE);
}

/* An owner that has answered no ASK for so long has called the move off. */
enum { HS_LEAVING_S = 10 };

/* Whether the owner of a slot is handing it over to another node, as far as its ASK replies tell. */
static inline bool hs_slot_is_leaving(const struct hs_flow *flow, const struct hs_slot_state *state)
{
	return state->asked_s > 0 &&
	       flow->now.mono_us / 1000000 < (uint64_t)state->asked_s + HS_LEAVING_S;
}

/* Where the order of an operation is kept: its slot; with one server all of them together. */
static inline uint16_t hs_flow_slot(const struct hs_flow *flow, const struct hs_op *op)
{
	return flow->options.cluster ? op->slot : 0;
}

/* flow.c */
/* Sends an operation to whom it concerns now, or parks it. False: refused, the error is in op->out.
 */
bool hs_flow_place(struct hs_flow *flow, struct hs_op *op);
bool hs_flow_send(struct hs_flow *flow, struct hs_node *node, struct hs_op *op, bool asking);
/* Takes an operation out of its slot's count, and lets those go that waited for it. */
void hs_flow_leave(struct hs_flow *flow, struct hs_op *op);
void hs_flow_finish(struct hs_flow *flow, struct hs_op *op);
/* Finishes with an error; the text may be of any length. */
/* The error for what is asked of a node that is down, or that refuses the password. Returns `text`. */
enum { HS_AWAY_BYTES = 640 };
const char *hs_flow_away(const struct hs_node *node, const char *why, char *text, size_t size);
void hs_flow_fail(struct hs_flow *flow, struct hs_op *op, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Writes the error that hs_flow_place's false stands for. */
bool hs_flow_refuse(struct hs_flow *flow, struct hs_op *op, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Parks it among those that were turned away, for `delay_us` at least. */
void hs_flow_park_back(struct hs_flow *flow, struct hs_op *op, uint64_t delay_us);
/* Places one that was placed before, ahead of those that came since. */
void hs_flow_place_again(struct hs_flow *flow, struct hs_op *op);
void hs_flow_release(struct hs_flow *flow, uint16_t slot);
/* One has run: those of its client that came before it and were turned away cannot be tried again,
 * they would come behind it. They are told what the server said. */
void hs_flow_overtaken(struct hs_flow *flow, const struct hs_op *by);
void hs_flow_pump(struct hs_flow *flow, struct hs_pipe *pipe); /* from waiting to flying */
/* Asked with every tick: whether the one whose turn it is has waited for too long. Something long
 * that is on its way may take its time, as long as more of it comes or goes. */
bool hs_flow_is_overdue(struct hs_flow *flow, struct hs_pipe *pipe);
void hs_flow_touch(struct hs_flow *flow, struct hs_pipe *pipe); /* it goes on with the next flush */
/* Has it closed with the next flush; `blameless`: its node is well. */
void hs_flow_doom(struct hs_flow *flow, struct hs_pipe *pipe, const char *why, bool blameless);
void hs_flow_count_waiting(struct hs_flow *flow, const struct hs_pipe *pipe, int more);
/* What waits for it is counted there from now on. */
void hs_flow_set_partition(struct hs_flow *flow, struct hs_node *node, uint16_t partition);
void hs_flow_open(struct hs_flow *flow, struct hs_pipe *pipe);
struct hs_node *hs_flow_node(struct hs_flow *flow, const char *host, size_t host_len,
			     uint16_t port);			    /* NULL: too many */
struct hs_node *hs_flow_owner(struct hs_flow *flow, uint16_t slot); /* NULL: nobody */
uint16_t hs_flow_number(const struct hs_flow *flow, const struct hs_node *node);

/* replies.c */
struct hs_redirect {
	bool ask; /* this once only */
	uint16_t slot;
	struct hs_bytes host;
	uint16_t port;
};
/* Whether an error is "-MOVED 3999 host:port" or "-ASK …". */
bool hs_flow_read_redirect(struct hs_bytes reply, struct hs_redirect *redirect);
/* The node it names; what was moved is known to be there from now on. NULL: too many nodes. */
struct hs_node *hs_flow_redirected(struct hs_flow *flow, const struct hs_pipe *pipe,
				   const struct hs_redirect *redirect);

/* fill.c: the pipe that vouches */
enum hs_fill_verdict {
	HS_FILL_DONE,	 /* it was our own */
	HS_FILL_ANSWER,	 /* `*reply` is the answer */
	HS_FILL_REFUSED, /* `*reply` says why it did not run; empty: nobody knows */
};
/* Whether an operation for the node goes by it. */
bool hs_fill_is_for(const struct hs_flow *flow, const struct hs_node *node, const struct hs_op *op);
void hs_fill_up(struct hs_flow *flow, struct hs_pipe *pipe);
void hs_fill_down(struct hs_flow *flow, struct hs_pipe *pipe, bool was_up, const char *why);
/* The server does not do its part: it is not asked again for a while. */
void hs_fill_refused(struct hs_flow *flow, struct hs_pipe *pipe, const char *why);
void hs_fill_void(struct hs_node *node); /* what was vouched for there is void */
void hs_fill_deinit(struct hs_flow *flow, struct hs_pipe *pipe);
void hs_fill_push(struct hs_flow *flow, struct hs_pipe *pipe, struct hs_bytes push);
/* A reply on the way to the last one of an operation. */
void hs_fill_skip(struct hs_pipe *pipe, struct hs_op *op, struct hs_bytes reply);
/* The last one; `said` is what was kept of those before. */
enum hs_fill_verdict hs_fill_reply(struct hs_flow *flow, struct hs_pipe *pipe, struct hs_op *op,
				   struct hs_bytes said, struct hs_bytes *reply);
void hs_fill_tick(struct hs_flow *flow, struct hs_pipe *pipe);

/* A request of our own on a pipe that is up; the text outlives it. */
void hs_flow_ask(struct hs_flow *flow, struct hs_pipe *pipe, struct hs_bytes text);
uint64_t hs_flow_deadline(const struct hs_flow *flow, const struct hs_op *op);

/* replica.c: reads that need not come from the master */
void hs_replica_route(struct hs_flow *flow, const struct hs_routes *routes,
		      const uint16_t *number); /* of the nodes of `routes`, here */
/* Its slots are others, or where they are is not certain: what its replicas were known to have is not
 * enough any more. */
void hs_replica_void(struct hs_flow *flow, struct hs_node *node);
/* Sends it to a replica that may answer it; false: none may. */
bool hs_replica_send(struct hs_flow *flow, struct hs_op *op);
void hs_replica_up(struct hs_flow *flow, struct hs_pipe *pipe);
/* The pipe is down: what was under way there is the master's to answer, and this is called for each of
 * them before. */
void hs_replica_down(struct hs_flow *flow, struct hs_pipe *pipe, bool was_up);
void hs_replica_give_up(struct hs_flow *flow, struct hs_op *op);
/* A reply; false: it is the answer. */
bool hs_replica_reply(struct hs_flow *flow, struct hs_pipe *pipe, struct hs_op *op,
		      struct hs_bytes reply);
void hs_replica_prove(struct hs_flow *flow);
void hs_replica_tick(struct hs_flow *flow, struct hs_node *node);

/* own.c: pipes for one client */
enum hs_submit hs_own_submit(struct hs_flow *flow, struct hs_op *op);
bool hs_own_is_for(const struct hs_op *op);
/* An answer of a pipe for one client; true: dealt with. */
bool hs_own_reply(struct hs_flow *flow, struct hs_pipe *pipe, struct hs_op *op,
		  struct hs_bytes reply);
void hs_own_down(struct hs_flow *flow, struct hs_pipe *pipe, const char *why);
void hs_own_tick(struct hs_flow *flow);
void hs_own_deinit(struct hs_flow *flow);
void hs_own_close(struct hs_flow *flow, struct hs_pipe *pipe);

/* unblock.c: CLIENT UNBLOCK */
void hs_unblock_up(struct hs_flow *flow, struct hs_pipe *pipe); /* what waited is written to it */
void hs_unblock_answered(struct hs_flow *flow, const struct hs_op *op); /* one of ours, or failed */
void hs_unblock_tick(struct hs_flow *flow);

#endif
