/* Matches the shards of a new topology with the shards of the previous one. A shard is matched at most once. Three
 * criteria are applied in turn, each to all shards before the next, weaker one:
 *
 *     1. the same master
 *     2. the new master was a replica of the shard: a failover
 *     3. most of the slots: new machines replaced old ones
 *
 * A matched shard keeps its number. A shard without a match gets the lowest free number. */
#include "engine/redis/topology.h"

#include "base/mem.h"

struct match {
	const struct hs_topology *before;
	struct hs_topology *after;
	bool *found; /* shards of `before` that are matched */
	/* for each shard of `after`: index of its shard in `before`, or HS_TOPOLOGY_NO_SHARD */
	uint16_t *matched;
};

static bool has_replica(const struct hs_topology_shard *shard, const struct hs_topology_node *node)
{
	for (uint16_t i = 0; i < shard->replicas_count; i++) {
		if (hs_topology_same_node(&shard->replicas[i], node))
			return true;
	}
	return false;
}

static bool has_node(const struct hs_topology_shard *shard, const struct hs_topology_node *node)
{
	return hs_topology_same_node(&shard->master, node) || has_replica(shard, node);
}

static void pair(struct match *match, uint16_t after, uint16_t before)
{
	match->matched[after] = before;
	match->found[before] = true;
}

static void match_masters(struct match *match, bool failover)
{
	for (uint16_t i = 0; i < match->after->shards_count; i++) {
		const struct hs_topology_node *master = &match->after->shards[i].master;

		for (uint16_t j = 0;
		     j < match->before->shards_count && match->matched[i] == HS_TOPOLOGY_NO_SHARD;
		     j++) {
			const struct hs_topology_shard *was = &match->before->shards[j];

			if (!match->found[j] &&
			    (failover ? has_replica(was, master)
				      : hs_topology_same_node(&was->master, master)))
				pair(match, i, j);
		}
	}
}

static void match_slots(struct match *match)
{
	uint16_t count = match->before->shards_count;
	uint32_t *shared = hs_mem_alloc(count * sizeof *shared);
	struct hs_topology_common common;

	for (uint16_t i = 0; i < match->after->shards_count; i++) {
		uint16_t best = HS_TOPOLOGY_NO_SHARD;

		if (match->matched[i] != HS_TOPOLOGY_NO_SHARD)
			continue;
		memset(shared, 0, count * sizeof *shared);
		common = (struct hs_topology_common){0};
		while (hs_topology_next_common(match->before, match->after, &common)) {
			if (common.after == i)
				shared[common.before] += common.slots;
		}
		for (uint16_t j = 0; j < count; j++) {
			if (!match->found[j] &&
			    shared[j] * 2 > match->before->shards[j].slots_count &&
			    (best == HS_TOPOLOGY_NO_SHARD || shared[j] > shared[best]))
				best = j;
		}
		if (best != HS_TOPOLOGY_NO_SHARD)
			pair(match, i, best);
	}
	hs_mem_free(&shared);
}

/* ---- numbers ---- */

static uint16_t lowest_free(const bool *taken, uint16_t capacity)
{
	uint16_t id = 0;

	while (id < capacity && taken[id])
		id++;
	return id;
}

static void number(struct match *match)
{
	struct hs_topology *after = match->after;
	bool *taken = hs_mem_zalloc(after->capacity * sizeof *taken);

	/* If several shards shared the highest partition number, the first of them keeps it. The others get a
	 * free number, if one is left. */
	for (uint16_t i = 0; i < after->shards_count; i++) {
		uint16_t matched = match->matched[i];
		uint16_t id = matched == HS_TOPOLOGY_NO_SHARD
				      ? after->capacity
				      : match->before->shards[matched].partition;

		if (id >= after->capacity || taken[id])
			id = after->capacity;
		else
			taken[id] = true;
		after->shards[i].partition = id;
	}
	after->crowded = false;
	after->count = 0;
	for (uint16_t i = 0; i < after->shards_count; i++) {
		uint16_t *id = &after->shards[i].partition;

		if (*id == after->capacity)
			*id = lowest_free(taken, after->capacity);
		if (*id == after->capacity) {
			*id = (uint16_t)(after->capacity - 1);
			after->crowded = true;
		}
		taken[*id] = true;
		if (after->count <= *id)
			after->count = (uint16_t)(*id + 1);
	}
	hs_mem_free(&taken);
}

/* ---- what changed ---- */

static bool in_common(const struct hs_topology *before, const struct hs_topology_node *node)
{
	for (uint16_t i = 0; i < before->shards_count; i++) {
		if (has_node(&before->shards[i], node))
			return true;
	}
	return false;
}

static bool is_foreign(const struct hs_topology *before, const struct hs_topology *after)
{
	for (uint16_t i = 0; i < after->shards_count; i++) {
		const struct hs_topology_shard *shard = &after->shards[i];

		if (in_common(before, &shard->master))
			return false;
		for (uint16_t j = 0; j < shard->replicas_count; j++) {
			if (in_common(before, &shard->replicas[j]))
				return false;
		}
	}
	return true;
}

static bool same_place(const struct hs_topology_node *a, const struct hs_topology_node *b)
{
	return strcmp(a->id, b->id) == 0 && hs_redis_same_address(&a->address, &b->address);
}

/* Compares two shards. Their replicas may be listed in different orders. */
static bool same_shard(const struct hs_topology_shard *a, const struct hs_topology_shard *b)
{
	if (a->partition != b->partition || a->replicas_count != b->replicas_count ||
	    !same_place(&a->master, &b->master))
		return false;
	for (uint16_t i = 0; i < a->replicas_count; i++) {
		bool found = false;

		for (uint16_t j = 0; j < b->replicas_count && !found; j++)
			found = same_place(&a->replicas[i], &b->replicas[j]);
		if (!found)
			return false;
	}
	return true;
}

/* Compares two topologies. Shards are sorted by their lowest slots, so equal shards have equal indices. */
static bool is_same(const struct hs_topology *before, const struct hs_topology *after)
{
	if (before->shards_count != after->shards_count || before->crowded != after->crowded ||
	    before->ranges_count != after->ranges_count ||
	    memcmp(before->ranges, after->ranges, before->ranges_count * sizeof *before->ranges) !=
		    0)
		return false;
	for (uint16_t i = 0; i < before->shards_count; i++) {
		if (!same_shard(&before->shards[i], &after->shards[i]))
			return false;
	}
	return true;
}

enum hs_topology_change hs_topology_update(const struct hs_topology *before,
					   struct hs_topology *after)
{
	struct match match = {
		.before = before,
		.after = after,
		.matched = hs_mem_alloc(after->shards_count * sizeof *match.matched),
	};

	for (uint16_t i = 0; i < after->shards_count; i++)
		match.matched[i] = HS_TOPOLOGY_NO_SHARD;
	if (before) {
		match.found = hs_mem_zalloc(before->shards_count * sizeof *match.found);
		match_masters(&match, false);
		match_masters(&match, true);
		match_slots(&match);
	}
	number(&match);
	hs_mem_free(&match.matched);
	hs_mem_free(&match.found);
	if (!before)
		return HS_TOPOLOGY_CHANGED;
	if (is_foreign(before, after))
		return HS_TOPOLOGY_FOREIGN;
	return is_same(before, after) ? HS_TOPOLOGY_SAME : HS_TOPOLOGY_CHANGED;
}
