#include "wire/reply.h"

#include "base/check.h"
#include "base/num.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

/* One type byte, a number, CRLF: the header of most replies. */
static void header(struct hs_reply *reply, char type, int64_t value)
{
	char *room = hs_buf_reserve(reply->out, HS_NUM_TEXT_MAX + 3);
	size_t len;

	room[0] = type;
	if (value >= 0 && value <= 9) {
		room[1] = (char)('0' + value);
		len = 1;
	} else {
		len = hs_num_format_int(value, room + 1);
	}
	room[len + 1] = '\r';
	room[len + 2] = '\n';
	reply->out->len += len + 3;
}

static void line(struct hs_reply *reply, char type, struct hs_bytes text)
{
	char *room = hs_buf_reserve(reply->out, text.len + 3);

	room[0] = type;
	for (size_t i = 0; i < text.len; i++)
		room[1 + i] = text.data[i];
	room[text.len + 1] = '\r';
	room[text.len + 2] = '\n';
	reply->out->len += text.len + 3;
}

void hs_reply_status(struct hs_reply *reply, const char *text)
{
	line(reply, '+', hs_bytes_of(text));
}

void hs_reply_ok(struct hs_reply *reply)
{
	hs_buf_append(reply->out, "+OK\r\n", 5);
}

void hs_reply_error_bytes(struct hs_reply *reply, struct hs_bytes text)
{
	size_t start = reply->out->len + 1;

	line(reply, '-', text);
	for (size_t i = start; i + 2 < reply->out->len; i++) {
		if (reply->out->data[i] == '\r' || reply->out->data[i] == '\n')
			reply->out->data[i] = ' ';
	}
}

void hs_reply_error(struct hs_reply *reply, const char *text)
{
	hs_reply_error_bytes(reply, hs_bytes_of(text));
}

void hs_reply_errorf(struct hs_reply *reply, const char *format, ...)
{
	char text[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	hs_reply_error(reply, text);
}

void hs_reply_int(struct hs_reply *reply, int64_t value)
{
	header(reply, ':', value);
}

static void counted(struct hs_reply *reply, char type, const char *prefix, struct hs_bytes value)
{
	size_t prefix_len = strlen(prefix);

	if (reply->out_max > 0 && reply->out->len + value.len > reply->out_max) {
		reply->over = true;
		return;
	}
	header(reply, type, (int64_t)(value.len + prefix_len));

	char *room = hs_buf_reserve(reply->out, value.len + prefix_len + 2);

	memcpy(room, prefix, prefix_len);
	if (value.len)
		memcpy(room + prefix_len, value.data, value.len);
	room[prefix_len + value.len] = '\r';
	room[prefix_len + value.len + 1] = '\n';
	reply->out->len += prefix_len + value.len + 2;
}

void hs_reply_bulk(struct hs_reply *reply, struct hs_bytes value)
{
	counted(reply, '$', "", value);
}

void hs_reply_bulk_text(struct hs_reply *reply, const char *text)
{
	hs_reply_bulk(reply, hs_bytes_of(text));
}

void hs_reply_bulk_int(struct hs_reply *reply, int64_t value)
{
	char text[HS_NUM_TEXT_MAX];
	size_t len = hs_num_format_int(value, text);

	hs_reply_bulk(reply, (struct hs_bytes){text, len});
}

void hs_reply_double(struct hs_reply *reply, double value)
{
	char text[64];

	if (isinf(value))
		snprintf(text, sizeof text, "%s", value > 0 ? "inf" : "-inf");
	else
		snprintf(text, sizeof text, "%.17g", value);
	if (reply->resp == 3)
		line(reply, ',', hs_bytes_of(text));
	else
		hs_reply_bulk_text(reply, text);
}

void hs_reply_decimal(struct hs_reply *reply, double value, int decimals)
{
	char text[64];
	size_t len;

	if (!(fabs(value) < 1e15)) { /* too large to have decimals, or not finite */
		hs_reply_double(reply, value);
		return;
	}
	len = (size_t)snprintf(text, sizeof text, "%.*f", decimals, value);
	while (decimals > 0 && text[len - 1] == '0')
		len--;
	if (text[len - 1] == '.')
		len--;
	text[len] = '\0';
	if (strcmp(text, "-0") == 0)
		snprintf(text, sizeof text, "0");
	if (reply->resp == 3)
		line(reply, ',', hs_bytes_of(text));
	else
		hs_reply_bulk_text(reply, text);
}

void hs_reply_bool(struct hs_reply *reply, bool value)
{
	if (reply->resp == 3)
		line(reply, '#', value ? HS_LIT("t") : HS_LIT("f"));
	else
		hs_reply_int(reply, value);
}

void hs_reply_verbatim(struct hs_reply *reply, struct hs_bytes value)
{
	if (reply->resp == 3)
		counted(reply, '=', "txt:", value);
	else
		hs_reply_bulk(reply, value);
}

void hs_reply_null(struct hs_reply *reply)
{
	if (reply->resp == 3)
		hs_buf_append(reply->out, "_\r\n", 3);
	else
		hs_buf_append(reply->out, "$-1\r\n", 5);
}

void hs_reply_null_array(struct hs_reply *reply)
{
	if (reply->resp == 3)
		hs_buf_append(reply->out, "_\r\n", 3);
	else
		hs_buf_append(reply->out, "*-1\r\n", 5);
}

void hs_reply_array(struct hs_reply *reply, size_t count)
{
	header(reply, '*', (int64_t)count);
}

void hs_reply_map(struct hs_reply *reply, size_t pairs)
{
	if (reply->resp == 3)
		header(reply, '%', (int64_t)pairs);
	else
		header(reply, '*', (int64_t)pairs * 2);
}

void hs_reply_set(struct hs_reply *reply, size_t count)
{
	header(reply, reply->resp == 3 ? '~' : '*', (int64_t)count);
}

void hs_reply_push(struct hs_reply *reply, size_t count)
{
	header(reply, reply->resp == 3 ? '>' : '*', (int64_t)count);
}

void hs_reply_pair(struct hs_reply *reply, const char *name, struct hs_bytes value)
{
	hs_reply_bulk_text(reply, name);
	hs_reply_bulk(reply, value);
}

void hs_reply_pair_text(struct hs_reply *reply, const char *name, const char *text)
{
	hs_reply_pair(reply, name, hs_bytes_of(text));
}

void hs_reply_pair_int(struct hs_reply *reply, const char *name, int64_t value)
{
	hs_reply_bulk_text(reply, name);
	hs_reply_int(reply, value);
}
