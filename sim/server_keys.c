/* Records as they lie in a node's map. All nodes of a Cluster share a hash seed, so that a record, with its time to
 * live, can be copied from one node to another. */
#include "sim/server_internal.h"

#include "base/err.h"
#include "base/slot.h"
#include "keyspace/expiry.h"
#include "keyspace/record.h"

static struct hs_bytes physical_of(const struct hs_sim_server *server, uint16_t slot,
				   struct hs_bytes key, struct hs_physical_key *physical)
{
	hs_record_physical(physical, server->cluster->hash_seed, slot, key);
	return (struct hs_bytes){physical->data, physical->len};
}

bool hs_sim_keys_get(struct hs_sim_server *server, uint16_t slot, struct hs_bytes key,
		     struct hs_bytes *record)
{
	struct hs_kv *kv = hs_memkv_kv(server->map);
	struct hs_physical_key physical;

	return kv->calls->get(kv, HS_KV_KEYS, physical_of(server, slot, key, &physical), record) ==
	       0;
}

int64_t hs_sim_record_expiry(struct hs_bytes bytes)
{
	struct hs_record record;

	hs_check(hs_record_decode(bytes, &record) == 0);
	return record.expire_ms;
}

bool hs_sim_keys_value(struct hs_sim_server *server, struct hs_bytes key, struct hs_buf *value)
{
	struct hs_bytes bytes;
	struct hs_record record;

	if (!hs_sim_keys_get(server, hs_slot_of(key), key, &bytes))
		return false;
	hs_check(hs_record_decode(bytes, &record) == 0);
	if (record.expire_ms >= 0 && hs_sim_now_ms(server->cluster) > record.expire_ms)
		return false;
	hs_buf_append_bytes(value, record.payload);
	return true;
}

static void put(struct hs_kv *kv, enum hs_kv_tree tree, struct hs_bytes key, struct hs_bytes value)
{
	char *room;
	int err = kv->calls->put(kv, tree, key, value.len, &room);

	hs_check(err == 0);
	if (value.len > 0)
		memcpy(room, value.data, value.len);
}

void hs_sim_keys_put(struct hs_sim_server *server, uint16_t slot, struct hs_bytes key,
		     struct hs_bytes record)
{
	struct hs_kv *kv = hs_memkv_kv(server->map);
	struct hs_physical_key physical;
	struct hs_bytes at = physical_of(server, slot, key, &physical), old;
	struct hs_expiry_key index;
	int64_t expire_ms;
	int err;

	if (kv->calls->get(kv, HS_KV_KEYS, at, &old) == 0) {
		expire_ms = hs_sim_record_expiry(old);
		if (expire_ms >= 0) {
			hs_expiry_key(&index, expire_ms, &physical);
			err = kv->calls->del(kv, HS_KV_EXPIRES, hs_expiry_bytes(&index));
			hs_check(err == 0);
		}
		if (record.len == 0) {
			err = kv->calls->del(kv, HS_KV_KEYS, at);
			hs_check(err == 0);
		}
	}
	if (record.len == 0)
		return;
	put(kv, HS_KV_KEYS, at, record);
	expire_ms = hs_sim_record_expiry(record);
	if (expire_ms >= 0) {
		hs_expiry_key(&index, expire_ms, &physical);
		put(kv, HS_KV_EXPIRES, hs_expiry_bytes(&index), (struct hs_bytes){0});
	}
}

void hs_sim_keys_shift(struct hs_sim_server *server, struct hs_bytes key, uint16_t from,
		       uint16_t to)
{
	struct hs_physical_key physical;
	struct hs_buf bytes = {0};
	struct hs_bytes record;

	if (!hs_sim_keys_get(server, from, key, &record))
		return;
	hs_buf_append_bytes(&bytes, record);
	hs_sim_keys_put(server, from, key, (struct hs_bytes){0});
	/* The checksum covers the slot. */
	physical_of(server, to, key, &physical);
	hs_record_seal(bytes.data, bytes.len, hs_record_seed(physical.data));
	hs_sim_keys_put(server, to, key, hs_buf_bytes(&bytes));
	hs_buf_deinit(&bytes);
}

void hs_sim_keys_clear(struct hs_sim_server *server)
{
	struct hs_kv *kv = hs_memkv_kv(server->map);
	int err = kv->calls->clear(kv);

	hs_check(err == 0);
}

static size_t count(struct hs_sim_server *server, enum hs_kv_tree tree)
{
	struct hs_kv *kv = hs_memkv_kv(server->map);
	uint64_t entries;
	int err = kv->calls->count(kv, tree, &entries);

	hs_check(err == 0);
	return entries;
}

size_t hs_sim_keys_count(struct hs_sim_server *server)
{
	return count(server, HS_KV_KEYS);
}

size_t hs_sim_keys_count_expiring(struct hs_sim_server *server)
{
	return count(server, HS_KV_EXPIRES);
}

void hs_sim_keys_each(struct hs_sim_server *server, uint16_t first, uint16_t last,
		      void (*visit)(void *context, uint16_t slot, struct hs_bytes key,
				    struct hs_bytes record),
		      void *context)
{
	struct hs_kv *kv = hs_memkv_kv(server->map);
	const char from[2] = {(char)(first >> 8), (char)first};
	struct hs_bytes physical, bytes, key;
	struct hs_record record;
	int err = kv->calls->seek(kv, HS_KV_KEYS, (struct hs_bytes){from, 2}, &physical, &bytes);

	while (err == 0) {
		uint16_t slot = (uint16_t)((unsigned char)physical.data[0] << 8 |
					   (unsigned char)physical.data[1]);

		if (slot > last)
			return;
		hs_check(hs_record_decode(bytes, &record) == 0);
		hs_check(hs_record_key(physical, &record, &key) == 0);
		visit(context, slot, key, bytes);
		err = kv->calls->next(kv, HS_KV_KEYS, &physical, &bytes);
	}
}

struct search {
	size_t number, seen;
	struct hs_buf *key;
	bool found;
};

static void search(void *context, uint16_t slot, struct hs_bytes key, struct hs_bytes record)
{
	struct search *s = context;

	(void)slot, (void)record;
	if (s->seen++ == s->number && s->key) {
		hs_buf_append_bytes(s->key, key);
		s->found = true;
	}
}

size_t hs_sim_keys_count_slot(struct hs_sim_server *server, uint16_t slot)
{
	struct search s = {0};

	if (hs_sim_keys_count(server) > 0)
		hs_sim_keys_each(server, slot, slot, search, &s);
	return s.seen;
}

bool hs_sim_keys_at(struct hs_sim_server *server, uint16_t slot, size_t number, struct hs_buf *key)
{
	struct search s = {.number = number, .key = key};

	hs_sim_keys_each(server, slot, slot, search, &s);
	return s.found;
}
