/* Goal: every fetch of the HTTP side ends once, with the worker's reply or a reason. If a worker closed an idle
 * channel, the fetch is retried on a new one; every limit holds.
 *
 * Method: the test plays the workers: it takes the sockets out of their message queues, reads the requests, and
 * writes replies in pieces or not at all. */
#include "serve/key_reader.h"

#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

enum {
	WORKERS = 2,
	ENDS_MAX = HS_HTTP_KEY_READS_MAX + 8,
	PATIENCE_US = 20000,
	LONG_US = 600000000
};

struct world {
	uv_loop_t loop;
	struct hs_host host;
	struct hs_worker workers[WORKERS];
	struct hs_key_reader *fetch;
	int fds[ENDS_MAX]; /* the workers' ends of the channels, in order of arrival */
	size_t fds_count;
	size_t ended;
	struct {
		enum hs_key_read_outcome outcome;
		char key[16], value[64], error_word[16];
	} ends[ENDS_MAX]; /* by the request's number, which is its context */
};

static void on_wake(uv_async_t *wake)
{
	(void)wake;
}

static void done(void *owner, void *context, struct hs_key_read_result *result)
{
	struct world *world = owner;
	size_t number = (uintptr_t)context;

	assert_true(number < ENDS_MAX);
	world->ended++;
	world->ends[number].outcome = result->outcome;
	snprintf(world->ends[number].key, sizeof world->ends[0].key, "%.*s", (int)result->key.len,
		 result->key.data);
	snprintf(world->ends[number].value, sizeof world->ends[0].value, "%.*s",
		 (int)result->value.len, result->value.len > 0 ? result->value.data : "");
	snprintf(world->ends[number].error_word, sizeof world->ends[0].error_word, "%.*s",
		 (int)result->error_word.len,
		 result->error_word.len > 0 ? result->error_word.data : "");
}

static struct world *create(uint64_t patience_us)
{
	struct world *world = hs_mem_zalloc(sizeof *world);

	uv_loop_init(&world->loop);
	world->host.workers = world->workers;
	world->host.workers_count = WORKERS;
	for (int i = 0; i < WORKERS; i++)
		uv_async_init(&world->loop, &world->workers[i].wake, on_wake);
	world->fetch = hs_key_reader_create(&world->loop, &world->host, patience_us, done, world);
	return world;
}

static void destroy(struct world *world)
{
	hs_key_reader_destroy(&world->fetch);
	for (int i = 0; i < WORKERS; i++)
		uv_close((uv_handle_t *)&world->workers[i].wake, NULL);
	uv_run(&world->loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&world->loop), 0);
	for (size_t i = 0; i < world->fds_count; i++)
		if (world->fds[i] >= 0)
			close(world->fds[i]);
	hs_mem_free(&world);
}

static void handle_message(struct world *world)
{
	for (int i = 0; i < WORKERS; i++) {
		struct hs_worker_message *message = hs_mpsc_take(
			&world->workers[i].messages, offsetof(struct hs_worker_message, next));

		while (message) {
			struct hs_worker_message *next = message->next;

			assert_int_equal(message->kind, HS_WORKER_CLIENT);
			assert_true(message->internal);
			assert_true(message->client_id > 0);
			assert_true(world->fds_count < ENDS_MAX);
			world->fds[world->fds_count++] = message->fd;
			hs_mem_free(&message);
			message = next;
		}
	}
}

static void run(struct world *world)
{
	for (int i = 0; i < 3; i++)
		uv_run(&world->loop, UV_RUN_NOWAIT);
	handle_message(world);
}

static void get(struct world *world, size_t number)
{
	struct hs_buf key = {0};

	hs_buf_printf(&key, "k%zu", number);
	hs_key_reader_get(world->fetch, &key, (void *)(uintptr_t)number);
	handle_message(world);
}

static void expect_asked(struct world *world, size_t fd, const char *key)
{
	char text[128] = "", expected[128];

	assert_true(fd < world->fds_count);
	assert_true(read(world->fds[fd], text, sizeof text - 1) > 0);
	snprintf(expected, sizeof expected, "*2\r\n$3\r\nGET\r\n$%zu\r\n%s\r\n", strlen(key), key);
	assert_string_equal(text, expected);
}

static void say(struct world *world, size_t fd, const char *text)
{
	assert_int_equal(write(world->fds[fd], text, strlen(text)), strlen(text));
	run(world);
}

static void hang_up(struct world *world, size_t fd)
{
	close(world->fds[fd]);
	world->fds[fd] = -1;
}

static void test_each_kind_of_answer(void **state)
{
	static const struct {
		const char *reply;
		enum hs_key_read_outcome outcome;
		const char *value, *error_word;
	} cases[] = {
		{"$5\r\nhello\r\n", HS_KEY_READ_VALUE, "hello", ""},
		{"$0\r\n\r\n", HS_KEY_READ_VALUE, "", ""},
		{"$-1\r\n", HS_KEY_READ_MISSING, "", ""},
		{"_\r\n", HS_KEY_READ_MISSING, "", ""},
		{"-WRONGTYPE Operation\r\n", HS_KEY_READ_WRONG_TYPE, "", "WRONGTYPE"},
		{"-CLUSTERDOWN at 10.0.0.1\r\n", HS_KEY_READ_ERROR, "", "CLUSTERDOWN"},
		{"-lower case\r\n", HS_KEY_READ_ERROR, "", ""},
		{":1\r\n", HS_KEY_READ_ERROR, "", ""},
	};
	struct world *world = create(LONG_US);

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char key[16];

		get(world, i);
		snprintf(key, sizeof key, "k%zu", i);
		/* Requests one after another share one channel. */
		expect_asked(world, 0, key);
		/* The worker sends its reply byte by byte. */
		for (size_t at = 0; cases[i].reply[at]; at++) {
			assert_int_equal(world->ended, i);
			say(world, 0, (char[2]){cases[i].reply[at], '\0'});
		}
		assert_int_equal(world->ended, i + 1);
		assert_int_equal(world->ends[i].outcome, cases[i].outcome);
		assert_string_equal(world->ends[i].key, key);
		assert_string_equal(world->ends[i].value, cases[i].value);
		assert_string_equal(world->ends[i].error_word, cases[i].error_word);
	}
	assert_int_equal(world->fds_count, 1);
	destroy(world);
}

static void test_one_at_a_time_on_a_channel(void **state)
{
	struct world *world = create(LONG_US);

	(void)state;
	get(world, 0);
	get(world, 1);
	assert_int_equal(world->fds_count, 2);
	say(world, 1, "$1\r\nb\r\n");
	assert_int_equal(world->ended, 1);
	assert_string_equal(world->ends[1].value, "b");
	say(world, 0, "$1\r\na\r\n");
	assert_string_equal(world->ends[0].value, "a");
	assert_int_equal(hs_key_reader_stats(world->fetch)->waiting, 0);
	destroy(world);
}

static void test_a_worker_that_ends_an_idle_channel(void **state)
{
	struct world *world = create(LONG_US);

	(void)state;
	get(world, 0);
	say(world, 0, "$1\r\na\r\n");
	/* The worker has closed the idle channel, but the reader has not noticed. The reader retries the request
	 * on a new channel. */
	hang_up(world, 0);
	get(world, 1);
	run(world);
	assert_int_equal(world->ended, 1);
	assert_int_equal(world->fds_count, 2);
	expect_asked(world, 1, "k1");
	/* If the new channel closes, too, the fetch fails, because the request may be the cause. */
	hang_up(world, 1);
	run(world);
	assert_int_equal(world->ended, 2);
	assert_int_equal(world->ends[1].outcome, HS_KEY_READ_CONNECTION_LOST);
	assert_int_equal(world->fds_count, 2);
	/* The worker closes an idle channel, and the reader notices. The next request uses a new channel at
	 * once. */
	get(world, 2);
	say(world, 2, "$1\r\nc\r\n");
	hang_up(world, 2);
	run(world);
	get(world, 3);
	expect_asked(world, 3, "k3");
	destroy(world);
}

static void test_malformed_replies(void **state)
{
	static const char *const cases[] = {"nonsense\r\n", "$1\r\na\r\n$1\r\nb\r\n", "$x\r\n"};
	struct world *world = create(LONG_US);

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		get(world, i);
		say(world, i, cases[i]);
		assert_int_equal(world->ends[i].outcome, HS_KEY_READ_CONNECTION_LOST);
		assert_int_equal(world->ended, i + 1);
	}
	/* The reader closes a channel that gets bytes without a request. */
	get(world, 5);
	say(world, 3, "$1\r\na\r\n");
	say(world, 3, "$1\r\na\r\n");
	get(world, 6);
	assert_int_equal(world->fds_count, 5);
	destroy(world);
}

static void test_too_many(void **state)
{
	struct world *world = create(LONG_US);
	size_t open = 0;

	(void)state;
	for (size_t i = 0; i < HS_HTTP_KEY_READS_MAX; i++)
		get(world, i);
	assert_int_equal(world->ended, 0);
	get(world, HS_HTTP_KEY_READS_MAX);
	assert_int_equal(world->ended, 1);
	assert_int_equal(world->ends[HS_HTTP_KEY_READS_MAX].outcome, HS_KEY_READ_BUSY);
	assert_int_equal(hs_key_reader_stats(world->fetch)->refused, 1);
	for (size_t i = 0; i < HS_HTTP_KEY_READS_MAX; i++)
		say(world, i, "$-1\r\n");
	assert_int_equal(world->ended, HS_HTTP_KEY_READS_MAX + 1);
	/* After a burst of requests, only a few idle channels stay open. */
	for (size_t i = 0; i < HS_HTTP_KEY_READS_MAX; i++) {
		char text[128];

		assert_true(read(world->fds[i], text, sizeof text) > 0);
		open += read(world->fds[i], text, sizeof text) != 0;
	}
	assert_in_range(open, 1, 8);
	destroy(world);
}

static void test_too_late(void **state)
{
	struct world *world = create(PATIENCE_US);

	(void)state;
	get(world, 0);
	get(world, 1);
	while (world->ended < 2)
		uv_run(&world->loop, UV_RUN_ONCE);
	assert_int_equal(world->ends[0].outcome, HS_KEY_READ_TIMEOUT);
	assert_int_equal(world->ends[1].outcome, HS_KEY_READ_TIMEOUT);
	assert_int_equal(hs_key_reader_stats(world->fetch)->timeouts, 2);
	assert_int_equal(hs_key_reader_stats(world->fetch)->waiting, 0);
	destroy(world);
}

static void test_too_large(void **state)
{
	struct world *world = create(LONG_US);

	(void)state;
	get(world, 0);
	/* The announced length is enough to refuse the value. */
	say(world, 0, "$536870912\r\n");
	assert_int_equal(world->ends[0].outcome, HS_KEY_READ_TOO_LARGE);
	assert_int_equal(world->ended, 1);
	destroy(world);
}

static void test_shutdown(void **state)
{
	struct world *world = create(LONG_US);

	(void)state;
	get(world, 0);
	get(world, 1);
	say(world, 1, "$1\r\nb\r\n");
	atomic_store(&world->host.stopping, true);
	get(world, 2);
	assert_int_equal(world->ends[2].outcome, HS_KEY_READ_CONNECTION_LOST);
	assert_int_equal(world->fds_count, 2);
	hs_key_reader_destroy(&world->fetch);
	assert_int_equal(world->ended, 3);
	assert_int_equal(world->ends[0].outcome, HS_KEY_READ_CONNECTION_LOST);
	destroy(world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_kind_of_answer),
		cmocka_unit_test(test_one_at_a_time_on_a_channel),
		cmocka_unit_test(test_a_worker_that_ends_an_idle_channel),
		cmocka_unit_test(test_malformed_replies),
		cmocka_unit_test(test_too_many),
		cmocka_unit_test(test_too_late),
		cmocka_unit_test(test_too_large),
		cmocka_unit_test(test_shutdown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
