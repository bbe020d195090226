/* The store of the simulated embedded engine: one map for each partition, and a second one with the state that
 * readers see where changes become visible late. */
#include "sim/store.h"

#include "base/err.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/prng.h"
#include "base/slot.h"
#include "engine/engine.h"
#include "keyspace/changed.h"
#include "keyspace/keyspace.h"
#include "keyspace/watch.h"
#include "sim/memkv.h"

enum { BUG_ONE_IN = 8, SWEEP_MAX = 1000 };

struct partition {
	struct hs_memkv *map;
	/* With `shows_late` or HS_SIM_STALE_READ: what readers see; else NULL. */
	struct hs_memkv *past;
	struct hs_watch_table *watch;
	struct hs_changed changed; /* not reported yet */
	struct hs_changed unseen;  /* changes that readers, who see `past`, do not see yet */
};

struct hs_sim_store {
	struct hs_sim_store_options options;
	struct hs_prng prng;
	struct hs_keyspace_counts counts;
	uint32_t trackers;	 /* workers that want events about changes */
	uint64_t runs;		 /* operations that were run */
	struct hs_changed fresh; /* keys changed by the running operation */
	struct partition partitions[];
};

struct hs_sim_store *hs_sim_store_create(const struct hs_sim_store_options *options)
{
	struct hs_sim_store *store =
		hs_mem_zalloc(sizeof *store + options->partitions * sizeof *store->partitions);

	store->options = *options;
	hs_prng_init(&store->prng, options->seed);
	for (uint16_t i = 0; i < options->partitions; i++) {
		struct partition *partition = &store->partitions[i];

		partition->map = hs_memkv_create();
		hs_memkv_limit(partition->map, options->bytes_max);
		if (options->shows_late || options->bug == HS_SIM_STALE_READ)
			partition->past = hs_memkv_create();
		partition->watch = hs_watch_create(options->seed);
	}
	return store;
}

void hs_sim_store_destroy(struct hs_sim_store **pointer)
{
	struct hs_sim_store *store = *pointer;

	for (uint16_t i = 0; i < store->options.partitions; i++) {
		struct partition *partition = &store->partitions[i];

		hs_memkv_destroy(&partition->map);
		hs_memkv_destroy(&partition->past);
		hs_watch_destroy(&partition->watch);
		hs_changed_deinit(&partition->changed);
		hs_changed_deinit(&partition->unseen);
	}
	hs_changed_deinit(&store->fresh);
	hs_mem_free(pointer);
}

uint32_t hs_sim_store_trackers(const struct hs_sim_store *store)
{
	return store->trackers;
}

/* HS_SIM_INVALIDATION_TOO_EARLY: whether the operation's keys are reported when it is submitted. */
static bool is_reported_early(const struct hs_sim_store *store, const struct hs_op *op)
{
	return store->options.bug == HS_SIM_INVALIDATION_TOO_EARLY && op->kind == HS_OP_COMMAND &&
	       op->command->key_first > 0 && (op->command->flags & HS_CMD_WRITE);
}

static struct hs_memkv *shown_of(const struct partition *partition)
{
	return partition->past ? partition->past : partition->map;
}

static struct hs_keyspace keyspace_of(struct hs_sim_store *store, struct hs_memkv *map,
				      struct hs_watch_table *watch, int64_t now_ms)
{
	return (struct hs_keyspace){
		.kv = hs_memkv_kv(map),
		.now_ms = now_ms,
		.hash_seed = store->options.seed,
		.prng = &store->prng,
		.watch = watch,
		.changed = watch ? &store->fresh : NULL,
		.counts = &store->counts,
	};
}

/* --- events --- */

static void send_key_changes(struct hs_sim_store *store, const struct hs_changed *changed)
{
	if (changed->count > 0)
		store->options.event(store->options.context, hs_event_create_changed(changed));
}

void hs_sim_store_send_changes(struct hs_sim_store *store, uint16_t partition)
{
	struct hs_changed *changed = &store->partitions[partition].changed;
	bool lost = store->options.bug == HS_SIM_INVALIDATION_LOST &&
		    hs_prng_below(&store->prng, BUG_ONE_IN) == 0;

	if (hs_changed_empty(changed))
		return;
	if (!lost && store->trackers > 0) {
		if (changed->all)
			store->options.event(
				store->options.context,
				hs_event_create(&(struct hs_event){.kind = HS_EVENT_CHANGED_ALL}));
		send_key_changes(store, changed);
	}
	hs_changed_clear(changed);
}

void hs_sim_store_send_changes_early(struct hs_sim_store *store, const struct hs_op *op)
{
	struct hs_changed keys = {.client = op->client};
	size_t first, step, count;

	if (store->trackers == 0 || !is_reported_early(store, op))
		return;
	count = hs_command_keys(op->command, op->argc, &first, &step);
	for (size_t i = 0; i < count; i++)
		hs_changed_add(&keys, op->argv[first + i * step]);
	send_key_changes(store, &keys);
	hs_changed_deinit(&keys);
}

static void answer_full(struct hs_op *op, size_t start)
{
	struct hs_reply reply = {.out = op->out, .resp = op->resp};

	op->out->len = start;
	hs_reply_error(&reply, "OOM store full: the simulated partition is at its limit");
}

/* --- changes --- */

/* Records what the last operation changed. Where readers see it later, workers may begin to track until then. */
static void note_changed(struct hs_sim_store *store, uint16_t partition, bool tell)
{
	const struct hs_sim_store_options *options = &store->options;
	struct hs_changed *changed = &store->partitions[partition].changed;
	struct hs_changed *unseen =
		store->partitions[partition].past ? &store->partitions[partition].unseen : NULL;
	struct hs_changed *fresh = &store->fresh;

	tell = tell && (store->trackers > 0 || options->shows_late);
	if (fresh->all && tell)
		hs_changed_add_all(changed);
	if (fresh->all && unseen)
		hs_changed_add_all(unseen);
	if (fresh->all && options->changed)
		options->changed(options->context, partition, NULL);
	for (uint32_t i = 0; i < fresh->count; i++) {
		struct hs_bytes key = hs_changed_name(fresh, i);

		if (tell)
			hs_changed_add(changed, key);
		if (unseen)
			hs_changed_add(unseen, key);
		if (options->changed)
			options->changed(options->context, partition, &key);
	}
	hs_changed_clear(fresh);
}

void hs_sim_store_sweep(struct hs_sim_store *store, uint16_t number, int64_t now_ms)
{
	struct partition *partition = &store->partitions[number];
	struct hs_keyspace ks = keyspace_of(store, partition->map, partition->watch, now_ms);
	int swept;

	partition->changed.client = 0;
	hs_memkv_begin(partition->map);
	swept = hs_keyspace_sweep(&ks, SWEEP_MAX);
	hs_check(swept >= 0);
	hs_memkv_commit(partition->map);
	note_changed(store, number, true);
}

static void peek(struct hs_keyspace *ks, enum hs_command_id id, struct hs_bytes key,
		 struct hs_buf *out)
{
	const struct hs_command *command = hs_command_by_id(id);
	const struct hs_bytes argv[] = {hs_bytes_of(command->name), key};
	struct hs_reply reply = {.out = out, .resp = 2};
	int err = hs_keyspace_run(ks, command, hs_slot_of(key), 2, argv, &reply);

	hs_check(err == 0);
}

static void peek_at(struct hs_sim_store *store, struct hs_memkv *map, struct hs_bytes key,
		    int64_t now_ms, struct hs_buf *reply, int64_t *expire_ms)
{
	struct hs_keyspace ks = keyspace_of(store, map, NULL, now_ms);
	struct hs_buf time = {0};

	peek(&ks, HS_CMD_ID_GET, key, reply);
	peek(&ks, HS_CMD_ID_PEXPIRETIME, key, &time); /* the reply is :<number> */
	hs_check(hs_num_parse_int((struct hs_bytes){time.data + 1, time.len - 3}, expire_ms));
	hs_buf_deinit(&time);
}

void hs_sim_store_peek(struct hs_sim_store *store, uint16_t partition, struct hs_bytes key,
		       int64_t now_ms, struct hs_buf *reply, int64_t *expire_ms)
{
	peek_at(store, store->partitions[partition].map, key, now_ms, reply, expire_ms);
}

int64_t hs_sim_store_ttl(struct hs_sim_store *store, const struct hs_op *op, struct hs_now now,
			 bool shown)
{
	const struct partition *partition = &store->partitions[op->partition];
	int64_t now_ms = hs_now_wall_ms(now), expire_ms;
	struct hs_buf value = {0};

	peek_at(store, shown ? shown_of(partition) : partition->map, op->argv[1], now_ms, &value,
		&expire_ms);
	hs_buf_deinit(&value);
	/* The key exists for the whole of its last ms. */
	return expire_ms < 0 ? -1 : expire_ms - now_ms + 1;
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

	if (op->watcher != 0)
		hs_watch_drop(ks->watch, op->watcher);
	if (!clean) {
		hs_reply_null_array(&reply);
		return 0;
	}
	return hs_engine_run_exec(ks, op, &reply);
}

static int run_watch(struct hs_keyspace *ks, struct hs_op *op)
{
	struct hs_reply reply = {.out = op->out, .resp = op->resp};

	for (size_t i = 1; i < op->argc; i++) {
		int err = hs_watch_add(ks->watch, ks, op->watcher, op->slot, op->argv[i]);

		hs_check(err != HS_ELIMIT); /* the core limits them */
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
	case HS_OP_SUBSCRIBE:
	case HS_OP_UNSUBSCRIBE: /* all messages pass through the cores */
	case HS_OP_TRACK:
	case HS_OP_UNTRACK: /* hs_sim_store_run counts trackers */
		hs_reply_ok(&reply);
		return 0;
	case HS_OP_PEER:
	case HS_OP_HOST:
		break;
	}
	hs_check(op->kind == HS_OP_COMMAND); /* never: the world handles the others */
	return HS_EINVAL;
}

void hs_sim_store_run(struct hs_sim_store *store, struct hs_op *op, int64_t now_ms, bool keep)
{
	struct partition *partition = &store->partitions[op->partition];
	struct hs_keyspace ks = keyspace_of(store, partition->map, partition->watch, now_ms);
	size_t start = op->out->len;

	op->engine_order = ++store->runs;
	partition->changed.client = op->client;
	if (store->options.ran)
		store->options.ran(store->options.context, op);
	if (op->kind == HS_OP_TRACK || op->kind == HS_OP_UNTRACK)
		store->trackers += op->kind == HS_OP_TRACK ? 1 : UINT32_MAX;
	hs_memkv_begin(partition->map);

	int err = run_op(&ks, op);

	if (err == 0 && keep) {
		hs_memkv_commit(partition->map);
		note_changed(store, op->partition, !is_reported_early(store, op));
		return;
	}
	hs_memkv_abort(partition->map);
	hs_changed_clear(&store->fresh);
	if (err) {
		hs_check(err == HS_EFULL);
		answer_full(op, start);
	}
}

bool hs_sim_store_read(struct hs_sim_store *store, struct hs_op *op, int64_t now_ms)
{
	const struct partition *partition = &store->partitions[op->partition];
	struct hs_keyspace ks = keyspace_of(store, shown_of(partition), NULL, now_ms);
	int err = run_command(&ks, op);

	hs_check(err == 0);
	if (store->options.ran)
		store->options.ran(store->options.context, op);
	return !ks.met_expired;
}

void hs_sim_store_catch_up(struct hs_sim_store *store, uint16_t number)
{
	struct partition *partition = &store->partitions[number];
	struct hs_bytes key, value;
	struct hs_kv *from, *to;
	char *room;
	int err;

	if (!partition->past)
		return;
	hs_changed_clear(&partition->unseen);
	from = hs_memkv_kv(partition->map);
	to = hs_memkv_kv(partition->past);
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

bool hs_sim_store_is_behind(const struct hs_sim_store *store, uint16_t partition,
			    struct hs_bytes key)
{
	const struct hs_changed *unseen = &store->partitions[partition].unseen;

	for (uint32_t i = 0; i < unseen->count; i++) {
		if (hs_bytes_equal(hs_changed_name(unseen, i), key))
			return true;
	}
	return unseen->all;
}

void hs_sim_store_unwatch(struct hs_sim_store *store, uint16_t partition, uint64_t watcher)
{
	hs_watch_drop(store->partitions[partition].watch, watcher);
}
