/* The options of `heatsink serve`: one row each (options.def). The struct of their values, the command line,
 * the configuration file, CONFIG GET/SET/REWRITE and --help all come from these rows. */
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

/* Of a field, by the kind of its row. */
#define HS_OPTION_TYPE_INT int64_t
#define HS_OPTION_TYPE_BYTES int64_t
#define HS_OPTION_TYPE_SHARE int64_t /* millionths */
#define HS_OPTION_TYPE_BOOL int64_t
#define HS_OPTION_TYPE_WORD int64_t	     /* the place of the word in the row's `words` */
#define HS_OPTION_TYPE_TEXT char *	     /* owned by the struct */
#define HS_OPTION_TYPE_USERS struct hs_acl * /* of `user` lines and ACL SETUSER; held */
#define HS_OPTION_TYPE_RULES const struct hs_rules * /* of `rule` lines and HEAT RULE SET; held */

/* A field for each row but those of FIXED. */
struct hs_options {
#define ROW(kind, name, field, ...) HS_OPTION_TYPE_##kind field;
#define FIXED(name, value)
#include "serve/options.def"
};

enum hs_option_kind {
	HS_OPTION_INT,
	HS_OPTION_BYTES,
	HS_OPTION_SHARE, /* "0.25%", kept in millionths */
	HS_OPTION_BOOL,	 /* yes, no */
	HS_OPTION_WORD,	 /* one of `words` */
	HS_OPTION_TEXT,
	HS_OPTION_USERS, /* a line for each user: options_users.c. No text of its own */
	HS_OPTION_RULES, /* a line for each rule: options_rules.c */
	HS_OPTION_FIXED, /* a name of Redis's that clients ask for; always its default here */
};

struct hs_option {
	const char *name;
	enum hs_option_kind kind;
	const char *fallback;	  /* the default, as text */
	size_t offset;		  /* into struct hs_options */
	int64_t min, max;	  /* INT and BYTES */
	const char *const *words; /* WORD: in the order of their values */
	bool live;		  /* CONFIG SET and SIGHUP may change it */
	bool embedded; /* for the embedded engine only: CONFIG GET hides it in front of servers */
	const char *argument; /* shown in help: "N", "ADDRESS" */
	const char *help;
};

extern const struct hs_option hs_option_table[];
extern const size_t hs_option_count;

void hs_options_init(struct hs_options *options); /* all defaults */
void hs_options_deinit(struct hs_options *options);
void hs_options_copy(struct hs_options *to, const struct hs_options *from);

const struct hs_option *hs_option_find(struct hs_bytes name);

/* Sets one option. On failure writes why to `error`, without naming the option: "argument must be
 * between 0 and 65535 inclusive". */
int hs_option_set(struct hs_options *options, const struct hs_option *option, struct hs_bytes value,
		  char *error, size_t error_size) HS_MUSTCHECK;
/* Its value as text, as one would write it in the file. */
void hs_option_format(const struct hs_options *options, const struct hs_option *option,
		      struct hs_buf *text);

/* Whether both have the same value for it. */
bool hs_option_same(const struct hs_options *a, const struct hs_options *b,
		    const struct hs_option *option);

/* Reads a configuration file over `options`. The error names file, line and word. */
int hs_options_load(struct hs_options *options, const char *path, char *error,
		    size_t error_size) HS_MUSTCHECK;
/* Writes the options back into their file: lines whose directive is there are changed in place,
 * comments stay, what is new and no default is appended. */
int hs_options_rewrite(const struct hs_options *options, char *error,
		       size_t error_size) HS_MUSTCHECK;

/* Command line: --name value, --name=value. Consumes argv; the error names the word. */
int hs_options_parse(struct hs_options *options, int argc, char **argv, char *error,
		     size_t error_size) HS_MUSTCHECK;
/* What is right one by one and wrong together: an open address without a password. */
int hs_options_check(const struct hs_options *options, char *error, size_t error_size) HS_MUSTCHECK;
/* Protected mode, for one user that is new or changed: it must not be open to the network. */
int hs_options_check_user(const struct hs_options *options, const struct hs_acl_user *user,
			  char *error, size_t error_size) HS_MUSTCHECK;
/* The same for all users that other options have, or these. */
int hs_options_check_users(const struct hs_options *options, const struct hs_options *of,
			   char *error, size_t error_size) HS_MUSTCHECK;

/* options_file.c: the words of a line, by the rules of inline commands as in Redis. False: its quotes do not
 * balance. `words` points into `text`; both are the caller's to deinit. */
struct hs_wire_request;
bool hs_options_split(const char *line, struct hs_wire_request *words, struct hs_buf *text);

/* options_users.c: users. */
struct hs_acl *hs_options_acl(const struct hs_options *options); /* all; the caller holds it */
void hs_options_set_users(struct hs_options *options, struct hs_acl *users);	/* takes it over */
void hs_options_put_user(struct hs_options *options, struct hs_acl_user *user); /* likewise */
/* The options' requirepass for a default user that has a line of its own. */
void hs_options_set_default_password(struct hs_options *options);
/* The engine may have commands that our table has not. */
bool hs_options_any_command(const struct hs_options *options);
/* "alice on >secret +@all": adds to `users`, in which each name is once. */
int hs_options_add_user(const struct hs_options *options, struct hs_acl **users, const char *line,
			char *error, size_t error_size) HS_MUSTCHECK;
void hs_options_overlay_users(struct hs_options *options, const struct hs_acl *users);
void hs_options_format_user(const struct hs_acl_user *user, struct hs_buf *text); /* a line */

/* options_rules.c: contracts. */
void hs_options_set_rules(struct hs_options *options, struct hs_rules *rules); /* takes it over */
/* "user:* cache stale=1s": one more. */
int hs_options_add_rule(struct hs_options *options, const char *line, char *error,
			size_t error_size) HS_MUSTCHECK;
void hs_options_format_rule(const struct hs_rule *rule, struct hs_buf *text); /* a line */
/* For rewriting a file: which rule is to stand where this line stood, so that the same rules win as
 * before; hs_rules_count: none. `written`: those that stand somewhere already. */
size_t hs_options_rule_for(const struct hs_rules *rules, const bool *written, const char *line);

/* Whether an address, as written, can be reached from this machine alone. */
bool hs_options_is_loopback(const char *address);

/* The name nearest to a mistyped one, or NULL. */
const char *hs_option_nearest(struct hs_bytes name);

void hs_options_help(struct hs_buf *text);

#endif
