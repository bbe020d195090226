/* One store: an LMDB environment with the two trees of a partition, its one writer and its many
 * readers. It knows pages, transactions and snapshots. It knows no command, no queue and no log
 * file; it only collects the changes for the log (pending_redo.h).
 *
 * LMDB never overwrites a page that an open snapshot can reach. Readers are snapshots. So are pins,
 * which preserve the pages of a checkpoint.
 *
 * A postponed commit: the transaction stays open after its changes are logged and answered, and
 * later groups run in it. Readers do not see these changes; they recognize the changed keys by
 * `changed_in` and redirect such a read to the writer. `write.postponed` has the changes, so that a
 * rollback can make them again.
 *
 * Threads: the writer's calls, pins included, belong to one thread; a hs_store_read to one thread
 * each; any thread may read the atomics and counters. A full disk is HS_EFULL, and the transaction
 * must be aborted or rolled back. When LMDB refuses every new transaction, the writer gives the
 * store up: see hs_store_give_up. */
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
	HS_STORE_LOANS = 16, /* most snapshots lent at a time: snapshot_loan.h */
};

/* The write transaction, as the keyspace sees it. */
struct hs_store_write {
	struct hs_kv kv;
	struct hs_store *store;
	MDB_txn *txn;	/* NULL: none is open */
	MDB_txn *outer; /* in a nested transaction: the outer one; otherwise NULL */
	MDB_cursor *cursors[HS_KV_TREES];
	struct hs_pending_redo pending; /* changes that are not logged yet */
	struct hs_buf postponed; /* changes that are logged and answered, but not committed */
	/* length of `postponed` before the last hs_store_postpone_commit */
	size_t postponed_synced;
	/* bytes of entries that newer ones replaced within the groups in `postponed`; for
	 * estimating pages */
	uint64_t postponed_replaced_bytes;
	uint64_t changed;  /* entries changed by this transaction, for estimating pages */
	int64_t latest_ms; /* wall clock of its last operation */
	int failure;	   /* LMDB's code or errno of the last failure */
	/* The value of the last put, in LMDB's page. The caller fills it after put has returned;
	 * then it is copied to `pending` at room_at. NULL: already copied. */
	const char *room;
	size_t room_at, room_bytes;
};

/* A read transaction, renewed for each snapshot. */
struct hs_store_read {
	struct hs_kv kv;
	struct hs_store *store;
	const MDB_dbi *trees; /* those of the environment that `txn` belongs to */
	MDB_txn *txn;
	MDB_cursor *cursors[HS_KV_TREES];
	bool cursors_stale[HS_KV_TREES]; /* opened in an earlier snapshot */
	bool open;			 /* holds a snapshot */
	uint64_t commits;   /* the store's commit count, read before the snapshot was taken */
	int64_t visible_ms; /* no operation in the snapshot ran later than this */
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

	/* Read by workers all the time; padded away from what the writer writes. */
	char padding_commits[64];
	/* goes up after each commit: a snapshot with a lower count is old */
	_Atomic uint64_t commits;
	/* Wall clock of the newest operation that readers may see. Set before its commit: a reader
	 * takes its snapshot first and reads this second, so it never dates the snapshot too early. */
	_Atomic int64_t visible_ms;
	/* Number of the commit that will show the postponed changes. While it is above
	 * read->commits, the reader looks up its key in changed_in. */
	_Atomic uint64_t pending_commit;
	_Atomic uint32_t *changed_in; /* by key hash: the last commit that changes such a key */
	_Atomic uint32_t cleared_in;  /* the last commit that clears the trees */
	/* reads redirected to the writer since the last commit: it should commit soon */
	_Atomic uint32_t redirected_reads;
	char padding_queued[64];
	_Atomic uint64_t queued; /* operations queued for the writer */
	_Atomic bool full;	 /* the last write was refused because the store or disk is full */
	char padding_rest[64];
	struct hs_counter keys, expires, bytes_used;
	/* time from the start of a group until it is durable */
	struct hs_counter commit_histogram[HS_COARSE_HISTOGRAM_BUCKETS];

	struct hs_store_write write;
	uint64_t allocated_bytes; /* size of the file up to which disk blocks are allocated */
	uint64_t churn_bytes;	  /* bytes of pages written since the last pin; an upper bound */
	MDB_txn *pin;		  /* the snapshot of the checkpoint on disk */
	MDB_txn *pin_next;	  /* of the checkpoint being made */
	struct hs_store_fallback fallback_memory;
	/* Not NULL: LMDB refuses the writable environment, readers use this one. */
	_Atomic(struct hs_store_fallback *) fallback;
};

/* Bytes of all changes in the open transaction. */
static inline uint64_t hs_store_write_bytes(const struct hs_store_write *write)
{
	return hs_pending_redo_bytes(&write->pending) + write->postponed.len +
	       write->postponed_replaced_bytes;
}

/* Above this size only deletes may use the headroom. */
static inline uint64_t hs_store_bytes_hard(const struct hs_store *store)
{
	return store->bytes_max + store->headroom_bytes / 2;
}

/* Opens or creates the environment. `readers`: the most struct hs_store_read in use at a time,
 * besides loans. */
int hs_store_open(struct hs_store *store, uint16_t id, const char *folder, uint64_t bytes_max,
		  uint32_t readers, struct hs_fault *fault) HS_MUSTCHECK;
void hs_store_close(struct hs_store *store);
void hs_store_name(char *name, size_t size, uint16_t id);

/* The writer. Errors are HS_EFULL and HS_EIO, with the cause in write.failure. */
int hs_store_begin(struct hs_store *store) HS_MUSTCHECK;
int hs_store_commit(struct hs_store *store) HS_MUSTCHECK;
void hs_store_abort(struct hs_store *store);
/* Leaves the transaction open after its changes were logged: they may be answered, and later
 * operations run on top of them. Readers of a changed key are redirected until the commit. Only if
 * hs_store_can_postpone: that commit may not fail, so the disk must have room for it.
 * hs_store_can_postpone allocates that room. */
void hs_store_postpone_commit(struct hs_store *store);
bool hs_store_can_postpone(struct hs_store *store);
/* True when the disk has no room for `more` bytes of changes besides what deletes may need. */
bool hs_store_disk_full(struct hs_store *store, uint64_t more);
/* Takes back the changes that are not postponed. The postponed ones are made again from
 * `postponed`, in a new transaction that stays open. That writes nothing, so it also works on a
 * disk that fails. It fails when LMDB refuses a transaction (a failed write of its meta page is
 * final), or when the transaction is too large for memory. */
int hs_store_rollback(struct hs_store *store) HS_MUSTCHECK;
/* Drops from `postponed` what the last hs_store_postpone_commit added. hs_store_rollback must
 * follow. */
void hs_store_drop_last_postponed(struct hs_store *store);
/* After a failed commit of logged changes: adds them to `postponed`. hs_store_rollback must follow
 * and makes them again. */
void hs_store_postpone_failed_commit(struct hs_store *store);
/* Ends writing to this store until a restart. Its postponed changes cannot be read, because only
 * the log has them: readers of these keys are redirected as before. Readers of other keys use the
 * fallback environment. */
void hs_store_give_up(struct hs_store *store);
/* A nested transaction: abort takes back one operation alone. */
int hs_store_nested_begin(struct hs_store *store) HS_MUSTCHECK;
int hs_store_nested_commit(struct hs_store *store) HS_MUSTCHECK;
void hs_store_nested_abort(struct hs_store *store);
/* Copies the value of the last put to `pending`. */
void hs_store_note_last_put(struct hs_store *store);
/* Bytes of the pages that the transaction can reach. */
uint64_t hs_store_used(struct hs_store *store);
/* LMDB reports a short write on a full disk as EIO. This tries a write behind the end of the file
 * and sets write.failure to the true cause. */
void hs_store_explain(struct hs_store *store);
const char *hs_store_failure_text(const struct hs_store *store);

/* Makes a change from the log again. Deleting a missing key is fine. */
struct hs_redo_entry;
int hs_store_apply(struct hs_store *store, const struct hs_redo_entry *entry) HS_MUSTCHECK;

/* Pins the last commit as pin_next. `meta` gets the meta pages that lead to it, 2 * page_bytes;
 * `file_bytes` the size of the file. */
int hs_store_pin(struct hs_store *store, char *meta, uint64_t *file_bytes) HS_MUSTCHECK;
/* pin_next's checkpoint is on disk: pin_next becomes pin, and the old pin is released. */
void hs_store_pin_advance(struct hs_store *store);

/* A reader. Renew takes a snapshot of the last commit, release gives it back. `commits`: the store's commit
 * count, which the caller has read before this call. HS_EBUSY: LMDB refuses new snapshots and there is no
 * fallback, so only the writer can answer. */
void hs_store_read_init(struct hs_store_read *read, struct hs_store *store);
int hs_store_read_renew(struct hs_store_read *read, uint64_t commits) HS_MUSTCHECK;
void hs_store_read_release(struct hs_store_read *read);
void hs_store_read_deinit(struct hs_store_read *read);

/* Converts LMDB's codes and errno to HS_E codes. */
int hs_store_error(int rc);

/* For every opener of a store's file: the names of its trees, their handles (LMDB's code), and the
 * number of reachable pages. */
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

/* The two implementations of the keyspace's trees: store_kv.c. */
extern const struct hs_kv_calls hs_store_read_calls;
extern const struct hs_kv_calls hs_store_write_calls;

#endif
