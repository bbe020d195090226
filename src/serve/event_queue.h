/* News on its way to one worker: a queue that any thread puts into and the worker empties, bounded.
 *
 * A worker that does not keep up must not fill the memory: while HS_EVENT_QUEUE_BYTES_MAX lie there, what
 * comes is dropped and counted. A message that is lost is lost; of keys that changed and were not
 * told, everything is said to have changed, as soon as the worker reads on. That a subscription was
 * ended is never dropped: there are not many of those.
 *
 * Zero-initialised is empty. A piece of news is shared by all workers; a box holds a reference. */
#ifndef HS_SERVE_EVENT_QUEUE_H
#define HS_SERVE_EVENT_QUEUE_H

#include "base/mpsc.h"
#include "core/event.h"

struct hs_event_queue {
	struct hs_mpsc events;
	_Atomic uint64_t bytes;	       /* lying here */
	_Atomic bool full;	       /* the last one was dropped */
	_Atomic bool key_changes_lost; /* to be told as HS_EVENT_CHANGED_ALL */
};

struct hs_queued_event {
	struct hs_queued_event *next;
	struct hs_event *event;
};

enum hs_event_queue_put {
	HS_EVENT_QUEUED,
	HS_EVENT_QUEUE_FULL, /* dropped, the first one: worth a line in the log */
	HS_EVENT_QUEUE_STILL_FULL,
};

/* Takes the reference over. Any thread. */
enum hs_event_queue_put hs_event_queue_put(struct hs_event_queue *queue, struct hs_event *event);

/* Everything there is, in its order; NULL: nothing. The worker's thread, like the next. */
struct hs_queued_event *hs_event_queue_take(struct hs_event_queue *queue);
/* Done with this one: the next. */
struct hs_queued_event *hs_event_queue_done(struct hs_event_queue *queue,
					    struct hs_queued_event *queued);

#endif
