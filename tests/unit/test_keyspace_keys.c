/* Goal: commands on keys of any type give exactly Redis 7.0's replies. Records of types that this version does not
 * know, and damaged ones, are errors and are never overwritten.
 *
 * Method: scripts of commands with their whole replies, and records put into the store by hand. */
#include "base/err.h"
#include "base/slot.h"
#include "keyspace/record.h"
#include "tests/lib/store.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define WRONG_TYPE "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"
#define SYNTAX "-ERR syntax error\r\n"
#define SHARED ":2147483647\r\n"

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

static void test_removing_and_counting(void **state)
{
	struct test_store *store = *state;

	TEST_SCRIPT(store, {"MSET a 1 b 2 c 3", "+OK\r\n"}, {"EXISTS a b a nosuch", ":3\r\n"},
		    {"TOUCH a nosuch c", ":2\r\n"}, {"TYPE a", "+string\r\n"},
		    {"TYPE nosuch", "+none\r\n"}, {"DEL a a nosuch", ":1\r\n"},
		    {"UNLINK b c", ":2\r\n"}, {"EXISTS a b c", ":0\r\n"});
	assert_int_equal(hs_memkv_bytes(store->map), 0);
	assert_int_equal(store->ks.changes, 6);
}

static void test_rename(void **state)
{
	TEST_SCRIPT(*state, {"RENAME {t}1 {t}2", "-ERR no such key\r\n"},
		    {"RENAME {t}1 {t}1", "-ERR no such key\r\n"}, {"SET {t}1 one EX 10", "+OK\r\n"},
		    {"SET {t}2 two", "+OK\r\n"}, {"RENAME {t}1 {t}1", "+OK\r\n"},
		    {"RENAMENX {t}1 {t}1", ":0\r\n"}, {"RENAMENX {t}1 {t}2", ":0\r\n"},
		    {"RENAME {t}1 {t}2", "+OK\r\n"}, {"GET {t}2", "$3\r\none\r\n"},
		    {"TTL {t}2", ":10\r\n"}, {"EXISTS {t}1", ":0\r\n"},
		    {"RENAMENX {t}2 {t}3", ":1\r\n"}, {"TTL {t}3", ":10\r\n"},
		    {"SET {t}4 four", "+OK\r\n"}, {"RENAME {t}4 {t}3", "+OK\r\n"},
		    {"TTL {t}3", ":-1\r\n"});
	test_check_expiries(*state);
}

static void test_copy(void **state)
{
	TEST_SCRIPT(*state, {"COPY {t}1 {t}2", ":0\r\n"}, {"SET {t}1 one EX 10", "+OK\r\n"},
		    {"COPY {t}1 {t}2", ":1\r\n"}, {"TTL {t}2", ":10\r\n"},
		    {"SET {t}1 two", "+OK\r\n"}, {"COPY {t}1 {t}2", ":0\r\n"},
		    {"COPY {t}1 {t}2 REPLACE DB 0", ":1\r\n"}, {"GET {t}2", "$3\r\ntwo\r\n"},
		    {"TTL {t}2", ":-1\r\n"},
		    {"COPY {t}1 {t}1", "-ERR source and destination objects are the same\r\n"},
		    {"COPY {t}1 {t}2 DB 1", "-ERR DB index is out of range\r\n"},
		    {"COPY {t}1 {t}2 DB x", "-ERR value is not an integer or out of range\r\n"},
		    {"COPY {t}1 {t}2 DB", SYNTAX}, {"COPY {t}1 {t}2 nosuch", SYNTAX});
	test_check_expiries(*state);
}

#define TEN "0123456789"

static void test_encodings(void **state)
{
	TEST_SCRIPT(*state, {"OBJECT ENCODING a", "$-1\r\n"}, {"SET a 12", "+OK\r\n"},
		    {"OBJECT ENCODING a", "$3\r\nint\r\n"}, {"SET a -0", "+OK\r\n"},
		    {"OBJECT ENCODING a", "$6\r\nembstr\r\n"},
		    {"SET a 9223372036854775808", "+OK\r\n"},
		    {"OBJECT ENCODING a", "$6\r\nembstr\r\n"},
		    {"SET a " TEN TEN TEN TEN "1234", "+OK\r\n"},
		    {"OBJECT ENCODING a", "$6\r\nembstr\r\n"},
		    {"SET a " TEN TEN TEN TEN "12345", "+OK\r\n"},
		    {"OBJECT ENCODING a", "$3\r\nraw\r\n"}, {"SET a 1", "+OK\r\n"},
		    {"APPEND a 2", ":2\r\n"}, {"OBJECT ENCODING a", "$3\r\nraw\r\n"},
		    {"INCR a", ":13\r\n"}, {"OBJECT ENCODING a", "$3\r\nint\r\n"},
		    {"INCRBYFLOAT a 1", "$2\r\n14\r\n"}, {"OBJECT ENCODING a", "$6\r\nembstr\r\n"},
		    {"EXPIRE a 10", ":1\r\n"}, {"OBJECT ENCODING a", "$6\r\nembstr\r\n"},
		    {"SET a b", "+OK\r\n"}, {"SETBIT a 0 0", ":0\r\n"},
		    {"OBJECT ENCODING a", "$3\r\nraw\r\n"}, {"RENAME a {a}", "+OK\r\n"},
		    {"OBJECT ENCODING {a}", "$3\r\nraw\r\n"}, {"APPEND a 5", ":1\r\n"},
		    {"OBJECT ENCODING a", "$3\r\nint\r\n"}, {"SETRANGE b 0 5", ":1\r\n"},
		    {"OBJECT ENCODING b", "$3\r\nraw\r\n"});
}

static void test_refcounts(void **state)
{
	TEST_SCRIPT(*state, {"OBJECT REFCOUNT {t}1", "$-1\r\n"}, {"SET {t}1 9999", "+OK\r\n"},
		    {"OBJECT REFCOUNT {t}1", SHARED}, {"INCR {t}1", ":10000\r\n"},
		    {"OBJECT REFCOUNT {t}1", ":1\r\n"}, {"SET {t}1 5", "+OK\r\n"},
		    {"COPY {t}1 {t}2", ":1\r\n"}, {"OBJECT ENCODING {t}2", "$3\r\nint\r\n"},
		    {"OBJECT REFCOUNT {t}2", ":1\r\n"}, {"INCR {t}2", ":6\r\n"},
		    {"OBJECT REFCOUNT {t}2", SHARED}, {"SET {t}1 -1", "+OK\r\n"},
		    {"OBJECT REFCOUNT {t}1", ":1\r\n"}, {"SET {t}1 x", "+OK\r\n"},
		    {"OBJECT REFCOUNT {t}1", ":1\r\n"});
}

static void test_idle_time_is_since_the_last_write(void **state)
{
	struct test_store *store = *state;

	test_run(store, "SET a 1");
	store->ks.now_ms += 5000;
	TEST_SCRIPT(store, {"GET a", "$1\r\n1\r\n"}, {"OBJECT IDLETIME a", ":5\r\n"},
		    {"APPEND a 1", ":2\r\n"}, {"OBJECT IDLETIME a", ":0\r\n"},
		    {"OBJECT IDLETIME b", "$-1\r\n"}, {"OBJECT FREQ b", "$-1\r\n"});
	store->ks.now_ms -= 50000; /* the clock is set back */
	assert_string_equal(test_run(store, "OBJECT IDLETIME a"), ":0\r\n");
	/* The caller of the command provides the access frequency, which the store does not know. */
	store->ks.frequency = 42;
	assert_string_equal(test_run(store, "OBJECT FREQ a"), ":42\r\n");
}

/* The record of a list, as a later version of heatsink might write it. */
static const struct hs_bytes list_record = HS_LIT("\2\0\0\0\0\0members");

static void test_strings_are_not_lists(void **state)
{
	struct test_store *store = *state;

	test_put_record(store, "{t}1", list_record);
	TEST_SCRIPT(store, {"TYPE {t}1", "+list\r\n"}, {"EXISTS {t}1", ":1\r\n"},
		    {"TTL {t}1", ":-1\r\n"}, {"GET {t}1", WRONG_TYPE},
		    {"MGET {t}1", "*1\r\n$-1\r\n"}, {"INCR {t}1", WRONG_TYPE},
		    {"INCRBYFLOAT {t}1 1", WRONG_TYPE}, {"APPEND {t}1 x", WRONG_TYPE},
		    {"GETRANGE {t}1 0 1", WRONG_TYPE}, {"SETRANGE {t}1 0 x", WRONG_TYPE},
		    {"STRLEN {t}1", WRONG_TYPE}, {"GETBIT {t}1 0", WRONG_TYPE},
		    {"SETBIT {t}1 0 1", WRONG_TYPE}, {"BITCOUNT {t}1", WRONG_TYPE},
		    {"BITPOS {t}1 1", WRONG_TYPE}, {"GETEX {t}1", WRONG_TYPE},
		    {"GETSET {t}1 x", WRONG_TYPE}, {"GETDEL {t}1", WRONG_TYPE},
		    {"SET {t}1 x GET", WRONG_TYPE},
		    {"LCS {t}1 {t}2", "-ERR The specified keys must contain string values\r\n"},
		    {"SETNX {t}1 x", ":0\r\n"}, {"SCAN 0 TYPE string", "*2\r\n$1\r\n0\r\n*0\r\n"},
		    {"SCAN 0 TYPE LIST", "*2\r\n$1\r\n0\r\n*1\r\n$4\r\n{t}1\r\n"});
}

static void test_values_of_unknown_types_are_not_overwritten(void **state)
{
	struct test_store *store = *state;

	test_put_record(store, "{t}1", list_record);
	TEST_SCRIPT(store, {"SET {t}2 x", "+OK\r\n"}, {"SET {t}1 x", WRONG_TYPE},
		    {"MSET {t}1 x", WRONG_TYPE}, {"DEL {t}1", WRONG_TYPE},
		    {"EXPIRE {t}1 -1", WRONG_TYPE}, {"RENAME {t}1 {t}3", WRONG_TYPE},
		    {"RENAME {t}2 {t}1", WRONG_TYPE}, {"COPY {t}2 {t}1 REPLACE", WRONG_TYPE},
		    {"COPY {t}1 {t}3", WRONG_TYPE}, {"TYPE {t}1", "+list\r\n"},
		    {"EXISTS {t}1 {t}2 {t}3", ":2\r\n"});
}

/* Changes the last byte of a key's record, and leaves the checksum unchanged. */
static void flip_record(struct test_store *store, const char *key)
{
	struct hs_kv *kv = store->ks.kv;
	struct hs_physical_key physical;
	struct hs_bytes at, record;
	char *room, copy[64];

	hs_record_physical(&physical, store->ks.hash_seed, hs_slot_of(hs_bytes_of(key)),
			   hs_bytes_of(key));
	at = (struct hs_bytes){physical.data, physical.len};
	assert_int_equal(kv->calls->get(kv, HS_KV_KEYS, at, &record), 0);
	assert_true(record.len <= sizeof copy);
	memcpy(copy, record.data, record.len);
	copy[record.len - 1] ^= 1;
	hs_memkv_begin(store->map);
	assert_int_equal(kv->calls->put(kv, HS_KV_KEYS, at, record.len, &room), 0);
	memcpy(room, copy, record.len);
	hs_memkv_commit(store->map);
}

static void test_damaged_records_are_errors(void **state)
{
	struct test_store *store = *state;

	test_put_record(store, "b", HS_LIT("\x63\0\0\0\0\0"));
	test_put_record(store, "c", HS_LIT("\1\0\0\0\0\0value"));
	flip_record(store, "c");
#define DAMAGED(key, slot)                                                                         \
	"-ERR damaged data: the record of key '" key "' in slot " slot                             \
	" fails its checksum; write or delete the key, or restore it from a backup\r\n"
	TEST_SCRIPT(store, {"SET a x", "+OK\r\n"},
		    {"GET b", "-ERR the key holds a type that this heatsink does not know\r\n"},
		    {"SET b x", "-ERR the key holds a type that this heatsink does not know\r\n"},
		    {"GET c", DAMAGED("c", "7365")}, {"MGET a c a", DAMAGED("c", "7365")},
		    {"EXISTS c", DAMAGED("c", "7365")}, {"APPEND c x", DAMAGED("c", "7365")},
		    {"PERSIST c", DAMAGED("c", "7365")}, {"SETNX c x", DAMAGED("c", "7365")},
		    {"KEYS *", "*2\r\n$1\r\nc\r\n$1\r\na\r\n"}, {"DEL c", ":1\r\n"},
		    {"GET c", "$-1\r\n"}, {"KEYS *", "*1\r\n$1\r\na\r\n"});
	assert_true(store->ks.damaged);
	assert_string_equal(store->ks.damaged_key, "c");
}

static void test_a_full_store_fails_writes_alone(void **state)
{
	struct test_store *store = *state;

	test_run(store, "MSET a 1 b 22222222");
	hs_memkv_limit(store->map, hs_memkv_bytes(store->map));
	assert_int_equal(test_try(store, "SET a 333"), HS_EFULL);
	assert_int_equal(store->out.len, 0);
	assert_int_equal(test_try(store, "SET a 333 GET"), HS_EFULL);
	assert_int_equal(store->out.len, 0);
	assert_int_equal(test_try(store, "MSET a 2 c 3"), HS_EFULL);
	assert_int_equal(test_try(store, "EXPIRE a 10"), HS_EFULL);
	TEST_SCRIPT(store, {"GET a", "$1\r\n1\r\n"}, {"TTL a", ":-1\r\n"}, {"INCR a", ":2\r\n"},
		    {"DEL b", ":1\r\n"}, {"SET a 333", "+OK\r\n"});
}

/* Bytes that are already in the reply buffer stay there, even if a command fails. */
static void test_earlier_replies_stay(void **state)
{
	struct test_store *store = *state;
	struct hs_buf out = {0};
	struct hs_reply reply = {.out = &out, .resp = 2};
	struct hs_bytes set[] = {HS_LIT("SET"), HS_LIT("a"), HS_LIT("1"), HS_LIT("GET")};
	struct hs_bytes keys[] = {HS_LIT("KEYS"), HS_LIT("*")};

	test_run(store, "SET b 1");
	hs_buf_append(&out, "earlier", 7);
	hs_memkv_limit(store->map, 1);
	hs_memkv_begin(store->map);
	assert_int_equal(
		hs_keyspace_run(&store->ks, hs_command_by_id(HS_CMD_ID_SET), 0, 4, set, &reply),
		HS_EFULL);
	hs_memkv_abort(store->map);
	assert_int_equal(out.len, 7);
	assert_int_equal(
		hs_keyspace_run(&store->ks, hs_command_by_id(HS_CMD_ID_KEYS), 0, 2, keys, &reply),
		0);
	assert_true(hs_bytes_equal(hs_buf_bytes(&out), HS_LIT("earlier*1\r\n$1\r\nb\r\n")));
	hs_buf_deinit(&out);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_removing_and_counting),
		TEST(test_rename),
		TEST(test_copy),
		TEST(test_encodings),
		TEST(test_refcounts),
		TEST(test_idle_time_is_since_the_last_write),
		TEST(test_strings_are_not_lists),
		TEST(test_values_of_unknown_types_are_not_overwritten),
		TEST(test_damaged_records_are_errors),
		TEST(test_a_full_store_fails_writes_alone),
		TEST(test_earlier_replies_stay),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
