/* Goal: the store of the cache finds entries again, evicts the right ones when it is full, and frees them.
 *
 * Method: keys are numbers and every reply has a given size, so that a test knows how many fit. After each test
 * the store is destroyed and must count nothing. Finally random operations are compared with a plain model: each
 * key in the store must be the one that was put there. */
#include "absorb/cache/store.h"

#include "absorb/cache/ghosts.h"
#include "base/hash.h"
#include "base/num.h"
#include "base/prng.h"
#include "core/call.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SEED = 7, WORKER = 3, REPLY_BYTES = 1000, KIB = 1024 };

struct world {
	struct hs_cache *cache;
	struct hs_tracking_session tracking_session, other;
};

static void set_up(struct world *world, uint64_t bytes_max, uint64_t entry_bytes_max)
{
	struct hs_cache_limits limits = {bytes_max, entry_bytes_max};

	*world = (struct world){.cache = hs_cache_create(WORKER, &limits)};
}

static void tear_down(struct world *world)
{
	struct hs_cache_counts counts;

	hs_cache_clear(world->cache);
	counts = hs_cache_counts(world->cache);
	assert_int_equal(counts.keys, 0);
	assert_int_equal(counts.entries, 0);
	assert_int_equal(counts.bytes, 0);
	hs_cache_destroy(&world->cache);
	assert_null(world->cache);
}

struct named {
	char text[24];
	struct hs_bytes argv[3];
	struct hs_cache_query ask;
};

/* Names the request `GETBIT key variant`, or `GET key` if variant is -1. */
static void name(struct named *named, uint64_t number, int variant)
{
	static const char *const variants = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFG";
	int len = snprintf(named->text, sizeof named->text, "key:%llu", (unsigned long long)number);
	struct hs_bytes key = {named->text, (size_t)len};
	struct hs_call call;

	if (variant < 0) {
		hs_cache_query_get(&named->ask, hs_hash(key, SEED), key, named->argv);
		return;
	}
	named->argv[0] = HS_LIT("GETBIT");
	named->argv[1] = key;
	named->argv[2] = (struct hs_bytes){&variants[variant], 1};
	call = hs_call_of(hs_command_by_id(HS_CMD_ID_GETBIT), 3, named->argv);
	assert_true(hs_cache_query_of_call(&named->ask, SEED, &call));
}

/* A cache entry that takes `bytes` in all. */
static struct hs_cache_entry *reply_of(struct world *world, const struct hs_cache_query *ask,
				       size_t bytes)
{
	static char text[64 * KIB];
	struct hs_cache_entry *entry;
	size_t fixed, len;

	entry = hs_cache_entry_create(ask, HS_LIT("+\r\n"));
	fixed = entry->bytes - 3;
	hs_cache_entry_unref(&entry);
	assert_true(bytes >= fixed + 3);
	len = bytes - fixed;
	assert_true(len <= sizeof text);
	memset(text, 'x', len);
	text[0] = '+';
	memcpy(text + len - 2, "\r\n", 2);
	entry = hs_cache_entry_create(ask, (struct hs_bytes){text, len});
	assert_int_equal(entry->bytes, bytes);
	entry->worker = WORKER;
	entry->tracking_session = &world->tracking_session;
	return entry;
}

static struct hs_cache_key *find(struct world *world, uint64_t number)
{
	struct named named;

	name(&named, number, -1);
	return hs_cache_find(world->cache, named.ask.key_hash, named.ask.key);
}

static struct hs_cache_key *admit(struct world *world, uint64_t number)
{
	struct named named;

	name(&named, number, -1);
	return hs_cache_admit(world->cache, named.ask.key_hash, named.ask.key);
}

/* Admits the key if needed, and caches a reply for each variant. Returns the last entry, which the store owns. */
static struct hs_cache_entry *fetch(struct world *world, uint64_t number, int variant, size_t bytes)
{
	struct hs_cache_key *cached = admit(world, number);
	struct hs_cache_entry *entry, *borrowed;
	struct named named;

	assert_non_null(cached);
	name(&named, number, variant);
	borrowed = entry = reply_of(world, &named.ask, bytes);
	assert_true(hs_cache_put(world->cache, cached, entry));
	hs_cache_entry_unref(&entry);
	return borrowed;
}

/* A client's read: returns true for a hit; otherwise fetches the key. */
static bool request(struct world *world, uint64_t number)
{
	struct hs_cache_key *cached = find(world, number);

	if (cached && cached->entries_count > 0) {
		hs_cache_use(cached);
		return true;
	}
	fetch(world, number, -1, REPLY_BYTES);
	return false;
}

static void test_finds_cached_entries(void **state)
{
	struct world world;
	struct named named;
	struct hs_cache_entry *entry;

	(void)state;
	set_up(&world, 1000 * KIB, 100 * KIB);
	assert_null(find(&world, 1));
	entry = fetch(&world, 1, -1, REPLY_BYTES);
	name(&named, 1, -1);
	assert_ptr_equal(hs_cache_get(find(&world, 1), &named.ask), entry);
	assert_true(hs_bytes_equal(find(&world, 1)->key, named.ask.key));
	assert_ptr_equal(admit(&world, 1), find(&world, 1));
	assert_int_equal(entry->refs, 1);
	name(&named, 1, 4);
	assert_null(hs_cache_get(find(&world, 1), &named.ask));
	entry = fetch(&world, 1, 4, REPLY_BYTES);
	assert_ptr_equal(hs_cache_get(find(&world, 1), &named.ask), entry);
	assert_int_equal(hs_cache_counts(world.cache).keys, 1);
	assert_int_equal(hs_cache_counts(world.cache).entries, 2);
	/* The store does not confuse a key with another key of the same hash. */
	assert_null(hs_cache_find(world.cache, find(&world, 1)->node.hash, HS_LIT("other")));
	tear_down(&world);
}

static void test_a_newer_reply_takes_the_place(void **state)
{
	struct world world;
	struct named named;
	struct hs_cache_entry *old, *new;

	(void)state;
	set_up(&world, 1000 * KIB, 100 * KIB);
	old = fetch(&world, 1, -1, REPLY_BYTES);
	hs_cache_entry_ref(old);
	/* The store has this entry already. */
	assert_true(hs_cache_put(world.cache, find(&world, 1), old));
	assert_false(old->invalid);
	new = fetch(&world, 1, -1, 2 * REPLY_BYTES);
	name(&named, 1, -1);
	assert_ptr_equal(hs_cache_get(find(&world, 1), &named.ask), new);
	assert_int_equal(find(&world, 1)->entries_count, 1);
	/* The store marks the replaced entry invalid, because it gets no invalidations any more. */
	assert_true(old->invalid);
	assert_int_equal(old->refs, 1);
	hs_cache_entry_unref(&old);
	hs_cache_drop(world.cache, find(&world, 1), new);
	assert_int_equal(find(&world, 1)->entries_count, 0);
	tear_down(&world);
}

static void test_variants_are_limited(void **state)
{
	enum { MORE = 5 };
	struct world world;
	struct named named;

	(void)state;
	set_up(&world, 1000 * KIB, 100 * KIB);
	for (int i = 0; i < HS_CACHE_VARIANTS_MAX + MORE; i++)
		fetch(&world, 1, i, REPLY_BYTES);
	assert_int_equal(find(&world, 1)->entries_count, HS_CACHE_VARIANTS_MAX);
	for (int i = 0; i < HS_CACHE_VARIANTS_MAX + MORE; i++) {
		name(&named, 1, i);
		assert_int_equal(hs_cache_get(find(&world, 1), &named.ask) != NULL, i >= MORE);
	}
	assert_true(hs_cache_counts(world.cache).bytes >= HS_CACHE_VARIANTS_MAX * REPLY_BYTES);
	tear_down(&world);
}

static void test_too_large(void **state)
{
	struct world world;
	struct named named;
	struct hs_cache_entry *entry, *small;
	char key[3 * KIB];

	(void)state;
	set_up(&world, 10 * KIB, 2 * KIB);
	small = fetch(&world, 1, -1, REPLY_BYTES);
	hs_cache_entry_ref(small);
	name(&named, 1, -1);
	entry = reply_of(&world, &named.ask, 2 * KIB + 1);
	assert_false(hs_cache_put(world.cache, find(&world, 1), entry));
	hs_cache_entry_unref(&entry);
	assert_int_equal(hs_cache_counts(world.cache).too_large, 1);
	/* The reply was too large to be cached, and the older entry of the request is out of date. */
	assert_null(hs_cache_get(find(&world, 1), &named.ask));
	assert_true(small->invalid);
	hs_cache_entry_unref(&small);
	fetch(&world, 1, -1, 2 * KIB);
	/* The store admits no key that is too long. */
	memset(key, 'k', sizeof key);
	assert_null(hs_cache_admit(world.cache, 1, (struct hs_bytes){key, sizeof key}));
	assert_int_equal(hs_cache_counts(world.cache).keys, 1);
	tear_down(&world);

	/* If the limit of an entry is below the size of a record, the store still admits keys, so that concurrent
	 * reads can share a fetch. */
	set_up(&world, 10 * KIB, 16);
	assert_non_null(admit(&world, 1));
	tear_down(&world);

	/* The store evicts no other entry for a reply that would fit alone but not beside the other entries. */
	set_up(&world, 10 * KIB, 20 * KIB);
	fetch(&world, 1, -1, REPLY_BYTES);
	name(&named, 2, -1);
	entry = reply_of(&world, &named.ask, 10 * KIB);
	assert_false(hs_cache_put(world.cache, admit(&world, 2), entry));
	hs_cache_entry_unref(&entry);
	assert_int_equal(hs_cache_counts(world.cache).too_large, 1);
	assert_int_equal(hs_cache_counts(world.cache).evicted, 0);
	tear_down(&world);
}

static void test_bytes_are_bounded(void **state)
{
	struct world world;
	struct hs_prng prng;

	(void)state;
	set_up(&world, 100 * KIB, 10 * KIB);
	hs_prng_init(&prng, 1);
	for (uint64_t i = 0; i < 5000; i++) {
		uint64_t number = hs_prng_below(&prng, 500);

		fetch(&world, number, (int)hs_prng_below(&prng, 40),
		      500 + hs_prng_below(&prng, 5000));
		if (hs_prng_below(&prng, 2) && find(&world, number))
			hs_cache_use(find(&world, number));
		assert_true(hs_cache_counts(world.cache).bytes <= 100 * KIB);
	}
	/* The store uses the room it has. */
	assert_true(hs_cache_counts(world.cache).bytes > 85 * KIB);
	assert_true(hs_cache_counts(world.cache).evicted > 1000);
	tear_down(&world);
}

static void test_pinned_keys_stay(void **state)
{
	struct world world;
	struct hs_cache_key *pinned[50];
	struct named named;
	struct hs_cache_entry *entry;
	uint64_t number = 50;

	(void)state;
	set_up(&world, 100 * KIB, 10 * KIB);
	for (uint64_t i = 0; i < 50; i++) {
		request(&world, i);
		pinned[i] = find(&world, i);
		pinned[i]->pins = 1;
	}
	for (; number < 2000; number++)
		request(&world, number);
	for (uint64_t i = 0; i < 50; i++)
		assert_ptr_equal(find(&world, i), pinned[i]);
	assert_false(hs_cache_remove(world.cache, pinned[0]));
	/* All of the room is pinned: the store admits no key, caches no reply, and loses nothing. */
	for (;; number++) {
		struct hs_cache_key *cached = admit(&world, number);

		if (!cached)
			break;
		cached->pins = 1;
	}
	name(&named, 0, 9);
	entry = reply_of(&world, &named.ask, REPLY_BYTES);
	assert_false(hs_cache_put(world.cache, pinned[0], entry));
	hs_cache_entry_unref(&entry);
	assert_int_equal(hs_cache_counts(world.cache).too_large, 0);
	for (uint64_t i = 0; i < 50; i++)
		assert_ptr_equal(find(&world, i), pinned[i]);
	/* After a clear, pinned keys have no entries but are still present. */
	hs_cache_clear(world.cache);
	assert_ptr_equal(find(&world, 7), pinned[7]);
	assert_int_equal(pinned[7]->entries_count, 0);
	/* Once the keys are unpinned, the store has room for a new key. */
	for (uint64_t i = 0; i < number; i++)
		if (find(&world, i))
			find(&world, i)->pins = 0;
	assert_non_null(admit(&world, number));
	assert_true(hs_cache_remove(world.cache, find(&world, 0)));
	assert_null(find(&world, 0));
	tear_down(&world);
}

static void test_evicted_entries_are_freed(void **state)
{
	enum { FEW = 30 };
	struct world world;
	struct hs_cache_entry *own[FEW], *others[FEW], *untracked_entry[FEW];

	(void)state;
	set_up(&world, 200 * KIB, 10 * KIB);
	for (uint64_t i = 0; i < FEW; i++) {
		hs_cache_entry_ref(own[i] = fetch(&world, i, 0, REPLY_BYTES));
		hs_cache_entry_ref(others[i] = fetch(&world, i, 1, REPLY_BYTES));
		/* An entry from the shared cache: the worker that fetched it gets its invalidations. */
		others[i]->worker = WORKER + 1;
		hs_cache_entry_ref(untracked_entry[i] = fetch(&world, i, 2, REPLY_BYTES));
		untracked_entry[i]->tracking_session =
			NULL; /* an entry without a tracking session */
	}
	for (uint64_t i = FEW; i < 1000; i++)
		request(&world, i);
	for (uint64_t i = 0; i < FEW; i++) {
		assert_null(find(&world, i));
		assert_true(own[i]->invalid);
		assert_false(others[i]->invalid);
		assert_false(untracked_entry[i]->invalid);
		assert_int_equal(own[i]->refs, 1);
		hs_cache_entry_unref(&own[i]);
		hs_cache_entry_unref(&others[i]);
		hs_cache_entry_unref(&untracked_entry[i]);
	}
	tear_down(&world);
}

static void test_entries_invalidated_while_referenced(void **state)
{
	struct world world;
	struct named named;
	struct hs_cache_entry *a, *b, *c;

	(void)state;
	set_up(&world, 1000 * KIB, 10 * KIB);
	hs_cache_entry_ref(a = fetch(&world, 1, 0, REPLY_BYTES));
	hs_cache_entry_ref(b = fetch(&world, 1, 1, REPLY_BYTES));
	hs_cache_entry_ref(c = fetch(&world, 1, 2, REPLY_BYTES));
	c->tracking_session = &world.other;
	name(&named, 1, 0);
	assert_null(hs_cache_find(world.cache, named.ask.key_hash, HS_LIT("k")));
	assert_int_equal(hs_cache_invalidate(world.cache, find(&world, 1), &world.tracking_session),
			 2);
	assert_true(a->invalid);
	assert_true(b->invalid);
	assert_false(c->invalid);
	assert_int_equal(find(&world, 1)->entries_count, 1);
	assert_int_equal(hs_cache_invalidate(world.cache, find(&world, 1), &world.tracking_session),
			 0);
	assert_int_equal(hs_cache_invalidate_all(world.cache, &world.tracking_session), 0);
	for (uint64_t i = 2; i < 20; i++)
		fetch(&world, i, 0, REPLY_BYTES);
	assert_int_equal(hs_cache_invalidate_all(world.cache, &world.tracking_session), 18);
	assert_false(c->invalid);
	assert_int_equal(hs_cache_invalidate_all(world.cache, &world.other), 1);
	assert_true(c->invalid);
	assert_int_equal(hs_cache_counts(world.cache).keys, 19);
	assert_int_equal(hs_cache_counts(world.cache).entries, 0);
	hs_cache_entry_unref(&a);
	hs_cache_entry_unref(&b);
	hs_cache_entry_unref(&c);
	tear_down(&world);
}

static void test_each(void **state)
{
	struct world world;
	struct hs_cache_key *cached;
	bool seen[300] = {0};
	size_t at = 0, count = 0;

	(void)state;
	set_up(&world, 10000 * KIB, 10 * KIB);
	assert_null(hs_cache_each(world.cache, &at));
	for (uint64_t i = 0; i < 300; i++)
		request(&world, i);
	at = 0;
	while ((cached = hs_cache_each(world.cache, &at))) {
		uint64_t number;

		assert_true(hs_num_parse_uint(
			(struct hs_bytes){cached->key.data + 4, cached->key.len - 4}, &number));
		assert_false(seen[number]);
		seen[number] = true;
		count++;
		if (number % 3 == 0) /* removes the key that the walk has just returned */
			assert_true(hs_cache_remove(world.cache, cached));
	}
	assert_int_equal(count, 300);
	assert_int_equal(hs_cache_counts(world.cache).keys, 200);
	tear_down(&world);
}

static void test_smaller_limits(void **state)
{
	struct world world;

	(void)state;
	set_up(&world, 1000 * KIB, 10 * KIB);
	for (uint64_t i = 0; i < 500; i++)
		request(&world, i);
	assert_true(hs_cache_counts(world.cache).bytes > 500 * KIB);
	hs_cache_limit(world.cache, &(struct hs_cache_limits){50 * KIB, 10 * KIB});
	assert_true(hs_cache_counts(world.cache).bytes <= 50 * KIB);
	assert_true(hs_cache_counts(world.cache).keys > 20);
	hs_cache_limit(world.cache, &(struct hs_cache_limits){0, 0});
	assert_int_equal(hs_cache_counts(world.cache).keys, 0);
	assert_null(admit(&world, 1));
	tear_down(&world);
}

/* A scan reads ten times as many keys as fit, each once. The scan does not evict the keys in use. */
static void test_a_scan_passes_by(void **state)
{
	enum { USED = 100, ONCE = 20000 };
	struct world world;
	uint64_t hits = 0;

	(void)state;
	set_up(&world, 200 * KIB, 10 * KIB); /* the cache has room for about 150 keys */
	for (uint64_t round = 0; round < 3; round++)
		for (uint64_t i = 0; i < USED; i++)
			request(&world, i);
	for (uint64_t i = 0; i < ONCE; i++) {
		request(&world, 1000 + i);
		if (i % 10 == 0)
			hits += request(&world, i / 10 % USED);
	}
	assert_true(hits > ONCE / 10 * 98 / 100);
	assert_true(hs_cache_counts(world.cache).keys < 200);
	tear_down(&world);
}

/* Keys that were in use for long but are idle since are evicted in favour of keys in use. */
static void test_new_keys_take_over(void **state)
{
	enum { USED = 100 };
	struct world world;
	uint64_t hits = 0;

	(void)state;
	set_up(&world, 200 * KIB, 10 * KIB);
	for (uint64_t round = 0; round < 100; round++)
		for (uint64_t i = 0; i < USED; i++)
			request(&world, i);
	for (uint64_t round = 0; round < 50; round++)
		for (uint64_t i = 0; i < USED; i++)
			hits += request(&world, USED + i) && round >= 40;
	assert_true(hits > 10 * USED * 95 / 100);
	tear_down(&world);
}

static void test_ghosts(void **state)
{
	enum { KEYS = 1000 };
	struct hs_ghosts ghosts = {0};
	size_t found = 0, old = 0;

	(void)state;
	assert_false(hs_ghosts_take(&ghosts, 5, KEYS));
	for (uint64_t i = 0; i < 3 * KEYS; i++)
		hs_ghosts_add(&ghosts, i * 0x9e3779b97f4a7c15, KEYS);
	for (uint64_t i = 0; i < 2 * KEYS; i++)
		old += hs_ghosts_take(&ghosts, i * 0x9e3779b97f4a7c15, KEYS);
	for (uint64_t i = 2 * KEYS; i < 3 * KEYS; i++)
		found += hs_ghosts_take(&ghosts, i * 0x9e3779b97f4a7c15, KEYS);
	assert_in_range(old, 0, 2);
	assert_in_range(found, KEYS * 95 / 100, KEYS);
	for (uint64_t i = 2 * KEYS; i < 3 * KEYS; i++) /* each ghost can be taken once */
		assert_false(hs_ghosts_take(&ghosts, i * 0x9e3779b97f4a7c15, KEYS));
	/* The ghosts' memory grows and shrinks with the number of keys in the cache. */
	hs_ghosts_add(&ghosts, 1, 100 * KEYS);
	assert_in_range(ghosts.sets * 4, 200 * KEYS, 400 * KEYS);
	hs_ghosts_add(&ghosts, 1, KEYS);
	assert_in_range(ghosts.sets * 4, 2 * KEYS, 16 * KEYS);
	hs_ghosts_deinit(&ghosts);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_finds_cached_entries),
		cmocka_unit_test(test_a_newer_reply_takes_the_place),
		cmocka_unit_test(test_variants_are_limited),
		cmocka_unit_test(test_too_large),
		cmocka_unit_test(test_bytes_are_bounded),
		cmocka_unit_test(test_pinned_keys_stay),
		cmocka_unit_test(test_evicted_entries_are_freed),
		cmocka_unit_test(test_entries_invalidated_while_referenced),
		cmocka_unit_test(test_each),
		cmocka_unit_test(test_smaller_limits),
		cmocka_unit_test(test_a_scan_passes_by),
		cmocka_unit_test(test_new_keys_take_over),
		cmocka_unit_test(test_ghosts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
