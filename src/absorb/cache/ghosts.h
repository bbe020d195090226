/* The ghost list of S3-FIFO: hashes of keys that were evicted from the small queue without a second use. If a key
 * is admitted while its hash is in this list, the key enters the large queue. Private to absorb/cache/store.c, on
 * the worker's thread. The list takes 16 to 32 bytes for each key while the cache grows. The list may forget a
 * hash early, and two hashes may collide; either only puts a key into the wrong queue. */
#ifndef HS_ABSORB_GHOSTS_H
#define HS_ABSORB_GHOSTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hs_ghosts {
	/* sets of 4 cells; a cell is {part of the hash, sequence number}; 0: empty */
	uint64_t *cells;
	size_t sets;  /* a power of two; 0 before the first hash is added */
	uint32_t now; /* sequence number of the last added hash */
};

void hs_ghosts_deinit(struct hs_ghosts *ghosts);

/* Adds the hash. `keys`: number of keys in the cache; the list remembers about this many hashes. */
void hs_ghosts_add(struct hs_ghosts *ghosts, uint64_t hash, size_t keys);
/* Returns whether the list remembers the hash, and removes the hash from the list. */
bool hs_ghosts_take(struct hs_ghosts *ghosts, uint64_t hash, size_t keys);

#endif
