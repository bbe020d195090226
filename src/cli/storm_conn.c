/* One connection of the storm. It knows how to get and keep a connection, and the order of what is
 * under way on it; what to send and what a reply means is its worker's business.
 *
 *     CONNECTING ──connected, AUTH through──> READY
 *         │ failed                              │ lost
 *         v                                     v
 *     WAITING (10 ms, doubling to 1 s) ─────> CONNECTING …   too many failures: GIVEN_UP
 *
 * Requests composed during one event leave in one write. libuv is asked to write at once; only what
 * the socket does not take is handed over to wait. */
#include "cli/storm_history.h"

#include "base/err.h"
#include "base/limits.h"
#include "base/mem.h"

enum { PAUSE_FIRST_MS = 10, PAUSE_MAX_MS = 1000, SAME_BYTES_MIN = 1024 };

static void on_again(uv_timer_t *timer);

void hs_storm_conn_init(struct hs_storm_conn *conn, struct hs_storm_worker *worker)
{
	uint64_t depth = worker->options->pipeline;
	uint32_t slots = 1;

	if (depth < HS_STORM_SIDE_PIPELINE)
		depth = HS_STORM_SIDE_PIPELINE;
	while (slots < depth + HS_STORM_ACT_REQUESTS_MAX) /* more: AUTH, or the end of an act */
		slots *= 2;
	*conn = (struct hs_storm_conn){.worker = worker, .flight_mask = slots - 1};
	conn->flights = hs_mem_alloc(slots * sizeof *conn->flights);
	uv_timer_init(&worker->loop, &conn->again);
	conn->again.data = conn;
}

void hs_storm_conn_deinit(struct hs_storm_conn *conn)
{
	hs_check(!conn->tcp_open);
	hs_buf_deinit(&conn->out);
	hs_buf_deinit(&conn->sending);
	hs_buf_deinit(&conn->rest);
	hs_mem_free(&conn->flights);
}

struct hs_storm_flight *hs_storm_conn_add(struct hs_storm_conn *conn)
{
	hs_check(conn->flight_count <= conn->flight_mask);
	return &conn->flights[(conn->flight_head + conn->flight_count++) & conn->flight_mask];
}

/* ---- the end of a connection ---- */

/* After so many failures in a row there is no sense in waiting longer each time. */
static uint64_t pause_ms(uint64_t failures)
{
	uint64_t ms = PAUSE_FIRST_MS;

	while (failures-- > 1 && ms < PAUSE_MAX_MS)
		ms *= 2;
	return ms < PAUSE_MAX_MS ? ms : PAUSE_MAX_MS;
}

/* The handle is gone: now the struct can take another one. */
static void on_closed(uv_handle_t *handle)
{
	struct hs_storm_conn *conn = handle->data;

	conn->tcp_open = false;
	if (conn->state != HS_STORM_CONN_WAITING)
		return;
	if (conn->failures > conn->worker->options->retries) {
		conn->state = HS_STORM_CONN_GIVEN_UP;
		hs_storm_worker_counts(conn->worker)->given_up++;
		hs_storm_worker_on_progress(conn->worker, conn);
		return;
	}
	uv_timer_start(&conn->again, on_again, pause_ms(conn->failures), 0);
}

static void forget_flights(struct hs_storm_conn *conn)
{
	while (conn->flight_count) {
		struct hs_storm_flight flight =
			conn->flights[conn->flight_head & conn->flight_mask];

		conn->flight_head++;
		conn->flight_count--;
		if (flight.kind != HS_STORM_AUTH)
			hs_storm_worker_on_lost(conn->worker, &flight);
	}
}

void hs_storm_conn_drop(struct hs_storm_conn *conn, const char *why)
{
	struct hs_storm_counts *counts = hs_storm_worker_counts(conn->worker);

	if (conn->state == HS_STORM_CONN_WAITING || conn->state == HS_STORM_CONN_GIVEN_UP)
		return;
	snprintf(counts->trouble, sizeof counts->trouble, "%s", why);
	if (conn->state == HS_STORM_CONN_READY)
		counts->disconnects++;
	else
		counts->connect_failures++;
	conn->failures++;
	conn->state = HS_STORM_CONN_WAITING;
	hs_buf_clear(&conn->out, HS_KEEP_BYTES);
	hs_buf_clear(&conn->rest, HS_KEEP_BYTES);
	conn->watch.on = false;
	forget_flights(conn);
	uv_close((uv_handle_t *)&conn->tcp, on_closed);
}

void hs_storm_conn_stop(struct hs_storm_conn *conn)
{
	conn->state = HS_STORM_CONN_GIVEN_UP;
	if (conn->tcp_open && !uv_is_closing((uv_handle_t *)&conn->tcp))
		uv_close((uv_handle_t *)&conn->tcp, on_closed);
	uv_close((uv_handle_t *)&conn->again, NULL);
}

/* ---- sending ---- */

static void on_written(uv_write_t *write, int status)
{
	struct hs_storm_conn *conn = write->data;

	conn->writing = false;
	hs_buf_clear(&conn->sending, HS_MIB);
	if (status == UV_ECANCELED)
		return;
	if (status < 0)
		hs_storm_conn_drop(conn, uv_strerror(status));
	else
		hs_storm_conn_flush(conn);
}

void hs_storm_conn_flush(struct hs_storm_conn *conn)
{
	if (conn->writing || conn->out.len == 0)
		return;

	uv_buf_t buf = uv_buf_init(conn->out.data, (unsigned)conn->out.len);
	int done = uv_try_write((uv_stream_t *)&conn->tcp, &buf, 1);

	if (done == UV_EAGAIN)
		done = 0;
	if (done < 0) {
		hs_storm_conn_drop(conn, uv_strerror(done));
		return;
	}
	if ((size_t)done == conn->out.len) {
		hs_buf_clear(&conn->out, HS_MIB);
		return;
	}
	hs_buf_swap(&conn->out, &conn->sending);
	conn->writing = true;
	conn->write.data = conn;
	buf = uv_buf_init(conn->sending.data + done, (unsigned)(conn->sending.len - (size_t)done));
	done = uv_write(&conn->write, (uv_stream_t *)&conn->tcp, &buf, 1, on_written);
	hs_check(done == 0);
}

/* ---- receiving ---- */

/* All connections of a worker read into one block, which stays in the processor's cache; only the
 * beginning of an unfinished reply is kept with the connection. */
static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
	struct hs_storm_conn *conn = handle->data;

	(void)suggested;
	if (conn->rest.len)
		*buf = uv_buf_init(hs_buf_reserve(&conn->rest, HS_READ_BYTES), HS_READ_BYTES);
	else
		*buf = uv_buf_init(conn->worker->input, HS_STORM_INPUT_BYTES);
}

static void on_auth_answer(struct hs_storm_conn *conn, const struct hs_answer *answer)
{
	char why[160];

	if (answer->type != HS_ANSWER_ERROR) {
		conn->state = HS_STORM_CONN_READY;
		return;
	}
	snprintf(why, sizeof why, "AUTH: %.*s",
		 (int)(answer->text.len > 140 ? 140 : answer->text.len), answer->text.data);
	conn->failures = conn->worker->options->retries; /* asking again changes nothing */
	hs_storm_conn_drop(conn, why);
}

/* The length of the reply at `data`, its head in *answer and the head's length in *head. Many long
 * replies of a run are equal; one that equals the last is not gone through again. */
static int64_t measure(struct hs_storm_worker *worker, const char *data, size_t len,
		       struct hs_answer *answer, size_t *head)
{
	struct hs_buf *same = &worker->same;
	int64_t used = hs_answer_head(answer, data, len);

	*head = used > 0 ? (size_t)used : 0;
	if (used <= 0 || !answer->count)
		return used;
	if (same->len && len >= same->len && memcmp(data, same->data, same->len) == 0)
		return (int64_t)same->len;
	used = hs_answer_length(data, len);
	if (used >= SAME_BYTES_MIN && used <= (int64_t)HS_MIB) {
		hs_buf_clear(same, HS_MIB);
		hs_buf_append(same, data, (size_t)used);
	}
	return used;
}

/* Takes the replies in `data`. Returns the bytes used, or HS_EPROTO. */
static int64_t take_answers(struct hs_storm_conn *conn, const char *data, size_t len)
{
	uint64_t now_ns = uv_hrtime();
	size_t at = 0;

	while (at < len) {
		struct hs_answer answer;
		size_t head;
		int64_t used = measure(conn->worker, data + at, len - at, &answer, &head);
		if (used < 0 || (used > 0 && !conn->flight_count))
			return HS_EPROTO;
		if (used == 0)
			break;

		struct hs_storm_flight *flight =
			&conn->flights[conn->flight_head++ & conn->flight_mask];

		struct hs_bytes body = {data + at + head, (size_t)used - head};

		conn->flight_count--;
		conn->failures = 0;
		at += (size_t)used;
		if (flight->kind == HS_STORM_AUTH) {
			on_auth_answer(conn, &answer);
			if (conn->state != HS_STORM_CONN_READY)
				break;
		} else {
			hs_storm_worker_on_answer(conn->worker, conn, flight, &answer, body,
						  now_ns);
		}
	}
	return (int64_t)at;
}

static void on_read(uv_stream_t *stream, ssize_t count, const uv_buf_t *buf)
{
	struct hs_storm_conn *conn = stream->data;
	bool in_rest = conn->rest.len > 0;

	if (count == 0)
		return;
	if (count < 0) {
		hs_storm_conn_drop(conn, uv_strerror((int)count));
		hs_storm_worker_on_progress(conn->worker, conn);
		return;
	}
	if (in_rest)
		conn->rest.len += (size_t)count;

	const char *data = in_rest ? conn->rest.data : buf->base;
	size_t len = in_rest ? conn->rest.len : (size_t)count;
	int64_t used = take_answers(conn, data, len);

	if (conn->state == HS_STORM_CONN_WAITING)
		return;
	if (used < 0) {
		hs_storm_conn_drop(conn, "the target sent what is no reply, or one too many");
	} else if (in_rest) {
		hs_buf_consume(&conn->rest, (size_t)used);
	} else if ((size_t)used < len) {
		hs_buf_append(&conn->rest, data + used, len - (size_t)used);
	}
	hs_storm_worker_on_progress(conn->worker, conn);
}

/* ---- connecting ---- */

static void on_connected(uv_connect_t *connect, int status)
{
	struct hs_storm_conn *conn = connect->data;

	if (status == UV_ECANCELED)
		return;
	if (status < 0) {
		/* At the start nothing listens there: trying again for seconds would hide that. */
		if (status == UV_ECONNREFUSED && conn->worker->phase == HS_STORM_PHASE_CONNECT &&
		    !conn->worker->options->retries_given)
			conn->failures = conn->worker->options->retries;
		hs_storm_conn_drop(conn, uv_strerror(status));
		return;
	}
	if (conn->worker->history)
		conn->client = hs_storm_history_client(conn->worker->history);
	uv_tcp_nodelay(&conn->tcp, 1);
	uv_read_start((uv_stream_t *)&conn->tcp, on_alloc, on_read);
	if (!*conn->worker->options->password.text) {
		conn->state = HS_STORM_CONN_READY;
		hs_storm_worker_on_progress(conn->worker, conn);
		return;
	}

	struct hs_storm_flight *flight = hs_storm_conn_add(conn);

	*flight = (struct hs_storm_flight){.kind = HS_STORM_AUTH};
	hs_storm_wire_append(&conn->worker->wire, flight, &conn->out, NULL);
	hs_storm_conn_flush(conn);
}

void hs_storm_conn_start(struct hs_storm_conn *conn)
{
	const struct sockaddr *address = (const struct sockaddr *)conn->worker->address;
	int rc = uv_tcp_init(&conn->worker->loop, &conn->tcp);

	hs_check(rc == 0);
	conn->tcp_open = true;
	conn->tcp.data = conn;
	conn->connect.data = conn;
	conn->state = HS_STORM_CONN_CONNECTING;
	rc = uv_tcp_connect(&conn->connect, &conn->tcp, address, on_connected);
	if (rc < 0)
		hs_storm_conn_drop(conn, uv_strerror(rc));
}

static void on_again(uv_timer_t *timer)
{
	hs_storm_conn_start(timer->data);
}
