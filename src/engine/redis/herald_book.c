#include "engine/redis/herald_internal.h"

#include "base/address.h"
#include "base/mem.h"
#include "wire/reply.h"

#include <stdarg.h>
#include <stdio.h>

enum { ERROR_BYTES_MAX = 512 };

/* ---- operations ---- */

void hs_herald_finish(struct hs_herald_book *book, struct hs_op *op)
{
	struct hs_reply reply = {.out = op->out, .resp = op->resp};

	hs_reply_ok(&reply);
	book->calls->done(book->context, op);
}

void hs_herald_fail(struct hs_herald_book *book, struct hs_op *op, const char *format, ...)
{
	struct hs_reply reply = {.out = op->out, .resp = op->resp};
	char text[ERROR_BYTES_MAX];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	hs_reply_error(&reply, text);
	book->calls->done(book->context, op);
}

struct hs_herald_wait *hs_herald_wait_begin(struct hs_herald_book *book, struct hs_op *op,
					    struct hs_herald_topic *topic, struct hs_link *list)
{
	struct hs_herald_wait *wait = hs_mem_zalloc(sizeof *wait);

	wait->op = op;
	wait->topic = topic;
	wait->until_ms = book->now_ms + HS_HERALD_WAIT_MS_MAX;
	hs_list_append(list, &wait->of_topic);
	hs_list_append(&book->waits, &wait->of_book);
	return wait;
}

void hs_herald_wait_end(struct hs_herald_wait **wait)
{
	hs_list_remove(&(*wait)->of_topic);
	hs_list_remove(&(*wait)->of_book);
	hs_mem_free(wait);
}

/* The first wait that is late by now, or NULL. */
static struct hs_herald_wait *first_late(const struct hs_herald_book *book)
{
	struct hs_herald_wait *wait =
		hs_list_entry(book->waits.next, struct hs_herald_wait, of_book);

	return !hs_list_empty(&book->waits) && book->now_ms >= wait->until_ms ? wait : NULL;
}

/* ---- lines ---- */

static bool same_node(const struct hs_route_node *a, const struct hs_route_node *b)
{
	return a->port == b->port && strcmp(a->host, b->host) == 0 && strcmp(a->id, b->id) == 0;
}

/* NULL: there is none. */
static struct hs_herald_line *find_line(const struct hs_herald_book *book,
					const struct hs_route_node *at, bool tracks)
{
	for (struct hs_link *link = book->lines.next; link != &book->lines; link = link->next) {
		struct hs_herald_line *line = hs_list_entry(link, struct hs_herald_line, link);

		if (line->tracks == tracks && same_node(&line->at, at))
			return line;
	}
	return NULL;
}

struct hs_herald_line *hs_herald_line_get(struct hs_herald_book *book, uint16_t node, bool tracks)
{
	const struct hs_route_node *at = &book->routes->nodes[node];
	struct hs_herald_line *line = find_line(book, at, tracks);

	if (line)
		return line;
	line = hs_mem_zalloc(sizeof *line);
	line->at = *at;
	line->tracks = tracks;
	line->listed = true;
	line->master = book->masters[node];
	hs_address_text(at->host, at->port, line->text, sizeof line->text);
	hs_list_init(&line->dirty);
	for (int i = 0; i < HS_SEAT_STATES; i++)
		hs_list_init(&line->seats[i]);
	hs_list_append(&book->lines, &line->link);
	book->unsettled = true;
	return line;
}

bool hs_herald_line_has_seats(const struct hs_herald_line *line)
{
	for (int i = 0; i < HS_SEAT_STATES; i++) {
		if (!hs_list_empty(&line->seats[i]))
			return true;
	}
	return false;
}

static void destroy_line(struct hs_herald_book *book, struct hs_herald_line *line)
{
	if (line->state != HS_LINE_DOWN)
		book->calls->close(book->context, line);
	line->state = HS_LINE_DOWN;
	hs_herald_line_reset(book, line);
	hs_list_remove(&line->link);
	for (uint16_t i = 0; book->routes && i < book->routes->nodes_count; i++) {
		if (book->at_node[i] == line)
			book->at_node[i] = NULL;
	}
	hs_mem_release(line);
}

/* How long to wait before it is tried again: not at all when it was well until now. */
static uint64_t pause_ms(const struct hs_herald_line *line, bool was_up)
{
	uint64_t ms = HS_HERALD_OPEN_MS_MIN;

	if (was_up && line->failures == 0)
		return 0;
	for (uint32_t i = 1; i < line->failures && ms < HS_HERALD_OPEN_MS_MAX; i++)
		ms *= 2;
	return ms < HS_HERALD_OPEN_MS_MAX ? ms : HS_HERALD_OPEN_MS_MAX;
}

/* A line is gone, or could not be opened. */
static void lose_line(struct hs_herald_book *book, struct hs_herald_line *line, const char *why)
{
	bool was_up = line->state == HS_LINE_UP;

	snprintf(line->why, sizeof line->why, "%s", why);
	line->open_at_ms = book->now_ms + pause_ms(line, was_up);
	/* Told once until it has been well for a while. */
	if (was_up && line->failures == 0)
		hs_log(book->options.log, HS_LOG_WARN,
		       line->tracks ? "%s: %s: lost the news of keys that change"
				    : "%s: %s: messages to subscribers are lost until it is back",
		       line->text, why);
	line->failures++;
	if (line->watching)
		book->tell_all = true;
	line->state = HS_LINE_DOWN;
	hs_herald_line_reset(book, line);
	hs_herald_unseat(book, line);
	book->unsettled = true;
}

static void close_doomed(struct hs_herald_book *book)
{
	struct hs_link *link, *next;

	for (link = book->lines.next; link != &book->lines; link = next) {
		struct hs_herald_line *line = hs_list_entry(link, struct hs_herald_line, link);
		const char *why = line->doom;

		next = link->next;
		if (!why)
			continue;
		book->calls->close(book->context, line);
		lose_line(book, line, why);
	}
}

/* ---- home ---- */

static bool is_up(const struct hs_herald_line *line)
{
	return line && line->state == HS_LINE_UP;
}

/* The node of the routes with the fewest failures, one of partition 0 before others. */
static uint16_t healthiest(const struct hs_herald_book *book, uint16_t preferred)
{
	uint32_t best_failures = UINT32_MAX;
	uint16_t best = preferred;

	for (uint32_t i = 0; i < book->routes->nodes_count; i++) {
		uint16_t node = (uint16_t)((preferred + i) % book->routes->nodes_count);
		const struct hs_herald_line *line =
			find_line(book, &book->routes->nodes[node], false);
		uint32_t failures = line ? line->failures : 0;

		if (failures < best_failures) {
			best_failures = failures;
			best = node;
		}
	}
	return best;
}

static struct hs_herald_line *any_up(const struct hs_herald_book *book)
{
	for (struct hs_link *link = book->lines.next; link != &book->lines; link = link->next) {
		struct hs_herald_line *line = hs_list_entry(link, struct hs_herald_line, link);

		if (!line->tracks && line->listed && is_up(line))
			return line;
	}
	return NULL;
}

static bool home_is_needed(const struct hs_herald_book *book)
{
	return book->kinds[HS_HERALD_CHANNEL] + book->kinds[HS_HERALD_PATTERN] > 0 ||
	       (!book->options.cluster && book->kinds[HS_HERALD_SHARD] > 0);
}

/* Where home would be if all were well. */
static uint16_t preferred_node(const struct hs_herald_book *book)
{
	uint16_t node = book->routes->node_of_partition[0];

	return node == HS_NODE_NONE ? 0 : node;
}

/* NULL: nobody needs it, or there are no nodes. */
static struct hs_herald_line *preferred_home(struct hs_herald_book *book)
{
	if (!home_is_needed(book) || !book->routes || book->routes->nodes_count == 0)
		return NULL;
	return hs_herald_line_get(book, preferred_node(book), false);
}

/* One that is up before one that is not: whoever listens moves without missing anything. */
static void choose_home(struct hs_herald_book *book, struct hs_herald_line *preferred)
{
	struct hs_herald_line *home = book->home, *before = book->home;

	if (!home_is_needed(book)) {
		home = NULL;
	} else if (is_up(preferred)) {
		home = preferred;
	} else if (!is_up(home) || !home->listed) {
		struct hs_herald_line *other = any_up(book);

		if (other)
			home = other;
		else if (!is_up(home) && preferred)
			home = hs_herald_line_get(book, healthiest(book, preferred_node(book)),
						  false);
	}
	book->home = home;
	if (home != before)
		hs_herald_settle_all(book, true);
}

/* ---- which lines there are ---- */

static void open_line(struct hs_herald_book *book, struct hs_herald_line *line)
{
	if (line->state != HS_LINE_DOWN || book->now_ms < line->open_at_ms)
		return;
	line->state = HS_LINE_OPENING;
	book->calls->open(book->context, line);
}

/* Whether a line that nobody needs is kept: one that is well for who subscribes next, one that is ill
 * so that the next to be tried is another. */
static bool is_kept(const struct hs_herald_book *book, const struct hs_herald_line *line)
{
	return !line->tracks && line->listed && line->state != HS_LINE_OPENING &&
	       book->now_ms - line->needed_ms < HS_HERALD_KEEP_MS;
}

static void settle_lines(struct hs_herald_book *book)
{
	struct hs_herald_line *preferred = preferred_home(book);
	uint16_t nodes = book->routes ? book->routes->nodes_count : 0;
	struct hs_link *link, *next;

	for (uint16_t i = 0; hs_herald_tracking(book) && i < nodes; i++) {
		if (book->masters[i])
			hs_herald_line_get(book, i, true);
	}
	choose_home(book, preferred);
	for (link = book->lines.next; link != &book->lines; link = next) {
		struct hs_herald_line *line = hs_list_entry(link, struct hs_herald_line, link);
		bool needed = line->tracks ? line->master && hs_herald_tracking(book)
					   : hs_herald_line_has_seats(line) || line == book->home ||
						     line == preferred;

		next = link->next;
		if (needed) {
			line->needed_ms = book->now_ms;
			open_line(book, line);
		} else if (!is_kept(book, line)) {
			destroy_line(book, line);
		}
	}
}

/* All that was asked for is there again. */
static void note_return(struct hs_herald_book *book, struct hs_herald_line *line)
{
	bool all = line->tracks ? line->watching
				: hs_list_empty(&line->seats[HS_SEAT_WANTED]) &&
					  hs_list_empty(&line->seats[HS_SEAT_ASKED]);

	if (!line->returns || !all || line->state != HS_LINE_UP)
		return;
	line->returns = false;
	hs_log(book->options.log, HS_LOG_INFO, "%s: its news are heard again", line->text);
}

/* The end of every event: what follows from it. */
static void conclude(struct hs_herald_book *book)
{
	while (book->unsettled) {
		book->unsettled = false;
		close_doomed(book);
		settle_lines(book);
	}
	hs_herald_track_check(book);
	while (!hs_list_empty(&book->dirty)) {
		struct hs_herald_line *line =
			hs_list_entry(book->dirty.next, struct hs_herald_line, dirty);

		hs_list_remove(&line->dirty);
		book->calls->send(book->context, line);
	}
}

/* ---- events ---- */

struct hs_herald_book *hs_herald_book_create(const struct hs_herald_book_options *options,
					     const struct hs_herald_calls *calls, void *context)
{
	struct hs_herald_book *book = hs_mem_zalloc(sizeof *book);

	book->options = *options;
	book->calls = calls;
	book->context = context;
	hs_list_init(&book->lines);
	hs_list_init(&book->dirty);
	hs_list_init(&book->waits);
	hs_list_init(&book->missing);
	hs_list_init(&book->track_waits);
	return book;
}

void hs_herald_book_destroy(struct hs_herald_book **pointer)
{
	struct hs_herald_book *book = *pointer;

	while (!hs_list_empty(&book->waits)) {
		struct hs_herald_wait *wait =
			hs_list_entry(book->waits.next, struct hs_herald_wait, of_book);

		hs_herald_fail(book, wait->op, "ERR shutting down");
		hs_herald_wait_end(&wait);
	}
	hs_herald_topics_deinit(book);
	while (!hs_list_empty(&book->lines))
		destroy_line(book, hs_list_entry(book->lines.next, struct hs_herald_line, link));
	if (book->routes)
		hs_routes_unref(&book->routes);
	hs_mem_free(&book->at_node);
	hs_mem_free(&book->masters);
	hs_mem_free(&book->keys);
	hs_mem_free(pointer);
}

void hs_herald_book_ask(struct hs_herald_book *book, uint64_t now_ms, struct hs_op *op)
{
	book->now_ms = now_ms;
	switch (op->kind) {
	case HS_OP_LISTEN:
		hs_herald_listen(book, op);
		break;
	case HS_OP_UNLISTEN:
		hs_herald_unlisten(book, op);
		break;
	case HS_OP_TRACK:
		hs_herald_track(book, op);
		break;
	case HS_OP_UNTRACK:
		hs_herald_untrack(book, op);
		break;
	default:
		hs_check(op->kind == HS_OP_LISTEN); /* never: the others are not for a herald */
	}
	conclude(book);
}

static bool same_owners(const struct hs_routes *a, const struct hs_routes *b)
{
	for (uint32_t i = 0; i < HS_SLOTS; i++) {
		uint16_t one = a->node_of_slot[i], two = b->node_of_slot[i];

		if ((one == HS_NODE_NONE) != (two == HS_NODE_NONE) ||
		    (one != HS_NODE_NONE && !same_node(&a->nodes[one], &b->nodes[two])))
			return false;
	}
	return true;
}

/* What follows from the routes alone. */
static void read_routes(struct hs_herald_book *book)
{
	const struct hs_routes *routes = book->routes;

	hs_mem_free(&book->at_node);
	hs_mem_free(&book->masters);
	book->at_node = hs_mem_zalloc(routes->nodes_count * sizeof(struct hs_herald_line *));
	book->masters = hs_mem_zalloc(routes->nodes_count * sizeof *book->masters);
	book->masters_count = 0;
	for (uint32_t i = 0; i < HS_SLOTS; i++) {
		uint16_t node = routes->node_of_slot[i];

		if (node == HS_NODE_NONE || book->masters[node])
			continue;
		book->masters[node] = true;
		book->masters_count++;
	}
	for (struct hs_link *link = book->lines.next; link != &book->lines; link = link->next) {
		struct hs_herald_line *line = hs_list_entry(link, struct hs_herald_line, link);

		line->listed = line->master = false;
		for (uint16_t i = 0; i < routes->nodes_count; i++) {
			if (!same_node(&line->at, &routes->nodes[i]))
				continue;
			line->listed = true;
			line->master = book->masters[i];
		}
	}
}

void hs_herald_book_route(struct hs_herald_book *book, uint64_t now_ms,
			  const struct hs_routes *routes)
{
	const struct hs_routes *before = book->routes;

	book->now_ms = now_ms;
	hs_routes_ref(routes, 1);
	book->routes = routes;
	if (!before || !same_owners(before, routes))
		book->tell_all = true;
	if (before)
		hs_routes_unref(&before);
	read_routes(book);
	choose_home(book, preferred_home(book));
	hs_herald_settle_all(book, false);
	book->unsettled = true;
	conclude(book);
}

/* A line that is up: whether it still answers. */
static void watch_line(struct hs_herald_book *book, struct hs_herald_line *line)
{
	if (line->failures > 0 && book->now_ms - line->up_ms >= HS_HERALD_STEADY_MS)
		line->failures = 0;
	if (line->ping_ms > 0 && book->now_ms - line->ping_ms >= HS_HERALD_SILENT_MS_MAX &&
	    book->now_ms - line->heard_ms >= HS_HERALD_SILENT_MS_MAX)
		line->doom = "it does not answer any more";
	else if (line->ping_ms == 0 && book->now_ms - line->heard_ms >= HS_HERALD_PING_MS)
		hs_herald_line_ping(book, line);
}

void hs_herald_book_tick(struct hs_herald_book *book, uint64_t now_ms)
{
	struct hs_herald_wait *wait;

	book->now_ms = now_ms;
	for (struct hs_link *link = book->lines.next; link != &book->lines; link = link->next) {
		struct hs_herald_line *line = hs_list_entry(link, struct hs_herald_line, link);

		if (is_up(line))
			watch_line(book, line);
	}
	while ((wait = first_late(book)) != NULL) {
		if (wait->topic)
			hs_herald_late(book, wait);
		else
			hs_herald_track_late(book, wait);
	}
	hs_herald_topics_tick(book);
	book->unsettled = true;
	conclude(book);
}

void hs_herald_book_up(struct hs_herald_book *book, uint64_t now_ms, struct hs_herald_line *line)
{
	book->now_ms = now_ms;
	hs_check(line->state == HS_LINE_OPENING);
	line->state = HS_LINE_UP;
	line->up_ms = now_ms;
	line->heard_ms = now_ms;
	line->why[0] = '\0';
	line->returns = line->failures > 0;
	if (line->tracks)
		hs_herald_line_track(book, line);
	else
		hs_herald_line_pump(book, line);
	book->unsettled = true;
	conclude(book);
}

void hs_herald_book_down(struct hs_herald_book *book, uint64_t now_ms, struct hs_herald_line *line,
			 const char *why)
{
	book->now_ms = now_ms;
	lose_line(book, line, why);
	conclude(book);
}

void hs_herald_book_receive(struct hs_herald_book *book, uint64_t now_ms,
			    struct hs_herald_line *line, const char *data, size_t len)
{
	book->now_ms = now_ms;
	hs_herald_line_take(book, line, data, len);
	note_return(book, line);
	if (line->doom)
		book->unsettled = true;
	conclude(book);
}
