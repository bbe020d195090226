#include "sim/world_internal.h"

#include "base/limits.h"
#include "base/mem.h"
#include "base/slot.h"
#include "sim/stage.h"
#include "stages/stages.h"
#include "wire/reply.h"

enum { TICK_US = 100000, HEAT_SETS = 4 };

static void count_again(struct hs_sim_world *world, const struct hs_op *op)
{
	struct hs_heat_access access = {.partition = op->partition};

	if (!world->heats || op->kind != HS_OP_COMMAND || op->command->key_first == 0)
		return;
	access.key = op->argv[op->command->key_first];
	access.slot = hs_slot_of(access.key);
	access.write = (op->command->flags & HS_CMD_WRITE) != 0;
	hs_heat_add(world->heats[op->worker], &access, 0);
}

/* --- what cores ask of the world --- */

static void hand_to_core(void *context, struct hs_op *op)
{
	struct hs_sim_world *world = context;
	struct hs_sim_worker *worker = &world->workers[op->worker];
	uint64_t since_us = world->now.mono_us;

	if (world->engine && op->kind != HS_OP_PEER)
		since_us = hs_sim_engine_ran_us(world->engine);
	hs_core_complete(worker->core, hs_sim_worker_now(world, worker, since_us), op);
}

struct hs_now hs_sim_worker_now(struct hs_sim_world *world, struct hs_sim_worker *worker,
				uint64_t since_us)
{
	struct hs_now now = world->now;
	uint64_t least_us = since_us > worker->clock_us ? since_us : worker->clock_us;
	uint64_t past_us = now.mono_us > least_us ? now.mono_us - least_us : 0;
	uint64_t slow_us;

	if (world->options.slow_us_max == 0)
		return now;
	slow_us = hs_prng_below(&world->prng, world->options.slow_us_max + 1);
	if (slow_us > past_us)
		slow_us = past_us;
	now.mono_us -= slow_us;
	now.wall_us -= (int64_t)slow_us;
	worker->clock_us = now.mono_us;
	return now;
}

static void complete(void *context, struct hs_op *op)
{
	struct hs_sim_world *world = context;
	uint32_t worker = op->worker;

	hs_sim_news_forget_read(world, op);
	hs_sim_rules_back(world, op);
	if (!hs_sim_world_may_be_old(world, op)) /* then its place does not matter either */
		hs_sim_runs_note(&world->runs, world->workers[worker].core, op);
	if (hs_sim_world_errs(world, HS_SIM_COUNT_TWICE))
		count_again(world, op);
	if (world->misread)
		hs_sim_misread_done(world->misread, op);
	else
		hand_to_core(world, op);
	hs_sim_after_core(world, worker);
}

/* An operation comes back from the engine. */
static void hand_back(void *context, struct hs_op *op)
{
	struct hs_sim_world *world = context;

	if (world->tamper)
		hs_sim_tamper_done(world->tamper, op);
	else
		complete(world, op);
}

/* A key changed behind us, as somebody says who vouched for it. */
static void hand_change(void *context, uint32_t worker, const struct hs_vouch *vouch,
			const struct hs_bytes *key)
{
	struct hs_sim_world *world = context;

	hs_core_changed(world->workers[worker].core, world->now, vouch, key);
	hs_sim_after_core(world, worker);
}

static enum hs_submit hand_over(void *context, struct hs_op *op)
{
	struct hs_sim_world *world = context;

	return world->links ? hs_sim_links_submit(world->links, op)
			    : hs_sim_engine_submit(world->engine, op);
}

static void complete_later(void *context, void *target, uint64_t number)
{
	(void)number;
	complete(context, target);
}

/* A worker's part of a command for all of them, on that worker, then back. */
static void visit_peer(void *context, void *target, uint64_t number)
{
	struct hs_sim_world *world = context;
	struct hs_op *op = target;
	uint32_t peer = op->partition;

	(void)number;
	hs_core_peer(world->workers[peer].core, world->now, op);
	hs_sim_after_core(world, peer);
	hs_sim_world_plan(world, hs_prng_below(&world->prng, world->options.peer_us_max + 1),
			  complete_later, world, op);
}

static enum hs_submit submit(void *context, struct hs_op *op)
{
	struct hs_sim_worker *worker = context;
	struct hs_sim_world *world = worker->world;
	struct hs_reply reply = {.out = op->out, .resp = op->resp};
	uint64_t delay_us;

	hs_check(op->worker == worker->number);
	switch (op->kind) {
	case HS_OP_HOST:
		hs_reply_error(&reply, "ERR there is no host in a simulated world");
		return HS_SUBMIT_DONE;
	case HS_OP_PEER:
		delay_us = hs_prng_below(&world->prng, world->options.peer_us_max + 1);
		hs_sim_world_plan(world, delay_us, visit_peer, world, op);
		return HS_SUBMIT_QUEUED;
	default:
		break;
	}

	enum hs_submit submitted =
		world->tamper ? hs_sim_tamper_submit(world->tamper, op) : hand_over(world, op);

	if (submitted == HS_SUBMIT_QUEUED) {
		hs_sim_news_note_read(world, op);
		hs_sim_rules_sent(world, op);
	}
	if (submitted == HS_SUBMIT_QUEUED && world->misread)
		hs_sim_misread_submit(world->misread, op);
	return submitted;
}

static uint64_t look_at_clock(void *context)
{
	struct hs_sim_worker *worker = context;

	worker->world->now.mono_us += worker->world->options.look_us;
	worker->world->now.wall_us += worker->world->options.look_us;
	return worker->world->now.mono_us;
}

/* What a core tells the others. */
static void tell(void *context, struct hs_news *news)
{
	struct hs_sim_worker *worker = context;

	hs_sim_news_tell(worker->world, news);
}

static void drop_line(void *context, enum hs_log_level level, const char *line)
{
	(void)context, (void)level, (void)line;
}

/* --- the world --- */

struct hs_sim_world_options hs_sim_world_defaults(uint64_t seed)
{
	return (struct hs_sim_world_options){
		.workers = 1,
		.engine =
			{
				.seed = seed,
				.partitions = 4,
				.reads_at_once = true,
				.commit_us_max = 200,
				.answer_us_max = 100,
			},
		.core =
			{
				.output_bytes_max = 64 * HS_MIB,
				.slowlog_us = 10000,
				.slowlog_len_max = 128,
				.acllog_len_max = 128,
				.fold_waiters_max = UINT32_MAX,
				.cache_bytes = HS_MIB,
				.cache_entry_bytes = 64 * HS_KIB,
			},
		.peer_us_max = 50,
		.news_us_max = 50,
		.heat_sets = HEAT_SETS,
	};
}

static void create_heats(struct hs_sim_world *world)
{
	/* One seed for all: they are read as one. */
	const struct hs_heat_options options = {
		.seed = world->options.engine.seed,
		.partitions = world->options.engine.partitions,
		.key_sets = world->options.heat_sets,
	};

	world->start_us = world->now.mono_us;
	if (options.key_sets == 0)
		return;
	world->heats = hs_mem_zalloc(world->options.workers * sizeof(struct hs_heat *));
	for (uint32_t i = 0; i < world->options.workers; i++) {
		world->heats[i] = hs_heat_create(&options);
		hs_heat_now(world->heats[i], world->start_us);
	}
}

static void destroy_heats(struct hs_sim_world *world)
{
	for (uint32_t i = 0; world->heats && i < world->options.workers; i++)
		hs_heat_destroy(&world->heats[i]);
	hs_mem_free(&world->heats);
}

static void create_engine(struct hs_sim_world *world)
{
	const struct hs_sim_world_options *options = &world->options;
	const struct hs_sim_store_options store = {
		.seed = options->engine.seed,
		.partitions = options->engine.partitions,
		.bytes_max = options->engine.bytes_max,
		.shows_late = options->engine.put_off_us_max > 0 || options->engine.seal_us_max > 0,
		.mistake = options->engine.mistake,
		.news = hs_sim_news_tell,
		.changed = hs_sim_truth_changed,
		.ran = hs_sim_truth_ran,
		.context = world,
	};
	const struct hs_sim_tamper_host tamper = {
		.events = &world->events,
		.now = &world->now,
		.submit = hand_over,
		.done = complete,
		.context = world,
	};
	struct hs_sim_engine_host host = {
		.events = &world->events,
		.now = &world->now,
		.done = hand_back,
		.changed = hand_change,
		.context = world,
	};

	world->store = host.store = hs_sim_store_create(&store);
	if (options->links.on)
		world->links =
			hs_sim_links_create(&options->links, options->engine.seed, options->workers,
					    options->engine.partitions, &host);
	else
		world->engine = hs_sim_engine_create(&options->engine, &host);
	if (options->engine.mistake >= HS_SIM_JOIN_FLIGHT &&
	    options->engine.mistake <= HS_SIM_WAITERS_UNCOUNTED)
		world->tamper = hs_sim_tamper_create(options->engine.mistake, options->engine.seed,
						     &tamper);
	if (hs_sim_misread_is(options->engine.mistake))
		world->misread = hs_sim_misread_create(world, hand_to_core);
}

static void create_core(struct hs_sim_world *world, uint32_t number)
{
	const struct hs_sim_world_options *options = &world->options;
	struct hs_sim_worker *worker = &world->workers[number];
	struct hs_core_options core_options = options->core;
	struct hs_core_world core_world = {
		.commands = &hs_commands,
		.calls = &world->calls,
		.context = worker,
		.log = options->log ? options->log : &world->silence,
		.worker = number,
		.workers = options->workers,
		.partitions = options->engine.partitions,
		.reads_at_once = !options->links.on && options->engine.reads_at_once,
		.shared_connections = options->links.on,
		.together = options->links.on ? options->together : HS_TOGETHER_PARTITION,
		.node_id = "6865617473696e6b20696e206120647265616d21",
		.slowlog_ids = &world->slowlog_ids,
		.stages = options->stage ? world->stages : hs_stages,
		.seed = options->engine.seed + number,
		.key_seed = options->engine.seed,
		.heat = world->heats ? world->heats[number] : NULL,
		.heats = world->heats,
		.heats_count = world->heats ? options->workers : 0,
		.shared = world->shelves[number],
	};

	core_options.rules = world->rules;
	if (hs_sim_world_errs(world, HS_SIM_COUNT_NEVER))
		core_world.heat = NULL;
	if (options->engine.mistake == HS_SIM_WAITERS_UNCOUNTED)
		core_options.fold_waiters_max = UINT32_MAX;
	worker->world = world;
	worker->number = number;
	worker->core = hs_core_create(&core_world, &core_options);
	if (options->learned)
		hs_core_learn(worker->core, options->learned);
}

struct hs_sim_world *hs_sim_world_create(const struct hs_sim_world_options *options)
{
	struct hs_sim_world *world = hs_mem_zalloc(sizeof *world);

	world->options = *options;
	world->now = (struct hs_now){.mono_us = 1000000, .wall_us = 1700000000000000};
	world->calls =
		(struct hs_core_calls){.submit = submit, .tell = tell, .mono_us = look_at_clock};
	world->silence = (struct hs_log){.level = HS_LOG_ERROR, .sink = drop_line};
	hs_prng_init(&world->prng, ~options->engine.seed); /* the engine draws from its own */
	hs_sim_stages(world->stages);
	create_engine(world);
	world->workers = hs_mem_zalloc(options->workers * sizeof *world->workers);
	create_heats(world);
	hs_sim_rules_create(world);
	for (uint32_t i = 0; i < options->workers; i++)
		create_core(world, i);
	return world;
}

void hs_sim_world_calm(struct hs_sim_world *world)
{
	if (world->links)
		hs_sim_links_calm(world->links);
	for (uint16_t i = 0; world->engine && i < world->options.engine.partitions; i++)
		hs_sim_engine_go_on(world->engine, i);
}

void hs_sim_world_hang_up(struct hs_sim_world *world)
{
	for (struct hs_sim_client *client = world->clients; client; client = client->next)
		hs_sim_client_disconnect(client);
	for (uint32_t i = 0; i < world->options.workers; i++)
		hs_sim_after_core(world, i);
	hs_sim_world_calm(world);
	do {
		hs_sim_world_settle(world);
		if (world->engine)
			hs_sim_engine_find_lost(world->engine);
	} while (world->events.count > 0);
}

void hs_sim_world_destroy(struct hs_sim_world **pointer)
{
	struct hs_sim_world *world = *pointer;

	hs_sim_world_hang_up(world);
	for (uint32_t i = 0; i < world->options.workers; i++)
		hs_core_destroy(&world->workers[i].core);
	while (world->clients) {
		struct hs_sim_client *client = world->clients;

		world->clients = client->next;
		hs_buf_deinit(&client->received);
		hs_mem_free(&client);
	}
	hs_sim_rules_destroy(world);
	hs_sim_past_deinit(&world->past);
	hs_sim_tamper_destroy(&world->tamper);
	hs_sim_misread_destroy(&world->misread);
	if (world->links)
		hs_sim_links_destroy(&world->links);
	else
		hs_sim_engine_destroy(&world->engine);
	hs_sim_store_destroy(&world->store);
	destroy_heats(world);
	hs_sim_events_deinit(&world->events);
	hs_mem_free(&world->reads);
	hs_sim_runs_deinit(&world->runs);
	hs_mem_free(&world->workers);
	hs_mem_free(pointer);
}

struct hs_core *hs_sim_world_core(struct hs_sim_world *world, uint32_t worker)
{
	return world->workers[worker].core;
}

static void set_time(struct hs_sim_world *world, uint64_t mono_us)
{
	if (mono_us <= world->now.mono_us)
		return;
	world->now.wall_us += (int64_t)(mono_us - world->now.mono_us);
	world->now.mono_us = mono_us;
}

void hs_sim_world_plan(struct hs_sim_world *world, uint64_t in_us, hs_sim_event_run *run,
		       void *context, void *target)
{
	struct hs_sim_event event = {
		.at_us = world->now.mono_us + in_us,
		.run = run,
		.context = context,
		.target = target,
	};

	hs_sim_events_plan(&world->events, event);
}

bool hs_sim_world_step(struct hs_sim_world *world)
{
	struct hs_sim_event event;

	if (!hs_sim_events_take(&world->events, &event))
		return false;
	world->steps++;
	set_time(world, event.at_us);
	event.run(event.context, event.target, event.number);
	return true;
}

void hs_sim_world_settle(struct hs_sim_world *world)
{
	while (hs_sim_world_step(world)) {
	}
}

void hs_sim_world_tick(struct hs_sim_world *world)
{
	for (uint32_t i = 0; i < world->options.workers; i++) {
		hs_core_tick(world->workers[i].core, world->now);
		hs_sim_after_core(world, i);
	}
}

void hs_sim_world_set_fold(struct hs_sim_world *world, bool fold)
{
	world->options.core.fold = fold;
	hs_sim_world_turn(world, world->mitigate, world->rules_on);
}

void hs_sim_world_pass(struct hs_sim_world *world, uint64_t us)
{
	uint64_t end_us = world->now.mono_us + us;
	uint64_t tick_us = world->now.mono_us + TICK_US;

	for (;;) {
		uint64_t next_us = hs_sim_events_next_us(&world->events);

		if (next_us <= end_us && next_us <= tick_us) {
			hs_sim_world_step(world);
			continue;
		}
		if (tick_us > end_us)
			break;
		set_time(world, tick_us);
		hs_sim_world_tick(world);
		tick_us += TICK_US;
	}
	set_time(world, end_us);
}
