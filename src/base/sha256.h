/* SHA-256 of bytes in memory (FIPS 180-4), for the passwords of users. It is not a slow password hash. Redis
 * stores passwords like this, and ACL files must be readable by both. */
#ifndef HS_BASE_SHA256_H
#define HS_BASE_SHA256_H

#include "base/bytes.h"

#include <stdint.h>

enum { HS_SHA256_BYTES = 32 };

void hs_sha256(struct hs_bytes text, uint8_t digest[HS_SHA256_BYTES]);

#endif
