/* A client's socket on a worker's loop: bytes to the core, replies back.
 *
 * Replies are written at once with one system call. What the kernel does not take is swapped into
 * `sending` and written as it drains; the core goes on filling its own buffer meanwhile. */
#include "serve/worker.h"

#include "base/address.h"
#include "base/mem.h"
#include "serve/clock.h"

#include <stdio.h>
#include <unistd.h>

struct connection {
	uv_tcp_t tcp;
	uv_write_t write;
	struct hs_worker *worker;
	struct hs_session *session; /* NULL once it is being closed */
	struct hs_buf sending;
	bool writing;
	bool reading;
	bool ended; /* the client sends no more */
};

static void on_closed(uv_handle_t *handle)
{
	struct connection *connection = handle->data;

	hs_buf_deinit(&connection->sending);
	hs_mem_free(&connection);
}

static void close_connection(struct connection *connection)
{
	if (!connection->session)
		return;
	hs_core_disconnect(connection->worker->core, connection->session);
	connection->session = NULL;
	atomic_fetch_sub(&connection->worker->clients, 1);
	uv_close((uv_handle_t *)&connection->tcp, on_closed);
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer)
{
	struct connection *connection = handle->data;
	size_t room = 0;
	char *own = NULL;

	(void)suggested;
	if (connection->session)
		own = hs_core_read_room(connection->session, &room);
	buffer->base = own ? own : connection->worker->read_buffer;
	buffer->len = own ? room : HS_READ_BYTES;
}

static void on_read(uv_stream_t *stream, ssize_t len, const uv_buf_t *buffer)
{
	struct connection *connection = stream->data;
	struct hs_worker *worker = connection->worker;

	if (len == 0 || !connection->session)
		return;
	if (len == UV_EOF) {
		uv_read_stop(stream);
		connection->reading = false;
		connection->ended = true;
		hs_core_end(worker->core, connection->session);
		hs_connection_flush(worker);
		return;
	}
	if (len < 0) {
		close_connection(connection);
		return;
	}
	worker->engine->calls->refresh(worker->engine, worker->index);
	hs_core_receive(worker->core, connection->session, hs_clock_now(), buffer->base,
			(size_t)len);
	hs_connection_flush(worker);
	if (connection->session && !hs_core_wants_input(connection->session)) {
		uv_read_stop(stream);
		connection->reading = false;
	}
}

static void send_out(struct connection *connection);

static void on_written(uv_write_t *write, int status)
{
	struct connection *connection = write->data;

	connection->writing = false;
	hs_buf_clear(&connection->sending, 0);
	if (!connection->session)
		return;
	hs_session_sending(connection->session, 0);
	if (status < 0)
		close_connection(connection);
	else
		send_out(connection);
}

/* Sends what the core has for this connection, and closes it when the core wants that. */
static void send_out(struct connection *connection)
{
	struct hs_session *session = connection->session;
	struct hs_buf *out = hs_session_out(session);
	uv_stream_t *stream = (uv_stream_t *)&connection->tcp;

	if (hs_session_cut(session)) {
		close_connection(connection);
		return;
	}
	if (out->len > 0 && !connection->writing) {
		uv_buf_t buffer = uv_buf_init(out->data, (unsigned)out->len);
		int sent = uv_try_write(stream, &buffer, 1);

		hs_counter_add(&hs_core_stats(connection->worker->core)->output_bytes, out->len);
		if (sent < 0 && sent != UV_EAGAIN) {
			close_connection(connection);
			return;
		}
		if (sent < 0)
			sent = 0;
		if ((size_t)sent == out->len) {
			hs_buf_clear(out, HS_KEEP_BYTES);
		} else {
			hs_buf_swap(out, &connection->sending);
			buffer = uv_buf_init(connection->sending.data + sent,
					     (unsigned)(connection->sending.len - (size_t)sent));
			connection->writing = true;
			hs_session_sending(session, buffer.len);
			uv_write(&connection->write, stream, &buffer, 1, on_written);
		}
	}
	if (hs_session_closing(session) && !connection->writing && out->len == 0) {
		close_connection(connection);
		return;
	}
	if (!connection->reading && !connection->ended && hs_core_wants_input(session)) {
		connection->reading = uv_read_start(stream, on_alloc, on_read) == 0;
	}
}

void hs_connection_flush(struct hs_worker *worker)
{
	struct hs_session *session;

	while ((session = hs_core_next_sendable(worker->core)))
		send_out(hs_session_io(session));
}

static void describe_address(const uv_tcp_t *tcp, char *text, size_t size,
			     int (*ask)(const uv_tcp_t *, struct sockaddr *, int *))
{
	struct sockaddr_storage address;
	int len = sizeof address;
	char host[INET6_ADDRSTRLEN] = "?";

	snprintf(text, size, "?:0");
	if (ask(tcp, (struct sockaddr *)&address, &len) != 0)
		return;
	uv_ip_name((struct sockaddr *)&address, host, sizeof host);
	hs_address_text(host,
			ntohs(address.ss_family == AF_INET6
				      ? ((struct sockaddr_in6 *)&address)->sin6_port
				      : ((struct sockaddr_in *)&address)->sin_port),
			text, size);
}

void hs_connection_open(struct hs_worker *worker, int fd, uint64_t client_id)
{
	struct connection *connection = hs_mem_zalloc(sizeof *connection);
	char address[64], local[64];

	connection->worker = worker;
	uv_tcp_init(&worker->loop, &connection->tcp);
	connection->tcp.data = connection;
	connection->write.data = connection;
	if (uv_tcp_open(&connection->tcp, fd) != 0) {
		close(fd);
		atomic_fetch_sub(&worker->clients, 1);
		uv_close((uv_handle_t *)&connection->tcp, on_closed);
		return;
	}
	uv_tcp_nodelay(&connection->tcp, 1);
	if (worker->tcp_keepalive_s > 0)
		uv_tcp_keepalive(&connection->tcp, 1, worker->tcp_keepalive_s);
	describe_address(&connection->tcp, address, sizeof address, uv_tcp_getpeername);
	describe_address(&connection->tcp, local, sizeof local, uv_tcp_getsockname);

	struct hs_core_client client = {
		.id = client_id,
		.address = address,
		.local_address = local,
		.fd = fd,
	};

	connection->session = hs_core_connect(worker->core, hs_clock_now(), &client);
	hs_session_set_io(connection->session, connection);
	connection->reading =
		uv_read_start((uv_stream_t *)&connection->tcp, on_alloc, on_read) == 0;
}
