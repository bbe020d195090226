/* The server or Cluster that `storm` and `top` connect to: the flags for address, user, password and TLS, and the
 * settings that result from them. It opens no connection. The main thread; strings given as flags stay in argv.
 *
 * The target is HOST:PORT, a port of this machine, or a URL (upstream/url.h). The password comes from the first of:
 * --password or --password-file, the URL, the environment variable HEATSINK_PASSWORD; a user with `nopass` needs
 * none. Other users of the machine can read arguments in the list of processes, but neither the environment nor a
 * file with the right mode. A flag that contradicts another is an error of one line, and nothing connects. */
#ifndef HS_CLI_TARGET_H
#define HS_CLI_TARGET_H

#include "cli/flags.h"
#include "upstream/conn.h"
#include "upstream/url.h"

enum { HS_TARGET_PASSWORD_MAX = 512, HS_TARGET_TEXT_BYTES = 512 };

struct hs_target {
	/* As given; "": not given. */
	const char *word, *user, *password_file;
	const char *password;	     /* NULL: not given */
	struct hs_tls_options files; /* only the names of files */
	bool tls, tls_skip_verify;

	/* Set by hs_target_read and hs_target_open. */
	struct hs_redis_url url;
	char text[HS_TARGET_TEXT_BYTES];   /* for messages; never has a password */
	struct hs_conn_config conn_config; /* for connections; set by hs_target_open */
};

/* Rows of flags for a subcommand whose OPTIONS have a struct hs_target named FIELD. */
/* clang-format off */
#define HS_TARGET_ROWS(OPTIONS, FIELD, WHAT) \
	{"target", "TARGET", "127.0.0.1:6380", WHAT, hs_flag_read_text, \
	 HS_FLAG_AT(OPTIONS, FIELD.word)}, \
	{"user", "NAME", "", "user to log in as; a user with nopass needs no password", hs_flag_read_text, \
	 HS_FLAG_AT(OPTIONS, FIELD.user)}, \
	{"password", "WORD", NULL, \
	 "password to log in with. Other users of this machine can see it in the list of processes: " \
	 "prefer --password-file or the environment variable HEATSINK_PASSWORD. A flag, also an " \
	 "empty one, wins over the URL, and the URL over the environment", \
	 hs_flag_read_text, HS_FLAG_AT(OPTIONS, FIELD.password)}, \
	{"password-file", "FILE", "", \
	 "read the password from the first line of this file, instead of --password", \
	 hs_flag_read_text, HS_FLAG_AT(OPTIONS, FIELD.password_file)}, \
	{"tls", NULL, "no", "connect with TLS, as rediss:// and clusters:// do", hs_flag_read_switch, \
	 HS_FLAG_AT(OPTIONS, FIELD.tls)}, \
	{"tls-ca-cert-file", "FILE", "", \
	 "CA certificates, PEM; without this and --tls-ca-cert-dir those of the system", \
	 hs_flag_read_text, HS_FLAG_AT(OPTIONS, FIELD.files.ca_cert_file)}, \
	{"tls-ca-cert-dir", "DIR", "", "folder of CA certificates, as `openssl rehash` makes it", hs_flag_read_text, \
	 HS_FLAG_AT(OPTIONS, FIELD.files.ca_cert_dir)}, \
	{"tls-cert-file", "FILE", "", "client certificate, PEM, for servers that require one", \
	 hs_flag_read_text, HS_FLAG_AT(OPTIONS, FIELD.files.cert_file)}, \
	{"tls-key-file", "FILE", "", "private key of --tls-cert-file, PEM", hs_flag_read_text, \
	 HS_FLAG_AT(OPTIONS, FIELD.files.key_file)}, \
	{"tls-skip-verify", NULL, "no", "do not check the server's certificate: for tests only", \
	 hs_flag_read_switch, HS_FLAG_AT(OPTIONS, FIELD.tls_skip_verify)}
/* clang-format on */

/* Combines the flags. An error gets one line on `err` that begins with `program`. Returns 0 or HS_EINVAL. */
int hs_target_read(struct hs_target *target, const char *program, FILE *err) HS_MUSTCHECK;
/* Reads the certificates and sets `conn_config`. Errors as above. */
int hs_target_open(struct hs_target *target, const char *program, FILE *err) HS_MUSTCHECK;
void hs_target_close(struct hs_target *target);

#endif
