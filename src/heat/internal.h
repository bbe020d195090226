/* Private to src/heat: one worker's heat from inside. */
#ifndef HS_HEAT_INTERNAL_H
#define HS_HEAT_INTERNAL_H

#include "base/counter.h"
#include "heat/heat.h"
#include "heat/table.h"

struct hs_heat_tally {
	struct hs_counter ops[2];
	struct hs_counter bytes;
	struct hs_counter errors;
	struct hs_counter time_ns;
	struct hs_counter inflight; /* as a signed number */
	struct hs_counter histogram[HS_COARSE_HISTOGRAM_BUCKETS];
};

/* An access that waits to be counted, or several alike. It is hashed already, so that its set is on its way to
 * the cache. */
struct hs_heat_pending {
	uint64_t hash;
	const char *key;
	uint32_t bytes; /* of all it stands for; of a larger one: so many */
	uint32_t key_len;
	uint32_t count; /* accesses alike, one behind the other, that it stands for */
	uint16_t slot;
	uint16_t partition;
	uint8_t levels;
	uint8_t prefix_len[HS_HEAT_PREFIX_LEVELS]; /* 0: no more */
	bool write, failed, missed, conflicted;
};

struct hs_heat {
	struct hs_heat_clock clock;
	struct hs_heat_table tables[HS_HEAT_TABLES];
	struct hs_heat_tally *partitions;
	uint64_t seed;
	uint64_t name_seeds[2];
	double ms_exact[HS_HEAT_WINDOWS]; /* what an access at the start of this ms weighs */
	uint64_t now_us;
	uint32_t notes_count;
	uint16_t partitions_count;
	/* All requests and bytes, decayed; `sum_version` is odd while they enter a new epoch. */
	double sum_ops[HS_HEAT_WINDOWS], sum_bytes[HS_HEAT_WINDOWS];
	uint32_t sum_version;
	uint32_t sum_epoch;
	uint64_t epoch_ops, epoch_bytes; /* of this epoch, for the unit of the next */
	struct hs_counter seen_us;
	struct hs_counter since_us;
	_Atomic uint32_t reset_wanted;
	_Atomic uint32_t reset_done;
	void *memory; /* of tables and partitions, as allocated */
	struct hs_counter ranges[HS_HEAT_RANGES];
	struct hs_heat_pending notes[HS_HEAT_NOTES_MAX];
	struct hs_heat_pending run; /* `count` 0: none */
	uint64_t run_each_ns;
};

/* heat.c and count.c, for merge.c. The table is NULL while a reset has not reached it. */
const struct hs_heat_table *hs_heat_table_of(const struct hs_heat *heat, enum hs_heat_what what);
uint64_t hs_heat_hash(const struct hs_heat *heat, struct hs_bytes name);
uint64_t hs_heat_slot_hash(uint16_t slot);
/* All requests and bytes in the windows, decayed. */
struct hs_heat_sums {
	double ops[HS_HEAT_WINDOWS];
	double bytes[HS_HEAT_WINDOWS];
};
struct hs_heat_sums hs_heat_read_sums(const struct hs_heat *heat, uint64_t now_us);
/* When counting began. */
uint64_t hs_heat_since_us(const struct hs_heat *heat);

#endif
