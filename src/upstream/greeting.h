/* The first words on a new connection to a Redis server, and what it answers: HELLO with the password and
 * our name, SELECT, and in a Cluster CLUSTER MYID, so that nobody takes another node's answers for those of
 * the one that was here before. Bytes in, bytes out; it knows no socket and no clock.
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

/* The beginning of the reason when it refuses anything else. */
#define HS_GREETING_REFUSED "it refuses us"

/* Who connects, and what an operator sets to change that; the texts outlive the connections. */
struct hs_login {
	const char *user;     /* "": the default user */
	const char *password; /* "": none */
	uint32_t db;
	const char *
		login_options; /* what to check when it is refused: "engine-user, engine-password" */
	const char *tls_on, *tls_off; /* how TLS is asked for, and how it is not */
};

struct hs_greeting_options {
	const struct hs_login *login;
	uint8_t resp;
	const char *expected_id; /* the node's, of a Cluster; "": whichever it is */
	/* Nothing is said but HELLO, and no database selected: a server that runs a script refuses
	 * everything else. */
	bool hello_only;
	/* For any endpoint that speaks RESP, also one that knows no HELLO: AUTH, SELECT, then PING, or HELLO 3
	 * for `resp` 3, which may be unknown there: then the replies are of RESP2. */
	bool any_resp_server;
};

struct hs_greeting {
	struct hs_greeting_options options;
	char expected_id[HS_NODE_ID_BYTES];
	uint32_t replies_left;
	int64_t server_id; /* our number in its CLIENT LIST; 0: not said */
	struct hs_buf in;
	char why[HS_GREETING_WHY_BYTES]; /* of FAILED */
};

enum hs_greeting_step { HS_GREETING_MORE, HS_GREETING_READY, HS_GREETING_FAILED };

void hs_greeting_init(struct hs_greeting *greeting, const struct hs_greeting_options *options);
void hs_greeting_deinit(struct hs_greeting *greeting);
void hs_greeting_compose(struct hs_greeting *greeting, struct hs_buf *out);
/* Bytes of the server. *used is how many of them belong to the greeting: behind it, after READY, come those
 * of the first replies. */
enum hs_greeting_step hs_greeting_receive(struct hs_greeting *greeting, const char *data,
					  size_t len, size_t *used);

#endif
