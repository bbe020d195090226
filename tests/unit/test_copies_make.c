/* Goal: copies of a hot value are made when they are wanted and possible, and are discarded if the key changes
 * meanwhile. Copies end when the value changes, the key cools, its rule changes or the process ends. The stage
 * then removes them from the servers (absorb/copies/stage.c, make.c).
 *
 * Method: as in test_copies_read.c, where the path of a read is tested. */
#include "absorb/absorb.h"
#include "tests/lib/copies_world.h"

/* ---- how copies end ---- */

static void test_a_write_under_way_is_waited_for_at_the_original(void **state)
{
	static struct world world;

	(void)state;
	open_copies(&world, "k* cache stale=100ms copies=3");
	make_copies(&world, 'A');
	say(&world, 'E', "SET k new"); /* a client of the other worker writes */
	sent(&world, "SET k new");
	for (int i = 0; i < 3; i++)
		assert_int_equal(ask(&world, 'A'), 'o');
	reply(&world, "SET", "+OK\r\n");
	say(&world, 'A', "GET k");
	take_sent(&world);
	reply(&world, "GET k", VALUE);
	answer_unlinks(&world);
	assert_int_equal(stat(&world, keys), 0);
	close_copies(&world);
}

static void test_an_invalidation_ends_the_copies(void **state)
{
	static struct world world;

	(void)state;
	open_copies(&world, "k* cache stale=100ms copies=3");
	make_copies(&world, 'A');
	changed(&world, 0, "other");
	assert_int_equal(ask_many(&world, 'A', 3), 2);
	changed(&world, 0, "k");
	say(&world, 'A', "GET k");
	take_sent(&world);
	reply(&world, "GET k", VALUE);
	answer_unlinks(&world);
	close_copies(&world);
}

static void test_no_copies_without_a_liveness_check(void **state)
{
	static struct world world;

	(void)state;
	open_copies(&world, "k* cache stale=100ms copies=3");
	make_copies(&world, 'A');
	catch_up(&world, 0);
	later(&world, 101 * MS);
	for (int i = 0; i < 3; i++)
		assert_int_equal(ask(&world, 'A'), 'o');
	catch_up(&world, 0);
	assert_int_equal(ask_many(&world, 'A', 3), 2);
	lose_tracking_session(&world, 0);
	say(&world, 'A', "GET k");
	take_sent(&world);
	reply(&world, "GET k", VALUE);
	answer_unlinks(&world);
	close_copies(&world);
}

static void test_copies_end_with_the_key(void **state)
{
	static struct world world;

	(void)state;
	open_copies(&world, "k* cache stale=10s copies=3");
	warm_up(&world, 'A');
	world.ttl_ms = 2000;
	reply(&world, "~DUMP k", "$3\r\nxyz\r\n");
	assert_non_null(
		/* The copies' time to live is the original's, less the time that the DUMP took. */
		strstr(take_sent(&world), " 1999 xyz REPLACE"));
	assert_int_equal(reply_all(&world, "RESTORE", "+OK\r\n"), 2);
	later(&world, 1990 * MS);
	assert_int_equal(ask_many(&world, 'A', 3), 2);
	later(&world, 10 * MS);
	say(&world, 'A', "GET k");
	take_sent(&world);
	reply(&world, "GET k", VALUE);
	answer_unlinks(&world);
	close_copies(&world);
}

static void test_copies_of_a_key_that_cools_are_removed(void **state)
{
	static struct world world;

	(void)state;
	open_copies(&world, "k* cache stale=100ms copies=3");
	make_copies(&world, 'A');
	tick(&world, 900 * MS);
	sent(&world, "");
	tick(&world, 200 * MS);
	answer_unlinks(&world);
	close_copies(&world);
}

static void test_copies_end_with_their_rule(void **state)
{
	static struct world world;

	(void)state;
	for (int i = 0; i < 3; i++) {
		open_copies(&world, "k* cache stale=100ms copies=3");
		make_copies(&world, 'A');
		set_rules(&world, i == 0 ? "other cache copies=3" : "k* cache copies=3",
			  i == 1   ? HS_MITIGATE_OFF
			  : i == 2 ? HS_MITIGATE_OBSERVE
				   : HS_MITIGATE_ON);
		answer_unlinks(&world);
		for (int j = 0; j < 30; j++)
			assert_int_equal(ask(&world, 'A'), 'o');
		close_copies(&world);
	}
}

static void test_shutdown_removes_copies(void **state)
{
	static struct world world;

	(void)state;
	open_copies(&world, "k* cache stale=100ms copies=3");
	make_copies(&world, 'A');
	assert_int_equal(hs_core_drain(world.station[0].core, world.now, UINT64_MAX), 4 + 1);
	answer_unlinks(&world);
	assert_int_equal(hs_core_drain(world.station[0].core, world.now, UINT64_MAX), 4);
	close_copies(&world);
}

/* ---- making ---- */

/* After `stage` answered requests of making copies, `happens` runs. The core does not use the copies, and removes
 * those already made. */
static void check_spoiled(int stage, void (*happens)(struct world *world))
{
	static struct world world;

	open_copies(&world, "k* cache stale=100ms copies=3");
	warm_up(&world, 'A');
	if (stage > 0) {
		reply(&world, "~DUMP k", "$3\r\nxyz\r\n");
		take_sent(&world);
	}
	happens(&world);
	reply_all(&world, "~DUMP k", "$3\r\nxyz\r\n");
	reply_all(&world, "RESTORE", "+OK\r\n");
	reply_all(&world, "UNLINK heatsink:copy:{", ":1\r\n");
	assert_int_equal(world.count, 0);
	assert_int_equal(stat(&world, keys), 0);
	assert_int_equal(stat(&world, failed), 1);
	assert_int_equal(ask(&world, 'A'), 'o');
	close_copies(&world);
}

static void write_the_key(struct world *world)
{
	say(world, 'B', "SET k new");
	take_sent(world);
	reply(world, "SET", "+OK\r\n");
}

static void begin_to_write_the_key(struct world *world)
{
	say(world, 'B', "SET k new");
	take_sent(world);
}

static void invalidate_the_key(struct world *world)
{
	changed(world, 0, "k");
}

static void lose_tracking_connection(struct world *world)
{
	lose_tracking_session(world, 0);
}

static void take_the_rule(struct world *world)
{
	set_rules(world, NULL, HS_MITIGATE_ON);
}

static void test_a_change_while_copies_are_made_discards_them(void **state)
{
	(void)state;
	for (int stage = 0; stage < 2; stage++) {
		check_spoiled(stage, write_the_key);
		check_spoiled(stage, take_the_rule);
	}
	check_spoiled(1, invalidate_the_key);
	check_spoiled(1, lose_tracking_connection);
}

static void test_a_write_in_flight_discards_them_too(void **state)
{
	static struct world world;

	(void)state;
	open_copies(&world, "k* cache stale=100ms copies=3");
	warm_up(&world, 'A');
	begin_to_write_the_key(&world);
	reply(&world, "~DUMP k", "$3\r\nxyz\r\n");
	sent(&world, "");
	reply(&world, "SET", "+OK\r\n");
	assert_int_equal(stat(&world, failed), 1);
	close_copies(&world);
}

static void test_copying_pauses_after_a_refusal(void **state)
{
	static struct world world;

	(void)state;
	open_copies(&world, "k* cache stale=100ms copies=3");
	warm_up(&world, 'A');
	reply(&world, "~DUMP k", "$3\r\nxyz\r\n");
	take_sent(&world);
	reply(&world, "RESTORE", "-OOM no room\r\n");
	reply(&world, "RESTORE", "+OK\r\n");
	answer_unlinks(&world);
	for (int i = 0; i < 100; i++)
		assert_int_equal(ask(&world, 'A'), 'o');
	say(&world, 'A', "HEAT PLAN");
	assert_non_null(strstr(take_received(&world, 'A'), "RESTORE failed: -OOM no room"));
	close_copies(&world);
}

static void check_rests(const char *dump, int64_t ttl_ms, bool tracking_session, const char *why)
{
	static struct world world;

	open_copies(&world, "k* cache stale=100ms copies=3");
	warm_up(&world, 'A');
	world.station[0].no_tracking_session = !tracking_session;
	world.ttl_ms = ttl_ms;
	reply(&world, "~DUMP k", dump);
	reply_all(&world, "UNLINK heatsink:copy:{", ":0\r\n");
	say(&world, 'A', "HEAT PLAN");
	if (!strstr(take_received(&world, 'A'), why))
		fail_msg("not said: %s", why);
	assert_int_equal(ask(&world, 'A'), 'o');
	close_copies(&world);
}

static void test_copying_pauses_for_uncopyable_values(void **state)
{
	struct hs_buf large = {0};

	(void)state;
	check_rests("$-1\r\n", -1, true, "the key does not exist");
	check_rests("-NOPERM no DUMP for you\r\n", -1, true, "DUMP failed: -NOPERM");
	check_rests("$3\r\nxyz\r\n", -1, false, "the server does not report");
	check_rests("$3\r\nxyz\r\n", 0, true, "the server does not report");
	check_rests("$3\r\nxyz\r\n", 50, true, "expires soon");
	hs_buf_printf(&large, "$%zu\r\n", (size_t)HS_COPIES_VALUE_BYTES_MAX + 1);
	memset(hs_buf_reserve(&large, HS_COPIES_VALUE_BYTES_MAX + 4), 'x',
	       HS_COPIES_VALUE_BYTES_MAX + 1);
	large.len += HS_COPIES_VALUE_BYTES_MAX + 1;
	hs_buf_append(&large, "\r\n", 3);
	check_rests(large.data, -1, true,
		    "its value has 16777217 bytes; at most 16777216 are copied");
	hs_buf_deinit(&large);
}

static void test_one_partition_is_not_enough(void **state)
{
	static struct world world;

	(void)state;
	open_copies(&world, "k* cache stale=100ms copies=3");
	hs_slot_map_fill_even(&slots, 1);
	for (int i = 0; i < 60; i++)
		assert_int_equal(ask(&world, 'A'), 'o');
	say(&world, 'A', "HEAT PLAN");
	assert_non_null(strstr(take_received(&world, 'A'), "there is only one partition"));
	close_copies(&world);
}

static void test_long_names_are_not_copied(void **state)
{
	static struct world world;
	char request[HS_COPIES_KEY_BYTES_MAX + 16] = "GET ";

	(void)state;
	open_copies(&world, "k* cache stale=100ms copies=3");
	memset(request + 4, 'k', HS_COPIES_KEY_BYTES_MAX + 1);
	for (int i = 0; i < 60; i++) {
		say(&world, 'A', request);
		sent(&world, request);
		reply(&world, "GET", VALUE);
		take_received(&world, 'A');
	}
	say(&world, 'A', "HEAT PLAN");
	assert_non_null(strstr(take_received(&world, 'A'), "longer than 512 bytes"));
	close_copies(&world);
}

static void test_copied_keys_are_bounded(void **state)
{
	static struct world world;
	const struct hs_copies_stage *stage;
	const struct hs_core *core;
	char request[32];

	(void)state;
	open_copies(&world, "k* cache stale=100ms copies=3");
	/* With one partition no copy is made, but the stage remembers every key. */
	hs_slot_map_fill_even(&slots, 1);
	for (int key = 0; key < HS_COPIES_KEYS_MAX + 4; key++) {
		snprintf(request, sizeof request, "GET k%d", key);
		for (int i = 0; i < 150; i++) {
			say(&world, 'A', request);
			take_sent(&world);
			reply(&world, "GET", VALUE);
			take_received(&world, 'A');
		}
		/* The keys before have cooled, but the core has not checked yet. */
		later(&world, 500 * MS);
	}
	core = world.station[0].core;
	stage = core->stages.self[hs_stage_index(core, &hs_stage_copies)];
	assert_int_equal(stage->count, HS_COPIES_KEYS_MAX);
	close_copies(&world);
}

static void test_sets_that_do_not_pay_are_made_less_often(void **state)
{
	static struct world world;
	int sets = 0;

	(void)state;
	open_copies(&world, "k* cache stale=100ms copies=3");
	warm_up(&world, 'A');
	for (int i = 0; i < 200; i++) { /* 200 writes in 2 s, with reads in between */
		sets += reply_all(&world, "~DUMP k", "$3\r\nxyz\r\n");
		reply_all(&world, "RESTORE", "+OK\r\n");
		write_the_key(&world);
		for (int j = 0; j < 20; j++) {
			say(&world, 'A', "GET k");
			reply_all(&world, "GET k", VALUE);
			reply_all(&world, COPY, VALUE);
			reply_all(&world, "UNLINK", ":1\r\n");
			later(&world, 500);
		}
		take_received(&world, 'A');
		take_received(&world, 'B');
	}
	/* The stage waits 50, 100, 200, 400, 800 ms between sets of copies. */
	assert_in_range(sets, 3, 8);
	reply_all(&world, "~DUMP k", "$3\r\nxyz\r\n");
	reply_all(&world, "RESTORE", "+OK\r\n");
	close_copies(&world);
}

/* ---- the lease ---- */

static void test_lease_is_renewed_while_it_is_used(void **state)
{
	static struct world world;

	(void)state;
	open_copies(&world, "k* cache stale=100s ttl=1h copies=3");
	make_copies(&world, 'A');
	for (int i = 0; i < 3; i++) {
		ask_many(&world, 'A', 30);
		tick(&world, 900 * MS);
		sent(&world, "");
	}
	ask_many(&world, 'A', 30);
	tick(&world, 900 * MS);
	assert_int_equal(reply_all(&world, "PEXPIRE heatsink:copy:{", ":1\r\n"), 2);
	assert_int_equal(ask_many(&world, 'A', 3), 2);
	for (int i = 0; i < 4; i++) {
		ask_many(&world, 'A', 30);
		tick(&world, 900 * MS);
	}
	/* The server answers PEXPIRE with 0, so one of the copies is missing: the stage removes the others. */
	take_sent(&world);
	reply(&world, "PEXPIRE", ":1\r\n");
	reply(&world, "PEXPIRE", ":0\r\n");
	answer_unlinks(&world);
	close_copies(&world);
}

static void test_copies_whose_slots_moved_together_are_abandoned(void **state)
{
	static struct world world;

	(void)state;
	open_copies(&world, "k* cache stale=100ms copies=3");
	make_copies(&world, 'A');
	for (int slot = 0; slot < HS_SLOTS; slot++) {
		if (hs_slot_map_get(&slots, (uint16_t)slot) == 2)
			hs_slot_map_set(&slots, (uint16_t)slot, 1);
	}
	tick(&world, 100 * MS);
	answer_unlinks(&world);
	close_copies(&world);
}

/* ---- other workers ---- */

static void test_the_other_worker_uses_the_copies(void **state)
{
	static struct world world;
	int copies = 0;

	(void)state;
	open_copies(&world, "k* cache stale=100ms copies=3");
	make_copies(&world, 'A');
	for (int i = 0; i < 100 && copies < 6; i++)
		/* ask() fails if the read causes any other command. */
		copies += ask(&world, 'E') == 'c';
	assert_int_equal(copies, 6);
	assert_int_equal(stat(&world, made), 1);
	assert_int_equal(stat(&world, keys), 2);
	changed(&world, 0, "k");
	say(&world, 'E', "GET k"); /* worker 1 removes no copies, and makes copies of its own */
	sent(&world, "~DUMP k | GET k");
	reply(&world, "GET k", VALUE);
	reply(&world, "~DUMP k", "$-1\r\n");
	sent(&world, "");
	say(&world, 'A', "GET k");
	take_sent(&world);
	reply(&world, "GET k", VALUE);
	answer_unlinks(&world);
	close_copies(&world);
}

static void test_one_worker_makes_the_copies(void **state)
{
	static struct world world;

	(void)state;
	open_copies(&world, "k* cache stale=100ms copies=3");
	warm_up(&world, 'A');
	for (int i = 0; i < 60; i++)
		assert_int_equal(ask(&world, 'E'), 'o');
	reply(&world, "~DUMP k", "$3\r\nxyz\r\n");
	reply_all(&world, "RESTORE", "+OK\r\n");
	later(&world, 20 * MS);
	assert_in_range(ask_many(&world, 'E', 4), 2, 3);
	close_copies(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_write_under_way_is_waited_for_at_the_original),
		cmocka_unit_test(test_an_invalidation_ends_the_copies),
		cmocka_unit_test(test_no_copies_without_a_liveness_check),
		cmocka_unit_test(test_copies_end_with_the_key),
		cmocka_unit_test(test_copies_of_a_key_that_cools_are_removed),
		cmocka_unit_test(test_copies_end_with_their_rule),
		cmocka_unit_test(test_shutdown_removes_copies),
		cmocka_unit_test(test_a_change_while_copies_are_made_discards_them),
		cmocka_unit_test(test_a_write_in_flight_discards_them_too),
		cmocka_unit_test(test_copying_pauses_after_a_refusal),
		cmocka_unit_test(test_copying_pauses_for_uncopyable_values),
		cmocka_unit_test(test_one_partition_is_not_enough),
		cmocka_unit_test(test_long_names_are_not_copied),
		cmocka_unit_test(test_copied_keys_are_bounded),
		cmocka_unit_test(test_sets_that_do_not_pay_are_made_less_often),
		cmocka_unit_test(test_lease_is_renewed_while_it_is_used),
		cmocka_unit_test(test_copies_whose_slots_moved_together_are_abandoned),
		cmocka_unit_test(test_the_other_worker_uses_the_copies),
		cmocka_unit_test(test_one_worker_makes_the_copies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
