/* Private to absorb/copies: the keys of a worker whose values lie in several places, or would if that could
 * be. stage.c tells the whole story. */
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
	HS_COPIES_WATCHED, /* hot; no copies */
	HS_COPIES_MAKING,
	HS_COPIES_ACTIVE, /* there are copies, and reads go to them */
	HS_COPIES_PAUSED, /* not now: `why` */
};

struct hs_copies_key {
	struct hs_link link; /* in stage->keys */
	struct hs_hot *hot;  /* its key; NULL: not among the keys any more */
	const struct hs_rule *rule;
	uint16_t slot;
	uint64_t key_hash;
	enum hs_copies_state state;
	uint64_t since_us;	 /* when that began */
	uint64_t pause_until_us; /* no copies are made before */
	uint32_t recent_reads;	 /* reads that the engine had to answer, halved with each tick */
	uint32_t in_flight;	 /* requests about it: it stays until they are answered */
	struct hs_copies_backoff backoff;
	uint32_t places_before; /* of the last set */

	struct hs_copies *copies; /* the set in use; NULL: none */
	bool owned;		  /* it was made here, and is renewed and taken away here */
	uint64_t renew_us;	  /* when it is to be renewed */
	uint64_t used_us;	  /* when it was last used here */

	struct hs_copies *making;  /* a set on its way; NULL: none, or not named yet */
	struct hs_version version; /* before the original was read */

	char why[128]; /* it has no copies; "" */
	size_t key_len;
	char key[];
};

struct hs_copies_stage {
	struct hs_core *core;
	struct hs_copies_stats stats;
	struct hs_shared *shared; /* of all workers; NULL: no copies are made */
	uint32_t index;		  /* in the array of stages */
	size_t request_at;
	struct hs_versions versions;
	bool enabled; /* a rule wants copies, and they may be made */
	bool stopped; /* for good */
	struct hs_link keys;
	uint32_t count;
	struct hs_copies_id id; /* of the set made last */
	/* What each partition had to do, sampled now and then. */
	uint64_t sampled_us;
	uint64_t counted[HS_PARTITIONS_MAX];
	struct hs_copies_loads loads;
};

static inline struct hs_bytes hs_copies_key_name(const struct hs_copies_key *copied)
{
	return (struct hs_bytes){copied->key, copied->key_len};
}

/* What the stage knows of an internal call of its own. */
struct hs_copies_call {
	struct hs_copies_key *copied;  /* the key that it is about; or NULL */
	struct hs_copies *copies;      /* the set that it asks, a reference; or NULL */
	struct hs_copies_place *place; /* the copy that it reads; or NULL */
	struct hs_request *reader;     /* for whom it reads; or NULL */
	bool *answered_at_once; /* while it is being sent: set if it is answered at once; or NULL */
};

static inline struct hs_copies_call *hs_copies_call(const struct hs_copies_stage *stage,
						    const struct hs_request *request)
{
	return hs_stage_request(request, stage->request_at);
}

/* stage.c */
struct hs_copies_key *hs_copies_find(const struct hs_copies_stage *stage, uint16_t slot,
				     struct hs_bytes key);
/* Whether reads may go to the copies now. A set that is over is dropped. */
bool hs_copies_valid(struct hs_copies_stage *stage, struct hs_copies_key *copied);
/* A read finds none: perhaps some are made. */
void hs_copies_consider(struct hs_copies_stage *stage, struct hs_copies_key *copied);
void hs_copies_pause(struct hs_copies_stage *stage, struct hs_copies_key *copied, uint64_t us,
		     const char *format, ...) __attribute__((format(printf, 4, 5)));
/* The set in use is over. */
void hs_copies_drop(struct hs_copies_stage *stage, struct hs_copies_key *copied);
/* A set is complete, or another worker's was found. */
void hs_copies_adopt(struct hs_copies_stage *stage, struct hs_copies_key *copied,
		     struct hs_copies *copies, bool owned);
/* A request about the key is answered. It may be gone when this returns. */
void hs_copies_release(struct hs_copies_key *copied);

/* make.c */
void hs_copies_make(struct hs_copies_stage *stage, struct hs_copies_key *copied);
void hs_copies_renew(struct hs_copies_stage *stage, struct hs_copies_key *copied);
void hs_copies_unlink(struct hs_copies_stage *stage, const struct hs_copies *copies);
/* What another worker has made; true: it is in use, or about to be. */
bool hs_copies_find_shared(struct hs_copies_stage *stage, struct hs_copies_key *copied);

/* read.c and report.c: points of the stage. */
enum hs_stage_result hs_copies_depart(void *self, struct hs_request *request, struct hs_part *part);
void hs_copies_report(void *self, struct hs_reply *reply);

#endif
