/* Reads the push that a server with CLIENT TRACKING sends when keys changed:
 *
 *     >2 invalidate [key …]     these keys
 *     >2 invalidate null        all keys: FLUSHALL, FLUSHDB
 *
 * Pure. Each hs_invalidation_next returns one key; the key's bytes lie in the push. */
#ifndef HS_ENGINE_REDIS_INVALIDATION_H
#define HS_ENGINE_REDIS_INVALIDATION_H

#include "wire/walk.h"

struct hs_invalidation {
	struct hs_walk walk;
	int64_t left; /* number of keys not read yet */
	bool all;     /* the push names no keys: every key may have changed */
};

/* `walk` stands behind the word `invalidate`. HS_EPROTO: malformed. */
int hs_invalidation_begin(struct hs_invalidation *invalidation, struct hs_walk walk) HS_MUSTCHECK;

/* Returns 1: `key` is the next key; 0: there are no more keys; HS_EPROTO: malformed. */
int hs_invalidation_next(struct hs_invalidation *invalidation, struct hs_bytes *key) HS_MUSTCHECK;

#endif
