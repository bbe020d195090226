/* Replica reads of replies too large for the cache: which reads, and how recent a replica must be.
 *
 * The bounds are those of cache entries. A reply must not be older than the rule's `stale`, than any write
 * acknowledged by a worker of this process, and than the session's barrier. The engine knows up to which time a
 * replica has all writes, and is given a bound for it (hs_op.replica_since_us). So each bound becomes a time
 * here, and the latest one counts.
 *
 * The time of the last acknowledged write is not recorded, only the number of writes (the version). This worker
 * notes when it first saw that number. The core's clock stands still during a batch of events, so the write may
 * have ended after that time; it certainly ended before the next clock value. */
#include "absorb/cache/stage.h"

/* No reply about a missing key is longer: a null, a number, an empty string or aggregate. */
enum { NOTHING_BYTES_MAX = 8 };

/* A time after all acknowledged writes of the key; 0: not known yet. */
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
