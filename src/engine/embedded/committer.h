/* The committer: the one thread that writes, for all stores. It takes the operations that the workers have queued
 * and runs them as a group (group.h). When the disk is idle it logs the group and hands it to the syncer
 * (syncer.h), which sends the group's replies. While the disk is busy the next group grows: the higher the load,
 * the larger the groups. When the clients that were just answered are likely to send again soon, the committer
 * waits for them (group_wait.h). Between groups it removes expired keys, commits stores and begins checkpoints. It
 * sleeps when there is nothing to do.
 *
 * Any thread may push. All other fields belong to the committer's thread, except the queue, the
 * atomics and what the mutex protects. An operation belongs to the committer from the push until
 * the engine's host gets it back (hs_engine_host.done). When the disk fails, the committer goes on:
 * it refuses writes and answers reads (group_disk.c). */
#ifndef HS_ENGINE_EMBEDDED_COMMITTER_H
#define HS_ENGINE_EMBEDDED_COMMITTER_H

#include "base/mpsc.h"
#include "core/op.h"
#include "engine/embedded/database.h"
#include "engine/embedded/group.h"
#include "engine/embedded/group_wait.h"
#include "engine/embedded/syncer.h"
#include "engine/engine.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

struct hs_committer {
	struct hs_database *database;
	const struct hs_engine_host *host;
	struct hs_group group;
	struct hs_snapshot_loans loans;
	struct hs_syncer syncer;

	struct hs_mpsc queue; /* struct hs_op, linked by `next` */
	/* a push must wake the committer, unless ops_missing says otherwise */
	_Atomic bool asleep;
	/* The number of operations that the group wait still waits for. A push to a sleeping committer subtracts
	 * its count, and wakes the committer only if the result is 0 or less. */
	_Atomic int64_t ops_missing;
	_Atomic bool stop;
	uv_mutex_t mutex;
	uv_cond_t cond;
	uv_thread_t thread;

	/* Only the committer's thread uses the fields below. */
	struct hs_ops taken; /* operations not yet run */
	struct hs_ops run;   /* operations of the unfinished group */
	size_t syncing;	     /* number of operations that the busy syncer has */
	struct hs_group_wait group_wait;
	struct hs_completions completions;
	uint64_t sweep_at_us;
	uint64_t maintain_at_us; /* when the next postponed commit is due */
};

void hs_committer_start(struct hs_committer *committer, struct hs_database *database,
			const struct hs_engine_host *host);

/* Queues a chain of `count` operations, linked from the newest to the oldest. Any thread. */
void hs_committer_push(struct hs_committer *committer, struct hs_op *newest, struct hs_op *oldest,
		       size_t count);

/* Runs the queued operations, makes a checkpoint and ends the thread. */
void hs_committer_stop(struct hs_committer *committer);

#endif
