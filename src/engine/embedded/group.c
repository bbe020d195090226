#include "engine/embedded/group.h"

#include "base/err.h"
#include "base/limits.h"
#include "base/mem.h"
#include "wire/reply.h"

#include <string.h>

enum {
	/* most tries of operations that find no room only because readers hold pages */
	FREE_TRIES = 25,
	FREE_TRY_MS = 20,
	KEEP_US = 2000 * 1000, /* a store postpones a commit for at most this long */
	SYNC_MEAN = 16,	       /* weight of the moving average of sync times */
	SYNC_ODD = 4,	       /* a sync counts as at most this many times the average */
};

#define GROUP_BYTES_MAX (64 * HS_MIB)
/* When this many bytes were written to all stores since the last checkpoint, the next one begins. LMDB cannot
 * reuse the pages of these bytes before a checkpoint, so the files grow by this much beyond their contents. */
#define CHURN_BYTES_MAX HS_GIB
/* If an operation smaller than this finds no room, the disk counts as full. */
#define SMALL_BYTES HS_MIB

void hs_group_init(struct hs_group *group, struct hs_database *database,
		   const struct hs_engine_host *host)
{
	uint16_t count = database->partitions;

	memset(group, 0, sizeof *group);
	group->database = database;
	group->host = host;
	group->parts = hs_mem_zalloc(count * sizeof *group->parts);
	group->touched = hs_mem_zalloc(count * sizeof *group->touched);
	group->sealed = hs_mem_zalloc(count * sizeof *group->sealed);
	group->items = hs_mem_zalloc(HS_GROUP_OPS_MAX * sizeof *group->items);
	group->changed.seed = database->seed;
	hs_prng_init(&group->prng, database->seed ^ database->redo.lsn);
	atomic_store(&group->last_error, "");
	hs_counter_set(&group->counters.checkpoint_wall_s,
		       (uint64_t)(host->now(host->context).wall_us / 1000000));
	for (uint16_t id = 0; id < count; id++) {
		struct hs_keyspace *ks = &group->parts[id].ks;

		ks->kv = &database->stores[id].write.kv;
		ks->hash_seed = database->seed;
		ks->prng = &group->prng;
		ks->watch = hs_watch_create(database->seed);
		ks->counts = &group->counts;
	}
}

void hs_group_deinit(struct hs_group *group)
{
	for (uint16_t id = 0; group->parts && id < group->database->partitions; id++) {
		hs_watch_destroy(&group->parts[id].ks.watch);
		if (group->parts[id].given_up)
			hs_store_read_deinit(&group->parts[id].read);
	}
	hs_mem_free(&group->parts);
	hs_mem_free(&group->touched);
	hs_mem_free(&group->sealed);
	hs_mem_free(&group->items);
	hs_changed_deinit(&group->changed);
}

static void collect(struct hs_group *group, bool wait)
{
	struct hs_checkpoint *checkpoint = &group->database->checkpoint;
	uint64_t done = hs_counter_get(&checkpoint->counters.checkpoints);
	int result;

	hs_checkpoint_collect(checkpoint, wait, &result);
	if (result != 0)
		hs_group_fail(group, "%s", checkpoint->failure);
	else if (hs_counter_get(&checkpoint->counters.checkpoints) != done) {
		struct hs_redo *redo = &group->database->redo;

		hs_redo_set_used(redo, !redo->turn, 0);
		hs_counter_set(
			&group->counters.checkpoint_wall_s,
			(uint64_t)(group->host->now(group->host->context).wall_us / 1000000));
	}
}

static uint64_t now_us(struct hs_group *group)
{
	return group->host->now(group->host->context).mono_us;
}

/* Begins a checkpoint. The previous one is finished, all postponed changes are committed and no group is in
 * progress, so the next log record is the first that the checkpoint does not contain. */
static void begin_checkpoint(struct hs_group *group)
{
	struct hs_database *database = group->database;
	int rc;

	hs_group_await_log(group);
	for (uint16_t id = 0; id < database->partitions; id++)
		hs_group_commit_postponed(group, &database->stores[id]);
	collect(group, true);
	if (group->failed)
		return;
	if (hs_checkpoint_begin(&database->checkpoint, database->redo.lsn) != 0) {
		hs_group_fail(group, "%s", database->checkpoint.failure);
		return;
	}
	rc = hs_redo_turn(&database->redo);
	if (rc != 0)
		hs_group_fail_log(group, "cut", rc);
}

void hs_group_checkpoint(struct hs_group *group)
{
	collect(group, true);
	if (group->failed || group->database->redo.at == 0)
		return;
	begin_checkpoint(group);
	collect(group, true);
}

/* Commits at most one store whose postponed changes are due: a client then waits for one store, not for all.
 * Returns when the next store is due; UINT64_MAX: no store has postponed changes, or the group has failed. */
static uint64_t commit_due(struct hs_group *group)
{
	uint64_t now = now_us(group), next = UINT64_MAX;
	bool committed = false;

	/* After a failure no store is committed: postponed changes stay readable in their open transaction. */
	if (group->failed)
		return next;
	for (uint16_t id = 0; id < group->database->partitions; id++) {
		struct hs_store *store = &group->database->stores[id];
		uint64_t at = group->parts[id].commit_at_us;

		/* If this group has changed the store, `plan` decides about its commit. */
		if (store->write.postponed.len == 0 || store->write.pending.entries > 0)
			continue;
		if (atomic_load_explicit(&store->redirected_reads, memory_order_relaxed))
			at = now;
		if (at <= now && !committed) {
			hs_group_commit_postponed(group, store);
			committed = true;
		} else if (at < next) {
			next = at;
		}
	}
	return next;
}

static void begin_checkpoint_if_due(struct hs_group *group)
{
	struct hs_database *database = group->database;
	uint64_t churn = 0;
	bool due = false;

	collect(group, false);
	if (group->failed || atomic_load(&database->checkpoint.state) != HS_CHECKPOINT_IDLE)
		return;
	for (uint16_t id = 0; id < database->partitions; id++) {
		const struct hs_store *store = &database->stores[id];

		churn += store->churn_bytes;
		due = due || store->churn_bytes > store->headroom_bytes / 4;
	}
	if ((due || churn > CHURN_BYTES_MAX) && database->redo.at > 0)
		begin_checkpoint(group);
}

uint64_t hs_group_maintain(struct hs_group *group)
{
	uint64_t next;

	hs_check(hs_group_empty(group));
	hs_group_await_log(group);
	next = commit_due(group);
	if (!group->failed)
		begin_checkpoint_if_due(group);
	return next;
}

/* Called before a group: makes sure that the log file has room for the group. If the log turned to the other file
 * in the middle of a group, that file's records would be lost. */
static void make_log_room(struct hs_group *group)
{
	struct hs_redo *redo = &group->database->redo;

	if (!group->failed && redo->at > 0 && !hs_redo_fits(redo, redo->file_bytes / 4))
		begin_checkpoint(group);
}

static int touch(struct hs_group *group, uint16_t id)
{
	struct hs_group_part *part = &group->parts[id];
	int rc;

	if (part->touched)
		return 0;
	rc = hs_group_begin_store(group, id);
	if (rc != 0 || part->given_up)
		return rc;
	part->touched = true;
	part->changes_before = part->ks.changes;
	group->touched[group->touched_count++] = id;
	return 0;
}

/* TRACK and UNTRACK concern no store: they switch on and off whether changed keys are noted. */
static void run_track(struct hs_group *group, struct hs_group_item *item)
{
	struct hs_reply reply = {.out = item->op->out, .resp = item->op->resp};

	hs_check(item->op->kind == HS_OP_TRACK || group->trackers > 0);
	group->trackers += item->op->kind == HS_OP_TRACK ? 1 : UINT32_MAX;
	for (uint16_t id = 0; id < group->database->partitions; id++)
		group->parts[id].ks.changed = group->trackers > 0 ? &group->changed : NULL;
	hs_reply_ok(&reply);
	item->ran = true;
}

static bool is_track(const struct hs_op *op)
{
	return op->kind == HS_OP_TRACK || op->kind == HS_OP_UNTRACK;
}

static void run_item(struct hs_group *group, struct hs_group_item *item)
{
	uint16_t id = item->op->partition;
	int rc;

	if (is_track(item->op)) {
		run_track(group, item);
		return;
	}
	group->changed.client = item->op->client;
	if (group->parts[id].rolled_back)
		return;
	rc = touch(group, id);
	if (rc == 0)
		rc = hs_group_run_op(group, item);
	if (rc != 0 && group->parts[id].given_up)
		hs_group_refuse(group, item);
	else if (rc != 0)
		hs_group_rollback(group, id);
	item->ran = !group->parts[id].rolled_back;
}

/* Collects the changes of the group's stores as parts of a record. Returns the number of parts; *bytes: their
 * length. */
static int gather(struct hs_group *group, struct iovec *parts, size_t *bytes)
{
	int count = 0;

	*bytes = 0;
	for (uint16_t i = 0; i < group->touched_count; i++) {
		struct hs_store *store = &group->database->stores[group->touched[i]];
		struct hs_bytes entries;

		if (group->parts[store->id].rolled_back || store->write.pending.entries == 0)
			continue;
		hs_store_note_last_put(store);
		entries = hs_pending_redo_pack(&store->write.pending);
		parts[count++] = (struct iovec){(void *)(uintptr_t)entries.data, entries.len};
		*bytes += entries.len;
	}
	return count;
}

/* Rolls back every store that the group has changed. */
static void rollback_all(struct hs_group *group, int failure)
{
	for (uint16_t i = 0; i < group->touched_count; i++) {
		struct hs_store *store = &group->database->stores[group->touched[i]];

		if (group->parts[store->id].rolled_back || store->write.pending.entries == 0)
			continue;
		store->write.failure = failure;
		hs_group_rollback(group, store->id);
	}
}

/* Writes the log record of the group. False: the group has no changes, or the write failed. */
static bool log_group(struct hs_group *group)
{
	struct hs_redo *redo = &group->database->redo;
	struct iovec parts[HS_PARTITIONS_MAX];
	size_t bytes;
	int count = gather(group, parts, &bytes), rc = 0;

	if (count == 0)
		return false;
	group->log_full = !group->failed && !hs_redo_fits(redo, bytes);
	if (!group->failed && !group->log_full)
		rc = hs_redo_append(redo, HS_REDO_GROUP, parts, count);
	/* A full disk can stop only a record longer than a whole log file, because the blocks of the files are
	 * allocated. The log is then as it was before. */
	if (rc != 0 && hs_store_error(-rc) != HS_EFULL) {
		hs_group_fail_log(group, "write", rc);
		group->outcome_unknown = true;
	}
	if (rc == 0 && !group->failed && !group->log_full)
		return true;
	rollback_all(group, -rc);
	return false;
}

static void sync_group(struct hs_group *group)
{
	int rc = hs_redo_sync(&group->database->redo);

	if (rc == 0)
		return;
	hs_group_fail_log(group, "sync", rc);
	group->outcome_unknown = true;
	rollback_all(group, -rc);
}

/* Writes an abort record: these stores did not commit their changes of the last record. */
static void log_abort(struct hs_group *group, const uint16_t *ids, int count)
{
	struct hs_redo *redo = &group->database->redo;
	uint64_t lsn = redo->lsn - 1;
	struct iovec parts[2] = {{&lsn, sizeof lsn},
				 {(void *)(uintptr_t)ids, (size_t)count * sizeof *ids}};
	int rc;

	/* The file has no room for the abort record. A checkpoint of the committed state has the same effect. */
	if (redo->at > redo->file_bytes || !hs_redo_fits(redo, 0)) {
		hs_group_checkpoint(group);
		group->outcome_unknown = group->failed;
		return;
	}
	rc = hs_redo_append(redo, HS_REDO_ABORT, parts, 2);
	if (rc == 0)
		rc = hs_redo_sync(redo);
	if (rc == 0)
		return;
	hs_group_fail_log(group, "write", rc);
	group->outcome_unknown = true;
}

/* A store could not commit changes that are in the log. Returns false if the disk is full: the store's operations
 * run again, and the log needs an abort record. Returns true after any other failure: the changes count as done,
 * because the log has them on disk, and no more writes follow. */
static bool commit_failed(struct hs_group *group, struct hs_store *store)
{
	hs_store_explain(store);
	hs_log(group->host->log, HS_LOG_WARN, "cannot commit to '%s': %s", store->path,
	       hs_store_failure_text(store));
	if (hs_store_error(store->write.failure) == HS_EFULL) {
		hs_group_rollback(group, store->id);
		return false;
	}
	hs_group_commit_failed(group, store);
	return true;
}

/* True: the store may postpone its commit. *due counts the stores whose time to commit has come: only one of them
 * commits in each group, so that no client waits for all. */
static bool may_postpone(struct hs_group *group, struct hs_store *store, uint64_t now, int *due)
{
	struct hs_group_part *part = &group->parts[store->id];

	bool redirected_reads =
		atomic_load_explicit(&store->redirected_reads, memory_order_relaxed) > 0;

	hs_group_check_redirected_reads(group, store);
	if (redirected_reads || now < part->commit_each_until_us || !hs_store_can_postpone(store))
		return false;
	if (store->write.postponed.len == 0)
		part->commit_at_us = now + KEEP_US;
	else if (now >= part->commit_at_us && (*due)++ == 0)
		return false;
	return true;
}

/* Decides for every changed store whether it commits in this group. True: no store does. */
static bool plan(struct hs_group *group)
{
	uint64_t now = now_us(group);
	bool all_postpone = true;
	int due = 0;

	for (uint16_t i = 0; i < group->touched_count; i++) {
		struct hs_store *store = &group->database->stores[group->touched[i]];
		struct hs_group_part *part = &group->parts[store->id];

		if (part->rolled_back)
			all_postpone = false;
		if (part->rolled_back || store->write.pending.entries == 0)
			continue;
		part->postpone = may_postpone(group, store, now, &due);
		all_postpone = all_postpone && part->postpone;
	}
	return all_postpone;
}

/* Updates the moving average of sync times. A sync that had to wait for another process's sync counts as at most
 * SYNC_ODD times the average. */
static void note_sync(struct hs_group *group, uint64_t us)
{
	uint64_t usual = hs_counter_get(&group->sync_us);

	if (usual == 0)
		usual = us;
	if (us > SYNC_ODD * usual)
		us = SYNC_ODD * usual;
	hs_counter_set(&group->sync_us, (usual * (SYNC_MEAN - 1) + us) / SYNC_MEAN);
}

void hs_group_durable(struct hs_group *group)
{
	uint64_t now = now_us(group);
	uint32_t step = hs_coarse_histogram_bucket(now - group->sealed_begun_us);

	if (group->logged_us)
		note_sync(group, now - group->logged_us);
	for (uint16_t i = 0; i < group->sealed_count; i++)
		hs_counter_add(&group->database->stores[group->sealed[i]].commit_histogram[step],
			       1);
	group->sealed_count = 0;
}

/* Logs and syncs the group, then commits or postpones each store. Stores that fail have `rolled_back` set. True:
 * the caller must sync the log, and all commits are postponed. */
static bool seal(struct hs_group *group, bool may_defer)
{
	uint16_t aborted[HS_PARTITIONS_MAX];
	int aborts = 0;
	bool logged = log_group(group), done = false;
	bool defer = plan(group) && logged && may_defer && group->database->redo.sync;

	group->logged_us = logged ? now_us(group) : 0;
	if (logged && !defer)
		sync_group(group);
	group->sealed_count = 0;
	for (uint16_t i = 0; i < group->touched_count; i++) {
		uint16_t id = group->touched[i];
		struct hs_store *store = &group->database->stores[id];
		struct hs_group_part *part = &group->parts[id];
		uint64_t entries;

		part->touched = false;
		if (part->rolled_back)
			continue;
		if (store->write.pending.entries == 0) {
			if (store->write.postponed.len == 0)
				hs_store_abort(store);
			continue;
		}
		entries = store->write.pending.entries;
		/* After a failure the committer commits no store. But the log has the changes of this group, so
		 * they stay readable in the open transaction. */
		if (part->postpone || group->failed) {
			hs_store_postpone_commit(store);
		} else if (hs_store_commit(store) != 0 && !commit_failed(group, store)) {
			aborted[aborts++] = id;
			continue;
		}
		hs_counter_add(&group->counters.changes, part->ks.changes - part->changes_before);
		hs_counter_add(&group->counters.store_writes, entries);
		group->sealed[group->sealed_count++] = id;
		done = true;
	}
	group->touched_count = 0;
	group->sealed_begun_us = group->begun_us;
	if (!defer)
		hs_group_durable(group);
	if (aborts)
		log_abort(group, aborted, aborts);
	if (done && !group->failed)
		atomic_store(&group->last_error, "");
	return defer;
}

/* Prepares another try after a failure. If the store or disk is full, makes a checkpoint, which frees the pages
 * that pins preserve. */
static void prepare_retry(struct hs_group *group, struct hs_store *store)
{
	int failure = store->write.failure;

	if (hs_store_error(failure) == HS_EFULL &&
	    (failure != MDB_MAP_FULL || store->churn_bytes > store->headroom_bytes / 16))
		hs_group_checkpoint(group);
	atomic_store(&group->last_error, hs_store_error(failure) == HS_EFULL
						 ? HS_GROUP_FULL_TEXT
						 : "a store could not be written");
	if (group->failed)
		atomic_store(&group->last_error, group->failure);
}

/* Refuses an operation that failed even in a group of its own. If the disk has no room for an operation smaller
 * than SMALL_BYTES, growing writes are refused untried for a while. */
static void give_up(struct hs_group *group, struct hs_group_item *item)
{
	struct hs_group_part *part = &group->parts[item->op->partition];
	int failure = group->database->stores[item->op->partition].write.failure;

	if (hs_store_error(failure) == HS_EFULL && failure != MDB_MAP_FULL &&
	    failure != MDB_TXN_FULL && item->bytes < SMALL_BYTES)
		part->disk_full_until_us = now_us(group) + HS_GROUP_DISK_FULL_US;
	hs_group_refuse(group, item);
}

/* The record did not fit behind the others in the log file: turns to the other file, where any record fits. True:
 * the log has turned. */
static bool turn_log(struct hs_group *group)
{
	bool full = group->log_full;

	group->log_full = false;
	if (full)
		begin_checkpoint(group);
	return full;
}

/* Runs one operation as a group of its own. */
static void run_alone(struct hs_group *group, struct hs_group_item *item)
{
	struct hs_group_part *part = &group->parts[item->op->partition];

	make_log_room(group);
	do {
		part->rolled_back = false;
		if (item->op->out)
			item->op->out->len = item->out_mark;
		run_item(group, item);
		seal(group, false);
	} while (part->rolled_back && turn_log(group));
}

/* True: the operation fails only because readers hold pages that it could reuse. */
static bool room_will_come(struct hs_group *group, struct hs_store *store,
			   const struct hs_group_item *item)
{
	int failure = store->write.failure;

	if (group->failed || hs_store_error(failure) != HS_EFULL)
		return false;
	if (!hs_group_grows(group, item->op))
		return true;
	return failure != MDB_MAP_FULL && !hs_store_disk_full(store, item->bytes);
}

/* Runs the operations of a rolled back store again, each as a group of its own. */
static void retry(struct hs_group *group, uint16_t id)
{
	struct hs_group_part *part = &group->parts[id];
	struct hs_store *store = &group->database->stores[id];
	/* shared by all operations of this store, because the other stores wait meanwhile */
	int tries = FREE_TRIES;

	if (store->write.failure)
		prepare_retry(group, store);
	part->retrying = true;
	for (size_t i = 0; i < group->count; i++) {
		struct hs_group_item *item = &group->items[i];
		struct hs_op *op = item->op;

		if (op->partition != id)
			continue;
		part->rolled_back = false;
		if (item->ran && item->lent)
			/* the worker reads a snapshot from before the operation's group, so the read is still
			 * right */
			continue;
		/* A rollback of the transaction does not roll back watches or trackers: these operations must not
		 * run twice. */
		if (item->ran &&
		    (op->kind == HS_OP_WATCH || op->kind == HS_OP_UNWATCH || is_track(op)))
			continue;
		run_alone(group, item);
		while (part->rolled_back && tries-- > 0 && room_will_come(group, store, item)) {
			/* The pages are free as soon as the readers release their snapshots. */
			uv_sleep(FREE_TRY_MS);
			prepare_retry(group, store);
			run_alone(group, item);
		}
		if (part->rolled_back)
			give_up(group, item);
	}
	part->rolled_back = false;
	part->retrying = false;
}

bool hs_group_empty(const struct hs_group *group)
{
	return group->count == 0 && !group->swept;
}

bool hs_group_full(const struct hs_group *group)
{
	uint64_t bytes_max = group->database->redo.file_bytes / 8;

	if (bytes_max > GROUP_BYTES_MAX)
		bytes_max = GROUP_BYTES_MAX;
	return group->count == HS_GROUP_OPS_MAX || group->bytes >= bytes_max ||
	       group->reply_bytes >= GROUP_BYTES_MAX || group->cut_short;
}

/* Commits a store's postponed changes and opens its transaction again. True: all changes of the store are
 * committed. */
static bool commit_and_begin(struct hs_group *group, struct hs_store *store)
{
	if (store->write.postponed.len > 0) {
		hs_group_commit_postponed(group, store);
		if (group->parts[store->id].rolled_back)
			return false;
	}
	/* Also after a failed commit, because the next operation needs a transaction or a read snapshot. */
	return hs_group_begin_store(group, store->id) == 0 && !group->failed &&
	       !group->parts[store->id].given_up;
}

/* Lends a snapshot to a worker, which then writes the large reply of this read. False: the group has changed the
 * store, so the read must wait for the commit, and runs first in the next group. */
static bool lend(struct hs_group *group, struct hs_group_item *item)
{
	struct hs_op *op = item->op;
	struct hs_store *store = &group->database->stores[op->partition];
	struct hs_snapshot_loan *loan = NULL;

	if (store->write.pending.entries > 0 && op->kind == HS_OP_COMMAND) {
		atomic_fetch_add_explicit(&store->redirected_reads, 1, memory_order_relaxed);
		group->cut_short = true;
		return false;
	}
	if (store->write.pending.entries == 0 && commit_and_begin(group, store))
		loan = hs_snapshot_loan_get(group->loans, op->partition, op->worker, group->number);
	if (!loan) {
		item->reply_here = true;
		item->ran = false;
		run_item(group, item);
		return true;
	}
	item->lent = true;
	op->reply_unwritten = true;
	op->engine_data = loan;
	op->engine_mark = (uint64_t)group->now_ms;
	hs_counter_add(&group->counters.lent, 1);
	return true;
}

/* Begins a group. Checkpoints are handled here, because no operation is in progress. */
static void begin_group(struct hs_group *group)
{
	if (!hs_group_empty(group))
		return;
	make_log_room(group);
	if (!group->failed)
		begin_checkpoint_if_due(group);
	group->begun_us = now_us(group);
}

size_t hs_group_add(struct hs_group *group, struct hs_op *op)
{
	size_t count = group->count;

	begin_group(group);
	group->now_ms = hs_now_wall_ms(group->host->now(group->host->context));
	for (; op && !hs_group_full(group); op = op->next) {
		struct hs_group_item *item = &group->items[group->count++];
		const struct hs_store_write *write = &group->database->stores[op->partition].write;
		uint64_t before = hs_store_write_bytes(write), after;

		*item = (struct hs_group_item){.op = op, .out_mark = op->out ? op->out->len : 0};
		run_item(group, item);
		if (item->large && !lend(group, item)) {
			group->count--;
			break;
		}
		after = hs_store_write_bytes(write);
		group->bytes += after > before ? after - before : 0;
		if (op->out)
			group->reply_bytes += op->out->len - item->out_mark;
	}
	return group->count - count;
}

bool hs_group_finish(struct hs_group *group, bool may_defer)
{
	bool deferred;

	/* Waits until the previous group is synced. If its sync failed, the committer must write nothing more: the
	 * disk may report a failure only once. */
	hs_group_await_log(group);
	/* Called before the group is logged, because a commit may contain only changes that are on disk. */
	commit_due(group);
	deferred = seal(group, may_defer);
	turn_log(group);
	for (uint16_t id = 0; id < group->database->partitions; id++)
		if (group->parts[id].rolled_back)
			retry(group, id);
	for (uint16_t id = 0; id < group->database->partitions; id++)
		group->parts[id].refused = false;
	hs_engine_show_counts(&group->counters, &group->counts);
	hs_counter_add(&group->counters.commits, group->count > 0);
	hs_counter_add(&group->counters.commit_ops, group->count);
	hs_counter_add(&group->counters.commit_us, now_us(group) - group->begun_us);
	group->count = 0;
	group->number++;
	group->cut_short = false;
	group->reply_bytes = 0;
	group->bytes = 0;
	group->swept = false;
	group->outcome_unknown = false;
	return !deferred;
}

bool hs_group_sweep(struct hs_group *group, size_t limit)
{
	int64_t now_ms = hs_now_wall_ms(group->host->now(group->host->context));
	bool more = false;

	if (group->failed)
		return false;
	begin_group(group);
	group->changed.client = 0;
	for (uint16_t id = 0; id < group->database->partitions; id++) {
		struct hs_group_part *part = &group->parts[id];
		struct hs_store *store = &group->database->stores[id];
		uint64_t before = hs_store_write_bytes(&store->write), after;
		int swept;

		if (hs_group_full(group))
			return true;
		if (hs_counter_get(&store->expires) == 0 || part->rolled_back)
			continue;
		if (touch(group, id) != 0 || part->given_up)
			continue;
		part->ks.now_ms = now_ms;
		store->write.latest_ms = now_ms;
		swept = hs_keyspace_sweep(&part->ks, limit);
		after = hs_store_write_bytes(&store->write);
		group->bytes += after > before ? after - before : 0;
		group->swept = true;
		if (swept < 0)
			hs_group_rollback(group, id);
		else
			more = more || (size_t)swept >= limit;
	}
	return more;
}
