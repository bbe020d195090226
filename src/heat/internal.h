/* Private to src/heat: one worker's state. */
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
	struct hs_counter inflight; /* a signed number */
	struct hs_counter histogram[HS_COARSE_HISTOGRAM_BUCKETS];
};

/* One access, or several equal ones, that wait to be counted. The key is hashed and its set prefetched already. */
struct hs_heat_pending {
	uint64_t hash;
	const char *key;
	uint32_t bytes; /* sum over `count` accesses, at most UINT32_MAX */
	uint32_t key_len;
	uint32_t count; /* consecutive equal accesses */
	uint16_t slot;
	uint16_t partition;
	uint8_t levels;
	uint8_t prefix_len[HS_HEAT_PREFIX_LEVELS]; /* 0: no further level */
	bool write, failed, missed, conflicted;
};

struct hs_heat {
	struct hs_heat_clock clock;
	struct hs_heat_table tables[HS_HEAT_TABLES];
	struct hs_heat_tally *partitions;
	uint64_t seed;
	uint64_t name_seeds[2];
	double ms_exact[HS_HEAT_WINDOWS]; /* weight of an access at the start of this ms */
	uint64_t now_us;
	uint32_t notes_count;
	uint16_t partitions_count;
	/* All requests and bytes, decayed; `sum_version` is odd while they are rescaled for a new epoch. */
	double sum_ops[HS_HEAT_WINDOWS], sum_bytes[HS_HEAT_WINDOWS];
	uint32_t sum_version;
	uint32_t sum_epoch;
	/* in this epoch; choose_unit computes the next unit from them */
	uint64_t epoch_ops, epoch_bytes;
	struct hs_counter seen_us;
	struct hs_counter since_us;
	_Atomic uint32_t reset_wanted;
	_Atomic uint32_t reset_done;
	void *memory; /* allocation that holds tables and partitions */
	struct hs_counter ranges[HS_HEAT_RANGES];
	struct hs_heat_pending notes[HS_HEAT_NOTES_MAX];
	struct hs_heat_pending run; /* `count` 0: none */
	uint64_t run_each_ns;
};

/* heat.c and count.c, for merge.c. hs_heat_table_of returns NULL while the worker has not applied a reset yet. */
const struct hs_heat_table *hs_heat_table_of(const struct hs_heat *heat, enum hs_heat_what what);
uint64_t hs_heat_hash(const struct hs_heat *heat, struct hs_bytes name);
uint64_t hs_heat_slot_hash(uint16_t slot);
/* Decayed weights of all requests and bytes in each window. */
struct hs_heat_sums {
	double ops[HS_HEAT_WINDOWS];
	double bytes[HS_HEAT_WINDOWS];
};
struct hs_heat_sums hs_heat_read_sums(const struct hs_heat *heat, uint64_t now_us);
/* Monotonic µs when counting began. */
uint64_t hs_heat_since_us(const struct hs_heat *heat);

#endif
