/* Goal: a group runs its operations in order, each with the reply that Redis would give to the operations one by
 * one. Transactions and watches are exact, expired keys are swept, counters count.
 *
 * Method: groups put together by hand on a small database. */

#include "base/limits.h"
#include "base/mem.h"
#include "tests/lib/embedded.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define NONE ((struct hs_bytes){NULL, 0})

static int setup(void **state)
{
	struct hs_test_embedded *test = hs_mem_alloc(sizeof *test);

	hs_test_embedded_init(test);
	assert_int_equal(hs_test_embedded_open(test), 0);
	*state = test;
	return 0;
}

static int teardown(void **state)
{
	struct hs_test_embedded *test = *state;

	hs_test_embedded_kill(test);
	hs_test_embedded_deinit(test);
	hs_mem_free(&test);
	return 0;
}

/* An EXEC of up to three commands, which are given as text. */
struct exec {
	struct hs_op_tx tx;
	struct hs_op_tx_command commands[3];
	struct hs_test_op lines[3];
};

static size_t add_exec(struct hs_test_embedded *test, struct exec *exec, uint64_t watcher,
		       const char *const *lines, size_t count)
{
	size_t number = hs_test_embedded_add(test, "exec", NONE);
	struct hs_op *op = &test->ops[number].op;

	exec->tx = (struct hs_op_tx){exec->commands, count};
	for (size_t i = 0; i < count; i++) {
		size_t line = hs_test_embedded_add(test, lines[i], NONE);

		/* The group does not need this line: adding it has only split the text into words. */
		exec->lines[i] = test->ops[line];
		memcpy(exec->lines[i].argv, test->ops[line].argv, sizeof exec->lines[i].argv);
		test->ops[line].text = NULL;
		test->ops[line].out = (struct hs_buf){NULL, 0, 0};
		test->count--;
		exec->commands[i] = (struct hs_op_tx_command){
			.command = exec->lines[i].op.command,
			.argv = exec->lines[i].argv,
			.argc = exec->lines[i].op.argc,
		};
		op->slot = exec->lines[i].op.slot;
		op->partition = exec->lines[i].op.partition;
	}
	op->kind = HS_OP_EXEC;
	op->tx = &exec->tx;
	op->watcher = watcher;
	return number;
}

static void drop_exec(struct exec *exec)
{
	for (size_t i = 0; i < exec->tx.count; i++) {
		hs_mem_free(&exec->lines[i].text);
		hs_buf_deinit(&exec->lines[i].out);
	}
}

static size_t add_watch(struct hs_test_embedded *test, const char *words, uint64_t watcher)
{
	size_t number = hs_test_embedded_add(test, words, NONE);

	test->ops[number].op.kind = HS_OP_WATCH;
	test->ops[number].op.watcher = watcher;
	return number;
}

static void operations_run_in_order(void **state)
{
	struct hs_test_embedded *test = *state;
	uint64_t commits = hs_counter_get(&test->group.counters.commits);
	uint64_t syncs = hs_counter_get(&test->database.redo.counters.syncs);

	hs_test_embedded_add(test, "incr {b}n", NONE);
	hs_test_embedded_add(test, "set {a}k v", NONE);
	hs_test_embedded_add(test, "incr {b}n", NONE);
	hs_test_embedded_add(test, "get {b}n", NONE);
	hs_test_embedded_add(test, "incr {b}n", NONE);
	hs_test_embedded_add(test, "incr {a}k", NONE);
	hs_test_embedded_run(test);
	assert_string_equal(hs_test_embedded_reply(test, 0), ":1\r\n");
	assert_string_equal(hs_test_embedded_reply(test, 1), "+OK\r\n");
	assert_string_equal(hs_test_embedded_reply(test, 2), ":2\r\n");
	assert_string_equal(hs_test_embedded_reply(test, 3), "$1\r\n2\r\n");
	assert_string_equal(hs_test_embedded_reply(test, 4), ":3\r\n");
	assert_string_equal(hs_test_embedded_reply(test, 5),
			    "-ERR value is not an integer or out of range\r\n");
	assert_int_equal(hs_counter_get(&test->group.counters.commits), commits + 1);
	assert_int_equal(hs_counter_get(&test->database.redo.counters.syncs), syncs + 1);
	assert_int_equal(hs_counter_get(&test->group.counters.changes), 4);
}

static void reads_alone_touch_no_log(void **state)
{
	struct hs_test_embedded *test = *state;
	uint64_t lsn;

	hs_test_embedded_do(test, "set {b}1 x");
	lsn = test->database.redo.lsn;
	assert_string_equal(hs_test_embedded_do(test, "get {b}1"), "$1\r\nx\r\n");
	assert_string_equal(hs_test_embedded_do(test, "del {b}2"), ":0\r\n");
	assert_int_equal(test->database.redo.lsn, lsn);
	hs_test_embedded_do(test, "del {b}1");
	assert_int_equal(test->database.redo.lsn, lsn + 1);
}

static void a_transaction_is_atomic(void **state)
{
	struct hs_test_embedded *test = *state;
	const char *const lines[] = {"set {b}1 x", "incr {b}1", "get {b}1"};
	struct exec exec;
	size_t number = add_exec(test, &exec, 0, lines, 3);

	exec.commands[1].answered = HS_LIT("+PONG\r\n");
	hs_test_embedded_run(test);
	assert_string_equal(hs_test_embedded_reply(test, number),
			    "*3\r\n+OK\r\n+PONG\r\n$1\r\nx\r\n");
	drop_exec(&exec);
}

/* Advances the clock until the stores commit their postponed changes. */
static void commit_postponed(struct hs_test_embedded *test)
{
	test->now.mono_us += 10000000;
	while (hs_group_maintain(&test->group) <= test->now.mono_us)
		continue;
}

/* The engine reports every read of a missing key to the heat tables, even if the reply does not show that the key
 * is missing. */
static void reads_of_missing_keys_are_reported(void **state)
{
	static const struct {
		const char *words;
		bool missed;
	} reads[] = {
		{"get {b}no", true},	   {"strlen {b}no", true},
		{"ttl {b}no", true},	   {"get {b}1", false},
		{"strlen {b}1", false},	   {"getrange {b}1 5 9", false},
		{"exists {b}no", true},	   {"exists {b}1 {b}no", false},
		{"getbit {b}no x", false}, {"exists {b}no {b}2", true},
		{"mget {b}no {b}2", true}, {"keys {b}no", false},
	};
	const char *const lines[] = {"type {b}no", "type {b}1", "strlen {b}no"};
	struct hs_test_embedded *test = *state;
	struct exec exec;

	hs_test_embedded_do(test, "set {b}1 x");
	commit_postponed(test);
	for (size_t i = 0; i < sizeof reads / sizeof *reads; i++) {
		/* The engine must overwrite the wrong value set here. */
		size_t number = hs_test_embedded_add(test, reads[i].words, NONE);
		struct hs_op *op = &test->ops[number].op;

		op->missed = !reads[i].missed;
		hs_test_embedded_run(test);
		assert_int_equal(op->missed, reads[i].missed);
		op->missed = !reads[i].missed;
		hs_reader_refresh(&test->reader);
		assert_true(hs_reader_run(&test->reader, op));
		assert_int_equal(op->missed, reads[i].missed);
	}
	add_exec(test, &exec, 0, lines, 3);
	hs_test_embedded_run(test);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(exec.commands[i].missed, i != 1);
	drop_exec(&exec);
}

static void a_watched_key_that_changed_fails_it(void **state)
{
	struct hs_test_embedded *test = *state;
	const char *const lines[] = {"set {b}2 done"};
	struct exec first, second, third;
	size_t watched, clean, dirty, again;

	/* One group has three transactions: before the watched key changes, after it, and after the failed EXEC
	 * has dropped the watch. */
	watched = add_watch(test, "watch {b}1", 7);
	clean = add_exec(test, &first, 7, lines, 1);
	add_watch(test, "watch {b}1", 7);
	hs_test_embedded_add(test, "set {b}1 x", NONE);
	dirty = add_exec(test, &second, 7, lines, 1);
	again = add_exec(test, &third, 7, lines, 1);
	hs_test_embedded_run(test);
	assert_string_equal(hs_test_embedded_reply(test, watched), "+OK\r\n");
	assert_string_equal(hs_test_embedded_reply(test, clean), "*1\r\n+OK\r\n");
	assert_string_equal(hs_test_embedded_reply(test, dirty), "*-1\r\n");
	assert_string_equal(hs_test_embedded_reply(test, again), "*1\r\n+OK\r\n");
	drop_exec(&first);
	drop_exec(&second);
	drop_exec(&third);
}

static void unwatching_drops_it(void **state)
{
	struct hs_test_embedded *test = *state;
	const char *const lines[] = {"set {b}2 done"};
	struct exec exec;
	size_t number;

	add_watch(test, "watch {b}1", 7);
	hs_test_embedded_add(test, "set {b}1 x", NONE);
	number = hs_test_embedded_add(test, "unwatch", NONE);
	test->ops[number].op.kind = HS_OP_UNWATCH;
	test->ops[number].op.watcher = 7;
	test->ops[number].op.out = NULL;
	test->ops[number].op.partition = 0;
	number = add_exec(test, &exec, 7, lines, 1);
	hs_test_embedded_run(test);
	assert_string_equal(hs_test_embedded_reply(test, number), "*1\r\n+OK\r\n");
	drop_exec(&exec);
}

/* A value that does not fit aborts the store's transaction. The operations before it run again, but the watches
 * that they dropped stay dropped, and the result of EXEC stays the same. */
static void a_lost_transaction_runs_again(void **state)
{
	struct hs_test_embedded *test = *state;
	const char *const lines[] = {"append {b}1 b"}, *const large_lines[] = {"append {b}1 c"};
	struct exec clean_exec, dirty_exec, large_exec;
	size_t clean, dirty, large, count, watch, bytes = 200 * HS_MIB;
	char *value = hs_mem_zalloc(bytes);

	/* The limit is larger than the store's map. */
	test->database.stores[0].bytes_max = HS_GIB;
	hs_test_embedded_add(test, "append {b}1 a", NONE);
	add_watch(test, "watch {b}9", 1);
	clean = add_exec(test, &clean_exec, 1, lines, 1);
	add_watch(test, "watch {b}1", 2);
	hs_test_embedded_add(test, "append {b}1 x", NONE);
	dirty = add_exec(test, &dirty_exec, 2, lines, 1);
	watch = add_watch(test, "watch {b}8", 3);
	large = add_exec(test, &large_exec, 3, large_lines, 1);
	large_exec.lines[0].argv[2] = (struct hs_bytes){value, bytes};
	count = hs_test_embedded_add(test, "strlen {b}1", NONE);
	hs_test_embedded_run(test);
	assert_string_equal(hs_test_embedded_reply(test, 0), ":1\r\n");
	assert_string_equal(hs_test_embedded_reply(test, clean), "*1\r\n:2\r\n");
	assert_string_equal(hs_test_embedded_reply(test, dirty), "*-1\r\n");
	assert_string_equal(hs_test_embedded_reply(test, watch), "+OK\r\n");
	assert_true(strncmp(hs_test_embedded_reply(test, large), "-OOM store full", 15) == 0);
	assert_string_equal(hs_test_embedded_reply(test, count), ":3\r\n");
	hs_mem_free(&value);
	drop_exec(&clean_exec);
	drop_exec(&dirty_exec);
	drop_exec(&large_exec);
}

static bool sweep(struct hs_test_embedded *test)
{
	bool more = hs_group_sweep(&test->group, 10);

	assert_true(hs_group_finish(&test->group, false));
	return more;
}

static void expired_keys_are_swept(void **state)
{
	struct hs_test_embedded *test = *state;
	char words[64];

	for (int i = 0; i < 100; i++) {
		snprintf(words, sizeof words, "set k%d v px %d", i, 1000 + i);
		assert_string_equal(hs_test_embedded_do(test, words), "+OK\r\n");
	}
	hs_test_embedded_do(test, "set {b}stays v");
	assert_false(sweep(test));
	assert_int_equal(hs_counter_get(&test->group.counters.expired), 0);
	test->now.wall_us += 2 * 1000 * 1000;
	assert_string_equal(hs_test_embedded_read(test, "exists k5"), ":0\r\n");
	assert_true(sweep(test));
	assert_int_equal(hs_counter_get(&test->group.counters.expired), 20);
	while (sweep(test))
		continue;
	assert_int_equal(hs_counter_get(&test->group.counters.expired), 100);
	assert_int_equal(hs_counter_get(&test->database.stores[0].keys) +
				 hs_counter_get(&test->database.stores[1].keys),
			 1);
	/* The swept keys are still removed after a restart. */
	hs_test_embedded_kill(test);
	assert_int_equal(hs_test_embedded_open(test), 0);
	assert_int_equal(hs_counter_get(&test->database.stores[0].keys) +
				 hs_counter_get(&test->database.stores[1].keys),
			 1);
}

/* A write judges a key's expiry when its group runs. So a write never sees a key alive that a read has found
 * expired before. */
static void expiry_is_judged_when_it_runs(void **state)
{
	struct hs_test_embedded *test = *state;
	size_t waits;

	hs_test_embedded_do(test, "set k v px 1000");
	waits = hs_test_embedded_add(test, "getset k w", (struct hs_bytes){NULL, 0});
	test->now.wall_us += 2 * 1000 * 1000;
	hs_test_embedded_run(test);
	assert_string_equal(hs_test_embedded_reply(test, waits), "$-1\r\n");
}

/* The engine answers a write before it commits the store. A worker that reads the same key is redirected to the
 * writer; reads of other keys are not. The commit follows after some time or because of the redirected read.
 * After the redirected read, the next write commits at once. */
static void postponed_commits_are_never_missed(void **state)
{
	struct hs_test_embedded *test = *state;
	struct hs_store *store = &test->database.stores[0];
	uint64_t commits = atomic_load(&store->commits);

	hs_test_embedded_do(test, "set {b}1 x");
	hs_test_embedded_do(test, "set {b}1 y");
	assert_int_equal(atomic_load(&store->commits), commits);
	assert_string_equal(hs_test_embedded_read(test, "exists {b}2"), ":0\r\n");
	assert_int_equal(atomic_load(&store->commits), commits);
	assert_false(atomic_load(&store->redirected_reads));

	/* The writer answers the redirected read, and commits. */
	assert_string_equal(hs_test_embedded_read(test, "get {b}1"), "$1\r\ny\r\n");
	assert_int_equal(hs_counter_get(&test->reader.counters.hits), 0);
	assert_int_equal(atomic_load(&store->commits), commits + 1);
	assert_string_equal(hs_test_embedded_read(test, "get {b}1"), "$1\r\ny\r\n");
	assert_int_equal(hs_counter_get(&test->reader.counters.hits), 1);

	/* Many redirected reads show that clients read the written keys. For a while, the store postpones no
	 * commit. */
	hs_test_embedded_do(test, "set {b}1 z");
	assert_int_equal(atomic_load(&store->commits), commits + 1);
	atomic_store(&store->redirected_reads, 100);
	hs_test_embedded_do(test, "set {b}1 z");
	assert_int_equal(atomic_load(&store->commits), commits + 2);
	hs_test_embedded_do(test, "set {b}1 z");
	assert_int_equal(atomic_load(&store->commits), commits + 3);
	assert_string_equal(hs_test_embedded_read(test, "get {b}1"), "$1\r\nz\r\n");
	assert_int_equal(hs_counter_get(&test->reader.counters.hits), 2);
	test->now.mono_us += 1000000;
	hs_test_embedded_do(test, "set {b}3 z");
	assert_int_equal(atomic_load(&store->commits), commits + 3);

	/* KEYS reads the whole store, so the postponed changes must be committed first. FLUSHALL changes every
	 * key. */
	assert_non_null(strstr(hs_test_embedded_read(test, "keys {b}*"), "{b}3"));
	assert_int_equal(atomic_load(&store->commits), commits + 4);
	test->now.mono_us += 1000000;
	hs_test_embedded_do(test, "flushall");
	assert_string_equal(hs_test_embedded_read(test, "exists {b}1"), ":0\r\n");

	/* The process is killed with postponed changes. The restart finds them in the log. */
	test->now.mono_us += 1000000;
	commit_postponed(test);
	hs_test_embedded_do(test, "set {b}4 v");
	assert_true(store->write.postponed.len > 0);
	hs_test_embedded_kill(test);
	assert_int_equal(hs_test_embedded_open(test), 0);
	assert_string_equal(hs_test_embedded_read(test, "get {b}4"), "$1\r\nv\r\n");
}

/* A worker's snapshot stays open while nothing is committed. After a commit, the first read after a refresh
 * renews the snapshot. An idle worker releases the snapshot. */
static void snapshots_are_as_new_as_the_refresh(void **state)
{
	struct hs_test_embedded *test = *state;
	struct hs_reader_store *store = &test->reader.stores[0];
	size_t id;

	hs_test_embedded_do(test, "set {b}1 x");
	commit_postponed(test);
	assert_string_equal(hs_test_embedded_read(test, "get {b}1"), "$1\r\nx\r\n");
	id = mdb_txn_id(store->read.txn);
	assert_string_equal(hs_test_embedded_read(test, "get {b}1"), "$1\r\nx\r\n");
	assert_int_equal(mdb_txn_id(store->read.txn), id);
	hs_test_embedded_do(test, "set {b}1 y");
	commit_postponed(test);
	assert_string_equal(hs_test_embedded_read(test, "get {b}1"), "$1\r\ny\r\n");
	assert_int_not_equal(mdb_txn_id(store->read.txn), id);
	assert_int_equal(hs_counter_get(&test->reader.counters.hits), 3);

	hs_reader_idle(&test->reader);
	assert_true(store->read.open);
	hs_reader_idle(&test->reader);
	assert_false(store->read.open);
	assert_string_equal(hs_test_embedded_read(test, "get {b}1"), "$1\r\ny\r\n");
	assert_non_null(strstr(hs_test_embedded_read(test, "keys {b}*"), "{b}1"));
	hs_test_embedded_do(test, "set {b}2 y");
	assert_non_null(strstr(hs_test_embedded_read(test, "keys {b}*"), "{b}2"));
}

/* Runs one operation whose group takes `us` until it is on disk. Returns true if hs_group_finish has synced,
 * false if it leaves the sync to its caller. */
static bool commit_in(struct hs_test_embedded *test, const char *words, uint64_t us, bool may_defer)
{
	size_t number = hs_test_embedded_add(test, words, NONE);
	bool synced;

	assert_int_equal(hs_group_add(&test->group, &test->ops[number].op), 1);
	test->now.mono_us += us;
	synced = hs_group_finish(&test->group, may_defer);
	test->count = 0;
	return synced;
}

static uint64_t commits_of(struct hs_test_embedded *test, uint16_t store, uint64_t us)
{
	return hs_counter_get(
		&test->database.stores[store].commit_histogram[hs_coarse_histogram_bucket(us)]);
}

static uint64_t all_commits_of(struct hs_test_embedded *test, uint16_t store)
{
	uint64_t sum = 0;

	for (uint32_t step = 0; step < HS_COARSE_HISTOGRAM_BUCKETS; step++)
		sum += hs_counter_get(&test->database.stores[store].commit_histogram[step]);
	return sum;
}

static void commits_are_timed_for_the_stores_in_them(void **state)
{
	struct hs_test_embedded *test = *state;
	uint16_t here, other;

	hs_test_embedded_add(test, "set k v", NONE);
	here = test->ops[0].op.partition;
	other = !here;
	test->count = 0;
	assert_true(commit_in(test, "set k v", 5000, false));
	assert_int_equal(commits_of(test, here, 5000), 1);
	assert_true(commit_in(test, "get k", 5000, false)); /* a read has nothing to commit */
	assert_int_equal(all_commits_of(test, here), 1);

	/* The caller syncs. The commit ends when the caller reports the sync, and its time lasts until then. */
	assert_false(commit_in(test, "set k w", 100, true));
	assert_int_equal(all_commits_of(test, here), 1);
	test->now.mono_us += 70000;
	hs_group_durable(&test->group);
	assert_int_equal(commits_of(test, here, 70100), 1);
	assert_int_equal(all_commits_of(test, here), 2);
	assert_int_equal(all_commits_of(test, other), 0);

	/* A caller whose sync failed reports nothing. The next group counts only its own commit. */
	assert_false(commit_in(test, "set k x", 100, true));
	assert_true(commit_in(test, "set k y", 300, false));
	assert_int_equal(commits_of(test, here, 300), 1);
	assert_int_equal(all_commits_of(test, here), 3);
}

/* Runs a read in a worker that read its clock at `received_us`. Returns the reply, or "refused". */
static const char *read_at(struct hs_test_embedded *test, const char *words, int64_t received_us)
{
	size_t number = hs_test_embedded_add(test, words, NONE);
	struct hs_op *op = &test->ops[number].op;

	test->count = 0;
	op->received.wall_us = received_us;
	hs_reader_refresh(&test->reader);
	return hs_reader_run(&test->reader, op) ? hs_test_embedded_reply(test, number) : "refused";
}

static void show_all(struct hs_test_embedded *test)
{
	test->now.mono_us += 10 * 1000 * 1000;
	hs_group_maintain(&test->group);
}

/* A worker may be suspended between reading its clock and reading the store. Then the data are newer than the
 * clock. PTTL must still not exceed the key's time to live. */
static void a_read_is_not_dated_before_its_data(void **state)
{
	struct hs_test_embedded *test = *state;
	int64_t early_us = test->now.wall_us;

	test->now.wall_us += 50 * 1000;
	assert_string_equal(hs_test_embedded_do(test, "set k v px 20000"), "+OK\r\n");
	show_all(test);
	assert_string_equal(read_at(test, "pttl k", early_us), ":20000\r\n");
	test->now.wall_us += 10 * 1000;
	assert_string_equal(read_at(test, "pttl k", early_us), ":20000\r\n");
	assert_string_equal(read_at(test, "pttl k", early_us + 60 * 1000), ":19990\r\n");
}

/* If the clock was a day ahead for a while, readers must not expire keys early until the next commit. */
static void a_wrong_clock_is_corrected_for_readers(void **state)
{
	struct hs_test_embedded *test = *state;
	const int64_t day_us = (int64_t)86400 * 1000 * 1000;

	assert_string_equal(hs_test_embedded_do(test, "set k v px 3600000"), "+OK\r\n");
	test->now.wall_us += day_us;
	assert_string_equal(hs_test_embedded_do(test, "set {k}other v"), "+OK\r\n");
	show_all(test);
	test->now.wall_us -= day_us;
	assert_string_equal(read_at(test, "get k", test->now.wall_us), "$1\r\nv\r\n");
}

/* A write that found the key alive may have run but not be visible yet. So a worker does not decide that a key
 * has expired: it redirects the read to the writer. */
static void a_worker_does_not_decide_that_a_key_has_expired(void **state)
{
	struct hs_test_embedded *test = *state;

	assert_string_equal(hs_test_embedded_do(test, "set k v px 200"), "+OK\r\n");
	show_all(test);
	hs_test_embedded_add(test, "persist k", NONE);
	assert_int_equal(hs_group_add(&test->group, &test->ops[0].op), 1);
	test->now.wall_us += 300 * 1000;
	assert_string_equal(read_at(test, "get k", test->now.wall_us), "refused");
	hs_group_finish(&test->group, false);
	test->count = 0;
	assert_string_equal(hs_test_embedded_read(test, "get k"), "$1\r\nv\r\n");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(operations_run_in_order),
		TEST(reads_alone_touch_no_log),
		TEST(a_transaction_is_atomic),
		TEST(a_watched_key_that_changed_fails_it),
		TEST(unwatching_drops_it),
		TEST(a_lost_transaction_runs_again),
		TEST(expired_keys_are_swept),
		TEST(snapshots_are_as_new_as_the_refresh),
		TEST(postponed_commits_are_never_missed),
		TEST(commits_are_timed_for_the_stores_in_them),
		TEST(reads_of_missing_keys_are_reported),
		TEST(expiry_is_judged_when_it_runs),
		TEST(a_read_is_not_dated_before_its_data),
		TEST(a_wrong_clock_is_corrected_for_readers),
		TEST(a_worker_does_not_decide_that_a_key_has_expired),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
