/* src/route knows partitions by number: which partition has a slot (here), how replies of several partitions
 * become one (merge.h), and what an engine reports about a partition (partition_state.h). It must not know
 * engines or connections; of a command it knows only how its replies are merged (enum hs_command_merge). The core
 * decides where a request goes.
 *
 * This header maps slots to partitions: even ranges that never change (hs_slot_partition), or a map that an
 * engine changes while it runs (struct hs_slot_map). */
#ifndef HS_ROUTE_SLOT_MAP_H
#define HS_ROUTE_SLOT_MAP_H

#include "base/limits.h"
#include "base/slot.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* The partition of a slot, with the slots in even, contiguous ranges. */
static inline uint16_t hs_slot_partition(uint16_t slot, uint16_t partitions)
{
	return (uint16_t)((uint32_t)slot * partitions / HS_SLOTS);
}

/* The first slot of a partition; HS_SLOTS for partition == partitions. */
static inline uint32_t hs_slot_first(uint16_t partition, uint16_t partitions)
{
	return ((uint32_t)partition * HS_SLOTS + partitions - 1) / partitions;
}

/* The partition of each slot. The engine's thread writes it; any thread reads it, with relaxed loads. A reader
 * may see the previous owner of a slot for a moment; that server answers with a redirect (MOVED), and the
 * engine sends the request again.
 *
 * `count` is one more than the highest partition number in use. A reader may see an entry before the `count`
 * that covers it, so arrays indexed by partition must have HS_PARTITIONS_MAX elements. Partition numbers are
 * stable: the number of a server that has gone is a gap, where present[i] is false. `failed` is the number of
 * slots that cannot be served: unassigned, or their server is down. */
struct hs_slot_map {
	_Atomic uint16_t partition[HS_SLOTS];
	_Atomic uint16_t count;
	_Atomic uint16_t failed;
	_Atomic bool present[HS_PARTITIONS_MAX];
};

static inline uint16_t hs_slot_map_get(const struct hs_slot_map *map, uint16_t slot)
{
	return atomic_load_explicit(&map->partition[slot], memory_order_relaxed);
}

static inline void hs_slot_map_set(struct hs_slot_map *map, uint16_t slot, uint16_t partition)
{
	atomic_store_explicit(&map->partition[slot], partition, memory_order_relaxed);
}

static inline uint16_t hs_slot_map_count(const struct hs_slot_map *map)
{
	return atomic_load_explicit(&map->count, memory_order_relaxed);
}

static inline void hs_slot_map_set_count(struct hs_slot_map *map, uint16_t count)
{
	atomic_store_explicit(&map->count, count, memory_order_relaxed);
}

static inline uint16_t hs_slot_map_failed(const struct hs_slot_map *map)
{
	return atomic_load_explicit(&map->failed, memory_order_relaxed);
}

static inline void hs_slot_map_set_failed(struct hs_slot_map *map, uint16_t failed)
{
	atomic_store_explicit(&map->failed, failed, memory_order_relaxed);
}

static inline bool hs_slot_map_has(const struct hs_slot_map *map, uint16_t partition)
{
	return partition < HS_PARTITIONS_MAX &&
	       atomic_load_explicit(&map->present[partition], memory_order_relaxed);
}

static inline void hs_slot_map_set_present(struct hs_slot_map *map, uint16_t partition,
					   bool present)
{
	atomic_store_explicit(&map->present[partition], present, memory_order_relaxed);
}

#endif
