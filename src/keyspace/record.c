#include "keyspace/record.h"

#include "base/crc32c.h"
#include "base/err.h"
#include "base/hash.h"

#include <endian.h>

enum {
	PREFIX_BYTES = 2 + 6 + 1, /* of a physical key: slot, hash, length */
	LONG_MARK = 255,	  /* a length no inline key has */
	LONG_HASH_BYTES = 16,
	SUM_BYTES = 4,
	HEADER_BYTES = SUM_BYTES + 1 + 1 + 4, /* of a record: checksum, type, flags, written */
	EXPIRY_BYTES = 8,
	KEY_LENGTH_BYTES = 4,
	FLAGS_KNOWN = HS_RECORD_EXPIRES | HS_RECORD_LONG_KEY | HS_RECORD_RAW | HS_RECORD_NO_INT |
		      HS_RECORD_UNSHARED | HS_RECORD_PARTS,
};

_Static_assert(PREFIX_BYTES + LONG_HASH_BYTES <= (int)HS_PHYSICAL_KEY_MAX,
	       "a long key's hash fits");
_Static_assert((int)HS_RECORD_KEY_INLINE_MAX < (int)LONG_MARK, "the mark is no length");

void hs_record_physical(struct hs_physical_key *physical, uint64_t seed, uint16_t slot,
			struct hs_bytes key)
{
	/* One big endian word: the slot, then the upper 48 bits of the hash. */
	uint64_t prefix = htobe64((uint64_t)slot << 48 | hs_hash(key, seed) >> 16);

	memcpy(physical->data, &prefix, sizeof prefix);
	if (__builtin_expect(key.len <= HS_RECORD_KEY_INLINE_MAX, 1)) {
		physical->data[8] = (char)key.len;
		if (key.len)
			memcpy(physical->data + PREFIX_BYTES, key.data, key.len);
		physical->len = PREFIX_BYTES + key.len;
		return;
	}

	XXH128_canonical_t hash;

	XXH128_canonicalFromHash(&hash, XXH3_128bits_withSeed(key.data, key.len, seed));
	physical->data[8] = (char)LONG_MARK;
	memcpy(physical->data + PREFIX_BYTES, hash.digest, LONG_HASH_BYTES);
	physical->len = PREFIX_BYTES + LONG_HASH_BYTES;
}

int hs_record_key(struct hs_bytes physical, const struct hs_record *record, struct hs_bytes *key)
{
	if (physical.len < PREFIX_BYTES)
		return HS_ECORRUPT;

	size_t len = (unsigned char)physical.data[8];

	if (len == LONG_MARK) {
		if (!(record->flags & HS_RECORD_LONG_KEY))
			return HS_ECORRUPT;
		*key = record->long_key;
		return 0;
	}
	if (len > HS_RECORD_KEY_INLINE_MAX || physical.len < PREFIX_BYTES + len)
		return HS_ECORRUPT;
	*key = (struct hs_bytes){physical.data + PREFIX_BYTES, len};
	return 0;
}

bool hs_record_key_fits(struct hs_bytes physical, struct hs_bytes key, uint64_t seed)
{
	struct hs_physical_key again;
	uint16_t slot =
		(uint16_t)((unsigned char)physical.data[0] << 8 | (unsigned char)physical.data[1]);

	hs_record_physical(&again, seed, slot, key);
	return hs_bytes_equal(physical, (struct hs_bytes){again.data, again.len});
}

/* The number of parts: parts_of from the length of the payload, parts_within from the length of
 * payload and part checksums together. */
static size_t parts_of(size_t payload_bytes)
{
	return (payload_bytes + HS_RECORD_PART_BYTES - 1) / HS_RECORD_PART_BYTES;
}

static size_t parts_within(size_t bytes)
{
	const size_t each = HS_RECORD_PART_BYTES + SUM_BYTES;

	return (bytes + each - 1) / each;
}

int hs_record_decode(struct hs_bytes bytes, struct hs_record *record)
{
	const char *at = bytes.data, *end = bytes.data + bytes.len;
	uint32_t word;
	uint64_t expiry;

	if (__builtin_expect(bytes.len < HEADER_BYTES, 0))
		return HS_ECORRUPT;
	record->type = (enum hs_record_type)(unsigned char)at[SUM_BYTES];
	record->flags = (unsigned char)at[SUM_BYTES + 1];
	if (__builtin_expect(record->type < HS_TYPE_STRING || record->type > HS_TYPE_STREAM, 0))
		return HS_EVERSION;
	if (__builtin_expect(record->flags & ~(unsigned)FLAGS_KNOWN, 0))
		return HS_EVERSION;
	memcpy(&word, at + SUM_BYTES + 2, sizeof word);
	record->written_s = le32toh(word);
	at += HEADER_BYTES;
	record->expire_ms = -1;
	if (record->flags & HS_RECORD_EXPIRES) {
		if (end - at < EXPIRY_BYTES)
			return HS_ECORRUPT;
		memcpy(&expiry, at, sizeof expiry);
		record->expire_ms = (int64_t)le64toh(expiry);
		at += EXPIRY_BYTES;
	}
	record->long_key = (struct hs_bytes){NULL, 0};
	if (__builtin_expect(record->flags & HS_RECORD_LONG_KEY, 0)) {
		if (end - at < KEY_LENGTH_BYTES)
			return HS_ECORRUPT;
		memcpy(&word, at, sizeof word);
		word = le32toh(word);
		at += KEY_LENGTH_BYTES;
		if ((size_t)(end - at) < word)
			return HS_ECORRUPT;
		record->long_key = (struct hs_bytes){at, word};
		at += word;
	}
	record->parts = (struct hs_bytes){NULL, 0};
	if (__builtin_expect(record->flags & HS_RECORD_PARTS, 0)) {
		record->parts = (struct hs_bytes){at, parts_within((size_t)(end - at)) * SUM_BYTES};
		if ((size_t)(end - at) < record->parts.len)
			return HS_ECORRUPT;
		at += record->parts.len;
	}
	record->payload = (struct hs_bytes){at, (size_t)(end - at)};
	return 0;
}

size_t hs_record_size(const struct hs_record *record)
{
	size_t size = HEADER_BYTES + record->payload.len;

	if (record->flags & HS_RECORD_EXPIRES)
		size += EXPIRY_BYTES;
	if (record->flags & HS_RECORD_LONG_KEY)
		size += KEY_LENGTH_BYTES + record->long_key.len;
	if (record->payload.len > HS_RECORD_PART_BYTES)
		size += parts_of(record->payload.len) * SUM_BYTES;
	return size;
}

char *hs_record_encode(const struct hs_record *record, char *room)
{
	uint32_t word = htole32(record->written_s);
	bool parts = record->payload.len > HS_RECORD_PART_BYTES;

	room[SUM_BYTES] = (char)record->type;
	room[SUM_BYTES + 1] = (char)(record->flags | (parts ? HS_RECORD_PARTS : 0));
	memcpy(room + SUM_BYTES + 2, &word, sizeof word);
	room += HEADER_BYTES;
	if (record->flags & HS_RECORD_EXPIRES) {
		uint64_t expiry = htole64((uint64_t)record->expire_ms);

		memcpy(room, &expiry, sizeof expiry);
		room += EXPIRY_BYTES;
	}
	if (record->flags & HS_RECORD_LONG_KEY) {
		word = htole32((uint32_t)record->long_key.len);
		memcpy(room, &word, sizeof word);
		memcpy(room + KEY_LENGTH_BYTES, record->long_key.data, record->long_key.len);
		room += KEY_LENGTH_BYTES + record->long_key.len;
	}
	return parts ? room + parts_of(record->payload.len) * SUM_BYTES : room;
}

static uint32_t sum(const char *bytes, size_t len, uint64_t seed)
{
	uint32_t from = (uint32_t)seed ^ (uint32_t)(seed >> 32);

	return htole32(hs_crc32c(from, bytes, len));
}

/* The checksum of one part. Its number is in the seed, so that swapped parts fail. */
static uint32_t part_sum(const struct hs_record *record, size_t part, uint64_t seed)
{
	size_t at = part * HS_RECORD_PART_BYTES, len = record->payload.len - at;

	if (len > HS_RECORD_PART_BYTES)
		len = HS_RECORD_PART_BYTES;
	return sum(record->payload.data + at, len, seed + part + 1);
}

/* The number of bytes that the record's own checksum covers. */
static size_t covered(struct hs_bytes bytes)
{
	struct hs_record record;

	if (__builtin_expect(!(bytes.data[SUM_BYTES + 1] & HS_RECORD_PARTS), 1))
		return bytes.len - SUM_BYTES;
	if (hs_record_decode(bytes, &record) != 0)
		return bytes.len - SUM_BYTES;
	return bytes.len - SUM_BYTES - record.payload.len;
}

void hs_record_seal(char *bytes, size_t len, uint64_t seed)
{
	struct hs_bytes all = {bytes, len};
	uint32_t word;

	if (__builtin_expect(bytes[SUM_BYTES + 1] & HS_RECORD_PARTS, 0)) {
		struct hs_record record;
		bool decoded = hs_record_decode(all, &record) == 0;

		hs_check(decoded);
		for (size_t part = 0; part * SUM_BYTES < record.parts.len; part++) {
			word = part_sum(&record, part, seed);
			memcpy(bytes + (record.parts.data - bytes) + part * SUM_BYTES, &word,
			       sizeof word);
		}
	}
	word = sum(bytes + SUM_BYTES, covered(all), seed);
	memcpy(bytes, &word, sizeof word);
}

bool hs_record_checksum_fits(struct hs_bytes bytes, uint64_t seed)
{
	uint32_t word;

	if (__builtin_expect(bytes.len < HEADER_BYTES, 0))
		return false;
	memcpy(&word, bytes.data, sizeof word);
	return word == sum(bytes.data + SUM_BYTES, covered(bytes), seed);
}

bool hs_record_parts_checksum_fits(const struct hs_record *record, uint64_t seed, size_t from,
				   size_t to)
{
	size_t part = from / HS_RECORD_PART_BYTES;
	uint32_t word;

	for (; part * SUM_BYTES < record->parts.len && part * HS_RECORD_PART_BYTES < to; part++) {
		memcpy(&word, record->parts.data + part * SUM_BYTES, sizeof word);
		if (word != part_sum(record, part, seed))
			return false;
	}
	return true;
}
