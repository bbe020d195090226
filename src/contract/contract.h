/* Contracts: what may be done to a key. Rules as text become an immutable set; a key finds its rule.
 *
 *     rule <glob> <contract> [option=value …]
 *
 * The rule with the longest literal prefix wins (what stands before the first * ? [ or \); of two with
 * equally long ones the longer glob, then the one that was given later. A key without a rule is
 * `strict`. A second rule for the same glob replaces the first.
 *
 * A set is shared by all threads and freed by the last to let go; nothing of it changes. */
#ifndef HS_CONTRACT_CONTRACT_H
#define HS_CONTRACT_CONTRACT_H

#include "base/buf.h"
#include "base/bytes.h"
#include "base/check.h"

#include <stdbool.h>
#include <stdint.h>

enum hs_contract {
	HS_CONTRACT_STRICT, /* nothing: every answer is one a single Redis could have given */
	HS_CONTRACT_CACHE,  /* a read may be a little old */
};

enum { HS_COPIES_AUTO = 255, HS_COPIES_MAX = 64 };

/* Times are in µs. */
struct hs_rule {
	struct hs_bytes glob;
	enum hs_contract contract;
	uint32_t number;	    /* below HS_RULES_MAX: counters of the same glob stay with it */
	uint64_t stale_us;	    /* no answer is older, but for the next two */
	uint64_t swr_us;	    /* and so much longer while it is being read again */
	uint64_t stale_if_error_us; /* and so much longer while it cannot be read */
	uint64_t ttl_us;	    /* kept so long at most, whoever vouches for it */
	uint64_t negative_us;	    /* the same, of a key that is missing */
	double jitter; /* 0.1: those two are shorter by up to 10 %, each by another part */
	double ahead; /* read again before the end, the more likely the nearer (XFetch's beta); 0: not */
	bool admit_all; /* not only hot keys */
	bool is_public; /* anybody may read it over HTTP */
	bool replica_reads;
	uint8_t copies; /* 0: none; or HS_COPIES_AUTO */
};

struct hs_rules;

/* A set without rules; one reference. */
struct hs_rules *hs_rules_create(void);
void hs_rules_ref(const struct hs_rules *rules);
void hs_rules_unref(const struct hs_rules **rules);

/* A new set: `rules` and this one more. `words` is <glob> <contract> [option=value …]. HS_EINVAL with
 * what is wrong, where, and the nearest valid word in `error`; HS_ELIMIT: there are HS_RULES_MAX. */
int hs_rules_with(const struct hs_rules *rules, size_t count, const struct hs_bytes *words,
		  struct hs_rules **with, char *error, size_t error_size) HS_MUSTCHECK;
/* A new set without the rule of this glob. HS_ENOTFOUND: there is none. */
int hs_rules_without(const struct hs_rules *rules, struct hs_bytes glob,
		     struct hs_rules **without) HS_MUSTCHECK;

/* The rule of a key; NULL: it has none. Any thread, no allocation, at most some 30 ns with 1,000 rules. */
const struct hs_rule *hs_rules_match(const struct hs_rules *rules, struct hs_bytes key);

size_t hs_rules_count(const struct hs_rules *rules);
const struct hs_rule *hs_rules_at(const struct hs_rules *rules,
				  size_t index); /* as they were given */
bool hs_rules_any(const struct hs_rules *rules, enum hs_contract contract);
/* The shortest `stale` of all; 0: no rule has one. */
uint64_t hs_rules_stale_min_us(const struct hs_rules *rules);

/* The rule as it would be written, options that are not the default included; what is read again gives
 * the same rule. */
void hs_rule_describe(const struct hs_rule *rule, struct hs_buf *out);

#endif
