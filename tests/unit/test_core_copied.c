/* Goal: a hot value under a rule with copies lies on several partitions, reads go there in turn, and no
 * read is answered with anything that its contract forbids: not after a write through this process or
 * behind it, not from a copy that is gone, not out of its connection's order. What is made is taken away
 * again (core/copied.c, copied_make.c).
 *
 * Method: scripts against two cores whose engine is the test (tests/lib/cached_world.h), on three
 * partitions, without a local cache unless the test says so. */
#include "tests/lib/cached_world.h"

#include "base/mem.h"
#include "base/slot.h"
#include "core/copied.h"

#define COPY "GET heatsink:copy:{"
#define VALUE "$5\r\nvalue\r\n"

static struct hs_slot_map slots;

static void open_copies(struct world *world, const char *rule)
{
	hs_slot_map_fill_even(&slots, 3);
	open_world_on(world, rule, &slots);
	world->options.cache_bytes = 0;
	world->options.fold = false;
	set_rules(world, rule, HS_MITIGATE_ON);
}

/* Reads the key until something else than the read is sent. */
static void warm_up(struct world *world, char who)
{
	for (int i = 0; i < 200; i++) {
		const char *seen;

		say(world, who, "GET k");
		seen = look(world);
		if (strcmp(seen, "GET k") != 0) {
			assert_string_equal(seen, "~DUMP k | GET k");
			reply(world, "GET k", VALUE);
			listen(world, who);
			return;
		}
		reply(world, "GET k", VALUE);
		heard(world, who, VALUE);
	}
	fail_msg("no copies are made");
}

/* What is under way and begins so; each is answered. How many. */
static int reply_all(struct world *world, const char *begin, const char *answer)
{
	char text[1024];
	int count = 0;

	look(world);
	for (size_t i = 0; i < world->count; i++) {
		describe(world->ops[i], text, sizeof text);
		count += strncmp(text, begin, strlen(begin)) == 0;
	}
	for (int i = 0; i < count; i++)
		reply(world, begin, answer);
	return count;
}

static void make_copies(struct world *world, char who)
{
	warm_up(world, who);
	reply(world, "~DUMP k", "$3\r\nxyz\r\n");
	assert_int_equal(reply_all(world, "RESTORE heatsink:copy:{", "+OK\r\n"), 2);
}

/* Where the next read goes: 'o' to the original, 'c' to a copy, which answer. */
static char ask(struct world *world, char who)
{
	char seen[256];
	char where;

	say(world, who, "GET k");
	snprintf(seen, sizeof seen, "%s", look(world));
	if (strcmp(seen, "GET k") == 0) {
		where = 'o';
	} else {
		if (strncmp(seen, COPY, strlen(COPY)) != 0 || strchr(seen, '|'))
			fail_msg("sent: %s", seen);
		where = 'c';
	}
	reply(world, seen, VALUE);
	heard(world, who, VALUE);
	return where;
}

static int ask_many(struct world *world, char who, int count)
{
	int copies = 0;

	for (int i = 0; i < count; i++)
		copies += ask(world, who) == 'c';
	return copies;
}

/* The two copies are taken away. */
static void taken_away(struct world *world)
{
	assert_int_equal(reply_all(world, "UNLINK heatsink:copy:{", ":1\r\n"), 2);
	assert_int_equal(world->count, 0);
}

/* Ends the world with whatever copies there are. */
static void close_copies(struct world *world)
{
	for (size_t i = 0; i < WORKERS; i++)
		hs_core_drain(world->station[i].core, world->now, UINT64_MAX);
	reply_all(world, "UNLINK heatsink:copy:{", ":1\r\n");
	close_world(world);
}

static uint64_t stat_of(const struct world *world, size_t offset)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < WORKERS; i++)
		sum += counted((const void *)((const char *)hs_core_stats(world->station[i].core) +
					      offset));
	return sum;
}
#define stat(world, field) stat_of(world, offsetof(struct hs_core_stats, field))

/* ---- the way of a read ---- */

static void test_reads_take_turns(void **state)
{
	static struct world world;

	(void)state;
	open_copies(&world, "k* cache stale=100ms copies=3");
	make_copies(&world, 'A');
	assert_int_equal(ask_many(&world, 'A', 9), 6);
	assert_int_equal(ask_many(&world, 'B', 9), 6);
	assert_int_equal(stat(&world, copies_reads), 12);
	assert_int_equal(stat(&world, copies_made), 1);
	assert_int_equal(stat(&world, copies_keys), 1);
	assert_int_equal(stat(&world, copies_again), 0);
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
		look(&world);
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

static void test_other_keys_and_commands_go_their_way(void **state)
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

static void test_a_missing_copy_is_not_believed(void **state)
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
		look(&world);
		reply(&world, COPY, answers[i]);
		sent(&world, "GET k");
		heard(&world, 'A', "");
		reply(&world, "GET k", "$5\r\nother\r\n");
		heard(&world, 'A', "$5\r\nother\r\n");
		assert_int_equal(stat(&world, copies_again), 1);
		close_copies(&world);
	}
}

static void test_what_the_original_says_is_believed(void **state)
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
	heard(&world, 'A', "$-1\r\n");
	sent(&world, "");
	close_copies(&world);
}

static void test_client_leaves_while_a_copy_is_asked(void **state)
{
	static struct world world;

	(void)state;
	open_copies(&world, "k* cache stale=100ms copies=3");
	make_copies(&world, 'A');
	while (ask(&world, 'B') != 'o')
		;
	say(&world, 'B', "GET k");
	look(&world);
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
	look(&world);
	say(&world, 'B', "SET other v"); /* waits for it */
	tick(&world, 40 * MS);
	sent(&world, "");
	tick(&world, 20 * MS);
	sent(&world, "GET k");
	reply(&world, "GET k", VALUE);
	heard(&world, 'B', VALUE);
	sent(&world, "SET other v");
	reply(&world, "SET", "+OK\r\n");
	assert_in_range(ask_many(&world, 'A', 9), 4, 5); /* one place less */
	reply(&world, COPY, VALUE);			 /* at last, and nobody cares */
	heard(&world, 'B', "+OK\r\n");
	assert_int_equal(stat(&world, copies_again), 1);
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
	heard(&world, 'A', world.value);
	world.at_once = false;
	assert_int_equal(stat(&world, copies_again), 1);
	sent(&world, "");
	close_copies(&world);
}

static void test_who_watches_or_tracks_reads_the_original(void **state)
{
	static struct world world;

	(void)state;
	open_copies(&world, "k* cache stale=100ms copies=3");
	make_copies(&world, 'A');
	say(&world, 'B', "WATCH k");
	look(&world);
	reply(&world, "WATCH", "+OK\r\n");
	listen(&world, 'B');
	for (int i = 0; i < 4; i++)
		assert_int_equal(ask(&world, 'B'), 'o');
	say(&world, 'B', "UNWATCH");
	reply_all(&world, "", "+OK\r\n");
	listen(&world, 'B');
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
	look(&world);
	say(&world, 'A', "SET k new");
	say(&world, 'A', "GET k");
	sent(&world, "");
	/* The copy is gone: the original is asked, and is still as it was for this client. */
	reply(&world, COPY, "$-1\r\n");
	sent(&world, "GET k");
	reply(&world, "GET k", "$3\r\nold\r\n");
	heard(&world, 'A', "$3\r\nold\r\n");
	sent(&world, "SET k new | GET k");
	reply(&world, "SET", "+OK\r\n");
	reply(&world, "GET k", "$3\r\nnew\r\n");
	heard(&world, 'A', "+OK\r\n$3\r\nnew\r\n");
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
	look(&world);
	say(&world, 'A', "MULTI");
	say(&world, 'A', "SET k new");
	say(&world, 'A', "EXEC");
	assert_int_equal(world.count, 1);
	reply(&world, COPY, VALUE);
	assert_int_equal(world.count, 1);
	look(&world);
	reply(&world, "", "*1\r\n+OK\r\n");
	heard(&world, 'A', VALUE "+OK\r\n+QUEUED\r\n*1\r\n+OK\r\n");
	close_copies(&world);
}

/* It may write what it does not name, and nobody here knows when. */
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
	heard(&world, 'A', ":1\r\n" VALUE VALUE VALUE VALUE);
	for (int i = 0; i < 4; i++)
		assert_int_equal(ask(&world, 'A'), 'o');
	assert_int_equal(ask_many(&world, 'B', 3), 2);
	later(&world, 1);
	prove(&world, 0); /* it would have been told */
	assert_int_equal(ask_many(&world, 'A', 3), 2);
	close_copies(&world);
}

/* ---- what ends a set ---- */

static void test_a_write_under_way_is_waited_for_at_the_original(void **state)
{
	static struct world world;

	(void)state;
	open_copies(&world, "k* cache stale=100ms copies=3");
	make_copies(&world, 'A');
	say(&world, 'E', "SET k new"); /* of the other worker */
	sent(&world, "SET k new");
	for (int i = 0; i < 3; i++)
		assert_int_equal(ask(&world, 'A'), 'o');
	reply(&world, "SET", "+OK\r\n");
	say(&world, 'A', "GET k");
	look(&world);
	reply(&world, "GET k", VALUE);
	taken_away(&world);
	assert_int_equal(stat(&world, copies_keys), 0);
	close_copies(&world);
}

static void test_a_change_behind_us_ends_it(void **state)
{
	static struct world world;

	(void)state;
	open_copies(&world, "k* cache stale=100ms copies=3");
	make_copies(&world, 'A');
	changed(&world, 0, "other");
	assert_int_equal(ask_many(&world, 'A', 3), 2);
	changed(&world, 0, "k");
	say(&world, 'A', "GET k");
	look(&world);
	reply(&world, "GET k", VALUE);
	taken_away(&world);
	close_copies(&world);
}

static void test_nothing_without_a_proof(void **state)
{
	static struct world world;

	(void)state;
	open_copies(&world, "k* cache stale=100ms copies=3");
	make_copies(&world, 'A');
	prove(&world, 0);
	later(&world, 101 * MS);
	for (int i = 0; i < 3; i++)
		assert_int_equal(ask(&world, 'A'), 'o');
	prove(&world, 0);
	assert_int_equal(ask_many(&world, 'A', 3), 2);
	lose_vouch(&world, 0);
	say(&world, 'A', "GET k");
	look(&world);
	reply(&world, "GET k", VALUE);
	taken_away(&world);
	close_copies(&world);
}

static void test_ends_with_the_key(void **state)
{
	static struct world world;

	(void)state;
	open_copies(&world, "k* cache stale=10s copies=3");
	warm_up(&world, 'A');
	world.left_ms = 2000;
	reply(&world, "~DUMP k", "$3\r\nxyz\r\n");
	assert_non_null(strstr(look(&world), " 1999 xyz REPLACE")); /* the time it took is gone */
	assert_int_equal(reply_all(&world, "RESTORE", "+OK\r\n"), 2);
	later(&world, 1990 * MS);
	assert_int_equal(ask_many(&world, 'A', 3), 2);
	later(&world, 10 * MS);
	say(&world, 'A', "GET k");
	look(&world);
	reply(&world, "GET k", VALUE);
	taken_away(&world);
	close_copies(&world);
}

static void test_cools(void **state)
{
	static struct world world;

	(void)state;
	open_copies(&world, "k* cache stale=100ms copies=3");
	make_copies(&world, 'A');
	tick(&world, 900 * MS);
	sent(&world, "");
	tick(&world, 200 * MS);
	taken_away(&world);
	close_copies(&world);
}

static void test_without_its_rule(void **state)
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
		taken_away(&world);
		for (int j = 0; j < 30; j++)
			assert_int_equal(ask(&world, 'A'), 'o');
		close_copies(&world);
	}
}

static void test_shutdown_takes_them_away(void **state)
{
	static struct world world;

	(void)state;
	open_copies(&world, "k* cache stale=100ms copies=3");
	make_copies(&world, 'A');
	assert_int_equal(hs_core_drain(world.station[0].core, world.now, UINT64_MAX), 4 + 1);
	taken_away(&world);
	assert_int_equal(hs_core_drain(world.station[0].core, world.now, UINT64_MAX), 4);
	close_copies(&world);
}

/* ---- making ---- */

/* `stage` requests of it are answered, and `happens`: nothing is used, what was made is taken away. */
static void check_spoiled(int stage, void (*happens)(struct world *world))
{
	static struct world world;

	open_copies(&world, "k* cache stale=100ms copies=3");
	warm_up(&world, 'A');
	if (stage > 0) {
		reply(&world, "~DUMP k", "$3\r\nxyz\r\n");
		look(&world);
	}
	happens(&world);
	reply_all(&world, "~DUMP k", "$3\r\nxyz\r\n");
	reply_all(&world, "RESTORE", "+OK\r\n");
	reply_all(&world, "UNLINK heatsink:copy:{", ":1\r\n");
	assert_int_equal(world.count, 0);
	assert_int_equal(stat(&world, copies_keys), 0);
	assert_int_equal(stat(&world, copies_failed), 1);
	assert_int_equal(ask(&world, 'A'), 'o');
	close_copies(&world);
}

static void write_it(struct world *world)
{
	say(world, 'B', "SET k new");
	look(world);
	reply(world, "SET", "+OK\r\n");
}

static void begin_to_write_it(struct world *world)
{
	say(world, 'B', "SET k new");
	look(world);
}

static void tell_of_a_change(struct world *world)
{
	changed(world, 0, "k");
}

static void lose_who_would_tell(struct world *world)
{
	lose_vouch(world, 0);
}

static void take_the_rule(struct world *world)
{
	set_rules(world, NULL, HS_MITIGATE_ON);
}

static void test_what_changes_meanwhile_is_not_used(void **state)
{
	(void)state;
	for (int stage = 0; stage < 2; stage++) {
		check_spoiled(stage, write_it);
		check_spoiled(stage, take_the_rule);
	}
	check_spoiled(1, tell_of_a_change);
	check_spoiled(1, lose_who_would_tell);
}

static void test_a_write_that_is_not_answered_yet_spoils_it_too(void **state)
{
	static struct world world;

	(void)state;
	open_copies(&world, "k* cache stale=100ms copies=3");
	warm_up(&world, 'A');
	begin_to_write_it(&world);
	reply(&world, "~DUMP k", "$3\r\nxyz\r\n");
	sent(&world, "");
	reply(&world, "SET", "+OK\r\n");
	assert_int_equal(stat(&world, copies_failed), 1);
	close_copies(&world);
}

static void test_what_servers_refuse_rests(void **state)
{
	static struct world world;

	(void)state;
	open_copies(&world, "k* cache stale=100ms copies=3");
	warm_up(&world, 'A');
	reply(&world, "~DUMP k", "$3\r\nxyz\r\n");
	look(&world);
	reply(&world, "RESTORE", "-OOM no room\r\n");
	reply(&world, "RESTORE", "+OK\r\n");
	taken_away(&world);
	for (int i = 0; i < 100; i++)
		assert_int_equal(ask(&world, 'A'), 'o');
	say(&world, 'A', "HEAT PLAN");
	assert_non_null(strstr(listen(&world, 'A'), "RESTORE: -OOM no room"));
	close_copies(&world);
}

static void check_rests(const char *dump, int64_t left_ms, bool vouch, const char *why)
{
	static struct world world;

	open_copies(&world, "k* cache stale=100ms copies=3");
	warm_up(&world, 'A');
	world.station[0].no_vouch = !vouch;
	world.left_ms = left_ms;
	reply(&world, "~DUMP k", dump);
	reply_all(&world, "UNLINK heatsink:copy:{", ":0\r\n");
	say(&world, 'A', "HEAT PLAN");
	if (!strstr(listen(&world, 'A'), why))
		fail_msg("not said: %s", why);
	assert_int_equal(ask(&world, 'A'), 'o');
	close_copies(&world);
}

static void test_what_cannot_be_copied_rests(void **state)
{
	struct hs_buf large = {0};

	(void)state;
	check_rests("$-1\r\n", -1, true, "there is no such key");
	check_rests("-NOPERM no DUMP for you\r\n", -1, true, "DUMP: -NOPERM");
	check_rests("$3\r\nxyz\r\n", -1, false, "nobody would say");
	check_rests("$3\r\nxyz\r\n", 0, true, "nobody would say");
	check_rests("$3\r\nxyz\r\n", 50, true, "ends soon");
	hs_buf_printf(&large, "$%zu\r\n", (size_t)HS_COPIES_VALUE_BYTES_MAX + 1);
	memset(hs_buf_reserve(&large, HS_COPIES_VALUE_BYTES_MAX + 4), 'x',
	       HS_COPIES_VALUE_BYTES_MAX + 1);
	large.len += HS_COPIES_VALUE_BYTES_MAX + 1;
	hs_buf_append(&large, "\r\n", 3);
	check_rests(large.data, -1, true, "it has 16777217 bytes; at most 16777216 are copied");
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
	assert_non_null(strstr(listen(&world, 'A'), "there is one partition"));
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
		listen(&world, 'A');
	}
	say(&world, 'A', "HEAT PLAN");
	assert_non_null(strstr(listen(&world, 'A'), "longer than 512 bytes"));
	close_copies(&world);
}

static void test_so_many_keys_and_no_more(void **state)
{
	static struct world world;
	char request[32];

	(void)state;
	open_copies(&world, "k* cache stale=100ms copies=3");
	hs_slot_map_fill_even(&slots, 1); /* none is made, all are kept in mind */
	for (int key = 0; key < HS_COPIED_KEYS_MAX + 4; key++) {
		snprintf(request, sizeof request, "GET k%d", key);
		for (int i = 0; i < 150; i++) {
			say(&world, 'A', request);
			look(&world);
			reply(&world, "GET", VALUE);
			listen(&world, 'A');
		}
		later(&world, 500 * MS); /* what was hot is not any more, but nobody looks */
	}
	assert_int_equal(world.station[0].core->copying->count, HS_COPIED_KEYS_MAX);
	close_copies(&world);
}

static void test_sets_that_do_not_pay_are_made_less_often(void **state)
{
	static struct world world;
	int sets = 0;

	(void)state;
	open_copies(&world, "k* cache stale=100ms copies=3");
	warm_up(&world, 'A');
	for (int i = 0; i < 200; i++) { /* 200 writes in 2 s, reads between them */
		sets += reply_all(&world, "~DUMP k", "$3\r\nxyz\r\n");
		reply_all(&world, "RESTORE", "+OK\r\n");
		write_it(&world);
		for (int j = 0; j < 20; j++) {
			say(&world, 'A', "GET k");
			reply_all(&world, "GET k", VALUE);
			reply_all(&world, COPY, VALUE);
			reply_all(&world, "UNLINK", ":1\r\n");
			later(&world, 500);
		}
		listen(&world, 'A');
		listen(&world, 'B');
	}
	assert_in_range(sets, 3, 8); /* after 50, 100, 200, 400, 800 ms */
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
	/* One of them is not there any more. */
	look(&world);
	reply(&world, "PEXPIRE", ":1\r\n");
	reply(&world, "PEXPIRE", ":0\r\n");
	taken_away(&world);
	close_copies(&world);
}

static void test_places_that_have_come_together_are_left(void **state)
{
	static struct world world;

	(void)state;
	open_copies(&world, "k* cache stale=100ms copies=3");
	make_copies(&world, 'A');
	for (uint16_t slot = 0; slot < HS_SLOTS; slot++) {
		if (hs_slot_map_get(&slots, slot) == 2)
			hs_slot_map_set(&slots, slot, 1);
	}
	tick(&world, 100 * MS);
	taken_away(&world);
	close_copies(&world);
}

/* ---- other workers ---- */

static void test_the_other_worker_uses_them(void **state)
{
	static struct world world;
	int copies = 0;

	(void)state;
	open_copies(&world, "k* cache stale=100ms copies=3");
	make_copies(&world, 'A');
	for (int i = 0; i < 100 && copies < 6; i++)
		copies += ask(&world, 'E') == 'c'; /* fails if anything else is sent */
	assert_int_equal(copies, 6);
	assert_int_equal(stat(&world, copies_made), 1);
	assert_int_equal(stat(&world, copies_keys), 2);
	changed(&world, 0, "k");
	say(&world, 'E', "GET k"); /* takes nothing away, and makes a set of its own */
	sent(&world, "~DUMP k | GET k");
	reply(&world, "GET k", VALUE);
	reply(&world, "~DUMP k", "$-1\r\n");
	sent(&world, "");
	say(&world, 'A', "GET k");
	look(&world);
	reply(&world, "GET k", VALUE);
	taken_away(&world);
	close_copies(&world);
}

static void test_one_worker_makes_them(void **state)
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

/* ---- with its neighbours ---- */

static void test_folded_reads_go_to_copies(void **state)
{
	static struct world world;

	(void)state;
	open_copies(&world, "k* cache stale=100ms copies=3");
	make_copies(&world, 'A');
	world.options.fold = true;
	set_rules(&world, "k* cache stale=100ms copies=3", HS_MITIGATE_ON);
	for (int i = 0; i < 20; i++) { /* until its queue is there */
		say(&world, 'A', "GET k");
		end_round(&world);
		look(&world);
		reply(&world, "GET", VALUE);
		listen(&world, 'A');
	}
	for (int i = 0; i < 6; i++) {
		const char *copied = i % 2 ? "$-1\r\n" : VALUE;
		bool copy;

		say(&world, 'A', "GET k");
		say(&world, 'B', "GET k");
		say(&world, 'C', "GET k");
		end_round(&world);
		copy = strncmp(look(&world), COPY, strlen(COPY)) == 0;
		assert_int_equal(world.count, 1);
		reply(&world, "GET", copy ? copied : VALUE);
		if (copy && copied != (const char *)VALUE && strcmp(copied, VALUE) != 0) {
			sent(&world, "GET k");
			reply(&world, "GET k", VALUE);
		}
		heard(&world, 'A', VALUE);
		heard(&world, 'B', VALUE);
		heard(&world, 'C', VALUE);
	}
	assert_int_equal(world.count, 0);
	close_copies(&world);
}

/* What fits the cache needs no copies; what does not is read from them. */
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
		heard(&world, 'A', VALUE);
		say(&world, 'A', "GET k");
		reply_all(&world, "~GET", large.data);
		reply_all(&world, "~DUMP k", "$3\r\nxyz\r\n");
		reply_all(&world, "RESTORE", "+OK\r\n");
		copies += reply_all(&world, COPY, large.data);
		reply_all(&world, "GET k", large.data);
		heard(&world, 'A', large.data);
		assert_int_equal(world.count, 0);
	}
	assert_in_range(copies, 60, 133);
	assert_int_equal(stat(&world, copies_made), 1);
	hs_buf_deinit(&large);
	close_copies(&world);
}

/* ---- nobody's confusion ---- */

static void test_clients_may_not_name_them(void **state)
{
	static struct world world;

	(void)state;
	open_copies(&world, "k* cache stale=100ms copies=3");
	say(&world, 'A', "GET heatsink:copy:{1}:0:1:k");
	assert_non_null(strstr(listen(&world, 'A'), "heatsink's own"));
	say(&world, 'A', "DEL a heatsink:copy:x b");
	assert_non_null(strstr(listen(&world, 'A'), "heatsink's own"));
	say(&world, 'A', "MSET heatsink:copy:x 1");
	assert_non_null(strstr(listen(&world, 'A'), "heatsink's own"));
	say(&world, 'A', "SET k heatsink:copy:x");
	sent(&world, "SET k heatsink:copy:x");
	reply(&world, "SET", "+OK\r\n");
	heard(&world, 'A', "+OK\r\n");
	close_copies(&world);
}

static void test_keys_and_scan_do_not_show_them(void **state)
{
	static struct world world;

	(void)state;
	open_copies(&world, "k* cache stale=100ms copies=3");
	say(&world, 'A', "KEYS *");
	look(&world);
	reply(&world, "KEYS", "*2\r\n$1\r\na\r\n$17\r\nheatsink:copy:{1}\r\n");
	reply(&world, "KEYS", "*1\r\n$17\r\nheatsink:copy:{2}\r\n");
	reply(&world, "KEYS", "*1\r\n$1\r\nb\r\n");
	heard(&world, 'A', "*2\r\n$1\r\na\r\n$1\r\nb\r\n");
	say(&world, 'A', "SCAN 0");
	look(&world);
	reply(&world, "SCAN", "*2\r\n$1\r\n0\r\n*2\r\n$17\r\nheatsink:copy:{1}\r\n$1\r\na\r\n");
	heard(&world, 'A', "*2\r\n$1\r\n1\r\n*1\r\n$1\r\na\r\n");
	say(&world, 'A', "RANDOMKEY");
	look(&world);
	reply(&world, "RANDOMKEY", "$17\r\nheatsink:copy:{1}\r\n");
	reply(&world, "RANDOMKEY", "$1\r\na\r\n");
	reply(&world, "RANDOMKEY", "$17\r\nheatsink:copy:{2}\r\n");
	heard(&world, 'A', "$1\r\na\r\n");
	say(&world, 'A', "CLUSTER GETKEYSINSLOT 7 10");
	look(&world);
	reply(&world, "CLUSTER", "*2\r\n$17\r\nheatsink:copy:{1}\r\n$1\r\na\r\n");
	heard(&world, 'A', "*1\r\n$1\r\na\r\n");
	close_copies(&world);
}

static void test_plan(void **state)
{
	static struct world world;
	const char *plan;

	(void)state;
	open_copies(&world, "k* cache stale=100ms copies=3");
	say(&world, 'A', "HEAT PLAN");
	heard(&world, 'A', "*0\r\n");
	make_copies(&world, 'A');
	ask_many(&world, 'A', 3);
	say(&world, 'A', "HEAT PLAN");
	plan = listen(&world, 'A');
	/* Of two workers; in this world they are one. */
	assert_non_null(strstr(plan, "*2\r\n*20\r\n$3\r\nkey\r\n$1\r\nk\r\n"));
	assert_non_null(strstr(plan, "$5\r\nstate\r\n$6\r\nspread\r\n"));
	assert_non_null(strstr(plan, "$5\r\nreads\r\n*3\r\n:1\r\n:1\r\n:1\r\n"));
	set_rules(&world, "k* cache stale=100ms copies=3", HS_MITIGATE_OFF);
	taken_away(&world);
	say(&world, 'A', "HEAT PLAN");
	plan = listen(&world, 'A');
	assert_non_null(strstr(plan, "mitigation is off"));
	assert_non_null(strstr(plan, "$2\r\nk*\r\n"));
	close_copies(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reads_take_turns),
		cmocka_unit_test(test_places_are_on_all_partitions),
		cmocka_unit_test(test_other_keys_and_commands_go_their_way),
		cmocka_unit_test(test_a_missing_copy_is_not_believed),
		cmocka_unit_test(test_what_the_original_says_is_believed),
		cmocka_unit_test(test_client_leaves_while_a_copy_is_asked),
		cmocka_unit_test(test_a_copy_that_does_not_answer_is_not_waited_for),
		cmocka_unit_test(test_a_copy_that_is_refused_at_once),
		cmocka_unit_test(test_who_watches_or_tracks_reads_the_original),
		cmocka_unit_test(test_a_write_waits_for_the_read_before_it),
		cmocka_unit_test(test_a_transaction_waits_as_well),
		cmocka_unit_test(test_behind_a_script_the_original_is_read),
		cmocka_unit_test(test_a_write_under_way_is_waited_for_at_the_original),
		cmocka_unit_test(test_a_change_behind_us_ends_it),
		cmocka_unit_test(test_nothing_without_a_proof),
		cmocka_unit_test(test_ends_with_the_key),
		cmocka_unit_test(test_cools),
		cmocka_unit_test(test_without_its_rule),
		cmocka_unit_test(test_shutdown_takes_them_away),
		cmocka_unit_test(test_what_changes_meanwhile_is_not_used),
		cmocka_unit_test(test_a_write_that_is_not_answered_yet_spoils_it_too),
		cmocka_unit_test(test_what_servers_refuse_rests),
		cmocka_unit_test(test_what_cannot_be_copied_rests),
		cmocka_unit_test(test_one_partition_is_not_enough),
		cmocka_unit_test(test_long_names_are_not_copied),
		cmocka_unit_test(test_so_many_keys_and_no_more),
		cmocka_unit_test(test_sets_that_do_not_pay_are_made_less_often),
		cmocka_unit_test(test_lease_is_renewed_while_it_is_used),
		cmocka_unit_test(test_places_that_have_come_together_are_left),
		cmocka_unit_test(test_the_other_worker_uses_them),
		cmocka_unit_test(test_one_worker_makes_them),
		cmocka_unit_test(test_folded_reads_go_to_copies),
		cmocka_unit_test(test_with_a_cache),
		cmocka_unit_test(test_clients_may_not_name_them),
		cmocka_unit_test(test_keys_and_scan_do_not_show_them),
		cmocka_unit_test(test_plan),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
