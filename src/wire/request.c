/* A request is either
 *
 *     *2\r\n $3\r\n GET\r\n $1\r\n k\r\n        multibulk: counts first, then bytes
 *     GET k\r\n                                 inline: a line of words, for people with telnet
 *
 * While a request is unfinished, argv holds offsets from its first byte instead of pointers, since
 * the caller may move the bytes between two calls; they become pointers once, when it is whole. */
#include "wire/request.h"

#include "base/err.h"
#include "base/mem.h"
#include "base/num.h"

#include <ctype.h>
#include <stdio.h>

enum { SHORT_ARGC_MAX = 8, SHORT_DIGITS_MAX = 4 };

_Static_assert((int)SHORT_ARGC_MAX <= (int)HS_ARGC_INLINE && SHORT_ARGC_MAX <= HS_UNAUTH_ARGC_MAX &&
		       9999 <= HS_UNAUTH_BULK_BYTES_MAX,
	       "the limits are not looked at for short requests");

static const char *as_offset(size_t offset)
{
	return (const char *)(uintptr_t)
		offset; /* an offset, not a pointer: see the head of this file */
}

void hs_wire_request_init(struct hs_wire_request *request)
{
	*request = (struct hs_wire_request){
		.args_left = -1,
		.bulk_left = -1,
		.argv_cap = HS_ARGC_INLINE,
	};
	request->argv = request->argv_inline;
}

static void drop_argv(struct hs_wire_request *request)
{
	if (request->argv != request->argv_inline) {
		hs_mem_release(request->argv);
		request->argv = request->argv_inline;
		request->argv_cap = HS_ARGC_INLINE;
	}
	request->argc = 0;
}

void hs_wire_request_deinit(struct hs_wire_request *request)
{
	drop_argv(request);
	hs_mem_free(&request->unquoted);
}

static int64_t fail(struct hs_wire_request *request, const char *error)
{
	request->error = error;
	return HS_EPROTO;
}

static void add_arg(struct hs_wire_request *request, const char *data, size_t len)
{
	if (__builtin_expect(request->argc == request->argv_cap, 0)) {
		/* Grows as arguments arrive, never by the count in a header, which a client may
		 * forge. */
		size_t cap = request->argv_cap * 2;
		bool was_inline = request->argv == request->argv_inline;
		struct hs_bytes *grown =
			hs_mem_realloc(was_inline ? NULL : request->argv, cap * sizeof *grown);

		if (was_inline)
			memcpy(grown, request->argv_inline, sizeof request->argv_inline);
		request->argv = grown;
		request->argv_cap = cap;
	}
	request->argv[request->argc++] = (struct hs_bytes){data, len};
}

/* The number on the line at `at`: "*3\r\n" or "$10\r\n", whose first byte is already checked.
 * Returns the length of the line with its end, 0 when more bytes are needed, or HS_EPROTO when the
 * line is longer than any number. *valid: it was a number. */
static int64_t read_count(const char *data, size_t len, size_t at, int64_t *count, bool *valid)
{
	/* Fast path: one digit. */
	if (len - at >= 4 && data[at + 2] == '\r') {
		unsigned digit = (unsigned char)data[at + 1] - (unsigned)'0';

		*count = digit;
		*valid = digit <= 9;
		return 4;
	}

	const char *end = memchr(data + at, '\r', len - at);

	if (!end)
		return len - at > HS_INLINE_BYTES_MAX ? HS_EPROTO : 0;
	if ((size_t)(end - data) + 1 >= len)
		return 0;
	*valid = hs_num_parse_int((struct hs_bytes){data + at + 1, (size_t)(end - data) - at - 1},
				  count);
	return end - data - (int64_t)at + 2;
}

/* One escaped character inside double quotes; moves *at behind it. */
static char unescape(const char *line, size_t len, size_t *at)
{
	char c = line[*at];
	int byte = c == 'x' && *at + 2 < len ? hs_num_hex_byte(&line[*at + 1]) : -1;

	if (byte >= 0) {
		*at += 3;
		return (char)byte;
	}
	*at += 1;
	switch (c) {
	case 'n':
		return '\n';
	case 'r':
		return '\r';
	case 't':
		return '\t';
	case 'b':
		return '\b';
	case 'a':
		return '\a';
	default:
		return c;
	}
}

/* Fewer characters than isspace has: inside a word Redis takes a vertical tab as part of it. */
static bool ends_word(char c)
{
	return c == ' ' || c == '\n' || c == '\r' || c == '\t' || c == '\0';
}

/* Copies one word of an inline command to `to`, without its quotes. Returns its length, or -1 when
 * the quotes do not balance. *at ends behind the word. */
static int64_t unquote_word(const char *line, size_t len, size_t *at, char *to)
{
	size_t wrote = 0;
	char quote = 0;

	while (*at < len) {
		char c = line[*at];

		if (quote) {
			if (c == '\\' && quote == '"' && *at + 1 < len) {
				*at += 1;
				to[wrote++] = unescape(line, len, at);
				continue;
			}
			if (c == '\\' && quote == '\'' && *at + 1 < len && line[*at + 1] == '\'') {
				to[wrote++] = '\'';
				*at += 2;
				continue;
			}
			*at += 1;
			if (c != quote) {
				to[wrote++] = c;
				continue;
			}
			/* A closing quote ends the word: only a space may follow. */
			if (*at < len && !isspace((unsigned char)line[*at]))
				return -1;
			return (int64_t)wrote;
		}
		if (ends_word(c))
			return (int64_t)wrote;
		*at += 1;
		if (c == '"' || c == '\'')
			quote = c;
		else
			to[wrote++] = c;
	}
	return quote ? -1 : (int64_t)wrote;
}

static int64_t parse_inline(struct hs_wire_request *request, const char *data, size_t len)
{
	const char *end = memchr(data, '\n', len);

	if (!end) {
		if (len > HS_INLINE_BYTES_MAX)
			return fail(request, "Protocol error: too big inline request");
		request->need = len + 1;
		return 0;
	}

	size_t line = (size_t)(end - data);
	size_t consumed = line + 1;
	size_t at = 0, wrote = 0;

	if (line > 0 && data[line - 1] == '\r')
		line--;
	hs_mem_free(&request->unquoted);
	request->unquoted = hs_mem_alloc(line + 1);
	for (;;) {
		while (at < line && isspace((unsigned char)data[at]))
			at++;
		if (at >= line || data[at] == '\0')
			return (int64_t)consumed;

		int64_t word = unquote_word(data, line, &at, request->unquoted + wrote);

		if (word < 0)
			return fail(request, "Protocol error: unbalanced quotes in request");
		add_arg(request, request->unquoted + wrote, (size_t)word);
		wrote += (size_t)word;
	}
}

static int64_t parse_header(struct hs_wire_request *request, const char *data, size_t len,
			    bool trusted)
{
	int64_t count;
	bool valid;
	int64_t line = read_count(data, len, 0, &count, &valid);

	if (line < 0)
		return fail(request, "Protocol error: too big mbulk count string");
	if (line == 0)
		return 0;
	if (!valid || count > (int64_t)HS_ARGC_MAX)
		return fail(request, "Protocol error: invalid multibulk length");
	if (count > HS_UNAUTH_ARGC_MAX && !trusted)
		return fail(request, "Protocol error: unauthenticated multibulk length");
	request->args_left = count > 0 ? count : 0;
	request->at = (size_t)line;
	return line;
}

static int64_t parse_bulk_header(struct hs_wire_request *request, const char *data, size_t len,
				 bool trusted)
{
	int64_t count;
	bool valid;

	if (request->at == len)
		return 0;
	if (data[request->at] != '$') {
		/* Redis checks for a whole line before it checks the first byte. */
		if (!memchr(data + request->at, '\r', len - request->at)) {
			if (len - request->at > HS_INLINE_BYTES_MAX)
				return fail(request, "Protocol error: too big bulk count string");
			return 0;
		}
		snprintf(request->error_text, sizeof request->error_text,
			 "Protocol error: expected '$', got '%c'", data[request->at]);
		return fail(request, request->error_text);
	}

	int64_t line = read_count(data, len, request->at, &count, &valid);

	if (line < 0)
		return fail(request, "Protocol error: too big bulk count string");
	if (line == 0)
		return 0;
	if (!valid || count < 0 || count > (int64_t)HS_BULK_BYTES_MAX)
		return fail(request, "Protocol error: invalid bulk length");
	if (count > (int64_t)HS_UNAUTH_BULK_BYTES_MAX && !trusted)
		return fail(request, "Protocol error: unauthenticated bulk length");
	request->bulk_left = count;
	request->at += (size_t)line;
	return line;
}

/* Fast path: a request of few arguments, each shorter than 10,000 bytes, that has arrived in full.
 * Returns its length, or 0 and changes nothing: the slow path parses it. Both paths accept the same
 * bytes with the same result. */
static size_t parse_short(struct hs_wire_request *request, const char *data, size_t len)
{
	const char *at = data + 4, *end = data + len;
	size_t argc = len > 4 ? (unsigned char)data[1] - (size_t)'0' : 0;

	if (argc - 1 >= SHORT_ARGC_MAX || data[2] != '\r')
		return 0;
	for (size_t i = 0; i < argc; i++) {
		size_t bulk;
		int digits = 1;

		if (end - at < SHORT_DIGITS_MAX + 2 || at[0] != '$')
			return 0;
		bulk = (unsigned char)at[1] - (size_t)'0';
		if (bulk > 9)
			return 0;
		for (; at[digits + 1] != '\r'; digits++) {
			size_t digit = (unsigned char)at[digits + 1] - (size_t)'0';

			if (digit > 9 || bulk == 0 || digits == SHORT_DIGITS_MAX)
				return 0;
			bulk = bulk * 10 + digit;
		}
		if (end - at < digits + 3 + (ptrdiff_t)bulk + 2)
			return 0;
		at += digits + 3;
		request->argv[i] = (struct hs_bytes){at, bulk};
		at += bulk + 2;
	}
	request->argc = argc;
	return (size_t)(at - data);
}

int64_t hs_wire_request_parse(struct hs_wire_request *request, const char *data, size_t len,
			      bool trusted)
{
	int64_t got;

	if (request->args_left < 0) {
		if (request->argc > 0)
			drop_argv(request);
		request->at = 0;
		request->need = 0;
		if (len == 0)
			return 0;
		if (data[0] != '*')
			return parse_inline(request, data, len);
		got = (int64_t)parse_short(request, data, len);
		if (got > 0)
			return got;
		got = parse_header(request, data, len, trusted);
		if (got <= 0)
			return got;
	}
	while (request->args_left > 0) {
		if (request->bulk_left < 0) {
			got = parse_bulk_header(request, data, len, trusted);
			if (got <= 0)
				return got;
		}

		size_t bulk = (size_t)request->bulk_left;

		if (len - request->at < bulk + 2) {
			request->need = request->at + bulk + 2;
			return 0;
		}
		add_arg(request, as_offset(request->at), bulk);
		request->at += bulk + 2;
		request->bulk_left = -1;
		request->args_left--;
	}
	for (size_t i = 0; i < request->argc; i++)
		request->argv[i].data = data + (uintptr_t)request->argv[i].data;
	request->args_left = -1;
	return (int64_t)request->at;
}
