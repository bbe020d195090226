/* Changed keys: a line to every master, each of which the server tells every key that changes
 * (CLIENT TRACKING ON BCAST).
 *
 * Tracking fails silently: a connection that is gone says nothing, like a key that does not change. So
 * what counts is whether all masters are watched, and everything may have changed
 *
 *     when a line is lost, or does not answer        what it would have said is not known
 *     when the routes change                         a new master, a slot in other hands
 *     every second until all are watched             nobody would say so
 *     when a line is watching again                  what happened before it did
 */
#include "engine/redis/herald_internal.h"

#include "base/mem.h"

enum { KEYS_MIN = 64, KEYS_KEEP = 4096 };

bool hs_herald_tracking(const struct hs_herald_book *book)
{
	return hs_herald_any(&book->trackers) || !hs_list_empty(&book->track_waits);
}

void hs_herald_track(struct hs_herald_book *book, struct hs_op *op)
{
	hs_herald_wait_begin(book, op, NULL, &book->track_waits);
	book->unsettled = true;
}

void hs_herald_untrack(struct hs_herald_book *book, struct hs_op *op)
{
	hs_herald_set(&book->trackers, op->worker, false);
	hs_herald_finish(book, op);
	book->unsettled = true;
}

void hs_herald_track_confirmed(struct hs_herald_book *book, struct hs_herald_line *line)
{
	line->watching = true;
	book->tell_all = true;
	book->unsettled = true;
}

void hs_herald_track_refused(struct hs_herald_book *book, struct hs_herald_line *line,
			     struct hs_bytes error)
{
	while (!hs_list_empty(&book->track_waits)) {
		struct hs_herald_wait *wait =
			hs_list_entry(book->track_waits.next, struct hs_herald_wait, of_topic);

		hs_herald_fail(book, wait->op, "%.*s", (int)error.len, error.data);
		hs_herald_wait_end(&wait);
	}
	line->doom = "it refuses to tell which keys change";
}

void hs_herald_track_late(struct hs_herald_book *book, struct hs_herald_wait *wait)
{
	const char *where = "none of the engine's servers has answered yet", *why = "";

	for (struct hs_link *link = book->lines.next; link != &book->lines; link = link->next) {
		const struct hs_herald_line *line =
			hs_list_entry(link, struct hs_herald_line, link);

		if (!line->tracks || !line->master || line->watching)
			continue;
		where = line->text;
		why = line->why[0] ? line->why : "it does not answer";
	}
	hs_herald_fail(book, wait->op, "CLUSTERDOWN cannot watch which keys change: %s%s%s", where,
		       *why ? ": " : "", why);
	hs_herald_wait_end(&wait);
	book->unsettled = true;
}

/* ---- what changed ---- */

static void note_key(struct hs_herald_book *book, struct hs_bytes key)
{
	if (book->keys_count == book->keys_cap) {
		book->keys_cap = book->keys_cap ? book->keys_cap * 2 : KEYS_MIN;
		book->keys = hs_mem_realloc(book->keys, book->keys_cap * sizeof *book->keys);
	}
	book->keys[book->keys_count++] = key;
}

bool hs_herald_track_hear(struct hs_herald_book *book, struct hs_walk *walk)
{
	struct hs_answer head;
	struct hs_bytes key;

	if (hs_walk_next(walk, &head) < 0)
		return false;
	if (head.type == HS_ANSWER_NULL) {
		book->tell_all = true;
		return true;
	}
	if (head.type != HS_ANSWER_ARRAY)
		return false;
	for (int64_t i = 0; i < head.count; i++) {
		if (hs_walk_text(walk, &key) < 0)
			return false;
		note_key(book, key);
	}
	return true;
}

void hs_herald_track_flush(struct hs_herald_book *book)
{
	struct hs_news news = {
		.kind = HS_NEWS_CHANGED,
		.keys = book->keys,
		.keys_count = book->keys_count,
	};

	/* Everything, told at the end of this event, says it all. */
	if (book->keys_count > 0 && !book->tell_all && hs_herald_any(&book->trackers))
		book->calls->news(book->context, hs_news_create(&news));
	book->keys_count = 0;
	if (book->keys_cap > KEYS_KEEP) {
		hs_mem_free(&book->keys);
		book->keys_cap = 0;
	}
}

/* ---- whether all is watched ---- */

static bool is_silent(const struct hs_herald_book *book, const struct hs_herald_line *line)
{
	uint64_t since = line->heard_ms > line->ping_ms ? line->heard_ms : line->ping_ms;

	return line->ping_ms > 0 && book->now_ms - since >= HS_HERALD_SUSPECT_MS;
}

static bool all_watched(const struct hs_herald_book *book)
{
	uint32_t watched = 0;

	for (struct hs_link *link = book->lines.next; link != &book->lines; link = link->next) {
		const struct hs_herald_line *line =
			hs_list_entry(link, struct hs_herald_line, link);

		if (line->tracks && line->master && line->watching && !is_silent(book, line))
			watched++;
	}
	return book->masters_count > 0 && watched == book->masters_count;
}

static void start_trackers(struct hs_herald_book *book)
{
	while (!hs_list_empty(&book->track_waits)) {
		struct hs_herald_wait *wait =
			hs_list_entry(book->track_waits.next, struct hs_herald_wait, of_topic);

		hs_herald_set(&book->trackers, wait->op->worker, true);
		hs_herald_finish(book, wait->op);
		hs_herald_wait_end(&wait);
	}
}

void hs_herald_track_check(struct hs_herald_book *book)
{
	bool covered = hs_herald_tracking(book) && all_watched(book);

	if (covered != book->covered)
		book->tell_all = true;
	if (!covered && book->now_ms - book->told_ms >= HS_HERALD_TELL_MS)
		book->tell_all = true;
	book->covered = covered;
	if (book->tell_all && hs_herald_any(&book->trackers)) {
		struct hs_news news = {.kind = HS_NEWS_CHANGED_ALL};

		book->calls->news(book->context, hs_news_create(&news));
		book->told_ms = book->now_ms;
	}
	book->tell_all = false;
	if (covered)
		start_trackers(book);
}
