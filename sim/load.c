/* A client is a list of requests under way and a buffer of bytes not sent yet.
 *
 *     compose ─ outgoing ─ (a random piece) ─ core ─ … ─ reply ─ the oldest request under way
 *
 * An operation enters the history when the last byte of its request is sent, and gets its answer
 * when the reply is heard. A connection that ends leaves what is under way unanswered: unknown. */
#include "sim/load.h"

#include "base/err.h"
#include "base/mem.h"
#include "base/num.h"
#include "wire/answer.h"

#include <inttypes.h>
#include <stdio.h>

enum {
	UNDER_WAY_MAX = 64, /* requests of one client; a power of two */
	OPS_MAX = 4,	    /* operations of one request */
	COMPOSE_ROOM = 8,   /* requests that one step of composing adds at most */
	ACT_US_MAX = 300,
	ORDER_STEPS_MAX = 2000000,
	VALUE_STEP = 1000, /* apart from each other, so that a few increments do not meet */
};

enum expect {
	EXPECT_SILENCE, /* muted by CLIENT REPLY SKIP */
	EXPECT_STATUS,	/* `text` */
	EXPECT_NUMBER,	/* any integer, the answer of the operation if there is one */
	EXPECT_VALUE,	/* a value or nothing: the answer of the operation */
	EXPECT_VALUES,	/* one for each operation */
	EXPECT_ECHO,	/* `number` */
	EXPECT_MAP,	/* HELLO */
	EXPECT_EXEC,
};

/* A request under way. */
struct ask {
	enum expect expect;
	const char *text;
	uint64_t number;
	bool watched;	  /* EXEC: its first operation stands for the GET behind WATCH */
	bool refused;	  /* EXEC: a watched key had changed */
	bool keeps_watch; /* GET behind WATCH: remembered for EXEC */
	uint64_t end;	  /* its last byte's position in all that the connection sends */
	struct hs_sim_op ops[OPS_MAX];
	uint32_t ops_count;
	size_t first; /* of its operations in the history */
};

struct actor {
	struct hs_sim_load *load;
	struct hs_sim_client *client; /* NULL: not connected now */
	uint32_t number;	      /* in the history: a new one for every connection */
	uint32_t requests_left;
	uint32_t depth;
	struct ask asks[UNDER_WAY_MAX];
	uint32_t asks_head, asks_asked, asks_tail; /* oldest, first not sent whole, next free */
	struct hs_buf outgoing;
	uint64_t sent;
	int64_t watch_read; /* what the GET behind WATCH said */
	bool planned;
};

struct hs_sim_load {
	struct hs_sim_load_options options;
	struct hs_sim_world *world;
	struct hs_sim_history history;
	struct hs_sim_verdict verdict;
	struct hs_prng prng;
	uint32_t numbers;  /* of connections */
	int64_t values;	   /* last value set */
	uint64_t requests; /* composed */
	struct actor *actors;
};

static uint64_t draw(struct hs_sim_load *load, uint64_t bound)
{
	return hs_prng_below(&load->prng, bound);
}

/* --- composing ----------------------------------------------------------------------------------
 */

static struct ask *add_ask(struct actor *actor, const char *request, enum expect expect)
{
	struct ask *ask = &actor->asks[actor->asks_tail++ % UNDER_WAY_MAX];
	struct hs_bytes argv[16];
	size_t argc = 0;

	hs_check(actor->asks_tail - actor->asks_head <= UNDER_WAY_MAX);
	while (*request) {
		size_t len = strcspn(request, " ");

		argv[argc++] = (struct hs_bytes){request, len};
		request += len + (request[len] == ' ');
	}
	hs_sim_compose(&actor->outgoing, argc, argv);
	ask->expect = expect;
	ask->text = "OK";
	ask->number = 0;
	ask->watched = false;
	ask->refused = false;
	ask->keeps_watch = false;
	ask->end = actor->sent + actor->outgoing.len;
	ask->ops_count = 0;
	actor->load->requests++;
	return ask;
}

static void add_op(struct actor *actor, struct ask *ask, enum hs_sim_kind kind, uint32_t key,
		   int64_t argument)
{
	ask->ops[ask->ops_count++] = (struct hs_sim_op){
	    .kind = kind,
	    .client = actor->number,
	    .key = key,
	    .argument = argument,
	    .answered = HS_SIM_NEVER,
	};
}

struct single {
	enum hs_sim_kind kind;
	const char *format; /* of key and argument */
	enum expect expect;
	bool has_argument;
};

static const struct single singles[] = {
    {HS_SIM_GET, "GET key%u", EXPECT_VALUE, false},
    {HS_SIM_SET, "SET key%u %" PRId64, EXPECT_STATUS, true},
    {HS_SIM_SETNX, "SETNX key%u %" PRId64, EXPECT_NUMBER, true},
    {HS_SIM_GETSET, "GETSET key%u %" PRId64, EXPECT_VALUE, true},
    {HS_SIM_DEL, "DEL key%u", EXPECT_NUMBER, false},
    {HS_SIM_GETDEL, "GETDEL key%u", EXPECT_VALUE, false},
    {HS_SIM_INCRBY, "INCRBY key%u %" PRId64, EXPECT_NUMBER, true},
};

static void format_single(const struct single *single, uint32_t key, int64_t argument, char *text,
			  size_t size)
{
	/* GET, DEL and GETDEL take no argument; the format then does not ask for it. */
	snprintf(text, size, single->format, key, argument);
}

/* GET and SET are half of it. */
static const struct single *pick_single(struct hs_sim_load *load)
{
	uint64_t number = draw(load, 2 * HS_SIM_KINDS);

	return number < HS_SIM_KINDS ? &singles[number] : &singles[number % 2];
}

static int64_t pick_argument(struct hs_sim_load *load, const struct single *single)
{
	if (!single->has_argument)
		return 0;
	if (single->kind == HS_SIM_INCRBY)
		return 1 + (int64_t)draw(load, 3);
	return load->values += VALUE_STEP;
}

static uint32_t pick_register(struct hs_sim_load *load)
{
	return (uint32_t)draw(load, load->options.registers);
}

static struct ask *compose_single(struct actor *actor, const struct single *single, uint32_t key)
{
	int64_t argument = pick_argument(actor->load, single);
	char text[64];
	struct ask *ask;

	format_single(single, key, argument, text, sizeof text);
	ask = add_ask(actor, text, single->expect);
	add_op(actor, ask, single->kind, key, argument);
	return ask;
}

static void compose_counter(struct actor *actor)
{
	struct hs_sim_load *load = actor->load;
	uint32_t key = load->options.registers + (uint32_t)draw(load, load->options.counters);
	struct ask *ask;
	char text[64];

	if (draw(load, 4) == 0) {
		compose_single(actor, &singles[HS_SIM_GET], key);
		return;
	}
	snprintf(text, sizeof text, "INCR key%u", key);
	ask = add_ask(actor, text, EXPECT_NUMBER);
	add_op(actor, ask, HS_SIM_INCRBY, key, 1);
}

/* MGET or MSET of a few different keys. */
static void compose_several(struct actor *actor, bool set)
{
	struct hs_sim_load *load = actor->load;
	uint32_t keys = load->options.registers;
	uint32_t first = pick_register(load);
	uint32_t count = 1 + (uint32_t)draw(load, keys < OPS_MAX ? keys : OPS_MAX);
	int64_t values[OPS_MAX];
	char text[256];
	int len = snprintf(text, sizeof text, "%s", set ? "MSET" : "MGET");

	for (uint32_t i = 0; i < count; i++) {
		values[i] = set ? (load->values += VALUE_STEP) : 0;
		len +=
		    snprintf(text + len, sizeof text - (size_t)len, " key%u", (first + i) % keys);
		if (set)
			len +=
			    snprintf(text + len, sizeof text - (size_t)len, " %" PRId64, values[i]);
	}

	struct ask *ask = add_ask(actor, text, set ? EXPECT_STATUS : EXPECT_VALUES);

	for (uint32_t i = 0; i < count; i++)
		add_op(actor, ask, set ? HS_SIM_SET : HS_SIM_GET, (first + i) % keys, values[i]);
}

/* [WATCH key, GET key,] MULTI, one to three commands, EXEC. That a watched transaction ran means
 * that the key still held what the GET had said: it is checked as if it began with that GET. */
static void compose_transaction(struct actor *actor)
{
	struct hs_sim_load *load = actor->load;
	uint32_t key = pick_register(load);
	bool watched = draw(load, 2) == 0;
	uint32_t count = 1 + (uint32_t)draw(load, OPS_MAX - 1);
	const struct single *parts[OPS_MAX];
	int64_t arguments[OPS_MAX];
	struct ask *exec;
	char text[64];

	if (watched) {
		snprintf(text, sizeof text, "WATCH key%u", key);
		add_ask(actor, text, EXPECT_STATUS);
		compose_single(actor, &singles[HS_SIM_GET], key)->keeps_watch = true;
	}
	add_ask(actor, "MULTI", EXPECT_STATUS);
	for (uint32_t i = 0; i < count; i++) {
		parts[i] = pick_single(load);
		arguments[i] = pick_argument(load, parts[i]);
		format_single(parts[i], key, arguments[i], text, sizeof text);
		add_ask(actor, text, EXPECT_STATUS)->text = "QUEUED";
	}
	exec = add_ask(actor, "EXEC", EXPECT_EXEC);
	exec->watched = watched;
	if (watched)
		add_op(actor, exec, HS_SIM_GET, key, 0);
	for (uint32_t i = 0; i < count; i++)
		add_op(actor, exec, parts[i]->kind, key, arguments[i]);
	exec->ops[0].more = exec->ops_count - 1;
	exec->ops[0].refusable = watched;
}

/* What says nothing about data, but has its place in the order of replies. */
static void compose_other(struct actor *actor)
{
	struct hs_sim_load *load = actor->load;
	struct ask *ask;
	char text[64];

	switch (draw(load, 6)) {
	case 0:
		add_ask(actor, "DBSIZE", EXPECT_NUMBER);
		break;
	case 1:
		add_ask(actor, "SLOWLOG LEN", EXPECT_NUMBER);
		break;
	case 2:
		add_ask(actor, "CLIENT REPLY SKIP", EXPECT_SILENCE);
		compose_single(actor, &singles[HS_SIM_SET], pick_register(load))->expect =
		    EXPECT_SILENCE;
		break;
	default:
		snprintf(text, sizeof text, "ECHO %" PRIu64, load->requests);
		ask = add_ask(actor, text, EXPECT_ECHO);
		ask->number = load->requests - 1;
	}
}

static void compose(struct actor *actor)
{
	struct hs_sim_load *load = actor->load;
	uint64_t choice = draw(load, 20);

	actor->requests_left--;
	if (choice < 9)
		compose_single(actor, pick_single(load), pick_register(load));
	else if (choice < 12 && load->options.counters > 0)
		compose_counter(actor);
	else if (choice < 15)
		compose_several(actor, draw(load, 2) == 0);
	else if (choice < 17)
		compose_transaction(actor);
	else
		compose_other(actor);
}

/* --- hearing -------------------------------------------------------------------------------------
 */

static void complain(struct actor *actor, const struct ask *ask, struct hs_bytes reply)
{
	char text[100];

	hs_sim_verdict_set(&actor->load->verdict, 1,
			   "client %u got \"%s\", which is no answer to its request (%d)",
			   actor->number, hs_bytes_escape(reply, text, sizeof text),
			   (int)ask->expect);
}

/* A bulk string that holds a number, a number itself, or nothing. */
static bool read_value(const struct hs_answer *answer, int64_t *value)
{
	*value = HS_SIM_NOTHING;
	if (answer->type == HS_ANSWER_NULL)
		return true;
	if (answer->type == HS_ANSWER_INT) {
		*value = answer->integer;
		return true;
	}
	return answer->type == HS_ANSWER_BULK && hs_num_parse_int(answer->text, value);
}

/* The elements of an array, one for each operation from `skip` on. */
static bool read_values(struct actor *actor, struct ask *ask, uint32_t skip, struct hs_bytes reply)
{
	struct hs_answer answer;
	int64_t used = hs_answer_head(&answer, reply.data, reply.len);
	size_t at = (size_t)used;

	if (answer.type != HS_ANSWER_ARRAY || answer.count != ask->ops_count - skip)
		return false;
	for (uint32_t i = skip; i < ask->ops_count; i++) {
		struct hs_sim_op *op = &actor->load->history.ops[ask->first + i];

		used = hs_answer_head(&answer, reply.data + at, reply.len - at);
		hs_check(used > 0); /* the whole reply was found to be one */
		at += (size_t)used;
		if (op->kind == HS_SIM_SET ? answer.type != HS_ANSWER_STATUS
					   : !read_value(&answer, &op->answer))
			return false;
	}
	return true;
}

static bool read_exec(struct actor *actor, struct ask *ask, struct hs_bytes reply)
{
	struct hs_sim_op *ops = &actor->load->history.ops[ask->first];
	struct hs_answer answer;

	if (hs_answer_head(&answer, reply.data, reply.len) > 0 && answer.type == HS_ANSWER_NULL) {
		/* Nothing happened: reads without an answer say just that. */
		for (uint32_t i = 0; i < ask->ops_count; i++)
			ops[i].kind = HS_SIM_GET;
		ask->refused = true;
		return ask->watched;
	}
	if (ask->watched)
		ops[0].answer = actor->watch_read;
	return read_values(actor, ask, ask->watched ? 1 : 0, reply);
}

/* Whether this reply fits the request; its answers go to the history. */
static bool fits(struct actor *actor, struct ask *ask, struct hs_bytes reply)
{
	struct hs_sim_op *op = &actor->load->history.ops[ask->first];
	struct hs_answer answer;
	int64_t value;
	int64_t used = hs_answer_head(&answer, reply.data, reply.len);

	hs_check(used > 0);
	switch (ask->expect) {
	case EXPECT_SILENCE:
		return false;
	case EXPECT_STATUS:
		return answer.type == HS_ANSWER_STATUS &&
		       hs_bytes_equal(answer.text, hs_bytes_of(ask->text));
	case EXPECT_NUMBER:
		if (ask->ops_count > 0)
			op->answer = answer.integer;
		return answer.type == HS_ANSWER_INT;
	case EXPECT_VALUE:
		if (!read_value(&answer, &op->answer) || answer.type == HS_ANSWER_INT)
			return false;
		if (ask->keeps_watch)
			actor->watch_read = op->answer;
		return true;
	case EXPECT_VALUES:
		return read_values(actor, ask, 0, reply);
	case EXPECT_ECHO:
		return answer.type == HS_ANSWER_BULK && read_value(&answer, &value) &&
		       (uint64_t)value == ask->number;
	case EXPECT_MAP:
		return answer.type == HS_ANSWER_MAP;
	case EXPECT_EXEC:
		return read_exec(actor, ask, reply);
	}
	return false;
}

static void plan_act(struct actor *actor);

static void pop_silent(struct actor *actor)
{
	while (actor->asks_head != actor->asks_asked &&
	       actor->asks[actor->asks_head % UNDER_WAY_MAX].expect == EXPECT_SILENCE)
		actor->asks_head++;
}

static void hear(void *context, struct hs_sim_client *client, struct hs_bytes reply)
{
	struct actor *actor = context;
	struct hs_sim_load *load = actor->load;
	uint64_t now = ++load->world->steps;

	(void)client;
	pop_silent(actor);
	if (actor->asks_head == actor->asks_asked) {
		hs_sim_verdict_set(&load->verdict, 1, "client %u got a reply it did not ask for",
				   actor->number);
		return;
	}

	struct ask *ask = &actor->asks[actor->asks_head++ % UNDER_WAY_MAX];

	if (!fits(actor, ask, reply))
		complain(actor, ask, reply);
	for (uint32_t i = 0; i < ask->ops_count && !ask->refused; i++)
		load->history.ops[ask->first + i].answered = now;
	plan_act(actor);
}

/* --- acting --------------------------------------------------------------------------------------
 */

static void connect(struct actor *actor)
{
	struct hs_sim_load *load = actor->load;
	uint32_t worker = (uint32_t)draw(load, load->world->options.workers);

	actor->client = hs_sim_client_connect(load->world, worker);
	actor->client->hear = hear;
	actor->client->context = actor;
	actor->number = load->numbers++;
	actor->depth = 1 + (uint32_t)draw(load, load->options.depth_max);
	actor->asks_head = actor->asks_asked = actor->asks_tail = 0;
	actor->sent = 0;
	hs_buf_clear(&actor->outgoing, HS_KEEP_BYTES);
	if (draw(load, 3) == 0)
		add_ask(actor, "HELLO 3", EXPECT_MAP);
}

/* What is wholly sent with the next `len` bytes enters the history. */
static void mark_asked(struct actor *actor, size_t len)
{
	struct hs_sim_load *load = actor->load;
	uint64_t now = ++load->world->steps;

	while (actor->asks_asked != actor->asks_tail) {
		struct ask *ask = &actor->asks[actor->asks_asked % UNDER_WAY_MAX];

		if (ask->end > actor->sent + len)
			break;
		actor->asks_asked++;
		ask->first = load->history.count;
		for (uint32_t i = 0; i < ask->ops_count; i++) {
			ask->ops[i].asked = now;
			hs_sim_history_add(&load->history, &ask->ops[i]);
		}
	}
}

static void send_piece(struct actor *actor)
{
	struct hs_sim_load *load = actor->load;
	size_t len = actor->outgoing.len;

	if (len == 0)
		return;
	if (draw(load, 2) == 0)
		len = 1 + draw(load, len);
	mark_asked(actor, len);
	actor->sent += len;
	hs_sim_client_send(actor->client, (struct hs_bytes){actor->outgoing.data, len});
	hs_buf_consume(&actor->outgoing, len);
}

static void act(void *context, void *target, uint64_t number)
{
	struct hs_sim_load *load = context;
	struct actor *actor = target;

	(void)number;
	actor->planned = false;
	if (!actor->client)
		connect(actor);
	if (!actor->client->session)
		return; /* closed by the server: the check will ask why */
	if (load->options.hang_ups && actor->asks_tail > 0 && draw(load, 24) == 0) {
		actor->client->hear = NULL;
		hs_sim_client_disconnect(actor->client);
		actor->client = NULL;
		if (actor->requests_left > 0)
			plan_act(actor);
		return;
	}
	if (draw(load, 8) == 0)
		hs_sim_client_set_deaf(actor->client, !actor->client->deaf);
	pop_silent(actor);
	while (actor->requests_left > 0 && actor->asks_tail - actor->asks_head < actor->depth &&
	       actor->asks_tail - actor->asks_head + COMPOSE_ROOM <= UNDER_WAY_MAX)
		compose(actor);
	send_piece(actor);
	pop_silent(actor);
	/* Who only waits for replies is woken by them. */
	if (actor->outgoing.len > 0 || actor->client->deaf ||
	    (actor->requests_left > 0 && actor->asks_tail - actor->asks_head < actor->depth))
		plan_act(actor);
}

static void plan_act(struct actor *actor)
{
	struct hs_sim_load *load = actor->load;
	uint64_t in_us = draw(load, 4) == 0 ? 0 : draw(load, ACT_US_MAX);

	if (actor->planned)
		return;
	actor->planned = true;
	hs_sim_world_plan(load->world, in_us, act, load, actor);
}

/* --- beginning and end
 * ---------------------------------------------------------------------------- */

struct hs_sim_load *hs_sim_load_create(const struct hs_sim_load_options *options,
				       struct hs_sim_world *world)
{
	struct hs_sim_load *load = hs_mem_zalloc(sizeof *load);

	load->options = *options;
	load->world = world;
	hs_prng_init(&load->prng, hs_prng_next(&world->prng));
	load->actors = hs_mem_zalloc(options->clients * sizeof *load->actors);
	for (uint32_t i = 0; i < options->clients; i++) {
		load->actors[i].load = load;
		load->actors[i].requests_left = options->requests;
		plan_act(&load->actors[i]);
	}
	return load;
}

void hs_sim_load_destroy(struct hs_sim_load **pointer)
{
	struct hs_sim_load *load = *pointer;

	for (uint32_t i = 0; i < load->options.clients; i++)
		hs_buf_deinit(&load->actors[i].outgoing);
	hs_sim_history_deinit(&load->history);
	hs_mem_free(&load->actors);
	hs_mem_free(pointer);
}

static void check_answered(struct hs_sim_load *load, struct actor *actor)
{
	if (!actor->client)
		return;
	pop_silent(actor);
	if (actor->client->broken)
		hs_sim_verdict_set(&load->verdict, 1, "client %u got bytes that are no reply",
				   actor->number);
	if (!actor->client->session)
		hs_sim_verdict_set(&load->verdict, 6, "client %u was hung up on", actor->number);
	if (actor->asks_head != actor->asks_tail)
		hs_sim_verdict_set(&load->verdict, 1, "client %u: %u requests were never answered",
				   actor->number, actor->asks_tail - actor->asks_head);
}

/* One client, one key after the other, each answered before the next is asked. */
static void read_all(struct hs_sim_load *load, int64_t *finals)
{
	struct actor *reader = hs_mem_zalloc(sizeof *reader);
	uint32_t keys = load->options.registers + load->options.counters;

	reader->load = load;
	reader->planned = true; /* it does not act by itself */
	connect(reader);
	for (uint32_t key = 0; key < keys; key++) {
		compose_single(reader, &singles[HS_SIM_GET], key);
		while (reader->outgoing.len > 0)
			send_piece(reader);
		hs_sim_world_settle(load->world);
		if (reader->asks_head == reader->asks_tail)
			finals[key] = load->history.ops[load->history.count - 1].answer;
	}
	check_answered(load, reader);
	reader->client->hear = NULL;
	hs_sim_client_disconnect(reader->client);
	hs_buf_deinit(&reader->outgoing);
	hs_mem_free(&reader);
}

int hs_sim_load_check(struct hs_sim_load *load, struct hs_sim_verdict *verdict)
{
	uint32_t keys = load->options.registers + load->options.counters;
	int64_t *finals = hs_mem_zalloc(keys * sizeof *finals);
	int err = 0;

	for (uint32_t i = 0; i < load->options.clients; i++)
		check_answered(load, &load->actors[i]);
	if (load->verdict.law == 0)
		read_all(load, finals);
	if (load->verdict.law != 0)
		err = HS_EINVAL;
	for (uint32_t key = load->options.registers; key < keys && err == 0; key++)
		err = hs_sim_check_increments(&load->history, key, finals[key], &load->verdict);
	if (err == 0)
		err = hs_sim_check_order(&load->history, ORDER_STEPS_MAX, &load->verdict);
	hs_mem_free(&finals);
	*verdict = load->verdict;
	return err;
}

const struct hs_sim_history *hs_sim_load_history(const struct hs_sim_load *load)
{
	return &load->history;
}

uint64_t hs_sim_load_requests(const struct hs_sim_load *load)
{
	return load->requests;
}
