/* CRC-32C (Castagnoli), as in iSCSI and ext4: detects every error within 32 consecutive bits, and misses any
 * other with a chance of 1 in 2^32. It uses the processor's instruction if there is one, else a small table. It
 * detects damage, not forgery: where clients choose the bytes, use base/hash.h. Any thread. */
#ifndef HS_BASE_CRC32C_H
#define HS_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* `from`: 0, or the result for the preceding bytes. */
uint32_t hs_crc32c(uint32_t from, const void *bytes, size_t len);
/* hs_crc32c by table, as on a processor without the CRC instruction; for the test that compares both. */
uint32_t hs_crc32c_plain(uint32_t from, const void *bytes, size_t len);

#endif
