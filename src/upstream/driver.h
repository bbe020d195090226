/* Drives connections that are a struct hs_upstream on a libuv loop: each is a struct hs_conn (conn.h) whose bytes
 * go from `out` and whose fate is told to the owner. One driver serves all connections of one owner and outlives
 * them. The loop's thread alone. */
#ifndef HS_UPSTREAM_DRIVER_H
#define HS_UPSTREAM_DRIVER_H

#include "upstream/conn.h"
#include "upstream/upstream.h"

struct hs_upstream_driver {
	struct uv_loop_s *loop;
	const struct hs_conn_identity *identity;
	char *buffer; /* HS_READ_BYTES, shared by all connections of the loop */
	/* The owner's: what happened to an upstream that was opened. After `down` it may be opened again. */
	void *context;
	void (*up)(void *context, struct hs_upstream *upstream);
	void (*down)(void *context, struct hs_upstream *upstream, const char *why);
	void (*receive)(void *context, struct hs_upstream *upstream, const char *data, size_t len);
};

/* `expected_id` as in conn.h. `up` or `down` follows, not from inside. */
void hs_upstream_driver_open(struct hs_upstream_driver *driver, struct hs_upstream *upstream,
			     const char *host, uint16_t port, const char *expected_id);
void hs_upstream_driver_close(struct hs_upstream *upstream); /* nothing more is told of it */
void hs_upstream_driver_send(struct hs_upstream *upstream);  /* what `out` has */

#endif
