/* Planted bugs of a wrong cache (sim/planted_bugs.h). Each is a small change of the shared cache around a fetch or a
 * write, or a wrong answer to a GET. */
#include "sim/cache_bugs.h"

#include "absorb/cache/stage.h"
#include "base/mem.h"
#include "core/internal.h"
#include "sim/names.h"
#include "sim/world_internal.h"

/* A fetch in flight, and the version of its key when it was sent. */
struct pending_op {
	const struct hs_op *op;
	struct hs_version version;
	uint64_t sent_us;
	struct pending_op *next;
};

struct hs_sim_cache_bugs {
	struct hs_sim_heatsink *heatsink;
	struct hs_sim_world *world;
	void (*done)(void *context, struct hs_op *op);
	struct pending_op *pending_ops;
};

bool hs_sim_cache_bugs_is(enum hs_sim_bug bug)
{
	return bug >= HS_SIM_VERSION_NOT_BUMPED && bug <= HS_SIM_OLD_DURING_FETCH;
}

struct hs_sim_cache_bugs *hs_sim_cache_bugs_create(struct hs_sim_heatsink *heatsink,
						   void (*done)(void *context, struct hs_op *op))
{
	struct hs_sim_cache_bugs *cache_bugs = hs_mem_zalloc(sizeof *cache_bugs);

	cache_bugs->heatsink = heatsink;
	cache_bugs->world = heatsink->world;
	cache_bugs->done = done;
	return cache_bugs;
}

void hs_sim_cache_bugs_destroy(struct hs_sim_cache_bugs **pointer)
{
	if (*pointer)
		hs_check(!(*pointer)->pending_ops);
	hs_mem_free(pointer);
}

/* --- kinds of operations --- */

static bool is_get(const struct hs_op *op)
{
	return op->kind == HS_OP_COMMAND && op->command->id == HS_CMD_ID_GET;
}

static bool is_write(const struct hs_op *op)
{
	return op->kind == HS_OP_COMMAND && !(op->command->flags & HS_CMD_READONLY);
}

static bool is_increment(const struct hs_op *op)
{
	return op->kind == HS_OP_COMMAND &&
	       (op->command->id == HS_CMD_ID_INCR || op->command->id == HS_CMD_ID_INCRBY);
}

static void make_query(struct hs_cache_query *query, const struct hs_shared *shared,
		       struct hs_bytes key, struct hs_bytes words[2])
{
	hs_cache_query_get(query, hs_shared_hash(shared, key), key, words);
}

/* --- to the engine --- */

/* HS_SIM_DOUBLE_FETCH: a later read of the key does not find this fetch, and sends one of its own. */
static void forget_fetch(const struct hs_op *op)
{
	struct hs_request *request = op->owner;
	struct hs_cache_fetch *fetch = request->context;

	hs_list_remove(&fetch->of_key);
}

void hs_sim_cache_bugs_submit(struct hs_sim_cache_bugs *cache_bugs, const struct hs_op *op)
{
	const struct hs_shared *shared =
		cache_bugs->world
			->shared_caches[hs_sim_worker_of(cache_bugs->heatsink, op)->number];
	struct pending_op *pending_op;
	struct hs_bytes words[2];
	struct hs_cache_query query;

	if (!op->track || !is_get(op))
		return;
	if (cache_bugs->world->options.engine.bug == HS_SIM_DOUBLE_FETCH)
		forget_fetch(op);
	pending_op = hs_mem_zalloc(sizeof *pending_op);
	make_query(&query, shared, op->argv[1], words);
	*pending_op = (struct pending_op){
		.op = op,
		.version = hs_shared_version(shared, query.key_hash),
		.sent_us = cache_bugs->world->now.mono_us,
		.next = cache_bugs->pending_ops,
	};
	cache_bugs->pending_ops = pending_op;
}

/* --- and back --- */

static bool take_pending(struct hs_sim_cache_bugs *cache_bugs, const struct hs_op *op,
			 struct pending_op *taken)
{
	for (struct pending_op **link = &cache_bugs->pending_ops; *link; link = &(*link)->next) {
		struct pending_op *pending_op = *link;

		if (pending_op->op != op)
			continue;
		*taken = *pending_op;
		*link = pending_op->next;
		hs_mem_free(&pending_op);
		return true;
	}
	return false;
}

/* HS_SIM_VERSION_NOT_BUMPED: makes the entry valid again, as if the increment had not changed the version. */
static void undo_version_bump(struct hs_shared *shared, const struct hs_cache_query *query)
{
	struct hs_cache_entry *entry = hs_shared_get(shared, query);
	uint32_t done = hs_shared_version(shared, query->key_hash).done;

	if (!entry)
		return;
	if (entry->done + 1 == done)
		entry->done = done;
	hs_cache_entry_unref(&entry);
}

/* HS_SIM_COPIES_NOT_INVALIDATED: makes the set of copies valid again. A set is looked up as absorb/copies/make.c
 * does. */
static void revalidate_copies(struct hs_sim_world *world, uint32_t worker, struct hs_bytes key)
{
	struct hs_shared *shared = world->shared_caches[worker];
	struct hs_cache_entry *entry;
	struct hs_version version;
	struct hs_bytes words[2];
	struct hs_cache_query query;

	make_query(&query, shared, key, words);
	query.command = world->options.learned
				? hs_learned_find(world->options.learned, HS_LIT("dump"))
				: NULL;
	query.signature = ~query.signature;
	entry = query.command ? hs_shared_get(shared, &query) : NULL;
	version = hs_shared_version(shared, query.key_hash);
	if (entry && version.begun == version.done) {
		entry->done = version.done;
		atomic_store(&entry->invalid, false);
	}
	hs_cache_entry_unref(&entry);
}

void hs_sim_cache_bugs_changed(struct hs_sim_cache_bugs *cache_bugs, uint32_t worker,
			       const struct hs_bytes *key)
{
	if (key && cache_bugs->world->options.engine.bug == HS_SIM_COPIES_NOT_INVALIDATED)
		revalidate_copies(cache_bugs->world, worker, *key);
}

static void cache_raced(struct hs_shared *shared, const struct hs_cache_query *query,
			struct hs_cache_entry *entry, const struct pending_op *pending_op)
{
	struct hs_version now = hs_shared_version(shared, query->key_hash);

	if (!entry ||
	    (now.begun == pending_op->version.begun && now.done == pending_op->version.done))
		return;
	entry->done = now.done;
	hs_shared_put(shared, entry);
}

static void extend_missing(struct hs_shared *shared, const struct hs_cache_query *query,
			   enum hs_sim_bug bug)
{
	struct hs_cache_entry *entry = hs_shared_get(shared, query);

	if (!entry)
		return;
	if (entry->missing && bug == HS_SIM_NEGATIVE_FOREVER)
		entry->until_us = UINT64_MAX;
	if (entry->missing && bug == HS_SIM_MISSING_CACHED_IN_MOVE)
		atomic_store(&entry->expires_us, UINT64_MAX);
	hs_cache_entry_unref(&entry);
}

/* Makes a cache entry of the fetch's reply. */
static struct hs_cache_entry *make_entry(const struct hs_cache_query *query, const struct hs_op *op,
					 const struct pending_op *pending_op,
					 const struct hs_sim_rule *rule)
{
	struct hs_bytes reply = op->answer.len > 0 ? op->answer : hs_buf_bytes(op->out);
	struct hs_cache_entry *entry =
		op->tracking_session ? hs_cache_entry_create(query, reply) : NULL;

	if (!entry)
		return NULL;
	entry->worker = op->worker;
	entry->tracking_session = op->tracking_session;
	entry->tracking_epoch = op->tracking_epoch;
	entry->read_us = entry->until_us = pending_op->sent_us;
	entry->until_us += entry->missing ? rule->negative_ttl_us : rule->ttl_us;
	return entry;
}

void hs_sim_cache_bugs_done(struct hs_sim_cache_bugs *cache_bugs, struct hs_op *op)
{
	struct hs_sim_world *world = cache_bugs->world;
	enum hs_sim_bug bug = world->options.engine.bug;
	struct hs_shared *shared;
	struct hs_bytes words[2];
	struct hs_cache_entry *entry = NULL;
	struct pending_op pending_op = {0};
	struct hs_cache_query query;
	struct hs_buf key = {0};
	bool one = op->kind == HS_OP_COMMAND && op->argc > 1;
	bool increment = is_increment(op), write = is_write(op);
	uint32_t worker = hs_sim_worker_of(cache_bugs->heatsink, op)->number;
	bool read = take_pending(cache_bugs, op, &pending_op);

	shared = world->shared_caches[worker];
	if (one)
		hs_buf_append_bytes(&key, op->argv[1]);
	make_query(&query, shared, hs_buf_bytes(&key), words);
	if (read && bug == HS_SIM_RACED_FETCH_CACHED)
		entry = make_entry(&query, op, &pending_op, &world->options.rules[0]);
	cache_bugs->done(cache_bugs->heatsink, op); /* frees the operation */
	if (increment && bug == HS_SIM_VERSION_NOT_BUMPED)
		undo_version_bump(shared, &query);
	if (one && write && bug == HS_SIM_COPIES_NOT_INVALIDATED)
		revalidate_copies(world, worker, hs_buf_bytes(&key));
	if (read && bug == HS_SIM_RACED_FETCH_CACHED)
		cache_raced(shared, &query, entry, &pending_op);
	if (read)
		extend_missing(shared, &query, bug);
	hs_cache_entry_unref(&entry);
	hs_buf_deinit(&key);
}

/* --- to clients --- */

/* HS_SIM_OLD_DURING_FETCH: within stale-while-revalidate, but the key was written since. */
static bool is_old(const struct hs_sim_world *world, const struct hs_cache_entry *entry,
		   const struct hs_sim_rule *rule, uint32_t done)
{
	return entry->done != done && rule->stale_while_revalidate_us > 0 &&
	       world->now.mono_us - entry->read_us <=
		       rule->stale_us + rule->stale_while_revalidate_us;
}

bool hs_sim_cache_bugs_answer(struct hs_sim_world *world, uint32_t worker, uint32_t key,
			      bool written, struct hs_buf *reply)
{
	enum hs_sim_bug bug = world->options.engine.bug;
	const struct hs_sim_rule *rule = hs_sim_world_rule(world, key);
	struct hs_shared *shared = world->shared_caches[worker];
	struct hs_bytes words[2];
	struct hs_cache_entry *entry;
	struct hs_cache_query query;
	char name[HS_SIM_NAME_BYTES_MAX];
	bool given = false;
	uint32_t done;

	if (!rule ||
	    (bug != HS_SIM_OLD_DURING_FETCH && (bug != HS_SIM_OWN_WRITE_UNSEEN || !written)))
		return false;
	make_query(&query, shared, hs_bytes_of(hs_sim_name(world->options.tied, key, name)), words);
	entry = hs_shared_get(shared, &query);
	done = hs_shared_version(shared, query.key_hash).done;
	if (entry && bug == HS_SIM_OLD_DURING_FETCH)
		given = is_old(world, entry, rule, done);
	else if (entry)
		given = entry->done == done &&
			world->now.mono_us - entry->read_us <= rule->stale_us;
	if (given)
		hs_buf_append_bytes(reply, entry->reply[0]);
	hs_cache_entry_unref(&entry);
	return given;
}
