/* Private to absorb/fold: the queues of hot keys, and what sessions have in them. stage.c tells the
 * whole story. */
#ifndef HS_ABSORB_FOLD_STAGE_H
#define HS_ABSORB_FOLD_STAGE_H

#include "absorb/fold/fold.h"
#include "absorb/fold/stats.h"
#include "core/stage.h"
#include "core/state.h"

struct hs_fold_queue {
	struct hs_link link;  /* in stage->queues */
	struct hs_link ready; /* in stage->ready, or alone */
	struct hs_hot *hot;   /* its key */
	struct hs_fold fold;
	/* Left over by a plan of this round: a client is in one batch of a plan. They are in `fold` again
	 * when the round is over. */
	struct hs_link deferred;
	struct hs_link remaining; /* in stage->left when there are such, or alone */
	uint32_t waiting;	  /* in `fold` or `later` */
	uint32_t behind;	  /* in chains, behind what their clients asked before */
	uint32_t in_flight;	  /* operations sent */
	uint64_t round;		  /* in which it was launched last */
	uint64_t sole_client;	  /* all of them of this connection, each by itself; 0: not so */
	uint32_t bypass_reads;	  /* reads that go straight now: folding them did not help */
	uint32_t bypass;	  /* requests of all kinds that do */
	uint32_t judged_members, judged_batches;
};

/* What a session has in the queues of one partition bucket: its chain, in the order asked
 *
 *     sent ─ waiting in one queue ─ behind
 *
 * all of it counted in that bucket. */
struct hs_fold_chain {
	struct hs_session *session;
	struct hs_link advancing;    /* in stage->moving, or alone */
	struct hs_fold_queue *queue; /* of those that wait; or of the last that was sent; or NULL */
	struct hs_link behind;	     /* asks, of other queues or of none */
	uint16_t total;		     /* all of them */
	uint16_t waiting, sent;	     /* of them */
	bool exclusive;		     /* nothing may be sent behind it before it is answered */
	bool relabelled; /* what its session has in flight beside it has had the client id of a round */
	uint64_t slots; /* a bit for each of their slots, modulo 64 */
	struct hs_fold_client client;
};

/* What the stage knows of a session, and of a request that it has marked. */
struct hs_fold_session {
	struct hs_fold_chain *chains; /* by bucket; NULL: nothing ever was */
	uint32_t relabelled;	      /* of them */
	uint32_t
		unfolded; /* so many that could be folded are not: it was held up with much to do */
};

struct hs_fold_request {
	struct hs_request *request;
	struct hs_fold_queue *queue; /* that it goes through, or was sent from; NULL: none */
	struct hs_fold_chain *chain; /* of its session that it is in, or NULL */
	struct hs_fold_batch *batch; /* an internal call's: what it was sent for */
	struct hs_fold_member member;
	bool waiting; /* not planned yet */
	bool behind;  /* in its chain, behind those that wait in a queue */
};

struct hs_fold_stage {
	struct hs_core *core;
	struct hs_fold_stats stats;
	uint32_t index; /* in the array of stages */
	size_t session_at, request_at;
	/* Of the call that was admitted last, which has this number. */
	uint64_t admitted_call;
	struct hs_fold_queue *admitted; /* its request goes through it when it departs; or NULL */
	struct hs_fold_member
		admitted_member; /* what it is to folding; `command` NULL: not worked out */
	uint32_t taken;		 /* requests of all sessions in chains */
	uint32_t relabelled;	 /* chains that are */
	struct hs_link queues;
	struct hs_link ready;	  /* those whose waiters may go at the end of the round */
	struct hs_link remaining; /* those of which a plan left some over */
	struct hs_link advancing; /* chains that may go on then */
	uint32_t count;
	uint64_t round;
	uint64_t
		round_client; /* the client id of chains' requests in this round; 0: not drawn yet */
	struct hs_buf scratch;
};

/* keys.c: the queue of a call's only key, at that place of its arguments; NULL: it is not folded. */
struct hs_fold_queue *hs_fold_find(const struct hs_fold_stage *stage, struct hs_call *call,
				   size_t at);

/* stage.c: sends what waits as it came: all of it is of the session that is being served. */
void hs_fold_release(struct hs_fold_stage *stage, struct hs_fold_queue *queue);
/* A queue has somebody who waits: it is launched with the round, unless it is under way. */
void hs_fold_make_ready(struct hs_fold_stage *stage, struct hs_fold_queue *queue);

/* chain.c: what a session has in queues, in its order. */
struct hs_fold_chain *hs_chain_of(struct hs_fold_stage *stage, struct hs_session *session,
				  uint32_t bucket);
/* Whether a command may be asked behind what there is, be it for a queue or for none (NULL). */
bool hs_chain_takes(const struct hs_fold_chain *chain, const struct hs_command *command,
		    const struct hs_fold_queue *queue);
void hs_chain_add(struct hs_fold_stage *stage, struct hs_fold_chain *chain,
		  struct hs_fold_request *folded);
/* A request that waits in its queue is being sent. */
void hs_chain_sent(struct hs_fold_stage *stage, struct hs_fold_request *folded);
/* The request is answered, or goes its own way: what is behind it may go on. */
void hs_chain_leave(struct hs_fold_stage *stage, struct hs_fold_request *folded);
/* The client has gone: a request that waits is not sent. */
void hs_chain_drop(struct hs_fold_stage *stage, struct hs_fold_request *folded);
/* Sends on what may go in this round. */
void hs_chain_advance(struct hs_fold_stage *stage);
/* Whether its session has more than one request in it: then what is sent has the client id of the round. */
bool hs_chain_is_long(const struct hs_fold_chain *chain);
/* The client id for this round's requests of such chains. */
uint64_t hs_chain_client(struct hs_fold_stage *stage);
/* A request that is about to be sent by itself gets that id, and so does what its session has in flight
 * besides. */
void hs_chain_use_client(struct hs_fold_stage *stage, struct hs_fold_request *folded);
/* What the session has in flight beside its chain gets that id, too. */
void hs_chain_use_client_for_others(struct hs_fold_stage *stage, struct hs_fold_chain *chain);
/* Something of the session is about to be sent under its own id: what it has in flight gets that back, so that the engine
 * knows that it is followed. The chain has sent nothing that is not answered. */
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

/* Whether what waits in it may leave now. */
static inline bool hs_fold_may_launch(const struct hs_fold_stage *stage,
				      const struct hs_fold_queue *queue)
{
	return queue->in_flight == 0 || queue->round == stage->round;
}

/* Operations of the session under way in the bucket that are not in its chain. */
static inline uint32_t hs_fold_others(const struct hs_fold_stage *stage,
				      const struct hs_session *session, uint32_t bucket)
{
	const struct hs_fold_chain *chains = hs_fold_session(stage, session)->chains;

	return session->in_bucket[bucket] - (chains ? chains[bucket].total : 0u);
}

/* admit.c */
enum hs_stage_result hs_fold_admit(void *self, struct hs_session *session, struct hs_call *call);

/* keys.c */
void hs_fold_hot(void *self, struct hs_hot *hot, bool waited);
void hs_fold_cool(void *self, struct hs_hot *hot, bool cool);
void hs_fold_report(void *self, struct hs_reply *reply);
/* Whether the stage is called for new commands: it has a queue, or requests in chains. */
void hs_fold_want(struct hs_fold_stage *stage);

#endif
