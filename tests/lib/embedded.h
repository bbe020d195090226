/* A fixture for unit tests of the embedded engine without its committer thread: a data folder of its own under /tmp,
 * groups that run when the test calls for them, and reads from snapshots. The data folder can end in three ways:
 * closed (with a checkpoint), killed (files stay as they are), and after a power cut, which a test simulates by
 * mixing old and new pages of the files. One thread; the fixture owns the folder and removes it in deinit.
 * Limits: HS_TEST_OPS_MAX operations in a group, HS_TEST_ARGS_MAX words. */
#ifndef HS_TESTS_LIB_EMBEDDED_H
#define HS_TESTS_LIB_EMBEDDED_H

#include "engine/embedded/database.h"
#include "engine/embedded/group.h"
#include "engine/embedded/reader.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HS_TEST_ARGS_MAX = 8, HS_TEST_OPS_MAX = 512 };

struct hs_test_op {
	struct hs_op op;
	struct hs_buf out;
	char *text; /* the arguments, owned */
	struct hs_bytes argv[HS_TEST_ARGS_MAX];
};

struct hs_test_embedded {
	char folder[64];
	struct hs_embedded_options options;
	struct hs_engine_host host;
	struct hs_now now; /* the host's clock, set by the test */
	char error[512];
	bool open;
	struct hs_database database;
	struct hs_group group;
	struct hs_reader reader;
	struct hs_test_op ops[HS_TEST_OPS_MAX]; /* operations of the group that the test builds */
	size_t count;
};

/* Makes an empty folder and sets small defaults; opens nothing. */
void hs_test_embedded_init(struct hs_test_embedded *test);
/* Removes the folder. */
void hs_test_embedded_deinit(struct hs_test_embedded *test);

int hs_test_embedded_open(struct hs_test_embedded *test);
void hs_test_embedded_close(struct hs_test_embedded *test); /* with a checkpoint */
void hs_test_embedded_kill(struct hs_test_embedded *test);  /* files stay as they are */

/* Adds an operation to the next group: words separated by spaces, and `tail` (or NULL) as the last word, with any
 * bytes. Returns its number in the group. */
size_t hs_test_embedded_add(struct hs_test_embedded *test, const char *words, struct hs_bytes tail);
/* Runs the group. Replies are valid until the next add. */
void hs_test_embedded_run(struct hs_test_embedded *test);
const char *hs_test_embedded_reply(struct hs_test_embedded *test, size_t number);

/* Runs a group of one operation; returns its reply. */
const char *hs_test_embedded_do(struct hs_test_embedded *test, const char *words);
const char *hs_test_embedded_set(struct hs_test_embedded *test, const char *key, size_t bytes,
				 char fill);
/* Reads from a snapshot, or through a group if the snapshot refuses; returns the reply. */
const char *hs_test_embedded_read(struct hs_test_embedded *test, const char *words);

/* Reads a whole file of the folder; the caller frees it with hs_mem_free. */
char *hs_test_file_read(const char *folder, const char *name, size_t *bytes);
void hs_test_file_write(const char *folder, const char *name, const char *data, size_t bytes);

#endif
