/* What the load's keys are called. Key number i is `key%u`. In some schedules in front of a Cluster the first few
 * are `key%u{key0}`: these and key0 are of one slot, so that one command or one transaction may name several,
 * also while that slot moves key by key. One thread. */
#ifndef HS_SIM_NAMES_H
#define HS_SIM_NAMES_H

#include "base/bytes.h"

#include <stdbool.h>
#include <stdint.h>

enum { HS_SIM_NAME_BYTES_MAX = 32 };

/* Keys 1 … `tied` are of key0's slot. Returns `text`. */
const char *hs_sim_name(uint32_t tied, uint32_t key, char text[HS_SIM_NAME_BYTES_MAX]);
/* The number of the key; false: it is none of the load's. */
bool hs_sim_name_number(struct hs_bytes name, uint32_t *key);
uint16_t hs_sim_name_slot(uint32_t tied, uint32_t key);

#endif
