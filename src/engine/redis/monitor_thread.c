/* The loop of the monitor thread: timers, sockets, and a queue of ops from other threads. The mutex protects the
 * results that other threads read. */
#include "engine/redis/monitor_thread.h"

#include "base/limits.h"
#include "base/mem.h"
#include "base/mpsc.h"
#include "engine/redis/subscriber.h"
#include "upstream/conn.h"

#include <stdio.h>
#include <sys/random.h>
#include <uv.h>

/* room for partitions if no server answers at the start */
enum { CAPACITY_UNKNOWN = 64 };

struct hs_monitor_thread {
	struct hs_monitor_thread_options options;
	uv_thread_t thread;
	uv_loop_t loop;
	uv_async_t wake;
	uv_timer_t timer;  /* fires at hs_monitor_deadline_us */
	uint64_t timer_us; /* when `timer` fires */
	uv_timer_t subscriber_timer;
	char *buffer; /* HS_READ_BYTES, shared by all connections */
	struct hs_monitor *monitor;
	struct hs_subscriber *subscriber;
	struct hs_conn_driver monitor_driver, subscriber_driver;

	/* Any thread writes these fields. */
	_Atomic bool stopping, topology_suspect;
	_Atomic uint64_t recounts; /* number of the last hs_monitor_thread_recount */
	struct hs_mpsc ops;	   /* ops of hs_monitor_thread_submit, not handled yet */

	uv_mutex_t mutex; /* protects the fields below */
	uv_cond_t startup_cond;
	bool startup_done; /* hs_monitor_thread_create may return */
	uint16_t capacity; /* 0: not fixed yet */
	const struct hs_routes *routes;
	char unavailable_reason[HS_REDIS_WHY_BYTES];
	struct hs_engine_partition partitions[HS_PARTITIONS_MAX];
	struct hs_engine_servers servers;
};

/* ---- calls of other threads ---- */

void hs_monitor_thread_unavailable_reason(struct hs_monitor_thread *thread, char *why,
					  size_t why_size)
{
	uv_mutex_lock(&thread->mutex);
	snprintf(why, why_size, "%s", thread->unavailable_reason);
	uv_mutex_unlock(&thread->mutex);
}

uint16_t hs_monitor_thread_capacity(const struct hs_monitor_thread *thread)
{
	return thread->capacity; /* create fixes the capacity before it returns */
}

const struct hs_routes *hs_monitor_thread_routes(struct hs_monitor_thread *thread)
{
	const struct hs_routes *routes;

	uv_mutex_lock(&thread->mutex);
	routes = thread->routes;
	if (routes)
		hs_routes_ref(routes, 1);
	uv_mutex_unlock(&thread->mutex);
	return routes;
}

static void copy(struct hs_monitor_thread *thread, void *to, const void *from, size_t size)
{
	uv_mutex_lock(&thread->mutex);
	memcpy(to, from, size);
	uv_mutex_unlock(&thread->mutex);
}

void hs_monitor_thread_partition(struct hs_monitor_thread *thread, uint16_t partition,
				 struct hs_engine_partition *stats)
{
	copy(thread, stats, &thread->partitions[partition], sizeof *stats);
}

void hs_monitor_thread_servers(struct hs_monitor_thread *thread, struct hs_engine_servers *servers)
{
	copy(thread, servers, &thread->servers, sizeof *servers);
}

void hs_monitor_thread_suspect_topology(struct hs_monitor_thread *thread)
{
	if (!atomic_load_explicit(&thread->topology_suspect, memory_order_relaxed) &&
	    !atomic_exchange(&thread->topology_suspect, true))
		uv_async_send(&thread->wake);
}

void hs_monitor_thread_submit(struct hs_monitor_thread *thread, struct hs_op *op)
{
	hs_mpsc_push(&thread->ops, op, op, offsetof(struct hs_op, next));
	uv_async_send(&thread->wake);
}

uint64_t hs_monitor_thread_recount(struct hs_monitor_thread *thread)
{
	uint64_t number = atomic_fetch_add(&thread->recounts, 1) + 1;

	uv_async_send(&thread->wake);
	return number;
}

/* ---- the clock ---- */

static uint64_t now_us(void)
{
	return uv_hrtime() / 1000;
}

static void on_timer(uv_timer_t *timer);

/* Called after every call into the monitor: its deadline may have changed. */
static void set_timer(struct hs_monitor_thread *thread)
{
	uint64_t at_us = hs_monitor_deadline_us(thread->monitor), now = now_us();

	if (at_us == thread->timer_us)
		return;
	thread->timer_us = at_us;
	uv_timer_start(&thread->timer, on_timer, at_us > now ? (at_us - now + 999) / 1000 : 0, 0);
}

static void on_timer(uv_timer_t *timer)
{
	struct hs_monitor_thread *thread = timer->data;

	thread->timer_us = 0;
	/* The polls begin here. If a worker finds out later that the routes are stale, the polls may have missed
	 * the change that it has seen. So the flag is cleared before the polls: that worker wakes this thread once
	 * more. */
	if (atomic_exchange(&thread->topology_suspect, false))
		hs_monitor_suspect_topology(thread->monitor, now_us());
	hs_monitor_tick(thread->monitor, now_us());
	set_timer(thread);
}

/* ---- connections ---- */

static void monitor_up(void *context, struct hs_upstream *upstream)
{
	struct hs_monitor_thread *thread = context;

	hs_monitor_up(thread->monitor, now_us(), upstream);
	set_timer(thread);
}

static void monitor_down(void *context, struct hs_upstream *upstream, const char *why)
{
	struct hs_monitor_thread *thread = context;

	hs_monitor_down(thread->monitor, now_us(), upstream, why);
	set_timer(thread);
}

static void monitor_receive(void *context, struct hs_upstream *upstream, const char *data,
			    size_t len)
{
	struct hs_monitor_thread *thread = context;

	hs_monitor_receive(thread->monitor, now_us(), upstream, data, len);
	set_timer(thread);
}

static void monitor_open(void *context, struct hs_upstream *upstream,
			 const struct hs_redis_address *at)
{
	struct hs_monitor_thread *thread = context;
	const struct hs_conn_server server = {
		.host = at->host, .port = at->port, .expected_id = ""};

	hs_conn_open(&thread->monitor_driver, upstream, &server);
}

static void subscriber_up(void *context, struct hs_upstream *upstream)
{
	struct hs_monitor_thread *thread = context;

	hs_subscriber_up(thread->subscriber, now_us(), upstream);
}

static void subscriber_down(void *context, struct hs_upstream *upstream, const char *why)
{
	struct hs_monitor_thread *thread = context;

	hs_subscriber_down(thread->subscriber, now_us(), upstream, why);
}

static void subscriber_receive(void *context, struct hs_upstream *upstream, const char *data,
			       size_t len)
{
	struct hs_monitor_thread *thread = context;

	hs_subscriber_receive(thread->subscriber, now_us(), upstream, data, len);
}

static void subscriber_open(void *context, struct hs_upstream *upstream,
			    const struct hs_route_node *at)
{
	struct hs_monitor_thread *thread = context;
	const struct hs_conn_server server = {
		.host = at->host, .port = at->port, .expected_id = at->id};

	hs_conn_open(&thread->subscriber_driver, upstream, &server);
}

static void conn_close(void *context, struct hs_upstream *upstream)
{
	(void)context;
	hs_conn_close(upstream);
}

static void conn_send(void *context, struct hs_upstream *upstream)
{
	(void)context;
	hs_conn_send(upstream);
}

/* ---- the monitor's calls ---- */

static uint16_t monitor_capacity(void *context, uint16_t wanted)
{
	struct hs_monitor_thread *thread = context;
	uint16_t capacity;

	uv_mutex_lock(&thread->mutex);
	if (thread->capacity == 0)
		thread->capacity = wanted;
	capacity = thread->capacity;
	uv_mutex_unlock(&thread->mutex);
	return capacity;
}

static void monitor_routes(void *context, const struct hs_routes *routes)
{
	struct hs_monitor_thread *thread = context;
	const struct hs_routes *old;

	uv_mutex_lock(&thread->mutex);
	old = thread->routes;
	thread->routes = routes;
	uv_mutex_unlock(&thread->mutex);
	hs_routes_unref(&old);
	hs_routes_ref(routes, 1);
	thread->options.routes(thread->options.context, routes);
	hs_subscriber_route(thread->subscriber, now_us(), routes);
}

static void monitor_learned(void *context, struct hs_learned *learned)
{
	struct hs_monitor_thread *thread = context;

	thread->options.host->learned(thread->options.host->context, learned);
}

static void monitor_partition(void *context, uint16_t partition,
			      const struct hs_engine_partition *stats)
{
	struct hs_monitor_thread *thread = context;

	copy(thread, &thread->partitions[partition], stats, sizeof *stats);
}

static void monitor_servers(void *context, const struct hs_engine_servers *servers)
{
	struct hs_monitor_thread *thread = context;

	copy(thread, &thread->servers, servers, sizeof *servers);
}

static void monitor_unavailable_reason(void *context, const char *why)
{
	struct hs_monitor_thread *thread = context;

	uv_mutex_lock(&thread->mutex);
	snprintf(thread->unavailable_reason, sizeof thread->unavailable_reason, "%s", why);
	uv_mutex_unlock(&thread->mutex);
}

static void monitor_startup_done(void *context)
{
	struct hs_monitor_thread *thread = context;

	uv_mutex_lock(&thread->mutex);
	thread->startup_done = true;
	uv_cond_signal(&thread->startup_cond);
	uv_mutex_unlock(&thread->mutex);
}

static void op_done(void *context, struct hs_op *op)
{
	struct hs_monitor_thread *thread = context;

	op->next = NULL;
	thread->options.host->done(thread->options.host->context, op->worker, op);
}

static void monitor_recounted(void *context, uint64_t number)
{
	struct hs_monitor_thread *thread = context;

	thread->options.host->recounted(thread->options.host->context, number);
}

static const struct hs_monitor_calls monitor_calls = {
	.open = monitor_open,
	.close = conn_close,
	.send = conn_send,
	.capacity = monitor_capacity,
	.routes = monitor_routes,
	.learned = monitor_learned,
	.partition = monitor_partition,
	.servers = monitor_servers,
	.unavailable_reason = monitor_unavailable_reason,
	.startup_done = monitor_startup_done,
	.done = op_done,
	.recounted = monitor_recounted,
};

static void subscriber_event(void *context, struct hs_event *event)
{
	struct hs_monitor_thread *thread = context;

	thread->options.host->event(thread->options.host->context, event);
}

static void subscriber_topology_suspect(void *context)
{
	hs_monitor_thread_suspect_topology(context);
}

static const struct hs_subscriber_calls subscriber_calls = {
	.open = subscriber_open,
	.close = conn_close,
	.send = conn_send,
	.event = subscriber_event,
	.done = op_done,
	.topology_suspect = subscriber_topology_suspect,
};

static void on_subscriber_timer(uv_timer_t *timer)
{
	struct hs_monitor_thread *thread = timer->data;

	hs_subscriber_tick(thread->subscriber, now_us());
}

/* ---- the thread ---- */

static void take_ops(struct hs_monitor_thread *thread)
{
	struct hs_op *op = hs_mpsc_take(&thread->ops, offsetof(struct hs_op, next)), *next;

	for (; op; op = next) {
		next = op->next;
		if (op->kind == HS_OP_HOST)
			hs_monitor_configure(thread->monitor, now_us(), op);
		else
			hs_subscriber_submit(thread->subscriber, now_us(), op);
	}
}

static void stop(struct hs_monitor_thread *thread)
{
	hs_subscriber_destroy(&thread->subscriber);
	hs_monitor_destroy(&thread->monitor);
	uv_close((uv_handle_t *)&thread->wake, NULL);
	uv_close((uv_handle_t *)&thread->timer, NULL);
	uv_close((uv_handle_t *)&thread->subscriber_timer, NULL);
}

static void on_wake(uv_async_t *wake)
{
	struct hs_monitor_thread *thread = wake->data;

	take_ops(thread);
	if (atomic_load(&thread->stopping)) {
		stop(thread);
		return;
	}
	hs_monitor_recount(thread->monitor, now_us(), atomic_load(&thread->recounts));
	if (atomic_load(&thread->topology_suspect))
		hs_monitor_suspect_topology(thread->monitor, now_us());
	set_timer(thread);
}

static void run(void *argument)
{
	struct hs_monitor_thread *thread = argument;

	uv_run(&thread->loop, UV_RUN_DEFAULT);
}

/* ---- creation and end ---- */

static void wait_startup(struct hs_monitor_thread *thread)
{
	uint64_t until_ns = uv_hrtime() + thread->options.start_ms_max * 1000000;

	uv_mutex_lock(&thread->mutex);
	while (!thread->startup_done && uv_hrtime() < until_ns)
		uv_cond_timedwait(&thread->startup_cond, &thread->mutex, until_ns - uv_hrtime());
	if (thread->capacity == 0)
		thread->capacity = CAPACITY_UNKNOWN;
	uv_mutex_unlock(&thread->mutex);
}

static void init_loop(struct hs_monitor_thread *thread)
{
	hs_check(uv_loop_init(&thread->loop) == 0);
	hs_check(uv_async_init(&thread->loop, &thread->wake, on_wake) == 0);
	hs_check(uv_timer_init(&thread->loop, &thread->timer) == 0);
	hs_check(uv_timer_init(&thread->loop, &thread->subscriber_timer) == 0);
	thread->wake.data = thread->timer.data = thread->subscriber_timer.data = thread;
	thread->buffer = hs_mem_alloc(HS_READ_BYTES);
	hs_check(uv_mutex_init(&thread->mutex) == 0);
	hs_check(uv_cond_init(&thread->startup_cond) == 0);
}

static uint64_t random_seed(void)
{
	uint64_t seed;

	hs_check(getrandom(&seed, sizeof seed, 0) == (ssize_t)sizeof seed);
	return seed;
}

static void create_monitor(struct hs_monitor_thread *thread)
{
	struct hs_monitor_options options = {
		.url = thread->options.url,
		.refresh_ms = thread->options.refresh_ms,
		.seed = random_seed(),
		.log = thread->options.host->log,
		.slots = thread->options.slots,
	};

	for (size_t i = 0; i < HS_PARTITIONS_MAX; i++)
		thread->partitions[i].absent = true;
	thread->monitor_driver = (struct hs_conn_driver){
		.loop = &thread->loop,
		.conn_config = thread->options.conn_config,
		.buffer = thread->buffer,
		.context = thread,
		.up = monitor_up,
		.down = monitor_down,
		.receive = monitor_receive,
	};
	thread->monitor = hs_monitor_create(&options, &monitor_calls, thread);
}

static void create_subscriber(struct hs_monitor_thread *thread)
{
	struct hs_subscriber_options options = {
		.log = thread->options.host->log,
		.cluster = thread->options.url->kind == HS_REDIS_CLUSTER,
		.seed = random_seed(),
	};
	const uint64_t tick_ms = HS_SUBSCRIBER_TICK_US / 1000;

	thread->subscriber_driver = (struct hs_conn_driver){
		.loop = &thread->loop,
		.conn_config = thread->options.conn_config,
		.buffer = thread->buffer,
		.context = thread,
		.up = subscriber_up,
		.down = subscriber_down,
		.receive = subscriber_receive,
	};
	thread->subscriber = hs_subscriber_create(&options, &subscriber_calls, thread);
	uv_timer_start(&thread->subscriber_timer, on_subscriber_timer, tick_ms, tick_ms);
}

struct hs_monitor_thread *hs_monitor_thread_create(const struct hs_monitor_thread_options *options)
{
	struct hs_monitor_thread *thread = hs_mem_zalloc(sizeof *thread);

	thread->options = *options;
	init_loop(thread);
	create_subscriber(thread);
	create_monitor(thread);
	hs_monitor_start(thread->monitor, now_us());
	set_timer(thread);
	hs_check(uv_thread_create(&thread->thread, run, thread) == 0);
	wait_startup(thread);
	return thread;
}

void hs_monitor_thread_destroy(struct hs_monitor_thread **pointer)
{
	struct hs_monitor_thread *thread = *pointer;

	atomic_store(&thread->stopping, true);
	uv_async_send(&thread->wake);
	uv_thread_join(&thread->thread);
	hs_check(uv_loop_close(&thread->loop) == 0);
	hs_routes_unref(&thread->routes);
	uv_cond_destroy(&thread->startup_cond);
	uv_mutex_destroy(&thread->mutex);
	hs_mem_free(&thread->buffer);
	hs_mem_free(pointer);
}
