/* A tracking session: a connection with CLIENT TRACKING on which a cache reads values. The server sends
 * invalidations in order with its replies. So the reply to a request that was sent at time T shows that every
 * change before T has been told: the cache entries of the session are as fresh as its last liveness check.
 *
 * One thread keeps a session, all threads look at it, and it outlives every cache entry that points to it. */
#ifndef HS_BASE_TRACKING_SESSION_H
#define HS_BASE_TRACKING_SESSION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct hs_tracking_session {
	/* Cache entries made under another number are void: the connection was lost, or slots moved. */
	_Atomic uint64_t epoch;
	/* Mono time: all changes made before were told. UINT64_MAX: none can be missed. */
	_Atomic uint64_t caught_up_us;
	_Atomic bool check_wanted; /* a cache relies on it, and wants a liveness check soon */
};

static inline uint64_t hs_tracking_session_epoch(const struct hs_tracking_session *tracking_session)
{
	return atomic_load_explicit(&tracking_session->epoch, memory_order_acquire);
}

static inline uint64_t hs_tracking_session_caught_up_us(
	const struct hs_tracking_session *tracking_session)
{
	return atomic_load_explicit(&tracking_session->caught_up_us, memory_order_acquire);
}

static inline void hs_tracking_session_want_check(struct hs_tracking_session *tracking_session)
{
	if (!atomic_load_explicit(&tracking_session->check_wanted, memory_order_relaxed))
		atomic_store_explicit(&tracking_session->check_wanted, true, memory_order_relaxed);
}

#endif
