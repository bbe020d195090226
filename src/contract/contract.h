/* Contracts: what may be done to a key. Rules as text become an immutable set; a key finds its rule.
 *
 *     rule <glob> <contract> [option=value …]
 *
 * The rule with the longest literal prefix wins (what stands before the first * ? [ or \); of two with
 * equally long ones the longer glob, then the one that was given later. A key without a rule is
 * `strict`, and so is the empty key, which no glob fits. A second rule for the same glob takes the
 * place of the first, as if that had never been given.
 *
 *     words ── parse.c ──> a rule ── set.c ──> a set ── match.c ──> the rule of a key
 *                 └─ options.c: a row for each option, which the docs are made from as well
 *
 * It knows bytes and globs; nothing of commands, connections, files or of what anyone does under a
 * contract. A set is shared by all threads and freed by the last to let go; nothing of it changes.
 * Rules and their globs live as long as the set they were found in.
 *
 * Limits: HS_RULES_MAX rules, HS_RULE_GLOB_BYTES_MAX for a glob (base/limits.h). */
#ifndef HS_CONTRACT_CONTRACT_H
#define HS_CONTRACT_CONTRACT_H

#include "base/buf.h"
#include "base/check.h"
#include "base/words.h"

#include <stdbool.h>
#include <stdint.h>

enum hs_contract {
	HS_CONTRACT_STRICT, /* nothing: every answer is one a single Redis could have given */
	HS_CONTRACT_CACHE,  /* a read may be a little old */
};

const char *hs_contract_name(enum hs_contract contract);

enum { HS_COPIES_AUTO = 255, HS_COPIES_MAX = 64 };

/* What it may be asked of an application, and what for, stands with the options (options.c). Times are
 * in µs. */
struct hs_rule {
	struct hs_bytes glob;
	enum hs_contract contract;
	uint32_t number;   /* below HS_RULES_MAX: counters of the same glob stay with it */
	uint64_t stale_us; /* no answer is older, but for the next two */
	uint64_t stale_while_revalidate_us; /* and so much longer while it is being read again */
	uint64_t stale_if_error_us;	    /* and so much longer while it cannot be read */
	uint64_t ttl_us;		    /* kept so long at most, whoever vouches for it */
	uint64_t negative_ttl_us;	    /* the same, of a key that is missing */
	double jitter; /* 0.1: those two are shorter by up to 10 %, each by another part */
	double refresh_ahead; /* read again before the end, the more likely the nearer (XFetch's beta); 0: not */
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

/* The same rules, numbered as `like` numbers those of the same globs: for a set that was read anew. */
struct hs_rules *hs_rules_renumber(const struct hs_rules *rules, const struct hs_rules *like);
bool hs_rules_same(const struct hs_rules *a, const struct hs_rules *b); /* as they are written */

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

/* What a glob begins with, up to its first special character: its literal prefix. */
size_t hs_rule_prefix_len(struct hs_bytes glob);

/* --- options: one row each (options.c) --- */

enum hs_rule_option_kind {
	HS_RULE_TIME,	 /* 100ms */
	HS_RULE_PERCENT, /* 10% */
	HS_RULE_REAL,	 /* 1.5 */
	HS_RULE_WORD,	 /* one of two */
	HS_RULE_COPIES,	 /* a number, 0 or auto */
};

struct hs_rule_option {
	const char *name;
	enum hs_rule_option_kind kind;
	const char *fallback;	  /* the default, as text */
	bool at_most_stale;	  /* or what `stale` is, if that is less */
	size_t offset;		  /* into struct hs_rule */
	const char *min, *max;	  /* as text; of a WORD NULL */
	const char *const *words; /* WORD: what false and true are called */
	const char *argument;	  /* shown in docs: "TIME" */
	const char *help;
};

extern const struct hs_rule_option hs_rule_option_table[]; /* of `cache` */
extern const size_t hs_rule_option_count;

/* Its value in this rule, as one would write it. */
void hs_rule_option_format(const struct hs_rule *rule, const struct hs_rule_option *option,
			   struct hs_buf *text);

#endif
