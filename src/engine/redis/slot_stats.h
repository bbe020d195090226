/* What servers count for each slot themselves: the reply of CLUSTER SLOT-STATS SLOTSRANGE, which
 * Redis has from 8.2 and Valkey from 8.0 on. A server tells of its own slots alone; replies of all
 * masters are read into the same table. Counters run since a server's start, and start again when a
 * slot moves. Only the number of keys is there unless the server has cluster-slot-stats-enabled.
 * Pure. */
#ifndef HS_ENGINE_REDIS_SLOT_STATS_H
#define HS_ENGINE_REDIS_SLOT_STATS_H

#include "base/check.h"
#include "route/slot.h"

struct hs_slot_stats {
	uint64_t keys;
	uint64_t cpu_us;
	uint64_t memory_bytes; /* Redis only */
	uint64_t bytes_in, bytes_out;
};

/* One whole reply of either dialect. Replaces what the table says of the slots that the reply is
 * about and returns how many those are. HS_EINVAL (the server refused: it is too old, or this user
 * may not ask) or HS_EPROTO with one line about it in `why`; then the table is as it was. */
int hs_slot_stats_parse(struct hs_slot_stats table[HS_SLOTS], struct hs_bytes reply, char *why,
			size_t why_size) HS_MUSTCHECK;

/* Sums for each of `partitions`; slots of others are left out. */
void hs_slot_stats_sum(const struct hs_slot_stats table[HS_SLOTS], const struct hs_slot_map *map,
		       struct hs_slot_stats *sums, uint16_t partitions);

#endif
