/* Goal: one simulated server behaves like Redis where no script can put a real server into the same state:
 * requests in pieces, event loop cycles that several connections share, limits, stalls, crashes.
 *
 * Method: the test plays clients under a virtual clock. tests/integration/test_sim_cluster.py compares replies
 * with real servers. */
#include "engine/redis/node_info.h"
#include "tests/lib/nodes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#define SAYS(name, request, reply) assert_string_equal(nodes_ask(&nodes, name, request), reply)
#define HEARS(name, text) assert_string_equal(nodes_received(&nodes, name), text)

static struct nodes nodes;

static struct hs_sim_cluster_options one_faulty(void)
{
	struct hs_sim_cluster_options options = hs_sim_cluster_defaults(3);

	options.cluster = false;
	options.masters = 1;
	options.replicas = 0;
	options.extras = true;
	return options;
}

static int setup(void **state)
{
	struct hs_sim_cluster_options options = one_faulty();

	(void)state;
	nodes_init(&nodes, &options);
	nodes_connect(&nodes, 'a', 0);
	nodes_connect(&nodes, 'b', 0);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	nodes_deinit(&nodes);
	return 0;
}

static void start_again(const struct hs_sim_cluster_options *options)
{
	nodes_deinit(&nodes);
	nodes_init(&nodes, options);
	nodes_connect(&nodes, 'a', 0);
	nodes_connect(&nodes, 'b', 0);
}

static void receive(char name, const char *bytes)
{
	hs_sim_server_receive(nodes.clients[name - 'a'].conn, bytes, strlen(bytes));
}

static const char *take(struct hs_buf *text)
{
	hs_buf_append(text, "", 1);
	text->len = 0;
	return text->data;
}

/* ---- bytes and cycles ---- */

static void test_requests_come_in_pieces(void **state)
{
	(void)state;
	receive('a', "*2\r\n$4\r\nECHO\r\n$2");
	nodes_settle(&nodes);
	HEARS('a', "");
	receive('a', "\r\nhi\r\nPING\r\n*1\r\n$4\r\nPI");
	nodes_settle(&nodes);
	HEARS('a', "$2|hi|+PONG|");
	receive('a', "NG\r\n");
	nodes_settle(&nodes);
	HEARS('a', "+PONG|");
}

static void test_nonsense_ends_the_connection(void **state)
{
	(void)state;
	receive('a', "*1\r\n$4\r\nPING\r\n*1\r\n+4\r\n");
	nodes_settle(&nodes);
	HEARS('a', "+PONG|-ERR Protocol error: expected '$', got '+'|");
	assert_true(nodes.clients[0].closed);
	assert_null(nodes.clients[0].conn);
}

static void test_broadcasts_stand_behind_all_replies_of_a_cycle(void **state)
{
	(void)state;
	nodes_ask(&nodes, 'a', "HELLO 3");
	SAYS('a', "CLIENT TRACKING ON BCAST", "+OK|");
	nodes_send(&nodes, 'b', "SET k 1");
	nodes_send(&nodes, 'a', "GET k");
	nodes_send(&nodes, 'b', "SET k 2");
	nodes_settle(&nodes);
	HEARS('a', "$1|2|>2|$10|invalidate|*1|$1|k|");
	HEARS('b', "+OK|+OK|");
}

static void test_a_connection_that_is_closed_is_forgotten(void **state)
{
	(void)state;
	nodes_ask(&nodes, 'a', "HELLO 3");
	nodes_ask(&nodes, 'a', "CLIENT TRACKING ON");
	nodes_ask(&nodes, 'a', "SUBSCRIBE c");
	nodes_ask(&nodes, 'a', "GET k");
	nodes_ask(&nodes, 'a', "WATCH k");
	nodes_send(&nodes, 'a', "SET k 1");
	/* The new connection replaces the old one, and the SET in flight is dropped. */
	nodes_connect(&nodes, 'a', 0);
	SAYS('b', "GET k", "$-1|");
	SAYS('b', "SET k 2", "+OK|");
	SAYS('b', "PUBLISH c m", ":0|");
	SAYS('a', "GET k", "$1|2|");
}

/* ---- notifications ---- */

static void test_the_host_is_notified_of_commands_and_changes(void **state)
{
	static const struct hs_bytes incr[] = {{"INCR", 4}, {"k", 1}};
	struct hs_buf reply = {0};
	int64_t expire_ms;

	(void)state;
	SAYS('a', "SET k x", "+OK|");
	SAYS('a', "INCR k", "-ERR value is not an integer or out of range|");
	SAYS('a', "NOSUCH", "-ERR unknown command 'NOSUCH', with args beginning with: |");
	SAYS('a', "SET k 1 PXAT 1700000001000", "+OK|");
	nodes_ask(&nodes, 'a', "MULTI");
	SAYS('a', "INCR k", "+QUEUED|");
	SAYS('a', "EXEC", "*1|:2|");
	assert_true(hs_sim_cluster_do_external(nodes.cluster, 2, incr, &reply));
	assert_string_equal(take(&reply), ":3\r\n");
	hs_sim_cluster_peek(nodes.cluster, incr[1], &reply, &expire_ms);
	assert_string_equal(take(&reply), "$1\r\n3\r\n");
	assert_int_equal(expire_ms, 1700000001000);
	nodes_pass(&nodes, 2000000);
	hs_sim_cluster_expire(nodes.cluster);
	hs_sim_cluster_peek(nodes.cluster, incr[1], &reply, &expire_ms);
	assert_string_equal(take(&reply), "$-1\r\n");
	assert_int_equal(expire_ms, -2);
	SAYS('a', "FLUSHALL", "+OK|");
	assert_string_equal(take(&nodes.ran), "set incr! set multi incr incr flushall ");
	assert_string_equal(take(&nodes.changes), "set:k set:k set:k set:k expired:k set:* ");
	hs_buf_deinit(&reply);
}

static void test_commands_that_only_servers_have(void **state)
{
	(void)state;
	SAYS('a', "SET k 1", "+OK|");
	SAYS('a', "X.SWAP k 2", "$1|1|");
	SAYS('a', "X.BOTH k 3", "+OK|");
	SAYS('a', "MGET k key0", "*2|$1|3|$1|3|");
	SAYS('a', "DUMP none", "$-1|");
	SAYS('a', "DUMP k", "$11|simulated:3|");
	SAYS('a', "RESTORE k 0 simulated:4", "-BUSYKEY Target key name already exists.|");
	SAYS('a', "RESTORE k 1700000001000 simulated:4 REPLACE ABSTTL", "+OK|");
	SAYS('a', "GET k", "$1|4|");
	SAYS('a', "PEXPIRETIME k", ":1700000001000|");
}

/* ---- limits ---- */

static void test_a_full_tracking_table_invalidates(void **state)
{
	struct hs_sim_cluster_options options = one_faulty();

	(void)state;
	options.tracking_keys_max = 2;
	start_again(&options);
	nodes_ask(&nodes, 'a', "HELLO 3");
	SAYS('a', "CLIENT TRACKING ON", "+OK|");
	SAYS('a', "MGET k l m", "*3|_|_|_|");
	/* The table holds two keys: before the next command the server evicts one of the three and invalidates
	 * it. */
	assert_memory_equal(nodes_ask(&nodes, 'a', "PING"), ">2|$10|invalidate|*1|$1|", 24);
	SAYS('a', "PING", "+PONG|");
}

static void test_evicted_keys_are_invalidated(void **state)
{
	(void)state;
	nodes_ask(&nodes, 'a', "HELLO 3");
	SAYS('a', "CLIENT TRACKING ON", "+OK|");
	SAYS('b', "SET k 1", "+OK|");
	SAYS('a', "GET k", "$1|1|");
	nodes.changes.len = 0;
	assert_true(hs_sim_cluster_evict(nodes.cluster, HS_LIT("k")));
	assert_false(hs_sim_cluster_evict(nodes.cluster, HS_LIT("k")));
	nodes_settle(&nodes);
	HEARS('a', ">2|$10|invalidate|*1|$1|k|");
	assert_string_equal(take(&nodes.changes), "evicted:k ");
	SAYS('a', "GET k", "_|");
}

static void test_a_full_server_refuses(void **state)
{
	struct hs_sim_cluster_options options = one_faulty();

	(void)state;
	options.bytes_max = 100;
	start_again(&options);
	SAYS('a', "SET k 1", "+OK|");
	SAYS('a', "SETRANGE k 200 x", "-OOM command not allowed when used memory > 'maxmemory'.|");
	nodes_ask(&nodes, 'a', "MULTI");
	nodes_ask(&nodes, 'a', "SETRANGE k 200 x");
	nodes_ask(&nodes, 'a', "INCR k");
	SAYS('a', "EXEC", "*2|-OOM command not allowed when used memory > 'maxmemory'.|:2|");
	SAYS('a', "GET k", "$1|2|");
}

static void test_a_password_is_asked_for(void **state)
{
	struct hs_sim_cluster_options options = one_faulty();

	(void)state;
	options.password = "secret";
	start_again(&options);
	SAYS('a', "GET k", "-NOAUTH Authentication required.|");
	SAYS('a', "AUTH wrong", "-WRONGPASS invalid username-password pair or user is disabled.|");
	SAYS('a', "AUTH secret", "+OK|");
	SAYS('a', "GET k", "$-1|");
	assert_memory_equal(nodes_ask(&nodes, 'b', "HELLO 3 AUTH default secret SETNAME x"), "%7|",
			    3);
	SAYS('b', "GET k", "_|");
	SAYS('b', "RESET", "+RESET|");
	SAYS('b', "GET k", "-NOAUTH Authentication required.|");
}

static void test_commands_are_what_the_host_says(void **state)
{
	struct hs_sim_cluster_options options = one_faulty();

	(void)state;
	options.command_reply = HS_LIT("*1\r\n+x.swap\r\n");
	options.command_count = 1;
	start_again(&options);
	SAYS('a', "COMMAND", "*1|+x.swap|");
	SAYS('a', "COMMAND COUNT", ":1|");
}

/* ---- faults ---- */

static void test_a_stalled_server_answers_when_it_goes_on(void **state)
{
	(void)state;
	hs_sim_cluster_stall(nodes.cluster, 0);
	assert_false(hs_sim_cluster_serves(nodes.cluster, 0));
	SAYS('a', "SET k 1", "");
	nodes_connect(&nodes, 'c', 0);
	SAYS('c', "GET k", "");
	hs_sim_cluster_thaw(nodes.cluster, 0);
	nodes_settle(&nodes);
	HEARS('a', "+OK|");
	HEARS('c', "$1|1|");
}

static void test_a_server_that_crashes_closes_and_loads(void **state)
{
	(void)state;
	SAYS('a', "SET k 1", "+OK|");
	nodes_send(&nodes, 'b', "SET k 2");
	hs_sim_cluster_crash(nodes.cluster, 0);
	nodes_settle(&nodes);
	assert_true(nodes.clients[0].closed && nodes.clients[1].closed);
	nodes_connect(&nodes, 'a', 0);
	assert_null(nodes.clients[0].conn);
	nodes.changes.len = 0;
	hs_sim_cluster_restart(nodes.cluster, 0, true, 1000);
	nodes_connect(&nodes, 'a', 0);
	nodes_send(&nodes, 'a', "GET k");
	nodes_send(&nodes, 'a', "PING");
	nodes_pass(&nodes, 500);
	HEARS('a', "-LOADING Redis is loading the dataset in memory|"
		   "-LOADING Redis is loading the dataset in memory|");
	nodes_pass(&nodes, 500);
	SAYS('a', "GET k", "$1|1|");
	assert_string_equal(take(&nodes.changes), "");
	hs_sim_cluster_crash(nodes.cluster, 0);
	hs_sim_cluster_restart(nodes.cluster, 0, false, 0);
	assert_string_equal(take(&nodes.changes), "lost:k ");
	nodes_connect(&nodes, 'a', 0);
	SAYS('a', "GET k", "$-1|");
}

static void test_clients_are_killed(void **state)
{
	(void)state;
	hs_sim_cluster_kill_clients(nodes.cluster, 0);
	assert_true(nodes.clients[0].closed && nodes.clients[1].closed);
	nodes_connect(&nodes, 'a', 0);
	SAYS('a', "PING", "+PONG|");
}

/* ---- INFO ---- */

static void test_info_is_read_by_heatsink(void **state)
{
	struct hs_node_info info;
	const char *text;

	(void)state;
	SAYS('a', "SET k 1", "+OK|");
	SAYS('a', "SET l 1 PXAT 1700000009000", "+OK|");
	nodes_send(&nodes, 'a', "INFO");
	nodes_settle(&nodes);
	hs_buf_append(&nodes.clients[0].received, "", 1);
	text = strstr(nodes.clients[0].received.data, "# Server");
	assert_non_null(text);
	assert_int_equal(hs_node_info_parse(&info, hs_bytes_of(text)), 0);
	assert_int_equal(info.role, HS_NODE_MASTER);
	assert_false(info.cluster);
	assert_false(info.loading);
	assert_string_equal(info.version, "7.0.15");
	assert_int_equal(strlen(info.run_id), 40);
	assert_int_equal(strlen(info.replication_id), 40);
	assert_int_equal(info.keys, 2);
	assert_int_equal(info.expires, 1);
	assert_int_equal(info.clients, 2);
	assert_int_equal(info.maxmemory, 0);
	assert_int_equal(info.aof_enabled, 0);
	nodes.clients[0].received.len = 0;
	SAYS('a', "INFO keyspace", "$44|# Keyspace|db0:keys=2,expires=1,avg_ttl=0||");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_requests_come_in_pieces),
		TEST(test_nonsense_ends_the_connection),
		TEST(test_broadcasts_stand_behind_all_replies_of_a_cycle),
		TEST(test_a_connection_that_is_closed_is_forgotten),
		TEST(test_the_host_is_notified_of_commands_and_changes),
		TEST(test_commands_that_only_servers_have),
		TEST(test_a_full_tracking_table_invalidates),
		TEST(test_evicted_keys_are_invalidated),
		TEST(test_a_full_server_refuses),
		TEST(test_a_password_is_asked_for),
		TEST(test_commands_are_what_the_host_says),
		TEST(test_a_stalled_server_answers_when_it_goes_on),
		TEST(test_a_server_that_crashes_closes_and_loads),
		TEST(test_clients_are_killed),
		TEST(test_info_is_read_by_heatsink),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
