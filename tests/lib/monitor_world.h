/* A fixture for unit tests of the topology monitor (engine/redis/monitor.h): simulated servers on a simulated clock.
 * The monitor's requests are recorded in `requests_text`, "a: INFO; b: CLUSTER SLOTS; ", and its calls to its host
 * are stored in the world. One thread. Limit: SERVERS servers; a request that they do not know gets an error. */
#ifndef HS_TESTS_MONITOR_WORLD_H
#define HS_TESTS_MONITOR_WORLD_H

#include "engine/redis/monitor_internal.h"

#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

enum { SERVERS = 6, MS = 1000, S = 1000 * MS, REFRESH_MS = 10000 };

#define COMMANDS(name) "*1\r\n*6\r\n$5\r\n" name "\r\n:2\r\n*1\r\n+readonly\r\n:1\r\n:1\r\n:1\r\n"

/* Server number 0 is node a at a:1, 1 is b at b:2 and so on. */
struct server {
	struct hs_upstream *upstream; /* NULL: not connected */
	bool opened;		      /* the connection is not up yet */
	bool down;		      /* refuses connections */
	bool silent;		      /* accepts requests and does not answer */
	uint64_t up_us;		      /* time of the last connect */
	char slots[128]; /* the reply to CLUSTER SLOTS, in the notation of make_slots */
	int epoch;
	bool failing; /* reports cluster_state:fail */
	bool replica; /* reports the role in INFO */
	unsigned keys;
	const char *maxmemory;
	bool old; /* an old server: CONFIG GET takes one name only */
	const char *commands;
	unsigned commands_count;
	struct hs_buf in; /* received requests, not answered yet */
};

struct world {
	struct hs_monitor *monitor;
	struct hs_redis_url url;
	struct hs_slot_map slots;
	uint64_t now_us;
	struct server servers[SERVERS];
	char requests_text[1 << 16]; /* "a: INFO; b: CLUSTER SLOTS; …" */
	size_t requests_text_len;
	bool pieces; /* deliver replies byte by byte */

	uint32_t capacity_asked, routes_told, learned_told, done;
	struct hs_op *again; /* submitted from inside the next `done` */
	uint16_t capacity;
	const struct hs_routes *routes;
	struct hs_learned *learned[8];
	struct hs_engine_partition partitions[HS_PARTITIONS_MAX];
	struct hs_engine_servers common;
	char unavailable_reason[HS_REDIS_WHY_BYTES];
	bool startup_done;
	uint64_t recounted, recounted_us;
	struct hs_log log;
	char lines[4096]; /* log lines */
};

/* ---- the servers ---- */

static inline struct server *server_at(struct world *world, char name)
{
	return &world->servers[name - 'a'];
}

static inline char name_of(const struct world *world, const struct server *server)
{
	return (char)('a' + (server - world->servers));
}

/* "0-99 a b, 100-16383 c": two ranges; a has the replica b. Node a has the id "a". */
static inline void make_slots(const char *text, struct hs_buf *out)
{
	struct hs_buf ranges = {0};
	int count = 0;

	for (; *text; count++) {
		unsigned first, last;
		size_t nodes = 0, len;

		assert_int_equal(sscanf(text, "%u-%u", &first, &last), 2);
		text += strspn(text, "0123456789-");
		len = strcspn(text, ",");
		hs_buf_printf(&ranges, "*%zu\r\n:%u\r\n:%u\r\n", len / 2 + 2, first, last);
		for (; nodes < len / 2; nodes++, text += 2)
			hs_buf_printf(&ranges, "*3\r\n$1\r\n%c\r\n:%d\r\n$1\r\n%c\r\n", text[1],
				      text[1] - 'a' + 1, text[1]);
		text += strspn(text, ", ");
	}
	hs_buf_printf(out, "*%d\r\n", count);
	hs_buf_append_bytes(out, hs_buf_bytes(&ranges));
	hs_buf_deinit(&ranges);
}

static inline void bulk(struct hs_buf *out, const char *text)
{
	hs_buf_printf(out, "$%zu\r\n%s\r\n", strlen(text), text);
}

static inline void answer(struct server *server, const char *line, struct hs_buf *out)
{
	char text[256];

	if (strcmp(line, "CLUSTER INFO") == 0) {
		snprintf(text, sizeof text, "cluster_state:%s\r\ncluster_current_epoch:%d\r\n",
			 server->failing ? "fail" : "ok", server->epoch);
		bulk(out, text);
	} else if (strcmp(line, "CLUSTER SLOTS") == 0) {
		make_slots(server->slots, out);
	} else if (strcmp(line, "INFO") == 0) {
		snprintf(text, sizeof text,
			 "role:%s\r\nredis_version:7.0.0\r\nmaxmemory:%s\r\ndb0:keys=%u\r\n",
			 server->replica ? "slave" : "master", server->maxmemory, server->keys);
		bulk(out, text);
	} else if (strcmp(line, "INFO keyspace") == 0) {
		snprintf(text, sizeof text, "# Keyspace\r\ndb0:keys=%u\r\n", server->keys);
		bulk(out, text);
	} else if (strcmp(line, "COMMAND") == 0) {
		hs_buf_printf(out, "%s", server->commands);
	} else if (strcmp(line, "COMMAND COUNT") == 0) {
		hs_buf_printf(out, ":%u\r\n", server->commands_count);
	} else if (strncmp(line, "CONFIG GET appendfsync ", 23) == 0 && server->old) {
		hs_buf_printf(out, "-ERR wrong number of arguments for CONFIG GET\r\n");
	} else if (strncmp(line, "CONFIG GET ", 11) == 0) {
		hs_buf_printf(out, "*4\r\n$4\r\nsave\r\n$0\r\n\r\n$9\r\nmaxmemory\r\n");
		bulk(out, server->maxmemory);
	} else if (strncmp(line, "CONFIG SET maxmemory 1kb", 24) == 0) {
		server->maxmemory = "1024";
		hs_buf_printf(out, "+OK\r\n");
	} else if (strncmp(line, "CONFIG SET maxmemory 1024", 25) == 0) {
		server->maxmemory = "1024";
		hs_buf_printf(out, "+OK\r\n");
	} else {
		hs_buf_printf(out, "-ERR what is %s?\r\n", line);
	}
}

/* The next complete request as words separated by spaces; false: none. */
static inline bool next_request(struct hs_buf *in, char *line, size_t size)
{
	struct hs_walk walk = {in->data, in->len};
	int64_t count;
	size_t len = 0;

	if (in->len == 0)
		return false;
	assert_int_equal(hs_walk_array(&walk, &count), 0);
	for (int64_t i = 0; i < count; i++) {
		struct hs_bytes word;

		assert_int_equal(hs_walk_text(&walk, &word), 0);
		len += (size_t)snprintf(line + len, size - len, "%s%.*s", i ? " " : "",
					(int)word.len, word.data);
		assert_true(len < size);
	}
	hs_buf_consume(in, in->len - walk.len);
	return true;
}

static inline void receive(struct world *world, struct server *server, struct hs_buf *reply)
{
	size_t step = world->pieces ? 1 : reply->len;

	for (size_t at = 0; at < reply->len && server->upstream; at += step)
		hs_monitor_receive(world->monitor, world->now_us, server->upstream,
				   reply->data + at, step);
	hs_buf_deinit(reply);
}

static inline void give(struct world *world, struct server *server, const char *text)
{
	struct hs_buf reply = {0};

	hs_buf_printf(&reply, "%s", text);
	receive(world, server, &reply);
}

static inline void note_request(struct world *world, const struct server *server, const char *line)
{
	/* A CONFIG GET of all options is shortened, because the names would be too long to read. */
	int len = strncmp(line, "CONFIG GET a", 12) == 0 ? 10 : (int)strlen(line);

	world->requests_text_len +=
		(size_t)snprintf(world->requests_text + world->requests_text_len,
				 sizeof world->requests_text - world->requests_text_len,
				 "%c: %.*s; ", name_of(world, server), len, line);
	assert_true(world->requests_text_len < sizeof world->requests_text);
}

/* Runs one event of the network; false: none is pending. */
static inline bool step(struct world *world)
{
	for (struct server *server = world->servers; server < world->servers + SERVERS; server++) {
		struct hs_upstream *upstream = server->upstream;
		struct hs_buf reply = {0};
		char line[1024];

		if (server->opened) {
			server->opened = false;
			if (server->down) {
				server->upstream = NULL;
				hs_monitor_down(world->monitor, world->now_us, upstream, "refused");
			} else {
				server->up_us = world->now_us;
				hs_monitor_up(world->monitor, world->now_us, upstream);
			}
			return true;
		}
		if (!upstream || server->silent || !next_request(&server->in, line, sizeof line))
			continue;
		note_request(world, server, line);
		answer(server, line, &reply);
		receive(world, server, &reply);
		return true;
	}
	return false;
}

static inline void settle(struct world *world)
{
	while (step(world)) {
	}
}

/* Lets time pass; calls the monitor at each of its deadlines. */
static inline void pass(struct world *world, uint64_t us)
{
	uint64_t until_us = world->now_us + us;

	settle(world);
	for (;;) {
		uint64_t due_us = hs_monitor_deadline_us(world->monitor);

		if (due_us > until_us)
			break;
		if (due_us > world->now_us)
			world->now_us = due_us;
		hs_monitor_tick(world->monitor, world->now_us);
		settle(world);
	}
	world->now_us = until_us;
}

/* How often `what` occurs in the requests since the last forget(). */
static inline unsigned count_requests(struct world *world, const char *what)
{
	unsigned count = 0;

	for (const char *at = world->requests_text; (at = strstr(at, what)); at += strlen(what))
		count++;
	return count;
}

static inline void forget(struct world *world)
{
	world->requests_text_len = 0;
	world->requests_text[0] = '\0';
	world->lines[0] = '\0';
}

static inline void lose(struct world *world, char name)
{
	struct server *server = server_at(world, name);
	struct hs_upstream *upstream = server->upstream;

	server->in.len = 0;
	server->upstream = NULL;
	if (upstream)
		hs_monitor_down(world->monitor, world->now_us, upstream,
				"the server closed the connection");
}

/* ---- the host ---- */

static inline void host_open(void *context, struct hs_upstream *upstream,
			     const struct hs_redis_address *at)
{
	struct world *world = context;
	struct server *server = server_at(world, at->host[0]);

	assert_int_equal(at->port, at->host[0] - 'a' + 1);
	assert_null(server->upstream);
	assert_int_equal(upstream->resp, 2);
	server->upstream = upstream;
	server->opened = true;
	upstream->io = server;
}

static inline void host_close(void *context, struct hs_upstream *upstream)
{
	struct server *server = upstream->io;

	(void)context;
	assert_ptr_equal(server->upstream, upstream);
	server->upstream = NULL;
	server->opened = false;
	server->in.len = 0;
}

static inline void host_send(void *context, struct hs_upstream *upstream)
{
	struct server *server = upstream->io;

	(void)context;
	assert_ptr_equal(server->upstream, upstream);
	assert_false(server->opened);
	hs_buf_append_bytes(&server->in, hs_buf_bytes(&upstream->out));
	upstream->out.len = 0;
}

static inline uint16_t host_capacity(void *context, uint16_t wanted)
{
	struct world *world = context;

	world->capacity_asked++;
	if (world->capacity == 0)
		world->capacity = wanted;
	return world->capacity;
}

static inline void host_routes(void *context, const struct hs_routes *routes)
{
	struct world *world = context;

	hs_routes_unref(&world->routes);
	world->routes = routes;
	world->routes_told++;
}

static inline void host_learned(void *context, struct hs_learned *learned)
{
	struct world *world = context;

	assert_true(world->learned_told < 8);
	world->learned[world->learned_told++] = learned;
}

static inline void host_partition(void *context, uint16_t partition,
				  const struct hs_engine_partition *stats)
{
	((struct world *)context)->partitions[partition] = *stats;
}

static inline void host_servers(void *context, const struct hs_engine_servers *servers)
{
	((struct world *)context)->common = *servers;
}

static inline void host_unavailable(void *context, const char *why)
{
	struct world *world = context;

	snprintf(world->unavailable_reason, sizeof world->unavailable_reason, "%s", why);
}

static inline void host_settled(void *context)
{
	((struct world *)context)->startup_done = true;
}

static inline void host_done(void *context, struct hs_op *op)
{
	struct world *world = context;
	struct hs_op *again = world->again;

	(void)op;
	world->done++;
	world->again = NULL;
	if (again)
		hs_monitor_configure(world->monitor, world->now_us, again);
}

static inline void host_recounted(void *context, uint64_t number)
{
	struct world *world = context;

	world->recounted = number;
	world->recounted_us = world->now_us;
}

static const struct hs_monitor_calls calls = {
	.open = host_open,
	.close = host_close,
	.send = host_send,
	.capacity = host_capacity,
	.routes = host_routes,
	.learned = host_learned,
	.partition = host_partition,
	.servers = host_servers,
	.unavailable_reason = host_unavailable,
	.startup_done = host_settled,
	.done = host_done,
	.recounted = host_recounted,
};

static inline void log_line(void *context, enum hs_log_level level, const char *line)
{
	struct world *world = context;
	size_t len = strlen(world->lines);

	if (level >= HS_LOG_INFO)
		snprintf(world->lines + len, sizeof world->lines - len, "%s\n", line);
}

/* ---- a world ---- */

static inline void all_slots(struct world *world, const char *slots, int epoch)
{
	for (int i = 0; i < SERVERS; i++) {
		snprintf(world->servers[i].slots, sizeof world->servers[i].slots, "%s", slots);
		world->servers[i].epoch = epoch;
	}
}

static inline struct world *make(const char *url)
{
	struct world *world = hs_mem_zalloc(sizeof *world);
	struct hs_monitor_options options = {
		.url = &world->url,
		.refresh_ms = REFRESH_MS,
		.seed = 7,
		.log = &world->log,
		.slots = &world->slots,
	};
	char why[HS_REDIS_WHY_BYTES];

	world->log.sink = log_line;
	world->log.context = world;
	assert_int_equal(hs_redis_url_parse(&world->url, hs_bytes_of(url), why, sizeof why), 0);
	world->now_us = 1000 * (uint64_t)S;
	for (int i = 0; i < SERVERS; i++) {
		world->servers[i].maxmemory = "0";
		world->servers[i].commands = COMMANDS("zzone");
		world->servers[i].commands_count = 1;
		world->servers[i].keys = 10;
		world->partitions[i].absent = true;
	}
	all_slots(world, "0-99 a d, 100-199 b, 200-16383 c", 5);
	world->monitor = hs_monitor_create(&options, &calls, world);
	hs_monitor_start(world->monitor, world->now_us);
	return world;
}

static inline struct world *make_cluster(void)
{
	struct world *world = make("cluster://a:1,b:2,c:3");

	pass(world, 100 * MS);
	assert_non_null(world->routes);
	forget(world);
	return world;
}

static inline void destroy(struct world *world)
{
	if (world->monitor)
		hs_monitor_destroy(&world->monitor);
	hs_routes_unref(&world->routes);
	for (int i = 0; i < SERVERS; i++) {
		assert_null(world->servers[i].upstream);
		hs_buf_deinit(&world->servers[i].in);
	}
	while (world->learned_told > 0)
		hs_learned_destroy(&world->learned[--world->learned_told]);
	hs_mem_free(&world);
}

/* The owner of the slot by the last routes, as the server's letter; '-': none. */
static inline char owner(const struct world *world, uint16_t slot)
{
	uint16_t node = world->routes->node_of_slot[slot];

	return node == HS_NODE_NONE ? '-' : world->routes->nodes[node].host[0];
}

#endif
