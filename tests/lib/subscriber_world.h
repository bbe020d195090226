/* A fixture for unit tests of the subscriber (engine/redis/subscriber.h). Nodes are named by letters, the test plays
 * the servers, and the clock is a number. Everything that the subscriber does is recorded, one line each, and
 * compared:
 *     open a       close a       a> SUBSCRIBE x       done 0 +OK       message x hello
 * The name of a tracking connection has a star: a*. One thread. Limits: CONNS_MAX connections, OPS_MAX operations. */
#ifndef HS_TESTS_SUBSCRIBER_WORLD_H
#define HS_TESTS_SUBSCRIBER_WORLD_H

#include "engine/redis/subscriber_internal.h"

#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { CONNS_MAX = 32, OPS_MAX = 64 };

struct asked {
	struct hs_op op;
	struct hs_bytes argv[2];
	struct hs_buf out;
	bool done;
};

struct world {
	struct hs_subscriber *subscriber;
	struct hs_log log;
	uint64_t now_us;
	struct hs_buf text;    /* recorded lines */
	bool quiet;	       /* do not record requests */
	uint64_t requests;     /* sent */
	char line_logged[256]; /* the last one */
	struct hs_upstream *open[CONNS_MAX];
	struct asked asked[OPS_MAX];
	int asked_count;
};

/* ---- the world ---- */

static inline const char *name_of(const struct hs_upstream *upstream)
{
	const struct hs_subscriber_conn *conn =
		hs_list_entry(upstream, struct hs_subscriber_conn, upstream);
	static char name[8];

	snprintf(name, sizeof name, "%.1s%s", conn->at.host, conn->tracks ? "*" : "");
	return name;
}

static inline void world_open(void *context, struct hs_upstream *upstream,
			      const struct hs_route_node *at)
{
	struct world *world = context;

	assert_int_equal(upstream->resp, 3);
	assert_int_equal(at->host[0], name_of(upstream)[0]);
	hs_buf_printf(&world->text, "open %s\n", name_of(upstream));
	for (int i = 0; i < CONNS_MAX; i++) {
		if (!world->open[i]) {
			world->open[i] = upstream;
			return;
		}
	}
	fail_msg("too many connections");
}

static inline void forget(struct world *world, const struct hs_upstream *upstream)
{
	for (int i = 0; i < CONNS_MAX; i++) {
		if (world->open[i] == upstream)
			world->open[i] = NULL;
	}
}

static inline void world_close(void *context, struct hs_upstream *upstream)
{
	struct world *world = context;

	hs_buf_printf(&world->text, "close %s\n", name_of(upstream));
	forget(world, upstream);
}

/* Records RESP requests as words. */
static inline void world_send(void *context, struct hs_upstream *upstream)
{
	struct world *world = context;
	const char *at = upstream->out.data, *end = at + upstream->out.len;

	while (at < end) {
		long count = strtol(at + 1, NULL, 10);

		world->requests++;
		at = (const char *)memchr(at, '\n', (size_t)(end - at)) + 1;
		if (!world->quiet)
			hs_buf_printf(&world->text, "%s>", name_of(upstream));
		for (long i = 0; i < count; i++) {
			long len = strtol(at + 1, NULL, 10);

			at = (const char *)memchr(at, '\n', (size_t)(end - at)) + 1;
			if (!world->quiet)
				hs_buf_printf(&world->text, " %.*s", (int)len, at);
			at += len + 2;
		}
		if (!world->quiet)
			hs_buf_printf(&world->text, "\n");
	}
	upstream->out.len = 0;
}

static inline void world_event(void *context, struct hs_event *event)
{
	static const char *const kinds[] = {
		[HS_EVENT_MESSAGE] = "message",	    [HS_EVENT_PATTERN_MESSAGE] = "pattern",
		[HS_EVENT_SHARD_MESSAGE] = "shard", [HS_EVENT_UNSUBSCRIBED] = "unlistened",
		[HS_EVENT_CHANGED] = "changed",	    [HS_EVENT_CHANGED_ALL] = "changed-all"};
	struct world *world = context;

	hs_buf_printf(&world->text, "%s", kinds[event->kind]);
	if (event->pattern.len > 0)
		hs_buf_printf(&world->text, " %.*s", (int)event->pattern.len, event->pattern.data);
	if (event->channel.len > 0)
		hs_buf_printf(&world->text, " %.*s", (int)event->channel.len, event->channel.data);
	if (event->payload.len > 0)
		hs_buf_printf(&world->text, " %.*s", (int)event->payload.len, event->payload.data);
	for (uint32_t i = 0; i < event->keys_count; i++)
		hs_buf_printf(&world->text, " %.*s", (int)event->keys[i].len, event->keys[i].data);
	hs_buf_printf(&world->text, "\n");
	if (event->kind == HS_EVENT_UNSUBSCRIBED)
		assert_int_equal(event->unsubscribed_kind, HS_EVENT_SHARD_MESSAGE);
	hs_event_unref(&event);
}

static inline void world_done(void *context, struct hs_op *op)
{
	struct world *world = context;
	struct asked *asked = op->owner;

	assert_false(asked->done);
	asked->done = true;
	if (!world->quiet || op->out->data[0] == '-')
		hs_buf_printf(&world->text, "done %u %.*s\n", op->worker, (int)op->out->len - 2,
			      op->out->data);
	hs_buf_deinit(op->out);
}

static inline void world_stale_topology(void *context)
{
	struct world *world = context;

	hs_buf_printf(&world->text, "topology-suspect\n");
}

static const struct hs_subscriber_calls calls = {
	.open = world_open,
	.close = world_close,
	.send = world_send,
	.event = world_event,
	.done = world_done,
	.topology_suspect = world_stale_topology,
};

static inline void sink(void *context, enum hs_log_level level, const char *line)
{
	struct world *world = context;

	(void)level;
	snprintf(world->line_logged, sizeof world->line_logged, "%s", line);
}

static inline void start(struct world *world, bool cluster)
{
	struct hs_subscriber_options options = {.log = &world->log, .cluster = cluster, .seed = 7};

	*world = (struct world){.now_us = 100000000};
	world->log = (struct hs_log){.sink = sink, .context = world};
	world->subscriber = hs_subscriber_create(&options, &calls, world);
}

static inline void stop(struct world *world)
{
	hs_subscriber_destroy(&world->subscriber);
	for (int i = 0; i < OPS_MAX; i++) {
		if (world->asked[i].op.owner)
			assert_true(world->asked[i].done);
	}
	hs_buf_deinit(&world->text);
}

static inline void expect_at(struct world *world, const char *wanted, int at)
{
	hs_buf_append(&world->text, "", 1);
	if (strcmp(world->text.data, wanted) != 0)
		fail_msg("line %d:\n--- wanted\n%s--- got\n%s", at, wanted, world->text.data);
	world->text.len = 0;
}
#define expect(world, wanted) expect_at(world, wanted, __LINE__)

/* "a b": nodes a and b with equal shares of the slots. Partitions are in the same order; `first` is the node of
 * partition 0. */
static inline struct hs_routes *create_routes(const char *nodes, uint16_t first)
{
	uint16_t count = (uint16_t)((strlen(nodes) + 1) / 2);
	struct hs_routes *routes = hs_routes_create(count, 0);

	for (uint16_t i = 0; i < count; i++) {
		snprintf(routes->nodes[i].host, sizeof routes->nodes[i].host, "%c", nodes[2 * i]);
		routes->nodes[i].port = 1;
		routes->node_of_partition[(i + count - first) % count] = i;
	}
	for (uint32_t i = 0; i < HS_SLOTS; i++)
		routes->node_of_slot[i] = (uint16_t)(i * count / HS_SLOTS);
	return routes;
}

static inline void route_as(struct world *world, const struct hs_routes *routes)
{
	hs_subscriber_route(world->subscriber, world->now_us, routes);
	hs_routes_unref(&routes);
}

static inline void route_first(struct world *world, const char *nodes, uint16_t first)
{
	route_as(world, create_routes(nodes, first));
}

static inline void route(struct world *world, const char *nodes)
{
	route_first(world, nodes, 0);
}

static inline struct hs_upstream *conn(struct world *world, const char *name)
{
	for (int i = 0; i < CONNS_MAX; i++) {
		if (world->open[i] && strcmp(name_of(world->open[i]), name) == 0)
			return world->open[i];
	}
	fail_msg("no connection %s is open", name);
	return NULL;
}

static inline void up(struct world *world, const char *name)
{
	hs_subscriber_up(world->subscriber, world->now_us, conn(world, name));
}

static inline void down(struct world *world, const char *name)
{
	struct hs_upstream *lost = conn(world, name);

	forget(world, lost);
	hs_subscriber_down(world->subscriber, world->now_us, lost, "gone");
}

static inline void say_bytes(struct world *world, const char *name, struct hs_bytes bytes)
{
	/* A copy that is freed after the call, so that a sanitizer finds later uses of the bytes. */
	char *data = hs_mem_dup(bytes.data, bytes.len);

	hs_subscriber_receive(world->subscriber, world->now_us, conn(world, name), data, bytes.len);
	hs_mem_free(&data);
}

static inline void say(struct world *world, const char *name, const char *bytes)
{
	say_bytes(world, name, hs_bytes_of(bytes));
}

/* Sends a push of words, push(world, "a", "subscribe x"); a confirmation gets its number appended. */
static inline void push(struct world *world, const char *name, const char *words)
{
	struct hs_buf body = {0}, all = {0};
	int count = 0;

	while (*words) {
		size_t len = strcspn(words, " ");

		hs_buf_printf(&body, "$%zu\r\n%.*s\r\n", len, (int)len, words);
		count++;
		words += len;
		words += *words == ' ';
	}
	if (body.len > 0 && strstr(body.data, "subscribe")) {
		hs_buf_printf(&body, ":1\r\n");
		count++;
	}
	hs_buf_printf(&all, ">%d\r\n%.*s", count, (int)body.len, body.data);
	say_bytes(world, name, hs_buf_bytes(&all));
	hs_buf_deinit(&body);
	hs_buf_deinit(&all);
}

static inline void ask(struct world *world, enum hs_op_kind kind, uint32_t worker, const char *verb,
		       struct hs_bytes name)
{
	struct asked *asked = &world->asked[world->asked_count++ % OPS_MAX];

	assert_true(!asked->op.owner || asked->done);
	*asked = (struct asked){.argv = {hs_bytes_of(verb), name}};
	asked->op = (struct hs_op){
		.kind = kind,
		.resp = 2,
		.argv = asked->argv,
		.argc = 2,
		.out = &asked->out,
		.worker = worker,
		.owner = asked,
	};
	hs_subscriber_submit(world->subscriber, world->now_us, &asked->op);
}

static inline void subscribe(struct world *world, uint32_t worker, const char *verb,
			     const char *name)
{
	ask(world, HS_OP_SUBSCRIBE, worker, verb, hs_bytes_of(name));
}

static inline void unsubscribe(struct world *world, uint32_t worker, const char *verb,
			       const char *name)
{
	ask(world, HS_OP_UNSUBSCRIBE, worker, verb, hs_bytes_of(name));
}

static inline void track(struct world *world, uint32_t worker)
{
	ask(world, HS_OP_TRACK, worker, "", (struct hs_bytes){"", 0});
}

static inline void untrack(struct world *world, uint32_t worker)
{
	ask(world, HS_OP_UNTRACK, worker, "", (struct hs_bytes){"", 0});
}

static inline void tick(struct world *world, uint64_t us)
{
	world->now_us += us;
	hs_subscriber_tick(world->subscriber, world->now_us);
}

/* Lets time pass in steps of the subscriber's tick. */
static inline void pass(struct world *world, uint64_t us)
{
	for (uint64_t i = 0; i < us; i += HS_SUBSCRIBER_TICK_US)
		tick(world, HS_SUBSCRIBER_TICK_US);
}

#endif
