/* Goal: keys that change are told from all masters, and nobody is left without a word when changes may
 * have been missed.
 * Method: a script (tests/lib/herald_world.h). */
#include "tests/lib/herald_world.h"

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
	expect(&world, "changed x y z\n"); /* one piece of news */
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

static void test_everything_may_have_changed_while_a_master_is_not_watched(void **state)
{
	struct world world;

	(void)state;
	track_two(&world);
	down(&world, "a*");
	expect(&world, "open a*\nchanged-all\n");
	assert_string_equal(world.line_logged, "a:1: gone: lost the news of keys that change");
	tick(&world, HS_HERALD_TELL_MS - 100);
	expect(&world, "");
	tick(&world, 100);
	expect(&world, "changed-all\nb*> PING\n");
	say(&world, "b*", "+PONG\r\n");
	track(&world, 1); /* waits until all are watched */
	up(&world, "a*");
	tick(&world, HS_HERALD_TELL_MS);
	expect(&world, "a*> CLIENT TRACKING ON BCAST\nchanged-all\na*> PING\nb*> PING\n");
	say(&world, "b*", "+PONG\r\n");
	say(&world, "a*", "+OK\r\n+PONG\r\n");
	expect(&world, "changed-all\ndone 1 +OK\n");
	tick(&world, HS_HERALD_TELL_MS - 1);
	expect(&world, "");
	/* Two of them: each one that is lost or comes back is told. */
	down(&world, "a*");
	expect(&world, "changed-all\n");
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
	expect(&world, ""); /* the same */
	route(&world, "b a");
	expect(&world, "changed-all\n");
	route(&world, "a b c");
	expect(&world, "open c*\nchanged-all\n");
	up(&world, "c*");
	say(&world, "c*", "+OK\r\n");
	expect(&world, "c*> CLIENT TRACKING ON BCAST\nchanged-all\n");
	route(&world, "a d c"); /* a failover */
	expect(&world, "close b*\nopen d*\nchanged-all\n");
	up(&world, "d*");
	say(&world, "d*", "+OK\r\n");
	expect(&world, "d*> CLIENT TRACKING ON BCAST\nchanged-all\n");
	stop(&world);
}

static void test_a_line_that_says_nothing_watches_nothing(void **state)
{
	struct world world;

	(void)state;
	track_two(&world);
	tick(&world, HS_HERALD_PING_MS);
	expect(&world, "a*> PING\nb*> PING\n");
	say(&world, "a*", "+PONG\r\n");
	tick(&world, HS_HERALD_SUSPECT_MS - 1);
	expect(&world, "");
	tick(&world, 1);
	expect(&world, "changed-all\na*> PING\n");
	say(&world, "a*", "+PONG\r\n");
	tick(&world, HS_HERALD_TELL_MS);
	expect(&world, "changed-all\na*> PING\n");
	say(&world, "a*", "+PONG\r\n");
	say(&world, "b*", "+PONG\r\n"); /* it was busy */
	expect(&world, "changed-all\n");
	tick(&world, HS_HERALD_PING_MS);
	expect(&world, "a*> PING\nb*> PING\n");
	tick(&world, HS_HERALD_SILENT_MS_MAX - 1);
	say(&world, "a*", "+PONG\r\n");
	expect(&world, "changed-all\n");
	tick(&world, 1);
	expect(&world, "close b*\nopen b*\nchanged-all\n");
	stop(&world);
}

static void test_track_fails_when_it_is_refused_or_late(void **state)
{
	struct world world;

	(void)state;
	start(&world, true);
	track(&world, 0);
	tick(&world, HS_HERALD_WAIT_MS_MAX);
	expect(&world, "done 0 -CLUSTERDOWN cannot watch which keys change: none of the engine's "
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
	down(&world, "b*");
	tick(&world, HS_HERALD_WAIT_MS_MAX);
	expect(&world, "open a*\nopen b*\na*> CLIENT TRACKING ON BCAST\n"
		       "done 0 -CLUSTERDOWN cannot watch which keys change: b:1: gone\n"
		       "close a*\n");
	stop(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_keys_of_all_masters),
		cmocka_unit_test(test_everything_may_have_changed_while_a_master_is_not_watched),
		cmocka_unit_test(test_routes_that_change_may_hide_changes),
		cmocka_unit_test(test_a_line_that_says_nothing_watches_nothing),
		cmocka_unit_test(test_track_fails_when_it_is_refused_or_late),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
