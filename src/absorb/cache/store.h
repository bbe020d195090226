/* One worker's cache: the admitted keys and their entries. This module decides which key to evict when memory is
 * full. read.c decides which keys are admitted and when an entry is fetched again; absorb/entry.h, whether an
 * entry is fresh.
 *
 * Eviction is S3-FIFO over keys, by bytes: new keys enter a small queue, keys used again move to a large queue,
 * and the ghost list (ghosts.h) remembers the hashes of keys evicted from the small queue for a while. A pinned
 * key is not evicted.
 *
 * When a worker evicts a key, the entries that this worker fetched become invalid for all workers. Only the worker
 * that fetched an entry gets the entry's invalidations, and after the eviction it could not find the entry any
 * more.
 *
 * One thread, the worker's. Limits: `bytes_max` for all keys and entries, `entry_bytes_max` for one entry,
 * HS_CACHE_VARIANTS_MAX entries for one key. If there is no room because keys are pinned, hs_cache_admit returns
 * NULL and hs_cache_put false, and the reply is not cached. */
#ifndef HS_ABSORB_CACHE_H
#define HS_ABSORB_CACHE_H

#include "absorb/cache/stats.h"
#include "absorb/entry.h"
#include "base/hash_table.h"
#include "base/list.h"

enum {
	HS_CACHE_VARIANTS_MAX = 32, /* entries of one key; one more replaces the oldest */
	HS_CACHE_USES_MAX = 15,
};

struct hs_cache_limits {
	uint64_t bytes_max;
	uint64_t entry_bytes_max;
};

struct hs_cache_counts {
	HS_CACHE_COUNTERS(HS_COUNTER_NUMBER)
};

/* An admitted key. The fields from `rule` on belong to the stage (read.c, fetch.c, write.c, replica.c); the store
 * sets them to 0 and makes `fetches` an empty list. */
struct hs_cache_key {
	struct hs_hash_node node;
	struct hs_link queue; /* in the small or the large queue of struct hs_cache */
	uint64_t bytes;	      /* memory of the key and its entries */
	/* Uses since the key entered its queue, at most HS_CACHE_USES_MAX. Eviction that passes over the key in
	 * the large queue takes one off. */
	uint8_t uses;
	bool large; /* the key is in the large queue, not the small one */
	uint16_t entries_count, entries_cap;
	/* The entries, oldest first; each is a reference. Points to `only` until there are two entries. */
	struct hs_cache_entry **entries;
	struct hs_cache_entry *only;
	struct hs_bytes key; /* the bytes lie after the struct */
	uint32_t pins;	     /* above 0: the key must not be evicted or removed */

	const struct hs_rule *rule;
	uint16_t slot;
	/* fetches of this key that are in flight or wait for another worker */
	struct hs_link fetches;
	/* Reads answered from entries; reads that waited for a fetch or went to the engine; fetches sent. */
	uint64_t hits, misses, read;
	/* when a fetch last failed or was slow; 0: never, or the server has answered a later fetch */
	uint64_t failed_us;
	/* The reply of the last fetch was not cached: too large, no room, the key was written during the fetch, or
	 * the key was missing and the rule's negative-ttl is 0. */
	bool uncached;
	uint32_t unused_writes; /* written-through values in a row that no client has read */
	/* For replica reads (replica.c). large_query: signature of the query whose reply is too large for the
	 * cache; 0: none. seen_done: `done` of the key's version when replica.c last looked; seen_us: when it
	 * first saw this `done`. written_us: a time that is certainly after the writes that `done` counts; 0: not
	 * known yet. */
	uint64_t large_query;
	uint32_t seen_done;
	uint64_t seen_us, written_us;
};

struct hs_cache *hs_cache_create(uint32_t worker, const struct hs_cache_limits *limits);
void hs_cache_destroy(struct hs_cache **cache); /* no key may be pinned */
void hs_cache_limit(struct hs_cache *cache, const struct hs_cache_limits *limits);

/* Returns the admitted key; NULL: the key is not admitted. Does not count as a use. */
struct hs_cache_key *hs_cache_find(struct hs_cache *cache, uint64_t key_hash, struct hs_bytes key);
/* Returns the key; admits it first if it is new, and evicts other keys to make room. NULL: all other keys are
 * pinned, or the key is longer than `entry_bytes_max` or larger than the whole cache. */
struct hs_cache_key *hs_cache_admit(struct hs_cache *cache, uint64_t key_hash, struct hs_bytes key);
static inline void hs_cache_use(struct hs_cache_key *cached)
{
	if (cached->uses < HS_CACHE_USES_MAX)
		cached->uses++;
}

/* Returns the entry for the query, fresh or not; NULL: the key has no such entry. */
struct hs_cache_entry *hs_cache_get(const struct hs_cache_key *cached,
				    const struct hs_cache_query *query);
/* Stores the entry and takes a reference. Drops the earlier entry for the same query in any case. False: not
 * stored, because the entry is too large or all other keys are pinned. */
bool hs_cache_put(struct hs_cache *cache, struct hs_cache_key *cached,
		  struct hs_cache_entry *entry);
void hs_cache_drop(struct hs_cache *cache, struct hs_cache_key *cached,
		   struct hs_cache_entry *entry);

/* The tracking session reported a change of the key: drops all entries read in this tracking session, and marks
 * the ones that this worker fetched as invalid for all workers. Returns how many it marked. */
uint32_t hs_cache_invalidate(struct hs_cache *cache, struct hs_cache_key *cached,
			     const struct hs_tracking_session *tracking_session);
/* Does the same as hs_cache_invalidate for every key. */
uint32_t hs_cache_invalidate_all(struct hs_cache *cache,
				 const struct hs_tracking_session *tracking_session);

/* Removes the key and its entries. False: the key is pinned and stays. */
bool hs_cache_remove(struct hs_cache *cache, struct hs_cache_key *cached);
/* Drops all entries, and removes all keys that are not pinned. */
void hs_cache_clear(struct hs_cache *cache);

/* Iterates over all keys, in no order. The caller sets `*at` to 0 before the first call; NULL is the end. During
 * an iteration the caller must not admit a key or store an entry; it may remove the key returned last. */
struct hs_cache_key *hs_cache_each(const struct hs_cache *cache, size_t *at);
struct hs_cache_counts hs_cache_counts(const struct hs_cache *cache);
/* The number of keys and entries removed so far. While it is unchanged, pointers to keys and entries stay
 * valid. */
uint64_t hs_cache_removals(const struct hs_cache *cache);

#endif
