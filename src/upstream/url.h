/* Parses the URL of a Redis or Valkey server, or of a Cluster:
 *
 *     redis://[user:pass@]host[:port][/db]              one server
 *     cluster://[user:pass@]host[:port][,host[:port]…]  a Cluster, by some of its nodes
 *
 * rediss:// and clusters:// are the same over TLS. An IPv6 address stands in brackets. In user and password every
 * character may be written as %XX; '/', '?', '#' and '%' must be.
 *
 * Pure. A parsed URL owns its bytes. An error names the position and never quotes the text: in a mistyped URL the
 * password may stand anywhere. */
#ifndef HS_UPSTREAM_URL_H
#define HS_UPSTREAM_URL_H

#include "base/bytes.h"
#include "base/check.h"

#include <stdbool.h>
#include <stdint.h>

enum {
	HS_REDIS_PORT = 6379,
	HS_REDIS_SEEDS_MAX = 16,
	HS_REDIS_HOST_BYTES = 254,  /* the longest name, with the zero */
	HS_REDIS_USER_BYTES = 256,  /* decoded, with the zero */
	HS_REDIS_PASS_BYTES = 1024, /* decoded, with the zero */
	HS_REDIS_DB_MAX = 65535,
	/* A scheme, a user whose bytes are all %XX, the seeds with their ports, a database. */
	HS_REDIS_URL_TEXT_BYTES =
		32 + 3 * HS_REDIS_USER_BYTES + HS_REDIS_SEEDS_MAX * (HS_REDIS_HOST_BYTES + 9),
	HS_REDIS_WHY_BYTES = 256, /* longest error text of this folder */
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
	bool auth;			/* a password is given, maybe an empty one */
	char user[HS_REDIS_USER_BYTES]; /* "": the default user */
	char pass[HS_REDIS_PASS_BYTES];
	uint32_t db; /* 0 for a Cluster */
	struct hs_redis_address seeds[HS_REDIS_SEEDS_MAX];
	size_t seeds_count; /* 1 for one server */
};

/* Returns 0; or HS_EINVAL or HS_ELIMIT, with one line in `why`. */
int hs_redis_url_parse(struct hs_redis_url *url, struct hs_bytes text, char *why,
		       size_t why_size) HS_MUSTCHECK;

/* The URL for people and logs, with *** for the password, cut to `size` bytes; HS_REDIS_URL_TEXT_BYTES are enough.
 * Returns `text`. */
char *hs_redis_url_text(const struct hs_redis_url *url, char *text, size_t size);

#endif
