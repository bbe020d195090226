/* Which connections of a worker have read which keys, and want to hear of the next change.
 *
 * Connections are numbers here: one that has gone leaves its numbers behind, and they mean nobody.
 * So going costs nothing, whatever it had read. The table grows by one bucket at a time
 * (base/hash_table.h) and is emptied in portions: no call takes long because the table is large.
 * Private to src/push. */
#ifndef HS_PUSH_TRACKING_TABLE_H
#define HS_PUSH_TRACKING_TABLE_H

#include "base/bytes.h"
#include "base/hash_table.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hs_tracked {
	struct hs_hash_node node;
	uint64_t *ids; /* of connections, ascending; `one` while there is one */
	uint64_t one;
	uint32_t count, cap;
	size_t key_len;
	char key[];
};

struct hs_tracking_table {
	struct hs_tracking_table *older; /* emptied before, and not freed yet */
	struct hs_hash_table keys;
	uint64_t seed;
	uint64_t items; /* connections, over all keys */
	uint64_t bytes; /* of names and connections */
};

struct hs_tracking_table *hs_tracking_table_create(uint64_t seed);
void hs_tracking_table_destroy(struct hs_tracking_table **table);

/* `id` has read `key`. */
void hs_tracking_table_add(struct hs_tracking_table *table, struct hs_bytes key, uint64_t id);

/* NULL: nobody has read the key. */
struct hs_tracked *hs_tracking_table_find(const struct hs_tracking_table *table,
					  struct hs_bytes key);
/* Forgets the key, but for the first `keep` of its connections: the caller has moved them to the front, in
 * their order. Without any it is freed. */
void hs_tracking_table_forget(struct hs_tracking_table *table, struct hs_tracked *tracked,
			      uint32_t keep);
/* Forgets that `id` has read the key, which is freed when nobody else has. False: it has not. */
bool hs_tracking_table_remove(struct hs_tracking_table *table, struct hs_tracked *tracked,
			      uint64_t id);
bool hs_tracked_has(const struct hs_tracked *tracked, uint64_t id);
/* Some key; the table is not empty. */
struct hs_tracked *hs_tracking_table_pick(const struct hs_tracking_table *table,
					  struct hs_prng *prng);

/* Empties it: what was in it is freed by calls of hs_tracking_table_free_some. */
void hs_tracking_table_retire(struct hs_tracking_table **table);
/* Frees some of what was retired, a bounded number of keys. */
void hs_tracking_table_free_some(struct hs_tracking_table *table);

static inline struct hs_bytes hs_tracked_key(const struct hs_tracked *tracked)
{
	return (struct hs_bytes){tracked->key, tracked->key_len};
}

#endif
