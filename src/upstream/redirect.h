/* The two errors by which a node of a Cluster sends a client elsewhere:
 *
 *     MOVED 3999 10.0.0.2:7000    the slot is there from now on
 *     ASK 3999 10.0.0.2:7000      this one request, behind ASKING; the slot stays here for now */
#ifndef HS_UPSTREAM_REDIRECT_H
#define HS_UPSTREAM_REDIRECT_H

#include "base/bytes.h"

#include <stdbool.h>
#include <stdint.h>

struct hs_redirect {
	bool ask;
	uint16_t slot;
	/* Inside the text. Empty: the node that was asked, which does not know its name. "?": a host name,
	 * which nobody has set (cluster-preferred-endpoint-type): nobody knows where it is. */
	struct hs_bytes host;
	uint16_t port;
};

/* `text`: of an error reply, without '-' and the line end. False: it is no redirect. */
bool hs_redirect_parse(struct hs_redirect *redirect, struct hs_bytes text);

#endif
