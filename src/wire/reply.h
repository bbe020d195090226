/* Composes replies in RESP2 or RESP3 into a buffer. It knows the two dialects and nothing of
 * commands. The writer borrows the buffer; whoever owns the buffer owns the bytes. */
#ifndef HS_WIRE_REPLY_H
#define HS_WIRE_REPLY_H

#include "base/buf.h"
#include "base/bytes.h"

#include <stdbool.h>
#include <stdint.h>

struct hs_reply {
	struct hs_buf *out;
	int resp; /* 2 or 3 */
	/* A string that would make `out` longer than this is left out and `over` set: the caller finds
	 * out that a reply is large before it is copied, and drops what was written. 0: no limit. */
	size_t out_max;
	bool over;
};

void hs_reply_status(struct hs_reply *reply, const char *text); /* +OK */
void hs_reply_ok(struct hs_reply *reply);

/* -text. A text without an upper-case code gets "ERR " put before it by the caller, never here:
 * hs_reply_error(r, "ERR syntax error"). Line breaks become spaces. */
void hs_reply_error(struct hs_reply *reply, const char *text);
void hs_reply_error_bytes(struct hs_reply *reply, struct hs_bytes text);
void hs_reply_errorf(struct hs_reply *reply, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

void hs_reply_int(struct hs_reply *reply, int64_t value);
void hs_reply_bulk(struct hs_reply *reply, struct hs_bytes value);
void hs_reply_bulk_text(struct hs_reply *reply, const char *text);
void hs_reply_bulk_int(struct hs_reply *reply, int64_t value); /* the number as a bulk string */
void hs_reply_double(struct hs_reply *reply, double value);    /* RESP2: as a bulk string */
/* Rounded to so many decimals, without zeros at the end: 0.25, not 0.25000000000000000. */
void hs_reply_decimal(struct hs_reply *reply, double value, int decimals);
void hs_reply_bool(struct hs_reply *reply, bool value);		       /* RESP2: as 0 or 1 */
void hs_reply_verbatim(struct hs_reply *reply, struct hs_bytes value); /* RESP2: as a bulk string */

/* The missing value: $-1 in RESP2, _ in RESP3. */
void hs_reply_null(struct hs_reply *reply);
/* The missing array: *-1 in RESP2, _ in RESP3. */
void hs_reply_null_array(struct hs_reply *reply);

/* A name and its value, in a map. */
void hs_reply_pair(struct hs_reply *reply, const char *name, struct hs_bytes value);
void hs_reply_pair_text(struct hs_reply *reply, const char *name, const char *text);
void hs_reply_pair_int(struct hs_reply *reply, const char *name, int64_t value);

/* Headers: the elements follow. A map of n pairs is an array of 2n in RESP2; a set and a push are
 * arrays there. */
void hs_reply_array(struct hs_reply *reply, size_t count);
void hs_reply_map(struct hs_reply *reply, size_t pairs);
void hs_reply_set(struct hs_reply *reply, size_t count);
void hs_reply_push(struct hs_reply *reply, size_t count);

#endif
