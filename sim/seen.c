#include "sim/seen.h"

#include "base/hash.h"
#include "base/mem.h"

enum { PLACE_TRIES = 24 };

static size_t words_of(const struct hs_sim_seen *seen)
{
	return 1 + seen->place_words + seen->used_words;
}

/* Whether everything in `a` is in `b`. */
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

/* Where a row is that makes this one needless, or where this one belongs. */
static uint64_t *find(const struct hs_sim_seen *seen, const uint64_t *row)
{
	size_t place = seen->place_words, mask = seen->cap - 1, tries = 0;
	uint64_t hash = hash_of(row, place);
	uint64_t *at;

	for (size_t i = hash & mask; tries < PLACE_TRIES; i = (i + 1) & mask, tries++) {
		at = seen->table + i * words_of(seen);
		if (at[0] == 0 || (at[0] == (hash | 1) && memcmp(at + 1, row, place * 8) == 0 &&
				   within(at + 1 + place, row + place, seen->used_words)))
			return at;
	}
	hash = hash_of(row, place + seen->used_words);
	for (size_t i = hash & mask;; i = (i + 1) & mask) {
		at = seen->table + i * words_of(seen);
		if (at[0] == 0 ||
		    memcmp(at + 1, row, (place + seen->used_words) * sizeof *row) == 0)
			return at;
	}
}

static void grow(struct hs_sim_seen *seen)
{
	struct hs_sim_seen old = *seen;
	size_t words = words_of(seen);

	seen->cap = old.cap ? old.cap * 2 : 64;
	seen->table = hs_mem_zalloc(seen->cap * words * sizeof *seen->table);
	seen->count = 0;
	for (size_t i = 0; i < old.cap; i++) {
		if (old.table[i * words])
			hs_sim_seen_before(seen, old.table + i * words + 1);
	}
	hs_mem_free(&old.table);
}

bool hs_sim_seen_before(struct hs_sim_seen *seen, const uint64_t *row)
{
	uint64_t *at;

	if (seen->count * 2 >= seen->cap)
		grow(seen);
	at = find(seen, row);
	if (at[0])
		return true;
	at[0] = hash_of(row, seen->place_words) | 1;
	memcpy(at + 1, row, (words_of(seen) - 1) * sizeof *at);
	seen->count++;
	return false;
}

void hs_sim_seen_deinit(struct hs_sim_seen *seen)
{
	hs_mem_free(&seen->table);
	seen->cap = seen->count = 0;
}
