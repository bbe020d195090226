/* Users: they may log in, and run certain commands on certain keys and channels. The rules are
 * those of Redis 7.0's ACL, written as there: `on >password ~app:* %R~shared:* &jobs.* +@read
 * -keys`.
 *
 *     rules as words ── hs_acl_user_change ──> a user ── hs_acl_with ──> a set of users
 *                                                                             │
 *     a request ── hs_acl_check(user, command, arguments) ──> a verdict   <───┘ hs_acl_login
 *
 * It knows rows of the command table and bytes. It knows no connection, no ACL file, and not who
 * may change users.
 *
 * A user and a set never change once made: a change makes a new one. Both are reference counted, so
 * any thread may read, ref and unref them. A worker's core holds a reference to its set, and each
 * of its sessions borrows its user from that set. When the core adopts a new set, it points every
 * session to its user there and then drops the old set (core/users.c); until then requests are
 * checked against the old rules. One thread makes the changes, the control thread: two concurrent
 * hs_acl_with on one set would lose one of the changes.
 *
 * The effect of a rule on commands is computed when a user is made, as a bit for each row of
 * heatsink's own table. A check is then one bit and, for a user who is not allowed all keys, a
 * match of each key with the user's patterns. Commands that were learned from a server have no bit:
 * each check evaluates the rules.
 *
 * A command that does more than its arguments say (HS_CMD_UNCHECKED: EVAL, FCALL, FUNCTION LOAD …)
 * is run by the server behind heatsink with heatsink's own user there, so no rule is applied to
 * what a script does. A user with limits may run it only if the rule +script|unchecked says so; no
 * category and no other name includes it.
 *
 * Limits (base/limits.h): HS_ACL_USER_BYTES_MAX for one user's rules; the callers limit the number
 * of users (HS_ACL_USERS_MAX). A wrong rule makes no user and is reported with its word. */
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
struct hs_acl_user; /* a user: name, passwords, rules */
struct hs_reply;

/* --- sets --- */

struct hs_acl *hs_acl_create(void); /* an empty set */
/* A set with the user `default` alone, which may do everything; "": it needs no password. */
struct hs_acl *hs_acl_create_open(const char *password);
struct hs_acl *hs_acl_ref(const struct hs_acl *acl);
void hs_acl_unref(struct hs_acl **acl); /* NULL is fine */

/* A copy of the set with this user in place of the one of the same name, or added. Takes over the
 * caller's reference to the user; `acl` stays the caller's. */
struct hs_acl *hs_acl_with(const struct hs_acl *acl, struct hs_acl_user *user);
/* Adds the user to the set itself. Only while the caller has the only reference: for loading a
 * file. The name must be new. */
void hs_acl_add(struct hs_acl **acl, struct hs_acl_user *user);
/* A copy without the user of this name. */
struct hs_acl *hs_acl_without(const struct hs_acl *acl, struct hs_bytes name);
/* compares the users as ACL LIST prints them */
bool hs_acl_same(const struct hs_acl *a, const struct hs_acl *b);

size_t hs_acl_count(const struct hs_acl *acl);
const struct hs_acl_user *hs_acl_at(const struct hs_acl *acl, size_t index);
/* NULL: there is no such user. The set keeps its reference to the result. */
const struct hs_acl_user *hs_acl_find(const struct hs_acl *acl, struct hs_bytes name);
/* The user with this name and password; NULL: unknown, wrong password, or switched off. */
const struct hs_acl_user *hs_acl_login(const struct hs_acl *acl, struct hs_bytes name,
				       struct hs_bytes password);

/* --- users --- */

/* The fault in a rule. */
struct hs_acl_error {
	char word[256]; /* the rule, cut to fit */
	const char *why;
	bool unmatched; /* its parenthesis is not closed */
};

struct hs_acl_rules {
	size_t count;
	const struct hs_bytes *words;
	const struct hs_learned *learned; /* further commands that rules may name, or NULL */
	/* True: accept unknown command names and match them by name, because the server's COMMAND
	 * reply has not arrived. False: an unknown name is an error. */
	bool any_command;
};

/* A user like `base` with these rules applied; without `base`, starting from a user who may do
 * nothing. The caller owns a reference to the result. NULL: a rule is wrong, and `error` says
 * which. */
struct hs_acl_user *hs_acl_user_change(const struct hs_acl_user *base, struct hs_bytes name,
				       const struct hs_acl_rules *rules,
				       struct hs_acl_error *error) HS_MUSTCHECK;
/* A copy of the user with this password only; "": without one. Does what `requirepass` does. */
struct hs_acl_user *hs_acl_user_with_password(const struct hs_acl_user *user, const char *password);
struct hs_acl_user *hs_acl_user_ref(const struct hs_acl_user *user);
void hs_acl_user_unref(struct hs_acl_user **user);

/* Names have no spaces and no zero bytes in them. */
bool hs_acl_name_fits(struct hs_bytes name);
struct hs_bytes hs_acl_user_name(const struct hs_acl_user *user);
bool hs_acl_user_is_on(const struct hs_acl_user *user);
bool hs_acl_user_has_nopass(const struct hs_acl_user *user); /* any password will do */
/* Every client can log in as this user: it is on, and needs no password or an empty one. */
bool hs_acl_user_is_open(const struct hs_acl_user *user);
/* May run every command on every key and channel: no check is needed. */
bool hs_acl_user_is_unlimited(const struct hs_acl_user *user);

/* "alice on #… ~* &* +@all": rules that make the same user out of a new one. */
void hs_acl_user_describe(const struct hs_acl_user *user, struct hs_buf *text);
void hs_acl_user_reply(const struct hs_acl_user *user, struct hs_reply *reply); /* ACL GETUSER */

/* --- checks --- */

/* Ordered: when every selector of a user refuses, the reply gives the highest value. */
enum hs_acl_verdict {
	HS_ACL_OK,
	HS_ACL_COMMAND, /* the command is not allowed */
	HS_ACL_KEY,
	HS_ACL_CHANNEL,
	HS_ACL_SORT_BY,	 /* SORT … BY reads keys that are no arguments */
	HS_ACL_SORT_GET, /* so does SORT … GET */
	/* the command is allowed, but runs a script whose commands no rule checks */
	HS_ACL_UNCHECKED,
};

/* May this user run the request? *at: index of the key or channel that is denied; 0: the command
 * itself. The arity must fit. */
enum hs_acl_verdict hs_acl_check(const struct hs_acl_user *user, const struct hs_command *command,
				 size_t argc, const struct hs_bytes *argv, size_t *at);

/* May this user publish or subscribe to the channel? A pattern must equal one of the user's
 * patterns, byte by byte. */
bool hs_acl_may_channel(const struct hs_acl_user *user, struct hs_bytes channel, bool is_pattern);

/* The name by which Redis calls a command when it refuses it. */
const char *hs_acl_command_name(const struct hs_command *command);

/* The categories, in Redis's order, without the @; NULL behind the last one. */
const char *hs_acl_category_name(size_t index);
bool hs_acl_category_has(size_t index, const struct hs_command *command);

#endif
