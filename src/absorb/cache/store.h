/* One worker's cache: keys that are admitted, and for each its entries. Which keys
 * those are, whether a reply may be given, and who reads it again, is decided elsewhere (absorb/cache/read.c,
 * absorb/entry.h); here is room, and what has to go.
 *
 * S3-FIFO over keys, by bytes: new ones in a small queue, those used again in a large one, and the hashes
 * of those that had to go remembered for a while. A key with something pinned stays.
 *
 * A reply that this worker read itself is dead when its key has to go: who would hear of its changes has
 * forgotten it. One thread; bounded by `bytes_max`, a reply by `entry_bytes_max`. */
#ifndef HS_ABSORB_CACHE_H
#define HS_ABSORB_CACHE_H

#include "absorb/cache/stats.h"
#include "absorb/entry.h"
#include "base/hash_table.h"
#include "base/list.h"

enum {
	HS_CACHE_VARIANTS_MAX = 32, /* entries of one key; one more: the oldest goes */
	HS_CACHE_USES_MAX = 15,
};

struct hs_cache_limits {
	uint64_t bytes_max;
	uint64_t entry_bytes_max;
};

struct hs_cache_counts {
	HS_CACHE_COUNTERS(HS_COUNTER_NUMBER)
};

/* A key that is admitted. The fields below `pins` are the stage's (read.c, fetch.c, write.c, replica.c). */
struct hs_cache_key {
	struct hs_hash_node node;
	struct hs_link queue; /* in the small or the large one */
	uint64_t bytes;	      /* of the key and its replies */
	uint8_t uses;	      /* fewer each time it is passed over, HS_CACHE_USES_MAX at most */
	bool large;	      /* in the large queue */
	uint16_t entries_count, entries_cap;
	struct hs_cache_entry *
		*entries; /* owned references, the oldest first; `only` while there is one */
	struct hs_cache_entry *only;
	struct hs_bytes key; /* lies behind */
	uint32_t pins;	     /* it stays */

	const struct hs_rule *rule;
	uint16_t slot;
	struct hs_link fetches;	     /* reads under way */
	uint64_t hits, misses, read; /* of this key: answered, not answered, read from the engine */
	uint64_t failed_us; /* when it last could not be read, or took long; 0: it could since */
	bool uncached;	    /* what was read last is not cached: it is too large, or was written */
	uint32_t unused_writes; /* values left behind by writes in a row that nobody read */
	/* For reads from replicas: the ask whose reply is too large for the cache, 0: none; writes of the key
	 * that were done when it was last looked at, when that was first seen, and a time that is certainly
	 * behind them, 0: not yet. */
	uint64_t large_query;
	uint32_t seen_done;
	uint64_t seen_us, written_us;
};

struct hs_cache *hs_cache_create(uint32_t worker, const struct hs_cache_limits *limits);
void hs_cache_destroy(struct hs_cache **cache); /* nothing is pinned */
void hs_cache_limit(struct hs_cache *cache, const struct hs_cache_limits *limits);

/* NULL: not admitted. Does not count as a use. */
struct hs_cache_key *hs_cache_find(struct hs_cache *cache, uint64_t key_hash, struct hs_bytes key);
/* Makes room for it. NULL: there is none, everything is pinned or the key is too long. */
struct hs_cache_key *hs_cache_admit(struct hs_cache *cache, uint64_t key_hash, struct hs_bytes key);
static inline void hs_cache_use(struct hs_cache_key *cached)
{
	if (cached->uses < HS_CACHE_USES_MAX)
		cached->uses++;
}

/* The entry for an ask, in whatever state; NULL: none. */
struct hs_cache_entry *hs_cache_get(const struct hs_cache_key *cached,
				    const struct hs_cache_query *query);
/* Keeps it (a reference of its own), instead of an earlier one for the same ask. False: it is too large,
 * or everything else is pinned. */
bool hs_cache_put(struct hs_cache *cache, struct hs_cache_key *cached,
		  struct hs_cache_entry *entry);
/* Lets go of one. */
void hs_cache_drop(struct hs_cache *cache, struct hs_cache_key *cached,
		   struct hs_cache_entry *entry);

/* The key changed behind us, as this vouch says: what was read under it is dead. How many were. */
uint32_t hs_cache_invalidate(struct hs_cache *cache, struct hs_cache_key *cached,
			     const struct hs_tracking_session *tracking_session);
/* Everything it vouches for did. */
uint32_t hs_cache_invalidate_all(struct hs_cache *cache,
				 const struct hs_tracking_session *tracking_session);

/* Takes a key out, unless it is pinned. */
bool hs_cache_remove(struct hs_cache *cache, struct hs_cache_key *cached);
/* Empties every key, and takes those out that are not pinned. */
void hs_cache_clear(struct hs_cache *cache);

/* Every key, in no order; `at` starts as 0 and ends with NULL. Nothing may be admitted or stored meanwhile; the
 * key that was given last may be removed. */
struct hs_cache_key *hs_cache_each(const struct hs_cache *cache, size_t *at);
struct hs_cache_counts hs_cache_counts(const struct hs_cache *cache);
/* As long as this number is the same, every key and entry that was there is still there. */
uint64_t hs_cache_removals(const struct hs_cache *cache);

#endif
