/* Two hash tables over the same watches: by key, for the writer that changes it; by watcher, for
 * EXEC, UNWATCH and disconnect.
 *
 *     keys:      watch, watch, …              (one per key and watcher)
 *     watchers:  watcher, …
 *                   └─ watch ─ watch ─ …      (its own)
 *
 * A changed key makes its watchers dirty, and they stay dirty until dropped.
 *
 * was_expired: a key that had expired when it was watched reads as missing. The sweep then changes
 * nothing for the watcher, a new write does. The store tells the two apart when such a key is
 * touched. Gone from the store: the sweep removed it, and the watcher stays clean. Still there: a
 * write is about to replace it, and the watcher becomes dirty. So the keyspace calls hs_watch_touch
 * before a write and after a removal. */
#include "keyspace/watch.h"

#include "base/hash.h"
#include "base/hash_table.h"
#include "base/limits.h"
#include "base/mem.h"
#include "keyspace/internal.h"

struct watcher;

struct watch {
	struct hs_hash_node node; /* in table->keys */
	struct watch *sibling;	  /* next watch of the same watcher */
	struct watcher *watcher;
	uint16_t slot;
	bool was_expired; /* it had expired when watched, and was not touched since */
	size_t key_len;
	char key[];
};

struct watcher {
	struct hs_hash_node node; /* in table->watchers */
	uint64_t id;
	struct watch *watches;
	uint32_t count;
	bool dirty;
};

struct hs_watch_table {
	uint64_t seed;
	struct hs_hash_table keys, watchers;
};

struct hs_watch_table *hs_watch_create(uint64_t seed)
{
	struct hs_watch_table *table = hs_mem_zalloc(sizeof *table);

	table->seed = seed;
	hs_hash_table_init(&table->keys);
	hs_hash_table_init(&table->watchers);
	return table;
}

/* Frees a watcher that is already out of its table, and its watches. */
static void free_watcher(struct hs_watch_table *table, struct watcher *watcher)
{
	while (watcher->watches) {
		struct watch *watch = watcher->watches;

		watcher->watches = watch->sibling;
		hs_hash_table_remove(&table->keys, &watch->node);
		hs_mem_free(&watch);
	}
	hs_mem_free(&watcher);
}

void hs_watch_destroy(struct hs_watch_table **table)
{
	struct hs_watch_table *t = *table;
	struct hs_hash_node *node;

	if (!t)
		return;
	while ((node = hs_hash_table_take(&t->watchers)))
		free_watcher(t, hs_hash_entry(node, struct watcher, node));
	hs_hash_table_deinit(&t->watchers);
	hs_hash_table_deinit(&t->keys);
	hs_mem_free(table);
}

static uint64_t hash_id(const struct hs_watch_table *table, uint64_t id)
{
	return hs_hash((struct hs_bytes){(const char *)&id, sizeof id}, table->seed);
}

static struct watcher *find_watcher(const struct hs_watch_table *table, uint64_t id)
{
	hs_hash_each(struct watcher, watcher, &table->watchers, hash_id(table, id), node) {
		if (watcher->id == id)
			return watcher;
	}
	return NULL;
}

static struct hs_bytes key_of(const struct watch *watch)
{
	return (struct hs_bytes){watch->key, watch->key_len};
}

/* Looks the key's record up, expired or not. HS_ENOTFOUND: there is none. */
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
	struct watcher *watcher = find_watcher(table, id);

	if (watcher)
		return watcher;
	watcher = hs_mem_zalloc(sizeof *watcher);
	watcher->id = id;
	hs_hash_table_add(&table->watchers, &watcher->node, hash_id(table, id));
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
		if (watch->node.hash == hash && hs_bytes_equal(key_of(watch), key))
			return 0;
	}
	if (owner->count == HS_WATCH_KEYS_MAX)
		return HS_ELIMIT;
	err = look_up(ks, slot, key, &expired);
	if (err && err != HS_ENOTFOUND)
		return err;

	struct watch *watch = hs_mem_alloc(sizeof *watch + key.len);

	*watch = (struct watch){
		.sibling = owner->watches,
		.watcher = owner,
		.slot = slot,
		.was_expired = expired,
		.key_len = key.len,
	};
	if (key.len)
		memcpy(watch->key, key.data, key.len);
	hs_hash_table_add(&table->keys, &watch->node, hash);
	owner->watches = watch;
	owner->count++;
	return 0;
}

void hs_watch_drop(struct hs_watch_table *table, uint64_t watcher)
{
	struct watcher *owner = find_watcher(table, watcher);

	if (!owner)
		return;
	hs_hash_table_remove(&table->watchers, &owner->node);
	free_watcher(table, owner);
}

bool hs_watch_clean(struct hs_watch_table *table, struct hs_keyspace *ks, uint64_t watcher)
{
	struct watcher *owner = find_watcher(table, watcher);

	if (!owner)
		return true;
	for (struct watch *watch = owner->watches; watch && !owner->dirty; watch = watch->sibling) {
		bool expired = false;
		int err = 0;

		if (!watch->was_expired)
			err = look_up(ks, watch->slot, key_of(watch), &expired);
		/* When the store fails, "changed" is the safe answer. */
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

	if (table->keys.count == 0)
		return;
	hash = hs_hash(key, table->seed);
	hs_hash_each(struct watch, watch, &table->keys, hash, node) {
		if (!hs_bytes_equal(key_of(watch), key))
			continue;
		if (watch->was_expired && look_up(ks, slot, key, &expired) == HS_ENOTFOUND)
			watch->was_expired = false;
		else
			watch->watcher->dirty = true;
	}
}

void hs_watch_touch_all(struct hs_watch_table *table, struct hs_keyspace *ks)
{
	hs_hash_each_of_all(struct watch, watch, &table->keys, node) {
		bool expired;

		if (look_up(ks, watch->slot, key_of(watch), &expired) == HS_ENOTFOUND)
			continue;
		if (watch->was_expired)
			watch->was_expired = false;
		else
			watch->watcher->dirty = true;
	}
}
