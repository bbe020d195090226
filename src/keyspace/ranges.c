/* Parts of values: APPEND, STRLEN, GETRANGE (SUBSTR), SETRANGE. */
#include "base/limits.h"
#include "keyspace/internal.h"

static int fail_size(struct hs_run *run)
{
	return hs_run_fail(run, "ERR string exceeds maximum allowed size (proto-max-bulk-len)");
}

/* Extends the value to `len` bytes, the old bytes first, zeros after them, and writes `part` at
 * `offset`. */
static int write_part(struct hs_run *run, struct hs_entry *entry, unsigned flags, size_t len,
		      size_t offset, struct hs_bytes part)
{
	struct hs_attributes attributes = {flags, hs_entry_expiry(entry)};
	struct hs_value_copy copied;
	char *room;
	int err;

	hs_value_copy_init(&copied, hs_entry_value(entry));
	err = hs_entry_reserve(run, entry, attributes, len, &room);
	if (!err) {
		memcpy(room, copied.bytes.data, copied.bytes.len);
		memset(room + copied.bytes.len, 0, len - copied.bytes.len);
		if (part.len)
			memcpy(room + offset, part.data, part.len);
		hs_entry_seal(entry);
		hs_reply_int(run->reply, (int64_t)len);
	}
	hs_value_copy_deinit(&copied);
	return err;
}

int hs_run_append(struct hs_run *run)
{
	struct hs_bytes part = run->argv[2];
	struct hs_entry entry;
	int err = hs_entry_find_string(run, run->argv[1], &entry);

	if (err)
		return err;

	size_t old_len = hs_entry_value(&entry).len;

	if (entry.live && old_len + part.len > HS_BULK_BYTES_MAX)
		return fail_size(run);
	return write_part(run, &entry, entry.live ? HS_RECORD_RAW : 0, old_len + part.len, old_len,
			  part);
}

int hs_run_strlen(struct hs_run *run)
{
	struct hs_entry entry;
	int err = hs_entry_read_string_head(run, run->argv[1], &entry);

	if (!err)
		hs_reply_int(run->reply, (int64_t)hs_entry_value(&entry).len);
	return err;
}

int hs_run_getrange(struct hs_run *run)
{
	struct hs_entry entry;
	int64_t start, end;
	int err = hs_run_integer(run, 2, NULL, &start);

	if (!err)
		err = hs_run_integer(run, 3, NULL, &end);
	if (!err)
		err = hs_entry_read_string_head(run, run->argv[1], &entry);
	if (err)
		return err;

	struct hs_bytes value = hs_entry_value(&entry);
	int64_t len = (int64_t)value.len;
	bool backwards = start < 0 && end < 0 && start > end;

	if (start < 0)
		start = start + len < 0 ? 0 : start + len;
	if (end < 0)
		end = end + len < 0 ? 0 : end + len;
	if (end >= len)
		end = len - 1;
	if (backwards || start > end) {
		hs_reply_bulk(run->reply, (struct hs_bytes){"", 0});
		return 0;
	}
	err = hs_entry_check(run, &entry, (size_t)start, (size_t)end + 1);
	if (!err)
		hs_reply_bulk(run->reply,
			      (struct hs_bytes){value.data + start, (size_t)(end - start + 1)});
	return err;
}

int hs_run_setrange(struct hs_run *run)
{
	struct hs_bytes part = run->argv[3];
	struct hs_entry entry;
	int64_t offset;
	int err = hs_run_integer(run, 2, NULL, &offset);

	if (err)
		return err;
	if (offset < 0)
		return hs_run_fail(run, "ERR offset is out of range");
	err = hs_entry_find_string(run, run->argv[1], &entry);
	if (err)
		return err;

	size_t old_len = hs_entry_value(&entry).len;
	size_t end = (size_t)offset + part.len;

	if (part.len == 0) {
		hs_reply_int(run->reply, (int64_t)old_len);
		return 0;
	}
	if (end > HS_BULK_BYTES_MAX)
		return fail_size(run);
	return write_part(run, &entry, HS_RECORD_RAW, end > old_len ? end : old_len, (size_t)offset,
			  part);
}
