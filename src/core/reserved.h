/* Reserved names: keys that heatsink itself puts on the servers, copies of hot values today. On a Cluster no
 * client may name such a key, and none is shown. Where heatsink puts no keys the names are ordinary. */
#ifndef HS_CORE_RESERVED_H
#define HS_CORE_RESERVED_H

#include "base/buf.h"
#include "base/bytes.h"

#include <stdbool.h>
#include <string.h>

struct hs_command;
struct hs_core;

#define HS_RESERVED_PREFIX "heatsink:copy:"

static inline bool hs_is_reserved(struct hs_bytes key)
{
	return key.len >= sizeof HS_RESERVED_PREFIX - 1 && key.data[0] == HS_RESERVED_PREFIX[0] &&
	       memcmp(key.data, HS_RESERVED_PREFIX, sizeof HS_RESERVED_PREFIX - 1) == 0;
}

/* Whether there are reserved names on this engine: it is a Cluster. */
bool hs_core_reserves(const struct hs_core *core);
/* Whether the reply to a command may list reserved names, which have to be taken out. */
bool hs_reserved_shows(const struct hs_core *core, const struct hs_command *command);

/* Takes reserved names out of a reply that begins at `start`: a list of keys, a cursor with a list, or one
 * key, which becomes null. */
void hs_reserved_hide(struct hs_buf *out, size_t start, int resp);

#endif
