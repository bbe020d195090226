/* Commands of Redis 7.0 that the embedded engine does not have. In front of a Redis server heatsink
 * learns them from the server (command/learned.h) and forwards them. On the embedded engine they
 * are unknown commands; this module adds the reason, and what to do, to that error. Pure; any
 * thread. */
#ifndef HS_COMMAND_NOT_EMBEDDED_H
#define HS_COMMAND_NOT_EMBEDDED_H

#include "base/buf.h"
#include "base/bytes.h"

/* Appends a note in parentheses that says whether a server behind heatsink would run the command: `name`
 * is a command ("lpush") or a subcommand ("function|load") in any case. Appends nothing for a name that
 * Redis 7.0 does not have. */
void hs_not_embedded_note(struct hs_bytes name, struct hs_buf *text);

#endif
