/* A number that one thread adds to and any thread may read: a plain add on the owner's side, no
 * locked instruction, and no torn value on the reader's. */
#ifndef HS_BASE_COUNTER_H
#define HS_BASE_COUNTER_H

#include <stdatomic.h>
#include <stdint.h>

struct hs_counter {
	_Atomic uint64_t value;
};

static inline uint64_t hs_counter_get(const struct hs_counter *counter)
{
	return atomic_load_explicit(&counter->value, memory_order_relaxed);
}

static inline void hs_counter_set(struct hs_counter *counter, uint64_t value)
{
	atomic_store_explicit(&counter->value, value, memory_order_relaxed);
}

/* By the owning thread only. */
static inline void hs_counter_add(struct hs_counter *counter, uint64_t more)
{
	hs_counter_set(counter, hs_counter_get(counter) + more);
}

#endif
