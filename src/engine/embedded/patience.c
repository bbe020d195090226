#include "engine/embedded/patience.h"

void hs_patience_answer(struct hs_patience *patience, size_t answered, size_t waiting)
{
	patience->around = answered + waiting;
	patience->until_us = 0;
}

/* One in vain weighs as much as three that were not: clients in a closed loop come back nine times
 * of ten, those who come by chance are there in time about every other time. */
static void in_vain(struct hs_patience *patience)
{
	patience->rest = patience->rest_next;
	patience->rest_next = 8 * patience->rest_next + 1;
	if (patience->rest_next > HS_PATIENCE_REST_MAX)
		patience->rest_next = HS_PATIENCE_REST_MAX;
}

/* Begins to wait, if it is time to try again. */
static bool begin(struct hs_patience *patience, uint64_t sync_us, uint64_t now_us)
{
	if (patience->rest > 0) {
		patience->rest--;
		return false;
	}
	if (sync_us > HS_PATIENCE_US_MAX)
		sync_us = HS_PATIENCE_US_MAX;
	patience->until_us = now_us + sync_us;
	return sync_us > 0;
}

bool hs_patience_wait(struct hs_patience *patience, size_t count, uint64_t sync_us, uint64_t now_us)
{
	bool waiting = patience->until_us != 0;

	if (count >= patience->around) {
		if (waiting)
			patience->rest_next /= 2;
		return false;
	}
	if (!waiting)
		return begin(patience, sync_us, now_us);
	if (now_us < patience->until_us)
		return true;
	in_vain(patience);
	return false;
}
