/* One heatsink: what src/serve and an engine's glue do around the cores of one process. It creates cores, passes
 * operations to the engine and to other workers, and hands results back; at its death it finishes everything in
 * flight. */
#include "sim/heatsink.h"

#include "base/limits.h"
#include "base/mem.h"
#include "base/slot.h"
#include "command/command.h"
#include "sim/names.h"
#include "sim/world_internal.h"
#include "stages/stages.h"
#include "wire/reply.h"

enum { DRAIN_US = 1000000000 };

/* An operation in flight between two workers. */
struct peer {
	struct hs_link link;
	struct hs_op *op; /* NULL: the process has died */
	bool visited;	  /* it has run at the other worker, and is on its way back */
};

/* --- results of engines --- */

static void count_again(struct hs_sim_world *world, const struct hs_sim_worker *worker,
			const struct hs_op *op)
{
	struct hs_heat_access access = {.partition = op->partition};

	if (!world->heats || op->kind != HS_OP_COMMAND || op->command->key_first == 0)
		return;
	access.key = op->argv[op->command->key_first];
	access.slot = hs_slot_of(access.key);
	access.write = (op->command->flags & HS_CMD_WRITE) != 0;
	hs_heat_add(world->heats[worker->number], &access, 0);
}

static void hand_to_core(void *context, struct hs_op *op)
{
	struct hs_sim_heatsink *heatsink = context;
	struct hs_sim_world *world = heatsink->world;
	struct hs_sim_worker *worker = hs_sim_worker_of(heatsink, op);
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

/* In front of a Cluster the order is checked for each key: while a slot moves, its keys are on two servers. */
static void note_keys(struct hs_sim_world *world, const struct hs_sim_worker *worker,
		      const struct hs_op *op, const struct hs_command *command, size_t argc,
		      const struct hs_bytes *argv)
{
	struct hs_key_walk walk;
	uint32_t number;
	size_t at;

	hs_keys_begin(&walk, command, argc, argv);
	while ((at = hs_keys_next(&walk)) > 0)
		hs_sim_executions_note(&world->executions, worker->core, op,
				       hs_sim_name_number(argv[at], &number)
					       ? HS_SIM_EXECUTIONS_KEYS + (uint16_t)number
					       : op->slot);
}

/* A read that may be stale has no place in the order; nor is there an order across the slots of a Cluster. */
static void note_run(struct hs_sim_world *world, const struct hs_sim_worker *worker,
		     const struct hs_op *op)
{
	if (hs_sim_world_read_may_be_stale(world, op))
		return;
	if (!world->options.servers.cluster)
		hs_sim_executions_note(&world->executions, worker->core, op, op->partition);
	else if (op->kind == HS_OP_EXEC)
		for (size_t i = 0; i < op->tx->count; i++)
			note_keys(world, worker, op, op->tx->commands[i].command,
				  op->tx->commands[i].argc, op->tx->commands[i].argv);
	else if (op->kind == HS_OP_COMMAND && op->slot != HS_SLOT_NONE)
		note_keys(world, worker, op, op->command, op->argc, op->argv);
}

/* Planted bugs: leaves a key on the servers. */
static void leave(struct hs_sim_world *world, const char *key, const char *value)
{
	const struct hs_bytes argv[] = {HS_LIT("SET"), hs_bytes_of(key), hs_bytes_of(value)};
	struct hs_buf reply = {0};

	hs_sim_world_do_external(world, argv[1], 3, argv, &reply);
	hs_buf_deinit(&reply);
}

/* Hands the operation to the core. The caller must call hs_sim_after_core. */
static void finish(struct hs_sim_heatsink *heatsink, struct hs_op *op)
{
	struct hs_sim_world *world = heatsink->world;
	struct hs_sim_worker *worker = hs_sim_worker_of(heatsink, op);

	hs_sim_core_events_forget_read(world, op);
	hs_sim_rules_back(worker, op);
	note_run(world, worker, op);
	if (hs_sim_world_bug_strikes(world, HS_SIM_COUNT_TWICE))
		count_again(world, worker, op);
	if (hs_sim_world_bug_strikes(world, HS_SIM_KEY_LEFT))
		leave(world, "heatsink:lock", "1");
	if (heatsink->cache_bugs)
		hs_sim_cache_bugs_done(heatsink->cache_bugs, op);
	else
		hand_to_core(heatsink, op);
}

static void complete(void *context, struct hs_op *op)
{
	struct hs_sim_heatsink *heatsink = context;
	uint32_t worker = hs_sim_worker_of(heatsink, op)->number;

	finish(heatsink, op);
	if (!heatsink->in_engine) /* else engine_handled does it */
		hs_sim_after_core(heatsink->world, worker);
}

void hs_sim_heatsink_done(void *context, struct hs_op *op)
{
	struct hs_sim_heatsink *heatsink = context;
	bool nested = heatsink->in_engine;

	heatsink->in_engine = heatsink->redis != NULL;
	if (heatsink->op_bugs)
		hs_sim_op_bugs_done(heatsink->op_bugs, op);
	else
		complete(heatsink, op);
	heatsink->in_engine = nested;
}

void hs_sim_heatsink_changed(void *context, uint32_t number,
			     const struct hs_tracking_session *tracking_session,
			     const struct hs_bytes *key)
{
	struct hs_sim_heatsink *heatsink = context;
	struct hs_sim_world *world = heatsink->world;
	struct hs_sim_worker *worker = &world->workers[heatsink->first + number];

	hs_core_changed(worker->core, world->now, tracking_session, key);
	if (heatsink->cache_bugs)
		hs_sim_cache_bugs_changed(heatsink->cache_bugs, worker->number, key);
	if (!heatsink->redis)
		hs_sim_after_core(world, worker->number);
}

static void engine_handled(void *context, uint32_t worker)
{
	struct hs_sim_heatsink *heatsink = context;

	hs_sim_after_core(heatsink->world, heatsink->first + worker);
}

/* --- between workers --- */

static void free_peer(struct peer **peer)
{
	hs_list_remove(&(*peer)->link);
	hs_mem_free(peer);
}

/* A worker has one queue for messages of other workers, so that they arrive in order. */
static void plan_peer(struct hs_sim_heatsink *heatsink, uint32_t to, struct peer *peer,
		      hs_sim_event_run *run)
{
	struct hs_sim_world *world = heatsink->world;
	struct hs_sim_worker *worker = &world->workers[heatsink->first + to];
	uint64_t at_us =
		world->now.mono_us + hs_prng_below(&world->prng, world->options.peer_us_max + 1);

	if (at_us < worker->peer_us)
		at_us = worker->peer_us;
	worker->peer_us = at_us;
	hs_sim_world_plan(world, at_us - world->now.mono_us, run, heatsink, peer);
}

static void come_back(void *context, void *target, uint64_t number)
{
	struct peer *peer = target;
	struct hs_op *op = peer->op;

	(void)number;
	free_peer(&peer);
	if (op)
		complete(context, op);
}

/* Runs a worker's part of a command for all workers on that worker, then sends the result back. */
static void visit_peer(void *context, void *target, uint64_t number)
{
	struct hs_sim_heatsink *heatsink = context;
	struct hs_sim_world *world = heatsink->world;
	struct peer *peer = target;
	uint32_t worker;

	(void)number;
	if (!peer->op) {
		free_peer(&peer);
		return;
	}
	worker = heatsink->first + peer->op->partition;
	peer->visited = true;
	hs_core_peer(world->workers[worker].core, world->now, peer->op);
	hs_sim_after_core(world, worker);
	plan_peer(heatsink, peer->op->worker, peer, come_back);
}

static void send_to_peer(struct hs_sim_heatsink *heatsink, struct hs_op *op)
{
	struct peer *peer = hs_mem_zalloc(sizeof *peer);

	peer->op = op;
	hs_list_init(&peer->link);
	hs_list_append(&heatsink->peers, &peer->link);
	if (heatsink->dead)
		return; /* not scheduled: the process is dead, and drain_cores delivers it at once */
	plan_peer(heatsink, op->partition, peer, visit_peer);
}

/* --- calls of the cores --- */

static enum hs_submit hand_over(void *context, struct hs_op *op)
{
	struct hs_sim_heatsink *heatsink = context;

	return heatsink->redis ? hs_sim_redis_submit(heatsink->redis, op)
			       : hs_sim_engine_submit(heatsink->world->engine, op);
}

static enum hs_submit submit(void *context, struct hs_op *op)
{
	struct hs_sim_worker *worker = context;
	struct hs_sim_heatsink *heatsink = worker->heatsink;
	struct hs_sim_world *world = worker->world;
	struct hs_reply reply = {.out = op->out, .resp = op->resp};
	enum hs_submit submitted;

	hs_check(hs_sim_worker_of(heatsink, op) == worker);
	switch (op->kind) {
	case HS_OP_HOST:
		hs_reply_error(&reply, "ERR there is no host in a simulated world");
		return HS_SUBMIT_DONE;
	case HS_OP_PEER:
		send_to_peer(heatsink, op);
		return HS_SUBMIT_QUEUED;
	default:
		break;
	}
	submitted = heatsink->op_bugs ? hs_sim_op_bugs_submit(heatsink->op_bugs, op)
				      : hand_over(heatsink, op);
	if (submitted == HS_SUBMIT_QUEUED) {
		hs_sim_core_events_note_read(world, op);
		hs_sim_rules_sent(worker, op);
	}
	if (submitted == HS_SUBMIT_QUEUED && heatsink->cache_bugs)
		hs_sim_cache_bugs_submit(heatsink->cache_bugs, op);
	return submitted;
}

static void cancel(void *context, struct hs_op *op)
{
	struct hs_sim_worker *worker = context;

	if (worker->heatsink->redis)
		hs_sim_redis_cancel(worker->heatsink->redis, op);
}

static bool unblock(void *context, struct hs_op *op, bool error)
{
	struct hs_sim_worker *worker = context;

	return worker->heatsink->redis && hs_sim_redis_unblock(worker->heatsink->redis, op, error);
}

static void unavailable_reason(void *context, char *text, size_t size)
{
	struct hs_sim_worker *worker = context;

	text[0] = '\0';
	if (worker->heatsink->redis)
		hs_sim_redis_unavailable_reason(worker->heatsink->redis, text, size);
}

static uint64_t look_at_clock(void *context)
{
	struct hs_sim_worker *worker = context;

	worker->world->now.mono_us += worker->world->options.look_us;
	worker->world->now.wall_us += worker->world->options.look_us;
	return worker->world->now.mono_us;
}

/* A core's event for all workers of its heatsink. */
static void broadcast_event(void *context, struct hs_event *event)
{
	struct hs_sim_worker *worker = context;

	hs_sim_core_events_send(worker->heatsink, event);
}

static const struct hs_core_calls core_calls = {
	.submit = submit,
	.cancel = cancel,
	.unblock = unblock,
	.broadcast = broadcast_event,
	.unavailable_reason = unavailable_reason,
	.mono_us = look_at_clock,
};

/* --- beginning --- */

void hs_sim_heatsink_init(struct hs_sim_heatsink *heatsink, struct hs_sim_world *world,
			  uint32_t number)
{
	*heatsink = (struct hs_sim_heatsink){
		.world = world,
		.number = number,
		.first = number * world->options.workers,
		.dead = true,
	};
	hs_list_init(&heatsink->peers);
}

static void create_bugs(struct hs_sim_heatsink *heatsink)
{
	struct hs_sim_world *world = heatsink->world;
	const struct hs_sim_engine_options *engine = &world->options.engine;
	const struct hs_sim_op_bugs_host op_bugs = {
		.events = &world->events,
		.now = &world->now,
		.submit = hand_over,
		.done = complete,
		.context = heatsink,
	};

	if (engine->bug >= HS_SIM_JOINS_READ_IN_FLIGHT && engine->bug <= HS_SIM_REFUSED_BUT_RUN)
		heatsink->op_bugs = hs_sim_op_bugs_create(engine->bug, engine->seed, &op_bugs);
	if (hs_sim_cache_bugs_is(engine->bug))
		heatsink->cache_bugs = hs_sim_cache_bugs_create(heatsink, hand_to_core);
}

void hs_sim_heatsink_plant_limit_bug(enum hs_sim_bug bug, struct hs_core_options *options)
{
	if (bug == HS_SIM_WAITERS_UNLIMITED)
		options->fold_waiters_max = UINT32_MAX;
	if (bug == HS_SIM_CACHE_UNLIMITED)
		options->cache_bytes = HS_MIB;
	if (bug == HS_SIM_TRACKED_UNLIMITED)
		options->tracking_keys_max = 0;
	if (bug == HS_SIM_OUTPUT_UNLIMITED)
		options->output_bytes_max = HS_MIB;
	if (bug == HS_SIM_PIPELINE_UNLIMITED)
		options->session_inflight_max = 0;
	if (bug == HS_SIM_HOT_UNLIMITED)
		options->hot.keys_max = 0;
}

static void create_core(struct hs_sim_heatsink *heatsink, uint32_t number)
{
	struct hs_sim_world *world = heatsink->world;
	const struct hs_sim_world_options *options = &world->options;
	struct hs_sim_worker *worker = &world->workers[heatsink->first + number];
	struct hs_core_options core_options = options->core;
	bool servers = options->servers.on;
	struct hs_core_world core_world = {
		.commands = &hs_commands,
		.calls = &core_calls,
		.context = worker,
		.log = options->log ? options->log : &world->silence,
		.worker = number,
		.workers = options->workers,
		.partitions = options->engine.partitions,
		.reads_at_once = !servers && options->engine.reads_at_once,
		.shared_connections = servers,
		.op_scope = servers ? options->op_scope : HS_OP_SCOPE_PARTITION,
		.slots = heatsink->redis ? hs_sim_redis_slots(heatsink->redis) : NULL,
		.node_id = "6865617473696e6b20696e206120647265616d21",
		.slowlog_ids = &heatsink->slowlog_ids,
		.stages = options->stage ? world->stages : hs_stages,
		/* Differs in every life: names of copies are drawn from it. */
		.seed = options->engine.seed + heatsink->first + number +
			((uint64_t)heatsink->lives << 32),
		.key_seed = options->engine.seed,
		.heat = world->heats ? world->heats[worker->number] : NULL,
		.heats = world->heats ? world->heats + heatsink->first : NULL,
		.heats_count = world->heats ? options->workers : 0,
		.shared = world->shared_caches[worker->number],
	};

	core_options.rules = world->rules_on ? world->rules : world->no_rules;
	core_options.mitigate = world->mitigate;
	if (hs_sim_world_bug_strikes(world, HS_SIM_COUNT_NEVER))
		core_world.heat = NULL;
	hs_sim_heatsink_plant_limit_bug(options->engine.bug, &core_options);
	worker->core = hs_core_create(&core_world, &core_options);
	if (options->learned)
		hs_core_learn(worker->core, options->learned);
}

void hs_sim_heatsink_start(struct hs_sim_heatsink *heatsink)
{
	struct hs_sim_world *world = heatsink->world;
	const struct hs_sim_redis_host host = {
		.events = &world->events,
		.now = &world->now,
		.network = world->network,
		.cluster = world->cluster,
		.finished = hs_sim_heatsink_done,
		.changed = hs_sim_heatsink_changed,
		.event = hs_sim_core_events_send,
		.done = hs_sim_heatsink_done,
		.handled = engine_handled,
		.context = heatsink,
	};

	heatsink->dead = false;
	for (uint32_t i = 0; i < world->options.workers; i++) {
		struct hs_sim_worker *worker = &world->workers[heatsink->first + i];

		worker->world = world;
		worker->heatsink = heatsink;
		worker->number = heatsink->first + i;
	}
	hs_sim_rules_start(heatsink);
	create_bugs(heatsink);
	if (world->cluster)
		heatsink->redis = hs_sim_servers_create_redis(world, &host);
	for (uint32_t i = 0; i < world->options.workers; i++)
		create_core(heatsink, i);
}

/* --- end --- */

static void destroy_cores(struct hs_sim_heatsink *heatsink)
{
	struct hs_sim_world *world = heatsink->world;

	for (uint32_t i = 0; i < world->options.workers; i++)
		hs_core_destroy(&world->workers[heatsink->first + i].core);
	hs_sim_op_bugs_destroy(&heatsink->op_bugs);
	hs_sim_cache_bugs_destroy(&heatsink->cache_bugs);
	hs_sim_rules_stop(heatsink);
}

/* The old engine lives until the world ends: events in flight may name it. */
static void retire_engine(struct hs_sim_heatsink *heatsink)
{
	if (!heatsink->redis)
		return;
	heatsink->previous_engines = hs_mem_realloc(
		heatsink->previous_engines, (heatsink->lives + 1) * sizeof(struct hs_sim_redis *));
	heatsink->previous_engines[heatsink->lives++] = heatsink->redis;
	heatsink->redis = NULL;
}

void hs_sim_heatsink_stop(struct hs_sim_heatsink *heatsink)
{
	if (heatsink->dead)
		return;
	heatsink->dead = true;
	if (heatsink->world->options.engine.bug == HS_SIM_VALUE_LEFT)
		leave(heatsink->world, "key0", "1000"); /* the first value that a client sets */
	if (heatsink->redis)
		hs_sim_redis_end(heatsink->redis, false);
	destroy_cores(heatsink);
	retire_engine(heatsink);
}

/* Finishes operations between workers of a dead heatsink; no client gets their replies. True: there were some. */
static bool end_peers(struct hs_sim_heatsink *heatsink)
{
	struct hs_sim_world *world = heatsink->world;
	bool any = false;

	for (struct hs_link *link = heatsink->peers.next; link != &heatsink->peers;
	     link = link->next) {
		struct peer *peer = hs_list_entry(link, struct peer, link);
		struct hs_op *op = peer->op;

		if (!op)
			continue;
		any = true;
		peer->op = NULL;
		if (!peer->visited)
			hs_core_peer(world->workers[heatsink->first + op->partition].core,
				     world->now, op);
		finish(heatsink, op);
	}
	return any;
}

/* Drains the cores of a dead heatsink so that nothing leaks: sends what stages hold back (it is answered at once
 * with an error), delivers events between workers, and lets all deadlines pass. */
static void drain_cores(struct hs_sim_heatsink *heatsink)
{
	struct hs_sim_world *world = heatsink->world;
	struct hs_now later = world->now;
	bool any = true;

	later.mono_us += DRAIN_US;
	while (any) {
		any = hs_sim_core_events_deliver_now(heatsink);
		any |= end_peers(heatsink);
		for (uint32_t i = 0; i < world->options.workers; i++) {
			struct hs_core *core = world->workers[heatsink->first + i].core;

			hs_core_alarm(core, later);
			any |= hs_core_flush(core, later);
		}
	}
}

void hs_sim_heatsink_kill(struct hs_sim_heatsink *heatsink, bool lost)
{
	struct hs_sim_world *world = heatsink->world;

	heatsink->dead = true;
	hs_sim_redis_end(heatsink->redis, lost);
	drain_cores(heatsink);
	for (struct hs_sim_client *client = world->clients; client; client = client->next) {
		if (client->session && world->workers[client->worker].heatsink == heatsink)
			hs_sim_client_lose(client);
	}
	drain_cores(heatsink);
	destroy_cores(heatsink);
	retire_engine(heatsink);
}

void hs_sim_heatsink_deinit(struct hs_sim_heatsink *heatsink)
{
	while (!hs_list_empty(&heatsink->peers)) {
		struct peer *peer = hs_list_entry(heatsink->peers.next, struct peer, link);

		free_peer(&peer);
	}
	for (uint32_t i = 0; i < heatsink->lives; i++)
		hs_sim_redis_destroy(&heatsink->previous_engines[i]);
	hs_mem_free(&heatsink->previous_engines);
}
