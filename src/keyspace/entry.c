/* Keys: looks one up, and changes one together with its expiry, watches and counts.
 *
 * Two trees are updated together here and in the sweep (expire.c). A key with an expiry has one
 * entry in HS_KV_EXPIRES under that time; a command that writes, replaces or removes the key moves
 * or removes that entry in the same transaction. The expiry entry is changed first, the key's
 * record last, because the room that put returns must be filled before the next call to the store.
 *
 * An expired record counts as missing for every command. Readers leave it (they may not write),
 * writers replace it, and the sweep removes the others. */
#include "base/mem.h"
#include "base/num.h"
#include "keyspace/changed.h"
#include "keyspace/expiry.h"
#include "keyspace/internal.h"

const char *hs_run_damaged(struct hs_keyspace *ks, struct hs_bytes key)
{
	ks->damaged = true;
	return hs_bytes_escape(key, ks->damaged_key, sizeof ks->damaged_key);
}

static int fail_record(struct hs_run *run, const struct hs_entry *entry)
{
	const char *key = hs_run_damaged(run->ks, entry->key);

	run->reply->out->len = run->reply_start;
	hs_reply_errorf(run->reply,
			"ERR damaged data: the record of key '%s' in slot %u fails its checksum; "
			"write or delete the key, or restore it from a backup",
			key, (unsigned)entry->slot);
	return HS_ANSWERED;
}

static int fail_version(struct hs_run *run)
{
	return hs_run_fail(run, "ERR the key holds a type that this heatsink does not know");
}

/* Reads the record's bytes. HS_ENOTFOUND when the key has no record. */
static int get(struct hs_keyspace *ks, uint16_t slot, struct hs_bytes key, struct hs_entry *entry,
	       struct hs_bytes *stored)
{
	entry->key = key;
	entry->slot = slot;
	entry->stored = false;
	entry->live = false;
	hs_record_physical(&entry->physical, ks->hash_seed, slot, key);
	return ks->kv->calls->get(ks->kv, HS_KV_KEYS,
				  (struct hs_bytes){entry->physical.data, entry->physical.len},
				  stored);
}

/* The store compares only a hash of a long key: compares the key itself. */
static bool is_other_key(const struct hs_entry *entry)
{
	return __builtin_expect(entry->key.len > HS_RECORD_KEY_INLINE_MAX, 0) &&
	       !hs_bytes_equal(entry->key, entry->record.long_key);
}

int hs_entry_find_head(struct hs_run *run, uint16_t slot, struct hs_bytes key,
		       struct hs_entry *entry)
{
	struct hs_bytes stored;
	int err = get(run->ks, slot, key, entry, &stored);

	if (err)
		return err == HS_ENOTFOUND ? 0 : err;
	if (__builtin_expect(!hs_record_checksum_fits(stored, hs_record_seed(entry->physical.data)),
			     0))
		return fail_record(run, entry);
	err = hs_record_decode(stored, &entry->record);
	if (__builtin_expect(err == HS_EVERSION, 0))
		return fail_version(run);
	if (__builtin_expect(err || is_other_key(entry), 0))
		return fail_record(run, entry);
	entry->stored = true;
	entry->live = !hs_expired(run->ks, entry->record.expire_ms);
	if (__builtin_expect(!entry->live, 0))
		run->ks->met_expired = true;
	return 0;
}

int hs_entry_check(struct hs_run *run, const struct hs_entry *entry, size_t from, size_t to)
{
	if (__builtin_expect(!entry->live || entry->record.parts.len == 0, 1) ||
	    hs_record_parts_checksum_fits(&entry->record, hs_record_seed(entry->physical.data),
					  from, to))
		return 0;
	return fail_record(run, entry);
}

int hs_entry_find(struct hs_run *run, uint16_t slot, struct hs_bytes key, struct hs_entry *entry)
{
	int err = hs_entry_find_head(run, slot, key, entry);

	return err ? err : hs_entry_check(run, entry, 0, SIZE_MAX);
}

int hs_entry_find_to_replace(struct hs_run *run, uint16_t slot, struct hs_bytes key,
			     struct hs_entry *entry)
{
	struct hs_bytes stored;
	int err = get(run->ks, slot, key, entry, &stored);

	if (err)
		return err == HS_ENOTFOUND ? 0 : err;
	err = hs_record_decode(stored, &entry->record);
	entry->stored = true;
	entry->live = !err && !hs_expired(run->ks, entry->record.expire_ms);
	/* A live string needs no checksum, since it is replaced anyway. Anything else might be
	 * damage: then the record counts as a string without expiry. */
	if (__builtin_expect(entry->live && entry->record.type == HS_TYPE_STRING, 1))
		return 0;
	if (!hs_record_checksum_fits(stored, hs_record_seed(entry->physical.data))) {
		entry->record =
			(struct hs_record){.type = HS_TYPE_STRING, .expire_ms = HS_EXPIRE_NEVER};
		entry->live = true;
		return 0;
	}
	return err ? fail_version(run) : 0;
}

static void count_read(struct hs_run *run, const struct hs_entry *entry)
{
	if (entry->live)
		run->ks->counts->hits++;
	else
		run->ks->counts->misses++;
}

int hs_entry_read(struct hs_run *run, uint16_t slot, struct hs_bytes key, struct hs_entry *entry)
{
	int err = hs_entry_find(run, slot, key, entry);

	if (!err)
		count_read(run, entry);
	return err;
}

int hs_entry_read_head(struct hs_run *run, uint16_t slot, struct hs_bytes key,
		       struct hs_entry *entry)
{
	int err = hs_entry_find_head(run, slot, key, entry);

	if (!err)
		count_read(run, entry);
	return err;
}

/* After a search that returned `err`: replies with WRONGTYPE if the key is no string. */
static int a_string(struct hs_run *run, const struct hs_entry *entry, int err)
{
	if (!err && entry->live && entry->record.type != HS_TYPE_STRING)
		return hs_run_fail_type(run);
	return err;
}

int hs_entry_read_string_head(struct hs_run *run, struct hs_bytes key, struct hs_entry *entry)
{
	return a_string(run, entry, hs_entry_read_head(run, run->slot, key, entry));
}

int hs_entry_find_string(struct hs_run *run, struct hs_bytes key, struct hs_entry *entry)
{
	return a_string(run, entry, hs_entry_find(run, run->slot, key, entry));
}

int hs_entry_read_string(struct hs_run *run, struct hs_bytes key, struct hs_entry *entry)
{
	return a_string(run, entry, hs_entry_read(run, run->slot, key, entry));
}

/* Moves the entry in HS_KV_EXPIRES from the old record's time to the new one. */
static int move_expiry(struct hs_keyspace *ks, const struct hs_entry *entry, int64_t expire_ms)
{
	int64_t old_ms = entry->stored ? entry->record.expire_ms : HS_EXPIRE_NEVER;
	struct hs_expiry_key index;
	char *room;
	int err;

	if (old_ms == expire_ms)
		return 0;
	if (old_ms != HS_EXPIRE_NEVER) {
		hs_expiry_key(&index, old_ms, &entry->physical);
		err = ks->kv->calls->del(ks->kv, HS_KV_EXPIRES, hs_expiry_bytes(&index));
		if (err && err != HS_ENOTFOUND)
			return err;
	}
	if (expire_ms == HS_EXPIRE_NEVER)
		return 0;
	hs_expiry_key(&index, expire_ms, &entry->physical);
	return ks->kv->calls->put(ks->kv, HS_KV_EXPIRES, hs_expiry_bytes(&index), 0, &room);
}

/* Touches watches and notes the change: before a write and after a removal, as watch.c needs it. */
static void note_change(struct hs_keyspace *ks, const struct hs_entry *entry)
{
	ks->changes++;
	if (ks->watch)
		hs_watch_touch(ks->watch, ks, entry->slot, entry->key);
	if (ks->changed)
		hs_changed_add(ks->changed, entry->key);
}

/* Writes the record's header; *room is the place of the payload. */
static int write_record(struct hs_keyspace *ks, struct hs_entry *entry,
			struct hs_attributes attributes, enum hs_record_type type, size_t len,
			char **room)
{
	struct hs_record record = {
		.type = type,
		.flags = attributes.flags,
		.written_s = (uint32_t)(ks->now_ms / 1000),
		.expire_ms = attributes.expire_ms,
		.payload = {NULL, len},
	};
	int err = move_expiry(ks, entry, attributes.expire_ms);

	if (err)
		return err;
	if (attributes.expire_ms != HS_EXPIRE_NEVER)
		record.flags |= HS_RECORD_EXPIRES;
	if (entry->key.len > HS_RECORD_KEY_INLINE_MAX) {
		record.flags |= HS_RECORD_LONG_KEY;
		record.long_key = entry->key;
	}
	entry->written_bytes = hs_record_size(&record);
	err = ks->kv->calls->put(ks->kv, HS_KV_KEYS,
				 (struct hs_bytes){entry->physical.data, entry->physical.len},
				 entry->written_bytes, room);
	if (err)
		return err;
	entry->written = *room;
	*room = hs_record_encode(&record, *room);
	if (entry->stored && !entry->live)
		ks->counts->expired++;
	record.payload.data = *room;
	entry->record = record;
	entry->stored = true;
	entry->live = !hs_expired(ks, record.expire_ms);
	return 0;
}

/* This version knows strings only. Of another type it could remove the head alone, and the members
 * would stay. */
static bool is_foreign(const struct hs_entry *entry)
{
	return entry->stored && entry->record.type != HS_TYPE_STRING;
}

int hs_entry_reserve(struct hs_run *run, struct hs_entry *entry, struct hs_attributes attributes,
		     size_t len, char **room)
{
	if (is_foreign(entry))
		return hs_run_fail_type(run);
	note_change(run->ks, entry);
	return write_record(run->ks, entry, attributes, HS_TYPE_STRING, len, room);
}

int hs_entry_put(struct hs_run *run, struct hs_entry *entry, struct hs_attributes attributes,
		 struct hs_bytes value)
{
	char *room = NULL;
	int err = hs_entry_reserve(run, entry, attributes, value.len, &room);

	if (err)
		return err;
	hs_check(room);
	if (value.len)
		memcpy(room, value.data, value.len);
	hs_entry_seal(entry);
	return 0;
}

int hs_entry_change_quietly(struct hs_run *run, struct hs_entry *entry,
			    struct hs_attributes attributes)
{
	struct hs_value_copy copied;
	char *room;
	int err;

	hs_check(entry->live);
	hs_value_copy_init(&copied, entry->record.payload);
	err = write_record(run->ks, entry, attributes, entry->record.type, copied.bytes.len, &room);
	if (!err) {
		if (copied.bytes.len)
			memcpy(room, copied.bytes.data, copied.bytes.len);
		hs_entry_seal(entry);
	}
	hs_value_copy_deinit(&copied);
	return err;
}

int hs_entry_change(struct hs_run *run, struct hs_entry *entry, struct hs_attributes attributes)
{
	note_change(run->ks, entry);
	return hs_entry_change_quietly(run, entry, attributes);
}

int hs_entry_remove(struct hs_run *run, struct hs_entry *entry)
{
	struct hs_keyspace *ks = run->ks;
	int err;

	if (!entry->stored)
		return 0;
	if (is_foreign(entry))
		return hs_run_fail_type(run);
	err = move_expiry(ks, entry, HS_EXPIRE_NEVER);
	if (!err)
		err = ks->kv->calls->del(
			ks->kv, HS_KV_KEYS,
			(struct hs_bytes){entry->physical.data, entry->physical.len});
	if (err)
		return err == HS_ENOTFOUND ? HS_EIO : err;
	if (!entry->live)
		ks->counts->expired++;
	entry->stored = false;
	entry->live = false;
	note_change(ks, entry);
	return 0;
}

const char *hs_record_type_name(enum hs_record_type type)
{
	static const char *const names[] = {
		[HS_TYPE_STRING] = "string", [HS_TYPE_LIST] = "list", [HS_TYPE_SET] = "set",
		[HS_TYPE_ZSET] = "zset",     [HS_TYPE_HASH] = "hash", [HS_TYPE_STREAM] = "stream",
	};

	return names[type];
}

enum hs_encoding hs_record_encoding(const struct hs_record *record)
{
	enum { INT_TEXT_MAX = 20, EMBSTR_MAX = 44 }; /* Redis's limits */
	int64_t number;

	if (record->flags & HS_RECORD_RAW || record->payload.len > EMBSTR_MAX)
		return HS_ENCODING_RAW;
	if (!(record->flags & HS_RECORD_NO_INT) && record->payload.len <= INT_TEXT_MAX &&
	    hs_num_parse_int(record->payload, &number))
		return HS_ENCODING_INT;
	return HS_ENCODING_EMBSTR;
}

void hs_value_copy_init(struct hs_value_copy *copied, struct hs_bytes bytes)
{
	copied->heap = NULL;
	copied->bytes = (struct hs_bytes){copied->small, bytes.len};
	if (bytes.len > sizeof copied->small) {
		copied->heap = hs_mem_alloc(bytes.len);
		copied->bytes.data = copied->heap;
	}
	if (bytes.len)
		memcpy(copied->heap ? copied->heap : copied->small, bytes.data, bytes.len);
}

void hs_value_copy_deinit(struct hs_value_copy *copied)
{
	hs_mem_free(&copied->heap);
}
