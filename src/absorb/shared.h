/* What the workers of a process share about cached values: which keys were written, and what
 * one of them has read that others may use. No locks on the way of a hit: a look at a version.
 *
 * Versions. A table of counters by key hash: `begun` counts writes handed to an engine, `done` those that
 * were answered, with whatever. Two keys may share a version: then a write of one makes the other be read
 * again, no more.
 *
 *   - What was read is valid while `done` is what it was when the read began (see struct hs_cache_entry): so a
 *     write is seen by everybody on this server when it is acknowledged.
 *   - What was read while a write began or was done is not cached at all.
 *   - The value of a write is cached (write-through) only if no other was under way with it.
 *
 *   - A write of everything is a write of each key.
 *
 * The shared cache. A table of values by signature hash, one in a cell, the newest. A worker that has read a
 * value puts it there; one that misses looks there first. Only then is a cell locked, by spinning, for a
 * few instructions. A cell also says who is just reading: others wait for that.
 *
 * Any thread may call all of this. Memory is fixed but for what lies on the shared cache, which is bounded. */
#ifndef HS_ABSORB_SHARED_H
#define HS_ABSORB_SHARED_H

#include "absorb/entry.h"

struct hs_shared;

enum { HS_SHARED_BYTES_MIN = 1 << 16 };
enum { HS_SHARED_PART = 4 }; /* of all bytes of the cache, one in so many is for the shared cache */

struct hs_shared *hs_shared_create(uint64_t seed, uint64_t bytes_max);
void hs_shared_destroy(struct hs_shared **shared);
void hs_shared_limit(struct hs_shared *shared, uint64_t bytes_max); /* from the next one on */

/* Whether writes have to be counted: somebody may keep something. Set before anybody does. */
void hs_shared_use(struct hs_shared *shared, bool use);
bool hs_shared_in_use(const struct hs_shared *shared);

uint64_t hs_shared_hash(const struct hs_shared *shared, struct hs_bytes key);
uint64_t hs_shared_seed(const struct hs_shared *shared); /* for hs_cache_query_of_call */

struct hs_version hs_shared_version(const struct hs_shared *shared, uint64_t key_hash);
/* A write of the key goes to an engine, or everything may be written; returns the version before. */
struct hs_version hs_shared_write_begin(struct hs_shared *shared, uint64_t key_hash);
void hs_shared_write_begin_all(struct hs_shared *shared);
/* It is answered, and its client is not told yet. */
void hs_shared_write_end(struct hs_shared *shared, uint64_t key_hash);
void hs_shared_write_end_all(struct hs_shared *shared);

/* The value of a signature, if it lies there; the caller gets a reference. */
struct hs_cache_entry *hs_shared_get(struct hs_shared *shared, const struct hs_cache_query *query);
void hs_shared_put(struct hs_shared *shared,
		   struct hs_cache_entry *entry); /* takes a reference of its own */
void hs_shared_clear(struct hs_shared *shared);

/* Claims the right to read what a signature stands for. False: worker `*by` is at it, and will tell when
 * it is done (hs_shared_release says that somebody waits); or `*by` is the caller, which then reads without a claim: it
 * has claimed the signature itself, or the cell is claimed for another signature. So a read never waits for the read of
 * another key, whose server may be dead. */
bool hs_shared_claim(struct hs_shared *shared, uint64_t signature, uint32_t worker, uint32_t *by);
/* Of who claimed it: done, after the value was put on the shared cache, or not. True: others wait for it. */
bool hs_shared_release(struct hs_shared *shared, uint64_t signature, uint32_t worker);

#endif
