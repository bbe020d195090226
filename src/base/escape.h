/* A client's bytes as text, for JSON, metrics and terminals: one way of writing them everywhere, so
 * that a key can be searched for in every place where it was seen.
 *
 * Printable UTF-8 stays. A backslash and a double quote get a backslash; a newline, a carriage
 * return and a tab become \n, \r and \t; each byte of any other control character (those that turn
 * the direction of writing or break the line among them), and each byte that is not part of valid
 * UTF-8, becomes \xNN. So the text is valid UTF-8 and one line, does nothing to a terminal, and can
 * be read back: no two keys look the same. `hs_bytes_escape` writes plain ASCII for the log. */
#ifndef HS_BASE_ESCAPE_H
#define HS_BASE_ESCAPE_H

#include "base/buf.h"
#include "base/bytes.h"

#include <stdint.h>

enum { HS_ESCAPE_GROWTH = 4 }; /* bytes of text that one byte becomes at most */

/* Appends the text. */
void hs_escape(struct hs_bytes bytes, struct hs_buf *text);

/* Appends them as a word of a line that is split like an inline command, a line of the configuration
 * file: bare where that says the same, in quotes else. Plain ASCII. */
void hs_escape_word(struct hs_bytes bytes, struct hs_buf *text);

/* The length of the valid UTF-8 sequence that `bytes` starts with, 1 to 4, and its character; 0 when
 * it starts with none. */
size_t hs_escape_utf8(struct hs_bytes bytes, uint32_t *character);

#endif
