/* Goal: the core calls stages at their points, in order, and acts on their verdicts. Requests that a stage
 * answers, takes, holds, rewrites or sends later are answered once and in order, even if the stage is switched
 * off meanwhile, and nothing leaks.
 *
 * Method: stages made for the test, which record their calls and act as told, in a core whose engine is the
 * test. */
#include "tests/lib/stage_world.h"

static void test_the_order(void **state)
{
	(void)state;
	for (int i = 0; i < STAGES; i++)
		world.orders[i].mark = true;
	say("GET k\r\n");
	expect_points("admit0 admit1 admit2 depart0 depart1 depart2");
	answer(0, "$1\r\nv\r\n");
	expect_points("arrive2 arrive1 arrive0");
	received("$1\r\nv\r\n");
	/* Only stages that have marked the request see its answer. */
	world.orders[1].mark = false;
	say("GET k\r\n");
	world.points_seen[0] = '\0';
	answer(1, "$1\r\nv\r\n");
	expect_points("arrive2 arrive0");
	received("$1\r\nv\r\n");
	/* A command of several parts departs part by part, and each part arrives separately. */
	say("MGET {a}1 {b}1\r\n");
	expect_points("admit0 admit1 admit2 depart0 depart1 depart2 depart0 depart1 depart2");
	answer(2, "*1\r\n$1\r\n1\r\n");
	answer(3, "*1\r\n$1\r\n2\r\n");
	expect_points("arrive2 arrive0 arrive2 arrive0");
	world.points_seen[0] = '\0';
	received("*2\r\n$1\r\n1\r\n$1\r\n2\r\n");
}

static void test_answered_at_once_by_the_engine(void **state)
{
	(void)state;
	world.orders[0].mark = world.orders[2].mark = true;
	world.at_once = "$1\r\nv\r\n";
	say("GET k\r\n");
	expect_points("admit0 admit1 admit2 depart0 depart1 depart2 arrive2 arrive0");
	received("$1\r\nv\r\n");
}

static void test_answered_by_a_stage(void **state)
{
	(void)state;
	say("SET a 1\r\n");
	world.orders[1].admit = HS_ANSWERED;
	world.points_seen[0] = '\0';
	say("GET k\r\n");
	expect_points("admit0 admit1");
	received(""); /* the stage's answer waits for the SET's reply */
	answer(0, "+OK\r\n");
	received("+OK\r\n+STAGE\r\n");
	assert_int_equal(world.ops_count, 1);
}

static void test_taken_when_admitted(void **state)
{
	(void)state;
	world.orders[0].admit = HS_TAKEN;
	say("GET k\r\n");
	expect_points("admit0");
	world.orders[0].admit = HS_PASS;
	say("GET j\r\n");
	expect_points("admit0 admit1 admit2 depart0 depart1 depart2");
	answer(0, "$1\r\nj\r\n");
	received("");
	/* A request that a stage sends on departs through the stages after this stage. */
	hs_stage_send(world.core, 0, world.stage_states[0]->taken[0],
		      &world.stage_states[0]->taken[0]->parts[0]);
	expect_points("depart1 depart2");
	answer(1, "$1\r\nk\r\n");
	received("$1\r\nk\r\n$1\r\nj\r\n");
}

static void test_taken_when_it_departs(void **state)
{
	struct hs_request *request;

	(void)state;
	world.orders[0].mark = true;
	world.orders[1].depart = HS_TAKEN;
	say("GET k\r\n");
	expect_points("admit0 admit1 admit2 depart0 depart1");
	assert_int_equal(world.ops_count, 0);
	request = world.stage_states[1]->taken[0];
	world.points_seen[0] = '\0';
	hs_stage_share(world.core, 1, request, HS_LIT("$6\r\nshared\r\n"));
	expect_points("arrive0"); /* stage 0 has marked the request */
	received("$6\r\nshared\r\n");
}

/* The client's input waits until no request of the client is in flight. Then the core offers the held command
 * again. */
static void test_held(void **state)
{
	(void)state;
	say("SET a 1\r\n");
	world.orders[2].admit = HS_HOLD;
	world.points_seen[0] = '\0';
	say("GET k\r\nGET j\r\n");
	expect_points("admit0 admit1 admit2");
	assert_int_equal(world.ops_count, 1);
	assert_string_equal(hs_hold_text(world.core, world.client), "test");
	assert_int_equal(hs_counter_get(&hs_core_stats(world.core)->holds[HS_HOLD_STAGE]), 1);
	/* The core offers the command again to the stage that held it and those after it, not to the stages
	 * before. */
	answer(0, "+OK\r\n");
	expect_points(
		"admit2 depart0 depart1 depart2 admit0 admit1 admit2 depart0 depart1 depart2");
	assert_string_equal(hs_hold_text(world.core, world.client), "-");
	assert_int_equal(world.ops_count, 3);
	answer(1, "$1\r\nk\r\n");
	answer(2, "$1\r\nj\r\n");
	received("+OK\r\n$1\r\nk\r\n$1\r\nj\r\n");
	world.points_seen[0] = '\0';
}

/* Of a transaction, the core offers only EXEC to the stages, with the commands of the transaction, also when EXEC
 * is held and offered again. */
static void test_transactions(void **state)
{
	(void)state;
	say("SET a 1\r\nMULTI\r\n");
	world.points_seen[0] = '\0';
	say("SET b 2\r\nDISCARD\r\n");
	expect_points("");
	say("MULTI\r\nSET c 3\r\nDEL c\r\n");
	expect_points("admit0 admit1 admit2");
	world.orders[2].admit = HS_HOLD;
	say("EXEC\r\n");
	expect_points("admit0 admit1 admit2");
	assert_string_equal(world.exec_command, "set c, del c");
	world.exec_command[0] = '\0';
	answer(0, "+OK\r\n");
	expect_points("admit2 depart0 depart1 depart2");
	assert_string_equal(world.exec_command, "set c, del c");
	answer(1, "*2\r\n+OK\r\n:1\r\n");
	received(
		"+OK\r\n+OK\r\n+QUEUED\r\n+OK\r\n+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n+OK\r\n:1\r\n");
}

/* A stage that rejects EXEC ends the transaction. */
static void test_a_rejected_transaction(void **state)
{
	(void)state;
	say("MULTI\r\nSET b 2\r\n");
	received("+OK\r\n+QUEUED\r\n");
	world.points_seen[0] = '\0';
	world.orders[1].reject = "BUSY not now";
	say("EXEC\r\n");
	expect_points("admit0 admit1");
	assert_string_equal(world.exec_command, "set b");
	received("-EXECABORT Transaction discarded because of: BUSY not now\r\n");
	assert_null(world.client->multi);
	say("SET b 3\r\n");
	expect_points("admit0 admit1");
	received("-BUSY not now\r\n");
	assert_int_equal(
		hs_counter_get(&hs_core_stats(world.core)->command[HS_CMD_ID_SET].rejected), 1);
	assert_int_equal(world.ops_count, 0);
}

static void test_rewritten(void **state)
{
	(void)state;
	world.orders[0].rewrite = "other";
	world.orders[2].mark = true;
	world.orders[2].answer_arrived = true;
	say("GET k\r\n");
	assert_int_equal(world.ops[0]->argv[1].len, 5);
	assert_memory_equal(world.ops[0]->argv[1].data, "other", 5);
	answer(0, "$1\r\nv\r\n");
	received("+CHANGED\r\n");
	world.points_seen[0] = '\0';
}

static void then(struct hs_core *core, struct hs_request *request)
{
	assert_ptr_equal(hs_internal_stage(core, request), world.stage_states[1]);
	hs_internal_end(core, request);
}

/* An internal call departs through the stages after the stage that sends it. */
static void test_internal_calls(void **state)
{
	const struct hs_bytes argv[] = {HS_LIT("GET"), HS_LIT("k")};
	struct hs_internal internal = {
		.call = hs_call_of(hs_command_by_id(HS_CMD_ID_GET), 2, argv),
		.on_done = then,
		.stage = 2,
	};

	(void)state;
	hs_internal_send(world.core, hs_internal_prepare(world.core, &internal));
	expect_points("depart2");
	answer(0, "$1\r\nv\r\n");
	received("");
}

/* Stages that are switched off while requests are in flight still get the answers of requests that they
 * marked. */
static void test_switched(void **state)
{
	(void)state;
	for (int i = 0; i < STAGES; i++)
		world.orders[i].mark = true;
	say("GET k\r\n");
	world.points_seen[0] = '\0';
	for (uint32_t i = 0; i < STAGES; i++) {
		hs_stage_want(world.core, i, HS_POINT_ADMIT, i == 1);
		hs_stage_want(world.core, i, HS_POINT_DEPART, i == 1);
	}
	say("GET j\r\n");
	expect_points("admit1 depart1");
	answer(0, "$1\r\nk\r\n");
	expect_points("arrive2 arrive1 arrive0");
	answer(1, "$1\r\nj\r\n");
	expect_points("arrive1");
	received("$1\r\nk\r\n$1\r\nj\r\n");
	hs_stage_want(world.core, 0, HS_POINT_ADMIT, true);
	say("PING\r\n");
	expect_points("admit0 admit1");
	received("+PONG\r\n");
}

static void test_hot_keys(void **state)
{
	struct hs_heat_warmth heat = {.share = 1, .requests = 10, .key = HS_LIT("k"), .slot = 5};

	(void)state;
	hs_count_hot(world.core, heat, true);
	expect_points("hot0 hot1 hot2");
	world.now.mono_us += 1000;
	hs_core_tick(world.core, world.now);
	expect_points("cool0 cool1 cool2");
	assert_int_equal(world.core->hot_table.count, 0);
}

/* A stage's state for a session begins as zeros. The stage frees it. */
static void test_state_of_sessions(void **state)
{
	struct hs_session *other = connect_client(2);

	(void)state;
	say("PING\r\n");
	received("+PONG\r\n");
	hs_core_receive(world.core, other, world.now, "PING\r\nPING\r\n", 12);
	hs_core_disconnect(world.core, other);
	assert_int_equal(world.closed, 2 * STAGES);
	world.points_seen[0] = '\0';
}

/* A request that a stage takes in `depart` keeps its place in the order of its partition until the stage answers
 * it or sends it on. */
static void test_taken_in_order(void **state)
{
	struct hs_request *request;

	(void)state;
	world.orders[1].depart = HS_TAKEN;
	world.orders[0].mark = true;
	say("GET k\r\n");
	request = world.stage_states[1]->taken[0];
	hs_stage_divert(request, &request->parts[0]);
	assert_int_equal(world.client->in_bucket[request->parts[0].bucket], 1);
	assert_int_equal(world.client->delayed, 0);
	world.points_seen[0] = '\0';
	hs_stage_answer(world.core, 1, request, &request->parts[0], HS_LIT("$1\r\nv\r\n"));
	expect_points("arrive0");
	received("$1\r\nv\r\n");
	say("GET k\r\n");
	request = world.stage_states[1]->taken[1];
	hs_stage_delay(request, &request->parts[0]);
	assert_int_equal(world.client->delayed, 1);
	world.points_seen[0] = '\0';
	hs_stage_send(world.core, 1, request, &request->parts[0]);
	expect_points("depart2");
	answer(0, "$1\r\nw\r\n");
	received("$1\r\nw\r\n");
	is_idle();
	world.points_seen[0] = '\0';
}

/* If a stage delays the parts of a command, it sends each part separately. */
static void test_parts_are_delayed(void **state)
{
	struct hs_request *request;

	(void)state;
	world.orders[1].depart = HS_TAKEN;
	say("MGET {a}1 {b}1\r\n");
	request = world.stage_states[1]->taken[0];
	assert_ptr_equal(world.stage_states[1]->taken[1], request);
	for (int i = 0; i < 2; i++)
		hs_stage_delay(request, &request->parts[i]);
	assert_int_equal(world.client->delayed, 2);
	hs_stage_send(world.core, 1, request, &request->parts[1]);
	hs_stage_send(world.core, 1, request, &request->parts[0]);
	assert_int_equal(world.ops_count, 2);
	answer(0, "*1\r\n$1\r\n2\r\n");
	answer(1, "*1\r\n$1\r\n1\r\n");
	received("*2\r\n$1\r\n1\r\n$1\r\n2\r\n");
	is_idle();
	world.points_seen[0] = '\0';
}

/* If a stage answers a request, the stages before it see the reply and may change it. The stages after it have
 * not seen the request. */
static void test_stages_that_see_an_answer_by_a_stage(void **state)
{
	struct hs_request *request;

	(void)state;
	for (int i = 0; i < STAGES; i++)
		world.orders[i].mark = true;
	world.orders[1].depart = HS_TAKEN;
	for (int shared = 0; shared < 2; shared++) {
		say("GET k\r\n");
		request = world.stage_states[1]->taken[shared];
		hs_stage_delay(request, &request->parts[0]);
		world.points_seen[0] = '\0';
		if (shared)
			hs_stage_share(world.core, 1, request, HS_LIT("$1\r\nv\r\n"));
		else
			hs_stage_answer(world.core, 1, request, &request->parts[0],
					HS_LIT("$1\r\nv\r\n"));
		expect_points("arrive0");
		assert_memory_equal(world.arrived, "$1\r\nv\r\n", 7);
		received("$1\r\nv\r\n");
		is_idle();
	}
}

static void test_events(void **state)
{
	const struct hs_event event = {.kind = HS_EVENT_CHANGED_ALL};
	const struct hs_bytes key = HS_LIT("k");

	(void)state;
	world.all_points = true;
	hs_core_configure(world.core, &world.options);
	expect_points("configure0 configure1 configure2");
	hs_core_changed(world.core, world.now, NULL, &key);
	expect_points("changed0 changed1 changed2");
	hs_core_changed(world.core, world.now, NULL, NULL);
	expect_points("changed-all0 changed-all1 changed-all2");
	hs_core_event(world.core, world.now, &event);
	expect_points("news0 news1 news2");
	/* When a stage sends a message, every worker's instance of this stage gets it. */
	hs_stage_tell(world.core, 1);
	assert_non_null(world.told);
	hs_core_event(world.core, world.now, world.told);
	expect_points("told1");
	hs_core_drain(world.core, world.now, 1000);
	expect_points("stop0 stop1 stop2");
}

static void test_time(void **state)
{
	(void)state;
	world.all_points = true;
	hs_core_tick(world.core, world.now);
	expect_points("tick0 tick1 tick2");
	assert_int_equal(hs_core_deadline(world.core), 0);
	hs_stage_due(world.core, 2, world.now.mono_us + 50);
	hs_stage_due(world.core, 0, world.now.mono_us + 20);
	assert_int_equal(hs_core_deadline(world.core), world.now.mono_us + 20);
	world.now.mono_us += 20;
	hs_core_alarm(world.core, world.now);
	expect_points("deadline0");
	assert_int_equal(hs_core_deadline(world.core), world.now.mono_us + 30);
	hs_stage_due(world.core, 2, 0);
	assert_int_equal(hs_core_deadline(world.core), 0);
	world.now.mono_us += 100;
	hs_core_tick(world.core, world.now);
	expect_points("tick0 tick1 tick2");
}

/* A stage that listens to a session sees the session's commands and answers. The other stages do not. */
static void test_listening(void **state)
{
	(void)state;
	world.all_points = true;
	for (uint32_t i = 0; i < STAGES; i++) {
		hs_stage_want(world.core, i, HS_POINT_ADMIT, false);
		hs_stage_want(world.core, i, HS_POINT_DEPART, false);
	}
	hs_stage_observe(world.client, 1, true);
	say("PING\r\n");
	expect_points("handled1");
	say("GET k\r\n");
	expect_points("handled1");
	answer(0, "$1\r\nv\r\n");
	expect_points("finish1");
	say("MULTI\r\nGET k\r\nEXEC\r\n");
	expect_points("handled1 handled1 queued1 handled1");
	answer(1, "*1\r\n$1\r\nv\r\n");
	expect_points("finish1");
	hs_stage_observe(world.client, 1, false);
	say("PING\r\n");
	expect_points("");
	received("+PONG\r\n$1\r\nv\r\n+OK\r\n+QUEUED\r\n*1\r\n$1\r\nv\r\n+PONG\r\n");
}

/* A stage may ask to see only departing writes: every command that is not read-only. */
static void test_departing_writes(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < STAGES; i++) {
		hs_stage_want(world.core, i, HS_POINT_ADMIT, false);
		hs_stage_want(world.core, i, HS_POINT_DEPART, i == 0);
	}
	hs_stage_want(world.core, 2, HS_POINT_DEPART_WRITES, true);
	say("GET k\r\n");
	expect_points("depart0");
	say("SET k v\r\n");
	expect_points("depart0 depart2");
	say("MULTI\r\nGET k\r\nEXEC\r\n");
	expect_points("depart0 depart2");
	answer(0, "$1\r\nv\r\n");
	answer(1, "+OK\r\n");
	answer(2, "*1\r\n$1\r\nv\r\n");
	received("$1\r\nv\r\n+OK\r\n+OK\r\n+QUEUED\r\n*1\r\n$1\r\nv\r\n");
}

/* A stage asks whether a stage after it serves a hot key. The search ends at the first one that does. */
static void test_a_later_stage_serves_the_key(void **state)
{
	struct hs_heat_warmth heat = {.share = 1, .requests = 10, .key = HS_LIT("k"), .slot = 5};

	(void)state;
	/* The key is not hot yet, so no stage is asked. */
	assert_false(hs_stage_served_behind(world.core, 0, 5, HS_LIT("k")));
	hs_count_hot(world.core, heat, true);
	world.points_seen[0] = '\0';
	world.all_points = true;
	assert_true(hs_stage_served_behind(world.core, 0, 5, HS_LIT("k")));
	expect_points("serves1 serves2");
	assert_false(hs_stage_served_behind(world.core, 2, 5, HS_LIT("k")));
	expect_points("");
	world.now.mono_us += 1000;
	world.all_points = false;
	hs_core_tick(world.core, world.now);
	world.points_seen[0] = '\0';
}

static void test_report(void **state)
{
	struct hs_buf text = {0};
	struct hs_reply reply = {.out = &text, .resp = 2};

	(void)state;
	hs_stages_report(world.core, &reply);
	assert_int_equal(text.len, strlen("*1\r\n:0\r\n") * STAGES);
	assert_memory_equal(text.data, "*1\r\n:0\r\n*1\r\n:1\r\n*1\r\n:2\r\n", text.len);
	hs_buf_deinit(&text);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)
	const struct CMUnitTest tests[] = {
		TEST(test_the_order),
		TEST(test_answered_at_once_by_the_engine),
		TEST(test_answered_by_a_stage),
		TEST(test_taken_when_admitted),
		TEST(test_taken_when_it_departs),
		TEST(test_held),
		TEST(test_transactions),
		TEST(test_a_rejected_transaction),
		TEST(test_rewritten),
		TEST(test_internal_calls),
		TEST(test_switched),
		TEST(test_hot_keys),
		TEST(test_state_of_sessions),
		TEST(test_taken_in_order),
		TEST(test_parts_are_delayed),
		TEST(test_stages_that_see_an_answer_by_a_stage),
		TEST(test_events),
		TEST(test_time),
		TEST(test_listening),
		TEST(test_departing_writes),
		TEST(test_a_later_stage_serves_the_key),
		TEST(test_report),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
