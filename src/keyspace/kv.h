/* The keyspace's interface to a store: two ordered trees inside one transaction. LMDB is one
 * implementation (engine/embedded), the simulator's sorted map another (sim/). Commands call this
 * interface only.
 *
 * A transaction belongs to one thread at a time. Keys and values from get, seek and next are
 * borrowed from the store and valid until the next put, del or clear in the same transaction, or
 * its end. */
#ifndef HS_KEYSPACE_KV_H
#define HS_KEYSPACE_KV_H

#include "base/bytes.h"

#include <stdint.h>

enum hs_kv_tree {
	HS_KV_KEYS,    /* physical key (keyspace/record.h) to record */
	HS_KV_EXPIRES, /* expiry time (8 bytes, big endian, ms) + physical key to nothing */
	HS_KV_TREES,
};

enum { HS_KV_KEY_MAX = 511 }; /* LMDB's limit */

struct hs_kv {
	const struct hs_kv_calls *calls;
};

/* All return 0, HS_ENOTFOUND, HS_EFULL (the store has no room; the transaction must be aborted),
 * HS_EIO, or, for readers, HS_EBUSY: only the writer can answer. */
struct hs_kv_calls {
	int (*get)(struct hs_kv *kv, enum hs_kv_tree tree, struct hs_bytes key,
		   struct hs_bytes *value);
	/* Gives room for a value of `len` bytes; the caller fills it before the next call. */
	int (*put)(struct hs_kv *kv, enum hs_kv_tree tree, struct hs_bytes key, size_t len,
		   char **room);
	int (*del)(struct hs_kv *kv, enum hs_kv_tree tree, struct hs_bytes key);
	/* The first entry at or after `from` (never empty). */
	int (*seek)(struct hs_kv *kv, enum hs_kv_tree tree, struct hs_bytes from,
		    struct hs_bytes *key, struct hs_bytes *value);
	/* The entry after the one that seek or next returned last in this tree. Only reads may
	 * happen in between. */
	int (*next)(struct hs_kv *kv, enum hs_kv_tree tree, struct hs_bytes *key,
		    struct hs_bytes *value);
	int (*count)(struct hs_kv *kv, enum hs_kv_tree tree, uint64_t *entries);
	int (*clear)(struct hs_kv *kv); /* empties both trees */
};

#endif
