/* Goal: keys are assigned to slots as in Redis Cluster, and slots to partitions by the map.
 *
 * Method: known CRC16 values and hash tags; the fast CRC is compared with one computed bit by bit. */
#include "base/prng.h"
#include "route/slot_map.h"
#include "tests/lib/slots.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static uint16_t slot(const char *key)
{
	return hs_slot_of(hs_bytes_of(key));
}

/* Computes the slot bit by bit from the definition of the CRC: polynomial 0x1021, highest bit first. */
static unsigned slow_slot(struct hs_bytes key)
{
	unsigned crc = 0;

	for (size_t i = 0; i < key.len; i++) {
		crc ^= (unsigned)(unsigned char)key.data[i] << 8;
		for (int bit = 0; bit < 8; bit++)
			crc = (crc << 1 ^ (crc & 0x8000 ? 0x1021 : 0)) & 0xffff;
	}
	return crc % HS_SLOTS;
}

static void test_known_slots(void **state)
{
	(void)state;
	/* 12739, the check value of this CRC, is below 16384: the slot is the CRC itself. */
	assert_int_equal(slot("123456789"), 0x31c3);
	assert_int_equal(slot("foo"), 12182);
	assert_int_equal(slot("bar"), 5061);
	assert_int_equal(slot("hello"), 866);
	assert_int_equal(slot("somekey"), 11058);
	assert_int_equal(hs_slot_of((struct hs_bytes){NULL, 0}), 0);
}

static void test_hash_tags(void **state)
{
	(void)state;
	assert_int_equal(slot("{user1000}.following"), slot("user1000"));
	assert_int_equal(slot("{user1000}.followers"), slot("user1000"));
	assert_int_equal(slot("a{b}c"), slot("b"));
	/* An empty tag does not count: the slot is that of the whole key. */
	assert_int_equal(slot("foo{}{bar}"), slow_slot(HS_LIT("foo{}{bar}")));
	/* The tag is between the first opening brace and the first closing brace after it. */
	assert_int_equal(slot("foo{{bar}}zap"), slot("{bar"));
	assert_int_equal(slot("foo{bar}{zap}"), slot("bar"));
	/* Without a closing brace after the first opening one, the whole key counts. */
	assert_int_equal(slot("foo{bar"), slow_slot(HS_LIT("foo{bar")));
	assert_int_equal(slot("foo}bar{"), slow_slot(HS_LIT("foo}bar{")));
	assert_int_equal(slot("{}"), slow_slot(HS_LIT("{}")));
	assert_int_equal(slot("{"), slow_slot(HS_LIT("{")));
	assert_int_equal(slot("}{x}"), slot("x"));
}

static void test_the_fast_crc_equals_the_slow_one(void **state)
{
	struct hs_prng prng;
	char key[70];

	(void)state;
	hs_prng_init(&prng, 11);
	for (int i = 0; i < 20000; i++) {
		size_t len = hs_prng_below(&prng, sizeof key);

		for (size_t j = 0; j < len; j++) {
			key[j] = (char)hs_prng_next(&prng);
			if (key[j] == '{')
				key[j] = 'x';
		}
		assert_int_equal(hs_slot_of((struct hs_bytes){key, len}),
				 slow_slot((struct hs_bytes){key, len}));
	}
}

static void test_partitions_are_even_ranges(void **state)
{
	(void)state;
	for (int number = 1; number <= HS_PARTITIONS_MAX; number++) {
		uint16_t partitions = (uint16_t)number;

		assert_int_equal(hs_slot_first(0, partitions), 0);
		assert_int_equal(hs_slot_first(partitions, partitions), HS_SLOTS);
		for (uint16_t i = 0; i < partitions; i++) {
			uint32_t first = hs_slot_first(i, partitions);
			uint32_t end = hs_slot_first((uint16_t)(i + 1), partitions);

			assert_in_range(end - first, HS_SLOTS / partitions,
					HS_SLOTS / partitions + 1);
			assert_int_equal(hs_slot_partition((uint16_t)first, partitions), i);
			assert_int_equal(hs_slot_partition((uint16_t)(end - 1), partitions), i);
		}
	}
}

static void test_a_map_starts_even_and_can_change(void **state)
{
	struct hs_slot_map *map = calloc(1, sizeof *map);

	(void)state;
	assert_non_null(map);
	for (int number = 1; number <= HS_PARTITIONS_MAX; number++) {
		hs_slot_map_fill_even(map, (uint16_t)number);
		assert_int_equal(hs_slot_map_count(map), number);
		assert_true(hs_slot_map_has(map, (uint16_t)(number - 1)));
		assert_false(hs_slot_map_has(map, (uint16_t)number));
		for (uint32_t i = 0; i < HS_SLOTS; i++)
			assert_int_equal(hs_slot_map_get(map, (uint16_t)i),
					 hs_slot_partition((uint16_t)i, (uint16_t)number));
	}
	hs_slot_map_set(map, HS_SLOTS - 1, 7);
	hs_slot_map_set_count(map, 8);
	assert_int_equal(hs_slot_map_get(map, HS_SLOTS - 1), 7);
	assert_int_equal(hs_slot_map_get(map, HS_SLOTS - 2), HS_PARTITIONS_MAX - 1);
	assert_int_equal(hs_slot_map_count(map), 8);
	free(map);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known_slots),
		cmocka_unit_test(test_hash_tags),
		cmocka_unit_test(test_the_fast_crc_equals_the_slow_one),
		cmocka_unit_test(test_partitions_are_even_ranges),
		cmocka_unit_test(test_a_map_starts_even_and_can_change),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
