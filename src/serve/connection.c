/* A client's socket on a worker's loop: bytes to the core, replies back.
 *
 * Replies are written with one system call per round. Bytes that the kernel does not take are swapped into `sending`
 * and written as the socket drains, while the core fills its own buffer. A client that reads nothing is the core's to
 * cut off (output-limit): hs_session_sending tells it how much is unsent.
 *
 * A connection on the TLS port has a filter between socket and core (`secure`). Large replies are encrypted piece by
 * piece as the kernel takes them, so no reply is in memory twice. */
#include "serve/worker.h"

#include "base/address.h"
#include "base/mem.h"
#include "serve/clock.h"
#include "serve/host.h"

#include <stdio.h>
#include <unistd.h>

enum {
	PIECE_BYTES = 64 * 1024, /* encrypted at a time: four TLS records */
	SCRATCH_KEEP_BYTES =
		128 * 1024, /* a scratch buffer that grew beyond this is freed after use */
	RECEIVED_BYTES_MAX =
		64 * 1024, /* requests read before replies are sent: some thousand commands */
};

/* The TLS filter of a connection on the TLS port. */
struct secure {
	struct hs_tls *tls;
	struct hs_link handshake_link; /* in worker->handshakes during the handshake */
	uint64_t opened_us;
	const char *why; /* the reason, if this side ends the connection; else NULL */
	struct connection *connection;
	bool received_any;   /* the client has sent a byte */
	struct hs_buf plain; /* the core's bytes, encrypted up to plain_at */
	size_t plain_at;
	/* Messages of TLS itself, produced while a write was in flight. */
	struct hs_buf pending_tls;
};

struct connection {
	uv_tcp_t tcp;
	uv_write_t write;
	struct hs_worker *worker;
	struct hs_session *session; /* NULL while the handle is being closed */
	struct secure *secure;	    /* NULL: the plain port */
	struct hs_buf sending;
	bool first_bytes_checked; /* no TLS handshake was found on the plain port */
	bool writing;
	bool reading;
	bool ended; /* the client has closed its sending side */
};

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

static void on_closed(uv_handle_t *handle)
{
	struct connection *connection = handle->data;
	struct secure *secure = connection->secure;

	if (secure) {
		hs_tls_destroy(&secure->tls);
		hs_buf_deinit(&secure->plain);
		hs_buf_deinit(&secure->pending_tls);
		hs_mem_free(&connection->secure);
	}
	hs_buf_deinit(&connection->sending);
	hs_mem_free(&connection);
}

/* Counts and logs how a TLS connection ended. A client that connects and sends nothing (a port check) is not a
 * failure. */
static void end_secure(struct connection *connection)
{
	struct hs_worker *worker = connection->worker;
	struct secure *secure = connection->secure;
	bool ready = hs_tls_ready(secure->tls);
	const char *why = secure->why ? secure->why : hs_tls_error(secure->tls);
	char address[64];

	hs_list_remove(&secure->handshake_link);
	if (!ready && secure->received_any && why[0] == '\0')
		why = "the client closed the connection during the handshake";
	if (ready)
		hs_counter_sub(&worker->stats.tls_clients, 1);
	else if (why[0])
		hs_counter_add(&worker->stats.tls_failures, 1);
	if (why[0] == '\0')
		return;
	describe_address(&connection->tcp, address, sizeof address, uv_tcp_getpeername);
	hs_log(worker->host->log, HS_LOG_INFO, "client at %s: TLS failed: %s", address, why);
}

static void close_connection(struct connection *connection)
{
	if (!connection->session)
		return;
	if (connection->secure)
		end_secure(connection);
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
	if (connection->session && !connection->secure)
		own = hs_core_read_room(connection->session, &room);
	buffer->base = own ? own : connection->worker->read_buffer;
	buffer->len = own ? room : HS_READ_BYTES;
}

static void stop_reading(struct connection *connection)
{
	uv_read_stop((uv_stream_t *)&connection->tcp);
	connection->reading = false;
}

/* Hands decrypted or plain bytes to the core. Replies are sent at the end of the round (hs_connection_flush), for all
 * clients together: a client program with several connections is woken once. They are sent at once if the reply is
 * large, or if so many requests were read in this round that other clients would wait. */
static void receive_plain(struct connection *connection, const char *data, size_t len)
{
	struct hs_worker *worker = connection->worker;

	worker->engine->calls->refresh(worker->engine, worker->index);
	hs_core_receive(worker->core, connection->session, hs_clock_now(), data, len);
	worker->received_bytes += len;
	if (worker->received_bytes >= RECEIVED_BYTES_MAX ||
	    hs_session_out(connection->session)->len >= HS_IDLE_BUFFER_BYTES ||
	    !hs_core_wants_input(connection->session))
		hs_connection_flush(worker);
	if (connection->session && !hs_core_wants_input(connection->session))
		stop_reading(connection);
}

/* Sends the last bytes of a connection, best effort: a closing connection does not wait for the socket. */
static void send_final(struct connection *connection, const char *data, size_t len)
{
	uv_buf_t buffer = uv_buf_init((char *)(uintptr_t)data, (unsigned)len);

	if (len > 0 && !connection->writing)
		uv_try_write((uv_stream_t *)&connection->tcp, &buffer, 1);
}

/* The first bytes on the plain port. False: they are a TLS handshake, and the connection is closed. The client's TLS
 * library rejects the plain-text error, but a network trace and our log show it. */
static bool check_first_bytes(struct connection *connection, const char *data, size_t len)
{
	static const char said[] = "-ERR this port does not speak TLS: use the tls-port\r\n";
	char address[64];

	connection->first_bytes_checked = true;
	if (!hs_tls_begins(data, len))
		return true;
	describe_address(&connection->tcp, address, sizeof address, uv_tcp_getpeername);
	hs_log(connection->worker->host->log, HS_LOG_WARN,
	       "client at %s speaks TLS on the plain port: %s", address,
	       connection->worker->tls ? "connect it to the tls-port"
				       : "set tls-port here, or turn TLS off in the client");
	send_final(connection, said, sizeof said - 1);
	close_connection(connection);
	return false;
}

static void receive_end(struct connection *connection)
{
	stop_reading(connection);
	connection->ended = true;
	hs_core_end(connection->worker->core, connection->session);
	hs_connection_flush(connection->worker);
}

static void receive_encrypted(struct connection *connection, const char *data, size_t len);

static void on_read(uv_stream_t *stream, ssize_t len, const uv_buf_t *buffer)
{
	struct connection *connection = stream->data;

	if (len == 0 || !connection->session)
		return;
	if (!hs_mpsc_empty(&connection->worker->messages))
		hs_worker_read_messages(connection->worker);
	if (len == UV_EOF)
		receive_end(connection);
	else if (len < 0)
		close_connection(connection);
	else if (connection->secure)
		receive_encrypted(connection, buffer->base, (size_t)len);
	else if (connection->first_bytes_checked ||
		 check_first_bytes(connection, buffer->base, (size_t)len))
		receive_plain(connection, buffer->base, (size_t)len);
}

static void start_reading(struct connection *connection)
{
	connection->reading =
		uv_read_start((uv_stream_t *)&connection->tcp, on_alloc, on_read) == 0;
}

static void send_out(struct connection *connection);

static void on_written(uv_write_t *write, int status)
{
	struct connection *connection = write->data;
	struct hs_worker *worker = connection->worker;

	connection->writing = false;
	hs_buf_clear(&connection->sending, 0);
	if (!connection->session)
		return;
	hs_session_sending(connection->session, 0);
	if (status < 0)
		close_connection(connection);
	else
		send_out(connection);
	/* The replies just sent may let the client's next requests run, and the end of this round may be over
	 * already: without this, they would wait for the next event of the loop. */
	hs_worker_end_round(worker);
}

/* Writes `bytes` to the socket; the rest is sent from `sending` as the socket drains. Returns the bytes of that rest,
 * or UV_E… if the connection is broken. `bytes` is empty afterwards. */
static ssize_t write_out(struct connection *connection, struct hs_buf *bytes, size_t keep)
{
	uv_stream_t *stream = (uv_stream_t *)&connection->tcp;
	uv_buf_t buffer = uv_buf_init(bytes->data, (unsigned)bytes->len);
	int sent = uv_try_write(stream, &buffer, 1);

	if (sent == UV_EAGAIN)
		sent = 0;
	if (sent < 0 || (size_t)sent == bytes->len) {
		hs_buf_clear(bytes, keep);
		return sent < 0 ? sent : 0;
	}
	hs_buf_swap(bytes, &connection->sending);
	buffer = uv_buf_init(connection->sending.data + sent,
			     (unsigned)(connection->sending.len - (size_t)sent));
	connection->writing = true;
	uv_write(&connection->write, stream, &buffer, 1, on_written);
	return (ssize_t)buffer.len;
}

static ssize_t send_plain(struct connection *connection, struct hs_buf *out)
{
	ssize_t left;

	hs_counter_add(&hs_core_stats(connection->worker->core)->output_bytes, out->len);
	left = write_out(connection, out, HS_IDLE_BUFFER_BYTES);
	if (left > 0)
		hs_session_sending(connection->session, (size_t)left);
	return left;
}

/* Encrypts the next piece of the core's bytes into `net`, if there is one. */
static int encrypt_next(struct connection *connection, struct hs_buf *out, struct hs_buf *net)
{
	struct secure *secure = connection->secure;
	size_t len;
	int status;

	if (!hs_tls_ready(secure->tls))
		return 0;
	if (secure->plain.len == 0) {
		hs_counter_add(&hs_core_stats(connection->worker->core)->output_bytes, out->len);
		if (out->len <= PIECE_BYTES) {
			status = hs_tls_send(secure->tls, out->data, out->len, net);
			hs_buf_clear(out, HS_IDLE_BUFFER_BYTES);
			return status;
		}
		hs_buf_swap(out, &secure->plain);
	}
	len = secure->plain.len - secure->plain_at;
	if (len > PIECE_BYTES)
		len = PIECE_BYTES;
	status = hs_tls_send(secure->tls, secure->plain.data + secure->plain_at, len, net);
	secure->plain_at += len;
	if (secure->plain_at == secure->plain.len) {
		hs_buf_clear(&secure->plain, 0);
		secure->plain_at = 0;
	}
	return status;
}

static ssize_t send_secure(struct connection *connection, struct hs_buf *out)
{
	struct secure *secure = connection->secure;
	struct hs_buf *net = &connection->worker->encrypted;
	ssize_t left = 0;

	hs_buf_append_bytes(net, hs_buf_bytes(&secure->pending_tls));
	hs_buf_clear(&secure->pending_tls, 0);
	while (left == 0) {
		if (encrypt_next(connection, out, net) < 0) {
			hs_buf_clear(net, SCRATCH_KEEP_BYTES);
			return -1;
		}
		if (net->len == 0)
			break;
		left = write_out(connection, net, SCRATCH_KEEP_BYTES);
	}
	if (left >= 0)
		hs_session_sending(connection->session,
				   (size_t)left + secure->plain.len - secure->plain_at);
	return left;
}

static void send_final_encrypted(struct connection *connection, struct hs_buf *net)
{
	send_final(connection, net->data, net->len);
	hs_buf_clear(net, SCRATCH_KEEP_BYTES);
}

/* Sends the replies of this connection, and closes it if the core asks for that and everything is sent. */
static void send_out(struct connection *connection)
{
	struct hs_session *session = connection->session;
	struct hs_buf *out = hs_session_out(session);
	bool sent = !connection->writing;
	ssize_t left = 0;

	if (hs_session_cut(session)) {
		close_connection(connection);
		return;
	}
	if (!connection->writing) {
		if (connection->secure)
			left = send_secure(connection, out);
		else if (out->len > 0)
			left = send_plain(connection, out);
		if (left < 0) {
			close_connection(connection);
			return;
		}
	}
	if (hs_session_closing(session) && !connection->writing && out->len == 0) {
		if (connection->secure) {
			hs_tls_close(connection->secure->tls, &connection->worker->encrypted);
			send_final_encrypted(connection, &connection->worker->encrypted);
		}
		close_connection(connection);
		return;
	}
	if (sent && hs_core_waits_for_reader(session))
		hs_core_sent(connection->worker->core, session, hs_clock_now());
	if (!connection->reading && !connection->ended && hs_core_wants_input(session) &&
	    !(connection->secure && connection->secure->pending_tls.len > 0))
		start_reading(connection);
}

/* The client sent plain text to the TLS port: the error goes out in plain text, which it can read. */
static void refuse_plain_text(struct connection *connection)
{
	static const char said[] =
		"-ERR this port speaks TLS only: connect with TLS (redis-cli --tls), or "
		"use the plain port\r\n";

	connection->secure->why = "the client sent plain text to the tls-port: use TLS (redis-cli "
				  "--tls) or the plain port";
	send_final(connection, said, sizeof said - 1);
}

/* Decrypts bytes of the client and hands them to the core. */
static void receive_encrypted(struct connection *connection, const char *data, size_t len)
{
	struct hs_worker *worker = connection->worker;
	struct secure *secure = connection->secure;
	struct hs_buf *plain = &worker->decrypted;
	struct hs_buf *net = connection->writing ? &secure->pending_tls : &worker->encrypted;
	bool was_ready = hs_tls_ready(secure->tls);
	int status = hs_tls_receive(secure->tls, data, len, plain, net);
	bool is_plain = !secure->received_any && status < 0 && !hs_tls_begins(data, len);

	secure->received_any = true;
	if (hs_tls_ready(secure->tls) && !was_ready) {
		hs_list_remove(&secure->handshake_link);
		hs_counter_add(&worker->stats.tls_clients, 1);
	}
	if (is_plain) {
		hs_buf_clear(
			net,
			SCRATCH_KEEP_BYTES); /* a TLS alert, which a plain-text client cannot read */
		refuse_plain_text(connection);
		close_connection(connection);
	} else if (status < 0) {
		send_final_encrypted(connection, net);
		close_connection(connection);
	} else if (!connection->writing && net->len > 0 &&
		   write_out(connection, net, SCRATCH_KEEP_BYTES) < 0) {
		close_connection(connection);
	}
	if (connection->session && plain->len > 0)
		receive_plain(connection, plain->data, plain->len);
	hs_buf_clear(plain, SCRATCH_KEEP_BYTES);
	if (connection->session && hs_tls_ended(secure->tls))
		receive_end(connection);
	/* The client does not read TLS's own messages: stop reading from it until they are sent. */
	if (connection->session && secure->pending_tls.len > 0)
		stop_reading(connection);
}

void hs_connection_tick(struct hs_worker *worker)
{
	uint64_t now_us = hs_clock_mono_us();
	struct secure *oldest;

	while ((oldest = hs_list_first(&worker->handshakes, struct secure, handshake_link)) &&
	       now_us - oldest->opened_us >= worker->tls_handshake_timeout_us) {
		oldest->why = "the handshake took longer than tls-handshake-timeout";
		close_connection(oldest->connection);
	}
}

bool hs_connection_flush(struct hs_worker *worker)
{
	struct hs_session *session;
	bool any = false;

	worker->received_bytes = 0;
	while ((session = hs_core_next_sendable(worker->core))) {
		send_out(hs_session_io(session));
		any = true;
	}
	return any;
}

static struct secure *open_secure(struct connection *connection)
{
	struct hs_worker *worker = connection->worker;
	struct secure *secure = hs_mem_zalloc(sizeof *secure);

	secure->connection = connection;
	secure->tls = hs_tls_create(worker->tls, NULL);
	secure->opened_us = hs_clock_mono_us();
	hs_list_append(&worker->handshakes, &secure->handshake_link);
	return secure;
}

void hs_connection_open(struct hs_worker *worker, const struct hs_worker_message *message)
{
	struct connection *connection = hs_mem_zalloc(sizeof *connection);
	char address[64] = "http", local[64] = "http";

	connection->worker = worker;
	uv_tcp_init(&worker->loop, &connection->tcp);
	connection->tcp.data = connection;
	connection->write.data = connection;
	if (uv_tcp_open(&connection->tcp, message->fd) != 0) {
		close(message->fd);
		atomic_fetch_sub(&worker->clients, 1);
		uv_close((uv_handle_t *)&connection->tcp, on_closed);
		return;
	}
	if (message->tls)
		connection->secure = open_secure(connection);
	if (!message->internal) {
		uv_tcp_nodelay(&connection->tcp, 1);
		if (worker->tcp_keepalive_s > 0)
			uv_tcp_keepalive(&connection->tcp, 1, worker->tcp_keepalive_s);
		describe_address(&connection->tcp, address, sizeof address, uv_tcp_getpeername);
		describe_address(&connection->tcp, local, sizeof local, uv_tcp_getsockname);
	}

	struct hs_core_client client = {
		.id = message->client_id,
		.address = address,
		.local_address = local,
		.fd = message->fd,
		.internal = message->internal,
	};

	connection->session = hs_core_connect(worker->core, hs_clock_now(), &client);
	hs_session_set_io(connection->session, connection);
	start_reading(connection);
}
