/* Goal: a large read that reaches the committer does not copy its value in the committer. The worker reads the
 * value later from a lent snapshot, which has every write before the read and no write after it.
 *
 * Method: groups run by hand, with loans; the test writes the deferred replies when it wants, after further
 * writes. */
#include "base/limits.h"
#include "base/mem.h"
#include "tests/lib/embedded.h"
#include "tests/lib/faults.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { LARGE = 300 * 1024 };

struct bench {
	struct hs_test_embedded test;
	struct hs_snapshot_loans loans;
	char value[LARGE];
};

static int setup(void **state)
{
	struct bench *bench = hs_mem_zalloc(sizeof *bench);

	hs_test_embedded_init(&bench->test);
	bench->test.options.log_bytes = 64 * HS_MIB;
	assert_int_equal(hs_test_embedded_open(&bench->test), 0);
	hs_snapshot_loans_init(&bench->loans, &bench->test.database);
	bench->test.group.loans = &bench->loans;
	*state = bench;
	return 0;
}

static int teardown(void **state)
{
	struct bench *bench = *state;

	hs_snapshot_loans_deinit(&bench->loans);
	hs_test_embedded_close(&bench->test);
	hs_test_embedded_deinit(&bench->test);
	hs_mem_free(&bench);
	return 0;
}

static size_t add(struct bench *bench, const char *words)
{
	return hs_test_embedded_add(&bench->test, words, (struct hs_bytes){NULL, 0});
}

static size_t add_set(struct bench *bench, char fill)
{
	memset(bench->value, fill, sizeof bench->value);
	return hs_test_embedded_add(&bench->test, "SET k",
				    (struct hs_bytes){bench->value, sizeof bench->value});
}

static bool reply_unwritten(struct bench *bench, size_t number)
{
	return bench->test.ops[number].op.reply_unwritten;
}

/* Writes a deferred reply, as the worker does. */
static const char *write_reply(struct bench *bench, size_t number)
{
	struct hs_op *op = &bench->test.ops[number].op;
	struct hs_snapshot_loan *loan = op->engine_data;

	assert_true(op->reply_unwritten);
	assert_int_equal(op->out->len, 0);
	hs_reader_run_loan(&bench->test.reader, loan, op);
	op->reply_unwritten = false;
	hs_snapshot_loan_put(loan);
	return hs_test_embedded_reply(&bench->test, number);
}

static void holds(const char *reply, char fill)
{
	char head[32];
	int len = snprintf(head, sizeof head, "$%d\r\n", (int)LARGE);

	assert_memory_equal(reply, head, (size_t)len);
	assert_int_equal(strlen(reply), (size_t)len + LARGE + 2);
	assert_int_equal(reply[len], fill);
	assert_int_equal(reply[len + LARGE - 1], fill);
}

static uint32_t lent(struct bench *bench)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < (uint32_t)bench->loans.stores * HS_STORE_LOANS; i++)
		count += atomic_load(&bench->loans.loans[i].lent);
	return count;
}

static void test_each_read_sees_its_own_point_in_time(void **state)
{
	struct bench *bench = *state;
	size_t reads[3];

	for (int i = 0; i < 3; i++) {
		add_set(bench, (char)('a' + i));
		reads[i] = add(bench, "GET k");
	}
	hs_test_embedded_run(&bench->test);
	assert_int_equal(lent(bench), 3);
	for (int i = 2; i >= 0; i--)
		holds(write_reply(bench, reads[i]), (char)('a' + i));
	assert_int_equal(lent(bench), 0);
	assert_int_equal(hs_counter_get(&bench->test.group.counters.lent), 3);
}

/* Large reads in a row share a snapshot. The last reply is never written, because its client has disconnected. */
static void test_reads_in_a_row_share(void **state)
{
	struct bench *bench = *state;
	size_t first, reads[8];

	first = add_set(bench, 'a');
	/* The SET is answered, and its commit is postponed. */
	hs_test_embedded_run(&bench->test);
	assert_string_equal(hs_test_embedded_reply(&bench->test, first), "+OK\r\n");
	for (int i = 0; i < 8; i++)
		reads[i] = add(bench, "GET k");
	hs_test_embedded_run(&bench->test);
	assert_int_equal(lent(bench), 1);
	for (int i = 0; i < 7; i++)
		holds(write_reply(bench, reads[i]), 'a');
	assert_int_equal(lent(bench), 1);
	hs_snapshot_loan_put(bench->test.ops[reads[7]].op.engine_data);
	assert_int_equal(lent(bench), 0);
}

static void test_small_reads_and_writes_stay(void **state)
{
	struct bench *bench = *state;
	size_t small, taken;

	add_set(bench, 'a');
	add(bench, "SET small 1");
	small = add(bench, "GET small");
	taken = add(bench, "GETDEL k");
	hs_test_embedded_run(&bench->test);
	assert_false(reply_unwritten(bench, small));
	assert_string_equal(hs_test_embedded_reply(&bench->test, small), "$1\r\n1\r\n");
	assert_false(reply_unwritten(bench, taken));
	holds(hs_test_embedded_reply(&bench->test, taken), 'a');
}

static void test_more_than_may_be_lent(void **state)
{
	struct bench *bench = *state;
	size_t reads[HS_STORE_LOANS + 2];

	for (int i = 0; i < HS_STORE_LOANS + 2; i++) {
		add_set(bench, (char)('a' + i));
		reads[i] = add(bench, "GET k");
	}
	hs_test_embedded_run(&bench->test);
	assert_int_equal(lent(bench), HS_STORE_LOANS);
	for (int i = 0; i < HS_STORE_LOANS; i++)
		holds(write_reply(bench, reads[i]), (char)('a' + i));
	for (int i = HS_STORE_LOANS; i < HS_STORE_LOANS + 2; i++) {
		assert_false(reply_unwritten(bench, reads[i]));
		holds(hs_test_embedded_reply(&bench->test, reads[i]), (char)('a' + i));
	}
}

/* A transaction that only reads gets one snapshot for all its replies. */
static void test_transaction_of_reads(void **state)
{
	struct bench *bench = *state;
	const struct hs_bytes argv[] = {HS_LIT("GET"), HS_LIT("k")};
	const struct hs_command *get = hs_command_find(argv[0]);
	struct hs_op_tx_command commands[] = {
		{.command = get, .argv = argv, .argc = 2},
		{.command = get, .argv = argv, .argc = 2, .answered = HS_LIT("+PONG\r\n")},
	};
	struct hs_op_tx tx = {.commands = commands, .count = 2};
	size_t exec;
	const char *reply;

	add_set(bench, 'a');
	hs_test_embedded_run(&bench->test);
	exec = add(bench, "GET k");
	bench->test.ops[exec].op.kind = HS_OP_EXEC;
	bench->test.ops[exec].op.tx = &tx;
	hs_test_embedded_run(&bench->test);
	assert_true(reply_unwritten(bench, exec));
	reply = write_reply(bench, exec);
	assert_memory_equal(reply, "*2\r\n", 4);
	assert_string_equal(reply + strlen(reply) - 7, "+PONG\r\n");
}

/* For a loan, the store must commit its postponed changes, but cannot write its meta page. The engine then
 * answers the read from the store's fallback. */
static void test_a_commit_that_fails_for_a_loan(void **state)
{
	struct bench *bench = *state;
	struct hs_test_embedded *test = &bench->test;
	size_t number;

	add_set(bench, 'a');
	hs_test_embedded_run(test);
	hs_snapshot_loans_deinit(&bench->loans);
	/* The restart makes sure that the store's file has the key. */
	hs_test_embedded_close(test);
	assert_int_equal(hs_test_embedded_open(test), 0);
	hs_snapshot_loans_init(&bench->loans, &test->database);
	test->group.loans = &bench->loans;
	add(bench, "SET {k}x 1");
	hs_test_embedded_run(test);
	assert_true(test->database.stores[test->ops[0].op.partition].write.postponed.len > 0);
	snprintf(faults->file, sizeof faults->file, "store-");
	faults->nth = 1;
	faults->times = 1000;
	faults->error = EIO;
	faults->kinds = FAULT_META;
	number = add(bench, "GET k");
	hs_test_embedded_run(test);
	faults->kinds = 0;
	assert_true(test->group.failed);
	assert_false(reply_unwritten(bench, number));
	assert_memory_equal(hs_test_embedded_reply(test, number), "$", 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_each_read_sees_its_own_point_in_time, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_reads_in_a_row_share, setup, teardown),
		cmocka_unit_test_setup_teardown(test_small_reads_and_writes_stay, setup, teardown),
		cmocka_unit_test_setup_teardown(test_more_than_may_be_lent, setup, teardown),
		cmocka_unit_test_setup_teardown(test_transaction_of_reads, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_commit_that_fails_for_a_loan, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
