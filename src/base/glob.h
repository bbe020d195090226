/* Glob patterns as Redis matches them (KEYS, SCAN, CONFIG GET, rules): * ? [a-z] [^a-z] \x. The cost of a match
 * is at most pattern length times text length, also for hostile patterns. */
#ifndef HS_BASE_GLOB_H
#define HS_BASE_GLOB_H

#include "base/bytes.h"

#include <stdbool.h>

bool hs_glob_match(struct hs_bytes pattern, struct hs_bytes text, bool ignore_case);
/* Whether the text has a wildcard: * ? [ */
bool hs_glob_is_pattern(struct hs_bytes text);

#endif
