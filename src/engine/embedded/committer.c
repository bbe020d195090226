#include "engine/embedded/committer.h"

#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <string.h>

enum {
	SWEEP_US = 100 * 1000,
	/* pause between sweeps while expired keys remain and operations wait */
	SWEEP_BUSY_US = 1000,
	SWEEP_KEYS = 256,     /* in each store, when no operation waits */
	SWEEP_BUSY_KEYS = 32, /* in each store, when operations wait */
};

/* Wakes the committer if it sleeps. No wake-up is lost: either this thread sees `asleep`, or the committer sees
 * the new operation before it sleeps. */
static void wake(struct hs_committer *committer)
{
	if (atomic_load(&committer->asleep) && atomic_exchange(&committer->asleep, false)) {
		uv_mutex_lock(&committer->mutex);
		uv_cond_signal(&committer->cond);
		uv_mutex_unlock(&committer->mutex);
	}
}

void hs_committer_push(struct hs_committer *committer, struct hs_op *newest, struct hs_op *oldest,
		       size_t count)
{
	hs_mpsc_push(&committer->queue, newest, oldest, offsetof(struct hs_op, next));
	if (atomic_load(&committer->asleep) &&
	    atomic_fetch_sub(&committer->ops_missing, (int64_t)count) <= (int64_t)count)
		wake(committer);
}

static uint64_t now_us(struct hs_committer *committer)
{
	return committer->host->now(committer->host->context).mono_us;
}

/* Moves all operations from `queue` to `taken`; returns their number. */
static size_t take(struct hs_committer *committer)
{
	struct hs_op *op = hs_mpsc_take(&committer->queue, offsetof(struct hs_op, next)), *next;
	size_t count = 0;

	for (; op; op = next, count++) {
		next = op->next;
		hs_ops_push(&committer->taken, op);
	}
	return count;
}

/* Takes all queued operations. On busy cores the committer first lets other threads run (sched_yield), which may
 * queue more operations: a sync costs the same for one operation or fifty. */
static void gather(struct hs_committer *committer)
{
	take(committer);
	if (!committer->taken.first)
		return;
	sched_yield();
	take(committer);
}

/* Sleeps until an operation is pushed, the group wait ends, or the next sweep or commit is due. */
static void sleep_a_while(struct hs_committer *committer, bool wait_for_more)
{
	const struct hs_group_wait *group_wait = &committer->group_wait;
	uint64_t now = now_us(committer);
	uint64_t until = committer->sweep_at_us;

	/* A group that runs or is being synced commits stores when it ends. Only without groups does the time of
	 * the next postponed commit matter. */
	if (committer->maintain_at_us < until && hs_group_empty(&committer->group) &&
	    !hs_syncer_busy(&committer->syncer))
		until = committer->maintain_at_us;
	if (wait_for_more && group_wait->until_us < until)
		until = group_wait->until_us;
	if (now >= until)
		return;
	uv_mutex_lock(&committer->mutex);
	atomic_store(&committer->ops_missing,
		     wait_for_more ? (int64_t)(group_wait->in_flight - committer->group.count) : 0);
	atomic_store(&committer->asleep, true);
	if (hs_mpsc_empty(&committer->queue) && !atomic_load(&committer->stop) &&
	    (wait_for_more || hs_group_empty(&committer->group) ||
	     hs_syncer_busy(&committer->syncer)))
		uv_cond_timedwait(&committer->cond, &committer->mutex, (until - now) * 1000);
	atomic_store(&committer->asleep, false);
	uv_mutex_unlock(&committer->mutex);
}

/* Moves the first `count` operations from `taken` to `run`. */
static void move_to_group(struct hs_committer *committer, size_t count)
{
	while (count-- > 0) {
		struct hs_op *op = hs_ops_pop(&committer->taken);

		atomic_fetch_sub_explicit(&committer->database->stores[op->partition].queued, 1,
					  memory_order_relaxed);
		hs_ops_push(&committer->run, op);
	}
}

static void sweep(struct hs_committer *committer)
{
	uint64_t now = now_us(committer);
	bool busy = committer->taken.first || !hs_mpsc_empty(&committer->queue);
	bool more;

	if (now < committer->sweep_at_us)
		return;
	more = hs_group_sweep(&committer->group, busy ? SWEEP_BUSY_KEYS : SWEEP_KEYS);
	committer->sweep_at_us = now_us(committer) + (!more ? SWEEP_US : busy ? SWEEP_BUSY_US : 0);
}

/* Sends the changed keys to the tracking workers as events. When this is called, readers already see the changes
 * or are redirected to the writer. */
static void tell(struct hs_committer *committer)
{
	const struct hs_engine_host *host = committer->host;
	struct hs_changed *changed = &committer->group.changed;

	if (hs_changed_empty(changed))
		return;
	if (changed->all)
		host->event(host->context,
			    hs_event_create(&(struct hs_event){.kind = HS_EVENT_CHANGED_ALL}));
	if (changed->count > 0)
		host->event(host->context, hs_event_create_changed(changed));
	hs_changed_clear(changed);
}

/* Ends the group. Its replies leave at once if the group was synced; otherwise after the syncer has synced the
 * log. */
static void finish(struct hs_committer *committer)
{
	size_t count = committer->group.count;
	struct hs_op *chain;
	bool ready;

	/* If the queue is empty, no operation can run during the sync: handing the group to the syncer would only
	 * cost time. */
	ready = hs_group_finish(&committer->group,
				committer->run.first && !hs_mpsc_empty(&committer->queue));
	tell(committer);
	chain = committer->run.first;
	committer->run = (struct hs_ops){0};
	hs_group_wait_answered(&committer->group_wait, count, take(committer));
	if (!ready) {
		committer->syncing = count;
		hs_syncer_submit(&committer->syncer, chain);
	} else if (chain) {
		hs_completions_send(&committer->completions, chain);
	}
}

/* True: the group waits for more operations before the committer logs it. */
static bool waits_for_more(struct hs_committer *committer, bool stop)
{
	struct hs_group *group = &committer->group;

	if (stop || !committer->run.first || hs_group_full(group) || !group->database->redo.sync)
		return false;
	return hs_group_wait_for_more(&committer->group_wait, group->count,
				      hs_counter_get(&group->sync_us), now_us(committer));
}

/* The committer's thread. While the syncer is busy with one group, the next group runs and grows. When the syncer
 * is idle, the committer logs the group and hands it over. */
static void run(void *argument)
{
	struct hs_committer *committer = argument;
	struct hs_group *group = &committer->group;

	pthread_setname_np(pthread_self(), "committer");
	for (;;) {
		bool stop = atomic_load(&committer->stop), wait_for_more = false;

		gather(committer);
		if (committer->taken.first)
			move_to_group(committer, hs_group_add(group, committer->taken.first));
		sweep(committer);
		if (!hs_group_empty(group) &&
		    (!hs_syncer_busy(&committer->syncer) || hs_group_full(group))) {
			wait_for_more = waits_for_more(committer, stop);
			if (!wait_for_more) {
				finish(committer);
				continue;
			}
		}
		if (hs_group_empty(group) && !hs_syncer_busy(&committer->syncer)) {
			if (stop && !committer->taken.first)
				break;
			committer->maintain_at_us = hs_group_maintain(group);
		}
		if (hs_syncer_busy(&committer->syncer))
			hs_group_wait_answered(&committer->group_wait, committer->syncing,
					       group->count);
		sleep_a_while(committer, wait_for_more);
	}
	hs_group_checkpoint(group);
	/* After a disk failure transactions are still open. LMDB requires that a transaction is ended by the
	 * thread that began it. The log has every acknowledged change. */
	for (uint16_t id = 0; id < committer->database->partitions; id++)
		hs_store_abort(&committer->database->stores[id]);
}

static void on_synced(void *context)
{
	hs_group_durable(&((struct hs_committer *)context)->group);
}

static void on_syncer_idle(void *context)
{
	wake(context);
}

static int barrier(void *context)
{
	return hs_syncer_wait(&((struct hs_committer *)context)->syncer);
}

void hs_committer_start(struct hs_committer *committer, struct hs_database *database,
			const struct hs_engine_host *host)
{
	memset(committer, 0, sizeof *committer);
	committer->database = database;
	committer->host = host;
	committer->maintain_at_us = UINT64_MAX;
	hs_completions_init(&committer->completions, host);
	hs_group_init(&committer->group, database, host);
	hs_snapshot_loans_init(&committer->loans, database);
	committer->group.loans = &committer->loans;
	committer->group.barrier = barrier;
	committer->group.barrier_context = committer;
	hs_check(uv_mutex_init(&committer->mutex) == 0);
	hs_check(uv_cond_init(&committer->cond) == 0);
	hs_syncer_start(&committer->syncer, &database->redo, host, on_synced, on_syncer_idle,
			committer);
	hs_check(uv_thread_create(&committer->thread, run, committer) == 0);
}

void hs_committer_stop(struct hs_committer *committer)
{
	uv_mutex_lock(&committer->mutex);
	atomic_store(&committer->stop, true);
	uv_cond_signal(&committer->cond);
	uv_mutex_unlock(&committer->mutex);
	uv_thread_join(&committer->thread);
	hs_syncer_stop(&committer->syncer);
	uv_cond_destroy(&committer->cond);
	uv_mutex_destroy(&committer->mutex);
	hs_group_deinit(&committer->group);
	hs_snapshot_loans_deinit(&committer->loans);
	hs_completions_deinit(&committer->completions);
}
