/* src/stages assembles what stands above the core: the list of stages in call order, and the table of local
 * commands. serve/ and sim/ hand both to the core, so that src/core depends on neither absorb/, push/ nor
 * local/. Code below this folder must not include it, and it holds no logic of its own. Both tables are
 * constants: any thread may read them. */
#ifndef HS_STAGES_STAGES_H
#define HS_STAGES_STAGES_H

#include "core/stage.h"
#include "local/local.h" /* hs_commands, for callers of this header */

extern const struct hs_stage *const hs_stages[]; /* NULL at the end */

#endif
