/* A histogram of latencies or sizes with an error of at most 1 %: every power of two is cut into
 * the same number of even steps, so a small value and a large one are told apart equally well.
 * It has no unit; the caller has. It is one flat block, all zero when empty, and two of them add
 * up, so every thread keeps its own and somebody merges them. Not thread-safe. */
#ifndef HS_BASE_HISTOGRAM_H
#define HS_BASE_HISTOGRAM_H

#include <stdint.h>

enum {
	HS_HISTOGRAM_STEP_BITS = 6, /* 64 steps to a power of two: half a step is 0.8 % */
	HS_HISTOGRAM_STEPS = 1 << HS_HISTOGRAM_STEP_BITS,
	HS_HISTOGRAM_VALUE_BITS =
		40, /* larger values count as the largest step; `max` stays exact */
	HS_HISTOGRAM_BUCKETS =
		(HS_HISTOGRAM_VALUE_BITS - HS_HISTOGRAM_STEP_BITS + 1) * HS_HISTOGRAM_STEPS,
};

struct hs_histogram {
	uint64_t count;
	uint64_t sum; /* of all values; wraps after 2^64 */
	uint64_t min; /* exact; these two mean nothing while count is 0 */
	uint64_t max;
	uint64_t buckets[HS_HISTOGRAM_BUCKETS];
};

void hs_histogram_add(struct hs_histogram *histogram, uint64_t value);
void hs_histogram_merge(struct hs_histogram *into, const struct hs_histogram *from);

/* The value that a share of all values (0.99: 99 %) does not exceed; 0 when empty. */
uint64_t hs_histogram_quantile(const struct hs_histogram *histogram, double share);
double hs_histogram_mean(const struct hs_histogram *histogram);

#endif
