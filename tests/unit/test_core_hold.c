/* Goal: when a client's next command is held back, CLIENT LIST shows the reason and a counter counts it; when the
 * command continues, the client is shown as not held.
 *
 * Method: scripts against the simulated world, with a partition that answers on demand. foo lives on partition 2
 * of four. A stage that holds is in test_core_stage.c, CLIENT PAUSE in test_core_pause.c, a reply that does not
 * fit in test_core_reply_budget.c. */
#include "tests/lib/script.h"

#include "base/mem.h"
#include "core/hold.h"

enum { FOO_PARTITION = 2 };

static struct hs_sim_world *world;
static struct hs_core *core;
static struct hs_sim_client *client;

static int set_up(void **state)
{
	struct hs_sim_world_options options = hs_sim_world_defaults(1);

	(void)state;
	world = hs_sim_world_create(&options);
	core = hs_sim_world_core(world, 0);
	client = hs_sim_client_connect(world, 0);
	hs_sim_engine_stall(world->engine, FOO_PARTITION);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	hs_sim_world_destroy(&world);
	return 0;
}

/* Asserts that CLIENT LIST shows the reason `text`, and that `why` was counted `times` times and no other reason
 * was. */
static void held(const char *text, enum hs_hold why, uint64_t times)
{
	assert_string_equal(hs_hold_text(core, client->session), text);
	for (int i = 0; i < HS_HOLDS; i++)
		assert_int_equal(hs_counter_get(&core->stats.holds[i]), i == (int)why ? times : 0);
}

static void go_on(void)
{
	hs_sim_engine_go_on(world->engine, FOO_PARTITION);
	hs_sim_world_settle(world);
}

/* A transaction with PUBLISH must run alone, because its message is sent after its commit. */
static void ask_to_publish(void)
{
	hs_sim_client_request(client, "MULTI");
	hs_sim_client_request(client, "SET foo 1");
	hs_sim_client_request(client, "PUBLISH c m");
	received(client, "+OK\r\n+QUEUED\r\n+QUEUED\r\n");
	hs_sim_client_request(client, "EXEC");
}

static void test_the_next_must_be_alone(void **state)
{
	(void)state;
	hs_sim_client_request(client, "SET foo 1");
	held("-", HS_HOLD_NONE, 0);
	hs_sim_client_request(client, "SUBSCRIBE c");
	held("commands-in-flight", HS_HOLD_IN_FLIGHT, 1);
	go_on();
	received(client, "+OK\r\n*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n");
	held("-", HS_HOLD_IN_FLIGHT, 1);
}

/* Commands after a command that must run alone wait, whether they came in the same packet or later. */
static void test_the_last_must_be_alone(void **state)
{
	(void)state;
	ask_to_publish();
	held("-", HS_HOLD_NONE, 0);
	hs_sim_client_request(client, "ECHO a");
	held("commands-in-flight", HS_HOLD_IN_FLIGHT, 1);
	hs_sim_client_request(client, "ECHO b"); /* the client is held already */
	held("commands-in-flight", HS_HOLD_IN_FLIGHT, 1);
	go_on();
	received(client, "*2\r\n+OK\r\n:0\r\n$1\r\na\r\n$1\r\nb\r\n");
	held("-", HS_HOLD_IN_FLIGHT, 1);
}

/* An incomplete command does not count as held. */
static void test_an_incomplete_command(void **state)
{
	(void)state;
	ask_to_publish();
	hs_sim_client_send(client, HS_LIT("*1\r\n$4\r\nPI"));
	go_on();
	received(client, "*2\r\n+OK\r\n:0\r\n");
	assert_string_equal(hs_hold_text(core, client->session), "-");
	hs_sim_client_send(client, HS_LIT("NG\r\n"));
	received(client, "+PONG\r\n");
}

static void test_the_pipeline_is_full(void **state)
{
	struct hs_buf bytes = {0}, expected = {0};

	(void)state;
	for (int i = 0; i < HS_SESSION_INFLIGHT_MAX; i++) {
		hs_buf_printf(&bytes, "INCR foo\r\n");
		hs_buf_printf(&expected, ":%d\r\n", i + 1);
	}
	hs_sim_client_send(client, hs_buf_bytes(&bytes));
	hs_sim_world_settle(world);
	held("-", HS_HOLD_NONE, 0);
	hs_sim_client_request(client, "ECHO a");
	held("pipeline-limit", HS_HOLD_PIPELINE, 1);
	go_on();
	hs_buf_printf(&expected, "$1\r\na\r\n");
	assert_true(hs_bytes_equal(hs_buf_bytes(&client->received), hs_buf_bytes(&expected)));
	held("-", HS_HOLD_PIPELINE, 1);
	hs_buf_deinit(&bytes);
	hs_buf_deinit(&expected);
}

/* The option lowers the limit of requests in flight for clients that connect from then on. */
static void test_the_pipeline_is_short(void **state)
{
	struct hs_core_options options = world->options.core;

	(void)state;
	options.session_inflight_max = 2;
	hs_core_configure(core, &options);
	client = hs_sim_client_connect(world, 0);
	hs_sim_client_request(client, "INCR foo");
	hs_sim_client_request(client, "INCR foo");
	held("-", HS_HOLD_NONE, 0);
	hs_sim_client_request(client, "ECHO a");
	held("pipeline-limit", HS_HOLD_PIPELINE, 1);
	go_on();
	received(client, ":1\r\n:2\r\n$1\r\na\r\n");
	held("-", HS_HOLD_PIPELINE, 1);
}

static void test_debug_sleep(void **state)
{
	(void)state;
	hs_sim_client_request(client, "DEBUG SLEEP 0.1");
	held("debug-sleep", HS_HOLD_SLEEP, 1);
	hs_sim_world_settle(world);
	received(client, "+OK\r\n");
	held("-", HS_HOLD_SLEEP, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_the_next_must_be_alone, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_the_last_must_be_alone, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_an_incomplete_command, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_the_pipeline_is_full, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_the_pipeline_is_short, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_debug_sleep, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
