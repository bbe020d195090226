/* The redis engine: executes operations on servers.
 *
 *     worker ── submit ──► flow ──► pipes ──► connections on the worker's own loop ──► servers
 *        ▲                   ▲ │                                                         │
 *        └──── finished ─────┴─┼─────────────────────────── replies ─────────────────────┘
 *                              │ topology_suspect
 *                      routes  ▼
 *              monitor thread: topology monitor and subscriber, with connections of their own
 *
 * Every worker has a flow, which decides, and connections (upstream/conn.h), which move its bytes. Workers share
 * the routes, which are immutable, and the scripts, under a mutex. The monitor thread sends new routes to each
 * worker as a message. */
#include "engine/redis/redis.h"

#include "base/list.h"
#include "base/mem.h"
#include "base/mpsc.h"
#include "engine/redis/flow.h"
#include "engine/redis/monitor_thread.h"
#include "engine/redis/scripts.h"
#include "engine/redis/server_options.h"
#include "engine/redis/tracking_sessions.h"
#include "tls/tls.h"
#include "upstream/conn.h"
#include "upstream/names.h"
#include "upstream/url.h"

#include <netdb.h>
#include <string.h>
#include <sys/random.h>
#include <uv.h>

enum { START_MS_MAX = 2000, OPEN_MS_MAX = 2000, TRACKING_REFUSED_MAX = 1024 };

/* A message that brings new routes to one worker. */
struct routes_message {
	struct routes_message *next;
	const struct hs_routes *routes;
};

struct worker {
	struct redis *redis;
	uint32_t index;
	struct hs_flow *flow;
	uv_async_t wake;
	struct hs_mpsc routes_messages;
	struct hs_buf script; /* text of the script looked up last */
	struct hs_conn_driver driver;
	uv_timer_t check;  /* calls hs_flow_check */
	uint64_t check_us; /* interval of `check`; 0: stopped */
	struct hs_tracking_sessions *tracking_sessions;
	_Atomic bool attached;
	struct hs_flow_stats *stats; /* any thread may read it, also after the flow has ended */
	char cache_line_gap[64];
};

struct redis {
	struct hs_engine engine;
	struct hs_engine_host host;
	struct hs_redis_url url;
	char *user, *password; /* used if the URL has none */
	struct hs_conn_config conn_config;
	struct hs_monitor_thread *monitor;
	struct hs_scripts *scripts;
	struct hs_slot_map *slots;
	struct worker *workers;
	_Atomic uint64_t check_every_us; /* interval of the last check_sessions_every */
	uv_mutex_t mutex;		 /* protects the fields below, except `where` */
	/* Addresses of the servers whose refusal to track was logged. */
	char (*tracking_refused)[HS_HOST_BYTES_MAX + 16];
	size_t tracking_refused_count;
	char unavailable_reason[HS_REDIS_WHY_BYTES];
	char where[HS_REDIS_URL_TEXT_BYTES];
};

static struct redis *of(const struct hs_engine *engine)
{
	return (struct redis *)(uintptr_t)engine;
}

static struct hs_now now_of(const struct worker *worker)
{
	return worker->redis->host.now(worker->redis->host.context);
}

/* ---- liveness checks ---- */

static void on_check(uv_timer_t *timer)
{
	struct worker *worker = timer->data;

	hs_flow_check(worker->flow, now_of(worker));
}

/* Starts or stops the timer `check`: it runs while a cache wants checks and the flow has something to check. */
static void update_check_timer(struct worker *worker)
{
	uint64_t wanted_us =
		atomic_load_explicit(&worker->redis->check_every_us, memory_order_relaxed);
	uint64_t us = hs_flow_wants_checks(worker->flow) ? wanted_us : 0;
	uint64_t ms = us < 1000 ? 1 : us / 1000;

	hs_flow_set_caching(worker->flow, wanted_us > 0);
	if (us == worker->check_us)
		return;
	if (us > 0)
		uv_timer_start(&worker->check, on_check, ms, ms);
	else
		uv_timer_stop(&worker->check);
	worker->check_us = us;
}

/* ---- connections, for the flow ---- */

static void answered(struct worker *worker)
{
	worker->redis->host.answered(worker->redis->host.context, worker->index);
}

static struct hs_pipe *pipe_of(struct hs_upstream *upstream)
{
	return hs_list_entry(upstream, struct hs_pipe, upstream);
}

static void on_up(void *context, struct hs_upstream *upstream)
{
	struct worker *worker = context;

	hs_flow_up(worker->flow, now_of(worker), pipe_of(upstream));
	hs_flow_flush(worker->flow, now_of(worker));
	update_check_timer(worker);
}

static void on_down(void *context, struct hs_upstream *upstream, const char *why)
{
	struct worker *worker = context;
	struct hs_pipe *pipe = pipe_of(upstream);

	/* Logged at DEBUG only: the monitor logs a lost server once for all workers. */
	hs_log(worker->redis->host.log, HS_LOG_DEBUG, "%s: %s", pipe->node->text, why);
	hs_flow_down(worker->flow, now_of(worker), pipe, why);
	answered(worker);
}

static void on_receive(void *context, struct hs_upstream *upstream, const char *data, size_t len)
{
	struct worker *worker = context;

	hs_flow_receive(worker->flow, now_of(worker), pipe_of(upstream), data, len);
	answered(worker);
}

/* ---- the flow's calls ---- */

static void flow_finished(void *context, struct hs_now now, struct hs_op *op)
{
	struct worker *worker = context;

	hs_scripts_note(worker->redis->scripts, op);
	worker->redis->host.finished(worker->redis->host.context, worker->index, now, op);
}

static void flow_open(void *context, struct hs_pipe *pipe)
{
	struct worker *worker = context;
	const struct hs_conn_server server = {
		.host = pipe->node->at.host,
		.port = pipe->node->at.port,
		.expected_id = pipe->hello_only ? "" : pipe->node->at.id,
		.hello_only = pipe->hello_only,
	};

	hs_conn_open(&worker->driver, &pipe->upstream, &server);
}

static void flow_close(void *context, struct hs_pipe *pipe)
{
	(void)context;
	hs_conn_close(&pipe->upstream);
}

static void flow_send(void *context, struct hs_pipe *pipe)
{
	(void)context;
	hs_conn_send(&pipe->upstream);
}

static void flow_topology_suspect(void *context)
{
	struct worker *worker = context;

	hs_monitor_thread_suspect_topology(worker->redis->monitor);
}

static void flow_unavailable_reason(void *context, char *text, size_t size)
{
	struct worker *worker = context;

	hs_monitor_thread_unavailable_reason(worker->redis->monitor, text, size);
}

static struct hs_bytes flow_script(void *context, struct hs_bytes digest)
{
	struct worker *worker = context;

	worker->script.len = 0;
	hs_scripts_find(worker->redis->scripts, digest, &worker->script);
	return hs_buf_bytes(&worker->script);
}

static void flow_changed(void *context, struct hs_now now,
			 const struct hs_tracking_session *tracking_session,
			 const struct hs_bytes *key)
{
	struct worker *worker = context;
	const struct hs_engine_host *host = &worker->redis->host;

	if (host->changed)
		host->changed(host->context, worker->index, now, tracking_session, key);
}

/* Logs the refusal once for each server, not once for each worker. */
static void flow_tracking_refused(void *context, const struct hs_node *node, const char *why)
{
	struct worker *worker = context;
	struct redis *redis = worker->redis;
	bool said = false;

	uv_mutex_lock(&redis->mutex);
	for (size_t i = 0; i < redis->tracking_refused_count; i++)
		said = said || strcmp(redis->tracking_refused[i], node->text) == 0;
	if (!said && redis->tracking_refused_count < TRACKING_REFUSED_MAX) {
		redis->tracking_refused = hs_mem_realloc(redis->tracking_refused,
							 (redis->tracking_refused_count + 1) *
								 sizeof *redis->tracking_refused);
		memcpy(redis->tracking_refused[redis->tracking_refused_count++], node->text,
		       sizeof node->text);
	}
	uv_mutex_unlock(&redis->mutex);
	hs_log(redis->host.log, said ? HS_LOG_DEBUG : HS_LOG_WARN,
	       "%s sends no invalidations, so values of its keys are cached for `stale` at "
	       "most, and then read again: %s",
	       node->text, why);
}

static const struct hs_flow_calls flow_calls = {
	.finished = flow_finished,
	.open = flow_open,
	.close = flow_close,
	.send = flow_send,
	.topology_suspect = flow_topology_suspect,
	.unavailable_reason = flow_unavailable_reason,
	.script = flow_script,
	.changed = flow_changed,
	.tracking_refused = flow_tracking_refused,
};

/* ---- the engine's calls ---- */

static enum hs_submit submit(struct hs_engine *engine, struct hs_op *op)
{
	struct redis *redis = of(engine);

	switch (op->kind) {
	case HS_OP_SUBSCRIBE:
	case HS_OP_UNSUBSCRIBE:
	case HS_OP_TRACK:
	case HS_OP_UNTRACK:
		hs_monitor_thread_submit(redis->monitor, op);
		return HS_SUBMIT_QUEUED;
	default:
		return hs_flow_submit(redis->workers[op->worker].flow, op);
	}
}

static void cancel(struct hs_engine *engine, struct hs_op *op)
{
	hs_flow_cancel(of(engine)->workers[op->worker].flow, op);
}

static bool unblock(struct hs_engine *engine, struct hs_op *op, bool error)
{
	return hs_flow_unblock(of(engine)->workers[op->worker].flow, op, error);
}

static struct hs_bytes script(struct hs_engine *engine, uint32_t id, struct hs_bytes digest)
{
	return flow_script(&of(engine)->workers[id], digest);
}

static void check_sessions_every(struct hs_engine *engine, uint64_t us)
{
	/* Each worker reads the new interval in its next round of events. */
	atomic_store_explicit(&of(engine)->check_every_us, us, memory_order_relaxed);
}

static void flush(struct hs_engine *engine, uint32_t id)
{
	struct worker *worker = &of(engine)->workers[id];

	update_check_timer(worker);

	if (hs_flow_needs_flush(worker->flow))
		hs_flow_flush(worker->flow, now_of(worker));
}

static void refresh(struct hs_engine *engine, uint32_t id)
{
	(void)engine, (void)id; /* the engine has no read snapshots */
}

static void idle(struct hs_engine *engine, uint32_t id)
{
	struct worker *worker = &of(engine)->workers[id];

	hs_flow_tick(worker->flow, now_of(worker));
	update_check_timer(worker);
	answered(worker);
}

/* Installs the routes of the messages that have arrived. `worker->flow` NULL: the worker has detached; only frees
 * the messages. */
static void read_routes_messages(struct worker *worker)
{
	struct routes_message *routes_message, *next;

	for (routes_message =
		     hs_mpsc_take(&worker->routes_messages, offsetof(struct routes_message, next));
	     routes_message; routes_message = next) {
		next = routes_message->next;
		if (worker->flow)
			hs_flow_route(worker->flow, now_of(worker), routes_message->routes);
		hs_routes_unref(&routes_message->routes);
		hs_mem_release(routes_message);
	}
}

static void on_wake(uv_async_t *wake)
{
	struct worker *worker = wake->data;

	read_routes_messages(worker);
	hs_flow_flush(worker->flow, now_of(worker));
	answered(worker);
}

static void attach(struct hs_engine *engine, uint32_t id, struct uv_loop_s *loop)
{
	struct worker *worker = &of(engine)->workers[id];
	const struct hs_routes *routes = hs_monitor_thread_routes(of(engine)->monitor);

	worker->driver.loop = loop;
	hs_check(uv_async_init(loop, &worker->wake, on_wake) == 0);
	worker->wake.data = worker;
	hs_check(uv_timer_init(loop, &worker->check) == 0);
	worker->check.data = worker;
	if (routes) {
		hs_flow_route(worker->flow, now_of(worker), routes);
		hs_routes_unref(&routes);
	}
	atomic_store(&worker->attached, true);
	uv_async_send(&worker->wake);
}

static void detach(struct hs_engine *engine, uint32_t id)
{
	struct worker *worker = &of(engine)->workers[id];

	atomic_store(&worker->attached, false);
	hs_flow_destroy(&worker->flow);
	uv_close((uv_handle_t *)&worker->wake, NULL);
	uv_close((uv_handle_t *)&worker->check, NULL);
}

static uint16_t partitions(const struct hs_engine *engine)
{
	return hs_monitor_thread_capacity(of(engine)->monitor);
}

static void partition_stats(struct hs_engine *engine, uint16_t id,
			    struct hs_engine_partition *stats)
{
	struct redis *redis = of(engine);

	*stats = (struct hs_engine_partition){0};
	hs_monitor_thread_partition(redis->monitor, id, stats);
	for (uint32_t i = 0; i < redis->host.workers; i++) {
		const struct hs_flow_stats *flow = redis->workers[i].stats;

		stats->queued += atomic_load_explicit(&flow->waiting[id], memory_order_relaxed);
	}
}

static void unavailable_reason(struct hs_engine *engine, char *text, size_t size)
{
	hs_monitor_thread_unavailable_reason(of(engine)->monitor, text, size);
}

static void stats(struct hs_engine *engine, struct hs_engine_stats *now)
{
	struct redis *redis = of(engine);

	*now = (struct hs_engine_stats){.last_error = "",
					.unavailable_reason = redis->unavailable_reason};
	for (uint32_t i = 0; i < redis->host.workers; i++)
		hs_engine_stats_add(now, redis->workers[i].stats);
	uv_mutex_lock(&redis->mutex);
	hs_monitor_thread_unavailable_reason(redis->monitor, redis->unavailable_reason,
					     sizeof redis->unavailable_reason);
	hs_monitor_thread_servers(redis->monitor, &now->servers);
	uv_mutex_unlock(&redis->mutex);
}

static void config(struct hs_engine *engine, struct hs_op *op, size_t pairs)
{
	op->engine_mark = pairs;
	hs_monitor_thread_submit(of(engine)->monitor, op);
}

static uint64_t recount(struct hs_engine *engine)
{
	return hs_monitor_thread_recount(of(engine)->monitor);
}

static void destroy(struct hs_engine **engine)
{
	struct redis *redis = of(*engine);

	hs_monitor_thread_destroy(&redis->monitor);
	for (uint32_t i = 0; i < redis->host.workers; i++) {
		struct worker *worker = &redis->workers[i];

		if (worker->flow)
			hs_flow_destroy(&worker->flow);
		read_routes_messages(worker);
		hs_buf_deinit(&worker->script);
		hs_mem_free(&worker->driver.buffer);
		hs_mem_free(&worker->stats);
		hs_tracking_sessions_destroy(&worker->tracking_sessions);
	}
	hs_scripts_destroy(&redis->scripts);
	hs_tls_context_release(&redis->conn_config.tls);
	hs_names_release(&redis->conn_config.names);
	uv_mutex_destroy(&redis->mutex);
	hs_mem_free(&redis->workers);
	hs_mem_free(&redis->slots);
	hs_mem_free(&redis->tracking_refused);
	hs_mem_free(&redis->user);
	hs_mem_free(&redis->password);
	hs_mem_free(&redis);
	*engine = NULL;
}

static const struct hs_engine_calls calls = {
	.name = "redis",
	.submit = submit,
	.cancel = cancel,
	.unblock = unblock,
	.script = script,
	.attach = attach,
	.detach = detach,
	.flush = flush,
	.refresh = refresh,
	.idle = idle,
	.check_sessions_every = check_sessions_every,
	.partitions = partitions,
	.partition_stats = partition_stats,
	.stats = stats,
	.unavailable_reason = unavailable_reason,
	.config = config,
	.recount = recount,
	.destroy = destroy,
};

/* ---- the monitor's calls ---- */

static void monitor_routes(void *context, const struct hs_routes *routes)
{
	struct redis *redis = context;

	for (uint32_t i = 0; i < redis->host.workers; i++) {
		struct worker *worker = &redis->workers[i];
		struct routes_message *routes_message = hs_mem_alloc(sizeof *routes_message);

		hs_routes_ref(routes, 1);
		*routes_message = (struct routes_message){.routes = routes};
		hs_mpsc_push(&worker->routes_messages, routes_message, routes_message,
			     offsetof(struct routes_message, next));
		if (atomic_load(&worker->attached))
			uv_async_send(&worker->wake);
	}
	hs_routes_unref(&routes);
}

/* ---- creation ---- */

bool hs_redis_is_url(const char *name)
{
	return strstr(name, "://") != NULL;
}

static int make_conn_config(struct redis *redis, const struct hs_redis_options *options,
			    char *error, size_t error_size)
{
	struct hs_tls_options tls = {
		.role = HS_TLS_CLIENT,
		.verify = options->tls_skip_verify ? HS_TLS_VERIFY_NONE : HS_TLS_VERIFY_REQUIRED,
		.cert_file = options->tls_cert_file,
		.key_file = options->tls_key_file,
		.ca_cert_file = options->tls_ca_cert_file,
		.ca_cert_dir = options->tls_ca_cert_dir,
	};

	redis->user = hs_mem_dup(options->user, strlen(options->user));
	redis->password = hs_mem_dup(options->password, strlen(options->password));
	redis->conn_config = (struct hs_conn_config){
		.login =
			{
				.user = redis->url.auth ? redis->url.user : redis->user,
				.password = redis->url.auth ? redis->url.pass : redis->password,
				.db = redis->url.db,
				.login_options = "engine-user, engine-password",
				.tls_on = "rediss:// or clusters://",
				.tls_off = "redis:// or cluster://",
			},
		.names = hs_names_create(getaddrinfo),
		.open_ms_max = OPEN_MS_MAX,
	};
	return redis->url.tls
		       ? hs_tls_context_create(&tls, &redis->conn_config.tls, error, error_size)
		       : 0;
}

static void start_workers(struct redis *redis, const struct hs_redis_options *options)
{
	struct hs_flow_options flow = {
		.cluster = redis->url.kind == HS_REDIS_CLUSTER,
		.timeout_us = options->timeout_ms * 1000,
		.in_flight_max = options->in_flight_max,
		.waiting_max = options->waiting_max,
		.private_max = options->private_max,
	};

	redis->workers = hs_mem_zalloc(redis->host.workers * sizeof *redis->workers);
	for (uint32_t i = 0; i < redis->host.workers; i++) {
		struct worker *worker = &redis->workers[i];

		hs_check(getrandom(&flow.seed, sizeof flow.seed, 0) == (ssize_t)sizeof flow.seed);
		worker->redis = redis;
		worker->index = i;
		worker->driver = (struct hs_conn_driver){
			.conn_config = &redis->conn_config,
			.buffer = hs_mem_alloc(HS_READ_BYTES),
			.context = worker,
			.up = on_up,
			.down = on_down,
			.receive = on_receive,
		};
		worker->stats = hs_mem_zalloc(sizeof *worker->stats);
		worker->tracking_sessions = hs_tracking_sessions_create();
		flow.tracking_sessions = worker->tracking_sessions;
		worker->flow = hs_flow_create(&flow, &flow_calls, worker, worker->stats);
	}
}

int hs_redis_create(const struct hs_redis_options *options, const struct hs_engine_host *host,
		    struct hs_engine **engine, char *error, size_t error_size)
{
	struct redis *redis = hs_mem_zalloc(sizeof *redis);
	int rc = hs_redis_url_parse(&redis->url, hs_bytes_of(options->url), error, error_size);

	redis->host = *host;
	if (rc == 0)
		rc = make_conn_config(redis, options, error, error_size);
	if (rc != 0) {
		hs_names_release(&redis->conn_config.names);
		hs_mem_free(&redis->user);
		hs_mem_free(&redis->password);
		hs_mem_free(&redis);
		return rc;
	}
	hs_check(uv_mutex_init(&redis->mutex) == 0);
	redis->slots = hs_mem_zalloc(sizeof *redis->slots);
	redis->engine = (struct hs_engine){
		.calls = &calls,
		.shared_connections = true,
		.op_scope =
			redis->url.kind == HS_REDIS_CLUSTER ? HS_OP_SCOPE_SLOT : HS_OP_SCOPE_ALL,
		.slots = redis->slots,
		.options = hs_server_options,
		.options_count = HS_SERVER_OPTIONS,
		.where = hs_redis_url_text(&redis->url, redis->where, sizeof redis->where),
	};
	redis->scripts = hs_scripts_create(host->workers);
	start_workers(redis, options);

	struct hs_monitor_thread_options monitor = {
		.url = &redis->url,
		.conn_config = &redis->conn_config,
		.host = &redis->host,
		.slots = redis->slots,
		.refresh_ms = options->refresh_ms,
		.start_ms_max = START_MS_MAX,
		.routes = monitor_routes,
		.context = redis,
	};

	redis->monitor = hs_monitor_thread_create(&monitor);
	*engine = &redis->engine;
	return 0;
}
