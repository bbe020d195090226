/* Writes replies to clients, in RESP2 or RESP3, into a buffer. (Replies of servers are parsed by
 * parse_reply.h.) It knows both protocol versions and no command. It borrows the buffer; the owner
 * of the buffer owns the bytes. No shared state: any thread, one struct per thread. */
#ifndef HS_WIRE_REPLY_H
#define HS_WIRE_REPLY_H

#include "base/buf.h"
#include "base/bytes.h"

#include <stdbool.h>
#include <stdint.h>

struct hs_reply {
	struct hs_buf *out;
	int resp; /* 2 or 3 */
	/* A bulk string that would make `out` longer than this is left out and `over` is set: the
	 * caller learns that the reply is large before it is copied, and drops what was written. 0:
	 * no limit. */
	size_t out_max;
	bool over;
};

void hs_reply_status(struct hs_reply *reply, const char *text); /* +OK */
void hs_reply_ok(struct hs_reply *reply);

/* -text. The text must begin with an error code: hs_reply_error(r, "ERR syntax error"); none is
 * added here. Line breaks become spaces. */
void hs_reply_error(struct hs_reply *reply, const char *text);
void hs_reply_error_bytes(struct hs_reply *reply, struct hs_bytes text);
void hs_reply_errorf(struct hs_reply *reply, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

void hs_reply_int(struct hs_reply *reply, int64_t value);
void hs_reply_bulk(struct hs_reply *reply, struct hs_bytes value);
void hs_reply_bulk_text(struct hs_reply *reply, const char *text);
void hs_reply_bulk_int(struct hs_reply *reply, int64_t value); /* the number as a bulk string */
void hs_reply_double(struct hs_reply *reply, double value);    /* RESP2: as a bulk string */
/* Rounded to `decimals`, without trailing zeros: 0.25, not 0.25000000000000000. */
void hs_reply_decimal(struct hs_reply *reply, double value, int decimals);
void hs_reply_bool(struct hs_reply *reply, bool value);		       /* RESP2: as 0 or 1 */
void hs_reply_verbatim(struct hs_reply *reply, struct hs_bytes value); /* RESP2: as a bulk string */

/* Null: $-1 in RESP2, _ in RESP3. */
void hs_reply_null(struct hs_reply *reply);
/* A null array: *-1 in RESP2, _ in RESP3. */
void hs_reply_null_array(struct hs_reply *reply);

/* A name and its value, for a map. */
void hs_reply_pair(struct hs_reply *reply, const char *name, struct hs_bytes value);
void hs_reply_pair_text(struct hs_reply *reply, const char *name, const char *text);
void hs_reply_pair_int(struct hs_reply *reply, const char *name, int64_t value);

/* Headers; the elements follow. In RESP2 a map of n pairs is an array of 2n, and a set and a push
 * are arrays. */
void hs_reply_array(struct hs_reply *reply, size_t count);
void hs_reply_map(struct hs_reply *reply, size_t pairs);
void hs_reply_set(struct hs_reply *reply, size_t count);
void hs_reply_push(struct hs_reply *reply, size_t count);

#endif
