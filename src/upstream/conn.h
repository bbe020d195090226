/* Drives the socket of a struct hs_upstream on a libuv loop: name lookup, TCP, TLS, the greeting, then bytes both
 * ways. It knows no request. The loop's thread alone.
 *
 * One driver serves all connections of one owner and outlives them. After hs_conn_open it calls `up` or `down`
 * exactly once, never from inside hs_conn_open. After `up` it calls `down` at most once. After `down` the connection
 * may be opened again.
 *
 * Bad days: a name that is not found, a refused or lost connection, a TLS error, a refused login, a timeout:
 * `down` with a text for people. The driver does not retry. A timeout during the lookup cancels the lookup; its
 * thread runs on (names.h). */
#ifndef HS_UPSTREAM_CONN_H
#define HS_UPSTREAM_CONN_H

#include "tls/tls.h"
#include "upstream/greeting.h"
#include "upstream/upstream.h"

struct hs_names;
struct uv_loop_s;

/* How to reach servers; outlives the connections. */
struct hs_conn_config {
	struct hs_login login;
	struct hs_tls_context *tls; /* NULL: without TLS */
	struct hs_names *names;	    /* does the lookups */
	/* The timeout of each of three steps: the name lookup; connecting, over all addresses of the name
	 * together; TLS handshake and greeting. An IP address needs no lookup. */
	uint64_t open_ms_max;
};

struct hs_conn_driver {
	struct uv_loop_s *loop;
	const struct hs_conn_config *conn_config;
	char *buffer;	      /* HS_READ_BYTES, shared by all connections of the loop */
	bool any_resp_server; /* the greeting for any RESP server (greeting.h) */
	/* The owner's functions. */
	void *context;
	void (*up)(void *context, struct hs_upstream *upstream); /* upstream->server_id is set */
	void (*down)(void *context, struct hs_upstream *upstream, const char *why);
	void (*receive)(void *context, struct hs_upstream *upstream, const char *data, size_t len);
	/* Where to read to; NULL: `buffer`. The function itself may be NULL: hs_upstream_room. */
	char *(*room)(struct hs_upstream *upstream, size_t *room);
};

struct hs_conn_server {
	const char *host; /* a TLS certificate must match it */
	uint16_t port;
	const char *expected_id; /* node id in a Cluster; "": any node */
	/* HELLO alone (greeting.h), without a timeout for TLS handshake and HELLO: a server that runs a script
	 * answers late. The owner limits the wait, and passes "" as `expected_id`. */
	bool hello_only;
};

void hs_conn_open(const struct hs_conn_driver *driver, struct hs_upstream *upstream,
		  const struct hs_conn_server *server);
/* May be called at any time; does nothing without a connection. `down` is not called. */
void hs_conn_close(struct hs_upstream *upstream);

/* Sends and empties upstream->out, at once or as the server takes it. While an earlier write is in progress `out`
 * stays and goes with the next write. upstream->sent counts the bytes that the server may have got: those that the
 * kernel took, and all of a write that failed. Over TLS bytes count when they are encrypted. */
void hs_conn_send(struct hs_upstream *upstream);

#endif
