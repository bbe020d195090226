/* Private to sim/plan*.c: the functions that these files call in each other. */
#ifndef HS_SIM_PLAN_INTERNAL_H
#define HS_SIM_PLAN_INTERNAL_H

#include "sim/plan.h"

static inline uint32_t one_of(struct hs_prng *prng, const uint32_t *choices, size_t count)
{
	return choices[hs_prng_below(prng, count)];
}

#define ONE_OF(prng, ...)                                                                          \
	one_of(prng, (const uint32_t[]){__VA_ARGS__},                                              \
	       sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

static inline bool one_in(struct hs_prng *prng, uint64_t of)
{
	return hs_prng_below(prng, of) == 0;
}

/* For simplifications: halves the number, but not below `least`. */
static inline void hs_sim_halve(uint32_t *number, uint32_t least)
{
	*number = *number / 2 > least ? *number / 2 : least;
}

/* plan.c: draws servers in place of the engine, and their faults. */
void hs_sim_plan_draw_servers(struct hs_sim_plan *plan, struct hs_prng *prng);
void hs_sim_plan_make_cluster(struct hs_sim_plan *plan);
void hs_sim_plan_draw_faults(struct hs_sim_plan *plan, struct hs_prng *prng);
bool hs_sim_plan_has_one_faulty(
	const struct hs_sim_plan *plan); /* if there are faults at all, they hit one server */

/* plan_narrow.c: replaces much of what was drawn, so that a schedule is about one thing. */
void hs_sim_plan_narrow_to_failovers_only(struct hs_sim_plan *plan);
void hs_sim_plan_narrow_to_one_faulty(struct hs_sim_plan *plan, struct hs_prng *prng);
void hs_sim_plan_narrow_to_watches(struct hs_sim_plan *plan);
void hs_sim_plan_narrow_to_fast_moves(struct hs_sim_plan *plan);

/* plan_rules.c: replaces everything else that was drawn: keys have rules. */
void hs_sim_plan_draw_rules(struct hs_sim_plan *plan, struct hs_prng *prng);
void hs_sim_plan_describe_rules(const struct hs_sim_plan *plan, struct hs_buf *text);
enum { HS_SIM_RULES_WAYS = 9 };
void hs_sim_plan_simplify_rules(struct hs_sim_plan *plan, uint32_t number);
uint64_t hs_sim_plan_weight_rules(const struct hs_sim_plan *plan);

#endif
