/* A key's slot. Slots are Redis Cluster's: CRC16 (XMODEM) modulo 16384, of what stands between the
 * first '{' and the next '}' when that is not empty. */
#ifndef HS_BASE_SLOT_H
#define HS_BASE_SLOT_H

#include "base/bytes.h"

#include <stdint.h>

uint16_t hs_slot_of(struct hs_bytes key);

#endif
