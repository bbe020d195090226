/* Errors of requests that name no command, or that no server can be asked. */
#ifndef HS_CORE_UNKNOWN_H
#define HS_CORE_UNKNOWN_H

#include "core/state.h"

enum { HS_ENGINE_UNAVAILABLE_BYTES = 512 };

/* Append the error of a request that names no command, no subcommand of `parent`, or the
 * wrong number of arguments. */
void hs_unknown_command(const struct hs_core *core, const struct hs_call *call,
			struct hs_buf *text);
void hs_unknown_subcommand(const struct hs_core *core, const struct hs_command *parent,
			   struct hs_bytes name, struct hs_buf *text);
void hs_unknown_arity(const struct hs_command *command, struct hs_buf *text);
/* The error for what the engine's servers should answer, while none is known. Returns `text`. */
const char *hs_engine_unavailable(const struct hs_core *core,
				  char text[HS_ENGINE_UNAVAILABLE_BYTES]);

#endif
