/* The ghost list is a set-associative table: each hash belongs to one set of WAYS cells, and a new hash replaces
 * the oldest hash of a full set. A hash counts as remembered only while fewer than `keys` hashes were added after
 * it. */
#include "absorb/cache/ghosts.h"

#include "base/mem.h"

enum { WAYS = 4, SETS_MIN = 64 };

void hs_ghosts_deinit(struct hs_ghosts *ghosts)
{
	hs_mem_free(&ghosts->cells);
	*ghosts = (struct hs_ghosts){0};
}

/* Gives the table 2 to 16 cells for each key, so that sets seldom overflow. Resizing forgets all hashes, which
 * matters little while a cache grows. */
static void fit(struct hs_ghosts *ghosts, size_t keys)
{
	size_t sets = ghosts->sets ? ghosts->sets : SETS_MIN;

	while (sets * WAYS < keys * 2)
		sets *= 2;
	while (sets > SETS_MIN && sets * WAYS > keys * 16)
		sets /= 2;
	if (sets == ghosts->sets)
		return;
	hs_mem_free(&ghosts->cells);
	ghosts->cells = hs_mem_zalloc(sets * WAYS * sizeof *ghosts->cells);
	ghosts->sets = sets;
}

/* The part of the hash that a cell stores: the upper bits, because the lower bits choose the set. Never 0, which
 * marks an empty cell. */
static uint32_t part_of(uint64_t hash)
{
	return (uint32_t)(hash >> 32) | 1;
}

static uint64_t *set_of(struct hs_ghosts *ghosts, uint64_t hash)
{
	return &ghosts->cells[(hash & (ghosts->sets - 1)) * WAYS];
}

static uint32_t age_of(const struct hs_ghosts *ghosts, uint64_t cell)
{
	return ghosts->now - (uint32_t)cell;
}

void hs_ghosts_add(struct hs_ghosts *ghosts, uint64_t hash, size_t keys)
{
	uint64_t *set, *oldest;

	fit(ghosts, keys);
	set = oldest = set_of(ghosts, hash);
	for (size_t i = 0; i < WAYS; i++) {
		if (set[i] == 0 || (uint32_t)(set[i] >> 32) == part_of(hash)) {
			oldest = &set[i];
			break;
		}
		if (age_of(ghosts, set[i]) > age_of(ghosts, *oldest))
			oldest = &set[i];
	}
	*oldest = (uint64_t)part_of(hash) << 32 | ++ghosts->now;
}

bool hs_ghosts_take(struct hs_ghosts *ghosts, uint64_t hash, size_t keys)
{
	uint64_t *set;

	if (!ghosts->sets)
		return false;
	set = set_of(ghosts, hash);
	for (size_t i = 0; i < WAYS; i++) {
		bool recent;

		if ((uint32_t)(set[i] >> 32) != part_of(hash))
			continue;
		recent = age_of(ghosts, set[i]) < keys;
		set[i] = 0;
		return recent;
	}
	return false;
}
