/* A hash table whose nodes lie in the entries: from a hash, which the user works out, to all entries that have
 * it. The user compares keys.
 *
 * Linear hashing: the table is one bucket longer with each entry that is too many, and shorter when there are
 * far fewer, by splitting one bucket in two or joining two. No call waits for all entries to be moved.
 * The table owns its array and no entry. One thread. */
#ifndef HS_BASE_HASH_TABLE_H
#define HS_BASE_HASH_TABLE_H

#include "base/list.h" /* hs_list_entry */
#include "base/prng.h"

struct hs_hash_node {
	struct hs_hash_node *next; /* in its bucket */
	uint64_t hash;
};

struct hs_hash_table {
	struct hs_hash_node **buckets;
	size_t base;  /* a power of two: buckets before any of this round was split */
	size_t split; /* those before it are split; so there are base + split */
	size_t room;  /* of the array */
	size_t count; /* of nodes */
};

/* The entry of a node; NULL of NULL. */
#define hs_hash_entry(node, type, member) ((type *)hs_hash_entry_at(node, offsetof(type, member)))

/* Walks the entries that have a hash. The body may take `entry` out if it leaves the walk then. */
#define hs_hash_each(type, entry, table, its_hash, member)                                         \
	for (type *entry = hs_hash_entry(hs_hash_table_find(table, its_hash), type, member);       \
	     entry; entry = hs_hash_entry(hs_hash_next(&(entry)->member), type, member))

/* Walks all entries, in no order. The body may not add any or take any out. */
#define hs_hash_each_of_all(type, entry, table, member)                                            \
	for (type *entry = hs_hash_entry(hs_hash_table_after(table, NULL), type, member); entry;   \
	     entry = hs_hash_entry(hs_hash_table_after(table, &(entry)->member), type, member))

void hs_hash_table_init(struct hs_hash_table *table);
void hs_hash_table_deinit(struct hs_hash_table *table); /* it is empty */

void hs_hash_table_add(struct hs_hash_table *table, struct hs_hash_node *node, uint64_t hash);
void hs_hash_table_remove(struct hs_hash_table *table, struct hs_hash_node *node);

/* Takes out some node; NULL: it is empty. */
struct hs_hash_node *hs_hash_table_take(struct hs_hash_table *table);
/* Some node, any of them; the table is not empty. */
struct hs_hash_node *hs_hash_table_pick(const struct hs_hash_table *table, struct hs_prng *prng);
/* The node behind one in the order of buckets; of NULL the first. NULL: there is none. */
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

/* The first node that has the hash; NULL: none. */
static inline struct hs_hash_node *hs_hash_table_find(const struct hs_hash_table *table,
						      uint64_t hash)
{
	return hs_hash_with(table->buckets[hs_hash_table_bucket(table, hash)], hash);
}

/* The next that has the same. */
static inline struct hs_hash_node *hs_hash_next(const struct hs_hash_node *node)
{
	return hs_hash_with(node->next, node->hash);
}

static inline void *hs_hash_entry_at(struct hs_hash_node *node, size_t offset)
{
	return node ? (char *)node - offset : NULL;
}

#endif
