/* The tls- options as a TLS context: certificates, protocols and ciphers of the TLS port. It knows no connection. The
 * main thread at the start, then the control thread (SIGHUP, CONFIG SET); connections keep the context they began
 * with. */
#ifndef HS_SERVE_TLS_OPTIONS_H
#define HS_SERVE_TLS_OPTIONS_H

#include "base/check.h"
#include "serve/options.h"
#include "tls/tls.h"

/* Reads the files that the tls- options name. The error is one line with the option or file and the reason. The
 * caller releases the context. */
int hs_tls_options_read(const struct hs_options *options, struct hs_tls_context **context,
			char *error, size_t error_size) HS_MUSTCHECK;

/* Checks that OpenSSL takes tls-protocols, tls-ciphers and tls-ciphersuites; also without a TLS port. Reads no
 * file. */
int hs_tls_options_check(const struct hs_options *options, char *error,
			 size_t error_size) HS_MUSTCHECK;

#endif
