/* The order of the stages is part of the design. On the way out a request passes them from first to last, on
 * the way back from last to first.
 *
 *     push      Remembers what a client that caches by itself (CLIENT TRACKING) reads. It hears of every
 *               command that such a client hands over, whatever stage takes it.
 *     cache     Answers reads. What it answers, or takes until its fetch is back, no stage behind it sees.
 *     fold      Joins what reaches the engine for one hot key. Its batches are internal calls that enter
 *               behind it, so that the stages behind it see a batch as one operation. It folds what departs right
 *               after it was admitted: what a stage before it delays goes by.
 *     versions  Counts writes that leave and that are answered, whoever sends them: a batch of fold, a SET
 *               that the cache writes through, a client's own. The cache asks it which commands must wait
 *               for reads that travel apart, of copies too: CLIENT LIST says held=cache. On the way back it comes
 *               before fold and cache: both tell clients of a write whose version is bumped already.
 *     copies    Sends reads to copies: reads of clients that nothing absorbed, and those that fold made of
 *               many. It asks versions whether a write is in flight.
 *
 * A stage may ask whether one behind it serves a key (hs_stage_served_behind): the cache does not fetch a
 * value that is too large for it and that has copies. */
#include "stages/stages.h"

#include "absorb/absorb.h"
#include "absorb/versions.h"
#include "push/push.h"

const struct hs_stage *const hs_stages[] = {
	&hs_stage_push, &hs_stage_cache, &hs_stage_fold, &hs_stage_versions, &hs_stage_copies, NULL,
};
