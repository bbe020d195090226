/* Private to src/contract. */
#ifndef HS_CONTRACT_INTERNAL_H
#define HS_CONTRACT_INTERNAL_H

#include "contract/contract.h"

#include "base/limits.h"

#include <stdatomic.h>

/* options.c: values go by as whole numbers of the option's unit: µs, thousandths, an index. */
bool hs_rule_option_parse(const struct hs_rule_option *option, struct hs_bytes text,
			  uint64_t *value); /* whatever its bounds */
bool hs_rule_option_fits(const struct hs_rule_option *option, uint64_t value);
void hs_rule_option_put(struct hs_rule *rule, const struct hs_rule_option *option, uint64_t value);
uint64_t hs_rule_option_get(const struct hs_rule *rule, const struct hs_rule_option *option);
/* The default, in a rule whose `stale` is said already. */
uint64_t hs_rule_option_fallback(const struct hs_rule *rule, const struct hs_rule_option *option);

/* parse.c: one rule out of its words; its glob is the first of them. */
int hs_rule_parse(struct hs_rule *rule, size_t count, const struct hs_bytes *words, char *error,
		  size_t error_size) HS_MUSTCHECK;

/* match.c: from a key to its rule. */

/* What stands behind a prefix; all but the last need no glob to be matched. */
enum hs_rules_rest {
	HS_RULES_REST_ANY,    /* "*" */
	HS_RULES_REST_NONE,   /* "" */
	HS_RULES_REST_SUFFIX, /* "*:name" */
	HS_RULES_REST_GLOB,
};

struct hs_rules_candidate {
	uint64_t words[2]; /* what its prefix begins with, zeros behind its end */
	const char *glob;
	uint16_t prefix_len;
	uint16_t glob_len;
	uint16_t rule; /* its place in the set */
	uint8_t rest;  /* enum hs_rules_rest */
};

/* Candidates whose hashes fall together. */
struct hs_rules_bucket {
	uint32_t bloom; /* one of its bits for each hash: without it, nobody of that hash is here */
	uint16_t first; /* among the candidates */
	uint16_t count;
};

enum { HS_RULES_HEADS = 512 };

struct hs_rules_index {
	uint64_t short_levels;		  /* that have a rule, of those too short for `heads` */
	struct hs_rules_bucket no_prefix; /* without a prefix */
	uint32_t buckets_mask;
	struct hs_rules_bucket *buckets;
	struct hs_rules_candidate *candidates;
	uint64_t heads[HS_RULES_HEADS]; /* by a hash of the first bytes: levels that have a rule */
};

struct hs_rules {
	_Atomic uint32_t refs;
	uint32_t count;
	uint32_t next_number; /* where to look for a free one */
	bool has[HS_CONTRACT_CACHE + 1];
	uint64_t stale_min_us;
	struct hs_rule *rules; /* as they were given */
	char *globs;	       /* of all of them */
	struct hs_rules_index index;
};

void hs_rules_index_init(struct hs_rules *rules);
void hs_rules_index_deinit(struct hs_rules *rules);

#endif
