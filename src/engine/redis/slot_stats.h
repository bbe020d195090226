/* Reads the per-slot counters of a server: the reply to CLUSTER SLOT-STATS SLOTSRANGE, in Redis from 8.2 and
 * Valkey from 8.0 on. A server reports only its own slots, so one table serves all masters. Counters run since the
 * server's start and restart when a slot moves; a rate is their growth between two samples. Without
 * cluster-slot-stats-enabled at the server only the number of keys is reported.
 *
 * Pure: no connection, no clock. The caller owns both structs; one thread. */
#ifndef HS_ENGINE_REDIS_SLOT_STATS_H
#define HS_ENGINE_REDIS_SLOT_STATS_H

#include "base/bytes.h"
#include "base/check.h"
#include "base/limits.h"

#include <stdint.h>

struct hs_slot_stats {
	uint64_t keys;
	uint64_t cpu_us;
	uint64_t memory_bytes; /* Redis only */
	uint64_t bytes_in, bytes_out;
};

/* The latest counters of each slot. The caller begins with a struct of zeros. */
struct hs_slot_samples {
	uint64_t count; /* samples taken so far; the first has number 1 */
	struct {
		uint64_t sample; /* number of the sample that had this slot last; 0: none */
		struct hs_slot_stats stats;
	} slots[HS_SLOTS];
};

/* The last sample of one server. All zeros: none. The caller sets it to zeros when the server was away. */
struct hs_slot_sample {
	uint64_t number;
	uint64_t at_us;
};

/* Sums over all slots of one server. */
struct hs_slot_sums {
	uint64_t keys;
	double cpu;		    /* CPU time of commands, as a part of one core */
	double bytes_in, bytes_out; /* per second */
};

/* Takes one whole reply, of either dialect, that came at `now_us`. Returns the number of slots in the reply, and
 * `last` becomes this sample. A slot counts for the rates if the server's previous sample had the slot, too, and
 * none of the slot's counters went back.
 * Errors: HS_EINVAL (the server refused: too old, or no permission) or HS_EPROTO (malformed), with one line in
 * `why`. After an error `samples`, `last` and `sums` are unchanged. */
int hs_slot_stats_sample(struct hs_slot_samples *samples, struct hs_slot_sample *last,
			 struct hs_bytes reply, uint64_t now_us, struct hs_slot_sums *sums,
			 char *why, size_t why_size) HS_MUSTCHECK;

#endif
