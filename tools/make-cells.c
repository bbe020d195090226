/* Finds a perfect hash of the command names and prints it as command/cells.h, which src/command/table.c includes.
 * make runs this program when a row of the command table changes.
 *
 * A cell is a bucket of the hash table. The program tries multipliers until each name has a cell of its own, and
 * doubles the number of cells if none does. The sequence of multipliers is fixed, so that two builds of one source
 * are equal. If no multiplier is found, or a name is too long, it prints the reason and exits with 1, which stops the
 * build. */
#include "command/command.h"
#include "command/name.h"

#include <stdio.h>
#include <stdlib.h>

enum { BITS_MIN = 9, BITS_MAX = 16, TRIES = 1 << 20 };

static const struct hs_command rows[] = {
#define ROW(identifier, function, its_place, text, count, ...) {.name = (text), __VA_ARGS__},
#include "command/rows.def"
};

static const char *const identifiers[] = {
#define ROW(identifier, ...) #identifier,
#include "command/rows.def"
};

enum { ROWS = sizeof rows / sizeof *rows };

/* Fills `cells` with row numbers, counted from 1; 0: empty. False: two names have the same cell. */
static bool fill(uint16_t *cells, uint64_t multiplier, unsigned bits)
{
	memset(cells, 0, sizeof *cells << bits);
	for (uint16_t i = 0; i < ROWS; i++) {
		size_t at;

		if (rows[i].parent != HS_CMD_ID_NONE)
			continue;
		at = hs_name_cell(hs_name_pack(hs_bytes_of(rows[i].name)), multiplier, bits);
		if (cells[at] != 0)
			return false;
		cells[at] = (uint16_t)(i + 1);
	}
	return true;
}

static void print(const uint16_t *cells, uint64_t multiplier, unsigned bits)
{
	printf("/* Made by tools/make-cells.c from the rows of the command table. */\n"
	       "#define BITS %u\n"
	       "#define MULTIPLIER UINT64_C(0x%016llx)\n\n"
	       "static const struct cell cells[1 << BITS] = {\n",
	       bits, (unsigned long long)multiplier);
	for (size_t at = 0; at < (size_t)1 << bits; at++) {
		struct hs_name name;

		if (cells[at] == 0)
			continue;
		name = hs_name_pack(hs_bytes_of(rows[cells[at] - 1].name));
		printf("\t[%zu] = {{0x%llx, 0x%llx}, %zu, &table[HS_CMD_ID_%s]},\n", at,
		       (unsigned long long)name.head, (unsigned long long)name.tail,
		       strlen(rows[cells[at] - 1].name), identifiers[cells[at] - 1]);
	}
	printf("};\n");
}

int main(void)
{
	static uint16_t cells[1 << BITS_MAX];
	uint64_t multiplier = 0;

	for (size_t i = 0; i < ROWS; i++) {
		if (rows[i].parent != HS_CMD_ID_NONE || strlen(rows[i].name) <= HS_NAME_BYTES_MAX)
			continue;
		fprintf(stderr, "make-cells: %s: the name of a command has at most %d bytes\n",
			rows[i].name, HS_NAME_BYTES_MAX);
		return 1;
	}
	for (unsigned bits = BITS_MIN; bits <= BITS_MAX; bits++) {
		for (int i = 0; i < TRIES; i++) {
			multiplier += UINT64_C(0x9e3779b97f4a7c15);
			if (fill(cells, multiplier, bits)) {
				print(cells, multiplier, bits);
				return 0;
			}
		}
	}
	fprintf(stderr, "make-cells: no multiplier gives each command a cell of its own\n");
	return 1;
}
