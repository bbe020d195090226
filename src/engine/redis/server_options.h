/* The options of the servers that clients may ask for and set through heatsink (CONFIG GET, CONFIG SET),
 * one row each. Every other option of CONFIG is heatsink's own. docs/ENGINES.md lists the rows. */
#ifndef HS_ENGINE_REDIS_SERVER_OPTIONS_H
#define HS_ENGINE_REDIS_SERVER_OPTIONS_H

#include "engine/engine.h"

enum { HS_SERVER_OPTIONS = 20 };

_Static_assert(HS_SERVER_OPTIONS <= 32, "a bit for each");

extern const struct hs_engine_option hs_server_options[HS_SERVER_OPTIONS];

/* Its place in the table; HS_SERVER_OPTIONS: it is none of them. */
size_t hs_server_option_find(struct hs_bytes name);

#endif
