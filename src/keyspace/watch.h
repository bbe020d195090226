/* WATCH: which transactions must fail because a key they watch was changed. One table per store,
 * touched only by the store's writer. Exact as in Redis: a key changed and changed back counts as
 * changed; a key that was already expired when watched and is swept does not. */
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

/* `watcher` is any number that names one connection. HS_ELIMIT over HS_WATCH_KEYS_MAX keys. */
int hs_watch_add(struct hs_watch_table *table, struct hs_keyspace *ks, uint64_t watcher,
		 uint16_t slot, struct hs_bytes key) HS_MUSTCHECK;
void hs_watch_drop(struct hs_watch_table *table, uint64_t watcher);

/* May this watcher's transaction run? False once any of its keys was changed or has expired. */
bool hs_watch_clean(struct hs_watch_table *table, struct hs_keyspace *ks, uint64_t watcher);

/* Called by the keyspace for every key it changes, and for FLUSHALL (which spares watchers of
 * keys that do not exist). */
void hs_watch_touch(struct hs_watch_table *table, struct hs_keyspace *ks, uint16_t slot,
		    struct hs_bytes key);
void hs_watch_touch_all(struct hs_watch_table *table, struct hs_keyspace *ks);

#endif
