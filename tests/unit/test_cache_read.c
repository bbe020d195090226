/* Goal: the cache answers reads of keys whose contract allows it, never with a value older than the rule allows,
 * and never with a value from before a write that this process has acknowledged. Concurrent readers share one
 * fetch (absorb/cache/read.c, fetch.c).
 *
 * Method: scripts against two cores whose engine is the test (tests/lib/cache_world.h). Writes are tested in
 * test_cache_write.c. */
#include "absorb/absorb.h"
#include "core/count.h"
#include "tests/lib/cache_world.h"

/* A client's script may have created a missing key while the key's slot moved to another node. A liveness check
 * of the old node does not show that the key is still missing, so the client reads the key again. */
static void test_missing_is_read_again_behind_a_script(void **state)
{
	static struct world world;

	(void)state;
	open_world(&world,
		   "k* cache stale=10s negative-ttl=10s jitter=0% refresh-ahead=0 admit=all");
	say(&world, 'B', "GET k");
	sent(&world, "~GET k");
	reply(&world, "~GET", "_\r\n");
	received(&world, 'B', "$-1\r\n");
	later(&world, 5 * MS);
	say(&world, 'A', "EVAL s 1 o{k}");
	sent(&world, "EVAL s 1 o{k}");
	reply(&world, "EVAL", ":1\r\n");
	received(&world, 'A', ":1\r\n");
	later(&world, 5 * MS);
	catch_up(&world, 0);
	say(&world, 'B', "GET k"); /* B has sent no script: the cached answer is good enough */
	received(&world, 'B', "$-1\r\n");
	say(&world, 'A', "GET k");
	sent(&world, "~GET k");
	reply(&world, "~GET", "$1\r\n1\r\n");
	received(&world, 'A', "$1\r\n1\r\n");
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
	received(&world, 'A', "");
	reply(&world, "~GET", "$1\r\nv\r\n");
	received(&world, 'A', "$1\r\nv\r\n");
	received(&world, 'B', "$1\r\nv\r\n");
	say(&world, 'C', "GET k");
	say(&world, 'C', "GET k");
	received(&world, 'C', "$1\r\nv\r\n$1\r\nv\r\n");
	sent(&world, "");
	assert_int_equal(rule_count(&world, hits), 2);
	assert_int_equal(rule_count(&world, fetches), 1);
	close_world(&world);
}

/* For equal reads that one connection sends together, the cache looks the entry up once. For later reads it looks
 * the entry up again. */
static void test_the_same_read_in_a_row(void **state)
{
	static struct world world;

	(void)state;
	open_world(&world, "k* cache stale=10s admit=all");
	say(&world, 'A', "GET k\r\nGET k2");
	sent(&world, "~GET k | ~GET k2");
	reply(&world, "~GET k", "$1\r\nv\r\n");
	reply(&world, "~GET k2", "$1\r\nw\r\n");
	received(&world, 'A', "$1\r\nv\r\n$1\r\nw\r\n");
	say(&world, 'A', "GET k\r\nGET k\r\nget k\r\nGET k2\r\nGET k\r\nSTRLEN k");
	sent(&world, "~STRLEN k");
	reply(&world, "~STRLEN", ":1\r\n");
	received(&world, 'A', "$1\r\nv\r\n$1\r\nv\r\n$1\r\nv\r\n$1\r\nw\r\n$1\r\nv\r\n:1\r\n");
	assert_int_equal(rule_count(&world, hits), 5);
	/* After a write through the other worker is acknowledged, equal reads in a row return the new value. */
	say(&world, 'A', "GET k");
	received(&world, 'A', "$1\r\nv\r\n");
	say(&world, 'E', "SET k x");
	take_sent(&world);
	reply(&world, "", "+OK\r\n");
	received(&world, 'E', "+OK\r\n");
	say(&world, 'A', "GET k\r\nGET k");
	take_sent(&world);
	if (world.count > 0)
		reply(&world, "", "$1\r\nx\r\n");
	received(&world, 'A', "$1\r\nx\r\n$1\r\nx\r\n");
	/* A client's own write between two equal reads: the second read returns the new value. */
	say(&world, 'A', "GET k\r\nSET k y\r\nGET k");
	take_sent(&world);
	while (world.count > 0) {
		reply(&world, "", world.count > 1 ? "+OK\r\n" : "$1\r\ny\r\n");
		take_sent(&world);
	}
	assert_non_null(strstr(take_received(&world, 'A'), "$1\r\ny\r\n"));
	close_world(&world);
}

static void test_keys_without_a_rule_are_not_cached(void **state)
{
	static struct world world;

	(void)state;
	open_world(&world, "k* cache stale=100ms admit=all");
	for (int i = 0; i < 2; i++) {
		say(&world, 'A', "GET other");
		sent(&world, "GET other");
		reply(&world, "GET", "$1\r\nv\r\n");
		received(&world, 'A', "$1\r\nv\r\n");
	}
	close_world(&world);
}

static void test_only_hot_keys_by_default(void **state)
{
	static struct world world;
	int asked = 0;

	(void)state;
	open_world(&world, "k* cache stale=100ms");
	while (asked < 1000) {
		const char *seen;

		say(&world, 'A', "GET k");
		end_round(&world);
		seen = take_sent(&world);
		if (seen[0] == '~')
			break;
		asked++;
		reply(&world, "GET", "$1\r\nv\r\n");
		received(&world, 'A', "$1\r\nv\r\n");
	}
	assert_in_range(asked, 7, 100);
	reply(&world, "~GET", "$1\r\nv\r\n");
	received(&world, 'A', "$1\r\nv\r\n");
	say(&world, 'B', "GET k");
	received(&world, 'B', "$1\r\nv\r\n");
	close_world(&world);
}

static void test_a_fetch_serves_other_workers(void **state)
{
	static struct world world;

	(void)state;
	open_world(&world, "k* cache stale=100ms admit=all");
	say(&world, 'A', "GET k");
	/* Worker 1 waits while the fetch of worker 0 is in flight. */
	say(&world, 'E', "GET k");
	sent(&world, "~GET k");
	reply(&world, "~GET", "$1\r\nv\r\n");
	received(&world, 'A', "$1\r\nv\r\n");
	received(&world, 'E', "");
	deliver_events(&world);
	received(&world, 'E', "$1\r\nv\r\n");
	say(&world, 'F', "GET k");
	received(&world, 'F', "$1\r\nv\r\n");
	say(&world, 'A', "GET k2");
	sent(&world, "~GET k2");
	reply(&world, "~GET", "$1\r\nw\r\n");
	take_received(&world, 'A');
	say(&world, 'F', "GET k2"); /* worker 1 finds k2 in the shared cache */
	received(&world, 'F', "$1\r\nw\r\n");
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
	received(&world, 'A', "$1\r\nv\r\n");
	received(&world, 'E', "$1\r\nv\r\n");
	close_world(&world);
}

static void test_never_older_than_the_liveness_check_allows(void **state)
{
	static struct world world;

	(void)state;
	open_world(&world, "k* cache stale=100ms admit=all");
	say(&world, 'A', "GET k");
	sent(&world, "~GET k");
	reply(&world, "~GET", "$1\r\nv\r\n");
	take_received(&world, 'A');
	later(&world, 60 * MS);
	say(&world, 'A', "GET k");
	received(&world, 'A', "$1\r\nv\r\n");
	sent(&world, "");
	catch_up(&world, 0);
	later(&world, 90 * MS);
	say(&world, 'A', "GET k");
	received(&world, 'A', "$1\r\nv\r\n");
	sent(&world, "");
	/* More than `stale` has passed since the last liveness check: the key may have changed. */
	later(&world, 11 * MS);
	say(&world, 'A', "GET k");
	sent(&world, "~GET k");
	received(&world, 'A', "");
	reply(&world, "~GET", "$1\r\nw\r\n");
	received(&world, 'A', "$1\r\nw\r\n");
	close_world(&world);
}

static void test_a_cached_key_expires(void **state)
{
	static struct world world;

	(void)state;
	open_world(&world, "k* cache stale=100ms ttl=1h jitter=0% admit=all");
	world.ttl_ms = 500;
	say(&world, 'A', "GET k");
	sent(&world, "~GET k");
	reply(&world, "~GET", "$1\r\nv\r\n");
	take_received(&world, 'A');
	later(&world, 490 * MS);
	catch_up(&world, 0);
	say(&world, 'A', "GET k");
	received(&world, 'A', "$1\r\nv\r\n");
	later(&world, 10 * MS);
	catch_up(&world, 0);
	say(&world, 'A', "GET k");
	sent(&world, "~GET k");
	reply(&world, "~GET", "_\r\n");
	received(&world, 'A', "$-1\r\n");
	close_world(&world);
}

/* The cache counts the expiry from the time when the fetch was sent, however long the fetch takes. */
static void test_an_expiry_that_comes_late(void **state)
{
	static struct world world;

	(void)state;
	open_world(&world, "k* cache stale=100ms ttl=1h jitter=0% admit=all");
	world.ttl_ms = 500;
	say(&world, 'A', "GET k");
	sent(&world, "~GET k");
	later(&world, 400 * MS);
	catch_up(&world, 0);
	reply(&world, "~GET", "$1\r\nv\r\n");
	take_received(&world, 'A');
	say(&world, 'A', "GET k");
	received(&world, 'A', "$1\r\nv\r\n");
	later(&world, 100 * MS);
	catch_up(&world, 0);
	say(&world, 'A', "GET k");
	sent(&world, "~GET k");
	reply(&world, "~GET", "_\r\n");
	close_world(&world);
}

/* If the expiry is unknown, the cache serves the entry for `stale` after the fetch, even if liveness checks
 * succeed. */
static void test_an_unknown_expiry(void **state)
{
	static struct world world;

	(void)state;
	open_world(&world, "k* cache stale=100ms refresh-ahead=0 admit=all");
	world.ttl_ms = 0;
	say(&world, 'A', "GET k");
	sent(&world, "~GET k");
	reply(&world, "~GET", "$1\r\nv\r\n");
	take_received(&world, 'A');
	later(&world, 90 * MS);
	catch_up(&world, 0);
	say(&world, 'A', "GET k");
	received(&world, 'A', "$1\r\nv\r\n");
	later(&world, 20 * MS);
	catch_up(&world, 0);
	say(&world, 'A', "GET k");
	sent(&world, "~GET k");
	reply(&world, "~GET", "$1\r\nv\r\n");
	received(&world, 'A', "$1\r\nv\r\n");
	close_world(&world);
}

/* The wall clock is set to other times while a cache entry lives. */
static void test_a_clock_that_is_set(void **state)
{
	static const int64_t hour_us = INT64_C(3600) * 1000000;
	static struct world world;

	(void)state;
	open_world(&world, "k* cache stale=100ms ttl=1h jitter=0% admit=all");
	world.ttl_ms = 500;
	say(&world, 'A', "GET k");
	sent(&world, "~GET k");
	world.now.wall_us += 5 * hour_us;
	reply(&world, "~GET", "$1\r\nv\r\n");
	take_received(&world, 'A');
	for (int i = 0; i < 4; i++) {
		world.now.wall_us += i % 2 ? hour_us : -7 * hour_us;
		later(&world, 90 * MS);
		say(&world, 'A', "GET k");
		received(&world, 'A', "$1\r\nv\r\n");
		catch_up(&world, 0);
	}
	later(&world, 150 * MS);
	catch_up(&world, 0);
	say(&world, 'A', "GET k");
	sent(&world, "~GET k");
	reply(&world, "~GET", "_\r\n");
	close_world(&world);
}

static void test_an_invalidation_ends_an_entry(void **state)
{
	static struct world world;

	(void)state;
	open_world(&world, "k* cache stale=10s admit=all");
	say(&world, 'A', "GET k");
	sent(&world, "~GET k");
	reply(&world, "~GET", "$1\r\nv\r\n");
	say(&world, 'E', "GET k");
	received(&world, 'E', "$1\r\nv\r\n");
	/* An invalidation that worker 1 gets does not concern a value that worker 0 fetched. */
	changed(&world, 1, "k");
	say(&world, 'E', "GET k");
	received(&world, 'E', "$1\r\nv\r\n");
	changed(&world, 0, "k");
	say(&world, 'E', "GET k");
	sent(&world, "~GET k");
	reply(&world, "~GET", "$1\r\nw\r\n");
	received(&world, 'E', "$1\r\nw\r\n");
	take_received(&world, 'A');
	say(&world, 'A', "GET k");
	received(&world, 'A', "$1\r\nw\r\n");
	/* Worker 1 gets an invalidation of everything, which ends its tracking session. */
	changed(&world, 1, NULL);
	say(&world, 'A', "GET k");
	sent(&world, "~GET k");
	reply(&world, "~GET", "_\r\n");
	assert_true(rule_count(&world, invalidated_by_server) >= 2);
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
	take_received(&world, 'A');
	lose_tracking_session(&world, 0);
	say(&world, 'A', "GET k");
	sent(&world, "~GET k");
	reply(&world, "~GET", "$1\r\nw\r\n");
	received(&world, 'A', "$1\r\nw\r\n");
	assert_int_equal(rule_count(&world, invalidated_by_disconnect), 1);
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
	take_received(&world, 'A');
	later(&world, 40 * MS);
	say(&world, 'A', "GET k");
	received(&world, 'A', "$1\r\nv\r\n");
	later(&world, 70 * MS);
	catch_up(&world, 0);
	say(&world, 'A', "GET k");
	sent(&world, "~GET k");
	reply(&world, "~GET", "$1\r\nw\r\n");
	received(&world, 'A', "$1\r\nw\r\n");
	/* The engine answers that it cannot fetch with tracking: heatsink sends each client's read unchanged. */
	later(&world, 150 * MS);
	say(&world, 'A', "GET k");
	say(&world, 'B', "GET k");
	sent(&world, "~GET k");
	reply(&world, "~GET", "-NOTRACKING not here\r\n");
	sent(&world, "GET k | GET k");
	reply(&world, "GET", "$1\r\nx\r\n");
	reply(&world, "GET", "$1\r\nx\r\n");
	received(&world, 'A', "$1\r\nx\r\n");
	received(&world, 'B', "$1\r\nx\r\n");
	close_world(&world);
}

static void test_errors_are_not_cached(void **state)
{
	static struct world world;

	(void)state;
	open_world(&world, "k* cache stale=10s admit=all");
	for (int i = 0; i < 2; i++) {
		say(&world, 'A', "GET k");
		say(&world, 'B', "GET k");
		sent(&world, "~GET k");
		reply(&world, "~GET", "-WRONGTYPE not a string\r\n");
		received(&world, 'A', "-WRONGTYPE not a string\r\n");
		received(&world, 'B', "-WRONGTYPE not a string\r\n");
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
	received(&world, 'A', "$-1\r\n");
	later(&world, 40 * MS);
	say(&world, 'B', "GET k");
	received(&world, 'B', "$-1\r\n");
	later(&world, 10 * MS);
	say(&world, 'B', "GET k");
	sent(&world, "~GET k");
	reply(&world, "~GET", "_\r\n");
	close_world(&world);
}

/* A client creates the key while its slot moves to another node of the Cluster. The node that answered the fetch
 * sends no invalidation for this write. */
static void test_a_missing_key_of_a_cluster_ages_from_its_fetch(void **state)
{
	static struct world world;

	(void)state;
	open_world(&world,
		   "k* cache stale=100ms negative-ttl=10s jitter=0% refresh-ahead=0 admit=all");
	for (int one_server = 0; one_server < 2; one_server++) {
		if (one_server)
			world.station[0].core->world.op_scope = HS_OP_SCOPE_ALL;
		say(&world, 'A', "GET k");
		sent(&world, "~GET k");
		reply(&world, "~GET", "_\r\n");
		received(&world, 'A', "$-1\r\n");
		for (int i = 0; i < 4; i++) {
			later(&world, 40 * MS);
			catch_up(&world, 0);
			say(&world, 'A', "GET k");
			if (i == 2 && !one_server) {
				sent(&world, "~GET k");
				reply(&world, "~GET", "_\r\n");
			}
			received(&world, 'A', "$-1\r\n");
		}
		sent(&world, "");
		changed(&world, 0, "k");
	}
	close_world(&world);
}

static void test_both_dialects_from_one_fetch(void **state)
{
	static struct world world;

	(void)state;
	open_world(&world, "k* cache stale=10s admit=all");
	say(&world, 'B', "HELLO 3");
	take_received(&world, 'B');
	say(&world, 'A', "HGETALL k");
	say(&world, 'B', "HGETALL k");
	sent(&world, "~HGETALL k");
	reply(&world, "~HGETALL", "%1\r\n$1\r\nf\r\n$1\r\nv\r\n");
	received(&world, 'A', "*2\r\n$1\r\nf\r\n$1\r\nv\r\n");
	received(&world, 'B', "%1\r\n$1\r\nf\r\n$1\r\nv\r\n");
	/* Another request for the same key has an entry of its own. */
	say(&world, 'A', "HGET k g");
	sent(&world, "~HGET k g");
	reply(&world, "~HGET", "_\r\n");
	received(&world, 'A', "$-1\r\n");
	changed(&world, 0, "k");
	say(&world, 'A', "HGETALL k");
	say(&world, 'A', "HGET k g");
	sent(&world, "~HGETALL k | ~HGET k g");
	reply(&world, "~HGETALL", "%0\r\n");
	reply(&world, "~HGET", "_\r\n");
	received(&world, 'A', "*0\r\n$-1\r\n");
	close_world(&world);
}

static void test_several_keys(void **state)
{
	static struct world world;

	(void)state;
	open_world(&world, "k* cache stale=10s admit=all");
	say(&world, 'A', "MGET {a}k {a}l");
	sent(&world, "MGET {a}k {a}l"); /* no rule matches these keys */
	reply(&world, "MGET", "*2\r\n$-1\r\n$-1\r\n");
	take_received(&world, 'A');
	say(&world, 'A', "MGET k{a}1 k{a}2");
	sent(&world, "~GET k{a}1 | ~GET k{a}2 | MGET k{a}1 k{a}2");
	reply(&world, "~GET k{a}1", "$1\r\nx\r\n");
	reply(&world, "~GET k{a}2", "_\r\n");
	reply(&world, "MGET", "*2\r\n$1\r\nx\r\n$-1\r\n");
	received(&world, 'A', "*2\r\n$1\r\nx\r\n$-1\r\n");
	say(&world, 'A', "MGET k{a}1 k{a}2");
	received(&world, 'A', "*2\r\n$1\r\nx\r\n$-1\r\n");
	say(&world, 'A', "MGET k{a}1 {a}l"); /* no rule matches {a}l, so its contract is strict */
	sent(&world, "MGET k{a}1 {a}l");
	reply(&world, "MGET", "*2\r\n$1\r\nx\r\n$-1\r\n");
	close_world(&world);
}

static void test_stale_value_served_while_revalidating(void **state)
{
	static struct world world;

	(void)state;
	open_world(&world,
		   "k* cache stale=100ms stale-while-revalidate=1s refresh-ahead=0 admit=all");
	say(&world, 'A', "GET k");
	sent(&world, "~GET k");
	reply(&world, "~GET", "$1\r\nv\r\n");
	take_received(&world, 'A');
	later(&world, 500 * MS);
	say(&world, 'A', "GET k");
	say(&world, 'B', "GET k");
	received(&world, 'A', "$1\r\nv\r\n");
	received(&world, 'B', "$1\r\nv\r\n");
	sent(&world, "~GET k"); /* both stale answers cause one fetch */
	reply(&world, "~GET", "$1\r\nw\r\n");
	say(&world, 'B', "GET k");
	received(&world, 'B', "$1\r\nw\r\n");
	assert_int_equal(rule_count(&world, stale_served), 2);
	later(&world, 1200 * MS); /* the entry is too old to be served stale */
	say(&world, 'B', "GET k");
	received(&world, 'B', "");
	sent(&world, "~GET k");
	reply(&world, "~GET", "$1\r\nx\r\n");
	/* A value known to have changed is never served. */
	changed(&world, 0, "k");
	take_received(&world, 'B');
	say(&world, 'B', "GET k");
	received(&world, 'B', "");
	sent(&world, "~GET k");
	reply(&world, "~GET", "$1\r\ny\r\n");
	close_world(&world);
}

static void test_the_stale_value_when_the_fetch_fails(void **state)
{
	static struct world world;

	(void)state;
	open_world(&world, "k* cache stale=100ms stale-if-error=10s refresh-ahead=0 admit=all");
	say(&world, 'A', "GET k");
	sent(&world, "~GET k");
	reply(&world, "~GET", "$1\r\nv\r\n");
	take_received(&world, 'A');
	later(&world, 500 * MS);
	say(&world, 'A', "GET k");
	sent(&world, "~GET k");
	reply(&world, "~GET", "-CLUSTERDOWN away\r\n");
	received(&world, 'A', "$1\r\nv\r\n");
	/* After a failed fetch the cache serves the stale value at once, and retries the fetch in the
	 * background. */
	say(&world, 'A', "GET k");
	received(&world, 'A', "$1\r\nv\r\n");
	sent(&world, "~GET k");
	tick(&world, 1000 * MS);
	say(&world, 'B', "GET k");
	received(&world, 'B', "$1\r\nv\r\n");
	/* The fetch took so long that its value is not fresh any more: the next read fetches again. */
	reply(&world, "~GET", "$1\r\nw\r\n");
	say(&world, 'B', "GET k");
	sent(&world, "~GET k");
	reply(&world, "~GET", "$1\r\nw\r\n");
	received(&world, 'B', "$1\r\nw\r\n");
	/* If a fetch hangs, clients wait for a limited time and get the stale value. */
	later(&world, 500 * MS);
	say(&world, 'A', "GET k");
	sent(&world, "~GET k");
	received(&world, 'A', "");
	tick(&world, 600 * MS);
	received(&world, 'A', "$1\r\nw\r\n");
	reply(&world, "~GET", "-UNKNOWN lost\r\n");
	/* After some seconds the server may be back: a read waits for one fetch before it gets the stale
	 * value. */
	later(&world, 5000 * MS);
	say(&world, 'A', "GET k");
	received(&world, 'A', "");
	sent(&world, "~GET k");
	reply(&world, "~GET", "-CLUSTERDOWN away\r\n");
	received(&world, 'A', "$1\r\nw\r\n");
	later(&world, 12000 * MS);
	say(&world, 'A', "GET k");
	sent(&world, "~GET k");
	reply(&world, "~GET", "-CLUSTERDOWN away\r\n");
	received(&world, 'A', "-CLUSTERDOWN away\r\n");
	close_world(&world);
}

static void test_refresh_ahead_of_the_expiry(void **state)
{
	static struct world world;
	int early = 0;

	(void)state;
	open_world(&world, "k* cache stale=10s ttl=1s jitter=0% admit=all");
	say(&world, 'A', "GET k");
	sent(&world, "~GET k");
	later(&world, 20 * MS); /* the fetch takes 20 ms */
	reply(&world, "~GET", "$1\r\nv\r\n");
	while (take_sent(&world)[0] == '\0') {
		later(&world, MS);
		catch_up(&world, 0);
		say(&world, 'A', "GET k");
		assert_string_not_equal(take_received(&world, 'A'), "");
		early++;
	}
	/* The early refresh comes at a random time in the last half of the entry's life, at the latest before its
	 * expiry. */
	assert_in_range(early, 500, 985);
	reply(&world, "~GET", "$1\r\nw\r\n");
	close_world(&world);
}

static void test_sessions_that_bypass_the_cache(void **state)
{
	static struct world world;

	(void)state;
	open_world(&world, "k* cache stale=10s admit=all");
	say(&world, 'A', "GET k");
	sent(&world, "~GET k");
	reply(&world, "~GET", "$1\r\nv\r\n");
	/* B reads past the cache, because a transaction based on an old value would be wrong. */
	say(&world, 'B', "WATCH k");
	sent(&world, "WATCH k");
	reply(&world, "WATCH", "+OK\r\n");
	say(&world, 'B', "GET k");
	sent(&world, "GET k");
	reply(&world, "GET", "$1\r\nw\r\n");
	received(&world, 'B', "+OK\r\n$1\r\nw\r\n");
	say(&world, 'B', "UNWATCH");
	take_sent(&world);
	if (world.count > 0)
		reply(&world, "", "+OK\r\n");
	take_received(&world, 'B');
	say(&world, 'B', "GET k");
	received(&world, 'B', "$1\r\nv\r\n");
	close_world(&world);
}

static void test_variants_of_a_key_are_bounded(void **state)
{
	static struct world world;
	char words[64];

	(void)state;
	open_world(&world, "k* cache stale=10s admit=all");
	for (int i = 0; i < 40; i++) {
		snprintf(words, sizeof words, "GETRANGE k %d %d", i, i);
		say(&world, 'A', words);
	}
	take_sent(&world);
	assert_int_equal(world.count, 40);
	for (int i = 0; i < 40; i++)
		reply(&world, i < 32 ? "~GETRANGE" : "GETRANGE", "$1\r\nx\r\n");
	take_received(&world, 'A');
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
	received(&world, 'B', "$1\r\nv\r\n");
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
	received(&world, 'A', "$1\r\nv\r\n");
	/* A value fetched under the old rules is not cached under the new ones. */
	say(&world, 'A', "GET k");
	sent(&world, "~GET k");
	reply(&world, "~GET", "$1\r\nv\r\n");
	take_received(&world, 'A');
	say(&world, 'A', "GET k");
	received(&world, 'A', "$1\r\nv\r\n");
	set_rules(&world, "k* strict", HS_MITIGATE_ON);
	say(&world, 'A', "GET k");
	sent(&world, "GET k");
	reply(&world, "GET", "$1\r\nw\r\n");
	received(&world, 'A', "$1\r\nw\r\n");
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
		received(&world, 'A', "$1\r\nv\r\n");
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
	received(&world, 'A', "$1\r\nv\r\n");
	world.value = "$1\r\nw\r\n";
	say(&world, 'A', "GET k");
	received(&world, 'A', "$1\r\nv\r\n");
	assert_int_equal(rule_count(&world, fetches), 1);
	close_world(&world);
}

/* Configures worker 0 so that its cache has room for the entry that it holds, and for nothing more. */
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

/* The core reads the clock to settle the times of requests, and then decides which keys are hot. Here, reading
 * the clock makes another key hot. */
static uint64_t another_turns_hot(void *context)
{
	struct station *station = context;
	struct hs_heat_warmth warmth = {
		.key = HS_LIT("h"), .slot = hs_slot_of(HS_LIT("h")), .share = 1, .requests = 1000};

	hs_count_hot(station->core, warmth, false);
	return station->world->now.mono_us;
}

static void test_a_key_evicted_while_it_is_served(void **state)
{
	static struct world world;

	(void)state;
	open_world(&world, "* cache stale=10s");
	for (int i = 0; i < 100 && rule_count(&world, hits) == 0; i++) {
		say(&world, 'A', "GETRANGE l 0 1");
		end_round(&world);
		if (*take_sent(&world) != '\0')
			reply(&world, "", "$2\r\nvw\r\n");
		received(&world, 'A', "$2\r\nvw\r\n");
	}
	assert_int_equal(rule_count(&world, hits), 1);
	make_narrow(&world);
	hs_shared_clear(world.shared); /* the shared cache releases its reference to the entry */
	world.calls.mono_us = another_turns_hot;
	say(&world, 'A', "GETRANGE l 0 1");
	received(&world, 'A', "$2\r\nvw\r\n");
	world.calls.mono_us = mono_us;
	say(&world, 'A', "GETRANGE l 0 1");
	received(&world, 'A', "$2\r\nvw\r\n");
	assert_int_equal(rule_count(&world, hits), 3);
	close_world(&world);
}

static void test_the_other_worker_s_value_is_too_large(void **state)
{
	static struct world world;
	char large[1024];

	(void)state;
	open_world(&world, "k* cache stale=100ms stale-while-revalidate=10s admit=all");
	say(&world, 'E', "GET k");
	sent(&world, "~GET k");
	reply(&world, "~GET", "$1\r\nv\r\n");
	received(&world, 'E', "$1\r\nv\r\n");
	later(&world, 200 * MS);
	snprintf(large, sizeof large, "$500\r\n%0500d\r\n", 0);
	say(&world, 'A', "GET k");
	sent(&world, "~GET k");
	reply(&world, "~GET", large);
	received(&world, 'A', large);
	world.options.cache_entry_bytes = 600;
	for (size_t i = 0; i < WORKERS; i++)
		hs_core_configure(world.station[i].core, &world.options);
	/* The new value in the shared cache is larger than this worker's limit, and its own old entry is gone:
	 * the worker fetches the key. */
	say(&world, 'E', "GET k");
	received(&world, 'E', "");
	sent(&world, "~GET k");
	reply(&world, "~GET", "$1\r\nw\r\n");
	received(&world, 'E', "$1\r\nw\r\n");
	close_world(&world);
}

static void test_a_data_error_ends_the_stale_value(void **state)
{
	static struct world world;

	(void)state;
	open_world(&world, "k* cache stale=100ms stale-while-revalidate=10s admit=all");
	say(&world, 'A', "GET k");
	sent(&world, "~GET k");
	reply(&world, "~GET", "$1\r\nv\r\n");
	take_received(&world, 'A');
	lose_tracking_session(&world, 0);
	say(&world, 'A', "GET k");
	received(&world, 'A', "$1\r\nv\r\n");
	sent(&world, "~GET k");
	reply(&world, "~GET", "-WRONGTYPE it is a list\r\n");
	/* The error shows that the old value has changed. */
	say(&world, 'A', "GET k");
	received(&world, 'A', "");
	sent(&world, "~GET k");
	reply(&world, "~GET", "-WRONGTYPE it is a list\r\n");
	received(&world, 'A', "-WRONGTYPE it is a list\r\n");
	close_world(&world);
}

static void test_a_missing_key_without_negative_caching(void **state)
{
	static struct world world;

	(void)state;
	open_world(&world,
		   "k* cache stale=100ms negative-ttl=0 stale-while-revalidate=10s admit=all");
	for (int i = 0; i < 3; i++) {
		say(&world, 'A', "GET k");
		received(&world, 'A', "");
		sent(&world, "~GET k");
		reply(&world, "~GET", i == 0 ? "$1\r\nv\r\n" : "_\r\n");
		received(&world, 'A', i == 0 ? "$1\r\nv\r\n" : "$-1\r\n");
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
		cmocka_unit_test(test_keys_without_a_rule_are_not_cached),
		cmocka_unit_test(test_only_hot_keys_by_default),
		cmocka_unit_test(test_a_fetch_serves_other_workers),
		cmocka_unit_test(test_another_worker_that_takes_long_is_not_waited_for),
		cmocka_unit_test(test_never_older_than_the_liveness_check_allows),
		cmocka_unit_test(test_a_cached_key_expires),
		cmocka_unit_test(test_an_expiry_that_comes_late),
		cmocka_unit_test(test_an_unknown_expiry),
		cmocka_unit_test(test_a_clock_that_is_set),
		cmocka_unit_test(test_an_invalidation_ends_an_entry),
		cmocka_unit_test(test_entry_of_an_ended_tracking_session),
		cmocka_unit_test(test_no_tracking_session),
		cmocka_unit_test(test_errors_are_not_cached),
		cmocka_unit_test(test_a_missing_key_for_a_short_time),
		cmocka_unit_test(test_a_missing_key_of_a_cluster_ages_from_its_fetch),
		cmocka_unit_test(test_both_dialects_from_one_fetch),
		cmocka_unit_test(test_several_keys),
		cmocka_unit_test(test_stale_value_served_while_revalidating),
		cmocka_unit_test(test_the_stale_value_when_the_fetch_fails),
		cmocka_unit_test(test_refresh_ahead_of_the_expiry),
		cmocka_unit_test(test_sessions_that_bypass_the_cache),
		cmocka_unit_test(test_variants_of_a_key_are_bounded),
		cmocka_unit_test(test_a_client_that_leaves_while_it_waits),
		cmocka_unit_test(test_rules_that_change_under_it),
		cmocka_unit_test(test_observing_changes_nothing),
		cmocka_unit_test(test_an_engine_that_answers_at_once),
		cmocka_unit_test(test_a_key_evicted_while_it_is_served),
		cmocka_unit_test(test_the_other_worker_s_value_is_too_large),
		cmocka_unit_test(test_a_data_error_ends_the_stale_value),
		cmocka_unit_test(test_a_missing_key_without_negative_caching),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
