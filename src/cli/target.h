/* The server, or the Cluster, that a command connects to: the flags that say where it is, who logs in and with
 * which TLS, and what they come to together. Shared by `storm` and `top`.
 *
 * The target is HOST:PORT, a port of this machine, or a URL (upstream/url.h). The password comes from, in this order:
 * --password or --password-file, the URL, the environment variable HEATSINK_PASSWORD; a user with `nopass` needs none.
 * Other users of the machine can read an argument, but neither a file with the right mode nor the environment. */
#ifndef HS_CLI_TARGET_H
#define HS_CLI_TARGET_H

#include "cli/flags.h"
#include "upstream/conn.h"
#include "upstream/url.h"

enum { HS_TARGET_PASSWORD_MAX = 512, HS_TARGET_TEXT_BYTES = 512 };

struct hs_target {
	/* As given; "": not. */
	const char *word, *user, *password_file;
	const char *password;	     /* NULL: not given */
	struct hs_tls_options files; /* the files alone */
	bool tls, tls_skip_verify;

	/* What that comes to. */
	struct hs_redis_url url;
	char text[HS_TARGET_TEXT_BYTES];  /* as it is shown */
	struct hs_conn_identity identity; /* for connections, from hs_target_open on */
};

/* Rows for the table of a command whose options have a struct hs_target in `FIELD`. */
#define HS_TARGET_ROW(NAME, ARGUMENT, INITIAL, READ, OPTIONS, FIELD, TEXT)                         \
	{                                                                                          \
		.name = NAME, .argument = ARGUMENT, .initial = INITIAL, .text = TEXT,              \
		.read = READ, .field = offsetof(OPTIONS, FIELD)                                    \
	}
#define HS_TARGET_TEXT_ROW(NAME, ARGUMENT, OPTIONS, FIELD, TEXT)                                   \
	HS_TARGET_ROW(NAME, ARGUMENT, "", hs_flag_read_text, OPTIONS, FIELD, TEXT)
#define HS_TARGET_ROWS(OPTIONS, FIELD, WHAT)                                                       \
	HS_TARGET_ROW("target", "TARGET", "127.0.0.1:6380", hs_flag_read_text, OPTIONS,            \
		      FIELD.word, WHAT),                                                           \
		HS_TARGET_TEXT_ROW("user", "NAME", OPTIONS, FIELD.user,                            \
				   "who logs in; one with nopass needs no password"),              \
		HS_TARGET_ROW("password", "WORD", NULL, hs_flag_read_text, OPTIONS,                \
			      FIELD.password,                                                      \
			      "sent with AUTH; other users of this machine can see it in the "     \
			      "list of processes: prefer --password-file or the environment "      \
			      "variable HEATSINK_PASSWORD. A flag, also an empty one, goes "       \
			      "before the password in the URL, and that before the environment"),  \
		HS_TARGET_TEXT_ROW("password-file", "FILE", OPTIONS, FIELD.password_file,          \
				   "read the password from the first line of this file, instead "  \
				   "of --password"),                                               \
		HS_TARGET_ROW("tls", NULL, "no", hs_flag_read_yes, OPTIONS, FIELD.tls,             \
			      "connect with TLS, as rediss:// and clusters:// do"),                \
		HS_TARGET_TEXT_ROW("tls-ca-cert-file", "FILE", OPTIONS, FIELD.files.ca_cert_file,  \
				   "the authorities to believe, PEM; without this and "            \
				   "--tls-ca-cert-dir those of the system"),                       \
		HS_TARGET_TEXT_ROW("tls-ca-cert-dir", "DIR", OPTIONS, FIELD.files.ca_cert_dir,     \
				   "the same, a folder of hashed names"),                          \
		HS_TARGET_TEXT_ROW("tls-cert-file", "FILE", OPTIONS, FIELD.files.cert_file,        \
				   "our own certificate, PEM, for servers that want one"),         \
		HS_TARGET_TEXT_ROW("tls-key-file", "FILE", OPTIONS, FIELD.files.key_file,          \
				   "its key, PEM"),                                                \
		HS_TARGET_ROW("tls-skip-verify", NULL, "no", hs_flag_read_yes, OPTIONS,            \
			      FIELD.tls_skip_verify, "believe any certificate: for tests alone")

/* Puts the flags together. What is wrong gets one line on `err`, after `who`. Returns 0 or HS_EINVAL. */
int hs_target_read(struct hs_target *target, const char *who, FILE *err) HS_MUSTCHECK;
/* Reads the certificates and fills `identity`. The same errors. */
int hs_target_open(struct hs_target *target, const char *who, FILE *err) HS_MUSTCHECK;
void hs_target_close(struct hs_target *target);

#endif
