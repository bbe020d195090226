/* TLS as a filter: bytes from the network in, plain bytes out, and the other way round. It knows no
 * socket, no loop and no protocol above or below; OpenSSL does the work and nobody above this folder
 * sees it.
 *
 *     network ──▶ hs_tls_receive ──▶ plain          plain ──▶ hs_tls_send ──▶ net
 *                        └─────────▶ net (handshakes, alerts)
 *
 * A context is what connections of one side have in common: certificates, whom to believe, which
 * versions and ciphers. It never changes after its creation and may be shared by any number of
 * threads; each connection holds it, so whoever made it may release it at any time and let new
 * connections have another one.
 *
 * A connection belongs to one thread. What it is given and what it fills are the caller's; it keeps
 * no plain bytes, and of the network's at most one unfinished record (16 KiB). A handshake that
 * takes more than HS_TLS_HANDSHAKE_BYTES_MAX from the other side fails, so nobody who has not shown
 * who he is can make us remember more. Renegotiation is refused and nothing is compressed. */
#ifndef HS_TLS_TLS_H
#define HS_TLS_TLS_H

#include "base/buf.h"
#include "base/check.h"

#include <stdbool.h>
#include <stddef.h>

struct hs_tls_context;
struct hs_tls;

enum hs_tls_role { HS_TLS_SERVER, HS_TLS_CLIENT };

enum hs_tls_verify {
	HS_TLS_VERIFY_REQUIRED, /* no handshake without a certificate that is believed */
	HS_TLS_VERIFY_NONE,	/* as a client: anybody may answer */
	HS_TLS_VERIFY_OPTIONAL, /* as a server: a client may have none, but not a wrong one */
};

/* Texts may be NULL or "" where there is none. */
struct hs_tls_options {
	enum hs_tls_role role;
	enum hs_tls_verify verify;
	const char *cert_file; /* PEM, its chain behind it; a server must have one */
	const char *key_file;  /* PEM */
	const char *key_file_pass;
	const char *ca_cert_file; /* whom to believe: a file, a folder of hashed names, or both; */
	const char *ca_cert_dir;  /* a client that has neither believes whom the system does */
	const char *protocols;	  /* of "TLSv1 TLSv1.1 TLSv1.2 TLSv1.3"; none: the last two */
	const char *ciphers;	  /* up to TLSv1.2, in OpenSSL's notation */
	const char *ciphersuites; /* TLSv1.3 */
	bool prefer_server_ciphers;
};

/* Whether protocols, ciphers and ciphersuites are understood; no file is looked at. HS_EINVAL. */
int hs_tls_check_rules(const struct hs_tls_options *options, char *error,
		       size_t error_size) HS_MUSTCHECK;
/* The error is one line and names the file and the reason. HS_EINVAL. */
int hs_tls_context_create(const struct hs_tls_options *options, struct hs_tls_context **context,
			  char *error, size_t error_size) HS_MUSTCHECK;
/* Any thread. */
struct hs_tls_context *hs_tls_context_hold(struct hs_tls_context *context); /* NULL stays NULL */
void hs_tls_context_release(struct hs_tls_context **context);

/* A client's `server_name` is whom it wants to talk to, a host name or an address: a certificate
 * that was made for another is refused (unless verify is NONE). NULL: anybody of whom the
 * authorities know. A server's is NULL. */
struct hs_tls *hs_tls_create(struct hs_tls_context *context, const char *server_name);
void hs_tls_destroy(struct hs_tls **tls);

/* Begins: a client has the first word. A server need not call it. */
int hs_tls_start(struct hs_tls *tls, struct hs_buf *net) HS_MUSTCHECK;

/* Bytes from the network, used up before it returns. Appends what they say to `plain` and what must
 * be sent because of them to `net`. Returns 0 or HS_EPROTO: the connection is useless, hs_tls_error
 * says why, and `net` may hold a last word to the other side that is worth sending. */
int hs_tls_receive(struct hs_tls *tls, const char *data, size_t len, struct hs_buf *plain,
		   struct hs_buf *net) HS_MUSTCHECK;

/* Appends `data`, encrypted, to `net`. Only when ready. */
int hs_tls_send(struct hs_tls *tls, const char *data, size_t len, struct hs_buf *net) HS_MUSTCHECK;

/* We send no more: appends that message, if there is anybody to understand it. */
void hs_tls_close(struct hs_tls *tls, struct hs_buf *net);

bool hs_tls_ready(const struct hs_tls *tls); /* the handshake is over and went well */
bool hs_tls_ended(const struct hs_tls *tls); /* the other side has said that it sends no more */

/* Why it failed, one line; "" while it has not. */
const char *hs_tls_error(const struct hs_tls *tls);

/* Whether these bytes begin as a TLS record does, for the first bytes of a connection: to tell a peer that
 * speaks TLS on a plain port, or the reverse, what is wrong. */
static inline bool hs_tls_begins(const char *data, size_t len)
{
	return len > 0 && data[0] >= 0x14 && data[0] <= 0x17 && (len < 2 || data[1] == 0x03);
}

#endif
