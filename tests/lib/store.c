#include "tests/lib/store.h"

#include "base/slot.h"
#include "keyspace/expiry.h"
#include "keyspace/record.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

enum { ARGS_MAX = 64 };

void test_store_init(struct test_store *store)
{
	*store = (struct test_store){.map = hs_memkv_create(), .resp = 2};
	hs_prng_init(&store->prng, 1);
	store->ks = (struct hs_keyspace){
		.kv = hs_memkv_kv(store->map),
		.now_ms = (int64_t)TEST_NOW_S * 1000,
		.hash_seed = 7,
		.prng = &store->prng,
		.watch = hs_watch_create(3),
	};
}

void test_store_deinit(struct test_store *store)
{
	hs_watch_destroy(&store->ks.watch);
	hs_memkv_destroy(&store->map);
	hs_buf_deinit(&store->out);
}

static int run(struct test_store *store, size_t argc, const struct hs_bytes *argv)
{
	const struct hs_command *command = hs_command_find(argv[0]);
	struct hs_reply reply = {.out = &store->out, .resp = store->resp};
	size_t first = 0, step = 0;
	uint16_t slot = 0;
	int err;

	store->ks.counts = &store->counts;
	store->out.len = 0;
	if (command && command->place == HS_PLACE_PARENT && argc > 1)
		command = hs_command_sub(command, argv[1]);
	hs_check(command);
	assert_true(hs_command_arity_fits(command, argc));
	if (hs_command_keys(command, argc, &first, &step))
		slot = hs_slot_of(argv[first]);
	hs_memkv_begin(store->map);
	err = hs_keyspace_run(&store->ks, command, slot, argc, argv, &reply);
	if (err)
		hs_memkv_abort(store->map);
	else
		hs_memkv_commit(store->map);
	return err;
}

static size_t split(const char *line, struct hs_bytes *argv)
{
	size_t argc = 0;

	for (;;) {
		size_t len = strcspn(line, " ");

		assert_true(argc < ARGS_MAX);
		argv[argc++] = len == 2 && line[0] == '"' ? (struct hs_bytes){"", 0}
							  : (struct hs_bytes){line, len};
		if (line[len] == '\0')
			return argc;
		line += len + 1;
	}
}

const char *test_run_args(struct test_store *store, size_t argc, const struct hs_bytes *argv)
{
	assert_int_equal(run(store, argc, argv), 0);
	hs_buf_append(&store->out, "", 1);
	store->out.len--;
	return store->out.data;
}

const char *test_run(struct test_store *store, const char *line)
{
	struct hs_bytes argv[ARGS_MAX];

	return test_run_args(store, split(line, argv), argv);
}

int test_try(struct test_store *store, const char *line)
{
	struct hs_bytes argv[ARGS_MAX];

	return run(store, split(line, argv), argv);
}

void test_script(struct test_store *store, size_t count, const struct test_line *lines)
{
	for (size_t i = 0; i < count; i++) {
		const char *reply = test_run(store, lines[i].command);

		if (strcmp(reply, lines[i].reply) != 0)
			fail_msg("line %zu: %s\n  replied  %s\n  expected %s", i + 1,
				 lines[i].command, reply, lines[i].reply);
	}
}

void test_put_record(struct test_store *store, const char *key, struct hs_bytes record)
{
	struct hs_physical_key physical;
	char *room;

	hs_record_physical(&physical, store->ks.hash_seed, hs_slot_of(hs_bytes_of(key)),
			   hs_bytes_of(key));
	hs_memkv_begin(store->map);
	assert_int_equal(store->ks.kv->calls->put(store->ks.kv, HS_KV_KEYS,
						  (struct hs_bytes){physical.data, physical.len},
						  4 + record.len, &room),
			 0);
	memcpy(room + 4, record.data, record.len);
	hs_record_seal(room, 4 + record.len, hs_record_seed(physical.data));
	hs_memkv_commit(store->map);
}

void test_check_expiries(struct test_store *store)
{
	struct hs_kv *kv = store->ks.kv;
	struct hs_bytes key, value, nothing;
	uint64_t expected = 0, entries;
	int err = kv->calls->seek(kv, HS_KV_KEYS, HS_LIT("\0"), &key, &value);

	for (; !err; err = kv->calls->next(kv, HS_KV_KEYS, &key, &value)) {
		struct hs_record record;
		struct hs_physical_key physical;
		struct hs_expiry_key index;

		assert_int_equal(hs_record_decode(value, &record), 0);
		if (record.expire_ms < 0)
			continue;
		memcpy(physical.data, key.data, key.len);
		physical.len = key.len;
		hs_expiry_key(&index, record.expire_ms, &physical);
		assert_int_equal(
			kv->calls->get(kv, HS_KV_EXPIRES, hs_expiry_bytes(&index), &nothing), 0);
		expected++;
	}
	assert_int_equal(kv->calls->count(kv, HS_KV_EXPIRES, &entries), 0);
	assert_int_equal(entries, expected);
}
