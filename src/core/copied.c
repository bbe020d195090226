/* Copies of hot values (absorb/copies.h), where a rule allows them: which keys have some, and when.
 *
 *     read ─ hs_step_submit ─┬─ a valid set: the original or a copy, in turn (copied_read.c)
 *                            └─ none: as it came; and if many such reads come, one is made
 *                                     (copied_make.c)
 *
 * It sits where requests leave for the engine, behind the cache and the queues of hot keys: what those
 * absorb needs no copy, and a read that was folded out of a hundred goes to a copy like any other. So a
 * set is made for reads that reach the engine in spite of the cache: values too large for it.
 *
 * What makes an answer right is what makes a kept reply right (core/cached.c): a set is valid while the
 * key's stamp is the one of its making, nobody has told of a change, and the last proof is not older than
 * `stale`. One thing more: no write of the key may be under way through this process. So a connection's
 * own writes are never behind its reads.
 *
 * A set belongs to the worker that made it: it hears of changes, renews the lease and takes the set away.
 * Others use it through the kept reply on the shelf. Writes end a set for everybody at once. It is made
 * again when reads ask for it, after a pause that grows while sets do not pay (hs_copies_pace). */
#include "core/copied.h"

#include "base/mem.h"
#include "core/cached.h"

#include <stdarg.h>
#include <stdio.h>

enum {
	ASKED_LEAST = 8,    /* reads that make a set worth making: some 40 a second */
	SAMPLE_US = 500000, /* between looks at what partitions do */
	UNUSED_US = 5000000 /* a set that nobody used for so long is taken away */
};

/* --- keys --- */

void hs_copied_create(struct hs_core *core)
{
	struct hs_copying *copying = hs_mem_zalloc(sizeof *copying);

	hs_list_init(&copying->keys);
	copying->id.process = hs_prng_next(&core->prng);
	core->copying = copying;
	hs_copied_configure(core);
}

struct hs_copied *hs_copied_find(const struct hs_core *core, uint16_t slot, struct hs_bytes key)
{
	const struct hs_hot *hot = hs_hot_find(&core->hots, slot, key);

	return hot ? hot->state[HS_HOT_COPIES] : NULL;
}

static void count_keys(struct hs_core *core)
{
	uint64_t spread = 0;

	for (struct hs_link *link = core->copying->keys.next; link != &core->copying->keys;
	     link = link->next)
		spread += hs_list_entry(link, struct hs_copied, link)->state == HS_COPIED_SPREAD;
	hs_counter_set(&core->stats.copies_keys, spread);
}

static void set_state(struct hs_core *core, struct hs_copied *copied, enum hs_copied_state state)
{
	if (copied->state == state)
		return;
	copied->state = state;
	copied->since_us = core->now.mono_us;
	count_keys(core);
}

void hs_copied_rest(struct hs_core *core, struct hs_copied *copied, uint64_t us, const char *format,
		    ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(copied->why, sizeof copied->why, format, args);
	va_end(args);
	copied->rest_until_us = core->now.mono_us + us;
	set_state(core, copied, HS_COPIED_RESTING);
}

static const struct hs_rule *rule_of(const struct hs_hot *hot)
{
	const struct hs_rule *rule = hot->rule;

	return rule && rule->contract == HS_CONTRACT_CACHE && rule->copies > 1 ? rule : NULL;
}

void hs_copied_hot(struct hs_core *core, struct hs_hot *hot)
{
	struct hs_copying *copying = core->copying;
	struct hs_copied *copied;

	if (!copying->any || hot->state[HS_HOT_COPIES] || !rule_of(hot) ||
	    copying->count == HS_COPIED_KEYS_MAX)
		return;
	copied = hs_mem_zalloc(sizeof *copied + hot->key_len);
	copied->rule = rule_of(hot);
	copied->slot = hot->slot;
	copied->key_hash = hot->hash;
	copied->since_us = core->now.mono_us;
	copied->places_before = 1;
	copied->key_len = hot->key_len;
	memcpy(copied->key, hot->key, hot->key_len);
	copied->hot = hot;
	hot->state[HS_HOT_COPIES] = copied;
	hs_list_append(&copying->keys, &copied->link);
	copying->count++;
}

void hs_copied_release(struct hs_core *core, struct hs_copied *copied)
{
	(void)core;
	if (--copied->under_way > 0 || copied->hot)
		return;
	hs_copies_unref(&copied->making);
	hs_mem_free(&copied);
}

/* Takes a key out; what is under way for it finds that it has ended. */
static void end(struct hs_core *core, struct hs_copied *copied)
{
	hs_copied_drop(core, copied);
	hs_list_remove(&copied->link);
	core->copying->count--;
	count_keys(core);
	copied->hot->state[HS_HOT_COPIES] = NULL;
	copied->hot = NULL;
	copied->under_way++;
	hs_copied_release(core, copied);
}

void hs_copied_configure(struct hs_core *core)
{
	struct hs_copying *copying = core->copying;
	const struct hs_rules *rules = core->options.rules;
	struct hs_link *link, *next;

	copying->any = false;
	if (core->world.shelf && rules && !copying->stopped && hs_copied_can(core) &&
	    core->options.mitigate == HS_MITIGATE_ON)
		for (size_t i = 0; i < hs_rules_count(rules); i++)
			copying->any = copying->any || hs_rules_at(rules, i)->copies > 1;
	for (link = copying->keys.next; link != &copying->keys; link = next) {
		struct hs_copied *copied = hs_list_entry(link, struct hs_copied, link);

		next = link->next;
		copied->rule = copying->any ? rule_of(copied->hot) : NULL;
		if (!copied->rule)
			end(core, copied);
	}
}

void hs_copied_cool(struct hs_core *core, struct hs_hot *hot)
{
	struct hs_copied *copied = hot->state[HS_HOT_COPIES];

	if (copied && copied->under_way == 0)
		end(core, copied);
}

void hs_copied_stop(struct hs_core *core)
{
	struct hs_link *keys = &core->copying->keys;

	core->copying->stopped = true;
	core->copying->any = false;
	while (!hs_list_empty(keys))
		end(core, hs_list_entry(keys->next, struct hs_copied, link));
}

void hs_copied_destroy(struct hs_core *core)
{
	struct hs_link *keys = &core->copying->keys;

	while (!hs_list_empty(keys)) {
		struct hs_copied *copied = hs_list_entry(keys->next, struct hs_copied, link);

		hs_list_remove(&copied->link);
		copied->hot->state[HS_HOT_COPIES] = NULL;
		hs_copies_unref(&copied->copies);
		hs_mem_free(&copied);
	}
	hs_mem_free(&core->copying);
}

/* --- the set in use --- */

void hs_copied_adopt(struct hs_core *core, struct hs_copied *copied, struct hs_copies *copies,
		     bool ours)
{
	copied->copies = copies;
	copied->ours = ours;
	copied->places_before = copies->count;
	copied->used_us = core->now.mono_us;
	copied->renew_us = core->now.mono_us + HS_COPIES_LEASE_US / 3;
	copied->why[0] = '\0';
	set_state(core, copied, HS_COPIED_SPREAD);
}

void hs_copied_drop(struct hs_core *core, struct hs_copied *copied)
{
	struct hs_copies *copies = copied->copies;
	uint64_t reads = 0;

	if (!copies)
		return;
	for (uint32_t i = 1; i < copies->count; i++)
		reads += copies->places[i].reads - copies->places[i].refused;
	copied->copies = NULL;
	if (copied->ours) {
		hs_copies_pace(&copied->pace, copies->count, reads);
		atomic_store_explicit(&copies->kept->dead, true, memory_order_release);
		hs_copied_unlink(core, copies);
		hs_counter_add(&core->stats.copies_ended, 1);
	}
	copied->rest_until_us = core->now.mono_us + (copied->ours ? copied->pace.pause_us : 0);
	copied->ours = false;
	set_state(core, copied, HS_COPIED_WATCHED);
	hs_copies_unref(&copies);
}

/* Its time is over, whoever vouches for it. */
static bool is_over(const struct hs_core *core, const struct hs_kept *kept)
{
	return core->now.mono_us >= kept->until_us ||
	       hs_vouch_epoch(kept->vouch) != kept->vouch_epoch;
}

bool hs_copied_valid(struct hs_core *core, struct hs_copied *copied)
{
	struct hs_stamp stamp = hs_shelf_stamp(core->world.shelf, copied->key_hash);
	struct hs_kept *kept;
	uint64_t age_us;

	if (!copied->copies)
		return false;
	kept = copied->copies->kept;
	switch (hs_kept_state(kept, copied->rule, stamp.done, core->now.mono_us, &age_us)) {
	case HS_KEPT_FRESH:
		return stamp.begun == stamp.done;
	case HS_KEPT_AGED:
		if (!is_over(core, kept))
			return false; /* a proof may be on its way */
		break;
	case HS_KEPT_CHANGED:
		break;
	}
	hs_copied_drop(core, copied);
	return false;
}

void hs_copied_want(struct hs_core *core, struct hs_copied *copied)
{
	struct hs_stamp stamp;

	if (copied->copies || copied->under_way > 0 || copied->asked < ASKED_LEAST ||
	    core->now.mono_us < copied->rest_until_us || !core->copying->any ||
	    core->pause.mode != HS_PAUSE_NONE)
		return;
	stamp = hs_shelf_stamp(core->world.shelf, copied->key_hash);
	if (stamp.begun != stamp.done || hs_copied_look(core, copied))
		return;
	hs_copied_make(core, copied);
	if (copied->under_way > 0)
		set_state(core, copied, HS_COPIED_MAKING);
}

bool hs_copied_takes(struct hs_core *core, uint16_t slot, struct hs_bytes key)
{
	struct hs_copied *copied =
		core->copying->count > 0 ? hs_copied_find(core, slot, key) : NULL;

	return copied && hs_copied_valid(core, copied);
}

/* --- changes, and time --- */

static void kill(const struct hs_copies *copies, const struct hs_vouch *vouch)
{
	if (copies && copies->kept->vouch == vouch)
		atomic_store_explicit(&copies->kept->dead, true, memory_order_release);
}

void hs_copied_changed(struct hs_core *core, const struct hs_vouch *vouch,
		       const struct hs_bytes *key)
{
	struct hs_copying *copying = core->copying;

	if (copying->count == 0)
		return;
	for (struct hs_link *link = copying->keys.next; link != &copying->keys; link = link->next) {
		struct hs_copied *copied = hs_list_entry(link, struct hs_copied, link);

		if (key && !hs_bytes_equal(hs_copied_key(copied), *key))
			continue;
		if (copied->ours)
			kill(copied->copies, vouch);
		kill(copied->making, vouch);
	}
}

/* What each partition has had to do since the last look, a second. */
static void sample(struct hs_core *core)
{
	struct hs_copying *copying = core->copying;
	uint64_t passed_us = core->now.mono_us - copying->sampled_us;
	bool first = copying->sampled_us == 0;

	if (!first && passed_us < SAMPLE_US)
		return;
	copying->sampled_us = core->now.mono_us;
	copying->loads.all = 0;
	for (uint32_t i = 0; i < hs_core_partitions(core) && i < HS_PARTITIONS_MAX; i++) {
		struct hs_heat_partition sum = {0};
		uint64_t count;

		for (size_t j = 0; j < core->world.heats_count; j++)
			hs_heat_read_partition(core->world.heats[j], (uint16_t)i, &sum);
		count = sum.reads + sum.writes;
		copying->loads.of[i] =
			first ? 0 : (double)(count - copying->counted[i]) * 1e6 / (double)passed_us;
		copying->loads.all += copying->loads.of[i];
		copying->counted[i] = count;
	}
}

static bool is_unused(const struct hs_core *core, const struct hs_copied *copied)
{
	uint64_t seen_us =
		atomic_load_explicit(&copied->copies->kept->seen_us, memory_order_relaxed);

	return core->now.mono_us - copied->used_us > UNUSED_US &&
	       (seen_us == UINT64_MAX || core->now.mono_us > seen_us + UNUSED_US);
}

static void tick_key(struct hs_core *core, struct hs_copied *copied)
{
	copied->asked /= 2;
	hs_copied_valid(core, copied); /* one that is over is dropped */
	if (copied->copies &&
	    (hs_copies_crowded(copied->copies, core->world.slots) || is_unused(core, copied)))
		hs_copied_drop(core, copied);
	if (copied->copies && copied->ours && !copied->under_way &&
	    core->pause.mode == HS_PAUSE_NONE && core->now.mono_us >= copied->renew_us)
		hs_copied_renew(core, copied);
}

void hs_copied_tick(struct hs_core *core)
{
	struct hs_copying *copying = core->copying;
	struct hs_link *link, *next;

	if (!copying->any || copying->count == 0)
		return;
	sample(core);
	for (link = copying->keys.next; link != &copying->keys; link = next) {
		next = link->next;
		tick_key(core, hs_list_entry(link, struct hs_copied, link));
	}
}
