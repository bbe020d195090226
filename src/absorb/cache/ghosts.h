/* Keys that had to go from the cache before anybody used them again, remembered by their hashes: who comes
 * back soon was worth keeping. For absorb/cache/store.c only. Sixteen to thirty-two bytes for each key that the
 * cache has. A hash may be forgotten early, and one may be taken for another, rarely: that costs a place
 * in a queue, no more. */
#ifndef HS_ABSORB_GHOSTS_H
#define HS_ABSORB_GHOSTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hs_ghosts {
	uint64_t *cells; /* in sets of a few, each {part of the hash, when}; 0: empty */
	size_t sets;	 /* a power of two; 0 at first */
	uint32_t now;	 /* counts what is added */
};

void hs_ghosts_deinit(struct hs_ghosts *ghosts);

/* As many as there are `keys` in the cache are remembered. */
void hs_ghosts_add(struct hs_ghosts *ghosts, uint64_t hash, size_t keys);
/* Whether it is remembered; it is not any more. */
bool hs_ghosts_take(struct hs_ghosts *ghosts, uint64_t hash, size_t keys);

#endif
