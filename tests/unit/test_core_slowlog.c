/* Goal: the slow log has the slow commands of all workers, the newest first, within its limits, with long
 * arguments cut as in Redis.
 *
 * Method: scripts against the simulated world; reading the clock takes as long as the test wants. */
#include "tests/lib/script.h"

#include "base/limits.h"

static struct hs_sim_world *open_world(int64_t slowlog_us, uint32_t look_us)
{
	struct hs_sim_world_options options = hs_sim_world_defaults(1);

	options.workers = 2;
	options.core.slowlog_us = slowlog_us;
	options.core.slowlog_len_max = 3;
	options.look_us = look_us;
	/* The engine answers and commits at once, so that only the reads of the clock take time. */
	options.engine.commit_us_max = 0;
	options.engine.answer_us_max = 0;
	options.peer_us_max = 0;
	return hs_sim_world_create(&options);
}

static void ask(struct hs_sim_client *client, const char *words)
{
	hs_sim_client_request(client, words);
	hs_sim_world_settle(client->world);
}

static bool heard_part(const struct hs_sim_client *client, const char *part)
{
	return memmem(client->received.data, client->received.len, part, strlen(part)) != NULL;
}

static void test_only_slow_commands_are_logged(void **state)
{
	struct hs_sim_world *world = open_world(500, 1000);
	struct hs_sim_client *client = hs_sim_client_connect(world, 0);

	(void)state;
	ask(client, "CLIENT SETNAME me");
	ask(client, "GET foo");
	client->received.len = 0;
	world->options.look_us = 0;
	ask(client, "GET bar");
	received(client, "$-1\r\n");
	ask(client, "SLOWLOG LEN");
	received(client, ":2\r\n");
	ask(client, "SLOWLOG GET 1");
	assert_true(heard_part(client,
			       "*1\r\n*6\r\n:1\r\n:1700000000\r\n:1000\r\n"
			       "*2\r\n$3\r\nGET\r\n$3\r\nfoo\r\n$5\r\nsim:1\r\n$2\r\nme\r\n"));
	hs_sim_world_destroy(&world);
}

static void test_off(void **state)
{
	struct hs_sim_world *world = open_world(-1, 1000000);
	struct hs_sim_client *client = hs_sim_client_connect(world, 0);

	(void)state;
	ask(client, "GET foo");
	ask(client, "SET foo 1");
	ask(client, "SLOWLOG LEN");
	received(client, "$-1\r\n+OK\r\n:0\r\n");
	hs_sim_world_destroy(&world);
}

static void test_logs_of_workers_are_merged(void **state)
{
	struct hs_sim_world *world = open_world(0, 10);
	struct hs_sim_client *a = hs_sim_client_connect(world, 0);
	struct hs_sim_client *b = hs_sim_client_connect(world, 1);
	const char *one, *two, *three;

	(void)state;
	ask(a, "ECHO one");
	ask(b, "ECHO two");
	ask(a, "SET three 3");
	a->received.len = 0;
	ask(b, "SLOWLOG GET -1");
	hs_buf_append(&b->received, "", 1);
	one = strstr(b->received.data, "one");
	two = strstr(b->received.data, "\r\n$3\r\ntwo\r\n$");
	three = strstr(b->received.data, "three");
	assert_non_null(one);
	assert_non_null(two);
	assert_non_null(three);
	assert_true(three < two);
	assert_true(two < one);
	b->received.len = 0;
	ask(b, "SLOWLOG RESET");
	received(b, "+OK\r\n");
	ask(a, "SLOWLOG GET 0");
	received(a, "*0\r\n");
	ask(a, "SLOWLOG GET -2");
	ask(a, "SLOWLOG GET x");
	received(a, "-ERR count should be greater than or equal to -1\r\n"
		    "-ERR count should be greater than or equal to -1\r\n");
	hs_sim_world_destroy(&world);
}

static void test_the_log_is_bounded(void **state)
{
	struct hs_sim_world *world = open_world(0, 10);
	struct hs_sim_client *client = hs_sim_client_connect(world, 0);
	struct hs_core_options options = world->options.core;

	(void)state;
	for (int i = 0; i < 10; i++) {
		char text[32];

		snprintf(text, sizeof text, "ECHO number%d", i);
		ask(client, text);
	}
	/* The slow log is off, so that SLOWLOG GET itself is not logged. */
	options.slowlog_us = -1;
	hs_core_configure(hs_sim_world_core(world, 0), &options);
	client->received.len = 0;
	ask(client, "SLOWLOG LEN");
	received(client, ":3\r\n");
	ask(client, "SLOWLOG GET");
	assert_true(heard_part(client, "number9"));
	assert_true(heard_part(client, "number7"));
	assert_false(heard_part(client, "number6"));
	hs_sim_world_destroy(&world);
}

static void test_long_commands_are_cut(void **state)
{
	struct hs_sim_world *world = open_world(0, 10);
	struct hs_sim_client *client = hs_sim_client_connect(world, 0);
	struct hs_buf words = {0};

	(void)state;
	hs_buf_printf(&words, "ECHO %0200d", 7);
	ask(client, words.data);
	words.len = 0;
	hs_buf_printf(&words, "DEL");
	for (int i = 1; i < 40; i++)
		hs_buf_printf(&words, " k%d", i);
	ask(client, words.data);
	client->received.len = 0;
	ask(client, "SLOWLOG GET");
	assert_true(heard_part(client, "... (72 more bytes)\r\n"));
	assert_true(heard_part(client, "*32\r\n$3\r\nDEL\r\n"));
	assert_true(heard_part(client, "$3\r\nk30\r\n$22\r\n... (9 more arguments)\r\n"));
	assert_false(heard_part(client, "k31\r\n"));
	hs_buf_deinit(&words);
	hs_sim_world_destroy(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_only_slow_commands_are_logged),
		cmocka_unit_test(test_off),
		cmocka_unit_test(test_logs_of_workers_are_merged),
		cmocka_unit_test(test_the_log_is_bounded),
		cmocka_unit_test(test_long_commands_are_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
