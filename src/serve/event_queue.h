/* The event queue of one worker: events (core/event.h) that other threads have for it, in order and bounded. Any
 * thread puts, the worker takes. It knows neither subscriptions nor clients.
 *
 * Full queue: while HS_EVENT_QUEUE_BYTES_MAX wait, new events are dropped and counted by the caller. A dropped
 * pub/sub message is lost, as Redis loses one to a client that was cut off. If a key change was dropped, the
 * worker gets one HS_EVENT_CHANGED_ALL when it next takes: its tracking clients are told to drop everything they
 * cached. HS_EVENT_UNSUBSCRIBED is never dropped: it is rare, and nothing would make up for it.
 *
 * An event is shared by all workers and reference-counted; the queue holds one reference. Zero-initialised is
 * empty. */
#ifndef HS_SERVE_EVENT_QUEUE_H
#define HS_SERVE_EVENT_QUEUE_H

#include "base/mpsc.h"
#include "core/event.h"

struct hs_event_queue {
	struct hs_mpsc events;
	_Atomic uint64_t bytes;	       /* of all events in it */
	_Atomic bool full;	       /* an event was dropped since the queue was last empty */
	_Atomic bool key_changes_lost; /* the next take adds HS_EVENT_CHANGED_ALL */
};

struct hs_queued_event {
	struct hs_queued_event *next;
	struct hs_event *event;
};

enum hs_event_queue_put {
	HS_EVENT_QUEUED,
	HS_EVENT_QUEUE_FULL,	   /* dropped, the first of a row: log it */
	HS_EVENT_QUEUE_STILL_FULL, /* dropped */
};

/* Any thread. Takes the reference over. */
enum hs_event_queue_put hs_event_queue_put(struct hs_event_queue *queue, struct hs_event *event);

/* The worker's thread. All events, oldest first; NULL: none. */
struct hs_queued_event *hs_event_queue_take(struct hs_event_queue *queue);
/* The worker's thread. Releases this event and returns the next one. */
struct hs_queued_event *hs_event_queue_done(struct hs_event_queue *queue,
					    struct hs_queued_event *queued);

#endif
