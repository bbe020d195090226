/* From a key to its rule.
 *
 * Every request pays for this, and the rule with the longest prefix wins. So prefixes lie in a hash
 * table, and a key is looked up by its own first bytes: as many as the longest prefix has, then as
 * the next shorter one, and so on. Most lengths need not be tried: the first four bytes of the key
 * say in which lengths there is a prefix that starts like it.
 *
 *     user:42:name ── "user" ──> levels {5, 8}
 *                        level 8: "user:42:" ──> bucket ──> user:42:*      found
 *                        level 5: "user:"    ──> bucket ──> user:*         would be next
 *
 * There is a level for each length up to 32 and one for every 32 bytes above, 64 in all: as many as
 * bits in a word. A longer prefix lies in the level below its length, so that a bucket can hold
 * prefixes of several lengths; its candidates are in the order in which they win, and each is compared
 * byte by byte. What follows a prefix is left to base/glob.h. */
#include "contract/internal.h"

#include "base/glob.h"
#include "base/hash.h"
#include "base/mem.h"

#include <stdlib.h>

enum { LEVELS = 64, STEPS = 32, HEAD = sizeof(uint32_t) };

static inline size_t level_bytes(unsigned level)
{
	return level <= STEPS ? level : (size_t)(level - STEPS) * STEPS + STEPS;
}

static unsigned level_of(size_t prefix_len)
{
	return (unsigned)(prefix_len <= STEPS ? prefix_len : prefix_len / STEPS - 1 + STEPS);
}

_Static_assert(HS_RULE_GLOB_BYTES_MAX / STEPS - 1 + STEPS < LEVELS, "every prefix has a level");

static inline uint64_t bit(unsigned level)
{
	return UINT64_C(1) << level;
}

/* Which levels there are for keys that begin like this one. */
static inline size_t head_cell(const struct hs_rules_index *index, const char *key)
{
	uint32_t head;

	memcpy(&head, key, HEAD);
	return (head * UINT64_C(0x9e3779b97f4a7c15)) >> index->levels_shift;
}

static inline uint64_t hash_of(const char *bytes, size_t len)
{
	/* The rules are the operator's: nobody else can put anything into the table. */
	return hs_hash((struct hs_bytes){bytes, len}, 0);
}

size_t hs_rule_prefix_len(struct hs_bytes glob)
{
	size_t len = 0;

	while (len < glob.len && !memchr("*?[\\", glob.data[len], 4))
		len++;
	return len;
}

/* ---- making it ---- */

static int by_count(size_t a, size_t b)
{
	return (a > b) - (a < b);
}

/* Buckets together, the order of winning within: longest prefix, longest glob, last given. */
static int by_bucket(const void *a, const void *b)
{
	const struct hs_rules_candidate *one = a, *other = b;
	size_t len = level_bytes(level_of(one->prefix_len));
	int order = by_count(len, level_bytes(level_of(other->prefix_len)));

	if (order == 0)
		order = memcmp(one->glob, other->glob, len);
	if (order == 0)
		order = by_count(other->prefix_len, one->prefix_len);
	if (order == 0)
		order = by_count(other->glob_len, one->glob_len);
	return order ? order : by_count(other->rule, one->rule);
}

static bool same_bucket(const struct hs_rules_candidate *a, const struct hs_rules_candidate *b)
{
	unsigned level = level_of(a->prefix_len);

	return level == level_of(b->prefix_len) &&
	       memcmp(a->glob, b->glob, level_bytes(level)) == 0;
}

static void put_bucket(struct hs_rules_index *index, size_t first, size_t count)
{
	const struct hs_rules_candidate *candidate = &index->candidates[first];
	unsigned level = level_of(candidate->prefix_len);
	uint64_t hash = hash_of(candidate->glob, level_bytes(level));
	struct hs_rules_bucket bucket = {
		.tag = (uint32_t)(hash >> 32), .first = (uint16_t)first, .count = (uint16_t)count};
	size_t at = hash & index->buckets_mask;

	if (level < HEAD)
		index->levels_short |= bit(level);
	else
		index->levels[head_cell(index, candidate->glob)] |= bit(level);
	if (level == 0) {
		index->bare = bucket;
		return;
	}
	while (index->buckets[at].count > 0)
		at = (at + 1) & index->buckets_mask;
	index->buckets[at] = bucket;
}

static struct hs_rules_candidate candidate_of(const struct hs_rule *rule, size_t place)
{
	size_t prefix_len = hs_rule_prefix_len(rule->glob);

	return (struct hs_rules_candidate){
		.glob = rule->glob.data,
		.prefix_len = (uint16_t)prefix_len,
		.glob_len = (uint16_t)rule->glob.len,
		.rule = (uint16_t)place,
		.takes_all = prefix_len + 1 == rule->glob.len && rule->glob.data[prefix_len] == '*',
	};
}

void hs_rules_index_init(struct hs_rules *rules)
{
	struct hs_rules_index *index = &rules->index;
	unsigned bits = 4;

	while ((UINT32_C(1) << bits) < rules->count * 2)
		bits++;
	index->levels = hs_mem_zalloc(sizeof *index->levels << bits);
	index->levels_shift = 64 - bits;
	index->buckets = hs_mem_zalloc(sizeof *index->buckets << bits);
	index->buckets_mask = (UINT32_C(1) << bits) - 1;
	index->candidates = hs_mem_zalloc((rules->count + 1) * sizeof *index->candidates);
	for (size_t i = 0; i < rules->count; i++)
		index->candidates[i] = candidate_of(&rules->rules[i], i);
	qsort(index->candidates, rules->count, sizeof *index->candidates, by_bucket);
	for (size_t i = 0, next; i < rules->count; i = next) {
		next = i + 1;
		while (next < rules->count &&
		       same_bucket(&index->candidates[i], &index->candidates[next]))
			next++;
		put_bucket(index, i, next - i);
	}
}

void hs_rules_index_deinit(struct hs_rules *rules)
{
	hs_mem_free(&rules->index.levels);
	hs_mem_free(&rules->index.buckets);
	hs_mem_free(&rules->index.candidates);
}

/* ---- asking it ---- */

static bool rest_fits(const struct hs_rules_candidate *candidate, struct hs_bytes key)
{
	struct hs_bytes glob = {candidate->glob + candidate->prefix_len,
				(size_t)candidate->glob_len - candidate->prefix_len};
	struct hs_bytes rest = {key.data + candidate->prefix_len, key.len - candidate->prefix_len};

	if (rest.len > 0)
		return hs_glob_match(glob, rest, false);
	/* The end of a key fits stars; to hs_glob_match it would be a text of its own. */
	while (glob.len > 0 && glob.data[glob.len - 1] == '*')
		glob.len--;
	return glob.len == 0;
}

static const struct hs_rule *try_bucket(const struct hs_rules *rules, struct hs_rules_bucket bucket,
					struct hs_bytes key)
{
	const struct hs_rules_candidate *candidate = &rules->index.candidates[bucket.first];

	for (; bucket.count > 0; bucket.count--, candidate++) {
		if (candidate->prefix_len <= key.len &&
		    memcmp(candidate->glob, key.data, candidate->prefix_len) == 0 &&
		    (candidate->takes_all || rest_fits(candidate, key)))
			return &rules->rules[candidate->rule];
	}
	return NULL;
}

static const struct hs_rule *try_level(const struct hs_rules *rules, size_t len,
				       struct hs_bytes key)
{
	const struct hs_rules_index *index = &rules->index;
	uint64_t hash = hash_of(key.data, len);
	size_t at = hash & index->buckets_mask;

	for (; index->buckets[at].count > 0; at = (at + 1) & index->buckets_mask) {
		const struct hs_rule *rule;

		if (index->buckets[at].tag != (uint32_t)(hash >> 32))
			continue;
		rule = try_bucket(rules, index->buckets[at], key);
		if (rule)
			return rule;
	}
	return NULL;
}

const struct hs_rule *hs_rules_match(const struct hs_rules *rules, struct hs_bytes key)
{
	const struct hs_rules_index *index = &rules->index;
	uint64_t levels = index->levels_short;

	if (rules->count == 0 || key.len == 0)
		return NULL;
	if (key.len >= HEAD)
		levels |= index->levels[head_cell(index, key.data)];
	while (levels) {
		unsigned level = LEVELS - 1 - (unsigned)__builtin_clzll(levels);
		size_t len = level_bytes(level);
		const struct hs_rule *rule = NULL;

		levels ^= bit(level);
		if (level == 0)
			rule = try_bucket(rules, index->bare, key);
		else if (len <= key.len)
			rule = try_level(rules, len, key);
		if (rule)
			return rule;
	}
	return NULL;
}
