#include "serve/newsbox.h"

#include "base/limits.h"
#include "base/mem.h"

#define NOTE_NEXT offsetof(struct hs_note, next)

static struct hs_note *create_note(struct hs_news *news)
{
	struct hs_note *note = hs_mem_alloc(sizeof *note);

	*note = (struct hs_note){.news = news};
	return note;
}

static enum hs_newsbox_put drop(struct hs_newsbox *box, struct hs_news *news)
{
	if (news->kind == HS_NEWS_CHANGED || news->kind == HS_NEWS_CHANGED_ALL)
		atomic_store(&box->keys_lost, true);
	hs_news_unref(&news);
	return atomic_exchange(&box->full, true) ? HS_NEWSBOX_STILL_FULL : HS_NEWSBOX_FULL;
}

enum hs_newsbox_put hs_newsbox_put(struct hs_newsbox *box, struct hs_news *news)
{
	struct hs_note *note;

	if (atomic_load_explicit(&box->bytes, memory_order_relaxed) >= HS_NEWSBOX_BYTES_MAX &&
	    news->kind != HS_NEWS_UNLISTENED)
		return drop(box, news);
	note = create_note(news);
	atomic_fetch_add_explicit(&box->bytes, hs_news_bytes(news), memory_order_relaxed);
	hs_mpsc_push(&box->notes, note, note, NOTE_NEXT);
	return HS_NEWSBOX_TAKEN;
}

struct hs_note *hs_newsbox_take(struct hs_newsbox *box)
{
	struct hs_note *first = hs_mpsc_take(&box->notes, NOTE_NEXT), *last = first;

	if (!atomic_exchange(&box->keys_lost, false))
		return first;
	while (last && last->next)
		last = last->next;

	struct hs_note *note =
		create_note(hs_news_create(&(struct hs_news){.kind = HS_NEWS_CHANGED_ALL}));

	atomic_fetch_add_explicit(&box->bytes, hs_news_bytes(note->news), memory_order_relaxed);
	if (!last)
		return note;
	last->next = note;
	return first;
}

struct hs_note *hs_newsbox_done(struct hs_newsbox *box, struct hs_note *note)
{
	struct hs_note *next = note->next;

	atomic_fetch_sub_explicit(&box->bytes, hs_news_bytes(note->news), memory_order_relaxed);
	if (!next)
		atomic_store(&box->full, false);
	hs_news_unref(&note->news);
	hs_mem_release(note);
	return next;
}
