#include "sim/servers.h"

#include "base/slot.h"
#include "sim/cluster.h"
#include "sim/faults.h"
#include "sim/network.h"
#include "sim/world_internal.h"

enum {
	START_US_MAX = 5000000,
	CALM_US_MAX = 20000000,
	CALM_STEP_US = 100000,
	/* A flow that has given up a server refuses requests for it until 2.5 s after its last attempt (is_given_up
	 * in engine/redis/flow.c). Monitors look at the topology meanwhile, and servers serve again some time after
	 * all of them have received each other's gossip. */
	CALM_US_MIN = 3000000,
	PARTITIONS = 16,
	REFRESH_MS = 5000,
	OPEN_US_MAX = 100000,
	REJOIN_US = 1000,
};

static void create_network(struct hs_sim_world *world)
{
	const struct hs_sim_servers_options *servers = &world->options.servers;
	const struct hs_sim_network_options options = {
		.seed = hs_prng_next(&world->prng),
		.latency_us_max = servers->latency_us_max,
		.slow_us = servers->slow_us,
		.open_us_max = OPEN_US_MAX,
		.lose_one_in = servers->lose_one_in,
		.mute_one_in = servers->mute_one_in,
		.cuts = servers->cuts,
		.keeps_open = world->options.engine.bug == HS_SIM_CONNECTION_LEFT,
	};

	world->network = hs_sim_network_create(&options, &world->events, &world->now);
}

static void create_cluster(struct hs_sim_world *world)
{
	const struct hs_sim_servers_options *servers = &world->options.servers;
	struct hs_sim_cluster_options options = hs_sim_cluster_defaults(hs_prng_next(&world->prng));
	const struct hs_sim_cluster_host host = {
		.events = &world->events,
		.now = &world->now,
		.send = hs_sim_network_send,
		.closed = hs_sim_network_closed,
		.changed = hs_sim_truth_changed_at,
		.ran = hs_sim_truth_ran_at,
		.refused = hs_sim_truth_refused_at,
		.context = world,
		.coverage = &world->coverage,
	};

	options.cluster = servers->cluster;
	options.masters = servers->cluster ? servers->masters : 1;
	options.one_empty = servers->one_empty;
	options.replicas = servers->cluster ? servers->replicas : 0;
	options.extras = true;
	options.lossy = servers->lossy;
	options.partial = servers->one_faulty;
	options.bytes_max = world->options.engine.bytes_max;
	options.tracking_keys_max = servers->tracking_keys_max;
	options.cycle_us_max = servers->cycle_us_max;
	options.gossip_us_max = servers->gossip_us_max;
	/* As Redis, which waits two seconds: a restarted master must learn of its replacement before it serves. */
	options.rejoin_us = servers->gossip_us_max + REJOIN_US;
	options.stream_us_max = servers->stream_us_max;
	if (servers->node_timeout_us > 0)
		options.node_timeout_us = servers->node_timeout_us;
	options.serves_lost_writes = world->options.engine.bug == HS_SIM_STALE_MAP_WRITE;
	options.serves_lost_reads = world->options.engine.bug == HS_SIM_STALE_MAP_READ;
	options.serves_half_slots = world->options.engine.bug == HS_SIM_HALF_SLOT_SERVED;
	options.keeps_watches = world->options.engine.bug == HS_SIM_WATCH_REUSED;
	world->cluster = hs_sim_cluster_create(&options, &host);
	hs_sim_network_attach(world->network, world->cluster);
}

void hs_sim_servers_create(struct hs_sim_world *world)
{
	create_network(world);
	create_cluster(world);
}

static bool all_routed(const struct hs_sim_world *world)
{
	for (uint32_t i = 0; i < world->options.heatsinks; i++) {
		const struct hs_sim_heatsink *heatsink = &world->heatsinks[i];

		if (!heatsink->redis || !hs_sim_redis_is_routed(heatsink->redis))
			return false;
	}
	return true;
}

/* Clients that all wait for the faulty server cause no ticks (disturb in sim/load.c), but timeouts elsewhere
 * need them. */
static void tick(void *context, void *target, uint64_t number)
{
	struct hs_sim_world *world = context;

	(void)target, (void)number;
	if (world->faults_stopped)
		return;
	hs_sim_world_tick(world);
	hs_sim_events_plan(&world->events,
			   (struct hs_sim_event){.at_us = world->now.mono_us + HS_SIM_TICK_US,
						 .run = tick,
						 .context = world});
}

void hs_sim_servers_start(struct hs_sim_world *world)
{
	uint64_t until_us = world->now.mono_us + START_US_MAX;

	while (!all_routed(world) && world->now.mono_us < until_us && hs_sim_world_step(world)) {
	}
	hs_check(all_routed(world));
	hs_sim_network_set_faults(world->network, true);
	hs_sim_faults_begin(world);
	if (world->options.servers.one_faulty)
		tick(world, NULL, 0);
}

void hs_sim_servers_destroy(struct hs_sim_world *world)
{
	hs_sim_network_destroy(&world->network);
	hs_sim_cluster_destroy(&world->cluster);
}

/* ---- the end of faults ---- */

static bool is_well(const struct hs_sim_world *world)
{
	return all_routed(world) && hs_sim_cluster_is_settled(world->cluster);
}

static void set_liveness(struct hs_sim_world *world, uint32_t liveness_us)
{
	for (uint32_t i = 0; i < world->options.heatsinks; i++)
		hs_sim_redis_set_liveness(world->heatsinks[i].redis, liveness_us);
}

/* No client reads meanwhile, so few liveness checks are enough: most schedules are shorter than this time. */
static void wait_until_well(struct hs_sim_world *world)
{
	uint32_t liveness_us = world->options.servers.liveness_us;
	uint64_t began_us = world->now.mono_us;

	set_liveness(world, liveness_us > 0 ? CALM_STEP_US : 0);
	while (world->now.mono_us - began_us < CALM_US_MAX &&
	       (world->now.mono_us - began_us < CALM_US_MIN || !is_well(world))) {
		hs_sim_world_pass(world, CALM_STEP_US);
		hs_sim_faults_finish_moves(world);
	}
	set_liveness(world, liveness_us);
}

void hs_sim_servers_stop_faults(struct hs_sim_world *world)
{
	const struct hs_sim_servers_options *servers = &world->options.servers;

	if (world->faults_stopped)
		return;
	world->faults_stopped = true;
	hs_sim_faults_end(world);
	hs_sim_network_set_faults(world->network, false);
	hs_sim_cluster_stop_faults(world->cluster);
	if (servers->act_us_max > 0 || servers->lose_one_in > 0 || servers->mute_one_in > 0)
		wait_until_well(world);
}

/* ---- one heatsink's engine ---- */

struct hs_sim_redis *hs_sim_servers_create_redis(struct hs_sim_world *world,
						 const struct hs_sim_redis_host *host)
{
	const struct hs_sim_servers_options *servers = &world->options.servers;
	enum hs_sim_bug bug = world->options.engine.bug;
	const struct hs_sim_redis_options options = {
		.seed = hs_prng_next(&world->prng),
		.cluster = servers->cluster,
		.workers = world->options.workers,
		.partitions = servers->cluster ? PARTITIONS : 1,
		.timeout_us = servers->timeout_us,
		.in_flight_max = servers->in_flight_max,
		.waiting_max = servers->waiting_max,
		.private_max = bug == HS_SIM_PRIVATE_UNLIMITED ? UINT32_MAX : servers->private_max,
		.refresh_ms = REFRESH_MS,
		.liveness_us = servers->liveness_us,
		.message_us_max = servers->message_us_max,
		.bug = bug,
		.log = &world->silence,
	};

	return hs_sim_redis_create(&options, host);
}
