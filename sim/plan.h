/* What a schedule is made of: which world, which load, which clients. Drawn from a seed, told to
 * people, and made smaller while it still shows what it showed. */
#ifndef HS_SIM_PLAN_H
#define HS_SIM_PLAN_H

#include "sim/client_caches.h"
#include "sim/load.h"
#include "sim/planted_bugs.h"
#include "sim/world.h"

/* What schedules are about. */
enum hs_sim_focus {
	HS_SIM_FOCUS_ANYTHING,
	HS_SIM_FOCUS_STRICT,   /* keys without contracts */
	HS_SIM_FOCUS_TRACKING, /* clients that keep what they read */
	HS_SIM_FOCUS_RULES,    /* keys with contracts, that others write behind our back */
	HS_SIM_FOCUS_FLEET,    /* several heatsinks in front of one Cluster */
	HS_SIM_FOCUSES,
};

extern const char *const hs_sim_focuses[]; /* their words, up to a NULL */

struct hs_sim_plan {
	uint64_t seed;
	bool fleet;		/* several heatsinks */
	bool has_client_caches; /* clients that keep what they read, instead of a load */
	struct hs_sim_world_options world;
	struct hs_sim_load_options load;
	struct hs_sim_client_caches_options client_caches;
};

/* The same seed draws the same on every machine. With a mistake: one in which it can strike. */
void hs_sim_plan_draw(struct hs_sim_plan *plan, uint64_t seed, enum hs_sim_bug bug,
		      enum hs_sim_focus focus);

void hs_sim_plan_describe(const struct hs_sim_plan *plan, struct hs_buf *text);

/* The `number`th way to make a plan simpler; false: there are no more. One that changes nothing
 * leaves the plan as it is. */
bool hs_sim_plan_simplify(struct hs_sim_plan *plan, uint32_t number);
/* A simpler one weighs less. */
uint64_t hs_sim_plan_weight(const struct hs_sim_plan *plan);

#endif
