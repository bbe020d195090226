/* Goal: the subscriber reports changed keys of all masters, and reports "everything changed" whenever it may
 * have missed changes.
 *
 * Method: scripts (tests/lib/subscriber_world.h). */
#include "tests/lib/subscriber_world.h"

static void track_two(struct world *world)
{
	start(world, true);
	route(world, "a b");
	track(world, 0);
	expect(world, "open a*\nopen b*\n");
	up(world, "a*");
	up(world, "b*");
	say(world, "a*", "+OK\r\n");
	expect(world, "a*> CLIENT TRACKING ON BCAST\nb*> CLIENT TRACKING ON BCAST\n");
	say(world, "b*", "+OK\r\n");
	expect(world, "done 0 +OK\n");
}

static void test_keys_of_all_masters(void **state)
{
	struct world world;

	(void)state;
	track_two(&world);
	track(&world, 1);
	expect(&world, "done 1 +OK\n");
	say(&world, "a*",
	    ">2\r\n$10\r\ninvalidate\r\n*2\r\n$1\r\nx\r\n$1\r\ny\r\n"
	    ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nz\r\n>2\r\n$10\r\ninval");
	expect(&world, "changed x y z\n"); /* one event for all three keys */
	say(&world, "a*", "idate\r\n*1\r\n$1\r\nw\r\n");
	expect(&world, "changed w\n");
	say(&world, "b*",
	    ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nx\r\n>2\r\n$10\r\ninvalidate\r\n_\r\n");
	expect(&world, "changed-all\n");
	untrack(&world, 0);
	expect(&world, "done 0 +OK\n");
	untrack(&world, 1);
	expect(&world, "done 1 +OK\nclose a*\nclose b*\n");
	track(&world, 1);
	expect(&world, "open a*\nopen b*\n");
	untrack(&world, 0);
	stop(&world);
}

/* A key that changes often is reported once for all invalidations that arrived together. */
static void test_a_key_is_invalidated_once(void **state)
{
	static const char push_x[] = ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nx\r\n";
	struct hs_buf bytes = {0};
	struct world world;

	(void)state;
	track_two(&world);
	for (int i = 0; i < 100; i++)
		hs_buf_append(&bytes, push_x, sizeof push_x - 1);
	say_bytes(&world, "a*", hs_buf_bytes(&bytes));
	expect(&world, "changed x\n");
	say_bytes(&world, "a*", (struct hs_bytes){push_x, sizeof push_x - 1});
	expect(&world, "changed x\n");
	hs_buf_deinit(&bytes);
	stop(&world);
}

/* More names than fit into one event are reported as "everything changed". */
static void test_too_many_keys_invalidate_everything(void **state)
{
	enum { KEY_BYTES = 1 << 20, KEYS = HS_CHANGED_NAMES_BYTES_MAX / KEY_BYTES + 1 };
	struct hs_buf bytes = {0};
	struct world world;

	(void)state;
	track_two(&world);
	hs_buf_printf(&bytes, ">2\r\n$10\r\ninvalidate\r\n*%d\r\n", KEYS);
	for (int i = 0; i < KEYS; i++) {
		hs_buf_printf(&bytes, "$%d\r\n", KEY_BYTES);
		memset(hs_buf_reserve(&bytes, KEY_BYTES), 'a' + i, KEY_BYTES);
		bytes.len += KEY_BYTES;
		hs_buf_append(&bytes, "\r\n", 2);
	}
	say_bytes(&world, "a*", hs_buf_bytes(&bytes));
	expect(&world, "changed-all\n");
	hs_buf_deinit(&bytes);
	stop(&world);
}

static void test_everything_may_have_changed_while_a_master_is_not_tracked(void **state)
{
	struct world world;

	(void)state;
	track_two(&world);
	down(&world, "a*");
	expect(&world, "open a*\nchanged-all\n");
	assert_string_equal(world.line_logged,
			    "a:1: invalidation stream lost: gone; all tracked keys are invalidated "
			    "every second until it is back");
	tick(&world, HS_SUBSCRIBER_CHANGED_ALL_US - 100000);
	expect(&world, "b*> CLUSTER INFO\n");
	say(&world, "b*", "+cluster_state:ok\r\n");
	tick(&world, 100000);
	expect(&world, "changed-all\n");
	track(&world, 1); /* this operation ends when all masters are tracked */
	up(&world, "a*");
	tick(&world, HS_SUBSCRIBER_CHANGED_ALL_US);
	expect(&world,
	       "a*> CLIENT TRACKING ON BCAST\nchanged-all\na*> CLUSTER INFO\nb*> CLUSTER INFO\n");
	say(&world, "b*", "+cluster_state:ok\r\n");
	say(&world, "a*", "+OK\r\n+cluster_state:ok\r\n");
	expect(&world, "changed-all\ndone 1 +OK\n");
	tick(&world, HS_SUBSCRIBER_CHANGED_ALL_US - 1);
	expect(&world, "");
	/* Two masters: the subscriber reports that everything changed after each loss and each return of a
	 * connection. */
	down(&world, "a*");
	expect(&world, "open a*\nchanged-all\n");
	down(&world, "b*");
	expect(&world, "open b*\nchanged-all\n");
	up(&world, "b*");
	say(&world, "b*", "+OK\r\n");
	expect(&world, "b*> CLIENT TRACKING ON BCAST\nchanged-all\n");
	stop(&world);
}

static void test_routes_that_change_may_hide_changes(void **state)
{
	struct world world;

	(void)state;
	track_two(&world);
	route(&world, "a b");
	expect(&world, ""); /* the routes are the same as before: nothing to report */
	route(&world, "b a");
	expect(&world, "changed-all\n");
	route(&world, "a b c");
	expect(&world, "open c*\nchanged-all\n");
	up(&world, "c*");
	say(&world, "c*", "+OK\r\n");
	expect(&world, "c*> CLIENT TRACKING ON BCAST\nchanged-all\n");
	route(&world, "a d c"); /* a failover: d replaces b */
	expect(&world, "close b*\nopen d*\nchanged-all\n");
	up(&world, "d*");
	say(&world, "d*", "+OK\r\n");
	expect(&world, "d*> CLIENT TRACKING ON BCAST\nchanged-all\n");
	stop(&world);
}

/* The subscriber reports that everything changed if a single slot, whichever it is, gets another owner or has
 * none. */
static void test_one_slot_that_moves_may_hide_changes(void **state)
{
	static const uint16_t slots[] = {0,    1,    63,   64,	  65,	 128,
					 5000, 8191, 8192, 12000, 16382, 16383};
	struct world world;

	(void)state;
	track_two(&world);
	for (size_t i = 0; i < sizeof slots / sizeof *slots; i++) {
		struct hs_routes *moved = create_routes("a b", 0);
		struct hs_routes *unserved = create_routes("a b", 0);

		moved->node_of_slot[slots[i]] ^= 1;
		unserved->node_of_slot[slots[i]] = HS_NODE_NONE;
		route_as(&world, moved);
		expect(&world, "changed-all\n");
		route(&world, "a b");
		expect(&world, "changed-all\n");
		route_as(&world, unserved);
		expect(&world, "changed-all\n");
		route(&world, "a b");
		expect(&world, "changed-all\n");
		route(&world, "a b");
		expect(&world, "");
	}
	stop(&world);
}

/* The subscriber tracks every node that owns a slot, even a single one. */
static void test_a_master_with_one_slot_is_tracked(void **state)
{
	struct hs_routes *routes = create_routes("a b c", 0);
	struct world world;

	(void)state;
	track_two(&world);
	for (uint32_t i = 0; i < HS_SLOTS; i++)
		routes->node_of_slot[i] = i == 7777 ? 2 : i > 7777;
	route_as(&world, routes);
	expect(&world, "open c*\nchanged-all\n");
	route(&world, "a b c");
	expect(&world, "changed-all\n");
	route(&world, "a b"); /* c owns no slots any more */
	expect(&world, "close c*\nchanged-all\n");
	stop(&world);
}

static void test_a_silent_connection_tracks_nothing(void **state)
{
	struct world world;

	(void)state;
	track_two(&world);
	tick(&world, HS_SUBSCRIBER_PING_US);
	expect(&world, "a*> CLUSTER INFO\nb*> CLUSTER INFO\n");
	say(&world, "a*", "+cluster_state:ok\r\n");
	tick(&world, HS_SUBSCRIBER_SUSPECT_US - 1);
	expect(&world, "");
	tick(&world, 1);
	expect(&world, "changed-all\na*> CLUSTER INFO\n");
	say(&world, "a*", "+cluster_state:ok\r\n");
	tick(&world, HS_SUBSCRIBER_CHANGED_ALL_US);
	expect(&world, "changed-all\na*> CLUSTER INFO\n");
	say(&world, "a*", "+cluster_state:ok\r\n");
	say(&world, "b*", "+cluster_state:ok\r\n"); /* a late answer: b was busy, not partitioned */
	expect(&world, "changed-all\n");
	tick(&world, HS_SUBSCRIBER_PING_US);
	expect(&world, "a*> CLUSTER INFO\nb*> CLUSTER INFO\n");
	/* Server a answers that its cluster state is not ok; the next time it does not answer. */
	say(&world, "a*", "+cluster_state:ok\r\n");
	tick(&world, HS_SUBSCRIBER_SUSPECT_US - 1);
	say(&world, "b*", ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nx\r\n");
	tick(&world, HS_SUBSCRIBER_SUSPECT_US - 1);
	expect(&world, "changed x\na*> CLUSTER INFO\n");
	say(&world, "a*", "+cluster_state:ok\r\n");
	tick(&world, HS_SUBSCRIBER_SUSPECT_US - 1);
	expect(&world, "changed-all\n");
	say(&world, "b*", "+cluster_state:ok\r\n");
	expect(&world, "changed-all\n");
	tick(&world, HS_SUBSCRIBER_PING_US);
	expect(&world, "a*> CLUSTER INFO\nb*> CLUSTER INFO\n");
	tick(&world, HS_SUBSCRIBER_SILENT_US_MAX - 1);
	say(&world, "a*", "+cluster_state:ok\r\n");
	expect(&world, "changed-all\n");
	tick(&world, 1);
	expect(&world, "close b*\nopen b*\nchanged-all\na*> CLUSTER INFO\n");
	stop(&world);
}

/* A master that the other nodes cannot reach still answers and reports keys that expire. One of its replicas
 * has been promoted, and writes there are not reported: everything counts as changed. */
static void test_a_master_that_refuses_tracks_nothing(void **state)
{
	static const char fail[] = "$18\r\ncluster_state:fail\r\n";
	static const char push_x[] = ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nx\r\n";
	struct world world;

	(void)state;
	track_two(&world);
	tick(&world, HS_SUBSCRIBER_TICK_US);
	expect(&world, "a*> CLUSTER INFO\nb*> CLUSTER INFO\n");
	say(&world, "a*", "$16\r\ncluster_state:ok\r\n");
	/* An error is an answer: b is alive, and the cluster state remains unknown. */
	say(&world, "b*", "-NOPERM no\r\n");
	expect(&world, "");
	tick(&world, HS_SUBSCRIBER_PING_US - 1);
	say(&world, "a*", push_x);
	tick(&world, 1);
	expect(&world, "changed x\na*> CLUSTER INFO\nb*> CLUSTER INFO\n");
	say(&world, "b*", "+cluster_state:ok\r\n");
	say(&world, "a*", fail);
	expect(&world, "topology-suspect\nchanged-all\n");
	track(&world, 1);
	for (int i = 0; i < 3; i++) {
		tick(&world, HS_SUBSCRIBER_CHANGED_ALL_US);
		expect(&world, "changed-all\na*> CLUSTER INFO\nb*> CLUSTER INFO\n");
		say(&world, "b*", "+cluster_state:ok\r\n");
		say(&world, "a*", fail);
		expect(&world, "topology-suspect\n");
	}
	tick(&world, HS_SUBSCRIBER_CONFIRM_US_MAX);
	expect(&world, "done 1 -CLUSTERDOWN cannot track keys: a:1: it reports that the "
		       "cluster is "
		       "down\nchanged-all\na*> CLUSTER INFO\nb*> CLUSTER INFO\n");
	say(&world, "b*", "+cluster_state:ok\r\n");
	say(&world, "a*", "+cluster_state:ok\r\n");
	expect(&world, "changed-all\n");
	tick(&world, HS_SUBSCRIBER_PING_US);
	expect(&world, "a*> CLUSTER INFO\nb*> CLUSTER INFO\n");
	stop(&world);
}

/* A single server cannot be partitioned from a Cluster: PING is enough. */
static void test_a_single_server_is_pinged(void **state)
{
	struct world world;

	(void)state;
	start(&world, false);
	route(&world, "a");
	track(&world, 0);
	up(&world, "a*");
	say(&world, "a*", "+OK\r\n");
	expect(&world, "open a*\na*> CLIENT TRACKING ON BCAST\ndone 0 +OK\n");
	tick(&world, HS_SUBSCRIBER_PING_US);
	say(&world, "a*", "+PONG\r\n");
	expect(&world, "a*> PING\n");
	stop(&world);
}

static void test_track_fails_when_it_is_refused_or_late(void **state)
{
	struct world world;

	(void)state;
	start(&world, true);
	track(&world, 0);
	tick(&world, HS_SUBSCRIBER_CONFIRM_US_MAX);
	expect(&world, "done 0 -CLUSTERDOWN cannot track keys: none of the engine's "
		       "servers has answered yet\n");
	route(&world, "a b");
	track(&world, 0);
	track(&world, 1);
	up(&world, "a*");
	say(&world, "a*", "-NOPERM no\r\n");
	expect(&world, "open a*\nopen b*\na*> CLIENT TRACKING ON BCAST\ndone 0 -NOPERM no\n"
		       "done 1 -NOPERM no\nclose a*\nclose b*\n");
	track(&world, 0);
	up(&world, "a*");
	say(&world, "a*", "+OK\r\n");
	/* An invalidation before any worker tracks is ignored. */
	say(&world, "a*", ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nx\r\n");
	down(&world, "b*");
	tick(&world, HS_SUBSCRIBER_CONFIRM_US_MAX);
	expect(&world, "open a*\nopen b*\na*> CLIENT TRACKING ON BCAST\n"
		       "done 0 -CLUSTERDOWN cannot track keys: b:1: gone\n"
		       "close a*\n");
	/* The connection was lost once; then the server accepts connections but does not answer. */
	tick(&world, HS_SUBSCRIBER_OPEN_US_MAX);
	track(&world, 0);
	down(&world, "b*");
	tick(&world, HS_SUBSCRIBER_OPEN_US_MAX);
	up(&world, "a*");
	up(&world, "b*");
	say(&world, "a*", "+OK\r\n");
	world.text.len = 0;
	tick(&world, HS_SUBSCRIBER_CONFIRM_US_MAX);
	expect(&world, "done 0 -CLUSTERDOWN cannot track keys: b:1: it does not answer\n"
		       "close a*\nclose b*\n");
	stop(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_keys_of_all_masters),
		cmocka_unit_test(test_a_key_is_invalidated_once),
		cmocka_unit_test(test_too_many_keys_invalidate_everything),
		cmocka_unit_test(test_everything_may_have_changed_while_a_master_is_not_tracked),
		cmocka_unit_test(test_routes_that_change_may_hide_changes),
		cmocka_unit_test(test_one_slot_that_moves_may_hide_changes),
		cmocka_unit_test(test_a_master_with_one_slot_is_tracked),
		cmocka_unit_test(test_a_silent_connection_tracks_nothing),
		cmocka_unit_test(test_a_master_that_refuses_tracks_nothing),
		cmocka_unit_test(test_a_single_server_is_pinged),
		cmocka_unit_test(test_track_fails_when_it_is_refused_or_late),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
