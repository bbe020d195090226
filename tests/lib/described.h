/* Composes a COMMAND reply from short lines, in RESP2 or RESP3 and with the fields that a server of Redis 6 or of
 * Redis 7 sends, for unit tests of command/learned.h. One line per command:
 *
 *     name arity flags first last step categories tips specs
 *
 * Words of one field are separated by commas; "-" is an empty field. Specs are separated by semicolons; each is
 * flags:search:find. search is an index ("2"), or a word and a start ("STREAMS/1"), or "?" for unknown. find is
 * last/step/limit for a range, or #number/first/step. A line that starts with a space is a subcommand of the last
 * line without one.
 *
 * Any thread may call: there is no state. The caller owns `lines` and `out`. The lines are not checked. */
#ifndef HS_TESTS_DESCRIBED_H
#define HS_TESTS_DESCRIBED_H

#include "wire/reply.h"

/* Appends the reply to the caller's `out`. `version` is 6 or 7. */
void describe_commands(const char *const *lines, size_t count, int resp, int version,
		       struct hs_buf *out);

/* Commands of Redis 7.0 that tests use, with Redis's own descriptions. */
extern const char *const described_redis[];
extern const size_t described_redis_count;

#endif
