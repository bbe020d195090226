/* Goal: however the process ends, the next start has every acknowledged write and no refused one. A start refuses
 * a folder that it cannot use with one line, and does not change it.
 *
 * Method: groups run by hand on real files. To kill a process, the test leaves its files as they are. To cut the
 * power, the test combines two copies of the store files, one from the last checkpoint and one from the end:
 * every page that differs is taken from either, or is garbage, by a seeded choice. */

#include "base/err.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/prng.h"
#include "tests/lib/embedded.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { KEYS = 1500, PAGE_BYTES = 4096, STORES = 2, ROUNDS = 16, HARMED_LEAST = 1000 };

/* The acknowledged version of each key; 0: absent. */
struct model {
	struct hs_prng prng;
	unsigned version[KEYS];
	unsigned last;
};

static int setup(void **state)
{
	struct hs_test_embedded *test = hs_mem_alloc(sizeof *test);

	hs_test_embedded_init(test);
	*state = test;
	return 0;
}

static int teardown(void **state)
{
	struct hs_test_embedded *test = *state;

	if (test->open)
		hs_test_embedded_kill(test);
	hs_test_embedded_deinit(test);
	hs_mem_free(&test);
	return 0;
}

/* Makes a value of some length; one value in ten is so long that it has a page of its own. */
static size_t value_of(unsigned key, unsigned version, char *value)
{
	struct hs_prng prng;
	size_t len;

	hs_prng_init(&prng, (uint64_t)key << 32 | version);
	len = hs_prng_below(&prng, 10) == 0 ? 5000 : 20 + hs_prng_below(&prng, 200);
	for (size_t i = 0; i < len; i++)
		value[i] = (char)('a' + hs_prng_below(&prng, 26));
	value[len] = '\0';
	return len;
}

/* Runs one group of up to 50 random writes, and notes them in the model when they are acknowledged. */
static void write_group(struct hs_test_embedded *test, struct model *model)
{
	unsigned keys[50], versions[50];
	size_t count = 1 + hs_prng_below(&model->prng, 50);
	char words[64], value[8192];

	for (size_t i = 0; i < count; i++) {
		keys[i] = (unsigned)hs_prng_below(&model->prng, KEYS);
		versions[i] = 0;
		if (hs_prng_below(&model->prng, 4) == 0) {
			snprintf(words, sizeof words, "del key%u", keys[i]);
			hs_test_embedded_add(test, words, (struct hs_bytes){NULL, 0});
			continue;
		}
		versions[i] = ++model->last;
		snprintf(words, sizeof words, "set key%u", keys[i]);
		hs_test_embedded_add(
			test, words,
			(struct hs_bytes){value, value_of(keys[i], versions[i], value)});
	}
	hs_test_embedded_run(test);
	for (size_t i = 0; i < count; i++) {
		assert_int_not_equal(hs_test_embedded_reply(test, i)[0], '-');
		model->version[keys[i]] = versions[i];
	}
}

static void check_model(struct hs_test_embedded *test, const struct model *model)
{
	char words[64], value[8192], expect[8300];
	uint64_t keys = 0;

	for (unsigned key = 0; key < KEYS; key++) {
		size_t len;

		snprintf(words, sizeof words, "get key%u", key);
		if (!model->version[key]) {
			assert_string_equal(hs_test_embedded_read(test, words), "$-1\r\n");
			continue;
		}
		keys++;
		len = value_of(key, model->version[key], value);
		snprintf(expect, sizeof expect, "$%zu\r\n%s\r\n", len, value);
		assert_string_equal(hs_test_embedded_read(test, words), expect);
	}
	for (uint16_t id = 0; id < test->database.partitions; id++)
		keys -= hs_counter_get(&test->database.stores[id].keys);
	assert_int_equal(keys, 0);
}

static void a_clean_end_needs_no_log(void **state)
{
	struct hs_test_embedded *test = *state;
	struct model model = {.last = 0};

	hs_prng_init(&model.prng, 1);
	assert_int_equal(hs_test_embedded_open(test), 0);
	for (int i = 0; i < 20; i++)
		write_group(test, &model);
	hs_test_embedded_close(test);
	/* After a clean shutdown no record of the log is needed, so garbage in the log changes nothing. */
	for (int turn = 0; turn < 2; turn++) {
		size_t bytes;
		char *log = hs_test_file_read(test->folder, hs_redo_file_name(turn), &bytes);

		memset(log, 0xa5, bytes);
		hs_test_file_write(test->folder, hs_redo_file_name(turn), log, bytes);
		hs_mem_free(&log);
	}
	assert_int_equal(hs_test_embedded_open(test), 0);
	check_model(test, &model);
}

static void a_killed_process_loses_nothing(void **state)
{
	struct hs_test_embedded *test = *state;
	struct model model = {.last = 0};
	uint64_t checkpoints = 0;

	hs_prng_init(&model.prng, 2);
	test->options.log_bytes = 128 * HS_KIB;
	for (int round = 0; round < 10; round++) {
		assert_int_equal(hs_test_embedded_open(test), 0);
		check_model(test, &model);
		for (size_t i = hs_prng_below(&model.prng, 60); i > 0; i--) {
			write_group(test, &model);
			hs_group_maintain(&test->group);
		}
		checkpoints += hs_counter_get(&test->database.checkpoint.counters.checkpoints) - 1;
		hs_test_embedded_kill(test);
	}
	assert_true(checkpoints > 5);
}

/* Copies of the store files, for the test to simulate a power cut with. */
struct image {
	char *data[STORES];
	size_t bytes[STORES];
};

static void copy_stores(struct hs_test_embedded *test, struct image *image)
{
	for (unsigned id = 0; id < STORES; id++) {
		char name[16];

		hs_store_name(name, sizeof name, (uint16_t)id);
		hs_mem_free(&image->data[id]);
		image->data[id] = hs_test_file_read(test->folder, name, &image->bytes[id]);
	}
}

/* Restores the stores as a power cut might have left them. A page that is equal in both copies had no write in
 * flight. Returns the number of pages that differ from the newer copy. */
static size_t cut_power(struct hs_test_embedded *test, const struct image *old,
			const struct image *new, struct hs_prng *prng)
{
	size_t harmed = 0;

	for (unsigned id = 0; id < STORES; id++) {
		size_t bytes = new->bytes[id];
		char name[16], *file = hs_mem_dup(new->data[id], bytes);

		for (size_t at = 0; at < bytes; at += PAGE_BYTES) {
			bool had = at + PAGE_BYTES <= old->bytes[id];

			if (had && memcmp(file + at, old->data[id] + at, PAGE_BYTES) == 0)
				continue;
			switch (hs_prng_below(prng, 4)) {
			case 0:
				continue; /* the page's write reached the disk */
			case 1:
				if (had)
					memcpy(file + at, old->data[id] + at, PAGE_BYTES);
				else
					memset(file + at, 0, PAGE_BYTES);
				break;
			case 2: /* half of the page reached the disk */
				memset(file + at, 0xa5, PAGE_BYTES / 2);
				break;
			default:
				for (size_t i = 0; i < PAGE_BYTES; i++)
					file[at + i] = (char)hs_prng_next(prng);
			}
			harmed++;
		}
		/* A power cut may also lose the growth of the file. */
		if (hs_prng_below(prng, 2) && old->bytes[id] < bytes)
			bytes = old->bytes[id];
		hs_store_name(name, sizeof name, (uint16_t)id);
		hs_test_file_write(test->folder, name, file, bytes);
		hs_mem_free(&file);
	}
	return harmed;
}

/* Commits most groups to the stores, so that pages are reused again and again. The other commits stay postponed,
 * and only the log has these changes. */
static void write_on(struct hs_test_embedded *test, struct model *model)
{
	bool commits = hs_prng_below(&model->prng, 4) > 0;

	for (unsigned id = 0; id < STORES; id++)
		atomic_store(&test->database.stores[id].redirected_reads, commits ? 100 : 0);
	/* After a second, the store forgets redirected reads, and may postpone commits again. */
	test->now.mono_us += 1000000;
	write_group(test, model);
}

/* Writes up to a checkpoint and beyond, cuts the power and starts again, until enough pages were damaged. In
 * every other round the power fails during a checkpoint: the log has switched files, and the older checkpoint
 * still counts. On a busy machine the checkpoint may be complete before the cut; then the test damages no
 * page. */
static void a_power_cut_loses_nothing(void **state)
{
	struct hs_test_embedded *test = *state;
	struct model model = {.last = 0};
	struct image old = {.bytes = {0}}, new = {.bytes = {0}};
	size_t harmed = 0;

	hs_prng_init(&model.prng, 3);
	test->options.log_bytes = 512 * HS_KIB;
	for (int round = 0; round < ROUNDS || harmed <= HARMED_LEAST; round++) {
		int turn;

		assert_true(round < 16 * ROUNDS);
		assert_int_equal(hs_test_embedded_open(test), 0);
		for (size_t i = hs_prng_below(&model.prng, 100); i > 0; i--) {
			write_on(test, &model);
		}
		hs_group_checkpoint(&test->group);
		copy_stores(test, &old);
		turn = test->database.redo.turn;
		bool cut = true;

		if (round % 2) {
			uint64_t done =
				hs_counter_get(&test->database.checkpoint.counters.checkpoints);
			char *checkpoints[2];
			size_t bytes[2];

			for (int i = 0; i < 2; i++)
				checkpoints[i] = hs_test_file_read(
					test->folder, i ? "checkpoint-1" : "checkpoint-0",
					&bytes[i]);
			while (test->database.redo.turn == turn)
				write_on(test, &model);
			for (int i = 0; i < 8; i++)
				write_on(test, &model);
			assert_int_not_equal(test->database.redo.turn, turn);
			copy_stores(test, &new);
			/* If the new checkpoint is already on disk, the stores may have reused pages of the old
			 * one: no power cut in this round. */
			cut = hs_counter_get(&test->database.checkpoint.counters.checkpoints) ==
			      done;
			hs_test_embedded_kill(test);
			for (int i = 0; i < 2; i++) {
				if (cut)
					hs_test_file_write(test->folder,
							   i ? "checkpoint-1" : "checkpoint-0",
							   checkpoints[i], bytes[i]);
				hs_mem_free(&checkpoints[i]);
			}
		} else {
			for (size_t i = hs_prng_below(&model.prng, 20); i > 0; i--)
				write_on(test, &model);
			assert_int_equal(test->database.redo.turn, turn);
			copy_stores(test, &new);
			hs_test_embedded_kill(test);
		}
		if (cut)
			harmed += cut_power(test, &old, &new, &model.prng);
		if (hs_test_embedded_open(test) != 0)
			fail_msg("%s", test->error);
		check_model(test, &model);
		/* The test kills the process once more: only the checkpoint of the first recovery is durable. */
		hs_test_embedded_kill(test);
		assert_int_equal(hs_test_embedded_open(test), 0);
		check_model(test, &model);
		hs_test_embedded_kill(test);
	}
	for (unsigned id = 0; id < STORES; id++) {
		hs_mem_free(&old.data[id]);
		hs_mem_free(&new.data[id]);
	}
}

/* A power cut may tear the checkpoint file that is being written. Then the start uses the checkpoint before it,
 * whose log is still there. */
static void a_torn_checkpoint_file_does_not_count(void **state)
{
	struct hs_test_embedded *test = *state;
	struct model model = {.last = 0};
	char *file;
	size_t bytes;
	int torn;

	hs_prng_init(&model.prng, 4);
	assert_int_equal(hs_test_embedded_open(test), 0);
	torn = test->database.checkpoint.next;
	for (int i = 0; i < 10; i++)
		write_group(test, &model);
	hs_test_embedded_close(test); /* writes the checkpoint that the test tears */
	file = hs_test_file_read(test->folder, torn ? "checkpoint-1" : "checkpoint-0", &bytes);
	memset(file + bytes / 2, 0, bytes / 2);
	hs_test_file_write(test->folder, torn ? "checkpoint-1" : "checkpoint-0", file, bytes);
	hs_mem_free(&file);
	assert_int_equal(hs_test_embedded_open(test), 0);
	check_model(test, &model);
}

/* A store's commit failed after the log had the records. The abort record keeps a start from replaying them. */
static void an_aborted_store_is_not_replayed(void **state)
{
	struct hs_test_embedded *test = *state;
	uint16_t aborted = 0;
	uint64_t lsn;
	struct iovec parts[2] = {{&lsn, sizeof lsn}, {&aborted, sizeof aborted}};
	size_t a, b;

	assert_int_equal(hs_test_embedded_open(test), 0);
	a = hs_test_embedded_add(test, "set {b}1 x", (struct hs_bytes){NULL, 0});
	b = hs_test_embedded_add(test, "set {a}1 x", (struct hs_bytes){NULL, 0});
	assert_int_equal(test->ops[a].op.partition, 0);
	assert_int_equal(test->ops[b].op.partition, 1);
	hs_test_embedded_run(test);
	lsn = test->database.redo.lsn - 1;
	assert_int_equal(hs_redo_append(&test->database.redo, HS_REDO_ABORT, parts, 2), 0);
	hs_test_embedded_do(test, "set {b}2 y");
	hs_test_embedded_kill(test);

	assert_int_equal(hs_test_embedded_open(test), 0);
	assert_string_equal(hs_test_embedded_read(test, "get {b}1"), "$-1\r\n");
	assert_string_equal(hs_test_embedded_read(test, "get {a}1"), "$1\r\nx\r\n");
	assert_string_equal(hs_test_embedded_read(test, "get {b}2"), "$1\r\ny\r\n");
}

static void flushing_is_replayed_too(void **state)
{
	struct hs_test_embedded *test = *state;

	assert_int_equal(hs_test_embedded_open(test), 0);
	hs_test_embedded_do(test, "set {b}1 x ex 100");
	hs_test_embedded_do(test, "flushall");
	hs_test_embedded_do(test, "set {b}2 y px 5000");
	hs_test_embedded_kill(test);
	assert_int_equal(hs_test_embedded_open(test), 0);
	assert_string_equal(hs_test_embedded_read(test, "get {b}1"), "$-1\r\n");
	assert_string_equal(hs_test_embedded_read(test, "pttl {b}2"), ":5000\r\n");
	assert_int_equal(hs_counter_get(&test->database.stores[0].keys), 1);
	assert_int_equal(hs_counter_get(&test->database.stores[0].expires), 1);
}

/* A second process cannot open the folder, whichever files a user removes: no lock file exists that could be
 * created again. */
static void a_folder_in_use_is_refused(void **state)
{
	struct hs_test_embedded *test = *state;
	char error[256] = "", path[HS_PATH_BYTES_MAX];
	struct hs_fault fault = {error, sizeof error};
	struct hs_database second;

	assert_int_equal(hs_test_embedded_open(test), 0);
	assert_true(hs_file_path(path, test->folder, "lock"));
	unlink(path);
	assert_int_equal(hs_database_open(&second, &test->options, 1, NULL, &fault), HS_EBUSY);
	assert_non_null(strstr(error, test->folder));
	assert_non_null(strstr(error, "in use"));
	assert_string_equal(hs_test_embedded_do(test, "set a b"), "+OK\r\n");
}

static void a_newer_format_is_refused(void **state)
{
	struct hs_test_embedded *test = *state;
	const char *format = "heatsink data, format 4\nmeaning unknown\n";
	char *store, *after;
	size_t bytes, bytes_after;

	assert_int_equal(hs_test_embedded_open(test), 0);
	hs_test_embedded_close(test);
	hs_test_file_write(test->folder, "format", format, strlen(format));
	hs_test_file_write(test->folder, "format.copy", format, strlen(format));
	store = hs_test_file_read(test->folder, "store-000", &bytes);
	assert_int_equal(hs_test_embedded_open(test), HS_EVERSION);
	assert_non_null(strstr(test->error, test->folder));
	assert_null(strchr(test->error, '\n'));
	after = hs_test_file_read(test->folder, "store-000", &bytes_after);
	assert_int_equal(bytes, bytes_after);
	assert_memory_equal(store, after, bytes);
	hs_mem_free(&store);
	hs_mem_free(&after);
}

static void a_folder_that_cannot_be_made_is_named(void **state)
{
	struct hs_test_embedded *test = *state;

	test->options.data = "/proc/no-such-folder";
	assert_int_equal(hs_test_embedded_open(test), HS_EIO);
	assert_non_null(strstr(test->error, "/proc/no-such-folder"));
}

static void damage_is_reported_not_overwritten(void **state)
{
	struct hs_test_embedded *test = *state;
	char from[HS_PATH_BYTES_MAX], to[HS_PATH_BYTES_MAX];

	assert_int_equal(hs_test_embedded_open(test), 0);
	hs_test_embedded_do(test, "set {b}1 x");
	hs_test_embedded_close(test);
	const char *const needed[] = {"store-001", "log-0", "format"};

	for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++) {
		assert_true(hs_file_path(from, test->folder, needed[i]));
		assert_true(hs_file_path(to, test->folder, "aside"));
		assert_int_equal(rename(from, to), 0);
		assert_true(hs_test_embedded_open(test) < 0);
		assert_non_null(strstr(test->error, test->folder));
		assert_int_equal(rename(to, from), 0);
	}
	assert_true(hs_file_path(to, test->folder, "store-001"));
	assert_int_equal(truncate(to, 4096), 0);
	assert_int_equal(hs_test_embedded_open(test), HS_ECORRUPT);
	assert_non_null(strstr(test->error, "store-001"));
}

/* A creation that was cut short leaves stores and a format file that still has its temporary name. The next start
 * creates the database again. */
static void an_unfinished_creation_starts_over(void **state)
{
	struct hs_test_embedded *test = *state;
	char from[HS_PATH_BYTES_MAX], to[HS_PATH_BYTES_MAX];

	assert_int_equal(hs_test_embedded_open(test), 0);
	hs_test_embedded_close(test);
	assert_true(hs_file_path(from, test->folder, "format"));
	assert_true(hs_file_path(to, test->folder, "format.new"));
	assert_int_equal(rename(from, to), 0);
	hs_test_file_write(test->folder, "store-001", "short", 5);
	assert_int_equal(hs_test_embedded_open(test), 0);
	assert_string_equal(hs_test_embedded_do(test, "set a b"), "+OK\r\n");
	hs_test_embedded_kill(test);
	assert_int_equal(hs_test_embedded_open(test), 0);
	assert_string_equal(hs_test_embedded_read(test, "get a"), "$1\r\nb\r\n");
}

static void changed_partitions_and_log_size(void **state)
{
	struct hs_test_embedded *test = *state;
	struct model model = {.last = 0};
	size_t bytes;
	char *file;

	hs_prng_init(&model.prng, 5);
	assert_int_equal(hs_test_embedded_open(test), 0);
	for (int i = 0; i < 5; i++)
		write_group(test, &model);
	hs_test_embedded_kill(test);
	test->options.partitions = 7;
	for (int i = 0; i < 2; i++) {
		test->options.log_bytes = i ? 64 * HS_KIB : 2 * HS_MIB;
		assert_int_equal(hs_test_embedded_open(test), 0);
		assert_int_equal(test->database.partitions, STORES);
		check_model(test, &model);
		write_group(test, &model);
		file = hs_test_file_read(test->folder, "log-1", &bytes);
		hs_mem_free(&file);
		assert_int_equal(bytes, test->options.log_bytes);
		hs_test_embedded_kill(test);
	}
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_clean_end_needs_no_log),
		TEST(a_killed_process_loses_nothing),
		TEST(a_power_cut_loses_nothing),
		TEST(a_torn_checkpoint_file_does_not_count),
		TEST(an_aborted_store_is_not_replayed),
		TEST(flushing_is_replayed_too),
		TEST(a_folder_in_use_is_refused),
		TEST(a_newer_format_is_refused),
		TEST(a_folder_that_cannot_be_made_is_named),
		TEST(damage_is_reported_not_overwritten),
		TEST(an_unfinished_creation_starts_over),
		TEST(changed_partitions_and_log_size),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
