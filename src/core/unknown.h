/* Error texts for requests that name no known command, and for requests that no server can get. Worker's thread
 * only. */
#ifndef HS_CORE_UNKNOWN_H
#define HS_CORE_UNKNOWN_H

#include "core/state.h"

enum { HS_ENGINE_UNAVAILABLE_BYTES = 512 };

/* Append the error for an unknown command, an unknown subcommand of `parent`, or a wrong number of arguments. */
void hs_unknown_command(const struct hs_core *core, const struct hs_call *call,
			struct hs_buf *text);
void hs_unknown_subcommand(const struct hs_core *core, const struct hs_command *parent,
			   struct hs_bytes name, struct hs_buf *text);
void hs_unknown_arity(const struct hs_command *command, struct hs_buf *text);
/* The error for a request while the engine knows no server. Writes to `text` and returns it. */
const char *hs_engine_unavailable(const struct hs_core *core,
				  char text[HS_ENGINE_UNAVAILABLE_BYTES]);

#endif
