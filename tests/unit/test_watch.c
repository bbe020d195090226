/* Goal: a transaction is aborted if and only if a watched key has changed or expired since WATCH, as in Redis.
 *
 * Method: commands on a store in memory with a clock that only the test moves; watchers are numbers. */
#include "base/err.h"
#include "base/limits.h"
#include "base/slot.h"
#include "tests/lib/store.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static int setup(void **state)
{
	static struct test_store store;

	test_store_init(&store);
	*state = &store;
	return 0;
}

static int teardown(void **state)
{
	test_store_deinit(*state);
	return 0;
}

static void watch(struct test_store *store, uint64_t watcher, const char *key)
{
	assert_int_equal(hs_watch_add(store->ks.watch, &store->ks, watcher,
				      hs_slot_of(hs_bytes_of(key)), hs_bytes_of(key)),
			 0);
}

static bool clean(struct test_store *store, uint64_t watcher)
{
	return hs_watch_clean(store->ks.watch, &store->ks, watcher);
}

static void sweep(struct test_store *store, int expected)
{
	hs_memkv_begin(store->map);
	assert_int_equal(hs_keyspace_sweep(&store->ks, 100), expected);
	hs_memkv_commit(store->map);
}

/* Runs `before`, watches a, and runs `command`. The watcher must be dirty afterwards if `changes` is true, else
 * clean. */
static void check_command(struct test_store *store, const char *before, const char *command,
			  bool changes)
{
	test_run(store, "FLUSHALL");
	if (before)
		test_run(store, before);
	watch(store, 1, "a");
	test_run(store, command);
	if (clean(store, 1) == changes)
		fail_msg("%s: watcher is %s", command, changes ? "clean" : "dirty");
	hs_watch_drop(store->ks.watch, 1);
}

static void test_every_change_is_seen(void **state)
{
	static const struct {
		const char *before, *command;
		bool changes;
	} rows[] = {
		{NULL, "SET a 1", true},
		{"SET a 1", "SET a 1", true},
		{"SET a 1", "SET a 2 NX", false},
		{NULL, "SET a 2 XX", false},
		{"SET a 1", "GET a", false},
		{"SET a 1", "SET b 1", false},
		{"SET a 1", "DEL a", true},
		{NULL, "DEL a", false},
		{"SET a 1", "GETDEL a", true},
		{"SET a 1", "GETEX a", false},
		{"SET a 1", "GETEX a EX 10", true},
		{"SET a 1", "GETEX a PERSIST", false},
		{"SET a 1 EX 9", "GETEX a PERSIST", true},
		{"SET a 1", "GETEX a EXAT 1", true},
		{"SET a 1", "APPEND a \"\"", true},
		{"SET a 1", "SETRANGE a 0 \"\"", false},
		{"SET a 1", "SETRANGE a 0 1", true},
		{"SET a 1", "SETBIT a 7 1", false},
		{"SET a 1", "SETBIT a 7 0", true},
		{"SET a 1", "SETBIT a 8 0", true},
		{"SET a 1", "INCRBY a 0", true},
		{"SET a 1", "INCRBYFLOAT a 0", true},
		{"SET a 1", "EXPIRE a 10", true},
		{"SET a 1", "EXPIRE a 10 XX", false},
		{"SET a 1", "EXPIRE a -1", true},
		{"SET a 1", "PERSIST a", false},
		{"SET a 1 EX 9", "PERSIST a", true},
		{"SET a 1", "RENAME a a", false},
		{"SET a 1", "RENAME a {a}b", true},
		{"SET {a}b 1", "RENAME {a}b a", true},
		{"SET a 1", "COPY a {a}b", false},
		{"SET {a}b 1", "COPY {a}b a", true},
		{NULL, "MSET b 1 a 1", true},
		{"SET a 1", "MSETNX a 1 {a}b 2", false},
		{"SET a 1", "TOUCH a", false},
		{"SET a 1", "FLUSHALL", true},
		{NULL, "FLUSHALL", false},
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		check_command(*state, rows[i].before, rows[i].command, rows[i].changes);
}

static void test_changed_back_is_changed(void **state)
{
	struct test_store *store = *state;

	test_run(store, "SET a 1");
	watch(store, 1, "a");
	test_run(store, "SET a 2");
	test_run(store, "SET a 1");
	assert_false(clean(store, 1));
}

static void test_dirty_until_dropped(void **state)
{
	struct test_store *store = *state;

	watch(store, 1, "a");
	test_run(store, "SET a 1");
	watch(store, 1, "b"); /* accepted, but the watcher is dirty already */
	assert_false(clean(store, 1));
	assert_false(clean(store, 1));
	hs_watch_drop(store->ks.watch, 1);
	assert_true(clean(store, 1));
	hs_watch_drop(store->ks.watch, 1);
	watch(store, 1, "a");
	assert_true(clean(store, 1));
}

static void test_watchers_are_apart(void **state)
{
	struct test_store *store = *state;

	watch(store, 1, "a");
	watch(store, 2, "a");
	watch(store, 2, "b");
	watch(store, 3, "c");
	test_run(store, "SET b 1");
	assert_true(clean(store, 1));
	assert_false(clean(store, 2));
	assert_true(clean(store, 3));
	hs_watch_drop(store->ks.watch, 2);
	test_run(store, "SET a 1");
	assert_false(clean(store, 1));
	assert_true(clean(store, 2));
	assert_true(clean(store, 3));
}

static void test_key_that_expires_while_watched_is_changed(void **state)
{
	struct test_store *store = *state;

	test_run(store, "SET a 1 EX 10");
	watch(store, 1, "a");
	watch(store, 2, "a");
	assert_true(clean(store, 1));
	store->ks.now_ms += 10000;
	assert_true(clean(store, 1));
	store->ks.now_ms += 1;
	assert_false(clean(store, 1));
	/* The sweep deletes the expired key: watcher 2, which has not run EXEC yet, must still notice the
	 * expiry. */
	sweep(store, 1);
	assert_false(clean(store, 2));
}

static void test_key_expired_before_is_not_changed_by_the_sweep(void **state)
{
	struct test_store *store = *state;

	test_run(store, "SET a 1 EX 10");
	store->ks.now_ms += 10001;
	watch(store, 1, "a");
	watch(store, 2, "a");
	assert_true(clean(store, 1));
	sweep(store, 1);
	assert_true(clean(store, 1));
	test_run(store, "SET a 1");
	assert_false(clean(store, 1));
	assert_false(clean(store, 2));
}

static void test_key_expired_before_and_written_again_is_changed(void **state)
{
	struct test_store *store = *state;

	test_run(store, "SET a 1 EX 10");
	store->ks.now_ms += 10001;
	watch(store, 1, "a");
	test_run(store, "SET a 1");
	assert_false(clean(store, 1));
}

static void test_key_expired_before_is_not_changed_by_a_flush(void **state)
{
	struct test_store *store = *state;

	test_run(store, "SET a 1 EX 10");
	store->ks.now_ms += 10001;
	watch(store, 1, "a");
	test_run(store, "FLUSHALL");
	assert_true(clean(store, 1));
}

static void test_the_number_of_keys_is_limited(void **state)
{
	struct test_store *store = *state;
	char key[32];

	for (int i = 0; i < HS_WATCH_KEYS_MAX; i++) {
		snprintf(key, sizeof key, "key:%d", i);
		watch(store, 1, key);
		watch(store, 1, key); /* watching twice counts once */
	}
	assert_int_equal(hs_watch_add(store->ks.watch, &store->ks, 1, 0, HS_LIT("more")),
			 HS_ELIMIT);
	watch(store, 2, "more");
	test_run(store, "SET key:700 1");
	assert_false(clean(store, 1));
	assert_true(clean(store, 2));
}

static void test_many_watchers(void **state)
{
	struct test_store *store = *state;
	char line[64];

	for (uint64_t watcher = 1; watcher <= 1000; watcher++) {
		snprintf(line, sizeof line, "key:%d", (int)(watcher % 100));
		watch(store, watcher, line);
	}
	for (uint64_t watcher = 1; watcher <= 1000; watcher += 3)
		hs_watch_drop(store->ks.watch, watcher);
	test_run(store, "SET key:7 1");
	for (uint64_t watcher = 1; watcher <= 1000; watcher++)
		assert_int_equal(clean(store, watcher), watcher % 100 != 7 || watcher % 3 == 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_every_change_is_seen),
		TEST(test_changed_back_is_changed),
		TEST(test_dirty_until_dropped),
		TEST(test_watchers_are_apart),
		TEST(test_key_that_expires_while_watched_is_changed),
		TEST(test_key_expired_before_is_not_changed_by_the_sweep),
		TEST(test_key_expired_before_and_written_again_is_changed),
		TEST(test_key_expired_before_is_not_changed_by_a_flush),
		TEST(test_the_number_of_keys_is_limited),
		TEST(test_many_watchers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
