/* Commands learned from the server behind heatsink: from its reply to COMMAND. heatsink's own rows
 * come first and stay as they are; every other command of the server, modules and newer commands
 * included, gets a row made of the server's description.
 *
 *     HGET ── hs_command_find: none ── hs_learned_find: "hget", keys 1 1 1, readonly …
 *
 * A set never changes once it is made, and any thread may read it. One thread at a time may make
 * and destroy sets (the topology monitor makes them). A newer reply makes a new set, with the old
 * one as `before`. A command keeps its identifier as long as any set lives, and a row lives until
 * the last set is destroyed: a request in flight may go on with the row that it found. The old set
 * itself must live until no thread looks anything up in it.
 *
 * Two bounds (base/limits.h). HS_LEARNED_MAX, 1024 identifiers: 1023 commands have one each, all
 * further ones share the last, so they share its counter ("other") but each has its own row and is
 * routed by it. HS_LEARNED_ROWS_MAX, 16384 rows in all replies together: a reply that needs more
 * makes no set. So a server with 1,500 unknown commands is learned as a whole; 477 of them share
 * the last identifier.
 *
 * When a reply is cut off, invalid or too large, no set is made and the old one stays in use. The
 * module knows no connection: the caller hands the reply in. */
#ifndef HS_COMMAND_LEARNED_H
#define HS_COMMAND_LEARNED_H

#include "command/command.h"

struct hs_learned;

/* Makes a set from the whole reply to COMMAND, in RESP2 or RESP3, of Redis 6 or later or of Valkey.
 * NULL and a text in `error`: the reply is invalid, or a limit is reached. */
struct hs_learned *hs_learned_create(struct hs_bytes command_reply, struct hs_learned *before,
				     char *error, size_t error_size);
void hs_learned_destroy(struct hs_learned **learned);

/* In all calls below, NULL is an empty set.
 *
 * Finds the row of a whole command that is not one of heatsink's own. For a container: its row; go
 * on with hs_learned_sub. O(1), no allocation. */
const struct hs_command *hs_learned_find(const struct hs_learned *learned, struct hs_bytes name);

/* The row of a subcommand. The container may be one of heatsink's own rows. */
const struct hs_command *hs_learned_sub(const struct hs_learned *learned,
					const struct hs_command *parent, struct hs_bytes name);

/* Finds the row of a request, own or learned. NULL: *parent is the container whose subcommand is
 * unknown, or NULL when the command itself is. */
const struct hs_command *hs_learned_resolve(const struct hs_learned *learned, size_t argc,
					    const struct hs_bytes *argv,
					    const struct hs_command **parent);

/* The rows of the set, each subcommand after its container. */
size_t hs_learned_count(const struct hs_learned *learned);
const struct hs_command *hs_learned_at(const struct hs_learned *learned, size_t index);
/* All rows in sequence: heatsink's own, then those of the set; NULL at the end. */
const struct hs_command *hs_learned_row_at(const struct hs_learned *learned, size_t index);

/* The name of an identifier, for counters; also when the server has lost the command since. NULL:
 * not in use. */
const char *hs_learned_name(const struct hs_learned *learned, unsigned id);

/* The server's entry for a learned row in its COMMAND reply: its elements up to the key specs, in
 * sequence, in the RESP version of that reply. `elements` 0: none, because the row was derived from
 * its container's. */
struct hs_bytes hs_learned_raw_entry(const struct hs_command *row, size_t *elements);

#endif
