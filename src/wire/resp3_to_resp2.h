/* A reply in RESP3 as the same server would have written it in RESP2. So what was read once can be
 * given to clients of both dialects.
 *
 *     _  $-1, or *-1        ,1.5  $3 1.5        #t  :1        (12  $2 12        =8 txt:some  $4 some
 *     %2 …  *4 …            ~3 …  *3 …          |1 … (about what follows)  nothing
 *
 * Two things RESP3 does not say, and the caller must know: whether a missing thing was to be an array,
 * and whether pairs were to be written one behind the other (members and scores of sorted sets).
 *
 * Knows no command. No state, no recursion: nesting costs no memory. */
#ifndef HS_WIRE_RESP3_TO_RESP2_H
#define HS_WIRE_RESP3_TO_RESP2_H

#include "base/buf.h"
#include "base/bytes.h"
#include "base/check.h"

enum hs_resp2_conversion {
	HS_RESP2_NULL_ARRAYS = 1 << 0, /* what is missing is a missing array */
	/* An array of [one, other] is the one, the other, the one …; one of anything else stays. */
	HS_RESP2_FLAT_PAIRS = 1 << 1,
};

/* 1: written behind what is in `out`. 0: the bytes are the same in both, nothing was written.
 * HS_EPROTO, and nothing written: `resp3` is not one whole reply, or it is a push, which nobody asked
 * for. `how`: of enum hs_resp2_conversion. */
int hs_resp3_to_resp2(struct hs_bytes resp3, unsigned how, struct hs_buf *out) HS_MUSTCHECK;

#endif
