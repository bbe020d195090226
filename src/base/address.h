/* Where somebody listens, as people and clients write it. */
#ifndef HS_BASE_ADDRESS_H
#define HS_BASE_ADDRESS_H

#include "base/bytes.h"

#include <stdbool.h>
#include <stddef.h>

enum { HS_ADDRESS_TEXT_MAX = 272 }; /* the longest host name, brackets, a port and the end */

/* host:port; an IPv6 address, which has colons of its own, stands in brackets: [::1]:6380. Zero
 * terminated and cut to fit `size` bytes. Returns `text`. */
char *hs_address_text(const char *host, unsigned port, char *text, size_t size);

/* The way back: the host, without brackets, lies in `text`. False when it is no such thing; both are
 * untouched then. */
bool hs_address_split(const char *text, struct hs_bytes *host, unsigned *port);

#endif
