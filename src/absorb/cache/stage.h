/* Private to absorb/cache: a worker's cache stage, and the fetches that it has in flight. The head of read.c
 * explains how a read passes through the cache.
 *
 * The folder knows the core, commands, contracts, the wire format, and what it shares with copies and the other
 * workers (entry.h, shared.h, versions.h). It must not know fold or copies, sockets, or the engine's kind: of the
 * engine it uses only facts in struct hs_core_world (op_scope, shared_connections) and the tracking sessions in
 * finished operations.
 *
 * One thread, the worker's; counters may be read by any thread. Limits: store.h.
 *
 * Bad day. Worker B's readers wait for a fetch that worker A has claimed, and the server is down. B never uses A's
 * error or A's stale entry: from the shared cache B takes only a fresh entry. When A's fetch ends without a fresh
 * entry, B starts a fetch of its own (B may find the fetch claimed again). At the first tick after
 * CLAIMED_ELSEWHERE_US_MAX (fetch.c) B sends its fetch in any case, without a claim. When B's fetch fails or is
 * slow, B's readers get a stale entry if B's own cache has one and the rule's stale-if-error allows it. Otherwise
 * the readers get the error of B's fetch; if the fetch is slow, they wait until the engine answers. */
#ifndef HS_ABSORB_CACHE_STAGE_H
#define HS_ABSORB_CACHE_STAGE_H

#include "absorb/cache/store.h"
#include "absorb/shared.h"
#include "absorb/versions.h"
#include "core/stage.h"
#include "core/state.h"

/* The last hit that needed no refresh, so that an equal read directly after it needs no second lookup. */
struct hs_cache_last_hit {
	const struct hs_session *session;
	uint64_t event, number; /* core->event and the call's number at that read */
	/* hs_cache_removals at that read: while it is unchanged, `cached` and `entry` are valid */
	uint64_t removals;
	struct hs_cache_key *cached;
	struct hs_cache_entry *entry;
	uint64_t age_us;
};

struct hs_cache_stage {
	struct hs_core *core;
	struct hs_cache_stats stats;		/* copied from the cache at each tick */
	struct hs_cache_rule_stats *rule_stats; /* array by the rule's number */
	struct hs_shared *shared; /* shared by all workers; NULL: this process cannot cache */
	uint32_t index;		  /* of this stage in the core's array of stages */
	size_t request_at;
	struct hs_versions versions;
	struct hs_cache *cache;
	/* The rules that cached keys point to; the stage holds a reference. NULL: no rules. */
	const struct hs_rules *rules;
	enum hs_mitigate mitigate;
	bool enabled; /* a rule allows caching and `mitigate` is not off */
	/* fetches that wait for another worker's claim; not sent */
	struct hs_link claimed_elsewhere;
	struct hs_link sent; /* fetches in flight */
	struct hs_buf scratch;
	struct hs_buf mget_reply; /* the reply to an MGET, while it is composed */
	/* While `mitigate` is observe: the tracking session of all entries. It counts as one that reports every
	 * change. */
	struct hs_tracking_session observe_session;
	struct hs_cache_last_hit last_hit;
	bool had_rule; /* a rule with the contract `cache` exists or has existed */
};

/* The stage's state in a request that waits for a fetch, or in a SET that is written through. */
struct hs_cache_request {
	struct hs_request *request;
	struct hs_link link; /* in fetch->waiters or fetch->next_waiters */
	bool detached;	     /* a SET that counts in hs_versions_session.detached_writes */
};

static inline struct hs_cache_request *hs_cache_request(const struct hs_cache_stage *stage,
							struct hs_request *request)
{
	struct hs_cache_request *state = hs_stage_request(request, stage->request_at);

	state->request = request;
	return state;
}

/* A fetch: one read of the engine for the cache and for all requests that wait for the value (single-flight). */
struct hs_cache_fetch {
	struct hs_link of_key;	     /* in cached->fetches */
	struct hs_link link;	     /* in stage->sent or stage->claimed_elsewhere */
	struct hs_cache_key *cached; /* the key; pinned while the fetch exists */
	struct hs_link waiters;	     /* requests that get the reply of this fetch */
	/* Requests that must not get the reply, because the fetch began too early for them (see serves() in
	 * fetch.c): they get the reply of the next fetch. */
	struct hs_link next_waiters;
	/* the internal call that reads the engine; owns the arguments of `query` */
	struct hs_request *internal_request;
	struct hs_cache_query query;
	struct hs_version version; /* the key's version when the fetch was sent */
	uint64_t start_us;
	/* the time at which this worker began to wait for another worker's fetch; 0: does not wait */
	uint64_t claimed_elsewhere_us;
	/* Above 0: a replica may answer if it has all writes up to this time, and the reply is not cached. */
	uint64_t replica_since_us;
	bool claimed;		/* this worker has claimed the fetch in the shared cache */
	bool claimed_elsewhere; /* another worker has claimed the fetch: this worker does not send it */
	bool discard; /* the rules have changed after the fetch began: do not cache the reply */
};

/* Makes the request wait for a fetch of the query: for the fetch in flight, or for a new one. The request may be
 * answered and freed when this function returns. */
void hs_cache_join(struct hs_cache_stage *stage, struct hs_cache_key *cached,
		   const struct hs_cache_query *query, struct hs_request *request);
/* Starts a fetch of the query without a waiting request. Does nothing if a fetch of the query exists. */
void hs_cache_refresh(struct hs_cache_stage *stage, struct hs_cache_key *cached,
		      const struct hs_cache_query *query);
/* The core calls these as `told` and `tick` (core/stage.h). */
void hs_cache_shared_fetch_done(void *self);
void hs_cache_tick(void *self);

/* Sends a plain SET on a tracking connection, so that its value can be cached. False: not sent; the caller sends
 * the SET as usual. */
bool hs_cache_write_through(struct hs_cache_stage *stage, struct hs_session *session,
			    struct hs_call *call);
void hs_cache_arrive(void *self, struct hs_request *request, struct hs_part *part);

/* For a read that the cache does not answer: the time up to which a replica must have all writes, so that it may
 * answer instead of the master. 0: only the master may answer. */
uint64_t hs_cache_replica_since(struct hs_cache_stage *stage, const struct hs_session *session,
				struct hs_cache_key *cached, const struct hs_cache_query *query);
/* Whether the entry's reply is too large for the cache, and too long to mean that the key is missing. Only such a
 * reply is accepted from a replica. */
bool hs_cache_is_large(const struct hs_cache_stage *stage, const struct hs_cache_entry *entry);
/* Records in `cached` whether the reply to this query is too large for the cache (hs_cache_is_large). */
void hs_cache_note_size(const struct hs_cache_stage *stage, struct hs_cache_key *cached,
			const struct hs_cache_entry *entry);

/* Sets to 0 the counters of each rule in `rules` whose number no rule in stage->rules has, because rule numbers
 * are reused. Call it before stage->rules changes. */
void hs_cache_count_rules(struct hs_cache_stage *stage, const struct hs_rules *rules);
/* The counters of the key's rule. */
struct hs_cache_rule_stats *hs_cache_key_stats(const struct hs_cache_stage *stage,
					       const struct hs_cache_key *cached);

/* Whether the entry may be served although the key cannot be fetched: the entry is fresh, or stale for no longer
 * than stale-while-revalidate plus stale-if-error. */
bool hs_cache_may_serve_on_error(const struct hs_cache_stage *stage,
				 const struct hs_cache_key *cached, struct hs_cache_entry *entry);

#endif
