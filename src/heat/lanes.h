/* Private to src/heat: operations on eight numbers at once (SSE2, or a plain loop). */
#ifndef HS_HEAT_LANES_H
#define HS_HEAT_LANES_H

#include <stdint.h>

#ifdef __SSE2__
#include <emmintrin.h>

/* Bit i is set if lanes[i] equals `wanted`. The lanes are aligned to 16 bytes. */
static inline uint32_t hs_lanes_equal(const uint32_t lanes[8], uint32_t wanted)
{
	__m128i all = _mm_set1_epi32((int)wanted);
	__m128i low = _mm_cmpeq_epi32(_mm_load_si128((const __m128i *)lanes), all);
	__m128i high = _mm_cmpeq_epi32(_mm_load_si128((const __m128i *)(lanes + 4)), all);

	return (uint32_t)_mm_movemask_ps(_mm_castsi128_ps(low)) |
	       (uint32_t)_mm_movemask_ps(_mm_castsi128_ps(high)) << 4;
}

/* Returns the smallest lane; `which` gets a bit for each lane that equals it. */
static inline float hs_lanes_smallest(const float lanes[8], uint32_t *which)
{
	__m128 low = _mm_load_ps(lanes), high = _mm_load_ps(lanes + 4);
	__m128 least = _mm_min_ps(low, high);

	least = _mm_min_ps(least, _mm_shuffle_ps(least, least, _MM_SHUFFLE(1, 0, 3, 2)));
	least = _mm_min_ps(least, _mm_shuffle_ps(least, least, _MM_SHUFFLE(2, 3, 0, 1)));
	*which = (uint32_t)_mm_movemask_ps(_mm_cmpeq_ps(low, least)) |
		 (uint32_t)_mm_movemask_ps(_mm_cmpeq_ps(high, least)) << 4;
	return _mm_cvtss_f32(least);
}

#else

static inline uint32_t hs_lanes_equal(const uint32_t lanes[8], uint32_t wanted)
{
	uint32_t mask = 0;

	for (uint32_t i = 0; i < 8; i++)
		mask |= (uint32_t)(lanes[i] == wanted) << i;
	return mask;
}

static inline float hs_lanes_smallest(const float lanes[8], uint32_t *which)
{
	uint32_t least = 0;

	for (uint32_t i = 1; i < 8; i++)
		least = lanes[i] < lanes[least] ? i : least;
	*which = 1u << least;
	return lanes[least];
}

#endif

#endif
