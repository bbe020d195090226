/* What a search has tried already: where it stood (a row of words, all of the same length), and what
 * it had used up to get there (a set, as bits). Whoever stands there again and has used up as much or
 * more need not try again. */
#ifndef HS_SIM_VISITED_H
#define HS_SIM_VISITED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hs_sim_visited {
	size_t place_words, used_words; /* of one row: the place, and behind it what was used */
	/* Open addressing: a word that says whether it is taken, and the row. Rows of one place
	 * follow each other, up to a number; more of them are found by the whole row, and only if it
	 * is the same. */
	uint64_t *table;
	size_t cap, count;
};

/* Whether it was tried before; from now on it was. */
bool hs_sim_visited_before(struct hs_sim_visited *visited, const uint64_t *row);
void hs_sim_visited_deinit(struct hs_sim_visited *visited); /* nothing was: it may begin again */

#endif
