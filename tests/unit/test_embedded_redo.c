/* Goal: the redo log gives back exactly the whole records, in order, whatever bytes follow them in the files.
 *
 * Method: write records into real files; damage, cut or reuse them; read them again. */

#include "base/limits.h"
#include "base/mem.h"
#include "engine/embedded/redo.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { SEED = 77, FILE_BYTES = 16384 };

struct fixture {
	char folder[64];
	char error[256];
	struct hs_fault fault;
	struct hs_redo redo;
};

static int setup(void **state)
{
	struct fixture *f = hs_mem_zalloc(sizeof *f);

	snprintf(f->folder, sizeof f->folder, "/tmp/heatsink-test-XXXXXX");
	assert_non_null(mkdtemp(f->folder));
	f->fault = (struct hs_fault){f->error, sizeof f->error};
	assert_int_equal(hs_redo_open(&f->redo, f->folder, true, FILE_BYTES, true, SEED, &f->fault),
			 0);
	assert_int_equal(hs_redo_grow(&f->redo, &f->fault), 0);
	f->redo.lsn = 100;
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	char path[HS_PATH_BYTES_MAX];

	hs_redo_close(&f->redo);
	for (int i = 0; i < 2; i++) {
		assert_true(hs_file_path(path, f->folder, i ? "log-1" : "log-0"));
		unlink(path);
	}
	assert_int_equal(rmdir(f->folder), 0);
	hs_mem_free(&f);
	return 0;
}

/* Appends a record with one entry. The entry's value has `bytes` bytes, all equal to `fill`. */
static void append(struct fixture *f, size_t bytes, char fill)
{
	struct hs_buf buf = {0};
	size_t at = hs_redo_entry_append(&buf, HS_REDO_PUT, 1, 3, HS_LIT("key"), bytes);
	struct iovec part;

	memset(buf.data + at, fill, bytes);
	part = (struct iovec){buf.data, buf.len};
	assert_int_equal(hs_redo_append(&f->redo, HS_REDO_GROUP, &part, 1), 0);
	hs_buf_deinit(&buf);
}

/* Reads the log from record `lsn` on. Returns the number of records, and the first byte of each value in
 * `fills`. */
static size_t read_back(struct fixture *f, uint64_t lsn, char *fills)
{
	struct hs_redo_reader reader;
	struct hs_redo_record record;
	size_t count = 0;

	assert_int_equal(hs_redo_reader_open(&reader, &f->redo, lsn, &f->fault), 0);
	while (hs_redo_reader_next(&reader, &record)) {
		struct hs_redo_entry entry;

		assert_int_equal(record.lsn, lsn + count);
		assert_int_equal(hs_redo_entry_take(&record.body, &entry), 1);
		assert_int_equal(entry.op, HS_REDO_PUT);
		assert_int_equal(entry.tree, 1);
		assert_int_equal(entry.store, 3);
		assert_true(hs_bytes_equal(entry.key, HS_LIT("key")));
		fills[count++] = entry.value.len ? entry.value.data[0] : '-';
		assert_int_equal(hs_redo_entry_take(&record.body, &entry), 0);
	}
	hs_redo_reader_close(&reader);
	fills[count] = '\0';
	return count;
}

static void records_come_back_in_order(void **state)
{
	struct fixture *f = *state;
	char fills[64];

	assert_int_equal(read_back(f, 100, fills), 0);
	append(f, 10, 'a');
	append(f, 0, 'b');
	append(f, 1000, 'c');
	assert_int_equal(read_back(f, 100, fills), 3);
	assert_string_equal(fills, "a-c");
	/* A read must begin with the first record of a file. */
	assert_int_equal(read_back(f, 101, fills), 0);
	assert_int_equal(read_back(f, 99, fills), 0);
}

static void both_files_are_read(void **state)
{
	struct fixture *f = *state;
	char fills[64];

	append(f, 10, 'a');
	append(f, 10, 'b');
	assert_int_equal(hs_redo_turn(&f->redo), 0);
	append(f, 10, 'c');
	append(f, 10, 'd');
	assert_int_equal(read_back(f, 100, fills), 4);
	assert_string_equal(fills, "abcd");
	assert_int_equal(read_back(f, 102, fills), 2);
	assert_string_equal(fills, "cd");
}

/* A flipped byte anywhere in the last record ends the log before this record. A flipped byte after the record
 * changes nothing. */
static void a_torn_record_ends_the_log(void **state)
{
	struct fixture *f = *state;
	uint64_t begin, end;
	char fills[64];

	append(f, 30, 'a');
	begin = f->redo.at;
	append(f, 29, 'b');
	end = f->redo.at;
	for (uint64_t at = begin; at < end + 16; at++) {
		char byte, flipped;
		size_t expect;

		assert_int_equal(hs_file_read(f->redo.fd[0], &byte, 1, at), 0);
		flipped = (char)(byte ^ 0x10);
		assert_int_equal(hs_file_write(f->redo.fd[0], &flipped, 1, at), 0);
		/* The record has 32 + 16 + 3 + 29 bytes, a whole number of words, so there is no padding. */
		expect = at < end ? 1 : 2;
		assert_int_equal(read_back(f, 100, fills), expect);
		assert_int_equal(hs_file_write(f->redo.fd[0], &byte, 1, at), 0);
	}
	assert_int_equal(read_back(f, 100, fills), 2);
}

static void records_of_an_earlier_turn_are_rejected(void **state)
{
	struct fixture *f = *state;
	char fills[64];

	for (int fill = 'a'; fill < 'a' + 10; fill++)
		append(f, 100, (char)fill); /* records 100 to 109, in file 0 */
	assert_int_equal(hs_redo_turn(&f->redo), 0);
	append(f, 100, 'x'); /* record 110, in file 1 */
	assert_int_equal(hs_redo_turn(&f->redo), 0);
	append(f, 100, 'y'); /* record 111 overwrites 100; 101 after it is still whole */
	assert_int_equal(read_back(f, 110, fills), 2);
	assert_string_equal(fills, "xy");
	assert_int_equal(read_back(f, 111, fills), 1);
	assert_int_equal(read_back(f, 100, fills), 0);
}

/* Without syncs, a crash can leave record n+1 on disk but not record n. Then the next start writes another record
 * n elsewhere. If the old record n+1 lies just after the new record n, a reader must not take it for the next
 * record. */
static void sequence_numbers_skip_at_a_start(void **state)
{
	struct fixture *f = *state;
	char fills[64];
	uint64_t lsn = hs_redo_lsn_leap(f->redo.lsn);

	append(f, 100, 'a'); /* record 100 */
	/* Record 101 lies just after a record of this size. */
	append(f, 100, 'b');
	f->redo.at = 0;
	f->redo.lsn = 100;
	append(f, 100, 'c');
	/* Without skipped numbers, the reader takes the old record 101 for the next one. */
	assert_int_equal(read_back(f, 100, fills), 2);
	assert_string_equal(fills, "cb");
	f->redo.at = 0;
	f->redo.lsn = lsn;
	append(f, 100, 'c');
	assert_int_equal(read_back(f, lsn, fills), 1);
	assert_true(lsn > 101);
	assert_true(hs_redo_lsn_leap(lsn) > lsn);
}

static void another_seed_reads_nothing(void **state)
{
	struct fixture *f = *state;
	char fills[64];

	append(f, 10, 'a');
	f->redo.seed++;
	assert_int_equal(read_back(f, 100, fills), 0);
}

static void a_record_may_be_longer_than_a_file(void **state)
{
	struct fixture *f = *state;
	char fills[64];

	append(f, 10, 'a');
	assert_false(hs_redo_fits(&f->redo, 3 * FILE_BYTES));
	assert_false(hs_redo_fits(&f->redo, FILE_BYTES - 32));
	assert_true(hs_redo_fits(&f->redo, 100));
	assert_int_equal(hs_redo_turn(&f->redo), 0);
	assert_true(hs_redo_fits(&f->redo, 3 * FILE_BYTES));
	append(f, 3 * FILE_BYTES, 'b');
	assert_false(hs_redo_fits(&f->redo, 1));
	assert_int_equal(read_back(f, 100, fills), 2);
	assert_string_equal(fills, "ab");
	assert_int_equal(hs_redo_turn(&f->redo), 0);
	append(f, 10, 'c');
	assert_int_equal(hs_redo_turn(&f->redo), 0);
	assert_int_equal(lseek(f->redo.fd[f->redo.turn], 0, SEEK_END), FILE_BYTES);
}

/* A client's value may consist of forged record headers with high numbers and long bodies. The search for records
 * computes no checksum over the forged bodies, so its work stays proportional to the size of the files. */
static void forged_headers_cost_nothing(void **state)
{
	enum { HEADS = 300, HEAD_BYTES = 32, BODY_BYTES = HEADS * HEAD_BYTES / 2 };
	struct fixture *f = *state;
	struct hs_redo_survey survey;
	struct hs_buf buf = {0};
	struct iovec part;
	char head[HEAD_BYTES];
	size_t at;

	/* The forged header is closer to a real one than a client could make it: only its number and length
	 * differ. */
	append(f, 10, 'a');
	assert_int_equal(hs_file_read(f->redo.fd[0], head, sizeof head, 0), 0);
	memcpy(head + 8, &(uint64_t){UINT64_C(1) << 62}, 8);
	memcpy(head + 16, &(uint64_t){BODY_BYTES}, 8);
	at = hs_redo_entry_append(&buf, HS_REDO_PUT, 1, 3, HS_LIT("forged k"), sizeof head * HEADS);
	assert_int_equal(at % 8, 0);
	for (size_t i = 0; i < HEADS; i++)
		memcpy(buf.data + at + i * sizeof head, head, sizeof head);
	part = (struct iovec){buf.data, buf.len};
	assert_int_equal(hs_redo_append(&f->redo, HS_REDO_GROUP, &part, 1), 0);
	assert_int_equal(hs_redo_survey(&f->redo, 100, &survey, &f->fault), 0);
	assert_int_equal(survey.records, 2);
	assert_int_equal(survey.beyond, 0);
	assert_false(survey.damage);
	assert_in_range(survey.summed_bytes, buf.len, 2 * f->redo.at);
	hs_buf_deinit(&buf);
}

static void damaged_entries_are_noticed(void **state)
{
	struct hs_buf buf = {0};
	struct hs_redo_entry entry;

	(void)state;
	hs_redo_entry_append(&buf, HS_REDO_DEL, 0, 1, HS_LIT("key"), 5);
	memset(buf.data + buf.len - 5, 'v', 5);
	for (size_t len = 1; len < buf.len; len++) {
		struct hs_bytes bytes = {buf.data, len};

		assert_true(hs_redo_entry_take(&bytes, &entry) < 0);
	}
	hs_buf_deinit(&buf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(records_come_back_in_order, setup, teardown),
		cmocka_unit_test_setup_teardown(both_files_are_read, setup, teardown),
		cmocka_unit_test_setup_teardown(a_torn_record_ends_the_log, setup, teardown),
		cmocka_unit_test_setup_teardown(records_of_an_earlier_turn_are_rejected, setup,
						teardown),
		cmocka_unit_test_setup_teardown(sequence_numbers_skip_at_a_start, setup, teardown),
		cmocka_unit_test_setup_teardown(another_seed_reads_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(a_record_may_be_longer_than_a_file, setup,
						teardown),
		cmocka_unit_test_setup_teardown(forged_headers_cost_nothing, setup, teardown),
		cmocka_unit_test(damaged_entries_are_noticed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
