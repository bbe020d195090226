/* How a partition is, in one word and in numbers: as far as its engine knows, which is a moment ago. */
#ifndef HS_ROUTE_PARTITION_STATE_H
#define HS_ROUTE_PARTITION_STATE_H

#include "base/coarse_histogram.h"

#include <stdbool.h>
#include <stdint.h>

enum { HS_PARTITION_REASON_BYTES = 128 }; /* why it is not ok, in plain ASCII, with the end */

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
	static const char *const names[] = {
		[HS_PARTITION_OK] = "ok",
		[HS_PARTITION_FULL] = "full",
		[HS_PARTITION_READONLY] = "readonly",
		[HS_PARTITION_UNKNOWN] = "unknown",
		[HS_PARTITION_LOADING] = "loading",
		[HS_PARTITION_DOWN] = "down",
	};

	return names[state];
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

/* What an engine says about one partition, for INFO, HEAT and the metrics. */
struct hs_engine_partition {
	/* No partition has this number now, and it is not shown. Numbers stay with what they stand
	 * for, so that there may be some between others that nothing stands for. */
	bool absent;
	char address[64]; /* where it is, in plain ASCII: a server, or the name of a file */
	char slots[64];	  /* those it has, "0-5460 8000"; cut with "…" */
	enum hs_partition_state state;
	char unavailable_reason[HS_PARTITION_REASON_BYTES]; /* why it is not ok; "" when it is */
	uint64_t keys;
	uint64_t expires;    /* keys with an expiry */
	uint64_t bytes_used; /* pages in use */
	uint64_t bytes_max;
	uint64_t queued; /* writes waiting now */
	/* Of a server with replicas, as it last told; 0 where there is none. */
	double cpu; /* processor time against one core: 1 is a whole one */
	uint64_t clients;
	uint64_t replicas;	    /* that follow it */
	uint64_t replica_lag_s;	    /* of the one furthest behind */
	uint64_t replica_lag_bytes; /* the same */
	/* What the server counts for its slots; 0 where it does not tell. */
	double slots_cpu;	/* time their commands took, against one core */
	double net_in, net_out; /* bytes per second of requests and replies, whoever sent them */
	/* Times of its commits in µs, from the start of a group until those who wait for it can be
	 * answered. Counted since the start, never reset. */
	uint64_t commit_histogram[HS_COARSE_HISTOGRAM_BUCKETS];
};

#endif
