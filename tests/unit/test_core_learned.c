/* Goal: commands learned from a server are routed, their parts are merged into one reply, and the core refuses
 * commands that it cannot serve.
 *
 * Method: a core with an engine played by the test, which answers at once: partition p answers the number p, or an
 * error where the test wants one, and records the operations. */
#include "stages/stages.h"

#include "core/state.h"
#include "tests/lib/described.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { PARTITIONS = 4 };

struct town {
	struct hs_core *core;
	struct hs_session *session;
	struct hs_learned *learned;
	struct hs_log log;
	_Atomic uint64_t slowlog_ids;
	struct hs_buf asked; /* operations since the last check, as "hget@2 …" */
	/* Partition 1 answers this error instead of its number; NULL: no error. */
	const char *failing;
};

static void sink(void *context, enum hs_log_level level, const char *line)
{
	(void)context, (void)level, (void)line;
}

static enum hs_submit submit(void *context, struct hs_op *op)
{
	struct town *town = context;

	if (op->kind == HS_OP_EXEC) {
		hs_buf_printf(op->out, "*%zu\r\n", op->tx->count);
		for (size_t i = 0; i < op->tx->count; i++) {
			hs_buf_printf(&town->asked, "%s@x ", op->tx->commands[i].command->name);
			hs_buf_printf(op->out, "+%s\r\n", op->tx->commands[i].command->name);
		}
		return HS_SUBMIT_DONE;
	}
	hs_buf_printf(&town->asked, "%s@%u ", op->command->name, op->partition);
	if (town->failing && op->partition == 1)
		hs_buf_printf(op->out, "%s", town->failing);
	else
		hs_buf_printf(op->out, ":%u\r\n", op->partition);
	return HS_SUBMIT_DONE;
}

static uint64_t mono_us(void *context)
{
	(void)context;
	return 1;
}

static struct hs_bytes script(void *context, struct hs_bytes digest)
{
	(void)context;
	return hs_bytes_equal(digest, HS_LIT("reads")) ? HS_LIT("#!lua flags=no-writes\nreturn 1")
						       : (struct hs_bytes){NULL, 0};
}

static void town_open(struct town *town)
{
	static const struct hs_core_calls calls = {
		.submit = submit, .script = script, .mono_us = mono_us};
	struct hs_core_options options = {.output_bytes_max = 1 << 20, .slowlog_us = -1};
	struct hs_core_world world = {.commands = &hs_commands,
				      .stages = hs_stages,
				      .calls = &calls,
				      .context = town,
				      .log = &town->log,
				      .workers = 1,
				      .partitions = PARTITIONS,
				      .slowlog_ids = &town->slowlog_ids};
	struct hs_core_client client = {.id = 1, .address = "a:1", .local_address = "b:1"};
	struct hs_now now = {0};
	struct hs_buf reply = {0};
	char error[128];

	*town = (struct town){.log = {.sink = sink}};
	describe_commands(described_redis, described_redis_count, 2, 7, &reply);
	town->learned = hs_learned_create(hs_buf_bytes(&reply), NULL, error, sizeof error);
	assert_non_null(town->learned);
	hs_buf_deinit(&reply);
	town->core = hs_core_create(&world, &options);
	town->session = hs_core_connect(town->core, now, &client);
}

static void town_close(struct town *town)
{
	hs_core_disconnect(town->core, town->session);
	hs_core_destroy(&town->core);
	hs_learned_destroy(&town->learned);
	hs_buf_deinit(&town->asked);
}

/* Sends the request. Asserts that the engine gets the operations `asked` and the client gets `received`. */
static void says(struct town *town, const char *request, const char *asked, const char *received)
{
	struct hs_buf line = {0}, out = {0};
	struct hs_now now = {0};

	hs_buf_printf(&line, "%s\r\n", request);
	hs_core_receive(town->core, town->session, now, line.data, line.len);
	while (hs_core_next_sendable(town->core))
		hs_buf_swap(&out, hs_session_out(town->session));
	hs_buf_append(&out, "", 1);
	hs_buf_append(&town->asked, "", 1);
	assert_string_equal(town->asked.data, asked);
	assert_string_equal(out.data, received);
	town->asked.len = 0;
	hs_buf_deinit(&line);
	hs_buf_deinit(&out);
}

static void test_without_a_server(void **state)
{
	struct town town;

	(void)state;
	town_open(&town);
	says(&town, "HGET a f", "",
	     "-ERR unknown command 'HGET', with args beginning with: 'a' 'f' (the embedded engine "
	     "has "
	     "no hashes yet; with --engine, in front of a Redis server, it works)\r\n");
	says(&town, "Monitor", "",
	     "-ERR unknown command 'Monitor', with args beginning with: (heatsink refuses it on "
	     "every engine: heatsink has no stream of all commands; HEAT TOP shows the busiest "
	     "keys, "
	     "SLOWLOG GET the slowest commands)\r\n");
	says(&town, "WAIT 1 0", "",
	     "-ERR unknown command 'WAIT', with args beginning with: '1' '0' (the embedded engine "
	     "has no replicas to wait for: what it acknowledged is on disk; with --engine, in "
	     "front "
	     "of a Redis server, it works)\r\n");
	says(&town, "NOSUCH a", "",
	     "-ERR unknown command 'NOSUCH', with args beginning with: 'a' \r\n");
	says(&town, "FUNCTION LOAD x", "",
	     "-ERR unknown subcommand 'LOAD'. Try FUNCTION HELP. (the embedded engine has no "
	     "scripts; "
	     "with --engine, in front of a Redis server, it works)\r\n");
	says(&town, "FUNCTION NOSUCH", "",
	     "-ERR unknown subcommand 'NOSUCH'. Try FUNCTION HELP.\r\n");
	says(&town, "FUNCTION FLUSH", "", "+OK\r\n");
	town_close(&town);
}

static void test_places(void **state)
{
	struct town town;

	(void)state;
	town_open(&town);
	hs_core_learn(town.core, town.learned);
	says(&town, "GET a", "get@3 ", ":3\r\n");
	says(&town, "HGET a f", "hget@3 ", ":3\r\n"); /* a has slot 15495 */
	says(&town, "hget b f", "hget@0 ", ":0\r\n"); /* b has slot 3300 */
	says(&town, "EVAL s 1 a", "eval@3 ", ":3\r\n");
	says(&town, "EVAL s 0 a", "eval@0 ", ":0\r\n");
	says(&town, "MEMORY USAGE a", "memory|usage@3 ", ":3\r\n");
	says(&town, "SWAPDB 0 1", "swapdb@0 ", ":0\r\n");
	says(&town, "WAIT 0 0", "wait@0 wait@1 wait@2 wait@3 ", ":0\r\n");
	says(&town, "HGET a", "", "-ERR wrong number of arguments for 'hget' command\r\n");
	says(&town, "LMOVE a b LEFT LEFT", "",
	     "-CROSSSLOT Keys in request don't hash to the same slot\r\n");
	says(&town, "LMOVE {a}1 {a}2 LEFT LEFT", "lmove@3 ", ":3\r\n");
	says(&town, "EVAL s 2 a b", "",
	     "-CROSSSLOT Keys in request don't hash to the same slot\r\n");
	says(&town, "SCRIPT NOSUCH", "", "-ERR unknown subcommand 'NOSUCH'. Try SCRIPT HELP.\r\n");
	/* The learned row of FUNCTION FLUSH replaces the row of the built-in table. */
	says(&town, "FUNCTION FLUSH",
	     "function|flush@0 function|flush@1 function|flush@2 function|flush@3 ", ":0\r\n");
	hs_core_learn(town.core, NULL);
	says(&town, "FUNCTION FLUSH", "", "+OK\r\n");
	town_close(&town);
}

static void test_merges(void **state)
{
	struct town town;

	(void)state;
	town_open(&town);
	hs_core_learn(town.core, town.learned);
	town.failing = "-ERR no\r\n";
	says(&town, "SCRIPT LOAD x", "script|load@0 script|load@1 script|load@2 script|load@3 ",
	     "-ERR no\r\n");
	says(&town, "SCRIPT KILL", "script|kill@0 script|kill@1 script|kill@2 script|kill@3 ",
	     ":0\r\n");
	town.failing = "+odd\r\n";
	says(&town, "WAIT 0 0", "wait@0 wait@1 wait@2 wait@3 ",
	     "-ERR the replies of the partitions to 'wait' cannot be made one\r\n");
	town_close(&town);
}

/* CLIENT PAUSE WRITE holds commands that may write, and commands that Redis sends to its replicas, such as
 * PFCOUNT. */
static void test_paused(void **state)
{
	static const struct {
		const char *words, *asked, *received; /* asked "": the pause holds the command */
	} rows[] = {
		{"LPUSH a x", "", NULL},
		{"WAIT 0 0", "wait@0 wait@1 wait@2 wait@3 ", ":0\r\n"},
		{"PFCOUNT a", "", NULL},
		{"HGET a f", "hget@3 ", ":3\r\n"},
		{"EVAL \"return 1\" 1 a", "", NULL},
		{"EVAL \"#!lua flags=no-writes\\nreturn 1\" 1 a", "eval@3 ", ":3\r\n"},
		{"EVAL \"#!lua name=x flags=allow-oom,no-writes\\nreturn 1\" 1 a", "eval@3 ",
		 ":3\r\n"},
		{"EVAL \"#!lua flags=allow-oom\\nreturn 1 -- no-writes\" 1 a", "", NULL},
		{"EVAL \"#!luaflags=no-writes\\nreturn 1\" 1 a", "", NULL},
		{"EVALSHA reads 1 a", "evalsha@3 ", ":3\r\n"},
		{"EVALSHA other 1 a", "", NULL},
	};
	struct town town;

	(void)state;
	town_open(&town);
	hs_core_learn(town.core, town.learned);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		hs_pause_begin(town.core, HS_PAUSE_WRITES, UINT64_MAX);
		says(&town, rows[i].words, rows[i].asked, rows[i].received ? rows[i].received : "");
		hs_pause_end(town.core);
		/* A held command continues when the pause ends. */
		assert_int_equal(town.asked.len > 0, !rows[i].received);
		town.asked.len = 0;
		hs_session_out(town.session)->len = 0;
	}
	town_close(&town);
}

static void test_refused(void **state)
{
	struct town town;

	(void)state;
	town_open(&town);
	hs_core_learn(town.core, town.learned);
	says(&town, "MONITOR", "",
	     "-ERR 'monitor' is not for clients of heatsink: heatsink has no stream of all "
	     "commands; HEAT TOP shows the busiest keys, SLOWLOG GET the slowest commands\r\n");
	says(&town, "SCRIPT DEBUG YES", "",
	     "-ERR 'script|debug' is not for clients of heatsink: it changes the connection to "
	     "the server, which many clients share\r\n");
	says(&town, "MULTI", "", "+OK\r\n");
	says(&town, "MONITOR x", "", "-ERR wrong number of arguments for 'monitor' command\r\n");
	says(&town, "EXEC", "", "-EXECABORT Transaction discarded because of previous errors.\r\n");
	town_close(&town);
}

static void test_transactions(void **state)
{
	struct town town;

	(void)state;
	town_open(&town);
	hs_core_learn(town.core, town.learned);
	says(&town, "MULTI", "", "+OK\r\n");
	says(&town, "HGET a f", "", "+QUEUED\r\n");
	says(&town, "SWAPDB 0 1", "", "+QUEUED\r\n");
	says(&town, "EXEC", "hget@x swapdb@x ", "*2\r\n+hget\r\n+swapdb\r\n");
	says(&town, "MULTI", "", "+OK\r\n");
	says(&town, "SCRIPT LOAD x", "", "+QUEUED\r\n");
	says(&town, "HGET a f", "", "+QUEUED\r\n");
	/* The key a is on the last partition, which answers in the transaction. */
	says(&town, "EXEC", "script|load@x hget@x script|load@0 script|load@1 script|load@2 ",
	     "*2\r\n:0\r\n+hget\r\n");
	says(&town, "MULTI", "", "+OK\r\n");
	says(&town, "FUNCTION LOAD x", "", "+QUEUED\r\n");
	says(&town, "EXEC", "function|load@0 function|load@1 function|load@2 function|load@3 ",
	     "*1\r\n:0\r\n");
	town_close(&town);
}

static void test_counters(void **state)
{
	struct town town;
	const struct hs_core_command_stats *stats;

	(void)state;
	town_open(&town);
	hs_core_learn(town.core, town.learned);
	says(&town, "HGET a f", "hget@3 ", ":3\r\n");
	says(&town, "HGET a f", "hget@3 ", ":3\r\n");
	says(&town, "HGET a", "", "-ERR wrong number of arguments for 'hget' command\r\n");
	stats = &hs_core_stats(town.core)
			 ->command[hs_learned_find(town.learned, HS_LIT("hget"))->id];
	assert_int_equal(hs_counter_get(&stats->calls), 2);
	assert_int_equal(hs_counter_get(&stats->rejected), 1);
	says(&town, "COMMAND GETKEYS HGET a f", "", "*1\r\n$1\r\na\r\n");
	town_close(&town);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_without_a_server), cmocka_unit_test(test_places),
		cmocka_unit_test(test_merges),		 cmocka_unit_test(test_paused),
		cmocka_unit_test(test_refused),		 cmocka_unit_test(test_transactions),
		cmocka_unit_test(test_counters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
