/* Shared by the workers of a process: the write versions of keys, and cache entries that
 * one worker has fetched and others may use. A cache hit takes no lock; it loads one version.
 *
 * Versions. A table of counter pairs by key hash: `begun` counts writes handed to an engine, `done` counts
 * writes that were answered, whatever the answer. Two keys may share a counter pair; then a write of one makes
 * the other be fetched again, which is harmless.
 *
 * - An entry is valid while `done` equals its value when the fetch began (struct hs_cache_entry). So every
 *   worker sees a write as soon as it is acknowledged.
 * - A reply is not cached if a write of the key began or ended during the fetch.
 * - The value of a write is cached (write-through) only if no other write of the key was in flight with it.
 * - A write to all keys (FLUSHALL) counts as a write of each key.
 *
 * The shared cache. A table of entries by signature hash, one entry per cell, the newest. A worker that has
 * fetched a value stores it there; a worker that misses in its own cache looks there before it fetches. Only
 * then it takes the cell's spinlock, for a few instructions. A cell also holds the claim of the worker that
 * fetches the signature: other workers wait for that fetch instead of sending their own.
 *
 * Any thread may call all of this. Entries are reference counted. Memory is fixed except for the stored
 * entries, which are bounded by `bytes_max`; when they exceed it, cells are emptied in turn. */
#ifndef HS_ABSORB_SHARED_H
#define HS_ABSORB_SHARED_H

#include "absorb/entry.h"

struct hs_shared;

enum { HS_SHARED_BYTES_MIN = 1 << 16 };
enum { HS_SHARED_PART = 4 }; /* one part in four of the cache's bytes is for the shared cache */

struct hs_shared *hs_shared_create(uint64_t seed, uint64_t bytes_max);
void hs_shared_destroy(struct hs_shared **shared);
void hs_shared_limit(struct hs_shared *shared, uint64_t bytes_max); /* checked at the next put */

/* Whether writes must be counted, because a worker may cache values. Set before any worker does. */
void hs_shared_use(struct hs_shared *shared, bool use);
bool hs_shared_in_use(const struct hs_shared *shared);

uint64_t hs_shared_hash(const struct hs_shared *shared, struct hs_bytes key);
uint64_t hs_shared_seed(const struct hs_shared *shared); /* for hs_cache_query_of_call */

struct hs_version hs_shared_version(const struct hs_shared *shared, uint64_t key_hash);
/* Call before a write of the key (or of all keys) goes to an engine. Returns the version before the write. */
struct hs_version hs_shared_write_begin(struct hs_shared *shared, uint64_t key_hash);
void hs_shared_write_begin_all(struct hs_shared *shared);
/* Call when the engine has answered the write, before the reply goes to the client. */
void hs_shared_write_end(struct hs_shared *shared, uint64_t key_hash);
void hs_shared_write_end_all(struct hs_shared *shared);

/* The stored entry for the query, or NULL. The caller gets a reference. */
struct hs_cache_entry *hs_shared_get(struct hs_shared *shared, const struct hs_cache_query *query);
void hs_shared_put(struct hs_shared *shared, struct hs_cache_entry *entry); /* takes a reference */
void hs_shared_clear(struct hs_shared *shared);

/* Claims the fetch of a signature for a worker. False: the caller has no claim. Then `*by` is the worker that
 * has it and that will send a message when done (hs_shared_release tells it that another worker waits); or
 * `*by` is the caller itself, which fetches without a claim: it already has claimed the signature, or the cell
 * is claimed for another signature. So a read never waits for the fetch of another key, whose server may be
 * down. */
bool hs_shared_claim(struct hs_shared *shared, uint64_t signature, uint32_t worker, uint32_t *by);
/* Ends the claim; call after hs_shared_put if there was a value. Returns true if another worker waits. */
bool hs_shared_release(struct hs_shared *shared, uint64_t signature, uint32_t worker);

#endif
