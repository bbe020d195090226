/* Reserved names: keys that heatsink itself stores on the servers (copies of hot values). On a Cluster no
 * client may name such a key, and no reply shows one. On other engines heatsink stores no keys, and the names
 * are ordinary. */
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

/* Whether the engine has reserved names: it is a Cluster. */
bool hs_core_reserves(const struct hs_core *core);
/* Whether the reply to a command may list reserved names, so that hs_reserved_hide must remove them. */
bool hs_reserved_shows(const struct hs_core *core, const struct hs_command *command);

/* Removes reserved names from a reply that begins at `start`: a list of keys, a cursor with a list, or one key,
 * which becomes null. Any other reply stays as it is. */
void hs_reserved_hide(struct hs_buf *out, size_t start, int resp);

#endif
