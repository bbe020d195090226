/* Goal: every path of a request through the core counts the request once and correctly: answered at once or
 * queued, refused at first, in long pipelines, in pieces, inline, with CLIENT REPLY OFF, with a disconnected
 * client, beside a slow or full partition. OBJECT FREQ reads these counts.
 *
 * Method: clients in a simulated world. test_core_count.c tests what each command counts as. */
#include "tests/lib/count_world.h"

/* ---- at once, queued, refused ---- */

enum { SCRIPTS = 10 };

static void script(struct hs_sim_client *client)
{
	for (int i = 0; i < SCRIPTS; i++) {
		ask(client, "SET a 1");
		ask(client, "GET a");
		ask(client, "GET a");
		ask(client, "MGET a b");
		ask(client, "MGET {a}1 {a}2");
		ask(client, "EXISTS c");
	}
}

static void test_every_path_counts_once(void **state)
{
	(void)state;
	for (int way = 0; way < 4; way++) {
		struct hs_sim_world_options options = count_world_defaults();
		struct count_world count_world;

		options.engine.reads_at_once = way != 0;
		options.engine.refuses = way == 2;
		if (way == 3)
			options.core.slowlog_us = 0; /* times each request */
		count_world = count_world_open(&options);
		script(count_world.a);
		key_has(&count_world, "a", .writes = SCRIPTS, .reads = 3 * SCRIPTS,
			.bytes = SCRIPTS * (1 + 1 + 5 + 3 * (1 + 7)));
		key_has(&count_world, "b", .reads = SCRIPTS, .bytes = SCRIPTS * (1 + 5),
			.misses = SCRIPTS);
		key_has(&count_world, "{a}2", .reads = SCRIPTS, .bytes = SCRIPTS * (4 + 5),
			.misses = SCRIPTS);
		key_has(&count_world, "c", .reads = SCRIPTS, .bytes = SCRIPTS * (1 + 4),
			.misses = SCRIPTS);
		partition_has(&count_world, C_PARTITION, .reads = SCRIPTS,
			      .bytes = SCRIPTS * (1 + 4));
		count_world_close(&count_world);
	}
}

/* A read behind a write of the same connection waits for the write, and counts like any other read. */
static void test_reads_behind_writes(void **state)
{
	struct count_world count_world = count_world_open(NULL);

	(void)state;
	hs_sim_client_request(count_world.a, "SET a 1");
	hs_sim_client_request(count_world.a, "GET a");
	/* The engine answers this read at once; the core delivers the reply after the write's. */
	hs_sim_client_request(count_world.a, "GET b");
	hs_sim_client_request(count_world.a, "MGET a b c");
	key_has(&count_world, "a", 0);
	assert_int_equal(partition_of(&count_world, A_PARTITION).inflight, 3);
	hs_sim_world_settle(count_world.world);
	key_has(&count_world, "a", .writes = 1, .reads = 2, .bytes = 7 + 2 * (1 + 7));
	key_has(&count_world, "b", .reads = 2, .bytes = 12, .misses = 2);
	key_has(&count_world, "c", .reads = 1, .bytes = 6, .misses = 1);
	count_world_close(&count_world);
}

static void test_inflight(void **state)
{
	struct count_world count_world = count_world_open(NULL);

	(void)state;
	hs_sim_engine_stall(count_world.world->engine, A_PARTITION);
	hs_sim_client_request(count_world.a, "SET a 1");
	assert_int_equal(partition_of(&count_world, A_PARTITION).inflight, 1);
	hs_sim_client_request(count_world.b, "MSET a 1 b 2");
	assert_int_equal(partition_of(&count_world, A_PARTITION).inflight, 2);
	assert_int_equal(partition_of(&count_world, B_PARTITION).inflight, 1);
	hs_sim_client_request(count_world.b, "WATCH {a}x");
	hs_sim_client_request(count_world.b, "UNWATCH");
	hs_sim_client_request(count_world.b, "DBSIZE");
	count_world.keyless = PARTITIONS;
	assert_int_equal(partition_of(&count_world, A_PARTITION).inflight, 5);
	/* CLIENT LIST goes to the workers, not to partitions. */
	hs_sim_client_request(count_world.b, "CLIENT LIST");
	assert_int_equal(partition_of(&count_world, B_PARTITION).inflight, 2);
	hs_sim_world_settle(count_world.world);
	assert_int_equal(partition_of(&count_world, A_PARTITION).inflight, 5);
	assert_int_equal(partition_of(&count_world, B_PARTITION).inflight, 0);
	/* MSET and DBSIZE still wait for the stalled partition, so no partition counts them yet. */
	partition_has(&count_world, B_PARTITION, 0);
	hs_sim_engine_go_on(count_world.world->engine, A_PARTITION);
	hs_sim_world_settle(count_world.world);
	partition_has(&count_world, B_PARTITION, .writes = 1, .reads = 1, .bytes = 1 + 1 + 2 + 4);
	key_has(&count_world, "a", .writes = 2, .bytes = 7 + 1 + 1 + 2);
	count_world_close(&count_world);
}

static void test_a_client_that_disconnected(void **state)
{
	struct count_world count_world = count_world_open(NULL);

	(void)state;
	hs_sim_client_request(count_world.a, "WATCH {b}w");
	hs_sim_client_request(count_world.a, "SET a 1");
	hs_sim_client_request(count_world.a, "GET a");
	hs_sim_client_request(count_world.a, "MSET a 1 c 2");
	hs_sim_client_request(count_world.a, "MULTI");
	hs_sim_client_request(count_world.a, "INCR {b}w");
	/* An incomplete request is not counted. */
	hs_sim_client_send(count_world.a, HS_LIT("*2\r\n$3\r\nGET\r\n$1\r\n"));
	hs_sim_client_disconnect(count_world.a);
	hs_sim_world_settle(count_world.world);
	key_has(&count_world, "a", .writes = 2, .reads = 1, .bytes = 7 + 8 + 4);
	key_has(&count_world, "c", .writes = 1, .bytes = 4);
	key_has(&count_world, "{b}w", .reads = 1, .bytes = 4 + 5);
	count_world_close(&count_world);
}

static void test_muted_replies_count(void **state)
{
	struct count_world count_world = count_world_open(NULL);

	(void)state;
	ask(count_world.a, "SET a hello");
	ask(count_world.a, "CLIENT REPLY SKIP");
	ask(count_world.a, "GET a");
	key_has(&count_world, "a", .writes = 1, .reads = 1, .bytes = 11 + 1 + 11);
	ask(count_world.a, "CLIENT REPLY OFF");
	ask(count_world.a, "GET a");
	ask(count_world.a, "SET a hello");
	ask(count_world.a, "MGET a b");
	ask(count_world.a, "GET b");
	hs_sim_client_request(count_world.a, "SET a hello");
	hs_sim_client_request(count_world.a, "GET a");
	hs_sim_world_settle(count_world.world);
	silent(count_world.a);
	key_has(&count_world, "a", .writes = 3, .reads = 4, .bytes = 3 * 11 + 4 * 12);
	key_has(&count_world, "b", .reads = 2, .bytes = 12, .misses = 2);
	count_world_close(&count_world);
}

/* ---- many requests at a time ---- */

static void test_long_pipelines(void **state)
{
	struct count_world count_world = count_world_open(NULL);
	struct hs_buf bytes = {0};

	(void)state;
	ask(count_world.a, "SET {a}0 1");
	/* More requests than share one read of the clock, mixed with commands that are not counted as heat. */
	for (int i = 0; i < 1000; i++) {
		hs_buf_printf(&bytes, "*2\r\n$3\r\nGET\r\n$4\r\n{a}%d\r\n", i % 10);
		if (i % 7 == 0)
			hs_buf_printf(&bytes, "*1\r\n$4\r\nPING\r\n");
		if (i % 100 == 50)
			hs_buf_printf(&bytes, "*2\r\n$6\r\nSTRLEN\r\n$4\r\n{b}%d\r\n", i % 10);
	}
	hs_sim_client_send(count_world.a, hs_buf_bytes(&bytes));
	hs_buf_deinit(&bytes);
	key_has(&count_world, "{a}0", .writes = 1, .reads = 100, .bytes = 10 + 100 * (4 + 7));
	for (int i = 1; i < 10; i++) {
		char key[16];

		snprintf(key, sizeof key, "{a}%d", i);
		key_has(&count_world, key, .reads = 100, .bytes = 100 * (4 + 5), .misses = 100);
	}
	key_has(&count_world, "{b}0", .reads = 10, .bytes = 10 * (4 + 4), .misses = 10);
	count_world_close(&count_world);
}

/* As many requests as share one read of the clock, some fewer and some more. */
static void test_pipelines_around_a_batch(void **state)
{
	(void)state;
	for (int count = HS_HEAT_NOTES_MAX - 2; count <= 2 * HS_HEAT_NOTES_MAX + 2; count++) {
		struct count_world count_world = count_world_open(NULL);
		struct hs_buf bytes = {0};

		for (int i = 0; i < count; i++)
			hs_buf_printf(&bytes, "*2\r\n$3\r\nGET\r\n$1\r\na\r\n");
		hs_sim_client_send(count_world.a, hs_buf_bytes(&bytes));
		hs_buf_deinit(&bytes);
		partition_has(&count_world, A_PARTITION, .reads = (uint64_t)count,
			      .bytes = (uint64_t)count * 6);
		count_world_close(&count_world);
	}
}

/* MSET, MGET and DEL of a hundred keys, in one slot or on all partitions. */
static void test_many_keys_in_one_command(void **state)
{
	enum { KEYS = 100 };

	(void)state;
	for (int spread = 0; spread < 2; spread++) {
		struct count_world count_world = count_world_open(NULL);
		struct hs_buf sets = {0}, gets = {0};

		hs_buf_printf(&sets, "*%d\r\n$4\r\nMSET\r\n", 1 + 2 * KEYS);
		hs_buf_printf(&gets, "*%d\r\n$4\r\nMGET\r\n", 1 + KEYS);
		for (int i = 0; i < KEYS; i++) {
			char tag = spread ? "abcd"[i % 4] : 'a';

			hs_buf_printf(&sets, "$5\r\n{%c}%02d\r\n$%d\r\n%0*d\r\n", tag, i, i % 9 + 1,
				      i % 9 + 1, 0);
			hs_buf_printf(&gets, "$5\r\n{%c}%02d\r\n", tag, i);
		}
		hs_sim_client_send(count_world.a, hs_buf_bytes(&sets));
		hs_sim_world_settle(count_world.world);
		hs_sim_client_send(count_world.b, hs_buf_bytes(&gets));
		hs_sim_world_settle(count_world.world);
		for (int i = 0; i < KEYS; i++) {
			uint64_t value = (uint64_t)i % 9 + 1;
			char key[16];

			snprintf(key, sizeof key, "{%c}%02d", spread ? "abcd"[i % 4] : 'a', i);
			key_has(&count_world, key, .writes = 1, .reads = 1,
				.bytes = (5 + value) + (5 + value + 6));
		}
		for (uint32_t id = 0; id < PARTITIONS; id++)
			assert_int_equal(partition_of(&count_world, id).reads,
					 spread		     ? KEYS / PARTITIONS
					 : id == A_PARTITION ? KEYS
							     : 0);
		hs_buf_deinit(&sets);
		hs_buf_deinit(&gets);
		count_world_close(&count_world);
	}
}

static void test_a_long_transaction(void **state)
{
	enum { COMMANDS = 200 };
	struct count_world count_world = count_world_open(NULL);
	struct hs_buf bytes = {0};

	(void)state;
	hs_buf_printf(&bytes, "*1\r\n$5\r\nMULTI\r\n");
	for (int i = 0; i < COMMANDS; i++)
		hs_buf_printf(&bytes, "*2\r\n$4\r\nINCR\r\n$5\r\n{a}%02d\r\n", i % 50);
	hs_buf_printf(&bytes, "*1\r\n$4\r\nEXEC\r\n");
	hs_sim_client_send(count_world.a, hs_buf_bytes(&bytes));
	hs_buf_deinit(&bytes);
	hs_sim_world_settle(count_world.world);
	for (int i = 0; i < 50; i++) {
		char key[16];

		snprintf(key, sizeof key, "{a}%02d", i);
		key_has(&count_world, key, .writes = 4, .bytes = 4 * (5 + 4));
	}
	count_world_close(&count_world);
}

/* ---- cut input ---- */

/* Reads that share a read of the clock refer to their keys until the core counts them. The names of the keys must
 * still be valid at that time. */
static void names_are_right(const struct count_world *count_world, int keys)
{
	struct hs_heat_query query = {.what = HS_HEAT_KEYS, .window = HS_HEAT_LONG};
	struct hs_heat_row *rows = calloc((size_t)keys + 1, sizeof *rows);
	size_t count = hs_heat_top(count_world->world->heats, 2, &query,
				   count_world->world->now.mono_us, rows, (size_t)keys + 1);

	assert_int_equal(count, keys);
	for (size_t i = 0; i < count; i++) {
		struct hs_bytes name = {rows[i].name, rows[i].name_len};

		assert_true(row_of(count_world, name).id == rows[i].id);
		assert_int_equal(rows[i].slot, hs_slot_of(name));
	}
	free(rows);
}

static void test_inline_requests(void **state)
{
	struct count_world count_world = count_world_open(NULL);
	struct hs_buf bytes = {0};

	(void)state;
	for (int i = 0; i < 100; i++) {
		hs_buf_printf(&bytes, "GET user:%02d:%0*d\r\n", i % 50, i % 50 + 1, 0);
		if (i % 3 == 0)
			hs_buf_printf(&bytes, "*2\r\n$3\r\nGET\r\n$6\r\nbulk:a\r\n");
		if (i % 5 == 0)
			hs_buf_printf(&bytes, "\r\nECHO \"a very different line\"\r\n");
	}
	hs_sim_client_send(count_world.a, hs_buf_bytes(&bytes));
	hs_buf_deinit(&bytes);
	key_has(&count_world, "user:00:0", .reads = 2, .bytes = 2 * (9 + 5), .misses = 2);
	key_has(&count_world, "bulk:a", .reads = 34, .bytes = 34 * (6 + 5), .misses = 34);
	names_are_right(&count_world, 51);
	count_world_close(&count_world);
}

static void test_cut_anywhere_the_counts_are_the_same(void **state)
{
	static const char requests[] =
		"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$2\r\nxy\r\nGET a\r\nGET \"b\"\r\n"
		"*2\r\n$3\r\nGET\r\n$1\r\na\r\n*3\r\n$4\r\nMGET\r\n$1\r\na\r\n$1\r\nb\r\n"
		"MULTI\r\n*2\r\n$3\r\nGET\r\n$1\r\na\r\nEXEC\r\n";

	(void)state;
	for (size_t cut = 0; cut < sizeof requests; cut++) {
		struct count_world count_world = count_world_open(NULL);

		hs_sim_client_send(count_world.a, (struct hs_bytes){requests, cut});
		if (cut % 2 == 0)
			hs_sim_world_settle(count_world.world);
		hs_sim_client_send(count_world.a,
				   (struct hs_bytes){requests + cut, sizeof requests - 1 - cut});
		hs_sim_world_settle(count_world.world);
		key_has(&count_world, "a", .writes = 1, .reads = 4, .bytes = 8 + 4 * (1 + 8));
		key_has(&count_world, "b", .reads = 2, .bytes = 12, .misses = 2);
		names_are_right(&count_world, 2);
		count_world_close(&count_world);
	}
}

/* ---- times ---- */

static void test_times(void **state)
{
	struct hs_sim_world_options options = count_world_defaults();
	struct count_world count_world;
	uint64_t before_us;

	(void)state;
	options.look_us = 64;
	count_world = count_world_open(&options);
	/* Four requests of a pipeline share one read of the clock, so each counts a quarter of the time. */
	hs_sim_client_send(count_world.a, HS_LIT("*2\r\n$3\r\nGET\r\n$1\r\na\r\n"
						 "*1\r\n$4\r\nPING\r\n"
						 "*2\r\n$3\r\nGET\r\n$1\r\nb\r\n"
						 "*2\r\n$3\r\nGET\r\n$1\r\nb\r\n"));
	assert_int_equal(partition_of(&count_world, A_PARTITION).time_ns, 16000);
	assert_int_equal(partition_of(&count_world, B_PARTITION).time_ns, 32000);
	/* In a command with several keys, each key counts the whole time of the command. */
	ask(count_world.a, "MGET {c}1 {c}2");
	assert_int_equal(partition_of(&count_world, C_PARTITION).time_ns, 2 * 64000);
	/* A write counts the time until it is answered. */
	before_us = count_world.world->now.mono_us;
	ask(count_world.a, "SET d 1");
	assert_int_equal(partition_of(&count_world, D_PARTITION).time_ns,
			 (count_world.world->now.mono_us - before_us) * 1000);
	count_world_close(&count_world);
}

/* If one of two partitions of a command is slow, only the slow one counts the long time. */
static void test_a_slow_partition_is_not_the_others_time(void **state)
{
	struct hs_sim_world_options options = count_world_defaults();
	struct count_world count_world;

	(void)state;
	options.engine.commit_us_max = options.engine.answer_us_max = 0;
	count_world = count_world_open(&options);
	hs_sim_engine_stall(count_world.world->engine, A_PARTITION);
	hs_sim_client_request(count_world.a, "MSET a 1 b 1");
	hs_sim_client_request(count_world.b, "DBSIZE");
	hs_sim_client_request(count_world.b, "FLUSHALL");
	count_world.keyless = 2 * PARTITIONS;
	hs_sim_world_pass(count_world.world, 50000);
	hs_sim_engine_go_on(count_world.world->engine, A_PARTITION);
	hs_sim_world_settle(count_world.world);
	assert_true(partition_of(&count_world, A_PARTITION).time_ns > 2 * 50000 * 1000ull);
	assert_true(partition_of(&count_world, B_PARTITION).time_ns < 50 * 1000);
	assert_true(partition_of(&count_world, C_PARTITION).time_ns < 50 * 1000);
	count_world_close(&count_world);
}

/* If one partition of a command is full, only this partition counts an error. */
static void test_a_full_partition_is_not_the_others_error(void **state)
{
	struct hs_sim_world_options options = count_world_defaults();
	struct count_world count_world;
	char text[1100] = "MSET b 1 a ";

	(void)state;
	options.engine.bytes_max = 1000;
	count_world = count_world_open(&options);
	memset(text + strlen(text), 'x', 1050);
	ask(count_world.a, text);
	assert_int_equal(partition_of(&count_world, A_PARTITION).errors, 1);
	assert_int_equal(partition_of(&count_world, B_PARTITION).errors, 0);
	assert_int_equal(partition_of(&count_world, B_PARTITION).writes, 1);
	count_world_close(&count_world);
}

/* KEYS counts for each partition the bytes of the partition's own part of the reply. */
static void test_listings_count_for_partitions_by_their_part(void **state)
{
	struct count_world count_world = count_world_open(NULL);
	uint64_t before;

	(void)state;
	ask(count_world.a, "SET a 1");
	before = partition_of(&count_world, A_PARTITION).bytes;
	/* Partition A answers *1\r\n$1\r\na\r\n, the others answer *0\r\n. */
	ask(count_world.a, "KEYS *");
	count_world.keyless = PARTITIONS;
	partition_has(&count_world, A_PARTITION, .writes = 1, .reads = 1, .bytes = before + 11);
	partition_has(&count_world, B_PARTITION, .reads = 1, .bytes = 4);
	count_world_close(&count_world);
}

/* ---- OBJECT FREQ ---- */

static int64_t frequency(struct hs_sim_client *client, const char *words)
{
	int64_t number = -1;

	hs_sim_client_request(client, words);
	hs_sim_world_settle(client->world);
	if (client->received.len > 0 && client->received.data[0] == ':')
		number = strtoll(client->received.data + 1, NULL, 10);
	client->received.len = 0;
	return number;
}

static void test_object_freq(void **state)
{
	struct count_world count_world = count_world_open(NULL);

	(void)state;
	hs_sim_world_pass(count_world.world, 100000000); /* longer than both windows */
	assert_int_equal(frequency(count_world.a, "OBJECT FREQ a"), -1);
	hs_sim_client_request(count_world.a, "OBJECT FREQ a");
	/* For a missing key the reply is null, however often the key was read. */
	received(count_world.a, "$-1\r\n");
	for (int i = 0; i < 3; i++)
		ask(count_world.a, "SET a 1");
	ask(count_world.a, "SET {a}b 1");
	/* OBJECT FREQ answers 255 × log2(1 + n) / 20, where n is the number of requests: 25 for n = 3, 12 for n =
	 * 1. */
	assert_in_range(frequency(count_world.a, "OBJECT FREQ a"), 24, 25);
	assert_in_range(frequency(count_world.a, "OBJECT FREQ {a}b"), 11, 12);
	/* The OBJECT FREQ requests do not count as requests of the key. */
	assert_in_range(frequency(count_world.a, "OBJECT FREQ {a}b"), 11, 12);
	for (int i = 0; i < 1020; i++)
		ask(count_world.b, "GET a");
	/* Both workers answer the same number, which covers the 1023 requests of both. */
	assert_in_range(frequency(count_world.a, "OBJECT FREQ a"), 126, 127);
	assert_in_range(frequency(count_world.b, "OBJECT FREQ a"), 126, 127);
	hs_sim_client_request(count_world.a, "MULTI");
	hs_sim_client_request(count_world.a, "OBJECT FREQ a");
	hs_sim_client_request(count_world.a, "GET a");
	hs_sim_client_request(count_world.a, "OBJECT FREQ {a}no");
	hs_sim_client_request(count_world.a, "EXEC");
	hs_sim_world_settle(count_world.world);
	received(count_world.a, "+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n"
				"*3\r\n:127\r\n$1\r\n1\r\n$-1\r\n");
	hs_sim_world_pass(count_world.world, 200000000);
	assert_int_equal(frequency(count_world.a, "OBJECT FREQ a"), 0);
	count_world.keyless = 10; /* the number of OBJECT FREQ requests in this test */
	count_world_close(&count_world);
}

static void test_object_freq_ends_at_255(void **state)
{
	struct count_world count_world = count_world_open(NULL);
	struct hs_heat_access access = {.key = HS_LIT("a"), .partition = A_PARTITION};

	(void)state;
	access.slot = hs_slot_of(access.key);
	hs_sim_world_pass(count_world.world, 100000000);
	ask(count_world.a, "SET a 1");
	for (int i = 0; i < 3000000; i++)
		hs_heat_add(count_world.world->heats[1], &access, 0);
	assert_int_equal(frequency(count_world.a, "OBJECT FREQ a"), 255);
	count_world.keyless = 1;
	count_world_close(&count_world);
}

/* OBJECT FREQ is queued because the engine answers no read at once; then it is sometimes refused at first. */
static void test_object_freq_on_every_path(void **state)
{
	struct hs_sim_world_options options = count_world_defaults();
	struct count_world count_world;

	(void)state;
	options.engine.reads_at_once = false;
	count_world = count_world_open(&options);
	hs_sim_world_pass(count_world.world, 100000000);
	ask(count_world.a, "SET a 1");
	ask(count_world.a, "SET a 1");
	ask(count_world.a, "SET a 1");
	assert_in_range(frequency(count_world.a, "OBJECT FREQ a"), 24, 25);
	count_world.keyless = 1;
	count_world_close(&count_world);
	options.engine.reads_at_once = options.engine.refuses = true;
	count_world = count_world_open(&options);
	ask(count_world.a, "SET a 1");
	for (int i = 0; i < 50; i++)
		assert_true(frequency(count_world.a, "OBJECT FREQ a") > 0);
	count_world.keyless = 50;
	count_world_close(&count_world);
}

/* ---- without heat ---- */

static void test_without_heat(void **state)
{
	struct hs_sim_world_options options = count_world_defaults();
	struct hs_sim_world *world;
	struct hs_sim_client *client;

	(void)state;
	options.heat_sets = 0;
	world = hs_sim_world_create(&options);
	client = hs_sim_client_connect(world, 0);
	assert_null(world->heats);
	script(client);
	ask(client, "WATCH a");
	ask(client, "MULTI");
	ask(client, "GET a");
	ask(client, "EXEC");
	ask(client, "DBSIZE");
	assert_int_equal(frequency(client, "OBJECT FREQ a"), 0);
	hs_sim_client_request(client, "SET a 1");
	hs_sim_client_disconnect(client);
	hs_sim_world_destroy(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_path_counts_once),
		cmocka_unit_test(test_reads_behind_writes),
		cmocka_unit_test(test_inflight),
		cmocka_unit_test(test_a_client_that_disconnected),
		cmocka_unit_test(test_muted_replies_count),
		cmocka_unit_test(test_long_pipelines),
		cmocka_unit_test(test_pipelines_around_a_batch),
		cmocka_unit_test(test_many_keys_in_one_command),
		cmocka_unit_test(test_a_long_transaction),
		cmocka_unit_test(test_inline_requests),
		cmocka_unit_test(test_cut_anywhere_the_counts_are_the_same),
		cmocka_unit_test(test_times),
		cmocka_unit_test(test_a_slow_partition_is_not_the_others_time),
		cmocka_unit_test(test_a_full_partition_is_not_the_others_error),
		cmocka_unit_test(test_listings_count_for_partitions_by_their_part),
		cmocka_unit_test(test_object_freq),
		cmocka_unit_test(test_object_freq_ends_at_255),
		cmocka_unit_test(test_object_freq_on_every_path),
		cmocka_unit_test(test_without_heat),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
