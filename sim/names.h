/* The names of the load's keys. Key number i is `key%u`. In some schedules in front of a Cluster the first few keys
 * are `key%u{key0}` ("tied"): they share the slot of key0, so that one command or transaction may name several of
 * them, also while that slot moves key by key. Pure functions. */
#ifndef HS_SIM_NAMES_H
#define HS_SIM_NAMES_H

#include "base/bytes.h"

#include <stdbool.h>
#include <stdint.h>

enum { HS_SIM_NAME_BYTES_MAX = 32 };

/* Keys 1 to `tied` share the slot of key0. Returns `text`. */
const char *hs_sim_name(uint32_t tied, uint32_t key, char text[HS_SIM_NAME_BYTES_MAX]);
/* The number of the key with this name; false: it is not one of the load's keys. */
bool hs_sim_name_number(struct hs_bytes name, uint32_t *key);
uint16_t hs_sim_name_slot(uint32_t tied, uint32_t key);

#endif
