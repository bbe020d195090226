/* Goal: whatever the order of the servers' answers, whatever copies get lost, and however requests are folded and
 * pipelined, a read is never answered with a value older than one acknowledged before the read was sent, nor out
 * of its connection's order.
 *
 * Method: two cores in front of three partitions that the test plays (tests/lib/cache_world.h), each with a queue
 * of operations. Random numbers choose which partition answers next, which client sends what, when a copy is lost
 * and when time passes. One client writes each key, with rising numbers, pipelined among its own reads; the
 * others only read. So a read of a key must return a number that is
 * - not less than the last number acknowledged before the read was sent, also to a client
 *   that writes directly at the server;
 * - exactly the last number written, if the reading client is the key's writer.
 * Seeds are fixed; a failure prints its seed. To run one seed alone, narrow the loop over SEEDS. */
#include "tests/lib/cache_world.h"

#include "absorb/copies/stats.h"
#include "base/prng.h"
#include "base/slot.h"
#include "core/reserved.h"
#include "tests/lib/slots.h"

enum { KEYS = 2, NAMES_MAX = 512, WAITING_MAX = 12, STEPS = 3000, SEEDS = 120 };

/* The slots of k and kb are on one partition, so requests for both keys share a queue. */
static const char *const keys[KEYS] = {"k", "kb"};
static const char writers[KEYS] = {'A', 'B'};

struct question {
	int key;   /* index of the key that the client reads; -1: the request is a write */
	int least; /* lower bound of the number in the reply */
	int exact; /* the exact number in the reply; 0: any number from `least` on */
	int wrote;
	int written_key;
};

struct play {
	struct world world;
	struct hs_slot_map slots;
	struct hs_prng prng;
	struct {
		char name[128];
		int value; /* 0: the key is deleted */
	} store[NAMES_MAX];
	int store_count;
	int last, acknowledged[KEYS], written[KEYS];
	struct question questions[CLIENTS][WAITING_MAX];
	size_t asked[CLIENTS];
	unsigned reads;
	int seed;
};

static unsigned below(struct play *play, unsigned bound)
{
	return (unsigned)hs_prng_below(&play->prng, bound);
}

/* ---- servers ---- */

static int *find(struct play *play, struct hs_bytes name)
{
	for (int i = 0; i < play->store_count; i++) {
		if (hs_bytes_equal(hs_bytes_of(play->store[i].name), name))
			return &play->store[i].value;
	}
	for (int i = 0; i < NAMES_MAX; i++) {
		if (i < play->store_count && play->store[i].value != 0)
			continue;
		if (i == play->store_count)
			play->store_count++;
		snprintf(play->store[i].name, sizeof play->store[i].name, "%.*s", (int)name.len,
			 name.data);
		play->store[i].value = 0;
		return &play->store[i].value;
	}
	fail_msg("too many names");
	return NULL;
}

static void write_value(struct hs_buf *out, int value)
{
	char text[16];

	if (value == 0)
		hs_buf_printf(out, "$-1\r\n");
	else
		hs_buf_printf(out, "$%d\r\n%d\r\n", snprintf(text, sizeof text, "%d", value),
			      value);
}

static int number_of(struct hs_bytes text)
{
	char copy[32];

	snprintf(copy, sizeof copy, "%.*s", (int)text.len, text.data);
	return atoi(copy);
}

static void run_op(struct play *play, struct hs_op *op)
{
	const char *name = op->command->name;
	int *value = op->argc > 1 ? find(play, op->argv[1]) : NULL;
	struct hs_buf out = {0};

	if (strcmp(name, "get") == 0 || strcmp(name, "dump") == 0) {
		write_value(&out, *value);
	} else if (strcmp(name, "set") == 0) {
		*value = number_of(op->argv[2]);
		hs_buf_printf(&out, "+OK\r\n");
	} else if (strcmp(name, "restore") == 0) {
		*value = number_of(op->argv[3]);
		hs_buf_printf(&out, "+OK\r\n");
	} else {
		assert_true(strcmp(name, "unlink") == 0 || strcmp(name, "pexpire") == 0);
		hs_buf_printf(&out, ":%d\r\n", *value != 0);
		if (strcmp(name, "unlink") == 0)
			*value = 0;
	}
	track_in(&play->world, op);
	hs_buf_append_bytes(op->out, hs_buf_bytes(&out));
	hs_buf_deinit(&out);
	hs_core_complete(play->world.station[op->worker].core, later(&play->world, 1), op);
}

/* Runs the oldest operation of a partition. Returns false if the partition has no operation in its queue. */
static bool serve(struct play *play, uint16_t partition)
{
	struct world *world = &play->world;

	for (size_t i = 0; i < world->count; i++) {
		struct hs_op *op = world->ops[i];

		if (op->partition != partition)
			continue;
		memmove(&world->ops[i], &world->ops[i + 1],
			(world->count - i - 1) * sizeof(struct hs_op *));
		world->count--;
		run_op(play, op);
		return true;
	}
	return false;
}

static void serve_some(struct play *play)
{
	uint16_t partition = (uint16_t)below(play, 3);

	for (unsigned i = 1 + below(play, 6); i > 0; i--)
		serve(play, partition);
}

/* ---- clients ---- */

static void ask(struct play *play)
{
	char who = (char)('A' + below(play, CLIENTS)), words[64];
	size_t *asked = &play->asked[who - 'A'];
	int key = (int)below(play, KEYS);
	struct question *question = &play->questions[who - 'A'][*asked];

	if (*asked == WAITING_MAX)
		return;
	*question = (struct question){.key = key, .least = play->acknowledged[key]};
	if (writers[key] == who && below(play, 5) == 0) {
		play->written[key] = ++play->last;
		*question = (struct question){
			.key = -1, .wrote = play->written[key], .written_key = key};
		snprintf(words, sizeof words, "SET %s %d", keys[key], play->last);
	} else {
		if (writers[key] == who)
			question->exact = play->written[key];
		snprintf(words, sizeof words, "GET %s", keys[key]);
	}
	(*asked)++;
	say(&play->world, who, words);
}

static void check_answer(struct play *play, const struct question *question, const char *text)
{
	int value = text[0] == '$' ? atoi(strchr(text, '\n') + 1) : 0;

	if (question->key < 0) {
		if (strncmp(text, "+OK", 3) != 0)
			fail_msg("seed %d: a SET was answered with %s", play->seed, text);
		play->acknowledged[question->written_key] = question->wrote;
		return;
	}
	play->reads++;
	if (value < question->least)
		fail_msg("seed %d: %s was %d, and %d was acknowledged before", play->seed,
			 keys[question->key], value, question->least);
	if (question->exact > 0 && value != question->exact)
		fail_msg("seed %d: %s was %d for its writer, which had written %d", play->seed,
			 keys[question->key], value, question->exact);
}

static void hear(struct play *play)
{
	for (int client = 0; client < CLIENTS; client++) {
		char who = (char)('A' + client);
		const char *text = take_received(&play->world, who);
		struct question *questions = play->questions[client];
		size_t count = 0;

		while (*text) {
			assert_true(count < play->asked[who - 'A']);
			check_answer(play, &questions[count++], text);
			if (text[0] == '$' && text[1] != '-')
				text = strchr(text, '\n') + 1;
			text = strchr(text, '\n') + 1;
		}
		play->asked[who - 'A'] -= count;
		memmove(questions, questions + count, play->asked[who - 'A'] * sizeof *questions);
	}
}

/* ---- random events ---- */

static void lose_a_copy(struct play *play)
{
	int i = (int)below(play, (unsigned)play->store_count);

	if (hs_is_reserved(hs_bytes_of(play->store[i].name)))
		play->store[i].value = 0;
}

static void step(struct play *play)
{
	unsigned chance = below(play, 1000);

	if (chance < 500)
		ask(play);
	else if (chance < 850)
		serve_some(play);
	else if (chance < 950)
		end_round(&play->world);
	else if (chance < 960)
		lose_a_copy(play);
	else if (chance < 990)
		later(&play->world, 200 + below(play, 2000));
	else
		tick(&play->world, below(play, 8) ? 5 * MS : 60 * MS); /* 60 ms: copies time out */
	catch_up(&play->world, 0);
	catch_up(&play->world, 1);
	deliver_events(&play->world);
	hear(play);
}

static void finish(struct play *play)
{
	for (int i = 0; i < 1000 || play->world.count > 0; i++) {
		end_round(&play->world);
		serve(play, (uint16_t)(i % 3));
		hear(play);
	}
	for (size_t i = 0; i < CLIENTS; i++)
		assert_int_equal(play->asked[i], 0);
	for (size_t i = 0; i < WORKERS; i++)
		hs_core_drain(play->world.station[i].core, play->world.now, UINT64_MAX);
	for (int i = 0; play->world.count > 0; i++)
		serve(play, (uint16_t)(i % 3));
	for (int i = 0; i < play->store_count; i++) {
		if (hs_is_reserved(hs_bytes_of(play->store[i].name)))
			assert_int_equal(play->store[i].value, 0); /* every copy was removed */
	}
}

static void run(int seed, bool fold, unsigned *made, unsigned *copies, unsigned *again)
{
	static struct play play;
	const char *rule = "k* cache stale=100ms copies=3";

	memset(&play, 0, sizeof play);
	play.seed = seed;
	hs_prng_init(&play.prng, (uint64_t)seed);
	hs_slot_map_fill_even(&play.slots, 3);
	open_world_on(&play.world, rule, &play.slots);
	play.world.options.cache_bytes = 0;
	play.world.options.fold = fold;
	play.world.options.fold_waiters_max = 1000;
	set_rules(&play.world, rule, HS_MITIGATE_ON);
	for (int i = 0; i < KEYS; i++)
		*find(&play, hs_bytes_of(keys[i])) = play.acknowledged[i] = play.written[i] =
			++play.last;
	for (int i = 0; i < STEPS; i++)
		step(&play);
	finish(&play);
	for (size_t i = 0; i < WORKERS; i++) {
		const struct hs_copies_stats *stats =
			hs_core_stage_stats(play.world.station[i].core, &hs_stage_copies);

		*made += (unsigned)counted(&stats->made);
		*copies += (unsigned)counted(&stats->reads);
		*again += (unsigned)counted(&stats->retries);
	}
	assert_true(play.reads > 500);
	close_world(&play.world);
}

static void check(bool fold)
{
	unsigned made = 0, copies = 0, again = 0;

	for (int seed = 1; seed <= SEEDS; seed++)
		run(seed, fold, &made, &copies, &again);
	/* The runs were not idle: copies were made, used and retried often. */
	assert_true(made > SEEDS);
	assert_true(copies > 10 * SEEDS);
	assert_true(again > SEEDS / 2);
}

static void test_any_order(void **state)
{
	(void)state;
	check(false);
}

static void test_any_order_folded(void **state)
{
	(void)state;
	check(true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_any_order),
		cmocka_unit_test(test_any_order_folded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
