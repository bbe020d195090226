/* Copies of hot values (absorb/copies/set.h), where a rule allows them: which keys have a set, when a set is
 * made, and when it ends.
 *
 *     read ─ hs_dispatch_submit ─┬─ a valid set: to the original or a copy, in turn (read.c)
 *                                └─ no set: to the engine unchanged; counted, and with enough reads a set is
 *                                   made (make.c)
 *
 * The stage acts where requests leave for the engine, behind cache and fold. What those absorb needs no copy; a
 * read that fold made of a hundred goes to a copy like any other. So sets are made for reads that the cache
 * does not answer: values too large for it.
 *
 * A set is valid as a cache entry is (absorb/cache/read.c): the key's version is unchanged since the set was
 * made, no change was reported, and the last liveness check is not older than `stale`. In addition, no write of
 * the key may be in flight through this process; that covers the session's own unanswered writes.
 *
 * The worker that made a set owns it: it gets the invalidations, renews the lease and deletes the copies. Other
 * workers use the set through the cache entry in the shared cache. A write ends the set for all workers at
 * once. A new one is made when reads ask for it, after a wait that grows while sets do not pay
 * (hs_copies_backoff). */
#include "absorb/copies/stage.h"

#include "base/mem.h"

#include <stdarg.h>
#include <stdio.h>

enum {
	/* reads, halved at each tick, that make a set worth it: about 40 a second */
	RECENT_READS_MIN = 8,
	SAMPLE_US = 500000, /* between samples of the partitions' loads */
	UNUSED_US = 5000000 /* a set that no worker has used for this long is deleted */
};

/* --- keys --- */

/* Subscribes to departing requests while there are keys, and to hot reads while a rule wants copies. */
static void update_wants(struct hs_copies_stage *stage)
{
	hs_stage_want(stage->core, stage->index, HS_POINT_DEPART, stage->count > 0);
	hs_stage_want(stage->core, stage->index, HS_POINT_HOT_READS, stage->enabled);
}

struct hs_copies_key *hs_copies_find(const struct hs_copies_stage *stage, uint16_t slot,
				     struct hs_bytes key)
{
	const struct hs_hot *hot = hs_hot_find(&stage->core->hot_table, slot, key);

	return hot ? hot->state[stage->index] : NULL;
}

static void count_keys(struct hs_copies_stage *stage)
{
	uint64_t spread = 0;

	hs_list_each(const struct hs_copies_key, key, &stage->keys, link)
		spread += key->state == HS_COPIES_ACTIVE;
	hs_counter_set(&stage->stats.keys, spread);
}

static void set_state(struct hs_copies_stage *stage, struct hs_copies_key *copied,
		      enum hs_copies_state state)
{
	if (copied->state == state)
		return;
	copied->state = state;
	copied->since_us = stage->core->now.mono_us;
	count_keys(stage);
}

void hs_copies_pause(struct hs_copies_stage *stage, struct hs_copies_key *copied, uint64_t us,
		     const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(copied->why, sizeof copied->why, format, args);
	va_end(args);
	copied->pause_until_us = stage->core->now.mono_us + us;
	set_state(stage, copied, HS_COPIES_PAUSED);
}

static const struct hs_rule *rule_of(const struct hs_hot *hot)
{
	const struct hs_rule *rule = hot->rule;

	return rule && rule->contract == HS_CONTRACT_CACHE && rule->copies > 1 ? rule : NULL;
}

static void turn_hot(void *self, struct hs_hot *hot, bool waited)
{
	struct hs_copies_stage *stage = self;
	struct hs_copies_key *copied;

	(void)waited;
	if (!stage->enabled || hot->state[stage->index] || !rule_of(hot) ||
	    stage->count == HS_COPIES_KEYS_MAX)
		return;
	copied = hs_mem_zalloc(sizeof *copied + hot->key_len);
	copied->rule = rule_of(hot);
	copied->slot = hot->slot;
	copied->key_hash = hot->hash;
	copied->since_us = stage->core->now.mono_us;
	copied->places_before = 1;
	copied->key_len = hot->key_len;
	memcpy(copied->key, hot->key, hot->key_len);
	copied->hot = hot;
	hot->state[stage->index] = copied;
	hs_list_append(&stage->keys, &copied->link);
	stage->count++;
	update_wants(stage);
}

void hs_copies_release(struct hs_copies_key *copied)
{
	if (--copied->in_flight > 0 || copied->hot)
		return;
	hs_copies_unref(&copied->making);
	hs_mem_free(&copied);
}

/* Removes a key. Calls in flight for it find that it has ended. */
static void end(struct hs_copies_stage *stage, struct hs_copies_key *copied)
{
	hs_copies_drop(stage, copied);
	hs_list_remove(&copied->link);
	stage->count--;
	update_wants(stage);
	count_keys(stage);
	copied->hot->state[stage->index] = NULL;
	copied->hot = NULL;
	copied->in_flight++;
	hs_copies_release(copied);
}

static void configure(void *self)
{
	struct hs_copies_stage *stage = self;
	const struct hs_rules *rules = stage->core->options.rules;

	stage->enabled = false;
	if (stage->shared && rules && !stage->stopped && hs_core_reserves(stage->core) &&
	    stage->core->options.mitigate == HS_MITIGATE_ON)
		for (size_t i = 0; i < hs_rules_count(rules); i++)
			stage->enabled = stage->enabled || hs_rules_at(rules, i)->copies > 1;
	hs_list_each_safe(struct hs_copies_key, copied, &stage->keys, link) {
		copied->rule = stage->enabled ? rule_of(copied->hot) : NULL;
		if (!copied->rule)
			end(stage, copied);
	}
	update_wants(stage);
}

static void turn_cool(void *self, struct hs_hot *hot, bool cool)
{
	struct hs_copies_stage *stage = self;
	struct hs_copies_key *copied = hot->state[stage->index];

	if (cool && copied && copied->in_flight == 0)
		end(stage, copied);
}

/* The server stops: deletes all copies and makes no more. */
static void stop(void *self)
{
	struct hs_copies_stage *stage = self;

	stage->stopped = true;
	stage->enabled = false;
	hs_list_each_safe(struct hs_copies_key, copied, &stage->keys, link)
		end(stage, copied);
	update_wants(stage);
}

/* --- the set in use --- */

void hs_copies_adopt(struct hs_copies_stage *stage, struct hs_copies_key *copied,
		     struct hs_copies *copies, bool owned)
{
	copied->copies = copies;
	copied->owned = owned;
	copied->places_before = copies->count;
	copied->used_us = stage->core->now.mono_us;
	copied->renew_us = stage->core->now.mono_us + HS_COPIES_LEASE_US / 3;
	copied->why[0] = '\0';
	set_state(stage, copied, HS_COPIES_ACTIVE);
}

void hs_copies_drop(struct hs_copies_stage *stage, struct hs_copies_key *copied)
{
	struct hs_copies *copies = copied->copies;
	uint64_t reads = 0;

	if (!copies)
		return;
	for (uint32_t i = 1; i < copies->count; i++)
		reads += copies->places[i].reads - copies->places[i].rejected;
	copied->copies = NULL;
	if (copied->owned) {
		hs_copies_backoff(&copied->backoff, copies->count, reads);
		atomic_store_explicit(&copies->entry->invalid, true, memory_order_release);
		hs_copies_unlink(stage, copies);
		hs_counter_add(&stage->stats.ended, 1);
	}
	copied->pause_until_us =
		stage->core->now.mono_us + (copied->owned ? copied->backoff.backoff_us : 0);
	copied->owned = false;
	set_state(stage, copied, HS_COPIES_WATCHED);
	hs_copies_unref(&copies);
}

/* Its TTL is over, or its tracking session has ended. */
static bool is_over(const struct hs_copies_stage *stage, const struct hs_cache_entry *entry)
{
	return stage->core->now.mono_us >= entry->until_us ||
	       hs_tracking_session_epoch(entry->tracking_session) != entry->tracking_epoch;
}

bool hs_copies_valid(struct hs_copies_stage *stage, struct hs_copies_key *copied)
{
	struct hs_version version = hs_shared_version(stage->shared, copied->key_hash);
	struct hs_cache_entry *entry;
	uint64_t age_us;

	if (!copied->copies)
		return false;
	entry = copied->copies->entry;
	switch (hs_cache_entry_state(entry, copied->rule, version, stage->core->now.mono_us,
				     &age_us)) {
	case HS_CACHE_ENTRY_FRESH:
		return version.begun == version.done;
	case HS_CACHE_ENTRY_STALE:
		if (!is_over(stage, entry))
			return false; /* a liveness check may still arrive */
		break;
	case HS_CACHE_ENTRY_INVALID:
		break;
	}
	hs_copies_drop(stage, copied);
	return false;
}

void hs_copies_consider(struct hs_copies_stage *stage, struct hs_copies_key *copied)
{
	struct hs_version version;

	if (copied->copies || copied->in_flight > 0 || copied->recent_reads < RECENT_READS_MIN ||
	    stage->core->now.mono_us < copied->pause_until_us || !stage->enabled ||
	    stage->core->pause.mode != HS_PAUSE_NONE)
		return;
	version = hs_shared_version(stage->shared, copied->key_hash);
	if (version.begun != version.done || hs_copies_find_shared(stage, copied))
		return;
	hs_copies_make(stage, copied);
	if (copied->in_flight > 0)
		set_state(stage, copied, HS_COPIES_MAKING);
}

static bool serves(void *self, struct hs_hot *hot)
{
	struct hs_copies_stage *stage = self;
	struct hs_copies_key *copied = hot->state[stage->index];

	return copied && hs_copies_valid(stage, copied);
}

/* --- invalidations, and time --- */

static void invalidate(const struct hs_copies *copies,
		       const struct hs_tracking_session *tracking_session)
{
	if (copies && copies->entry->tracking_session == tracking_session)
		atomic_store_explicit(&copies->entry->invalid, true, memory_order_release);
}

static void changed(void *self, const struct hs_tracking_session *tracking_session,
		    const struct hs_bytes *key)
{
	struct hs_copies_stage *stage = self;

	if (stage->count == 0)
		return;
	hs_list_each(struct hs_copies_key, copied, &stage->keys, link) {
		if (key && !hs_bytes_equal(hs_copies_key_name(copied), *key))
			continue;
		if (copied->owned)
			invalidate(copied->copies, tracking_session);
		invalidate(copied->making, tracking_session);
	}
}

/* Updates the loads: requests per second of each partition since the last sample. */
static void sample(struct hs_copies_stage *stage)
{
	uint64_t passed_us = stage->core->now.mono_us - stage->sampled_us;
	bool first = stage->sampled_us == 0;

	if (!first && passed_us < SAMPLE_US)
		return;
	stage->sampled_us = stage->core->now.mono_us;
	stage->loads.all = 0;
	for (uint32_t i = 0; i < hs_core_partitions(stage->core) && i < HS_PARTITIONS_MAX; i++) {
		struct hs_heat_partition sum = {0};
		uint64_t count;

		for (size_t j = 0; j < stage->core->world.heats_count; j++)
			hs_heat_read_partition(stage->core->world.heats[j], (uint16_t)i, &sum);
		count = sum.reads + sum.writes;
		stage->loads.of[i] =
			first ? 0 : (double)(count - stage->counted[i]) * 1e6 / (double)passed_us;
		stage->loads.all += stage->loads.of[i];
		stage->counted[i] = count;
	}
}

static bool is_unused(const struct hs_copies_stage *stage, const struct hs_copies_key *copied)
{
	uint64_t confirmed_us =
		atomic_load_explicit(&copied->copies->entry->confirmed_us, memory_order_relaxed);

	return stage->core->now.mono_us - copied->used_us > UNUSED_US &&
	       (confirmed_us == UINT64_MAX || stage->core->now.mono_us > confirmed_us + UNUSED_US);
}

static void tick_key(struct hs_copies_stage *stage, struct hs_copies_key *copied)
{
	copied->recent_reads /= 2;
	hs_copies_valid(stage, copied); /* drops a set that has ended */
	if (copied->copies && (hs_copies_misplaced(copied->copies, stage->core->world.slots) ||
			       is_unused(stage, copied)))
		hs_copies_drop(stage, copied);
	if (copied->copies && copied->owned && !copied->in_flight &&
	    stage->core->pause.mode == HS_PAUSE_NONE &&
	    stage->core->now.mono_us >= copied->renew_us)
		hs_copies_renew(stage, copied);
}

static void tick(void *self)
{
	struct hs_copies_stage *stage = self;

	if (!stage->enabled || stage->count == 0)
		return;
	sample(stage);
	hs_list_each_safe(struct hs_copies_key, copied, &stage->keys, link)
		tick_key(stage, copied);
}

/* --- the stage --- */

static void *create(struct hs_core *core, uint32_t index)
{
	struct hs_copies_stage *stage = hs_mem_zalloc(sizeof *stage);

	stage->core = core;
	stage->shared = core->world.shared;
	stage->index = index;
	stage->request_at = core->stages.request_at[index];
	stage->versions = hs_versions_of(core);
	hs_list_init(&stage->keys);
	stage->id.process = hs_prng_next(&core->prng);
	configure(stage);
	return stage;
}

static void destroy(void *self)
{
	struct hs_copies_stage *stage = self;

	hs_list_each_safe(struct hs_copies_key, copied, &stage->keys, link) {
		copied->hot->state[stage->index] = NULL;
		hs_copies_unref(&copied->copies);
		hs_mem_free(&copied);
	}
	hs_mem_free(&stage);
}

static const struct hs_counter_table counters = HS_COUNTER_TABLE(HS_COPIES_COUNTERS);

const struct hs_stage hs_stage_copies = {
	.name = "copies",
	.request_bytes = sizeof(struct hs_copies_call),
	.counters = &counters,
	.counters_at = offsetof(struct hs_copies_stage, stats),
	.create = create,
	.destroy = destroy,
	.configure = configure,
	.depart = hs_copies_depart,
	.hot = turn_hot,
	.cool = turn_cool,
	.serves_reads = serves,
	.changed = changed,
	.tick = tick,
	.stop = stop,
	.report = hs_copies_report,
};
