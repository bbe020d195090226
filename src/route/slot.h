/* Keys to slots to partitions. Slots are Redis Cluster's: CRC16 (XMODEM) modulo 16384, of what
 * stands between the first '{' and the next '}' when that is not empty. */
#ifndef HS_ROUTE_SLOT_H
#define HS_ROUTE_SLOT_H

#include "base/bytes.h"
#include "base/limits.h"

#include <stdint.h>

uint16_t hs_slot_of(struct hs_bytes key);

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
