#include "base/crc32c.h"

#include <string.h>

/* The CRC of each half byte, for the reversed polynomial 0x82f63b78. */
static const uint32_t halves[16] = {
	0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3,
	0x61c69362, 0x7198540d, 0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9,
	0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
};

uint32_t hs_crc32c_plain(uint32_t from, const void *bytes, size_t len)
{
	const unsigned char *at = bytes;
	uint32_t crc = ~from;

	for (; len > 0; len--, at++) {
		crc ^= *at;
		crc = crc >> 4 ^ halves[crc & 15];
		crc = crc >> 4 ^ halves[crc & 15];
	}
	return ~crc;
}

#ifdef __x86_64__

static inline uint64_t word_at(const unsigned char *at)
{
	uint64_t word;

	memcpy(&word, at, sizeof word);
	return word;
}

__attribute__((target("sse4.2"))) static uint32_t fast(uint32_t from, const unsigned char *at,
						       size_t len)
{
	uint64_t crc = (uint32_t)~from;

	for (; len >= 32; len -= 32, at += 32) {
		crc = __builtin_ia32_crc32di(crc, word_at(at));
		crc = __builtin_ia32_crc32di(crc, word_at(at + 8));
		crc = __builtin_ia32_crc32di(crc, word_at(at + 16));
		crc = __builtin_ia32_crc32di(crc, word_at(at + 24));
	}
	for (; len >= 8; len -= 8, at += 8)
		crc = __builtin_ia32_crc32di(crc, word_at(at));
	if (len & 4) {
		uint32_t word;

		memcpy(&word, at, sizeof word);
		crc = __builtin_ia32_crc32si((uint32_t)crc, word);
		at += 4;
	}
	if (len & 2) {
		uint16_t word;

		memcpy(&word, at, sizeof word);
		crc = __builtin_ia32_crc32hi((uint32_t)crc, word);
		at += 2;
	}
	if (len & 1)
		crc = __builtin_ia32_crc32qi((uint32_t)crc, *at);
	return ~(uint32_t)crc;
}

uint32_t hs_crc32c(uint32_t from, const void *bytes, size_t len)
{
	if (__builtin_expect(__builtin_cpu_supports("sse4.2"), 1))
		return fast(from, bytes, len);
	return hs_crc32c_plain(from, bytes, len);
}

#else

uint32_t hs_crc32c(uint32_t from, const void *bytes, size_t len)
{
	return hs_crc32c_plain(from, bytes, len);
}

#endif
