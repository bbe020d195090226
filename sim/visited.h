/* The set of positions that a search has visited. A row has a place (a fixed number of words) and the set of what
 * was used up to get there (bits). A search that reaches the same place again, having used as much or more, need not
 * go on. */
#ifndef HS_SIM_VISITED_H
#define HS_SIM_VISITED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hs_sim_visited {
	/* Of one row: words of the place, then words of the used set. */
	size_t place_words, used_words;
	/* Open addressing: for each entry a word that says whether it is taken, and the row. Up to a number of rows
	 * of one place follow each other and are compared as sets; further rows are only found if they are equal. */
	uint64_t *table;
	size_t cap, count;
};

/* Whether the row was visited; marks it as visited. */
bool hs_sim_visited_before(struct hs_sim_visited *visited, const uint64_t *row);
void hs_sim_visited_deinit(
	struct hs_sim_visited *visited); /* empties the set; it may be used again */

#endif
