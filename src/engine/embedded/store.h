/* One store: an LMDB environment with the two trees of a partition, its one writer and its many
 * readers. A store knows pages, transactions and snapshots. It knows no command, no queue and no log file; it only
 * collects the changes for the log (pending_redo.h).
 *
 * LMDB never overwrites a page that an open snapshot can reach. Readers hold snapshots. Pins are snapshots, too,
 * which preserve the pages of a checkpoint.
 *
 * A postponed commit: the transaction stays open after its changes are logged and answered, and
 * later groups run in it. Readers do not see these changes; they recognize the changed keys by `changed_in` and
 * redirect reads of these keys to the writer. `write.postponed` has the changes, so that a rollback can make them
 * again.
 *
 * Threads: one thread makes the writer's calls, pins included; each hs_store_read belongs to one thread; any
 * thread may read the atomics and counters. If the disk is full, calls return HS_EFULL, and the caller must abort
 * or roll back the transaction. When LMDB refuses every new transaction, the writer gives the store up: see
 * hs_store_give_up. */
#ifndef HS_ENGINE_EMBEDDED_STORE_H
#define HS_ENGINE_EMBEDDED_STORE_H

#include "base/buf.h"
#include "base/check.h"
#include "base/coarse_histogram.h"
#include "base/counter.h"
#include "engine/embedded/files.h"
#include "engine/embedded/pending_redo.h"
#include "keyspace/kv.h"

#include <lmdb.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct hs_store;

enum {
	HS_STORE_CHANGED_CELLS = 1 << 16,
	HS_STORE_LOANS = 16, /* most snapshots lent at a time (snapshot_loan.h) */
};

/* The write transaction, with the trees that the keyspace writes (kv). */
struct hs_store_write {
	struct hs_kv kv;
	struct hs_store *store;
	MDB_txn *txn;	/* NULL: none is open */
	MDB_txn *outer; /* while a nested transaction is open: the outer one; otherwise NULL */
	MDB_cursor *cursors[HS_KV_TREES];
	struct hs_pending_redo pending; /* changes that are not logged yet */
	struct hs_buf postponed; /* changes that are logged and answered, but not committed */
	/* length of `postponed` before the last hs_store_postpone_commit */
	size_t postponed_synced;
	/* Bytes of entries that newer entries replaced within one group, summed over the groups in `postponed`;
	 * for estimating pages. */
	uint64_t postponed_replaced_bytes;
	uint64_t changed;  /* number of entries changed by this transaction, for estimating pages */
	int64_t latest_ms; /* wall clock of the transaction's last operation */
	int failure;	   /* LMDB's code or errno of the last failure */
	/* The place of the last put's value in LMDB's page. The caller writes the value there after put has
	 * returned; later the value is copied to `pending` at room_at. NULL: it was copied. */
	const char *room;
	size_t room_at, room_bytes;
};

/* A read transaction, renewed for each snapshot. */
struct hs_store_read {
	struct hs_kv kv;
	struct hs_store *store;
	const MDB_dbi *trees; /* the trees of the environment that `txn` belongs to */
	MDB_txn *txn;
	MDB_cursor *cursors[HS_KV_TREES];
	bool cursors_stale[HS_KV_TREES]; /* the cursor was opened in an earlier snapshot */
	bool open;			 /* `txn` has a snapshot */
	uint64_t commits; /* the store's commit count, read before the snapshot was taken */
	/* no operation whose changes are in the snapshot ran later than this time */
	int64_t visible_ms;
};

/* A second, read-only environment on the same file. */
struct hs_store_fallback {
	MDB_env *env;
	MDB_dbi trees[HS_KV_TREES];
};

struct hs_store {
	uint16_t id;
	char path[HS_PATH_BYTES_MAX];
	MDB_env *env;
	MDB_dbi trees[HS_KV_TREES];
	size_t page_bytes;
	uint64_t bytes_max; /* limit for commands that grow the store */
	/* room above bytes_max: for deletes, and for pages that pins preserve */
	uint64_t headroom_bytes;

	/* Workers read the next fields all the time: the padding separates them from fields that the writer
	 * writes. */
	char padding_commits[64];
	/* Incremented after each commit: a snapshot with a lower count is old. */
	_Atomic uint64_t commits;
	/* Wall clock of the newest operation that readers may see. Set before the operation's commit. A reader
	 * takes its snapshot first and reads visible_ms second, so the time is never too early for the
	 * snapshot. */
	_Atomic int64_t visible_ms;
	/* Number of the commit that will show the postponed changes. As long as it is above read->commits, a
	 * reader looks its key up in changed_in. */
	_Atomic uint64_t pending_commit;
	/* by key hash: number of the last commit that changes a key with this hash */
	_Atomic uint32_t *changed_in;
	_Atomic uint32_t cleared_in; /* number of the last commit that clears the trees */
	/* number of reads redirected to the writer since the last commit: if not 0, the store should commit
	 * soon */
	_Atomic uint32_t redirected_reads;
	char padding_queued[64];
	_Atomic uint64_t queued; /* number of operations queued for the writer */
	_Atomic bool full;	 /* the last write was refused because the store or disk is full */
	char padding_rest[64];
	struct hs_counter keys, expires, bytes_used;
	/* time from the start of a group until it is durable */
	struct hs_counter commit_histogram[HS_COARSE_HISTOGRAM_BUCKETS];

	struct hs_store_write write;
	uint64_t allocated_bytes; /* size of the file up to which disk blocks are allocated */
	uint64_t churn_bytes;	  /* upper bound of the bytes of pages written since the last pin */
	MDB_txn *pin;		  /* the snapshot of the checkpoint on disk */
	MDB_txn *pin_next;	  /* the snapshot of the checkpoint being made */
	struct hs_store_fallback fallback_memory;
	/* Not NULL: LMDB refuses the writable environment, so readers use this one. */
	_Atomic(struct hs_store_fallback *) fallback;
};

/* Bytes of all changes in the open transaction. */
static inline uint64_t hs_store_write_bytes(const struct hs_store_write *write)
{
	return hs_pending_redo_bytes(&write->pending) + write->postponed.len +
	       write->postponed_replaced_bytes;
}

/* The store size above which only deletes may use the headroom. */
static inline uint64_t hs_store_bytes_hard(const struct hs_store *store)
{
	return store->bytes_max + store->headroom_bytes / 2;
}

/* Opens or creates the environment. `readers`: the most struct hs_store_read in use at a time, not counting
 * loans. */
int hs_store_open(struct hs_store *store, uint16_t id, const char *folder, uint64_t bytes_max,
		  uint32_t readers, struct hs_fault *fault) HS_MUSTCHECK;
void hs_store_close(struct hs_store *store);
void hs_store_name(char *name, size_t size, uint16_t id);

/* The writer's calls. Errors are HS_EFULL and HS_EIO; write.failure has the cause. */
int hs_store_begin(struct hs_store *store) HS_MUSTCHECK;
int hs_store_commit(struct hs_store *store) HS_MUSTCHECK;
void hs_store_abort(struct hs_store *store);
/* Leaves the transaction open after its changes were logged. The clients may be answered, and later operations run
 * in the same transaction. Reads of a changed key are redirected until the commit. The commit must not fail for
 * want of room on disk: so the caller calls this only after hs_store_can_postpone, which allocates the room, has
 * returned true. */
void hs_store_postpone_commit(struct hs_store *store);
bool hs_store_can_postpone(struct hs_store *store);
/* True: the disk has no room for `more` bytes of changes besides the room that deletes may need. */
bool hs_store_disk_full(struct hs_store *store, uint64_t more);
/* Takes back the changes that are not postponed: aborts the transaction, and makes the changes in `postponed`
 * again in a new transaction, which stays open. This writes to no file, so a rollback also works on a disk that
 * fails. A rollback fails if LMDB refuses a transaction (after a failed write of its meta page LMDB refuses all),
 * or if the transaction is too large for memory. */
int hs_store_rollback(struct hs_store *store) HS_MUSTCHECK;
/* Drops from `postponed` the changes that the last hs_store_postpone_commit added. The caller then calls
 * hs_store_rollback. */
void hs_store_drop_last_postponed(struct hs_store *store);
/* Called after a failed commit of logged changes: adds them to `postponed`. The caller then calls
 * hs_store_rollback, which makes them again. */
void hs_store_postpone_failed_commit(struct hs_store *store);
/* Ends writing to this store until a restart. Its postponed changes cannot be read any more, because only the log
 * has them: reads of their keys are redirected as before. Readers of other keys use the fallback environment. */
void hs_store_give_up(struct hs_store *store);
/* A nested transaction: abort takes back the changes of one operation alone. */
int hs_store_nested_begin(struct hs_store *store) HS_MUSTCHECK;
int hs_store_nested_commit(struct hs_store *store) HS_MUSTCHECK;
void hs_store_nested_abort(struct hs_store *store);
/* Copies the value of the last put to `pending`. */
void hs_store_note_last_put(struct hs_store *store);
/* Bytes of the pages that the transaction can reach. */
uint64_t hs_store_used(struct hs_store *store);
/* Finds the true cause of an EIO: LMDB reports a short write on a full disk as EIO. Tries a write behind the end
 * of the file and sets write.failure. */
void hs_store_explain(struct hs_store *store);
const char *hs_store_failure_text(const struct hs_store *store);

/* Makes a change from the log again. A delete of a missing key succeeds. */
struct hs_redo_entry;
int hs_store_apply(struct hs_store *store, const struct hs_redo_entry *entry) HS_MUSTCHECK;

/* Pins the last commit as pin_next. Writes the meta pages that lead to this commit, 2 * page_bytes, to `meta`, and
 * the size of the file to `file_bytes`. */
int hs_store_pin(struct hs_store *store, char *meta, uint64_t *file_bytes) HS_MUSTCHECK;
/* The checkpoint of pin_next is on disk: pin_next becomes pin, and the previous pin is released. */
void hs_store_pin_advance(struct hs_store *store);

/* A reader. Renew takes a snapshot of the last commit, release gives it back. `commits`: the store's commit count,
 * which the caller has read before this call. HS_EBUSY: LMDB refuses new snapshots and there is no fallback
 * environment, so only the writer can answer. */
void hs_store_read_init(struct hs_store_read *read, struct hs_store *store);
int hs_store_read_renew(struct hs_store_read *read, uint64_t commits) HS_MUSTCHECK;
void hs_store_read_release(struct hs_store_read *read);
void hs_store_read_deinit(struct hs_store_read *read);

/* Converts LMDB's codes and errno to HS_E codes. */
int hs_store_error(int rc);

/* For each module that opens a store's file: the names of the store's trees; a function that opens them and
 * returns LMDB's code; and one that counts the reachable pages. */
extern const char *const hs_store_trees[HS_KV_TREES];
int hs_store_open_trees(MDB_txn *txn, unsigned flags, MDB_dbi trees[HS_KV_TREES]) HS_MUSTCHECK;
uint64_t hs_store_pages(MDB_txn *txn, const MDB_dbi trees[HS_KV_TREES]);

static inline MDB_val hs_store_val_of(struct hs_bytes bytes)
{
	return (MDB_val){bytes.len, (void *)(uintptr_t)bytes.data};
}

static inline struct hs_bytes hs_store_bytes_of(MDB_val val)
{
	return (struct hs_bytes){val.mv_data, val.mv_size};
}

/* The two implementations of the keyspace's trees, in store_kv.c. */
extern const struct hs_kv_calls hs_store_read_calls;
extern const struct hs_kv_calls hs_store_write_calls;

#endif
