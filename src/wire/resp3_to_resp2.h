/* Converts a reply from RESP3 to RESP2, as the same server would have sent it in RESP2. So one
 * fetched reply can be sent to clients of both protocol versions.
 *
 *     _  $-1, or *-1        ,1.5  $3 1.5        #t  :1        (12  $2 12        =8 txt:some  $4 some
 *     %2 …  *4 …            ~3 …  *3 …          |1 … (about what follows)  nothing
 *
 * RESP3 does not say two things, which the caller must know: whether a null is a null array (*-1)
 * or a null bulk string ($-1), and whether pairs are nested arrays or one flat array (members and
 * scores of sorted sets).
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
	/* [[member, score], …] becomes the flat array member, score, …; an array of other elements
	 * stays as it is. */
	HS_RESP2_FLAT_PAIRS = 1 << 1,
};

/* 1: the RESP2 form was appended to `out`. 0: the bytes are the same in both versions, nothing was
 * written. HS_EPROTO, and nothing written: `resp3` is not one whole reply, or it is a push. `how`:
 * enum hs_resp2_conversion. */
int hs_resp3_to_resp2(struct hs_bytes resp3, unsigned how, struct hs_buf *out) HS_MUSTCHECK;

#endif
