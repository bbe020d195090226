#include "base/hash_table.h"

#include "base/check.h"
#include "base/mem.h"

enum { BUCKETS_MIN = 64, BUCKETS_MANY = 4 /* buckets per node at which it shrinks */ };

void hs_hash_table_init(struct hs_hash_table *table)
{
	*table = (struct hs_hash_table){.base = BUCKETS_MIN, .room = BUCKETS_MIN};
	table->buckets = hs_mem_zalloc(table->room * sizeof *table->buckets);
}

void hs_hash_table_deinit(struct hs_hash_table *table)
{
	hs_check(table->count == 0);
	hs_mem_free(&table->buckets);
}

static size_t buckets_count(const struct hs_hash_table *table)
{
	return table->base + table->split;
}

static void resize(struct hs_hash_table *table, size_t room)
{
	table->buckets = hs_mem_realloc(table->buckets, room * sizeof *table->buckets);
	table->room = room;
}

/* Splits the next bucket of this round: its nodes stay, or go to the new bucket at the end. */
static void grow(struct hs_hash_table *table)
{
	struct hs_hash_node *node, *next, **halves[2];

	if (buckets_count(table) == table->room)
		resize(table, table->room * 2);
	node = table->buckets[table->split];
	halves[0] = &table->buckets[table->split];
	halves[1] = &table->buckets[buckets_count(table)];
	*halves[0] = *halves[1] = NULL;
	for (; node; node = next) {
		struct hs_hash_node **half = halves[(node->hash & table->base) != 0];

		next = node->next;
		node->next = *half;
		*half = node;
	}
	if (++table->split == table->base) {
		table->base *= 2;
		table->split = 0;
	}
}

/* Joins the last bucket with the one that it was split from. */
static void shrink(struct hs_hash_table *table)
{
	struct hs_hash_node **end;

	if (table->split == 0) {
		table->base /= 2;
		table->split = table->base;
	}
	table->split--;
	end = &table->buckets[table->split];
	while (*end)
		end = &(*end)->next;
	*end = table->buckets[buckets_count(table)];
	if (table->room > BUCKETS_MIN && buckets_count(table) <= table->room / 4)
		resize(table, table->room / 2);
}

void hs_hash_table_add(struct hs_hash_table *table, struct hs_hash_node *node, uint64_t hash)
{
	struct hs_hash_node **bucket;

	if (++table->count > buckets_count(table))
		grow(table);
	bucket = &table->buckets[hs_hash_table_bucket(table, hash)];
	*node = (struct hs_hash_node){.next = *bucket, .hash = hash};
	*bucket = node;
}

/* After a removal: joins several buckets, so that the table shrinks as fast as its nodes leave. */
static void count_one_less(struct hs_hash_table *table)
{
	table->count--;
	for (size_t i = 0; i < 2 * BUCKETS_MANY && buckets_count(table) > BUCKETS_MIN &&
			   table->count < buckets_count(table) / BUCKETS_MANY;
	     i++)
		shrink(table);
}

void hs_hash_table_remove(struct hs_hash_table *table, struct hs_hash_node *node)
{
	struct hs_hash_node **link = &table->buckets[hs_hash_table_bucket(table, node->hash)];

	while (*link != node)
		link = &(*link)->next;
	*link = node->next;
	count_one_less(table);
}

/* Takes from the end, so that each empty bucket on the way is removed. */
struct hs_hash_node *hs_hash_table_take(struct hs_hash_table *table)
{
	struct hs_hash_node **last, *node;

	if (table->count == 0)
		return NULL;
	while (!table->buckets[buckets_count(table) - 1])
		shrink(table);
	last = &table->buckets[buckets_count(table) - 1];
	node = *last;
	*last = node->next;
	count_one_less(table);
	return node;
}

struct hs_hash_node *hs_hash_table_pick(const struct hs_hash_table *table, struct hs_prng *prng)
{
	size_t bucket = (size_t)hs_prng_below(prng, buckets_count(table));

	while (!table->buckets[bucket])
		bucket = (bucket + 1) % buckets_count(table);
	return table->buckets[bucket];
}

struct hs_hash_node *hs_hash_table_after(const struct hs_hash_table *table,
					 const struct hs_hash_node *node)
{
	size_t bucket = node ? hs_hash_table_bucket(table, node->hash) + 1 : 0;

	if (node && node->next)
		return node->next;
	while (bucket < buckets_count(table) && !table->buckets[bucket])
		bucket++;
	return bucket < buckets_count(table) ? table->buckets[bucket] : NULL;
}
