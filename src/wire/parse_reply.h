/* Reads replies: for clients of a Redis endpoint (storm, engines, merges). Finds where a reply
 * ends and what its outermost element is; elements of an aggregate are read by calling again on
 * the bytes behind the header. Copies nothing, stops at any byte. */
#ifndef HS_WIRE_PARSE_REPLY_H
#define HS_WIRE_PARSE_REPLY_H

#include "base/bytes.h"
#include "base/check.h"

#include <stdint.h>

enum hs_parsed_reply_type {
	HS_PARSED_STATUS,
	HS_PARSED_ERROR,
	HS_PARSED_INT,
	HS_PARSED_BULK, /* bulk, verbatim */
	HS_PARSED_NULL,
	HS_PARSED_DOUBLE, /* double, big number: as text */
	HS_PARSED_BOOL,
	HS_PARSED_ARRAY, /* array, set */
	HS_PARSED_MAP,	 /* `count` pairs */
	HS_PARSED_PUSH,
	HS_PARSED_ATTRIBUTE, /* `count` pairs about the reply, which follows behind them */
};

struct hs_parsed_reply {
	enum hs_parsed_reply_type type;
	struct hs_bytes text; /* status, error, bulk, double: inside the input */
	int64_t integer;      /* INT and BOOL */
	int64_t count;	      /* ARRAY, MAP, PUSH, ATTRIBUTE */
};

/* The first element of `data`. Returns the bytes read (an aggregate's: its header only), 0 when
 * more are needed, HS_EPROTO for what is no reply. */
int64_t hs_parse_reply_head(struct hs_parsed_reply *parsed, const char *data,
			    size_t len) HS_MUSTCHECK;

/* The bytes of one whole reply with everything inside it; 0 when more are needed, HS_EPROTO. */
int64_t hs_parse_reply_length(const char *data, size_t len) HS_MUSTCHECK;

/* The elements of an array, set or map; empty for anything else. */
struct hs_bytes hs_parse_reply_elements(struct hs_bytes reply);
/* Takes the next element off their front; false, and an empty one, at the end. */
bool hs_parse_reply_take(struct hs_bytes *elements, struct hs_bytes *element);

/* Looks for the end of one whole reply that comes in pieces, each byte once. Begins as zeros. */
struct hs_parse_reply_scan {
	size_t at;		  /* what lies before is read */
	int64_t missing_less_one; /* elements still to come, less the one it begins with */
	size_t need; /* after 0: how many bytes the reply has at least, in all; a hint */
};

/* `data` starts at the reply's first byte, moved or not, with more behind it than last time.
 * Returns as hs_parse_reply_length; behind a whole reply the scan is as new. */
int64_t hs_parse_reply_scan(struct hs_parse_reply_scan *scan, const char *data,
			    size_t len) HS_MUSTCHECK;

#endif
