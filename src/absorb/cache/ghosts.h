/* The ghost list of S3-FIFO: hashes of keys that were evicted from the small queue before a second use. A key
 * found here is admitted to the large queue. Private to absorb/cache/store.c, on the worker's thread. It takes
 * 16 to 32 bytes for each key while the cache grows. A hash may be forgotten early, and two hashes may collide;
 * the cost is only the choice of the queue. */
#ifndef HS_ABSORB_GHOSTS_H
#define HS_ABSORB_GHOSTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hs_ghosts {
	uint64_t *cells; /* sets of 4 cells, each {part of the hash, sequence number}; 0: empty */
	size_t sets;	 /* a power of two; 0 at first */
	uint32_t now;	 /* sequence number of the last addition */
};

void hs_ghosts_deinit(struct hs_ghosts *ghosts);

/* Remembers the hash. The list holds about as many hashes as there are `keys` in the cache. */
void hs_ghosts_add(struct hs_ghosts *ghosts, uint64_t hash, size_t keys);
/* Whether the hash is remembered; forgets it. */
bool hs_ghosts_take(struct hs_ghosts *ghosts, uint64_t hash, size_t keys);

#endif
