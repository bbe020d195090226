/* A plain SET replaces the value and answers OK, whatever was there before. So it can be folded with other
 * writes of its key, and its value can be cached (write-through). SET with NX, XX, GET or KEEPTTL is not plain. */
#ifndef HS_ABSORB_PLAIN_SET_H
#define HS_ABSORB_PLAIN_SET_H

#include "base/bytes.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether SET's arguments are `key value`, with nothing more than EX or PX. `expire_ms`: time to live; 0: none. */
bool hs_plain_set(size_t argc, const struct hs_bytes *argv, int64_t *expire_ms);

#endif
