/* A growable byte buffer, owned by the holder of the struct. A zeroed struct is a valid empty buffer. One
 * thread. A pointer into it is valid until the next call that may grow it. Without memory the process stops
 * (base/mem.h). */
#ifndef HS_BASE_BUF_H
#define HS_BASE_BUF_H

#include "base/bytes.h"

#include <stddef.h>

struct hs_buf {
	char *data;
	size_t len;
	size_t cap;
};

void hs_buf_deinit(struct hs_buf *buf); /* frees the memory; the struct is empty and usable */

/* Makes room for `more` bytes behind `len`, and returns their address. */
char *hs_buf_reserve_slow(struct hs_buf *buf, size_t more);
static inline char *hs_buf_reserve(struct hs_buf *buf, size_t more)
{
	if (__builtin_expect(buf->cap - buf->len >= more && buf->data, 1))
		return buf->data + buf->len;
	return hs_buf_reserve_slow(buf, more);
}

static inline void hs_buf_append(struct hs_buf *buf, const void *bytes, size_t len)
{
	if (len == 0)
		return;
	memcpy(hs_buf_reserve(buf, len), bytes, len);
	buf->len += len;
}

static inline void hs_buf_append_bytes(struct hs_buf *buf, struct hs_bytes bytes)
{
	hs_buf_append(buf, bytes.data, bytes.len);
}

void hs_buf_printf(struct hs_buf *buf, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Drops the first `len` bytes, moving the rest to the front. */
void hs_buf_consume(struct hs_buf *buf, size_t len);

/* Empties the buffer; frees its memory if it has more than `keep` bytes, so that one large value does not stay
 * allocated. */
void hs_buf_clear(struct hs_buf *buf, size_t keep);

static inline void hs_buf_swap(struct hs_buf *a, struct hs_buf *b)
{
	struct hs_buf c = *a;

	*a = *b;
	*b = c;
}

static inline struct hs_bytes hs_buf_bytes(const struct hs_buf *buf)
{
	return (struct hs_bytes){buf->data, buf->len};
}

#endif
