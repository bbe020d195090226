/* An in-memory key-value store: two sorted maps behind the calls of keyspace/kv.h, with transactions. The
 * simulated world and the tests of the keyspace store their data in it. One thread.
 *
 * It is strict: every put and del moves the values that were handed out before, so that the address sanitizer
 * catches a reader that uses one for too long. */
#ifndef HS_SIM_MEMKV_H
#define HS_SIM_MEMKV_H

#include "keyspace/kv.h"

#include <stddef.h>

struct hs_memkv;

struct hs_memkv *hs_memkv_create(void);
void hs_memkv_destroy(struct hs_memkv **map);

/* The same pointer for the map's whole life. Reads are allowed at any time, changes only in a transaction. */
struct hs_kv *hs_memkv_kv(struct hs_memkv *map);

void hs_memkv_begin(struct hs_memkv *map);
void hs_memkv_commit(struct hs_memkv *map);
void hs_memkv_abort(struct hs_memkv *map); /* undoes everything since hs_memkv_begin */

/* Limits the bytes of keys and values; 0 (the default): no limit. A put beyond the limit fails with HS_EFULL, and so
 * does everything after it until the transaction is aborted. */
void hs_memkv_limit(struct hs_memkv *map, size_t bytes);
size_t hs_memkv_bytes(const struct hs_memkv *map);

#endif
