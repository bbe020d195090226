/* Writes requests: arrays of bulk strings, the only form in which heatsink sends commands to a
 * Redis server. It knows no command. The caller owns the buffer. No state: any thread. */
#ifndef HS_WIRE_COMPOSE_H
#define HS_WIRE_COMPOSE_H

#include "base/buf.h"
#include "base/bytes.h"

/* A whole request. */
void hs_compose(struct hs_buf *out, size_t argc, const struct hs_bytes *argv);

/* A whole request from a line of words: "CLIENT TRACKING ON". Returns the number of words; a line
 * without words writes nothing. */
size_t hs_compose_line(struct hs_buf *out, const char *line);
/* The first word of a line at or after `at`; empty at the end. */
struct hs_bytes hs_compose_next_word(const char *at);

/* A request in pieces: its header, then `argc` words. */
void hs_compose_header(struct hs_buf *out, size_t argc);
void hs_compose_word(struct hs_buf *out, struct hs_bytes word);
static inline void hs_compose_text(struct hs_buf *out, const char *word)
{
	hs_compose_word(out, hs_bytes_of(word));
}

#endif
