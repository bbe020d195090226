/* Goal: a route that answers later delays no other request. Each request of the route is answered once, even if
 * its client has disconnected or the HTTP side shuts down.
 *
 * Method: socket pairs and a time set by the test, as in test_http.c. The route records its requests, and the test
 * answers them when it wants. */
#include "http/http.h"

#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

enum { WAITING_MAX = 8, TIMEOUT_US = 10000000, ANSWER_BYTES = 4096 };

struct world {
	struct hs_http *http;
	struct hs_http_pending *waiting[WAITING_MAX];
	char suffix[WAITING_MAX][64];
	size_t count;
	uint64_t now_us;
	char heard[ANSWER_BYTES + 1];
};

static void begin(void *context, const struct hs_http_request *request,
		  struct hs_http_pending *later)
{
	struct world *world = context;
	struct hs_http_answer answer = {.status = 404};

	if (hs_bytes_equal(request->suffix, HS_LIT("none"))) {
		hs_buf_printf(&answer.body, "none\n");
		hs_http_answer(later, &answer);
		return;
	}
	assert_true(world->count < WAITING_MAX);
	snprintf(world->suffix[world->count], sizeof world->suffix[0], "%.*s",
		 (int)request->suffix.len, request->suffix.data);
	world->waiting[world->count++] = later;
}

static unsigned compose(void *context, const struct hs_http_request *request, struct hs_buf *body)
{
	(void)context;
	(void)request;
	hs_buf_printf(body, "plain\n");
	return 200;
}

static const struct hs_http_route rows[] = {
	{.path = "/v/", .suffix = "<what>", .type = "text/x", .begin = begin, .help = "Later."},
	{.path = "/v", .type = "text/plain", .compose = compose, .help = "At once."},
};

static int setup(void **state)
{
	struct world *world = hs_mem_zalloc(sizeof *world);
	struct hs_http_options options = {
		.routes = {rows, sizeof rows / sizeof *rows},
		.context = world,
		.connections_max = WAITING_MAX,
		.timeout_us = TIMEOUT_US,
		.request_bytes = 16384,
		.body_bytes = 1024,
		.unread_bytes = 65536,
	};

	signal(SIGPIPE, SIG_IGN);
	world->now_us = 1000;
	world->http = hs_http_create(&options);
	assert_non_null(world->http);
	*state = world;
	return 0;
}

static int teardown(void **state)
{
	struct world *world = *state;

	hs_http_destroy(&world->http);
	hs_mem_free(&world);
	return 0;
}

/* Runs the loop until nothing is readable and no deadline is due. */
static void run(struct world *world)
{
	struct pollfd fd = {.fd = hs_http_fd(world->http), .events = POLLIN};

	do
		hs_http_run(world->http, world->now_us);
	while (poll(&fd, 1, 0) > 0 || hs_http_wait_ms(world->http, world->now_us) == 0);
}

static int connect_pair(struct world *world)
{
	struct sockaddr_storage nobody = {.ss_family = AF_UNIX};
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
	hs_http_add(world->http, pair[1], (struct sockaddr *)&nobody, sizeof(sa_family_t),
		    world->now_us);
	return pair[0];
}

static void ask(struct world *world, int fd, const char *target, const char *headers)
{
	char text[512];
	int len = snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nHost: x\r\n%s\r\n", target,
			   headers);

	assert_int_equal(write(fd, text, (size_t)len), len);
	run(world);
}

static const char *hear(struct world *world, int fd)
{
	ssize_t len;

	run(world);
	len = read(fd, world->heard, ANSWER_BYTES);
	world->heard[len > 0 ? len : 0] = '\0';
	return world->heard;
}

static void give(struct world *world, size_t index, unsigned status, const char *body,
		 const char *etag)
{
	struct hs_http_answer answer = {.status = status};

	hs_buf_printf(&answer.body, "%s", body);
	snprintf(answer.etag, sizeof answer.etag, "%s", etag);
	if (status == 200)
		snprintf(answer.cache_control, sizeof answer.cache_control, "public");
	answer.retry_s = status == 503 ? 7 : 0;
	hs_http_answer(world->waiting[index], &answer);
	run(world);
}

static void test_in_any_order(void **state)
{
	struct world *world = *state;
	int a = connect_pair(world), b = connect_pair(world), c = connect_pair(world);

	ask(world, a, "/v/a", "");
	ask(world, b, "/v/b%2f%00?", "");
	ask(world, c, "/v", "");
	assert_int_equal(world->count, 2);
	assert_string_equal(world->suffix[1], "b%2f%00"); /* the path as the client sent it */
	assert_string_equal(hear(world, a), "");
	assert_non_null(strstr(hear(world, c), "plain\n"));
	give(world, 1, 200, "second", "\"t\"");
	assert_string_equal(hear(world, a), "");
	assert_non_null(strstr(hear(world, b), "\r\n\r\nsecond"));
	assert_non_null(strstr(world->heard, "ETag: \"t\""));
	assert_non_null(strstr(world->heard, "Cache-Control: public\r\n"));
	assert_non_null(strstr(world->heard, "Accept-Ranges: none\r\n"));
	give(world, 0, 503, "sorry", "");
	assert_non_null(strstr(hear(world, a), " 503 "));
	assert_non_null(strstr(world->heard, "Retry-After: 7\r\n"));
	assert_non_null(strstr(world->heard, "Cache-Control: no-store\r\n"));
	close(a);
	close(b);
	close(c);
	run(world);
}

static void test_the_same_connection_again(void **state)
{
	struct world *world = *state;
	int fd = connect_pair(world);

	for (size_t i = 0; i < 3; i++) {
		ask(world, fd, "/v/x", "");
		give(world, i, 200, "value", "");
		assert_non_null(strstr(hear(world, fd), "value"));
		ask(world, fd, "/v/none", "");
		assert_non_null(strstr(hear(world, fd), " 404 "));
	}
	assert_int_equal(world->count, 3);
	close(fd);
	run(world);
}

static void test_not_modified(void **state)
{
	struct world *world = *state;
	int fd = connect_pair(world);

	ask(world, fd, "/v/x", "If-None-Match: \"a\"\r\nif-none-match: \"b\", W/\"t\"\r\n");
	give(world, 0, 200, "value", "\"t\"");
	assert_non_null(strstr(hear(world, fd), " 304 "));
	assert_null(strstr(world->heard, "value"));
	assert_non_null(strstr(world->heard, "ETag: \"t\""));
	assert_int_equal(hs_http_stats(world->http)->not_modified, 1);
	/* A missing value is never answered with 304. */
	ask(world, fd, "/v/x", "If-None-Match: *\r\n");
	give(world, 1, 404, "none", "");
	assert_non_null(strstr(hear(world, fd), " 404 "));
	assert_int_equal(hs_http_stats(world->http)->not_modified, 1);
	close(fd);
	run(world);
}

static void test_too_large(void **state)
{
	struct world *world = *state;
	int fd = connect_pair(world);
	char large[1026];

	memset(large, 'x', sizeof large - 1);
	large[1025] = '\0';
	ask(world, fd, "/v/x", "");
	give(world, 0, 200, large, "\"t\"");
	assert_non_null(strstr(hear(world, fd), " 500 "));
	assert_null(strstr(world->heard, "ETag"));
	close(fd);
	run(world);
}

/* While a request waits for its answer, the HTTP library does not watch its connection. The server notices a
 * disconnected client when the request is answered. */
static void test_clients_that_left_or_are_late(void **state)
{
	struct world *world = *state;
	int gone = connect_pair(world), late = connect_pair(world);

	ask(world, gone, "/v/gone", "");
	ask(world, late, "/v/late", "");
	close(gone);
	world->now_us += TIMEOUT_US + 1;
	run(world);
	assert_int_equal(hs_http_stats(world->http)->connections, 2);
	give(world, 0, 200, "value", "");
	give(world, 1, 200, "value", "");
	assert_int_equal(hs_http_stats(world->http)->connections, 0);
	assert_int_equal(hs_http_stats(world->http)->unread_bytes, 0);
	close(late);
}

/* An answer given at shutdown still reaches its client. */
static void test_shutdown(void **state)
{
	struct world *world = *state;
	struct hs_http_answer answer = {.status = 503};
	int fd = connect_pair(world);

	ask(world, fd, "/v/x", "");
	hs_buf_printf(&answer.body, "the end\n");
	hs_http_answer(world->waiting[0], &answer);
	hs_http_destroy(&world->http);
	assert_true(read(fd, world->heard, ANSWER_BYTES) > 0);
	assert_non_null(strstr(world->heard, "the end\n"));
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_in_any_order, setup, teardown),
		cmocka_unit_test_setup_teardown(test_the_same_connection_again, setup, teardown),
		cmocka_unit_test_setup_teardown(test_not_modified, setup, teardown),
		cmocka_unit_test_setup_teardown(test_too_large, setup, teardown),
		cmocka_unit_test_setup_teardown(test_clients_that_left_or_are_late, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_shutdown, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
