/* A tracking session: a server connection with CLIENT TRACKING on which a cache reads values. The server sends
 * invalidations in order with its replies. So the reply to a request sent at time T shows that the
 * invalidations of all changes before T have arrived: the cache entries of the session are as fresh as its last
 * liveness check.
 *
 * Threads. The engine's thread of the connection writes `epoch` and `caught_up_us`. Any thread reads them and
 * may set `check_wanted`. The session outlives every cache entry that points to it; its owner is
 * engine/redis/tracking_sessions.h or the embedded engine.
 *
 * Bad day. The connection is lost or slots move: the epoch grows, and with it every cache entry of the session
 * ends. */
#ifndef HS_BASE_TRACKING_SESSION_H
#define HS_BASE_TRACKING_SESSION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct hs_tracking_session {
	/* Grows when the connection is lost or slots move. A cache entry stores the epoch of its read; after
	 * another epoch it is invalid. */
	_Atomic uint64_t epoch;
	/* Monotonic µs: the invalidations of all changes made before this time have arrived. UINT64_MAX: the
	 * engine reports every change itself. */
	_Atomic uint64_t caught_up_us;
	/* A cache needs a newer caught_up_us: send a liveness check soon. */
	_Atomic bool check_wanted;
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
