/* Goal: the list of changed keys has each key once, together with its client if only one client changed the key.
 * Too many keys become "everything changed".
 *
 * Method: keys are added up to and beyond the limits. */
#include "base/limits.h"
#include "base/mem.h"
#include "core/event.h"
#include "keyspace/changed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void test_each_key_once(void **state)
{
	struct hs_changed changed = {.seed = 5};
	struct hs_event *event;
	char text[32];

	(void)state;
	assert_true(hs_changed_empty(&changed));
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 1000; i++) {
			int len = snprintf(text, sizeof text, "%d", i);

			changed.client = i % 2 == 0 ? 7 : (uint64_t)(8 + round);
			hs_changed_add(&changed, (struct hs_bytes){text, (size_t)len});
		}
	}
	changed.client = 9;
	hs_changed_add(&changed, HS_LIT(""));
	assert_int_equal(changed.count, 1001);
	event = hs_event_create_changed(&changed);
	assert_int_equal(event->kind, HS_EVENT_CHANGED);
	assert_int_equal(event->keys_count, 1001);
	for (uint32_t i = 0; i < 1000; i++) {
		int len = snprintf(text, sizeof text, "%u", i);

		assert_true(hs_bytes_equal(event->keys[i], (struct hs_bytes){text, (size_t)len}));
		/* 0: several clients changed the key. */
		assert_int_equal(event->by[i], i % 2 == 0 ? 7 : 0);
	}
	assert_int_equal(event->keys[1000].len, 0);
	assert_int_equal(event->by[1000], 9);
	hs_event_unref(&event);
	hs_changed_clear(&changed);
	assert_true(hs_changed_empty(&changed));
	hs_changed_add(&changed, HS_LIT("1"));
	assert_int_equal(changed.count, 1);
	hs_changed_deinit(&changed);
}

static void test_everything(void **state)
{
	struct hs_changed changed = {0};

	(void)state;
	hs_changed_add(&changed, HS_LIT("before"));
	hs_changed_add_all(&changed);
	assert_true(changed.all);
	assert_int_equal(changed.count, 0);
	hs_changed_add(&changed, HS_LIT("after"));
	assert_true(changed.all);
	assert_int_equal(changed.count, 1);
	hs_changed_clear(&changed);
	assert_true(hs_changed_empty(&changed));
	hs_changed_deinit(&changed);
}

static void test_limits(void **state)
{
	struct hs_changed changed = {0};
	char *name = hs_mem_zalloc(HS_CHANGED_NAMES_BYTES_MAX);

	(void)state;
	hs_changed_add(&changed, (struct hs_bytes){name, HS_CHANGED_NAMES_BYTES_MAX - 1});
	hs_changed_add(&changed, HS_LIT("x"));
	assert_false(changed.all);
	assert_int_equal(changed.count, 2);
	hs_changed_add(&changed, HS_LIT("y"));
	assert_true(changed.all);
	assert_int_equal(changed.count, 0);
	hs_changed_clear(&changed);
	for (uint32_t i = 0; i < HS_CHANGED_KEYS_MAX; i++)
		hs_changed_add(&changed, (struct hs_bytes){(const char *)&i, sizeof i});
	assert_false(changed.all);
	assert_int_equal(changed.count, HS_CHANGED_KEYS_MAX);
	hs_changed_add(&changed, HS_LIT("more"));
	assert_true(changed.all);
	hs_mem_free(&name);
	hs_changed_deinit(&changed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_key_once),
		cmocka_unit_test(test_everything),
		cmocka_unit_test(test_limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
