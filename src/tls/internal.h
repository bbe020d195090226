/* Private to src/tls. */
#ifndef HS_TLS_INTERNAL_H
#define HS_TLS_INTERNAL_H

#include "tls/tls.h"

#include <openssl/ssl.h>
#include <stdatomic.h>
#include <stdint.h>

struct hs_tls_context {
	_Atomic uint32_t refs;
	enum hs_tls_role role;
	enum hs_tls_verify verify;
	SSL_CTX *ssl;
	BIO_METHOD *pipe; /* I/O of its connections: tls.c */
};

/* tls.c */
BIO_METHOD *hs_tls_pipe_create(void);

#endif
