/* Opens a listening TCP socket: for Redis clients, TLS and HTTP. Any thread; the caller owns the descriptor. */
#ifndef HS_SERVE_LISTEN_H
#define HS_SERVE_LISTEN_H

#include "base/check.h"

#include <stddef.h>

/* Returns the non-blocking descriptor and sets *port to the port in use: 0 picks a free one. On failure `error` has
 * one line with the address and the reason, and the result is HS_EBUSY if the port is in use, else HS_EIO. */
int hs_listen(const char *address, int *port, int backlog, char *error,
	      size_t error_size) HS_MUSTCHECK;

#endif
