#include "base/nearest.h"

#include <stdbool.h>
#include <stdint.h>

static int small(char c)
{
	return c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c;
}

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* The edit distance: letters to change, add, drop, or swap with their neighbour. `row` holds the distances of
 * a's first i letters to each prefix of b; `above` and `higher` are the rows of one and two letters less. */
static size_t distance(struct hs_bytes a, const char *b)
{
	enum { LONGEST = 48 };
	size_t rows[3][LONGEST + 1];
	size_t *row = rows[0], *above = rows[1], *higher = rows[2];
	size_t len = strlen(b);

	if (len > LONGEST || a.len > LONGEST)
		return SIZE_MAX;
	for (size_t j = 0; j <= len; j++)
		row[j] = j;
	for (size_t i = 1; i <= a.len; i++) {
		size_t *spare = higher;

		higher = above;
		above = row;
		row = spare;
		row[0] = i;
		for (size_t j = 1; j <= len; j++) {
			bool same = small(a.data[i - 1]) == small(b[j - 1]);

			row[j] = least(above[j] + 1, row[j - 1] + 1);
			row[j] = least(row[j], above[j - 1] + !same);
			if (i > 1 && j > 1 && small(a.data[i - 1]) == small(b[j - 2]) &&
			    small(a.data[i - 2]) == small(b[j - 1]))
				row[j] = least(row[j], higher[j - 2] + 1);
		}
	}
	return row[len];
}

void hs_nearest_try(struct hs_nearest *nearest, const char *name)
{
	size_t away = distance(nearest->word, name);

	if (away >= nearest->distance)
		return;
	nearest->distance = away;
	nearest->name = name;
}
