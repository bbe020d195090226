/* How the rows of the command table are written down. For command/ only; everybody else sees
 * them through command/command.h.
 *
 * A row is an object of its own, so their order in the files is free: the order of the table is
 * that of command/ids.h. A subcommand comes right behind its container there. */
#ifndef HS_COMMAND_ROWS_H
#define HS_COMMAND_ROWS_H

#include "command/command.h"

#define ROW(identifier, ...)                                                                       \
	const struct hs_command hs_command_row_##identifier = {.id = HS_CMD_ID_##identifier,       \
							       __VA_ARGS__}

#define KEYS(first, last, step, access)                                                            \
	.key_first = (first), .key_last = (last), .key_step = (step), .key_access = (access)

#define X(identifier) extern const struct hs_command hs_command_row_##identifier;
HS_COMMAND_IDS(X)
#undef X

extern const struct hs_command *const hs_command_table[HS_CMD_IDS];

/* The cell of command/find.c's table at which the search for a name starts, and how many cells
 * there are. The test of that table says with it where a name belongs. */
enum { HS_COMMAND_CELLS = 512 };
size_t hs_command_cell(struct hs_bytes name);

#endif
