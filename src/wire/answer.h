/* Reads replies: for clients of a Redis endpoint (storm, engines, merges). Finds where a reply
 * ends and what its outermost element is; elements of an aggregate are read by calling again on
 * the bytes behind the header. Copies nothing, stops at any byte. */
#ifndef HS_WIRE_ANSWER_H
#define HS_WIRE_ANSWER_H

#include "base/bytes.h"
#include "base/check.h"

#include <stdint.h>

enum hs_answer_type {
	HS_ANSWER_STATUS,
	HS_ANSWER_ERROR,
	HS_ANSWER_INT,
	HS_ANSWER_BULK, /* bulk, verbatim */
	HS_ANSWER_NULL,
	HS_ANSWER_DOUBLE, /* double, big number: as text */
	HS_ANSWER_BOOL,
	HS_ANSWER_ARRAY, /* array, set */
	HS_ANSWER_MAP,	 /* `count` pairs */
	HS_ANSWER_PUSH,
	HS_ANSWER_ATTRIBUTE, /* `count` pairs about the reply, which follows behind them */
};

struct hs_answer {
	enum hs_answer_type type;
	struct hs_bytes text; /* status, error, bulk, double: inside the input */
	int64_t integer;      /* INT and BOOL */
	int64_t count;	      /* ARRAY, MAP, PUSH, ATTRIBUTE */
};

/* The first element of `data`. Returns the bytes read (an aggregate's: its header only), 0 when
 * more are needed, HS_EPROTO for what is no reply. */
int64_t hs_answer_head(struct hs_answer *answer, const char *data, size_t len) HS_MUSTCHECK;

/* The bytes of one whole reply with everything inside it; 0 when more are needed, HS_EPROTO. */
int64_t hs_answer_length(const char *data, size_t len) HS_MUSTCHECK;

/* The elements of an array, set or map; empty for anything else. */
struct hs_bytes hs_answer_elements(struct hs_bytes reply);
/* Takes the next element off their front; false, and an empty one, at the end. */
bool hs_answer_take(struct hs_bytes *elements, struct hs_bytes *element);

/* Looks for the end of one whole reply that comes in pieces, each byte once. Begins as zeros. */
struct hs_answer_scan {
	size_t at;    /* what lies before is read */
	int64_t owed; /* elements still to come, less the one it begins with */
	size_t need;  /* after 0: how many bytes the reply has at least, in all; a hint */
};

/* `data` starts at the reply's first byte, moved or not, with more behind it than last time.
 * Returns as hs_answer_length; behind a whole reply the scan is as new. */
int64_t hs_answer_scan(struct hs_answer_scan *scan, const char *data, size_t len) HS_MUSTCHECK;

#endif
