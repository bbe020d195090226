/* How a partition is, in one word: as far as its engine knows, which is a moment ago. */
#ifndef HS_ROUTE_STATE_H
#define HS_ROUTE_STATE_H

#include <stdbool.h>

enum { HS_PARTITION_TROUBLE_BYTES = 128 }; /* why it is not ok, in plain ASCII, with the end */

/* The worse, the higher. */
enum hs_partition_state {
	HS_PARTITION_OK,
	HS_PARTITION_FULL,     /* what needs room is refused */
	HS_PARTITION_READONLY, /* writes are refused */
	HS_PARTITION_UNKNOWN,  /* its server has not told yet */
	HS_PARTITION_LOADING,  /* its server loads its data, and serves nothing */
	HS_PARTITION_DOWN,     /* its server cannot be reached, or says that it serves nothing */
};

static inline const char *hs_partition_state_name(enum hs_partition_state state)
{
	switch (state) {
	case HS_PARTITION_OK:
		return "ok";
	case HS_PARTITION_FULL:
		return "full";
	case HS_PARTITION_READONLY:
		return "readonly";
	case HS_PARTITION_UNKNOWN:
		return "unknown";
	case HS_PARTITION_LOADING:
		return "loading";
	case HS_PARTITION_DOWN:
		return "down";
	}
	return "";
}

/* Nothing that is sent there is served, and that is known. */
static inline bool hs_partition_is_down(enum hs_partition_state state)
{
	return state >= HS_PARTITION_LOADING;
}

/* Something is served, and that is known. */
static inline bool hs_partition_is_up(enum hs_partition_state state)
{
	return state < HS_PARTITION_UNKNOWN;
}

#endif
