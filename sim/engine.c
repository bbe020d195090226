/* The simulated embedded engine: queues, commits, seals and shows operations partition by partition (sim/engine.h
 * has the drawing). The store executes them; this file decides only when. */
#include "sim/engine.h"

#include "base/mem.h"
#include "wire/reply.h"

enum { BUG_ONE_IN = 8, REFUSED_ONE_IN = 8, BATCH_MAX = 8 };

struct partition {
	struct hs_op *first; /* waiting, oldest first */
	struct hs_op **last;
	uint16_t number;
	bool planned; /* a commit is planned */
	bool stalled;
	bool sealing;	  /* the last run is not synced yet: readers cannot see it */
	bool put_off;	  /* readers do not see the latest state */
	bool show_wanted; /* a read was refused: a show is planned for soon */
	bool show_due;	  /* a show became due while it was sealing */
	int64_t ran_ms;	  /* the time of its last run */
	int64_t shown_ms; /* the time of the last run that readers see */
};

struct hs_sim_engine {
	struct hs_sim_engine_options options;
	struct hs_sim_engine_host host;
	struct hs_prng prng;
	struct hs_op *lost;
	uint64_t ran_us; /* of the operation that is being answered */
	/* One for all keys: there are no external writes, so it never ends. */
	struct hs_tracking_session tracking_session;
	struct partition partitions[];
};

struct hs_sim_engine *hs_sim_engine_create(const struct hs_sim_engine_options *options,
					   const struct hs_sim_engine_host *host)
{
	struct hs_sim_engine *engine =
		hs_mem_zalloc(sizeof *engine + options->partitions * sizeof *engine->partitions);

	engine->options = *options;
	engine->host = *host;
	atomic_init(&engine->tracking_session.epoch, 1);
	atomic_init(&engine->tracking_session.caught_up_us, UINT64_MAX);
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

static bool bug_strikes(struct hs_sim_engine *engine, enum hs_sim_bug bug)
{
	return engine->options.bug == bug && hs_prng_below(&engine->prng, BUG_ONE_IN) == 0;
}

static void track_in(struct hs_sim_engine *engine, struct hs_op *op)
{
	op->tracking_session = op->track ? &engine->tracking_session : NULL;
	op->tracking_epoch = hs_tracking_session_epoch(&engine->tracking_session);
}

/* Expiry is decided when the operation runs: a client that waited for the commit must not see a key that another one
 * saw expire. */
static void run_op(struct hs_sim_engine *engine, struct hs_op *op, bool keep)
{
	track_in(engine, op);
	hs_sim_store_run(engine->host.store, op, hs_now_wall_ms(*engine->host.now), keep);
	if (op->track)
		op->ttl_ms = hs_sim_store_ttl(engine->host.store, op, *engine->host.now, false);
}

/* The time of a read is its worker's reading of the clock, but never earlier than the data that it sees. */
static struct hs_now date_of(const struct hs_sim_engine *engine, const struct hs_op *op)
{
	int64_t shown_us = engine->partitions[op->partition].shown_ms * 1000;
	struct hs_now now = op->received;

	if (now.wall_us < shown_us && engine->options.bug != HS_SIM_READ_UNDATED)
		now.wall_us = shown_us;
	return now;
}

/* False: it must queue for the commit. */
static bool answer_now(struct hs_sim_engine *engine, struct hs_op *op)
{
	struct hs_now now = date_of(engine, op);
	size_t mark = op->out->len;

	track_in(engine, op);
	if (!hs_sim_store_read(engine->host.store, op, hs_now_wall_ms(now)) &&
	    engine->options.bug != HS_SIM_EXPIRED_AT_ONCE) {
		op->out->len = mark;
		return false;
	}
	if (op->track)
		op->ttl_ms = hs_sim_store_ttl(engine->host.store, op, now, true);
	return true;
}

/* --- the commit --- */

static void answer(void *context, void *target, uint64_t number)
{
	struct hs_sim_engine *engine = context;

	engine->ran_us = number;
	engine->host.done(engine->host.context, target);
}

uint64_t hs_sim_engine_ran_us(const struct hs_sim_engine *engine)
{
	return engine->ran_us;
}

/* Plans `run` for a random moment, at least `from_us` from now and at most about `us_max` later. */
static void plan_after(struct hs_sim_engine *engine, hs_sim_event_run *run, void *target,
		       uint64_t from_us, uint32_t us_max)
{
	struct hs_sim_event event = {
		.at_us = engine->host.now->mono_us + from_us + 1 +
			 hs_prng_below(&engine->prng, us_max + 1),
		.run = run,
		.context = engine,
		.target = target,
		.number = engine->host.now->mono_us,
	};

	hs_sim_events_plan(engine->host.events, event);
}

static void plan(struct hs_sim_engine *engine, hs_sim_event_run *run, void *target, uint32_t us_max)
{
	plan_after(engine, run, target, 0, us_max);
}

/* --- visibility to readers --- */

static void show(struct hs_sim_engine *engine, struct partition *partition)
{
	partition->put_off = false;
	partition->show_wanted = false;
	partition->show_due = false;
	partition->shown_ms = partition->ran_ms;
	hs_sim_store_catch_up(engine->host.store, partition->number);
}

static void show_later(void *context, void *target, uint64_t number)
{
	struct partition *partition = target;

	(void)number;
	if (partition->sealing)
		partition->show_due = true;
	else if (partition->put_off)
		show(context, partition);
}

/* After a run: shows it to readers now, or some time later. */
static void show_or_put_off(struct hs_sim_engine *engine, struct partition *partition)
{
	uint32_t put_off_us_max = engine->options.put_off_us_max;

	if (put_off_us_max == 0 || hs_prng_below(&engine->prng, 2) == 0 || partition->show_due) {
		show(engine, partition);
		return;
	}
	if (!partition->put_off)
		plan(engine, show_later, partition, put_off_us_max);
	partition->put_off = true;
}

/* Whether the read's key has changes that readers do not see. Asks for a show soon. */
static bool is_hidden(struct hs_sim_engine *engine, const struct hs_op *op)
{
	struct partition *partition = &engine->partitions[op->partition];
	size_t first, step, count;
	bool hidden;

	if (!partition->put_off)
		return false;
	count = hs_command_keys(op->command, op->argc, &first, &step);
	hidden = count == 0;
	for (size_t i = 0; i < count && !hidden; i++)
		hidden = hs_sim_store_is_behind(engine->host.store, op->partition,
						op->argv[first + i * step]);
	if (hidden && !partition->show_wanted) {
		partition->show_wanted = true;
		plan(engine, show_later, partition, engine->options.commit_us_max);
	}
	return hidden;
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

/* Whether the replies have the same shape, which the core relies on when it merges them. */
static bool alike(const struct hs_op *a, const struct hs_op *b)
{
	return plain(a) && plain(b) && a->command == b->command &&
	       a->command->place == HS_PLACE_PARTITION;
}

static void run_and_answer(struct hs_sim_engine *engine, struct hs_op *op, bool keep,
			   uint64_t seal_us)
{
	if (plain(op) && bug_strikes(engine, HS_SIM_RUN_TWICE)) {
		run_op(engine, op, true);
		op->out->len = 0;
	}
	run_op(engine, op, keep);
	if (bug_strikes(engine, HS_SIM_LOSE_REPLY)) {
		op->next = engine->lost;
		engine->lost = op;
	} else {
		plan_after(engine, answer, op, seal_us, engine->options.answer_us_max);
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

/* The run is synced: shows it to readers, or puts that off. */
static void seal(void *context, void *target, uint64_t number)
{
	struct hs_sim_engine *engine = context;
	struct partition *partition = target;

	(void)number;
	partition->planned = false;
	partition->sealing = false;
	engine->host.sealed(engine->host.context, partition->number);
	hs_sim_store_send_changes(engine->host.store, partition->number);
	if (engine->options.bug != HS_SIM_STALE_READ)
		show_or_put_off(engine, partition);
	else if (hs_prng_below(&engine->prng, 2) == 0)
		show(engine, partition);
	if (partition->first)
		plan_commit(engine, partition);
}

/* Runs the first operations that wait, at most a random number from 1 to BATCH_MAX: a real engine takes those
 * that have arrived. */
static void commit(void *context, void *target, uint64_t number)
{
	struct hs_sim_engine *engine = context;
	struct partition *partition = target;
	uint64_t take_max = 1 + hs_prng_below(&engine->prng, BATCH_MAX);
	bool keep = !bug_strikes(engine, HS_SIM_LOSE_COMMIT);
	struct hs_op *before = NULL;
	uint64_t seal_us = 0;

	(void)number;
	partition->planned = false;
	if (engine->options.seal_us_max > 0)
		seal_us = hs_prng_below(&engine->prng, engine->options.seal_us_max + 1);
	if (partition->stalled)
		return;
	partition->sealing = seal_us > 0;
	for (uint64_t i = 0; i < take_max && partition->first; i++) {
		struct hs_op *op = partition->first;

		if (plain(op) && op->next && plain(op->next) &&
		    bug_strikes(engine, HS_SIM_SWAP_RUNS))
			swap_first_two(partition);
		op = take(partition);
		run_and_answer(engine, op, keep || !plain(op), seal_us);
		if (before && alike(before, op) && bug_strikes(engine, HS_SIM_SWAP_REPLIES))
			hs_buf_swap(before->out, op->out);
		before = op;
	}
	partition->ran_ms = hs_now_wall_ms(*engine->host.now);
	if (seal_us == 0) {
		seal(engine, partition, 0);
		return;
	}
	partition->planned = true; /* nothing else runs before it is sealed */
	hs_sim_events_plan(engine->host.events,
			   (struct hs_sim_event){
				   .at_us = engine->host.now->mono_us + seal_us,
				   .run = seal,
				   .context = engine,
				   .target = partition,
			   });
}

static void plan_commit(struct hs_sim_engine *engine, struct partition *partition)
{
	if (partition->planned || partition->stalled)
		return;
	partition->planned = true;
	plan(engine, commit, partition, engine->options.commit_us_max);
}

/* --- calls --- */

enum hs_submit hs_sim_engine_submit(struct hs_sim_engine *engine, struct hs_op *op)
{
	struct partition *partition = &engine->partitions[op->partition];
	bool read = plain(op) && (op->command->flags & HS_CMD_READONLY);

	hs_check(op->partition < engine->options.partitions);
	if (!engine->options.listens_late &&
	    (op->kind == HS_OP_SUBSCRIBE || op->kind == HS_OP_UNSUBSCRIBE)) {
		struct hs_reply reply = {.out = op->out, .resp = op->resp};

		hs_reply_ok(&reply);
		return HS_SUBMIT_DONE;
	}
	if (read && engine->options.reads_at_once && !op->ordered) {
		if (engine->options.refuses && hs_prng_below(&engine->prng, REFUSED_ONE_IN) == 0)
			return HS_SUBMIT_REFUSED;
		if (is_hidden(engine, op))
			return HS_SUBMIT_REFUSED;
		return answer_now(engine, op) ? HS_SUBMIT_DONE : HS_SUBMIT_REFUSED;
	}
	if (read && bug_strikes(engine, HS_SIM_READ_TOO_EARLY) && answer_now(engine, op))
		return HS_SUBMIT_DONE;
	hs_sim_store_send_changes_early(engine->host.store, op);
	op->next = NULL;
	*partition->last = op;
	partition->last = &op->next;
	plan_commit(engine, partition);
	return HS_SUBMIT_QUEUED;
}

bool hs_sim_engine_is_sealing(const struct hs_sim_engine *engine, uint16_t partition)
{
	return engine->partitions[partition].sealing;
}

void hs_sim_engine_sweep(struct hs_sim_engine *engine, uint16_t partition)
{
	hs_sim_store_sweep(engine->host.store, partition, hs_now_wall_ms(*engine->host.now));
	if (!engine->partitions[partition].sealing) /* else seal() reports it with the run */
		hs_sim_store_send_changes(engine->host.store, partition);
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
