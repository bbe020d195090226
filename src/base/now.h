/* Time as data. Nobody below the I/O line asks for it: every event carries it. */
#ifndef HS_BASE_NOW_H
#define HS_BASE_NOW_H

#include <stdint.h>

struct hs_now {
	uint64_t mono_us; /* never goes back: durations, deadlines */
	int64_t wall_us;  /* since 1970: expiry, TIME, logs; may jump */
};

static inline int64_t hs_now_wall_ms(struct hs_now now)
{
	return now.wall_us / 1000;
}

#endif
