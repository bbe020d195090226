/* Goal: how each command counts as heat: for which client's key, as read or write, with how many bytes, and
 * whether it missed, failed or conflicted.
 *
 * Method: clients in a simulated world; the test compares the heat of keys and partitions. A request's bytes are
 * its arguments without the command's name, and its reply; with several keys, each key counts its own part of the
 * arguments and of the reply.
 *
 * test_core_count_paths.c tests that each path through the core counts a request once; test_core_count_outcomes.c
 * tests outcomes. */
#include "tests/lib/count_world.h"

/* ---- one key ---- */

static void test_reads(void **state)
{
	struct count_world count_world = count_world_open(NULL);

	(void)state;
	ask(count_world.a, "SET a hello");
	key_has(&count_world, "a", .writes = 1, .bytes = 1 + 5 + 5);
	ask(count_world.a, "GET a"); /* reply $5\r\nhello\r\n */
	key_has(&count_world, "a", .writes = 1, .reads = 1, .bytes = 11 + 1 + 11);
	ask(count_world.b, "GETRANGE a 0 1"); /* reply $2\r\nhe\r\n */
	key_has(&count_world, "a", .writes = 1, .reads = 2, .bytes = 23 + 1 + 1 + 1 + 8);
	ask(count_world.b, "STRLEN a"); /* reply :5\r\n */
	key_has(&count_world, "a", .writes = 1, .reads = 3, .bytes = 34 + 1 + 4);
	partition_has(&count_world, A_PARTITION, .writes = 1, .reads = 3, .bytes = 39);
	partition_has(&count_world, B_PARTITION, 0);
	count_world_close(&count_world);
}

static void test_misses(void **state)
{
	struct count_world count_world = count_world_open(NULL);

	(void)state;
	ask(count_world.a, "GET a"); /* reply $-1\r\n */
	key_has(&count_world, "a", .reads = 1, .bytes = 1 + 5, .misses = 1);
	ask(count_world.a, "HELLO 3");
	ask(count_world.a, "GET a"); /* reply _\r\n */
	key_has(&count_world, "a", .reads = 2, .bytes = 6 + 1 + 3, .misses = 2);
	ask(count_world.a, "SET a \x01");
	ask(count_world.a, "GET a");
	key_has(&count_world, "a", .reads = 3, .writes = 1, .bytes = 10 + 7 + 8, .misses = 2);
	/* A read of a missing key counts as a miss. A write of a missing key counts only as a write. */
	ask(count_world.a, "GETDEL b");
	key_has(&count_world, "b", .writes = 1, .bytes = 1 + 3);
	partition_has(&count_world, B_PARTITION, .writes = 1, .bytes = 4);
	count_world_close(&count_world);
}

static void test_writes(void **state)
{
	static const struct {
		const char *command;
		uint64_t bytes;
	} cases[] = {
		{"SET a 7", 1 + 1 + 5},	   {"SET a 7 EX 100", 1 + 1 + 2 + 3 + 5},
		{"INCR a", 1 + 4},	   {"APPEND a bcd", 1 + 3 + 4},
		{"GETSET a x", 1 + 1 + 5}, {"EXPIRE a 100", 1 + 3 + 4},
		{"DEL a", 1 + 4},	   {"GETEX a", 1 + 5},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct count_world count_world = count_world_open(NULL);

		ask(count_world.a, cases[i].command);
		key_has(&count_world, "a", .writes = 1, .bytes = cases[i].bytes);
		count_world_close(&count_world);
	}
}

static void test_conditional_writes(void **state)
{
	struct count_world count_world = count_world_open(NULL);

	(void)state;
	/* A conditional write that took place is no conflict. */
	ask(count_world.a, "SET a 1 NX");
	ask(count_world.a, "SET a 1 XX");
	ask(count_world.a, "SETNX b 1");
	key_has(&count_world, "a", .writes = 2, .bytes = 2 * (1 + 1 + 2 + 5));
	key_has(&count_world, "b", .writes = 1, .bytes = 1 + 1 + 4);
	/* A conditional write that the server refused is a conflict. */
	ask(count_world.a, "SET a 1 NX");
	key_has(&count_world, "a", .writes = 3, .bytes = 27, .conflicts = 1);
	ask(count_world.a, "SET c 1 XX");
	key_has(&count_world, "c", .writes = 1, .bytes = 9, .conflicts = 1);
	ask(count_world.a, "SETNX b 2");
	key_has(&count_world, "b", .writes = 2, .bytes = 12, .conflicts = 1);
	ask(count_world.a, "HELLO 3");
	ask(count_world.a, "set a 1 PX 100000 nx"); /* reply _\r\n */
	key_has(&count_world, "a", .writes = 4, .bytes = 27 + 1 + 1 + 2 + 6 + 2 + 3,
		.conflicts = 2);
	count_world_close(&count_world);
}

/* With GET, SET answers the old value. A null reply to SET NX GET means that the key was missing, so the write
 * took place. The word GET may also be the value. */
static void test_set_with_get_is_no_conflict(void **state)
{
	struct count_world count_world = count_world_open(NULL);

	(void)state;
	ask(count_world.a, "SET a 1 NX GET"); /* reply $-1\r\n */
	key_has(&count_world, "a", .writes = 1, .bytes = 1 + 1 + 2 + 3 + 5);
	ask(count_world.a, "SET a 2 get");
	ask(count_world.a, "SET b 2 GET");
	key_has(&count_world, "a", .writes = 2, .bytes = 12 + 1 + 1 + 3 + 7);
	key_has(&count_world, "b", .writes = 1, .bytes = 1 + 1 + 3 + 5);
	ask(count_world.a, "SET a GET NX");
	key_has(&count_world, "a", .writes = 3, .bytes = 24 + 1 + 3 + 2 + 5, .conflicts = 1);
	count_world_close(&count_world);
}

static void test_conditional_writes_of_two_keys(void **state)
{
	struct count_world count_world = count_world_open(NULL);

	(void)state;
	ask(count_world.a, "MSETNX {a}1 x {a}2 yy"); /* reply :1\r\n, two bytes each */
	key_has(&count_world, "{a}1", .writes = 1, .bytes = 4 + 1 + 2);
	key_has(&count_world, "{a}2", .writes = 1, .bytes = 4 + 2 + 2);
	ask(count_world.a, "MSETNX {a}2 x {a}3 yyy");
	key_has(&count_world, "{a}2", .writes = 2, .bytes = 8 + 7, .conflicts = 1);
	key_has(&count_world, "{a}3", .writes = 1, .bytes = 9, .conflicts = 1);
	ask(count_world.a, "RENAMENX {a}1 {a}2");
	key_has(&count_world, "{a}1", .writes = 2, .bytes = 7 + 4 + 2, .conflicts = 1);
	key_has(&count_world, "{a}2", .writes = 3, .bytes = 15 + 4 + 2, .conflicts = 2);
	ask(count_world.a, "RENAMENX {a}1 {a}3");
	key_has(&count_world, "{a}1", .writes = 3, .bytes = 13 + 6, .conflicts = 1);
	key_has(&count_world, "{a}3", .writes = 2, .bytes = 9 + 6, .conflicts = 1);
	partition_has(&count_world, A_PARTITION, .writes = 8, .bytes = 7 + 8 + 7 + 9 + 12 + 12);
	count_world_close(&count_world);
}

/* ---- several keys ---- */

/* First all keys are in one slot, then in three slots on three partitions. */
static void test_mget_and_mset(void **state)
{
	static const char *const keys[][5] = {{"{a}1", "{a}2", "{a}3", "{a}4", "{a}5"},
					      {"{a}1", "{b}2", "{a}3", "{c}4", "{b}5"}};

	(void)state;
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
		struct count_world count_world = count_world_open(NULL);
		char text[100];

		/* The bytes of +OK\r\n are divided among the keys: one byte for each. */
		snprintf(text, sizeof text, "MSET %s 1 %s 22 %s 333 %s 4444", keys[i][0],
			 keys[i][1], keys[i][2], keys[i][3]);
		ask(count_world.a, text);
		for (uint64_t j = 0; j < 4; j++)
			key_has(&count_world, keys[i][j], .writes = 1, .bytes = 4 + j + 1 + 1);
		snprintf(text, sizeof text, "MGET %s %s %s %s %s", keys[i][3], keys[i][1],
			 keys[i][2], keys[i][4], keys[i][2]);
		ask(count_world.a, text);
		key_has(&count_world, keys[i][0], .writes = 1, .bytes = 6);
		/* Each key counts its own element of the reply, such as $2\r\n22\r\n. */
		key_has(&count_world, keys[i][1], .writes = 1, .reads = 1, .bytes = 7 + 4 + 8);
		key_has(&count_world, keys[i][2], .writes = 1, .reads = 2,
			.bytes = 8 + 2 * (4 + 9));
		key_has(&count_world, keys[i][3], .writes = 1, .reads = 1, .bytes = 9 + 4 + 10);
		key_has(&count_world, keys[i][4], .reads = 1, .bytes = 4 + 5, .misses = 1);
		count_world_close(&count_world);
	}
}

static void test_each_partition_has_its_keys(void **state)
{
	struct count_world count_world = count_world_open(NULL);

	(void)state;
	ask(count_world.a, "MSET a 1 b 22 {a}x 333"); /* each key gets one byte of +OK\r\n */
	partition_has(&count_world, A_PARTITION, .writes = 2, .bytes = 1 + 1 + 1 + 4 + 3 + 1);
	partition_has(&count_world, B_PARTITION, .writes = 1, .bytes = 1 + 2 + 1);
	ask(count_world.b, "MGET b a c");
	partition_has(&count_world, A_PARTITION, .writes = 2, .reads = 1, .bytes = 11 + 1 + 7);
	partition_has(&count_world, B_PARTITION, .writes = 1, .reads = 1, .bytes = 4 + 1 + 8);
	partition_has(&count_world, C_PARTITION, .reads = 1, .bytes = 1 + 5);
	partition_has(&count_world, D_PARTITION, 0);
	ask(count_world.b, "EXISTS a b c d"); /* each key gets one byte of :2\r\n */
	for (uint32_t id = 0; id < PARTITIONS; id++)
		assert_int_equal(partition_of(&count_world, id).reads, id == D_PARTITION ? 1 : 2);
	key_has(&count_world, "d", .reads = 1, .bytes = 1 + 1, .misses = 1);
	/* The reply :2\r\n has less than a byte for each key. */
	ask(count_world.b, "DEL a b c d d");
	for (uint32_t id = 0; id < PARTITIONS; id++)
		assert_int_equal(partition_of(&count_world, id).errors, 0);
	key_has(&count_world, "d", .reads = 1, .writes = 2, .bytes = 2 + 1 + 1, .misses = 1);
	key_has(&count_world, "a", .reads = 2, .writes = 2, .bytes = 3 + 1 + 7 + 1 + 1 + 1);
	count_world_close(&count_world);
}

static void test_two_keys_of_one_slot(void **state)
{
	struct count_world count_world = count_world_open(NULL);

	(void)state;
	ask(count_world.a, "SET {a}1 x");
	ask(count_world.a, "RENAME {a}1 {a}2"); /* reply +OK\r\n */
	key_has(&count_world, "{a}1", .writes = 2, .bytes = 10 + 4 + 2);
	key_has(&count_world, "{a}2", .writes = 1, .bytes = 4 + 2);
	/* The reply is :1\r\n. The option REPLACE counts with the last key. */
	ask(count_world.a, "COPY {a}2 {a}33 REPLACE");
	key_has(&count_world, "{a}2", .writes = 2, .bytes = 6 + 4 + 2);
	key_has(&count_world, "{a}33", .writes = 1, .bytes = 5 + 7 + 2);
	ask(count_world.a, "TOUCH {a}2 {a}33 {a}4"); /* reply :2\r\n */
	key_has(&count_world, "{a}4", .reads = 1, .bytes = 4 + 1);
	count_world_close(&count_world);
}

/* ---- transactions ---- */

static void test_exec(void **state)
{
	struct count_world count_world = count_world_open(NULL);

	(void)state;
	ask(count_world.a, "SET {a}old 1");
	ask(count_world.a, "MULTI");
	ask(count_world.a, "SET {a}1 abc");   /* reply +OK\r\n */
	ask(count_world.a, "PING");	      /* no key to count */
	ask(count_world.a, "GET {a}1");	      /* reply $3\r\nabc\r\n */
	ask(count_world.a, "GET {a}no");      /* reply $-1\r\n */
	ask(count_world.a, "INCR {a}1");      /* reply -ERR …\r\n */
	ask(count_world.a, "SETNX {a}old 2"); /* reply :0\r\n */
	/* The reply is $3\r\nabc\r\n and $-1\r\n, in an array. */
	ask(count_world.a, "MGET {a}1 {a}2");
	ask(count_world.a, "SET {a}3 x NX"); /* reply +OK\r\n */
	key_has(&count_world, "{a}1", 0);    /* no command has run yet */
	partition_has(&count_world, A_PARTITION, .writes = 1, .bytes = 6 + 1 + 5);
	ask(count_world.a, "EXEC");
	key_has(&count_world, "{a}1", .writes = 2, .reads = 2,
		.bytes = (4 + 3 + 5) + (4 + 9) +
			 (4 + strlen("-ERR value is not an integer or out of range\r\n")) +
			 (4 + 9));
	key_has(&count_world, "{a}no", .reads = 1, .bytes = 5 + 5, .misses = 1);
	key_has(&count_world, "{a}old", .writes = 2, .bytes = 12 + 6 + 1 + 4, .conflicts = 1);
	key_has(&count_world, "{a}2", .reads = 1, .bytes = 4 + 5, .misses = 1);
	key_has(&count_world, "{a}3", .writes = 1, .bytes = 4 + 1 + 2 + 5);
	assert_int_equal(partition_of(&count_world, A_PARTITION).reads, 4);
	assert_int_equal(partition_of(&count_world, A_PARTITION).writes, 5);
	assert_int_equal(partition_of(&count_world, A_PARTITION).errors, 1);
	ask(count_world.a, "MULTI"); /* MULTI, PING and EXEC name no key */
	ask(count_world.a, "PING");
	ask(count_world.a, "EXEC");
	assert_int_equal(partition_of(&count_world, A_PARTITION).reads, 4);
	count_world_close(&count_world);
}

/* EXEC aborts because a watched key changed: that key has a conflict. The commands that did not run count neither
 * as reads nor as writes. */
static void test_exec_aborted_by_watch(void **state)
{
	(void)state;
	for (int resp = 2; resp <= 3; resp++) {
		struct count_world count_world = count_world_open(NULL);

		if (resp == 3)
			ask(count_world.a, "HELLO 3");
		ask(count_world.a, "WATCH {a}w");
		key_has(&count_world, "{a}w", .reads = 1, .bytes = 4 + 5);
		ask(count_world.b, "SET {a}w 1");
		ask(count_world.a, "MULTI");
		ask(count_world.a, "SET {a}w 22");
		ask(count_world.a, "GET {a}r");
		ask(count_world.a, "MGET {a}r {a}s");
		ask(count_world.a, "INCR {a}x");
		hs_sim_client_request(count_world.a, "EXEC");
		hs_sim_world_settle(count_world.world);
		received_bytes(count_world.a, resp == 3 ? "_\r\n" : "*-1\r\n", resp == 3 ? 3 : 5,
			       __FILE__, __LINE__);
		key_has(&count_world, "{a}w", .reads = 1, .writes = 2, .bytes = 9 + 10 + 4,
			.conflicts = 1);
		key_has(&count_world, "{a}x", 0);
		key_has(&count_world, "{a}r", 0);
		key_has(&count_world, "{a}s", 0);
		/* The next transaction runs, because EXEC has ended the watch. */
		ask(count_world.a, "MULTI");
		ask(count_world.a, "INCR {a}x");
		ask(count_world.a, "EXEC");
		key_has(&count_world, "{a}x", .writes = 1, .bytes = 4 + 4);
		count_world_close(&count_world);
	}
}

/* A transaction that the core refuses before it reaches a partition counts for no key. */
static void test_transactions_that_do_not_run(void **state)
{
	struct count_world count_world = count_world_open(NULL);

	(void)state;
	ask(count_world.a, "MULTI");
	ask(count_world.a, "SET a 1");
	ask(count_world.a, "DISCARD");
	ask(count_world.a, "MULTI");
	ask(count_world.a, "SET a 1");
	ask(count_world.a, "NOPE");
	ask(count_world.a, "EXEC");
	ask(count_world.a, "MULTI");
	ask(count_world.a, "SET a 1");
	ask(count_world.a, "SET b 1");
	ask(count_world.a, "EXEC");
	ask(count_world.a, "MULTI");
	ask(count_world.a, "WATCH a");
	ask(count_world.a, "DISCARD");
	ask(count_world.a, "EXEC");
	nothing_counted(&count_world);
	count_world_close(&count_world);
}

static void test_watch(void **state)
{
	struct count_world count_world = count_world_open(NULL);

	(void)state;
	ask(count_world.a, "WATCH {a}1 {a}2"); /* each key gets two bytes of +OK\r\n */
	key_has(&count_world, "{a}1", .reads = 1, .bytes = 4 + 2);
	key_has(&count_world, "{a}2", .reads = 1, .bytes = 4 + 2);
	ask(count_world.a, "UNWATCH");
	ask(count_world.a, "WATCH b");
	ask(count_world.a, "WATCH c"); /* c is in another slot than b: refused */
	key_has(&count_world, "b", .reads = 1, .bytes = 1 + 5);
	key_has(&count_world, "c", 0);
	ask(count_world.a, "RESET");
	partition_has(&count_world, A_PARTITION, .reads = 2, .bytes = 12);
	partition_has(&count_world, B_PARTITION, .reads = 1, .bytes = 6);
	count_world_close(&count_world);
}

/* ---- errors, and commands without a key ---- */

static void test_errors(void **state)
{
	struct count_world count_world = count_world_open(NULL);
	static const char not_a_number[] = "-ERR value is not an integer or out of range\r\n";

	(void)state;
	ask(count_world.a, "SET a x");
	ask(count_world.a, "INCR a");
	key_has(&count_world, "a", .writes = 2, .bytes = 7 + 1 + sizeof not_a_number - 1);
	partition_has(&count_world, A_PARTITION, .writes = 2, .bytes = 8 + sizeof not_a_number - 1,
		      .errors = 1);
	ask(count_world.a, "GETRANGE a x 1");
	assert_int_equal(partition_of(&count_world, A_PARTITION).errors, 2);
	/* The last value is missing: an error for both keys. */
	ask(count_world.a, "MSETNX {a}1 x {a}2");
	assert_int_equal(partition_of(&count_world, A_PARTITION).errors, 4);
	assert_int_equal(partition_of(&count_world, A_PARTITION).writes, 4);
	assert_int_equal(row_of(&count_world, HS_LIT("{a}1")).window[HS_HEAT_LONG].conflicts, 0);
	count_world_close(&count_world);
}

/* A request that the core refuses before it reaches a partition counts for no key. */
static void test_refused_commands_are_not_counted(void **state)
{
	struct hs_sim_world_options options = count_world_defaults();
	struct hs_acl *users = hs_acl_create_open("secret");
	struct count_world count_world;

	(void)state;
	options.core.acl = users;
	count_world = count_world_open(&options);
	hs_acl_unref(&users);
	ask(count_world.a, "GET a"); /* the reply is NOAUTH */
	ask(count_world.a, "AUTH secret");
	ask(count_world.a, "GET");
	ask(count_world.a, "NOPE a");
	ask(count_world.a, "OBJECT NOPE a");
	ask(count_world.a, "RENAME a b");     /* the reply is CROSSSLOT */
	ask(count_world.a, "MSET a 1 b");     /* the last value is missing */
	ask(count_world.a, "MSETNX a 1 b 2"); /* the reply is CROSSSLOT */
	nothing_counted(&count_world);
	count_world_close(&count_world);
}

static void test_keyless_commands_count_for_partitions(void **state)
{
	struct count_world count_world = count_world_open(NULL);

	(void)state;
	ask(count_world.a, "DBSIZE"); /* each partition answers :0\r\n */
	for (uint32_t id = 0; id < PARTITIONS; id++)
		partition_has(&count_world, id, .reads = 1, .bytes = 4);
	ask(count_world.a, "KEYS *");	 /* reply *0\r\n */
	ask(count_world.a, "RANDOMKEY"); /* reply $-1\r\n */
	for (uint32_t id = 0; id < PARTITIONS; id++)
		partition_has(&count_world, id, .reads = 3, .bytes = 4 + 4 + 5);
	ask(count_world.a, "FLUSHALL"); /* reply +OK\r\n */
	for (uint32_t id = 0; id < PARTITIONS; id++)
		partition_has(&count_world, id, .reads = 3, .writes = 1, .bytes = 13 + 5);
	count_world.keyless = 4 * PARTITIONS;
	/* The number of the partition is a part of SCAN's cursor. */
	hs_sim_client_request(count_world.a, "SCAN 0");
	hs_sim_world_settle(count_world.world);
	partition_has(&count_world, 0, .reads = 4, .writes = 1,
		      .bytes = 18 + count_world.a->received.len);
	ask(count_world.a, "SCAN nope");
	partition_has(&count_world, PARTITIONS - 1, .reads = 4, .writes = 1,
		      .bytes = 18 + strlen("-ERR invalid cursor\r\n"), .errors = 1);
	partition_has(&count_world, 1, .reads = 3, .writes = 1, .bytes = 18);
	count_world.keyless += 2;
	assert_true(hs_heat_total(count_world.world->heats, 2, HS_HEAT_LONG,
				  count_world.world->now.mono_us) == 0);
	count_world_close(&count_world);
}

static void test_commands_without_a_partition_are_not_counted(void **state)
{
	static const char *const commands[] = {
		"PING",	     "ECHO a",	      "TIME",	      "CONFIG GET maxmemory",
		"INFO",	     "HEAT TOP",      "HEAT KEY a",   "HEAT HELP",
		"CLIENT ID", "CLIENT LIST",   "SLOWLOG GET",  "COMMAND GETKEYS GET a",
		"HELLO 3",   "OBJECT HELP",   "HOTKEYS GET",  "CLIENT KILL ID 99",
		"MULTI",     "DISCARD",	      "UNWATCH",      "CLIENT NO-EVICT ON",
		"SELECT 0",  "DEBUG SLEEP 1", "LATENCY RESET"};

	(void)state;
	for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
		struct count_world count_world = count_world_open(NULL);

		ask(count_world.a, commands[i]);
		nothing_counted(&count_world);
		count_world_close(&count_world);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reads),
		cmocka_unit_test(test_misses),
		cmocka_unit_test(test_writes),
		cmocka_unit_test(test_conditional_writes),
		cmocka_unit_test(test_set_with_get_is_no_conflict),
		cmocka_unit_test(test_conditional_writes_of_two_keys),
		cmocka_unit_test(test_mget_and_mset),
		cmocka_unit_test(test_each_partition_has_its_keys),
		cmocka_unit_test(test_two_keys_of_one_slot),
		cmocka_unit_test(test_exec),
		cmocka_unit_test(test_exec_aborted_by_watch),
		cmocka_unit_test(test_transactions_that_do_not_run),
		cmocka_unit_test(test_watch),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_refused_commands_are_not_counted),
		cmocka_unit_test(test_keyless_commands_count_for_partitions),
		cmocka_unit_test(test_commands_without_a_partition_are_not_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
