/* What the keyspace needs of a store: two ordered trees inside one transaction. LMDB is one
 * implementation (engine/embedded), the simulator's sorted map another (sim/). Commands are
 * written once, above this line.
 *
 * A transaction belongs to one thread at a time. Values handed out by get and cursors are borrowed
 * from the store and last until the next put or del in the same transaction, or its end. */
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

/* All return 0, HS_ENOTFOUND, HS_EFULL (the store has no room; the transaction is lost and must be
 * given up) or HS_EIO. */
struct hs_kv_calls {
	int (*get)(struct hs_kv *kv, enum hs_kv_tree tree, struct hs_bytes key,
		   struct hs_bytes *value);
	/* Room for `len` bytes of value, to be filled before the next call. */
	int (*put)(struct hs_kv *kv, enum hs_kv_tree tree, struct hs_bytes key, size_t len,
		   char **room);
	int (*del)(struct hs_kv *kv, enum hs_kv_tree tree, struct hs_bytes key);
	/* The first entry at or behind `from` (never empty), written back into *key and *value. */
	int (*seek)(struct hs_kv *kv, enum hs_kv_tree tree, struct hs_bytes from,
		    struct hs_bytes *key, struct hs_bytes *value);
	/* The entry behind the one that seek or next returned last in this tree. Only reads may
	 * happen in between. */
	int (*next)(struct hs_kv *kv, enum hs_kv_tree tree, struct hs_bytes *key,
		    struct hs_bytes *value);
	int (*count)(struct hs_kv *kv, enum hs_kv_tree tree, uint64_t *entries);
	int (*clear)(struct hs_kv *kv); /* empties both trees */
};

#endif
