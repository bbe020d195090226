/* Two hash tables over the same watches: by key, for whoever changes one, and by watcher, for the
 * connection that asks or goes.
 *
 *     keys:      bucket ─ watch ─ watch ─ …       (one per key and watcher)
 *     watchers:  bucket ─ watcher ─ …
 *                           └─ watch ─ watch ─ …  (its own)
 *
 * A changed key marks its watchers dirty, and dirty they stay until dropped. A key that was past
 * its time when it was watched reads as missing; that it is swept later changes nothing for the
 * watcher, that it is written again does. So such a watch carries a mark, and the store decides:
 * touched and gone from the store means swept. That is why the keyspace touches before it writes
 * and after it removes. */
#include "keyspace/watch.h"

#include "base/hash.h"
#include "base/limits.h"
#include "base/mem.h"
#include "keyspace/internal.h"

struct watcher;

struct watch {
	struct watch *next;    /* in its bucket */
	struct watch *sibling; /* of the same watcher */
	struct watcher *watcher;
	uint64_t hash;
	uint16_t slot;
	bool was_expired; /* when watched, and nothing has touched it since */
	size_t key_len;
	char key[];
};

struct watcher {
	struct watcher *next; /* in its bucket */
	uint64_t id;
	struct watch *watches;
	uint32_t count;
	bool dirty;
};

struct hs_watch_table {
	uint64_t seed;
	struct watch **keys;
	size_t keys_mask; /* buckets less one; a power of two of them */
	size_t watches;
	struct watcher **watchers;
	size_t watchers_mask;
	size_t watchers_count;
};

enum { BUCKETS_MIN = 16 };

struct hs_watch_table *hs_watch_create(uint64_t seed)
{
	struct hs_watch_table *table = hs_mem_zalloc(sizeof *table);

	table->seed = seed;
	table->keys_mask = BUCKETS_MIN - 1;
	table->keys = hs_mem_zalloc(BUCKETS_MIN * sizeof *table->keys);
	table->watchers_mask = BUCKETS_MIN - 1;
	table->watchers = hs_mem_zalloc(BUCKETS_MIN * sizeof *table->watchers);
	return table;
}

static void free_watches(struct watcher *watcher)
{
	while (watcher->watches) {
		struct watch *watch = watcher->watches;

		watcher->watches = watch->sibling;
		hs_mem_free(&watch);
	}
}

void hs_watch_destroy(struct hs_watch_table **table)
{
	struct hs_watch_table *t = *table;

	if (!t)
		return;
	for (size_t i = 0; i <= t->watchers_mask; i++) {
		while (t->watchers[i]) {
			struct watcher *watcher = t->watchers[i];

			t->watchers[i] = watcher->next;
			free_watches(watcher);
			hs_mem_free(&watcher);
		}
	}
	hs_mem_free(&t->watchers);
	hs_mem_free(&t->keys);
	hs_mem_free(table);
}

static uint64_t hash_id(const struct hs_watch_table *table, uint64_t id)
{
	return hs_hash((struct hs_bytes){(const char *)&id, sizeof id}, table->seed);
}

static struct watcher **find_watcher(const struct hs_watch_table *table, uint64_t id)
{
	struct watcher **at = &table->watchers[hash_id(table, id) & table->watchers_mask];

	while (*at && (*at)->id != id)
		at = &(*at)->next;
	return at;
}

static bool is_of_key(const struct watch *watch, uint64_t hash, struct hs_bytes key)
{
	return watch->hash == hash &&
	       hs_bytes_equal((struct hs_bytes){watch->key, watch->key_len}, key);
}

/* Both tables double when there are more entries than buckets. */
static void grow_keys(struct hs_watch_table *table)
{
	size_t mask = table->keys_mask * 2 + 1;
	struct watch **keys = hs_mem_zalloc((mask + 1) * sizeof *keys);

	for (size_t i = 0; i <= table->keys_mask; i++) {
		while (table->keys[i]) {
			struct watch *watch = table->keys[i];

			table->keys[i] = watch->next;
			watch->next = keys[watch->hash & mask];
			keys[watch->hash & mask] = watch;
		}
	}
	hs_mem_free(&table->keys);
	table->keys = keys;
	table->keys_mask = mask;
}

static void grow_watchers(struct hs_watch_table *table)
{
	size_t mask = table->watchers_mask * 2 + 1;
	struct watcher **watchers = hs_mem_zalloc((mask + 1) * sizeof *watchers);

	for (size_t i = 0; i <= table->watchers_mask; i++) {
		while (table->watchers[i]) {
			struct watcher *watcher = table->watchers[i];
			size_t bucket = hash_id(table, watcher->id) & mask;

			table->watchers[i] = watcher->next;
			watcher->next = watchers[bucket];
			watchers[bucket] = watcher;
		}
	}
	hs_mem_free(&table->watchers);
	table->watchers = watchers;
	table->watchers_mask = mask;
}

/* What the store has for a key: nothing, or a record, past its time or not. */
static int look_up(struct hs_keyspace *ks, uint16_t slot, struct hs_bytes key, bool *expired)
{
	struct hs_physical_key physical;
	struct hs_record record;
	struct hs_bytes stored;
	int err;

	*expired = false;
	hs_record_physical(&physical, ks->hash_seed, slot, key);
	err = ks->kv->calls->get(ks->kv, HS_KV_KEYS, (struct hs_bytes){physical.data, physical.len},
				 &stored);
	if (!err && hs_record_decode(stored, &record) == 0)
		*expired = hs_expired(ks, record.expire_ms);
	return err;
}

static struct watcher *get_watcher(struct hs_watch_table *table, uint64_t id)
{
	struct watcher **at = find_watcher(table, id);
	struct watcher *watcher = *at;

	if (watcher)
		return watcher;
	if (table->watchers_count > table->watchers_mask) {
		grow_watchers(table);
		at = find_watcher(table, id);
	}
	watcher = hs_mem_zalloc(sizeof *watcher);
	watcher->id = id;
	*at = watcher;
	table->watchers_count++;
	return watcher;
}

int hs_watch_add(struct hs_watch_table *table, struct hs_keyspace *ks, uint64_t watcher,
		 uint16_t slot, struct hs_bytes key)
{
	uint64_t hash = hs_hash(key, table->seed);
	struct watcher *owner = get_watcher(table, watcher);
	bool expired;
	int err;

	if (owner->dirty)
		return 0;
	for (struct watch *watch = owner->watches; watch; watch = watch->sibling) {
		if (is_of_key(watch, hash, key))
			return 0;
	}
	if (owner->count == HS_WATCH_KEYS_MAX)
		return HS_ELIMIT;
	err = look_up(ks, slot, key, &expired);
	if (err && err != HS_ENOTFOUND)
		return err;
	if (table->watches > table->keys_mask)
		grow_keys(table);

	struct watch *watch = hs_mem_alloc(sizeof *watch + key.len);

	*watch = (struct watch){
		.next = table->keys[hash & table->keys_mask],
		.sibling = owner->watches,
		.watcher = owner,
		.hash = hash,
		.slot = slot,
		.was_expired = expired,
		.key_len = key.len,
	};
	if (key.len)
		memcpy(watch->key, key.data, key.len);
	table->keys[hash & table->keys_mask] = watch;
	owner->watches = watch;
	owner->count++;
	table->watches++;
	return 0;
}

void hs_watch_drop(struct hs_watch_table *table, uint64_t watcher)
{
	struct watcher **at = find_watcher(table, watcher);
	struct watcher *owner = *at;

	if (!owner)
		return;
	for (struct watch *watch = owner->watches; watch; watch = watch->sibling) {
		struct watch **link = &table->keys[watch->hash & table->keys_mask];

		while (*link != watch)
			link = &(*link)->next;
		*link = watch->next;
		table->watches--;
	}
	free_watches(owner);
	*at = owner->next;
	table->watchers_count--;
	hs_mem_free(&owner);
}

bool hs_watch_clean(struct hs_watch_table *table, struct hs_keyspace *ks, uint64_t watcher)
{
	struct watcher *owner = *find_watcher(table, watcher);

	if (!owner)
		return true;
	for (struct watch *watch = owner->watches; watch && !owner->dirty; watch = watch->sibling) {
		struct hs_bytes key = {watch->key, watch->key_len};
		bool expired = false;
		int err = 0;

		if (!watch->was_expired)
			err = look_up(ks, watch->slot, key, &expired);
		/* When the store cannot say, the safe answer is that it has changed. */
		if (expired || (err && err != HS_ENOTFOUND))
			owner->dirty = true;
	}
	return !owner->dirty;
}

void hs_watch_touch(struct hs_watch_table *table, struct hs_keyspace *ks, uint16_t slot,
		    struct hs_bytes key)
{
	uint64_t hash;
	bool expired;

	if (table->watches == 0)
		return;
	hash = hs_hash(key, table->seed);
	for (struct watch *watch = table->keys[hash & table->keys_mask]; watch;
	     watch = watch->next) {
		if (!is_of_key(watch, hash, key))
			continue;
		if (watch->was_expired && look_up(ks, slot, key, &expired) == HS_ENOTFOUND)
			watch->was_expired = false;
		else
			watch->watcher->dirty = true;
	}
}

void hs_watch_touch_all(struct hs_watch_table *table, struct hs_keyspace *ks)
{
	for (size_t i = 0; i <= table->keys_mask && table->watches; i++) {
		for (struct watch *watch = table->keys[i]; watch; watch = watch->next) {
			struct hs_bytes key = {watch->key, watch->key_len};
			bool expired;

			if (look_up(ks, watch->slot, key, &expired) == HS_ENOTFOUND)
				continue;
			if (watch->was_expired)
				watch->was_expired = false;
			else
				watch->watcher->dirty = true;
		}
	}
}
