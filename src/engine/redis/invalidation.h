/* What a server says on a connection with CLIENT TRACKING when keys changed:
 *
 *     >2 invalidate [key …]     these keys
 *     >2 invalidate null        all keys: FLUSHALL, FLUSHDB
 *
 * Read key by key; the keys lie in the push. */
#ifndef HS_ENGINE_REDIS_INVALIDATION_H
#define HS_ENGINE_REDIS_INVALIDATION_H

#include "wire/walk.h"

struct hs_invalidation {
	struct hs_walk walk;
	int64_t left; /* keys to come */
	bool all;     /* there are none: every key may have changed */
};

/* `walk` stands behind the word `invalidate`. HS_EPROTO: it is something else. */
int hs_invalidation_begin(struct hs_invalidation *invalidation, struct hs_walk walk) HS_MUSTCHECK;

/* 1: `key` is the next one; 0: that was the last; HS_EPROTO: what comes is no key. */
int hs_invalidation_next(struct hs_invalidation *invalidation, struct hs_bytes *key) HS_MUSTCHECK;

#endif
