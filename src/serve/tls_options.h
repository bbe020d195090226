/* What of the options concerns the TLS port: its certificates and rules, as a context. */
#ifndef HS_SERVE_TLS_OPTIONS_H
#define HS_SERVE_TLS_OPTIONS_H

#include "base/check.h"
#include "serve/options.h"
#include "tls/tls.h"

/* Reads the files that the tls- options name. The error is one line, with the file and the reason.
 */
int hs_tls_options_read(const struct hs_options *options, struct hs_tls_context **context,
			char *error, size_t error_size) HS_MUSTCHECK;

/* Whether tls-protocols, tls-ciphers and tls-ciphersuites can be used, also while there is no TLS port. */
int hs_tls_options_check(const struct hs_options *options, char *error,
			 size_t error_size) HS_MUSTCHECK;

#endif
