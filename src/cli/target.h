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
	char text[HS_TARGET_TEXT_BYTES];   /* as it is shown */
	struct hs_conn_config conn_config; /* for connections, from hs_target_open on */
};

/* Rows for the table of a command whose options have a struct hs_target in `FIELD`. */
/* clang-format off */
#define HS_TARGET_ROWS(OPTIONS, FIELD, WHAT) \
	{"target", "TARGET", "127.0.0.1:6380", WHAT, hs_flag_read_text, \
	 HS_FLAG_AT(OPTIONS, FIELD.word)}, \
	{"user", "NAME", "", "who logs in; one with nopass needs no password", hs_flag_read_text, \
	 HS_FLAG_AT(OPTIONS, FIELD.user)}, \
	{"password", "WORD", NULL, \
	 "sent with AUTH; other users of this machine can see it in the list of processes: prefer " \
	 "--password-file or the environment variable HEATSINK_PASSWORD. A flag, also an empty one, " \
	 "goes before the password in the URL, and that before the environment", \
	 hs_flag_read_text, HS_FLAG_AT(OPTIONS, FIELD.password)}, \
	{"password-file", "FILE", "", \
	 "read the password from the first line of this file, instead of --password", \
	 hs_flag_read_text, HS_FLAG_AT(OPTIONS, FIELD.password_file)}, \
	{"tls", NULL, "no", "connect with TLS, as rediss:// and clusters:// do", hs_flag_read_switch, \
	 HS_FLAG_AT(OPTIONS, FIELD.tls)}, \
	{"tls-ca-cert-file", "FILE", "", \
	 "the authorities to believe, PEM; without this and --tls-ca-cert-dir those of the system", \
	 hs_flag_read_text, HS_FLAG_AT(OPTIONS, FIELD.files.ca_cert_file)}, \
	{"tls-ca-cert-dir", "DIR", "", "the same, a folder of hashed names", hs_flag_read_text, \
	 HS_FLAG_AT(OPTIONS, FIELD.files.ca_cert_dir)}, \
	{"tls-cert-file", "FILE", "", "our own certificate, PEM, for servers that want one", \
	 hs_flag_read_text, HS_FLAG_AT(OPTIONS, FIELD.files.cert_file)}, \
	{"tls-key-file", "FILE", "", "its key, PEM", hs_flag_read_text, \
	 HS_FLAG_AT(OPTIONS, FIELD.files.key_file)}, \
	{"tls-skip-verify", NULL, "no", "believe any certificate: for tests alone", \
	 hs_flag_read_switch, HS_FLAG_AT(OPTIONS, FIELD.tls_skip_verify)}
/* clang-format on */

/* Puts the flags together. What is wrong gets one line on `err`, after `who`. Returns 0 or HS_EINVAL. */
int hs_target_read(struct hs_target *target, const char *program, FILE *err) HS_MUSTCHECK;
/* Reads the certificates and fills `identity`. The same errors. */
int hs_target_open(struct hs_target *target, const char *program, FILE *err) HS_MUSTCHECK;
void hs_target_close(struct hs_target *target);

#endif
