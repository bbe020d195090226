/* Channels to workers, each with at most one GET in flight. A channel is in one of two lists:
 *
 *     idle (last used first) ──start_request──▶ busy (nearest deadline first) ──reply──▶ make_idle
 *                                                │
 *                                                └─ timeout, malformed, too large, closed ──▶ fail_request: closed
 *
 * A channel whose reply is not complete is never reused: its next bytes would belong to the old request. */
#include "serve/key_reader.h"

#include "base/list.h"
#include "base/mem.h"
#include "http/http.h"
#include "serve/clock.h"
#include "wire/compose.h"
#include "wire/parse_reply.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	IDLE_MAX = 8,	      /* idle channels that stay open */
	READS_BURST = 16,     /* reads of one channel per event, so that others get their turn */
	HEADER_BYTES_MAX = 64 /* of a reply, besides the value */
};

struct hs_key_reader {
	struct hs_host *host;
	uv_loop_t *loop;
	uv_timer_t timer; /* the nearest deadline */
	uint64_t timeout_us;
	hs_key_reader_done *done;
	void *owner;
	struct hs_link idle; /* channels, last used first */
	uint32_t idle_count;
	struct hs_link busy;  /* channels, nearest deadline first */
	uint64_t opened;      /* channels opened since the start; picks the next worker */
	uint64_t large_bytes; /* announced by replies of large values in flight */
	struct hs_key_reader_stats stats;
};

struct channel {
	struct hs_link link;
	struct hs_key_reader *reader;
	uv_poll_t poll;
	int fd;
	bool busy;
	bool answered_before; /* it was idle since: the worker may have closed it */
	struct hs_buf key;
	void *context;
	uint64_t deadline_us;
	struct hs_buf in;
	struct hs_parse_reply_scan scan;
	size_t large_bytes; /* its part of reader->large_bytes */
};

/* ---- channels ---- */

static void on_closed(uv_handle_t *handle)
{
	struct channel *channel = handle->data;

	hs_buf_deinit(&channel->key);
	hs_buf_deinit(&channel->in);
	hs_mem_free(&channel);
}

static void close_channel(struct channel *channel)
{
	hs_check(!channel->busy);
	hs_list_remove(&channel->link);
	uv_close((uv_handle_t *)&channel->poll, on_closed);
	close(channel->fd);
}

static void on_readable(uv_poll_t *poll, int status, int events);

/* Opens a socket pair: keeps one end, and hands the other to a worker as a new client. NULL: no file descriptor
 * is free. */
static struct channel *open_channel(struct hs_key_reader *reader)
{
	struct hs_host *host = reader->host;
	struct hs_worker *worker = &host->workers[reader->opened % host->workers_count];
	struct channel *channel;
	struct hs_worker_message *message;
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) != 0) {
		hs_log(host->log, HS_LOG_WARN, "http: /kv/ cannot open a channel to a worker: %s",
		       strerror(errno));
		return NULL;
	}
	reader->opened++;
	channel = hs_mem_zalloc(sizeof *channel);
	channel->reader = reader;
	channel->fd = pair[0];
	hs_list_init(&channel->link);
	hs_check(uv_poll_init(reader->loop, &channel->poll, channel->fd) == 0);
	channel->poll.data = channel;
	uv_poll_start(&channel->poll, UV_READABLE, on_readable);
	atomic_fetch_add(&worker->clients, 1);
	message = hs_worker_message_create(HS_WORKER_CLIENT);
	message->fd = pair[1];
	message->internal = true;
	message->client_id = atomic_fetch_add(&host->live.client_ids, 1) + 1;
	hs_worker_post(worker, message);
	return channel;
}

static void on_timer(uv_timer_t *timer);

static void set_timer(struct hs_key_reader *reader)
{
	const struct channel *first = hs_list_first(&reader->busy, struct channel, link);
	uint64_t now_us = hs_clock_mono_us();

	if (!first) {
		uv_timer_stop(&reader->timer);
		return;
	}
	uv_timer_start(&reader->timer, on_timer,
		       first->deadline_us > now_us ? (first->deadline_us - now_us) / 1000 + 1 : 0,
		       0);
}

/* ---- the end of a request ---- */

static void finish(struct hs_key_reader *reader, void *context, struct hs_key_read_result *result)
{
	reader->stats.refused +=
		result->outcome == HS_KEY_READ_BUSY || result->outcome == HS_KEY_READ_NO_ROOM;
	reader->stats.timeouts += result->outcome == HS_KEY_READ_TIMEOUT;
	reader->done(reader->owner, context, result);
	hs_buf_deinit(&result->key);
	hs_buf_deinit(&result->value);
}

/* Takes the request off the channel: its key goes back into the result. */
static void detach_request(struct channel *channel, struct hs_key_read_result *result)
{
	struct hs_key_reader *reader = channel->reader;

	hs_buf_swap(&channel->key, &result->key);
	hs_list_remove(&channel->link);
	channel->busy = false;
	reader->stats.waiting--;
	reader->large_bytes -= channel->large_bytes;
	channel->large_bytes = 0;
}

/* Ends a request without a complete reply, and closes its channel. */
static void fail_request(struct channel *channel, enum hs_key_read_outcome outcome)
{
	struct hs_key_reader *reader = channel->reader;
	struct hs_key_read_result result = {.outcome = outcome};
	void *context = channel->context;

	detach_request(channel, &result);
	close_channel(channel);
	finish(reader, context, &result);
}

static void make_idle(struct channel *channel)
{
	struct hs_key_reader *reader = channel->reader;

	channel->answered_before = true;
	hs_buf_clear(&channel->in, HS_IDLE_BUFFER_BYTES);
	if (reader->idle_count == IDLE_MAX) {
		close_channel(channel);
		return;
	}
	reader->idle_count++;
	hs_list_append(reader->idle.next, &channel->link); /* first: used next */
}

static void on_timer(uv_timer_t *timer)
{
	struct hs_key_reader *reader = timer->data;
	uint64_t now_us = hs_clock_mono_us();
	struct channel *first;

	while ((first = hs_list_first(&reader->busy, struct channel, link)) &&
	       first->deadline_us <= now_us)
		fail_request(first, HS_KEY_READ_TIMEOUT);
	set_timer(reader);
}

/* ---- replies ---- */

static struct hs_bytes first_word(struct hs_bytes text)
{
	size_t len = 0;

	while (len < text.len && text.data[len] >= 'A' && text.data[len] <= 'Z')
		len++;
	return (struct hs_bytes){text.data, len};
}

static void read_error(struct hs_bytes text, struct hs_key_read_result *result)
{
	result->error_word = first_word(text);
	result->outcome = hs_bytes_equal(result->error_word, HS_LIT("WRONGTYPE"))
				  ? HS_KEY_READ_WRONG_TYPE
				  : HS_KEY_READ_ERROR;
}

/* `in` holds one complete reply; the result takes its bytes over. */
static void read_reply(struct hs_buf *in, struct hs_key_read_result *result)
{
	struct hs_parsed_reply answer;

	hs_check(hs_parse_reply_head(&answer, in->data, in->len) > 0);
	switch (answer.type) {
	case HS_PARSED_NULL:
		result->outcome = HS_KEY_READ_MISSING;
		break;
	case HS_PARSED_BULK:
		result->outcome = HS_KEY_READ_TOO_LARGE;
		if (answer.text.len > HS_HTTP_BODY_BYTES_MAX)
			break;
		result->outcome = HS_KEY_READ_VALUE;
		if (answer.text.len <= HS_IDLE_BUFFER_BYTES) {
			/* A small value is copied: the channel's read buffer is much larger, and stays with the
			 * channel. */
			hs_buf_append_bytes(&result->value, answer.text);
			break;
		}
		hs_buf_consume(in, (size_t)(answer.text.data - in->data));
		in->len = answer.text.len;
		hs_buf_swap(in, &result->value);
		break;
	case HS_PARSED_ERROR:
		read_error(answer.text, result);
		break;
	default:
		result->outcome = HS_KEY_READ_ERROR; /* not a reply of GET */
	}
}

/* True if the rest of the reply may be buffered; else *end is the outcome. */
static bool has_room(struct channel *channel, enum hs_key_read_outcome *outcome)
{
	struct hs_key_reader *reader = channel->reader;
	size_t need = channel->scan.need;

	if (need <= HS_READ_BYTES || channel->large_bytes > 0)
		return true;
	*outcome = HS_KEY_READ_TOO_LARGE;
	if (need > HS_HTTP_BODY_BYTES_MAX + HEADER_BYTES_MAX)
		return false;
	*outcome = HS_KEY_READ_NO_ROOM;
	if (hs_http_stats(reader->host->http)->unread_bytes + reader->large_bytes + need >
	    HS_HTTP_UNREAD_BYTES_MAX)
		return false;
	channel->large_bytes = need;
	reader->large_bytes += need;
	return true;
}

/* Reads one reply from the channel. False: stop reading from it for now. */
static bool take_reply(struct channel *channel)
{
	struct hs_key_reader *reader = channel->reader;
	struct hs_key_read_result result = {.outcome = HS_KEY_READ_CONNECTION_LOST};
	int64_t len = hs_parse_reply_scan(&channel->scan, channel->in.data, channel->in.len);
	struct hs_buf reply = {0};
	void *context = channel->context;

	if (len == 0 && has_room(channel, &result.outcome))
		return true;
	/* Malformed, or bytes after the one reply: neither comes from a worker. */
	if (len <= 0 || (size_t)len != channel->in.len) {
		fail_request(channel, result.outcome);
		return false;
	}
	hs_buf_swap(&channel->in, &reply);
	detach_request(channel, &result);
	read_reply(&reply, &result);
	make_idle(channel);
	finish(reader, context, &result);
	hs_buf_deinit(&reply);
	return false;
}

static void start_request(struct hs_key_reader *reader, struct hs_buf *key, void *context,
			  uint64_t deadline_us, bool fresh);

/* The worker closed the channel. If the channel had been idle before this request, the worker may have closed it
 * without reading the request: GET is sent again on a new channel. */
static void on_worker_closed(struct channel *channel)
{
	struct hs_key_reader *reader = channel->reader;
	struct hs_key_read_result result = {.outcome = HS_KEY_READ_CONNECTION_LOST};
	void *context = channel->context;

	if (!channel->busy) {
		reader->idle_count--;
		close_channel(channel);
	} else if (channel->answered_before && channel->in.len == 0 &&
		   !atomic_load(&reader->host->stopping)) {
		uint64_t deadline_us = channel->deadline_us;

		detach_request(channel, &result);
		close_channel(channel);
		start_request(reader, &result.key, context, deadline_us, true);
	} else {
		fail_request(channel, HS_KEY_READ_CONNECTION_LOST);
	}
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
	struct channel *channel = poll->data;
	struct hs_key_reader *reader = channel->reader;

	(void)status;
	(void)events;
	for (int i = 0; i < READS_BURST; i++) {
		size_t room = HS_READ_BYTES;
		ssize_t len;

		if (channel->large_bytes > channel->in.len + room)
			room = channel->large_bytes - channel->in.len;
		len = recv(channel->fd, hs_buf_reserve(&channel->in, room), room, 0);
		if (len < 0 && (errno == EAGAIN || errno == EINTR))
			break;
		/* Bytes without a request: the channel cannot be used. */
		if (len <= 0 || !channel->busy) {
			on_worker_closed(channel);
			break;
		}
		channel->in.len += (size_t)len;
		if (!take_reply(channel))
			break;
	}
	set_timer(reader);
}

/* ---- requests ---- */

static bool send_get(const struct channel *channel)
{
	struct hs_buf request = {0};
	bool whole;

	hs_compose(&request, 2,
		   (const struct hs_bytes[]){HS_LIT("GET"), hs_buf_bytes(&channel->key)});
	/* It fits: the key came in an HTTP request line, and the socket is empty. */
	whole = send(channel->fd, request.data, request.len, MSG_NOSIGNAL) == (ssize_t)request.len;
	hs_buf_deinit(&request);
	return whole;
}

static struct channel *find_channel(struct hs_key_reader *reader, bool fresh)
{
	struct channel *channel = hs_list_first(&reader->idle, struct channel, link);

	if (fresh || !channel)
		return open_channel(reader);
	hs_list_remove(&channel->link);
	reader->idle_count--;
	return channel;
}

/* Keeps `busy` ordered by deadline: a request sent again keeps its first deadline. */
static void insert(struct hs_key_reader *reader, struct channel *channel)
{
	struct hs_link *behind = &reader->busy;

	while (behind->prev != &reader->busy &&
	       hs_list_entry(behind->prev, struct channel, link)->deadline_us >
		       channel->deadline_us)
		behind = behind->prev;
	hs_list_append(behind, &channel->link);
}

static void start_request(struct hs_key_reader *reader, struct hs_buf *key, void *context,
			  uint64_t deadline_us, bool fresh)
{
	struct hs_key_read_result result = {.outcome = HS_KEY_READ_CONNECTION_LOST};
	struct channel *channel = find_channel(reader, fresh);

	if (!channel) {
		hs_buf_swap(&result.key, key);
		finish(reader, context, &result);
		return;
	}
	hs_buf_swap(&channel->key, key);
	hs_buf_deinit(key);
	channel->context = context;
	channel->deadline_us = deadline_us;
	channel->scan = (struct hs_parse_reply_scan){0};
	channel->busy = true;
	reader->stats.waiting++;
	insert(reader, channel);
	if (!send_get(channel))
		on_worker_closed(channel);
	set_timer(reader);
}

void hs_key_reader_get(struct hs_key_reader *reader, struct hs_buf *key, void *context)
{
	struct hs_key_read_result result = {.outcome = HS_KEY_READ_CONNECTION_LOST};

	if (!atomic_load(&reader->host->stopping)) {
		if (reader->stats.waiting < HS_HTTP_KEY_READS_MAX) {
			start_request(reader, key, context, hs_clock_mono_us() + reader->timeout_us,
				      false);
			return;
		}
		result.outcome = HS_KEY_READ_BUSY;
	}
	hs_buf_swap(&result.key, key);
	finish(reader, context, &result);
}

struct hs_key_reader_stats *hs_key_reader_stats(struct hs_key_reader *reader)
{
	return &reader->stats;
}

struct hs_key_reader *hs_key_reader_create(uv_loop_t *loop, struct hs_host *host,
					   uint64_t timeout_us, hs_key_reader_done *done,
					   void *owner)
{
	struct hs_key_reader *reader = hs_mem_zalloc(sizeof *reader);

	reader->host = host;
	reader->loop = loop;
	reader->timeout_us = timeout_us;
	reader->done = done;
	reader->owner = owner;
	hs_list_init(&reader->idle);
	hs_list_init(&reader->busy);
	uv_timer_init(loop, &reader->timer);
	reader->timer.data = reader;
	return reader;
}

static void on_timer_closed(uv_handle_t *handle)
{
	struct hs_key_reader *reader = handle->data;

	hs_mem_free(&reader);
}

void hs_key_reader_destroy(struct hs_key_reader **pointer)
{
	struct hs_key_reader *reader = *pointer;
	struct channel *channel;

	if (!reader)
		return;
	*pointer = NULL;
	while ((channel = hs_list_first(&reader->busy, struct channel, link)))
		fail_request(channel, HS_KEY_READ_CONNECTION_LOST);
	while ((channel = hs_list_first(&reader->idle, struct channel, link)))
		close_channel(channel);
	uv_close((uv_handle_t *)&reader->timer, on_timer_closed);
}
