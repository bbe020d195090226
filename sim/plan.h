/* The plan of a schedule: which world, which clients, which faults. hs_sim_plan_draw draws it from a seed; shrinking
 * makes it simpler step by step while it still breaks the same law (sim/shrink.c). Everything in a schedule follows
 * from its plan. A plan is plain data: it may be copied, and owns nothing. */
#ifndef HS_SIM_PLAN_H
#define HS_SIM_PLAN_H

#include "sim/client_caches.h"
#include "sim/load.h"
#include "sim/planted_bugs.h"
#include "sim/world.h"

/* The part of heatsink that schedules exercise (--focus). */
enum hs_sim_focus {
	HS_SIM_FOCUS_ANYTHING, /* a mixture of all of these */
	HS_SIM_FOCUS_STRICT,   /* keys without contracts */
	HS_SIM_FOCUS_TRACKING, /* clients that track keys (CLIENT TRACKING) */
	/* Keys with contracts, which other clients write directly at the servers. */
	HS_SIM_FOCUS_RULES,
	HS_SIM_FOCUS_FLEET, /* several heatsinks, which may die, in front of one Cluster */
	HS_SIM_FOCUSES,
};

extern const char *const hs_sim_focuses[]; /* the words of --focus, up to a NULL */

struct hs_sim_plan {
	uint64_t seed;
	bool fleet; /* several heatsinks in front of one Cluster */
	/* Clients that track keys (client_caches.h) in place of random ones. */
	bool has_client_caches;
	struct hs_sim_world_options world;
	struct hs_sim_load_options load;
	struct hs_sim_client_caches_options client_caches;
};

/* The same seed draws the same plan on every machine. With a planted bug: a plan in which the bug can strike. */
void hs_sim_plan_draw(struct hs_sim_plan *plan, uint64_t seed, enum hs_sim_bug bug,
		      enum hs_sim_focus focus);

void hs_sim_plan_describe(const struct hs_sim_plan *plan, struct hs_buf *text);

/* Applies the `number`th simplification; false: there are no more. A simplification that does not apply leaves the
 * plan as it is. */
bool hs_sim_plan_simplify(struct hs_sim_plan *plan, uint32_t number);
/* A simpler plan weighs less. */
uint64_t hs_sim_plan_weight(const struct hs_sim_plan *plan);

#endif
