/* The state and the figures of one partition, as its engine last measured them. The caller owns the struct: the
 * control thread hands it to hs_engine_calls.partition_stats, and the engine copies its figures into it: redis/
 * under the mutex of the monitor thread (`queued` is the sum of the workers' atomic counters), embedded/ from
 * atomics, without a lock, so that two figures may differ by a moment. The functions here are pure. */
#ifndef HS_ROUTE_PARTITION_STATE_H
#define HS_ROUTE_PARTITION_STATE_H

#include "base/coarse_histogram.h"

#include <stdbool.h>
#include <stdint.h>

/* Size of unavailable_reason, with the terminating zero. */
enum { HS_PARTITION_REASON_BYTES = 128 };

/* In order of severity. */
enum hs_partition_state {
	HS_PARTITION_OK,
	HS_PARTITION_FULL,     /* writes that need more room are refused */
	HS_PARTITION_READONLY, /* writes are refused */
	HS_PARTITION_UNKNOWN,  /* no reply to INFO from its server yet */
	HS_PARTITION_LOADING,  /* its server loads its data and serves nothing */
	HS_PARTITION_DOWN,     /* its server is unreachable, or reports that it serves nothing */
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

/* LOADING or DOWN. UNKNOWN is neither down nor up. */
static inline bool hs_partition_is_down(enum hs_partition_state state)
{
	return state >= HS_PARTITION_LOADING;
}

/* OK, FULL or READONLY: it serves reads at least. */
static inline bool hs_partition_is_up(enum hs_partition_state state)
{
	return state < HS_PARTITION_UNKNOWN;
}

/* An engine's report about one partition. */
struct hs_engine_partition {
	/* A gap: the number belongs to no partition, and is not shown. Partition numbers are stable; a removed
	 * server leaves a gap. */
	bool absent;
	char address[64]; /* plain ASCII: a server's address, or the name of a file */
	char slots[64];	  /* its slots, such as "0-5460 8000"; cut with "…" */
	enum hs_partition_state state;
	/* Plain ASCII: why it is not ok; "" when it is. */
	char unavailable_reason[HS_PARTITION_REASON_BYTES];
	uint64_t keys;
	uint64_t expires;    /* keys with an expiry */
	uint64_t bytes_used; /* embedded engine: of the pages in use; server: used_memory of INFO */
	uint64_t bytes_max;
	/* Operations waiting at this moment; of the embedded engine, those for the committer: mostly writes. */
	uint64_t queued;
	/* From the server's INFO; 0 for the embedded engine. */
	double cpu; /* CPU time as a share of one core: 1 is a whole core */
	uint64_t clients;
	uint64_t replicas;	    /* replicas connected to it */
	uint64_t replica_lag_s;	    /* lag of the slowest replica */
	uint64_t replica_lag_bytes; /* lag of the slowest replica */
	/* From the server's CLUSTER SLOT-STATS; 0 without it. */
	double slots_cpu;	/* CPU time of the slots' commands, as a share of one core */
	double net_in, net_out; /* bytes per second of requests and replies of all clients */
	/* Group commit latency in µs: from the start of a group until its clients can be answered. Counted
	 * since the start, never reset. */
	uint64_t commit_histogram[HS_COARSE_HISTOGRAM_BUCKETS];
};

#endif
