/* src/base is the library that every other folder uses: bytes, buffers, numbers, hashing, lists, queues,
 * histograms, counters, the log and all limits. It includes no other folder, reads no clock and does no I/O,
 * except that mem.c and check.c print one line before they abort. A file's head says which threads may use it; a
 * file whose head does not say has only pure functions on the caller's memory. Running out of memory or a failed
 * hs_check stops the process; everything else is a return value.
 *
 * This header: a borrowed slice of bytes, a pointer and a length. It owns nothing. The function that returns
 * one says how long it is valid. Keys, arguments and values are passed as this type. */
#ifndef HS_BASE_BYTES_H
#define HS_BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct hs_bytes {
	const char *data;
	size_t len;
};

/* A literal as bytes, without the terminating zero. */
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

/* Returns the piece of `text` before the first `end`, and removes both from `text`; without `end`, all of it. */
static inline struct hs_bytes hs_bytes_cut(struct hs_bytes *text, char end)
{
	const char *at = text->len ? memchr(text->data, end, text->len) : NULL;
	struct hs_bytes piece = {text->data, at ? (size_t)(at - text->data) : text->len};
	size_t used = piece.len + (at ? 1 : 0);

	*text = (struct hs_bytes){text->data + used, text->len - used};
	return piece;
}

/* Copies `bytes` to `*room` and advances it; returns the copy. */
static inline struct hs_bytes hs_bytes_place(char **room, struct hs_bytes bytes)
{
	struct hs_bytes placed = {*room, bytes.len};

	if (bytes.len > 0)
		memcpy(*room, bytes.data, bytes.len);
	*room += bytes.len;
	return placed;
}

/* Byte order; a prefix comes first. It is the order of keys in every tree. */
int hs_bytes_compare(struct hs_bytes a, struct hs_bytes b);

/* Compares without regard to ASCII case. `word`: the name of a command or an option. */
bool hs_bytes_is_word(struct hs_bytes a, const char *word);

/* Writes `a` with unprintable bytes, quotes and backslashes escaped (\xHH, \n, \" …), zero terminated and cut
 * to fit `size` bytes. For logs and error texts. Returns `text`. */
char *hs_bytes_escape(struct hs_bytes a, char *text, size_t size);
/* The letter of a byte's short escape, such as n for a newline; 0: none. */
char hs_bytes_escape_letter(char byte);

#endif
