/* The current time as a value. Code that does no I/O never reads the clock: its caller passes a struct hs_now
 * with every event. */
#ifndef HS_BASE_NOW_H
#define HS_BASE_NOW_H

#include <stdint.h>

struct hs_now {
	uint64_t mono_us; /* monotonic: durations and deadlines */
	int64_t wall_us;  /* since 1970, may jump: expiry, TIME, logs */
};

static inline int64_t hs_now_wall_ms(struct hs_now now)
{
	return now.wall_us / 1000;
}

#endif
