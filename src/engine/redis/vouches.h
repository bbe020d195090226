/* The tracking sessions of one worker's connections (base/vouch.h). The flow takes one when a fetch pipe to a
 * server is first opened, and gives it back when the server has gone. A session that was given back is taken again
 * under a new epoch; none is freed before all are, because cache entries of other workers may point to it. The
 * worker's thread alone; created before it starts, destroyed when all workers have ended. */
#ifndef HS_ENGINE_REDIS_VOUCHES_H
#define HS_ENGINE_REDIS_VOUCHES_H

#include "base/vouch.h"

struct hs_vouches;

struct hs_vouches *hs_vouches_create(void);
void hs_vouches_destroy(struct hs_vouches **vouches);

struct hs_vouch *hs_vouches_get(struct hs_vouches *vouches);
void hs_vouches_put(struct hs_vouch **vouch); /* void from now on */

/* All cache entries made in the session until now are void. */
void hs_vouches_void(struct hs_vouch *vouch);
/* All changes made before were told. */
void hs_vouches_prove(struct hs_vouch *vouch, uint64_t us);

#endif
