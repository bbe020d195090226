/* A small random generator (xoshiro256**). Its state lies in the owner's struct, so that a simulated world
 * replays from its seed. Not for secrets. One thread. */
#ifndef HS_BASE_PRNG_H
#define HS_BASE_PRNG_H

#include <stdint.h>

struct hs_prng {
	uint64_t state[4];
};

void hs_prng_init(struct hs_prng *prng, uint64_t seed);
uint64_t hs_prng_next(struct hs_prng *prng);

/* Uniform over 0 … bound-1; bound is at least 1. */
uint64_t hs_prng_below(struct hs_prng *prng, uint64_t bound);

/* Mixes bits: close numbers become unrelated ones. */
uint64_t hs_prng_mix(uint64_t number);

/* Uniform over [0, 1). */
double hs_prng_unit(struct hs_prng *prng);

#endif
