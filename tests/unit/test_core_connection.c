/* Goal: the state of a client connection: dialect, password, name, CLIENT REPLY, DEBUG SLEEP, and the ways in
 * which the connection ends.
 *
 * Method: scripts against the simulated world. */
#include "tests/lib/script.h"

#define HELLO2                                                                                     \
	"*14\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$6\r\n7.0.15\r\n$5\r\nproto\r\n"   \
	":2\r\n$2\r\nid\r\n:1\r\n$4\r\nmode\r\n$7\r\ncluster\r\n$4\r\nrole\r\n$"                   \
	"6\r\nmaster\r\n"                                                                          \
	"$7\r\nmodules\r\n*0\r\n"
#define HELLO3                                                                                     \
	"%7\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$6\r\n7.0.15\r\n$5\r\nproto\r\n"    \
	":3\r\n$2\r\nid\r\n:1\r\n$4\r\nmode\r\n$7\r\ncluster\r\n$4\r\nrole\r\n$"                   \
	"6\r\nmaster\r\n"                                                                          \
	"$7\r\nmodules\r\n*0\r\n"
#define NOAUTH "-NOAUTH Authentication required.\r\n"
#define WRONGPASS "-WRONGPASS invalid username-password pair or user is disabled.\r\n"

static struct hs_sim_world *open_world(const char *password)
{
	struct hs_sim_world_options options = hs_sim_world_defaults(1);
	struct hs_acl *users = hs_acl_create_open(password);
	struct hs_sim_world *world;

	options.workers = 2;
	options.core.acl = users;
	world = hs_sim_world_create(&options);
	hs_acl_unref(&users);
	return world;
}

static struct hs_core_stats *stats(struct hs_sim_world *world, uint32_t worker)
{
	return hs_core_stats(hs_sim_world_core(world, worker));
}

/* Sends a command and runs the world until it is idle. */
static void ask(struct hs_sim_client *client, const char *words)
{
	hs_sim_client_request(client, words);
	hs_sim_world_settle(client->world);
}

static bool heard_part(const struct hs_sim_client *client, const char *part)
{
	return memmem(client->received.data, client->received.len, part, strlen(part)) != NULL;
}

static void test_hello(void **state)
{
	struct hs_sim_world *world = open_world("");
	struct hs_sim_client *client = hs_sim_client_connect(world, 0);

	(void)state;
	ask(client, "HELLO");
	received(client, HELLO2);
	ask(client, "HELLO 3");
	received(client, HELLO3);
	ask(client, "GET nope");
	received(client, "_\r\n");
	ask(client, "HELLO 2 SETNAME me");
	received(client, HELLO2);
	ask(client, "CLIENT GETNAME");
	ask(client, "GET nope");
	received(client, "$2\r\nme\r\n$-1\r\n");
	ask(client, "HELLO x");
	ask(client, "HELLO 4");
	ask(client, "HELLO 3 SETNAME");
	ask(client, "HELLO 3 NOPE");
	received(client, "-ERR Protocol version is not an integer or out of range\r\n"
			 "-NOPROTO unsupported protocol version\r\n"
			 "-ERR Syntax error in HELLO option 'SETNAME'\r\n"
			 "-ERR Syntax error in HELLO option 'NOPE'\r\n");
	ask(client, "GET nope"); /* the client still speaks RESP2 */
	received(client, "$-1\r\n");
	hs_sim_world_destroy(&world);
}

/* A reply has the dialect that was in effect when its request was sent, even if HELLO is answered before it. */
static void test_hello_between_pipelined_requests(void **state)
{
	struct hs_sim_world *world = open_world("");
	struct hs_sim_client *client = hs_sim_client_connect(world, 0);

	(void)state;
	hs_sim_client_request(client, "GETSET foo 1");
	hs_sim_client_request(client, "HELLO 3");
	hs_sim_client_request(client, "GETDEL nope");
	hs_sim_world_settle(world);
	received(client, "$-1\r\n" HELLO3 "_\r\n");
	hs_sim_world_destroy(&world);
}

static void test_password(void **state)
{
	struct hs_sim_world *world = open_world("secret");
	struct hs_sim_client *client = hs_sim_client_connect(world, 0);

	(void)state;
	ask(client, "GET foo");
	ask(client, "PING");
	ask(client, "MULTI");
	received(client, NOAUTH NOAUTH NOAUTH);
	ask(client, "AUTH wrong");
	ask(client, "AUTH secretsecret");
	ask(client, "AUTH somebody secret");
	ask(client, "AUTH a b c");
	received(client, WRONGPASS WRONGPASS WRONGPASS "-ERR syntax error\r\n");
	ask(client, "HELLO 3");
	assert_true(heard_part(client, "-NOAUTH HELLO must be called with the client already "));
	client->received.len = 0;
	ask(client, "HELLO 3 AUTH default wrong");
	received(client, WRONGPASS);
	ask(client, "AUTH secret");
	ask(client, "GET foo");
	received(client, "+OK\r\n$-1\r\n");
	ask(client, "RESET");
	ask(client, "GET foo");
	received(client, "+RESET\r\n" NOAUTH);
	ask(client, "HELLO 3 AUTH default secret");
	received(client, HELLO3);
	ask(client, "GET foo");
	received(client, "_\r\n");
	hs_sim_world_destroy(&world);
}

static void test_password_where_there_is_none(void **state)
{
	struct hs_sim_world *world = open_world("");
	struct hs_sim_client *client = hs_sim_client_connect(world, 0);

	(void)state;
	ask(client, "AUTH x");
	received(client,
		 "-ERR AUTH <password> called without any password configured for the default "
		 "user. Are you sure your configuration is correct?\r\n");
	ask(client, "AUTH default x");
	ask(client, "AUTH somebody x");
	received(client, "+OK\r\n" WRONGPASS);
	hs_sim_world_destroy(&world);
}

static void test_unauthenticated_clients_may_send_little(void **state)
{
	struct hs_sim_world *world = open_world("secret");
	struct hs_sim_client *many = hs_sim_client_connect(world, 0);
	struct hs_sim_client *large = hs_sim_client_connect(world, 0);

	(void)state;
	hs_sim_client_send(many, HS_LIT("*11\r\n"));
	received(many, "-ERR Protocol error: unauthenticated multibulk length\r\n");
	assert_null(many->session);
	hs_sim_client_send(large, HS_LIT("*2\r\n$4\r\nAUTH\r\n$16385\r\n"));
	received(large, "-ERR Protocol error: unauthenticated bulk length\r\n");
	assert_null(large->session);
	hs_sim_world_destroy(&world);
}

static void test_reset(void **state)
{
	struct hs_sim_world *world = open_world("");
	struct hs_sim_client *client = hs_sim_client_connect(world, 0);

	(void)state;
	ask(client, "HELLO 3 SETNAME me");
	ask(client, "MULTI");
	client->received.len = 0;
	ask(client, "RESET");
	ask(client, "CLIENT GETNAME");
	ask(client, "GET nope");
	received(client, "+RESET\r\n$-1\r\n$-1\r\n");
	hs_sim_world_destroy(&world);
}

static void test_silence(void **state)
{
	struct hs_sim_world *world = open_world("");
	struct hs_sim_client *client = hs_sim_client_connect(world, 0);

	(void)state;
	/* The commands below are sent while this SET is in flight. */
	hs_sim_client_request(client, "SET foo 1");
	hs_sim_client_request(client, "CLIENT REPLY SKIP");
	hs_sim_client_request(client, "INCR foo");
	hs_sim_client_request(client, "INCR foo");
	hs_sim_client_request(client, "CLIENT REPLY OFF");
	hs_sim_client_request(client, "INCR foo");
	hs_sim_client_request(client, "PING");
	hs_sim_client_request(client, "NOPE");
	hs_sim_client_request(client, "GET bar");
	hs_sim_client_request(client, "CLIENT REPLY SKIP");
	hs_sim_client_request(client, "PING");
	hs_sim_client_request(client, "CLIENT REPLY ON");
	hs_sim_client_request(client, "GET foo");
	hs_sim_world_settle(world);
	received(client, "+OK\r\n:3\r\n+OK\r\n$1\r\n4\r\n");
	/* CLIENT REPLY does the same with no request in flight. */
	ask(client, "CLIENT REPLY SKIP");
	ask(client, "GET foo");
	ask(client, "GET foo");
	ask(client, "CLIENT REPLY OFF");
	ask(client, "GET foo");
	ask(client, "CLIENT REPLY ON");
	ask(client, "CLIENT REPLY NOPE");
	received(client, "$1\r\n4\r\n+OK\r\n-ERR syntax error\r\n");
	hs_sim_world_destroy(&world);
}

static void test_a_silenced_client_hears_no_protocol_error(void **state)
{
	struct hs_sim_world *world = open_world("");
	struct hs_sim_client *client = hs_sim_client_connect(world, 0);

	(void)state;
	ask(client, "CLIENT REPLY OFF");
	hs_sim_client_send(client, HS_LIT("*x\r\n"));
	silent(client);
	assert_null(client->session);
	hs_sim_world_destroy(&world);
}

static void test_protocol_errors_end_the_connection_in_turn(void **state)
{
	struct hs_sim_world *world = open_world("");
	struct hs_sim_client *client = hs_sim_client_connect(world, 0);

	(void)state;
	hs_sim_client_send(client, HS_LIT("SET foo 1\r\n*1\r\nx\r\nSET foo 2\r\n"));
	silent(client);
	assert_non_null(client->session);
	hs_sim_world_settle(world);
	received(client, "+OK\r\n-ERR Protocol error: expected '$', got 'x'\r\n");
	assert_null(client->session);
	assert_int_equal(hs_counter_get(&stats(world, 0)->protocol_errors), 1);
	/* The core has not run the commands after the malformed one. */
	client = hs_sim_client_connect(world, 0);
	ask(client, "GET foo");
	received(client, "$1\r\n1\r\n");
	hs_sim_world_destroy(&world);
}

static void test_quit(void **state)
{
	struct hs_sim_world *world = open_world("");
	struct hs_sim_client *client = hs_sim_client_connect(world, 0);

	(void)state;
	hs_sim_client_send(client, HS_LIT("SET foo 1\r\nQUIT\r\nSET foo 2\r\n"));
	hs_sim_world_settle(world);
	received(client, "+OK\r\n+OK\r\n");
	assert_null(client->session);
	assert_int_equal(hs_counter_get(&stats(world, 0)->sessions), 0);
	hs_sim_world_destroy(&world);
}

static void test_names(void **state)
{
	struct hs_sim_world *world = open_world("");
	struct hs_sim_client *client = hs_sim_client_connect(world, 0);

	(void)state;
	ask(client, "CLIENT ID");
	ask(client, "CLIENT SETNAME me");
	ask(client, "CLIENT GETNAME");
	hs_sim_client_send(client, HS_LIT("CLIENT SETNAME \"a b\"\r\n"));
	ask(client, "CLIENT GETNAME");
	received(client,
		 ":1\r\n+OK\r\n$2\r\nme\r\n-ERR Client names cannot contain spaces, newlines "
		 "or special "
		 "characters.\r\n$2\r\nme\r\n");
	hs_sim_client_send(client, HS_LIT("CLIENT SETNAME \"\"\r\n"));
	ask(client, "CLIENT GETNAME");
	received(client, "+OK\r\n$-1\r\n");
	ask(client, "CLIENT SETINFO lib-name redis-py");
	hs_sim_client_send(client, HS_LIT("CLIENT SETINFO lib-name \"a\\nb\"\r\n"));
	ask(client, "CLIENT SETINFO nope x");
	received(client, "+OK\r\n-ERR lib-name cannot contain spaces, newlines or special "
			 "characters.\r\n-ERR Unrecognized option 'nope'\r\n");
	ask(client, "CLIENT NOPE");
	received(client, "-ERR unknown subcommand 'NOPE'. Try CLIENT HELP.\r\n");
	hs_sim_world_destroy(&world);
}

static void test_client_list_asks_every_worker(void **state)
{
	struct hs_sim_world *world = open_world("");
	struct hs_sim_client *a = hs_sim_client_connect(world, 0);
	struct hs_sim_client *b = hs_sim_client_connect(world, 1);

	(void)state;
	ask(b, "CLIENT SETNAME other");
	ask(a, "CLIENT LIST");
	assert_true(heard_part(a, "id=1 addr=sim:1 "));
	assert_true(heard_part(a, " cmd=client|list "));
	assert_true(heard_part(a, "id=2 addr=sim:2 "));
	assert_true(heard_part(a, " name=other "));
	a->received.len = 0;
	ask(a, "CLIENT LIST ID 2");
	assert_true(heard_part(a, "id=2 "));
	assert_false(heard_part(a, "id=1 "));
	a->received.len = 0;
	ask(a, "CLIENT LIST TYPE pubsub");
	received(a, "$0\r\n\r\n");
	ask(a, "CLIENT LIST ID x");
	ask(a, "CLIENT LIST TYPE nope");
	ask(a, "CLIENT LIST NOPE");
	received(a, "-ERR Invalid client ID\r\n-ERR Unknown client type 'nope'\r\n-ERR syntax "
		    "error\r\n");
	hs_sim_world_destroy(&world);
}

static void test_client_kill(void **state)
{
	struct hs_sim_world *world = open_world("");
	struct hs_sim_client *a = hs_sim_client_connect(world, 0);
	struct hs_sim_client *b = hs_sim_client_connect(world, 1);
	struct hs_sim_client *c = hs_sim_client_connect(world, 1);

	(void)state;
	hs_sim_client_request(b, "SET foo 1"); /* b has a write in flight when it is killed */
	ask(a, "CLIENT KILL ID 2");
	received(a, ":1\r\n");
	assert_null(b->session);
	ask(a, "CLIENT KILL sim:3");
	received(a, "+OK\r\n");
	assert_null(c->session);
	ask(a, "CLIENT KILL sim:3");
	ask(a, "CLIENT KILL ID 99");
	ask(a, "CLIENT KILL ID x");
	ask(a, "CLIENT KILL TYPE normal"); /* SKIPME: the client that sends the command stays */
	received(a,
		 "-ERR No such client\r\n:0\r\n-ERR client-id should be greater than 0\r\n:0\r\n");
	assert_non_null(a->session);
	/* A kills itself, and still gets its reply. */
	ask(a, "CLIENT KILL TYPE normal SKIPME no");
	received(a, ":1\r\n");
	assert_null(a->session);
	hs_sim_world_destroy(&world);
}

static void test_debug_sleep_blocks_its_own_client_alone(void **state)
{
	struct hs_sim_world *world = open_world("");
	struct hs_sim_client *a = hs_sim_client_connect(world, 0);
	struct hs_sim_client *b = hs_sim_client_connect(world, 0);

	(void)state;
	hs_sim_client_request(a, "SET foo 1");
	hs_sim_client_request(a, "DEBUG SLEEP 0.5");
	hs_sim_client_request(a, "ECHO later");
	hs_sim_world_pass(world, 400000);
	received(a, "+OK\r\n");
	hs_sim_client_request(b, "PING");
	received(b, "+PONG\r\n");
	hs_sim_world_pass(world, 200000);
	received(a, "+OK\r\n$5\r\nlater\r\n");
	hs_sim_world_destroy(&world);
}

static void test_hanging_up_asleep(void **state)
{
	struct hs_sim_world *world = open_world("");
	struct hs_sim_client *a = hs_sim_client_connect(world, 0);

	(void)state;
	hs_sim_client_request(a, "WATCH foo");
	hs_sim_client_request(a, "DEBUG SLEEP 5");
	hs_sim_world_pass(world, 1000);
	hs_sim_client_disconnect(a);
	hs_sim_world_settle(world);
	assert_int_equal(hs_counter_get(&stats(world, 0)->sessions), 0);
	assert_int_equal(hs_counter_get(&stats(world, 0)->inflight), 0);
	hs_sim_world_destroy(&world);
}

static void test_idle_clients_go(void **state)
{
	struct hs_sim_world_options options = hs_sim_world_defaults(1);
	struct hs_sim_world *world;
	struct hs_sim_client *busy, *idle;

	(void)state;
	options.core.idle_s_max = 10;
	world = hs_sim_world_create(&options);
	busy = hs_sim_client_connect(world, 0);
	idle = hs_sim_client_connect(world, 0);
	for (int i = 0; i < 5; i++) {
		hs_sim_world_pass(world, 3000000);
		hs_sim_client_request(busy, "PING");
	}
	assert_non_null(busy->session);
	assert_null(idle->session);
	assert_false(idle->cut);
	hs_sim_world_destroy(&world);
}

static void test_draining(void **state)
{
	struct hs_sim_world *world = open_world("");
	struct hs_core *core = hs_sim_world_core(world, 0);
	struct hs_sim_client *quiet = hs_sim_client_connect(world, 0);
	struct hs_sim_client *waits = hs_sim_client_connect(world, 0);

	(void)state;
	hs_sim_world_pass(world, 1000000);
	hs_sim_engine_stall(world->engine, 2);
	hs_sim_client_request(waits, "SET foo 1");
	/* The core closes an idle client at once. A client that waits for a reply gets the reply first. */
	assert_int_equal(hs_core_drain(core, world->now, 500000), 2);
	hs_sim_world_pass(world, 200000);
	assert_null(quiet->session);
	assert_non_null(waits->session);
	assert_int_equal(hs_core_drain(core, world->now, 0), 1);
	hs_sim_engine_go_on(world->engine, 2);
	hs_sim_world_pass(world, 200000);
	received(waits, "+OK\r\n");
	assert_null(waits->session);
	assert_int_equal(hs_core_drain(core, world->now, 0), 0);
	hs_sim_world_destroy(&world);
}

static void test_commands_are_counted(void **state)
{
	struct hs_sim_world *world = open_world("");
	struct hs_sim_client *client = hs_sim_client_connect(world, 0);
	struct hs_core_stats *counted = stats(world, 0);

	(void)state;
	ask(client, "SET foo x");
	ask(client, "INCR foo");
	ask(client, "GET");
	ask(client, "GET foo");
	ask(client, "NOPE");
	assert_int_equal(hs_counter_get(&counted->commands), 3);
	assert_int_equal(hs_counter_get(&counted->errors), 3);
	assert_int_equal(hs_counter_get(&counted->command[HS_CMD_ID_SET].calls), 1);
	assert_int_equal(hs_counter_get(&counted->command[HS_CMD_ID_INCR].failed), 1);
	assert_int_equal(hs_counter_get(&counted->command[HS_CMD_ID_GET].rejected), 1);
	assert_int_equal(hs_counter_get(&counted->command[HS_CMD_ID_GET].calls), 1);
	assert_int_equal(hs_counter_get(&counted->connections), 1);
	assert_true(hs_counter_get(&counted->input_bytes) > 0);
	hs_sim_world_destroy(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hello),
		cmocka_unit_test(test_hello_between_pipelined_requests),
		cmocka_unit_test(test_password),
		cmocka_unit_test(test_password_where_there_is_none),
		cmocka_unit_test(test_unauthenticated_clients_may_send_little),
		cmocka_unit_test(test_reset),
		cmocka_unit_test(test_silence),
		cmocka_unit_test(test_a_silenced_client_hears_no_protocol_error),
		cmocka_unit_test(test_protocol_errors_end_the_connection_in_turn),
		cmocka_unit_test(test_quit),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_client_list_asks_every_worker),
		cmocka_unit_test(test_client_kill),
		cmocka_unit_test(test_debug_sleep_blocks_its_own_client_alone),
		cmocka_unit_test(test_hanging_up_asleep),
		cmocka_unit_test(test_idle_clients_go),
		cmocka_unit_test(test_draining),
		cmocka_unit_test(test_commands_are_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
