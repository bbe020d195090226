/* The options of the servers that clients may read and set through heatsink (CONFIG GET, CONFIG SET), one row
 * each. Every other CONFIG option belongs to heatsink. docs/ENGINES.md lists the rows. Read only; any thread. */
#ifndef HS_ENGINE_REDIS_SERVER_OPTIONS_H
#define HS_ENGINE_REDIS_SERVER_OPTIONS_H

#include "engine/engine.h"

enum { HS_SERVER_OPTIONS = 20 };

_Static_assert(HS_SERVER_OPTIONS <= 32, "a bit for each");

extern const struct hs_engine_option hs_server_options[HS_SERVER_OPTIONS];

/* The option's index in the table; HS_SERVER_OPTIONS: not found. */
size_t hs_server_option_find(struct hs_bytes name);

#endif
