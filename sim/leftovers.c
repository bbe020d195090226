#include "sim/leftovers.h"

#include "absorb/copies/set.h"
#include "base/err.h"
#include "base/num.h"
#include "core/reserved.h"
#include "sim/cluster.h"
#include "sim/names.h"
#include "sim/world_internal.h"
#include "wire/parse_reply.h"

enum {
	STOP_STEPS_MAX = 1000,
	STOP_STEP_US = 1000,
	ARRIVE_US = 20000, /* everything in flight has arrived by then */
	TTL_MS_MAX = 1000, /* the load gives no key more */
	LEASE_MS = HS_COPIES_LEASE_US / 1000,
};

/* The state of a visit to the keys of one node. */
struct visit {
	struct hs_sim_world *world;
	struct hs_sim_verdict *verdict;
	uint8_t node;
	const struct hs_sim_leftovers_keys *keys;
	bool copies_may_be;
	uint32_t copies;
};

/* ---- keys ---- */

/* Whether the reply of GET is a number or one of the load's texts. */
static bool is_value(struct hs_bytes reply)
{
	struct hs_parsed_reply answer;
	int64_t value;

	if (hs_parse_reply_head(&answer, reply.data, reply.len) <= 0 ||
	    answer.type != HS_PARSED_BULK)
		return false;
	if (answer.text.len > 0 && answer.text.data[0] == 't')
		answer.text = (struct hs_bytes){answer.text.data + 1, answer.text.len - 1};
	return hs_num_parse_int(answer.text, &value);
}

static void report(struct visit *visit, struct hs_bytes key, const char *why)
{
	char text[80];

	hs_sim_verdict_set(visit->verdict, HS_SIM_LAW_LEFTOVERS, "node %u holds %s, %s",
			   visit->node, hs_bytes_escape(key, text, sizeof text), why);
}

static void visit_copy(struct visit *visit, struct hs_bytes key, int64_t ttl_ms, bool lasts)
{
	visit->copies++;
	if (!visit->copies_may_be)
		report(visit, key, "a copy, though every heatsink has stopped");
	else if (lasts || ttl_ms > LEASE_MS)
		report(visit, key, "a copy whose lease does not end soon");
}

/* A key that is not a copy. A node that does not own the slot any more may hold an old value, as with Redis. */
static void visit_own(struct visit *visit, struct hs_bytes key, struct hs_bytes reply,
		      int64_t ttl_ms, bool lasts)
{
	uint32_t number;

	if (!hs_sim_name_number(key, &number) || number >= visit->keys->count)
		report(visit, key, "which no client has set");
	else if (!lasts && (!visit->keys->times || ttl_ms > TTL_MS_MAX))
		report(visit, key, "with a time to live that no client gave it");
	else if (!is_value(reply))
		report(visit, key, "with a value that no client set");
}

static void visit_key(void *context, uint16_t slot, struct hs_bytes key)
{
	struct visit *visit = context;
	struct hs_buf reply = {0};
	int64_t expire_ms, ttl_ms;

	(void)slot;
	hs_sim_cluster_peek_at(visit->world->cluster, visit->node, key, &reply, &expire_ms);
	ttl_ms = expire_ms - hs_now_wall_ms(visit->world->now);
	if (expire_ms != -2 && hs_is_reserved(key)) /* -2: it has expired */
		visit_copy(visit, key, ttl_ms, expire_ms == -1);
	else if (expire_ms != -2)
		visit_own(visit, key, hs_buf_bytes(&reply), ttl_ms, expire_ms == -1);
	hs_buf_deinit(&reply);
}

/* The owner of each key holds what clients read last: there were no writes since. */
static void check_finals(struct visit *visit)
{
	const struct hs_sim_leftovers_keys *keys = visit->keys;

	for (uint32_t key = 0; keys->finals && key < keys->count; key++) {
		char kept[HS_SIM_VALUE_TEXT_MAX], read[HS_SIM_VALUE_TEXT_MAX];
		int64_t ttl_ms, value = hs_sim_world_peek(visit->world, key, &ttl_ms);

		if (value != keys->finals[key] && (value != HS_SIM_NOTHING || !keys->times))
			hs_sim_verdict_set(visit->verdict, HS_SIM_LAW_LEFTOVERS,
					   "the servers hold %s at key%u, and the last read saw %s",
					   hs_sim_value_text(value, kept), key,
					   hs_sim_value_text(keys->finals[key], read));
	}
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
		struct hs_sim_leftovers left;

		hs_sim_cluster_leftovers(world->cluster, node, &left);
		if (stopped && left.clients + left.tracking + left.prefixes > 0)
			hs_sim_verdict_set(
				verdict, HS_SIM_LAW_LEFTOVERS,
				"every heatsink has stopped, and node %u has %u connections "
				"left, of them %u that track; %u prefixes",
				node, left.clients, left.tracking, left.prefixes);
		if (left.watching + left.queueing + left.blocked > 0)
			hs_sim_verdict_set(
				verdict, HS_SIM_LAW_LEFTOVERS,
				"every client has disconnected, and of node %u's connections %u "
				"watch keys, %u are in MULTI, %u are blocked",
				node, left.watching, left.queueing, left.blocked);
	}
}

static void check_private(struct hs_sim_world *world, struct hs_sim_verdict *verdict)
{
	for (uint32_t i = 0; i < world->options.heatsinks; i++) {
		uint32_t count = hs_sim_redis_private(world->heatsinks[i].redis);

		if (count > 0)
			hs_sim_verdict_set(
				verdict, HS_SIM_LAW_LEFTOVERS,
				"every client has disconnected, and %u private connections of "
				"heatsink %u are still reserved",
				count, i);
	}
}

/* ---- stopping ---- */

/* Stops all heatsinks as serve/worker.c does: the workers go on until nothing is in flight. */
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
		hs_sim_verdict_set(verdict, HS_SIM_LAW_LEFTOVERS,
				   "the workers still have %u requests or clients a second after "
				   "they were told to stop",
				   left);
	for (uint32_t i = 0; i < world->options.heatsinks; i++)
		hs_sim_heatsink_stop(&world->heatsinks[i]);
	hs_sim_world_pass(world, ARRIVE_US + world->options.servers.slow_us);
}

int hs_sim_check_leftovers(struct hs_sim_world *world, const struct hs_sim_leftovers_keys *keys,
			   struct hs_sim_verdict *verdict)
{
	const struct hs_sim_servers_options *servers = &world->options.servers;
	struct visit visit = {
		.world = world,
		.verdict = verdict,
		.keys = keys,
		.copies_may_be = servers->act_us_max > 0 || servers->lose_one_in > 0 ||
				 servers->mute_one_in > 0,
	};

	hs_sim_world_hang_up(world);
	check_private(world, verdict);
	check_connections(world, false, verdict);
	stop(world, verdict);
	check_connections(world, true, verdict);
	visit_nodes(&visit);
	if (verdict->law == 0)
		check_finals(&visit);
	if (visit.copies > 0 && verdict->law == 0) {
		hs_sim_world_pass(world, HS_COPIES_LEASE_US + 1000);
		visit.copies_may_be = false;
		visit_nodes(&visit);
	}
	return verdict->law == 0 ? 0 : HS_EINVAL;
}
