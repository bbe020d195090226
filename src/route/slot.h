/* Slots to partitions. */
#ifndef HS_ROUTE_SLOT_H
#define HS_ROUTE_SLOT_H

#include "base/limits.h"
#include "base/slot.h"

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

#endif
