/* Goal: the cache that all workers share: versions order writes, every worker finds values that another worker
 * stored, and a claim has one holder.
 *
 * Method: first each rule by itself, on one thread. Then several threads act as workers. Writers change registers
 * that stand in for an engine; readers store what they read under a version and serve it while the version allows,
 * checked against the writes acknowledged before the read. Other threads put, get and clear in a cache that is
 * much too small, and claim and release. The thread sanitizer runs the same tests. */
#include "absorb/shared.h"

#include "base/hash.h"
#include "base/limits.h"
#include "base/prng.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum {
	SEED = 7,
	THREADS = 4,
	KEYS = 8,
	/* Cells of the shared cache; signatures with equal low bits share a cell. */
	CELLS = 1 << 14,
#ifdef __SANITIZE_THREAD__
	TURNS = 20000,
#else
	TURNS = 200000,
#endif
};

/* ---- versions ---- */

static void test_versions(void **state)
{
	struct hs_shared *shared = hs_shared_create(SEED, 0);
	uint64_t a = hs_shared_hash(shared, HS_LIT("a")), b = hs_shared_hash(shared, HS_LIT("b"));
	struct hs_version version, before;

	(void)state;
	assert_int_not_equal(a, b);
	before = hs_shared_write_begin(shared, a);
	assert_int_equal(before.begun, 0);
	assert_int_equal(before.done, 0);
	version = hs_shared_version(shared, a);
	assert_int_equal(version.begun, 1);
	assert_int_equal(version.done, 0);
	before = hs_shared_write_begin(shared, a);
	assert_int_equal(before.begun, 1);
	hs_shared_write_end(shared, a);
	version = hs_shared_version(shared, a);
	assert_int_equal(version.begun, 2);
	assert_int_equal(version.done, 1);
	version = hs_shared_version(shared, b);
	assert_int_equal(version.begun, 0);
	assert_int_equal(version.done, 0);
	hs_shared_destroy(&shared);
	assert_null(shared);
}

/* A write of all keys (FLUSHALL) counts as a write of every key, in addition to the writes of that key. */
static void test_versions_of_everything(void **state)
{
	struct hs_shared *shared = hs_shared_create(SEED, 0);
	struct hs_version version, before;

	(void)state;
	hs_shared_write_begin(shared, 1);
	hs_shared_write_begin_all(shared);
	version = hs_shared_version(shared, 1);
	assert_int_equal(version.begun, 2);
	assert_int_equal(version.done, 0);
	before = hs_shared_write_begin(shared, UINT64_MAX);
	/* The write of all keys is in flight. */
	assert_int_equal(before.begun, 1);
	assert_int_equal(before.done, 0);
	hs_shared_write_end(shared, UINT64_MAX);
	hs_shared_write_end_all(shared);
	for (uint64_t i = 0; i < 64; i++) {
		version = hs_shared_version(shared, i << 58 | 1 << 20);
		assert_true(version.done >= 1);
		assert_true(version.begun >= 1);
	}
	version = hs_shared_version(shared, UINT64_MAX);
	assert_int_equal(version.begun, 2);
	assert_int_equal(version.done, 2);
	hs_shared_destroy(&shared);
}

/* ---- values ---- */

struct named {
	char text[24];
	struct hs_bytes argv[2];
	struct hs_cache_query ask;
};

static void name(struct named *named, uint64_t number)
{
	int len = snprintf(named->text, sizeof named->text, "key:%llu", (unsigned long long)number);
	struct hs_bytes key = {named->text, (size_t)len};

	hs_cache_query_get(&named->ask, hs_hash(key, SEED), key, named->argv);
}

static struct hs_cache_entry *make(const struct hs_cache_query *ask, uint64_t read_us)
{
	struct hs_cache_entry *entry =
		hs_cache_entry_create(ask, (struct hs_bytes){"$1\r\nv\r\n", 7});

	entry->read_us = read_us;
	return entry;
}

static void test_puts_and_gets(void **state)
{
	struct hs_shared *shared = hs_shared_create(SEED, 1 << 20);
	struct named a, b;
	struct hs_cache_entry *entry, *got;

	(void)state;
	name(&a, 1);
	name(&b, 2);
	assert_null(hs_shared_get(shared, &a.ask));
	entry = make(&a.ask, 10);
	hs_shared_put(shared, entry);
	assert_int_equal(entry->refs, 2);
	hs_shared_put(shared, entry); /* the entry is in the shared cache already */
	assert_int_equal(entry->refs, 2);
	got = hs_shared_get(shared, &a.ask);
	assert_ptr_equal(got, entry);
	assert_int_equal(entry->refs, 3);
	hs_cache_entry_unref(&got);
	assert_null(hs_shared_get(shared, &b.ask));
	/* An entry with the same signature but other arguments is not returned. */
	b.ask.signature = a.ask.signature;
	assert_null(hs_shared_get(shared, &b.ask));
	hs_shared_clear(shared);
	assert_int_equal(entry->refs, 1);
	assert_null(hs_shared_get(shared, &a.ask));
	hs_shared_put(shared, entry);
	hs_shared_destroy(&shared);
	assert_int_equal(entry->refs, 1);
	hs_cache_entry_unref(&entry);
}

static bool is_stored(struct hs_shared *shared, const struct hs_cache_query *ask,
		      const struct hs_cache_entry *entry)
{
	struct hs_cache_entry *got = hs_shared_get(shared, ask);
	bool same = got == entry;

	hs_cache_entry_unref(&got);
	return same;
}

static void test_the_newest_value_is_stored(void **state)
{
	struct hs_shared *shared = hs_shared_create(SEED, 1 << 20);
	struct named a, b;
	struct hs_cache_entry *old, *new, *other;

	(void)state;
	name(&a, 1);
	name(&b, 2);
	old = make(&a.ask, 10);
	new = make(&a.ask, 20);
	hs_shared_put(shared, old);
	hs_shared_put(shared, new);
	assert_true(is_stored(shared, &a.ask, new));
	/* A late put of the older entry does not replace the newer one. */
	hs_shared_put(shared, old);
	assert_true(is_stored(shared, &a.ask, new));
	/* The entry with more acknowledged writes at its fetch is newer, although its fetch began earlier. */
	old->done = 1;
	hs_shared_put(shared, old);
	assert_true(is_stored(shared, &a.ask, old));
	hs_shared_put(shared, new);
	assert_true(is_stored(shared, &a.ask, new));
	new->done = 1;
	new->invalid = true;
	hs_shared_put(shared, old);
	assert_true(is_stored(shared, &a.ask, old));
	/* A cell holds one entry: putting an entry of another signature into the cell replaces the first one. */
	b.ask.signature = a.ask.signature + CELLS;
	other = make(&b.ask, 1);
	hs_shared_put(shared, other);
	assert_true(is_stored(shared, &b.ask, other));
	assert_null(hs_shared_get(shared, &a.ask));
	assert_int_equal(old->refs, 1);
	hs_shared_destroy(&shared);
	hs_cache_entry_unref(&old);
	hs_cache_entry_unref(&new);
	hs_cache_entry_unref(&other);
}

static void test_bytes_are_bounded(void **state)
{
	enum { FIT = 100, MANY = 5000 };
	struct named named;
	struct hs_cache_entry *entry;
	struct hs_shared *shared;
	size_t bytes, found = 0;

	(void)state;
	name(&named, 1000);
	entry = make(&named.ask, 1);
	bytes = entry->bytes;
	hs_cache_entry_unref(&entry);
	shared = hs_shared_create(SEED, FIT * bytes);
	for (uint64_t i = 0; i < MANY; i++) {
		name(&named, 1000 + i);
		entry = make(&named.ask, 1);
		assert_int_equal(entry->bytes, bytes);
		hs_shared_put(shared, entry);
		hs_cache_entry_unref(&entry);
	}
	for (uint64_t i = 0; i < MANY; i++) {
		name(&named, 1000 + i);
		entry = hs_shared_get(shared, &named.ask);
		found += entry != NULL;
		hs_cache_entry_unref(&entry);
	}
	assert_in_range(found, FIT - 1, FIT);
	hs_shared_destroy(&shared);
	/* The cache rejects an entry larger than its limit and evicts nothing for it. */
	shared = hs_shared_create(SEED, bytes - 1);
	entry = make(&named.ask, 1);
	hs_shared_put(shared, entry);
	assert_int_equal(entry->refs, 1);
	hs_cache_entry_unref(&entry);
	hs_shared_destroy(&shared);
}

/* ---- claims ---- */

static void test_claims(void **state)
{
	struct hs_shared *shared = hs_shared_create(SEED, 0);
	uint32_t by = 99;

	(void)state;
	assert_true(hs_shared_claim(shared, 5, 0, &by));
	assert_int_equal(by, 99);
	assert_true(hs_shared_claim(shared, 6, 0, &by));
	assert_false(hs_shared_release(shared, 6, 0)); /* false: no worker waits for the claim */
	assert_false(hs_shared_claim(shared, 5, 1, &by));
	assert_int_equal(by, 0);
	assert_false(hs_shared_claim(shared, 5, HS_WORKERS_MAX - 1, &by));
	assert_int_equal(by, 0);
	assert_true(hs_shared_release(shared, 5, 0));
	assert_true(hs_shared_claim(shared, 5, HS_WORKERS_MAX - 1, &by));
	/* The worker already holds a claim of another signature in this cell. The new claim fails and returns the
	 * worker's own number, so that the worker does not wait for itself. */
	assert_false(hs_shared_claim(shared, 5 + CELLS, HS_WORKERS_MAX - 1, &by));
	assert_int_equal(by, HS_WORKERS_MAX - 1);
	assert_false(hs_shared_release(shared, 5, HS_WORKERS_MAX - 1));
	hs_shared_destroy(&shared);
}

/* Two signatures share a cell. The fetch of one may hang on a dead server, while the server of the other is up: a
 * claim of the other signature fails with the worker's own number, so the worker does not wait. */
static void test_a_claim_of_another_signature_is_not_waited_for(void **state)
{
	struct hs_shared *shared = hs_shared_create(SEED, 0);
	uint32_t by = 99;

	(void)state;
	assert_true(hs_shared_claim(shared, 5, 0, &by));
	assert_false(hs_shared_claim(shared, 5 + CELLS, 1, &by));
	assert_int_equal(by, 1);
	assert_false(hs_shared_claim(shared, UINT64_MAX - CELLS + 6, 1, &by));
	assert_int_equal(by, 1);
	assert_false(hs_shared_release(shared, 5, 0)); /* false: no worker waits for the claim */
	assert_true(hs_shared_claim(shared, UINT64_MAX - CELLS + 6, HS_WORKERS_MAX - 1, &by));
	assert_false(hs_shared_claim(shared, UINT64_MAX - CELLS + 6, 1, &by));
	assert_int_equal(by, HS_WORKERS_MAX - 1);
	assert_true(hs_shared_release(shared, UINT64_MAX - CELLS + 6, HS_WORKERS_MAX - 1));
	hs_shared_destroy(&shared);
}

/* ---- threads ---- */

struct shared {
	struct hs_shared *shared;
	pthread_barrier_t start;
	pthread_mutex_t engine;		    /* a lock: an engine runs one command at a time */
	uint64_t value[KEYS];		    /* the engine's data */
	_Atomic uint64_t acked[KEYS];	    /* the last write acknowledged to a client */
	_Atomic uint32_t holders[KEYS];	    /* how many threads hold the key's claim */
	_Atomic uint64_t entry, hits, gone; /* counts of what the threads did */
	_Atomic uint64_t complaints;
};

struct party {
	struct shared *shared;
	uint32_t number;
	void *(*what)(void *);
};

static uint64_t hash_of(uint64_t key)
{
	return key << 55 | key; /* two neighbouring keys share a version */
}

static uint64_t run(struct shared *shared, uint64_t key, bool write)
{
	uint64_t value;

	pthread_mutex_lock(&shared->engine);
	value = shared->value[key] += write;
	pthread_mutex_unlock(&shared->engine);
	return value;
}

struct copy {
	uint64_t value;
	uint32_t done;
	bool valid;
};

/* Writes one key; if `all`, the write counts as one of all keys. `copy` is valid for the shared cache if no other
 * write was in flight. */
static void write_one(struct shared *shared, uint64_t key, bool all, struct copy *copy)
{
	struct hs_version before, after;
	uint64_t value, acked;

	if (all) {
		hs_shared_write_begin_all(shared->shared);
		before.begun = 1;
		before.done = 0;
	} else {
		before = hs_shared_write_begin(shared->shared, hash_of(key));
	}
	value = run(shared, key, true);
	after = hs_shared_version(shared->shared, hash_of(key));
	copy->valid = before.begun == before.done && after.begun == before.begun + 1 &&
		      after.done == before.done;
	copy->value = value;
	copy->done = before.done + 1;
	if (copy->valid)
		atomic_fetch_add_explicit(&shared->entry, 1, memory_order_relaxed);
	if (all)
		hs_shared_write_end_all(shared->shared);
	else
		hs_shared_write_end(shared->shared, hash_of(key));
	acked = atomic_load(&shared->acked[key]);
	while (acked < value && !atomic_compare_exchange_weak(&shared->acked[key], &acked, value))
		;
}

static void read_one(struct shared *shared, uint64_t key, struct copy *copy)
{
	uint64_t acked = atomic_load(&shared->acked[key]);
	struct hs_version version = hs_shared_version(shared->shared, hash_of(key)), after;

	if (copy->valid && copy->done == version.done) {
		atomic_fetch_add_explicit(&shared->hits, 1, memory_order_relaxed);
		if (copy->value < acked)
			atomic_fetch_add(&shared->complaints, 1);
		return;
	}
	copy->value = run(shared, key, false);
	after = hs_shared_version(shared->shared, hash_of(key));
	copy->valid = after.begun == version.begun && after.done == version.done;
	copy->done = version.done;
	if (!copy->valid)
		atomic_fetch_add_explicit(&shared->gone, 1, memory_order_relaxed);
}

static void *work(void *data)
{
	const struct party *party = data;
	struct copy copies[KEYS] = {0};
	struct hs_prng prng;

	hs_prng_init(&prng, party->number);
	for (size_t i = 0; i < TURNS; i++) {
		uint64_t key = hs_prng_below(&prng, KEYS), draw = hs_prng_below(&prng, 1000);

		if (draw < 100)
			write_one(party->shared, key, draw == 0, &copies[key]);
		else
			read_one(party->shared, key, &copies[key]);
	}
	return NULL;
}

static void *start(void *data)
{
	const struct party *party = data;

	pthread_barrier_wait(&party->shared->start);
	return party->what(data);
}

static void run_threads(struct shared *shared, void *(*what)(void *))
{
	struct party parties[THREADS];
	pthread_t threads[THREADS];

	pthread_mutex_init(&shared->engine, NULL);
	pthread_barrier_init(&shared->start, NULL, THREADS);
	for (uint32_t i = 0; i < THREADS; i++) {
		parties[i] = (struct party){shared, i, what};
		assert_int_equal(pthread_create(&threads[i], NULL, start, &parties[i]), 0);
	}
	for (uint32_t i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	pthread_mutex_destroy(&shared->engine);
	pthread_barrier_destroy(&shared->start);
	assert_int_equal(shared->complaints, 0);
}

/* All threads write and claim one key: no write and no claim gets lost. */
static void *hammer(void *data)
{
	const struct party *party = data;
	struct shared *shared = party->shared;
	uint32_t by;

	for (uint64_t i = 0; i < 5 * TURNS; i++) {
		hs_shared_write_begin(shared->shared, hash_of(1));
		if (hs_shared_claim(shared->shared, 1, party->number, &by)) {
			shared->value[0]++; /* only the thread that holds the claim writes here */
			atomic_fetch_add_explicit(&shared->hits, 1, memory_order_relaxed);
			hs_shared_release(shared->shared, 1, party->number);
		}
		hs_shared_write_end(shared->shared, hash_of(1));
	}
	return NULL;
}

static void test_no_write_is_lost(void **state)
{
	struct shared shared = {.shared = hs_shared_create(SEED, 0)};
	struct hs_version version;

	(void)state;
	run_threads(&shared, hammer);
	version = hs_shared_version(shared.shared, hash_of(1));
	assert_int_equal(version.begun, 5 * TURNS * THREADS);
	assert_int_equal(version.done, 5 * TURNS * THREADS);
	assert_int_equal(shared.value[0], shared.hits);
	hs_shared_destroy(&shared.shared);
}

static void test_overwritten_values_are_not_read(void **state)
{
	struct shared shared = {.shared = hs_shared_create(SEED, 0)};

	(void)state;
	run_threads(&shared, work);
	assert_true(shared.entry > 0);
	assert_true(shared.hits > 0);
	hs_shared_destroy(&shared.shared);
}

/* A thread that puts and gets random entries, and sometimes clears the cache. */
static void *trade(void *data)
{
	const struct party *party = data;
	struct shared *shared = party->shared;
	struct hs_prng prng;

	hs_prng_init(&prng, party->number);
	for (uint64_t i = 0; i < TURNS / 4; i++) {
		uint64_t key = hs_prng_below(&prng, KEYS);
		struct named named;
		struct hs_cache_entry *entry;
		uint32_t by;

		name(&named, key);
		if (i % 5000 == 4999)
			hs_shared_clear(shared->shared);
		entry = hs_shared_get(shared->shared, &named.ask);
		if (entry && !hs_bytes_equal(entry->key, named.ask.key))
			atomic_fetch_add(&shared->complaints, 1);
		if (entry)
			atomic_fetch_add_explicit(&shared->hits, 1, memory_order_relaxed);
		hs_cache_entry_unref(&entry);
		if (!hs_shared_claim(shared->shared, key, party->number, &by)) {
			if (by == party->number || by >= THREADS)
				atomic_fetch_add(&shared->complaints, 1);
			continue;
		}
		if (atomic_fetch_add(&shared->holders[key], 1) > 0)
			atomic_fetch_add(&shared->complaints, 1);
		entry = make(&named.ask, i);
		hs_shared_put(shared->shared, entry);
		hs_cache_entry_unref(&entry);
		atomic_fetch_sub(&shared->holders[key], 1);
		if (hs_shared_release(shared->shared, key, party->number))
			atomic_fetch_add_explicit(&shared->gone, 1, memory_order_relaxed);
	}
	return NULL;
}

static void test_values_and_claims_of_many(void **state)
{
	struct named named;
	struct hs_cache_entry *entry;
	struct shared shared = {0};

	(void)state;
	name(&named, 1);
	entry = make(&named.ask, 1);
	/* The shared cache has room for half of the entries. */
	shared.shared = hs_shared_create(SEED, entry->bytes * KEYS / 2);
	run_threads(&shared, trade);
	assert_true(shared.hits > 0);
	/* After all puts and removals the count of bytes is still right: as many entries fit as in an empty
	 * cache. */
	hs_shared_clear(shared.shared);
	for (uint64_t i = 0, found = 0; i < 2; i++, found = 0) {
		for (uint64_t key = 0; key < KEYS / 2 * (i + 1); key++) {
			struct hs_cache_entry *one;

			name(&named, key);
			one = make(&named.ask, 1);
			hs_shared_put(shared.shared, one);
			hs_cache_entry_unref(&one);
		}
		for (uint64_t key = 0; key < KEYS; key++) {
			struct hs_cache_entry *one;

			name(&named, key);
			one = hs_shared_get(shared.shared, &named.ask);
			found += one != NULL;
			hs_cache_entry_unref(&one);
		}
		assert_int_equal(found, KEYS / 2);
	}
	hs_cache_entry_unref(&entry);
	hs_shared_destroy(&shared.shared);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_versions),
		cmocka_unit_test(test_versions_of_everything),
		cmocka_unit_test(test_puts_and_gets),
		cmocka_unit_test(test_the_newest_value_is_stored),
		cmocka_unit_test(test_bytes_are_bounded),
		cmocka_unit_test(test_claims),
		cmocka_unit_test(test_a_claim_of_another_signature_is_not_waited_for),
		cmocka_unit_test(test_no_write_is_lost),
		cmocka_unit_test(test_overwritten_values_are_not_read),
		cmocka_unit_test(test_values_and_claims_of_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
