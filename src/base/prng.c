#include "base/prng.h"

#include "base/check.h"

uint64_t hs_prng_mix(uint64_t number)
{
	number = (number ^ (number >> 30)) * 0xbf58476d1ce4e5b9u;
	number = (number ^ (number >> 27)) * 0x94d049bb133111ebu;
	return number ^ (number >> 31);
}

static uint64_t rotate(uint64_t x, int by)
{
	return (x << by) | (x >> (64 - by));
}

void hs_prng_init(struct hs_prng *prng, uint64_t seed)
{
	/* splitmix64 spreads the seed over the state: consecutive seeds give unrelated streams. */
	for (int i = 0; i < 4; i++)
		prng->state[i] = hs_prng_mix(seed += 0x9e3779b97f4a7c15u);
}

uint64_t hs_prng_next(struct hs_prng *prng)
{
	uint64_t *s = prng->state;
	uint64_t result = rotate(s[1] * 5, 7) * 9;
	uint64_t t = s[1] << 17;

	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= t;
	s[3] = rotate(s[3], 45);
	return result;
}

uint64_t hs_prng_below(struct hs_prng *prng, uint64_t bound)
{
	hs_check(bound > 0);
	/* The multiply-shift map; its bias is below 2^-32 for the bounds used here. */
	return (uint64_t)(((unsigned __int128)hs_prng_next(prng) * bound) >> 64);
}

double hs_prng_unit(struct hs_prng *prng)
{
	return (double)(hs_prng_next(prng) >> 11) * 0x1p-53;
}
