/* Many threads hand things to one: a stack whose top is swapped. A pusher links a whole chain in
 * front with one compare-and-swap; the taker takes everything with one exchange and turns it round,
 * so that things come out in the order in which they were pushed. No locks, no allocation.
 *
 * The things are structs of any kind with a pointer to the next one inside: `next_at` is its
 * offset. They belong to the queue from push to take. Zero-initialised is empty. */
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

/* A chain that leads from `newest` to `oldest`. Any thread. */
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

/* Everything pushed so far, oldest first, ended by NULL. The one taker's thread. */
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

/* Takes everything and walks it, oldest first. The body may give `thing` away or free it. */
#define hs_mpsc_each(type, thing, queue, next_)                                                    \
	for (type *thing = hs_mpsc_take(queue, offsetof(type, next_)), *thing##_next;              \
	     thing && (thing##_next = thing->next_, true); thing = thing##_next)

#endif
