/* Goal: what workers want to hear is subscribed once, at the right server, and again when a server or
 * a slot is lost; messages come through once; nobody is left without a word when changes of keys may
 * have been missed; nothing grows without bound.
 * Method: a script. Nodes are named by letters, servers are played by the test, time is a number. What
 * the book does is written down, one line each, and compared:
 *     open a       close a       a> SUBSCRIBE x       done 0 +OK       message x hello
 * A line that tracks keys is written with a star: a*. */
#include "engine/redis/herald_book.h"

#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { LINES_MAX = 32, OPS_MAX = 64 };

struct asked {
	struct hs_op op;
	struct hs_bytes argv[2];
	struct hs_buf out;
	bool done;
};

struct world {
	struct hs_herald_book *book;
	struct hs_log log;
	uint64_t now_ms;
	struct hs_buf text;    /* what happened */
	bool quiet;	       /* requests are not written down */
	uint64_t requests;     /* sent */
	char line_logged[256]; /* the last one */
	struct hs_herald_line *lines[LINES_MAX];
	struct asked asked[OPS_MAX];
	int asked_count;
};

/* ---- the world ---- */

static const char *name_of(const struct hs_herald_line *line)
{
	static char name[8];

	snprintf(name, sizeof name, "%.1s%s", line->at.host, line->tracks ? "*" : "");
	return name;
}

static void world_open(void *context, struct hs_herald_line *line)
{
	struct world *world = context;

	hs_buf_printf(&world->text, "open %s\n", name_of(line));
	for (int i = 0; i < LINES_MAX; i++) {
		if (!world->lines[i]) {
			world->lines[i] = line;
			return;
		}
	}
	fail_msg("too many lines");
}

static void forget(struct world *world, const struct hs_herald_line *line)
{
	for (int i = 0; i < LINES_MAX; i++) {
		if (world->lines[i] == line)
			world->lines[i] = NULL;
	}
}

static void world_close(void *context, struct hs_herald_line *line)
{
	struct world *world = context;

	hs_buf_printf(&world->text, "close %s\n", name_of(line));
	forget(world, line);
}

/* "*2 $9 SUBSCRIBE $1 x" as words. */
static void world_send(void *context, struct hs_herald_line *line)
{
	struct world *world = context;
	const char *at = line->out.data, *end = at + line->out.len;

	while (at < end) {
		long count = strtol(at + 1, NULL, 10);

		world->requests++;
		at = (const char *)memchr(at, '\n', (size_t)(end - at)) + 1;
		if (!world->quiet)
			hs_buf_printf(&world->text, "%s>", name_of(line));
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
	line->out.len = 0;
}

static void world_news(void *context, struct hs_news *news)
{
	static const char *const kinds[] = {
		[HS_NEWS_MESSAGE] = "message", [HS_NEWS_PATTERN] = "pattern",
		[HS_NEWS_SHARD] = "shard",     [HS_NEWS_UNLISTENED] = "unlistened",
		[HS_NEWS_CHANGED] = "changed", [HS_NEWS_CHANGED_ALL] = "changed-all"};
	struct world *world = context;

	hs_buf_printf(&world->text, "%s", kinds[news->kind]);
	if (news->pattern.len > 0)
		hs_buf_printf(&world->text, " %.*s", (int)news->pattern.len, news->pattern.data);
	if (news->channel.len > 0)
		hs_buf_printf(&world->text, " %.*s", (int)news->channel.len, news->channel.data);
	if (news->payload.len > 0)
		hs_buf_printf(&world->text, " %.*s", (int)news->payload.len, news->payload.data);
	for (uint32_t i = 0; i < news->keys_count; i++)
		hs_buf_printf(&world->text, " %.*s", (int)news->keys[i].len, news->keys[i].data);
	hs_buf_printf(&world->text, "\n");
	if (news->kind == HS_NEWS_UNLISTENED)
		assert_int_equal(news->was, HS_NEWS_SHARD);
	hs_news_unref(&news);
}

static void world_done(void *context, struct hs_op *op)
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

static void world_surprise(void *context)
{
	struct world *world = context;

	hs_buf_printf(&world->text, "surprise\n");
}

static const struct hs_herald_calls calls = {
	.open = world_open,
	.close = world_close,
	.send = world_send,
	.news = world_news,
	.done = world_done,
	.surprise = world_surprise,
};

static void sink(void *context, enum hs_log_level level, const char *line)
{
	struct world *world = context;

	(void)level;
	snprintf(world->line_logged, sizeof world->line_logged, "%s", line);
}

static void start(struct world *world, bool cluster)
{
	struct hs_herald_book_options options = {.log = &world->log, .cluster = cluster, .seed = 7};

	*world = (struct world){.now_ms = 100000};
	world->log = (struct hs_log){.sink = sink, .context = world};
	world->book = hs_herald_book_create(&options, &calls, world);
}

static void stop(struct world *world)
{
	hs_herald_book_destroy(&world->book);
	for (int i = 0; i < OPS_MAX; i++) {
		if (world->asked[i].op.owner)
			assert_true(world->asked[i].done);
	}
	hs_buf_deinit(&world->text);
}

static void expect_at(struct world *world, const char *wanted, int at)
{
	hs_buf_append(&world->text, "", 1);
	if (strcmp(world->text.data, wanted) != 0)
		fail_msg("line %d:\n--- wanted\n%s--- got\n%s", at, wanted, world->text.data);
	world->text.len = 0;
}
#define expect(world, wanted) expect_at(world, wanted, __LINE__)

/* "a b": nodes a and b with an equal share of the slots each; partitions in that order, unless
 * `first` says which one is partition 0. */
static void route_first(struct world *world, const char *nodes, uint16_t first)
{
	uint16_t count = (uint16_t)((strlen(nodes) + 1) / 2);
	struct hs_routes *made = hs_routes_create(count);
	const struct hs_routes *routes = made;

	for (uint16_t i = 0; i < count; i++) {
		snprintf(made->nodes[i].host, sizeof made->nodes[i].host, "%c", nodes[2 * i]);
		made->nodes[i].port = 1;
		made->node_of_partition[(i + count - first) % count] = i;
	}
	for (uint32_t i = 0; i < HS_SLOTS; i++)
		made->node_of_slot[i] = (uint16_t)(i * count / HS_SLOTS);
	hs_herald_book_route(world->book, world->now_ms, routes);
	hs_routes_unref(&routes);
}

static void route(struct world *world, const char *nodes)
{
	route_first(world, nodes, 0);
}

static struct hs_herald_line *line(struct world *world, const char *name)
{
	for (int i = 0; i < LINES_MAX; i++) {
		if (world->lines[i] && strcmp(name_of(world->lines[i]), name) == 0)
			return world->lines[i];
	}
	fail_msg("no line %s is open", name);
	return NULL;
}

static void up(struct world *world, const char *name)
{
	hs_herald_book_up(world->book, world->now_ms, line(world, name));
}

static void down(struct world *world, const char *name)
{
	struct hs_herald_line *lost = line(world, name);

	forget(world, lost);
	hs_herald_book_down(world->book, world->now_ms, lost, "gone");
}

static void say_bytes(struct world *world, const char *name, struct hs_bytes bytes)
{
	/* A copy of its own, so that what is kept of it beyond the call is found by a sanitizer. */
	char *data = hs_mem_dup(bytes.data, bytes.len);

	hs_herald_book_receive(world->book, world->now_ms, line(world, name), data, bytes.len);
	hs_mem_free(&data);
}

static void say(struct world *world, const char *name, const char *bytes)
{
	say_bytes(world, name, hs_bytes_of(bytes));
}

/* A push of words: push(world, "a", "subscribe x"), with a number behind. */
static void push(struct world *world, const char *name, const char *words)
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
	if (strstr(body.data, "subscribe")) {
		hs_buf_printf(&body, ":1\r\n");
		count++;
	}
	hs_buf_printf(&all, ">%d\r\n%.*s", count, (int)body.len, body.data);
	say_bytes(world, name, hs_buf_bytes(&all));
	hs_buf_deinit(&body);
	hs_buf_deinit(&all);
}

static void ask(struct world *world, enum hs_op_kind kind, uint32_t worker, const char *verb,
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
	hs_herald_book_ask(world->book, world->now_ms, &asked->op);
}

static void listen(struct world *world, uint32_t worker, const char *verb, const char *name)
{
	ask(world, HS_OP_LISTEN, worker, verb, hs_bytes_of(name));
}

static void unlisten(struct world *world, uint32_t worker, const char *verb, const char *name)
{
	ask(world, HS_OP_UNLISTEN, worker, verb, hs_bytes_of(name));
}

static void track(struct world *world, uint32_t worker)
{
	ask(world, HS_OP_TRACK, worker, "", (struct hs_bytes){"", 0});
}

static void untrack(struct world *world, uint32_t worker)
{
	ask(world, HS_OP_UNTRACK, worker, "", (struct hs_bytes){"", 0});
}

static void tick(struct world *world, uint64_t ms)
{
	world->now_ms += ms;
	hs_herald_book_tick(world->book, world->now_ms);
}

/* Time goes by as it does, in steps; servers that are open answer pings. */
static void pass(struct world *world, uint64_t ms)
{
	for (uint64_t i = 0; i < ms; i += 100)
		tick(world, 100);
}

/* ---- channels and patterns ---- */

static void test_subscribed_once_for_all_workers(void **state)
{
	struct world world;

	(void)state;
	start(&world, true);
	route(&world, "a b");
	expect(&world, "");
	listen(&world, 0, "SUBSCRIBE", "x");
	listen(&world, 1, "SUBSCRIBE", "x");
	expect(&world, "open a\n");
	up(&world, "a");
	expect(&world, "a> SUBSCRIBE x\n");
	push(&world, "a", "subscribe x");
	expect(&world, "done 0 +OK\ndone 1 +OK\n");
	listen(&world, 2, "SUBSCRIBE", "x");
	listen(&world, 2, "SUBSCRIBE", "x"); /* said twice counts once */
	expect(&world, "done 2 +OK\ndone 2 +OK\n");
	listen(&world, 2, "PSUBSCRIBE", "x");
	push(&world, "a", "psubscribe x");
	expect(&world, "a> PSUBSCRIBE x\ndone 2 +OK\n");
	push(&world, "a", "message x hello");
	push(&world, "a", "pmessage x x hello");
	push(&world, "a", "message y nobody");
	expect(&world, "message x hello\npattern x x hello\n");
	unlisten(&world, 0, "SUBSCRIBE", "x");
	unlisten(&world, 2, "SUBSCRIBE", "x");
	expect(&world, "done 0 +OK\ndone 2 +OK\n");
	unlisten(&world, 1, "SUBSCRIBE", "x");
	expect(&world, "a> UNSUBSCRIBE x\n");
	push(&world, "a", "message x late");
	listen(&world, 1, "SUBSCRIBE", "x"); /* again, before the answer */
	push(&world, "a", "unsubscribe x");
	push(&world, "a", "subscribe x");
	expect(&world, "a> SUBSCRIBE x\ndone 1 +OK\ndone 1 +OK\n");
	unlisten(&world, 1, "SUBSCRIBE", "x");
	unlisten(&world, 2, "PSUBSCRIBE", "x");
	unlisten(&world, 2, "PSUBSCRIBE", "x"); /* not there any more */
	expect(&world, "a> UNSUBSCRIBE x\na> PUNSUBSCRIBE x\ndone 2 +OK\n");
	push(&world, "a", "unsubscribe x");
	expect(&world, "done 1 +OK\n");
	tick(&world, HS_HERALD_KEEP_MS - 1); /* kept for the next who comes */
	push(&world, "a", "punsubscribe x");
	expect(&world, "a> PING\ndone 2 +OK\n");
	tick(&world, 1);
	expect(&world, "close a\n");
	stop(&world);
}

static void test_messages_in_pieces(void **state)
{
	static const char bytes[] = ">3\r\n$9\r\nsubscribe\r\n$1\r\nx\r\n:1\r\n"
				    ">3\r\n$7\r\nmessage\r\n$1\r\nx\r\n$5\r\nhello\r\n"
				    ">3\r\n$7\r\nmessage\r\n$1\r\nx\r\n$0\r\n\r\n";

	(void)state;
	for (size_t size = 1; size < sizeof bytes; size++) {
		struct world world;

		start(&world, false);
		route(&world, "a");
		listen(&world, 0, "SUBSCRIBE", "x");
		up(&world, "a");
		for (size_t at = 0; at < sizeof bytes - 1; at += size) {
			size_t left = sizeof bytes - 1 - at;

			say_bytes(&world, "a",
				  (struct hs_bytes){bytes + at, left < size ? left : size});
		}
		expect(&world, "open a\na> SUBSCRIBE x\ndone 0 +OK\nmessage x hello\nmessage x\n");
		stop(&world);
	}
}

static void test_one_server_has_everything(void **state)
{
	struct world world;

	(void)state;
	start(&world, false);
	listen(&world, 0, "SSUBSCRIBE", "s");
	listen(&world, 0, "SUBSCRIBE", "x");
	expect(&world, ""); /* nobody is known yet */
	route(&world, "a");
	expect(&world, "open a\n");
	up(&world, "a");
	expect(&world, "a> SSUBSCRIBE s\na> SUBSCRIBE x\n");
	push(&world, "a", "ssubscribe s");
	push(&world, "a", "subscribe x");
	push(&world, "a", "smessage s 1");
	push(&world, "a", "message x 2");
	expect(&world, "done 0 +OK\ndone 0 +OK\nshard s 1\nmessage x 2\n");
	down(&world, "a"); /* nobody else could have it: it is waited for, for ever */
	pass(&world, 2 * HS_HERALD_FOLLOW_MS_MAX);
	up(&world, "a");
	push(&world, "a", "ssubscribe s");
	push(&world, "a", "smessage s 3");
	expect(&world, "open a\na> SSUBSCRIBE s\na> SUBSCRIBE x\nshard s 3\n");
	stop(&world);
}

static void test_a_lost_line_is_had_back(void **state)
{
	struct world world;

	(void)state;
	start(&world, false);
	route(&world, "a");
	listen(&world, 0, "SUBSCRIBE", "x");
	up(&world, "a");
	push(&world, "a", "subscribe x");
	expect(&world, "open a\na> SUBSCRIBE x\ndone 0 +OK\n");
	down(&world, "a");
	expect(&world, "open a\n"); /* at once */
	assert_string_equal(world.line_logged,
			    "a:1: gone: messages to subscribers are lost until it is back");
	world.line_logged[0] = '\0';
	down(&world, "a");
	expect(&world, "");
	tick(&world, HS_HERALD_OPEN_MS_MIN);
	expect(&world, "open a\n");
	down(&world, "a");
	tick(&world, HS_HERALD_OPEN_MS_MIN);
	expect(&world, ""); /* later each time */
	tick(&world, HS_HERALD_OPEN_MS_MIN);
	expect(&world, "open a\n");
	assert_string_equal(world.line_logged, "");
	up(&world, "a");
	push(&world, "a", "subscribe x");
	push(&world, "a", "message x back");
	expect(&world, "a> SUBSCRIBE x\nmessage x back\n");
	down(&world, "a"); /* lost again at once: not told again, and not tried at once */
	assert_string_equal(world.line_logged, "a:1: its news are heard again");
	expect(&world, "");
	pass(&world, HS_HERALD_OPEN_MS_MAX);
	expect(&world, "open a\n");
	unlisten(&world, 0, "SUBSCRIBE", "x"); /* nothing to ask of anybody */
	expect(&world, "done 0 +OK\nclose a\n");
	stop(&world);
}

static void test_home_is_another_while_partition_0_is_away(void **state)
{
	struct world world;

	(void)state;
	start(&world, true);
	route_first(&world, "a b c", 1);
	listen(&world, 0, "SUBSCRIBE", "x");
	up(&world, "b");
	push(&world, "b", "subscribe x");
	expect(&world, "open b\nb> SUBSCRIBE x\ndone 0 +OK\n");
	down(&world, "b"); /* another is tried beside it */
	expect(&world, "open b\nopen c\n");
	down(&world, "c");
	expect(&world, "open a\n");
	up(&world, "a");
	push(&world, "a", "subscribe x");
	push(&world, "a", "message x 1");
	expect(&world, "a> SUBSCRIBE x\nmessage x 1\n");
	/* It is back: moves there, and hears one of the two all the time. */
	up(&world, "b");
	push(&world, "a", "message x 2");
	expect(&world, "b> SUBSCRIBE x\nmessage x 2\n");
	push(&world, "b", "subscribe x");
	push(&world, "a", "message x 3");
	push(&world, "b", "message x 3");
	expect(&world, "a> UNSUBSCRIBE x\nmessage x 3\n");
	stop(&world);
}

static void test_home_moves_when_its_node_is_not_listed_any_more(void **state)
{
	struct world world;

	(void)state;
	start(&world, true);
	route(&world, "a b");
	listen(&world, 0, "SUBSCRIBE", "x");
	up(&world, "a");
	push(&world, "a", "subscribe x");
	world.text.len = 0;
	route(&world, "c b");
	push(&world, "a", "message x 1"); /* still there */
	expect(&world, "open c\nmessage x 1\n");
	down(&world, "c");
	push(&world, "a", "message x 2");
	expect(&world, "message x 2\n");
	tick(&world, HS_HERALD_OPEN_MS_MIN);
	up(&world, "c");
	push(&world, "c", "subscribe x");
	push(&world, "c", "message x 3");
	expect(&world, "open c\nc> SUBSCRIBE x\nclose a\nmessage x 3\n");
	stop(&world);
}

static void test_listen_fails_when_it_is_refused_or_late(void **state)
{
	struct world world;

	(void)state;
	start(&world, true);
	listen(&world, 0, "SUBSCRIBE", "x");
	pass(&world, HS_HERALD_WAIT_MS_MAX);
	expect(&world, "done 0 -CLUSTERDOWN cannot listen to it: none of the engine's servers has "
		       "answered yet\n");
	route(&world, "a");
	listen(&world, 0, "SUBSCRIBE", "x");
	down(&world, "a");
	expect(&world, "open a\n");
	tick(&world, HS_HERALD_WAIT_MS_MAX);
	expect(&world, "done 0 -CLUSTERDOWN cannot listen to it: gone\n");
	tick(&world, HS_HERALD_KEEP_MS);
	listen(&world, 1, "SUBSCRIBE", "x");
	listen(&world, 0, "SUBSCRIBE", "y");
	up(&world, "a");
	expect(&world, "open a\na> SUBSCRIBE x\na> SUBSCRIBE y\n");
	say(&world, "a", "-NOPERM no\r\n");
	push(&world, "a", "subscribe y");
	expect(&world, "done 1 -NOPERM no\ndone 0 +OK\n");
	tick(&world, HS_HERALD_RETRY_MS);
	expect(&world, "");
	/* Nobody answers: what was asked for is taken back. */
	listen(&world, 1, "SUBSCRIBE", "z");
	tick(&world, HS_HERALD_WAIT_MS_MAX);
	expect(&world, "a> SUBSCRIBE z\n"
		       "done 1 -CLUSTERDOWN cannot listen to it: the server does not answer\n"
		       "a> PING\na> UNSUBSCRIBE z\n");
	push(&world, "a", "subscribe z");
	say(&world, "a", "+PONG\r\n");
	push(&world, "a", "unsubscribe z");
	push(&world, "a", "message z nobody");
	expect(&world, "");
	stop(&world);
}

/* ---- shard channels: slot_of("b") is 3300, in the first half; slot_of("a") 15495 ---- */

static void listen_to_shards(struct world *world)
{
	start(world, true);
	route(world, "a b");
	listen(world, 0, "SSUBSCRIBE", "b");
	listen(world, 0, "SSUBSCRIBE", "a");
	expect(world, "open a\nopen b\n");
	up(world, "a");
	up(world, "b");
	push(world, "a", "ssubscribe b");
	push(world, "b", "ssubscribe a");
	push(world, "a", "smessage b 1");
	push(world, "b", "smessage a 2");
	expect(world, "a> SSUBSCRIBE b\nb> SSUBSCRIBE a\ndone 0 +OK\ndone 0 +OK\nshard b 1\n"
		      "shard a 2\n");
}

static void test_a_shard_channel_follows_the_routes(void **state)
{
	struct world world;

	(void)state;
	listen_to_shards(&world);
	route(&world, "b a"); /* both slots change sides */
	world.text.len = 0;
	say(&world, "b", "-MOVED 3300 a:1\r\n"); /* it does not know yet */
	push(&world, "a", "smessage b 3");
	expect(&world, "surprise\nshard b 3\n");
	tick(&world, HS_HERALD_RETRY_MS);
	push(&world, "b", "ssubscribe b");
	push(&world, "b", "smessage b 4");
	expect(&world, "b> SSUBSCRIBE b\na> SUNSUBSCRIBE b\nshard b 4\n");
	stop(&world);
}

static void test_a_shard_channel_that_the_server_dropped(void **state)
{
	struct world world;

	(void)state;
	listen_to_shards(&world);
	push(&world, "a", "sunsubscribe b");
	expect(&world, "surprise\n");
	tick(&world, HS_HERALD_RETRY_MS);
	say(&world, "a", "-MOVED 3300 b:1\r\n");
	expect(&world, "a> SSUBSCRIBE b\nsurprise\n");
	route(&world, "b");
	expect(&world, "close a\nb> SSUBSCRIBE b\n");
	push(&world, "b", "ssubscribe b");
	push(&world, "b", "smessage b 3");
	pass(&world, HS_HERALD_PING_MS - HS_HERALD_RETRY_MS);
	expect(&world, "shard b 3\n");
	stop(&world);
}

static void test_the_refusal_of_an_answer_that_came_already(void **state)
{
	struct world world;

	(void)state;
	listen_to_shards(&world);
	listen(&world, 0, "SSUBSCRIBE", "{b}2");
	push(&world, "a", "ssubscribe {b}2");
	unlisten(&world, 0, "SSUBSCRIBE", "b");
	listen(&world, 0, "SUBSCRIBE", "x");
	expect(&world, "a> SSUBSCRIBE {b}2\ndone 0 +OK\na> SUNSUBSCRIBE b\na> SUBSCRIBE x\n");
	/* The slot goes while SUNSUBSCRIBE is on its way. */
	push(&world, "a", "sunsubscribe b");
	push(&world, "a", "sunsubscribe {b}2");
	say(&world, "a", "-MOVED 3300 b:1\r\n");
	push(&world, "a", "subscribe x");
	expect(&world, "done 0 +OK\nsurprise\ndone 0 +OK\n");
	stop(&world);
}

static void test_a_shard_channel_that_nobody_serves(void **state)
{
	struct world world;

	(void)state;
	listen_to_shards(&world);
	down(&world, "a");
	down(&world, "a");
	world.text.len = 0;
	for (int ms = 0; ms < HS_HERALD_FOLLOW_MS_MAX - 1000; ms += 1000) {
		tick(&world, 1000);
		if (strstr(world.text.data, "open a"))
			down(&world, "a");
		assert_null(strstr(world.text.data, "unlistened"));
		say(&world, "b", "+PONG\r\n");
		world.text.len = 0;
		hs_buf_append(&world.text, "", 1);
		world.text.len = 0;
	}
	listen(&world, 1, "SSUBSCRIBE", "b"); /* another one comes, and its own time begins */
	world.text.len = 0;
	tick(&world, 1000);
	assert_string_equal(world.line_logged,
			    "1 shard channels had no server for 30 s: their subscribers are told");
	unlisten(&world, 0, "SSUBSCRIBE", "b");
	hs_buf_append(&world.text, "", 1);
	assert_non_null(strstr(world.text.data, "unlistened b\n"));
	assert_non_null(strstr(world.text.data, "done 0 +OK\n"));
	assert_null(strstr(world.text.data, "done 1"));
	stop(&world);
}

/* ---- keys ---- */

static void track_two(struct world *world)
{
	start(world, true);
	route(world, "a b");
	track(world, 0);
	expect(world, "open a*\nopen b*\n");
	up(world, "a*");
	up(world, "b*");
	say(world, "a*", "+OK\r\n");
	expect(world, "a*> CLIENT TRACKING ON BCAST\nb*> CLIENT TRACKING ON BCAST\n");
	say(world, "b*", "+OK\r\n");
	expect(world, "done 0 +OK\n");
}

static void test_keys_of_all_masters(void **state)
{
	struct world world;

	(void)state;
	track_two(&world);
	track(&world, 1);
	expect(&world, "done 1 +OK\n");
	say(&world, "a*",
	    ">2\r\n$10\r\ninvalidate\r\n*2\r\n$1\r\nx\r\n$1\r\ny\r\n"
	    ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nz\r\n>2\r\n$10\r\ninval");
	expect(&world, "changed x y z\n"); /* one piece of news */
	say(&world, "a*", "idate\r\n*1\r\n$1\r\nw\r\n");
	expect(&world, "changed w\n");
	say(&world, "b*",
	    ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nx\r\n>2\r\n$10\r\ninvalidate\r\n_\r\n");
	expect(&world, "changed-all\n");
	untrack(&world, 0);
	expect(&world, "done 0 +OK\n");
	untrack(&world, 1);
	expect(&world, "done 1 +OK\nclose a*\nclose b*\n");
	track(&world, 1);
	expect(&world, "open a*\nopen b*\n");
	untrack(&world, 0);
	stop(&world);
}

static void test_everything_may_have_changed_while_a_master_is_not_watched(void **state)
{
	struct world world;

	(void)state;
	track_two(&world);
	down(&world, "a*");
	expect(&world, "open a*\nchanged-all\n");
	assert_string_equal(world.line_logged, "a:1: gone: lost the news of keys that change");
	tick(&world, HS_HERALD_TELL_MS - 100);
	expect(&world, "");
	tick(&world, 100);
	expect(&world, "changed-all\nb*> PING\n");
	say(&world, "b*", "+PONG\r\n");
	track(&world, 1); /* waits until all are watched */
	up(&world, "a*");
	tick(&world, HS_HERALD_TELL_MS);
	expect(&world, "a*> CLIENT TRACKING ON BCAST\nchanged-all\na*> PING\nb*> PING\n");
	say(&world, "b*", "+PONG\r\n");
	say(&world, "a*", "+OK\r\n+PONG\r\n");
	expect(&world, "changed-all\ndone 1 +OK\n");
	tick(&world, HS_HERALD_TELL_MS - 1);
	expect(&world, "");
	stop(&world);
}

static void test_routes_that_change_may_hide_changes(void **state)
{
	struct world world;

	(void)state;
	track_two(&world);
	route(&world, "a b");
	expect(&world, ""); /* the same */
	route(&world, "b a");
	expect(&world, "changed-all\n");
	route(&world, "a b c");
	expect(&world, "open c*\nchanged-all\n");
	up(&world, "c*");
	say(&world, "c*", "+OK\r\n");
	expect(&world, "c*> CLIENT TRACKING ON BCAST\nchanged-all\n");
	route(&world, "a d c"); /* a failover */
	expect(&world, "close b*\nopen d*\nchanged-all\n");
	up(&world, "d*");
	say(&world, "d*", "+OK\r\n");
	expect(&world, "d*> CLIENT TRACKING ON BCAST\nchanged-all\n");
	stop(&world);
}

static void test_a_line_that_says_nothing_watches_nothing(void **state)
{
	struct world world;

	(void)state;
	track_two(&world);
	tick(&world, HS_HERALD_PING_MS);
	expect(&world, "a*> PING\nb*> PING\n");
	say(&world, "a*", "+PONG\r\n");
	tick(&world, HS_HERALD_SUSPECT_MS - 1);
	expect(&world, "");
	tick(&world, 1);
	expect(&world, "changed-all\na*> PING\n");
	say(&world, "a*", "+PONG\r\n");
	tick(&world, HS_HERALD_TELL_MS);
	expect(&world, "changed-all\na*> PING\n");
	say(&world, "a*", "+PONG\r\n");
	say(&world, "b*", "+PONG\r\n"); /* it was busy */
	expect(&world, "changed-all\n");
	tick(&world, HS_HERALD_PING_MS);
	expect(&world, "a*> PING\nb*> PING\n");
	tick(&world, HS_HERALD_SILENT_MS_MAX - 1);
	say(&world, "a*", "+PONG\r\n");
	expect(&world, "changed-all\n");
	tick(&world, 1);
	expect(&world, "close b*\nopen b*\nchanged-all\n");
	stop(&world);
}

static void test_track_fails_when_it_is_refused_or_late(void **state)
{
	struct world world;

	(void)state;
	start(&world, true);
	track(&world, 0);
	tick(&world, HS_HERALD_WAIT_MS_MAX);
	expect(&world, "done 0 -CLUSTERDOWN cannot watch which keys change: none of the engine's "
		       "servers has answered yet\n");
	route(&world, "a b");
	track(&world, 0);
	track(&world, 1);
	up(&world, "a*");
	say(&world, "a*", "-NOPERM no\r\n");
	expect(&world, "open a*\nopen b*\na*> CLIENT TRACKING ON BCAST\ndone 0 -NOPERM no\n"
		       "done 1 -NOPERM no\nclose a*\nclose b*\n");
	track(&world, 0);
	up(&world, "a*");
	say(&world, "a*", "+OK\r\n");
	down(&world, "b*");
	tick(&world, HS_HERALD_WAIT_MS_MAX);
	expect(&world, "open a*\nopen b*\na*> CLIENT TRACKING ON BCAST\n"
		       "done 0 -CLUSTERDOWN cannot watch which keys change: b:1: gone\n"
		       "close a*\n");
	stop(&world);
}

/* ---- limits, and servers that talk nonsense ---- */

static void test_nonsense_ends_the_line(void **state)
{
	static const char *const nonsense[] = {
		"hello\r\n",
		"+OK\r\n",
		"-ERR\r\n",
		">3\r\n$9\r\nsubscribe\r\n$1\r\ny\r\n:1\r\n",
		">1\r\n$7\r\nmessage\r\n",
		">2\r\n$10\r\ninvalidate\r\n:1\r\n",
		">1\r\n:1\r\n",
	};

	(void)state;
	for (size_t i = 0; i < sizeof nonsense / sizeof *nonsense; i++) {
		struct world world;

		start(&world, false);
		route(&world, "a");
		listen(&world, 0, "SUBSCRIBE", "x");
		up(&world, "a");
		push(&world, "a", "subscribe x");
		world.text.len = 0;
		say(&world, "a", nonsense[i]);
		expect(&world, "close a\nopen a\n");
		stop(&world);
	}
}

static void test_a_message_larger_than_any(void **state)
{
	size_t size = HS_NEWS_BYTES_MAX - HS_BULK_BYTES_MAX;
	struct hs_buf bytes = {0};
	struct world world;

	(void)state;
	start(&world, false);
	route(&world, "a");
	listen(&world, 0, "SUBSCRIBE", "x");
	up(&world, "a");
	push(&world, "a", "subscribe x");
	world.text.len = 0;
	/* A name of 1 MiB, and then a message of which there is only the length. */
	hs_buf_printf(&bytes, ">3\r\n$7\r\nmessage\r\n$%zu\r\n", size);
	memset(hs_buf_reserve(&bytes, size), 'x', size);
	bytes.len += size;
	hs_buf_printf(&bytes, "\r\n$%zu\r\n", HS_BULK_BYTES_MAX - 100);
	say_bytes(&world, "a", hs_buf_bytes(&bytes));
	expect(&world, "");
	down(&world, "a");
	up(&world, "a");
	world.text.len = 0;
	bytes.len -= strlen("$536870812\r\n");
	hs_buf_printf(&bytes, "$%zu\r\n", HS_BULK_BYTES_MAX);
	say_bytes(&world, "a", hs_buf_bytes(&bytes));
	expect(&world, "close a\n");
	hs_buf_deinit(&bytes);
	stop(&world);
}

static void test_subscriptions_go_out_in_portions(void **state)
{
	enum { TOPICS = HS_HERALD_TURNS_MAX + 10 };
	struct world world;
	char name[16];

	(void)state;
	start(&world, false);
	route(&world, "a");
	world.quiet = true;
	listen(&world, 0, "SUBSCRIBE", "0");
	up(&world, "a");
	push(&world, "a", "subscribe 0");
	for (int i = 1; i < TOPICS; i++) {
		snprintf(name, sizeof name, "%d", i);
		listen(&world, 0, "SUBSCRIBE", name);
		snprintf(name, sizeof name, "subscribe %d", i);
		push(&world, "a", name);
	}
	assert_int_equal(world.requests, TOPICS);
	down(&world, "a");
	world.requests = 0;
	up(&world, "a");
	assert_int_equal(world.requests, HS_HERALD_TURNS_MAX);
	expect(&world, "open a\nopen a\n");
	stop(&world);
}

static void test_as_many_channels_as_the_limit_says(void **state)
{
	struct world world;
	char name[32];

	(void)state;
	start(&world, false);
	route(&world, "a");
	listen(&world, 0, "SUBSCRIBE", "0");
	up(&world, "a");
	push(&world, "a", "subscribe 0");
	world.text.len = 0;
	world.quiet = true;
	for (int i = 1; i < HS_CHANNELS_MAX; i++) {
		snprintf(name, sizeof name, "%d", i);
		listen(&world, 0, "SUBSCRIBE", name);
		snprintf(name, sizeof name, "subscribe %d", i);
		push(&world, "a", name);
	}
	expect(&world, "");
	listen(&world, 0, "PSUBSCRIBE", "0");
	listen(&world, 1, "SUBSCRIBE", "0"); /* one that is there already */
	expect(&world, "done 0 -ERR too many subscriptions: at most 1048576 channels and patterns "
		       "in all\n");
	stop(&world);
}

static void test_as_many_bytes_of_names_as_the_limit_says(void **state)
{
	size_t size = HS_CHANNEL_NAMES_BYTES_MAX / 2;
	char *name = hs_mem_zalloc(size + 1);
	struct world world;

	(void)state;
	start(&world, false); /* nobody is there: they wait */
	for (char i = 0; i < 2; i++) {
		name[0] = i;
		ask(&world, HS_OP_LISTEN, 0, "SUBSCRIBE", (struct hs_bytes){name, size});
	}
	listen(&world, 0, "SUBSCRIBE", "x");
	expect(&world, "done 0 -ERR too many subscriptions: names of at most 256 MiB in all\n");
	tick(&world, HS_HERALD_WAIT_MS_MAX);
	world.text.len = 0;
	listen(&world, 0, "SUBSCRIBE", "x");
	expect(&world, "");
	hs_mem_free(&name);
	stop(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_subscribed_once_for_all_workers),
		cmocka_unit_test(test_messages_in_pieces),
		cmocka_unit_test(test_one_server_has_everything),
		cmocka_unit_test(test_a_lost_line_is_had_back),
		cmocka_unit_test(test_home_is_another_while_partition_0_is_away),
		cmocka_unit_test(test_home_moves_when_its_node_is_not_listed_any_more),
		cmocka_unit_test(test_listen_fails_when_it_is_refused_or_late),
		cmocka_unit_test(test_a_shard_channel_follows_the_routes),
		cmocka_unit_test(test_a_shard_channel_that_the_server_dropped),
		cmocka_unit_test(test_the_refusal_of_an_answer_that_came_already),
		cmocka_unit_test(test_a_shard_channel_that_nobody_serves),
		cmocka_unit_test(test_keys_of_all_masters),
		cmocka_unit_test(test_everything_may_have_changed_while_a_master_is_not_watched),
		cmocka_unit_test(test_routes_that_change_may_hide_changes),
		cmocka_unit_test(test_a_line_that_says_nothing_watches_nothing),
		cmocka_unit_test(test_track_fails_when_it_is_refused_or_late),
		cmocka_unit_test(test_nonsense_ends_the_line),
		cmocka_unit_test(test_a_message_larger_than_any),
		cmocka_unit_test(test_subscriptions_go_out_in_portions),
		cmocka_unit_test(test_as_many_channels_as_the_limit_says),
		cmocka_unit_test(test_as_many_bytes_of_names_as_the_limit_says),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
