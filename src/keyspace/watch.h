/* WATCH: finds the transactions that must fail because a watched key was changed. One table per
 * store; only the store's writer thread uses it. Exact as in Redis: a key changed and changed back
 * counts as changed; a key that was already expired when watched and is swept later does not.
 *
 * A rolled back write still marks its watchers: EXEC then fails although no key changed, which
 * clients must expect. */
#ifndef HS_KEYSPACE_WATCH_H
#define HS_KEYSPACE_WATCH_H

#include "base/bytes.h"
#include "base/check.h"

#include <stdbool.h>
#include <stdint.h>

struct hs_watch_table;
struct hs_keyspace;

struct hs_watch_table *hs_watch_create(uint64_t seed);
void hs_watch_destroy(struct hs_watch_table **table);

/* Watches a key for `watcher`, a number that identifies one connection. HS_ELIMIT over HS_WATCH_KEYS_MAX keys of
 * this watcher; or the store's error. A watcher that is dirty already gets no new watch (0). */
int hs_watch_add(struct hs_watch_table *table, struct hs_keyspace *ks, uint64_t watcher,
		 uint16_t slot, struct hs_bytes key) HS_MUSTCHECK;
void hs_watch_drop(struct hs_watch_table *table, uint64_t watcher);

/* May this watcher's transaction run? False once one of its keys was changed or has expired. */
bool hs_watch_clean(struct hs_watch_table *table, struct hs_keyspace *ks, uint64_t watcher);

/* The keyspace calls touch for every key that it changes: before a write, after a removal (watch.c
 * says why). FLUSHALL calls touch_all; a watch of a key that does not exist stays clean. */
void hs_watch_touch(struct hs_watch_table *table, struct hs_keyspace *ks, uint16_t slot,
		    struct hs_bytes key);
void hs_watch_touch_all(struct hs_watch_table *table, struct hs_keyspace *ks);

#endif
