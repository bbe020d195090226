/* The syncer: waits for the disk so that the committer need not. It gets one group at a time, syncs
 * the log and sends the group's answers; meanwhile the committer runs the next group on top.
 *
 *     committer   run 1 │ log 1 ─ run 2 ───────── │ log 2 ─ run 3 ───
 *     syncer                └─ sync 1 ─ answer 1     └─ sync 2 ─ answer 2
 *
 * A group is handed over only when the one before it is answered, so answers keep their order and
 * an answer never leaves before what it rests on is on disk. */
#ifndef HS_ENGINE_EMBEDDED_SYNCER_H
#define HS_ENGINE_EMBEDDED_SYNCER_H

#include "base/check.h"
#include "core/op.h"
#include "engine/embedded/redo.h"
#include "engine/engine.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <uv.h>

/* Operations on their way back: one chain per worker. For one thread. */
struct hs_completions {
	const struct hs_engine_host *host;
	struct hs_ops *ready; /* by worker */
};

void hs_completions_init(struct hs_completions *completions, const struct hs_engine_host *host);
void hs_completions_deinit(struct hs_completions *completions);
/* Sends all operations of the chain that ends with NULL back to their workers, in order. */
void hs_completions_send(struct hs_completions *completions, struct hs_op *chain);

struct hs_syncer {
	struct hs_redo *redo;
	struct hs_completions completions;
	void (*synced)(void *context); /* called when the disk has a group, before its answers go */
	void (*idle)(void *context);   /* called when it can take another */
	void *context;
	uv_thread_t thread;
	uv_mutex_t mutex;
	uv_cond_t cond;
	struct hs_op *chain; /* being synced */
	_Atomic bool busy;
	bool stop;	    /* under the mutex */
	_Atomic int result; /* negative errno of the first sync that failed: for good */
};

void hs_syncer_start(struct hs_syncer *syncer, struct hs_redo *redo,
		     const struct hs_engine_host *host, void (*synced)(void *context),
		     void (*idle)(void *context), void *context);
void hs_syncer_stop(struct hs_syncer *syncer);

static inline bool hs_syncer_busy(struct hs_syncer *syncer)
{
	return atomic_load(&syncer->busy);
}

/* Syncs what is logged, then answers the chain. It is not busy. */
void hs_syncer_submit(struct hs_syncer *syncer, struct hs_op *chain);
/* Until it is not busy. 0, or why it failed. */
int hs_syncer_wait(struct hs_syncer *syncer) HS_MUSTCHECK;

#endif
