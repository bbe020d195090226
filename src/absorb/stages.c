#include "absorb/stages.h"

const struct hs_stage *const hs_stages[] = {&hs_stage_cache, &hs_stage_fold, &hs_stage_versions,
					    &hs_stage_copies, NULL};
