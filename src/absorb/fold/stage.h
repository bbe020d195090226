/* Private to absorb/fold: the queues of hot keys, and each session's chain of requests in these queues. The head
 * of stage.c explains how they work together.
 *
 * The folder knows commands, sessions and requests of the core, the core's options and hot keys, and the wire
 * format. It must not know cache or copies, rules and contracts, the versions of keys, sockets, or the engine's
 * kind: of the engine it uses only two facts in struct hs_core_world, reads_at_once and shared_connections.
 *
 * One thread, the worker's; counters may be read by any thread. Limit: fold-waiters-max requests wait for a key;
 * one more gets BUSY and does not run. When a connection is lost, each member of a batch of writes in flight gets
 * UNKNOWN (fold.h). */
#ifndef HS_ABSORB_FOLD_STAGE_H
#define HS_ABSORB_FOLD_STAGE_H

#include "absorb/fold/fold.h"
#include "absorb/fold/stats.h"
#include "core/stage.h"
#include "core/state.h"

struct hs_fold_queue {
	struct hs_link link;  /* in stage->queues */
	struct hs_link ready; /* in stage->ready; else linked to itself */
	struct hs_hot *hot;
	struct hs_fold fold;
	/* Members that the plan of this round did not take, because their client already is in a batch of the
	 * plan. They return to `fold` when the round ends. */
	struct hs_link deferred;
	/* in stage->remaining while `deferred` is not empty; else linked to itself */
	struct hs_link remaining;
	uint32_t waiting; /* members in `fold` or `deferred` */
	/* requests for this queue in the `behind` lists of chains: they enter the queue later */
	uint32_t behind;
	/* operations that this queue has sent and the engine has not answered */
	uint32_t in_flight;
	uint64_t round; /* number of the round in which the queue last sent a plan */
	/* Session id, if all requests in flight are of one session and each was sent by itself; 0: they are of
	 * several sessions, or a batch is among them. The field keeps its value when the last request is
	 * answered. */
	uint64_t sole_client;
	/* reads of the key still to be sent directly, because folding its reads did not pay */
	uint32_t bypass_reads;
	/* requests for the key, of any kind, still to be sent directly, because folding did not pay */
	uint32_t bypass;
	uint32_t judged_members, judged_batches;
};

/* A chain: a session's requests in the queues of one partition bucket, in the order of arrival. A request is sent,
 * or waits in a queue, or is behind (it enters its queue when all requests before it are sent).
 *
 *     sent ─ waiting in one queue ─ behind
 *
 * session->in_bucket counts every request of the chain, as if it were in flight. */
struct hs_fold_chain {
	struct hs_session *session;
	struct hs_link advancing; /* in stage->advancing; else linked to itself */
	/* the queue in which the chain's members wait, or from which they were last sent; NULL: none */
	struct hs_fold_queue *queue;
	/* the later requests, which enter a queue when all requests before them are sent */
	struct hs_link behind;
	uint16_t total; /* number of requests in the chain */
	/* requests of the chain that wait in `queue`; requests of the chain that are sent and not answered */
	uint16_t waiting, sent;
	/* The chain has an add to a number that may be near a limit: no later request, except for the same queue,
	 * may join the chain until all its requests are answered. */
	bool exclusive;
	/* The session's requests in flight outside this chain carry a round's client id. hs_chain_restore_client
	 * gives them the session's own id back. */
	bool relabelled;
	uint64_t slots; /* a bit for each slot, modulo 64, that a request of the chain has */
	struct hs_fold_client client;
};

/* The stage's state in a session. */
struct hs_fold_session {
	/* by partition bucket; NULL: the session never had a chain */
	struct hs_fold_chain *chains;
	uint32_t relabelled; /* number of the session's chains with `relabelled` set */
	/* Foldable requests of this session still to be sent directly, because the session was held while it had
	 * much pipelined input. */
	uint32_t unfolded;
};

struct hs_fold_request {
	struct hs_request *request;
	/* the queue that the request waits in or was sent from; NULL: none */
	struct hs_fold_queue *queue;
	struct hs_fold_chain *chain; /* the chain that has the request; NULL: none */
	struct hs_fold_batch *batch; /* of an internal call: the batch that the call sends */
	struct hs_fold_member member;
	bool waiting; /* not sent yet */
	bool behind;  /* in chain->behind */
};

struct hs_fold_stage {
	struct hs_core *core;
	struct hs_fold_stats stats;
	uint32_t index; /* of this stage in the core's array of stages */
	size_t session_at, request_at;
	/* number of the call that hs_fold_admit saw last; `admitted` and `admitted_member` belong to this call */
	uint64_t admitted_call;
	/* the queue for the admitted call's request, which enters it in `depart`; NULL: none */
	struct hs_fold_queue *admitted;
	/* the admitted call's fold kind and arguments; `command` NULL: not classified yet */
	struct hs_fold_member admitted_member;
	uint32_t taken;	     /* requests in the chains of all sessions */
	uint32_t relabelled; /* number of chains with `relabelled` set */
	struct hs_link queues;
	struct hs_link ready;	  /* queues that may send a plan at the end of the round */
	struct hs_link remaining; /* queues with deferred members */
	/* chains whose `behind` requests may advance at the end of the round */
	struct hs_link advancing;
	uint32_t count;
	uint64_t round;
	/* the client id of this round, for the requests of long chains (hs_chain_is_long); 0: not drawn yet */
	uint64_t round_client;
	struct hs_buf scratch;
};

/* keys.c: the queue of the call's only key, which is argument number `at`; NULL: the key has no queue. */
struct hs_fold_queue *hs_fold_find(const struct hs_fold_stage *stage, struct hs_call *call,
				   size_t at);

/* stage.c: sends every waiting member of the queue by itself. All members must belong to the session that is being
 * served. */
void hs_fold_release(struct hs_fold_stage *stage, struct hs_fold_queue *queue);
/* Call when the queue has waiting members: the queue's plan is sent at the end of the round. Does nothing if the
 * queue has operations in flight from an earlier round. */
void hs_fold_make_ready(struct hs_fold_stage *stage, struct hs_fold_queue *queue);

/* chain.c: returns the session's chain of a partition bucket; makes the session's chains at the first call. */
struct hs_fold_chain *hs_chain_of(struct hs_fold_stage *stage, struct hs_session *session,
				  uint32_t bucket);
/* Whether a command may be added to the chain. `queue`: the queue for the command; NULL: none. */
bool hs_chain_takes(const struct hs_fold_chain *chain, const struct hs_command *command,
		    const struct hs_fold_queue *queue);
void hs_chain_add(struct hs_fold_stage *stage, struct hs_fold_chain *chain,
		  struct hs_fold_request *folded);
/* The request leaves its queue, because it is about to be sent by itself or in a batch. */
void hs_chain_sent(struct hs_fold_stage *stage, struct hs_fold_request *folded);
/* The request leaves the chain, because it is answered or is about to be sent outside the chain. The requests
 * behind it may then advance. */
void hs_chain_leave(struct hs_fold_stage *stage, struct hs_fold_request *folded);
/* The client has gone: removes a request that is not sent yet from its queue and chain. */
void hs_chain_drop(struct hs_fold_stage *stage, struct hs_fold_request *folded);
/* For every chain in stage->advancing: moves requests from `behind` into their queues, and sends requests that
 * have no queue. */
void hs_chain_advance(struct hs_fold_stage *stage);
/* Whether the chain has requests in flight or in its `behind` list. The requests
 * of a long chain are sent under the round's client id, so that the engine keeps their order. */
bool hs_chain_is_long(const struct hs_fold_chain *chain);
/* Returns the round's client id; draws one at the first call in a round. */
uint64_t hs_chain_client(struct hs_fold_stage *stage);
/* Gives the round's client id to a request of a chain that is about to be sent by itself, and to the session's
 * requests in flight in the same bucket outside the chain. */
void hs_chain_use_client(struct hs_fold_stage *stage, struct hs_fold_request *folded);
/* Gives the round's client id to the session's requests in flight in the chain's bucket but outside the chain. */
void hs_chain_use_client_for_others(struct hs_fold_stage *stage, struct hs_fold_chain *chain);
/* Gives the session's own client id back to the session's requests in flight in the chain's bucket. Call before
 * another request is sent under the session's id, so that the engine keeps the order of all of them. No request of
 * the chain may be in flight. */
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

/* Whether the queue may send its waiting members in this round: it has nothing in flight, or has sent a plan in
 * this round already. */
static inline bool hs_fold_may_launch(const struct hs_fold_stage *stage,
				      const struct hs_fold_queue *queue)
{
	return queue->in_flight == 0 || queue->round == stage->round;
}

/* Number of the session's operations in flight in the bucket that are not in the session's chain. */
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
/* Turns the points `admit` and `depart` on or off: the stage needs them while a queue exists, a chain has
 * requests, or requests carry a changed client id. */
void hs_fold_want(struct hs_fold_stage *stage);

#endif
