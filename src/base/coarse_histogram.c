#include "base/coarse_histogram.h"

double hs_coarse_histogram_quantile(const double counts[HS_COARSE_HISTOGRAM_BUCKETS], double share)
{
	double total = 0, below = 0;

	for (uint32_t i = 0; i < HS_COARSE_HISTOGRAM_BUCKETS; i++)
		total += counts[i];
	for (uint32_t i = 0; i < HS_COARSE_HISTOGRAM_BUCKETS; i++) {
		double floor = (double)hs_coarse_histogram_floor(i);
		double height = (double)hs_coarse_histogram_floor(i + 1) - floor;

		if (counts[i] > 0 && below + counts[i] >= share * total)
			/* The largest value of a bucket is one below the next bucket's floor. */
			return floor + (height - 1) * (share * total - below) / counts[i];
		below += counts[i];
	}
	return 0;
}
