/* Runs one operation inside its store's transaction, and refuses an operation that cannot be done.
 *
 * A store has a size limit. Near the limit, a command that may grow the store runs in a nested transaction. If the
 * store then stays within the limit, or has not grown, the nested transaction is committed. So commands can use
 * the room that deletes left inside pages. Otherwise the nested transaction is aborted and the command is refused.
 * Deletes are never refused because of the limit: they need new pages for a moment, too, and may take these from
 * the room above the limit. */

#include "base/err.h"
#include "base/limits.h"
#include "engine/embedded/group.h"
#include "wire/reply.h"

#include <errno.h>

#define NO_LIMIT UINT64_MAX

enum { SPLIT_PAGES = 8 }; /* pages that one small change may add to the trees */

static struct hs_store *store_of(struct hs_group *group, const struct hs_op *op)
{
	return &group->database->stores[op->partition];
}

static struct hs_group_part *part_of(struct hs_group *group, const struct hs_op *op)
{
	return &group->parts[op->partition];
}

static uint64_t command_limit(const struct hs_store *store, const struct hs_command *command)
{
	if (command->flags & HS_CMD_DENYOOM)
		return store->bytes_max;
	if (!(command->flags & HS_CMD_WRITE) || command->flags & HS_CMD_DELETES)
		return NO_LIMIT;
	return hs_store_bytes_hard(store);
}

/* Returns the size limit of the store for this operation; *bytes: the bytes that the operation brings. */
static uint64_t op_limit(const struct hs_store *store, const struct hs_op *op, uint64_t *bytes)
{
	uint64_t limit = NO_LIMIT;

	*bytes = 0;
	if (op->kind == HS_OP_COMMAND) {
		for (size_t i = 0; i < op->argc; i++)
			*bytes += op->argv[i].len;
		return command_limit(store, op->command);
	}
	for (size_t i = 0; op->kind == HS_OP_EXEC && i < op->tx->count; i++) {
		const struct hs_op_tx_command *command = &op->tx->commands[i];
		uint64_t one;

		if (command->answered.len)
			continue;
		for (size_t j = 0; j < command->argc; j++)
			*bytes += command->argv[j].len;
		one = command_limit(store, command->command);
		limit = one < limit ? one : limit;
	}
	return limit;
}

bool hs_group_grows(struct hs_group *group, const struct hs_op *op)
{
	uint64_t bytes;

	return op_limit(store_of(group, op), op, &bytes) != NO_LIMIT;
}

static bool writes(const struct hs_op *op)
{
	if (op->kind == HS_OP_COMMAND)
		return op->command->flags & HS_CMD_WRITE;
	for (size_t i = 0; op->kind == HS_OP_EXEC && i < op->tx->count; i++)
		if (!op->tx->commands[i].answered.len &&
		    op->tx->commands[i].command->flags & HS_CMD_WRITE)
			return true;
	return false;
}

void hs_group_refuse(struct hs_group *group, struct hs_group_item *item)
{
	struct hs_op *op = item->op;
	struct hs_store *store = store_of(group, op);
	int failure = store->write.failure;
	struct hs_reply reply = {.out = op->out, .resp = op->resp};

	item->refused = true;
	/* earlier watch checks of this group may have seen changes of the refused operation */
	part_of(group, op)->refused = true;
	if (op->kind == HS_OP_EXEC && op->watcher && !item->watches_checked) {
		hs_watch_drop(part_of(group, op)->ks.watch, op->watcher);
		item->watches_checked = true;
		/* If EXEC runs again, it answers null: EXEC may always report a change. */
		item->watches_clean = false;
	}
	if (!op->out)
		return;
	op->out->len = item->out_mark;
	if (part_of(group, op)->given_up && !writes(op)) {
		hs_reply_errorf(&reply, "MISCONF %s; %s cannot be read until a restart",
				group->failure,
				part_of(group, op)->read.open
					? "a key of this command was changed just before and"
					: "its store");
		return;
	}
	if (group->failed) {
		hs_reply_errorf(&reply, "MISCONF %s; %swrites are refused until a restart",
				group->failure,
				group->outcome_unknown ? "its outcome is unknown, and " : "");
		return;
	}
	if (hs_store_error(failure) != HS_EFULL) {
		hs_reply_errorf(&reply, "ERR cannot write '%s': %s", store->path,
				hs_store_failure_text(store));
		return;
	}
	hs_counter_add(&group->counters.full_errors, 1);
	if (item->bytes <= store->bytes_max) /* a larger operation can never fit */
		atomic_store_explicit(&store->full, true, memory_order_relaxed);
	if (failure == MDB_MAP_FULL || failure == MDB_TXN_FULL)
		hs_reply_errorf(&reply,
				"OOM store full: partition %u is at its limit of %llu bytes; "
				"delete keys or raise store-size",
				(unsigned)store->id, (unsigned long long)store->bytes_max);
	else
		hs_reply_errorf(
			&reply,
			"OOM store full: the disk of '%s' has no room for partition %u (%s); "
			"make room on the disk or delete keys",
			group->database->folder, (unsigned)store->id, hs_store_failure_text(store));
}

/* The length of op->out at which the committer stops writing a read's reply; 0: no limit. */
static size_t reply_max(struct hs_group *group, const struct hs_group_item *item)
{
	const struct hs_op *op = item->op;
	bool changed = store_of(group, op)->write.pending.entries > 0;

	if (!group->loans || group->failed || item->reply_here || part_of(group, op)->retrying ||
	    writes(op))
		return 0;
	return item->out_mark +
	       (changed ? HS_SNAPSHOT_LOAN_BYTES_MIN_CHANGED : HS_SNAPSHOT_LOAN_BYTES_MIN);
}

/* Undoes a read whose reply is large: a worker will write the reply. */
static int leave_large(struct hs_keyspace *ks, const struct hs_keyspace_counts *counts,
		       struct hs_group_item *item)
{
	*ks->counts = *counts;
	item->op->out->len = item->out_mark;
	item->large = true;
	return 0;
}

static int run_command(struct hs_group *group, struct hs_group_item *item)
{
	struct hs_op *op = item->op;
	struct hs_keyspace *ks = &part_of(group, op)->ks;
	struct hs_reply reply = {
		.out = op->out, .resp = op->resp, .out_max = reply_max(group, item)};
	struct hs_keyspace_counts counts = *ks->counts;
	int rc;

	ks->frequency = op->frequency;
	rc = hs_keyspace_run(ks, op->command, op->slot, op->argc, op->argv, &reply);
	if (rc == 0 && reply.over)
		return leave_large(ks, &counts, item);
	op->missed = rc == 0 && hs_keyspace_missed(&counts, ks->counts);
	return rc;
}

static int run_exec(struct hs_group *group, struct hs_group_item *item)
{
	struct hs_op *op = item->op;
	struct hs_keyspace *ks = &part_of(group, op)->ks;
	struct hs_keyspace_counts before = *ks->counts;
	struct hs_reply reply = {
		.out = op->out, .resp = op->resp, .out_max = reply_max(group, item)};
	int rc;

	if (!item->watches_checked) {
		item->watches_clean = !op->watcher || hs_watch_clean(ks->watch, ks, op->watcher);
		item->watches_checked = true;
		if (op->watcher)
			hs_watch_drop(ks->watch, op->watcher);
	} else if (op->watcher && part_of(group, op)->refused) {
		/* The check saw changes of operations that were refused later. EXEC may report a change that did
		 * not happen, but must not miss one. */
		item->watches_clean = false;
	}
	if (!item->watches_clean) {
		hs_reply_null_array(&reply);
		return 0;
	}
	rc = hs_engine_run_exec(ks, op, &reply);
	return rc == 0 && reply.over ? leave_large(ks, &before, item) : rc;
}

static int run_watch(struct hs_group *group, struct hs_group_item *item)
{
	struct hs_op *op = item->op;
	struct hs_keyspace *ks = &part_of(group, op)->ks;
	struct hs_reply reply = {.out = op->out, .resp = op->resp};
	int rc = 0;

	for (size_t i = 1; i < op->argc && rc == 0; i++)
		rc = hs_watch_add(ks->watch, ks, op->watcher, op->slot, op->argv[i]);
	if (rc == HS_ELIMIT)
		hs_reply_errorf(&reply, "ERR a connection can watch at most %d keys",
				(int)HS_WATCH_KEYS_MAX);
	else if (rc == 0)
		hs_reply_ok(&reply);
	return rc == HS_ELIMIT ? 0 : rc;
}

static int run_any(struct hs_group *group, struct hs_group_item *item)
{
	switch (item->op->kind) {
	case HS_OP_COMMAND:
		return run_command(group, item);
	case HS_OP_EXEC:
		return run_exec(group, item);
	case HS_OP_WATCH:
		return run_watch(group, item);
	case HS_OP_UNWATCH:
		hs_watch_drop(part_of(group, item->op)->ks.watch, item->op->watcher);
		return 0;
	default: /* the core sends no other kind to an engine */
		hs_check(item->op->kind <= HS_OP_UNWATCH);
		return HS_EINVAL;
	}
}

/* Runs the operation near the limit. Commits it if the store has not grown or is within its limit, else refuses
 * it. */
static int try_out(struct hs_group *group, struct hs_group_item *item, uint64_t used,
		   uint64_t limit)
{
	struct hs_store *store = store_of(group, item->op);
	struct hs_keyspace *ks = &part_of(group, item->op)->ks;
	uint64_t changes = ks->changes, now;
	int rc = hs_store_nested_begin(store);

	if (rc != 0)
		return rc;
	rc = run_any(group, item);
	now = hs_store_used(store);
	if (rc == 0 && (now <= used || now <= limit))
		return hs_store_nested_commit(store);
	hs_store_nested_abort(store);
	ks->changes = changes;
	if (rc != 0)
		return rc;
	store->write.failure = MDB_MAP_FULL;
	hs_group_refuse(group, item);
	return 0;
}

static int run_op(struct hs_group *group, struct hs_group_item *item)
{
	struct hs_op *op = item->op;
	struct hs_store *store = store_of(group, op);
	struct hs_group_part *part = part_of(group, op);
	uint64_t used, limit = op_limit(store, op, &item->bytes);

	part->ks.now_ms = group->now_ms;
	store->write.latest_ms = group->now_ms;
	if (group->failed && writes(op)) {
		hs_group_refuse(group, item);
		return 0;
	}
	if (limit == NO_LIMIT) {
		/* A delete may have made room on disk. */
		if (writes(op))
			part->disk_full_until_us = 0;
		return run_any(group, item);
	}
	if (part->disk_full_until_us) {
		if (group->host->now(group->host->context).mono_us < part->disk_full_until_us) {
			store->write.failure = ENOSPC;
			hs_group_refuse(group, item);
			return 0;
		}
		part->disk_full_until_us = 0;
	}
	if (op->kind == HS_OP_COMMAND && item->bytes > limit) {
		/* the operation's arguments alone are larger than the store's limit */
		store->write.failure = MDB_MAP_FULL;
		hs_group_refuse(group, item);
		return 0;
	}
	if (hs_store_disk_full(store, item->bytes)) {
		/* A checkpoint frees the pages that only a pin preserves. HS_EFULL makes the caller run a
		 * checkpoint and try again. */
		if ((store->churn_bytes > 0 || store->write.postponed.len > 0) && !part->retrying)
			return HS_EFULL;
		part->disk_full_until_us =
			group->host->now(group->host->context).mono_us + HS_GROUP_DISK_FULL_US;
		atomic_store(&group->last_error, HS_GROUP_FULL_TEXT);
		hs_group_refuse(group, item);
		return 0;
	}
	used = hs_store_used(store);
	if (used + item->bytes + SPLIT_PAGES * store->page_bytes <= limit)
		return run_any(group, item);
	return try_out(group, item, used, limit);
}

int hs_group_run_op(struct hs_group *group, struct hs_group_item *item)
{
	struct hs_store *store = store_of(group, item->op);
	struct hs_keyspace *ks = &part_of(group, item->op)->ks;
	int rc;

	item->refused = false;
	item->large = false;
	rc = run_op(group, item);
	if (__builtin_expect(ks->damaged, 0))
		hs_database_report_damaged(group->database, store->id, ks,
					   &group->counters.damaged);
	if (rc == 0 && !item->refused && writes(item->op) &&
	    atomic_load_explicit(&store->full, memory_order_relaxed))
		atomic_store_explicit(&store->full, false, memory_order_relaxed);
	return rc;
}
