/* The layout of keys and values in a store. Pure; any thread.
 *
 * A physical key, in HS_KV_KEYS:
 *
 *     slot      hash        length   key            member
 *     2 bytes   6 bytes     1 byte   0…250 bytes    (collections, later; a string has none)
 *
 * all big endian, so that a slot is one contiguous range (it can be moved), keys within it come in
 * hash order (SCAN's cursor is slot and hash, and resumes exactly), and a collection's members
 * would lie right behind its head. A key longer than 250 bytes has length 255 and 16 bytes of hash
 * in place of itself; its record holds the whole key.
 *
 * A record:
 *
 *     checksum  type    flags   written  [expiry]     [key length, key]    [parts]  payload
 *     4 bytes   1 byte  1 byte  4 bytes  8 bytes, ms  4 bytes + key bytes           the value
 *
 * little endian, [] when the flags say so. `written` is the wall clock in seconds, for OBJECT
 * IDLETIME. A command on a type or flag that this version does not know replies with an error and
 * changes nothing.
 *
 * The checksum covers everything behind it. Its seed is the first eight bytes of the physical key,
 * so it covers slot and hash, too. A long payload is covered in parts of HS_RECORD_PART_BYTES:
 * [parts] has one checksum for each, and the record's own checksum ends where the payload begins.
 * So a command that needs only the head of a long record, or some bytes of it, does not read the
 * rest. */
#ifndef HS_KEYSPACE_RECORD_H
#define HS_KEYSPACE_RECORD_H

#include "base/bytes.h"
#include "base/check.h"

#include <stdbool.h>
#include <stdint.h>

enum hs_record_type {
	HS_TYPE_STRING = 1,
	HS_TYPE_LIST = 2,
	HS_TYPE_SET = 3,
	HS_TYPE_ZSET = 4,
	HS_TYPE_HASH = 5,
	HS_TYPE_STREAM = 6,
};

enum hs_record_flag {
	HS_RECORD_EXPIRES = 1 << 0,
	HS_RECORD_LONG_KEY = 1 << 1,
	/* For OBJECT ENCODING, where the value alone does not determine what Redis would reply. */
	HS_RECORD_RAW = 1 << 2,	   /* was appended to or written into: "raw" however short */
	HS_RECORD_NO_INT = 1 << 3, /* looks like a number but Redis holds it as text: INCRBYFLOAT */
	HS_RECORD_UNSHARED = 1 << 4, /* a small number that COPY made: OBJECT REFCOUNT says 1 */
	HS_RECORD_PARTS = 1 << 5,    /* set by encode: the payload has checksums of its own */
};

enum { HS_RECORD_PART_BYTES = 1 << 16 };

enum { HS_RECORD_KEY_INLINE_MAX = 250, HS_PHYSICAL_KEY_MAX = 2 + 6 + 1 + 250 };

struct hs_physical_key {
	char data[HS_PHYSICAL_KEY_MAX];
	size_t len;
};

struct hs_record {
	enum hs_record_type type;
	unsigned flags;
	uint32_t written_s;
	int64_t expire_ms;	  /* -1: never */
	struct hs_bytes long_key; /* empty unless HS_RECORD_LONG_KEY */
	struct hs_bytes parts; /* checksums of the payload's parts; empty unless HS_RECORD_PARTS */
	struct hs_bytes payload;
};

void hs_record_physical(struct hs_physical_key *physical, uint64_t seed, uint16_t slot,
			struct hs_bytes key);

/* The client's key of an entry: from its physical key, or from its record when it is long. */
int hs_record_key(struct hs_bytes physical, const struct hs_record *record,
		  struct hs_bytes *key) HS_MUSTCHECK;

/* The seed of a record's checksum: slot and hash of its physical key. */
static inline uint64_t hs_record_seed(const char *physical)
{
	uint64_t prefix;

	memcpy(&prefix, physical, sizeof prefix);
	return prefix;
}

/* Do slot and hash at the front of the physical key match the key? */
bool hs_record_key_fits(struct hs_bytes physical, struct hs_bytes key, uint64_t seed);

/* Splits a record into its fields, which point into `bytes`. Checks no checksum. */
int hs_record_decode(struct hs_bytes bytes, struct hs_record *record) HS_MUSTCHECK;
size_t hs_record_size(const struct hs_record *record); /* bytes when encoded */
/* Writes everything before the payload except the checksums. Returns the place of the payload. */
char *hs_record_encode(const struct hs_record *record, char *room);
/* Writes the checksums of an encoded record whose payload is in place. */
void hs_record_seal(char *bytes, size_t len, uint64_t seed);

/* Is the record's checksum right? It covers the payload unless the record has parts. */
bool hs_record_checksum_fits(struct hs_bytes bytes, uint64_t seed);
/* Are the checksums right of the parts that cover bytes `from` to `to` of the payload? True without
 * parts. */
bool hs_record_parts_checksum_fits(const struct hs_record *record, uint64_t seed, size_t from,
				   size_t to);

#endif
