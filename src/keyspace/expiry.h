/* The keys of HS_KV_EXPIRES: the time when a key expires, then its physical key. They are ordered
 * by time, so the sweep finds due keys at the front. Pure; any thread. */
#ifndef HS_KEYSPACE_EXPIRY_H
#define HS_KEYSPACE_EXPIRY_H

#include "keyspace/kv.h"
#include "keyspace/record.h"

#include <endian.h>

enum { HS_EXPIRY_TIME_BYTES = 8, HS_EXPIRY_KEY_MAX = HS_EXPIRY_TIME_BYTES + HS_PHYSICAL_KEY_MAX };

_Static_assert((int)HS_EXPIRY_KEY_MAX <= (int)HS_KV_KEY_MAX, "an expiry entry fits a store's key");

struct hs_expiry_key {
	char data[HS_EXPIRY_KEY_MAX];
	size_t len;
};

static inline void hs_expiry_key(struct hs_expiry_key *index, int64_t expire_ms,
				 const struct hs_physical_key *physical)
{
	uint64_t time = htobe64((uint64_t)expire_ms);

	memcpy(index->data, &time, sizeof time);
	memcpy(index->data + HS_EXPIRY_TIME_BYTES, physical->data, physical->len);
	index->len = HS_EXPIRY_TIME_BYTES + physical->len;
}

static inline struct hs_bytes hs_expiry_bytes(const struct hs_expiry_key *index)
{
	return (struct hs_bytes){index->data, index->len};
}

/* The time of an entry of at least HS_EXPIRY_TIME_BYTES bytes. */
static inline int64_t hs_expiry_time(struct hs_bytes index)
{
	uint64_t time;

	memcpy(&time, index.data, sizeof time);
	return (int64_t)be64toh(time);
}

#endif
