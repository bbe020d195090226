/* From a key to its struct hs_cache_key, for absorb/cache/store.c only. Linear hashing: the table is one bucket
 * longer with each key that is too many, and shorter when there are far fewer, by splitting one bucket in
 * two or joining two; nobody ever waits for all keys to be moved. Owns no key. */
#ifndef HS_ABSORB_CACHE_TABLE_H
#define HS_ABSORB_CACHE_TABLE_H

#include "absorb/cache/store.h"

struct hs_cache_table {
	struct hs_cache_key **buckets;
	size_t base;  /* a power of two: buckets before any of this round was split */
	size_t split; /* those before it are split; so there are base + split */
	size_t room;  /* of the array */
	size_t count; /* of keys */
};

void hs_cache_table_init(struct hs_cache_table *table);
void hs_cache_table_deinit(struct hs_cache_table *table);

struct hs_cache_key *hs_cache_table_find(const struct hs_cache_table *table, uint64_t key_hash,
					 struct hs_bytes key);
void hs_cache_table_add(struct hs_cache_table *table, struct hs_cache_key *cached); /* a new key */
void hs_cache_table_remove(struct hs_cache_table *table, struct hs_cache_key *cached);

#endif
