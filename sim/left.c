#include "sim/left.h"

#include "absorb/copies/set.h"
#include "base/err.h"
#include "base/num.h"
#include "core/reserved.h"
#include "sim/cluster.h"
#include "sim/names.h"
#include "sim/world_internal.h"
#include "wire/answer.h"

enum {
	STOP_STEPS_MAX = 1000,
	STOP_STEP_US = 1000,
	ARRIVE_US = 20000, /* whatever is on its way gets there */
	TTL_MS_MAX = 1000, /* the load gives no key more */
	LEASE_MS = HS_COPIES_LEASE_US / 1000,
};

/* The visit to one node's keys. */
struct visit {
	struct hs_sim_world *world;
	struct hs_sim_verdict *verdict;
	uint8_t node;
	uint32_t keys;
	bool times;
	bool copies_may_be;
	uint32_t copies;
};

/* ---- keys ---- */

/* A number or one of the load's texts, as GET answers it. */
static bool is_value(struct hs_bytes reply)
{
	struct hs_answer answer;
	int64_t value;

	if (hs_answer_head(&answer, reply.data, reply.len) <= 0 || answer.type != HS_ANSWER_BULK)
		return false;
	if (answer.text.len > 0 && answer.text.data[0] == 't')
		answer.text = (struct hs_bytes){answer.text.data + 1, answer.text.len - 1};
	return hs_num_parse_int(answer.text, &value);
}

static void complain(struct visit *visit, struct hs_bytes key, const char *why)
{
	char text[80];

	hs_sim_verdict_set(visit->verdict, HS_SIM_LAW_LEFT, "node %u holds %s, %s", visit->node,
			   hs_bytes_escape(key, text, sizeof text), why);
}

static void visit_copy(struct visit *visit, struct hs_bytes key, int64_t left_ms, bool lasts)
{
	visit->copies++;
	if (!visit->copies_may_be)
		complain(visit, key, "and every heatsink has stopped");
	else if (lasts || left_ms > LEASE_MS)
		complain(visit, key, "and its lease does not end soon");
}

static void visit_key(void *context, uint16_t slot, struct hs_bytes key)
{
	struct visit *visit = context;
	struct hs_buf reply = {0};
	int64_t expire_ms, left_ms;
	uint32_t number;
	bool lasts;

	(void)slot;
	hs_sim_cluster_peek_at(visit->world->cluster, visit->node, key, &reply, &expire_ms);
	left_ms = expire_ms - hs_now_wall_ms(visit->world->now);
	lasts = expire_ms == -1;
	if (expire_ms != -2 && hs_is_reserved(key)) { /* else it has expired */
		visit_copy(visit, key, left_ms, lasts);
	} else if (expire_ms != -2) {
		if (!hs_sim_name_number(key, &number) || number >= visit->keys)
			complain(visit, key, "which no client has set");
		else if (!lasts && (!visit->times || left_ms > TTL_MS_MAX))
			complain(visit, key, "with a time to live that no client gave it");
		else if (!is_value(hs_buf_bytes(&reply)))
			complain(visit, key, "with what no client set it to");
	}
	hs_buf_deinit(&reply);
}

static void visit_nodes(struct visit *visit)
{
	visit->copies = 0;
	for (visit->node = 0; visit->node < hs_sim_cluster_nodes(visit->world->cluster);
	     visit->node++)
		hs_sim_cluster_each_key(visit->world->cluster, visit->node, visit_key, visit);
}

/* ---- connections ---- */

static void check_connections(struct hs_sim_world *world, bool stopped,
			      struct hs_sim_verdict *verdict)
{
	for (uint8_t node = 0; node < hs_sim_cluster_nodes(world->cluster); node++) {
		struct hs_sim_left left;

		hs_sim_cluster_left(world->cluster, node, &left);
		if (stopped && left.conns + left.tracking + left.prefixes > 0)
			hs_sim_verdict_set(
				verdict, HS_SIM_LAW_LEFT,
				"every heatsink has stopped, and node %u has %u connections "
				"left, %u that track, %u prefixes",
				node, left.conns, left.tracking, left.prefixes);
		if (left.watching + left.queueing + left.blocked > 0)
			hs_sim_verdict_set(verdict, HS_SIM_LAW_LEFT,
					   "every client has gone, and of node %u's connections %u "
					   "watch keys, %u are in MULTI, %u block",
					   node, left.watching, left.queueing, left.blocked);
	}
}

static void check_private(struct hs_sim_world *world, struct hs_sim_verdict *verdict)
{
	for (uint32_t i = 0; i < world->options.heatsinks; i++) {
		uint32_t count = hs_sim_proxy_private(world->heatsinks[i].proxy);

		if (count > 0)
			hs_sim_verdict_set(verdict, HS_SIM_LAW_LEFT,
					   "every client has gone, and %u private connections of "
					   "heatsink %u are still theirs",
					   count, i);
	}
}

/* ---- stopping ---- */

/* As serve/worker.c: the workers go on until each has nothing under way. */
static void stop(struct hs_sim_world *world, struct hs_sim_verdict *verdict)
{
	uint32_t left = 1;

	for (uint32_t step = 0; left > 0 && step < STOP_STEPS_MAX; step++) {
		left = 0;
		for (uint32_t i = 0; i < world->workers_count; i++) {
			struct hs_core *core = world->workers[i].core;

			left += hs_core_drain(core, world->now, 0);
			hs_core_tick(core, world->now);
			hs_sim_after_core(world, i);
		}
		hs_sim_world_pass(world, STOP_STEP_US);
	}
	if (left > 0)
		hs_sim_verdict_set(
			verdict, HS_SIM_LAW_LEFT,
			"told to stop, the workers have %u requests or clients under way "
			"a second later",
			left);
	for (uint32_t i = 0; i < world->options.heatsinks; i++)
		hs_sim_heatsink_stop(&world->heatsinks[i]);
	hs_sim_world_pass(world, ARRIVE_US + world->options.servers.slow_us);
}

int hs_sim_check_left(struct hs_sim_world *world, uint32_t keys, bool times,
		      struct hs_sim_verdict *verdict)
{
	const struct hs_sim_servers_options *servers = &world->options.servers;
	struct visit visit = {
		.world = world,
		.verdict = verdict,
		.keys = keys,
		.times = times,
		.copies_may_be = servers->act_us_max > 0 || servers->lose_one_in > 0 ||
				 servers->mute_one_in > 0,
	};

	hs_sim_world_hang_up(world);
	check_private(world, verdict);
	check_connections(world, false, verdict);
	stop(world, verdict);
	check_connections(world, true, verdict);
	visit_nodes(&visit);
	if (visit.copies > 0 && verdict->law == 0) {
		hs_sim_world_pass(world, HS_COPIES_LEASE_US + 1000);
		visit.copies_may_be = false;
		visit_nodes(&visit);
	}
	return verdict->law == 0 ? 0 : HS_EINVAL;
}
