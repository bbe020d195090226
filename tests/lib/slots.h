/* A slot map for unit tests: the slots in equal ranges over this many partitions. There is no state; the caller owns
 * the map, and only one thread may use it meanwhile. */
#ifndef HS_TESTS_SLOTS_H
#define HS_TESTS_SLOTS_H

#include "route/slot_map.h"

static inline void hs_slot_map_fill_even(struct hs_slot_map *map, uint16_t partitions)
{
	for (uint32_t slot = 0; slot < HS_SLOTS; slot++)
		hs_slot_map_set(map, (uint16_t)slot, hs_slot_partition((uint16_t)slot, partitions));
	for (uint16_t i = 0; i < HS_PARTITIONS_MAX; i++)
		hs_slot_map_set_present(map, i, i < partitions);
	hs_slot_map_set_count(map, partitions);
}

#endif
