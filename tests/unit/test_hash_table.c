/* Goal: the hash table finds every entry that was added, whatever size it has grown or shrunk to.
 *
 * Method: entries are numbers; every seventh shares a hash with others, so that chains are long. Where the table
 * may return entries in any order, the test counts how often each entry is returned. */
#include "base/hash_table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

enum { MANY = 5000, ALIKE = 7 };

struct entry {
	uint32_t number, seen;
	struct hs_hash_node node; /* not the first member, so its offset is not 0 */
};

struct world {
	struct hs_hash_table table;
	struct entry entries[MANY];
};

static uint64_t hash_of(uint32_t number)
{
	return number % ALIKE == 0 ? ALIKE : number * UINT64_C(0x9e3779b97f4a7c15);
}

static struct entry *find(const struct hs_hash_table *table, uint32_t number)
{
	hs_hash_each(struct entry, entry, table, hash_of(number), node) {
		if (entry->number == number)
			return entry;
	}
	return NULL;
}

static void add(struct world *world, uint32_t number)
{
	world->entries[number].number = number;
	hs_hash_table_add(&world->table, &world->entries[number].node, hash_of(number));
}

static struct world *set_up(uint32_t count)
{
	struct world *world = calloc(1, sizeof *world);

	assert_non_null(world);
	hs_hash_table_init(&world->table);
	for (uint32_t i = 0; i < count; i++)
		add(world, i);
	return world;
}

static void tear_down(struct world *world)
{
	while (hs_hash_table_take(&world->table))
		;
	hs_hash_table_deinit(&world->table);
	assert_null(world->table.buckets);
	free(world);
}

/* Checks that the table has the entries in [from, to); in a large range, checks a sample. */
static void check(struct world *world, uint32_t from, uint32_t to)
{
	assert_int_equal(world->table.count, to - from);
	for (uint32_t i = from; i < to; i += 1 + (to - from) / 50)
		assert_ptr_equal(find(&world->table, i), &world->entries[i]);
}

static void test_grows_and_shrinks_by_single_buckets(void **state)
{
	struct world *world = set_up(0);
	size_t largest;

	(void)state;
	for (uint32_t i = 0; i < MANY; i++) {
		size_t before = world->table.base + world->table.split;

		assert_null(find(&world->table, i));
		add(world, i);
		assert_true(world->table.base + world->table.split - before <= 1);
		check(world, 0, i + 1);
	}
	largest = world->table.room;
	assert_true(world->table.base + world->table.split >= MANY);
	for (uint32_t i = 0; i < MANY; i++) {
		size_t before = world->table.base + world->table.split;

		hs_hash_table_remove(&world->table, &world->entries[i].node);
		assert_null(find(&world->table, i));
		assert_true(before - (world->table.base + world->table.split) <= 8);
		check(world, i + 1, MANY);
	}
	assert_true(world->table.room <= largest / 32);
	tear_down(world);
}

static void test_walk_gives_each_entry_once(void **state)
{
	struct world *world = set_up(MANY);

	(void)state;
	for (uint32_t i = 0; i < MANY; i += 3)
		hs_hash_table_remove(&world->table, &world->entries[i].node);
	hs_hash_each_of_all(struct entry, entry, &world->table, node)
		entry->seen++;
	for (uint32_t i = 0; i < MANY; i++)
		assert_int_equal(world->entries[i].seen, i % 3 != 0);
	tear_down(world);
}

static void test_walk_of_an_empty_table(void **state)
{
	struct world *world = set_up(0);

	(void)state;
	assert_null(hs_hash_table_after(&world->table, NULL));
	assert_null(hs_hash_table_take(&world->table));
	tear_down(world);
}

/* While entries are taken one by one, the table still finds the remaining ones. An entry that is added again
 * stays. */
static void test_taking_gives_each_entry_once(void **state)
{
	struct world *world = set_up(MANY);
	struct hs_hash_node *node;

	(void)state;
	for (uint32_t left = MANY; (node = hs_hash_table_take(&world->table)); left--) {
		struct entry *entry = hs_hash_entry(node, struct entry, node);

		assert_int_equal(world->table.count, left - 1);
		assert_null(find(&world->table, entry->number));
		assert_int_equal(entry->seen++, 0);
		for (uint32_t i = 0; i < MANY; i += MANY / 10)
			assert_int_equal(find(&world->table, i) == NULL, world->entries[i].seen);
	}
	for (uint32_t i = 0; i < MANY; i++)
		assert_int_equal(world->entries[i].seen, 1);
	for (uint32_t i = 0; i < MANY; i++)
		add(world, i);
	check(world, 0, MANY);
	tear_down(world);
}

/* Repeated picks find every entry, even if few of many entries remain. */
static void test_pick(void **state)
{
	enum { LEFT = 20 };
	struct world *world = set_up(MANY);
	struct hs_prng prng;

	(void)state;
	hs_prng_init(&prng, 1);
	for (uint32_t i = LEFT; i < MANY; i++)
		hs_hash_table_remove(&world->table, &world->entries[i].node);
	/* The test removes each picked entry, because pick returns only the first node of a bucket. */
	for (uint32_t i = 0; i < LEFT; i++) {
		struct hs_hash_node *node = hs_hash_table_pick(&world->table, &prng);
		struct entry *entry = hs_hash_entry(node, struct entry, node);

		assert_int_equal(entry->seen++, 0);
		hs_hash_table_remove(&world->table, node);
	}
	assert_int_equal(world->table.count, 0);
	tear_down(world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_grows_and_shrinks_by_single_buckets),
		cmocka_unit_test(test_walk_gives_each_entry_once),
		cmocka_unit_test(test_walk_of_an_empty_table),
		cmocka_unit_test(test_taking_gives_each_entry_once),
		cmocka_unit_test(test_pick),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
