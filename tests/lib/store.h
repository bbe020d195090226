/* A keyspace on a store in memory, for unit tests: commands as lines, replies as text. */
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

enum { TEST_NOW_S = 1000000 }; /* the clock at first; ks.now_ms is the tests' to move */

void test_store_init(struct test_store *store);
void test_store_deinit(struct test_store *store);

/* Runs a line of words parted by single spaces ("" is the empty word) in a transaction of its own.
 * Returns the reply, zero-terminated and valid until the next call. */
const char *test_run(struct test_store *store, const char *line);
/* The same with any bytes. */
const char *test_run_args(struct test_store *store, size_t argc, const struct hs_bytes *argv);
/* The same for a command that may fail: the error of hs_keyspace_run. The transaction is given up
 * when there is one. */
int test_try(struct test_store *store, const char *line);

/* Runs the lines in order and fails on the first reply that differs, naming its line. */
void test_script(struct test_store *store, size_t count, const struct test_line *lines);
#define TEST_SCRIPT(store, ...)                                                                    \
	do {                                                                                       \
		static const struct test_line lines_[] = {__VA_ARGS__};                            \
		test_script(store, sizeof lines_ / sizeof *lines_, lines_);                        \
	} while (0)

/* Writes a record's bytes as they are. */
void test_put_record(struct test_store *store, const char *key, struct hs_bytes record);

/* Every key with an expiry has its one entry in HS_KV_EXPIRES, and there is no other. */
void test_check_expiries(struct test_store *store);

#endif
