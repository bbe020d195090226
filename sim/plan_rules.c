/* Schedules in which keys have contracts. Times are such that cache entries age while clients send requests, and
 * that an invalidation takes about as long as an entry may be stale. */
#include "sim/plan_internal.h"

#include "base/limits.h"
#include "sim/faults.h"
#include "sim/names.h"

enum {
	/* Liveness checks within the shortest `stale` of a rule, as in serve/host.c. */
	LIVENESS_CHECKS = 4,
	COPIES_SEED = 0xc091,
	COPIES_ONE_IN = 4,
	CACHE_BYTES_LOW = 700, /* of a worker: one or two entries */
	ENTRY_BYTES_LOW = 16,  /* enough for a key's name, and for no reply */
	/* Upper bounds over all clients; fewer writes with faults, because unknown outcomes make the search for an
	 * order long. */
	WRITES_MAX = 50,
	WRITES_FAULTS_MAX = 25,
	REQUESTS_MAX = 250,
};

static void draw_rule(struct hs_prng *prng, struct hs_sim_rule *rule)
{
	rule->stale_us = ONE_OF(prng, 1000, 1000, 2000, 5000, 20000);
	rule->stale_while_revalidate_us = ONE_OF(prng, 0, 0, 0, 1000, 5000);
	rule->stale_if_error_us = ONE_OF(prng, 0, 0, 0, 5000);
	rule->ttl_us = ONE_OF(prng, 1000, 4000, 1000000, 1000000, 1000000, 1000000);
	rule->negative_ttl_us = ONE_OF(prng, 0, 1000, 3000, 1000000);
	rule->jitter_percent = ONE_OF(prng, 0, 10, 90);
	rule->refresh_ahead = ONE_OF(prng, 0, 1, 10);
	rule->admit_all = !one_in(prng, 3);
}

static void set_liveness(struct hs_sim_plan *plan)
{
	struct hs_sim_servers_options *servers = &plan->world.servers;

	servers->liveness_us = UINT32_MAX;
	for (uint32_t i = 0; i < plan->world.rules_count; i++) {
		if (servers->liveness_us > plan->world.rules[i].stale_us / LIVENESS_CHECKS)
			servers->liveness_us = plan->world.rules[i].stale_us / LIVENESS_CHECKS;
	}
}

static void draw_servers(struct hs_prng *prng, struct hs_sim_plan *plan)
{
	struct hs_sim_servers_options *servers = &plan->world.servers;

	hs_sim_plan_draw_servers(plan, prng);
	servers->latency_us_max = ONE_OF(prng, 0, 50, 50, 500, 2000);
	servers->slow_us = ONE_OF(prng, 0, 0, 0, 1000);
	servers->tracking_keys_max = ONE_OF(prng, 0, 0, 1);
	set_liveness(plan);
}

/* Values too large for the cache are read from replicas. */
static void draw_replica_reads(struct hs_sim_plan *plan)
{
	plan->world.core.cache_entry_bytes = ENTRY_BYTES_LOW;
	for (uint32_t i = 0; i < plan->world.rules_count; i++)
		plan->world.rules[i].replica_reads = true;
}

/* Values that the cache does not take are copied to several masters. They are seldom written, or no set of copies
 * would last. Drawn from a separate generator. */
static void draw_copies(struct hs_sim_plan *plan, bool always)
{
	struct hs_sim_world_options *world = &plan->world;
	struct hs_prng prng;

	hs_prng_init(&prng, plan->seed ^ COPIES_SEED);
	if (!always && (!world->servers.cluster || world->engine.bug != HS_SIM_NO_BUG ||
			!one_in(&prng, COPIES_ONE_IN)))
		return;
	if (one_in(&prng, 2))
		world->core.cache_bytes = 0;
	else
		world->core.cache_entry_bytes = ENTRY_BYTES_LOW;
	for (uint32_t i = 0; i < world->rules_count; i++) {
		world->rules[i].copies = (uint8_t)ONE_OF(&prng, 2, 2, 3, 3, 3, HS_COPIES_AUTO);
		world->rules[i].ttl_us = ONE_OF(&prng, 20000, 1000000, 1000000);
		world->rules[i].stale_us = ONE_OF(&prng, 2000, 10000, 50000);
		world->rules[i].replica_reads = one_in(&prng, 4) && world->servers.replicas > 0;
	}
	plan->load.clients = ONE_OF(&prng, 3, 5);
	plan->load.requests = 100;
	plan->load.writes = ONE_OF(&prng, 2, 5);
	plan->load.act_us_max = ONE_OF(&prng, 100, 300, 1000);
	plan->load.external = ONE_OF(&prng, 1, 3);
	plan->load.external_us_max = ONE_OF(&prng, 5000, 10000);
	plan->load.ttl_ms_max = ONE_OF(&prng, 0, 0, 5, 500);
	set_liveness(plan);
}

static void draw_faults(struct hs_prng *prng, struct hs_sim_plan *plan)
{
	hs_sim_plan_draw_faults(plan, prng);
	/* FLUSHALL reaches one server after the other, and may miss a key that moves. */
	if (plan->world.servers.moves || plan->world.servers.failovers)
		plan->load.flushes = false;
}

static void draw_load(struct hs_prng *prng, struct hs_sim_load_options *load, uint32_t rules)
{
	*load = (struct hs_sim_load_options){0};
	load->clients = ONE_OF(prng, 1, 2, 3, 4, 5);
	load->requests = ONE_OF(prng, 20, 60, 100);
	load->act_us_max = ONE_OF(prng, 50, 300, 300, 1000);
	load->depth_max = ONE_OF(prng, 1, 1, 3, 6);
	load->registers = rules + 1;
	load->hang_ups = one_in(prng, 4);
	load->ttl_ms_max = ONE_OF(prng, 0, 0, 2, 5);
	load->ticks = true;
	load->fold_switches = one_in(prng, 8);
	load->writes = ONE_OF(prng, 2, 5, 10, 30);
	load->external = ONE_OF(prng, 3, 6, 12);
	load->external_us_max = ONE_OF(prng, 1000, 5000, 10000);
	load->flushes = one_in(prng, 4);
	load->switches = one_in(prng, 4);
}

/* All slots of a master move to its replica, which sends nothing to the old tracking sessions. The old master, now a
 * replica, applies changes late, and invalidates then. Other faults are left out: they end tracking sessions, or
 * cause new fetches. */
static void narrow_to_failovers_only(struct hs_sim_plan *plan)
{
	struct hs_sim_servers_options *servers = &plan->world.servers;

	hs_sim_plan_make_cluster(plan);
	servers->lose_one_in = servers->mute_one_in = 0;
	servers->stalls = servers->crashes = servers->kills = servers->deaths = false;
	servers->moves = servers->lossy = servers->holds = servers->partitions = false;
	servers->failovers = true;
	servers->replicas = 1;
	servers->stream_us_max = 20000;
	servers->gossip_us_max = 5000;
	servers->act_us_max = 3000;
	plan->world.rules[0].stale_us = 1000;
	plan->world.rules[0].admit_all = true;
	plan->load.switches = plan->load.flushes = plan->load.hang_ups = false;
	plan->load.plain = true;
	plan->load.clients = 4;
	plan->load.depth_max = 1;
	plan->load.act_us_max = 1000;
}

/* A key that moves is invalidated by the DEL of its move: so a key must be missing, and reappear. And a read that
 * finds no usable entry waits for the end of the move. */
static void narrow_to_moves_only(struct hs_sim_plan *plan)
{
	struct hs_sim_servers_options *servers = &plan->world.servers;

	narrow_to_failovers_only(plan);
	servers->failovers = false;
	servers->moves = true;
	servers->message_us_max = 2000;
	servers->act_us_max = 500;
	servers->down_us_max = 20000;
}

/* Connections end often, and keys change before the next connection is established. */
static void narrow_to_kills_only(struct hs_sim_plan *plan)
{
	struct hs_sim_servers_options *servers = &plan->world.servers;

	servers->lose_one_in = 0;
	servers->stalls = servers->crashes = servers->deaths = false;
	servers->kills = true;
	servers->act_us_max = 1000;
	servers->latency_us_max = 500;
	plan->world.rules[0].stale_us = 1000;
	plan->world.rules[0].admit_all = true;
	plan->load.plain = true;
	plan->load.act_us_max = 300;
	plan->load.switches = plan->load.flushes = plan->load.hang_ups = false;
}

/* One server has a fault, and has a key with a rule, as the others do. Reads that went to a copy there are given up
 * after a while, so its faults last longer than that (sim/load_delay.c). */
static void narrow_to_one_faulty(struct hs_sim_plan *plan, struct hs_prng *prng)
{
	struct hs_sim_world_options *world = &plan->world;

	hs_sim_plan_narrow_to_one_faulty(plan, prng);
	for (; world->rules_count < world->servers.masters; world->rules_count++)
		world->rules[world->rules_count] = world->rules[world->rules_count - 1];
	plan->load.registers = HS_SIM_MOVING_KEYS;
}

static void leave_away_for_long(struct hs_sim_plan *plan)
{
	struct hs_sim_servers_options *servers = &plan->world.servers;

	if (!servers->one_faulty || plan->world.rules[0].copies == 0)
		return;
	servers->timeout_us = 1000000;
	servers->down_us_max = 1000000;
}

/* Changes the plan so that the planted bug can strike and be noticed. */
static void help_bug(struct hs_sim_plan *plan)
{
	struct hs_sim_rule *rule = &plan->world.rules[0];

	switch (plan->world.engine.bug) {
	case HS_SIM_OLD_DURING_FETCH:
		rule->stale_while_revalidate_us = 5000;
		break;
	case HS_SIM_COPIES_LEFT: /* without faults no copy may be left */
		plan->load.faults = false;
		plan->world.servers.act_us_max = 0;
		plan->world.servers.lose_one_in = plan->world.servers.mute_one_in = 0;
		/* fall through */
	case HS_SIM_COPIES_NOT_INVALIDATED:
		hs_sim_plan_make_cluster(plan);
		draw_copies(plan, true);
		rule->stale_while_revalidate_us = rule->stale_if_error_us = 0;
		rule->copies = 3;
		plan->load.writes = 5;
		break;
	case HS_SIM_WAITS_FOR_COPY:
		draw_copies(plan, true);
		plan->world.servers.act_us_max = 20000; /* when there are copies */
		plan->world.servers.slow_us = 0;
		plan->world.servers.stalls = true;
		plan->world.servers.crashes = false;
		plan->load.writes = 2;
		break;
	case HS_SIM_LIVENESS_AT_REPLY: /* a round trip takes about as long as `stale` */
		rule->stale_us = 1000;
		plan->world.servers.latency_us_max = 1000;
		rule->ttl_us = rule->negative_ttl_us = 1000000;
		rule->admit_all = true;
		plan->load.external = 30;
		plan->load.external_us_max = 2000;
		plan->load.act_us_max = 100;
		plan->load.plain = true;
		plan->load.writes = 2;
		/* fall through */
	case HS_SIM_PUSH_LATE:
	case HS_SIM_PUSH_LOST:
		rule->stale_while_revalidate_us = rule->stale_if_error_us = 0;
		break;
	case HS_SIM_DEAD_SESSION:
		/* A new fetch would be right: so the lost connection must have had other keys, too. */
		plan->world.servers.cluster = false;
		plan->world.engine.partitions = 1;
		plan->world.op_scope = HS_OP_SCOPE_ALL;
		plan->world.rules_count = 2;
		plan->load.registers = 3;
		plan->world.rules[1] = *rule;
		/* fall through */
	case HS_SIM_SESSION_SURVIVES_MOVE:
		rule->stale_while_revalidate_us = rule->stale_if_error_us = 0;
		rule->ttl_us = rule->negative_ttl_us = 1000000;
		if (plan->world.rules_count > 1)
			plan->world.rules[1] = *rule;
		plan->world.servers.lose_one_in = 100;
		plan->world.servers.mute_one_in = 0;
		if (plan->world.engine.bug == HS_SIM_SESSION_SURVIVES_MOVE)
			narrow_to_failovers_only(plan);
		else
			narrow_to_kills_only(plan);
		plan->load.external = 60;
		plan->load.external_us_max = 2000;
		plan->load.writes = 2;
		plan->load.ttl_ms_max = 0;
		plan->load.switches = false;
		break;
	case HS_SIM_MISSING_CACHED_IN_MOVE:
		rule->stale_while_revalidate_us = rule->stale_if_error_us = 0;
		rule->ttl_us = rule->negative_ttl_us = 1000000;
		narrow_to_moves_only(plan);
		plan->load.external = 60;
		plan->load.external_us_max = 2000;
		plan->load.writes = 2;
		plan->load.ttl_ms_max = 0;
		break;
	case HS_SIM_NEGATIVE_FOREVER: /* a missing key is read again and again */
		rule->negative_ttl_us = 1000;
		rule->ttl_us = 1000000;
		rule->stale_while_revalidate_us = rule->stale_if_error_us = 0;
		rule->stale_us = 1000;
		plan->load.plain = true;
		plan->load.writes = 2;
		plan->load.external = 3;
		rule->admit_all = true;
		break;
	case HS_SIM_CACHE_UNLIMITED:
		plan->world.core.cache_bytes = CACHE_BYTES_LOW * (uint64_t)plan->world.workers;
		rule->admit_all = true;
		break;
	case HS_SIM_SWITCH_IGNORED:
		plan->load.switches = true;
		break;
	case HS_SIM_REPLICA_BEHIND:
		draw_replica_reads(plan);
		hs_sim_plan_make_cluster(plan);
		plan->world.servers.replicas = 1;
		plan->world.servers.stream_us_max = 20000;
		for (uint32_t i = 0; i < plan->world.rules_count; i++)
			plan->world.rules[i].stale_us = 1000;
		plan->load.external = 30;
		plan->load.external_us_max = 2000;
		break;
	case HS_SIM_FLUSH_ONE:
		plan->load.flushes = true;
		break;
	case HS_SIM_UNKNOWN_RESENT:
		plan->world.servers.lose_one_in = 30;
		plan->load.writes = WRITES_MAX;
		break;
	case HS_SIM_CACHES_APART:
		plan->world.workers = 2;
		break;
	default:
		break;
	}
}

/* Whether the planted bug needs faults to strike. */
static bool needs_faults(const struct hs_sim_plan *plan)
{
	enum hs_sim_bug bug = plan->world.engine.bug;

	return bug == HS_SIM_DEAD_SESSION || bug == HS_SIM_SESSION_SURVIVES_MOVE ||
	       bug == HS_SIM_MISSING_CACHED_IN_MOVE || bug == HS_SIM_UNKNOWN_RESENT ||
	       (bug != HS_SIM_NO_BUG && hs_sim_plan_has_one_faulty(plan));
}

void hs_sim_plan_draw_rules(struct hs_sim_plan *plan, struct hs_prng *prng)
{
	struct hs_sim_world_options *world = &plan->world;
	bool embedded = one_in(prng, 8) && world->engine.bug == HS_SIM_NO_BUG && !plan->fleet;
	bool faults = one_in(prng, 2) || needs_faults(plan);
	uint32_t most;

	world->workers = ONE_OF(prng, 1, 2, 2, 3);
	world->core.fold_waiters_max = 1000;
	world->core.fold = one_in(prng, 2);
	world->event_us_max = ONE_OF(prng, 0, 50, 500);
	if (one_in(prng, 8))
		world->core.cache_bytes = CACHE_BYTES_LOW * (uint64_t)world->workers;
	world->rules_count = ONE_OF(prng, 1, 1, 2);
	for (uint32_t i = 0; i < world->rules_count; i++)
		draw_rule(prng, &world->rules[i]);
	draw_load(prng, &plan->load, world->rules_count);
	if (embedded)
		plan->load.external = 0; /* there are no external clients */
	else
		draw_servers(prng, plan);
	if (world->servers.replicas > 0 && one_in(prng, 4))
		draw_replica_reads(plan);
	if (!embedded && faults)
		draw_faults(prng, plan);
	if (!embedded && faults && hs_sim_plan_has_one_faulty(plan))
		narrow_to_one_faulty(plan, prng);
	draw_copies(plan, false);
	help_bug(plan);
	leave_away_for_long(plan);
	most = 100 * (uint32_t)(plan->load.faults ? WRITES_FAULTS_MAX : WRITES_MAX) /
	       plan->load.writes;
	most = most < REQUESTS_MAX ? most : REQUESTS_MAX;
	if (plan->load.clients * plan->load.requests > most)
		plan->load.requests = most / plan->load.clients;
}

void hs_sim_plan_describe_rules(const struct hs_sim_plan *plan, struct hs_buf *text)
{
	char name[HS_SIM_NAME_BYTES_MAX];

	for (uint32_t i = 0; i < plan->world.rules_count; i++) {
		const struct hs_sim_rule *rule = &plan->world.rules[i];

		hs_buf_printf(
			text,
			"rule %s cache stale=%uus stale-while-revalidate=%uus stale-if-error=%uus "
			"ttl=%uus "
			"negative-ttl=%uus jitter=%u%% refresh-ahead=%u admit=%s replica-reads=%s "
			"copies=%u\n",
			hs_sim_name(plan->world.tied, i, name), rule->stale_us,
			rule->stale_while_revalidate_us, rule->stale_if_error_us, rule->ttl_us,
			rule->negative_ttl_us, rule->jitter_percent, rule->refresh_ahead,
			rule->admit_all ? "all" : "hot", rule->replica_reads ? "yes" : "no",
			rule->copies);
	}
}

static void simplify_rule(struct hs_sim_rule *rule, uint32_t number)
{
	switch (number) {
	case 0:
		rule->stale_while_revalidate_us = 0;
		break;
	case 1:
		rule->stale_if_error_us = 0;
		break;
	case 2:
		rule->ttl_us = rule->negative_ttl_us = 1000000;
		break;
	case 3:
		rule->jitter_percent = rule->refresh_ahead = 0;
		break;
	case 4:
		rule->copies = 0;
		break;
	default:
		rule->admit_all = true;
	}
}

void hs_sim_plan_simplify_rules(struct hs_sim_plan *plan, uint32_t number)
{
	for (uint32_t i = 0; number < 6 && i < plan->world.rules_count; i++)
		simplify_rule(&plan->world.rules[i], number);
	if (number == 6)
		hs_sim_halve(&plan->load.external, 1);
	else if (number == 7)
		plan->load.flushes = false;
	else if (number == 8)
		plan->load.switches = false;
}

uint64_t hs_sim_plan_weight_rules(const struct hs_sim_plan *plan)
{
	uint64_t weight = (uint64_t)plan->load.external + plan->load.flushes + plan->load.switches;

	for (uint32_t i = 0; i < plan->world.rules_count; i++) {
		const struct hs_sim_rule *rule = &plan->world.rules[i];

		weight += 1u + (rule->stale_while_revalidate_us > 0) +
			  (rule->stale_if_error_us > 0) + (rule->ttl_us < 1000000) +
			  (rule->negative_ttl_us < 1000000) + (rule->copies > 0) +
			  (rule->jitter_percent > 0) + (rule->refresh_ahead > 0) + !rule->admit_all;
	}
	return weight;
}
