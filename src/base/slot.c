/* CRC16 (XMODEM): polynomial 0x1021, start 0, not reflected. It takes two bytes in each step. The first table
 * advances a byte by one more zero byte than the second, so that two independent lookups replace two dependent
 * ones. Every request computes this once per key. */
#include "base/slot.h"

#include "base/limits.h"

/* A table entry is the xor of one constant for each bit of its byte. Each constant is the previous one shifted
 * left, with the polynomial subtracted when a bit falls out; the first table's constants continue the second's. */
#define ENTRY(byte, a, b, c, d, e, f, g, h)                                                        \
	(uint16_t)(((byte)&1 ? (a) : 0) ^ ((byte)&2 ? (b) : 0) ^ ((byte)&4 ? (c) : 0) ^            \
		   ((byte)&8 ? (d) : 0) ^ ((byte)&16 ? (e) : 0) ^ ((byte)&32 ? (f) : 0) ^          \
		   ((byte)&64 ? (g) : 0) ^ ((byte)&128 ? (h) : 0))
#define FIRST(byte) ENTRY(byte, 0x3331, 0x6662, 0xccc4, 0x89a9, 0x0373, 0x06e6, 0x0dcc, 0x1b98)
#define SECOND(byte) ENTRY(byte, 0x1021, 0x2042, 0x4084, 0x8108, 0x1231, 0x2462, 0x48c4, 0x9188)
#define FOUR(OF, byte) OF(byte), OF((byte) + 1), OF((byte) + 2), OF((byte) + 3)
#define SIXTEEN(OF, byte)                                                                          \
	FOUR(OF, byte), FOUR(OF, (byte) + 4), FOUR(OF, (byte) + 8), FOUR(OF, (byte) + 12)
#define SIXTY_FOUR(OF, byte)                                                                       \
	SIXTEEN(OF, byte), SIXTEEN(OF, (byte) + 16), SIXTEEN(OF, (byte) + 32),                     \
		SIXTEEN(OF, (byte) + 48)
#define ALL(OF) SIXTY_FOUR(OF, 0), SIXTY_FOUR(OF, 64), SIXTY_FOUR(OF, 128), SIXTY_FOUR(OF, 192)

static const uint16_t crc_table[2][256] = {{ALL(FIRST)}, {ALL(SECOND)}};

static uint16_t crc16(const unsigned char *data, size_t len)
{
	unsigned crc = 0;

	for (; len >= 2; data += 2, len -= 2)
		crc = (unsigned)crc_table[0][(crc >> 8) ^ data[0]] ^
		      crc_table[1][(crc & 0xff) ^ data[1]];
	if (len)
		crc = ((crc << 8) & 0xffff) ^ crc_table[1][(crc >> 8) ^ data[0]];
	return (uint16_t)crc;
}

uint16_t hs_slot_of(struct hs_bytes key)
{
	const char *open = key.len ? memchr(key.data, '{', key.len) : NULL;

	if (open) {
		size_t rest = key.len - (size_t)(open + 1 - key.data);
		const char *close = rest ? memchr(open + 1, '}', rest) : NULL;

		if (close && close > open + 1)
			key = (struct hs_bytes){open + 1, (size_t)(close - open - 1)};
	}
	return crc16((const unsigned char *)key.data, key.len) & (HS_SLOTS - 1);
}
