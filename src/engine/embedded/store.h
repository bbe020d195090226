/* One store: an LMDB environment with the two trees of a partition, its one writer and its many
 * readers. It knows pages, transactions and snapshots; it knows no command, no queue and no log
 * file (it only notes down what was changed, for whoever keeps the log).
 *
 * LMDB never overwrites a page that an open snapshot can reach. Everything here leans on that: a
 * reader is a snapshot, and so is a pin, which keeps the pages of a checkpoint as they are.
 *
 * Threads: the writer's calls, pins included, belong to one thread; a hs_store_read to one thread
 * each; the atomics and counters may be read by any. */
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
	HS_STORE_LOANS = 16, /* snapshots lent at a time: snapshot_loan.h */
};

/* The write transaction, as the keyspace sees it. */
struct hs_store_write {
	struct hs_kv kv;
	struct hs_store *store;
	MDB_txn *txn;	/* NULL: none is open */
	MDB_txn *outer; /* while an operation is tried out: the transaction around it */
	MDB_cursor *cursors[HS_KV_TREES];
	struct hs_pending_redo pending; /* what was changed, not logged yet */
	struct hs_buf postponed; /* the same of earlier groups: logged, answered, not committed */
	size_t postponed_synced; /* of `kept`: what it had before the last hs_store_postpone_commit */
	uint64_t
		postponed_replaced_bytes; /* noted in those groups and replaced: pages it may have cost */
	uint64_t changed;		  /* entries changed by this transaction */
	int64_t latest_ms;		  /* when its last operation was run, by the wall clock */
	int failure;			  /* LMDB's or the system's code of the last failure */
	/* The last put's value, filled by the caller by now or soon; still to be copied to `notes`.
	 */
	const char *room;
	size_t room_at, room_bytes;
};

/* A read transaction that is kept and renewed. */
struct hs_store_read {
	struct hs_kv kv;
	struct hs_store *store;
	const MDB_dbi *trees; /* of the environment that the transaction belongs to */
	MDB_txn *txn;
	MDB_cursor *cursors[HS_KV_TREES];
	bool cursors_stale[HS_KV_TREES]; /* of an earlier snapshot */
	bool open;			 /* holds a snapshot now */
	uint64_t commits;		 /* the store's count, read before the snapshot was taken */
	int64_t visible_ms;		 /* no operation in the snapshot was run later than this */
};

/* A second environment on the same file, for reading alone. */
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
	uint64_t bytes_max;	 /* what growing commands may use */
	uint64_t headroom_bytes; /* behind it: for deletes, and for pages kept by pins */

	/* Numbers that workers look at all the time, away from what the writer writes. */
	char padding_commits[64];
	_Atomic uint64_t commits; /* goes up after each commit: older snapshots are out of date */
	/* When the newest operation was run that readers may see. Set before its commit, so that a
	 * reader who takes a snapshot first and reads this second never dates the snapshot too early. */
	_Atomic int64_t visible_ms;
	/* The commit that will show what was kept (hs_store_postpone_commit). While it is ahead of `commits`,
	 * a reader asks `stamps` whether the key it wants is among that. */
	_Atomic uint64_t pending_commit;
	_Atomic uint32_t *changed_in; /* by key hash: the last commit to change such a key */
	_Atomic uint32_t cleared_in;  /* the last commit to clear the trees */
	_Atomic uint32_t
		redirected_reads; /* readers turned away since the last commit: commit soon */
	char padding_queued[64];
	_Atomic uint64_t queued; /* operations on their way to the writer */
	_Atomic bool full;	 /* the last write was refused for want of room */
	char padding_rest[64];
	struct hs_counter keys, expires, bytes_used;
	struct hs_counter commit_histogram[HS_COARSE_HISTOGRAM_BUCKETS]; /* hs_group_durable */

	struct hs_store_write write;
	uint64_t allocated_bytes; /* of the file: the disk has set them aside for us */
	uint64_t churn_bytes;	  /* pages written since the last pin, estimated from above */
	MDB_txn *pin;		  /* the snapshot of the checkpoint on disk */
	MDB_txn *pin_next;	  /* of the checkpoint being made */
	struct hs_store_fallback fallback_memory;
	/* Readers go on there once LMDB has refused its environment for good; else NULL. */
	_Atomic(struct hs_store_fallback *) fallback;
};

/* Everything that the open transaction was told to change, in bytes. */
static inline uint64_t hs_store_write_bytes(const struct hs_store_write *write)
{
	return hs_pending_redo_bytes(&write->pending) + write->postponed.len +
	       write->postponed_replaced_bytes;
}

/* What remains of the room behind bytes_max is for deletes once this much is used. */
static inline uint64_t hs_store_bytes_hard(const struct hs_store *store)
{
	return store->bytes_max + store->headroom_bytes / 2;
}

/* Opens or makes the environment. `readers` is how many struct hs_store_read there may be. */
int hs_store_open(struct hs_store *store, uint16_t id, const char *folder, uint64_t bytes_max,
		  uint32_t readers, struct hs_fault *fault) HS_MUSTCHECK;
void hs_store_close(struct hs_store *store);
void hs_store_name(char *name, size_t size, uint16_t id);

/* The writer. Errors: HS_EFULL, HS_EIO, with write.failure set. */
int hs_store_begin(struct hs_store *store) HS_MUSTCHECK;
int hs_store_commit(struct hs_store *store) HS_MUSTCHECK;
void hs_store_abort(struct hs_store *store);
/* Leaves the transaction open, its changes logged: they may be answered now, and what comes next
 * runs on top of them. Readers who want a changed key are turned away until the commit. Only when
 * hs_store_can_postpone says so: the disk must have room for that commit, since it may not fail. */
void hs_store_postpone_commit(struct hs_store *store);
bool hs_store_can_postpone(struct hs_store *store);
/* Is there no room on the disk for `more` bytes of changes, besides what deletes may need? */
bool hs_store_disk_full(struct hs_store *store, uint64_t more);
/* Takes back what was not kept. What was is made again from `kept`, in a transaction that stays
 * open. That writes nothing to the disk, so it works on one that fails, too; unless LMDB
 * refuses (a failed write of its meta page is final) or the transaction is too large for memory. */
int hs_store_rollback(struct hs_store *store) HS_MUSTCHECK;
/* Drops from `kept` what the last hs_store_postpone_commit added. hs_store_rollback must follow. */
void hs_store_drop_last_postponed(struct hs_store *store);
/* The commit of what was logged has failed: keeps it after all. hs_store_rollback must follow. */
void hs_store_postpone_failed_commit(struct hs_store *store);
/* The store is not written any more. What was kept and not committed can be read by nobody: readers
 * are turned away as before. */
void hs_store_give_up(struct hs_store *store);
/* An operation tried out inside the transaction: it can be taken back alone. */
int hs_store_nested_begin(struct hs_store *store) HS_MUSTCHECK;
int hs_store_nested_commit(struct hs_store *store) HS_MUSTCHECK;
void hs_store_nested_abort(struct hs_store *store);
/* Brings `notes` up to date with the last put. */
void hs_store_note_last_put(struct hs_store *store);
/* Pages reachable by the transaction, in bytes. */
uint64_t hs_store_used(struct hs_store *store);
/* LMDB reports a write cut short by a full disk as an input or output error, whatever the reason.
 * Finds out, and sets write.failure. */
void hs_store_explain(struct hs_store *store);
const char *hs_store_failure_text(const struct hs_store *store);

/* A change from the log, made again. A missing key to delete is fine. */
struct hs_redo_entry;
int hs_store_apply(struct hs_store *store, const struct hs_redo_entry *entry) HS_MUSTCHECK;

/* Pins the last commit, as pin_next, and copies the meta pages that lead to it: 2 * page_bytes.
 * Also says how long the file is. */
int hs_store_pin(struct hs_store *store, char *meta, uint64_t *file_bytes) HS_MUSTCHECK;
/* pin_next's checkpoint is on disk: it takes the place of pin. */
void hs_store_pin_advance(struct hs_store *store);

/* A reader. Renew takes a snapshot of the last commit, rest gives it back. `commits` is the store's
 * count, read before. HS_EBUSY: only the writer knows whether it can be read. */
void hs_store_read_init(struct hs_store_read *read, struct hs_store *store);
int hs_store_read_renew(struct hs_store_read *read, uint64_t commits) HS_MUSTCHECK;
void hs_store_read_release(struct hs_store_read *read);
void hs_store_read_deinit(struct hs_store_read *read);

/* LMDB's and the system's codes as ours. */
int hs_store_error(int rc);

/* For all that open a store's file with LMDB: the names of its trees, their handles (LMDB's code), and how many
 * pages are reachable. */
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
