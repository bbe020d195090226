/* The tracking sessions of one worker's connections (base/tracking_session.h). The flow takes a session when it
 * first opens a fetch pipe to a server, and gives it back when that node is dropped. A session that was given back
 * is taken again under a new epoch. Sessions are freed only at the end, all together, because cache entries of
 * other workers may point to one.
 *
 * The worker's thread alone; created before it starts, destroyed when all workers have ended. */
#ifndef HS_ENGINE_REDIS_TRACKING_SESSIONS_H
#define HS_ENGINE_REDIS_TRACKING_SESSIONS_H

#include "base/tracking_session.h"

struct hs_tracking_sessions;

struct hs_tracking_sessions *hs_tracking_sessions_create(void);
void hs_tracking_sessions_destroy(struct hs_tracking_sessions **tracking_sessions);

struct hs_tracking_session *hs_tracking_sessions_get(
	struct hs_tracking_sessions *tracking_sessions);
/* Gives the session back and invalidates it. */
void hs_tracking_sessions_put(struct hs_tracking_session **tracking_session);

/* Raises the epoch: voids all cache entries made in the session before this call. */
void hs_tracking_sessions_invalidate(struct hs_tracking_session *tracking_session);
/* All invalidations for changes before `us` (monotonic clock) have arrived: their cache entries are void. */
void hs_tracking_sessions_caught_up(struct hs_tracking_session *tracking_session, uint64_t us);

#endif
