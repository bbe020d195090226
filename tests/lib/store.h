/* A keyspace on a store in memory, for unit tests of keyspace/: commands as lines, replies as text. One thread; the
 * clock stands at TEST_NOW_S until the test moves it. A wrong reply fails the test with the number of its line. */
#ifndef HS_TESTS_STORE_H
#define HS_TESTS_STORE_H

#include "keyspace/keyspace.h"
#include "keyspace/watch.h"
#include "sim/memkv.h"

#include <stddef.h>

struct test_store {
	struct hs_memkv *map;
	struct hs_keyspace ks;
	struct hs_keyspace_counts counts;
	struct hs_prng prng;
	struct hs_buf out;
	int resp; /* 2 at first */
};

/* One line of a script: a command and its whole reply. */
struct test_line {
	const char *command;
	const char *reply;
};

enum { TEST_NOW_S = 1000000 }; /* the clock at the start; a test may change ks.now_ms */

void test_store_init(struct test_store *store);
void test_store_deinit(struct test_store *store);

/* Runs a command of words separated by single spaces ("" is the empty word) in its own transaction. Returns the
 * reply, zero-terminated and valid until the next call. */
const char *test_run(struct test_store *store, const char *line);
/* As test_run, for words with any bytes. */
const char *test_run_args(struct test_store *store, size_t argc, const struct hs_bytes *argv);
/* As test_run, for a command that may fail: returns the error of hs_keyspace_run, or 0. An error aborts the
 * transaction. */
int test_try(struct test_store *store, const char *line);

/* Runs the lines in order; fails at the first reply that differs, with its line. */
void test_script(struct test_store *store, size_t count, const struct test_line *lines);
#define TEST_SCRIPT(store, ...)                                                                    \
	do {                                                                                       \
		static const struct test_line lines_[] = {__VA_ARGS__};                            \
		test_script(store, sizeof lines_ / sizeof *lines_, lines_);                        \
	} while (0)

/* Writes the bytes of a record without checks. */
void test_put_record(struct test_store *store, const char *key, struct hs_bytes record);

/* Asserts that HS_KV_EXPIRES has exactly one entry for every key with an expiry, and no other. */
void test_check_expiries(struct test_store *store);

#endif
