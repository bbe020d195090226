/* Glob patterns as Redis matches them (KEYS, SCAN, CONFIG GET, rules): * ? [a-z] [^a-z] \x. */
#ifndef HS_BASE_GLOB_H
#define HS_BASE_GLOB_H

#include "base/bytes.h"

#include <stdbool.h>

bool hs_glob_match(struct hs_bytes pattern, struct hs_bytes text, bool ignore_case);
/* Whether a text may fit others than itself. */
bool hs_glob_is_pattern(struct hs_bytes text);

#endif
