/* OBJECT: replies what Redis would reply about its representation of a value. */
#include "base/num.h"
#include "keyspace/internal.h"

#include <limits.h>

/* Looks argv[2] up. Replies with null for a missing key. */
static int find_object(struct hs_run *run, struct hs_entry *entry)
{
	int err = hs_entry_read_head(run, run->slot, run->argv[2], entry);

	if (!err && !entry->live) {
		hs_reply_null(run->reply);
		return HS_ANSWERED;
	}
	return err;
}

int hs_run_object_encoding(struct hs_run *run)
{
	static const char *const names[] = {
		[HS_ENCODING_INT] = "int",
		[HS_ENCODING_EMBSTR] = "embstr",
		[HS_ENCODING_RAW] = "raw",
	};
	struct hs_entry entry;
	int err = find_object(run, &entry);

	if (!err)
		hs_reply_bulk_text(run->reply, entry.record.type == HS_TYPE_STRING
						       ? names[hs_record_encoding(&entry.record)]
						       : "unknown");
	return err;
}

int hs_run_object_freq(struct hs_run *run)
{
	struct hs_entry entry;
	int err = find_object(run, &entry);

	if (!err)
		hs_reply_int(run->reply, run->ks->frequency);
	return err;
}

/* Seconds since the key was written: reads are not recorded. */
int hs_run_object_idletime(struct hs_run *run)
{
	struct hs_entry entry;
	int err = find_object(run, &entry);

	if (err)
		return err;

	int64_t idle_s = run->ks->now_ms / 1000 - (int64_t)entry.record.written_s;

	hs_reply_int(run->reply, idle_s > 0 ? idle_s : 0);
	return 0;
}

/* Redis shares one object for each small number and replies with the largest count for it. */
int hs_run_object_refcount(struct hs_run *run)
{
	enum { SHARED_NUMBERS = 10000 };
	struct hs_entry entry;
	int64_t number;
	int err = find_object(run, &entry);

	if (err)
		return err;

	bool shared = entry.record.type == HS_TYPE_STRING &&
		      !(entry.record.flags & HS_RECORD_UNSHARED) &&
		      hs_record_encoding(&entry.record) == HS_ENCODING_INT &&
		      hs_num_parse_int(entry.record.payload, &number) && number >= 0 &&
		      number < SHARED_NUMBERS;

	hs_reply_int(run->reply, shared ? INT_MAX : 1);
	return 0;
}
