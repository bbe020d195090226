/* Elements come one behind the other, whatever is nested in what, and a count of those still owed tells
 * the end (see answer.c). Most become one element of the other dialect, so that headers need no more
 * than another first byte; a map says half as many as there are. */
#include "wire/dialect.h"

#include "base/err.h"
#include "base/limits.h"
#include "wire/answer.h"
#include "wire/reply.h"

struct walk {
	const char *data;
	size_t len, at;
	struct hs_reply reply;
	unsigned how;
};

/* The next element that is not about another one; what was about it is passed over. */
static bool next(struct walk *walk, struct hs_answer *answer)
{
	int64_t passing = 0;

	for (;;) {
		int64_t used = hs_answer_head(answer, walk->data + walk->at, walk->len - walk->at);

		if (used <= 0 || answer->type == HS_ANSWER_PUSH)
			return false;
		walk->at += (size_t)used;
		if (answer->type == HS_ANSWER_ATTRIBUTE) {
			passing += answer->count * 2;
		} else if (passing == 0) {
			return true;
		} else {
			passing += answer->count * (answer->type == HS_ANSWER_MAP ? 2 : 1) - 1;
		}
		/* Each of them is a byte at least. */
		if (passing > (int64_t)(walk->len - walk->at))
			return false;
	}
}

static bool is_aggregate(const struct hs_answer *answer)
{
	return answer->type == HS_ANSWER_ARRAY || answer->type == HS_ANSWER_MAP;
}

/* What has no end of its own to wait for. */
static void write_one(struct walk *walk, const struct hs_answer *answer)
{
	struct hs_reply *reply = &walk->reply;
	struct hs_buf *out = reply->out;

	switch (answer->type) {
	case HS_ANSWER_STATUS:
		hs_buf_append(out, "+", 1);
		hs_buf_append_bytes(out, answer->text);
		hs_buf_append(out, "\r\n", 2);
		return;
	case HS_ANSWER_ERROR:
		hs_reply_error_bytes(reply, answer->text); /* a line is all there is for it */
		return;
	case HS_ANSWER_INT:
	case HS_ANSWER_BOOL:
		hs_reply_int(reply, answer->integer);
		return;
	case HS_ANSWER_NULL:
		if (walk->how & HS_DIALECT_NULL_ARRAYS)
			hs_reply_null_array(reply);
		else
			hs_reply_null(reply);
		return;
	default: /* a bulk string, or what becomes one */
		hs_reply_bulk(reply, answer->text);
		return;
	}
}

/* How many elements follow a header, and whether RESP2 can say so. */
static bool count_of(const struct hs_answer *answer, size_t times, size_t *count)
{
	*count = (size_t)answer->count * times * (answer->type == HS_ANSWER_MAP ? 2 : 1);
	return *count <= HS_ARGC_MAX;
}

/* Everything from an element on that is read already. */
static bool write_whole(struct walk *walk, struct hs_answer answer)
{
	int64_t owed = 1;

	for (;;) {
		size_t count = 0;

		if (is_aggregate(&answer)) {
			if (!count_of(&answer, 1, &count))
				return false;
			hs_reply_array(&walk->reply, count);
		} else {
			write_one(walk, &answer);
		}
		if (__builtin_add_overflow(owed - 1, (int64_t)count, &owed))
			return false;
		if (owed == 0)
			return true;
		if (!next(walk, &answer))
			return false;
	}
}

static bool is_pair(const struct hs_answer *answer)
{
	return answer->type == HS_ANSWER_ARRAY && answer->count == 2;
}

/* An array of pairs, its header and that of its first pair read already. */
static bool write_pairs(struct walk *walk, const struct hs_answer *array)
{
	size_t count;

	if (!count_of(array, 2, &count))
		return false;
	hs_reply_array(&walk->reply, count);
	for (size_t i = 0; i < count; i++) {
		struct hs_answer answer;

		if (i > 0 && i % 2 == 0 && (!next(walk, &answer) || !is_pair(&answer)))
			return false;
		if (!next(walk, &answer) || is_aggregate(&answer))
			return false;
		write_one(walk, &answer);
	}
	return true;
}

static bool write_reply(struct walk *walk)
{
	struct hs_answer answer, first;

	if (!next(walk, &answer))
		return false;
	if (!(walk->how & HS_DIALECT_PAIRS) || answer.type != HS_ANSWER_ARRAY || answer.count == 0)
		return write_whole(walk, answer);
	if (!next(walk, &first))
		return false;
	if (is_pair(&first))
		return write_pairs(walk, &answer);
	hs_reply_array(&walk->reply, (size_t)answer.count);
	for (int64_t i = 0; i < answer.count; i++)
		if ((i > 0 && !next(walk, &first)) || !write_whole(walk, first))
			return false;
	return true;
}

/* 1: it has something that only RESP3 has; 0: all of it is RESP2; negative: it is no whole reply. */
static int differs(struct hs_bytes resp3)
{
	struct hs_answer answer;
	size_t at = 0;

	for (int64_t owed = 1; owed > 0; owed--) {
		int64_t used = hs_answer_head(&answer, resp3.data + at, resp3.len - at);

		if (used <= 0)
			return HS_EPROTO;
		if (!memchr("+-:$*", resp3.data[at], 5))
			return 1;
		at += (size_t)used;
		if (__builtin_add_overflow(owed, answer.count, &owed))
			return HS_EPROTO;
	}
	return at == resp3.len ? 0 : HS_EPROTO;
}

int hs_dialect_resp2(struct hs_bytes resp3, unsigned how, struct hs_buf *out)
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
