#include "sim/engine.h"

#include "base/mem.h"
#include "wire/reply.h"

enum { MISTAKE_ONE_IN = 8, REFUSED_ONE_IN = 8, BATCH_MAX = 8 };

struct partition {
	struct hs_op *first; /* waiting, oldest first */
	struct hs_op **last;
	uint16_t number;
	bool planned; /* a commit is */
	bool stalled;
};

struct hs_sim_engine {
	struct hs_sim_engine_options options;
	struct hs_sim_engine_host host;
	struct hs_prng prng;
	struct hs_op *lost;
	struct hs_vouch vouch; /* for everything: nobody writes behind its back */
	struct partition partitions[];
};

struct hs_sim_engine *hs_sim_engine_create(const struct hs_sim_engine_options *options,
					   const struct hs_sim_engine_host *host)
{
	struct hs_sim_engine *engine =
		hs_mem_zalloc(sizeof *engine + options->partitions * sizeof *engine->partitions);

	engine->options = *options;
	engine->host = *host;
	atomic_init(&engine->vouch.epoch, 1);
	atomic_init(&engine->vouch.proved_us, UINT64_MAX);
	hs_prng_init(&engine->prng, options->seed);
	for (uint16_t i = 0; i < options->partitions; i++) {
		struct partition *partition = &engine->partitions[i];

		partition->number = i;
		partition->last = &partition->first;
	}
	return engine;
}

void hs_sim_engine_destroy(struct hs_sim_engine **pointer)
{
	struct hs_sim_engine *engine = *pointer;

	for (uint16_t i = 0; i < engine->options.partitions; i++)
		hs_check(engine->partitions[i].first == NULL);
	hs_mem_free(pointer);
}

static bool errs(struct hs_sim_engine *engine, enum hs_sim_mistake mistake)
{
	return engine->options.mistake == mistake &&
	       hs_prng_below(&engine->prng, MISTAKE_ONE_IN) == 0;
}

static void vouch_for(struct hs_sim_engine *engine, struct hs_op *op)
{
	op->vouch = op->track ? &engine->vouch : NULL;
	op->vouch_epoch = hs_vouch_epoch(&engine->vouch);
}

/* Judged when it runs: who has waited for the commit must not see what others, who have not, saw
 * expire. */
static void run_op(struct hs_sim_engine *engine, struct hs_op *op, bool keep)
{
	vouch_for(engine, op);
	hs_sim_store_run(engine->host.store, op, hs_now_wall_ms(*engine->host.now), keep);
	if (op->track)
		op->left_ms = hs_sim_store_left(engine->host.store, op, *engine->host.now);
}

static void answer_now(struct hs_sim_engine *engine, struct hs_op *op)
{
	vouch_for(engine, op);
	hs_sim_store_read(engine->host.store, op, hs_now_wall_ms(op->received));
	if (op->track)
		op->left_ms = hs_sim_store_left(engine->host.store, op, op->received);
}

/* --- the commit --- */

static void answer(void *context, void *target, uint64_t number)
{
	struct hs_sim_engine *engine = context;

	(void)number;
	engine->host.done(engine->host.context, target);
}

static void plan(struct hs_sim_engine *engine, hs_sim_event_run *run, void *target, uint32_t us_max)
{
	struct hs_sim_event event = {
		.at_us = engine->host.now->mono_us + 1 + hs_prng_below(&engine->prng, us_max + 1),
		.run = run,
		.context = engine,
		.target = target,
	};

	hs_sim_events_plan(engine->host.events, event);
}

static struct hs_op *take(struct partition *partition)
{
	struct hs_op *op = partition->first;

	partition->first = op->next;
	if (!partition->first)
		partition->last = &partition->first;
	return op;
}

static bool plain(const struct hs_op *op)
{
	return op->kind == HS_OP_COMMAND;
}

/* Whose replies look the same: the core insists on the shape of what it merges. */
static bool alike(const struct hs_op *a, const struct hs_op *b)
{
	return plain(a) && plain(b) && a->command == b->command &&
	       a->command->place == HS_PLACE_PARTITION;
}

static void run_and_answer(struct hs_sim_engine *engine, struct hs_op *op, bool keep)
{
	if (plain(op) && errs(engine, HS_SIM_RUN_TWICE)) {
		run_op(engine, op, true);
		op->out->len = 0;
	}
	run_op(engine, op, keep);
	if (errs(engine, HS_SIM_LOSE_REPLY)) {
		op->next = engine->lost;
		engine->lost = op;
	} else {
		plan(engine, answer, op, engine->options.answer_us_max);
	}
}

static void plan_commit(struct hs_sim_engine *engine, struct partition *partition);

static void swap_first_two(struct partition *partition)
{
	struct hs_op *op = take(partition);
	struct hs_op *next = take(partition);

	op->next = partition->first;
	if (!partition->first)
		partition->last = &op->next;
	next->next = op;
	partition->first = next;
}

/* Everything that waits, or some of it: a real engine takes what it finds. */
static void commit(void *context, void *target, uint64_t number)
{
	struct hs_sim_engine *engine = context;
	struct partition *partition = target;
	uint64_t take_max = 1 + hs_prng_below(&engine->prng, BATCH_MAX);
	bool keep = !errs(engine, HS_SIM_LOSE_COMMIT);
	struct hs_op *before = NULL;

	(void)number;
	partition->planned = false;
	if (partition->stalled)
		return;
	for (uint64_t i = 0; i < take_max && partition->first; i++) {
		struct hs_op *op = partition->first;

		if (plain(op) && op->next && plain(op->next) && errs(engine, HS_SIM_SWAP_RUNS))
			swap_first_two(partition);
		op = take(partition);
		run_and_answer(engine, op, keep || !plain(op));
		if (before && alike(before, op) && errs(engine, HS_SIM_SWAP_REPLIES))
			hs_buf_swap(before->out, op->out);
		before = op;
	}
	hs_sim_store_tell(engine->host.store);
	if (engine->options.mistake != HS_SIM_STALE_READ || hs_prng_below(&engine->prng, 2) == 0)
		hs_sim_store_catch_up(engine->host.store, partition->number);
	if (partition->first)
		plan_commit(engine, partition);
}

static void plan_commit(struct hs_sim_engine *engine, struct partition *partition)
{
	if (partition->planned || partition->stalled)
		return;
	partition->planned = true;
	plan(engine, commit, partition, engine->options.commit_us_max);
}

/* --- what others call --- */

enum hs_submit hs_sim_engine_submit(struct hs_sim_engine *engine, struct hs_op *op)
{
	struct partition *partition = &engine->partitions[op->partition];
	bool read = plain(op) && (op->command->flags & HS_CMD_READONLY);

	hs_check(op->partition < engine->options.partitions);
	if (!engine->options.listens_late &&
	    (op->kind == HS_OP_LISTEN || op->kind == HS_OP_UNLISTEN)) {
		struct hs_reply reply = {.out = op->out, .resp = op->resp};

		hs_reply_ok(&reply);
		return HS_SUBMIT_DONE;
	}
	if (read && engine->options.reads_at_once && !op->ordered) {
		if (engine->options.refuses && hs_prng_below(&engine->prng, REFUSED_ONE_IN) == 0)
			return HS_SUBMIT_REFUSED;
		answer_now(engine, op);
		return HS_SUBMIT_DONE;
	}
	if (read && errs(engine, HS_SIM_READ_TOO_EARLY)) {
		answer_now(engine, op);
		return HS_SUBMIT_DONE;
	}
	hs_sim_store_tell_early(engine->host.store, op);
	op->next = NULL;
	*partition->last = op;
	partition->last = &op->next;
	plan_commit(engine, partition);
	return HS_SUBMIT_QUEUED;
}

void hs_sim_engine_stall(struct hs_sim_engine *engine, uint16_t partition)
{
	engine->partitions[partition].stalled = true;
}

void hs_sim_engine_go_on(struct hs_sim_engine *engine, uint16_t partition)
{
	engine->partitions[partition].stalled = false;
	if (engine->partitions[partition].first)
		plan_commit(engine, &engine->partitions[partition]);
}

void hs_sim_engine_find_lost(struct hs_sim_engine *engine)
{
	while (engine->lost) {
		struct hs_op *op = engine->lost;

		engine->lost = op->next;
		plan(engine, answer, op, engine->options.answer_us_max);
	}
}
