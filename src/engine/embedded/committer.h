/* The committer: the one thread that writes, for all stores. It takes whatever the workers have
 * queued, runs it as a group (group.h), and sends the answers back, one chain per worker. While it
 * is busy the next group gathers by itself: the more load, the larger the groups. In between it
 * sweeps expired keys and keeps checkpoints going. It sleeps when there is nothing to do. */
#ifndef HS_ENGINE_EMBEDDED_COMMITTER_H
#define HS_ENGINE_EMBEDDED_COMMITTER_H

#include "base/mpsc.h"
#include "core/op.h"
#include "engine/embedded/database.h"
#include "engine/embedded/group.h"
#include "engine/engine.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

struct hs_committer {
	struct hs_database *database;
	const struct hs_engine_host *host;
	struct hs_group group;

	struct hs_mpsc queue; /* of hs_op, by `next` */
	_Atomic bool asleep;  /* somebody must wake it after pushing */
	_Atomic bool stop;
	uv_mutex_t mutex;
	uv_cond_t cond;
	uv_thread_t thread;

	/* The thread's own. */
	struct hs_op *first, *last;		/* taken, not yet run */
	struct hs_op **done_first, **done_last; /* by worker */
	uint64_t sweep_at_us;
	uint64_t tend_at_us; /* when a store must commit what it keeps */
};

void hs_committer_start(struct hs_committer *committer, struct hs_database *database,
			const struct hs_engine_host *host);

/* A chain that leads from the newest to the oldest. Any thread. */
void hs_committer_push(struct hs_committer *committer, struct hs_op *newest, struct hs_op *oldest);

/* Runs what is queued, makes a checkpoint, ends the thread. */
void hs_committer_stop(struct hs_committer *committer);

#endif
