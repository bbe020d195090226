/* Expiry: EXPIRE and its relatives, TTL and its relatives, PERSIST, and the sweep that removes
 * expired keys.
 *
 * A key has expired when the clock is past its time, not when it equals it: Redis's rule for
 * reading. EXPIRE and GETEX with a time that is not ahead of the clock remove the key at once:
 * Redis's rule for writing. (SET with such a time writes the record as it is.) Redis has the same
 * difference of one millisecond between the two. */
#include "keyspace/changed.h"
#include "keyspace/expiry.h"
#include "keyspace/internal.h"

int hs_expire_argument(struct hs_run *run, size_t index, bool seconds, bool absolute,
		       int64_t *expire_ms)
{
	int64_t time;
	int err = hs_run_integer(run, index, NULL, &time);

	if (err)
		return err;
	if (time <= 0 || (seconds && time > INT64_MAX / 1000))
		return hs_run_fail_expire(run);
	if (seconds)
		time *= 1000;
	if (!absolute && __builtin_add_overflow(time, run->ks->now_ms, &time))
		return hs_run_fail_expire(run);
	*expire_ms = time;
	return 0;
}

enum condition {
	CONDITION_NX = 1 << 0, /* only if the key has no expiry */
	CONDITION_XX = 1 << 1, /* only if it has one */
	CONDITION_GT = 1 << 2, /* only if the new time is later; no expiry counts as infinite */
	CONDITION_LT = 1 << 3, /* only if the new time is earlier */
};

static int fail_option(struct hs_run *run, struct hs_bytes option)
{
	struct hs_buf text = {0};

	/* Shown as Redis shows it: up to a zero byte, without line breaks at the end. */
	option.len = strnlen(option.data, option.len);
	while (option.len && strchr("\r\n", option.data[option.len - 1]))
		option.len--;
	hs_buf_append(&text, "ERR Unsupported option ", 23);
	hs_buf_append_bytes(&text, option);
	hs_buf_append(&text, "", 1);
	hs_run_fail(run, text.data);
	hs_buf_deinit(&text);
	return HS_ANSWERED;
}

static int parse_conditions(struct hs_run *run, unsigned *conditions)
{
	static const struct {
		const char *word;
		unsigned condition;
	} rows[] = {
		{"NX", CONDITION_NX},
		{"XX", CONDITION_XX},
		{"GT", CONDITION_GT},
		{"LT", CONDITION_LT},
	};

	*conditions = 0;
	for (size_t i = 3; i < run->argc; i++) {
		size_t row = 0;

		while (row < 4 && !hs_run_word(run, i, rows[row].word))
			row++;
		if (row == 4)
			return fail_option(run, run->argv[i]);
		*conditions |= rows[row].condition;
	}
	if (*conditions & CONDITION_NX && *conditions != CONDITION_NX)
		return hs_run_fail(
			run, "ERR NX and XX, GT or LT options at the same time are not compatible");
	if (*conditions & CONDITION_GT && *conditions & CONDITION_LT)
		return hs_run_fail(run,
				   "ERR GT and LT options at the same time are not compatible");
	return 0;
}

static bool conditions_hold(unsigned conditions, int64_t old_ms, int64_t new_ms)
{
	bool expires = old_ms != HS_EXPIRE_NEVER;

	if (conditions & CONDITION_NX && expires)
		return false;
	if (conditions & CONDITION_XX && !expires)
		return false;
	if (conditions & CONDITION_GT && (!expires || new_ms <= old_ms))
		return false;
	if (conditions & CONDITION_LT && expires && new_ms >= old_ms)
		return false;
	return true;
}

/* Parses the time of EXPIRE and its relatives: a time in the past is allowed, an overflowing one is
 * an error. */
static int parse_time(struct hs_run *run, int64_t *when_ms)
{
	enum hs_command_id id = run->command->id;
	bool seconds = id == HS_CMD_ID_EXPIRE || id == HS_CMD_ID_EXPIREAT;
	bool relative = id == HS_CMD_ID_EXPIRE || id == HS_CMD_ID_PEXPIRE;
	int err = hs_run_integer(run, 2, NULL, when_ms);

	if (err)
		return err;
	if (seconds && __builtin_mul_overflow(*when_ms, 1000, when_ms))
		return hs_run_fail_expire(run);
	if (relative && __builtin_add_overflow(*when_ms, run->ks->now_ms, when_ms))
		return hs_run_fail_expire(run);
	return 0;
}

int hs_run_expire(struct hs_run *run)
{
	struct hs_entry entry;
	unsigned conditions;
	int64_t when_ms;
	int err = parse_conditions(run, &conditions);

	if (!err)
		err = parse_time(run, &when_ms);
	if (!err)
		err = hs_entry_find(run, run->slot, run->argv[1], &entry);
	if (err)
		return err;
	if (!entry.live || !conditions_hold(conditions, entry.record.expire_ms, when_ms)) {
		hs_reply_int(run->reply, 0);
		return 0;
	}
	if (when_ms <= run->ks->now_ms)
		err = hs_entry_remove(run, &entry);
	else
		err = hs_entry_change(run, &entry,
				      (struct hs_attributes){hs_entry_flags(&entry), when_ms});
	if (!err)
		hs_reply_int(run->reply, 1);
	return err;
}

/* TTL, PTTL, EXPIRETIME, PEXPIRETIME. Reply -2: no such key; -1: no expiry. */
int hs_run_ttl(struct hs_run *run)
{
	enum hs_command_id id = run->command->id;
	bool seconds = id == HS_CMD_ID_TTL || id == HS_CMD_ID_EXPIRETIME;
	bool left = id == HS_CMD_ID_TTL || id == HS_CMD_ID_PTTL;
	struct hs_entry entry;
	int err = hs_entry_read_head(run, run->slot, run->argv[1], &entry);

	if (err)
		return err;

	int64_t ms = hs_entry_expiry(&entry);

	if (!entry.live) {
		hs_reply_int(run->reply, -2);
	} else if (ms == HS_EXPIRE_NEVER) {
		hs_reply_int(run->reply, -1);
	} else {
		if (left)
			ms = ms > run->ks->now_ms ? ms - run->ks->now_ms : 0;
		/* Rounds to the nearest second; adding 500 first would overflow for the largest
		 * times. */
		hs_reply_int(run->reply, seconds ? ms / 1000 + (ms % 1000 >= 500) : ms);
	}
	return 0;
}

int hs_run_persist(struct hs_run *run)
{
	struct hs_entry entry;
	int err = hs_entry_find(run, run->slot, run->argv[1], &entry);

	if (err)
		return err;

	bool expires = hs_entry_expiry(&entry) != HS_EXPIRE_NEVER;

	if (expires)
		err = hs_entry_change(
			run, &entry,
			(struct hs_attributes){hs_entry_flags(&entry), HS_EXPIRE_NEVER});
	if (!err)
		hs_reply_int(run->reply, expires);
	return err;
}

/* Removes one expired key and its entry in HS_KV_EXPIRES. If the record does not match the entry,
 * only the entry goes. */
static int sweep_one(struct hs_keyspace *ks, const struct hs_expiry_key *index)
{
	const struct hs_kv_calls *calls = ks->kv->calls;
	struct hs_bytes physical = {index->data + HS_EXPIRY_TIME_BYTES,
				    index->len - HS_EXPIRY_TIME_BYTES};
	struct hs_bytes stored, key;
	struct hs_record record;
	struct hs_value_copy copied;
	uint16_t slot =
		(uint16_t)((unsigned char)physical.data[0] << 8 | (unsigned char)physical.data[1]);
	int err = calls->get(ks->kv, HS_KV_KEYS, physical, &stored);
	bool agrees = !err && hs_record_decode(stored, &record) == 0 &&
		      record.expire_ms == hs_expiry_time(hs_expiry_bytes(index)) &&
		      record.type == HS_TYPE_STRING && hs_record_key(physical, &record, &key) == 0;

	if (err && err != HS_ENOTFOUND)
		return err;
	hs_value_copy_init(&copied, agrees ? key : (struct hs_bytes){NULL, 0});
	err = calls->del(ks->kv, HS_KV_EXPIRES, hs_expiry_bytes(index));
	if (!err && agrees)
		err = calls->del(ks->kv, HS_KV_KEYS, physical);
	if (!err && agrees) {
		ks->counts->expired++;
		ks->changes++;
		if (ks->watch)
			hs_watch_touch(ks->watch, ks, slot, copied.bytes);
		if (ks->changed)
			hs_changed_add(ks->changed, copied.bytes);
	}
	hs_value_copy_deinit(&copied);
	return err == HS_ENOTFOUND ? HS_EIO : err;
}

int hs_keyspace_sweep(struct hs_keyspace *ks, size_t limit)
{
	struct hs_expiry_key index;
	struct hs_bytes found, nothing;
	int swept = 0;

	while ((size_t)swept < limit) {
		int err =
			ks->kv->calls->seek(ks->kv, HS_KV_EXPIRES, HS_LIT("\0"), &found, &nothing);

		if (err)
			return err == HS_ENOTFOUND ? swept : err;
		if (found.len <= HS_EXPIRY_TIME_BYTES + 2 || found.len > sizeof index.data)
			return HS_EIO;
		if (!hs_expired(ks, hs_expiry_time(found)))
			return swept;
		memcpy(index.data, found.data, found.len);
		index.len = found.len;
		err = sweep_one(ks, &index);
		if (err)
			return err;
		swept++;
	}
	return swept;
}
