/* An intrusive hash table: the nodes lie in the user's entries. It finds all entries with a hash; the user
 * computes the hash and compares keys.
 *
 * Linear hashing: the table grows by one bucket when there are more entries than buckets, by splitting one
 * bucket in two, and shrinks by joining two when there are far fewer. So no call moves all entries at once.
 *
 * The table owns its array, and no entry. One thread. */
#ifndef HS_BASE_HASH_TABLE_H
#define HS_BASE_HASH_TABLE_H

#include "base/list.h" /* hs_list_entry */
#include "base/prng.h"

struct hs_hash_node {
	struct hs_hash_node *next; /* next in the same bucket */
	uint64_t hash;
};

struct hs_hash_table {
	struct hs_hash_node **buckets;
	size_t base; /* number of buckets when this round of splitting began; a power of two */
	/* Buckets 0 … split-1 have been split; the table has base + split buckets. */
	size_t split;
	size_t room;  /* capacity of `buckets` */
	size_t count; /* number of nodes */
};

/* The entry that contains a node; NULL for NULL. */
#define hs_hash_entry(node, type, member) ((type *)hs_hash_entry_at(node, offsetof(type, member)))

/* Walks the entries with a hash. The body may remove `entry` if it leaves the loop then. */
#define hs_hash_each(type, entry, table, its_hash, member)                                         \
	for (type *entry = hs_hash_entry(hs_hash_table_find(table, its_hash), type, member);       \
	     entry; entry = hs_hash_entry(hs_hash_next(&(entry)->member), type, member))

/* Walks all entries, in no order. The body must not add or remove any. */
#define hs_hash_each_of_all(type, entry, table, member)                                            \
	for (type *entry = hs_hash_entry(hs_hash_table_after(table, NULL), type, member); entry;   \
	     entry = hs_hash_entry(hs_hash_table_after(table, &(entry)->member), type, member))

void hs_hash_table_init(struct hs_hash_table *table);
void hs_hash_table_deinit(
	struct hs_hash_table *table); /* frees the array; the caller has removed all nodes */

void hs_hash_table_add(struct hs_hash_table *table, struct hs_hash_node *node, uint64_t hash);
void hs_hash_table_remove(struct hs_hash_table *table, struct hs_hash_node *node);

/* Removes any node and returns it; NULL: the table is empty. */
struct hs_hash_node *hs_hash_table_take(struct hs_hash_table *table);
/* A random node; the table is not empty. */
struct hs_hash_node *hs_hash_table_pick(const struct hs_hash_table *table, struct hs_prng *prng);
/* The next node in bucket order; for NULL the first. NULL: the end. */
struct hs_hash_node *hs_hash_table_after(const struct hs_hash_table *table,
					 const struct hs_hash_node *node);

static inline size_t hs_hash_table_bucket(const struct hs_hash_table *table, uint64_t hash)
{
	size_t bucket = hash & (table->base - 1);

	return bucket < table->split ? hash & (2 * table->base - 1) : bucket;
}

static inline struct hs_hash_node *hs_hash_with(struct hs_hash_node *node, uint64_t hash)
{
	while (node && node->hash != hash)
		node = node->next;
	return node;
}

/* The first node with the hash; NULL: none. */
static inline struct hs_hash_node *hs_hash_table_find(const struct hs_hash_table *table,
						      uint64_t hash)
{
	return hs_hash_with(table->buckets[hs_hash_table_bucket(table, hash)], hash);
}

/* The next node in the bucket with the same hash; NULL: none. */
static inline struct hs_hash_node *hs_hash_next(const struct hs_hash_node *node)
{
	return hs_hash_with(node->next, node->hash);
}

static inline void *hs_hash_entry_at(struct hs_hash_node *node, size_t offset)
{
	return node ? (char *)node - offset : NULL;
}

#endif
