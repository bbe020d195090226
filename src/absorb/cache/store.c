/* S3-FIFO eviction.
 *
 *     admit ──> small ──> used again? ── yes ──> large ──> used since? ── yes: moved back, one use less
 *        │     (a few %)      └─ no: evicted, hash to   └─ no: evicted
 *        │                           the ghost list
 *        └── hash in the ghost list? ── yes: directly to large
 *
 * Keys that are read once pass through the small queue, a small part of the memory, however many such keys there
 * are. So they do not evict keys that are read repeatedly. The size of the small queue, the weight of a use and
 * the length of the ghost list were measured with skewed request distributions: see bench/cache_ratio.c. */
#include "absorb/cache/store.h"

#include "absorb/cache/ghosts.h"
#include "base/check.h"
#include "base/mem.h"

enum {
	SMALL_PART = 20, /* the small queue may have 1 / SMALL_PART of bytes_max */
	/* One eviction passes over at most this many used keys of the large queue; then it evicts the least used
	 * of them. Bounds the time of one eviction. */
	LOOKS_MAX = 128,
	/* memory that a key takes besides its struct: for the heap, the hash table and the ghost list */
	KEY_BYTES = 16 + 8 + 32,
};

struct hs_cache {
	uint32_t worker;
	struct hs_cache_limits limits;
	struct hs_hash_table table;
	struct hs_ghosts ghosts;
	struct hs_link small, large; /* oldest first */
	size_t small_count;
	uint64_t small_bytes;
	struct hs_cache_counts counts;
	uint64_t removals; /* keys and entries removed since the start */
};

struct hs_cache *hs_cache_create(uint32_t worker, const struct hs_cache_limits *limits)
{
	struct hs_cache *cache = hs_mem_zalloc(sizeof *cache);

	cache->worker = worker;
	cache->limits = *limits;
	hs_hash_table_init(&cache->table);
	hs_list_init(&cache->small);
	hs_list_init(&cache->large);
	return cache;
}

/* ---- queues and bytes ---- */

static struct hs_cache_key *cached_of(struct hs_link *link)
{
	return hs_list_entry(link, struct hs_cache_key, queue);
}

static void add_bytes(struct hs_cache *cache, struct hs_cache_key *cached, uint64_t bytes)
{
	cached->bytes += bytes;
	cache->counts.bytes += bytes;
	if (!cached->large)
		cache->small_bytes += bytes;
}

static void take_bytes(struct hs_cache *cache, struct hs_cache_key *cached, uint64_t bytes)
{
	cached->bytes -= bytes;
	cache->counts.bytes -= bytes;
	if (!cached->large)
		cache->small_bytes -= bytes;
}

static void enter(struct hs_cache *cache, struct hs_cache_key *cached, bool large)
{
	cached->large = large;
	hs_list_append(large ? &cache->large : &cache->small, &cached->queue);
	if (!large) {
		cache->small_count++;
		cache->small_bytes += cached->bytes;
	}
}

static void leave(struct hs_cache *cache, struct hs_cache_key *cached)
{
	hs_list_remove(&cached->queue);
	if (!cached->large) {
		cache->small_count--;
		cache->small_bytes -= cached->bytes;
	}
}

static void rotate(struct hs_link *queue)
{
	struct hs_link *first = queue->next;

	hs_list_remove(first);
	hs_list_append(queue, first);
}

/* ---- entries ---- */

/* Marks the entry as invalid for all workers if this worker fetched it: without the entry in its cache, this
 * worker could not act on the entry's invalidations. True: the entry was valid until this call. */
static bool mark_invalid(const struct hs_cache *cache, struct hs_cache_entry *entry)
{
	return entry->worker == cache->worker && entry->tracking_session &&
	       !atomic_exchange_explicit(&entry->invalid, true, memory_order_acq_rel);
}

static void drop(struct hs_cache *cache, struct hs_cache_key *cached, size_t index)
{
	struct hs_cache_entry *entry = cached->entries[index];

	mark_invalid(cache, entry);
	take_bytes(cache, cached, entry->bytes);
	cache->counts.entries--;
	cached->entries_count--;
	memmove(&cached->entries[index], &cached->entries[index + 1],
		(cached->entries_count - index) * sizeof *cached->entries);
	hs_cache_entry_unref(&entry);
	cache->removals++;
	if (cached->entries_count > 0 || cached->entries == &cached->only)
		return;
	take_bytes(cache, cached, cached->entries_cap * sizeof *cached->entries);
	hs_mem_free(&cached->entries);
	cached->entries = &cached->only;
	cached->entries_cap = 1;
}

static void drop_all(struct hs_cache *cache, struct hs_cache_key *cached)
{
	while (cached->entries_count > 0)
		drop(cache, cached, cached->entries_count - 1u);
}

static bool is_full(const struct hs_cache_key *cached)
{
	return cached->entries_count == cached->entries_cap;
}

static void append(struct hs_cache *cache, struct hs_cache_key *cached,
		   struct hs_cache_entry *entry)
{
	if (is_full(cached)) {
		uint16_t cap = (uint16_t)(cached->entries_cap * 2);
		bool first = cached->entries == &cached->only;

		cached->entries = hs_mem_realloc(first ? NULL : cached->entries,
						 cap * sizeof *cached->entries);
		if (first)
			cached->entries[0] = cached->only;
		add_bytes(cache, cached,
			  (cap - (first ? 0u : cached->entries_cap)) * sizeof *cached->entries);
		cached->entries_cap = cap;
	}
	hs_cache_entry_ref(entry);
	cached->entries[cached->entries_count++] = entry;
	add_bytes(cache, cached, entry->bytes);
	cache->counts.entries++;
}

/* ---- eviction ---- */

static void take_out(struct hs_cache *cache, struct hs_cache_key *cached)
{
	hs_check(cached->pins == 0);
	drop_all(cache, cached);
	hs_hash_table_remove(&cache->table, &cached->node);
	leave(cache, cached);
	cache->counts.bytes -= cached->bytes;
	cache->removals++;
	hs_mem_free(&cached);
}

static void evict(struct hs_cache *cache, struct hs_cache_key *cached)
{
	cache->counts.evicted++;
	take_out(cache, cached);
}

static bool small_is_full(const struct hs_cache *cache)
{
	return cache->small_bytes > cache->limits.bytes_max / SMALL_PART;
}

/* Evicts one key of the small queue that is neither pinned nor used, and moves the used keys that it passes to the
 * large queue. Looks at each key at most once. Unless `any`, stops when the small queue is within its share of the
 * memory. False: no key was evicted. */
static bool evict_small(struct hs_cache *cache, bool any)
{
	for (size_t i = cache->small_count; i > 0 && (any || small_is_full(cache)); i--) {
		struct hs_cache_key *cached = cached_of(cache->small.next);

		if (cached->pins > 0) {
			rotate(&cache->small);
		} else if (cached->uses > 0) {
			leave(cache, cached);
			cached->uses = 0;
			enter(cache, cached, true);
		} else {
			hs_ghosts_add(&cache->ghosts, cached->node.hash, cache->table.count);
			evict(cache, cached);
			return true;
		}
	}
	return false;
}

static bool evict_large(struct hs_cache *cache)
{
	size_t count = cache->table.count - cache->small_count, pinned = 0;
	struct hs_cache_key *least = NULL;

	for (size_t looks = 0; looks < LOOKS_MAX && pinned < count;) {
		struct hs_cache_key *cached = cached_of(cache->large.next);

		if (cached->pins > 0) {
			pinned++;
			rotate(&cache->large);
			continue;
		}
		if (cached->uses == 0) {
			least = cached;
			break;
		}
		cached->uses--;
		if (!least || cached->uses < least->uses)
			least = cached;
		looks++;
		rotate(&cache->large);
	}
	if (least)
		evict(cache, least);
	return least;
}

/* Evicts keys until there is room for `bytes` more. False: there is not enough room, and no other key can be
 * evicted. */
static bool make_room(struct hs_cache *cache, uint64_t bytes)
{
	while (cache->counts.bytes + bytes > cache->limits.bytes_max)
		if (!evict_small(cache, false) && !evict_large(cache) && !evict_small(cache, true))
			return false;
	return true;
}

/* ---- keys ---- */

struct hs_cache_key *hs_cache_find(struct hs_cache *cache, uint64_t key_hash, struct hs_bytes key)
{
	hs_hash_each(struct hs_cache_key, cached, &cache->table, key_hash, node) {
		if (hs_bytes_equal(cached->key, key))
			return cached;
	}
	return NULL;
}

struct hs_cache_key *hs_cache_admit(struct hs_cache *cache, uint64_t key_hash, struct hs_bytes key)
{
	uint64_t bytes = sizeof(struct hs_cache_key) + key.len + KEY_BYTES;
	struct hs_cache_key *cached = hs_cache_find(cache, key_hash, key);
	char *copy;

	if (cached)
		return cached;
	/* cache-entry-bytes limits a reply's entry; of a key's record, only the name is checked against this
	 * limit. */
	if (key.len > cache->limits.entry_bytes_max || bytes > cache->limits.bytes_max ||
	    !make_room(cache, bytes))
		return NULL;
	cached = hs_mem_zalloc(sizeof *cached + key.len);
	copy = (char *)(cached + 1);
	if (key.len > 0)
		memcpy(copy, key.data, key.len);
	cached->key = (struct hs_bytes){copy, key.len};
	cached->bytes = bytes;
	cached->entries = &cached->only;
	cached->entries_cap = 1;
	hs_list_init(&cached->fetches);
	hs_hash_table_add(&cache->table, &cached->node, key_hash);
	cache->counts.bytes += bytes;
	enter(cache, cached, hs_ghosts_take(&cache->ghosts, key_hash, cache->table.count));
	return cached;
}

bool hs_cache_remove(struct hs_cache *cache, struct hs_cache_key *cached)
{
	if (cached->pins > 0)
		return false;
	take_out(cache, cached);
	return true;
}

void hs_cache_limit(struct hs_cache *cache, const struct hs_cache_limits *limits)
{
	cache->limits = *limits;
	(void)make_room(cache, 0); /* keys pinned at this moment are evicted by a later call */
}

/* ---- entries, public ---- */

struct hs_cache_entry *hs_cache_get(const struct hs_cache_key *cached,
				    const struct hs_cache_query *query)
{
	for (size_t i = cached->entries_count; i-- > 0;)
		if (hs_cache_entry_matches(cached->entries[i], query))
			return cached->entries[i];
	return NULL;
}

void hs_cache_drop(struct hs_cache *cache, struct hs_cache_key *cached,
		   struct hs_cache_entry *entry)
{
	for (size_t i = 0; i < cached->entries_count; i++) {
		if (cached->entries[i] != entry)
			continue;
		drop(cache, cached, i);
		return;
	}
}

bool hs_cache_put(struct hs_cache *cache, struct hs_cache_key *cached, struct hs_cache_entry *entry)
{
	struct hs_cache_query query = {
		.command = entry->command,
		.argv = entry->argv,
		.argc = entry->argc,
		.signature = entry->signature,
	};
	struct hs_cache_entry *old = hs_cache_get(cached, &query);
	uint64_t bytes = entry->bytes;
	bool room;

	if (old == entry)
		return true;
	if (old)
		hs_cache_drop(cache, cached, old);
	if (entry->bytes > cache->limits.entry_bytes_max ||
	    cached->bytes + bytes > cache->limits.bytes_max) {
		cache->counts.too_large++;
		return false;
	}
	if (cached->entries_count == HS_CACHE_VARIANTS_MAX)
		drop(cache, cached, 0);
	if (is_full(cached)) /* the array of entries doubles */
		bytes += 2 * cached->entries_cap * sizeof *cached->entries;
	cached->pins++;
	room = make_room(cache, bytes);
	cached->pins--;
	if (room)
		append(cache, cached, entry);
	return room;
}

uint32_t hs_cache_invalidate(struct hs_cache *cache, struct hs_cache_key *cached,
			     const struct hs_tracking_session *tracking_session)
{
	uint32_t invalid = 0;

	for (size_t i = cached->entries_count; i-- > 0;) {
		if (cached->entries[i]->tracking_session != tracking_session)
			continue;
		invalid += mark_invalid(cache, cached->entries[i]);
		drop(cache, cached, i);
	}
	return invalid;
}

/* ---- all keys ---- */

struct hs_cache_key *hs_cache_each(const struct hs_cache *cache, size_t *at)
{
	const struct hs_link *link = *at ? (const struct hs_link *)*at : cache->small.next;

	if (link == &cache->small)
		link = cache->large.next;
	if (link == &cache->large)
		return NULL;
	*at = (size_t)link->next;
	return cached_of((struct hs_link *)link);
}

uint32_t hs_cache_invalidate_all(struct hs_cache *cache,
				 const struct hs_tracking_session *tracking_session)
{
	struct hs_cache_key *cached;
	size_t at = 0;
	uint32_t invalid = 0;

	while ((cached = hs_cache_each(cache, &at)))
		invalid += hs_cache_invalidate(cache, cached, tracking_session);
	return invalid;
}

void hs_cache_clear(struct hs_cache *cache)
{
	struct hs_cache_key *cached;
	size_t at = 0;

	while ((cached = hs_cache_each(cache, &at))) {
		drop_all(cache, cached);
		(void)hs_cache_remove(cache, cached);
	}
}

void hs_cache_destroy(struct hs_cache **cache)
{
	if (!*cache)
		return;
	hs_cache_clear(*cache);
	hs_hash_table_deinit(&(*cache)->table);
	hs_ghosts_deinit(&(*cache)->ghosts);
	hs_mem_free(cache);
}

uint64_t hs_cache_removals(const struct hs_cache *cache)
{
	return cache->removals;
}

struct hs_cache_counts hs_cache_counts(const struct hs_cache *cache)
{
	struct hs_cache_counts counts = cache->counts;

	counts.keys = cache->table.count;
	return counts;
}
