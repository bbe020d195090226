/* Goal: CONFIG GET, CONFIG SET and INFO of clients are answered from all servers, in rounds, also when servers
 * fail.
 *
 * Method: the servers of monitor_world.h. */
#include "tests/lib/monitor_world.h"

/* ---- CONFIG ---- */

struct config_op {
	struct hs_op op;
	struct hs_bytes argv[4];
	struct hs_buf out;
};

static struct hs_op *make_config(struct config_op *config, const char *verb, const char *name,
				 const char *value)
{
	*config = (struct config_op){
		.argv = {hs_bytes_of("CONFIG"), hs_bytes_of(verb), hs_bytes_of(name)}};
	if (value)
		config->argv[3] = hs_bytes_of(value);
	config->op = (struct hs_op){
		.kind = HS_OP_HOST,
		.resp = 2,
		.command = hs_command_by_id(value ? HS_CMD_ID_CONFIG_SET : HS_CMD_ID_CONFIG_GET),
		.argv = config->argv,
		.argc = value ? 4 : 3,
		.out = &config->out,
	};
	return &config->op;
}

static void configure(struct world *world, struct config_op *config, const char *verb,
		      const char *name, const char *value)
{
	hs_monitor_configure(world->monitor, world->now_us, make_config(config, verb, name, value));
}

static void check_reply(struct config_op *config, const char *reply)
{
	hs_buf_append(&config->out, "", 1);
	if (!strstr(config->out.data, reply))
		fail_msg("%s", config->out.data);
	hs_buf_deinit(&config->out);
}

static void test_config_get(void **state)
{
	struct world *world = make_cluster();
	struct config_op first, second;

	(void)state;
	server_at(world, 'b')->old = true;
	configure(world, &first, "GET", "maxmemory", NULL);
	assert_int_equal(world->done, 0);
	pass(world, 0);
	assert_int_equal(world->done, 1);
	check_reply(&first, "*2\r\n$9\r\nmaxmemory\r\n$1\r\n0\r\n");
	/* One to every node, including the replica. */
	assert_int_equal(count_requests(world, ": CONFIG GET;"), 4);
	assert_int_equal(count_requests(world, "b: CONFIG GET *;"), 1);
	/* The next round answers all commands that came during a round. */
	forget(world);
	configure(world, &first, "GET", "maxmemory", NULL);
	server_at(world, 'd')->maxmemory = "9";
	configure(world, &second, "GET", "maxmemory", NULL);
	pass(world, 0);
	assert_int_equal(world->done, 3);
	check_reply(&first, "differs between servers");
	check_reply(&second, "differs between servers");
	assert_int_equal(count_requests(world, "c: CONFIG GET;"), 2);
	destroy(world);
}

static void test_config_from_inside(void **state)
{
	struct world *world = make_cluster();
	struct config_op first, second;

	(void)state;
	world->again = make_config(&second, "GET", "maxmemory", NULL);
	configure(world, &first, "GET", "maxmemory", NULL);
	pass(world, 0);
	assert_int_equal(world->done, 2);
	check_reply(&first, "maxmemory");
	check_reply(&second, "maxmemory");
	destroy(world);
}

static void test_config_without_a_node(void **state)
{
	struct world *world = make("cluster://a:1");
	struct config_op config;

	(void)state;
	configure(world, &config, "GET", "maxmemory", NULL);
	assert_int_equal(world->done, 1); /* fails at once: no node is known yet */
	check_reply(&config, "-CLUSTERDOWN ");
	destroy(world);
}

/* The monitor sends a setting again to a node that returns without it. */
static void test_config_set(void **state)
{
	struct world *world = make_cluster();
	struct config_op config;

	(void)state;
	configure(world, &config, "SET", "maxmemory", "1kb");
	pass(world, 0);
	assert_int_equal(world->done, 1);
	check_reply(&config, "+OK\r\n");
	assert_int_equal(count_requests(world, "CONFIG SET maxmemory 1kb;"), 4);
	forget(world);
	lose(world, 'c');
	server_at(world, 'c')->maxmemory = "0";
	pass(world, 1100 * MS);
	/* The monitor sends the value as the servers report it. */
	assert_string_equal(server_at(world, 'c')->maxmemory, "1024");
	assert_int_equal(count_requests(world, "CONFIG SET"), 1);
	assert_non_null(strstr(world->lines, "c:3: restored maxmemory to the last CONFIG SET\n"));
	/* A node that disconnects during CONFIG SET counts as failed. */
	server_at(world, 'c')->silent = true;
	configure(world, &config, "SET", "maxmemory", "1kb");
	pass(world, 0);
	assert_int_equal(world->done, 1);
	lose(world, 'c');
	assert_int_equal(world->done, 2);
	check_reply(&config,
		    "-ERR CONFIG SET took effect at 3 of 4 servers; the others are retried when "
		    "they answer: c:3: the server closed the connection\r\n");
	destroy(world);
}

static void test_ops_at_the_end(void **state)
{
	struct world *world = make_cluster();
	struct config_op first, second;

	(void)state;
	server_at(world, 'a')->silent = true;
	configure(world, &first, "SET", "maxmemory", "1kb");
	configure(world, &second, "GET", "maxmemory", NULL);
	pass(world, 0);
	assert_int_equal(world->done, 0);
	hs_monitor_destroy(&world->monitor);
	assert_int_equal(world->done, 2);
	check_reply(&first, "-ERR shutting down; the outcome is unknown\r\n");
	check_reply(&second, "-ERR shutting down\r\n");
	destroy(world);
}

/* ---- keys ---- */

static void recount(struct world *world, uint64_t number)
{
	hs_monitor_recount(world->monitor, world->now_us, number);
}

static void test_a_recount(void **state)
{
	struct world *world = make_cluster();

	(void)state;
	pass(world, 300 * MS);
	server_at(world, 'a')->keys = 1000;
	recount(world, 1);
	assert_int_equal(world->recounted, 0);
	/* Needs another round: the answers in flight may be older than this request. */
	recount(world, 2);
	pass(world, 0);
	assert_int_equal(world->recounted, 2);
	assert_int_equal(world->partitions[0].keys, 1000);
	assert_int_equal(count_requests(world, "a: INFO keyspace;"), 2);
	/* Server d is a replica: its keys are not counted. */
	assert_int_equal(count_requests(world, "d: INFO keyspace;"), 0);
	destroy(world);
}

static void test_a_recount_with_a_silent_node(void **state)
{
	struct world *world = make_cluster();
	uint64_t began_us;

	(void)state;
	server_at(world, 'a')->keys = 1000;
	server_at(world, 'b')->keys = 2000;
	server_at(world, 'b')->silent = true;
	began_us = world->now_us;
	recount(world, 1);
	pass(world, 490 * MS);
	assert_int_equal(world->recounted, 0);
	pass(world, 120 * MS);
	assert_int_equal(world->recounted, 1);
	assert_in_range(world->recounted_us - began_us, 500 * MS, 600 * MS);
	assert_int_equal(world->partitions[0].keys, 1000);
	assert_int_equal(world->partitions[1].keys, 10); /* the last known number of keys */
	/* Server b has not answered: later rounds do not wait for b until b has answered any request. */
	recount(world, 2);
	pass(world, 0);
	assert_int_equal(world->recounted, 2);
	server_at(world, 'b')->silent = false;
	pass(world, 0);
	forget(world);
	recount(world, 3);
	pass(world, 0);
	assert_int_equal(world->recounted, 3);
	assert_int_equal(count_requests(world, "b: INFO keyspace;"), 1);
	assert_int_equal(world->partitions[1].keys, 2000);
	destroy(world);
}

/* INFO keyspace waits for the reply to INFO. If the round ends before INFO keyspace was sent, the monitor does
 * not send it: the late answer could be taken for an answer to the next round. */
static void test_a_recount_behind_another_request(void **state)
{
	struct world *world = make_cluster();

	(void)state;
	pass(world, 850 * MS);
	server_at(world, 'b')->silent = true;
	pass(world, 100 * MS); /* the monitor has sent INFO to b, which does not answer */
	recount(world, 1);
	pass(world, 700 * MS);
	assert_int_equal(world->recounted, 1);
	forget(world);
	server_at(world, 'b')->silent = false;
	pass(world, 0);
	assert_true(count_requests(world, "b: ") > 0);
	assert_int_equal(count_requests(world, "b: INFO keyspace;"), 0);
	destroy(world);
}

/* The monitor tries a server that refuses connections once per tick, however often clients request a round. */
static void test_recounts_with_a_dead_node(void **state)
{
	struct world *world = make_cluster();
	uint64_t number = 0;

	(void)state;
	server_at(world, 'b')->down = true;
	lose(world, 'b');
	pass(world, 250 * MS);
	for (int i = 0; i < 50; i++) {
		recount(world, ++number);
		pass(world, 1 * MS);
	}
	assert_in_range(count_requests(world, "a: INFO keyspace;"), 1, 2);
	pass(world, 100 * MS);
	assert_int_equal(world->recounted, number);
	destroy(world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_config_get),
		cmocka_unit_test(test_config_from_inside),
		cmocka_unit_test(test_config_without_a_node),
		cmocka_unit_test(test_config_set),
		cmocka_unit_test(test_ops_at_the_end),
		cmocka_unit_test(test_a_recount),
		cmocka_unit_test(test_a_recount_with_a_silent_node),
		cmocka_unit_test(test_a_recount_behind_another_request),
		cmocka_unit_test(test_recounts_with_a_dead_node),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
