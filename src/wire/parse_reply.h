/* Parses replies that a server sent, RESP2 or RESP3: for the redis engine, merges, the cache and
 * the load generator. (Replies to clients are written by reply.h; requests of clients are parsed by
 * request.h.)
 *
 * It finds the end of a reply and reads its first element. The elements of an aggregate are read by
 * further calls on the bytes after its header. It copies nothing and may stop at any byte. It knows
 * no command and no connection.
 *
 * No shared state: any thread. Results point into the caller's bytes. Invalid bytes are HS_EPROTO,
 * never an assertion; lengths are limited to HS_BULK_BYTES_MAX and HS_ARGC_MAX. */
#ifndef HS_WIRE_PARSE_REPLY_H
#define HS_WIRE_PARSE_REPLY_H

#include "base/bytes.h"
#include "base/check.h"

#include <stdint.h>

enum hs_parsed_reply_type {
	HS_PARSED_STATUS,
	HS_PARSED_ERROR,
	HS_PARSED_INT,
	HS_PARSED_BULK, /* bulk string, verbatim string */
	HS_PARSED_NULL,
	HS_PARSED_DOUBLE, /* double, big number: as text */
	HS_PARSED_BOOL,
	HS_PARSED_ARRAY, /* array, set */
	HS_PARSED_MAP,	 /* `count` pairs */
	HS_PARSED_PUSH,
	HS_PARSED_ATTRIBUTE, /* `count` pairs about the reply that follows them */
};

struct hs_parsed_reply {
	enum hs_parsed_reply_type type;
	struct hs_bytes text; /* STATUS, ERROR, BULK, DOUBLE: points into the input */
	int64_t integer;      /* INT and BOOL */
	int64_t count;	      /* ARRAY, MAP, PUSH, ATTRIBUTE */
};

/* Parses the first element of `data`. Returns the bytes read (for an aggregate: its header only), 0
 * when more are needed, HS_EPROTO for an invalid element. */
int64_t hs_parse_reply_head(struct hs_parsed_reply *parsed, const char *data,
			    size_t len) HS_MUSTCHECK;

/* The length of one whole reply with everything inside it; 0 when more bytes are needed, HS_EPROTO
 * when it is invalid. */
int64_t hs_parse_reply_length(const char *data, size_t len) HS_MUSTCHECK;

/* The elements of an array, set or map; empty for anything else, and for an invalid or unfinished
 * header. */
struct hs_bytes hs_parse_reply_elements(struct hs_bytes reply);
/* Splits the next element off the front of `elements`. False, and `element` is empty, at the end;
 * and also when the rest is no whole element. To tell the two apart, check the reply with
 * hs_parse_reply_length first. */
bool hs_parse_reply_take(struct hs_bytes *elements, struct hs_bytes *element);

/* Finds the end of a reply that arrives in pieces and reads no whole element twice. All zeros is
 * the initial state. */
struct hs_parse_reply_scan {
	size_t at; /* bytes before this are read */
	/* elements still missing minus 1, so that zeros mean: one element missing */
	int64_t missing_less_one;
	/* after a return of 0: the whole reply has at least this many bytes (0: nothing known) */
	size_t need;
};

/* `data` starts at the reply's first byte, perhaps at another address, and has more bytes than at
 * the last call. Returns like hs_parse_reply_length; after a whole reply the scan is in its initial
 * state. */
int64_t hs_parse_reply_scan(struct hs_parse_reply_scan *scan, const char *data,
			    size_t len) HS_MUSTCHECK;

#endif
