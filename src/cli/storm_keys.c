/* Draws the next key.
 *
 * `zipf:s` gives key k (from 1) a share proportional to 1/k^s. The draw is rejection-inversion (Hörmann and
 * Derflinger, 1996): the bars of the distribution are covered by the area under the smooth curve x^-s, a point of
 * that area is drawn by inverting its integral, and the few points outside the bar they fall on are drawn again. It
 * is exact for every number of keys, needs no table, and about one draw per key.
 *
 * `viral:p` gives key 0 the share p and spreads the rest evenly over the other keys. `moving:t:p` is the same with a
 * key that changes every t; all workers compute it from the seed and the time, so they agree without communication.
 * `flash:n:p` changes the key after n draws instead: the number of changes depends only on the number of requests,
 * not on their speed. But one worker counts its own draws only, so there must be one worker.
 *
 * `80/20` spreads 80 % of the draws evenly over the first 20 % of the keys, the rest over the others. */
#include "cli/storm.h"

#include <math.h>

/* The integral of x^-s from 1 to x. */
static double area(const struct hs_storm_keys *keys, double x)
{
	double rest = 1 - keys->shape.exponent, log_x = log(x);

	/* Near s = 1 the closed form divides zero by zero; there it is the logarithm. */
	return fabs(rest * log_x) < 1e-12 ? log_x : expm1(rest * log_x) / rest;
}

/* The x with that integral. */
static double area_inverse(const struct hs_storm_keys *keys, double a)
{
	double rest = 1 - keys->shape.exponent;

	return exp(fabs(rest * a) < 1e-12 ? a : log1p(rest * a) / rest);
}

static double bar(const struct hs_storm_keys *keys, double k)
{
	return exp(-keys->shape.exponent * log(k));
}

static uint64_t era_at(const struct hs_storm_keys *keys, uint64_t elapsed_us)
{
	if (keys->shape.kind == HS_STORM_FLASH)
		return keys->drawn / keys->shape.move_requests;
	return keys->shape.kind == HS_STORM_MOVING ? elapsed_us / keys->shape.move_us : 0;
}

uint64_t hs_storm_keys_viral(const struct hs_storm_keys *keys, uint64_t elapsed_us)
{
	if (keys->shape.kind != HS_STORM_MOVING && keys->shape.kind != HS_STORM_FLASH)
		return 0;

	/* A random start, and a random stride that is never 0: the key always changes. */
	uint64_t start = hs_prng_mix(keys->seed) % keys->keys;
	uint64_t stride = keys->keys > 1 ? 1 + hs_prng_mix(~keys->seed) % (keys->keys - 1) : 0;
	unsigned __int128 way = (unsigned __int128)era_at(keys, elapsed_us) * stride;

	return (uint64_t)((start + way) % keys->keys);
}

void hs_storm_keys_init(struct hs_storm_keys *keys, const struct hs_storm_shape *shape,
			uint64_t key_count, uint64_t seed)
{
	hs_check(key_count > 0);
	*keys = (struct hs_storm_keys){.shape = *shape, .keys = key_count, .seed = seed};
	keys->viral = hs_storm_keys_viral(keys, 0);
	keys->viral_below = shape->share >= 1 ? UINT64_MAX : (uint64_t)(shape->share * 0x1p64);
	keys->hot_keys = (uint64_t)(shape->hot * (double)key_count + 0.5);
	if (keys->hot_keys == 0)
		keys->hot_keys = 1;
	if (shape->kind == HS_STORM_ZIPF) {
		keys->area_first = area(keys, 1.5) - 1;
		keys->area_all = area(keys, (double)key_count + 0.5);
		/* A point this close to the middle of its bar is accepted without the exact test. */
		keys->immediate = 2 - area_inverse(keys, area(keys, 2.5) - bar(keys, 2));
	}
}

static uint64_t draw_zipf(const struct hs_storm_keys *keys, struct hs_prng *prng)
{
	for (;;) {
		double a =
			keys->area_all + hs_prng_unit(prng) * (keys->area_first - keys->area_all);
		double x = area_inverse(keys, a);
		double k = floor(x + 0.5);

		if (k < 1)
			k = 1;
		else if (k > (double)keys->keys)
			k = (double)keys->keys;
		if (k - x <= keys->immediate || a >= area(keys, k + 0.5) - bar(keys, k))
			return (uint64_t)k - 1;
	}
}

static uint64_t draw_viral(struct hs_storm_keys *keys, struct hs_prng *prng)
{
	if (keys->keys == 1 || hs_prng_next(prng) < keys->viral_below)
		return keys->viral;

	uint64_t other = hs_prng_below(prng, keys->keys - 1);

	return other < keys->viral ? other : other + 1;
}

static uint64_t draw_hot(const struct hs_storm_keys *keys, struct hs_prng *prng)
{
	if (keys->hot_keys >= keys->keys)
		return hs_prng_below(prng, keys->keys);
	if (hs_prng_next(prng) < keys->viral_below)
		return hs_prng_below(prng, keys->hot_keys);
	return keys->hot_keys + hs_prng_below(prng, keys->keys - keys->hot_keys);
}

/* Changes the viral key if it is time. */
static void move(struct hs_storm_keys *keys, uint64_t elapsed_us)
{
	uint64_t era = era_at(keys, elapsed_us);

	if (era == keys->era)
		return;
	keys->era = era;
	keys->viral = hs_storm_keys_viral(keys, elapsed_us);
}

uint64_t hs_storm_keys_next(struct hs_storm_keys *keys, struct hs_prng *prng, uint64_t elapsed_us)
{
	switch (keys->shape.kind) {
	case HS_STORM_UNIFORM:
		break;
	case HS_STORM_ZIPF:
		return draw_zipf(keys, prng);
	case HS_STORM_HOT:
		return draw_hot(keys, prng);
	case HS_STORM_MOVING:
	case HS_STORM_FLASH:
		move(keys, elapsed_us);
		keys->drawn++;
		return draw_viral(keys, prng);
	case HS_STORM_VIRAL:
		return draw_viral(keys, prng);
	}
	return hs_prng_below(prng, keys->keys);
}
