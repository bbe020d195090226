/* The bucket of a value, drawn with 4 buckets to a power of two instead of 64:
 *
 *     values   0 1 2 3 | 4 5 6 7 | 8-9 10-11 12-13 14-15 | 16-19 20-23 24-27 28-31 | …
 *     buckets  0 1 2 3 | 4 5 6 7 |  8    9    10    11   |  12    13    14    15   | …
 *
 * The first two rows hold single values; then the width doubles with each row. The position of the highest bit
 * gives the row, the bits right behind it the place in the row. */
#include "base/histogram.h"

#include "base/check.h"

static unsigned bucket_of(uint64_t value)
{
	if (value < HS_HISTOGRAM_STEPS)
		return (unsigned)value;

	unsigned top = 63 - (unsigned)__builtin_clzll(value);

	if (top >= HS_HISTOGRAM_VALUE_BITS)
		return HS_HISTOGRAM_BUCKETS - 1;

	unsigned shift = top - HS_HISTOGRAM_STEP_BITS;

	return shift * HS_HISTOGRAM_STEPS + (unsigned)(value >> shift);
}

/* The middle of the bucket's values. */
static uint64_t middle_of(unsigned bucket)
{
	if (bucket < 2 * HS_HISTOGRAM_STEPS)
		return bucket;

	unsigned shift = bucket / HS_HISTOGRAM_STEPS - 1;
	uint64_t step = bucket - shift * HS_HISTOGRAM_STEPS;

	return (step << shift) + ((uint64_t)1 << shift) / 2;
}

void hs_histogram_add(struct hs_histogram *histogram, uint64_t value)
{
	if (histogram->count == 0 || value < histogram->min)
		histogram->min = value;
	if (histogram->count == 0 || value > histogram->max)
		histogram->max = value;
	histogram->count++;
	histogram->sum += value;
	histogram->buckets[bucket_of(value)]++;
}

void hs_histogram_merge(struct hs_histogram *into, const struct hs_histogram *from)
{
	if (from->count == 0)
		return;
	if (into->count == 0 || from->min < into->min)
		into->min = from->min;
	if (into->count == 0 || from->max > into->max)
		into->max = from->max;
	into->count += from->count;
	into->sum += from->sum;
	for (unsigned i = 0; i < HS_HISTOGRAM_BUCKETS; i++)
		into->buckets[i] += from->buckets[i];
}

uint64_t hs_histogram_quantile(const struct hs_histogram *histogram, double share)
{
	if (histogram->count == 0)
		return 0;
	hs_check(share >= 0 && share <= 1);

	/* The rank of the wanted value, from 1: the smallest number of values that is at least the share. A
	 * product such as 0.07 * 100 is slightly above 7. The smallest and the largest value are known exactly. */
	double values = share * (double)histogram->count;
	uint64_t rank = (uint64_t)values;

	if (values - (double)rank > 1e-6)
		rank++;
	if (rank <= 1)
		return histogram->min;
	if (rank >= histogram->count)
		return histogram->max;

	uint64_t seen = 0;
	unsigned bucket = 0;

	while ((seen += histogram->buckets[bucket]) < rank)
		bucket++;

	uint64_t value = middle_of(bucket);

	if (bucket == HS_HISTOGRAM_BUCKETS - 1 || value > histogram->max)
		return histogram->max;
	return value < histogram->min ? histogram->min : value;
}

double hs_histogram_mean(const struct hs_histogram *histogram)
{
	return histogram->count ? (double)histogram->sum / (double)histogram->count : 0;
}
