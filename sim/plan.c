/* Draws a plan from a seed, describes it for people, and simplifies it. Parts that were added later draw from
 * generators of their own (`*_SEED`), so that they do not change what a seed draws for the other parts. */
#include "sim/plan_internal.h"

#include <inttypes.h>

enum {
	OUTPUT_BYTES_LOW = 60, /* a client that does not read reaches it soon */
	RULES_ONE_IN = 4,
	SLOWNESS_SEED = 0x510e,
	PUT_OFF_SEED = 0x907f,
	DEATHS_SEED = 0xdead,
	DEATHS_ONE_IN = 6,
	STAGE_SEED = 0x57a6,
	TIED_SEED = 0x71ed,
	TIED_ONE_IN = 3,
	FLEET_ONE_IN = 4,
	ALONE_SEED = 0xa10e,
	WATCHES_SEED = 0x3a7c,
	ALONE_ONE_IN = 8,
	LOSSY_ACT_US_MAX = 3000,
	COMPANIONS_SEED = 0x6e57,
	PACE_SEED = 0x9ace,
	FLUSHES_ONE_IN = 4,
	COMPANIONS_ONE_IN = 8,
	PARTITIONS = 16, /* upper bound of the masters that heatsink counts separately */
	LIMITS_SEED = 0x11a1,
	PIPELINE_ONE_IN = 8,
	HOT_KEYS_ONE_IN = 8,
	EMPTY_SEED = 0xe397,
	EMPTY_ONE_IN = 4,
};

/* --- drawing --- */

/* Small worlds find bugs as well as large ones, and faster. */
static void draw_world(struct hs_prng *prng, struct hs_sim_world_options *world)
{
	world->workers = ONE_OF(prng, 1, 1, 1, 2, 3);
	world->engine.partitions = (uint16_t)ONE_OF(prng, 1, 1, 2, 4, 20);
	world->engine.reads_at_once = !one_in(prng, 3);
	world->engine.refuses = one_in(prng, 2);
	world->engine.commit_us_max = ONE_OF(prng, 0, 50, 500, 500);
	world->engine.answer_us_max = ONE_OF(prng, 0, 50, 500, 500);
	world->peer_us_max = ONE_OF(prng, 0, 100);
}

/* Keys turn hot soon, and cool down again. */
static void draw_fold(struct hs_prng *prng, struct hs_sim_world_options *world)
{
	world->core.fold = !one_in(prng, 8);
	world->core.fold_waiters_max = ONE_OF(prng, 1, 2, 4, 1000, 1000, 1000, 1000, 1000);
	world->round_us_max = ONE_OF(prng, 0, 20, 200);
	world->core.hot = (struct hs_core_hot){0};
	world->core.hot.share = ONE_OF(prng, 0, 0, 5, 30) / 100.0;
	world->core.hot.share_exit = ONE_OF(prng, 0, 0, 5, 30) / 100.0;
	world->core.hot.requests = ONE_OF(prng, 1, 1, 2, 3);
	world->core.hot.cool_down_us = ONE_OF(prng, 0, 500, 5000);
	if (world->core.hot.share_exit > world->core.hot.share)
		world->core.hot.share_exit = world->core.hot.share;
}

/* Three masters: when a slot has moved from one to another, the third one still has the old map. */
void hs_sim_plan_make_cluster(struct hs_sim_plan *plan)
{
	struct hs_sim_servers_options *servers = &plan->world.servers;

	servers->cluster = true;
	servers->masters = 3;
	if (plan->fleet)
		servers->replicas = 1;
	plan->world.engine.partitions = PARTITIONS;
	plan->world.op_scope = HS_OP_SCOPE_SLOT;
}

/* Draws the servers, and the number of heatsinks in front of them. */
void hs_sim_plan_draw_servers(struct hs_sim_plan *plan, struct hs_prng *prng)
{
	struct hs_sim_world_options *world = &plan->world;
	struct hs_sim_servers_options *servers = &world->servers;

	*servers = (struct hs_sim_servers_options){0};
	servers->on = true;
	servers->cluster = !one_in(prng, 4);
	servers->replicas = (uint8_t)ONE_OF(prng, 0, 1, 1);
	servers->latency_us_max = ONE_OF(prng, 0, 50, 500, 500);
	servers->slow_us = ONE_OF(prng, 0, 0, 1000);
	servers->cycle_us_max = ONE_OF(prng, 0, 20, 200);
	servers->gossip_us_max = ONE_OF(prng, 50, 1000, 5000);
	servers->stream_us_max = ONE_OF(prng, 50, 500, 5000);
	servers->message_us_max = ONE_OF(prng, 0, 50, 2000);
	servers->timeout_us = 2000000;
	servers->in_flight_max = ONE_OF(prng, 1, 4, 1000, 1000);
	servers->waiting_max = 1000;
	servers->private_max = ONE_OF(prng, 2, 100, 100);
	if (world->workers > 2)
		world->workers = 2;
	world->engine.bytes_max = 0; /* a full server refuses in the middle of EXEC */
	plan->load.full = false;
	world->engine.partitions = 1;
	world->op_scope = HS_OP_SCOPE_ALL;
	if (plan->fleet)
		world->heatsinks = ONE_OF(prng, 2, 3);
	if (plan->fleet || servers->cluster)
		hs_sim_plan_make_cluster(plan);
}

/* Changes the plan so that the planted bug can strike and be noticed. */
static void help_bug(struct hs_sim_plan *plan)
{
	struct hs_sim_servers_options *servers = &plan->world.servers;
	enum hs_sim_bug_where where = hs_sim_bug_where(plan->world.engine.bug);

	if (where == HS_SIM_IN_RULES)
		return; /* done in sim/plan_rules.c */
	servers->act_us_max = 500;
	servers->down_us_max = 5000;
	if (where == HS_SIM_IN_FLEET) {
		servers->deaths = true;
	} else if (where == HS_SIM_IN_MOVES) {
		hs_sim_plan_make_cluster(plan);
		servers->moves = true;
		servers->gossip_us_max = 5000;
		servers->message_us_max = 2000;
		servers->lose_one_in = servers->mute_one_in = 0;
		/* Many requests for one slot are in flight when it moves. */
		plan->load.registers = 1;
		plan->load.counters = 0;
		plan->load.depth_max = 4;
		plan->load.act_us_max = 1000;
		servers->act_us_max = 200;
		servers->down_us_max = 2000;
		if (plan->world.engine.bug == HS_SIM_STALE_MAP_WRITE)
			hs_sim_plan_narrow_to_fast_moves(plan);
	} else {
		servers->lose_one_in = 30;
		servers->kills = true;
	}
	if (plan->world.engine.bug == HS_SIM_MSET_RESENT) { /* seldom drawn otherwise */
		plan->load.narrow = false;
		servers->lose_one_in = 10;
	}
}

/* Draws the faults of servers, network and heatsinks. */
void hs_sim_plan_draw_faults(struct hs_sim_plan *plan, struct hs_prng *prng)
{
	struct hs_sim_servers_options *servers = &plan->world.servers;

	plan->load.faults = true;
	servers->cuts = one_in(prng, 2);
	servers->lose_one_in = ONE_OF(prng, 0, 30, 100, 300);
	servers->mute_one_in = ONE_OF(prng, 0, 0, 0, 100, 300);
	servers->timeout_us = ONE_OF(prng, 50000, 200000, 1000000);
	servers->act_us_max = ONE_OF(prng, 0, 500, 3000, 20000);
	servers->down_us_max = ONE_OF(prng, 500, 5000, 60000);
	servers->stalls = one_in(prng, 3);
	servers->crashes = one_in(prng, 3);
	servers->kills = one_in(prng, 4);
	servers->deaths = plan->world.heatsinks > 1 && one_in(prng, 2);
	if (plan->world.engine.bug != HS_SIM_NO_BUG)
		help_bug(plan);
	if (hs_sim_bug_where(plan->world.engine.bug) == HS_SIM_IN_FAILOVERS) {
		hs_sim_plan_narrow_to_failovers_only(plan);
		return;
	}
	if (!servers->cluster)
		return;
	servers->moves = !one_in(prng, 3) || servers->moves;
	servers->failovers = servers->replicas > 0 && one_in(prng, 2);
	/* A master that is replaced while it is partitioned goes on serving: sim/faults.c. */
	servers->partitions = !servers->failovers && one_in(prng, 4);
	servers->lossy = servers->holds = servers->failovers && one_in(prng, 2);
	/* Most schedules would end before a master is lost. */
	if (servers->lossy && (servers->act_us_max == 0 || servers->act_us_max > LOSSY_ACT_US_MAX))
		servers->act_us_max = LOSSY_ACT_US_MAX;
}

/* Whether the only faults are those of one server. Drawn from a separate generator. */
bool hs_sim_plan_has_one_faulty(const struct hs_sim_plan *plan)
{
	enum hs_sim_bug bug = plan->world.engine.bug;
	struct hs_prng prng;

	hs_prng_init(&prng, plan->seed ^ ALONE_SEED);
	return hs_sim_bug_where(bug) == HS_SIM_IN_ONE_FAULTY || bug == HS_SIM_FETCH_WAITS_FOR_ALL ||
	       bug == HS_SIM_WAITS_FOR_COPY ||
	       (bug == HS_SIM_NO_BUG && one_in(&prng, ALONE_ONE_IN));
}

static void draw_servers(struct hs_prng *prng, struct hs_sim_plan *plan, bool faults)
{
	hs_sim_plan_draw_servers(plan, prng);
	if (plan->world.engine.bug == HS_SIM_WATCH_REUSED)
		hs_sim_plan_narrow_to_watches(plan);
	if (!faults)
		return;
	if (plan->load.depth_max > 4) /* many unknown outcomes make the search for an order long */
		plan->load.depth_max = 4;
	if (plan->load.clients * plan->load.requests > 36)
		plan->load.requests = 36 / plan->load.clients;
	hs_sim_plan_draw_faults(plan, prng);
	plan->world.servers.waiting_max = ONE_OF(prng, 2, 1000, 1000);
	if (hs_sim_plan_has_one_faulty(plan))
		hs_sim_plan_narrow_to_one_faulty(plan, prng);
}

/* Pipelines over a few hot keys of one partition. */
static void draw_chains(struct hs_prng *prng, struct hs_sim_plan *plan)
{
	struct hs_sim_load_options *load = &plan->load;
	struct hs_sim_world_options *world = &plan->world;

	world->workers = 1;
	world->engine.partitions = 1;
	world->core.fold = true;
	world->core.fold_waiters_max = ONE_OF(prng, 2, 1000, 1000);
	world->round_us_max = ONE_OF(prng, 0, 20, 200, 200);
	world->core.hot = (struct hs_core_hot){.requests = 1, .cool_down_us = 5000};
	load->narrow = true;
	load->act_us_max = ONE_OF(prng, 10, 100);
	load->clients = ONE_OF(prng, 3, 4, 5);
	load->requests = ONE_OF(prng, 6, 12);
	load->depth_max = ONE_OF(prng, 4, 6);
	load->registers = ONE_OF(prng, 2, 3);
	load->counters = ONE_OF(prng, 0, 1);
}

static void draw_load(struct hs_prng *prng, struct hs_sim_plan *plan)
{
	struct hs_sim_load_options *load = &plan->load;
	bool narrow = !one_in(prng, 4);

	*load = (struct hs_sim_load_options){0};
	load->clients = ONE_OF(prng, 2, 3, 4, 5);
	load->requests = ONE_OF(prng, 4, 8, 12);
	load->act_us_max = narrow ? ONE_OF(prng, 10, 100) : ONE_OF(prng, 50, 300);
	load->depth_max = narrow ? ONE_OF(prng, 1, 3, 6) : ONE_OF(prng, 1, 4, 16);
	load->registers = narrow ? ONE_OF(prng, 1, 1, 2, 3) : ONE_OF(prng, 1, 2, 4);
	load->counters = narrow ? ONE_OF(prng, 0, 0, 1) : ONE_OF(prng, 0, 1, 2);
	load->hang_ups = one_in(prng, 2);
	load->cuts = one_in(prng, 8);
	load->narrow = narrow;
	load->extremes = one_in(prng, 4);
	load->ttl_ms_max = ONE_OF(prng, 0, 0, 2, 5);
	load->ticks = true;
	load->fold_switches = one_in(prng, 8);
	/* Many clients with few requests each: more would make the search for an order long. */
	if (one_in(prng, 8)) {
		load->clients = ONE_OF(prng, 8, 12);
		load->requests = ONE_OF(prng, 2, 4);
		load->depth_max = ONE_OF(prng, 1, 3);
	}
	if (one_in(prng, 4))
		draw_chains(prng, plan);
	if (plan->world.engine.bug == HS_SIM_OUTPUT_UNLIMITED)
		load->cuts = true;
	if (load->cuts)
		plan->world.core.output_bytes_max = OUTPUT_BYTES_LOW;
	load->busy = plan->world.core.fold_waiters_max < 1000;
	if (one_in(prng, 16)) {
		load->full = true;
		plan->world.engine.bytes_max = ONE_OF(prng, 30, 60, 100);
	}
}

/* A machine under load: commits and answers take milliseconds, readers see changes late, workers are delayed, and
 * times to live end meanwhile. Drawn from a separate generator. */
static void draw_slowness(uint64_t seed, struct hs_sim_plan *plan, bool always)
{
	struct hs_sim_world_options *world = &plan->world;
	struct hs_prng prng;

	hs_prng_init(&prng, seed ^ SLOWNESS_SEED);
	if (!always && one_in(&prng, 2))
		return;
	world->engine.put_off_us_max = ONE_OF(&prng, 0, 50, 500, 5000);
	world->engine.seal_us_max = ONE_OF(&prng, 0, 50, 500, 5000);
	world->slow_us_max = ONE_OF(&prng, 0, 500, 5000, 20000);
	if (!always && one_in(&prng, 2))
		return;
	world->slow_us_max = ONE_OF(&prng, 5000, 20000);
	world->engine.seal_us_max = ONE_OF(&prng, 500, 5000);
	world->engine.commit_us_max = ONE_OF(&prng, 500, 5000);
	world->engine.answer_us_max = ONE_OF(&prng, 500, 5000);
	plan->load.act_us_max = ONE_OF(&prng, 300, 3000);
	plan->load.ttl_ms_max = ONE_OF(&prng, 2, 5, 20);
	plan->load.timed = always || one_in(&prng, 2);
	if (!always)
		return;
	world->engine.reads_at_once = true;
	world->engine.seal_us_max = 5000;
	world->engine.commit_us_max = 500;
	world->slow_us_max = ONE_OF(&prng, 0, 300, 20000);
	world->core.fold = false;
	plan->load.registers = 1;
	plan->load.counters = 0;
	plan->load.clients = 6;
	plan->load.requests = 16;
	plan->load.depth_max = 2;
	plan->load.ttl_ms_max = 5;
	plan->load.act_us_max = ONE_OF(&prng, 300, 1000, 3000);
}

/* The same delays in schedules with contracts or with tracking clients, whose requests stay as they were drawn. */
static void draw_slow_engine(struct hs_sim_plan *plan)
{
	struct hs_sim_world_options *world = &plan->world;
	struct hs_prng prng;

	hs_prng_init(&prng, plan->seed ^ PUT_OFF_SEED);
	if (world->servers.on || (!plan->has_client_caches && world->rules_count == 0) ||
	    world->engine.bug != HS_SIM_NO_BUG || one_in(&prng, 2))
		return;
	world->engine.put_off_us_max = ONE_OF(&prng, 0, 50, 500, 5000);
	world->engine.seal_us_max = ONE_OF(&prng, 0, 50, 500, 5000);
	world->slow_us_max = ONE_OF(&prng, 0, 0, 500, 5000, 20000);
	if (one_in(&prng, 2))
		return;
	world->engine.commit_us_max = ONE_OF(&prng, 500, 5000);
	world->engine.answer_us_max = ONE_OF(&prng, 500, 5000);
}

/* A single heatsink dies and starts again. Drawn from a separate generator. */
static void draw_lone_deaths(struct hs_sim_plan *plan)
{
	struct hs_sim_servers_options *servers = &plan->world.servers;
	struct hs_prng prng;

	hs_prng_init(&prng, plan->seed ^ DEATHS_SEED);
	if (plan->world.heatsinks == 1 && servers->act_us_max > 0 && !servers->one_faulty &&
	    !plan->has_client_caches && plan->world.engine.bug == HS_SIM_NO_BUG &&
	    one_in(&prng, DEATHS_ONE_IN))
		servers->deaths = true;
}

/* Servers whose connections and masters come and go. */
static void draw_client_caches_servers(struct hs_prng *prng, struct hs_sim_plan *plan)
{
	struct hs_sim_servers_options *servers = &plan->world.servers;

	hs_sim_plan_draw_servers(plan, prng);
	plan->client_caches.rounds = 1;
	if (one_in(prng, 2) && plan->world.engine.bug == HS_SIM_NO_BUG)
		return;
	hs_sim_plan_draw_faults(plan, prng);
	servers->deaths = false;
}

/* Companion clients. Drawn from a separate generator. */
static void draw_companions(uint64_t seed, struct hs_sim_plan *plan, bool always, bool faults)
{
	struct hs_sim_companions_options *companions = &plan->load.companions;
	bool servers = plan->world.servers.on;
	struct hs_prng prng;

	hs_prng_init(&prng, seed ^ COMPANIONS_SEED);
	/* The checks of lists do not allow for lost writes. */
	if (plan->has_client_caches || plan->world.stage || plan->world.servers.lossy ||
	    (!always &&
	     (!one_in(&prng, COMPANIONS_ONE_IN) || plan->world.engine.bug != HS_SIM_NO_BUG)))
		return;
	companions->poppers = servers ? ONE_OF(&prng, 1, 2, 2) : 0;
	companions->pushers = servers ? ONE_OF(&prng, 1, 1, 2) : 0;
	companions->subscribers = ONE_OF(&prng, 1, 2);
	companions->publishers = ONE_OF(&prng, 1, 2);
	companions->requests = ONE_OF(&prng, 4, 8);
	companions->act_us_max = ONE_OF(&prng, 100, 1000, 5000);
	companions->timeout_us_max = ONE_OF(&prng, 1000, 20000, 100000);
	companions->faults = faults;
	companions->forever = !faults;
	companions->crowded = plan->world.servers.private_max < 100;
	companions->hang_ups = one_in(&prng, 2);
}

/* The pace of tracking clients: over before a slot moves, or while several slots do. Drawn from a generator of its
 * own. */
static void draw_pace(struct hs_sim_plan *plan)
{
	struct hs_sim_client_caches_options *client_caches = &plan->client_caches;
	enum hs_sim_bug bug = plan->world.engine.bug;
	struct hs_prng prng;

	hs_prng_init(&prng, plan->seed ^ PACE_SEED);
	client_caches->act_us_max = ONE_OF(&prng, 200, 1000, 3000);
	client_caches->flushes = bug == HS_SIM_NO_BUG && one_in(&prng, FLUSHES_ONE_IN);
	if (hs_sim_bug_where(bug) != HS_SIM_IN_MOVES)
		return;
	client_caches->act_us_max = 3000;
	client_caches->clients = 6; /* many clients write one key while its slot moves */
	client_caches->requests = 12;
}

static void draw_caches(struct hs_prng *prng, struct hs_sim_plan *plan)
{
	plan->world.core.tracking_keys_max = ONE_OF(prng, 0, 1, 3, 1000);
	plan->world.core.fold_waiters_max = 1000;
	plan->world.event_us_max = ONE_OF(prng, 0, 50, 500);
	plan->client_caches = (struct hs_sim_client_caches_options){0};
	plan->client_caches.clients = ONE_OF(prng, 2, 3);
	plan->client_caches.keys = ONE_OF(prng, 1, 2, 4);
	plan->client_caches.rounds = 2;
	plan->client_caches.requests = ONE_OF(prng, 4, 8);
	if (plan->world.engine.bug == HS_SIM_TRACKED_UNLIMITED) {
		plan->world.core.tracking_keys_max = 1;
		plan->client_caches.keys = 4;
	}
	draw_pace(plan);
}

const char *const hs_sim_focuses[] = {
	[HS_SIM_FOCUS_ANYTHING] = "anything", [HS_SIM_FOCUS_STRICT] = "strict",
	[HS_SIM_FOCUS_TRACKING] = "clients",  [HS_SIM_FOCUS_RULES] = "rules",
	[HS_SIM_FOCUS_FLEET] = "fleet",	      [HS_SIM_FOCUSES] = NULL,
};

/* The focus that a planted bug needs; most bugs can also be found with tracking clients. */
static enum hs_sim_focus pick_focus(uint64_t seed, enum hs_sim_bug bug, enum hs_sim_focus focus)
{
	enum hs_sim_bug_where where = hs_sim_bug_where(bug);
	struct hs_prng prng;

	if (where == HS_SIM_IN_RULES)
		return HS_SIM_FOCUS_RULES;
	if (where == HS_SIM_IN_TRACKING || where == HS_SIM_IN_TRACKING_FAULTS)
		return HS_SIM_FOCUS_TRACKING;
	if (where == HS_SIM_IN_FLEET)
		return HS_SIM_FOCUS_FLEET;
	if (where == HS_SIM_IN_ONE_FAULTY && focus == HS_SIM_FOCUS_RULES)
		return HS_SIM_FOCUS_RULES;
	if (bug != HS_SIM_NO_BUG)
		return focus == HS_SIM_FOCUS_TRACKING ? focus : HS_SIM_FOCUS_STRICT;
	hs_prng_init(&prng, ~seed);
	if ((focus == HS_SIM_FOCUS_ANYTHING || focus == HS_SIM_FOCUS_FLEET) &&
	    one_in(&prng, RULES_ONE_IN))
		return HS_SIM_FOCUS_RULES;
	return focus;
}

/* Drawn from a separate generator. */
static bool draw_stage(uint64_t seed)
{
	struct hs_prng prng;

	hs_prng_init(&prng, seed ^ STAGE_SEED);
	return one_in(&prng, 4);
}

static bool draw_watches(uint64_t seed)
{
	struct hs_prng prng;

	hs_prng_init(&prng, seed ^ WATCHES_SEED);
	return one_in(&prng, 16);
}

/* Several keys share a slot: a command that names more than one goes to one server, also while that slot moves.
 * Drawn from a separate generator. */
static void draw_tied(struct hs_sim_plan *plan)
{
	struct hs_sim_load_options *load = &plan->load;
	uint32_t keys = plan->has_client_caches ? plan->client_caches.keys : load->registers;
	enum hs_sim_bug bug = plan->world.engine.bug;
	struct hs_sim_servers_options *servers = &plan->world.servers;
	struct hs_prng prng;

	hs_prng_init(&prng, plan->seed ^ TIED_SEED);
	if (!servers->on || servers->one_faulty ||
	    (bug != HS_SIM_NO_BUG && bug != HS_SIM_HALF_SLOT_SERVED) ||
	    (!one_in(&prng, TIED_ONE_IN) && bug != HS_SIM_HALF_SLOT_SERVED))
		return;
	if (keys == 1 && !plan->has_client_caches)
		keys = load->registers = ONE_OF(&prng, 2, 2, 3);
	if (bug == HS_SIM_HALF_SLOT_SERVED) { /* its slot stays on two nodes for long */
		keys = load->registers = 2;
		servers->down_us_max = 20000;
	}
	if (servers->act_us_max > 0 && servers->cluster) {
		servers->moves = true;
		load->flushes = false; /* see draw_faults in sim/plan_rules.c */
		servers->act_us_max = ONE_OF(&prng, 500, 500, 3000);
	}
	plan->world.tied = keys > 2 ? ONE_OF(&prng, 1, 2, 2) : keys - 1;
}

/* Lowers limits that no load would reach. Drawn from a separate generator. Not with one faulty server: law 9's
 * bound does not allow for clients that are held. */
static void draw_limits(struct hs_sim_plan *plan)
{
	struct hs_core_options *core = &plan->world.core;
	enum hs_sim_bug bug = plan->world.engine.bug;
	bool none = bug == HS_SIM_NO_BUG && !plan->world.servers.one_faulty;
	struct hs_prng prng;

	hs_prng_init(&prng, plan->seed ^ LIMITS_SEED);
	if (bug == HS_SIM_PIPELINE_UNLIMITED || (one_in(&prng, PIPELINE_ONE_IN) && none))
		core->session_inflight_max = ONE_OF(&prng, 1, 2, 4);
	if (bug == HS_SIM_HOT_UNLIMITED || (one_in(&prng, HOT_KEYS_ONE_IN) && none))
		core->hot.keys_max = ONE_OF(&prng, 1, 1, 2);
}

/* A slot moves to a master without slots, which is in no slot map. Clients that track keys get invalidations from
 * there only after heatsink has looked at the slots again (engine/redis/subscriber.h), after most schedules. */
static void draw_empty(struct hs_sim_plan *plan)
{
	struct hs_sim_servers_options *servers = &plan->world.servers;
	enum hs_sim_bug bug = plan->world.engine.bug;
	struct hs_prng prng;

	hs_prng_init(&prng, plan->seed ^ EMPTY_SEED);
	if (bug == HS_SIM_EMPTY_MASTER_DROPPED || bug == HS_SIM_ASK_REFUSED) {
		plan->load.depth_max = 1;
		plan->load.registers = 2;
		plan->world.core.fold = false;
		plan->world.tied = 1; /* a move may last long */
		servers->moves = true;
		servers->act_us_max = 500;
		servers->timeout_us = 1000000;
		servers->stalls = servers->crashes = servers->partitions = false;
		servers->kills = servers->deaths = servers->failovers = false;
	}
	servers->one_empty =
		bug == HS_SIM_EMPTY_MASTER_DROPPED ||
		(bug == HS_SIM_NO_BUG && servers->on && servers->cluster && servers->moves &&
		 !servers->one_faulty && !plan->has_client_caches && one_in(&prng, EMPTY_ONE_IN));
}

static void draw(struct hs_sim_plan *plan, uint64_t seed, enum hs_sim_bug bug,
		 enum hs_sim_focus focus)
{
	enum hs_sim_bug_where where = hs_sim_bug_where(bug);
	bool faults, servers;
	struct hs_prng prng;

	*plan = (struct hs_sim_plan){.seed = seed, .world = hs_sim_world_defaults(seed)};
	hs_prng_init(&prng, seed);
	plan->world.engine.bug = bug;
	plan->world.stage = where == HS_SIM_IN_STAGE || (bug == HS_SIM_NO_BUG && draw_stage(seed));
	draw_world(&prng, &plan->world);
	draw_fold(&prng, &plan->world);
	plan->fleet = focus == HS_SIM_FOCUS_FLEET || where == HS_SIM_IN_FLEET ||
		      (bug == HS_SIM_NO_BUG && focus == HS_SIM_FOCUS_ANYTHING &&
		       one_in(&prng, FLEET_ONE_IN));
	focus = pick_focus(seed, bug, focus);
	if (focus == HS_SIM_FOCUS_RULES) {
		hs_sim_plan_draw_rules(plan, &prng);
		return;
	}
	plan->has_client_caches = one_in(&prng, 6) && !plan->fleet;
	servers = hs_prng_below(&prng, 2) == 0 || plan->fleet;
	faults = !one_in(&prng, 3);
	if (focus != HS_SIM_FOCUS_ANYTHING && focus != HS_SIM_FOCUS_FLEET)
		plan->has_client_caches = focus == HS_SIM_FOCUS_TRACKING;
	if (where == HS_SIM_IN_ENGINE || where == HS_SIM_IN_SLOWNESS || where == HS_SIM_IN_TRACKING)
		servers = false;
	if (where == HS_SIM_IN_SERVERS || where == HS_SIM_IN_MOVES || where == HS_SIM_IN_FLEET ||
	    where == HS_SIM_IN_TRACKING_FAULTS || where == HS_SIM_IN_FAILOVERS ||
	    where == HS_SIM_IN_ONE_FAULTY)
		servers = faults = true;
	if (where == HS_SIM_IN_COMPANIONS_FAULTS)
		servers = faults = true;
	if (where == HS_SIM_IN_HEALTHY_SERVERS || where == HS_SIM_IN_COMPANIONS) {
		servers = true;
		faults = false;
	}
	if (where == HS_SIM_IN_FOLD)
		plan->world.core.fold_waiters_max = 1;
	if (plan->has_client_caches)
		draw_caches(&prng, plan);
	else
		draw_load(&prng, plan);
	plan->load.watches = bug == HS_SIM_NO_BUG && draw_watches(seed);
	if (!servers && !plan->has_client_caches)
		draw_slowness(seed, plan, where == HS_SIM_IN_SLOWNESS);
	if (servers && plan->has_client_caches)
		draw_client_caches_servers(&prng, plan);
	else if (servers)
		draw_servers(&prng, plan, faults);
	draw_companions(seed, plan,
			where == HS_SIM_IN_COMPANIONS || where == HS_SIM_IN_COMPANIONS_FAULTS,
			servers && faults);
}

void hs_sim_plan_draw(struct hs_sim_plan *plan, uint64_t seed, enum hs_sim_bug bug,
		      enum hs_sim_focus focus)
{
	draw(plan, seed, bug, focus);
	draw_slow_engine(plan);
	draw_lone_deaths(plan);
	draw_tied(plan);
	draw_limits(plan);
	draw_empty(plan);
}

/* --- description --- */

static void describe_servers(const struct hs_sim_plan *plan, struct hs_buf *text)
{
	const struct hs_sim_servers_options *servers = &plan->world.servers;
	const struct {
		const char *name;
		bool on;
	} faults[] = {
		{"connections are lost", servers->lose_one_in > 0},
		{"connections fall silent", servers->mute_one_in > 0},
		{"slots move", servers->moves},
		{"one master has no slots", servers->one_empty},
		{"failovers", servers->failovers},
		{"failovers lose writes", servers->lossy},
		{"servers stall", servers->stalls},
		{"servers crash", servers->crashes},
		{"servers are partitioned", servers->partitions},
		{"servers close connections", servers->kills},
		{"heatsinks die", servers->deaths},
		{"one server is faulty", servers->one_faulty},
	};

	if (servers->cluster)
		hs_buf_printf(text, "%u heatsinks, %u masters with %u replicas each",
			      plan->world.heatsinks, servers->masters, servers->replicas);
	else
		hs_buf_printf(text, "%u heatsinks, one server", plan->world.heatsinks);
	for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
		if (faults[i].on)
			hs_buf_printf(text, ", %s", faults[i].name);
	}
}

void hs_sim_plan_describe(const struct hs_sim_plan *plan, struct hs_buf *text)
{
	const struct hs_sim_world_options *world = &plan->world;
	const struct hs_sim_load_options *load = &plan->load;

	hs_buf_printf(text, "seed %" PRIu64 ", %u workers, %u partitions, ", plan->seed,
		      world->workers, world->engine.partitions);
	if (world->servers.on)
		describe_servers(plan, text);
	else
		hs_buf_printf(text, "reads %s%s",
			      world->engine.reads_at_once ? "at once" : "queued",
			      world->engine.put_off_us_max > 0 ? ", commits put off" : "");
	if (world->slow_us_max > 0)
		hs_buf_printf(text, ", slow workers");
	if (world->tied > 0)
		hs_buf_printf(text, ", keys 0 to %u share a slot", world->tied);
	if (world->stage)
		hs_buf_printf(text, ", a stage that delays and holds");
	if (world->core.fold)
		hs_buf_printf(text, ", keys turn hot at %.0f requests and %.0f %%, %u waiters",
			      world->core.hot.requests, world->core.hot.share * 100,
			      world->core.fold_waiters_max);
	if (world->core.session_inflight_max > 0)
		hs_buf_printf(text, ", at most %u requests in flight for each client",
			      world->core.session_inflight_max);
	if (world->core.hot.keys_max > 0)
		hs_buf_printf(text, ", at most %u hot keys", world->core.hot.keys_max);
	if (plan->has_client_caches)
		hs_buf_printf(text, "; %u clients that track keys, %u keys\n",
			      plan->client_caches.clients, plan->client_caches.keys);
	else
		hs_buf_printf(text, "; %u clients, %u requests each, up to %u in flight, %u keys\n",
			      load->clients, load->requests, load->depth_max,
			      load->registers + load->counters);
	if (load->companions.requests > 0)
		hs_buf_printf(text,
			      "companions: %u poppers, %u pushers, %u subscribers, %u publishers, "
			      "%u requests each\n",
			      load->companions.poppers, load->companions.pushers,
			      load->companions.subscribers, load->companions.publishers,
			      load->companions.requests);
	hs_sim_plan_describe_rules(plan, text);
}

/* --- simplifying --- */

static void one_less(uint32_t *number, uint32_t least)
{
	*number = *number > least ? *number - 1 : least;
}

static void simplify_world(struct hs_sim_plan *plan, uint32_t number)
{
	struct hs_sim_world_options *world = &plan->world;

	switch (number) {
	case 0:
		world->workers = 1;
		break;
	case 1:
		if (!world->servers.on)
			world->engine.partitions = 1;
		break;
	case 2:
		world->servers.lose_one_in = world->servers.mute_one_in = 0;
		break;
	case 3:
		world->servers.moves = world->servers.one_empty = false;
		break;
	case 4:
		world->servers.failovers = world->servers.lossy = false;
		break;
	case 5:
		world->servers.stalls = world->servers.crashes = world->servers.kills = false;
		break;
	case 6:
		world->servers.deaths = world->servers.partitions = false;
		break;
	case 7:
		world->round_us_max = 0;
		break;
	case 8:
		world->core.fold = false;
		break;
	case 9:
		world->engine.put_off_us_max = 0;
		world->engine.seal_us_max = 0;
		break;
	case 10:
		world->slow_us_max = 0;
		break;
	case 11:
		world->stage = false;
		break;
	case 12:
		world->servers.slow_us = 0;
		world->servers.cuts = false;
		break;
	case 13:
		world->heatsinks = world->heatsinks > 1 ? world->heatsinks - 1 : 1;
		break;
	case 14:
		world->tied = 0;
		break;
	case 15:
		world->core.session_inflight_max = 0;
		break;
	case 16:
		world->core.hot.keys_max = 0;
		break;
	default:
		world->engine.refuses = false;
	}
}

static void simplify_load(struct hs_sim_plan *plan, uint32_t number)
{
	struct hs_sim_load_options *load = &plan->load;

	switch (number) {
	case 0:
		hs_sim_halve(&load->clients, 1);
		break;
	case 1:
		hs_sim_halve(&load->requests, 1);
		break;
	case 2:
		one_less(&load->clients, 1);
		break;
	case 3:
		one_less(&load->requests, 1);
		break;
	case 4:
		hs_sim_halve(&load->registers, 1);
		if (plan->world.rules_count > load->registers)
			plan->world.rules_count = load->registers;
		if (plan->world.tied >= load->registers)
			plan->world.tied = load->registers - 1;
		break;
	case 5:
		load->counters = 0;
		break;
	case 6:
		load->hang_ups = false;
		break;
	case 7:
		load->extremes = false;
		break;
	case 8:
		load->ttl_ms_max = 0;
		break;
	case 9:
		load->fold_switches = false;
		break;
	case 10:
		load->ticks = false;
		break;
	case 11:
		plan->load.full = false;
		plan->world.engine.bytes_max = 0;
		break;
	case 12:
		one_less(&load->companions.requests, 0);
		break;
	case 13:
		load->companions.poppers = load->companions.pushers = 0;
		break;
	case 14:
		load->companions.subscribers = load->companions.publishers = 0;
		break;
	case 15:
		load->companions.hang_ups = false;
		break;
	default:
		one_less(&load->depth_max, 1);
	}
}

static void simplify_caches(struct hs_sim_plan *plan, uint32_t number)
{
	struct hs_sim_client_caches_options *client_caches = &plan->client_caches;

	switch (number) {
	case 0:
		hs_sim_halve(&client_caches->clients, 1);
		break;
	case 1:
		hs_sim_halve(&client_caches->requests, 1);
		break;
	case 2:
		one_less(&client_caches->clients, 1);
		break;
	case 3:
		one_less(&client_caches->requests, 1);
		break;
	case 4:
		hs_sim_halve(&client_caches->keys, 1);
		if (plan->world.tied >= client_caches->keys)
			plan->world.tied = client_caches->keys - 1;
		break;
	case 5:
		client_caches->rounds = 1;
		break;
	case 6:
		client_caches->flushes = false;
		break;
	default:
		break;
	}
}

bool hs_sim_plan_simplify(struct hs_sim_plan *plan, uint32_t number)
{
	enum { LOAD_WAYS = 17, WORLD_WAYS = 18 };

	if (number < LOAD_WAYS && plan->has_client_caches)
		simplify_caches(plan, number);
	else if (number < LOAD_WAYS)
		simplify_load(plan, number);
	else if (number >= LOAD_WAYS + WORLD_WAYS)
		hs_sim_plan_simplify_rules(plan, number - LOAD_WAYS - WORLD_WAYS);
	else if (number >= LOAD_WAYS)
		simplify_world(plan, number - LOAD_WAYS);
	return number + 1 < LOAD_WAYS + WORLD_WAYS + HS_SIM_RULES_WAYS;
}

uint64_t hs_sim_plan_weight(const struct hs_sim_plan *plan)
{
	const struct hs_sim_world_options *world = &plan->world;
	const struct hs_sim_servers_options *servers = &world->servers;
	const struct hs_sim_load_options *load = &plan->load;
	const struct hs_sim_client_caches_options *client_caches = &plan->client_caches;
	const uint64_t parts[] = {
		load->clients,
		load->requests,
		load->depth_max,
		load->registers,
		load->counters,
		load->hang_ups,
		load->extremes,
		load->ttl_ms_max,
		load->ticks,
		load->fold_switches,
		load->full,
		load->companions.requests,
		load->companions.poppers,
		load->companions.pushers,
		load->companions.subscribers,
		load->companions.publishers,
		load->companions.hang_ups,
		client_caches->clients,
		client_caches->keys,
		client_caches->requests,
		client_caches->rounds,
		client_caches->flushes,
		world->workers,
		world->core.fold,
		world->engine.refuses,
		world->engine.put_off_us_max > 0,
		world->engine.seal_us_max > 0,
		world->slow_us_max > 0,
		world->stage,
		world->engine.partitions,
		world->round_us_max,
		world->heatsinks,
		world->tied,
		world->core.session_inflight_max > 0,
		world->core.hot.keys_max > 0,
		servers->slow_us,
		servers->cuts,
		servers->lose_one_in > 0,
		servers->mute_one_in > 0,
		servers->moves,
		servers->failovers,
		servers->lossy,
		servers->stalls,
		servers->crashes,
		servers->kills,
		servers->deaths,
		servers->partitions,
	};
	uint64_t weight = hs_sim_plan_weight_rules(plan);

	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
		weight += parts[i];
	return weight;
}
