/* Rules and contracts: which consistency a key's readers are promised, and what heatsink may therefore do with
 * the key.
 *
 * A contract is that promise: `strict` (linearizable) or `cache` (a bounded staleness). A rule grants a
 * contract to the keys that match a glob. Rules are parsed from text into an immutable set; a key is matched to
 * its rule.
 *
 *     rule <glob> <contract> [option=value …]
 *
 * The rule with the longest literal prefix wins (the part before the first * ? [ or \). Between equal prefixes
 * the longer glob wins, then the later rule. A key without a rule is `strict`, and so is the empty key, which
 * no glob matches. A rule for a glob that already has one replaces it: the new rule comes last in the order,
 * but keeps the old one's number.
 *
 *     words ── parse.c ──> a rule ── set.c ──> a set ── match.c ──> the rule of a key
 *                 └─ options.c: a row per option, also used for docs and HEAT RULE
 *
 * This folder knows bytes and globs. It does not know commands, connections, files, or what a mitigation does
 * under a contract. A set is immutable, reference counted and shared by all threads; any thread may match.
 * Rules and their globs live as long as their set.
 *
 * Limits: HS_RULES_MAX rules, HS_RULE_GLOB_BYTES_MAX per glob (base/limits.h). A rule that is wrong, or one too
 * many, gives an error with the reason, and the old set stays in use. */
#ifndef HS_CONTRACT_CONTRACT_H
#define HS_CONTRACT_CONTRACT_H

#include "base/buf.h"
#include "base/check.h"
#include "base/words.h"

#include <stdbool.h>
#include <stdint.h>

enum hs_contract {
	/* linearizable: every reply is one that a single Redis could have given */
	HS_CONTRACT_STRICT,
	/* bounded staleness: a read may return a value that was overwritten up to `stale` ago */
	HS_CONTRACT_CACHE,
};

const char *hs_contract_name(enum hs_contract contract);

enum { HS_COPIES_AUTO = 255, HS_COPIES_MAX = 64 };

/* A rule. Times are in µs. The help texts in options.c describe each field for operators. */
struct hs_rule {
	struct hs_bytes glob;
	enum hs_contract contract;
	/* index of the rule's counters, below HS_RULES_MAX; a rule that replaces one for the same glob keeps it */
	uint32_t number;
	/* upper bound: no reply shows a value overwritten longer ago, except for the next two fields */
	uint64_t stale_us;
	/* stale-while-revalidate: additional age while one request refreshes the entry */
	uint64_t stale_while_revalidate_us;
	/* stale-if-error: additional age while the key cannot be read */
	uint64_t stale_if_error_us;
	uint64_t ttl_us;	  /* maximum time in the cache, even if no change is reported */
	uint64_t negative_ttl_us; /* the same for a key that does not exist */
	/* ttl_us and negative_ttl_us are reduced per entry by a random share of up to this, 0 to 1 */
	double jitter;
	/* XFetch's beta: how early an entry is refreshed before its end; 0: not at all */
	double refresh_ahead;
	bool admit_all; /* cache all keys, not only hot ones */
	bool is_public; /* any client of the HTTP port may read it */
	bool replica_reads;
	uint8_t copies; /* 0: none; or HS_COPIES_AUTO */
};

struct hs_rules;

/* An empty set with one reference. */
struct hs_rules *hs_rules_create(void);
void hs_rules_ref(const struct hs_rules *rules);
void hs_rules_unref(const struct hs_rules **rules);

/* Makes a new set: `rules` with one rule added, or replaced if its glob has one. `words`: <glob> <contract>
 * [option=value …]. HS_EINVAL: `error` says what is wrong, where, and the nearest valid word, if one is close.
 * HS_ELIMIT: it is a new glob and the set already has HS_RULES_MAX rules; `error` says so. */
int hs_rules_with(const struct hs_rules *rules, size_t count, const struct hs_bytes *words,
		  struct hs_rules **with, char *error, size_t error_size) HS_MUSTCHECK;
/* Makes a new set without the rule for this glob. HS_ENOTFOUND: no rule has it. */
int hs_rules_without(const struct hs_rules *rules, struct hs_bytes glob,
		     struct hs_rules **without) HS_MUSTCHECK;

/* After a reload of the configuration: the same rules, but those whose glob is also in `like` get their number
 * from there. */
struct hs_rules *hs_rules_renumber(const struct hs_rules *rules, const struct hs_rules *like);
bool hs_rules_same(const struct hs_rules *a, const struct hs_rules *b); /* compares them as text */

/* The key's rule; NULL: none. Any thread, no allocation, about 30 ns at most with 1,000 rules. */
const struct hs_rule *hs_rules_match(const struct hs_rules *rules, struct hs_bytes key);

size_t hs_rules_count(const struct hs_rules *rules);
const struct hs_rule *hs_rules_at(const struct hs_rules *rules,
				  size_t index); /* in the order given */
bool hs_rules_any(const struct hs_rules *rules, enum hs_contract contract);
/* The smallest `stale` of all rules; 0: no rule has one. */
uint64_t hs_rules_stale_min_us(const struct hs_rules *rules);

/* Writes the rule as text, with the options that differ from their default. Parsing it gives the same rule. */
void hs_rule_describe(const struct hs_rule *rule, struct hs_buf *out);

/* Length of a glob's literal prefix: the part before its first special character. */
size_t hs_rule_prefix_len(struct hs_bytes glob);

/* --- options: one row each (options.c) --- */

enum hs_rule_option_kind {
	HS_RULE_TIME,	 /* 100ms */
	HS_RULE_PERCENT, /* 10% */
	HS_RULE_REAL,	 /* 1.5 */
	HS_RULE_WORD,	 /* one of two words */
	HS_RULE_COPIES,	 /* a number, 0 or auto */
};

struct hs_rule_option {
	const char *name;
	enum hs_rule_option_kind kind;
	const char *fallback;	  /* the default, as text */
	bool at_most_stale;	  /* the default is min(fallback, stale) */
	size_t offset;		  /* in struct hs_rule */
	const char *min, *max;	  /* as text; NULL for WORD */
	const char *const *words; /* WORD: the words for false and true */
	const char *argument;	  /* placeholder in docs: "TIME" */
	const char *help;
};

extern const struct hs_rule_option hs_rule_option_table[]; /* options of the contract `cache` */
extern const size_t hs_rule_option_count;

/* Writes the option's value in this rule as text. */
void hs_rule_option_format(const struct hs_rule *rule, const struct hs_rule_option *option,
			   struct hs_buf *text);

#endif
