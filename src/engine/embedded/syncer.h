/* The syncer waits for the disk, so that the committer need not. It gets one group at a time, syncs the log and
 * sends the group's replies; meanwhile the committer runs the next group on top of this one's changes.
 *
 *     committer   run 1 │ log 1 ─ run 2 ───────── │ log 2 ─ run 3 ───
 *     syncer                └─ sync 1 ─ answer 1     └─ sync 2 ─ answer 2
 *
 * A group is handed over only when the one before it is answered. So replies keep their order, and
 * a reply never leaves before the writes that it depends on are on disk.
 *
 * When a sync fails, the syncer replaces every reply of the group, reads included, by a MISCONF
 * error: the outcome is unknown, and writes are refused until a restart. Replies that a worker
 * writes from a lent snapshot stay: they show durable data. `result` keeps the errno; the committer
 * sees it and takes the group's changes back (group_disk.c). A restart replays the log and may or
 * may not find the group's record.
 *
 * The group that the committer ran meanwhile is never logged. The stores that either group changed are rolled back
 * to the state that was acknowledged before. The unlogged group's operations on these stores run again one by one:
 * a write gets a MISCONF error, which says that the write is refused and has not happened; a read shows the
 * acknowledged state.
 *
 * The thread that starts and stops the committer calls start, and stop after it has joined the
 * committer's thread. The committer's thread calls submit and wait. `synced` and `idle` are called
 * on the syncer's thread. The syncer owns a chain from submit until its replies are sent. */
#ifndef HS_ENGINE_EMBEDDED_SYNCER_H
#define HS_ENGINE_EMBEDDED_SYNCER_H

#include "base/check.h"
#include "core/op.h"
#include "engine/embedded/redo.h"
#include "engine/engine.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <uv.h>

/* Finished operations on their way back to the workers, one chain per worker. Used by one thread. */
struct hs_completions {
	const struct hs_engine_host *host;
	struct hs_ops *ready; /* index: the worker */
};

void hs_completions_init(struct hs_completions *completions, const struct hs_engine_host *host);
void hs_completions_deinit(struct hs_completions *completions);
/* Sends the operations of `chain`, which ends with NULL, back to their workers, in order. */
void hs_completions_send(struct hs_completions *completions, struct hs_op *chain);

struct hs_syncer {
	struct hs_redo *redo;
	struct hs_completions completions;
	/* Called when a group is on disk, before the group's replies are sent. */
	void (*synced)(void *context);
	void (*idle)(void *context); /* called when the syncer can take another group */
	void *context;
	uv_thread_t thread;
	uv_mutex_t mutex;
	uv_cond_t cond;
	struct hs_op *chain; /* the group that is being synced */
	_Atomic bool busy;
	bool stop;	    /* protected by the mutex */
	_Atomic int result; /* negative errno of the sync that failed; never reset to 0 */
};

void hs_syncer_start(struct hs_syncer *syncer, struct hs_redo *redo,
		     const struct hs_engine_host *host, void (*synced)(void *context),
		     void (*idle)(void *context), void *context);
void hs_syncer_stop(struct hs_syncer *syncer);

static inline bool hs_syncer_busy(struct hs_syncer *syncer)
{
	return atomic_load(&syncer->busy);
}

/* Syncs the log, then sends the replies of the chain. The syncer must not be busy. */
void hs_syncer_submit(struct hs_syncer *syncer, struct hs_op *chain);
/* Waits until the syncer is not busy. Returns 0, or the negative errno of the failed sync. */
int hs_syncer_wait(struct hs_syncer *syncer) HS_MUSTCHECK;

#endif
