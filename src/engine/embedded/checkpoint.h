/* Checkpoints: how the log is kept short without ever stopping the writer for the disk.
 *
 *     time ──────────────────────────────────────────────────────────────────►
 *     writer    ─ group ─ group ─┬ group ─ group ─ group ─ group ─┬ group ─
 *                                │ begin: pin every store,        │ collect: the old pin goes,
 *                                │ copy its meta pages, turn log  │ the old log may be reused
 *     thread                     └── sync stores, write file ─────┘
 *
 * LMDB's commits are not synced, so after a power cut any page written since may be garbage. But
 * the pages of a pinned snapshot are not written to, and they were synced before the checkpoint
 * file said so. The file holds each store's meta pages, that is, the way to the pinned snapshot:
 * put back, they make LMDB see exactly that snapshot, whatever lies around it. The log has the
 * rest.
 *
 * There are two files, overwritten in turn and big enough from the start: a checkpoint must not
 * fail for want of disk space. The one that has the higher lsn counts.
 *
 * Each file holds its checkpoint twice. The second copy is written when the first is synced, and the
 * pins move on when both are. So whatever tears a write leaves one whole copy in each file, of this
 * checkpoint or of the one that the file held before. A file without a whole copy is damaged, and
 * then the other file is no way out: if it is the older one, its pages have been written to since.
 *
 * A checkpoint that fails is the last one: the kernel reports a failed write once, then takes the
 * pages for clean, so that a later sync of the same files would succeed without them. The log
 * keeps what it has, and the writer refuses to write, until a restart has read the files again.
 *
 * begin, collect and the pins belong to the writer's thread. */
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
	int next; /* the file to write next */
	uint64_t seed;
	uint64_t log_bytes; /* each log file is at least that long: set before the first begin */
	bool urgent; /* somebody waits for it, and nobody for the log: set while none is running */
	char *image; /* what goes into the file, twice */
	size_t image_bytes;

	uv_thread_t thread;
	uv_mutex_t mutex;
	uv_cond_t cond;
	bool stop;			       /* under the mutex */
	_Atomic int state;		       /* changed under the mutex, read anywhere */
	int result;			       /* of the one that is over */
	char failure[HS_PATH_BYTES_MAX + 128]; /* one line, when result is not 0 */
	struct hs_engine_counters counters;
};

/* The last checkpoint of a folder, as found on disk. */
struct hs_checkpoint_found {
	char *image;
	uint64_t lsn;
	uint64_t log_bytes; /* each log file is at least that long */
	int file;
	int broken_file;   /* has no whole copy; -1: none */
	int broken_copies; /* in both files */
};

/* Finds the last checkpoint. HS_ECORRUPT when a file has no whole copy; then `image`, if not NULL, is
 * the other file's. Writes nothing. */
int hs_checkpoint_find(const char *folder, uint16_t stores, uint64_t seed,
		       struct hs_checkpoint_found *found, struct hs_fault *fault) HS_MUSTCHECK;
void hs_checkpoint_found_deinit(struct hs_checkpoint_found *found);
/* A store's two meta pages, and how long its file must be. */
struct hs_bytes hs_checkpoint_metas(const struct hs_checkpoint_found *found, uint16_t store,
				    uint64_t *file_bytes);
/* Puts it back into the store files. Nothing is written before all of them were found fit. */
int hs_checkpoint_restore(const char *folder, const struct hs_checkpoint_found *found,
			  uint16_t stores, struct hs_fault *fault) HS_MUSTCHECK;
const char *hs_checkpoint_file_name(int file);

/* Opens the files, making them when missing, and starts the thread. `next` is the file to be
 * written first: not the one that was restored. */
int hs_checkpoint_start(struct hs_checkpoint *checkpoint, const char *folder,
			struct hs_store *stores, uint16_t count, uint64_t seed, int next,
			struct hs_fault *fault) HS_MUSTCHECK;
void hs_checkpoint_stop(struct hs_checkpoint *checkpoint);

/* Pins the stores as they are and lets the thread do the rest. Everything before `lsn` is in them.
 * None may be running. Fails, with the same line in `failure`, when one has failed before. */
int hs_checkpoint_begin(struct hs_checkpoint *checkpoint, uint64_t lsn) HS_MUSTCHECK;

/* Is none running any more? Takes in the result of one that is over; waits for it if told to.
 * True when idle. `result` is set when one was taken in, else 0. */
bool hs_checkpoint_collect(struct hs_checkpoint *checkpoint, bool wait, int *result);

#endif
