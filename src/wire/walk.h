/* Walks through a whole reply, element by element, for parsers of what servers answer: a server may
 * send anything, so every step is checked and everything that does not fit is HS_EPROTO. Maps of
 * RESP3 and the flat arrays that RESP2 has for them look the same. Copies nothing. */
#ifndef HS_WIRE_WALK_H
#define HS_WIRE_WALK_H

#include "base/err.h"
#include "wire/answer.h"

#include <stdbool.h>

struct hs_walk {
	const char *data;
	size_t len;
};

/* Jumps over the next element with everything inside it. */
HS_MUSTCHECK static inline int hs_walk_skip(struct hs_walk *walk)
{
	int64_t used = hs_answer_length(walk->data, walk->len);

	if (used <= 0)
		return HS_EPROTO;
	walk->data += used;
	walk->len -= (size_t)used;
	return 0;
}

/* The next element; an aggregate's header only. Attributes are jumped over. */
HS_MUSTCHECK static inline int hs_walk_next(struct hs_walk *walk, struct hs_answer *answer)
{
	for (;;) {
		int64_t used = hs_answer_head(answer, walk->data, walk->len);

		if (used <= 0)
			return HS_EPROTO;
		walk->data += used;
		walk->len -= (size_t)used;
		if (answer->type != HS_ANSWER_ATTRIBUTE)
			return 0;
		for (int64_t i = 0; i < answer->count * 2; i++) {
			if (hs_walk_skip(walk) < 0)
				return HS_EPROTO;
		}
	}
}

/* An array (or set) of `count` elements. */
HS_MUSTCHECK static inline int hs_walk_array(struct hs_walk *walk, int64_t *count)
{
	struct hs_answer answer;

	if (hs_walk_next(walk, &answer) < 0 || answer.type != HS_ANSWER_ARRAY)
		return HS_EPROTO;
	*count = answer.count;
	return 0;
}

/* A map, or an array that stands for one, of `count` pairs. */
HS_MUSTCHECK static inline int hs_walk_map(struct hs_walk *walk, int64_t *count)
{
	struct hs_answer answer;

	if (hs_walk_next(walk, &answer) < 0)
		return HS_EPROTO;
	if (answer.type == HS_ANSWER_ARRAY && answer.count % 2 == 0)
		*count = answer.count / 2;
	else if (answer.type == HS_ANSWER_MAP)
		*count = answer.count;
	else
		return HS_EPROTO;
	return 0;
}

HS_MUSTCHECK static inline int hs_walk_int(struct hs_walk *walk, int64_t min, int64_t max,
					   int64_t *value)
{
	struct hs_answer answer;

	if (hs_walk_next(walk, &answer) < 0 || answer.type != HS_ANSWER_INT ||
	    answer.integer < min || answer.integer > max)
		return HS_EPROTO;
	*value = answer.integer;
	return 0;
}

/* A string; of length 0 when it is null. */
HS_MUSTCHECK static inline int hs_walk_text(struct hs_walk *walk, struct hs_bytes *text)
{
	struct hs_answer answer;

	if (hs_walk_next(walk, &answer) < 0)
		return HS_EPROTO;
	if (answer.type == HS_ANSWER_NULL)
		*text = (struct hs_bytes){"", 0};
	else if (answer.type == HS_ANSWER_BULK || answer.type == HS_ANSWER_STATUS)
		*text = answer.text;
	else
		return HS_EPROTO;
	return 0;
}

#endif
