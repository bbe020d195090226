#include "cli/target.h"

#include "base/address.h"
#include "base/err.h"
#include "base/num.h"
#include "upstream/names.h"

#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>

#define PASSWORD_ENV "HEATSINK_PASSWORD"

enum { OPEN_MS_MAX = 10000 };

/* ---- passwords ---- */

/* Reads the first line of the file, at most size - 2 bytes, into `text`, with a zero byte at the end. Returns NULL or
 * the reason why not. */
static const char *read_first_line(const char *path, char *text, size_t size)
{
	FILE *file = fopen(path, "re");
	const char *why = NULL;
	size_t len;

	if (!file)
		return strerror(errno);
	len = fread(text, 1, size - 1, file);
	if (ferror(file))
		why = strerror(errno);
	fclose(file);
	text[len] = '\0';
	if (!why && strcspn(text, "\r\n") == size - 1)
		why = "the first line is longer than a password may be";
	text[strcspn(text, "\r\n")] = '\0';
	if (!why && !*text)
		why = "the first line is empty";
	return why;
}

static int read_password(struct hs_target *target, const char *program, FILE *err)
{
	char *to = target->url.pass;
	const char *env = target->url.auth ? NULL : getenv(PASSWORD_ENV);
	const char *from = target->password ? "--password" : PASSWORD_ENV;
	const char *text = target->password ? target->password : env;

	if (target->password && *target->password_file)
		return hs_flags_error(err, program,
				      "give either --password or --password-file, not both");
	if (*target->password_file) {
		const char *why =
			read_first_line(target->password_file, to, HS_TARGET_PASSWORD_MAX + 2);

		return why ? hs_flags_error(err, program, "--password-file %s: %s",
					    target->password_file, why)
			   : 0;
	}
	if (text && strlen(text) > HS_TARGET_PASSWORD_MAX)
		return hs_flags_error(err, program, "%s: a password may have at most %d bytes",
				      from, HS_TARGET_PASSWORD_MAX);
	if (text)
		memcpy(to, text, strlen(text) + 1);
	return 0;
}

/* ---- where ---- */

/* Parses host:port, [v6]:port, or a port of this machine. */
static bool read_place(struct hs_redis_url *url, const char *word)
{
	struct hs_redis_address *seed = &url->seeds[0];
	struct hs_bytes host = HS_LIT("127.0.0.1");
	unsigned port = 0;
	uint64_t number;

	if (hs_num_parse_uint(hs_bytes_of(word), &number) && number <= UINT16_MAX)
		port = (unsigned)number;
	else if (!hs_address_split(word, &host, &port))
		return false;
	if (port == 0 || host.len >= sizeof seed->host)
		return false;
	memcpy(seed->host, host.data, host.len);
	seed->port = (uint16_t)port;
	url->seeds_count = 1;
	return true;
}

static int read_where(struct hs_target *target, const char *program, FILE *err)
{
	struct hs_redis_url *url = &target->url;
	char why[HS_REDIS_WHY_BYTES];

	if (strstr(target->word, "://")) {
		if (hs_redis_url_parse(url, hs_bytes_of(target->word), why, sizeof why) < 0)
			return hs_flags_error(err, program, "--target: %s", why);
		hs_redis_url_text(url, target->text, sizeof target->text);
	} else if (read_place(url, target->word)) {
		hs_address_text(url->seeds[0].host, url->seeds[0].port, target->text,
				sizeof target->text);
	} else {
		/* With an '@' the word may contain a password: do not print it. */
		return hs_flags_error(
			err, program,
			"--target: bad value '%s' (HOST:PORT, a port, or a URL such as %s)",
			strchr(target->word, '@') ? "***" : target->word,
			"rediss://user:password@host:port");
	}
	url->tls = url->tls || target->tls;
	return 0;
}

/* ---- the whole ---- */

/* The first given flag that needs TLS; NULL: none. */
static const char *tls_flag(const struct hs_target *target)
{
	return *target->files.ca_cert_file  ? "--tls-ca-cert-file"
	       : *target->files.ca_cert_dir ? "--tls-ca-cert-dir"
	       : *target->files.cert_file   ? "--tls-cert-file"
	       : *target->files.key_file    ? "--tls-key-file"
	       : target->tls_skip_verify    ? "--tls-skip-verify"
					    : NULL;
}

int hs_target_read(struct hs_target *target, const char *program, FILE *err)
{
	int rc = read_where(target, program, err);

	if (rc == 0)
		rc = read_password(target, program, err);
	if (rc < 0)
		return rc;
	if (*target->user && strlen(target->user) >= sizeof target->url.user)
		return hs_flags_error(err, program, "--user: a name may have at most %zu bytes",
				      sizeof target->url.user - 1);
	if (*target->user)
		memcpy(target->url.user, target->user, strlen(target->user) + 1);
	if (!target->url.tls && tls_flag(target))
		return hs_flags_error(
			err, program,
			"%s needs TLS: add --tls, or give a rediss:// or clusters:// target",
			tls_flag(target));
	return 0;
}

int hs_target_open(struct hs_target *target, const char *program, FILE *err)
{
	char why[HS_REDIS_WHY_BYTES];

	target->files.role = HS_TLS_CLIENT;
	target->files.verify =
		target->tls_skip_verify ? HS_TLS_VERIFY_NONE : HS_TLS_VERIFY_REQUIRED;
	target->conn_config = (struct hs_conn_config){
		.login = {.user = target->url.user,
			  .password = target->url.pass,
			  .db = target->url.db,
			  .login_options =
				  "--user, --password-file, $" PASSWORD_ENV " and --password",
			  .tls_on = "--tls, rediss:// or clusters://",
			  .tls_off = "no --tls, and redis:// or cluster://"},
		.open_ms_max = OPEN_MS_MAX,
	};
	if (target->url.tls &&
	    hs_tls_context_create(&target->files, &target->conn_config.tls, why, sizeof why) < 0)
		return hs_flags_error(err, program, "TLS: %s", why);
	target->conn_config.names = hs_names_create(getaddrinfo);
	return 0;
}

void hs_target_close(struct hs_target *target)
{
	hs_tls_context_release(&target->conn_config.tls);
	hs_names_release(&target->conn_config.names);
}
