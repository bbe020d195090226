/* Goal: MULTI, EXEC, DISCARD, WATCH and UNWATCH answer as Redis does. Other clients see a transaction as one step,
 * and a changed watched key aborts it.
 *
 * Method: scripts of one or two clients in the simulated world. */
#include "tests/lib/script.h"

#include "base/limits.h"

#define CROSSSLOT "-CROSSSLOT Keys in request don't hash to the same slot\r\n"
#define EXECABORT "-EXECABORT Transaction discarded because of previous errors.\r\n"

struct two {
	struct hs_sim_world *world;
	struct hs_sim_client *a, *b;
};

/* The test's two clients, on two workers. */
static struct two open_two(void)
{
	struct hs_sim_world_options options = hs_sim_world_defaults(1);
	struct two two;

	options.workers = 2;
	two.world = hs_sim_world_create(&options);
	two.a = hs_sim_client_connect(two.world, 0);
	two.b = hs_sim_client_connect(two.world, 1);
	return two;
}

/* Sends a command and runs the world until it is idle. */
static void ask(struct hs_sim_client *client, const char *words)
{
	hs_sim_client_request(client, words);
	hs_sim_world_settle(client->world);
}

/* Asserts the counts of a command in the first worker's commandstats. */
static void counted(const struct two *two, enum hs_command_id id, uint64_t calls, uint64_t failed)
{
	const struct hs_core_stats *stats = hs_core_stats(hs_sim_world_core(two->world, 0));

	assert_int_equal(hs_counter_get(&stats->command[id].calls), calls);
	assert_int_equal(hs_counter_get(&stats->command[id].failed), failed);
}

/* As in Redis, commandstats count each command of a transaction that ran, and each command that failed. */
static void test_commands_are_counted(void **state)
{
	struct two two = open_two();

	(void)state;
	ask(two.a, "SET foo x");
	ask(two.a, "MULTI");
	ask(two.a, "INCR foo");
	ask(two.a, "DBSIZE");
	ask(two.a, "GET foo");
	counted(&two, HS_CMD_ID_INCR, 0, 0);
	ask(two.a, "EXEC");
	counted(&two, HS_CMD_ID_INCR, 1, 1);
	counted(&two, HS_CMD_ID_DBSIZE, 1, 0);
	counted(&two, HS_CMD_ID_GET, 1, 0);
	counted(&two, HS_CMD_ID_EXEC, 1, 0);
	ask(two.a, "MULTI");
	ask(two.a, "INCR foo");
	ask(two.a, "DISCARD");
	ask(two.a, "WATCH foo");
	ask(two.b, "SET foo y");
	ask(two.a, "MULTI");
	ask(two.a, "INCR foo");
	ask(two.a, "EXEC"); /* the watch aborts the transaction */
	counted(&two, HS_CMD_ID_INCR, 1, 1);
	counted(&two, HS_CMD_ID_EXEC, 2, 0);
	hs_sim_world_destroy(&two.world);
}

static void test_commands_wait_for_exec(void **state)
{
	struct two two = open_two();

	(void)state;
	ask(two.a, "MULTI");
	ask(two.a, "SET foo 5");
	ask(two.a, "INCR foo");
	ask(two.a, "PING");
	ask(two.a, "ECHO x");
	ask(two.a, "GET foo");
	received(two.a, "+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n");
	ask(two.b, "GET foo");
	received(two.b, "$-1\r\n");
	ask(two.a, "EXEC");
	received(two.a, "*5\r\n+OK\r\n:6\r\n+PONG\r\n$1\r\nx\r\n$1\r\n6\r\n");
	counted(&two, HS_CMD_ID_SET, 1, 0);
	counted(&two, HS_CMD_ID_INCR, 1, 0);
	counted(&two, HS_CMD_ID_ECHO, 1, 0);
	counted(&two, HS_CMD_ID_EXEC, 1, 0);
	ask(two.a, "EXEC");
	received(two.a, "-ERR EXEC without MULTI\r\n");
	ask(two.a, "MULTI");
	ask(two.a, "EXEC");
	received(two.a, "+OK\r\n*0\r\n");
	hs_sim_world_destroy(&two.world);
}

static void test_a_command_that_fails_does_not_stop_the_others(void **state)
{
	struct two two = open_two();

	(void)state;
	ask(two.a, "MULTI");
	ask(two.a, "SET foo x");
	ask(two.a, "INCR foo");
	ask(two.a, "APPEND foo y");
	ask(two.a, "EXEC");
	received(two.a, "+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n"
			"*3\r\n+OK\r\n-ERR value is not an integer or out of range\r\n:2\r\n");
	hs_sim_world_destroy(&two.world);
}

/* CLIENT SETNAME and similar commands are a part of the transaction: if EXEC aborts it, they do not run. A
 * command after EXEC in the same packet sees the state after EXEC. */
static void test_local_commands_run_with_the_transaction_or_not_at_all(void **state)
{
	static const char *const transaction[] = {"WATCH foo",	  "MULTI", "CLIENT SETNAME later",
						  "SET foo mine", "PING",  "CLIENT GETNAME"};

	(void)state;
	for (int lost = 0; lost < 2; lost++) {
		struct two two = open_two();

		ask(two.a, "CLIENT SETNAME first");
		for (size_t i = 0; i < sizeof transaction / sizeof *transaction; i++)
			ask(two.a, transaction[i]);
		if (lost)
			ask(two.b, "SET foo theirs");
		hs_sim_client_request(two.a, "EXEC");
		hs_sim_client_request(two.a, "CLIENT GETNAME");
		ask(two.a, "GET foo");
		if (lost)
			received(two.a, "+OK\r\n+OK\r\n+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n"
					"+QUEUED\r\n*-1\r\n$5\r\nfirst\r\n$6\r\ntheirs\r\n");
		else
			received(two.a, "+OK\r\n+OK\r\n+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n"
					"+QUEUED\r\n*4\r\n+OK\r\n+OK\r\n+PONG\r\n$5\r\nlater\r\n"
					"$5\r\nlater\r\n$4\r\nmine\r\n");
		hs_sim_world_destroy(&two.world);
	}
}

static void test_discard(void **state)
{
	struct two two = open_two();

	(void)state;
	ask(two.a, "DISCARD");
	received(two.a, "-ERR DISCARD without MULTI\r\n");
	ask(two.a, "MULTI");
	ask(two.a, "SET foo 1");
	ask(two.a, "DISCARD");
	ask(two.a, "GET foo");
	received(two.a, "+OK\r\n+QUEUED\r\n+OK\r\n$-1\r\n");
	hs_sim_world_destroy(&two.world);
}

static void test_a_refused_command_aborts_the_transaction(void **state)
{
	static const struct {
		const char *command;
		const char *error;
	} cases[] = {
		{"NOPE", "-ERR unknown command 'NOPE', with args beginning with: \r\n"},
		{"GET", "-ERR wrong number of arguments for 'get' command\r\n"},
		{"CLIENT NOPE", "-ERR unknown subcommand 'NOPE'. Try CLIENT HELP.\r\n"},
		{"RENAME foo bar", CROSSSLOT},
		{"MGET foo bar", CROSSSLOT},
		{"DEBUG SLEEP 1", "-ERR 'debug|sleep' holds up its connection and cannot be part "
				  "of a transaction; send it before MULTI\r\n"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct two two = open_two();

		ask(two.a, "MULTI");
		ask(two.a, "SET foo 1");
		received(two.a, "+OK\r\n+QUEUED\r\n");
		ask(two.a, cases[i].command);
		received_bytes(two.a, cases[i].error, strlen(cases[i].error), __FILE__, __LINE__);
		ask(two.a, "EXEC");
		received(two.a, EXECABORT);
		ask(two.a, "GET foo");
		received(two.a, "$-1\r\n");
		hs_sim_world_destroy(&two.world);
	}
}

/* Commands that other partitions, other workers or the process answer have their replies in the order of the
 * transaction. */
static void test_commands_over_everything(void **state)
{
	struct two two = open_two();

	(void)state;
	ask(two.b, "SET other 1");
	received(two.b, "+OK\r\n");
	ask(two.a, "MULTI");
	ask(two.a, "SET foo 5");
	ask(two.a, "DBSIZE");
	ask(two.a, "INFO");
	ask(two.a, "DEL foo");
	ask(two.a, "SLOWLOG LEN");
	ask(two.a, "DBSIZE");
	ask(two.a, "KEYS *");
	ask(two.a, "PING");
	received(two.a, "+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n"
			"+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n");
	hs_sim_client_request(two.a, "EXEC");
	hs_sim_client_request(two.a, "SET foo 6");
	ask(two.a, "DBSIZE");
	received(two.a, "*8\r\n+OK\r\n:2\r\n-ERR there is no host in a simulated world\r\n:1\r\n"
			":0\r\n:1\r\n*1\r\n$5\r\nother\r\n+PONG\r\n+OK\r\n:2\r\n");
	hs_sim_world_destroy(&two.world);
}

/* FLUSHDB writes to all partitions and cannot be atomic with keys of one slot, so EXEC refuses the transaction.
 * Without such keys, EXEC allows FLUSHDB. */
static void test_writes_to_every_partition(void **state)
{
	static const char *const with_keys[][2] = {{"FLUSHDB", "SET foo 1"},
						   {"GET foo", "FLUSHALL"}};
	struct two two = open_two();

	(void)state;
	ask(two.b, "SET other 1");
	received(two.b, "+OK\r\n");
	for (size_t i = 0; i < 2; i++) {
		char error[256];

		ask(two.a, "MULTI");
		ask(two.a, with_keys[i][0]);
		ask(two.a, with_keys[i][1]);
		received(two.a, "+OK\r\n+QUEUED\r\n+QUEUED\r\n");
		ask(two.a, "EXEC");
		snprintf(error, sizeof error,
			 "-EXECABORT Transaction discarded because of: '%s' writes to every "
			 "partition "
			 "and cannot be atomic with keys of one slot; send it outside of MULTI, or "
			 "in "
			 "a transaction without keys and WATCH\r\n",
			 i == 0 ? "flushdb" : "flushall");
		received_bytes(two.a, error, strlen(error), __FILE__, __LINE__);
	}
	ask(two.a, "MULTI");
	ask(two.a, "DBSIZE");
	ask(two.a, "FLUSHDB");
	ask(two.a, "EXEC");
	ask(two.a, "DBSIZE");
	received(two.a, "+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n:1\r\n+OK\r\n:0\r\n");
	hs_sim_world_destroy(&two.world);
}

/* MULTI inside MULTI is refused as in Redis. The rest of the transaction runs. */
static void test_nesting(void **state)
{
	struct two two = open_two();

	(void)state;
	ask(two.a, "MULTI");
	ask(two.a, "MULTI");
	ask(two.a, "WATCH foo");
	ask(two.a, "SET foo 1");
	ask(two.a, "EXEC");
	received(two.a, "+OK\r\n-ERR MULTI calls can not be nested\r\n"
			"-ERR WATCH inside MULTI is not allowed\r\n+QUEUED\r\n*1\r\n+OK\r\n");
	hs_sim_world_destroy(&two.world);
}

static void test_keys_of_several_slots(void **state)
{
	struct two two = open_two();

	(void)state;
	ask(two.a, "MULTI");
	ask(two.a, "SET foo 1");
	ask(two.a, "SET bar 1");
	ask(two.a, "EXEC");
	received(two.a, "+OK\r\n+QUEUED\r\n+QUEUED\r\n" CROSSSLOT);
	ask(two.a, "WATCH foo");
	ask(two.a, "WATCH bar");
	received(two.a, "+OK\r\n" CROSSSLOT);
	ask(two.a, "MULTI");
	ask(two.a, "SET bar 1");
	ask(two.a, "EXEC");
	received(two.a, "+OK\r\n+QUEUED\r\n" CROSSSLOT);
	ask(two.a, "MGET foo bar");
	received(two.a, "*2\r\n$-1\r\n$-1\r\n");
	hs_sim_world_destroy(&two.world);
}

static void test_a_changed_watched_key_aborts_the_transaction(void **state)
{
	struct two two = open_two();

	(void)state;
	ask(two.a, "WATCH foo");
	ask(two.b, "SET foo 9");
	ask(two.a, "MULTI");
	ask(two.a, "SET foo 1");
	ask(two.a, "EXEC");
	received(two.a, "+OK\r\n+OK\r\n+QUEUED\r\n*-1\r\n");
	/* EXEC has ended the watch, so the next transaction runs. */
	ask(two.b, "SET foo 10");
	ask(two.a, "MULTI");
	ask(two.a, "INCR foo");
	ask(two.a, "EXEC");
	received(two.a, "+OK\r\n+QUEUED\r\n*1\r\n:11\r\n");
	hs_sim_world_destroy(&two.world);
}

static void test_a_watched_key_that_did_not_change(void **state)
{
	struct two two = open_two();

	(void)state;
	ask(two.b, "SET foo 9");
	ask(two.a, "WATCH foo nope{foo}");
	ask(two.b, "GET foo");
	ask(two.b, "SET bar 1");
	ask(two.a, "MULTI");
	ask(two.a, "INCR foo");
	ask(two.a, "EXEC");
	received(two.a, "+OK\r\n+OK\r\n+QUEUED\r\n*1\r\n:10\r\n");
	hs_sim_world_destroy(&two.world);
}

static void test_commands_that_unwatch(void **state)
{
	static const char *const forget[] = {"UNWATCH", "RESET"};

	(void)state;
	for (size_t i = 0; i < sizeof forget / sizeof *forget; i++) {
		struct two two = open_two();

		ask(two.a, "WATCH foo");
		ask(two.b, "SET foo 9");
		ask(two.a, forget[i]);
		two.a->received.len = 0;
		ask(two.a, "MULTI");
		ask(two.a, "INCR foo");
		ask(two.a, "EXEC");
		received(two.a, "+OK\r\n+QUEUED\r\n*1\r\n:10\r\n");
		hs_sim_world_destroy(&two.world);
	}
}

static void test_discard_unwatches(void **state)
{
	struct two two = open_two();

	(void)state;
	ask(two.a, "WATCH foo");
	ask(two.b, "SET foo 9");
	ask(two.a, "MULTI");
	ask(two.a, "DISCARD");
	ask(two.a, "MULTI");
	ask(two.a, "INCR foo");
	ask(two.a, "EXEC");
	received(two.a, "+OK\r\n+OK\r\n+OK\r\n+OK\r\n+QUEUED\r\n*1\r\n:10\r\n");
	hs_sim_world_destroy(&two.world);
}

/* EXEC checks the watched keys before it runs any command, UNWATCH included. */
static void test_unwatch_inside_comes_too_late(void **state)
{
	struct two two = open_two();

	(void)state;
	ask(two.a, "WATCH foo");
	ask(two.b, "SET foo 9");
	ask(two.a, "MULTI");
	ask(two.a, "UNWATCH");
	ask(two.a, "SET foo 1");
	ask(two.a, "EXEC");
	received(two.a, "+OK\r\n+OK\r\n+QUEUED\r\n+QUEUED\r\n*-1\r\n");
	ask(two.a, "MULTI");
	ask(two.a, "UNWATCH");
	ask(two.a, "EXEC");
	received(two.a, "+OK\r\n+QUEUED\r\n*1\r\n+OK\r\n");
	hs_sim_world_destroy(&two.world);
}

/* The client sends WATCH, MULTI and EXEC in one packet, while another client's write is in flight. */
static void test_pipelined(void **state)
{
	struct two two = open_two();

	(void)state;
	hs_sim_client_request(two.a, "WATCH foo");
	hs_sim_client_request(two.a, "GET foo");
	hs_sim_client_request(two.a, "MULTI");
	hs_sim_client_request(two.a, "INCR foo");
	hs_sim_client_request(two.a, "GET foo");
	hs_sim_client_request(two.a, "EXEC");
	hs_sim_client_request(two.a, "GET foo");
	silent(two.a);
	hs_sim_world_settle(two.world);
	received(two.a,
		 "+OK\r\n$-1\r\n+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n:1\r\n$1\r\n1\r\n$1\r\n1\r\n");
	hs_sim_world_destroy(&two.world);
}

static void test_resp3(void **state)
{
	struct two two = open_two();

	(void)state;
	ask(two.a, "HELLO 3");
	two.a->received.len = 0;
	ask(two.a, "WATCH foo");
	ask(two.b, "SET foo 9");
	ask(two.a, "MULTI");
	ask(two.a, "GET nope");
	ask(two.a, "EXEC");
	received(two.a, "+OK\r\n+OK\r\n+QUEUED\r\n" CROSSSLOT);
	ask(two.a, "WATCH foo");
	ask(two.b, "SET foo 10");
	ask(two.a, "MULTI");
	ask(two.a, "EXEC");
	received(two.a, "+OK\r\n+OK\r\n_\r\n");
	ask(two.a, "MULTI");
	ask(two.a, "GET nope");
	ask(two.a, "EXEC");
	received(two.a, "+OK\r\n+QUEUED\r\n*1\r\n_\r\n");
	hs_sim_world_destroy(&two.world);
}

/* A command with a suppressed reply must not leave a gap in the array of replies. */
static void test_every_command_has_its_element(void **state)
{
	struct two two = open_two();

	(void)state;
	ask(two.a, "MULTI");
	ask(two.a, "CLIENT REPLY SKIP");
	ask(two.a, "ECHO x");
	ask(two.a, "EXEC");
	received(two.a, "+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n+OK\r\n$1\r\nx\r\n");
	hs_sim_world_destroy(&two.world);
}

static void test_watched_keys_are_limited(void **state)
{
	struct two two = open_two();
	char text[32];

	(void)state;
	for (int i = 0; i < HS_WATCH_KEYS_MAX; i++) {
		snprintf(text, sizeof text, "WATCH {foo}%d", i);
		ask(two.a, text);
		received(two.a, "+OK\r\n");
	}
	ask(two.a, "WATCH {foo}more");
	received(two.a, "-ERR too many watched keys: at most 1024 for one connection\r\n");
	ask(two.a, "UNWATCH");
	ask(two.a, "WATCH {foo}more");
	received(two.a, "+OK\r\n+OK\r\n");
	hs_sim_world_destroy(&two.world);
}

static void test_hanging_up_in_the_middle(void **state)
{
	static const char *const scripts[][4] = {
		{"WATCH foo", NULL},
		{"MULTI", "SET foo 1", NULL},
		{"WATCH foo", "MULTI", "SET foo 1", NULL},
		{"WATCH foo", "MULTI", "SET foo 1", "EXEC"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++) {
		for (int settled = 0; settled < 2; settled++) {
			struct two two = open_two();
			bool runs = i == 3;

			for (size_t j = 0; j < 4 && scripts[i][j]; j++)
				hs_sim_client_request(two.a, scripts[i][j]);
			if (settled)
				hs_sim_world_settle(two.world);
			hs_sim_client_disconnect(two.a);
			hs_sim_world_settle(two.world);
			ask(two.b, "EXISTS foo");
			received_bytes(two.b, runs ? ":1\r\n" : ":0\r\n", 4, __FILE__, __LINE__);
			hs_sim_world_destroy(&two.world);
		}
	}
}

static void test_quit_inside(void **state)
{
	struct two two = open_two();

	(void)state;
	ask(two.a, "MULTI");
	ask(two.a, "SET foo 1");
	ask(two.a, "QUIT");
	received(two.a, "+OK\r\n+QUEUED\r\n+OK\r\n");
	assert_null(two.a->session);
	ask(two.b, "GET foo");
	received(two.b, "$-1\r\n");
	hs_sim_world_destroy(&two.world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_commands_wait_for_exec),
		cmocka_unit_test(test_commands_are_counted),
		cmocka_unit_test(test_a_command_that_fails_does_not_stop_the_others),
		cmocka_unit_test(test_local_commands_run_with_the_transaction_or_not_at_all),
		cmocka_unit_test(test_discard),
		cmocka_unit_test(test_a_refused_command_aborts_the_transaction),
		cmocka_unit_test(test_commands_over_everything),
		cmocka_unit_test(test_writes_to_every_partition),
		cmocka_unit_test(test_nesting),
		cmocka_unit_test(test_keys_of_several_slots),
		cmocka_unit_test(test_a_changed_watched_key_aborts_the_transaction),
		cmocka_unit_test(test_a_watched_key_that_did_not_change),
		cmocka_unit_test(test_commands_that_unwatch),
		cmocka_unit_test(test_discard_unwatches),
		cmocka_unit_test(test_unwatch_inside_comes_too_late),
		cmocka_unit_test(test_pipelined),
		cmocka_unit_test(test_resp3),
		cmocka_unit_test(test_every_command_has_its_element),
		cmocka_unit_test(test_watched_keys_are_limited),
		cmocka_unit_test(test_hanging_up_in_the_middle),
		cmocka_unit_test(test_quit_inside),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
