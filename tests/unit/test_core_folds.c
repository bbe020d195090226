/* Goal: who waits for a hot key, for how long and behind whom (core/folds.c): joins, one flight at a
 * time, a client's own order whatever stands beside a folded request, limits, those who go away while
 * they wait, errors, and keys that turn hot and cool.
 *
 * Method: a core, with clients that send words and an engine played by the test: it writes down what
 * it is handed, and answers one by one when it is told to. Nothing is sent before the end of a round
 * but what needs no waiting, so that each line of a script says what happens when. What folding makes
 * of asks is tested in test_absorb_fold.c.
 *
 * The hot keys {a}k and {a}l have one slot, of partition 1; {b}k is of partition 3. Others are not hot. */
#include "core/session.h"

#include "tests/lib/described.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { CLIENTS = 8, OPS_MAX = 128, A_PARTITION = 1, B_PARTITION = 3, WAITERS = 16 };

struct world {
	struct hs_core_calls calls;
	struct hs_log log;
	_Atomic uint64_t slowlog_ids;
	struct hs_slot_map map;
	struct hs_core_options options;
	struct hs_heat *heat;
	struct hs_learned *learned;
	struct hs_core *core;
	struct hs_session *client[CLIENTS + 1]; /* the last one makes keys hot */
	struct hs_now now;
	struct hs_op *ops[OPS_MAX]; /* under way, oldest first */
	size_t count, looked;	    /* how many of them `sent` has seen */
	const char *refusal;	    /* what the engine says to everything at once, or NULL */
};

static struct hs_now later(struct world *world, uint64_t us)
{
	world->now.mono_us += us;
	world->now.wall_us += (int64_t)us;
	return world->now;
}

/* ---- the engine ---- */

static enum hs_submit submit(void *context, struct hs_op *op)
{
	struct world *world = context;

	if (op->kind == HS_OP_PEER) {
		hs_core_peer(world->core, world->now, op);
		return HS_SUBMIT_DONE;
	}
	if (world->refusal) {
		hs_buf_append(op->out, world->refusal, strlen(world->refusal));
		return HS_SUBMIT_DONE;
	}
	if (world->core->world.reads_at_once && !op->ordered &&
	    (op->command->flags & HS_CMD_READONLY)) {
		hs_buf_append(op->out, "$4\r\nread\r\n", 10);
		return HS_SUBMIT_DONE;
	}
	assert_true(world->count < OPS_MAX);
	world->ops[world->count++] = op;
	return HS_SUBMIT_QUEUED;
}

static uint64_t mono_us(void *context)
{
	struct world *world = context;

	return world->now.mono_us;
}

static void describe(const struct hs_op *op, char *text, size_t size)
{
	size_t len = 0;

	for (size_t i = 0; i < op->argc && len < size; i++)
		len += (size_t)snprintf(text + len, size - len, "%s%.*s", i > 0 ? " " : "",
					(int)op->argv[i].len, op->argv[i].data);
}

/* Exactly this was handed to the engine since the last look, in this order. */
#define sent(world, text) assert_string_equal(look(world), text)

static const char *look(struct world *world)
{
	static char text[4096];
	size_t len = 0;

	text[0] = '\0';
	for (; world->looked < world->count; world->looked++) {
		if (len > 0)
			len += (size_t)snprintf(text + len, sizeof text - len, " | ");
		describe(world->ops[world->looked], text + len, sizeof text - len);
		len += strlen(text + len);
	}
	return text;
}

/* The oldest of those under way that begin so is answered: in one half of the tests' replies as an
 * engine of this machine does, in the other as one behind a connection. */
static void reply(struct world *world, const char *begin, const char *answer)
{
	static unsigned turn;
	char text[1024];

	for (size_t i = 0; i < world->looked; i++) {
		struct hs_op *op = world->ops[i];

		describe(op, text, sizeof text);
		if (strncmp(text, begin, strlen(begin)) != 0)
			continue;
		memmove(&world->ops[i], &world->ops[i + 1],
			(world->count - i - 1) * sizeof(struct hs_op *));
		world->count--;
		world->looked--;
		if (turn++ % 2 == 0)
			op->answer = (struct hs_bytes){answer, strlen(answer)};
		else
			hs_buf_append(op->out, answer, strlen(answer));
		hs_core_complete(world->core, later(world, 1), op);
		return;
	}
	fail_msg("nothing is under way that begins with %s", begin);
}

/* ---- clients ---- */

static void say(struct world *world, char who, const char *words)
{
	struct hs_buf bytes = {0};

	hs_buf_printf(&bytes, "%s\r\n", words);
	hs_core_receive(world->core, world->client[who - 'A'], later(world, 1), bytes.data,
			bytes.len);
	hs_buf_deinit(&bytes);
}

static void end_round(struct world *world)
{
	hs_core_flush(world->core, later(world, 1));
}

#define heard(world, who, text) assert_string_equal(listen(world, who), text)

static const char *listen(struct world *world, char who)
{
	static char text[4096];
	struct hs_buf *out = hs_session_out(world->client[who - 'A']);

	assert_true(out->len < sizeof text);
	memcpy(text, out->len > 0 ? out->data : "", out->len);
	text[out->len] = '\0';
	out->len = 0;
	return text;
}

static void leave(struct world *world, char who)
{
	hs_core_disconnect(world->core, world->client[who - 'A']);
	world->client[who - 'A'] = NULL;
}

static uint64_t counted(const struct hs_counter *counter)
{
	return hs_counter_get(counter);
}

/* ---- the world ---- */

static void make_hot(struct world *world, const char *key)
{
	uint64_t before = counted(&hs_core_stats(world->core)->fold_keys);
	char words[64];

	snprintf(words, sizeof words, "APPEND %s x", key);
	for (int i = 0; counted(&hs_core_stats(world->core)->fold_keys) == before; i++) {
		assert_true(i < 1000);
		say(world, 'A' + CLIENTS, words);
		look(world);
		reply(world, "APPEND", ":1\r\n");
	}
	listen(world, 'A' + CLIENTS);
}

static void open_empty_world(struct world *world, bool reads_at_once)
{
	const struct hs_heat_options heat = {.seed = 1, .partitions = 8};
	struct hs_core_world core_world = {
		.calls = &world->calls,
		.context = world,
		.log = &world->log,
		.workers = 1,
		.partitions = 8,
		.slots = &world->map,
		.reads_at_once = reads_at_once,
		.shared_connections = !reads_at_once,
		.together = HS_TOGETHER_SLOT,
		.node_id = "0123456789abcdef0123456789abcdef01234567",
		.slowlog_ids = &world->slowlog_ids,
		.hot = {.share = 0.1, .share_least = 0.05, .requests = 8, .cool_us = 1000000},
	};

	struct hs_buf reply = {0};
	char error[128];

	*world = (struct world){.now = {.mono_us = 1000000, .wall_us = 1700000000000000}};
	hs_slot_map_fill_even(&world->map, 4);
	hs_slot_map_set(&world->map, hs_slot_of(HS_LIT("{a}k")), A_PARTITION);
	hs_slot_map_set(&world->map, hs_slot_of(HS_LIT("{b}k")), B_PARTITION);
	world->calls = (struct hs_core_calls){.submit = submit, .mono_us = mono_us};
	world->heat = hs_heat_create(&heat);
	core_world.heat = world->heat;
	world->options = (struct hs_core_options){.output_bytes_max = 1 << 20,
						  .slowlog_us = -1,
						  .fold = true,
						  .fold_waiters_max = WAITERS};
	world->core = hs_core_create(&core_world, &world->options);
	describe_commands(described_redis, described_redis_count, 2, 7, &reply);
	world->learned = hs_learned_create(hs_buf_bytes(&reply), NULL, error, sizeof error);
	hs_buf_deinit(&reply);
	hs_core_learn(world->core, world->learned);
	for (uint64_t i = 0; i <= CLIENTS; i++) {
		struct hs_core_client client = {.id = i + 1, .address = "a", .local_address = "b"};

		world->client[i] = hs_core_connect(world->core, world->now, &client);
	}
}

static void open_world(struct world *world)
{
	open_empty_world(world, false);
	make_hot(world, "{a}k");
	make_hot(world, "{a}l");
	make_hot(world, "{b}k");
}

/* Nothing is left of all that was counted. */
static void close_world(struct world *world)
{
	struct hs_core_stats *stats = hs_core_stats(world->core);

	assert_int_equal(world->count, 0);
	assert_int_equal(counted(&stats->fold_waiting), 0);
	assert_int_equal(counted(&stats->inflight), 0);
	for (size_t i = 0; i <= CLIENTS; i++) {
		struct hs_session *session = world->client[i];

		if (!session)
			continue;
		assert_int_equal(session->folded, 0);
		assert_int_equal(session->inflight, 0);
		assert_int_equal(session->held_bytes, 0);
		for (size_t lane = 0; lane < HS_LANES; lane++)
			assert_int_equal(session->lane[lane], 0);
		hs_core_disconnect(world->core, session);
	}
	assert_int_equal(world->core->orphans, 0);
	hs_core_tick(world->core, later(world, 2000000));
	assert_int_equal(counted(&stats->fold_keys), 0); /* so nothing is in them, nor under way */
	hs_core_destroy(&world->core);
	hs_learned_destroy(&world->learned);
	hs_heat_destroy(&world->heat);
}

/* ---- joins and flights ---- */

static void test_one_by_itself_goes_as_it_came(void **state)
{
	static struct world world;

	(void)state;
	open_world(&world);
	say(&world, 'A', "incr {a}k");
	sent(&world, ""); /* others may come in this round */
	end_round(&world);
	sent(&world, "incr {a}k");
	reply(&world, "incr", ":1\r\n");
	heard(&world, 'A', ":1\r\n");
	assert_int_equal(counted(&hs_core_stats(world.core)->fold_requests), 0);
	close_world(&world);
}

static void test_one_flight_at_a_time(void **state)
{
	static struct world world;
	struct hs_core_stats *stats;

	(void)state;
	open_world(&world);
	stats = hs_core_stats(world.core);
	say(&world, 'A', "INCR {a}k");
	say(&world, 'B', "INCR {a}k");
	end_round(&world);
	sent(&world, "INCRBY {a}k 2");
	say(&world, 'C', "INCR {a}k");
	say(&world, 'D', "GET {a}k");
	say(&world, 'E', "GET {b}k"); /* another key, another queue */
	end_round(&world);
	sent(&world, "GET {b}k");
	assert_int_equal(counted(&stats->fold_waiting), 2);
	reply(&world, "INCRBY", ":11\r\n");
	heard(&world, 'A', ":10\r\n");
	heard(&world, 'B', ":11\r\n");
	heard(&world, 'C', "");
	sent(&world, "");
	end_round(&world);
	sent(&world, "INCRBY {a}k 1");
	reply(&world, "INCRBY", ":12\r\n");
	heard(&world, 'C', ":12\r\n");
	heard(&world, 'D', "$2\r\n12\r\n");
	reply(&world, "GET", "$-1\r\n");
	heard(&world, 'E', "$-1\r\n");
	assert_int_equal(counted(&stats->fold_requests), 4);
	assert_int_equal(counted(&stats->fold_commands), 2);
	assert_int_equal(counted(&stats->command[HS_CMD_ID_INCR].calls), 3);
	close_world(&world);
}

static void test_a_read_joins_none_that_was_sent(void **state)
{
	static struct world world;

	(void)state;
	open_world(&world);
	say(&world, 'A', "GET {a}k");
	say(&world, 'B', "GET {a}k");
	end_round(&world);
	sent(&world, "GET {a}k");
	say(&world, 'C', "GET {a}k");
	end_round(&world);
	sent(&world, "");
	reply(&world, "GET", "$1\r\n1\r\n");
	heard(&world, 'A', "$1\r\n1\r\n");
	heard(&world, 'B', "$1\r\n1\r\n");
	heard(&world, 'C', "");
	end_round(&world);
	sent(&world, "GET {a}k");
	reply(&world, "GET", "$1\r\n2\r\n");
	heard(&world, 'C', "$1\r\n2\r\n");
	close_world(&world);
}

static void test_both_dialects(void **state)
{
	static struct world world;

	(void)state;
	open_world(&world);
	say(&world, 'C', "HELLO 3");
	say(&world, 'D', "HELLO 3");
	listen(&world, 'C');
	listen(&world, 'D');
	for (char who = 'A'; who <= 'D'; who++)
		say(&world, who, "GET {a}k");
	end_round(&world);
	sent(&world, "GET {a}k | GET {a}k");
	assert_int_equal(world.ops[0]->resp, 2);
	assert_int_equal(world.ops[1]->resp, 3);
	reply(&world, "GET", "$-1\r\n");
	reply(&world, "GET", "_\r\n");
	heard(&world, 'A', "$-1\r\n");
	heard(&world, 'B', "$-1\r\n");
	heard(&world, 'C', "_\r\n");
	heard(&world, 'D', "_\r\n");
	close_world(&world);
}

/* Replies keep the order of requests, whatever is finished first (law 1). */
static void test_replies_in_turn(void **state)
{
	static struct world world;

	(void)state;
	open_world(&world);
	say(&world, 'A', "GET {b}x");
	say(&world, 'A', "INCR {a}k");
	say(&world, 'A', "PING");
	say(&world, 'B', "INCR {a}k");
	end_round(&world);
	sent(&world, "GET {b}x | INCRBY {a}k 2");
	reply(&world, "INCRBY", ":2\r\n");
	heard(&world, 'A', "");
	heard(&world, 'B', ":2\r\n");
	reply(&world, "GET", "$1\r\nx\r\n");
	heard(&world, 'A', "$1\r\nx\r\n:1\r\n+PONG\r\n");
	close_world(&world);
}

/* ---- a client's own order ---- */

static void test_others_wait_behind_folded_ones(void **state)
{
	static const char *const words[] = {
		"DEL {a}k",	 "GETDEL {a}k", "GET {a}x",  "MGET {a}k {b}k",	"DEL {a}k {b}k",
		"EVAL s 1 {a}k", "EVAL s 0",	"INCR {a}l", "SPUBLISH {a}c m", "FLUSHALL",
	};
	static struct world world;

	(void)state;
	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		print_message("%s\n", words[i]);
		open_world(&world);
		say(&world, 'A', "INCR {a}k");
		say(&world, 'B', "INCR {a}k");
		say(&world, 'A', words[i]);
		sent(&world, ""); /* while it waits */
		end_round(&world);
		sent(&world, "INCRBY {a}k 2");
		say(&world, 'B', words[i]); /* and while it is under way */
		end_round(&world);
		sent(&world, "");
		reply(&world, "INCRBY", ":2\r\n");
		heard(&world, 'A', ":1\r\n");
		heard(&world, 'B', ":2\r\n");
		end_round(&world);
		assert_true(strncmp(look(&world), words[i], strcspn(words[i], " ")) == 0);
		while (world.count > 0) {
			reply(&world, "", ":1\r\n");
			end_round(&world);
			look(&world);
		}
		listen(&world, 'A');
		listen(&world, 'B');
		close_world(&world);
	}
}

/* Who hears of a change must find it. The message goes to partition 0, where the key is. */
static void test_a_message_waits_behind_folded_ones(void **state)
{
	static struct world world;

	(void)state;
	open_world(&world);
	hs_slot_map_set(&world.map, hs_slot_of(HS_LIT("{a}k")), 0);
	say(&world, 'A', "SET {a}k 1");
	say(&world, 'B', "SET {a}k 2");
	say(&world, 'A', "PUBLISH c {a}k");
	end_round(&world);
	sent(&world, "SET {a}k 2");
	reply(&world, "SET", "+OK\r\n");
	sent(&world, "PUBLISH c {a}k");
	/* With nobody else there it goes right behind. */
	say(&world, 'B', "SET {a}k 3");
	say(&world, 'B', "PUBLISH c {a}k");
	sent(&world, "SET {a}k 3 | PUBLISH c {a}k");
	reply(&world, "PUBLISH", ":0\r\n");
	reply(&world, "SET", "+OK\r\n");
	reply(&world, "PUBLISH", ":0\r\n");
	heard(&world, 'A', "+OK\r\n:0\r\n");
	heard(&world, 'B', "+OK\r\n+OK\r\n:0\r\n");
	close_world(&world);
}

static void test_a_transaction_waits_behind_folded_ones(void **state)
{
	static struct world world;

	(void)state;
	open_world(&world);
	say(&world, 'A', "INCR {a}k");
	say(&world, 'B', "INCR {a}k");
	say(&world, 'A', "MULTI");
	say(&world, 'A', "GET {a}k");
	say(&world, 'A', "EXEC");
	end_round(&world);
	sent(&world, "INCRBY {a}k 2");
	reply(&world, "INCRBY", ":2\r\n");
	sent(&world, "EXEC");
	say(&world, 'A',
	    "INCR {a}k"); /* nothing is under way for the key itself: in the lane's order */
	sent(&world, "INCR {a}k");
	say(&world, 'A', "INCR {a}k"); /* now there is: its own, so it goes behind that */
	sent(&world, "INCR {a}k");
	reply(&world, "EXEC", "*1\r\n$1\r\n2\r\n");
	reply(&world, "INCR", ":3\r\n");
	reply(&world, "INCR", ":4\r\n");
	heard(&world, 'A', ":1\r\n+OK\r\n+QUEUED\r\n*1\r\n$1\r\n2\r\n:3\r\n:4\r\n");
	heard(&world, 'B', ":2\r\n");
	close_world(&world);
}

static void test_folded_ones_wait_behind_others(void **state)
{
	static struct world world;

	(void)state;
	open_world(&world);
	say(&world, 'B', "INCR {a}k");
	say(&world, 'C', "INCR {a}k");
	end_round(&world);
	sent(&world, "INCRBY {a}k 2");
	say(&world, 'A', "DEL {a}k");
	say(&world, 'A', "INCR {a}k"); /* waits for DEL */
	say(&world, 'A', "PING");
	say(&world, 'D', "INCR {a}k");
	sent(&world, "DEL {a}k");
	reply(&world, "INCRBY", ":2\r\n");
	end_round(&world);
	sent(&world, "INCR {a}k"); /* D's */
	reply(&world, "DEL", ":1\r\n");
	end_round(&world);
	sent(&world, "");
	reply(&world, "INCR", ":1\r\n");
	end_round(&world);
	sent(&world, "INCR {a}k");
	reply(&world, "INCR", ":2\r\n");
	heard(&world, 'A', ":1\r\n:2\r\n+PONG\r\n");
	heard(&world, 'B', ":1\r\n");
	heard(&world, 'C', ":2\r\n");
	heard(&world, 'D', ":1\r\n");
	close_world(&world);
}

static void test_one_with_many_others_is_not_folded(void **state)
{
	static struct world world;

	(void)state;
	open_world(&world);
	say(&world, 'B', "INCR {a}k");
	say(&world, 'C', "INCR {a}k");
	end_round(&world);
	sent(&world, "INCRBY {a}k 2");
	for (int i = 0; i < 8; i++)
		say(&world, 'A', "GET {a}x");
	look(&world);
	say(&world, 'A', "INCR {a}k");
	sent(&world, "INCR {a}k");
	reply(&world, "INCRBY", ":2\r\n");
	while (world.count > 0)
		reply(&world, "", ":3\r\n");
	listen(&world, 'A');
	heard(&world, 'B', ":1\r\n");
	heard(&world, 'C', ":2\r\n");
	close_world(&world);
}

static void test_own_ones_are_released(void **state)
{
	static struct world world;

	(void)state;
	open_world(&world);
	/* Nobody else is there: all as it came, and nothing waits. */
	say(&world, 'A', "INCR {a}k");
	say(&world, 'A', "INCR {a}k");
	say(&world, 'A', "DEL {a}k");
	sent(&world, "INCR {a}k | INCR {a}k | DEL {a}k");
	/* Other partitions have nothing to do with it. */
	say(&world, 'B', "INCR {b}k");
	say(&world, 'B', "GET {a}x");
	sent(&world, "GET {a}x");
	end_round(&world);
	sent(&world, "INCR {b}k");
	reply(&world, "INCR {a}k", ":1\r\n");
	reply(&world, "INCR {a}k", ":2\r\n");
	reply(&world, "DEL", ":1\r\n");
	reply(&world, "INCR {b}k", ":1\r\n");
	reply(&world, "GET", "$-1\r\n");
	heard(&world, 'A', ":1\r\n:2\r\n:1\r\n");
	heard(&world, 'B', ":1\r\n$-1\r\n");
	close_world(&world);
}

/* Several hot keys in turn, and nobody else there: nothing to gain by waiting. */
static void test_a_client_alone_is_not_held_up(void **state)
{
	static struct world world;

	(void)state;
	open_world(&world);
	for (int i = 0; i < 3; i++) {
		say(&world, 'A', "INCR {a}k");
		say(&world, 'A', "INCR {a}l");
	}
	sent(&world, "INCR {a}k | INCR {a}l | INCR {a}k | INCR {a}l | INCR {a}k | INCR {a}l");
	say(&world, 'B', "GET {a}k");
	end_round(&world);
	sent(&world, "");
	for (int i = 0; i < 6; i++)
		reply(&world, "INCR", ":1\r\n");
	end_round(&world);
	sent(&world, "GET {a}k");
	reply(&world, "GET", "$1\r\n3\r\n");
	heard(&world, 'A', ":1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n");
	heard(&world, 'B', "$1\r\n3\r\n");
	close_world(&world);
}

/* Who pipelines several hot keys among others is held up once, and then goes straight for a while. */
static void test_a_long_pipeline_is_held_up_once(void **state)
{
	static struct world world;
	char words[2048] = "INCR {a}k";

	(void)state;
	open_world(&world);
	say(&world, 'B', "INCR {a}k");
	end_round(&world);
	sent(&world, "INCR {a}k");
	for (int i = 0; i < 64; i++)
		strcat(words, i % 2 ? "\r\nINCR {a}k" : "\r\nINCR {a}l");
	say(&world, 'A', words);
	end_round(&world);
	sent(&world, "");
	reply(&world, "INCR", ":1\r\n");
	end_round(&world);
	sent(&world, "INCR {a}k");
	reply(&world, "INCR", ":2\r\n"); /* A's first: all others leave */
	assert_int_equal(world.count, 64);
	look(&world);
	while (world.count > 0)
		reply(&world, "INCR", ":3\r\n");
	listen(&world, 'A');
	/* From now on it is as before. */
	say(&world, 'A', "INCR {a}k");
	say(&world, 'B', "INCR {a}k");
	end_round(&world);
	sent(&world, "INCRBY {a}k 2");
	reply(&world, "INCRBY", ":36\r\n");
	heard(&world, 'A', ":35\r\n");
	heard(&world, 'B', ":1\r\n:36\r\n");
	close_world(&world);
}

/* Those who come by with others in front of them must not keep those away who wait. */
static void test_nobody_goes_by_those_who_wait(void **state)
{
	static struct world world;

	(void)state;
	open_world(&world);
	say(&world, 'B', "INCR {a}k");
	end_round(&world);
	sent(&world, "INCR {a}k");
	say(&world, 'C', "INCR {a}k");
	reply(&world, "INCR", ":1\r\n");
	say(&world, 'A', "GET {a}x");
	say(&world, 'A', "INCR {a}k"); /* in the round in which C may go */
	sent(&world, "GET {a}x");
	end_round(&world);
	sent(&world, "INCR {a}k");
	reply(&world, "INCR", ":2\r\n");
	heard(&world, 'B', ":1\r\n");
	heard(&world, 'C', ":2\r\n");
	reply(&world, "GET", "$-1\r\n");
	end_round(&world);
	sent(&world, "INCR {a}k");
	reply(&world, "INCR", ":3\r\n");
	heard(&world, 'A', "$-1\r\n:3\r\n");
	close_world(&world);
}

/* UNWATCH is answered at once, and still has something for the engine to do. */
static void test_own_ones_are_not_overtaken_behind_unwatch(void **state)
{
	static struct world world;

	(void)state;
	open_world(&world);
	say(&world, 'A', "WATCH {a}x");
	sent(&world, "WATCH {a}x");
	reply(&world, "WATCH", "+OK\r\n");
	heard(&world, 'A', "+OK\r\n");
	say(&world, 'A', "SET {a}k 1");
	say(&world, 'A', "UNWATCH");
	say(&world, 'A', "GET {a}k");
	end_round(&world);
	look(&world);
	while (world.count > 0) {
		char text[64];

		describe(world.ops[0], text, sizeof text);
		assert_string_not_equal(text, "GET {a}k");
		if (strncmp(text, "SET", 3) == 0)
			break;
		reply(&world, "", "+OK\r\n");
	}
	assert_true(world.count > 0);
	while (world.count > 0) {
		reply(&world, "",
		      world.ops[0]->command->id == HS_CMD_ID_GET ? "$1\r\n1\r\n" : "+OK\r\n");
		end_round(&world);
		look(&world);
	}
	heard(&world, 'A', "+OK\r\n+OK\r\n$1\r\n1\r\n");
	close_world(&world);
}

/* What a client asks of a key is run in that order also when its slot has moved meanwhile. */
static void test_slots_that_move(void **state)
{
	static struct world world;

	(void)state;
	open_world(&world);
	say(&world, 'A', "SET {a}k 1");
	hs_slot_map_set(&world.map, hs_slot_of(HS_LIT("{a}k")), 2);
	say(&world, 'A', "SET {a}k 2");
	say(&world, 'A', "GET {a}k");
	end_round(&world);
	sent(&world, "SET {a}k 1");
	reply(&world, "SET", "+OK\r\n");
	end_round(&world);
	sent(&world, "SET {a}k 2"); /* and all that follows from it */
	reply(&world, "SET", "+OK\r\n");
	heard(&world, 'A', "+OK\r\n+OK\r\n$1\r\n2\r\n");
	/* Others go where it is now, behind what is on its way to where it was. */
	say(&world, 'A', "INCR {a}k");
	say(&world, 'B', "INCR {a}k");
	hs_slot_map_set(&world.map, hs_slot_of(HS_LIT("{a}k")), A_PARTITION);
	say(&world, 'A', "DEL {a}k");
	end_round(&world);
	sent(&world, "INCRBY {a}k 2");
	reply(&world, "INCRBY", ":4\r\n");
	sent(&world, "DEL {a}k");
	reply(&world, "DEL", ":1\r\n");
	heard(&world, 'A', ":3\r\n:1\r\n");
	heard(&world, 'B', ":4\r\n");
	close_world(&world);
}

static void test_a_queue_that_has_moved_leaves_room_for_others(void **state)
{
	static struct world world;

	(void)state;
	open_world(&world);
	/* {b}k comes to where {a}k was. */
	say(&world, 'A', "INCR {a}k");
	end_round(&world);
	sent(&world, "INCR {a}k");
	hs_slot_map_set(&world.map, hs_slot_of(HS_LIT("{a}k")), 2);
	say(&world, 'A', "INCR {a}k");
	reply(&world, "INCR", ":1\r\n");
	end_round(&world);
	sent(&world, "INCR {a}k");
	hs_slot_map_set(&world.map, hs_slot_of(HS_LIT("{b}k")), A_PARTITION);
	say(&world, 'A', "INCR {b}k");
	end_round(&world);
	sent(&world, "INCR {b}k");
	reply(&world, "INCR {a}k", ":2\r\n");
	reply(&world, "INCR {b}k", ":1\r\n");
	heard(&world, 'A', ":1\r\n:2\r\n:1\r\n");
	close_world(&world);
}

/* ---- reads at once ---- */

static void test_reads_at_once_do_not_wait(void **state)
{
	static struct world world;

	(void)state;
	open_empty_world(&world, true);
	make_hot(&world, "{a}k");
	say(&world, 'A', "INCR {a}k");
	say(&world, 'B', "INCR {a}k");
	say(&world, 'C', "GET {a}k");
	heard(&world, 'C', "$4\r\nread\r\n");
	say(&world, 'A', "GET {a}k"); /* behind its own write */
	heard(&world, 'A', "");
	end_round(&world);
	sent(&world, "INCRBY {a}k 2");
	reply(&world, "INCRBY", ":2\r\n");
	heard(&world, 'A', ":1\r\n$1\r\n2\r\n");
	heard(&world, 'B', ":2\r\n");
	close_world(&world);
}

/* ---- limits, and those who go ---- */

static void test_busy_at_the_limit(void **state)
{
	static struct world world;

	(void)state;
	open_world(&world);
	say(&world, 'A', "GET {a}k");
	end_round(&world);
	sent(&world, "GET {a}k");
	for (int i = 0; i < WAITERS; i++)
		say(&world, 'B', "GET {a}k");
	say(&world, 'C', "GET {a}k");
	heard(&world, 'C',
	      "-BUSY 16 requests wait for this key already (fold-waiters-max); not "
	      "run\r\n");
	say(&world, 'C', "GET {b}k");
	assert_int_equal(counted(&hs_core_stats(world.core)->fold_busy), 1);
	reply(&world, "GET", "$1\r\n1\r\n");
	say(&world, 'C', "GET {a}k"); /* they are not away yet */
	end_round(&world);
	sent(&world, "GET {b}k | GET {a}k");
	say(&world, 'C', "GET {a}k"); /* now there is room */
	reply(&world, "GET {b}k", "$1\r\nb\r\n");
	reply(&world, "GET {a}k", "$1\r\n2\r\n");
	end_round(&world);
	sent(&world, "GET {a}k");
	reply(&world, "GET", "$1\r\n3\r\n");
	heard(&world, 'A', "$1\r\n1\r\n");
	heard(&world, 'C',
	      "$1\r\nb\r\n-BUSY 16 requests wait for this key already (fold-waiters-max); not "
	      "run\r\n$1\r\n3\r\n");
	assert_int_equal(strlen(listen(&world, 'B')), WAITERS * strlen("$1\r\n2\r\n"));
	close_world(&world);
}

static void test_who_goes_while_waiting_is_left_out(void **state)
{
	static struct world world;

	(void)state;
	open_world(&world);
	say(&world, 'A', "INCR {a}k");
	say(&world, 'B', "INCR {a}k");
	say(&world, 'C', "INCR {a}k");
	say(&world, 'B', "INCR {a}k");
	leave(&world, 'B');
	assert_int_equal(counted(&hs_core_stats(world.core)->fold_waiting), 2);
	end_round(&world);
	sent(&world, "INCRBY {a}k 2");
	/* Who goes later is answered into the void. */
	say(&world, 'C', "INCR {a}k");
	leave(&world, 'C');
	reply(&world, "INCRBY", ":2\r\n");
	heard(&world, 'A', ":1\r\n");
	end_round(&world);
	sent(&world, "");
	close_world(&world);
}

static void test_who_goes_before_a_second_try_has_none(void **state)
{
	static struct world world;

	(void)state;
	open_world(&world);
	say(&world, 'A', "INCR {a}k");
	say(&world, 'B', "INCR {a}k");
	end_round(&world);
	sent(&world, "INCRBY {a}k 2");
	leave(&world, 'B');
	reply(&world, "INCRBY", "-ERR increment or decrement would overflow\r\n");
	sent(&world, "INCR {a}k");
	say(&world, 'A', "APPEND {a}k x"); /* behind the second try */
	sent(&world, "APPEND {a}k x");
	say(&world, 'C', "INCR {a}k"); /* which is under way for the key */
	end_round(&world);
	sent(&world, "");
	reply(&world, "INCR", ":9\r\n");
	end_round(&world);
	sent(&world, "INCR {a}k");
	reply(&world, "APPEND", ":2\r\n");
	reply(&world, "INCR", ":10\r\n");
	heard(&world, 'A', ":9\r\n:2\r\n");
	heard(&world, 'C', ":10\r\n");
	close_world(&world);
}

/* ---- errors ---- */

static void test_an_unknown_outcome_is_told_to_all(void **state)
{
	static const char unknown[] = "-UNKNOWN the connection was lost\r\n";
	static struct world world;

	(void)state;
	open_world(&world);
	say(&world, 'A', "INCR {a}k");
	say(&world, 'B', "INCR {a}k");
	say(&world, 'C', "GET {a}k");
	end_round(&world);
	sent(&world, "INCRBY {a}k 2");
	reply(&world, "INCRBY", unknown);
	heard(&world, 'A', unknown);
	heard(&world, 'B', unknown);
	heard(&world, 'C', unknown);
	end_round(&world);
	sent(&world, ""); /* and nothing is tried again */
	assert_int_equal(counted(&hs_core_stats(world.core)->command[HS_CMD_ID_INCR].failed), 2);
	close_world(&world);
}

/* An engine that takes nothing says so while it is handed something: who waited for that goes on. */
static void test_refused_at_once(void **state)
{
	static const char down[] = "-CLUSTERDOWN not sent\r\n";
	static struct world world;

	(void)state;
	open_world(&world);
	world.refusal = down;
	say(&world, 'A', "INCR {a}k"); /* together */
	say(&world, 'B', "INCR {a}k");
	say(&world, 'A', "PING");
	say(&world, 'A', "DEL {a}k");
	end_round(&world);
	heard(&world, 'A', "-CLUSTERDOWN not sent\r\n+PONG\r\n-CLUSTERDOWN not sent\r\n");
	heard(&world, 'B', down);
	/* One by one, with more behind each that has to wait for it. */
	say(&world, 'A', "GET {a}k");
	say(&world, 'B', "INCR {a}k");
	say(&world, 'A', "DEL {a}k");
	say(&world, 'A', "GET {a}k");
	say(&world, 'B', "APPEND {a}k x");
	end_round(&world);
	heard(&world, 'A',
	      "-CLUSTERDOWN not sent\r\n-CLUSTERDOWN not sent\r\n-CLUSTERDOWN not "
	      "sent\r\n");
	heard(&world, 'B', "-CLUSTERDOWN not sent\r\n-CLUSTERDOWN not sent\r\n");
	assert_int_equal(world.client[0]->in.len, 0);
	/* And a second try. */
	world.refusal = NULL;
	say(&world, 'A', "INCR {a}k");
	say(&world, 'B', "INCR {a}k");
	say(&world, 'A', "DEL {a}k");
	end_round(&world);
	sent(&world, "INCRBY {a}k 2");
	world.refusal = down;
	reply(&world, "INCRBY", "-ERR increment or decrement would overflow\r\n");
	heard(&world, 'A', "-CLUSTERDOWN not sent\r\n-CLUSTERDOWN not sent\r\n");
	heard(&world, 'B', down);
	close_world(&world);
}

/* ---- hot and cool ---- */

static void test_hot_and_cool(void **state)
{
	static struct world world;
	struct hs_core_stats *stats;

	(void)state;
	open_empty_world(&world, false);
	stats = hs_core_stats(world.core);
	say(&world, 'A', "INCR {a}k");
	say(&world, 'B', "INCR {a}k");
	sent(&world, "INCR {a}k | INCR {a}k"); /* not hot: straight */
	make_hot(&world, "{a}k");
	say(&world, 'C', "INCR {a}k");
	say(&world, 'A', "INCR {a}k"); /* waits for what it had under way */
	end_round(&world);
	sent(&world, "INCR {a}k");
	for (int i = 0; i < 3; i++)
		reply(&world, "INCR", ":1\r\n");
	end_round(&world);
	sent(&world, "INCR {a}k");
	reply(&world, "INCR", ":2\r\n");
	/* One request now and then is less than it takes to turn hot, and enough to stay so. */
	for (int i = 0; i < 20; i++) {
		say(&world, 'A', "APPEND {a}k x");
		look(&world);
		reply(&world, "APPEND", ":1\r\n");
		hs_core_tick(world.core, later(&world, 10000));
	}
	assert_int_equal(counted(&stats->fold_keys), 1);
	/* Not while somebody is in its queue. */
	say(&world, 'B', "GET {a}k");
	end_round(&world);
	sent(&world, "GET {a}k");
	hs_core_tick(world.core, later(&world, 1500000));
	assert_int_equal(counted(&stats->fold_keys), 1);
	reply(&world, "GET", "$-1\r\n");
	hs_core_tick(world.core, later(&world, 900000));
	hs_core_tick(world.core, later(&world, 1500000));
	assert_int_equal(counted(&stats->fold_keys), 0);
	for (char who = 'A'; who <= 'C'; who++)
		listen(&world, who);
	close_world(&world);
}

static void test_fold_no_while_some_wait(void **state)
{
	static struct world world;

	(void)state;
	open_world(&world);
	say(&world, 'A', "INCR {a}k");
	end_round(&world);
	sent(&world, "INCR {a}k");
	say(&world, 'B', "INCR {a}k");
	say(&world, 'C', "INCR {a}k");
	world.options.fold = false;
	hs_core_configure(world.core, &world.options);
	hs_core_tick(world.core, later(&world, 100));
	say(&world, 'D', "INCR {a}k"); /* straight */
	sent(&world, "INCR {a}k");
	say(&world, 'B', "INCR {a}k"); /* not before its first one */
	sent(&world, "");
	reply(&world, "INCR", ":1\r\n");
	reply(&world, "INCR", ":2\r\n");
	end_round(&world);
	sent(&world, "INCRBY {a}k 2");
	reply(&world, "INCRBY", ":4\r\n");
	sent(&world, "INCR {a}k");
	reply(&world, "INCR", ":5\r\n");
	heard(&world, 'A', ":1\r\n");
	heard(&world, 'B', ":3\r\n:5\r\n");
	heard(&world, 'C', ":4\r\n");
	heard(&world, 'D', ":2\r\n");
	hs_core_tick(world.core, later(&world, 100));
	assert_int_equal(counted(&hs_core_stats(world.core)->fold_keys), 0);
	close_world(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_by_itself_goes_as_it_came),
		cmocka_unit_test(test_one_flight_at_a_time),
		cmocka_unit_test(test_a_read_joins_none_that_was_sent),
		cmocka_unit_test(test_both_dialects),
		cmocka_unit_test(test_replies_in_turn),
		cmocka_unit_test(test_others_wait_behind_folded_ones),
		cmocka_unit_test(test_a_message_waits_behind_folded_ones),
		cmocka_unit_test(test_a_transaction_waits_behind_folded_ones),
		cmocka_unit_test(test_folded_ones_wait_behind_others),
		cmocka_unit_test(test_one_with_many_others_is_not_folded),
		cmocka_unit_test(test_own_ones_are_released),
		cmocka_unit_test(test_a_client_alone_is_not_held_up),
		cmocka_unit_test(test_a_long_pipeline_is_held_up_once),
		cmocka_unit_test(test_nobody_goes_by_those_who_wait),
		cmocka_unit_test(test_own_ones_are_not_overtaken_behind_unwatch),
		cmocka_unit_test(test_slots_that_move),
		cmocka_unit_test(test_a_queue_that_has_moved_leaves_room_for_others),
		cmocka_unit_test(test_reads_at_once_do_not_wait),
		cmocka_unit_test(test_busy_at_the_limit),
		cmocka_unit_test(test_who_goes_while_waiting_is_left_out),
		cmocka_unit_test(test_who_goes_before_a_second_try_has_none),
		cmocka_unit_test(test_an_unknown_outcome_is_told_to_all),
		cmocka_unit_test(test_refused_at_once),
		cmocka_unit_test(test_hot_and_cool),
		cmocka_unit_test(test_fold_no_while_some_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
