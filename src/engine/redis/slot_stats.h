/* Reads the counters that a server keeps for each slot: the reply to CLUSTER SLOT-STATS SLOTSRANGE, which
 * Redis has from 8.2 and Valkey from 8.0 on. A server tells of its own slots alone, so that one table
 * serves for all masters. Counters run since a server's start, and start again when a slot
 * moves; rates are what they grew by between two looks. Only the number of keys is there unless the
 * server has cluster-slot-stats-enabled. Pure. */
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

/* Of all slots, what the last look that saw them found. Starts as zeros. */
struct hs_slot_samples {
	uint64_t count; /* looks so far; the first one is number 1 */
	struct {
		uint64_t sample; /* its number; 0: none */
		struct hs_slot_stats stats;
	} slots[HS_SLOTS];
};

/* The last look at one server. Zeros: there was none, or it is to be forgotten because the server was
 * away since. */
struct hs_slot_sample {
	uint64_t number;
	uint64_t at_us;
};

/* All slots of one server. */
struct hs_slot_sums {
	uint64_t keys;
	double cpu; /* time their commands took, against one core: 1 is a whole one */
	double bytes_in, bytes_out; /* per second */
};

/* Takes one whole reply of either dialect, which came at `now_us`, and returns how many slots it is
 * about. `last` becomes this look. A slot has a part in the rates when the look before at the same
 * server saw it too and none of its counters has gone back since: otherwise it is another count.
 * HS_EINVAL (the server refused: it is too old, or this user may not ask) or HS_EPROTO with one line
 * about it in `why`; then nothing has changed. */
int hs_slot_stats_sample(struct hs_slot_samples *samples, struct hs_slot_sample *last,
			 struct hs_bytes reply, uint64_t now_us, struct hs_slot_sums *sums,
			 char *why, size_t why_size) HS_MUSTCHECK;

#endif
