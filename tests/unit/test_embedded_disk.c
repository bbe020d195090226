/* Goal: whichever call fails on whichever file, no acknowledged write is lost, no value reads as absent or older,
 * a refused write does not come back, and a disk failure never ends the process.
 *
 * Method: the engine without its threads, on a disk that fails on demand (faults.h). A model knows the possible
 * values of each key, and is compared after every group, after the failure and after a restart. */

#include "base/limits.h"
#include "base/mem.h"
#include "base/prng.h"
#include "tests/lib/embedded.h"
#include "tests/lib/faults.h"

#include <setjmp.h>
#include <stdarg.h>
#include <sys/mman.h>

#include <cmocka.h>

enum { KEYS = 48, FOREVER = INT32_MAX, TRIES_MAX = 512, GROUPS = 220 };

/* The possible values of a key: the last acknowledged value, and the values written since with an unknown
 * outcome. 0: the key is absent. */
struct model {
	unsigned sure[KEYS];
	unsigned tries[KEYS][TRIES_MAX];
	unsigned tries_count[KEYS];
};

struct figures {
	unsigned trials, acknowledged, refused, unknown, reads, unreadable, not_opened, no_fault;
};

struct bench {
	struct hs_test_embedded test;
	struct model model;
	struct hs_prng prng;
	unsigned number; /* the number in the last value written */
	bool refused;
	struct figures figures;
};

static int setup(void **state)
{
	struct bench *bench = hs_mem_zalloc(sizeof *bench);

	faults_heal();
	faults_skip_sync = true;
	faults_journal = memfd_create("journal", MFD_CLOEXEC);
	assert_true(faults_journal >= 0);
	*state = bench;
	return 0;
}

static int teardown(void **state)
{
	struct bench *bench = *state;

	faults_heal();
	close(faults_journal);
	hs_mem_free(&bench);
	return 0;
}

/* Moves the database to a disk in memory, which is faster. The disk fails only where a test makes it fail. */
static void move_to_memory(struct hs_test_embedded *test)
{
	char folder[sizeof test->folder] = "/dev/shm/heatsink-test-XXXXXX";

	if (!mkdtemp(folder))
		return;
	rmdir(test->folder);
	memcpy(test->folder, folder, sizeof folder);
}

static void begin(struct bench *bench, uint64_t seed)
{
	memset(&bench->model, 0, sizeof bench->model);
	hs_prng_init(&bench->prng, seed);
	bench->refused = false;
	hs_test_embedded_init(&bench->test);
	move_to_memory(&bench->test);
	bench->test.options.log_bytes = 64 * HS_KIB;
	bench->test.options.store_bytes_max = 16 * HS_MIB;
}

static void end(struct bench *bench)
{
	faults_heal();
	if (bench->test.open)
		hs_test_embedded_kill(&bench->test);
	hs_test_embedded_deinit(&bench->test);
}

static unsigned below(struct bench *bench, unsigned limit)
{
	return (unsigned)hs_prng_below(&bench->prng, limit);
}

static bool is_error(const char *reply, const char *begins)
{
	return reply[0] == '-' && strncmp(reply + 1, begins, strlen(begins)) == 0;
}

/* Adds a SET to the group, or a DEL if `number` is 0. A value is its number and then as many letters as the
 * number implies. */
static void add_set(struct bench *bench, unsigned key, unsigned number)
{
	char words[64], value[2048];
	size_t len;

	if (number == 0) {
		snprintf(words, sizeof words, "del k%u", key);
		hs_test_embedded_add(&bench->test, words, (struct hs_bytes){NULL, 0});
		return;
	}
	snprintf(words, sizeof words, "set k%u", key);
	len = (size_t)snprintf(value, sizeof value, "%u", number);
	memset(value + len, 'v', number % 1500);
	hs_test_embedded_add(&bench->test, words, (struct hs_bytes){value, len + number % 1500});
}

/* Returns the number in a reply to GET. */
static unsigned number_of(const char *reply)
{
	const char *line = strchr(reply, '\n');

	if (strcmp(reply, "$-1\r\n") == 0)
		return 0;
	assert_int_equal(reply[0], '$');
	return (unsigned)strtoul(line + 1, NULL, 10);
}

static bool may_be(const struct model *model, unsigned key, unsigned number)
{
	if (model->sure[key] == number)
		return true;
	for (unsigned i = 0; i < model->tries_count[key]; i++)
		if (model->tries[key][i] == number)
			return true;
	return false;
}

static void check_key(struct bench *bench, unsigned key, const char *reply)
{
	if (reply[0] == '-') {
		assert_true(is_error(reply, "MISCONF cannot "));
		assert_non_null(strstr(reply, "cannot be read until a restart"));
		bench->figures.unreadable++;
		return;
	}
	bench->figures.reads++;
	if (!may_be(&bench->model, key, number_of(reply)))
		fail_msg("k%u is %u, acknowledged was %u", key, number_of(reply),
			 bench->model.sure[key]);
}

static void check_reads(struct bench *bench)
{
	for (unsigned key = 0; key < KEYS; key++) {
		char words[32];

		snprintf(words, sizeof words, "get k%u", key);
		check_key(bench, key, hs_test_embedded_read(&bench->test, words));
	}
}

/* Updates the model with the reply to a write. */
static void learn(struct bench *bench, unsigned key, unsigned number, const char *reply)
{
	struct model *model = &bench->model;

	if (reply[0] != '-') {
		model->sure[key] = number;
		model->tries_count[key] = 0;
		bench->figures.acknowledged++;
	} else if (strstr(reply, "is unknown")) {
		assert_true(is_error(reply, "MISCONF cannot "));
		assert_in_range(model->tries_count[key], 0, TRIES_MAX - 1);
		model->tries[key][model->tries_count[key]++] = number;
		bench->figures.unknown++;
		bench->refused = true;
	} else if (is_error(reply, "MISCONF cannot ")) {
		assert_non_null(strstr(reply, bench->test.folder)); /* the error names the file */
		assert_non_null(strstr(reply, "; writes are refused until a restart"));
		bench->figures.refused++;
		bench->refused = true;
	} else {
		assert_true(is_error(reply, "OOM store full: "));
		bench->figures.refused++;
	}
}

/* Runs a group of random writes and reads, and sometimes the committer's work between groups. */
static void run_group(struct bench *bench)
{
	unsigned count = 1 + below(bench, 8), keys[8], numbers[8];

	for (unsigned i = 0; i < count; i++) {
		keys[i] = below(bench, KEYS);
		numbers[i] = below(bench, 5) ? ++bench->number : 0;
		add_set(bench, keys[i], numbers[i]);
	}
	hs_test_embedded_run(&bench->test);
	for (unsigned i = 0; i < count; i++)
		learn(bench, keys[i], numbers[i], hs_test_embedded_reply(&bench->test, i));
	bench->test.now.mono_us += below(bench, 1000) * 1000;
	if (below(bench, 3) == 0)
		hs_group_maintain(&bench->test.group);
}

/* Restarts with a working disk, which may have lost unsynced data. Every acknowledged write must be there. */
static void check_restart(struct bench *bench)
{
	hs_test_embedded_kill(&bench->test);
	faults_heal();
	faults_undo();
	if (hs_test_embedded_open(&bench->test) != 0)
		fail_msg("cannot open: %s", bench->test.error);
	check_reads(bench);
	assert_string_equal(hs_test_embedded_do(&bench->test, "set k0 1v"), "+OK\r\n");
}

/* One trial: writes, makes the disk fail, writes until a write is refused, at most GROUPS times, then reads and
 * restarts. */
static void run_trial(struct bench *bench, uint32_t kinds, const char *file, uint32_t nth,
		      uint32_t times, int error)
{
	begin(bench, nth);
	bench->figures.trials++;
	assert_int_equal(hs_test_embedded_open(&bench->test), 0);
	for (int i = 0; i < 20; i++)
		run_group(bench);
	faults_arm(kinds, file, nth, times, error);
	for (int i = 0; i < GROUPS && !bench->refused; i++)
		run_group(bench);
	bench->figures.no_fault += faults->hits == 0;
	/* After the first refused write, the engine refuses all writes and still serves reads. */
	for (int i = 0; i < 5; i++)
		run_group(bench);
	check_reads(bench);
	hs_group_maintain(&bench->test.group);
	check_reads(bench);
	check_restart(bench);
	end(bench);
}

static void report(const char *what, const struct figures *figures)
{
	printf("%s: %u trials, %u writes acknowledged, 0 lost, %u refused, %u of unknown "
	       "outcome, %u right reads, %u refused reads, %u starts refused, %u without a fault\n",
	       what, figures->trials, figures->acknowledged, figures->refused, figures->unknown,
	       figures->reads, figures->unreadable, figures->not_opened, figures->no_fault);
}

/* The volume below the filesystem is full: writes succeed, but their bytes never reach the disk. */
static void lost_writes_of_stores_fail_the_checkpoint(void **state)
{
	struct bench *bench = *state;

	for (uint32_t nth = 1; nth < 120; nth += 7)
		run_trial(bench, FAULT_WRITE | FAULT_LOSE, "/store-", nth, FOREVER,
			  nth % 2 ? EIO : ENOSPC);
	assert_true(bench->figures.refused >= bench->figures.trials);
	report("stores lose writes", &bench->figures);
}

static void a_single_lost_write_of_any_file(void **state)
{
	struct bench *bench = *state;

	for (uint32_t nth = 1; nth < 120; nth += 6)
		run_trial(bench, FAULT_WRITE | FAULT_LOSE, "heatsink-test", nth, 1, EIO);
	report("one write is lost", &bench->figures);
}

static void denied_writes_of_stores(void **state)
{
	struct bench *bench = *state;

	for (uint32_t nth = 1; nth < 75; nth += 3)
		run_trial(bench, FAULT_WRITE, "/store-", nth, nth % 2 ? 1 : FOREVER, EIO);
	report("writes of stores fail", &bench->figures);
}

static void denied_meta_pages(void **state)
{
	struct bench *bench = *state;

	for (uint32_t nth = 1; nth < 12; nth++)
		run_trial(bench, FAULT_META, "/store-", nth, nth % 2 ? 1 : FOREVER, EIO);
	assert_true(bench->figures.reads > 0 && bench->figures.unreadable > 0);
	report("writes of meta pages fail", &bench->figures);
}

static void denied_writes_of_any_file(void **state)
{
	static const int errors[] = {EIO, EROFS, EIO, EROFS, EIO, ENOSPC, EIO, EDQUOT};
	struct bench *bench = *state;

	for (uint32_t nth = 1; nth < 200; nth += 7)
		run_trial(bench, FAULT_WRITE, "heatsink-test", nth, nth % 2 ? 1 : FOREVER,
			  errors[nth / 7 % 8]);
	report("writes fail", &bench->figures);
}

static void denied_syncs_of_any_file(void **state)
{
	struct bench *bench = *state;

	for (uint32_t nth = 1; nth < 120; nth += 5)
		run_trial(bench, FAULT_SYNC, "heatsink-test", nth, nth % 2 ? 1 : FOREVER, EIO);
	assert_int_equal(bench->figures.no_fault, 0);
	assert_true(bench->figures.refused + bench->figures.unknown >= bench->figures.trials);
	report("syncs fail", &bench->figures);
}

/* Every write fails, as on a filesystem that is shut down or has become read-only. */
static void every_write_is_denied(void **state)
{
	struct bench *bench = *state;

	for (uint32_t nth = 1; nth < 150; nth += 9)
		run_trial(bench, FAULT_WRITE | FAULT_SYNC | FAULT_RESERVE | FAULT_NAME,
			  "heatsink-test", nth, FOREVER, nth % 2 ? EROFS : EIO);
	assert_true(bench->figures.refused >= bench->figures.trials);
	report("the filesystem is read-only", &bench->figures);
}

/* A failed start names its cause, and the next start finds every acknowledged value. */
static void a_start_that_fails_loses_nothing(void **state)
{
	struct bench *bench = *state;

	for (uint32_t nth = 1; nth < 40; nth++) {
		begin(bench, nth);
		bench->figures.trials++;
		assert_int_equal(hs_test_embedded_open(&bench->test), 0);
		for (int i = 0; i < 30; i++)
			run_group(bench);
		hs_test_embedded_kill(&bench->test);
		faults_arm(nth % 2 ? FAULT_WRITE | FAULT_SYNC | FAULT_RESERVE | FAULT_NAME
				   : FAULT_WRITE | FAULT_LOSE,
			   "heatsink-test", (nth + 1) / 2, nth % 4 < 2 ? 1 : FOREVER, EIO);
		if (hs_test_embedded_open(&bench->test) != 0) {
			assert_non_null(strstr(bench->test.error, bench->test.folder));
			assert_non_null(strstr(bench->test.error, strerror(EIO)));
			bench->figures.not_opened++;
			faults_heal();
			faults_undo();
			assert_int_equal(hs_test_embedded_open(&bench->test), 0);
		}
		check_reads(bench);
		check_restart(bench);
		end(bench);
	}
	assert_true(bench->figures.not_opened > 10);
	report("a start fails", &bench->figures);
}

static int broken_barrier(void *context)
{
	(void)context;
	return -EIO;
}

/* The syncer learns that the log was not synced after the next group has already run. The clients of the first
 * group were told that the outcome is unknown. Until a restart decides the outcome, readers see the value from
 * before the group. */
static void a_late_failure_of_the_log_takes_the_group_back(void **state)
{
	struct bench *bench = *state;
	struct hs_test_embedded *test = &bench->test;
	const char *reply;

	begin(bench, 1);
	assert_int_equal(hs_test_embedded_open(test), 0);
	assert_string_equal(hs_test_embedded_do(test, "set {b}1 sure"), "+OK\r\n");
	assert_string_equal(hs_test_embedded_do(test, "set {a}1 sure"), "+OK\r\n");
	/* hs_group_finish defers the sync to its caller, whose sync fails. */
	hs_test_embedded_add(test, "set {b}1 unsure", (struct hs_bytes){NULL, 0});
	assert_int_equal(hs_group_add(&test->group, &test->ops[0].op), 1);
	assert_false(hs_group_finish(&test->group, true));
	test->count = 0;
	test->group.barrier = broken_barrier;

	hs_test_embedded_add(test, "append {b}1 more", (struct hs_bytes){NULL, 0});
	hs_test_embedded_add(test, "get {b}1", (struct hs_bytes){NULL, 0});
	hs_test_embedded_add(test, "get {a}1", (struct hs_bytes){NULL, 0});
	hs_test_embedded_run(test);
	reply = hs_test_embedded_reply(test, 0);
	assert_true(is_error(reply, "MISCONF cannot sync '"));
	assert_null(strstr(reply, "is unknown"));
	assert_string_equal(hs_test_embedded_reply(test, 1), "$4\r\nsure\r\n");
	assert_string_equal(hs_test_embedded_reply(test, 2), "$4\r\nsure\r\n");
	assert_string_equal(hs_test_embedded_read(test, "get {b}1"), "$4\r\nsure\r\n");
	assert_string_equal(hs_test_embedded_read(test, "get {a}1"), "$4\r\nsure\r\n");
	end(bench);
}

/* LMDB refuses every call after it could not write a meta page. Keys unchanged since the last commit stay
 * readable from any thread. A scan of the whole store fails with the reason. */
static void a_store_that_was_given_up_is_read(void **state)
{
	struct bench *bench = *state;
	struct hs_test_embedded *test = &bench->test;
	const char *reply;

	begin(bench, 1);
	assert_int_equal(hs_test_embedded_open(test), 0);
	assert_string_equal(hs_test_embedded_do(test, "set {b}old 1"), "+OK\r\n");
	assert_string_equal(hs_test_embedded_do(test, "set {a}old 1"), "+OK\r\n");
	hs_group_checkpoint(&test->group); /* commits the first two keys */
	assert_string_equal(hs_test_embedded_do(test, "set {b}new 1"), "+OK\r\n");
	assert_string_equal(hs_test_embedded_do(test, "set {a}new 1"), "+OK\r\n");
	faults_arm(FAULT_META, "/store-000", 1, FOREVER, EIO);
	test->now.mono_us += 10 * 1000 * 1000;
	/* This commit fails. Keys with the tag {b} are in store 0. */
	hs_group_maintain(&test->group);
	assert_true(test->group.parts[0].given_up);
	assert_false(test->group.parts[1].given_up);

	assert_string_equal(hs_test_embedded_read(test, "get {b}old"), "$1\r\n1\r\n");
	hs_reader_idle(&test->reader);
	/* The reader releases its snapshot at the second idle call, so the next read takes a new one. */
	hs_reader_idle(&test->reader);
	assert_string_equal(hs_test_embedded_read(test, "get {b}old"), "$1\r\n1\r\n");
	assert_string_equal(hs_test_embedded_do(test, "get {b}old"), "$1\r\n1\r\n");
	reply = hs_test_embedded_read(test, "get {b}new");
	assert_true(is_error(reply, "MISCONF cannot write '"));
	assert_non_null(strstr(reply, "store-000': "));
	assert_non_null(strstr(reply, "changed just before and cannot be read until a restart"));
	assert_true(is_error(hs_test_embedded_read(test, "dbsize"), "MISCONF cannot write '"));
	assert_true(is_error(hs_test_embedded_do(test, "set {b}old 2"), "MISCONF cannot write '"));
	assert_string_equal(hs_test_embedded_read(test, "get {a}old"), "$1\r\n1\r\n");
	assert_string_equal(hs_test_embedded_read(test, "get {a}new"), "$1\r\n1\r\n");

	hs_test_embedded_kill(test);
	faults_heal();
	assert_int_equal(hs_test_embedded_open(test), 0);
	assert_string_equal(hs_test_embedded_read(test, "get {b}new"), "$1\r\n1\r\n");
	assert_string_equal(hs_test_embedded_read(test, "get {b}old"), "$1\r\n1\r\n");
	end(bench);
}

/* If a start cannot read the log, its error names the file, and the start changes nothing. */
static void an_unreadable_log_is_named(void **state)
{
	struct bench *bench = *state;
	struct hs_test_embedded *test = &bench->test;

	begin(bench, 1);
	assert_int_equal(hs_test_embedded_open(test), 0);
	assert_string_equal(hs_test_embedded_do(test, "set key 1"), "+OK\r\n");
	hs_test_embedded_kill(test);
	for (int turn = 0; turn < 2; turn++) {
		faults_arm(FAULT_READ, hs_redo_file_name(turn), 1, FOREVER, EIO);
		assert_true(hs_test_embedded_open(test) < 0);
		assert_non_null(strstr(test->error, test->folder));
		assert_non_null(strstr(test->error, hs_redo_file_name(turn)));
		assert_non_null(strstr(test->error, strerror(EIO)));
		faults_heal();
	}
	assert_int_equal(hs_test_embedded_open(test), 0);
	assert_string_equal(hs_test_embedded_read(test, "get key"), "$1\r\n1\r\n");
	end(bench);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(lost_writes_of_stores_fail_the_checkpoint),
		TEST(a_single_lost_write_of_any_file),
		TEST(denied_writes_of_stores),
		TEST(denied_meta_pages),
		TEST(denied_writes_of_any_file),
		TEST(denied_syncs_of_any_file),
		TEST(every_write_is_denied),
		TEST(a_start_that_fails_loses_nothing),
		TEST(a_late_failure_of_the_log_takes_the_group_back),
		TEST(a_store_that_was_given_up_is_read),
		TEST(an_unreadable_log_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
