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
#include "command/rows.h"

#include <endian.h>
#include <stdint.h>

enum { NAME_BYTES_MAX = 16 }; /* of a whole command */

struct name {
	uint64_t head; /* bytes 0-7, the first one lowest; zeros behind the end */
	uint64_t tail; /* bytes 8-15 */
};

/* The names in capitals: the identifiers of whole commands. Those of subcommands, which may be
 * longer, are in no cell. */
static const char names[HS_CMD_IDS][2 * NAME_BYTES_MAX] = {
#define X(identifier) [HS_CMD_ID_##identifier] = #identifier,
	HS_COMMAND_IDS(X)
#undef X
};

_Static_assert(HS_CMD_IDS <= HS_COMMAND_CELLS / 2, "a fuller table makes long walks");

#define C(cell, identifier) [cell] = HS_CMD_ID_##identifier
/* clang-format off */
static const uint16_t cells[HS_COMMAND_CELLS] = {
	C(3, PERSIST), C(10, GETDEL), C(12, RESET), C(13, SETBIT), C(14, TIME), C(15, INFO),
	C(17, ECHO), C(22, APPEND), C(36, DBSIZE), C(42, INCRBYFLOAT), C(43, EXPIRETIME),
	C(44, FLUSHALL), C(49, PEXPIRE), C(50, MGET), C(53, STRLEN), C(66, BITCOUNT), C(68, QUIT),
	C(71, KEYS), C(85, GETSET), C(95, DECR), C(96, TYPE), C(104, SETEX), C(107, OBJECT),
	C(124, GET), C(127, MSET), C(133, DEL), C(140, COPY), C(146, PEXPIRETIME), C(150, FLUSHDB),
	C(152, TTL), C(169, HEAT), C(195, CLIENT), C(217, EXISTS), C(219, RENAMENX),
	C(227, SETRANGE), C(231, GETBIT), C(237, RENAME), C(257, FUNCTION), C(263, INCRBY),
	C(273, DISCARD), C(280, CONFIG), C(286, BITPOS), C(308, LATENCY), C(310, SELECT),
	C(315, WATCH), C(318, SHUTDOWN), C(322, GETEX), C(334, MSETNX), C(342, UNLINK),
	C(347, HELLO), C(349, EXPIREAT), C(357, SLOWLOG), C(361, EXEC), C(370, SCAN),
	C(371, RANDOMKEY), C(381, DECRBY), C(382, PING), C(387, SUBSTR), C(401, AUTH),
	C(403, UNWATCH), C(406, MULTI), C(408, COMMAND), C(416, PTTL), C(418, SET), C(432, PSETEX),
	C(439, TOUCH), C(443, SETNX), C(445, GETRANGE), C(449, DEBUG), C(454, HOTKEYS), C(468, LCS),
	C(471, EXPIRE), C(485, PEXPIREAT), C(489, INCR),
};
/* clang-format on */
#undef C

static inline uint64_t load_8(const char *data)
{
	uint64_t word;

	memcpy(&word, data, sizeof(word));
	return le64toh(word);
}

static inline uint64_t load_4(const char *data)
{
	uint32_t word;

	memcpy(&word, data, sizeof(word));
	return le32toh(word);
}

static inline uint64_t load_1(const char *data, size_t at)
{
	return (uint64_t)(unsigned char)data[at] << (8 * at);
}

/* Small ASCII letters to capitals, all eight bytes at once. Adding to the lower seven bits of a
 * byte sets its top bit when they are large enough, and never carries into the next byte. */
static inline uint64_t capitals(uint64_t word)
{
	const uint64_t each = 0x0101010101010101;
	uint64_t low = word & (0x7f * each);
	uint64_t from_a = low + (0x80 - 'a') * each;
	uint64_t past_z = low + (0x7f - 'z') * each;
	uint64_t small = from_a & ~past_z & ~word & (0x80 * each);

	return word ^ (small >> 2);
}

/* The bytes of a name of 1 to 16 bytes; reads none beyond it. Where two loads overlap they agree,
 * so putting them together with "or" does no harm. */
static inline struct name pack(struct hs_bytes text)
{
	struct name name = {0, 0};
	const char *data = text.data;
	size_t len = text.len;

	if (len >= 8) {
		name.head = load_8(data);
		if (len > 8)
			name.tail = load_8(data + len - 8) >> (8 * (16 - len));
	} else if (len >= 4) {
		name.head = load_4(data) | load_4(data + len - 4) << (8 * (len - 4));
	} else {
		name.head = load_1(data, 0) | load_1(data, len / 2) | load_1(data, len - 1);
	}
	name.head = capitals(name.head);
	name.tail = capitals(name.tail);
	return name;
}

static inline size_t cell_of(struct name name)
{
	uint64_t mixed = (name.head ^ name.tail * 0x9e3779b97f4a7c15) * 0xe1988ad9f06c144b;

	return (size_t)(mixed >> 55) % HS_COMMAND_CELLS;
}

size_t hs_command_cell(struct hs_bytes name)
{
	hs_check(name.len > 0);
	hs_check(name.len <= NAME_BYTES_MAX);
	return cell_of(pack(name));
}

const struct hs_command *hs_command_find(struct hs_bytes name)
{
	struct name wanted;
	size_t cell;

	if (name.len - 1 >= NAME_BYTES_MAX) /* an empty name wraps */
		return NULL;
	if (name.data[name.len - 1] == '\0') /* it would look like the name without it */
		return NULL;
	wanted = pack(name);
	for (cell = cell_of(wanted); cells[cell] != 0; cell = (cell + 1) % HS_COMMAND_CELLS) {
		const char *found = names[cells[cell]];

		if (load_8(found) == wanted.head && load_8(found + 8) == wanted.tail)
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

bool hs_command_blocks(const struct hs_command *command, size_t argc, const struct hs_bytes *argv)
{
	if (!(command->flags & HS_CMD_BLOCKING))
		return false;
	if (strncmp(command->name, "xread", strlen("xread")) != 0)
		return true;
	for (size_t i = 1; i < argc; i++) {
		if (hs_bytes_is_word(argv[i], "block"))
			return true;
		if (hs_bytes_is_word(argv[i], "streams"))
			return false;
	}
	return false;
}
