/* The options of `heatsink serve`: one row each (options.def). The struct of their values, the command line, the
 * configuration file, CONFIG GET/SET/REWRITE and --help all come from these rows.
 *
 * A module of values and text: it knows no thread, no client and not what an option does. A struct hs_options
 * belongs to one thread at a time; the running server's to the control thread (host.h). Names are compared without
 * case in a file, on the command line and in CONFIG. One check is not: a file must not set `config`, but only the
 * name in lower case is refused (options_file.c).
 *
 * Bad input: a function that reads text returns negative and writes one line to `error` that says what is allowed.
 * hs_options_load and hs_options_parse also name the option, and the file and line if there is one; hs_option_set
 * leaves that to its caller. `options` may then be half changed: work on a copy, as CONFIG SET does. A name that
 * an option once had gets an error that names the new one (RENAMED in options.def). */
#ifndef HS_SERVE_OPTIONS_H
#define HS_SERVE_OPTIONS_H

#include "acl/acl.h"
#include "base/buf.h"
#include "base/check.h"
#include "base/words.h"
#include "contract/contract.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum hs_sync { HS_SYNC_ALWAYS, HS_SYNC_OFF };
enum hs_key_names { HS_KEY_NAMES_HASH, HS_KEY_NAMES_PLAIN };

/* The type of the field, by the kind of its row. */
#define HS_OPTION_TYPE_INT int64_t
#define HS_OPTION_TYPE_BYTES int64_t
#define HS_OPTION_TYPE_SHARE int64_t /* millionths */
#define HS_OPTION_TYPE_BOOL int64_t
#define HS_OPTION_TYPE_WORD int64_t /* the index of the word in the row's `words` */
#define HS_OPTION_TYPE_TEXT char *  /* owned by the struct */
#define HS_OPTION_TYPE_USERS                                                                       \
	struct hs_acl * /* from `user` lines and ACL SETUSER; holds a reference */
#define HS_OPTION_TYPE_RULES                                                                       \
	const struct hs_rules * /* from `rule` lines and HEAT RULE SET; holds a reference */

/* A field for each ROW. */
struct hs_options {
#define ROW(kind, name, field, ...) HS_OPTION_TYPE_##kind field;
#define FIXED(name, value)
#include "serve/options.def"
};

enum hs_option_kind {
	HS_OPTION_INT,
	HS_OPTION_BYTES,
	HS_OPTION_SHARE, /* "0.25%", stored in millionths */
	HS_OPTION_BOOL,	 /* yes, no */
	HS_OPTION_WORD,	 /* one of `words` */
	HS_OPTION_TEXT,
	HS_OPTION_USERS, /* one line per user (options_users.c); has no text as a whole */
	HS_OPTION_RULES, /* one line per rule (options_rules.c) */
	HS_OPTION_FIXED, /* an option of Redis that clients query; constant here */
};

struct hs_option {
	const char *name;
	enum hs_option_kind kind;
	const char *fallback;	  /* the default, as text */
	size_t offset;		  /* into struct hs_options */
	int64_t min, max;	  /* INT, BYTES and SHARE, inclusive */
	const char *const *words; /* WORD: ordered by value, up to a NULL */
	bool live;		  /* CONFIG SET and SIGHUP may change it */
	bool embedded; /* only for the embedded engine: hidden from CONFIG GET in front of servers */
	const char *argument; /* shown in help: "N", "ADDRESS" */
	const char *help;
};

extern const struct hs_option hs_option_table[];
extern const size_t hs_option_count;

void hs_options_init(struct hs_options *options); /* every option at its default */
void hs_options_deinit(struct hs_options *options);
void hs_options_copy(struct hs_options *to, const struct hs_options *from);

/* NULL: no option has this name. */
const struct hs_option *hs_option_find(struct hs_bytes name);
/* The present name of the option that once had this name; NULL: no option had it. */
const char *hs_option_renamed(struct hs_bytes name);

/* Sets one option. On failure `error` has the reason without the option's name: "argument must be between 0 and 65535
 * inclusive". */
int hs_option_set(struct hs_options *options, const struct hs_option *option, struct hs_bytes value,
		  char *error, size_t error_size) HS_MUSTCHECK;
/* Appends its value as it is written in the configuration file. */
void hs_option_format(const struct hs_options *options, const struct hs_option *option,
		      struct hs_buf *text);

bool hs_option_same(const struct hs_options *a, const struct hs_options *b,
		    const struct hs_option *option);

/* Reads a configuration file over `options`. The error names file, line and option. */
int hs_options_load(struct hs_options *options, const char *path, char *error,
		    size_t error_size) HS_MUSTCHECK;
/* CONFIG REWRITE: writes the options back into their file. Lines that set an option are changed in place, comments
 * stay, and options that differ from their default and have no line are appended. The old file is replaced only by a
 * complete one. */
int hs_options_rewrite(const struct hs_options *options, char *error,
		       size_t error_size) HS_MUSTCHECK;

/* Reads a command line over `options`: --name value, --name=value. The error names the flag. */
int hs_options_parse(struct hs_options *options, int argc, char **argv, char *error,
		     size_t error_size) HS_MUSTCHECK;
/* Checks the options against each other, such as an address beyond loopback without a password. */
int hs_options_check(const struct hs_options *options, char *error, size_t error_size) HS_MUSTCHECK;
/* Protected mode, for one new or changed user: a user without a password must not be reachable from the network. */
int hs_options_check_user(const struct hs_options *options, const struct hs_acl_user *user,
			  char *error, size_t error_size) HS_MUSTCHECK;
/* Protected mode: checks all users of `of` (may be `options`) against the addresses of `options`. */
int hs_options_check_users(const struct hs_options *options, const struct hs_options *of,
			   char *error, size_t error_size) HS_MUSTCHECK;

/* options_file.c: splits a line into words as Redis splits inline commands. False: unbalanced quotes. `words` points
 * into `text`; the caller deinits both, also after false. */
struct hs_wire_request;
bool hs_options_split(const char *line, struct hs_wire_request *words, struct hs_buf *text);

/* options_users.c: users. */
/* All users, the default user included. The caller releases the reference. */
struct hs_acl *hs_options_acl(const struct hs_options *options);
void hs_options_set_users(struct hs_options *options, struct hs_acl *users);	/* takes it over */
void hs_options_put_user(struct hs_options *options, struct hs_acl_user *user); /* likewise */
/* Sets requirepass as the password of the user `default`, if a `user default` line defines that user. */
void hs_options_set_default_password(struct hs_options *options);
/* True in front of servers: their commands may be missing in our table, so rules may name any command. */
bool hs_options_any_command(const struct hs_options *options);
/* "alice on >secret +@all": adds the user to `users`; an error if the name is there already. */
int hs_options_add_user(const struct hs_options *options, struct hs_acl **users, const char *line,
			char *error, size_t error_size) HS_MUSTCHECK;
/* Adds `users`; a user of the same name is replaced. */
void hs_options_overlay_users(struct hs_options *options, const struct hs_acl *users);
/* Appends the `user` line of the configuration file. */
void hs_options_format_user(const struct hs_acl_user *user, struct hs_buf *text);

/* options_rules.c: contracts. */
void hs_options_set_rules(struct hs_options *options, struct hs_rules *rules); /* takes it over */
/* "user:* cache stale=1s": adds the rule; it replaces a rule with the same glob. */
int hs_options_add_rule(struct hs_options *options, const char *line, char *error,
			size_t error_size) HS_MUSTCHECK;
/* Appends the `rule` line of the configuration file. */
void hs_options_format_rule(const struct hs_rule *rule, struct hs_buf *text);
/* CONFIG REWRITE: the rule to write in place of this old line, as an index into `rules`; hs_rules_count: none,
 * drop the line. Among rules of equal rank the later one wins, so they keep their order in the file. `written`:
 * rules that have a line already. */
size_t hs_options_rule_for(const struct hs_rules *rules, const bool *written, const char *line);

/* True if the address, as written, is reachable only from this machine. */
bool hs_options_is_loopback(const char *address);

/* The option name nearest to a mistyped one; NULL: none is near. */
const char *hs_option_nearest(struct hs_bytes name);

void hs_options_help(struct hs_buf *text);

#endif
