#include "sim/engine.h"

#include "base/err.h"
#include "base/mem.h"
#include "keyspace/changed.h"
#include "keyspace/keyspace.h"
#include "keyspace/watch.h"
#include "sim/memkv.h"

enum { MISTAKE_ONE_IN = 8, REFUSED_ONE_IN = 8, BATCH_MAX = 8 };

struct partition {
	struct hs_memkv *map;
	struct hs_memkv *past; /* HS_SIM_STALE_READ: what readers see instead */
	struct hs_watch_table *watch;
	struct hs_op *first; /* waiting, oldest first */
	struct hs_op **last;
	bool planned; /* a commit is */
	bool stalled;
};

struct hs_sim_engine {
	struct hs_sim_engine_options options;
	struct hs_sim_engine_host host;
	struct hs_prng prng;
	struct hs_keyspace_counts counts;
	struct hs_op *lost;
	uint32_t trackers; /* workers that are told of changes */
	struct hs_changed changed;
	struct partition partitions[];
};

struct hs_sim_engine *hs_sim_engine_create(const struct hs_sim_engine_options *options,
					   const struct hs_sim_engine_host *host)
{
	struct hs_sim_engine *engine =
		hs_mem_zalloc(sizeof *engine + options->partitions * sizeof *engine->partitions);

	engine->options = *options;
	engine->host = *host;
	hs_prng_init(&engine->prng, options->seed);
	for (uint16_t i = 0; i < options->partitions; i++) {
		struct partition *partition = &engine->partitions[i];

		partition->map = hs_memkv_create();
		hs_memkv_limit(partition->map, options->bytes_max);
		if (options->mistake == HS_SIM_STALE_READ)
			partition->past = hs_memkv_create();
		partition->watch = hs_watch_create(options->seed);
		partition->last = &partition->first;
	}
	return engine;
}

void hs_sim_engine_destroy(struct hs_sim_engine **pointer)
{
	struct hs_sim_engine *engine = *pointer;

	for (uint16_t i = 0; i < engine->options.partitions; i++) {
		struct partition *partition = &engine->partitions[i];

		hs_check(partition->first == NULL);
		hs_memkv_destroy(&partition->map);
		hs_memkv_destroy(&partition->past);
		hs_watch_destroy(&partition->watch);
	}
	hs_changed_deinit(&engine->changed);
	hs_mem_free(pointer);
}

static bool errs(struct hs_sim_engine *engine, enum hs_sim_mistake mistake)
{
	return engine->options.mistake == mistake &&
	       hs_prng_below(&engine->prng, MISTAKE_ONE_IN) == 0;
}

/* HS_SIM_NEWS_TOO_EARLY: its keys are told when it is submitted. */
static bool told_early(const struct hs_sim_engine *engine, const struct hs_op *op)
{
	return engine->options.mistake == HS_SIM_NEWS_TOO_EARLY && op->kind == HS_OP_COMMAND &&
	       op->command->key_first > 0 && (op->command->flags & HS_CMD_WRITE);
}

static struct hs_keyspace keyspace_of(struct hs_sim_engine *engine, struct hs_memkv *map,
				      struct hs_watch_table *watch, const struct hs_op *op)
{
	return (struct hs_keyspace){
		.kv = hs_memkv_kv(map),
		.now_ms = hs_now_wall_ms(op->received),
		.hash_seed = engine->options.seed,
		.prng = &engine->prng,
		.watch = watch,
		.changed = watch && engine->trackers > 0 && !told_early(engine, op)
				   ? &engine->changed
				   : NULL,
		.counts = &engine->counts,
	};
}

/* --- news --- */

static void tell_keys(struct hs_sim_engine *engine, const struct hs_changed *changed)
{
	if (changed->count > 0)
		engine->host.news(engine->host.context, hs_news_create_changed(changed));
}

/* What has just been committed. */
static void tell(struct hs_sim_engine *engine)
{
	struct hs_changed *changed = &engine->changed;

	if (hs_changed_empty(changed))
		return;
	if (!errs(engine, HS_SIM_NEWS_LOST)) {
		if (changed->all)
			engine->host.news(
				engine->host.context,
				hs_news_create(&(struct hs_news){.kind = HS_NEWS_CHANGED_ALL}));
		tell_keys(engine, changed);
	}
	hs_changed_clear(changed);
}

/* What will be committed. */
static void tell_early(struct hs_sim_engine *engine, const struct hs_op *op)
{
	struct hs_changed keys = {.client = op->client};
	size_t first, step, count;

	if (engine->trackers == 0 || !told_early(engine, op))
		return;
	count = hs_command_keys(op->command, op->argc, &first, &step);
	for (size_t i = 0; i < count; i++)
		hs_changed_add(&keys, op->argv[first + i * step]);
	tell_keys(engine, &keys);
	hs_changed_deinit(&keys);
}

static void answer_full(struct hs_op *op, size_t start)
{
	struct hs_reply reply = {.out = op->out, .resp = op->resp};

	op->out->len = start;
	hs_reply_error(&reply, "OOM store full: the simulated partition is at its limit");
}

/* --- running one operation, inside a transaction: 0, or HS_EFULL when it must be undone --- */

static int run_command(struct hs_keyspace *ks, struct hs_op *op)
{
	struct hs_reply reply = {.out = op->out, .resp = op->resp};
	struct hs_keyspace_counts counts = *ks->counts;
	int err;

	ks->frequency = op->frequency;
	err = hs_keyspace_run(ks, op->command, op->slot, op->argc, op->argv, &reply);
	op->missed = err == 0 && hs_keyspace_missed(&counts, ks->counts);
	return err;
}

static int run_exec(struct hs_keyspace *ks, struct hs_op *op)
{
	struct hs_reply reply = {.out = op->out, .resp = op->resp};
	bool clean = op->watcher == 0 || hs_watch_clean(ks->watch, ks, op->watcher);
	int err;

	if (op->watcher != 0)
		hs_watch_drop(ks->watch, op->watcher);
	if (!clean) {
		hs_reply_null_array(&reply);
		return 0;
	}
	hs_reply_array(&reply, op->tx->count);
	for (size_t i = 0; i < op->tx->count; i++) {
		struct hs_op_tx_command *command = &op->tx->commands[i];
		struct hs_keyspace_counts counts = *ks->counts;

		if (command->answered.len > 0) {
			hs_buf_append_bytes(op->out, command->answered);
			continue;
		}
		ks->frequency = command->frequency;
		err = hs_keyspace_run(ks, command->command, op->slot, command->argc, command->argv,
				      &reply);
		if (err)
			return err;
		command->missed = hs_keyspace_missed(&counts, ks->counts);
	}
	return 0;
}

static int run_watch(struct hs_keyspace *ks, struct hs_op *op)
{
	struct hs_reply reply = {.out = op->out, .resp = op->resp};

	for (size_t i = 1; i < op->argc; i++) {
		int err = hs_watch_add(ks->watch, ks, op->watcher, op->slot, op->argv[i]);

		hs_check(err != HS_ELIMIT); /* the core counts them */
		if (err)
			return err;
	}
	hs_reply_ok(&reply);
	return 0;
}

static int run_op(struct hs_keyspace *ks, struct hs_op *op)
{
	struct hs_reply reply = {.out = op->out, .resp = op->resp};

	switch (op->kind) {
	case HS_OP_COMMAND:
		return run_command(ks, op);
	case HS_OP_EXEC:
		return run_exec(ks, op);
	case HS_OP_WATCH:
		return run_watch(ks, op);
	case HS_OP_UNWATCH:
		hs_watch_drop(ks->watch, op->watcher);
		hs_reply_ok(&reply);
		return 0;
	case HS_OP_LISTEN:
	case HS_OP_UNLISTEN: /* all there is to know passes through the cores */
	case HS_OP_TRACK:
	case HS_OP_UNTRACK: /* the engine counts them itself */
		hs_reply_ok(&reply);
		return 0;
	case HS_OP_PEER:
	case HS_OP_HOST:
		break;
	}
	hs_check(op->kind == HS_OP_COMMAND); /* never: the world keeps the others */
	return HS_EINVAL;
}

static void run_in(struct hs_sim_engine *engine, struct hs_memkv *map, struct hs_watch_table *watch,
		   struct hs_op *op, bool keep)
{
	struct hs_keyspace ks = keyspace_of(engine, map, watch, op);
	size_t start = op->out->len;

	engine->changed.client = op->client;
	if (op->kind == HS_OP_TRACK || op->kind == HS_OP_UNTRACK)
		engine->trackers += op->kind == HS_OP_TRACK ? 1 : UINT32_MAX;
	hs_memkv_begin(map);

	int err = run_op(&ks, op);

	if (err == 0 && keep) {
		hs_memkv_commit(map);
		return;
	}
	hs_memkv_abort(map);
	if (err) {
		hs_check(err == HS_EFULL);
		answer_full(op, start);
	}
}

static void answer_now(struct hs_sim_engine *engine, struct partition *partition, struct hs_op *op)
{
	struct hs_memkv *map = partition->map;

	if (partition->past)
		map = partition->past;

	struct hs_keyspace ks = keyspace_of(engine, map, NULL, op);
	int err = run_command(&ks, op);

	hs_check(err == 0);
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

/* Reads see the store as it was at some earlier commit until this brings them up to date. */
static void catch_up(struct partition *partition)
{
	struct hs_kv *from = hs_memkv_kv(partition->map);
	struct hs_kv *to = hs_memkv_kv(partition->past);
	struct hs_bytes key, value;
	char *room;
	int err;

	hs_memkv_begin(partition->past);
	err = to->calls->clear(to);
	hs_check(err == 0);
	for (enum hs_kv_tree tree = 0; tree < HS_KV_TREES; tree++) {
		err = from->calls->seek(from, tree, (struct hs_bytes){0}, &key, &value);
		for (; err == 0; err = from->calls->next(from, tree, &key, &value)) {
			err = to->calls->put(to, tree, key, value.len, &room);
			hs_check(err == 0);
			if (value.len > 0)
				memcpy(room, value.data, value.len);
		}
		hs_check(err == HS_ENOTFOUND);
	}
	hs_memkv_commit(partition->past);
}

static void run_and_answer(struct hs_sim_engine *engine, struct partition *partition,
			   struct hs_op *op, bool keep)
{
	if (plain(op) && errs(engine, HS_SIM_RUN_TWICE)) {
		run_in(engine, partition->map, partition->watch, op, true);
		op->out->len = 0;
	}
	run_in(engine, partition->map, partition->watch, op, keep);
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
		run_and_answer(engine, partition, op, keep || !plain(op));
		if (before && alike(before, op) && errs(engine, HS_SIM_SWAP_REPLIES))
			hs_buf_swap(before->out, op->out);
		before = op;
	}
	tell(engine);
	if (partition->past && hs_prng_below(&engine->prng, 2) == 0)
		catch_up(partition);
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
		answer_now(engine, partition, op);
		return HS_SUBMIT_DONE;
	}
	if (read && errs(engine, HS_SIM_READ_TOO_EARLY)) {
		answer_now(engine, partition, op);
		return HS_SUBMIT_DONE;
	}
	tell_early(engine, op);
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

uint32_t hs_sim_engine_trackers(const struct hs_sim_engine *engine)
{
	return engine->trackers;
}

void hs_sim_engine_find_lost(struct hs_sim_engine *engine)
{
	while (engine->lost) {
		struct hs_op *op = engine->lost;

		engine->lost = op->next;
		plan(engine, answer, op, engine->options.answer_us_max);
	}
}
