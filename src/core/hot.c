#include "core/hot.h"

#include "base/hash.h"
#include "base/limits.h"
#include "base/mem.h"
#include "core/state.h"

#include <string.h>

void hs_hot_table_init(struct hs_hot_table *hot_table, uint64_t seed)
{
	memset(hot_table, 0, sizeof *hot_table);
	hs_list_init(&hot_table->keys);
	hot_table->seed = seed;
}

static void remove_key(struct hs_hot_table *hot_table, struct hs_hot *hot)
{
	struct hs_hot **at = &hot_table->buckets[hot->hash % HS_HOT_BUCKETS];

	while (*at != hot)
		at = &(*at)->next;
	*at = hot->next;
	hs_list_remove(&hot->link);
	hot_table->of_slot[hot->slot % HS_HOT_BUCKETS]--;
	hot_table->count--;
	hot_table->key_bytes -= hot->key_len;
	hs_mem_free(&hot);
}

void hs_hot_table_deinit(struct hs_hot_table *hot_table)
{
	while (!hs_list_empty(&hot_table->keys)) {
		struct hs_hot *hot = hs_list_entry(hot_table->keys.next, struct hs_hot, link);

		for (int i = 0; i < HS_HOT_STAGES; i++)
			hs_check(!hot->state[i]);
		remove_key(hot_table, hot);
	}
}

static struct hs_hot *find(const struct hs_hot_table *hot_table, uint64_t hash, struct hs_bytes key)
{
	struct hs_hot *hot = hot_table->buckets[hash % HS_HOT_BUCKETS];

	while (hot && (hot->hash != hash || !hs_bytes_equal(hs_hot_key(hot), key)))
		hot = hot->next;
	return hot;
}

struct hs_hot *hs_hot_find(const struct hs_hot_table *hot_table, uint16_t slot, struct hs_bytes key)
{
	return hs_hot_may_have(hot_table, slot)
		       ? find(hot_table, hs_hash(key, hot_table->seed), key)
		       : NULL;
}

struct hs_hot *hs_hot_of_call(const struct hs_hot_table *hot_table, struct hs_call *call, size_t at)
{
	struct hs_bytes key = call->argv[at];

	if (!hs_hot_may_have(hot_table, call->slot))
		return NULL;
	return find(hot_table, hs_call_hash(call, key, hot_table->seed), key);
}

struct hs_hot *hs_hot_of_only_key(const struct hs_hot_table *hot_table, struct hs_call *call)
{
	size_t at = hs_call_only_key(call);

	return at > 0 && hs_call_slots(call) == HS_CALL_SLOTS_ONE
		       ? hs_hot_of_call(hot_table, call, at)
		       : NULL;
}

/* NULL: the table is full. */
static struct hs_hot *add_key(struct hs_core *core, struct hs_bytes key, uint16_t slot)
{
	uint32_t most = core->options.hot.keys_max ? core->options.hot.keys_max : HS_HOT_KEYS_MAX;
	struct hs_hot_table *hot_table = &core->hot_table;
	struct hs_hot *hot;

	if (hot_table->count >= most || key.len > HS_HOT_BYTES_MAX - hot_table->key_bytes) {
		hs_counter_add(&core->stats.hot_keys_full, 1);
		return NULL;
	}
	hot = hs_mem_zalloc(sizeof *hot + key.len);
	hot->hash = hs_hash(key, hot_table->seed);
	hot->slot = slot;
	hot->since_us = core->now.mono_us;
	hot->plan = UINT32_MAX;
	hot->rule = core->options.rules ? hs_rules_match(core->options.rules, key) : NULL;
	hot->key_len = key.len;
	memcpy(hot->key, key.data, key.len);
	hot->next = hot_table->buckets[hot->hash % HS_HOT_BUCKETS];
	hot_table->buckets[hot->hash % HS_HOT_BUCKETS] = hot;
	hot_table->of_slot[slot % HS_HOT_BUCKETS]++;
	hs_list_append(&hot_table->keys, &hot->link);
	hot_table->key_bytes += key.len;
	hs_counter_set(&core->stats.hot_keys, ++hot_table->count);
	return hot;
}

struct hs_hot *hs_hot_note(struct hs_core *core, struct hs_heat_warmth heat)
{
	const struct hs_core_hot *bounds = &core->options.hot;
	struct hs_hot *hot;

	if (!hs_core_stays_hot(bounds, heat.share, heat.requests))
		return NULL;
	hot = hs_hot_find(&core->hot_table, heat.slot, heat.key);
	if (!hot && heat.share >= bounds->share)
		hot = add_key(core, heat.key, heat.slot);
	if (!hot)
		return NULL;
	hot->seen_us = core->now.mono_us;
	hot->heat = heat;
	hot->heat.key = hs_hot_key(hot);
	return heat.share >= bounds->share ? hot : NULL;
}

void hs_hot_configure(struct hs_core *core)
{
	const struct hs_rules *rules = core->options.rules;

	hs_list_each(struct hs_hot, hot, &core->hot_table.keys, link) {
		hot->rule = rules ? hs_rules_match(rules, hs_hot_key(hot)) : NULL;
	}
}

static bool is_used(const struct hs_hot *hot)
{
	for (int i = 0; i < HS_HOT_STAGES; i++) {
		if (hot->state[i])
			return true;
	}
	return false;
}

bool hs_hot_is_cool(const struct hs_core *core, const struct hs_hot *hot)
{
	return core->now.mono_us - hot->seen_us > core->options.hot.cool_down_us;
}

void hs_hot_leave(struct hs_core *core, struct hs_hot *hot)
{
	if (is_used(hot))
		return;
	remove_key(&core->hot_table, hot);
	hs_counter_set(&core->stats.hot_keys, core->hot_table.count);
}
