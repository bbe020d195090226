/* Goal: outcomes count as heat: a read of a missing key is a miss, an aborted transaction and a refused
 * conditional write are conflicts, OBJECT counts for no key; each part of a command has its own time.
 *
 * Method: clients in a simulated world; the test compares the heat of keys and partitions. */
#include "tests/lib/count_world.h"

/* ---- reads of missing keys ---- */

static const char *const reads[] = {
	"GET a",      "STRLEN a",   "TTL a",	    "PTTL a",	     "EXPIRETIME a",
	"TYPE a",     "EXISTS a",   "TOUCH a",	    "GETBIT a 0",    "GETRANGE a 0 1",
	"BITCOUNT a", "BITPOS a 1", "SUBSTR a 0 1", "PEXPIRETIME a",
};

enum { READS = sizeof reads / sizeof *reads, WAYS = 5 };

/* A world for each path of a read: 0 answered at once; 1 queued; 2 sometimes refused at first; 3 timed one by
 * one; 4 in a transaction. */
static struct count_world town_of_way(int way)
{
	struct hs_sim_world_options options = count_world_defaults();

	options.engine.reads_at_once = way != 1;
	options.engine.refuses = way == 2;
	if (way == 3)
		options.core.slowlog_us = 0;
	return count_world_open(&options);
}

static void ask_all(const struct count_world *count_world, int way)
{
	if (way == WAYS - 1)
		ask(count_world->a, "MULTI");
	for (size_t i = 0; i < READS; i++)
		ask(count_world->a, reads[i]);
	if (way == WAYS - 1)
		ask(count_world->a, "EXEC");
}

static void test_every_read_of_nothing_is_a_miss(void **state)
{
	(void)state;
	for (int way = 0; way < WAYS; way++) {
		struct count_world count_world = town_of_way(way);
		struct hs_heat_row row;

		ask_all(&count_world, way);
		row = row_of(&count_world, HS_LIT("a"));
		assert_int_equal(row.total_reads, READS);
		assert_int_equal(times(&count_world, row.window[HS_HEAT_LONG].misses), READS);
		/* A read of an existing key is no miss, however short the value. */
		ask(count_world.a, "SET a x");
		ask_all(&count_world, way);
		row = row_of(&count_world, HS_LIT("a"));
		assert_int_equal(row.total_reads, 2 * READS);
		assert_int_equal(times(&count_world, row.window[HS_HEAT_LONG].misses), READS);
		count_world_close(&count_world);
	}
}

static void test_empty_answers_of_existing_keys_are_no_misses(void **state)
{
	struct count_world count_world = count_world_open(NULL);
	struct hs_heat_row row;

	(void)state;
	ask(count_world.a, "SET a x");
	ask(count_world.a, "GETRANGE a 5 9"); /* reply $0\r\n\r\n */
	ask(count_world.a, "GETBIT a 100");   /* reply :0\r\n */
	ask(count_world.a, "TTL a");	      /* reply :-1\r\n */
	ask(count_world.a, "BITCOUNT a 5 9");
	/* A malformed request for a missing key is an error, not a miss. */
	ask(count_world.a, "GETRANGE {a}no x 1");
	ask(count_world.a, "GETBIT {a}no x");
	row = row_of(&count_world, HS_LIT("a"));
	assert_int_equal(row.total_reads, 4);
	assert_int_equal(times(&count_world, row.window[HS_HEAT_LONG].misses), 0);
	row = row_of(&count_world, HS_LIT("{a}no"));
	assert_int_equal(row.total_reads, 2);
	assert_int_equal(times(&count_world, row.window[HS_HEAT_LONG].misses), 0);
	assert_int_equal(partition_of(&count_world, A_PARTITION).errors, 2);
	count_world_close(&count_world);
}

/* An expired key counts as missing, even if its record is still stored. */
static void test_an_expired_key_is_a_miss(void **state)
{
	struct count_world count_world = count_world_open(NULL);

	(void)state;
	ask(count_world.a, "SET a x PX 10"); /* reply +OK\r\n */
	hs_sim_world_pass(count_world.world, 11000);
	ask(count_world.a, "STRLEN a"); /* reply :0\r\n */
	key_has(&count_world, "a", .writes = 1, .reads = 1, .bytes = 11 + 1 + 4, .misses = 1);
	count_world_close(&count_world);
}

/* If a command has one answer for several keys, each key has a miss only if all keys are missing. */
static void test_several_keys_with_one_answer(void **state)
{
	struct count_world count_world = count_world_open(NULL);

	(void)state;
	ask(count_world.a, "EXISTS {a}1 {a}2"); /* reply :0\r\n */
	key_has(&count_world, "{a}1", .reads = 1, .bytes = 4 + 2, .misses = 1);
	key_has(&count_world, "{a}2", .reads = 1, .bytes = 4 + 2, .misses = 1);
	ask(count_world.a, "SET {a}1 x");
	ask(count_world.a, "EXISTS {a}1 {a}2");
	key_has(&count_world, "{a}1", .writes = 1, .reads = 2, .bytes = 6 + 10 + 6, .misses = 1);
	key_has(&count_world, "{a}2", .reads = 2, .bytes = 12, .misses = 1);
	/* The core counts misses for each partition separately: one of these three partitions has its key. */
	ask(count_world.a, "SET b 1");
	ask(count_world.a, "TOUCH b c d"); /* reply :1\r\n */
	key_has(&count_world, "b", .writes = 1, .reads = 1, .bytes = 7 + 1 + 1);
	key_has(&count_world, "c", .reads = 1, .bytes = 1 + 1, .misses = 1);
	key_has(&count_world, "d", .reads = 1, .bytes = 1 + 1, .misses = 1);
	/* If a command has an answer for each key, each key counts its own misses. */
	ask(count_world.a, "MGET {a}2 {a}1"); /* reply $-1\r\n $1\r\nx\r\n */
	key_has(&count_world, "{a}1", .writes = 1, .reads = 3, .bytes = 22 + 4 + 7, .misses = 1);
	key_has(&count_world, "{a}2", .reads = 3, .bytes = 12 + 4 + 5, .misses = 2);
	/* Another MGET counts one more read, and one more miss, for each key. */
	ask(count_world.a, "MGET {a}2 {a}3");
	key_has(&count_world, "{a}3", .reads = 1, .bytes = 4 + 5, .misses = 1);
	count_world_close(&count_world);
}

/* ---- aborted transactions ---- */

/* Aborts a transaction of client a: client b writes the watched key `written`. */
static void lose(const struct count_world *count_world, const char *written, const char *command)
{
	char text[64];

	snprintf(text, sizeof text, "APPEND %s x", written);
	ask(count_world->b, text);
	ask(count_world->a, "MULTI");
	if (command)
		ask(count_world->a, command);
	hs_sim_client_request(count_world->a, "EXEC");
	hs_sim_world_settle(count_world->world);
	received(count_world->a, "*-1\r\n");
}

static void test_each_watched_key_is_contended(void **state)
{
	struct count_world count_world = count_world_open(NULL);

	(void)state;
	ask(count_world.a, "WATCH {a}1 {a}22"); /* each key gets two bytes of +OK\r\n */
	ask(count_world.a, "WATCH {a}1 {a}333");
	key_has(&count_world, "{a}1", .reads = 2, .bytes = 2 * (4 + 2));
	lose(&count_world, "{a}22", "SET {a}new 1");
	key_has(&count_world, "{a}1", .reads = 2, .writes = 1, .bytes = 12 + 4, .conflicts = 1);
	key_has(&count_world, "{a}22", .reads = 1, .writes = 2, .bytes = (5 + 2) + (5 + 1 + 4) + 5,
		.conflicts = 1);
	key_has(&count_world, "{a}333", .reads = 1, .writes = 1, .bytes = 8 + 6, .conflicts = 1);
	/* The aborted transaction has not written its key. */
	key_has(&count_world, "{a}new", 0);
	count_world_close(&count_world);
}

static void test_an_aborted_transaction_without_commands(void **state)
{
	struct count_world count_world = count_world_open(NULL);

	(void)state;
	ask(count_world.a, "WATCH a");
	lose(&count_world, "a", NULL);
	key_has(&count_world, "a", .reads = 1, .writes = 2, .bytes = 6 + (1 + 1 + 4) + 1,
		.conflicts = 1);
	ask(count_world.a, "WATCH b");
	lose(&count_world, "b", "PING");
	key_has(&count_world, "b", .reads = 1, .writes = 2, .bytes = 13, .conflicts = 1);
	count_world_close(&count_world);
}

/* Each of these commands ends the watch of {a}1. The next transaction conflicts only over the key that is watched
 * then. */
static void test_keys_no_longer_watched(void **state)
{
	static const char *const ends[][3] = {
		{"UNWATCH"}, {"MULTI", "DISCARD"},	{"MULTI", "EXEC"},
		{"RESET"},   {"MULTI", "NOPE", "EXEC"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
		struct count_world count_world = count_world_open(NULL);

		ask(count_world.a, "WATCH {a}1");
		for (size_t j = 0; j < 3 && ends[i][j]; j++)
			ask(count_world.a, ends[i][j]);
		ask(count_world.a, "WATCH {a}2");
		lose(&count_world, "{a}2", "INCR {a}1");
		key_has(&count_world, "{a}1", .reads = 1, .bytes = 4 + 5);
		key_has(&count_world, "{a}2", .reads = 1, .writes = 2, .bytes = 9 + 9 + 4,
			.conflicts = 1);
		count_world_close(&count_world);
	}
}

/* One client disconnects while its transaction is in flight, the other before it sends one. */
static void test_a_watcher_that_disconnected(void **state)
{
	struct count_world count_world = count_world_open(NULL);

	(void)state;
	ask(count_world.a, "WATCH a");
	ask(count_world.b, "SET a 1");
	ask(count_world.b, "WATCH b");
	hs_sim_client_request(count_world.a, "MULTI");
	hs_sim_client_request(count_world.a, "EXEC");
	hs_sim_client_disconnect(count_world.a);
	hs_sim_client_disconnect(count_world.b);
	hs_sim_world_settle(count_world.world);
	key_has(&count_world, "a", .reads = 1, .writes = 2, .bytes = 6 + 7 + 1, .conflicts = 1);
	key_has(&count_world, "b", .reads = 1, .bytes = 6);
	count_world_close(&count_world);
}

/* The core remembers the names of watched keys up to a limit. Each name takes two bytes more, for its length. */
static void test_names_beyond_the_limit_are_left_out(void **state)
{
	enum { LONGEST = HS_WATCH_NAMES_BYTES_MAX - 2 };
	static char name[LONGEST + 2], text[LONGEST + 100];

	(void)state;
	for (int over = 0; over < 2; over++) {
		struct count_world count_world = count_world_open(NULL);
		uint64_t written;

		snprintf(name, sizeof name, "{a}%0*d", LONGEST + over - 3, 0);
		snprintf(text, sizeof text, "WATCH %s", name);
		ask(count_world.a, text);
		/* Fits only if the first name was too long. */
		ask(count_world.a, "WATCH {a}more");
		written = partition_of(&count_world, A_PARTITION).writes;
		lose(&count_world, "{a}more", "INCR {a}x");
		key_has(&count_world, name, .reads = 1, .writes = over == 0,
			.bytes = strlen(name) + 5 + (over == 0 ? LONGEST : 0),
			.conflicts = over == 0);
		key_has(&count_world, "{a}more", .reads = 1, .writes = 1 + (over == 1),
			.bytes = (7 + 5) + (7 + 1 + 4) + (over == 1 ? 7 : 0),
			.conflicts = over == 1);
		assert_int_equal(partition_of(&count_world, A_PARTITION).writes, written + 2);
		/* The name is too long to be remembered: the partition counts the aborted transaction, but no key
		 * does. */
		snprintf(name, sizeof name, "{a}%0*d", LONGEST + 1 - 3, 1);
		snprintf(text, sizeof text, "WATCH %s", name);
		ask(count_world.a, text);
		snprintf(text, sizeof text, "SET %s 1", name);
		ask(count_world.b, text);
		ask(count_world.a, "MULTI");
		ask(count_world.a, "EXEC");
		count_world.keyless = 1;
		assert_int_equal(row_of(&count_world, hs_bytes_of(name)).total_writes, 1);
		assert_int_equal(partition_of(&count_world, A_PARTITION).writes, written + 4);
		count_world_close(&count_world);
	}
}

static void test_as_many_keys_as_can_be_watched(void **state)
{
	enum { NAME = 7, FIT = HS_WATCH_NAMES_BYTES_MAX / (NAME + 2) };
	struct count_world count_world = count_world_open(NULL);
	struct hs_buf bytes = {0};

	(void)state;
	hs_buf_printf(&bytes, "*%d\r\n$5\r\nWATCH\r\n", 1 + HS_WATCH_KEYS_MAX);
	for (int i = 0; i < HS_WATCH_KEYS_MAX; i++)
		hs_buf_printf(&bytes, "$%d\r\n{a}%04d\r\n", (int)NAME, i);
	hs_sim_client_send(count_world.a, hs_buf_bytes(&bytes));
	hs_buf_deinit(&bytes);
	hs_sim_world_settle(count_world.world);
	received(count_world.a, "+OK\r\n");
	assert_int_equal(partition_of(&count_world, A_PARTITION).reads, HS_WATCH_KEYS_MAX);
	lose(&count_world, "{a}1023", "INCR {a}x");
	assert_int_equal(partition_of(&count_world, A_PARTITION).writes, 1 + FIT);
	count_world_close(&count_world);
}

/* ---- conditional writes that return the old value ---- */

static void test_set_with_get(void **state)
{
	static const struct {
		const char *command;
		/* Whether the server refuses the write if the key is missing, and if the key exists. */
		bool refused_new, refused_old;
	} cases[] = {
		{"SET a 1 NX GET", false, true},
		{"SET a 1 get nx", false, true},
		{"SET a 1 XX GET", true, false},
		{"SET a 1 GET EX 100 XX", true, false},
		{"SET a 1 GET", false, false},
		{"SET a 1 GET KEEPTTL", false, false},
		{"SET a 1 NX", false, true},
		{"SET a 1 XX", true, false},
		{"SET a GET NX", false, true},
		{"SET a NX GET", false, false},
		/* An error is no conflict, whether the key exists or not. */
		{"SET a 1 NX XX GET", false, false},
		{"SET a 1 NX GET EX x", false, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		for (int old = 0; old < 2; old++) {
			struct count_world count_world = count_world_open(NULL);
			bool refused = old ? cases[i].refused_old : cases[i].refused_new;
			struct hs_heat_row row;

			if (old)
				ask(count_world.a, "SET a 0");
			ask(count_world.a, cases[i].command);
			row = row_of(&count_world, HS_LIT("a"));
			if (times(&count_world, row.window[HS_HEAT_LONG].conflicts) != refused)
				fail_msg("%s, %s", cases[i].command, old ? "there" : "not there");
			count_world_close(&count_world);
		}
	}
}

/* ---- OBJECT ---- */

/* A tool that sends OBJECT for every key, such as redis-cli --hotkeys, must not make the keys hot. */
static void test_object_heats_nothing(void **state)
{
	static const char *const looks[] = {"OBJECT FREQ a", "OBJECT ENCODING a",
					    "OBJECT IDLETIME a", "OBJECT REFCOUNT a"};
	enum { LOOKS = sizeof looks / sizeof *looks };

	(void)state;
	for (int way = 0; way < WAYS; way++) {
		struct count_world count_world = town_of_way(way);

		ask(count_world.a, "SET a 1");
		if (way == WAYS - 1)
			ask(count_world.a, "MULTI");
		for (size_t i = 0; i < LOOKS; i++)
			ask(count_world.a, looks[i]);
		if (way == WAYS - 1)
			ask(count_world.a, "EXEC");
		key_has(&count_world, "a", .writes = 1, .bytes = 1 + 1 + 5);
		count_world.keyless = LOOKS;
		assert_int_equal(partition_of(&count_world, A_PARTITION).reads, LOOKS);
		/* OBJECT of a missing key does not count as a miss. */
		hs_sim_client_request(count_world.a, "OBJECT ENCODING b");
		hs_sim_world_settle(count_world.world);
		key_has(&count_world, "b", 0);
		partition_has(&count_world, B_PARTITION, .reads = 1, .bytes = 5);
		count_world.keyless++;
		count_world_close(&count_world);
	}
}

/* ---- a part answered earlier than the rest ---- */

static void test_a_part_at_once_has_its_own_time(void **state)
{
	struct hs_sim_world_options options = count_world_defaults();
	struct count_world count_world;
	uint64_t before_ns;

	(void)state;
	options.look_us = 64;
	count_world = count_world_open(&options);
	hs_sim_engine_stall(count_world.world->engine, A_PARTITION);
	hs_sim_client_request(count_world.a, "SET a 1");
	/* The part for a waits behind the write. The engine answers the parts for b and c at once, after one and
	 * two reads of the clock. */
	hs_sim_client_request(count_world.a, "MGET a b c");
	hs_sim_world_pass(count_world.world, 50000);
	hs_sim_engine_go_on(count_world.world->engine, A_PARTITION);
	hs_sim_world_settle(count_world.world);
	assert_true(partition_of(&count_world, A_PARTITION).time_ns > 2 * 50000 * 1000ull);
	assert_int_equal(partition_of(&count_world, B_PARTITION).time_ns, 64000);
	assert_int_equal(partition_of(&count_world, C_PARTITION).time_ns, 2 * 64000);
	/* If the engine answers all parts at once, each part has the whole time of the command. */
	before_ns = partition_of(&count_world, B_PARTITION).time_ns;
	ask(count_world.b, "MGET b d");
	assert_int_equal(partition_of(&count_world, B_PARTITION).time_ns - before_ns,
			 partition_of(&count_world, D_PARTITION).time_ns);
	assert_true(partition_of(&count_world, D_PARTITION).time_ns > 64000);
	count_world_close(&count_world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_read_of_nothing_is_a_miss),
		cmocka_unit_test(test_empty_answers_of_existing_keys_are_no_misses),
		cmocka_unit_test(test_an_expired_key_is_a_miss),
		cmocka_unit_test(test_several_keys_with_one_answer),
		cmocka_unit_test(test_each_watched_key_is_contended),
		cmocka_unit_test(test_an_aborted_transaction_without_commands),
		cmocka_unit_test(test_keys_no_longer_watched),
		cmocka_unit_test(test_a_watcher_that_disconnected),
		cmocka_unit_test(test_names_beyond_the_limit_are_left_out),
		cmocka_unit_test(test_as_many_keys_as_can_be_watched),
		cmocka_unit_test(test_set_with_get),
		cmocka_unit_test(test_object_heats_nothing),
		cmocka_unit_test(test_a_part_at_once_has_its_own_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
