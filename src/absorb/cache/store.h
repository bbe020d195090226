/* One worker's cache: the admitted keys and their entries. This module decides which key to evict when memory
 * is full. Other files decide which keys are cached, whether an entry may be served, and when it is fetched
 * again (read.c, entry.h).
 *
 * Eviction is S3-FIFO over keys, by bytes: new keys enter a small queue, keys used again move to a large queue,
 * and the hashes of keys evicted from the small queue are remembered for a while (ghosts.h). A pinned key is
 * not evicted.
 *
 * When a key is evicted, the entries that this worker fetched become invalid for all workers: this worker alone
 * gets their invalidations and could no longer find them.
 *
 * One thread, the worker's. Limits: `bytes_max` in all, `entry_bytes_max` per entry, HS_CACHE_VARIANTS_MAX
 * entries per key. */
#ifndef HS_ABSORB_CACHE_H
#define HS_ABSORB_CACHE_H

#include "absorb/cache/stats.h"
#include "absorb/entry.h"
#include "base/hash_table.h"
#include "base/list.h"

enum {
	HS_CACHE_VARIANTS_MAX = 32, /* entries of one key; one more evicts the oldest */
	HS_CACHE_USES_MAX = 15,
};

struct hs_cache_limits {
	uint64_t bytes_max;
	uint64_t entry_bytes_max;
};

struct hs_cache_counts {
	HS_CACHE_COUNTERS(HS_COUNTER_NUMBER)
};

/* An admitted key. The fields from `rule` on belong to the stage (read.c, fetch.c, write.c, replica.c). */
struct hs_cache_key {
	struct hs_hash_node node;
	struct hs_link queue; /* link in the small or the large queue */
	uint64_t bytes;	      /* of the key and its entries */
	/* uses; one fewer each time it is passed over for eviction; at most HS_CACHE_USES_MAX */
	uint8_t uses;
	bool large; /* in the large queue */
	uint16_t entries_count, entries_cap;
	/* references, oldest first; points to `only` while there is one */
	struct hs_cache_entry **entries;
	struct hs_cache_entry *only;
	struct hs_bytes key; /* bytes lie behind the struct */
	uint32_t pins;	     /* > 0: not evicted */

	const struct hs_rule *rule;
	uint16_t slot;
	struct hs_link fetches;	     /* fetches in flight */
	uint64_t hits, misses, read; /* reads answered; reads that waited; fetches sent */
	uint64_t failed_us; /* when a fetch last failed or was slow; 0: a later one succeeded */
	/* the last fetch was not cached: too large, or the key was written meanwhile */
	bool uncached;
	uint32_t unused_writes; /* written-through values in a row that no client read */
	/* For replica reads. large_query: signature of the query whose reply is too large for the cache; 0:
	 * none. seen_done: `done` of the key's version at the last look; seen_us: when that value was first
	 * seen; written_us: a time that is certainly after those writes, 0: not known yet. */
	uint64_t large_query;
	uint32_t seen_done;
	uint64_t seen_us, written_us;
};

struct hs_cache *hs_cache_create(uint32_t worker, const struct hs_cache_limits *limits);
void hs_cache_destroy(struct hs_cache **cache); /* no key may be pinned */
void hs_cache_limit(struct hs_cache *cache, const struct hs_cache_limits *limits);

/* NULL: not admitted. Does not count as a use. */
struct hs_cache_key *hs_cache_find(struct hs_cache *cache, uint64_t key_hash, struct hs_bytes key);
/* Makes room for the key. NULL: all other keys are pinned, or the key is too long. */
struct hs_cache_key *hs_cache_admit(struct hs_cache *cache, uint64_t key_hash, struct hs_bytes key);
static inline void hs_cache_use(struct hs_cache_key *cached)
{
	if (cached->uses < HS_CACHE_USES_MAX)
		cached->uses++;
}

/* The entry for the query, in any state; NULL: none. */
struct hs_cache_entry *hs_cache_get(const struct hs_cache_key *cached,
				    const struct hs_cache_query *query);
/* Stores the entry (takes a reference) in place of an earlier one for the same query. False: too large, or all
 * else is pinned. */
bool hs_cache_put(struct hs_cache *cache, struct hs_cache_key *cached,
		  struct hs_cache_entry *entry);
/* Drops one entry. */
void hs_cache_drop(struct hs_cache *cache, struct hs_cache_key *cached,
		   struct hs_cache_entry *entry);

/* The tracking session reported a change of the key: drops the entries fetched under it and marks them invalid.
 * Returns how many were valid until then. */
uint32_t hs_cache_invalidate(struct hs_cache *cache, struct hs_cache_key *cached,
			     const struct hs_tracking_session *tracking_session);
/* As hs_cache_invalidate, for all keys under this tracking session. */
uint32_t hs_cache_invalidate_all(struct hs_cache *cache,
				 const struct hs_tracking_session *tracking_session);

/* Removes the key. False: it is pinned. */
bool hs_cache_remove(struct hs_cache *cache, struct hs_cache_key *cached);
/* Drops all entries, and removes all keys that are not pinned. */
void hs_cache_clear(struct hs_cache *cache);

/* Iterates over all keys, in no order; `at` starts as 0, the end is NULL. Meanwhile no key may be admitted and
 * no entry stored; the key returned last may be removed. */
struct hs_cache_key *hs_cache_each(const struct hs_cache *cache, size_t *at);
struct hs_cache_counts hs_cache_counts(const struct hs_cache *cache);
/* While this number is unchanged, pointers to keys and entries are still valid. */
uint64_t hs_cache_removals(const struct hs_cache *cache);

#endif
