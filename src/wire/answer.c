/* A reply is a tree, but nothing here walks it as one. An aggregate's header says how many elements
 * follow, so a whole reply has ended when the number of elements still owed has fallen to zero:
 *
 *     *2 [ :1  *1 [ +a ] ]      owed: 1 → 2 → 1 → 1 → 0
 *
 * One counter replaces the stack, and nesting as deep as the sender likes costs no memory. */
#include "wire/answer.h"

#include "base/err.h"
#include "base/limits.h"
#include "base/num.h"

#include <stdbool.h>

enum {
	NUMBER_LINE_MAX = 32,  /* the longest length or integer with its line end, with room */
	NUMBER_SHORT_MAX = 12, /* the same of one that fits into 32 bits */
};

/* The line behind the type byte, without its end. Returns the bytes up to and with the line end. */
static int64_t read_line(struct hs_bytes *line, const char *data, size_t len, size_t max)
{
	size_t look = len < max ? len : max;
	const char *end = memchr(data, '\n', look);

	if (!end)
		return look == max ? HS_EPROTO : 0;
	if (end - data < 2 || end[-1] != '\r')
		return HS_EPROTO;
	*line = (struct hs_bytes){data + 1, (size_t)(end - data) - 2};
	return end - data + 1;
}

/* A short number that is whole, as almost all are. Returns 0 for others, right or wrong. */
static int64_t read_short_number(int64_t *number, const char *data, size_t len)
{
	const char *end = data + (len < NUMBER_SHORT_MAX ? len : NUMBER_SHORT_MAX);
	bool negative = len > 1 && data[1] == '-';
	const char *first = data + 1 + negative, *at = first;
	unsigned sum = 0, digit;

	while (at + 1 < end && (digit = (unsigned)*at - '0') <= 9) {
		sum = sum * 10 + digit;
		at++;
	}
	if (at == first || at + 1 >= end || at[0] != '\r' || at[1] != '\n')
		return 0;
	if (*first == '0' && (negative || at - first > 1))
		return 0;
	*number = negative ? -(int64_t)sum : sum;
	return at + 2 - data;
}

static int64_t read_number(int64_t *number, const char *data, size_t len)
{
	struct hs_bytes line;
	int64_t used = read_short_number(number, data, len);

	if (used > 0)
		return used;
	used = read_line(&line, data, len, NUMBER_LINE_MAX);

	if (used > 0 && !hs_num_parse_int(line, number))
		return HS_EPROTO;
	return used;
}

/* Status, error, double, big number: one line. */
static int64_t read_text(struct hs_answer *answer, const char *data, size_t len)
{
	return read_line(&answer->text, data, len, HS_INLINE_BYTES_MAX);
}

/* Bulk, bulk error and verbatim: a length, the bytes, a line end. */
static int64_t read_bulk(struct hs_answer *answer, const char *data, size_t len)
{
	int64_t size;
	int64_t used = read_number(&size, data, len);

	if (used <= 0)
		return used;
	if (size == -1 && data[0] == '$') {
		answer->type = HS_ANSWER_NULL;
		return used;
	}
	if (size < 0 || (uint64_t)size > HS_BULK_BYTES_MAX)
		return HS_EPROTO;

	const char *bytes = data + used;
	size_t whole = (size_t)used + (size_t)size + 2;

	if (len < whole)
		return 0;
	if (bytes[size] != '\r' || bytes[size + 1] != '\n')
		return HS_EPROTO;
	answer->text = (struct hs_bytes){bytes, (size_t)size};
	if (data[0] == '=') { /* three letters say the format: "txt:" */
		if (size < 4 || bytes[3] != ':')
			return HS_EPROTO;
		answer->text = (struct hs_bytes){bytes + 4, (size_t)size - 4};
	}
	return (int64_t)whole;
}

static int64_t read_aggregate(struct hs_answer *answer, const char *data, size_t len)
{
	int64_t used = read_number(&answer->count, data, len);

	if (used <= 0)
		return used;
	if (answer->count == -1 && data[0] == '*') {
		answer->type = HS_ANSWER_NULL;
		answer->count = 0;
		return used;
	}
	if (answer->count < 0 || (uint64_t)answer->count > HS_ARGC_MAX)
		return HS_EPROTO;
	return used;
}

static int64_t read_bool(struct hs_answer *answer, const char *data, size_t len)
{
	struct hs_bytes line;
	int64_t used = read_line(&line, data, len, NUMBER_LINE_MAX);

	if (used <= 0)
		return used;
	if (line.len != 1 || (line.data[0] != 't' && line.data[0] != 'f'))
		return HS_EPROTO;
	answer->integer = line.data[0] == 't';
	return used;
}

static int64_t read_null(const char *data, size_t len)
{
	struct hs_bytes line;
	int64_t used = read_line(&line, data, len, NUMBER_LINE_MAX);

	return used > 0 && line.len ? HS_EPROTO : used;
}

static int64_t read_as(struct hs_answer *answer, enum hs_answer_type type, const char *data,
		       size_t len)
{
	*answer = (struct hs_answer){.type = type};
	switch (type) {
	case HS_ANSWER_STATUS:
	case HS_ANSWER_DOUBLE:
		return read_text(answer, data, len);
	case HS_ANSWER_ERROR:
		return data[0] == '!' ? read_bulk(answer, data, len) : read_text(answer, data, len);
	case HS_ANSWER_INT:
		return read_number(&answer->integer, data, len);
	case HS_ANSWER_BULK:
		return read_bulk(answer, data, len);
	case HS_ANSWER_NULL:
		return read_null(data, len);
	case HS_ANSWER_BOOL:
		return read_bool(answer, data, len);
	case HS_ANSWER_ARRAY:
	case HS_ANSWER_MAP:
	case HS_ANSWER_PUSH:
	case HS_ANSWER_ATTRIBUTE:
		break;
	}
	return read_aggregate(answer, data, len);
}

int64_t hs_answer_head(struct hs_answer *answer, const char *data, size_t len)
{
	/* The first byte of every element of both dialects; 0 is no type, so they are kept one up.
	 */
	static const unsigned char types[256] = {
		['+'] = 1 + HS_ANSWER_STATUS,	 ['-'] = 1 + HS_ANSWER_ERROR,
		['!'] = 1 + HS_ANSWER_ERROR,	 [':'] = 1 + HS_ANSWER_INT,
		['$'] = 1 + HS_ANSWER_BULK,	 ['='] = 1 + HS_ANSWER_BULK,
		['_'] = 1 + HS_ANSWER_NULL,	 [','] = 1 + HS_ANSWER_DOUBLE,
		['('] = 1 + HS_ANSWER_DOUBLE,	 ['#'] = 1 + HS_ANSWER_BOOL,
		['*'] = 1 + HS_ANSWER_ARRAY,	 ['~'] = 1 + HS_ANSWER_ARRAY,
		['%'] = 1 + HS_ANSWER_MAP,	 ['>'] = 1 + HS_ANSWER_PUSH,
		['|'] = 1 + HS_ANSWER_ATTRIBUTE,
	};

	if (len == 0)
		return 0;

	unsigned char type = types[(unsigned char)data[0]];

	return type ? read_as(answer, (enum hs_answer_type)(type - 1), data, len) : HS_EPROTO;
}

/* How many bytes an unfinished bulk has, when its length is there already. */
static size_t bulk_bytes(const char *data, size_t len)
{
	int64_t size;
	int64_t used;

	if (len == 0 || (data[0] != '$' && data[0] != '=' && data[0] != '!'))
		return 0;
	used = read_number(&size, data, len);
	return used > 0 && size >= 0 ? (size_t)used + (size_t)size + 2 : 0;
}

int64_t hs_answer_scan(struct hs_answer_scan *scan, const char *data, size_t len)
{
	size_t at = scan->at;
	int64_t owed = scan->owed + 1;
	struct hs_answer answer;

	if (at == 0 && owed == 1) { /* most replies are one element, and there */
		int64_t used = hs_answer_head(&answer, data, len);

		if (used > 0 && answer.type < HS_ANSWER_ARRAY) {
			scan->need = 0;
			return used;
		}
	}
	while (owed > 0) {
		int64_t used = hs_answer_head(&answer, data + at, len - at);

		if (used == 0) {
			scan->at = at;
			scan->owed = owed - 1;
			scan->need = at + bulk_bytes(data + at, len - at);
			return 0;
		}
		if (used < 0)
			return used;
		at += (size_t)used;
		if (answer.type == HS_ANSWER_MAP || answer.type == HS_ANSWER_ATTRIBUTE)
			answer.count *= 2;
		if (answer.type != HS_ANSWER_ATTRIBUTE)
			owed--;
		if (__builtin_add_overflow(owed, answer.count, &owed))
			return HS_EPROTO;
	}
	*scan = (struct hs_answer_scan){0};
	return (int64_t)at;
}

int64_t hs_answer_length(const char *data, size_t len)
{
	struct hs_answer_scan scan = {0};

	return hs_answer_scan(&scan, data, len);
}

struct hs_bytes hs_answer_elements(struct hs_bytes reply)
{
	struct hs_answer head;
	int64_t used = hs_answer_head(&head, reply.data, reply.len);

	if (used <= 0 || (head.type != HS_ANSWER_ARRAY && head.type != HS_ANSWER_MAP))
		return (struct hs_bytes){reply.data, 0};
	return (struct hs_bytes){reply.data + used, reply.len - (size_t)used};
}

bool hs_answer_take(struct hs_bytes *elements, struct hs_bytes *element)
{
	int64_t len = elements->len > 0 ? hs_answer_length(elements->data, elements->len) : 0;

	*element = (struct hs_bytes){elements->data, len > 0 ? (size_t)len : 0};
	if (len <= 0)
		return false;
	elements->data += element->len;
	elements->len -= element->len;
	return true;
}
