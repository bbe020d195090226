/* Goal: host names become addresses; a slow lookup blocks no loop, lookups of the same name share one, and a
 * connection tries all addresses of a name.
 *
 * Method: instead of the system's lookup, a function that blocks until the test releases it; a listener on
 * loopback that answers HELLO. */
#include "upstream/names.h"

#include "base/bytes.h"
#include "base/limits.h"
#include "base/mem.h"
#include "upstream/conn.h"

#include <netdb.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <uv.h>

#include <cmocka.h>

/* The lookup function of the test: a name that begins with "slow" blocks; "two" has two addresses, and only the
 * second accepts connections. */
static uv_sem_t gate, passed;

static int find(const char *host, const char *port, const struct addrinfo *hints,
		struct addrinfo **found)
{
	int code;

	if (strncmp(host, "slow", 4) == 0) {
		uv_sem_wait(&gate);
		code = getaddrinfo("127.0.0.1", port, hints, found);
		uv_sem_post(&passed);
		return code;
	}
	if (strcmp(host, "two") != 0)
		return EAI_NONAME;
	code = getaddrinfo("127.0.0.2", port, hints, found);
	return code ? code : getaddrinfo("127.0.0.1", port, hints, &(*found)->ai_next);
}

struct heard {
	int count;
	bool found;
	char why[128];
};

static void on_done(void *context, const struct addrinfo *found, const char *why)
{
	struct heard *heard = context;

	heard->count++;
	heard->found = found != NULL;
	snprintf(heard->why, sizeof heard->why, "%s", why ? why : "");
}

static void close_loop(uv_loop_t *loop)
{
	uv_run(loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(loop), 0);
}

static void test_found_and_not(void **state)
{
	struct hs_names *names = hs_names_create(find);
	struct heard two = {0}, none = {0};
	uv_loop_t loop;

	(void)state;
	uv_loop_init(&loop);
	hs_lookup_start(names, &loop, "two", 1, on_done, &two);
	hs_lookup_start(names, &loop, "none", 1, on_done, &none);
	assert_int_equal(two.count + none.count, 0);
	close_loop(&loop);
	assert_true(two.found);
	assert_int_equal(none.count, 1);
	assert_false(none.found);
	assert_string_equal(none.why, gai_strerror(EAI_NONAME));
	hs_names_release(&names);
}

/* The loop ends and all memory is released while the lookup is still blocked. */
static void test_cancelled_while_it_waits(void **state)
{
	struct hs_names *names = hs_names_create(find);
	struct heard heard = {0};
	struct hs_lookup *lookup;
	uv_loop_t loop;

	(void)state;
	uv_loop_init(&loop);
	lookup = hs_lookup_start(names, &loop, "slow", 1, on_done, &heard);
	hs_lookup_cancel(&lookup);
	assert_null(lookup);
	close_loop(&loop);
	hs_names_release(&names);
	assert_int_equal(heard.count, 0);
	uv_sem_post(&gate);
	uv_sem_wait(&passed);
}

static void test_limit(void **state)
{
	struct hs_names *names = hs_names_create(find);
	struct heard slow = {0}, more = {0};
	uv_loop_t loop;

	(void)state;
	uv_loop_init(&loop);
	for (int i = 0; i < HS_LOOKUPS_MAX; i++) {
		char name[16];

		snprintf(name, sizeof name, "slow%d", i);
		hs_lookup_start(names, &loop, name, 1, on_done, &slow);
	}
	hs_lookup_start(names, &loop, "two", 1, on_done, &more);
	while (more.count == 0)
		uv_run(&loop, UV_RUN_ONCE);
	assert_false(more.found);
	assert_non_null(strstr(more.why, "too many"));
	for (int i = 0; i < HS_LOOKUPS_MAX; i++)
		uv_sem_post(&gate);
	while (slow.count < HS_LOOKUPS_MAX)
		uv_run(&loop, UV_RUN_ONCE);
	hs_lookup_start(names, &loop, "two", 1, on_done, &more);
	close_loop(&loop);
	assert_true(more.found);
	hs_names_release(&names);
	for (int i = 0; i < HS_LOOKUPS_MAX; i++)
		uv_sem_wait(&passed);
}

/* Many connections to one name share a lookup, even in two loops; cancelling one connection does not affect the
 * others. */
static void test_one_name_is_looked_up_once(void **state)
{
	struct hs_names *names = hs_names_create(find);
	struct heard heard = {0}, other = {0}, cancelled = {0};
	uv_loop_t loops[2];
	struct hs_lookup *lookup;

	(void)state;
	for (int i = 0; i < 2; i++)
		uv_loop_init(&loops[i]);
	lookup = hs_lookup_start(names, &loops[0], "slow", 1, on_done, &cancelled);
	for (int i = 0; i < 2 * HS_LOOKUPS_MAX; i++)
		hs_lookup_start(names, &loops[0], "slow", 1, on_done, &heard);
	hs_lookup_start(names, &loops[1], "slow", 1, on_done, &other);
	hs_lookup_cancel(&lookup);
	uv_sem_post(&gate);
	for (int i = 0; i < 2; i++)
		close_loop(&loops[i]);
	assert_int_equal(heard.count, 2 * HS_LOOKUPS_MAX);
	assert_true(heard.found);
	assert_true(other.found);
	assert_int_equal(cancelled.count, 0);
	hs_names_release(&names);
	uv_sem_wait(&passed);
	assert_int_equal(uv_sem_trywait(&passed), UV_EAGAIN);
}

/* ---- a connection to a name ---- */

struct server {
	uv_tcp_t listener, peer;
	uv_write_t write;
	char buffer[256];
};

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer)
{
	struct server *server = handle->data;

	(void)suggested;
	*buffer = uv_buf_init(server->buffer, sizeof server->buffer);
}

static void on_read(uv_stream_t *stream, ssize_t len, const uv_buf_t *buffer)
{
	struct server *server = stream->data;
	char text[] = "*2\r\n$2\r\nid\r\n:7\r\n";
	uv_buf_t hello = uv_buf_init(text, sizeof text - 1);

	(void)buffer;
	if (len > 0)
		assert_int_equal(uv_try_write(stream, &hello, 1), hello.len);
	else
		uv_close((uv_handle_t *)&server->peer, NULL);
}

static void on_connection(uv_stream_t *listener, int status)
{
	struct server *server = listener->data;

	assert_int_equal(status, 0);
	uv_tcp_init(listener->loop, &server->peer);
	server->peer.data = server;
	assert_int_equal(uv_accept(listener, (uv_stream_t *)&server->peer), 0);
	uv_read_start((uv_stream_t *)&server->peer, on_alloc, on_read);
}

/* Binds a port, so that no other process gets it. Connections are refused until the server listens. */
static uint16_t bind_to(struct server *server, uv_loop_t *loop)
{
	struct sockaddr_in address;
	int len = sizeof address;

	uv_ip4_addr("127.0.0.1", 0, &address);
	uv_tcp_init(loop, &server->listener);
	server->listener.data = server;
	assert_int_equal(uv_tcp_bind(&server->listener, (struct sockaddr *)&address, 0), 0);
	assert_int_equal(uv_tcp_getsockname(&server->listener, (struct sockaddr *)&address, &len),
			 0);
	return ntohs(address.sin_port);
}

static uint16_t listen_on(struct server *server, uv_loop_t *loop)
{
	uint16_t port = bind_to(server, loop);

	assert_int_equal(uv_listen((uv_stream_t *)&server->listener, 8, on_connection), 0);
	return port;
}

struct said {
	struct hs_conn_config conn_config;
	struct hs_conn_driver driver;
	struct hs_upstream upstream;
	char why[256];
	bool over;
	char buffer[HS_READ_BYTES];
};

static void on_up(void *context, struct hs_upstream *upstream)
{
	struct said *said = context;

	(void)upstream;
	said->over = true;
}

static void on_down(void *context, struct hs_upstream *upstream, const char *why)
{
	struct said *said = context;

	assert_null(upstream->io);
	snprintf(said->why, sizeof said->why, "%s", why);
	said->over = true;
}

static void connect_to(uv_loop_t *loop, struct hs_names *names, const char *host, uint16_t port,
		       struct said *said)
{
	const struct hs_conn_server server = {.host = host, .port = port, .expected_id = ""};

	said->conn_config = (struct hs_conn_config){
		.login = {.user = "", .password = ""}, .names = names, .open_ms_max = 60000};
	said->driver = (struct hs_conn_driver){
		.loop = loop,
		.conn_config = &said->conn_config,
		.buffer = said->buffer,
		.context = said,
		.up = on_up,
		.down = on_down,
	};
	hs_upstream_init(&said->upstream, 2);
	hs_conn_open(&said->driver, &said->upstream, &server);
}

static void test_every_address_is_tried(void **state)
{
	struct hs_names *names = hs_names_create(find);
	struct server server = {0};
	struct said said = {0};
	uv_loop_t loop;

	(void)state;
	uv_loop_init(&loop);
	connect_to(&loop, names, "two", listen_on(&server, &loop), &said);
	while (!said.over)
		uv_run(&loop, UV_RUN_ONCE);
	assert_string_equal(said.why, "");
	assert_int_equal(said.upstream.server_id, 7);
	hs_conn_close(&said.upstream);
	uv_close((uv_handle_t *)&server.listener, NULL);
	close_loop(&loop);
	hs_names_release(&names);
}

static void test_no_address_accepts(void **state)
{
	struct hs_names *names = hs_names_create(find);
	struct said said = {0};
	struct server server = {0};
	uv_loop_t loop;
	uint16_t port;

	(void)state;
	uv_loop_init(&loop);
	port = bind_to(&server, &loop);
	connect_to(&loop, names, "two", port, &said);
	while (!said.over)
		uv_run(&loop, UV_RUN_ONCE);
	uv_close((uv_handle_t *)&server.listener, NULL);
	close_loop(&loop);
	assert_string_equal(said.why, uv_strerror(UV_ECONNREFUSED));
	hs_names_release(&names);
}

/* A connection may be closed at any time; no callback is called afterwards. */
static void test_closed_while_it_looks_up(void **state)
{
	struct hs_names *names = hs_names_create(find);
	struct said said = {0};
	uv_loop_t loop;

	(void)state;
	uv_loop_init(&loop);
	connect_to(&loop, names, "slow", 1, &said);
	uv_run(&loop, UV_RUN_NOWAIT);
	hs_conn_close(&said.upstream);
	close_loop(&loop);
	assert_false(said.over);
	hs_names_release(&names);
	uv_sem_post(&gate);
	uv_sem_wait(&passed);
}

static int set_up(void **state)
{
	(void)state;
	return uv_sem_init(&gate, 0) || uv_sem_init(&passed, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_found_and_not),
		cmocka_unit_test(test_cancelled_while_it_waits),
		cmocka_unit_test(test_limit),
		cmocka_unit_test(test_one_name_is_looked_up_once),
		cmocka_unit_test(test_every_address_is_tried),
		cmocka_unit_test(test_no_address_accepts),
		cmocka_unit_test(test_closed_while_it_looks_up),
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}
