/* The first requests on a new connection to a Redis server, and their replies: HELLO with login and client name,
 * SELECT, and in a Cluster CLUSTER MYID, which detects that another node has taken over the address. Bytes in, bytes
 * out: it knows no socket and no clock. One thread.
 *
 *     compose ──► HELLO 3 AUTH user password SETNAME heatsink, SELECT 2, CLUSTER MYID
 *     receive ◄── replies ──► READY, or FAILED with the reason */
#ifndef HS_UPSTREAM_GREETING_H
#define HS_UPSTREAM_GREETING_H

#include "base/buf.h"
#include "core/engine_unavailable.h" /* HS_LOGIN_REFUSED */

#include <stdbool.h>
#include <stdint.h>

enum { HS_GREETING_WHY_BYTES = 256, HS_NODE_ID_BYTES = 41 };

/* Prefix of `why` when the server refuses for a reason other than the login (HS_LOGIN_REFUSED). */
#define HS_GREETING_REFUSED "the server refuses the connection"

/* The login, and the names of the options that set it, for error texts. The texts outlive the connections. */
struct hs_login {
	const char *user;     /* "": the default user */
	const char *password; /* "": none */
	uint32_t db;
	const char *login_options;    /* for errors: "engine-user, engine-password" */
	const char *tls_on, *tls_off; /* for errors: how to ask for TLS, and for none */
};

struct hs_greeting_options {
	const struct hs_login *login;
	uint8_t resp;
	const char *expected_id; /* node id in a Cluster; "": any node */
	/* HELLO without SELECT. A server that runs a script refuses SELECT and CLUSTER MYID, so the caller passes
	 * "" as `expected_id`: then CLUSTER MYID is not sent either. */
	bool hello_only;
	/* For any server that speaks RESP, also without HELLO: AUTH, SELECT, then PING; for `resp` 3 HELLO 3 in
	 * place of PING. If the server refuses HELLO its replies are RESP2. */
	bool any_resp_server;
};

struct hs_greeting {
	struct hs_greeting_options options;
	char expected_id[HS_NODE_ID_BYTES];
	uint32_t replies_left;
	int64_t server_id; /* this connection's id in CLIENT LIST; 0: not reported */
	struct hs_buf in;
	char why[HS_GREETING_WHY_BYTES]; /* if FAILED */
};

enum hs_greeting_step { HS_GREETING_MORE, HS_GREETING_READY, HS_GREETING_FAILED };

void hs_greeting_init(struct hs_greeting *greeting, const struct hs_greeting_options *options);
void hs_greeting_deinit(struct hs_greeting *greeting);
void hs_greeting_compose(struct hs_greeting *greeting, struct hs_buf *out);
/* Takes bytes of the server. *used: how many belong to the greeting; after READY the first replies to the owner
 * follow. */
enum hs_greeting_step hs_greeting_receive(struct hs_greeting *greeting, const char *data,
					  size_t len, size_t *used);

#endif
