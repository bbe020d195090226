/* Parses the two errors by which a node of a Cluster redirects a command:
 *
 *     MOVED 3999 10.0.0.2:7000    the slot has this owner
 *     ASK 3999 10.0.0.2:7000      this one command, behind ASKING: the slot is migrating there
 *
 * Pure. */
#ifndef HS_UPSTREAM_REDIRECT_H
#define HS_UPSTREAM_REDIRECT_H

#include "base/bytes.h"

#include <stdbool.h>
#include <stdint.h>

struct hs_redirect {
	bool ask;
	uint16_t slot;
	/* Inside the text. Empty: the node that was asked. "?": unknown (cluster-preferred-endpoint-type hostname,
	 * and the node has no host name). */
	struct hs_bytes host;
	uint16_t port;
};

/* `text`: the error without '-' and line end. False: not a redirect. */
bool hs_redirect_parse(struct hs_redirect *redirect, struct hs_bytes text);

#endif
