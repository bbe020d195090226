/* Numbers as Redis reads and writes them. */
#ifndef HS_BASE_NUM_H
#define HS_BASE_NUM_H

#include "base/bytes.h"

#include <stdbool.h>
#include <stdint.h>

enum { HS_NUM_TEXT_MAX = 24 }; /* the longest int64 with sign and terminating zero fits */

/* Strict: an optional '-', no leading zeros or '+', no spaces, the whole text, in range. */
bool hs_num_parse_int(struct hs_bytes text, int64_t *value);
bool hs_num_parse_uint(struct hs_bytes text, uint64_t *value);

/* The byte of two hexadecimal digits in either case; -1: not hexadecimal. */
int hs_num_hex_byte(const char digits[2]);

/* Writes the decimal digits, zero terminated; returns their number. */
size_t hs_num_format_int(int64_t value, char text[HS_NUM_TEXT_MAX]);

struct hs_num_unit {
	const char *name;
	uint64_t factor;
};

/* A whole number followed by a unit: the number times the unit's factor. A NULL name ends the list of units. */
bool hs_num_parse_units(struct hs_bytes text, const struct hs_num_unit *units, uint64_t *value);

/* A size in bytes: "64mb", "1gb", "512k", "100". Units as in redis.conf: k is 1000, kb is 1024. */
bool hs_num_parse_bytes(struct hs_bytes text, uint64_t *value);

#endif
