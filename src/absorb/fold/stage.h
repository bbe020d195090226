/* Private to absorb/fold: the queues of hot keys, and each session's chain of requests in them. The head of
 * stage.c explains how they work together.
 *
 * The folder knows commands, sessions and requests of the core, the core's options and hot keys, and the wire
 * format. It must not know cache or copies, rules and contracts, the versions of keys, sockets, or the engine's
 * kind: of the engine it uses only two facts in struct hs_core_world, reads_at_once and shared_connections.
 *
 * One thread, the worker's; counters may be read by any thread. Limit: fold-waiters-max requests wait in a
 * queue; one more gets BUSY and does not run. When a connection is lost, each member of a batch of writes in
 * flight gets UNKNOWN (fold.h). */
#ifndef HS_ABSORB_FOLD_STAGE_H
#define HS_ABSORB_FOLD_STAGE_H

#include "absorb/fold/fold.h"
#include "absorb/fold/stats.h"
#include "core/stage.h"
#include "core/state.h"

struct hs_fold_queue {
	struct hs_link link;  /* in stage->queues */
	struct hs_link ready; /* in stage->ready, else linked to itself */
	struct hs_hot *hot;   /* the queue's key */
	struct hs_fold fold;
	/* Members that the round's plan left over, because their client already is in a batch of it. They
	 * return to `fold` when the round ends. */
	struct hs_link deferred;
	/* in stage->remaining while `deferred` is not empty, else linked to itself */
	struct hs_link remaining;
	uint32_t waiting; /* members in `fold` or `deferred` */
	/* members for this queue that still wait in chains, behind earlier requests of their clients */
	uint32_t behind;
	uint32_t in_flight; /* operations sent and not answered */
	uint64_t round;	    /* number of the round in which a plan was last sent */
	/* id of the only client whose requests are in flight, each sent as it came; 0: several, or folded */
	uint64_t sole_client;
	/* reads still to be sent directly, because folding reads did not pay */
	uint32_t bypass_reads;
	/* requests of any kind still to be sent directly, because folding did not pay */
	uint32_t bypass;
	uint32_t judged_members, judged_batches;
};

/* A chain: a session's requests in the queues of one partition bucket, in the order of arrival
 *
 *     sent ─ waiting in one queue ─ behind
 *
 * Every request of the chain counts in session->in_bucket of that bucket until it is sent to the engine by
 * itself. */
struct hs_fold_chain {
	struct hs_session *session;
	struct hs_link advancing; /* in stage->advancing, else linked to itself */
	/* queue of the waiting members, or of the last one sent; or NULL */
	struct hs_fold_queue *queue;
	struct hs_link behind;	/* later requests, each for another queue or for none */
	uint16_t total;		/* requests in the chain */
	uint16_t waiting, sent; /* of the total */
	/* no later request may be sent before the chain's add is answered: the number may be near a limit */
	bool exclusive;
	/* the session's requests outside this chain carry the round's client id and must get their own back */
	bool relabelled;
	uint64_t slots; /* bit set of the chain's slots, modulo 64 */
	struct hs_fold_client client;
};

/* The stage's state in a session, and in a request that passes through it. */
struct hs_fold_session {
	struct hs_fold_chain *chains; /* by partition bucket; NULL: the session never had a chain */
	uint32_t relabelled;	      /* number of its chains that are `relabelled` */
	/* foldable requests still to be sent directly, after the client was held while it had much pipelined
	 * input */
	uint32_t unfolded;
};

struct hs_fold_request {
	struct hs_request *request;
	struct hs_fold_queue *queue; /* the queue it waits in or was sent from; NULL: none */
	struct hs_fold_chain *chain; /* the chain of its session that it is in; or NULL */
	struct hs_fold_batch *batch; /* of an internal call: the batch that it sends */
	struct hs_fold_member member;
	bool waiting; /* not sent yet */
	bool behind;  /* in the chain's `behind` list */
};

struct hs_fold_stage {
	struct hs_core *core;
	struct hs_fold_stats stats;
	uint32_t index; /* in the array of stages */
	size_t session_at, request_at;
	/* Number of the call that was admitted last; the two fields below are about that call. */
	uint64_t admitted_call;
	/* queue that the admitted call's request enters when it departs; NULL: none */
	struct hs_fold_queue *admitted;
	/* its kind and arguments; `command` NULL: not classified yet */
	struct hs_fold_member admitted_member;
	uint32_t taken;	     /* requests of all sessions that are in chains */
	uint32_t relabelled; /* number of chains that are `relabelled` */
	struct hs_link queues;
	struct hs_link ready;	  /* queues that may send a plan at the end of the round */
	struct hs_link remaining; /* queues with deferred members */
	struct hs_link advancing; /* chains that may advance at the end of the round */
	uint32_t count;
	uint64_t round;
	/* client id that requests of chains carry in this round; 0: not chosen yet */
	uint64_t round_client;
	struct hs_buf scratch;
};

/* keys.c: the queue for the call's only key, which is argument `at`; NULL: the key is not folded. */
struct hs_fold_queue *hs_fold_find(const struct hs_fold_stage *stage, struct hs_call *call,
				   size_t at);

/* stage.c: sends every waiting member of the queue as it came. All of them belong to the session that is being
 * served. */
void hs_fold_release(struct hs_fold_stage *stage, struct hs_fold_queue *queue);
/* The queue has waiting members: its plan is sent at the end of the round, unless operations are in flight. */
void hs_fold_make_ready(struct hs_fold_stage *stage, struct hs_fold_queue *queue);

/* chain.c: a session's requests in queues, in their order. */
struct hs_fold_chain *hs_chain_of(struct hs_fold_stage *stage, struct hs_session *session,
				  uint32_t bucket);
/* Whether the command may be queued behind the chain's requests. `queue`: where it would wait; NULL: none. */
bool hs_chain_takes(const struct hs_fold_chain *chain, const struct hs_command *command,
		    const struct hs_fold_queue *queue);
void hs_chain_add(struct hs_fold_stage *stage, struct hs_fold_chain *chain,
		  struct hs_fold_request *folded);
/* The request leaves its queue for the engine. */
void hs_chain_sent(struct hs_fold_stage *stage, struct hs_fold_request *folded);
/* The request is answered, or sent outside the chain: requests behind it may advance. */
void hs_chain_leave(struct hs_fold_stage *stage, struct hs_fold_request *folded);
/* The client has gone: removes a request that still waits. */
void hs_chain_drop(struct hs_fold_stage *stage, struct hs_fold_request *folded);
/* Sends or queues the requests that may advance in this round. */
void hs_chain_advance(struct hs_fold_stage *stage);
/* Whether the session has more than one request in the chain: then they are sent under the round's client id. */
bool hs_chain_is_long(const struct hs_fold_chain *chain);
/* Returns the round's client id. */
uint64_t hs_chain_client(struct hs_fold_stage *stage);
/* Gives the round's client id to a request that is sent by itself, and to the session's requests in flight
 * outside the chain. */
void hs_chain_use_client(struct hs_fold_stage *stage, struct hs_fold_request *folded);
/* Gives the round's client id to the session's requests in flight outside its chain. */
void hs_chain_use_client_for_others(struct hs_fold_stage *stage, struct hs_fold_chain *chain);
/* Gives the session's own client id back to its requests in flight, before another request is sent under that
 * id: the engine then knows their order. No request of the chain is in flight. */
void hs_chain_restore_client(struct hs_fold_stage *stage, struct hs_fold_chain *chain);

static inline struct hs_fold_session *hs_fold_session(const struct hs_fold_stage *stage,
						      const struct hs_session *session)
{
	return hs_stage_session(session, stage->session_at);
}

static inline struct hs_fold_request *hs_fold_of(const struct hs_fold_stage *stage,
						 const struct hs_request *request)
{
	return hs_stage_request(request, stage->request_at);
}

static inline struct hs_fold_request *hs_fold_request_of(const struct hs_link *link)
{
	return hs_list_entry(link, struct hs_fold_request, member.link);
}

static inline uint32_t hs_fold_bucket(const struct hs_request *request)
{
	return request->parts[0].op.partition % HS_PARTITION_BUCKETS;
}

/* Whether the queue may send its waiting members in this round. */
static inline bool hs_fold_may_launch(const struct hs_fold_stage *stage,
				      const struct hs_fold_queue *queue)
{
	return queue->in_flight == 0 || queue->round == stage->round;
}

/* Number of the session's operations in the bucket that are not in its chain. */
static inline uint32_t hs_fold_others(const struct hs_fold_stage *stage,
				      const struct hs_session *session, uint32_t bucket)
{
	const struct hs_fold_chain *chains = hs_fold_session(stage, session)->chains;

	return session->in_bucket[bucket] - (chains ? chains[bucket].total : 0u);
}

enum hs_stage_result hs_fold_admit(void *self, struct hs_session *session, struct hs_call *call);

void hs_fold_hot(void *self, struct hs_hot *hot, bool waited);
void hs_fold_cool(void *self, struct hs_hot *hot, bool cool);
void hs_fold_report(void *self, struct hs_reply *reply);
/* Subscribes to, or unsubscribes from, new commands: the stage needs them while it has queues, chains or
 * changed client ids. */
void hs_fold_want(struct hs_fold_stage *stage);

#endif
