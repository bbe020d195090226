/* "Did you mean …?": the name nearest to a mistyped word. It allocates nothing; the names stay the caller's. */
#ifndef HS_BASE_NEAREST_H
#define HS_BASE_NEAREST_H

#include "base/words.h"

struct hs_nearest {
	struct hs_bytes word;
	const char *name; /* the nearest so far; NULL: none is near enough */
	size_t distance;  /* edit distance of `name`; a transposition counts as one */
};

static inline struct hs_nearest hs_nearest_to(struct hs_bytes word)
{
	/* At most half of the letters may differ. */
	return (struct hs_nearest){.word = word, .distance = word.len / 2 + 1};
}

void hs_nearest_try(struct hs_nearest *nearest, const char *name);
/* Tries each word of a list (base/words.h). */
static inline void hs_nearest_try_words(struct hs_nearest *nearest, const char *const *words)
{
	for (; *words; words++)
		hs_nearest_try(nearest, *words);
}

#endif
