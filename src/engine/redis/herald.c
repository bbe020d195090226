#include "engine/redis/herald.h"

#include "base/mem.h"
#include "engine/redis/herald_book.h"

#include <sys/random.h>
#include <uv.h>

enum { TICK_MS = 100 };

struct hs_herald {
	uv_loop_t *loop;
	uv_timer_t timer;
	struct hs_herald_options options;
	struct hs_herald_host host;
	struct hs_herald_book *book;
	char *buffer; /* HS_READ_BYTES, for all connections */
};

static uint64_t now_ms(const struct hs_herald *herald)
{
	return uv_now(herald->loop);
}

/* ---- what the connections say ---- */

static void on_up(void *context, int64_t server_id)
{
	struct hs_herald_line *line = context;
	struct hs_herald *herald = line->driver;

	(void)server_id;
	hs_herald_book_up(herald->book, now_ms(herald), line);
}

static void on_down(void *context, const char *why)
{
	struct hs_herald_line *line = context;
	struct hs_herald *herald = line->driver;

	line->io = NULL; /* it has gone by itself */
	hs_herald_book_down(herald->book, now_ms(herald), line, why);
}

static char *on_room(void *context, size_t *room)
{
	return hs_herald_line_room(context, room);
}

static void on_receive(void *context, const char *data, size_t len)
{
	struct hs_herald_line *line = context;
	struct hs_herald *herald = line->driver;

	hs_herald_book_receive(herald->book, now_ms(herald), line, data, len);
}

static const struct hs_conn_calls conn_calls = {
	.up = on_up,
	.down = on_down,
	.room = on_room,
	.receive = on_receive,
};

/* ---- what the book wants ---- */

static void book_open(void *context, struct hs_herald_line *line)
{
	struct hs_herald *herald = context;
	struct hs_conn_options options = {
		.loop = herald->loop,
		.identity = herald->options.identity,
		.host = line->at.host,
		.port = line->at.port,
		.resp = 3,
		.expected_id = line->at.id,
		.calls = &conn_calls,
		.context = line,
		.buffer = herald->buffer,
	};

	line->driver = herald;
	line->io = hs_conn_open(&options);
}

static void book_close(void *context, struct hs_herald_line *line)
{
	struct hs_conn *conn = line->io;

	(void)context;
	line->io = NULL;
	hs_conn_close(&conn);
}

static void book_send(void *context, struct hs_herald_line *line)
{
	(void)context;
	hs_conn_send(line->io, &line->out, &line->sent);
}

static void book_news(void *context, struct hs_news *news)
{
	struct hs_herald *herald = context;

	herald->host.news(herald->host.context, news);
}

static void book_done(void *context, struct hs_op *op)
{
	struct hs_herald *herald = context;

	herald->host.done(herald->host.context, op);
}

static void book_surprise(void *context)
{
	struct hs_herald *herald = context;

	if (herald->host.surprise)
		herald->host.surprise(herald->host.context);
}

static const struct hs_herald_calls book_calls = {
	.open = book_open,
	.close = book_close,
	.send = book_send,
	.news = book_news,
	.done = book_done,
	.surprise = book_surprise,
};

/* ---- the front door ---- */

static void on_tick(uv_timer_t *timer)
{
	struct hs_herald *herald = timer->data;

	hs_herald_book_tick(herald->book, now_ms(herald));
}

struct hs_herald *hs_herald_create(struct uv_loop_s *loop, const struct hs_herald_options *options,
				   const struct hs_herald_host *host)
{
	struct hs_herald *herald = hs_mem_zalloc(sizeof *herald);
	struct hs_herald_book_options book = {.log = options->log, .cluster = options->cluster};

	hs_check(getrandom(&book.seed, sizeof book.seed, 0) == (ssize_t)sizeof book.seed);
	herald->loop = loop;
	herald->options = *options;
	herald->host = *host;
	herald->buffer = hs_mem_alloc(HS_READ_BYTES);
	herald->book = hs_herald_book_create(&book, &book_calls, herald);
	hs_check(uv_timer_init(loop, &herald->timer) == 0);
	herald->timer.data = herald;
	hs_check(uv_timer_start(&herald->timer, on_tick, TICK_MS, TICK_MS) == 0);
	return herald;
}

static void on_closed(uv_handle_t *timer)
{
	struct hs_herald *herald = timer->data;

	hs_mem_free(&herald->buffer);
	hs_mem_free(&herald);
}

void hs_herald_destroy(struct hs_herald **herald)
{
	hs_herald_book_destroy(&(*herald)->book);
	uv_close((uv_handle_t *)&(*herald)->timer, on_closed);
	*herald = NULL;
}

void hs_herald_ask(struct hs_herald *herald, struct hs_op *op)
{
	hs_herald_book_ask(herald->book, now_ms(herald), op);
}

void hs_herald_route(struct hs_herald *herald, const struct hs_routes *routes)
{
	hs_herald_book_route(herald->book, now_ms(herald), routes);
}
