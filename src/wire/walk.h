/* Walks through a whole reply, element by element, for parsers of servers' replies. A server may
 * send anything, so every step is checked, and everything unexpected is HS_EPROTO, a truncated
 * reply too. RESP3 maps and the flat arrays that RESP2 has instead look the same. Copies nothing.
 * No shared state: any thread, one walk per thread; results point into the reply. */
#ifndef HS_WIRE_WALK_H
#define HS_WIRE_WALK_H

#include "base/err.h"
#include "wire/parse_reply.h"

#include <stdbool.h>

struct hs_walk {
	const char *data;
	size_t len;
};

/* Skips the next element with everything inside it. */
HS_MUSTCHECK static inline int hs_walk_skip(struct hs_walk *walk)
{
	int64_t used = hs_parse_reply_length(walk->data, walk->len);

	if (used <= 0)
		return HS_EPROTO;
	walk->data += used;
	walk->len -= (size_t)used;
	return 0;
}

/* Reads the next element, of an aggregate only the header. Attributes are skipped. */
HS_MUSTCHECK static inline int hs_walk_next(struct hs_walk *walk, struct hs_parsed_reply *parsed)
{
	for (;;) {
		int64_t used = hs_parse_reply_head(parsed, walk->data, walk->len);

		if (used <= 0)
			return HS_EPROTO;
		walk->data += used;
		walk->len -= (size_t)used;
		if (parsed->type != HS_PARSED_ATTRIBUTE)
			return 0;
		for (int64_t i = 0; i < parsed->count * 2; i++) {
			if (hs_walk_skip(walk) < 0)
				return HS_EPROTO;
		}
	}
}

/* Reads the header of an array or set. */
HS_MUSTCHECK static inline int hs_walk_array(struct hs_walk *walk, int64_t *count)
{
	struct hs_parsed_reply parsed;

	if (hs_walk_next(walk, &parsed) < 0 || parsed.type != HS_PARSED_ARRAY)
		return HS_EPROTO;
	*count = parsed.count;
	return 0;
}

/* Reads the header of a map of `count` pairs, or of an array in its place. */
HS_MUSTCHECK static inline int hs_walk_map(struct hs_walk *walk, int64_t *count)
{
	struct hs_parsed_reply parsed;

	if (hs_walk_next(walk, &parsed) < 0)
		return HS_EPROTO;
	if (parsed.type == HS_PARSED_ARRAY && parsed.count % 2 == 0)
		*count = parsed.count / 2;
	else if (parsed.type == HS_PARSED_MAP)
		*count = parsed.count;
	else
		return HS_EPROTO;
	return 0;
}

HS_MUSTCHECK static inline int hs_walk_int(struct hs_walk *walk, int64_t min, int64_t max,
					   int64_t *value)
{
	struct hs_parsed_reply parsed;

	if (hs_walk_next(walk, &parsed) < 0 || parsed.type != HS_PARSED_INT ||
	    parsed.integer < min || parsed.integer > max)
		return HS_EPROTO;
	*value = parsed.integer;
	return 0;
}

/* Reads a string; null is a string of length 0. */
HS_MUSTCHECK static inline int hs_walk_text(struct hs_walk *walk, struct hs_bytes *text)
{
	struct hs_parsed_reply parsed;

	if (hs_walk_next(walk, &parsed) < 0)
		return HS_EPROTO;
	if (parsed.type == HS_PARSED_NULL)
		*text = (struct hs_bytes){"", 0};
	else if (parsed.type == HS_PARSED_BULK || parsed.type == HS_PARSED_STATUS)
		*text = parsed.text;
	else
		return HS_EPROTO;
	return 0;
}

#endif
