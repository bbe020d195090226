/* Private to absorb/cache: the cache of a worker, and what is being read for it. read.c tells the whole
 * story. */
#ifndef HS_ABSORB_CACHE_STAGE_H
#define HS_ABSORB_CACHE_STAGE_H

#include "absorb/cache/store.h"
#include "absorb/shared.h"
#include "absorb/versions.h"
#include "core/stage.h"
#include "core/state.h"

/* The last hit, for the same read right behind it. */
struct hs_cache_last_hit {
	const struct hs_session *session;
	uint64_t event, number; /* of the core, and of the call */
	uint64_t removals; /* of the cache: `cached` and `entry` are there while it is the same */
	struct hs_cache_key *cached;
	struct hs_cache_entry *entry;
	uint64_t age_us;
};

struct hs_cache_stage {
	struct hs_core *core;
	struct hs_cache_stats stats;		/* as of the last tick */
	struct hs_cache_rule_stats *rule_stats; /* by the rule's number */
	struct hs_shared *shared;		/* of all workers; NULL: nothing is cached */
	uint32_t index;				/* in the array of stages */
	size_t request_at;
	struct hs_versions versions;
	struct hs_cache *cache;
	const struct hs_rules *rules; /* held: keys in the cache point to them; NULL: none */
	enum hs_mitigate mitigate;
	bool enabled;			  /* a rule allows to keep something, and that is wanted */
	struct hs_link claimed_elsewhere; /* fetches that another worker is at */
	struct hs_link sent;		  /* fetches under way */
	struct hs_buf scratch;
	struct hs_buf mget_reply;		    /* the reply to an MGET, while it is composed */
	struct hs_tracking_session observe_session; /* observing: as if all changes were told */
	struct hs_cache_last_hit last_hit;
	bool had_rule; /* a rule was there, now or before */
};

/* What the stage knows of a request: of one that waits for a fetch, or of a SET that is written through,
 * which is marked. */
struct hs_cache_request {
	struct hs_request *request;
	struct hs_link link; /* in fetch->waiters or ->late */
	bool detached;	     /* a SET that is counted in writes_apart */
};

static inline struct hs_cache_request *hs_cache_request(const struct hs_cache_stage *stage,
							struct hs_request *request)
{
	struct hs_cache_request *state = hs_stage_request(request, stage->request_at);

	state->request = request;
	return state;
}

/* A fetch: a reply being read, for the requests that wait and for the cache. */
struct hs_cache_fetch {
	struct hs_link of_key;	     /* in cached->fetches */
	struct hs_link link;	     /* in stage->sent or ->foreign */
	struct hs_cache_key *cached; /* pinned */
	struct hs_link waiters;	     /* requests that get what it brings */
	struct hs_link
		next_waiters; /* those that must not: it began before a write they have to see */
	struct hs_request *internal_request; /* what is sent, and whose arguments these are */
	struct hs_cache_query query;
	struct hs_version version; /* before it was sent */
	uint64_t start_us;
	uint64_t claimed_elsewhere_us; /* since when another worker is waited for; 0: it is not */
	uint64_t
		replica_since_us; /* is not cached, so a replica that had all at that time may answer; or 0 */
	bool claimed;		  /* for all workers */
	bool claimed_elsewhere; /* another has claimed it: nothing is sent */
	bool discard;		/* what it brings is not cached: the rules have changed */
};

/* fetch.c */

/* The request waits for a read of this ask: one under way, or a new one. It may be answered, and gone,
 * when this returns. */
void hs_cache_join(struct hs_cache_stage *stage, struct hs_cache_key *cached,
		   const struct hs_cache_query *query, struct hs_request *request);
/* Reads it again for nobody in particular, unless somebody is at it. */
void hs_cache_refresh(struct hs_cache_stage *stage, struct hs_cache_key *cached,
		      const struct hs_cache_query *query);
/* Points of the stage. */
void hs_cache_shared_fetch_done(void *self);
void hs_cache_tick(void *self);

/* write.c */

/* Sends a plain SET so that its value can be cached. False: it goes its ordinary way. */
bool hs_cache_write_through(struct hs_cache_stage *stage, struct hs_session *session,
			    struct hs_call *call);
void hs_cache_arrive(void *self, struct hs_request *request, struct hs_part *part);

/* replica.c */

/* Of a read that the cache does not answer: what a replica must have had at least, to answer it
 * instead of the key's master. 0: it is the master's. */
uint64_t hs_cache_replica_since(struct hs_cache_stage *stage, const struct hs_session *session,
				struct hs_cache_key *cached, const struct hs_cache_query *query);
/* Whether a replica may answer it: the reply is too large for the cache, and cannot be that of a missing key. */
bool hs_cache_is_large(const struct hs_cache_stage *stage, const struct hs_cache_entry *entry);
/* Remembers whether what was read is too large for the cache. */
void hs_cache_note_size(const struct hs_cache_stage *stage, struct hs_cache_key *cached,
			const struct hs_cache_entry *entry);

/* stats.c */

/* The rules become `rules`. Numbers of rules are used again: a rule that was not there before counts from 0. */
void hs_cache_count_rules(struct hs_cache_stage *stage, const struct hs_rules *rules);
/* Of the key's rule. */
struct hs_cache_rule_stats *hs_cache_key_stats(const struct hs_cache_stage *stage,
					       const struct hs_cache_key *cached);
/* read.c */

/* Whether an old reply may be given because it cannot be read again. */
bool hs_cache_may_serve_on_error(const struct hs_cache_stage *stage,
				 const struct hs_cache_key *cached, struct hs_cache_entry *entry);

#endif
