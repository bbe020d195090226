/* A command's name as two machine words, in capitals: how names are looked up and compared. For
 * command/ only. */
#ifndef HS_COMMAND_NAME_H
#define HS_COMMAND_NAME_H

#include "base/bytes.h"

#include <endian.h>
#include <stdint.h>

enum { HS_NAME_BYTES_MAX = 16 }; /* of a name that fits */

struct hs_name {
	uint64_t head; /* bytes 0-7, the first one lowest; zeros behind the end */
	uint64_t tail; /* bytes 8-15 */
};

static inline uint64_t hs_name_load_8(const char *data)
{
	uint64_t word;

	memcpy(&word, data, sizeof(word));
	return le64toh(word);
}

static inline uint64_t hs_name_load_4(const char *data)
{
	uint32_t word;

	memcpy(&word, data, sizeof(word));
	return le32toh(word);
}

static inline uint64_t hs_name_load_1(const char *data, size_t at)
{
	return (uint64_t)(unsigned char)data[at] << (8 * at);
}

/* Small ASCII letters to capitals, all eight bytes at once. Adding to the lower seven bits of a
 * byte sets its top bit when they are large enough, and never carries into the next byte. */
static inline uint64_t hs_name_capitals(uint64_t word)
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
static inline struct hs_name hs_name_pack(struct hs_bytes text)
{
	struct hs_name name = {0, 0};
	const char *data = text.data;
	size_t len = text.len;

	if (len >= 8) {
		name.head = hs_name_load_8(data);
		if (len > 8)
			name.tail = hs_name_load_8(data + len - 8) >> (8 * (16 - len));
	} else if (len >= 4) {
		name.head = hs_name_load_4(data) | hs_name_load_4(data + len - 4)
							   << (8 * (len - 4));
	} else {
		name.head = hs_name_load_1(data, 0) | hs_name_load_1(data, len / 2) |
			    hs_name_load_1(data, len - 1);
	}
	name.head = hs_name_capitals(name.head);
	name.tail = hs_name_capitals(name.tail);
	return name;
}

/* The cell of a table of 2^bits cells where a name is looked for. */
static inline size_t hs_name_cell(struct hs_name name, uint64_t multiplier, unsigned bits)
{
	uint64_t mixed = (name.head ^ name.tail * 0x9e3779b97f4a7c15) * multiplier;

	return (size_t)(mixed >> (64 - bits));
}

#endif
