/* Goal: a full store or disk refuses writes that need room, with a clear error to their clients alone. Reads and
 * deletes continue, room freed by deletes is used again, and a refused write does not come back after a restart.
 *
 * Method: small stores on real files. A full disk is simulated by the process's file size limit, which makes
 * writes fail in the same system calls as a full disk. */

#include "base/limits.h"
#include "base/mem.h"
#include "base/prng.h"
#include "tests/lib/embedded.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cmocka.h>

enum { VALUE_BYTES = 700, KEYS_MAX = 20000 };

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
enum { ROUND_FIRST = 3 }; /* under a sanitizer, one round of each kind */
#else
enum { ROUND_FIRST = 0 };
#endif

static int setup(void **state)
{
	struct hs_test_embedded *test = hs_mem_alloc(sizeof *test);

	hs_test_embedded_init(test);
	test->options.store_bytes_max = 2 * HS_MIB;
	test->options.sync = false;
	*state = test;
	return 0;
}

static int teardown(void **state)
{
	struct hs_test_embedded *test = *state;

	if (test->open)
		hs_test_embedded_kill(test);
	hs_test_embedded_deinit(test);
	hs_mem_free(&test);
	return 0;
}

static const char *set(struct hs_test_embedded *test, unsigned key, char fill)
{
	char name[32];

	snprintf(name, sizeof name, "{b}%u", key); /* a key of partition 0 of 2 */
	return hs_test_embedded_set(test, name, VALUE_BYTES, fill);
}

static const char *del(struct hs_test_embedded *test, unsigned key)
{
	char words[32];

	snprintf(words, sizeof words, "del {b}%u", key);
	return hs_test_embedded_do(test, words);
}

/* Writes new keys until 50 writes in a row are refused. Returns the number of successful writes. */
static unsigned fill(struct hs_test_embedded *test, bool *present)
{
	unsigned taken = 0, refused = 0;

	for (unsigned key = 0; key < KEYS_MAX && refused < 50; key++) {
		const char *reply;

		if (present[key])
			continue;
		reply = set(test, key, 'x');
		hs_group_maintain(&test->group);
		if (strcmp(reply, "+OK\r\n") == 0) {
			present[key] = true;
			taken++;
			refused = 0;
		} else {
			assert_non_null(strstr(reply,
					       "-OOM store full: partition 0 is at its limit "
					       "of 2097152 bytes"));
			refused++;
		}
	}
	assert_int_equal(refused, 50);
	return taken;
}

static void a_full_store_refuses_only_what_grows(void **state)
{
	struct hs_test_embedded *test = *state;
	bool *present = hs_mem_zalloc(KEYS_MAX);
	struct hs_store *store;
	unsigned taken;

	assert_int_equal(hs_test_embedded_open(test), 0);
	store = &test->database.stores[0];
	taken = fill(test, present);
	assert_in_range(taken, 1200, 3000);
	assert_in_range(hs_counter_get(&store->bytes_used), 1900000,
			store->bytes_max + 64 * HS_KIB); /* the free list counts */
	assert_true(hs_counter_get(&test->group.counters.full_errors) >= 50);

	assert_non_null(strstr(hs_test_embedded_read(test, "get {b}0"), "$700\r\nxxx"));
	assert_non_null(strstr(hs_test_embedded_do(test, "get {b}1"), "$700\r\nxxx"));
	/* A write that needs no new page still succeeds, and so does a write to the other store. */
	assert_string_equal(set(test, 0, 'y'), "+OK\r\n");
	assert_string_equal(hs_test_embedded_do(test, "expire {b}0 100"), ":1\r\n");
	assert_string_equal(hs_test_embedded_do(test, "set {a}1 v"), "+OK\r\n");
	/* The refused write has not changed the old value. */
	assert_true(strncmp(hs_test_embedded_set(test, "{b}0", 20000, 'z'), "-OOM ", 5) == 0);
	assert_non_null(strstr(hs_test_embedded_read(test, "get {b}0"), "$700\r\nyyy"));

	/* After a restart, the store is still full and has the old value. */
	hs_test_embedded_kill(test);
	assert_int_equal(hs_test_embedded_open(test), 0);
	assert_true(strncmp(hs_test_embedded_set(test, "{b}0", 20000, 'z'), "-OOM ", 5) == 0);
	assert_non_null(strstr(hs_test_embedded_read(test, "get {b}0"), "$700\r\nyyy"));
	assert_int_equal(hs_counter_get(&test->database.stores[0].keys), taken);
	hs_mem_free(&present);
}

/* Deletes half of the keys at random, which leaves pages half empty, and then writes new keys. */
static void freed_room_is_used_again(void **state)
{
	struct hs_test_embedded *test = *state;
	bool *present = hs_mem_zalloc(KEYS_MAX);
	struct hs_prng prng;

	hs_prng_init(&prng, 9);
	assert_int_equal(hs_test_embedded_open(test), 0);
	fill(test, present);
	for (int round = ROUND_FIRST; round < 6; round++) {
		unsigned deleted = 0, taken;

		for (unsigned key = 0; key < KEYS_MAX; key++) {
			if (!present[key] || (round < 4 && hs_prng_below(&prng, 2)))
				continue;
			assert_string_equal(del(test, key), ":1\r\n");
			hs_group_maintain(&test->group);
			present[key] = false;
			deleted++;
		}
		taken = fill(test, present);
		assert_true(taken > deleted / 4 * 3);
	}
	hs_mem_free(&present);
}

static void a_value_larger_than_the_store(void **state)
{
	struct hs_test_embedded *test = *state;
	size_t bytes = 120 * HS_MIB, first, large, second, other;
	char *value = hs_mem_zalloc(bytes);

	assert_int_equal(hs_test_embedded_open(test), 0);
	/* The store's limit is above the size of its map. So the group does not check for room beforehand, and
	 * LMDB finds the map full. */
	test->database.stores[0].bytes_max = 200 * HS_MIB;
	first = hs_test_embedded_add(test, "set {b}1 one", (struct hs_bytes){NULL, 0});
	large = hs_test_embedded_add(test, "set {b}2", (struct hs_bytes){value, bytes});
	second = hs_test_embedded_add(test, "append {b}1 two", (struct hs_bytes){NULL, 0});
	other = hs_test_embedded_add(test, "set {a}1 three", (struct hs_bytes){NULL, 0});
	hs_mem_free(&value);
	hs_test_embedded_run(test);
	assert_string_equal(hs_test_embedded_reply(test, first), "+OK\r\n");
	assert_true(strncmp(hs_test_embedded_reply(test, large), "-OOM store full: ", 17) == 0);
	assert_string_equal(hs_test_embedded_reply(test, second), ":6\r\n");
	assert_string_equal(hs_test_embedded_reply(test, other), "+OK\r\n");
	hs_test_embedded_kill(test);
	assert_int_equal(hs_test_embedded_open(test), 0);
	assert_string_equal(hs_test_embedded_read(test, "get {b}1"), "$6\r\nonetwo\r\n");
	assert_string_equal(hs_test_embedded_read(test, "exists {b}2"), ":0\r\n");
	assert_string_equal(hs_test_embedded_read(test, "get {a}1"), "$5\r\nthree\r\n");
}

/* The last checkpoint pins its pages until there is a new checkpoint. A store whose keys are overwritten again
 * and again fills its map with pinned pages, so the writer must make a checkpoint itself. */
static void pinned_pages_are_given_back_when_needed(void **state)
{
	struct hs_test_embedded *test = *state;

	test->options.store_bytes_max = 16 * HS_MIB;
	/* The log does not fill up, and the test never calls hs_group_maintain, so neither of the two begins a
	 * checkpoint. */
	test->options.log_bytes = 144 * HS_MIB;
	assert_int_equal(hs_test_embedded_open(test), 0);
	for (int i = 0; i < 20; i++)
		assert_string_equal(hs_test_embedded_set(test, "{b}1", 5 * HS_MIB, 'x'), "+OK\r\n");
	assert_true(hs_counter_get(&test->database.checkpoint.counters.checkpoints) > 1);
}

static void limit_files(uint64_t bytes)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = bytes ? bytes : limit.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static uint64_t store_file_bytes(struct hs_test_embedded *test)
{
	struct stat about;

	assert_int_equal(stat(test->database.stores[0].path, &about), 0);
	return (uint64_t)about.st_size;
}

static void a_full_disk_refuses_and_recovers(void **state)
{
	struct hs_test_embedded *test = *state;
	unsigned key = 0, acknowledged;
	size_t set_, read, other;
	uint64_t disk_bytes;
	const char *reply;

	signal(SIGXFSZ, SIG_IGN);
	test->options.store_bytes_max = 64 * HS_MIB;
	assert_int_equal(hs_test_embedded_open(test), 0);
	while (key < 3000)
		assert_string_equal(set(test, key++, 'x'), "+OK\r\n");
	disk_bytes = store_file_bytes(test);
	limit_files(disk_bytes);
	do {
		reply = set(test, key++, 'x');
	} while (strcmp(reply, "+OK\r\n") == 0 && key < KEYS_MAX);
	acknowledged = key - 1;
	assert_true(strncmp(reply, "-OOM store full: the disk of '", 30) == 0);
	assert_non_null(strstr(reply, test->folder));
	assert_string_not_equal(atomic_load(&test->group.last_error), "");

	/* If the disk is full, reads of the same store and writes to the other store in this group still
	 * succeed. */
	set_ = hs_test_embedded_add(test, "set {b}new v", (struct hs_bytes){NULL, 0});
	read = hs_test_embedded_add(test, "strlen {b}0", (struct hs_bytes){NULL, 0});
	other = hs_test_embedded_add(test, "set {a}1 v", (struct hs_bytes){NULL, 0});
	hs_test_embedded_run(test);
	assert_true(strncmp(hs_test_embedded_reply(test, set_), "-OOM ", 5) == 0);
	assert_string_equal(hs_test_embedded_reply(test, read), ":700\r\n");
	assert_string_equal(hs_test_embedded_reply(test, other), "+OK\r\n");
	assert_non_null(strstr(hs_test_embedded_read(test, "get {b}0"), "$700\r\nxxx"));

	/* The process is killed. After a restart, the refused write is absent, although the log had its record
	 * before the disk refused it. */
	hs_test_embedded_kill(test);
	limit_files(0);
	assert_int_equal(hs_test_embedded_open(test), 0);
	assert_int_equal(hs_counter_get(&test->database.stores[0].keys), acknowledged);
	limit_files(disk_bytes);
	do {
		reply = set(test, key++, 'x');
	} while (strcmp(reply, "+OK\r\n") == 0 && key < KEYS_MAX);
	assert_true(strncmp(reply, "-OOM store full: the disk of '", 30) == 0);

	/* The disk has room again. The writer tries to write one second after a refusal. */
	limit_files(0);
	test->now.mono_us += 1100000;
	assert_string_equal(hs_test_embedded_do(test, "set {b}new v"), "+OK\r\n");
	assert_string_equal(atomic_load(&test->group.last_error), "");
	signal(SIGXFSZ, SIG_DFL);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_full_store_refuses_only_what_grows),
		TEST(freed_room_is_used_again),
		TEST(a_value_larger_than_the_store),
		TEST(pinned_pages_are_given_back_when_needed),
		TEST(a_full_disk_refuses_and_recovers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
