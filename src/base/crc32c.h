/* CRC-32C (Castagnoli), as iSCSI and ext4 use it: finds every error within 32 bits in a row, and any
 * other with a chance of 1 in 2^32 to miss. The processor has an instruction for it where that
 * matters; elsewhere a small table does. It finds damage, not forgery: hash.h is for what clients
 * may aim at. */
#ifndef HS_BASE_CRC32C_H
#define HS_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* `from` is 0, or what the bytes before gave. */
uint32_t hs_crc32c(uint32_t from, const void *bytes, size_t len);
/* The same without the processor's help. */
uint32_t hs_crc32c_plain(uint32_t from, const void *bytes, size_t len);

#endif
