/* GET /kv/<key>: decodes the key out of the path, and composes the headers ETag and Cache-Control. Pure
 * functions, any thread; they know no connection and no server. All buffers are the caller's. */
#ifndef HS_HTTP_KV_H
#define HS_HTTP_KV_H

#include "base/buf.h"
#include "base/bytes.h"
#include "base/check.h"
#include "contract/contract.h"

#include <stdbool.h>

enum {
	HS_KV_ETAG_BYTES = 36, /* two quotes, 32 hex digits, the zero byte */
	HS_KV_CACHE_CONTROL_BYTES = 160,
};

/* Appends the decoded bytes of a percent-encoded path: any bytes, NUL and slashes included; a plus stays a plus.
 * HS_EINVAL for a % without two hex digits; the key is then incomplete. */
int hs_kv_decode(struct hs_bytes encoded, struct hs_buf *key) HS_MUSTCHECK;

/* Writes a strong ETag, quotes included: 128 bits of the value's SHA-256. It is the same from every server and
 * after every restart. Two values with the same ETag cost about 2^64 hashes to find. */
void hs_kv_etag(struct hs_bytes value, char etag[HS_KV_ETAG_BYTES]);

/* True if the If-None-Match list contains the ETag, compared weakly (W/ is ignored), or is a single star. In a
 * malformed list, the ETags before the first syntax error still count. */
bool hs_kv_names_etag(struct hs_bytes list, const char *etag);

/* Cache-Control for a value under this rule. The header has whole seconds: they are rounded down, so that no bound of
 * the rule is exceeded. If the rule allows no stale answers, the header forbids them (must-revalidate). NULL: caches
 * may store the value, but must revalidate it for every request. */
void hs_kv_cache_control(const struct hs_rule *rule, char text[HS_KV_CACHE_CONTROL_BYTES]);

#endif
