/* Which connections of a worker have read which keys and must get an invalidation at the next change.
 *
 * Connections are stored as client ids. A connection that has gone leaves its ids in the table; they match no
 * session. So closing a connection costs nothing, whatever it had read. The table grows by one bucket at a time
 * (base/hash_table.h) and is freed in portions: no call takes long because the table is large.
 *
 * Knows no session and no engine; does not limit itself (tracking.c does). Private to src/push, one thread, the
 * worker's. */
#ifndef HS_PUSH_TRACKING_TABLE_H
#define HS_PUSH_TRACKING_TABLE_H

#include "base/bytes.h"
#include "base/hash_table.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hs_tracked {
	struct hs_hash_node node;
	uint64_t *ids; /* of connections, ascending; points to `one` while there is one */
	uint64_t one;
	uint32_t count, cap;
	size_t key_len;
	char key[];
};

struct hs_tracking_table {
	struct hs_tracking_table *older; /* retired table that is not freed yet */
	struct hs_hash_table keys;
	uint64_t seed;
	uint64_t items; /* connection ids over all keys */
	uint64_t bytes; /* memory of keys and ids */
};

struct hs_tracking_table *hs_tracking_table_create(uint64_t seed);
void hs_tracking_table_destroy(struct hs_tracking_table **table);

/* Records that connection `id` has read `key`. */
void hs_tracking_table_add(struct hs_tracking_table *table, struct hs_bytes key, uint64_t id);

/* NULL: no connection has read the key. */
struct hs_tracked *hs_tracking_table_find(const struct hs_tracking_table *table,
					  struct hs_bytes key);
/* Drops all connections of the key but the first `keep`, which the caller has moved to the front in ascending
 * order. With `keep` 0 the key is freed. */
void hs_tracking_table_forget(struct hs_tracking_table *table, struct hs_tracked *tracked,
			      uint32_t keep);
/* Drops one connection of the key; frees the key with its last one. False: `id` has not read it. */
bool hs_tracking_table_remove(struct hs_tracking_table *table, struct hs_tracked *tracked,
			      uint64_t id);
bool hs_tracked_has(const struct hs_tracked *tracked, uint64_t id);
/* A random key; the table is not empty. */
struct hs_tracked *hs_tracking_table_pick(const struct hs_tracking_table *table,
					  struct hs_prng *prng);

/* Empties the table; hs_tracking_table_free_some frees the old contents. */
void hs_tracking_table_retire(struct hs_tracking_table **table);
/* Frees a bounded number of retired keys. */
void hs_tracking_table_free_some(struct hs_tracking_table *table);

static inline struct hs_bytes hs_tracked_key(const struct hs_tracked *tracked)
{
	return (struct hs_bytes){tracked->key, tracked->key_len};
}

#endif
