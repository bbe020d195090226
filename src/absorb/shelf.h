/* What the workers of a process share about values that are kept: which keys were written, and what
 * one of them has read that others may use. No locks on the way of a hit: a look at a stamp.
 *
 * Stamps. A table of counters by key hash: `begun` counts writes handed to an engine, `done` those that
 * were answered, with whatever. Two keys may share a stamp: then a write of one makes the other be read
 * again, no more.
 *
 *   - What was read is valid while `done` is what it was when the read began (see struct hs_kept): so a
 *     write is seen by everybody on this server when it is acknowledged.
 *   - What was read while a write began or was done is not kept at all.
 *   - What a write leaves behind is kept only if no other was under way with it.
 *
 *   - A write of everything is a write of each key.
 *
 * The shelf. A table of values by signature hash, one in a cell, the newest. A worker that has read a
 * value puts it there; one that misses looks there first. Only then is a cell locked, by spinning, for a
 * few instructions. A cell also says who is just reading: others wait for that.
 *
 * Any thread may call all of this. Memory is fixed but for what lies on the shelf, which is bounded. */
#ifndef HS_ABSORB_SHELF_H
#define HS_ABSORB_SHELF_H

#include "absorb/kept.h"

#include <stdatomic.h>

struct hs_shelf;

enum { HS_SHELF_BYTES_MIN = 1 << 16 };
enum { HS_SHELF_PART = 4 }; /* of all bytes that may be kept, one in so many is for the shelf */

struct hs_stamp {
	uint32_t begun, done;
};

struct hs_shelf *hs_shelf_create(uint64_t seed, uint64_t bytes_max);
void hs_shelf_destroy(struct hs_shelf **shelf);
void hs_shelf_limit(struct hs_shelf *shelf, uint64_t bytes_max); /* from the next one on */

/* Whether writes have to be stamped: somebody may keep something. Set before anybody does. */
void hs_shelf_use(struct hs_shelf *shelf, bool use);
bool hs_shelf_in_use(const struct hs_shelf *shelf);

uint64_t hs_shelf_hash(const struct hs_shelf *shelf, struct hs_bytes key);
uint64_t hs_shelf_seed(const struct hs_shelf *shelf); /* for hs_ask_init */

struct hs_stamp hs_shelf_stamp(const struct hs_shelf *shelf, uint64_t key_hash);
/* A write of the key goes to an engine, or everything may be written; returns the stamp before. */
struct hs_stamp hs_shelf_begin(struct hs_shelf *shelf, uint64_t key_hash);
void hs_shelf_begin_all(struct hs_shelf *shelf);
/* It is answered, and its client is not told yet. */
void hs_shelf_end(struct hs_shelf *shelf, uint64_t key_hash);
void hs_shelf_end_all(struct hs_shelf *shelf);

/* The value of a signature, if it lies there; the caller gets a reference. */
struct hs_kept *hs_shelf_get(struct hs_shelf *shelf, const struct hs_ask *ask);
void hs_shelf_put(struct hs_shelf *shelf, struct hs_kept *kept); /* takes a reference of its own */
void hs_shelf_clear(struct hs_shelf *shelf);

/* Claims the right to read what a signature stands for. False: worker `*by` is at it, and will tell when
 * it is done (hs_shelf_release says that somebody waits). Signatures that share a cell share its claim:
 * that worker may be at another one, and may be this worker itself, which then reads without a claim. */
bool hs_shelf_claim(struct hs_shelf *shelf, uint64_t signature, uint32_t worker, uint32_t *by);
/* Of who claimed it: done, after the value was put on the shelf, or not. True: others wait for it. */
bool hs_shelf_release(struct hs_shelf *shelf, uint64_t signature, uint32_t worker);

#endif
