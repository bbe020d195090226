/* Clients of keys with contracts, and other clients that write directly at the servers.
 *
 * The first registers have a rule each, the other keys are strict. Most requests are reads of keys with rules, with
 * enough writes that cached values change. */
#include "base/num.h"
#include "sim/load_internal.h"
#include "wire/parse_reply.h"

#include <inttypes.h>
#include <stdio.h>

enum {
	TURN_ONE_IN = 32,
	FLUSH_EXTERNAL_ONE_IN = 24,
	ARGS_MAX = 8,
	TEXT_MAX = 128,
};

bool hs_sim_load_has_rules(const struct hs_sim_load *load)
{
	return load->world->options.rules_count > 0;
}

/* --- requests --- */

/* Mostly a key with a rule, and mostly key0. */
static uint32_t pick_key(struct hs_sim_load *load)
{
	uint32_t rules = load->world->options.rules_count;

	if (hs_sim_load_draw(load, 2) == 0)
		return 0;
	if (hs_sim_load_draw(load, 8) > 0)
		return (uint32_t)hs_sim_load_draw(load, rules);
	return (uint32_t)hs_sim_load_draw(load, load->options.registers);
}

static void compose_read(struct hs_sim_actor *actor)
{
	static const enum hs_sim_kind kinds[] = {HS_SIM_GETRANGE, HS_SIM_STRLEN, HS_SIM_EXISTS,
						 HS_SIM_PTTL};
	struct hs_sim_load *load = actor->load;
	uint64_t choice = hs_sim_load_draw(load, 16);

	if (load->options.plain && hs_sim_load_draw(load, 16) > 0)
		hs_sim_actor_compose_single(actor, HS_SIM_GET, pick_key(load));
	else if (choice < 2)
		hs_sim_actor_compose_several(actor, false);
	else
		hs_sim_actor_compose_single(actor, choice < 12 ? HS_SIM_GET : kinds[choice - 12],
					    pick_key(load));
}

/* X.SWAP, a command that heatsink's table does not have. */
static void compose_unknown(struct hs_sim_actor *actor)
{
	struct hs_sim_load *load = actor->load;
	const struct hs_sim_op op = {
		.kind = HS_SIM_GETSET,
		.key = pick_key(load),
		.argument = hs_sim_load_value(load),
	};
	char text[96], name[HS_SIM_NAME_BYTES_MAX];

	snprintf(text, sizeof text, "X.SWAP %s %" PRId64, hs_sim_load_name(load, op.key, name),
		 op.argument);
	hs_sim_actor_add_op(actor, hs_sim_actor_request(actor, text, HS_SIM_EXPECT_ANSWER), &op);
}

/* X.BOTH, another such command: it also changes key0, which it does not name. */
static void compose_both(struct hs_sim_actor *actor)
{
	struct hs_sim_load *load = actor->load;
	struct hs_sim_op op = {
		.kind = HS_SIM_SET,
		.key = (uint32_t)hs_sim_load_draw(load, load->options.registers),
		.argument = hs_sim_load_value(load),
	};
	struct hs_sim_request *request;
	char text[96], name[HS_SIM_NAME_BYTES_MAX];

	if (op.key == 0 || !hs_sim_load_goes_with(load, 0, op.key)) {
		compose_unknown(actor);
		return;
	}
	snprintf(text, sizeof text, "X.BOTH %s %" PRId64, hs_sim_load_name(load, op.key, name),
		 op.argument);
	request = hs_sim_actor_request(actor, text, HS_SIM_EXPECT_STATUS);
	hs_sim_actor_add_op(actor, request, &op);
	op.key = 0;
	op.unnamed_key = true;
	hs_sim_actor_add_op(actor, request, &op);
}

/* X.PAIR, another such command: it changes two keys and names both. */
static void compose_pair(struct hs_sim_actor *actor)
{
	struct hs_sim_load *load = actor->load;
	uint32_t keys = load->options.registers, key = pick_key(load);
	struct hs_sim_op ops[2] = {{.kind = HS_SIM_SET, .key = key},
				   {.kind = HS_SIM_SET, .key = (key + 1) % keys}};
	char text[TEXT_MAX], name[2][HS_SIM_NAME_BYTES_MAX];
	struct hs_sim_request *request;

	if (keys < 2 || !hs_sim_load_goes_with(load, ops[0].key, ops[1].key)) {
		compose_unknown(actor);
		return;
	}
	for (int i = 0; i < 2; i++)
		ops[i].argument = hs_sim_load_value(load);
	snprintf(text, sizeof text, "X.PAIR %s %" PRId64 " %s %" PRId64,
		 hs_sim_load_name(load, ops[0].key, name[0]), ops[0].argument,
		 hs_sim_load_name(load, ops[1].key, name[1]), ops[1].argument);
	request = hs_sim_actor_request(actor, text, HS_SIM_EXPECT_STATUS);
	for (int i = 0; i < 2; i++)
		hs_sim_actor_add_op(actor, request, &ops[i]);
}

void hs_sim_actor_compose_flush(struct hs_sim_actor *actor)
{
	struct hs_sim_load *load = actor->load;
	uint32_t keys = load->options.registers + load->options.counters;
	struct hs_sim_request *request =
		hs_sim_actor_request(actor, "FLUSHALL", HS_SIM_EXPECT_STATUS);

	hs_check(keys <= HS_SIM_REQUEST_OPS_MAX);
	request->flushes = true;
	for (uint32_t key = 0; key < keys; key++)
		hs_sim_actor_add_op(actor, request,
				    &(struct hs_sim_op){.kind = HS_SIM_CLEAR, .key = key});
}

static void compose_write(struct hs_sim_actor *actor)
{
	static const enum hs_sim_kind kinds[] = {
		HS_SIM_SET,   HS_SIM_SET,    HS_SIM_SET,    HS_SIM_SET,	   HS_SIM_DEL,
		HS_SIM_SETNX, HS_SIM_INCRBY, HS_SIM_INCRBY, HS_SIM_GETDEL, HS_SIM_PEXPIRE,
	};
	struct hs_sim_load *load = actor->load;
	enum hs_sim_kind kind = kinds[hs_sim_load_draw(load, sizeof kinds / sizeof *kinds)];

	if (kind == HS_SIM_PEXPIRE && load->options.ttl_ms_max == 0)
		kind = HS_SIM_SET;
	hs_sim_actor_compose_single(actor, kind, pick_key(load));
}

void hs_sim_actor_compose_ruled(struct hs_sim_actor *actor)
{
	struct hs_sim_load *load = actor->load;
	uint64_t choice = hs_sim_load_draw(load, 24);

	if (hs_sim_load_draw(load, 100) >= load->options.writes)
		compose_read(actor);
	else if (choice < 16)
		compose_write(actor);
	else if (choice < 17 && load->world->options.learned)
		compose_unknown(actor);
	else if (choice < 18 && load->world->options.learned)
		compose_pair(actor);
	else if (choice < 19 && load->world->options.learned)
		compose_both(actor);
	else if (choice < 21)
		hs_sim_actor_compose_several(actor, true);
	else if (choice < 22 && load->options.flushes)
		hs_sim_actor_compose_flush(actor);
	else
		hs_sim_actor_compose_transaction(actor);
}

/* --- allowed answers --- */

static bool can_be_old(const struct hs_sim_request *request, enum hs_sim_kind kind)
{
	return (request->expect == HS_SIM_EXPECT_ANSWER ||
		request->expect == HS_SIM_EXPECT_ANSWERS) &&
	       !request->keeps_watch &&
	       (kind == HS_SIM_GET || kind == HS_SIM_GETRANGE || kind == HS_SIM_STRLEN ||
		kind == HS_SIM_EXISTS);
}

/* Widens the operation's limits to what this contract of the key allows. */
static void allow(struct hs_sim_op *op, const struct hs_sim_rule *rule)
{
	int64_t more_us, stale_us, max_age_us;

	if (!rule)
		return;
	more_us = (int64_t)rule->stale_while_revalidate_us + rule->stale_if_error_us;
	stale_us = rule->stale_us + more_us;
	max_age_us = (op->kind == HS_SIM_GET && op->answer == HS_SIM_NOTHING ? rule->negative_ttl_us
									     : rule->ttl_us) +
		     more_us + 1;
	/* A read that joins a fetch in flight gets the reply of the fetch. */
	if (max_age_us < rule->stale_us)
		max_age_us = rule->stale_us;
	if (op->stale_us < stale_us)
		op->stale_us = stale_us;
	if (op->max_age_us < max_age_us && op->kind == HS_SIM_GET)
		op->max_age_us = max_age_us;
}

/* Whether a write of the key by this client was sent before `until` and is in flight. */
static bool writes_key(const struct hs_sim_actor *actor, const struct hs_sim_request *until,
		       uint32_t key)
{
	for (uint32_t i = actor->in_flight_head; i != actor->in_flight_sent; i++) {
		const struct hs_sim_request *request = &actor->in_flight[i % HS_SIM_IN_FLIGHT_MAX];

		if (request == until)
			break;
		for (uint32_t j = 0; j < request->ops_count; j++) {
			if (request->ops[j].key == key && !hs_sim_kind_reads(request->ops[j].kind))
				return true;
		}
	}
	return false;
}

void hs_sim_actor_asked_ruled(struct hs_sim_actor *actor, struct hs_sim_request *request)
{
	struct hs_sim_load *load = actor->load;
	struct hs_sim_world *world = load->world;

	request->switches = world->switches;
	for (uint32_t i = 0; i < request->ops_count; i++) {
		struct hs_sim_op *op = &load->history.ops[request->first + i];
		const struct hs_sim_rule *rule = hs_sim_world_rule(world, op->key);

		if (op->key >= world->options.rules_count || !can_be_old(request, op->kind))
			continue;
		op->off = !rule;
		op->may_be_stale = !load->off;
		allow(op, rule);
		if (op->kind == HS_SIM_GET && request->expect == HS_SIM_EXPECT_ANSWER)
			hs_sim_cache_bugs_answer(world, actor->client->worker, op->key,
						 writes_key(actor, request, op->key),
						 &request->instead);
	}
}

void hs_sim_actor_answered_ruled(struct hs_sim_actor *actor, const struct hs_sim_request *request)
{
	struct hs_sim_load *load = actor->load;
	const struct hs_sim_world *world = load->world;

	for (uint32_t i = 0; i < request->ops_count; i++) {
		struct hs_sim_op *op = &load->history.ops[request->first + i];

		if (!op->may_be_stale)
			continue;
		/* The answer decides whether ttl or negative-ttl applies. */
		op->max_age_us = 0;
		if (world->switches != request->switches) {
			allow(op, &world->options.rules[op->key]);
			op->off = false;
		} else {
			allow(op, hs_sim_world_rule(world, op->key));
		}
	}
}

/* --- switches and external writes --- */

void hs_sim_load_disturb_ruled(struct hs_sim_load *load)
{
	static const enum hs_mitigate ways[] = {HS_MITIGATE_ON, HS_MITIGATE_ON, HS_MITIGATE_ON,
						HS_MITIGATE_OBSERVE, HS_MITIGATE_OFF};

	enum hs_mitigate way;

	if (!load->options.switches || hs_sim_load_draw(load, TURN_ONE_IN) > 0)
		return;
	way = ways[hs_sim_load_draw(load, 5)];
	hs_sim_world_set_mitigations(load->world, way, hs_sim_load_draw(load, 4) > 0);
}

/* Runs one external command, and records its answer. */
static bool do_external(struct hs_sim_load *load, struct hs_sim_op *op, const char *words)
{
	struct hs_sim_world *world = load->world;
	struct hs_bytes argv[ARGS_MAX];
	struct hs_buf reply = {0};
	struct hs_parsed_reply answer;
	size_t argc = 0;
	char key[HS_SIM_NAME_BYTES_MAX];
	bool done;

	for (; *words; argc++) {
		size_t len = strcspn(words, " ");

		hs_check(argc < ARGS_MAX);
		argv[argc] = (struct hs_bytes){words, len};
		words += len + (words[len] == ' ');
	}
	op->asked = ++world->steps;
	op->asked_us = op->answered_us = world->now.wall_us;
	op->external = true;
	done = hs_sim_world_do_external(world, hs_bytes_of(hs_sim_load_name(load, op->key, key)),
					argc, argv, &reply);
	if (done) {
		hs_check(hs_parse_reply_head(&answer, reply.data, reply.len) > 0);
		op->answer = answer.integer;
		/* The partition may be full. */
		if (answer.type == HS_PARSED_ERROR)
			op->kind = HS_SIM_NONE;
		op->answered = ++world->steps;
	}
	hs_buf_deinit(&reply);
	return done;
}

/* FLUSHALL on one partition; the history gets a DEL for each of its keys. */
static void flush_external(struct hs_sim_load *load, uint32_t client)
{
	uint32_t keys = load->options.registers + load->options.counters;
	struct hs_sim_op all = {.kind = HS_SIM_NONE, .key = 0};
	struct hs_sim_op ops[HS_SIM_REQUEST_OPS_MAX];
	char words[64], name[HS_SIM_NAME_BYTES_MAX];

	hs_check(keys <= HS_SIM_REQUEST_OPS_MAX);
	for (uint32_t key = 0; key < keys; key++) {
		ops[key] = (struct hs_sim_op){.kind = HS_SIM_DEL, .client = client, .key = key};
		snprintf(words, sizeof words, "DEL %s", hs_sim_load_name(load, key, name));
		if (hs_sim_world_same_partition(load->world, 0, key) &&
		    do_external(load, &ops[key], words))
			hs_sim_history_add(&load->history, &ops[key]);
	}
	do_external(load, &all, "FLUSHALL");
}

static void write_external(void *context, void *target, uint64_t number)
{
	struct hs_sim_load *load = context;
	struct hs_sim_op op = {.client = load->numbers++, .key = pick_key(load)};
	char words[96], key[HS_SIM_NAME_BYTES_MAX];
	const char *name = hs_sim_load_name(load, op.key, key);

	(void)target, (void)number;
	if (load->options.flushes && hs_sim_load_draw(load, FLUSH_EXTERNAL_ONE_IN) == 0) {
		flush_external(load, op.client);
		return;
	}
	switch (load->options.plain && hs_sim_load_draw(load, 2) == 0 ? 0
								      : hs_sim_load_draw(load, 8)) {
	case 0:
		op.kind = HS_SIM_DEL;
		snprintf(words, sizeof words, "DEL %s", name);
		break;
	case 1:
		op.kind = HS_SIM_INCRBY;
		op.argument = 1;
		snprintf(words, sizeof words, "INCR %s", name);
		break;
	case 2:
		if (load->options.ttl_ms_max > 0) {
			op.kind = HS_SIM_PEXPIRE;
			op.ttl_ms = 1 + (int64_t)hs_sim_load_draw(load, load->options.ttl_ms_max);
			snprintf(words, sizeof words, "PEXPIRE %s %" PRId64, name, op.ttl_ms);
			break;
		}
		/* fall through */
	default:
		op.kind = HS_SIM_SET;
		op.argument = hs_sim_load_value(load);
		snprintf(words, sizeof words, "SET %s %" PRId64, name, op.argument);
	}
	if (do_external(load, &op, words))
		hs_sim_history_add(&load->history, &op);
}

static void act_external(void *context, void *target, uint64_t number)
{
	struct hs_sim_load *load = context;

	write_external(load, target, number);
	if (--load->external_left > 0)
		hs_sim_world_plan(load->world,
				  hs_sim_load_draw(load, load->options.external_us_max),
				  act_external, load, NULL);
}

/* Sets the keys with copies at the beginning: a missing key gets no copies. */
static void set_copied(struct hs_sim_load *load)
{
	struct hs_sim_world *world = load->world;
	char words[96], name[HS_SIM_NAME_BYTES_MAX];

	for (uint32_t key = 0; key < world->options.rules_count; key++) {
		struct hs_sim_op op = {
			.kind = HS_SIM_SET,
			.client = load->numbers,
			.key = key,
			.argument = hs_sim_load_value(load),
		};

		if (world->options.rules[key].copies == 0)
			continue;
		load->numbers++;
		snprintf(words, sizeof words, "SET %s %" PRId64, hs_sim_load_name(load, key, name),
			 op.argument);
		if (do_external(load, &op, words))
			hs_sim_history_add(&load->history, &op);
	}
}

void hs_sim_load_begin_ruled(struct hs_sim_load *load)
{
	hs_sim_timelines_init(&load->world->timelines,
			      load->options.registers + load->options.counters);
	set_copied(load);
	load->external_left = load->options.external;
	if (load->external_left > 0)
		hs_sim_world_plan(load->world,
				  hs_sim_load_draw(load, load->options.external_us_max),
				  act_external, load, NULL);
}
