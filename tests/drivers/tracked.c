/* The redis engine alone, with one worker, controlled by lines on standard input: for tests of tracked operations
 * against real servers (tests/integration/test_engine_tracking.py). One process, one thread, one libuv loop.
 *
 *     tracked URL TIMEOUT_MS REFRESH_MS
 *
 *     in:  get N KEY | set N KEY VALUE | plain N WORD …   an operation with number N; a plain one is not tracked
 *          check_every US  interval of liveness checks (check_sessions_every)
 *          check N         requests a liveness check of N's tracking session
 *          held N          asks whether N's tracking session still covers it
 *     out: done N held|not REPLY, in order with the next two lines
 *          changed KEY, changed *
 *          caught_up N     N's tracking session was checked after "check N"
 *          ended N         N's tracking session does not cover it any longer
 *          held | not      the answer to "held N"
 *          log TEXT
 *
 * An unknown line or a limit that is exceeded aborts the driver (hs_check); the test then fails with its exit status.
 */
#include "base/escape.h"
#include "base/mem.h"
#include "base/slot.h"
#include "command/learned.h"
#include "core/event.h"
#include "engine/redis/redis.h"
#include "serve/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

enum { OPS_MAX = 4096, WORDS_MAX = 8, LINE_MAX_BYTES = 1 << 16, LEARNED_MAX = 100 };

struct one {
	struct hs_op op;
	struct hs_buf out;
	char *line; /* the memory of the words */
	struct hs_bytes argv[WORDS_MAX];
	bool used, done, told_void;
	bool wanted;
	uint64_t wanted_us; /* caught up to this time before the check was requested */
};

struct driver {
	uv_loop_t loop;
	uv_pipe_t input;
	uv_timer_t tick;
	uv_prepare_t prepare;
	struct hs_engine *engine;
	struct one ops[OPS_MAX];
	char line[LINE_MAX_BYTES];
	size_t line_len;
	struct hs_learned *learned[LEARNED_MAX]; /* tables may share rows: all live until the end */
	int learned_count;
};

static struct driver driver;

static void say(const char *what, struct hs_bytes text)
{
	char *escaped = hs_mem_alloc(text.len * 4 + 4);

	hs_bytes_escape(text, escaped, text.len * 4 + 4);
	printf("%s%s\n", what, escaped);
	fflush(stdout);
	hs_mem_free(&escaped);
}

/* ---- the engine's host ---- */

static bool is_held(const struct one *one)
{
	return one->done && one->op.tracking_session &&
	       one->op.tracking_epoch == hs_tracking_session_epoch(one->op.tracking_session);
}

static void finish(struct hs_op *op)
{
	struct one *one = op->owner;
	char what[64];

	one->done = true;
	snprintf(what, sizeof what, "done %d %s ", (int)(one - driver.ops),
		 is_held(one) ? "held" : "not");
	say(what, op->answer.len > 0 ? op->answer : hs_buf_bytes(op->out));
}

static void on_finished(void *context, uint32_t worker, struct hs_now now, struct hs_op *op)
{
	(void)context, (void)worker, (void)now;
	finish(op);
}

static void on_changed(void *context, uint32_t worker, struct hs_now now,
		       const struct hs_tracking_session *tracking_session,
		       const struct hs_bytes *key)
{
	(void)context, (void)worker, (void)now, (void)tracking_session;
	say("changed ", key ? *key : HS_LIT("*"));
}

static void on_answered(void *context, uint32_t worker)
{
	(void)context, (void)worker;
}

static void on_done(void *context, uint32_t worker, struct hs_op *chain)
{
	(void)context, (void)worker, (void)chain;
}

static void on_news(void *context, struct hs_event *event)
{
	(void)context;
	hs_event_unref(&event); /* no client subscribes here */
}

static void on_learned(void *context, struct hs_learned *learned)
{
	(void)context; /* not used: all commands of the tests are in heatsink's own table */
	hs_check(driver.learned_count < LEARNED_MAX);
	driver.learned[driver.learned_count++] = learned;
}

static void on_log(void *context, enum hs_log_level level, const char *line)
{
	(void)context;
	if (level >= HS_LOG_WARN)
		say("log ", hs_bytes_of(line));
}

static struct hs_now on_now(void *context)
{
	(void)context;
	return hs_clock_now();
}

/* ---- lines ---- */

static void submit(struct one *one, bool track)
{
	struct hs_op *op = &one->op;

	op->track = track;
	op->resp = track ? 3 : 2;
	op->kind = HS_OP_COMMAND;
	op->slot = hs_slot_of(op->argv[1]);
	op->command = hs_command_find(op->argv[0]);
	op->received = hs_clock_now();
	op->out = &one->out;
	op->owner = one;
	hs_check(op->command != NULL);
	if (driver.engine->calls->submit(driver.engine, op) == HS_SUBMIT_DONE)
		finish(op);
}

static struct one *take(int number, char *words)
{
	struct one *one = &driver.ops[number];

	hs_check(number >= 0 && number < OPS_MAX && !one->used);
	one->used = true;
	one->line = hs_mem_dup(words, strlen(words));
	one->op.argv = one->argv;
	for (char *rest = one->line, *word; (word = strsep(&rest, " "));)
		one->argv[one->op.argc++] = hs_bytes_of(word);
	return one;
}

static void run_line(char *line)
{
	char words[LINE_MAX_BYTES], what[16];
	int number = 0, used = 0;
	unsigned long long us;

	hs_check(sscanf(line, "%15s %n", what, &used) == 1);
	if (strcmp(what, "check_every") == 0) {
		us = strtoull(line + used, NULL, 10);
		driver.engine->calls->check_sessions_every(driver.engine, us);
		return;
	}
	number = (int)strtol(line + used, &line, 10);
	line += *line == ' ';
	if (strcmp(what, "check") == 0) {
		struct one *one = &driver.ops[number];

		one->wanted = true;
		one->wanted_us = hs_tracking_session_caught_up_us(one->op.tracking_session);
		hs_tracking_session_want_check(one->op.tracking_session);
	} else if (strcmp(what, "held") == 0) {
		say(is_held(&driver.ops[number]) ? "held" : "not", HS_LIT(""));
	} else if (strcmp(what, "plain") == 0) {
		submit(take(number, line), false);
	} else {
		snprintf(words, sizeof words, "%s %s", what, line);
		submit(take(number, words), true);
	}
}

static void on_line(uv_stream_t *stream, ssize_t len, const uv_buf_t *buffer)
{
	char *end;

	(void)buffer;
	if (len < 0) {
		uv_close((uv_handle_t *)stream, NULL);
		uv_stop(&driver.loop);
		return;
	}
	driver.line_len += (size_t)len;
	while ((end = memchr(driver.line, '\n', driver.line_len))) {
		size_t taken = (size_t)(end - driver.line) + 1;

		*end = '\0';
		run_line(driver.line);
		driver.line_len -= taken;
		memmove(driver.line, driver.line + taken, driver.line_len);
	}
}

static void on_room(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer)
{
	(void)handle, (void)suggested;
	hs_check(driver.line_len < sizeof driver.line);
	*buffer = uv_buf_init(driver.line + driver.line_len,
			      (unsigned)(sizeof driver.line - driver.line_len));
}

static void on_tick(uv_timer_t *timer)
{
	(void)timer;
	driver.engine->calls->idle(driver.engine, 0);
}

/* After every round of events: sends requests, and reports tracking sessions that were checked or have ended. */
static void on_prepare(uv_prepare_t *prepare)
{
	char what[32];

	(void)prepare;
	driver.engine->calls->flush(driver.engine, 0);
	for (int i = 0; i < OPS_MAX; i++) {
		struct one *one = &driver.ops[i];

		if (!one->done || !one->op.tracking_session || one->told_void)
			continue;
		if (!is_held(one)) {
			one->told_void = true;
			snprintf(what, sizeof what, "ended %d", i);
			say(what, HS_LIT(""));
		} else if (one->wanted && hs_tracking_session_caught_up_us(
						  one->op.tracking_session) > one->wanted_us) {
			one->wanted = false;
			snprintf(what, sizeof what, "caught_up %d", i);
			say(what, HS_LIT(""));
		}
	}
}

/* ---- the beginning and the end ---- */

static void close_handle(uv_handle_t *handle, void *context)
{
	(void)context;
	if (!uv_is_closing(handle))
		uv_close(handle, NULL);
}

static void end(void)
{
	driver.engine->calls->detach(driver.engine, 0);
	uv_walk(&driver.loop, close_handle, NULL);
	uv_run(&driver.loop, UV_RUN_DEFAULT);
	hs_check(uv_loop_close(&driver.loop) == 0);
	driver.engine->calls->destroy(&driver.engine);
	while (driver.learned_count > 0)
		hs_learned_destroy(&driver.learned[--driver.learned_count]);
	for (int i = 0; i < OPS_MAX; i++) {
		hs_buf_deinit(&driver.ops[i].out);
		hs_mem_free(&driver.ops[i].line);
	}
}

int main(int argc, char **argv)
{
	struct hs_log log = {.level = HS_LOG_INFO, .sink = on_log};
	struct hs_engine_host host = {
		.done = on_done,
		.finished = on_finished,
		.answered = on_answered,
		.changed = on_changed,
		.event = on_news,
		.learned = on_learned,
		.now = on_now,
		.log = &log,
		.workers = 1,
	};
	struct hs_redis_options options = {
		.user = "",
		.password = "",
		.in_flight_max = 1000,
		.waiting_max = 1000,
		.private_max = 10,
	};
	char error[256];

	hs_check(argc == 4);
	options.url = argv[1];
	options.timeout_ms = strtoull(argv[2], NULL, 10);
	options.refresh_ms = strtoull(argv[3], NULL, 10);
	uv_loop_init(&driver.loop);
	if (hs_redis_create(&options, &host, &driver.engine, error, sizeof error) != 0) {
		fprintf(stderr, "%s\n", error);
		return 1;
	}
	driver.engine->calls->attach(driver.engine, 0, &driver.loop);
	uv_pipe_init(&driver.loop, &driver.input, 0);
	uv_pipe_open(&driver.input, 0);
	uv_read_start((uv_stream_t *)&driver.input, on_room, on_line);
	uv_timer_init(&driver.loop, &driver.tick);
	uv_timer_start(&driver.tick, on_tick, 100, 100);
	uv_prepare_init(&driver.loop, &driver.prepare);
	uv_prepare_start(&driver.prepare, on_prepare);
	uv_run(&driver.loop, UV_RUN_DEFAULT);
	end();
	return 0;
}
