/* What random clients ask. Values are numbers that nobody sets twice, so that a read tells which
 * write it saw. */
#include "sim/load_internal.h"

#include <inttypes.h>
#include <stdio.h>

enum { VALUE_STEP = 1000 }; /* apart from each other, so that a few increments do not meet */

struct hs_sim_ask *hs_sim_actor_ask(struct hs_sim_actor *actor, const char *request,
				    enum hs_sim_expect expect)
{
	struct hs_sim_ask *ask = &actor->asks[actor->asks_tail++ % HS_SIM_UNDER_WAY_MAX];
	struct hs_bytes argv[16];
	size_t argc = 0;

	hs_check(actor->asks_tail - actor->asks_head <= HS_SIM_UNDER_WAY_MAX);
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
	ask->touches = false;
	actor->load->requests++;
	return ask;
}

static void touch(struct hs_sim_ask *ask, uint32_t key)
{
	ask->touches = true;
	ask->touched = key;
}

static void add_op(struct hs_sim_actor *actor, struct hs_sim_ask *ask, enum hs_sim_kind kind,
		   uint32_t key, int64_t argument)
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
	enum hs_sim_expect expect;
	bool has_argument;
};

static const struct single singles[] = {
	{HS_SIM_GET, "GET key%u", HS_SIM_EXPECT_VALUE, false},
	{HS_SIM_SET, "SET key%u %" PRId64, HS_SIM_EXPECT_STATUS, true},
	{HS_SIM_SETNX, "SETNX key%u %" PRId64, HS_SIM_EXPECT_NUMBER, true},
	{HS_SIM_GETSET, "GETSET key%u %" PRId64, HS_SIM_EXPECT_VALUE, true},
	{HS_SIM_DEL, "DEL key%u", HS_SIM_EXPECT_NUMBER, false},
	{HS_SIM_GETDEL, "GETDEL key%u", HS_SIM_EXPECT_VALUE, false},
	{HS_SIM_INCRBY, "INCRBY key%u %" PRId64, HS_SIM_EXPECT_NUMBER, true},
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
	uint64_t number = hs_sim_load_draw(load, 2 * HS_SIM_KINDS);

	return number < HS_SIM_KINDS ? &singles[number] : &singles[number % 2];
}

static int64_t pick_argument(struct hs_sim_load *load, const struct single *single)
{
	if (!single->has_argument)
		return 0;
	if (single->kind == HS_SIM_INCRBY)
		return 1 + (int64_t)hs_sim_load_draw(load, 3);
	return load->values += VALUE_STEP;
}

static uint32_t pick_register(struct hs_sim_load *load)
{
	return (uint32_t)hs_sim_load_draw(load, load->options.registers);
}

static struct hs_sim_ask *compose_single(struct hs_sim_actor *actor, const struct single *single,
					 uint32_t key)
{
	int64_t argument = pick_argument(actor->load, single);
	char text[64];
	struct hs_sim_ask *ask;

	format_single(single, key, argument, text, sizeof text);
	ask = hs_sim_actor_ask(actor, text, single->expect);
	add_op(actor, ask, single->kind, key, argument);
	return ask;
}

static void compose_counter(struct hs_sim_actor *actor)
{
	struct hs_sim_load *load = actor->load;
	uint32_t key =
		load->options.registers + (uint32_t)hs_sim_load_draw(load, load->options.counters);
	struct hs_sim_ask *ask;
	char text[64];

	if (hs_sim_load_draw(load, 4) == 0) {
		compose_single(actor, &singles[HS_SIM_GET], key);
		return;
	}
	snprintf(text, sizeof text, "INCR key%u", key);
	ask = hs_sim_actor_ask(actor, text, HS_SIM_EXPECT_NUMBER);
	add_op(actor, ask, HS_SIM_INCRBY, key, 1);
}

/* MGET or MSET of a few different keys. */
static void compose_several(struct hs_sim_actor *actor, bool set)
{
	struct hs_sim_load *load = actor->load;
	uint32_t keys = load->options.registers;
	uint32_t first = pick_register(load);
	uint32_t count = 1 + (uint32_t)hs_sim_load_draw(
				     load, keys < HS_SIM_ASK_OPS_MAX ? keys : HS_SIM_ASK_OPS_MAX);
	int64_t values[HS_SIM_ASK_OPS_MAX];
	char text[256];
	int len = snprintf(text, sizeof text, "%s", set ? "MSET" : "MGET");

	for (uint32_t i = 0; i < count; i++) {
		values[i] = set ? (load->values += VALUE_STEP) : 0;
		len += snprintf(text + len, sizeof text - (size_t)len, " key%u",
				(first + i) % keys);
		if (set)
			len += snprintf(text + len, sizeof text - (size_t)len, " %" PRId64,
					values[i]);
	}

	struct hs_sim_ask *ask =
		hs_sim_actor_ask(actor, text, set ? HS_SIM_EXPECT_STATUS : HS_SIM_EXPECT_VALUES);

	for (uint32_t i = 0; i < count; i++)
		add_op(actor, ask, set ? HS_SIM_SET : HS_SIM_GET, (first + i) % keys, values[i]);
}

/* [WATCH key, GET key,] MULTI, one to three commands, EXEC. That a watched transaction ran means
 * that the key still held what the GET had said: it is checked as if it began with that GET. */
static void compose_transaction(struct hs_sim_actor *actor)
{
	struct hs_sim_load *load = actor->load;
	uint32_t key = pick_register(load);
	bool watched = hs_sim_load_draw(load, 2) == 0;
	uint32_t count = 1 + (uint32_t)hs_sim_load_draw(load, HS_SIM_ASK_OPS_MAX - 1);
	const struct single *parts[HS_SIM_ASK_OPS_MAX];
	int64_t arguments[HS_SIM_ASK_OPS_MAX];
	struct hs_sim_ask *exec;
	char text[64];

	if (watched) {
		snprintf(text, sizeof text, "WATCH key%u", key);
		touch(hs_sim_actor_ask(actor, text, HS_SIM_EXPECT_STATUS), key);
		compose_single(actor, &singles[HS_SIM_GET], key)->keeps_watch = true;
	}
	hs_sim_actor_ask(actor, "MULTI", HS_SIM_EXPECT_STATUS);
	for (uint32_t i = 0; i < count; i++) {
		parts[i] = pick_single(load);
		arguments[i] = pick_argument(load, parts[i]);
		format_single(parts[i], key, arguments[i], text, sizeof text);
		hs_sim_actor_ask(actor, text, HS_SIM_EXPECT_STATUS)->text = "QUEUED";
	}
	exec = hs_sim_actor_ask(actor, "EXEC", HS_SIM_EXPECT_EXEC);
	exec->watched = watched;
	if (watched)
		add_op(actor, exec, HS_SIM_GET, key, 0);
	for (uint32_t i = 0; i < count; i++)
		add_op(actor, exec, parts[i]->kind, key, arguments[i]);
	exec->ops[0].more = exec->ops_count - 1;
	exec->ops[0].refusable = watched;
}

/* What says nothing about data, but has its place in the order of replies. */
static void compose_other(struct hs_sim_actor *actor)
{
	struct hs_sim_load *load = actor->load;
	struct hs_sim_ask *ask;
	char text[64];

	switch (hs_sim_load_draw(load, 6)) {
	case 0:
		touch(hs_sim_actor_ask(actor, "DBSIZE", HS_SIM_EXPECT_NUMBER), HS_SIM_NO_KEY);
		break;
	case 1:
		hs_sim_actor_ask(actor, "SLOWLOG LEN", HS_SIM_EXPECT_NUMBER);
		break;
	case 2:
		hs_sim_actor_ask(actor, "CLIENT REPLY SKIP", HS_SIM_EXPECT_SILENCE);
		compose_single(actor, &singles[HS_SIM_SET], pick_register(load))->expect =
			HS_SIM_EXPECT_SILENCE;
		break;
	default:
		snprintf(text, sizeof text, "ECHO %" PRIu64, load->requests);
		ask = hs_sim_actor_ask(actor, text, HS_SIM_EXPECT_ECHO);
		ask->number = load->requests - 1;
	}
}

void hs_sim_actor_compose_get(struct hs_sim_actor *actor, uint32_t key)
{
	compose_single(actor, &singles[HS_SIM_GET], key);
}

void hs_sim_actor_compose(struct hs_sim_actor *actor)
{
	struct hs_sim_load *load = actor->load;
	uint64_t choice = hs_sim_load_draw(load, 20);

	actor->requests_left--;
	if (choice < 9)
		compose_single(actor, pick_single(load), pick_register(load));
	else if (choice < 12 && load->options.counters > 0)
		compose_counter(actor);
	else if (choice < 15)
		compose_several(actor, hs_sim_load_draw(load, 2) == 0);
	else if (choice < 17)
		compose_transaction(actor);
	else
		compose_other(actor);
}
