/* The data folder: opens it, recovers it, and gives out its stores, log and checkpoints. It knows
 * the layout of the folder and the way back after a crash. It knows no command and starts no
 * writer.
 *
 *     format           version, partitions, seed, checksum; written last when a database is made
 *     format.copy      the same: without the seed nothing else could be read
 *     store-000 …      LMDB, one file per partition (and LMDB's store-000-lock, of no value)
 *     log-0, log-1     redo.h
 *     checkpoint-0, -1 checkpoint.h
 *
 * The process that uses the folder holds a lock (flock) on the folder itself.
 *
 * Recovery is one path, whether the last process ended well, was killed, or lost power: restore the
 * checkpoint's meta pages, replay the log from there, make a new checkpoint. Before anything is
 * written, the checkpoint files and the log are checked. Damage is refused with a message that
 * names the file; it is never taken for an earlier state.
 *
 * One thread opens and closes; the committer uses it in between. Readers only read `stores`, `folder` and `log`. */
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
	uint64_t seed; /* secret: places keys within their slots, seeds checksums */
	struct hs_store *stores;
	struct hs_redo redo;
	struct hs_checkpoint checkpoint;
};

/* `readers`: the number of threads that will read. On failure everything is closed again and
 * `fault` holds one line that says what is wrong. */
int hs_database_open(struct hs_database *database, const struct hs_embedded_options *options,
		     uint32_t readers, struct hs_log *log, struct hs_fault *fault) HS_MUSTCHECK;
void hs_database_close(struct hs_database *database);

/* Makes a checkpoint of the stores and waits for it. The log starts over behind it, so the log must
 * hold nothing that the stores do not have. No group may be in progress. */
int hs_database_checkpoint(struct hs_database *database, struct hs_fault *fault) HS_MUSTCHECK;

/* `ks` met a record with a wrong checksum: resets ks->damaged, adds one to `count` and logs the
 * key. After 16 it logs only when the count is a power of two. Call on the thread that owns
 * `count`. */
void hs_database_report_damaged(const struct hs_database *database, uint16_t store,
				struct hs_keyspace *ks, struct hs_counter *count);

/* Locks the folder for this process. The lock lasts until *lock_fd is closed. HS_EBUSY when another
 * process holds it. After an error *lock_fd is -1 or open: close it then, too. */
int hs_database_lock(const char *folder, int *lock_fd, struct hs_fault *fault) HS_MUSTCHECK;

/* Applies the log's records from *lsn on (replay.c) and sets *lsn to the number behind the last.
 * `over_gaps`: also applies records behind gaps. */
int hs_replay(struct hs_database *database, uint64_t *lsn, bool over_gaps,
	      struct hs_fault *fault) HS_MUSTCHECK;

#endif
