#include "base/nearest.h"

#include <stdint.h>

static int small(char c)
{
	return c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c;
}

/* How many letters must change to get from one word to the other. */
static size_t distance(struct hs_bytes a, const char *b)
{
	enum { LONGEST = 48 };
	size_t row[LONGEST + 1];
	size_t len = strlen(b);

	if (len > LONGEST || a.len > LONGEST)
		return SIZE_MAX;
	for (size_t j = 0; j <= len; j++)
		row[j] = j;
	for (size_t i = 1; i <= a.len; i++) {
		size_t diagonal = row[0];

		row[0] = i;
		for (size_t j = 1; j <= len; j++) {
			size_t change = diagonal + (small(a.data[i - 1]) != small(b[j - 1]));

			diagonal = row[j];
			row[j] = row[j] + 1 < row[j - 1] + 1 ? row[j] + 1 : row[j - 1] + 1;
			if (change < row[j])
				row[j] = change;
		}
	}
	return row[len];
}

void hs_nearest_try(struct hs_nearest *nearest, const char *name)
{
	size_t away = distance(nearest->word, name);

	if (away >= nearest->away)
		return;
	nearest->away = away;
	nearest->name = name;
}
