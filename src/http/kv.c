#include "http/kv.h"

#include "base/check.h"
#include "base/err.h"
#include "base/num.h"

#include <openssl/evp.h>
#include <stdio.h>

enum { US_PER_S = 1000000, ETAG_HASH_BYTES = 16 };

int hs_kv_decode(struct hs_bytes encoded, struct hs_buf *key)
{
	char *to = hs_buf_reserve(key, encoded.len + 1);

	for (size_t i = 0; i < encoded.len; i++) {
		char c = encoded.data[i];

		if (c == '%') {
			int byte = i + 2 < encoded.len ? hs_num_hex_byte(&encoded.data[i + 1]) : -1;

			if (byte < 0)
				return HS_EINVAL;
			c = (char)byte;
			i += 2;
		}
		*to++ = c;
		key->len++;
	}
	return 0;
}

void hs_kv_etag(struct hs_bytes value, char etag[HS_KV_ETAG_BYTES])
{
	unsigned char digest[EVP_MAX_MD_SIZE];

	_Static_assert(HS_KV_ETAG_BYTES > 2 * ETAG_HASH_BYTES + 2, "quotes and the end");
	hs_check(EVP_Digest(value.data, value.len, digest, NULL, EVP_sha256(), NULL) == 1);
	etag[0] = '"';
	for (int i = 0; i < ETAG_HASH_BYTES; i++)
		snprintf(etag + 1 + 2 * i, 3, "%02x", digest[i]);
	snprintf(etag + 1 + 2 * ETAG_HASH_BYTES, 2, "\"");
}

static bool is_between(char c)
{
	return c == ' ' || c == '\t' || c == ',';
}

bool hs_kv_names_etag(struct hs_bytes list, const char *etag)
{
	const char *at = list.data, *end = list.data + list.len;
	bool alone = true; /* only separators so far */

	for (;; alone = false) {
		const char *close;

		while (at < end && is_between(*at))
			at++;
		if (at == end)
			return false;
		if (*at == '*' && alone) {
			for (at++; at < end && is_between(*at); at++)
				;
			return at == end;
		}
		if (end - at > 2 && at[0] == 'W' && at[1] == '/')
			at += 2;
		if (*at != '"')
			return false;
		close = memchr(at + 1, '"', (size_t)(end - at - 1));
		if (!close)
			return false;
		close++;
		if (hs_bytes_equal((struct hs_bytes){at, (size_t)(close - at)}, hs_bytes_of(etag)))
			return true;
		if (close < end && !is_between(*close))
			return false;
		at = close;
	}
}

void hs_kv_cache_control(const struct hs_rule *rule, char text[HS_KV_CACHE_CONTROL_BYTES])
{
	uint64_t fresh_us, fresh, stale_while_revalidate, if_error;

	if (!rule) {
		snprintf(text, HS_KV_CACHE_CONTROL_BYTES, "public, no-cache");
		return;
	}
	fresh_us = rule->stale_us < rule->ttl_us ? rule->stale_us : rule->ttl_us;
	fresh = fresh_us / US_PER_S;
	stale_while_revalidate = rule->stale_while_revalidate_us / US_PER_S;
	if_error = rule->stale_if_error_us / US_PER_S;
	if (stale_while_revalidate == 0 && if_error == 0)
		snprintf(text, HS_KV_CACHE_CONTROL_BYTES, "public, max-age=%llu, must-revalidate",
			 (unsigned long long)fresh);
	else
		snprintf(text, HS_KV_CACHE_CONTROL_BYTES,
			 "public, max-age=%llu, stale-while-revalidate=%llu, stale-if-error=%llu",
			 (unsigned long long)fresh, (unsigned long long)stale_while_revalidate,
			 (unsigned long long)if_error);
}
