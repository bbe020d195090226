/* The mitigations, in the order in which requests pass them. */
#ifndef HS_CORE_STAGES_H
#define HS_CORE_STAGES_H

#include "core/stage.h"

extern const struct hs_stage hs_stage_cache, hs_stage_copies, hs_stage_fold, hs_stage_versions;

extern const struct hs_stage *const hs_stages[];

#endif
