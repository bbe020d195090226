/* The main thread, in the order of a life: ports, engine, workers, signals, drain, joins. server.h tells the
 * shutdown. */
#include "serve/server.h"

#include "absorb/shared.h"
#include "base/address.h"
#include "base/err.h"
#include "base/mem.h"
#include "engine/embedded/embedded.h"
#include "engine/redis/redis.h"
#include "heat/heat.h"
#include "serve/clock.h"
#include "serve/control.h"
#include "serve/listen.h"
#include "serve/tls_options.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

enum { LISTENERS_MAX = 16, ACCEPT_BURST = 64, SPARE_FDS = 64 };

struct listener {
	uv_poll_t poll;
	struct hs_server *server;
	int fd;
	bool tls;
};

struct hs_server {
	struct hs_control control; /* control.host is what the threads share */
	uv_loop_t loop;
	uv_async_t wake;
	uv_signal_t on_term, on_int, on_hup;
	struct listener listeners[LISTENERS_MAX * 2]; /* per address: plain, TLS, or both */
	size_t listeners_count;
	uint32_t next_worker;  /* the first candidate for the next connection */
	_Atomic bool shutdown; /* the command SHUTDOWN has come */
	_Atomic bool finished; /* all other threads are joined, the engine is closed */
};

static bool is_stopping(const struct hs_server *server)
{
	return atomic_load(&server->control.host.stopping);
}

/* The engine calls these: `finished`, `answered` and `changed` on the worker's thread, so they may use its core;
 * the others on any thread. */
static void engine_done(void *context, uint32_t worker, struct hs_op *chain)
{
	struct hs_host *host = context;

	hs_worker_complete(&host->workers[worker], chain);
}

static void engine_finished(void *context, uint32_t worker, struct hs_now now, struct hs_op *op)
{
	struct hs_host *host = context;

	hs_core_complete(host->workers[worker].core, now, op);
}

static void engine_answered(void *context, uint32_t worker)
{
	struct hs_host *host = context;

	hs_connection_flush(&host->workers[worker]);
}

static void engine_changed(void *context, uint32_t worker, struct hs_now now,
			   const struct hs_tracking_session *tracking_session,
			   const struct hs_bytes *key)
{
	struct hs_host *host = context;

	hs_core_changed(host->workers[worker].core, now, tracking_session, key);
}

static void engine_event(void *context, struct hs_event *event)
{
	hs_workers_broadcast(context, event);
}

static void engine_learned(void *context, struct hs_learned *learned)
{
	struct hs_host *host = context;

	host->learned_all = hs_mem_realloc(host->learned_all,
					   (host->learned_count + 1) * sizeof(struct hs_learned *));
	host->learned_all[host->learned_count++] = learned;
	atomic_store(&host->learned, learned);
	for (uint32_t i = 0; i < host->workers_count && atomic_load(&host->started); i++)
		hs_worker_post(&host->workers[i], hs_worker_message_create(HS_WORKER_LEARN));
}

static struct hs_now engine_now(void *context)
{
	(void)context;
	return hs_clock_now();
}

/* The worker with the fewest connections, round robin among equals: even also with few connections. */
static struct hs_worker *choose_worker(struct hs_server *server)
{
	struct hs_host *host = &server->control.host;
	struct hs_worker *best = &host->workers[server->next_worker];
	uint32_t fewest = UINT32_MAX;

	hs_check(host->workers_count > 0);
	for (uint32_t i = 0; i < host->workers_count; i++) {
		uint32_t index = (server->next_worker + i) % host->workers_count;
		uint32_t clients = atomic_load(&host->workers[index].clients);

		if (clients < fewest) {
			fewest = clients;
			best = &host->workers[index];
		}
	}
	server->next_worker = (best->index + 1) % host->workers_count;
	return best;
}

static uint64_t count_clients(const struct hs_host *host)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < host->workers_count; i++)
		sum += atomic_load(&host->workers[i].clients);
	return sum;
}

static void accept_client(struct hs_server *server, int fd, bool tls)
{
	static const char full[] = "-ERR max number of clients reached\r\n";
	struct hs_host *host = &server->control.host;
	struct hs_worker *worker;
	struct hs_worker_message *message;

	if (count_clients(host) >= atomic_load(&host->live.maxclients)) {
		hs_counter_add(&host->stats.rejected_connections, 1);
		/* Best effort: the socket is new and its buffer empty. A TLS client could not read it. */
		if (!tls)
			(void)!write(fd, full, sizeof full - 1);
		close(fd);
		return;
	}
	worker = choose_worker(server);
	atomic_fetch_add(&worker->clients, 1);
	message = hs_worker_message_create(HS_WORKER_CLIENT);
	message->fd = fd;
	message->tls = tls;
	message->client_id = atomic_fetch_add(&host->live.client_ids, 1) + 1;
	hs_worker_post(worker, message);
}

static void on_connect(uv_poll_t *poll, int status, int events)
{
	struct listener *listener = poll->data;
	struct hs_server *server = listener->server;

	(void)events;
	if (status < 0)
		return;
	for (int i = 0; i < ACCEPT_BURST; i++) {
		int fd = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd >= 0) {
			accept_client(server, fd, listener->tls);
		} else if (errno != EINTR && errno != ECONNABORTED) {
			if (errno != EAGAIN)
				hs_log(server->control.host.log, HS_LOG_WARN,
				       "cannot accept a client connection: %s", strerror(errno));
			return;
		}
	}
}

static int listen_on(struct hs_server *server, const char *address, int *port, bool tls)
{
	const struct hs_host *host = &server->control.host;
	char error[256];
	int fd = hs_listen(address, port, (int)host->options->tcp_backlog, error, sizeof error);

	if (fd < 0)
		hs_log(host->log, HS_LOG_ERROR, "%s%s%s", error,
		       fd == HS_EBUSY ? "; choose another port with " : "",
		       fd != HS_EBUSY ? ""
		       : tls	      ? "--tls-port"
				      : "--port");
	else
		server->listeners[server->listeners_count++] =
			(struct listener){.server = server, .fd = fd, .tls = tls};
	return fd;
}

/* Listens on every address of `bind`. */
static int open_port(struct hs_server *server, int *port, bool tls)
{
	const struct hs_host *host = &server->control.host;
	char list[1024];
	char *rest = list, *address;
	int addresses = 0;

	snprintf(list, sizeof list, "%s", host->options->bind);
	while ((address = strsep(&rest, " "))) {
		if (*address == '\0')
			continue;
		if (addresses++ == LISTENERS_MAX) {
			hs_log(host->log, HS_LOG_ERROR, "bind: more than %d addresses",
			       LISTENERS_MAX);
			return -1;
		}
		if (listen_on(server, address, port, tls) < 0)
			return -1;
	}
	if (addresses == 0) {
		hs_log(host->log, HS_LOG_ERROR,
		       "bind: no address; give at least one, such as 127.0.0.1");
		return -1;
	}
	return 0;
}

static int read_certificates(struct hs_host *host)
{
	char error[640];

	if (host->options->tls_port == 0 ||
	    hs_tls_options_read(host->options, &host->tls, error, sizeof error) == 0)
		return 0;
	hs_log(host->log, HS_LOG_ERROR, "%s", error);
	return -1;
}

/* First of all: a port in use is an error before the data folder is touched. */
static int open_listeners(struct hs_server *server)
{
	struct hs_host *host = &server->control.host;

	host->port = (int)host->options->port;
	host->tls_port = (int)host->options->tls_port;
	if (read_certificates(host) < 0)
		return -1;
	/* As in Redis: with `port 0` and a TLS port there is no plain port. */
	if ((host->port || !host->tls_port) && open_port(server, &host->port, false) < 0)
		return -1;
	if (host->tls_port && open_port(server, &host->tls_port, true) < 0)
		return -1;
	return hs_http_loop_open(&server->control.http, host);
}

static void stop(struct hs_server *server, const char *why)
{
	struct hs_host *host = &server->control.host;

	if (atomic_exchange(&host->stopping, true)) {
		hs_log(host->log, HS_LOG_WARN,
		       "%s again: exiting at once, without waiting for clients", why);
		_exit(1);
	}
	hs_log(host->log, HS_LOG_INFO,
	       "%s: no new connections; finishing requests in flight (shutdown-timeout), then "
	       "exiting",
	       why);
	for (size_t i = 0; i < server->listeners_count; i++) {
		uv_close((uv_handle_t *)&server->listeners[i].poll, NULL);
		close(server->listeners[i].fd);
	}
	for (uint32_t i = 0; i < host->workers_count; i++) {
		struct hs_worker_message *message = hs_worker_message_create(HS_WORKER_DRAIN);

		message->grace_us = atomic_load(&host->live.shutdown_timeout_us);
		hs_worker_post(&host->workers[i], message);
	}
}

/* On the control thread. */
static void request_stop(void *context)
{
	struct hs_server *server = context;

	atomic_store(&server->shutdown, true);
	uv_async_send(&server->wake);
}

/* A second SHUTDOWN, unlike a second signal, does not end the process at once. */
static void on_wake(uv_async_t *wake)
{
	struct hs_server *server = wake->data;

	if (atomic_load(&server->shutdown) && !is_stopping(server))
		stop(server, "SHUTDOWN");
}

static void on_signal(uv_signal_t *handle, int number)
{
	struct hs_server *server = handle->data;

	if (number != SIGHUP)
		stop(server, number == SIGTERM ? "SIGTERM" : "SIGINT");
	else if (!is_stopping(server))
		hs_control_reload(&server->control);
}

static void start_loop(struct hs_server *server)
{
	struct {
		uv_signal_t *handle;
		int number;
	} signals[] = {
		{&server->on_term, SIGTERM},
		{&server->on_int, SIGINT},
		{&server->on_hup, SIGHUP},
	};

	for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
		uv_signal_init(&server->loop, signals[i].handle);
		signals[i].handle->data = server;
		uv_signal_start(signals[i].handle, on_signal, signals[i].number);
	}
	for (size_t i = 0; i < server->listeners_count; i++) {
		struct listener *listener = &server->listeners[i];

		uv_poll_init(&server->loop, &listener->poll, listener->fd);
		listener->poll.data = listener;
		uv_poll_start(&listener->poll, UV_READABLE, on_connect);
	}
}

/* Runs on a thread of its own, so that the main loop still handles a second signal. Threads that send requests end
 * before those that answer them; shared data is freed last. */
static void join_all(void *argument)
{
	struct hs_server *server = argument;
	struct hs_host *host = &server->control.host;

	for (uint32_t i = 0; i < host->workers_count; i++)
		hs_worker_join(&host->workers[i]);
	hs_control_join(&server->control);
	host->engine->calls->destroy(&host->engine);
	for (uint32_t i = 0; i < host->workers_count; i++)
		hs_worker_deinit(&host->workers[i]);
	hs_control_deinit(&server->control);
	for (uint32_t i = 0; i < host->workers_count; i++)
		hs_heat_destroy(&host->heats[i]);
	hs_mem_free(&host->heats);
	hs_shared_destroy(&host->shared);
	while (host->learned_count > 0)
		hs_learned_destroy(&host->learned_all[--host->learned_count]);
	hs_mem_free(&host->learned_all);
	server->finished = true;
	uv_async_send(&server->wake);
}

/* Raises the limit of open files for maxclients; logs a warning if the system refuses. */
static void raise_fd_limit(const struct hs_host *host)
{
	rlim_t want = (rlim_t)host->options->maxclients + SPARE_FDS + HS_HTTP_CONNECTIONS_MAX +
		      HS_HTTP_RESERVED_MAX + (rlim_t)HS_HTTP_KEY_READS_MAX * 2 +
		      (rlim_t)host->options->partitions * 4;
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= want)
		return;
	limit.rlim_cur = want;
	if (limit.rlim_max < want)
		limit.rlim_max = want;
	if (setrlimit(RLIMIT_NOFILE, &limit) == 0)
		return;
	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	hs_log(host->log, HS_LOG_WARN,
	       "maxclients %lld needs %llu open files, but the system allows %llu: raise ulimit -n "
	       "(LimitNOFILE=), or lower maxclients",
	       (long long)host->options->maxclients, (unsigned long long)want,
	       (unsigned long long)limit.rlim_max);
}

static int open_redis(struct hs_host *host, const struct hs_engine_host *calls)
{
	const struct hs_options *options = host->options;
	struct hs_redis_options redis = {
		.url = options->engine,
		.user = options->engine_user,
		.password = options->engine_password,
		.timeout_ms = (uint64_t)options->engine_timeout,
		.in_flight_max = (uint32_t)options->engine_inflight,
		.waiting_max = (uint32_t)options->engine_queue,
		.private_max = (uint32_t)options->engine_private_connections,
		.refresh_ms = (uint64_t)options->engine_topology_refresh,
		.tls_ca_cert_file = options->engine_tls_ca_cert_file,
		.tls_ca_cert_dir = options->engine_tls_ca_cert_dir,
		.tls_cert_file = options->engine_tls_cert_file,
		.tls_key_file = options->engine_tls_key_file,
		.tls_skip_verify = options->engine_tls_skip_verify,
	};
	char error[512];

	if (options->engine_tls_skip_verify)
		hs_log(host->log, HS_LOG_WARN,
		       "engine-tls-skip-verify yes: certificates of the servers are not checked; "
		       "use it in tests "
		       "only");
	if (hs_redis_create(&redis, calls, &host->engine, error, sizeof error) == 0)
		return 0;
	hs_log(host->log, HS_LOG_ERROR, "engine: %s", error);
	return -1;
}

static int open_embedded(struct hs_host *host, const struct hs_engine_host *calls)
{
	const struct hs_options *options = host->options;
	struct hs_embedded_options embedded = {
		.data = options->data,
		.partitions = (uint16_t)options->partitions,
		.sync = options->sync == HS_SYNC_ALWAYS,
		.store_bytes_max = (uint64_t)options->store_size,
		.log_bytes = (uint64_t)options->log_size,
	};
	char error[512];

	if (hs_embedded_create(&embedded, calls, &host->engine, error, sizeof error) == 0) {
		/* An existing database keeps the number it was created with. */
		host->options->partitions = host->engine->calls->partitions(host->engine);
		return 0;
	}
	hs_log(host->log, HS_LOG_ERROR, "%s", error);
	return -1;
}

static int open_engine(struct hs_host *host)
{
	struct hs_engine_host calls = {
		.context = host,
		.done = engine_done,
		.finished = engine_finished,
		.answered = engine_answered,
		.changed = engine_changed,
		.event = engine_event,
		.learned = engine_learned,
		.recounted = hs_control_recounted,
		.now = engine_now,
		.log = host->log,
		.workers = host->workers_count,
	};

	return hs_redis_is_url(host->options->engine) ? open_redis(host, &calls)
						      : open_embedded(host, &calls);
}

static void draw_random(void *bytes, size_t count)
{
	hs_check(getrandom(bytes, count, 0) == (ssize_t)count);
}

static void fill_host(struct hs_host *host)
{
	struct hs_now now = hs_clock_now();
	unsigned char random[20];

	host->started_wall_us = now.wall_us;
	host->started_mono_us = now.mono_us;
	draw_random(random, sizeof random);
	for (size_t i = 0; i < sizeof random; i++)
		snprintf(host->run_id + 2 * i, 3, "%02x", random[i]);
	hs_host_publish_to_main(host);
}

/* One seed for all workers, since their tables are merged; secret, so that clients cannot choose keys that
 * collide. */
static void create_heats(struct hs_host *host)
{
	struct hs_heat_options options = {
		.partitions = host->engine->calls->partitions(host->engine),
	};

	draw_random(&options.seed, sizeof options.seed);
	draw_random(options.name_seeds, sizeof options.name_seeds);
	host->heats = hs_mem_zalloc(host->workers_count * sizeof(struct hs_heat *));
	for (uint32_t i = 0; i < host->workers_count; i++)
		host->heats[i] = hs_heat_create(&options);
}

/* hs_host_publish_caching sets the limit from cache-bytes. */
static void create_shared(struct hs_host *host)
{
	uint64_t seed;

	draw_random(&seed, sizeof seed);
	host->shared = hs_shared_create(seed, 0);
	hs_host_publish_caching(host);
}

static void start_workers(struct hs_host *host)
{
	for (uint32_t i = 0; i < host->workers_count; i++) {
		uint64_t seed;

		draw_random(&seed, sizeof seed);
		hs_worker_init(&host->workers[i], host, i, seed);
	}
	atomic_store(&host->started, true);
	for (uint32_t i = 0; i < host->workers_count; i++) {
		hs_worker_post(&host->workers[i], hs_worker_message_create(HS_WORKER_LEARN));
		hs_worker_start(&host->workers[i]);
	}
}

static void announce_engine(const struct hs_host *host)
{
	const struct hs_options *options = host->options;
	const struct hs_engine *engine = host->engine;
	uint32_t workers = host->workers_count;

	if (!engine->where) {
		hs_log(host->log, HS_LOG_INFO, "data in %s, %u partitions, %u workers, %s",
		       options->data, engine->calls->partitions(engine), workers,
		       options->sync == HS_SYNC_ALWAYS
			       ? "sync always: acknowledged means on disk"
			       : "sync off: survives a killed process, not a power cut");
	} else if (hs_slot_map_count(engine->slots) == 0) {
		hs_log(host->log, HS_LOG_INFO, "in front of %s, %u workers", engine->where,
		       workers);
	} else {
		hs_log(host->log, HS_LOG_INFO, "in front of %s, %u partition%s, %u workers",
		       engine->where, hs_slot_map_count(engine->slots),
		       hs_slot_map_count(engine->slots) == 1 ? "" : "s", workers);
	}
}

static void announce_port(const struct hs_host *host, const char *what, int port)
{
	char list[1024], text[HS_ADDRESS_TEXT_MAX];
	char *rest = list, *address;

	snprintf(list, sizeof list, "%s", host->options->bind);
	while (port && (address = strsep(&rest, " "))) {
		if (*address)
			hs_log(host->log, HS_LOG_INFO, "%s on %s", what,
			       hs_address_text(address, (unsigned)port, text, sizeof text));
	}
}

static void announce(const struct hs_host *host)
{
	const struct hs_options *options = host->options;
	char text[HS_ADDRESS_TEXT_MAX];

	announce_port(host, "listening", host->port);
	announce_port(host, "tls", host->tls_port);
	if (host->http_port)
		hs_log(host->log, HS_LOG_INFO, "http on %s",
		       hs_address_text(options->http_bind, (unsigned)host->http_port, text,
				       sizeof text));
	announce_engine(host);
	/* The last line suggests a first command. In front of servers it only reads: their data is not ours. */
	if (host->port)
		hs_log(host->log, HS_LOG_INFO, "try: redis-cli -p %d %s", host->port,
		       host->engine->where ? "heat top" : "set hello world");
	else
		hs_log(host->log, HS_LOG_INFO,
		       "try: redis-cli --tls -p %d %s (--help tells of --cacert)", host->tls_port,
		       host->engine->where ? "heat top" : "set hello world");
}

static void serve(struct hs_server *server)
{
	uv_thread_t joiner;

	start_loop(server);
	announce(&server->control.host);
	hs_control_start(&server->control);
	while (!is_stopping(server))
		uv_run(&server->loop, UV_RUN_ONCE);
	hs_check(uv_thread_create(&joiner, join_all, server) == 0);
	while (!server->finished)
		uv_run(&server->loop, UV_RUN_ONCE);
	uv_thread_join(&joiner);
	hs_log(server->control.host.log, HS_LOG_INFO, "%sgoodbye",
	       hs_redis_is_url(server->control.host.options->engine) ? ""
								     : "all data is on disk; ");
}

static void close_all(uv_handle_t *handle, void *argument)
{
	(void)argument;
	if (!uv_is_closing(handle))
		uv_close(handle, NULL);
}

/* One worker per processor by default, at most HS_WORKERS_MAX. */
static uint32_t count_workers(const struct hs_options *options)
{
	uint32_t processors = uv_available_parallelism();

	if (options->workers)
		return (uint32_t)options->workers;
	return processors < HS_WORKERS_MAX ? processors : HS_WORKERS_MAX;
}

int hs_server_run(struct hs_options *options, int flags_count, char **flags, struct hs_log *log)
{
	struct hs_server *server = hs_mem_zalloc(sizeof *server);
	struct hs_host *host = &server->control.host;
	int code = 1;

	host->options = options;
	host->flags = flags;
	host->flags_count = flags_count;
	host->log = log;
	host->workers_count = count_workers(options);
	host->workers = hs_mem_zalloc(host->workers_count * sizeof *host->workers);
	host->context = server;
	host->stop = request_stop;
	server->control.http.fd = -1;
	signal(SIGPIPE, SIG_IGN);
	raise_fd_limit(host);
	uv_loop_init(&server->loop);
	uv_async_init(&server->loop, &server->wake, on_wake);
	server->wake.data = server;
	if (open_listeners(server) == 0 && open_engine(host) == 0) {
		create_heats(host);
		fill_host(host);
		create_shared(host);
		hs_control_init(&server->control);
		start_workers(host);
		serve(server);
		code = 0;
	} else {
		for (size_t i = 0; i < server->listeners_count; i++)
			close(server->listeners[i].fd);
		hs_http_loop_close(&server->control.http);
	}
	uv_walk(&server->loop, close_all, NULL);
	uv_run(&server->loop, UV_RUN_DEFAULT);
	uv_loop_close(&server->loop);
	hs_tls_context_release(&host->tls);
	hs_mem_free(&host->workers);
	hs_mem_free(&server);
	return code;
}
