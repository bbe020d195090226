/* Versions of keys, and a session's own order: what every stage that answers reads from somewhere else
 * than the engine (the cache, copies) has to respect.
 *
 * Versions. Every operation that may write bumps the version of its keys before it leaves for the engine
 * and again when it is answered, whatever the answer: one whose outcome is unknown may have written. A
 * command that is not known to read only counts as a write of all its keys (law 8). The versions are shared
 * by the workers of the process (absorb/shared.h): a cache entry or a set of copies of an older version is
 * not used, so everybody sees a write when it is acknowledged.
 *
 * Read your writes. A session's writes that are not answered yet are not in the versions: the session reads
 * such keys from the engine, behind them (hs_versions_has_write). A script may write keys that it does not
 * name: the session that sent it uses nothing that was not fetched or revalidated since (`barrier_us`).
 *
 * Order. A read that waits for a fetch or for a copy, and a SET that is written through, travel apart from
 * their session's other requests. Later commands of the session that must not overtake them are held
 * (hs_versions_holds).
 *
 * This is a stage of its own, behind fold: a batch of folded writes is one operation. */
#ifndef HS_ABSORB_VERSIONS_H
#define HS_ABSORB_VERSIONS_H

#include "absorb/shared.h"
#include "core/stage.h"
#include "core/state.h"

extern const struct hs_stage hs_stage_versions;

struct hs_versions_session {
	uint32_t writes_in_flight; /* operations in flight that are counted in versions */
	uint32_t
		detached_reads; /* requests in flight apart from the others: later writes wait for them */
	uint32_t detached_writes; /* likewise: everything waits for them */
	/* Read-your-writes barrier: use only what was fetched or revalidated after this time; 0: none. */
	uint64_t barrier_us;
};

/* Where the state of this stage lies in sessions and requests. */
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
/* Whether what was read is not from before the session's barrier. */
bool hs_versions_is_after_barrier(const struct hs_versions *versions,
				  const struct hs_session *session,
				  const struct hs_cache_entry *entry);
/* Whether a command must wait for what its session has in flight apart from the others. */
bool hs_versions_holds(const struct hs_versions *versions, const struct hs_session *session,
		       const struct hs_command *command);
/* Of a write with one key that is answered: the version before it. False: another write of the key was in
 * flight with it, so that nobody knows which one came last, or the write was not counted. */
bool hs_versions_had_no_other_write(const struct hs_versions *versions,
				    const struct hs_shared *shared,
				    const struct hs_request *request, uint64_t key_hash,
				    struct hs_version *before);

#endif
