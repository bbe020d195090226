#include "sim/world_internal.h"

#include "base/limits.h"
#include "base/mem.h"
#include "core/internal.h"
#include "sim/stage.h"

enum {
	HEAT_SETS = 4,
	LINGER_US = 20000,
	SETTLE_US_MAX = 120000000, /* a request that waits longer is never answered */
};

static void drop_line(void *context, enum hs_log_level level, const char *line)
{
	(void)context, (void)level, (void)line;
}

/* --- the world --- */

struct hs_sim_world_options hs_sim_world_defaults(uint64_t seed)
{
	return (struct hs_sim_world_options){
		.heatsinks = 1,
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
		.event_us_max = 50,
		.heat_sets = HEAT_SETS,
	};
}

static void create_heats(struct hs_sim_world *world)
{
	/* All workers share one seed, because their heats are merged. */
	const struct hs_heat_options options = {
		.seed = world->options.engine.seed,
		.partitions = world->options.engine.partitions,
		.key_sets = world->options.heat_sets,
	};

	world->start_us = world->now.mono_us;
	if (options.key_sets == 0)
		return;
	world->heats = hs_mem_zalloc(world->workers_count * sizeof(struct hs_heat *));
	for (uint32_t i = 0; i < world->workers_count; i++) {
		world->heats[i] = hs_heat_create(&options);
		hs_heat_now(world->heats[i], world->start_us);
	}
}

static void destroy_heats(struct hs_sim_world *world)
{
	for (uint32_t i = 0; world->heats && i < world->workers_count; i++)
		hs_heat_destroy(&world->heats[i]);
	hs_mem_free(&world->heats);
}

/* Events of the store of the simulated embedded engine. */
static void send_store_event(void *context, struct hs_event *event)
{
	struct hs_sim_world *world = context;

	hs_sim_core_events_send(&world->heatsinks[0], event);
}

static void create_engine(struct hs_sim_world *world)
{
	const struct hs_sim_world_options *options = &world->options;
	const struct hs_sim_store_options store = {
		.seed = options->engine.seed,
		.partitions = options->engine.partitions,
		.bytes_max = options->engine.bytes_max,
		.shows_late = options->engine.put_off_us_max > 0 || options->engine.seal_us_max > 0,
		.bug = options->engine.bug,
		.event = send_store_event,
		.changed = hs_sim_truth_changed,
		.ran = hs_sim_truth_ran,
		.context = world,
	};
	struct hs_sim_engine_host host = {
		.events = &world->events,
		.now = &world->now,
		.done = hs_sim_heatsink_done,
		.changed = hs_sim_heatsink_changed,
		.sealed = hs_sim_truth_sealed,
		.context = &world->heatsinks[0],
	};

	world->store = host.store = hs_sim_store_create(&store);
	world->engine = hs_sim_engine_create(&options->engine, &host);
}

struct hs_sim_world *hs_sim_world_create(const struct hs_sim_world_options *options)
{
	struct hs_sim_world *world = hs_mem_zalloc(sizeof *world);

	world->options = *options;
	world->now = (struct hs_now){.mono_us = 1000000, .wall_us = 1700000000000000};
	world->silence = (struct hs_log){.level = HS_LOG_ERROR, .sink = drop_line};
	hs_prng_init(&world->prng, ~options->engine.seed); /* the engine has a separate generator */
	hs_sim_stages(world->stages);
	hs_list_init(&world->event);
	world->workers_count = options->heatsinks * options->workers;
	if (options->servers.on)
		hs_sim_servers_create(world);
	else
		create_engine(world);
	world->workers = hs_mem_zalloc(world->workers_count * sizeof *world->workers);
	create_heats(world);
	hs_sim_rules_create(world);
	for (uint32_t i = 0; i < options->heatsinks; i++) {
		hs_sim_heatsink_init(&world->heatsinks[i], world, i);
		hs_sim_heatsink_start(&world->heatsinks[i]);
	}
	if (options->servers.on)
		hs_sim_servers_start(world);
	return world;
}

void hs_sim_world_stop_faults(struct hs_sim_world *world)
{
	if (world->cluster)
		hs_sim_servers_stop_faults(world);
	for (uint16_t i = 0; world->engine && i < world->options.engine.partitions; i++)
		hs_sim_engine_go_on(world->engine, i);
}

void hs_sim_world_hang_up(struct hs_sim_world *world)
{
	for (struct hs_sim_client *client = world->clients; client; client = client->next)
		hs_sim_client_disconnect(client);
	for (uint32_t i = 0; i < world->workers_count; i++)
		hs_sim_after_core(world, i);
	hs_sim_world_stop_faults(world);
	do {
		hs_sim_world_settle(world);
		if (world->engine)
			hs_sim_engine_find_lost(world->engine);
	} while (world->engine && world->events.count > 0);
}

void hs_sim_world_destroy(struct hs_sim_world **pointer)
{
	struct hs_sim_world *world = *pointer;

	/* Requests that no server will answer end with the process, as when it dies. */
	for (uint32_t i = 0; world->stuck && i < world->options.heatsinks; i++) {
		if (!world->heatsinks[i].dead)
			hs_sim_heatsink_kill(&world->heatsinks[i], true);
	}
	hs_sim_world_hang_up(world);
	for (uint32_t i = 0; i < world->options.heatsinks; i++)
		hs_sim_heatsink_stop(&world->heatsinks[i]);
	while (world->clients) {
		struct hs_sim_client *client = world->clients;

		world->clients = client->next;
		hs_buf_deinit(&client->received);
		hs_mem_free(&client);
	}
	for (uint32_t i = 0; i < world->options.heatsinks; i++)
		hs_sim_heatsink_deinit(&world->heatsinks[i]);
	hs_sim_rules_destroy(world);
	hs_sim_timelines_deinit(&world->timelines);
	hs_sim_duplicates_deinit(&world->duplicates);
	if (world->cluster) {
		hs_sim_servers_destroy(world);
	} else {
		hs_sim_engine_destroy(&world->engine);
		hs_sim_store_destroy(&world->store);
	}
	destroy_heats(world);
	hs_sim_core_events_destroy(world);
	hs_sim_events_deinit(&world->events);
	hs_sim_faults_deinit(&world->faults);
	hs_mem_free(&world->reads);
	hs_sim_executions_deinit(&world->executions);
	hs_mem_free(&world->workers);
	hs_mem_free(pointer);
}

struct hs_core *hs_sim_world_core(struct hs_sim_world *world, uint32_t worker)
{
	return world->workers[worker].core;
}

bool hs_sim_world_is_up(const struct hs_sim_world *world)
{
	for (uint32_t i = 0; i < world->options.heatsinks; i++) {
		if (!world->heatsinks[i].dead)
			return true;
	}
	return false;
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
		.foreground = true,
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

static bool is_busy(const struct hs_sim_world *world)
{
	uint64_t under_way = world->events.foreground;

	for (uint32_t i = 0; i < world->workers_count && under_way == 0; i++) {
		struct hs_core *core = world->workers[i].core;

		under_way += core ? hs_counter_get(&hs_core_stats(core)->inflight) : 0;
	}
	return under_way > 0;
}

/* In front of servers events never end (gossip, heartbeats). Messages that are still in flight when everything is
 * answered, such as invalidations, arrive within LINGER_US. */
static void settle_servers(struct hs_sim_world *world)
{
	uint64_t until_us = world->now.mono_us + SETTLE_US_MAX;

	if (world->stuck)
		return;
	do {
		while (is_busy(world) && world->now.mono_us < until_us)
			hs_sim_world_step(world);
		for (uint64_t end_us = world->now.mono_us + LINGER_US;
		     hs_sim_events_next_us(&world->events) <= end_us;)
			hs_sim_world_step(world);
	} while (is_busy(world) && world->now.mono_us < until_us);
	if (is_busy(world)) {
		hs_sim_verdict_set(&world->broken, 1, "requests are never answered");
		world->stuck = true;
	}
}

void hs_sim_world_settle(struct hs_sim_world *world)
{
	if (world->cluster) {
		settle_servers(world);
		return;
	}
	while (hs_sim_world_step(world)) {
	}
}

/* HS_SIM_WAITS_FOR_COPY: no internal call of the core ever times out. */
static void forget_timeouts(struct hs_core *core)
{
	while (!hs_list_empty(&core->internal_due))
		hs_list_remove(core->internal_due.next);
}

void hs_sim_world_tick(struct hs_sim_world *world)
{
	bool waits = world->options.engine.bug == HS_SIM_WAITS_FOR_COPY;

	for (uint32_t i = 0; i < world->workers_count; i++) {
		if (waits && world->workers[i].core)
			forget_timeouts(world->workers[i].core);
		if (world->workers[i].core)
			hs_core_tick(world->workers[i].core, world->now);
		hs_sim_after_core(world, i);
	}
}

void hs_sim_world_set_fold(struct hs_sim_world *world, bool fold)
{
	world->options.core.fold = fold;
	hs_sim_world_set_mitigations(world, world->mitigate, world->rules_on);
}

void hs_sim_world_pass(struct hs_sim_world *world, uint64_t us)
{
	uint64_t end_us = world->now.mono_us + us;
	uint64_t tick_us = world->now.mono_us + HS_SIM_TICK_US;

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
		tick_us += HS_SIM_TICK_US;
	}
	set_time(world, end_us);
}
