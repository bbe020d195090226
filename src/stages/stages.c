/* The order of the stages is part of the design. On the way out a request passes them from first to last, on
 * the way back from last to first. core/stage.h explains `admit`, departing and internal calls.
 *
 *     push      Remembers the keys that a client with CLIENT TRACKING reads. It is first, so that it sees every
 *               command of such a client, even if a later stage answers it.
 *     cache     Answers reads. A read that it answers, or takes until its fetch is back, does not reach the
 *               stages behind.
 *     fold      Combines the requests for one hot key that reach the engine. Its batches are internal calls that
 *               enter behind it, so that the stages behind see a batch as one operation. It takes a request only
 *               if the request departs in the same dispatch as its `admit`; a request that an earlier stage has
 *               delayed is sent unfolded.
 *     versions  A key's version counts its writes (absorb/versions.h); the cache and copies use no value of an
 *               older version. This stage bumps the version when a write leaves and when it is answered, whether
 *               a batch of fold, a write-through of the cache or a client sends it. It also decides which
 *               commands must wait for reads that travel outside the connection's order (fetches, reads of
 *               copies). The cache enforces that, so CLIENT LIST shows held=cache. Replies pass versions before
 *               fold and cache: the version is bumped before either of them answers the client of a write.
 *     copies    Sends reads to copies: client reads that were not folded, and fold's batches of reads. It asks
 *               versions whether a write is in flight.
 *
 * A stage may ask whether one behind it serves reads of a key (hs_stage_served_behind): the cache does not
 * fetch a value that is too large for it and has copies. */
#include "stages/stages.h"

#include "absorb/absorb.h"
#include "absorb/versions.h"
#include "push/push.h"

const struct hs_stage *const hs_stages[] = {
	&hs_stage_push, &hs_stage_cache, &hs_stage_fold, &hs_stage_versions, &hs_stage_copies, NULL,
};
