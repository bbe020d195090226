/* Replays the log. The records are applied in large transactions: no client reads yet, so the replay need not
 * commit every group, and it writes far fewer pages than the groups did. Applying a record is idempotent. After a
 * crash during a replay the next start begins again from the same checkpoint, whose pages stay pinned all
 * along. */

#include "base/err.h"
#include "base/limits.h"
#include "engine/embedded/database.h"

#include <string.h>

enum { COMMIT_CHANGES = 1 << 17 };

struct replay {
	struct hs_database *database;
	struct hs_fault *fault;
	uint64_t groups, changes;
	uint64_t pending; /* number of changes not yet committed; a large value counts as several */
	uint64_t gaps;	  /* places where records are missing, skipped by a repair */
};

static int store_failed(struct replay *replay, struct hs_store *store, int rc)
{
	return hs_fault_set(replay->fault, rc, "cannot replay the log into '%s': %s", store->path,
			    rc == HS_ECORRUPT ? "damaged record" : hs_store_failure_text(store));
}

static int each_store(struct replay *replay, int (*run)(struct hs_store *store))
{
	for (uint16_t id = 0; id < replay->database->partitions; id++) {
		struct hs_store *store = &replay->database->stores[id];
		int rc = run(store);

		if (rc != 0)
			return store_failed(replay, store, rc);
	}
	replay->pending = 0;
	return 0;
}

static int apply(struct replay *replay, const struct hs_redo_entry *entry)
{
	struct hs_store *store = &replay->database->stores[entry->store];
	int rc = hs_store_apply(store, entry);

	if (rc != 0)
		return store_failed(replay, store, rc);
	replay->changes++;
	replay->pending += 1 + entry->value.len / HS_KIB;
	if (replay->pending < COMMIT_CHANGES)
		return 0;
	rc = each_store(replay, hs_store_commit);
	return rc == 0 ? each_store(replay, hs_store_begin) : rc;
}

/* True: `abort` cancels the changes of `record` to this store. */
static bool aborted(const struct hs_redo_record *abort, const struct hs_redo_record *record,
		    uint16_t store)
{
	uint64_t lsn;

	if (abort->kind != HS_REDO_ABORT || abort->body.len < sizeof lsn)
		return false;
	memcpy(&lsn, abort->body.data, sizeof lsn);
	if (lsn != record->lsn)
		return false;
	for (size_t at = sizeof lsn; at + sizeof store <= abort->body.len; at += sizeof store)
		if (memcmp(abort->body.data + at, &store, sizeof store) == 0)
			return true;
	return false;
}

/* Applies a record. `after`: the next record or NULL. An abort record directly follows the record that it
 * cancels. */
static int apply_record(struct replay *replay, const struct hs_redo_record *record,
			const struct hs_redo_record *after)
{
	struct hs_bytes rest = record->body;
	struct hs_redo_entry entry;
	int more, rc = 0;

	if (record->kind != HS_REDO_GROUP)
		return 0;
	replay->groups++;
	while (rc == 0 && (more = hs_redo_entry_take(&rest, &entry)) != 0) {
		if (more < 0 || entry.store >= replay->database->partitions)
			return hs_fault_set(replay->fault, HS_ECORRUPT,
					    "damaged data: record %llu of the log in '%s'",
					    (unsigned long long)record->lsn,
					    replay->database->folder);
		if (!after || !aborted(after, record, entry.store))
			rc = apply(replay, &entry);
	}
	return rc;
}

/* Reads the next record. `over_gaps`: also a record behind a gap. */
static bool next_record(struct replay *replay, struct hs_redo_reader *reader, bool over_gaps,
			struct hs_redo_record *record)
{
	struct hs_redo_place place;

	if (hs_redo_reader_next(reader, record))
		return true;
	if (!over_gaps || !hs_redo_reader_leap(reader, &place))
		return false;
	replay->gaps++;
	return hs_redo_reader_next(reader, record);
}

int hs_replay(struct hs_database *database, uint64_t *lsn, bool over_gaps, struct hs_fault *fault)
{
	struct replay replay = {.database = database, .fault = fault};
	struct hs_redo_record record, after;
	struct hs_redo_reader reader;
	bool more;
	int rc = hs_redo_reader_open(&reader, &database->redo, *lsn, fault);

	if (rc == 0 && next_record(&replay, &reader, over_gaps, &record)) {
		rc = each_store(&replay, hs_store_begin);
		for (more = true; rc == 0 && more; record = after) {
			more = next_record(&replay, &reader, over_gaps, &after);
			rc = apply_record(&replay, &record, more ? &after : NULL);
		}
		if (rc == 0)
			rc = each_store(&replay, hs_store_commit);
	}
	*lsn = reader.lsn;
	hs_redo_reader_close(&reader);
	if (rc == 0 && replay.groups)
		hs_log(database->log, HS_LOG_INFO,
		       "replayed %llu changes in %llu groups from the log",
		       (unsigned long long)replay.changes, (unsigned long long)replay.groups);
	if (rc == 0 && replay.gaps)
		hs_log(database->log, HS_LOG_WARN,
		       "skipped %llu gaps in the log: the changes in them are lost",
		       (unsigned long long)replay.gaps);
	return rc;
}
