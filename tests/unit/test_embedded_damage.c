/* Goal: a flipped byte in any file of a data folder never loses or changes data silently: the start has
 * everything, or refuses and names the file, or a read of the damaged key is an error. Files torn by a power cut
 * still start.
 *
 * Method: a folder is filled and its process killed. The files are held in memory and restored for each trial,
 * with one byte flipped at a seeded place. HEATSINK_DAMAGE_TRIALS sets the number of trials for a long run. */

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
#include <unistd.h>

#include <cmocka.h>

enum { KEYS = 60, TRIALS = 10, FILES = 8 };

static const char *const file_names[FILES] = {
	"format",	"format.copy",	"log-0",     "log-1",
	"checkpoint-0", "checkpoint-1", "store-000", "store-001",
};

/* The contents of every file of a data folder, in memory. */
struct image {
	char *data[FILES];
	size_t bytes[FILES];
};

static int setup(void **state)
{
	struct hs_test_embedded *test = hs_mem_alloc(sizeof *test);

	hs_test_embedded_init(test);
	test->options.log_bytes = 64 * HS_KIB;
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

static void save_files(struct hs_test_embedded *test, struct image *image)
{
	for (int i = 0; i < FILES; i++)
		image->data[i] = hs_test_file_read(test->folder, file_names[i], &image->bytes[i]);
}

static void restore_files(struct hs_test_embedded *test, const struct image *image)
{
	for (int i = 0; i < FILES; i++)
		hs_test_file_write(test->folder, file_names[i], image->data[i], image->bytes[i]);
}

static void forget(struct image *image)
{
	for (int i = 0; i < FILES; i++)
		hs_mem_free(&image->data[i]);
}

static int index_of(const char *name)
{
	for (int i = 0; i < FILES; i++)
		if (strcmp(file_names[i], name) == 0)
			return i;
	fail_msg("no file '%s'", name);
	return -1;
}

static size_t trials(void)
{
	const char *text = getenv("HEATSINK_DAMAGE_TRIALS");

	return text ? (size_t)strtoul(text, NULL, 10) : TRIALS;
}

static void write_key(struct hs_test_embedded *test, unsigned key, unsigned version)
{
	char words[64];

	snprintf(words, sizeof words, "set key%u version-%u-of-%u", key, version, key);
	assert_string_equal(hs_test_embedded_do(test, words), "+OK\r\n");
}

/* Writes two versions of every key: the checkpoint has the first, the log the second. Then the process is
 * killed. */
static void fill(struct hs_test_embedded *test, struct image *image)
{
	assert_int_equal(hs_test_embedded_open(test), 0);
	for (unsigned key = 0; key < KEYS; key++)
		write_key(test, key, 1);
	hs_group_checkpoint(&test->group);
	for (unsigned key = 0; key < KEYS; key++)
		write_key(test, key, 2);
	hs_test_embedded_kill(test);
	save_files(test, image);
}

/* Returns the number of keys that do not have their acknowledged value. */
static unsigned lost(struct hs_test_embedded *test, unsigned version)
{
	char words[64], expect[96], value[64];
	unsigned count = 0;

	for (unsigned key = 0; key < KEYS; key++) {
		int len = snprintf(value, sizeof value, "version-%u-of-%u", version, key);

		snprintf(words, sizeof words, "get key%u", key);
		snprintf(expect, sizeof expect, "$%d\r\n%s\r\n", len, value);
		count += strcmp(hs_test_embedded_read(test, words), expect) != 0;
	}
	return count;
}

static void flip(struct hs_test_embedded *test, const struct image *image, int file, size_t at,
		 unsigned char bits)
{
	char *data = hs_mem_dup(image->data[file], image->bytes[file]);

	data[at] = (char)(data[at] ^ bits);
	hs_test_file_write(test->folder, file_names[file], data, image->bytes[file]);
	hs_mem_free(&data);
}

/* Flips single bytes of one file, among its first `limit` bytes. Each start must have every value or refuse, and
 * a refusal names the file or its purpose. Returns the number of refusals. */
static size_t hunt(struct hs_test_embedded *test, const char *name, size_t limit, const char *named)
{
	struct image image;
	struct hs_prng prng;
	size_t refused = 0, count = trials();
	int file = index_of(name);

	fill(test, &image);
	hs_prng_init(&prng, (uint64_t)file + 1);
	for (size_t i = 0; i < count; i++) {
		size_t bytes = limit && limit < image.bytes[file] ? limit : image.bytes[file];
		size_t at = hs_prng_below(&prng, bytes);
		unsigned char bits = (unsigned char)(1 + hs_prng_below(&prng, 255));

		restore_files(test, &image);
		flip(test, &image, file, at, bits);
		if (hs_test_embedded_open(test) == 0) {
			if (lost(test, 2))
				fail_msg("%s byte %zu ^ %u: started, %u of %d keys lost", name, at,
					 bits, lost(test, 2), KEYS);
			hs_test_embedded_kill(test);
			continue;
		}
		refused++;
		if (!strstr(test->error, "damaged data") || !strstr(test->error, test->folder) ||
		    !strstr(test->error, named))
			fail_msg("%s byte %zu ^ %u: '%s'", name, at, bits, test->error);
	}
	print_message("%s: %zu trials, %d keys acknowledged, 0 lost, %zu refused\n", name, count,
		      KEYS, refused);
	restore_files(test, &image);
	assert_int_equal(hs_test_embedded_open(test), 0);
	assert_int_equal(lost(test, 2), 0);
	hs_test_embedded_kill(test);
	forget(&image);
	return refused;
}

/* Returns how many bytes of the log hold records that a start must replay. */
static size_t log_used(struct hs_test_embedded *test, int *turn)
{
	*turn = test->database.redo.turn;
	return test->database.redo.at;
}

static void a_flipped_byte_of_the_log(void **state)
{
	struct hs_test_embedded *test = *state;
	size_t used;
	int turn;

	/* The steps of fill() are repeated here to learn where the log's records lie. */
	assert_int_equal(hs_test_embedded_open(test), 0);
	for (unsigned key = 0; key < KEYS; key++)
		write_key(test, key, 1);
	hs_group_checkpoint(&test->group);
	for (unsigned key = 0; key < KEYS; key++)
		write_key(test, key, 2);
	used = log_used(test, &turn);
	hs_test_embedded_kill(test);
	assert_int_equal(hunt(test, turn ? "log-1" : "log-0", used, "log-"), trials());
}

/* After the last record comes only the mark that the record was synced. With this mark, a start knows that a
 * broken record is damaged and not torn. */
static void a_flipped_byte_of_the_last_record(void **state)
{
	struct hs_test_embedded *test = *state;
	struct image image;
	size_t begin, end;
	int file;

	assert_int_equal(hs_test_embedded_open(test), 0);
	for (unsigned key = 0; key < KEYS - 1; key++)
		write_key(test, key, 1);
	begin = test->database.redo.at;
	write_key(test, KEYS - 1, 1);
	end = test->database.redo.at;
	file = index_of(hs_redo_file_name(test->database.redo.turn));
	hs_test_embedded_kill(test);
	save_files(test, &image);
	for (size_t at = begin; at < end - 8; at += 13) {
		restore_files(test, &image);
		flip(test, &image, file, at, 0x10);
		assert_int_equal(hs_test_embedded_open(test), HS_ECORRUPT);
		assert_non_null(strstr(test->error, file_names[file]));
	}
	forget(&image);
}

static void a_flipped_byte_of_a_checkpoint_file(void **state)
{
	/* Each file holds two copies, so one flipped byte loses nothing and no start is refused. */
	assert_int_equal(hunt(*state, "checkpoint-0", 0, "checkpoint-"), 0);
	assert_int_equal(hunt(*state, "checkpoint-1", 0, "checkpoint-"), 0);
}

static void a_flipped_byte_of_the_format(void **state)
{
	assert_int_equal(hunt(*state, "format", 0, "/format"), trials());
	assert_int_equal(hunt(*state, "format.copy", 0, "/format"), 0);
}

static void remove_file(struct hs_test_embedded *test, const char *name)
{
	assert_int_equal(hs_file_remove(test->folder, name), 0);
}

/* If any file of a database remains, the folder has data: the start's error names the file, and no new database
 * is created over it. */
static void files_without_a_format_are_refused(void **state)
{
	struct hs_test_embedded *test = *state;
	struct image image;

	fill(test, &image);
	remove_file(test, "format");
	remove_file(test, "store-000");
	assert_int_equal(hs_test_embedded_open(test), HS_ECORRUPT);
	assert_non_null(strstr(test->error, "heatsink repair"));
	for (int kept = 1; kept < FILES; kept++) {
		size_t bytes;
		char *data;

		for (int i = 0; i < FILES; i++)
			remove_file(test, file_names[i]);
		hs_test_file_write(test->folder, file_names[kept], image.data[kept],
				   image.bytes[kept]);
		assert_int_equal(hs_test_embedded_open(test), HS_ECORRUPT);
		assert_non_null(strstr(test->error, "damaged data"));
		assert_non_null(strstr(test->error, file_names[kept]));
		assert_non_null(strstr(test->error, "heatsink repair"));
		data = hs_test_file_read(test->folder, file_names[kept], &bytes);
		assert_int_equal(bytes, image.bytes[kept]);
		assert_memory_equal(data, image.data[kept], bytes);
		hs_mem_free(&data);
	}
	/* The start ignores a file of another program. */
	remove_file(test, file_names[FILES - 1]);
	hs_test_file_write(test->folder, "store-list", "bread", 5);
	assert_int_equal(hs_test_embedded_open(test), 0);
	forget(&image);
}

/* Flips one byte of a stored record. The store's file holds the record as it is in memory. A read of the record
 * must be an error that names the key, and so must every command that would copy the old bytes. */
static void a_flipped_byte_of_a_record(void **state)
{
	struct hs_test_embedded *test = *state;
	struct image image;
	char value[64], words[64];
	uint64_t found = 0;

	assert_int_equal(hs_test_embedded_open(test), 0);
	for (unsigned key = 0; key < KEYS; key++)
		write_key(test, key, 1);
	hs_test_embedded_close(test);
	save_files(test, &image);
	for (unsigned key = 0; key < KEYS; key += 7) {
		int len = snprintf(value, sizeof value, "version-1-of-%u", key);
		unsigned flipped = 0;

		restore_files(test, &image);
		/* Free pages of earlier transactions may hold a copy of the record, too. */
		for (int file = index_of("store-000"); file <= index_of("store-001"); file++) {
			char *data = hs_mem_dup(image.data[file], image.bytes[file]);
			char *end = data + image.bytes[file], *at = data;

			while ((at = memmem(at, (size_t)(end - at), value, (size_t)len)) != NULL) {
				at[key % (unsigned)len] ^= 4;
				flipped++;
				at++;
			}
			hs_test_file_write(test->folder, file_names[file], data, image.bytes[file]);
			hs_mem_free(&data);
		}
		assert_true(flipped > 0);
		assert_int_equal(hs_test_embedded_open(test), 0);
		for (unsigned other = 0; other < KEYS; other++) {
			const char *reply;

			snprintf(words, sizeof words, "get key%u", other);
			reply = hs_test_embedded_read(test, words);
			snprintf(words, sizeof words,
				 "-ERR damaged data: the record of key 'key%u'", other);
			if (reply[0] == '-') {
				assert_memory_equal(reply, words, strlen(words));
				found++;
			} else {
				snprintf(words, sizeof words, "version-1-of-%u\r\n", other);
				assert_non_null(strstr(reply, words));
			}
		}
		snprintf(words, sizeof words, "append key%u x", key);
		assert_memory_equal(hs_test_embedded_do(test, words), "-ERR damaged", 12);
		snprintf(words, sizeof words, "set key%u again", key);
		assert_string_equal(hs_test_embedded_do(test, words), "+OK\r\n");
		snprintf(words, sizeof words, "get key%u", key);
		assert_string_equal(hs_test_embedded_read(test, words), "$5\r\nagain\r\n");
		assert_true(hs_counter_get(&test->reader.counters.damaged) > 0);
		assert_true(hs_counter_get(&test->group.counters.damaged) > 0);
		hs_test_embedded_kill(test);
	}
	assert_true(found >= (KEYS + 6) / 7);
	print_message("store: %d trials, %d keys acknowledged, 0 served wrong, %llu errors\n",
		      (KEYS + 6) / 7, KEYS, (unsigned long long)found);
	forget(&image);
}

/* A start does not fall back to the older checkpoint if either of the two checkpoint files is damaged or
 * missing. */
static void a_checkpoint_file_without_a_whole_copy_is_refused(void **state)
{
	struct hs_test_embedded *test = *state;
	struct image image;

	fill(test, &image);
	for (int i = 0; i < 2; i++) {
		const char *name = i ? "checkpoint-1" : "checkpoint-0";
		int file = index_of(name);
		char *data = hs_mem_dup(image.data[file], image.bytes[file]);
		char path[HS_PATH_BYTES_MAX];

		restore_files(test, &image);
		data[100] ^= 1;
		data[image.bytes[file] / 2 + 5000] ^= 1;
		hs_test_file_write(test->folder, name, data, image.bytes[file]);
		hs_mem_free(&data);
		assert_int_equal(hs_test_embedded_open(test), HS_ECORRUPT);
		assert_non_null(strstr(test->error, name));
		assert_non_null(strstr(test->error, "heatsink repair"));

		restore_files(test, &image);
		assert_true(hs_file_path(path, test->folder, name));
		unlink(path);
		assert_int_equal(hs_test_embedded_open(test), HS_ECORRUPT);
		assert_non_null(strstr(test->error, name));
	}
	forget(&image);
}

/* An older checkpoint with the log of a newer one, as a wrong restore from backups would leave the files. */
static void a_log_that_does_not_reach_back_is_refused(void **state)
{
	struct hs_test_embedded *test = *state;
	struct image old, new;

	fill(test, &old);
	/* Every start writes a checkpoint and begins a new log, so the old log records are overwritten. */
	for (unsigned version = 3; version < 6; version++) {
		assert_int_equal(hs_test_embedded_open(test), 0);
		for (unsigned key = 0; key < KEYS; key++)
			write_key(test, key, version);
		hs_test_embedded_kill(test);
	}
	save_files(test, &new);
	for (int i = 0; i < FILES; i++)
		if (strncmp(file_names[i], "checkpoint", 10) == 0)
			hs_test_file_write(test->folder, file_names[i], old.data[i], old.bytes[i]);
	assert_int_equal(hs_test_embedded_open(test), HS_ECORRUPT);
	assert_non_null(strstr(test->error, "does not reach back"));
	/* The refused start has written nothing: with the right files in place, the next start succeeds. */
	for (int i = 0; i < FILES; i++)
		if (strncmp(file_names[i], "checkpoint", 10) == 0)
			hs_test_file_write(test->folder, file_names[i], new.data[i], new.bytes[i]);
	assert_int_equal(hs_test_embedded_open(test), 0);
	assert_int_equal(lost(test, 5), 0);
	forget(&old);
	forget(&new);
}

/* A checkpoint write that was cut short leaves the file's first copy torn and the second copy as it was. */
static void a_torn_checkpoint_write_still_starts(void **state)
{
	struct hs_test_embedded *test = *state;
	struct image before, after;
	int file;

	assert_int_equal(hs_test_embedded_open(test), 0);
	for (unsigned key = 0; key < KEYS; key++)
		write_key(test, key, 1);
	file = index_of(test->database.checkpoint.next ? "checkpoint-1" : "checkpoint-0");
	save_files(test, &before);
	hs_group_checkpoint(&test->group);
	save_files(test, &after);
	hs_test_embedded_kill(test);
	for (size_t cut = 0; cut < after.bytes[file] / 2; cut += 8192) {
		char *torn = hs_mem_dup(before.data[file], before.bytes[file]);

		memcpy(torn, after.data[file], cut);
		memset(torn + cut, 0xa5, 512);
		restore_files(test, &before);
		hs_test_file_write(test->folder, file_names[file], torn, before.bytes[file]);
		hs_mem_free(&torn);
		if (hs_test_embedded_open(test) != 0)
			fail_msg("cut at %zu: %s", cut, test->error);
		assert_int_equal(lost(test, 1), 0);
		hs_test_embedded_kill(test);
	}
	forget(&before);
	forget(&after);
}

/* The last record is written but not yet synced, so no mark of a sync follows the record. */
static void a_torn_tail_still_starts(void **state)
{
	struct hs_test_embedded *test = *state;
	struct hs_redo *redo = &test->database.redo;
	struct hs_buf buf = {0};
	struct image image;
	struct iovec part;
	size_t begin, end;
	int file;

	assert_int_equal(hs_test_embedded_open(test), 0);
	for (unsigned key = 0; key < KEYS; key++)
		write_key(test, key, 1);
	begin = redo->at;
	file = index_of(hs_redo_file_name(redo->turn));
	hs_redo_entry_append(&buf, HS_REDO_DEL, 0, 0, HS_LIT("a key that is not there"), 0);
	part = (struct iovec){buf.data, buf.len};
	assert_int_equal(hs_redo_append(redo, HS_REDO_GROUP, &part, 1), 0);
	end = redo->at;
	hs_buf_deinit(&buf);
	hs_test_embedded_kill(test);
	save_files(test, &image);
	for (size_t at = begin; at < end; at += 11) {
		restore_files(test, &image);
		flip(test, &image, file, at, 0x10);
		if (hs_test_embedded_open(test) != 0)
			fail_msg("byte %zu: %s", at, test->error);
		assert_int_equal(lost(test, 1), 0);
		hs_test_embedded_kill(test);
	}
	forget(&image);
}

/* Without syncs, a power cut may tear any record and leave later records whole. */
static void without_sync_a_gap_ends_the_log(void **state)
{
	struct hs_test_embedded *test = *state;
	struct image image;
	int file;

	test->options.sync = false;
	assert_int_equal(hs_test_embedded_open(test), 0);
	file = index_of(hs_redo_file_name(test->database.redo.turn));
	for (unsigned key = 0; key < KEYS; key++)
		write_key(test, key, 1);
	hs_test_embedded_kill(test);
	save_files(test, &image);
	flip(test, &image, file, 1000, 1);
	assert_int_equal(hs_test_embedded_open(test), 0);
	assert_true(lost(test, 1) > KEYS / 2);
	assert_true(lost(test, 1) < KEYS);
	forget(&image);
}

/* A start does not take a log file that is cut or missing for a log that ends early. A repair starts without this
 * file. */
static void a_short_log_is_refused(void **state)
{
	struct hs_test_embedded *test = *state;
	struct image image;
	char length[64];

	fill(test, &image);
	for (int file = index_of("log-0"); file <= index_of("log-1"); file++) {
		const size_t lengths[] = {0, 4096, image.bytes[file] - 1, SIZE_MAX};

		snprintf(length, sizeof length, "%zu", image.bytes[file]);
		for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
			restore_files(test, &image);
			if (lengths[i] == SIZE_MAX)
				remove_file(test, file_names[file]);
			else
				hs_test_file_write(test->folder, file_names[file], image.data[file],
						   lengths[i]);
			assert_int_equal(hs_test_embedded_open(test), HS_ECORRUPT);
			assert_non_null(strstr(test->error, "damaged data"));
			assert_non_null(strstr(test->error, file_names[file]));
			assert_non_null(strstr(test->error, length));
			assert_non_null(strstr(test->error, "heatsink repair"));
			test->options.repair = true;
			assert_int_equal(hs_test_embedded_open(test), 0);
			hs_test_embedded_kill(test);
			test->options.repair = false;
			assert_int_equal(hs_test_embedded_open(test), 0);
			hs_test_embedded_kill(test);
		}
	}
	forget(&image);
}

/* A start that changes the log's size may crash between two steps. Then a log file is longer than the checkpoint
 * says. */
static void a_log_cut_short_in_resizing_starts(void **state)
{
	struct hs_test_embedded *test = *state;
	const size_t small = 64 * HS_KIB, large = 128 * HS_KIB;
	struct image image;
	char *longer = hs_mem_zalloc(large);

	/* The log grows: one file is half or fully extended, and the checkpoint still has the old size. */
	fill(test, &image);
	for (size_t bytes = small + 4096; bytes <= large; bytes += large - small - 4096) {
		restore_files(test, &image);
		memcpy(longer, image.data[index_of("log-0")], small);
		hs_test_file_write(test->folder, "log-0", longer, bytes);
		test->options.log_bytes = large;
		assert_int_equal(hs_test_embedded_open(test), 0);
		assert_int_equal(lost(test, 2), 0);
		hs_test_embedded_kill(test);
	}
	forget(&image);
	/* The start has written a checkpoint with the new size: a shorter file is refused. */
	save_files(test, &image);
	hs_test_file_write(test->folder, "log-1", image.data[index_of("log-1")], small);
	assert_int_equal(hs_test_embedded_open(test), HS_ECORRUPT);
	restore_files(test, &image);
	/* The log shrinks: the checkpoint has the new size, and one file was not cut yet. */
	test->options.log_bytes = small;
	assert_int_equal(hs_test_embedded_open(test), 0);
	hs_test_embedded_kill(test);
	hs_test_file_write(test->folder, "log-1", image.data[index_of("log-1")], large);
	assert_int_equal(hs_test_embedded_open(test), 0);
	assert_int_equal(lost(test, 2), 0);
	hs_mem_free(&longer);
	forget(&image);
}

/* A repair skips the broken record and keeps the records after it. */
static void repair_keeps_records_behind_a_gap(void **state)
{
	struct hs_test_embedded *test = *state;
	struct image image;
	int file;

	assert_int_equal(hs_test_embedded_open(test), 0);
	file = index_of(hs_redo_file_name(test->database.redo.turn));
	for (unsigned key = 0; key < KEYS; key++)
		write_key(test, key, 1);
	hs_test_embedded_kill(test);
	save_files(test, &image);
	flip(test, &image, file, 1000, 1);
	assert_int_equal(hs_test_embedded_open(test), HS_ECORRUPT);
	assert_non_null(strstr(test->error, "is broken at byte"));
	test->options.repair = true;
	assert_int_equal(hs_test_embedded_open(test), 0);
	assert_int_equal(lost(test, 1), 1);
	hs_test_embedded_kill(test);
	test->options.repair = false;
	assert_int_equal(hs_test_embedded_open(test), 0);
	assert_int_equal(lost(test, 1), 1);
	forget(&image);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_flipped_byte_of_the_log),
		TEST(a_flipped_byte_of_the_last_record),
		TEST(a_flipped_byte_of_a_checkpoint_file),
		TEST(a_flipped_byte_of_the_format),
		TEST(files_without_a_format_are_refused),
		TEST(a_flipped_byte_of_a_record),
		TEST(a_checkpoint_file_without_a_whole_copy_is_refused),
		TEST(a_log_that_does_not_reach_back_is_refused),
		TEST(a_torn_checkpoint_write_still_starts),
		TEST(a_torn_tail_still_starts),
		TEST(without_sync_a_gap_ends_the_log),
		TEST(a_short_log_is_refused),
		TEST(a_log_cut_short_in_resizing_starts),
		TEST(repair_keeps_records_behind_a_gap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
