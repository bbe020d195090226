/* The clocks of the process. The core and the engine's sans-IO parts never read a clock: src/serve and src/cli
 * read it here and hand the time down (storm reads uv_hrtime instead). Any thread. */
#ifndef HS_SERVE_CLOCK_H
#define HS_SERVE_CLOCK_H

#include "base/now.h"

#include <time.h>

static inline uint64_t hs_clock_mono_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static inline struct hs_now hs_clock_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (struct hs_now){
		.mono_us = hs_clock_mono_us(),
		.wall_us = (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000,
	};
}

#endif
