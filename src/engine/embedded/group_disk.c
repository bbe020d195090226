/* What the committer does when the disk fails.
 *
 * Reads must go on, and none may show less than what was acknowledged. Acknowledged means: in the
 * log, on disk. A store may hold such changes uncommitted (hs_store_postpone_commit). From the first error on
 * nothing is written any more, to no file: the log stays as it is, and a restart replays it. Until
 * then the changes live in the store's open transaction, in memory:
 *
 *     the log fails            the group's own changes are taken back, what was kept stays
 *     a sync fails late        what was kept by the unsynced group is taken back, too
 *     a commit fails           its changes are in the log: they are kept, the transaction made anew
 *     LMDB makes none anew     the store is given up
 *
 * A store that was given up is read from its last commit. Its keys that were changed since cannot be
 * read until a restart: an error says so. No store's failure is an assertion. */

#include "engine/embedded/group.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
	COMMIT_TRIES = 2,      /* LMDB may have met a full disk for a moment */
	COMMIT_EACH_READS = 4, /* readers turned away between two commits make a store eager */
	EAGER_US = 100 * 1000, /* for so long */
};

void hs_group_fail(struct hs_group *group, const char *format, ...)
{
	va_list args;

	if (group->failed)
		return;
	group->failed = true;
	va_start(args, format);
	vsnprintf(group->failure, sizeof group->failure, format, args);
	va_end(args);
	atomic_store(&group->last_error, group->failure);
	hs_log(group->host->log, HS_LOG_ERROR,
	       "%s; writes are refused until a restart, reads go on. Every acknowledged write is "
	       "in "
	       "the log: see that '%s' can be written again, then restart",
	       group->failure, group->database->folder);
}

void hs_group_fail_log(struct hs_group *group, const char *verb, int rc)
{
	hs_group_fail(group, "cannot %s '%s': %s", verb, hs_redo_path(&group->database->redo),
		      strerror(-rc));
}

/* From here on the committer reads the store as workers do. */
static void lose(struct hs_group *group, struct hs_store *store)
{
	struct hs_group_part *part = &group->parts[store->id];

	hs_group_fail(group, "cannot write '%s': %s", store->path, hs_store_failure_text(store));
	if (part->given_up)
		return;
	hs_log(group->host->log, HS_LOG_ERROR,
	       "'%s': changes of the last moments are in the log alone; their keys cannot be read "
	       "until a restart",
	       store->path);
	part->given_up = true;
	hs_store_give_up(store);
	hs_store_read_init(&part->read, store);
	part->ks.kv = &part->read.kv;
}

/* Brings the store back to what it keeps. */
static void rollback_part(struct hs_group *group, uint16_t id)
{
	struct hs_group_part *part = &group->parts[id];

	if (part->touched)
		part->rolled_back = true;
	if (part->rolled_back)
		part->ks.changes = part->changes_before;
	if (!part->given_up && hs_store_rollback(&group->database->stores[id]) != 0)
		lose(group, &group->database->stores[id]);
}

void hs_group_await_log(struct hs_group *group)
{
	int rc = group->barrier ? group->barrier(group->barrier_context) : 0;
	uint16_t count = group->sealed_count;

	if (rc == 0)
		return;
	hs_group_fail_log(group, "sync", rc);
	/* Its clients were told that the outcome is unknown. Nobody may read what a restart might
	 * not find. */
	group->sealed_count = 0;
	for (uint16_t i = 0; i < count; i++) {
		hs_store_drop_last_postponed(&group->database->stores[group->sealed[i]]);
		rollback_part(group, group->sealed[i]);
	}
}

void hs_group_check_redirected_reads(struct hs_group *group, struct hs_store *store)
{
	uint32_t redirected_reads =
		atomic_exchange_explicit(&store->redirected_reads, 0, memory_order_relaxed);

	if (redirected_reads >= COMMIT_EACH_READS)
		group->parts[store->id].commit_each_until_us =
			group->host->now(group->host->context).mono_us + EAGER_US;
}

void hs_group_commit_postponed(struct hs_group *group, struct hs_store *store)
{
	hs_group_await_log(group);
	for (int i = 0; i < COMMIT_TRIES; i++) {
		if (group->failed || store->write.postponed.len == 0)
			return;
		if (hs_store_commit(store) == 0) {
			hs_group_check_redirected_reads(group, store);
			return;
		}
		hs_store_explain(store);
		hs_log(group->host->log, HS_LOG_WARN, "cannot commit to '%s': %s", store->path,
		       hs_store_failure_text(store));
		if (hs_store_rollback(store) != 0)
			lose(group, store);
	}
	/* Room was set aside for it, so this is not a full disk. */
	hs_group_fail(group, "cannot write '%s': %s", store->path, hs_store_failure_text(store));
}

void hs_group_rollback(struct hs_group *group, uint16_t id)
{
	struct hs_store *store = &group->database->stores[id];

	hs_group_await_log(group);
	group->parts[id].rolled_back = true;
	rollback_part(group, id);
	/* Or it would be made anew for each operation that is run again and fails. */
	hs_group_commit_postponed(group, store);
}

void hs_group_commit_failed(struct hs_group *group, struct hs_store *store)
{
	hs_group_fail(group, "cannot write '%s': %s", store->path, hs_store_failure_text(store));
	hs_store_postpone_failed_commit(store);
	if (hs_store_rollback(store) != 0)
		lose(group, store);
}

int hs_group_begin_store(struct hs_group *group, uint16_t id)
{
	struct hs_store *store = &group->database->stores[id];
	struct hs_group_part *part = &group->parts[id];

	/* What it keeps is in a transaction that is open already. */
	if (!part->given_up && !store->write.txn && hs_store_begin(store) != 0)
		lose(group, store);
	if (!part->given_up)
		return 0;
	return part->read.open ? 0
			       : hs_store_read_renew(&part->read,
						     atomic_load_explicit(&store->commits,
									  memory_order_relaxed));
}
