#include "base/words.h"

#include <stdio.h>

char *hs_words_join(const char *const *words, const char *between, const char *last, char *text,
		    size_t size)
{
	size_t at = 0;

	for (size_t i = 0; words[i] && at < size; i++)
		at += (size_t)snprintf(text + at, size - at, "%s%s",
				       i == 0	      ? ""
				       : words[i + 1] ? between
						      : last,
				       words[i]);
	return text;
}
