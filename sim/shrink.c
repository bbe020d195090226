/* Shrinking: finds a smaller plan that breaks the same law. Everything in a schedule follows from its plan, but
 * a changed plan changes every draw that comes after the change. So each simpler plan is tried with a few
 * seeds. A plan that still breaks the same law replaces the best one, and is simplified again, until no
 * simplification helps. */
#include "sim/schedule.h"

#include "base/err.h"

enum { SEEDS = 30 };

struct shrinking {
	const struct hs_sim_runner *runner;
	hs_sim_try *try;
	struct hs_sim_plan *best;
	int law; /* the law that all plans must break */
	uint32_t tries, tries_max;
};

/* The law that the plan breaks; 0: none, or the check was undecided. */
static int law_of(const struct shrinking *shrinking, const struct hs_sim_plan *plan)
{
	struct hs_sim_result result;
	int err = shrinking->try(shrinking->runner, plan, &result);

	hs_buf_deinit(&result.text);
	hs_buf_deinit(&result.script);
	return err == HS_EINVAL ? result.verdict.law : 0;
}

/* Tries a plan; if it breaks the same law, it is the best one. */
static bool try_plan(struct shrinking *shrinking, const struct hs_sim_plan *plan)
{
	shrinking->tries++;
	if (law_of(shrinking, plan) != shrinking->law)
		return false;
	*shrinking->best = *plan;
	return true;
}

static bool try_seeds(struct shrinking *shrinking, struct hs_sim_plan *plan)
{
	uint64_t seed = plan->world.engine.seed;

	for (uint64_t i = 0; i < SEEDS && shrinking->tries < shrinking->tries_max; i++) {
		plan->world.engine.seed = seed + i;
		if (try_plan(shrinking, plan))
			return true;
	}
	return false;
}

/* Tries every simplification once; false: none of them helped. */
static bool try_all_ways(struct shrinking *shrinking)
{
	bool better = false, more = true;

	for (uint32_t way = 0; more && shrinking->tries < shrinking->tries_max; way++) {
		struct hs_sim_plan plan = *shrinking->best;

		more = hs_sim_plan_simplify(&plan, way);
		if (hs_sim_plan_weight(&plan) < hs_sim_plan_weight(shrinking->best))
			better = try_seeds(shrinking, &plan) || better;
	}
	return better;
}

uint32_t hs_sim_shrink(const struct hs_sim_runner *runner, uint64_t seed, uint32_t tries_max,
		       hs_sim_try *try, struct hs_sim_plan *plan)
{
	struct shrinking shrinking = {
		.runner = runner,
		.try = try,
		.best = plan,
		.tries_max = tries_max,
	};

	hs_sim_plan_draw(plan, seed, runner->bug, runner->focus);
	shrinking.law = law_of(&shrinking, plan);
	if (shrinking.law != 0) {
		while (try_all_ways(&shrinking) && shrinking.tries < tries_max) {
		}
	}
	return shrinking.tries;
}
