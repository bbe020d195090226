/* Private to absorb/cache: a worker's cache stage and its fetches in flight. The head of read.c explains the
 * whole.
 *
 * The folder knows the core, commands, contracts, and what it shares with copies and the other workers
 * (entry.h, shared.h, versions.h). It must not know fold or copies, sockets, or the engine's kind: of the
 * engine it uses only facts in struct hs_core_world (op_scope, shared_connections) and the tracking sessions in
 * finished operations.
 *
 * One thread, the worker's; counters may be read by any thread. Limits: store.h.
 *
 * Bad day. Worker B's readers wait for a fetch that worker A has claimed, and the server is away. B never gets
 * A's error or A's stale entry: from the shared cache it takes only a fresh entry. When A's fetch ends without
 * one, B starts its own (it may find the claim taken again). At the first tick after CLAIMED_ELSEWHERE_US_MAX
 * (fetch.c) B sends its own in any case, without a claim. When B's own fetch fails or is slow, B's readers get
 * a stale entry if the rule's stale-if-error allows one that is in B's own cache. Otherwise they get the error
 * of B's fetch, and with a slow one they wait until the engine answers. */
#ifndef HS_ABSORB_CACHE_STAGE_H
#define HS_ABSORB_CACHE_STAGE_H

#include "absorb/cache/store.h"
#include "absorb/shared.h"
#include "absorb/versions.h"
#include "core/stage.h"
#include "core/state.h"

/* The last hit, so that an equal read directly behind it needs no second lookup. */
struct hs_cache_last_hit {
	const struct hs_session *session;
	uint64_t event, number; /* core->event, and the call's number */
	/* hs_cache_removals then: `cached` and `entry` are valid while it is unchanged */
	uint64_t removals;
	struct hs_cache_key *cached;
	struct hs_cache_entry *entry;
	uint64_t age_us;
};

struct hs_cache_stage {
	struct hs_core *core;
	struct hs_cache_stats stats;		/* copied from the cache at each tick */
	struct hs_cache_rule_stats *rule_stats; /* by the rule's number */
	struct hs_shared *shared; /* shared by all workers; NULL: caching is not possible */
	uint32_t index;		  /* in the array of stages */
	size_t request_at;
	struct hs_versions versions;
	struct hs_cache *cache;
	/* a reference, because cached keys point to rules; NULL: none */
	const struct hs_rules *rules;
	enum hs_mitigate mitigate;
	bool enabled;			  /* a rule allows caching and `mitigate` is not off */
	struct hs_link claimed_elsewhere; /* fetches that another worker has claimed */
	struct hs_link sent;		  /* fetches in flight */
	struct hs_buf scratch;
	struct hs_buf mget_reply; /* a reply to MGET while it is composed */
	/* stands for a tracking session that reports every change, while `mitigate` is observe */
	struct hs_tracking_session observe_session;
	struct hs_cache_last_hit last_hit;
	bool had_rule; /* a cache rule exists or existed */
};

/* State in a request that waits for a fetch, or in a SET that is written through. */
struct hs_cache_request {
	struct hs_request *request;
	struct hs_link link; /* in fetch->waiters or fetch->next_waiters */
	bool detached;	     /* a SET that counts in detached_writes */
};

static inline struct hs_cache_request *hs_cache_request(const struct hs_cache_stage *stage,
							struct hs_request *request)
{
	struct hs_cache_request *state = hs_stage_request(request, stage->request_at);

	state->request = request;
	return state;
}

/* A fetch: one read of the engine for all requests that wait for the value, and for the cache (single-flight). */
struct hs_cache_fetch {
	struct hs_link of_key;	     /* in cached->fetches */
	struct hs_link link;	     /* in stage->sent or stage->claimed_elsewhere */
	struct hs_cache_key *cached; /* pinned while the fetch exists */
	struct hs_link waiters;	     /* requests that get this fetch's reply */
	/* requests that must not use it: the fetch began before a write that they must see */
	struct hs_link next_waiters;
	struct hs_request *internal_request; /* the internal call; owns the query's arguments */
	struct hs_cache_query query;
	struct hs_version version; /* the key's version before the fetch was sent */
	uint64_t start_us;
	/* since when this worker waits for another's fetch; 0: it does not */
	uint64_t claimed_elsewhere_us;
	/* > 0: not cached; a replica that has all writes up to this time may answer */
	uint64_t replica_since_us;
	bool claimed;		/* this worker holds the claim in the shared cache */
	bool claimed_elsewhere; /* another worker holds the claim: nothing is sent */
	bool discard;		/* the rules have changed: do not cache the result */
};

/* Makes the request wait for a fetch of the query: the one in flight, or a new one. The request may be answered
 * and freed when this returns. */
void hs_cache_join(struct hs_cache_stage *stage, struct hs_cache_key *cached,
		   const struct hs_cache_query *query, struct hs_request *request);
/* Starts a fetch that no request waits for, unless one is in flight. */
void hs_cache_refresh(struct hs_cache_stage *stage, struct hs_cache_key *cached,
		      const struct hs_cache_query *query);
/* Called by the core as points of the stage (core/stage.h). */
void hs_cache_shared_fetch_done(void *self);
void hs_cache_tick(void *self);

/* Sends a plain SET so that its value can be cached. False: the caller sends it as usual. */
bool hs_cache_write_through(struct hs_cache_stage *stage, struct hs_session *session,
			    struct hs_call *call);
void hs_cache_arrive(void *self, struct hs_request *request, struct hs_part *part);

/* For a read that the cache does not answer: the time up to which a replica must have all writes, to answer in
 * the master's place. 0: only the master may answer. */
uint64_t hs_cache_replica_since(struct hs_cache_stage *stage, const struct hs_session *session,
				struct hs_cache_key *cached, const struct hs_cache_query *query);
/* Whether a replica's reply may be used: it is too large for the cache, and cannot mean that the key is
 * missing. */
bool hs_cache_is_large(const struct hs_cache_stage *stage, const struct hs_cache_entry *entry);
/* Records whether the reply was too large for the cache. */
void hs_cache_note_size(const struct hs_cache_stage *stage, struct hs_cache_key *cached,
			const struct hs_cache_entry *entry);

/* Adopts a new set of rules. Rule numbers are reused: a rule that was not in the old set counts from 0. */
void hs_cache_count_rules(struct hs_cache_stage *stage, const struct hs_rules *rules);
/* Counters of the key's rule. */
struct hs_cache_rule_stats *hs_cache_key_stats(const struct hs_cache_stage *stage,
					       const struct hs_cache_key *cached);

/* Whether the entry may be served because the key cannot be fetched (stale-if-error). */
bool hs_cache_may_serve_on_error(const struct hs_cache_stage *stage,
				 const struct hs_cache_key *cached, struct hs_cache_entry *entry);

#endif
