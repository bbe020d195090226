/* The mitigations that absorb reads and writes of hot keys, as stages (core/stage.h). */
#ifndef HS_ABSORB_ABSORB_H
#define HS_ABSORB_ABSORB_H

#include "core/stage.h"

extern const struct hs_stage hs_stage_cache, hs_stage_copies, hs_stage_fold;

#endif
