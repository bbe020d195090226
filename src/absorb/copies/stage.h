/* Private to absorb/copies: a worker's hot keys with copies, or with a rule that wants copies. The head of
 * stage.c explains the whole.
 *
 * The folder knows the core, commands, contracts, slots and partitions, heat (the loads), the wire format, and
 * what it shares with cache and the other workers (entry.h, shared.h, versions.h). It must not know cache or
 * fold, sockets, or the engine's kind: of the engine it uses only facts in struct hs_core_world (op_scope, slots)
 * and the tracking sessions in finished operations. set.c knows less (set.h).
 *
 * One thread, the worker's; other workers learn of a set only through its entry in the shared cache; counters
 * may be read by any thread. Limit: HS_COPIES_KEYS_MAX keys; a further hot key gets no copies.
 *
 * Bad day. A copy's partition stops: reads in flight there go to the original after HS_COPIES_SLOW_US plus a
 * tick, and a late answer is dropped. The place is skipped while it is slow or cooling down (hs_copies_next);
 * the other places and the original serve its reads. */
#ifndef HS_ABSORB_COPIES_STAGE_H
#define HS_ABSORB_COPIES_STAGE_H

#include "absorb/copies/set.h"
#include "absorb/copies/stats.h"
#include "absorb/versions.h"
#include "core/internal.h"
#include "core/reserved.h"
#include "core/stage.h"
#include "core/state.h"

enum hs_copies_state {
	HS_COPIES_WATCHED, /* hot, no copies */
	HS_COPIES_MAKING,
	HS_COPIES_ACTIVE, /* reads go to the copies */
	HS_COPIES_PAUSED, /* no copies for now, because of `why` */
};

struct hs_copies_key {
	struct hs_link link; /* in stage->keys */
	struct hs_hot *hot;  /* NULL: the key was removed, calls for it are still in flight */
	const struct hs_rule *rule;
	uint16_t slot;
	uint64_t key_hash;
	enum hs_copies_state state;
	uint64_t since_us;	 /* when the state began */
	uint64_t pause_until_us; /* no set is made before */
	uint32_t recent_reads;	 /* reads that reached this stage, halved at each tick */
	/* calls in flight about the key; it is freed only when there are none */
	uint32_t in_flight;
	struct hs_copies_backoff backoff;
	uint32_t places_before; /* number of places of the last set */

	struct hs_copies *copies; /* the set in use; NULL: none */
	bool owned;		  /* made by this worker, which renews and deletes it */
	uint64_t renew_us;	  /* when the lease is to be renewed */
	uint64_t used_us;	  /* when this worker last used it */

	struct hs_copies *making;  /* the set being made; NULL: none, or not named yet */
	struct hs_version version; /* the key's version before the original was read */

	char why[128]; /* why no copies are made; empty: no reason */
	size_t key_len;
	char key[];
};

struct hs_copies_stage {
	struct hs_core *core;
	struct hs_copies_stats stats;
	struct hs_shared *shared; /* shared by all workers; NULL: no copies are made */
	uint32_t index;		  /* in the array of stages */
	size_t request_at;
	struct hs_versions versions;
	bool enabled; /* a rule wants copies, and this engine allows them */
	bool stopped; /* the server is stopping */
	struct hs_link keys;
	uint32_t count;
	struct hs_copies_id id; /* of the last set that this worker made */
	/* Loads of the partitions, sampled every SAMPLE_US. */
	uint64_t sampled_us;
	uint64_t counted[HS_PARTITIONS_MAX];
	struct hs_copies_loads loads;
};

static inline struct hs_bytes hs_copies_key_name(const struct hs_copies_key *copied)
{
	return (struct hs_bytes){copied->key, copied->key_len};
}

/* The stage's state in an internal call. */
struct hs_copies_call {
	struct hs_copies_key *copied;  /* the key that it is about; or NULL */
	struct hs_copies *copies;      /* the set that it sends to, a reference; or NULL */
	struct hs_copies_place *place; /* the copy that it reads; or NULL */
	struct hs_request *reader;     /* the request it reads for; or NULL */
	/* while the call is being sent: set to true if it is answered at once; or NULL */
	bool *answered_at_once;
};

static inline struct hs_copies_call *hs_copies_call(const struct hs_copies_stage *stage,
						    const struct hs_request *request)
{
	return hs_stage_request(request, stage->request_at);
}

struct hs_copies_key *hs_copies_find(const struct hs_copies_stage *stage, uint16_t slot,
				     struct hs_bytes key);
/* Whether reads may go to the copies now. Drops a set that has ended. */
bool hs_copies_valid(struct hs_copies_stage *stage, struct hs_copies_key *copied);
/* A read found no set: may start making one. */
void hs_copies_consider(struct hs_copies_stage *stage, struct hs_copies_key *copied);
void hs_copies_pause(struct hs_copies_stage *stage, struct hs_copies_key *copied, uint64_t us,
		     const char *format, ...) __attribute__((format(printf, 4, 5)));
/* Ends the use of the set, and deletes its copies if this worker owns it. */
void hs_copies_drop(struct hs_copies_stage *stage, struct hs_copies_key *copied);
/* Puts a set to use: one that is complete, or another worker's. */
void hs_copies_adopt(struct hs_copies_stage *stage, struct hs_copies_key *copied,
		     struct hs_copies *copies, bool owned);
/* A call about the key was answered. The key may be freed when this returns. */
void hs_copies_release(struct hs_copies_key *copied);

void hs_copies_make(struct hs_copies_stage *stage, struct hs_copies_key *copied);
void hs_copies_renew(struct hs_copies_stage *stage, struct hs_copies_key *copied);
void hs_copies_unlink(struct hs_copies_stage *stage, const struct hs_copies *copies);
/* Looks in the shared cache for another worker's set. True: it is in use, or that worker is making one. */
bool hs_copies_find_shared(struct hs_copies_stage *stage, struct hs_copies_key *copied);

/* Called by the core as points of the stage (core/stage.h). */
enum hs_stage_result hs_copies_depart(void *self, struct hs_request *request, struct hs_part *part);
void hs_copies_report(void *self, struct hs_reply *reply);

#endif
