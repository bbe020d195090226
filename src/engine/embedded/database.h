/* The data folder: everything in it, opened, recovered and consistent. It knows how a folder is
 * laid out and how it comes back after a crash; it knows no command and starts no writer.
 *
 *     format           version, partitions, seed, checksum; written last when a database is made
 *     format.copy      the same: without the seed nothing else could be read
 *     store-000 …      LMDB, one file per partition (and LMDB's store-000-lock, of no value)
 *     log-0, log-1     redo.h
 *     checkpoint-0, -1 checkpoint.h
 *
 * The process that uses the folder holds a lock (flock) on the folder itself.
 *
 * Coming back is one path, whether the last process ended well, was killed, or the power went: put
 * the checkpoint's meta pages back, replay the log from there, make a new checkpoint. Before
 * anything is written, checkpoint files and log are checked: damage is refused with a message that
 * names the file, never taken for an earlier state. */
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
	uint64_t seed; /* secret: places keys within slots, seeds checksums */
	struct hs_store *stores;
	struct hs_redo redo;
	struct hs_checkpoint checkpoint;
};

/* `readers` is how many threads will read. On failure everything is closed again and `fault` says
 * in one line what is wrong. */
int hs_database_open(struct hs_database *database, const struct hs_embedded_options *options,
		     uint32_t readers, struct hs_log *log, struct hs_fault *fault) HS_MUSTCHECK;
void hs_database_close(struct hs_database *database);

/* A checkpoint of the stores as they are, waited for; the log, which must hold nothing they do not
 * have, starts anew behind it. No group may be under way. */
int hs_database_checkpoint(struct hs_database *database, struct hs_fault *fault) HS_MUSTCHECK;

/* A context of `store` has found a damaged key: counts it and says so in the log, not each time when
 * there are many. The counter's thread. */
void hs_database_report_damaged(const struct hs_database *database, uint16_t store,
				struct hs_keyspace *ks, struct hs_counter *count);

/* Locks the folder for this process until *lock_fd, then -1 or open, is closed. HS_EBUSY when
 * another process has it. */
int hs_database_lock(const char *folder, int *lock_fd, struct hs_fault *fault) HS_MUSTCHECK;

/* Applies what the log holds from `lsn` on (replay.c); what lies behind gaps, too, if `over_gaps`.
 * Gives the lsn behind the last record. */
int hs_replay(struct hs_database *database, uint64_t *lsn, bool over_gaps,
	      struct hs_fault *fault) HS_MUSTCHECK;

#endif
