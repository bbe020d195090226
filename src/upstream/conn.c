/* The order of events: look up the name, connect to its addresses one after the other, TLS handshake, greeting,
 * then `up`. Every step has a timeout; only the TLS handshake and HELLO of a `hello_only` connection have none.
 * Closing is asynchronous: the memory is freed when libuv has closed the handles, and the owner may be gone by
 * then. */
#include "upstream/conn.h"

#include "base/limits.h"
#include "base/mem.h"
#include "upstream/names.h"

#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <uv.h>

enum {
	WHY_BYTES_MAX = 256,
	KEEPALIVE_S = 15,
	WRITE_BYTES_MAX = 4 << 20, /* of a long request, per write */
};

struct hs_conn {
	uv_tcp_t tcp;
	uv_timer_t timer; /* timeout of opening */
	uv_connect_t connect;
	uv_write_t write;
	const struct hs_conn_driver *driver;
	struct hs_upstream *upstream; /* valid until `ended` */
	char host[256];
	uint16_t port;
	struct hs_lookup *lookup;
	struct sockaddr_storage *addresses; /* found by the lookup */
	size_t addresses_count, address;    /* `address`: index of the one being tried */
	struct hs_tls *tls;
	struct hs_buf plain; /* TLS: decrypted */
	struct hs_greeting greeting;
	struct hs_buf sending; /* being written */
	struct hs_buf cipher;  /* TLS: encrypted, for the next write */
	size_t sending_at;     /* bytes of `sending` in the kernel's hands */
	size_t writing_len;    /* bytes given to libuv, of unknown progress */
	bool sending_plain; /* `sending` holds bytes of upstream->out: neither TLS records nor the greeting */
	int handles; /* libuv handles not closed yet */
	bool up, ended, writing, connected;
	bool answered; /* TLS: the server has sent bytes */
	char why[WHY_BYTES_MAX];
};

/* ---- closing ---- */

static void release(struct hs_conn *conn)
{
	if (conn->handles > 0)
		return;
	hs_mem_free(&conn->addresses);
	hs_tls_destroy(&conn->tls);
	hs_buf_deinit(&conn->plain);
	hs_greeting_deinit(&conn->greeting);
	hs_buf_deinit(&conn->sending);
	hs_buf_deinit(&conn->cipher);
	hs_mem_release(conn);
}

static void on_closed(uv_handle_t *handle)
{
	struct hs_conn *conn = handle->data;

	conn->handles--;
	release(conn);
}

/* The kernel has taken all but `left` bytes of the write. */
static void count_sent(struct hs_conn *conn, size_t left)
{
	if (conn->sending_plain)
		conn->upstream->sent += conn->writing_len - left;
	conn->sending_at += conn->writing_len - left;
	conn->writing_len = left;
}

static void end(struct hs_conn *conn)
{
	if (conn->ended)
		return;
	conn->ended = true;
	if (conn->writing_len > 0) /* the server may have run requests that were wholly written */
		count_sent(conn, uv_stream_get_write_queue_size((uv_stream_t *)&conn->tcp));
	conn->upstream->io = NULL;
	if (conn->lookup)
		hs_lookup_cancel(&conn->lookup);
	if (!uv_is_closing((uv_handle_t *)&conn->tcp))
		uv_close((uv_handle_t *)&conn->tcp, on_closed);
	uv_close((uv_handle_t *)&conn->timer, on_closed);
}

void hs_conn_close(struct hs_upstream *upstream)
{
	if (upstream->io)
		end(upstream->io);
}

static void fail(struct hs_conn *conn, const char *why)
{
	char text[WHY_BYTES_MAX];

	if (conn->ended)
		return;
	snprintf(text, sizeof text, "%s", why);
	end(conn);
	conn->driver->down(conn->driver->context, conn->upstream, text);
}

/* Adds how to ask for TLS, or for none, where that may be the cause. */
static void fail_port(struct hs_conn *conn, const char *what, const char *hint)
{
	snprintf(conn->why, sizeof conn->why, "%s %s", what, hint);
	fail(conn, conn->why);
}

static void fail_uv(struct hs_conn *conn, int code)
{
	const struct hs_login *login = &conn->driver->conn_config->login;

	if (code == UV_EOF && conn->tls && !hs_tls_ready(conn->tls))
		fail_port(conn,
			  "the server closed the connection during the TLS handshake; a port "
			  "without TLS "
			  "needs",
			  login->tls_off);
	else if ((code == UV_EOF || code == UV_ECONNRESET) && conn->tls && !conn->up)
		fail(conn, "the server closed the connection right after the TLS handshake: it may "
			   "require another client certificate");
	else if ((code == UV_EOF || code == UV_ECONNRESET) && conn->connected && !conn->up)
		fail_port(conn,
			  "the server closed the connection at the first command; a port with TLS "
			  "needs",
			  login->tls_on);
	else
		fail(conn, code == UV_EOF ? "the server closed the connection" : uv_strerror(code));
}

/* ---- bytes out ---- */

static void on_written(uv_write_t *write, int status);

static void on_fail_later(uv_timer_t *timer)
{
	struct hs_conn *conn = timer->data;

	fail(conn, conn->why);
}

/* In the next round of the loop, not from inside the owner's call. Sends nothing more meanwhile. */
static void fail_later(struct hs_conn *conn, const char *why)
{
	conn->writing = true;
	snprintf(conn->why, sizeof conn->why, "%s", why);
	uv_timer_start(&conn->timer, on_fail_later, 0, 0);
}

/* Writes the rest of `sending` piece by piece, so that the progress is known. */
static void write_on(struct hs_conn *conn)
{
	size_t left = conn->sending.len - conn->sending_at;
	uv_buf_t buffer;
	int code;

	conn->writing_len = left < WRITE_BYTES_MAX ? left : WRITE_BYTES_MAX;
	buffer = uv_buf_init(conn->sending.data + conn->sending_at, (unsigned)conn->writing_len);
	conn->writing = true;
	code = uv_write(&conn->write, (uv_stream_t *)&conn->tcp, &buffer, 1, on_written);
	if (code != 0) {
		conn->writing_len = 0;
		fail_later(conn, uv_strerror(code));
	}
}

static void write_all(struct hs_conn *conn, size_t from, bool plain)
{
	conn->sending_at = from;
	conn->sending_plain = plain;
	write_on(conn);
}

/* Sends encrypted bytes: handshakes, alerts, and the owner's. */
static void send_cipher(struct hs_conn *conn)
{
	if (conn->writing || conn->cipher.len == 0)
		return;
	hs_buf_swap(&conn->sending, &conn->cipher);
	write_all(conn, 0, false);
}

static void send_plain(struct hs_conn *conn)
{
	struct hs_buf *out = &conn->upstream->out;
	size_t piece = out->len < WRITE_BYTES_MAX ? out->len : WRITE_BYTES_MAX;
	uv_buf_t buffer = uv_buf_init(out->data, (unsigned)piece);
	int took = uv_try_write((uv_stream_t *)&conn->tcp, &buffer, 1);

	if (took < 0 && took != UV_EAGAIN)
		return; /* the next read fails with the reason */
	if (took < 0)
		took = 0;
	conn->upstream->sent += (uint64_t)took;
	if ((size_t)took == out->len) {
		hs_buf_clear(out, HS_READ_BYTES);
		return;
	}
	hs_buf_swap(out, &conn->sending);
	write_all(conn, (size_t)took, true);
}

void hs_conn_send(struct hs_upstream *upstream)
{
	struct hs_conn *conn = upstream->io;
	struct hs_buf *out = &upstream->out;

	if (out->len == 0 || conn->writing)
		return;
	if (!conn->tls) {
		send_plain(conn);
		return;
	}
	if (hs_tls_send(conn->tls, out->data, out->len, &conn->cipher) != 0) {
		fail_later(conn, hs_tls_error(conn->tls));
		return;
	}
	/* Counted as sent when encrypted: an unknown outcome is better than a request that runs twice. */
	upstream->sent += out->len;
	hs_buf_clear(out, HS_READ_BYTES);
	send_cipher(conn);
}

static void on_written(uv_write_t *write, int status)
{
	struct hs_conn *conn = write->data;

	conn->writing = false;
	if (conn->ended)
		return;
	/* libuv does not say how much a failed write wrote. All of it counts as sent: an unknown outcome is better
	 * than a request that runs twice. */
	count_sent(conn, 0);
	if (status < 0) {
		fail_uv(conn, status);
		return;
	}
	if (conn->sending_at < conn->sending.len) {
		write_on(conn);
		return;
	}
	hs_buf_clear(&conn->sending, HS_IDLE_BUFFER_BYTES);
	send_cipher(conn);
	if (conn->up)
		hs_conn_send(conn->upstream);
}

/* ---- the greeting ---- */

static void greet(struct hs_conn *conn)
{
	struct hs_buf out = {0};

	hs_greeting_compose(&conn->greeting, &out);
	if (conn->tls) {
		if (hs_tls_send(conn->tls, out.data, out.len, &conn->cipher) == 0)
			send_cipher(conn);
	} else {
		hs_buf_swap(&conn->sending, &out);
		write_all(conn, 0, false);
	}
	hs_buf_deinit(&out);
}

/* Returns how many bytes belong to the greeting. */
static size_t take_greeting(struct hs_conn *conn, const char *data, size_t len)
{
	size_t used = len;

	if (conn->greeting.in.len == 0 && hs_tls_begins(data, len)) {
		fail_port(conn, "the server speaks TLS on this port: it needs",
			  conn->driver->conn_config->login.tls_on);
		return len;
	}
	switch (hs_greeting_receive(&conn->greeting, data, len, &used)) {
	case HS_GREETING_MORE:
		break;
	case HS_GREETING_FAILED:
		fail(conn, conn->greeting.why);
		break;
	case HS_GREETING_READY:
		conn->up = true;
		uv_timer_stop(&conn->timer);
		conn->upstream->server_id = conn->greeting.server_id;
		conn->driver->up(conn->driver->context, conn->upstream);
		break;
	}
	return used;
}

/* ---- bytes in ---- */

static void take_bytes(struct hs_conn *conn, const char *data, size_t len)
{
	if (!conn->up) {
		size_t used = take_greeting(conn, data, len);

		data += used;
		len -= used;
	}
	if (len > 0 && !conn->ended)
		conn->driver->receive(conn->driver->context, conn->upstream, data, len);
}

/* `is_plain`: the server's first bytes are not TLS. */
static void fail_tls(struct hs_conn *conn, bool is_plain)
{
	if (is_plain)
		snprintf(conn->why, sizeof conn->why,
			 "the server does not speak TLS on this port: it needs %s, or another port",
			 conn->driver->conn_config->login.tls_off);
	else
		snprintf(conn->why, sizeof conn->why, "TLS: %s", hs_tls_error(conn->tls));
	fail(conn, conn->why);
}

static void take_cipher(struct hs_conn *conn, const char *data, size_t len)
{
	bool was_ready = hs_tls_ready(conn->tls);
	bool is_plain = !conn->answered && !hs_tls_begins(data, len);
	int rc = hs_tls_receive(conn->tls, data, len, &conn->plain, &conn->cipher);

	conn->answered = true;
	if (!was_ready && hs_tls_ready(conn->tls))
		greet(conn);
	send_cipher(conn);
	/* Bytes in front of an error or of the end count. */
	if (conn->plain.len > 0)
		take_bytes(conn, conn->plain.data, conn->plain.len);
	if (conn->ended)
		return;
	hs_buf_clear(&conn->plain, HS_READ_BYTES);
	if (rc != 0)
		fail_tls(conn, is_plain);
	else if (hs_tls_ended(conn->tls)) /* the socket may stay open after close_notify */
		fail_uv(conn, UV_EOF);
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer)
{
	struct hs_conn *conn = handle->data;
	size_t room = 0;
	char *into = NULL;

	(void)suggested;
	if (conn->up && !conn->tls)
		into = (conn->driver->room ? conn->driver->room : hs_upstream_room)(conn->upstream,
										    &room);
	buffer->base = into ? into : conn->driver->buffer;
	buffer->len = into ? room : HS_READ_BYTES;
}

static void on_read(uv_stream_t *stream, ssize_t len, const uv_buf_t *buffer)
{
	struct hs_conn *conn = stream->data;

	if (len == 0 || conn->ended)
		return;
	if (len < 0) {
		fail_uv(conn, (int)len);
	} else if (conn->tls) {
		take_cipher(conn, buffer->base, (size_t)len);
	} else {
		take_bytes(conn, buffer->base, (size_t)len);
	}
}

/* ---- opening ---- */

static void connect_to(struct hs_conn *conn);

static void on_slow(uv_timer_t *timer)
{
	struct hs_conn *conn = timer->data;

	if (conn->connected && conn->tls && !conn->answered)
		fail_port(conn,
			  "the server did not answer the TLS handshake in time; a port without TLS "
			  "needs",
			  conn->driver->conn_config->login.tls_off);
	else
		fail(conn, conn->connected
				   ? "the server accepted the connection but did not answer in time"
				   : "the server could not be reached in time");
}

static void on_reopened(uv_handle_t *handle)
{
	struct hs_conn *conn = handle->data;

	if (conn->ended) {
		on_closed(handle);
		return;
	}
	uv_tcp_init(conn->driver->loop, &conn->tcp);
	conn->tcp.data = conn;
	connect_to(conn);
}

/* Tries the next address, on a new handle: one that failed to connect cannot be used again. */
static void try_next(struct hs_conn *conn, int code)
{
	uv_timer_stop(&conn->timer);
	if (++conn->address < conn->addresses_count) {
		uv_close((uv_handle_t *)&conn->tcp, on_reopened);
		return;
	}
	fail_later(conn, uv_strerror(code));
}

static void on_slow_connect(uv_timer_t *timer)
{
	struct hs_conn *conn = timer->data;

	if (conn->address + 1 < conn->addresses_count)
		try_next(conn, UV_ETIMEDOUT);
	else
		on_slow(timer);
}

static void on_connected(uv_connect_t *connect, int status)
{
	struct hs_conn *conn = connect->data;

	if (conn->ended || status == UV_ECANCELED)
		return;
	if (status < 0) {
		try_next(conn, status);
		return;
	}
	conn->connected = true;
	if (conn->greeting.options.hello_only)
		uv_timer_stop(&conn->timer);
	else
		uv_timer_start(&conn->timer, on_slow, conn->driver->conn_config->open_ms_max, 0);
	uv_tcp_nodelay(&conn->tcp, 1);
	uv_tcp_keepalive(&conn->tcp, 1, KEEPALIVE_S);
	uv_read_start((uv_stream_t *)&conn->tcp, on_alloc, on_read);
	if (!conn->tls) {
		greet(conn);
	} else if (hs_tls_start(conn->tls, &conn->cipher) == 0) {
		send_cipher(conn);
	} else {
		fail(conn, hs_tls_error(conn->tls));
	}
}

static void connect_to(struct hs_conn *conn)
{
	uint64_t ms_max = conn->driver->conn_config->open_ms_max;
	const struct sockaddr *address = (const struct sockaddr *)&conn->addresses[conn->address];
	int code = uv_tcp_connect(&conn->connect, &conn->tcp, address, on_connected);

	uv_timer_start(&conn->timer, on_slow_connect, ms_max / conn->addresses_count, 0);
	if (code != 0)
		try_next(conn, code);
}

static void start(struct hs_conn *conn, const struct addrinfo *found)
{
	for (const struct addrinfo *at = found; at; at = at->ai_next) {
		conn->addresses = hs_mem_realloc(conn->addresses, (conn->addresses_count + 1) *
									  sizeof *conn->addresses);
		memcpy(&conn->addresses[conn->addresses_count++], at->ai_addr, at->ai_addrlen);
	}
	connect_to(conn);
}

static void on_found(void *context, const struct addrinfo *found, const char *why)
{
	struct hs_conn *conn = context;

	conn->lookup = NULL;
	if (found) {
		start(conn, found);
		return;
	}
	snprintf(conn->why, sizeof conn->why, "its host name was not found: %s", why);
	fail(conn, conn->why);
}

/* An IP address needs no lookup. */
static void look_up(struct hs_conn *conn)
{
	struct addrinfo hints = {.ai_family = AF_UNSPEC,
				 .ai_socktype = SOCK_STREAM,
				 .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV};
	struct addrinfo *found;
	char port[8];

	snprintf(port, sizeof port, "%u", conn->port);
	if (getaddrinfo(conn->host, port, &hints, &found) == 0) {
		start(conn, found);
		freeaddrinfo(found);
		return;
	}
	uv_timer_start(&conn->timer, on_slow, conn->driver->conn_config->open_ms_max, 0);
	conn->lookup = hs_lookup_start(conn->driver->conn_config->names, conn->driver->loop,
				       conn->host, conn->port, on_found, conn);
}

void hs_conn_open(const struct hs_conn_driver *driver, struct hs_upstream *upstream,
		  const struct hs_conn_server *server)
{
	struct hs_conn *conn = hs_mem_zalloc(sizeof *conn);
	const struct hs_greeting_options greeting = {
		.login = &driver->conn_config->login,
		.resp = upstream->resp,
		.expected_id = server->expected_id,
		.hello_only = server->hello_only,
		.any_resp_server = driver->any_resp_server,
	};

	conn->driver = driver;
	conn->upstream = upstream;
	conn->port = server->port;
	snprintf(conn->host, sizeof conn->host, "%s", server->host);
	hs_greeting_init(&conn->greeting, &greeting);
	if (driver->conn_config->tls)
		conn->tls = hs_tls_create(driver->conn_config->tls, conn->host);
	uv_tcp_init(driver->loop, &conn->tcp);
	uv_timer_init(driver->loop, &conn->timer);
	conn->handles = 2;
	conn->tcp.data = conn;
	conn->timer.data = conn;
	conn->connect.data = conn;
	conn->write.data = conn;
	upstream->io = conn;
	look_up(conn);
}
