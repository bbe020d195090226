/* From a command's name to its row.
 *
 * Every request pays for this, so a name is handled as two machine words and never as a string:
 * up to 16 bytes are loaded with a few overlapping reads, small letters are made capital eight at
 * a time, one multiplication picks a cell of a constant table, and the candidate found there is
 * compared with two comparisons.
 *
 *     "get" ── load, capitals ──> GET00000 00000000 ── multiply, shift ──> cell 123: HS_CMD_ID_GET
 *                                        └──────────── equal? ──────────> names[HS_CMD_ID_GET]
 *
 * C cannot compute the cells while compiling, so they are written down below. A name whose cell
 * is taken goes to the next free one, and the search walks on until an empty cell. A new command
 * needs an entry here; the unit test checks all of them and prints where a missing one belongs. */
#include "command/name.h"
#include "command/rows.h"

#include <stdint.h>

/* The names in capitals: the identifiers of whole commands. Those of subcommands, which may be
 * longer, are in no cell. */
static const char names[HS_CMD_IDS][2 * HS_NAME_BYTES_MAX] = {
#define X(identifier) [HS_CMD_ID_##identifier] = #identifier,
	HS_COMMAND_IDS(X)
#undef X
};

_Static_assert(HS_CMD_IDS <= HS_COMMAND_CELLS / 2, "a fuller table makes long walks");

#define C(cell, identifier) [cell] = HS_CMD_ID_##identifier
/* clang-format off */
static const uint16_t cells[HS_COMMAND_CELLS] = {
	C(3, PERSIST), C(10, GETDEL), C(12, RESET), C(13, SETBIT), C(14, TIME), C(15, INFO),
	C(17, ECHO), C(22, APPEND), C(36, DBSIZE), C(37, UNSUBSCRIBE), C(39, SUBSCRIBE),
	C(42, INCRBYFLOAT), C(43, EXPIRETIME), C(44, FLUSHALL), C(49, PEXPIRE), C(50, MGET),
	C(53, STRLEN), C(60, SUNSUBSCRIBE), C(66, BITCOUNT), C(68, QUIT), C(71, KEYS),
	C(85, GETSET), C(95, DECR), C(96, TYPE), C(104, SETEX), C(107, OBJECT), C(124, GET),
	C(127, MSET), C(133, DEL), C(140, COPY), C(146, PEXPIRETIME), C(150, FLUSHDB), C(152, TTL),
	C(153, PUBSUB), C(169, HEAT), C(195, CLIENT), C(217, EXISTS), C(218, ACL),
	C(219, RENAMENX),
	C(227, SETRANGE), C(231, GETBIT), C(237, RENAME), C(257, FUNCTION), C(263, INCRBY),
	C(273, DISCARD), C(280, CONFIG), C(284, PSUBSCRIBE), C(286, BITPOS), C(308, LATENCY),
	C(310, SELECT), C(312, CLUSTER), C(315, WATCH), C(318, SHUTDOWN), C(322, GETEX),
	C(334, MSETNX), C(342, UNLINK), C(345, SSUBSCRIBE), C(347, HELLO), C(349, EXPIREAT),
	C(357, SLOWLOG), C(361, EXEC), C(363, READWRITE), C(370, SCAN), C(371, RANDOMKEY),
	C(380, READONLY), C(381, DECRBY), C(382, PING), C(387, SUBSTR), C(401, AUTH),
	C(403, UNWATCH), C(405, ASKING), C(406, MULTI), C(408, COMMAND), C(416, PTTL), C(418, SET),
	C(432, PSETEX), C(439, TOUCH), C(443, SETNX), C(445, GETRANGE), C(449, DEBUG),
	C(454, HOTKEYS), C(468, LCS), C(471, EXPIRE), C(485, PEXPIREAT), C(487, PUBLISH),
	C(489, INCR), C(496, SPUBLISH), C(511, PUNSUBSCRIBE),
};
/* clang-format on */
#undef C

static inline size_t cell_of(struct hs_name name)
{
	uint64_t mixed = (name.head ^ name.tail * 0x9e3779b97f4a7c15) * 0xe1988ad9f06c144b;

	return (size_t)(mixed >> 55) % HS_COMMAND_CELLS;
}

size_t hs_command_cell(struct hs_bytes name)
{
	hs_check(name.len > 0);
	hs_check(name.len <= HS_NAME_BYTES_MAX);
	return cell_of(hs_name_pack(name));
}

const struct hs_command *hs_command_find(struct hs_bytes name)
{
	struct hs_name wanted;
	size_t cell;

	if (name.len - 1 >= HS_NAME_BYTES_MAX) /* an empty name wraps */
		return NULL;
	if (name.data[name.len - 1] == '\0') /* it would look like the name without it */
		return NULL;
	wanted = hs_name_pack(name);
	for (cell = cell_of(wanted); cells[cell] != 0; cell = (cell + 1) % HS_COMMAND_CELLS) {
		const char *found = names[cells[cell]];

		if (hs_name_load_8(found) == wanted.head &&
		    hs_name_load_8(found + 8) == wanted.tail)
			return hs_command_table[cells[cell]];
	}
	return NULL;
}

const struct hs_command *hs_command_sub(const struct hs_command *parent, struct hs_bytes name)
{
	size_t skip = strlen(parent->name) + 1; /* "client|" */

	for (size_t id = parent->id + 1; id < HS_CMD_IDS; id++) {
		const struct hs_command *command = hs_command_table[id];

		if (command->parent != parent->id)
			break;
		if (hs_bytes_is_word(name, command->name + skip))
			return command;
	}
	return NULL;
}

/* XREAD and XREADGROUP: the words before STREAMS, of which some have a value of any kind. */
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
	       (command->flags & (HS_CMD_UNSURE | HS_CMD_MOVABLEKEYS) ||
		!(command->flags & HS_CMD_WRITE) || strchr(command->name, '.'));
}

bool hs_command_blocks(const struct hs_command *command, size_t argc, const struct hs_bytes *argv)
{
	if (!(command->flags & HS_CMD_BLOCKING))
		return false;
	return strncmp(command->name, "xread", strlen("xread")) != 0 || reads_blocking(argc, argv);
}
