/* One connection to the server (upstream/), and queries on it. A query is a few commands sent at once; it is
 * answered when the last reply has come. Everything happens inside the loop, which also waits for the keyboard: a
 * server that hangs blocks no key.
 *
 *     DOWN ──query──▶ OPENING ──▶ UP ──replies──▶ UP (idle) ──query──▶ …
 *       ▲                │         │
 *       └────────────────┴─ failed ┘     the error says what to do; the next query connects
 */
#include "cli/top.h"

#include "base/limits.h"
#include "base/mem.h"
#include "serve/clock.h"
#include "upstream/upstream.h"
#include "wire/compose.h"

#include <stdarg.h>

enum { WORDS_MAX = 12 };

struct hs_top_client {
	const struct hs_top_options *options;
	struct hs_conn_driver driver;
	struct hs_upstream upstream;
	bool waiting;
	uint64_t deadline_us;
	struct hs_top_query query;
	size_t commands_count; /* sent: INFO, then HEAT */
	struct hs_top_replies replies;
	char error[HS_TOP_ERROR_MAX]; /* "": the query has not failed */
	char buffer[HS_READ_BYTES];
};

static void disconnect(struct hs_top_client *client)
{
	hs_conn_close(&client->upstream);
	client->upstream.state = HS_UPSTREAM_DOWN;
}

void hs_top_client_destroy(struct hs_top_client **client)
{
	if (!*client)
		return;
	disconnect(*client);
	hs_upstream_deinit(&(*client)->upstream);
	hs_buf_deinit(&(*client)->replies.bytes);
	hs_mem_free(client);
}

/* Fails the query. The caller of the connection's callback closes the connection. */
__attribute__((format(printf, 2, 3))) static void fail(struct hs_top_client *client,
						       const char *format, ...)
{
	va_list arguments;

	if (client->error[0])
		return;
	va_start(arguments, format);
	vsnprintf(client->error, sizeof client->error, format, arguments);
	va_end(arguments);
	hs_upstream_close(&client->upstream, client->error);
}

/* ---- replies ---- */

static void set_reply_error(struct hs_top_client *client, bool heat, struct hs_bytes text)
{
	const char *target = client->options->target.text;
	char said[160];

	hs_bytes_escape(text, said, sizeof said);
	if (heat && hs_bytes_begins(text, HS_LIT("ERR unknown command")))
		fail(client,
		     "%s is not a heatsink server: it does not know HEAT; set --target to a "
		     "heatsink server",
		     target);
	else
		fail(client, "%s replies with an error: %s", target, said);
}

/* Takes one complete reply. Push messages are ignored. A user without permission for INFO still gets the heat. */
static void take(void *context, struct hs_bytes reply, bool owned)
{
	struct hs_top_client *client = context;
	bool heat = client->replies.count > 0;
	struct hs_parsed_reply head;

	(void)owned;
	if (hs_parse_reply_head(&head, reply.data, reply.len) <= 0 || head.type == HS_PARSED_PUSH)
		return;
	if (client->replies.count == client->commands_count) {
		fail(client, "%s sends replies without a request: is --target right?",
		     client->options->target.text);
		return;
	}
	if (head.type == HS_PARSED_ERROR &&
	    (heat || hs_bytes_begins(head.text, HS_LIT("NOAUTH")))) {
		set_reply_error(client, heat, head.text);
		return;
	}
	hs_buf_append_bytes(&client->replies.bytes, reply);
	client->replies.ends[client->replies.count++] = client->replies.bytes.len;
}

static void on_receive(void *context, struct hs_upstream *upstream, const char *data, size_t len)
{
	struct hs_top_client *client = context;
	const char *target = client->options->target.text;
	size_t most = HS_TOP_REPLY_BYTES_MAX;

	hs_upstream_receive(upstream, hs_clock_mono_us(), data, len, most, take, client);
	if (upstream->partial.len > most || upstream->scan.need > most ||
	    client->replies.bytes.len > most)
		fail(client, "%s sends more than %d MB for one query: is --target right?", target,
		     HS_TOP_REPLY_BYTES_MAX >> 20);
	else if (upstream->close_reason)
		fail(client, "%s does not speak the Redis protocol: is --target right?", target);
	if (client->error[0])
		disconnect(client);
}

const struct hs_top_replies *hs_top_client_replies(const struct hs_top_client *client)
{
	return &client->replies;
}

/* ---- connecting ---- */

static void on_up(void *context, struct hs_upstream *upstream)
{
	(void)context;
	upstream->state = HS_UPSTREAM_UP;
	hs_conn_send(upstream);
}

static void on_down(void *context, struct hs_upstream *upstream, const char *why)
{
	struct hs_top_client *client = context;
	const char *target = client->options->target.text;
	char said[256];

	hs_bytes_escape(hs_bytes_of(why), said, sizeof said);
	if (upstream->state == HS_UPSTREAM_UP)
		fail(client, "lost the connection to %s: %s", target, said);
	else
		fail(client, "cannot connect to %s: %s; is heatsink running there? (--target)",
		     target, said);
	upstream->state = HS_UPSTREAM_DOWN;
}

struct hs_top_client *hs_top_client_create(const struct hs_top_options *options,
					   struct uv_loop_s *loop)
{
	struct hs_top_client *client = hs_mem_zalloc(sizeof *client);

	client->options = options;
	client->driver = (struct hs_conn_driver){
		.loop = loop,
		.conn_config = &options->target.conn_config,
		.buffer = client->buffer,
		.any_resp_server = true,
		.context = client,
		.up = on_up,
		.down = on_down,
		.receive = on_receive,
	};
	hs_upstream_init(&client->upstream, 3);
	return client;
}

static void open_conn(struct hs_top_client *client)
{
	const struct hs_redis_address *seed = &client->options->target.url.seeds[0];
	const struct hs_conn_server server = {
		.host = seed->host, .port = seed->port, .expected_id = ""};

	hs_conn_open(&client->driver, &client->upstream, &server);
}

/* ---- queries ---- */

static void add_command(struct hs_top_client *client, size_t argc, const struct hs_bytes *argv)
{
	hs_check(client->commands_count < HS_TOP_REPLIES_MAX);
	client->commands_count++;
	hs_compose(&client->upstream.out, argc, argv);
}

static void add_heat_command(struct hs_top_client *client, struct hs_bytes what, uint64_t count)
{
	const struct hs_top_query *query = &client->query;
	struct hs_bytes words[WORDS_MAX] = {HS_LIT("HEAT"), what};
	size_t argc = 2;
	char number[24];

	if (count > 0) {
		snprintf(number, sizeof number, "%llu", (unsigned long long)count);
		words[argc++] = HS_LIT("COUNT");
		words[argc++] = hs_bytes_of(number);
		words[argc++] = HS_LIT("BY");
		words[argc++] = hs_bytes_of(hs_top_sorts[query->sort]);
	}
	if (query->window != HS_TOP_AUTO) {
		words[argc++] = HS_LIT("WINDOW");
		words[argc++] = hs_bytes_of(hs_top_windows[query->window]);
	}
	if (query->prefix_len && hs_bytes_equal(what, HS_LIT("TOP"))) {
		words[argc++] = HS_LIT("PREFIX");
		words[argc++] = (struct hs_bytes){query->prefix, query->prefix_len};
	}
	add_command(client, argc, words);
}

static void compose(struct hs_top_client *client)
{
	const struct hs_top_query *query = &client->query;
	const struct hs_bytes info[] = {HS_LIT("INFO"), HS_LIT("server")};
	struct hs_bytes prefixes = hs_bytes_of(hs_top_dimensions[HS_TOP_PREFIXES]);
	/* HEAT PREFIXES cannot filter, top does: so it requests all rows. */
	bool all = query->dimension == HS_TOP_PREFIXES && query->prefix_len;

	add_command(client, 2, info);
	add_heat_command(client, HS_LIT("PARTITIONS"), 0);
	add_heat_command(client,
			 query->dimension == HS_TOP_KEYS
				 ? HS_LIT("TOP")
				 : hs_bytes_of(hs_top_dimensions[query->dimension]),
			 all ? HS_TOP_ROWS_MAX : query->count);
	if (query->dimension != HS_TOP_PREFIXES)
		add_heat_command(client, prefixes, HS_TOP_PREFIX_ROWS);
}

void hs_top_client_send(struct hs_top_client *client, const struct hs_top_query *query,
			uint64_t now_us)
{
	hs_check(!client->waiting);
	client->query = *query;
	client->waiting = true;
	client->error[0] = '\0';
	client->deadline_us = now_us + client->options->timeout_us;
	client->commands_count = client->replies.count = client->replies.bytes.len = 0;
	if (client->upstream.state == HS_UPSTREAM_DOWN) {
		hs_upstream_opening(&client->upstream, now_us);
		open_conn(client);
	}
	compose(client);
	if (client->upstream.state == HS_UPSTREAM_UP)
		hs_conn_send(&client->upstream);
}

bool hs_top_client_is_waiting(const struct hs_top_client *client)
{
	return client->waiting;
}

const struct hs_top_query *hs_top_client_query(const struct hs_top_client *client)
{
	return &client->query;
}

uint64_t hs_top_client_deadline_us(const struct hs_top_client *client)
{
	return client->waiting ? client->deadline_us : UINT64_MAX;
}

const char *hs_top_client_error(const struct hs_top_client *client)
{
	return client->error;
}

enum hs_top_outcome hs_top_client_poll(struct hs_top_client *client, uint64_t now_us)
{
	bool answered = client->replies.count == client->commands_count;

	if (!client->waiting)
		return HS_TOP_WAITING;
	if (!client->error[0] && !answered) {
		if (now_us < client->deadline_us)
			return HS_TOP_WAITING;
		fail(client,
		     "no answer from %s within %.1f s (--timeout): the server or the network hangs",
		     client->options->target.text, (double)client->options->timeout_us / 1e6);
		disconnect(client);
	}
	client->waiting = false;
	return client->error[0] ? HS_TOP_FAILED : HS_TOP_ANSWERED;
}
