/* What GET /kv/<key> says about a value besides the value: the texts of its headers, and the key out
 * of a path. Pure functions; they know no connection and no server. Everything is the caller's. */
#ifndef HS_HTTP_KV_H
#define HS_HTTP_KV_H

#include "base/buf.h"
#include "base/bytes.h"
#include "base/check.h"
#include "contract/contract.h"

#include <stdbool.h>

enum {
	HS_KV_ETAG_BYTES = 36, /* two quotes, 32 hex digits, the end */
	HS_KV_CACHE_CONTROL_BYTES = 160,
};

/* Appends what a path's percent-encoded bytes stand for: any bytes, NUL and slashes included; a plus is
 * a plus. HS_EINVAL for a % without two hex digits behind it; the key is cut there. */
int hs_kv_decode(struct hs_bytes encoded, struct hs_buf *key) HS_MUSTCHECK;

/* A strong one, quotes included: 128 bits of the value's SHA-256. So it is the same from every server
 * and after every restart, and nobody can make two values that share one. */
void hs_kv_etag(struct hs_bytes value, char etag[HS_KV_ETAG_BYTES]);

/* Whether an If-None-Match names it: a list, compared weakly (W/ does not count), or a lone star. What
 * is no such list names what stands before the mistake. */
bool hs_kv_names_etag(struct hs_bytes list, const char *etag);

/* Cache-Control for a value under this rule; in whole seconds, rounded down, since that is all the header
 * can say: no bound is exceeded. What is left out of the rule is forbidden, not left to a cache's
 * judgement. NULL: it may be stored but is asked for each time. */
void hs_kv_cache_control(const struct hs_rule *rule, char text[HS_KV_CACHE_CONTROL_BYTES]);

#endif
