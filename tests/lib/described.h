/* COMMAND's reply, written from short lines, in the dialect of choice and as much of it as a server
 * of Redis 6 or of Redis 7 sends:
 *
 *     name arity flags first last step categories tips specs
 *
 * Words of one field have commas between, "-" is an empty field. Of the specs, with semicolons
 * between, each is flags:search:find, where search is an index ("2") or a word and a start
 * ("STREAMS/1", "?" for unknown), and find is last/step/limit for a range or #number/first/step. A
 * line that starts with a space is a subcommand of the line before it that does not. */
#ifndef HS_TESTS_DESCRIBED_H
#define HS_TESTS_DESCRIBED_H

#include "wire/reply.h"

/* `out` is the caller's. `version` is 6 or 7. */
void describe_commands(const char *const *lines, size_t count, int resp, int version,
		       struct hs_buf *out);

/* The commands of Redis 7.0 that tests ask about, as it describes them. */
extern const char *const described_redis[];
extern const size_t described_redis_count;

#endif
