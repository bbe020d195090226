/* A plain SET: it replaces the value and answers OK, whatever was there before. Such a write can be folded
 * with others of its key, and its value can be cached. */
#ifndef HS_ABSORB_PLAIN_SET_H
#define HS_ABSORB_PLAIN_SET_H

#include "base/bytes.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether the arguments of SET are `key value`, with EX or PX at most. `expire_ms`: the time to live; 0: none. */
bool hs_plain_set(size_t argc, const struct hs_bytes *argv, int64_t *expire_ms);

#endif
