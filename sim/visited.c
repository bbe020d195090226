#include "sim/visited.h"

#include "base/hash.h"
#include "base/mem.h"

enum { PLACE_TRIES = 24 };

static size_t words_of(const struct hs_sim_visited *visited)
{
	return 1 + visited->place_words + visited->used_words;
}

/* Whether `a` is a subset of `b`. */
static bool within(const uint64_t *a, const uint64_t *b, size_t words)
{
	for (size_t i = 0; i < words; i++) {
		if (a[i] & ~b[i])
			return false;
	}
	return true;
}

static uint64_t hash_of(const uint64_t *row, size_t words)
{
	return hs_hash((struct hs_bytes){(const char *)row, words * 8}, words);
}

/* The place of a visited row that covers this one, or a free place for it. */
static uint64_t *find(const struct hs_sim_visited *visited, const uint64_t *row)
{
	size_t place = visited->place_words, mask = visited->cap - 1, tries = 0;
	uint64_t hash = hash_of(row, place);
	uint64_t *at;

	for (size_t i = hash & mask; tries < PLACE_TRIES; i = (i + 1) & mask, tries++) {
		at = visited->table + i * words_of(visited);
		if (at[0] == 0 || (at[0] == (hash | 1) && memcmp(at + 1, row, place * 8) == 0 &&
				   within(at + 1 + place, row + place, visited->used_words)))
			return at;
	}
	hash = hash_of(row, place + visited->used_words);
	for (size_t i = hash & mask;; i = (i + 1) & mask) {
		at = visited->table + i * words_of(visited);
		if (at[0] == 0 ||
		    memcmp(at + 1, row, (place + visited->used_words) * sizeof *row) == 0)
			return at;
	}
}

static void grow(struct hs_sim_visited *visited)
{
	struct hs_sim_visited old = *visited;
	size_t words = words_of(visited);

	visited->cap = old.cap ? old.cap * 2 : 64;
	visited->table = hs_mem_zalloc(visited->cap * words * sizeof *visited->table);
	visited->count = 0;
	for (size_t i = 0; i < old.cap; i++) {
		if (old.table[i * words])
			hs_sim_visited_before(visited, old.table + i * words + 1);
	}
	hs_mem_free(&old.table);
}

bool hs_sim_visited_before(struct hs_sim_visited *visited, const uint64_t *row)
{
	uint64_t *at;

	if (visited->count * 2 >= visited->cap)
		grow(visited);
	at = find(visited, row);
	if (at[0])
		return true;
	at[0] = hash_of(row, visited->place_words) | 1;
	memcpy(at + 1, row, (words_of(visited) - 1) * sizeof *at);
	visited->count++;
	return false;
}

void hs_sim_visited_deinit(struct hs_sim_visited *visited)
{
	hs_mem_free(&visited->table);
	visited->cap = visited->count = 0;
}
