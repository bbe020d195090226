/* `--command all`: every command for a key that holds an integer, drawn from a table and mixed on few keys. Most acts
 * are one request and one operation. MGET and MSET have two keys: two operations in the history. A transaction is two
 * to three operations on one key that happen atomically. A watched increment watches and reads a key, and its next
 * requests are a transaction that depends on the value read:
 *
 *     … WATCH k, GET k ─ replies ─ MULTI, SET k value+1, EXEC, …
 *
 * If EXEC succeeds, the key still held the value read; if EXEC replies null, the transaction did nothing.
 *
 * Every value is written only once, and values are far apart: so a reply tells which write it saw, and how many
 * increments after it. */
#include "cli/storm_history.h"

#include "base/num.h"
#include "base/slot.h"
#include "wire/compose.h"

#include <inttypes.h>

#define SCRIPT "return(redis.call('incrby',KEYS[1],ARGV[1]))"
enum { VALUE_STEP = 1000000, DELTA_MAX = 999, NAME_BYTES = HS_STORM_PREFIX_MAX + 64 };

struct act {
	const char *words; /* k: the key, v: a new value, d: what is added */
	unsigned weight;   /* relative frequency */
	enum hs_sim_kind kind;
	enum hs_storm_form form;
	bool read;
	bool single;	 /* never part of a transaction */
	int sign;	 /* sign of what is added; 0: it adds nothing */
	unsigned ttl_ms; /* TTL of what it sets; 0: none */
};

/* clang-format off */

/* Acts that are one operation. The others combine them, or have their own function. */
#define SINGLES(ROW) \
	ROW(ACT_GET, "GET k", 20, HS_SIM_GET, HS_STORM_FORM_VALUE, .read = true) \
	ROW(ACT_EXISTS, "EXISTS k", 4, HS_SIM_EXISTS, HS_STORM_FORM_NUMBER, .read = true) \
	ROW(ACT_STRLEN, "STRLEN k", 4, HS_SIM_STRLEN, HS_STORM_FORM_NUMBER, .read = true) \
	ROW(ACT_TTL, "TTL k", 2, HS_SIM_TTL, HS_STORM_FORM_NUMBER, .read = true) \
	ROW(ACT_PTTL, "PTTL k", 1, HS_SIM_PTTL, HS_STORM_FORM_NUMBER, .read = true) \
	ROW(ACT_SET, "SET k v", 5, HS_SIM_SET, HS_STORM_FORM_OK) \
	ROW(ACT_SET_EX, "SET k v EX 10000", 2, HS_SIM_SET, HS_STORM_FORM_OK, .ttl_ms = 10000000) \
	ROW(ACT_SET_PX, "SET k v PX 20000000", 2, HS_SIM_SET, HS_STORM_FORM_OK, .ttl_ms = 20000000) \
	ROW(ACT_SET_NX, "SET k v NX", 2, HS_SIM_SETNX, HS_STORM_FORM_OK_NOT) \
	ROW(ACT_SET_XX, "SET k v XX", 2, HS_SIM_SETXX, HS_STORM_FORM_OK_NOT) \
	ROW(ACT_GETSET, "GETSET k v", 2, HS_SIM_GETSET, HS_STORM_FORM_VALUE) \
	ROW(ACT_GETDEL, "GETDEL k", 1, HS_SIM_GETDEL, HS_STORM_FORM_VALUE) \
	ROW(ACT_DEL, "DEL k", 1, HS_SIM_DEL, HS_STORM_FORM_NUMBER) \
	ROW(ACT_INCR, "INCR k", 20, HS_SIM_INCRBY, HS_STORM_FORM_NUMBER, .sign = 1) \
	ROW(ACT_DECR, "DECR k", 3, HS_SIM_INCRBY, HS_STORM_FORM_NUMBER, .sign = -1) \
	ROW(ACT_INCRBY, "INCRBY k d", 8, HS_SIM_INCRBY, HS_STORM_FORM_NUMBER, .sign = 1) \
	ROW(ACT_DECRBY, "DECRBY k d", 4, HS_SIM_INCRBY, HS_STORM_FORM_NUMBER, .sign = -1) \
	ROW(ACT_EVAL, "EVAL " SCRIPT " 1 k d", 4, HS_SIM_INCRBY, HS_STORM_FORM_NUMBER, \
	    .single = true, .sign = 1)

enum {
	SINGLES(HS_COUNTER_INDEX)
	ACTS,
	ACT_MGET = ACTS, /* from here on: more than one operation */
	ACT_MSET,
	ACT_TRANSACTION,
	ACT_WATCHED,
	ACTS_ALL,
};

#define ACT(number, words_, weight_, kind_, form_, ...) \
	[number] = {.words = (words_), .weight = (weight_), .kind = (kind_), .form = (form_), __VA_ARGS__},

static const struct act acts[ACTS_ALL] = {
	SINGLES(ACT)
	[ACT_MGET] = {"MGET k k", 4, .read = true},
	[ACT_MSET] = {"MSET k v k v", 2, .read = false},
	[ACT_TRANSACTION] = {.weight = 4},
	[ACT_WATCHED] = {.weight = 4},
};

/* clang-format on */

/* ---- drawing ---- */

static unsigned draw(struct hs_storm_worker *worker)
{
	unsigned all = 0, act = 0;
	uint64_t at;

	for (unsigned i = 0; i < ACTS_ALL; i++)
		all += acts[i].weight;
	for (at = hs_prng_below(&worker->prng, all); at >= acts[act].weight; act++)
		at -= acts[act].weight;
	return worker->acts_missing >> act & 1 ? ACT_GET : act;
}

/* ---- composing ---- */

struct composing {
	struct hs_storm_worker *worker;
	struct hs_storm_client *client;
	uint64_t now_ns;
	uint64_t requests;
	/* The key of the next requests. Of the second key of MGET and MSET only the name is here. */
	uint64_t key;
	uint16_t slot;
	char names[2][NAME_BYTES];
};

static void name_key(const struct hs_storm_worker *worker, uint64_t key, char *name)
{
	if (worker->history)
		hs_storm_history_name(worker->history, key, name, NAME_BYTES);
	else if (worker->cluster)
		snprintf(name, NAME_BYTES, "%s{%" PRIu64 "}:%" PRIu64, worker->options->prefix,
			 key / HS_STORM_TAG_KEYS, key);
	else
		hs_storm_key_text(worker->options, key, false, name, NAME_BYTES);
}

/* Sets the key of the next requests. */
static void aim(struct composing *to, uint64_t key)
{
	to->key = key;
	name_key(to->worker, key, to->names[0]);
	if (to->worker->cluster)
		to->slot = hs_slot_of(hs_bytes_of(to->names[0]));
}

static struct hs_storm_request *add_request(struct composing *to, unsigned act,
					    enum hs_storm_reply_shape reply_shape)
{
	struct hs_storm_request *request = hs_storm_client_add(to->client, to->slot);

	*request = (struct hs_storm_request){.kind = HS_STORM_ACT,
					     .due_ns = to->now_ns,
					     .key = to->key,
					     .other_key = (uint32_t)to->key,
					     .act = (uint8_t)act,
					     .reply_shape = (uint8_t)reply_shape,
					     .read = acts[act].read};
	to->requests++;
	return request;
}

/* Composes the request that was just added. Each k becomes the next name, each v and d the next number. */
static void append(struct composing *to, const char *words, const int64_t *numbers)
{
	struct hs_buf *out = to->client->out;
	size_t count = 1, keys = 0;

	for (const char *at = words; *at; at++)
		count += *at == ' ';
	hs_compose_header(out, count);
	while (count-- > 0) {
		struct hs_bytes word = {words, strcspn(words, " ")};
		char number[HS_NUM_TEXT_MAX];

		words += word.len + 1;
		if (hs_bytes_equal(word, HS_LIT("k")))
			word = hs_bytes_of(to->names[keys++]);
		else if (hs_bytes_equal(word, HS_LIT("v")) || hs_bytes_equal(word, HS_LIT("d")))
			word = (struct hs_bytes){number, hs_num_format_int(*numbers++, number)};
		hs_compose_word(out, word);
	}
	hs_storm_client_added(to->client);
}

/* Adds a request without an operation: MULTI, WATCH, UNWATCH. */
static struct hs_storm_request *add_plain(struct composing *to, const char *words)
{
	struct hs_storm_request *request = add_request(to, ACT_GET, HS_STORM_REPLY_NONE);

	append(to, words, NULL);
	return request;
}

static int64_t new_value(struct hs_storm_worker *worker)
{
	worker->value_last += VALUE_STEP;
	return hs_prng_below(&worker->prng, 4) ? worker->value_last : -worker->value_last;
}

/* Adds an operation of the request to the history. */
static void record(struct composing *to, struct hs_storm_request *request, struct hs_sim_op op,
		   enum hs_storm_form form)
{
	struct hs_storm_history *history = to->worker->history;
	uint32_t number;

	if (!history)
		return;
	op.client = to->client->history_client;
	number = hs_storm_history_add(history, &op, form);
	if (request->records++ == 0)
		request->record = number;
}

/* The same for a row of the table; returns the number for its v or d. */
static int64_t add_op(struct composing *to, struct hs_storm_request *request, uint64_t key,
		      unsigned act, uint32_t more)
{
	const struct act *row = &acts[act];
	int64_t number = row->sign ? 1 : new_value(to->worker);
	struct hs_sim_op op = {
		.kind = row->kind, .key = (uint32_t)key, .more = more, .ttl_ms = row->ttl_ms};

	if (strchr(row->words, 'd'))
		number += (int64_t)hs_prng_below(&to->worker->prng, DELTA_MAX);
	op.argument = row->sign ? row->sign * number : number;
	record(to, request, op, row->form);
	return number;
}

/* Adds an act of one operation. If too many blind writes are in flight on the key, an act with a telling reply
 * replaces it. */
static struct hs_storm_request *add_single(struct composing *to, uint64_t key, unsigned act)
{
	struct hs_storm_request *request;
	int64_t number;

	if (to->worker->history && hs_storm_kind_is_blind(acts[act].kind) &&
	    hs_storm_history_is_blind(to->worker->history, key))
		act = acts[act].kind == HS_SIM_DEL ? ACT_GETDEL : ACT_GETSET;
	aim(to, key);
	request = add_request(to, act, HS_STORM_REPLY_ONE);
	number = add_op(to, request, key, act, 0);
	append(to, acts[act].words, &number);
	return request;
}

/* In a Cluster, a key with the same hash tag. */
static uint64_t second_key(struct hs_storm_worker *worker, uint64_t key)
{
	uint64_t keys = worker->options->keys, first = key - key % HS_STORM_TAG_KEYS;

	if (!worker->cluster)
		return hs_prng_below(&worker->prng, keys);
	return first + hs_prng_below(&worker->prng, keys - first < HS_STORM_TAG_KEYS
							    ? keys - first
							    : HS_STORM_TAG_KEYS);
}

/* Two keys, which may be the same one for MGET. */
static void add_pair(struct composing *to, uint64_t key, unsigned number)
{
	struct hs_storm_worker *worker = to->worker;
	unsigned act = number == ACT_MGET ? ACT_GET : ACT_SET; /* recorded as two of these */
	uint64_t keys[2] = {key, second_key(worker, key)};
	struct hs_storm_request *request;
	int64_t values[2];

	if (number == ACT_MSET &&
	    (keys[0] == keys[1] ||
	     (worker->history && (hs_storm_history_is_blind(worker->history, keys[0]) ||
				  hs_storm_history_is_blind(worker->history, keys[1]))))) {
		add_single(to, key, act);
		return;
	}
	aim(to, key);
	name_key(worker, keys[1], to->names[1]);
	request = add_request(to, number,
			      number == ACT_MGET ? HS_STORM_REPLY_EACH : HS_STORM_REPLY_SHARED);
	request->other_key = (uint32_t)keys[1];
	for (int i = 0; i < 2; i++)
		values[i] = add_op(to, request, keys[i], act, 0);
	append(to, acts[number].words, values);
}

/* MULTI, two or three operations, EXEC. */
static void add_transaction(struct composing *to, uint64_t key)
{
	struct hs_storm_worker *worker = to->worker;
	unsigned count = 2 + (unsigned)hs_prng_below(&worker->prng, 2);
	struct hs_storm_request exec = {0}, *request;

	aim(to, key);
	to->client->transaction_left = (uint8_t)(count + 1);
	add_plain(to, "MULTI");
	for (unsigned i = 0; i < count; i++) {
		unsigned act = (unsigned)hs_prng_below(&worker->prng, ACTS);
		int64_t number;

		/* The first is a GET: its reply tells the place of the transaction in the order. */
		if (acts[act].single || i == 0)
			act = ACT_GET;
		add_request(to, act, HS_STORM_REPLY_NONE)->read = true; /* the reply is QUEUED */
		number = add_op(to, &exec, key, act, i == 0 ? count - 1 : 0);
		append(to, acts[act].words, &number);
	}
	request = add_request(to, ACT_TRANSACTION, HS_STORM_REPLY_EACH);
	request->record = exec.record;
	request->records = exec.records;
	append(to, "EXEC", NULL);
}

/* The first half of a watched increment. Nothing may follow it before its reply. */
static void add_watch(struct composing *to, uint64_t key)
{
	struct hs_storm_watch *watch = &to->client->watch;

	aim(to, key);
	*watch = (struct hs_storm_watch){.on = true, .key = key};
	add_plain(to, "WATCH k")->is_watch = true;
	add_single(to, key, ACT_GET)->depends_on_watch = true;
	if (to->worker->history)
		watch->window = hs_storm_history_windows(to->worker->history);
}

/* True if the connection with the WATCH has not been reopened. */
static bool is_there(const struct hs_storm_watch *watch)
{
	return watch->connection && watch->connection->generation == watch->generation &&
	       watch->connection->upstream.state == HS_UPSTREAM_UP;
}

/* The second half of a watched increment. */
static void add_watched(struct composing *to)
{
	struct hs_storm_history *history = to->worker->history;
	struct hs_storm_watch watch = to->client->watch;
	uint32_t key = (uint32_t)watch.key;
	int64_t next = watch.value == HS_SIM_NOTHING ? 1 : watch.value + 1;
	struct hs_storm_request *request;

	to->client->watch.on = false;
	to->client->pin = is_there(&watch) ? watch.connection : NULL;
	aim(to, watch.key);
	/* The WATCH was lost with its connection, the value was not read, or the key was renamed for a new window. */
	if (!to->client->pin || !watch.known ||
	    (history && watch.window != hs_storm_history_windows(history))) {
		add_plain(to, "UNWATCH");
		to->client->pin = NULL;
		return;
	}
	to->client->transaction_left = 2;
	add_plain(to, "MULTI");
	add_request(to, ACT_SET, HS_STORM_REPLY_NONE);
	append(to, "SET k v", &next);
	request = add_request(to, ACT_WATCHED, HS_STORM_REPLY_EACH);
	request->depends_on_watch = true;
	append(to, "EXEC", NULL);
	to->client->pin = NULL;
	record(to, request, (struct hs_sim_op){.kind = HS_SIM_GET, .key = key, .more = 1},
	       HS_STORM_FORM_VALUE);
	if (history)
		hs_storm_history_set_answer(history, request->record, watch.value);
	record(to, request, (struct hs_sim_op){.kind = HS_SIM_SET, .key = key, .argument = next},
	       HS_STORM_FORM_OK);
}

uint64_t hs_storm_acts_fill(struct hs_storm_worker *worker, struct hs_storm_client *client,
			    uint64_t count, uint64_t now_ns)
{
	struct composing to = {.worker = worker, .client = client, .now_ns = now_ns};
	uint64_t elapsed_us = (now_ns - worker->start_ns) / 1000;
	bool alone = false;

	if (client->watch.on)
		add_watched(&to);
	while (to.requests < count && !client->watch.on && !alone) {
		uint64_t key = hs_storm_keys_next(&worker->keys, &worker->prng, elapsed_us);
		unsigned act = draw(worker);

		if (act == ACT_MGET || act == ACT_MSET) {
			add_pair(&to, key, act);
			/* Both keys may get TRYAGAIN: no later request of the client may have run by then. */
			alone = worker->cluster != NULL;
		} else if (act == ACT_TRANSACTION) {
			add_transaction(&to, key);
		} else if (act == ACT_WATCHED) {
			add_watch(&to, key);
		} else {
			add_single(&to, key, act);
		}
	}
	return to.requests;
}

void hs_storm_acts_probe(struct hs_storm_worker *worker, struct hs_storm_client *client,
			 uint64_t key, uint64_t now_ns)
{
	struct composing to = {.worker = worker, .client = client, .now_ns = now_ns};

	add_single(&to, key, ACT_GET);
	add_single(&to, key, ACT_PTTL);
}

/* ---- replies ---- */

static void read_watch_reply(struct hs_storm_client *client, const struct hs_storm_request *request,
			     const struct hs_parsed_reply *answer)
{
	struct hs_storm_watch *watch = &client->watch;

	if (answer->type == HS_PARSED_ERROR || !client->from)
		return;
	watch->connection = client->from;
	watch->generation = client->from->generation;
	watch->asked = request->asked;
}

static void read_watched_value(struct hs_storm_client *client, const struct hs_parsed_reply *answer)
{
	struct hs_storm_watch *watch = &client->watch;

	if (answer->type == HS_PARSED_NULL) {
		watch->known = true;
		watch->value = HS_SIM_NOTHING;
	} else if (answer->type == HS_PARSED_BULK) {
		watch->known = hs_num_parse_int(answer->text, &watch->value);
	}
}

/* True if the target does not have the command: the embedded engine has no EVAL. */
static bool is_unknown(const struct hs_storm_request *request, const struct hs_parsed_reply *answer)
{
	return request->kind == HS_STORM_ACT && request->reply_shape == HS_STORM_REPLY_ONE &&
	       request->act < ACTS && answer->type == HS_PARSED_ERROR &&
	       hs_bytes_begins(answer->text, HS_LIT("ERR unknown command"));
}

void hs_storm_acts_error(const struct hs_storm_request *request,
			 const struct hs_parsed_reply *answer, struct hs_storm_counts *counts)
{
	const char *words = acts[request->act < ACTS ? request->act : 0].words;

	if (!is_unknown(request, answer)) {
		hs_storm_counts_error(counts, answer->text);
		return;
	}
	counts->unknown_command++;
	snprintf(counts->unknown_command_name, sizeof counts->unknown_command_name, "%.*s",
		 (int)strcspn(words, " "), words);
}

void hs_storm_acts_answer(struct hs_storm_worker *worker, struct hs_storm_client *client,
			  const struct hs_storm_request *request,
			  const struct hs_parsed_reply *answer, struct hs_bytes body)
{
	if (request->is_watch)
		read_watch_reply(client, request, answer);
	if (request->depends_on_watch && request->reply_shape == HS_STORM_REPLY_ONE)
		read_watched_value(client, answer);
	if (is_unknown(request, answer))
		worker->acts_missing |= UINT64_C(1) << request->act;
	if (worker->history)
		hs_storm_history_answer(worker->history, request, answer, body);
}
