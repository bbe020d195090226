/* A group: operations of any connections that are run, logged, synced and committed together.
 *
 *     run      each operation in its store's write transaction; replies are written, not sent
 *     seal     one log record with the changes of all stores
 *     sync     once for all of it, here or by the syncer (syncer.h)
 *     commit   each store: from here on readers see it
 *     answer   by the caller, when it is synced
 *
 * So readers and clients see only durable changes.
 *
 * A commit costs several pages for every store of every group, so a store postpones its commit while no client
 * reads the changed keys: the transaction stays open (hs_store_postpone_commit), more groups run in it, and one
 * commit shows the changes of all these groups. A read of such a key is redirected to the committer's queue and
 * runs in that transaction; for a while afterwards the store commits with every group. If the reply of a read is
 * large, a worker writes it, from a lent snapshot (snapshot_loan.h).
 *
 * When a store fails, its transaction is rolled back, and the other stores of the group go on. The operations of
 * the failed store run again one by one, so that only operations that cannot be done are refused. When the log, a
 * checkpoint or a store's file fails, the state of the disk is unknown: the committer refuses writes until a
 * restart has read the disk again. Reads go on: group_disk.c.
 *
 * Watch marks, noted key changes and counts are not undone when operations run again: a watch or an
 * invalidation may then report a change that did not happen, and a hit may count twice.
 *
 * The committer's thread calls everything here, with two exceptions. The thread that starts and
 * stops the committer calls init and deinit. The thread that synced the log calls
 * hs_group_durable. Any thread may read the counters and last_error. */
#ifndef HS_ENGINE_EMBEDDED_GROUP_H
#define HS_ENGINE_EMBEDDED_GROUP_H

#include "base/counter.h"
#include "base/prng.h"
#include "core/op.h"
#include "engine/embedded/database.h"
#include "engine/embedded/snapshot_loan.h"
#include "engine/engine.h"
#include "keyspace/changed.h"
#include "keyspace/keyspace.h"
#include "keyspace/watch.h"

#include <stdbool.h>
#include <stdint.h>

enum {
	HS_GROUP_OPS_MAX = 4096,
	/* How long the committer refuses growing writes untried after it has found the disk full. */
	HS_GROUP_DISK_FULL_US = 1000 * 1000,
};

#define HS_GROUP_FULL_TEXT "a store or its disk is full"

struct hs_group_item {
	struct hs_op *op;
	size_t out_mark; /* where its reply begins in op->out */
	uint64_t bytes;	 /* bytes of the operation's arguments */
	bool ran;
	bool refused;	 /* refused in its last run */
	bool large;	 /* a read whose reply is too large for the committer to write */
	bool lent;	 /* the worker writes the reply from a lent snapshot */
	bool reply_here; /* the committer writes the reply, however large */
	/* EXEC: its watches were checked; no watched key had changed */
	bool watches_checked, watches_clean;
};

/* The state of one store in the group. */
struct hs_group_part {
	struct hs_keyspace ks;
	bool touched; /* the store has a transaction in this group */
	/* the transaction was rolled back: the store's operations must run again */
	bool rolled_back;
	/* the store is not written until a restart: reads use `read`, a snapshot of the last commit */
	bool given_up;
	struct hs_store_read read;
	bool postpone;	       /* the store postpones its commit when the group is sealed */
	bool retrying;	       /* the store's operations are being run again, one by one */
	bool refused;	       /* an operation of this group on the store was refused */
	uint64_t commit_at_us; /* when the store's postponed changes must be committed */
	/* until then the store commits with every group, because clients read keys that were just written */
	uint64_t commit_each_until_us;
	uint64_t changes_before;
	uint64_t disk_full_until_us; /* until then growing writes are refused without a try */
};

struct hs_group {
	struct hs_database *database;
	const struct hs_engine_host *host;
	struct hs_group_part *parts;
	/* ids of the stores with a transaction, in the order in which the transactions began */
	uint16_t *touched;
	uint16_t touched_count;
	struct hs_group_item *items;
	size_t count;
	struct hs_prng prng;
	struct hs_keyspace_counts counts;
	bool log_full;	      /* the record did not fit behind the others in the log file */
	bool failed;	      /* no file is written until a restart; `failure` is the reason */
	bool outcome_unknown; /* a restart may or may not find the group's record in the log */
	bool swept;	      /* the group removed expired keys */
	uint32_t trackers;    /* workers with CLIENT TRACKING sessions */
	/* Keys changed by this group, noted while a worker has tracking sessions. When the group is finished, the
	 * caller sends the keys as events, before the group's replies. */
	struct hs_changed changed;
	struct hs_snapshot_loans *loans; /* NULL: the committer writes all replies */
	uint64_t number;		 /* number of this group, noted in each loan */
	/* the group ends early, so that the next operation runs after the group's commit */
	bool cut_short;
	uint64_t reply_bytes; /* bytes of the group's replies */
	uint64_t bytes;	      /* bytes of the group's changes */
	uint64_t begun_us;
	/* The wall clock for all operations of the group since hs_group_add. The time when an operation was
	 * received would be too early: a read may have found a key expired after that time, and a later operation
	 * must not find the key alive. */
	int64_t now_ms;
	/* Stores that the last sealed group changed; emptied when the group is durable. */
	uint16_t *sealed;
	uint16_t sealed_count;
	uint64_t sealed_begun_us;
	uint64_t logged_us; /* when the sync of the group's record began; 0: nothing was logged */
	/* Waits until earlier groups are synced. Returns 0 or a negative errno. NULL: hs_group_finish syncs every
	 * group itself, so no sync is left to wait for. */
	int (*barrier)(void *context);
	void *barrier_context;
	char failure[HS_PATH_BYTES_MAX + 256];

	struct hs_engine_counters counters;
	/* moving average of the time of a sync, in microseconds */
	struct hs_counter sync_us;
	_Atomic(const char *) last_error; /* constant text or `failure`; "" when all is well */
};

void hs_group_init(struct hs_group *group, struct hs_database *database,
		   const struct hs_engine_host *host);
void hs_group_deinit(struct hs_group *group);

/* Runs operations of the chain that begins at `op`, as many as fit into the group, and returns their number.
 * Writes their replies, which may change until hs_group_finish. */
size_t hs_group_add(struct hs_group *group, struct hs_op *op);
/* Removes up to `limit` expired keys from each store, as part of the group. True: more keys have expired. */
bool hs_group_sweep(struct hs_group *group, size_t limit);
bool hs_group_empty(const struct hs_group *group);
bool hs_group_full(const struct hs_group *group);

/* Ends the group: seals it and runs failed operations again. Afterwards the group's replies are final, and the
 * next group begins empty. True: the replies may be sent. False, only if `may_defer`: the caller must sync the log
 * first. */
bool hs_group_finish(struct hs_group *group, bool may_defer);

/* The sealed group is on disk: records how long that took. hs_group_finish calls this function. If it left the
 * sync to the caller, the thread that did the sync calls the function instead, before the next group is
 * finished. */
void hs_group_durable(struct hs_group *group);

/* Between groups: commits stores whose postponed changes are due, takes the result of a finished
 * checkpoint, and begins a checkpoint when enough was written. Returns when to call again at the
 * latest; UINT64_MAX: no commit is pending. */
uint64_t hs_group_maintain(struct hs_group *group);
/* Makes a checkpoint of all stores and waits for it. If no record was logged since the last checkpoint, returns at
 * once. */
void hs_group_checkpoint(struct hs_group *group);

/* The functions below are parts of the work: group_run.c runs one operation, group.c does the rest. */

/* Runs one operation. 0: its reply is written, perhaps an error. Otherwise the store's transaction is lost. */
int hs_group_run_op(struct hs_group *group, struct hs_group_item *item) HS_MUSTCHECK;
/* True: the operation may make its store larger. */
bool hs_group_grows(struct hs_group *group, const struct hs_op *op);
/* Replies with an error: the store's error or, if the group has failed, the engine's. */
void hs_group_refuse(struct hs_group *group, struct hs_group_item *item);

/* The functions below handle disk failures: group_disk.c. */

/* From this call on the committer refuses all writes; logs the reason. Later calls change nothing: the first
 * reason stays. */
void hs_group_fail(struct hs_group *group, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void hs_group_fail_log(struct hs_group *group, const char *verb, int rc);
/* Waits until earlier groups are on disk. If their sync failed: refuses writes and takes back the changes of the
 * unsynced group, so that no read shows them. */
void hs_group_await_log(struct hs_group *group);
/* If 4 or more reads of the store were redirected to the queue since the last call, the store commits with every
 * group for the next 100 ms. */
void hs_group_check_redirected_reads(struct hs_group *group, struct hs_store *store);
/* Commits a store's postponed changes, so that readers see them. */
void hs_group_commit_postponed(struct hs_group *group, struct hs_store *store);
/* Takes back the changes of the group in one store; the group's operations on this store must run again. */
void hs_group_rollback(struct hs_group *group, uint16_t id);
/* A store could not commit changes that are in the log, and the disk is not full: refuses writes, and makes the
 * changes readable in an open transaction. */
void hs_group_commit_failed(struct hs_group *group, struct hs_store *store);
/* Opens the store's write transaction if it is closed, or a read snapshot if the store is given up. */
int hs_group_begin_store(struct hs_group *group, uint16_t id) HS_MUSTCHECK;

#endif
