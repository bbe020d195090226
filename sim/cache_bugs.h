/* Planted bugs of a wrong cache implementation, around the cores (the list is in sim/planted_bugs.h). The module
 * remembers what the cores read and write, puts entries back that the cores threw away, or answers clients with
 * them. It exists only in worlds with such a bug. One thread. */
#ifndef HS_SIM_CACHE_BUGS_H
#define HS_SIM_CACHE_BUGS_H

#include "core/op.h"
#include "sim/planted_bugs.h"

struct hs_sim_cache_bugs;
struct hs_sim_heatsink;
struct hs_sim_world;

bool hs_sim_cache_bugs_is(enum hs_sim_bug bug);

struct hs_sim_cache_bugs *hs_sim_cache_bugs_create(struct hs_sim_heatsink *heatsink,
						   void (*done)(void *context, struct hs_op *op));
void hs_sim_cache_bugs_destroy(struct hs_sim_cache_bugs **cache_bugs);

/* An operation leaves a core. _done: it has come back, and the callback `done` hands it to the core. */
void hs_sim_cache_bugs_submit(struct hs_sim_cache_bugs *cache_bugs, const struct hs_op *op);
void hs_sim_cache_bugs_done(struct hs_sim_cache_bugs *cache_bugs, struct hs_op *op);

/* An event informs this worker that a key has changed; NULL: all keys. */
void hs_sim_cache_bugs_changed(struct hs_sim_cache_bugs *cache_bugs, uint32_t worker,
			       const struct hs_bytes *key);

/* Appends the wrong reply that a client of this worker gets to a GET of the key; false: it gets the right one.
 * `written`: a write of the client itself is in flight. */
bool hs_sim_cache_bugs_answer(struct hs_sim_world *world, uint32_t worker, uint32_t key,
			      bool written, struct hs_buf *reply);

#endif
