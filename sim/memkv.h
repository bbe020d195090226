/* A store in memory: two sorted maps behind the calls of keyspace/kv.h, with transactions. The
 * simulated world keeps its data here, and so do the tests of the keyspace. One thread.
 *
 * It is a strict store: every put and del moves the values handed out before it, so that a reader
 * who keeps one too long is caught by the address sanitizer. */
#ifndef HS_SIM_MEMKV_H
#define HS_SIM_MEMKV_H

#include "keyspace/kv.h"

#include <stddef.h>

struct hs_memkv;

struct hs_memkv *hs_memkv_create(void);
void hs_memkv_destroy(struct hs_memkv **map);

/* The same for the map's whole life; reads are allowed at any time, changes in a transaction. */
struct hs_kv *hs_memkv_kv(struct hs_memkv *map);

void hs_memkv_begin(struct hs_memkv *map);
void hs_memkv_commit(struct hs_memkv *map);
void hs_memkv_abort(struct hs_memkv *map); /* everything is as it was at begin */

/* A put that would take keys and values over this many bytes fails with HS_EFULL, and so does
 * everything after it until the transaction is aborted. 0 (at first): no limit. */
void hs_memkv_limit(struct hs_memkv *map, size_t bytes);
size_t hs_memkv_bytes(const struct hs_memkv *map);

#endif
