/* One pass without a stack: a counter of the elements still missing tells the end (see
 * parse_reply.c). Most elements become one element, so an aggregate's header changes only its first
 * byte. A map header of n becomes an array header of 2n. */
#include "wire/resp3_to_resp2.h"

#include "base/err.h"
#include "base/limits.h"
#include "wire/parse_reply.h"
#include "wire/reply.h"

struct walk {
	const char *data;
	size_t len, at;
	struct hs_reply reply;
	unsigned how;
};

/* Reads the next element that is not an attribute; attributes are skipped. False: invalid, or a
 * push. */
static bool next(struct walk *walk, struct hs_parsed_reply *parsed)
{
	int64_t passing = 0;

	for (;;) {
		int64_t used =
			hs_parse_reply_head(parsed, walk->data + walk->at, walk->len - walk->at);

		if (used <= 0 || parsed->type == HS_PARSED_PUSH)
			return false;
		walk->at += (size_t)used;
		if (parsed->type == HS_PARSED_ATTRIBUTE) {
			passing += parsed->count * 2;
		} else if (passing == 0) {
			return true;
		} else {
			passing += parsed->count * (parsed->type == HS_PARSED_MAP ? 2 : 1) - 1;
		}
		/* Each skipped element has at least one byte: a larger count is invalid. */
		if (passing > (int64_t)(walk->len - walk->at))
			return false;
	}
}

static bool is_aggregate(const struct hs_parsed_reply *parsed)
{
	return parsed->type == HS_PARSED_ARRAY || parsed->type == HS_PARSED_MAP;
}

/* Writes one element that is not an aggregate. */
static void write_one(struct walk *walk, const struct hs_parsed_reply *parsed)
{
	struct hs_reply *reply = &walk->reply;
	struct hs_buf *out = reply->out;

	switch (parsed->type) {
	case HS_PARSED_STATUS:
		hs_buf_append(out, "+", 1);
		hs_buf_append_bytes(out, parsed->text);
		hs_buf_append(out, "\r\n", 2);
		return;
	case HS_PARSED_ERROR:
		hs_reply_error_bytes(reply, parsed->text); /* RESP2 has error lines only */
		return;
	case HS_PARSED_INT:
	case HS_PARSED_BOOL:
		hs_reply_int(reply, parsed->integer);
		return;
	case HS_PARSED_NULL:
		if (walk->how & HS_RESP2_NULL_ARRAYS)
			hs_reply_null_array(reply);
		else
			hs_reply_null(reply);
		return;
	default: /* a bulk string, or a type that becomes one */
		hs_reply_bulk(reply, parsed->text);
		return;
	}
}

/* The number of elements after a header. False: more than RESP2 allows. */
static bool count_of(const struct hs_parsed_reply *parsed, size_t times, size_t *count)
{
	*count = (size_t)parsed->count * times * (parsed->type == HS_PARSED_MAP ? 2 : 1);
	return *count <= HS_ARGC_MAX;
}

/* Writes an element, already read, with everything inside it. */
static bool write_whole(struct walk *walk, struct hs_parsed_reply parsed)
{
	int64_t owed = 1;

	for (;;) {
		size_t count = 0;

		if (is_aggregate(&parsed)) {
			if (!count_of(&parsed, 1, &count))
				return false;
			hs_reply_array(&walk->reply, count);
		} else {
			write_one(walk, &parsed);
		}
		if (__builtin_add_overflow(owed - 1, (int64_t)count, &owed))
			return false;
		if (owed == 0)
			return true;
		if (!next(walk, &parsed))
			return false;
	}
}

static bool is_pair(const struct hs_parsed_reply *parsed)
{
	return parsed->type == HS_PARSED_ARRAY && parsed->count == 2;
}

/* Writes an array of pairs as a flat array. Its header and that of its first pair are already read. */
static bool write_pairs(struct walk *walk, const struct hs_parsed_reply *array)
{
	size_t count;

	if (!count_of(array, 2, &count))
		return false;
	hs_reply_array(&walk->reply, count);
	for (size_t i = 0; i < count; i++) {
		struct hs_parsed_reply parsed;

		if (i > 0 && i % 2 == 0 && (!next(walk, &parsed) || !is_pair(&parsed)))
			return false;
		if (!next(walk, &parsed) || is_aggregate(&parsed))
			return false;
		write_one(walk, &parsed);
	}
	return true;
}

static bool write_reply(struct walk *walk)
{
	struct hs_parsed_reply parsed, first;

	if (!next(walk, &parsed))
		return false;
	if (!(walk->how & HS_RESP2_FLAT_PAIRS) || parsed.type != HS_PARSED_ARRAY ||
	    parsed.count == 0)
		return write_whole(walk, parsed);
	if (!next(walk, &first))
		return false;
	if (is_pair(&first))
		return write_pairs(walk, &parsed);
	hs_reply_array(&walk->reply, (size_t)parsed.count);
	for (int64_t i = 0; i < parsed.count; i++)
		if ((i > 0 && !next(walk, &first)) || !write_whole(walk, first))
			return false;
	return true;
}

/* 1: it contains a type that only RESP3 has. 0: all of it is RESP2. Negative: not one whole reply. */
static int differs(struct hs_bytes resp3)
{
	struct hs_parsed_reply parsed;
	size_t at = 0;

	for (int64_t owed = 1; owed > 0; owed--) {
		int64_t used = hs_parse_reply_head(&parsed, resp3.data + at, resp3.len - at);

		if (used <= 0)
			return HS_EPROTO;
		if (!memchr("+-:$*", resp3.data[at], 5))
			return 1;
		at += (size_t)used;
		if (__builtin_add_overflow(owed, parsed.count, &owed))
			return HS_EPROTO;
	}
	return at == resp3.len ? 0 : HS_EPROTO;
}

int hs_resp3_to_resp2(struct hs_bytes resp3, unsigned how, struct hs_buf *out)
{
	struct walk walk = {resp3.data, resp3.len, 0, {.out = out, .resp = 2}, how};
	size_t before = out->len;
	int differ = differs(resp3);

	if (differ <= 0)
		return differ;
	if (write_reply(&walk) && walk.at == walk.len)
		return 1;
	out->len = before;
	return HS_EPROTO;
}
