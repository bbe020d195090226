/* The slot of a key, as in Redis Cluster: CRC16 (XMODEM) modulo 16384 of the hash tag, if the key has one, else
 * of the whole key. */
#ifndef HS_BASE_SLOT_H
#define HS_BASE_SLOT_H

#include "base/bytes.h"

#include <stdint.h>

uint16_t hs_slot_of(struct hs_bytes key);

#endif
