/* Around the cores, for the mistakes of somebody who thinks that a cache is easy (sim/planted_bugs.h): puts
 * back what the cores threw away, or answers with it. Without such a mistake it is not there at all.
 * One thread. */
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

/* An operation leaves a core; it is back, and `done` hands it over. */
void hs_sim_cache_bugs_submit(struct hs_sim_cache_bugs *cache_bugs, const struct hs_op *op);
void hs_sim_cache_bugs_done(struct hs_sim_cache_bugs *cache_bugs, struct hs_op *op);

/* This worker was told that a key has changed, or all of them (NULL). */
void hs_sim_cache_bugs_changed(struct hs_sim_cache_bugs *cache_bugs, uint32_t worker,
			       const struct hs_bytes *key);

/* The reply that a client of this worker gets to a GET of the key instead of the right one, which is
 * appended; false: it gets that. `written`: a write of its own is under way. */
bool hs_sim_cache_bugs_answer(struct hs_sim_world *world, uint32_t worker, uint32_t key,
			      bool written, struct hs_buf *reply);

#endif
