#include "base/ladder.h"

double hs_ladder_at(const double counts[HS_LADDER_STEPS], double share)
{
	double total = 0, below = 0;

	for (uint32_t i = 0; i < HS_LADDER_STEPS; i++)
		total += counts[i];
	for (uint32_t i = 0; i < HS_LADDER_STEPS; i++) {
		double floor = (double)hs_ladder_floor(i);
		double height = (double)hs_ladder_floor(i + 1) - floor;

		if (counts[i] > 0 && below + counts[i] >= share * total)
			/* The largest value of the step is one below the next step's. */
			return floor + (height - 1) * (share * total - below) / counts[i];
		below += counts[i];
	}
	return 0;
}
