/* The command table, made from its rows, and the lookup of a row by name.
 *
 * Every request needs a lookup, so a name is handled as two machine words and never as a string: up
 * to 16 bytes are loaded with a few overlapping reads, letters become upper case eight at a time,
 * one multiplication picks a cell, and three comparisons check the name in it: its two words and
 * its length.
 *
 *     "get" ── load, capitals ──> GET00000 00000000 ── multiply, shift ──> cell 123: GET00000 00000000, row
 *                                        └───────────────── equal? ─────────────────┘
 *
 * The build makes the cells from the rows (tools/make-cells.c), with a multiplier that gives every
 * command a cell of its own. */
#include "command/command.h"
#include "command/name.h"

static const struct hs_command table[HS_CMD_IDS] = {
#define OTHER false
#define START(function, besides) true
#define ROW(identifier, function, its_place, text, count, ...)                                     \
	[HS_CMD_ID_##identifier] = {.id = HS_CMD_ID_##identifier,                                  \
				    .place = HS_PLACE_##its_place,                                 \
				    .starts = (function),                                          \
				    .name = (text),                                                \
				    .arity = (count),                                              \
				    __VA_ARGS__},
#include "command/rows.def"
};

struct cell {
	struct hs_name name;
	size_t len; /* needed because "get" and "get\0" are equal as words */
	const struct hs_command *row;
};

#include "command/cells.h"

const struct hs_command *hs_command_by_id(enum hs_command_id id)
{
	hs_check(id < HS_CMD_IDS);
	return id == HS_CMD_ID_NONE ? NULL : &table[id];
}

const struct hs_command *hs_command_find(struct hs_bytes name)
{
	const struct cell *cell;
	struct hs_name wanted;

	if (name.len - 1 >= HS_NAME_BYTES_MAX) /* 0 wraps, so an empty name is refused, too */
		return NULL;
	wanted = hs_name_pack(name);
	cell = &cells[hs_name_cell(wanted, MULTIPLIER, BITS)];
	if (cell->name.head != wanted.head || cell->name.tail != wanted.tail ||
	    cell->len != name.len)
		return NULL;
	return cell->row;
}

const struct hs_command *hs_command_sub(const struct hs_command *parent, struct hs_bytes name)
{
	size_t skip = strlen(parent->name) + 1; /* "client|" */

	for (size_t id = parent->id + 1; id < HS_CMD_IDS; id++) {
		const struct hs_command *command = &table[id];

		if (command->parent != parent->id)
			break;
		if (hs_bytes_is_word(name, command->name + skip))
			return command;
	}
	return NULL;
}

/* Does an XREAD or XREADGROUP have BLOCK before STREAMS? Some options there have values of any
 * kind. */
static bool reads_blocking(size_t argc, const struct hs_bytes *argv)
{
	for (size_t i = 1; i < argc; i++) {
		if (hs_bytes_is_word(argv[i], "block"))
			return true;
		if (hs_bytes_is_word(argv[i], "streams"))
			return false;
		if (hs_bytes_is_word(argv[i], "group"))
			i += 2;
		else if (hs_bytes_is_word(argv[i], "count"))
			i++;
	}
	return false;
}

bool hs_command_may_write_others(const struct hs_command *command)
{
	return command->id >= HS_CMD_IDS && !hs_command_only_reads(command) &&
	       (command->flags & (HS_CMD_EFFECT_UNKNOWN | HS_CMD_MOVABLEKEYS) ||
		!(command->flags & HS_CMD_WRITE) || strchr(command->name, '.'));
}

bool hs_command_blocks(const struct hs_command *command, size_t argc, const struct hs_bytes *argv)
{
	if (!(command->flags & HS_CMD_BLOCKING))
		return false;
	return strncmp(command->name, "xread", strlen("xread")) != 0 || reads_blocking(argc, argv);
}
