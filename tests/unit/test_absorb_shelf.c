/* The shelf: stamps say what was written, values are found by all, claims have one holder.
 *
 * First each rule by itself, on one thread. Then several threads at once, as workers are: writers of
 * registers that stand in for an engine, readers that keep what they read under a stamp and give it as
 * long as the stamp allows, checked against what had been acknowledged before they looked; and threads
 * that put, get and clear in a shelf much too small, and claim and release. The thread sanitizer runs
 * these very tests. */
#include "absorb/shelf.h"

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
	CELLS = 1 << 14, /* of the shelf: signatures that are equal below that share one */
#ifdef __SANITIZE_THREAD__
	TURNS = 20000,
#else
	TURNS = 200000,
#endif
};

/* ---- stamps ---- */

static void test_stamps(void **state)
{
	struct hs_shelf *shelf = hs_shelf_create(SEED, 0);
	uint64_t a = hs_shelf_hash(shelf, HS_LIT("a")), b = hs_shelf_hash(shelf, HS_LIT("b"));
	struct hs_stamp stamp, before;

	(void)state;
	assert_int_not_equal(a, b);
	before = hs_shelf_begin(shelf, a);
	assert_int_equal(before.begun, 0);
	assert_int_equal(before.done, 0);
	stamp = hs_shelf_stamp(shelf, a);
	assert_int_equal(stamp.begun, 1);
	assert_int_equal(stamp.done, 0);
	before = hs_shelf_begin(shelf, a);
	assert_int_equal(before.begun, 1);
	hs_shelf_end(shelf, a);
	stamp = hs_shelf_stamp(shelf, a);
	assert_int_equal(stamp.begun, 2);
	assert_int_equal(stamp.done, 1);
	stamp = hs_shelf_stamp(shelf, b);
	assert_int_equal(stamp.begun, 0);
	assert_int_equal(stamp.done, 0);
	hs_shelf_destroy(&shelf);
	assert_null(shelf);
}

/* A write of everything is one of each key, also beside a key's own. */
static void test_stamps_of_everything(void **state)
{
	struct hs_shelf *shelf = hs_shelf_create(SEED, 0);
	struct hs_stamp stamp, before;

	(void)state;
	hs_shelf_begin(shelf, 1);
	hs_shelf_begin_all(shelf);
	stamp = hs_shelf_stamp(shelf, 1);
	assert_int_equal(stamp.begun, 2);
	assert_int_equal(stamp.done, 0);
	before = hs_shelf_begin(shelf, UINT64_MAX);
	assert_int_equal(before.begun, 1); /* somebody is writing */
	assert_int_equal(before.done, 0);
	hs_shelf_end(shelf, UINT64_MAX);
	hs_shelf_end_all(shelf);
	for (uint64_t i = 0; i < 64; i++) {
		stamp = hs_shelf_stamp(shelf, i << 58 | 1 << 20);
		assert_true(stamp.done >= 1);
		assert_true(stamp.begun >= 1);
	}
	stamp = hs_shelf_stamp(shelf, UINT64_MAX);
	assert_int_equal(stamp.begun, 2);
	assert_int_equal(stamp.done, 2);
	hs_shelf_destroy(&shelf);
}

/* ---- values ---- */

struct named {
	char text[24];
	struct hs_bytes argv[2];
	struct hs_ask ask;
};

static void name(struct named *named, uint64_t number)
{
	int len = snprintf(named->text, sizeof named->text, "key:%llu", (unsigned long long)number);

	hs_ask_get(&named->ask, SEED, (struct hs_bytes){named->text, (size_t)len}, named->argv);
}

static struct hs_kept *make(const struct hs_ask *ask, uint64_t read_us)
{
	struct hs_kept *kept = hs_kept_create(ask, (struct hs_bytes){"$1\r\nv\r\n", 7});

	kept->read_us = read_us;
	return kept;
}

static void test_puts_and_gets(void **state)
{
	struct hs_shelf *shelf = hs_shelf_create(SEED, 1 << 20);
	struct named a, b;
	struct hs_kept *kept, *got;

	(void)state;
	name(&a, 1);
	name(&b, 2);
	assert_null(hs_shelf_get(shelf, &a.ask));
	kept = make(&a.ask, 10);
	hs_shelf_put(shelf, kept);
	assert_int_equal(kept->refs, 2);
	hs_shelf_put(shelf, kept); /* it lies there */
	assert_int_equal(kept->refs, 2);
	got = hs_shelf_get(shelf, &a.ask);
	assert_ptr_equal(got, kept);
	assert_int_equal(kept->refs, 3);
	hs_kept_unref(&got);
	assert_null(hs_shelf_get(shelf, &b.ask));
	/* Another one with the same signature is not the one that was asked for. */
	b.ask.signature = a.ask.signature;
	assert_null(hs_shelf_get(shelf, &b.ask));
	hs_shelf_clear(shelf);
	assert_int_equal(kept->refs, 1);
	assert_null(hs_shelf_get(shelf, &a.ask));
	hs_shelf_put(shelf, kept);
	hs_shelf_destroy(&shelf);
	assert_int_equal(kept->refs, 1);
	hs_kept_unref(&kept);
}

static bool lies_there(struct hs_shelf *shelf, const struct hs_ask *ask, const struct hs_kept *kept)
{
	struct hs_kept *got = hs_shelf_get(shelf, ask);
	bool same = got == kept;

	hs_kept_unref(&got);
	return same;
}

static void test_the_newest_lies_there(void **state)
{
	struct hs_shelf *shelf = hs_shelf_create(SEED, 1 << 20);
	struct named a, b;
	struct hs_kept *old, *new, *other;

	(void)state;
	name(&a, 1);
	name(&b, 2);
	old = make(&a.ask, 10);
	new = make(&a.ask, 20);
	hs_shelf_put(shelf, old);
	hs_shelf_put(shelf, new);
	assert_true(lies_there(shelf, &a.ask, new));
	hs_shelf_put(shelf, old); /* late */
	assert_true(lies_there(shelf, &a.ask, new));
	old->done = 1; /* but read after a write */
	hs_shelf_put(shelf, old);
	assert_true(lies_there(shelf, &a.ask, old));
	hs_shelf_put(shelf, new);
	assert_true(lies_there(shelf, &a.ask, new));
	new->done = 1;
	new->dead = true;
	hs_shelf_put(shelf, old);
	assert_true(lies_there(shelf, &a.ask, old));
	/* One in a cell. */
	b.ask.signature = a.ask.signature + CELLS;
	other = make(&b.ask, 1);
	hs_shelf_put(shelf, other);
	assert_true(lies_there(shelf, &b.ask, other));
	assert_null(hs_shelf_get(shelf, &a.ask));
	assert_int_equal(old->refs, 1);
	hs_shelf_destroy(&shelf);
	hs_kept_unref(&old);
	hs_kept_unref(&new);
	hs_kept_unref(&other);
}

static void test_bytes_are_bounded(void **state)
{
	enum { FIT = 100, MANY = 5000 };
	struct named named;
	struct hs_kept *kept;
	struct hs_shelf *shelf;
	size_t bytes, found = 0;

	(void)state;
	name(&named, 1000);
	kept = make(&named.ask, 1);
	bytes = kept->bytes;
	hs_kept_unref(&kept);
	shelf = hs_shelf_create(SEED, FIT * bytes);
	for (uint64_t i = 0; i < MANY; i++) {
		name(&named, 1000 + i);
		kept = make(&named.ask, 1);
		assert_int_equal(kept->bytes, bytes);
		hs_shelf_put(shelf, kept);
		hs_kept_unref(&kept);
	}
	for (uint64_t i = 0; i < MANY; i++) {
		name(&named, 1000 + i);
		kept = hs_shelf_get(shelf, &named.ask);
		found += kept != NULL;
		hs_kept_unref(&kept);
	}
	assert_in_range(found, FIT - 1, FIT);
	hs_shelf_destroy(&shelf);
	/* One that would not fit alone does not empty it. */
	shelf = hs_shelf_create(SEED, bytes - 1);
	kept = make(&named.ask, 1);
	hs_shelf_put(shelf, kept);
	assert_int_equal(kept->refs, 1);
	hs_kept_unref(&kept);
	hs_shelf_destroy(&shelf);
}

/* ---- claims ---- */

static void test_claims(void **state)
{
	struct hs_shelf *shelf = hs_shelf_create(SEED, 0);
	uint32_t by = 99;

	(void)state;
	assert_true(hs_shelf_claim(shelf, 5, 0, &by));
	assert_int_equal(by, 99);
	assert_true(hs_shelf_claim(shelf, 6, 0, &by));
	assert_false(hs_shelf_release(shelf, 6, 0)); /* nobody waits */
	assert_false(hs_shelf_claim(shelf, 5, 1, &by));
	assert_int_equal(by, 0);
	assert_false(hs_shelf_claim(shelf, 5 + CELLS, HS_WORKERS_MAX - 1, &by));
	assert_int_equal(by, 0);
	assert_true(hs_shelf_release(shelf, 5, 0));
	assert_true(hs_shelf_claim(shelf, 5, HS_WORKERS_MAX - 1, &by));
	/* Who holds it itself is told so, and is not waited for. */
	assert_false(hs_shelf_claim(shelf, 5 + CELLS, HS_WORKERS_MAX - 1, &by));
	assert_int_equal(by, HS_WORKERS_MAX - 1);
	assert_false(hs_shelf_release(shelf, 5, HS_WORKERS_MAX - 1));
	hs_shelf_destroy(&shelf);
}

/* ---- threads ---- */

struct shared {
	struct hs_shelf *shelf;
	pthread_barrier_t start;
	pthread_mutex_t engine;		   /* runs one thing at a time, as an engine does */
	uint64_t value[KEYS];		   /* the engine's */
	_Atomic uint64_t acked[KEYS];	   /* the last write of which a client was told */
	_Atomic uint32_t holders[KEYS];	   /* of a claim */
	_Atomic uint64_t kept, hits, gone; /* so that nothing passes by doing nothing */
	_Atomic uint64_t complaints;
};

struct party {
	struct shared *shared;
	uint32_t number;
	void *(*what)(void *);
};

static uint64_t hash_of(uint64_t key)
{
	return key << 55 | key; /* pairs of keys share a stamp */
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

/* A write: what it leaves behind is kept if it was alone. */
static void write_one(struct shared *shared, uint64_t key, bool all, struct copy *copy)
{
	struct hs_stamp before, after;
	uint64_t value, acked;

	if (all) {
		hs_shelf_begin_all(shared->shelf);
		before.begun = 1;
		before.done = 0;
	} else {
		before = hs_shelf_begin(shared->shelf, hash_of(key));
	}
	value = run(shared, key, true);
	after = hs_shelf_stamp(shared->shelf, hash_of(key));
	copy->valid = before.begun == before.done && after.begun == before.begun + 1 &&
		      after.done == before.done;
	copy->value = value;
	copy->done = before.done + 1;
	if (copy->valid)
		atomic_fetch_add_explicit(&shared->kept, 1, memory_order_relaxed);
	if (all)
		hs_shelf_end_all(shared->shelf);
	else
		hs_shelf_end(shared->shelf, hash_of(key));
	acked = atomic_load(&shared->acked[key]);
	while (acked < value && !atomic_compare_exchange_weak(&shared->acked[key], &acked, value))
		;
}

static void read_one(struct shared *shared, uint64_t key, struct copy *copy)
{
	uint64_t acked = atomic_load(&shared->acked[key]);
	struct hs_stamp stamp = hs_shelf_stamp(shared->shelf, hash_of(key)), after;

	if (copy->valid && copy->done == stamp.done) {
		atomic_fetch_add_explicit(&shared->hits, 1, memory_order_relaxed);
		if (copy->value < acked)
			atomic_fetch_add(&shared->complaints, 1);
		return;
	}
	copy->value = run(shared, key, false);
	after = hs_shelf_stamp(shared->shelf, hash_of(key));
	copy->valid = after.begun == stamp.begun && after.done == stamp.done;
	copy->done = stamp.done;
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

/* Nothing but writes and claims, of one key: no two of them become one. */
static void *hammer(void *data)
{
	const struct party *party = data;
	struct shared *shared = party->shared;
	uint32_t by;

	for (uint64_t i = 0; i < 5 * TURNS; i++) {
		hs_shelf_begin(shared->shelf, hash_of(1));
		if (hs_shelf_claim(shared->shelf, 1, party->number, &by)) {
			shared->value[0]++; /* the claim's holder's alone */
			atomic_fetch_add_explicit(&shared->hits, 1, memory_order_relaxed);
			hs_shelf_release(shared->shelf, 1, party->number);
		}
		hs_shelf_end(shared->shelf, hash_of(1));
	}
	return NULL;
}

static void test_none_is_lost(void **state)
{
	struct shared shared = {.shelf = hs_shelf_create(SEED, 0)};
	struct hs_stamp stamp;

	(void)state;
	run_threads(&shared, hammer);
	stamp = hs_shelf_stamp(shared.shelf, hash_of(1));
	assert_int_equal(stamp.begun, 5 * TURNS * THREADS);
	assert_int_equal(stamp.done, 5 * TURNS * THREADS);
	assert_int_equal(shared.value[0], shared.hits);
	hs_shelf_destroy(&shared.shelf);
}

static void test_nobody_reads_what_was_overwritten(void **state)
{
	struct shared shared = {.shelf = hs_shelf_create(SEED, 0)};

	(void)state;
	run_threads(&shared, work);
	assert_true(shared.kept > 0);
	assert_true(shared.hits > 0);
	hs_shelf_destroy(&shared.shelf);
}

/* Putting, getting, claiming, and now and then clearing. */
static void *trade(void *data)
{
	const struct party *party = data;
	struct shared *shared = party->shared;
	struct hs_prng prng;

	hs_prng_init(&prng, party->number);
	for (uint64_t i = 0; i < TURNS / 4; i++) {
		uint64_t key = hs_prng_below(&prng, KEYS);
		struct named named;
		struct hs_kept *kept;
		uint32_t by;

		name(&named, key);
		if (i % 5000 == 4999)
			hs_shelf_clear(shared->shelf);
		kept = hs_shelf_get(shared->shelf, &named.ask);
		if (kept && !hs_bytes_equal(kept->key, named.ask.key))
			atomic_fetch_add(&shared->complaints, 1);
		if (kept)
			atomic_fetch_add_explicit(&shared->hits, 1, memory_order_relaxed);
		hs_kept_unref(&kept);
		if (!hs_shelf_claim(shared->shelf, key, party->number, &by)) {
			if (by == party->number || by >= THREADS)
				atomic_fetch_add(&shared->complaints, 1);
			continue;
		}
		if (atomic_fetch_add(&shared->holders[key], 1) > 0)
			atomic_fetch_add(&shared->complaints, 1);
		kept = make(&named.ask, i);
		hs_shelf_put(shared->shelf, kept);
		hs_kept_unref(&kept);
		atomic_fetch_sub(&shared->holders[key], 1);
		if (hs_shelf_release(shared->shelf, key, party->number))
			atomic_fetch_add_explicit(&shared->gone, 1, memory_order_relaxed);
	}
	return NULL;
}

static void test_values_and_claims_of_many(void **state)
{
	struct named named;
	struct hs_kept *kept;
	struct shared shared = {0};

	(void)state;
	name(&named, 1);
	kept = make(&named.ask, 1);
	/* Room for half of them. */
	shared.shelf = hs_shelf_create(SEED, kept->bytes * KEYS / 2);
	run_threads(&shared, trade);
	assert_true(shared.hits > 0);
	/* Whatever was put and taken out, the bytes are right: as many fit as do. */
	hs_shelf_clear(shared.shelf);
	for (uint64_t i = 0, found = 0; i < 2; i++, found = 0) {
		for (uint64_t key = 0; key < KEYS / 2 * (i + 1); key++) {
			struct hs_kept *one;

			name(&named, key);
			one = make(&named.ask, 1);
			hs_shelf_put(shared.shelf, one);
			hs_kept_unref(&one);
		}
		for (uint64_t key = 0; key < KEYS; key++) {
			struct hs_kept *one;

			name(&named, key);
			one = hs_shelf_get(shared.shelf, &named.ask);
			found += one != NULL;
			hs_kept_unref(&one);
		}
		assert_int_equal(found, KEYS / 2);
	}
	hs_kept_unref(&kept);
	hs_shelf_destroy(&shared.shelf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stamps),
		cmocka_unit_test(test_stamps_of_everything),
		cmocka_unit_test(test_puts_and_gets),
		cmocka_unit_test(test_the_newest_lies_there),
		cmocka_unit_test(test_bytes_are_bounded),
		cmocka_unit_test(test_claims),
		cmocka_unit_test(test_none_is_lost),
		cmocka_unit_test(test_nobody_reads_what_was_overwritten),
		cmocka_unit_test(test_values_and_claims_of_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
