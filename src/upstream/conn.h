/* The socket of a struct hs_upstream on a libuv loop: name to address, TLS, the greeting, and then its bytes both
 * ways. It knows no request. The loop's thread alone.
 *
 * One driver serves all connections of one owner and outlives them. A connection that is opened says so once, not
 * from inside, with `up` or `down`; after `up` a single `down` may follow, and after `down` it may be opened again. */
#ifndef HS_UPSTREAM_CONN_H
#define HS_UPSTREAM_CONN_H

#include "tls/tls.h"
#include "upstream/greeting.h"
#include "upstream/upstream.h"

struct hs_names;
struct uv_loop_s;

/* How servers are reached; outlives the connections. */
struct hs_conn_config {
	struct hs_login login;
	struct hs_tls_context *tls; /* NULL: plain */
	struct hs_names *names;	    /* who looks up names */
	/* To connect, over all addresses of a name; and then to be greeted. */
	uint64_t open_ms_max;
};

struct hs_conn_driver {
	struct uv_loop_s *loop;
	const struct hs_conn_config *conn_config;
	char *buffer;	      /* of HS_READ_BYTES, shared by all connections of the loop */
	bool any_resp_server; /* for any endpoint that speaks RESP (greeting.h) */
	/* The owner's. */
	void *context;
	void (*up)(void *context, struct hs_upstream *upstream); /* its server_id is known now */
	void (*down)(void *context, struct hs_upstream *upstream, const char *why);
	void (*receive)(void *context, struct hs_upstream *upstream, const char *data, size_t len);
	/* Where to read to; NULL: `buffer`. The function may be NULL: hs_upstream_room. */
	char *(*room)(struct hs_upstream *upstream, size_t *room);
};

struct hs_conn_server {
	const char *host; /* a certificate must name it */
	uint16_t port;
	const char *expected_id; /* the node's, of a Cluster; "": whichever it is */
	/* HELLO alone (greeting.h), and the owner limits how long the reply may take: a server that runs a script
	 * answers late. */
	bool hello_only;
};

void hs_conn_open(const struct hs_conn_driver *driver, struct hs_upstream *upstream,
		  const struct hs_conn_server *server);
/* At any time, without a word; also where there is none. */
void hs_conn_close(struct hs_upstream *upstream);

/* Sends what `out` holds, now or as the server takes it, and empties it, unless something is on its way already:
 * then `out` goes on growing and is looked at again. upstream->sent counts the bytes in the kernel's hands. */
void hs_conn_send(struct hs_upstream *upstream);

#endif
