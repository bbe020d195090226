/* A coarse histogram of times: two steps to a power of two, from 1 µs to 16 s. Small enough to have
 * one for each hot key; `base/histogram.h` is the fine one. The counts themselves belong to the caller:
 * integers where they are counted, doubles where they have decayed. */
#ifndef HS_BASE_COARSE_HISTOGRAM_H
#define HS_BASE_COARSE_HISTOGRAM_H

#include <stdint.h>

enum { HS_COARSE_HISTOGRAM_BUCKETS = 48 };

/* The step a value counts on; what is larger than the last counts there. */
static inline uint32_t hs_coarse_histogram_bucket(uint64_t value)
{
	uint32_t octave, step;

	if (value < 2)
		return (uint32_t)value;
	octave = 63u - (uint32_t)__builtin_clzll(value);
	step = 2 * octave + (uint32_t)((value >> (octave - 1)) & 1);
	return step < HS_COARSE_HISTOGRAM_BUCKETS ? step : HS_COARSE_HISTOGRAM_BUCKETS - 1;
}

/* The smallest value of a step; that of HS_COARSE_HISTOGRAM_BUCKETS is where the last one ends. */
static inline uint64_t hs_coarse_histogram_floor(uint32_t step)
{
	return step < 2 ? step : ((uint64_t)(2 | (step & 1)) << (step / 2)) / 2;
}

/* The value that `share` of all (0.99: 99 %) do not exceed, even within its step; 0 when empty. */
double hs_coarse_histogram_quantile(const double counts[HS_COARSE_HISTOGRAM_BUCKETS], double share);

#endif
