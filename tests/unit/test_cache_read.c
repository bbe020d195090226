/* Goal: reads of keys whose contract allows it are answered with what is kept, never older than the rule
 * says, never older than a write that was acknowledged by this process, and the engine is asked once for
 * all who wait (absorb/cache/read.c, fetch.c).
 *
 * Method: scripts against two cores whose engine is the test (tests/lib/cache_world.h). Writes are
 * tested in test_cache_write.c. */
#include "absorb/absorb.h"
#include "core/count.h"
#include "tests/lib/cache_world.h"

/* A client's script may have created a key that was missing, while its slot moved: no liveness check of the node that
 * was asked before says that it is still missing. */
static void test_missing_is_read_again_behind_a_script(void **state)
{
	static struct world world;

	(void)state;
	open_world(&world,
		   "k* cache stale=10s negative-ttl=10s jitter=0% refresh-ahead=0 admit=all");
	say(&world, 'B', "GET k");
	sent(&world, "~GET k");
	reply(&world, "~GET", "_\r\n");
	heard(&world, 'B', "$-1\r\n");
	later(&world, 5 * MS);
	say(&world, 'A', "EVAL s 1 o{k}");
	sent(&world, "EVAL s 1 o{k}");
	reply(&world, "EVAL", ":1\r\n");
	heard(&world, 'A', ":1\r\n");
	later(&world, 5 * MS);
	prove(&world, 0);
	say(&world, 'B', "GET k"); /* it has written nothing */
	heard(&world, 'B', "$-1\r\n");
	say(&world, 'A', "GET k");
	sent(&world, "~GET k");
	reply(&world, "~GET", "$1\r\n1\r\n");
	heard(&world, 'A', "$1\r\n1\r\n");
	close_world(&world);
}

static void test_read_once_for_all(void **state)
{
	static struct world world;

	(void)state;
	open_world(&world, "k* cache stale=100ms admit=all");
	say(&world, 'A', "GET k");
	say(&world, 'B', "GET k");
	sent(&world, "~GET k");
	heard(&world, 'A', "");
	reply(&world, "~GET", "$1\r\nv\r\n");
	heard(&world, 'A', "$1\r\nv\r\n");
	heard(&world, 'B', "$1\r\nv\r\n");
	say(&world, 'C', "GET k");
	say(&world, 'C', "GET k");
	heard(&world, 'C', "$1\r\nv\r\n$1\r\nv\r\n");
	sent(&world, "");
	assert_int_equal(rule_count(&world, hits), 2);
	assert_int_equal(rule_count(&world, fills), 1);
	close_world(&world);
}

/* Reads alike that one connection sends together are answered with one look at the entry; what it sends later is
 * answered with another look. */
static void test_the_same_read_in_a_row(void **state)
{
	static struct world world;

	(void)state;
	open_world(&world, "k* cache stale=10s admit=all");
	say(&world, 'A', "GET k\r\nGET k2");
	sent(&world, "~GET k | ~GET k2");
	reply(&world, "~GET k", "$1\r\nv\r\n");
	reply(&world, "~GET k2", "$1\r\nw\r\n");
	heard(&world, 'A', "$1\r\nv\r\n$1\r\nw\r\n");
	say(&world, 'A', "GET k\r\nGET k\r\nget k\r\nGET k2\r\nGET k\r\nSTRLEN k");
	sent(&world, "~STRLEN k");
	reply(&world, "~STRLEN", ":1\r\n");
	heard(&world, 'A', "$1\r\nv\r\n$1\r\nv\r\n$1\r\nv\r\n$1\r\nw\r\n$1\r\nv\r\n:1\r\n");
	assert_int_equal(rule_count(&world, hits), 5);
	/* A write through the other worker is acknowledged. */
	say(&world, 'A', "GET k");
	heard(&world, 'A', "$1\r\nv\r\n");
	say(&world, 'E', "SET k x");
	look(&world);
	reply(&world, "", "+OK\r\n");
	heard(&world, 'E', "+OK\r\n");
	say(&world, 'A', "GET k\r\nGET k");
	look(&world);
	if (world.count > 0)
		reply(&world, "", "$1\r\nx\r\n");
	heard(&world, 'A', "$1\r\nx\r\n$1\r\nx\r\n");
	/* Its own write in between. */
	say(&world, 'A', "GET k\r\nSET k y\r\nGET k");
	look(&world);
	while (world.count > 0) {
		reply(&world, "", world.count > 1 ? "+OK\r\n" : "$1\r\ny\r\n");
		look(&world);
	}
	assert_non_null(strstr(listen(&world, 'A'), "$1\r\ny\r\n"));
	close_world(&world);
}

static void test_keys_without_a_rule_are_not_kept(void **state)
{
	static struct world world;

	(void)state;
	open_world(&world, "k* cache stale=100ms admit=all");
	for (int i = 0; i < 2; i++) {
		say(&world, 'A', "GET other");
		sent(&world, "GET other");
		reply(&world, "GET", "$1\r\nv\r\n");
		heard(&world, 'A', "$1\r\nv\r\n");
	}
	close_world(&world);
}

static void test_only_hot_keys_unless_told_otherwise(void **state)
{
	static struct world world;
	int asked = 0;

	(void)state;
	open_world(&world, "k* cache stale=100ms");
	while (asked < 1000) {
		const char *seen;

		say(&world, 'A', "GET k");
		end_round(&world);
		seen = look(&world);
		if (seen[0] == '~')
			break;
		asked++;
		reply(&world, "GET", "$1\r\nv\r\n");
		heard(&world, 'A', "$1\r\nv\r\n");
	}
	assert_in_range(asked, 7, 100);
	reply(&world, "~GET", "$1\r\nv\r\n");
	heard(&world, 'A', "$1\r\nv\r\n");
	say(&world, 'B', "GET k");
	heard(&world, 'B', "$1\r\nv\r\n");
	close_world(&world);
}

static void test_what_one_worker_read_serves_the_other(void **state)
{
	static struct world world;

	(void)state;
	open_world(&world, "k* cache stale=100ms admit=all");
	say(&world, 'A', "GET k");
	say(&world, 'E', "GET k"); /* while worker 0 is at it */
	sent(&world, "~GET k");
	reply(&world, "~GET", "$1\r\nv\r\n");
	heard(&world, 'A', "$1\r\nv\r\n");
	heard(&world, 'E', "");
	hear_news(&world);
	heard(&world, 'E', "$1\r\nv\r\n");
	say(&world, 'F', "GET k");
	heard(&world, 'F', "$1\r\nv\r\n");
	say(&world, 'A', "GET k2");
	sent(&world, "~GET k2");
	reply(&world, "~GET", "$1\r\nw\r\n");
	listen(&world, 'A');
	say(&world, 'F', "GET k2"); /* from the shared cache */
	heard(&world, 'F', "$1\r\nw\r\n");
	sent(&world, "");
	close_world(&world);
}

static void test_another_worker_that_takes_long_is_not_waited_for(void **state)
{
	static struct world world;

	(void)state;
	open_world(&world, "k* cache stale=1s admit=all");
	say(&world, 'A', "GET k");
	say(&world, 'E', "GET k");
	sent(&world, "~GET k");
	tick(&world, 150 * MS);
	sent(&world, "~GET k");
	reply(&world, "~GET", "$1\r\nv\r\n");
	reply(&world, "~GET", "$1\r\nv\r\n");
	heard(&world, 'A', "$1\r\nv\r\n");
	heard(&world, 'E', "$1\r\nv\r\n");
	close_world(&world);
}

static void test_never_older_than_its_proof_allows(void **state)
{
	static struct world world;

	(void)state;
	open_world(&world, "k* cache stale=100ms admit=all");
	say(&world, 'A', "GET k");
	sent(&world, "~GET k");
	reply(&world, "~GET", "$1\r\nv\r\n");
	listen(&world, 'A');
	later(&world, 60 * MS);
	say(&world, 'A', "GET k");
	heard(&world, 'A', "$1\r\nv\r\n");
	sent(&world, "");
	prove(&world, 0);
	later(&world, 90 * MS);
	say(&world, 'A', "GET k");
	heard(&world, 'A', "$1\r\nv\r\n");
	sent(&world, "");
	later(&world, 11 * MS); /* no proof since: it may have changed */
	say(&world, 'A', "GET k");
	sent(&world, "~GET k");
	heard(&world, 'A', "");
	reply(&world, "~GET", "$1\r\nw\r\n");
	heard(&world, 'A', "$1\r\nw\r\n");
	close_world(&world);
}

static void test_a_key_ends_by_itself(void **state)
{
	static struct world world;

	(void)state;
	open_world(&world, "k* cache stale=100ms ttl=1h jitter=0% admit=all");
	world.left_ms = 500;
	say(&world, 'A', "GET k");
	sent(&world, "~GET k");
	reply(&world, "~GET", "$1\r\nv\r\n");
	listen(&world, 'A');
	later(&world, 490 * MS);
	prove(&world, 0);
	say(&world, 'A', "GET k");
	heard(&world, 'A', "$1\r\nv\r\n");
	later(&world, 10 * MS);
	prove(&world, 0);
	say(&world, 'A', "GET k");
	sent(&world, "~GET k");
	reply(&world, "~GET", "_\r\n");
	heard(&world, 'A', "$-1\r\n");
	close_world(&world);
}

/* What was long under way is taken to have been asked about at its beginning. */
static void test_an_end_that_came_late(void **state)
{
	static struct world world;

	(void)state;
	open_world(&world, "k* cache stale=100ms ttl=1h jitter=0% admit=all");
	world.left_ms = 500;
	say(&world, 'A', "GET k");
	sent(&world, "~GET k");
	later(&world, 400 * MS);
	prove(&world, 0);
	reply(&world, "~GET", "$1\r\nv\r\n");
	listen(&world, 'A');
	say(&world, 'A', "GET k");
	heard(&world, 'A', "$1\r\nv\r\n");
	later(&world, 100 * MS);
	prove(&world, 0);
	say(&world, 'A', "GET k");
	sent(&world, "~GET k");
	reply(&world, "~GET", "_\r\n");
	close_world(&world);
}

/* Whoever does not know when a key ends gives it for as long as it may be old, no longer. */
static void test_an_end_that_is_not_known(void **state)
{
	static struct world world;

	(void)state;
	open_world(&world, "k* cache stale=100ms refresh-ahead=0 admit=all");
	world.left_ms = 0;
	say(&world, 'A', "GET k");
	sent(&world, "~GET k");
	reply(&world, "~GET", "$1\r\nv\r\n");
	listen(&world, 'A');
	later(&world, 90 * MS);
	prove(&world, 0);
	say(&world, 'A', "GET k");
	heard(&world, 'A', "$1\r\nv\r\n");
	later(&world, 20 * MS);
	prove(&world, 0);
	say(&world, 'A', "GET k");
	sent(&world, "~GET k");
	reply(&world, "~GET", "$1\r\nv\r\n");
	heard(&world, 'A', "$1\r\nv\r\n");
	close_world(&world);
}

/* The clock on the wall may be set while all of this goes on. */
static void test_a_clock_that_is_set(void **state)
{
	static const int64_t hour_us = INT64_C(3600) * 1000000;
	static struct world world;

	(void)state;
	open_world(&world, "k* cache stale=100ms ttl=1h jitter=0% admit=all");
	world.left_ms = 500;
	say(&world, 'A', "GET k");
	sent(&world, "~GET k");
	world.now.wall_us += 5 * hour_us;
	reply(&world, "~GET", "$1\r\nv\r\n");
	listen(&world, 'A');
	for (int i = 0; i < 4; i++) {
		world.now.wall_us += i % 2 ? hour_us : -7 * hour_us;
		later(&world, 90 * MS);
		say(&world, 'A', "GET k");
		heard(&world, 'A', "$1\r\nv\r\n");
		prove(&world, 0);
	}
	later(&world, 150 * MS);
	prove(&world, 0);
	say(&world, 'A', "GET k");
	sent(&world, "~GET k");
	reply(&world, "~GET", "_\r\n");
	close_world(&world);
}

static void test_told_of_a_change(void **state)
{
	static struct world world;

	(void)state;
	open_world(&world, "k* cache stale=10s admit=all");
	say(&world, 'A', "GET k");
	sent(&world, "~GET k");
	reply(&world, "~GET", "$1\r\nv\r\n");
	say(&world, 'E', "GET k");
	heard(&world, 'E', "$1\r\nv\r\n");
	changed(&world, 1, "k"); /* what worker 1 hears does not concern what worker 0 read */
	say(&world, 'E', "GET k");
	heard(&world, 'E', "$1\r\nv\r\n");
	changed(&world, 0, "k");
	say(&world, 'E', "GET k");
	sent(&world, "~GET k");
	reply(&world, "~GET", "$1\r\nw\r\n");
	heard(&world, 'E', "$1\r\nw\r\n");
	listen(&world, 'A');
	say(&world, 'A', "GET k");
	heard(&world, 'A', "$1\r\nw\r\n");
	changed(&world, 1, NULL); /* everything it vouched for */
	say(&world, 'A', "GET k");
	sent(&world, "~GET k");
	reply(&world, "~GET", "_\r\n");
	assert_true(rule_count(&world, ended_told) >= 2);
	close_world(&world);
}

static void test_entry_of_an_ended_tracking_session(void **state)
{
	static struct world world;

	(void)state;
	open_world(&world, "k* cache stale=10s admit=all");
	say(&world, 'A', "GET k");
	sent(&world, "~GET k");
	reply(&world, "~GET", "$1\r\nv\r\n");
	listen(&world, 'A');
	lose_tracking_session(&world, 0);
	say(&world, 'A', "GET k");
	sent(&world, "~GET k");
	reply(&world, "~GET", "$1\r\nw\r\n");
	heard(&world, 'A', "$1\r\nw\r\n");
	assert_int_equal(rule_count(&world, ended_lost), 1);
	close_world(&world);
}

static void test_no_tracking_session(void **state)
{
	static struct world world;

	(void)state;
	open_world(&world, "k* cache stale=100ms refresh-ahead=0 admit=all");
	world.station[0].no_tracking_session = true;
	say(&world, 'A', "GET k");
	sent(&world, "~GET k");
	reply(&world, "~GET", "$1\r\nv\r\n");
	listen(&world, 'A');
	later(&world, 40 * MS);
	say(&world, 'A', "GET k");
	heard(&world, 'A', "$1\r\nv\r\n");
	later(&world, 70 * MS);
	prove(&world, 0);
	say(&world, 'A', "GET k");
	sent(&world, "~GET k");
	reply(&world, "~GET", "$1\r\nw\r\n");
	heard(&world, 'A', "$1\r\nw\r\n");
	/* It cannot be read so at all: each goes by itself. */
	later(&world, 150 * MS);
	say(&world, 'A', "GET k");
	say(&world, 'B', "GET k");
	sent(&world, "~GET k");
	reply(&world, "~GET", "-NOVOUCH not here\r\n");
	sent(&world, "GET k | GET k");
	reply(&world, "GET", "$1\r\nx\r\n");
	reply(&world, "GET", "$1\r\nx\r\n");
	heard(&world, 'A', "$1\r\nx\r\n");
	heard(&world, 'B', "$1\r\nx\r\n");
	close_world(&world);
}

static void test_errors_are_not_kept(void **state)
{
	static struct world world;

	(void)state;
	open_world(&world, "k* cache stale=10s admit=all");
	for (int i = 0; i < 2; i++) {
		say(&world, 'A', "GET k");
		say(&world, 'B', "GET k");
		sent(&world, "~GET k");
		reply(&world, "~GET", "-WRONGTYPE not a string\r\n");
		heard(&world, 'A', "-WRONGTYPE not a string\r\n");
		heard(&world, 'B', "-WRONGTYPE not a string\r\n");
	}
	close_world(&world);
}

static void test_a_missing_key_for_a_short_time(void **state)
{
	static struct world world;

	(void)state;
	open_world(&world, "k* cache stale=10s negative-ttl=50ms jitter=0% admit=all");
	say(&world, 'A', "GET k");
	sent(&world, "~GET k");
	reply(&world, "~GET", "_\r\n");
	heard(&world, 'A', "$-1\r\n");
	later(&world, 40 * MS);
	say(&world, 'B', "GET k");
	heard(&world, 'B', "$-1\r\n");
	later(&world, 10 * MS);
	say(&world, 'B', "GET k");
	sent(&world, "~GET k");
	reply(&world, "~GET", "_\r\n");
	close_world(&world);
}

/* Who creates a key while its slot moves to another node of a Cluster is not told of by the node that was asked for it. */
static void test_a_missing_key_of_a_cluster_is_as_old_as_its_reading(void **state)
{
	static struct world world;

	(void)state;
	open_world(&world,
		   "k* cache stale=100ms negative-ttl=10s jitter=0% refresh-ahead=0 admit=all");
	for (int one_server = 0; one_server < 2; one_server++) {
		if (one_server)
			world.station[0].core->world.together = HS_TOGETHER_ALL;
		say(&world, 'A', "GET k");
		sent(&world, "~GET k");
		reply(&world, "~GET", "_\r\n");
		heard(&world, 'A', "$-1\r\n");
		for (int i = 0; i < 4; i++) {
			later(&world, 40 * MS);
			prove(&world, 0);
			say(&world, 'A', "GET k");
			if (i == 2 && !one_server) {
				sent(&world, "~GET k");
				reply(&world, "~GET", "_\r\n");
			}
			heard(&world, 'A', "$-1\r\n");
		}
		sent(&world, "");
		changed(&world, 0, "k");
	}
	close_world(&world);
}

static void test_both_dialects_from_one_reading(void **state)
{
	static struct world world;

	(void)state;
	open_world(&world, "k* cache stale=10s admit=all");
	say(&world, 'B', "HELLO 3");
	listen(&world, 'B');
	say(&world, 'A', "HGETALL k");
	say(&world, 'B', "HGETALL k");
	sent(&world, "~HGETALL k");
	reply(&world, "~HGETALL", "%1\r\n$1\r\nf\r\n$1\r\nv\r\n");
	heard(&world, 'A', "*2\r\n$1\r\nf\r\n$1\r\nv\r\n");
	heard(&world, 'B', "%1\r\n$1\r\nf\r\n$1\r\nv\r\n");
	say(&world, 'A', "HGET k g"); /* another signature of the same key */
	sent(&world, "~HGET k g");
	reply(&world, "~HGET", "_\r\n");
	heard(&world, 'A', "$-1\r\n");
	changed(&world, 0, "k");
	say(&world, 'A', "HGETALL k");
	say(&world, 'A', "HGET k g");
	sent(&world, "~HGETALL k | ~HGET k g");
	reply(&world, "~HGETALL", "%0\r\n");
	reply(&world, "~HGET", "_\r\n");
	heard(&world, 'A', "*0\r\n$-1\r\n");
	close_world(&world);
}

static void test_several_keys(void **state)
{
	static struct world world;

	(void)state;
	open_world(&world, "k* cache stale=10s admit=all");
	say(&world, 'A', "MGET {a}k {a}l");
	sent(&world, "MGET {a}k {a}l"); /* no rule */
	reply(&world, "MGET", "*2\r\n$-1\r\n$-1\r\n");
	listen(&world, 'A');
	say(&world, 'A', "MGET k{a}1 k{a}2");
	sent(&world, "~GET k{a}1 | ~GET k{a}2 | MGET k{a}1 k{a}2");
	reply(&world, "~GET k{a}1", "$1\r\nx\r\n");
	reply(&world, "~GET k{a}2", "_\r\n");
	reply(&world, "MGET", "*2\r\n$1\r\nx\r\n$-1\r\n");
	heard(&world, 'A', "*2\r\n$1\r\nx\r\n$-1\r\n");
	say(&world, 'A', "MGET k{a}1 k{a}2");
	heard(&world, 'A', "*2\r\n$1\r\nx\r\n$-1\r\n");
	say(&world, 'A', "MGET k{a}1 {a}l"); /* one of them is strict */
	sent(&world, "MGET k{a}1 {a}l");
	reply(&world, "MGET", "*2\r\n$1\r\nx\r\n$-1\r\n");
	close_world(&world);
}

static void test_served_while_it_is_read_again(void **state)
{
	static struct world world;

	(void)state;
	open_world(&world,
		   "k* cache stale=100ms stale-while-revalidate=1s refresh-ahead=0 admit=all");
	say(&world, 'A', "GET k");
	sent(&world, "~GET k");
	reply(&world, "~GET", "$1\r\nv\r\n");
	listen(&world, 'A');
	later(&world, 500 * MS);
	say(&world, 'A', "GET k");
	say(&world, 'B', "GET k");
	heard(&world, 'A', "$1\r\nv\r\n");
	heard(&world, 'B', "$1\r\nv\r\n");
	sent(&world, "~GET k"); /* once */
	reply(&world, "~GET", "$1\r\nw\r\n");
	say(&world, 'B', "GET k");
	heard(&world, 'B', "$1\r\nw\r\n");
	assert_int_equal(rule_count(&world, stale_served), 2);
	later(&world, 1200 * MS); /* too old for that */
	say(&world, 'B', "GET k");
	heard(&world, 'B', "");
	sent(&world, "~GET k");
	reply(&world, "~GET", "$1\r\nx\r\n");
	changed(&world, 0, "k"); /* what is known to have changed is never given */
	listen(&world, 'B');
	say(&world, 'B', "GET k");
	heard(&world, 'B', "");
	sent(&world, "~GET k");
	reply(&world, "~GET", "$1\r\ny\r\n");
	close_world(&world);
}

static void test_the_old_one_when_it_cannot_be_read(void **state)
{
	static struct world world;

	(void)state;
	open_world(&world, "k* cache stale=100ms stale-if-error=10s refresh-ahead=0 admit=all");
	say(&world, 'A', "GET k");
	sent(&world, "~GET k");
	reply(&world, "~GET", "$1\r\nv\r\n");
	listen(&world, 'A');
	later(&world, 500 * MS);
	say(&world, 'A', "GET k");
	sent(&world, "~GET k");
	reply(&world, "~GET", "-CLUSTERDOWN away\r\n");
	heard(&world, 'A', "$1\r\nv\r\n");
	/* From then on at once, and it is tried again. */
	say(&world, 'A', "GET k");
	heard(&world, 'A', "$1\r\nv\r\n");
	sent(&world, "~GET k");
	tick(&world, 1000 * MS);
	say(&world, 'B', "GET k");
	heard(&world, 'B', "$1\r\nv\r\n");
	reply(&world, "~GET", "$1\r\nw\r\n"); /* it took too long to be fresh */
	say(&world, 'B', "GET k");
	sent(&world, "~GET k");
	reply(&world, "~GET", "$1\r\nw\r\n");
	heard(&world, 'B', "$1\r\nw\r\n");
	/* One that hangs is not waited for either. */
	later(&world, 500 * MS);
	say(&world, 'A', "GET k");
	sent(&world, "~GET k");
	heard(&world, 'A', "");
	tick(&world, 600 * MS);
	heard(&world, 'A', "$1\r\nw\r\n");
	reply(&world, "~GET", "-UNKNOWN lost\r\n");
	/* A while later it may be well again: that is seen first. */
	later(&world, 5000 * MS);
	say(&world, 'A', "GET k");
	heard(&world, 'A', "");
	sent(&world, "~GET k");
	reply(&world, "~GET", "-CLUSTERDOWN away\r\n");
	heard(&world, 'A', "$1\r\nw\r\n");
	later(&world, 12000 * MS);
	say(&world, 'A', "GET k");
	sent(&world, "~GET k");
	reply(&world, "~GET", "-CLUSTERDOWN away\r\n");
	heard(&world, 'A', "-CLUSTERDOWN away\r\n");
	close_world(&world);
}

static void test_read_again_before_the_end(void **state)
{
	static struct world world;
	int early = 0;

	(void)state;
	open_world(&world, "k* cache stale=10s ttl=1s jitter=0% admit=all");
	say(&world, 'A', "GET k");
	sent(&world, "~GET k");
	later(&world, 20 * MS); /* what it costs */
	reply(&world, "~GET", "$1\r\nv\r\n");
	while (look(&world)[0] == '\0') {
		later(&world, MS);
		prove(&world, 0);
		say(&world, 'A', "GET k");
		assert_string_not_equal(listen(&world, 'A'), "");
		early++;
	}
	/* At some time between the earliest that is thinkable and the end. */
	assert_in_range(early, 500, 985);
	reply(&world, "~GET", "$1\r\nw\r\n");
	close_world(&world);
}

static void test_who_must_read_from_the_engine(void **state)
{
	static struct world world;

	(void)state;
	open_world(&world, "k* cache stale=10s admit=all");
	say(&world, 'A', "GET k");
	sent(&world, "~GET k");
	reply(&world, "~GET", "$1\r\nv\r\n");
	say(&world, 'B', "WATCH k"); /* what it decides by an old value would be wrong */
	sent(&world, "WATCH k");
	reply(&world, "WATCH", "+OK\r\n");
	say(&world, 'B', "GET k");
	sent(&world, "GET k");
	reply(&world, "GET", "$1\r\nw\r\n");
	heard(&world, 'B', "+OK\r\n$1\r\nw\r\n");
	say(&world, 'B', "UNWATCH");
	look(&world);
	if (world.count > 0)
		reply(&world, "", "+OK\r\n");
	listen(&world, 'B');
	say(&world, 'B', "GET k");
	heard(&world, 'B', "$1\r\nv\r\n");
	close_world(&world);
}

static void test_a_key_that_is_asked_for_in_ever_new_ways(void **state)
{
	static struct world world;
	char words[64];

	(void)state;
	open_world(&world, "k* cache stale=10s admit=all");
	for (int i = 0; i < 40; i++) {
		snprintf(words, sizeof words, "GETRANGE k %d %d", i, i);
		say(&world, 'A', words);
	}
	look(&world);
	assert_int_equal(world.count, 40);
	for (int i = 0; i < 40; i++)
		reply(&world, i < 32 ? "~GETRANGE" : "GETRANGE", "$1\r\nx\r\n");
	listen(&world, 'A');
	close_world(&world);
}

static void test_a_client_that_leaves_while_it_waits(void **state)
{
	static struct world world;

	(void)state;
	open_world(&world, "k* cache stale=10s admit=all");
	say(&world, 'A', "GET k");
	say(&world, 'B', "GET k");
	sent(&world, "~GET k");
	leave(&world, 'A');
	reply(&world, "~GET", "$1\r\nv\r\n");
	heard(&world, 'B', "$1\r\nv\r\n");
	close_world(&world);
}

static void test_rules_that_change_under_it(void **state)
{
	static struct world world;

	(void)state;
	open_world(&world, "k* cache stale=10s admit=all");
	say(&world, 'A', "GET k");
	sent(&world, "~GET k");
	set_rules(&world, "k* cache stale=5s admit=all", HS_MITIGATE_ON);
	reply(&world, "~GET", "$1\r\nv\r\n");
	heard(&world, 'A', "$1\r\nv\r\n");
	say(&world, 'A',
	    "GET k"); /* what came under the old rules is not kept under the new ones */
	sent(&world, "~GET k");
	reply(&world, "~GET", "$1\r\nv\r\n");
	listen(&world, 'A');
	say(&world, 'A', "GET k");
	heard(&world, 'A', "$1\r\nv\r\n");
	set_rules(&world, "k* strict", HS_MITIGATE_ON);
	say(&world, 'A', "GET k");
	sent(&world, "GET k");
	reply(&world, "GET", "$1\r\nw\r\n");
	heard(&world, 'A', "$1\r\nw\r\n");
	close_world(&world);
}

static void test_observing_changes_nothing(void **state)
{
	static struct world world;

	(void)state;
	open_world(&world, "k* cache stale=10s admit=all");
	set_rules(&world, "k* cache stale=10s admit=all", HS_MITIGATE_OBSERVE);
	for (int i = 0; i < 3; i++) {
		say(&world, 'A', "GET k");
		sent(&world, "GET k");
		reply(&world, "GET", "$1\r\nv\r\n");
		heard(&world, 'A', "$1\r\nv\r\n");
	}
	assert_int_equal(rule_count(&world, would_miss), 1);
	assert_int_equal(rule_count(&world, would_hit), 2);
	assert_int_equal(rule_count(&world, hits), 0);
	say(&world, 'A', "SET k w");
	sent(&world, "SET k w");
	reply(&world, "SET", "+OK\r\n");
	say(&world, 'A', "GET k");
	sent(&world, "GET k");
	reply(&world, "GET", "$1\r\nw\r\n");
	assert_int_equal(rule_count(&world, would_miss), 2);
	close_world(&world);
}

static void test_an_engine_that_answers_at_once(void **state)
{
	static struct world world;

	(void)state;
	open_world(&world, "k* cache stale=10s admit=all");
	world.at_once = true;
	world.value = "$1\r\nv\r\n";
	say(&world, 'A', "GET k");
	heard(&world, 'A', "$1\r\nv\r\n");
	world.value = "$1\r\nw\r\n";
	say(&world, 'A', "GET k");
	heard(&world, 'A', "$1\r\nv\r\n");
	assert_int_equal(rule_count(&world, fills), 1);
	close_world(&world);
}

/* From now on there is room for what the first worker has, and for nothing more. */
static void make_narrow(struct world *world)
{
	struct hs_core *core = world->station[0].core;
	const struct hs_cache_stage *stage =
		core->stages.self[hs_stage_index(core, &hs_stage_cache)];
	uint64_t bytes = hs_cache_counts(stage->cache).bytes + 16;

	world->options.cache_bytes = bytes * WORKERS * HS_SHARED_PART / (HS_SHARED_PART - 1);
	for (size_t i = 0; i < WORKERS; i++)
		hs_core_configure(world->station[i].core, &world->options);
}

/* The clock is looked at where times are settled, and with them what is hot. */
static uint64_t another_turns_hot(void *context)
{
	struct station *station = context;
	struct hs_heat_warmth warmth = {
		.key = HS_LIT("h"), .slot = hs_slot_of(HS_LIT("h")), .share = 1, .requests = 1000};

	hs_count_hot(station->core, warmth, false);
	return station->world->now.mono_us;
}

static void test_a_key_that_has_to_go_while_it_is_given(void **state)
{
	static struct world world;

	(void)state;
	open_world(&world, "* cache stale=10s");
	for (int i = 0; i < 100 && rule_count(&world, hits) == 0; i++) {
		say(&world, 'A', "GETRANGE l 0 1");
		end_round(&world);
		if (*look(&world) != '\0')
			reply(&world, "", "$2\r\nvw\r\n");
		heard(&world, 'A', "$2\r\nvw\r\n");
	}
	assert_int_equal(rule_count(&world, hits), 1);
	make_narrow(&world);
	hs_shared_clear(world.shared); /* nobody else holds it */
	world.calls.mono_us = another_turns_hot;
	say(&world, 'A', "GETRANGE l 0 1");
	heard(&world, 'A', "$2\r\nvw\r\n");
	world.calls.mono_us = mono_us;
	say(&world, 'A', "GETRANGE l 0 1");
	heard(&world, 'A', "$2\r\nvw\r\n");
	assert_int_equal(rule_count(&world, hits), 3);
	close_world(&world);
}

static void test_what_another_worker_has_is_too_large(void **state)
{
	static struct world world;
	char large[1024];

	(void)state;
	open_world(&world, "k* cache stale=100ms stale-while-revalidate=10s admit=all");
	say(&world, 'E', "GET k");
	sent(&world, "~GET k");
	reply(&world, "~GET", "$1\r\nv\r\n");
	heard(&world, 'E', "$1\r\nv\r\n");
	later(&world, 200 * MS);
	snprintf(large, sizeof large, "$500\r\n%0500d\r\n", 0);
	say(&world, 'A', "GET k");
	sent(&world, "~GET k");
	reply(&world, "~GET", large);
	heard(&world, 'A', large);
	world.options.cache_entry_bytes = 600;
	for (size_t i = 0; i < WORKERS; i++)
		hs_core_configure(world.station[i].core, &world.options);
	/* The one that is there has no room here, and the old one is gone: it is read. */
	say(&world, 'E', "GET k");
	heard(&world, 'E', "");
	sent(&world, "~GET k");
	reply(&world, "~GET", "$1\r\nw\r\n");
	heard(&world, 'E', "$1\r\nw\r\n");
	close_world(&world);
}

static void test_an_error_about_the_data_ends_the_old_one(void **state)
{
	static struct world world;

	(void)state;
	open_world(&world, "k* cache stale=100ms stale-while-revalidate=10s admit=all");
	say(&world, 'A', "GET k");
	sent(&world, "~GET k");
	reply(&world, "~GET", "$1\r\nv\r\n");
	listen(&world, 'A');
	lose_tracking_session(&world, 0);
	say(&world, 'A', "GET k");
	heard(&world, 'A', "$1\r\nv\r\n");
	sent(&world, "~GET k");
	reply(&world, "~GET", "-WRONGTYPE it is a list\r\n");
	say(&world, 'A', "GET k"); /* it is known to have changed */
	heard(&world, 'A', "");
	sent(&world, "~GET k");
	reply(&world, "~GET", "-WRONGTYPE it is a list\r\n");
	heard(&world, 'A', "-WRONGTYPE it is a list\r\n");
	close_world(&world);
}

static void test_a_missing_key_that_is_not_kept(void **state)
{
	static struct world world;

	(void)state;
	open_world(&world,
		   "k* cache stale=100ms negative-ttl=0 stale-while-revalidate=10s admit=all");
	for (int i = 0; i < 3; i++) {
		say(&world, 'A', "GET k");
		heard(&world, 'A', "");
		sent(&world, "~GET k");
		reply(&world, "~GET", i == 0 ? "$1\r\nv\r\n" : "_\r\n");
		heard(&world, 'A', i == 0 ? "$1\r\nv\r\n" : "$-1\r\n");
		if (i == 0)
			changed(&world, 0, "k");
	}
	close_world(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_missing_is_read_again_behind_a_script),
		cmocka_unit_test(test_read_once_for_all),
		cmocka_unit_test(test_the_same_read_in_a_row),
		cmocka_unit_test(test_keys_without_a_rule_are_not_kept),
		cmocka_unit_test(test_only_hot_keys_unless_told_otherwise),
		cmocka_unit_test(test_what_one_worker_read_serves_the_other),
		cmocka_unit_test(test_another_worker_that_takes_long_is_not_waited_for),
		cmocka_unit_test(test_never_older_than_its_proof_allows),
		cmocka_unit_test(test_a_key_ends_by_itself),
		cmocka_unit_test(test_an_end_that_came_late),
		cmocka_unit_test(test_an_end_that_is_not_known),
		cmocka_unit_test(test_a_clock_that_is_set),
		cmocka_unit_test(test_told_of_a_change),
		cmocka_unit_test(test_entry_of_an_ended_tracking_session),
		cmocka_unit_test(test_no_tracking_session),
		cmocka_unit_test(test_errors_are_not_kept),
		cmocka_unit_test(test_a_missing_key_for_a_short_time),
		cmocka_unit_test(test_a_missing_key_of_a_cluster_is_as_old_as_its_reading),
		cmocka_unit_test(test_both_dialects_from_one_reading),
		cmocka_unit_test(test_several_keys),
		cmocka_unit_test(test_served_while_it_is_read_again),
		cmocka_unit_test(test_the_old_one_when_it_cannot_be_read),
		cmocka_unit_test(test_read_again_before_the_end),
		cmocka_unit_test(test_who_must_read_from_the_engine),
		cmocka_unit_test(test_a_key_that_is_asked_for_in_ever_new_ways),
		cmocka_unit_test(test_a_client_that_leaves_while_it_waits),
		cmocka_unit_test(test_rules_that_change_under_it),
		cmocka_unit_test(test_observing_changes_nothing),
		cmocka_unit_test(test_an_engine_that_answers_at_once),
		cmocka_unit_test(test_a_key_that_has_to_go_while_it_is_given),
		cmocka_unit_test(test_what_another_worker_has_is_too_large),
		cmocka_unit_test(test_an_error_about_the_data_ends_the_old_one),
		cmocka_unit_test(test_a_missing_key_that_is_not_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
