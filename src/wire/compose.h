/* Composes requests: arrays of bulk strings, the only form in which heatsink asks a Redis server
 * anything. It knows no command. The caller owns the buffer. */
#ifndef HS_WIRE_COMPOSE_H
#define HS_WIRE_COMPOSE_H

#include "base/buf.h"
#include "base/bytes.h"

/* A whole request. */
void hs_compose(struct hs_buf *out, size_t argc, const struct hs_bytes *argv);

/* A whole request of words between blanks: "CLIENT TRACKING ON". Returns how many words that were; of
 * none nothing is composed. */
size_t hs_compose_line(struct hs_buf *out, const char *line);
/* The first of its words at or behind `at`; empty at the end. */
struct hs_bytes hs_compose_next_word(const char *at);

/* A request piece by piece: its header, then `argc` words. */
void hs_compose_header(struct hs_buf *out, size_t argc);
void hs_compose_word(struct hs_buf *out, struct hs_bytes word);
static inline void hs_compose_text(struct hs_buf *out, const char *word)
{
	hs_compose_word(out, hs_bytes_of(word));
}

#endif
