/* Goal: the store in memory returns keys in order, undoes aborted changes, and is full at its limit.
 *
 * Method: random changes beside a plain array, with aborts in between. */
#include "sim/memkv.h"

#include "base/err.h"
#include "base/prng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

enum { SPACE = 64 }; /* number of keys; a key and a value are one byte, 0: absent */

struct model {
	unsigned char value[SPACE];
};

static int setup(void **state)
{
	*state = hs_memkv_create();
	return 0;
}

static int teardown(void **state)
{
	struct hs_memkv *map = *state;

	hs_memkv_destroy(&map);
	return 0;
}

static int put(struct hs_memkv *map, const char *key, const char *value)
{
	struct hs_kv *kv = hs_memkv_kv(map);
	char *room;
	int err = kv->calls->put(kv, HS_KV_KEYS, hs_bytes_of(key), strlen(value), &room);

	if (!err)
		memcpy(room, value, strlen(value));
	return err;
}

static void check_model(struct hs_memkv *map, const struct model *model)
{
	struct hs_kv *kv = hs_memkv_kv(map);
	struct hs_bytes key, value;
	uint64_t count, expected = 0;
	int err = kv->calls->seek(kv, HS_KV_KEYS, HS_LIT("\0"), &key, &value);

	for (int i = 0; i < SPACE; i++) {
		if (!model->value[i])
			continue;
		expected++;
		assert_int_equal(err, 0);
		assert_int_equal((unsigned char)key.data[0], i + 1);
		assert_int_equal((unsigned char)value.data[0], model->value[i]);
		err = kv->calls->next(kv, HS_KV_KEYS, &key, &value);
	}
	assert_int_equal(err, HS_ENOTFOUND);
	assert_int_equal(kv->calls->count(kv, HS_KV_KEYS, &count), 0);
	assert_int_equal(count, expected);
	assert_int_equal(hs_memkv_bytes(map), expected * 2);
}

static void change(struct hs_memkv *map, struct model *model, struct hs_prng *prng)
{
	struct hs_kv *kv = hs_memkv_kv(map);
	unsigned index = (unsigned)hs_prng_below(prng, SPACE);
	char byte = (char)(index + 1), *room;
	struct hs_bytes key = {&byte, 1}, value;

	if (hs_prng_below(prng, 200) == 0) {
		assert_int_equal(kv->calls->clear(kv), 0);
		*model = (struct model){{0}};
	} else if (hs_prng_below(prng, 2) == 0) {
		assert_int_equal(kv->calls->del(kv, HS_KV_KEYS, key),
				 model->value[index] ? 0 : HS_ENOTFOUND);
		model->value[index] = 0;
	} else {
		assert_int_equal(kv->calls->get(kv, HS_KV_KEYS, key, &value),
				 model->value[index] ? 0 : HS_ENOTFOUND);
		assert_int_equal(kv->calls->put(kv, HS_KV_KEYS, key, 1, &room), 0);
		model->value[index] = (unsigned char)(1 + hs_prng_below(prng, 255));
		*room = (char)model->value[index];
	}
}

static void test_random_transactions(void **state)
{
	struct hs_memkv *map = *state;
	struct model model = {{0}};
	struct hs_prng prng;

	hs_prng_init(&prng, 11);
	for (int i = 0; i < 2000; i++) {
		struct model before = model;

		hs_memkv_begin(map);
		for (uint64_t n = hs_prng_below(&prng, 20); n > 0; n--)
			change(map, &model, &prng);
		if (hs_prng_below(&prng, 3) == 0) {
			hs_memkv_abort(map);
			model = before;
		} else {
			hs_memkv_commit(map);
		}
		check_model(map, &model);
	}
}

static void test_trees_are_apart(void **state)
{
	struct hs_memkv *map = *state;
	struct hs_kv *kv = hs_memkv_kv(map);
	struct hs_bytes value;

	hs_memkv_begin(map);
	assert_int_equal(put(map, "a", "1"), 0);
	assert_int_equal(kv->calls->get(kv, HS_KV_EXPIRES, HS_LIT("a"), &value), HS_ENOTFOUND);
	assert_int_equal(kv->calls->del(kv, HS_KV_EXPIRES, HS_LIT("a")), HS_ENOTFOUND);
	assert_int_equal(kv->calls->get(kv, HS_KV_KEYS, HS_LIT("a"), &value), 0);
	hs_memkv_commit(map);
}

static void test_full_until_aborted(void **state)
{
	struct hs_memkv *map = *state;
	struct hs_kv *kv = hs_memkv_kv(map);
	struct hs_bytes value;

	hs_memkv_limit(map, 5);
	hs_memkv_begin(map);
	assert_int_equal(put(map, "a", "1"), 0);
	assert_int_equal(put(map, "b", "22"), 0);
	hs_memkv_commit(map);
	hs_memkv_begin(map);
	assert_int_equal(put(map, "a", "333"), HS_EFULL);
	assert_int_equal(put(map, "a", "1"), HS_EFULL);
	assert_int_equal(kv->calls->get(kv, HS_KV_KEYS, HS_LIT("a"), &value), HS_EFULL);
	hs_memkv_abort(map);
	assert_int_equal(hs_memkv_bytes(map), 5);
	hs_memkv_begin(map);
	assert_int_equal(kv->calls->del(kv, HS_KV_KEYS, HS_LIT("b")), 0);
	assert_int_equal(put(map, "a", "333"), 0);
	hs_memkv_commit(map);
	/* If the limit is below the store's size, a value may shrink but not grow. */
	hs_memkv_limit(map, 1);
	hs_memkv_begin(map);
	assert_int_equal(put(map, "a", "22"), 0);
	assert_int_equal(put(map, "a", "333"), HS_EFULL);
	hs_memkv_abort(map);
	assert_int_equal(hs_memkv_bytes(map), 4);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_random_transactions),
		TEST(test_trees_are_apart),
		TEST(test_full_until_aborted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
