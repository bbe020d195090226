/* Replica reads of replies too large for the cache: which reads a replica may answer, and how recent the replica
 * must be.
 *
 * A replica's reply has the same bounds as a cache entry: it must not be older than the rule's `stale`, older than
 * any write that a worker of this process has acknowledged, or older than the session's read-your-writes barrier.
 * The engine knows up to which time a replica has all writes, and accepts one bound as a time
 * (hs_op.replica_since_us). So this file turns each of the three bounds into a time and passes the latest.
 *
 * The shared versions hold the number of acknowledged writes of a key, not the time of the last one. So this
 * worker notes when it first saw the number (seen_us). The core's clock stands still during a batch of events, so
 * another worker's write may have ended after seen_us; it certainly ended before the clock's next value. */
#include "absorb/cache/stage.h"

/* A reply about a missing key is at most this long: a null, a number, an empty string or an empty aggregate. */
enum { NOTHING_BYTES_MAX = 8 };

/* Returns a time after all acknowledged writes of the key; 0: not known yet. */
static uint64_t written_us(const struct hs_cache_stage *stage, struct hs_cache_key *cached)
{
	uint32_t done = hs_shared_version(stage->shared, cached->node.hash).done;
	uint64_t now_us = stage->core->now.mono_us;

	if (cached->seen_us == 0 || cached->seen_done != done) {
		cached->seen_done = done;
		cached->seen_us = now_us;
		cached->written_us = 0;
	} else if (cached->written_us == 0 && now_us > cached->seen_us) {
		cached->written_us = now_us;
	}
	return cached->written_us;
}

uint64_t hs_cache_replica_since(struct hs_cache_stage *stage, const struct hs_session *session,
				struct hs_cache_key *cached, const struct hs_cache_query *query)
{
	uint64_t stale_us = cached->rule->stale_us, now_us = stage->core->now.mono_us, since_us,
		 barrier_us;

	if (!cached->rule->replica_reads || cached->large_query != query->signature)
		return 0;
	since_us = written_us(stage, cached);
	if (since_us == 0)
		return 0;
	if (now_us > stale_us && since_us < now_us - stale_us)
		since_us = now_us - stale_us;
	barrier_us = hs_versions_session(&stage->versions, session)->barrier_us;
	return since_us > barrier_us ? since_us : barrier_us + 1;
}

bool hs_cache_is_large(const struct hs_cache_stage *stage, const struct hs_cache_entry *entry)
{
	return entry->bytes > stage->core->options.cache_entry_bytes &&
	       entry->reply[1].len > NOTHING_BYTES_MAX;
}

void hs_cache_note_size(const struct hs_cache_stage *stage, struct hs_cache_key *cached,
			const struct hs_cache_entry *entry)
{
	if (hs_cache_is_large(stage, entry))
		cached->large_query = entry->signature;
	else if (cached->large_query == entry->signature)
		cached->large_query = 0;
}
