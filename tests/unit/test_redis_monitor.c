/* Goal: the topology monitor knows the owner of every slot and the state of every server, in spite of failures,
 * with no more requests than needed. It ignores a partitioned node and a foreign cluster, and goes on when
 * servers return.
 *
 * Method: the servers of monitor_world.h. Each test lets things happen at given times, and compares the
 * requests that the monitor sends and the reports that it gives to its host. */
#include "tests/lib/monitor_world.h"

static void check_the_first_topology(struct world *world)
{
	assert_int_equal(owner(world, 0), 'a');
	assert_int_equal(owner(world, 150), 'b');
	assert_int_equal(owner(world, 16383), 'c');
	assert_int_equal(world->routes->replicas_count, 1);
	assert_true(world->routes->cluster);
	assert_int_equal(world->routes_told, 1);
	assert_int_equal(world->capacity, HS_MONITOR_PARTITIONS_MIN);
	assert_int_equal(hs_slot_map_get(&world->slots, 150), 1);
	assert_int_equal(hs_slot_map_count(&world->slots), 3);
	assert_int_equal(hs_slot_map_failed(&world->slots), 0);
	assert_string_equal(world->partitions[1].address, "b:2");
	assert_string_equal(world->partitions[1].slots, "100-199");
	assert_int_equal(world->partitions[1].state, HS_PARTITION_OK);
	assert_int_equal(world->partitions[1].keys, 10);
	assert_true(world->partitions[3].absent);
	assert_int_equal(world->learned_told, 1);
	assert_int_equal(world->common.maxmemory, 0);
	assert_string_equal(world->unavailable_reason, "");
	assert_true(world->startup_done);
	assert_non_null(strstr(world->lines, "cluster: 3 shards, 1 replicas, Redis 7.0.0\n"));
}

static void test_the_first_topology(void **state)
{
	struct world *world = make("cluster://a:1,b:2,c:3");

	(void)state;
	assert_string_equal(world->unavailable_reason, "no server has answered yet");
	assert_false(world->startup_done);
	pass(world, 100 * MS);
	check_the_first_topology(world);
	/* The monitor asks one node for the topology, and every master for its state. */
	assert_int_equal(count_requests(world, "CLUSTER SLOTS;"), 1);
	assert_int_equal(count_requests(world, ": COMMAND;"), 1);
	assert_int_equal(count_requests(world, ": INFO;"), 3);
	assert_int_equal(count_requests(world, ": CLUSTER SLOT-STATS SLOTSRANGE 0 16383;"), 3);
	pass(world, 1 * S);
	/* The monitor asks the replica itself when the master's INFO does not list the replica. */
	assert_int_equal(count_requests(world, "d: INFO;"), 1);
	destroy(world);
}

static void test_replies_in_pieces(void **state)
{
	struct world *world = make("cluster://a:1,b:2,c:3");

	(void)state;
	world->pieces = true;
	pass(world, 100 * MS);
	check_the_first_topology(world);
	destroy(world);
}

static void test_a_single_server(void **state)
{
	struct world *world = make("redis://a:1");

	(void)state;
	assert_int_equal(owner(world, 16383), 'a'); /* known before any server answers */
	assert_int_equal(world->partitions[0].state, HS_PARTITION_UNKNOWN);
	assert_string_equal(world->partitions[0].slots, "0-16383");
	server_at(world, 'a')->down = true;
	pass(world, 100 * MS);
	assert_true(world->startup_done);
	assert_string_equal(world->unavailable_reason, "a:1: refused");
	assert_int_equal(hs_slot_map_failed(&world->slots), HS_SLOTS);
	server_at(world, 'a')->down = false;
	pass(world, 1100 * MS);
	assert_string_equal(world->unavailable_reason, "");
	assert_int_equal(hs_slot_map_failed(&world->slots), 0);
	assert_int_equal(world->partitions[0].state, HS_PARTITION_OK);
	assert_int_equal(count_requests(world, "CLUSTER"), 0);
	hs_monitor_suspect_topology(world->monitor,
				    world->now_us); /* no effect: a single server has no topology */
	pass(world, 2 * S);
	assert_int_equal(count_requests(world, "CLUSTER"), 0);
	destroy(world);
}

/* Without changes, a round starts about every `refresh_ms`; the monitor does not parse an unchanged reply
 * again. */
static void test_rounds_without_changes(void **state)
{
	struct world *world = make_cluster();
	uint32_t read;

	(void)state;
	pass(world, 7 * S);
	assert_int_equal(count_requests(world, "CLUSTER SLOTS;"), 0);
	pass(world, 6 * S);
	assert_int_equal(count_requests(world, "CLUSTER SLOTS;"), 1);
	pass(world, 200 * S);
	read = world->capacity_asked; /* number of parsed replies */
	assert_in_range(read, 2, 4);  /* the monitor parsed one reply from each node, at most */
	assert_in_range(count_requests(world, "CLUSTER SLOTS;"), 17, 28);
	assert_int_equal(world->routes_told, 1);
	/* The monitor parses a changed reply, even from a node that had sent the same reply for long. */
	all_slots(world, "0-99 a d, 100-299 b, 300-16383 c", 6);
	pass(world, 13 * S);
	assert_int_equal(owner(world, 250), 'b');
	assert_int_equal(world->routes_told, 2);
	assert_int_equal(world->capacity_asked, read + 1);
	assert_non_null(strstr(world->lines, "cluster: 100 slots moved\n"));
	/* A later reply that changes the topology once more is parsed, too. */
	all_slots(world, "0-99 a d, 100-199 b, 200-16383 c", 7);
	pass(world, 13 * S);
	assert_int_equal(owner(world, 250), 'c');
	destroy(world);
}

static void report_stale_topology(struct world *world)
{
	hs_monitor_suspect_topology(world->monitor, world->now_us);
}

static void test_a_redirect_starts_a_round(void **state)
{
	struct world *world = make_cluster();

	(void)state;
	pass(world, 1 * S);
	forget(world);
	all_slots(world, "0-99 a d, 100-299 b, 300-16383 c", 6);
	for (int i = 0; i < 100; i++)
		report_stale_topology(world);
	pass(world, 0);
	/* A hundred reports start one round, at once. */
	assert_int_equal(count_requests(world, "CLUSTER SLOTS;"), 1);
	assert_int_equal(owner(world, 250), 'b');
	/* A report soon after a round starts the next round after a pause. The pause doubles as long as rounds
	 * find no change, up to a limit. */
	for (uint64_t gap_ms = 50; gap_ms <= 1600; gap_ms *= 2) {
		uint64_t gap_us = (gap_ms < 400 ? gap_ms : 400) * MS; /* at most 400 ms */

		forget(world);
		report_stale_topology(world);
		assert_in_range(world->monitor->poll_at_us - world->now_us, gap_us, gap_us * 3 / 2);
		pass(world, world->monitor->poll_at_us - world->now_us - 1);
		assert_int_equal(count_requests(world, "CLUSTER SLOTS;"), 0);
		report_stale_topology(world);
		pass(world, 1);
		assert_int_equal(count_requests(world, "CLUSTER SLOTS;"), 1);
	}
	destroy(world);
}

/* A report during a round starts another round afterwards: the answer in flight may be older than the report. */
static void test_a_redirect_during_a_round(void **state)
{
	struct world *world = make_cluster();

	(void)state;
	pass(world, 1 * S);
	forget(world);
	report_stale_topology(world);
	/* The request is sent and has no answer yet. */
	hs_monitor_tick(world->monitor, world->now_us);
	report_stale_topology(world);
	pass(world, 150 * MS);
	assert_int_equal(count_requests(world, "CLUSTER SLOTS;"), 2);
	destroy(world);
}

/* Node b was partitioned from the others and has an older topology and epoch: the monitor ignores its topology. */
static void test_a_node_that_was_cut_off(void **state)
{
	struct world *world = make_cluster();

	(void)state;
	all_slots(world, "0-99 d, 100-199 b, 200-16383 c", 6);
	report_stale_topology(world);
	pass(world, 60 * MS);
	assert_int_equal(owner(world, 0), 'd');
	snprintf(server_at(world, 'b')->slots, 64, "0-99 a d, 100-199 b, 200-16383 c");
	server_at(world, 'b')->epoch = 5;
	for (int i = 0; i < 20; i++) {
		report_stale_topology(world);
		pass(world, 500 * MS);
		assert_int_equal(owner(world, 0), 'd');
	}
	assert_true(count_requests(world, "b: CLUSTER SLOTS;") > 0); /* the monitor did ask b */
	assert_int_equal(world->routes_told, 2);
	pass(world, 1 * S);
	/* No other node answers: after three rounds the monitor accepts b's topology. */
	for (int i = 0; i < SERVERS; i++) {
		if (i == 1)
			continue;
		world->servers[i].down = true;
		lose(world, (char)('a' + i));
	}
	forget(world);
	report_stale_topology(world);
	pass(world, 190 * MS);
	assert_int_equal(owner(world, 0), 'd');
	pass(world, 10 * MS);
	assert_int_equal(owner(world, 0), 'a');
	assert_int_equal(count_requests(world, "b: CLUSTER SLOTS;"), 3);
	destroy(world);
}

/* The routes list only masters with slots, because the subscriber opens a connection to every node of the
 * routes. */
static void test_routes_list_no_master_without_slots(void **state)
{
	struct world *world = make_cluster();

	(void)state;
	assert_int_equal(world->routes->nodes_count, 3);
	all_slots(world, "0-199 a d, 200-16383 c", 6);
	pass(world, 13 * S);
	assert_int_equal(world->routes->nodes_count, 2);
	assert_int_equal(owner(world, 150), 'a');
	assert_int_equal(owner(world, 250), 'c');
	destroy(world);
}

/* Node a is partitioned and answers CLUSTERDOWN, and the others have promoted d. No client has sent a request,
 * so the monitor has to notice by itself. */
static void test_a_master_that_refuses_may_be_replaced(void **state)
{
	struct world *world = make_cluster();

	(void)state;
	all_slots(world, "0-99 d, 100-199 b, 200-16383 c", 6);
	snprintf(server_at(world, 'a')->slots, 64, "0-99 a d, 100-199 b, 200-16383 c");
	server_at(world, 'a')->epoch = 5;
	server_at(world, 'a')->failing = true;
	pass(world, 2 * S);
	assert_int_equal(owner(world, 0), 'd');
	destroy(world);
}

/* Another cluster answers at all addresses of this cluster. */
static void test_a_foreign_cluster(void **state)
{
	struct world *world = make_cluster();

	(void)state;
	pass(world, 1 * S);
	all_slots(world, "0-16383 e f", 50);
	forget(world);
	report_stale_topology(world);
	pass(world, 10 * MS);
	assert_int_equal(owner(world, 0), 'a');
	assert_int_equal(world->routes_told, 1);
	/* One to every node, including the replica d. */
	assert_int_equal(count_requests(world, "CLUSTER SLOTS;"), 4);
	assert_non_null(strstr(world->unavailable_reason, "none of 4 nodes gives a usable answer"));
	assert_non_null(
		strstr(world->unavailable_reason, "a different cluster answers at this address"));
	assert_non_null(strstr(world->lines, "ignored, check the engine's URL"));
	/* The masters do not count as down. */
	assert_null(strstr(world->lines, "master of partition"));
	/* The monitor opens each connection again, because the address may lead to another server afterwards. */
	pass(world, 150 * MS);
	for (char name = 'a'; name <= 'd'; name++)
		assert_in_range(server_at(world, name)->up_us, world->now_us - 60 * MS,
				world->now_us - 10 * MS);
	all_slots(world, "0-99 a d, 100-199 b, 200-16383 c", 6);
	pass(world, 1 * S);
	assert_string_equal(world->unavailable_reason, "");
	assert_int_equal(world->routes_told, 1);
	destroy(world);
}

/* While all servers are down, the pause between rounds grows from 100 ms to 1 s; a random part of up to half is
 * added to each pause. */
static void test_all_servers_down_and_back(void **state)
{
	static const unsigned pauses_ms[] = {100, 200, 400, 800, 1000, 1000};
	struct world *world = make("cluster://a:1,b:2");

	(void)state;
	server_at(world, 'a')->down = server_at(world, 'b')->down = true;
	pass(world, 0);
	assert_true(world->startup_done); /* the monitor does not hold up the start */
	assert_string_equal(world->unavailable_reason,
			    strstr(world->unavailable_reason, "(a:1")
				    ? "none of 2 nodes gives a usable answer (a:1: "
				      "refused, and 1 more)"
				    : "none of 2 nodes gives a usable answer (b:2: "
				      "refused, and 1 more)");
	for (size_t i = 0; i < sizeof pauses_ms / sizeof *pauses_ms; i++) {
		uint64_t pause_us = world->monitor->poll_at_us - world->now_us;

		assert_in_range(pause_us, pauses_ms[i] * MS, pauses_ms[i] * MS * 3 / 2);
		pass(world, pause_us);
	}
	/* The failure is logged once. */
	assert_string_equal(strstr(world->lines, ": retrying"), ": retrying\n");
	server_at(world, 'a')->down = false;
	server_at(world, 'b')->down = false;
	pass(world, 1600 * MS);
	check_the_first_topology(world);
	/* When all servers fail again, the pauses are short again at first. */
	for (int i = 0; i < SERVERS; i++) {
		world->servers[i].down = true;
		lose(world, (char)('a' + i));
	}
	pass(world, 10 * MS);
	assert_true(world->monitor->poll_at_us <= world->now_us + 200 * MS);
	assert_int_equal(hs_slot_map_failed(&world->slots), HS_SLOTS);
	assert_int_equal(world->partitions[1].state, HS_PARTITION_DOWN);
	assert_string_equal(world->partitions[1].unavailable_reason, "refused");
	assert_non_null(
		strstr(world->lines,
		       "master of partition 1: the server closed the connection: requests "));
	destroy(world);
}

/* After 200 ms without an answer the monitor asks another node as well; after 2 s it gives the silent node up. */
static void test_a_slow_node_is_hedged(void **state)
{
	struct world *world = make_cluster();
	struct server *asked = NULL;

	(void)state;
	for (int i = 0; i < SERVERS; i++)
		world->servers[i].silent = true;
	all_slots(world, "0-99 a d, 100-299 b, 300-16383 c", 6);
	report_stale_topology(world);
	pass(world, 50 * MS);
	for (int i = 0; i < SERVERS; i++) {
		if (world->servers[i].in.len > 0) {
			assert_null(asked); /* the monitor asked exactly one node */
			asked = &world->servers[i];
		}
	}
	assert_non_null(asked);
	for (int i = 0; i < SERVERS; i++)
		world->servers[i].silent = &world->servers[i] == asked;
	pass(world, 140 * MS);
	assert_int_equal(owner(world, 250), 'c');
	pass(world, 110 * MS);
	assert_int_equal(owner(world, 250), 'b');
	pass(world, 2 * S);
	assert_non_null(strstr(world->lines, "it did not answer in time: requests "));
	destroy(world);
}

static void test_how_servers_are(void **state)
{
	struct world *world = make_cluster();

	(void)state;
	server_at(world, 'b')->keys = 77;
	server_at(world, 'b')->maxmemory = "5";
	pass(world, 1 * S);
	assert_int_equal(world->partitions[1].keys, 77);
	assert_int_equal(world->common.maxmemory, -1); /* -1: the servers have different values */
	assert_int_equal(count_requests(world, "a: INFO;"), 1);
	assert_int_equal(count_requests(world, "a: CLUSTER INFO;"), 1);
	server_at(world, 'b')->failing = true;
	forget(world);
	world->now_us += 1 * S;
	hs_monitor_tick(world->monitor, world->now_us);
	while (count_requests(world, "b: CLUSTER INFO;") == 0)
		assert_true(step(world));
	assert_int_equal(world->partitions[1].state, HS_PARTITION_DOWN); /* as soon as b answers */
	assert_int_equal(hs_slot_map_failed(&world->slots), 100);
	server_at(world, 'b')->failing = false;
	pass(world, 6 * S);
	assert_int_equal(hs_slot_map_failed(&world->slots), 0);
	/* The servers refused CLUSTER SLOT-STATS at the start: the monitor does not send it again. */
	assert_int_equal(count_requests(world, "SLOT-STATS"), 0);
	/* A master that reports to be a replica has been replaced: the topology is stale, and a round starts. */
	forget(world);
	server_at(world, 'b')->replica = true;
	pass(world, 1 * S);
	assert_true(count_requests(world, "CLUSTER SLOTS;") >= 1);
	destroy(world);
}

static void test_commands_that_change(void **state)
{
	struct world *world = make_cluster();

	(void)state;
	for (int i = 0; i < SERVERS; i++) {
		world->servers[i].commands = COMMANDS("zztwo");
		world->servers[i].commands_count = 2;
	}
	pass(world, 8 * S);
	assert_int_equal(world->learned_told, 1);
	pass(world, 4 * S); /* COMMAND COUNT goes out with every tenth INFO */
	assert_int_equal(count_requests(world, ": COMMAND COUNT;"), 1);
	assert_int_equal(world->learned_told, 2);
	/* A server may return with another version: the monitor asks it for COMMAND again. */
	server_at(world, 'c')->commands = COMMANDS("zzsix");
	forget(world);
	lose(world, 'c');
	pass(world, 1100 * MS);
	assert_int_equal(count_requests(world, "c: COMMAND;"), 1);
	assert_int_equal(world->learned_told, 3);
	assert_non_null(strstr(world->lines, "c:3 answers again\n"));
	destroy(world);
}

static void test_a_server_that_refuses_command(void **state)
{
	struct world *world = make("cluster://a:1");

	(void)state;
	for (int i = 0; i < SERVERS; i++)
		world->servers[i].commands = "-NOPERM no\r\n";
	pass(world, 3 * S);
	assert_true(world->startup_done);
	assert_int_equal(world->learned_told, 0);
	assert_non_null(strstr(world->lines, "COMMAND failed (NOPERM no)"));
	assert_int_equal(count_requests(world, ": COMMAND;"), 4); /* one request to each server */
	destroy(world);
}

/* ---- connections ---- */

static void test_malformed_replies(void **state)
{
	struct world *world = make_cluster();

	(void)state;
	pass(world, 300 * MS);
	give(world, server_at(world, 'a'), "+nobody asked\r\n");
	assert_null(server_at(world, 'a')->upstream);
	assert_string_equal(world->partitions[0].unavailable_reason,
			    "it sent a reply without a request");
	assert_non_null(
		strstr(world->lines, "master of partition 0: it sent a reply without a request"));
	give(world, server_at(world, 'b'), "HTTP/1.1 400 Bad Request\r\n");
	assert_null(server_at(world, 'b')->upstream);
	pass(world, 2 * S);
	assert_int_equal(world->partitions[0].state, HS_PARTITION_OK);
	destroy(world);
}

/* The monitor opens connections to replicas for a round and closes them again; it forgets nodes that have left
 * the cluster. */
static void test_connections_that_are_not_needed(void **state)
{
	struct world *world = make("cluster://d:4");

	(void)state;
	pass(world, 10 * MS);
	assert_non_null(server_at(world, 'd')->upstream);
	pass(world, 1 * S);
	assert_non_null(server_at(world, 'b')->upstream);
	/* Nodes b and d have left; the connection to d stays open for a while, because d is the seed. */
	all_slots(world, "0-199 a, 200-16383 c", 6);
	report_stale_topology(world);
	pass(world, 500 * MS);
	assert_null(server_at(world, 'b')->upstream);
	assert_true(world->partitions[1].absent);
	assert_false(hs_slot_map_has(&world->slots, 1));
	pass(world, 6 * S);
	assert_null(server_at(world, 'd')->upstream);
	assert_int_equal(world->monitor->nodes_count, 3);
	assert_non_null(server_at(world, 'a')->upstream);
	destroy(world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_first_topology),
		cmocka_unit_test(test_replies_in_pieces),
		cmocka_unit_test(test_a_single_server),
		cmocka_unit_test(test_rounds_without_changes),
		cmocka_unit_test(test_a_redirect_starts_a_round),
		cmocka_unit_test(test_a_redirect_during_a_round),
		cmocka_unit_test(test_a_node_that_was_cut_off),
		cmocka_unit_test(test_routes_list_no_master_without_slots),
		cmocka_unit_test(test_a_master_that_refuses_may_be_replaced),
		cmocka_unit_test(test_a_foreign_cluster),
		cmocka_unit_test(test_all_servers_down_and_back),
		cmocka_unit_test(test_a_slow_node_is_hedged),
		cmocka_unit_test(test_how_servers_are),
		cmocka_unit_test(test_commands_that_change),
		cmocka_unit_test(test_a_server_that_refuses_command),
		cmocka_unit_test(test_malformed_replies),
		cmocka_unit_test(test_connections_that_are_not_needed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
