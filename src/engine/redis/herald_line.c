/* One line: requests out, replies and pushes in.
 *
 * Replies come in the order of the requests (turns). What makes it a little more than that: a server
 * whose slot has moved says `sunsubscribe` by itself, and refuses the SUNSUBSCRIBE that was on its way
 * there with MOVED. The first then looks like the answer and the second answers nothing; it is told
 * by its slot that it belongs to no request. */
#include "engine/redis/herald_internal.h"

#include "base/mem.h"
#include "base/num.h"

#include <stdio.h>

enum { TURNS_MIN = 64, ROOM_MAX = 1 << 20 };

static const struct {
	const char *subscribe, *unsubscribe; /* requests */
	struct hs_bytes subscribed, unsubscribed, message;
	enum hs_news_kind news;
} words[HS_HERALD_KINDS] = {
	[HS_HERALD_CHANNEL] = {"SUBSCRIBE",
			       "UNSUBSCRIBE",
			       {"subscribe", 9},
			       {"unsubscribe", 11},
			       {"message", 7},
			       HS_NEWS_MESSAGE},
	[HS_HERALD_PATTERN] = {"PSUBSCRIBE",
			       "PUNSUBSCRIBE",
			       {"psubscribe", 10},
			       {"punsubscribe", 12},
			       {"pmessage", 8},
			       HS_NEWS_PATTERN},
	[HS_HERALD_SHARD] = {"SSUBSCRIBE",
			     "SUNSUBSCRIBE",
			     {"ssubscribe", 10},
			     {"sunsubscribe", 12},
			     {"smessage", 8},
			     HS_NEWS_SHARD},
};

/* ---- turns ---- */

static struct hs_herald_turn *turn_at(struct hs_herald_line *line, uint64_t number)
{
	return &line->turns[number & (line->turns_cap - 1)];
}

static void grow_turns(struct hs_herald_line *line)
{
	uint32_t cap = line->turns_cap ? line->turns_cap * 2 : TURNS_MIN;
	struct hs_herald_turn *turns = hs_mem_alloc(cap * sizeof *turns);

	for (uint32_t i = 0; i < line->turns_count; i++) {
		uint64_t number = line->turns_first + i;

		turns[number & (cap - 1)] = *turn_at(line, number);
	}
	hs_mem_free(&line->turns);
	line->turns = turns;
	line->turns_cap = cap;
}

/* Returns its number. */
static uint64_t push_turn(struct hs_herald_line *line, struct hs_herald_turn turn)
{
	uint64_t number = line->turns_first + line->turns_count;

	if (line->turns_count == line->turns_cap)
		grow_turns(line);
	line->turns_count++;
	*turn_at(line, number) = turn;
	return number;
}

/* The oldest, or NULL. */
static struct hs_herald_turn *first_turn(struct hs_herald_line *line)
{
	return line->turns_count > 0 ? turn_at(line, line->turns_first) : NULL;
}

static struct hs_herald_turn pop_turn(struct hs_herald_line *line)
{
	struct hs_herald_turn turn = *first_turn(line);

	line->turns_first++;
	line->turns_count--;
	return turn;
}

void hs_herald_line_forget(struct hs_herald_line *line, uint64_t number)
{
	turn_at(line, number)->seat = NULL;
}

void hs_herald_line_reset(struct hs_herald_book *book, struct hs_herald_line *line)
{
	while (line->turns_count > 0) {
		struct hs_op *op = pop_turn(line).op;

		if (op) /* what the server has forgotten is not listened to */
			hs_herald_finish(book, op);
	}
	hs_mem_free(&line->turns);
	line->turns_cap = 0;
	hs_list_remove(&line->dirty);
	hs_buf_deinit(&line->out);
	hs_buf_deinit(&line->partial);
	line->scan = (struct hs_answer_scan){0};
	line->sent = 0;
	line->ping_ms = 0;
	line->watching = false;
	line->doom = NULL;
}

/* ---- requests ---- */

static void append_word(struct hs_buf *out, struct hs_bytes word)
{
	char header[HS_NUM_TEXT_MAX + 4];
	int len = snprintf(header, sizeof header, "$%zu\r\n", word.len);

	hs_buf_append(out, header, (size_t)len);
	hs_buf_append_bytes(out, word);
	hs_buf_append(out, "\r\n", 2);
}

static void touch(struct hs_herald_book *book, struct hs_herald_line *line)
{
	if (hs_list_empty(&line->dirty))
		hs_list_append(&book->dirty, &line->dirty);
}

static uint64_t ask(struct hs_herald_book *book, struct hs_herald_line *line, const char *verb,
		    const struct hs_herald_topic *topic, struct hs_herald_turn turn)
{
	hs_buf_append(&line->out, "*2\r\n", 4);
	append_word(&line->out, hs_bytes_of(verb));
	append_word(&line->out, hs_herald_topic_name(topic));
	touch(book, line);
	turn.kind = (uint8_t)topic->kind;
	turn.slot = topic->slot;
	turn.hash = topic->hash;
	return push_turn(line, turn);
}

void hs_herald_line_pump(struct hs_herald_book *book, struct hs_herald_line *line)
{
	struct hs_link *wanted = &line->seats[HS_SEAT_WANTED];

	while (line->state == HS_LINE_UP && !hs_list_empty(wanted) &&
	       line->turns_count < HS_HERALD_TURNS_MAX && line->out.len < HS_HERALD_OUT_BYTES_MAX) {
		struct hs_herald_seat *seat =
			hs_list_entry(wanted->next, struct hs_herald_seat, link);

		hs_list_remove(&seat->link);
		hs_list_append(&line->seats[HS_SEAT_ASKED], &seat->link);
		seat->state = HS_SEAT_ASKED;
		seat->turn = ask(book, line, words[seat->topic->kind].subscribe, seat->topic,
				 (struct hs_herald_turn){.what = HS_TURN_SUBSCRIBE, .seat = seat});
	}
}

void hs_herald_line_unsubscribe(struct hs_herald_book *book, struct hs_herald_line *line,
				const struct hs_herald_topic *topic, struct hs_op *op)
{
	ask(book, line, words[topic->kind].unsubscribe, topic,
	    (struct hs_herald_turn){.what = HS_TURN_UNSUBSCRIBE, .op = op});
}

void hs_herald_line_track(struct hs_herald_book *book, struct hs_herald_line *line)
{
	hs_buf_printf(&line->out, "*4\r\n$6\r\nCLIENT\r\n$8\r\nTRACKING\r\n$2\r\nON\r\n"
				  "$5\r\nBCAST\r\n");
	push_turn(line, (struct hs_herald_turn){.what = HS_TURN_TRACK});
	touch(book, line);
}

void hs_herald_line_ping(struct hs_herald_book *book, struct hs_herald_line *line)
{
	line->ping_ms = book->now_ms;
	hs_buf_printf(&line->out, "*1\r\n$4\r\nPING\r\n");
	push_turn(line, (struct hs_herald_turn){.what = HS_TURN_PING});
	touch(book, line);
}

/* ---- replies ---- */

static void doom(struct hs_herald_line *line)
{
	line->doom = "its answers make no sense";
}

/* Whether an error is "MOVED 3999 …" of another slot than that of the request. */
static bool moved_elsewhere(struct hs_bytes error, const struct hs_herald_turn *turn)
{
	static const struct hs_bytes moved = HS_LIT("MOVED ");
	const char *space;
	int64_t slot;

	if (error.len < moved.len || memcmp(error.data, moved.data, moved.len) != 0)
		return false;
	error.data += moved.len;
	error.len -= moved.len;
	space = memchr(error.data, ' ', error.len);
	if (space)
		error.len = (size_t)(space - error.data);
	if (!hs_num_parse_int(error, &slot) || !turn || turn->kind != HS_HERALD_SHARD)
		return true;
	return (turn->what != HS_TURN_SUBSCRIBE && turn->what != HS_TURN_UNSUBSCRIBE) ||
	       turn->slot != slot;
}

static void take_error(struct hs_herald_book *book, struct hs_herald_line *line,
		       struct hs_bytes error)
{
	struct hs_herald_turn turn;

	if (moved_elsewhere(error, first_turn(line)))
		return;
	if (!first_turn(line)) {
		doom(line);
		return;
	}
	turn = pop_turn(line);
	switch ((enum hs_herald_what)turn.what) {
	case HS_TURN_SUBSCRIBE:
		if (turn.seat)
			hs_herald_refused(book, turn.seat, error);
		break;
	case HS_TURN_UNSUBSCRIBE:
		if (turn.op)
			hs_herald_finish(book, turn.op);
		break;
	case HS_TURN_TRACK:
		hs_herald_track_refused(book, line, error);
		break;
	case HS_TURN_PING:
		line->ping_ms = 0; /* it does answer */
		break;
	}
}

static void take_answer(struct hs_herald_book *book, struct hs_herald_line *line)
{
	const struct hs_herald_turn *turn = first_turn(line);

	if (turn && turn->what == HS_TURN_PING) {
		line->ping_ms = 0;
		pop_turn(line);
	} else if (turn && turn->what == HS_TURN_TRACK) {
		pop_turn(line);
		hs_herald_track_confirmed(book, line);
	} else {
		doom(line);
	}
}

static void take_subscribed(struct hs_herald_book *book, struct hs_herald_line *line,
			    enum hs_herald_kind kind, struct hs_bytes name)
{
	const struct hs_herald_turn *turn = first_turn(line);
	struct hs_herald_seat *seat;

	if (!turn || turn->what != HS_TURN_SUBSCRIBE || turn->kind != kind ||
	    turn->hash != hs_herald_topic_hash(book, kind, name)) {
		doom(line);
		return;
	}
	seat = pop_turn(line).seat;
	if (seat)
		hs_herald_confirmed(book, seat);
}

static void take_unsubscribed(struct hs_herald_book *book, struct hs_herald_line *line,
			      enum hs_herald_kind kind, struct hs_bytes name)
{
	const struct hs_herald_turn *turn = first_turn(line);
	struct hs_op *op;

	if (!turn || turn->what != HS_TURN_UNSUBSCRIBE || turn->kind != kind ||
	    turn->hash != hs_herald_topic_hash(book, kind, name)) {
		hs_herald_dropped(book, line, kind, name);
		return;
	}
	op = pop_turn(line).op;
	if (op)
		hs_herald_finish(book, op);
}

/* The rest of a message. */
static void take_message(struct hs_herald_book *book, struct hs_herald_line *line,
			 enum hs_herald_kind kind, struct hs_walk *walk)
{
	struct hs_news news = {.kind = words[kind].news};
	const struct hs_herald_topic *topic;
	const struct hs_herald_seat *seat;

	if ((kind == HS_HERALD_PATTERN && hs_walk_text(walk, &news.pattern) < 0) ||
	    hs_walk_text(walk, &news.channel) < 0 || hs_walk_text(walk, &news.payload) < 0) {
		doom(line);
		return;
	}
	topic = hs_herald_topic_find(book, kind,
				     kind == HS_HERALD_PATTERN ? news.pattern : news.channel);
	seat = topic ? &topic->seats[topic->now] : NULL;
	/* What is on its way from one line to another is heard once. */
	if (seat && ((seat->line == line && seat->state == HS_SEAT_ON) ||
		     hs_herald_hears_extra(topic, line, news.channel)))
		book->calls->news(book->context, hs_news_create(&news));
}

static void take_push(struct hs_herald_book *book, struct hs_herald_line *line,
		      struct hs_walk *walk)
{
	struct hs_bytes what, name;

	if (hs_walk_text(walk, &what) < 0) {
		doom(line);
		return;
	}
	if (hs_bytes_equal(what, HS_LIT("invalidate"))) {
		if (!hs_herald_track_hear(book, walk))
			doom(line);
		return;
	}
	for (enum hs_herald_kind kind = 0; kind < HS_HERALD_KINDS; kind++) {
		bool on = hs_bytes_equal(what, words[kind].subscribed);

		if (hs_bytes_equal(what, words[kind].message)) {
			take_message(book, line, kind, walk);
			return;
		}
		if (!on && !hs_bytes_equal(what, words[kind].unsubscribed))
			continue;
		if (hs_walk_text(walk, &name) < 0)
			doom(line);
		else if (on)
			take_subscribed(book, line, kind, name);
		else
			take_unsubscribed(book, line, kind, name);
		return;
	}
}

static void take_reply(struct hs_herald_book *book, struct hs_herald_line *line,
		       struct hs_walk walk)
{
	struct hs_answer head;

	if (hs_walk_next(&walk, &head) < 0)
		doom(line);
	else if (head.type == HS_ANSWER_PUSH)
		take_push(book, line, &walk);
	else if (head.type == HS_ANSWER_ERROR)
		take_error(book, line, head.text);
	else
		take_answer(book, line);
}

/* Every whole reply in `data`; returns how much of it that was. */
static size_t take_replies(struct hs_herald_book *book, struct hs_herald_line *line,
			   const char *data, size_t len)
{
	size_t at = 0;

	while (at < len && !line->doom) {
		int64_t used = hs_answer_scan(&line->scan, data + at, len - at);

		if (used == 0)
			break;
		if (used < 0)
			line->doom = "what it says is not RESP";
		else
			take_reply(book, line, (struct hs_walk){data + at, (size_t)used});
		at += used > 0 ? (size_t)used : 0;
	}
	hs_herald_track_flush(book); /* while the bytes are there */
	return at;
}

void hs_herald_line_take(struct hs_herald_book *book, struct hs_herald_line *line, const char *data,
			 size_t len)
{
	line->heard_ms = book->now_ms;
	if (line->partial.len == 0) {
		size_t used = take_replies(book, line, data, len);

		hs_buf_append(&line->partial, data + used, len - used);
	} else {
		if (data == line->partial.data + line->partial.len)
			line->partial.len += len;
		else
			hs_buf_append(&line->partial, data, len);
		hs_buf_consume(&line->partial,
			       take_replies(book, line, line->partial.data, line->partial.len));
	}
	if (line->partial.len == 0)
		hs_buf_clear(&line->partial, HS_KEEP_BYTES);
	if (line->partial.len > HS_NEWS_BYTES_MAX || line->scan.need > HS_NEWS_BYTES_MAX)
		line->doom = "it sends a message of more than 513 MiB";
	hs_herald_line_pump(book, line);
}

char *hs_herald_line_room(struct hs_herald_line *line, size_t *room)
{
	size_t want;

	*room = 0;
	if (line->partial.len == 0 || line->scan.need <= line->partial.len + HS_KEEP_BYTES)
		return NULL;
	want = line->scan.need - line->partial.len;
	*room = want < ROOM_MAX ? want : ROOM_MAX;
	return hs_buf_reserve(&line->partial, *room);
}
