#include "absorb/cache/table.h"

#include "base/check.h"
#include "base/mem.h"

enum { BUCKETS_MIN = 64, BUCKETS_MANY = 4 /* for a key: it shrinks */ };

void hs_cache_table_init(struct hs_cache_table *table)
{
	*table = (struct hs_cache_table){.base = BUCKETS_MIN, .room = BUCKETS_MIN};
	table->buckets = hs_mem_zalloc(table->room * sizeof *table->buckets);
}

void hs_cache_table_deinit(struct hs_cache_table *table)
{
	hs_check(table->count == 0);
	hs_mem_free(&table->buckets);
}

static size_t bucket_of(const struct hs_cache_table *table, uint64_t key_hash)
{
	size_t bucket = key_hash & (table->base - 1);

	return bucket < table->split ? key_hash & (2 * table->base - 1) : bucket;
}

struct hs_cache_key *hs_cache_table_find(const struct hs_cache_table *table, uint64_t key_hash,
					 struct hs_bytes key)
{
	struct hs_cache_key *cached = table->buckets[bucket_of(table, key_hash)];

	while (cached && (cached->key_hash != key_hash || !hs_bytes_equal(cached->key, key)))
		cached = cached->next;
	return cached;
}

static void resize(struct hs_cache_table *table, size_t room)
{
	table->buckets = hs_mem_realloc(table->buckets, room * sizeof *table->buckets);
	table->room = room;
}

/* The next bucket of this round: its keys stay or go to the new one at the end. */
static void grow(struct hs_cache_table *table)
{
	struct hs_cache_key *cached, *next, **halves[2];

	if (table->base + table->split == table->room)
		resize(table, table->room * 2);
	cached = table->buckets[table->split];
	halves[0] = &table->buckets[table->split];
	halves[1] = &table->buckets[table->base + table->split];
	*halves[0] = *halves[1] = NULL;
	for (; cached; cached = next) {
		struct hs_cache_key **half = halves[(cached->key_hash & table->base) != 0];

		next = cached->next;
		cached->next = *half;
		*half = cached;
	}
	if (++table->split == table->base) {
		table->base *= 2;
		table->split = 0;
	}
}

/* The last bucket joins the one that it was split from. */
static void shrink(struct hs_cache_table *table)
{
	struct hs_cache_key **end;

	if (table->split == 0) {
		table->base /= 2;
		table->split = table->base;
	}
	table->split--;
	end = &table->buckets[table->split];
	while (*end)
		end = &(*end)->next;
	*end = table->buckets[table->base + table->split];
	if (table->room > BUCKETS_MIN && table->base + table->split <= table->room / 4)
		resize(table, table->room / 2);
}

void hs_cache_table_add(struct hs_cache_table *table, struct hs_cache_key *cached)
{
	struct hs_cache_key **bucket;

	if (++table->count > table->base + table->split)
		grow(table);
	bucket = &table->buckets[bucket_of(table, cached->key_hash)];
	cached->next = *bucket;
	*bucket = cached;
}

static bool is_sparse(const struct hs_cache_table *table)
{
	size_t buckets = table->base + table->split;

	return buckets > BUCKETS_MIN && table->count < buckets / BUCKETS_MANY;
}

void hs_cache_table_remove(struct hs_cache_table *table, struct hs_cache_key *cached)
{
	struct hs_cache_key **link = &table->buckets[bucket_of(table, cached->key_hash)];

	while (*link != cached)
		link = &(*link)->next;
	*link = cached->next;
	table->count--;
	/* More than one at a time, or it would lag behind the keys. */
	for (size_t i = 0; i < 2 * BUCKETS_MANY && is_sparse(table); i++)
		shrink(table);
}
