/* A socket that listens, for Redis clients and for HTTP. */
#ifndef HS_SERVE_LISTEN_H
#define HS_SERVE_LISTEN_H

#include "base/check.h"

#include <stddef.h>

/* Returns the descriptor, non-blocking, and in *port the port it is really on: 0 takes any. On
 * failure says why in `error` and returns HS_EBUSY when somebody else listens there, otherwise
 * HS_EIO. */
int hs_listen(const char *address, int *port, int backlog, char *error,
	      size_t error_size) HS_MUSTCHECK;

#endif
