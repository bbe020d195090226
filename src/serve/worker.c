/* A worker's loop. One round of it:
 *
 *     sockets ─ read ─▶ core ─▶ operations ┐              wake-up: messages, finished operations,
 *                                          │                       operations of other workers, events
 *     end of the round (on_check): fold batches leave ─▶ operations to the engine ─▶ replies to the clients
 */
#include "serve/worker.h"

#include "absorb/fold/stats.h"
#include "absorb/shared.h"
#include "base/mem.h"
#include "push/stats.h"
#include "serve/clock.h"
#include "serve/control.h"
#include "stages/stages.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
	TICK_MS = 100,
	DRAIN_TICK_MS = 10,
	YIELDS = 3,
	DRAIN_QUIET_US = 50000, /* shutdown: a client that is silent for this long is closed */
};

#define OP_NEXT offsetof(struct hs_op, next)

/* The core's calls: an operation goes to another worker, to the control thread, or to the engine. */
static enum hs_submit submit(void *context, struct hs_op *op)
{
	struct hs_worker *worker = context;

	if (op->kind == HS_OP_PEER) {
		struct hs_worker *asked = &worker->host->workers[op->partition];

		hs_mpsc_push(&asked->peer_ops, op, op, OP_NEXT);
		uv_async_send(&asked->wake);
		return HS_SUBMIT_QUEUED;
	}
	if (op->kind == HS_OP_HOST) {
		hs_control_ask(worker->host, op);
		return HS_SUBMIT_QUEUED;
	}
	return worker->engine->calls->submit(worker->engine, op);
}

static void write_reply(void *context, struct hs_op *op, bool wanted)
{
	struct hs_worker *worker = context;

	worker->engine->calls->write_reply(worker->engine, op, wanted);
}

static void cancel(void *context, struct hs_op *op)
{
	struct hs_worker *worker = context;

	worker->engine->calls->cancel(worker->engine, op);
}

static bool unblock(void *context, struct hs_op *op, bool error)
{
	struct hs_worker *worker = context;
	const struct hs_engine_calls *calls = worker->engine->calls;

	return calls->unblock && calls->unblock(worker->engine, op, error);
}

static void unavailable_reason(void *context, char *text, size_t size)
{
	struct hs_worker *worker = context;

	if (worker->engine->calls->unavailable_reason)
		worker->engine->calls->unavailable_reason(worker->engine, text, size);
}

static struct hs_bytes script(void *context, struct hs_bytes digest)
{
	struct hs_worker *worker = context;
	const struct hs_engine_calls *calls = worker->engine->calls;

	return calls->script ? calls->script(worker->engine, worker->index, digest)
			     : (struct hs_bytes){"", 0};
}

static uint64_t mono_us(void *context)
{
	(void)context;
	return hs_clock_mono_us();
}

static void tell(void *context, struct hs_event *event)
{
	struct hs_worker *worker = context;

	hs_workers_broadcast(worker->host, event);
}

static const struct hs_core_calls core_calls = {
	.submit = submit,
	.write_reply = write_reply,
	.cancel = cancel,
	.unblock = unblock,
	.script = script,
	.broadcast = tell,
	.unavailable_reason = unavailable_reason,
	.mono_us = mono_us,
};

struct hs_worker_message *hs_worker_message_create(enum hs_worker_message_kind kind)
{
	struct hs_worker_message *message = hs_mem_zalloc(sizeof *message);

	message->kind = kind;
	return message;
}

void hs_worker_post(struct hs_worker *worker, struct hs_worker_message *message)
{
	hs_mpsc_push(&worker->messages, message, message, offsetof(struct hs_worker_message, next));
	uv_async_send(&worker->wake);
}

void hs_worker_complete(struct hs_worker *worker, struct hs_op *chain)
{
	struct hs_op *last = chain;

	while (last->next)
		last = last->next;
	hs_mpsc_push(&worker->done, chain, last, OP_NEXT);
	uv_async_send(&worker->wake);
}

/* Takes the reference over. */
static void queue_event(struct hs_worker *worker, struct hs_event *event)
{
	enum hs_event_queue_put put = hs_event_queue_put(&worker->events, event);

	if (put != HS_EVENT_QUEUED)
		atomic_fetch_add_explicit(&worker->stats.events_dropped.value, 1,
					  memory_order_relaxed);
	if (put == HS_EVENT_QUEUE_FULL)
		hs_log(worker->host->log, HS_LOG_WARN,
		       "worker %u: its event queue is full (%zu MiB): pub/sub messages and key "
		       "changes are "
		       "dropped until it has caught up (events_dropped counts them)",
		       worker->index, HS_EVENT_QUEUE_BYTES_MAX / HS_MIB);
	uv_async_send(&worker->wake);
}

/* Key changes concern only a worker with tracking clients. A worker counts its first tracking client before it
 * asks the engine for changes, so no change is missed. */
static bool concerns(const struct hs_event *event, struct hs_worker *worker)
{
	bool changes = event->kind == HS_EVENT_CHANGED || event->kind == HS_EVENT_CHANGED_ALL;

	return !changes || hs_counter_get(&hs_push_stats(worker->core)->tracking_clients) > 0;
}

void hs_workers_broadcast(struct hs_host *host, struct hs_event *event)
{
	for (uint32_t i = 0; i < host->workers_count; i++) {
		if (!concerns(event, &host->workers[i]))
			continue;
		hs_event_ref(event, 1);
		queue_event(&host->workers[i], event);
	}
	hs_event_unref(&event);
}

static void read_events(struct hs_worker *worker, struct hs_now now, bool tell)
{
	struct hs_queued_event *queued = hs_event_queue_take(&worker->events);

	/* Reads from here on must see the changes that the events are about. */
	if (queued && tell)
		worker->engine->calls->refresh(worker->engine, worker->index);
	for (; queued; queued = hs_event_queue_done(&worker->events, queued)) {
		if (tell)
			hs_core_event(worker->core, now, queued->event);
	}
}

void hs_worker_core_options(const struct hs_options *options, struct hs_core_options *core)
{
	*core = (struct hs_core_options){
		.acl = hs_options_acl(options),
		.output_bytes_max = (uint64_t)options->output_limit,
		.engine_inflight_bytes_max = strcmp(options->engine, "embedded") == 0
						     ? 0
						     : (uint64_t)options->engine_inflight_bytes,
		.slowlog_us = options->slowlog_slower_than,
		.slowlog_len_max = (uint32_t)options->slowlog_max_len,
		.acllog_len_max = (uint32_t)options->acllog_max_len,
		.idle_s_max = (uint32_t)options->timeout,
		.announce_port = (uint16_t)options->cluster_announce_port,
		.announce_tls_port = (uint16_t)options->cluster_announce_tls_port,
		.tracking_keys_max = (uint64_t)options->tracking_table_max_keys,
		.hot = {.share = (double)options->hot_share / 1e6,
			.share_exit = (double)options->hot_share_exit / 1e6,
			.requests = (double)options->hot_requests_min,
			.cool_down_us = (uint64_t)options->hot_cool_down * 1000,
			.fold_gain_min = (uint32_t)options->fold_gain_min},
		.fold = options->fold,
		.fold_waiters_max = (uint32_t)options->fold_waiters_max,
		.rules = options->rules,
		.mitigate = (enum hs_mitigate)options->mitigate,
		.cache_bytes = (uint64_t)options->cache_bytes,
		.cache_entry_bytes = (uint64_t)options->cache_entry_bytes,
	};
	hs_rules_ref(core->rules);
	snprintf(core->announce_host, sizeof core->announce_host, "%s",
		 options->cluster_announce_ip);
}

/* Releases the references of the struct; the core has taken its own. */
static void release_held(struct hs_core_options *core)
{
	struct hs_acl *acl = (struct hs_acl *)(uintptr_t)core->acl;

	hs_acl_unref(&acl);
	core->acl = NULL;
	hs_rules_unref(&core->rules);
}

/* Repeats because each step can make new work: a lost server connection ends the requests that waited on it, and a
 * client that has read its replies may run its next requests. */
void hs_worker_end_round(struct hs_worker *worker)
{
	do {
		if (hs_core_needs_flush(worker->core))
			hs_core_flush(worker->core, hs_clock_now());
		worker->engine->calls->flush(worker->engine, worker->index);
	} while (hs_connection_flush(worker) || hs_core_needs_flush(worker->core));
}

/* One timer for the nearest deadline of the core: there are few. */
static void set_alarm(struct hs_worker *worker);

static void on_alarm(uv_timer_t *timer)
{
	struct hs_worker *worker = timer->data;

	worker->engine->calls->refresh(worker->engine, worker->index);
	hs_core_alarm(worker->core, hs_clock_now());
	hs_worker_end_round(worker);
	set_alarm(worker);
}

static void set_alarm(struct hs_worker *worker)
{
	uint64_t deadline_us = hs_core_deadline(worker->core);
	uint64_t now_us = hs_clock_mono_us();

	if (deadline_us > 0)
		uv_timer_start(&worker->alarm, on_alarm,
			       deadline_us > now_us ? (deadline_us - now_us) / 1000 + 1 : 0, 0);
}

/* Yields the CPU before the loop polls again. On a busy machine client processes that wait for this CPU then send
 * their next requests, and one round serves them together instead of one wake-up each: measured, up to a fifth less
 * CPU per request at pipeline 1. If no process waits, it costs next to nothing.
 *
 * Not while operations are in flight: their completion would wait. Not in front of servers: there it cost
 * milliseconds of latency and saved nothing. After rounds answered by the cache it saved a seventh of the CPU, but a
 * quiet client beside them waited five times as long. */
static void yield_cpu(struct hs_worker *worker)
{
	if (worker->engine->shared_connections ||
	    hs_counter_get(&hs_core_stats(worker->core)->inflight) > 0)
		return;
	for (int i = 0; i < YIELDS; i++)
		sched_yield();
}

static void on_poll_again(uv_idle_t *poll_again)
{
	(void)poll_again;
}

/* Delays the end of the round by one round of the loop if operations have completed and requests still wait for hot
 * keys. The clients just answered send again at once and then join the next batch. Without the delay the clients of a
 * hot key split into two halves that take turns, and each half waits for two syncs of the disk. Other clients wait
 * for one more poll of the sockets. Not in front of servers, see yield_cpu. */
static bool delay_flush(struct hs_worker *worker)
{
	bool wanted = worker->ops_completed && !worker->flush_delayed &&
		      !worker->engine->shared_connections &&
		      hs_counter_get(&hs_fold_stats(worker->core)->waiting) > 0;

	worker->ops_completed = false;
	if (wanted) {
		uv_idle_start(&worker->poll_again, on_poll_again);
		sched_yield();
	} else if (worker->flush_delayed) {
		uv_idle_stop(&worker->poll_again);
	}
	worker->flush_delayed = wanted;
	return wanted;
}

static void on_check(uv_check_t *check)
{
	struct hs_worker *worker = check->data;

	hs_connection_flush(worker);
	if (delay_flush(worker))
		return;
	hs_worker_end_round(worker);
	yield_cpu(worker);
	if (hs_core_deadline(worker->core) > 0)
		set_alarm(worker);
}

static void close_handles(struct hs_worker *worker)
{
	if (worker->engine->calls->detach)
		worker->engine->calls->detach(worker->engine, worker->index);
	uv_close((uv_handle_t *)&worker->wake, NULL);
	uv_close((uv_handle_t *)&worker->tick, NULL);
	uv_close((uv_handle_t *)&worker->alarm, NULL);
	uv_close((uv_handle_t *)&worker->check, NULL);
	uv_close((uv_handle_t *)&worker->poll_again, NULL);
}

/* A worker must not end before the others are drained: they may still wait for its part of CLIENT LIST. */
static bool all_drained(const struct hs_worker *worker)
{
	for (uint32_t i = 0; i < worker->host->workers_count; i++) {
		if (!atomic_load(&worker->host->workers[i].drained))
			return false;
	}
	return true;
}

static void on_drain_tick(uv_timer_t *timer)
{
	struct hs_worker *worker = timer->data;
	struct hs_now now = hs_clock_now();
	bool overdue = now.mono_us >= worker->drain_until_us;
	uint32_t left = hs_core_drain(worker->core, now, overdue ? 0 : DRAIN_QUIET_US);

	worker->engine->calls->refresh(worker->engine, worker->index);
	hs_core_tick(worker->core, now);
	worker->engine->calls->idle(worker->engine, worker->index);
	hs_worker_end_round(worker);
	if (left > 0)
		return;
	atomic_store(&worker->drained, true);
	if (all_drained(worker))
		close_handles(worker);
}

static void on_tick(uv_timer_t *timer)
{
	struct hs_worker *worker = timer->data;

	worker->engine->calls->refresh(worker->engine, worker->index);
	hs_core_tick(worker->core, hs_clock_now());
	hs_connection_tick(worker);
	worker->engine->calls->idle(worker->engine, worker->index); /* the engine has deadlines */
	hs_worker_end_round(worker);
}

static void refuse_client(struct hs_worker *worker, const struct hs_worker_message *client)
{
	close(client->fd);
	atomic_fetch_sub(&worker->clients, 1);
}

static void handle_message(struct hs_worker *worker, struct hs_worker_message *message)
{
	switch (message->kind) {
	case HS_WORKER_CLIENT:
		/* A socket that key_reader.c posted just before the drain. */
		if (worker->draining)
			refuse_client(worker, message);
		else
			hs_connection_open(worker, message);
		break;
	case HS_WORKER_CONFIGURE:
		hs_core_configure(worker->core, &message->options);
		release_held(&message->options);
		hs_tls_context_release(&worker->tls);
		worker->tls = message->context;
		break;
	case HS_WORKER_LEARN:
		hs_core_learn(worker->core, atomic_load(&worker->host->learned));
		break;
	case HS_WORKER_DRAIN:
		worker->draining = true;
		worker->drain_until_us = hs_clock_mono_us() + message->grace_us;
		uv_timer_start(&worker->tick, on_drain_tick, 0, DRAIN_TICK_MS);
		break;
	}
	hs_mem_free(&message);
}

void hs_worker_read_messages(struct hs_worker *worker)
{
	hs_mpsc_each(struct hs_worker_message, message, &worker->messages, next)
		handle_message(worker, message);
}

static void on_wake(uv_async_t *wake)
{
	struct hs_worker *worker = wake->data;
	struct hs_op *op = hs_mpsc_take(&worker->done, OP_NEXT), *next_op;
	/* Read the clock after taking the finished operations: a request that a session runs next must not be dated
	 * before the engine ran the operations that finished. */
	struct hs_now now = hs_clock_now();

	worker->engine->calls->refresh(worker->engine, worker->index);
	/* First: a change of options must hold before the OK for it reaches a client. */
	hs_worker_read_messages(worker);
	for (; op; op = next_op) {
		next_op = op->next;
		worker->ops_completed = true;
		hs_core_complete(worker->core, now, op);
	}
	hs_mpsc_each(struct hs_op, asked, &worker->peer_ops, next)
	{
		hs_core_peer(worker->core, now, asked);
		asked->next = NULL;
		hs_worker_complete(&worker->host->workers[asked->worker], asked);
	}
	read_events(worker, now, true);
	hs_connection_flush(worker);
}

void hs_worker_init(struct hs_worker *worker, struct hs_host *host, uint32_t index, uint64_t seed)
{
	const struct hs_options *options = host->options;
	struct hs_engine *engine = host->engine;
	struct hs_core_options core_options;
	struct hs_core_world world = {
		.commands = &hs_commands,
		.calls = &core_calls,
		.context = worker,
		.log = host->log,
		.worker = index,
		.workers = host->workers_count,
		.partitions = engine->calls->partitions(engine),
		.reads_at_once = engine->reads_at_once,
		.op_scope = engine->op_scope,
		.slots = engine->slots,
		.shared_connections = engine->shared_connections,
		.node_id = host->run_id,
		.slowlog_ids = &host->live.slowlog_ids,
		.stages = hs_stages,
		.seed = seed,
		.key_seed = hs_shared_seed(host->shared),
		.heat = host->heats[index],
		.heats = host->heats,
		.heats_count = host->workers_count,
		.shared = host->shared,
	};

	worker->host = host;
	worker->engine = engine;
	worker->index = index;
	worker->tls = hs_tls_context_hold(host->tls);
	worker->tcp_keepalive_s = (uint32_t)options->tcp_keepalive;
	worker->read_buffer = hs_mem_alloc(HS_READ_BYTES);
	worker->tls_handshake_timeout_us = (uint64_t)options->tls_handshake_timeout * 1000000;
	hs_list_init(&worker->handshakes);
	hs_worker_core_options(options, &core_options);
	worker->core = hs_core_create(&world, &core_options);
	release_held(&core_options);
	uv_loop_init(&worker->loop);
	uv_async_init(&worker->loop, &worker->wake, on_wake);
	uv_timer_init(&worker->loop, &worker->tick);
	uv_timer_init(&worker->loop, &worker->alarm);
	uv_check_init(&worker->loop, &worker->check);
	uv_idle_init(&worker->loop, &worker->poll_again);
	worker->wake.data = worker;
	worker->tick.data = worker;
	worker->alarm.data = worker;
	worker->check.data = worker;
	uv_timer_start(&worker->tick, on_tick, TICK_MS, TICK_MS);
	uv_check_start(&worker->check, on_check);
	if (engine->calls->attach)
		engine->calls->attach(engine, index, &worker->loop);
}

static void run(void *argument)
{
	struct hs_worker *worker = argument;
	char name[16];

	snprintf(name, sizeof name, "worker-%u", worker->index);
	pthread_setname_np(pthread_self(), name);
	uv_run(&worker->loop, UV_RUN_DEFAULT);
}

void hs_worker_start(struct hs_worker *worker)
{
	hs_check(uv_thread_create(&worker->thread, run, worker) == 0);
}

void hs_worker_join(struct hs_worker *worker)
{
	uv_thread_join(&worker->thread);
}

/* Messages that were posted after the loop ended: options and sockets. */
static void drop_messages(struct hs_worker *worker)
{
	hs_mpsc_each(struct hs_worker_message, message, &worker->messages, next)
	{
		if (message->kind == HS_WORKER_CLIENT)
			refuse_client(worker, message);
		release_held(&message->options);
		hs_tls_context_release(&message->context);
		hs_mem_free(&message);
	}
}

void hs_worker_deinit(struct hs_worker *worker)
{
	hs_check(uv_loop_close(&worker->loop) == 0);
	drop_messages(worker);
	read_events(worker, (struct hs_now){0}, false);
	hs_core_destroy(&worker->core);
	hs_mem_free(&worker->read_buffer);
	hs_tls_context_release(&worker->tls);
	hs_buf_deinit(&worker->decrypted);
	hs_buf_deinit(&worker->encrypted);
}
