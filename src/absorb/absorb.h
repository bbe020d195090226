/* The mitigations that take load off a hot key before it reaches the engine, as stages (core/stage.h):
 *
 *     cache/   answers reads from cache entries, fetches each missing value once (single-flight), writes SETs through
 *     fold/    combines waiting requests for one key into one or two engine requests
 *     copies/  stores a hot value under several keys on different partitions and spreads reads over them
 *
 * Beside them lies what cache and copies share: entry.h (a cache entry and its freshness), query.c (the
 * signature of a read), shared.h (the cache shared between workers, and write versions of keys), versions.h
 * (the stage that counts writes, read-your-writes). plain_set.h is shared by cache and fold.
 *
 * This folder knows the core, commands, contracts, the wire format and tracking sessions
 * (base/tracking_session.h). It must not know sockets, the engine's kind (only the facts in struct
 * hs_core_world), or one mitigation another. Each stage runs on its worker's thread; shared.h is called by all
 * workers.
 *
 * On a bad day (memory full, versions collide) a request goes to the engine as if the mitigation were off.
 * Exceptions: fold answers BUSY beyond fold-waiters-max; cache may answer with a stale entry while the server
 * is away (stale-if-error). Law 6 (limits) and law 7 (mitigations can be turned off) hold for all of them. */
#ifndef HS_ABSORB_ABSORB_H
#define HS_ABSORB_ABSORB_H

#include "core/stage.h"

extern const struct hs_stage hs_stage_cache, hs_stage_copies, hs_stage_fold;

#endif
