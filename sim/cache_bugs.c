/* Planted bugs of a wrong cache (sim/planted_bugs.h). Each is a small change of the shared cache around a fetch or a
 * write, or a wrong answer to a GET. */
#include "sim/cache_bugs.h"

#include "absorb/cache/stage.h"
#include "base/mem.h"
#include "core/internal.h"
#include "sim/names.h"
#include "sim/world_internal.h"

/* A fetch in flight, and the version of its key when it was sent. */
struct flight {
	const struct hs_op *op;
	struct hs_version version;
	uint64_t sent_us;
	struct flight *next;
};

struct hs_sim_cache_bugs {
	struct hs_sim_heatsink *heatsink;
	struct hs_sim_world *world;
	void (*done)(void *context, struct hs_op *op);
	struct flight *flights;
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
		hs_check(!(*pointer)->flights);
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

static void ask_for(struct hs_cache_query *ask, const struct hs_shared *shared, struct hs_bytes key,
		    struct hs_bytes words[2])
{
	hs_cache_query_get(ask, hs_shared_hash(shared, key), key, words);
}

/* --- to the engine --- */

/* HS_SIM_DOUBLE_FETCH: a later read of the key does not find this fetch, and sends one of its own. */
static void forget_fetch(const struct hs_op *op)
{
	struct hs_request *own = op->owner;
	struct hs_cache_fetch *fetch = own->context;

	hs_list_remove(&fetch->of_key);
}

void hs_sim_cache_bugs_submit(struct hs_sim_cache_bugs *cache_bugs, const struct hs_op *op)
{
	const struct hs_shared *shared =
		cache_bugs->world
			->shared_caches[hs_sim_worker_of(cache_bugs->heatsink, op)->number];
	struct flight *flight;
	struct hs_bytes words[2];
	struct hs_cache_query ask;

	if (!op->track || !is_get(op))
		return;
	if (cache_bugs->world->options.engine.bug == HS_SIM_DOUBLE_FETCH)
		forget_fetch(op);
	flight = hs_mem_zalloc(sizeof *flight);
	ask_for(&ask, shared, op->argv[1], words);
	*flight = (struct flight){
		.op = op,
		.version = hs_shared_version(shared, ask.key_hash),
		.sent_us = cache_bugs->world->now.mono_us,
		.next = cache_bugs->flights,
	};
	cache_bugs->flights = flight;
}

/* --- and back --- */

static bool take_flight(struct hs_sim_cache_bugs *cache_bugs, const struct hs_op *op,
			struct flight *taken)
{
	for (struct flight **link = &cache_bugs->flights; *link; link = &(*link)->next) {
		struct flight *flight = *link;

		if (flight->op != op)
			continue;
		*taken = *flight;
		*link = flight->next;
		hs_mem_free(&flight);
		return true;
	}
	return false;
}

/* HS_SIM_VERSION_NOT_BUMPED: makes the entry valid again, as if the increment had not changed the version. */
static void undo_stamp(struct hs_shared *shared, const struct hs_cache_query *ask)
{
	struct hs_cache_entry *entry = hs_shared_get(shared, ask);
	uint32_t done = hs_shared_version(shared, ask->key_hash).done;

	if (!entry)
		return;
	if (entry->done + 1 == done)
		entry->done = done;
	hs_cache_entry_unref(&entry);
}

/* HS_SIM_COPIES_NOT_INVALIDATED: makes the set of copies valid again. A set is looked up as absorb/copies/make.c
 * does. */
static void keep_copies(struct hs_sim_world *world, uint32_t worker, struct hs_bytes key)
{
	struct hs_shared *shared = world->shared_caches[worker];
	struct hs_cache_entry *entry;
	struct hs_version version;
	struct hs_bytes words[2];
	struct hs_cache_query ask;

	ask_for(&ask, shared, key, words);
	ask.command = world->options.learned
			      ? hs_learned_find(world->options.learned, HS_LIT("dump"))
			      : NULL;
	ask.signature = ~ask.signature;
	entry = ask.command ? hs_shared_get(shared, &ask) : NULL;
	version = hs_shared_version(shared, ask.key_hash);
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
		keep_copies(cache_bugs->world, worker, *key);
}

static void keep_raced(struct hs_shared *shared, const struct hs_cache_query *ask,
		       struct hs_cache_entry *entry, const struct flight *flight)
{
	struct hs_version now = hs_shared_version(shared, ask->key_hash);

	if (!entry || (now.begun == flight->version.begun && now.done == flight->version.done))
		return;
	entry->done = now.done;
	hs_shared_put(shared, entry);
}

static void keep_missing(struct hs_shared *shared, const struct hs_cache_query *ask,
			 enum hs_sim_bug bug)
{
	struct hs_cache_entry *entry = hs_shared_get(shared, ask);

	if (!entry)
		return;
	if (entry->missing && bug == HS_SIM_NEGATIVE_FOREVER)
		entry->until_us = UINT64_MAX;
	if (entry->missing && bug == HS_SIM_MISSING_CACHED_IN_MOVE)
		atomic_store(&entry->expires_us, UINT64_MAX);
	hs_cache_entry_unref(&entry);
}

/* Makes a cache entry of the fetch's reply. */
static struct hs_cache_entry *make_entry(const struct hs_cache_query *ask, const struct hs_op *op,
					 const struct flight *flight,
					 const struct hs_sim_rule *rule)
{
	struct hs_bytes reply = op->answer.len > 0 ? op->answer : hs_buf_bytes(op->out);
	struct hs_cache_entry *entry =
		op->tracking_session ? hs_cache_entry_create(ask, reply) : NULL;

	if (!entry)
		return NULL;
	entry->worker = op->worker;
	entry->tracking_session = op->tracking_session;
	entry->tracking_epoch = op->tracking_epoch;
	entry->read_us = entry->until_us = flight->sent_us;
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
	struct flight flight = {0};
	struct hs_cache_query ask;
	struct hs_buf key = {0};
	bool one = op->kind == HS_OP_COMMAND && op->argc > 1;
	bool increment = is_increment(op), write = is_write(op);
	uint32_t worker = hs_sim_worker_of(cache_bugs->heatsink, op)->number;
	bool read = take_flight(cache_bugs, op, &flight);

	shared = world->shared_caches[worker];
	if (one)
		hs_buf_append_bytes(&key, op->argv[1]);
	ask_for(&ask, shared, hs_buf_bytes(&key), words);
	if (read && bug == HS_SIM_RACED_FETCH_CACHED)
		entry = make_entry(&ask, op, &flight, &world->options.rules[0]);
	cache_bugs->done(cache_bugs->heatsink, op); /* frees the operation */
	if (increment && bug == HS_SIM_VERSION_NOT_BUMPED)
		undo_stamp(shared, &ask);
	if (one && write && bug == HS_SIM_COPIES_NOT_INVALIDATED)
		keep_copies(world, worker, hs_buf_bytes(&key));
	if (read && bug == HS_SIM_RACED_FETCH_CACHED)
		keep_raced(shared, &ask, entry, &flight);
	if (read)
		keep_missing(shared, &ask, bug);
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
	struct hs_cache_query ask;
	char name[HS_SIM_NAME_BYTES_MAX];
	bool given = false;
	uint32_t done;

	if (!rule ||
	    (bug != HS_SIM_OLD_DURING_FETCH && (bug != HS_SIM_OWN_WRITE_UNSEEN || !written)))
		return false;
	ask_for(&ask, shared, hs_bytes_of(hs_sim_name(world->options.tied, key, name)), words);
	entry = hs_shared_get(shared, &ask);
	done = hs_shared_version(shared, ask.key_hash).done;
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
