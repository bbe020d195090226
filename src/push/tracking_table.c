#include "push/tracking_table.h"

#include "base/hash.h"
#include "base/mem.h"

#include <string.h>

enum { BUCKETS_MIN = 16, FREE_AT_ONCE = 16384, FREE_WITH_ADD = 2 };

struct hs_tracking_table *hs_tracking_table_create(uint64_t seed)
{
	struct hs_tracking_table *table = hs_mem_zalloc(sizeof *table);

	table->seed = seed;
	table->half = BUCKETS_MIN;
	table->cap = BUCKETS_MIN;
	table->buckets = hs_mem_zalloc(BUCKETS_MIN * sizeof(struct hs_tracked *));
	return table;
}

static size_t buckets_count(const struct hs_tracking_table *table)
{
	return table->half + table->grown;
}

/* Buckets that were split in this round are told apart by one more bit. */
static size_t bucket_of(const struct hs_tracking_table *table, uint64_t hash)
{
	size_t bucket = (size_t)hash & (table->half - 1);

	return bucket < table->grown ? (size_t)hash & (2 * table->half - 1) : bucket;
}

static void free_tracked(struct hs_tracked *tracked)
{
	if (tracked->ids != &tracked->one)
		hs_mem_release(tracked->ids);
	hs_mem_release(tracked);
}

/* Frees up to `limit` keys; true when there are none left. */
static bool free_keys(struct hs_tracking_table *table, size_t limit)
{
	while (table->keys > 0) {
		size_t last = buckets_count(table) - 1;
		struct hs_tracked *tracked = table->buckets[last];

		if (limit-- == 0)
			return false;
		if (tracked) {
			table->buckets[last] = tracked->next;
			free_tracked(tracked);
			table->keys--;
		} else if (table->grown > 0) {
			table->grown--;
		} else {
			table->half--; /* no power of two any more: nobody looks anything up here */
		}
	}
	return true;
}

static void free_table(struct hs_tracking_table **table)
{
	hs_mem_free(&(*table)->buckets);
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

	if ((*table)->keys == 0)
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

/* One bucket more: the next of this round gives it about half of its keys. */
static void grow(struct hs_tracking_table *table)
{
	struct hs_tracked **from, *tracked;

	if (buckets_count(table) == table->cap) {
		table->cap *= 2;
		table->buckets =
			hs_mem_realloc(table->buckets, table->cap * sizeof(struct hs_tracked *));
	}
	from = &table->buckets[table->grown];
	tracked = *from;
	*from = NULL;
	table->buckets[buckets_count(table)] = NULL;
	table->grown++;
	while (tracked) {
		struct hs_tracked *next = tracked->next;
		struct hs_tracked **to = &table->buckets[bucket_of(table, tracked->hash)];

		tracked->next = *to;
		*to = tracked;
		tracked = next;
	}
	if (table->grown == table->half) {
		table->half *= 2;
		table->grown = 0;
	}
}

static struct hs_tracked **find(const struct hs_tracking_table *table, uint64_t hash,
				struct hs_bytes key)
{
	struct hs_tracked **place = &table->buckets[bucket_of(table, hash)];

	while (*place && ((*place)->hash != hash || !hs_bytes_equal(hs_tracked_key(*place), key)))
		place = &(*place)->next;
	return place;
}

struct hs_tracked **hs_tracking_table_find(const struct hs_tracking_table *table,
					   struct hs_bytes key)
{
	return find(table, hs_hash(key, table->seed), key);
}

/* Where `id` is among those of the key, or would be. */
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
	struct hs_tracked **place = find(table, hash, key);
	struct hs_tracked *tracked = *place;

	/* Faster than it fills: what is retired never piles up. */
	free_older(table, FREE_WITH_ADD);
	if (tracked) {
		add_id(table, tracked, id);
		return;
	}
	tracked = hs_mem_alloc(sizeof *tracked + key.len);
	*tracked = (struct hs_tracked){
		.hash = hash,
		.ids = &tracked->one,
		.one = id,
		.count = 1,
		.cap = 1,
		.key_len = key.len,
	};
	if (key.len > 0)
		memcpy(tracked->key, key.data, key.len);
	*place = tracked;
	table->keys++;
	table->items++;
	table->bytes += sizeof *tracked + key.len;
	if (table->keys > buckets_count(table))
		grow(table);
}

void hs_tracking_table_forget(struct hs_tracking_table *table, struct hs_tracked **place,
			      uint32_t keep)
{
	struct hs_tracked *tracked = *place;

	table->items -= tracked->count - keep;
	if (keep > 0) {
		tracked->count = keep;
		return;
	}
	*place = tracked->next;
	table->keys--;
	table->bytes -= sizeof *tracked + tracked->key_len + (tracked->cap - 1) * sizeof(uint64_t);
	free_tracked(tracked);
}

bool hs_tracked_has(const struct hs_tracked *tracked, uint64_t id)
{
	return has_id(tracked, place_of_id(tracked, id), id);
}

bool hs_tracking_table_remove(struct hs_tracking_table *table, struct hs_tracked **place,
			      uint64_t id)
{
	struct hs_tracked *tracked = *place;
	uint32_t at = place_of_id(tracked, id);

	if (!has_id(tracked, at, id))
		return false;
	if (tracked->count == 1) {
		hs_tracking_table_forget(table, place, 0);
		return true;
	}
	tracked->count--;
	memmove(tracked->ids + at, tracked->ids + at + 1,
		(tracked->count - at) * sizeof *tracked->ids);
	table->items--;
	return true;
}

struct hs_tracked **hs_tracking_table_pick(const struct hs_tracking_table *table,
					   struct hs_prng *prng)
{
	size_t count = buckets_count(table);
	size_t bucket = (size_t)hs_prng_below(prng, count);

	while (!table->buckets[bucket])
		bucket = (bucket + 1) % count;
	return &table->buckets[bucket];
}
