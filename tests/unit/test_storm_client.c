/* Goal: storm's connections reach a server by its name, on whichever of the name's addresses the server
 * listens.
 *
 * Method: the phase CONNECT of one worker, on a loop with a listener on loopback that answers PING; the test
 * resolves names. More connections are opened than names may be looked up at a time. */
#include "cli/storm.h"

#include "upstream/names.h"

#include <netdb.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { CONNECTIONS = 3 * HS_LOOKUPS_MAX };

struct server {
	uv_tcp_t listener;
	uv_tcp_t peers[CONNECTIONS];
	int peers_count;
	char buffer[256];
};

struct world {
	struct hs_storm_options options;
	struct hs_storm_worker worker;
	struct server server;
	atomic_bool stop;
};

/* The lookup function of the test: "localhost" has two addresses, and no listener at the first. */
static int find(const char *host, const char *port, const struct addrinfo *hints,
		struct addrinfo **found)
{
	int code;

	if (strcmp(host, "localhost") != 0)
		return EAI_NONAME;
	code = getaddrinfo("127.0.0.1", port, hints, found);
	return code ? code : getaddrinfo("127.0.0.2", port, hints, &(*found)->ai_next);
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer)
{
	struct server *server = handle->data;

	(void)suggested;
	*buffer = uv_buf_init(server->buffer, sizeof server->buffer);
}

static void on_read(uv_stream_t *stream, ssize_t len, const uv_buf_t *buffer)
{
	char text[] = "+PONG\r\n";
	uv_buf_t pong = uv_buf_init(text, sizeof text - 1);

	(void)buffer;
	if (len > 0)
		assert_int_equal(uv_try_write(stream, &pong, 1), pong.len);
	else
		uv_close((uv_handle_t *)stream, NULL);
}

static void on_connection(uv_stream_t *listener, int status)
{
	struct server *server = listener->data;
	uv_tcp_t *peer = &server->peers[server->peers_count++];

	assert_int_equal(status, 0);
	uv_tcp_init(listener->loop, peer);
	peer->data = server;
	assert_int_equal(uv_accept(listener, (uv_stream_t *)peer), 0);
	uv_read_start((uv_stream_t *)peer, on_alloc, on_read);
}

static uint16_t listen_on(struct server *server, uv_loop_t *loop)
{
	struct sockaddr_in address;
	int len = sizeof address;

	uv_ip4_addr("127.0.0.2", 0, &address);
	uv_tcp_init(loop, &server->listener);
	server->listener.data = server;
	assert_int_equal(uv_tcp_bind(&server->listener, (struct sockaddr *)&address, 0), 0);
	assert_int_equal(uv_tcp_getsockname(&server->listener, (struct sockaddr *)&address, &len),
			 0);
	assert_int_equal(uv_listen((uv_stream_t *)&server->listener, CONNECTIONS, on_connection),
			 0);
	return ntohs(address.sin_port);
}

static void test_every_address_of_a_name_is_tried(void **state)
{
	struct world *world = test_calloc(1, sizeof *world);
	struct hs_storm_options *options = &world->options;
	struct hs_target *target = &options->target;
	struct hs_storm_worker *worker = &world->worker;

	(void)state;
	options->pipeline = options->threads = options->keys = 1;
	options->connections = CONNECTIONS;
	options->prefix = options->request = "";
	target->url.seeds_count = 1;
	strcpy(target->url.seeds[0].host, "localhost");
	target->conn_config = (struct hs_conn_config){.login = {.user = "", .password = ""},
						      .names = hs_names_create(find),
						      .open_ms_max = 60000};
	hs_storm_worker_init(worker, options, 0, &world->stop);
	worker->nodes[0].at.port = listen_on(&world->server, &worker->loop);
	hs_storm_worker_prepare(worker, HS_STORM_PHASE_CONNECT);
	hs_storm_worker_run(worker);
	assert_string_equal(worker->side_counts.last_error, "");
	for (unsigned i = 0; i < worker->clients_count; i++)
		assert_int_equal(worker->clients[i].state, HS_STORM_CLIENT_READY);
	uv_close((uv_handle_t *)&world->server.listener, NULL);
	hs_storm_worker_deinit(worker);
	hs_names_release(&target->conn_config.names);
	test_free(world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_address_of_a_name_is_tried),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
