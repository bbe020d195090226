#include "engine/embedded/syncer.h"

#include "base/mem.h"
#include "wire/reply.h"

#include <pthread.h>
#include <string.h>

void hs_completions_init(struct hs_completions *completions, const struct hs_engine_host *host)
{
	completions->host = host;
	completions->ready = hs_mem_zalloc(host->workers * sizeof *completions->ready);
}

void hs_completions_deinit(struct hs_completions *completions)
{
	hs_mem_free(&completions->ready);
}

void hs_completions_send(struct hs_completions *completions, struct hs_op *chain)
{
	while (chain) {
		struct hs_op *op = chain;

		chain = op->next;
		hs_ops_push(&completions->ready[op->worker], op);
	}
	for (uint32_t worker = 0; worker < completions->host->workers; worker++) {
		struct hs_op *ready = completions->ready[worker].first;

		completions->ready[worker] = (struct hs_ops){0};
		if (ready)
			completions->host->done(completions->host->context, worker, ready);
	}
}

/* Replaces the replies of a group whose sync failed: the group's record may be on disk or not. */
static void tell_failure(struct hs_op *chain, const char *path, int rc)
{
	for (; chain; chain = chain->next) {
		struct hs_reply reply = {.out = chain->out, .resp = chain->resp};

		/* The worker will write this reply from a lent snapshot, which shows durable data. */
		if (!chain->out || chain->reply_unwritten)
			continue;
		chain->out->len = 0;
		hs_reply_errorf(&reply,
				"MISCONF cannot sync '%s': %s; its outcome is unknown, and writes "
				"are refused until a restart",
				path, strerror(-rc));
	}
}

static void run(void *argument)
{
	struct hs_syncer *syncer = argument;

	pthread_setname_np(pthread_self(), "syncer");
	uv_mutex_lock(&syncer->mutex);
	for (;;) {
		struct hs_op *chain;
		int rc;

		while (!syncer->chain && !syncer->stop)
			uv_cond_wait(&syncer->cond, &syncer->mutex);
		if (!syncer->chain)
			break;
		uv_mutex_unlock(&syncer->mutex);
		rc = hs_redo_sync(syncer->redo);
		if (rc == 0) {
			syncer->synced(syncer->context);
		} else {
			atomic_store(&syncer->result, rc);
			tell_failure(syncer->chain, hs_redo_path(syncer->redo), rc);
		}
		chain = syncer->chain;
		syncer->chain = NULL;
		hs_completions_send(&syncer->completions, chain);
		uv_mutex_lock(&syncer->mutex);
		atomic_store(&syncer->busy, false);
		uv_cond_broadcast(&syncer->cond);
		uv_mutex_unlock(&syncer->mutex);
		syncer->idle(syncer->context);
		uv_mutex_lock(&syncer->mutex);
	}
	uv_mutex_unlock(&syncer->mutex);
}

void hs_syncer_start(struct hs_syncer *syncer, struct hs_redo *redo,
		     const struct hs_engine_host *host, void (*synced)(void *context),
		     void (*idle)(void *context), void *context)
{
	memset(syncer, 0, sizeof *syncer);
	syncer->redo = redo;
	syncer->synced = synced;
	syncer->idle = idle;
	syncer->context = context;
	hs_completions_init(&syncer->completions, host);
	hs_check(uv_mutex_init(&syncer->mutex) == 0);
	hs_check(uv_cond_init(&syncer->cond) == 0);
	hs_check(uv_thread_create(&syncer->thread, run, syncer) == 0);
}

void hs_syncer_stop(struct hs_syncer *syncer)
{
	uv_mutex_lock(&syncer->mutex);
	syncer->stop = true;
	uv_cond_broadcast(&syncer->cond);
	uv_mutex_unlock(&syncer->mutex);
	uv_thread_join(&syncer->thread);
	uv_cond_destroy(&syncer->cond);
	uv_mutex_destroy(&syncer->mutex);
	hs_completions_deinit(&syncer->completions);
}

void hs_syncer_submit(struct hs_syncer *syncer, struct hs_op *chain)
{
	hs_check(!hs_syncer_busy(syncer));
	uv_mutex_lock(&syncer->mutex);
	syncer->chain = chain;
	atomic_store(&syncer->busy, true);
	uv_cond_broadcast(&syncer->cond);
	uv_mutex_unlock(&syncer->mutex);
}

int hs_syncer_wait(struct hs_syncer *syncer)
{
	if (hs_syncer_busy(syncer)) {
		uv_mutex_lock(&syncer->mutex);
		while (hs_syncer_busy(syncer))
			uv_cond_wait(&syncer->cond, &syncer->mutex);
		uv_mutex_unlock(&syncer->mutex);
	}
	return atomic_load(&syncer->result);
}
