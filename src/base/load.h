/* Loads short texts as machine words, first byte lowest, so that a few instructions compare and hash them. */
#ifndef HS_BASE_LOAD_H
#define HS_BASE_LOAD_H

#include <endian.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint64_t hs_load_8(const char *from)
{
	uint64_t word;

	memcpy(&word, from, sizeof word);
	return le64toh(word);
}

static inline uint64_t hs_load_4(const char *from)
{
	uint32_t word;

	memcpy(&word, from, sizeof word);
	return le32toh(word);
}

static inline uint64_t hs_load_1(const char *from, size_t at)
{
	return (uint64_t)(unsigned char)from[at] << (8 * at);
}

/* The first 16 of `len` bytes, padded with zeros; reads no byte beyond `len`. Overlapping loads agree, so "or"
 * joins them. */
static inline void hs_load_16(const char *from, size_t len, uint64_t words[2])
{
	words[0] = 0;
	words[1] = 0;
	if (len >= 8) {
		words[0] = hs_load_8(from);
		if (len >= 16)
			words[1] = hs_load_8(from + 8);
		else if (len > 8)
			words[1] = hs_load_8(from + len - 8) >> (8 * (16 - len));
	} else if (len >= 4) {
		words[0] = hs_load_4(from) | hs_load_4(from + len - 4) << (8 * (len - 4));
	} else if (len > 0) {
		words[0] = hs_load_1(from, 0) | hs_load_1(from, len / 2) | hs_load_1(from, len - 1);
	}
}

#endif
