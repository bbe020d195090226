/* Goal: heatsink remembers scripts for servers that lose them: it knows a script that a server accepted by its
 * digest, does not know a refused one, and forgets all at SCRIPT FLUSH.
 *
 * Method: finished operations, as the flow reports them, with the replies of servers. */
#include "engine/redis/scripts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* SHA-1 digests of "return 1" and "return 2". */
#define ONE "e0e1f9fabfc9d4800c877a703b823ac0578ff8db"
#define TWO "7f923f79fe76194c868d7e1d0820de36700eb649"

static const struct hs_command eval = {.name = "eval", .id = HS_CMD_IDS};
static const struct hs_command eval_ro = {.name = "eval_ro", .id = HS_CMD_IDS};
static const struct hs_command load = {.name = "script|load", .id = HS_CMD_IDS};
static const struct hs_command flush = {.name = "script|flush", .id = HS_CMD_IDS};
static const struct hs_command hget = {.name = "hget", .id = HS_CMD_IDS};

/* Reports a finished operation: a request of up to three words, and its reply. */
static void note(struct hs_scripts *scripts, uint32_t worker, const struct hs_command *command,
		 const char *second, const char *third, const char *reply)
{
	struct hs_bytes argv[3] = {hs_bytes_of("x"), hs_bytes_of(second), hs_bytes_of(third)};
	struct hs_buf out = {0};
	struct hs_op op = {
		.kind = HS_OP_COMMAND,
		.command = command,
		.argv = argv,
		.argc = 3,
		.worker = worker,
		.out = &out,
		.answer = hs_bytes_of(reply),
	};

	hs_scripts_note(scripts, &op);
	/* The same reply again, this time in the `out` buffer. */
	hs_buf_append_bytes(&out, op.answer);
	op.answer.len = 0;
	hs_scripts_note(scripts, &op);
	hs_buf_deinit(&out);
}

static bool knows(struct hs_scripts *scripts, const char *digest, const char *text)
{
	struct hs_buf script = {0};
	bool found = hs_scripts_find(scripts, hs_bytes_of(digest), &script);

	if (found)
		assert_true(hs_bytes_equal(hs_buf_bytes(&script), hs_bytes_of(text)));
	hs_buf_deinit(&script);
	return found;
}

static void test_an_accepted_script_is_remembered(void **state)
{
	struct hs_scripts *scripts = hs_scripts_create(2);

	(void)state;
	assert_false(knows(scripts, ONE, ""));
	note(scripts, 0, &eval, "return 1", "0", ":1\r\n");
	assert_true(knows(scripts, ONE, "return 1"));
	assert_true(knows(scripts, "E0E1F9FABFC9D4800C877A703B823AC0578FF8DB", "return 1"));
	assert_false(knows(scripts, "e0e1", ""));
	assert_false(knows(scripts, "x0e1f9fabfc9d4800c877a703b823ac0578ff8db", ""));
	note(scripts, 1, &load, "LOAD", "return 2", "$40\r\n" TWO "\r\n");
	assert_true(knows(scripts, TWO, "return 2"));
	note(scripts, 0, &hget, "return 1", "x", "$-1\r\n");
	hs_scripts_destroy(&scripts);
	scripts = hs_scripts_create(1);
	note(scripts, 0, &eval_ro, "return 2", "0", ":2\r\n");
	assert_true(knows(scripts, TWO, "return 2"));
	hs_scripts_destroy(&scripts);
	assert_null(scripts);
}

/* A script that the server refused is not remembered: its digest is unknown. */
static void test_a_refused_script_is_not_remembered(void **state)
{
	struct hs_scripts *scripts = hs_scripts_create(1);

	(void)state;
	note(scripts, 0, &eval, "return 1", "x",
	     "-ERR value is not an integer or out of range\r\n");
	note(scripts, 0, &load, "LOAD", "return 2", "-CLUSTERDOWN\r\n");
	note(scripts, 0, &hget, "return 1", "x", "$-1\r\n");
	assert_false(knows(scripts, ONE, ""));
	assert_false(knows(scripts, TWO, ""));
	/* This time the server accepts the script. */
	note(scripts, 0, &eval, "return 1", "0", ":1\r\n");
	assert_true(knows(scripts, ONE, "return 1"));
	hs_scripts_destroy(&scripts);
}

static void test_flushed_is_forgotten_until_it_comes_again(void **state)
{
	struct hs_scripts *scripts = hs_scripts_create(2);

	(void)state;
	for (uint32_t worker = 0; worker < 2; worker++) {
		note(scripts, 0, &eval, "return 1", "0", ":1\r\n");
		note(scripts, 1, &eval, "return 1", "0", ":1\r\n");
		note(scripts, worker, &flush, "FLUSH", "NOSUCH", "-ERR syntax error\r\n");
		assert_true(knows(scripts, ONE, "return 1"));
		note(scripts, worker, &flush, "FLUSH", "SYNC", "+OK\r\n");
		assert_false(knows(scripts, ONE, ""));
		note(scripts, 1 - worker, &eval, "return 1", "0", ":1\r\n");
		assert_true(knows(scripts, ONE, "return 1"));
	}
	hs_scripts_destroy(&scripts);
}

static void test_flushed_in_a_transaction(void **state)
{
	struct hs_op_tx_command commands[] = {{.command = &hget}, {.command = &flush}};
	struct hs_op_tx tx = {commands, 2};
	struct hs_buf out = {0};
	struct hs_op op = {.kind = HS_OP_EXEC,
			   .command = &hget,
			   .tx = &tx,
			   .out = &out,
			   .answer = hs_bytes_of("*2\r\n$-1\r\n+OK\r\n")};
	struct hs_scripts *scripts = hs_scripts_create(1);

	(void)state;
	note(scripts, 0, &eval, "return 1", "0", ":1\r\n");
	tx.count = 1;
	hs_scripts_note(scripts, &op);
	assert_true(knows(scripts, ONE, "return 1"));
	tx.count = 2;
	hs_scripts_note(scripts, &op);
	assert_false(knows(scripts, ONE, ""));
	hs_scripts_destroy(&scripts);
}

/* After 4096 further scripts the oldest is evicted. */
static void test_the_oldest_script_is_evicted(void **state)
{
	struct hs_scripts *scripts = hs_scripts_create(1);
	char text[64];

	(void)state;
	note(scripts, 0, &eval, "return 1", "0", ":1\r\n");
	note(scripts, 0, &eval, "return 2", "0", ":2\r\n");
	for (int i = 0; i < 4095; i++) {
		snprintf(text, sizeof text, "return 'number %d'", i);
		note(scripts, 0, &eval, text, "0", "$1\r\nx\r\n");
	}
	assert_false(knows(scripts, ONE, ""));
	assert_true(knows(scripts, TWO, "return 2"));
	hs_scripts_destroy(&scripts);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_an_accepted_script_is_remembered),
		cmocka_unit_test(test_a_refused_script_is_not_remembered),
		cmocka_unit_test(test_flushed_is_forgotten_until_it_comes_again),
		cmocka_unit_test(test_flushed_in_a_transaction),
		cmocka_unit_test(test_the_oldest_script_is_evicted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
