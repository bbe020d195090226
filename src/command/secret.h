/* Which arguments of a request are passwords: SLOWLOG and the log leave them out. It looks at the
 * words of the request alone, so it also covers refused requests and commands that only a server
 * knows. Pure; any thread. */
#ifndef HS_COMMAND_SECRET_H
#define HS_COMMAND_SECRET_H

#include "base/bytes.h"

#include <stdbool.h>
#include <stddef.h>

/* Shown in place of a password, as in Redis. */
#define HS_SECRET_TEXT "(redacted)"

/* Is argument `at` a password, or part of a request about users that may hold one? */
bool hs_secret_at(size_t argc, const struct hs_bytes *argv, size_t at);

/* Is this rule of ACL SETUSER a password or the hash of one? ">password", "!hash". */
bool hs_secret_rule(struct hs_bytes rule);

#endif
