/* Goal: the HTTP side answers requests and enforces every limit: connections, time, the size of a request, of an
 * answer and of all unread answers.
 *
 * Method: socket pairs instead of a network, and a time set by the test, so that no test waits: the HTTP side runs
 * until it is idle, then the test reads the other end. */
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

enum { CONNECTIONS = 4, RESERVED = 2, LARGE = 1 << 20, TIMEOUT_US = 10000000 };

static unsigned compose_small(void *context, const struct hs_http_request *request,
			      struct hs_buf *body)
{
	(void)context;
	(void)request;
	hs_buf_printf(body, "{\"a\":1}");
	return 200;
}

static unsigned compose_large(void *context, const struct hs_http_request *request,
			      struct hs_buf *body)
{
	size_t len = (size_t)request->values[0].number;

	(void)context;
	memset(hs_buf_reserve(body, len), 'x', len);
	body->len += len;
	return 200;
}

static unsigned compose_echo(void *context, const struct hs_http_request *request,
			     struct hs_buf *body)
{
	(void)context;
	hs_buf_append_bytes(body, request->values[0].text);
	return 200;
}

static unsigned compose_sorry(void *context, const struct hs_http_request *request,
			      struct hs_buf *body)
{
	(void)context;
	(void)request;
	hs_buf_printf(body, "not yet\n");
	return 503;
}

/* Writes the number of requests so far into the answer. */
static unsigned compose_count(void *context, const struct hs_http_request *request,
			      struct hs_buf *body)
{
	struct hs_buf *asked = context;

	(void)request;
	hs_buf_append(asked, "x", 1);
	hs_buf_printf(body, "asked %zu times\n", asked->len);
	return 200;
}

static const struct hs_http_parameter size_parameter = {
	.name = "size", .kind = HS_HTTP_INT, .max = 4 * LARGE, .fallback = LARGE};
static const struct hs_http_parameter probe_parameter = {
	.name = "size", .kind = HS_HTTP_INT, .max = LARGE, .fallback = 300000};
static const struct hs_http_parameter text_parameter = {.name = "text", .kind = HS_HTTP_TEXT};
static const struct hs_http_route rows[] = {
	{.path = "/small", .type = "application/json", .compose = compose_small, .help = "Small."},
	{.path = "/probe",
	 .type = "text/plain",
	 .probe = true,
	 .compose = compose_small,
	 .help = "Small."},
	{.path = "/large-probe",
	 .type = "text/plain",
	 .parameters = &probe_parameter,
	 .parameters_count = 1,
	 .probe = true,
	 .compose = compose_large,
	 .help = "Large."},
	{.path = "/large",
	 .type = "text/plain",
	 .parameters = &size_parameter,
	 .parameters_count = 1,
	 .compose = compose_large,
	 .help = "Large."},
	{.path = "/echo",
	 .type = "text/plain",
	 .parameters = &text_parameter,
	 .parameters_count = 1,
	 .compose = compose_echo,
	 .help = "Echo."},
	{.path = "/shared",
	 .type = "text/plain",
	 .shared = true,
	 .compose = compose_count,
	 .help = "Shared."},
	{.path = "/sorry", .type = "application/json", .compose = compose_sorry, .help = "503."},
};

struct world {
	struct hs_http *http;
	uint64_t now_us;
	struct hs_buf asked; /* one letter for each answer of /shared */
	struct hs_buf heard; /* bytes of the last hear(), zero terminated */
};

static int setup(void **state)
{
	struct world *world = hs_mem_zalloc(sizeof *world);
	struct hs_http_options options = {
		.routes = {rows, sizeof rows / sizeof *rows},
		.context = &world->asked,
		.local_names_only = true,
		.connections_max = CONNECTIONS,
		.reserved_max = RESERVED,
		.timeout_us = TIMEOUT_US,
		.request_bytes = 16384,
		.body_bytes = 2 * LARGE,
		.unread_bytes = 3 * LARGE,
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
	hs_buf_deinit(&world->asked);
	hs_buf_deinit(&world->heard);
	hs_mem_free(&world);
	return 0;
}

/* Runs the loop until nothing is readable and no deadline is due. */
static void run(struct world *world)
{
	struct pollfd fd = {.fd = hs_http_fd(world->http), .events = POLLIN};

	do {
		hs_http_run(world->http, world->now_us);
	} while (poll(&fd, 1, 0) > 0 || hs_http_wait_ms(world->http, world->now_us) == 0);
}

static int connect_to(struct world *world)
{
	struct sockaddr nowhere = {.sa_family = AF_UNIX};
	int fds[2], small = 64 * 1024;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
	/* The socket buffer is small, so that a large answer does not fit into it on any system. */
	assert_int_equal(setsockopt(fds[1], SOL_SOCKET, SO_SNDBUF, &small, sizeof small), 0);
	hs_http_add(world->http, fds[1], &nowhere, sizeof nowhere, world->now_us);
	run(world);
	return fds[0];
}

static void say(struct world *world, int fd, const char *text)
{
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	run(world);
}

/* Reads all bytes there are. Returns whether the server has closed the connection. */
static bool hear(struct world *world, int fd)
{
	ssize_t got;

	world->heard.len = 0;
	do {
		got = read(fd, hs_buf_reserve(&world->heard, 65536), 65536);
		if (got > 0)
			world->heard.len += (size_t)got;
		run(world);
	} while (got > 0);
	*hs_buf_reserve(&world->heard, 1) = '\0';
	return got == 0 || errno != EAGAIN;
}

static void assert_heard(const struct world *world, const char *part)
{
	if (!strstr(world->heard.data, part))
		fail_msg("no %s in:\n%s", part, world->heard.data);
}

/* Sends one request on a new connection, and reads the answer. */
static void ask(struct world *world, const char *request)
{
	int fd = connect_to(world);

	say(world, fd, request);
	hear(world, fd);
	close(fd);
	run(world);
}

#define GET(path) "GET " path " HTTP/1.1\r\nHost: localhost\r\n\r\n"

static void test_an_answer_and_its_headers(void **state)
{
	struct world *world = *state;

	ask(world, GET("/small"));
	assert_heard(world, "HTTP/1.1 200 OK\r\n");
	assert_heard(world, "Content-Type: application/json\r\n");
	assert_heard(world, "Cache-Control: no-store\r\n");
	assert_heard(world, "X-Content-Type-Options: nosniff\r\n");
	assert_heard(world, "Content-Length: 7\r\n");
	assert_heard(world, "\r\n\r\n{\"a\":1}");
	assert_int_equal(hs_http_stats(world->http)->requests, 1);
	assert_int_equal(hs_http_stats(world->http)->errors, 0);
	assert_int_equal(hs_http_stats(world->http)->connections, 0);
	assert_int_equal(hs_http_stats(world->http)->unread_bytes, 0);
}

static void test_head_has_no_body(void **state)
{
	struct world *world = *state;

	ask(world, "HEAD /small HTTP/1.1\r\nHost: localhost\r\n\r\n");
	assert_heard(world, "HTTP/1.1 200 OK\r\n");
	assert_heard(world, "Content-Length: 7\r\n");
	assert_null(strstr(world->heard.data, "{"));
}

static void test_many_requests_on_a_connection(void **state)
{
	struct world *world = *state;
	int fd = connect_to(world);

	for (int i = 0; i < 100; i++) {
		say(world, fd, GET("/small"));
		assert_false(hear(world, fd));
		assert_heard(world, "{\"a\":1}");
	}
	say(world, fd, GET("/small") GET("/echo?text=b"));
	hear(world, fd);
	assert_heard(world, "{\"a\":1}HTTP/1.1 200 OK\r\n");
	/* A connection stays open after an error, and after a request with an unwanted body. */
	say(world, fd, GET("/nosuch") GET("/echo?what=1"));
	assert_false(hear(world, fd));
	say(world, fd, "GET /small HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc");
	assert_false(hear(world, fd));
	assert_heard(world, "{\"a\":1}");
	say(world, fd, GET("/small"));
	hear(world, fd);
	assert_heard(world, "{\"a\":1}");
	close(fd);
}

static void test_missing_pages(void **state)
{
	struct world *world = *state;

	ask(world, GET("/nosuch?a=b"));
	assert_heard(world, "HTTP/1.1 404 Not Found\r\n");
	assert_heard(world, "\n/small           Small.\n");
	assert_heard(world, "Content-Type: text/plain");
	ask(world, "POST /small HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc");
	assert_heard(world, "HTTP/1.1 405 Method Not Allowed\r\n");
	assert_heard(world, "Allow: GET, HEAD\r\n");
	ask(world, "DELETE /small HTTP/1.1\r\nHost: localhost\r\n\r\n");
	assert_heard(world, "HTTP/1.1 405 ");
	assert_int_equal(hs_http_stats(world->http)->errors, 3);
}

/* A path is compared with all of its decoded bytes, zero bytes included. */
static void test_paths_are_compared_whole(void **state)
{
	static const char *const wrong[] = {
		GET("/small%00"), GET("/small%00?size=1"), GET("/small%00/more"), GET("/%00small"),
		GET("/small%0a"), GET("/small%0D"),	   GET("/small%01"),	  GET("/small%7f"),
		GET("/small%20"), GET("/small%2500"),	   GET("/small%0"),	  GET("/small%"),
	};
	struct world *world = *state;
	int fd = connect_to(world);

	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		say(world, fd, wrong[i]);
		assert_false(hear(world, fd));
		assert_heard(world, "HTTP/1.1 404 Not Found\r\n");
		/* The path of the next request is decoded correctly. */
		say(world, fd, GET("/sm%61ll"));
		assert_false(hear(world, fd));
		assert_heard(world, "{\"a\":1}");
	}
	say(world, fd, GET("/echo?text=%00"));
	assert_false(hear(world, fd));
	assert_heard(world, "HTTP/1.1 200 OK\r\n");
	close(fd);
}

static void test_queries(void **state)
{
	struct world *world = *state;

	ask(world, GET("/echo?text=a%20%26%00b+c"));
	assert_memory_equal(world->heard.data + world->heard.len - 7, "a &\0b c", 7);
	ask(world, GET("/echo?text"));
	assert_heard(world, "HTTP/1.1 200 OK\r\n");
	assert_heard(world, "Content-Length: 0\r\n");
	ask(world, GET("/echo?txt=a"));
	assert_heard(world, "HTTP/1.1 400 Bad Request\r\n");
	assert_heard(world, "unknown parameter 'txt': /echo takes text\n");
	ask(world, GET("/large?size=-1"));
	assert_heard(world, "HTTP/1.1 400 Bad Request\r\n");
	assert_heard(world, "size=-1: must be a number from 0 to 4194304\n");
}

static void test_a_route_that_refuses(void **state)
{
	struct world *world = *state;

	ask(world, GET("/sorry"));
	assert_heard(world, "HTTP/1.1 503 Service Unavailable\r\n");
	assert_heard(world, "Content-Type: text/plain");
	assert_heard(world, "not yet\n");
}

static void test_accepted_host_headers(void **state)
{
	static const char *const fine[] = {"localhost", "LOCALHOST:8380", "127.0.0.1:8380",
					   "10.1.2.3",	"[::1]:8380",	  "[::1]",
					   "localhost:"};
	static const char *const others[] = {"evil.example:8380",
					     "127.0.0.1.evil.example",
					     "localhost.evil.example",
					     "[evil.example]",
					     "[::1].evil.example",
					     "[::1].evil.example:8380",
					     "[::1]x",
					     "[::1",
					     "127.0.0.1:8380.evil.example",
					     "localhost:evil.example",
					     "localhost:80:80",
					     "[",
					     ":"};
	struct world *world = *state;
	char request[256];

	for (size_t i = 0; i < sizeof fine / sizeof *fine; i++) {
		snprintf(request, sizeof request, "GET /small HTTP/1.1\r\nHost: %s\r\n\r\n",
			 fine[i]);
		ask(world, request);
		assert_heard(world, "HTTP/1.1 200 OK\r\n");
	}
	for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
		snprintf(request, sizeof request, "GET /small HTTP/1.1\r\nHost: %s\r\n\r\n",
			 others[i]);
		ask(world, request);
		assert_heard(world, "HTTP/1.1 421 ");
		assert_heard(world, "localhost");
	}
	ask(world, "GET /small HTTP/1.0\r\n\r\n");
	assert_heard(world, "200 OK\r\n");
}

static void test_a_second_host_header(void **state)
{
	struct world *world = *state;

	ask(world, "GET /small HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n");
	assert_heard(world, "HTTP/1.1 400 Bad Request\r\n");
	assert_heard(world, "the request has 2 Host headers, one is allowed\n");
	ask(world, "GET /small HTTP/1.0\r\nHost: localhost\r\nhOST: localhost\r\n\r\n");
	assert_heard(world, "400 Bad Request\r\n");
}

/* When a new connection needs room, the server closes a connection without a request or with an incomplete
 * one. */
static void test_idle_connections_make_room(void **state)
{
	struct world *world = *state;
	int fds[CONNECTIONS], more[2 * CONNECTIONS];

	for (int i = 0; i < CONNECTIONS; i++)
		fds[i] = connect_to(world);
	say(world, fds[0], GET("/small")); /* fds[0] is active last */
	hear(world, fds[0]);
	say(world, fds[1], "GET /small HTTP/1.1\r\nHost:");
	for (int i = 0; i < 2; i++) {
		more[i] = connect_to(world);
		say(world, more[i], GET("/small"));
		assert_false(hear(world, more[i]));
		assert_heard(world, "HTTP/1.1 200 OK\r\n");
		/* The server closes connections without a request before those with an incomplete one. */
		assert_true(hear(world, fds[2 + i]));
		assert_int_equal(world->heard.len, 0);
	}
	assert_false(hear(world, fds[0]));
	assert_false(hear(world, fds[1]));
	/* Every new connection has an incomplete request. The server closes the oldest one, and answers health
	 * checks. */
	for (int i = 2; i < 2 * CONNECTIONS; i++) {
		more[i] = connect_to(world);
		say(world, more[i], "GET /small HTTP/1.1\r\n");
		ask(world, GET("/probe"));
		assert_heard(world, "HTTP/1.1 200 OK\r\n");
		assert_true(hs_http_stats(world->http)->connections <= CONNECTIONS);
	}
	assert_true(hear(world, fds[1]));
	assert_int_equal(hs_http_stats(world->http)->refused, 0);
	assert_int_equal(hs_http_stats(world->http)->timeouts, 0);
	assert_true(hs_http_stats(world->http)->idle_closed > CONNECTIONS);
	for (int i = 0; i < CONNECTIONS; i++)
		close(fds[i]);
	for (int i = 0; i < 2 * CONNECTIONS; i++)
		close(more[i]);
	run(world);
	assert_int_equal(hs_http_stats(world->http)->connections, 0);
}

/* Every connection has an unread answer. The server answers health checks in the reserved places, and tells other
 * clients to retry. A new connection can use a place that becomes free. */
static void test_busy_connections_leave_places_for_probes(void **state)
{
	struct world *world = *state;
	int fds[CONNECTIONS], idle[RESERVED], waiting;

	for (int i = 0; i < CONNECTIONS; i++) {
		fds[i] = connect_to(world);
		say(world, fds[i], GET("/large?size=700000"));
	}
	for (int i = 0; i < 3 * RESERVED; i++) {
		ask(world, GET("/probe"));
		assert_heard(world, "HTTP/1.1 200 OK\r\n");
		ask(world, GET("/small"));
		assert_heard(world, "HTTP/1.1 503 Service Unavailable\r\n");
		assert_heard(world, "Retry-After: 1\r\n");
		assert_heard(world, "Connection: close\r\n");
		assert_heard(world, "\r\n\r\nall connections are busy with answers: try again\n");
	}
	assert_int_equal(hs_http_stats(world->http)->refused, 3 * RESERVED);
	/* Idle connections do not keep the reserved places from health checks. */
	for (int i = 0; i < RESERVED; i++)
		idle[i] = connect_to(world);
	ask(world, GET("/probe"));
	assert_heard(world, "HTTP/1.1 200 OK\r\n");
	waiting = connect_to(world);
	assert_true(hs_http_stats(world->http)->connections <= CONNECTIONS + RESERVED);
	close(fds[0]);
	run(world);
	say(world, waiting, GET("/small"));
	hear(world, waiting);
	assert_heard(world, "HTTP/1.1 200 OK\r\n");
	close(waiting);
	for (int i = 1; i < CONNECTIONS; i++)
		close(fds[i]);
	for (int i = 0; i < RESERVED; i++)
		close(idle[i]);
	run(world);
	assert_int_equal(hs_http_stats(world->http)->connections, 0);
}

/* Clients that send health checks but do not read the answers hold the reserved places until they time out. */
static void test_one_connection_too_many(void **state)
{
	struct world *world = *state;
	int fds[CONNECTIONS + RESERVED], more;

	for (int i = 0; i < CONNECTIONS + RESERVED; i++) {
		fds[i] = connect_to(world);
		say(world, fds[i],
		    i < CONNECTIONS ? GET("/large?size=600000") : GET("/large-probe"));
	}
	more = connect_to(world);
	assert_true(hear(world, more));
	assert_heard(world, "HTTP/1.1 503 Service Unavailable\r\n");
	assert_heard(world, "Retry-After: 1\r\n");
	assert_heard(world, "Content-Length: 49\r\n");
	assert_heard(world, "\r\n\r\nall connections are busy with answers: try again\n");
	close(more);
	assert_int_equal(hs_http_stats(world->http)->refused, 1);
	for (int i = 0; i < CONNECTIONS + RESERVED; i++)
		close(fds[i]);
	run(world);
	assert_int_equal(hs_http_stats(world->http)->connections, 0);
}

/* Advances the clock to the next deadline, as an event loop would. */
static void wait_out(struct world *world)
{
	int64_t wait_ms = hs_http_wait_ms(world->http, world->now_us);

	assert_true(wait_ms > 0);
	world->now_us += (uint64_t)wait_ms * 1000;
	run(world);
}

static void test_a_silent_connection_is_closed(void **state)
{
	struct world *world = *state;
	int fd = connect_to(world);

	world->now_us += TIMEOUT_US - 1;
	run(world);
	assert_false(hear(world, fd));
	wait_out(world);
	assert_true(hear(world, fd));
	assert_int_equal(hs_http_stats(world->http)->timeouts, 1);
	assert_int_equal(hs_http_stats(world->http)->connections, 0);
	assert_true(hs_http_wait_ms(world->http, world->now_us) < 0);
	close(fd);
}

static void test_a_trickling_connection_is_closed(void **state)
{
	struct world *world = *state;
	const char *request = GET("/small");
	int fd = connect_to(world);
	size_t said = 0;

	while (hs_http_stats(world->http)->connections > 0) {
		assert_true(said < strlen(request) - 1);
		(void)!write(fd, request + said++, 1);
		world->now_us += TIMEOUT_US / 20;
		run(world);
	}
	assert_int_equal(hs_http_stats(world->http)->timeouts, 1);
	close(fd);
}

static void test_an_active_connection_stays_open(void **state)
{
	struct world *world = *state;
	int fd = connect_to(world);

	for (int i = 0; i < 10; i++) {
		world->now_us += TIMEOUT_US - 1;
		say(world, fd, GET("/small"));
		assert_false(hear(world, fd));
		assert_heard(world, "{\"a\":1}");
	}
	wait_out(world);
	assert_true(hear(world, fd));
	assert_int_equal(hs_http_stats(world->http)->timeouts, 1);
	close(fd);
}

static void test_a_connection_that_never_reads_is_closed(void **state)
{
	struct world *world = *state;
	int fd = connect_to(world);

	say(world, fd, GET("/large"));
	assert_int_equal(hs_http_stats(world->http)->unread_bytes, LARGE);
	/* While one client does not read, the server serves another client. */
	ask(world, GET("/small"));
	assert_heard(world, "200 OK");
	wait_out(world);
	assert_int_equal(hs_http_stats(world->http)->timeouts, 1);
	assert_int_equal(hs_http_stats(world->http)->connections, 0);
	assert_int_equal(hs_http_stats(world->http)->unread_bytes, 0);
	close(fd);
}

static void test_a_client_that_disconnects_midway_costs_nothing(void **state)
{
	struct world *world = *state;
	int fd = connect_to(world);

	say(world, fd, GET("/large"));
	close(fd);
	run(world);
	assert_int_equal(hs_http_stats(world->http)->connections, 0);
	assert_int_equal(hs_http_stats(world->http)->unread_bytes, 0);
	assert_int_equal(hs_http_stats(world->http)->timeouts, 0);
}

static void test_answers_are_bounded(void **state)
{
	struct world *world = *state;
	int fds[3];

	ask(world, GET("/large?size=2097152"));
	assert_heard(world, "200 OK");
	assert_int_equal(strlen(strstr(world->heard.data, "\r\n\r\n") + 4), 2 * LARGE);
	ask(world, GET("/large?size=2097153"));
	assert_heard(world, "HTTP/1.1 500 ");
	assert_heard(world, "the answer has 2097153 bytes, at most 2097152 are sent");
	/* The limit has room for three unread answers. */
	for (int i = 0; i < 3; i++) {
		fds[i] = connect_to(world);
		say(world, fds[i], GET("/large"));
	}
	assert_int_equal(hs_http_stats(world->http)->unread_bytes, 3 * LARGE);
	ask(world, GET("/large"));
	assert_heard(world, "HTTP/1.1 503 ");
	assert_heard(world, "3145728 bytes of other answers are still being sent");
	/* A small answer is still sent. */
	ask(world, GET("/small"));
	assert_heard(world, "200 OK");
	hear(world, fds[0]);
	ask(world, GET("/large"));
	assert_heard(world, "200 OK");
	for (int i = 0; i < 3; i++)
		close(fds[i]);
	run(world);
	assert_int_equal(hs_http_stats(world->http)->unread_bytes, 0);
}

/* Requests that come together share an answer. A later request gets a new answer. */
static void test_simultaneous_requests_share_an_answer(void **state)
{
	struct world *world = *state;
	const char *request = GET("/shared");
	int fds[CONNECTIONS];

	for (int i = 0; i < CONNECTIONS; i++)
		fds[i] = connect_to(world);
	for (int turn = 1; turn <= 3; turn++) {
		char expected[32];

		snprintf(expected, sizeof expected, "asked %d times\n", turn);
		for (int i = 0; i < CONNECTIONS; i++)
			assert_int_equal(write(fds[i], request, strlen(request)), strlen(request));
		run(world);
		for (int i = 0; i < CONNECTIONS; i++) {
			assert_false(hear(world, fds[i]));
			assert_heard(world, "200 OK");
			assert_heard(world, expected);
		}
	}
	assert_int_equal(hs_http_stats(world->http)->requests, 3 * CONNECTIONS);
	assert_int_equal(hs_http_stats(world->http)->unread_bytes, 0);
	for (int i = 0; i < CONNECTIONS; i++)
		close(fds[i]);
	run(world);
}

static void test_a_request_that_is_too_large(void **state)
{
	struct world *world = *state;
	struct hs_buf request = {0};
	int fd = connect_to(world);

	hs_buf_printf(&request, "GET /small HTTP/1.1\r\nHost: localhost\r\nX: ");
	memset(hs_buf_reserve(&request, 20000), 'x', 20000);
	request.len += 20000;
	hs_buf_printf(&request, "\r\n\r\n");
	(void)!write(fd, request.data, request.len);
	run(world);
	assert_true(hear(world, fd));
	assert_heard(world, "HTTP/1.1 431 ");
	close(fd);
	hs_buf_deinit(&request);
	ask(world, GET("/small"));
	assert_heard(world, "200 OK");
}

static void test_requests_that_are_not_http(void **state)
{
	struct world *world = *state;
	int fd = connect_to(world);

	say(world, fd, "\x16\x03\x01\x02\x00\r\n\r\n*1\r\n$4\r\nPING\r\n\r\n\r\n");
	hear(world, fd);
	close(fd);
	run(world);
	assert_int_equal(hs_http_stats(world->http)->connections, 0);
	ask(world, GET("/small"));
	assert_heard(world, "200 OK");
}

static void test_shutdown_closes_every_connection(void **state)
{
	struct world *world = *state;
	int idle = connect_to(world), busy = connect_to(world);

	say(world, busy, GET("/large"));
	hs_http_destroy(&world->http);
	close(idle);
	close(busy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_an_answer_and_its_headers, setup, teardown),
		cmocka_unit_test_setup_teardown(test_head_has_no_body, setup, teardown),
		cmocka_unit_test_setup_teardown(test_many_requests_on_a_connection, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_missing_pages, setup, teardown),
		cmocka_unit_test_setup_teardown(test_paths_are_compared_whole, setup, teardown),
		cmocka_unit_test_setup_teardown(test_queries, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_route_that_refuses, setup, teardown),
		cmocka_unit_test_setup_teardown(test_accepted_host_headers, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_second_host_header, setup, teardown),
		cmocka_unit_test_setup_teardown(test_idle_connections_make_room, setup, teardown),
		cmocka_unit_test_setup_teardown(test_busy_connections_leave_places_for_probes,
						setup, teardown),
		cmocka_unit_test_setup_teardown(test_one_connection_too_many, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_silent_connection_is_closed, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_a_trickling_connection_is_closed, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_an_active_connection_stays_open, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_a_connection_that_never_reads_is_closed, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_a_client_that_disconnects_midway_costs_nothing,
						setup, teardown),
		cmocka_unit_test_setup_teardown(test_answers_are_bounded, setup, teardown),
		cmocka_unit_test_setup_teardown(test_simultaneous_requests_share_an_answer, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_a_request_that_is_too_large, setup, teardown),
		cmocka_unit_test_setup_teardown(test_requests_that_are_not_http, setup, teardown),
		cmocka_unit_test_setup_teardown(test_shutdown_closes_every_connection, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
