/* The row of stages, and the table of commands: what stands above the core, for serve/ and sim/ to hand to
 * it. */
#ifndef HS_STAGES_STAGES_H
#define HS_STAGES_STAGES_H

#include "core/stage.h"
#include "local/local.h" /* hs_commands */

extern const struct hs_stage *const hs_stages[]; /* NULL at the end */

#endif
