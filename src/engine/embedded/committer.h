/* The committer: the one thread that writes, for all stores. It takes whatever the workers have
 * queued, runs it as part of a group (group.h), and when the disk is free logs that group and
 * leaves it to the syncer (syncer.h), who answers it. While the disk is busy the next group grows:
 * the more load, the larger the groups. And when those who were just answered are likely to be back
 * soon, they are waited for (group_wait.h). In between it sweeps expired keys and keeps checkpoints
 * going. It sleeps when there is nothing to do. */
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

	struct hs_mpsc queue;	     /* of hs_op, by `next` */
	_Atomic bool asleep;	     /* somebody must wake it after pushing, */
	_Atomic int64_t ops_missing; /* unless that leaves it waiting for more */
	_Atomic bool stop;
	uv_mutex_t mutex;
	uv_cond_t cond;
	uv_thread_t thread;

	/* The thread's own. */
	struct hs_ops taken; /* not yet run */
	struct hs_ops run;   /* the group not yet ended */
	size_t syncing;	     /* operations that the syncer has, while it is busy */
	struct hs_group_wait group_wait;
	struct hs_completions completions;
	uint64_t sweep_at_us;
	uint64_t maintain_at_us; /* when a store must commit what it keeps */
};

void hs_committer_start(struct hs_committer *committer, struct hs_database *database,
			const struct hs_engine_host *host);

/* A chain of `count` that leads from the newest to the oldest. Any thread. */
void hs_committer_push(struct hs_committer *committer, struct hs_op *newest, struct hs_op *oldest,
		       size_t count);

/* Runs what is queued, makes a checkpoint, ends the thread. */
void hs_committer_stop(struct hs_committer *committer);

#endif
