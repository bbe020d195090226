/* Matches a key to its rule.
 *
 * Every request pays for this, and the rule with the longest prefix wins. So prefixes are in a hash table by
 * length, and a key is looked up by its own first bytes, once per length that some prefix has. A table indexed
 * by a hash of the key's first four bytes gives the set of lengths worth trying.
 *
 *     user:42:name ── "user" ──> levels {5, 8} ── hashes of "user:" and "user:42:" ── Bloom filters ──┐
 *          level 8: bucket ──> user:42:*     found           <────────────── longest first ───────────┘
 *          level 5: bucket ──> user:*        would be next
 *
 * The hashes are computed in one pass over the key, and a bucket's Bloom filter shows at once that a hash is
 * not there. Branch mispredictions cost more than the hashes, so there are few branches. A key without a rule
 * usually looks into no bucket, a key with a rule into one.
 *
 * There is a level for each length up to 32 and one for every 32 bytes above, 64 in all, one per bit of a word.
 * A longer prefix is in the level below its length. So a bucket can hold prefixes of several lengths, also
 * because hashes collide. Its candidates are sorted by precedence, and each is compared byte by byte. The rest
 * of the glob is matched by base/glob.h. */
#include "contract/internal.h"

#include "base/glob.h"
#include "base/load.h"
#include "base/mem.h"

#include <stdlib.h>

enum { LEVELS = 64, STEPS = 32, HEAD = 4, CHUNK = 16 };

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

size_t hs_rule_prefix_len(struct hs_bytes glob)
{
	size_t len = 0;

	while (len < glob.len && !memchr("*?[\\", glob.data[len], 4))
		len++;
	return len;
}

/* ---- hashes of prefixes ---- */

/* The low `bytes` bytes of a word; 8 or more: all. */
static inline uint64_t low_bytes(uint64_t word, size_t bytes)
{
	return bytes >= 8 ? word : word & (bit((unsigned)(8 * bytes)) - 1);
}

static inline uint64_t mix(uint64_t a, uint64_t b)
{
	unsigned __int128 product = (unsigned __int128)(a ^ UINT64_C(0x9e3779b97f4a7c15)) *
				    (b ^ UINT64_C(0xe1988ad9f06c144b));

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* A pass over a text that stops at increasing lengths. The hash needs no secret seed: only the operator's rules
 * are in the table, so a client gains nothing by colliding. */
struct walk {
	struct hs_bytes text;
	size_t at; /* offset of `words` */
	uint64_t words[2];
	uint64_t state; /* hash state of the bytes before `words` */
};

static inline void hash_walk_begin(struct walk *walk, struct hs_bytes text)
{
	walk->text = text;
	walk->at = 0;
	walk->state = 0;
	hs_load_16(text.data, text.len, walk->words);
}

/* The hash of the first `len` bytes; `len` is at least 1 and within the text. */
static inline uint64_t hash_walk_at(struct walk *walk, size_t len)
{
	size_t here;

	while (__builtin_expect(len > walk->at + CHUNK, 0)) {
		walk->state = mix(walk->state ^ walk->words[0], walk->words[1]);
		walk->at += CHUNK;
		hs_load_16(walk->text.data + walk->at, walk->text.len - walk->at, walk->words);
	}
	here = len - walk->at;
	return mix(walk->state ^ low_bytes(walk->words[0], here) ^ (uint64_t)len << 56,
		   here > 8 ? low_bytes(walk->words[1], here - 8) : 0);
}

/* Index into `heads` for a text with these first bytes. */
static inline size_t head_of(uint64_t word)
{
	return (size_t)(((uint32_t)word * UINT64_C(0x9e3779b97f4a7c15)) >> 32) % HS_RULES_HEADS;
}

static inline uint32_t bloom_bit(uint64_t hash)
{
	return UINT32_C(1) << (hash >> 59);
}

/* ---- building the index ---- */

/* A candidate before it is sorted into its bucket. */
struct placed {
	struct hs_rules_candidate candidate;
	uint64_t hash;
	uint32_t bucket; /* 0: `no_prefix`; else index in the table + 1 */
};

static int by_count(size_t a, size_t b)
{
	return (a > b) - (a < b);
}

/* By bucket, then by precedence: longest prefix, longest glob, last given. */
static int by_bucket(const void *a, const void *b)
{
	const struct placed *one = a, *other = b;
	int order = by_count(one->bucket, other->bucket);

	if (order == 0)
		order = by_count(other->candidate.prefix_len, one->candidate.prefix_len);
	if (order == 0)
		order = by_count(other->candidate.glob_len, one->candidate.glob_len);
	return order ? order : by_count(other->candidate.rule, one->candidate.rule);
}

static enum hs_rules_rest rest_of(struct hs_bytes rest)
{
	if (rest.len == 0)
		return HS_RULES_REST_NONE;
	if (rest.data[0] != '*')
		return HS_RULES_REST_GLOB;
	if (rest.len == 1)
		return HS_RULES_REST_ANY;
	rest = (struct hs_bytes){rest.data + 1, rest.len - 1};
	return hs_rule_prefix_len(rest) == rest.len ? HS_RULES_REST_SUFFIX : HS_RULES_REST_GLOB;
}

static struct hs_rules_candidate candidate_of(const struct hs_rule *rule, size_t place)
{
	size_t prefix_len = hs_rule_prefix_len(rule->glob);
	struct hs_rules_candidate candidate = {
		.glob = rule->glob.data,
		.prefix_len = (uint16_t)prefix_len,
		.glob_len = (uint16_t)rule->glob.len,
		.rule = (uint16_t)place,
		.rest = (uint8_t)rest_of((struct hs_bytes){rule->glob.data + prefix_len,
							   rule->glob.len - prefix_len}),
	};

	hs_load_16(candidate.glob, prefix_len, candidate.words);
	return candidate;
}

static void place(struct hs_rules_index *index, const struct hs_rule *rule, size_t at,
		  struct placed *placed)
{
	struct walk walk;
	unsigned level;

	*placed = (struct placed){.candidate = candidate_of(rule, at)};
	level = level_of(placed->candidate.prefix_len);
	if (level == 0)
		return;
	hash_walk_begin(&walk, (struct hs_bytes){rule->glob.data, placed->candidate.prefix_len});
	placed->hash = hash_walk_at(&walk, level_bytes(level));
	placed->bucket = (uint32_t)(placed->hash & index->buckets_mask) + 1;
	if (level < HEAD)
		index->short_levels |= bit(level);
	else
		index->heads[head_of(placed->candidate.words[0])] |= bit(level);
}

void hs_rules_index_init(struct hs_rules *rules)
{
	struct hs_rules_index *index = &rules->index;
	struct placed *placed = hs_mem_alloc((rules->count + 1) * sizeof *placed);
	uint32_t size = 16;

	while (size < rules->count * 2)
		size *= 2;
	index->buckets = hs_mem_zalloc(size * sizeof *index->buckets);
	index->buckets_mask = size - 1;
	index->candidates = hs_mem_zalloc((rules->count + 1) * sizeof *index->candidates);
	for (size_t i = 0; i < rules->count; i++)
		place(index, &rules->rules[i], i, &placed[i]);
	qsort(placed, rules->count, sizeof *placed, by_bucket);
	for (size_t i = 0; i < rules->count; i++) {
		struct hs_rules_bucket *bucket = placed[i].bucket
							 ? &index->buckets[placed[i].bucket - 1]
							 : &index->no_prefix;

		if (bucket->count++ == 0)
			bucket->first = (uint16_t)i;
		bucket->bloom |= bloom_bit(placed[i].hash);
		index->candidates[i] = placed[i].candidate;
	}
	hs_mem_free(&placed);
}

void hs_rules_index_deinit(struct hs_rules *rules)
{
	hs_mem_free(&rules->index.buckets);
	hs_mem_free(&rules->index.candidates);
}

/* ---- matching ---- */

static bool glob_fits(struct hs_bytes glob, struct hs_bytes rest)
{
	if (rest.len > 0)
		return hs_glob_match(glob, rest, false);
	/* The key ends with the prefix. hs_glob_match says that an empty text does not match '*' (as Redis);
	 * here it must. */
	while (glob.len > 0 && glob.data[glob.len - 1] == '*')
		glob.len--;
	return glob.len == 0;
}

static inline bool rest_fits(const struct hs_rules_candidate *candidate, struct hs_bytes key)
{
	struct hs_bytes glob = {candidate->glob + candidate->prefix_len,
				(size_t)candidate->glob_len - candidate->prefix_len};
	struct hs_bytes rest = {key.data + candidate->prefix_len, key.len - candidate->prefix_len};
	size_t suffix_len = glob.len - 1;

	switch ((enum hs_rules_rest)candidate->rest) {
	case HS_RULES_REST_ANY:
		return true;
	case HS_RULES_REST_NONE:
		return rest.len == 0;
	case HS_RULES_REST_SUFFIX:
		return rest.len >= suffix_len &&
		       memcmp(rest.data + rest.len - suffix_len, glob.data + 1, suffix_len) == 0;
	case HS_RULES_REST_GLOB:
		break;
	}
	return glob_fits(glob, rest);
}

static inline bool prefix_fits(const struct hs_rules_candidate *candidate, struct hs_bytes key,
			       const uint64_t words[2])
{
	size_t len = candidate->prefix_len;

	if (len > key.len || low_bytes(words[0], len) != candidate->words[0])
		return false;
	if (len <= 8)
		return true;
	return low_bytes(words[1], len - 8) == candidate->words[1] &&
	       (len <= CHUNK || memcmp(candidate->glob, key.data, len) == 0);
}

/* Skips candidates whose prefix is shorter than this level (same bucket by collision): their level is tried
 * later. */
static inline const struct hs_rule *try_bucket(const struct hs_rules *rules,
					       struct hs_rules_bucket bucket, size_t level_len,
					       struct hs_bytes key, const uint64_t words[2])
{
	const struct hs_rules_candidate *candidate = &rules->index.candidates[bucket.first];

	for (; bucket.count > 0; bucket.count--, candidate++) {
		if (candidate->prefix_len >= level_len && prefix_fits(candidate, key, words) &&
		    rest_fits(candidate, key))
			return &rules->rules[candidate->rule];
	}
	return NULL;
}

const struct hs_rule *hs_rules_match(const struct hs_rules *rules, struct hs_bytes key)
{
	const struct hs_rules_index *index = &rules->index;
	uint64_t levels = index->short_levels, found = 0;
	uint32_t buckets[LEVELS];
	uint64_t words[2];
	struct walk walk;

	if (rules->count == 0 || key.len == 0)
		return NULL;
	hash_walk_begin(&walk, key);
	memcpy(words, walk.words, sizeof words);
	if (key.len >= HEAD)
		levels |= index->heads[head_of(words[0])];
	for (; levels; levels &= levels - 1) {
		unsigned level = (unsigned)__builtin_ctzll(levels);
		size_t len = level_bytes(level);
		uint64_t hash;

		if (len > key.len)
			break;
		hash = hash_walk_at(&walk, len);
		buckets[level] = (uint32_t)hash & index->buckets_mask;
		if (index->buckets[buckets[level]].bloom & bloom_bit(hash))
			found |= bit(level);
	}
	while (found) {
		unsigned level = LEVELS - 1 - (unsigned)__builtin_clzll(found);
		const struct hs_rule *rule = try_bucket(rules, index->buckets[buckets[level]],
							level_bytes(level), key, words);

		if (rule)
			return rule;
		found ^= bit(level);
	}
	return try_bucket(rules, index->no_prefix, 0, key, words);
}
