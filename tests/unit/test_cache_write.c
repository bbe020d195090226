/* Goal: every client sees an acknowledged write, whatever is cached. A connection sees its own writes, also
 * writes in flight. A value fetched during a write is not cached. A plain SET writes through if no other write
 * was in flight (absorb/cache/write.c).
 *
 * Method: scripts against two cores whose engine is the test (tests/lib/cache_world.h). */
#include "tests/lib/cache_world.h"
#include "tests/lib/slots.h"

/* Opens a world in which both workers have cached the value v of k. */
static void open_with_k(struct world *world)
{
	open_world(world, "k* cache stale=10s admit=all");
	say(world, 'A', "GET k");
	sent(world, "~GET k");
	reply(world, "~GET", "$1\r\nv\r\n");
	say(world, 'E', "GET k");
	take_received(world, 'A');
	received(world, 'E', "$1\r\nv\r\n");
}

static void test_an_acknowledged_write_is_seen_by_all(void **state)
{
	static const char *const writes[][3] = {
		{"INCR k", ":1\r\n", "INCR k"},
		{"APPEND k x", ":2\r\n", "APPEND k x"},
		{"GETDEL k", "$1\r\nv\r\n", "GETDEL k"},
		{"DEL k", ":1\r\n", "DEL k"},
		{"EXPIRE k 10", ":1\r\n", "EXPIRE k 10"},
		{"RENAME k{a} {a}y", "+OK\r\n", "RENAME k{a} {a}y"},
		{"SET k w NX", "$-1\r\n", "SET k w NX"},
		{"EVAL s 1 k", ":1\r\n", "EVAL s 1 k"},
		{"LPUSH k x", "-UNKNOWN outcome\r\n", "LPUSH k x"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof writes / sizeof *writes; i++) {
		static struct world world;
		const char *key = strstr(writes[i][0], "k{a}") ? "k{a}" : "k";
		char get[32], tracked[32];

		snprintf(get, sizeof get, "GET %s", key);
		snprintf(tracked, sizeof tracked, "~GET %s", key);
		open_world(&world, "k* cache stale=10s admit=all");
		say(&world, 'E', get);
		sent(&world, tracked);
		reply(&world, "~GET", "$1\r\nv\r\n");
		take_received(&world, 'E');
		say(&world, 'A', writes[i][0]);
		end_round(&world);
		sent(&world, writes[i][2]);
		/* The write is not acknowledged yet, so E may get the old value. */
		say(&world, 'E', get);
		received(&world, 'E', "$1\r\nv\r\n");
		reply(&world, writes[i][2], writes[i][1]);
		received(&world, 'A', writes[i][1]);
		say(&world, 'E', get);
		received(&world, 'E', "");
		sent(&world, tracked);
		reply(&world, "~GET", "$1\r\nw\r\n");
		received(&world, 'E', "$1\r\nw\r\n");
		close_world(&world);
	}
}

static void test_a_transaction_invalidates_the_keys_it_writes(void **state)
{
	static struct world world;

	(void)state;
	open_with_k(&world);
	say(&world, 'A', "MULTI");
	say(&world, 'A', "INCR k");
	say(&world, 'A', "EXEC");
	take_sent(&world);
	assert_int_equal(world.count, 1);
	world.sent_count = 1;
	reply(&world, "", "*1\r\n:1\r\n");
	say(&world, 'E', "GET k");
	sent(&world, "~GET k");
	reply(&world, "~GET", "$1\r\nw\r\n");
	close_world(&world);
}

static void test_flush_writes_everything(void **state)
{
	static struct world world;

	(void)state;
	open_with_k(&world);
	say(&world, 'A', "FLUSHALL");
	while (take_sent(&world)[0] != '\0' || world.count > 0)
		reply(&world, "FLUSHALL", "+OK\r\n");
	say(&world, 'E', "GET k");
	sent(&world, "~GET k");
	reply(&world, "~GET", "_\r\n");
	received(&world, 'E', "$-1\r\n");
	close_world(&world);
}

static void test_own_writes_in_flight_are_seen(void **state)
{
	static struct world world;

	(void)state;
	open_with_k(&world);
	say(&world, 'A', "INCR k");
	/* The read goes to the server behind A's own write, on the same connection. */
	say(&world, 'A', "GET k");
	sent(&world, "INCR k | GET k");
	say(&world, 'A', "INCR k2");
	say(&world, 'B', "GET k");
	received(&world, 'B', "$1\r\nv\r\n");
	sent(&world, "INCR k2");
	reply(&world, "INCR k", ":1\r\n");
	reply(&world, "GET k", "$1\r\n1\r\n");
	reply(&world, "INCR k2", ":1\r\n");
	received(&world, 'A', ":1\r\n$1\r\n1\r\n:1\r\n");
	close_world(&world);
}

/* A client's reads also see writes in its own transaction that is still in flight. */
static void test_own_transactions_in_flight_are_seen(void **state)
{
	static struct world world;

	(void)state;
	open_with_k(&world);
	say(&world, 'A', "MULTI");
	say(&world, 'A', "INCR k");
	say(&world, 'A', "EXEC");
	take_received(&world, 'A');
	say(&world, 'A', "GET k");
	take_sent(&world);
	assert_int_equal(world.count, 2);
	reply(&world, "", "*1\r\n:1\r\n");
	reply(&world, "GET k", "$1\r\n1\r\n");
	received(&world, 'A', "*1\r\n:1\r\n$1\r\n1\r\n");
	close_world(&world);
}

static void test_no_read_sees_a_later_write_of_its_own(void **state)
{
	static struct world world;

	(void)state;
	open_world(&world, "k* cache stale=10s admit=all");
	say(&world, 'A', "GET k");
	say(&world, 'A', "INCR k");
	say(&world, 'A', "GET k");
	sent(&world, "~GET k");
	reply(&world, "~GET", "$1\r\nv\r\n");
	sent(&world, "INCR k | GET k");
	reply(&world, "INCR", ":1\r\n");
	reply(&world, "GET", "$1\r\n1\r\n");
	received(&world, 'A', "$1\r\nv\r\n:1\r\n$1\r\n1\r\n");
	close_world(&world);
}

static void test_a_fetch_that_raced_a_write(void **state)
{
	static struct world world;

	(void)state;
	open_world(&world, "k* cache stale=10s admit=all");
	say(&world, 'A', "GET k");
	sent(&world, "~GET k");
	say(&world, 'E', "INCR k"); /* the write is sent after the fetch */
	sent(&world, "INCR k");
	reply(&world, "~GET", "$1\r\nv\r\n");
	received(&world, 'A', "$1\r\nv\r\n");
	reply(&world, "INCR", ":1\r\n");
	assert_int_equal(rule_count(&world, fetches_discarded), 1);
	/* A write that is sent before the fetch and answered after it also keeps the value out of the cache. */
	say(&world, 'E', "INCR k");
	sent(&world, "INCR k");
	say(&world, 'A', "GET k");
	sent(&world, "~GET k");
	reply(&world, "~GET", "$1\r\nv\r\n");
	received(&world, 'A', "$1\r\nv\r\n");
	reply(&world, "INCR", ":2\r\n");
	say(&world, 'A', "GET k");
	sent(&world, "~GET k");
	reply(&world, "~GET", "$1\r\n2\r\n");
	received(&world, 'A', "$1\r\n2\r\n");
	close_world(&world);
}

/* A read that comes after an acknowledged write must not share a fetch that was sent before the write. */
static void test_no_read_joins_a_fetch_from_before_a_write(void **state)
{
	static struct world world;

	(void)state;
	open_world(&world, "k* cache stale=10s admit=all");
	say(&world, 'A', "GET k");
	sent(&world, "~GET k");
	say(&world, 'B', "INCR k");
	sent(&world, "INCR k");
	reply(&world, "INCR", ":1\r\n");
	say(&world, 'B', "GET k");
	say(&world, 'C', "GET k");
	sent(&world, ""); /* the cache allows one fetch of a key in flight */
	reply(&world, "~GET", "$1\r\n0\r\n");
	received(&world, 'A', "$1\r\n0\r\n");
	received(&world, 'C', "");
	sent(&world, "~GET k");
	reply(&world, "~GET", "$1\r\n1\r\n");
	received(&world, 'B', ":1\r\n$1\r\n1\r\n");
	received(&world, 'C', "$1\r\n1\r\n");
	close_world(&world);
}

static void test_a_set_writes_through(void **state)
{
	static struct world world;

	(void)state;
	open_with_k(&world);
	say(&world, 'A', "SET k new");
	/* A's read waits for the SET, because the SET goes to the server on the connection with tracking. */
	say(&world, 'A', "GET k");
	sent(&world, "~SET k new");
	reply(&world, "~SET", "+OK\r\n");
	received(&world, 'A', "+OK\r\n$3\r\nnew\r\n");
	say(&world, 'E', "GET k");
	received(&world, 'E', "$3\r\nnew\r\n");
	sent(&world, "");
	changed(&world, 0, "k"); /* the server tracks a value that was written through */
	say(&world, 'E', "GET k");
	sent(&world, "~GET k");
	reply(&world, "~GET", "$1\r\nx\r\n");
	assert_int_equal(rule_count(&world, write_through), 1);
	close_world(&world);
}

static void test_a_set_with_an_expiry(void **state)
{
	static struct world world;

	(void)state;
	open_with_k(&world);
	say(&world, 'A', "SET k new PX 50");
	sent(&world, "~SET k new PX 50");
	reply(&world, "~SET", "+OK\r\n");
	later(&world, 40 * MS);
	say(&world, 'B', "GET k");
	received(&world, 'B', "$3\r\nnew\r\n");
	later(&world, 10 * MS);
	say(&world, 'B', "GET k");
	sent(&world, "~GET k");
	reply(&world, "~GET", "_\r\n");
	close_world(&world);
}

/* Two SETs in flight do not write through, because heatsink does not know in which order the server runs them. */
static void test_two_sets_in_flight_do_not_write_through(void **state)
{
	static struct world world;

	(void)state;
	open_with_k(&world);
	say(&world, 'A', "SET k one");
	/* A second SET in flight would not be cached, so it goes on the ordinary connection. */
	say(&world, 'E', "SET k two");
	sent(&world, "~SET k one | SET k two");
	reply(&world, "~SET k one", "+OK\r\n");
	reply(&world, "SET k two", "+OK\r\n");
	say(&world, 'B', "GET k");
	sent(&world, "~GET k");
	reply(&world, "~GET", "$3\r\none\r\n");
	received(&world, 'B', "$3\r\none\r\n");
	assert_int_equal(rule_count(&world, write_through), 0);
	close_world(&world);
}

static void test_a_set_of_unknown_outcome_does_not_write_through(void **state)
{
	static const char *const answers[] = {"-UNKNOWN lost\r\n", "-OOM no room\r\n"};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		static struct world world;

		open_with_k(&world);
		say(&world, 'A', "SET k new");
		sent(&world, "~SET k new");
		reply(&world, "~SET", answers[i]);
		received(&world, 'A', answers[i]);
		say(&world, 'B', "GET k");
		sent(&world, "~GET k");
		reply(&world, "~GET", "$1\r\nx\r\n");
		close_world(&world);
	}
}

static void test_a_set_without_tracking_session(void **state)
{
	static struct world world;

	(void)state;
	open_with_k(&world);
	world.station[0].no_tracking_session = true;
	say(&world, 'A', "SET k new");
	sent(&world, "~SET k new");
	reply(&world, "~SET", "+OK\r\n");
	say(&world, 'B', "GET k");
	sent(&world, "~GET k");
	reply(&world, "~GET", "$3\r\nnew\r\n");
	close_world(&world);
}

/* SETs of values that no client reads stop writing through; other forms of SET never do. */
static void test_sets_that_do_not_write_through(void **state)
{
	static struct world world;

	(void)state;
	open_with_k(&world);
	for (int i = 0; i < 2; i++) {
		say(&world, 'A', "SET k new");
		sent(&world, "~SET k new");
		reply(&world, "~SET", "+OK\r\n");
	}
	say(&world, 'A', "SET k new");
	sent(&world, "SET k new");
	reply(&world, "SET", "+OK\r\n");
	say(&world, 'A', "SET k2 new"); /* k2 is not in the cache */
	sent(&world, "SET k2 new");
	reply(&world, "SET", "+OK\r\n");
	say(&world, 'B', "INCR k");
	say(&world, 'B', "SET k new"); /* B's own write is still in flight */
	sent(&world, "INCR k | SET k new");
	reply(&world, "INCR", ":1\r\n");
	reply(&world, "SET", "+OK\r\n");
	close_world(&world);
}

/* A SET that writes through would overtake an earlier read of the same client, which waits at the node that has
 * lost the slot. */
static void test_a_set_behind_a_read_whose_slot_has_moved(void **state)
{
	static struct hs_slot_map slots;
	static struct world world;
	uint16_t slot = hs_slot_of(HS_LIT("k"));

	(void)state;
	hs_slot_map_fill_even(&slots, 3);
	open_world_on(&world, "k* cache stale=10s admit=all", &slots);
	say(&world, 'A', "GET k");
	sent(&world, "~GET k");
	reply(&world, "~GET", "$1\r\nv\r\n");
	say(&world, 'B', "TTL k");
	hs_slot_map_set(&slots, slot, (uint16_t)((hs_slot_map_get(&slots, slot) + 1) % 3));
	say(&world, 'B', "SET k new");
	sent(&world, "TTL k | SET k new");
	reply(&world, "TTL", ":-1\r\n");
	reply(&world, "SET", "+OK\r\n");
	received(&world, 'B', ":-1\r\n+OK\r\n");
	say(&world, 'A', "GET k");
	sent(&world, "~GET k");
	reply(&world, "~GET", "$3\r\nnew\r\n");
	say(&world, 'B', "SET k newer"); /* no request for the slot of k is in flight any more */
	sent(&world, "~SET k newer");
	reply(&world, "~SET", "+OK\r\n");
	close_world(&world);
}

/* A script may write keys that it does not name. After the script, its connection gets only cache entries that
 * were fetched or checked since. */
static void test_a_script_that_does_not_name_its_keys(void **state)
{
	static struct world world;

	(void)state;
	open_with_k(&world);
	say(&world, 'A', "EVAL s 0");
	take_sent(&world);
	reply(&world, "EVAL", ":1\r\n");
	take_received(&world, 'A');
	say(&world, 'A', "GET k");
	sent(&world, "~GET k");
	reply(&world, "~GET", "$1\r\nw\r\n");
	received(&world, 'A', "$1\r\nw\r\n");
	say(&world, 'A', "GET k");
	received(&world, 'A', "$1\r\nw\r\n");
	sent(&world, "");
	close_world(&world);
}

/* While a client's script is in flight, the client's reads bypass the cache, whatever keys the script names. */
static void test_a_script_under_way(void **state)
{
	static struct world world;

	(void)state;
	open_with_k(&world);
	say(&world, 'A', "EVAL s 1 other");
	say(&world, 'A', "GET k");
	take_sent(&world);
	reply(&world, "EVAL", ":1\r\n");
	take_sent(&world);
	reply(&world, "GET k", "$1\r\nw\r\n");
	received(&world, 'A', ":1\r\n$1\r\nw\r\n");
	close_world(&world);
}

static void test_caching_begins_while_a_write_is_in_flight(void **state)
{
	static struct world world;

	(void)state;
	open_world(&world, "k* cache stale=10s admit=all");
	hs_shared_use(world.shared, false);
	say(&world, 'A', "INCR k");
	sent(&world, "INCR k");
	hs_shared_use(world.shared, true);
	say(&world, 'B', "GET k");
	sent(&world, "~GET k");
	reply(&world, "~GET", "$1\r\n0\r\n");
	reply(&world, "INCR", ":1\r\n");
	take_received(&world, 'B');
	say(&world, 'B', "GET k");
	sent(&world, "~GET k");
	reply(&world, "~GET", "$1\r\n1\r\n");
	received(&world, 'B', "$1\r\n1\r\n");
	close_world(&world);
}

static void test_a_write_that_names_no_key(void **state)
{
	static struct world world;

	(void)state;
	open_world(&world, "k* cache stale=10s admit=all");
	say(&world, 'A', "GET k");
	sent(&world, "~GET k");
	reply(&world, "~GET", "$1\r\nv\r\n");
	say(&world, 'E', "GET k");
	received(&world, 'E', "$1\r\nv\r\n");
	say(&world, 'A', "SWAPDB 0 1");
	sent(&world, "SWAPDB 0 1");
	reply(&world, "SWAPDB", "+OK\r\n");
	received(&world, 'A', "$1\r\nv\r\n+OK\r\n");
	say(&world, 'A', "GET k");
	sent(&world, "~GET k");
	reply(&world, "~GET", "$1\r\nw\r\n");
	received(&world, 'A', "$1\r\nw\r\n");
	say(&world, 'E', "GET k");
	received(&world, 'E', "$1\r\nw\r\n");
	close_world(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_an_acknowledged_write_is_seen_by_all),
		cmocka_unit_test(test_a_transaction_invalidates_the_keys_it_writes),
		cmocka_unit_test(test_flush_writes_everything),
		cmocka_unit_test(test_own_writes_in_flight_are_seen),
		cmocka_unit_test(test_own_transactions_in_flight_are_seen),
		cmocka_unit_test(test_no_read_sees_a_later_write_of_its_own),
		cmocka_unit_test(test_a_fetch_that_raced_a_write),
		cmocka_unit_test(test_no_read_joins_a_fetch_from_before_a_write),
		cmocka_unit_test(test_a_set_writes_through),
		cmocka_unit_test(test_a_set_with_an_expiry),
		cmocka_unit_test(test_two_sets_in_flight_do_not_write_through),
		cmocka_unit_test(test_a_set_of_unknown_outcome_does_not_write_through),
		cmocka_unit_test(test_a_set_without_tracking_session),
		cmocka_unit_test(test_sets_that_do_not_write_through),
		cmocka_unit_test(test_a_set_behind_a_read_whose_slot_has_moved),
		cmocka_unit_test(test_a_script_that_does_not_name_its_keys),
		cmocka_unit_test(test_a_script_under_way),
		cmocka_unit_test(test_caching_begins_while_a_write_is_in_flight),
		cmocka_unit_test(test_a_write_that_names_no_key),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
