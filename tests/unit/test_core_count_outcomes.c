/* What came of a request, as heat: a read that found nothing, a transaction that lost, a
 * conditional write that was refused, a look that uses nothing; and a part of a command that was
 * answered before the others. Clients ask in a simulated world; the test reads what heat says of the
 * keys and the partitions. */
#include "tests/lib/count.h"

/* ---- reads that find nothing ---- */

static const char *const reads[] = {
	"GET a",      "STRLEN a",   "TTL a",	    "PTTL a",	     "EXPIRETIME a",
	"TYPE a",     "EXISTS a",   "TOUCH a",	    "GETBIT a 0",    "GETRANGE a 0 1",
	"BITCOUNT a", "BITPOS a 1", "SUBSTR a 0 1", "PEXPIRETIME a",
};

enum { READS = sizeof reads / sizeof *reads, WAYS = 5 };

/* At once, queued, refused first now and then, timed one by one, in a transaction. */
static struct town town_of_way(int way)
{
	struct hs_sim_world_options options = town_defaults();

	options.engine.reads_at_once = way != 1;
	options.engine.refuses = way == 2;
	if (way == 3)
		options.core.slowlog_us = 0;
	return town_open(&options);
}

static void ask_all(const struct town *town, int way)
{
	if (way == WAYS - 1)
		ask(town->a, "MULTI");
	for (size_t i = 0; i < READS; i++)
		ask(town->a, reads[i]);
	if (way == WAYS - 1)
		ask(town->a, "EXEC");
}

static void test_every_read_of_nothing_is_a_miss(void **state)
{
	(void)state;
	for (int way = 0; way < WAYS; way++) {
		struct town town = town_of_way(way);
		struct hs_heat_row row;

		ask_all(&town, way);
		row = row_of(&town, HS_LIT("a"));
		assert_int_equal(row.total_reads, READS);
		assert_int_equal(times(&town, row.window[HS_HEAT_LONG].misses), READS);
		/* Nothing more is missed when there is something, be it short. */
		ask(town.a, "SET a x");
		ask_all(&town, way);
		row = row_of(&town, HS_LIT("a"));
		assert_int_equal(row.total_reads, 2 * READS);
		assert_int_equal(times(&town, row.window[HS_HEAT_LONG].misses), READS);
		town_close(&town);
	}
}

static void test_answers_that_look_like_nothing(void **state)
{
	struct town town = town_open(NULL);
	struct hs_heat_row row;

	(void)state;
	ask(town.a, "SET a x");
	ask(town.a, "GETRANGE a 5 9"); /* $0\r\n\r\n */
	ask(town.a, "GETBIT a 100");   /* :0\r\n */
	ask(town.a, "TTL a");	       /* :-1\r\n */
	ask(town.a, "BITCOUNT a 5 9");
	/* What is wrong with a request is not missing from the data. */
	ask(town.a, "GETRANGE {a}no x 1");
	ask(town.a, "GETBIT {a}no x");
	row = row_of(&town, HS_LIT("a"));
	assert_int_equal(row.total_reads, 4);
	assert_int_equal(times(&town, row.window[HS_HEAT_LONG].misses), 0);
	row = row_of(&town, HS_LIT("{a}no"));
	assert_int_equal(row.total_reads, 2);
	assert_int_equal(times(&town, row.window[HS_HEAT_LONG].misses), 0);
	assert_int_equal(partition_of(&town, A_PARTITION).errors, 2);
	town_close(&town);
}

/* A key past its time is nothing, though it may still lie there. */
static void test_an_expired_key_is_a_miss(void **state)
{
	struct town town = town_open(NULL);

	(void)state;
	ask(town.a, "SET a x PX 10"); /* +OK\r\n */
	hs_sim_world_pass(town.world, 11000);
	ask(town.a, "STRLEN a"); /* :0\r\n */
	key_has(&town, "a", .writes = 1, .reads = 1, .bytes = 11 + 1 + 4, .misses = 1);
	town_close(&town);
}

/* One answer for several keys says of each that it is missing only when all are. */
static void test_several_keys_with_one_answer(void **state)
{
	struct town town = town_open(NULL);

	(void)state;
	ask(town.a, "EXISTS {a}1 {a}2"); /* :0\r\n */
	key_has(&town, "{a}1", .reads = 1, .bytes = 4 + 2, .misses = 1);
	key_has(&town, "{a}2", .reads = 1, .bytes = 4 + 2, .misses = 1);
	ask(town.a, "SET {a}1 x");
	ask(town.a, "EXISTS {a}1 {a}2");
	key_has(&town, "{a}1", .writes = 1, .reads = 2, .bytes = 6 + 10 + 6, .misses = 1);
	key_has(&town, "{a}2", .reads = 2, .bytes = 12, .misses = 1);
	/* Of each partition by itself: of these three, one has its key. */
	ask(town.a, "SET b 1");
	ask(town.a, "TOUCH b c d"); /* :1\r\n */
	key_has(&town, "b", .writes = 1, .reads = 1, .bytes = 7 + 1 + 1);
	key_has(&town, "c", .reads = 1, .bytes = 1 + 1, .misses = 1);
	key_has(&town, "d", .reads = 1, .bytes = 1 + 1, .misses = 1);
	/* With answers of their own, each for itself, */
	ask(town.a, "MGET {a}2 {a}1"); /* $-1\r\n $1\r\nx\r\n */
	key_has(&town, "{a}1", .writes = 1, .reads = 3, .bytes = 22 + 4 + 7, .misses = 1);
	key_has(&town, "{a}2", .reads = 3, .bytes = 12 + 4 + 5, .misses = 2);
	/* and once. */
	ask(town.a, "MGET {a}2 {a}3");
	key_has(&town, "{a}3", .reads = 1, .bytes = 4 + 5, .misses = 1);
	town_close(&town);
}

/* ---- transactions that lose ---- */

/* Loses: what it watched was written by somebody else. */
static void lose(const struct town *town, const char *written, const char *command)
{
	char text[64];

	snprintf(text, sizeof text, "APPEND %s x", written);
	ask(town->b, text);
	ask(town->a, "MULTI");
	if (command)
		ask(town->a, command);
	hs_sim_client_ask(town->a, "EXEC");
	hs_sim_world_settle(town->world);
	heard(town->a, "*-1\r\n");
}

static void test_each_watched_key_is_contended(void **state)
{
	struct town town = town_open(NULL);

	(void)state;
	ask(town.a, "WATCH {a}1 {a}22"); /* +OK\r\n: two bytes each */
	ask(town.a, "WATCH {a}1 {a}333");
	key_has(&town, "{a}1", .reads = 2, .bytes = 2 * (4 + 2));
	lose(&town, "{a}22", "SET {a}new 1");
	key_has(&town, "{a}1", .reads = 2, .writes = 1, .bytes = 12 + 4, .conflicts = 1);
	key_has(&town, "{a}22", .reads = 1, .writes = 2, .bytes = (5 + 2) + (5 + 1 + 4) + 5,
		.conflicts = 1);
	key_has(&town, "{a}333", .reads = 1, .writes = 1, .bytes = 8 + 6, .conflicts = 1);
	/* What would have been written was not. */
	key_has(&town, "{a}new", 0);
	town_close(&town);
}

static void test_a_lost_transaction_without_commands(void **state)
{
	struct town town = town_open(NULL);

	(void)state;
	ask(town.a, "WATCH a");
	lose(&town, "a", NULL);
	key_has(&town, "a", .reads = 1, .writes = 2, .bytes = 6 + (1 + 1 + 4) + 1, .conflicts = 1);
	ask(town.a, "WATCH b");
	lose(&town, "b", "PING");
	key_has(&town, "b", .reads = 1, .writes = 2, .bytes = 13, .conflicts = 1);
	town_close(&town);
}

/* Each of these ends a watch: a later transaction loses over its own keys alone. */
static void test_keys_no_longer_watched(void **state)
{
	static const char *const ends[][3] = {
		{"UNWATCH"}, {"MULTI", "DISCARD"},	{"MULTI", "EXEC"},
		{"RESET"},   {"MULTI", "NOPE", "EXEC"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
		struct town town = town_open(NULL);

		ask(town.a, "WATCH {a}1");
		for (size_t j = 0; j < 3 && ends[i][j]; j++)
			ask(town.a, ends[i][j]);
		ask(town.a, "WATCH {a}2");
		lose(&town, "{a}2", "INCR {a}1");
		key_has(&town, "{a}1", .reads = 1, .bytes = 4 + 5);
		key_has(&town, "{a}2", .reads = 1, .writes = 2, .bytes = 9 + 9 + 4, .conflicts = 1);
		town_close(&town);
	}
}

/* A client goes while its transaction is under way, or before it. */
static void test_a_watcher_that_is_gone(void **state)
{
	struct town town = town_open(NULL);

	(void)state;
	ask(town.a, "WATCH a");
	ask(town.b, "SET a 1");
	ask(town.b, "WATCH b");
	hs_sim_client_ask(town.a, "MULTI");
	hs_sim_client_ask(town.a, "EXEC");
	hs_sim_client_disconnect(town.a);
	hs_sim_client_disconnect(town.b);
	hs_sim_world_settle(town.world);
	key_has(&town, "a", .reads = 1, .writes = 2, .bytes = 6 + 7 + 1, .conflicts = 1);
	key_has(&town, "b", .reads = 1, .bytes = 6);
	town_close(&town);
}

/* Two bytes of each name's room are for its length. */
static void test_names_beyond_the_limit_are_left_out(void **state)
{
	enum { LONGEST = HS_WATCH_NAMES_BYTES_MAX - 2 };
	static char name[LONGEST + 2], text[LONGEST + 100];

	(void)state;
	for (int over = 0; over < 2; over++) {
		struct town town = town_open(NULL);
		uint64_t written;

		snprintf(name, sizeof name, "{a}%0*d", LONGEST + over - 3, 0);
		snprintf(text, sizeof text, "WATCH %s", name);
		ask(town.a, text);
		ask(town.a, "WATCH {a}more"); /* fits only beside one that does not */
		written = partition_of(&town, A_PARTITION).writes;
		lose(&town, "{a}more", "INCR {a}x");
		key_has(&town, name, .reads = 1, .writes = over == 0,
			.bytes = strlen(name) + 5 + (over == 0 ? LONGEST : 0),
			.conflicts = over == 0);
		key_has(&town, "{a}more", .reads = 1, .writes = 1 + (over == 1),
			.bytes = (7 + 5) + (7 + 1 + 4) + (over == 1 ? 7 : 0),
			.conflicts = over == 1);
		assert_int_equal(partition_of(&town, A_PARTITION).writes, written + 2);
		/* No name at all: the partition has had a request, and no key. */
		snprintf(name, sizeof name, "{a}%0*d", LONGEST + 1 - 3, 1);
		snprintf(text, sizeof text, "WATCH %s", name);
		ask(town.a, text);
		snprintf(text, sizeof text, "SET %s 1", name);
		ask(town.b, text);
		ask(town.a, "MULTI");
		ask(town.a, "EXEC");
		town.keyless = 1;
		assert_int_equal(row_of(&town, hs_bytes_of(name)).total_writes, 1);
		assert_int_equal(partition_of(&town, A_PARTITION).writes, written + 4);
		town_close(&town);
	}
}

static void test_as_many_keys_as_can_be_watched(void **state)
{
	enum { NAME = 7, FIT = HS_WATCH_NAMES_BYTES_MAX / (NAME + 2) };
	struct town town = town_open(NULL);
	struct hs_buf bytes = {0};

	(void)state;
	hs_buf_printf(&bytes, "*%d\r\n$5\r\nWATCH\r\n", 1 + HS_WATCH_KEYS_MAX);
	for (int i = 0; i < HS_WATCH_KEYS_MAX; i++)
		hs_buf_printf(&bytes, "$%d\r\n{a}%04d\r\n", (int)NAME, i);
	hs_sim_client_send(town.a, hs_buf_bytes(&bytes));
	hs_buf_deinit(&bytes);
	hs_sim_world_settle(town.world);
	heard(town.a, "+OK\r\n");
	assert_int_equal(partition_of(&town, A_PARTITION).reads, HS_WATCH_KEYS_MAX);
	lose(&town, "{a}1023", "INCR {a}x");
	assert_int_equal(partition_of(&town, A_PARTITION).writes, 1 + FIT);
	town_close(&town);
}

/* ---- conditional writes that answer what was there ---- */

static void test_set_with_get(void **state)
{
	static const struct {
		const char *command;
		bool refused_new, refused_old; /* of a key that is not there, or is */
	} cases[] = {
		{"SET a 1 NX GET", false, true},       {"SET a 1 get nx", false, true},
		{"SET a 1 XX GET", true, false},       {"SET a 1 GET EX 100 XX", true, false},
		{"SET a 1 GET", false, false},	       {"SET a 1 GET KEEPTTL", false, false},
		{"SET a 1 NX", false, true},	       {"SET a 1 XX", true, false},
		{"SET a GET NX", false, true},	       {"SET a NX GET", false, false},
		{"SET a 1 NX XX GET", false, false}, /* an error, whatever is there */
		{"SET a 1 NX GET EX x", false, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		for (int old = 0; old < 2; old++) {
			struct town town = town_open(NULL);
			bool refused = old ? cases[i].refused_old : cases[i].refused_new;
			struct hs_heat_row row;

			if (old)
				ask(town.a, "SET a 0");
			ask(town.a, cases[i].command);
			row = row_of(&town, HS_LIT("a"));
			if (times(&town, row.window[HS_HEAT_LONG].conflicts) != refused)
				fail_msg("%s, %s", cases[i].command, old ? "there" : "not there");
			town_close(&town);
		}
	}
}

/* ---- looks ---- */

/* Who asks OBJECT of every key, as redis-cli --hotkeys does, must not make them hot. */
static void test_object_heats_nothing(void **state)
{
	static const char *const looks[] = {"OBJECT FREQ a", "OBJECT ENCODING a",
					    "OBJECT IDLETIME a", "OBJECT REFCOUNT a"};
	enum { LOOKS = sizeof looks / sizeof *looks };

	(void)state;
	for (int way = 0; way < WAYS; way++) {
		struct town town = town_of_way(way);

		ask(town.a, "SET a 1");
		if (way == WAYS - 1)
			ask(town.a, "MULTI");
		for (size_t i = 0; i < LOOKS; i++)
			ask(town.a, looks[i]);
		if (way == WAYS - 1)
			ask(town.a, "EXEC");
		key_has(&town, "a", .writes = 1, .bytes = 1 + 1 + 5);
		town.keyless = LOOKS;
		assert_int_equal(partition_of(&town, A_PARTITION).reads, LOOKS);
		/* Of what is not there: no miss either. */
		hs_sim_client_ask(town.a, "OBJECT ENCODING b");
		hs_sim_world_settle(town.world);
		key_has(&town, "b", 0);
		partition_has(&town, B_PARTITION, .reads = 1, .bytes = 5);
		town.keyless++;
		town_close(&town);
	}
}

/* ---- a part that was answered before the others ---- */

static void test_a_part_at_once_has_its_own_time(void **state)
{
	struct hs_sim_world_options options = town_defaults();
	struct town town;
	uint64_t before_ns;

	(void)state;
	options.look_us = 64;
	town = town_open(&options);
	hs_sim_engine_stall(town.world->engine, A_PARTITION);
	hs_sim_client_ask(town.a, "SET a 1");
	/* a waits behind the write; b and c are answered at a look at the clock each. */
	hs_sim_client_ask(town.a, "MGET a b c");
	hs_sim_world_pass(town.world, 50000);
	hs_sim_engine_go_on(town.world->engine, A_PARTITION);
	hs_sim_world_settle(town.world);
	assert_true(partition_of(&town, A_PARTITION).time_ns > 2 * 50000 * 1000ull);
	assert_int_equal(partition_of(&town, B_PARTITION).time_ns, 64000);
	assert_int_equal(partition_of(&town, C_PARTITION).time_ns, 2 * 64000);
	/* All at once: the whole time of their command, each. */
	before_ns = partition_of(&town, B_PARTITION).time_ns;
	ask(town.b, "MGET b d");
	assert_int_equal(partition_of(&town, B_PARTITION).time_ns - before_ns,
			 partition_of(&town, D_PARTITION).time_ns);
	assert_true(partition_of(&town, D_PARTITION).time_ns > 64000);
	town_close(&town);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_read_of_nothing_is_a_miss),
		cmocka_unit_test(test_answers_that_look_like_nothing),
		cmocka_unit_test(test_an_expired_key_is_a_miss),
		cmocka_unit_test(test_several_keys_with_one_answer),
		cmocka_unit_test(test_each_watched_key_is_contended),
		cmocka_unit_test(test_a_lost_transaction_without_commands),
		cmocka_unit_test(test_keys_no_longer_watched),
		cmocka_unit_test(test_a_watcher_that_is_gone),
		cmocka_unit_test(test_names_beyond_the_limit_are_left_out),
		cmocka_unit_test(test_as_many_keys_as_can_be_watched),
		cmocka_unit_test(test_set_with_get),
		cmocka_unit_test(test_object_heats_nothing),
		cmocka_unit_test(test_a_part_at_once_has_its_own_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
