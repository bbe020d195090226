/* Goal: a stage that has taken a request may end it at every point where stage.h allows it: the client gets its
 * replies in order, once, its held input continues, and nothing stays in flight. This also holds if the stage is
 * switched off or the client disconnects. The core calls the points that a stage must ask for (`flush`, `hot` of
 * reads) when it asks, and a stage can learn which clients another stage's internal call serves.
 *
 * Method: the stages of tests/lib/stage_world.h. Each point has an event that causes it. The test combines each
 * point with each way to take a request and to end it, in a new core each time. */
#include "tests/lib/stage_world.h"

#include "base/limits.h"

/* The ways in which a stage takes a request. */
enum take { BY_ADMIT, BY_DELAY, BY_DIVERT, TAKES };

static void send_as(struct hs_session *client, const char *text)
{
	hs_core_receive(world.core, client, world.now, text, strlen(text));
}

/* The engine answers the read of `key` with the key's name. */
static void reply_to(const char *key)
{
	char text[32];
	size_t i = 0;

	while (i < world.ops_count &&
	       (!world.ops[i] || !hs_bytes_equal(world.ops[i]->argv[1], hs_bytes_of(key))))
		i++;
	assert_true(i < world.ops_count);
	snprintf(text, sizeof text, "$%zu\r\n%s\r\n", strlen(key), key);
	answer(i, text);
	world.ops[i] = NULL; /* the operation is answered */
}

/* Stage 1 takes the client's next request. */
static void take(enum take how, const char *text)
{
	struct orders *orders = &world.orders[1];
	size_t before = world.stage_states[1]->taken_count;

	orders->take = how == BY_DIVERT ? HS_PART_DIVERTED : HS_PART_DELAYED;
	orders->admit = how == BY_ADMIT ? HS_TAKEN : HS_PASS;
	orders->depart = how == BY_ADMIT ? HS_PASS : HS_TAKEN;
	say(text);
	orders->admit = HS_PASS;
	orders->depart = HS_PASS;
	assert_int_equal(world.stage_states[1]->taken_count, before + 1);
}

/* --- events; each of them calls stage 1 at one point --- */

static void cause_admit(void)
{
	world.other = connect_client(2);
	send_as(world.other, "PING\r\n");
}

static void cause_depart(void)
{
	world.other = connect_client(2);
	send_as(world.other, "GET d\r\n");
}

static void cause_handled(void)
{
	world.other = connect_client(2);
	hs_stage_observe(world.other, 1, true);
	send_as(world.other, "PING\r\n");
}

static void cause_flush(void)
{
	hs_stage_want(world.core, 1, HS_POINT_FLUSH, true);
	assert_true(hs_core_flush(world.core, world.now));
}

static void cause_hot(void)
{
	struct hs_heat_warmth heat = {.share = 1, .requests = 10, .key = HS_LIT("h"), .slot = 5};

	hs_count_hot(world.core, heat, true);
}

static void cause_tick(void)
{
	world.now.mono_us += 1000;
	hs_core_tick(world.core, world.now);
}

static void cause_cool(void)
{
	cause_hot();
	cause_tick();
}

static void cause_configure(void)
{
	hs_core_configure(world.core, &world.options);
}

static void cause_changed(void)
{
	const struct hs_bytes key = HS_LIT("k");

	hs_core_changed(world.core, world.now, NULL, &key);
}

static void cause_event(void)
{
	const struct hs_event event = {.kind = HS_EVENT_CHANGED_ALL};

	hs_core_event(world.core, world.now, &event);
}

static void cause_told(void)
{
	hs_stage_tell(world.core, 1);
	hs_core_event(world.core, world.now, world.told);
}

static void cause_deadline(void)
{
	hs_stage_due(world.core, 1, world.now.mono_us);
	hs_core_alarm(world.core, world.now);
}

static void cause_stop(void)
{
	hs_core_drain(world.core, world.now, 1000000);
}

static void cause_open(void)
{
	world.other = connect_client(2);
}

struct row {
	const char *name;
	enum point point;
	void (*cause)(void);
};

static const struct row points[] = {
	{"admit", AT_ADMIT, cause_admit},
	{"depart", AT_DEPART, cause_depart},
	{"handled", AT_HANDLED, cause_handled},
	{"flush", AT_FLUSH, cause_flush},
	{"cool", AT_COOL, cause_cool},
	{"configure", AT_CONFIGURE, cause_configure},
	{"changed", AT_CHANGED, cause_changed},
	{"event", AT_EVENT, cause_event},
	{"told", AT_TOLD, cause_told},
	{"tick", AT_TICK, cause_tick},
	{"deadline", AT_DEADLINE, cause_deadline},
	{"stop", AT_STOP, cause_stop},
	{"open", AT_OPEN, cause_open},
};

static char playing[96]; /* the row of the table that runs, for a failure's message; empty: none */

static int say_what_failed(void **state)
{
	(void)state;
	if (playing[0] != '\0')
		print_message("failed %s\n", playing);
	playing[0] = '\0';
	return 0;
}

/* Runs a row in a new core for every way to take a request and to end it, each with `more` true and false. */
static void play_row(const struct row *row, void (*play)(const struct row *row, enum take how,
							 enum ending ending, bool more))
{
	static const char *const takes[] = {"admit", "delay", "divert"};
	static const char *const ways[] = {"sent", "sent at once", "answered", "shared"};

	for (int i = 0; i < TAKES * ENDINGS * 2; i++) {
		int how = i / 2 / ENDINGS, ending = i / 2 % ENDINGS;

		open_world(NULL);
		snprintf(playing, sizeof playing, "at %s: taken by %s, %s, case %d", row->name,
			 takes[how], ways[ending], i % 2);
		play(row, (enum take)how, (enum ending)ending, i % 2);
		close_world(NULL);
	}
	playing[0] = '\0';
}

/* --- the tests --- */

/* The client has four requests: `a` and `b` are at the engine, `k` between them is taken, and `c` is held until
 * all others are answered. The stage ends `k`, before or after `a` is answered. */
static void end_at_point(const struct row *row, enum take how, enum ending ending, bool last)
{
	struct orders *orders = &world.orders[1];

	say("GET a\r\n");
	take(how, "GET k\r\n");
	assert_int_equal(world.client->delayed, how == BY_DELAY);
	say("GET b\r\n");
	world.orders[2].admit = HS_HOLD;
	say("GET c\r\n");
	assert_string_equal(hs_hold_text(world.core, world.client), "test");
	reply_to("b");
	if (!last)
		reply_to("a");
	received(last ? "" : "$1\r\na\r\n");

	orders->end_at = row->point;
	orders->end_by = ending;
	row->cause();
	assert_int_equal(world.stage_states[1]->taken_count, 0);
	assert_int_equal(world.client->delayed, 0);
	if (ending == SENT)
		reply_to("k");
	if (last) {
		received("");
		reply_to("a");
	}
	received(last ? "$1\r\na\r\n$1\r\nk\r\n$1\r\nb\r\n" : "$1\r\nk\r\n$1\r\nb\r\n");
	reply_to("c"); /* the held command has continued */
	received("$1\r\nc\r\n");
	if (row->point == AT_DEPART)
		reply_to("d");
	is_idle();
}

static void test_taken_requests_are_ended_at_every_point(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof points / sizeof *points; i++)
		play_row(&points[i], end_at_point);
}

/* The client disconnects while `k` is taken, alone or with `a` in flight. The stage ends `k` in `forget`, or in a
 * later tick. The session lives until all its requests are answered. */
static void end_without_client(const struct row *row, enum take how, enum ending ending, bool alone)
{
	bool lives = row->point != AT_FORGET || ending == SENT || !alone;

	if (!alone)
		say("GET a\r\n");
	take(how, "GET k\r\n");
	world.orders[1].end_at = row->point;
	world.orders[1].end_by = ending;
	hs_core_disconnect(world.core, world.client);
	world.client = NULL;
	assert_int_equal(world.core->orphans, lives);
	if (row->cause)
		row->cause();
	assert_int_equal(world.stage_states[1]->taken_count, 0);
	if (ending == SENT)
		reply_to("k");
	assert_int_equal(world.core->orphans, !alone);
	if (!alone)
		reply_to("a");
	assert_int_equal(world.core->orphans, 0);
	assert_true(hs_list_empty(&world.core->sessions));
	is_idle();
}

static void test_taken_requests_of_a_disconnected_client(void **state)
{
	static const struct row when[] = {
		{"forget", AT_FORGET, NULL},
		{"tick", AT_TICK, cause_tick},
	};

	(void)state;
	for (size_t i = 0; i < sizeof when / sizeof *when; i++)
		play_row(&when[i], end_without_client);
}

/* The core calls `flush` once after a stage asked for it, however often the stage asked. */
static void test_flush_is_called_when_asked_for(void **state)
{
	(void)state;
	assert_false(hs_core_flush(world.core, world.now));
	expect_points("");
	hs_stage_want(world.core, 2, HS_POINT_FLUSH, true);
	hs_stage_want(world.core, 0, HS_POINT_FLUSH, true);
	hs_stage_want(world.core, 0, HS_POINT_FLUSH, true);
	hs_stage_want(world.core, 1, HS_POINT_FLUSH, true);
	hs_stage_want(world.core, 1, HS_POINT_FLUSH, false);
	assert_true(hs_core_needs_flush(world.core));
	assert_true(hs_core_flush(world.core, world.now));
	expect_points("flush0 flush2");
	assert_false(hs_core_needs_flush(world.core));
	assert_false(hs_core_flush(world.core, world.now));
	expect_points("");
	/* The core calls `flush` again if the stage asks for it inside `flush`. */
	world.orders[1].flush_at = AT_FLUSH;
	world.orders[1].flushes = 2;
	hs_stage_want(world.core, 1, HS_POINT_FLUSH, true);
	hs_core_flush(world.core, world.now);
	expect_points("flush1 flush1 flush1");
	assert_false(hs_core_needs_flush(world.core));
}

static void cause_arrive(void)
{
	reply_to("b");
}

/* A stage that must not send where it is called, or wants to gather more requests, asks for `flush`. The core
 * calls `flush` after it has handled the events. */
static void test_flush_comes_after_the_events(void **state)
{
	static const struct row asked_at[] = {
		{"arrive", AT_ARRIVE, cause_arrive}, {"finish", AT_FINISH, cause_arrive},
		{"hot", AT_HOT, cause_hot},	     {"tick", AT_TICK, cause_tick},
		{"cool", AT_COOL, cause_cool},	     {"told", AT_TOLD, cause_told},
		{"admit", AT_ADMIT, cause_admit},    {"deadline", AT_DEADLINE, cause_deadline},
	};

	for (size_t i = 0; i < sizeof asked_at / sizeof *asked_at; i++) {
		struct orders *orders = &world.orders[1];

		open_world(state);
		snprintf(playing, sizeof playing, "at %s", asked_at[i].name);
		hs_stage_observe(world.client, 1, true);
		take(BY_DELAY, "GET k\r\n");
		orders->mark = true;
		say("GET b\r\n");
		*orders = (struct orders){.flush_at = asked_at[i].point, .flushes = 1};
		orders->end_at = AT_FLUSH;
		orders->end_by = ANSWERED;
		asked_at[i].cause();
		assert_int_equal(world.stage_states[1]->taken_count, 1);
		received("");
		world.points_seen[0] = '\0';
		assert_true(hs_core_flush(world.core, world.now));
		if (asked_at[i].cause != cause_arrive) {
			received("$1\r\nk\r\n");
			reply_to("b");
			received("$1\r\nb\r\n");
		} else {
			received("$1\r\nk\r\n$1\r\nb\r\n");
		}
		is_idle();
		close_world(state);
	}
	playing[0] = '\0';
}

/* If a stage answers in `flush`, the client's held input continues. If another stage then asks for `flush`, the
 * core calls it in the same round. */
static void test_flush_is_called_for_input_that_goes_on(void **state)
{
	(void)state;
	take(BY_ADMIT, "GET k\r\n");
	world.orders[2].admit = HS_HOLD;
	say("GET c\r\n");
	world.orders[1].end_at = AT_FLUSH;
	world.orders[1].end_by = SHARED;
	world.orders[2].flush_at = AT_ADMIT;
	world.orders[2].flushes = 1;
	world.points_seen[0] = '\0';
	cause_flush();
	expect_points("flush1 admit2 depart0 depart1 depart2 flush2");
	reply_to("c");
	received("$1\r\nk\r\n$1\r\nc\r\n");
	is_idle();
}

/* Ends the internal call, and answers every request that stage 1 has taken with its reply. */
static void then_share(struct hs_core *core, struct hs_request *internal)
{
	struct stage_state *stage_state = hs_internal_stage(core, internal);

	for (size_t i = 0; i < stage_state->taken_count; i++) {
		hs_core_resume_later(core, stage_state->taken[i]->session);
		hs_stage_share(core, stage_state->index, stage_state->taken[i],
			       hs_internal_reply(internal, 0));
	}
	stage_state->taken_count = 0;
	hs_internal_end(core, internal);
}

static void then_end(struct hs_core *core, struct hs_request *internal)
{
	hs_internal_end(core, internal);
}

/* Sends an internal GET from the stage before `stage_number`. */
static void send_internal(uint32_t stage_number,
			  void (*then)(struct hs_core *, struct hs_request *))
{
	const struct hs_bytes argv[] = {HS_LIT("GET"), HS_LIT("k")};
	struct hs_internal internal = {
		.call = hs_call_of(hs_command_by_id(HS_CMD_ID_GET), 2, argv),
		.on_done = then,
		.stage = stage_number,
	};

	world.members_text[0] = '\0';
	hs_internal_send(world.core, hs_internal_prepare(world.core, &internal));
}

static void note_client(void *context, uint64_t client, uint64_t number)
{
	size_t len = strlen(world.members_text);

	assert_ptr_equal(context, &world);
	snprintf(world.members_text + len, sizeof world.members_text - len, "%s%u:%u",
		 len ? " " : "", (unsigned)client, (unsigned)number);
}

/* Asserts which clients the core reports to the engine for an operation. */
static void stands_for(size_t op, const char *expected)
{
	world.members_text[0] = '\0';
	hs_core_members(world.core, world.ops[op], note_client, &world);
	assert_string_equal(world.members_text, expected);
}

/* Stage 1 has taken a read of each of two clients, and sends one GET for both. Stage 2 asks which clients this
 * GET serves, and learns (by the +) that the first client has sent another command behind its read. */
static void test_clients_behind_an_internal_call(void **state)
{
	static struct hs_stage mute;

	(void)state;
	world.other = connect_client(2);
	world.orders[2].asks_members = true;
	take(BY_DIVERT, "GET k\r\n");
	say("GET b\r\n");
	stands_for(0, "1:2"); /* a client's own request serves this client */
	world.orders[1].depart = HS_TAKEN;
	send_as(world.other, "PING\r\nGET k\r\n");
	world.orders[1].depart = HS_PASS;
	send_internal(2, then_share);
	assert_string_equal(world.members_text, "1:1+ 2:1");
	stands_for(1, "1:1 2:1");
	reply_to("k");
	reply_to("b");
	received("$1\r\nk\r\n$1\r\nb\r\n");
	assert_string_equal(world.members_text, "1:1 2:1"); /* stage 2 asks in `depart` only */
	is_idle();

	/* An internal call of no stage, or of a stage that does not report members, serves no client. */
	send_internal(0, then_end);
	assert_string_equal(world.members_text, "nobody");
	reply_to("k");
	mute = stage;
	mute.members = NULL;
	world.core->stages.table[0] = &mute;
	send_internal(1, then_end);
	assert_string_equal(world.members_text, "nobody");
	reply_to("k");
	is_idle();
}

/* Before a stage takes a read, it asks whether the reply fits the reply budget. If not, the core holds the
 * session, and offers the command again to all stages when the budget has room. */
static void test_held_for_replies_in_flight(void **state)
{
	(void)state;
	hs_core_disconnect(world.core, world.client);
	world.options.engine_inflight_bytes_max = 4 * HS_REPLY_GUESS_BYTES;
	hs_core_configure(world.core, &world.options);
	world.client = connect_client(1); /* this client's replies count with the new budget */
	world.orders[1].admit = HS_TAKEN;
	world.points_seen[0] = '\0';
	say("GET k\r\nGET c\r\n");
	expect_points("admit0 admit1 admit0 admit1");
	assert_int_equal(world.stage_states[1]->taken_count, 1);
	assert_int_equal(world.client->inflight, 1);
	assert_int_equal(world.client->reply_bytes, HS_REPLY_GUESS_BYTES);
	assert_string_equal(hs_hold_text(world.core, world.client), "engine-inflight-bytes");
	assert_int_equal(hs_counter_get(&hs_core_stats(world.core)->holds[HS_HOLD_REPLY_BUDGET]),
			 1);

	world.orders[1].admit = HS_PASS;
	world.orders[1].end_at = AT_TICK;
	world.orders[1].end_by = ANSWERED;
	cause_tick();
	expect_points("admit0 admit1 admit2 depart0 depart1 depart2");
	assert_string_equal(hs_hold_text(world.core, world.client), "-");
	received("$1\r\nk\r\n");
	reply_to("c");
	received("$1\r\nc\r\n");
	assert_true(hs_list_empty(&world.core->reply_budget.held));
	is_idle();
}

/* If one stage asks for hot reads, the core calls all stages for a hot key among the reads that the engine
 * answers at once; of a batch, only for the last read. For requests that wait, the core always calls the
 * stages. */
static void test_hot_reads(void **state)
{
	/* GET is timed in a batch, GETRANGE alone. */
	static const char *const reads[] = {"GET k\r\n", "GETRANGE k 0 1\r\n"};

	(void)state;
	for (uint32_t i = 0; i < STAGES; i++) {
		hs_stage_want(world.core, i, HS_POINT_ADMIT, false);
		hs_stage_want(world.core, i, HS_POINT_DEPART, false);
	}
	for (int members_text = 0; members_text < 3; members_text++) {
		hs_stage_want(world.core, 1, HS_POINT_HOT_READS, members_text == 1);
		for (size_t i = 0; i < sizeof reads / sizeof *reads; i++) {
			world.at_once = "$1\r\nv\r\n";
			say(reads[i]);
			expect_points(members_text == 1 ? "hot-read0 hot-read1 hot-read2" : "");
		}
		world.at_once = NULL;
		say("SET k v\r\n");
		expect_points("");
		answer((size_t)members_text, "+OK\r\n");
		expect_points("hot0 hot1 hot2");
		received("$1\r\nv\r\n$1\r\nv\r\n+OK\r\n");
	}
	hs_stage_want(world.core, 2, HS_POINT_HOT_READS, true);
	world.at_once = "$1\r\nv\r\n";
	world.hot_key[0] = '\0';
	say("*2\r\n$3\r\nGET\r\n$1\r\nj\r\n*2\r\n$3\r\nGET\r\n$1\r\nk\r\n");
	expect_points("hot-read0 hot-read1 hot-read2");
	assert_string_equal(world.hot_key, "k");
	say("*2\r\n$3\r\nGET\r\n$1\r\nk\r\n*2\r\n$3\r\nGET\r\n$1\r\nj\r\n");
	expect_points(""); /* the last read is of `j`, which is not hot */
	received("$1\r\nv\r\n$1\r\nv\r\n$1\r\nv\r\n$1\r\nv\r\n");
	world.at_once = NULL;
	is_idle();
}

/* A stage is switched off while it has taken requests, and switched on again before it has ended the last of
 * them. */
static void test_switched_with_requests_taken(void **state)
{
	struct stage_state *stage_state = world.stage_states[1];

	(void)state;
	take(BY_ADMIT, "GET k\r\n");
	take(BY_DELAY, "GET i\r\n");
	take(BY_DIVERT, "GET l\r\n");
	hs_stage_want(world.core, 1, HS_POINT_ADMIT, false);
	hs_stage_want(world.core, 1, HS_POINT_DEPART, false);
	world.points_seen[0] = '\0';
	say("GET b\r\n");
	expect_points("admit0 admit2 depart0 depart2");
	reply_to("b");
	/* Out of order, before the first request. */
	end_request(stage_state, stage_state->taken[1], SENT);
	expect_points("depart2");
	reply_to("i");
	received("");
	end_request(stage_state, stage_state->taken[0], ANSWERED);
	received("$1\r\nk\r\n$1\r\ni\r\n");
	hs_stage_want(world.core, 1, HS_POINT_ADMIT, true);
	hs_stage_want(world.core, 1, HS_POINT_DEPART, true);
	say("GET c\r\n");
	expect_points("admit0 admit1 admit2 depart0 depart1 depart2");
	take(BY_ADMIT, "GET d\r\n");
	world.points_seen[0] = '\0';
	end_request(stage_state, stage_state->taken[3], SENT);
	expect_points("depart2");
	reply_to("d");
	reply_to("c");
	received("");
	end_request(stage_state, stage_state->taken[2], SHARED);
	received("$1\r\nk\r\n$1\r\nb\r\n$1\r\nc\r\n$1\r\nd\r\n");
	is_idle();
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)
#define TABLE(name) cmocka_unit_test_teardown(name, say_what_failed)
	const struct CMUnitTest tests[] = {
		TABLE(test_taken_requests_are_ended_at_every_point),
		TABLE(test_taken_requests_of_a_disconnected_client),
		TEST(test_flush_is_called_when_asked_for),
		TABLE(test_flush_comes_after_the_events),
		TEST(test_flush_is_called_for_input_that_goes_on),
		TEST(test_clients_behind_an_internal_call),
		TEST(test_held_for_replies_in_flight),
		cmocka_unit_test_setup_teardown(test_hot_reads, open_counting_world, close_world),
		TEST(test_switched_with_requests_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
