/* Private to src/contract: option values, and the index that matches keys. */
#ifndef HS_CONTRACT_INTERNAL_H
#define HS_CONTRACT_INTERNAL_H

#include "contract/contract.h"

#include "base/limits.h"

#include <stdatomic.h>

/* options.c: a value is a whole number in the option's unit: µs, thousandths, or the index of a word. */
bool hs_rule_option_parse(const struct hs_rule_option *option, struct hs_bytes text,
			  uint64_t *value); /* does not check bounds */
bool hs_rule_option_fits(const struct hs_rule_option *option, uint64_t value);
void hs_rule_option_put(struct hs_rule *rule, const struct hs_rule_option *option, uint64_t value);
uint64_t hs_rule_option_get(const struct hs_rule *rule, const struct hs_rule_option *option);
/* The default value, in a rule whose stale_us is set already. */
uint64_t hs_rule_option_fallback(const struct hs_rule *rule, const struct hs_rule_option *option);

/* Former names of options: a rule that uses one gets an error with the name that replaced it. */
struct hs_rule_renamed_option {
	const char *old_name, *name;
};

extern const struct hs_rule_renamed_option hs_rule_renamed_option_table[];
extern const size_t hs_rule_renamed_option_count;

/* parse.c: parses one rule; the first word is its glob. */
int hs_rule_parse(struct hs_rule *rule, size_t count, const struct hs_bytes *words, char *error,
		  size_t error_size) HS_MUSTCHECK;

/* match.c: from a key to its rule. */

/* The part of a glob behind its literal prefix. Only the last kind needs glob matching. */
enum hs_rules_rest {
	HS_RULES_REST_ANY,    /* "*" */
	HS_RULES_REST_NONE,   /* "" */
	HS_RULES_REST_SUFFIX, /* "*:name" */
	HS_RULES_REST_GLOB,
};

struct hs_rules_candidate {
	uint64_t words[2]; /* the first 16 bytes of its prefix, padded with zeros */
	const char *glob;
	uint16_t prefix_len;
	uint16_t glob_len;
	uint16_t rule; /* index in the set */
	uint8_t rest;  /* enum hs_rules_rest */
};

/* Candidates whose hashes select the same bucket. */
struct hs_rules_bucket {
	uint32_t bloom; /* 32-bit Bloom filter of the hashes in this bucket */
	uint16_t first; /* index of the first candidate */
	uint16_t count;
};

enum { HS_RULES_HEADS = 512 };

struct hs_rules_index {
	uint64_t short_levels;		  /* bit set of prefix lengths below 4 that some rule has */
	struct hs_rules_bucket no_prefix; /* rules whose glob has no literal prefix */
	uint32_t buckets_mask;
	struct hs_rules_bucket *buckets;
	struct hs_rules_candidate *candidates;
	/* by a hash of a prefix's first four bytes: bit set of the levels (classes of prefix length, match.c)
	 * that some such rule has */
	uint64_t heads[HS_RULES_HEADS];
};

struct hs_rules {
	_Atomic uint32_t refs;
	uint32_t count;
	uint32_t next_number; /* where the search for a free number starts */
	bool has[HS_CONTRACT_CACHE + 1];
	uint64_t stale_min_us;
	struct hs_rule *rules; /* in the order given */
	char *globs;	       /* the bytes of all globs */
	struct hs_rules_index index;
};

void hs_rules_index_init(struct hs_rules *rules);
void hs_rules_index_deinit(struct hs_rules *rules);

#endif
