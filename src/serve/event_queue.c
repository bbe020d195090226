#include "serve/event_queue.h"

#include "base/limits.h"
#include "base/mem.h"

#define QUEUED_NEXT offsetof(struct hs_queued_event, next)

static struct hs_queued_event *create_queued(struct hs_event *event)
{
	struct hs_queued_event *queued = hs_mem_alloc(sizeof *queued);

	*queued = (struct hs_queued_event){.event = event};
	return queued;
}

static enum hs_event_queue_put drop(struct hs_event_queue *queue, struct hs_event *event)
{
	if (event->kind == HS_EVENT_CHANGED || event->kind == HS_EVENT_CHANGED_ALL)
		atomic_store(&queue->key_changes_lost, true);
	hs_event_unref(&event);
	return atomic_exchange(&queue->full, true) ? HS_EVENT_QUEUE_STILL_FULL
						   : HS_EVENT_QUEUE_FULL;
}

enum hs_event_queue_put hs_event_queue_put(struct hs_event_queue *queue, struct hs_event *event)
{
	struct hs_queued_event *queued;

	if (atomic_load_explicit(&queue->bytes, memory_order_relaxed) >= HS_EVENT_QUEUE_BYTES_MAX &&
	    event->kind != HS_EVENT_UNSUBSCRIBED)
		return drop(queue, event);
	queued = create_queued(event);
	atomic_fetch_add_explicit(&queue->bytes, hs_event_bytes(event), memory_order_relaxed);
	hs_mpsc_push(&queue->events, queued, queued, QUEUED_NEXT);
	return HS_EVENT_QUEUED;
}

struct hs_queued_event *hs_event_queue_take(struct hs_event_queue *queue)
{
	struct hs_queued_event *first = hs_mpsc_take(&queue->events, QUEUED_NEXT), *last = first;

	if (!atomic_exchange(&queue->key_changes_lost, false))
		return first;
	while (last && last->next)
		last = last->next;

	struct hs_queued_event *queued =
		create_queued(hs_event_create(&(struct hs_event){.kind = HS_EVENT_CHANGED_ALL}));

	atomic_fetch_add_explicit(&queue->bytes, hs_event_bytes(queued->event),
				  memory_order_relaxed);
	if (!last)
		return queued;
	last->next = queued;
	return first;
}

struct hs_queued_event *hs_event_queue_done(struct hs_event_queue *queue,
					    struct hs_queued_event *queued)
{
	struct hs_queued_event *next = queued->next;

	atomic_fetch_sub_explicit(&queue->bytes, hs_event_bytes(queued->event),
				  memory_order_relaxed);
	if (!next)
		atomic_store(&queue->full, false);
	hs_event_unref(&queued->event);
	hs_mem_release(queued);
	return next;
}
