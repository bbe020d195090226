/* The request parser: turns a client's bytes into argument lists, multibulk or inline, and may stop
 * at any byte. It knows no command and no key, copies nothing of a multibulk request and holds no
 * input: the caller keeps the bytes of an unfinished request together and calls again with more.
 * One parser per connection; the thread that owns the connection calls it. Invalid bytes are
 * HS_EPROTO with Redis's text; the connection must then be closed. */
#ifndef HS_WIRE_REQUEST_H
#define HS_WIRE_REQUEST_H

#include "base/bytes.h"
#include "base/check.h"
#include "base/limits.h"

#include <stdbool.h>
#include <stdint.h>

struct hs_wire_request {
	/* The result: valid after a return above 0, until the next call or until the input moves.
	 * Slices of the caller's bytes; of an inline request, slices of `unquoted`. */
	struct hs_bytes *argv;
	size_t argc;

	const char *error; /* Redis's text after HS_EPROTO, without "-ERR " */
	/* after a return of 0: the least size of the whole request, as far as known */
	size_t need;

	/* Progress of an unfinished request; offsets from its first byte. */
	int64_t args_left; /* arguments still to read; -1: the header is not read yet */
	int64_t bulk_left; /* length of the current argument; -1: its header is next */
	size_t at;	   /* bytes before this are parsed */
	size_t argv_cap;
	char *unquoted; /* the words of an inline request, without quotes; owned */
	char error_text[64];
	struct hs_bytes argv_inline[HS_ARGC_INLINE];
};

void hs_wire_request_init(struct hs_wire_request *request);
void hs_wire_request_deinit(struct hs_wire_request *request);

/* `data` starts at the first byte of a request. Returns the bytes of one whole request (argc may be
 * 0: an empty line or array, to be ignored), 0 when more are needed (call again with the same bytes
 * and more after them; they may have moved), or HS_EPROTO with request->error set. `trusted`: the
 * client has authenticated, so the smaller limits before AUTH do not hold. */
int64_t hs_wire_request_parse(struct hs_wire_request *request, const char *data, size_t len,
			      bool trusted) HS_MUSTCHECK;

#endif
