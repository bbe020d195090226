/* Narrow plans: one kind of fault, without anything that would hide it. For planted bugs, and for laws that can only
 * be checked in such a world. */
#include "sim/plan_internal.h"

#include "base/limits.h"
#include "sim/faults.h"

/* Only a lost master causes retries. */
void hs_sim_plan_narrow_to_failovers_only(struct hs_sim_plan *plan)
{
	struct hs_sim_servers_options *servers = &plan->world.servers;

	hs_sim_plan_make_cluster(plan);
	servers->replicas = 1;
	servers->lose_one_in = servers->mute_one_in = 0;
	servers->cuts = servers->stalls = servers->crashes = servers->partitions = false;
	servers->moves = servers->kills = servers->deaths = false;
	servers->failovers = servers->lossy = true;
	servers->holds = false;
	servers->act_us_max = 500;
	servers->latency_us_max = 500;
	servers->stream_us_max = 50;
	plan->load.hang_ups = false;
	/* Many requests are in flight to one master when it is lost. */
	plan->world.core.fold = plan->load.extremes = false;
	plan->load.narrow = true;
	plan->load.registers = plan->load.counters = 1;
	plan->load.clients = 5;
	plan->load.requests = 12;
	plan->load.depth_max = 6;
	plan->load.act_us_max = 50;
}

/* One server has a fault for a long time, and requests to the others must not be delayed (sim/load_delay.c).
 * Everything else that makes requests wait is left out, because it would hide a delay. */
void hs_sim_plan_narrow_to_one_faulty(struct hs_sim_plan *plan, struct hs_prng *prng)
{
	struct hs_sim_servers_options *servers = &plan->world.servers;

	hs_sim_plan_make_cluster(plan);
	servers->one_faulty = true;
	servers->victim = (uint8_t)hs_prng_below(prng, servers->masters);
	servers->lose_one_in = servers->mute_one_in = 0;
	servers->cuts = servers->partitions = servers->moves = servers->kills = false;
	servers->failovers = servers->lossy = servers->holds = servers->deaths = false;
	servers->slow_us = 0;
	servers->timeout_us = ONE_OF(prng, 200000, 1000000);
	servers->waiting_max = 1000;
	servers->act_us_max = ONE_OF(prng, 500, 3000);
	servers->down_us_max = ONE_OF(prng, 60000, 200000);
	servers->stalls = one_in(prng, 2);
	servers->crashes = !servers->stalls || one_in(prng, 2);
	if (one_in(prng, 4) && plan->world.engine.bug != HS_SIM_PARKS_ALL) {
		servers->act_us_max = 0;
		servers->slow_us = 20000;
		servers->victim = 0;
		servers->timeout_us =
			1000000; /* long enough for all requests that wait there, one by one */
	}
	plan->world.stage = false;
	plan->world.core.fold_waiters_max = 1000;
	plan->load.registers = HS_SIM_MOVING_KEYS; /* keys of all three masters */
	plan->load.cuts = plan->load.busy = plan->load.extremes = false;
	plan->world.core.output_bytes_max = 64 * HS_MIB;
}

/* A private connection is reused again and again, and few clients write what is watched meanwhile. */
void hs_sim_plan_narrow_to_watches(struct hs_sim_plan *plan)
{
	plan->load.watches = plan->load.narrow = true;
	plan->load.clients = 2;
	plan->load.requests = 12;
	plan->load.depth_max = 1;
	plan->load.registers = 1;
	plan->load.counters = 0;
	plan->load.ttl_ms_max = 0;
	plan->load.hang_ups = false;
	plan->world.workers = 1;
	plan->world.servers.private_max = 2;
}

/* A slot moves faster than gossip, and many clients write at once. */
void hs_sim_plan_narrow_to_fast_moves(struct hs_sim_plan *plan)
{
	struct hs_sim_servers_options *servers = &plan->world.servers;

	servers->act_us_max = 500;
	servers->down_us_max = 500;
	servers->latency_us_max = 50;
	servers->stalls = servers->crashes = servers->kills = servers->cuts = false;
	plan->load.narrow = true;
	plan->load.hang_ups = false;
	plan->load.depth_max = 1;
	plan->load.clients = 8;
	plan->load.requests = 12;
}
