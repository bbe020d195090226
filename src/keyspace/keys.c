/* Commands on keys of any type: DEL, UNLINK, EXISTS, TOUCH, TYPE, RENAME, RENAMENX, COPY. */
#include "keyspace/internal.h"

#include <limits.h>

/* DEL, UNLINK. */
int hs_run_del(struct hs_run *run)
{
	int64_t removed = 0;

	for (size_t i = 1; i < run->argc; i++) {
		struct hs_entry entry;
		int err = hs_entry_find_to_replace(run, hs_run_slot(run, run->argv[i]),
						   run->argv[i], &entry);

		if (!err && entry.live) {
			err = hs_entry_remove(run, &entry);
			removed++;
		}
		if (err)
			return err;
	}
	hs_reply_int(run->reply, removed);
	return 0;
}

/* EXISTS, TOUCH: a key named twice counts twice. */
int hs_run_exists(struct hs_run *run)
{
	int64_t found = 0;

	for (size_t i = 1; i < run->argc; i++) {
		struct hs_entry entry;
		int err = hs_entry_read_head(run, hs_run_slot(run, run->argv[i]), run->argv[i],
					     &entry);

		if (err)
			return err;
		found += entry.live;
	}
	hs_reply_int(run->reply, found);
	return 0;
}

int hs_run_type(struct hs_run *run)
{
	struct hs_entry entry;
	int err = hs_entry_read_head(run, run->slot, run->argv[1], &entry);

	if (!err)
		hs_reply_status(run->reply,
				entry.live ? hs_record_type_name(entry.record.type) : "none");
	return err;
}

/* Makes `to` a copy of `from`: value and expiry, with `flags`. Both were looked up in this
 * transaction. */
static int duplicate(struct hs_run *run, const struct hs_entry *from, struct hs_entry *to,
		     unsigned flags)
{
	struct hs_value_copy copied;
	int err;

	if (from->record.type != HS_TYPE_STRING)
		return hs_run_fail_type(run);
	hs_value_copy_init(&copied, from->record.payload);
	err = hs_entry_put(run, to, (struct hs_attributes){flags, from->record.expire_ms},
			   copied.bytes);
	hs_value_copy_deinit(&copied);
	return err;
}

/* RENAME, RENAMENX. */
int hs_run_rename(struct hs_run *run)
{
	bool only_new = run->command->id == HS_CMD_ID_RENAMENX;
	struct hs_entry from, to;
	int err = hs_entry_find(run, run->slot, run->argv[1], &from);

	if (!err && !from.live)
		err = hs_run_fail(run, "ERR no such key");
	if (!err)
		err = hs_entry_find_head(run, run->slot, run->argv[2], &to);
	if (err)
		return err;
	if (only_new && to.live) {
		hs_reply_int(run->reply, 0);
		return 0;
	}
	if (!hs_bytes_equal(run->argv[1], run->argv[2])) {
		err = duplicate(run, &from, &to, hs_entry_flags(&from));
		if (!err)
			err = hs_entry_remove(run, &from);
		if (err)
			return err;
	}
	if (only_new)
		hs_reply_int(run->reply, 1);
	else
		hs_reply_ok(run->reply);
	return 0;
}

static int parse_copy(struct hs_run *run, bool *replace)
{
	*replace = false;
	for (size_t i = 3; i < run->argc; i++) {
		int64_t db;
		int err;

		if (hs_run_word(run, i, "REPLACE")) {
			*replace = true;
			continue;
		}
		if (!hs_run_word(run, i, "DB") || i + 1 == run->argc)
			return hs_run_fail_syntax(run);
		i++;
		err = hs_run_integer(run, i, NULL, &db);
		if (err)
			return err;
		if (db < INT_MIN || db > INT_MAX)
			return hs_run_fail(run, "ERR value is out of range, value must between "
						"-2147483648 and 2147483647");
		if (db != 0)
			return hs_run_fail(run, "ERR DB index is out of range");
	}
	return 0;
}

int hs_run_copy(struct hs_run *run)
{
	struct hs_entry from, to;
	unsigned flags;
	bool replace;
	int err = parse_copy(run, &replace);

	if (err)
		return err;
	if (hs_bytes_equal(run->argv[1], run->argv[2]))
		return hs_run_fail(run, "ERR source and destination objects are the same");
	err = hs_entry_read(run, run->slot, run->argv[1], &from);
	if (!err)
		err = hs_entry_find_head(run, run->slot, run->argv[2], &to);
	if (err)
		return err;
	if (!from.live || (to.live && !replace)) {
		hs_reply_int(run->reply, 0);
		return 0;
	}
	flags = hs_entry_flags(&from);
	if (hs_record_encoding(&from.record) == HS_ENCODING_INT)
		flags |= HS_RECORD_UNSHARED;
	err = duplicate(run, &from, &to, flags);
	if (!err)
		hs_reply_int(run->reply, 1);
	return err;
}
