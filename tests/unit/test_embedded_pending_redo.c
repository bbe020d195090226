/* Goal: if a group changes a key several times, the log has only the last change; a replay brings back no older
 * value; and replaced values still count against the limits of a group.
 *
 * Method: random changes are noted, replayed and compared with a model. Then groups run on a small database that
 * is killed and opened again. */

#include "base/limits.h"
#include "base/mem.h"
#include "base/prng.h"
#include "engine/embedded/redo.h"
#include "tests/lib/embedded.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define NONE ((struct hs_bytes){NULL, 0})

enum {
	TREES = 2,
	KEYS_MAX = 4 * HS_PENDING_REDO_CELLS,
	UNTOUCHED = 0,
	GONE = 1, /* the key is deleted; larger numbers are versions of its value */
	STORE = 7,
};

struct world {
	struct hs_pending_redo pending;
	struct hs_prng prng;
	size_t keys;
	uint32_t last; /* the last version given */
	uint32_t expected[TREES][KEYS_MAX], before[TREES][KEYS_MAX];
	bool trying;
	bool all_one; /* no event may have left two entries of a key */
};

static struct hs_bytes key_of(char text[16], size_t key)
{
	return (struct hs_bytes){text, (size_t)snprintf(text, 16, "key-%zu", key)};
}

static void put(struct world *world, uint8_t tree, size_t key)
{
	size_t bytes = sizeof world->last + 4 * hs_prng_below(&world->prng, 3), at;
	char text[16];

	hs_pending_redo_put(&world->pending, tree, key_of(text, key), bytes, &at);
	memset(world->pending.buf.data + at, 0, bytes);
	world->expected[tree][key] = ++world->last;
	memcpy(world->pending.buf.data + at, &world->last, sizeof world->last);
}

static void clear(struct world *world)
{
	hs_pending_redo_clear(&world->pending);
	for (size_t tree = 0; tree < TREES; tree++)
		for (size_t key = 0; key < world->keys; key++)
			world->expected[tree][key] = GONE;
	world->all_one = false;
}

static void try_out(struct world *world)
{
	if (!world->trying) {
		hs_pending_redo_nested_begin(&world->pending);
		memcpy(world->before, world->expected, sizeof world->before);
	} else if (hs_prng_below(&world->prng, 2)) {
		hs_pending_redo_nested_commit(&world->pending);
	} else {
		hs_pending_redo_nested_abort(&world->pending);
		memcpy(world->expected, world->before, sizeof world->before);
	}
	world->trying = !world->trying;
	world->all_one = false;
}

static void step(struct world *world, bool any)
{
	uint8_t tree = (uint8_t)hs_prng_below(&world->prng, TREES);
	size_t key = hs_prng_below(&world->prng, world->keys);
	uint64_t choice = hs_prng_below(&world->prng, 100);
	char text[16];

	if (any && choice < 2) {
		clear(world);
	} else if (any && choice < 12) {
		try_out(world);
	} else if (choice < 30) {
		hs_pending_redo_del(&world->pending, tree, key_of(text, key));
		world->expected[tree][key] = GONE;
	} else {
		put(world, tree, key);
	}
}

/* Replays the noted changes, and compares the result with the model. */
static void check(struct world *world)
{
	static uint32_t replayed[TREES][KEYS_MAX];
	struct hs_bytes rest;
	struct hs_redo_entry entry;
	size_t entries = 0, touched = 0;
	int more;

	if (world->trying)
		hs_pending_redo_nested_commit(&world->pending);
	rest = hs_pending_redo_pack(&world->pending);
	memset(replayed, 0, sizeof replayed);
	while ((more = hs_redo_entry_take(&rest, &entry)) == 1) {
		char text[16] = "key-0";
		unsigned long key;

		memcpy(text, entry.key.data, entry.key.len);
		key = strtoul(text + 4, NULL, 10);
		entries++;
		assert_int_equal(entry.store, STORE);
		if (entry.op == HS_REDO_PUT) {
			memcpy(&replayed[entry.tree][key], entry.value.data, sizeof(uint32_t));
		} else if (entry.op == HS_REDO_DEL) {
			replayed[entry.tree][key] = GONE;
		} else {
			assert_int_equal(entry.op, HS_REDO_CLEAR);
			for (size_t i = 0; i < world->keys; i++)
				replayed[0][i] = replayed[1][i] = GONE;
		}
	}
	assert_int_equal(more, 0);
	assert_int_equal(entries, world->pending.entries);
	for (size_t tree = 0; tree < TREES; tree++) {
		for (size_t key = 0; key < world->keys; key++) {
			assert_int_equal(replayed[tree][key], world->expected[tree][key]);
			touched += world->expected[tree][key] != UNTOUCHED;
		}
	}
	if (world->all_one)
		assert_int_equal(entries, touched);
}

static void play(uint64_t seed, size_t keys, size_t steps, bool any)
{
	struct world *world = hs_mem_zalloc(sizeof *world);

	hs_prng_init(&world->prng, seed);
	hs_pending_redo_init(&world->pending, STORE);
	world->keys = keys;
	for (int record = 0; record < 3; record++) {
		memset(world->expected, 0, sizeof world->expected);
		world->trying = false;
		world->all_one = !any && keys < 10;
		world->last = GONE;
		for (size_t i = 0; i < steps; i++)
			step(world, any);
		check(world);
		hs_pending_redo_reset(&world->pending,
				      hs_prng_below(&world->prng, 2) ? SIZE_MAX : 0);
	}
	hs_pending_redo_deinit(&world->pending);
	hs_mem_free(&world);
}

static void replaying_gives_the_last_of_everything(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 300; seed++) {
		play(seed, 5, 50, false);
		play(seed, 5, 50, true);
		play(seed, 300, 400, true);
	}
	/* Here there are more keys than cells in the table. */
	for (uint64_t seed = 1; seed <= 5; seed++)
		play(seed, KEYS_MAX, 4 * KEYS_MAX, true);
}

/* The table's age wraps around after 2^32 resets. The table must not find an entry of an earlier age. */
static void ages_start_over(void **state)
{
	struct hs_pending_redo pending;
	size_t at;

	(void)state;
	hs_pending_redo_init(&pending, STORE);
	assert_true(hs_pending_redo_put(&pending, 0, HS_LIT("key"), 1, &at));
	hs_pending_redo_reset(&pending, SIZE_MAX);
	pending.age = UINT32_MAX;
	hs_pending_redo_reset(&pending, SIZE_MAX);
	assert_int_equal(pending.age, 1);
	assert_true(hs_pending_redo_put(&pending, 0, HS_LIT("key"), 1, &at));
	assert_false(hs_pending_redo_put(&pending, 0, HS_LIT("key"), 1, &at));
	assert_int_equal(pending.entries, 1);
	hs_pending_redo_deinit(&pending);
}

/* Two keys with the same cell, and one key in two trees, have separate entries. */
static void colliding_keys_have_entries_of_their_own(void **state)
{
	struct hs_pending_redo pending;
	char text[16];
	size_t at;

	(void)state;
	hs_pending_redo_init(&pending, STORE);
	for (size_t key = 0; key < 10 * HS_PENDING_REDO_CELLS; key++) {
		assert_true(hs_pending_redo_put(&pending, 0, key_of(text, key), 1, &at));
		assert_true(hs_pending_redo_put(&pending, 1, key_of(text, key), 1, &at));
	}
	assert_int_equal(pending.entries, 20 * HS_PENDING_REDO_CELLS);
	hs_pending_redo_deinit(&pending);
}

static int setup(void **state)
{
	struct hs_test_embedded *test = hs_mem_alloc(sizeof *test);

	hs_test_embedded_init(test);
	assert_int_equal(hs_test_embedded_open(test), 0);
	*state = test;
	return 0;
}

static int teardown(void **state)
{
	struct hs_test_embedded *test = *state;

	hs_test_embedded_kill(test);
	hs_test_embedded_deinit(test);
	hs_mem_free(&test);
	return 0;
}

static void add_all(struct hs_test_embedded *test, const char *const *lines, size_t count)
{
	for (size_t i = 0; i < count; i++)
		hs_test_embedded_add(test, lines[i], NONE);
}

static void kill_and_open(struct hs_test_embedded *test)
{
	hs_test_embedded_kill(test);
	assert_int_equal(hs_test_embedded_open(test), 0);
}

static uint64_t writes(struct hs_test_embedded *test)
{
	return hs_counter_get(&test->group.counters.store_writes);
}

static void a_group_writes_a_key_once(void **state)
{
	struct hs_test_embedded *test = *state;
	uint64_t log_at = test->database.redo.at;

	/* The counter goes from 1 to 300. Its entry is overwritten in place, and twice grows by a digit. */
	for (int i = 0; i < 300; i++) {
		hs_test_embedded_add(test, "incr {b}n", NONE);
		if (i % 100 == 0)
			hs_test_embedded_add(test, "set {b}other x", NONE);
	}
	hs_test_embedded_run(test);
	assert_string_equal(hs_test_embedded_reply(test, 301), ":299\r\n");
	assert_string_equal(hs_test_embedded_reply(test, 302), ":300\r\n");
	assert_int_equal(hs_counter_get(&test->group.counters.commits), 1);
	assert_int_equal(hs_counter_get(&test->group.counters.commit_ops), 303);
	assert_int_equal(hs_counter_get(&test->group.counters.changes), 303);
	assert_int_equal(writes(test), 2);
	assert_true(test->database.redo.at - log_at < 200);

	/* The next group has an entry of its own for the key. */
	assert_string_equal(hs_test_embedded_do(test, "incr {b}n"), ":301\r\n");
	assert_int_equal(writes(test), 3);
	kill_and_open(test);
	assert_string_equal(hs_test_embedded_read(test, "get {b}n"), "$3\r\n301\r\n");
	assert_string_equal(hs_test_embedded_read(test, "get {b}other"), "$1\r\nx\r\n");
}

/* The group deletes keys and writes them again, longer and shorter, with and without an expiry, and flushes the
 * store in between. The log has the final state, including the index of expiries. */
static void the_log_has_the_end_of_a_group(void **state)
{
	static const char *const first[] = {
		"set {b}a 1",	 "set {b}b 1",	      "del {b}a",	"set {b}a 22",
		"del {b}b",	 "set {b}c 1 px 900", "persist {b}c",	"set {b}d 1",
		"append {b}d 2", "append {b}d 3",     "expire {b}d 10", "set {b}a 33",
	};
	static const char *const second[] = {
		"set {b}e 1",	     "set {b}a 44", "flushall",	  "set {b}e 2",
		"set {b}f 1 ex 100", "set {b}f 2",  "set {b}e 3",
	};
	struct hs_test_embedded *test = *state;

	add_all(test, first, sizeof first / sizeof *first);
	hs_test_embedded_run(test);
	/* The log has four keys and two expiries: c's expiry was set and removed, d's stays. The cell of an
	 * expiry depends on a secret of the database. If two entries share a cell, one of them is logged
	 * twice. */
	assert_in_range(writes(test), 4 + 2, 4 + 2 + 1);
	kill_and_open(test);
	assert_string_equal(hs_test_embedded_read(test, "get {b}a"), "$2\r\n33\r\n");
	assert_string_equal(hs_test_embedded_read(test, "exists {b}b"), ":0\r\n");
	assert_string_equal(hs_test_embedded_read(test, "pttl {b}c"), ":-1\r\n");
	assert_string_equal(hs_test_embedded_read(test, "get {b}d"), "$3\r\n123\r\n");
	assert_string_equal(hs_test_embedded_read(test, "ttl {b}d"), ":10\r\n");
	assert_int_equal(hs_counter_get(&test->database.stores[0].expires) +
				 hs_counter_get(&test->database.stores[1].expires),
			 1);

	add_all(test, second, sizeof second / sizeof *second);
	hs_test_embedded_run(test);
	kill_and_open(test);
	assert_string_equal(hs_test_embedded_read(test, "exists {b}a"), ":0\r\n");
	assert_string_equal(hs_test_embedded_read(test, "get {b}e"), "$1\r\n3\r\n");
	assert_string_equal(hs_test_embedded_read(test, "get {b}f"), "$1\r\n2\r\n");
	assert_string_equal(hs_test_embedded_read(test, "ttl {b}f"), ":-1\r\n");
}

/* A growing value has one entry in the log however often it changes, but each change needs new pages. So every
 * change counts towards the limits of the group and of the store's postponed changes. */
static void replaced_values_still_count(void **state)
{
	enum { BYTES = 20 * 1024, OPS = 30 };
	struct hs_test_embedded *test = *state;
	char *value = hs_mem_zalloc(BYTES);
	struct hs_bytes tail = {value, BYTES};
	struct hs_op *first;
	size_t ran;

	for (int i = 0; i < OPS; i++)
		hs_test_embedded_add(test, "append {b}k", tail);
	for (int i = 0; i + 1 < OPS; i++)
		test->ops[i].op.next = &test->ops[i + 1].op;
	first = &test->ops[0].op;
	ran = hs_group_add(&test->group, first);
	/* A group may take an eighth of a log file, 128 KiB. The values of 20, 40, 60 and 80 KiB exceed this
	 * together. */
	assert_int_equal(ran, 4);
	assert_true(hs_group_full(&test->group));
	assert_int_equal(test->database.stores[test->ops[0].op.partition].write.pending.entries, 1);
	hs_group_finish(&test->group, false);
	hs_mem_free(&value);
	kill_and_open(test);
	assert_string_equal(hs_test_embedded_read(test, "strlen {b}k"), ":81920\r\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(replaying_gives_the_last_of_everything),
		cmocka_unit_test(ages_start_over),
		cmocka_unit_test(colliding_keys_have_entries_of_their_own),
		cmocka_unit_test_setup_teardown(a_group_writes_a_key_once, setup, teardown),
		cmocka_unit_test_setup_teardown(the_log_has_the_end_of_a_group, setup, teardown),
		cmocka_unit_test_setup_teardown(replaced_values_still_count, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
