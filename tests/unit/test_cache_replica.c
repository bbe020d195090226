/* Goal: values too large for the cache are read from replicas if the rule allows it. The replica must be as new as
 * the contract demands: `stale`, every write acknowledged by this process, and everything the connection itself
 * has done (absorb/cache/replica.c).
 *
 * Method: scripts against two cores whose engine is the test (tests/lib/cache_world.h). The test also sets the
 * time up to which replicas have caught up. */
#include "tests/lib/cache_world.h"

#define RULE "k* cache stale=100ms admit=all replica-reads"
#define LARGE large('v')

static const char *large(char what)
{
	static char text[2100];

	snprintf(text, sizeof text, "$2000\r\n");
	memset(text + 7, what, 2000);
	memcpy(text + 2007, "\r\n", 3);
	return text;
}

static uint64_t since(const struct world *world)
{
	return world->ops[world->count - 1]->replica_since_us;
}

/* Opens a world in which the cache knows that k is large and was not written recently. */
static void begin(struct world *world, const char *rule)
{
	open_world(world, rule);
	for (int i = 0; i < 2; i++) {
		say(world, 'A', "GET k");
		sent(world, "~GET k");
		reply(world, "~GET", LARGE);
		received(world, 'A', LARGE);
	}
}

static void test_only_large_values_and_only_by_rule(void **state)
{
	static struct world world;

	(void)state;
	begin(&world, RULE);
	world.caught_up_us = world.now.mono_us + MS;
	say(&world, 'A', "GET k");
	sent(&world, "@GET k");
	reply(&world, "@GET", LARGE);
	received(&world, 'A', LARGE);
	assert_int_equal(rule_count(&world, replica_reads), 1);
	assert_int_equal(rule_count(&world, fetches), 2);
	/* A small reply about the same key is cached. */
	say(&world, 'A', "STRLEN k");
	sent(&world, "~STRLEN k");
	reply(&world, "~STRLEN", ":2000\r\n");
	received(&world, 'A', ":2000\r\n");
	/* If no replica is recent enough, the engine may send the read to the master. */
	world.caught_up_us = 0;
	say(&world, 'A', "GET k");
	sent(&world, "@GET k");
	reply(&world, "@GET", LARGE);
	received(&world, 'A', LARGE);
	assert_int_equal(rule_count(&world, replica_reads), 1);
	assert_int_equal(rule_count(&world, fetches), 4);
	close_world(&world);

	begin(&world, "k* cache stale=100ms admit=all");
	say(&world, 'A', "GET k");
	sent(&world, "~GET k");
	reply(&world, "~GET", LARGE);
	take_received(&world, 'A');
	close_world(&world);
}

static void test_never_older_than_stale(void **state)
{
	static struct world world;

	(void)state;
	begin(&world, RULE);
	/* From this read on, the exact times of writes to k are known. */
	say(&world, 'A', "GET k");
	sent(&world, "@GET k");
	reply(&world, "@GET", LARGE);
	take_received(&world, 'A');
	later(&world, 1000 * MS);
	say(&world, 'A', "GET k");
	sent(&world, "@GET k");
	assert_int_equal(since(&world), world.now.mono_us - 100 * MS);
	reply(&world, "@GET", LARGE);
	take_received(&world, 'A');
	close_world(&world);
}

static void test_an_acknowledged_write_is_seen_by_all(void **state)
{
	static struct world world;
	uint64_t written_us;

	(void)state;
	begin(&world, RULE);
	later(&world, 1000 * MS);
	say(&world, 'A', "GET k");
	sent(&world, "@GET k");
	reply(&world, "@GET", LARGE);
	take_received(&world, 'A');
	/* A client of the other worker writes the key. */
	say(&world, 'E', "SET k x");
	sent(&world, "SET k x");
	reply(&world, "SET", "+OK\r\n");
	received(&world, 'E', "+OK\r\n");
	written_us = world.now.mono_us;
	/* Worker 0 sees the write's version, but learns the time of the write only when its own clock has moved
	 * on. Until then it reads from the master. */
	say(&world, 'A', "GET k");
	sent(&world, "~GET k");
	reply(&world, "~GET", LARGE);
	take_received(&world, 'A');
	say(&world, 'A', "GET k");
	sent(&world, "@GET k");
	assert_true(since(&world) >= written_us);
	reply(&world, "@GET", LARGE);
	take_received(&world, 'A');
	/* Until `stale` has passed, no read may go to a replica that is older than the write. */
	say(&world, 'B', "GET k");
	sent(&world, "@GET k");
	assert_in_range(since(&world), written_us, written_us + 10);
	reply(&world, "@GET", LARGE);
	take_received(&world, 'B');
	close_world(&world);
}

/* A worker's clock stands still while it handles a batch of requests. Another worker may complete a write in the
 * meantime, later than the time that this worker's clock shows. */
static void test_the_clock_of_a_batch(void **state)
{
	static struct world world;
	struct hs_core *core;
	struct hs_now batch;

	(void)state;
	begin(&world, RULE);
	later(&world, 1000 * MS);
	core = world.station[0].core;
	batch = world.now;
	say(&world, 'E', "SET k x");
	sent(&world, "SET k x");
	reply(&world, "SET", "+OK\r\n");
	take_received(&world, 'E');
	for (int i = 0; i < 2; i++) { /* worker 0 is still in the earlier batch */
		hs_core_receive(core, world.client[i], batch, "GET k\r\n", 7);
		sent(&world, i == 0 ? "~GET k" : "");
	}
	reply(&world, "~GET", LARGE);
	take_received(&world, 'A');
	take_received(&world, 'B');
	hs_core_receive(core, world.client[0], batch, "GET k\r\n", 7);
	sent(&world, "~GET k");
	reply(&world, "~GET", LARGE);
	take_received(&world, 'A');
	say(&world, 'A', "GET k");
	sent(&world, "@GET k");
	assert_true(since(&world) > batch.mono_us + 2);
	reply(&world, "@GET", LARGE);
	take_received(&world, 'A');
	close_world(&world);
}

/* A client that reads after a write waits for the fetch after the one in flight. The client gets the value also
 * if another worker makes that second fetch. */
static void test_another_worker_fetches_again(void **state)
{
	static struct world world;

	(void)state;
	begin(&world, RULE);
	later(&world, 1000 * MS);
	say(&world, 'A', "GET k");
	sent(&world, "@GET k");
	later(&world, MS);
	say(&world, 'E', "SET k x");
	sent(&world, "SET k x");
	reply(&world, "SET", "+OK\r\n");
	received(&world, 'E', "+OK\r\n");
	later(&world, MS);
	say(&world, 'B', "GET k");
	sent(&world, "");
	say(&world, 'E', "GET k");
	sent(&world, "~GET k");
	/* A small value is fetched again with tracking, so that it can be cached. */
	reply(&world, "@GET", "$1\r\ny\r\n");
	sent(&world, "");
	reply(&world, "~GET", "$1\r\nx\r\n");
	received(&world, 'E', "$1\r\nx\r\n");
	deliver_events(&world);
	received(&world, 'A', "$1\r\nx\r\n");
	received(&world, 'B', "$1\r\nx\r\n");
	close_world(&world);
}

static void test_own_writes_and_scripts(void **state)
{
	static struct world world;
	uint64_t script_us;

	(void)state;
	begin(&world, RULE);
	later(&world, 1000 * MS);
	say(&world, 'A', "GET k");
	sent(&world, "@GET k");
	reply(&world, "@GET", LARGE);
	take_received(&world, 'A');
	/* While a write of the client is in flight, the client's read goes to the master on the same
	 * connection. */
	say(&world, 'A', "APPEND k x");
	say(&world, 'A', "GET k");
	sent(&world, "APPEND k x | GET k");
	reply(&world, "APPEND", ":2001\r\n");
	reply(&world, "GET", LARGE);
	take_received(&world, 'A');
	/* A client's write waits for the same client's read from a replica. */
	say(&world, 'B', "GET k");
	say(&world, 'B', "GET k");
	world.sent_count = world.count;
	reply(&world, world.ops[0]->track ? "~GET" : "@GET", LARGE);
	take_received(&world, 'B');
	later(&world, MS);
	say(&world, 'B', "GET k");
	say(&world, 'B', "SET k y");
	sent(&world, "@GET k");
	reply(&world, "@GET", LARGE);
	sent(&world, "SET k y");
	reply(&world, "SET", "+OK\r\n");
	take_received(&world, 'B');
	for (int i = 0; i < 2; i++) {
		later(&world, 200 * MS);
		say(&world, 'B', "GET k");
		world.sent_count = world.count;
		reply(&world, i == 0 ? "~GET" : "@GET", LARGE);
		take_received(&world, 'B');
	}
	/* A script may have written the key, so its client must not read an older state of the replica. */
	say(&world, 'C', "EVAL x 0");
	sent(&world, "EVAL x 0");
	reply(&world, "EVAL", "+OK\r\n");
	take_received(&world, 'C');
	script_us = world.now.mono_us;
	say(&world, 'B', "GET k");
	sent(&world, "@GET k");
	assert_true(since(&world) < script_us);
	world.ops[0]->replica_caught_up_us = script_us - 1;
	/* The read in flight for B may return a state from before C's script. */
	say(&world, 'C', "GET k");
	sent(&world, "");
	reply(&world, "@GET", LARGE);
	received(&world, 'B', LARGE);
	received(&world, 'C', "");
	sent(&world, "~GET k");
	reply(&world, "~GET", LARGE);
	received(&world, 'C', LARGE);
	say(&world, 'C', "GET k");
	sent(&world, "@GET k");
	assert_true(since(&world) > script_us);
	reply(&world, "@GET", LARGE);
	take_received(&world, 'C');
	close_world(&world);
}

/* A client that joins a read in flight gets the replica's state at the replica's last check. This check must be
 * recent enough for the client. */
static void test_which_clients_may_share_a_read(void **state)
{
	static struct world world;

	(void)state;
	begin(&world, RULE);
	say(&world, 'A', "GET k");
	sent(&world, "@GET k");
	reply(&world, "@GET", LARGE);
	take_received(&world, 'A');
	later(&world, 1000 * MS);
	world.caught_up_us = world.now.mono_us - 60 * MS;
	say(&world, 'A', "GET k");
	sent(&world, "@GET k");
	later(&world, 30 * MS);
	say(&world, 'B', "GET k");
	later(&world, 30 * MS);
	say(&world, 'C', "GET k"); /* 120 ms after the replica's last check */
	sent(&world, "");
	reply(&world, "@GET", LARGE);
	received(&world, 'A', LARGE);
	received(&world, 'B', LARGE);
	received(&world, 'C', "");
	sent(&world, "~GET k");
	reply(&world, "~GET", LARGE);
	received(&world, 'C', LARGE);
	close_world(&world);
}

/* If a replica answers with a missing key, a small value or an error, the cache fetches the key again with
 * tracking, and clients get this second reply. */
static void test_small_replies_of_replicas_are_read_again(void **state)
{
	static const char *const words[] = {"_\r\n", "$1\r\nx\r\n", "-WRONGTYPE x\r\n",
					    "-CLUSTERDOWN x\r\n"};
	static struct world world;

	(void)state;
	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		begin(&world, RULE);
		if (i == 0) { /* the limit is too small to cache even a missing key */
			world.options.cache_entry_bytes = 16;
			for (size_t j = 0; j < WORKERS; j++)
				hs_core_configure(world.station[j].core, &world.options);
		}
		world.caught_up_us = world.now.mono_us;
		say(&world, 'A', "GET k");
		say(&world, 'B', "GET k");
		sent(&world, "@GET k");
		reply(&world, "@GET", words[i]);
		received(&world, 'A', "");
		sent(&world, "~GET k");
		reply(&world, "~GET", "$1\r\ny\r\n");
		received(&world, 'A', "$1\r\ny\r\n");
		received(&world, 'B', "$1\r\ny\r\n");
		say(&world, 'C', "GET k");
		if (i == 0) { /* the reply was not cached */
			sent(&world, "~GET k");
			reply(&world, "~GET", "$1\r\ny\r\n");
		}
		received(&world, 'C', "$1\r\ny\r\n");
		sent(&world, "");
		close_world(&world);
	}
}

static void test_rules_change_meanwhile(void **state)
{
	static struct world world;

	(void)state;
	begin(&world, RULE);
	say(&world, 'A', "GET k");
	sent(&world, "@GET k");
	set_rules(&world, NULL, HS_MITIGATE_ON);
	reply(&world, "@GET", LARGE);
	received(&world, 'A', LARGE);
	close_world(&world);
	begin(&world, RULE);
	say(&world, 'A', "GET k");
	sent(&world, "@GET k");
	set_rules(&world, NULL, HS_MITIGATE_ON);
	reply(&world, "@GET", "_\r\n");
	sent(&world, "~GET k");
	reply(&world, "~GET", LARGE);
	received(&world, 'A', LARGE);
	close_world(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_only_large_values_and_only_by_rule),
		cmocka_unit_test(test_never_older_than_stale),
		cmocka_unit_test(test_an_acknowledged_write_is_seen_by_all),
		cmocka_unit_test(test_the_clock_of_a_batch),
		cmocka_unit_test(test_another_worker_fetches_again),
		cmocka_unit_test(test_own_writes_and_scripts),
		cmocka_unit_test(test_which_clients_may_share_a_read),
		cmocka_unit_test(test_small_replies_of_replicas_are_read_again),
		cmocka_unit_test(test_rules_change_meanwhile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
