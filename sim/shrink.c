/* A smaller schedule with the same fault. Everything about a schedule follows from its plan, but a
 * change of the plan changes every draw behind it: so each simpler plan is tried with a few seeds. What
 * still breaks the same law is kept, and made simpler again. */
#include "sim/run.h"

#include "base/err.h"

enum { SEEDS = 30 };

struct shrinking {
	const struct hs_sim_runner *runner;
	struct hs_sim_plan best;
	struct hs_sim_result *result; /* of the best */
	uint32_t tries, tries_max;
};

/* Whether it breaks the same law: then it is the best. */
static bool try_plan(struct shrinking *shrinking, const struct hs_sim_plan *plan)
{
	struct hs_sim_result result;
	int err = hs_sim_check_plan(shrinking->runner, plan, &result);
	bool same = err == HS_EINVAL && result.verdict.law == shrinking->result->verdict.law;

	shrinking->tries++;
	if (!same) {
		hs_buf_deinit(&result.text);
		hs_buf_deinit(&result.script);
		return false;
	}
	hs_buf_deinit(&shrinking->result->text);
	hs_buf_deinit(&shrinking->result->script);
	*shrinking->result = result;
	shrinking->best = *plan;
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

/* One round over all ways; false: none of them led anywhere. */
static bool try_all_ways(struct shrinking *shrinking)
{
	bool better = false, more = true;

	for (uint32_t way = 0; more && shrinking->tries < shrinking->tries_max; way++) {
		struct hs_sim_plan plan = shrinking->best;

		more = hs_sim_plan_simplify(&plan, way);
		if (hs_sim_plan_weight(&plan) < hs_sim_plan_weight(&shrinking->best))
			better = try_seeds(shrinking, &plan) || better;
	}
	return better;
}

uint32_t hs_sim_shrink(const struct hs_sim_runner *runner, uint64_t seed, uint32_t tries_max,
		       struct hs_sim_result *result)
{
	struct shrinking shrinking = {
		.runner = runner,
		.result = result,
		.tries_max = tries_max,
	};

	hs_sim_plan_draw(&shrinking.best, seed, runner->mistake, runner->about);
	if (hs_sim_check_plan(runner, &shrinking.best, result) == HS_EINVAL) {
		while (try_all_ways(&shrinking) && shrinking.tries < tries_max) {
		}
		shrinking.best.world.script = true;
		if (try_plan(&shrinking, &shrinking.best))
			shrinking.tries--; /* the same once more */
	}
	return shrinking.tries;
}
