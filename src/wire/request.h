/* The request parser: bytes of a client to argument lists, multibulk or inline, stopping at any
 * byte. It knows no command and no key, copies nothing and holds no input: the caller keeps the
 * bytes of an unfinished request together and calls again with more. One parser per connection;
 * the thread that owns the connection calls it. */
#ifndef HS_WIRE_REQUEST_H
#define HS_WIRE_REQUEST_H

#include "base/bytes.h"
#include "base/check.h"
#include "base/limits.h"

#include <stdbool.h>
#include <stdint.h>

struct hs_wire_request {
	/* The result, valid after a call returned >0 and until the input is moved or the next call:
	 * slices of the caller's bytes (inline arguments with quotes: of `unquoted`). */
	struct hs_bytes *argv;
	size_t argc;

	const char *error; /* Redis's text after HS_EPROTO, without "-ERR " */
	size_t need;	   /* after 0: how many bytes the request has at least, in all; a hint */

	/* Where an unfinished request stands; offsets from its first byte. */
	int64_t args_left; /* -1: its header is not read yet */
	int64_t bulk_left; /* length of the argument being read; -1: its header is next */
	size_t at;	   /* what lies before is parsed */
	size_t argv_cap;
	char *unquoted; /* an inline command's unquoted text, owned */
	char error_text[64];
	struct hs_bytes argv_inline[HS_ARGC_INLINE];
};

void hs_wire_request_init(struct hs_wire_request *request);
void hs_wire_request_deinit(struct hs_wire_request *request);

/* `data` starts at the first byte of a request. Returns the bytes that make up one whole request
 * (argc may be 0: an empty line or array, to be ignored), 0 when more are needed (call again with
 * the same bytes and more behind them, moved or not), or HS_EPROTO with request->error set.
 * `trusted` lifts the smaller limits that hold before a client has authenticated. */
int64_t hs_wire_request_parse(struct hs_wire_request *request, const char *data, size_t len,
			      bool trusted) HS_MUSTCHECK;

#endif
