/* Schedules in which keys have contracts. Times are such that what is kept ages while the clients are at
 * it, and that what servers say takes about as long as what it is about may be old. */
#include "sim/plan_internal.h"

#include "base/limits.h"

enum {
	PROOFS = 4, /* in the shortest time that a value may be old, as in serve/host.c */
	CACHE_BYTES_LOW = 700, /* of a worker: a key or two */
	/* Of all clients; where requests may get lost: what is unknown takes long to judge. */
	WRITES_MAX = 50,
	WRITES_FAULTS_MAX = 25,
	REQUESTS_MAX = 250,
};

static struct hs_sim_rule draw_rule(struct hs_prng *prng)
{
	return (struct hs_sim_rule){
		.stale_us = ONE_OF(prng, 1000, 1000, 2000, 5000, 20000),
		.swr_us = ONE_OF(prng, 0, 0, 0, 1000, 5000),
		.stale_if_error_us = ONE_OF(prng, 0, 0, 0, 5000),
		.ttl_us = ONE_OF(prng, 1000, 4000, 1000000, 1000000, 1000000, 1000000),
		.negative_us = ONE_OF(prng, 0, 1000, 3000, 1000000),
		.jitter_percent = ONE_OF(prng, 0, 10, 90),
		.ahead = ONE_OF(prng, 0, 1, 10),
		.admit_all = !one_in(prng, 3),
	};
}

static void draw_links(struct hs_prng *prng, struct hs_sim_plan *plan)
{
	struct hs_sim_links_options *links = &plan->world.links;

	*links = (struct hs_sim_links_options){
		.on = true,
		.latency_us_max = ONE_OF(prng, 0, 50, 50, 500, 2000),
		.slow_us = ONE_OF(prng, 0, 0, 0, 1000),
		.flying_max = ONE_OF(prng, 1, 4, 1000, 1000),
		.waiting_max = 1000,
		.down_us_max = ONE_OF(prng, 50, 500, 3000),
		.timeout_us = ONE_OF(prng, 500, 2000, 10000),
		.forget_one_in = ONE_OF(prng, 0, 0, 20),
		.answers_prove = one_in(prng, 2),
		.noloop = one_in(prng, 2),
		.prove_us = UINT32_MAX,
	};
	for (uint32_t i = 0; i < plan->world.rules_count; i++) {
		if (links->prove_us > plan->world.rules[i].stale_us / PROOFS)
			links->prove_us = plan->world.rules[i].stale_us / PROOFS;
	}
	plan->world.together =
		plan->world.engine.partitions == 1 ? HS_TOGETHER_ALL : HS_TOGETHER_SLOT;
}

static void draw_faults(struct hs_prng *prng, struct hs_sim_plan *plan)
{
	struct hs_sim_links_options *links = &plan->world.links;

	plan->load.faults = true;
	links->lose_one_in = ONE_OF(prng, 0, 30, 100);
	links->mute_one_in = ONE_OF(prng, 0, 30, 100);
	links->stall_one_in = ONE_OF(prng, 0, 0, 100);
	links->crash_one_in = ONE_OF(prng, 0, 0, 100);
}

static void draw_load(struct hs_prng *prng, struct hs_sim_load_options *load, uint32_t rules)
{
	*load = (struct hs_sim_load_options){
		.clients = ONE_OF(prng, 1, 2, 3, 4, 5),
		.requests = ONE_OF(prng, 20, 60, 100),
		.act_us_max = ONE_OF(prng, 50, 300, 300, 1000),
		.depth_max = ONE_OF(prng, 1, 1, 3, 6),
		.registers = rules + 1,
		.hang_ups = one_in(prng, 4),
		.ttl_ms_max = ONE_OF(prng, 0, 0, 2, 5),
		.ticks = true,
		.flips = one_in(prng, 8),
		.writes = ONE_OF(prng, 2, 5, 10, 30),
		.behind = ONE_OF(prng, 3, 6, 12),
		.behind_us_max = ONE_OF(prng, 1000, 5000, 10000),
		.flushes = one_in(prng, 4),
		.turns = one_in(prng, 4),
	};
}

/* Where a planted mistake can be seen. */
static void help_mistake(struct hs_sim_plan *plan)
{
	struct hs_sim_rule *rule = &plan->world.rules[0];

	switch (plan->world.engine.mistake) {
	case HS_SIM_OLD_WHILE_READING:
		rule->swr_us = 5000;
		break;
	case HS_SIM_PROOF_AT_REPLY: /* the way there and back takes about as long as it may be old */
		rule->stale_us = 1000;
		plan->world.links.latency_us_max = 1000;
		plan->load.behind = 12;
		plan->load.behind_us_max = 2000;
		plan->load.act_us_max = 100;
		/* fall through */
	case HS_SIM_PUSH_LATE:
	case HS_SIM_PUSH_LOST:
	case HS_SIM_DEAD_VOUCH:
		rule->swr_us = rule->stale_if_error_us = 0;
		break;
	case HS_SIM_TURN_UNHEARD:
		plan->load.turns = true;
		break;
	case HS_SIM_SHELVES_APART:
		plan->world.workers = 2;
		break;
	default:
		break;
	}
}

void hs_sim_plan_draw_rules(struct hs_sim_plan *plan, struct hs_prng *prng)
{
	struct hs_sim_world_options *world = &plan->world;
	bool embedded = one_in(prng, 8) && world->engine.mistake == HS_SIM_NO_MISTAKE;
	bool faults = one_in(prng, 2) || world->engine.mistake == HS_SIM_DEAD_VOUCH;
	uint32_t most;

	world->workers = ONE_OF(prng, 1, 2, 2, 3);
	world->engine.partitions = (uint16_t)ONE_OF(prng, 1, 1, 2, 4);
	world->core.fold_waiters_max = 1000;
	world->core.fold = one_in(prng, 2);
	world->news_us_max = ONE_OF(prng, 0, 50, 500);
	if (one_in(prng, 8))
		world->core.cache_bytes = CACHE_BYTES_LOW * (uint64_t)world->workers;
	world->rules_count = ONE_OF(prng, 1, 1, 2);
	for (uint32_t i = 0; i < world->rules_count; i++)
		world->rules[i] = draw_rule(prng);
	draw_load(prng, &plan->load, world->rules_count);
	if (!embedded)
		draw_links(prng, plan);
	else
		plan->load.behind = 0; /* nobody else is there */
	if (!embedded && faults)
		draw_faults(prng, plan);
	help_mistake(plan);
	most = 100 * (uint32_t)(plan->load.faults ? WRITES_FAULTS_MAX : WRITES_MAX) /
	       plan->load.writes;
	most = most < REQUESTS_MAX ? most : REQUESTS_MAX;
	if (plan->load.clients * plan->load.requests > most)
		plan->load.requests = most / plan->load.clients;
}

void hs_sim_plan_describe_rules(const struct hs_sim_plan *plan, struct hs_buf *text)
{
	for (uint32_t i = 0; i < plan->world.rules_count; i++) {
		const struct hs_sim_rule *rule = &plan->world.rules[i];

		hs_buf_printf(text,
			      "rule key%u cache stale=%uus swr=%uus stale-if-error=%uus ttl=%uus "
			      "negative=%uus jitter=%u%% ahead=%u admit=%s\n",
			      i, rule->stale_us, rule->swr_us, rule->stale_if_error_us,
			      rule->ttl_us, rule->negative_us, rule->jitter_percent, rule->ahead,
			      rule->admit_all ? "all" : "hot");
	}
}

static void simplify_rule(struct hs_sim_rule *rule, uint32_t number)
{
	switch (number) {
	case 0:
		rule->swr_us = 0;
		break;
	case 1:
		rule->stale_if_error_us = 0;
		break;
	case 2:
		rule->ttl_us = rule->negative_us = 1000000;
		break;
	case 3:
		rule->jitter_percent = rule->ahead = 0;
		break;
	default:
		rule->admit_all = true;
	}
}

void hs_sim_plan_simplify_rules(struct hs_sim_plan *plan, uint32_t number)
{
	for (uint32_t i = 0; number < 5 && i < plan->world.rules_count; i++)
		simplify_rule(&plan->world.rules[i], number);
	if (number == 5)
		hs_sim_less(&plan->load.behind, 1);
	else if (number == 6)
		plan->load.flushes = false;
	else if (number == 7)
		plan->load.turns = false;
}

uint64_t hs_sim_plan_weight_rules(const struct hs_sim_plan *plan)
{
	uint64_t weight = (uint64_t)plan->load.behind + plan->load.flushes + plan->load.turns;

	for (uint32_t i = 0; i < plan->world.rules_count; i++) {
		const struct hs_sim_rule *rule = &plan->world.rules[i];

		weight += 1u + (rule->swr_us > 0) + (rule->stale_if_error_us > 0) +
			  (rule->ttl_us < 1000000) + (rule->negative_us < 1000000) +
			  (rule->jitter_percent > 0) + (rule->ahead > 0) + !rule->admit_all;
	}
	return weight;
}
