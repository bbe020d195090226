/* A hash table from key to a sorted array of connection ids. A retired table is freed in portions, linked
 * behind its successor. */
#include "push/tracking_table.h"

#include "base/hash.h"
#include "base/mem.h"

#include <string.h>

enum { FREE_AT_ONCE = 16384, FREE_WITH_ADD = 2 };

struct hs_tracking_table *hs_tracking_table_create(uint64_t seed)
{
	struct hs_tracking_table *table = hs_mem_zalloc(sizeof *table);

	table->seed = seed;
	hs_hash_table_init(&table->keys);
	return table;
}

static void free_tracked(struct hs_tracked *tracked)
{
	if (tracked->ids != &tracked->one)
		hs_mem_release(tracked->ids);
	hs_mem_release(tracked);
}

/* Frees up to `limit` keys; true if none are left. */
static bool free_keys(struct hs_tracking_table *table, size_t limit)
{
	for (; table->keys.count > 0; limit--) {
		if (limit == 0)
			return false;
		free_tracked(
			hs_hash_entry(hs_hash_table_take(&table->keys), struct hs_tracked, node));
	}
	return true;
}

static void free_table(struct hs_tracking_table **table)
{
	hs_hash_table_deinit(&(*table)->keys);
	hs_mem_free(table);
}

void hs_tracking_table_destroy(struct hs_tracking_table **table)
{
	while (*table) {
		struct hs_tracking_table *older = (*table)->older;

		free_keys(*table, SIZE_MAX);
		free_table(table);
		*table = older;
	}
}

void hs_tracking_table_retire(struct hs_tracking_table **table)
{
	struct hs_tracking_table *fresh;

	if ((*table)->keys.count == 0)
		return;
	fresh = hs_tracking_table_create((*table)->seed);
	fresh->older = *table;
	*table = fresh;
	hs_tracking_table_free_some(fresh);
}

static void free_older(struct hs_tracking_table *table, size_t limit)
{
	struct hs_tracking_table *older = table->older;

	if (!older || !free_keys(older, limit))
		return;
	table->older = older->older;
	free_table(&older);
}

void hs_tracking_table_free_some(struct hs_tracking_table *table)
{
	free_older(table, FREE_AT_ONCE);
}

static struct hs_tracked *find(const struct hs_tracking_table *table, uint64_t hash,
			       struct hs_bytes key)
{
	hs_hash_each(struct hs_tracked, tracked, &table->keys, hash, node) {
		if (hs_bytes_equal(hs_tracked_key(tracked), key))
			return tracked;
	}
	return NULL;
}

struct hs_tracked *hs_tracking_table_find(const struct hs_tracking_table *table,
					  struct hs_bytes key)
{
	return find(table, hs_hash(key, table->seed), key);
}

/* Index of `id` among the key's connections, or where it would be inserted. */
static uint32_t place_of_id(const struct hs_tracked *tracked, uint64_t id)
{
	uint32_t low = 0, high = tracked->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (tracked->ids[middle] < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool has_id(const struct hs_tracked *tracked, uint32_t place, uint64_t id)
{
	return place < tracked->count && tracked->ids[place] == id;
}

static void add_id(struct hs_tracking_table *table, struct hs_tracked *tracked, uint64_t id)
{
	uint32_t place = place_of_id(tracked, id);

	if (has_id(tracked, place, id))
		return;
	if (tracked->count == tracked->cap) {
		uint32_t cap = tracked->cap * 2;
		bool inside = tracked->ids == &tracked->one;
		uint64_t *ids = hs_mem_realloc(inside ? NULL : tracked->ids, cap * sizeof *ids);

		if (inside)
			ids[0] = tracked->one;
		table->bytes += (cap - tracked->cap) * sizeof *ids;
		tracked->ids = ids;
		tracked->cap = cap;
	}
	memmove(tracked->ids + place + 1, tracked->ids + place,
		(tracked->count - place) * sizeof *tracked->ids);
	tracked->ids[place] = id;
	tracked->count++;
	table->items++;
}

void hs_tracking_table_add(struct hs_tracking_table *table, struct hs_bytes key, uint64_t id)
{
	uint64_t hash = hs_hash(key, table->seed);
	struct hs_tracked *tracked = find(table, hash, key);

	/* Frees faster than the table fills, so retired tables do not pile up. */
	free_older(table, FREE_WITH_ADD);
	if (tracked) {
		add_id(table, tracked, id);
		return;
	}
	tracked = hs_mem_alloc(sizeof *tracked + key.len);
	*tracked = (struct hs_tracked){
		.ids = &tracked->one,
		.one = id,
		.count = 1,
		.cap = 1,
		.key_len = key.len,
	};
	if (key.len > 0)
		memcpy(tracked->key, key.data, key.len);
	hs_hash_table_add(&table->keys, &tracked->node, hash);
	table->items++;
	table->bytes += sizeof *tracked + key.len;
}

void hs_tracking_table_forget(struct hs_tracking_table *table, struct hs_tracked *tracked,
			      uint32_t keep)
{
	table->items -= tracked->count - keep;
	if (keep > 0) {
		tracked->count = keep;
		return;
	}
	hs_hash_table_remove(&table->keys, &tracked->node);
	table->bytes -= sizeof *tracked + tracked->key_len + (tracked->cap - 1) * sizeof(uint64_t);
	free_tracked(tracked);
}

bool hs_tracked_has(const struct hs_tracked *tracked, uint64_t id)
{
	return has_id(tracked, place_of_id(tracked, id), id);
}

bool hs_tracking_table_remove(struct hs_tracking_table *table, struct hs_tracked *tracked,
			      uint64_t id)
{
	uint32_t at = place_of_id(tracked, id);

	if (!has_id(tracked, at, id))
		return false;
	if (tracked->count == 1) {
		hs_tracking_table_forget(table, tracked, 0);
		return true;
	}
	tracked->count--;
	memmove(tracked->ids + at, tracked->ids + at + 1,
		(tracked->count - at) * sizeof *tracked->ids);
	table->items--;
	return true;
}

struct hs_tracked *hs_tracking_table_pick(const struct hs_tracking_table *table,
					  struct hs_prng *prng)
{
	return hs_hash_entry(hs_hash_table_pick(&table->keys, prng), struct hs_tracked, node);
}
