/* Enumerations by name: an option or parameter takes one word of a list, and its value is the word's index. */
#ifndef HS_BASE_WORDS_H
#define HS_BASE_WORDS_H

#include "base/bytes.h"

/* HS_WORDS("no", "yes"): a list ends with NULL. */
#define HS_WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* The index of the word, in any case; -1: not in the list. */
static inline int hs_words_index(const char *const *words, struct hs_bytes word)
{
	for (int i = 0; words[i]; i++) {
		if (hs_bytes_is_word(word, words[i]))
			return i;
	}
	return -1;
}

/* Joins the words for errors and help: "a, b or c" with `between` ", " and `last` " or ". Cut to fit. Returns
 * `text`. */
char *hs_words_join(const char *const *words, const char *between, const char *last, char *text,
		    size_t size);

#endif
