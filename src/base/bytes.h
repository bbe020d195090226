/* A borrowed run of bytes: a pointer and a length. It owns nothing; whoever hands one out says
 * how long it stays valid. Keys, arguments and values travel as this type everywhere. */
#ifndef HS_BASE_BYTES_H
#define HS_BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct hs_bytes {
	const char *data;
	size_t len;
};

/* A literal as bytes, its terminating zero left out. */
#define HS_LIT(text) ((struct hs_bytes){(text), sizeof(text) - 1})

static inline struct hs_bytes hs_bytes_of(const char *text)
{
	return (struct hs_bytes){text, strlen(text)};
}

static inline bool hs_bytes_equal(struct hs_bytes a, struct hs_bytes b)
{
	return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

static inline bool hs_bytes_begins(struct hs_bytes a, struct hs_bytes with)
{
	return a.len >= with.len && (with.len == 0 || memcmp(a.data, with.data, with.len) == 0);
}

/* The piece of `text` up to `end`, which is taken off with it; all of it when there is no `end`. */
static inline struct hs_bytes hs_bytes_cut(struct hs_bytes *text, char end)
{
	const char *at = text->len ? memchr(text->data, end, text->len) : NULL;
	struct hs_bytes piece = {text->data, at ? (size_t)(at - text->data) : text->len};
	size_t used = piece.len + (at ? 1 : 0);

	*text = (struct hs_bytes){text->data + used, text->len - used};
	return piece;
}

/* Copies them to `*room`, which moves on behind them; returns the copy. */
static inline struct hs_bytes hs_bytes_place(char **room, struct hs_bytes bytes)
{
	struct hs_bytes placed = {*room, bytes.len};

	if (bytes.len > 0)
		memcpy(*room, bytes.data, bytes.len);
	*room += bytes.len;
	return placed;
}

/* Byte order, shorter first on a tie: the order of keys in every tree. */
int hs_bytes_compare(struct hs_bytes a, struct hs_bytes b);

/* ASCII letters match whatever their case. `word` is a C string: a command or option name. */
bool hs_bytes_is_word(struct hs_bytes a, const char *word);

/* Writes `a` with everything unprintable, quotes and backslashes escaped as \xHH, \n, \" …, zero
 * terminated and cut to fit `size` bytes. For logs and error texts. Returns `text`. */
char *hs_bytes_escape(struct hs_bytes a, char *text, size_t size);
/* The letter behind a backslash that stands for this byte; 0: it has none. */
char hs_bytes_escape_letter(char byte);

#endif
