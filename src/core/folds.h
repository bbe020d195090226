/* Private to core/folds*.c: the queues of hot keys, and what sessions have in them. folds.c tells the
 * whole story. */
#ifndef HS_CORE_FOLDS_H
#define HS_CORE_FOLDS_H

#include "core/session.h"

enum { HS_FOLDS_BUCKETS = 256 };

struct hs_queue {
	struct hs_link link;   /* in folds->queues */
	struct hs_link ready;  /* in folds->ready, or alone */
	struct hs_queue *next; /* in its bucket */
	struct hs_fold fold;
	uint32_t waiting;     /* in `fold` */
	uint32_t under_way;   /* operations sent */
	uint64_t alone;	      /* all of them of this connection, each by itself; 0: not so */
	uint32_t reads_apart; /* reads that go straight now: folding them did not help */
	uint32_t resting;     /* requests of all kinds that do */
	uint32_t judged_asks, judged_steps;
	uint16_t slot;
	uint64_t hot_us; /* when it was last seen hot */
	size_t key_len;
	char key[];
};

/* What a session has in the queue of one lane, all of it counted in that lane. */
struct hs_folding {
	struct hs_queue *queue; /* NULL: nothing */
	uint16_t members;	/* requests under way through it */
	uint16_t joined;	/* of them waiting, or sent with others */
	struct hs_fold_client client;
};

struct hs_folds {
	struct hs_link queues;
	struct hs_link ready; /* those whose waiters may go at the end of the round */
	uint32_t count;
	uint64_t sent; /* steps for many, ever */
	struct hs_buf scratch;
	struct hs_queue *buckets[HS_FOLDS_BUCKETS]; /* by slot */
};

/* folds_keys.c: the queue of a key; NULL: it is not folded. */
struct hs_queue *hs_folds_find(const struct hs_core *core, uint16_t slot, struct hs_bytes key);

/* folds.c: sends what waits as it came: all of it is of the session that is being served. */
void hs_folds_release(struct hs_core *core, struct hs_queue *queue);

/* Operations of the session under way in the lane that are not in the queue. */
static inline uint32_t hs_folds_others(const struct hs_session *session, uint32_t lane,
				       const struct hs_queue *queue)
{
	const struct hs_folding *folding = session->folding ? &session->folding[lane] : NULL;

	return session->lane[lane] -
	       (uint32_t)(folding && folding->queue == queue ? folding->members : 0);
}

#endif
