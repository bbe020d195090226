#include "engine/embedded/group_wait.h"

void hs_group_wait_answered(struct hs_group_wait *wait, size_t answered, size_t waiting)
{
	wait->in_flight = answered + waiting;
	wait->until_us = 0;
}

/* Backs off after a wait that found too few operations. One failed wait weighs as much as three successful ones:
 * clients in a closed loop return in time in nine cases of ten, clients that send at random in about half of the
 * cases. */
static void in_vain(struct hs_group_wait *wait)
{
	wait->skip = wait->skip_next;
	wait->skip_next = 8 * wait->skip_next + 1;
	if (wait->skip_next > HS_GROUP_WAIT_SKIP_MAX)
		wait->skip_next = HS_GROUP_WAIT_SKIP_MAX;
}

/* Begins a wait, unless `skip` says that this group must not wait. */
static bool begin(struct hs_group_wait *wait, uint64_t sync_us, uint64_t now_us)
{
	if (wait->skip > 0) {
		wait->skip--;
		return false;
	}
	if (sync_us > HS_GROUP_WAIT_US_MAX)
		sync_us = HS_GROUP_WAIT_US_MAX;
	wait->until_us = now_us + sync_us;
	return sync_us > 0;
}

bool hs_group_wait_for_more(struct hs_group_wait *wait, size_t count, uint64_t sync_us,
			    uint64_t now_us)
{
	bool waiting = wait->until_us != 0;

	if (count >= wait->in_flight) {
		if (waiting)
			wait->skip_next /= 2;
		return false;
	}
	if (!waiting)
		return begin(wait, sync_us, now_us);
	if (now_us < wait->until_us)
		return true;
	in_vain(wait);
	return false;
}
