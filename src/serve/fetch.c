#include "serve/fetch.h"

#include "base/list.h"
#include "base/mem.h"
#include "http/http.h"
#include "serve/clock.h"
#include "wire/answer.h"
#include "wire/compose.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	IDLE_MAX = 8,	      /* channels that stay open */
	READS_BURST = 16,     /* of one channel, before others have their turn */
	HEADER_BYTES_MAX = 64 /* of a value's reply, around the value */
};

struct hs_fetch {
	struct hs_host *host;
	uv_loop_t *loop;
	uv_timer_t timer; /* the nearest deadline */
	uint64_t patience_us;
	hs_fetch_done *done;
	void *owner;
	struct hs_link idle; /* of channels, the last used first */
	uint32_t idle_count;
	struct hs_link busy;  /* the nearest deadline first */
	uint64_t opened;      /* channels ever */
	uint64_t large_bytes; /* of large values under way */
	struct hs_fetch_stats stats;
};

struct channel {
	struct hs_link link;
	struct hs_fetch *fetch;
	uv_poll_t poll;
	int fd;
	bool busy;
	bool used; /* has answered before: the worker may have ended it meanwhile */
	struct hs_buf key;
	void *context;
	uint64_t deadline_us;
	struct hs_buf in;
	struct hs_answer_scan scan;
	size_t large_bytes; /* its part of the fetch's */
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

/* Hands the other end to a worker. NULL: there are no descriptors. */
static struct channel *open_channel(struct hs_fetch *fetch)
{
	struct hs_host *host = fetch->host;
	struct hs_worker *worker = &host->workers[fetch->opened % host->workers_count];
	struct channel *channel;
	struct hs_worker_message *mail;
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) != 0) {
		hs_log(host->log, HS_LOG_WARN, "http: cannot reach a worker: %s", strerror(errno));
		return NULL;
	}
	fetch->opened++;
	channel = hs_mem_zalloc(sizeof *channel);
	channel->fetch = fetch;
	channel->fd = pair[0];
	hs_list_init(&channel->link);
	hs_check(uv_poll_init(fetch->loop, &channel->poll, channel->fd) == 0);
	channel->poll.data = channel;
	uv_poll_start(&channel->poll, UV_READABLE, on_readable);
	atomic_fetch_add(&worker->clients, 1);
	mail = hs_worker_message_create(HS_WORKER_CLIENT);
	mail->fd = pair[1];
	mail->own = true;
	mail->client_id = atomic_fetch_add(&host->live.client_ids, 1) + 1;
	hs_worker_post(worker, mail);
	return channel;
}

static void on_timer(uv_timer_t *timer);

static void set_timer(struct hs_fetch *fetch)
{
	const struct channel *first = hs_list_first(&fetch->busy, struct channel, link);
	uint64_t now_us = hs_clock_mono_us();

	if (!first) {
		uv_timer_stop(&fetch->timer);
		return;
	}
	uv_timer_start(&fetch->timer, on_timer,
		       first->deadline_us > now_us ? (first->deadline_us - now_us) / 1000 + 1 : 0,
		       0);
}

/* ---- the end of a request ---- */

static void tell(struct hs_fetch *fetch, void *context, struct hs_fetch_result *result)
{
	fetch->stats.refused += result->end == HS_FETCH_BUSY || result->end == HS_FETCH_NO_ROOM;
	fetch->stats.timeouts += result->end == HS_FETCH_LATE;
	fetch->done(fetch->owner, context, result);
	hs_buf_deinit(&result->key);
	hs_buf_deinit(&result->value);
}

/* The channel has nobody any more. */
static void leave(struct channel *channel, struct hs_fetch_result *result)
{
	struct hs_fetch *fetch = channel->fetch;

	hs_buf_swap(&channel->key, &result->key);
	hs_list_remove(&channel->link);
	channel->busy = false;
	fetch->stats.waiting--;
	fetch->large_bytes -= channel->large_bytes;
	channel->large_bytes = 0;
}

/* Ends a request whose reply is not in, or not wanted: nothing else can be asked on its channel. */
static void give_up(struct channel *channel, enum hs_fetch_end end)
{
	struct hs_fetch *fetch = channel->fetch;
	struct hs_fetch_result result = {.end = end};
	void *context = channel->context;

	leave(channel, &result);
	close_channel(channel);
	tell(fetch, context, &result);
}

static void rest(struct channel *channel)
{
	struct hs_fetch *fetch = channel->fetch;

	channel->used = true;
	hs_buf_clear(&channel->in, HS_KEEP_BYTES);
	if (fetch->idle_count == IDLE_MAX) {
		close_channel(channel);
		return;
	}
	fetch->idle_count++;
	hs_list_append(fetch->idle.next, &channel->link); /* in front of the others */
}

static void on_timer(uv_timer_t *timer)
{
	struct hs_fetch *fetch = timer->data;
	uint64_t now_us = hs_clock_mono_us();
	struct channel *first;

	while ((first = hs_list_first(&fetch->busy, struct channel, link)) &&
	       first->deadline_us <= now_us)
		give_up(first, HS_FETCH_LATE);
	set_timer(fetch);
}

/* ---- replies ---- */

static struct hs_bytes first_word(struct hs_bytes text)
{
	size_t len = 0;

	while (len < text.len && text.data[len] >= 'A' && text.data[len] <= 'Z')
		len++;
	return (struct hs_bytes){text.data, len};
}

static void read_error(struct hs_bytes text, struct hs_fetch_result *result)
{
	result->word = first_word(text);
	result->end = hs_bytes_equal(result->word, HS_LIT("WRONGTYPE")) ? HS_FETCH_WRONG_TYPE
									: HS_FETCH_ERROR;
}

/* `in` begins with a whole reply: its bytes become the result's. */
static void read_reply(struct hs_buf *in, struct hs_fetch_result *result)
{
	struct hs_answer answer;

	hs_check(hs_answer_head(&answer, in->data, in->len) > 0);
	switch (answer.type) {
	case HS_ANSWER_NULL:
		result->end = HS_FETCH_MISSING;
		break;
	case HS_ANSWER_BULK:
		result->end = HS_FETCH_LARGE;
		if (answer.text.len > HS_HTTP_BODY_BYTES_MAX)
			break;
		result->end = HS_FETCH_VALUE;
		if (answer.text.len <= HS_KEEP_BYTES) {
			/* What it was read into is much larger. */
			hs_buf_append_bytes(&result->value, answer.text);
			break;
		}
		hs_buf_consume(in, (size_t)(answer.text.data - in->data));
		in->len = answer.text.len;
		hs_buf_swap(in, &result->value);
		break;
	case HS_ANSWER_ERROR:
		read_error(answer.text, result);
		break;
	default:
		result->end = HS_FETCH_ERROR; /* no GET is answered so */
	}
}

/* Whether what comes may be kept until it is whole; else *end says why not. */
static bool has_room(struct channel *channel, enum hs_fetch_end *end)
{
	struct hs_fetch *fetch = channel->fetch;
	size_t need = channel->scan.need;

	if (need <= HS_READ_BYTES || channel->large_bytes > 0)
		return true;
	*end = HS_FETCH_LARGE;
	if (need > HS_HTTP_BODY_BYTES_MAX + HEADER_BYTES_MAX)
		return false;
	*end = HS_FETCH_NO_ROOM;
	if (hs_http_stats(fetch->host->http)->unread_bytes + fetch->large_bytes + need >
	    HS_HTTP_UNREAD_BYTES_MAX)
		return false;
	channel->large_bytes = need;
	fetch->large_bytes += need;
	return true;
}

/* False: the channel is not to be read from any more now. */
static bool take(struct channel *channel)
{
	struct hs_fetch *fetch = channel->fetch;
	struct hs_fetch_result result = {.end = HS_FETCH_ENDED};
	int64_t len = hs_answer_scan(&channel->scan, channel->in.data, channel->in.len);
	struct hs_buf reply = {0};
	void *context = channel->context;

	if (len == 0 && has_room(channel, &result.end))
		return true;
	/* Not a reply, or more than one: neither can be. */
	if (len <= 0 || (size_t)len != channel->in.len) {
		give_up(channel, result.end);
		return false;
	}
	hs_buf_swap(&channel->in, &reply);
	leave(channel, &result);
	read_reply(&reply, &result);
	rest(channel);
	tell(fetch, context, &result);
	hs_buf_deinit(&reply);
	return false;
}

static void begin(struct hs_fetch *fetch, struct hs_buf *key, void *context, uint64_t deadline_us,
		  bool fresh);

/* The worker has closed it. When it had been idle just before, the worker may never have seen the request. */
static void lost(struct channel *channel)
{
	struct hs_fetch *fetch = channel->fetch;
	struct hs_fetch_result result = {.end = HS_FETCH_ENDED};
	void *context = channel->context;

	if (!channel->busy) {
		fetch->idle_count--;
		close_channel(channel);
	} else if (channel->used && channel->in.len == 0 && !atomic_load(&fetch->host->stopping)) {
		uint64_t deadline_us = channel->deadline_us;

		leave(channel, &result);
		close_channel(channel);
		begin(fetch, &result.key, context, deadline_us, true);
	} else {
		give_up(channel, HS_FETCH_ENDED);
	}
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
	struct channel *channel = poll->data;
	struct hs_fetch *fetch = channel->fetch;

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
		/* Who is not asked has nothing to say. */
		if (len <= 0 || !channel->busy) {
			lost(channel);
			break;
		}
		channel->in.len += (size_t)len;
		if (!take(channel))
			break;
	}
	set_timer(fetch);
}

/* ---- requests ---- */

static bool send_get(const struct channel *channel)
{
	struct hs_buf request = {0};
	bool whole;

	hs_compose(&request, 2,
		   (const struct hs_bytes[]){HS_LIT("GET"), hs_buf_bytes(&channel->key)});
	/* The key was in an HTTP request, and nothing else is in the socket: it fits. */
	whole = send(channel->fd, request.data, request.len, MSG_NOSIGNAL) == (ssize_t)request.len;
	hs_buf_deinit(&request);
	return whole;
}

static struct channel *find_channel(struct hs_fetch *fetch, bool fresh)
{
	struct channel *channel = hs_list_first(&fetch->idle, struct channel, link);

	if (fresh || !channel)
		return open_channel(fetch);
	hs_list_remove(&channel->link);
	fetch->idle_count--;
	return channel;
}

/* By deadline: one that is asked again keeps its own. */
static void insert(struct hs_fetch *fetch, struct channel *channel)
{
	struct hs_link *behind = &fetch->busy;

	while (behind->prev != &fetch->busy &&
	       hs_list_entry(behind->prev, struct channel, link)->deadline_us >
		       channel->deadline_us)
		behind = behind->prev;
	hs_list_append(behind, &channel->link);
}

static void begin(struct hs_fetch *fetch, struct hs_buf *key, void *context, uint64_t deadline_us,
		  bool fresh)
{
	struct hs_fetch_result result = {.end = HS_FETCH_ENDED};
	struct channel *channel = find_channel(fetch, fresh);

	if (!channel) {
		hs_buf_swap(&result.key, key);
		tell(fetch, context, &result);
		return;
	}
	hs_buf_swap(&channel->key, key);
	hs_buf_deinit(key);
	channel->context = context;
	channel->deadline_us = deadline_us;
	channel->scan = (struct hs_answer_scan){0};
	channel->busy = true;
	fetch->stats.waiting++;
	insert(fetch, channel);
	if (!send_get(channel))
		lost(channel);
	set_timer(fetch);
}

void hs_fetch_get(struct hs_fetch *fetch, struct hs_buf *key, void *context)
{
	struct hs_fetch_result result = {.end = HS_FETCH_ENDED};

	if (!atomic_load(&fetch->host->stopping)) {
		if (fetch->stats.waiting < HS_HTTP_FETCHES_MAX) {
			begin(fetch, key, context, hs_clock_mono_us() + fetch->patience_us, false);
			return;
		}
		result.end = HS_FETCH_BUSY;
	}
	hs_buf_swap(&result.key, key);
	tell(fetch, context, &result);
}

struct hs_fetch_stats *hs_fetch_stats(struct hs_fetch *fetch)
{
	return &fetch->stats;
}

struct hs_fetch *hs_fetch_create(uv_loop_t *loop, struct hs_host *host, uint64_t patience_us,
				 hs_fetch_done *done, void *owner)
{
	struct hs_fetch *fetch = hs_mem_zalloc(sizeof *fetch);

	fetch->host = host;
	fetch->loop = loop;
	fetch->patience_us = patience_us;
	fetch->done = done;
	fetch->owner = owner;
	hs_list_init(&fetch->idle);
	hs_list_init(&fetch->busy);
	uv_timer_init(loop, &fetch->timer);
	fetch->timer.data = fetch;
	return fetch;
}

static void on_timer_closed(uv_handle_t *handle)
{
	struct hs_fetch *fetch = handle->data;

	hs_mem_free(&fetch);
}

void hs_fetch_destroy(struct hs_fetch **pointer)
{
	struct hs_fetch *fetch = *pointer;
	struct channel *channel;

	if (!fetch)
		return;
	*pointer = NULL;
	while ((channel = hs_list_first(&fetch->busy, struct channel, link)))
		give_up(channel, HS_FETCH_ENDED);
	while ((channel = hs_list_first(&fetch->idle, struct channel, link)))
		close_channel(channel);
	uv_close((uv_handle_t *)&fetch->timer, on_timer_closed);
}
