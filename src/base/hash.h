/* The one hash: XXH3, seeded. Who aims at a table must not know where keys land. */
#ifndef HS_BASE_HASH_H
#define HS_BASE_HASH_H

#include "base/bytes.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

static inline uint64_t hs_hash(struct hs_bytes bytes, uint64_t seed)
{
	return XXH3_64bits_withSeed(bytes.data, bytes.len, seed);
}

#endif
