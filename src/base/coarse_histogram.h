/* A coarse histogram of times: two buckets to a power of two, from 1 µs to 16 s. It is small enough to have one
 * for each hot key; base/histogram.h is the fine one. The caller owns the counts: integers where they are
 * counted, doubles where they have decayed. Pure functions. */
#ifndef HS_BASE_COARSE_HISTOGRAM_H
#define HS_BASE_COARSE_HISTOGRAM_H

#include <stdint.h>

enum { HS_COARSE_HISTOGRAM_BUCKETS = 48 };

/* The bucket of a value; larger values count in the last one. */
static inline uint32_t hs_coarse_histogram_bucket(uint64_t value)
{
	uint32_t octave, step;

	if (value < 2)
		return (uint32_t)value;
	octave = 63u - (uint32_t)__builtin_clzll(value);
	step = 2 * octave + (uint32_t)((value >> (octave - 1)) & 1);
	return step < HS_COARSE_HISTOGRAM_BUCKETS ? step : HS_COARSE_HISTOGRAM_BUCKETS - 1;
}

/* The smallest value of a bucket; of HS_COARSE_HISTOGRAM_BUCKETS: where the last bucket ends. */
static inline uint64_t hs_coarse_histogram_floor(uint32_t step)
{
	return step < 2 ? step : ((uint64_t)(2 | (step & 1)) << (step / 2)) / 2;
}

/* The value that a `share` of all values (0.99: 99 %) does not exceed, interpolated within its bucket; 0 when
 * empty. */
double hs_coarse_histogram_quantile(const double counts[HS_COARSE_HISTOGRAM_BUCKETS], double share);

#endif
