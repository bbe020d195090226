/* A command's name as two machine words, in upper case, for lookup and comparison. Only for
 * command/. Pure. */
#ifndef HS_COMMAND_NAME_H
#define HS_COMMAND_NAME_H

#include "base/bytes.h"
#include "base/load.h"

enum { HS_NAME_BYTES_MAX = 16 }; /* the longest name that fits */

struct hs_name {
	uint64_t head; /* bytes 0-7, the first one in the lowest bits; zeros after the end */
	uint64_t tail; /* bytes 8-15 */
};

/* Converts ASCII letters to upper case, all eight bytes at once. Adding to the lower seven bits of
 * a byte sets its top bit when they are large enough, and never carries into the next byte. */
static inline uint64_t hs_name_capitals(uint64_t word)
{
	const uint64_t each = 0x0101010101010101;
	uint64_t low = word & (0x7f * each);
	uint64_t from_a = low + (0x80 - 'a') * each;
	uint64_t past_z = low + (0x7f - 'z') * each;
	uint64_t small = from_a & ~past_z & ~word & (0x80 * each);

	return word ^ (small >> 2);
}

/* The bytes of a name of 1 to 16 bytes. */
static inline struct hs_name hs_name_pack(struct hs_bytes text)
{
	uint64_t words[2];

	hs_load_16(text.data, text.len, words);
	return (struct hs_name){hs_name_capitals(words[0]), hs_name_capitals(words[1])};
}

/* The cell of a name in a table of 2^bits cells. */
static inline size_t hs_name_cell(struct hs_name name, uint64_t multiplier, unsigned bits)
{
	uint64_t mixed = (name.head ^ name.tail * 0x9e3779b97f4a7c15) * multiplier;

	return (size_t)(mixed >> (64 - bits));
}

#endif
