/* Addresses as people and clients write them: host:port. */
#ifndef HS_BASE_ADDRESS_H
#define HS_BASE_ADDRESS_H

#include "base/bytes.h"

#include <stdbool.h>
#include <stddef.h>

/* Longest host name, brackets, a port and the terminating zero. */
enum { HS_ADDRESS_TEXT_MAX = 272 };

/* Writes host:port; an IPv6 address stands in brackets: [::1]:6380. Zero terminated and cut to fit `size`
 * bytes. Returns `text`. */
char *hs_address_text(const char *host, unsigned port, char *text, size_t size);

/* Splits host:port; `host` points into `text`, without brackets. False: `text` is not an address, and both
 * outputs are unchanged. */
bool hs_address_split(const char *text, struct hs_bytes *host, unsigned *port);

#endif
