/* Users: who may come in, and run which commands on which keys and channels. The rules are those of
 * Redis 7.0's ACL, written as there: `on >password ~app:* %R~shared:* &news.* +@read -keys`.
 *
 *     rules as words ── hs_acl_user_change ──> a user ── hs_acl_with ──> a set of users
 *                                                                             │
 *     a request ── hs_acl_check(user, command, arguments) ──> a verdict   <───┘ hs_acl_login
 *
 * It knows rows of the command table and bytes; nothing of connections, of the file that users are
 * written in or of who may change them. A user and a set never change once made: a change makes a
 * new one. Both count who holds them, so any thread may read, hold and drop them.
 *
 * What a rule says of commands is worked out when a user is made, into a bit for each row of our own
 * table; a check is then a look at that bit and, for a user who is not allowed all keys, a match of
 * each key with the user's patterns. Commands that were learned from a server have no bit: they are
 * judged by the rules themselves.
 *
 * A command that does more than its arguments say (HS_CMD_UNCHECKED: EVAL, FCALL, FUNCTION LOAD …) is
 * run by the server behind heatsink as the one user that heatsink is there, so no rule is applied to what
 * a script does. A user with limits may run it only when the rule +script|unchecked says so; no category
 * and no other name includes it.
 *
 * Limits: HS_ACL_USERS_MAX users, HS_ACL_USER_BYTES_MAX for one user's rules (base/limits.h). */
#ifndef HS_ACL_ACL_H
#define HS_ACL_ACL_H

#include "base/buf.h"
#include "base/bytes.h"
#include "base/check.h"
#include "command/command.h"
#include "command/learned.h"

#include <stdbool.h>
#include <stdint.h>

struct hs_acl;	    /* a set of users, in the order of their names */
struct hs_acl_user; /* one of them */
struct hs_reply;

/* --- sets --- */

struct hs_acl *hs_acl_create(void); /* without anybody */
/* With the user `default` alone, who may do everything; "": without a password. */
struct hs_acl *hs_acl_create_open(const char *password);
struct hs_acl *hs_acl_ref(const struct hs_acl *acl);
void hs_acl_unref(struct hs_acl **acl); /* NULL is fine */

/* A copy of the set in which this user takes the place of one with the same name, or is new. Takes
 * over the caller's hold of the user, not that of the set. */
struct hs_acl *hs_acl_with(const struct hs_acl *acl, struct hs_acl_user *user);
/* The same in the set itself, of which the caller has the only hold: for reading many at once. The
 * name must be new. */
void hs_acl_add(struct hs_acl **acl, struct hs_acl_user *user);
/* A copy without the user of this name. */
struct hs_acl *hs_acl_without(const struct hs_acl *acl, struct hs_bytes name);
bool hs_acl_same(const struct hs_acl *a, const struct hs_acl *b); /* as their rules read */

size_t hs_acl_count(const struct hs_acl *acl);
const struct hs_acl_user *hs_acl_at(const struct hs_acl *acl, size_t index);
/* NULL: nobody. The set holds the user. */
const struct hs_acl_user *hs_acl_find(const struct hs_acl *acl, struct hs_bytes name);
/* Who comes in with this name and password; NULL: nobody, the password is wrong, the user is off. */
const struct hs_acl_user *hs_acl_login(const struct hs_acl *acl, struct hs_bytes name,
				       struct hs_bytes password);

/* --- users --- */

/* What is wrong with a rule. */
struct hs_acl_error {
	char word[256]; /* the rule, cut to fit */
	const char *why;
	bool unmatched; /* it opens a parenthesis that nothing closes */
};

struct hs_acl_rules {
	size_t count;
	const struct hs_bytes *words;
	const struct hs_learned *learned; /* commands that may be named beside our own; or NULL */
	/* Names that neither has are kept and matched by name: the commands of the server behind us
	 * are not known yet. Else they are an error. */
	bool any_command;
};

/* A user like `base`, with these rules on top; without a base one who may do nothing. The caller
 * holds the result. NULL: a rule is wrong, and `error` says which. */
struct hs_acl_user *hs_acl_user_change(const struct hs_acl_user *base, struct hs_bytes name,
				       const struct hs_acl_rules *rules,
				       struct hs_acl_error *error) HS_MUSTCHECK;
/* The same user, with this password alone; "": without one. What `requirepass` means. */
struct hs_acl_user *hs_acl_user_with_password(const struct hs_acl_user *user, const char *password);
struct hs_acl_user *hs_acl_user_ref(const struct hs_acl_user *user);
void hs_acl_user_unref(struct hs_acl_user **user);

/* Names have no spaces and no zero bytes in them. */
bool hs_acl_name_fits(struct hs_bytes name);
struct hs_bytes hs_acl_user_name(const struct hs_acl_user *user);
bool hs_acl_user_is_on(const struct hs_acl_user *user);
bool hs_acl_user_has_nopass(const struct hs_acl_user *user); /* any password will do */
/* Anybody can log in as this user: it is on, and needs no password or an empty one. */
bool hs_acl_user_is_open(const struct hs_acl_user *user);
/* May run every command on every key and channel: there is nothing to check. */
bool hs_acl_user_is_unlimited(const struct hs_acl_user *user);

/* "alice on #… ~* &* +@all", each word as a rule that makes this user out of a new one. */
void hs_acl_user_describe(const struct hs_acl_user *user, struct hs_buf *text);
void hs_acl_user_reply(const struct hs_acl_user *user, struct hs_reply *reply); /* ACL GETUSER */

/* --- checks --- */

/* In the order of their weight: when every selector of a user refuses, the heaviest reason is the
 * one that is told. */
enum hs_acl_verdict {
	HS_ACL_OK,
	HS_ACL_COMMAND, /* may not run it */
	HS_ACL_KEY,
	HS_ACL_CHANNEL,
	HS_ACL_SORT_BY,	  /* SORT … BY reads keys that no argument names */
	HS_ACL_SORT_GET,  /* so does SORT … GET */
	HS_ACL_UNCHECKED, /* allowed by name, but its effects would pass every other rule by */
};

/* May this user run that? `at`: the argument that may not be touched, 0 for the command itself.
 * The arity must fit. */
enum hs_acl_verdict hs_acl_check(const struct hs_acl_user *user, const struct hs_command *command,
				 size_t argc, const struct hs_bytes *argv, size_t *at);

/* May this user publish to or subscribe to the channel? A pattern must be one of the user's own
 * patterns, letter for letter. */
bool hs_acl_may_channel(const struct hs_acl_user *user, struct hs_bytes channel, bool is_pattern);

/* The name by which Redis calls a command when it refuses it. */
const char *hs_acl_command_name(const struct hs_command *command);

/* The categories, in Redis's order, without the @; NULL behind the last one. */
const char *hs_acl_category_name(size_t index);
bool hs_acl_category_has(size_t index, const struct hs_command *command);

#endif
