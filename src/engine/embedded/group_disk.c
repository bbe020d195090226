/* How the committer handles a failing disk.
 *
 * Reads must go on, and every read must show all acknowledged changes. Acknowledged means: in the log, on disk. A
 * store may hold such changes uncommitted (hs_store_postpone_commit). After the first error the engine writes to
 * no file: the log stays as it is, and a restart replays the log. Until then the changes live in the store's open
 * transaction, in memory:
 *
 *     the log fails              the group's own changes are rolled back, postponed ones stay
 *     a sync fails later         the unsynced group's postponed changes are dropped, too
 *     a commit fails             its changes are in the log: they are made again in a new transaction
 *     LMDB begins none           the store is given up
 *
 * The operations of the group in progress on a rolled back store run again one by one: writes are refused, reads
 * show the changes that were not taken back. The syncer has answered the unsynced group itself (syncer.h). The
 * committer answers redirected reads from the open transaction.
 *
 * Reads of a store that was given up see its last commit. Keys that were changed after this commit cannot be read
 * until a restart: such a read gets an error. A failing store never fails an assertion. */

#include "engine/embedded/group.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
	COMMIT_TRIES = 2, /* the disk may have been full only for a moment */
	/* with this many redirected reads between two commits, a store commits with every group */
	COMMIT_EACH_READS = 4,
	EAGER_US = 100 * 1000, /* the store commits with every group for this time */
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
	       "the log: make '%s' writable again, then restart",
	       group->failure, group->database->folder);
}

void hs_group_fail_log(struct hs_group *group, const char *verb, int rc)
{
	hs_group_fail(group, "cannot %s '%s': %s", verb, hs_redo_path(&group->database->redo),
		      strerror(-rc));
}

/* Gives a store up: from this call on the committer reads the store from a snapshot, like a worker. */
static void lose(struct hs_group *group, struct hs_store *store)
{
	struct hs_group_part *part = &group->parts[store->id];

	hs_group_fail(group, "cannot write '%s': %s", store->path, hs_store_failure_text(store));
	if (part->given_up)
		return;
	hs_log(group->host->log, HS_LOG_ERROR,
	       "'%s': the newest changes are only in the log; their keys cannot be read until a "
	       "restart",
	       store->path);
	part->given_up = true;
	hs_store_give_up(store);
	hs_store_read_init(&part->read, store);
	part->ks.kv = &part->read.kv;
}

/* Rolls the store back to its last commit and the postponed changes. */
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
	/* The clients of the unsynced group got the error "outcome unknown". No read may show the group's changes,
	 * because a restart may not find them. */
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
	/* The disk has room reserved for this commit, so it is not just full. */
	hs_group_fail(group, "cannot write '%s': %s", store->path, hs_store_failure_text(store));
}

void hs_group_rollback(struct hs_group *group, uint16_t id)
{
	struct hs_store *store = &group->database->stores[id];

	hs_group_await_log(group);
	group->parts[id].rolled_back = true;
	rollback_part(group, id);
	/* Commits the postponed changes at once. Otherwise each rollback of a failing operation would make all of
	 * these changes again. */
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

	/* If the store has postponed changes, its transaction is already open. */
	if (!part->given_up && !store->write.txn && hs_store_begin(store) != 0)
		lose(group, store);
	if (!part->given_up)
		return 0;
	return part->read.open ? 0
			       : hs_store_read_renew(&part->read,
						     atomic_load_explicit(&store->commits,
									  memory_order_relaxed));
}
