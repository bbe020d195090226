/* A world for folding: one key as Redis keeps it, clients that ask about it, and a stranger who writes
 * it between two batches. Header only, for the unit tests and the fuzz target.
 *
 * fold_world_run draws a world from a source of choices, sends everything through the fold, and notes
 * the order in which things happened: a batch's asks one behind the other where the batch ran. Then it
 * runs the same, one by one in that order, on a second key that knows no folding. Every answer and the
 * key itself must be the same, and a client's asks must be in the order asked.
 *
 * No order will do but the one that fold.h gives: as asked, or as the adds of a batch near a limit must
 * be taken. It is worked out here from the key as it is before the batch runs, in wider numbers. When
 * nobody else wrote and nothing was run again, everything asked, one by one with only those batches in
 * their own order, must give the same answers too. */
#ifndef HS_TESTS_FOLD_WORLD_H
#define HS_TESTS_FOLD_WORLD_H

#include "absorb/fold/fold.h"
#include "base/check.h"
#include "base/mem.h"
#include "base/prng.h"
#include "wire/reply.h"

#include <stdio.h>

__extension__ typedef __int128 fold_wide;

/* ---- the key ---- */

enum fold_type { FOLD_NOTHING, FOLD_STRING, FOLD_LIST };

/* What the server does not do; everything else it does. In a world that may come to be without INCRBY
 * nobody asks for it: who has a SET before it is answered without asking whether there is one. */
enum fold_mood {
	FOLD_WELL,
	FOLD_FULL,
	FOLD_LOADING,
	FOLD_NO_INCRBY,
	FOLD_NO_INCRBY_RIGHT,
	FOLD_MOODS
};

struct fold_key {
	enum fold_type type;
	enum fold_mood mood;
	char text[64];
	size_t len;
	int64_t ttl_ms; /* time stands still; 0: for ever */
};

static inline void fold_key_put(struct fold_key *key, struct hs_bytes text, int64_t ttl_ms)
{
	hs_check(text.len <= sizeof key->text);
	key->type = FOLD_STRING;
	key->len = text.len;
	if (text.len)
		memcpy(key->text, text.data, text.len);
	key->ttl_ms = ttl_ms;
}

static inline void fold_key_add(struct fold_key *key, int64_t by, struct hs_reply *reply)
{
	int64_t value = 0;
	char text[HS_NUM_TEXT_MAX];

	if (key->type == FOLD_LIST)
		hs_reply_error(reply, "WRONGTYPE Operation against a key holding the wrong kind of "
				      "value");
	else if (key->type == FOLD_STRING &&
		 !hs_num_parse_int((struct hs_bytes){key->text, key->len}, &value))
		hs_reply_error(reply, "ERR value is not an integer or out of range");
	else if (by > 0 ? value > INT64_MAX - by : value < INT64_MIN - by)
		hs_reply_error(reply, "ERR increment or decrement would overflow");
	else {
		value += by;
		fold_key_put(key, (struct hs_bytes){text, hs_num_format_int(value, text)},
			     key->type == FOLD_STRING ? key->ttl_ms : 0);
		hs_reply_int(reply, value);
	}
}

static inline int64_t fold_number(struct hs_bytes text)
{
	int64_t number = 0;

	hs_check(hs_num_parse_int(text, &number));
	return number;
}

static inline const char *fold_key_refusal(const struct fold_key *key, enum hs_command_id id)
{
	bool reads = hs_command_by_id(id)->flags & HS_CMD_READONLY;

	switch (key->mood) {
	case FOLD_FULL:
		return reads ? NULL : "OOM command not allowed when used memory > 'maxmemory'.";
	case FOLD_LOADING:
		return "LOADING Redis is loading the dataset in memory";
	case FOLD_NO_INCRBY:
		return id == HS_CMD_ID_INCRBY ? "ERR unknown command 'INCRBY'" : NULL;
	case FOLD_NO_INCRBY_RIGHT:
		return id == HS_CMD_ID_INCRBY ? "NOPERM no permission to run 'incrby'" : NULL;
	default:
		return NULL;
	}
}

static inline void fold_key_read(const struct fold_key *key, enum hs_command_id id,
				 struct hs_reply *reply)
{
	struct hs_bytes text = {key->text, key->len};

	if (id == HS_CMD_ID_EXISTS)
		hs_reply_int(reply, key->type != FOLD_NOTHING);
	else if (id == HS_CMD_ID_TYPE)
		hs_reply_status(reply, key->type == FOLD_NOTHING  ? "none"
				       : key->type == FOLD_STRING ? "string"
								  : "list");
	else if (id == HS_CMD_ID_TTL || id == HS_CMD_ID_PTTL) {
		int64_t ms = key->type == FOLD_NOTHING ? -2 : key->ttl_ms > 0 ? key->ttl_ms : -1;

		hs_reply_int(reply, ms < 0 || id == HS_CMD_ID_PTTL ? ms : (ms + 500) / 1000);
	} else if (id == HS_CMD_ID_MGET) {
		hs_reply_array(reply, 1);
		if (key->type == FOLD_STRING)
			hs_reply_bulk(reply, text);
		else
			hs_reply_null(reply);
	} else if (key->type == FOLD_LIST)
		hs_reply_error(reply, "WRONGTYPE Operation against a key holding the wrong kind of "
				      "value");
	else if (id == HS_CMD_ID_STRLEN)
		hs_reply_int(reply, key->type == FOLD_NOTHING ? 0 : (int64_t)key->len);
	else if (id == HS_CMD_ID_GETRANGE) /* with 0 1 only */
		hs_reply_bulk(reply, (struct hs_bytes){key->text, key->type == FOLD_NOTHING ? 0
								  : key->len < 2 ? key->len
										 : 2});
	else if (key->type == FOLD_NOTHING) /* GET */
		hs_reply_null(reply);
	else
		hs_reply_bulk(reply, text);
}

static inline void fold_key_run(struct fold_key *key, const struct hs_command *command, size_t argc,
				const struct hs_bytes *argv, int resp, struct hs_buf *out)
{
	struct hs_reply reply = {.out = out, .resp = resp};
	const char *refusal = fold_key_refusal(key, command->id);

	if (refusal) {
		hs_reply_error(&reply, refusal);
		return;
	}
	switch ((int)command->id) {
	case HS_CMD_ID_INCR:
		fold_key_add(key, 1, &reply);
		break;
	case HS_CMD_ID_DECR:
		fold_key_add(key, -1, &reply);
		break;
	case HS_CMD_ID_INCRBY:
		fold_key_add(key, fold_number(argv[2]), &reply);
		break;
	case HS_CMD_ID_DECRBY:
		fold_key_add(key, -fold_number(argv[2]), &reply);
		break;
	case HS_CMD_ID_SET:
		fold_key_put(key, argv[2],
			     argc == 3 ? 0
				       : fold_number(argv[4]) *
						 (hs_bytes_is_word(argv[3], "ex") ? 1000 : 1));
		hs_reply_ok(&reply);
		break;
	default:
		fold_key_read(key, command->id, &reply);
	}
}

static inline bool fold_key_same(const struct fold_key *a, const struct fold_key *b)
{
	if (a->type != b->type)
		return false;
	return a->type != FOLD_STRING || (a->ttl_ms == b->ttl_ms && a->len == b->len &&
					  memcmp(a->text, b->text, a->len) == 0);
}

/* ---- choices ---- */

struct fold_choices {
	struct hs_prng prng;
	const uint8_t *data; /* NULL: from the generator */
	size_t left;
};

static inline unsigned fold_draw(struct fold_choices *choices, unsigned bound)
{
	if (!choices->data)
		return (unsigned)hs_prng_below(&choices->prng, bound);
	if (choices->left == 0)
		return 0;
	choices->left--;
	return *choices->data++ % bound;
}

/* ---- clients and a stranger ---- */

enum { FOLD_ASKS_MAX = 64, FOLD_CLIENTS_MAX = 16, FOLD_ARGS_MAX = 5, FOLD_EVENTS_MAX = 512 };

struct fold_asker {
	struct hs_fold_member
		ask; /* first; its arguments are ours until it is answered, then poison */
	struct hs_bytes *argv;
	const char *said[FOLD_ARGS_MAX];
	size_t argc;
	unsigned client;
	int answered;
	struct hs_buf answer;
	struct hs_link again;
};

struct fold_event {
	int asker; /* -1: the stranger's */
	unsigned what;
	const char *text;
	enum fold_mood mood;
};

/* What many worlds were like: those in which nothing happens would prove nothing. */
struct fold_tally {
	size_t asks, batches;
	size_t folded; /* asks that shared a batch */
	size_t mixed;  /* batches that add and take away */
	size_t turned; /* of them those whose order is not the order asked, at either limit */
	size_t turned_low;
};

struct fold_world {
	struct fold_choices choices;
	struct hs_fold fold;
	struct fold_key key, before;
	struct hs_fold_client clients[FOLD_CLIENTS_MAX];
	struct fold_asker askers[FOLD_ASKS_MAX];
	size_t count, asked;
	struct fold_event events[FOLD_EVENTS_MAX];
	size_t events_count;
	struct hs_link again;
	bool strangers, ran_again, went_by;
	unsigned moods;		     /* up to which the server may come into */
	size_t order[FOLD_ASKS_MAX]; /* of all asks: as asked, but for batches with their own */
	size_t due[FOLD_ASKS_MAX];   /* the order of the batch that runs */
	struct fold_tally tally;
	const char *wrong;
};

#define FOLD_COUNT(table) (sizeof(table) / sizeof(table)[0])

static const char *const fold_values[] = {
	"0",
	"1",
	"41",
	"-7",
	"9223372036854775807",
	"9223372036854775806",
	"-9223372036854775808",
	"-9223372036854775807",
	"9223372036854775805",
	"-9223372036854775806",
	"4611686018427387905",
	"-4611686018427387906",
	"9223372036854775808",
	"",
	"abc",
	"007",
	"-0",
	"+1",
	" 1",
	"1 ",
	"1.5",
	"a text of some length, but not much",
};
static const char *const fold_numbers[] = {
	"0",
	"1",
	"-1",
	"2",
	"1000000",
	"-3",
	"9223372036854775807",
	"-9223372036854775807",
	"4611686018427387904",
	"-4611686018427387905",
	"4611686018427387902",
	"-4611686018427387901",
	"2305843009213693952",
	"9223372036854775800",
};

/* Where a number starts that many move up and down, and by how much. */
static const char *const fold_brinks[] = {
	"9223372036854775807",
	"9223372036854775805",
	"-9223372036854775808",
	"-9223372036854775806",
	"4611686018427387905",
	"-4611686018427387906",
	"0",
	"9223372036854775790",
};
static const char *const fold_moves[] = {"0", "1",  "-1", "2",
					 "5", "-5", "-3", "2305843009213693951"};
enum { FOLD_TASTE_GAUGE = 16, FOLD_TASTES = 32 };

static inline void fold_say(struct fold_asker *asker, size_t argc, const char *name,
			    const char *third, const char *fourth, const char *fifth)
{
	asker->argc = argc;
	asker->said[0] = name;
	asker->said[1] = "k";
	asker->said[2] = third;
	asker->said[3] = fourth;
	asker->said[4] = fifth;
}

static inline void fold_draw_ask(struct fold_choices *choices, struct fold_asker *asker,
				 unsigned taste, bool by)
{
	static const char *const reads[] = {"GET",  "get",  "STRLEN", "EXISTS",	 "TTL",
					    "PTTL", "MGET", "TYPE",   "GETRANGE"};
	static const char *const times[] = {"1", "499", "500", "1500", "100000"};
	bool gauge = taste & FOLD_TASTE_GAUGE;
	unsigned kind = fold_draw(choices, 10);
	const char *number = gauge ? fold_moves[fold_draw(choices, FOLD_COUNT(fold_moves))]
				   : fold_numbers[fold_draw(choices, FOLD_COUNT(fold_numbers))];

	if (kind < 2 + taste % 3 * 2) {
		const char *name = reads[fold_draw(choices, taste & 4 ? 4 : FOLD_COUNT(reads))];
		bool range = strcmp(name, "GETRANGE") == 0;

		fold_say(asker, range ? 4 : 2, name, "0", "1", NULL);
	} else if (kind < 8 || gauge) {
		switch (fold_draw(choices, taste & 8 ? 2 : 4) & (by ? 3 : 2)) {
		case 0:
			fold_say(asker, 2, "INCR", NULL, NULL, NULL);
			break;
		case 1:
			fold_say(asker, 3, "INCRBY", number, NULL, NULL);
			break;
		case 2:
			fold_say(asker, 2, "decr", NULL, NULL, NULL);
			break;
		case 3:
			fold_say(asker, 3, "DECRBY", number, NULL, NULL);
			break;
		}
	} else {
		const char *value = fold_values[fold_draw(choices, FOLD_COUNT(fold_values))];

		switch (fold_draw(choices, 4)) {
		case 0:
			fold_say(asker, 5, "SET", value, "px",
				 times[fold_draw(choices, FOLD_COUNT(times))]);
			break;
		case 1:
			fold_say(asker, 5, "set", value, "EX",
				 times[fold_draw(choices, FOLD_COUNT(times))]);
			break;
		default:
			fold_say(asker, 3, "SET", value, NULL, NULL);
		}
	}
}

static inline void fold_complain(struct fold_world *world, const char *wrong)
{
	if (!world->wrong)
		world->wrong = wrong;
}

/* Puts the next ask into the queue. */
static inline void fold_ask_next(struct fold_world *world)
{
	struct fold_asker *asker = &world->askers[world->asked++];

	asker->argv = hs_mem_alloc(FOLD_ARGS_MAX * sizeof *asker->argv);
	for (size_t i = 0; i < asker->argc; i++) {
		size_t len = strlen(asker->said[i]);

		asker->argv[i] = (struct hs_bytes){hs_mem_dup(asker->said[i], len), len};
	}
	asker->ask.command = hs_command_find(asker->argv[0]);
	asker->ask.argv = asker->argv;
	asker->ask.argc = asker->argc;
	asker->ask.resp = asker->client % 2 ? 2 : 3;
	asker->ask.client = &world->clients[asker->client];
	if (hs_fold_classify(&asker->ask) == HS_FOLD_NOT)
		fold_complain(world, "an ask that could be folded is not");
	else
		hs_fold_add(&world->fold, &asker->ask);
}

static inline void fold_happened(struct fold_world *world, struct fold_event event)
{
	hs_check(world->events_count < FOLD_EVENTS_MAX);
	world->events[world->events_count++] = event;
}

/* Answered: its arguments are gone from here on. */
static inline void fold_answered(void *context, struct hs_fold_member *ask, struct hs_bytes reply)
{
	struct fold_world *world = context;
	struct fold_asker *asker = (struct fold_asker *)ask;

	if (asker->answered++)
		fold_complain(world, "answered twice");
	if (!hs_list_empty(&ask->link))
		fold_complain(world, "answered and still in a list");
	hs_buf_append_bytes(&asker->answer, reply);
	fold_happened(world, (struct fold_event){.asker = (int)(asker - world->askers)});
	for (size_t i = 0; i < asker->argc && asker->argv; i++) {
		memset((char *)asker->argv[i].data, '#', asker->argv[i].len);
		hs_mem_release((char *)asker->argv[i].data);
	}
	hs_mem_free(&asker->argv);
	ask->argv = NULL;
}

static inline void fold_run_again(void *context, struct hs_fold_member *ask)
{
	struct fold_world *world = context;
	struct fold_asker *asker = (struct fold_asker *)ask;

	world->ran_again = true;
	if (asker->answered)
		fold_complain(world, "to be run again, and answered");
	if (!hs_list_empty(&ask->link))
		fold_complain(world, "to be run again and still in a list");
	hs_list_append(&world->again, &asker->again);
}

static inline void fold_stranger_writes(struct fold_key *key, const struct fold_event *event)
{
	switch (event->what) {
	case 0:
		key->type = FOLD_NOTHING;
		break;
	case 1:
		key->type = FOLD_LIST;
		key->ttl_ms = 0;
		break;
	case 2:
		key->mood = FOLD_WELL;
		break;
	case 3:
		key->mood = event->mood;
		break;
	default:
		fold_key_put(key, hs_bytes_of(event->text), event->what == 4 ? 0 : 7000);
	}
}

static inline void fold_stranger(struct fold_world *world)
{
	struct fold_event event = {-1, fold_draw(&world->choices, 8), NULL, FOLD_WELL};

	event.mood = (enum fold_mood)fold_draw(&world->choices, world->moods);
	event.text = fold_values[fold_draw(&world->choices, FOLD_COUNT(fold_values))];
	fold_stranger_writes(&world->key, &event);
	fold_happened(world, event);
}

/* ---- what a plan must be ---- */

static inline struct fold_asker *fold_asker_of(struct hs_link *link)
{
	return (struct fold_asker *)hs_list_entry(link, struct hs_fold_member, link);
}

static inline bool fold_fits(fold_wide number)
{
	return number >= INT64_MIN && number <= INT64_MAX;
}

/* The adds of a batch: each client's of one sign, not too much in all; and none that had room in the
 * batch before, which is an add's too and has this much in it, or is not (-1). Returns how much. */
static inline fold_wide fold_check_adds(struct fold_world *world, struct hs_fold_batch *batch,
					fold_wide before)
{
	const fold_wide limit = (fold_wide)1 << 62;
	fold_wide all = 0, first = -1;
	int signs[FOLD_CLIENTS_MAX] = {0};
	unsigned adds = 0, seen = 0;

	for (struct hs_link *link = batch->asks.next; link != &batch->asks; link = link->next) {
		struct fold_asker *asker = fold_asker_of(link);
		fold_wide by = asker->ask.number;

		if (asker->ask.kind != HS_FOLD_ADD)
			continue;
		adds++;
		all += by < 0 ? -by : by;
		first = first < 0 ? all : first;
		signs[asker->client] |= by < 0 ? 2 : by > 0;
		seen |= by < 0 ? 2 : by > 0;
		if (signs[asker->client] == 3)
			fold_complain(world, "a client with both signs in one batch");
	}
	if (adds > 1 && all >= limit)
		fold_complain(world, "a batch reaches too far");
	if (before >= 0 && before + first < limit)
		fold_complain(world, "two batches of adds that could be one");
	world->tally.mixed += seen == 3;
	return all;
}

static inline void fold_check_plan(struct fold_world *world, struct hs_link *plan)
{
	const struct hs_fold_batch *where[FOLD_CLIENTS_MAX] = {0};
	fold_wide added = -1;
	size_t last = 0, taken = 0;

	for (struct hs_link *at = plan->next; at != plan; at = at->next) {
		struct hs_fold_batch *batch = hs_list_entry(at, struct hs_fold_batch, link);
		size_t count = 0;

		world->tally.batches++;
		added = batch->kind == HS_FOLD_ADD ? fold_check_adds(world, batch, added) : -1;
		for (struct hs_link *link = batch->asks.next; link != &batch->asks;
		     link = link->next) {
			struct fold_asker *asker = fold_asker_of(link);

			if (where[asker->client] && where[asker->client] != batch)
				fold_complain(world, "a client in two batches of a flight");
			where[asker->client] = batch;
			if (asker->ask.client->batch || asker->ask.client->sign)
				fold_complain(world, "a client's place outlives the plan");
			if (count > 0 && (size_t)(asker - world->askers) < last)
				fold_complain(world, "a batch's asks are not in order");
			last = (size_t)(asker - world->askers);
			count++;
		}
		taken += count;
		world->tally.folded += count > 1 ? count : 0;
		if (count != batch->count || count == 0)
			fold_complain(world, "a batch's count is not that of its asks");
	}
	if (taken == 0)
		fold_complain(world, "a plan without asks although some wait");
	for (struct hs_link *link = world->fold.waiting.next; link != &world->fold.waiting;
	     link = link->next) {
		struct fold_asker *asker = fold_asker_of(link);

		world->went_by = true;
		if (!where[asker->client])
			fold_complain(world, "an ask was left although its client is in no batch");
		if (asker->ask.client->waits)
			fold_complain(world, "a client waits longer than for the plan");
	}
}

/* ---- the order that is due ---- */

/* The limit that a batch's adds pass in the order asked, 1 or -1, when all together they do not; 0:
 * none, or the batch will be refused. */
static inline int fold_limit_passed(const struct fold_world *world, struct hs_fold_batch *batch)
{
	fold_wide number, passed = 0;
	int64_t value = 0;

	if (batch->kind != HS_FOLD_ADD || fold_key_refusal(&world->key, batch->command->id) ||
	    world->key.type == FOLD_LIST)
		return 0;
	if (world->key.type == FOLD_STRING &&
	    !hs_num_parse_int((struct hs_bytes){world->key.text, world->key.len}, &value))
		return 0;
	number = value;
	for (struct hs_link *link = batch->asks.next; link != &batch->asks; link = link->next) {
		number += fold_asker_of(link)->ask.number;
		if (!fold_fits(number))
			passed = number;
	}
	return !fold_fits(number) || passed == 0 ? 0 : passed > 0 ? 1 : -1;
}

/* Fills `due`: first the asks of clients who move the number away from the limit, if there is one. */
static inline void fold_work_out_order(struct fold_world *world, struct hs_fold_batch *batch)
{
	int passed = fold_limit_passed(world, batch);
	bool away[FOLD_CLIENTS_MAX] = {false};
	size_t count = 0, lowest = FOLD_ASKS_MAX;

	for (struct hs_link *link = batch->asks.next; link != &batch->asks; link = link->next) {
		struct fold_asker *asker = fold_asker_of(link);
		size_t index = (size_t)(asker - world->askers);

		lowest = index < lowest ? index : lowest;
		if (passed > 0 ? asker->ask.number < 0 : passed < 0 && asker->ask.number > 0)
			away[asker->client] = true;
	}
	for (int turn = 1; turn >= 0; turn--)
		for (struct hs_link *link = batch->asks.next; link != &batch->asks;
		     link = link->next)
			if (away[fold_asker_of(link)->client] == turn)
				world->due[count++] = (size_t)(fold_asker_of(link) - world->askers);
	if (passed == 0)
		return;
	world->tally.turned++;
	world->tally.turned_low += passed < 0;
	/* The asks of an add batch stand together. */
	memcpy(world->order + lowest, world->due, count * sizeof *world->due);
}

/* What was answered, from that event on, is in the order due; something else may run again. */
static inline void fold_check_order(struct fold_world *world, size_t event, size_t count)
{
	size_t at = 0;

	for (; event < world->events_count; event++, at++) {
		while (at < count && world->due[at] != (size_t)world->events[event].asker)
			at++;
		if (at == count) {
			fold_complain(world, "a batch's asks were not run in the order due");
			return;
		}
	}
}

/* ---- one flight ---- */

static inline void fold_run_steps(struct fold_world *world, struct hs_link *plan)
{
	static const struct hs_fold_calls calls = {fold_answered, fold_run_again};
	struct hs_buf reply = {0}, scratch = {0};

	while (!hs_list_empty(plan)) {
		struct hs_fold_batch *batch = hs_list_entry(plan->next, struct hs_fold_batch, link);
		size_t count = batch->count, event;

		if (world->strangers && fold_draw(&world->choices, 4) == 0)
			fold_stranger(world);
		if (world->asked < world->count && fold_draw(&world->choices, 2))
			fold_ask_next(world);
		reply.len = 0;
		event = world->events_count;
		fold_work_out_order(world, batch);
		fold_key_run(&world->key, batch->command, batch->argc, batch->argv, batch->resp,
			     &reply);
		hs_fold_answer(batch, hs_buf_bytes(&reply), &scratch, &calls, world);
		fold_check_order(world, event, count);
		if (!hs_list_empty(&batch->asks) || batch->count != 0)
			fold_complain(world, "asks are left in an answered batch");
		hs_list_init(&batch->asks);
		hs_fold_free(&batch);
	}
	while (!hs_list_empty(&world->again)) {
		struct fold_asker *asker =
			hs_list_entry(world->again.next, struct fold_asker, again);

		hs_list_remove(&asker->again);
		reply.len = 0;
		fold_key_run(&world->key, asker->ask.command, asker->argc, asker->argv,
			     asker->ask.resp, &reply);
		fold_answered(world, &asker->ask, hs_buf_bytes(&reply));
	}
	hs_buf_deinit(&reply);
	hs_buf_deinit(&scratch);
}

/* ---- the same without folding ---- */

static inline void fold_compare(struct fold_world *world, struct fold_key *key, size_t index)
{
	struct fold_asker *asker = &world->askers[index];
	struct hs_bytes argv[FOLD_ARGS_MAX] = {{NULL, 0}};
	struct hs_buf reply = {0};

	for (size_t i = 0; i < asker->argc; i++)
		argv[i] = hs_bytes_of(asker->said[i]);
	fold_key_run(key, asker->ask.command, asker->argc, argv, asker->ask.resp, &reply);
	if (!hs_bytes_equal(hs_buf_bytes(&reply), hs_buf_bytes(&asker->answer)))
		fold_complain(world, "an answer is not what it would have been alone");
	hs_buf_deinit(&reply);
}

static inline void fold_replay(struct fold_world *world)
{
	struct fold_key key = world->before;
	int last[FOLD_CLIENTS_MAX];

	memset(last, -1, sizeof last);
	for (size_t i = 0; i < world->events_count; i++) {
		const struct fold_event *event = &world->events[i];

		if (event->asker < 0) {
			fold_stranger_writes(&key, event);
			continue;
		}
		if (last[world->askers[event->asker].client] >= event->asker)
			fold_complain(world, "a client's asks were not run in its order");
		last[world->askers[event->asker].client] = event->asker;
		fold_compare(world, &key, (size_t)event->asker);
	}
	if (!fold_key_same(&key, &world->key))
		fold_complain(world, "the key is not what it would have been");
	/* The order asked is only one's own. But where nobody had to wait it is everybody's. */
	if (world->strangers || world->ran_again || world->went_by)
		return;
	key = world->before;
	for (size_t i = 0; i < world->count; i++)
		fold_compare(world, &key, world->order[i]);
	if (!fold_key_same(&key, &world->key))
		fold_complain(world, "the key is not what the order due makes of it");
}

static inline void fold_world_draw(struct fold_world *world)
{
	struct fold_choices *choices = &world->choices;
	unsigned clients = 1 + fold_draw(choices, FOLD_CLIENTS_MAX),
		 taste = fold_draw(choices, FOLD_TASTES);
	struct fold_event first = {-1, fold_draw(choices, 12), NULL, FOLD_WELL};

	hs_fold_init(&world->fold);
	hs_list_init(&world->again);
	world->count = 1 + fold_draw(choices, FOLD_ASKS_MAX);
	world->strangers = fold_draw(choices, 3) == 0;
	world->moods = fold_draw(choices, 4) ? FOLD_NO_INCRBY : FOLD_MOODS;
	first.text = fold_values[fold_draw(choices, FOLD_COUNT(fold_values))];
	if (taste & FOLD_TASTE_GAUGE) {
		first.what = 4;
		first.text = fold_brinks[fold_draw(choices, FOLD_COUNT(fold_brinks))];
	}
	if (first.what < 8)
		fold_stranger_writes(&world->key, &first);
	if (fold_draw(choices, 8) == 0)
		world->key.mood = (enum fold_mood)fold_draw(choices, world->moods);
	world->before = world->key;
	for (size_t i = 0; i < world->count; i++) {
		world->order[i] = i;
		world->askers[i].client = fold_draw(choices, clients);
		hs_list_init(&world->askers[i].again);
		fold_draw_ask(choices, &world->askers[i], taste, world->moods == FOLD_NO_INCRBY);
	}
}

/* NULL when all was well, or what was wrong. Adds to the tally. */
static inline const char *fold_world_run(struct fold_choices choices, struct fold_tally *tally)
{
	struct fold_world *world = hs_mem_zalloc(sizeof *world);
	const char *wrong;

	world->choices = choices;
	fold_world_draw(world);
	while (!world->wrong &&
	       (world->asked < world->count || !hs_list_empty(&world->fold.waiting))) {
		unsigned more = fold_draw(&world->choices, 24);
		struct hs_link plan;

		while (world->asked < world->count &&
		       (more-- > 0 || hs_list_empty(&world->fold.waiting))) {
			fold_ask_next(world);
			if (more == 0)
				break;
		}
		hs_list_init(&plan);
		hs_fold_plan(&world->fold, &plan);
		fold_check_plan(world, &plan);
		fold_run_steps(world, &plan);
	}
	for (size_t i = 0; i < world->count && !world->wrong; i++)
		if (world->askers[i].answered != 1)
			fold_complain(world, "somebody was not answered");
	if (!world->wrong)
		fold_replay(world);
	for (size_t i = 0; i < world->count; i++)
		hs_buf_deinit(&world->askers[i].answer);
	tally->asks += world->count;
	tally->batches += world->tally.batches;
	tally->folded += world->tally.folded;
	tally->mixed += world->tally.mixed;
	tally->turned += world->tally.turned;
	tally->turned_low += world->tally.turned_low;
	wrong = world->wrong;
	hs_mem_free(&world);
	return wrong;
}

#endif
