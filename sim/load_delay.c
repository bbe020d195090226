/* Law 9: a slow or dead server does not delay requests to others.
 *
 * Where only one server is ever troubled (hs_sim_servers_options.alone), a request for one key of another server
 * must be answered as soon as if all were well. That is judged of what has nothing to wait for: its client has under
 * way only such requests, reads its replies, and is in no transaction. How long it may take follows from what it goes
 * through, with the most that each takes:
 *
 *     round ─ way there ─ cycle of the server ─ way back ─ round      once for itself, and for every request
 *                                                                     that was under way when it was asked
 *     connect, way there ─ cycle ─ way back                           once, if its connection is not open yet
 *
 * Requests in front of it count one by one though most are answered together: a server takes one at a time from each
 * worker if the plan says so, and requests for a hot key wait for each other. */
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
	uint64_t count = 0;

	for (uint32_t i = 0; i < load->options.clients; i++)
		count += load->actors[i].asks_asked - load->actors[i].asks_head;
	return count;
}

static uint64_t bound_us(const struct hs_sim_load *load)
{
	const struct hs_sim_world_options *world = &load->world->options;
	uint64_t way_us = world->servers.latency_us_max + 1;
	uint64_t there_and_back_us = 2 * way_us + world->servers.cycle_us_max;

	return way_us + there_and_back_us +
	       count_under_way(load) * (there_and_back_us + 2 * (uint64_t)world->round_us_max);
}

/* Whether nothing that this client has under way has to wait for the troubled server. */
static bool is_free(const struct hs_sim_actor *actor, const struct hs_sim_ask *ask)
{
	if (actor->asks_head == actor->silent_to)
		return false;
	for (uint32_t i = actor->asks_head; i != actor->asks_asked; i++) {
		const struct hs_sim_ask *other = &actor->asks[i % HS_SIM_UNDER_WAY_MAX];

		if (other != ask && other->due_us == 0)
			return false;
	}
	return true;
}

void hs_sim_delay_asked(struct hs_sim_actor *actor, struct hs_sim_ask *ask)
{
	struct hs_sim_load *load = actor->load;
	const struct hs_sim_servers_options *servers = &load->world->options.servers;

	ask->due_us = 0;
	if (!servers->alone || load->world->calm || ask->expect != HS_SIM_EXPECT_ANSWER ||
	    ask->ops_count != 1 || actor->client->deaf || !is_free(actor, ask) ||
	    owner_of(load, ask->ops[0].key) == servers->victim)
		return;
	ask->due_us = load->world->now.mono_us + bound_us(load);
	if (hs_sim_cluster_serves(load->world->cluster, servers->victim) && servers->slow_us == 0)
		return;
	hs_sim_reach(&load->world->reached, HS_SIM_REACHED_BESIDE);
}

void hs_sim_delay_deaf(struct hs_sim_actor *actor)
{
	for (uint32_t i = actor->asks_head; i != actor->asks_asked; i++)
		actor->asks[i % HS_SIM_UNDER_WAY_MAX].due_us = 0;
}

void hs_sim_delay_heard(struct hs_sim_actor *actor, const struct hs_sim_ask *ask)
{
	struct hs_sim_load *load = actor->load;
	uint64_t now_us = load->world->now.mono_us;

	if (ask->due_us == 0)
		return;
	if (now_us > ask->due_us)
		hs_sim_verdict_set(&load->verdict, 9,
				   "client %u heard of key%u %" PRIu64
				   " us too late, while only node %u is troubled, which has not "
				   "that key",
				   actor->number, ask->ops[0].key, now_us - ask->due_us,
				   load->world->options.servers.victim);
	else if (ask->outcome != HS_SIM_OUTCOME_ANSWERED)
		hs_sim_verdict_set(&load->verdict, 9,
				   "client %u was told of key%u that %s, while only node %u is "
				   "troubled, which has not that key",
				   actor->number, ask->ops[0].key, actor->trouble,
				   load->world->options.servers.victim);
}
