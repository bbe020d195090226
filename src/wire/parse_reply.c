/* A reply is a tree, but nothing here walks it as one. An aggregate's header says how many elements
 * follow, so a whole reply has ended when the number of missing elements has fallen to zero:
 *
 *     *2 [ :1  *1 [ +a ] ]      missing: 1 → 2 → 1 → 1 → 0
 *
 * One counter replaces the stack, and deep nesting costs no memory. */
#include "wire/parse_reply.h"

#include "base/err.h"
#include "base/limits.h"
#include "base/num.h"

#include <stdbool.h>

enum {
	NUMBER_LINE_MAX = 32,  /* bytes in which the longest length or integer must end */
	NUMBER_SHORT_MAX = 12, /* the same for a number that fits into 32 bits */
};

/* The line after the type byte, without its end. Returns the bytes read, line end included. */
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

/* Fast path: a short number that has arrived with its line end. Returns 0 for all others, right or
 * wrong. */
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
static int64_t read_text(struct hs_parsed_reply *parsed, const char *data, size_t len)
{
	return read_line(&parsed->text, data, len, HS_INLINE_BYTES_MAX);
}

/* Bulk, bulk error and verbatim: a length, the bytes, a line end. */
static int64_t read_bulk(struct hs_parsed_reply *parsed, const char *data, size_t len)
{
	int64_t size;
	int64_t used = read_number(&size, data, len);

	if (used <= 0)
		return used;
	if (size == -1 && data[0] == '$') {
		parsed->type = HS_PARSED_NULL;
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
	parsed->text = (struct hs_bytes){bytes, (size_t)size};
	if (data[0] == '=') { /* three letters name the format */
		if (size < 4 || bytes[3] != ':')
			return HS_EPROTO;
		parsed->text = (struct hs_bytes){bytes + 4, (size_t)size - 4};
	}
	return (int64_t)whole;
}

static int64_t read_aggregate(struct hs_parsed_reply *parsed, const char *data, size_t len)
{
	int64_t used = read_number(&parsed->count, data, len);

	if (used <= 0)
		return used;
	if (parsed->count == -1 && data[0] == '*') {
		parsed->type = HS_PARSED_NULL;
		parsed->count = 0;
		return used;
	}
	if (parsed->count < 0 || (uint64_t)parsed->count > HS_ARGC_MAX)
		return HS_EPROTO;
	return used;
}

static int64_t read_bool(struct hs_parsed_reply *parsed, const char *data, size_t len)
{
	struct hs_bytes line;
	int64_t used = read_line(&line, data, len, NUMBER_LINE_MAX);

	if (used <= 0)
		return used;
	if (line.len != 1 || (line.data[0] != 't' && line.data[0] != 'f'))
		return HS_EPROTO;
	parsed->integer = line.data[0] == 't';
	return used;
}

static int64_t read_null(const char *data, size_t len)
{
	struct hs_bytes line;
	int64_t used = read_line(&line, data, len, NUMBER_LINE_MAX);

	return used > 0 && line.len ? HS_EPROTO : used;
}

static int64_t read_as(struct hs_parsed_reply *parsed, enum hs_parsed_reply_type type,
		       const char *data, size_t len)
{
	*parsed = (struct hs_parsed_reply){.type = type};
	switch (type) {
	case HS_PARSED_STATUS:
	case HS_PARSED_DOUBLE:
		return read_text(parsed, data, len);
	case HS_PARSED_ERROR:
		return data[0] == '!' ? read_bulk(parsed, data, len) : read_text(parsed, data, len);
	case HS_PARSED_INT:
		return read_number(&parsed->integer, data, len);
	case HS_PARSED_BULK:
		return read_bulk(parsed, data, len);
	case HS_PARSED_NULL:
		return read_null(data, len);
	case HS_PARSED_BOOL:
		return read_bool(parsed, data, len);
	case HS_PARSED_ARRAY:
	case HS_PARSED_MAP:
	case HS_PARSED_PUSH:
	case HS_PARSED_ATTRIBUTE:
		break;
	}
	return read_aggregate(parsed, data, len);
}

int64_t hs_parse_reply_head(struct hs_parsed_reply *parsed, const char *data, size_t len)
{
	/* The type by the first byte of an element, RESP2 or RESP3. Stored plus 1, so that 0 means:
	 * not a type. */
	static const unsigned char types[256] = {
		['+'] = 1 + HS_PARSED_STATUS,	 ['-'] = 1 + HS_PARSED_ERROR,
		['!'] = 1 + HS_PARSED_ERROR,	 [':'] = 1 + HS_PARSED_INT,
		['$'] = 1 + HS_PARSED_BULK,	 ['='] = 1 + HS_PARSED_BULK,
		['_'] = 1 + HS_PARSED_NULL,	 [','] = 1 + HS_PARSED_DOUBLE,
		['('] = 1 + HS_PARSED_DOUBLE,	 ['#'] = 1 + HS_PARSED_BOOL,
		['*'] = 1 + HS_PARSED_ARRAY,	 ['~'] = 1 + HS_PARSED_ARRAY,
		['%'] = 1 + HS_PARSED_MAP,	 ['>'] = 1 + HS_PARSED_PUSH,
		['|'] = 1 + HS_PARSED_ATTRIBUTE,
	};

	if (len == 0)
		return 0;

	unsigned char type = types[(unsigned char)data[0]];

	return type ? read_as(parsed, (enum hs_parsed_reply_type)(type - 1), data, len) : HS_EPROTO;
}

/* The size of an unfinished bulk string whose length has arrived; 0: not known. */
static size_t bulk_bytes(const char *data, size_t len)
{
	int64_t size;
	int64_t used;

	if (len == 0 || (data[0] != '$' && data[0] != '=' && data[0] != '!'))
		return 0;
	used = read_number(&size, data, len);
	return used > 0 && size >= 0 ? (size_t)used + (size_t)size + 2 : 0;
}

int64_t hs_parse_reply_scan(struct hs_parse_reply_scan *scan, const char *data, size_t len)
{
	size_t at = scan->at;
	int64_t missing = scan->missing_less_one + 1;
	struct hs_parsed_reply parsed;

	/* fast path: one element that has arrived in full */
	if (at == 0 && missing == 1) {
		int64_t used = hs_parse_reply_head(&parsed, data, len);

		if (used > 0 && parsed.type < HS_PARSED_ARRAY) {
			scan->need = 0;
			return used;
		}
	}
	while (missing > 0) {
		int64_t used = hs_parse_reply_head(&parsed, data + at, len - at);

		if (used == 0) {
			scan->at = at;
			scan->missing_less_one = missing - 1;
			scan->need = at + bulk_bytes(data + at, len - at);
			return 0;
		}
		if (used < 0)
			return used;
		at += (size_t)used;
		if (parsed.type == HS_PARSED_MAP || parsed.type == HS_PARSED_ATTRIBUTE)
			parsed.count *= 2;
		if (parsed.type != HS_PARSED_ATTRIBUTE)
			missing--;
		if (__builtin_add_overflow(missing, parsed.count, &missing))
			return HS_EPROTO;
	}
	*scan = (struct hs_parse_reply_scan){0};
	return (int64_t)at;
}

int64_t hs_parse_reply_length(const char *data, size_t len)
{
	struct hs_parse_reply_scan scan = {0};

	return hs_parse_reply_scan(&scan, data, len);
}

struct hs_bytes hs_parse_reply_elements(struct hs_bytes reply)
{
	struct hs_parsed_reply head;
	int64_t used = hs_parse_reply_head(&head, reply.data, reply.len);

	if (used <= 0 || (head.type != HS_PARSED_ARRAY && head.type != HS_PARSED_MAP))
		return (struct hs_bytes){reply.data, 0};
	return (struct hs_bytes){reply.data + used, reply.len - (size_t)used};
}

bool hs_parse_reply_take(struct hs_bytes *elements, struct hs_bytes *element)
{
	int64_t len = elements->len > 0 ? hs_parse_reply_length(elements->data, elements->len) : 0;

	*element = (struct hs_bytes){elements->data, len > 0 ? (size_t)len : 0};
	if (len <= 0)
		return false;
	elements->data += element->len;
	elements->len -= element->len;
	return true;
}
