/* The hash function: XXH3. Tables whose keys come from clients use a secret seed: a client that could predict
 * hashes could fill one bucket on purpose (hash flooding). */
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
