/* Checkpoints keep the log short. The writer rarely waits for a checkpoint: only when the log or a store is full.
 *
 *     time ──────────────────────────────────────────────────────────────────►
 *     writer    ─ group ─ group ─┬ group ─ group ─ group ─ group ─┬ group ─
 *                                │ begin: pin every store,        │ collect: the old pin goes,
 *                                │ copy its meta pages, turn log  │ the old log may be reused
 *     thread                     └── sync stores, write file ─────┘
 *
 * LMDB's commits are not synced, so after a power cut any page written since the last checkpoint
 * may be garbage. But LMDB never overwrites a page of a pinned snapshot, and these pages are synced
 * before the checkpoint file is written. The file holds each store's meta pages, which lead to the
 * pinned snapshot. A start writes them back into the stores: LMDB then sees exactly that snapshot.
 * The log holds all later changes.
 *
 * There are two files, overwritten in turn, and large enough from the start: a full disk cannot
 * make a checkpoint fail. The file with the higher lsn counts.
 *
 * Each file holds its checkpoint twice. The second copy is written when the first is synced, and
 * the pins move on when both are. So after a torn write each file still has one whole copy: of the checkpoint that
 * was being written, or of the previous one in the same file. A file without a whole copy is damaged. The other
 * file cannot replace a damaged one: it may have the older checkpoint, and LMDB has reused the pages of the older
 * snapshot.
 *
 * When a checkpoint fails, no other follows. The kernel reports a failed write once and then takes the pages for
 * clean: a later sync of the same files would succeed although these pages are not on disk. The log keeps its
 * records, and the writer refuses writes until a restart has read the files again.
 *
 * Threads: the writer's thread calls begin and collect and owns the pins. The checkpoint's own
 * thread syncs and writes. `folder` and `stores` are borrowed for the life of the struct. */
#ifndef HS_ENGINE_EMBEDDED_CHECKPOINT_H
#define HS_ENGINE_EMBEDDED_CHECKPOINT_H

#include "base/check.h"
#include "engine/embedded/files.h"
#include "engine/embedded/store.h"
#include "engine/engine.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

enum hs_checkpoint_state { HS_CHECKPOINT_IDLE, HS_CHECKPOINT_RUNNING, HS_CHECKPOINT_FINISHED };

struct hs_checkpoint {
	const char *folder; /* borrowed */
	struct hs_store *stores;
	uint16_t count;
	int fd[2];
	int next; /* index of the file that the next checkpoint overwrites */
	uint64_t seed;
	uint64_t log_bytes; /* least size of each log file; set before the first begin */
	/* Sync at full speed: a caller waits for the checkpoint, and no client waits for the log. Changed only
	 * while no checkpoint is running. */
	bool urgent;
	char *image; /* one copy of the file, which is written twice */
	size_t image_bytes;

	uv_thread_t thread;
	uv_mutex_t mutex;
	uv_cond_t cond;
	bool stop;	   /* protected by the mutex */
	_Atomic int state; /* changed under the mutex, read by any thread */
	/* result of the checkpoint; valid in state FINISHED */
	int result;
	char failure[HS_PATH_BYTES_MAX + 128]; /* one line of text if `result` is not 0 */
	struct hs_engine_counters counters;
};

/* The last checkpoint of a folder, as found on disk. */
struct hs_checkpoint_found {
	char *image;
	uint64_t lsn;
	uint64_t log_bytes; /* each log file is at least this long */
	int file;
	int broken_file;   /* index of a file whose copies are both damaged; -1: none */
	int broken_copies; /* damaged copies in both files together */
};

/* Reads both files and finds the last checkpoint. Writes nothing. HS_ECORRUPT: a file has no undamaged copy;
 * `image` is then the other file's copy, or NULL if that file has none either. */
int hs_checkpoint_find(const char *folder, uint16_t stores, uint64_t seed,
		       struct hs_checkpoint_found *found, struct hs_fault *fault) HS_MUSTCHECK;
void hs_checkpoint_found_deinit(struct hs_checkpoint_found *found);
/* Returns a store's two meta pages; writes the least length of the store's file to *file_bytes. */
struct hs_bytes hs_checkpoint_metas(const struct hs_checkpoint_found *found, uint16_t store,
				    uint64_t *file_bytes);
/* Writes the checkpoint's meta pages into the store files and syncs these files. Checks all store files before it
 * writes to the first. */
int hs_checkpoint_restore(const char *folder, const struct hs_checkpoint_found *found,
			  uint16_t stores, struct hs_fault *fault) HS_MUSTCHECK;
const char *hs_checkpoint_file_name(int file);

/* Opens the checkpoint files, creates missing ones, and starts the thread. `next`: index of the file to overwrite
 * first, which must not be the one that was restored. */
int hs_checkpoint_start(struct hs_checkpoint *checkpoint, const char *folder,
			struct hs_store *stores, uint16_t count, uint64_t seed, int next,
			struct hs_fault *fault) HS_MUSTCHECK;
void hs_checkpoint_stop(struct hs_checkpoint *checkpoint);

/* Pins the last commit of every store and hands the rest of the work to the thread. The stores contain all changes
 * before `lsn`. No checkpoint may be running. If an earlier checkpoint failed, this call fails with the same text
 * in `failure`. */
int hs_checkpoint_begin(struct hs_checkpoint *checkpoint, uint64_t lsn) HS_MUSTCHECK;

/* Takes the result of a finished checkpoint. True: no checkpoint is running and none has failed. False with
 * *result 0: one is running. False with another *result: one has failed with this error; no other follows, and
 * each later call returns the same. `wait`: first waits for a running checkpoint. */
bool hs_checkpoint_collect(struct hs_checkpoint *checkpoint, bool wait, int *result);

#endif
