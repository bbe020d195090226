/* Scripts that passed by, by their digest: a server that has lost one (a failover, a restart, a new
 * node) is given it again, and nobody sees NOSCRIPT for a script that was loaded. Shared by the
 * workers; bounded, the oldest goes first. */
#ifndef HS_ENGINE_REDIS_SCRIPTS_H
#define HS_ENGINE_REDIS_SCRIPTS_H

#include "base/buf.h"
#include "core/op.h"

#include <stdbool.h>

struct hs_scripts;

struct hs_scripts *hs_scripts_create(uint32_t workers);
void hs_scripts_destroy(struct hs_scripts **scripts);

/* Looks at what was answered: EVAL and SCRIPT LOAD carry scripts, which the server has if it did not
 * refuse them, and SCRIPT FLUSH has it forget all of them, which is meant for us as well. */
void hs_scripts_note(struct hs_scripts *scripts, const struct hs_op *op);

/* Appends the script of a digest in 40 hexadecimal digits of either case. */
bool hs_scripts_find(struct hs_scripts *scripts, struct hs_bytes digest, struct hs_buf *script);

#endif
