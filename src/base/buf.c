#include "base/buf.h"

#include "base/check.h"
#include "base/mem.h"

#include <stdarg.h>
#include <stdio.h>

enum { SMALLEST = 256, DOUBLING_MAX = 1 << 20, PRINTF_BYTES_USUAL = 64 };

void hs_buf_deinit(struct hs_buf *buf)
{
	hs_mem_free(&buf->data);
	buf->len = 0;
	buf->cap = 0;
}

char *hs_buf_reserve_slow(struct hs_buf *buf, size_t more)
{
	size_t need = buf->len + more;

	if (need > buf->cap || !buf->data) {
		/* Double while small, then grow by the megabyte, so that a value of 512 MiB does not take 1
		 * GiB. */
		size_t cap = buf->cap ? buf->cap : SMALLEST;

		while (cap < need)
			cap += cap < DOUBLING_MAX ? cap : DOUBLING_MAX + cap / 8;
		buf->data = hs_mem_realloc(buf->data, cap);
		buf->cap = cap;
	}
	return buf->data + buf->len;
}

void hs_buf_printf(struct hs_buf *buf, const char *format, ...)
{
	char *room = hs_buf_reserve(buf, PRINTF_BYTES_USUAL);
	size_t cap = buf->cap - buf->len;
	va_list args;
	int len;

	va_start(args, format);
	len = vsnprintf(room, cap, format, args);
	va_end(args);
	hs_check(len >= 0);
	if ((size_t)len >= cap) { /* cut off: format again, with enough room */
		room = hs_buf_reserve(buf, (size_t)len + 1);
		va_start(args, format);
		vsnprintf(room, (size_t)len + 1, format, args);
		va_end(args);
	}
	buf->len += (size_t)len;
}

void hs_buf_consume(struct hs_buf *buf, size_t len)
{
	hs_check(len <= buf->len);
	buf->len -= len;
	if (buf->len && len)
		memmove(buf->data, buf->data + len, buf->len);
}

void hs_buf_clear(struct hs_buf *buf, size_t keep)
{
	buf->len = 0;
	if (buf->cap > keep)
		hs_buf_deinit(buf);
}
