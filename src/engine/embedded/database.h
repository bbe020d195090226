/* The data folder. This module opens and recovers the folder, and has its stores, log and checkpoints. The module
 * knows the layout of the folder and how to recover after a crash. It knows no command and starts no writer.
 *
 *     format           version, partitions, seed, checksum; written last when a database is made
 *     format.copy      a copy of `format`: without the seed no other file could be read
 *     store-000 …      LMDB, one file per partition (and LMDB's store-000-lock, of no value)
 *     log-0, log-1     redo.h
 *     checkpoint-0, -1 checkpoint.h
 *
 * The process that uses the folder holds a lock (flock) on the folder itself.
 *
 * Recovery is one path, whether the last process ended well, was killed, or lost power: restore the
 * checkpoint's meta pages, replay the log from there, make a new checkpoint. Before anything is
 * written, the checkpoint files and the log are checked. If a file is damaged, the start fails with a message that
 * names the file; damage is never taken for an earlier state.
 *
 * One thread opens and closes the database; in between the committer uses it. Readers only read `stores`, `folder`
 * and `log`. */
#ifndef HS_ENGINE_EMBEDDED_DATABASE_H
#define HS_ENGINE_EMBEDDED_DATABASE_H

#include "base/log.h"
#include "engine/embedded/checkpoint.h"
#include "engine/embedded/embedded.h"
#include "engine/embedded/files.h"
#include "engine/embedded/redo.h"
#include "engine/embedded/store.h"
#include "keyspace/keyspace.h"

#include <stdint.h>

struct hs_database {
	char folder[HS_PATH_BYTES_MAX];
	int lock_fd;
	struct hs_log *log;
	uint16_t partitions;
	/* secret: decides where keys lie within their slots, and seeds the checksums */
	uint64_t seed;
	struct hs_store *stores;
	struct hs_redo redo;
	struct hs_checkpoint checkpoint;
};

/* `readers`: the number of threads that will read. After a failure all files are closed again, and `fault` has one
 * line with the reason. */
int hs_database_open(struct hs_database *database, const struct hs_embedded_options *options,
		     uint32_t readers, struct hs_log *log, struct hs_fault *fault) HS_MUSTCHECK;
void hs_database_close(struct hs_database *database);

/* Makes a checkpoint of the stores and waits for it. The log starts over behind the checkpoint, so all changes in
 * the log must be in the stores. No group may be in progress. */
int hs_database_checkpoint(struct hs_database *database, struct hs_fault *fault) HS_MUSTCHECK;

/* Reports a record with a wrong checksum that `ks` met: resets ks->damaged, adds one to `count` and logs the key.
 * After 16 damaged records it logs only if the count is a power of two. Only the thread that owns `count` may
 * call. */
void hs_database_report_damaged(const struct hs_database *database, uint16_t store,
				struct hs_keyspace *ks, struct hs_counter *count);

/* Locks the folder for this process. The lock lasts until *lock_fd is closed. HS_EBUSY: another process holds the
 * lock. After an error, too, the caller closes *lock_fd unless it is -1. */
int hs_database_lock(const char *folder, int *lock_fd, struct hs_fault *fault) HS_MUSTCHECK;

/* Applies the log's records from *lsn on (replay.c) and sets *lsn to the number behind the last record.
 * `over_gaps`: also applies records behind gaps. */
int hs_replay(struct hs_database *database, uint64_t *lsn, bool over_gaps,
	      struct hs_fault *fault) HS_MUSTCHECK;

#endif
