/* Slots to partitions: even ranges that never change (hs_slot_partition), or a map that an engine
 * may change while it runs (struct hs_slot_map). */
#ifndef HS_ROUTE_SLOT_MAP_H
#define HS_ROUTE_SLOT_MAP_H

#include "base/limits.h"
#include "base/slot.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Slots in P contiguous, even ranges. */
static inline uint16_t hs_slot_partition(uint16_t slot, uint16_t partitions)
{
	return (uint16_t)((uint32_t)slot * partitions / HS_SLOTS);
}

/* The first slot of a partition; partition == partitions gives HS_SLOTS. */
static inline uint32_t hs_slot_first(uint16_t partition, uint16_t partitions)
{
	return ((uint32_t)partition * HS_SLOTS + partitions - 1) / partitions;
}

/* Which partition has each slot. One thread writes (the engine's), any thread reads: entries are
 * relaxed, because a reader that sees the old owner of a slot is as right as one that came a moment
 * earlier, and whoever is asked by mistake redirects. `count` is one more than the highest partition
 * in use; a reader may see an entry before the count that covers it, so tables indexed by partition
 * are sized by a capacity, never by the count. Below it there may be numbers that nothing stands for
 * any more: `present` tells them apart. `failed` is how many slots cannot be served now: nobody has
 * them, or who does is down. */
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
