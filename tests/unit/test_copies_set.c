/* Goal: the functions of the copies stage that need no engine. A copy's name lies on its partition, copies go to
 * partitions with little load, only as many are made as reduce the load, reads take turns and skip copies that do
 * not answer, replies of a missing copy are recognised, and copies that bring no gain are made less often.
 *
 * Method: the test fills the slot map and makes cache entries of the text that describes a set. */
#include "absorb/copies/set.h"
#include "base/mem.h"
#include "base/slot.h"
#include "core/reserved.h"
#include "tests/lib/slots.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static struct hs_slot_map *map_of(uint16_t partitions)
{
	struct hs_slot_map *map = hs_mem_zalloc(sizeof *map);

	hs_slot_map_fill_even(map, partitions);
	return map;
}

/* ---- names ---- */

static void test_name_lies_on_its_partition(void **state)
{
	struct hs_slot_map *map = map_of(100);
	const struct hs_copies_id id = {.process = 0xabc, .set = 7};
	struct hs_buf name = {0};

	(void)state;
	for (uint16_t i = 0; i < 100; i++) {
		name.len = 0;
		assert_true(hs_copies_name(map, i, &id, HS_LIT("k{x}"), &name));
		assert_int_equal(hs_slot_map_get(map, hs_slot_of(hs_buf_bytes(&name))), i);
		assert_true(hs_is_reserved(hs_buf_bytes(&name)));
	}
	hs_buf_deinit(&name);
	hs_mem_free(&map);
}

static void test_names_of_sets_and_makers_differ(void **state)
{
	struct hs_slot_map *map = map_of(2);
	struct hs_copies_id id = {.process = 0xabc, .set = 7};
	struct hs_buf names[3] = {{0}};

	(void)state;
	assert_true(hs_copies_name(map, 1, &id, HS_LIT("k"), &names[0]));
	id.set++;
	assert_true(hs_copies_name(map, 1, &id, HS_LIT("k"), &names[1]));
	id.process++;
	assert_true(hs_copies_name(map, 1, &id, HS_LIT("k"), &names[2]));
	assert_false(hs_bytes_equal(hs_buf_bytes(&names[0]), hs_buf_bytes(&names[1])));
	assert_false(hs_bytes_equal(hs_buf_bytes(&names[1]), hs_buf_bytes(&names[2])));
	hs_buf_append(&names[0], "", 1);
	assert_non_null(strstr(names[0].data, ":0000000000000abc:7:k"));
	for (int i = 0; i < 3; i++)
		hs_buf_deinit(&names[i]);
	hs_mem_free(&map);
}

static void test_no_name_where_there_is_no_slot(void **state)
{
	struct hs_slot_map *map = map_of(2);
	const struct hs_copies_id id = {.process = 1, .set = 1};
	struct hs_buf name = {0};

	(void)state;
	assert_false(hs_copies_name(map, 2, &id, HS_LIT("k"), &name));
	assert_int_equal(name.len, 0);
	hs_buf_deinit(&name);
	hs_mem_free(&map);
}

static void test_only_the_prefix_is_reserved(void **state)
{
	(void)state;
	assert_true(hs_is_reserved(HS_LIT("heatsink:copy:")));
	assert_true(hs_is_reserved(HS_LIT("heatsink:copy:{1}:x")));
	assert_false(hs_is_reserved(HS_LIT("heatsink:copy")));
	assert_false(hs_is_reserved(HS_LIT("heatsink:cops:{1}:x")));
	assert_false(hs_is_reserved(HS_LIT("")));
}

/* ---- how many, and where ---- */

static void test_as_many_as_there_are_partitions(void **state)
{
	(void)state;
	assert_int_equal(hs_copies_wanted(4, 8, 1, 1, 1), 4);
	assert_int_equal(hs_copies_wanted(4, 3, 1, 1, 1), 3);
	assert_int_equal(hs_copies_wanted(4, 1, 1, 1, 1), 1);
	assert_int_equal(hs_copies_wanted(4, 0, 1, 1, 1), 1);
	assert_int_equal(hs_copies_wanted(0, 8, 1, 1, 1), 1);
	assert_int_equal(hs_copies_wanted(HS_COPIES_AUTO, 256, 100, 100, 100), HS_COPIES_MAX);
}

/* The number that `auto` chooses brings the load of the home partition down to the mean; one copy less would
 * not. */
static void test_auto_makes_copies_up_to_the_mean_load(void **state)
{
	(void)state;
	for (uint32_t partitions = 2; partitions <= 12; partitions++) {
		for (int rate = 10; rate <= 1000; rate += 45) {
			double key = rate, others = 100, home = others + key;
			double all = others * partitions + key, mean = all / partitions;
			uint32_t n = hs_copies_wanted(HS_COPIES_AUTO, partitions, key, home, all);

			assert_in_range(n, 2, partitions);
			assert_true(home - key * (1 - 1.0 / n) <= mean + 1e-6 || n == partitions);
			assert_true(home - key * (1 - 1.0 / (n - 1)) > mean - 1e-6);
		}
	}
}

static void test_auto_leaves_a_quiet_partition_alone(void **state)
{
	(void)state;
	assert_int_equal(hs_copies_wanted(HS_COPIES_AUTO, 4, 50, 100, 400), 1);
	assert_int_equal(hs_copies_wanted(HS_COPIES_AUTO, 4, 50, 90, 400), 1);
	assert_int_equal(hs_copies_wanted(HS_COPIES_AUTO, 4, 0, 200, 400), 1);
	/* The partition's load above the mean is more than this key's load: every possible copy is made. */
	assert_int_equal(hs_copies_wanted(HS_COPIES_AUTO, 4, 50, 300, 400), 4);
}

static void test_quiet_partitions_first(void **state)
{
	struct hs_slot_map *map = map_of(6);
	struct hs_copies_loads loads = {.of = {5, 1, 9, 2, 0, 7}};
	uint16_t partitions[HS_COPIES_MAX];

	(void)state;
	assert_int_equal(hs_copies_choose(map, &loads, 2, 4, 0, partitions), 4);
	assert_int_equal(partitions[0], 2);
	assert_int_equal(partitions[1], 4);
	assert_int_equal(partitions[2], 1);
	assert_int_equal(partitions[3], 3);
	hs_slot_map_set_present(map, 4, false);
	assert_int_equal(hs_copies_choose(map, &loads, 2, 9, 0, partitions), 5);
	assert_int_equal(partitions[1], 1);
	hs_mem_free(&map);
}

static void test_equally_quiet_partitions_by_salt(void **state)
{
	struct hs_slot_map *map = map_of(8);
	struct hs_copies_loads loads = {.all = 0};
	uint16_t partitions[HS_COPIES_MAX];
	bool seen[8] = {false};

	(void)state;
	for (uint64_t salt = 0; salt < 8; salt++) {
		assert_int_equal(hs_copies_choose(map, &loads, 0, 2, salt, partitions), 2);
		seen[partitions[1]] = true;
	}
	for (int i = 1; i < 8; i++)
		assert_true(seen[i]);
	hs_mem_free(&map);
}

/* ---- a set ---- */

struct desk {
	struct hs_slot_map *map;
	struct hs_cache_entry *entry;
	struct hs_copies *copies;
	uint16_t home;
};

static struct hs_cache_entry *make_entry(struct hs_bytes reply)
{
	struct hs_cache_entry *entry = hs_mem_zalloc(sizeof *entry + reply.len);
	char *bytes = (char *)(entry + 1);

	memcpy(bytes, reply.data, reply.len);
	entry->reply[0] = entry->reply[1] = (struct hs_bytes){bytes, reply.len};
	atomic_init(&entry->refs, 1);
	return entry;
}

/* A slot map of four partitions. The home partition of the key and two others have a copy. */
static void desk_init(struct desk *desk)
{
	const struct hs_copies_id id = {.process = 1, .set = 1};
	struct hs_buf names[2] = {{0}}, reply = {0};
	struct hs_bytes bytes[2];

	desk->map = map_of(4);
	desk->home = hs_slot_of(HS_LIT("k"));
	for (uint16_t i = 0; i < 2; i++) {
		uint16_t home = hs_slot_map_get(desk->map, desk->home);

		assert_true(hs_copies_name(desk->map, (uint16_t)((home + 1 + i) % 4), &id,
					   HS_LIT("k"), &names[i]));
		bytes[i] = hs_buf_bytes(&names[i]);
	}
	hs_copies_describe(bytes, 2, &reply);
	desk->entry = make_entry(hs_buf_bytes(&reply));
	desk->copies = hs_copies_create(desk->entry, desk->home);
	assert_non_null(desk->copies);
	for (uint16_t i = 0; i < 2; i++) {
		assert_true(hs_bytes_equal(desk->copies->places[1 + i].name, bytes[i]));
		hs_buf_deinit(&names[i]);
	}
	hs_buf_deinit(&reply);
}

static void desk_deinit(struct desk *desk)
{
	hs_copies_unref(&desk->copies);
	assert_int_equal(atomic_load(&desk->entry->refs), 1);
	hs_mem_free(&desk->entry);
	hs_mem_free(&desk->map);
}

static void test_set_is_what_was_described(void **state)
{
	struct desk desk;

	(void)state;
	desk_init(&desk);
	assert_int_equal(desk.copies->count, 3);
	assert_int_equal(desk.copies->places[0].name.len, 0);
	assert_int_equal(desk.copies->places[0].slot, desk.home);
	assert_false(hs_copies_misplaced(desk.copies, desk.map));
	hs_slot_map_set(desk.map, desk.copies->places[1].slot,
			hs_slot_map_get(desk.map, desk.copies->places[2].slot));
	assert_true(hs_copies_misplaced(desk.copies, desk.map));
	desk_deinit(&desk);
}

static void test_other_replies_describe_no_set(void **state)
{
	static const char *const replies[] = {"", "$1\r\na\r\n", "*1\r\n:1\r\n",
					      "*2\r\n$1\r\na\r\n", "*64\r\n"};
	struct hs_slot_map *map = map_of(2);

	(void)state;
	for (size_t i = 0; i < sizeof replies / sizeof *replies; i++) {
		struct hs_cache_entry *entry = make_entry(hs_bytes_of(replies[i]));

		assert_null(hs_copies_create(entry, 0));
		hs_mem_free(&entry);
	}
	hs_mem_free(&map);
}

static void test_turns_go_round(void **state)
{
	struct desk desk;
	unsigned asked[3] = {0};

	(void)state;
	desk_init(&desk);
	for (int i = 0; i < 300; i++) {
		struct hs_copies_place *place = hs_copies_next(desk.copies, 1000);

		hs_copies_place_asked(place, 1000);
		asked[place - desk.copies->places]++;
	}
	for (int i = 0; i < 3; i++)
		assert_int_equal(asked[i], 100);
	desk_deinit(&desk);
}

static void test_a_silent_partition_is_passed_over(void **state)
{
	struct desk desk;
	uint64_t now = 1000, late = now + HS_COPIES_SLOW_US + 1;
	struct hs_copies_place *first;
	int met = 0;

	(void)state;
	desk_init(&desk);
	first = &desk.copies->places[1];
	hs_copies_place_asked(first, now);
	hs_copies_place_asked(first, now + 10);
	for (int i = 0; i < 9; i++)
		assert_ptr_not_equal(hs_copies_next(desk.copies, late), first);
	/* The copy answers one of two reads. A new timeout starts for the other read, so the copy is used
	 * again. */
	assert_true(hs_copies_place_answered(first, late, HS_LIT("$1\r\na\r\n")));
	for (int i = 0; i < 9; i++)
		met += hs_copies_next(desk.copies, late) == first;
	assert_int_equal(met, 3);
	desk_deinit(&desk);
}

static void test_the_original_is_read_when_no_copy_answers(void **state)
{
	struct desk desk;

	(void)state;
	desk_init(&desk);
	for (int i = 0; i < 3; i++)
		hs_copies_place_asked(&desk.copies->places[i], 1);
	for (int i = 0; i < 9; i++)
		assert_ptr_equal(hs_copies_next(desk.copies, 1 + 2 * HS_COPIES_SLOW_US),
				 &desk.copies->places[0]);
	desk_deinit(&desk);
}

static bool ask(struct hs_copies_place *place, const char *reply)
{
	hs_copies_place_asked(place, 1000);
	return hs_copies_place_answered(place, 1000, hs_bytes_of(reply));
}

static void test_suspicious_copies_are_checked(void **state)
{
	struct desk desk;
	struct hs_copies_place *copy;

	(void)state;
	desk_init(&desk);
	copy = &desk.copies->places[2];
	/* A missing key at the original is authoritative. */
	assert_true(ask(&desk.copies->places[0], "$-1\r\n"));
	assert_true(ask(&desk.copies->places[0], "-ERR no\r\n"));
	for (int i = 0; i < HS_COPIES_REJECTED_MAX - 1; i++)
		assert_false(ask(copy, ":0\r\n"));
	assert_int_equal(copy->cool_until_us, 0);
	assert_true(ask(copy, ":1\r\n")); /* the copy exists: its earlier zeros were correct */
	for (int i = 0; i < HS_COPIES_REJECTED_MAX - 1; i++)
		assert_false(ask(copy, ":0\r\n"));
	assert_int_equal(copy->cool_until_us, 0);
	assert_false(ask(copy, ":0\r\n"));
	assert_int_equal(copy->cool_until_us, 1000 + HS_COPIES_COOL_DOWN_US);
	for (int i = 0; i < 9; i++)
		assert_ptr_not_equal(hs_copies_next(desk.copies, 999 + HS_COPIES_COOL_DOWN_US),
				     copy);
	assert_int_equal(copy->rejected, 2 * HS_COPIES_REJECTED_MAX - 1);
	desk_deinit(&desk);
}

static void test_an_error_is_enough(void **state)
{
	struct desk desk;

	(void)state;
	desk_init(&desk);
	assert_false(ask(&desk.copies->places[1], "-CLUSTERDOWN nobody is there\r\n"));
	assert_int_equal(desk.copies->places[1].cool_until_us, 1000 + HS_COPIES_COOL_DOWN_US);
	desk_deinit(&desk);
}

/* ---- replies ---- */

static void test_what_a_missing_key_says(void **state)
{
	static const char *const nothing[] = {"$-1\r\n",
					      "*-1\r\n",
					      "_\r\n",
					      ":0\r\n",
					      ":-1\r\n",
					      ":-2\r\n",
					      "$0\r\n\r\n",
					      "*0\r\n",
					      "%0\r\n",
					      "~0\r\n",
					      "+none\r\n",
					      "#f\r\n",
					      "*2\r\n$-1\r\n$-1\r\n",
					      "*2\r\n:0\r\n:0\r\n",
					      "*1\r\n*0\r\n",
					      "-ERR whatever\r\n",
					      "",
					      "$5\r\nhal",
					      "?"};
	static const char *const something[] = {"$1\r\n0\r\n",
						":1\r\n",
						":-3\r\n",
						"+string\r\n",
						"#t\r\n",
						",0\r\n",
						"*2\r\n$-1\r\n$1\r\na\r\n",
						"%1\r\n$1\r\nf\r\n$0\r\n\r\n",
						"~1\r\n$1\r\nm\r\n",
						"*1\r\n*2\r\n$0\r\n\r\n$1\r\n1\r\n"};

	(void)state;
	for (size_t i = 0; i < sizeof nothing / sizeof *nothing; i++) {
		if (!hs_copies_may_be_missing(hs_bytes_of(nothing[i])))
			fail_msg("says something: %s", nothing[i]);
	}
	for (size_t i = 0; i < sizeof something / sizeof *something; i++) {
		if (hs_copies_may_be_missing(hs_bytes_of(something[i])))
			fail_msg("says nothing: %s", something[i]);
	}
}

/* ---- pace ---- */

static void test_sets_that_do_not_pay_are_made_less_often(void **state)
{
	struct hs_copies_backoff pace = {0};

	(void)state;
	hs_copies_backoff(&pace, 3, 3 * HS_COPIES_READS_WORTH);
	assert_int_equal(pace.backoff_us, 0);
	hs_copies_backoff(&pace, 3, 3 * HS_COPIES_READS_WORTH - 1);
	assert_int_equal(pace.backoff_us, HS_COPIES_BACKOFF_US_MIN);
	hs_copies_backoff(&pace, 3, 0);
	assert_int_equal(pace.backoff_us, 2 * HS_COPIES_BACKOFF_US_MIN);
	for (int i = 0; i < 100; i++)
		hs_copies_backoff(&pace, 3, 0);
	assert_int_equal(pace.backoff_us, HS_COPIES_BACKOFF_US_MAX);
	hs_copies_backoff(&pace, 3, 1000);
	assert_int_equal(pace.backoff_us, HS_COPIES_BACKOFF_US_MAX / 2);
	for (int i = 0; i < 100; i++)
		hs_copies_backoff(&pace, 3, 1000);
	assert_int_equal(pace.backoff_us, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_name_lies_on_its_partition),
		cmocka_unit_test(test_names_of_sets_and_makers_differ),
		cmocka_unit_test(test_no_name_where_there_is_no_slot),
		cmocka_unit_test(test_only_the_prefix_is_reserved),
		cmocka_unit_test(test_as_many_as_there_are_partitions),
		cmocka_unit_test(test_auto_makes_copies_up_to_the_mean_load),
		cmocka_unit_test(test_auto_leaves_a_quiet_partition_alone),
		cmocka_unit_test(test_quiet_partitions_first),
		cmocka_unit_test(test_equally_quiet_partitions_by_salt),
		cmocka_unit_test(test_set_is_what_was_described),
		cmocka_unit_test(test_other_replies_describe_no_set),
		cmocka_unit_test(test_turns_go_round),
		cmocka_unit_test(test_a_silent_partition_is_passed_over),
		cmocka_unit_test(test_the_original_is_read_when_no_copy_answers),
		cmocka_unit_test(test_suspicious_copies_are_checked),
		cmocka_unit_test(test_an_error_is_enough),
		cmocka_unit_test(test_what_a_missing_key_says),
		cmocka_unit_test(test_sets_that_do_not_pay_are_made_less_often),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
