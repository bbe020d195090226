/* Goal: over TLS, a connection delivers the replies that the server sent before an error or the end of the
 * stream. The connection also goes down if the server ends TLS but leaves the socket open. Without TLS, every
 * byte that the server may have read counts as sent (law 4: a request that was sent may have run).
 *
 * Method: a TLS server on the same loop answers HELLO and sends its last replies in the same write. A plain server
 * reads a part of a long request and closes the connection. Sockets are on loopback. */
#include "upstream/conn.h"

#include "base/limits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include <cmocka.h>

enum { GUARD_MS = 60000, REQUEST_BYTES = 32 << 20, READ_BYTES = 6 << 20 };

static char folder[64];

struct world {
	uv_loop_t loop;
	uv_timer_t guard;
	/* The server's part. */
	uv_tcp_t listener, peer;
	struct hs_tls *tls;
	char input[65536];
	bool breaks; /* true: the server ends with a damaged record; false: the server ends TLS properly */
	size_t read; /* bytes that the server has read, without TLS */
	/* The client's part. */
	struct hs_conn_config conn_config;
	struct hs_conn_driver driver;
	struct hs_upstream upstream;
	bool up;
	char received[64], why[256];
	char buffer[HS_READ_BYTES];
};

static int make_folder(void **state)
{
	char command[128];

	(void)state;
	snprintf(folder, sizeof folder, "/tmp/heatsink-conn-XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	snprintf(command, sizeof command, "tests/lib/make-certificates %s", folder);
	return system(command); // NOLINT(cert-env33-c): a program of our own
}

static int remove_folder(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof command, "rm -rf %s", folder);
	return system(command); // NOLINT(cert-env33-c)
}

static struct hs_tls_context *context_of(enum hs_tls_role role)
{
	char cert[128], key[128], why[256];
	struct hs_tls_options options = {.role = role, .verify = HS_TLS_VERIFY_NONE};
	struct hs_tls_context *context = NULL;

	snprintf(cert, sizeof cert, "%s/server.pem", folder);
	snprintf(key, sizeof key, "%s/server.key", folder);
	if (role == HS_TLS_SERVER) {
		options.cert_file = cert;
		options.key_file = key;
	}
	assert_int_equal(hs_tls_context_create(&options, &context, why, sizeof why), 0);
	return context;
}

/* ---- the server ---- */

static void say_last_words(struct world *world, struct hs_buf *net)
{
	static const char broken[5 + 32] = {0x17, 0x03, 0x03, 0, 32};
	static const char words[] = "*2\r\n$2\r\nid\r\n:7\r\n+last\r\n";

	assert_int_equal(hs_tls_send(world->tls, words, sizeof words - 1, net), 0);
	if (world->breaks)
		hs_buf_append(net, broken, sizeof broken);
	else
		hs_tls_close(world->tls, net);
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer)
{
	struct world *world = handle->data;

	(void)suggested;
	*buffer = uv_buf_init(world->input, sizeof world->input);
}

static void on_read(uv_stream_t *stream, ssize_t len, const uv_buf_t *buffer)
{
	struct world *world = stream->data;
	struct hs_buf plain = {0}, net = {0};

	if (len > 0 && hs_tls_receive(world->tls, buffer->base, (size_t)len, &plain, &net) == 0 &&
	    plain.len > 0)
		say_last_words(world, &net);
	if (len > 0 && net.len > 0) {
		uv_buf_t out = uv_buf_init(net.data, (unsigned)net.len);

		assert_int_equal(uv_try_write(stream, &out, 1), net.len);
	}
	if (len < 0)
		uv_close((uv_handle_t *)stream, NULL);
	hs_buf_deinit(&plain);
	hs_buf_deinit(&net);
}

/* Without TLS, the server answers HELLO, reads a part of the next request, and closes the connection with the
 * rest unread. */
static void on_read_plain(uv_stream_t *stream, ssize_t len, const uv_buf_t *buffer)
{
	struct world *world = stream->data;
	static char hello[] = "*2\r\n$2\r\nid\r\n:7\r\n";
	uv_buf_t out = uv_buf_init(hello, sizeof hello - 1);

	(void)buffer;
	assert_true(len >= 0);
	if (!world->up)
		assert_int_equal(uv_try_write(stream, &out, 1), out.len);
	else
		world->read += (size_t)len;
	if (world->read > READ_BYTES)
		uv_close((uv_handle_t *)stream, NULL);
}

static void on_connection(uv_stream_t *listener, int status)
{
	struct world *world = listener->data;

	assert_int_equal(status, 0);
	uv_tcp_init(listener->loop, &world->peer);
	world->peer.data = world;
	assert_int_equal(uv_accept(listener, (uv_stream_t *)&world->peer), 0);
	uv_read_start((uv_stream_t *)&world->peer, on_alloc, world->tls ? on_read : on_read_plain);
}

static uint16_t listen_on(struct world *world, bool tls)
{
	struct hs_tls_context *context = context_of(HS_TLS_SERVER);
	struct sockaddr_in address;
	int len = sizeof address;

	world->tls = tls ? hs_tls_create(context, NULL) : NULL;
	hs_tls_context_release(&context);
	uv_ip4_addr("127.0.0.1", 0, &address);
	uv_tcp_init(&world->loop, &world->listener);
	world->listener.data = world;
	assert_int_equal(uv_tcp_bind(&world->listener, (struct sockaddr *)&address, 0), 0);
	assert_int_equal(uv_tcp_getsockname(&world->listener, (struct sockaddr *)&address, &len),
			 0);
	assert_int_equal(uv_listen((uv_stream_t *)&world->listener, 1, on_connection), 0);
	return ntohs(address.sin_port);
}

/* ---- the client ---- */

/* Shrinks the socket buffer, so that the kernel buffers much less than a connection writes at once. */
static void shrink(uv_handle_t *handle, void *context)
{
	int room = 65536;

	if (handle->type == UV_TCP && handle != context) {
		uv_send_buffer_size(handle, &room);
		uv_recv_buffer_size(handle, &room);
	}
}

static void on_up(void *context, struct hs_upstream *upstream)
{
	struct world *world = context;

	assert_int_equal(upstream->server_id, 7);
	world->up = true;
	if (world->tls)
		return;
	uv_walk(&world->loop, shrink, &world->listener);
	memset(hs_buf_reserve(&upstream->out, REQUEST_BYTES), 'x', REQUEST_BYTES);
	upstream->out.len = REQUEST_BYTES;
	hs_conn_send(upstream);
}

static void on_down(void *context, struct hs_upstream *upstream, const char *why)
{
	struct world *world = context;

	assert_null(upstream->io);
	snprintf(world->why, sizeof world->why, "%s", why);
}

static void on_receive(void *context, struct hs_upstream *upstream, const char *data, size_t len)
{
	struct world *world = context;

	(void)upstream;
	assert_true(world->up);
	snprintf(world->received, sizeof world->received, "%.*s", (int)len, data);
}

static void on_guard(uv_timer_t *timer)
{
	(void)timer;
	fail_msg("the connection does not go down");
}

/* Connects and waits until the connection is down. */
static struct world *connect_until_down(bool tls, bool breaks)
{
	struct world *world = test_calloc(1, sizeof *world);
	struct hs_conn_server server = {.host = "127.0.0.1", .expected_id = ""};

	world->breaks = breaks;
	uv_loop_init(&world->loop);
	uv_timer_init(&world->loop, &world->guard);
	uv_timer_start(&world->guard, on_guard, GUARD_MS, 0);
	server.port = listen_on(world, tls);
	world->conn_config = (struct hs_conn_config){.login = {.user = "", .password = ""},
						     .tls = tls ? context_of(HS_TLS_CLIENT) : NULL,
						     .open_ms_max = GUARD_MS};
	world->driver = (struct hs_conn_driver){
		.loop = &world->loop,
		.conn_config = &world->conn_config,
		.buffer = world->buffer,
		.context = world,
		.up = on_up,
		.down = on_down,
		.receive = on_receive,
	};
	hs_upstream_init(&world->upstream, 2);
	hs_conn_open(&world->driver, &world->upstream, &server);
	while (!world->why[0])
		uv_run(&world->loop, UV_RUN_ONCE);
	return world;
}

static void end(struct world *world)
{
	uv_close((uv_handle_t *)&world->guard, NULL);
	uv_close((uv_handle_t *)&world->listener, NULL);
	uv_run(&world->loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&world->loop), 0);
	hs_tls_destroy(&world->tls);
	if (world->conn_config.tls)
		hs_tls_context_release(&world->conn_config.tls);
	hs_upstream_deinit(&world->upstream);
	test_free(world);
}

static void test_replies_in_front_of_an_error(void **state)
{
	struct world *world = connect_until_down(true, true);

	(void)state;
	assert_string_equal(world->received, "+last\r\n");
	assert_memory_equal(world->why, "TLS: ", 5);
	end(world);
}

static void test_tls_ends_and_the_socket_stays_open(void **state)
{
	struct world *world = connect_until_down(true, false);

	(void)state;
	assert_string_equal(world->received, "+last\r\n");
	assert_string_equal(world->why, "the server closed the connection");
	end(world);
}

static void test_bytes_the_server_may_have_read_count_as_sent(void **state)
{
	struct world *world = connect_until_down(false, false);

	(void)state;
	assert_true(world->read > READ_BYTES);
	assert_in_range(world->upstream.sent, world->read, REQUEST_BYTES);
	end(world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_replies_in_front_of_an_error),
		cmocka_unit_test(test_tls_ends_and_the_socket_stays_open),
		cmocka_unit_test(test_bytes_the_server_may_have_read_count_as_sent),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
