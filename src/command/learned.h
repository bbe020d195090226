/* The commands of a server behind heatsink, learned from its reply to COMMAND and laid under our
 * own rows: what is ours stays as our rows say, everything else the server knows, modules and
 * commands newer than heatsink included, gets a row made of what the server says about it.
 *
 *     HGET ── hs_command_find: none ── hs_learned_find: "hget", keys 1 1 1, readonly …
 *
 * A set never changes once it is made, and any thread may read it. Making and destroying sets is
 * for one thread at a time. A set is asked for again by making a new one from a newer reply, with
 * the old one as `before`: a command keeps its identifier as long as the sets live, and a row lives
 * until the last set is destroyed, so that a request under way may go on with the row it found.
 * Only the old set itself must stay until nobody looks anything up in it.
 *
 * Bounded by HS_LEARNED_MAX identifiers (commands beyond share the last, and are routed all the
 * same) and HS_LEARNED_ROWS_MAX rows. It knows no connection: the reply is handed in. */
#ifndef HS_COMMAND_LEARNED_H
#define HS_COMMAND_LEARNED_H

#include "command/command.h"

struct hs_learned;

/* `command_reply` is the whole reply to COMMAND in either dialect, of a server of Redis 6 or later,
 * or of Valkey. NULL and a text in `error`: it is no such reply, or a limit is reached. */
struct hs_learned *hs_learned_create(struct hs_bytes command_reply, struct hs_learned *before,
				     char *error, size_t error_size);
void hs_learned_destroy(struct hs_learned **learned);

/* All of these take NULL for a set in which there is nothing.
 *
 * The row of a whole command that is not among our own. As with our own, a container is found, and
 * hs_learned_sub goes on from there. O(1), no allocation. */
const struct hs_command *hs_learned_find(const struct hs_learned *learned, struct hs_bytes name);

/* The row of a subcommand; the container may be one of our own rows. */
const struct hs_command *hs_learned_sub(const struct hs_learned *learned,
					const struct hs_command *parent, struct hs_bytes name);

/* What a request asks for, over our own rows and the learned ones: the row, or NULL with *parent
 * set to the container whose subcommand is unknown, or to NULL when the command is. */
const struct hs_command *hs_learned_resolve(const struct hs_learned *learned, size_t argc,
					    const struct hs_bytes *argv,
					    const struct hs_command **parent);

/* The rows of the set, each subcommand behind its container. */
size_t hs_learned_count(const struct hs_learned *learned);
const struct hs_command *hs_learned_at(const struct hs_learned *learned, size_t index);
/* All rows one behind the other: our own, then those of the set; NULL at the end. */
const struct hs_command *hs_learned_row_at(const struct hs_learned *learned, size_t index);

/* The name that an identifier stands for in counters, also when the server has forgotten the
 * command since; NULL when it stands for none. */
const char *hs_learned_name(const struct hs_learned *learned, unsigned id);

/* What the server said about a learned row: the elements of its entry in COMMAND up to the key
 * specs, one behind the other, in the dialect of that reply. `elements` 0: nothing, the row is
 * derived from its container's. */
struct hs_bytes hs_learned_raw_entry(const struct hs_command *row, size_t *elements);

#endif
