/* Private to src/acl: what users and sets are made of.
 *
 * A user has one or more selectors: the first one holds the rules written outside parentheses, each
 * pair of parentheses makes another. A request passes when one of them lets all of it pass. */
#ifndef HS_ACL_INTERNAL_H
#define HS_ACL_INTERNAL_H

#include "acl/acl.h"

#include "base/sha256.h"

#include <stdatomic.h>

/* What a pattern allows, in the bits of what a command asks for. */
enum { HS_ACL_READ = HS_KEY_READS, HS_ACL_WRITE = HS_KEY_WRITES };

/* One rule about commands, in the order in which they were given: a later one wins. */
struct hs_acl_rule {
	bool allow;
	uint32_t category; /* its bit; 0: the rule names a command */
	/* "get"; "client|list"; or "select|0": SELECT when its first argument is 0. The command is in
	 * small letters. */
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

enum { HS_ACL_OTHER_KEYS_SHIFT = 2, HS_ACL_ASK_ARGUMENTS = 0xff };

enum { HS_ACL_WORDS = (HS_CMD_IDS + 63) / 64 };

struct hs_acl_selector {
	bool all_keys;
	bool all_channels;
	/* Commands: what the first rule, +@all or -@all, says, and those behind it. */
	bool starts_with_all;
	struct hs_acl_rule *rules;
	size_t rules_count;
	bool unchecked; /* +script|unchecked */
	struct hs_acl_patterns keys;
	struct hs_acl_patterns channels;

	/* Worked out from the rules when the user is done. */
	bool all_commands;
	bool has_arguments; /* a rule names a first argument: a clear bit is not the last word */
	uint64_t allowed[HS_ACL_WORDS]; /* by command id */
};

enum hs_acl_payload { HS_ACL_PAYLOAD_UNSET, HS_ACL_PAYLOAD_SANITIZE, HS_ACL_PAYLOAD_SKIP };

struct hs_acl_user {
	_Atomic uint32_t refs;
	char *name; /* zero-terminated; has no zero byte in it */
	bool on;
	bool nopass;
	bool unlimited;
	enum hs_acl_payload payload; /* of RESTORE; remembered and shown, nothing else */
	uint8_t (*passwords)[HS_SHA256_BYTES];
	size_t passwords_count;
	struct hs_acl_selector *selectors;
	size_t selectors_count;
	/* What our own commands ask of their keys, worked out of the words in their rows: of the first
	 * key, and of the others above it; or HS_ACL_ASK_ARGUMENTS. Filled when a selector limits the keys. */
	uint8_t access[HS_CMD_IDS];
};

struct hs_acl {
	_Atomic uint32_t refs;
	size_t count;
	struct hs_acl_user *users[];
};

/* One of our own rows, with a bit in `allowed`; not one that was learned. */
static inline bool hs_acl_is_ours(const struct hs_command *command)
{
	return (unsigned)command->id < HS_CMD_IDS;
}

/* rules.c */
void hs_acl_selector_deinit(struct hs_acl_selector *selector); /* may do nothing from then on */
void hs_acl_selector_copy(struct hs_acl_selector *to, const struct hs_acl_selector *from);
/* Applies one rule; NULL, or why it cannot be. */
const char *hs_acl_selector_apply(struct hs_acl_selector *selector, struct hs_bytes word,
				  const struct hs_acl_rules *rules);

/* check.c */
/* What the rules say of a command; `argc` 0: whatever its first argument is. */
bool hs_acl_rules_allow(const struct hs_acl_selector *selector, const struct hs_command *command,
			size_t argc, const struct hs_bytes *argv);

/* One row's part of `access` in struct hs_acl_user. */
uint8_t hs_acl_access_of(const struct hs_command *command);

/* describe.c */
const char *hs_acl_category_of(uint32_t bit);

#endif
