/* Somebody who would say if a value changed: for values of a Redis server, a connection with CLIENT
 * TRACKING that they were read on. What it vouches for is as fresh as its last proof of life: it hears
 * of changes in order, so that an answer to what it asked at a time shows that it has told of all that
 * happened before.
 *
 * One thread keeps a vouch, all threads look at it, and it outlives everything it vouches for. */
#ifndef HS_BASE_VOUCH_H
#define HS_BASE_VOUCH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct hs_vouch {
	/* What was vouched for under another number is void: the connection was lost, or slots moved. */
	_Atomic uint64_t epoch;
	/* Mono time: all changes made before were told. UINT64_MAX: none can be missed. */
	_Atomic uint64_t proved_us;
	_Atomic bool wanted; /* set by who relies on it: it is to prove itself again soon */
};

static inline uint64_t hs_vouch_epoch(const struct hs_vouch *vouch)
{
	return atomic_load_explicit(&vouch->epoch, memory_order_acquire);
}

static inline uint64_t hs_vouch_proved_us(const struct hs_vouch *vouch)
{
	return atomic_load_explicit(&vouch->proved_us, memory_order_acquire);
}

static inline void hs_vouch_want(struct hs_vouch *vouch)
{
	if (!atomic_load_explicit(&vouch->wanted, memory_order_relaxed))
		atomic_store_explicit(&vouch->wanted, true, memory_order_relaxed);
}

#endif
