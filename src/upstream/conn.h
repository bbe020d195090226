/* A connection to a Redis server on a libuv loop: name to address, TLS, the greeting, and then bytes
 * both ways. It knows no request. The loop's thread alone.
 *
 * It opens by itself and says so once, with `up` or `down`; after `up` a single `down` may follow.
 * hs_conn_close ends it at any time, without a word. */
#ifndef HS_UPSTREAM_CONN_H
#define HS_UPSTREAM_CONN_H

#include "base/buf.h"
#include "tls/tls.h"
#include "upstream/greeting.h"

#include <stdint.h>

struct hs_conn;
struct hs_names;
struct uv_loop_s;

/* How servers are reached; outlives the connections. */
struct hs_conn_identity {
	struct hs_login login;
	struct hs_tls_context *tls; /* NULL: plain */
	struct hs_names *names;	    /* who looks up names */
	/* To connect, over all addresses of a name; and then to be greeted. */
	uint64_t open_ms_max;
};

struct hs_conn_calls {
	void (*up)(void *context,
		   int64_t server_id); /* our number in its CLIENT LIST; 0: not said */
	void (*down)(void *context, const char *why);
	/* Where to read to; NULL in `*room` 0: any buffer. May be NULL. */
	char *(*room)(void *context, size_t *room);
	void (*receive)(void *context, const char *data, size_t len);
};

struct hs_conn_options {
	struct uv_loop_s *loop;
	const struct hs_conn_identity *identity;
	const char *host; /* a certificate must name it */
	uint16_t port;
	uint8_t resp;
	const char *expected_id; /* the node's, of a Cluster; "": whichever it is */
	/* HELLO alone (greeting.h), and the caller limits how long the reply may take: a server that runs a
	 * script answers late. */
	bool bare;
	bool classic; /* for any endpoint that speaks RESP (greeting.h) */
	const struct hs_conn_calls *calls;
	void *context;
	char *buffer; /* of HS_READ_BYTES, shared by all connections of the loop */
};

struct hs_conn *hs_conn_open(const struct hs_conn_options *options);
void hs_conn_close(struct hs_conn **conn);

/* Sends what `out` holds, now or as the other side takes it, and empties it, unless something is on
 * its way already: then `out` goes on growing and is looked at again. Returns how many bytes the
 * kernel has taken of all that was ever in `out`. */
void hs_conn_send(struct hs_conn *conn, struct hs_buf *out, uint64_t *sent);

#endif
