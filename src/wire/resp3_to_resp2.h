/* Converts a reply from RESP3 to RESP2, as the same server would have sent it in RESP2. So one
 * fetched reply can be sent to clients of both protocol versions.
 *
 * RESP3 on the left, RESP2 on the right of each pair:
 *
 *     _  $-1, or *-1        ,1.5  $3 1.5        #t  :1        (12  $2 12        =8 txt:some  $4 some
 *     %2 …  *4 …            ~3 …  *3 …          |1 … (attributes of the element after them)  left out
 *
 * Two things cannot be seen in the RESP3 bytes; the caller must know them (`how`): whether a null
 * is *-1 (a null array) or $-1 (a null bulk string) in RESP2, and whether nested pairs are one flat
 * array in RESP2 (members and scores of sorted sets).
 *
 * It knows no command. No state and no recursion: any thread may call it, and nesting costs no
 * memory. `out` is the caller's. */
#ifndef HS_WIRE_RESP3_TO_RESP2_H
#define HS_WIRE_RESP3_TO_RESP2_H

#include "base/buf.h"
#include "base/bytes.h"
#include "base/check.h"

enum hs_resp2_conversion {
	HS_RESP2_NULL_ARRAYS = 1 << 0, /* write nulls as *-1 */
	/* [[member, score], …] becomes the flat array member, score, …; an array whose first
	 * element is no pair stays as it is. */
	HS_RESP2_FLAT_PAIRS = 1 << 1,
};

/* 1: the RESP2 form was appended to `out`. 0: the bytes are the same in both versions, nothing was
 * written. HS_EPROTO, and nothing written: `resp3` is not one whole reply, it contains a push or an
 * aggregate of more than HS_ARGC_MAX elements, or HS_RESP2_FLAT_PAIRS meets a pair first and
 * something else later (also an aggregate inside a pair). `how`: enum hs_resp2_conversion. */
int hs_resp3_to_resp2(struct hs_bytes resp3, unsigned how, struct hs_buf *out) HS_MUSTCHECK;

#endif
