/* Commands on the whole store, or on a slot of it: KEYS, SCAN, RANDOMKEY, DBSIZE, FLUSHALL,
 * FLUSHDB, CLUSTER COUNTKEYSINSLOT, CLUSTER GETKEYSINSLOT.
 *
 * SCAN's cursor is the front of a physical key, slot and hash: that of the next key. A key's place
 * never changes, so a scan returns every key that exists from its beginning to its end exactly
 * once, whatever is added or removed meanwhile. (Redis promises at least once.) Keys with the same
 * slot and hash are returned together. */
#include "base/glob.h"
#include "base/limits.h"
#include "base/prng.h"
#include "keyspace/changed.h"
#include "keyspace/expiry.h"
#include "keyspace/internal.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

enum { PREFIX_BYTES = 8 }; /* slot and hash of a physical key */

/* A walk over the keys in order. */
struct walk {
	struct hs_keyspace *ks;
	struct hs_bytes physical;
	struct hs_record record;
	struct hs_bytes key;
	bool live;
};

static uint64_t prefix_of(struct hs_bytes physical)
{
	uint64_t prefix;

	memcpy(&prefix, physical.data, sizeof prefix);
	return be64toh(prefix);
}

/* Reads the entry that seek or next returned. A key with a damaged record is listed: reading it
 * then reports the damage. A key that does not match its hash is damaged itself: it is reported and
 * not listed, because no command could find it by name. */
static int walk_read(struct walk *walk, int err, struct hs_bytes stored)
{
	struct hs_keyspace *ks = walk->ks;
	bool whole;

	if (err)
		return err;
	if (walk->physical.len < PREFIX_BYTES)
		return HS_EIO;
	whole = hs_record_checksum_fits(stored, hs_record_seed(walk->physical.data));
	walk->live = false;
	if (hs_record_decode(stored, &walk->record) != 0) {
		if (whole)
			return 0; /* a type of a newer version: not listed */
		walk->record = (struct hs_record){.type = HS_TYPE_STRING};
	}
	if (hs_record_key(walk->physical, &walk->record, &walk->key) != 0)
		walk->key = (struct hs_bytes){"", 0};
	if (!hs_record_key_fits(walk->physical, walk->key, ks->hash_seed))
		hs_run_damaged(ks, walk->key);
	else
		walk->live = !whole || !hs_expired(ks, walk->record.expire_ms);
	if (!whole)
		walk->record.type = HS_TYPE_STRING;
	return 0;
}

/* Moves to the first entry at or after a cursor. HS_ENOTFOUND at the end. */
static int walk_seek(struct walk *walk, struct hs_keyspace *ks, uint64_t cursor)
{
	uint64_t prefix = htobe64(cursor);
	struct hs_bytes from = {(const char *)&prefix, sizeof prefix}, stored;
	int err;

	walk->ks = ks;
	err = ks->kv->calls->seek(ks->kv, HS_KV_KEYS, from, &walk->physical, &stored);
	return walk_read(walk, err, stored);
}

static int walk_next(struct walk *walk)
{
	struct hs_bytes stored;
	int err = walk->ks->kv->calls->next(walk->ks->kv, HS_KV_KEYS, &walk->physical, &stored);

	return walk_read(walk, err, stored);
}

/* Moves the last `len` bytes of `out` to offset `at`: the header of an array is written last, when
 * its count is known. */
static void move_to_front(struct hs_buf *out, size_t at, size_t len)
{
	char header[64];

	hs_check(len <= sizeof header);
	memcpy(header, out->data + out->len - len, len);
	memmove(out->data + at + len, out->data + at, out->len - len - at);
	memcpy(out->data + at, header, len);
}

static bool is_star(struct hs_bytes pattern)
{
	return pattern.len == 1 && pattern.data[0] == '*';
}

int hs_run_keys(struct hs_run *run)
{
	struct hs_buf *out = run->reply->out;
	struct hs_bytes pattern = run->argv[1];
	bool all = is_star(pattern);
	size_t count = 0, end;
	struct walk walk;
	int err = walk_seek(&walk, run->ks, 0);

	for (; !err; err = walk_next(&walk)) {
		if (!walk.live || !(all || hs_glob_match(pattern, walk.key, false)))
			continue;
		hs_reply_bulk(run->reply, walk.key);
		count++;
	}
	if (err != HS_ENOTFOUND)
		return err;
	end = out->len;
	hs_reply_array(run->reply, count);
	move_to_front(out, run->reply_start, out->len - end);
	return 0;
}

/* Counts, and with `names` replies, up to `most` live keys of the slot: they are contiguous. */
static int walk_slot(struct hs_run *run, int64_t most, bool names, int64_t *count)
{
	struct walk walk;
	int err = walk_seek(&walk, run->ks, (uint64_t)run->slot << 48);

	*count = 0;
	for (; !err && *count < most; err = walk_next(&walk)) {
		if (prefix_of(walk.physical) >> 48 != run->slot)
			break;
		if (!walk.live)
			continue;
		if (names)
			hs_reply_bulk(run->reply, walk.key);
		++*count;
	}
	return err == HS_ENOTFOUND ? 0 : err;
}

int hs_run_countkeysinslot(struct hs_run *run)
{
	int64_t count;
	int err = walk_slot(run, INT64_MAX, false, &count);

	if (!err)
		hs_reply_int(run->reply, count);
	return err;
}

int hs_run_getkeysinslot(struct hs_run *run)
{
	struct hs_buf *out = run->reply->out;
	int64_t most, count;
	size_t end;
	int err = hs_run_integer(run, 3, NULL, &most);

	if (!err)
		err = walk_slot(run, most, true, &count);
	if (err)
		return err;
	end = out->len;
	hs_reply_array(run->reply, (size_t)count);
	move_to_front(out, run->reply_start, out->len - end);
	return 0;
}

struct scan {
	uint64_t cursor;
	int64_t count;
	struct hs_bytes pattern;
	struct hs_bytes type;
	bool has_pattern, has_type;
};

/* Accepts what strtoul accepts: a sign, leading zeros, even an empty text. */
bool hs_keyspace_parse_cursor(struct hs_bytes text, uint64_t *cursor)
{
	char copy[64], *end;
	size_t len = strnlen(text.data ? text.data : "", text.len);

	if (len >= sizeof copy)
		return false;
	if (len)
		memcpy(copy, text.data, len);
	copy[len] = '\0';
	errno = 0;
	*cursor = strtoul(copy, &end, 10);
	return !isspace((unsigned char)copy[0]) && *end == '\0' && errno != ERANGE;
}

static int parse_scan(struct hs_run *run, struct scan *scan)
{
	*scan = (struct scan){.count = 10};
	if (!hs_keyspace_parse_cursor(run->argv[1], &scan->cursor))
		return hs_run_fail(run, "ERR invalid cursor");
	for (size_t i = 2; i < run->argc; i += 2) {
		if (i + 1 == run->argc)
			return hs_run_fail_syntax(run);
		if (hs_run_word(run, i, "COUNT")) {
			int err = hs_run_integer(run, i + 1, NULL, &scan->count);

			if (err)
				return err;
			if (scan->count < 1)
				return hs_run_fail_syntax(run);
		} else if (hs_run_word(run, i, "MATCH")) {
			scan->pattern = run->argv[i + 1];
			scan->has_pattern = !is_star(scan->pattern);
		} else if (hs_run_word(run, i, "TYPE")) {
			scan->type = run->argv[i + 1];
			scan->has_type = true;
		} else {
			return hs_run_fail_syntax(run);
		}
	}
	return 0;
}

static bool scan_wants(const struct scan *scan, const struct walk *walk)
{
	if (!walk->live)
		return false;
	if (scan->has_pattern && !hs_glob_match(scan->pattern, walk->key, false))
		return false;
	return !scan->has_type ||
	       hs_bytes_is_word(scan->type, hs_record_type_name(walk->record.type));
}

int hs_run_scan(struct hs_run *run)
{
	struct hs_buf *out = run->reply->out;
	struct scan scan;
	struct walk walk;
	uint64_t last = 0;
	size_t count = 0, end;
	int err = parse_scan(run, &scan);

	if (err)
		return err;
	err = walk_seek(&walk, run->ks, scan.cursor);
	for (int64_t seen = 0; !err; seen++) {
		if (seen >= scan.count && prefix_of(walk.physical) != last)
			break;
		last = prefix_of(walk.physical);
		if (scan_wants(&scan, &walk)) {
			hs_reply_bulk(run->reply, walk.key);
			count++;
		}
		err = walk_next(&walk);
	}
	if (err && err != HS_ENOTFOUND)
		return err;
	end = out->len;
	hs_reply_array(run->reply, 2);
	hs_reply_bulk_int(run->reply, err ? 0 : (int64_t)prefix_of(walk.physical));
	hs_reply_array(run->reply, count);
	move_to_front(out, run->reply_start, out->len - end);
	return 0;
}

/* Finds the last slot with a key by binary search: the store cannot be read backwards. */
static int last_slot(struct hs_keyspace *ks, uint64_t first, uint64_t *last)
{
	uint64_t low = first, high = HS_SLOTS - 1; /* a key is at or after low, none after high */
	struct walk walk;

	while (low < high) {
		uint64_t middle = low + (high - low + 1) / 2;
		int err = walk_seek(&walk, ks, middle << 48);

		if (err && err != HS_ENOTFOUND)
			return err;
		if (err)
			high = middle - 1;
		else
			low = prefix_of(walk.physical) >> 48;
	}
	*last = low;
	return 0;
}

/* Moves to a random key. In a small store every key is equally likely. In a large one it is the key
 * after a random point, and then up to 15 further: hashes are uniform, so this is close to uniform. */
static int seek_random(struct walk *walk, struct hs_keyspace *ks, uint64_t entries)
{
	enum { SMALL = 64, FURTHER = 16 };
	uint64_t steps = hs_prng_below(ks->prng, entries < SMALL ? entries : FURTHER);
	int err = walk_seek(walk, ks, 0);

	if (!err && entries >= SMALL) {
		uint64_t first = prefix_of(walk->physical) >> 48, last = first;
		uint64_t at;

		err = last_slot(ks, first, &last);
		if (err)
			return err;
		at = (first << 48) + hs_prng_below(ks->prng, (last - first + 1) << 48);
		err = walk_seek(walk, ks, at);
	}
	while (!err && steps--)
		err = walk_next(walk);
	return err;
}

int hs_run_randomkey(struct hs_run *run)
{
	struct hs_keyspace *ks = run->ks;
	struct walk walk;
	uint64_t entries;
	int err = ks->kv->calls->count(ks->kv, HS_KV_KEYS, &entries);

	if (err)
		return err;
	if (entries == 0) {
		hs_reply_null(run->reply);
		return 0;
	}
	/* Goes on to the first live key, once around the store. */
	err = seek_random(&walk, ks, entries);
	for (uint64_t tried = 0; tried <= entries; tried++) {
		if (err == HS_ENOTFOUND)
			err = walk_seek(&walk, ks, 0);
		if (err)
			break;
		if (walk.live) {
			hs_reply_bulk(run->reply, walk.key);
			return 0;
		}
		err = walk_next(&walk);
	}
	if (err && err != HS_ENOTFOUND)
		return err;
	hs_reply_null(run->reply);
	return 0;
}

/* Expired keys are not counted, also before the sweep removes them. */
int hs_run_dbsize(struct hs_run *run)
{
	struct hs_keyspace *ks = run->ks;
	const struct hs_kv_calls *calls = ks->kv->calls;
	struct hs_bytes index, nothing;
	uint64_t entries, expired = 0;
	int err = calls->count(ks->kv, HS_KV_KEYS, &entries);

	if (err)
		return err;
	err = calls->seek(ks->kv, HS_KV_EXPIRES, HS_LIT("\0"), &index, &nothing);
	while (!err && index.len > HS_EXPIRY_TIME_BYTES && hs_expired(ks, hs_expiry_time(index))) {
		expired++;
		err = calls->next(ks->kv, HS_KV_EXPIRES, &index, &nothing);
	}
	if (err && err != HS_ENOTFOUND)
		return err;
	hs_reply_int(run->reply, (int64_t)(entries > expired ? entries - expired : 0));
	return 0;
}

/* FLUSHALL, FLUSHDB [ASYNC | SYNC]: emptying is fast, so ASYNC makes no difference. */
int hs_run_flush(struct hs_run *run)
{
	struct hs_keyspace *ks = run->ks;
	uint64_t entries;
	int err;

	if (run->argc > 2 ||
	    (run->argc == 2 && !hs_run_word(run, 1, "ASYNC") && !hs_run_word(run, 1, "SYNC")))
		return hs_run_fail_syntax(run);
	err = ks->kv->calls->count(ks->kv, HS_KV_KEYS, &entries);
	if (err)
		return err;
	if (ks->watch)
		hs_watch_touch_all(ks->watch, ks);
	if (ks->changed)
		hs_changed_add_all(ks->changed);
	err = ks->kv->calls->clear(ks->kv);
	if (err)
		return err;
	ks->changes += entries;
	hs_reply_ok(run->reply);
	return 0;
}
