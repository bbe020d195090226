#include "engine/embedded/committer.h"

#include "base/mem.h"

#include <sched.h>
#include <stddef.h>
#include <string.h>

enum {
	SWEEP_US = 100 * 1000,
	SWEEP_BUSY_US = 1000, /* while there is a backlog of expired keys */
	SWEEP_KEYS = 256,     /* per store, when nobody waits */
	SWEEP_BUSY_KEYS = 32, /* per store, when somebody does */
};

void hs_committer_push(struct hs_committer *committer, struct hs_op *newest, struct hs_op *oldest)
{
	hs_mpsc_push(&committer->queue, newest, oldest, offsetof(struct hs_op, next));
	/* Either this sees that it sleeps, or it sees the push before it falls asleep. */
	if (atomic_load(&committer->asleep) && atomic_exchange(&committer->asleep, false)) {
		uv_mutex_lock(&committer->mutex);
		uv_cond_signal(&committer->cond);
		uv_mutex_unlock(&committer->mutex);
	}
}

static uint64_t now_us(struct hs_committer *committer)
{
	return committer->host->now(committer->host->context).mono_us;
}

static void take(struct hs_committer *committer)
{
	struct hs_op *chain = hs_mpsc_take(&committer->queue, offsetof(struct hs_op, next));

	if (!chain)
		return;
	if (committer->first)
		committer->last->next = chain;
	else
		committer->first = chain;
	while (chain->next)
		chain = chain->next;
	committer->last = chain;
}

/* Everything that waits; and when the cores are busy, what the others bring when they are let go
 * first. A sync costs the same for one operation or fifty. */
static void gather(struct hs_committer *committer)
{
	take(committer);
	if (!committer->first)
		return;
	sched_yield();
	take(committer);
}

/* Until something is pushed, or the next sweep or commit is due. */
static void sleep_a_while(struct hs_committer *committer)
{
	uint64_t now = now_us(committer);
	uint64_t until = committer->sweep_at_us < committer->tend_at_us ? committer->sweep_at_us
									: committer->tend_at_us;

	if (now >= until)
		return;
	uv_mutex_lock(&committer->mutex);
	atomic_store(&committer->asleep, true);
	if (hs_mpsc_empty(&committer->queue) && !atomic_load(&committer->stop))
		uv_cond_timedwait(&committer->cond, &committer->mutex, (until - now) * 1000);
	atomic_store(&committer->asleep, false);
	uv_mutex_unlock(&committer->mutex);
}

/* Hands `count` operations back to their workers, in order. */
static void answer(struct hs_committer *committer, size_t count)
{
	struct hs_op *op = committer->first;

	for (; count > 0; count--) {
		struct hs_op *next = op->next;
		uint32_t worker = op->worker;

		atomic_fetch_sub_explicit(&committer->database->stores[op->partition].queued, 1,
					  memory_order_relaxed);
		op->next = NULL;
		if (committer->done_first[worker])
			committer->done_last[worker]->next = op;
		else
			committer->done_first[worker] = op;
		committer->done_last[worker] = op;
		op = next;
	}
	committer->first = op;
	for (uint32_t worker = 0; worker < committer->host->workers; worker++) {
		struct hs_op *chain = committer->done_first[worker];

		committer->done_first[worker] = NULL;
		if (chain)
			committer->host->done(committer->host->context, worker, chain);
	}
}

static void sweep(struct hs_committer *committer)
{
	uint64_t now = now_us(committer);
	bool busy = committer->first || !hs_mpsc_empty(&committer->queue);
	bool more;

	if (now < committer->sweep_at_us)
		return;
	more = hs_group_sweep(&committer->group, busy ? SWEEP_BUSY_KEYS : SWEEP_KEYS);
	committer->sweep_at_us = now_us(committer) + (!more ? SWEEP_US : busy ? SWEEP_BUSY_US : 0);
}

static void run(void *argument)
{
	struct hs_committer *committer = argument;

	for (;;) {
		bool stop = atomic_load(&committer->stop);

		gather(committer);
		if (committer->first)
			answer(committer, hs_group_run(&committer->group, committer->first));
		else if (stop)
			break;
		else
			sleep_a_while(committer);
		sweep(committer);
		committer->tend_at_us = hs_group_tend(&committer->group);
	}
	hs_group_checkpoint(&committer->group);
}

void hs_committer_start(struct hs_committer *committer, struct hs_database *database,
			const struct hs_engine_host *host)
{
	memset(committer, 0, sizeof *committer);
	committer->database = database;
	committer->host = host;
	committer->tend_at_us = UINT64_MAX;
	committer->done_first = hs_mem_zalloc(host->workers * sizeof(struct hs_op *));
	committer->done_last = hs_mem_zalloc(host->workers * sizeof(struct hs_op *));
	hs_group_init(&committer->group, database, host);
	hs_check(uv_mutex_init(&committer->mutex) == 0);
	hs_check(uv_cond_init(&committer->cond) == 0);
	hs_check(uv_thread_create(&committer->thread, run, committer) == 0);
}

void hs_committer_stop(struct hs_committer *committer)
{
	uv_mutex_lock(&committer->mutex);
	atomic_store(&committer->stop, true);
	uv_cond_signal(&committer->cond);
	uv_mutex_unlock(&committer->mutex);
	uv_thread_join(&committer->thread);
	uv_cond_destroy(&committer->cond);
	uv_mutex_destroy(&committer->mutex);
	hs_group_deinit(&committer->group);
	hs_mem_free(&committer->done_first);
	hs_mem_free(&committer->done_last);
}
