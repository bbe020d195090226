/* Law 9: a slow or dead server does not delay requests for keys of other servers.
 *
 * Where only one server ever has a fault (hs_sim_servers_options.one_faulty), a request for one key of another
 * server must be answered as fast as without the fault. The check covers requests that have nothing else to wait
 * for: all requests in flight of their client are of the same sort, the client reads its replies, and is in no
 * transaction. The bound adds up the most that each part of the way can take:
 *
 *     round ─ way there ─ cycle of the server ─ way back ─ round      once for itself, and for every request
 *                                                                     that was in flight when it was sent
 *     connect, way there ─ cycle ─ way back                           once, if its connection is not open yet
 *
 * Requests in front of it count one by one though most are answered together: a server may take one at a time from
 * each worker, and requests for a hot key wait for each other.
 *
 * Where keys have rules, a request to a healthy server may also wait for:
 *
 *     a fetch, of this or another worker;           once for every such answer that came while it was waiting. So a
 *     another command about copies                  fetch that does not arrive, because it waits for the faulty
 *                                                   server, extends no bound
 *     a message of another worker                   once with each of them
 *     a liveness check                              in front of each, where a server takes one at a time
 *     connecting the fetch pipe, CLIENT TRACKING    once
 *     a read of a replica that returns nothing      once
 *     a copy on the faulty server                   HS_COPIES_SLOW_US and a tick for every read that was sent there:
 *                                                   absorb/copies/read.c lets it hold up a read for this time. */
#include "absorb/copies/set.h"
#include "sim/cluster.h"
#include "sim/load_internal.h"
#include "sim/names.h"

#include <inttypes.h>
#include <stdio.h>

static uint8_t owner_of(const struct hs_sim_load *load, uint32_t key)
{
	return hs_sim_cluster_owner(load->world->cluster,
				    hs_sim_name_slot(load->world->options.tied, key));
}

static uint64_t count_under_way(const struct hs_sim_load *load)
{
	uint64_t count = load->companions ? hs_sim_companions_in_flight(load->companions) : 0;

	for (uint32_t i = 0; i < load->options.clients; i++)
		count += load->actors[i].in_flight_sent - load->actors[i].in_flight_head;
	return count;
}

static uint64_t there_and_back_us(const struct hs_sim_world_options *world)
{
	return 2 * ((uint64_t)world->servers.latency_us_max + 1) + world->servers.cycle_us_max;
}

/* The longest that a request takes, or delays others, at one server. */
static uint64_t turn_us(const struct hs_sim_world_options *world)
{
	uint64_t us = there_and_back_us(world) + 2 * (uint64_t)world->round_us_max;

	return world->rules_count > 0 && world->servers.in_flight_max == 1 ? 2 * us : us;
}

static bool has_copies(const struct hs_sim_world_options *world)
{
	return world->rules_count > 0 && world->rules[0].copies > 0;
}

/* A request for a hot key is sent when the round ends. Requests that arrive until then go before it, which matters
 * where a server takes one at a time. */
static uint64_t count_overtaking(const struct hs_sim_load *load)
{
	const struct hs_sim_load_options *options = &load->options;

	if (!load->world->options.core.fold || load->world->options.servers.in_flight_max != 1)
		return 0;
	return (uint64_t)(options->clients - 1) * options->depth_max * HS_SIM_REQUEST_OPS_MAX;
}

static uint64_t bound_us(const struct hs_sim_load *load)
{
	const struct hs_sim_world_options *world = &load->world->options;
	uint64_t connect_us = world->servers.latency_us_max + 1 + there_and_back_us(world);
	uint64_t us =
		connect_us + (count_under_way(load) + count_overtaking(load)) * turn_us(world);

	if (world->rules_count > 0)
		us += connect_us + 2 * turn_us(world);
	if (has_copies(world))
		us += connect_us + HS_COPIES_SLOW_US + HS_SIM_TICK_US;
	return us;
}

/* Extra time for fetches, and for commands about copies, that were answered or sent while the request waited. */
static uint64_t more_us(const struct hs_sim_world_options *world,
			const struct hs_sim_progress *before, const struct hs_sim_progress *now)
{
	return (now->internal - before->internal) * (turn_us(world) + world->event_us_max + 1) +
	       (now->diverted - before->diverted) * (HS_COPIES_SLOW_US + HS_SIM_TICK_US);
}

static const struct hs_sim_progress *progress_of(const struct hs_sim_actor *actor)
{
	const struct hs_sim_world *world = actor->load->world;

	return &world->heatsinks[actor->client->worker / world->options.workers].progress;
}

/* Whether no request in flight of this client waits for the faulty server. */
static bool is_free(const struct hs_sim_actor *actor, const struct hs_sim_request *request)
{
	if (actor->in_flight_head == actor->silent_to)
		return false;
	for (uint32_t i = actor->in_flight_head; i != actor->in_flight_sent; i++) {
		const struct hs_sim_request *other = &actor->in_flight[i % HS_SIM_IN_FLIGHT_MAX];

		if (other != request && other->due_us == 0)
			return false;
	}
	return true;
}

void hs_sim_delay_sent(struct hs_sim_actor *actor, struct hs_sim_request *request)
{
	struct hs_sim_load *load = actor->load;
	const struct hs_sim_servers_options *servers = &load->world->options.servers;

	request->due_us = 0;
	if (!servers->one_faulty || load->world->faults_stopped ||
	    request->expect != HS_SIM_EXPECT_ANSWER || request->ops_count != 1 ||
	    actor->client->reading_paused || !is_free(actor, request) ||
	    owner_of(load, request->ops[0].key) == servers->victim)
		return;
	request->due_us = load->world->now.mono_us + bound_us(load);
	request->before = *progress_of(actor);
	if (hs_sim_cluster_serves(load->world->cluster, servers->victim) && servers->slow_us == 0)
		return;
	hs_sim_cover(&load->world->coverage, HS_SIM_COVERAGE_BESIDE_FAULT);
}

void hs_sim_delay_reading_paused(struct hs_sim_actor *actor)
{
	for (uint32_t i = actor->in_flight_head; i != actor->in_flight_sent; i++)
		actor->in_flight[i % HS_SIM_IN_FLIGHT_MAX].due_us = 0;
}

void hs_sim_delay_answered(struct hs_sim_actor *actor, const struct hs_sim_request *request)
{
	struct hs_sim_load *load = actor->load;
	uint64_t now_us = load->world->now.mono_us, due_us = request->due_us;

	if (due_us == 0)
		return;
	due_us += more_us(&load->world->options, &request->before, progress_of(actor));
	if (now_us > due_us)
		hs_sim_verdict_set(&load->verdict, 9,
				   "client %u got the answer for key%u %" PRIu64
				   " us too late, while only node %u, which does not have that "
				   "key, is faulty",
				   actor->number, request->ops[0].key, now_us - due_us,
				   load->world->options.servers.victim);
	else if (request->outcome != HS_SIM_OUTCOME_ANSWERED)
		hs_sim_verdict_set(&load->verdict, 9,
				   "client %u was refused key%u (%s), while only node %u, which "
				   "does not have that key, is faulty",
				   actor->number, request->ops[0].key, actor->last_error,
				   load->world->options.servers.victim);
}
