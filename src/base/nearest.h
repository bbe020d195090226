/* "Did you mean …?": of some names, the one nearest to a mistyped word. Nothing is held but what the
 * caller hands in; the names stay the caller's. */
#ifndef HS_BASE_NEAREST_H
#define HS_BASE_NEAREST_H

#include "base/words.h"

struct hs_nearest {
	struct hs_bytes word;
	const char *name; /* the nearest so far; NULL: none is near enough to be meant */
	size_t distance;  /* letters that it differs in; two that are swapped count once */
};

static inline struct hs_nearest hs_nearest_to(struct hs_bytes word)
{
	/* Half of its letters may be wrong. */
	return (struct hs_nearest){.word = word, .distance = word.len / 2 + 1};
}

void hs_nearest_try(struct hs_nearest *nearest, const char *name);
/* Each of a list (base/words.h). */
static inline void hs_nearest_try_words(struct hs_nearest *nearest, const char *const *words)
{
	for (; *words; words++)
		hs_nearest_try(nearest, *words);
}

#endif
