/* A randomized model test of absorb/fold: one key with Redis's semantics, clients that send requests for it, and an
 * outside writer that changes it between two batches. Header only, for the unit test (test_fold_random.c) and the
 * fuzz target (fuzz_fold.c). One thread; no engine and no clock.
 *
 * fold_world_run draws a scenario from a source of choices, sends all requests through the fold, and records the
 * order of events: the requests of a batch, one after the other, at the place where the batch ran. Then it
 * replays the events one by one, in that order, on a second key without folding. Every reply and the final key
 * must be the same, and the requests of each client must be in the client's order.
 *
 * Only one order within a batch is accepted, the one that fold.h defines: as sent, or, for the adds of a batch near a
 * limit of int64, first those that lead away from the limit. It is computed here from the key before the batch, with
 * 128-bit numbers. If no outside writer wrote, nothing was run again and no request was overtaken, then the requests
 * replayed in the order in which they were sent (with those batches in their special order) must give the same
 * replies.
 *
 * Words: request: one command of a client. profile: which commands a scenario prefers; near_limit: numbers near a
 * limit of int64. server_state: commands that the server refuses. expected: the order in which a batch must run.
 * reordered: a batch whose order differs from the order of sending. */
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

/* Commands that the server refuses; it runs all others. In scenarios in which INCRBY may be missing no client sends
 * INCRBY itself: the fold answers an INCRBY after a SET of the same batch without asking the server, so it could not
 * know that the command is missing. */
enum fold_server_state {
	FOLD_SERVER_OK,
	FOLD_SERVER_FULL,
	FOLD_SERVER_LOADING,
	FOLD_SERVER_NO_INCRBY,
	FOLD_SERVER_NO_INCRBY_RIGHT,
	FOLD_SERVER_STATES
};

struct fold_key {
	enum fold_type type;
	enum fold_server_state server_state;
	char text[64];
	size_t len;
	int64_t ttl_ms; /* time does not pass here; 0: no expiry */
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

	switch (key->server_state) {
	case FOLD_SERVER_FULL:
		return reads ? NULL : "OOM command not allowed when used memory > 'maxmemory'.";
	case FOLD_SERVER_LOADING:
		return "LOADING Redis is loading the dataset in memory";
	case FOLD_SERVER_NO_INCRBY:
		return id == HS_CMD_ID_INCRBY ? "ERR unknown command 'INCRBY'" : NULL;
	case FOLD_SERVER_NO_INCRBY_RIGHT:
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
	const uint8_t *data; /* NULL: choices come from the generator */
	size_t left;
};

static inline unsigned fold_draw(struct fold_choices *choices, unsigned fixed_dialect)
{
	if (!choices->data)
		return (unsigned)hs_prng_below(&choices->prng, fixed_dialect);
	if (choices->left == 0)
		return 0;
	choices->left--;
	return *choices->data++ % fixed_dialect;
}

/* ---- clients and an outside writer ---- */

enum { FOLD_REQUESTS_MAX = 64, FOLD_CLIENTS_MAX = 16, FOLD_ARGS_MAX = 5, FOLD_EVENTS_MAX = 512 };

struct fold_request {
	struct hs_fold_member
		ask; /* first member; `argv` is overwritten and freed when it is answered */
	struct hs_bytes *argv;
	const char *words[FOLD_ARGS_MAX];
	size_t argc;
	unsigned client;
	int answered;
	struct hs_buf answer;
	struct hs_link retry;
};

struct fold_event {
	int request; /* index of the request; -1: the outside writer */
	unsigned what;
	const char *text;
	enum fold_server_state server_state;
};

/* Totals over many scenarios, so that the test can assert that they covered the interesting cases. */
struct fold_tally {
	size_t members, batches;
	size_t folded;	  /* requests that shared a batch */
	size_t mixed;	  /* batches with positive and negative adds */
	size_t reordered; /* mixed batches in another order than sent, at either limit */
	size_t reordered_low;
};

struct fold_world {
	struct fold_choices choices;
	struct hs_fold fold;
	struct fold_key key, before;
	struct hs_fold_client clients[FOLD_CLIENTS_MAX];
	struct fold_request requests[FOLD_REQUESTS_MAX];
	size_t count, asked;
	struct fold_event events[FOLD_EVENTS_MAX];
	size_t events_count;
	struct hs_link retry;
	bool outside_writes, ran_again, overtaken;
	unsigned server_states; /* upper bound of the server states to draw */
	size_t order
		[FOLD_REQUESTS_MAX]; /* all requests as sent, except batches with a special order */
	size_t expected[FOLD_REQUESTS_MAX]; /* the required order of the batch that runs */
	struct fold_tally tally;
	const char *failure;
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

/* Start values of a number that many clients move up and down, and the steps. */
static const char *const fold_near_limits[] = {
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
enum { FOLD_PROFILE_NEAR_LIMIT = 16, FOLD_PROFILES = 32 };

static inline void fold_say(struct fold_request *request, size_t argc, const char *name,
			    const char *third, const char *fourth, const char *fifth)
{
	request->argc = argc;
	request->words[0] = name;
	request->words[1] = "k";
	request->words[2] = third;
	request->words[3] = fourth;
	request->words[4] = fifth;
}

static inline void fold_draw_request(struct fold_choices *choices, struct fold_request *request,
				     unsigned profile, bool by)
{
	static const char *const reads[] = {"GET",  "get",  "STRLEN", "EXISTS",	 "TTL",
					    "PTTL", "MGET", "TYPE",   "GETRANGE"};
	static const char *const times[] = {"1", "499", "500", "1500", "100000"};
	bool near_limit = profile & FOLD_PROFILE_NEAR_LIMIT;
	unsigned kind = fold_draw(choices, 10);
	const char *number = near_limit
				     ? fold_moves[fold_draw(choices, FOLD_COUNT(fold_moves))]
				     : fold_numbers[fold_draw(choices, FOLD_COUNT(fold_numbers))];

	if (kind < 2 + profile % 3 * 2) {
		const char *name = reads[fold_draw(choices, profile & 4 ? 4 : FOLD_COUNT(reads))];
		bool range = strcmp(name, "GETRANGE") == 0;

		fold_say(request, range ? 4 : 2, name, "0", "1", NULL);
	} else if (kind < 8 || near_limit) {
		switch (fold_draw(choices, profile & 8 ? 2 : 4) & (by ? 3 : 2)) {
		case 0:
			fold_say(request, 2, "INCR", NULL, NULL, NULL);
			break;
		case 1:
			fold_say(request, 3, "INCRBY", number, NULL, NULL);
			break;
		case 2:
			fold_say(request, 2, "decr", NULL, NULL, NULL);
			break;
		case 3:
			fold_say(request, 3, "DECRBY", number, NULL, NULL);
			break;
		}
	} else {
		const char *value = fold_values[fold_draw(choices, FOLD_COUNT(fold_values))];

		switch (fold_draw(choices, 4)) {
		case 0:
			fold_say(request, 5, "SET", value, "px",
				 times[fold_draw(choices, FOLD_COUNT(times))]);
			break;
		case 1:
			fold_say(request, 5, "set", value, "EX",
				 times[fold_draw(choices, FOLD_COUNT(times))]);
			break;
		default:
			fold_say(request, 3, "SET", value, NULL, NULL);
		}
	}
}

static inline void fold_fail(struct fold_world *world, const char *failure)
{
	if (!world->failure)
		world->failure = failure;
}

/* Puts the next request into the queue. */
static inline void fold_queue_next(struct fold_world *world)
{
	struct fold_request *request = &world->requests[world->asked++];

	request->argv = hs_mem_alloc(FOLD_ARGS_MAX * sizeof *request->argv);
	for (size_t i = 0; i < request->argc; i++) {
		size_t len = strlen(request->words[i]);

		request->argv[i] = (struct hs_bytes){hs_mem_dup(request->words[i], len), len};
	}
	request->ask.command = hs_command_find(request->argv[0]);
	request->ask.argv = request->argv;
	request->ask.argc = request->argc;
	request->ask.resp = request->client % 2 ? 2 : 3;
	request->ask.client = &world->clients[request->client];
	if (hs_fold_classify(&request->ask) == HS_FOLD_NOT)
		fold_fail(world, "a request that can be folded is not");
	else
		hs_fold_add(&world->fold, &request->ask);
}

static inline void fold_add_event(struct fold_world *world, struct fold_event event)
{
	hs_check(world->events_count < FOLD_EVENTS_MAX);
	world->events[world->events_count++] = event;
}

/* The request is answered: overwrites and frees its arguments, so that a later use is found. */
static inline void fold_answered(void *context, struct hs_fold_member *ask, struct hs_bytes reply)
{
	struct fold_world *world = context;
	struct fold_request *request = (struct fold_request *)ask;

	if (request->answered++)
		fold_fail(world, "answered twice");
	if (!hs_list_empty(&ask->link))
		fold_fail(world, "answered and still in a list");
	hs_buf_append_bytes(&request->answer, reply);
	fold_add_event(world, (struct fold_event){.request = (int)(request - world->requests)});
	for (size_t i = 0; i < request->argc && request->argv; i++) {
		memset((char *)request->argv[i].data, '#', request->argv[i].len);
		hs_mem_release((char *)request->argv[i].data);
	}
	hs_mem_free(&request->argv);
	ask->argv = NULL;
}

static inline void fold_run_again(void *context, struct hs_fold_member *ask)
{
	struct fold_world *world = context;
	struct fold_request *request = (struct fold_request *)ask;

	world->ran_again = true;
	if (request->answered)
		fold_fail(world, "to be run again, and answered");
	if (!hs_list_empty(&ask->link))
		fold_fail(world, "to be run again and still in a list");
	hs_list_append(&world->retry, &request->retry);
}

static inline void fold_apply_outside_write(struct fold_key *key, const struct fold_event *event)
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
		key->server_state = FOLD_SERVER_OK;
		break;
	case 3:
		key->server_state = event->server_state;
		break;
	default:
		fold_key_put(key, hs_bytes_of(event->text), event->what == 4 ? 0 : 7000);
	}
}

static inline void fold_outside_write(struct fold_world *world)
{
	struct fold_event event = {-1, fold_draw(&world->choices, 8), NULL, FOLD_SERVER_OK};

	event.server_state =
		(enum fold_server_state)fold_draw(&world->choices, world->server_states);
	event.text = fold_values[fold_draw(&world->choices, FOLD_COUNT(fold_values))];
	fold_apply_outside_write(&world->key, &event);
	fold_add_event(world, event);
}

/* ---- checks of a plan ---- */

static inline struct fold_request *fold_request_of(struct hs_link *link)
{
	return (struct fold_request *)hs_list_entry(link, struct hs_fold_member, link);
}

static inline bool fold_fits(fold_wide number)
{
	return number >= INT64_MIN && number <= INT64_MAX;
}

/* Checks the adds of one batch: all adds of a client have the same sign, the sum of amounts stays below 2^62, and the
 * first add would not have fit into the previous batch. `before`: sum of the previous batch; -1: it was no add batch.
 * Returns this batch's sum. */
static inline fold_wide fold_check_adds(struct fold_world *world, struct hs_fold_batch *batch,
					fold_wide before)
{
	const fold_wide limit = (fold_wide)1 << 62;
	fold_wide all = 0, first = -1;
	int signs[FOLD_CLIENTS_MAX] = {0};
	unsigned adds = 0, seen = 0;

	for (struct hs_link *link = batch->members.next; link != &batch->members;
	     link = link->next) {
		struct fold_request *request = fold_request_of(link);
		fold_wide by = request->ask.number;

		if (request->ask.kind != HS_FOLD_ADD)
			continue;
		adds++;
		all += by < 0 ? -by : by;
		first = first < 0 ? all : first;
		signs[request->client] |= by < 0 ? 2 : by > 0;
		seen |= by < 0 ? 2 : by > 0;
		if (signs[request->client] == 3)
			fold_fail(world, "a client with both signs in one batch");
	}
	if (adds > 1 && all >= limit)
		fold_fail(world, "the sum of a batch is too large");
	if (before >= 0 && before + first < limit)
		fold_fail(world, "two batches of adds that could be one");
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
		for (struct hs_link *link = batch->members.next; link != &batch->members;
		     link = link->next) {
			struct fold_request *request = fold_request_of(link);

			if (where[request->client] && where[request->client] != batch)
				fold_fail(world, "a client is in two batches in flight");
			where[request->client] = batch;
			if (request->ask.client->batch || request->ask.client->sign)
				fold_fail(world, "a client's state is left over after the plan");
			if (count > 0 && (size_t)(request - world->requests) < last)
				fold_fail(world, "the requests of a batch are not in order");
			last = (size_t)(request - world->requests);
			count++;
		}
		taken += count;
		world->tally.folded += count > 1 ? count : 0;
		if (count != batch->count || count == 0)
			fold_fail(world, "the count of a batch differs from its list");
	}
	if (taken == 0)
		fold_fail(world, "an empty plan although requests wait");
	for (struct hs_link *link = world->fold.waiting.next; link != &world->fold.waiting;
	     link = link->next) {
		struct fold_request *request = fold_request_of(link);

		world->overtaken = true;
		if (!where[request->client])
			fold_fail(world,
				  "a request was left out although its client is in no batch");
		if (request->ask.client->waits)
			fold_fail(world, "a client is marked as waiting after the plan");
	}
}

/* ---- the expected order ---- */

/* 1 or -1: in the order sent, the batch's adds would pass the upper or the lower limit, but their sum does not. 0: no
 * limit is passed, or the batch will be refused. */
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
	for (struct hs_link *link = batch->members.next; link != &batch->members;
	     link = link->next) {
		number += fold_request_of(link)->ask.number;
		if (!fold_fits(number))
			passed = number;
	}
	return !fold_fits(number) || passed == 0 ? 0 : passed > 0 ? 1 : -1;
}

/* Fills `expected`: first the requests of clients that move the number away from the limit, if one is passed. */
static inline void fold_expect_order(struct fold_world *world, struct hs_fold_batch *batch)
{
	int passed = fold_limit_passed(world, batch);
	bool away[FOLD_CLIENTS_MAX] = {false};
	size_t count = 0, lowest = FOLD_REQUESTS_MAX;

	for (struct hs_link *link = batch->members.next; link != &batch->members;
	     link = link->next) {
		struct fold_request *request = fold_request_of(link);
		size_t index = (size_t)(request - world->requests);

		lowest = index < lowest ? index : lowest;
		if (passed > 0 ? request->ask.number < 0 : passed < 0 && request->ask.number > 0)
			away[request->client] = true;
	}
	for (int turn = 1; turn >= 0; turn--)
		for (struct hs_link *link = batch->members.next; link != &batch->members;
		     link = link->next)
			if (away[fold_request_of(link)->client] == turn)
				world->expected[count++] =
					(size_t)(fold_request_of(link) - world->requests);
	if (passed == 0)
		return;
	world->tally.reordered++;
	world->tally.reordered_low += passed < 0;
	/* The requests of an add batch are adjacent in `order`. */
	memcpy(world->order + lowest, world->expected, count * sizeof *world->expected);
}

/* The requests answered from that event on must be in the expected order; others of the batch may run again. */
static inline void fold_check_order(struct fold_world *world, size_t event, size_t count)
{
	size_t at = 0;

	for (; event < world->events_count; event++, at++) {
		while (at < count && world->expected[at] != (size_t)world->events[event].request)
			at++;
		if (at == count) {
			fold_fail(world, "the requests of a batch ran in an unexpected order");
			return;
		}
	}
}

/* ---- the batches in flight ---- */

static inline void fold_run_plan(struct fold_world *world, struct hs_link *plan)
{
	static const struct hs_fold_calls calls = {fold_answered, fold_run_again};
	struct hs_buf reply = {0}, scratch = {0};

	while (!hs_list_empty(plan)) {
		struct hs_fold_batch *batch = hs_list_entry(plan->next, struct hs_fold_batch, link);
		size_t count = batch->count, event;

		if (world->outside_writes && fold_draw(&world->choices, 4) == 0)
			fold_outside_write(world);
		if (world->asked < world->count && fold_draw(&world->choices, 2))
			fold_queue_next(world);
		reply.len = 0;
		event = world->events_count;
		fold_expect_order(world, batch);
		fold_key_run(&world->key, batch->command, batch->argc, batch->argv, batch->resp,
			     &reply);
		hs_fold_answer(batch, hs_buf_bytes(&reply), &scratch, &calls, world);
		fold_check_order(world, event, count);
		if (!hs_list_empty(&batch->members) || batch->count != 0)
			fold_fail(world, "an answered batch still has requests");
		hs_list_init(&batch->members);
		hs_fold_free(&batch);
	}
	while (!hs_list_empty(&world->retry)) {
		struct fold_request *request =
			hs_list_entry(world->retry.next, struct fold_request, retry);

		hs_list_remove(&request->retry);
		reply.len = 0;
		fold_key_run(&world->key, request->ask.command, request->argc, request->argv,
			     request->ask.resp, &reply);
		fold_answered(world, &request->ask, hs_buf_bytes(&reply));
	}
	hs_buf_deinit(&reply);
	hs_buf_deinit(&scratch);
}

/* ---- the same without folding ---- */

static inline void fold_compare(struct fold_world *world, struct fold_key *key, size_t index)
{
	struct fold_request *request = &world->requests[index];
	struct hs_bytes argv[FOLD_ARGS_MAX] = {{NULL, 0}};
	struct hs_buf reply = {0};

	for (size_t i = 0; i < request->argc; i++)
		argv[i] = hs_bytes_of(request->words[i]);
	fold_key_run(key, request->ask.command, request->argc, argv, request->ask.resp, &reply);
	if (!hs_bytes_equal(hs_buf_bytes(&reply), hs_buf_bytes(&request->answer)))
		fold_fail(world, "a reply differs from the one without folding");
	hs_buf_deinit(&reply);
}

static inline void fold_replay(struct fold_world *world)
{
	struct fold_key key = world->before;
	int last[FOLD_CLIENTS_MAX];

	memset(last, -1, sizeof last);
	for (size_t i = 0; i < world->events_count; i++) {
		const struct fold_event *event = &world->events[i];

		if (event->request < 0) {
			fold_apply_outside_write(&key, event);
			continue;
		}
		if (last[world->requests[event->request].client] >= event->request)
			fold_fail(world, "the requests of a client ran out of order");
		last[world->requests[event->request].client] = event->request;
		fold_compare(world, &key, (size_t)event->request);
	}
	if (!fold_key_same(&key, &world->key))
		fold_fail(world, "the key differs from the one without folding");
	/* Without overtaking, reruns and outside writes, the order of sending must explain all replies, too. */
	if (world->outside_writes || world->ran_again || world->overtaken)
		return;
	key = world->before;
	for (size_t i = 0; i < world->count; i++)
		fold_compare(world, &key, world->order[i]);
	if (!fold_key_same(&key, &world->key))
		fold_fail(world, "the key differs from the one of the expected order");
}

static inline void fold_world_draw(struct fold_world *world)
{
	struct fold_choices *choices = &world->choices;
	unsigned clients = 1 + fold_draw(choices, FOLD_CLIENTS_MAX),
		 profile = fold_draw(choices, FOLD_PROFILES);
	struct fold_event first = {-1, fold_draw(choices, 12), NULL, FOLD_SERVER_OK};

	hs_fold_init(&world->fold);
	hs_list_init(&world->retry);
	world->count = 1 + fold_draw(choices, FOLD_REQUESTS_MAX);
	world->outside_writes = fold_draw(choices, 3) == 0;
	world->server_states = fold_draw(choices, 4) ? FOLD_SERVER_NO_INCRBY : FOLD_SERVER_STATES;
	first.text = fold_values[fold_draw(choices, FOLD_COUNT(fold_values))];
	if (profile & FOLD_PROFILE_NEAR_LIMIT) {
		first.what = 4;
		first.text = fold_near_limits[fold_draw(choices, FOLD_COUNT(fold_near_limits))];
	}
	if (first.what < 8)
		fold_apply_outside_write(&world->key, &first);
	if (fold_draw(choices, 8) == 0)
		world->key.server_state =
			(enum fold_server_state)fold_draw(choices, world->server_states);
	world->before = world->key;
	for (size_t i = 0; i < world->count; i++) {
		world->order[i] = i;
		world->requests[i].client = fold_draw(choices, clients);
		hs_list_init(&world->requests[i].retry);
		fold_draw_request(choices, &world->requests[i], profile,
				  world->server_states == FOLD_SERVER_NO_INCRBY);
	}
}

/* Runs one scenario. Returns NULL, or the first failure. Adds to the tally. */
static inline const char *fold_world_run(struct fold_choices choices, struct fold_tally *tally)
{
	struct fold_world *world = hs_mem_zalloc(sizeof *world);
	const char *failure;

	world->choices = choices;
	fold_world_draw(world);
	while (!world->failure &&
	       (world->asked < world->count || !hs_list_empty(&world->fold.waiting))) {
		unsigned more = fold_draw(&world->choices, 24);
		struct hs_link plan;

		while (world->asked < world->count &&
		       (more-- > 0 || hs_list_empty(&world->fold.waiting))) {
			fold_queue_next(world);
			if (more == 0)
				break;
		}
		hs_list_init(&plan);
		hs_fold_plan(&world->fold, &plan);
		fold_check_plan(world, &plan);
		fold_run_plan(world, &plan);
	}
	for (size_t i = 0; i < world->count && !world->failure; i++)
		if (world->requests[i].answered != 1)
			fold_fail(world, "a request was not answered");
	if (!world->failure)
		fold_replay(world);
	for (size_t i = 0; i < world->count; i++)
		hs_buf_deinit(&world->requests[i].answer);
	tally->members += world->count;
	tally->batches += world->tally.batches;
	tally->folded += world->tally.folded;
	tally->mixed += world->tally.mixed;
	tally->reordered += world->tally.reordered;
	tally->reordered_low += world->tally.reordered_low;
	failure = world->failure;
	hs_mem_free(&world);
	return failure;
}

#endif
