#include "serve/event_queue.h"

#include "base/limits.h"
#include "base/mem.h"

#define NOTE_NEXT offsetof(struct hs_note, next)

static struct hs_note *create_note(struct hs_event *event)
{
	struct hs_note *note = hs_mem_alloc(sizeof *note);

	*note = (struct hs_note){.event = event};
	return note;
}

static enum hs_event_queue_put drop(struct hs_event_queue *box, struct hs_event *event)
{
	if (event->kind == HS_EVENT_CHANGED || event->kind == HS_EVENT_CHANGED_ALL)
		atomic_store(&box->keys_lost, true);
	hs_event_unref(&event);
	return atomic_exchange(&box->full, true) ? HS_NEWSBOX_STILL_FULL : HS_NEWSBOX_FULL;
}

enum hs_event_queue_put hs_event_queue_put(struct hs_event_queue *box, struct hs_event *event)
{
	struct hs_note *note;

	if (atomic_load_explicit(&box->bytes, memory_order_relaxed) >= HS_EVENT_QUEUE_BYTES_MAX &&
	    event->kind != HS_EVENT_UNSUBSCRIBED)
		return drop(box, event);
	note = create_note(event);
	atomic_fetch_add_explicit(&box->bytes, hs_event_bytes(event), memory_order_relaxed);
	hs_mpsc_push(&box->notes, note, note, NOTE_NEXT);
	return HS_NEWSBOX_TAKEN;
}

struct hs_note *hs_event_queue_take(struct hs_event_queue *box)
{
	struct hs_note *first = hs_mpsc_take(&box->notes, NOTE_NEXT), *last = first;

	if (!atomic_exchange(&box->keys_lost, false))
		return first;
	while (last && last->next)
		last = last->next;

	struct hs_note *note =
		create_note(hs_event_create(&(struct hs_event){.kind = HS_EVENT_CHANGED_ALL}));

	atomic_fetch_add_explicit(&box->bytes, hs_event_bytes(note->event), memory_order_relaxed);
	if (!last)
		return note;
	last->next = note;
	return first;
}

struct hs_note *hs_event_queue_done(struct hs_event_queue *box, struct hs_note *note)
{
	struct hs_note *next = note->next;

	atomic_fetch_sub_explicit(&box->bytes, hs_event_bytes(note->event), memory_order_relaxed);
	if (!next)
		atomic_store(&box->full, false);
	hs_event_unref(&note->event);
	hs_mem_release(note);
	return next;
}
