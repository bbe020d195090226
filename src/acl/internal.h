/* Private to src/acl: the parts of users and sets.
 *
 * A user has one or more selectors. The first holds the rules outside parentheses, each pair of
 * parentheses makes another. A request passes when one selector allows all of it. */
#ifndef HS_ACL_INTERNAL_H
#define HS_ACL_INTERNAL_H

#include "acl/acl.h"

#include "base/sha256.h"

#include <stdatomic.h>

/* The permissions of a pattern; the same bits as enum hs_key_access. */
enum { HS_ACL_READ = HS_KEY_READS, HS_ACL_WRITE = HS_KEY_WRITES };

/* One rule about commands. Of several, a later one wins. */
struct hs_acl_rule {
	bool allow;
	uint32_t category; /* its bit; 0: the rule names a command */
	/* "get", "client|list", or "select|0": SELECT with the first argument 0. The command is in
	 * lower case. */
	char *name;
};

struct hs_acl_pattern {
	unsigned access; /* HS_ACL_READ, HS_ACL_WRITE */
	char *text;
	size_t len;
};

struct hs_acl_patterns {
	struct hs_acl_pattern *at;
	size_t count;
};

/* See `access` in struct hs_acl_user. */
enum { HS_ACL_OTHER_KEYS_SHIFT = 2, HS_ACL_ASK_ARGUMENTS = 0xff };

enum { HS_ACL_WORDS = (HS_CMD_IDS + 63) / 64 };

struct hs_acl_selector {
	bool all_keys;
	bool all_channels;
	/* The first command rule is +@all; otherwise -@all. `rules`: the rules after it. */
	bool starts_with_all;
	struct hs_acl_rule *rules;
	size_t rules_count;
	bool unchecked; /* +script|unchecked */
	struct hs_acl_patterns keys;
	struct hs_acl_patterns channels;

	/* Computed from the rules when the user is complete. */
	bool all_commands;
	/* A rule has a | in its name, as +select|0: a command whose bit in `allowed` is 0 may still
	 * be allowed with its argument, so evaluate the rules. */
	bool has_arguments;
	uint64_t allowed[HS_ACL_WORDS]; /* by command id */
};

enum hs_acl_payload { HS_ACL_PAYLOAD_UNSET, HS_ACL_PAYLOAD_SANITIZE, HS_ACL_PAYLOAD_SKIP };

struct hs_acl_user {
	_Atomic uint32_t refs;
	char *name; /* zero-terminated; has no zero byte in it */
	bool on;
	bool nopass;
	bool unlimited;
	enum hs_acl_payload payload; /* for RESTORE; stored and shown, without effect */
	uint8_t (*passwords)[HS_SHA256_BYTES];
	size_t passwords_count;
	struct hs_acl_selector *selectors;
	size_t selectors_count;
	/* By command id, for heatsink's own commands: the permission that the first key needs (bits
	 * 0-1) and the other keys need (shifted by HS_ACL_OTHER_KEYS_SHIFT). HS_ACL_ASK_ARGUMENTS:
	 * it depends on the arguments, so walk the keys. Filled only when a selector limits the
	 * keys. */
	uint8_t access[HS_CMD_IDS];
};

struct hs_acl {
	_Atomic uint32_t refs;
	size_t count;
	struct hs_acl_user *users[];
};

/* Is it a row of heatsink's own table, with a bit in `allowed`? Learned rows have none. */
static inline bool hs_acl_is_ours(const struct hs_command *command)
{
	return (unsigned)command->id < HS_CMD_IDS;
}

/* rules.c */
void hs_acl_selector_deinit(struct hs_acl_selector *selector); /* afterwards it allows nothing */
void hs_acl_selector_copy(struct hs_acl_selector *to, const struct hs_acl_selector *from);
/* Applies one rule. NULL, or the reason why it is wrong. */
const char *hs_acl_selector_apply(struct hs_acl_selector *selector, struct hs_bytes word,
				  const struct hs_acl_rules *rules);

/* check.c */
/* Do the rules allow the command? `argc` 0: with any first argument. */
bool hs_acl_rules_allow(const struct hs_acl_selector *selector, const struct hs_command *command,
			size_t argc, const struct hs_bytes *argv);

/* Computes access[command->id] of struct hs_acl_user. */
uint8_t hs_acl_access_of(const struct hs_command *command);

/* The name of the category with this bit, without the @. */
const char *hs_acl_category_of(uint32_t bit);

#endif
