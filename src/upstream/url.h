/* Where a Redis or Valkey server, or a cluster, is, as an operator writes it:
 *
 *     redis://[user:pass@]host[:port][/db]            one server
 *     cluster://[user:pass@]host[:port][,host[:port]…]  a cluster, by some of its nodes
 *
 * and rediss:// and clusters:// for the same over TLS. An IPv6 address stands in brackets; in the
 * user and the password everything may be written as %XX, and '/', '?', '#' and '%' must be.
 *
 * Pure. A parsed URL owns its bytes. What is wrong is told by the place and never by quoting: whoever
 * mistypes a URL may have put the password where another part belongs. */
#ifndef HS_UPSTREAM_URL_H
#define HS_UPSTREAM_URL_H

#include "base/bytes.h"
#include "base/check.h"

#include <stdbool.h>
#include <stdint.h>

enum {
	HS_REDIS_PORT = 6379,
	HS_REDIS_SEEDS_MAX = 16,
	HS_REDIS_HOST_BYTES = 254,  /* the longest name there is, and the end */
	HS_REDIS_USER_BYTES = 256,  /* decoded, and the end */
	HS_REDIS_PASS_BYTES = 1024, /* the same */
	HS_REDIS_DB_MAX = 65535,
	/* A scheme, a user of which each byte is %XX, the seeds with their ports, a database. */
	HS_REDIS_URL_TEXT_BYTES =
		32 + 3 * HS_REDIS_USER_BYTES + HS_REDIS_SEEDS_MAX * (HS_REDIS_HOST_BYTES + 9),
	HS_REDIS_WHY_BYTES = 256, /* the longest text of an error, in all of this folder */
};

enum hs_redis_kind { HS_REDIS_SINGLE, HS_REDIS_CLUSTER };

struct hs_redis_address {
	char host[HS_REDIS_HOST_BYTES]; /* without brackets */
	uint16_t port;
};

static inline bool hs_redis_same_address(const struct hs_redis_address *a,
					 const struct hs_redis_address *b)
{
	return a->port == b->port && strcmp(a->host, b->host) == 0;
}

struct hs_redis_url {
	enum hs_redis_kind kind;
	bool tls;
	bool auth;			/* a password is given (it may be empty) */
	char user[HS_REDIS_USER_BYTES]; /* "" stands for the default user */
	char pass[HS_REDIS_PASS_BYTES];
	uint32_t db; /* 0 for a cluster */
	struct hs_redis_address seeds[HS_REDIS_SEEDS_MAX];
	size_t seeds_count; /* 1 for one server */
};

/* 0, or HS_EINVAL or HS_ELIMIT with one line about it in `why`. */
int hs_redis_url_parse(struct hs_redis_url *url, struct hs_bytes text, char *why,
		       size_t why_size) HS_MUSTCHECK;

/* The URL for people and logs: *** stands for the password. Zero terminated and cut to fit `size`
 * bytes; HS_REDIS_URL_TEXT_BYTES are enough. Returns `text`. */
char *hs_redis_url_text(const struct hs_redis_url *url, char *text, size_t size);

#endif
