/* TLS as a filter, in both roles: bytes from the network in, plain bytes out, and the other way round. It knows no
 * socket, no loop and no protocol above or below. It hides OpenSSL from the rest of heatsink.
 *
 *     network ──▶ hs_tls_receive ──▶ plain          plain ──▶ hs_tls_send ──▶ net
 *                        └─────────▶ net (handshakes, alerts)
 *
 * A context holds what the connections of one side share: certificates, trusted CAs, versions and ciphers. It is
 * immutable and reference counted; any number of threads may share it. A connection holds a reference, so the
 * creator may release the context at any time and use another one for new connections.
 *
 * A connection belongs to one thread. Its input and output buffers belong to the caller. It stores no plain bytes
 * and at most one unfinished record (16 KiB).
 *
 * Bad days: a failed handshake, a refused certificate or a corrupt record is HS_EPROTO, and hs_tls_error has the
 * reason. A handshake that needs more than HS_TLS_HANDSHAKE_BYTES_MAX of the peer fails, so that an unauthenticated
 * peer can make a connection hold no more than that. Renegotiation is refused; nothing is compressed. Out of memory
 * ends the process. */
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
	HS_TLS_VERIFY_REQUIRED, /* the peer must have a certificate that a trusted CA signed */
	/* The peer's certificate is not verified; a server does not ask for one. */
	HS_TLS_VERIFY_NONE,
	/* Server role: a client may have no certificate, but not an invalid one. */
	HS_TLS_VERIFY_OPTIONAL,
};

/* Texts may be NULL or "": not given. */
struct hs_tls_options {
	enum hs_tls_role role;
	enum hs_tls_verify verify;
	const char *cert_file; /* PEM, with its chain behind it; a server must have one */
	const char *key_file;  /* PEM */
	const char *key_file_pass;
	const char *ca_cert_file; /* trusted CAs: a file */
	/* Trusted CAs: a folder of hashed names; a client without either trusts the system's. */
	const char *ca_cert_dir;
	const char *protocols;	  /* some of "TLSv1 TLSv1.1 TLSv1.2 TLSv1.3"; none: the last two */
	const char *ciphers;	  /* up to TLSv1.2, in OpenSSL's notation */
	const char *ciphersuites; /* TLSv1.3 */
	bool prefer_server_ciphers;
};

/* Checks protocols, ciphers and ciphersuites without opening a file. HS_EINVAL: `error` is one line with the
 * reason. */
int hs_tls_check_rules(const struct hs_tls_options *options, char *error,
		       size_t error_size) HS_MUSTCHECK;
/* HS_EINVAL: `error` is one line with the file and the reason. */
int hs_tls_context_create(const struct hs_tls_options *options, struct hs_tls_context **context,
			  char *error, size_t error_size) HS_MUSTCHECK;
/* Takes a reference. Any thread. */
struct hs_tls_context *hs_tls_context_hold(struct hs_tls_context *context); /* NULL stays NULL */
void hs_tls_context_release(struct hs_tls_context **context);

/* `server_name`: in the client role, the host name or address that the server's certificate must match (unless
 * verify is NONE); NULL: any certificate of a trusted CA. In the server role NULL. An invalid name is reported by
 * the first hs_tls_start or hs_tls_receive: HS_EPROTO. Never returns NULL. */
struct hs_tls *hs_tls_create(struct hs_tls_context *context, const char *server_name);
void hs_tls_destroy(struct hs_tls **tls);

/* Begins the handshake: appends a client's first message to `net`. A server need not call it. */
int hs_tls_start(struct hs_tls *tls, struct hs_buf *net) HS_MUSTCHECK;

/* Takes bytes from the network, all of them. Appends the decrypted ones to `plain`, and answers of the handshake
 * and alerts to `net`. Bytes behind the peer's close_notify are dropped. HS_EPROTO: the connection is unusable.
 * Then `plain` holds what came in front of the bad record, `net` may hold an alert to be sent, and every later
 * hs_tls_receive and hs_tls_send fails. */
int hs_tls_receive(struct hs_tls *tls, const char *data, size_t len, struct hs_buf *plain,
		   struct hs_buf *net) HS_MUSTCHECK;

/* Appends `data`, encrypted, to `net`. Only after hs_tls_ready is true: before that the process stops (hs_check).
 * HS_EPROTO after a failure. */
int hs_tls_send(struct hs_tls *tls, const char *data, size_t len, struct hs_buf *net) HS_MUSTCHECK;

/* Appends close_notify to `net`. Does nothing before the handshake is complete or after a failure. */
void hs_tls_close(struct hs_tls *tls, struct hs_buf *net);

/* The handshake is complete; stays true after a failure. */
bool hs_tls_ready(const struct hs_tls *tls);
bool hs_tls_ended(const struct hs_tls *tls); /* the peer sent close_notify */

/* The reason of the failure, one line; "": none. */
const char *hs_tls_error(const struct hs_tls *tls);

/* The first bytes of a connection look like a TLS record: for telling a peer that it uses TLS on a plain port, or
 * the reverse. */
static inline bool hs_tls_begins(const char *data, size_t len)
{
	return len > 0 && data[0] >= 0x14 && data[0] <= 0x17 && (len < 2 || data[1] == 0x03);
}

#endif
