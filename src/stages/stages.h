/* The row of stages, and the table of commands: what stands above the core, for serve/ and sim/ to hand to
 * it. */
#ifndef HS_STAGES_STAGES_H
#define HS_STAGES_STAGES_H

#include "core/commands.h"
#include "core/stage.h"

extern const struct hs_stage *const hs_stages[]; /* NULL at the end */
extern const struct hs_core_commands hs_commands;

#endif
