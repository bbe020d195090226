/* Goal: reads of a key with copies go to the copies in turn, and no answer violates the key's contract: not from a
 * copy that is gone, not out of the connection's order. A copy that does not answer delays no client, and clients
 * see no copies (absorb/copies/read.c).
 *
 * Method: scripts against two cores whose engine is the test (tests/lib/copies_world.h). test_copies_make.c tests
 * how copies are made and how they end. */
#include "tests/lib/copies_world.h"

/* ---- the path of a read ---- */

static void test_reads_take_turns(void **state)
{
	static struct world world;

	(void)state;
	open_copies(&world, "k* cache stale=100ms copies=3");
	make_copies(&world, 'A');
	assert_int_equal(ask_many(&world, 'A', 9), 6);
	assert_int_equal(ask_many(&world, 'B', 9), 6);
	assert_int_equal(stat(&world, reads), 12);
	assert_int_equal(stat(&world, made), 1);
	assert_int_equal(stat(&world, keys), 1);
	assert_int_equal(stat(&world, retries), 0);
	close_copies(&world);
}

static void test_places_are_on_all_partitions(void **state)
{
	static struct world world;
	bool met[3] = {false};

	(void)state;
	open_copies(&world, "k* cache stale=100ms copies=3");
	make_copies(&world, 'A');
	for (int i = 0; i < 3; i++) {
		say(&world, 'A', "GET k");
		take_sent(&world);
		assert_int_equal(world.count, 1);
		assert_int_equal(world.ops[0]->slot, hs_slot_of(world.ops[0]->argv[1]));
		assert_int_equal(world.ops[0]->partition,
				 hs_slot_map_get(&slots, world.ops[0]->slot));
		met[world.ops[0]->partition] = true;
		reply(&world, "GET", VALUE);
	}
	for (int i = 0; i < 3; i++)
		assert_true(met[i]);
	close_copies(&world);
}

static void test_other_keys_and_commands_are_not_copied(void **state)
{
	static struct world world;

	(void)state;
	open_copies(&world, "k* cache stale=100ms copies=3");
	make_copies(&world, 'A');
	for (int i = 0; i < 4; i++) {
		say(&world, 'A', "TTL k");
		sent(&world, "TTL k");
		reply(&world, "TTL", ":-1\r\n");
		say(&world, 'A', "GET k2");
		sent(&world, "GET k2");
		reply(&world, "GET", VALUE);
		say(&world, 'A', "EXISTS k k");
		sent(&world, "EXISTS k k");
		reply(&world, "EXISTS", ":2\r\n");
	}
	close_copies(&world);
}

static void test_a_missing_copy_is_read_again_from_the_original(void **state)
{
	static const char *const answers[] = {"$-1\r\n", "-LOADING not now\r\n"};
	static struct world world;

	(void)state;
	for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
		open_copies(&world, "k* cache stale=100ms copies=3");
		make_copies(&world, 'A');
		while (ask(&world, 'A') != 'o')
			;
		say(&world, 'A', "GET k");
		take_sent(&world);
		reply(&world, COPY, answers[i]);
		sent(&world, "GET k");
		received(&world, 'A', "");
		reply(&world, "GET k", "$5\r\nother\r\n");
		received(&world, 'A', "$5\r\nother\r\n");
		assert_int_equal(stat(&world, retries), 1);
		close_copies(&world);
	}
}

static void test_a_missing_original_is_answered_as_missing(void **state)
{
	static struct world world;

	(void)state;
	open_copies(&world, "k* cache stale=100ms copies=3");
	make_copies(&world, 'A');
	while (ask(&world, 'A') != 'c' || ask(&world, 'A') != 'c')
		;
	say(&world, 'A', "GET k");
	sent(&world, "GET k");
	reply(&world, "GET k", "$-1\r\n");
	received(&world, 'A', "$-1\r\n");
	sent(&world, "");
	close_copies(&world);
}

static void test_a_client_disconnects_while_a_copy_is_read(void **state)
{
	static struct world world;

	(void)state;
	open_copies(&world, "k* cache stale=100ms copies=3");
	make_copies(&world, 'A');
	while (ask(&world, 'B') != 'o')
		;
	say(&world, 'B', "GET k");
	take_sent(&world);
	leave(&world, 'B');
	reply(&world, COPY, "$-1\r\n");
	sent(&world, "");
	close_copies(&world);
}

static void test_a_copy_that_does_not_answer_is_not_waited_for(void **state)
{
	static struct world world;

	(void)state;
	open_copies(&world, "k* cache stale=10s copies=3");
	make_copies(&world, 'A');
	while (ask(&world, 'A') != 'o')
		;
	say(&world, 'B', "GET k");
	take_sent(&world);
	say(&world, 'B', "SET other v"); /* B's write waits for the read */
	tick(&world, 40 * MS);
	sent(&world, "");
	tick(&world, 20 * MS);
	sent(&world, "GET k");
	reply(&world, "GET k", VALUE);
	received(&world, 'B', VALUE);
	sent(&world, "SET other v");
	reply(&world, "SET", "+OK\r\n");
	assert_in_range(ask_many(&world, 'A', 9), 4, 5); /* the late copy is skipped */
	reply(&world, COPY, VALUE);			 /* the copy's late reply is dropped */
	received(&world, 'B', "+OK\r\n");
	assert_int_equal(stat(&world, retries), 1);
	close_copies(&world);
}

static void test_a_copy_that_is_refused_at_once(void **state)
{
	static struct world world;

	(void)state;
	open_copies(&world, "k* cache stale=100ms copies=3");
	make_copies(&world, 'A');
	while (ask(&world, 'A') != 'o')
		;
	world.at_once = true;
	world.value = "-CLUSTERDOWN nobody is there\r\n";
	say(&world, 'A', "GET k");
	received(&world, 'A', world.value);
	world.at_once = false;
	assert_int_equal(stat(&world, retries), 1);
	sent(&world, "");
	close_copies(&world);
}

static void test_watching_and_tracking_clients_read_the_original(void **state)
{
	static struct world world;

	(void)state;
	open_copies(&world, "k* cache stale=100ms copies=3");
	make_copies(&world, 'A');
	say(&world, 'B', "WATCH k");
	take_sent(&world);
	reply(&world, "WATCH", "+OK\r\n");
	take_received(&world, 'B');
	for (int i = 0; i < 4; i++)
		assert_int_equal(ask(&world, 'B'), 'o');
	say(&world, 'B', "UNWATCH");
	reply_all(&world, "", "+OK\r\n");
	take_received(&world, 'B');
	assert_int_equal(ask_many(&world, 'B', 3), 2);
	close_copies(&world);
}

/* ---- order ---- */

static void test_a_write_waits_for_the_read_before_it(void **state)
{
	static struct world world;

	(void)state;
	open_copies(&world, "k* cache stale=100ms copies=3");
	make_copies(&world, 'A');
	while (ask(&world, 'A') != 'o')
		;
	say(&world, 'A', "GET k");
	take_sent(&world);
	say(&world, 'A', "SET k new");
	say(&world, 'A', "GET k");
	sent(&world, "");
	/* The copy is missing, so the read goes to the original. The client's SET waits behind the read, so the
	 * original still has the old value. */
	reply(&world, COPY, "$-1\r\n");
	sent(&world, "GET k");
	reply(&world, "GET k", "$3\r\nold\r\n");
	received(&world, 'A', "$3\r\nold\r\n");
	sent(&world, "SET k new | GET k");
	reply(&world, "SET", "+OK\r\n");
	reply(&world, "GET k", "$3\r\nnew\r\n");
	received(&world, 'A', "+OK\r\n$3\r\nnew\r\n");
	close_copies(&world);
}

static void test_a_transaction_waits_as_well(void **state)
{
	static struct world world;

	(void)state;
	open_copies(&world, "k* cache stale=100ms copies=3");
	make_copies(&world, 'A');
	while (ask(&world, 'A') != 'o')
		;
	say(&world, 'A', "GET k");
	take_sent(&world);
	say(&world, 'A', "MULTI");
	say(&world, 'A', "SET k new");
	say(&world, 'A', "EXEC");
	assert_int_equal(world.count, 1);
	reply(&world, COPY, VALUE);
	assert_int_equal(world.count, 1);
	take_sent(&world);
	reply(&world, "", "*1\r\n+OK\r\n");
	received(&world, 'A', VALUE "+OK\r\n+QUEUED\r\n*1\r\n+OK\r\n");
	close_copies(&world);
}

/* A script may write keys that it does not name, at a time that heatsink does not know. Its client then reads the
 * original. */
static void test_behind_a_script_the_original_is_read(void **state)
{
	static struct world world;

	(void)state;
	open_copies(&world, "k* cache stale=10s copies=3");
	make_copies(&world, 'A');
	say(&world, 'A', "EVAL script 1 other");
	sent(&world, "EVAL script 1 other");
	for (int i = 0; i < 4; i++) {
		say(&world, 'A', "GET k");
		sent(&world, "GET k");
	}
	reply(&world, "EVAL", ":1\r\n");
	for (int i = 0; i < 4; i++)
		reply(&world, "GET k", VALUE);
	received(&world, 'A', ":1\r\n" VALUE VALUE VALUE VALUE);
	for (int i = 0; i < 4; i++)
		assert_int_equal(ask(&world, 'A'), 'o');
	assert_int_equal(ask_many(&world, 'B', 3), 2);
	later(&world, 1);
	/* The check shows that the server would have sent an invalidation by then. */
	catch_up(&world, 0);
	assert_int_equal(ask_many(&world, 'A', 3), 2);
	close_copies(&world);
}

/* ---- with fold and cache in the row ---- */

static void ask_folded(struct world *world)
{
	say(world, 'A', "GET k");
	end_round(world);
	take_sent(world);
	reply(world, "GET", VALUE);
	received(world, 'A', VALUE);
}

static void open_folded_copies(struct world *world)
{
	open_copies(world, "k* cache stale=100ms copies=3");
	make_copies(world, 'A');
	world->options.fold = true;
	set_rules(world, "k* cache stale=100ms copies=3", HS_MITIGATE_ON);
	for (int i = 0; i < 20; i++) /* until k has a fold queue */
		ask_folded(world);
}

/* A read that waits to be folded is sent at once if the same client sends a command that must not wait for it.
 * Such a read does not go to a copy. */
static void test_a_read_goes_to_no_copy_in_front_of_a_write_that_was_let_pass(void **state)
{
	static struct world world;

	(void)state;
	for (int i = 0; i < 4; i++) {
		open_folded_copies(&world);
		/* Moves the turn, so that each copy is the next one in some run. */
		for (int j = 0; j < i; j++)
			ask_folded(&world);
		say(&world, 'A', "GET k");
		say(&world, 'A', "MSET k new o new");
		end_round(&world);
		sent(&world, "GET k | MSET k new | MSET o new");
		reply(&world, "GET k", VALUE);
		reply(&world, "MSET k", "+OK\r\n");
		reply(&world, "MSET o", "+OK\r\n");
		received(&world, 'A', VALUE "+OK\r\n");
		close_copies(&world);
	}
}

static void test_folded_reads_go_to_copies(void **state)
{
	static struct world world;

	(void)state;
	open_folded_copies(&world);
	for (int i = 0; i < 6; i++) {
		const char *copied = i % 2 ? "$-1\r\n" : VALUE;
		bool copy;

		say(&world, 'A', "GET k");
		say(&world, 'B', "GET k");
		say(&world, 'C', "GET k");
		end_round(&world);
		copy = strncmp(take_sent(&world), COPY, strlen(COPY)) == 0;
		assert_int_equal(world.count, 1);
		reply(&world, "GET", copy ? copied : VALUE);
		if (copy && strcmp(copied, VALUE) != 0) {
			sent(&world, "GET k");
			reply(&world, "GET k", VALUE);
		}
		received(&world, 'A', VALUE);
		received(&world, 'B', VALUE);
		received(&world, 'C', VALUE);
	}
	assert_int_equal(world.count, 0);
	close_copies(&world);
}

/* A value that fits the cache needs no copies. A larger value is read from copies. */
static void test_with_a_cache(void **state)
{
	static struct world world;
	struct hs_buf large = {0};
	int copies = 0;

	(void)state;
	open_copies(&world, "k* cache stale=100s admit=all copies=3");
	world.options.cache_bytes = 1 << 20;
	set_rules(&world, "k* cache stale=100s admit=all copies=3", HS_MITIGATE_ON);
	hs_buf_printf(&large, "$2000\r\n");
	memset(hs_buf_reserve(&large, 2000), 'x', 2000);
	large.len += 2000;
	hs_buf_append(&large, "\r\n", 3);
	for (int i = 0; i < 200; i++) {
		say(&world, 'A', "GET ksmall");
		reply_all(&world, "~GET", VALUE);
		received(&world, 'A', VALUE);
		say(&world, 'A', "GET k");
		reply_all(&world, "~GET", large.data);
		reply_all(&world, "~DUMP k", "$3\r\nxyz\r\n");
		reply_all(&world, "RESTORE", "+OK\r\n");
		copies += reply_all(&world, COPY, large.data);
		reply_all(&world, "GET k", large.data);
		received(&world, 'A', large.data);
		assert_int_equal(world.count, 0);
	}
	assert_in_range(copies, 60, 133);
	assert_int_equal(stat(&world, made), 1);
	hs_buf_deinit(&large);
	close_copies(&world);
}

/* ---- copies are hidden from clients ---- */

static void test_clients_may_not_name_copies(void **state)
{
	static struct world world;

	(void)state;
	open_copies(&world, "k* cache stale=100ms copies=3");
	say(&world, 'A', "GET heatsink:copy:{1}:0:1:k");
	assert_non_null(strstr(take_received(&world, 'A'), "heatsink's own"));
	say(&world, 'A', "DEL a heatsink:copy:x b");
	assert_non_null(strstr(take_received(&world, 'A'), "heatsink's own"));
	say(&world, 'A', "MSET heatsink:copy:x 1");
	assert_non_null(strstr(take_received(&world, 'A'), "heatsink's own"));
	say(&world, 'A', "SET k heatsink:copy:x");
	sent(&world, "SET k heatsink:copy:x");
	reply(&world, "SET", "+OK\r\n");
	received(&world, 'A', "+OK\r\n");
	close_copies(&world);
}

static void test_keys_and_scan_do_not_show_copies(void **state)
{
	static struct world world;

	(void)state;
	open_copies(&world, "k* cache stale=100ms copies=3");
	say(&world, 'A', "KEYS *");
	take_sent(&world);
	reply(&world, "KEYS", "*2\r\n$1\r\na\r\n$17\r\nheatsink:copy:{1}\r\n");
	reply(&world, "KEYS", "*1\r\n$17\r\nheatsink:copy:{2}\r\n");
	reply(&world, "KEYS", "*1\r\n$1\r\nb\r\n");
	received(&world, 'A', "*2\r\n$1\r\na\r\n$1\r\nb\r\n");
	say(&world, 'A', "SCAN 0");
	take_sent(&world);
	reply(&world, "SCAN", "*2\r\n$1\r\n0\r\n*2\r\n$17\r\nheatsink:copy:{1}\r\n$1\r\na\r\n");
	received(&world, 'A', "*2\r\n$1\r\n1\r\n*1\r\n$1\r\na\r\n");
	say(&world, 'A', "RANDOMKEY");
	take_sent(&world);
	reply(&world, "RANDOMKEY", "$17\r\nheatsink:copy:{1}\r\n");
	reply(&world, "RANDOMKEY", "$1\r\na\r\n");
	reply(&world, "RANDOMKEY", "$17\r\nheatsink:copy:{2}\r\n");
	received(&world, 'A', "$1\r\na\r\n");
	say(&world, 'A', "CLUSTER GETKEYSINSLOT 7 10");
	take_sent(&world);
	reply(&world, "CLUSTER", "*2\r\n$17\r\nheatsink:copy:{1}\r\n$1\r\na\r\n");
	received(&world, 'A', "*1\r\n$1\r\na\r\n");
	close_copies(&world);
}

static void test_plan(void **state)
{
	static struct world world;
	const char *plan;

	(void)state;
	open_copies(&world, "k* cache stale=100ms copies=3");
	say(&world, 'A', "HEAT PLAN");
	received(&world, 'A', "*0\r\n");
	make_copies(&world, 'A');
	ask_many(&world, 'A', 3);
	say(&world, 'A', "HEAT PLAN");
	plan = take_received(&world, 'A');
	/* The counts of both workers are added. */
	assert_non_null(strstr(plan, "*2\r\n*20\r\n$3\r\nkey\r\n$1\r\nk\r\n"));
	assert_non_null(strstr(plan, "$5\r\nstate\r\n$6\r\nactive\r\n"));
	assert_non_null(strstr(plan, "$5\r\nreads\r\n*3\r\n:1\r\n:1\r\n:1\r\n"));
	set_rules(&world, "k* cache stale=100ms copies=3", HS_MITIGATE_OFF);
	answer_unlinks(&world);
	say(&world, 'A', "HEAT PLAN");
	plan = take_received(&world, 'A');
	assert_non_null(strstr(plan, "mitigate is off"));
	assert_non_null(strstr(plan, "$2\r\nk*\r\n"));
	close_copies(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reads_take_turns),
		cmocka_unit_test(test_places_are_on_all_partitions),
		cmocka_unit_test(test_other_keys_and_commands_are_not_copied),
		cmocka_unit_test(test_a_missing_copy_is_read_again_from_the_original),
		cmocka_unit_test(test_a_missing_original_is_answered_as_missing),
		cmocka_unit_test(test_a_client_disconnects_while_a_copy_is_read),
		cmocka_unit_test(test_a_copy_that_does_not_answer_is_not_waited_for),
		cmocka_unit_test(test_a_copy_that_is_refused_at_once),
		cmocka_unit_test(test_watching_and_tracking_clients_read_the_original),
		cmocka_unit_test(test_a_write_waits_for_the_read_before_it),
		cmocka_unit_test(test_a_transaction_waits_as_well),
		cmocka_unit_test(test_behind_a_script_the_original_is_read),
		cmocka_unit_test(test_folded_reads_go_to_copies),
		cmocka_unit_test(test_a_read_goes_to_no_copy_in_front_of_a_write_that_was_let_pass),
		cmocka_unit_test(test_with_a_cache),
		cmocka_unit_test(test_clients_may_not_name_copies),
		cmocka_unit_test(test_keys_and_scan_do_not_show_copies),
		cmocka_unit_test(test_plan),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
