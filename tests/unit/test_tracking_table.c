/* Goal: the table of tracked keys grows and is emptied key by key, with correct counts, and forgets exactly the
 * right clients and keys.
 *
 * Method: thousands of random changes, each also made to a plain array. */
#include "base/prng.h"
#include "push/tracking_table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { KEYS = 300, IDS = 6, STEPS = 60000 };

static struct hs_bytes name(int key, char *text, size_t size)
{
	int len = snprintf(text, size, "key:%d", key);

	return (struct hs_bytes){text, (size_t)len};
}

static void compare(const struct hs_tracking_table *table, bool model[KEYS][IDS])
{
	uint64_t keys = 0, items = 0;

	for (int i = 0; i < KEYS; i++) {
		char text[32];
		const struct hs_tracked *tracked =
			hs_tracking_table_find(table, name(i, text, sizeof text));
		uint32_t count = 0;

		for (int j = 0; j < IDS; j++) {
			if (!model[i][j])
				continue;
			assert_non_null(tracked);
			assert_true(count < tracked->count);
			assert_int_equal(tracked->ids[count++], 100 + j);
		}
		assert_int_equal(tracked ? tracked->count : 0, count);
		keys += count > 0;
		items += count;
	}
	assert_int_equal(table->keys.count, keys);
	assert_int_equal(table->items, items);
	assert_true((table->bytes == 0) == (keys == 0));
}

static void test_like_a_plain_array(void **state)
{
	static bool model[KEYS][IDS];
	struct hs_tracking_table *table = hs_tracking_table_create(7);
	struct hs_prng prng;

	(void)state;
	hs_prng_init(&prng, 1);
	for (int step = 0; step < STEPS; step++) {
		int key = (int)hs_prng_below(&prng, KEYS), id = (int)hs_prng_below(&prng, IDS);
		char text[32];
		struct hs_bytes bytes = name(key, text, sizeof text);
		struct hs_tracked *tracked = hs_tracking_table_find(table, bytes);

		if (hs_prng_below(&prng, 3) > 0) {
			hs_tracking_table_add(table, bytes, 100 + (uint64_t)id);
			model[key][id] = true;
		} else if (tracked) {
			bool one = hs_prng_below(&prng, 2);
			bool had = model[key][id];

			if (one) {
				assert_int_equal(hs_tracked_has(tracked, 100 + (uint64_t)id), had);
				assert_int_equal(hs_tracking_table_remove(table, tracked,
									  100 + (uint64_t)id),
						 had);
				model[key][id] = false;
			} else {
				if (had)
					tracked->ids[0] = 100 + (uint64_t)id;
				hs_tracking_table_forget(table, tracked, had);
				memset(model[key], 0, sizeof model[key]);
				model[key][id] = had;
			}
		}
		if (hs_prng_below(&prng, 5000) == 0) {
			hs_tracking_table_retire(&table);
			memset(model, 0, sizeof model);
		}
		if (step % 50 == 0)
			compare(table, model);
	}
	hs_tracking_table_destroy(&table);
	assert_null(table);
}

/* hs_tracking_table_pick() returns every key in the end: the table becomes empty. */
static void test_pick(void **state)
{
	struct hs_tracking_table *table = hs_tracking_table_create(7);
	struct hs_prng prng;
	char text[32];

	(void)state;
	hs_prng_init(&prng, 1);
	for (int key = 0; key < KEYS; key++)
		hs_tracking_table_add(table, name(key, text, sizeof text), 1);
	for (int key = 0; key < KEYS; key++)
		hs_tracking_table_forget(table, hs_tracking_table_pick(table, &prng), 0);
	assert_int_equal(table->keys.count, 0);
	assert_int_equal(table->items, 0);
	assert_int_equal(table->bytes, 0);
	hs_tracking_table_destroy(&table);
}

/* The memory of a replaced table is freed in portions, and is gone before the next replacement. */
static void test_retired_keys_are_freed_in_portions(void **state)
{
	enum { MANY = 40000 };
	struct hs_tracking_table *table = hs_tracking_table_create(7);
	char text[32];

	(void)state;
	for (int round = 0; round < 3; round++) {
		for (int key = 0; key < MANY; key++)
			hs_tracking_table_add(table, name(key, text, sizeof text), 1);
		assert_null(table->older); /* the table replaced in the last round is freed */
		hs_tracking_table_retire(&table);
		assert_int_equal(table->keys.count, 0);
		assert_non_null(table->older);
	}
	for (int calls = 0; table->older; calls++) {
		assert_true(calls < 10);
		hs_tracking_table_free_some(table);
	}
	hs_tracking_table_destroy(&table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_like_a_plain_array),
		cmocka_unit_test(test_pick),
		cmocka_unit_test(test_retired_keys_are_freed_in_portions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
