/* Versions of keys and read-your-writes: the rules for every stage that answers a read from somewhere other
 * than the engine (cache, copies).
 *
 * Versions. Every operation that may write increments the version of its keys before it leaves for the engine,
 * and again when it is answered, whatever the answer: a write whose outcome is unknown may have run. A command
 * that is not known to be read-only counts as a write of all its keys, as law 8 (unknown commands count as
 * writes) requires. All workers of the process share the versions (absorb/shared.h). A cache entry or a set of
 * copies of an older version is not used, so every client sees a write when it is acknowledged.
 *
 * Read your writes. A session's unanswered writes are not in the versions yet: the session reads such keys from
 * the engine, behind the writes (hs_versions_has_write). A script may write keys that it does not name:
 * afterwards the session that sent it uses only what was fetched or revalidated later (`barrier_us`).
 *
 * Order. A read that waits for a fetch or a copy, and a SET that is written through, are detached: they do not
 * travel with their session's other requests. Later commands of the session that must not overtake them are
 * held (hs_versions_holds).
 *
 * This is a stage of its own, behind fold, so that a batch of folded writes counts as one operation. Every call
 * is on the worker's thread. */
#ifndef HS_ABSORB_VERSIONS_H
#define HS_ABSORB_VERSIONS_H

#include "absorb/shared.h"
#include "core/stage.h"
#include "core/state.h"

extern const struct hs_stage hs_stage_versions;

struct hs_versions_session {
	uint32_t writes_in_flight; /* operations in flight that were counted in versions */
	/* detached reads in flight: the session's later writes wait for them */
	uint32_t detached_reads;
	uint32_t detached_writes; /* detached writes in flight: all later commands wait for them */
	/* Read-your-writes barrier: use only entries fetched or revalidated after this time; 0: none. */
	uint64_t barrier_us;
};

/* Offsets of this stage's state in sessions and requests, and its index. */
struct hs_versions {
	size_t session_at, request_at;
	uint32_t index;
};

struct hs_versions hs_versions_of(const struct hs_core *core);

static inline struct hs_versions_session *hs_versions_session(const struct hs_versions *versions,
							      const struct hs_session *session)
{
	return hs_stage_session(session, versions->session_at);
}

/* Whether the session has a request in flight that may write the key. */
bool hs_versions_has_write(const struct hs_versions *versions, const struct hs_session *session,
			   struct hs_bytes key);
/* Whether the entry was fetched or revalidated after the session's barrier. */
bool hs_versions_is_after_barrier(const struct hs_versions *versions,
				  const struct hs_session *session,
				  const struct hs_cache_entry *entry);
/* Whether the command must wait for its session's detached requests. */
bool hs_versions_holds(const struct hs_versions *versions, const struct hs_session *session,
		       const struct hs_command *command);
/* For an answered write with one key: `before` becomes the version before it. False: another write of the key
 * was in flight with it, so the order of the two is unknown, or the write was not counted. */
bool hs_versions_had_no_other_write(const struct hs_versions *versions,
				    const struct hs_shared *shared,
				    const struct hs_request *request, uint64_t key_hash,
				    struct hs_version *before);

#endif
