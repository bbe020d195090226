/* A random client is a queue of requests in flight and a buffer of bytes that are not sent yet.
 *
 *     compose ─ outgoing ─ (a random piece) ─ core ─ … ─ reply ─ the oldest request in flight
 *
 * An operation enters the history when the last byte of its request is sent, and gets its answer when the reply
 * arrives. When a connection ends, its requests in flight stay unanswered: their outcome is unknown. */
#include "base/err.h"
#include "base/mem.h"
#include "sim/load_internal.h"

#include <inttypes.h>

enum { ACT_US_MAX = 300, TICK_ONE_IN = 24, FLIP_ONE_IN = 64, RECONNECT_US = 1000 };

static void plan_act(struct hs_sim_actor *actor);

static void report(struct hs_sim_actor *actor, const struct hs_sim_request *request,
		   struct hs_bytes reply)
{
	char text[100];

	hs_sim_verdict_set(&actor->load->verdict, 1,
			   "client %u got \"%s\", which is no answer to its request (%d)",
			   actor->number, hs_bytes_escape(reply, text, sizeof text),
			   (int)request->expect);
}

void hs_sim_actor_pop_silent(struct hs_sim_actor *actor)
{
	while (actor->in_flight_head != actor->in_flight_sent &&
	       actor->in_flight[actor->in_flight_head % HS_SIM_IN_FLIGHT_MAX].expect ==
		       HS_SIM_EXPECT_SILENCE)
		actor->silent_to = ++actor->in_flight_head;
}

/* A reply bounds the time of its accesses, and says which outcome a transaction had. */
static void settle_accesses(struct hs_sim_load *load, const struct hs_sim_request *request)
{
	for (uint32_t i = 0; i < request->access_count; i++) {
		struct hs_sim_access *access = &load->accesses.all[request->access_first + i];
		bool if_lost = i + 1 == request->access_count;

		access->answered_us = load->world->now.mono_us;
		access->dropped = request->watched && if_lost != request->lost;
	}
}

static void note(struct hs_sim_actor *actor, const char *does, struct hs_bytes bytes)
{
	struct hs_sim_world *world = actor->load->world;
	char text[160];

	if (world->options.script)
		hs_sim_script_note(world, "client %u %s %s", actor->number, does,
				   hs_bytes_escape(bytes, text, sizeof text));
}

void hs_sim_actor_on_reply(void *context, struct hs_sim_client *client, struct hs_bytes reply)
{
	struct hs_sim_actor *actor = context;
	struct hs_sim_load *load = actor->load;

	load->world->steps++;
	(void)client;
	note(actor, "gets", reply);
	hs_sim_actor_pop_silent(actor);
	if (actor->in_flight_head == actor->in_flight_sent) {
		hs_sim_verdict_set(&load->verdict, 1, "client %u got a reply without a request",
				   actor->number);
		return;
	}

	struct hs_sim_request *request =
		&actor->in_flight[actor->in_flight_head++ % HS_SIM_IN_FLIGHT_MAX];

	if (request->instead.len > 0)
		reply = hs_buf_bytes(&request->instead);
	if (!hs_sim_actor_reply_fits(actor, request, reply))
		report(actor, request, reply);
	hs_sim_delay_answered(actor, request);
	hs_sim_actor_answered_ruled(actor, request);
	settle_accesses(load, request);
	plan_act(actor);
}

/* --- acting --- */

/* Its heatsink has died: the outcome of its requests in flight is unknown. It reconnects to another heatsink, or
 * later. */
static void orphaned(void *context, struct hs_sim_client *client)
{
	struct hs_sim_actor *actor = context;

	client->on_reply = NULL;
	client->orphaned = NULL;
	actor->client = NULL;
	if (actor->requests_left > 0)
		plan_act(actor);
}

/* A worker of a heatsink that runs. */
static uint32_t pick_worker(struct hs_sim_load *load)
{
	uint32_t worker;

	do {
		worker = (uint32_t)hs_sim_load_draw(load, load->world->workers_count);
	} while (load->world->heatsinks[worker / load->world->options.workers].dead);
	return worker;
}

void hs_sim_actor_connect(struct hs_sim_actor *actor)
{
	hs_sim_actor_connect_to(actor, pick_worker(actor->load));
}

void hs_sim_actor_connect_to(struct hs_sim_actor *actor, uint32_t worker)
{
	struct hs_sim_load *load = actor->load;

	actor->client = hs_sim_client_connect(load->world, worker);
	actor->client->on_reply = hs_sim_actor_on_reply;
	actor->client->orphaned = orphaned;
	actor->client->context = actor;
	actor->number = load->numbers++;
	actor->depth = 1 + (uint32_t)hs_sim_load_draw(load, load->options.depth_max);
	actor->in_flight_head = actor->in_flight_sent = actor->in_flight_tail = 0;
	actor->silent_to = UINT32_MAX;
	actor->sent = 0;
	actor->watch_known = actor->watch_refused = false;
	hs_buf_clear(&actor->outgoing, HS_IDLE_BUFFER_BYTES);
	if (hs_sim_load_draw(load, 3) == 0)
		hs_sim_actor_request(actor, "HELLO 3", HS_SIM_EXPECT_MAP);
}

/* Every key of a request counts as heat, once for each time it is named. The GET that follows WATCH, which
 * stands at the beginning of a transaction, is in the history only. A transaction that may fail has the
 * accesses of both outcomes: its commands, and last a write of the watched key. */
static void add_accesses(struct hs_sim_load *load, struct hs_sim_request *request, uint32_t client)
{
	struct hs_sim_access access = {
		.client = client,
		.asked_us = load->world->now.mono_us,
		.answered_us = HS_SIM_NEVER,
	};

	request->access_first = load->accesses.count;
	for (uint32_t i = request->watched ? 1 : 0; i < request->ops_count && !request->flushes;
	     i++) {
		if (request->ops[i].unnamed_key)
			continue;
		access.key = request->ops[i].key;
		access.write = !hs_sim_kind_reads(request->ops[i].kind);
		hs_sim_accesses_add(&load->accesses, &access);
	}
	if (request->watched) {
		access.key = request->ops[0].key;
		access.write = true;
		hs_sim_accesses_add(&load->accesses, &access);
	}
	if (request->touches || request->flushes) {
		access.key = request->flushes ? HS_SIM_NO_KEY : request->touched;
		access.write = request->flushes;
		hs_sim_accesses_add(&load->accesses, &access);
	}
	request->access_count = (uint32_t)(load->accesses.count - request->access_first);
}

/* Requests that the next `len` bytes complete enter the history. */
static void mark_asked(struct hs_sim_actor *actor, size_t len)
{
	struct hs_sim_load *load = actor->load;
	uint64_t now = ++load->world->steps;

	while (actor->in_flight_sent != actor->in_flight_tail) {
		struct hs_sim_request *request =
			&actor->in_flight[actor->in_flight_sent % HS_SIM_IN_FLIGHT_MAX];

		if (request->end > actor->sent + len)
			break;
		actor->in_flight_sent++;
		request->first = load->history.count;
		if (hs_sim_request_is_watch(request))
			actor->watch_asked = now;
		request->watched_from = actor->watch_asked;
		for (uint32_t i = 0; i < request->ops_count; i++) {
			request->ops[i].asked = now;
			request->ops[i].asked_us = load->world->now.wall_us;
			request->ops[i].heatsink =
				actor->client->worker / load->world->options.workers;
			hs_sim_history_add(&load->history, &request->ops[i]);
		}
		hs_sim_actor_asked_ruled(actor, request);
		hs_sim_delay_sent(actor, request);
		add_accesses(load, request, actor->number);
	}
}

void hs_sim_actor_send(struct hs_sim_actor *actor)
{
	struct hs_sim_load *load = actor->load;
	size_t len = actor->outgoing.len;

	if (len == 0)
		return;
	if (hs_sim_load_draw(load, 2) == 0)
		len = 1 + hs_sim_load_draw(load, len);
	mark_asked(actor, len);
	note(actor, "sends", (struct hs_bytes){actor->outgoing.data, len});
	actor->sent += len;
	hs_sim_client_send(actor->client, (struct hs_bytes){actor->outgoing.data, len});
	hs_buf_consume(&actor->outgoing, len);
}

/* It was cut off at the output limit, as options allow; its requests in flight have unknown outcomes. */
bool hs_sim_actor_was_cut(const struct hs_sim_actor *actor)
{
	return actor->load->options.cuts && actor->client->cut;
}

/* Random switches and ticks beside the clients' requests. */
static void disturb(struct hs_sim_load *load)
{
	if (load->options.fold_switches && hs_sim_load_draw(load, FLIP_ONE_IN) == 0) {
		load->fold = !load->fold;
		hs_sim_world_set_fold(load->world, load->fold);
	}
	if (hs_sim_load_has_rules(load))
		hs_sim_load_disturb_ruled(load);
	if (load->options.ticks && hs_sim_load_draw(load, TICK_ONE_IN) == 0)
		hs_sim_world_tick(load->world);
}

static void act(void *context, void *target, uint64_t number)
{
	struct hs_sim_load *load = context;
	struct hs_sim_actor *actor = target;

	(void)number;
	actor->planned = false;
	disturb(load);
	if (actor->client && hs_sim_actor_was_cut(actor))
		actor->client = NULL;
	if (!actor->client && !hs_sim_world_is_up(load->world)) {
		actor->planned = true;
		hs_sim_world_plan(load->world, RECONNECT_US, act, load, actor);
		return;
	}
	if (!actor->client)
		hs_sim_actor_connect(actor);
	if (!actor->client->session)
		return; /* closed by the server: the check will report that */
	if (load->options.hang_ups && actor->in_flight_tail > 0 &&
	    hs_sim_load_draw(load, 24) == 0) {
		actor->client->on_reply = NULL;
		actor->client->orphaned = NULL;
		hs_sim_client_disconnect(actor->client);
		actor->client = NULL;
		if (actor->requests_left > 0)
			plan_act(actor);
		return;
	}
	if (hs_sim_load_draw(load, 8) == 0) {
		hs_sim_delay_reading_paused(actor);
		hs_sim_client_pause_reading(actor->client, !actor->client->reading_paused);
	}
	hs_sim_actor_pop_silent(actor);
	while (actor->requests_left > 0 &&
	       actor->in_flight_tail - actor->in_flight_head < actor->depth &&
	       actor->in_flight_tail - actor->in_flight_head + HS_SIM_COMPOSE_MAX <=
		       HS_SIM_IN_FLIGHT_MAX)
		hs_sim_actor_compose(actor);
	hs_sim_actor_send(actor);
	hs_sim_actor_pop_silent(actor);
	/* A client that only waits for replies continues with the next one. */
	if (actor->outgoing.len > 0 || actor->client->reading_paused ||
	    (actor->requests_left > 0 &&
	     actor->in_flight_tail - actor->in_flight_head < actor->depth))
		plan_act(actor);
}

static void plan_act(struct hs_sim_actor *actor)
{
	struct hs_sim_load *load = actor->load;
	uint32_t most = load->options.act_us_max ? load->options.act_us_max : ACT_US_MAX;
	uint64_t in_us = hs_sim_load_draw(load, 4) == 0 ? 0 : hs_sim_load_draw(load, most);

	if (actor->planned)
		return;
	actor->planned = true;
	hs_sim_world_plan(load->world, in_us, act, load, actor);
}

/* --- beginning and end --- */

/* A failover has lost writes: the history gets an external SET of the value that the key has now. */
static void note_lost(void *context, uint32_t key)
{
	struct hs_sim_load *load = context;
	struct hs_sim_world *world = load->world;
	struct hs_sim_op op = {
		.kind = HS_SIM_SET,
		.client = load->numbers++,
		.key = key,
		.external = true,
		.lost_writes = true,
		.asked_us = world->now.wall_us,
		.answered_us = world->now.wall_us,
	};

	if (key >= load->options.registers + load->options.counters)
		return;
	hs_sim_cover(&world->coverage, HS_SIM_COVERAGE_LOST);
	if (key < 64)
		load->lost |= UINT64_C(1) << key;
	op.argument = hs_sim_world_peek(world, key, &op.ttl_ms);
	if (op.argument == HS_SIM_NOTHING)
		op.kind = HS_SIM_CLEAR;
	/* Its last ms is earlier by one than that of a SET at this moment: record it as set a ms ago. */
	if (op.ttl_ms > 0) {
		op.asked_us -= 1000;
		op.answered_us -= 1000;
	}
	op.asked = ++world->steps;
	op.answered = ++world->steps;
	hs_sim_history_add(&load->history, &op);
}

struct hs_sim_load *hs_sim_load_create(const struct hs_sim_load_options *options,
				       struct hs_sim_world *world)
{
	struct hs_sim_load *load = hs_mem_zalloc(sizeof *load);

	load->options = *options;
	load->world = world;
	world->lost = note_lost;
	world->lost_context = load;
	load->fold = world->options.core.fold;
	hs_prng_init(&load->prng, hs_prng_next(&world->prng));
	load->actors = hs_mem_zalloc(options->clients * sizeof *load->actors);
	for (uint32_t i = 0; i < options->clients; i++) {
		load->actors[i].load = load;
		load->actors[i].requests_left = options->requests;
		if (options->requests > 0)
			plan_act(&load->actors[i]);
	}
	if (hs_sim_load_has_rules(load))
		hs_sim_load_begin_ruled(load);
	if (options->companions.requests > 0)
		load->companions = hs_sim_companions_create(&options->companions, world);
	return load;
}

void hs_sim_load_destroy(struct hs_sim_load **pointer)
{
	struct hs_sim_load *load = *pointer;

	for (uint32_t i = 0; i < load->options.clients; i++) {
		hs_buf_deinit(&load->actors[i].outgoing);
		for (uint32_t j = 0; j < HS_SIM_IN_FLIGHT_MAX; j++)
			hs_buf_deinit(&load->actors[i].in_flight[j].instead);
	}
	hs_sim_companions_destroy(&load->companions);
	hs_sim_history_deinit(&load->history);
	hs_sim_accesses_deinit(&load->accesses);
	hs_mem_free(&load->finals);
	hs_mem_free(&load->actors);
	hs_mem_free(pointer);
}

const int64_t *hs_sim_load_finals(const struct hs_sim_load *load)
{
	return load->finals;
}

const struct hs_sim_history *hs_sim_load_history(const struct hs_sim_load *load)
{
	return &load->history;
}

uint64_t hs_sim_load_requests(const struct hs_sim_load *load)
{
	return load->requests +
	       (load->companions ? hs_sim_companions_requests(load->companions) : 0);
}
