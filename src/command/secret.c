#include "command/secret.h"

#include <strings.h>

enum { MIGRATE_OPTIONS_AT = 6 };

/* Parts of the names of options whose values are passwords: requirepass, masterauth, tls-key-file-pass,
 * engine-password, auth-pass. */
static const char *const option_parts[] = {"pass", "masterauth", "masteruser", "secret"};

/* Is the value of this option a password? Options of heatsink and of servers. */
static bool is_secret_option(struct hs_bytes name)
{
	for (size_t i = 0; i < sizeof option_parts / sizeof *option_parts; i++) {
		size_t len = strlen(option_parts[i]);

		for (size_t at = 0; at + len <= name.len; at++) {
			if (strncasecmp(name.data + at, option_parts[i], len) == 0)
				return true;
		}
	}
	/* `engine` is a URL, which may hold a password; `user` a line of rules. */
	return hs_bytes_is_word(name, "engine") || hs_bytes_is_word(name, "user");
}

/* MIGRATE host port key db timeout [COPY] [REPLACE] [AUTH password | AUTH2 user password] [KEYS …] */
static bool is_migrate_secret(size_t argc, const struct hs_bytes *argv, size_t at)
{
	for (size_t i = MIGRATE_OPTIONS_AT; i < argc && i < at; i++) {
		size_t secrets = hs_bytes_is_word(argv[i], "auth")    ? 1
				 : hs_bytes_is_word(argv[i], "auth2") ? 2
								      : 0;

		if (hs_bytes_is_word(argv[i], "keys"))
			return false;
		if (secrets > 0 && at <= i + secrets)
			return true;
		i += secrets;
	}
	return false;
}

/* HELLO 3 AUTH user password SETNAME name */
static bool is_hello_secret(const struct hs_bytes *argv, size_t at)
{
	return at > 2 && (hs_bytes_is_word(argv[at - 1], "auth") ||
			  (at > 3 && hs_bytes_is_word(argv[at - 2], "auth")));
}

/* For requests with another request as arguments: the number of words before it; 0: it has none. */
static size_t nested_at(size_t argc, const struct hs_bytes *argv)
{
	if (argc > 3 && hs_bytes_is_word(argv[0], "acl") && hs_bytes_is_word(argv[1], "dryrun"))
		return 3;
	if (argc > 2 && hs_bytes_is_word(argv[0], "command") &&
	    (hs_bytes_is_word(argv[1], "getkeys") || hs_bytes_is_word(argv[1], "getkeysandflags")))
		return 2;
	return 0;
}

bool hs_secret_rule(struct hs_bytes rule)
{
	return rule.len > 0 && strchr("><#!", rule.data[0]);
}

bool hs_secret_at(size_t argc, const struct hs_bytes *argv, size_t at)
{
	size_t nested = nested_at(argc, argv);

	if (nested > 0) {
		if (at <= nested)
			return false;
		argc -= nested;
		argv += nested;
		at -= nested;
	}
	if (at == 0)
		return false;
	if (hs_bytes_is_word(argv[0], "auth"))
		return true;
	if (hs_bytes_is_word(argv[0], "hello"))
		return is_hello_secret(argv, at);
	if (hs_bytes_is_word(argv[0], "migrate"))
		return is_migrate_secret(argc, argv, at);
	if (at < 2)
		return false;
	if (hs_bytes_is_word(argv[0], "acl"))
		return hs_bytes_is_word(argv[1], "setuser");
	/* SENTINEL SET master auth-pass word: refused, but the log must not show the word. */
	if (hs_bytes_is_word(argv[0], "sentinel"))
		return is_secret_option(argv[at - 1]);
	return at > 2 && at % 2 == 1 && hs_bytes_is_word(argv[0], "config") &&
	       hs_bytes_is_word(argv[1], "set") && is_secret_option(argv[at - 1]);
}
