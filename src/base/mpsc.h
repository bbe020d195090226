/* A lock-free queue from many threads to one: a stack whose top is swapped. A producer links a whole chain in
 * front with one compare-and-swap. The consumer takes everything with one exchange and reverses it, so that
 * items come out in the order of their push. No locks, no allocation.
 *
 * An item is any struct with a pointer to the next one; `next_at` is the offset of that pointer. Items belong
 * to the queue from push to take. A zeroed struct is an empty queue. It has no limit of its own. */
#ifndef HS_BASE_MPSC_H
#define HS_BASE_MPSC_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct hs_mpsc {
	_Atomic(void *) newest;
};

static inline void hs_mpsc_link(void *thing, size_t next_at, void *next)
{
	memcpy((char *)thing + next_at, &next, sizeof next);
}

static inline void *hs_mpsc_next(void *thing, size_t next_at)
{
	void *next;

	memcpy(&next, (char *)thing + next_at, sizeof next);
	return next;
}

/* Pushes a chain that leads from `newest` to `oldest`. Any thread. */
static inline void hs_mpsc_push(struct hs_mpsc *queue, void *newest, void *oldest, size_t next_at)
{
	void *top = atomic_load_explicit(&queue->newest, memory_order_relaxed);

	do {
		hs_mpsc_link(oldest, next_at, top);
	} while (!atomic_compare_exchange_weak_explicit(
		&queue->newest, &top, newest, memory_order_seq_cst, memory_order_relaxed));
}

static inline bool hs_mpsc_empty(struct hs_mpsc *queue)
{
	return atomic_load_explicit(&queue->newest, memory_order_seq_cst) == NULL;
}

/* Takes everything pushed so far, oldest first, ended by NULL. Only the consumer's thread. */
static inline void *hs_mpsc_take(struct hs_mpsc *queue, size_t next_at)
{
	void *thing = atomic_exchange_explicit(&queue->newest, NULL, memory_order_acquire);
	void *oldest = NULL;

	while (thing) {
		void *older = hs_mpsc_next(thing, next_at);

		hs_mpsc_link(thing, next_at, oldest);
		oldest = thing;
		thing = older;
	}
	return oldest;
}

/* Takes everything and walks it, oldest first. The body may free `thing` or pass it on. */
#define hs_mpsc_each(type, thing, queue, next_)                                                    \
	for (type *thing = hs_mpsc_take(queue, offsetof(type, next_)), *thing##_next;              \
	     thing && (thing##_next = thing->next_, true); thing = thing##_next)

#endif
