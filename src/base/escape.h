/* A client's bytes as text for JSON, metrics and terminals. All three use the same form, so that an operator
 * can search for a key in every place that shows it.
 *
 * Printable UTF-8 stays. A backslash and a double quote get a backslash. A newline, a carriage return and a tab
 * become \n, \r and \t. Each byte of any other control character (line breaks and changes of the writing
 * direction, too), and each byte that is not valid UTF-8, becomes \xNN. So the text is valid UTF-8 in one line,
 * cannot control a terminal, and can be read back: no two keys look the same. hs_bytes_escape (base/bytes.h)
 * writes plain ASCII for the log. */
#ifndef HS_BASE_ESCAPE_H
#define HS_BASE_ESCAPE_H

#include "base/buf.h"
#include "base/bytes.h"

#include <stdint.h>

enum { HS_ESCAPE_GROWTH = 4 }; /* bytes of text for one byte, at most */

void hs_escape(struct hs_bytes bytes, struct hs_buf *text);

/* Appends the bytes as one word of a configuration line, which is split like an inline command: bare if that
 * reads back the same, else in quotes. Plain ASCII. */
void hs_escape_word(struct hs_bytes bytes, struct hs_buf *text);

/* The length, 1 to 4, of the valid UTF-8 sequence at the start of `bytes`, and its character; 0: none. */
size_t hs_escape_utf8(struct hs_bytes bytes, uint32_t *character);

#endif
