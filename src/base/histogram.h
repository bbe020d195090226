/* A histogram of latencies or sizes with an error of at most 1 %. Every power of two is divided into the same
 * number of equal buckets, so the relative error is the same for small and large values. The unit is the
 * caller's. It is one flat block, all zero when empty, and two histograms can be added: every thread has its
 * own, and one of them merges. One thread. */
#ifndef HS_BASE_HISTOGRAM_H
#define HS_BASE_HISTOGRAM_H

#include <stdint.h>

enum {
	HS_HISTOGRAM_STEP_BITS = 6, /* 64 buckets to a power of two: half a bucket is 0.8 % */
	HS_HISTOGRAM_STEPS = 1 << HS_HISTOGRAM_STEP_BITS,
	HS_HISTOGRAM_VALUE_BITS = 40, /* larger ones count in the last bucket; `max` is exact */
	HS_HISTOGRAM_BUCKETS =
		(HS_HISTOGRAM_VALUE_BITS - HS_HISTOGRAM_STEP_BITS + 1) * HS_HISTOGRAM_STEPS,
};

struct hs_histogram {
	uint64_t count;
	uint64_t sum; /* sum of all values, modulo 2^64 */
	uint64_t min; /* exact; `min` and `max` are undefined while count is 0 */
	uint64_t max;
	uint64_t buckets[HS_HISTOGRAM_BUCKETS];
};

void hs_histogram_add(struct hs_histogram *histogram, uint64_t value);
void hs_histogram_merge(struct hs_histogram *into, const struct hs_histogram *from);

/* The value that a `share` of all values (0.99: 99 %) does not exceed; 0 when empty. */
uint64_t hs_histogram_quantile(const struct hs_histogram *histogram, double share);
double hs_histogram_mean(const struct hs_histogram *histogram);

#endif
