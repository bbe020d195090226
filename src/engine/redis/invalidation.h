/* Reads the push that a server with CLIENT TRACKING sends when keys changed:
 *
 *     >2 invalidate [key …]     these keys
 *     >2 invalidate null        all keys: FLUSHALL, FLUSHDB
 *
 * Pure. One key per call; its bytes lie in the push. */
#ifndef HS_ENGINE_REDIS_INVALIDATION_H
#define HS_ENGINE_REDIS_INVALIDATION_H

#include "wire/walk.h"

struct hs_invalidation {
	struct hs_walk walk;
	int64_t left; /* keys not read yet */
	bool all;     /* no keys follow: every key may have changed */
};

/* `walk` stands behind the word `invalidate`. HS_EPROTO: malformed. */
int hs_invalidation_begin(struct hs_invalidation *invalidation, struct hs_walk walk) HS_MUSTCHECK;

/* 1: `key` is the next key; 0: the end; HS_EPROTO: malformed. */
int hs_invalidation_next(struct hs_invalidation *invalidation, struct hs_bytes *key) HS_MUSTCHECK;

#endif
