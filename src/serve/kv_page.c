/* GET /kv/<key>: the value of a key whose rule says `public`, for browsers and the caches in front of them.
 *
 * No other key is reachable, and nothing can be learned about one: a key that is not public is never read, and its
 * answer equals that of a missing key, byte for byte. The rule is looked up twice, before and after the value is
 * read: if it was removed meanwhile, the answer is 404. */
#include "serve/pages.h"

#include "http/http.h"
#include "http/kv.h"
#include "serve/key_reader.h"

#include <stdio.h>

enum {
	OK = 200,
	BAD_REQUEST = 400,
	NOT_FOUND = 404,
	CONFLICT = 409,
	SERVER_ERROR = 500,
	UNAVAILABLE = 503,
	TIMEOUT = 504,
	RETRY_S = 1,
};

/* The rule of a public key, or NULL. */
static const struct hs_rule *public_rule(const struct hs_host *host, struct hs_bytes key)
{
	const struct hs_rules *rules = host->options->rules;
	const struct hs_rule *rule = rules ? hs_rules_match(rules, key) : NULL;

	return rule && rule->contract == HS_CONTRACT_CACHE && rule->is_public ? rule : NULL;
}

static void answer_text(struct hs_http_answer *answer, unsigned status, const char *words)
{
	answer->status = status;
	answer->retry_s = status == UNAVAILABLE ? RETRY_S : 0;
	hs_buf_printf(&answer->body, "%s\n", words);
}

/* Caches downstream may keep the value only while this server may: with `mitigate` off they must ask each time. */
static void answer_value(const struct hs_host *host, const struct hs_rule *rule,
			 struct hs_buf *value, struct hs_http_answer *answer)
{
	bool mitigates = host->options->mitigate == HS_MITIGATE_ON;

	answer->status = OK;
	hs_kv_etag(hs_buf_bytes(value), answer->etag);
	hs_kv_cache_control(mitigates ? rule : NULL, answer->cache_control);
	hs_buf_swap(&answer->body, value);
}

/* Shows only the first word of the error: the rest may name internal servers. */
static void answer_error(struct hs_bytes word, struct hs_http_answer *answer)
{
	char text[96];

	snprintf(text, sizeof text, "the value cannot be read now%s%.*s", word.len > 0 ? ": " : "",
		 (int)(word.len < 32 ? word.len : 32), word.len > 0 ? word.data : "");
	answer_text(answer, UNAVAILABLE, text);
}

_Static_assert(HS_HTTP_BODY_BYTES_MAX == 16777216, "the words name it");

/* The answers without a value. */
static const struct {
	unsigned status;
	const char *words;
} outcomes[] = {
	[HS_KEY_READ_MISSING] = {NOT_FOUND, "no such key, or it is not public"},
	[HS_KEY_READ_WRONG_TYPE] = {CONFLICT,
				    "the value is not a string: only strings are served here"},
	[HS_KEY_READ_TOO_LARGE] = {SERVER_ERROR,
				   "the value is too large: at most 16777216 bytes are sent"},
	[HS_KEY_READ_NO_ROOM] = {UNAVAILABLE, "too many large values are being sent: try again"},
	[HS_KEY_READ_BUSY] = {UNAVAILABLE, "too many values are being read: try again"},
	[HS_KEY_READ_TIMEOUT] = {TIMEOUT, "the value did not arrive in time"},
	[HS_KEY_READ_CONNECTION_LOST] = {UNAVAILABLE, "the value cannot be read now"},
};

static void answer_outcome(enum hs_key_read_outcome outcome, struct hs_http_answer *answer)
{
	answer_text(answer, outcomes[outcome].status, outcomes[outcome].words);
}

void hs_kv_page_done(struct hs_host *host, void *context, struct hs_key_read_result *result)
{
	const struct hs_rule *rule = public_rule(host, hs_buf_bytes(&result->key));
	struct hs_http_answer answer = {0};

	if (!rule)
		answer_outcome(HS_KEY_READ_MISSING, &answer);
	else if (result->outcome == HS_KEY_READ_VALUE)
		answer_value(host, rule, &result->value, &answer);
	else if (result->outcome == HS_KEY_READ_ERROR)
		answer_error(result->error_word, &answer);
	else
		answer_outcome(result->outcome, &answer);
	hs_http_answer(context, &answer);
}

void hs_kv_page_begin(void *context, const struct hs_http_request *request,
		      struct hs_http_pending *pending)
{
	struct hs_host *host = context;
	struct hs_http_answer answer = {0};
	struct hs_buf key = {0};
	int status = hs_kv_decode(request->suffix, &key);

	hs_key_reader_stats(host->key_reader)->requests++;
	if (status == 0 && public_rule(host, hs_buf_bytes(&key))) {
		hs_key_reader_get(host->key_reader, &key, pending);
		return;
	}
	hs_buf_deinit(&key);
	if (status == 0)
		answer_outcome(HS_KEY_READ_MISSING, &answer);
	else
		answer_text(&answer, BAD_REQUEST,
			    "malformed key: % must be followed by two hexadecimal digits");
	hs_http_answer(pending, &answer);
}
